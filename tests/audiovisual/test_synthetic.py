"""The bundled clips: how discs look and sound, against other ways to the same; and the set they make."""

import colorsys

import numpy as np
import pytest
import torch

from repro.audiovisual import synthetic
from repro.audiovisual.data import load
from repro.data import manifest

SMALL = {"pretrain": 128, "train": 32, "test": 64}
NOTES = len(synthetic.COLOURS)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The set with fewer clips, in a folder that stays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "COUNTS", SMALL)
        patch.setenv("REPRO_RUNS", str(tmp_path_factory.mktemp("runs")))
        yield synthetic.load()


@pytest.fixture(scope="module")
def scenes():
    """Four of each category."""
    rng = np.random.default_rng(0)
    return [synthetic.draw(item % len(synthetic.CATEGORIES), rng) for item in range(4 * len(synthetic.CATEGORIES))]


def test_layout(small):
    # equal bits in every process and on every machine
    assert small.digest == "8332db5f02dae9590c027450feafb715e4e3a54f20c1a34d0e92aeb8ea72b60c"
    assert small.name == "synthetic" and small.classes == synthetic.CATEGORIES and len(small.classes) == 32
    assert small.frames.shape == (4480, 24, 24, 3) and small.mel.shape == (17_920, 32) and small.mel.isfinite().all()
    assert small.first_frame.tolist() == list(range(0, 4481, 20)) and small.rows_per_frame == 4
    assert torch.equal(small.labels, small.categories)
    for part, count in SMALL.items():
        assert small.labels[getattr(small, part)].bincount().tolist() == [count // 32] * 32
    video, audio = small.pair(torch.tensor([0, 223, 0]), torch.Generator().manual_seed(0))
    assert video.shape == (3, 3, 8, 24, 24) and audio.shape == (3, 32, 32)


def test_what_is_made_is_kept_by_redundancy(small, monkeypatch):
    other = synthetic.load(0.25)
    assert other.digest != small.digest
    monkeypatch.delattr(synthetic, "cast")
    assert synthetic.load(0.5, 5).digest == small.digest
    kept = load("synthetic", redundancy=0.25, window=5)
    assert kept.digest == other.digest and kept.window == 5
    assert kept.name == "synthetic (redundancy 0.25)" and manifest.bundled(kept.name)


@pytest.mark.parametrize(("redundancy", "distinct"), [(0, 128), (0.25, 96), (0.5, 64), (0.999, 1)])
def test_near_duplicates_are_the_same_scene_somewhat_later(small, redundancy, distinct):
    cast = synthetic.cast("pretrain", redundancy)
    assert len(cast) == len({scene.start for scene in cast}) == 128
    for item, scene in enumerate(cast[distinct:], distinct):
        original = cast[item % distinct]
        assert 0 < scene.start - original.start < 0.2 * scene.pace
        others = zip(scene._replace(start=0), original._replace(start=0), strict=True)
        assert all(np.array_equal(*values) for values in others)
    for part in ("train", "test"):
        assert len({scene.start for scene in synthetic.cast(part, redundancy)}) == SMALL[part]


def test_the_dominant_frequency_is_the_pitch_of_the_category(scenes):
    for scene in scenes:
        sound = synthetic.record(scene, np.random.default_rng(scene.category))
        spectrum = np.abs(np.fft.rfft(np.hanning(16_000) * sound))
        heard = spectrum.argmax() / 2                                                  # Hz, as the clip lasts 2 s
        assert abs(heard - scene.pitch) <= 0.5
        octaves = np.log2(heard / 220) - scene.category % NOTES / 4
        assert abs(octaves) < 0.5 / 4, "nearer than to any other note"


def test_the_hue_is_that_of_the_category(scenes):
    for scene in scenes:
        hue, saturation, value = colorsys.rgb_to_hsv(*scene.paint)
        apart = (NOTES * hue - scene.category % NOTES + NOTES / 2) % NOTES - NOTES / 2
        assert abs(apart) <= 0.3 + 1e-9 and 0.7 <= saturation <= 1 and 0.6 <= value <= 1


def test_log_mel_is_that_of_librosa(scenes):
    import librosa

    rng = np.random.default_rng(0)
    waveforms = [synthetic.record(scenes[5], rng), 1e-3 * rng.standard_normal(16_000), np.zeros(16_000)]
    for waveform in waveforms:
        rows = synthetic.log_mel(waveform)
        assert rows.shape == (80, 32) and rows.dtype == np.float32 and (rows * 256 % 1 == 0).all()
        power = librosa.feature.melspectrogram(
            y=waveform, sr=8000, n_fft=512, hop_length=200, n_mels=32, htk=True, norm=None, center=True,
            pad_mode="constant", power=2.0,
        )
        np.testing.assert_allclose(rows, np.log(power.T[:80] + 1e-6), atol=1 / 512 + 1e-4)
