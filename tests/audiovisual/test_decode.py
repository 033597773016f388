"""Recordings: the rule of pictures, the sound beside them, and files that are cut, damaged or odd."""

import functools
import math
import tempfile
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest
from made_clips import grey, ogg, silent_avi, tone, wav, write

from repro.audiovisual import decode

COLOUR = (200, 80, 0)         # red, green, blue
NOISE = np.random.default_rng(0).integers(0, 256, (50, 48, 64, 3), dtype=np.uint8)


def decoded(contents, needs="video"):
    return decode.decode(contents, needs=needs, size=24)


def steady(rate, count, start=Fraction(0)):
    return [start + number / Fraction(rate) for number in range(count)], 1 / Fraction(rate)


def varying(seed, count=40):
    steps = np.random.default_rng(seed).integers(1, 12, count)
    return [Fraction(int(place), 60) for place in np.cumsum(steps)], Fraction(int(steps[0]), 60)


def chosen(times, last):
    """Numbers of the pictures the rule chooses by its text: for every tenth of a second the last one until then."""
    start, end = times[0], times[-1] + last
    tenths = [Fraction(k, 10) for k in range(1300) if Fraction(k, 10) < end - start]
    return [max(number for number, time in enumerate(times) if time - start <= tenth) for tenth in tenths]


# Pictures


@pytest.fixture
def played(monkeypatch):
    """Pictures of a recording of frames with these times, of which the k-th has the level k; their start and end."""
    def play(times, last):
        base = Fraction(1, math.lcm(*(time.denominator for time in (*times, last))))
        frames = [av.VideoFrame.from_ndarray(grey(number), format="rgb24") for number in range(len(times))]
        for frame, time, following in zip(frames, times, [*times[1:], times[-1] + last], strict=True):
            frame.time_base, frame.pts, frame.duration = base, int(time / base), int((following - time) / base)
        monkeypatch.setattr(decode, "_decoded", lambda container, kind: iter(frames))
        return decode.read_pictures(silent_avi(), 24)

    return play


@pytest.mark.parametrize(("times", "last"), [
    steady(25, 1), steady(25, 30, Fraction(7, 3)), steady(Fraction(30_000, 1001), 90), steady(10, 12), steady(5, 9),
    steady(Fraction(1, 2), 2), steady(240, 100), varying(0), varying(1), ([Fraction(0)], Fraction(1, 25)),
    ([Fraction(0), Fraction(0), Fraction(1, 10)], Fraction(1, 10)),
])
def test_the_picture_on_the_screen_at_every_tenth_of_a_second(played, times, last):
    pictures, *others = played(times, last)
    assert pictures[:, 0, 0, 0].tolist() == chosen(times, last) and others == [times[0], times[-1] + last]


@pytest.mark.parametrize(("times", "last"), [([0, 10**6], Fraction(1, 10)), ([0], Fraction(121))])
def test_what_lasts_too_long_is_refused_before_it_is_in_memory(played, times, last):
    with pytest.raises(ValueError, match=r"lasts (1,000,000|121) s, a clip at most 120; cut it to its segment"):
        played([Fraction(time) for time in times], last)


def test_time_stamps_that_were_exchanged_are_put_in_order():
    times = [1, 3, 2, 4, 6, 5, 7, 8, 12, 9, 10, 11]
    for count in (1, 3, 12):
        frames = [SimpleNamespace(pts=time, picture=number) for number, time in enumerate(times[:count])]
        ordered = [(frame.pts, frame.picture) for frame in decode.in_order(frames)]
        assert ordered == [(time, number) for number, time in enumerate(sorted(times[:count]))]


@pytest.mark.parametrize(("rate", "kind", "codec"), [
    (Fraction(25), "avi", "mpeg4"), (Fraction(30_000, 1001), "mp4", "libx264"), (Fraction(10), "mp4", "mpeg4"),
    (Fraction(5), "matroska", "ffv1"), (None, "mp4", "mpeg4"),
])
def test_made_files_of_several_rates(rate, kind, codec):
    times, last = steady(rate, 16) if rate else varying(3, 16)
    base = 1 / rate if kind == "avi" else Fraction(1, 30_000)
    contents = write(kind, [grey(30 + 12 * n) for n in range(16)], times, codec=codec, rate=rate or 25, base=base)
    frames, start, end = decode.read_pictures(contents, 24)
    levels = [30 + 12 * n for n in chosen(times, last if rate else end - times[-1])]
    np.testing.assert_allclose(frames, np.array(levels)[:, None, None, None] + np.zeros((24, 32, 3)), atol=6)
    assert frames.dtype == np.uint8 and (rate or start == times[0])


@pytest.mark.parametrize(("height", "width", "edges"), [
    (24, 96, COLOUR),         # wide: its white edges, a quarter at each side, are cut
    (48, 32, 255),            # tall: cut above and below
])
def test_pictures_cover_the_frame_and_keep_their_middle(height, width, edges):
    picture = np.full((height, width, 3), COLOUR, dtype=np.uint8)
    picture[:, : width // 4] = picture[:, -(width // 4) :] = 255
    frames, *_ = decode.read_pictures(write("matroska", [picture], [0], codec="ffv1"), 12)
    assert frames.shape[1:] == (12, 16, 3)
    for columns, expected in (([0, -1], edges), ([7, 8], COLOUR)):
        np.testing.assert_allclose(frames[:, :, columns], np.broadcast_to(expected, (len(frames), 12, 2, 3)), atol=2)


# Sound


def test_channels_are_averaged_whatever_the_format():
    left = tone(0.2)[0]
    for codec in ("pcm_s16le", "pcm_f32le", "pcm_s32le"):
        for right, factor in ((-left, 0), (left, 1), (np.zeros_like(left), 0.5)):
            track = decode.read_sound(write("wav", sound=np.stack([left, right]), sound_codec=codec))
            np.testing.assert_allclose(track.samples, factor * left, atol=1e-4)
            assert (track.rate, track.start, track.end) == (16_000, 0, Fraction(1, 5))
    assert decode.read_sound(silent_avi()) is None


def with_gap(samples, at, gap):
    """The sound of a file whose time stamps jump by `gap` samples after `at` of them."""
    return decode.read_sound(write("matroska", sound=samples[None], sound_gap=(at, gap)))


def test_a_gap_is_silent():
    whole = tone(0.3)[0]
    samples = with_gap(whole, at=2048, gap=8000).samples
    np.testing.assert_allclose(samples, np.concatenate([whole[:2048], np.zeros(8000), whole[2048:]]), atol=1e-4)
    with pytest.raises(ValueError, match="a clip at most 120"):
        with_gap(whole, at=1024, gap=16_000 * 130)


@pytest.mark.parametrize("start", [Fraction(text) for text in ("0", "1/5", "-1/4", "3", "-3", "1/7")])
@pytest.mark.parametrize("frames", [1, 4, 15])
def test_sound_is_cut_and_padded_to_the_time_of_the_pictures(start, frames):
    samples = np.arange(1, 16_001, dtype=np.float32)  # one second from t = 1/2; at -3 and 3 there is silence
    track = decode.Track(samples, 16_000, Fraction(1, 2))
    first = round((start - track.start) * 16_000)
    expected = [samples[place] if 0 <= (place := first + n) < 16_000 else 0 for n in range(1600 * frames)]
    np.testing.assert_array_equal(decode.aligned(track, start, frames), np.array(expected, dtype=np.float32))


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_another_sampling_rate_keeps_pitch_and_time(rate):
    def wave(times):
        return (np.sin(2 * np.pi * 500 * times) * np.exp(-(((times - 0.5) / 0.05) ** 2))).astype(np.float32)

    found = decode.aligned(decode.Track(wave(np.arange(rate) / rate), rate, Fraction(0)), Fraction(0), 10)
    np.testing.assert_allclose(found, wave(np.arange(16_000) / 16_000), atol=1e-4)


def test_mel_rows_against_a_slow_sum():
    from librosa.filters import mel

    samples = np.random.default_rng(0).normal(size=3200).astype(np.float32) * 0.1
    rows = decode.log_mel(samples)
    filters, hann = mel(sr=16_000, n_fft=1024, n_mels=80), 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    padded = np.pad(samples.astype(np.float64), 512)
    power = [filters @ np.abs(np.fft.rfft(padded[160 * row : 160 * row + 1024] * hann)) ** 2 for row in range(20)]
    np.testing.assert_allclose(rows, np.log(1e-6 + np.array(power)), rtol=1e-3, atol=1e-4)
    assert rows.dtype == np.float32 and rows.flags.c_contiguous
    np.testing.assert_allclose(decode.log_mel(np.zeros(1600, dtype=np.float32)), math.log(1e-6), rtol=1e-6)
    assert decode.log_mel(np.empty(0, dtype=np.float32)).shape == (0, 80)


@pytest.mark.parametrize(("pictures_start", "sound_start"), [(0.0, 0.0), (0.0, 0.3), (0.3, 0.0), (0.5, 0.2)])
def test_a_clip_has_its_sound_at_the_time_of_its_pictures(pictures_start, sound_start):
    """A tone that sets in half a second after the sound, which is silent before."""
    samples = tone(1.5)
    samples[:, :8000] = 0
    times = [Fraction(round(pictures_start * 100), 100) + Fraction(n, 25) for n in range(30)]
    clip = decoded(write("matroska", [grey(100)] * 30, times, samples, codec="ffv1", base=Fraction(1, 1000),
                         sound_start=sound_start))
    assert len(clip.mel) == 10 * len(clip.frames) == 120
    loud = clip.mel.max(1) > -3
    assert abs(loud.argmax() - 100 * (sound_start + 0.5 - pictures_start)) <= 4  # rows; a window has six


# Files


@functools.cache
def noisy(kind):
    """A file whose pictures take many bytes."""
    times = [Fraction(n, 25) for n in range(50)]
    if kind == "mp4, list first":  # so that it opens when it is cut
        with tempfile.TemporaryDirectory() as folder:
            return write("mp4", NOISE, times, base=Fraction(1, 25), path=Path(folder, "clip.mp4"),
                         options={"movflags": "faststart"})
    codec = "libx264" if kind == "mp4" else "mpeg4"
    return write(kind, NOISE, times, codec=codec, base=Fraction(1, 25) if kind == "avi" else Fraction(1, 30_000))


def loud(value, channels):
    """The sound of a file with one sample of this value."""
    samples = tone(0.2, channels=channels)
    samples[0, 1500] = value
    return write("wav", sound=samples, sound_codec="pcm_f32le")


def flipped(whole):
    contents = bytearray(whole)
    for place in np.random.default_rng(0).integers(10_000, len(whole) - 2000, 30):
        contents[place] ^= 255
    return bytes(contents)


OTHER = [b"", bytes(100), b"<html>not found</html>", b"RIFF\x10\0\0\0AVI ", b"\0\0\0\x18ftypisom" + bytes(20), wav(),
         b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nother.ts\n", write("nut", [grey(9)], [0], codec="ffv1")]
REFUSED = [  # what is made, and what is said of it
    *((lambda contents=contents: contents, "video", "no AVI, MP4, Matroska, WAV or Ogg file|holds no pict|truncated")
      for contents in OTHER),
    (silent_avi, "audio", "holds no sound that can be decoded"),
    *((functools.partial(loud, value, channels), "audio", "samples that are not finite or above 100; full scale is 1")
      for value in (np.nan, -np.inf, 32_767) for channels in (1, 2)),
    *((lambda rate=rate: write("wav", sound=np.zeros((1, 800), np.float32), sampling=rate), "audio",
       f"its sampling rate is {rate:,} Hz, from 1,000 to 384,000 are read") for rate in (999, 400_000)),
    (lambda: flipped(noisy("avi")), "video", "damaged video at"),
    *((lambda kind=kind, share=share: shortened(noisy(kind), share), "video", "truncated|damaged|holds no")
      for kind in ("avi", "mp4", "mp4, list first", "matroska") for share in (0.97, 0.5, 0.01)
      if (kind, share) != ("matroska", 0.97)),
    *((lambda share=share: shortened(wav(), share), "audio", "truncated|damaged|holds no")
      for share in (0.97, 0.5, 0.01)),
    (lambda: shortened(ogg(2.5), 0.01), "audio", "truncated|damaged|holds no"),
]


def shortened(whole, share):
    return whole[: int(len(whole) * share)]


@pytest.mark.parametrize(("make", "needs", "message"), REFUSED)
def test_what_is_no_sound_recording_is_refused(make, needs, message):
    with pytest.raises(ValueError, match=message):
        decoded(make(), needs)


@pytest.mark.parametrize("kind", ["avi", "mp4", "mp4, list first", "matroska"])
def test_whole_files_of_these_kinds_are_read(kind):
    assert len(decoded(noisy(kind)).frames) == 20


def test_of_an_unknown_size_nothing_is_said():
    for size in (b"\0\0\0\0", b"\xff\xff\xff\xff"):
        assert len(decoded(wav()[:4] + size + wav()[8:-100], "audio").mel) == 40


def test_titles_in_another_encoding_are_no_obstacle():
    titled = write("matroska", [grey(50)] * 2, [0, Fraction(1, 10)], codec="ffv1", title="caf\u00e9 noir")
    damaged = titled.replace("caf\u00e9".encode(), b"caf\xe9\xe9")
    assert damaged != titled and len(decoded(damaged).frames) == len(decoded(titled).frames) > 0


@pytest.mark.parametrize(("seconds", "pictures", "start", "notes"), [
    (1.8, 45, 0.0, ()), (2.6, 45, 0.0, ()), (0.4, 10, 0.0, ("4 frames, a view has 16",)), (0.5, 45, 5.0, ("no sound",)),
])
def test_what_is_odd_is_noted(seconds, pictures, start, notes):
    contents = write("matroska", [grey(60)] * pictures, [Fraction(n, 25) for n in range(pictures)], tone(seconds),
                     codec="ffv1", base=Fraction(1, 1000), sound_start=start)
    assert decoded(contents).notes == notes
