import numpy as np
import pytest
import torch
from drawn import assert_legible
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from repro.report.embedding_plane import Embedding, embedding_planes, neighbours, principal_plane
from repro.report.style import COLUMN


def readouts(count=60, d=7, seed=0):
    generator = torch.Generator().manual_seed(seed)
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


def test_the_plane_does_not_flip_with_the_order_of_points():
    points = readouts()
    assert torch.allclose(principal_plane(points.flip(0)).points.flip(0), principal_plane(points).points)


def test_collapsed_points_have_a_plane():
    plane = principal_plane(torch.ones(4, 3))
    assert not plane.points.any() and not plane.shares.any()


def test_neighbours_are_those_of_scikit_learn():
    points = readouts()
    finder = NearestNeighbors(metric="cosine", algorithm="brute").fit(points.double().numpy())
    for chosen in range(0, 60, 7):
        nearest = finder.kneighbors(points[[chosen]].double().numpy(), 7)[1][0]
        assert nearest[0] == chosen
        assert neighbours(points, chosen, 6).tolist() == nearest[1:].tolist()


def test_of_equal_points_the_earlier_are_nearer_and_there_are_no_more_than_others():
    assert neighbours(torch.ones(4, 2), 1, 2).tolist() == [0, 2]
    assert neighbours(torch.ones(4, 2), 1, 20).tolist() == [0, 2, 3]
    assert neighbours(torch.ones(1, 2), 0, 5).tolist() == []


def drawn(names, count=60, chosen=3, of="action"):
    points, groups = readouts(count), torch.arange(count) % len(names)
    panels = [Embedding(f"run {number}", principal_plane(points.roll(number, 1)), neighbours(points, chosen, 5))
              for number in range(2)]
    return embedding_planes(panels, groups, names, chosen, of), panels, groups


def test_every_point_is_drawn_once_and_the_neighbours_are_ringed():
    figure, panels, groups = drawn(["sit", "stand", "walk"])
    for axes, panel in zip(figure.axes, panels, strict=True):
        *members, rings, star = (np.asarray(each.get_offsets()) for each in axes.collections)
        np.testing.assert_allclose(np.concatenate(members), panel.plane.points[groups.argsort(stable=True)])
        np.testing.assert_allclose(rings, panel.plane.points[panel.neighbours])
        np.testing.assert_allclose(star, panel.plane.points[[3]])
        assert len(axes.lines) == 5
        alike = sum(int(groups[each] == groups[3]) for each in panel.neighbours)
        assert f"{alike} of 5 neighbours: same action" in axes.get_title()
        assert f"1. principal component ({100 * panel.plane.shares[0]:.0f} % of variance)" == axes.get_xlabel()


def test_groups_differ_in_colour_or_marker():
    figure, *_ = drawn([f"action {number}" for number in range(60)], count=120)
    members = figure.axes[0].collections[:60]
    looks = {(tuple(each.get_facecolor()[0]), each.get_paths()[0].vertices.tobytes()) for each in members}
    assert len(looks) == 60
    assert not figure.legends


def test_it_is_legible():
    names = ["pick up with one hand", "pick up with two hands", "drop trash", "walk around", "sit down", "stand up",
             "donning", "doffing", "throw", "carry"]
    figure, *_ = drawn(names)
    figure.draw_without_rendering()
    assert_legible(figure, 2 * COLUMN)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*names, "chosen sequence", "neighbour"]
