"""Recordings: MP4, AVI, Matroska, WAV and Ogg. FFmpeg decodes them, which may end the process."""

import functools
import io
import math
import wave
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from repro.audiovisual import decode
from tests.campaigns import mutations
from tests.campaigns.kinds import Kind
from tests.helpers import made_clips

SIZE = 24                     # pixels, of decoded pictures


def decoded(contents: bytes, needs: str) -> decode.Clip:
    """A file as preparation decodes it; whoever calls names it."""
    return decode.decode(contents, needs=needs, size=SIZE)


def read_video(contents: bytes, folder: Path) -> None:
    """Pictures, ten per second, and sound that runs beside them; a second reading gives the same."""
    clip = decoded(contents, "video")
    count = len(clip.frames)
    assert clip.frames.shape == (count, SIZE, decode.width(SIZE), 3) and clip.frames.dtype == np.uint8
    assert 0 < count <= decode.LONGEST * decode.RATE
    _check_sound(clip, decode.ROWS_PER_FRAME * count)
    again = decoded(contents, "video")
    np.testing.assert_array_equal(clip.frames, again.frames)
    np.testing.assert_array_equal(clip.mel, again.mel)


def read_sound(contents: bytes, folder: Path) -> None:
    """Sound alone; of plain WAV the samples are those that the standard library reads."""
    clip = decoded(contents, "audio")
    assert len(clip.frames) == 0
    _check_sound(clip, len(clip.mel))
    track = decode.read_sound(contents)
    assert np.isfinite(track.samples).all() and len(clip.mel) % decode.ROWS_PER_FRAME == 0
    stated = _stated_samples(contents)
    if stated is not None:
        samples, rate = stated
        assert track.rate == rate and track.start == Fraction(0)
        count = min(len(samples), len(track.samples))
        assert abs(len(samples) - len(track.samples)) <= 1, f"{len(track.samples)} of {len(samples)} samples"
        np.testing.assert_allclose(track.samples[:count], samples[:count], atol=1e-6)


def _check_sound(clip: decode.Clip, rows: int) -> None:
    assert clip.mel.shape in ((rows, decode.BANDS), (0, decode.BANDS)) and clip.mel.dtype == np.float32
    assert np.isfinite(clip.mel).all(), "mel is not finite"
    assert (clip.mel >= np.float32(math.log(decode.FLOOR)) - 1e-4).all(), "mel lies below silence"


def _stated_samples(contents: bytes) -> tuple[np.ndarray, int] | None:
    """The mean of the channels of a WAV of 16 bits, and its rate; None if it is no such file, or damaged."""
    try:
        with wave.open(io.BytesIO(contents)) as file:
            if file.getsampwidth() != 2 or len(contents) < 8 + int.from_bytes(contents[4:8], "little"):
                return None
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            samples = samples[: len(samples) // file.getnchannels() * file.getnchannels()]
            mean = (samples.reshape(-1, file.getnchannels()) / np.float32(2**15)).mean(axis=1)
            return (mean, file.getframerate()) if file.getnframes() else None
    except (wave.Error, EOFError, ValueError):
        return None


@functools.cache
def floats() -> bytes:
    """A WAV of 32-bit floats, in which NaN and huge samples can stand."""
    return made_clips.write("wav", sound=made_clips.tone(0.3), sound_codec="pcm_f32le")


@functools.cache
def with_sound(kind: str, count: int, rate: int = 16_000, **options: Any) -> bytes:
    """A file of so many grey pictures, 25 per second, with a tone beside them."""
    pictures = [made_clips.grey(40 + 5 * number) for number in range(count)]
    times = [Fraction(number, 25) for number in range(count)]
    return made_clips.write(kind, pictures, times, made_clips.tone(count / 25, rate), sampling=rate, **options)


KINDS = {
    "mp4": Kind(lambda: [made_clips.mp4_with_sound(), made_clips.mp4_with_sound(codec="mpeg4")], mutations.of_bytes,
                read_video),
    "avi": Kind(lambda: [made_clips.silent_avi(), with_sound("avi", 12, base=Fraction(1, 25))], mutations.of_bytes,
                read_video),
    "matroska": Kind(lambda: [with_sound("matroska", 8, 48_000, codec="libvpx-vp9", sound_codec="libopus")],
                     mutations.of_bytes, read_video),
    "wav": Kind(lambda: [made_clips.wav(), made_clips.wav(0.3, 44_100, 2), floats()], mutations.of_bytes, read_sound),
    "ogg": Kind(lambda: [made_clips.ogg()], mutations.of_bytes, read_sound),
}
