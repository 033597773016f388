"""NTU RGB+D 60: its text, its two pipelines and its preparation, against slow ones and on damaged files."""

import itertools

import numpy as np
import pytest
import torch
from made_up_skeletons import CPU
from ntu_files import (
    AGAIN,
    COMING,
    CROWD,
    FIRST,
    GHOST,
    LONG,
    ONE,
    SITTING,
    TWO,
    body,
    changed,
    recording,
    still,
    text,
    wide,
)
from packed import write_folder, write_zip
from slow_skeletons import slow_scale, slow_thin_out, slow_view_invariant

from repro.data import manifest
from repro.skeleton import DATASETS, data, ntu
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper


def test_bones_run_from_the_middle_of_the_hip_to_head_hands_and_feet():
    """Joints by the numbers of Kinect v2: 20 between the shoulders, 21 to 24 tips of hands and thumbs."""
    limbs = [(0, 1, 20, 2, 3), (0, 12, 13, 14, 15), (0, 16, 17, 18, 19)]
    limbs += [(20, 4, 5, 6, 7, 21), (7, 22), (20, 8, 9, 10, 11, 23), (11, 24)]
    body = DATASETS["ntu"].skeletons
    assert sorted(body.bones) == sorted(bone for limb in limbs for bone in itertools.pairwise(limb))


LAST_TWO = recording((FIRST, 0, body(4, 1)), (FIRST + 1, 0, body(9, 2)), (FIRST + 2, 0, body(9, 3)))
SAME_ID = [[(FIRST, first), (FIRST + 1, second), (FIRST, third)]
           for first, second, third in zip(body(20, 1), body(20, 2), body(20, 3), strict=True)]
NO_IDS = [[(0, joints) for _, joints in bodies] for bodies in LAST_TWO]


HUGE = body(6)
HUGE[:, :, 0], HUGE[4, 7, 0] = -3.4e38, 3.4e38


@pytest.mark.parametrize(("contents", "message", "pipeline"), [(*refused, "authors") for refused in (
    *((text(COMING)[: int(share * len(text(COMING)))], "truncated") for share in np.linspace(0, 1, 7, endpoint=False)),
    (b"\xff\xfe\x00", "frame 0 is truncated or damaged: invalid literal for int"),
    (changed(0, b"7"), "frame 6 is truncated or damaged: it ends"),
    (changed(0, b"5"), "goes on after its 5 frames"),
    (changed(0, b"9" * 5000), "frame 0 is truncated or damaged"),
    (changed(1, b"2.5"), "frame 0 is truncated or damaged: .*'2.5'"),
    (changed(1, b"1"), "frame 1 is truncated or damaged"),
    (changed(2, b"x 0 1 1 0 0 0 0.1 0.1 2"), "frame 0 is truncated or damaged: .*'x'"),
    (changed(3, b"20"), "frame 0 .*: 20 joints, 300 values instead of 25 of 12"),
    (changed(39, b"0.1 -1.#IND 1" + b" 1" * 9), "frame 0 .*: could not convert string to float"),
    (changed(60, b"0.1 1e300 1" + b" 1" * 9), "a coordinate of frame 1 is not finite"),
    (changed(60, b"0.1 nan 1" + b" 1" * 9), "a coordinate of frame 1 is not finite"),
    (text([[], []]), "no frame has a body"), (text([[(FIRST, np.zeros((25, 3)))]]), "no frame has a body"),
    (text(recording((FIRST, 0, HUGE))), "so large that frame 4 of the sequence is not finite"),
)] + [
    (text([[], []]), "no frame has a body", "predict_cluster"),
    (text(recording((FIRST, 0, body(3) * [1, 0, 1]))), "without a coordinate that is exactly zero", "predict_cluster"),
], ids=lambda value: "" if isinstance(value, bytes) else value)
def test_a_file_that_cannot_be_used_is_refused_with_the_frame(contents, message, pipeline):
    with pytest.raises(ValueError, match=message):
        ntu.transformed(contents, pipeline)


ZEROS = body(60)
ZEROS[[0, 7], 5, 1] = 0
MOVING_WIDE = np.concatenate([still(30, 2), wide(body(10, 9), range(10))])
CASES = {
    "one": ONE, "two": TWO, "coming": COMING, "again": AGAIN, "crowd": CROWD, "long": LONG, "ghost": GHOST,
    "sitting": SITTING, "last two": LAST_TWO, "same id": SAME_ID, "no ids": NO_IDS,
    "handed on": recording((FIRST, 0, body(20, 1)), (FIRST + 1, 20, body(25, 2))),   # one person under a new id
    "leaving": recording((FIRST, 0, body(9, 1)), (FIRST + 1, 0, body(20, 2))),       # the first of two leaves first
    "lying": recording((FIRST, 0, still(43, 1)), (FIRST + 1, 0, wide(body(43, 2), range(30)))),      # 69.77 % of it
    "partly": recording((FIRST, 0, body(40, 5)), (FIRST + 1, 0, MOVING_WIDE)),
    "overlapping": recording((FIRST, 0, body(10, 1)), (FIRST + 1, 5, body(15, 2))),
    "swapped": [bodies[:: 1 if t < 4 else -1] for t, bodies in enumerate(TWO)],
    "listed first": recording((FIRST + 1, 4, body(6, 2)), (FIRST, 0, body(10, 1))),  # who comes later
    "brief": recording((FIRST, 0, body(5, 1)), (FIRST + 1, 0, 2 * body(11, 2))),
    "single": recording((FIRST, 0, body(1))),
    "zeros": recording((FIRST, 0, ZEROS)),   # frames that are dropped, though the first gives the frame of reference
    "all lying": recording((FIRST, 0, wide(body(30, 1), range(30))), (FIRST + 1, 0, wide(body(30, 2), range(30)))),
}


def slow_authors(frames):
    """ST-GCN's array of 300 frames and two slots, cut and centred: a body's slot is its place in its frame's list."""
    array = np.zeros((300, 2, 25, 3))
    for t in range(min(len(frames), 300)):
        for slot in range(min(len(frames[t]), 2)):
            _, array[t, slot] = frames[t][slot]
    length = max(sum(np.linalg.norm(array[t, slot]) > 0 for t in range(300)) for slot in (0, 1))
    array = array[:length]
    together = np.linalg.norm(array[:, 1]) > 0
    centred = array.copy()
    for slot, axis in itertools.product((0, 1), range(3)):
        averaged = (0, 1) if together else (slot,)
        values = [array[t, other, joint, axis] for t in range(length) for other in averaged for joint in range(25)]
        centred[:, slot, :, axis] -= sum(values) / len(values)
    return centred.reshape(length, 150)


def slow_main_body(frames):
    """The frames (joints) of the body that Predict & Cluster's script keeps."""
    tracks = {}
    for number, joints in itertools.chain(*frames):
        tracks.setdefault(number, []).append(joints.astype(float))
    motion = {number: moved(track) for number, track in tracks.items()}
    candidates = [number for number, track in tracks.items() if len(track) >= 12] or list(tracks)
    for number in list(candidates) if len(tracks) > 1 else []:
        lying = [np.ptp(joints[:, 0]) > 0.8 * np.ptp(joints[:, 1]) for joints in tracks[number]]
        if len(candidates) == 1 or not any(lying):
            continue
        if sum(lying) / len(lying) >= 0.69754:
            candidates.remove(number)
        else:
            upright = [joints for joints, noise in zip(tracks[number], lying, strict=True) if not noise]
            motion[number] = min(motion[number], moved(upright))
    return tracks[max(candidates, key=lambda number: motion[number])]


def moved(track):
    return sum(np.var([joints[:, axis] for joints in track]) for axis in range(3))


def slow_predict_cluster(frames):
    track = slow_main_body(frames)
    turned = slow_view_invariant(track)[[(joints != 0).all() for joints in track]]
    return slow_thin_out(slow_scale(turned)).reshape(-1, 75)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("pipeline", "slow"), [("authors", slow_authors), ("predict_cluster", slow_predict_cluster)])
def test_pipelines_against_slow_ones(name, pipeline, slow):
    found = ntu.PIPELINES[pipeline](ntu.parse(text(CASES[name], numbers=".9g")))
    np.testing.assert_allclose(found, slow(CASES[name]), rtol=0, atol=1e-6)


FILES = {                     # two training and two test subjects, all cameras; the last one is among the missing
    "S001C001P001R001A001": recording((FIRST, 0, body(1))), "S001C002P001R001A050": TWO, "S001C003P001R001A060": COMING,
    "S002C001P003R001A002": AGAIN, "S002C002P003R002A001": CROWD, "S002C003P006R001A003": LONG,
    "S017C001P038R001A004": ONE, "S017C002P038R002A004": GHOST, "S017C003P040R001A050": SITTING,
    "S001C002P005R002A008": [[], []],
}
USABLE = sorted(FILES.keys() - {"S001C002P005R002A008"})
FEW = {name: FILES[name] for name in sorted(FILES)[:5]}
SPLITS = {
    "xsub": {"train": {"subjects": [1, 5, 38]}, "test": {"subjects": [3, 6, 40]},
             "expect": {"train": 6, "test": 4}, "kept": {"train": 5, "test": 4}},
    "xview": {"train": {"views": [2, 3]}, "test": {"views": [1]},
              "expect": {"train": 7, "test": 3}, "kept": {"train": 6, "test": 3}},
}


@pytest.fixture
def distribution(folders, declare):
    """Writes files as the official folder or zip, declares them as the whole of `ntu`, and returns the data root."""
    declare("ntu", splits=SPLITS)
    (folders / "data_manifests" / "ntu_missing.txt").write_text("S001C002P005R002A008\nS001C002P006R001A008\n")

    def write(files=FILES, packed=False):
        place, texts = folders / "data" / "ntu", {f"{name}.skeleton": text(frames) for name, frames in files.items()}
        if packed:
            write_zip(place / "nturgbd_skeletons_s001_to_s017.zip", texts, "nturgb+d_skeletons")
        else:
            write_folder(place / "nturgb+d_skeletons", texts)
        return folders / "data"

    return write


@pytest.mark.parametrize(("packed", "pipeline"), [(False, "authors"), (True, "predict_cluster")])
def test_prepare_and_load(distribution, packed, pipeline):
    root = distribution(packed=packed)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    prepared = ntu.source(pipeline=pipeline).prepare()
    loaded = data.load("ntu", pipeline=pipeline)
    assert prepared.names == USABLE and not prepared.bad and loaded.name == "ntu"
    for index, name in enumerate(USABLE):
        expected = ntu.PIPELINES[pipeline](ntu.parse(text(FILES[name]))).astype(np.float32)
        assert loaded.lengths[index] == len(expected)
        np.testing.assert_array_equal(loaded.sequences[index, : len(expected)], expected)
        assert (loaded.sequences[index, len(expected) :] == 0).all()
    assert loaded.labels.tolist() == [int(name[-3:]) - 1 for name in USABLE]
    assert loaded.views.tolist() == [int(name[5:8]) for name in USABLE]
    assert loaded.subjects.tolist() == [int(name[9:12]) for name in USABLE]
    assert loaded.train.tolist() == [name[9:12] in ("001", "038") for name in USABLE]
    assert torch.equal(loaded.test, ~loaded.train)
    assert max(max(bone) for bone in loaded.bones) == loaded.frames.shape[1] // 3 - 1
    across = data.load("ntu", pipeline=pipeline, protocol="xview")
    assert across.train.tolist() == [name[5:8] != "001" for name in USABLE]
    assert across.digest != loaded.digest and torch.equal(across.frames, loaded.frames)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_examples_stand_upright_one_per_action(distribution):
    distribution()
    ntu.source().prepare()
    shown, bones = data.examples("ntu", pipeline="default")
    assert list(shown) == ["drink water", "brush hair", "punch", "walk apart"]
    expected = ntu.PIPELINES["authors"](ntu.parse(text(TWO)))
    expected = expected.reshape(len(expected), -1, 3)[..., [0, 2, 1]]
    np.testing.assert_allclose(shown["punch"], expected, atol=1e-6)
    assert max(itertools.chain(*bones)) == expected.shape[1] - 1


def test_without_distribution_or_preparation_what_to_do_is_said(distribution):
    with pytest.raises(FileNotFoundError, match=r"nturgbd_skeletons_s001_to_s017\.zip .*rose1\.ntu\.edu\.sg"):
        ntu.source().prepare()
    distribution()
    with pytest.raises(FileNotFoundError, match="`repro data prepare ntu --subset --pipeline predict_cluster` first"):
        data.load("ntu", pipeline="predict_cluster", subset=True)


def test_an_incomplete_distribution_is_a_subset_or_an_error(distribution, repro):
    distribution(FEW)
    for refused in (ntu.source, lambda: data.load("ntu")):
        with pytest.raises(ValueError, match=r"protocol xsub: train 3, test 1; expected train 5, .*--subset"):
            refused()
    _, printed, _ = repro("data", "prepare", "ntu", "--subset", "--workers", "1")
    assert "4 recordings" in printed and "xsub: 3 train / 1 test" in printed
    loaded = data.load("ntu", subset=True)
    assert loaded.name == "ntu (subset)" and len(loaded.lengths) == 4
    with pytest.raises(ValueError, match=r"batch=32 exceeds the 3 training sequences of ntu \(subset\)"):
        Pretrainer(paper("ntu", "CE"), loaded, 0, CPU)
    (manifest.data_root() / "ntu" / "nturgb+d_skeletons" / "S002C001P003R001A002.skeleton").unlink()
    ntu.source(subset=True).prepare()
    with pytest.raises(ValueError, match=r"ntu \(subset\): none of its recordings belongs to test"):
        data.load("ntu", subset=True)


def test_files_that_are_none_of_the_distribution_are_left_out(distribution):
    folder = distribution() / "ntu" / "nturgb+d_skeletons"
    sound = ntu.source().prepare()
    for name in ("README", "a.npy", "S018C001P001R001A001.skeleton", "S001C001P001R001A061.skeleton",
                 "S001C000P001R001A001.skeleton", "S001C001P001R001A001 (1).skeleton", "._S001C001P001R001A001"):
        (folder / name).write_bytes(b"")
    assert ntu.source().prepare().digests == sound.digests
    (folder / "more").mkdir()
    (folder / "more" / "S001C001P001R001A001.skeleton").write_bytes(text(ONE))
    with pytest.raises(ValueError, match="S001C001P001R001A001 is there twice"):
        ntu.source(subset=True)
