"""The content of the golden files: what the package makes of what is asked, in plain words."""

import csv
import functools
import hashlib
import io
import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tests.golden import adapter, asked

FOLDER = Path(__file__).parent
REQUEST = ("table", "dataset", "label", "preset", "variant", "seeds", "fields")
NUMBERS = ("ours", "std", "n_seeds", "published", "difference")
COLUMNS = ("table", "dataset", "label", "preset", "variant", "asked", "fields", "departures", *NUMBERS, "measures")
DIGITS = 6  # decimals of a number in rows.csv


def recipes() -> dict[str, dict[str, dict[str, Any]]]:
    """By study, dataset, preset and method: the hash of the canonical recipe, and the fields it changes.

    That is, in its canonical text beside the first recipe of the study; None where this alone has a field.
    """
    made: dict[str, dict[str, dict[str, Any]]] = {}
    for study, (datasets, methods) in asked.RECORDED.items():
        texts = {
            f"{dataset} {preset} {method}": adapter.canonical(study, adapter.recipe(study, preset, dataset, method))
            for dataset in datasets for preset in asked.PRESETS for method in methods
        }
        first = json.loads(next(iter(texts.values())))
        made[study] = {"": first}
        for name, text in texts.items():
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            made[study][name] = {"sha256": digest} | changed(json.loads(text), first)
    return made


def changed(values: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, Any]:
    """What values differ from the first ones; None where these alone have one."""
    return {name: values.get(name) for name in {**first, **values}
            if name not in values or name not in first or values[name] != first[name]}


def cells(request: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a request by their keys: the seed, and the fields that leave the preset's recipe of the method.

    Of all of them `data`, the digests, shortened, with the version of the training.

    Raises:
        ValueError: if the table refuses it.
    """
    made, study = adapter.cells(request), adapter.study_of(request["table"])
    data = sorted({(cell["digest"][:16], cell["version"]) for cell in made})
    named = "objectives" if study == "skeleton" else "method"
    preset = "quick" if request["preset"] == "auto" else request["preset"]
    by_key = {}
    for cell in made:
        method = cell["recipe"][named]
        usual = usual_recipe(study, preset, request["dataset"], method)
        by_key[cell["key"]] = {"seed": cell["seed"], named: method} | changed(cell["recipe"], usual)
    return {"data": [[*pair] for pair in data], "cells": by_key}


@functools.cache
def usual_recipe(study: str, preset: str, dataset: str, method: str) -> dict[str, Any]:
    """A preset's recipe, made once."""
    return adapter.recipe(study, preset, dataset, method)


def measures(cell: Mapping[str, Any]) -> dict[str, float]:
    """Made-up results of a cell: from its key alone, so that they do not depend on the order of cells."""
    fields = cell["recipe"]
    if "objectives" in fields:
        names = ["linear", "linear_best", "linear_unseen", "linear_standardised", "linear_standardised_unseen", "knn1",
                 "knn1_unseen", "embedding_spread", "readout_spread"]
        names += ["decoded_scale"] if {"AD", "CD"} & {*fields["objectives"].split("+")} else []
    elif "probe_view" in fields:
        names = ["linear", "knn1", "embedding_spread"]
    else:
        grids = fields["targets"] == "characters"
        names = ["linear", "linear_held_out"] if grids else [*filter(None, fields["targets"].split(","))]
        names += ["trained_on"]
        names += ["categories_video", "categories_audio", "expected"] if fields["method"] == "cmacc" else []
    return {name: made_up(cell["key"], name) for name in names}


def made_up(key: str, name: str) -> float:
    """A number from 0 to 100 with two decimals, of a cell's key and the name of a measure."""
    return int(hashlib.sha256(f"{key} {name}".encode()).hexdigest()[:8], 16) % 10_000 / 100


def rows(request: Mapping[str, Any]) -> list[dict[str, str]]:
    """The rows that a request's table makes of made-up results, as text by `COLUMNS`, in an order of their own."""
    made = []
    for row in adapter.rows(request, measures):
        told = {name: str(request[name] or "") for name in COLUMNS[:5]} | {"asked": text(request["fields"])}
        told |= {name: text(row[name]) for name in ("fields", "departures", "measures")}
        made.append(told | {name: text(row[name]) for name in NUMBERS})
    return sorted(made, key=lambda row: (row["fields"], row["departures"]))


def text(value: Any) -> str:
    """A value as JSON, numbers rounded; nothing for NaN."""
    plain_value = plain(value)
    return "" if plain_value is None else json.dumps(plain_value, sort_keys=True)


def plain(value: Any) -> Any:
    """Rounded numbers, None for NaN, integers where a column of floats has whole numbers, also in a dict."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else int(value) if value.is_integer() else round(value, DIGITS)
    return value


def trained(training: Mapping[str, Any]) -> tuple[dict[str, float], list[torch.Tensor]]:
    """What a small training measures, and its weights."""
    preset = adapter.recipe(training["study"], "smoke", training["dataset"], training["method"], **training["fields"])
    with tempfile.TemporaryDirectory() as folder:
        place, tiny = Path(folder), training["tiny_trunk"]
        return adapter.train(training["study"], preset, training["seed"], place, tiny_trunk=tiny)


def as_csv(lines: list[dict[str, str]]) -> str:
    """Rows as the text of rows.csv."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return stream.getvalue()


def by_line(value: Any, depth: int) -> str:
    """JSON with one entry to a line down to a depth."""
    if depth and isinstance(value, dict):
        inner = [f"{json.dumps(name)}: {by_line(part, depth - 1)}" for name, part in value.items()]
        return "{\n" + ",\n".join(inner) + "\n}"
    if depth and isinstance(value, list):
        return "[\n" + ",\n".join(by_line(part, depth - 1) for part in value) + "\n]"
    return json.dumps(value)
