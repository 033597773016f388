"""Seeds of random streams, the order of samples, and what a learner may neither draw from nor forget."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import dropout
from walks import Walk, train

from repro.run.learner import ShuffledBatches, seeds

pytestmark = pytest.mark.usefixtures("one_thread")


def test_seeds_are_those_numpy_spawns_and_what_a_subclass_takes_is_unlike_all_others():
    assert seeds(3, 4) == np.random.SeedSequence(3).generate_state(4).tolist()
    spawned = [seed for of in ("", "predictor", "prototypes") for seed in seeds(3, 50, of)]
    assert len(set(spawned)) == len(spawned)
    assert seeds(3, 2, "predictor") == seeds(3, 9, "predictor")[:2] != seeds(4, 2, "predictor")


def shuffled(count, batches, batch=None, seed=0):
    return ShuffledBatches(3 * torch.arange(count), batches, torch.Generator().manual_seed(seed), batch)


@pytest.mark.parametrize(("count", "batches", "batch"), [
    (20, 3, 6), (18, 3, 6), (4, 1, 4), (5, 5, 1), (13, 3, None), (14, 3, None), (15, 3, None), (7, 7, None),
    (2, 1, None),
])
def test_batches_are_consecutive_parts_of_a_permutation(count, batches, batch):
    """Of a size, whose rest is dropped, or else all samples are dealt to them."""
    order, draws = shuffled(count, batches, batch), torch.Generator().manual_seed(0)
    for _ in range(3):
        permutation = 3 * torch.randperm(count, generator=draws)
        used = permutation if batch is None else permutation[: batches * batch]
        parts = used.tensor_split(batches)
        for number, part in enumerate(parts):
            assert torch.equal(order.left(), torch.cat(parts[number:])) and torch.equal(order.take(), part)


PREDICTOR = nn.Linear(5, 5)


@pytest.mark.parametrize(("forgotten", "place"), [
    (PREDICTOR, "parts"), (nn.BatchNorm1d(2, affine=False), "parts"), (PREDICTOR.requires_grad_(False), "parts"),
    (torch.optim.SGD(PREDICTOR.parameters()), "parts"), (torch.Generator(), "streams"), (shuffled(4, 2), "streams"),
])
def test_what_would_be_lost_because_it_is_not_registered_is_refused(forgotten, place):
    walk = Walk()
    walk.predictor = forgotten
    with pytest.raises(ValueError, match=rf"Walk.predictor is in .* `{place} = \(\*Learner.{place}, \"predictor\"\)`"):
        walk.state_dict()
    setattr(walk, place, (*getattr(walk, place), "predictor"))
    assert "predictor" in walk.state_dict()


def test_a_module_without_a_state_of_its_own_need_not_be_registered():
    walk = Walk()
    expected = [*walk.state_dict()]
    walk.model["inner"] = nn.ParameterDict({"weight": torch.ones(2)})
    walk.inner, walk.predictor = walk.model["inner"], nn.Identity()
    assert [*walk.state_dict()] == expected


class Drawing(Walk):
    """A walk whose steps draw once more."""

    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def compute(self):
        self.draw(self)
        return super().compute()


def forked(walk):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        torch.rand(2)


@pytest.mark.parametrize(("whose", "draw"), [
    ("torch", lambda walk: torch.randn_like(walk.weight)), ("torch", lambda walk: dropout(walk.weight)),
    ("torch", lambda walk: torch.manual_seed(1)), ("random", lambda walk: random.random()),
    ("numpy", lambda walk: np.random.rand()), ("numpy", lambda walk: np.random.seed(1)),  # noqa: NPY002 (refused)
])
def test_a_step_that_draws_from_a_global_generator_is_refused_and_nothing_of_it_saved(tmp_path, whose, draw):
    said = rf"of Drawing, step 3 or one before it, draws from {whose}'s global .* `streams` \(generator\)"
    with pytest.raises(ValueError, match=said):
        train(Drawing(lambda walk: walk.taken == 1 and draw(walk)), tmp_path)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(("value", "change"), [
    (torch.ones(2), lambda walk: walk.mean.mul_(0.9)), (0.5, lambda walk: vars(walk).update(mean=0.9 * walk.mean)),
    (torch.ones(2), lambda walk: vars(walk).update(mean=0.9 * walk.mean)),
    (np.random.default_rng(1), lambda walk: walk.mean.random()), (random.Random(1), lambda walk: walk.mean.random()),
    (np.random.RandomState(1), lambda walk: walk.mean.rand()), (np.ones(2), lambda walk: walk.mean.fill(0.9)),
    ([1], lambda walk: walk.mean.append(2)), ({"a": torch.ones(2)}, lambda walk: walk.mean["a"].mul_(2)),
    ({"a": torch.ones(2)}, lambda walk: walk.mean.update(a=torch.ones(2))), ((), lambda walk: vars(walk).update(new=3)),
])
def test_what_steps_change_and_is_registered_nowhere_is_refused_at_the_first_save(tmp_path, monkeypatch, value, change):
    walk = Drawing(change)
    walk.mean, walk.same, walk.weights = value, {"nan": float("nan"), "ones": torch.ones(2)}, [walk.weight]
    assert "taken" in walk.state_dict()  # nothing has changed yet
    with pytest.raises(ValueError, match=r"Drawing\.(mean|new) is changed by training and registered nowhere: it"):
        train(walk, tmp_path)
    assert not (tmp_path / "checkpoint.pt").exists()
    monkeypatch.setattr(Drawing, "kept", ("mean",))
    monkeypatch.setattr(Drawing, "passing", ("history", "new"))
    assert "mean" in walk.state_dict()


def test_what_every_step_sets_anew_need_not_be_saved(monkeypatch):
    walk = Drawing(lambda walk: vars(walk).update(rate=walk.taken))
    walk.step()
    monkeypatch.setattr(Drawing, "passing", ("history", "rate"))
    assert "rate" not in walk.state_dict()


@pytest.mark.parametrize("draw", [lambda walk: torch.rand(2, generator=walk.generator), forked])
def test_a_step_may_draw_from_its_own_generator_or_put_the_global_one_back(tmp_path, draw):
    train(walk := Drawing(draw), tmp_path)
    assert walk.taken == walk.total_steps


def test_what_is_drawn_between_two_intervals_is_not_taken_for_a_step_s(tmp_path):
    train(walk := Walk(), tmp_path, probe=lambda: {"drawn": random.random()}, probe_steps=2)
    assert walk.taken == walk.total_steps


def test_what_other_threads_draw_is_not_taken_for_the_step_s(tmp_path):
    """In a worker of dask steps are taken beside the main thread, which draws from `random` to wait."""
    with ThreadPoolExecutor(1) as beside:
        with pytest.raises(ValueError, match="draws from torch's global generator"):
            beside.submit(train, Drawing(lambda walk: torch.rand(1)), tmp_path).result()
        beside.submit(train, Drawing(lambda walk: random.random()), tmp_path).result()
