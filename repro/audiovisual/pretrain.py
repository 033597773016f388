"""Pre-training on pairs of video and sound with SMoCo, XMoCo or CM-ACC; supervised training and no training beside."""

import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from repro.audiovisual import MODALITIES, augment
from repro.audiovisual.data import Pairs, drawn, members, modalities_of
from repro.audiovisual.gather import Gatherer
from repro.audiovisual.model import Encoder, Towers, crossed
from repro.audiovisual.recipe import SELF_SUPERVISED, AudioVisualRecipe
from repro.contrast.dictionary import Dictionary
from repro.contrast.momentum import MomentumEncoder, encode_shuffled
from repro.contrast.negatives import NonFinite, select
from repro.contrast.objectives import info_nce
from repro.run.ahead import ahead
from repro.run.fit import NonFiniteLoss
from repro.run.learner import ShuffledBatches, seeds

VERSION = 5  # raise when a change alters the numbers of an unchanged recipe
OPTIMISER = torch.optim.Adam
REPORT_STEPS = 5  # of runs of so many iterations, which are about what happens along them
OTHER = dict(zip(MODALITIES, reversed(MODALITIES), strict=True))


class Pretrainer(Gatherer):
    """A learner with towers, momentum encoder, dictionaries, pools, optimiser, generators and order of pairs.

    Args:
        recipe: hyper-parameters; `method="scratch"` gives untrained towers and no steps.
        data: the pairs. SMoCo and supervised training also take sets with one modality.
        seed: of initialisation, order, views and selection. Equal seeds start from equal weights on every device.
        device: where to train.

    Attributes:
        modalities: those the data has and the method trains, in the order of `MODALITIES`.
        terms: names of what `step` returns: the loss of every modality's queries in nats, their sum, and for CM-ACC how
            many categories the negatives selected in this step come from, for both modalities.

    Raises:
        ValueError: if the data lacks what the method needs, or has too few pairs for batch, dictionary and pool.

    Source: CM-ACC, Algorithms 2 and 4.
    """

    parts = ("towers", "classifiers", "keys", "dictionaries", "entries", "optimiser")
    gathering = ("order", "order_generator", "view_generator")
    streams = ("generator", "selection_generator", "shuffle_generator", *gathering)
    kept = ("pools", "pooled", "counted")

    def __init__(self, recipe: AudioVisualRecipe, data: Pairs, seed: int, device: torch.device) -> None:
        super().__init__(recipe, data, seed, device)
        self.modalities = modalities_of(data)
        self.members = members(recipe, data)
        self.present = {modality: data.has(modality) for modality in self.modalities}
        losses = self.modalities if recipe.method in SELF_SUPERVISED else self.modalities[:0]
        counted = tuple(f"categories_{modality}" for modality in self.modalities) if recipe.method == "cmacc" else ()
        self.terms = (*losses, "loss", *counted)
        order, shuffle, views, crops, selection = seeds(seed, 5)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            encoders = [_encoder(recipe, modality, data) for modality in MODALITIES]
            self.towers = Towers(*encoders, embedding=recipe.embedding, extra_layer=recipe.extra_layer)
            supervised = self.modalities if recipe.method == "supervised" else ()
            classifiers = {modality: nn.Linear(recipe.width, sum(data.sizes)) for modality in supervised}
            self.classifiers = nn.ModuleDict(classifiers)
        self.crosses = recipe.method in ("xmoco", "cmacc")
        self.keys = MomentumEncoder(self._leader(), recipe.momentum)
        for module in (self.towers, self.classifiers, self.keys):
            module.to(device)
        parameters = [*self.towers.parameters(), *self.classifiers.parameters()]
        self.optimiser = OPTIMISER(parameters, lr=recipe.learning_rate, fused=True)
        self.generator = torch.Generator(device).manual_seed(crops)
        self.selection_generator = torch.Generator(device).manual_seed(selection)
        self.order_generator = torch.Generator().manual_seed(order)
        self.shuffle_generator = torch.Generator().manual_seed(shuffle)
        self.view_generator = torch.Generator().manual_seed(views)
        self.steps_per_epoch = max(1, len(self.members) // recipe.batch)
        self.total_steps = 0 if recipe.method == "scratch" else recipe.epochs * self.steps_per_epoch
        if recipe.iterations:
            self.total_steps, self.report_steps = min(self.total_steps, recipe.iterations), REPORT_STEPS
        self.costly_steps = -(-self.total_steps // self.steps_per_epoch) if recipe.method == "cmacc" else 0
        self.order = ShuffledBatches(self.members, self.steps_per_epoch, self.order_generator, recipe.batch)
        self.counted = torch.zeros(len(MODALITIES), dtype=torch.int64, device=device)  # categories selected, all steps
        self.kinds = int(data.categories.max()) + 1
        self.categories = data.categories.where(data.categories >= 0, self.kinds).to(device)  # the last: unknown
        self.dictionaries, self.entries, self.pools, self.pooled = nn.ModuleDict(), nn.ModuleDict(), {}, {}
        if recipe.method in SELF_SUPERVISED:
            self._fill_dictionaries()

    def step(self) -> Tensor:
        """One optimisation step; the value of every term, (terms,).

        Raises:
            NonFiniteLoss: if the selection of negatives meets embeddings that are not finite.
        """
        for group in self.optimiser.param_groups:
            group["lr"] = self.recipe.learning_rate * min(1.0, (self.taken + 1) / max(1, self.recipe.warmup))
        self.towers.train()
        index, views = self.batches.take(self._gathered_batch)
        if not self._draws_views():
            self._begin_next_batch()
        match self.recipe.method:
            case "supervised":
                values = self._supervised(index, views)
            case "smoco":
                values = self._within_modalities(index, views)
            case _:
                values = self._across_modalities(index, views)
        self.taken += 1
        return torch.stack([*values.values()]).detach()

    def _supervised(self, index: Tensor, views: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The cross-entropy of labels, for each modality; of grids the mean over cells, of y too that of x's labels."""
        losses = []
        for modality, view in views.items():
            labels = self.data.labels[self._having(modality, index)].to(self.device, non_blocking=True)
            with self.autocast():
                logits = self.classifiers[modality](self.towers.trunks[modality](self._augmented(view))).float()
            cells = zip(logits.split(self.data.sizes, dim=1), labels.view(len(labels), -1).unbind(1), strict=True)
            losses.append(torch.stack([cross_entropy(*cell) for cell in cells]).mean())
        loss = torch.stack(losses).sum()
        self._descend(loss)
        return {"loss": loss}

    def _having(self, modality: str, index: Tensor) -> Tensor:
        """Those of a batch with the modality, as many as can be normalised: in groups of one size, of two at least."""
        items = index[self.present[modality][index]]
        if len(items) == len(index):
            return index
        groups = self.recipe.groups
        return items[: len(items) // groups * groups] if len(items) >= 2 * groups else items[:0]

    def _within_modalities(self, index: Tensor, views: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        """SMoCo: two views of one modality are query and key, for each modality on its own."""
        items, losses, keys = index.to(self.device, non_blocking=True), {}, {}
        for modality, (first, second) in views.items():
            embedding, _ = self._outputs(modality, self._augmented(first))
            keys[modality] = self._keys(modality, self._augmented(second))
            losses[modality] = self._loss(modality, items, embedding, keys[modality])
        losses["loss"] = torch.stack([*losses.values()]).sum()
        self._descend(losses["loss"])
        for modality, rows in keys.items():
            self._enqueue(modality, rows, items)
        return losses

    def _across_modalities(self, index: Tensor, views: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """XMoCo and CM-ACC: the key of a modality's query is its pair, in the other modality."""
        items = index.to(self.device, non_blocking=True)
        views = {modality: self._augmented(view) for modality, view in views.items()}
        outputs = {modality: self._outputs(modality, view) for modality, view in views.items()}
        keys = {modality: self._keys(modality, view) for modality, view in views.items()}
        try:
            counts = self._select(items, outputs) if self.recipe.method == "cmacc" else {}
        except NonFinite as error:  # found here before the loss is looked at
            raise NonFiniteLoss(f"step {self.taken + 1}: {error}; lower the learning rate") from error
        if self.recipe.method == "xmoco":  # before the loss, as Alg. 4 and CM-ACC do
            for modality, rows in keys.items():
                self._enqueue(modality, rows, items)
        if self._draws_views():
            self._begin_next_batch()
        losses = {name: self._loss(OTHER[name], items, outputs[name][0], keys[OTHER[name]]) for name in MODALITIES}
        losses["loss"] = torch.stack([*losses.values()]).sum()
        self._descend(losses["loss"])
        return losses | counts

    def _loss(self, modality: str, items: Tensor, embedding: Tensor, key: Tensor) -> Tensor:
        """InfoNCE of embeddings (N, d) with keys and the dictionary of `modality`, without what `_left_out` says.

        Args:
            modality: of the keys.
            items: (N,) int64, on the device.
            embedding: (N, d) of the queries' towers.
            key: (N, d), finished.
        """
        entries = self.dictionaries[modality].entries
        excluded = self._left_out(modality, items)
        return info_nce(self.finished(embedding), key, entries, self.recipe.temperature, excluded=excluded)

    def _left_out(self, modality: str, items: Tensor) -> Tensor:
        """Which entries of a dictionary are no negatives of the queries of a batch's items (N,): (N, K) bool.

        By default those of the same item. Otherwise of XMoCo alone the key that has just entered: it is the positive.
        """
        entries = self.entries[modality]
        if self.recipe.own_excluded:
            return items.unsqueeze(1) == entries.entries.T
        excluded = torch.zeros(len(items), len(entries.entries), dtype=torch.bool, device=self.device)
        if self.recipe.method == "xmoco":
            rows = torch.arange(len(items), device=self.device)
            excluded[rows, (entries.pointer - len(items) + rows) % len(entries.entries)] = True
        return excluded

    def _select(self, items: Tensor, outputs: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        """Let the pool's most telling items enter each dictionary; returns of how many categories they are.

        Candidates of one modality are judged by the queries of the other, whose last layer they would move (Eq. 5).
        The published code's selection takes the batch itself for candidates too, and excludes none. Rows of the pool
        are chosen once; a pool larger than the set holds several views of a clip, of which two may enter together.
        """
        if self._pools_are_due():
            self._draw_pools()
        counts = {}
        for modality in MODALITIES:
            embedding, hidden = (rows.detach() for rows in outputs[OTHER[modality]])
            candidates, candidate_items = self.pools[modality], self.pooled[modality]
            present = torch.zeros(len(self.categories), dtype=torch.bool, device=self.device)
            present.index_fill_(0, self.entries[modality].entries.flatten(), True)
            excluded = present[candidate_items]
            if self.recipe.sampler == "released":
                own = self.finished(outputs[modality][0].detach())
                candidates, candidate_items = torch.cat([own, candidates]), torch.cat([items, candidate_items])
                excluded = None
            selected = select(
                self.recipe.sampler,
                candidates,
                embedding,
                hidden,
                n_select=self.recipe.batch,
                excluded=excluded,
                generator=self.selection_generator,
                temperature=self.recipe.posterior_temperature,
                normalised=self.recipe.normalised,
            )
            entering = candidate_items[selected]
            keys = self._renewed(modality, entering) if self.recipe.renewed else candidates[selected]
            self._enqueue(modality, keys, entering)
            seen = torch.zeros(self.kinds + 1, dtype=torch.bool, device=self.device)
            seen.index_fill_(0, self.categories[entering], True)
            counts[f"categories_{modality}"] = seen[: self.kinds].sum()
        self.counted = self.counted + torch.stack([*counts.values()])
        return {name: count.float() for name, count in counts.items()}

    def _pools_are_due(self) -> bool:
        return self.recipe.method == "cmacc" and self.taken % self.steps_per_epoch == 0

    def _draws_views(self) -> bool:
        """Whether this step draws views beside its batch's own; the next batch's are to be drawn after these."""
        return self._pools_are_due() or (self.recipe.method == "cmacc" and self.recipe.renewed)

    def _renewed(self, modality: str, items: Tensor) -> Tensor:
        """Keys (n, d) of another view of the items (n,), as old as those of this step's positives.

        The keys of a pool are up to an epoch older, which a query could learn to see instead of what they show.
        """
        return self._keys(modality, self._augmented(self.data.view(modality, items.cpu(), self.view_generator)))

    def _draw_pools(self) -> None:
        """Draw the pool of every modality from all pairs and encode it, once an epoch."""
        for modality in MODALITIES:
            items = drawn(self.members, self.recipe.pool, self.order_generator)
            self.pools[modality] = self._encoded(modality, items)
            self.pooled[modality] = items.to(self.device, non_blocking=True)

    def _fill_dictionaries(self) -> None:
        """Keys of random pairs, so that no query meets noise of another scale than that of features."""
        for modality in self.modalities:
            items = drawn(self.members, self.recipe.dictionary, self.order_generator)
            self.dictionaries[modality] = Dictionary(self._encoded(modality, items))
            self.entries[modality] = Dictionary(items.unsqueeze(1).to(self.device))

    def _encoded(self, modality: str, items: Tensor) -> Tensor:
        """The momentum encoder's embeddings (n, d) of a random view of every item (n,), batch by batch."""
        batches = items.split(self.recipe.batch)  # in random order already: nothing to shuffle
        views = (self.data.view(modality, part, self.view_generator) for part in batches)
        views = ahead(views, early=self.data.streamed)
        return torch.cat([self._keys_in_order(modality, self._augmented(view)) for view in views])

    def _outputs(self, modality: str, view: Tensor) -> tuple[Tensor, Tensor]:
        """Of the queries' towers: embeddings (N, d), unfinished, and the inputs (N, e) of the last layer."""
        with self.autocast():
            return self.towers(modality, view)

    def _keys(self, modality: str, view: Tensor) -> Tensor:
        """The momentum encoder's embeddings (N, d), made of the batch in random order if the recipe says so."""
        if self.recipe.groups == 1 or not self.recipe.shuffle:  # all are in one group, in whatever order
            return self._keys_in_order(modality, view)
        encode = functools.partial(self._keys_in_order, modality)
        return encode_shuffled(encode, view, generator=self.shuffle_generator)

    def _keys_in_order(self, modality: str, view: Tensor) -> Tensor:
        with self.autocast():
            embedding, _ = self.keys(modality, view)
        return self.finished(embedding)

    def finished(self, embedding: Tensor) -> Tensor:
        """Embeddings (..., d) as the loss compares them: of unit length if the recipe says so."""
        return normalize(embedding, dim=-1) if self.recipe.normalised else embedding

    def _augmented(self, view: Tensor) -> Tensor:
        view = view.to(self.device, non_blocking=True)
        return augment.at_random(view, self.recipe.size, self.recipe.greyscale, generator=self.generator)

    def _descend(self, loss: Tensor) -> None:
        """One step of the towers, which the momentum encoder follows."""
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        if self.recipe.method in SELF_SUPERVISED:
            self.keys.update(self._leader())

    def _enqueue(self, modality: str, keys: Tensor, items: Tensor) -> None:
        self.dictionaries[modality].enqueue(keys)
        self.entries[modality].enqueue(items.unsqueeze(1))

    def _leader(self) -> nn.Module:
        """What the momentum encoder follows: with an extra layer, that of the other modality (not in SMoCo)."""
        return crossed(self.towers) if self.crosses and self.recipe.extra_layer else self.towers

    def _gathered_batch(self) -> tuple[Tensor, dict[str, Any]]:
        """Indices (N,) of the next batch and its views by modality, two each of SMoCo, none of what an item lacks."""
        index = self.order.take()
        if self.crosses:
            return index, dict(zip(MODALITIES, self.data.pair(index, self.view_generator), strict=True))
        if self.recipe.method == "smoco":
            return index, {name: self.data.twins(name, index, self.view_generator) for name in self.modalities}
        having = {name: self._having(name, index) for name in self.modalities}
        views = {name: self.data.view(name, items, self.view_generator) for name, items in having.items() if len(items)}
        return index, views


def _encoder(recipe: AudioVisualRecipe, modality: str, data: Pairs) -> Encoder:
    """The encoder of a modality, for as many channels as the data has; of a modality it lacks, the usual ones."""
    trunk = recipe.video_trunk if modality == "video" else recipe.audio_trunk
    items = data.has(modality).nonzero().flatten()[:1]
    channels = data.centred(modality, items).shape[2] if len(items) else None
    return Encoder(trunk, recipe.width, channels=channels, groups=recipe.groups)
