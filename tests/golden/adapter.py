"""All that the golden tests call of the package: after a redesign this file alone is changed, no recorded one.

Everything that goes in and out is plain: names, fields of recipes and their values, numbers. What is asked of a table
is a dict as `asked.TABLES` makes them; a recipe is the dict of its fields.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from ended import finish
from made_up_images import use_tiny_trunk
from pandas import DataFrame
from pytest import MonkeyPatch
from tqdm.auto import tqdm

from repro import papers
from repro.audiovisual.recipe import CLIPS
from repro.image.recipe import IMAGES
from repro.run.device import full_precision, threads
from repro.run.fit import load_checkpoint
from repro.run.store import Cell, Store
from repro.run.training import train as train_cell
from repro.skeleton.recipe import SKELETONS
from repro.table import Asked, Table

STUDIES = {"skeleton": SKELETONS, "image": IMAGES, "audiovisual": CLIPS}
NAMES = {study.name: name for name, study in STUDIES.items()}
NUMBERS = ("ours", "std", "n_seeds", "published", "difference")
LABELS = ("preset", "dataset", "version", "AE", "CE", "AD", "CD")  # columns that say nothing new
NOT_FIELDS = ("varied", "target")  # columns that tell rows apart and are no fields of a recipe
SHOWN = {"taxonomy": ("layers", "units", "protocol")}  # recorded as fields of a row wherever they depart
MODELS = {"skeleton": ("model",), "image": ("model",), "audiovisual": ("towers", "classifiers")}
BUNDLED = {"extra_layer": True, "sampler": "gradient"}  # fields of rows of `cross_modal`, recorded for every method


def study_of(table: str) -> str:
    """The name of a table's study."""
    return NAMES[papers.tables()[table].study.name]


def recipe(study: str, preset: str, dataset: str, method: str, **fields: Any) -> dict[str, Any]:
    """The fields of a preset's recipe."""
    return STUDIES[study].presets[preset](dataset, method, **fields).to_dict()


def canonical(study: str, fields: Mapping[str, Any]) -> str:
    """The text that stands for a recipe in the key of its cells."""
    return STUDIES[study].recipe.from_dict(dict(fields)).canonical()


def key(study: str, stored: Mapping[str, Any], seed: int, digest: str, version: int) -> str:
    """The key of a stored cell, of whose recipe fields may be missing that came later."""
    made = STUDIES[study].recipe.from_dict(dict(stored))
    kept = {name: value for name, value in json.loads(made.canonical()).items() if name in stored}
    with patch.object(type(made), "canonical", lambda *_: json.dumps(kept, sort_keys=True)):
        return Cell(STUDIES[study].name, made, seed, "", "", digest, version).key


def study_and_key_of(row: Mapping[str, str]) -> tuple[str, str]:
    """The study of a row of `figures/cells.csv`, and its key computed anew."""
    study = NAMES[row["study"]]
    return study, key(study, json.loads(row["recipe"]), int(row["seed"]), row["digest"], int(row["version"]))


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
    table, stored, by_key = _table(asked), [], {}
    for cell, row in _pairs(asked):
        by_key[cell.key] = row
        parts = {"changes": cell.changes, "recipe": cell.recipe.to_dict(), "metrics": measures(_described(cell))}
        texts = {name: json.dumps(part) for name, part in parts.items()}
        stored.append(cell.describe() | texts | {"cost": '{"finished": ""}', "commit": ""})
    laid_out = table.numbers(by_key, DataFrame(stored), table.columns_asked(_texts(asked)))
    return [_row(table, row) for row in laid_out.to_dict("records")]


def train(
    study: str, fields: Mapping[str, Any], seed: int, folder: Path, *, tiny_trunk: bool
) -> tuple[dict[str, float], list[torch.Tensor]]:
    """Train and evaluate a cell in a folder: what is measured, with the last losses, and the weights of the model.

    With `tiny_trunk` images are seen by two convolutions in place of a ResNet-18.
    """
    made = STUDIES[study].recipe.from_dict(dict(fields))
    digest = STUDIES[study].load(made).digest
    run = Store(folder).run(Cell("golden", made, seed, "smoke", made.dataset, digest, 0))
    with run.claim(), tqdm(disable=True) as progress, MonkeyPatch.context() as patched:
        if tiny_trunk:
            use_tiny_trunk(patched)
        with threads(made.threads), full_precision():
            result = finish(train_cell(run, progress, study=STUDIES[study], device=torch.device("cpu")))
    measured = {name: value for name, value in result.items() if name not in ("cost", "select")}
    log = run.folder / "progress.jsonl"
    if log.exists():
        last = json.loads(log.read_text().splitlines()[-1])
        measured |= {f"last {name}": value for name, value in last.items() if name not in ("step", "of", "seconds")}
    state = load_checkpoint(run.folder)
    assert state is not None
    learner = state["learner"]
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


def _table(asked: Mapping[str, Any]) -> Table:
    """The table; where a label is given all data sets have it, and a digest that is made up: none is read."""
    table = papers.tables()[asked["table"]]
    if asked["label"] is None:
        return table
    data = SimpleNamespace(name=asked["label"], digest="made up")
    return dataclasses.replace(table, study=dataclasses.replace(table.study, load=lambda recipe: data))


def _cells(asked: Mapping[str, Any]) -> list[Cell]:
    return [cell for cell, _ in _pairs(asked)]


def _pairs(asked: Mapping[str, Any]) -> list[tuple[Cell, Asked]]:
    choices = {"seeds": ",".join(map(str, asked["seeds"])), "preset": asked["preset"], "device": "cpu"}
    return _table(asked).asked_cells(asked["dataset"], variant=asked["variant"], **choices, **_texts(asked))


def _texts(asked: Mapping[str, Any]) -> dict[str, str]:
    """The fields that are asked for, as users type them."""
    fields = {name: _text(name, values) for name, values in asked["fields"].items()}
    if asked["table"] == "cross_modal":  # recorded for methods too that do not use them
        unused = {"scratch": BUNDLED, "supervised": BUNDLED, "smoco": ["sampler"], "xmoco": ["sampler"]}
        fields = {name: text for name, text in fields.items() if name not in unused.get(fields.get("method", ""), ())}
    return fields


def _text(name: str, values: list[Any]) -> str:
    """Values of a field as users type them."""
    return ",".join(str(value).replace(",", "+") if name == "targets" else str(value) for value in values)


def _row(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """A row of a table in plain words, whatever its columns are called and where a field stands."""
    columns = table.shown
    departures = {name: True if name == "data" else value for name, value in row.pop("departures", {}).items()}
    fields = {name: row[name] for name in columns if name in (*table.study.fields, *NOT_FIELDS)}
    if table.name == "cross_modal":
        bundle = next(each for each in table.rows if each["approach"] == row["approach"])
        fields |= {"method": bundle["method"]} | {name: bundle.get(name, usual) for name, usual in BUNDLED.items()}
        fields |= {name: departures.pop(name) for name in BUNDLED if name in departures}
    moved = {name: departures.pop(name) for name in SHOWN.get(table.name, ()) if name in departures}
    moved |= {name: row[name] for name in SHOWN.get(table.name, ()) if name in row}
    known = {*NOT_FIELDS, *NUMBERS, *LABELS, *table.study.fields, "approach"}
    return {
        "fields": {name: value for name, value in (fields | moved).items() if name not in LABELS},
        "departures": departures,
        **{name: row[name] for name in NUMBERS},
        "measures": {name: value for name, value in row.items() if name not in known},
    }
