"""Small files of video and sound, written with PyAV."""

import functools
import io
from fractions import Fraction

import av
import numpy as np


def grey(level, width=32, height=24):
    return np.full((height, width, 3), level, dtype=np.uint8)


def tone(seconds, rate=16_000, channels=1, frequency=440.0, loudness=0.5):
    """(channels, samples) float32."""
    wave = loudness * np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)
    return np.tile(wave.astype(np.float32), (channels, 1))


def write(kind, pictures=(), times=(), sound=None, sampling=16_000, codec="mpeg4", sound_codec="pcm_s16le",
          sound_start=0.0, sound_gap=(0, 0), base=Fraction(1, 30_000), rate=25, path=None, options=None, title=""):
    """The contents of a file.

    Args:
        kind: "avi", "mp4", "matroska", "wav" or "ogg".
        pictures: (H, W, 3) uint8 each.
        times: of the pictures, in seconds; of AVI only their number counts, 25 per second unless `base` is another.
        sound: (channels, samples) float32, or None.
        sound_start: seconds.
        sound_gap: samples after which time stamps jump by so many.
        base: unit of time of the pictures.
        rate: pictures per second that the file declares.
        path: where to write it, for `options` that have the muxer read the file again.
    """
    target = path or io.BytesIO()
    with av.open(f"{path}" if path else target, "w", format=kind, options=options or {}) as container:
        container.metadata.update({"title": title} if title else {})
        video = audio = None
        if len(pictures):
            video = container.add_stream(codec, rate=1 / base if kind == "avi" else Fraction(rate))
            video.height, video.width = pictures[0].shape[:2]
            video.pix_fmt = "bgr0" if codec == "ffv1" else "yuv420p"
            video.codec_context.time_base = base
            video.codec_context.gop_size = 4
        if sound is not None:
            layout = {1: "mono", 2: "stereo"}[len(sound)]
            audio = container.add_stream(sound_codec, rate=sampling, layout=layout)
        if video is not None:
            for picture, time in zip(pictures, times, strict=True):
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                frame.pts, frame.time_base = round(Fraction(time) / base), base
                container.mux(video.encode(frame))
        if audio is not None:
            for start in range(0, sound.shape[1], 1024):
                part = np.ascontiguousarray(sound[:, start : start + 1024])
                frame = av.AudioFrame.from_ndarray(part, format="fltp", layout=layout)
                frame.sample_rate, frame.time_base = sampling, Fraction(1, sampling)
                frame.pts = start + round(sound_start * sampling) + (sound_gap[1] if start >= sound_gap[0] else 0)
                container.mux(audio.encode(frame))
        for stream in (video, audio):
            if stream is not None:
                container.mux(stream.encode(None))
    return path.read_bytes() if path else target.getvalue()


@functools.cache
def silent_avi(level=100, pictures=8):
    """An AVI of 25 pictures per second without sound; the brightness of picture j is level + j."""
    return write("avi", [grey(level + number) for number in range(pictures)],
                 [Fraction(number, 25) for number in range(pictures)], base=Fraction(1, 25))


@functools.cache
def mp4_with_sound(seconds=0.4, pictures=None, codec="libx264"):
    """An MP4 of 25 pictures per second with a tone of `seconds`."""
    count = round(25 * seconds) if pictures is None else pictures
    return write("mp4", [grey(60 + 2 * number) for number in range(count)],
                 [Fraction(number, 25) for number in range(count)], tone(seconds), codec=codec, sound_codec="aac",
                 base=Fraction(1, 25))


@functools.cache
def wav(seconds=0.4, sampling=16_000, channels=1):
    return write("wav", sound=tone(seconds, sampling, channels), sampling=sampling)


@functools.cache
def ogg(seconds=0.4):
    return write("ogg", sound=tone(seconds, 48_000), sampling=48_000, sound_codec="libopus")
