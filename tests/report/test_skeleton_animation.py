import io

import numpy as np
import pytest
from PIL import Image

from repro.report.skeleton_animation import Animation, Panel, seen_from

BONE = [(0, 1)]


def walk(frames=4, joints=3, seed=0):
    return np.random.default_rng(seed).normal(size=(frames, joints, 3))


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(int)


def red(picture):
    """Rows and columns of the pixels that are much more red than blue."""
    image = pixels(picture)
    return np.nonzero(image[..., 0] - image[..., 2] > 100)


def rising(count=5):
    """A horizontal bone that rises and moves to the right."""
    steps = np.linspace(0, 1, count)
    return np.stack([np.stack([steps, steps], 1), np.stack([steps + 0.5, steps], 1)], 1)


def test_seen_from_turns_about_the_vertical():
    sequence = walk()
    for azimuth in (0, 30, 90, -45):
        angle = np.radians(azimuth)
        turned = seen_from(sequence, azimuth)
        for frame in range(4):
            for joint in range(3):
                x, y, z = sequence[frame, joint]
                np.testing.assert_allclose(turned[frame, joint], [x * np.cos(angle) + y * np.sin(angle), z])
    np.testing.assert_allclose(seen_from(sequence, 90, up=1), sequence[..., [2, 1]], atol=1e-12)


def test_flat_and_unflattened_sequences_look_alike():
    sequence = walk()
    np.testing.assert_array_equal(seen_from(sequence.reshape(4, 9), 20), seen_from(sequence, 20))


def test_a_body_that_is_not_there_is_not_drawn():
    sequence = walk()
    sequence[:, 2] = 0
    sequence[0, 0] = 0                                                # a joint at the origin once is one
    seen = seen_from(sequence, 0)
    assert np.isnan(seen[:, 2]).all() and not np.isnan(seen[:, :2]).any()
    animation = Animation([Panel("half", seen)], [(0, 1), (0, 2)], "m")
    assert animation.picture(0) != animation.picture(1)


def test_the_skeleton_moves_as_its_joints_do():
    animation = Animation([Panel("rising", rising(), "#ff0000")], BONE, "m")
    places = [red(animation.picture(frame)) for frame in range(5)]
    assert all(len(rows) for rows, _ in places)
    heights, columns = ([each[axis].mean() for each in places] for axis in (0, 1))
    np.testing.assert_allclose(np.diff(heights), np.diff(heights)[0], atol=1)   # pixels count downwards
    np.testing.assert_allclose(np.diff(columns), -np.diff(heights), atol=1)     # to one scale
    assert np.diff(heights)[0] < -10
    widths = [np.ptp(each[1]) for each in places]
    np.testing.assert_allclose(widths, -2 * np.diff(heights)[0], rtol=0.1)      # 0.5 long, while a step is 0.25


def test_frames_do_not_depend_on_those_before():
    panels = [Panel("a", seen_from(walk(), 0)), Panel("b", seen_from(walk(seed=1), 0))]
    onwards = Animation(panels, BONE, "m")
    pictures = [onwards.picture(frame) for frame in range(4)]
    assert len(set(pictures)) == 4
    assert Animation(panels, BONE, "m").picture(3) == pictures[3] == onwards.picture(3)
    assert {pixels(picture).shape for picture in pictures} == {pixels(pictures[0]).shape}


def test_beyond_the_ends_the_nearest_frame_is_shown():
    animation = Animation([Panel("a", seen_from(walk(), 0))], BONE, "m")
    assert animation.frames == 4
    assert animation.picture(9) == animation.picture(3) and animation.picture(-1) == animation.picture(0)


def test_what_stands_still_stays_the_same():
    still = Animation([Panel("still", seen_from(np.repeat(walk(1), 3, axis=0), 0))], BONE, "m")
    assert still.picture(0) == still.picture(2)


def test_a_point_and_a_single_frame_can_be_drawn():
    found = pixels(Animation([Panel("point", np.ones((1, 2, 2)))], BONE, "m").picture(0))
    assert np.ptp(found) > 0  # axes, though there is no extent to scale them by


def test_the_skeleton_behind_is_drawn_too_and_paler():
    joints = rising()
    alone, together = (pixels(Animation([Panel("a", joints, "#ff0000", behind)], BONE, "m").picture(0))
                       for behind in (None, joints[::-1]))
    rows, columns, _ = np.nonzero(alone != together)
    front, _ = red(Animation([Panel("a", joints, "#ff0000")], BONE, "m").picture(0))
    assert len(rows) and rows.max() < front.min()                     # where the last frame is: higher up
    assert (together[rows, columns].min(1) > 150).all()


def test_a_larger_skeleton_has_a_scale_of_its_own():
    small, large = Panel("a", rising(), "#ff0000"), Panel("b", 10 * rising(), "#ff0000")
    _, columns = red(Animation([small, large], BONE, "m").picture(0))
    middle = pixels(Animation([small, large], BONE, "m").picture(0)).shape[1] / 2
    assert (columns < middle).any() and (columns > middle).any()
    left, right = (np.ptp(columns[side]) for side in (columns < middle, columns > middle))
    assert left == pytest.approx(right, abs=2)


@pytest.mark.parametrize("counts", [(3, 4), (0,), ()])
def test_panels_have_equally_many_frames(counts):
    panels = [Panel("a", np.zeros((count, 2, 2))) for count in counts]
    with pytest.raises(ValueError, match="they should all have as many, at least one"):
        Animation(panels, BONE, "m")
