"""What a run of CM-ACC reports: coverage, fine-tuning, probes of characters; and how it is taken up again."""

import copy
import dataclasses
import functools
import itertools

import numpy as np
import pytest
import torch
from ended import finish
from made_up_pairs import CPU, grids, made_up, tiny
from made_up_study import run_of
from states import assert_equal_states
from tqdm import tqdm

from repro.audiovisual import study
from repro.audiovisual.finetune import FineTuner
from repro.audiovisual.pretrain import Pretrainer
from repro.audiovisual.recipe import CLIPS
from repro.data import manifest
from repro.run import training
from repro.run.evaluate import cosine_rates, linear_probe
from repro.run.fit import fit
from repro.run.store import Store

SMALL = {"finetune_epochs": 1, "finetune_batch": 5, "finetune_windows": 2, "iterations": 4}
PROBES = {"linear", "linear_held_out"}
pytestmark = pytest.mark.usefixtures("one_thread")


@functools.cache
def clips():
    made = made_up(pretrain=30, train=8, test=13)
    labels = torch.randint(3, made.labels.shape, generator=torch.Generator().manual_seed(0))
    return dataclasses.replace(made, labels=labels)  # that nobody could learn


def target(recipe, name, split):
    """The made-up clips in another order of labels for every target."""
    shift = torch.arange(len(clips().labels)) * (len(name) + split)
    return dataclasses.replace(clips(), labels=(clips().labels + shift) % 3)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty store; every recipe's data are the made-up ones."""
    small_grids = grids(train=40, test=30, held_out=20)
    monkeypatch.setattr(study, "target_of", target)
    monkeypatch.setattr(study, "data_of", lambda recipe: small_grids if recipe.dataset == "multidigits" else clips())
    return Store(tmp_path / "runs")


def small_run(method="cmacc", dataset="synthetic", seed=5, **changes):
    return run_of(CLIPS, tiny(method, dataset, **SMALL | changes), seed, "smoke")


def trained(store, run):
    """The result of the run, and its folder."""
    folder = store.folder(run)
    with folder.claim():
        folder.finish(finish(training.train(folder, tqdm(disable=True), study=CLIPS, device=CPU)))
    return folder.result, folder


def pretrained(run, folder):
    """The run's pretrainer, trained on its own."""
    folder.mkdir()
    alone = Pretrainer(run.recipe, study.data_of(run.recipe), run.seed, CPU)
    finish(fit(alone, folder, tqdm(disable=True)))
    return alone


def tuned(pretrainer, name, modality, split):
    """Accuracy of a fine-tuning on its own."""
    tuner = FineTuner(pretrainer.recipe, pretrainer.towers.trunks[modality], target(None, name, split), modality,
                      pretrainer.seed, CPU, target=name, split=split)
    for _ in range(tuner.total_steps):
        tuner.step()
    return tuner.accuracy()


@pytest.mark.parametrize(("batch", "pool"), [(2, 2), (5, 5), (4, 12)])
def test_expected_categories_are_the_mean_over_all_draws(batch, pool):
    """Of six pairs of four categories, one of which is unknown, once or twice: every draw of M without replacement."""
    data, kinds = made_up(pretrain=6, train=2, test=2), torch.tensor([0, 0, 0, 2, 7, -1])
    data = dataclasses.replace(data, categories=torch.full((10,), 5).masked_scatter(data.pretrain, kinds))
    recipe = tiny("smoco", batch=batch, dictionary=batch, pool=pool)  # cmacc must have some to select
    pretrainer = Pretrainer(recipe, data, 4, CPU)
    pretrainer.step()
    counts = [len(set(draw) - {-1}) for draw in itertools.permutations(max(1, pool // 6) * kinds.tolist(), batch)]
    assert study.coverage(pretrainer)["expected"] == pytest.approx(np.mean(counts))


@torch.no_grad()
def plain_features(pretrainer, lot):
    """Features of a lot of pairs, standardised by those trained with."""
    trunk, data = pretrainer.towers.trunks["video"].eval(), pretrainer.data
    train, features = (torch.cat([trunk(data.centred("video", item)[:, 0]) for item in part.nonzero()])
                       for part in (data.train, lot))
    deviation = train.std(0, correction=0)
    return (features - train.mean(0)) / torch.where(deviation > 0, deviation, 1)


@pytest.mark.parametrize("method", ["scratch", "cmacc"])
def test_characters_are_read_from_every_cell_by_a_linear_probe(store, tmp_path, method):
    run = small_run(method, "multidigits", seed=6, iterations=1)
    result, folder = trained(store, run)
    coverage = {"categories_video", "categories_audio", "expected"} if method == "cmacc" else set()
    assert result.keys() - {"cost", "evaluation", "trained_on"} == PROBES | coverage
    pretrainer = pretrained(run, tmp_path / "alone")
    data, train = pretrainer.data, plain_features(pretrainer, pretrainer.data.train)
    for name, lot in (("linear", data.test), ("linear_held_out", data.held_out)):
        features = plain_features(pretrainer, lot)
        accuracies = [
            linear_probe(train, data.labels[data.train, place], features, data.labels[lot, place], classes=characters,
                         batch=256, rates=cosine_rates(50, 0.1, 0.0), momentum=0.9, seed=6)[-1]
            for place, characters in enumerate((4, 3))
        ]
        assert result[name] == pytest.approx(np.mean(accuracies), abs=100 / int(lot.sum()) / 2 + 1e-9)
        assert result[name] > 40
    assert not any(path.is_dir() for path in folder.path.iterdir())


@pytest.mark.parametrize(("changes", "expected"), [
    ({}, [("synthetic_video", 1), ("synthetic_audio", 1)]),
    ({"targets": ""}, []),
    ({"targets": "esc50,hmdb51", "split": 3}, [("esc50", 3), ("hmdb51", 3)]),
    ({"targets": "ucf101,synthetic_audio,esc50", "split": 0},
     [("ucf101", 1), ("ucf101", 2), ("ucf101", 3), ("synthetic_audio", 1), *(("esc50", fold) for fold in range(1, 6))]),
])
def test_targets_and_their_splits(changes, expected):
    assert study.targets_of(tiny(**changes)) == expected


def test_data_are_read_once_and_as_the_recipe_says(monkeypatch):
    read = []
    monkeypatch.setattr(study, "_load", manifest.read_once(
        lambda name, root, **named: read.append((name, named)) or object(), maxsize=16))
    recipe = tiny("cmacc", "ucf101", window=7, finetune_window=9, split=2, size=96, subset=True, targets="hmdb51")
    assert study.data_of(recipe) is study.data_of(recipe.replace(method="smoco"))
    study.target_of(recipe, "hmdb51", 2)
    study.data_of(recipe.replace(split=3, targets="ucf101,esc10"))
    study.data_of(tiny("smoco", "multidigits", distinct=3, frequency="zipf", redrawn=True, view="characters"))
    common = {"size": 96, "subset": True, "redundancy": recipe.redundancy}
    grids_read = {"characters": 2, "pairs": 30, "categories": 0, "distinct": 3, "frequency": "zipf", "redrawn": True,
                  "view": "characters", "augmented": False}
    assert read == [("ucf101", {"window": 7, "split": None, **common}),
                    ("hmdb51", {"window": 9, "split": "split2", **common}),
                    ("ucf101", {"window": 7, "split": "split3", **common}),
                    ("multidigits", {"window": 1, "split": None, **grids_read})]


@pytest.mark.parametrize(("changes", "message"), [
    ({"targets": "ucf101,hmdb52"}, "did you mean 'hmdb51'"),
    ({"targets": "ucf101", "split": 4}, "split=4 should be at most 3, of ucf101, or 0 for their mean"),
    ({"targets": "ucf101", "split": 0}, "split=0 would test on recordings of ucf101 that are pre-trained on"),
])
def test_targets_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        study.data_of(tiny("cmacc", "ucf101", **changes))


@pytest.mark.parametrize(("name", "changed", "message"), [
    ("synthetic_audio", lambda: {"mel": torch.zeros(len(clips().mel), 80)},
     "targets='synthetic_audio': audio of .* has 80 channels, and encoders that are pre-trained on .* take"),
    ("synthetic_video", lambda: {"frames": clips().frames[:, :4]}, "exceeds the frames of"),
    ("synthetic_video", lambda: {"test": clips().test & False}, "and 0 test recordings"),
])
def test_a_target_that_encoders_cannot_be_judged_on_is_refused_before_pre_training(
    store, monkeypatch, name, changed, message
):
    recipe = tiny(**SMALL, targets=name)
    assert list(study.load(recipe).targets) == [(name, 1)]
    monkeypatch.setattr(study, "target_of", lambda *_: dataclasses.replace(clips(), **changed()))
    with pytest.raises(ValueError, match=message):
        study.load(recipe)


@pytest.mark.parametrize(("method", "changes"), [
    ("cmacc", {}), ("scratch", {}), ("cmacc", {"split": 0, "targets": "esc50,ucf101"})])
def test_a_run_is_its_training_and_the_mean_of_its_fine_tunings_and_their_cost(store, tmp_path, method, changes):
    run = small_run(method, seed=9, **changes)
    result, folder = trained(store, run)
    cost, trained_on = result.pop("cost"), result.pop("trained_on")
    assert trained_on == (0 if method == "scratch" else int(study.data_of(run.recipe).pretrain.sum()))
    pretrainer = pretrained(run, tmp_path / "alone")
    before, accuracies = copy.deepcopy(pretrainer.towers.state_dict()), {}
    for name, split in study.targets_of(run.recipe):
        modality = "video" if name in ("ucf101", "synthetic_video") else "audio"
        accuracies.setdefault(name, []).append(tuned(pretrainer, name, modality, split))
    assert [len(values) for values in accuracies.values()] == ([5, 3] if changes else [1, 1])
    expected = {name: pytest.approx(np.mean(values)) for name, values in accuracies.items()}
    assert result == {"evaluation": run.evaluation} | expected | (
        study.coverage(pretrainer) if method == "cmacc" else {})
    assert_equal_states(pretrainer.towers.state_dict(), before)
    assert cost["steps"] == (0 if method == "scratch" else 4)
    left = [path.relative_to(folder.trained_in).as_posix() for path in folder.trained_in.rglob("*.pt")]
    assert left == ["checkpoint.pt"]
