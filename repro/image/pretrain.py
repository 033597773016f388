"""Pre-training on images with MoCo v2, ReSSL, SCE or JCL; supervised training and random initialisation beside them.

What a step knows, of which the method's loss is made (`repro.image.recipe.METHODS`), and the training.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from repro.contrast.dictionary import Dictionary, unit_noise
from repro.contrast.momentum import MomentumEncoder, encode_shuffled
from repro.image import TRUNKS
from repro.image.augment import AnyView, centred_view, training_views
from repro.image.batches import Resident, Streamed, batches_of
from repro.image.data import ImageSet
from repro.image.model import ImageModel
from repro.image.readers import Files
from repro.image.recipe import ImageRecipe, contrasts, follows, trains
from repro.run.evaluate import nearest_neighbour
from repro.run.learner import Learner, ShuffledBatches, seeds

OPTIMISER = torch.optim.SGD
MONITORED = 10  # times in a training that `knn1` is measured
BY_NEED = ("keys", "dictionary")  # parts that not every method has


@dataclasses.dataclass(frozen=True)
class Batch:
    """What a step has computed for the loss of its method."""

    query: Tensor          # (N, projection), with gradient; without keys (N, classes) logits of the classifier
    keys: Tensor           # (N, keys, projection) of other views, if there are any
    negatives: Tensor      # (K, projection) the dictionary of earlier keys, if there is one
    labels: Tensor         # (N,) of the images, if the method sees them
    epoch: float | Tensor  # of the step, from 0

    @property
    def key(self) -> Tensor:
        """(N, projection) of the only other view."""
        return self.keys[:, 0]


class Pretrainer(Learner):
    """A learner with a model and what else its method needs; of images from memory or from files.

    What fits into the device's memory goes there once; equal seeds start from equal weights on every device;
    `method="random"` gives the untrained model and no steps. Several processes share a learner that `repro.run.group`
    has wrapped.

    Attributes:
        method: of the recipe, with its loss and what that needs (`repro.image.recipe.Method`).
        terms: names of what `step` returns: the parts that the method names, the loss, and `knn1`, the accuracy in
            percent of nearest neighbours on the test split, measured ten times in a training and never used in it.
        keys, dictionary: the momentum encoder, and earlier keys, of methods that have them.

    Raises:
        ValueError: if the batch is larger than the training split.
    """

    recipe: ImageRecipe
    data: ImageSet
    parts: tuple[str, ...] = ("model", "classifier", "keys", "dictionary", "optimiser")
    streams = ("generator", "order_generator", "shuffle_generator", "order")
    kept = ("knn1",)

    def __init__(self, recipe: ImageRecipe, data: ImageSet, seed: int, device: torch.device) -> None:
        if not isinstance(data.images, Files):
            data = dataclasses.replace(data, images=data.images.to(device))
        super().__init__(recipe, data, seed, device)
        self.memory_format = torch.channels_last if recipe.channels_last else torch.contiguous_format
        self.method = recipe.trained_by
        self.terms = (*self.method.parts, "loss", "knn1")
        self.members = (data.train if self.method.labels else data.pretrain).nonzero().flatten()
        if trains(recipe) and recipe.batch > len(self.members):
            available = f"{len(self.members)} training images of {data.name}"
            raise ValueError(f"batch={recipe.batch} exceeds the {available}; choose a smaller batch")
        entries, order, shuffle, views = seeds(seed, 4)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = (recipe.trunk, recipe.small, recipe.head, recipe.projection)
            self.model = ImageModel(*network, recipe.query_groups, self.method.unit)
            self.classifier = nn.Linear(TRUNKS[recipe.trunk], len(data.classes))
            if follows(recipe):
                start = ImageModel(*network, recipe.groups, self.method.unit)
                if recipe.momentum_copied:
                    start.load_state_dict(self.model.state_dict())
                self.keys = MomentumEncoder(start, recipe.momentum)
        if self.method.dictionary:
            noise = unit_noise(recipe.dictionary, recipe.projection, generator=torch.Generator().manual_seed(entries))
            self.dictionary = Dictionary(noise)
        self.parts = tuple(name for name in self.parts if name not in BY_NEED or hasattr(self, name))
        for name in ("model", "classifier", *BY_NEED):
            if name in self.parts:
                getattr(self, name).to(device, memory_format=self.memory_format)
        self.optimiser = OPTIMISER(
            [*self.model.parameters(), *self.classifier.parameters()],
            lr=recipe.learning_rate,
            momentum=recipe.sgd_momentum,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        query_view, *key_view = training_views(recipe).values()
        self.source = self.source_of([query_view, *key_view * recipe.keys])
        self.generator = torch.Generator(device).manual_seed(views)
        self.order_generator = torch.Generator().manual_seed(order)
        self.shuffle_generator = torch.Generator().manual_seed(shuffle)
        self.steps_per_epoch = max(1, len(self.members) // recipe.batch)
        self.total_steps = recipe.epochs * self.steps_per_epoch if trains(recipe) else 0
        self.costly_steps = min(MONITORED, self.total_steps)
        self.shuffles = recipe.shuffle and recipe.uses("shuffle")
        self.knn1 = 0.0
        self.order = ShuffledBatches(self.members, self.steps_per_epoch, self.order_generator, recipe.batch)
        self.incoming: Iterator[list[Tensor]] = iter(())

    def source_of(self, views: Sequence[AnyView]) -> Resident | Streamed:
        """Where pictures come from, and what is left to do to them for each view."""
        return batches_of(self.data, views, self.device)

    def prepare(self) -> None:
        """The next batch and the learning rate; of the first step of every tenth of the training, `knn1` too."""
        if self.taken * MONITORED % self.total_steps < MONITORED:
            self.knn1 = nearest_neighbour(*self.labelled())
        self._hand_batch()
        self.set_learning_rate(self.optimiser, learning_rate(self.recipe, self.taken, self.steps_per_epoch))
        self.given["knn1"] = self.knn1

    def compute(self) -> Tensor:
        """One optimisation step; the value of every term, (terms,)."""
        self.model.train()
        batch = self._encoded()
        with torch.no_grad():
            parts = [part(batch, self.recipe) for part in self.method.parts.values()]
        loss = self.loss(batch)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        if self.method.dictionary:
            self.dictionary.enqueue(batch.keys.mean(1))
        if self.method.key == "momentum":
            self.keys.update(self.model)
        return torch.stack([*parts, loss.detach(), self.given.tensor("knn1").to(loss)])

    def loss(self, batch: Batch) -> Tensor:
        """The method's loss; what a learner with more parts overrides."""
        return self.method.loss(batch, self.recipe)

    def _encoded(self) -> Batch:
        """What the encoders make of the pictures that were handed over."""
        query_view, *key_views = (
            view(self.given.tensor(f"pictures {number}"), self.generator).contiguous(memory_format=self.memory_format)
            for number, view in enumerate(self.source.views)
        )
        keys = negatives = labels = query_view.new_empty(0)
        with self.autocast():
            if contrasts(self.recipe):
                query, rows = self.model(query_view), self._keys(torch.cat(key_views))
                keys = rows.unflatten(0, (self.recipe.keys, -1)).transpose(0, 1)
            else:
                query = self.classifier(self.model.features(query_view)).float()
        if self.method.dictionary:
            negatives = self.dictionary.entries
        if self.method.labels:
            labels = self.given.tensor("labels")
        return Batch(query, keys, negatives, labels, self.given["epoch"])

    def _keys(self, images: Tensor) -> Tensor:
        """Keys (n, d) of images, one view of the batch after the other."""
        if self.method.key == "encoder":
            return self.model(images)
        return encode_shuffled(self.keys, images, self.given.tensor("order")) if self.shuffles else self.keys(images)

    @torch.no_grad()
    def positives(self) -> Batch:
        """What a step would compute of the next batch; no weight changes."""
        self._hand_batch()
        self.model.train()
        return self._encoded()

    def _hand_batch(self) -> None:
        """Hand over the next batch: the pictures (n, 3, H, W) of every view, and what else a step needs of it."""
        epoch = self.taken // self.steps_per_epoch
        pictures = next(self.incoming, None)
        if pictures is None:
            self.incoming = self.source.batches(self.order.left(), batch=self.recipe.batch, seed=(self.seed, epoch))
            pictures = next(self.incoming)
        index = self.order.take()
        for number, images in enumerate(pictures):
            self.given[f"pictures {number}"] = images
        if self.shuffles:
            places = self.recipe.keys * self.recipe.batch
            self.given["order"] = torch.randperm(places, generator=self.shuffle_generator)
        if self.method.labels:
            self.given["labels"] = self.data.labels[index]
        self.given["epoch"] = epoch

    def labelled(self) -> list[Tensor]:
        """Features (n, C) and labels (n,) of the training split, then those of the test split, on the device."""
        parts = []
        for split in (self.data.train, self.data.test):
            parts += [self.features(split.nonzero().flatten()), self.data.labels[split].to(self.device)]
        return parts

    @torch.no_grad()
    def features(
        self,
        index: Tensor,
        view: AnyView | None = None,
        *,
        generator: torch.Generator | None = None,
        seed: Sequence[int] = (0,),
        batch: int = 512,
    ) -> Tensor:
        """Pooled features (n, C) of images, in float32.

        Args:
            index: (n,) of the images, on the CPU.
            view: of every image; by default the one without randomness.
            generator: of the view, on the device; none for a `CentredView`.
            seed: of what happens to images before the view, where they stay in files.
            batch: images encoded at a time.
        """
        self.model.eval()
        source = self.source_of([view or centred_view(self.recipe)])
        left, = source.views
        parts = []
        with self.autocast():
            for pictures, in source.batches(index, batch=batch, seed=seed):
                images = left(pictures) if generator is None else left(pictures, generator)
                parts.append(self.model.features(images.contiguous(memory_format=self.memory_format)).float())
        return torch.cat(parts)

    def release(self) -> None:
        """See `Learner.release`; processes that read pictures end, for which Python would wait at its next clearing."""
        super().release()
        self.incoming = iter(())


def learning_rate(recipe: ImageRecipe, step: int, steps_per_epoch: int) -> float:
    """The learning rate of a step: linear warm-up from 0, then a cosine to 0, per step or kept through every epoch.

    The warm-up reaches the recipe's rate in its last step (SCE, released code).
    """
    warming, total = recipe.warmup * steps_per_epoch, recipe.epochs * steps_per_epoch
    if step < warming:
        return recipe.learning_rate * step / max(1, warming - 1)
    if recipe.schedule == "epoch":
        step -= step % steps_per_epoch
    progress = (step - warming) / (total - warming)
    return recipe.learning_rate * (1 + math.cos(math.pi * progress)) / 2
