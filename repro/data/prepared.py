"""Arrays made of the files of a data set: item by item in processes, then joined, and mapped into memory.

    <REPRO_RUNS>/prepared/<data set>-<digest of the items' names>/
        <form>.<array>.npy      the rows of all items, end to end
        <form>.jsonl            the index, written last
        <form>.parts/           a file per item, until then

What is there is done: a preparation that was killed goes on with the items that have no part, or a torn one. Once
joined, all files are read again if the size of one has changed; delete the folder where contents alone have. NumPy
alone.
"""

import contextlib
import functools
import hashlib
import json
import mmap
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from repro.data import files, manifest, npz
from repro.data.disk import alone, read_file, remove_half_written, require_regular, write_atomically
from repro.data.parallel import run_jobs

LAYOUT = 3                    # raise when the files are written otherwise
CHUNK = 16                    # items that a process makes before it reports
SHOWN = 20                    # files named in a message
HASHED = 2**32                # bytes of an array that is hashed whenever it is read
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)  # else no more than memory holds

Record = dict[str, Any]
Make = Callable[[Path], tuple[Mapping[str, np.ndarray], Mapping[str, Any]]]
Job = tuple[Record, Path, Path]  # what is known of a file before it is read, the file, and the place of its part


@dataclass(frozen=True, eq=False)
class Arrays:
    """What was made of the files of a data set.

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

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [record["name"] for record in self.usable]

    def first_rows(self, array: str) -> np.ndarray:
        """(n + 1,) int64, from 0: the rows of the i-th of them lie in an array from the i-th up to the next."""
        return np.cumsum([0, *(record["rows"][array] for record in self.usable)], dtype=np.int64)


@dataclass(frozen=True)
class Source:
    """The files of a data set that arrays are made of, and how: what `repro data prepare` makes, and `load` asks for.

    Attributes:
        name: of the data set.
        form: of the arrays, as several may be made of the same files.
        code: a hash of the code that makes them: where it is another, they are made again.
        items: their files by name, sorted.
        make: gives the rows of a file, by array, and what there is to say of it, ready for JSON. A function of a
            module, which processes can import; raises ValueError or OSError where a file cannot be used.
        options: of the command that makes this form.
        subset: whether files may be lacking or left out.
    """

    name: str
    form: str
    code: str
    items: Mapping[str, Path]
    make: Make
    options: str = ""
    subset: bool = False

    @property
    def path(self) -> Path:
        """Of the arrays, without endings: in a folder that the names of the items and the code give."""
        listing = "\n".join([f"layout {LAYOUT}, code {self.code}", *self.items])
        return _place(self.name, listing) / self.form

    @functools.cached_property
    def known(self) -> list[Record]:
        """What is known of the items before they are read."""
        sizes = files.sizes_of(self.items.values())
        return [{"name": name, "bytes": size, "rows": {}, "reason": None}
                for name, size in zip(self.items, sizes, strict=True)]

    def prepare(self, *, skip_bad: bool = False, workers: int = 1) -> Arrays:
        """Make the arrays of all items, or what of them is missing; processes that ask meanwhile wait.

        Args:
            skip_bad: of a subset, leave out files that cannot be used.
            workers: processes that make; with 1, this one does.

        Raises:
            ValueError: if files cannot be used and may not be left out, or none can: how many, which and why.
            OSError: if the disk is full, or a process is killed; what was made until then is kept.
        """
        skip_bad, path = skip_bad and self.subset, self.path
        parts = path.with_suffix(".parts")
        with alone(path.with_suffix(".lock")):
            remove_half_written(path.parent, path.name)
            with contextlib.suppress(FileNotFoundError, ValueError):  # not there, or damaged since
                made = self.read()
                if skip_bad or not made.bad:
                    shutil.rmtree(parts, ignore_errors=True)  # left by a kill after the index
                    return made
            parts.mkdir(exist_ok=True)
            places = [parts / f"{number:07d}-{record['bytes']}.npz" for number, record in enumerate(self.known)]
            jobs = [*zip(self.known, self.items.values(), places, strict=True)]
            bad = _make_missing(path, jobs, self.make, workers)
            every = len(bad) == len(jobs)
            if every or (bad and not skip_bad):
                reasons = "\n".join(described("files cannot be used", bad))
                rest = "none of its files is usable" if every else "or leave them out: --skip-bad --subset"
                raise ValueError(f"{self.name}: {reasons}\nfetch them again, {rest}")
            _join(path, jobs, bad)
            shutil.rmtree(parts)
            return self.read()

    def load(self) -> Arrays:
        """What `prepare` made.

        Raises:
            FileNotFoundError: if it did not, to the end, naming the command.
            ValueError: if files have been left out and this is no subset, or a file is damaged.
        """
        command = f"repro data prepare {self.name}{' --subset' if self.subset else ''}{self.options}"
        try:
            made = self.read()
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"data set {self.name!r} is not prepared: run `{command}` first ({error})") from error
        except ValueError as error:
            raise ValueError(f"{error}; run `{command}` again") from error
        if made.bad and not self.subset:
            reasons = "\n".join(described("files cannot be used", made.bad))
            rest = f"run `{command}` again, or accept a part of the data set: --subset"
            raise ValueError(f"{self.name}: {reasons}\n{rest}")
        return made

    def read(self) -> Arrays:
        """What `prepare` made of the same items.

        FileNotFoundError if it was not made to the end or files have changed since, ValueError if a file is damaged.
        """
        index = self.path.with_suffix(".jsonl")
        try:
            lines = read_file(index).splitlines(keepends=True)
            *records, end = map(json.loads, lines)
            if end["index"] != hashlib.sha256(b"".join(lines[:-1])).hexdigest():
                raise ValueError("it has changed")
            then, now = ([(record["name"], record["bytes"]) for record in of] for of in (records, self.known))
            if then != now:
                raise FileNotFoundError(f"{index} is of files that have changed since")
            arrays = {name: _mapped(_file(self.path, name), **about) for name, about in end["arrays"].items()}
        except (OSError, MemoryError):
            raise
        except Exception as error:  # NumPy raises many kinds for a damaged file
            raise ValueError(f"{index} or its arrays are damaged ({error})") from error
        return Arrays(records, arrays, {name: about["sha256"] for name, about in end["arrays"].items()})


def described(what: str, reasons: Mapping[str, str]) -> list[str]:
    """How many files there are reasons for, and the first of them; nothing if there are none."""
    shown = [f"  {name}: {reasons[name]}" for name in sorted(reasons)[:SHOWN]]
    rest = [f"  and {len(reasons) - SHOWN:,} more"] if len(reasons) > SHOWN else []
    return [f"{len(reasons):,} {what}:", *shown, *rest] if reasons else []


def made_once(name: str, made_of: str, make: Callable[[], Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Arrays of a data set that are made of what a text says: read, or made first if not there or damaged.

    The text holds a hash of the code that makes them, too, such as that of `repro.run.code.of_files`.
    """
    place = _place(name, made_of)
    path = place.with_name(f"{place.name}.npz")
    with contextlib.suppress(OSError, ValueError):
        return npz.read(path)
    with alone(path.with_name(f"{path.name}.lock")):
        remove_half_written(path.parent, path.name)
        with contextlib.suppress(OSError, ValueError):
            return npz.read(path)  # another process was first
        made = dict(make())
        write_atomically(path, lambda temporary: npz.write(temporary, made))
        return made


def _place(name: str, made_of: str) -> Path:
    """Where arrays of a data set lie that are made of what a text says, without an ending."""
    return manifest.prepared_root() / f"{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"


def _make_missing(path: Path, jobs: Sequence[Job], make: Make, workers: int) -> dict[str, str]:
    """Make the parts that are not in their places, or torn; reasons by name for files that cannot be used."""
    missing = [job for job in jobs if not _sound(job[-1])]
    chunks = [(missing[start : start + CHUNK], make) for start in range(0, len(missing), CHUNK)]
    bad: dict[str, str] = {}
    done, reading = len(jobs) - len(missing), f"reading {path.parent.name}"
    with tqdm(total=len(jobs), initial=done, desc=reading, unit="file", disable=None) as progress:
        for count, reasons in run_jobs(make_parts, chunks, workers):
            bad |= reasons
            progress.update(count)
    return bad


def _sound(part: Path) -> bool:
    """Whether all of a part is there: it was not flushed to the disk, so that a loss of power may have torn it."""
    with contextlib.suppress(OSError, ValueError):
        return bool(npz.read(part))
    return False


def make_parts(jobs: Sequence[Job], make: Make) -> tuple[int, dict[str, str]]:
    """Make some parts; returns their number, and reasons by name for files that cannot be used."""
    from threadpoolctl import threadpool_limits

    bad = {}
    with threadpool_limits(1):
        for known, path, part in jobs:
            try:
                arrays, about = make(path)
            except (OSError, ValueError) as error:
                bad[known["name"]] = f"cannot be read ({error})" if isinstance(error, OSError) else str(error)
                continue
            except Exception as error:
                error.add_note(f"in {path}")
                raise
            rows = {name: len(array) for name, array in arrays.items()}
            stored = {**arrays, "record": np.array(json.dumps(known | {"rows": rows, **about}))}
            write_atomically(part, functools.partial(npz.write, arrays=stored), flush=False)
    return len(jobs), bad


def _join(path: Path, jobs: Sequence[Job], bad: Mapping[str, str]) -> None:
    """Write the arrays of all items, an item in memory at a time, and then the index."""
    parts = [part for known, _, part in jobs if known["name"] not in bad]
    records = [known | {"reason": bad[known["name"]]} if known["name"] in bad else
               json.loads(str(_stored(part, "record"))) for known, _, part in jobs]
    made = [record["rows"] for record in records if not record["reason"]]
    arrays = {name: _join_array(_file(path, name), name, parts, sum(rows[name] for rows in made)) for name in made[0]}
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


def _stored(part: Path, name: str) -> np.ndarray:
    with np.load(part) as stored:
        return stored[name]


def _file(path: Path, array: str) -> Path:
    return path.with_name(f"{path.name}.{array}.npy")


def _mapped(path: Path, dtype: str, shape: Sequence[int], sha256: str) -> np.ndarray:
    """The array of a file, mapped into memory, of which it takes none before it is read.

    ValueError if it is not the array that was written; of a large one the contents are not looked at.
    """
    require_regular(path)
    stored = np.lib.format.open_memmap(path, mode="r")
    if (stored.dtype.str, stored.shape, stored.flags.c_contiguous) != (dtype, tuple(shape), True):
        raise ValueError(f"{path.name} is not as it was written")
    with open(path, "rb") as file:
        file.seek(stored.offset)
        # Read, not mapped: all that is read through the map would stay in this process.
        if stored.nbytes <= HASHED and sha256 != hashlib.file_digest(file, "sha256").hexdigest():
            raise ValueError(f"the contents of {path.name} have changed")
        mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE | NO_RESERVE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return np.frombuffer(mapped, dtype, stored.size, stored.offset).reshape(shape)
