"""The explorer's pictures, read back as pixels and points; projections, planes and neighbours by their definitions."""

import io

import numpy as np
import pytest
import torch
from drawn import assert_legible
from pandas import DataFrame
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from repro.report.style import COLUMN
from repro.report.views import (
    Animation,
    Embedding,
    Panel,
    embedding_planes,
    neighbours,
    places,
    principal_plane,
    seen_from,
    training_curves,
)

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


@pytest.mark.parametrize("azimuth", [0, 30, 90, -45])
def test_seen_from_turns_about_the_vertical(azimuth):
    sequence, angle = walk(), np.radians(azimuth)
    x, y, z = sequence.transpose(2, 0, 1)
    turned = seen_from(sequence, azimuth)
    np.testing.assert_allclose(turned[..., 0], x * np.cos(angle) + y * np.sin(angle))
    np.testing.assert_array_equal(turned[..., 1], z)
    np.testing.assert_array_equal(seen_from(sequence.reshape(4, 9), azimuth), turned)
    np.testing.assert_allclose(seen_from(sequence, 90, up=1), sequence[..., [2, 1]], atol=1e-12)


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
    heights, columns = ([place[axis].mean() for place in places] for axis in (0, 1))
    np.testing.assert_allclose(np.diff(heights), np.diff(heights)[0], atol=1)   # pixels count downwards
    np.testing.assert_allclose(np.diff(columns), -np.diff(heights), atol=1)     # to one scale
    assert np.diff(heights)[0] < -10
    widths = [np.ptp(place[1]) for place in places]
    np.testing.assert_allclose(widths, -2 * np.diff(heights)[0], rtol=0.1)      # 0.5 long, while a step is 0.25


def test_frames_do_not_depend_on_those_before_and_end_at_the_nearest():
    panels = [Panel("a", seen_from(walk(), 0)), Panel("b", seen_from(walk(seed=1), 0))]
    onwards = Animation(panels, BONE, "m")
    pictures = [onwards.picture(frame) for frame in range(4)]
    assert len(set(pictures)) == 4 == onwards.frames
    assert Animation(panels, BONE, "m").picture(3) == pictures[3] == onwards.picture(3) == onwards.picture(9)
    assert onwards.picture(-1) == pictures[0]


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
    picture = Animation([small, large], BONE, "m").picture(0)
    _, columns = red(picture)
    middle = pixels(picture).shape[1] / 2
    left, right = (np.ptp(columns[side]) for side in (columns < middle, columns > middle))
    assert left == pytest.approx(right, abs=2)


@pytest.mark.parametrize("counts", [(3, 4), (0,), ()])
def test_panels_have_equally_many_frames(counts):
    panels = [Panel("a", np.zeros((count, 2, 2))) for count in counts]
    with pytest.raises(ValueError, match="they should all have as many, at least one"):
        Animation(panels, BONE, "m")


def test_a_film_has_every_frame_and_begins_again():
    animation = Animation([Panel("a", rising(), colour="red")], BONE, "m")
    film = Image.open(io.BytesIO(animation.film(interval=90)))
    assert (film.format, film.n_frames, film.info["loop"], film.info["duration"]) == ("PNG", 5, 0, 90)
    for frame in range(5):
        film.seek(frame)
        np.testing.assert_array_equal(np.asarray(film.convert("RGB")), pixels(animation.picture(frame)))


def readouts(count=60, d=7):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, d, generator=generator) * torch.arange(1, d + 1) + 3


@pytest.mark.parametrize("shape", [(60, 7), (5, 12), (2, 2)])
def test_the_plane_is_that_of_scikit_learn(shape):
    points = readouts(*shape)
    expected = PCA(2, svd_solver="full").fit(points.double().numpy())
    plane = principal_plane(points)
    np.testing.assert_allclose(plane.shares, expected.explained_variance_ratio_, atol=1e-12)
    for ours, theirs in zip(plane.points.T.numpy(), expected.transform(points.double().numpy()).T, strict=True):
        sign = np.sign(ours @ theirs) or 1
        np.testing.assert_allclose(sign * ours, theirs, atol=1e-10 * np.abs(points.numpy()).max())
    centred = (points.double() - points.double().mean(0)).numpy()
    weights = np.linalg.lstsq(centred, plane.points.numpy(), rcond=1e-9)[0][:, plane.shares.numpy() > 1e-9]
    assert (weights.max(0) >= -weights.min(0)).all()  # the largest weight counts upwards


def test_collapsed_points_have_a_plane():
    plane = principal_plane(torch.ones(4, 3))
    assert not plane.points.any() and not plane.shares.any()


def test_neighbours_are_those_of_scikit_learn():
    points = readouts()
    finder = NearestNeighbors(metric="cosine", algorithm="brute").fit(points.double().numpy())
    for chosen in range(0, 60, 7):
        nearest = finder.kneighbors(points[[chosen]].double().numpy(), 7)[1][0]
        assert [chosen, *neighbours(points, chosen, 6).tolist()] == nearest.tolist()


@pytest.mark.parametrize(("points", "count", "nearest"), [(4, 2, [0, 2]), (4, 20, [0, 2, 3]), (2, 5, [0])])
def test_of_equal_points_the_earlier_are_nearer_and_there_are_no_more_than_others(points, count, nearest):
    assert neighbours(torch.ones(points, 2), 1, count).tolist() == nearest


def drawn(names, count=60, chosen=3):
    points, groups = readouts(count), torch.arange(count) % len(names)
    panels = [Embedding(f"run {number}", principal_plane(points.roll(number, 1)), neighbours(points, chosen, 5))
              for number in range(2)]
    return embedding_planes(panels, groups, names, chosen, "action"), panels, groups


def test_every_point_is_drawn_once_and_the_neighbours_are_ringed():
    figure, panels, groups = drawn(["sit", "stand", "walk"])
    for axes, panel in zip(figure.axes, panels, strict=True):
        *members, rings, star = (np.asarray(collection.get_offsets()) for collection in axes.collections)
        np.testing.assert_allclose(np.concatenate(members), panel.plane.points[groups.argsort(stable=True)])
        np.testing.assert_allclose(rings, panel.plane.points[panel.neighbours])
        np.testing.assert_allclose(star, panel.plane.points[[3]])
        assert len(axes.lines) == 5
        alike = sum(int(groups[neighbour] == groups[3]) for neighbour in panel.neighbours)
        assert f"{alike} of 5 neighbours: same action" in axes.get_title()
        assert f"1. principal component ({100 * panel.plane.shares[0]:.0f} % of variance)" == axes.get_xlabel()


def test_places_are_those_of_the_points_in_a_picture():
    """Each panel has one star, the largest dark thing in it: its pixels lie around the place of the chosen point."""
    figure, panels, _ = drawn(["sit", "stand"])
    for axes in figure.axes:
        axes.lines[0].remove()
        for _ in range(3):
            axes.collections[0].remove()  # points and rings
        for line in [*axes.lines]:
            line.remove()
    file = io.BytesIO()
    figure.savefig(file, dpi=150)
    found = places(figure, panels, 150)
    assert found.shape == (2, 60, 2)
    dark = pixels(file.getvalue()).max(2) < 60
    for x, y in found[:, 3].round().astype(int):
        assert dark[y - 1 : y + 2, x - 1 : x + 2].all() and not dark[y - 15 : y + 16, x].all()


def test_curves_of_two_cells_beside_one_another():
    log = DataFrame({"step": [1, 5, 9], "CE": [3.0, 2.0, 1.5], "loss": [3.0, 2.0, 1.5]})
    probes = DataFrame({"step": [5, 9], "linear": [40.0, 60.0]})
    figure = training_curves([("CE, seed 0", log, probes), ("random", DataFrame(), DataFrame())])
    first, second, measured, unmeasured = figure.axes
    assert [axes.get_title() for axes in (first, second)] == ["CE, seed 0", "random"]
    assert [line.get_label() for line in first.lines] == ["CE", "loss"]
    np.testing.assert_array_equal(first.lines[0].get_xydata(), log[["step", "CE"]])
    np.testing.assert_array_equal(measured.lines[0].get_xydata(), probes)
    for axes in (second, unmeasured):
        assert not axes.lines and axes.texts[0].get_text() == "nothing was logged"
    assert len(training_curves([("CE", log, DataFrame())]).axes) == 1
    figure.draw_without_rendering()
    assert_legible(figure, 2 * COLUMN)


def test_groups_differ_in_colour_or_marker():
    figure, *_ = drawn([f"action {number}" for number in range(60)], count=120)
    members = figure.axes[0].collections[:60]
    looks = {(tuple(points.get_facecolor()[0]), points.get_paths()[0].vertices.tobytes()) for points in members}
    assert len(looks) == 60 and not figure.legends


def test_it_is_legible():
    names = ["pick up with one hand", "pick up with two hands", "drop trash", "walk around", "sit down", "stand up",
             "donning", "doffing", "throw", "carry"]
    figure, *_ = drawn(names)
    figure.draw_without_rendering()
    assert_legible(figure, 2 * COLUMN)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*names, "chosen sequence", "neighbour"]
