"""Files in folders, zip and tar archives, which are not trusted: neither their names nor what they unpack to."""

import bz2
import contextlib
import functools
import gzip
import lzma
import math
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from repro.data import archives, npz

LARGEST = 2**33               # bytes that an archive may unpack to, all files together; STL-10 has 3.1e9
LARGEST_FILE = 2**22          # bytes of a file that is read; the pixels of a picture of 96 x 96 are 27,648
PARTICULARS = 2**16           # bytes of the name and the like of a member of a tar archive
DAMAGED = (*npz.DAMAGED, tarfile.TarError, RuntimeError)  # RuntimeError: it is encrypted, or nested without end
UNPACKERS: dict[bytes, Callable[..., BinaryIO]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}


class TooLarge(ValueError):
    """A file announces more than `LARGEST_FILE`."""


class Room:
    """What an archive may still unpack to; no member unpacks to more than it says."""

    def __init__(self) -> None:
        self.left = LARGEST

    def take(self, size: int) -> None:
        """Raise ValueError if there is no room for so many bytes more."""
        self.left -= size
        if self.left < 0:
            raise ValueError(f"it unpacks to more than {LARGEST:,} bytes")

    def checked(self, member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
        """A filter of `tarfile` that lets no member leave the folder either."""
        self.take(member.size)
        return tarfile.data_filter(member, folder)


class Metered:
    """A tar archive without its packing, of which only so many bytes may be read."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.left = file, math.inf
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        """As of a file; raises ValueError if so many may not be read."""
        self.left -= size
        if self.left < 0:
            raise ValueError(f"a member has a name, or the like, of more than {PARTICULARS:,} bytes")
        return self.file.read(size)


class Tar(tarfile.TarFile):
    """A tar archive, read from a `Metered`: neither its members nor their names and the like fill memory."""

    def next(self) -> tarfile.TarInfo | None:
        """The next member; ValueError if its particulars, which `tarfile` reads whole, are too large."""
        self.members.clear()  # it would keep all
        self.fileobj.left = PARTICULARS
        member = super().next()
        self.fileobj.left = math.inf
        return member


def recognised(path: Path) -> bool:
    """Whether a file is a zip or tar archive, as far as its beginning or end tells."""
    if zipfile.is_zipfile(path):
        return True
    try:
        with _tar(path):
            return True
    except DAMAGED as error:
        if isinstance(error, OSError) and error.filename:  # it cannot be opened
            raise
        return False


def contents(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """(name, contents) of the files in a folder, zip or tar archive; a folder that holds all others is left out.

    They are read one by one, those alone whose names are `wanted`.

    Raises:
        ValueError: if the archive is damaged, or a file that is wanted is too large.
    """
    try:
        outer = _outer(name for name, _, _ in _files(path))
        for name, size, read in _files(path):
            if wanted(name.removeprefix(outer)):
                if size > LARGEST_FILE:
                    raise TooLarge(f"{path}: {name} has {size:,} bytes, at most {LARGEST_FILE:,} are read")
                yield name.removeprefix(outer), read()
    except TooLarge:
        raise
    except DAMAGED as error:
        raise ValueError(f"{path} is truncated or damaged ({error}); fetch it again") from error


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The folder in which torchvision finds what `path`, a tar archive or the folder it unpacks to, holds.

    Raises:
        ValueError: if the archive is damaged.
    """
    if path.is_dir():
        yield path.parent
        return
    with tempfile.TemporaryDirectory(prefix="repro-") as folder:
        try:
            with _tar(path) as archive:
                archive.extractall(folder, filter=Room().checked)
        except DAMAGED as error:
            raise ValueError(f"{path} is truncated or damaged ({error}); fetch it again") from error
        yield Path(folder)


@contextlib.contextmanager
def _tar(path: Path) -> Iterator[Tar]:
    with open(path, "rb") as file:
        beginning = file.read(max(map(len, UNPACKERS)))
    unpacker = next((each for start, each in UNPACKERS.items() if beginning.startswith(start)), open)
    with unpacker(path, "rb") as file, Tar(fileobj=Metered(file)) as archive:
        yield archive


def _outer(names: Iterable[str]) -> str:
    """The folder that holds all others, with its slash; nothing if there is none, or it is one of the parts."""
    tops = set()
    for name in names:
        tops.add(name.split("/", 1)[0])
        if len(tops) > 1 or tops & {"train", "test", "val"}:
            return ""
    return f"{tops.pop()}/" if tops else ""


def _files(path: Path) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    """Name, announced bytes, and what reads the contents, of every file without those that packers add."""
    for name, size, read in _all_files(path):
        if not any(part == "__MACOSX" or part.startswith("._") for part in name.split("/")):
            yield name, size, read


def _all_files(path: Path) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    room = Room()
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield file.relative_to(path).as_posix(), file.stat().st_size, file.read_bytes
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.filename.endswith("/"):  # `is_dir` fails where a name is empty
                    room.take(info.file_size)
                    yield info.filename, info.file_size, functools.partial(archives.read_member, archive, info)
    else:
        with _tar(path) as archive:
            for member in archive:
                room.take(member.size)
                if member.isfile():
                    yield member.name.removeprefix("./"), member.size, archive.extractfile(member).read
