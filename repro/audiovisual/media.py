"""Clips as files: which kinds are read, and opening one without trusting it.

The kind is told by the first bytes, never by the name, and no other demuxer of FFmpeg is tried: a playlist that calls
itself `.mp4` cannot have other files or addresses opened. Whatever is wrong with a file is a ValueError that says why.
"""

import contextlib
import io
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

LONGEST = 120                 # seconds of a clip; a file that lasts longer was not cut to one
SIGNATURES = (                # place, bytes found there, FFmpeg's name for the kind
    (8, b"AVI ", "avi"), (8, b"WAVE", "wav"), (0, b"OggS", "ogg"), (0, b"\x1aE\xdf\xa3", "matroska"),
    *((4, box, "mp4") for box in (b"ftyp", b"moov", b"mdat", b"free", b"wide")),
)
EMPTY_RIFF = (0, 2**32 - 1)   # what is written for a size by programs that cannot go back to correct it


@contextlib.contextmanager
def opened(contents: bytes) -> Iterator[Any]:
    """FFmpeg's view of a file, an `av.container.InputContainer`, inside the block.

    Raises:
        ValueError: if it is of no kind that is read, or FFmpeg finds an error then or inside the block.
    """
    import av

    kind = kind_of(contents)
    try:
        with av.open(io.BytesIO(contents), format=kind, metadata_errors="replace") as container:  # of any encoding
            yield container
    except av.error.FFmpegError as error:
        raise ValueError(f"damaged {kind} ({error.strerror})") from error


def kind_of(contents: bytes) -> str:
    """FFmpeg's name for the kind of a file: "avi", "mp4", "matroska", "wav" or "ogg".

    Raises:
        ValueError: if it is of none of them.
    """
    for place, signature, kind in SIGNATURES:
        if contents[place:].startswith(signature):
            return kind
    raise ValueError("is no AVI, MP4, Matroska, WAV or Ogg file" if contents[:16].strip(b"\0") else "is empty")


def refuse_cut(contents: bytes) -> None:
    """Raise ValueError if a file ends before it says it does: AVI and WAV announce their size, Ogg marks its last page.

    MP4 and Matroska cut short show when they are opened or decoded.
    """
    if contents[:4] == b"RIFF":
        announced = int.from_bytes(contents[4:8], "little")
        if announced not in EMPTY_RIFF and announced + 8 > len(contents) + 1:  # some count a last byte of padding
            raise ValueError(f"truncated: {len(contents):,} of {announced + 8:,} bytes")
    if contents[:4] == b"OggS":
        page = contents[contents.rfind(b"OggS") :]
        sizes = page[27 : 27 + page[26]] if len(page) > 27 else b""
        if not sizes or not page[5] & 4 or len(page) < 27 + len(sizes) + sum(sizes):
            raise ValueError("truncated: its last page is missing")


def announced(contents: bytes) -> tuple[float, int]:
    """Seconds that a file says it lasts, and how many pictures; 0 for what it does not say.

    Of pictures AVI alone is asked: MP4 also counts those that an edit hides.

    Raises:
        ValueError: as `opened`.
    """
    with opened(contents) as container:
        pictures = first(container, "video") if container.format.name == "avi" else None
        return (container.duration or 0) / 10**6, pictures.frames if pictures else 0


def decoded(container: Any, kind: str) -> Iterator[Any]:
    """The frames of the first stream of a kind, "video" or "audio", as the decoder gives them; none without a stream.

    One thread: files are read side by side, in processes.

    Raises:
        ValueError: if a frame is damaged or has no time stamp.
    """
    stream = first(container, kind)
    if stream is None:
        return
    stream.codec_context.thread_count = 1
    for frame in container.decode(stream):
        if frame.is_corrupt:
            raise ValueError(f"damaged {kind} at {float(frame.time or 0):.2f} s; truncated?")
        if frame.pts is None:
            raise ValueError(f"a frame of its {kind} has no time stamp")
        yield frame


def first(container: Any, kind: str) -> Any:
    """The first stream of a kind that can be decoded, or None."""
    return next((stream for stream in getattr(container.streams, kind) if stream.codec_context is not None), None)


def refuse_long(seconds: float | Fraction) -> None:
    """Raise ValueError for more seconds than a clip may last."""
    if seconds > LONGEST:
        raise ValueError(f"lasts {float(seconds):,.0f} s, a clip at most {LONGEST}; cut it to its segment")
