"""Archives and folders give the same files, and what is damaged or hostile in them is named."""

import os
import pickle
import stat
import tarfile
import tracemalloc
import zipfile

import pytest
from packed import FILES, write_folder, write_tar, write_zip

from repro.data import archives
from tests.campaigns import mutations


def test_zip_and_folder_have_the_same_members(tmp_path):
    packed = archives.members(write_zip(tmp_path / "things.zip", FILES))
    flat = archives.members(write_zip(tmp_path / "flat" / "things.zip", FILES, folder=""))
    unpacked = archives.members(write_folder(tmp_path / "things", FILES))
    assert packed == flat == unpacked == sorted(FILES.items())


def test_digest_sees_names_contents_and_borders():
    digests = {archives.content_digest(members) for members in (
        [("a", b"xy"), ("b", b"z")], [("a", b"x"), ("b", b"yz")], [("a", b"xy"), ("c", b"z")], [("a", b"xy")],
    )}
    assert len(digests) == 4


@pytest.mark.parametrize("kind", ["folder", "zip", "w", "w:gz", "w:xz", "w:bz2"])
def test_the_wanted_contents_of_anything_without_what_packers_add(tmp_path, kind):
    files = FILES | {"__MACOSX/a.txt": b"?", ".DS_Store.txt": b"?", "b/.hidden.txt": b"?"}
    if kind == "folder":
        path = write_folder(tmp_path / "x", {f"things/{name}": contents for name, contents in files.items()})
    else:
        path = write_zip(tmp_path / "x", files) if kind == "zip" else write_tar(tmp_path / "x", files, mode=kind)
    contents = {name.removeprefix("./"): data for name, data in archives.contents(path, lambda name: "txt" in name)}
    assert contents == {"things/a.txt": b"one", "things/b/2.txt": b"two"}


def test_links_are_followed(tmp_path):
    write_folder(tmp_path / "elsewhere", {"a.wav": b"one"})
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "nowhere.wav").symlink_to(tmp_path / "not there")
    (tmp_path / "set" / "linked").symlink_to(tmp_path / "elsewhere")
    entries = archives.entries(tmp_path / "set")
    assert [(entry.name, entry.size) for entry in entries] == [("linked/a.wav", 3), ("nowhere.wav", -1)]
    assert entries[0].read() == b"one" and str(entries[0]) == f"{tmp_path}/set/linked/a.wav"
    with pytest.raises(ValueError, match=r"cannot be read .*No such file"):
        entries[1].read()


def test_devices_and_pipes_are_not_opened(tmp_path):
    (tmp_path / "set").mkdir()
    os.mkfifo(tmp_path / "set" / "a.wav")
    (tmp_path / "set" / "b.wav").symlink_to("/dev/zero")
    for entry in archives.entries(tmp_path / "set"):
        with pytest.raises(ValueError, match="is no regular file"):
            entry.read()
    with pytest.raises(ValueError, match=r"a\.wav is no regular file"):
        archives.members(tmp_path / "set")
    with pytest.raises(ValueError, match=r"b\.wav .*is no regular file"):
        archives.entries(tmp_path / "set" / "b.wav")  # as if it were a zip archive


def zipped(*members):
    """A zip of (name, contents), whatever the names."""
    return lambda path: path.write_bytes(mutations.zipped([*members]))


def linked(path):
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("folder")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16  # as `zip -ry` marks them
        archive.writestr(link, "elsewhere")


def tarred(*members):
    """A tar of (name, kind)."""
    def write(path):
        with tarfile.open(path, "w") as archive:
            for name, kind in members:
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, "a.txt"
                archive.addfile(member)

    return write


def damaged(change, write=write_zip):
    """An archive of `FILES` whose bytes are changed."""
    def written(path):
        contents = bytearray(write(path).read_bytes())
        cut = change(contents)
        path.write_bytes(contents if cut is None else cut)

    return written


def flip(contents):
    contents[contents.index(bytes(range(256))) + 5] ^= 1


def encrypt(contents):
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the bit that says so, in both headers
        contents[contents.index(start) + flags] |= 1


def without(fields):
    """Of the first member of a zip, bytes that stand for nothing: checksum, packed and unpacked size."""
    def change(contents):
        start = contents.index(mutations.CENTRAL)
        for offset in fields:
            contents[start + offset : start + offset + 4] = bytes(4)

    return change


A, LINK = ("a.txt", tarfile.REGTYPE), r"is a link or a device; pack the files themselves"
HOSTILE = [  # what writes an archive, and what is said of it
    *((tarred(A, (name, kind)), f"{name} {LINK}") for name in ("b.txt", "folder")  # which would hide all that is in it
      for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)),
    (linked, f"folder {LINK}"),
    *((write, f"two members are called {again}; pack it anew with one of them") for again in ("a.txt", "./a.txt")
      for write in (zipped(("a.txt", b"1"), (again, b"2")), tarred(A, (again, tarfile.REGTYPE)))),
    *((zipped(("fine.wav", b""), (name, b"")), "leads out of the archive")
      for name in ("../a.wav", "/etc/a.wav", "x/../../a.wav", "x\\..\\a.wav")),
    (zipped(("a.txt", b"one"), ("", b"two")), r"is truncated or damaged \(a member has no name\)"),
    *((damaged(lambda contents, kept=kept: contents[:kept]), "is truncated or damaged .*; fetch it again")
      for kept in (0, 10, 500, 5000)),
    *((damaged(lambda contents, kept=kept: contents[:kept], write_tar), "is truncated or damaged .*; fetch it again")
      for kept in (0, 25, 250)),
    (damaged(flip), r"things/c\.bin the archive is damaged .*; fetch it again"),
    (damaged(encrypt), r"things/\S+ cannot be read .*encrypted.*; fetch it again"),
    *((damaged(without(fields)), r"things/\S+ the archive is damaged") for fields in ((24,), (20,), (16, 20))),
]


@pytest.mark.parametrize(("write", "message"), HOSTILE)
def test_what_is_damaged_or_could_be_read_in_two_ways_is_refused_by_name(tmp_path, write, message):
    path = tmp_path / "things.archive"
    write(path)
    with pytest.raises(ValueError, match=rf"(?s){path}.*{message}"):
        list(archives.contents(path, lambda name: True))


def test_beside_a_damaged_member_the_others_can_be_read(tmp_path):
    path = tmp_path / "things.zip"
    damaged(flip)(path)
    entry = next(entry for entry in archives.entries(path) if entry.name == "things/a.txt")
    assert entry.read() == b"one" and str(entry) == f"{path}: things/a.txt"


@pytest.mark.parametrize(("announced", "message"), [
    (1000, "the archive is damaged"), (mutations.HUGE, "has 2,147,483,648 bytes, at most 268,435,456 are read"),
])
@pytest.mark.parametrize("read", [archives.members, lambda path: list(archives.contents(path, bool))])
def test_a_member_that_unpacks_to_gigabytes_takes_no_memory_whatever_it_announces(tmp_path, read, announced, message):
    path = tmp_path / "things.zip"
    path.write_bytes(mutations.bomb("a.txt", announced))
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"things\.zip.* {message}"):
        read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24  # of 2 GiB


def test_files_above_the_limit_are_not_read(tmp_path, monkeypatch):
    files = {"a.bin": bytes(600), "b.bin": bytes(600)}
    packed, folder = write_zip(tmp_path / "things.zip", files), write_folder(tmp_path / "things", files)
    tar = write_tar(tmp_path / "things.tar", files)
    monkeypatch.setattr(archives, "LARGEST", 1000)
    assert sum(len(entry.read()) for entry in archives.entries(packed)) == 1200  # one by one
    for path in (packed, folder):
        with pytest.raises(ValueError, match=f"{path} has 1,200 bytes, at most 1,000 are read"):
            archives.members(path)
    monkeypatch.setattr(archives, "LARGEST", 599)
    for path in (packed, folder, tar):
        with pytest.raises(ValueError, match=rf"{path}.*a\.bin has 600 bytes, at most 599 are read"):
            list(archives.contents(path, bool))


def test_an_archive_that_is_not_there_is_no_damage(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.zip"):
        archives.entries(tmp_path / "none.zip")


def test_an_archive_is_opened_once_and_again_when_it_changes(tmp_path, monkeypatch):
    path = write_zip(tmp_path / "a.zip", {"a.wav": b"old"})
    entry, = archives.entries(path)
    with monkeypatch.context() as patched:
        patched.setattr(zipfile, "ZipFile", None)
        assert entry.read() == b"old"
        pickle.loads(pickle.dumps(entry)).read()  # as a worker has it
    write_zip(path, {"a.wav": b"newer"})
    os.utime(path, ns=(1, 1))
    assert [entry.read() for entry in archives.entries(path)] == [b"newer"]
