"""What is wrong in a folder of runs, and the repairs that lose nothing.

Reads and reports; only `Problem.repair` changes anything. A cell that a process holds is left alone.
"""

import contextlib
import functools
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import filelock

from repro.data.disk import TEMPORARY, acquire
from repro.run.store import owner, read_description, read_result, trained

KEY = re.compile(r"[0-9a-f]{16}")  # the folder of a cell
QUIET = 3600                       # seconds; what has not changed for so long is not being written


@dataclass(frozen=True)
class Problem:
    """Something wrong.

    Attributes:
        what: in words, the path included.
        remedy: what mends it, in words.
        repair: does so; None where only a person can.
    """

    what: str
    remedy: str
    repair: Callable[[], None] | None = None


@dataclass
class Health:
    """What a folder of runs holds.

    Attributes:
        finished: number of complete cells.
        running: of each cell that a process holds, who and where.
        unfinished: of each other cell without a result, how far it is and where.
        problems: what is wrong.
    """

    finished: int = 0
    running: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def examine(root: Path) -> Health:
    """Look through the cells, and for temporary files, below a folder of runs; it may be missing."""
    health = Health()
    folders = [folder for pattern in ("*/*", "*/*/*") for folder in sorted(root.glob(pattern))
               if folder.is_dir() and KEY.fullmatch(folder.name)  # deeper ones are those of the explorer
               and not TEMPORARY.fullmatch(folder.parents[1].name)]
    for folder in folders:
        _examine_cell(folder, health)
    for path in sorted(_temporary(root)):
        if path.parent not in folders and _quiet(path):
            health.problems.append(_leftover(path, functools.partial(_remove, path)))
    return health


def _examine_cell(folder: Path, health: Health) -> None:
    with _held(folder) as free:
        if not free:
            health.running.append(f"{folder}: {owner(folder)}")
            return
        finished = (folder / "result.json").exists()  # what comes to it later is written without its lock
        for path in sorted(folder.rglob("*")):
            if TEMPORARY.fullmatch(path.name) and (_quiet(path) or not finished):
                remove = functools.partial(path.unlink, missing_ok=True)
                health.problems.append(_leftover(path, functools.partial(_guarded, folder, remove)))
        damaged = _damaged(folder)
        if damaged:
            health.problems.append(damaged)
        elif finished:
            health.finished += 1
        else:
            health.unfinished.append(f"{folder}: {_progress(folder)}")


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Hold the cell's lock inside the block; yields False if another process has it. Makes no lock where there is none.

    Of a lock that is another user's alone nobody can tell; a cell without a result then counts as held.
    """
    if not (folder / "lock").exists() or not os.access(folder / "lock", os.W_OK):
        yield not (folder / "lock").exists() or (folder / "result.json").exists()
        return
    try:
        lock = acquire(folder / "lock")
    except filelock.Timeout:
        yield False
        return
    with lock:
        yield True


def _guarded(folder: Path, change: Callable[[], object]) -> None:
    """Change a cell's folder unless a process has claimed it meanwhile.

    Raises:
        BlockingIOError: if one has.
    """
    with _held(folder) as free:
        if not free:
            raise BlockingIOError(f"{folder} has been claimed meanwhile; look again when its cell is done")
        change()


def _damaged(folder: Path) -> Problem | None:
    """The problem of a complete cell whose result or description cannot be read.

    Both are set aside: asked for again, the cell writes its description and, from its last checkpoint, its result.
    """
    if not (folder / "result.json").exists():
        return None
    for name, read in (("result.json", read_result), ("recipe.json", read_description)):
        try:
            found = read(folder / name)
        except ValueError as error:
            aside = functools.partial(_guarded, folder, functools.partial(_set_aside, folder))
            remedy = "set result.json and recipe.json there aside as *.damaged.json; then run the table again"
            return Problem(f"{error}".partition("; ")[0], remedy, aside)
        if name == "recipe.json" and found["key"] != folder.name:
            return Problem(f"{folder} holds the cell {found['key']}", "move it to the folder of that name")
    return None


def _set_aside(folder: Path) -> None:
    for name in ("result", "recipe"):
        path = folder / f"{name}.json"
        taken = len(list(folder.glob(f"{name}.damaged*.json")))
        if path.exists():
            os.replace(path, folder / f"{name}.damaged{taken or ''}.json")


def _quiet(path: Path) -> bool:
    """Whether a file is there and nobody has written to it for long."""
    try:
        return time.time() - path.stat().st_mtime > QUIET
    except FileNotFoundError:  # it was moved into place meanwhile
        return False


def _leftover(path: Path, repair: Callable[[], None]) -> Problem:
    return Problem(f"{path} was left by a process that was killed while it wrote", "delete it", repair)


def _temporary(root: Path) -> Iterator[Path]:
    """Temporary files and folders of ours at the root, among prepared data and beside the logs of runs."""
    for pattern in (".*", "*/.*", "*/*/.*"):
        yield from (path for path in root.glob(pattern) if TEMPORARY.fullmatch(path.name))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _progress(folder: Path) -> str:
    """How far an unfinished cell is, and who had it."""
    share = trained(folder)
    if not (folder / "owner.json").exists():
        return "not begun"
    return f"{share:.0%} trained; {owner(folder)} had it and holds its lock no more"
