"""Runs on disk: one folder per training, found by the hash of everything its result depends on.

    <REPRO_RUNS>/runs/<id>/recipe.json      the run
                           owner.json       who claimed it last, and in which attempt
                           progress.jsonl   losses along training; probes.jsonl, what is measured along it
                           checkpoint.pt    everything needed to continue exactly
                           result.json      the run is complete once this exists
                           <frame>.csv      what it has left beside numbers: histograms, choices
                           <another id>/    a run that measures the same training otherwise: recipe and result

A finished run is a record: what `DESCRIBED` names, "metrics" and "cost". It is read from its folder or from a row of
`figures/runs.csv`, of which every figure is redrawn without training. pandas is imported where there are rows: many
commands need none.
"""

import contextlib
import csv
import dataclasses
import datetime
import functools
import hashlib
import io
import json
import math
import os
import reprlib
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock

from repro.data import disk, manifest
from repro.data.disk import acquire, alone, read_file, remove_half_written, write_atomically
from repro.recipe import Recipe, entry_name, parse_number

if TYPE_CHECKING:
    from pandas import DataFrame

Kinds = Mapping[str, type | tuple[type, ...]]
DESCRIBED = {  # in `recipe.json`
    "id": str, "study": str, "seed": int, "preset": str, "dataset": str, "digest": str, "version": int,
    "changes": dict, "recipe": dict,
}
COST = {"finished": str, "commit": str}  # in the cost of a record
KNOWN: Kinds = {"code": str, "device": str, "precision": str, "seconds": (int, float)}  # there, if it says so
NO_PARTS: Kinds = {}
COLUMNS = [*DESCRIBED, "metrics", "cost", "commit"]  # of `figures/runs.csv`
TAKEN = (*COLUMNS, "finished", "named", "measure", "value", "whose")  # columns of tables, which no measure is
KINDS = {"cost": dict, "evaluation": int, "select": str}  # in a result; all else are measures, numbers
UNNAMED_IN_IDS = ("skeletons", "images", "clips")  # the first studies, whose recipes are unlike
LONGEST = 2**20  # bytes of a description or a result; usual are two thousand
LOGS = {"progress": "progress.jsonl", "epochs": "progress.jsonl", "probes": "probes.jsonl"}  # frames of lines
CLOCK = ("of", "steps_per_epoch", "seconds")  # of a line, which are no measures
AGAIN = "delete recipe.json and result.json there, and run the table again: what is trained is kept"
ANEW = "delete that folder and run the table again"
RESTORE = "restore it from version control"
REMAKE = f"{RESTORE} or, in REPRO_RUNS, delete it and repeat the command or notebook that made it"
Record = dict[str, Any]
Tell = Callable[[str], object]


@dataclasses.dataclass(frozen=True)
class Run:
    """One recipe and one seed, on the data that are here.

    Attributes:
        study: name of how it is trained and measured.
        recipe: all hyper-parameters.
        seed: of initialisation, order, augmentation and probe.
        preset: name the recipe was made under: "paper", "quick" or "smoke".
        dataset: name of the data set, with the part or copy it is.
        digest: hash of the prepared data.
        version: that of the training, raised when its results change.
        evaluation: that of what is measured afterwards; stands with the result and not in the id: a result of an
            earlier one is measured again from the checkpoint, only later learners are trained again.
        changes: the fields in which the recipe differs from its preset, as that was when it was made.
        trained: the recipe with the settings of the evaluation that its preset has; None if it has them itself.
        row, called: of the table that asks for it, the number of the row, and by column what that is called.
        changed: the changes that neither the row sets nor the paper prints a table for.
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
    changed: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def training(self) -> "Run":
        """The run whose training this one measures: itself, unless it is to be measured otherwise than its preset."""
        if self.trained is None:
            return self
        changes = {name: value for name, value in self.changes.items() if getattr(self.trained, name) == value}
        return dataclasses.replace(self, recipe=self.trained, changes=changes, trained=None)

    @property
    def id(self) -> str:
        """Hash of what the result depends on: recipe, seed, data, the training's version, and the study, but for those
        of `UNNAMED_IN_IDS`.

        ValueError for one that a table asks for and that has no data yet: see `repro.table.Study.on_data`.
        """
        if not self.digest:
            raise ValueError(f"{self} of {self.dataset} has no id before its data are known")
        study = [] if self.study in UNNAMED_IN_IDS else [self.study]
        content = json.dumps([self.recipe.canonical(), self.seed, self.digest, self.version, *study])
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """What people are told it is, see `repro.recipe.entry_name`."""
        return entry_name(getattr(self.recipe, self.recipe.named_by), self.changes)

    def __str__(self) -> str:
        return f"{self.label}, seed {self.seed}"

    def require(self, digest: str) -> None:
        """Raise ValueError if the data at hand have another digest than those the run was declared on."""
        if digest != self.digest:
            raise ValueError(
                f"{self.dataset} has changed since this run was asked for (digest {digest[:12]} instead of "
                f"{self.digest[:12]}); bring the earlier data back, or give the command again for a new run"
            )

    def describe(self) -> dict[str, Any]:
        """The content of `recipe.json`."""
        return {name: getattr(self, name) for name in DESCRIBED} | {"recipe": self.recipe.to_dict()}


class RunFolder:
    """The folder of a run, and the one of its training, where its weights are; they are mostly the same."""

    def __init__(self, path: Path, run: Run, trained_in: Path | None = None) -> None:
        self.path, self.run, self.trained_in = path, run, trained_in or path

    @property
    def complete(self) -> bool:
        """Whether there is a result, whichever evaluation it is of."""
        return (self.path / "result.json").exists()

    @property
    def result(self) -> dict[str, Any] | None:
        """The result, None while there is none or it is to be measured again; raises as `read_result`."""
        if not self.complete:
            return None
        result = read_result(self.path / "result.json")
        outdated = evaluation_of(result) < self.run.evaluation and (self.trained_in / "checkpoint.pt").exists()
        return None if outdated else result

    @property
    def done(self) -> float:
        """Part of the run that is done, from 0 to 1; evaluation counts as a step."""
        return 1.0 if self.complete else trained(self.trained_in)

    @property
    def measured_again(self) -> bool:
        """Whether it measures the training of another run that is finished, and takes no step in its folder."""
        return self.trained_in != self.path and (self.trained_in / "result.json").exists()

    def frame(self, name: str) -> "DataFrame":
        """What a complete run has left beside numbers, no rows if there is none of that name; raises as `read_frame`.

        "progress" has a row for every report, "epochs" the means over each epoch, "probes" what was measured along
        training, a row for each measure; any other name is of a file `<name>.csv` that was measured once.
        """
        from pandas import DataFrame

        folder = self.trained_in if name in ("progress", "epochs") else self.path  # probes are of its own settings
        path = folder / LOGS.get(name, f"{name}.csv")
        if not self.complete or not path.exists():
            return DataFrame()
        if name not in LOGS:
            return read_frame(path).drop(columns="code", errors="ignore")  # by which it is made again, if need be
        recipe: Any = self.run.recipe
        log = _read_log(path).drop(columns=[*CLOCK], errors="ignore")
        if name == "progress":
            return log
        last = _read_log(folder / LOGS["progress"]).iloc[-1]
        # Where a line does not say, all epochs were trained.
        log["epoch"] = log.pop("step") / last.get("steps_per_epoch", last["step"] / recipe.epochs)
        if name == "probes":
            log["epoch"] = log["epoch"].round().astype(int)
            return log.melt("epoch", var_name="measure").round(2).sort_values(["epoch", "measure"], ignore_index=True)
        log["epoch"] = log["epoch"].map(math.ceil)
        return log.groupby("epoch").mean().reset_index()

    def begin(self) -> None:
        """Write `recipe.json`, also that of the training, once the run is known to be one that can be trained."""
        write_json(self.path / "recipe.json", self.run.describe())
        if self.trained_in != self.path and not self.measured_again:
            write_json(self.trained_in / "recipe.json", self.run.training.describe())

    def finish(self, result: dict[str, Any]) -> None:
        """Write `result.json`, which completes the run; one that is evaluated again keeps what its training cost."""
        (self.trained_in / "checkpoint.previous.pt").unlink(missing_ok=True)  # first, that no kill leaves it for ever
        if self.complete:
            result = result | {"cost": read_result(self.path / "result.json")["cost"]}
        check_result(result, self.run.recipe.to_dict())
        self.begin()
        write_json(self.path / "result.json", {"evaluation": self.run.evaluation} | result)
        self.clear()

    def clear(self) -> None:
        """Remove the checkpoints of later learners, which are needed until the result is there, if one may."""
        for checkpoint in self.path.glob("*/checkpoint*.pt"):
            with contextlib.suppress(OSError):
                checkpoint.unlink()

    @contextlib.contextmanager
    def claim(self, attempt: str = "") -> Iterator[bool]:
        """Hold the lock of the training inside the block, or of the run alone where that training is finished.

        Yields False at once if it is held elsewhere, or the run was claimed in this attempt of a command before: then
        its process was lost, or met an error.
        A lock belongs to the process: it is free again when the process ends, however it ends.
        """
        folder = self._locked
        try:
            lock = acquire(folder / "lock")
        except filelock.Timeout:
            yield False
            return
        with lock:
            if self.claimed_in(attempt):
                yield False
                return
            remove_half_written(folder)
            now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
            attempts = _owner(folder).get("attempts", {}) | {self.run.id: attempt}
            owned = {"process": os.getpid(), "host": socket.gethostname(), "since": now, "attempts": attempts}
            write_json(folder / "owner.json", owned)
            yield True

    def claimed_in(self, attempt: str) -> bool:
        """Whether the run was last claimed in an attempt, which has a name."""
        return bool(attempt) and _owner(self._locked).get("attempts", {}).get(self.run.id) == attempt

    def wait(self) -> None:
        """Return once nobody holds what `claim` would; says for whom it waits."""
        owner = _owner(self._locked)
        whom = "process {process} on {host} (since {since})".format(**owner) if owner else "another process"
        with alone(self._locked / "lock", f"{whom}, which trains {self.run}, in {self._locked}"):
            pass

    @property
    def _locked(self) -> Path:
        return self.path if self.measured_again else self.trained_in


@functools.cache
def warn_once(problem: str) -> None:
    """Print a line on standard error, the first time that it is to be printed."""
    from tqdm import tqdm  # takes a while to import, and is seldom needed here

    tqdm.write(problem, file=sys.stderr)


class Store:
    """All runs under one folder, by default REPRO_RUNS."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = manifest.runs_root() if root is None else Path(root)

    def require_writable(self) -> None:
        """Raise OSError, naming folder and variable, unless runs can be written here; creates nothing."""
        try:
            for folder in (self.root, self.root / "runs"):
                disk.require_writable(folder)
        except OSError as error:
            raise OSError(f"{folder}, the folder of runs, cannot be written ({error.strerror}); make room or "
                          "give yourself the right to write there, or point REPRO_RUNS at another folder") from error

    def require_usable(self) -> None:
        """As `require_writable`, unless there are finished runs: these may be read where nothing can be written."""
        if not any(self.root.glob("runs/*/result.json")):
            self.require_writable()

    def folder(self, run: Run) -> RunFolder:
        """The folder of a run: where its result is, else in the folder of its training.

        A run whose training is finished and has lost its weights is trained by itself.
        """
        path, training = self.path(run.id), self.root / "runs" / run.training.id
        lost = (training / "result.json").exists() and not (training / "checkpoint.pt").exists()
        if path == training or lost or (path / "result.json").exists():
            return RunFolder(path, run, self.trained_in(run.id))  # it may be of the training of another preset
        return RunFolder(training / run.id, run, training)

    def path(self, id: str) -> Path:
        """Where the result of a run is, or will be if it is no other measuring of a training."""
        usual = self.root / "runs" / id
        return usual if (usual / "result.json").exists() else self._measured_otherwise.get(id, usual)

    def trained_in(self, id: str) -> Path:
        """Where the weights of a finished run are."""
        folder = self.path(id)
        return folder if folder.parent.name == "runs" else folder.parent

    @functools.cached_property
    def _measured_otherwise(self) -> dict[str, Path]:
        """The folders of finished runs inside those of their trainings, by id, when this was first asked."""
        return {path.parent.name: path.parent for path in self.root.glob("runs/*/*/result.json")}


def evaluation_of(result: dict[str, Any]) -> int:
    """The version of the evaluation that a stored result is of; the first ones do not say so."""
    return int(result.get("evaluation", 1))


def trained(folder: Path) -> float:
    """Part of a training that is done, from 0 to 1, by the last line of its log; evaluation counts as a step."""
    try:
        last = parse_json(read_file(folder / LOGS["progress"]).decode("utf-8", errors="replace").splitlines()[-1])
        return min(1.0, max(0.0, last["step"] / (last["of"] + 1)))
    except (OSError, LookupError, ValueError, TypeError, ZeroDivisionError):  # not begun, or being written
        return 0.0


def _owner(folder: Path) -> dict[str, Any]:
    """The content of `owner.json`, nothing where there is none or it is damaged."""
    try:
        claimed = parse_json(read_file(folder / "owner.json", LONGEST).decode("utf-8"))
        check_parts(claimed, {"process": int, "host": str, "since": str, "attempts": dict})
        return claimed
    except (OSError, ValueError):
        return {}


def read_result(path: Path, fields: Iterable[str] = (), cost: Kinds = NO_PARTS) -> dict[str, Any]:
    """The content of a `result.json`: "cost", and otherwise measures; ValueError names the file if it is damaged."""
    with reading(path, AGAIN):
        result = parse_json(read_file(path, LONGEST).decode("utf-8"))
        check_result(result, fields, cost)
    return result


def read_record(folder: Path) -> Record:
    """The record of the finished run in a folder.

    ValueError names the file if one is damaged or not there, lacks a part, or is of another run than its folder.
    """
    path = folder / "recipe.json"
    with reading(path, AGAIN):
        record = parse_json(read_file(path, LONGEST).decode("utf-8"))
        _check_description(record)
    if record["id"] != folder.name:
        raise ValueError(f"{path} cannot be read (id={record['id']!r} is not its folder's, {folder.name}); delete "
                         "the folder, whose weights may be another run's too, and run the table again")
    metrics = read_result(folder / "result.json", record["recipe"], COST)
    return record | {"cost": metrics.pop("cost"), "metrics": metrics}


def check_result(result: Record, fields: Iterable[str] = (), cost: Kinds = NO_PARTS) -> None:
    """Raise ValueError unless there is a cost of these parts, and what `KINDS` does not name are numbers.

    None of them may have the name of a column of tables, as fields of recipes are.
    """
    if taken := [name for name in result if name in (*TAKEN, *fields) and name not in KINDS]:
        raise ValueError(f"{taken[0]} is the name of a column of tables, not of a measure")
    check_parts(result, {"cost": dict} | {name: KINDS.get(name, (int, float)) for name in result})
    check_parts(result["cost"], cost, KNOWN)
    for name, value in result["cost"].items():
        if not str(value).isprintable():  # a terminal does what escape codes say
            raise ValueError(f"cost has {name}={value!r}, which cannot be printed")


def _check_description(record: Record) -> None:
    """Raise ValueError unless a record is described."""
    check_parts(record, DESCRIBED)
    if record["seed"] < 0 or record["version"] < 1:
        raise ValueError(f"seed={record['seed']}, version={record['version']} should be 0 and 1 or more")


@contextlib.contextmanager
def reading(path: Path, remedy: str) -> Iterator[None]:
    """Let an error inside the block name what is read, and the next step."""
    try:
        yield
    except (OSError, ValueError, LookupError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read ({error}); {remedy}") from error


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically; NaN and infinity raise ValueError."""
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"
    write_atomically(path, lambda temporary: temporary.write_text(text))


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


def check_parts(values: Mapping[str, Any], parts: Kinds, optional: Kinds = NO_PARTS) -> None:
    """Raise ValueError unless all parts are there, and they and the optional ones of one of their types."""
    missing = [name for name in parts if name not in values]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    for name, kinds in {**parts, **optional}.items():
        if name in values and type(values[name]) not in (kinds if isinstance(kinds, tuple) else (kinds,)):
            raise ValueError(f"{name} is {reprlib.repr(values[name])}")


def _number(text: str) -> float | int:
    value = int(text) if text.removeprefix("-").isdecimal() else float(text)
    if not -(2**63) < value < 2**63 and (isinstance(value, int) or not math.isfinite(value)):
        raise ValueError(f"{reprlib.repr(text)} is not a finite number of 64 bits")
    return value


def row_of(record: Record) -> dict[str, Any]:
    """The row of a record in `figures/runs.csv`: changes, recipe, metrics and cost are JSON."""
    row = record | {"commit": record["cost"]["commit"]}
    return {name: json.dumps(row[name], sort_keys=True) if isinstance(row[name], dict) else row[name]
            for name in COLUMNS}


def _table(rows: Iterable[Record]) -> "DataFrame":
    from pandas import DataFrame

    return DataFrame([*rows], columns=COLUMNS)


def rows_of(runs: Sequence[Run], store: Store) -> "DataFrame":
    """The rows of those of these runs that are finished, in their order; raises as `read_record`."""
    return _table(row_of(read_record(folder.path)) for folder in map(store.folder, runs) if folder.complete)


def finished_runs(store: Store, tell: Tell = warn_once) -> "DataFrame":
    """A row for each finished run, by id; one that is damaged is left out, with a line that is printed once."""
    rows: list[Record] = []
    results = [path for depth in ("*/*", "*") for path in (store.root / "runs").glob(f"{depth}/result.json")]
    for _, folder in sorted({path.parent.name: path.parent for path in results}.items()):  # no copy of a run counts
        try:
            rows.append(row_of(read_record(folder)))
        except ValueError as error:
            tell(f"{folder} is left out: {error}")
    return _table(rows)


def read_runs(path: Path, tell: Tell = warn_once) -> "DataFrame":
    """The exported runs of a file, none if it does not exist; damaged rows as damaged runs of `finished_runs`.

    ValueError if the file is no table of runs.
    """
    rows: dict[str, Record] = {}
    if not path.exists():
        return _table([])
    with reading(path, RESTORE):
        reader = csv.reader(io.StringIO(read_file(path).decode("utf-8-sig"), newline=""), strict=True)
        if (header := next(reader, [])) != COLUMNS:
            raise ValueError(f"it has the columns {header}, expected {COLUMNS}")
        for values in reader:
            try:
                row = _checked_row(values)
                if rows.setdefault(row["id"], row) is not row:
                    raise ValueError(f"{row['id']} is the id of an earlier row, too")
            except ValueError as error:
                tell(f"{path}: line {reader.line_num}: {error}; the row is left out: {RESTORE}")
    return _table(rows.values())


def _checked_row(values: list[str]) -> Record:
    """The values by column; ValueError if one is missing, or they are no record."""
    if len(values) != len(COLUMNS):
        raise ValueError(f"{len(values)} values, expected {len(COLUMNS)}")
    row: Record = dict(zip(COLUMNS, values, strict=True))
    row |= {name: parse_number(name, row[name]) for name in ("seed", "version")}
    record = row | {name: parse_json(row[name]) for name in ("changes", "recipe", "metrics", "cost")}
    _check_description(record)
    check_result({"cost": record["cost"], **record["metrics"]}, record["recipe"], COST)
    return row


def everything(tell: Tell = warn_once) -> "DataFrame":
    """Every finished run, of figures/runs.csv and of REPRO_RUNS, with the column of `with_owners`."""
    committed = exported(tell)
    return with_owners(merged(committed, finished_runs(Store(), tell)), committed)


def with_owners(runs: "DataFrame", committed: "DataFrame") -> "DataFrame":
    """Runs with a column `whose`: "ours" of committed ones, "yours", "replaces ours" where both have trained one."""
    numbers = committed["id"] + committed["metrics"] + committed["cost"]
    runs = runs.assign(whose="yours")
    runs.loc[runs["id"].isin(committed["id"]), "whose"] = "replaces ours"
    runs.loc[(runs["id"] + runs["metrics"] + runs["cost"]).isin(numbers), "whose"] = "ours"
    return runs


def exported(tell: Tell = warn_once) -> "DataFrame":
    """The runs of figures/runs.csv: of the checkout or, where this package is installed, its own and the folder's."""
    here = read_runs(manifest.project_root() / "figures" / "runs.csv", tell)
    return here if manifest.checkout() else merged(read_runs(manifest.shipped("figures") / "runs.csv", tell), here)


@functools.cache
def committed_fields() -> dict[tuple[str, int], set[str]]:
    """By study and version of the training, the fields that recipes of committed runs have."""
    fields: dict[tuple[str, int], set[str]] = {}
    for row in read_runs(manifest.shipped("figures") / "runs.csv").to_dict("records"):
        fields.setdefault((row["study"], row["version"]), set()).update(json.loads(row["recipe"]))
    return fields


def merged(exported: "DataFrame", finished: "DataFrame") -> "DataFrame":
    """Both sets of runs in a fixed order: of an id the newest evaluation, of equal ones that of the finished runs.

    No clock is asked: what was trained here again takes the place of what was exported.
    """
    import pandas as pd

    runs = pd.concat([exported, finished], ignore_index=True)
    evaluation = runs["metrics"].map(json.loads).map(evaluation_of)
    runs = runs.loc[evaluation.sort_values(kind="stable").index].drop_duplicates("id", keep="last")
    return runs.sort_values(["study", "dataset", "preset", "recipe", "seed", "id"], ignore_index=True)


def export(finished: "DataFrame", path: Path) -> "tuple[DataFrame, DataFrame]":
    """Merge finished runs of a store, smoke runs left out, into `path` and return its rows before and after.

    ValueError if rows of it are damaged: they would be lost.
    """
    damaged: list[str] = []
    before = read_runs(path, damaged.append)
    if damaged:
        raise ValueError(damaged[0])
    runs = merged(before, finished[finished["preset"] != "smoke"])
    write_frame(runs, path)
    return before, runs


def write_frame(frame: "DataFrame", path: Path) -> Path:
    """Write a frame as CSV, all of it or nothing; returns the path."""
    write_atomically(path, lambda temporary: frame.to_csv(temporary, index=False))
    return path


def read_frame(path: Path) -> "DataFrame":
    """A frame that was written; text stays text.

    ValueError names the file if it is damaged: a line is cut, there is no row, or a number is not finite.
    """
    frame = disk.read_csv(path, REMAKE, dtype={"id": str})
    with reading(path, REMAKE):
        _check_numbers(frame.select_dtypes("number"))
    return frame


def _read_log(path: Path) -> "DataFrame":
    """The numbers in the lines of a log; raises as `read_frame`, also if a line lacks one that others have."""
    from pandas import DataFrame

    with reading(path, ANEW):
        lines = [parse_json(line) for line in read_file(path).decode("utf-8").splitlines()]
        for line in lines:
            check_parts(line, {**dict.fromkeys(line, (int, float)), "step": int})
            if not 1 <= line["step"] <= line.get("of", line["step"]) or line.get("steps_per_epoch", 1) < 1:
                raise ValueError(f"no training takes the step of {line}")
        log = DataFrame(lines)
        if not log["step"].is_monotonic_increasing or log["step"].duplicated().any():
            raise ValueError("its steps do not rise")
        _check_numbers(log)
    return log


def _check_numbers(numbers: "DataFrame") -> None:
    """Raise ValueError unless there are rows, of numbers that are finite in single precision."""
    import numpy as np

    if not len(numbers) or not (numbers.abs() <= np.finfo("float32").max).to_numpy().all():
        raise ValueError("it has no rows, or other than finite numbers")
