import dataclasses
import logging
import os
import threading
import time
import zipfile

import numpy as np
import pytest
import torch
import yaml
from made_up_skeletons import made_up
from ucla_files import body, recording, slow_view_invariant

from repro.data import manifest
from repro.skeleton import data, pipelines

SMALL = dict(recording(name, body(length, length)) for name, length in (
    ("a01_s01_e00_v01", 1), ("a01_s01_e01_v01", 10), ("a02_s01_e00_v01", 11), ("a12_s02_e00_v02", 51),
    ("a08_s02_e00_v02", 99), ("a04_s10_e00_v03", 100), ("a11_s03_e01_v03", 6), ("a09_s03_e01_v03", 149),
))
COUNTS = {"expect": {"train": 5, "test": 3}, "kept": {"train": 3, "test": 2}}


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Writes files as the official archive or folder, declares them as data set `ucla`, and returns the data root."""
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    (tmp_path / "data_manifests").mkdir()

    def write(files, unpacked=False, **counts):
        root = tmp_path / ("folder" if unpacked else "archive")
        (root / "nw_ucla" / "all_sqe").mkdir(parents=True)
        for name, contents in files.items():
            (root / "nw_ucla" / "all_sqe" / name).write_bytes(contents)
        if not unpacked:
            with zipfile.ZipFile(root / "nw_ucla" / "all_sqe.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for name, contents in files.items():
                    archive.writestr(f"all_sqe/{name}", contents)
        values = {
            "name": "ucla", "title": "t", "access": "form", "source": "https://example.org", "licence": "l",
            "files": [{"name": "nw_ucla/all_sqe.zip", "bytes": sum(map(len, files.values())), "members": len(files),
                       "digest": manifest.content_digest(sorted(files.items()))}],
            "splits": {"xview": {"train": {"views": [1, 2]}, "test": {"views": [3]}} | COUNTS | counts},
        }
        (tmp_path / "data_manifests" / "ucla.yaml").write_text(yaml.safe_dump(values))
        return root

    return write


def test_load_small_distribution(distribution):
    loaded = data.load("ucla", distribution(SMALL))
    assert loaded.sequences.shape == (5, 50, 60) and loaded.sequences.dtype == torch.float32
    assert loaded.lengths.tolist() == [11, 50, 50, 50, 50]     # a02, a04, a08, a09, a12: sorted by file name
    assert loaded.labels.tolist() == [1, 3, 6, 7, 9]
    assert loaded.views.tolist() == [1, 3, 2, 3, 2] and loaded.subjects.tolist() == [1, 10, 2, 3, 2]
    assert loaded.train.tolist() == [True, False, True, False, True] and (loaded.test == ~loaded.train).all()
    assert (loaded.sequences[0, 11:] == 0).all() and (loaded.sequences[0, :11] != 0).any()
    assert loaded.actions[6] == "donning" and len(loaded.bones) == 19


@pytest.mark.parametrize(("pipeline", "steps"), [
    ("default", (slow_view_invariant, pipelines.scale, pipelines.thin_out)),
    ("unscaled", (slow_view_invariant, pipelines.thin_out)),
    ("interpolate", (slow_view_invariant, pipelines.interpolate)),
    ("raw", (pipelines.thin_out,)),
])
def test_pipelines_are_their_steps(distribution, pipeline, steps):
    loaded = data.load("ucla", distribution(SMALL), pipeline=pipeline)
    for row, length in enumerate((11, 100, 99, 149, 51)):
        frames = body(length, length)
        for step in steps:
            frames = step(frames)
        assert loaded.lengths[row] == len(frames)
        np.testing.assert_allclose(loaded.sequences[row, :len(frames)], frames.reshape(len(frames), 60), atol=1e-5)


def test_folder_and_archive_give_the_same_set(distribution):
    packed = data.load("ucla", distribution(SMALL))
    unpacked = data.load("ucla", distribution(SMALL, unpacked=True))
    assert torch.equal(packed.sequences, unpacked.sequences) and packed.digest == unpacked.digest


def test_digest_follows_contents_and_pipeline(distribution):
    root = distribution(SMALL)
    digests = {data.load("ucla", root, pipeline=pipeline).digest for pipeline in data.PIPELINES}
    assert len(digests) == 4 and data.load("ucla", root).digest in digests


def test_unknown_options_and_names_raise(distribution):
    root = distribution(SMALL)
    with pytest.raises(TypeError, match="no option pipline; its options are pipeline, protocol"):
        data.load("ucla", root, pipline="raw")
    with pytest.raises(ValueError, match="pipeline='rw' is not one of: default, interpolate, unscaled, raw"):
        data.load("ucla", root, pipeline="rw")
    with pytest.raises(ValueError, match="protocol='xsub' is not one of: xview"):
        data.load("ucla", root, protocol="xsub")
    with pytest.raises(ValueError, match="dataset='ukla' is not one of: synthetic, ucla, ntu; did you mean 'ucla'"):
        data.load("ukla", root)


def test_missing_distribution_names_page_archive_and_place(distribution, tmp_path):
    distribution(SMALL)
    with pytest.raises(FileNotFoundError, match=r"nothing.nw_ucla.all_sqe\.zip.*https://example\.org.*REPRO_DATA"):
        data.load("ucla", tmp_path / "nothing")


def test_other_counts_than_declared_raise(distribution):
    root = distribution(SMALL, expect={"train": 6, "test": 3})
    with pytest.raises(ValueError, match=r"recordings: test 3, train 5; expected test 3,"):
        data.load("ucla", root)


def test_other_counts_after_the_length_rule_raise(distribution):
    root = distribution(SMALL, kept={"train": 4, "test": 2})
    with pytest.raises(ValueError, match=r"longer than 10 frames: test 2, train 3; expected"):
        data.load("ucla", root)


def test_recording_that_cannot_be_transformed_is_named(distribution):
    frames = body(20)
    frames[0, 1] = frames[0, 0]
    name, contents = recording("a02_s01_e00_v01", frames)
    with pytest.raises(ValueError, match="ucla, recording a02_s01_e00_v01: joints 0 and 1 coincide"):
        data.load("ucla", distribution(SMALL | {name: contents}))


def infinite():
    frames = body(12)
    frames[7, 3, 1] = np.inf
    return frames


@pytest.mark.parametrize(("member", "message"), [
    (("a01_s01_e00_v01.json", b'{"skeletons": [[['), "a01_s01_e00_v01.json: cannot be read .*JSONDecodeError"),
    (("a01_s01_e00_v01.json", b"\xff\xfe\x00"), "a01_s01_e00_v01.json: cannot be read"),
    (("a01_s01_e00_v01.json", b'{"label": 1}'), "cannot be read as a skeleton file .KeyError: 'skeletons'"),
    (("a01_s01_e00_v01.json", b"[]"), "cannot be read as a skeleton file .TypeError"),
    (recording("a01_s01_e00_v01", body(12)[:, :19]), r"shape \(12, 19, 3\), expected \(frames, 20, 3\)"),
    (recording("a01_s01_e00_v01", np.zeros((0, 20, 3))), r"shape \(0,\), expected \(frames, 20, 3\)"),
    (recording("a01_s01_e00_v01", infinite()), "where, a01_s01_e00_v01.json: a coordinate of frame 7 is not finite"),
    (recording("a01_s01_e00_v01", body(12), label=2), "label is 2, expected 1 from the file's name"),
    (("a07_s01_e00_v01.json", b"{}"), "a07_s01_e00_v01.json is not named like"),
    (("notes.txt", b""), "notes.txt is not named like"),
])
def test_faulty_member_is_named(member, message):
    with pytest.raises(ValueError, match=message):
        data.parse_ucla([recording("a02_s01_e00_v01", body(3)), member], "where")


NO_NUMBER = "cannot be read as a skeleton file .TypeError: the label or a coordinate is no number"


def with_value(text, place=7):
    """A recording in which the text of a value stands in the place of a coordinate."""
    name, contents = recording("a01_s01_e00_v01", np.full((12, 20, 3), 0.5))
    values = contents.decode().split("0.5")
    return name, ("0.5".join(values[:place]) + text + "0.5".join(values[place:])).encode()


@pytest.mark.parametrize(("text", "message"), [
    ('"0.25"', NO_NUMBER), ("true", NO_NUMBER), ("null", NO_NUMBER), ("[0.25]", NO_NUMBER),
    ("9" * 400, "cannot be read as a skeleton file .OverflowError"), ("9" * 5000, "cannot be read as a skeleton file"),
    ("[" * 100_000, "cannot be read as a skeleton file .RecursionError"),
    ("NaN", "a coordinate of frame 0 is not finite"), ("-Infinity", "a coordinate of frame 0 is not finite"),
    ("1e999", "a coordinate of frame 0 is not finite"),
])
def test_what_is_no_finite_number_is_no_coordinate(text, message):
    with pytest.raises(ValueError, match=f"where, a01_s01_e00_v01.json: {message}"):
        data.parse_ucla([with_value(text)], "where")


@pytest.mark.parametrize("label", [True, "1", None, [1]])
def test_what_is_no_number_is_no_label(label):
    with pytest.raises(ValueError, match=r"a01_s01_e00_v01\.json: cannot be read as a skeleton file .TypeError"):
        data.parse_ucla([recording("a01_s01_e00_v01", body(12), label=label)], "where")


@pytest.mark.parametrize(("pipeline", "frame", "value"), [
    ("raw", 3, 1e39), ("raw", 49, -3e307), ("unscaled", 3, 1e300), ("unscaled", 3, -1e39), ("interpolate", 3, 1e39),
])
def test_coordinates_that_a_pipeline_cannot_hold_are_refused_with_recording_and_frame(pipeline, frame, value):
    frames = body(50)
    frames[frame, 1, 1] = value
    read = data.parse_ucla([recording("a01_s01_e00_v01", frames), recording("a01_s01_e00_v02", body(12))], "where")
    only = manifest.Split(train={"views": [1]}, test={"views": [2]}, expect={"train": 1, "test": 1})
    with pytest.raises(ValueError, match=rf"ucla, recording a01_s01_e00_v01: .*so large that frame {frame} of the seq"):
        data.prepare("ucla", read, only, pipeline)


def test_one_frame_is_read_and_left_out(distribution):
    read = data.parse_ucla([recording("a05_s07_e09_v02", body(1))], "where")
    assert read.lengths.tolist() == [1] and read.labels.tolist() == [4]
    assert read.subjects.tolist() == [7] and read.views.tolist() == [2]
    with pytest.raises(ValueError, match=r"longer than 10 frames: test 0, train 0"):
        data.load("ucla", distribution(dict([recording("a05_s07_e09_v02", body(1))]), expect={"train": 1, "test": 0}))


def test_truncated_archive_is_named(distribution):
    root = distribution(SMALL)
    path = root / "nw_ucla" / "all_sqe.zip"
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(ValueError, match=r"all_sqe\.zip is truncated or damaged"):
        data.load("ucla", root)


def stored(tmp_path):
    (path,) = (tmp_path / "runs" / "prepared").glob("ucla-*.npz")
    return path


def test_parsed_once_and_nothing_written_below_the_data_root(distribution, tmp_path, monkeypatch):
    root = distribution(SMALL)
    before = sorted(root.rglob("*"))
    first = data.load("ucla", root)
    assert sorted(root.rglob("*")) == before
    assert stored(tmp_path).name == f"ucla-{manifest.load_manifest('ucla').files[0].digest[:16]}.npz"
    monkeypatch.setattr(data, "parse_ucla", None)
    assert data.load("ucla", root).digest == first.digest


@pytest.mark.parametrize("damage", [
    lambda contents: b"", lambda contents: contents[:1000], lambda contents: b"not an archive" * 100,
    lambda contents: contents[:5000] + bytes([contents[5000] ^ 255]) + contents[5001:],
])
def test_damaged_preparation_is_made_again(distribution, tmp_path, caplog, damage):
    root = distribution(SMALL)
    expected = data.load("ucla", root).digest
    path = stored(tmp_path)
    contents = path.read_bytes()
    path.write_bytes(damage(contents))
    with caplog.at_level(logging.WARNING):
        assert data.load("ucla", root).digest == expected
    assert f"{path} is damaged" in caplog.text and path.stat().st_size == len(contents)
    caplog.clear()
    assert data.load("ucla", root).digest == expected and not caplog.text


def test_interrupted_preparation_leaves_nothing_that_is_read(distribution, tmp_path, monkeypatch):
    root = distribution(SMALL)

    def killed(source, target):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            data.load("ucla", root)
    assert not list((tmp_path / "runs" / "prepared").glob("*.npz"))
    assert len(data.load("ucla", root).lengths) == 5


def test_two_at_once_parse_once(distribution, monkeypatch):
    root = distribution(SMALL)
    parsed, results = [], []

    def slowly(members, where, parse=data.parse_ucla):
        parsed.append(where)
        time.sleep(0.2)
        return parse(members, where)

    monkeypatch.setattr(data, "parse_ucla", slowly)
    threads = [threading.Thread(target=lambda: results.append(data.load("ucla", root).digest)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(parsed) == 1 and len(results) == 3 and len(set(results)) == 1


def test_labels_out_of_range_and_parts_that_overlap_are_refused():
    data = made_up()
    with pytest.raises(ValueError, match="made-up: label 3 should be from 0 to 2"):
        dataclasses.replace(data, labels=data.labels + 1)
    with pytest.raises(ValueError, match="made-up: 3 samples are for train and for test, the first of them 5"):
        dataclasses.replace(data, train=torch.ones_like(data.train))
