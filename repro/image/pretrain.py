"""Pre-training on images with MoCo v2, ReSSL, SCE or JCL; supervised training and random initialisation beside them."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from repro.contrast.dictionary import Dictionary, unit_noise
from repro.contrast.momentum import (
    MomentumEncoder,
    average,
    average_gradients,
    average_statistics,
    encode_shuffled,
    gather,
    process,
)
from repro.contrast.objectives import ceil, info_nce, jcl, ressl, sce, vanilla
from repro.image.augment import CentredView, ShiftedView, View, centred_view, training_views
from repro.image.batches import batches_of
from repro.image.data import ImageSet
from repro.image.model import TRUNKS, ImageModel
from repro.image.readers import Files
from repro.image.recipe import ImageRecipe
from repro.run.evaluate import nearest_neighbour
from repro.run.learner import Learner, ShuffledBatches, seeds

OPTIMISER = torch.optim.SGD
MONITORED = 10  # times in a training that `knn1` is measured


def check_shared(recipe: ImageRecipe) -> None:
    """Raise a ValueError unless the processes of the group can share a recipe's batch and its ghost groups."""
    if recipe.method == "random":  # trains on no batch
        return
    _, processes = process()
    if recipe.batch % processes or recipe.groups % processes:
        raise ValueError(
            f"batch={recipe.batch} or groups={recipe.groups} cannot be divided among {processes} processes, each of "
            "which normalises its own samples; choose multiples, such as --groups 8"
        )
    if processes > 1 and recipe.query_groups != recipe.groups:
        raise ValueError(
            f"whole_query=True normalises the queries of a batch together, which {processes} processes do not: take "
            "one process, or --whole-query false"
        )


class Pretrainer(Learner):
    """A learner with model, momentum encoder and dictionary; of images from memory or from files.

    In a process group every process holds the same state and works on its share of each batch, row j of process r being
    row j * processes + r of the whole; the result is that of one process with the same ghost groups.

    What fits into the device's memory goes there once; equal seeds start from equal weights on every device;
    `method="random"` gives the untrained model and no steps.

    Attributes:
        terms: names of what `step` returns. For SCE the three parts of its loss, in nats:
            loss = weight InfoNCE + (1 - weight) (ReSSL + Ceil), if the positive is masked in the target.
            Last the loss, and `knn1`, the accuracy in percent of nearest neighbours on the test split, measured ten
            times during training and never used for a decision.

    Raises:
        ValueError: if the batch is larger than the training split, or batch or ghost groups cannot be shared by the
            processes.
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
        self.terms = (*(("InfoNCE", "ReSSL", "Ceil") if recipe.method == "sce" else ()), "loss", "knn1")
        self.members = (data.train if recipe.method == "supervised" else data.pretrain).nonzero().flatten()
        if recipe.method != "random" and recipe.batch > len(self.members):
            available = f"{len(self.members)} training images of {data.name}"
            raise ValueError(f"batch={recipe.batch} exceeds the {available}; choose a smaller batch")
        check_shared(recipe)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = (recipe.trunk, recipe.small, recipe.head, recipe.projection)
            self.model = ImageModel(*network, recipe.query_groups)
            self.classifier = nn.Linear(TRUNKS[recipe.trunk], len(data.classes))
            start = ImageModel(*network, recipe.groups)
        if recipe.momentum_copied:
            start.load_state_dict(self.model.state_dict())
        self.keys = MomentumEncoder(start, recipe.momentum)
        entries, order, shuffle, views = seeds(seed, 4)
        noise = unit_noise(recipe.dictionary, recipe.projection, generator=torch.Generator().manual_seed(entries))
        self.dictionary = Dictionary(noise)
        for module in (self.model, self.classifier, self.keys, self.dictionary):
            module.to(device, memory_format=self.memory_format)
        self.optimiser = OPTIMISER(
            [*self.model.parameters(), *self.classifier.parameters()],
            lr=recipe.learning_rate,
            momentum=recipe.sgd_momentum,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        query_view, *key_view = training_views(recipe).values()
        self.source = batches_of(self.data, [query_view, *key_view * recipe.keys], device)
        self.generator = torch.Generator(device).manual_seed(views)
        self.order_generator = torch.Generator().manual_seed(order)
        self.shuffle_generator = torch.Generator().manual_seed(shuffle)
        self.steps_per_epoch = max(1, len(self.members) // recipe.batch)
        self.total_steps = 0 if recipe.method == "random" else recipe.epochs * self.steps_per_epoch
        self.costly_steps = min(MONITORED, self.total_steps)
        together = process()[1] == 1 and recipe.groups == 1  # all images are in one group, in whatever order
        self.shuffles = recipe.shuffle and not together
        self.knn1 = 0.0
        self.order = ShuffledBatches(self.members, self.steps_per_epoch, self.order_generator, recipe.batch)
        self.incoming: Iterator[list[Tensor]] = iter(())

    def prepare(self) -> None:
        """Pictures of the next batch, learning rate and strength; of the first step of every tenth, `knn1` too."""
        if self.taken * MONITORED % self.total_steps < MONITORED:
            self.knn1 = self._nearest_neighbour()
        index, pictures = self._next_batch()
        self._hand(pictures)
        self.set_learning_rate(self.optimiser, learning_rate(self.recipe, self.taken, self.steps_per_epoch))
        self.given["knn1"] = self.knn1
        if self.recipe.method == "supervised":
            self.given["labels"] = self.data.labels[index]

    def compute(self) -> Tensor:
        """One optimisation step; the value of every term, (terms,)."""
        self.model.train()
        losses = self._supervised() if self.recipe.method == "supervised" else self._contrast()
        values = torch.stack([*losses.values()]).detach()
        average([values])
        return torch.cat([values, self.given.tensor("knn1").to(values).view(1)])

    def _supervised(self) -> dict[str, Tensor]:
        view, = self._augmented()
        with self.autocast():
            logits = self.classifier(self.model.features(view)).float()
        losses = {"loss": cross_entropy(logits, self.given.tensor("labels"))}
        self._descend(losses["loss"])
        return losses

    def _contrast(self) -> dict[str, Tensor]:
        query, keys = map(gather, self._encoded())
        losses = self.losses(query, keys)
        self._descend(losses["loss"])
        self.dictionary.enqueue(keys.mean(1))
        self.keys.update(self.model)
        return losses

    def _encoded(self) -> tuple[Tensor, Tensor]:
        """Queries (n, d) and keys (n, keys, d) of the pictures handed over."""
        query_view, *key_views = self._augmented()
        with self.autocast():
            query = self.model(query_view)
            if self.shuffles:
                keys = encode_shuffled(self.keys, torch.cat(key_views), self.given.tensor("order"))
            else:
                keys = self.keys(torch.cat(key_views))
        return query, keys.unflatten(0, (self.recipe.keys, -1)).transpose(0, 1)

    def losses(self, query: Tensor, keys: Tensor) -> dict[str, Tensor]:
        """The method's loss, and of SCE its parts without gradient, from (N, d) and (N, keys, d).

        These are the rows of the whole batch, in every process: a loss may compare them with one another.
        """
        recipe, key, negatives = self.recipe, keys[:, 0], self.dictionary.entries
        temperature, key_temperature = recipe.temperature, recipe.key_temperature
        match recipe.method:
            case "moco":
                return {"loss": info_nce(query, key, negatives, temperature)}
            case "ressl":
                return {"loss": ressl(query, key, negatives, temperature, key_temperature)}
            case "jcl":
                return {"loss": jcl(query, keys, negatives, temperature, self.given["strength"])}
            case "vanilla":
                return {"loss": vanilla(query, keys, negatives, temperature)}
            case "sce":
                with torch.no_grad():
                    parts = {
                        "InfoNCE": info_nce(query, key, negatives, temperature),
                        "ReSSL": ressl(query, key, negatives, temperature, key_temperature),
                        "Ceil": ceil(query, key, negatives, temperature),
                    }
                targets = {"weight": recipe.weight, "masked_positive": recipe.masked_positive}
                return parts | {"loss": sce(query, key, negatives, temperature, key_temperature, **targets)}

    @torch.no_grad()
    def positives(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (N, d) and keys (N, keys, d) of the next batch, and the dictionary (K, d); no weight changes."""
        self._hand(self._next_batch()[1])
        self.model.train()
        return *self._encoded(), self.dictionary.entries

    def strength(self) -> float:
        """JCL's weight of the covariance in the present epoch e of E: ramped, strength (e + 1) / E."""
        if not self.recipe.ramp:
            return self.recipe.strength
        return self.recipe.strength * (self.taken // self.steps_per_epoch + 1) / self.recipe.epochs

    def _descend(self, loss: Tensor) -> None:
        self.optimiser.zero_grad()
        loss.backward()
        for group in self.optimiser.param_groups:
            average_gradients(group["params"])
        self.optimiser.step()

    def _next_batch(self) -> tuple[Tensor, list[Tensor]]:
        """Indices (n,) of this process's share of the next batch, and its pictures for every view."""
        pictures = next(self.incoming, None)
        if pictures is None:
            seed = (self.seed, self.taken // self.steps_per_epoch)
            share = self.recipe.batch // process()[1]
            self.incoming = self.source.batches(self._share(self.order.left()), batch=share, seed=seed)
            pictures = next(self.incoming)
        return self._share(self.order.take()), pictures

    def _share(self, rows: Tensor) -> Tensor:
        rank, processes = process()
        return rows[rank::processes]

    def _hand(self, pictures: list[Tensor]) -> None:
        """Hand over the pictures (n, 3, H, W) of every view, and what else a batch needs."""
        for number, images in enumerate(pictures):
            self.given[f"pictures {number}"] = images
        if self.shuffles:
            places = self.recipe.keys * self.recipe.batch
            self.given["order"] = torch.randperm(places, generator=self.shuffle_generator)
        self.given["strength"] = self.strength()

    def _augmented(self) -> list[Tensor]:
        """The pictures of every view as the networks take them, (n, 3, size, size)."""
        views = []
        for number, view in enumerate(self.source.views):
            pictures = self.given.tensor(f"pictures {number}")
            views.append(self._drawn(view, pictures, len(pictures) * process()[1], self.generator))
        return views

    def _drawn(self, view: View | ShiftedView, pictures: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """A view of the pictures; parameters are drawn for the whole batch of `count`, this process's are used."""
        draws = view.draw(count, *pictures.shape[2:], generator)
        drawn = view.apply(pictures, type(draws)(*(self._share(_padded(rows)) for rows in draws)))
        return drawn.contiguous(memory_format=self.memory_format)

    def _nearest_neighbour(self) -> float:
        """Accuracy in percent on the test split, of neighbours in the training split."""
        parts = []
        for split in (self.data.train, self.data.test):
            parts += [self.features(split.nonzero().flatten()), self.data.labels[split].to(self.device)]
        return nearest_neighbour(*parts)

    @torch.no_grad()
    def features(
        self,
        index: Tensor,
        view: View | CentredView | ShiftedView | None = None,
        *,
        generator: torch.Generator | None = None,
        seed: Sequence[int] = (0,),
        batch: int = 512,
    ) -> Tensor:
        """Pooled features (n, C) of images, in float32; the same in every process.

        Args:
            index: (n,) of the images, on the CPU.
            view: of every image; by default the one without randomness.
            generator: of the view, on the device; none for a `CentredView`.
            seed: of what happens to images before the view, where they stay in files.
            batch: images encoded at a time, in all processes together.
        """
        self.model.eval()
        average_statistics(self.model)
        source = batches_of(self.data, [view or centred_view(self.recipe)], self.device)
        left, = source.views
        processes = process()[1]
        share, missing = self._share(_padded(index)), len(index)
        parts = []
        with self.autocast():
            for pictures, in source.batches(share, batch=-(-batch // processes), seed=seed):
                count = min(len(pictures) * processes, missing)
                missing -= count
                images = left(pictures) if generator is None else self._drawn(left, pictures, count, generator)
                images = images.contiguous(memory_format=self.memory_format)
                parts.append(self.model.features(images).float())
        return gather(torch.cat(parts))[: len(index)]

    @torch.no_grad()
    def embed(self, features: Tensor) -> Tensor:
        """Embeddings (n, d) of unit length, from features of `features`."""
        self.model.eval()
        return self.model.embed(features)

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to continue exactly; the same in every process."""
        for part in (getattr(self, name) for name in self.parts):
            if isinstance(part, nn.Module):
                average_statistics(part)
        return super().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `Learner.load_state_dict`."""
        super().load_state_dict(state)
        self.incoming = iter(())


def _padded(rows: Tensor) -> Tensor:
    """Rows (n, ...), the last one repeated until the processes can share them evenly."""
    return torch.cat([rows, rows[-1:].repeat(-len(rows) % process()[1], *[1] * (rows.ndim - 1))])


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
