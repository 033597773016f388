"""Learners of recordings: a thread gathers their next batch while the device trains."""

import abc
import functools
from collections.abc import Mapping
from typing import Any

import torch

from repro.audiovisual.data import Pairs
from repro.audiovisual.recipe import AudioVisualRecipe
from repro.run.ahead import Ahead
from repro.run.learner import Learner


class Gatherer(Learner):
    """A learner whose next batch, of data that are streamed, is gathered ahead; its state is as if it never were.

    Attributes:
        gathering: the streams that `_gathered_batch` draws from.
    """

    recipe: AudioVisualRecipe
    data: Pairs
    gathering: tuple[str, ...]

    def __init__(self, recipe: AudioVisualRecipe, data: Pairs, seed: int, device: torch.device) -> None:
        super().__init__(recipe, data.to(device), seed, device)
        self.batches = Ahead()

    @abc.abstractmethod
    def _gathered_batch(self) -> tuple[Any, Any]:
        """Indices of the next batch and its views."""

    def _begin_next_batch(self) -> None:
        """Have the next batch gathered while the device trains, once this step has drawn all it will."""
        if self.data.streamed and self.taken + 1 < self.total_steps:
            position = {name: getattr(self, name).get_state() for name in self.gathering}
            self.batches.start(self._gathered_batch, functools.partial(self.load_streams, position))

    def state_dict(self) -> dict[str, Any]:
        """See `Learner.state_dict`."""
        self.batches.rewind()
        return super().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `Learner.load_state_dict`."""
        self.batches.rewind()
        super().load_state_dict(state)
