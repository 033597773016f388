"""NW-UCLA itself: counts, lengths and joints, and an untrained encoder that reaches the accuracy printed for it."""

import numpy as np
import pytest
import torch

from repro.data import manifest
from repro.run import device
from repro.skeleton import data
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper
from repro.skeleton.study import data_of, evaluate

REAL = manifest.location(manifest.load_manifest("ucla").files[0], manifest.data_root())
pytestmark = [pytest.mark.usefixtures("runs"),
              pytest.mark.skipif(REAL is None, reason="nw_ucla/all_sqe.zip is not below REPRO_DATA")]


def test_random_initialisation_under_the_linear_probe():
    recipe = paper("ucla", "random")
    data = data_of(recipe)
    assert (recipe.layers, recipe.units, int(data.train.sum()), int(data.test.sum())) == (1, 512, 1013, 460)
    with device.threads(recipe.threads):
        result = evaluate(Pretrainer(recipe, data, 0, torch.device("cpu")), data, 0)
    assert result["linear"] == pytest.approx(52.01, abs=4)  # Table 2; one seed varies by about a point
    assert result["select"] == "last"


@pytest.fixture(scope="module")
def ucla(tmp_path_factory):
    """The real recordings and the set of the default pipeline, prepared in a folder of their own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("REPRO_RUNS", str(tmp_path_factory.mktemp("runs")))
        loaded = data.load("ucla")
        with np.load(stored_in(manifest.runs_root())) as arrays:
            return data.Recordings(**arrays), loaded


def stored_in(runs):
    (path,) = (runs / "prepared").glob("ucla-*.npz")
    return path


def test_real_counts_and_lengths(ucla):
    recordings, loaded = ucla
    assert (recordings.views < 3).sum() == 1020 and (recordings.views == 3).sum() == 464
    assert loaded.train.sum() == 1013 and loaded.test.sum() == 460
    kept = recordings.lengths[recordings.lengths > 10]
    assert kept.min() == 11 and kept.max() == 201
    assert (kept > 50).mean() == pytest.approx(0.228, abs=5e-4)
    views = recordings.views[recordings.lengths > 10]
    assert (kept > 50)[views < 3].mean() == pytest.approx(0.269, abs=5e-4)
    assert (kept > 50)[views == 3].mean() == pytest.approx(0.137, abs=5e-4)


def test_real_sequences_are_scaled_and_padded(ucla):
    _, loaded = ucla
    assert loaded.sequences.isfinite().all() and loaded.sequences.abs().max() == 1
    assert loaded.lengths.min() == 11 and loaded.lengths.max() == 50
    padding = torch.arange(50) >= loaded.lengths[:, None]
    assert (loaded.sequences[padding] == 0).all()
    assert loaded.labels.unique().tolist() == list(range(10))
    assert loaded.subjects.unique().tolist() == list(range(1, 11))


def test_real_joints_are_those_of_kinect(ucla):
    recordings, _ = ucla
    x, y, _ = np.median(recordings.frames - recordings.frames[:, :1], axis=0).T
    assert y[1] > 0 and y[2] > y[1] and y[3] > y[2]            # spine, shoulder centre, head
    for hip in (12, 16):
        assert 0 > y[hip] > y[hip + 1] > y[hip + 2] > y[hip + 3]
    for left, right in ((4, 8), (12, 16)):                     # facing the camera, the left side is at its right, x < 0
        assert x[left] < 0 < x[right]


def test_real_views_2_and_3_repeat_each_other_in_two_actions(ucla):
    _, loaded = ucla
    rows = {sequence.numpy().tobytes() for sequence in loaded.sequences[loaded.train]}
    repeated = torch.tensor([sequence.numpy().tobytes() in rows for sequence in loaded.sequences[loaded.test]])
    labels = loaded.labels[loaded.test]
    assert repeated.sum() == 93 and torch.equal(repeated, (labels == 1) | (labels == 2))


def test_real_digest(ucla):
    _, loaded = ucla
    assert loaded.digest.startswith("140e1d68448e")
