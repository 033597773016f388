"""All that the golden tests call of the package: after a redesign this file alone is changed, no recorded one.

Everything that goes in and out is plain: names, fields of recipes and their values, numbers. What is asked of a table
is a dict as `asked.TABLES` makes them; a recipe is the dict of its fields.
"""

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from made_up_images import use_tiny_trunk
from pandas import DataFrame
from pytest import MonkeyPatch
from tqdm.auto import tqdm

from repro.audiovisual import cell as audiovisual
from repro.audiovisual import recipe as audiovisual_recipe
from repro.audiovisual import table_cells as audiovisual_cells
from repro.audiovisual import table_layouts as audiovisual_layouts
from repro.image import cell as image
from repro.image import recipe as image_recipe
from repro.image import table_cells as image_cells
from repro.recipe import Recipe
from repro.run.fit import load_checkpoint
from repro.run.store import Cell, Store
from repro.skeleton import cell as skeleton
from repro.skeleton import recipe as skeleton_recipe
from repro.skeleton import tables as skeleton_tables
from repro.tables import TABLES

STUDIES = {
    "skeleton": (skeleton_recipe.SkeletonRecipe, skeleton_recipe.PRESETS, skeleton),
    "image": (image_recipe.ImageRecipe, image_recipe.PRESETS, image),
    "audiovisual": (audiovisual_recipe.AudioVisualRecipe, audiovisual_recipe.PRESETS, audiovisual),
}
# The parameter of a table that sets a field of its recipes, where it is not named as the field.
PARAMETERS = {
    "encoder_collapse": {"objectives": "methods"},
    "image_methods": {"method": "methods"},
    "temperature_grid": {"temperature": "temperatures", "key_temperature": "key_temperatures"},
    "positive_keys": {"strength": "strengths", "temperature": "temperatures"},
    "ohem_vs_active": {"sampler": "samplers", "batch": "batches"},
    "dictionary_size": {"method": "methods", "dictionary": "dictionaries"},
    "mutual_information": {"method": "methods"},
    "transfer": {"method": "methods", "video_trunk": "trunks"},
    "category_diversity": {"sampler": "samplers", "batch": "batches"},
}
NUMBERS = ("ours", "std", "n_seeds", "published", "difference")
LABELS = ("preset", "dataset", "AE", "CE", "AD", "CD")  # columns that say nothing that is not recorded elsewhere
NOT_FIELDS = {"varied", "target"}  # columns that tell rows apart and are no fields of a recipe
MODELS = {"skeleton": ("model",), "image": ("model",), "audiovisual": ("towers", "classifiers")}


def study_of(table: str) -> str:
    """The name of a table's study."""
    modality = TABLES[table].cells.__module__.split(".")[1]
    return {"skeleton": "skeleton", "image": "image", "audiovisual": "audiovisual"}[modality]


def recipe(study: str, preset: str, dataset: str, method: str, **fields: Any) -> dict[str, Any]:
    """The fields of a preset's recipe."""
    return STUDIES[study][1][preset](dataset, method, **fields).to_dict()


def canonical(study: str, fields: Mapping[str, Any]) -> str:
    """The text that stands for a recipe in the key of its cells."""
    return STUDIES[study][0].from_dict(dict(fields)).canonical()


def key(study: str, stored: Mapping[str, Any], seed: int, digest: str, version: int) -> str:
    """The key of a stored cell, of whose recipe fields may be missing that came later."""
    made = STUDIES[study][0].from_dict(dict(stored))
    kept = {name: value for name, value in json.loads(made.canonical()).items() if name in stored}
    with patch.object(type(made), "canonical", lambda _: json.dumps(kept, sort_keys=True)):
        return Cell("", "", made, seed, "", "", digest, version).key


def cells(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The cells that a table needs: recipe, seed, digest, version and key of each.

    Raises:
        ValueError: if the table does not take what is asked for.
    """
    return [_described(cell) for cell in _cells(asked)]


def rows(asked: Mapping[str, Any], measures: Callable[[dict[str, Any]], dict[str, float]]) -> list[dict[str, Any]]:
    """The rows that a table makes of what is measured of its cells.

    Args:
        asked: of the table.
        measures: what is measured of a cell, given as by `cells`.

    Returns:
        For each row the fields of recipes that identify it, `departures` (field and value), the numbers `ours, std,
        n_seeds, published, difference` and the measures beside them.
    """
    table, made = TABLES[asked["table"]], _cells(asked)
    results = [
        {name: getattr(cell.recipe, name) for name in table.fields} | {"entry": cell.entry, "seed": cell.seed} | found
        for cell, found in zip(made, map(measures, map(_described, made)), strict=True)
    ]
    frame = table.layout(DataFrame(results), made[0].preset, made[0].dataset)
    return [_row(asked["table"], type(made[0].recipe), row) for row in frame.to_dict("records")]


def train(
    study: str, fields: Mapping[str, Any], seed: int, folder: Path, *, tiny_trunk: bool
) -> tuple[dict[str, float], list[torch.Tensor]]:
    """Train and evaluate a cell in a folder: what is measured, with the last losses, and the weights of the model.

    With `tiny_trunk` images are seen by two convolutions in place of a ResNet-18.
    """
    kind, _, module = STUDIES[study]
    made = kind.from_dict(dict(fields))
    digest = module.identity_of(made)[1] if study == "audiovisual" else module.data_of(made).digest
    cell = Cell("golden", "", made, seed, "smoke", made.dataset, digest, 0)
    run = Store(folder).run(cell)
    with run.claim(), tqdm(disable=True) as progress, MonkeyPatch.context() as patched:
        if tiny_trunk:
            use_tiny_trunk(patched)
        result = module.train(run, progress, device=torch.device("cpu"))
    measured = {name: value for name, value in result.items() if name not in ("cost", "select")}
    log = run.folder / "progress.jsonl"
    if log.exists():
        last = json.loads(log.read_text().splitlines()[-1])
        measured |= {f"last {name}": value for name, value in last.items() if name not in ("step", "of", "seconds")}
    state = load_checkpoint(run.folder)
    assert state is not None
    learner = state["learner"].get("pretrainer", state["learner"])  # what watches a training holds it
    return measured, [*_tensors([learner[name] for name in MODELS[study]])]


def _described(cell: Cell) -> dict[str, Any]:
    return {"recipe": cell.recipe.to_dict(), "seed": cell.seed, "digest": cell.digest, "version": cell.version,
            "key": cell.key}


def _tensors(state: Any) -> Iterator[torch.Tensor]:
    """All tensors of a nested state."""
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, Mapping | list):
        for part in state.values() if isinstance(state, Mapping) else state:
            yield from _tensors(part)


def _cells(asked: Mapping[str, Any]) -> list[Cell]:
    table, choices = asked["table"], {"seeds": ",".join(map(str, asked["seeds"])), "preset": asked["preset"]}
    if study_of(table) == "skeleton":
        choices["device"] = "cpu"
    if asked["variant"] != "none":
        choices["variant"] = asked["variant"]
    fields = dict(asked["fields"])
    if table == "cross_modal":
        approaches = _approaches(fields)
        choices |= {"approaches": ",".join(approaches)} if approaches else {}
    for name, values in fields.items():
        parameter = PARAMETERS.get(table, {}).get(name, name)
        choices[parameter] = values[0] if name == "subset" else ",".join(map(str, values))
    with _without_data(asked["label"]):
        return TABLES[table].cells(asked["dataset"], **choices)


def _approaches(fields: dict[str, Any]) -> list[str]:
    """The rows of `cross_modal` that have these values of method, extra_layer and sampler, taken out of the fields."""
    wanted = [fields.pop(name, None) for name in ("method", "extra_layer", "sampler")]
    if wanted == [None] * 3:
        return []
    return [
        name
        for name, (_, *place) in audiovisual_cells.APPROACHES.items()
        if all(values is None or value in values
               for values, value in zip(wanted, _place(*place).values(), strict=True))
    ]


def _place(method: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that tell rows of `cross_modal` apart."""
    return {"method": method, "extra_layer": True, "sampler": "gradient"} | changes


@contextmanager
def _without_data(label: str | None) -> Iterator[None]:
    """Inside the block data sets are not read: all have this label, and a digest that is made up; None reads them."""
    data = SimpleNamespace(name=label, digest="made up", lengths=torch.tensor([300]))
    with ExitStack() as stack:
        if label is not None:
            stack.enter_context(patch.object(skeleton_tables, "data_of", lambda recipe: data))
            stack.enter_context(patch.object(image_cells, "data_of", lambda recipe: data))
            stack.enter_context(patch.object(audiovisual_cells, "identity_of", lambda recipe: (label, data.digest)))
        yield


def _row(table: str, kind: type[Recipe], row: dict[str, Any]) -> dict[str, Any]:
    """A row of a table in plain words, whatever its columns are called and where a field stands."""
    if table == "encoder_collapse":
        row["objectives"] = row.pop("method")
    if table == "cross_modal":
        places = {title: _place(*place) for title, *place in audiovisual_cells.APPROACHES.values()}
        row |= places[row.pop("approach")]
    departures = _departures(kind, row.pop("departures", ""))
    identifying = {name: value for name, value in row.items() if name in NOT_FIELDS | {*kind.__dataclass_fields__}}
    numbers = {name: row[name] for name in NUMBERS}
    placed = {*identifying, *numbers, *LABELS}
    return {
        "fields": {name: value for name, value in identifying.items() if name not in LABELS},
        "departures": departures,
        **numbers,
        "measures": {name: value for name, value in row.items() if name not in placed},
    }


@functools.cache
def _told() -> tuple[str, ...]:
    """What tables say of data that are not quite the paper's."""
    return tuple(audiovisual_layouts.DEPARTING.values())


def _departures(kind: type[Recipe], text: str) -> dict[str, Any]:
    """Field and value of what departs; "data" is true where these are not quite the paper's."""
    parts = [part for part in text.split("; ") if part]
    found = {"data": True} if any(part in _told() for part in parts) else {}
    named = [field.split("=") for part in parts if part not in _told() for field in part.split(", ")]
    return found | {name: value if name == "targets" else kind.parse(name, value)[0] for name, value in named}
