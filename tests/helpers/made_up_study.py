"""A made-up study: recipes of three methods, data that are a name, and a learner of two steps that measures itself."""

import dataclasses
import json
from typing import NamedTuple

import torch
from pandas import DataFrame
from torch import nn

from repro.recipe import Recipe, setting
from repro.run.learner import Learner
from repro.run.store import COLUMNS, Run
from repro.table import Study


def of(*methods):
    return lambda recipe: recipe.method in methods


@dataclasses.dataclass(frozen=True, kw_only=True)
class Toy(Recipe):
    dataset: str = setting("ucla", "paper", allowed=("synthetic", "ucla", "ntu"))
    subset: bool = setting(False, "assumed", before=False)
    method: str = setting("plain", "paper", allowed=("plain", "heavy", "both"))
    rate: float = setting(0.1, "paper", least=0)
    batch: int = setting(8, "paper", least=1)
    depth: int = setting(1, "paper", least=1)
    weight: float = setting(1.0, "paper", least=0, used=of("heavy", "both"))
    power: int = setting(2, "paper", used=lambda recipe: recipe.method != "plain" and recipe.weight > 0)
    noise: str = setting("live", "released code", allowed=("live", "frozen"), before="live", used=of("both"))
    precision: str = setting("float32", "assumed")
    threads: int = setting(1, "assumed", least=1)


def paper(dataset, method, **changes):
    """The rate follows the batch."""
    return Toy(dataset=dataset, method=method).replace(**{"rate": changes.get("batch", 8) / 80} | changes)


def quick(dataset, method, **changes):
    return paper(dataset, method, **{"depth": 2 if dataset == "synthetic" else 3} | changes)


def smoke(dataset, method, **changes):
    return paper(dataset, method, **{"batch": 4} | changes)


class Data(NamedTuple):
    name: str
    digest: str


def load(recipe):
    return Data(recipe.dataset + " (subset)" * recipe.subset, f"digest of {recipe.dataset}")


class Two(Learner):
    """A number that takes two steps from the seed."""

    terms = ("loss",)
    steps_per_epoch = total_steps = 2

    def __init__(self, recipe, data, seed, device, name=""):
        super().__init__(recipe, data, seed, device)
        self.name, self.model = name, nn.ParameterDict({"number": torch.full((1,), float(seed))})
        self.parts = {"model": self.model}

    def prepare(self):
        pass

    def compute(self):
        with torch.no_grad():
            self.model["number"] += self.recipe.rate * self.recipe.depth
        return self.model["number"].detach().clone()


def learners(recipe, data, seed, device):
    yield Two(recipe, data, seed, device)
    if recipe.method == "both":
        yield Two(recipe, data, seed + 10, device, "second")


def measure(learner):
    found = {"linear": learner.model["number"].item(), "select": learner.recipe.method}
    return found | ({"knn1": learner.taken / 4} if learner.recipe.method != "plain" else {})


TOY = Study(
    name="toys",
    recipe=Toy,
    presets={"paper": paper, "quick": quick, "smoke": smoke},
    variants={"frozen": {"noise": "frozen"}, "light": {"weight": 0.5, "power": 7}, "deep": {"depth": 9}},
    load=load,
    learners=learners,
    measure=measure,
    version=3,
    evaluation=2,
    constants=lambda recipe: [("views", 2, "paper")],
)


def run_of(study, recipe, seed, preset, changes=None):
    """The run of a recipe and a seed on the data that are here."""
    return study.on_data(Run(study.name, recipe, seed, preset, recipe.dataset, "", study.version, study.evaluation,
                              changes or {}, study.trained(recipe, preset)))


def stored(method="plain", linear=50.0, *, seed=0, preset="paper", dataset="ucla", version=3, digest="d", study="toys",
           finished="2026-01-01T00:00:00+00:00", measures=None, recipe=None, told=True, **changes):
    """A row of runs.csv: a finished run with these `changes`; `told` is whether it says which they are."""
    make = TOY.presets[preset]
    recipe = recipe or make(dataset.partition(" (")[0], method, subset=" (" in dataset, **changes).to_dict()
    id = Run(study, Toy.from_dict(recipe), seed, preset, dataset, digest, version).id
    row = {"id": id, "study": study, "seed": seed, "preset": preset, "dataset": dataset}
    row |= {"digest": digest, "version": version, "changes": json.dumps(changes if told else None, sort_keys=True)}
    row |= {"recipe": json.dumps(recipe, sort_keys=True), "cost": json.dumps({"finished": finished}), "commit": "c"}
    return row | {"metrics": json.dumps({"linear": linear, "evaluation": 2} | (measures or {}))}


def frame(*rows):
    return DataFrame(rows, columns=COLUMNS)
