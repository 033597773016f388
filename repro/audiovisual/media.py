"""Clips as files: which kinds are read, opening one without trusting it, and what it says about itself.

The kind is told by the first bytes, never by the name, and no other demuxer of FFmpeg is tried: a playlist that calls
itself `.mp4` cannot have other files or addresses opened.
"""

import contextlib
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, BinaryIO

LONGEST = 120                 # seconds of a clip; a file that lasts longer was not cut to one
LARGEST_PICTURE = 2**25       # pixels, 8192 x 4096
LARGEST_SAMPLING = 384_000    # Hz
SIGNATURES = (                # place, bytes found there, FFmpeg's name for the kind
    (8, b"AVI ", "avi"), (8, b"WAVE", "wav"), (0, b"OggS", "ogg"), (0, b"\x1aE\xdf\xa3", "matroska"),
    *((4, box, "mp4") for box in (b"ftyp", b"moov", b"mdat", b"free", b"wide")),
)
EMPTY_RIFF = (0, 2**32 - 1)   # what is written for a size by programs that cannot go back to correct it


class Unusable(ValueError):
    """A file that cannot be used as a clip; the message says why."""


@contextlib.contextmanager
def opened(file: BinaryIO) -> Iterator[Any]:
    """FFmpeg's view of an open file, an `av.container.InputContainer`, inside the block.

    Raises:
        Unusable: if it is of no kind that is read, or FFmpeg finds an error then or inside the block.
    """
    import av

    file.seek(0)
    kind = _kind(file.read(16))
    file.seek(0)
    try:
        with av.open(file, format=kind, metadata_errors="replace") as container:  # titles may be of any encoding
            yield container
    except av.error.FFmpegError as error:
        raise Unusable(f"damaged {kind} ({error.strerror})") from error


def refuse_cut(contents: bytes) -> None:
    """Raise Unusable if a file ends before it says it does: AVI and WAV announce their size, Ogg marks its last page.

    MP4 and Matroska cut short show when they are opened or decoded.
    """
    if contents[:4] == b"RIFF":
        announced = int.from_bytes(contents[4:8], "little")
        if announced not in EMPTY_RIFF and announced + 8 > len(contents) + 1:  # some count a last byte of padding
            raise Unusable(f"truncated: {len(contents):,} of {announced + 8:,} bytes")
    if contents[:4] == b"OggS":
        page = contents[contents.rfind(b"OggS") :]
        sizes = page[27 : 27 + page[26]] if len(page) > 27 else b""
        if not sizes or not page[5] & 4 or len(page) < 27 + len(sizes) + sum(sizes):
            raise Unusable("truncated: its last page is missing")


def describe(file: BinaryIO, needs: str) -> dict[str, Any]:
    """What a file says about itself before it is decoded, ready for JSON.

    Args:
        file: open for reading.
        needs: the stream without which it is of no use, "video" or "audio".

    Returns:
        kind: "avi", "mp4", ...
        seconds: it lasts as it says, None if it does not.
        video: codec, width, height, frames (0 if it does not say) and rate in pictures per second, as a fraction; None
            without pictures.
        audio: codec, rate in Hz and channels; None without sound.

    Raises:
        Unusable: if it cannot be opened, lacks what it needs, or is no clip: too long or of absurd size.
    """
    with opened(file) as container:
        video, audio = (_first(container, kind) for kind in ("video", "audio"))
        if (video if needs == "video" else audio) is None:
            what = "pictures" if needs == "video" else "sound"
            raise Unusable(f"holds no {what} that can be decoded; truncated?")
        seconds = None if container.duration is None else float(container.duration / 10**6)
        if seconds is not None:
            refuse_long(seconds)
        found: dict[str, Any] = {"kind": container.format.name, "seconds": seconds, "video": None, "audio": None}
        if video is not None and needs == "video":
            refuse_large(video.codec_context.width, video.codec_context.height)
            found["video"] = {
                "codec": video.codec_context.name, "width": video.codec_context.width,
                "height": video.codec_context.height, "frames": video.frames, "rate": str(video.average_rate or 0),
            }
        if audio is not None:
            found["audio"] = {"codec": audio.codec_context.name, "rate": audio.codec_context.sample_rate,
                              "channels": audio.codec_context.channels}
    return found


def decoded(container: Any, kind: str) -> Iterator[Any]:
    """The frames of the first stream of a kind, "video" or "audio", as the decoder gives them; none without a stream.

    One thread: files are read side by side, in processes.

    Raises:
        Unusable: if a frame is damaged or has no time stamp.
    """
    stream = _first(container, kind)
    if stream is None:
        return
    stream.codec_context.thread_count = 1
    for frame in container.decode(stream):
        if frame.is_corrupt:
            raise Unusable(f"damaged {kind} at {float(frame.time or 0):.2f} s; truncated?")
        if frame.pts is None:
            raise Unusable(f"a frame of its {kind} has no time stamp")
        yield frame


def refuse_long(seconds: float | Fraction) -> None:
    """Raise Unusable for more seconds than a clip may last."""
    if seconds > LONGEST:
        raise Unusable(f"lasts {float(seconds):,.0f} s, a clip at most {LONGEST}; cut it to its segment")


def refuse_large(width: int, height: int) -> None:
    """Raise Unusable for pictures without an area, or of an absurd one."""
    if not 0 < width * height <= LARGEST_PICTURE:
        raise Unusable(f"its pictures are {width} x {height}, at most {LARGEST_PICTURE:,} pixels are read")


def _kind(head: bytes) -> str:
    for place, signature, kind in SIGNATURES:
        if head[place:].startswith(signature):
            return kind
    raise Unusable("is no AVI, MP4, Matroska, WAV or Ogg file" if head.strip(b"\0") else "is empty")


def _first(container: Any, kind: str) -> Any:
    """The first stream of a kind that can be decoded, or None."""
    return next((stream for stream in getattr(container.streams, kind) if stream.codec_context is not None), None)
