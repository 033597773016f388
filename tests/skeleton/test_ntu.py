"""NTU RGB+D 60 from files written here in the official format: reader and pipelines against slow ones, preparation."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from filelock import FileLock
from typer.testing import CliRunner

from repro import cli, manifest
from repro.skeleton import data, ntu, ntu_prepare, pipelines, splits, tables
from repro.skeleton.pretrain import Pretrainer, paper

FIRST = 72057594037931691  # 17 digits: as float64 it is its own successor
LISTS = manifest.data_root() / "ntu"
needs_lists = pytest.mark.skipif(not LISTS.exists(), reason="the name lists of NTU RGB+D are not below REPRO_DATA")


def body(length, seed=0, at=(0.1, 0.2, 3.0)):
    """(length, 25, 3) float32 of a standing figure that moves, hips across and spine up, taller than wide."""
    rng = np.random.default_rng(seed)
    frames = rng.normal(0, [0.1, 0.4, 0.1], (1, 25, 3)) + np.cumsum(rng.normal(0, 0.01, (length, 25, 3)), axis=0) + at
    frames[:, 1] = frames[:, 0] + [0.01, 0.3, -0.01]
    frames[:, 12], frames[:, 16] = frames[:, 0] + [-0.08, -0.05, 0.02], frames[:, 0] + [0.08, -0.06, -0.01]
    return frames.astype(np.float32)


def text(frames, end="\r\n", numbers=".7g"):
    """The official text of a recording: for each frame a list of (id, (25, 3) joints)."""
    rng = np.random.default_rng(1)
    lines = [str(len(frames))]
    for bodies in frames:
        lines.append(str(len(bodies)))
        for number, joints in bodies:
            lines += [f"{number} 0 1 1 0 0 0 {rng.normal():.7g} {rng.normal():.7g} 2", str(len(joints))]
            for joint in joints:
                values = [format(value, numbers) for value in (*joint, *rng.normal(200, 90, 8))]
                lines.append(" ".join([*values, "2"]))
    return (end.join(lines) + end).encode()


def recording(*tracks, frames=None):
    """For each frame the (id, joints) in view; a track is (id, first frame, (T, 25, 3))."""
    frames = frames or max(start + len(joints) for _, start, joints in tracks)
    return [
        [(number, joints[t - start]) for number, start, joints in tracks if start <= t < start + len(joints)]
        for t in range(frames)
    ]


def slow_read(contents):
    """[(id, frame, (25, 3) joints)], read value by value."""
    lines = iter(contents.decode().replace("\r\n", "\n").split("\n"))
    found = []
    for frame in range(int(next(lines))):
        for _ in range(int(next(lines))):
            number = int(next(lines).split()[0])
            joints = [[np.float32(value) for value in next(lines).split()[:3]] for _ in range(int(next(lines)))]
            found.append((number, frame, joints))
    return found


ONE = recording((FIRST, 0, body(5)))
TWO = recording((FIRST, 0, body(6, 1)), (FIRST + 1, 0, body(6, 2)))
COMING = recording((FIRST, 2, body(4, 3)), (FIRST + 1, 0, body(3, 4)), (FIRST + 2, 5, body(3, 5)), frames=10)
AGAIN = [[(FIRST, joints)] if t not in (2, 3) else [] for t, joints in enumerate(body(7, 6))]
CROWD = recording(*((FIRST + k, 0, body(3, k)) for k in range(6)))
SOME = {"one": ONE, "two": TWO, "coming": COMING, "again": AGAIN, "crowd": CROWD, "nobody": [[], [], []], "empty": []}


# ---------------------------------------------------------------------------------------------- reader


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", SOME)
def test_parse_against_the_slow_reader(name, end):
    contents = text(SOME[name], end)
    found, expected = ntu.parse(contents), slow_read(contents)
    numbers = list(dict.fromkeys(number for number, _, _ in expected))
    assert found.frames == len(SOME[name]) and found.joints.dtype == np.float32
    assert found.joints.shape == (len(expected), 25, 3)
    assert found.frame.tolist() == [frame for _, frame, _ in expected]
    assert found.body.tolist() == [numbers.index(number) for number, _, _ in expected]
    np.testing.assert_array_equal(found.joints, np.array([joints for *_, joints in expected]).reshape(-1, 25, 3))


@pytest.mark.parametrize("numbers", [".7g", ".12f", "e", ".2e", ".0f", "+.9g"])
def test_numbers_of_any_notation(numbers):
    contents = text(TWO, numbers=numbers)
    np.testing.assert_array_equal(ntu.parse(contents).joints, np.array([joints for *_, joints in slow_read(contents)]))


def test_other_white_space_is_accepted():
    contents = text(TWO)
    for changed in (contents.replace(b" ", b"\t"), contents.replace(b" ", b"  "), contents.replace(b"\r\n", b" \r\n"),
                    contents + b"\r\n \r\n", contents.rstrip(), b" " + contents):
        np.testing.assert_array_equal(ntu.parse(changed).joints, ntu.parse(contents).joints)


def test_ids_that_agree_as_float64_are_two_bodies():
    assert float(FIRST) == float(FIRST + 1)
    assert ntu.parse(text(TWO)).body.tolist() == [0, 1] * 6


def test_a_body_that_comes_back_is_the_same_one():
    found = ntu.parse(text(AGAIN))
    assert found.frame.tolist() == [0, 1, 4, 5, 6] and set(found.body.tolist()) == {0}


@pytest.mark.parametrize("share", np.linspace(0, 1, 40, endpoint=False))
def test_a_file_cut_anywhere_is_refused(share):
    contents = text(COMING)
    end = int(share * len(contents))
    with pytest.raises(ValueError, match=r"truncated\?|should be"):
        ntu.parse(contents[:end])


def changed(line, replacement, frames=TWO):
    lines = text(frames).split(b"\r\n")
    lines[line] = replacement(lines[line]) if callable(replacement) else replacement
    return b"\r\n".join(lines)


@pytest.mark.parametrize(("contents", "message"), [
    (b"", "ends after line 0, before the number of frames"),
    (b"\xff\xfe\x00", "line 1 should be the number of frames"),
    (changed(0, b"7"), "ends after line 331, before the number of bodies of frame 6; truncated"),
    (changed(0, b"5"), "goes on after its 5 frames, at line 277"),
    (changed(0, b"-1"), "line 1 should be the number of frames, found '-1'"),
    (changed(1, b"2.5"), "line 2 should be the number of bodies of frame 0, found '2.5'"),
    (changed(1, b"1"), "line 30 should be the number of bodies of frame 1, found '72057594037931692 0 1 1"),
    (changed(1, b"3"), "line 57 should be a body's id and 9 more values, found 1"),
    (changed(2, b"x 0 1 1 0 0 0 0.1 0.1 2"), "line 3 should be a body's id and 9 more values"),
    (changed(2, b"7 0 1 1"), "line 3 should be a body's id and 9 more values, found 4"),
    (changed(3, b"20"), "line 4 announces 20 joints, expected 25"),
    (changed(7, lambda line: line.rsplit(b" ", 1)[0]), "line 8 has 11 values, a joint has 12"),
    (changed(7, lambda line: line + b" 1"), "line 8 has 13 values, a joint has 12"),
    (changed(7, b""), "line 8 has 0 values"),
    (changed(39, b"0.1 abc" + b" 1" * 10), "line 40 should begin with x, y and z, found '0.1 abc 1'"),
    (changed(39, b"0.1 -1.#IND" + b" 1" * 10), r"line 40 should begin with x, y and z, found '0.1 -1.#IND 1'"),
    (changed(60, b"0.1 nan" + b" 1" * 10), "a coordinate of frame 1 is not finite"),
    (changed(60, b"0.1 -inf" + b" 1" * 10), "a coordinate of frame 1 is not finite"),
    (changed(60, b"0.1 1e300" + b" 1" * 10), "a coordinate of frame 1 is not finite"),
    (text(recording((FIRST, 0, body(3)), (FIRST, 2, body(1)))), "has the same body id twice in frame 2"),
], ids=str)
def test_malformed_text_is_refused_with_the_place(contents, message):
    with pytest.raises(ValueError, match=message):
        ntu.parse(contents)


def test_values_that_are_not_used_need_not_be_numbers():
    contents = changed(7, lambda line: b" ".join([*line.split()[:3], *[b"-1.#IND"] * 8, b"2"]))
    np.testing.assert_array_equal(ntu.parse(contents).joints, ntu.parse(text(TWO)).joints)


def test_columns_of_names():
    found = ntu.columns(["S001C002P003R002A001", "S017C003P040R001A060"])
    assert {name: values.tolist() for name, values in found.items()} == {
        "views": [2, 3], "subjects": [3, 40], "labels": [0, 59]
    }
    assert len(ntu.ACTIONS) == 60 and sorted({joint for bone in ntu.BONES for joint in bone}) == list(range(25))


# ---------------------------------------------------------------------------------------------- pipelines


def slow_authors(frames):
    """The two halves of each frame, cut and centred, number by number."""
    owner, array = [None, None], np.zeros((len(frames), 2, 25, 3))
    for t, bodies in enumerate(frames):
        present = [number for number, _ in bodies]
        for number, joints in bodies:
            if number not in owner:
                free = [half for half in (0, 1) if owner[half] not in present]
                if not free:
                    continue
                owner[free[0]] = number
            array[t, owner.index(number)] = joints
    array = array[:300]
    length = max(sum(bool(np.any(array[t, half])) for t in range(len(array))) for half in (0, 1))
    array = array[:length]
    both = bool(np.any(array[:, 1]))
    for axis in range(3):
        means = [[array[t, half, joint, axis] for t in range(length) for joint in range(25)] for half in (0, 1)]
        for half in (0, 1):
            array[:, half, :, axis] -= np.mean(means) if both else np.mean(means[half])
    return array.reshape(length, 150)


def slow_predict_cluster(frames):
    tracks = {}
    for bodies in frames:
        for number, joints in bodies:
            tracks.setdefault(number, []).append(joints.astype(float))
    if len(tracks) > 1:
        motion = {number: sum(np.var([joints[:, axis] for joints in track]) for axis in range(3))
                  for number, track in tracks.items()}
        long = [number for number, track in tracks.items() if len(track) >= 12] or list(tracks)
        for number in list(long):
            wide = [np.ptp(joints[:, 0]) > 0.8 * np.ptp(joints[:, 1]) for joints in tracks[number]]
            if len(long) == 1 or not any(wide):
                continue
            if sum(wide) / len(wide) >= 0.69754:
                long.remove(number)
            else:
                narrow = [joints for joints, noise in zip(tracks[number], wide, strict=True) if not noise]
                motion[number] = min(motion[number],
                                     sum(np.var([joints[:, axis] for joints in narrow]) for axis in range(3)))
        track = tracks[max(long, key=lambda number: motion[number])]
    else:
        (track,) = tracks.values()
    first = track[0]
    e1 = (first[1] - first[0]) / np.linalg.norm(first[1] - first[0])
    e2 = (first[12] - first[16]) - np.dot(first[12] - first[16], e1) * e1
    e2 /= np.linalg.norm(e2)
    inverse = np.linalg.inv(np.stack([e2, np.cross(e2, e1), e1], axis=1))
    moved = [[inverse @ (joint - first[0]) for joint in joints] for joints in track if not (joints == 0).any()]
    moved = np.array(moved)
    for axis in range(3):
        values = moved[..., axis]
        moved[..., axis] = 2 * (values - values.min()) / (values.max() - values.min()) - 1
    step = max(len(moved) // 50, 1)
    return np.array([moved[t] for t in range(0, len(moved), step)][:50]).reshape(-1, 75)


def wide(joints, frames):
    """The same body, lying, in some frames."""
    joints = joints.copy()
    joints[frames, :, :2] = joints[frames][:, :, 1::-1]
    return joints


def still(length, seed):
    return np.repeat(body(1, seed), length, axis=0)


LONG = recording((FIRST, 0, body(320, 7)), (FIRST + 1, 10, body(100, 8)))
HANDED_ON = recording((FIRST, 0, body(20, 1)), (FIRST + 1, 20, body(25, 2)))       # one person under a new id
LEAVING = recording((FIRST, 0, body(9, 1)), (FIRST + 1, 0, body(20, 2)))           # the first of two leaves first
GHOST = recording((FIRST, 0, still(30, 1)), (FIRST + 1, 0, 3 * body(11, 2)))       # moves much, for 11 frames
LYING = recording((FIRST, 0, still(43, 1)), (FIRST + 1, 0, wide(body(43, 2), range(30))))          # 69.77 % of it
SITTING = recording((FIRST, 0, still(43, 1)), (FIRST + 1, 0, wide(body(43, 2), range(29))))        # 67.44 % of it
MOVING_WIDE = np.concatenate([still(30, 2), wide(body(10, 9), range(10))])
PARTLY = recording((FIRST, 0, body(40, 5)), (FIRST + 1, 0, MOVING_WIDE))
BRIEF = recording((FIRST, 0, body(5, 1)), (FIRST + 1, 0, 2 * body(11, 2)))
ALL_LYING = recording((FIRST, 0, wide(body(30, 1), range(30))), (FIRST + 1, 0, wide(body(30, 2), range(30))))
CASES = {"one": ONE, "two": TWO, "coming": COMING, "again": AGAIN, "crowd": CROWD, "long": LONG, "leaving": LEAVING,
         "handed on": HANDED_ON, "ghost": GHOST, "lying": LYING, "sitting": SITTING, "partly": PARTLY, "brief": BRIEF,
         "all lying": ALL_LYING}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pipeline", ["authors", "predict_cluster"])
def test_pipelines_against_slow_ones(name, pipeline):
    function, features = ntu_prepare.PIPELINES[pipeline]
    found = function(ntu.parse(text(CASES[name], numbers=".9g")))
    expected = {"authors": slow_authors, "predict_cluster": slow_predict_cluster}[pipeline](CASES[name])
    assert found.shape[1] == features
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "length"), [("one", 5), ("two", 6), ("again", 5), ("long", 300), ("handed on", 45),
                                              ("leaving", 20), ("coming", 6)])
def test_lengths_of_the_authors_sequences(name, length):
    assert len(pipelines.authors(ntu.parse(text(CASES[name])))) == length


def test_the_authors_leave_an_absent_second_body_at_zero_and_centre_the_first():
    found = pipelines.authors(ntu.parse(text(ONE))).reshape(5, 2, 25, 3)
    assert (found[:, 1] == 0).all()
    np.testing.assert_allclose(found[:, 0].mean(axis=(0, 1)), 0, atol=1e-12)


def test_the_authors_centre_two_bodies_together():
    found = pipelines.authors(ntu.parse(text(TWO))).reshape(6, 2, 25, 3)
    np.testing.assert_allclose(found.mean(axis=(0, 1, 2)), 0, atol=1e-12)
    assert abs(found[:, 0].mean(axis=(0, 1))).max() > 1e-3


def test_the_authors_halves_are_those_of_the_files_order_unless_the_first_body_leaves_first():
    for name in ("one", "two", "again", "crowd", "long", "handed on"):
        bodies = ntu.parse(text(CASES[name]))
        order = np.array([(bodies.frame[:row] == bodies.frame[row]).sum() for row in range(len(bodies.frame))])
        np.testing.assert_array_equal(pipelines.halves(bodies), np.where(order < 2, order, -1))
    bodies = ntu.parse(text(LEAVING))
    assert pipelines.halves(bodies)[bodies.body == 1].tolist() == [1] * 20


@pytest.mark.parametrize(("name", "kept"), [("ghost", 0), ("lying", 0), ("sitting", 1), ("partly", 0), ("brief", 1),
                                            ("handed on", 1), ("one", 0)])
def test_the_body_that_predict_and_cluster_keeps(name, kept):
    assert pipelines.main_body(ntu.parse(text(CASES[name]))) == kept


def test_frames_with_a_coordinate_of_zero_are_dropped_though_the_first_gives_the_frame_of_reference():
    frames = body(60)
    frames[[0, 7], 5, 1] = 0
    found = pipelines.predict_cluster(ntu.parse(text(recording((FIRST, 0, frames)))))
    np.testing.assert_allclose(found, slow_predict_cluster(recording((FIRST, 0, frames))), atol=1e-5)
    kept = pipelines.scale(pipelines.view_invariant(frames.astype(float))[np.delete(np.arange(60), [0, 7])])
    np.testing.assert_allclose(found, kept[:50].reshape(50, 75), atol=1e-5)


@pytest.mark.parametrize(("pipeline", "frames", "message"), [
    ("authors", [[], []], "no frame has a body"),
    ("predict_cluster", [[], []], "no frame has a body"),
    ("authors", [[(FIRST, np.zeros((25, 3)))]], "no frame has a body"),
    ("predict_cluster", recording((FIRST, 0, body(3) * [1, 0, 1])), "no frame without a coordinate"),
    ("predict_cluster", recording((FIRST, 0, np.ones((3, 25, 3)))), "joints 0 and 1 coincide"),
])
def test_recordings_without_a_usable_body_are_refused(pipeline, frames, message):
    with pytest.raises(ValueError, match=message):
        ntu_prepare.PIPELINES[pipeline][0](ntu.parse(text(frames)))


# ---------------------------------------------------------------------------------------------- preparation

FILES = {                     # two training and two test subjects, all cameras; the last one is among the missing
    "S001C001P001R001A001": ONE, "S001C002P001R001A050": TWO, "S001C003P001R001A060": COMING,
    "S002C001P003R001A002": AGAIN, "S002C002P003R002A001": CROWD, "S002C003P006R001A003": LONG,
    "S017C001P038R001A004": ONE, "S017C002P038R002A004": GHOST, "S017C003P040R001A050": SITTING,
    "S001C002P005R002A008": [[], []],
}
SPLITS = {
    "xsub": {"train": {"subjects": [1, 5, 38]}, "test": {"subjects": [3, 6, 40]},
             "expect": {"train": 6, "test": 4}, "kept": {"train": 5, "test": 4}},
    "xview": {"train": {"views": [2, 3]}, "test": {"views": [1]},
              "expect": {"train": 7, "test": 3}, "kept": {"train": 6, "test": 3}},
}


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Writes files as the official folder or zip, declares them as the whole of `ntu`, and returns the data root."""
    (tmp_path / "data_manifests").mkdir()
    official = manifest.project_root() / "data_manifests" / "ntu.yaml"
    declared = yaml.safe_load(official.read_text()) | {"splits": SPLITS}
    (tmp_path / "data_manifests" / "ntu.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))
    (tmp_path / "data_manifests" / "ntu_missing.txt").write_text("S001C002P005R002A008\nS001C002P006R001A008\n")
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.setattr(ntu_prepare, "CHUNK", 2)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))

    def write(files=FILES, packed=False, root="data"):
        folder = tmp_path / root / "ntu"
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: value if isinstance(value, bytes) else text(value) for name, value in files.items()}
        if packed:
            with zipfile.ZipFile(folder / "nturgbd_skeletons_s001_to_s017.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for name, contents in files.items():
                    archive.writestr(f"nturgb+d_skeletons/{name}.skeleton", contents)
        else:
            (folder / "nturgb+d_skeletons").mkdir(exist_ok=True)
            for name, contents in files.items():
                (folder / "nturgb+d_skeletons" / f"{name}.skeleton").write_bytes(contents)
        return tmp_path / root

    return write


def prepared_folder(tmp_path):
    (folder,) = (tmp_path / "runs" / "prepared").iterdir()
    return folder


def assert_same_set(first, second):
    assert first.digest == second.digest and torch.equal(first.frames, second.frames)
    assert torch.equal(first.lengths, second.lengths) and torch.equal(first.train, second.train)


@pytest.mark.parametrize("pipeline", ["authors", "predict_cluster"])
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_prepare_and_load(distribution, packed, pipeline):
    root = distribution(packed=packed)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    prepared = ntu_prepare.prepare(root, pipeline=pipeline)
    loaded = data.load("ntu", root, pipeline=pipeline)
    names = sorted(FILES)[:2] + sorted(FILES)[3:]
    assert prepared.names.tolist() == names and not prepared.bad
    function = ntu_prepare.PIPELINES[pipeline][0]
    for index, name in enumerate(names):
        expected = function(ntu.parse(text(FILES[name]))).astype(np.float32)
        assert loaded.lengths[index] == len(expected)
        np.testing.assert_array_equal(loaded.sequences[index, : len(expected)], expected)
        assert (loaded.sequences[index, len(expected) :] == 0).all()
    assert loaded.labels.tolist() == [int(name[-3:]) - 1 for name in names]
    assert loaded.views.tolist() == [int(name[5:8]) for name in names]
    assert loaded.train.tolist() == [name[9:12] in ("001", "038") for name in names]
    assert torch.equal(loaded.test, ~loaded.train) and loaded.name == "ntu"
    assert max(max(bone) for bone in loaded.bones) == loaded.frames.shape[1] // 3 - 1
    across = data.load("ntu", root, pipeline=pipeline, protocol="xview")
    assert across.train.tolist() == [name[5:8] != "001" for name in names]
    assert across.digest != loaded.digest and torch.equal(across.frames, loaded.frames)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_folder_and_archive_give_the_same_set(distribution):
    sets = []
    for packed, root in ((False, "a"), (True, "b")):
        ntu_prepare.prepare(distribution(packed=packed, root=root))
        sets.append(data.load("ntu", manifest.project_root() / root))
    assert_same_set(*sets)
    assert_same_set(sets[0], data.load("ntu", manifest.project_root() / "a", pipeline="authors"))


def test_workers_give_the_same_files_and_leave_nothing_behind(distribution, tmp_path):
    root = distribution()
    alone = ntu_prepare.prepare(root)
    folder = prepared_folder(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["authors.lock", "authors.npy", "authors.npz"]
    (folder / "authors.npz").unlink()
    shared = ntu_prepare.prepare(root, workers=2)
    assert (shared.digest, shared.source) == (alone.digest, alone.source)
    np.testing.assert_array_equal(shared.frames, alone.frames)
    assert sorted(path.name for path in folder.iterdir()) == ["authors.lock", "authors.npy", "authors.npz"]


def test_examples_stand_upright_one_per_action(distribution):
    root = distribution()
    ntu_prepare.prepare(root)
    chosen, bones = data.examples("ntu", root)
    assert list(chosen) == ["drink water", "brush hair", "punch", "walk apart"]
    for action, name in (("drink water", "S001C001P001R001A001"), ("punch", "S001C002P001R001A050")):
        expected = pipelines.authors(ntu.parse(text(FILES[name]))).reshape(-1, 50, 3)
        np.testing.assert_allclose(chosen[action], expected[..., [0, 2, 1]], atol=1e-6)
    assert max(joint for bone in bones for joint in bone) == 49


def test_frames_are_mapped_and_stay_as_they_are_in_their_file(distribution, tmp_path):
    root = distribution()
    ntu_prepare.prepare(root)
    loaded = data.load("ntu", root)
    loaded.frames[:] = 7
    assert not (data.load("ntu", root).frames == 7).any()


def test_without_preparation_the_command_is_named(distribution):
    root = distribution()
    with pytest.raises(FileNotFoundError, match="not prepared for pipeline 'authors': run `repro data prepare ntu` f"):
        data.load("ntu", root)
    ntu_prepare.prepare(root)
    with pytest.raises(FileNotFoundError, match="`repro data prepare ntu --subset --pipeline predict_cluster` first"):
        data.load("ntu", root, pipeline="predict_cluster", subset=True)


def test_without_the_distribution_page_and_places_are_named(distribution, tmp_path):
    distribution()
    expected = r"nturgbd_skeletons_s001_to_s017\.zip .*nturgb\+d_skeletons.*rose1\.ntu\.edu\.sg"
    for ask in (data.load, lambda _, root: ntu_prepare.prepare(root)):
        with pytest.raises(FileNotFoundError, match=expected):
            ask("ntu", tmp_path / "nothing")


def test_an_incomplete_distribution_is_a_subset_or_an_error(distribution):
    root = distribution({name: FILES[name] for name in sorted(FILES)[:5]})
    for refused in (lambda: ntu_prepare.prepare(root), lambda: data.load("ntu", root)):
        with pytest.raises(ValueError, match=r"of protocol xsub are \{'train': 4, 'test': 1\}, expected .*'train': 6"):
            refused()
    ntu_prepare.prepare(root, subset=True)
    with pytest.raises(ValueError, match="of protocol xsub are"):
        data.load("ntu", root)
    loaded = data.load("ntu", root, subset=True)
    assert loaded.name == "ntu (subset)" and len(loaded.lengths) == 4
    assert "batch=32 exceeds the 3 training sequences of ntu (subset)" in str(refusal(loaded))


def refusal(loaded):
    with pytest.raises(ValueError) as raised:
        Pretrainer(paper("ntu", "CE"), loaded, 0, torch.device("cpu"))
    return raised.value


def test_a_subset_without_test_recordings_is_refused(distribution):
    root = distribution({name: FILES[name] for name in sorted(FILES)[:4]})
    ntu_prepare.prepare(root, subset=True)
    with pytest.raises(ValueError, match=r"ntu \(subset\): none of its 3 recordings belongs to test"):
        data.load("ntu", root, subset=True)
    assert data.load("ntu", root, subset=True, protocol="xview").test.sum() == 1


BAD = {"S001C003P001R001A060": text(COMING)[:4000], "S017C001P038R001A004": b"",
       "S002C001P003R001A002": changed(5, b"nan" + b" 1" * 11, AGAIN), "S017C002P038R002A004": text([[], []])}


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_bad_files_are_named_and_counted_and_skipped_only_when_asked(distribution, packed):
    root = distribution(FILES | BAD, packed=packed)
    with pytest.raises(ValueError) as raised:
        ntu_prepare.prepare(root, subset=True)
    message = str(raised.value)
    assert "4 files cannot be read:" in message and "--skip-bad" in message
    for name, reason in (("S001C003P001R001A060", "within the joints of frame 1; truncated?"), ("S017C001P038R001A004",
                         "ends after line 0"), ("S002C001P003R001A002", "a coordinate of frame 0 is not finite"),
                         ("S017C002P038R002A004", "no frame has a body")):
        assert any(name in line and reason in line for line in message.splitlines())
    with pytest.raises(ValueError, match="with a usable skeleton, protocol xsub, are"):
        ntu_prepare.prepare(root, skip_bad=True)
    prepared = ntu_prepare.prepare(root, skip_bad=True, subset=True)
    with pytest.raises(ValueError, match="with a usable skeleton, protocol xsub, are"):
        ntu_prepare.prepare(root, skip_bad=True)
    assert sorted(prepared.bad) == sorted(BAD) and len(prepared.names) == 5
    assert "4 files cannot be read" in "\n".join(ntu_prepare.describe(prepared))
    assert len(data.load("ntu", root, subset=True).lengths) == 5
    with pytest.raises(ValueError, match="4 files cannot be read"):
        ntu_prepare.prepare(root, subset=True)
    assert len(data.load("ntu", root, subset=True).lengths) == 5


@pytest.mark.parametrize("files", [{"S001C002P005R002A008": ONE}, dict.fromkeys(list(FILES)[:3], b"")])
def test_nothing_usable_is_an_error(distribution, files):
    with pytest.raises(ValueError, match=f"none of its {len(files)} recordings is usable"):
        ntu_prepare.prepare(distribution(files), subset=True, skip_bad=True)


def test_a_file_mended_without_changing_its_size_is_read_again(distribution):
    whole = text(ONE)
    root = distribution(FILES | {"S001C001P001R001A001": whole[:-400] + b"x" * 400})
    with pytest.raises(ValueError, match="1 files cannot be read"):
        ntu_prepare.prepare(root)
    distribution({"S001C001P001R001A001": whole})
    assert len(ntu_prepare.prepare(root).names) == 9


def test_a_damaged_member_of_the_archive_is_named(distribution):
    root = distribution(packed=True)
    path = root / "ntu" / "nturgbd_skeletons_s001_to_s017.zip"
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("nturgb+d_skeletons/S002C003P006R001A003.skeleton")
    contents = bytearray(path.read_bytes())
    contents[info.header_offset + 2000] ^= 255
    path.write_bytes(contents)
    ntu._archive.cache_clear()
    with pytest.raises(ValueError, match="S002C003P006R001A003: the archive is damaged here"):
        ntu_prepare.prepare(root)
    path.write_bytes(contents[: len(contents) // 2])
    ntu._archive.cache_clear()
    with pytest.raises(ValueError, match=r"s017\.zip is truncated or damaged"):
        ntu_prepare.prepare(root)


@pytest.mark.parametrize(("name", "message"), [
    ("notes.txt", "notes.txt is not a file of NTU RGB"), ("S018C001P001R001A001.skeleton", "S018C001P001R001A001"),
    ("S001C001P001R001A061.skeleton", "A061.skeleton is not a file of NTU RGB"),
    ("more/S001C001P001R001A001.skeleton", "S001C001P001R001A001 is there twice"),
])
def test_foreign_files_are_named(distribution, name, message):
    root = distribution()
    path = root / "ntu" / "nturgb+d_skeletons" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=message):
        ntu_prepare.prepare(root, subset=True)


def test_hidden_files_are_passed_over(distribution):
    root = distribution()
    (root / "ntu" / "nturgb+d_skeletons" / ".DS_Store").write_bytes(b"")
    (root / "ntu" / "nturgb+d_skeletons" / "._S001C001P001R001A001.skeleton").write_bytes(b"")
    assert len(ntu_prepare.prepare(root).names) == 9


def counting(monkeypatch):
    """The names of files parsed from here on."""
    parsed, read = [], ntu.read

    def counted(path, member):
        parsed.append(member.name)
        return read(path, member)

    monkeypatch.setattr(ntu, "read", counted)
    return parsed


def test_what_is_prepared_is_not_read_again_unless_it_is_damaged(distribution, tmp_path, monkeypatch):
    root = distribution()
    expected = ntu_prepare.prepare(root).digest
    parsed = counting(monkeypatch)
    assert ntu_prepare.prepare(root).digest == expected and not parsed
    frames = prepared_folder(tmp_path) / "authors.npy"
    whole = frames.read_bytes()
    for damaged in (whole[:-8], whole[:500] + bytes([whole[500] ^ 1]) + whole[501:], b""):
        frames.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"authors\.npy or its index is damaged .* `repro data prepare ntu` again"):
            data.load("ntu", root)
        parsed.clear()
        assert ntu_prepare.prepare(root).digest == expected and len(parsed) == 9


def test_another_distribution_is_prepared_apart(distribution, tmp_path):
    root = distribution()
    ntu_prepare.prepare(root)
    distribution({"S001C001P001R001A001": recording((FIRST, 0, body(6)))})
    with pytest.raises(FileNotFoundError, match="not prepared"):
        data.load("ntu", root)
    ntu_prepare.prepare(root)
    assert len(list((tmp_path / "runs" / "prepared").iterdir())) == 2 and data.load("ntu", root).lengths[0] == 6


SCRIPT = """
import sys, time
from pathlib import Path
from repro import cli, manifest
from repro.skeleton import ntu, ntu_prepare

def slowly(path, member, read=ntu.read):
    time.sleep(0.25)
    with open(Path(sys.argv[1]) / "read.txt", "a") as file:
        print(member.name, file=file)
    return read(path, member)

if __name__ == "__main__":
    manifest.project_root = lambda: Path(sys.argv[1])
    ntu_prepare.CHUNK = 2
    if sys.argv[2] == "1":
        ntu.read = slowly
    print("begin", flush=True)
    prepared = ntu_prepare.prepare(Path(sys.argv[1]) / "data", subset=True, workers=int(sys.argv[2]))
    print(prepared.digest)
"""


def start(tmp_path, workers):
    path = tmp_path / "prepare.py"
    path.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen([sys.executable, path, str(tmp_path), str(workers)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


def test_a_killed_preparation_goes_on_where_it_was(distribution, tmp_path, monkeypatch):
    root = distribution()
    process = start(tmp_path, workers=1)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "runs").rglob("*.shards/0*.npz"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    shards = list((tmp_path / "runs").rglob("*.shards/0*.npz"))
    assert 2 <= len(shards) < 5 and not list((tmp_path / "runs").rglob("authors.np?"))
    parsed = counting(monkeypatch)
    resumed = ntu_prepare.prepare(root)
    assert len(parsed) == len(set(parsed)) == 9 - 2 * len(shards)
    (prepared_folder(tmp_path) / "authors.npz").unlink()
    assert ntu_prepare.prepare(root).digest == resumed.digest


def test_a_preparation_killed_before_its_index_was_written_goes_on(distribution, tmp_path, monkeypatch):
    root = distribution()
    expected = ntu_prepare.prepare(root).digest
    (prepared_folder(tmp_path) / "authors.npz").unlink()

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            ntu_prepare.prepare(root)
    (prepared_folder(tmp_path) / ".authors.npy.abandoned").write_bytes(b"left by a kill")
    assert ntu_prepare.prepare(root).digest == expected
    assert sorted(path.name for path in prepared_folder(tmp_path).iterdir()) == ["authors.lock", "authors.npy",
                                                                                 "authors.npz"]


def test_two_at_once_read_once(distribution, tmp_path):
    distribution()
    processes = [start(tmp_path, workers=1) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert all(process.returncode == 0 for process in processes), outputs
    assert outputs[0][0] == outputs[1][0]
    assert sorted((tmp_path / "read.txt").read_text().split()) == sorted(set(FILES) - {"S001C002P005R002A008"})


def test_who_comes_second_says_that_it_waits(distribution, tmp_path, capsys):
    root = distribution()
    ntu_prepare.prepare(root)
    lock, found = FileLock(prepared_folder(tmp_path) / "authors.lock"), []
    with lock:
        thread = threading.Thread(target=lambda: found.append(ntu_prepare.prepare(root)))
        thread.start()
        deadline = time.monotonic() + 30
        said = ""
        while "waiting for the process that prepares" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().err
        assert not found and str(prepared_folder(tmp_path) / "authors") in said
    thread.join()
    assert len(found[0].names) == 9


def children(parent):
    """Ids of the processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rsplit(") ", 1)[1].split()[1]) == parent:
                found.append(path.parent)
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="asks Linux for the children of a process")
def test_workers_end_with_the_process_that_started_them(distribution, tmp_path):
    distribution(FILES | {f"S003C00{camera}P00{subject}R001A0{action}": TWO for camera, subject, action in
                          itertools.product((1, 2, 3), (1, 3), range(10, 60))})
    process = start(tmp_path, workers=2)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "runs").rglob("*.shards/0*.npz")) and time.monotonic() < deadline:
        time.sleep(0.01)
    found = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    while any(path.exists() for path in found) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(found) >= 2 and not any(path.exists() for path in found)
    assert len(list((tmp_path / "runs").rglob("*.shards/0*.npz"))) < 154


def test_unknown_options_and_pipelines_raise(distribution):
    root = distribution()
    with pytest.raises(TypeError, match="no option pipline; its options are pipeline, protocol, subset"):
        data.load("ntu", root, pipline="raw")
    with pytest.raises(ValueError, match="pipeline='raw' is not one of: default, authors, predict_cluster"):
        data.load("ntu", root, pipeline="raw")
    with pytest.raises(ValueError, match="protocol='xset' is not one of: xsub, xview"):
        data.load("ntu", root, protocol="xset")


def test_only_ntu_may_be_a_subset():
    with pytest.raises(TypeError, match="no option subset; its options are pipeline, protocol"):
        data.load("synthetic", subset=True)


# ---------------------------------------------------------------------------------------------- tables


def invoked(*arguments):
    done = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_from_files_to_a_table(distribution, monkeypatch):
    people = itertools.product((1, 38, 3), (1, 2, 3), (1, 2))
    files = {f"S001C00{camera}P{person:03d}R00{take}A00{1 + (person + take) % 2}": recording(
        (FIRST, 0, body(12 + 3 * take + camera, seed))) for seed, (person, camera, take) in enumerate(people)}
    twice = {name.replace("R001", "R002").replace("S001", "S002"): frames for name, frames in files.items()}
    monkeypatch.setenv("REPRO_DATA", str(distribution(files | twice)))
    printed = invoked("data", "prepare", "ntu", "--subset", "--workers", "1")
    assert "36 recordings" in printed and "xsub: 24 train / 12 test, a subset, 5 / 4 are declared" in printed
    assert "xview: 24 train / 12 test" in printed
    chosen = ["--dataset", "ntu", "--subset", "--preset", "smoke", "--objectives", "random,CE+AD"]
    table = invoked("run", "taxonomy", *chosen)
    assert table.count("ntu") == 2
    kept, = tables.taxonomy_cells("ntu", preset="smoke", objectives="CE+AD", protocol="xview", subset=True)
    assert kept.entry == "CE+AD, protocol=xview, subset=True"
    with pytest.raises(ValueError, match="of protocol xsub are"):
        tables.taxonomy_cells("ntu", preset="smoke")


def test_columns_of_the_paper_are_cells(distribution, monkeypatch):
    root = distribution()
    monkeypatch.setenv("REPRO_DATA", str(root))
    ntu_prepare.prepare(root)
    for layers, units in ((1, "auto"), (3, "auto"), (1, "1024")):
        cells = tables.taxonomy_cells("ntu", layers=layers, units=units)
        assert len(cells) == 16 and {cell.preset for cell in cells} == {"paper"}
        assert {(cell.recipe.layers, cell.recipe.units, cell.recipe.protocol) for cell in cells} == {
            (layers, 512 if units == "auto" else 1024, "xsub")
        }
    with pytest.raises(FileNotFoundError, match="--pipeline predict_cluster"):
        tables.taxonomy_cells("ntu", pipeline="predict_cluster")
    ntu_prepare.prepare(root, pipeline="predict_cluster")
    cell, = tables.taxonomy_cells("ntu", objectives="CE", pipeline="predict_cluster")
    assert cell.entry == "CE, pipeline=predict_cluster" and cell.digest != cells[0].digest


# ---------------------------------------------------------------------------------------------- the official names


@needs_lists
def test_counts_of_the_official_names():
    with zipfile.ZipFile(LISTS / "skes_available_name.zip") as archive:
        every = archive.read("ntu60/all_names_56880.txt").decode().split()
        available = archive.read("ntu60/skes_available_name.txt").decode().split()
    missing = (LISTS / "samples_with_missing_skeletons.txt").read_text().split()
    assert ntu_prepare.unusable() == set(missing) and len(missing) == 302
    assert sorted(set(every) - ntu_prepare.unusable()) == sorted(available) and len(available) == 56578
    ntu_prepare.check(every, subset=False, kept=False)
    ntu_prepare.check(available, subset=False, kept=True)
    for protocol, expected in {"xsub": (40091, 16487), "xview": (37646, 18932)}.items():
        found = splits.masks(manifest.load_manifest("ntu").splits[protocol], ntu.columns(available))
        assert (found["train"].sum(), found["test"].sum()) == expected
        assert (found["train"] ^ found["test"]).all()
    assert all(ntu._is_sample(name) for name in every)
