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


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
@pytest.mark.parametrize("name", ["b.txt", "folder"])  # a link to a folder would hide all that is in it
def test_links_and_devices_in_a_tar_are_named(tmp_path, kind, name):
    path = tmp_path / "things.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
        link = tarfile.TarInfo(name)
        link.type, link.linkname = kind, "a.txt"
        archive.addfile(link)
    with pytest.raises(ValueError, match=rf"things\.tar: {name} is a link or a device; pack the files themselves"):
        list(archives.contents(path, lambda name: name.endswith(".txt")))


def test_links_in_a_zip_are_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "things.zip", "w") as archive:
        link = zipfile.ZipInfo("folder")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16  # as `zip -ry` marks them
        archive.writestr(link, "elsewhere")
    with pytest.raises(ValueError, match=r"things\.zip: folder is a link or a device; pack the files themselves"):
        archives.entries(tmp_path / "things.zip")


@pytest.mark.parametrize("again", ["a.txt", "./a.txt"])
def test_two_members_of_one_name_are_refused(tmp_path, again):
    packed = tmp_path / "things.zip"
    packed.write_bytes(mutations.zipped([("a.txt", b"one"), (again, b"two")]))
    tar = tmp_path / "things.tar"
    with tarfile.open(tar, "w") as archive:
        for name in ("a.txt", again):
            archive.addfile(tarfile.TarInfo(name))
    for path in (packed, tar):
        with pytest.raises(ValueError, match=rf"{path}: two members are called {again}; pack it anew with one of them"):
            list(archives.contents(path, lambda name: True))


@pytest.mark.parametrize("kept", [0, 10, 500, 5000])
def test_truncated_archives_name_the_file(tmp_path, kept):
    path = write_zip(tmp_path / "things.zip", FILES)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged"):
        archives.members(path)
    path = write_tar(tmp_path / "things.tar")
    path.write_bytes(path.read_bytes()[: kept // 20])
    with pytest.raises(ValueError, match=r"(?s)things\.tar is truncated or damaged .*; fetch it again"):
        list(archives.contents(path, bool))


def flip(contents):
    contents[contents.index(bytes(range(256))) + 5] ^= 1


def encrypt(contents):
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the bit that says so, in both headers
        contents[contents.index(start) + flags] |= 1


@pytest.mark.parametrize(("damage", "message"), [
    (flip, r"things/c\.bin the archive is damaged"), (encrypt, r"things/b/2\.txt cannot be read .*encrypted"),
])
def test_a_damaged_member_is_named(tmp_path, damage, message):
    path = write_zip(tmp_path / "things.zip", FILES)
    contents = bytearray(path.read_bytes())
    damage(contents)
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=rf"things\.zip: {message}.*; fetch it again"):
        list(archives.contents(path, lambda name: not name.endswith("a.txt")))
    entries = {entry.name: entry for entry in archives.entries(path)}
    assert entries["things/a.txt"].read() == b"one" and str(entries["things/a.txt"]) == f"{path}: things/a.txt"


@pytest.mark.parametrize("member", ["../a.wav", "/etc/a.wav", "x/../../a.wav", "x\\..\\a.wav"])
def test_members_that_lead_out_of_the_archive_are_refused(tmp_path, member):
    path = write_zip(tmp_path / "a.zip", {"fine.wav": b"", member: b""}, folder="")
    with pytest.raises(ValueError, match="leads out of the archive"):
        archives.entries(path)


def test_a_member_that_unpacks_to_more_than_it_announces_takes_no_memory(tmp_path):
    path = tmp_path / "things.zip"
    path.write_bytes(mutations.bomb("a.txt", 1000))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"things\.zip: a\.txt the archive is damaged"):
        archives.members(path)
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


def test_a_member_without_a_name_is_damage(tmp_path):
    path = tmp_path / "things.zip"
    path.write_bytes(mutations.zipped([("a.txt", b"one"), ("", b"two")]))
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged \(a member has no name\)"):
        archives.entries(path)


def test_an_archive_that_is_not_there_is_no_damage(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.zip"):
        archives.entries(tmp_path / "none.zip")


@pytest.mark.parametrize("fields", [{24: 0}, {20: 0}, {16: 0, 20: 0}])
def test_a_member_that_lost_bytes_is_damage_even_if_none_is_left(tmp_path, fields):
    path = tmp_path / "things.zip"
    contents = bytearray(mutations.zipped([("a.txt", b"one " * 99)]))
    start = contents.index(mutations.CENTRAL)
    for offset, number in fields.items():  # checksum, packed and unpacked size
        contents[start + offset : start + offset + 4] = number.to_bytes(4, "little")
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"things\.zip: a\.txt the archive is damaged"):
        archives.members(path)


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
