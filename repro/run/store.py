"""Runs on disk: one folder per training, found by the hash of everything its result depends on.

    <REPRO_RUNS>/cells/<key>/recipe.json      the cell
                             owner.json       who claimed it last, and how often commands have tried it
                             progress.jsonl   losses along training
                             checkpoint.pt    everything needed to continue exactly
                             result.json      the cell is complete once this exists
                             <another key>/   a cell that measures the same training otherwise: recipe and result
"""

import contextlib
import dataclasses
import datetime
import functools
import hashlib
import json
import math
import os
import reprlib
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock

from repro.data import manifest
from repro.data.disk import (
    acquire,
    alone,
    read_file,
    remove_half_written,
    require_regular,
    require_writable,
    write_atomically,
)
from repro.recipe import Recipe, entry_name

PARTS = {  # of `recipe.json`
    "key": str, "study": str, "recipe": dict, "seed": int, "preset": str, "dataset": str, "digest": str, "version": int,
    "changes": dict,
}
UNNAMED_IN_KEYS = ("skeletons", "images", "clips")  # the first studies, whose recipes are unlike
TEXTS = ("select",)  # of a result, what is text: how epoch and checkpoint were chosen
TAKEN = (*PARTS, "metrics", "cost", "commit", "finished", "named", "measure", "value")  # columns, which no measure is
LONGEST = 2**20  # bytes of a description or a result; usual are two thousand
TRIES = 2  # of a cell, by the processes of one command
LAST = 4096  # bytes at the end of a log that hold at least its last line


@dataclasses.dataclass(frozen=True)
class Cell:
    """One recipe and one seed, on the data that are here.

    Attributes:
        study: name of how it is trained and measured.
        recipe: all hyper-parameters.
        seed: of initialisation, order, augmentation and probe.
        preset: name the recipe was made under: "paper", "quick" or "smoke".
        dataset: name of the data set, with the part or copy it is.
        digest: hash of the prepared data.
        version: that of the training, raised when its results change.
        evaluation: that of what is measured afterwards; stands with the result and not in the key: a result of an
            earlier one is measured again from the checkpoint, only later learners are trained again.
        changes: the fields in which the recipe departs from its preset, as that was when it was made.
        trained: the recipe with the settings of the evaluation that its preset has; None if it has them itself.
        row, called: of the table that asks for it, the number of the row, and by column what that is called.
        departures: the changes that neither the row sets nor the paper prints a table for.
    """

    study: str
    recipe: Recipe
    seed: int
    preset: str
    dataset: str
    digest: str
    version: int
    evaluation: int = 1
    changes: dict[str, Any] = dataclasses.field(default_factory=dict, compare=False)
    trained: Recipe | None = dataclasses.field(default=None, compare=False)
    row: int = dataclasses.field(default=0, compare=False)
    called: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)
    departures: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def training(self) -> "Cell":
        """The cell whose training this one measures: itself, unless it is to be measured otherwise than its preset."""
        if self.trained is None:
            return self
        changes = {name: value for name, value in self.changes.items() if getattr(self.trained, name) == value}
        return dataclasses.replace(self, recipe=self.trained, changes=changes, trained=None)

    @property
    def key(self) -> str:
        """Hash of what the result depends on: recipe, seed, data, the training's version, and the study, but for those
        of `UNNAMED_IN_KEYS`.

        ValueError for one that a table asks for and that has no data yet: see `repro.table.Study.on_data`.
        """
        if not self.digest:
            raise ValueError(f"{self} of {self.dataset} has no key before its data are known")
        study = [] if self.study in UNNAMED_IN_KEYS else [self.study]
        content = json.dumps([self.recipe.canonical(), self.seed, self.digest, self.version, *study])
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """What people are told it is, see `repro.recipe.entry_name`."""
        return entry_name(getattr(self.recipe, self.recipe.named_by), self.changes)

    def __str__(self) -> str:
        return f"{self.label}, seed {self.seed}"

    def require(self, digest: str) -> None:
        """Raise ValueError if the data at hand have another digest than those the cell was declared on."""
        if digest != self.digest:
            raise ValueError(
                f"{self.dataset} has changed since this cell was asked for (digest {digest[:12]} instead of "
                f"{self.digest[:12]}); bring the earlier data back, or give the command again for a new cell"
            )

    def describe(self) -> dict[str, Any]:
        """The content of `recipe.json`."""
        return {name: getattr(self, name) for name in PARTS} | {"recipe": self.recipe.to_dict()}


class Run:
    """The folder of a cell, and the one of its training, where its weights are; they are mostly the same."""

    def __init__(self, folder: Path, cell: Cell, trained_in: Path | None = None) -> None:
        self.folder, self.cell, self.trained_in = folder, cell, trained_in or folder

    @property
    def result(self) -> dict[str, Any] | None:
        """The stored result, None while the cell is not complete, or is to be evaluated again; raises as `read`."""
        if not (self.folder / "result.json").exists():
            return None
        result = self.read()
        outdated = evaluation_of(result) < self.cell.evaluation and (self.trained_in / "checkpoint.pt").exists()
        return None if outdated else result

    @property
    def done(self) -> float:
        """Part of the cell that is done, from 0 to 1; evaluation counts as a step."""
        return 1.0 if (self.folder / "result.json").exists() else trained(self.trained_in)

    @property
    def measured_again(self) -> bool:
        """Whether it measures the training of another cell that is finished, and takes no step in its folder."""
        return self.trained_in != self.folder and (self.trained_in / "result.json").exists()

    def read(self) -> dict[str, Any]:
        """The stored result of a complete cell; raises ValueError naming the file if it is damaged or not there."""
        return read_result(self.folder / "result.json")

    def begin(self) -> None:
        """Write `recipe.json`, also that of the training, once the cell is known to be one that can be trained."""
        write_json(self.folder / "recipe.json", self.cell.describe())
        if self.trained_in != self.folder and not self.measured_again:
            write_json(self.trained_in / "recipe.json", self.cell.training.describe())

    def finish(self, result: dict[str, Any]) -> None:
        """Write `result.json`, which completes the cell; one that is evaluated again keeps what its training cost."""
        (self.trained_in / "checkpoint.previous.pt").unlink(missing_ok=True)  # first, that no kill leaves it for ever
        path = self.folder / "result.json"
        if path.exists():
            result = result | {"cost": self.read()["cost"]}
        check_result(result)
        self.begin()
        write_json(path, {"evaluation": self.cell.evaluation} | result)
        self.clear()

    def clear(self) -> None:
        """Remove the checkpoints of later learners, which are needed until the result is there, if one may."""
        for checkpoint in self.folder.glob("*/checkpoint*.pt"):
            with contextlib.suppress(OSError):
                checkpoint.unlink()

    @contextlib.contextmanager
    def claim(self, command: str = "") -> Iterator[bool]:
        """Hold the lock of the training inside the block, or of the cell alone where that training is finished.

        Yields False at once if it is held elsewhere, or this command's processes have tried the cell `TRIES` times.
        A lock belongs to the process: it is free again when the process ends, however it ends.
        """
        folder = self._locked
        try:
            lock = acquire(folder / "lock")
        except filelock.Timeout:
            yield False
            return
        with lock:
            tries = self.tries(command)
            if tries < TRIES:
                remove_half_written(folder)
                now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
                counts = _owner(folder).get("tries", {}) | {f"{command} {self.cell.key}": tries + 1}
                owned = {"process": os.getpid(), "host": socket.gethostname(), "since": now}
                write_json(folder / "owner.json", owned | ({"tries": counts} if command else {}))
            yield tries < TRIES

    def tries(self, command: str) -> int:
        """How often the processes of a command have claimed the cell, of a command without name never."""
        return int(_owner(self._locked).get("tries", {}).get(f"{command} {self.cell.key}", 0)) if command else 0

    def give_up(self, command: str) -> None:
        """Let no further process of a command try the cell, whose lock this one holds."""
        owned = _owner(self._locked)
        counts = owned.get("tries", {}) | {f"{command} {self.cell.key}": TRIES}
        write_json(self._locked / "owner.json", owned | {"tries": counts})

    def wait(self) -> None:
        """Return once nobody holds what `claim` would; says for whom it waits."""
        whom = f"{owner(self._locked)}, which trains {self.cell}, in {self._locked}"
        with alone(self._locked / "lock", whom):
            pass

    @property
    def _locked(self) -> Path:
        return self.folder if self.measured_again else self.trained_in


@functools.cache
def warn_once(problem: str) -> None:
    """Print a line on standard error, the first time that it is to be printed."""
    from tqdm.auto import tqdm  # takes a while to import, and is seldom needed here

    tqdm.write(problem, file=sys.stderr)


class Store:
    """All runs under one folder, by default REPRO_RUNS."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = manifest.runs_root() if root is None else Path(root)

    def require_writable(self) -> None:
        """Raise OSError, naming folder and variable, unless runs can be written here; creates nothing."""
        try:
            require_writable(self.root)
            require_regular(self.root / "finished.log")
        except OSError as error:
            raise OSError(f"{self.root}, the folder of runs, cannot be written ({error.strerror}); make room or give "
                          "yourself the right to write there, or point REPRO_RUNS at another folder") from error

    def require_usable(self) -> None:
        """As `require_writable`, unless there are finished cells: these may be read where nothing can be written."""
        if not any(self.root.glob("cells/*/result.json")):
            self.require_writable()

    def run(self, cell: Cell) -> Run:
        """The run of a cell: where its result is, else in the folder of its training.

        A cell whose training is finished and has lost its weights is trained by itself.
        """
        folder, training = self.folder(cell.key), self.root / "cells" / cell.training.key
        lost = (training / "result.json").exists() and not (training / "checkpoint.pt").exists()
        if folder.parent.name != "cells":  # it may be of the training of another preset
            return Run(folder, cell, folder.parent)
        if folder == training or lost or (folder / "result.json").exists():
            return Run(folder, cell)
        return Run(training / cell.key, cell, training)

    def folder(self, key: str) -> Path:
        """Where the result of a cell is, or will be if it is no other measuring of a training."""
        return self._measured_otherwise.get(key, self.root / "cells" / key)

    def trained_in(self, key: str) -> Path:
        """Where the weights of a finished cell are."""
        folder = self.folder(key)
        return folder if folder.parent.name == "cells" else folder.parent

    @functools.cached_property
    def _measured_otherwise(self) -> dict[str, Path]:
        """The folders of finished cells inside those of their trainings, by key, when this was first asked."""
        return {path.parent.name: path.parent for path in self.root.glob("cells/*/*/result.json")}

    def finished(self, tell: Callable[[str], object] = warn_once) -> list[dict[str, Any]]:
        """Description and result of every complete cell, ordered by key; what is wrong with others is told."""
        cells = []
        paths = [*self.root.glob("cells/*/result.json"), *self.root.glob("cells/*/*/result.json")]
        for folder in sorted((path.parent for path in paths), key=lambda folder: folder.name):
            try:
                described, result = read_description(folder / "recipe.json"), read_result(folder / "result.json")
                cells.append(described | {"result": result})
            except ValueError as error:
                tell(f"{folder} is left out: {error}")
        return cells


def evaluation_of(result: dict[str, Any]) -> int:
    """The version of the evaluation that a stored result is of; the first ones do not say so."""
    return int(result.get("evaluation", 1))


def trained(folder: Path) -> float:
    """Part of a training that is done, from 0 to 1, by the last line of its log; evaluation counts as a step."""
    try:
        with open(folder / "progress.jsonl", "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LAST))
            last = parse_json(log.read().splitlines()[-1].decode())
        return min(1.0, max(0.0, last["step"] / (last["of"] + 1)))
    except (OSError, LookupError, ValueError, TypeError, ZeroDivisionError):  # not begun, or being written
        return 0.0


def owner(folder: Path) -> str:
    """Who claimed the cell of a folder last, in words."""
    try:
        return "process {process} on {host} (since {since})".format(**_owner(folder))
    except KeyError:
        return "another process"


def _owner(folder: Path) -> dict[str, Any]:
    """The content of `owner.json`, nothing where there is none or it is damaged."""
    try:
        claimed = parse_json(read_file(folder / "owner.json", LONGEST).decode("utf-8"))
        check_parts({"tries": {}} | claimed, {"tries": dict})
        return claimed
    except (OSError, ValueError):
        return {}


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically; NaN and infinity raise ValueError."""
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"
    write_atomically(path, lambda temporary: temporary.write_text(text))


def read_description(path: Path) -> dict[str, Any]:
    """The content of a `recipe.json`, as `Cell.describe` gives it.

    ValueError names the file if it is damaged, lacks one of the parts, or is of another cell than its folder.
    """
    def check(description: dict[str, Any]) -> None:
        check_parts(description, PARTS)
        if description["seed"] < 0 or description["version"] < 1:
            raise ValueError(f"seed={description['seed']}, version={description['version']} should be 0 and 1 or more")

    description = _read(path, check)
    if description["key"] != path.parent.name:
        raise ValueError(f"{path} cannot be read (key={description['key']!r} is not its folder's, {path.parent.name}); "
                         "delete the folder, whose weights may be another cell's too, and run the table again")
    return description


def read_result(path: Path) -> dict[str, Any]:
    """The content of a `result.json`: "cost", and otherwise measures; raises as `read_description`."""
    return _read(path, check_result)


def check_result(result: Mapping[str, Any]) -> None:
    """Raise ValueError unless there is a cost, and all else are measures, see `check_measures`."""
    check_parts(result, {"cost": dict})
    check_measures({name: value for name, value in result.items() if name != "cost"})


def check_measures(measures: Mapping[str, Any]) -> None:
    """Raise ValueError unless measures have names of their own, and all are numbers but those of `TEXTS`."""
    if taken := [name for name in measures if name in TAKEN]:
        raise ValueError(f"{taken[0]} is the name of a column of tables, not of a measure")
    kinds: dict[str, type | tuple[type, ...]] = dict.fromkeys(measures, (int, float))
    kinds |= {name: int if name == "evaluation" else str for name in ("evaluation", *TEXTS) if name in measures}
    check_parts(measures, kinds)


def _read(path: Path, check: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    try:
        content = parse_json(read_file(path, LONGEST).decode("utf-8"))
        check(content)
    except (OSError, ValueError) as error:
        next_step = "delete recipe.json and result.json there, and run the table again: what is trained is kept"
        raise ValueError(f"{path} cannot be read ({error}); {next_step}") from error
    return content


def parse_json(text: str) -> dict[str, Any]:
    """The object that a text of ours holds.

    ValueError if there is none, a number in it is not finite or beyond 64 bits, or a text cannot be written as UTF-8.
    """
    try:
        value = json.loads(text, parse_float=_number, parse_constant=_number, parse_int=_number)
        if "\\u" in text:  # half of a character can only be escaped
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"it holds a {type(value).__name__}")
    return value


def check_parts(values: Mapping[str, Any], parts: Mapping[str, type | tuple[type, ...]]) -> None:
    """Raise ValueError unless all parts are there, each of its type or one of its types; there may be more."""
    missing = [name for name in parts if name not in values]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    for name, kinds in parts.items():
        if type(values[name]) not in (kinds if isinstance(kinds, tuple) else (kinds,)):
            raise ValueError(f"{name} is {reprlib.repr(values[name])}")


def _number(text: str) -> float | int:
    value = int(text) if text.removeprefix("-").isdecimal() else float(text)
    if not -(2**63) < value < 2**63 and (isinstance(value, int) or not math.isfinite(value)):
        raise ValueError(f"{reprlib.repr(text)} is not a finite number of 64 bits")
    return value
