"""NW-UCLA from its files to sequences: a small distribution in its format, and the real one where it is; batches."""

import dataclasses
import json
import zipfile

import numpy as np
import pytest
import torch
import yaml
from made_up_skeletons import CPU, made_up
from slow_skeletons import slow_view_invariant

from repro.data import manifest
from repro.run import device
from repro.skeleton import data, pipelines, readers
from repro.skeleton.data import Sequences
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper
from repro.skeleton.study import data_of, measure


def body(length, seed=0):
    """(length, 20, 3) of a standing figure with random joints, hips across and spine up."""
    rng = np.random.default_rng(seed)
    frames = rng.normal(0, 0.3, (1, 20, 3)) + np.cumsum(rng.normal(0, 0.02, (length, 20, 3)), axis=0) + [0, 0, 2.5]
    frames[:, 1] = frames[:, 0] + [0.01, 0.07, -0.01]
    frames[:, 12], frames[:, 16] = frames[:, 0] + [-0.08, -0.05, 0.02], frames[:, 0] + [0.08, -0.06, -0.01]
    return frames.round(6)


def recording(name, frames):
    """(file name, JSON) in the official format."""
    label = readers.UCLA_ACTIONS.index(int(name[1:3])) + 1
    return f"{name}.json", json.dumps({"file_name": name, "skeletons": frames.tolist(), "label": label}).encode()


SMALL = dict(recording(name, body(length, length)) for name, length in (
    ("a01_s01_e00_v01", 1), ("a01_s01_e01_v01", 10), ("a02_s01_e00_v01", 11), ("a12_s02_e00_v02", 51),
    ("a08_s02_e00_v02", 99), ("a04_s10_e00_v03", 100), ("a11_s03_e01_v03", 6), ("a09_s03_e01_v03", 149),
))
OFFICIAL = yaml.safe_load((manifest.shipped("data_manifests") / "ucla.yaml").read_text())
COUNTS = {"expect": {"train": 5, "test": 3}, "kept": {"train": 3, "test": 2}}


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Writes files as the official archive or folder, declares them as data set `ucla`, and returns the data root."""
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    (tmp_path / "data_manifests").mkdir()

    def write(files=SMALL, unpacked=False, **counts):
        root = tmp_path / ("folder" if unpacked else "archive")
        (root / "nw_ucla" / "all_sqe").mkdir(parents=True)
        for name, contents in files.items():
            (root / "nw_ucla" / "all_sqe" / name).write_bytes(contents)
        if not unpacked:
            with zipfile.ZipFile(root / "nw_ucla" / "all_sqe.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for name, contents in files.items():
                    archive.writestr(f"all_sqe/{name}", contents)
        archive = {"name": "nw_ucla/all_sqe.zip", "bytes": sum(map(len, files.values())), "members": len(files),
                   "digest": manifest.content_digest(sorted(files.items()))}
        split = {"train": {"views": [1, 2]}, "test": {"views": [3]}} | COUNTS | counts
        values = OFFICIAL | {"source": "https://example.org", "files": [archive], "splits": {"xview": split}}
        (tmp_path / "data_manifests" / "ucla.yaml").write_text(yaml.safe_dump(values))
        return root

    return write


@pytest.mark.parametrize(("pipeline", "steps"), [
    ("default", (slow_view_invariant, pipelines.scale, pipelines.thin_out)),
    ("unscaled", (slow_view_invariant, pipelines.thin_out)),
    ("interpolate", (slow_view_invariant, pipelines.interpolate)),
    ("raw", (pipelines.thin_out,)),
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


@pytest.mark.parametrize(("name", "options", "error", "message"), [
    ("ucla", {"pipline": "raw"}, TypeError, "pipline"),
    ("ucla", {"subset": True}, ValueError, "subset=True is not one of: False"),
    ("ucla", {"pipeline": "rw"}, ValueError, "pipeline='rw' is not one of: default, interpolate, unscaled, raw"),
    ("ucla", {"protocol": "xsub"}, ValueError, "protocol='xsub' is not one of: xview"),
    ("ukla", {}, ValueError, "dataset='ukla' is not one of: synthetic, .*; did you mean 'ucla'"),
])
def test_unknown_options_and_names_are_refused(name, options, error, message):
    with pytest.raises(error, match=message):
        data.load(name, **options)


def test_files_that_are_not_the_official_ones_are_refused(distribution):
    root = distribution(unpacked=True)
    file = root / "nw_ucla" / "all_sqe" / "a01_s01_e01_v01.json"
    file.write_bytes(file.read_bytes().replace(b"0.1", b"0.2", 1))
    with pytest.raises(ValueError, match=r"all_sqe is not the distribution .* digest"):
        data.load("ucla", root)


@pytest.mark.parametrize(("counts", "message"), [
    ({"expect": {"train": 6, "test": 3}}, r"recordings: test 3, train 5; expected test 3,"),
    ({"kept": {"train": 4, "test": 2}}, r"longer than 10 frames: test 2, train 3; expected"),
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
    ([SOUND], "made-up", r"data_manifests/ucla\.yaml: reader='made-up' is not one of: .*; did you mean 'made_up'"),
])
def test_what_a_reader_may_not_give_is_named(recordings, reader, message, monkeypatch):
    def made_up(members, declared):
        yield from (readers.Recording(frames, 0) for frames in recordings)

    monkeypatch.setitem(readers.READERS, "made_up", made_up)
    declared = manifest.load_manifest("ucla")
    body = dataclasses.replace(declared.skeletons, joints=3, bones=(), axes=(0, 1, 2, 0), reader=reader)
    with pytest.raises(ValueError, match=message):
        readers.read([("a", b""), ("b", b"")], dataclasses.replace(declared, skeletons=body))


def test_sets_that_contradict_themselves_are_refused():
    made = made_up()
    with pytest.raises(ValueError, match="made-up: label 3 should be from 0 to 2"):
        dataclasses.replace(made, labels=made.labels + 1)
    with pytest.raises(ValueError, match="made-up: 3 samples are for train and for test, the first of them 5"):
        dataclasses.replace(made, train=torch.ones_like(made.train))


# ---------------------------------------------------------------------------------------------- pipelines


@pytest.mark.parametrize(("joint", "message"), [(1, "joints 0 and 1 coincide"), (12, "do not lie across the spine")])
def test_view_transform_without_a_frame_of_reference(joint, message):
    frames = body(3)
    frames[0, joint] = frames[0, {1: 0, 12: 16}[joint]]
    with pytest.raises(ValueError, match=message):
        pipelines.view_invariant(frames)


def test_scale_maps_each_axis_by_itself():
    frames = body(12) * [1, 10, 0.1]
    scaled = pipelines.scale(frames)
    for axis in range(3):
        values = frames[..., axis]
        expected = 2 * (values - values.min()) / (values.max() - values.min()) - 1
        np.testing.assert_allclose(scaled[..., axis], expected, atol=1e-12)
    with pytest.raises(ValueError, match="all joints agree in coordinate 1"):
        pipelines.scale(frames * [1, 0, 1])


@pytest.mark.parametrize(("length", "step", "count"), [
    (1, 1, 1), (49, 1, 49), (50, 1, 50), (51, 1, 50), (99, 1, 50), (100, 2, 50), (149, 2, 50), (150, 3, 50),
    (201, 4, 50),
])
def test_thin_out_takes_every_floor_th_frame(length, step, count):
    np.testing.assert_array_equal(pipelines.thin_out(np.arange(length)), [step * index for index in range(count)])


@pytest.mark.parametrize("length", [2, 11, 50, 51, 149])
def test_interpolate_against_numpy(length):
    frames = body(length)
    moments = np.linspace(0, length - 1, 50)
    columns = [np.interp(moments, np.arange(length), column) for column in frames.reshape(length, -1).T]
    expected = np.stack(columns, axis=1).reshape(50, 20, 3)
    np.testing.assert_allclose(pipelines.interpolate(frames), expected, rtol=0, atol=1e-12)


# ---------------------------------------------------------------------------------------------- batches


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


@pytest.mark.parametrize(("frames", "expected"), [
    (1, [[3], [0], [2], [4], [1]]), (8, [[3], [0, 2], [4, 1]]), (14, [[3, 0], [2, 4, 1]]), (1000, [[3, 0, 2, 4, 1]]),
])
def test_parts_of_similar_length(frames, expected):
    found = Sequences(*numbered([4, 1, 3, 7, 2])).of_similar_length(torch.arange(5), frames)
    assert [part.tolist() for part in found] == expected


# ---------------------------------------------------------------------------------------------- NW-UCLA itself

REAL = manifest.location(manifest.load_manifest("ucla").files[0], manifest.data_root())
real = pytest.mark.skipif(REAL is None, reason="nw_ucla/all_sqe.zip is not below REPRO_DATA")


@pytest.fixture(scope="module")
def ucla(tmp_path_factory):
    """The real recordings and the set of the default pipeline, prepared in a folder of their own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("REPRO_RUNS", str(tmp_path_factory.mktemp("runs")))
        loaded = data.load("ucla")
        stored, = (manifest.runs_root() / "prepared").glob("ucla-*.npz")
        with np.load(stored) as arrays:
            return dict(arrays), loaded


@real
def test_an_untrained_encoder_reaches_the_accuracy_printed_for_it(runs):
    recipe = paper("ucla", "random")
    with device.threads(recipe.threads):
        result = measure(Pretrainer(recipe, data_of(recipe), 0, CPU))
    assert (recipe.layers, recipe.units, result["select"]) == (1, 512, "last")
    assert result["linear"] == pytest.approx(52.01, abs=4)  # Table 2; one seed varies by about a point


@real
def test_real_counts_lengths_and_digest(ucla):
    recordings, loaded = ucla
    assert (recordings["views"] < 3).sum() == 1020 and (recordings["views"] == 3).sum() == 464
    assert loaded.train.sum() == 1013 and loaded.test.sum() == 460
    lengths = recordings["lengths"][recordings["lengths"] > 10]
    assert lengths.min() == 11 and lengths.max() == 201 and (lengths > 50).mean() == pytest.approx(0.228, abs=5e-4)
    assert loaded.sequences.isfinite().all() and loaded.sequences.abs().max() == 1
    assert loaded.labels.unique().tolist() == list(range(10)) and loaded.subjects.unique().tolist() == [*range(1, 11)]
    assert loaded.digest.startswith("140e1d68448e")


@real
def test_real_views_2_and_3_repeat_each_other_in_two_actions(ucla):
    _, loaded = ucla
    rows = {sequence.numpy().tobytes() for sequence in loaded.sequences[loaded.train]}
    repeated = torch.tensor([sequence.numpy().tobytes() in rows for sequence in loaded.sequences])
    assert torch.equal(loaded.repeated, repeated & loaded.test) and loaded.repeated.sum() == 93
    assert torch.equal(loaded.repeated, ((loaded.labels == 1) | (loaded.labels == 2)) & loaded.test)
