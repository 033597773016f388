"""What one needs to know when something does not work: versions, devices, folders, data, runs, and what is wrong."""

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import filelock
import torch

from repro.data import manifest, present
from repro.data.disk import TEMPORARY, acquire
from repro.run import device as devices
from repro.run.device import commit
from repro.run.store import Store, owner, read_description, read_result, trained

SHOWN = ("torch", "torchvision", "numpy", "pandas", "scikit-learn", "statsmodels", "matplotlib", "jupyterlab")
FEW = 2**30                        # bytes left on a disk that are worth a word
LISTED = 5                         # of cells or packages, so many are named
KEY = re.compile(r"[0-9a-f]{16}")  # the folder of a cell
QUIET = 3600                       # seconds; what has not changed for so long is not being written


class Problem(str):
    """What is wrong, and what to do about it."""


def examined(say: Callable[[str], None]) -> int:
    """Say what there is and what is wrong, a line at a time, as it is found; returns how many problems there are."""
    problems = []
    for title, look in (("versions", _versions), ("devices", _devices), ("folders", _folders), ("data", _data),
                        ("runs", lambda: examined_runs(manifest.runs_root()))):
        say(f"{title}:")
        for line in _until_unreadable(look):
            if isinstance(line, Problem):
                problems.append(line)
            else:
                say(f"  {line}")
    say(f"problems: {len(problems)}")
    for problem in problems:
        say(f"  {problem}")
    return len(problems)


def _until_unreadable(look: Callable[[], Iterator[str]]) -> Iterator[str]:
    """What is found, and at a folder or file that cannot be read that instead of the rest."""
    try:
        yield from look()
    except OSError as error:
        yield Problem(f"{error}; give yourself the right to read it, or point REPRO_DATA and REPRO_RUNS elsewhere")


def _versions() -> Iterator[str]:
    yield f"repro {commit()}, python {sys.version.split()[0]}"
    yield ", ".join(f"{name} {_installed(name) or 'not installed'}" for name in SHOWN)
    others = [f"{name} {_installed(name) or 'is not installed'}, pinned {version}"
              for name, version in _pins().items() if _installed(name) != version]
    if others:
        rest = f" and {len(others) - LISTED} more" if len(others) > LISTED else ""
        yield f"not as in requirements.txt: {'; '.join(others[:LISTED])}{rest}; numbers may differ in their last digits"


def _pins() -> dict[str, str]:
    """The versions that a checkout pins; an installed package has no such file."""
    checkout = manifest.checkout()
    path = checkout / "requirements.txt" if checkout else None
    return pinned(path) if path and path.exists() else {}


def pinned(path: Path) -> dict[str, str]:
    """Versions by name of the packages that a requirements file pins for this Python and system."""
    from packaging.requirements import Requirement

    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    packages = [Requirement(line) for line in lines if line and not line.startswith("-")]
    return {package.name: next(iter(package.specifier)).version for package in packages
            if package.specifier and (package.marker is None or package.marker.evaluate())}


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> Iterator[str]:
    hardware = devices.hardware(torch.device("cpu"))
    yield f"cpu: {hardware['device']}, {hardware['cores']} cores for this process"
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        yield "cuda: none; everything runs on the CPU, `--preset quick` is meant for it"
    for number in range(count):
        free, total = torch.cuda.mem_get_info(number)
        yield f"cuda:{number}: {torch.cuda.get_device_name(number)}, {free / 1e9:.1f} of {total / 1e9:.1f} GB free"


def _folders() -> Iterator[str]:
    data, runs = manifest.data_root(), manifest.runs_root()
    yield f"REPRO_DATA: {data}{'' if os.path.isdir(data) else ', not there; bundled data need none'}"
    there = next(folder for folder in (runs, *runs.parents) if os.path.exists(folder))
    free = shutil.disk_usage(there).free
    yield f"REPRO_RUNS: {runs}{'' if os.path.isdir(runs) else ', not there yet'}, {free / 1e9:.1f} GB free"
    if free < FEW:
        yield Problem(f"the disk of {runs} has {free / 2**20:.0f} MiB left; free some room, or point REPRO_RUNS at "
                      "another disk; a run that finds the disk full stops and goes on later")
    try:
        Store(runs).require_writable()
    except OSError as error:
        yield Problem(error)


def _data() -> Iterator[str]:
    """Every data set that is here, read where that can be checked; a line for those that are missing."""
    missing = []
    for row in present.status():
        if row["state"] == "missing":
            missing.append(row["name"])
        elif row["state"] == "differs":
            yield f"{row['name']}: differs from what is declared"
            yield Problem(row["next_step"])
        elif row["state"] == "present":
            yield from _verdict(row["name"])
        else:
            yield f"{row['name']}: {row['state']}{', ' if row['next_step'] else ''}{row['next_step']}"
    yield f"missing: {', '.join(missing) or 'none'}; `repro data list` says how to get them"


def _verdict(name: str) -> Iterator[str]:
    try:
        yield f"{name}: {present.verdict(manifest.load_manifest(name), manifest.data_root())}"
    except (ValueError, OSError) as error:
        yield f"{name}: cannot be used"
        yield Problem(error)


def examined_runs(root: Path) -> Iterator[str]:
    """How many cells a folder of runs holds, how far those are that have no result, and what is wrong with others.

    Changes nothing. The folder may be missing.
    """
    below = [folder for pattern in ("*/*", "*/*/*") for folder in sorted(root.glob(pattern))]  # deeper: the explorer's
    folders = [folder for folder in below if KEY.fullmatch(folder.name)
               and folder.is_dir() and not TEMPORARY.fullmatch(folder.parents[1].name)]
    finished = [folder for folder in folders if (folder / "result.json").exists()]
    left = [folder for folder in folders if folder not in finished]
    running = [folder for folder in left if _held(folder)]
    waiting = [folder for folder in left if folder not in running]
    problems = [*filter(None, map(_damage, finished))]
    yield f"cells: {len(finished) - len(problems)} finished, {len(running)} being trained, {len(waiting)} unfinished"
    for title, cells in (("being trained", running), ("unfinished", waiting)):
        for folder in cells[:LISTED]:
            yield f"{title}: {folder}: {trained(folder):.0%} trained; {owner(folder)} has it or had it last"
        if len(cells) > LISTED:
            yield f"{title}: and {len(cells) - LISTED} more"
    if waiting:
        yield ("an unfinished cell goes on when the command that began it is given again; one that was refused as it "
               "began has 0% for ever, delete its folder")
    yield from problems
    yield from _leftovers(root)


def _held(folder: Path) -> bool:
    """Whether a process trains the cell of a folder, or nobody can tell, as the lock is another user's alone."""
    if not (folder / "lock").exists():
        return False
    try:
        with acquire(folder / "lock"):
            return False
    except (filelock.Timeout, PermissionError):
        return True


def _damage(folder: Path) -> Problem | None:
    """What is wrong with the files of a finished cell, if anything."""
    try:
        read_result(folder / "result.json")
        key = read_description(folder / "recipe.json")["key"]
    except ValueError as error:
        return Problem(error)
    return None if key == folder.name else Problem(f"{folder} holds the cell {key}; move it to the folder of that name")


def _leftovers(root: Path) -> Iterator[Problem]:
    """Temporary files and folders of processes that were killed while they wrote, not of those that write now."""
    for depth in range(4):
        for path in sorted(root.glob("*/" * depth + ".*")):
            try:
                if TEMPORARY.fullmatch(path.name) and time.time() - path.stat().st_mtime > QUIET:
                    yield Problem(f"{path} was left by a process that was killed while it wrote; delete it")
            except FileNotFoundError:  # it was moved into place meanwhile
                continue
