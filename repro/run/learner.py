"""What `fit` trains: a learner, which registers its parts and random streams, and so can be saved and taken up."""

import abc
import copy
import functools
import pickle
import random
import threading
from collections.abc import Hashable, Mapping, Set
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from repro.recipe import Recipe, choose
from repro.run.device import autocast, grouped, precision_of
from repro.run.recorded import Buffers, Recorded
from repro.run.store import check_parts

RANDOM = np.random.Generator | np.random.RandomState | random.Random
SMALL = 2**20  # bytes of an array whose contents are compared; others are data


def seeds(seed: int, count: int, of: str = "") -> list[int]:
    """`count` seeds of a run's streams, spawned from its own, so that no two streams are alike.

    Args:
        seed, count: of the run; how many.
        of: a name, with which they are other seeds: a subclass need not know how many its base class has taken.
    """
    return np.random.SeedSequence(seed, spawn_key=tuple(of.encode())).generate_state(count).tolist()


class ShuffledBatches:
    """Indices of samples in random order, batch by batch, epoch by epoch.

    Args:
        members: (n,) int64 indices, on the CPU.
        batches: in an epoch, at least 1.
        generator: of the order, on the CPU.
        batch: samples of each; an epoch's rest is dropped. By default all members are dealt to the batches, whose sizes
            differ by one at most.
    """

    def __init__(self, members: Tensor, batches: int, generator: torch.Generator, batch: int | None = None) -> None:
        self.members, self.batches, self.generator = members, batches, generator
        self.used = len(members) if batch is None else batches * batch
        self.rest = torch.empty(0, dtype=torch.int64)

    def left(self) -> Tensor:
        """What is still to come of this epoch, (m,), or all of a new one where nothing is."""
        if len(self.rest) < self.used // self.batches:
            shuffled = torch.randperm(len(self.members), generator=self.generator)
            self.rest = self.members[shuffled[: self.used]]
        return self.rest

    def take(self) -> Tensor:
        """Indices (batch,) of the next batch."""
        rest, (size, larger) = self.left(), divmod(self.used, self.batches)
        if len(rest) > (self.batches - larger) * size:  # the first batches of an epoch are the larger ones
            size += 1
        index, self.rest = rest[:size], rest[size:]
        return index

    def get_state(self) -> Tensor:
        """Where in the epoch it is, to go on from by `set_state`; the generator has a state of its own."""
        return self.rest.clone()

    def set_state(self, state: Tensor) -> None:
        self.rest = state.to(self.members)


class Learner(abc.ABC):
    """A training: all its state, and how to take a step, of which the host prepares and the device computes its half.

    A subclass sets `terms`, `steps_per_epoch`, `total_steps` and registers all attributes that training changes, by
    their names, which the saved state has too. What `compute` changes it changes in place, so that it can be recorded
    (`repro.run.recorded`).

    Args:
        recipe: hyper-parameters.
        data: what to train on.
        seed: of the run, from which every random stream has a seed of its own (`seeds`).
        device: where to train.

    Attributes:
        terms: names of what `step` returns.
        steps_per_epoch, total_steps: of the training.
        costly_steps: how many do more than train, such as look at the test split; the first is one of them.
        report_steps: most steps between two reports of `fit`, at least 1.
        name: of the learner's folder in that of the run; "" for the main one, whose folder is the run's.
        precision: "float32" or "bfloat16", of matrix products inside `autocast`; that of the device it was begun on.
        taken: steps so far.
        given: what `prepare` hands to `compute`. Where shapes are `fixed` it stays where it is.
        fixed: whether shapes of `compute` depend on `bucket` alone, as a recording needs: on CUDA.
        bucket: what shapes of the next step depend on; None for one that is not to be recorded.
        parts: names of modules, optimisers, dictionaries: of all that has a `state_dict`.
        streams: names of what random choices come from: generators and the order of samples.
        kept: names of what else changes: plain numbers, tensors on the device and dicts of these.
        passing: names of what is not saved though it changes, as every step sets it before it reads it.
    """

    terms: tuple[str, ...]
    steps_per_epoch: int
    total_steps: int
    costly_steps = 0
    report_steps = 50
    name = ""
    parts: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()

    def __init__(self, recipe: Recipe, data: Any, seed: int, device: torch.device) -> None:
        self.recipe, self.data, self.seed, self.device = recipe, data, seed, device
        self.precision, self.taken = precision_of(recipe, device), 0
        self.fixed = device.type == "cuda"
        self.given = Buffers(device, stay=self.fixed)
        self.bucket: Hashable = ()
        self._before: dict[str, Any] | None = None  # what is registered nowhere, before the first step here

    @abc.abstractmethod
    def prepare(self) -> None:
        """The host's half of a step: put indices, learning rate and whatever else differs between steps in `given`."""

    @abc.abstractmethod
    def compute(self) -> Tensor:
        """The device's half: one optimisation step; the value of every term, (len(terms),), on the device."""

    def observe(self) -> None:  # noqa: B027 (most have nothing to do)
        """What happens after a step and is no part of it, such as a look at the test split."""

    def unrecordable(self) -> str:
        """Why `compute` cannot be recorded; "" if it can."""
        return "processes that share a run wait for one another" if grouped() else ""

    @functools.cached_property
    def recorded(self) -> Recorded:
        """`compute`, which is recorded where that is possible."""
        streams = [getattr(self, name) for name in self.streams]
        generators = [stream for stream in streams if isinstance(stream, torch.Generator)]
        parts = [getattr(self, name) for name in self.parts]
        return Recorded(
            self.compute, self.device, reason=self.unrecordable(),
            generators=[generator for generator in generators if generator.device.type == "cuda"],
            optimisers=[part for part in parts if isinstance(part, torch.optim.Optimizer)],
        )

    def release(self) -> None:
        """Let go of what was recorded, and so of its memory; the next steps are recorded anew."""
        self.__dict__.pop("recorded", None)

    def step(self) -> Tensor:
        """Take one optimisation step and count it in `taken`; the value of every term, (len(terms),), on the device."""
        if self._before is None:
            self._before = self._unregistered()
        self.prepare()
        values = self.recorded(self.bucket)
        self.taken += 1
        self.observe()
        return values

    def check_draws(self, before: Mapping[str, Any]) -> None:
        """Raise ValueError if a global generator, which no run seeds, has left the state of `before` the steps."""
        for (name, then), now in zip(before.items(), global_states().values(), strict=True):
            if then != now:
                raise ValueError(
                    f"a step of {type(self).__name__}, step {self.taken} or one before it, draws from {name}'s "
                    "global generator, which depends on what the process did before; draw from a generator named in "
                    f"`streams` ({', '.join(self.streams)}), as `torch.randn(..., generator=self.generator)`; "
                    "for dropout too, draw the mask from it"
                )

    def set_learning_rate(self, optimiser: torch.optim.Optimizer, rate: float) -> None:
        """Let the next step be taken with a learning rate."""
        self.given["learning_rate"] = rate
        for group in optimiser.param_groups:
            group["lr"] = self.given["learning_rate"]

    def autocast(self) -> torch.autocast:
        """A context whose matrix products and convolutions are computed in the learner's precision."""
        return autocast(self.device, self.precision)

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to continue exactly, as tensors, numbers, strings and containers of them.

        Raises:
            ValueError: if an attribute that has a state, or that steps have changed, is registered nowhere,
                and so would be lost.
        """
        self._check_registered()
        state = {name: getattr(self, name).state_dict() for name in self.parts}
        state |= {name: getattr(self, name).get_state() for name in self.streams}
        return state | {name: getattr(self, name) for name in (*self.kept, "taken", "precision")}

    def _check_registered(self) -> None:
        """Raise as `state_dict`; a module of which a part holds every tensor has no state of its own."""
        registered = {*self.parts, *self.streams, *self.kept}
        held = {id(tensor) for name in self.parts for tensor in _tensors(getattr(self, name))}
        for name, value in vars(self).items():
            place = "parts" if isinstance(value, nn.Module | torch.optim.Optimizer) else "streams"
            lost = isinstance(value, torch.optim.Optimizer | torch.Generator | ShuffledBatches)
            if name not in registered and (lost or any(id(tensor) not in held for tensor in _tensors(value))):
                raise ValueError(
                    f"{type(self).__name__}.{name} is in neither `parts` nor `streams`: it would not be saved, and a "
                    f"resumed training would give other numbers; name it among the {place} of the class, as "
                    f'`{place} = (*{type(self).__mro__[1].__name__}.{place}, "{name}")`'
                )
        for name, (_, mark) in self._unregistered().items():
            if self._before is not None and mark != self._before.get(name, (None, None))[1]:
                raise ValueError(
                    f"{type(self).__name__}.{name} is changed by training and registered nowhere: it would "
                    "not be saved, and a resumed training would give other numbers; name a number, a tensor or "
                    "a dict of these in `kept`, and in `passing` what every step sets before it reads it; draw "
                    "from a torch.Generator that `streams` names"
                )

    def _unregistered(self) -> dict[str, tuple[Any, Any]]:
        """By name what is registered nowhere, whose tensors live on here, and what tells whether it changed."""
        registered = {*self.parts, *self.streams, *self.kept, *self.passing, "taken", "bucket", "_before"}
        held = {id(tensor) for name in self.parts for tensor in _tensors(getattr(self, name))}
        values = {name: value for name, value in vars(self).items() if name not in registered}
        return {name: (copy.copy(value) if isinstance(value, dict | list) else value, _mark(value, held))
                for name, value in values.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of `state_dict`, on a device of the same kind; raises as `load_weights`."""
        self.load_weights(state)
        for name in self.streams:
            getattr(self, name).set_state(state[name])

    def load_weights(self, state: Mapping[str, Any]) -> None:
        """Take over all but the random streams, to evaluate on whichever device.

        Raises:
            AttributeError, LookupError, RuntimeError, TypeError, ValueError: if it is not of such a learner.
        """
        odd = state.keys() - {*self.parts, *self.streams, *self.kept, "taken", "precision"}
        if odd:
            raise KeyError(*sorted(odd))
        kinds = {name: type(getattr(self, name)) for name in (*self.kept, "taken")}
        check_parts(state, {name: kind for name, kind in kinds.items() if issubclass(kind, int | Tensor | dict)})
        self.release()  # a recording is of the places where the state lay before
        for name in self.parts:
            getattr(self, name).load_state_dict(state[name])
        for name in (*self.kept, "taken"):
            setattr(self, name, _moved(state[name], self.device))
        # States from before it was kept are of recipes whose id says what "auto" was.
        asked = self.recipe.gpu_precision if self.recipe.precision == "auto" else self.recipe.precision
        self.precision = choose("precision", state.get("precision", asked), ("float32", "bfloat16"))


def _tensors(value: Any) -> list[Tensor]:
    """Parameters and buffers of a module; of anything else none."""
    return [*value.parameters(), *value.buffers()] if isinstance(value, nn.Module) else []


def _mark(value: Any, held: Set[int]) -> Any:
    """What changes when a value of a plain kind does; None of others, and of tensors whose ids are held."""
    if isinstance(value, Tensor):
        return None if id(value) in held else (id(value), value._version)
    if isinstance(value, dict):
        return [(key, _mark(part, held)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [_mark(part, held) for part in value]
    if isinstance(value, np.ndarray) and value.nbytes > SMALL:
        return id(value)
    plain = isinstance(value, bool | int | float | str | np.ndarray | np.generic | RANDOM)
    return pickle.dumps(value) if plain else None


def global_states() -> dict[str, Any]:
    """The states of the random generators that whatever runs in a process shares, by whose they are.

    Beside another thread, as in dask's workers, whose main thread draws from `random`, they are torch's alone.
    """
    states: dict[str, Any] = {"torch": torch.get_rng_state().numpy().tobytes()}
    if threading.current_thread() is threading.main_thread():
        numpy: Any = np.random.get_state(legacy=True)  # noqa: NPY002 (draws nothing)
        states |= {"random": random.getstate(), "numpy": (numpy[1].tobytes(), *numpy[2:])}
    return states


def _moved(value: Any, device: torch.device) -> Any:
    """The value with all its tensors on the device."""
    if isinstance(value, dict):  # of the same kind, as an undisturbed run saves it
        return type(value)((name, _moved(part, device)) for name, part in value.items())
    return value.to(device, copy=True) if isinstance(value, Tensor) else value  # training changes it in place
