"""What a step of pre-training costs: operations, memory, and no waiting for the device."""

import pytest
import torch
from made_up_pairs import TRAINED, learner, made_up, trace
from torch.utils._python_dispatch import TorchDispatchMode

from repro.audiovisual import augment, pretrain

pytestmark = pytest.mark.usefixtures("one_thread")


class Counted(TorchDispatchMode):
    """How many operations torch is asked for, and the most elements of a tensor they make."""

    def __init__(self):
        super().__init__()
        self.count = self.largest = 0

    def __torch_dispatch__(self, function, kinds, arguments=(), named=None):
        made = function(*arguments, **(named or {}))
        self.count += 1
        tensors = [part for part in (made if isinstance(made, (tuple, list)) else (made,))
                   if isinstance(part, torch.Tensor)]
        self.largest = max([self.largest, *(tensor.numel() for tensor in tensors)])
        return made


def counted(method, batch, dictionary, pool, **changes):
    """Of a step within an epoch."""
    fast = learner(method, data=made_up(pretrain=140), batch=batch, dictionary=dictionary, pool=pool, **changes)
    trace(fast, 2)
    with Counted() as counts:
        fast.step()
    return counts


@pytest.mark.parametrize(("method", "sampler"), [*((method, "random") for method in TRAINED), ("cmacc", "ohem")])
def test_no_loop_over_samples_candidates_or_entries(method, sampler):
    counts = {counted(method, *sizes, sampler=sampler).count for sizes in ((8, 16, 32), (8, 64, 128), (16, 16, 32))}
    assert max(counts) - min(counts) <= 2


@pytest.mark.parametrize("sampler", ["gradient", "feature", "random", "ohem"])
def test_nothing_is_materialised_beyond_factors_and_similarities(sampler):
    """Gradients of 120 candidates would be 120 * 32 * 32 numbers; the largest maps of clips are 8 * 2 * 4 * 4 * 4."""
    largest = counted("cmacc", 8, 16, 120, sampler=sampler, embedding=32).largest
    weights = max(parameter.numel() for parameter in learner(embedding=32).towers.parameters())
    assert largest <= max(120 * 32, weights, 8 * 3 * 4 * 9 * 10)  # the last are the clips


@pytest.mark.parametrize("method", TRAINED)
def test_a_step_reads_no_value(method, meta, monkeypatch):
    """Views have a test of their own; these are not random. `select` waits for what it checks on entry."""
    def augmented(view):
        return augment.centred(view.to(meta), fast.recipe.size)

    fast = learner(method, groups=2)
    monkeypatch.setattr(pretrain, "select", lambda *_, n_select, excluded, **named: (
        excluded.int().argsort(stable=True)[:n_select]))
    monkeypatch.setattr(fast, "device", meta)
    monkeypatch.setattr(fast, "_augmented", augmented)
    for module in (fast.towers, fast.classifiers, fast.keys, fast.dictionaries, fast.entries):
        module.to(meta)
    fast.counted, fast.categories = fast.counted.to(meta), fast.categories.to(meta)
    fast.optimiser = torch.optim.Adam([*fast.towers.parameters(), *fast.classifiers.parameters()])
    for _ in range(fast.steps_per_epoch + 1):
        assert fast.step().device == meta
    monkeypatch.setattr(fast, "_augmented", lambda view: augmented(view) * augmented(view).max().item())
    with pytest.raises(RuntimeError, match="meta"):
        fast.step()
