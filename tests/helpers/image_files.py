"""Made-up pictures as files, and data sets of a few of them."""

import dataclasses
import io

import numpy as np
import torch
from packed import write_zip
from PIL import Image

from repro.image import DATASETS

RNG = np.random.default_rng(0)


def pixels(count, size=32):
    return RNG.integers(0, 256, (count, size, size, 3), dtype=np.uint8)


def png(image, kind="PNG", **options):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, kind, **options)
    return stream.getvalue()


def declared(monkeypatch, name, *, images=None, **expected):
    """Let the manifest of a data set have other counts, and other values of `images`, until `monkeypatch` is undone."""
    manifest = DATASETS[name]
    (protocol, split), = manifest.splits.items()
    splits = {protocol: dataclasses.replace(split, expect=expected or split.expect)}
    images = dataclasses.replace(manifest.images, **(images or {}))
    monkeypatch.setitem(DATASETS, name, dataclasses.replace(manifest, splits=splits, images=images))


def same_as(found, images, labels):
    assert found.images.dtype == torch.uint8 and found.labels.dtype == torch.int64
    np.testing.assert_array_equal(found.images.permute(0, 2, 3, 1).numpy(), images)
    assert found.labels.tolist() == list(labels)


def zipped(path, files):
    return write_zip(path, files, folder="")
