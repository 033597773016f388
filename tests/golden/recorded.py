"""The golden files: what they ask of the package, and what the package as it is makes of that, in plain words."""

import csv
import functools
import hashlib
import io
import json
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from tests.golden import adapter

FOLDER = Path(__file__).parent
REQUEST = ("table", "dataset", "label", "preset", "variant", "seeds", "fields")
TRAINING = ("study", "dataset", "method", "seed", "tiny_trunk", "fields")
NUMBERS = ("ours", "std", "n_seeds", "published", "difference")
IDENTIFYING = ("table", "dataset", "label", "preset", "variant", "asked", "fields", "departures")  # columns of rows.csv
COLUMNS = (*IDENTIFYING, *NUMBERS, "measures")
DIGITS = 6  # decimals of a number in rows.csv

Fields = Mapping[str, Any]


def read(name: str) -> Any:
    """A golden file of JSON."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def read_rows() -> list[dict[str, str]]:
    """The rows of rows.csv."""
    with (FOLDER / "rows.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def recipes(study: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By data set, preset and method: the hash of the canonical recipe, and the fields it changes.

    That is, in its canonical text beside the first recipe, which stands under ""; None where this alone has a field.
    """
    texts = {}
    for name in names:
        dataset, preset, method = name.split()
        texts[name] = adapter.canonical(study, adapter.recipe(study, preset, dataset, method))
    first = json.loads(texts[names[0]])
    return {"": first} | {
        name: {"sha256": hashlib.sha256(text.encode()).hexdigest()[:16]} | changed(json.loads(text), first)
        for name, text in texts.items()
    }


def changed(values: Fields, first: Fields) -> dict[str, Any]:
    """What values differ from the first ones; None where these alone have one."""
    return {name: values.get(name) for name in {**first, **values}
            if name not in values or name not in first or values[name] != first[name]}


def cells(request: Fields) -> dict[str, Any]:
    """The cells of a request by their keys: the seed, and the fields that leave the preset's recipe of the method.

    Of all of them `data`, the digests, shortened, with the version of the training.
    """
    study = adapter.study_of(request["table"])
    method = "objectives" if study == "skeleton" else "method"
    preset = "quick" if request["preset"] == "auto" else request["preset"]
    by_key, data = {}, set()
    for cell in adapter.cells(request):
        usual = usual_recipe(study, preset, request["dataset"], cell["recipe"][method])
        by_key[cell["key"]] = {"seed": cell["seed"], method: usual[method]} | changed(cell["recipe"], usual)
        data.add((cell["digest"][:16], cell["version"]))
    return {"data": [[*pair] for pair in sorted(data)], "cells": by_key}


usual_recipe = functools.cache(adapter.recipe)


def measures(cell: Fields) -> dict[str, float]:
    """Made-up results of a cell: from its key alone, so that they do not depend on the order of cells."""
    fields = cell["recipe"]
    if "objectives" in fields:
        names = ["linear", "linear_best", "linear_unseen", "linear_standardised", "linear_standardised_unseen", "knn1",
                 "knn1_unseen", "embedding_spread", "readout_spread"]
        names += ["decoded_scale"] if {"AD", "CD"} & {*fields["objectives"].split("+")} else []
    elif "probe_view" in fields:
        names = ["linear", "knn1", "embedding_spread"]
    else:
        characters = fields["targets"] == "characters"
        names = ["linear", "linear_held_out"] if characters else [*filter(None, fields["targets"].split(","))]
        names += ["trained_on"]
        names += ["categories_video", "categories_audio", "expected"] if fields["method"] == "cmacc" else []
    return {name: made_up(cell["key"], name) for name in names}


def made_up(key: str, name: str) -> float:
    """A number from 0 to 100 with two decimals, of a cell's key and the name of a measure."""
    return int(hashlib.sha256(f"{key} {name}".encode()).hexdigest()[:8], 16) % 10_000 / 100


def laid_out() -> list[dict[str, Any]]:
    """The requests whose rows are recorded, each of two seeds."""
    places = dict.fromkeys(tuple(row[name] for name in IDENTIFYING[:6]) for row in read_rows())
    return [
        {"table": table, "dataset": dataset, "label": label or None, "preset": preset, "variant": variant,
         "seeds": [0, 1], "fields": json.loads(fields)}
        for table, dataset, label, preset, variant, fields in places
    ]


def rows(request: Fields) -> list[dict[str, str]]:
    """The rows that a request's table makes of made-up results, as text by `COLUMNS`, in an order of their own."""
    given = {name: str(request[name] or "") for name in IDENTIFYING[:5]} | {"asked": text(request["fields"])}
    made = [given | {name: text(row[name]) for name in ("fields", "departures", "measures", *NUMBERS)}
            for row in adapter.rows(request, measures)]
    return sorted(made, key=lambda row: (row["fields"], row["departures"]))


def text(value: Any) -> str:
    """A value as JSON, numbers rounded; nothing for NaN."""
    return "" if plain(value) is None else json.dumps(plain(value), sort_keys=True)


def plain(value: Any) -> Any:
    """Rounded numbers, None for NaN, integers where a column of floats has whole numbers, also in a dict."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else int(value) if value.is_integer() else round(value, DIGITS)


def trained(training: Fields) -> tuple[dict[str, float], list[torch.Tensor]]:
    """What a small training measures, and its weights."""
    study, dataset, method, seed, tiny_trunk, fields = (training[name] for name in TRAINING)
    with tempfile.TemporaryDirectory() as folder:
        recipe = adapter.recipe(study, "smoke", dataset, method, **fields)
        return adapter.train(study, recipe, seed, Path(folder), tiny_trunk=tiny_trunk)


def by_line(value: Any, depth: int) -> str:
    """JSON with one entry to a line down to a depth."""
    if depth and isinstance(value, dict):
        inner = [f"{json.dumps(name)}: {by_line(part, depth - 1)}" for name, part in value.items()]
        return "{\n" + ",\n".join(inner) + "\n}"
    if depth and isinstance(value, list):
        return "[\n" + ",\n".join(by_line(part, depth - 1) for part in value) + "\n]"
    return json.dumps(value)


def recorded_recipes() -> str:
    """recipes.json"""
    return by_line({study: recipes(study, [*filter(None, names)]) for study, names in read("recipes.json").items()}, 2)


def recorded_keys() -> str:
    """keys.json"""
    requests, every = [], {}
    for request in read("keys.json")["requests"]:
        made = cells(request)
        every |= made["cells"]
        requests.append({name: request[name] for name in REQUEST} | {"data": made["data"]})
        requests[-1]["keys"] = " ".join(made["cells"])
    return by_line({"requests": requests, "cells": every}, 2)


def recorded_rows() -> str:
    """rows.csv"""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row for request in laid_out() for row in rows(request))
    return stream.getvalue().removesuffix("\n")


def recorded_results() -> str:
    """results.json"""
    return by_line([training | {"measured": trained(training)[0]} for training in read("results.json")], 1)


FILES = {"recipes.json": recorded_recipes, "keys.json": recorded_keys, "rows.csv": recorded_rows,
         "results.json": recorded_results}

if __name__ == "__main__":
    for file, content in FILES.items():
        if not sys.argv[1:] or file.partition(".")[0] in sys.argv[1:]:
            (FOLDER / file).write_text(content() + "\n", encoding="utf-8")
