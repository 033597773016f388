"""Pre-training taken up again, from memory or streamed: it ends with the same bits."""

import copy
import functools
import threading

import pytest
import torch
from made_up_pairs import TRAINED, grids, learner, made_up, trace
from states import assert_equal_states, resumed_anywhere

from repro.audiovisual.pretrain import Pretrainer

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    ("method", "dataset", "changes"),
    [
        *((method, "synthetic", {}) for method in TRAINED),
        *(("cmacc", "synthetic", {"sampler": sampler}) for sampler in ("feature", "random", "ohem", "released")),
        ("cmacc", "synthetic", {"groups": 2, "normalised": True, "precision": "bfloat16"}),
        ("cmacc", "synthetic", {"renewed": True}),
        ("cmacc", "multidigits", {}),
        ("smoco", "multidigits", {"groups": 2}),
    ],
    ids=str,
)
def test_a_training_resumed_at_any_step_ends_with_the_same_bits(tmp_path, method, dataset, changes):
    data = grids(train=16) if dataset == "multidigits" else made_up(pretrain=16)
    make = functools.partial(learner, method, dataset, data=data, epochs=2, dictionary=8, pool=16, **changes)
    resumed_anywhere(make, tmp_path, steps=4)


@pytest.mark.parametrize(("method", "changes"), [*((each, {}) for each in TRAINED), ("cmacc", {"renewed": True})])
def test_streaming_changes_no_bit_wherever_the_run_is_saved_and_resumed(tmp_path, method, changes, monkeypatch):
    make = functools.partial(learner, method, data=made_up(pretrain=16), epochs=2, dictionary=8, pool=16, **changes)
    resident, values, states = make(), [], []
    for _ in range(4):
        values.append(resident.step())
        states.append(copy.deepcopy(resident.state_dict()))
    monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device: False)
    for saved in (0, 1, None):  # after this step; else there is nothing to drop on the way
        streamed = make()
        assert streamed.data.streamed and not resident.data.streamed
        for step in range(4):
            assert torch.equal(streamed.step(), values[step]), (saved, step)
            if step == saved:
                torch.save(streamed.state_dict(), tmp_path / "state.pt")
                assert_equal_states(torch.load(tmp_path / "state.pt", weights_only=True), states[step])
                streamed = make()
                streamed.step()  # what is gathered ahead here is dropped
                streamed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
        assert_equal_states(streamed.state_dict(), states[-1])


@pytest.mark.parametrize(("method", "changes"), [*((each, {}) for each in TRAINED), ("cmacc", {"renewed": True})])
def test_the_next_batch_of_a_streamed_set_is_gathered_during_the_step(method, changes, monkeypatch):
    """Before the weights change, by another thread, and none after the last step; never so of a resident set."""
    made, gathered = [], Pretrainer._gathered_batch

    def watched(self):
        made.append(threading.current_thread() is threading.main_thread())
        return gathered(self)

    monkeypatch.setattr(Pretrainer, "_gathered_batch", watched)
    for streamed in (False, True):
        monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device, streamed=streamed: not streamed)
        fast, begun, descend = learner(method, **changes), [], Pretrainer._descend
        made.clear()
        monkeypatch.setattr(
            fast, "_descend", lambda loss, fast=fast, begun=begun, descend=descend: (
                begun.append(fast.batches._begun is not None), descend(fast, loss)
            ),
        )
        trace(fast, fast.total_steps)
        assert begun == [streamed] * (fast.total_steps - 1) + [False]
        assert made == [True] + [not streamed] * (fast.total_steps - 1)
