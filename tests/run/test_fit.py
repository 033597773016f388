"""Training by steps: what is reported, that it goes on after an interruption, and losses that are not finite."""

import contextlib
import io
import json
import math

import pytest
import torch
from ended import finish
from states import assert_equal_states
from tqdm.auto import tqdm
from walks import Interrupted, TimedWalk, Walk, progress, train

from repro.run import fit as fitting
from repro.run.fit import NonFiniteLoss, fit, load_checkpoint, save_checkpoint

# what is reported


@pytest.mark.parametrize(("steps", "epoch", "most", "expected"), [
    (11, 4, 50, [4, 8, 11]), (130, 120, 50, [50, 100, 130]), (13, 120, 5, [5, 10, 13]), (13, 3, 5, [3, 6, 9, 12, 13]),
])
def test_progress_has_the_mean_of_every_term_once_an_epoch_or_after_fewer_steps(
    tmp_path, steps, epoch, most, expected
):
    learner = Walk(total_steps=steps, steps_per_epoch=epoch)
    learner.report_steps = most
    spent = train(learner, tmp_path)
    assert spent["steps"] == steps and spent["seconds"] >= 0 and type(spent["steps"]) is float
    lines = progress(tmp_path, seconds=True)
    assert [line["step"] for line in lines] == expected
    for line, before in zip(lines, [0, *expected], strict=False):
        taken = range(before + 1, line["step"] + 1)
        assert list(line) == ["step", "loss", "size", "seconds"]
        for column, name in enumerate(learner.terms):
            mean = sum(float(learner.history[step][column]) for step in taken) / len(taken)
            assert line[name] == pytest.approx(mean, rel=1e-14)


def test_checkpoints_are_saved_when_their_time_has_come(tmp_path, clock, monkeypatch):
    saved = []
    save = fitting.save_checkpoint

    def slow(folder, state):
        saved.append(state["step"])
        save(folder, state)
        clock.now += 1000  # which is no time of steps

    monkeypatch.setattr(fitting, "save_checkpoint", slow)
    spent = train(TimedWalk(clock), tmp_path, checkpoint_seconds=5)  # a report every three steps, thus seconds
    assert saved == [6, 12, 18, 20]
    assert spent["seconds"] == 20.0
    assert [line["seconds"] for line in progress(tmp_path, seconds=True)] == [3, 6, 9, 12, 15, 18, 20]


def test_seconds_are_summed_over_interruptions_without_what_was_lost_and_without_probes(tmp_path, clock):
    def slow():
        clock.now += 1000
        return {}

    with pytest.raises(Interrupted):
        train(TimedWalk(clock, fails_at=12), tmp_path, checkpoint_seconds=5)  # saved at 6, reported at 9, lost after
    clock.now += 1000
    assert train(TimedWalk(clock), tmp_path, checkpoint_seconds=5, probe=slow, probe_steps=5)["seconds"] == 20.0
    lines = progress(tmp_path, seconds=True)
    assert [line["seconds"] for line in lines] == [line["step"] for line in lines]


def test_nothing_to_train(tmp_path):
    learner = Walk(total_steps=0)
    for _ in range(2):
        cost = train(learner, tmp_path)
        assert cost["seconds"] == cost["steps"] == 0
        state = load_checkpoint(tmp_path)
        assert state["step"] == 0
        assert_equal_states(state["learner"], Walk().state_dict())
    assert not (tmp_path / "progress.jsonl").exists() and learner.history == {}


def test_a_training_that_had_come_to_its_end_says_where_and_with_which_code(tmp_path, monkeypatch):
    now = {"commit": "first", "device": "one"}
    monkeypatch.setattr("repro.run.fit.cost", lambda device: {**now})
    cost = train(Walk(), tmp_path)
    assert cost.keys() == {"seconds", "steps"}  # whoever has asked for it knows
    now["commit"], again = "second", Walk(fails_at=1)
    assert train(again, tmp_path) == cost | {"commit": "first", "device": "one", "code": ""}
    assert again.taken == 20 and again.history == {}


def test_a_training_that_goes_on_under_other_code_or_elsewhere_says_so_and_is_of_both(tmp_path, monkeypatch, capsys):
    now = {"device": "one"}
    for name in ("cost", "hardware"):
        monkeypatch.setattr(f"repro.run.fit.{name}", lambda device: {**now})
    with pytest.raises(Interrupted):
        train(Walk(fails_at=8), tmp_path, checkpoint_seconds=0, code="before")
    assert "other code" not in capsys.readouterr().err
    now["device"] = "two"
    with pytest.raises(Interrupted):
        train(Walk(fails_at=15), tmp_path, checkpoint_seconds=0, code="after")
    assert f"{tmp_path} was begun by other code" in capsys.readouterr().err
    cost = train(Walk(), tmp_path, code="before")  # the change is undone
    assert f"{tmp_path} was begun by other code" in capsys.readouterr().err
    assert cost["code"] == load_checkpoint(tmp_path)["cost"]["code"] == "before; after"
    assert cost["device"] == "one; two"


def test_one_bar_serves_several_trainings(tmp_path):
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
    with tqdm(total=5, file=io.StringIO()) as bar:
        finish(fit(Walk(), tmp_path / "first", bar))
        assert (bar.initial, bar.n, bar.total) == (0, 20, 21)  # the evaluation is to come
        with pytest.raises(Interrupted):
            finish(fit(Walk(fails_at=11), tmp_path / "second", bar, checkpoint_seconds=0))
        assert (bar.initial, bar.n, bar.total) == (0, 9, 21)
        finish(fit(Walk(), tmp_path / "second", bar))
        assert (bar.initial, bar.n, bar.total) == (9, 20, 21)
        finish(fit(Walk(total_steps=0), tmp_path / "third", bar))
        assert (bar.initial, bar.n, bar.total) == (0, 0, 1)


# probes along training


def probing(learner, **options):
    """What `train` is given to measure the weights every five steps; `learner` is a walk of epochs of three."""
    return {"probe": lambda: {"norm": learner.weight.norm().item(), "taken": learner.taken}, "probe_steps": 5} | options


def probes(folder):
    return [json.loads(line) for line in (folder / "probes.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    """The rows of a walk that nothing interrupts."""
    folder, learner = tmp_path_factory.mktemp("probed"), Walk()
    train(learner, folder, **probing(learner))
    return probes(folder)


def test_a_probe_has_a_line_each_time_and_changes_nothing(tmp_path, undisturbed, probed):
    learner = Walk()
    spent = train(learner, tmp_path, **probing(learner))
    assert_equal_states(learner.state_dict(), undisturbed[0])
    assert spent["steps"] == 20.0
    assert [(row["step"], row["taken"]) for row in probed] == [(5, 5), (10, 10), (15, 15), (20, 20)]
    assert probed[-1]["norm"] == learner.weight.norm().item() and len({row["norm"] for row in probed}) == 4
    assert {line["step"] for line in progress(tmp_path)} == {*range(3, 21, 3), 5, 10, 20}
    for options in ({"probe_steps": 0}, {"probe": None}):
        folder = tmp_path / str(options)
        folder.mkdir()
        train(Walk(), folder, **probing(learner, **options))
        assert not (folder / "probes.jsonl").exists() and progress(folder) == undisturbed[1]


@pytest.mark.parametrize("step", [1, 4, 5, 6, 10, 19, 20])
def test_probes_of_a_resumed_training_are_there_once(tmp_path, probed, step):
    for fails_at, seconds in ((step, 0), (min(step + 4, 20), 60), (None, 0)):  # the second is lost, with its probes
        learner = Walk(fails_at=fails_at)
        with contextlib.suppress(Interrupted):
            train(learner, tmp_path, checkpoint_seconds=seconds, **probing(learner))
    assert probes(tmp_path) == probed


# interruptions


@pytest.mark.parametrize("step", range(1, 21))
def test_resuming_after_any_step_is_said_and_gives_the_undisturbed_run(tmp_path, undisturbed, step, capsys):
    with pytest.raises(Interrupted):
        train(Walk(fails_at=step), tmp_path, checkpoint_seconds=0)
    assert capsys.readouterr().err == ""
    learner, reported = Walk(), (step - 1) // 3 * 3
    spent = train(learner, tmp_path, checkpoint_seconds=0)
    assert capsys.readouterr().err == (f"{tmp_path} continues after step {reported} of 20\n" if reported else "")
    assert min(learner.history) == reported + 1  # it went on from the last report and repeated nothing else
    assert spent["steps"] == 20.0
    assert_equal_states(learner.state_dict(), undisturbed[0])
    assert_equal_states(load_checkpoint(tmp_path)["learner"], undisturbed[0])
    assert progress(tmp_path) == undisturbed[1]


TAILS = ['{"step": 12, "lo', "\x00\x00\x00", '{"step": 12, "loss": 1.0}\n{"st', "3", '{"step": "x"}', '{"step": NaN}',
         "\udcff"]


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("checkpoint", [True, False])
def test_what_a_crash_left_after_the_checkpoint_is_dropped(tmp_path, probed, checkpoint, tail):
    with pytest.raises(Interrupted):
        learner = Walk(fails_at=11)
        train(learner, tmp_path, checkpoint_seconds=0 if checkpoint else 60, **probing(learner))
    for name in ("progress", "probes"):
        with (tmp_path / f"{name}.jsonl").open("a", errors="surrogateescape") as file:
            file.write(tail)
    learner = Walk()
    train(learner, tmp_path, **probing(learner))
    assert min(learner.history) == (11 if checkpoint else 1)
    assert probes(tmp_path) == probed and {line["step"] for line in progress(tmp_path)} == {*range(3, 21, 3), 5, 10, 20}


@pytest.mark.parametrize("change", [
    lambda state: {name: part for name, part in state.items() if name != "taken"},
    lambda state: state | {"scaler": 1.0}, lambda state: state | {"model": {"weight": torch.zeros(6)}},
    *(lambda state, change=change: state | change for change in (
        {"model": 3}, {"optimiser": "a"}, {"generator": None}, {"taken": "9"}, {"precision": "float9"})),
], ids=["a part less", "a part more", "another shape", *(f"another {what}" for what in (
    "model", "optimiser", "generator", "count", "precision"))])
def test_the_state_of_another_version_is_refused_and_left(tmp_path, undisturbed, change):
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(Interrupted):
        train(Walk(fails_at=11), folder, checkpoint_seconds=0)
    state = load_checkpoint(folder)
    save_checkpoint(folder, state | {"learner": change(state["learner"])})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError) as raised:
        train(Walk(), folder)
    message = str(raised.value)
    assert message.startswith(f"{folder} was begun by another version of this project or learner, or on ")
    assert message.endswith("move that folder away: then the run starts anew")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    folder.rename(tmp_path / "away")
    folder.mkdir()
    train(Walk(), folder)
    assert_equal_states(load_checkpoint(folder)["learner"], undisturbed[0])


# losses that are not finite


@pytest.mark.parametrize(("value", "column"), [(math.nan, 0), (-math.inf, 1)])
@pytest.mark.parametrize("step", [1, 11, 12, 20])
def test_a_loss_that_is_not_finite_names_term_and_step(tmp_path, undisturbed, value, column, step):
    bad = {step: {column: value}, step + 1: {0: math.nan, 1: math.nan}}
    with pytest.raises(NonFiniteLoss, match=rf"^{Walk.terms[column]} is {value} at step {step};"):
        train(Walk(bad=bad), tmp_path, checkpoint_seconds=0)
    sound = (step - 1) // 3 * 3  # the last report before the step
    state = load_checkpoint(tmp_path)
    assert (state is None) if sound == 0 else (state["step"] == sound)
    assert sound == 0 or progress(tmp_path) == undisturbed[1][: sound // 3]
    learner = Walk()
    train(learner, tmp_path)  # without the bad step, from the sound state
    assert_equal_states(learner.state_dict(), undisturbed[0])
    assert progress(tmp_path) == undisturbed[1]


@pytest.mark.parametrize("step", [9, 20])
def test_of_an_update_that_leaves_no_finite_weights_nothing_is_saved(tmp_path, undisturbed, step):
    class Diverging(Walk):
        def step(self):
            values = super().step()
            if self.taken == step:  # after a finite loss
                self.weight.data[2] = math.inf
            return values

    with pytest.raises(NonFiniteLoss, match=rf"^weights are not finite after step {step}; lower the learning rate"):
        train(Diverging(), tmp_path, checkpoint_seconds=0, probe=lambda: {"linear": math.inf}, probe_steps=step)
    sound = (step - 1) // 3 * 3
    assert load_checkpoint(tmp_path)["step"] == sound and progress(tmp_path) == undisturbed[1][: sound // 3]
    assert not (tmp_path / "probes.jsonl").exists()
    learner = Walk()
    train(learner, tmp_path)
    assert_equal_states(learner.state_dict(), undisturbed[0])
