"""The files in folders, zip and tar archives. None of them is trusted: one above `LARGEST` is not read."""

import contextlib
import csv
import functools
import hashlib
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from repro.data.disk import naming, scratch

if TYPE_CHECKING:
    from pandas import DataFrame

LARGEST = 2**28               # bytes that are held in memory: of a file, or of all that are read together
TOO_LARGE = "has {:,} bytes, at most {:,} are read"
IRREGULAR = "is no regular file, or a link that leads nowhere"
CORRUPT = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, UnicodeDecodeError, EOFError,
           NotImplementedError)                                                # what a damaged zip raises
DAMAGED = (*CORRUPT, tarfile.TarError, OSError, ValueError, RuntimeError)      # RuntimeError: it is encrypted


class Refused(ValueError):
    """An archive is whole, and yet cannot be used; the message names it and says what to do."""


@dataclass(frozen=True)
class Entry:
    """A file in a folder or zip archive.

    Attributes:
        root: the folder or archive.
        name: its path there, such as `UCF-101/Archery/v_Archery_g01_c06.avi`.
        size: in bytes, unpacked; -1 of what is no regular file: a device, a pipe, a link that leads nowhere.
    """

    root: Path
    name: str
    size: int

    def __str__(self) -> str:
        return f"{self.root}: {self.name}" if self.root.is_file() else f"{self.root / self.name}"

    def read(self) -> bytes:
        """The contents; of a member of an archive as many bytes as it announces, whatever it would unpack to.

        ValueError if it is no regular file, too large or cannot be read, or the archive is damaged there.
        """
        if self.size > LARGEST:
            raise ValueError(TOO_LARGE.format(self.size, LARGEST))
        try:
            if self.root.is_dir():
                return read_file(self.root / self.name)
            with _zip(self.root, stamp(self.root)).open(self.name) as file:
                contents = file.read(self.size + 1)  # with one more, `zipfile` looks at the checksum
            if len(contents) != self.size:
                raise zipfile.BadZipFile(f"{len(contents):,} of {self.size:,} bytes")
            return contents
        except CORRUPT as error:
            raise ValueError(f"the archive is damaged here ({error})") from error
        except (OSError, RuntimeError) as error:
            raise ValueError(f"cannot be read ({error})") from error


def read_file(path: Path, largest: int = LARGEST) -> bytes:
    """The contents of a regular file; whatever else it is, a device or a pipe, is not opened.

    Raises:
        FileNotFoundError: if there is nothing.
        ValueError: saying so, without the name, if it is no regular file or has more than the largest number of bytes.
    """
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


@functools.lru_cache(maxsize=4)
def _zip(path: Path, _stamp: tuple[int, ...]) -> zipfile.ZipFile:
    """A zip archive, opened once while it stays the same: a list of 56,880 members takes a while."""
    with naming_damage(path):
        if not path.is_file():
            raise ValueError(IRREGULAR)
        archive = zipfile.ZipFile(path)
        if not all(member.filename for member in archive.infolist()):
            archive.close()
            raise zipfile.BadZipFile("a member has no name")
        return archive


@contextlib.contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """Let what a damaged archive raises inside the block be a ValueError that names it; other OSErrors stay."""
    try:
        yield
    except Refused:
        raise
    except DAMAGED as error:
        if isinstance(error, OSError) and error.filename:  # one of damage names no file
            raise
        remedy = "fetch it again, `repro data list` says how"
        raise ValueError(f"{path} is truncated or damaged ({error}); {remedy}") from error


def entries(path: Path) -> list[Entry]:
    """The files in a folder or zip archive, however deep, sorted by name, but hidden ones and `__MACOSX`.

    ValueError if the archive is damaged, or a member leads out of it, is a link or has the name of another.
    """
    files = _files(path) if path.is_dir() else _members(path)
    return sorted((entry for entry in files if _visible(entry.name)), key=lambda entry: entry.name)


def members(path: Path) -> list[tuple[str, bytes]]:
    """(name, contents) of the files in a folder or zip archive, sorted by name.

    A leading folder named as the archive is left out of the names, so that a zip and what it unpacks to agree. Raises
    as `contents`, also if all files together are too large.
    """
    outer, total = f"{path.name if path.is_dir() else path.stem}/", sum(entry.size for entry in entries(path))
    if total > LARGEST:
        raise ValueError(f"{path} {TOO_LARGE.format(total, LARGEST)}; fetch it again")
    return sorted((name.removeprefix(outer), data) for name, data in contents(path, lambda name: True))


def contents(path: Path, accept: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """(name, contents) of the files in a folder, zip or tar archive whose names `accept` takes, one by one.

    ValueError if it is no archive, or damaged, naming the file if it is known, an accepted file is too large, or a
    member of an archive is a link or has the name of another: what either stands for is not guessed.
    """
    if path.is_dir() or zipfile.is_zipfile(path):
        for entry in entries(path):
            if accept(entry.name):
                try:
                    yield entry.name, entry.read()
                except ValueError as error:
                    raise ValueError(f"{path}: {entry.name} {error}; fetch it again") from error
        return
    seen: set[PurePosixPath] = set()
    with naming_damage(path), tarfile.open(path) as archive:
        for member in archive:
            if member.isdir() or not _visible(member.name):
                continue
            _check_member(path, member.name, member.isfile(), seen)
            if accept(member.name):
                if member.size > LARGEST:
                    raise Refused(f"{path}: {member.name} {TOO_LARGE.format(member.size, LARGEST)}; leave it out")
                yield member.name, archive.extractfile(member).read()


@contextlib.contextmanager
def unpacked(path: Path, into: Path) -> Iterator[Path]:
    """The folder that holds what a tar archive, or the folder it unpacks to, holds; `tarfile` keeps members inside.

    Args:
        path: of the archive or the folder.
        into: where an archive is unpacked, by one process at a time, and removed afterwards. What a killed one has left
            there is removed first.

    Raises:
        ValueError: if the archive is damaged, or a member leads out of it.
        OSError: if there is no room, naming the file.
    """
    if path.is_dir():
        yield path.parent
        return
    with scratch(into):
        with naming_damage(path), naming(into), tarfile.open(path) as archive:
            archive.extractall(into, filter="data")
        yield into


def content_digest(members: Iterable[tuple[str, bytes]]) -> str:
    """Hex sha256 over (name, contents) pairs in the order given; the same for a zip and for what it unpacks to."""
    digest = hashlib.sha256()
    for name, contents in members:
        digest.update(f"{name}\0{len(contents)}\0".encode())
        digest.update(contents)
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Entry]:
    for here, _, names in os.walk(folder, followlinks=True):
        for file in (Path(here, name) for name in names):
            yield Entry(folder, file.relative_to(folder).as_posix(), file.stat().st_size if file.is_file() else -1)


def _members(path: Path) -> Iterator[Entry]:
    seen: set[PurePosixPath] = set()
    for info in _zip(path, stamp(path)).infolist():
        if info.filename.startswith("/") or "\\" in info.filename or ".." in PurePosixPath(info.filename).parts:
            raise ValueError(f"{path}: its member {info.filename!r} leads out of the archive; it is no official "
                             "distribution, move it away")
        if info.is_dir():
            continue
        if _visible(info.filename):
            _check_member(path, info.filename, not stat.S_ISLNK(info.external_attr >> 16), seen)
        yield Entry(path, info.filename, info.file_size)


def _check_member(path: Path, name: str, regular: bool, seen: set[PurePosixPath]) -> None:
    """Raise `Refused` if a member of an archive is no regular file, or has one of the places seen before; adds its own.

    A link would be missing without a word, and of two members one would be read for both.
    """
    if not regular:
        raise Refused(f"{path}: {name} is a link or a device; pack the files themselves, as `zip -r` does and "
                      "`tar --dereference --hard-dereference`")
    place = PurePosixPath(name)
    if place in seen:
        raise Refused(f"{path}: two members are called {name}; pack it anew with one of them")
    seen.add(place)


def _visible(name: str) -> bool:
    return not any((part.startswith(".") and part != ".") or part == "__MACOSX" for part in name.split("/"))
