"""The files of data sets: unpacked once and safely, what is said of those that are here or not, and downloads."""

import functools
import hashlib
import http.server
import os
import shutil
import stat
import struct
import tarfile
import threading
import tracemalloc
import warnings
import zipfile
import zlib
from pathlib import Path
from random import Random

import pytest
import yaml
from disks import read_only
from packed import FILES, write_folder, write_tar, write_zip

from repro.data import disk, files, manifest
from repro.data.files import download
from repro.data.manifest import Archive

pytestmark = pytest.mark.usefixtures("runs_root")
CENTRAL = b"PK\x01\x02"  # begins the second header of a member of a zip


def held(path):
    """What the folder that an archive is unpacked to holds, by name."""
    place = files.folder(path)
    return {file.relative_to(place).as_posix(): file.read_bytes() for file in files.listed(place)}


def copies(runs_root):
    return sorted(path.name for path in (runs_root / "prepared" / "unpacked").glob("*") if path.is_dir())


@pytest.mark.parametrize(("name", "write", "outer"), [
    ("things", write_folder, ""), ("things", write_folder, "things/"),  # as some unpack an archive
    *(("things.zip", functools.partial(write_zip, folder=""), outer) for outer in ("", "things/")),
    *(("things.tar", functools.partial(write_tar, folder="", mode=mode), outer)
      for mode in ("w", "w:gz", "w:xz", "w:bz2") for outer in ("", "./things/")),
])
def test_every_packing_has_the_same_members_without_what_packers_add(tmp_path, name, write, outer):
    added = FILES | {"__MACOSX/a.txt": b"?", ".DS_Store.txt": b"?", "b/.hidden.txt": b"?"}
    path = write(tmp_path / name, {f"{outer}{file}": contents for file, contents in added.items()})
    assert files.members(path) == sorted(FILES.items())


def test_digest_sees_names_contents_and_borders():
    digests = {files.content_digest(members) for members in (
        [("a", b"xy"), ("b", b"z")], [("a", b"x"), ("b", b"yz")], [("a", b"xy"), ("c", b"z")], [("a", b"xy")],
    )}
    assert len(digests) == 4


def test_links_are_followed_and_what_is_no_file_is_not_opened(tmp_path):
    write_folder(tmp_path / "elsewhere", {"a.wav": b"one"})
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "set" / "nowhere.wav").symlink_to(tmp_path / "not there")
    (tmp_path / "set" / "zero.wav").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "set" / "pipe.wav")
    linked, *others = files.listed(tmp_path / "set")
    assert linked == tmp_path / "set" / "linked" / "a.wav" and disk.read_file(linked) == b"one"
    assert [path.name for path in others] == ["nowhere.wav", "pipe.wav", "zero.wav"]
    for path in others:
        with pytest.raises(ValueError, match="is no regular file"):
            disk.read_file(path)
        with pytest.raises((ValueError, FileNotFoundError), match=f"{path}"):
            files.folder(path)  # as if it were an archive
    with pytest.raises(ValueError, match=r"nowhere\.wav cannot be read \(is no regular file"):
        files.members(tmp_path / "set")


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    """A zip of (name, contents), whatever the names."""
    def write(path):
        with warnings.catch_warnings(), zipfile.ZipFile(path, "w", method) as archive:
            warnings.simplefilter("ignore")  # of names that are there twice
            for name, contents in members:
                info = zipfile.ZipInfo()
                info.filename, info.compress_type = name, method  # given to ZipInfo, the name would be tidied up
                archive.writestr(info, contents)

    return write


def bomb(announced):
    """A zip whose only member unpacks to 2 GiB, which is what it announces, or not."""
    def write(path):
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = packer.compress(bytes(2**24)) + packer.flush(zlib.Z_FULL_FLUSH)  # which may be repeated
        zipped(("a.txt", block * 128 + packer.flush()), method=zipfile.ZIP_STORED)(path)
        contents = bytearray(path.read_bytes())
        for start, method, size in ((contents.index(b"PK\x03\x04"), 8, 22), (contents.rindex(CENTRAL), 10, 24)):
            struct.pack_into("<H", contents, start + method, zipfile.ZIP_DEFLATED)
            struct.pack_into("<I", contents, start + size, announced)
        path.write_bytes(contents)

    return write


def linked(path):
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("folder")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16  # as `zip -ry` marks them
        archive.writestr(link, "elsewhere")


def tarred(*members):
    """A tar of (name, kind, bytes that it has by its header, which is all there is)."""
    def write(path):
        with tarfile.open(path, "w") as archive:
            for name, kind, size in members:
                member = tarfile.TarInfo(name)
                member.type, member.linkname, member.size = kind, "a.txt", size
                archive.addfile(member)

    return write


def damaged(change, write=write_zip):
    """An archive of `FILES` whose bytes are changed."""
    def written(path):
        contents = bytearray(write(path).read_bytes())
        cut = change(contents)
        path.write_bytes(contents if cut is None else cut)

    return written


plain_tar = functools.partial(write_tar, mode="w")


def flip(contents):
    contents[contents.index(bytes(range(256))) + 5] ^= 1


def encrypt(contents):
    for start, flags in ((b"PK\x03\x04", 6), (CENTRAL, 8)):  # the bit that says so, in both headers
        contents[contents.index(start) + flags] |= 1


def without(fields):
    """Of the first member of a zip, bytes that stand for nothing: checksum, packed and unpacked size."""
    def change(contents):
        start = contents.index(CENTRAL)
        for offset in fields:
            contents[start + offset : start + offset + 4] = bytes(4)

    return change


A, LINK = ("a.txt", tarfile.REGTYPE, 0), r"is a link or a device; pack the files themselves"
DAMAGED = "is no archive that can be unpacked .*; fetch it again"
HOSTILE = [  # what writes an archive, and what is said of it
    *((tarred(A, (name, kind, 0)), f"{name} {LINK}") for name in ("b.txt", "folder")
      for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)),
    (linked, f"folder {LINK}"),
    *((write, "has two files of one name") for again in ("a.txt", "./a.txt")
      for write in (zipped(("a.txt", b"1"), (again, b"2")), tarred(A, (again, *A[1:])))),
    *((write, "leads out of the archive") for name in ("../a.wav", "/etc/a.wav", "x/../../a.wav", "x\\..\\a.wav")
      for write in (zipped(("fine.wav", b""), (name, b"")), tarred(A, (name, *A[1:])))),
    (zipped(("a.txt", b"one"), ("", b"two")), "its member '' leads out of the archive"),
    *((damaged(change), f"{DAMAGED}|one of fewer bytes than it says; fetch it again")
      for change in (flip, encrypt, *map(without, ((24,), (20,), (16, 20))))),
    *((damaged(lambda contents, kept=kept: contents[:kept]), DAMAGED) for kept in (0, 10, 500, 5000)),
    *((damaged(lambda contents, kept=kept: contents[:kept], write_tar), DAMAGED) for kept in (0, 25, 250)),
    *((damaged(lambda contents, kept=kept: contents[:kept], plain_tar), DAMAGED)
      for kept in (512, 1024, 1200, 11776)),  # between members, inside of one, and where only the end is missing
    (damaged(lambda contents: contents[:1024] + b"?" + contents[1025:], plain_tar), DAMAGED),
    *((write, "unpacks to more bytes than an archive of its size") for write in (
        tarred((*A[:2], 2**40)), bomb(2**31))),
]


@pytest.mark.parametrize(("write", "message"), HOSTILE)
def test_what_is_damaged_or_could_be_read_in_two_ways_is_refused_by_name_and_nothing_is_unpacked(
        tmp_path, runs_root, write, message):
    path = tmp_path / "things.archive"
    write(path)
    with pytest.raises(ValueError, match=rf"(?s){path}.*{message}"):
        files.folder(path)
    assert copies(runs_root) == [] and not (tmp_path / "a.wav").exists()
    assert not (runs_root / "prepared" / "a.wav").exists()


def test_a_compressed_stream_is_read_to_its_end(tmp_path):
    """Its checksum stands there; `tarfile` stops at the end of the archive, or at a damaged header."""
    whole = write_tar(tmp_path / "whole.tar.gz").read_bytes()
    for seed in range(100):
        draw, path = Random(seed), tmp_path / f"{seed}.tar.gz"
        changed = bytearray(whole)
        changed[draw.randrange(12, len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        try:
            found = held(path)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            assert found == {f"things/{name}": contents for name, contents in FILES.items()}


def test_a_member_that_unpacks_to_gigabytes_takes_neither_memory_nor_room(tmp_path):
    path = tmp_path / "things.zip"
    bomb(1000)(path)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"things\.zip is no archive that can be unpacked \(Bad CRC-32"):
        files.members(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24  # of 2 GiB


def test_files_above_the_limit_are_not_read(tmp_path, monkeypatch):
    large = {"a.bin": bytes(600), "b.bin": bytes(600)}
    packed, folder = write_zip(tmp_path / "things.zip", large), write_folder(tmp_path / "things", large)
    monkeypatch.setattr(files, "LARGEST", 1000)
    for path in (packed, folder):
        with pytest.raises(ValueError, match=f"{path} has 1,200 bytes, at most 1,000 are read"):
            files.members(path)
    os.truncate(folder / "a.bin", disk.LARGEST + 1)
    with pytest.raises(ValueError, match="has 268,435,457 bytes, at most 268,435,456 are read"):
        disk.read_file(folder / "a.bin")


@pytest.mark.parametrize("write", [write_zip, write_tar])
@pytest.mark.parametrize("wrong", [{"members": 2}, {"bytes": 10247}])
def test_what_is_declared_is_compared_before_anything_is_unpacked(tmp_path, runs_root, write, wrong):
    path = write(tmp_path / "things.archive")
    with pytest.raises(ValueError, match=rf"{path} has (3 of 2 files|10,246 of 10,247 bytes); fetch it again"):
        files.folder(path, Archive(name="things.archive", **wrong))
    assert copies(runs_root) == []


def test_a_disk_that_is_too_full_says_what_is_needed(tmp_path, runs_root, monkeypatch):
    path = write_zip(tmp_path / "things.zip")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 4, 5))
    with pytest.raises(OSError, match=r"3 files, 10,246 bytes, of which 5 are free \(make room there"):
        files.folder(path)
    assert copies(runs_root) == []


# ---------------------------------------------------------------------------------------------- the copies


def test_an_archive_is_unpacked_once_and_again_when_it_is_exchanged(tmp_path, runs_root, monkeypatch):
    one, other = (write_zip(tmp_path / name / "x.zip", {"a.wav": name.encode()}) for name in ("one", "two"))
    os.utime(one, ns=(1, 1))
    os.utime(other, ns=(1, 1))  # of the same name, size and time
    assert [*held(one).values(), *held(other).values()] == [b"one", b"two"]
    with monkeypatch.context() as patched:
        patched.setattr(zipfile, "ZipFile", None)
        assert held(one) == {"things/a.wav": b"one"}
    write_zip(one, {"a.wav": b"new"})
    os.utime(one, ns=(1, 1))
    assert held(one) == {"things/a.wav": b"new"} and len(copies(runs_root)) == 2


@pytest.mark.parametrize("damage", [os.remove, lambda path: path.write_bytes(b"")])
def test_a_copy_that_lacks_something_is_unpacked_again(tmp_path, damage):
    path = write_zip(tmp_path / "things.zip")
    damage(files.folder(path) / "things" / "a.txt")
    assert files.members(path) == sorted(FILES.items())


def test_a_copy_that_was_not_unpacked_to_the_end_is_no_copy(tmp_path, runs_root, monkeypatch):
    path = write_zip(tmp_path / "things.zip")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(zipfile.ZipFile, "extract", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        files.folder(path)
    assert copies(runs_root) and files.members(path) == sorted(FILES.items())


def test_a_copy_is_read_where_nothing_can_be_written(tmp_path, runs_root):
    path = write_zip(tmp_path / "things.zip")
    files.folder(path)
    with read_only(runs_root / "prepared" / "unpacked"):
        assert files.members(path) == sorted(FILES.items())


def test_a_copy_that_is_forgotten_is_gone(tmp_path, runs_root):
    kept, gone = (files.folder(write_zip(tmp_path / name)) for name in ("kept.zip", "gone.zip"))
    files.forget(tmp_path / "gone.zip")
    assert copies(runs_root) == [kept.name] and not gone.exists()


# ---------------------------------------------------------------------------------------------- what is here


ZIP, FOLDER, TAR, COUNTS = "things.zip", "things", "things.tar.gz", {"members": 3, "bytes": 10246}
NOTHING, FIVE_BYTES = str, functools.partial(Path.write_bytes, data=b"12345")
A_PART = "has 1 of 3 files, 3 of 10,246 bytes; move it away; ask for things.zip at https://example.org"


@pytest.mark.parametrize(("name", "write", "declared", "state", "step"), [  # what lies there and what is said
    (ZIP, NOTHING, COUNTS, "missing", "ask for things.zip at https://example.org"),
    *((name, write, declared, "present", "") for name, write in ((ZIP, write_zip), (FOLDER, write_folder))
      for declared in (COUNTS, {"members": 3}, {})),
    *((name, functools.partial(write, files={"a.txt": b"one"}), COUNTS, "differs", A_PART)
      for name, write in ((ZIP, write_zip), (FOLDER, write_folder))),
    *((ZIP, damaged(lambda contents, kept=kept: contents[:kept]), declared, "differs", "things.zip is no archive")
      for kept in (0, 30, 5000) for declared in (COUNTS, {})),
    (ZIP, write_zip, {"size": 9}, "differs", " of 9 bytes; move"),
    (FOLDER, Path.mkdir, COUNTS, "differs", "has 0 of 3 files"),
    (FOLDER, Path.mkdir, {}, "differs", "is empty"),
    (TAR, FIVE_BYTES, {"size": 5}, "present", ""), (TAR, FIVE_BYTES, {}, "present", ""),
    (TAR, FIVE_BYTES, {"size": 9}, "differs", "has 5 of 9 bytes"),
    (TAR, FIVE_BYTES, {"size": 9, "access": "automatic"}, "differs", "run `repro data download things`"),
])
def test_what_is_here_is_told_by_names_and_sizes(tmp_path, monkeypatch, name, write, declared, state, step):
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.delenv("REPRO_DATA", raising=False)
    (tmp_path / "data_manifests").mkdir()
    (tmp_path / "data" / "box").mkdir(parents=True)
    write(tmp_path / "data" / "box" / name)
    archive = {"name": f"box/{TAR if name == TAR else ZIP}"} | declared
    values = {"name": "things", "title": "Things", "access": archive.pop("access", "form"), "licence": "-",
              "source": "https://example.org", "files": [archive], "splits": {}}
    (tmp_path / "data_manifests" / "things.yaml").write_text(yaml.safe_dump(values))
    row, = files.status()
    assert row["state"] == state and step in row["next_step"] and bool(step) == bool(row["next_step"])


# ---------------------------------------------------------------------------------------------- downloads

CONTENTS = b"an archive" * 100


@pytest.fixture
def server(tmp_path):
    """A server of the files in tmp_path/server; it speaks http, which no manifest may declare. Returns its address."""
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "things.tar.gz").write_bytes(CONTENTS)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Handler, directory=tmp_path / "server")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as started:
        threading.Thread(target=started.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{started.server_port}"
        started.shutdown()


@pytest.fixture
def declare(server, tmp_path, monkeypatch):
    """Declares the data set `fetched`, whose archive the server has; returns where it will lie."""
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))

    def declared(access="automatic", **changes):
        usual = {"url": f"{server}/things.tar.gz", "md5": hashlib.md5(CONTENTS).hexdigest(), "size": len(CONTENTS)}
        archive = manifest.Archive(name="fetched/things.tar.gz", **usual | changes)
        made = manifest.Manifest(name="fetched", title="t", access=access, source="s", licence="l", files=(archive,),
                                 splits={})
        monkeypatch.setattr(manifest, "load_manifest", lambda _: made)
        return tmp_path / "data" / "fetched" / "things.tar.gz"

    return declared


SHA256 = {"sha256": hashlib.sha256(CONTENTS).hexdigest(), "md5": "0" * 32}  # which takes the place of the MD5


@pytest.mark.parametrize("known", [{}, {"size": None}, SHA256])
def test_a_download_is_checked_and_made_once(declare, tmp_path, known):
    path = declare(**known)
    assert download("fetched") == [path] and path.read_bytes() == CONTENTS
    (tmp_path / "server" / "things.tar.gz").unlink()
    assert download("fetched") == [path]  # nothing is fetched again


@pytest.mark.parametrize(("sent", "declared", "error", "message"), [
    *((sent, {}, ValueError, r"things\.tar\.gz")
      for sent in (CONTENTS[:-1], CONTENTS + b"!", CONTENTS[:-1] + b"!")),
    (CONTENTS, {"sha256": "0" * 64}, ValueError, r"things\.tar\.gz"),  # the MD5 beside it is right
    (None, {}, OSError, "404"),
])
def test_what_is_not_the_declared_archive_leaves_nothing(declare, tmp_path, sent, declared, error, message):
    path, served = declare(**declared), tmp_path / "server" / "things.tar.gz"
    served.unlink() if sent is None else served.write_bytes(sent)
    with pytest.raises(error, match=message):
        download("fetched")
    assert list(path.parent.iterdir()) == []


FORM = {"access": "form", "url": None, "size": None}


@pytest.mark.parametrize(("there", "declared", "message"), [
    (CONTENTS[:300], {}, "has 300 of 1,000 bytes; move it away and give the command again"),
    *((part, FORM, r"cannot be fetched automatically; ask for things\.tar\.gz") for part in (b"", CONTENTS[:300])),
])
def test_what_lies_in_the_place_of_an_archive_is_neither_accepted_nor_lost(declare, there, declared, message):
    path = declare(**declared)
    path.parent.mkdir(parents=True)
    path.write_bytes(there)
    with pytest.raises(ValueError, match=message):
        download("fetched")
    assert path.read_bytes() == there
