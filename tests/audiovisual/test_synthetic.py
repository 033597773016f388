"""The bundled clips: how discs move, look and sound, against slower ways to the same; and the set they make."""

import math

import numpy as np
import pytest
import torch

from repro.audiovisual import synthetic
from repro.audiovisual.clips import PARTS
from repro.audiovisual.data import load
from repro.data import manifest

SMALL = {"pretrain": 300, "train": 200, "test": 100}
MOTIONS, MATERIALS = list(synthetic.MOTIONS), list(synthetic.MATERIALS)
STEP = 1e-4                                                   # s, of the slow simulation


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The set with fewer clips."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "COUNTS", SMALL)
        patch.setenv("REPRO_RUNS", str(tmp_path_factory.mktemp("runs")))
        return synthetic.load()


def test_layout(small):
    assert small.digest == "8e720c388493315668c54affea81e8b5e7cc17e8b626299a95d58e1fe6975ffc"
    assert small.name == "synthetic" and small.classes == tuple(MOTIONS) and len(small.classes) == 10
    assert small.frames.shape == (12_000, 24, 24, 3) and small.mel.shape == (48_000, 32) and small.mel.isfinite().all()
    assert small.first_frame.tolist() == list(range(0, 12_001, 20)) and small.rows_per_frame == 4
    assert {part: int(getattr(small, part).sum()) for part in PARTS} == SMALL
    assert (sum(getattr(small, part).long() for part in PARTS) == 1).all()
    assert torch.equal(small.labels, small.categories // 10)
    video, audio = small.pair(torch.tensor([0, 599, 0]), torch.Generator().manual_seed(0))
    assert video.shape == (3, 3, 8, 24, 24) and audio.shape == (3, 32, 32)


def test_some_clips_are_those_of_the_whole_set_in_chunks_of_any_size(small, monkeypatch):
    monkeypatch.setattr(synthetic, "COUNTS", SMALL)
    monkeypatch.setattr(synthetic, "CHUNK", 13)
    frames, mel = small.frames.unflatten(0, (-1, 20)), small.mel.unflatten(0, (-1, 80))
    few = {name: column[:30] for name, column in synthetic.cast("test", 0).items()}
    for part, whole in zip(synthetic.render(few, "test"), (frames, mel), strict=True):
        assert np.array_equal(part, whole[small.test][:30])
    items = [299, 5, 5, 120, 0]
    pictures = synthetic.pictures(items)
    assert pictures.dtype == np.uint8 and np.array_equal(pictures, frames[small.pretrain][items])


def test_what_is_made_is_kept_by_redundancy(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    monkeypatch.setattr(synthetic, "COUNTS", SMALL)
    asked, blank = [], (np.zeros((300, 20, 24, 24, 3), np.uint8), np.zeros((300, 80, 32), np.float32))
    monkeypatch.setattr(synthetic, "render", lambda scenes, part: asked.append(part) or tuple(
        array[:SMALL[part]] for array in blank))
    digests = [synthetic.load(redundancy, window).digest for redundancy, window in (
        (0.5, 8), (0.25, 8), (0, 3), (0.0, 8), (0.25, 8), (0.5, 5))]
    assert digests == [*digests[:3], digests[2], digests[1], digests[0]] and len(set(digests)) == 3
    assert len(asked) == 3 * len(PARTS)
    made = load("synthetic", redundancy=0.25, window=5)
    assert made.name == "synthetic (redundancy 0.25)" and manifest.bundled(made.name) and made.window == 5


@pytest.mark.parametrize("redundancy", [0, 0.25, 0.5, 0.9, 0.999])
def test_shares_of_categories(redundancy):
    clips, distinct = synthetic.shares("pretrain", redundancy)
    assert clips.sum() == 2000 and clips.shape == distinct.shape == (100,)
    weights = [1 / rank**redundancy for rank in range(1, 101)]
    for count, weight in zip(sorted(clips, reverse=True), weights, strict=True):
        assert abs(count - 2000 * weight / sum(weights)) < 1
    for count, own in zip(clips, distinct, strict=True):
        assert own >= 1 and abs(own - max(1, (1 - redundancy) * count)) <= 0.5
    for part in ("train", "test"):
        assert all((counts == 10).all() for counts in synthetic.shares(part, redundancy))


def test_near_duplicates_are_the_same_scene_later_and_in_other_light():
    scenes = synthetic.cast("pretrain", 0.5)
    origin = np.array([scenes["radius"].tolist().index(radius) for radius in scenes["radius"].tolist()])
    distinct = origin == np.arange(2000)
    assert distinct.sum() == 1003 and distinct[origin].all()
    for name, column in scenes.items():
        assert np.array_equal(column, column[origin]) == (name not in {"start", "light", "slant", "gain"}), name
    later = (scenes["start"] - scenes["start"][origin])[~distinct]
    assert (later > 0).all() and later.max() < 0.2 and scenes["start"].max() < 0.5
    assert np.abs(np.log10(scenes["gain"] / scenes["gain"][origin])).max() <= 0.1
    assert not np.isclose(scenes["light"], scenes["light"][origin])[~distinct].any()


# Discs


def rng(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def scenes(motion, material="chipboard", n=4, **changes):
    """n scenes of a motion and material in which nothing but the disc is to be seen and heard, then changed."""
    drawn = synthetic.draw(np.full(n, 10 * MOTIONS.index(motion) + MATERIALS.index(material)), rng(5))
    plain = {"paint": 1.0, "wall": 0.0, "sides": 0.0, "clutter_paint": 0.0, "gloss": 0.0, "grain": 0.0, "light": 1.0,
             "slant": 0.0, "hiss": 0.0, "gain": 1.0}
    return drawn | {name: np.full_like(drawn[name], value) for name, value in (plain | changes).items()}


def simulate(position, speed, *, pull, drag, dragged_from, low, high, driven_low, driven_high, restitution, seconds):
    """One coordinate of one disc in small steps, plain numbers: another way to what `travel` does."""
    places, resting = [], False
    for step in range(round(seconds / STEP)):
        places.append(position)
        if resting:
            continue
        slowing = drag if step * STEP >= dragged_from else 0.0
        change = pull * STEP
        if speed:
            change -= math.copysign(min(slowing * STEP, abs(speed + change)), speed)
        elif abs(pull) <= slowing:
            change = 0.0
        position, speed = position + (speed + change / 2) * STEP, speed + change
        beyond = (position < low and speed < 0) - (position > high and speed > 0)
        if beyond:
            back = max(restitution * abs(speed), driven_low if beyond > 0 else driven_high)
            position, speed = (low if beyond > 0 else high), beyond * back
            resting = back < synthetic.REST
    return np.array(places)


@pytest.mark.parametrize("motion", MOTIONS)
def test_discs_move_as_in_a_simulation_of_small_steps(motion, monkeypatch):
    arguments, travel = [], synthetic.travel
    monkeypatch.setattr(synthetic, "travel", lambda *places, **others: arguments.append((*places, others)) or travel(
        *places, **others))
    movement = synthetic.move(scenes(motion, "oak", n=1, start=0.0))
    seconds = np.arange(0, 1.5, STEP)[None]
    moved = 0
    for path, (position, speed, others) in zip((movement.up, movement.across), arguments, strict=True):
        plain = {name: float(np.ravel(value)[0]) for name, value in others.items()} | {"seconds": 1.5}
        expected = simulate(float(position[0]), float(speed[0]), **plain)
        np.testing.assert_allclose(path.at(seconds)[0][0], expected, atol=0.02)
        moved += np.ptp(expected)
    assert moved > 0.2 or motion == "spun"


@pytest.mark.parametrize("motion", ["thrown", "floating", "rolled"])
def test_pictures_show_the_disc_where_it_is(motion):
    few = scenes(motion)
    movement, pixel = synthetic.move(few), 2 * few["half_width"][:, None] / 24
    weight, steps = synthetic.film(few, movement, 0.0)[..., 0] / 255, np.arange(24) - 11.5  # the white disc's
    total = weight.sum((2, 3))
    area = np.pi * few["radius"][:, None] ** 2 + np.zeros((4, 20))
    np.testing.assert_allclose(total * pixel**2, area, rtol=0.06)
    seen = [(weight * steps).sum((2, 3)) / total * pixel, -(weight * steps[:, None]).sum((2, 3)) / total * pixel]
    seconds = few["start"][:, None] + np.arange(20) / 10
    right, up = (path.at(seconds)[0] - 1 for path in (movement.across, movement.up))         # m from the box's middle
    cosine, sine = np.cos(few["tilt"])[:, None], np.sin(few["tilt"])[:, None]
    tilted = np.stack([cosine * right + sine * up, -sine * right + cosine * up])
    np.testing.assert_allclose(seen, tilted - few["shift"].T[..., None], atol=0.01)


def heard(few, seed=1):
    movement = synthetic.move(few)
    return synthetic.record(few, movement, rng(seed), rng(seed + 1)), movement


def test_the_sound_is_the_sum_of_the_modes_that_every_impact_excites():
    few = scenes("thrown", "oak", roughness=0.0)
    few["amplitudes"] = np.where(few["frequencies"] < 500, few["amplitudes"], 0)  # slow against a sample
    sound, movement = heard(few)
    for scene in range(4):
        clock, expected = few["start"][scene] + np.arange(16000) / 8000, np.zeros(16000)
        modes = list(zip(*(few[name][scene] for name in ("frequencies", "decays", "amplitudes")), strict=True))
        for path in (movement.across, movement.up):
            for time, jolt in zip(path.times[scene], path.jolts[scene], strict=True):
                since = np.maximum(clock - time, 0) if jolt else 0
                for frequency, decay, amplitude in modes:
                    ringing = np.exp(-decay * since) * np.sin(2 * np.pi * frequency * since)
                    expected += synthetic.LOUDNESS * jolt * amplitude * ringing
        assert np.abs(sound[scene] - expected).max() < 0.02 * np.abs(expected).max()
        silent = clock < min(path.times[scene, 1] for path in (movement.across, movement.up)) - 1 / 4000
        assert np.abs(sound[scene][silent]).max(initial=0) < 1e-12, "nothing wraps around, nothing sounds untouched"


def test_log_mel_is_that_of_librosa():
    import librosa

    few = scenes("thrown", "brass", n=2, hiss=0.003)
    waveforms = np.concatenate([heard(few)[0], 1e-3 * rng().standard_normal((1, 16000)), np.zeros((1, 16000))])
    found = synthetic.log_mel(waveforms)
    assert found.shape == (4, 80, 32) and found.dtype == np.float32 and (found * 256 % 1 == 0).all()
    for waveform, rows in zip(waveforms, found, strict=True):
        power = librosa.feature.melspectrogram(
            y=waveform, sr=8000, n_fft=512, hop_length=200, n_mels=32, htk=True, norm=None, center=True,
            pad_mode="constant", power=2.0,
        )
        np.testing.assert_allclose(rows, np.log(power.T[:80] + 1e-6), atol=1 / 512 + 1e-4)
