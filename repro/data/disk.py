"""Files on disk: written whole or not at all, locked among processes, and errors that name them and the next step."""

import contextlib
import csv
import dataclasses
import errno
import glob
import io
import os
import re
import reprlib
import secrets
import shutil
import stat
import sys
import tempfile
import typing
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import filelock
import pydantic
import yaml

from repro.recipe import choose, vanishes

if TYPE_CHECKING:
    from pandas import DataFrame

Kind = TypeVar("Kind")
LARGEST = 2**28               # bytes of a file, or of all that are read together, that are held in memory
TOO_LARGE = "has {:,} bytes, at most {:,} are read"
IRREGULAR = "is no regular file, or a link that leads nowhere"
PLAIN = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d*)?(e[+-]?\d+)?", re.IGNORECASE)  # as a command line takes them
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}")  # of `write_atomically`
STANDARD_OUTPUT = ("-", "/dev/stdout")
AGAIN = "then give the same command again, and it goes on where it was"
REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), f"make room there, {AGAIN}"),
    errno.EFBIG: f"allow larger files, see `ulimit -f`, {AGAIN}",
    **dict.fromkeys((errno.ENOSYS, errno.ENOLCK), "set REPRO_RUNS to a folder on a file system that has locks"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), f"give yourself the right to write there, {AGAIN}"),
}


def read_yaml(path: Path) -> Any:
    """What a file of YAML holds; ValueError names the file if it is none, or `_Strict` refuses it."""
    try:
        loader = _Strict(read_file(path))
        loader.name = str(path)  # in messages
        return loader.get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        told = " ".join(str(error).split())
        raise ValueError(f"{path}: {told}; mend it, or restore it from version control") from error


class _Strict(yaml.SafeLoader):
    """Refuses what would be read as something else without a word, cannot be read, or does harm where it is shown.

    A second of one key would take the place of the first; 010 would be 8, 1:30 90, 0x10 16, 1_0 10, 1.0e-400 0,
    and 2021-05-03 no text. A terminal does what escape codes say.
    """

    def compose_node(self, parent: Any, index: Any) -> yaml.Node:
        tag = getattr(self.peek_event(), "tag", None)
        node = super().compose_node(parent, index)  # as it is written: keys are not yet merged
        wrong = f"{tag} is a tag; take it out" if tag else ""
        if isinstance(node, yaml.ScalarNode):
            numeric = not tag and node.tag.endswith((":int", ":float", ":timestamp"))
            if numeric and (not PLAIN.fullmatch(node.value) or vanishes(node.value)):
                wrong = f"{node.value} is no plain number; write decimal digits, or text in quotes"
            if not node.value.replace("\n", "").isprintable():
                wrong = f"{node.value!r} has a character that cannot be printed; take it out"
        if isinstance(node, yaml.MappingNode):
            counts = Counter((key.tag, str(key.value)) for key, _ in node.value)
            if twice := [key for key, _ in node.value if counts[key.tag, str(key.value)] > 1]:
                node, wrong = twice[-1], f"{twice[-1].value} stands there twice; take one out, or rename it"
        if wrong:
            raise yaml.MarkedYAMLError(None, None, wrong, node.start_mark)
        return node


def made(kind: type[Kind], where: str, entry: Any, /, **known: Any) -> Kind:
    """A dataclass of pydantic, of what a file says at a place and what else is known.

    Raises:
        ValueError: with the place, what is wrong, and what there may be.
    """
    fields = {field.name: field.type for field in dataclasses.fields(kind) if field.name not in known}
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: {reprlib.repr(entry)} should be {', '.join(fields)} with their values")
    for name in entry:
        choose(f"{where}: field", name, fields)
    try:
        return kind(**known, **entry)
    except pydantic.ValidationError as error:
        errors = error.errors()
        wrong = errors[-1]  # of a digest, or digests by value, the latter
        wrong = next((other for other in errors if other["type"] == "unexpected_keyword_argument"), wrong)
        place = [str(part) for part in wrong["loc"] if "[" not in str(part)]  # without what pydantic calls a type
        if wrong["type"] == "unexpected_keyword_argument":  # of a dataclass in this one
            inner = next(filter(dataclasses.is_dataclass, typing.get_args(fields[place[0]])))
            choose(f"{where}: field of {'.'.join(place[:-1])}", place[-1], inner.__dataclass_fields__)
        if lacking := [".".join(map(str, other["loc"])) for other in errors if other["type"] == "missing"]:
            raise ValueError(f"{where}: it lacks {', '.join(lacking)}") from error
        got = "" if wrong["type"] == "value_error" else f", got {reprlib.repr(wrong['input'])}"
        told = wrong["msg"].removeprefix("Value error, ").replace("tuple", "list")
        raise ValueError(f"{': '.join(filter(None, (where, '.'.join(place), told)))}{got}") from error


def read_file(path: Path, largest: int = LARGEST) -> bytes:
    """The contents of a regular file; whatever else it is, a device or a pipe, is not opened.

    Raises:
        FileNotFoundError: if there is nothing.
        ValueError: saying so, without the name, if it is no regular file or has more bytes than `largest`.
    """
    if path.is_symlink() and not path.exists():
        raise ValueError(f"{IRREGULAR}: {os.readlink(path)}")
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(IRREGULAR)
    if status.st_size > largest:
        raise ValueError(TOO_LARGE.format(status.st_size, largest))
    return path.read_bytes()


def read_csv(path: Path, remedy: str = "mend it, or restore it from version control", **options: Any) -> "DataFrame":
    """The table in a file, with options of `pandas.read_csv`; text stays text.

    Raises:
        ValueError: if the file is no table, or a line has more or fewer values than the first, which pandas would shift
            or pad. It names the file and what remedies it.
    """
    import pandas as pd  # which takes longer than all that most commands do with files

    try:
        text = read_file(path).decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text), strict=True)
        header = next(reader, [])
        for row in reader:
            if row and len(row) != len(header):
                raise ValueError(f"line {reader.line_num}: {len(row)} values, expected {len(header)}")
        return pd.read_csv(io.StringIO(text), **{"keep_default_na": False} | options)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read ({str(error).strip()}); {remedy}") from error


def stamp(path: Path) -> tuple[int, ...]:
    """What changes when a file is exchanged, or an entry of a folder: times, size and number."""
    status = path.stat()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def write_atomically(path: Path, write: Callable[[Path], object], *, flush: bool = True) -> None:
    """Let `write` fill a temporary file beside `path`, flush it to disk, then move it into place.

    Whatever happens, `path` holds either its old content or all of the new one, but for a loss of power if not flushed.

    Raises:
        ValueError: if it is there and no regular file, such as a device, which would be replaced by one.
        OSError: as `naming`.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        require_regular(path)  # only now, as a name may lead through a folder that was not there
        try:
            write(temporary)
            if flush:
                with temporary.open("r+b") as file:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def require_regular(path: Path) -> None:
    """Raise ValueError if there is something at a path that is no regular file, such as a device or a pipe."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} {IRREGULAR}; name a new or a regular file")


def require_writable(folder: Path) -> None:
    """Raise OSError unless files can be written in a folder, or where it would be made; leaves nothing there."""
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    with tempfile.TemporaryFile(dir=there) as file:
        file.write(b"0")
        file.flush()


def output_file(name: str) -> Path | None:
    """The file that a command is to write, None for standard output, told before anything is computed.

    Links are followed, so that what they lead to is written and they stay.

    Raises:
        ValueError: if a folder is named, or what is no regular file.
        OSError: if nothing can be written there.
    """
    if name in STANDARD_OUTPUT or _is_stream(name, 1):
        return None
    path = Path(os.path.realpath(os.path.expanduser(name)))
    odd = name.endswith(os.sep) or (os.path.lexists(path) and not path.is_file())
    if odd or _is_stream(name, 0) or _is_stream(name, 2):
        raise ValueError(f"--output {name!r} {IRREGULAR}; name a new or a regular file, or - for standard output")
    _check_place(name, path.parent)
    return path


def output_folder(name: str) -> Path:
    """The folder that a command is to write to, told before anything is computed; raises as `output_file`."""
    path = Path(os.path.realpath(os.path.expanduser(name)))
    if name in ("", *STANDARD_OUTPUT) or (os.path.lexists(path) and not path.is_dir()):
        raise ValueError(f"--output {name!r} is no folder; name a new folder or one that is there")
    _check_place(name, path)
    return path


def _is_stream(name: str, descriptor: int) -> bool:
    """Whether a name, such as /dev/fd/2, is that of what this process has open there; a terminal has other names."""
    try:
        return os.path.samestat(os.stat(name), os.fstat(descriptor))
    except (OSError, ValueError):
        return False


def _check_place(name: str, folder: Path) -> None:
    try:
        require_writable(folder)
    except OSError as error:
        raise OSError(f"--output {name} cannot be written ({error.strerror}); name a place to write") from error


def acquire(path: Path, timeout: float = 0) -> contextlib.AbstractContextManager[object]:
    """Hold the lock at a path, whose folder is made, until the context ends, or the process, however it ends.

    Raises:
        filelock.Timeout: if another process still holds it after so many seconds; -1 waits for as long as it takes.
        OSError: as `naming`, also if the file system has no locks; a file instead of one would outlive its process.
    """
    with naming(path):
        return filelock.FileLock(path, fallback_to_soft=False).acquire(timeout=timeout)


def alone(path: Path, whom: str = "") -> contextlib.AbstractContextManager[object]:
    """As `acquire`, however long it takes; says for whom it waits, by default who prepares the path without suffix."""
    try:
        return acquire(path)
    except filelock.Timeout:
        from tqdm import tqdm  # takes a while to import, and is seldom needed here

        whom = whom or f"the process that prepares {path.with_suffix('')}"
        tqdm.write(f"waiting for {whom}", file=sys.stderr)
        return acquire(path, timeout=-1)


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """An empty folder for one process at a time, removed in the end; what a killed one has left there goes first.

    Raises:
        OSError: as `naming`.
    """
    with alone(folder.with_name(f"{folder.name}.lock"), f"the process that works in {folder}"):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            with naming(folder):
                folder.mkdir()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_half_written(folder: Path, name: str = "") -> None:
    """Remove what killed processes have left below a folder before it took its place; the caller holds its lock.

    If the lock is that of a name alone: in the folder, what was to be called so, or so with further endings.
    """
    for path in folder.glob(f".{glob.escape(name)}.*") if name else folder.rglob(".*"):
        if TEMPORARY.fullmatch(path.name):
            path.unlink()


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError inside the block name the file, which one of a full disk does not, and say what to do.

    That is `path`, unless the error names something else, and not the temporary of `write_atomically`.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # it speaks for itself
            raise
        if error.filename is None or TEMPORARY.fullmatch(os.path.basename(str(error.filename))):
            error.filename = str(path)
        if error.errno not in REMEDIES:
            raise
        raise OSError(error.errno, f"{error.strerror} ({REMEDIES[error.errno]})", error.filename) from error
