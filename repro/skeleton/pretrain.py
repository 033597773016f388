"""Pre-training with any subset of attractive/contrastive x encoder/decoder objectives."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from repro.contrast.dictionary import Dictionary, sequence_noise, unit_noise
from repro.contrast.momentum import MomentumEncoder, follow
from repro.run.evaluate import nearest_neighbour
from repro.run.learner import Learner, ShuffledBatches, seeds
from repro.skeleton.augment import augment
from repro.skeleton.data import SkeletonSet
from repro.skeleton.gru import Packing
from repro.skeleton.model import SkeletonModel
from repro.skeleton.recipe import SkeletonRecipe, trains
from repro.skeleton.sequences import Sequences
from repro.skeleton.terms import TERMS, Batch

VERSION = 3  # raise when a change alters the numbers of an unchanged recipe
OPTIMISER = torch.optim.Adam


class Pretrainer(Learner):
    """A learner with model, momentum encoder, dictionaries, optimiser, generator and order of samples.

    With `select="best_on_test"` it also looks at the test split every `select_every` epochs and remembers the weights
    of the best 1-NN accuracy there: the released code's selection, kept to measure what it is worth.

    Args:
        recipe: hyper-parameters; `objectives="random"` gives the untrained model and no steps.
        data: the set; its frames go to the device once.
        seed: of initialisation, order and augmentation. Equal seeds start from equal weights on every device.
        device: where to train.

    Attributes:
        best, weights: the largest accuracy so far, percent, -1 before the first look, and the model's weights then.

    Raises:
        ValueError: if the batch is larger than the number of training sequences.
    """

    recipe: SkeletonRecipe
    data: SkeletonSet
    parts = ("model", "keys", "dictionary", "sequence_dictionary", "optimiser")
    streams = ("generator", "order_generator", "order")

    def __init__(self, recipe: SkeletonRecipe, data: SkeletonSet, seed: int, device: torch.device) -> None:
        super().__init__(recipe, data, seed, device)
        self.needs, self.contrastive = recipe.needs, recipe.looks_at("key")
        self.terms = (*(term for term in TERMS if recipe.has(term)), "loss")
        self.sequences = Sequences(data.frames, data.lengths, device)
        self.train = data.train.nonzero().flatten()
        if trains(recipe) and recipe.batch > len(self.train):
            available = f"{len(self.train)} training sequences of {data.name}"
            fits = 1 << (len(self.train).bit_length() - 1)
            raise ValueError(f"batch={recipe.batch} exceeds the {available}; choose a smaller batch, such as {fits}")
        longest, features = int(data.lengths.max()), data.frames.shape[1]
        initialisation, noise, sequences, order, views = seeds(seed, 5)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(initialisation)
            shape = (recipe.units, recipe.layers, recipe.projection)
            kinds = (recipe.head, recipe.bidirectional, recipe.decoder_input)
            self.model = SkeletonModel(features, *shape, *kinds)
        drawn = torch.Generator().manual_seed(noise)
        self.dictionary = Dictionary(unit_noise(recipe.dictionary, recipe.projection, generator=drawn))
        crop, drawn = min(recipe.td_crop or longest, longest), torch.Generator().manual_seed(sequences)
        self.sequence_dictionary = Dictionary(
            sequence_noise(recipe.sequence_dictionary, crop, features, generator=drawn)
        )
        self.keys = MomentumEncoder(self.model, recipe.momentum)
        for module in (self.model, self.dictionary, self.sequence_dictionary, self.keys):
            module.to(device)
        self.optimiser = OPTIMISER(self.model.parameters(), lr=recipe.learning_rate, fused=True)
        self.generator = torch.Generator(device).manual_seed(views)
        self.steps_per_epoch = max(1, len(self.train) // recipe.batch)
        self.total_steps = recipe.epochs * self.steps_per_epoch if trains(recipe) else 0
        self.order_generator, places = torch.Generator().manual_seed(order), torch.arange(len(self.train))
        self.order = ShuffledBatches(places, self.steps_per_epoch, self.order_generator, recipe.batch)
        self.kept = ("best", "weights") if recipe.select == "best_on_test" else ()
        self.best, self.weights = -1.0, copy.deepcopy(self.model.state_dict())

    def step(self) -> Tensor:
        """One optimisation step; each term of the loss, unweighted, and the loss, (terms + 1,)."""
        sequences, lengths, cpu_lengths = self._next_batch()
        queries = {}
        if self.recipe.looks_at("augmented"):
            queries["augmented"] = self._view(sequences, lengths)
        if self.recipe.looks_at("clean"):
            queries["clean"] = sequences
        key_input = self._view(sequences, lengths) if self.contrastive else None
        with self.autocast():
            keys = self._keys(key_input, cpu_lengths) if self.contrastive else {}
            losses = self._losses(queries, sequences, lengths, cpu_lengths, keys)
        loss = torch.stack([self.recipe.weight(term) * value for term, value in losses.items()]).sum()
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimiser.step()
        self._update_keys(keys)
        self.taken += 1
        if self.kept and self.taken % (self.recipe.select_every * self.steps_per_epoch) == 0:
            accuracy = self.accuracy_on_test()
            if accuracy > self.best:
                self.best, self.weights = accuracy, copy.deepcopy(self.model.state_dict())
        return torch.stack([*losses.values(), loss]).detach()

    def _next_batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sequences (N, T, D) cut to the longest of the batch, lengths (N,), and these on the CPU."""
        return self.sequences.batch(self.train[self.order.take()])

    def _view(self, clean: Tensor, lengths: Tensor) -> Tensor:
        recipe = self.recipe
        return augment(clean, lengths, flip=recipe.flip, shear=recipe.shear, generator=self.generator)

    def _packing(self, cpu_lengths: Tensor) -> Packing | None:
        """What the GRUs need to skip padding: decoders then leave zeros there, which no objective looks at.

        `cpu_lengths`, here and below: the lengths (N,), on the CPU, where the device need not be waited for.
        """
        return Packing(cpu_lengths) if self.device.type == "cpu" else None

    @torch.no_grad()
    def _keys(self, view: Tensor, cpu_lengths: Tensor) -> dict[str, Tensor]:
        """Keys that the objective needs: "embedded" (N, projection), "decoded" sequences (N, T or more, D)."""
        twin, keys = self.keys.twin, {}
        readouts = twin.encoder(view, cpu_lengths, self._packing(cpu_lengths))
        if "key" in self.needs["embedded"]:
            keys["embedded"] = twin.embed(readouts)
        if "key" in self.needs["decoded"]:
            least = self.sequence_dictionary.entries.shape[1]
            packing = self._packing(cpu_lengths.clamp(min=least))
            keys["decoded"] = twin.decode(readouts, max(view.shape[1], least), packing)
        return keys

    def _losses(
        self, inputs: dict[str, Tensor], clean: Tensor, lengths: Tensor, cpu_lengths: Tensor, keys: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Every term of the objective."""
        # No layer normalises over the batch, so several inputs go through encoder and decoder together exactly.
        repeated = cpu_lengths.repeat(len(inputs))
        readouts = self.model.encoder(torch.cat(list(inputs.values())), repeated, self._packing(repeated))
        queries = dict(zip(inputs, readouts.chunk(len(inputs)), strict=True))
        decoded, embedded = self._decoded(queries, clean.shape[1], cpu_lengths), {}
        if self.needs["embedded"]:
            embedded = dict(zip(inputs, self.model.embed(readouts).chunk(len(inputs)), strict=True))
        if "embedded" in keys:
            embedded["key"] = keys["embedded"]
        if "decoded" in keys:
            decoded["key"] = keys["decoded"][:, : clean.shape[1]]
        dictionaries = self.dictionary.entries, self.sequence_dictionary.entries
        batch = Batch(clean, lengths, embedded, decoded, *dictionaries)
        return {name: TERMS[name].loss(batch, self.recipe) for name in self.terms[:-1]}

    def _decoded(self, queries: dict[str, Tensor], frames: int, cpu_lengths: Tensor) -> dict[str, Tensor]:
        """What the decoder makes of the readouts of the inputs that the objective needs decoded, by input."""
        names = [name for name in self.needs["decoded"] if name != "key"]
        if not names:
            return {}
        packing = self._packing(cpu_lengths.repeat(len(names)))
        decoded = self.model.decode(torch.cat([queries[name] for name in names]), frames, packing)
        return dict(zip(names, decoded.chunk(len(names)), strict=True))

    def _update_keys(self, keys: dict[str, Tensor]) -> None:
        """Enqueue the step's keys, then let the momentum encoder follow."""
        if not self.contrastive:
            return
        if "embedded" in keys:
            self.dictionary.enqueue(keys["embedded"])
        if "decoded" in keys and self.recipe.td_queue == "live":
            self.sequence_dictionary.enqueue(keys["decoded"][:, : self.sequence_dictionary.entries.shape[1]])
        self.keys.update(self.model)
        if self.recipe.ema_head_twice:
            follow(self.keys.twin.head, self.model.head, self.recipe.momentum)

    @torch.no_grad()
    def features(self, data: SkeletonSet, frames: int = 12800) -> tuple[Tensor, Tensor]:
        """Readouts (n, H) of untransformed sequences, in float32, and their embeddings (n, projection).

        Sequences of similar length are encoded together, so that there is little padding: `frames` at a time with it.
        """
        sequences, readouts = self._sequences(data), []
        parts = list(sequences.of_similar_length(torch.arange(len(sequences)), frames))
        for part in parts:
            batch, _, cpu_lengths = sequences.batch(part)
            readouts.append(self.model.encoder(batch, cpu_lengths))
        readouts = torch.cat(readouts)[torch.cat(parts).argsort().to(self.device)]
        return readouts, self.model.embed(readouts)

    @torch.no_grad()
    def decoded_scale(self, data: SkeletonSet, readouts: Tensor, frames: int = 12800) -> float:
        """Root mean square of what the decoder makes of the test split, over that of the test split itself.

        Over all coordinates of all valid frames. 1: decoded sequences are as large as the data.

        Args:
            data: the set.
            readouts: (n, H), of its untransformed sequences, as from `features`.
            frames: decoded at a time, padding included.
        """
        sequences = self._sequences(data)
        squares = torch.zeros(2, dtype=torch.float64, device=self.device)
        for part in sequences.of_similar_length(data.test.nonzero().flatten(), frames):
            batch, lengths, _ = sequences.batch(part)
            decoded = self.model.decode(readouts[part.to(self.device)], batch.shape[1])
            padding = torch.arange(batch.shape[1], device=self.device) >= lengths[:, None]
            decoded = decoded.masked_fill(padding[:, :, None], 0)
            squares += torch.stack([each.square().sum(dtype=torch.float64) for each in (decoded, batch)])
        return (squares[0] / squares[1]).sqrt().item()

    def _sequences(self, data: SkeletonSet) -> Sequences:
        return self.sequences if data is self.data else Sequences(data.frames, data.lengths, self.device)

    def accuracy_on_test(self) -> float:
        """1-NN accuracy of the readouts in percent, test samples against training samples."""
        readouts, _ = self.features(self.data)
        return nearest_neighbour(*split(self.data, readouts))

    def restore(self) -> None:
        """Put the best weights into the model, to evaluate it; nothing if the test split was never looked at."""
        if self.best >= 0:
            self.model.load_state_dict(self.weights)

    def load_weights(self, state: Mapping[str, Any]) -> None:
        """See `Learner.load_weights`."""
        super().load_weights(_unwatched(state))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `Learner.load_state_dict`."""
        super().load_state_dict(_unwatched(state))


def split(data: SkeletonSet, features: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features and labels of the training split, then of the test split, on the device of the features."""
    labels, train, test = (column.to(features.device) for column in (data.labels, data.train, data.test))
    return features[train], labels[train], features[test], labels[test]


def _unwatched(state: Mapping[str, Any]) -> dict[str, Any]:
    """A learner's state, also of before, when what looked at the test split held the pretrainer's."""
    own = {name: value for name, value in state.items() if name != "pretrainer"}
    return {**state.get("pretrainer", {}), **own}
