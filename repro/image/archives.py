"""Files in folders, zip and tar archives, which are not trusted: neither their names nor what they unpack to."""

import contextlib
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from repro import archives, npz

LARGEST = 2**33               # bytes that an archive may unpack to, all files together; STL-10 has 3.1e9
DAMAGED = (*npz.DAMAGED, tarfile.TarError)


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


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """(name, contents) of the files in a folder, zip or tar archive; a folder that holds all others is left out.

    Raises:
        ValueError: if the archive is damaged.
    """
    try:
        files = list(_files(path))
    except (*DAMAGED, RuntimeError) as error:  # RuntimeError: it is encrypted
        raise ValueError(f"{path} is truncated or damaged ({error}); fetch it again") from error
    visible = [(name, data) for name, data in files
               if not any(part == "__MACOSX" or part.startswith("._") for part in name.split("/"))]
    tops = {name.split("/", 1)[0] for name, _ in visible}
    outer = f"{tops.pop()}/" if len(tops) == 1 and not tops & {"train", "test", "val"} else ""
    for name, data in visible:
        yield name.removeprefix(outer), data


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
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter=Room().checked)
        except DAMAGED as error:
            raise ValueError(f"{path} is truncated or damaged ({error}); fetch it again") from error
        yield Path(folder)


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    room = Room()
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield file.relative_to(path).as_posix(), file.read_bytes()
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.filename.endswith("/"):  # `is_dir` fails where a name is empty
                    room.take(info.file_size)
                    yield info.filename, archives.read_member(archive, info)
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                room.take(member.size)
                if member.isfile():
                    yield member.name.removeprefix("./"), archive.extractfile(member).read()
