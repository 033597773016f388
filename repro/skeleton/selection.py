"""The released code's checkpoint selection on the test split, kept to measure what it is worth.

No result of ours is selected so unless its recipe says `select="best_on_test"`.
"""

import copy
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from repro.run.evaluate import nearest_neighbour
from repro.run.learner import Learner
from repro.skeleton.pretrain import Pretrainer


class BestOnTest(Learner):
    """A learner that trains like `pretrainer` and remembers its weights of the best 1-NN accuracy on the test split."""

    def __init__(self, pretrainer: Pretrainer) -> None:
        super().__init__(pretrainer.recipe, pretrainer.data, pretrainer.seed, pretrainer.device)
        self.pretrainer, self.terms = pretrainer, pretrainer.terms
        self.steps_per_epoch, self.total_steps = pretrainer.steps_per_epoch, pretrainer.total_steps
        self.best, self.weights = -1.0, copy.deepcopy(pretrainer.model.state_dict())

    def step(self) -> Tensor:
        """One step of the pretrainer, followed by a look at the test split every `select_every` epochs."""
        losses = self.pretrainer.step()
        self.taken += 1
        if self.taken % (self.pretrainer.recipe.select_every * self.steps_per_epoch) == 0:
            accuracy = accuracy_on_test(self.pretrainer)
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

    def load_weights(self, state: Mapping[str, Any]) -> None:
        """Take over the last weights and the best ones, to evaluate both."""
        self.taken, self.best, self.weights = state["taken"], state["best"], state["weights"]
        self.pretrainer.load_weights(state["pretrainer"])
        self.precision = self.pretrainer.precision

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of `state_dict`."""
        self.load_weights(state)
        self.pretrainer.load_state_dict(state["pretrainer"])


def accuracy_on_test(pretrainer: Pretrainer) -> float:
    """1-NN accuracy of the readouts in percent, test samples against training samples."""
    data = pretrainer.data
    readouts, _ = pretrainer.features(data)
    labels = data.labels.to(readouts.device)
    train, test = data.train.to(readouts.device), data.test.to(readouts.device)
    return nearest_neighbour(readouts[train], labels[train], readouts[test], labels[test])
