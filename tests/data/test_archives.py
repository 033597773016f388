"""Archives and folders give the same files, and what is damaged or hostile in them is named."""

import os
import pickle
import tarfile
import tracemalloc
import zipfile

import pytest
from packed import FILES, write_folder, write_zip

from repro.data import archives
from tests.campaigns import mutations


def read(path):
    return {entry.name: entry.read() for entry in archives.entries(path)}


def write_tar(path, files=FILES, mode="w:gz"):
    path.write_bytes(b"")
    with tarfile.open(path, mode) as archive:
        for name, contents in files.items():
            (path.parent / "member").write_bytes(contents)
            archive.add(path.parent / "member", f"./things/{name}")
    (path.parent / "member").unlink()
    return path


def test_zip_and_folder_have_the_same_members(tmp_path):
    packed = archives.members(write_zip(tmp_path / "things.zip", FILES))
    flat = archives.members(write_zip(tmp_path / "flat" / "things.zip", FILES, folder=""))
    unpacked = archives.members(write_folder(tmp_path / "things", FILES))
    assert packed == flat == unpacked == sorted(FILES.items())
    assert archives.content_digest(packed) == archives.content_digest(unpacked)


def test_digest_sees_names_contents_and_borders():
    digests = {archives.content_digest(members) for members in (
        [("a", b"xy"), ("b", b"z")], [("a", b"x"), ("b", b"yz")], [("a", b"xy"), ("c", b"z")], [("a", b"xy")],
    )}
    assert len(digests) == 4


@pytest.mark.parametrize("kind", ["folder", "zip", "w", "w:gz", "w:xz", "w:bz2"])
def test_the_wanted_contents_of_anything(tmp_path, kind):
    if kind == "folder":
        path = write_folder(tmp_path / "x", {f"things/{name}": contents for name, contents in FILES.items()})
    else:
        path = write_zip(tmp_path / "x") if kind == "zip" else write_tar(tmp_path / "x", mode=kind)
    found = dict(archives.contents(path, lambda name: name.endswith(".txt")))
    assert {name.removeprefix("./things/").removeprefix("things/"): contents for name, contents in found.items()} == {
        "a.txt": b"one", "b/2.txt": b"two"}


def test_what_packers_add_is_passed_over(tmp_path):
    extra = {"__MACOSX/a.txt": b"?", ".DS_Store": b"?", "b/.hidden": b"?"}
    assert archives.members(write_zip(tmp_path / "things.zip", FILES | extra)) == sorted(FILES.items())
    assert len(list(archives.contents(write_tar(tmp_path / "x", FILES | extra), bool))) == len(FILES)


def test_links_are_followed_and_a_folder_is_listed_once(tmp_path):
    write_folder(tmp_path / "set" / "deep" / "er", {"a.wav": b"one"})
    (tmp_path / "set" / "nowhere.wav").symlink_to(tmp_path / "not there")
    (tmp_path / "set" / "back").symlink_to(tmp_path / "set" / "deep" / "er")
    (tmp_path / "set" / "deep" / "loop").symlink_to(tmp_path / "set" / "deep")
    entries = archives.entries(tmp_path / "set")
    assert [(entry.name, entry.size) for entry in entries] == [("back/a.wav", 3), ("nowhere.wav", -1)]
    assert entries[0].read() == b"one" and str(entries[0]) == f"{tmp_path}/set/back/a.wav"
    with pytest.raises(ValueError, match=r"cannot be read .*No such file"):
        entries[1].read()


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


def test_a_damaged_member_is_named_and_no_other_one(tmp_path):
    path = write_zip(tmp_path / "things.zip", FILES)
    contents = bytearray(path.read_bytes())
    contents[contents.index(bytes(range(256))) + 5] ^= 1
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"things.zip is truncated or damaged, at things/c\.bin \(the archive is dam"):
        archives.members(path)
    entries = {entry.name: entry for entry in archives.entries(path)}
    assert entries["things/a.txt"].read() == b"one" and str(entries["things/a.txt"]) == f"{path}: things/a.txt"


def test_an_encrypted_archive_is_named(tmp_path):
    path = write_zip(tmp_path / "things.zip", {"a.txt": b"one"})
    contents = bytearray(path.read_bytes())
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the bit that says so, in both headers
        contents[contents.index(start) + flags] |= 1
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged, at things/a\.txt .*encrypted"):
        archives.members(path)


@pytest.mark.parametrize("member", ["../a.wav", "/etc/a.wav", "x/../../a.wav", "x\\..\\a.wav"])
def test_members_that_lead_out_of_the_archive_are_refused(tmp_path, member):
    path = write_zip(tmp_path / "a.zip", {"fine.wav": b"", member: b""}, folder="")
    with pytest.raises(ValueError, match="leads out of the archive"):
        archives.entries(path)


def test_a_member_that_unpacks_to_more_than_it_announces_takes_no_memory(tmp_path):
    path = tmp_path / "things.zip"
    path.write_bytes(mutations.bomb("a.txt", 1000))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged, at a\.txt \(the archive is damaged"):
        archives.members(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24  # of 2 GiB


def test_files_above_the_limit_are_not_read(tmp_path, monkeypatch):
    packed = write_zip(tmp_path / "things.zip", {"a.bin": bytes(600), "b.bin": bytes(600)})
    folder = write_folder(tmp_path / "things", {"a.bin": bytes(600), "b.bin": bytes(600)})
    tar = write_tar(tmp_path / "things.tar", {"a.bin": bytes(600)})
    monkeypatch.setattr(archives, "LARGEST", 1000)
    assert sum(map(len, read(packed).values())) == 1200  # one by one
    for path in (packed, folder):
        with pytest.raises(ValueError, match=f"{path} unpacks to 1,200 bytes, at most 1,000 are read"):
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


def test_a_member_whose_place_lies_before_the_archive_is_damage(tmp_path):
    path = write_zip(tmp_path / "things.zip", FILES)
    contents = bytearray(path.read_bytes())
    place = contents.rindex(b"PK\x05\x06") + 16
    contents[place : place + 4] = (2**32 - 2).to_bytes(4, "little")
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged.*; fetch it again"):
        archives.members(path)


def test_an_archive_that_may_not_be_opened_is_no_damage(tmp_path):
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
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged, at a\.txt \(the archive is damaged"):
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
