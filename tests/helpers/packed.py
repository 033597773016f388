"""A few files, as a folder, a zip or a tar archive."""

import io
import tarfile
import zipfile

FILES = {"b/2.txt": b"two", "a.txt": b"one", "c.bin": bytes(range(256)) * 40}


def write_zip(path, files=FILES, folder="things"):
    """A zip of these files, by name, in a folder of that name; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, contents in files.items():
            archive.writestr(f"{folder}/{name}" if folder else name, contents)
    return path


def write_folder(path, files=FILES):
    """The same as a folder."""
    for name, contents in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(contents)
    return path


def write_tar(path, files=FILES, folder="./things", mode="w:gz"):
    """The same as a tar archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, contents in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}" if folder else name)
            member.size = len(contents)
            archive.addfile(member, io.BytesIO(contents))
    return path
