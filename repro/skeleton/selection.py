"""The released code's checkpoint selection on the test split, kept to measure what it is worth.

No result of ours is selected so unless its recipe says `select="best_on_test"`.
"""

import copy
from typing import Any

from torch import Tensor

from repro.run.evaluate import nearest_neighbour
from repro.skeleton.data import SkeletonSet
from repro.skeleton.pretrain import Pretrainer


class BestOnTest:
    """A learner that trains like `pretrainer` and remembers its weights of the best 1-NN accuracy on the test split."""

    def __init__(self, pretrainer: Pretrainer, data: SkeletonSet) -> None:
        self.pretrainer, self.data = pretrainer, data
        self.terms, self.total_steps = pretrainer.terms, pretrainer.total_steps
        self.steps_per_epoch, self.costly_steps = pretrainer.steps_per_epoch, pretrainer.costly_steps
        self.taken, self.best = 0, -1.0
        self.weights = copy.deepcopy(pretrainer.model.state_dict())

    def step(self) -> Tensor:
        """One step of the pretrainer, followed by a look at the test split every `select_every` epochs."""
        losses = self.pretrainer.step()
        self.taken += 1
        if self.taken % (self.pretrainer.recipe.select_every * self.steps_per_epoch) == 0:
            accuracy = accuracy_on_test(self.pretrainer, self.data)
            if accuracy > self.best:
                self.best, self.weights = accuracy, copy.deepcopy(self.pretrainer.model.state_dict())
        return losses

    def restore(self) -> None:
        """Put the best weights into the pretrainer's model (the last ones if the test split was never looked at)."""
        if self.best >= 0:
            self.pretrainer.model.load_state_dict(self.weights)

    def state_dict(self) -> dict[str, Any]:
        """The pretrainer's state and ours."""
        ours = {"taken": self.taken, "best": self.best, "weights": self.weights}
        return ours | {"pretrainer": self.pretrainer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of `state_dict`."""
        self.taken, self.best, self.weights = state["taken"], state["best"], state["weights"]
        self.pretrainer.load_state_dict(state["pretrainer"])

    def load_weights(self, state: dict[str, Any]) -> None:
        """Take over the last weights and the best ones from a state of `state_dict`, to evaluate both."""
        self.best, self.weights = state["best"], state["weights"]
        self.pretrainer.load_weights(state["pretrainer"])


def accuracy_on_test(pretrainer: Pretrainer, data: SkeletonSet) -> float:
    """1-NN accuracy of the readouts in percent, test samples against training samples."""
    readouts, _ = pretrainer.features(data)
    labels = data.labels.to(readouts.device)
    train, test = data.train.to(readouts.device), data.test.to(readouts.device)
    return nearest_neighbour(readouts[train], labels[train], readouts[test], labels[test])
