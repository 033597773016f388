"""Walks: learners of five numbers, whose training takes no time, and what is left of it."""

import dataclasses
import io
import json

import torch
from ended import finish
from torch import nn
from tqdm.auto import tqdm

from repro.recipe import Recipe, setting
from repro.run.fit import fit
from repro.run.learner import Learner


class Interrupted(Exception):
    """Stands for whatever ends a process in the middle of training."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pace(Recipe):
    """What a learner asks of its recipe."""

    precision: str = setting("float32", "assumed")


class Walk(Learner):
    """A learner of five numbers with all the kinds of state there are: weights, optimiser, generator, a counter.

    Attributes:
        history: the losses of the steps taken by this object, by step.
        fails_at: the step that raises instead of being taken.
        bad: the terms that are not finite, by step: {step: {column: value}}.
    """

    terms = ("loss", "size")
    parts, streams, passing = ("model", "optimiser"), ("generator",), ("history",)

    def __init__(self, total_steps=20, steps_per_epoch=3, fails_at=None, bad=None):
        super().__init__(Pace(), None, 0, torch.device("cpu"))
        self.total_steps, self.steps_per_epoch = total_steps, steps_per_epoch
        self.fails_at, self.bad, self.history = fails_at, bad or {}, {}
        self.model = nn.ParameterDict({"weight": torch.linspace(-1, 1, 5)})
        self.weight, self.optimiser = self.model["weight"], torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.generator = torch.Generator().manual_seed(7)

    def prepare(self):
        if self.taken + 1 == self.fails_at:
            raise Interrupted

    def compute(self):
        step = self.taken + 1
        target = torch.randn(5, generator=self.generator)
        loss = (self.weight - target).square().sum()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        values = torch.stack([loss.detach(), self.weight.detach().norm()])
        for column, value in self.bad.get(step, {}).items():
            values[column] = value
        self.history[step] = values
        return values


class TimedWalk(Walk):
    """A walk whose every step takes a second."""

    def __init__(self, clock, **options):
        super().__init__(**options)
        self.clock = clock

    def step(self):
        self.clock.now += 1
        return super().step()


def train(learner, folder, **options):
    with tqdm(file=io.StringIO()) as bar:
        return finish(fit(learner, folder, bar, **options))


def progress(folder, *, seconds=False):
    """The lines of progress.jsonl, without the seconds unless they are asked for, and without the numbers of steps."""
    lines = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
    assert len({(line.pop("of"), line.pop("steps_per_epoch")) for line in lines}) == 1
    return lines if seconds else [{name: value for name, value in line.items() if name != "seconds"} for line in lines]
