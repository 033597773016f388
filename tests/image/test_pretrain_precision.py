"""Pre-training on images in bfloat16 and channels last beside float32, and where its numbers diverge."""

import pytest
import torch
from image_learners import learner, trace
from tqdm import tqdm

from repro.run.fit import NonFiniteLoss, fit

pytestmark = pytest.mark.usefixtures("one_thread", "network")


@pytest.mark.parametrize("network", ["small stem"], indirect=True)
@pytest.mark.parametrize("method", ["sce", "supervised"])
def test_bfloat16_channels_last_is_close_to_float32(network, method):
    """A value of bfloat16 is off by up to 2**-9, which 20 layers make about 2**-7 of an embedding, hence of a cosine.

    A temperature of 0.1 makes it 0.08 of a logit, and the way the weights then take adds to it in the next steps.
    """
    choices = {"small": True, "batch": 16, "learning_rate": 1e-3, "projection": 64, "temperature": 0.2,
               "key_temperature": 0.1}
    exact, rounded = (
        learner(method, **choices, precision=precision, channels_last=last)
        for precision, last in (("float32", False), ("bfloat16", True))
    )
    assert rounded.model.trunk.layer1[0].conv1.weight.is_contiguous(memory_format=torch.channels_last)
    for values, others in zip(trace(exact, 3), trace(rounded, 3), strict=True):
        assert others.isfinite().all() and others.dtype == torch.float32
        assert not torch.equal(values, others)
        torch.testing.assert_close(others[:-1], values[:-1], rtol=0, atol=0.1)
    for name, value in rounded.model.state_dict().items():
        assert value.dtype in (torch.float32, torch.int64), name


@pytest.mark.parametrize("method", ["moco", "supervised"])
def test_channels_last_is_a_matter_of_layout_alone(method):
    rows, channels = (learner(method, channels_last=last) for last in (False, True))
    torch.testing.assert_close(trace(rows, 4), trace(channels, 4), rtol=1e-4, atol=1e-5)
    for own, other in zip(rows.model.parameters(), channels.model.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("method", "term"), [("moco", "loss"), ("sce", "InfoNCE"), ("supervised", "loss")])
def test_a_training_that_diverges_names_the_term(tmp_path, method, term):
    fast = learner(method, learning_rate=1e30)
    with pytest.raises(NonFiniteLoss, match=rf"^{term} is (nan|inf) at step [2-6]; lower the learning rate"):
        fit(fast, tmp_path, tqdm(disable=True), checkpoint_seconds=0)
