"""A recording as a clip: its pictures, ten per second, its sound at the same times, and what is odd about it.

*Which files.* The contents tell the kind, never the name, and no other demuxer of FFmpeg is tried: a playlist that
calls itself `.mp4` cannot have other files or addresses opened.

*Which pictures.* The clip begins when its first picture is shown, and its picture k is the one on the screen at k / 10
s, that is the last whose presentation time is at or before then, until the last one ends. Of a recording with 25 per
second these are 0, 2, 5, 7, 10, ...; of one with 5 each twice. Times are exact fractions.

*Their size.* A picture is scaled, keeping its shape, until it covers a frame of `size` x (4/3 size) pixels, and its
middle is kept: of 16:9 recordings an eighth at each side is lost. Ten seconds of the default of 128 take 6.5 MB.

*Sound.* The mean of the channels, resampled to 16 kHz by FFmpeg. Row r is centred at r / 100 s of the clip: librosa's
`melspectrogram` (power, 80 bands up to 8 kHz, Hann windows of 64 ms every 10 ms, zeros beyond the ends), then the
natural logarithm of 1e-6 + x. Where pictures have no sound there is silence, ln 1e-6. Source: CM-ACC prints LibROSA and
80 bands; sampling rate, window, hop and logarithm are assumed.
"""

import contextlib
import heapq
import io
import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

LONGEST = 120                 # seconds of a clip; a file that lasts longer was not cut to one
KINDS = "avi,mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,wav,ogg"    # FFmpeg's names of what is read
EMPTY_RIFF = (0, 2**32 - 1)   # what is written for a size by programs that cannot go back to correct it
VIEW = 16                     # frames of the paper's views; a shorter clip repeats, which is noted
TOLERANCE = 0.5               # seconds by which a file may last less than it announces

RATE = 10                     # pictures per second
SIZE = 128                    # height of a picture in pixels
SIZES = (8, 512)              # the least and the largest that may be asked for
ROOM = 8, 7                   # height of stored pictures by side of a crop, as 128 by 112
LARGEST_CROP = SIZES[1] * ROOM[1] // ROOM[0]
OUT_OF_ORDER = 4              # pictures; where some encoders of MPEG-4 exchange time stamps, they do so by one

SAMPLING = 16_000             # Hz
SAMPLINGS = 1000, 384_000     # Hz; the least and the largest of a file
HOP = 160                     # samples from row to row
WINDOW = 1024                 # samples
BANDS = 80
FLOOR = 1e-6
SAMPLES_PER_FRAME = SAMPLING // RATE
ROWS_PER_FRAME = SAMPLES_PER_FRAME // HOP
LOUDEST = 100                 # times full scale
JUMP = 0.05                   # seconds; a time stamp off by less is rounding, and the sound goes on without a gap


class Clip(NamedTuple):
    """A file after decoding."""

    frames: np.ndarray            # (F, size, 4/3 size, 3) uint8, red, green, blue; F = 0 of a clip of sound alone
    mel: np.ndarray               # (10 * F, 80) float32, or none; of sound alone as many as tenths of a second begin
    notes: tuple[str, ...]        # what is odd about it, in words


class Track(NamedTuple):
    """The sound of a file."""

    samples: np.ndarray           # (n,) float32, full scale from -1 to 1
    rate: int                     # per second
    start: Fraction               # seconds of the first one

    @property
    def end(self) -> Fraction:
        """When it ends, in seconds."""
        return self.start + Fraction(len(self.samples), self.rate)


def decode(contents: bytes, *, needs: str, size: int) -> Clip:
    """Decode the contents of a file that needs "video", with sound if there is any, or "audio" alone.

    Raises:
        ValueError: if it is truncated, damaged, without what it needs, or no clip.
    """
    announced = int.from_bytes(contents[4:8], "little") if contents[:4] == b"RIFF" else 0   # AVI and WAV
    if announced not in EMPTY_RIFF and announced + 8 > len(contents) + 1:  # some count a last byte of padding
        raise ValueError(f"truncated: {len(contents):,} of {announced + 8:,} bytes")
    with opened(contents) as container:
        seconds = (container.duration or 0) / 10**6
    track = read_sound(contents)
    if needs == "video":
        frames, start, end = read_pictures(contents, size)
        count = len(frames)
    elif track is None:
        raise ValueError("holds no sound that can be decoded; truncated?")
    else:
        frames, start, end = np.empty((0, size, width(size), 3), dtype=np.uint8), track.start, track.end
        count = math.ceil((end - start) * RATE)
    lasts = max(end, track.end) - min(start, track.start) if track else end - start
    if seconds - lasts > TOLERANCE:
        raise ValueError(f"truncated: lasts {float(lasts):.2f} s, announces {seconds:.2f} s")
    notes, samples = [], np.empty(0, dtype=np.float32)
    if track and min(end, track.end) > max(start, track.start):
        samples = aligned(track, start, count)
    else:
        notes.append("no sound")
    if count < VIEW:
        notes.append(f"{count} frames, a view has {VIEW}")
    return Clip(frames, log_mel(samples), tuple(notes))


@contextlib.contextmanager
def opened(contents: bytes) -> Iterator[Any]:
    """FFmpeg's view of a file, an `av.container.InputContainer`; ValueError for what it finds wrong in the block."""
    import av

    options = {"format_whitelist": KINDS}
    try:
        with av.open(io.BytesIO(contents), options=options, metadata_errors="replace") as container:  # of any encoding
            yield container
    except av.error.FFmpegError as error:
        raise ValueError(f"damaged, or no AVI, MP4, Matroska, WAV or Ogg file ({error.strerror})") from error


def _refuse_long(seconds: float | Fraction) -> None:
    if seconds > LONGEST:
        raise ValueError(f"lasts {float(seconds):,.0f} s, a clip at most {LONGEST}; cut it to its segment")


def _decoded(container: Any, kind: str) -> Iterator[Any]:
    """The frames of the first stream of "video" or "audio" for which there is a decoder; none without such a stream."""
    for stream in [stream for stream in getattr(container.streams, kind) if stream.codec_context is not None][:1]:
        stream.codec_context.thread_count = 1  # files are read side by side, in processes
        for frame in container.decode(stream):
            if frame.is_corrupt or frame.pts is None:
                raise ValueError(f"damaged {kind} at {float(frame.time or 0):.2f} s; truncated?")
            yield frame


# Pictures


def width(size: int) -> int:
    """Pixels across of a picture `size` pixels high."""
    return size * 4 // 3


def read_pictures(contents: bytes, size: int) -> tuple[np.ndarray, Fraction, Fraction]:
    """The pictures that the rule above chooses, (F, size, 4/3 size, 3) uint8; when the first is shown, the last ends.

    ValueError if there are none, one of them is damaged, or the file is no clip.
    """
    from av.video.reformatter import Interpolation, VideoReformatter

    exact = Interpolation.AREA | Interpolation.ACCURATE_RND | Interpolation.BITEXACT  # alike on every processor
    scaler = VideoReformatter()  # one for all: a new one per frame takes three times as long
    pictures: list[np.ndarray] = []
    start, end = None, Fraction(0)
    with opened(contents) as container:
        usual = 1 / Fraction(next((stream.average_rate for stream in container.streams.video), None) or RATE)
        for frame, following in pairwise(chain(in_order(_decoded(container, "video")), [None])):
            time, lasts = frame.pts * frame.time_base, frame.duration * frame.time_base or usual
            start = time if start is None else start
            end = following.pts * following.time_base if following else time + lasts
            _refuse_long(end - start)
            missing = math.ceil((end - start) * RATE) - len(pictures)
            if missing > 0:
                scale = max(Fraction(size, frame.height), Fraction(width(size), frame.width))
                high, wide = max(size, round(frame.height * scale)), max(width(size), round(frame.width * scale))
                scaled = scaler.reformat(frame, wide, high, "rgb24", interpolation=exact, threads=1).to_ndarray()
                top, left = (high - size) // 2, (wide - width(size)) // 2
                pictures += [scaled[top : top + size, left : left + width(size)]] * missing
    if start is None:
        raise ValueError("holds no pictures that can be decoded; truncated?")
    return np.stack(pictures), start, end


def in_order(frames: Iterable[Any]) -> Iterator[Any]:
    """Give the k-th picture the k-th time stamp.

    A decoder gives pictures in the order in which they are shown, but in AVI files with packed B-frames, such as many
    of UCF101, their time stamps come as 1, 3, 2, 4, 6, 5. Both are right but for which belongs to which.
    """
    times: list[int] = []
    waiting: list[Any] = []
    for frame in chain(frames, [None] * OUT_OF_ORDER):
        if frame:
            heapq.heappush(times, frame.pts)
        waiting.append(frame)
        if len(waiting) > OUT_OF_ORDER and waiting[0]:
            waiting[0].pts = heapq.heappop(times)
            yield waiting.pop(0)


# Sound


def read_sound(contents: bytes) -> Track | None:
    """Decode the sound of a file, the mean of its channels; None if it has none.

    Where time stamps jump ahead there is silence; where they jump back the later sound counts. ValueError if it is
    damaged, changes its form on the way, or the file is no clip.
    """
    import av

    blocks, rate, start, here, converter = [], 0, Fraction(0), 0, None
    with opened(contents) as container:
        for frame in _decoded(container, "audio"):
            if converter is None:  # of the form alone: as many channels and samples come out as go in
                rate, start = frame.sample_rate, frame.pts * frame.time_base
                if not SAMPLINGS[0] <= rate <= SAMPLINGS[1]:
                    raise ValueError(f"its sampling rate is {rate:,} Hz, from {SAMPLINGS[0]:,} to {SAMPLINGS[1]:,} are "
                                     "read")
                converter = av.AudioResampler(format="fltp", layout=frame.layout, rate=rate)
            stamped = round((frame.time - float(start)) * rate)
            if abs(stamped - here) > JUMP * rate:
                here = max(0, stamped)
            for part in converter.resample(frame):
                with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is found when all is read
                    blocks.append((here, part.to_ndarray().mean(axis=0)))
                here += part.samples
            _refuse_long(here / rate)
    if not any(len(block) for _, block in blocks):
        return None
    samples = np.zeros(max(place + len(block) for place, block in blocks), dtype=np.float32)
    for place, block in blocks:
        samples[place : place + len(block)] = block
    if not np.abs(samples).max() <= LOUDEST:  # or not a number
        raise ValueError(f"its sound has samples that are not finite or above {LOUDEST}; full scale is 1")
    return Track(samples, rate, start)


def aligned(track: Track, start: Fraction, frames: int) -> np.ndarray:
    """The sound of `frames` pictures from `start` on, (1600 * frames,) float32 at 16 kHz; what lacks is zero."""
    import av

    samples = np.zeros(math.ceil(Fraction(frames, RATE) * track.rate), dtype=np.float32)
    skipped = round((start - track.start) * track.rate)
    part = track.samples[max(0, skipped) : max(0, skipped + len(samples))]
    samples[max(0, -skipped) :][: len(part)] = part
    if track.rate != SAMPLING:  # time 0 stays where it is
        frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = track.rate, 0, Fraction(1, track.rate)
        resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLING)
        blocks = [block for given in (frame, None) for block in resampler.resample(given)]
        samples = np.concatenate([block.to_ndarray()[0] for block in blocks])[: frames * SAMPLES_PER_FRAME]
    return np.pad(samples, (0, frames * SAMPLES_PER_FRAME - len(samples)))


def log_mel(samples: np.ndarray) -> np.ndarray:
    """(10 * frames, 80) float32 of (1600 * frames,) samples at 16 kHz, in the natural logarithm of power."""
    if len(samples) < HOP:
        return np.empty((0, BANDS), dtype=np.float32)
    import librosa  # its first use takes seconds, 20 of them where nothing is compiled yet

    power = librosa.feature.melspectrogram(
        y=samples, sr=SAMPLING, n_fft=WINDOW, hop_length=HOP, n_mels=BANDS, pad_mode="constant"
    )
    return np.ascontiguousarray(np.log(FLOOR + power.T[: len(samples) // HOP]), dtype=np.float32)
