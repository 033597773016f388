"""The strategies of `repro.contrast.negatives.select`: which candidates are chosen. Another is one more `Sampler`.

A strategy imports what it needs when it is called: recipes, which name samplers, need no torch.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor


@dataclasses.dataclass(frozen=True)
class Pool:
    """What a strategy chooses from, as `select` has checked it; tensors are of one precision, float32 or float64."""

    candidates: "Tensor"    # (P, d) keys
    keys: "Tensor"          # (P, d) the same, of moderate size: a common factor of all changes no choice
    queries: "Tensor"       # (M, d) outputs of the last layer, before any normalisation
    query_inputs: "Tensor"  # (M, e) inputs of the last layer
    free: "Tensor"          # (P,) bool, what may be chosen; where values may be looked at, all but for a `whole` pool
    n_select: int           # how many, from 1
    generator: "Generator"  # on the device of the candidates
    temperature: float      # of the pseudo-labels
    normalised: bool        # whether the queries divided by their norms are the classes
    checked: bool           # whether values may be looked at, for which the host waits

    @functools.cached_property
    def classes(self) -> "Tensor":
        """(M, d) whose inner products with a candidate are its logits, times the temperature."""
        from repro.contrast.arguments import query_norms

        return self.queries / query_norms(self.queries, checked=self.checked) if self.normalised else self.queries


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampler:
    """A strategy.

    Attributes:
        name: what users type.
        choose: of a pool, (n_select,) int64 distinct rows that are free.
        posterior: whether it looks at the queries as classes whose probabilities have a temperature, and so reads that.
        whole: whether it takes candidates too that may not be chosen; others are handed the free ones alone, as far as
            values are checked.
        batch_first: whether the candidates begin with the batch's own features, row i the positive of query i.
        waits: whether it needs the host to look at values.
    """

    name: str
    choose: Callable[[Pool], "Tensor"]
    posterior: bool = True
    whole: bool = False
    batch_first: bool = False
    waits: bool = False


def _fifo(pool: Pool) -> "Tensor":
    """The first, in the order given: MoCo's rule, where the candidates are the keys of the batch."""
    return pool.free.byte().argsort(descending=True, stable=True)[: pool.n_select]


def _random(pool: Pool) -> "Tensor":
    """Uniform, without replacement."""
    from repro.contrast.seeding import uniformly

    return uniformly(pool.free, pool.n_select, pool.generator)


def _ohem(pool: Pool) -> "Tensor":
    """The largest losses -log p_ny of `gradient_factors`, in descending order; of equal ones the earlier."""
    from repro.contrast.arguments import magnitudes
    from repro.contrast.embeddings import pseudo_labelled

    _, losses = pseudo_labelled(pool.candidates @ (pool.classes / pool.temperature).T)
    if pool.checked:
        magnitudes({"the loss of candidates and queries": losses})
    return losses.masked_fill_(~pool.free, -1).argsort(descending=True, stable=True)[: pool.n_select]


def _gradient(pool: Pool) -> "Tensor":
    """`kmeans_plusplus` over the gradients of `gradient_factors`; uniform if these are equal, as with one query."""
    from repro.contrast.embeddings import gradients, normalised_gradients
    from repro.contrast.seeding import seeds

    embed = normalised_gradients if pool.normalised else gradients
    judged_by = (pool.queries, pool.query_inputs, pool.temperature, pool.checked)
    embeddings = embed(pool.keys, pool.candidates, *judged_by)
    return seeds(embeddings, pool.free, pool.n_select, pool.generator)


def _feature(pool: Pool) -> "Tensor":
    """`kmeans_plusplus` over the candidates."""
    from repro.contrast.embeddings import Embeddings
    from repro.contrast.seeding import seeds

    return seeds(Embeddings(pool.keys), pool.free, pool.n_select, pool.generator)


def _released(pool: Pool) -> "Tensor":
    """What the published code does instead.

    A candidate is embedded as the gradient of the queries' mean cross-entropy with respect to it: (p - onehot)' q /
    (M t). Seeds are drawn in proportion to the distance, not its square, then k-means runs until nothing changes, and
    the point of every cluster nearest to its mean is chosen, of equally near ones the earliest. Uniform draws make up
    for clusters that lose all points; the published code returns fewer.
    """
    import torch

    from repro.contrast.arguments import moderated
    from repro.contrast.embeddings import Embeddings
    from repro.contrast.seeding import nearest_to_means, seeds, uniformly

    candidates, classes, temperature = pool.candidates, pool.classes, pool.temperature
    if len(candidates) < len(classes):
        raise ValueError(
            f"released takes the batch's features first among the candidates, one for each of the {len(classes)} "
            f"queries, but there are {len(candidates)} candidates; put the batch's features in front of the pool"
        )
    share = torch.softmax((classes / temperature) @ candidates.T, dim=1)                 # (M, P)
    share.diagonal().sub_(1)
    gradients = share.T @ (classes / (len(classes) * temperature))                       # (P, d)
    points = Embeddings(*moderated({"the gradient of the candidates": gradients}))
    starts = seeds(points, pool.free, pool.n_select, pool.generator, squared=False)
    central = nearest_to_means(points.factors[0].T, starts, pool.free)
    rest = pool.free.index_fill(0, central, False)
    return torch.cat([central, uniformly(rest, pool.n_select - len(central), pool.generator)])


SAMPLERS = {
    sampler.name: sampler
    for sampler in (
        Sampler(name="fifo", choose=_fifo, posterior=False),
        Sampler(name="random", choose=_random, posterior=False, whole=True),
        Sampler(name="ohem", choose=_ohem),
        Sampler(name="gradient", choose=_gradient),
        Sampler(name="feature", choose=_feature, posterior=False),
        Sampler(name="released", choose=_released, whole=True, batch_first=True, waits=True),
    )
}
