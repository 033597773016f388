"""What one needs to know when something does not work: versions, devices, folders, data, and the health of runs."""

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import torch

from repro.data import manifest, present
from repro.run import device as devices
from repro.run.cost import commit
from repro.run.health import QUIET, Problem, examine
from repro.run.store import Store

SHOWN = ("torch", "torchvision", "numpy", "pandas", "scikit-learn", "statsmodels", "matplotlib", "jupyterlab")
FEW = 2**30                   # bytes left on a disk that are worth a word
LISTED = 5                    # cells named of those that run or wait
DOWNLOADING = re.compile(r"tmp\w{8}")  # of pooch


def examined(say: Callable[[str], None], *, repair: bool) -> int:
    """Say what there is and what is wrong, mend what can be mended without loss; returns how many problems are left.

    Args:
        say: takes a line at a time, as it is found.
        repair: mend; otherwise only say what would be done.
    """
    problems = []
    for title, look in (("versions", _versions), ("devices", _devices), ("folders", _folders), ("data", _data),
                        ("runs", _runs)):
        say(f"{title}:")
        for found in _until_unreadable(look):
            if isinstance(found, Problem):
                problems.append(found)
            else:
                say(f"  {found}")
    left = 0
    say(f"problems: {len(problems)}")
    for problem in problems:
        done = _mend(problem) if repair and problem.repair else None
        left += done is None
        say(f"  {problem.what}")
        say(f"    {done or _unmended(problem, repair)}")
    return left


def _until_unreadable(look: Callable[[], Iterator[str | Problem]]) -> Iterator[str | Problem]:
    """What is found, and at a folder or file that cannot be read that instead of the rest."""
    try:
        yield from look()
    except OSError as error:
        yield Problem(f"{error}", "give yourself the right to read it, or point REPRO_DATA and REPRO_RUNS elsewhere")


def _mend(problem: Problem) -> str | None:
    """What was done, in words, None if it could not be."""
    try:
        problem.repair()
    except OSError as error:
        print(f"repro: {error}", file=sys.stderr)
        return None
    return f"done: {problem.remedy}"


def _unmended(problem: Problem, repair: bool) -> str:
    if problem.repair is None:
        return problem.remedy
    return f"could not: {problem.remedy}" if repair else f"--repair would: {problem.remedy}"


def _versions() -> Iterator[str | Problem]:
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
    found = [Requirement(line) for line in lines if line and not line.startswith("-")]
    return {each.name: next(iter(each.specifier)).version for each in found
            if each.specifier and (each.marker is None or each.marker.evaluate())}


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> Iterator[str | Problem]:
    hardware = devices.hardware(torch.device("cpu"))
    yield f"cpu: {hardware['device']}, {hardware['cores']} cores for this process"
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        yield "cuda: none; everything runs on the CPU, `--preset quick` is meant for it"
    for number in range(count):
        free, total = torch.cuda.mem_get_info(number)
        yield f"cuda:{number}: {torch.cuda.get_device_name(number)}, {free / 1e9:.1f} of {total / 1e9:.1f} GB free"


def _folders() -> Iterator[str | Problem]:
    data, runs = manifest.data_root(), manifest.runs_root()
    yield f"REPRO_DATA: {data}{'' if os.path.isdir(data) else ', not there; embedded data need none'}"
    there = next(folder for folder in (runs, *runs.parents) if os.path.exists(folder))
    free = shutil.disk_usage(there).free
    yield f"REPRO_RUNS: {runs}{'' if os.path.isdir(runs) else ', not there yet'}, {free / 1e9:.1f} GB free"
    if free < FEW:
        yield Problem(f"the disk of {runs} has {free / 2**20:.0f} MiB left", "free some room, or point REPRO_RUNS at "
                      "another disk; a run that finds the disk full stops and goes on later")
    try:
        Store(runs).require_writable()
    except OSError as error:
        what, _, remedy = f"{error}".partition("; ")
        yield Problem(what, remedy)


def _data() -> Iterator[str | Problem]:
    """Every data set that is here, read where that can be checked; a line for those that are missing."""
    missing = []
    for row in present.status():
        if row["state"] == "missing":
            missing.append(row["name"])
        elif row["state"] == "differs":
            yield f"{row['name']}: differs from what is declared"
            yield Problem(row["next_step"].partition("; ")[0], row["next_step"].partition("; ")[2])
        elif row["state"] == "present":
            yield from _verdict(row["name"])
        else:
            yield f"{row['name']}: {row['state']}{', ' if row['next_step'] else ''}{row['next_step']}"
    yield f"missing: {', '.join(missing) or 'none'}; `repro data list` says how to get them"
    yield from _downloads()


def _verdict(name: str) -> Iterator[str | Problem]:
    try:
        yield f"{name}: {present.verdict(manifest.load_manifest(name), manifest.data_root())}"
    except (ValueError, OSError) as error:
        yield f"{name}: cannot be used"
        what, _, remedy = f"{error}".rpartition("; ")
        yield Problem(what, remedy)


def _downloads() -> Iterator[Problem]:
    """What downloads that were killed have left."""
    for name in manifest.names():
        for archive in manifest.load_manifest(name).files:
            folder = (manifest.data_root() / archive.name).parent
            if archive.url and folder.is_dir():
                for path in sorted(folder.iterdir()):
                    if DOWNLOADING.fullmatch(path.name) and time.time() - path.stat().st_mtime > QUIET:
                        yield Problem(f"{path} looks like the rest of a download that was killed",
                                      "delete it if it is not yours")


def _runs() -> Iterator[str | Problem]:
    health = examine(manifest.runs_root())
    waiting = len(health.unfinished)
    yield f"cells: {health.finished} finished, {len(health.running)} being trained, {waiting} unfinished"
    for title, cells in (("being trained", health.running), ("unfinished", health.unfinished)):
        yield from (f"{title}: {cell}" for cell in cells[:LISTED])
        if len(cells) > LISTED:
            yield f"{title}: and {len(cells) - LISTED} more"
    if waiting:
        yield "an unfinished cell goes on when the command that began it is given again"
    yield from health.problems
