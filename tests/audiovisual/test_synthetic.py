import numpy as np
import pytest
import torch
from disks import small_disk
from made_up_pairs import made_up

from repro.audiovisual import discs, synthetic
from repro.audiovisual.clips import PARTS
from repro.audiovisual.data import load
from repro.data import manifest

SMALL = {"pretrain": 400, "train": 400, "test": 200}


@pytest.fixture(scope="module")
def small():
    """The set with fewer clips."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "COUNTS", SMALL)
        return synthetic.load()


def items(data, part):
    """Pictures (n, 20, 24, 24, 3) and log-mel (n, 80, 32) of a part as floats."""
    mask = getattr(data, part)
    return data.frames.unflatten(0, (-1, 20))[mask].float(), data.mel.unflatten(0, (-1, 80))[mask]


def test_layout(small):
    assert small.name == "synthetic" and small.classes == tuple(synthetic.MOTIONS) and len(small.classes) == 10
    assert small.frames.shape == (20000, 24, 24, 3) and small.mel.shape == (80000, 32)
    assert small.frames.is_contiguous() and small.mel.is_contiguous() and small.mel.isfinite().all()
    assert small.first_frame.tolist() == list(range(0, 20001, 20)) and small.rows_per_frame == 4
    assert {part: int(getattr(small, part).sum()) for part in PARTS} == SMALL
    assert (sum(getattr(small, part).long() for part in PARTS) == 1).all()
    assert small.has("video").all() and small.has("audio").all()
    video, audio = small.pair(torch.tensor([0, 999, 0]), torch.Generator().manual_seed(0))
    assert video.shape == (3, 3, 8, 24, 24) and audio.shape == (3, 32, 32)


def test_size():
    assert synthetic.COUNTS == {"pretrain": 2000, "train": 1000, "test": 1000}
    assert len(synthetic.MOTIONS) * len(synthetic.MATERIALS) == 100


def test_train_and_test_are_balanced(small):
    assert (small.labels == small.categories // 10).all()
    for part, count in (("train", 4), ("test", 2)):
        mask = getattr(small, part)
        assert (small.categories[mask].bincount(minlength=100) == count).all()


def test_same_clips_every_time_in_chunks_of_any_size(small, monkeypatch):
    assert small.digest.startswith("30118b9d069a")
    monkeypatch.setattr(synthetic, "COUNTS", SMALL)
    scenes = synthetic.cast("test", 0)
    whole = synthetic.make(scenes, "test")
    frames, mel = items(small, "test")
    assert np.array_equal(whole[0], frames.numpy()) and np.array_equal(whole[1], mel.numpy())
    monkeypatch.setattr(synthetic, "CHUNK", 13)
    few = {name: column[:30] for name, column in scenes.items()}
    assert all(np.array_equal(own, other[:30]) for own, other in zip(synthetic.make(few, "test"), whole, strict=True))


def test_redundancy_changes_pretraining_alone(monkeypatch):
    for part in PARTS:
        plain, redundant = (synthetic.cast(part, redundancy) for redundancy in (0.0, 0.9))
        same = all(np.array_equal(column, redundant[name]) for name, column in plain.items())
        assert same == (part != "pretrain")

    def blank(scenes, part):
        n = len(scenes["category"])
        return np.zeros((n, 20, 24, 24, 3), np.uint8), np.zeros((n, 80, 32), np.float32)

    monkeypatch.setattr(synthetic, "make", blank)
    data = synthetic.load(0.9)
    assert data.name == "synthetic (redundancy 0.9)"
    assert manifest.plain(data.name) == "synthetic" and manifest.embedded(data.name)
    assert data.categories[data.pretrain].bincount(minlength=100).max() == 311
    assert synthetic.load(0).name == "synthetic (redundancy 0)"


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


def test_no_redundancy_means_balanced_and_distinct():
    clips, distinct = synthetic.shares("pretrain", 0)
    assert (clips == 20).all() and (distinct == 20).all()
    assert (synthetic.cast("pretrain", 0)["origin"] == np.arange(2000)).all()


def test_frequent_categories_are_of_every_kind():
    clips, _ = synthetic.shares("pretrain", 0.5)
    by_motion, by_material = clips.reshape(10, 10).sum(1), clips.reshape(10, 10).sum(0)
    assert by_motion.max() < 2 * by_motion.min() and by_material.max() < 2 * by_material.min()


def test_near_duplicates_are_the_same_scene_later_and_in_other_light():
    scenes = synthetic.cast("pretrain", 0.5)
    origin = scenes.pop("origin")
    distinct = origin == np.arange(2000)
    assert distinct.sum() == 1003 and distinct[origin].all()
    changed = {"start", "light", "slant", "gain"}
    for name, column in scenes.items():
        assert np.array_equal(column, column[origin]) == (name not in changed), name
    later = (scenes["start"] - scenes["start"][origin])[~distinct]
    assert (later > 0).all() and later.max() < synthetic.LATER
    assert scenes["start"].max() < discs.BEFORE / discs.RATE
    assert np.abs(np.log10(scenes["gain"] / scenes["gain"][origin])).max() <= 0.1
    assert not np.isclose(scenes["light"], scenes["light"][origin])[~distinct].any()


def test_near_duplicates_are_near_and_nothing_else_is(small, monkeypatch):
    monkeypatch.setattr(synthetic, "COUNTS", SMALL)
    origin = torch.from_numpy(synthetic.cast("pretrain", 0.5)["origin"])
    for values in items(small, "pretrain"):
        looks = values.mean(1).flatten(1)                     # over time
        looks = looks - looks.mean(1, keepdim=True)
        looks = looks / looks.norm(dim=1, keepdim=True)       # a gain or another light scales or shifts
        similarity = looks @ looks.T
        similarity.fill_diagonal_(-2)
        family = origin[similarity.argmax(1)] == origin
        has_family = origin.bincount(minlength=400)[origin] > 1
        assert family[has_family].float().mean() > 0.9
        related = origin[:, None] == origin
        others = similarity[~related].quantile(0.5)
        assert similarity[related & ~torch.eye(400, dtype=torch.bool)].quantile(0.1) > others


def test_no_clip_repeats_another(small):
    frames, mel = small.frames.unflatten(0, (-1, 20)).numpy(), small.mel.unflatten(0, (-1, 80)).numpy()
    assert len({clip.tobytes() for clip in frames}) == len({clip.tobytes() for clip in mel}) == len(small)


def test_no_scene_is_in_two_parts():
    radii = [set(synthetic.cast(part, 0.5)["radius"].tolist()) for part in PARTS]
    assert [len(part) for part in radii] == [1003, 1000, 1000]
    assert len(set.union(*radii)) == 3003


def class_mean_accuracy(features, labels, train, test):
    """Percent of test items nearest to the mean of their class among the training items."""
    features = (features - features[train].mean(0)) / features[train].std(0).clamp(min=1e-6)
    means = torch.stack([features[train & (labels == label)].mean(0) for label in range(10)])
    return 100 * (torch.cdist(features[test], means).argmin(1) == labels[test]).float().mean().item()


def test_both_modalities_tell_the_classes_apart_but_not_trivially(small):
    frames = small.frames.unflatten(0, (-1, 20)).float().flatten(2)
    mel = small.mel.unflatten(0, (-1, 80))
    for features in (frames.diff(dim=1).abs(), mel):
        assert 18 < class_mean_accuracy(features.flatten(1), small.labels, small.train, small.test) < 90
    assert class_mean_accuracy(frames[:, 0], small.labels, small.train, small.test) < 18, "one picture shows no motion"


def test_sound_tells_materials_apart(small):
    spectra = small.mel.unflatten(0, (-1, 80)).mean(1)
    assert 14 < class_mean_accuracy(spectra, small.categories % 10, small.train, small.test) < 90


def test_what_surrounds_a_disc_says_nothing_about_it():
    scenes = synthetic.cast("train", 0)
    for name in ("paint", "wall", "sides", "tilt", "light", "grain", "gain", "hiss", "colour", "half_width", "radius"):
        column = scenes[name].reshape(1000, -1)[:, 0]
        by_motion = column.reshape(10, 100).mean(1)
        assert np.abs(by_motion - column.mean()).max() < 4 * column.std() / 10, name


@pytest.mark.parametrize("redundancy", [-0.1, 1, 1.0, 2, float("nan"), float("inf"), True, "0.5", None])
def test_an_impossible_redundancy_raises(redundancy):
    with pytest.raises(ValueError, match=r"redundancy=.* should be a number from 0 up to, not including, 1"):
        synthetic.load(redundancy)


def test_the_manifest_covers_clips():
    declared = manifest.load_manifest("synthetic")
    assert "skeletons" in declared.title and "audio-video" in declared.title


def test_pictures_of_some_clips_are_those_of_the_whole_set(small, monkeypatch):
    monkeypatch.setattr(synthetic, "COUNTS", SMALL)
    whole, _ = items(small, "pretrain")
    chosen = [399, 5, 5, 120, 0]
    found = synthetic.pictures(chosen)
    assert found.dtype == np.uint8 and np.array_equal(found, whole[chosen].numpy())
    assert len(np.unique(found[0])) > 50 and not np.array_equal(found[0], found[1])
    assert synthetic.pictures([]).shape == (0, 20, 24, 24, 3)


@pytest.mark.parametrize("item", [-1, 2000])
def test_pictures_of_clips_that_there_are_not(item):
    with pytest.raises(IndexError, match=f"0 to 1999, not {item}"):
        synthetic.pictures([3, item])


@pytest.mark.parametrize("damage", [
    lambda path: path.write_bytes(path.read_bytes()[:-500]), lambda path: path.write_bytes(b""),
], ids=["cut", "empty"])
def test_prepared_clips_are_used_and_made_again_when_damaged(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    made = []
    monkeypatch.setattr(synthetic, "load", lambda *arguments: made.append(arguments) or made_up())
    first = load("synthetic", window=5)
    again = load("synthetic", window=7)
    assert made == [(0.5, 5)] and (first.window, again.window) == (5, 7)
    assert torch.equal(first.frames, again.frames) and torch.equal(first.mel, again.mel)
    path, = (tmp_path / "prepared").glob("*.npz")
    damage(path)
    assert torch.equal(load("synthetic", window=5).frames, first.frames) and len(made) == 2
    assert torch.equal(load("synthetic", window=5).frames, first.frames) and len(made) == 2


def test_prepared_clips_are_those_of_the_redundancy_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    made = {0.0: made_up(pretrain=10), 0.5: made_up(pretrain=20), 0.9: made_up(pretrain=30)}
    asked = []
    monkeypatch.setattr(synthetic, "load", lambda redundancy, window: asked.append(redundancy) or made[redundancy])
    for redundancy in (0.5, 0.9, 0, 0.0, 0.9, 0.5):
        assert load("synthetic", redundancy=redundancy).pretrain.sum() == made[redundancy].pretrain.sum()
    assert asked == [0.5, 0.9, 0]  # the others were there


def test_a_full_disk_is_said_of_prepared_clips(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(synthetic, "load", lambda *_: made_up())
    with small_disk(tmp_path / "runs", 2**14):
        with pytest.raises(OSError, match=r"No space left on device \(make room there, .*synthetic-clips-\w+\.npz'"):
            load("synthetic")
        assert not list((tmp_path / "runs" / "prepared").glob("*.npz"))
