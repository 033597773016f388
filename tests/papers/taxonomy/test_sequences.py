import dataclasses
import math

import numpy as np
import pytest
import torch

from repro.papers.taxonomy.sequences import augmented, drawn, outlined, seen_from, vertical
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


@pytest.mark.parametrize("turn", [0, 30, 90, -45])
def test_seen_from_turns_about_the_vertical(turn):
    joints, angle = torch.randn(4, 3, 3, generator=torch.Generator().manual_seed(0)).double(), math.radians(turn)
    x, y, z = joints.numpy().transpose(2, 0, 1)
    turned = seen_from(joints.flatten(1), turn)
    np.testing.assert_allclose(turned[..., 0], x * np.cos(angle) + y * np.sin(angle))
    np.testing.assert_array_equal(turned[..., 1], z)
    np.testing.assert_allclose(seen_from(joints.flatten(1), 90, up=1), joints[..., [2, 1]], atol=1e-12)
    joints[:, 2] = 0
    joints[0, 0] = 0  # a joint at the origin once is one, a body that is always there is not
    seen = seen_from(joints.flatten(1), turn)
    assert np.isnan(seen[:, 2]).all() and not np.isnan(seen[:, :2]).any()


def test_a_frame_holds_the_bones_of_every_panel_with_gaps_between_them():
    small, large = (scale * torch.randn(5, 9, generator=torch.Generator().manual_seed(0)) for scale in (1, 10))
    lines = outlined({"a": small, "b": large}, [(0, 2), (1, 2)], turn=20)
    assert lines.groupby("panel")["frame"].unique().map(list).to_dict() == {"a": [1, 2, 3, 4, 5], "b": [1, 2, 3, 4, 5]}
    for (panel, frame), rows in lines.groupby(["panel", "frame"]):
        expected = seen_from({"a": small, "b": large}[panel], 20)[frame - 1]
        np.testing.assert_array_equal(rows[["x", "y"]].to_numpy()[[0, 1, 3, 4]], expected[[0, 2, 1, 2]])
        assert rows[["x", "y"]].iloc[[2, 5]].isna().all(axis=None)
