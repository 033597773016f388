"""Runs of a small recipe, and what stands for training them."""

import dataclasses
from collections.abc import Callable

from repro.recipe import Recipe, setting
from repro.run.store import Run


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small(Recipe):
    method: str = setting("CE", "assumed")
    epochs: int = setting(3, "assumed")
    rate: float = setting(0.5, "assumed")
    threads: int = setting(1, "assumed")


def run(method: str, seed: int = 0) -> Run:
    recipe = Small(method=method)
    return Run(
        study="skeletons", recipe=recipe, seed=seed, preset="quick", dataset="synthetic", digest="d1", version=1
    )


RUNS = [run("CE"), run("AE"), run("CE", 1), run("CD"), run("AE", 1)]
RUN = RUNS[0]


def value(chosen: Run) -> float:
    """The accuracy the trainer below gives to a run."""
    return len(chosen.label) * 10.0 + ord(chosen.label[0]) + chosen.seed


class Trainer:
    """Stands for training a run, in two turns; remembers its calls, and for some methods does something else first."""

    def __init__(self, **before: Callable):
        self.calls, self.before = [], before

    def __call__(self, folder, progress):
        self.calls.append((folder.run.label, folder.run.seed))
        self.before.get(folder.run.label, lambda folder: None)(folder)
        progress.update()
        yield
        return {"linear": value(folder.run), "select": "last", "cost": {"seconds": 1.0, "commit": "abc"}}
