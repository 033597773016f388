"""Pre-training on pairs of video and sound with SMoCo, XMoCo or CM-ACC; supervised training and no training beside."""

import abc
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from repro.audiovisual import MODALITIES, augment
from repro.audiovisual.data import Pairs, channels_of, drawn, members, modalities_of
from repro.audiovisual.model import Encoder, Towers, crossed
from repro.audiovisual.recipe import SELF_SUPERVISED, AudioVisualRecipe
from repro.contrast import SAMPLERS
from repro.contrast.active import NonFinite, select
from repro.contrast.dictionary import Dictionary
from repro.contrast.momentum import MomentumEncoder, encode_shuffled
from repro.contrast.objectives import info_nce
from repro.data.parallel import ahead
from repro.run.fit import NonFiniteLoss
from repro.run.learner import Learner, ShuffledBatches, seeds

OPTIMISER = torch.optim.Adam
REPORT_STEPS = 5  # of runs of so many iterations, which are about what happens along them
OTHER = dict(zip(MODALITIES, reversed(MODALITIES), strict=True))


class Gatherer(Learner):
    """A learner whose next batch, of data that are streamed, a thread gathers while the device trains.

    `_gathered_batch` draws from the streams `gathering`. A saved state has these as before a batch not yet taken.
    """

    recipe: AudioVisualRecipe
    data: Pairs
    gathering: tuple[str, ...]
    passing: tuple[str, ...] = ("coming",)

    def __init__(self, recipe: AudioVisualRecipe, data: Pairs, seed: int, device: torch.device) -> None:
        super().__init__(recipe, data.to(device), seed, device)
        self.worker = ThreadPoolExecutor(1)
        self.coming: tuple[Future[Any], dict[str, Any]] | None = None  # the next batch, and the streams before it

    @abc.abstractmethod
    def _gathered_batch(self) -> tuple[Any, Any]:
        """Indices of the next batch and its views."""

    def _next_batch(self) -> tuple[Any, Any]:
        if self.coming is None:
            return self._gathered_batch()
        (batch, _), self.coming = self.coming, None
        return batch.result()

    def observe(self) -> None:
        """Begin to gather the next batch, when this step has drawn all it will."""
        if self.data.streamed and self.taken < self.total_steps:
            before = {name: getattr(self, name).get_state() for name in self.gathering}
            self.coming = self.worker.submit(self._gathered_batch), before

    def state_dict(self) -> dict[str, Any]:
        """See `Learner.state_dict`."""
        if self.coming is None:
            return super().state_dict()
        wait([self.coming[0]])
        return super().state_dict() | self.coming[1]


class Pretrainer(Gatherer):
    """Pre-training of the towers by the method of a recipe; `method="scratch"` gives untrained towers and no steps.

    Equal seeds start from equal weights on every device.

    Attributes:
        modalities: those the data has and the method trains, in the order of `MODALITIES`.
        members: the pairs to train with; refused as `members` does.
        terms: the loss of every modality's queries in nats, their sum, and for CM-ACC how many categories the
            negatives selected in this step come from, for both modalities.

    Source: CM-ACC, Algorithms 2 and 4.
    """

    parts = ("towers", "classifiers", "keys", "dictionaries", "entries", "optimiser")
    gathering = ("order", "order_generator", "view_generator")
    streams = ("generator", "selection_generator", "shuffle_generator", *gathering)
    kept = ("pools", "pooled", "counted")
    passing = (*Gatherer.passing, "seen", "fills_pools")

    def __init__(self, recipe: AudioVisualRecipe, data: Pairs, seed: int, device: torch.device) -> None:
        super().__init__(recipe, data, seed, device)
        method = recipe.method
        self.modalities, self.members = modalities_of(data), members(recipe, data)
        self.sampler = SAMPLERS[recipe.sampler]
        contrasted = self.modalities if method in SELF_SUPERVISED else ()
        selected = MODALITIES if method == "cmacc" else ()
        self.terms = (*contrasted, "loss", *(f"categories_{modality}" for modality in selected))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            trunks = {"video": recipe.video_trunk, "audio": recipe.audio_trunk}
            encoders = [Encoder(trunk, recipe.width, channels=channels_of(data, modality), groups=recipe.groups)
                        for modality, trunk in trunks.items()]  # of a modality that the data lack, of the usual ones
            self.towers = Towers(*encoders, embedding=recipe.embedding, extra_layer=recipe.extra_layer)
            supervised = self.modalities if method == "supervised" else ()
            classifiers = {modality: nn.Linear(recipe.width, sum(data.sizes)) for modality in supervised}
            self.classifiers = nn.ModuleDict(classifiers)
        self.crosses = method in ("xmoco", "cmacc")
        self.shuffles = bool(contrasted) and recipe.shuffle and recipe.groups > 1  # else all are in one group
        self.keys = MomentumEncoder(self._leader(), recipe.momentum)
        for module in (self.towers, self.classifiers, self.keys):
            module.to(device)
        parameters = [*self.towers.parameters(), *self.classifiers.parameters()]
        self.optimiser = OPTIMISER(parameters, lr=recipe.learning_rate, fused=True)
        order, shuffle, views, crops, selection = seeds(seed, 5)
        self.generator = torch.Generator(device).manual_seed(crops)
        self.selection_generator = torch.Generator(device).manual_seed(selection)
        self.order_generator = torch.Generator().manual_seed(order)
        self.shuffle_generator = torch.Generator().manual_seed(shuffle)
        self.view_generator = torch.Generator().manual_seed(views)
        self.steps_per_epoch = max(1, len(self.members) // recipe.batch)
        self.total_steps = 0 if method == "scratch" else recipe.epochs * self.steps_per_epoch
        if recipe.iterations:
            self.total_steps, self.report_steps = min(self.total_steps, recipe.iterations), REPORT_STEPS
        self.costly_steps = -(-self.total_steps // self.steps_per_epoch) if method == "cmacc" else 0
        self.order = ShuffledBatches(self.members, self.steps_per_epoch, self.order_generator, recipe.batch)
        self.counted = torch.zeros(len(MODALITIES), dtype=torch.int64, device=device)  # categories selected, all steps
        self.kinds = int(data.categories.max()) + 1
        self.categories = data.categories.where(data.categories >= 0, self.kinds).to(device)  # the last: unknown
        self.dictionaries, self.entries, self.pools, self.pooled = nn.ModuleDict(), nn.ModuleDict(), {}, {}
        for modality in contrasted:  # keys of random pairs, so that no query meets noise of another scale than features
            items = drawn(self.members, recipe.dictionary, self.order_generator)
            self.dictionaries[modality] = Dictionary(self._encoded(modality, items))
            self.entries[modality] = Dictionary(items.unsqueeze(1).to(device))
        for modality in selected:
            embeddings = self.dictionaries[modality].entries
            self.pools[modality] = embeddings.new_zeros(recipe.pool, embeddings.shape[1])
            self.pooled[modality] = self.entries[modality].entries.new_zeros(recipe.pool)

    def prepare(self) -> None:
        """The views of the next batch, its items or labels, the learning rate, and in which order keys are encoded."""
        warming = min(1.0, (self.taken + 1) / max(1, self.recipe.warmup))
        self.set_learning_rate(self.optimiser, self.recipe.learning_rate * warming)
        index, views = self._next_batch()
        self.given["items"] = index
        for modality, of_modality in views.items():
            for number, view in enumerate(of_modality):
                self.given[f"{modality} {number}"] = view
            if self.recipe.method == "supervised":
                self.given[f"labels of {modality}"] = self.data.labels[self._having(modality, index)]
        self.seen = {modality: len(of_modality) for modality, of_modality in views.items()}
        whole = all(len(view) == self.recipe.batch for view, *_ in views.values())
        self.bucket = tuple(views) if whole else None  # of items that lack a modality too many sizes would be recorded
        if self.shuffles:
            times = 2 if self.recipe.method == "cmacc" and self.recipe.renewed else 1
            for number in range(times):
                for modality, (view, *_) in views.items():
                    order = torch.randperm(len(view), generator=self.shuffle_generator)
                    self.given[f"order of {modality} {number}"] = order
        self.fills_pools = self.recipe.method == "cmacc" and self.taken % self.steps_per_epoch == 0
        if self.fills_pools:
            self.bucket = None  # once an epoch: it is not recorded

    def compute(self) -> Tensor:
        """One optimisation step; the value of every term, (terms,).

        NonFiniteLoss if, on a CPU, the selection meets embeddings that are not finite; on CUDA the loss alone tells.
        """
        self.towers.train()
        views = {modality: [self.given.tensor(f"{modality} {number}") for number in range(count)]
                 for modality, count in self.seen.items()}
        values = self._supervised(views) if self.recipe.method == "supervised" else self._contrasted(views)
        return torch.stack([values[name] for name in self.terms]).detach()

    def unrecordable(self) -> str:
        """See `Learner.unrecordable`."""
        if self.recipe.method == "cmacc" and self.recipe.renewed:
            return "keys of selected negatives are made of views that the host draws"
        if self.recipe.method == "cmacc" and self.sampler.waits:
            return f"the sampler {self.recipe.sampler} waits for the device"
        return super().unrecordable()

    def _supervised(self, views: Mapping[str, Sequence[Tensor]]) -> dict[str, Tensor]:
        """The cross-entropy of labels, for each modality; of grids the mean over cells."""
        losses = {}
        for modality, (view,) in views.items():
            labels = self.given.tensor(f"labels of {modality}")
            with self.autocast():
                logits = self.classifiers[modality](self.towers.trunks[modality](self._augmented(view))).float()
            cells = zip(logits.split(self.data.sizes, dim=1), labels.view(len(labels), -1).unbind(1), strict=True)
            losses[modality] = torch.stack([cross_entropy(*cell) for cell in cells]).mean()
        return self._descended(losses)

    def _contrasted(self, views: Mapping[str, Sequence[Tensor]]) -> dict[str, Tensor]:
        """The key of a modality's query is its pair, in the other modality; of SMoCo another view of its own."""
        items = self.given.tensor("items")
        outputs, keys, counts = {}, {}, {}
        for modality, of_modality in views.items():
            seen = [self._augmented(view) for view in of_modality]
            with self.autocast():
                outputs[modality] = self.towers(modality, seen[0])
            keys[modality] = self._keys(modality, seen[-1], f"order of {modality} 0")
        if self.recipe.method == "cmacc":
            try:
                counts = self._select(items, outputs)
            except NonFinite as error:  # found here before the loss is looked at
                raise NonFiniteLoss(f"step {self.taken + 1}: {error}; lower the learning rate") from error
        elif self.recipe.method == "xmoco":
            for modality, rows in keys.items():  # before the loss, as Alg. 4 and CM-ACC do
                self._enqueue(modality, rows, items)
        losses = {}
        for modality, (embedding, _) in outputs.items():
            of_keys = OTHER[modality] if self.crosses else modality
            losses[modality] = self._loss(of_keys, items, embedding, keys[of_keys])
        values = self._descended(losses)
        if self.recipe.method == "smoco":
            for modality, rows in keys.items():
                self._enqueue(modality, rows, items)
        return values | counts

    def _loss(self, modality: str, items: Tensor, embedding: Tensor, key: Tensor) -> Tensor:
        """InfoNCE of the queries' embeddings (N, d) with keys (N, d) and the dictionary of a modality.

        Earlier keys of a query's own item are no negatives; where the recipe keeps them, of XMoCo the key that has just
        entered still is none: it is the positive.
        """
        entries, size = self.entries[modality], self.recipe.dictionary
        if self.recipe.own_excluded:
            excluded = items.unsqueeze(1) == entries.entries.T                                                  # (N, K)
        elif self.recipe.method == "xmoco":
            entered = entries.pointer - len(items) + torch.arange(len(items), device=self.device)
            excluded = (entered % size).unsqueeze(1) == torch.arange(size, device=self.device)
        else:
            excluded = torch.zeros(len(items), size, dtype=torch.bool, device=self.device)
        negatives = self.dictionaries[modality].entries
        return info_nce(self.finished(embedding), key, negatives, self.recipe.temperature, excluded=excluded)

    def _select(self, items: Tensor, outputs: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        """Let the pool's most telling items enter each dictionary; returns of how many categories they are.

        Candidates of one modality are judged by the queries of the other, whose last layer they would move (Eq. 5).

        Source: CM-ACC, Alg. 2; `select` chooses.
        """
        if self.fills_pools:
            for modality in MODALITIES:  # in place, as what was recorded looks there
                pooled = drawn(self.members, self.recipe.pool, self.order_generator)
                self.pools[modality].copy_(self._encoded(modality, pooled))
                self.pooled[modality].copy_(pooled, non_blocking=True)
        counts = {}
        for modality in MODALITIES:
            embedding, hidden = (rows.detach() for rows in outputs[OTHER[modality]])
            candidates, candidate_items = self.pools[modality], self.pooled[modality]
            present = torch.zeros(len(self.categories), dtype=torch.bool, device=self.device)
            present.index_fill_(0, self.entries[modality].entries.flatten(), True)
            excluded = present[candidate_items]
            if self.sampler.batch_first:
                own = self.finished(outputs[modality][0].detach())
                candidates, candidate_items = torch.cat([own, candidates]), torch.cat([items, candidate_items])
                excluded = None
            selected = select(
                self.recipe.sampler, candidates, embedding, hidden, n_select=self.recipe.batch, excluded=excluded,
                generator=self.selection_generator, temperature=self.recipe.posterior_temperature,
                normalised=self.recipe.normalised, checked=not self.fixed or self.sampler.waits,
            )
            entering, keys = candidate_items[selected], candidates[selected]
            if self.recipe.renewed:  # by another view: those of the pool are up to an epoch older than the positives
                view = self.data.view(modality, entering.cpu(), self.view_generator)
                keys = self._keys(modality, self._augmented(view.to(self.device)), f"order of {modality} 1")
            self._enqueue(modality, keys, entering)
            seen = torch.zeros(self.kinds + 1, dtype=torch.bool, device=self.device)
            seen.index_fill_(0, self.categories[entering], True)
            counts[f"categories_{modality}"] = seen[: self.kinds].sum()
        self.counted += torch.stack([*counts.values()])
        return {name: count.float() for name, count in counts.items()}

    def _encoded(self, modality: str, items: Tensor) -> Tensor:
        """The momentum encoder's embeddings (n, d) of a random view of every item (n,), batch by batch."""
        batches = items.split(self.recipe.batch)  # in random order already: nothing to shuffle
        views = (self.data.view(modality, part, self.view_generator) for part in batches)
        views = ahead(views) if self.data.streamed else views
        views = (view.to(self.device, non_blocking=True) for view in views)
        return torch.cat([self._keys(modality, self._augmented(view)) for view in views])

    def _keys(self, modality: str, view: Tensor, order: str = "") -> Tensor:
        """Keys (n, d) of a view (n, ...), encoded in the order of that name where groups are shuffled."""
        def encode(view: Tensor) -> Tensor:
            with self.autocast():
                embedding, _ = self.keys(modality, view)
            return self.finished(embedding)

        return encode_shuffled(encode, view, self.given.tensor(order)) if order and self.shuffles else encode(view)

    def finished(self, embedding: Tensor) -> Tensor:
        """Embeddings (..., d) as the loss compares them: of unit length if the recipe says so."""
        return normalize(embedding, dim=-1) if self.recipe.normalised else embedding

    def _augmented(self, view: Tensor) -> Tensor:
        return augment.at_random(view, self.recipe.size, self.recipe.greyscale, generator=self.generator)

    def _descended(self, losses: dict[str, Tensor]) -> dict[str, Tensor]:
        """The losses and their sum, after one step of the towers on it, which the momentum encoder follows."""
        loss = torch.stack([*losses.values()]).sum()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        if self.recipe.method in SELF_SUPERVISED:
            self.keys.update(self._leader())
        return losses | {"loss": loss}

    def _enqueue(self, modality: str, keys: Tensor, items: Tensor) -> None:
        self.dictionaries[modality].enqueue(keys)
        self.entries[modality].enqueue(items.unsqueeze(1))

    def _leader(self) -> nn.Module:
        """What the momentum encoder follows."""
        return crossed(self.towers) if self.crosses and self.recipe.extra_layer else self.towers

    def _gathered_batch(self) -> tuple[Tensor, dict[str, Any]]:
        """Indices (N,) of the next batch and by modality its views: of queries, and of SMoCo of keys."""
        index = self.order.take()
        if self.crosses:  # a view is both
            pair = self.data.pair(index, self.view_generator)
            return index, {name: (view,) for name, view in zip(MODALITIES, pair, strict=True)}
        if self.recipe.method == "smoco":
            return index, {name: self.data.twins(name, index, self.view_generator) for name in self.modalities}
        having = {name: self._having(name, index) for name in self.modalities}
        views = {name: (self.data.view(name, items, self.view_generator),)
                 for name, items in having.items() if len(items)}
        return index, views

    def _having(self, modality: str, index: Tensor) -> Tensor:
        """Those of a batch with the modality, as many as can be normalised: in groups of one size, of two at least."""
        items, groups = index[self.data.has(modality)[index]], self.recipe.groups
        if len(items) == len(index):
            return index
        return items[: len(items) // groups * groups] if len(items) >= 2 * groups else items[:0]
