"""What the campaign of bad input reads: recordings, skeletons and pictures, and what each states."""

import functools
import io
import math
import wave
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import NamedTuple

import made_clips
import ntu_files
import numpy as np
from image_files import png

from repro.audiovisual import decode
from repro.image.readers import read_rgb
from repro.skeleton import ntu

SIZE = 24                     # pixels, of decoded pictures
NTU_NAME = "S001C001P001R001A001"
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
WORDS = ("nan", "-inf", "1e999", "3e38", "-1", "0", "2", "1.5", "", "1_0", "0x10", "9" * 5000, "x",
         "\N{SUPERSCRIPT TWO}")


class Kind(NamedTuple):
    """A kind of file."""

    sound: Callable[[], Sequence[bytes]]          # valid ones
    read: Callable[[bytes, Path], None]           # through the package; AssertionError if it reads what is not stated
    named: str = ""                               # what a refusal has to name; preparation names recordings
    text: bool = False

    def damaged(self, draw: Random) -> bytes:
        """A file that is no valid one, after one to three edits."""
        sound = self.sound()
        contents = draw.choice(sound)
        while contents in sound:
            for _ in range(draw.choice((1, 1, 1, 2, 3))):
                contents = (_other_word if self.text and draw.random() < 0.7 else _edited)(contents, draw)
        return contents


def _edited(contents: bytes, draw: Random) -> bytes:
    """The bytes with another part, short more often than long: none, zeros, noise, a flipped bit, an extreme number."""
    start = draw.randrange(min(len(contents), draw.choice((1024, 2**40))) + 1)  # headers are in the first kilobyte
    part = contents[start : start + int(2 ** draw.uniform(0, 1 + len(contents).bit_length()))]
    number = draw.choice(NUMBERS).to_bytes(8, draw.choice(("little", "big")))[: draw.choice((1, 2, 4, 8))]
    bit = bytes([(part or b"\0")[0] ^ 1 << draw.randrange(8)]) + part[1:]
    zeros, noise = bytes(len(part)), draw.randbytes(len(part))
    other = draw.choice((b"", part + part, zeros, noise, bit, bit, number + part[len(number) :]))
    return contents[:start] + other + contents[start + len(part) :]


def _other_word(contents: bytes, draw: Random) -> bytes:
    """A text with another word, or without a line."""
    lines = contents.splitlines(keepends=True)
    place = draw.randrange(len(lines))
    words = lines[place].split(b" ")
    words[draw.randrange(len(words))] = draw.choice(WORDS).encode()
    lines[place] = b" ".join(words) if draw.random() < 0.7 else b""
    return b"".join(lines)


def read_video(contents: bytes, folder: Path) -> None:
    """Pictures, ten per second, and sound that runs beside them; a second reading gives the same."""
    clip, again = (decode.decode(contents, needs="video", size=SIZE) for _ in range(2))
    assert clip.frames.shape[1:] == (SIZE, decode.width(SIZE), 3) and clip.frames.dtype == np.uint8
    assert 0 < len(clip.frames) <= decode.LONGEST * decode.RATE
    assert len(clip.mel) in (0, decode.ROWS_PER_FRAME * len(clip.frames))
    _check_sound(clip)
    np.testing.assert_array_equal(clip.frames, again.frames)
    np.testing.assert_array_equal(clip.mel, again.mel)


def read_sound(contents: bytes, folder: Path) -> None:
    """Sound alone; of a plain WAV the samples are those that the standard library reads."""
    clip, track = decode.decode(contents, needs="audio", size=SIZE), decode.read_sound(contents)
    assert len(clip.frames) == 0 and len(clip.mel) % decode.ROWS_PER_FRAME == 0
    _check_sound(clip)
    assert np.isfinite(track.samples).all()
    try:
        with wave.open(io.BytesIO(contents)) as file:
            rate, channels, count = file.getframerate(), file.getnchannels(), file.getnframes()
            whole = file.getsampwidth() == 2 and len(contents) >= 8 + int.from_bytes(contents[4:8], "little")
            stated = np.frombuffer(file.readframes(count), "<i2") if whole and count else None
    except (wave.Error, EOFError, ValueError):
        return
    if stated is not None:
        samples = stated[: len(stated) // channels * channels].reshape(-1, channels).mean(axis=1) / 2**15
        assert (track.rate, track.start) == (rate, 0) and abs(len(samples) - len(track.samples)) <= 1
        shared = min(len(samples), len(track.samples))
        np.testing.assert_allclose(track.samples[:shared], samples[:shared], atol=1e-6)


def _check_sound(clip: decode.Clip) -> None:
    assert clip.mel.shape[1] == decode.BANDS and clip.mel.dtype == np.float32 and np.isfinite(clip.mel).all()
    assert (clip.mel >= np.float32(math.log(decode.FLOOR)) - 1e-4).all(), "mel lies below silence"


def read_ntu(contents: bytes, folder: Path) -> None:
    """A folder with this one file in it, prepared in every pipeline."""
    path = folder / "data" / "ntu" / "nturgb+d_skeletons" / f"{NTU_NAME}.skeleton"
    path.parent.mkdir(parents=True)
    path.write_bytes(contents)
    for pipeline in ntu.PIPELINES:
        prepared = ntu.source(pipeline=pipeline, subset=True).prepare()
        assert prepared.names == [NTU_NAME] and len(prepared.arrays["frames"])
        assert np.isfinite(prepared.arrays["frames"]).all(), f"frames of {pipeline} are not finite"
    found, stated = ntu.parse(contents), ntu_files.slow_read(contents)
    numbers = list(dict.fromkeys(number for number, _, _ in stated))
    assert found.frame.tolist() == [frame for _, frame, _ in stated], "frames of bodies"
    assert found.body.tolist() == [numbers.index(number) for number, _, _ in stated], "ids of bodies"
    np.testing.assert_array_equal(found.joints, np.array([joints for *_, joints in stated]).reshape(-1, 25, 3))


@functools.cache
def pixels(number: int) -> np.ndarray:
    """Noise, (24, 32, 3) uint8."""
    return np.random.default_rng(number).integers(0, 256, (24, 32, 3), dtype=np.uint8)


def read_picture(contents: bytes, folder: Path) -> None:
    """One picture; a checksum guards the pixels of a PNG."""
    (folder / "picture").write_bytes(contents)
    found = np.asarray(read_rgb(folder / "picture"))
    assert found.dtype == np.uint8 and found.ndim == 3 and found.shape[2] == 3 and found.size
    if contents.startswith(b"\x89PNG"):
        assert found.tobytes() in [pixels(number).tobytes() for number in range(2)]


@functools.cache
def with_sound(kind: str, count: int, rate: int = 16_000, **options: object) -> bytes:
    """A recording of so many grey pictures, 25 per second, with a tone beside them."""
    pictures = [made_clips.grey(40 + 5 * number) for number in range(count)]
    times = [Fraction(number, 25) for number in range(count)]
    return made_clips.write(kind, pictures, times, made_clips.tone(count / 25, rate), sampling=rate, **options)


@functools.cache
def floats() -> bytes:
    """A WAV of 32-bit floats, in which NaN and huge samples can stand."""
    return made_clips.write("wav", sound=made_clips.tone(0.3), sound_codec="pcm_f32le")


KINDS = {
    "mp4": Kind(lambda: [made_clips.mp4_with_sound(), made_clips.mp4_with_sound(codec="mpeg4")], read_video),
    "avi": Kind(lambda: [made_clips.silent_avi(), with_sound("avi", 12, base=Fraction(1, 25))], read_video),
    "matroska": Kind(lambda: [with_sound("matroska", 8, 48_000, codec="libvpx-vp9", sound_codec="libopus")],
                     read_video),
    "wav": Kind(lambda: [made_clips.wav(), made_clips.wav(0.3, 44_100, 2), floats()], read_sound),
    "ogg": Kind(lambda: [made_clips.ogg()], read_sound),
    "ntu skeleton": Kind(lambda: [*map(ntu_files.text, (ntu_files.ONE, ntu_files.TWO, ntu_files.COMING))], read_ntu,
                         NTU_NAME, text=True),
    "png": Kind(lambda: [png(pixels(number)) for number in range(2)], read_picture, "picture"),
    "jpeg": Kind(lambda: [png(pixels(number), "jpeg") for number in range(2)], read_picture, "picture"),
}
