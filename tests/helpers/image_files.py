"""Made-up pictures as files, and data sets of a few of them."""

import io

import numpy as np
import torch
from packed import write_zip
from PIL import Image

from repro import manifest

RNG = np.random.default_rng(0)


def pixels(count, size=32):
    return RNG.integers(0, 256, (count, size, size, 3), dtype=np.uint8)


def png(image):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()


def declared(monkeypatch, name, **expected):
    """The manifest of a data set with other counts."""
    original, load = manifest.load_manifest(name), manifest.load_manifest
    split, = original.splits.values()
    changed = manifest.Manifest(**{
        **{field: getattr(original, field) for field in ("name", "title", "access", "source", "licence", "files")},
        "splits": {"standard": manifest.Split(train=split.train, test=split.test, expect=expected)},
    })
    monkeypatch.setattr(manifest, "load_manifest", lambda asked: changed if asked == name else load(asked))


def same_as(found, images, labels):
    assert found.images.dtype == torch.uint8 and found.labels.dtype == torch.int64
    np.testing.assert_array_equal(found.images.permute(0, 2, 3, 1).numpy(), images)
    assert found.labels.tolist() == list(labels)


def zipped(path, files):
    return write_zip(path, files, folder="")
