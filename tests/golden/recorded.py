"""The golden files: what they ask of the package, and what the package as it is makes of that."""

import csv
import dataclasses
import hashlib
import io
import json
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from ended import finish
from made_up_images import use_tiny_trunk
from pandas import DataFrame
from pytest import MonkeyPatch
from torch.utils._pytree import tree_leaves
from tqdm.auto import tqdm

from repro import papers
from repro.audiovisual.recipe import CLIPS
from repro.image.recipe import IMAGES
from repro.run.device import threads
from repro.run.fit import load_checkpoint
from repro.run.store import CLOCK, Run, Store
from repro.run.training import train
from repro.skeleton.recipe import SKELETONS
from repro.table import Table

FOLDER = Path(__file__).parent
STUDIES = {"skeleton": SKELETONS, "image": IMAGES, "audiovisual": CLIPS}
MODELS = {"skeleton": ("model",), "image": ("model",), "audiovisual": ("towers", "classifiers")}
REQUEST = ("table", "dataset", "label", "preset", "variant", "seeds", "fields")
TRAINING = ("study", "dataset", "method", "seed", "tiny_trunk", "fields")
COLUMNS = ("table", "dataset", "label", "preset", "variant", "asked", "row")  # of rows.csv
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
        texts[name] = STUDIES[study].presets[preset](dataset, method).canonical()
    first = json.loads(texts[names[0]])
    return {"": first} | {
        name: {"sha256": hashlib.sha256(text.encode()).hexdigest()[:16]} | changed(json.loads(text), first)
        for name, text in texts.items()
    }


def changed(values: Fields, first: Fields) -> dict[str, Any]:
    """What values differ from the first ones; None where these alone have one."""
    return {name: values.get(name) for name in {**first, **values}
            if name not in values or name not in first or values[name] != first[name]}


def asked_runs(request: Fields) -> tuple[Table, list[Run]]:
    """A table and the runs that a request is about.

    Where a label is given all data sets have it, and a digest that is made up: none is read.
    """
    table = papers.tables()[request["table"]]
    if request["label"] is not None:
        data = SimpleNamespace(name=request["label"], digest="made up")
        table = dataclasses.replace(table, study=dataclasses.replace(table.study, load=lambda recipe: data))
    choices = {"seeds": ",".join(map(str, request["seeds"])), "preset": request["preset"], "device": "cpu"}
    texts = {name: ",".join(str(value).replace(",", "+") if name == "targets" else str(value) for value in values)
             for name, values in request["fields"].items()}  # as users type them
    return table, table.runs(request["dataset"], variant=request["variant"], **choices, **texts)


def runs(request: Fields) -> dict[str, Any]:
    """The runs of a request by their ids: the seed, and the fields that leave the preset's recipe of the method.

    Of all of them `data`, the digests, shortened, with the version of the training.
    """
    table, asked = asked_runs(request)
    preset, named = "quick" if request["preset"] == "auto" else request["preset"], table.study.recipe.named_by
    by_id, data = {}, set()
    for run in asked:
        method = getattr(run.recipe, named)
        usual = table.study.presets[preset](request["dataset"], method).to_dict()
        by_id[run.id] = {"seed": run.seed, named: method} | changed(run.recipe.to_dict(), usual)
        data.add((run.digest[:16], run.version))
    return {"data": [[*pair] for pair in sorted(data)], "runs": by_id}


def measures(run: Run) -> dict[str, float]:
    """Made-up results of a run: from its id alone, so that they do not depend on the order of runs."""
    fields = run.recipe.to_dict()
    if "objectives" in fields:
        names = ["linear", "linear_best", "linear_without_copies", "linear_standardised",
                 "linear_standardised_without_copies", "knn1", "knn1_without_copies", "embedding_spread",
                 "readout_spread"]
        names += ["decoded_scale"] if {"AD", "CD"} & {*fields["objectives"].split("+")} else []
    elif "probe_view" in fields:
        names = ["linear", "knn1", "embedding_spread"]
    else:
        characters = fields["targets"] == "characters"
        names = ["linear", "linear_held_out"] if characters else [*filter(None, fields["targets"].split(","))]
        names += ["trained_on"]
        names += ["categories_video", "categories_audio", "expected"] if fields["method"] == "cmacc" else []
    return {name: made_up(run.id, name) for name in names}


def made_up(id: str, name: str) -> float:
    """A number from 0 to 100 with two decimals, of a run's id and the name of a measure."""
    return int(hashlib.sha256(f"{id} {name}".encode()).hexdigest()[:8], 16) % 10_000 / 100


def laid_out() -> list[dict[str, Any]]:
    """The requests whose rows are recorded, each of two seeds."""
    places = dict.fromkeys(tuple(row[name] for name in COLUMNS[:6]) for row in read_rows())
    return [
        {"table": table, "dataset": dataset, "label": label or None, "preset": preset, "variant": variant,
         "seeds": [0, 1], "fields": json.loads(fields)}
        for table, dataset, label, preset, variant, fields in places
    ]


def rows(request: Fields) -> list[dict[str, Any]]:
    """The rows that a request's table makes of made-up results, beside the printed numbers."""
    table, asked = asked_runs(request)
    stored = []
    for run in asked:
        parts = {"changes": run.changes, "recipe": run.recipe.to_dict(), "metrics": measures(run)}
        texts = {name: json.dumps(part) for name, part in parts.items()}
        stored.append(run.describe() | texts | {"cost": '{"finished": ""}', "commit": ""})
    made = table.numbers({run.id: run for run in asked}, DataFrame(stored),
                         table.columns_asked(request["fields"]))
    return [plain(row) for row in made.to_dict("records")]


def plain(value: Any) -> Any:
    """Rounded numbers, None for NaN, integers where a column of floats has whole numbers, also in a dict."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else int(value) if value.is_integer() else round(value, DIGITS)


def trained(training: Fields) -> tuple[dict[str, float], list[torch.Tensor]]:
    """What a small training measures, with its last losses, and its weights.

    With `tiny_trunk` images are seen by two convolutions in place of a ResNet-18.
    """
    name, dataset, method, seed, tiny_trunk, fields = (training[name] for name in TRAINING)
    study = STUDIES[name]
    recipe = study.presets["smoke"](dataset, method, **fields)
    with tempfile.TemporaryDirectory() as place, MonkeyPatch.context() as patched, tqdm(disable=True) as progress:
        if tiny_trunk:
            use_tiny_trunk(patched)
        folder = Store(place).folder(Run("golden", recipe, seed, "smoke", dataset, study.load(recipe).digest, 0))
        with folder.claim(), threads(recipe.threads):
            result = finish(train(folder, progress, study=study, device=torch.device("cpu")))
        log, state = folder.path / "progress.jsonl", load_checkpoint(folder.path)
        last = json.loads(log.read_text().splitlines()[-1]) if log.exists() else {}
    measured = {name: value for name, value in result.items() if name not in ("cost", "select")}
    measured |= {f"last {name}": value for name, value in last.items() if name not in ("step", *CLOCK)}
    weights = tree_leaves([state["learner"][part] for part in MODELS[name]])
    return measured, [leaf for leaf in weights if isinstance(leaf, torch.Tensor)]


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


def recorded_ids() -> str:
    """ids.json"""
    requests, every = [], {}
    for request in read("ids.json")["requests"]:
        made = runs(request)
        every |= made["runs"]
        requests.append({name: request[name] for name in REQUEST} | {"data": made["data"]})
        requests[-1]["ids"] = " ".join(made["runs"])
    return by_line({"requests": requests, "runs": every}, 2)


def recorded_rows() -> str:
    """rows.csv"""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for request in laid_out():
        given = {name: request[name] or "" for name in COLUMNS[:5]} | {"asked": json.dumps(request["fields"])}
        writer.writerows(given | {"row": json.dumps(row)} for row in rows(request))
    return stream.getvalue().removesuffix("\n")


def recorded_results() -> str:
    """results.json"""
    return by_line([training | {"measured": trained(training)[0]} for training in read("results.json")], 1)


FILES = {"recipes.json": recorded_recipes, "ids.json": recorded_ids, "rows.csv": recorded_rows,
         "results.json": recorded_results}

if __name__ == "__main__":
    for file, content in FILES.items():
        if not sys.argv[1:] or file.partition(".")[0] in sys.argv[1:]:
            (FOLDER / file).write_text(content() + "\n", encoding="utf-8")
