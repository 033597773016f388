"""Fine-tuning an encoder end to end on labelled recordings, and its accuracy averaged over clips."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from repro.audiovisual import augment
from repro.audiovisual.data import Pairs
from repro.audiovisual.model import Encoder
from repro.audiovisual.pretrain import Gatherer
from repro.audiovisual.recipe import AudioVisualRecipe
from repro.data.parallel import ahead
from repro.run.learner import ShuffledBatches, seeds

OPTIMISER = torch.optim.Adam


def recordings(data: Pairs, modality: str) -> tuple[Tensor, Tensor]:
    """Indices (n,) and (m,) of the labelled recordings with a modality, to train and to test on.

    ValueError if the training split has not two of them, or the test split none.
    """
    usable = data.has(modality) & (data.labels >= 0)
    trained, tested = ((usable & part).nonzero().flatten() for part in (data.train, data.test))
    if len(trained) < 2 or not len(tested):
        raise ValueError(f"{data.name} has {len(trained)} training and {len(tested)} test recordings with {modality} "
                         "and a label; at least two and one are needed")
    return trained, tested


class FineTuner(Gatherer):
    """A learner with a copy of a trained encoder, with plain batch normalisation, and a new linear classifier.

    Args:
        data: labelled recordings, whose windows are of `recipe.finetune_window` frames; refused as by `recordings`.
        modality: "video" or "audio", of the encoder `trunk`.
        target, split: what the encoder is judged on, and in which of its splits, from 1.

    Source: CM-ACC, Sec. 4, end to end; optimiser, epochs and augmentation are assumed.
    """

    terms = ("loss",)
    parts = ("trunk", "classifier", "optimiser")
    gathering = ("order", "order_generator")
    streams = ("generator", *gathering)

    def __init__(
        self, recipe: AudioVisualRecipe, trunk: Encoder, data: Pairs, modality: str, seed: int, device: torch.device,
        *, target: str, split: int,
    ) -> None:
        super().__init__(recipe, data, seed, device)
        self.modality, self.target, self.name = modality, target, f"{target}-{split}"
        self.members, self.tested = recordings(data, modality)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.classifier = nn.Linear(trunk.width, len(data.classes)).to(device)
            self.trunk = Encoder(trunk.name, trunk.width, channels=trunk.channels).to(device)
        self.trunk.load_state_dict(trunk.state_dict())
        parameters = [*self.trunk.parameters(), *self.classifier.parameters()]
        self.optimiser = OPTIMISER(parameters, lr=recipe.finetune_learning_rate, fused=True)
        crops, order = seeds(seed, 2)
        self.generator = torch.Generator(device).manual_seed(crops)
        self.order_generator = torch.Generator().manual_seed(order)
        self.steps_per_epoch = min(math.ceil(len(self.members) / recipe.finetune_batch), len(self.members) // 2)
        self.total_steps = recipe.finetune_epochs * self.steps_per_epoch
        # In one of about equal batches none has one recording alone: batch normalisation may have a single value of it.
        self.order = ShuffledBatches(self.members, self.steps_per_epoch, self.order_generator)

    def prepare(self) -> None:
        """View and labels of the next batch, and the learning rate; batches differ in size by one at most."""
        cosine = math.cos(math.pi * self.taken / self.total_steps)
        self.set_learning_rate(self.optimiser, self.recipe.finetune_learning_rate * (1 + cosine) / 2)
        index, view = self._next_batch()
        self.given["view"], self.given["labels"] = view, self.data.labels[index]
        self.bucket = len(index)

    def compute(self) -> Tensor:
        """One optimisation step; the cross entropy in nats, (1,)."""
        self.trunk.train()
        view = self.given.tensor("view")
        view = augment.at_random(view, self.recipe.size, 0.0, generator=self.generator)
        loss = cross_entropy(self._logits(view), self.given.tensor("labels"))
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss.detach().unsqueeze(0)

    @torch.no_grad()
    def accuracy(self) -> float:
        """Top-1 accuracy in percent on the test split; a recording's probabilities are the mean over its windows.

        Source: CM-ACC, released code, which averages over windows; evenly spread ones are assumed.
        """
        self.trunk.eval()
        windows, correct = self.recipe.finetune_windows, 0
        parts = self.tested.split(max(1, self.recipe.finetune_batch // windows))
        gathered = (self.data.centred(self.modality, index, windows).flatten(0, 1) for index in parts)
        for index, views in zip(parts, ahead(gathered) if self.data.streamed else gathered, strict=True):
            views = augment.centred(views.to(self.device, non_blocking=True), self.recipe.size)
            probabilities = self._logits(views).softmax(1).unflatten(0, (len(index), windows)).mean(1)
            correct += (probabilities.argmax(1).cpu() == self.data.labels[index]).sum().item()
        return 100 * correct / len(self.tested)

    def _logits(self, view: Tensor) -> Tensor:
        with self.autocast():
            return self.classifier(self.trunk(view)).float()

    def _gathered_batch(self) -> tuple[Tensor, Tensor]:
        """Indices (n,) of the next batch and its views."""
        index = self.order.take()
        return index, self.data.view(self.modality, index, self.order_generator)
