"""One file as a clip: its pictures, its sound at the same times, and what is odd about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

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


def decode(contents: bytes, about: Mapping[str, Any], *, needs: str, size: int, listed: float) -> Clip:
    """Decode a file.

    Args:
        contents: of the file.
        about: what it says about itself, see `media.describe`.
        needs: "video", with sound if there is any, or "audio" alone.
        size: of the pictures.
        listed: seconds that the data set's lists say it lasts, NaN if they do not.

    Raises:
        Unusable: if it is truncated, damaged, without what it needs, or no clip.
    """
    media.refuse_cut(contents)
    track = sound.read(contents)
    if needs == "video":
        pictures = video.read(contents, size)
        frames, start, end = pictures.frames, pictures.start, pictures.end
        count = len(frames)
        _check_count(pictures, about)
    elif track is None:
        raise media.Unusable("holds no sound that can be decoded; truncated?")
    else:
        frames, start, end = np.empty((0, size, video.width(size), 3), dtype=np.uint8), track.start, track.end
        count = video.due(end - start)
    ends = [(start, end)] + ([(track.start, track.end)] if track else [])
    lasts = float(max(end for _, end in ends) - min(start for start, _ in ends))
    if about["seconds"] is not None and about["seconds"] - lasts > TOLERANCE:
        raise media.Unusable(f"truncated: lasts {lasts:.2f} s, announces {about['seconds']:.2f} s")
    heard = track is not None and min(end, track.end) > max(start, track.start)
    mel = sound.log_mel(sound.aligned(track, start, count) if heard else np.empty(0, dtype=np.float32))
    notes = _about_sound(track, heard, start, end) + _about_length(count, float(end - start), listed)
    return Clip(frames, mel, tuple(notes))


def _check_count(pictures: video.Pictures, about: Mapping[str, Any]) -> None:
    """Raise Unusable if pictures are lost on the way. AVI alone: MP4 also counts those that an edit hides."""
    announced = about["video"]["frames"] if about["kind"] == "avi" else 0
    if (announced - pictures.count) * (pictures.end - pictures.start) > TOLERANCE * pictures.count:
        raise media.Unusable(f"damaged: {pictures.count:,} of {announced:,} pictures can be decoded")


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


def _about_length(count: int, lasts: float, listed: float) -> list[str]:
    """Notes on clips shorter than a view, or of another length than the lists say."""
    notes = [f"{count} frames, a view has {VIEW}"] if count < VIEW else []
    if abs(lasts - listed) > TOLERANCE:
        notes.append(f"lasts {lasts:.2f} s, {listed:.2f} s are listed")
    return notes
