"""Files as they are distributed, in folders and in zip archives there, read without being unpacked."""

import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from repro.audiovisual.media import Unusable
from repro.data.archives import open_zip_once, read_member

LARGEST = 2**28               # bytes of a file that is read; a clip of ten seconds has about a million


@dataclass(frozen=True)
class Entry:
    """A file: itself, or a member of a zip archive.

    Attributes:
        path: of the file or archive.
        member: its name there, None for a file.
        size: in bytes, unpacked; -1 if nobody can tell.
    """

    path: str
    member: str | None
    size: int

    @property
    def name(self) -> str:
        """The last part of its path, such as `v_Archery_g01_c06.avi`."""
        return PurePosixPath(self.member or self.path).name

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"{self.path}: {self.member}" if self.member else self.path


def entries(paths: list[Path]) -> list[Entry]:
    """All files below some folders and in some zip archives, each once, sorted by place; hidden ones are passed over.

    An archive that lies in a folder is looked into as well; nothing is unpacked.

    Raises:
        ValueError: if an archive is damaged, or has a member that leads out of it.
    """
    found = {}
    for path in paths:
        for each in _walk(path) if path.is_dir() else _members(path):
            found[each.place] = each
    return [found[place] for place in sorted(found)]


def opened(entry: Entry) -> BinaryIO:
    """A file open for reading; a member of an archive is in memory.

    Raises:
        Unusable: if it cannot be read, or is of absurd size.
    """
    if entry.member is not None:
        return io.BytesIO(read(entry))
    _refuse_large(entry)
    try:
        return open(entry.path, "rb")
    except OSError as error:
        raise Unusable(f"cannot be read ({error.strerror})") from error


def read(entry: Entry) -> bytes:
    """The contents of a file; raises as `opened`."""
    _refuse_large(entry)
    try:
        if entry.member is None:
            with open(entry.path, "rb") as file:
                return file.read(LARGEST)
        archive = open_zip_once(Path(entry.path))
        return read_member(archive, archive.getinfo(entry.member))
    except OSError as error:
        raise Unusable(f"cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise Unusable(f"{error}") from error


def _refuse_large(entry: Entry) -> None:
    if entry.size > LARGEST:
        raise Unusable(f"has {entry.size:,} bytes, at most {LARGEST:,} are read")


def _walk(folder: Path, above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[Entry]:
    """The files below a folder, and in archives there; links that lead back to a folder above are not followed."""
    with os.scandir(folder) as scan:
        for each in scan:
            if _hidden(each.name):
                continue
            try:
                status = each.stat()
            except OSError:  # a link that leads nowhere
                yield Entry(each.path, None, -1)
                continue
            here = (status.st_dev, status.st_ino)
            if stat.S_ISDIR(status.st_mode):
                if here not in above:
                    yield from _walk(Path(each.path), above | {here})
            elif each.name.lower().endswith(".zip"):
                yield from _members(Path(each.path))
            elif stat.S_ISREG(status.st_mode):
                yield Entry(each.path, None, status.st_size)


def _members(path: Path) -> Iterator[Entry]:
    """The files in an archive."""
    for member in open_zip_once(path).infolist():
        parts = PurePosixPath(member.filename).parts
        if member.filename.startswith("/") or ".." in parts or "\\" in member.filename:
            raise ValueError(f"{path}: its member {member.filename!r} leads out of the archive; it is not an official "
                             f"distribution, move it away")
        if not member.is_dir() and not any(map(_hidden, parts)):
            yield Entry(str(path), member.filename, member.file_size)


def _hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"
