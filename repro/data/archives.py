"""The files in zip archives that may be damaged, and in the folders these unpack to."""

import functools
import hashlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CORRUPT = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, UnicodeDecodeError, EOFError,
           NotImplementedError)                                                # what a damaged zip raises


def open_zip(path: Path) -> zipfile.ZipFile:
    """A zip archive whose list of members has been read.

    Raises:
        ValueError: if it is truncated or damaged there.
        OSError: if it cannot be opened.
    """
    try:
        archive = zipfile.ZipFile(path)
        if all(member.filename for member in archive.infolist()):
            return archive
        archive.close()
        raise zipfile.BadZipFile("a member has no name")
    except (*CORRUPT, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.filename:  # one that is damaged names no file
            raise
        raise ValueError(f"{path} is truncated or damaged ({error}); fetch the archive again") from error


def open_zip_once(path: Path) -> zipfile.ZipFile:
    """The same, opened once per process while the file stays the same: a list of 56,880 members takes a while.

    Raises:
        ValueError, OSError: as `open_zip`.
    """
    return _opened(path, stamp(path))


def stamp(path: Path) -> tuple[int, ...]:
    """What changes when a file is exchanged, or an entry of a folder: times, size and number."""
    found = path.stat()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


@functools.lru_cache(maxsize=4)
def _opened(path: Path, _version: tuple[int, ...]) -> zipfile.ZipFile:
    return open_zip(path)


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The contents of a member of a zip archive: as many bytes as it announces, whatever it would unpack to.

    Raises:
        ValueError: if it is damaged or encrypted, or cannot be read for another reason.
    """
    if member.compress_type == zipfile.ZIP_LZMA:
        raise ValueError("is packed with LZMA, which may take any amount of memory; pack it with deflate")
    try:
        with archive.open(member) as file:
            contents = file.read(member.file_size + 1)  # with one more, `zipfile` looks at the checksum
        if len(contents) != member.file_size:
            raise zipfile.BadZipFile(f"{len(contents):,} of {member.file_size:,} bytes")
        return contents
    except CORRUPT as error:
        raise ValueError(f"the archive is damaged here ({error})") from error
    except (OSError, RuntimeError) as error:  # the latter if it is encrypted
        raise ValueError(f"cannot be read ({error})") from error


def read_members(path: Path, most: int | None = None) -> list[tuple[str, bytes]]:
    """The files in an archive or folder as (name, contents), sorted by name.

    Names use `/` and leave out a leading folder named as the archive, so that a zip and what it unpacks to agree.
    Hidden files and the `__MACOSX` entries some packers add are passed over.

    Raises:
        ValueError: if the archive is truncated or damaged, naming the member where it is known, or says that it unpacks
            to more than `most` bytes; a member never unpacks to more than it says.
    """
    if path.is_dir():
        return [(name, file.read_bytes()) for name, file in _files(path)]
    contents = []
    with open_zip(path) as archive:
        found = _members(archive, path.stem)
        announced = sum(info.file_size for _, info in found)
        if most is not None and announced > most:
            raise ValueError(f"{path} unpacks to {announced:,} bytes, expected {most:,}; fetch the archive again")
        for member, info in found:
            try:
                contents.append((member, read_member(archive, info)))
            except ValueError as error:
                raise ValueError(
                    f"{path} is truncated or damaged, at {member} ({error}); fetch the archive again") from error
    return contents


def content_digest(members: Iterable[tuple[str, bytes]]) -> str:
    """Hex sha256 over (name, contents) pairs in the order given; the same for a zip and for what it unpacks to."""
    digest = hashlib.sha256()
    for name, contents in members:
        digest.update(f"{name}\0{len(contents)}\0".encode())
        digest.update(contents)
    return digest.hexdigest()


def sizes(path: Path) -> list[int]:
    """Bytes of every file in an archive, as it announces them, or in a folder; those that `read_members` reads.

    Raises:
        ValueError: if the archive is truncated or damaged where it lists its members.
    """
    if path.is_dir():
        return [file.stat().st_size for _, file in _files(path)]
    with open_zip(path) as archive:
        return [info.file_size for _, info in _members(archive, path.stem)]


def _files(folder: Path) -> list[tuple[str, Path]]:
    found = [(file.relative_to(folder).as_posix(), file) for file in folder.rglob("*") if file.is_file()]
    return _visible(found, folder.name)


def _members(archive: zipfile.ZipFile, stem: str) -> list[tuple[str, zipfile.ZipInfo]]:
    return _visible([(info.filename, info) for info in archive.infolist() if not info.is_dir()], stem)


def _visible(found: list[tuple[str, Any]], folder: str) -> list[tuple[str, Any]]:
    """(name, handle) pairs without hidden files, names relative to `folder`, sorted by name."""
    shown = [(name.removeprefix(f"{folder}/"), handle) for name, handle in found
             if not any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))]
    return sorted(shown, key=lambda pair: pair[0])
