"""BYOL: its recipe, its training, and the table of its predictor."""

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from repro.image.data import ImageSet
from repro.image.pretrain import Pretrainer
from repro.image.recipe import ImageRecipe, data_values
from repro.image.study import IMAGES
from repro.recipe import setting
from repro.table import Table


@dataclasses.dataclass(frozen=True, kw_only=True)
class ByolRecipe(ImageRecipe):
    """A recipe of images with a predictor behind the queries' head."""

    method: str = setting("byol", "BYOL, section 3", allowed=("random", "without", "byol"))
    predictor: int = setting(128, "assumed: units", least=1, used=lambda recipe: recipe.method == "byol")


class Bootstrap(Pretrainer):
    """A learner whose loss is 2 - 2 cos(prediction of the query, key), without negatives (BYOL, Eq. 2)."""

    parts = (*Pretrainer.parts, "predictor")

    def __init__(self, recipe: ByolRecipe, data: ImageSet, seed: int, device: torch.device) -> None:
        super().__init__(recipe, data, seed, device)
        self.predictor: nn.Module = nn.Identity()
        if recipe.method == "byol":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                size, inner = recipe.projection, recipe.predictor
                self.predictor = nn.Sequential(nn.Linear(size, inner), nn.ReLU(), nn.Linear(inner, size))
            self.optimiser.add_param_group({"params": self.predictor.to(device).parameters()})

    def losses(self, query: Tensor, keys: Tensor) -> dict[str, Tensor]:
        return {"loss": (2 - 2 * cosine_similarity(self.predictor(query), keys[:, 0].detach(), dim=1)).mean()}


def learners(recipe: ByolRecipe, data: ImageSet, seed: int, device: torch.device) -> Iterator[Bootstrap]:
    yield Bootstrap(recipe, data, seed, device)


def paper(dataset: str, method: str, **changes: Any) -> ByolRecipe:
    usual = {name: value for name, (value, _) in data_values(dataset).items()} | {"momentum": 0.996}
    return ByolRecipe(dataset=dataset, method=method).replace(**(usual | changes))


def printed_accuracy(row: Any) -> float:
    return 91.3 if (row.dataset, row.method) == ("cifar10", "byol") else math.nan  # made up, as this is an example


SMALL = {"batch": 128, "probe_view": "centred", "precision": "float32", "channels_last": False}
PRESETS = {
    "paper": paper,
    "quick": functools.partial(paper, epochs=20, **SMALL),
    "smoke": functools.partial(paper, epochs=1, probe_epochs=2, **SMALL | {"batch": 512}),
}
STUDY = dataclasses.replace(IMAGES, name="byol", recipe=ByolRecipe, presets=PRESETS, variants={}, learners=learners)
TABLES = {
    "predictor": Table(
        name="predictor",
        title="BYOL with its predictor and without",
        place="Table 5b",
        study=STUDY,
        rows=[{"method": ("without", "byol")}],
        datasets=("digits", "cifar10"),
        methods=("random", "without", "byol"),
        printed=printed_accuracy,
        measures=("linear", "knn1", "embedding_spread"),
    )
}
