"""What SECURITY.md promises: files from elsewhere run no code, leave no folder and fill no disk."""

import ast
import contextlib
import gzip
import hashlib
import io
import pickle
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from repro.audiovisual import data as audiovisual_data
from repro.data import manifest
from repro.image import DATASETS, archives, data, readers
from repro.image.files import read_rgb
from repro.run.fit import load_checkpoint
from tests.campaigns import mutations

PACKAGE = manifest.PACKAGE


class Harmful:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (f"{self.path}", "w")


def calls():
    """(file, dotted name, keywords as source) of every call in the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                keywords = {each.arg: ast.unparse(each.value) for each in node.keywords}
                yield path.relative_to(PACKAGE).as_posix(), ast.unparse(node.func), keywords


def test_the_calls_that_could_run_foreign_code():
    found = list(calls())
    assert len(found) > 1000
    loads = [keywords for _, name, keywords in found if name == "torch.load"]
    assert loads and all(keywords.get("weights_only") == "True" for keywords in loads)
    assert all(keywords.get("allow_pickle", "False") == "False" for _, name, keywords in found if name == "np.load")
    assert {name for _, name, _ in found if name.startswith("yaml.")} == {"yaml.safe_load"}
    assert not [path for path, name, _ in found if name in ("pickle.load", "pickle.loads")]
    forbidden = ("eval", "exec", "os.system", "os.popen", "shutil.unpack_archive", "torch.hub.load")
    assert [each for each in found if each[1] in forbidden or each[2].get("shell", "False") != "False"] == []
    extracted = [keywords.get("filter") for _, name, keywords in found if name.endswith((".extractall", ".extract"))]
    assert extracted == ["Room().checked"]


def test_the_network_is_used_in_one_place():
    libraries = {"requests", "pooch", "urllib.request", "http.client", "socket", "ftplib", "httpx", "aiohttp"}
    users = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in libraries.intersection(names):
                users.setdefault(name, set()).add(path.relative_to(PACKAGE).as_posix())
    fetching = {library: {"data/download.py"} for library in ("requests", "pooch")}
    assert users == fetching | {"socket": {"run/store.py"}}  # a host's name


@pytest.mark.parametrize("name", manifest.names())
def test_what_is_fetched_is_pinned(name):
    for archive in manifest.load_manifest(name).files:
        if archive.url:
            assert archive.url.startswith("https://") and len(archive.md5) == 32
            assert archive.size or (archive.bytes and archive.digest)


def test_the_harm_that_the_tests_below_look_for(tmp_path):
    pickle.loads(pickle.dumps(Harmful(tmp_path / "made"))).close()
    assert (tmp_path / "made").exists()


def test_a_checkpoint_runs_no_code(tmp_path):
    archive = io.BytesIO()
    torch.save({"step": 1, "learner": Harmful(tmp_path / "made")}, archive)
    content = archive.getvalue()
    (tmp_path / "checkpoint.pt").write_bytes(content + hashlib.sha256(content).digest())
    assert load_checkpoint(tmp_path) is None  # set aside
    assert (tmp_path / "checkpoint.damaged.pt").exists() and not (tmp_path / "made").exists()


def test_prepared_clips_run_no_code(tmp_path, monkeypatch):
    class MadeAgain(Exception):
        pass

    def make(*_):
        raise MadeAgain

    original = torch.load

    def load(path, **options):
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(Harmful(tmp_path / "made"), path)
        return original(path, **options)

    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    monkeypatch.setattr(audiovisual_data.synthetic, "load", make)
    monkeypatch.setattr(torch, "load", load)
    with pytest.raises(MadeAgain):
        audiovisual_data.load("synthetic")
    assert not (tmp_path / "made").exists()


def test_arrays_run_no_code(tmp_path):
    path = tmp_path / "copy.npz"
    np.savez(path, x_train=np.array([Harmful(tmp_path / "made")], dtype=object), y_train=0, x_test=0, y_test=0)
    with pytest.raises(ValueError, match=r"copy\.npz is not an \.npz of images and labels: Object arrays"):
        readers.numpy_file(path, DATASETS["cifar10"])
    assert not (tmp_path / "made").exists()


def test_pickles_that_are_not_the_official_ones_are_not_opened(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name in ("data_batch_1", "test_batch", "batches.meta"):
        (folder / name).write_bytes(pickle.dumps(Harmful(tmp_path / "made")))
    with pytest.raises(ValueError):
        readers.cifar10(folder, DATASETS["cifar10"])
    assert not (tmp_path / "made").exists()


def tar(path, name, *, data=b"", link=None):
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        if link:
            member.type, member.linkname = tarfile.SYMTYPE, link
        archive.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize("member", [
    {"name": "../outside", "data": b"x"}, {"name": "cifar-10-batches-py/link", "link": "/etc/passwd"},
    {"name": "link", "link": "../../outside"},
])
def test_no_member_of_an_archive_leaves_its_folder(tmp_path, monkeypatch, member):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tar(tmp_path / "cifar-10-python.tar.gz", **member)
    with pytest.raises(ValueError, match=r"cifar-10-python\.tar\.gz is truncated or damaged"):
        readers.cifar10(path, DATASETS["cifar10"])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("packed", ["tar", "zip", "extracted"])
def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch, packed):
    monkeypatch.setattr(archives, "LARGEST", 1000)
    path, read = tmp_path / "archive.tar.gz", lambda path: archives.contents(path, bool)
    if packed == "zip":
        path = tmp_path / "archive.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("train/a/b.png", bytes(1001))
    else:
        tar(path, "train/a/b.png", data=bytes(1001))
    if packed == "extracted":
        read = lambda path: readers.cifar10(path, DATASETS["cifar10"])  # noqa: E731
    with pytest.raises(ValueError, match="it unpacks to more than 1,000 bytes"):
        list(read(path))


FIRST = tarfile.TarInfo("notes.txt").tobuf()


def tar_bomb(kind, first=FIRST):
    """A packed tar archive whose last member, a file or the particulars of one, has 2 GiB and says so."""
    member = tarfile.TarInfo("train/cat/0.png")
    member.size, member.type = mutations.HUGE, kind
    return gzip.compress(first + member.tobuf()) + gzip.compress(bytes(2**24)) * (mutations.HUGE // 2**24)


def sparse_bomb():
    """A packed tar archive whose last member consists, as it says, of 200 million pieces."""
    member = tarfile.TarInfo("train/cat/0.png")
    member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "train/cat/0.png"}
    return gzip.compress(FIRST + member.tobuf(tarfile.PAX_FORMAT) + b"400000000\n") + gzip.compress(b"1\n" * 2**23) * 50


@contextlib.contextmanager
def little_memory(most=2**24):
    """No more bytes than this are held at any time; no picture or array of 2 GiB is read meanwhile."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most


BOMBS = {
    "zip": lambda: mutations.bomb("train/cat/0.png", mutations.HUGE),
    "tar": lambda: tar_bomb(tarfile.REGTYPE),
    "name": lambda: tar_bomb(tarfile.GNUTYPE_LONGNAME),
    "particulars": lambda: tar_bomb(tarfile.XHDTYPE),
    "sparse": sparse_bomb,
}


@pytest.mark.parametrize(("kind", "name"), [*((kind, "cifar10") for kind in BOMBS), ("zip", "tiny_imagenet")])
def test_a_file_that_says_it_is_huge_is_refused_unread(folders, kind, name):
    path = folders / "copy"
    path.write_bytes(BOMBS[kind]())
    assert path.stat().st_size < 2**22
    told = r"copy: train/cat/0\.png has 2,147,483,648 bytes, at most 4,194,304 are read"
    if kind not in ("zip", "tar"):
        told = r"copy is truncated or damaged \(a member has a name, or the like, of more than 65,536 bytes\)"
    with little_memory(), pytest.raises(ValueError, match=told):
        data.take_in(name, path)


@pytest.mark.parametrize("kind", ["name", "particulars", "sparse"])
def test_an_archive_of_a_distribution_takes_no_more_memory_either(tmp_path, kind):
    path = tmp_path / "cifar-10-python.tar.gz"
    path.write_bytes(BOMBS[kind]())
    told = r"cifar-10-python\.tar\.gz is truncated or damaged \(a member has a name, or the like, of more than"
    with little_memory(), pytest.raises(ValueError, match=told):
        readers.cifar10(path, DATASETS["cifar10"])


def test_what_begins_with_a_huge_name_is_no_archive(tmp_path):
    path = tmp_path / "copy"
    path.write_bytes(tar_bomb(tarfile.GNUTYPE_LONGNAME, first=b""))
    with little_memory():
        assert not archives.recognised(path)


def test_a_huge_file_in_a_folder_is_refused_unread(folders):
    path = folders / "copy" / "train" / "cat" / "0.png"
    path.parent.mkdir(parents=True)
    with open(path, "wb") as file:
        file.truncate(mutations.HUGE)  # takes no place
    told = r"copy: train/cat/0\.png has 2,147,483,648 bytes, at most 4,194,304 are read"
    with little_memory(), pytest.raises(ValueError, match=told):
        data.take_in("cifar10", folders / "copy")


def test_huge_files_that_are_no_pictures_are_passed_over(folders):
    picture = io.BytesIO()
    Image.new("RGB", (32, 32)).save(picture, "png")
    path = folders / "copy.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, size in (("train/cat/0.png", None), ("train/cat/notes.txt", 2**26), ("test/cat/0.png", None)):
            member = tarfile.TarInfo(name)
            member.size = size or len(picture.getvalue())
            archive.addfile(member, io.BytesIO(bytes(size) if size else picture.getvalue()))
    with little_memory():
        assert len(data.take_in("cifar10", path).images) == 2


def test_the_members_of_a_tar_archive_are_not_kept(tmp_path):
    path = tmp_path / "many.tar"
    path.write_bytes(tarfile.TarInfo("train/x.txt").tobuf() * 5_000)
    with little_memory(2**20):
        assert sum(1 for _ in archives.contents(path, bool)) == 5_000


@pytest.mark.parametrize(("member", "read", "message"), [
    ("x_train.npy", lambda path: data.take_in("cifar10", path),
     r"x_train, y_train, x_test, y_test unpack to 2,147,483,648 bytes, at most 184,865,536 are read"),
    ("class_names.npy", readers.class_names, r"class_names unpack to 2,147,483,648 bytes, at most 1,048,576 are read"),
])
def test_arrays_that_say_they_are_huge_are_refused_unread(folders, member, read, message):
    path = folders / "copy.npz"
    path.write_bytes(mutations.bomb(member, mutations.HUGE))
    with little_memory(), pytest.raises(ValueError, match=message):
        read(path)


def test_names_without_a_letter_are_counted_too(tmp_path):
    described = b"{'descr': '<U0', 'fortran_order': False, 'shape': (%d,)}\n" % 2**40
    contents = b"\x93NUMPY\x01\x00" + len(described).to_bytes(2, "little") + described
    path = tmp_path / "copy.npz"
    path.write_bytes(mutations.zipped([("class_names.npy", contents)]))
    with little_memory(), pytest.raises(ValueError, match="class_names has 1,099,511,627,776 names, at most 1,000"):
        readers.class_names(path)


@pytest.mark.parametrize("name", ["cifar10", "tiny_imagenet"])
def test_a_picture_of_another_size_is_refused_before_it_is_decoded(folders, name):
    header = struct.pack(">IIBBBBB", 9_000, 9_000, 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    path = folders / "copy.zip"
    path.write_bytes(mutations.zipped([("train/cat/0.png", b"\x89PNG\r\n\x1a\n" + chunks)]))
    told = r"copy\.zip: train/cat/0\.png has 9000 x 9000 pixels, expected \d+ x \d+; take it in as the data set"
    with pytest.raises(ValueError, match=told):
        data.take_in(name, path)


def chunk(kind, data):
    """A part of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_a_picture_of_absurd_size_is_refused(tmp_path):
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")
    with pytest.raises(ValueError, match=r"x\.png cannot be read as a picture .*decompression bomb"):
        read_rgb(io.BytesIO(b"\x89PNG\r\n\x1a\n" + chunks), "x.png")


@pytest.mark.parametrize(("pixels", "warned"), [(9_000 * 9_000, False), (10_000 * 10_000, True)])
def test_pictures_are_refused_from_the_size_on_of_which_pillow_warns(tmp_path, pixels, warned):
    """Also where warnings are no errors."""
    side = int(pixels**0.5)
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    path = tmp_path / "x.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) +
                     chunk(b"IEND", b""))
    code = f"from repro.image.files import read_rgb; from pathlib import Path; read_rgb(Path({str(path)!r}), 'x.png')"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    error = process.stderr.splitlines()[-1]
    assert error.startswith("ValueError: x.png cannot be read as a picture")
    assert ("decompression bomb" in error) == warned


@pytest.mark.parametrize("kind", ["gif", "bmp", "ppm", "tiff", "eps"])
def test_what_is_no_jpeg_or_png_file_reaches_no_other_decoder(tmp_path, kind):
    picture = io.BytesIO()
    Image.new("RGB", (8, 8)).save(picture, kind)
    with pytest.raises(ValueError, match=r"x\.png cannot be read as a picture \(cannot identify image file"):
        read_rgb(io.BytesIO(picture.getvalue()), "x.png")


@pytest.mark.parametrize("shorter", [0, 1], ids=["whole", "without the last byte of zlib's own checksum"])
def test_a_flipped_bit_in_a_png_file_is_noticed(shorter):
    picture = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    Image.fromarray(noise).save(picture, "png")
    whole = picture.getvalue()
    start = whole.index(b"IDAT") + 4
    end = start + int.from_bytes(whole[start - 8 : start - 4], "big")
    np.testing.assert_array_equal(np.asarray(read_rgb(io.BytesIO(whole), "x.png")), noise)
    for place in range(start, end):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        damaged[start - 5] -= shorter  # the last byte of the part's length
        with pytest.raises(ValueError, match=r"x\.png cannot be read as a picture"):
            read_rgb(io.BytesIO(damaged), "x.png")
