"""One file as a clip: its pictures, its sound at the same times, and what is odd about it."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from repro.audiovisual import media, sound, video

VIEW = 16                     # frames of the paper's views; a shorter clip repeats, which is noted
TOLERANCE = 0.5               # seconds by which lengths may differ without a note


@dataclass(frozen=True, eq=False)
class Clip:
    """A file after decoding.

    Attributes:
        frames: (F, size, 4/3 size, 3) uint8, none of them of a clip of sound alone.
        mel: (10 * F, 80) float32, or none without sound; of a clip of sound alone one row per hundredth of a second,
            up to a whole tenth.
        notes: what is odd about it, in words.
    """

    frames: np.ndarray
    mel: np.ndarray
    notes: tuple[str, ...]


def decode(contents: bytes, *, needs: str, size: int, listed: float) -> Clip:
    """Decode a file.

    Args:
        contents: of the file.
        needs: "video", with sound if there is any, or "audio" alone.
        size: of the pictures.
        listed: seconds that the data set's lists say it lasts, NaN if they do not.

    Raises:
        ValueError: if it is truncated, damaged, without what it needs, or no clip.
    """
    media.refuse_cut(contents)
    seconds, announced = media.announced(contents)
    track = sound.read(contents)
    if needs == "video":
        pictures = video.read(contents, size)
        frames, start, end = pictures.frames, pictures.start, pictures.end
        count = len(frames)
        if (announced - pictures.count) * (end - start) > TOLERANCE * pictures.count:
            raise ValueError(f"damaged: {pictures.count:,} of {announced:,} pictures can be decoded")
    elif track is None:
        raise ValueError("holds no sound that can be decoded; truncated?")
    else:
        frames, start, end = np.empty((0, size, video.width(size), 3), dtype=np.uint8), track.start, track.end
        count = video.due(end - start)
    ends = [(start, end)] + ([(track.start, track.end)] if track else [])
    lasts = float(max(end for _, end in ends) - min(start for start, _ in ends))
    if seconds - lasts > TOLERANCE:
        raise ValueError(f"truncated: lasts {lasts:.2f} s, announces {seconds:.2f} s")
    heard = track is not None and min(end, track.end) > max(start, track.start)
    mel = sound.log_mel(sound.aligned(track, start, count) if heard else np.empty(0, dtype=np.float32))
    return Clip(frames, mel, (*_about_sound(track, heard, start, end), *_about_length(count, end - start, listed)))


def _about_sound(track: sound.Track | None, heard: bool, start: Fraction, end: Fraction) -> list[str]:
    """Notes on sound that is not there, or starts or ends at other times than the pictures."""
    if track is None:
        return ["no sound"]
    begins, stops = float(track.start - start), float(track.end - start)
    if not heard:
        return [f"no sound: it runs from {begins:.2f} to {stops:.2f} s, outside of its pictures"]
    if begins > TOLERANCE or abs(stops - float(end - start)) > TOLERANCE:
        return [f"sound from {max(0.0, begins):.2f} to {stops:.2f} s, pictures to {float(end - start):.2f} s"]
    return []


def _about_length(count: int, lasts: Fraction, listed: float) -> list[str]:
    """Notes on clips shorter than a view, or of another length than the lists say."""
    notes = [f"{count} frames, a view has {VIEW}"] if count < VIEW else []
    if abs(float(lasts) - listed) > TOLERANCE:
        notes.append(f"lasts {float(lasts):.2f} s, {listed:.2f} s are listed")
    return notes
