"""What a table will cost: forecasts from a few steps, and the text of a plan."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch

from repro.recipe import Recipe, setting
from repro.run import device as devices
from repro.run.plan import forecast, plan
from repro.run.store import Run, Store

CPU = torch.device("cpu")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timed(Recipe):
    """How long the steps of a made-up learner take, in seconds of the clock below."""

    method: str = setting("CE", "assumed")
    threads: int = setting(1, "assumed")
    usual: float = setting(0.5, "assumed")
    opening: float = setting(3.0, "assumed")
    steps: int = setting(40, "assumed")
    epoch: int = setting(10, "assumed")
    costly: int = setting(4, "assumed")


class Learner:
    """Every `total / costly` steps one takes as long as the first."""

    def __init__(self, recipe, clock=None):
        self.recipe, self.clock, self.taken = recipe, clock or SimpleNamespace(now=0.0), 0
        self.total_steps, self.steps_per_epoch, self.costly_steps = recipe.steps, recipe.epoch, recipe.costly

    def step(self):
        costly = self.costly_steps and self.taken % (self.total_steps // self.costly_steps) == 0
        self.clock.now += self.recipe.opening if costly or self.taken == 0 else self.recipe.usual
        self.taken += 1


@pytest.mark.parametrize(("changes", "most"), [
    ({}, 5), ({"costly": 0, "opening": 0.5}, 5), ({"usual": 9.0}, 2), ({"usual": 0.001, "opening": 0.1}, 10),
    ({"epoch": 1, "costly": 40}, 1), ({"epoch": 1, "steps": 1, "costly": 1}, 1), ({"steps": 0}, 0),
    ({"epoch": 2, "costly": 20}, 2), ({"costly": 0, "opening": 7.0}, 5),
])
def test_a_few_steps_foretell_the_time_of_all(changes, most, clock):
    """What the first step has to set up is not counted."""
    recipe = Timed(**changes)
    learner = Learner(recipe, clock)
    foretold = forecast(learner, CPU)
    assert learner.taken == most
    began, whole = clock.now, Learner(recipe, clock)
    for _ in range(recipe.steps):
        whole.step()
    set_up = recipe.opening - recipe.usual if recipe.costly == 0 else 0.0
    assert foretold == pytest.approx(clock.now - began - set_up)


def run(seed: int, **changes) -> Run:
    return Run("skeletons", Timed(**changes), seed, "quick", "synthetic", "d1", 1, changes=changes)


def study(learners=None):
    """What a plan asks of a study; `learners` takes a recipe alone."""
    return SimpleNamespace(load=lambda recipe: None, learners=lambda recipe, data, seed, device: learners(recipe))


def begun(store: Store, run: Run, step: int) -> None:
    """Let so many steps of a run be taken."""
    folder = store.folder(run).path
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").write_text(f'{{"step": {step}, "of": {run.recipe.steps}}}\n')


def test_each_recipe_is_measured_once_and_the_finished_are_not(store):
    calls, runs = [], [run(seed, steps=steps) for seed in (0, 1) for steps in (10, 20, 30)]
    for each in runs:
        if each.recipe.steps == 10 or (each.seed, each.recipe.steps) == (0, 20):
            store.folder(each).finish({"linear": 1.0, "cost": {}})

    def learners(recipe):
        calls.append((recipe.steps, torch.get_num_threads()))
        yield Learner(recipe)
        yield Learner(recipe.replace(steps=0))

    before = sorted(store.root.rglob("*"))
    text = plan(runs, study(learners), store, CPU, 1)
    assert calls == [(30, 1), (20, 1)] and sorted(store.root.rglob("*")) == before
    header, *rows, total, left_out = text.splitlines()
    assert header.split() == ["run", "runs", "steps", "minutes_per_run", "minutes_left", "memory_mb"]
    assert [row.split()[:4] for row in rows] == [["CE,", "steps=30", "2", "30"], ["CE,", "steps=20", "1", "20"]]
    assert all(float(row.split()[-1]) > 50 for row in rows)  # an interpreter with torch
    assert total == "3 of 6 runs are finished; left are 00:00 of training."
    assert "fine-tuning are included" in left_out and "probes along training and at its end" in left_out
    assert plan(runs[:1], None, store, CPU, 1) == "1 of 1 runs are finished; nothing is left to train."


def test_fine_tuning_counts_whole_also_where_pretraining_is_half_done(store, monkeypatch):
    """Ten minutes of pre-training, then seven on two targets: 17 of a new run, 12 of one with half of the former."""
    def tuned(recipe):
        yield from (Learner(recipe.replace(steps=steps)) for steps in (recipe.steps, 300, 120))

    monkeypatch.setattr("repro.run.plan.forecast", lambda learner, device: float(learner.total_steps))
    runs = [run(seed, steps=600) for seed in (0, 1, 2)]
    begun(store, runs[0], 300)
    *_, row, total, _ = plan(runs, study(tuned), store, CPU, 2).splitlines()
    assert row.split()[:-2] == ["CE,", "steps=600", "3", "600", "17"]
    assert float(row.split()[-2]) == pytest.approx(46, rel=1e-3)
    assert "left are 46:00 of training, with 2 processes at least 23:00." in total
    *_, total, _ = plan(runs, study(tuned), store, CPU, 9).splitlines()
    assert "with 3 processes at least 17:00." in total  # the longest run


def test_of_runs_with_one_training_the_first_alone_takes_its_time_and_of_those_that_are_trained_none(store):
    """Two that are measured otherwise than their preset; the training of seed 1 has come to its end."""
    runs = [dataclasses.replace(run(seed, steps=600, opening=opening), trained=Timed(steps=600))
             for opening in (4.0, 5.0) for seed in (0, 1, 2)]
    begun(store, runs[1].training, 600)
    begun(store, runs[2].training, 300)
    learner = Learner(Timed(steps=600, usual=0.5, opening=0.5, costly=0))
    text = plan(runs, study(lambda recipe: iter([learner])), store, CPU, 1)
    first, second = (line.split() for line in text.splitlines()[1:3])
    assert float(first[-2]) == pytest.approx(1.5 * float(first[-3]), abs=1e-6) and float(second[-2]) == 0


def test_a_process_group_makes_no_plan(store, monkeypatch):
    monkeypatch.setattr(devices, "grouped", lambda: True)
    with pytest.raises(ValueError, match="leave out torchrun"):
        plan([run(0)], None, store, CPU, 1)
