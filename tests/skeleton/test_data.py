"""NW-UCLA from its files to sequences: a small distribution in its format, and the real one where it is; batches."""

import dataclasses
import json

import ntu_files
import numpy as np
import pytest
import torch
from made_up_skeletons import CPU
from packed import write_zip
from slow_skeletons import slow_scale, slow_thin_out, slow_view_invariant

from repro.data import manifest
from repro.data.files import content_digest
from repro.run import device
from repro.skeleton import data, pipelines, readers
from repro.skeleton.data import Sequences, data_of
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper
from repro.skeleton.study import measure


def body(length, seed=0):
    """(length, 20, 3) of a figure whose coordinates have six decimals."""
    return ntu_files.body(length, seed, joints=20).astype(np.float64).round(6)


def recording(name, frames):
    """(file name, JSON) in the official format."""
    label = readers.UCLA_ACTIONS.index(int(name[1:3])) + 1
    return f"{name}.json", json.dumps({"file_name": name, "skeletons": frames.tolist(), "label": label}).encode()


SMALL = dict(recording(name, body(length, length)) for name, length in (
    ("a01_s01_e00_v01", 1), ("a01_s01_e01_v01", 10), ("a02_s01_e00_v01", 11), ("a12_s02_e00_v02", 51),
    ("a08_s02_e00_v02", 99), ("a04_s10_e00_v03", 100), ("a11_s03_e01_v03", 6), ("a09_s03_e01_v03", 149),
))
COUNTS = {"expect": {"train": 5, "test": 3}, "kept": {"train": 3, "test": 2}}


@pytest.fixture
def distribution(folders, declare):
    """Writes the files as the official archive, declares them as data set `ucla`, and returns the data root."""
    def write(**counts):
        write_zip(folders / "data" / "nw_ucla" / "all_sqe.zip", SMALL, "all_sqe")
        archive = {"name": "nw_ucla/all_sqe.zip", "bytes": sum(map(len, SMALL.values())), "members": len(SMALL),
                   "digest": content_digest(sorted(SMALL.items()))}
        split = {"train": {"views": [1, 2]}, "test": {"views": [3]}} | COUNTS | counts
        declare("ucla", files=[archive], splits={"xview": split})
        return folders / "data"

    return write


def slow_interpolate(frames):
    moments, columns = np.linspace(0, len(frames) - 1, 50), frames.reshape(len(frames), -1).T
    return np.stack([np.interp(moments, np.arange(len(frames)), column) for column in columns], axis=1)


@pytest.mark.parametrize(("pipeline", "steps"), [
    ("default", (slow_view_invariant, slow_scale, slow_thin_out)), ("unscaled", (slow_view_invariant, slow_thin_out)),
    ("interpolate", (slow_view_invariant, slow_interpolate)), ("raw", (slow_thin_out,)),
])
def test_a_small_distribution_in_every_pipeline(distribution, pipeline, steps):
    loaded = data.load("ucla", distribution(), pipeline=pipeline)
    assert loaded.sequences.shape == (5, 50, 60) and loaded.sequences.dtype == torch.float32
    for row, length in enumerate((11, 100, 99, 149, 51)):
        frames = body(length, length)
        for step in steps:
            frames = step(frames)
        assert loaded.lengths[row] == len(frames)
        np.testing.assert_allclose(loaded.sequences[row, :len(frames)], frames.reshape(len(frames), 60), atol=1e-5)
        assert (loaded.sequences[row, len(frames):] == 0).all()
    assert loaded.labels.tolist() == [1, 3, 6, 7, 9] and [loaded.actions[label] for label in (6, 9)] == [
        "donning", "carry"]
    assert loaded.views.tolist() == [1, 3, 2, 3, 2] and loaded.subjects.tolist() == [1, 10, 2, 3, 2]
    assert loaded.test.tolist() == [False, True, False, True, False] and torch.equal(loaded.train, ~loaded.test)
    assert len(loaded.bones) == 19


@pytest.mark.parametrize(("name", "options", "message"), [
    ("ucla", {"subset": True}, "subset=True is not one of: False"),
    ("ucla", {"pipeline": "rw"}, "pipeline='rw' is not one of: default, interpolate, unscaled, raw"),
    ("ucla", {"protocol": "xsub"}, "protocol='xsub' is not one of: xview"),
    ("ukla", {}, "did you mean 'ucla'. dataset='ukla' is not one of: synthetic, "),
])
def test_unknown_options_and_names_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        data.load(name, **options)


@pytest.mark.parametrize(("counts", "message"), [
    ({"expect": {"train": 6, "test": 3}}, r"recordings: train 5, test 3; expected train 6,"),
    ({"kept": {"train": 4, "test": 2}}, r"longer than 10 frames: train 3, test 2; expected"),
])
def test_other_counts_than_declared_are_refused(distribution, counts, message):
    with pytest.raises(ValueError, match=message):
        data.load("ucla", distribution(**counts))


SOUND = np.ones((4, 3, 3))


@pytest.mark.parametrize(("recordings", "reader", "message"), [
    ([], "made_up", "the reader 'made_up' found no recording among 2 files of ucla"),
    ([SOUND[:, :2]], "made_up", r"ucla: recording 0: its shape is \(4, 2, 3\); give \(frames, 3, 3\)"),
    ([SOUND, SOUND[:0]], "made_up", r"ucla: recording 1: its shape is \(0, 3, 3\)"),
    ([SOUND, SOUND * np.inf], "made_up", "ucla: recording 1: a coordinate is not finite"),
    ([SOUND], "made-up", r"did you mean 'made_up'. data_manifests/ucla\.yaml: reader='made-up' is not one of: "),
])
def test_what_a_reader_may_not_give_is_named(recordings, reader, message, monkeypatch):
    def made_up(members, declared):
        yield from (readers.Recording(frames, 0) for frames in recordings)

    monkeypatch.setitem(readers.READERS, "made_up", made_up)
    declared = manifest.load_manifest("ucla")
    body = dataclasses.replace(declared.skeletons, joints=3, bones=(), axes=(0, 1, 2, 0), reader=reader)
    with pytest.raises(ValueError, match=message):
        readers.read([("a", b""), ("b", b"")], dataclasses.replace(declared, skeletons=body))


def test_recordings_that_cannot_be_transformed_are_refused():
    for joint, other, message in ((1, 0, "joints 0 and 1 coincide"), (12, 16, "do not lie across the spine")):
        frames = body(3)
        frames[0, joint] = frames[0, other]
        with pytest.raises(ValueError, match=message):
            pipelines.view_invariant(frames)
    with pytest.raises(ValueError, match="all joints agree in coordinate 1"):
        pipelines.scale(body(3) * [1, 0, 1])


def numbered(lengths, features=3):
    """Frames numbered through, none of them zero."""
    rows = sum(lengths)
    return torch.arange(1, rows * features + 1, dtype=torch.float32).reshape(rows, features), torch.tensor(lengths)


@pytest.mark.parametrize("index", [[0], [3, 3], [1, 0, 4], [4, 3, 2, 1, 0], [2, 4]])
def test_a_batch_equals_the_slow_one(index):
    frames, lengths = numbered([4, 1, 3, 7, 2])
    frames[-1] = float("nan")  # where padding would take it from the end
    found, found_lengths, cpu_lengths = Sequences(frames, lengths).batch(torch.tensor(index))
    parts = [frames.split(lengths.tolist())[i] for i in index]
    assert found.shape == (len(index), max(map(len, parts)), 3)
    assert found_lengths.tolist() == cpu_lengths.tolist() == [len(part) for part in parts]
    for row, part in zip(found, parts, strict=True):
        assert torch.equal(row[: len(part)].nan_to_num(9), part.nan_to_num(9))
        assert (row[len(part):] == 0).all()


REAL = manifest.load_manifest("ucla").files[0].place(manifest.data_root())
real = pytest.mark.skipif(REAL is None, reason="nw_ucla/all_sqe.zip is not below REPRO_DATA")


@real
def test_an_untrained_encoder_reaches_the_accuracy_printed_for_it(runs_root):
    recipe = paper("ucla", "random")
    with device.threads(recipe.threads):
        result = measure(Pretrainer(recipe, data_of(recipe), 0, CPU))
    assert (recipe.layers, recipe.units, result["select"]) == (1, 512, "last")
    assert result["linear"] == pytest.approx(52.01, abs=4)  # Table 2; one seed varies by about a point


@real
def test_real_recordings_of_which_some_are_repeated(runs_root):
    loaded = data.load("ucla")
    stored, = (runs_root / "prepared").glob("ucla-*.npz")
    with np.load(stored) as arrays:
        assert (arrays["views"] < 3).sum() == 1020 and (arrays["views"] == 3).sum() == 464
        lengths = arrays["lengths"][arrays["lengths"] > 10]
    assert lengths.min() == 11 and lengths.max() == 201 and (lengths > 50).mean() == pytest.approx(0.228, abs=5e-4)
    assert loaded.train.sum() == 1013 and loaded.test.sum() == 460 and loaded.digest.startswith("140e1d68448e")
    rows = {sequence.numpy().tobytes() for sequence in loaded.sequences[loaded.train]}
    repeated = torch.tensor([sequence.numpy().tobytes() in rows for sequence in loaded.sequences])
    assert torch.equal(loaded.in_both & loaded.test, repeated & loaded.test)
    two = (loaded.labels == 1) | (loaded.labels == 2)
    rows = {sequence.numpy().tobytes() for sequence in loaded.sequences[loaded.test]}
    originals = torch.tensor([sequence.numpy().tobytes() in rows for sequence in loaded.sequences]) & loaded.train
    assert torch.equal(loaded.in_both & loaded.train, originals)
    assert torch.equal(loaded.in_both, two & (loaded.views > 1)) and loaded.in_both.sum() == 2 * 93
