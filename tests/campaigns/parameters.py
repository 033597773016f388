"""Parameters: fields of recipes, those of notebooks, options of the command line."""

import contextlib
import functools
import io
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import torch
from pandas import DataFrame

from repro import cli, experiments, notebook, papers
from repro.audiovisual import recipe as audiovisual
from repro.audiovisual import study
from repro.audiovisual.clips import Clips
from repro.image import recipe as image
from repro.run import device as devices
from repro.run.engine import pool_of
from repro.run.export import rows_of
from repro.run.store import Cell, Store
from repro.skeleton import recipe as skeleton
from tests.campaigns import mutations
from tests.campaigns.kinds import Kind, Refused

RECIPES = [("SkeletonRecipe", skeleton.quick("ucla", "AE+CE")), ("ImageRecipe", image.quick("cifar10", "jcl")),
           ("AudioVisualRecipe", audiovisual.quick("synthetic", "cmacc"))]
NUMBERED = (  # fields that hold numbers
    "layers", "units", "learning_rate", "temperature", "key_temperature", "keys", "strength", "batch", "dictionary",
    "characters", "split", "iterations", "clips", "redundancy",
)
NUMBERS = (
    "0", "1", "2", "3", "8", "16", "32", "500", "0.1", "0.5", "0.999", "1,2", "0,1,2", "0.1,0.2", "2,2", "1.5", "-1",
    "nan", "inf", "1e999", "1e-9", "9" * 30, "9" * 5000, "4294967295", "4294967296", "1_0", "٣", "", "1;2", " 2 ",
)
WORDS = [word for word in mutations.WORDS if "\0" not in word and len(word) < 10_000]  # as a shell can hand them over
COMMANDS = [
    ["run", "taxonomy", "--preset", "smoke", "--objectives", "CE,AE", "--seeds", "0,1", "--layers", "2"],
    ["run", "taxonomy", "--preset", "smoke", "--units", "8", "--learning-rate", "0.01", "--variant", "mlp_head"],
    ["run", "encoder_collapse", "--preset", "smoke", "--layers", "1,2", "--objectives", "random,AE", "--workers", "2"],
    ["run", "temperature_grid", "--preset", "smoke", "--temperature", "0.1,0.2", "--key-temperature", "0.05"],
    ["run", "positive_keys", "--preset", "smoke", "--keys", "1,2", "--strength", "0,4", "--temperature", "0.2"],
    ["run", "ohem_vs_active", "--preset", "smoke", "--sampler", "random", "--batch", "16", "--device", "cpu"],
    ["run", "mutual_information", "--preset", "smoke", "--characters", "2", "--engine", "inline"],
    ["run", "transfer", "--preset", "smoke", "--targets", "synthetic_video", "--split", "1", "--clips", "500"],
    ["recipe", "image_methods", "--dataset", "cifar10", "--preset", "quick", "--method", "sce"],
]


def recipes() -> list[dict[str, Any]]:
    """The fields of recipes, and which one's they are."""
    return [{"recipe": name, "fields": recipe.to_dict()} for name, recipe in RECIPES]


def damage_recipe(stored: dict[str, Any], draw: Random) -> dict[str, Any]:
    """Other values, a field less, or one of another name."""
    fields = mutations.of_value(stored["fields"], draw)
    return stored | {"fields": fields if type(fields) is dict else {"epochs": fields}}


def read_recipe(stored: dict[str, Any], folder: Path) -> None:
    """Make the recipe again; its fields are those given, finite numbers among them, the others the defaults."""
    before = dict(RECIPES)[stored["recipe"]]
    changed = {name for name in {*stored["fields"], *before.to_dict()}
               if repr(stored["fields"].get(name)) != repr(before.to_dict().get(name))}
    try:
        found = type(before).from_dict(stored["fields"]).to_dict()
    except (ValueError, TypeError) as error:
        assert any(name in str(error) for name in changed), f"{error} names none of {changed}"
        raise
    for name, value in stored["fields"].items():
        assert found[name] == value and isinstance(found[name], bool) == isinstance(value, bool), name
        assert not isinstance(found[name], float) or math.isfinite(found[name]), f"{name} is {value}"


def namespaces() -> list[dict[str, Any]]:
    """The parameters of a notebook of every table, all fields of its recipe among them."""
    return [
        {"table": name} | dict.fromkeys(declared.study.fields, "auto")
        | {"dataset": declared.datasets[0], "preset": "smoke", "seeds": "0", "variant": "none", "device": "cpu"}
        for name, declared in papers.tables().items()
    ]


def damage_namespace(namespace: dict[str, Any], draw: Random) -> dict[str, Any]:
    """Another value, or a name more."""
    changed, names = dict(namespace), [name for name in namespace if name != "table"]
    for _ in range(draw.choice((1, 1, 2))):
        name, numbered = draw.choice(names), [name for name in names if name in (*NUMBERED, "seeds")]
        match draw.randrange(8):
            case 0:
                changed[f"{name}s"] = changed[name]
            case 1:
                changed[name] = f"{changed[name]},{draw.choice(WORDS)}"
            case 2:
                changed[name] = draw.choice(WORDS)
            case 3:
                changed[name] = draw.choice(mutations.VALUES)
            case _:
                changed[draw.choice(numbered)] = draw.choice(NUMBERS)
    return changed


def read_namespace(namespace: dict[str, Any], folder: Path) -> None:
    """Run a notebook's third cell; the cells of its table are those asked for."""
    name = namespace["table"]
    usual = next(sound for sound in namespaces() if sound["table"] == name)
    given = {parameter: value for parameter, value in namespace.items() if parameter != "table"}
    changed = [each for each, value in given.items() if each not in usual or value is not usual[each]]
    try:
        with _light_data(folder), contextlib.redirect_stdout(io.StringIO()):
            settings = notebook.begin(dict(given), name)
            cells = experiments.find_table(name).cells(**settings)
    except (ValueError, TypeError, OSError) as error:
        assert any(parameter in str(error) for parameter in changed), f"{error}"
        raise
    assert settings == given
    _check_cells(cells, given)


def _check_cells(cells: list[Cell], given: dict[str, Any]) -> None:
    """Raise AssertionError unless the cells have the numbers asked for where they use them, and there no others."""
    assert {cell.seed for cell in cells} == _numbers(given.get("seeds", "0"))
    for name in NUMBERED:
        if given.get(name, "auto") != "auto":
            found = {getattr(cell.recipe, name) for cell in cells if cell.recipe.uses(name)}
            assert found == _numbers(given[name]), name
            assert not any(name in cell.changes for cell in cells if not cell.recipe.uses(name)), name


def _numbers(value: Any) -> set[float]:
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    return {float(part) for part in parts}


def damage_command(words: list[str], draw: Random) -> list[str]:
    """Another value, a misspelt word, a word more or less."""
    changed, place = list(words), draw.randrange(len(words))
    values = [each for each, word in enumerate(words) if words[each - 1].startswith("--")]
    match draw.randrange(10):
        case 0:
            changed[place] = changed[place][:-1]
        case 1:
            del changed[place]
        case 2:
            changed.insert(place, changed[place])
        case 3:
            changed[place] = draw.choice(WORDS)
        case 4:
            changed[draw.choice(values)] += "," + draw.choice(NUMBERS)
        case _:
            changed[draw.choice(values)] = draw.choice(NUMBERS)
    return changed


def read_command(words: list[str], folder: Path) -> None:
    """Give a command; tables list their cells and train nothing."""
    with _light_data(folder), contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(experiments, "run_table", _listed))
        stack.enter_context(mock.patch.object(sys, "argv", ["repro", *words]))
        said, _ = (stack.enter_context(redirect(io.StringIO()))
                   for redirect in (contextlib.redirect_stderr, contextlib.redirect_stdout))
        status = 0
        try:
            cli.main()
        except SystemExit as ended:
            status = ended.code
    if status:
        message = said.getvalue()
        assert status == 2 and "Traceback" not in message, f"{status}: {message}"
        assert message.startswith("repro: ") or "Error: " in message, message
        raise Refused(message if message.startswith("repro: ") else message.rpartition("Error: ")[2])


def _listed(
    name: str, dataset: str | None = None, *, engine: str, workers: str, device: str, train: str, tensorboard: bool,
    **choices: Any,
) -> DataFrame:
    """Stands for `run_table`: the cells that it would train."""
    cells = experiments.find_table(name).cells(dataset, device=device, **choices)
    pool_of(engine, workers, cells, devices.resolve(device))
    _check_cells(cells, choices)
    return experiments.find_table(name).numbers({}, rows_of([], Store()))


@contextlib.contextmanager
def _light_data(folder: Path) -> Iterator[None]:
    """One folder for all inputs, so that bundled data are made once; no clips, which take the longest, are made."""
    os.environ["REPRO_RUNS"], os.environ["REPRO_DATA"] = str(folder.parent / "runs"), str(folder.parent / "data")
    load = study._load

    def lightly(name: str, root: Path, **options: Any) -> Any:
        return blank() if name == "synthetic" else load(name, root, **options)

    with mock.patch.object(study, "_load", lightly):
        yield


@functools.cache
def blank(clips: int = 2000, frames: int = 8) -> Clips:
    """As many clips as the bundled ones, in the dark and silent."""
    there, offsets = torch.ones(clips, dtype=torch.bool), torch.arange(clips + 1)
    labels, first = torch.arange(clips) % 10, torch.arange(clips) < clips // 2
    return Clips(
        name="synthetic", digest="blank", classes=tuple("abcdefghij"), labels=labels, categories=labels, pretrain=there,
        train=first, test=~first, frames=torch.zeros(clips * frames, 24, 24, 3, dtype=torch.uint8),
        first_frame=offsets * frames, mel=torch.zeros(clips * frames, 4), first_row=offsets * frames, rows_per_frame=1,
        window=frames,
    )


KINDS = {
    "recipe fields": Kind(recipes, damage_recipe, read_recipe),
    "notebook parameters": Kind(namespaces, damage_namespace, read_namespace),
    "command line": Kind(lambda: COMMANDS, damage_command, read_command),
}
