"""What one needs to know when something does not work: versions, devices, folders, data, runs, and what is wrong."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import torch

from repro.data import manifest, present
from repro.data.disk import abandoned, acquire
from repro.run import device as devices
from repro.run.export import exported, finished_cells, merged
from repro.run.fit import check_step, read_checkpoint
from repro.run.store import Store, owner, parse_json, trained

SHOWN = ("torch", "torchvision", "numpy", "pandas", "scikit-learn", "statsmodels", "matplotlib", "jupyterlab")
LISTED = 5                         # unfinished cells that are named
HELD = 3                           # the status of a process that finds a lock held
ACQUIRE = f"""import filelock, sys
try:
    filelock.FileLock(sys.argv[1], fallback_to_soft=False).acquire(timeout=0)
except filelock.Timeout:
    sys.exit({HELD})"""


class Problem(str):
    """What is wrong, and what to do about it."""


def examined(say: Callable[[str], None]) -> int:
    """Say what there is and what is wrong, a line at a time, as it is found; returns how many problems there are."""
    problems = []
    for title, look in (("versions", _versions), ("devices", _devices), ("folders", _folders), ("data", _data),
                        ("runs", lambda: examined_runs(manifest.runs_root())), ("results", examined_results)):
        say(f"{title}:")
        try:
            for line in look():
                problems.append(line) if isinstance(line, Problem) else say(f"  {line}")
        except OSError as error:
            remedy = "give yourself the right to read it, or point REPRO_DATA and REPRO_RUNS elsewhere"
            problems.append(f"{error}; {remedy}")
    say("\n  ".join([f"problems: {len(problems)}", *problems]))
    return len(problems)


def _versions() -> Iterator[str]:
    installed = {package.metadata["Name"]: package.version for package in metadata.distributions()}
    yield f"repro {devices.commit()}, python {sys.version.split()[0]}"
    yield ", ".join(f"{name} {installed.get(name, 'not installed')}" for name in SHOWN)


def _devices() -> Iterator[str]:
    hardware = devices.hardware(torch.device("cpu"))
    yield f"cpu: {hardware['device']}, {hardware['cores']} cores for this process"
    if not torch.cuda.is_available():
        yield "cuda: none; everything runs on the CPU, `--preset quick` is meant for it"
        return
    for number in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(number)
        yield f"cuda:{number}: {torch.cuda.get_device_name(number)}, {free / 1e9:.1f} of {total / 1e9:.1f} GB free"


def _folders() -> Iterator[str]:
    data, runs = manifest.data_root(), manifest.runs_root()
    yield f"REPRO_DATA: {data}{'' if os.path.isdir(data) else ', not there; bundled data need none'}"
    free = shutil.disk_usage(next(folder for folder in (runs, *runs.parents) if os.path.exists(folder))).free
    yield f"REPRO_RUNS: {runs}{'' if os.path.isdir(runs) else ', not there yet'}, {free / 1e9:.1f} GB free"
    try:
        Store(runs).require_writable()
        yield from _locks(runs)
    except OSError as error:
        yield Problem(error)


def _locks(runs: Path) -> Iterator[str]:
    """Whether a lock that this process holds keeps another one away, tried on the file system of the runs."""
    there = next(folder for folder in (runs, *runs.parents) if folder.exists())
    with tempfile.TemporaryDirectory(prefix=".lock-", dir=there) as folder, acquire(Path(folder) / "lock"):
        other = subprocess.run([sys.executable, "-c", ACQUIRE, f"{folder}/lock"], capture_output=True, check=False)
    if other.returncode == 0:
        yield Problem(f"{there} is on a file system, or mounted so, that locks do nothing: two processes would train "
                      "one cell at once; set REPRO_RUNS to a folder on another one")
    else:
        yield f"locks: {'held against another process' if other.returncode == HELD else other.stderr.decode()}"


def _data() -> Iterator[str]:
    """Every data set that is here, read where that can be checked; a line for those that are missing."""
    rows = present.status()
    for name, state, next_step in ((row["name"], row["state"], row["next_step"]) for row in rows):
        declared = manifest.load_manifest(name)
        if state == "present" and any(archive.digest for archive in declared.files):
            try:
                manifest.verified_members(declared, manifest.data_root())
                state = "verified: every file is as declared"
            except (ValueError, OSError) as error:
                state, next_step = "cannot be used", f"{error}"
        if state != "missing":
            yield f"{name}: {state}"
        if state in ("differs", "cannot be used"):
            yield Problem(next_step)
    missing = [row["name"] for row in rows if row["state"] == "missing"]
    yield f"missing: {', '.join(missing) or 'none'}; `repro data list` says how to get them"


def examined_results() -> Iterator[str]:
    """How many finished cells there are, and which are left out of everything as they cannot be read."""
    from repro.experiments import studies

    damaged: list[str] = []
    cells = merged(exported(damaged.append), finished_cells(Store()))
    for cell in cells.to_dict("records"):
        try:
            studies()[cell["study"]].stored_recipe(cell)
        except (KeyError, ValueError) as error:
            unknown = f"the cell {cell['key']} is of no study that there is, {cell['study']!r}; take the version that "
            damaged.append(f"{unknown}wrote it" if isinstance(error, KeyError) else str(error))
    yield f"cells: {len(cells)} of figures/cells.csv and of the runs"
    yield from map(Problem, damaged)
    yield from (Problem(other) for study in studies().values() if (other := study.of_other_code(cells)))


def examined_runs(root: Path) -> Iterator[str]:
    """How many cells a folder of runs holds, how far those are that have no result, and which are damaged."""
    folders = sorted(root.glob("cells/*"))
    finished = [folder for folder in folders if (folder / "result.json").exists()]
    begun = [folder for folder in folders if folder not in finished and (folder / "recipe.json").exists()]
    yield f"cells: {len(finished)} finished, {len(begun)} unfinished"
    for folder in begun[:LISTED]:
        saved = "" if (folder / "checkpoint.pt").exists() else ", nothing of it saved yet"
        done = f"{trained(folder):.0%} done, evaluation counted as a step{saved}"
        yield f"unfinished: {folder}: {done}; {owner(folder)} has it or had it last"
    if begun:
        yield "an unfinished cell goes on when it is asked for again"
    committed = manifest.project_root() / "figures" / ".figures"
    places = [root / name for name in (".report", "figures/.figures", f"prepared/{manifest.UNPACKED}")]
    for folder in filter(abandoned, [*places, committed]):
        yield f"left by a killed command, removed by the next of its kind: {folder}"
    damaged: list[str] = []
    finished_cells(Store(root), damaged.append)
    yield from map(Problem, damaged)
    for path in (path for folder in [*finished, *begun] for path in folder.glob("checkpoint.pt")):
        try:
            _check_checkpoint(path)
        except FileNotFoundError:  # it is being replaced
            continue
        except ValueError as error:
            yield Problem(error)


def _check_checkpoint(path: Path) -> None:
    """Raise ValueError, saying what follows, if a checkpoint is damaged, or beyond the training that its log tells."""
    try:
        state = read_checkpoint(path)
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); an unfinished cell will begin at an earlier state, a finished "
                         "one has lost its weights") from error
    with contextlib.suppress(OSError, LookupError), open(path.with_name("progress.jsonl"), encoding="utf-8") as log:
        check_step(path.parent, state, parse_json(log.readline())["of"])
