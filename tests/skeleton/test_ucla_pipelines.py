"""The pipelines of NW-UCLA, step by step, against slow ones and by what they keep."""

import numpy as np
import pytest
from ucla_files import body, slow_view_invariant

from repro.skeleton import pipelines


@pytest.mark.parametrize(("length", "seed"), [(1, 0), (2, 1), (37, 2)])
def test_view_transform_against_the_slow_one(length, seed):
    frames = body(length, seed)
    np.testing.assert_allclose(pipelines.view_invariant(frames), slow_view_invariant(frames), rtol=0, atol=1e-12)


def test_view_transform_is_a_reflection():
    frames = body(2)
    frames[1, :3] = frames[0, 0] + np.eye(3)                 # images of the axes: the rows of R
    rotation = pipelines.view_invariant(frames)[1, :3]
    assert np.linalg.det(rotation) == pytest.approx(-1, abs=1e-12)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)


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
        assert scaled[..., axis].min() == -1 and scaled[..., axis].max() == 1


def test_scale_of_a_flat_recording_raises():
    with pytest.raises(ValueError, match="all joints agree in coordinate 1"):
        pipelines.scale(body(12) * [1, 0, 1])


@pytest.mark.parametrize(("length", "step", "kept"), [
    (1, 1, 1), (49, 1, 49), (50, 1, 50), (51, 1, 50), (99, 1, 50), (100, 2, 50), (149, 2, 50), (150, 3, 50),
    (201, 4, 50),
])
def test_thin_out_takes_every_floor_th_frame(length, step, kept):
    frames = np.arange(length)
    np.testing.assert_array_equal(pipelines.thin_out(frames), [step * index for index in range(kept)])


@pytest.mark.parametrize("length", [2, 11, 50, 51, 149])
def test_interpolate_against_numpy(length):
    frames = body(length)
    moments = np.linspace(0, length - 1, 50)
    expected = np.stack([
        np.interp(moments, np.arange(length), column) for column in frames.reshape(length, -1).T
    ], axis=1).reshape(50, 20, 3)
    np.testing.assert_allclose(pipelines.interpolate(frames), expected, rtol=0, atol=1e-12)
