import dataclasses
import math

import numpy as np
import pytest
import torch

from repro.papers.taxonomy.sequences import augmented, drawn, outlined, vertical
from repro.skeleton.data import load
from repro.skeleton.pretrain import augment
from repro.skeleton.recipe import paper


@pytest.fixture(scope="module")
def data():
    return load("synthetic")


@pytest.mark.parametrize("most", [7, 10_000])
def test_sequences_are_drawn_and_said_by_action(data, most):
    frames, lengths, shown = drawn(data, most)
    assert len(frames) == len(lengths) == len(shown) == min(most, len(data.lengths))
    assert shown["action"].map(data.actions.index).is_monotonic_increasing
    places = {data.sequences[row, : data.lengths[row]].numpy().tobytes(): row for row in range(len(data.lengths))}
    for row, (action, camera, said) in enumerate(shown.itertuples(index=False)):
        place = places.pop(frames[row, : lengths[row]].numpy().tobytes())
        assert (action, camera) == (data.actions[data.labels[place]], str(data.views[place].item()))
        assert said == f"{action}, camera {camera}, number {row}"


def test_two_views_are_drawn_as_training_draws_them(data):
    sequence, recipe = data.frames[: data.lengths[0]], paper("synthetic", "CE")
    pair = augmented(sequence, recipe, seed=0)
    lengths, generator = torch.full((2,), len(sequence)), torch.Generator().manual_seed(0)
    options = {"flip": recipe.flip, "shear": recipe.shear, "generator": generator}
    assert pair.equal(augment(torch.stack([sequence, sequence]), lengths, **options)) and not pair[0].equal(pair[1])
    assert not augmented(sequence, recipe, seed=1)[0].equal(pair[0])
    still = dataclasses.replace(recipe, flip=0.0, shear=0.0)
    torch.testing.assert_close(augmented(sequence, still, seed=0)[1], sequence)


@pytest.mark.parametrize(("dataset", "pipeline", "up"), [
    ("ucla", "default", 2), ("synthetic", "unscaled", 2), ("ucla", "raw", 1), ("ntu", "default", 1),
    ("ntu", "authors", 1), ("ntu", "predict_cluster", 2),
])
def test_the_vertical_is_that_of_the_pipeline(dataset, pipeline, up):
    assert vertical(paper(dataset, "AD", pipeline=pipeline)) == up


@pytest.mark.parametrize(("turn", "up"), [(0, 2), (30, 2), (90, 1), (-45, 2)])
def test_a_frame_holds_the_bones_of_every_panel_turned_about_the_vertical_with_gaps_between_them(turn, up):
    draws = torch.Generator().manual_seed(0)
    panels = {name: scale * torch.randn(5, 12, generator=draws) for name, scale in (("a", 1), ("b", 10))}
    panels["a"][:, 3:6] = 0  # a body that is always there is not, a joint at the origin once is one
    panels["a"][0, :3] = 0
    lines, angle = outlined(panels, [(0, 2), (1, 3)], turn=turn, up=up), math.radians(turn)
    assert lines.groupby("panel")["frame"].unique().map(list).to_dict() == {"a": [1, 2, 3, 4, 5], "b": [1, 2, 3, 4, 5]}
    for (panel, frame), rows in lines.groupby(["panel", "frame"]):
        joints = panels[panel][frame - 1].double().numpy().reshape(4, 3)
        across = joints[:, 0] * np.cos(angle) + joints[:, 3 - up] * np.sin(angle)
        plane = np.stack([across, joints[:, up]], axis=1)
        plane[1] = plane[1] if panel == "b" else np.nan
        expected = [plane[0], plane[2], [np.nan] * 2, plane[1], plane[3], [np.nan] * 2]
        np.testing.assert_allclose(rows[["x", "y"]], expected, atol=1e-5)
