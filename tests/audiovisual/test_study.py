"""What a cell of CM-ACC reports: coverage, fine-tuning, probes of characters; and how it is taken up again."""

import copy
import dataclasses
import itertools
import json

import numpy as np
import pytest
import torch
from made_up_pairs import grids, made_up, tiny
from states import assert_equal_states
from tqdm import tqdm

from repro import table
from repro.audiovisual import study
from repro.audiovisual.finetune import FineTuner
from repro.audiovisual.pretrain import Pretrainer
from repro.audiovisual.recipe import AudioVisualRecipe
from repro.run.evaluate import cosine_rates, linear_probe
from repro.run.fit import fit, load_checkpoint
from repro.run.store import Store

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

    monkeypatch.setattr(study, "target_of", load)
    return asked


@pytest.fixture
def store(tmp_path, monkeypatch, data, targets):
    """An empty store; every recipe's data are the made-up ones."""
    monkeypatch.setattr(study, "data_of", lambda recipe: small_grids() if recipe.dataset == "multidigits" else data)
    return Store(tmp_path / "runs")


def small_grids():
    return grids(train=40, test=30, held_out=20)


def small_cell(method="cmacc", dataset="synthetic", seed=5, **changes):
    return study.CLIPS.cell(tiny(method, dataset, **SMALL | changes), seed, "smoke")


def trained(store, chosen):
    """The result of the cell, and its run."""
    run = store.run(chosen)
    with run.claim():
        run.finish(table.train(run, tqdm(disable=True), study=study.CLIPS, device=CPU))
    return run.result, run


def pretrained(chosen, folder):
    """The cell's pretrainer, trained on its own."""
    folder.mkdir()
    alone = Pretrainer(chosen.recipe, study.data_of(chosen.recipe), chosen.seed, CPU)
    fit(alone, folder, tqdm(disable=True))
    return alone


def tuned(pretrainer, name, modality, split):
    """Accuracy of a fine-tuning on its own."""
    part = study.target_of(pretrainer.recipe, name, split)
    trunk = pretrainer.towers.trunks[modality]
    tuner = FineTuner(pretrainer.recipe, trunk, part, modality, pretrainer.seed, CPU, target=name, split=split)
    for _ in range(tuner.total_steps):
        tuner.step()
    return tuner.accuracy()


def learner(data, method="cmacc", dataset="synthetic", seed=4, **changes):
    return Pretrainer(tiny(method, dataset, **SMALL | changes), data, seed, CPU)


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
    assert study.coverage(pretrainer)["expected"] == pytest.approx(np.mean(counts))


# ---------------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize(("changes", "expected"), [
    ({}, [("synthetic_video", 1), ("synthetic_audio", 1)]),
    ({"targets": ""}, []),
    ({"targets": "esc50,hmdb51", "split": 3}, [("esc50", 3), ("hmdb51", 3)]),
    ({"targets": "ucf101,synthetic_audio,esc50", "split": 0},
     [("ucf101", 1), ("ucf101", 2), ("ucf101", 3), ("synthetic_audio", 1), *(("esc50", fold) for fold in range(1, 6))]),
])
def test_targets_and_their_splits(changes, expected):
    assert study.targets_of(tiny(**changes)) == expected


def test_accuracies_are_those_of_fine_tuning_and_their_mean_over_splits(store, targets, tmp_path):
    chosen = small_cell(split=0, targets="esc50,ucf101", seed=9)
    found, run = trained(store, chosen)
    names = [f"{name}-{split}" for name, split in [*(("esc50", fold) for fold in range(1, 6)), ("ucf101", 1),
                                                   ("ucf101", 2), ("ucf101", 3)]]
    assert sorted(path.name for path in run.folder.iterdir() if path.is_dir()) == names
    pretrainer = pretrained(chosen, tmp_path / "alone")
    before = copy.deepcopy(pretrainer.towers.state_dict())
    for name, modality, splits in (("esc50", "audio", 5), ("ucf101", "video", 3)):
        accuracies = [tuned(pretrainer, name, modality, split) for split in range(1, splits + 1)]
        assert len(set(accuracies)) > 1
        assert found[name] == pytest.approx(np.mean(accuracies))
    for name, value in pretrainer.towers.state_dict().items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize(("asked", "expected"), [
    ("ucf101+esc50", ["ucf101,esc50"]), ("ucf101,esc50", ["ucf101", "esc50"]), ("esc10", ["esc10"]),
    ("ucf101 + esc50, hmdb51", ["ucf101,esc50", "hmdb51"]), (["ucf101+esc50", "esc50"], ["ucf101,esc50", "esc50"]),
])
def test_a_comma_sweeps_targets_and_a_plus_joins_them(asked, expected):
    assert AudioVisualRecipe.parse("targets", asked) == expected


@pytest.mark.parametrize(("asked", "message"), [
    ("ucf", "targets='ucf' is not one of: ucf101, hmdb51"), ("", "targets='' is not one of"),
    ("esc50+esc50", "targets='esc50,esc50' names esc50 twice"), ("esc50,esc50", "targets='esc50,esc50' names esc50"),
    (("esc10", "esc51"), "did you mean 'esc50'"),
])
def test_targets_that_do_not_exist_are_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        AudioVisualRecipe.parse("targets", asked)


def test_data_are_read_once_and_as_the_recipe_says(monkeypatch):
    read = []
    monkeypatch.setattr(study, "load_set", lambda name, root, **named: read.append((name, named)) or object())
    study._load.cache_clear()
    try:
        recipe = tiny("cmacc", "ucf101", window=7, finetune_window=9, split=2, size=96, subset=True, targets="hmdb51")
        assert study.data_of(recipe) is study.data_of(recipe.replace(method="smoco"))
        study.target_of(recipe, "hmdb51", 2)
        study.data_of(recipe.replace(split=3, targets="ucf101,esc10"))
        study.data_of(tiny("smoco", "multidigits", distinct=3, frequency="zipf", redrawn=True, view="drawing"))
    finally:
        study._load.cache_clear()
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
        study.data_of(tiny("cmacc", "ucf101", **changes))


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
def test_characters_are_read_from_every_cell_by_a_linear_probe(store, tmp_path, method):
    chosen = small_cell(method, "multidigits", seed=6, iterations=1)
    found, run = trained(store, chosen)
    assert found.keys() - {"cost", "evaluation", "trained_on"} == PROBES | (COVERAGE if method == "cmacc" else set())
    pretrainer = pretrained(chosen, tmp_path / "alone")
    data = pretrainer.data
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
    assert not any(path.is_dir() for path in run.folder.iterdir())


@pytest.mark.parametrize("method", ["smoco", "cmacc"])
def test_probes_along_training_leave_every_bit_as_it_is(store, method):
    """Those of the last epoch are what is reported."""
    (plain, run), (probed, probed_run) = (
        trained(store, small_cell(method, "multidigits", iterations=10, probe_every=every)) for every in (0, 2)
    )
    assert not (run.folder / "probes.jsonl").exists()
    lines = [json.loads(line) for line in (probed_run.folder / "probes.jsonl").read_text().splitlines()]
    assert [line.pop("step") for line in lines] == [10]  # two epochs of five batches
    assert lines == [{name: plain[name] for name in PROBES}]
    states = [load_checkpoint(each.folder)["learner"] for each in (run, probed_run)]
    assert_equal_states(*states)
    assert plain.pop("cost") and probed.pop("cost") and plain == probed


# ---------------------------------------------------------------------------------------------- a cell


@pytest.mark.parametrize(("method", "dataset"), [("cmacc", "synthetic"), ("scratch", "synthetic"),
                                                ("xmoco", "multidigits")])
def test_a_cell_is_its_training_and_evaluation_and_their_cost(store, tmp_path, method, dataset):
    chosen = small_cell(method, dataset)
    result, run = trained(store, chosen)
    cost, trained_on = result.pop("cost"), result.pop("trained_on")
    assert trained_on == (0 if method == "scratch" else int(study.data_of(chosen.recipe).pretrain.sum()))
    alone = pretrained(chosen, tmp_path / "alone")
    expected = study.probe_characters(alone) if dataset == "multidigits" else {
        f"synthetic_{modality}": tuned(alone, f"synthetic_{modality}", modality, 1) for modality in ("video", "audio")
    }
    expected |= study.coverage(alone) if method == "cmacc" else {}
    assert result == {"evaluation": chosen.evaluation} | expected
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
def test_a_cell_that_is_taken_up_again_has_the_undisturbed_result(store, monkeypatch, tmp_path, end):
    chosen = small_cell(finetune_epochs=2)
    expected, _ = trained(Store(tmp_path / "undisturbed"), chosen)
    steps, tunes = iter(range(2 if end == "in pre-training" else 99)), iter(range(6 if end[:6] == "in the" else 99))
    taken = []

    def counted(kind, left):
        step = kind.step
        return lambda self: (next(left), taken.append((kind.__name__, self.taken)), step(self))[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Pretrainer, "step", counted(Pretrainer, steps))
        patch.setattr(FineTuner, "step", counted(FineTuner, tunes))
        patch.setattr(table, "fit", lambda *given, **_: every_step(fit, *given))
        if end == "before the evaluation":
            patch.setitem(vars(study.CLIPS), "measure", lambda _: 1 / 0)
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


def test_a_cell_that_is_evaluated_again_trains_no_encoder_anew(store, monkeypatch):
    """Its fine-tunings, which left no checkpoint, are made again, and come to what they came to."""
    chosen = small_cell()
    before, _ = trained(store, chosen)
    monkeypatch.setattr(Pretrainer, "step", lambda _: pytest.fail("an encoder was trained again"))
    again = dataclasses.replace(chosen, evaluation=chosen.evaluation + 1)
    assert store.run(chosen).result is not None and store.run(again).result is None
    found, _ = trained(store, again)
    assert found == before | {"evaluation": again.evaluation}
