import itertools

import numpy as np
import pytest
import torch

from repro.skeleton import actions, data, kinematics, performers, synthetic


@pytest.fixture(scope="module")
def loaded():
    return data.load("synthetic")


@pytest.fixture(scope="module")
def generated():
    return synthetic.generate()


def take(code, seed=0, left_handed=False):
    rng = np.random.Generator(np.random.PCG64(seed))
    person = performers.draw_person(rng, left_handed=left_handed)
    label = list(actions.ACTIONS).index(code)
    positions, seconds = performers.perform(actions.ACTIONS[code], person, person.manner[label], rng)
    return person, positions, seconds


def still(**degrees):
    """Three frames of a person of median build in one posture, facing +z."""
    offsets = np.zeros((20, 3))
    for joint, offset in kinematics.HALF.items():
        offsets[joint] = offset
        if kinematics.MIRRORED[joint] != joint:
            offsets[kinematics.MIRRORED[joint]] = np.array(offset) * (-1, 1, 1)
    angles = {channel: np.full(3, np.radians(degrees.get(channel, 0))) for channel in actions.CHANNELS}
    return kinematics.kinematics(angles, np.zeros(3), offsets)[0]


def bone_lengths(positions):
    parents, joints = np.array(kinematics.BONES).T
    return np.linalg.norm(positions[..., joints, :] - positions[..., parents, :], axis=-1)


def test_layout(loaded):
    assert loaded.sequences.shape == (1200, 50, 60) and loaded.sequences.dtype == torch.float32
    assert loaded.sequences.isfinite().all() and loaded.sequences.abs().max() == 1
    assert loaded.train.sum() == 800 and loaded.test.sum() == 400 and not (loaded.train & loaded.test).any()
    assert list(actions.ACTIONS) == list(data.UCLA_ACTIONS) and len(loaded.actions) == 10


def test_everybody_does_everything_before_every_camera(loaded):
    found = list(zip(loaded.labels.tolist(), loaded.subjects.tolist(), loaded.views.tolist(), strict=True))
    assert set(found) == set(itertools.product(range(10), range(1, 11), (1, 2, 3))) and len(found) == 1200
    assert set(loaded.views[loaded.train].tolist()) == {1, 2} and set(loaded.views[loaded.test].tolist()) == {3}


def test_lengths_spread_like_those_of_nw_ucla(generated):
    lengths, views = generated["lengths"], generated["views"]
    assert lengths.min() >= 11 and lengths.max() <= 150 and 31 <= np.median(lengths) <= 40
    assert 0.15 < (lengths > 50).mean() < 0.3
    assert np.median(lengths[views == 1]) > 1.2 * np.median(lengths[views == 2])


def test_same_numbers_every_time(loaded, generated):
    again = synthetic.generate()
    assert all(np.array_equal(again[key], generated[key]) for key in generated)
    assert loaded.digest.startswith("b588a5a975f4")


@pytest.mark.parametrize("code", list(actions.ACTIONS))
def test_bones_keep_their_lengths(code):
    person, positions, _ = take(code, seed=code)
    lengths = bone_lengths(positions)
    np.testing.assert_allclose(lengths, np.broadcast_to(lengths[0], lengths.shape), atol=1e-12)
    np.testing.assert_allclose(lengths[0], bone_lengths(np.zeros((20, 3)) + accumulated(person.offsets)), atol=1e-12)


def accumulated(offsets):
    """Rest positions, every joint the sum of the offsets from the hip centre to it."""
    positions = np.zeros((20, 3))
    for parent, joint in kinematics.BONES:
        positions[joint] = positions[parent] + offsets[joint]
    return positions


@pytest.mark.parametrize("code", list(actions.ACTIONS))
def test_the_lower_foot_stands_still_on_the_floor(code):
    _, positions, _ = take(code, seed=code)
    ankles = positions[:, [14, 18]]
    np.testing.assert_allclose(ankles[..., 1].min(axis=1), 0.09, atol=1e-12)
    lower = ankles[:-1, :, 1].argmin(axis=1)
    step = np.diff(ankles, axis=0)[np.arange(len(lower)), lower]
    np.testing.assert_allclose(step[:, [0, 2]], 0, atol=1e-12)


@pytest.mark.parametrize(("channel", "joint", "axis", "sign"), [
    ("pelvis", 3, 2, 1), ("spine", 3, 2, 1), ("neck", 3, 2, 1), ("lean", 3, 0, -1), ("twist", 4, 2, -1),
    ("main_raise", 9, 2, 1), ("other_raise", 5, 2, 1), ("main_spread", 9, 0, -1), ("other_spread", 5, 0, 1),
    ("main_elbow", 10, 2, 1), ("other_elbow", 6, 2, 1), ("main_thigh", 17, 2, 1), ("other_thigh", 13, 2, 1),
    ("main_knee", 18, 2, -1), ("other_knee", 14, 2, -1),
])
def test_channels_move_joints_the_way_they_say(channel, joint, axis, sign):
    rest, moved = still(), still(**{channel: 20})
    change = (moved[joint] - moved[0]) - (rest[joint] - rest[0])
    assert sign * change[axis] > 0.02


def test_camera_sees_a_point_where_it_is():
    target = np.array([0, 0.8, 0])
    for *pose, _ in synthetic.CAMERAS:
        np.testing.assert_allclose(synthetic.to_camera(target, *pose), [0, 0, pose[-1]], atol=1e-12)
    points = np.array([[0.3, 0.8, 0], [0, 1.8, 0], [0, 0.8, 1]])
    seen = synthetic.to_camera(points, 0, 0, 2)
    np.testing.assert_allclose(seen, [[-0.3, 0, 2], [0, 1, 2], [0, 0, 1]], atol=1e-12)
