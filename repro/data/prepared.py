"""Arrays made of the files of a data set: item by item in processes, then joined, and mapped into memory.

    <REPRO_RUNS>/prepared/<data set>-<digest of the items' names>/
        <form>.<array>.npy      the rows of all items, end to end
        <form>.jsonl            the index, written last
        <form>.parts/           a file per item, until then

What is there is done: a preparation that was killed goes on with the items that have no part. Once joined, all files
are read again if the size of one has changed; delete the folder where contents alone have. NumPy alone.
"""

import contextlib
import functools
import hashlib
import json
import math
import mmap
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from repro.data import manifest, npz
from repro.data.disk import alone, read_file, remove_half_written, write_atomically
from repro.data.parallel import run_jobs

LAYOUT = 3                    # raise when the files are written otherwise
CHUNK = 16                    # items that a process makes before it reports
SHOWN = 20                    # files named in a message
HASHED = 2**32                # bytes of an array that is hashed whenever it is read
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)  # else no more than memory holds

Record = dict[str, Any]
Make = Callable[["Item"], tuple[Mapping[str, np.ndarray], Mapping[str, Any]]]


@dataclass(frozen=True)
class Item:
    """A file that arrays are made of.

    Attributes:
        name: of the item, in its data set.
        path: of the file.
    """

    name: str
    path: Path

    @functools.cached_property
    def size(self) -> int:
        """Bytes; -1 of what is no regular file: a device, a pipe, a link that leads nowhere."""
        return self.path.stat().st_size if self.path.is_file() else -1

    def read(self) -> bytes:
        """The contents; ValueError if it is no regular file, too large or cannot be read."""
        try:
            return read_file(self.path)
        except OSError as error:
            raise ValueError(f"cannot be read ({error})") from error


@dataclass(frozen=True, eq=False)
class Arrays:
    """What was made of the items of a data set.

    Attributes:
        records: one per item in their order: its name; `bytes` of the file; how many `rows` it has, by array; what
            `make` says of it; and the reason if it cannot be used, else None.
        arrays: by name, the rows of the items that can be used, one after the other; mapped, writing would not reach
            the files.
        digests: hex sha256 of each array.
    """

    records: list[Record]
    arrays: dict[str, np.ndarray]
    digests: dict[str, str]

    @property
    def bad(self) -> dict[str, str]:
        """Reasons by name for files that cannot be used."""
        return {record["name"]: record["reason"] for record in self.records if record["reason"]}

    @property
    def usable(self) -> list[Record]:
        """The records of the others."""
        return [record for record in self.records if not record["reason"]]


def folder_of(name: str, version: int, items: Iterable[Item]) -> Path:
    """The folder of the arrays of a data set, which the names of its items give, and how they are made: a version."""
    listing = "\n".join([f"layout {LAYOUT}, version {version}", *(item.name for item in items)])
    return manifest.prepared_root() / f"{name}-{hashlib.sha256(listing.encode()).hexdigest()[:16]}"


def place_of(name: str, made_of: str) -> Path:
    """The file, for `made_once`, of arrays of a data set that are made of what a text says."""
    return manifest.prepared_root() / f"{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.npz"


def build(path: Path, items: Sequence[Item], make: Make, *, skip_bad: bool, workers: int) -> Arrays:
    """Make the arrays of all items, or what of them is missing; processes that ask meanwhile wait.

    Args:
        path: of the arrays, without endings, in the folder that `folder_of` gives.
        items: sorted by name.
        make: gives the rows of an item, by array, and what there is to say of it, ready for JSON. A function of a
            module, which processes can import; raises ValueError where a file cannot be used.
        skip_bad: leave such files out.
        workers: processes that make; with 1, this one does.

    Raises:
        ValueError: if files cannot be used and may not be left out, or none can: how many, which and why.
        OSError: if the disk is full, or a process is killed; what was made until then is kept.
    """
    parts = path.with_suffix(".parts")
    with alone(path.with_suffix(".lock")):
        remove_half_written(path.parent, path.name)
        left_out: dict[str, str] = {}
        with contextlib.suppress(FileNotFoundError, ValueError):  # not there, or damaged since
            made = read(path, items)
            if skip_bad or not made.bad:
                shutil.rmtree(parts, ignore_errors=True)  # left by a kill after the index
                return made
            left_out = made.bad
        parts.mkdir(exist_ok=True)
        places = [parts / f"{number:07d}-{item.size}.npz" for number, item in enumerate(items)]
        pairs = [*zip(items, places, strict=True)]
        # they may have been fetched again: read first, as where one is still bad the others need not be
        bad = _make_missing(path, [pair for pair in pairs if pair[0].name in left_out], make, workers)
        bad = bad or _make_missing(path, pairs, make, workers)
        if len(bad) == len(items) or (bad and not skip_bad):
            rest = "or leave them out: --skip-bad --subset" if len(bad) < len(items) else "none of its files is usable"
            raise ValueError("\n".join([*described("files cannot be used", bad), f"fetch them again, {rest}"]))
        _join(path, items, places, bad)
        shutil.rmtree(parts)
        return read(path, items)


def read(path: Path, items: Sequence[Item]) -> Arrays:
    """What `build` made of the same items.

    FileNotFoundError if it was not made to the end or files have changed since, ValueError if a file is damaged.
    """
    index = path.with_suffix(".jsonl")
    lines = index.read_bytes().splitlines(keepends=True)
    try:
        *records, end = map(json.loads, lines)
        if end["index"] != hashlib.sha256(b"".join(lines[:-1])).hexdigest():
            raise ValueError("it has changed")
        files = [(item.name, item.size) for item in items]
        if [(record["name"], record["bytes"]) for record in records] != files:
            raise FileNotFoundError(f"{index} is of files that have changed since")
        arrays = {name: _mapped(_file(path, name), **about) for name, about in end["arrays"].items()}
    except (ValueError, KeyError, TypeError, *npz.ODD_HEADER) as error:
        raise ValueError(f"{index} or its arrays are damaged ({error})") from error
    return Arrays(records, arrays, {name: about["sha256"] for name, about in end["arrays"].items()})


def require(path: Path, items: Sequence[Item], name: str, command: str) -> Arrays:
    """As `read`; errors name the data set, and the command that prepares it."""
    try:
        return read(path, items)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"data set {name!r} is not prepared: run `{command}` first ({error})") from error
    except ValueError as error:
        raise ValueError(f"{error}; run `{command}` again") from error


def first_rows(records: Sequence[Record], array: str) -> np.ndarray:
    """(n + 1,) int64, from 0: the rows of item i in an array lie from the i-th up to the next."""
    return np.concatenate([[0], np.cumsum([record["rows"][array] for record in records], dtype=np.int64)])


def described(what: str, reasons: Mapping[str, str]) -> list[str]:
    """How many files there are reasons for, and the first of them; nothing if there are none."""
    shown = [f"  {name}: {reasons[name]}" for name in sorted(reasons)[:SHOWN]]
    rest = [f"  and {len(reasons) - SHOWN:,} more"] if len(reasons) > SHOWN else []
    return [f"{len(reasons):,} {what}:", *shown, *rest] if reasons else []


def made_once(path: Path, make: Callable[[], Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays of an `.npz`; if it is not there or damaged they are made first, by one process at a time."""
    with contextlib.suppress(*npz.DAMAGED):
        return npz.read(path)
    with alone(path.with_name(f"{path.name}.lock")):
        remove_half_written(path.parent, path.name)
        with contextlib.suppress(*npz.DAMAGED):
            return npz.read(path)  # another process was first
        made = dict(make())
        write_atomically(path, lambda temporary: npz.write(temporary, made))
        return made


def _make_missing(path: Path, items: Sequence[tuple[Item, Path]], make: Make, workers: int) -> dict[str, str]:
    """Make the parts that are not in their places; reasons by name for files that cannot be used."""
    missing = [(item, place) for item, place in items if not place.exists()]
    jobs = [(missing[start : start + CHUNK], make) for start in range(0, len(missing), CHUNK)]
    bad: dict[str, str] = {}
    done = len(items) - len(missing)
    reading = f"reading {path.parent.name}"
    with tqdm(total=len(items), initial=done, desc=reading, unit="file", disable=None if items else True) as progress:
        for count, reasons in run_jobs(make_parts, jobs, workers):
            bad |= reasons
            progress.update(count)
    return bad


def make_parts(items: Sequence[tuple[Item, Path]], make: Make) -> tuple[int, dict[str, str]]:
    """Make the parts of some items; returns their number, and reasons by name for files that cannot be used."""
    from threadpoolctl import threadpool_limits

    bad = {}
    with threadpool_limits(1):
        for item, path in items:
            try:
                arrays, about = make(item)
            except ValueError as error:
                bad[item.name] = str(error)
                continue
            except Exception as error:
                error.add_note(f"in {item.path}")
                raise
            rows = {name: len(array) for name, array in arrays.items()}
            record = np.array(json.dumps(_about(item) | {"rows": rows, **about}))
            write_atomically(path, functools.partial(npz.write, arrays={**arrays, "record": record}))
    return len(items), bad


def _join(path: Path, items: Sequence[Item], places: Sequence[Path], bad: Mapping[str, str]) -> None:
    """Write the arrays of all items, an item in memory at a time, and then the index."""
    parts = [place for item, place in zip(items, places, strict=True) if item.name not in bad]
    records = [_about(item) | {"reason": bad[item.name]} if item.name in bad else
               json.loads(str(_stored(place, "record"))) for item, place in zip(items, places, strict=True)]
    usable = [record for record in records if not record["reason"]]
    arrays = {name: _join_array(_file(path, name), name, parts, int(first_rows(usable, name)[-1]))
              for name in usable[0]["rows"]}
    lines = "".join(json.dumps(record) + "\n" for record in records)
    end = json.dumps({"arrays": arrays, "index": hashlib.sha256(lines.encode()).hexdigest()}) + "\n"
    write_atomically(path.with_suffix(".jsonl"), lambda temporary: temporary.write_text(lines + end))


def _join_array(path: Path, name: str, parts: Sequence[Path], rows: int) -> dict[str, Any]:
    """Write one array of all items; returns its type, its shape, and the hex sha256 of its contents."""
    digest, first = hashlib.sha256(), _stored(parts[0], name)
    shape = (rows, *first.shape[1:])

    def write(temporary: Path) -> None:
        header = {"descr": first.dtype.str, "fortran_order": False, "shape": shape}
        with open(temporary, "wb") as file:  # not mapped: there a full disk would end the process without a word
            np.lib.format.write_array_header_1_0(file, header)
            for part in parts:
                contents = _stored(part, name).tobytes()
                digest.update(contents)
                file.write(contents)

    write_atomically(path, write)
    return {"dtype": first.dtype.str, "shape": shape, "sha256": digest.hexdigest()}


def _about(item: Item) -> Record:
    return {"name": item.name, "bytes": item.size, "rows": {}, "reason": None}


def _stored(part: Path, name: str) -> np.ndarray:
    with np.load(part) as stored:
        return stored[name]


def _file(path: Path, array: str) -> Path:
    return path.with_name(f"{path.name}.{array}.npy")


def _mapped(path: Path, dtype: str, shape: Sequence[int], sha256: str) -> np.ndarray:
    """The array of a file, mapped into memory, of which it takes none before it is read.

    ValueError if it is not the array that was written; of a large one the contents are not looked at.
    """
    with open(path, "rb") as file:
        np.lib.format.read_magic(file)
        header, size = np.lib.format.read_array_header_1_0(file), math.prod(shape) * np.dtype(dtype).itemsize
        start = file.tell()
        if header != (tuple(shape), False, np.dtype(dtype)):
            raise ValueError(f"{path.name} is not as it was written")
        # Read, not mapped: all that is read through the map would stay in this process.
        if size <= HASHED and sha256 != hashlib.file_digest(file, "sha256").hexdigest():
            raise ValueError(f"the contents of {path.name} have changed")
        mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE | NO_RESERVE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return np.frombuffer(mapped, dtype, math.prod(shape), start).reshape(shape)
