import hashlib
import io
import json
import math
import os
import random
import types
from pathlib import Path

import pytest
import torch
from tqdm.auto import tqdm

from repro.run import fit as fitting
from repro.run.fit import NonFiniteLoss, fit, load_checkpoint, save_checkpoint
from repro.skeleton import pretrain
from repro.skeleton.data import SkeletonSet
from repro.skeleton.recipe import smoke


class Interrupted(Exception):
    """Stands for whatever ends a process in the middle of training."""


class Walk:
    """A learner of five numbers with all the kinds of state there are: weights, optimiser, generator, a counter.

    Attributes:
        history: the losses of the steps taken by this object, by step.
        fails_at: the step that raises instead of being taken.
        bad: the terms that are not finite, by step: {step: {column: value}}.
    """

    terms = ("loss", "size")

    def __init__(self, total_steps=20, steps_per_epoch=3, fails_at=None, bad=None):
        self.total_steps, self.steps_per_epoch = total_steps, steps_per_epoch
        self.fails_at, self.bad = fails_at, bad or {}
        self.weight = torch.linspace(-1, 1, 5).requires_grad_()
        self.optimiser = torch.optim.Adam([self.weight], lr=0.1)
        self.generator = torch.Generator().manual_seed(7)
        self.taken, self.history = 0, {}

    def step(self):
        if self.taken + 1 == self.fails_at:
            raise Interrupted
        target = torch.randn(5, generator=self.generator)
        loss = (self.weight - target).square().sum()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.taken += 1
        values = torch.stack([loss.detach(), self.weight.detach().norm()])
        for column, value in self.bad.get(self.taken, {}).items():
            values[column] = value
        self.history[self.taken] = values.tolist()
        return values

    def state_dict(self):
        return {"weight": self.weight.detach().clone(), "optimiser": self.optimiser.state_dict(),
                "generator": self.generator.get_state(), "taken": self.taken}

    def load_state_dict(self, state):
        with torch.no_grad():
            self.weight.copy_(state["weight"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.generator.set_state(state["generator"])
        self.taken = state["taken"]


def train(learner, folder, **options):
    with tqdm(file=io.StringIO()) as bar:
        return fit(learner, folder, bar, **options)


def progress(folder, *, seconds=False):
    """The lines of progress.jsonl, without the seconds unless they are asked for, and without the number of steps."""
    lines = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
    assert len({line.pop("of") for line in lines}) == 1
    return lines if seconds else [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def same(state, other):
    """Assert that two states agree to the last bit, in every tensor and number."""
    torch.testing.assert_close(state, other, rtol=0, atol=0)


@pytest.fixture
def clock(monkeypatch):
    """Time for `fit` that passes only when `clock.now` is raised."""
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(fitting, "time", types.SimpleNamespace(monotonic=lambda: clock.now))
    return clock


class TimedWalk(Walk):
    """A walk whose every step takes a second."""

    def __init__(self, clock, **options):
        super().__init__(**options)
        self.clock = clock

    def step(self):
        self.clock.now += 1
        return super().step()


# what is reported


def test_progress_has_the_mean_of_every_term_once_an_epoch_and_at_the_end(tmp_path):
    learner = Walk(total_steps=11, steps_per_epoch=4)
    spent = train(learner, tmp_path)
    assert spent["steps"] == 11.0 and spent["seconds"] >= 0 and type(spent["steps"]) is float
    lines = progress(tmp_path, seconds=True)
    assert [list(line) for line in lines] == [["step", "loss", "size", "seconds"]] * 3
    assert [line["step"] for line in lines] == [4, 8, 11]
    for line, steps in zip(lines, (range(1, 5), range(5, 9), range(9, 12)), strict=True):
        for column, name in enumerate(learner.terms):
            mean = sum(learner.history[step][column] for step in steps) / len(steps)
            assert line[name] == pytest.approx(mean, rel=1e-14)


def test_long_epochs_report_every_fifty_steps(tmp_path):
    train(Walk(total_steps=130, steps_per_epoch=120), tmp_path)
    assert [line["step"] for line in progress(tmp_path)] == [50, 100, 130]


@pytest.mark.parametrize(("steps_per_epoch", "expected"), [(120, [5, 10, 13]), (3, [3, 6, 9, 12, 13])])
def test_reports_may_be_asked_for_more_often(tmp_path, steps_per_epoch, expected):
    learner = Walk(total_steps=13, steps_per_epoch=steps_per_epoch)
    train(learner, tmp_path, report_steps=5)
    lines = progress(tmp_path)
    assert [line["step"] for line in lines] == expected
    first, last = 1 + expected[-2], 13
    mean = sum(learner.history[step][0] for step in range(first, last + 1)) / (last + 1 - first)
    assert lines[-1]["loss"] == pytest.approx(mean, rel=1e-14)


def test_final_checkpoint_holds_the_final_state(tmp_path):
    learner = Walk()
    train(learner, tmp_path)
    state = load_checkpoint(tmp_path)
    assert state["step"] == 20
    same(state["learner"], learner.state_dict())


def test_checkpoints_are_saved_when_their_time_has_come(tmp_path, clock, monkeypatch):
    saved = []
    save = fitting.save_checkpoint
    monkeypatch.setattr(
        fitting, "save_checkpoint", lambda folder, state: (saved.append(state["step"]), save(folder, state))
    )
    spent = train(TimedWalk(clock), tmp_path, checkpoint_seconds=5)  # a report every three steps, thus seconds
    assert saved == [6, 12, 18, 20]
    assert spent["seconds"] == 20.0
    assert [line["seconds"] for line in progress(tmp_path, seconds=True)] == [3, 6, 9, 12, 15, 18, 20]


def test_seconds_are_summed_over_interruptions_without_what_was_lost(tmp_path, clock):
    with pytest.raises(Interrupted):
        train(TimedWalk(clock, fails_at=12), tmp_path, checkpoint_seconds=5)  # saved at 6, reported at 9, lost after
    clock.now += 1000
    spent = train(TimedWalk(clock), tmp_path, checkpoint_seconds=5)
    assert spent["seconds"] == 20.0
    assert [line["seconds"] for line in progress(tmp_path, seconds=True)] == [3, 6, 9, 12, 15, 18, 20]


def test_nothing_to_train(tmp_path):
    learner = Walk(total_steps=0)
    for _ in range(2):
        assert train(learner, tmp_path) == {"seconds": 0.0, "steps": 0.0}
        state = load_checkpoint(tmp_path)
        assert state["step"] == 0
        same(state["learner"], Walk().state_dict())
    assert not (tmp_path / "progress.jsonl").exists() and learner.history == {}


def test_a_finished_training_takes_no_step(tmp_path):
    train(Walk(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    again = Walk(fails_at=1)
    assert train(again, tmp_path)["steps"] == 20.0
    assert again.taken == 20 and again.history == {}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_one_bar_serves_several_trainings(tmp_path):
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
    with tqdm(total=5, file=io.StringIO()) as bar:
        fit(Walk(), tmp_path / "first", bar)
        assert (bar.initial, bar.n, bar.total) == (0, 20, 20)
        with pytest.raises(Interrupted):
            fit(Walk(fails_at=11), tmp_path / "second", bar, checkpoint_seconds=0)
        assert (bar.initial, bar.n, bar.total) == (0, 9, 20)
        fit(Walk(), tmp_path / "second", bar)
        assert (bar.initial, bar.n, bar.total) == (9, 20, 20)
        fit(Walk(total_steps=0), tmp_path / "third", bar)
        assert (bar.initial, bar.n, bar.total) == (0, 0, 0)


# interruptions


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Final state and progress of a walk of 20 steps that nothing interrupts."""
    folder, learner = tmp_path_factory.mktemp("undisturbed"), Walk()
    train(learner, folder)
    return learner.state_dict(), progress(folder)


@pytest.mark.parametrize("step", range(1, 21))
def test_resuming_after_any_step_gives_the_undisturbed_run(tmp_path, undisturbed, step):
    with pytest.raises(Interrupted):
        train(Walk(fails_at=step), tmp_path, checkpoint_seconds=0)
    learner = Walk()
    spent = train(learner, tmp_path, checkpoint_seconds=0)
    assert min(learner.history) == (step - 1) // 3 * 3 + 1  # it went on from the last report and repeated nothing else
    assert spent["steps"] == 20.0
    same(learner.state_dict(), undisturbed[0])
    same(load_checkpoint(tmp_path)["learner"], undisturbed[0])
    assert progress(tmp_path) == undisturbed[1]


@pytest.mark.parametrize("seed", range(5))
def test_resuming_many_times_gives_the_undisturbed_run(tmp_path, undisturbed, seed, clock):
    draw = random.Random(seed)
    steps = sorted(draw.sample(range(1, 21), 6))
    for step in steps:
        with pytest.raises(Interrupted):
            train(TimedWalk(clock, fails_at=step), tmp_path, checkpoint_seconds=draw.choice([0, 4, 7]))
    learner = Walk()
    train(learner, tmp_path)
    same(learner.state_dict(), undisturbed[0])
    assert progress(tmp_path) == undisturbed[1], f"interrupted before the steps {steps}"


TAILS = ['{"step": 12, "lo', '{"step": 12', "{", "\x00\x00\x00", '{"step": 12, "loss": 1.0}\n{"st', "3", "[]",
         '{"loss": 1}', '{"step": null}', '{"step": "x"}', '{"step": NaN}', "\udcff"]


@pytest.mark.parametrize("tail", TAILS)
def test_what_a_crash_left_after_the_checkpoint_is_dropped(tmp_path, undisturbed, tail):
    with pytest.raises(Interrupted):
        train(Walk(fails_at=11), tmp_path, checkpoint_seconds=0)
    with (tmp_path / "progress.jsonl").open("a", errors="surrogateescape") as file:
        file.write(tail)
    train(Walk(), tmp_path)
    assert progress(tmp_path) == undisturbed[1]


def test_progress_without_a_checkpoint_starts_anew(tmp_path, undisturbed):
    (tmp_path / "progress.jsonl").write_text('{"step": 3, "loss": 1.0}\n{"step": 6, "lo')
    train(Walk(), tmp_path)
    assert progress(tmp_path) == undisturbed[1]


# damaged checkpoints


@pytest.fixture
def two(tmp_path):
    """A folder with a checkpoint at step 9 and the previous one at step 6."""
    with pytest.raises(Interrupted):
        train(Walk(fails_at=11), tmp_path, checkpoint_seconds=0)
    assert load_checkpoint(tmp_path)["step"] == 9
    return tmp_path


def truncated(content):
    return content[: len(content) // 2]


def without_its_end(content):
    return content[:-1]


def empty(content):
    return b""


def garbage(content):
    return random.Random(0).randbytes(len(content))


def zeros(content):
    return bytes(len(content))


def text(content):
    return b"<html>404 not found</html>"


def a_page_of_zeros(content):
    middle = len(content) // 2
    return content[:middle] + bytes(512) + content[middle + 512 :]


def an_empty_archive(content):
    return b"PK\x05\x06" + bytes(18)


def another_pickle(content):
    return b"\x80\x04N."


def sealed_garbage(content):
    inside = garbage(content)
    return inside + hashlib.sha256(inside).digest()


def flipped(content, position):
    return content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :]


DAMAGES = [
    truncated, without_its_end, empty, garbage, zeros, text, a_page_of_zeros, an_empty_archive, another_pickle,
    sealed_garbage,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_falls_back_to_the_previous(two, undisturbed, damage, capsys):
    path = two / "checkpoint.pt"
    path.write_bytes(damage(path.read_bytes()))
    capsys.readouterr()
    learner = Walk()
    train(learner, two)
    assert f"{path} is damaged (" in capsys.readouterr().err
    assert min(learner.history) == 7
    same(learner.state_dict(), undisturbed[0])
    assert progress(two) == undisturbed[1]


def test_a_flipped_byte_inside_a_tensor_is_noticed(two, capsys):
    path = two / "checkpoint.pt"
    content, weight = path.read_bytes(), load_checkpoint(two)["learner"]["weight"].numpy().tobytes()
    assert content.count(weight) == 1
    capsys.readouterr()
    for byte in range(len(weight)):
        path.write_bytes(flipped(content, content.index(weight) + byte))
        assert load_checkpoint(two)["step"] == 6
        assert f"{path} is damaged (checksum " in capsys.readouterr().err


def test_a_flipped_bit_anywhere_is_noticed(two):
    path = two / "checkpoint.pt"
    content, draw = path.read_bytes(), random.Random(0)
    for position in {0, len(content) - 1} | {draw.randrange(len(content)) for _ in range(300)}:
        bit = 1 << draw.randrange(8)
        path.write_bytes(content[:position] + bytes([content[position] ^ bit]) + content[position + 1 :])
        assert load_checkpoint(two)["step"] == 6, f"bit {bit} of byte {position}"


def test_a_flipped_attribute_in_the_list_of_members_is_noticed(two):
    path = two / "checkpoint.pt"
    content = path.read_bytes()
    record = content.rindex(b"PK\x01\x02", 0, content.rindex(b"/data/0"))
    position = record + 38  # its external attributes; where bit 4 marks a folder, torch returns unwritten memory
    path.write_bytes(content[:position] + bytes([content[position] ^ 0x10]) + content[position + 1 :])
    assert load_checkpoint(two)["step"] == 6


def test_a_damaged_checkpoint_is_set_aside(two, capsys):
    path = two / "checkpoint.pt"
    damaged = truncated(path.read_bytes())
    path.write_bytes(damaged)
    assert load_checkpoint(two)["step"] == 6
    assert (two / "checkpoint.damaged.pt").read_bytes() == damaged and not path.exists()
    capsys.readouterr()
    assert load_checkpoint(two)["step"] == 6
    assert capsys.readouterr().err == ""  # it is said once


def test_a_removed_checkpoint_falls_back_to_the_previous(two, undisturbed):
    (two / "checkpoint.pt").unlink()
    learner = Walk()
    train(learner, two)
    assert min(learner.history) == 7
    same(learner.state_dict(), undisturbed[0])
    assert progress(two) == undisturbed[1]


@pytest.mark.parametrize("damage", [truncated, zeros])
def test_two_damaged_checkpoints_start_anew(two, undisturbed, damage, capsys):
    names = ("checkpoint.pt", "checkpoint.previous.pt")
    for name in names:
        (two / name).write_bytes(damage((two / name).read_bytes()))
    capsys.readouterr()
    learner = Walk()
    train(learner, two)
    told = capsys.readouterr().err
    assert all(f"{two / name} is damaged (" in told for name in names)
    assert min(learner.history) == 1
    same(learner.state_dict(), undisturbed[0])
    assert progress(two) == undisturbed[1]


def test_a_run_that_is_taken_up_again_says_after_which_step(tmp_path, capsys):
    with pytest.raises(Interrupted):
        train(Walk(fails_at=8), tmp_path, checkpoint_seconds=0)
    assert capsys.readouterr().err == ""
    train(Walk(), tmp_path)
    assert capsys.readouterr().err == f"{tmp_path} continues after step 6 of 20\n"
    train(Walk(), tmp_path)
    assert capsys.readouterr().err == ""  # it was at its end


def test_a_sound_previous_checkpoint_is_not_mentioned(two, capsys):
    capsys.readouterr()
    load_checkpoint(two)
    assert capsys.readouterr().err == ""


def test_a_checkpoint_that_would_run_code_is_not_loaded(two, capsys):
    archive = io.BytesIO()
    torch.save({"step": 9, "seconds": 0.0, "learner": Path("anything but data")}, archive)
    content = archive.getvalue()
    (two / "checkpoint.pt").write_bytes(content + hashlib.sha256(content).digest())
    assert load_checkpoint(two)["step"] == 6
    assert "checkpoint.pt is damaged (" in capsys.readouterr().err


def test_a_checkpoint_without_a_hash_as_the_first_version_wrote_it_is_set_aside(tmp_path, undisturbed, capsys):
    train(Walk(), tmp_path)
    state = load_checkpoint(tmp_path)
    torch.save(state, tmp_path / "checkpoint.pt")
    capsys.readouterr()
    train(Walk(), tmp_path)
    assert "checkpoint.pt is damaged (" in capsys.readouterr().err
    same(load_checkpoint(tmp_path)["learner"], undisturbed[0])


@pytest.mark.parametrize("change", [
    lambda state: {name: part for name, part in state.items() if name != "taken"},
    lambda state: state | {"scaler": 1.0}, lambda state: state | {"weight": torch.zeros(6)},
], ids=["a part less", "a part more", "another shape"])
def test_the_state_of_another_version_is_refused_and_left(tmp_path, undisturbed, change):
    folder = tmp_path / "cell"
    folder.mkdir()
    with pytest.raises(Interrupted):
        train(Walk(fails_at=11), folder, checkpoint_seconds=0)
    state = load_checkpoint(folder)
    save_checkpoint(folder, state | {"learner": change(state["learner"])})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError) as raised:
        train(Walk(), folder)
    message = str(raised.value)
    assert message.startswith(f"{folder} was begun by another version of this project, whose state does not fit (")
    assert message.endswith("); move that folder away, and the cell starts anew")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    folder.rename(tmp_path / "away")
    folder.mkdir()
    train(Walk(), folder)
    same(load_checkpoint(folder)["learner"], undisturbed[0])


# deaths while a checkpoint is written


class Killed(BaseException):
    """Ends the process as SIGKILL does: what is on disk at that moment stays, and nothing is tidied up."""


@pytest.fixture
def dying(monkeypatch):
    """Makes the next `save_checkpoint` die at a moment; returns a function that takes the moment and the folder."""

    def attempt(moment, folder):
        replace, write, moves = os.replace, Path.write_bytes, []

        def half_write(path, content):
            write(path, truncated(content) if moment == "half of the file" else content)
            if moment in ("half of the file", "before it is read back"):
                raise Killed

        def counted_replace(source, target):
            moves.append(Path(target).name)
            if moment == f"before {moves[-1]}":
                raise Killed
            replace(source, target)
            if moment == f"after {moves[-1]}":
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", half_write)
            patch.setattr(os, "replace", counted_replace)
            patch.setattr(Path, "unlink", lambda path, missing_ok=False: None)
            with pytest.raises(Killed):
                save_checkpoint(folder, {"step": 12, "seconds": 0.0, "learner": {"taken": 12}})

    return attempt


MOMENTS = {
    "half of the file": 9, "before it is read back": 9, "before checkpoint.previous.pt": 9,
    "after checkpoint.previous.pt": 9, "before checkpoint.pt": 9, "after checkpoint.pt": 12,
}


@pytest.mark.parametrize(("moment", "step"), MOMENTS.items())
def test_a_kill_inside_the_write_leaves_a_sound_checkpoint(two, dying, capsys, moment, step):
    capsys.readouterr()
    dying(moment, two)
    assert load_checkpoint(two)["step"] == step
    assert "damaged" not in capsys.readouterr().err  # nothing was left half-written under its final name
    save_checkpoint(two, {"step": 15, "seconds": 0.0, "learner": {}})  # and the next save goes through
    assert load_checkpoint(two)["step"] == 15
    (two / "checkpoint.pt").unlink()
    assert load_checkpoint(two)["step"] in (9, 12)


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if "previous" not in moment])
def test_a_kill_inside_the_first_write_leaves_all_or_nothing(tmp_path, dying, capsys, moment):
    dying(moment, tmp_path)
    state = load_checkpoint(tmp_path)
    saved = {"step": 12, "seconds": 0.0, "learner": {"taken": 12}}
    assert state == (saved if moment == "after checkpoint.pt" else None)
    assert "damaged" not in capsys.readouterr().err
    save_checkpoint(tmp_path, {"step": 15, "seconds": 0.0, "learner": {}})
    assert load_checkpoint(tmp_path)["step"] == 15


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if "previous" not in moment])
def test_a_kill_inside_the_write_after_a_damaged_checkpoint(two, dying, moment):
    path = two / "checkpoint.pt"
    path.write_bytes(truncated(path.read_bytes()))
    assert load_checkpoint(two)["step"] == 6
    dying(moment, two)  # the damaged one does not take the place of the sound previous one
    assert load_checkpoint(two)["step"] == (12 if moment == "after checkpoint.pt" else 6)


def test_a_checkpoint_that_cannot_be_read_back_replaces_nothing(two, monkeypatch):
    write = Path.write_bytes

    def bad_disk(path, content):
        write(path, flipped(content, 700))

    before = {path.name: path.read_bytes() for path in two.iterdir()}
    monkeypatch.setattr(Path, "write_bytes", bad_disk)
    with pytest.raises(ValueError, match="checksum"):
        save_checkpoint(two, {"step": 12, "seconds": 0.0, "learner": {"weight": torch.ones(500)}})
    assert {path.name: path.read_bytes() for path in two.iterdir()} == before


# losses that are not finite


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("step", [1, 10, 11, 12, 19, 20])
def test_a_loss_that_is_not_finite_names_term_and_step(tmp_path, undisturbed, value, column, step):
    bad = {step: {column: value}, step + 1: {0: math.nan, 1: math.nan}}
    with pytest.raises(NonFiniteLoss) as raised:
        train(Walk(bad=bad), tmp_path, checkpoint_seconds=0)
    assert str(raised.value).startswith(f"{Walk.terms[column]} is {value} at step {step};")

    sound = (step - 1) // 3 * 3  # the last report before the step
    state = load_checkpoint(tmp_path)
    assert (state is None) if sound == 0 else (state["step"] == sound)
    assert sound == 0 or progress(tmp_path) == undisturbed[1][: sound // 3]
    learner = Walk()
    train(learner, tmp_path)  # without the bad step, from the sound state
    same(learner.state_dict(), undisturbed[0])
    assert progress(tmp_path) == undisturbed[1]


def test_the_step_is_exact_after_a_resumption(tmp_path):
    with pytest.raises(Interrupted):
        train(Walk(fails_at=8), tmp_path, checkpoint_seconds=0)
    learner = Walk(bad={14: {1: math.inf}})
    with pytest.raises(NonFiniteLoss, match=r"^size is inf at step 14;"):
        train(learner, tmp_path, checkpoint_seconds=0)
    assert min(learner.history) == 7
    assert load_checkpoint(tmp_path)["step"] == 12


def test_the_step_is_exact_in_long_epochs(tmp_path):
    with pytest.raises(NonFiniteLoss, match=r"^loss is nan at step 77;"):
        train(Walk(total_steps=130, steps_per_epoch=120, bad={77: {0: math.nan}}), tmp_path)
    assert [line["step"] for line in progress(tmp_path)] == [50]


def test_the_term_behind_a_total_that_is_not_finite_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(pretrain.RECONSTRUCTIONS, "l1", lambda decoded, sequence, lengths: decoded.sum() * math.nan)
    n, nobody = 8, torch.zeros(8, dtype=torch.int64)
    everyone = torch.ones(n, dtype=torch.bool)
    frames, lengths = torch.randn(n * 4, 6, generator=torch.Generator().manual_seed(0)), torch.full((n,), 4)
    data = SkeletonSet("small", frames, lengths, nobody, everyone, ~everyone, nobody, nobody, ("a",), (), "d1")
    recipe = smoke("synthetic", "AE+AD", batch=4)
    learner = pretrain.Pretrainer(recipe, data, seed=0, device=torch.device("cpu"))
    with pytest.raises(NonFiniteLoss, match=r"^AD is nan at step 1;"):
        train(learner, tmp_path)
