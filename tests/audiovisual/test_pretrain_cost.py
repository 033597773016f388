"""What a step of pre-training costs: operations, and no waiting for the device."""

import pytest
import torch
from made_up_pairs import TRAINED, learner, made_up, trace
from torch.utils._python_dispatch import TorchDispatchMode

from repro.audiovisual import augment, pretrain

pytestmark = pytest.mark.usefixtures("one_thread")


class Counted(TorchDispatchMode):
    """How many operations torch is asked for."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, kinds, arguments=(), named=None):
        self.count += 1
        return function(*arguments, **(named or {}))


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
