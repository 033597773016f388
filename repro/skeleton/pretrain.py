"""Pre-training with any subset of attractive/contrastive x encoder/decoder objectives."""

import copy

import torch
from torch import Tensor
from torch.nn.functional import normalize

from repro.contrast.dictionary import Dictionary, unit_noise
from repro.contrast.momentum import MomentumEncoder, follow
from repro.run.evaluate import nearest_neighbour
from repro.run.learner import Learner, ShuffledBatches, seeds
from repro.skeleton.data import Sequences, SkeletonSet
from repro.skeleton.gru_cpu import Packing
from repro.skeleton.model import SkeletonModel, projection_head
from repro.skeleton.recipe import SkeletonRecipe, trains
from repro.skeleton.terms import KINDS, TERMS, Batch

OPTIMISER = torch.optim.Adam
CHUNK = 12800  # frames, padding included, that are encoded or decoded at a time to evaluate
BUCKET = 25    # frames: where shapes are fixed, batches are padded to a multiple of it


class Pretrainer(Learner):
    """A learner with model, momentum encoder, dictionaries, optimiser, generator and order of samples.

    With `select="best_on_test"` it also looks at the test split every `select_every` epochs and remembers the weights
    of the best 1-NN accuracy there: the released code's selection, kept to measure what it is worth.

    The frames go to the device once; equal seeds start from equal weights on every device; `objectives="random"` gives
    the untrained model and no steps.

    Attributes:
        best, weights: the largest accuracy so far, percent, -1 before the first look, and the model's weights then.

    Raises:
        ValueError: if the batch is larger than the number of training sequences.
    """

    recipe: SkeletonRecipe
    data: SkeletonSet
    parts = ("model", "keys", "dictionary", "sequence_dictionary", "optimiser")
    streams = ("generator", "order_generator", "order")
    passing = ("cpu_lengths",)

    def __init__(self, recipe: SkeletonRecipe, data: SkeletonSet, seed: int, device: torch.device) -> None:
        super().__init__(recipe, data, seed, device)
        self.needs = recipe.needs
        self.inputs = {name for names in self.needs.values() for name in names}
        self.terms = (*(term for term in TERMS if recipe.has(term)), "loss")
        self.sequences = Sequences(data.frames, data.lengths, device)
        self.train = data.train.nonzero().flatten()
        if trains(recipe) and recipe.batch > len(self.train):
            available = f"{len(self.train)} training sequences of {data.name}"
            raise ValueError(f"batch={recipe.batch} exceeds the {available}; choose a smaller batch")
        self.longest, features = int(data.lengths.max()), data.frames.shape[1]
        initialisation, noise, sequences, order, views = seeds(seed, 5)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(initialisation)
            self.model = SkeletonModel(recipe, features, data.bones)
            self.keys = MomentumEncoder(self.model, recipe.momentum)
            if not recipe.key_head_copied:
                own = projection_head(recipe.head, recipe.units, recipe.projection)
                self.keys.twin.head = own.requires_grad_(False)
        drawn = torch.Generator().manual_seed(noise)
        self.dictionary = Dictionary(unit_noise(recipe.dictionary, recipe.projection, generator=drawn))
        crop, drawn = min(recipe.td_crop or self.longest, self.longest), torch.Generator().manual_seed(sequences)
        entries = torch.randn(recipe.sequence_dictionary, crop, features, generator=drawn)
        self.sequence_dictionary = Dictionary(normalize(entries, dim=0))  # near 0, as in the released code
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

    def prepare(self) -> None:
        """Indices of the next batch, whose bucket is the number of frames that it is padded to."""
        index = self.train[self.order.take()]
        self.given["index"] = index
        self.cpu_lengths = self.sequences.lengths[index]
        self.bucket = int(self.cpu_lengths.max())
        if self.fixed:  # objectives leave padding out: more of it changes no result
            self.bucket = min(-(-self.bucket // BUCKET) * BUCKET, self.longest)

    def compute(self) -> Tensor:
        """One optimisation step; each term of the loss, unweighted, and the loss, (terms + 1,)."""
        clean, lengths = self.sequences.padded(self.given.tensor("index"), self.bucket)
        drawn = {"flip": self.recipe.flip, "shear": self.recipe.shear, "generator": self.generator}
        inputs = {name: augment(clean, lengths, **drawn) for name in ("augmented", "key") if name in self.inputs}
        of_keys = {"key": inputs.pop("key")} if "key" in inputs else {}
        if "clean" in self.inputs:
            inputs["clean"] = clean
        dictionaries = [
            dictionary.entries if "key" in self.needs[kind] else dictionary.entries[:0]  # which no key would ever enter
            for kind, dictionary in (("embedded", self.dictionary), ("decoded", self.sequence_dictionary))
        ]
        read = self.cpu_lengths if self.recipe.bidirectional else lengths
        with self.autocast():
            with torch.no_grad():
                keys = self._represented(self.keys.twin, of_keys, read, dictionaries[1].shape[1])
            represented = self._represented(self.model, inputs, read)
            both = {kind: represented[kind] | keys[kind] for kind in KINDS}
            both["decoded"] = {name: sequence[:, : clean.shape[1]] for name, sequence in both["decoded"].items()}
            batch = Batch(clean, lengths, *both.values(), *dictionaries)
            losses = {name: TERMS[name].loss(batch, self.recipe) for name in self.terms[:-1]}
        loss = torch.stack([self.recipe.weight(term) * value for term, value in losses.items()]).sum()
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        if self.recipe.ema_head_twice and "key" in self.inputs:
            follow(self.keys.twin.head, self.model.head, self.recipe.momentum)
        self.optimiser.step()
        self._update_keys(keys)
        return torch.stack([*losses.values(), loss]).detach()

    def observe(self) -> None:
        """Look at the test split where the recipe selects there, and remember the best weights."""
        if self.kept and self.taken % (self.recipe.select_every * self.steps_per_epoch) == 0:
            accuracy = nearest_neighbour(*split(self.data, self.features(self.data)[0]))
            if accuracy > self.best:
                self.best, self.weights = accuracy, copy.deepcopy(self.model.state_dict())

    def unrecordable(self) -> str:
        """See `Learner.unrecordable`."""
        packs = "torch packs the sequences of a bidirectional encoder on the host"
        return packs if self.recipe.bidirectional else super().unrecordable()

    def _packing(self, lengths: Tensor) -> Packing | None:
        """What the GRUs need to skip padding: decoders then leave zeros there, which no objective looks at."""
        return None if self.fixed else Packing(lengths)

    def _represented(
        self, model: SkeletonModel, inputs: dict[str, Tensor], lengths: Tensor, least: int = 0
    ) -> dict[str, dict[str, Tensor]]:
        """What the objective needs of a model, by kind and input, as `Batch` has it.

        Inputs (N, T, D), of `lengths` (N,) frames each, go through together, exactly: no layer normalises over the
        batch. At least `least` frames are decoded.
        """
        represented: dict[str, dict[str, Tensor]] = {kind: {} for kind in KINDS}
        if not inputs:
            return represented
        repeated, joined = lengths.repeat(len(inputs)), torch.cat(list(inputs.values()))
        readouts = model.encoder(joined, repeated, self._packing(repeated))
        for kind, made_of in (("readout", Tensor.float), ("projected", model.project), ("embedded", model.embed)):
            if any(name in inputs for name in self.needs[kind]):
                represented[kind] = dict(zip(inputs, made_of(readouts).chunk(len(inputs)), strict=True))
        names = [name for name in self.needs["decoded"] if name in inputs]
        if names:
            by_input = dict(zip(inputs, readouts.chunk(len(inputs)), strict=True))
            packing = self._packing(lengths.clamp(min=least).repeat(len(names)))
            frames = max(joined.shape[1], least)
            sequences = model.decode(torch.cat([by_input[name] for name in names]), frames, packing)
            represented["decoded"] = dict(zip(names, sequences.chunk(len(names)), strict=True))
        return represented

    def _update_keys(self, keys: dict[str, dict[str, Tensor]]) -> None:
        """Enqueue the step's keys, then let the momentum encoder follow."""
        if "key" not in self.inputs:
            return
        if keys["embedded"]:
            self.dictionary.enqueue(keys["embedded"]["key"])
        if keys["decoded"] and self.recipe.td_queue == "live":
            self.sequence_dictionary.enqueue(keys["decoded"]["key"][:, : self.sequence_dictionary.entries.shape[1]])
        self.keys.update(self.model)

    @torch.no_grad()
    def features(self, data: SkeletonSet) -> tuple[Tensor, Tensor]:
        """Readouts (n, H) of untransformed sequences, in float32, and their embeddings (n, projection).

        Sequences of similar length are encoded together, `CHUNK` frames at a time, so that there is little padding.
        """
        sequences = self.sequences if data is self.data else Sequences(data.frames, data.lengths, self.device)
        readouts = []
        parts = list(sequences.of_similar_length(torch.arange(len(sequences)), CHUNK))
        for part in parts:
            batch, _, cpu_lengths = sequences.batch(part)
            readouts.append(self.model.encoder(batch, cpu_lengths))
        readouts = torch.cat(readouts)[torch.cat(parts).argsort().to(self.device)]
        return readouts, self.model.embed(readouts)

    @torch.no_grad()
    def decoded_scale(self, readouts: Tensor) -> float:
        """Root mean square of what the decoder makes of the test split, over that of the test split itself.

        Over all coordinates of all valid frames. 1: decoded sequences are as large as the data. `readouts` (n, H) are
        those of the learner's own data.
        """
        squares = torch.zeros(2, dtype=torch.float64, device=self.device)
        for part in self.sequences.of_similar_length(self.data.test.nonzero().flatten(), CHUNK):
            batch, lengths, _ = self.sequences.batch(part)
            decoded = self.model.decode(readouts[part.to(self.device)], batch.shape[1])
            padding = torch.arange(batch.shape[1], device=self.device) >= lengths[:, None]
            decoded = decoded.masked_fill(padding[:, :, None], 0)
            squares += torch.stack([values.square().sum(dtype=torch.float64) for values in (decoded, batch)])
        return (squares[0] / squares[1]).sqrt().item()

    def restore(self) -> None:
        """Put the best weights into the model, to evaluate it; nothing if the test split was never looked at."""
        if self.best >= 0:
            self.model.load_state_dict(self.weights)


def split(data: SkeletonSet, features: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features (n, H) and labels (n,) of the training split, then of the test split, on the device of the features."""
    labels, train, test = (column.to(features.device) for column in (data.labels, data.train, data.test))
    return features[train], labels[train], features[test], labels[test]


def augment(sequences: Tensor, lengths: Tensor, *, flip: float, shear: float, generator: torch.Generator) -> Tensor:
    """An independent view of every sequence: time reversed with probability `flip`, then sheared.

    Args:
        sequences: (N, T, 3 J) coordinates x, y, z per joint, zero after each sequence's length.
        lengths: (N,) valid frames.
        flip: probability of reversing time, in [0, 1].
        shear: largest of the six off-diagonal entries of the shear matrix, uniform in [-shear, shear]; at least 0.
        generator: on the device of `sequences`.

    Returns:
        The views, (N, T, 3 J), zero after each sequence's length.

    Source: released taxonomy code (`temporal flip` and `shear`); the paper names no augmentation.
    """
    count, device = len(sequences), sequences.device
    reverse = torch.rand(count, generator=generator, device=device) < flip
    entries = torch.rand(count, 3, 3, generator=generator, device=device) * 2 - 1
    identity = torch.eye(3, device=device)
    matrices = (identity + shear * entries * (1 - identity)).to(sequences.dtype)
    frame = torch.arange(sequences.shape[1], device=device)
    mirrored = lengths[:, None] - 1 - frame                   # negative in the padding, which stays where it is
    index = torch.where(reverse[:, None] & (mirrored >= 0), mirrored, frame)  # (N, T)
    flipped = sequences.gather(1, index[:, :, None].expand_as(sequences))
    joints = flipped.unflatten(2, (-1, 3)).flatten(1, 2)      # (N, T J, 3), row vectors
    return (joints @ matrices.transpose(1, 2)).reshape(sequences.shape)
