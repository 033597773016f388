"""The pictures of a clip: ten per second, by one rule, all of one size.

Rule: the clip begins when its first picture is shown, and its picture k is the one on the screen at k / 10 s, that is
the last whose presentation time is at or before then; there are as many as there are such times until the last one
ends. Of a recording with 25 per second these are 0, 2, 5, 7, 10, ...; of one with 5 per second each twice; of one with
varying rate whatever was on the screen. Pictures are never counted, and times are exact fractions.

Size: a picture is scaled, keeping its shape, until it covers a frame of `size` x (4/3 size) pixels, and its middle is
kept. Of the 4:3 recordings of UCF101 and HMDB51 nothing is lost, of 16:9 an eighth at each side. With the default of
128 a training crop of 112 x 112 has room to move, and ten seconds take 6.5 MB; a crop of 224 wants 256, four times as
much.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from repro.audiovisual import media

RATE = 10                     # pictures per second
SIZE = 128                    # height of a picture in pixels
SIZES = (8, 512)              # the least and the largest that may be asked for
ROOM = 8, 7                   # height of stored pictures by side of a crop, as 128 by 112
LARGEST_CROP = SIZES[1] * ROOM[1] // ROOM[0]
LARGEST = 2**25               # pixels, 8192 x 4096; of a picture, and of one scaled until it covers a frame
OUT_OF_ORDER = 4              # pictures; where some encoders of MPEG-4 exchange time stamps, they do so by one

Picture = TypeVar("Picture")


@dataclass(frozen=True, eq=False)
class Pictures:
    """The pictures of a clip.

    Attributes:
        frames: (F, size, 4/3 size, 3) uint8; red, green, blue.
        start: presentation time of the first picture, in seconds on the clock that the sound shares.
        end: when the last one ends.
        count: pictures that were decoded.
    """

    frames: np.ndarray
    start: Fraction
    end: Fraction
    count: int


def width(size: int) -> int:
    """Pixels across of a picture `size` pixels high."""
    return size * 4 // 3


def due(seconds: Fraction) -> int:
    """How many of the times 0, 1/10, 2/10, ... lie before `seconds`; 0 for a negative one."""
    return max(0, math.ceil(seconds * RATE))


def read(contents: bytes, size: int) -> Pictures:
    """Decode the pictures of a file.

    Raises:
        ValueError: if there are none, one of them is damaged, or the file is no clip.
    """
    with media.opened(contents) as container:
        timed = in_order(_timed(container))
        frames, start, end, count = shown(timed, _fitter(size))
    if not frames:
        raise ValueError("holds no pictures that can be decoded; truncated?")
    return Pictures(np.stack(frames), start, end, count)


def shown(
    timed: Iterable[tuple[Fraction, Fraction, Picture]], convert: Callable[[Picture], Any]
) -> tuple[list, Fraction, Fraction, int]:
    """Choose pictures by the rule above.

    Args:
        timed: presentation time and duration in seconds of each picture, and the picture; times do not fall.
        convert: applied to those that are chosen, once each.

    Returns:
        the converted pictures, one per tenth of a second; the time of the first, the end of the last, their number.

    Raises:
        ValueError: if they last longer than a clip may.
    """
    chosen, start, end, count, last = [], Fraction(0), Fraction(0), 0, None

    def until(time: Fraction) -> None:
        media.refuse_long(time - start)
        missing = due(time - start) - len(chosen)
        if missing > 0:
            chosen.extend([convert(last)] * missing)

    for time, duration, picture in timed:
        if count == 0:
            start = time
        else:
            until(time)
        end, last, count = time + duration, picture, count + 1
    if count:
        until(end)
    return chosen, start, end, count


def in_order(timed: Iterable[tuple[Fraction, Fraction, Picture]]) -> Iterator[tuple[Fraction, Fraction, Picture]]:
    """Give the k-th picture the k-th time.

    A decoder gives pictures in the order in which they are shown, but in AVI files with packed B-frames, such as many
    of UCF101, their time stamps come as 1, 3, 2, 4, 6, 5. Both are right but for which belongs to which.
    """
    times: list[Fraction] = []
    waiting: list[tuple[Fraction, Picture]] = []
    for time, duration, picture in timed:
        heapq.heappush(times, time)
        waiting.append((duration, picture))
        if len(waiting) > OUT_OF_ORDER:
            yield heapq.heappop(times), *waiting.pop(0)
    for duration, picture in waiting:
        yield heapq.heappop(times), duration, picture


def _timed(container: Any) -> Iterator[tuple[Fraction, Fraction, Any]]:
    """(time, duration, frame) of all pictures as they are decoded."""
    for frame in media.decoded(container, "video"):
        yield frame.pts * frame.time_base, _duration(frame, container.streams.video[0]), frame


def _duration(frame: Any, stream: Any) -> Fraction:
    """How long a picture is shown in seconds, where nothing follows it."""
    if frame.duration:
        return frame.duration * frame.time_base
    return 1 / Fraction(stream.average_rate) if stream.average_rate else Fraction(1, RATE)


def _fitter(size: int) -> Callable[[Any], np.ndarray]:
    """A function that makes (size, 4/3 size, 3) uint8 of a decoded frame."""
    from av.video.reformatter import Interpolation, VideoReformatter

    scaler = VideoReformatter()  # one for all: a new one per frame takes three times as long
    exact = Interpolation.AREA | Interpolation.ACCURATE_RND | Interpolation.BITEXACT  # the same on every processor
    high, wide = size, width(size)

    def fit(frame: Any) -> np.ndarray:
        scale = max(Fraction(high, frame.height), Fraction(wide, frame.width))
        height, across = max(high, round(frame.height * scale)), max(wide, round(frame.width * scale))
        if max(frame.height * frame.width, height * across) > LARGEST:
            raise ValueError(f"its pictures are {frame.width} x {frame.height}, at most {LARGEST:,} pixels are read")
        scaled = scaler.reformat(frame, across, height, "rgb24", interpolation=exact, threads=1).to_ndarray()
        top, left = (height - high) // 2, (across - wide) // 2
        return scaled[top : top + high, left : left + wide]

    return fit
