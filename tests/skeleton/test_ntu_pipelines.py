"""The pipelines of NTU RGB+D against slow ones."""

import numpy as np
import pytest
from ntu_files import AGAIN, COMING, CROWD, FIRST, GHOST, LONG, ONE, SITTING, TWO, body, recording, still, text, wide

from repro.skeleton import ntu, ntu_prepare, pipelines

HANDED_ON = recording((FIRST, 0, body(20, 1)), (FIRST + 1, 20, body(25, 2)))       # one person under a new id
LEAVING = recording((FIRST, 0, body(9, 1)), (FIRST + 1, 0, body(20, 2)))           # the first of two leaves first
LYING = recording((FIRST, 0, still(43, 1)), (FIRST + 1, 0, wide(body(43, 2), range(30))))          # 69.77 % of it
MOVING_WIDE = np.concatenate([still(30, 2), wide(body(10, 9), range(10))])
PARTLY = recording((FIRST, 0, body(40, 5)), (FIRST + 1, 0, MOVING_WIDE))
OVERLAPPING = recording((FIRST, 0, body(10, 1)), (FIRST + 1, 5, body(15, 2)))
ONE_FRAME_TOGETHER = recording((FIRST, 0, body(30, 1)), (FIRST + 1, 29, body(31, 2)))
SWAPPED = [bodies[:: 1 if t < 4 else -1] for t, bodies in enumerate(TWO)]
LISTED_FIRST = recording((FIRST + 1, 4, body(6, 2)), (FIRST, 0, body(10, 1)))      # who comes later
LAST_TWO = recording((FIRST, 0, body(4, 1)), (FIRST + 1, 0, body(9, 2)), (FIRST + 2, 0, body(9, 3)))
SAME_ID = [[(FIRST, first), (FIRST + 1, second), (FIRST, third)]
           for first, second, third in zip(body(20, 1), body(20, 2), body(20, 3), strict=True)]
NO_IDS = [[(0, joints) for _, joints in bodies] for bodies in LAST_TWO]
BRIEF = recording((FIRST, 0, body(5, 1)), (FIRST + 1, 0, 2 * body(11, 2)))
ALL_LYING = recording((FIRST, 0, wide(body(30, 1), range(30))), (FIRST + 1, 0, wide(body(30, 2), range(30))))
CASES = {"one": ONE, "two": TWO, "coming": COMING, "again": AGAIN, "crowd": CROWD, "long": LONG, "leaving": LEAVING,
         "handed on": HANDED_ON, "ghost": GHOST, "lying": LYING, "sitting": SITTING, "partly": PARTLY, "brief": BRIEF,
         "all lying": ALL_LYING, "overlapping": OVERLAPPING, "one frame together": ONE_FRAME_TOGETHER,
         "swapped": SWAPPED, "listed first": LISTED_FIRST, "last two": LAST_TWO, "same id": SAME_ID,
         "no ids": NO_IDS}


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
    for slot, axis in ((slot, axis) for slot in (0, 1) for axis in range(3)):
        averaged = (0, 1) if together else (slot,)
        values = [array[t, other, joint, axis] for t in range(length) for other in averaged for joint in range(25)]
        centred[:, slot, :, axis] -= sum(values) / len(values)
    return centred.reshape(length, 150)


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


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pipeline", ["authors", "predict_cluster"])
def test_pipelines_against_slow_ones(name, pipeline):
    function, features = ntu_prepare.PIPELINES[pipeline]
    found = function(ntu.parse(text(CASES[name], numbers=".9g")))
    expected = {"authors": slow_authors, "predict_cluster": slow_predict_cluster}[pipeline](CASES[name])
    assert found.shape[1] == features
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "length"), [("one", 5), ("two", 6), ("again", 5), ("long", 300), ("handed on", 45),
                                              ("leaving", 20), ("coming", 8), ("overlapping", 20),
                                              ("one frame together", 60), ("swapped", 6), ("last two", 9)])
def test_lengths_of_the_authors_sequences(name, length):
    assert len(pipelines.authors(ntu.parse(text(CASES[name])))) == length


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
