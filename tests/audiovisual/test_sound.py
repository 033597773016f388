"""Sound: decoded, laid beside pictures, and made into mel rows."""

import io
import math
from fractions import Fraction

import numpy as np
import pytest
from made_clips import grey, mp4_with_sound, ogg, silent_avi, tone, wav, write

from repro.audiovisual import sound
from repro.audiovisual.decode import decode

SILENCE = math.log(1e-6)


def test_pcm_is_read_as_it_is():
    track = sound.read(wav())
    expected = np.round(tone(0.4)[0] * 32768) / 32768
    np.testing.assert_allclose(track.samples, expected, atol=1.1 / 32768)
    assert (track.rate, track.start, track.end) == (16_000, 0, Fraction(2, 5))


def test_channels_are_averaged_whatever_the_format():
    left = tone(0.2)[0]
    for codec in ("pcm_s16le", "pcm_f32le", "pcm_s32le"):
        for right, factor in ((-left, 0), (left, 1), (np.zeros_like(left), 0.5)):
            track = sound.read(write("wav", sound=np.stack([left, right]), sound_codec=codec))
            np.testing.assert_allclose(track.samples, factor * left, atol=1e-4)


def test_without_sound_there_is_none():
    assert sound.read(silent_avi()) is None


def test_a_gap_is_silent():
    rate = 16_000
    whole = tone(0.3)[0]
    first = sound.Track(whole, rate, Fraction(0))
    contents = write("matroska", sound=whole[None], sound_codec="pcm_s16le")
    np.testing.assert_allclose(sound.read(contents).samples, first.samples, atol=1e-4)
    gap = with_gap(whole, at=1024 * 2, gap=8000)
    assert len(gap.samples) == len(whole) + 8000
    np.testing.assert_allclose(gap.samples[:2048], whole[:2048], atol=1e-4)
    assert (gap.samples[2048 : 2048 + 8000] == 0).all()
    np.testing.assert_allclose(gap.samples[2048 + 8000 :], whole[2048:], atol=1e-4)


def with_gap(samples, at, gap):
    """A file whose time stamps jump by `gap` samples after `at` of them."""

    import av

    target = io.BytesIO()
    with av.open(target, "w", format="matroska") as container:
        stream = container.add_stream("pcm_s16le", rate=16_000, layout="mono")
        for start in range(0, len(samples), 1024):
            frame = av.AudioFrame.from_ndarray(samples[None, start : start + 1024].copy(), format="fltp", layout="mono")
            frame.sample_rate, frame.time_base = 16_000, Fraction(1, 16_000)
            frame.pts = start + (gap if start >= at else 0)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return sound.read(target.getvalue())


@pytest.mark.parametrize("start", [Fraction(text) for text in ("0", "1/5", "-1/4", "3", "-3", "1/7")])
@pytest.mark.parametrize("frames", [1, 4, 15])
def test_sound_is_cut_and_padded_to_the_time_of_the_pictures(start, frames):
    samples = np.arange(1, 16_001, dtype=np.float32)  # one second from t = 1/2
    track = sound.Track(samples, 16_000, Fraction(1, 2))
    found = sound.aligned(track, start, frames)
    first = round((start - track.start) * 16_000)
    expected = [samples[place] if 0 <= (place := first + n) < 16_000 else 0 for n in range(1600 * frames)]
    np.testing.assert_array_equal(found, np.array(expected, dtype=np.float32))


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_another_sampling_rate_keeps_pitch_and_time(rate):
    times = np.arange(rate) / rate
    wave = (np.sin(2 * np.pi * 500 * times) * np.exp(-(((times - 0.5) / 0.05) ** 2))).astype(np.float32)
    found = sound.aligned(sound.Track(wave, rate, Fraction(0)), Fraction(0), 10)
    times = np.arange(16_000) / 16_000
    expected = np.sin(2 * np.pi * 500 * times) * np.exp(-(((times - 0.5) / 0.05) ** 2))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_mel_rows_against_a_slow_sum():
    samples = np.random.default_rng(0).normal(size=3200).astype(np.float32) * 0.1
    found = sound.log_mel(samples)
    from librosa.filters import mel

    filters, hann = mel(sr=16_000, n_fft=1024, n_mels=80), 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    padded = np.pad(samples.astype(np.float64), 512)
    for row in range(20):
        power = np.abs(np.fft.rfft(padded[160 * row : 160 * row + 1024] * hann)) ** 2
        np.testing.assert_allclose(found[row], np.log(1e-6 + filters @ power), rtol=1e-3, atol=1e-4)
    assert found.shape == (20, 80) and found.dtype == np.float32 and found.flags.c_contiguous


def test_silence_and_nothing():
    np.testing.assert_allclose(sound.log_mel(np.zeros(1600, dtype=np.float32)), SILENCE, rtol=1e-6)
    assert sound.log_mel(np.empty(0, dtype=np.float32)).shape == (0, 80)


def test_ogg_and_aac_are_read():
    for contents in (ogg(), mp4_with_sound()):
        track = sound.read(contents)
        middle = sound.aligned(track, Fraction(0), 4)[1600:4800]
        peak = np.abs(np.fft.rfft(middle * np.hanning(3200))).argmax() * 5
        assert abs(peak - 440) <= 5 and 0.3 < np.abs(middle).max() < 0.7


@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_sound_that_starts_later_lies_beside_later_pictures(delay):
    pictures = [grey(100)] * 20
    contents = write("matroska", pictures, [Fraction(n, 25) for n in range(20)], tone(0.8 - delay), codec="ffv1",
                     sound_start=delay)
    track = sound.read(contents)
    assert track.start == Fraction(round(delay * 1000), 1000)
    loud = np.abs(sound.aligned(track, Fraction(0), 8)) > 0.01
    assert abs(loud.argmax() / 16_000 - delay) < 0.002


@pytest.mark.parametrize(("pictures_start", "sound_start"), [(0.0, 0.0), (0.0, 0.3), (0.3, 0.0), (0.5, 0.2)])
def test_a_decoded_clip_has_its_sound_at_the_time_of_its_pictures(pictures_start, sound_start):
    """A tone that sets in half a second after the sound, which is silent before."""
    samples = tone(1.5)
    samples[:, :8000] = 0
    times = [Fraction(round(pictures_start * 100), 100) + Fraction(n, 25) for n in range(30)]
    contents = write("matroska", [grey(100)] * 30, times, samples, codec="ffv1", sound_codec="pcm_s16le",
                     base=Fraction(1, 1000), sound_start=sound_start)
    clip = decode(contents, needs="video", size=24, listed=math.nan)
    assert len(clip.mel) == 10 * len(clip.frames) == 120
    loud = clip.mel.max(1) > -3
    assert abs(loud.argmax() - 100 * (sound_start + 0.5 - pictures_start)) <= 4  # rows; a window has six


def test_rates_out_of_range_are_refused():
    for rate in (999, 400_000):
        with pytest.raises(ValueError, match=f"its sampling rate is {rate:,} Hz, from 1,000 to 384,000 are read"):
            sound.read(write("wav", sound=np.zeros((1, 800), np.float32), sampling=rate))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -1e20, 32_767])
@pytest.mark.parametrize("channels", [1, 2])
def test_sound_that_is_not_finite_or_of_another_scale_is_refused_with_its_time(value, channels):
    samples = tone(0.2, channels=channels)
    samples[0, 1500] = value
    with pytest.raises(ValueError, match=r"a sample of its sound, at 0\.09 s, is .*; full scale is 1"):
        sound.read(write("wav", sound=samples, sound_codec="pcm_f32le"))


def test_loud_sound_has_finite_rows():
    track = sound.read(write("wav", sound=tone(0.2, loudness=99.0), sound_codec="pcm_f32le"))
    assert np.isfinite(sound.log_mel(sound.aligned(track, track.start, 2))).all()


def test_sound_that_lasts_too_long_is_refused():
    with pytest.raises(ValueError, match="a clip at most 120"):
        with_gap(tone(0.3)[0], at=1024, gap=16_000 * 130)
