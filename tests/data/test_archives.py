"""Archives and folders give the same files, and what is damaged in them is named."""

import tracemalloc
import zipfile

import pytest
from packed import FILES, write_folder, write_zip

from repro.data import archives
from tests.campaigns import mutations


def test_zip_and_folder_have_the_same_members(tmp_path):
    packed = archives.read_members(write_zip(tmp_path / "things.zip", FILES))
    flat = archives.read_members(write_zip(tmp_path / "flat" / "things.zip", FILES, folder=""))
    unpacked = archives.read_members(write_folder(tmp_path / "things", FILES))
    assert packed == flat == unpacked == sorted(FILES.items())
    assert archives.content_digest(packed) == archives.content_digest(unpacked)


def test_digest_sees_names_contents_and_borders():
    digests = {archives.content_digest(members) for members in (
        [("a", b"xy"), ("b", b"z")], [("a", b"x"), ("b", b"yz")], [("a", b"xy"), ("c", b"z")], [("a", b"xy")],
    )}
    assert len(digests) == 4


def test_what_packers_add_is_passed_over(tmp_path):
    extra = {"__MACOSX/a.txt": b"?", ".DS_Store": b"?", "b/.hidden": b"?"}
    assert archives.read_members(write_zip(tmp_path / "things.zip", FILES | extra)) == sorted(FILES.items())


@pytest.mark.parametrize("kept", [0, 10, 500, 5000])
def test_truncated_zip_names_the_file(tmp_path, kept):
    path = write_zip(tmp_path / "things.zip", FILES)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged"):
        archives.read_members(path)


def test_damaged_member_is_named(tmp_path):
    path = write_zip(tmp_path / "things.zip", FILES)
    contents = bytearray(path.read_bytes())
    contents[contents.index(bytes(range(256))) + 5] ^= 1
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"things.zip is truncated or damaged, at c\.bin"):
        archives.read_members(path)


def test_an_encrypted_archive_is_named(tmp_path):
    path = write_zip(tmp_path / "things.zip", {"a.txt": b"one"})
    contents = bytearray(path.read_bytes())
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the bit that says so, in both headers
        contents[contents.index(start) + flags] |= 1
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged, at a\.txt .*encrypted"):
        archives.read_members(path)


def test_a_member_that_unpacks_to_more_than_it_announces_takes_no_memory(tmp_path):
    path = tmp_path / "things.zip"
    path.write_bytes(mutations.bomb("a.txt", 1000))
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("a.txt").file_size == 1000 < path.stat().st_size
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged, at a\.txt \(the archive is damaged"):
        archives.read_members(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24  # of 2 GiB


def test_a_member_packed_with_lzma_is_refused(tmp_path):
    path = tmp_path / "things.zip"
    path.write_bytes(mutations.zipped([("a.txt", b"one" * 99)], zipfile.ZIP_LZMA))
    with pytest.raises(ValueError, match=r"at a\.txt \(is packed with LZMA, which may take any amount of memory"):
        archives.read_members(path)


def test_a_member_without_a_name_is_damage(tmp_path):
    path = tmp_path / "things.zip"
    path.write_bytes(mutations.zipped([("a.txt", b"one"), ("", b"two")]))
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged \(a member has no name\)"):
        archives.open_zip(path)


def test_a_member_whose_place_lies_before_the_archive_is_damage(tmp_path):
    path = write_zip(tmp_path / "things.zip", FILES)
    contents = bytearray(path.read_bytes())
    place = contents.rindex(b"PK\x05\x06") + 16
    contents[place : place + 4] = (2**32 - 2).to_bytes(4, "little")
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged.*; fetch the archive again"):
        archives.read_members(path)


def test_an_archive_that_may_not_be_opened_is_no_damage(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.zip"):
        archives.open_zip(tmp_path / "none.zip")


@pytest.mark.parametrize("fields", [{24: 0}, {20: 0}, {16: 0, 20: 0}])
def test_a_member_that_lost_bytes_is_damage_even_if_none_is_left(tmp_path, fields):
    path = tmp_path / "things.zip"
    contents = bytearray(mutations.zipped([("a.txt", b"one " * 99)]))
    start = contents.index(mutations.CENTRAL)
    for offset, number in fields.items():  # checksum, packed and unpacked size
        contents[start + offset : start + offset + 4] = number.to_bytes(4, "little")
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"things\.zip is truncated or damaged, at a\.txt \(the archive is damaged"):
        archives.read_members(path)
