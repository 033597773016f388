"""The sound of a clip: one channel at 16 kHz, cut to the time of its pictures, as logarithms of mel bands.

The mean of the channels is resampled by FFmpeg. Row r of the result is centred at r / 100 s of the clip: librosa's
`melspectrogram` (power, 80 bands up to 8 kHz, Hann windows of 64 ms every 10 ms, zeros beyond the ends), then the
natural logarithm of 1e-6 + x. Ten rows go with each picture of the clip. Where pictures have no sound, for instance
because it starts later, there is silence, ln 1e-6.

Source: CM-ACC prints LibROSA and 80 bands; sampling rate, window, hop and logarithm are assumed.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from repro.audiovisual import media, video

SAMPLING = 16_000             # Hz
SAMPLINGS = 1000, 384_000    # Hz; the least and the largest of a file
HOP = 160                     # samples from row to row
WINDOW = 1024                 # samples
BANDS = 80
FLOOR = 1e-6
SAMPLES_PER_FRAME = SAMPLING // video.RATE
ROWS_PER_FRAME = SAMPLES_PER_FRAME // HOP
LOUDEST = 100                 # times full scale
JUMP = 0.05                   # seconds; a time stamp off by less is rounding, and the sound goes on without a gap


@dataclass(frozen=True, eq=False)
class Track:
    """The sound of a file.

    Attributes:
        samples: (n,) float32, the mean of its channels, full scale from -1 to 1.
        rate: samples per second.
        start: time of the first one, in seconds on the clock that the pictures share.
    """

    samples: np.ndarray
    rate: int
    start: Fraction

    @property
    def end(self) -> Fraction:
        """When it ends, in seconds."""
        return self.start + Fraction(len(self.samples), self.rate)


def read(contents: bytes) -> Track | None:
    """Decode the sound of a file; None if it has none.

    Where time stamps jump ahead there is silence; where they jump back the later sound counts.

    Raises:
        ValueError: if it is damaged, or the file is no clip.
    """
    blocks, rate, start, here = [], 0, Fraction(0), 0
    with media.opened(contents) as container:
        mean = _Mean()
        for frame in media.decoded(container, "audio"):
            if not blocks:
                rate, start = frame.sample_rate, frame.pts * frame.time_base
                if not SAMPLINGS[0] <= rate <= SAMPLINGS[1]:
                    raise ValueError(f"its sampling rate is {rate:,} Hz, from {SAMPLINGS[0]:,} to {SAMPLINGS[1]:,} are "
                                     "read")
            elif frame.sample_rate != rate:
                raise ValueError(f"its sampling rate changes from {rate:,} to {frame.sample_rate:,} Hz")
            given = round((frame.time - float(start)) * rate)
            if abs(given - here) > JUMP * rate:
                here = max(0, given)
            block = mean(frame)
            media.refuse_long((here + len(block)) / rate)
            blocks.append((here, block))
            here += len(block)
    if not any(len(block) for _, block in blocks):
        return None
    samples = np.zeros(max(place + len(block) for place, block in blocks), dtype=np.float32)
    for place, block in blocks:
        samples[place : place + len(block)] = block
    loud = np.flatnonzero(~(np.abs(samples) <= LOUDEST))  # or not a number
    if len(loud):
        at, found = loud[0] / rate, samples[loud[0]]
        raise ValueError(f"a sample of its sound, at {at:.2f} s, is {found:g}; full scale is 1")
    return Track(samples, rate, start)


def aligned(track: Track, start: Fraction, frames: int) -> np.ndarray:
    """The sound of `frames` pictures of a clip that begins at `start`: (1600 * frames,) float32 at 16 kHz.

    What comes before is cut, what lacks is zero.
    """
    wanted = math.ceil(Fraction(frames, video.RATE) * track.rate)
    window = np.zeros(wanted, dtype=np.float32)
    skipped = round((start - track.start) * track.rate)
    part = track.samples[max(0, skipped) : max(0, skipped + wanted)]
    window[max(0, -skipped) : max(0, -skipped) + len(part)] = part[: max(0, wanted + min(0, skipped))]
    found = _resampled(window, track.rate)[: frames * SAMPLES_PER_FRAME]
    return np.pad(found, (0, frames * SAMPLES_PER_FRAME - len(found)))


def log_mel(samples: np.ndarray) -> np.ndarray:
    """(10 * frames, 80) float32 of (1600 * frames,) samples at 16 kHz, in the natural logarithm of power."""
    rows = len(samples) // HOP
    if rows == 0:
        return np.empty((0, BANDS), dtype=np.float32)
    import librosa  # its first use takes seconds, 20 of them where nothing is compiled yet

    power = librosa.feature.melspectrogram(
        y=samples, sr=SAMPLING, n_fft=WINDOW, hop_length=HOP, n_mels=BANDS, pad_mode="constant"
    )
    return np.ascontiguousarray(np.log(FLOOR + power.T[:rows]), dtype=np.float32)


class _Mean:
    """The mean over the channels of decoded frames, whatever they are stored as: a function of a frame."""

    def __init__(self) -> None:
        self.converter: Any = None

    def __call__(self, frame: Any) -> np.ndarray:
        import av

        if self.converter is None:  # of the form alone: as many channels and samples come out as go in
            self.converter = av.AudioResampler(format="fltp", layout=frame.layout, rate=frame.sample_rate)
        try:
            parts = [part.to_ndarray() for part in self.converter.resample(frame)]
        except ValueError as error:
            raise ValueError("the channels or the format of its sound change on the way") from error
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is found when all is read
            return np.concatenate(parts, axis=1).mean(axis=0) if parts else np.empty(0, dtype=np.float32)


def _resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    """(n,) float32 at 16 kHz of samples at another rate; time 0 stays where it is."""
    import av

    if rate == SAMPLING or not len(samples):
        return samples
    frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
    frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
    resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLING)
    parts = [part.to_ndarray()[0] for given in (frame, None) for part in resampler.resample(given)]
    return np.concatenate(parts)
