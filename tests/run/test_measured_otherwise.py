"""Runs that leave their preset in settings of the evaluation alone: they are measured, and nothing is trained."""

import dataclasses
import functools
import json

import pytest
import torch
from made_up_images import use_tiny_trunk
from made_up_skeletons import made_up
from made_up_study import TOY, Toy, Two, learners, run_of
from other_values import others
from states import assert_equal_states

from repro import run_table
from repro.experiments import find_table
from repro.recipe import setting
from repro.run import training
from repro.run.engine import Pool, train_runs
from repro.run.fit import fit, load_checkpoint
from repro.run.store import Run, Store, finished_runs
from repro.skeleton.recipe import SKELETONS

CPU = torch.device("cpu")
SMOKE = {"preset": "smoke", "device": "cpu", "engine": "inline"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probed(Toy):
    scale: float = setting(1.0, "paper", least=0, evaluation=True)


def preset(dataset, method, **changes):
    return Probed(dataset=dataset, method=method).replace(**{"scale": 2.0} | changes)


def measure(learner):
    return {"linear": learner.recipe.scale * learner.model["number"].item()}


STUDY = dataclasses.replace(TOY, name="probed", recipe=Probed, presets={"paper": preset}, measure=measure)


def run(seed=0, method="plain", **changes) -> Run:
    return run_of(STUDY, preset("ucla", method, **changes), seed, "paper", changes)


USUAL, HALF, TENFOLD = run(), run(scale=1.0), run(scale=20.0)


@pytest.fixture
def taken(monkeypatch):
    """The steps that learners have taken: the seed of each."""
    steps, compute = [], Two.compute
    monkeypatch.setattr(Two, "compute", lambda learner: steps.append(learner.seed) or compute(learner))
    return steps


def train_all(store, *runs, study=STUDY, lanes=1):
    """Bring runs to their results; these without what they cost."""
    train_runs(runs, functools.partial(training.train, study=study, device=CPU), store, pool=Pool(lanes=lanes))
    return [{name: value for name, value in store.folder(each).result.items() if name != "cost"} for each in runs]


def alone(each):
    """The same run, which is trained by itself whatever else there is."""
    return dataclasses.replace(each, trained=None)


def losses(folder):
    return [json.loads(line) | {"seconds": 0} for line in (folder / "progress.jsonl").read_text().splitlines()]


def test_its_training_is_the_run_of_its_preset():
    assert USUAL.training is USUAL and alone(HALF).training.id == HALF.id != USUAL.id
    other = run(scale=1.0, depth=3)
    assert HALF.training == USUAL and other.training == run(depth=3)
    assert (HALF.training.changes, other.training.changes) == ({}, {"depth": 3})
    assert run(1, scale=1.0).training == run(1) != USUAL


@pytest.mark.parametrize("order", [(USUAL, HALF, TENFOLD), (HALF, USUAL, TENFOLD), (TENFOLD, HALF, USUAL)])
@pytest.mark.parametrize("lanes", [1, 3])
def test_measured_in_any_order_they_are_trained_once_and_have_the_numbers_of_a_whole_training(
    store, taken, tmp_path, order, lanes
):
    found = train_all(store, *order, lanes=lanes)
    assert taken == [0, 0]
    apart = Store(tmp_path / "apart")
    assert found == train_all(apart, *map(alone, order)) and len({result["linear"] for result in found}) == 3
    assert taken == [0] * 8
    for each in order:
        folder, whole = store.folder(each).trained_in, apart.path(each.id)
        assert folder == store.path(USUAL.id) and losses(folder) == losses(whole)
        assert_equal_states(load_checkpoint(folder)["learner"], load_checkpoint(whole)["learner"])
    assert {*finished_runs(Store(store.root))["id"]} == {each.id for each in order}
    described = json.loads((store.path(USUAL.id) / "recipe.json").read_text())
    assert (described["id"], described["changes"], described["recipe"]["scale"]) == (USUAL.id, {}, 2.0)


def test_later_measuring_takes_no_step_and_leaves_the_finished_run_as_it_is(store, taken):
    train_all(store, dataclasses.replace(USUAL, preset="quick"))  # which has the same recipe
    before = {path: path.read_bytes() for path in store.path(USUAL.id).iterdir() if path.name != "owner.json"}
    taken.clear()
    assert [result["linear"] for result in train_all(store, HALF, TENFOLD)] == pytest.approx([0.2, 4.0])
    assert taken == [] and {path: path.read_bytes() for path in before} == before
    assert Store(store.root).path(HALF.id) == store.path(USUAL.id) / HALF.id
    assert Store(store.root).trained_in(HALF.id) == store.path(USUAL.id)


@pytest.mark.parametrize("first", [HALF, dataclasses.replace(HALF, trained=None)], ids=["otherwise", "by itself"])
def test_a_run_that_two_presets_ask_for_is_measured_once(store, taken, first):
    """Under one of them it measures the training of another run, under the other it is trained by itself."""
    expected = train_all(store, first)
    taken.clear()
    for other in (HALF, dataclasses.replace(HALF, trained=None)):
        assert train_all(Store(store.root), other, study=dataclasses.replace(STUDY, measure=None)) == expected
    assert taken == []


def test_what_is_killed_while_it_is_measured_is_measured_again_alone(store, taken):
    def interrupted(learner):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_all(store, HALF, study=dataclasses.replace(STUDY, measure=interrupted))
    assert taken == [0, 0] and store.folder(HALF).result is None
    assert train_all(store, HALF) == [{"linear": pytest.approx(0.2), "evaluation": 2}] and taken == [0, 0]


@pytest.mark.parametrize("asked", [USUAL, TENFOLD])
def test_what_is_killed_in_training_goes_on_whichever_of_its_runs_is_asked_for(store, taken, monkeypatch, asked):
    def interrupted(learner, compute=Two.compute):
        if taken:
            raise KeyboardInterrupt
        return compute(learner)

    monkeypatch.setattr(Two, "report_steps", 1)
    monkeypatch.setattr(training, "fit", functools.partial(fit, checkpoint_seconds=0))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Two, "compute", interrupted)
        train_all(store, HALF)
    assert taken == [0] and 0 < store.folder(HALF).done == store.folder(asked).done < 1
    assert train_all(store, asked)[0]["linear"] == pytest.approx(0.2 * asked.recipe.scale) and taken == [0, 0]


@pytest.mark.parametrize("lost", [False, True])
def test_a_finished_run_without_weights_stays_as_it_is_and_the_other_trains_itself(store, taken, lost):
    train_all(store, USUAL)
    checkpoint = store.path(USUAL.id) / "checkpoint.pt"
    if lost:
        checkpoint.unlink()
    else:
        checkpoint.write_bytes(b"half of one")
        with pytest.raises(ValueError, match="has lost its weights; give the same command again, and plain"):
            train_all(store, HALF)
    before = {path: path.read_bytes() for path in store.path(USUAL.id).iterdir() if path.is_file()}
    taken.clear()
    assert train_all(store, HALF) == [{"linear": pytest.approx(0.2), "evaluation": 2}] and taken == [0, 0]
    assert store.folder(HALF).trained_in == store.path(HALF.id)
    assert {path: path.read_bytes() for path in store.path(USUAL.id).iterdir() if path.is_file()} == before


def test_a_training_that_another_command_holds_is_held_for_all_its_runs(store, held):
    held(run=USUAL)
    with store.folder(HALF).claim() as claimed:
        assert not claimed


def test_several_measure_a_finished_training_at_once(store, taken, held):
    train_all(store, USUAL)
    taken.clear()
    held(run=USUAL)
    assert train_all(store, HALF) == [{"linear": pytest.approx(0.2), "evaluation": 2}] and taken == []


def test_what_follows_the_first_learner_is_trained_for_each(store, taken):
    first, second = run(method="both"), run(method="both", scale=1.0)
    assert [result["linear"] for result in train_all(store, first, second)] == pytest.approx([2 * 5.2, 5.2])
    assert taken == [0, 0, 10, 10, 10, 10]
    assert [*learners(first.recipe, None, 0, CPU)][1].name == "second"


# ---------------------------------------------------------------------------------------------- all studies


MEASURED = [
    ("taxonomy", {"objectives": "CE"}, {"probe_epochs": 3, "probe_batch": 50, "probe_learning_rate": 1.0,
                                        "probe_standardised_rate": 0.2, "probe_momentum": 0.5,
                                        "probe_final_rate": 0.5}),
    ("image_methods", {"method": "sce"}, {"probe_epochs": 3, "probe_batch": 50, "probe_learning_rate": 1.0,
                                          "probe_momentum": 0.5, "probe_view": "shifted", "probe_padding": 1,
                                          "select": "best_on_test"}),
    ("transfer", {"method": "cmacc"}, {"finetune_epochs": 2, "finetune_batch": 60, "finetune_window": 4,
                                       "finetune_windows": 2, "finetune_learning_rate": 0.01}),
]


@pytest.mark.usefixtures("runs_root")
@pytest.mark.parametrize(("name", "asked", "settings"), MEASURED, ids=lambda value: value if type(value) is str else "")
def test_of_every_study_all_settings_of_the_evaluation_are_measured_without_a_step(
    name, asked, settings, tmp_path, monkeypatch, request
):
    use_tiny_trunk(monkeypatch)
    table = find_table(name)
    study = table.study
    if study.name == "clips":
        request.getfixturevalue("clips_prepared")
    assert {*settings} <= {*study.recipe.evaluation_fields()}
    usual, = table.runs(preset="smoke", device="cpu", **asked)
    for field in study.recipe.evaluation_fields():  # of a new probe too
        settings = {field: getattr(next(others(usual.recipe, field)), field)} | settings
    run_table(name, **SMOKE, **asked)
    pretrainer = type(next(study.learners(*_parts(table, asked), CPU)))
    step = pretrainer.step
    monkeypatch.setattr(pretrainer, "step", None)
    run_table(name, **SMOKE, **asked, **settings)
    monkeypatch.setattr(pretrainer, "step", step)
    other, = table.runs(preset="smoke", device="cpu", **asked, **settings)
    assert other.training == usual and other.digest == usual.digest
    measured = Store().folder(other).result
    expected, = train_all(Store(tmp_path / "apart"), alone(other), study=study)
    assert {name: value for name, value in measured.items() if name != "cost"} == expected
    assert measured != Store().folder(usual).result


def _parts(table, asked):
    each, = table.runs(preset="smoke", device="cpu", **asked)
    return each.recipe, table.study.load(each.recipe), each.seed


def test_probes_along_training_that_are_asked_for_are_part_of_it():
    """Weights along the way are not kept: a run that is to be probed there otherwise is trained."""
    data = made_up()
    study = dataclasses.replace(SKELETONS, load=lambda recipe: data)

    def made(**changes):
        return run_of(study, study.presets["smoke"]("synthetic", "CE", **changes), 0, "smoke", changes)

    otherwise = {"probe_epochs": 5}
    assert made().recipe.probe_every == 1
    for every, apart in ((1, False), (0, False), (2, True)):
        each = made(probe_every=every, **otherwise)
        assert (each.training is each) == apart
