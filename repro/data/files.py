"""The files of data sets: fetched, unpacked once where they are packed, and held against what manifests declare."""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from repro.data import disk, manifest
from repro.data.disk import LARGEST, read_file, stamp
from repro.data.manifest import Archive, Manifest

SECONDS = 60                  # without a word from the server
RATIO = 100                   # bytes that a byte of an archive may unpack to, beside `LARGEST` in all
PADDING = 2**24               # bytes of zeros that end a tar archive are fewer


def folder(path: Path, declared: Archive | None = None) -> Path:
    """A folder itself; of a zip or tar archive the one that it is unpacked to, below REPRO_RUNS, once.

    It is unpacked again if the archive is exchanged, or a file of the copy changes.

    Raises:
        ValueError: before anything is unpacked, if the archive does not hold as many files and bytes as declared, or
            more bytes than its size lets expect, or a member leads out of it or is a link or a device; if it is damaged
            or its files are others than it lists, of which nothing stays.
        OSError: if there is no room, with the bytes it takes, or REPRO_RUNS cannot be written.
    """
    if path.is_dir():
        return path
    into, index = _copy(path)
    if _is_whole(path):  # looked at before the lock: the folder may be one that is only read
        return into
    with disk.alone(into.with_name(f"{into.name}.lock"), f"the process that unpacks {path}"):
        if _is_whole(path):  # by that process
            return into
        try:
            with disk.naming(into):
                forget(path)  # what is of another archive, or by a process that was killed
                _unpack(path, declared or Archive(name=path.name), into)
        except ValueError as error:
            forget(path)
            raise ValueError(f"{path} {error}; fetch it again, `repro data list` says how") from error
        disk.write_atomically(index, lambda temporary: temporary.write_text(_state(path, into)))
    return into


def forget(path: Path) -> None:
    """Remove what an archive was unpacked to, when nothing is read of it any more."""
    into, index = _copy(path)
    index.unlink(missing_ok=True)
    shutil.rmtree(into, ignore_errors=True)


def listed(place: Path) -> list[Path]:
    """The files in a folder, however deep, through links too, but hidden ones and `__MACOSX`; sorted by name.

    Among them is what can be no file, such as a pipe or a link that leads nowhere; `disk.read_file` refuses that.
    """
    files = (f"{here}/{name}" for here, _, names in os.walk(place, followlinks=True) for name in names)
    names = sorted(path.removeprefix(f"{place}/") for path in files)
    return [place / name for name in names if _visible(name)]


def members(path: Path, declared: Archive | None = None) -> list[tuple[str, bytes]]:
    """(name, contents) of the files in an archive or the folder it unpacks to, sorted by name.

    A leading folder named as the archive is left out of the names, so that all of these agree. ValueError as `folder`,
    or if a file cannot be read, or all together are too large.
    """
    outer, place = f"{path.name if path.is_dir() else path.stem}/", folder(path, declared)
    files, contents = listed(place), []
    if (total := sum(sizes_of(files))) > LARGEST:
        raise ValueError(f"{path} {disk.TOO_LARGE.format(total, LARGEST)}; fetch it again")
    for file in files:
        try:
            contents.append((file.relative_to(place).as_posix().removeprefix(outer), read_file(file)))
        except (OSError, ValueError) as error:
            raise ValueError(f"{file} cannot be read ({error}); fetch it again") from error
    return sorted(contents)


def content_digest(members: Iterable[tuple[str, bytes]]) -> str:
    """Hex sha256 over (name, contents) pairs in the order given; the same for a zip and for what it unpacks to."""
    digest = hashlib.sha256()
    for name, contents in members:
        digest.update(f"{name}\0{len(contents)}\0".encode())
        digest.update(contents)
    return digest.hexdigest()


def verified_members(declared: Manifest, root: Path) -> list[tuple[str, bytes]]:
    """The `members` of every file of a data set; raises as `require`, and ValueError if one is not as declared."""
    gathered = []
    for archive, path in zip(declared.files, require(declared, root), strict=True):
        contents = members(path, archive)
        wrong = _wrong(archive, [len(data) for _, data in contents])
        if not wrong and archive.digest not in (None, content_digest(contents)):
            wrong = f"has contents of digest {content_digest(contents)}, expected {archive.digest}"
        if wrong:
            raise ValueError(f"{path} is not the distribution data_manifests/{declared.name}.yaml declares: "
                             f"it {wrong}; fetch it again from {declared.source}")
        gathered += contents
    return gathered


# ------------------------------------------------------------------------------------------------ whether they are here


def require(declared: Manifest, root: Path) -> list[Path]:
    """Where the archives of a data set lie below `root`, or the folders they unpack to, in the manifest's order.

    FileNotFoundError names the page, the archive and where to put it, and a copy that was taken in instead.
    """
    paths = [archive.place(root) for archive in declared.files]
    if None in paths:
        path, *unpacked = declared.files[paths.index(None)].places(root)
        alternative = f" (or, unpacked, {' or '.join(map(str, unpacked))})" if unpacked else ""
        copy = manifest.copy_of(declared.name)
        instead = f"; or pass --subset (subset=True) for the copy {copy.stem}" if copy else ""
        raise FileNotFoundError(
            f"data set {declared.name!r} lacks {path}{alternative}; {_next_step(declared, path)}{instead}"
        )
    return paths


def status() -> list[dict[str, str]]:
    """One row per declared data set: name, title, state, path, next_step, copy.

    States: "bundled"; "present", names and sizes are as declared, where they are; "differs", a part, damaged or another
    packing; "missing". Contents are not read, loading a data set does that. The copy is the file that `repro data
    import` took in last, "" if none.
    """
    rows, root = [], manifest.data_root()
    for declared in map(manifest.load_manifest, manifest.names()):
        copy, (state, next_step) = manifest.copy_of(declared.name), _state_of(declared, root)
        path = ", ".join(f"{root / archive.name}" for archive in declared.files)
        rows.append({"name": declared.name, "title": declared.title, "state": state, "path": path,
                     "next_step": next_step, "copy": copy.stem if copy else ""})
    return rows


def download(name: str) -> list[Path]:
    """Fetch the archives of a data set that are missing below the data root; returns where all of them lie.

    A file takes its place once its checksum is right; what lies there already is never replaced.

    Raises:
        ValueError: if it cannot be fetched automatically, what lies there is not as declared, or what the server sends.
    """
    import pooch

    declared, root = manifest.load_manifest(name), manifest.data_root()
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=SECONDS)
    for archive in declared.files:
        path, present = root / archive.name, archive.place(root)
        counted = archive.members is not None or archive.size is not None
        if archive.url is None and (present is None or not counted):  # what lies there may be a part
            raise ValueError(f"data set {name!r} cannot be fetched automatically; {_next_step(declared, path)}")
        if present is None:
            known = f"sha256:{archive.sha256}" if archive.sha256 else f"md5:{archive.md5}"
            with disk.naming(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                pooch.retrieve(archive.url, known, path.name, path.parent, downloader=downloader)
        elif wrong := _difference(archive, present):
            raise ValueError(f"{present} {wrong}; move it away and give the command again")
    return require(declared, root)


def _next_step(declared: Manifest, path: Path) -> str:
    """What a reader does to obtain `path`."""
    elsewhere = "or point REPRO_DATA at a folder that has it"
    if declared.access == "automatic":
        return f"run `repro data download {declared.name}`, {elsewhere}"
    if declared.access == "derived":
        return f"it is part of other data: get these at {declared.source}, {elsewhere}"
    return f"ask for {path.name} at {declared.source} and put it into {path.parent}, {elsewhere}"


def _state_of(declared: Manifest, root: Path) -> tuple[str, str]:
    """State of a data set, and what to do next."""
    for archive in declared.files:
        if (path := archive.place(root)) is None:
            return "missing", _next_step(declared, root / archive.name)
        if wrong := _difference(archive, path):
            return "differs", f"{path} {wrong}; move it away; {_next_step(declared, root / archive.name)}"
    return "present" if declared.files else "bundled", ""


def _difference(archive: Archive, path: Path) -> str:
    """How what lies at `path` differs in names and sizes from what is declared, "" if it does not."""
    if path.is_dir():
        if archive.members is None:  # its files are not counted: there may be millions
            return "" if any(path.iterdir()) else "is empty"
        return _wrong(archive, sizes_of(listed(path)))
    if path.suffix == ".zip":
        try:
            if wrong := _wrong(archive, [size for size, _ in _contents(path)]):
                return wrong
        except ValueError as error:
            return f"{error}"
    size = path.stat().st_size
    return "" if archive.size in (None, size) else f"has {size:,} of {archive.size:,} bytes"


def _wrong(declared: Archive, sizes: list[int]) -> str:
    """What of the number and the bytes of files is not as declared, "" if both are, or are not known."""
    counts = {"files": (len(sizes), declared.members), "bytes": (sum(sizes), declared.bytes)}
    wrong = [f"{count:,} of {expected:,} {what}" for what, (count, expected) in counts.items()
             if expected not in (count, None)]
    return f"has {', '.join(wrong)}" if wrong else ""


def sizes_of(files: Iterable[Path]) -> list[int]:
    """Bytes of each; -1 of what is no regular file: a device, a pipe, a link that leads nowhere."""
    return [path.stat().st_size if path.is_file() else -1 for path in files]


def _visible(name: str) -> bool:
    return not any((part.startswith(".") and part != ".") or part == "__MACOSX" for part in name.split("/"))


# ------------------------------------------------------------------------------------------------ archives


def _copy(path: Path) -> tuple[Path, Path]:
    """The folder that an archive is unpacked to, which may go at any time, and a file of its state, written last."""
    name = f"{path.name}-{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]}"
    into = manifest.prepared_root() / "unpacked" / name
    return into, into.with_name(f"{name}.json")


def _is_whole(path: Path) -> bool:
    """Whether what an archive was unpacked to is there as it was then, and the archive is the same."""
    into, index = _copy(path)
    try:
        return read_file(index).decode() == _state(path, into)
    except (FileNotFoundError, ValueError):  # not to the end, or damaged
        return False


def _state(path: Path, into: Path) -> str:
    """What changes with an archive, or a file in the folder it was unpacked to; no contents are read."""
    files = {f"{file.relative_to(into)}": stamp(file) for file in listed(into)}
    return json.dumps([stamp(path), files])


def _opened(path: Path) -> zipfile.ZipFile | tarfile.TarFile:
    return zipfile.ZipFile(path) if zipfile.is_zipfile(path) or path.suffix == ".zip" else tarfile.open(path)


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """Let what a damaged archive raises inside the block be a ValueError that says so; an error of the disk stays."""
    try:
        yield
    except Exception as error:  # of many kinds
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        reason, *_ = f"{error}".splitlines() or ["it ends too early"]
        raise ValueError(f"is no archive that can be unpacked ({reason})") from error


def _contents(path: Path) -> list[tuple[int, Any]]:
    """Bytes and entry of the files in an archive; ValueError if it is damaged or one cannot be unpacked safely.

    A compressed stream is read to its end, where its checksum is.
    """
    if not path.is_file():
        raise ValueError(disk.IRREGULAR)
    most, contents = LARGEST + RATIO * path.stat().st_size, []
    with _refused(), _opened(path) as archive:
        for entry in archive if (tarred := isinstance(archive, tarfile.TarFile)) else archive.infolist():
            if tarred:
                name, size, is_folder, is_file = entry.name, entry.size, entry.isdir(), entry.isfile()
            else:
                name, size, is_folder = entry.filename, entry.file_size, entry.filename.endswith("/")
                is_file = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
            place, most = PurePosixPath(name), most - abs(size)
            if not (place.parts or is_folder) or place.is_absolute() or ".." in place.parts or "\\" in name:
                raise ValueError(f"its member {name!r} leads out of the archive")
            if most < 0:
                raise ValueError(f"with {name} it unpacks to more bytes than an archive of its size should")
            if is_folder or not _visible(name):
                continue
            if not is_file:
                raise ValueError(f"{name} is a link or a device; pack the files themselves, as `zip -r` does and "
                                 "`tar --dereference --hard-dereference`")
            contents.append((size, entry))
        if tarred:  # `tarfile` takes a damaged header for the end, and reads no further
            archive.fileobj.seek(archive.offset)
            rest = archive.fileobj.read(PADDING)
            if not tarfile.BLOCKSIZE <= len(rest) < PADDING or rest.strip(b"\0"):
                raise ValueError("it does not end after its last member")
    return contents


def _unpack(path: Path, declared: Archive, into: Path) -> None:
    """Unpack an archive as of `_contents`, of as many files and bytes as declared."""
    contents = _contents(path)
    sizes, free = [size for size, _ in contents], shutil.disk_usage(into.parent).free
    if wrong := _wrong(declared, sizes):
        raise ValueError(wrong)
    room = f"unpacking {path} into {into}: {len(sizes):,} files, {sum(sizes):,} bytes, of which {free:,} are free"
    if sum(sizes) > free:
        raise OSError(errno.ENOSPC, room)
    print(room, file=sys.stderr)
    into.mkdir()
    with _refused(), _opened(path) as archive:
        options = {"filter": "data"} if isinstance(archive, tarfile.TarFile) else {}
        for _, entry in contents:
            archive.extract(entry, into, **options)
    if sorted(sizes_of(listed(into))) != sorted(sizes):
        raise ValueError("has two files of one name, or one of fewer bytes than it says")
