"""What a cell of CM-ACC's tables reports: coverage, fine-tuning, probes of characters; and how it is taken up again."""

import copy
import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
import torch
from made_up_pairs import grids, made_up, tiny
from tqdm import tqdm

from repro.audiovisual import cell
from repro.audiovisual.finetune import FineTuner
from repro.audiovisual.pretrain import Pretrainer
from repro.audiovisual.recipe import METHODS
from repro.run.evaluate import cosine_rates, linear_probe
from repro.run.fit import fit
from repro.run.store import Cell, Store

CPU = torch.device("cpu")
SMALL = {"finetune_epochs": 1, "finetune_batch": 5, "finetune_windows": 2, "iterations": 4}
COVERAGE = {"categories_video", "categories_audio", "expected"}
PROBES = {"linear", "linear_held_out"}
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def data():
    made = made_up(pretrain=30, train=8, test=13)
    labels = torch.randint(3, made.labels.shape, generator=torch.Generator().manual_seed(0))
    return dataclasses.replace(made, labels=labels)  # that nobody could learn


@pytest.fixture
def targets(data, monkeypatch):
    """Targets that were asked for, each a set of its own: the made-up clips in another order of labels."""
    asked = []

    def load(recipe, name, split):
        asked.append((name, split))
        shift = len(name) + split
        return dataclasses.replace(data, labels=(data.labels + torch.arange(len(data.labels)) * shift) % 3)

    monkeypatch.setattr(cell, "target_of", load)
    return asked


def learner(data, method="cmacc", dataset="synthetic", seed=4, **changes):
    return Pretrainer(tiny(method, dataset, **SMALL | changes), data, seed, CPU)


def evaluated(pretrainer, folder, seed=4):
    folder.mkdir(parents=True, exist_ok=True)
    return cell.evaluate(pretrainer, folder, tqdm(disable=True), seed)


# ---------------------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize("batch", [2, 3, 5])
def test_expected_categories_are_the_mean_over_all_draws(batch):
    """Of six pairs of four categories, one of which is unknown, every draw of M without replacement."""
    data = made_up(pretrain=6, train=2, test=2)
    kinds = torch.tensor([0, 0, 0, 2, 7, -1])
    categories = torch.full((10,), 5)
    categories[data.pretrain] = kinds
    data = dataclasses.replace(data, categories=categories)
    pretrainer = learner(data, "smoco", batch=batch, dictionary=batch, pool=batch)  # cmacc must have some to select
    pretrainer.step()
    counts = [len(set(draw) - {-1}) for draw in itertools.permutations(kinds.tolist(), batch)]
    assert cell.coverage(pretrainer)["expected"] == pytest.approx(np.mean(counts))


def test_expected_categories_that_are_equally_frequent():
    data = made_up(pretrain=27, train=2, test=2)
    kinds = torch.full((31,), 11)
    kinds[data.pretrain] = torch.arange(27) % 9
    pretrainer = learner(dataclasses.replace(data, categories=kinds))
    pretrainer.step()
    assert cell.coverage(pretrainer)["expected"] == pytest.approx(9 * (1 - math.comb(24, 8) / math.comb(27, 8)))


def test_expected_categories_of_a_pool_that_repeats_pairs():
    """Of a pool with four views of each of the pairs, rows are drawn, two of a pair as well."""
    data = made_up(pretrain=27, train=2, test=2)
    kinds = torch.full((31,), 11)
    kinds[data.pretrain] = torch.arange(27) % 9
    pretrainer = learner(dataclasses.replace(data, categories=kinds), "smoco", pool=108, batch=9, dictionary=9)
    pretrainer.step()
    expected = 9 * (1 - math.comb(96, 9) / math.comb(108, 9))
    assert cell.coverage(pretrainer)["expected"] == pytest.approx(expected)


def test_random_negatives_are_as_diverse_as_expected():
    """With dictionary and pool small beside the set, a random choice is nearly as many uniform draws."""
    data = made_up(pretrain=400, train=2, test=2)
    kinds = torch.arange(404) % 20
    pretrainer = learner(dataclasses.replace(data, categories=kinds), sampler="random", pool=80, dictionary=8,
                         iterations=0, epochs=1)
    for _ in range(50):
        pretrainer.step()
    found = cell.coverage(pretrainer)
    for name in ("categories_video", "categories_audio"):
        assert found[name] == pytest.approx(found["expected"], abs=0.4)
        assert 5 < found[name] < 8


def test_categories_are_the_mean_of_the_logged_ones(data):
    pretrainer = learner(data)
    logged = torch.stack([pretrainer.step()[-2:] for _ in range(4)]).mean(0)
    found = cell.coverage(pretrainer)
    assert [found["categories_video"], found["categories_audio"]] == pytest.approx(logged.tolist())


# ---------------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize(("changes", "expected"), [
    ({}, [("synthetic_video", 1), ("synthetic_audio", 1)]),
    ({"targets": ""}, []),
    ({"targets": "esc50,hmdb51", "split": 3}, [("esc50", 3), ("hmdb51", 3)]),
    ({"targets": "ucf101,synthetic_audio,esc50", "split": 0},
     [("ucf101", 1), ("ucf101", 2), ("ucf101", 3), ("synthetic_audio", 1), *(("esc50", fold) for fold in range(1, 6))]),
])
def test_targets_and_their_splits(changes, expected):
    assert cell.targets_of(tiny(**changes)) == expected


def test_grids_of_characters_have_no_targets_to_tune_on():
    assert cell.targets_of(tiny("cmacc", "multidigits")) == []


@pytest.mark.parametrize("method", METHODS)
def test_what_an_evaluation_says(data, targets, tmp_path, method):
    pretrainer = learner(data, method)
    if method != "scratch":
        pretrainer.step()
    found = evaluated(pretrainer, tmp_path)
    expected = {"synthetic_video", "synthetic_audio"} | (COVERAGE if method == "cmacc" else set())
    assert set(found) == expected
    assert targets == [("synthetic_video", 1), ("synthetic_audio", 1)]
    assert all(type(value) is float and math.isfinite(value) for value in found.values())


def test_accuracies_are_those_of_fine_tuning_and_their_mean_over_splits(data, targets, tmp_path):
    pretrainer = learner(data, split=0, targets="esc50,ucf101")
    pretrainer.step()
    before = copy.deepcopy(pretrainer.towers.state_dict())
    found = evaluated(pretrainer, tmp_path / "here", seed=9)
    names = ["esc50"] * 5 + ["ucf101"] * 3
    assert targets == list(zip(names, [1, 2, 3, 4, 5, 1, 2, 3], strict=True))
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [f"{n}-{s}" for n, s in targets]
    for name, modality, splits in (("esc50", "audio", 5), ("ucf101", "video", 3)):
        accuracies = []
        for split in range(1, splits + 1):
            part = cell.target_of(pretrainer.recipe, name, split)
            tuner = FineTuner(pretrainer.recipe, pretrainer.towers.trunks[modality], part, modality, 9, CPU,
                              target=name, split=split)
            for _ in range(tuner.total_steps):
                tuner.step()
            accuracies.append(tuner.accuracy())
        assert len(set(accuracies)) > 1
        assert found[name] == pytest.approx(np.mean(accuracies))
    for name, value in pretrainer.towers.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_one_split_is_that_split(data, targets, tmp_path):
    evaluated(learner(data, "scratch", split=2, targets="ucf101"), tmp_path)
    assert targets == [("ucf101", 2)]


def test_encoders_with_ghost_groups_are_fine_tuned(data, targets, tmp_path):
    pretrainer = learner(data, groups=4)
    pretrainer.step()
    assert set(evaluated(pretrainer, tmp_path)) == {"synthetic_video", "synthetic_audio"} | COVERAGE


def test_data_are_read_once_and_as_the_recipe_says(monkeypatch):
    read = []
    monkeypatch.setattr(cell, "load", lambda name, root, **named: read.append((name, named)) or object())
    cell._load.cache_clear()
    try:
        recipe = tiny("cmacc", "ucf101", window=7, finetune_window=9, split=2, size=96, subset=True, targets="hmdb51")
        assert cell.data_of(recipe) is cell.data_of(recipe.replace(method="smoco"))
        cell.target_of(recipe, "hmdb51", 2)
        cell.data_of(recipe.replace(split=3, targets="ucf101,esc10"))
        cell.data_of(tiny("smoco", "multidigits", distinct=3, frequency="zipf", redrawn=True, view="drawing"))
    finally:
        cell._load.cache_clear()
    common = {"size": 96, "subset": True, "redundancy": recipe.redundancy}
    grids_read = {"characters": 2, "pairs": 30, "categories": 0, "distinct": 3, "frequency": "zipf", "redrawn": True,
                  "view": "drawing", "augmented": False}
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
        cell.data_of(tiny("cmacc", "ucf101", **changes))


# ---------------------------------------------------------------------------------------------- characters


def plain_features(pretrainer, part):
    """Features of a lot of pairs, standardised by those trained with, in numpy."""
    trunk = pretrainer.towers.trunks["video"].eval()

    def encoded(mask):
        pictures = torch.cat([pretrainer.data.centred("video", item)[:, 0] for item in mask.nonzero()])
        with torch.no_grad():
            return trunk(pictures).numpy()

    train = encoded(pretrainer.data.train)
    deviation = train.std(0)
    return (encoded(part) - train.mean(0)) / np.where(deviation > 0, deviation, 1)


@pytest.mark.parametrize("method", ["scratch", "smoco", "cmacc"])
def test_characters_are_read_from_every_cell_by_a_linear_probe(tmp_path, method):
    data = grids(train=40, test=30, held_out=20)
    pretrainer = learner(data, method, "multidigits")
    if method != "scratch":
        pretrainer.step()
    found = evaluated(pretrainer, tmp_path, seed=6)
    assert set(found) == PROBES | (COVERAGE if method == "cmacc" else set())
    rates = cosine_rates(50, 0.1, 0.0)
    for name, part in (("linear", data.test), ("linear_held_out", data.held_out)):
        accuracies = []
        for place, characters in enumerate((4, 3)):
            features = [torch.from_numpy(plain_features(pretrainer, each)) for each in (data.train, part)]
            labels = [data.labels[each, place] for each in (data.train, part)]
            pairs = itertools.chain(*zip(features, labels, strict=True))
            options = {"classes": characters, "batch": 256, "rates": rates, "momentum": 0.9, "seed": 6}
            accuracies.append(linear_probe(*pairs, **options)[-1])
        assert found[name] == pytest.approx(np.mean(accuracies), abs=100 / int(part.sum()) / 2 + 1e-9)
        assert found[name] > 40
    assert not any(tmp_path.iterdir())


def test_probing_changes_nothing_and_repeats_itself():
    pretrainer = learner(grids(), "xmoco", "multidigits")
    pretrainer.step()
    before = copy.deepcopy(pretrainer.towers.state_dict())
    assert cell.probe_characters(pretrainer, 3) == cell.probe_characters(pretrainer, 3)
    for name, value in pretrainer.towers.state_dict().items():
        assert torch.equal(value, before[name]), name


# ---------------------------------------------------------------------------------------------- a cell


@pytest.fixture
def store(tmp_path, monkeypatch, data, targets):
    """An empty store; every recipe's data are the made-up ones."""
    monkeypatch.setattr(cell, "data_of", lambda recipe: grids() if recipe.dataset == "multidigits" else data)
    return Store(tmp_path / "runs")


def small_cell(method="cmacc", dataset="synthetic", table="cross_modal", **changes):
    recipe = tiny(method, dataset, **SMALL | changes)
    return Cell(table, method, recipe, 5, "smoke", dataset, cell.identity_of(recipe)[1], 1)


def trained(store, chosen):
    """The result of the cell, and its run."""
    run = store.run(chosen)
    with run.claim():
        run.finish(cell.train(run, tqdm(disable=True), device=CPU))
    return run.result, run


@pytest.mark.parametrize(("method", "steps"), [("cmacc", [4, 2, 2]), ("scratch", [0, 2, 2])])
def test_what_is_trained_for_a_cell(store, monkeypatch, method, steps):
    drawn, draw = [], Pretrainer._draw_pools
    monkeypatch.setattr(Pretrainer, "_draw_pools", lambda self: (drawn.append(self.taken), draw(self)))
    found = list(cell.learners(small_cell(method), CPU))
    assert [type(each) for each in found] == [Pretrainer, FineTuner, FineTuner]
    assert [each.modality for each in found[1:]] == ["video", "audio"]
    assert [each.name for each in found] == ["", "synthetic_video-1", "synthetic_audio-1"]
    assert [each.total_steps for each in found] == steps
    for _ in range(steps[0]):
        found[0].step()
    assert [each.costly_steps for each in found] == [len(drawn), 0, 0] and drawn[:1] == [0][: steps[0]]


@pytest.mark.parametrize(("method", "dataset"), [("cmacc", "synthetic"), ("scratch", "synthetic"),
                                                ("xmoco", "multidigits")])
def test_a_cell_is_its_training_and_evaluation_and_their_cost(store, tmp_path, method, dataset):
    chosen = small_cell(method, dataset)
    result, run = trained(store, chosen)
    cost, trained_on = result.pop("cost"), result.pop("trained_on")
    assert trained_on == (0 if method == "scratch" else int(cell.data_of(chosen.recipe).pretrain.sum()))
    alone = Pretrainer(chosen.recipe, cell.data_of(chosen.recipe), 5, CPU)
    fit(alone, tmp_path, tqdm(disable=True))
    assert result == {"evaluation": chosen.evaluation} | evaluated(alone, tmp_path / "alone", seed=5)
    assert cost["steps"] == (0 if method == "scratch" else 4)
    assert {"seconds", "finished", "commit", "device", "torch", "peak_mb"} <= set(cost)
    assert (run.folder / "checkpoint.pt").exists()
    assert [path.parent for path in run.folder.rglob("*.pt")] == [run.folder]  # none of fine-tuning
    if dataset == "synthetic":
        lines = (run.folder / "synthetic_video-1" / "progress.jsonl").read_text().splitlines()
        assert set(json.loads(lines[-1])) == {"step", "of", "loss", "seconds"}
    if method == "cmacc":
        first = json.loads((run.folder / "progress.jsonl").read_text().splitlines()[0])
        assert {"video", "audio", "loss", "categories_video", "categories_audio"} < set(first)


@pytest.mark.parametrize("end", ["in pre-training", "before the evaluation", "in the second fine-tuning"])
def test_a_cell_that_is_taken_up_again_has_the_undisturbed_result(store, monkeypatch, end):
    chosen = small_cell(table="undisturbed", finetune_epochs=2)
    expected, _ = trained(store, chosen)
    chosen = dataclasses.replace(chosen, table="disturbed")
    steps, tunes = iter(range(2 if end == "in pre-training" else 99)), iter(range(6 if end[:6] == "in the" else 99))
    taken = []

    def counted(kind, left):
        step = kind.step
        return lambda self: (next(left), taken.append((kind.__name__, self.taken)), step(self))[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Pretrainer, "step", counted(Pretrainer, steps))
        patch.setattr(FineTuner, "step", counted(FineTuner, tunes))
        patch.setattr(cell, "fit", lambda *given, **_: every_step(fit, *given))
        if end == "before the evaluation":
            patch.setattr(cell, "evaluate", lambda *_: 1 / 0)
        with pytest.raises((ZeroDivisionError, StopIteration)):
            trained(store, chosen)
    assert store.run(chosen).result is None
    taken.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Pretrainer, "step", counted(Pretrainer, iter(range(99))))
        patch.setattr(FineTuner, "step", counted(FineTuner, iter(range(99))))
        found, _ = trained(store, chosen)
    first = {"in pre-training": ("Pretrainer", 2), "before the evaluation": ("FineTuner", 0),
             "in the second fine-tuning": ("FineTuner", 2)}[end]
    assert taken[0] == first
    for result in (found, expected):
        result.pop("cost")
    assert found == expected


def every_step(fit, learner, *given):
    """`fit` with a report and a checkpoint after every step."""
    learner.steps_per_epoch, usual = 1, learner.steps_per_epoch
    step = learner.step

    def with_epochs():
        learner.steps_per_epoch = usual  # which the step itself must not miss
        values = step()
        learner.steps_per_epoch = 1
        return values

    learner.step = with_epochs
    return fit(learner, *given, checkpoint_seconds=0)
