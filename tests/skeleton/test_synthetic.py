"""The bundled skeletons: the same numbers every time, bodies that keep together, what channels and cameras do."""

import itertools

import numpy as np
import pytest
import torch

from repro.skeleton import data, performers, synthetic

BUNDLED = "b588a5a975f40446e2a819c351b7f4a52ce2c9e70e0fdc430b2020aaf23b631e"


@pytest.fixture(scope="module")
def loaded():
    return data.load("synthetic")


def test_everybody_does_everything_before_every_camera(loaded):
    assert loaded.sequences.shape == (1200, 50, 60) and loaded.sequences.dtype == torch.float32
    assert loaded.sequences.isfinite().all() and loaded.sequences.abs().max() == 1
    found = zip(loaded.labels.tolist(), loaded.subjects.tolist(), loaded.views.tolist(), strict=True)
    assert sorted(found) == sorted(4 * [*itertools.product(range(10), range(1, 11), (1, 2, 3))])
    assert torch.equal(loaded.train, loaded.views < 3) and torch.equal(loaded.test, loaded.views == 3)
    assert list(performers.ACTIONS) == list(data.UCLA_ACTIONS) and len(loaded.actions) == 10
    assert loaded.digest == BUNDLED


@pytest.mark.parametrize("code", performers.ACTIONS)
def test_bones_keep_their_lengths_and_the_lower_foot_stands_still_on_the_floor(code):
    rng = np.random.default_rng(code)
    person = performers.Person(rng, left_handed=False)
    positions, _ = person.perform(code, rng)
    parents, joints = np.array(performers.BONES).T
    lengths = np.linalg.norm(positions[:, joints] - positions[:, parents], axis=-1)
    expected = np.linalg.norm(person.offsets[joints], axis=-1)
    np.testing.assert_allclose(lengths, np.broadcast_to(expected, lengths.shape), atol=1e-12)
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
    offsets = performers.Person(np.random.default_rng(0), left_handed=False).offsets
    places = []
    for degrees in (0, 20):
        angles = {name: np.full(3, np.radians(degrees * (name == channel))) for name in performers.CHANNELS}
        positions = performers.kinematics(angles, np.zeros(3), offsets)[0]
        places.append(positions[joint] - positions[0])
    assert sign * (places[1] - places[0])[axis] > 0.02


def test_camera_sees_a_point_where_it_is():
    for *pose, _ in synthetic.CAMERAS:
        seen = synthetic.to_camera(np.array([0, 0.8, 0]), *pose)
        np.testing.assert_allclose(seen, [0, 0, pose[-1]], atol=1e-12)
    points = np.array([[0.3, 0.8, 0], [0, 1.8, 0], [0, 0.8, 1]])
    seen = synthetic.to_camera(points, 0, 0, 2)
    np.testing.assert_allclose(seen, [[-0.3, 0, 2], [0, 1, 2], [0, 0, 1]], atol=1e-12)
