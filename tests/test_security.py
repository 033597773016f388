"""What SECURITY.md promises: files from elsewhere run no code, leave no folder and fill no disk."""

import ast
import hashlib
import importlib.util
import io
import pickle
import struct
import warnings
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from repro.data import manifest
from repro.image import DATASETS, readers
from repro.image.readers import read_rgb
from repro.run.fit import load_checkpoint

PACKAGE = manifest.PACKAGE


class Harmful:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (f"{self.path}", "w")


def test_the_network_is_used_in_one_place():
    libraries = {"requests", "pooch", "urllib.request", "http.client", "socket", "ftplib", "httpx", "aiohttp"}
    users = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in libraries.intersection(names):
                users.setdefault(name, set()).add(path.relative_to(PACKAGE).as_posix())
    assert users == {"pooch": {"data/files.py"}, "socket": {"run/store.py"}}  # a host's name


def test_a_checkpoint_runs_no_code(tmp_path):
    archive = io.BytesIO()
    torch.save({"step": 1, "learner": Harmful(tmp_path / "made")}, archive)
    content = archive.getvalue()
    (tmp_path / "checkpoint.pt").write_bytes(content + hashlib.sha256(content).digest())
    assert load_checkpoint(tmp_path) is None  # set aside
    assert (tmp_path / "checkpoint.damaged.pt").exists() and not (tmp_path / "made").exists()


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
        readers.READERS["cifar10"](folder, DATASETS["cifar10"])
    assert not (tmp_path / "made").exists()


def chunk(kind, data):
    """A part of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@pytest.mark.parametrize(("side", "bomb"), [(9_000, False), (10_000, True), (60_000, True)])
def test_pictures_are_refused_from_the_size_on_of_which_pillow_warns(tmp_path, side, bomb):
    """Also where warnings are no errors, as they are here."""
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
    with warnings.catch_warnings(), pytest.raises(ValueError, match=r"x\.png cannot be read as a picture") as refusal:
        warnings.resetwarnings()
        spec = importlib.util.find_spec("repro.image.readers")  # which says at its import what is an error to it
        spec.loader.exec_module(fresh := importlib.util.module_from_spec(spec))
        fresh.read_rgb(tmp_path / "x.png")
    assert ("decompression bomb" in str(refusal.value)) == bomb


@pytest.mark.parametrize("kind", ["gif", "bmp", "ppm", "tiff", "eps"])
def test_what_is_no_jpeg_or_png_file_reaches_no_other_decoder(tmp_path, kind):
    Image.new("RGB", (8, 8)).save(tmp_path / "x.png", kind)
    with pytest.raises(ValueError, match=r"x\.png cannot be read as a picture \(it is no JPEG or PNG\)"):
        read_rgb(tmp_path / "x.png")
