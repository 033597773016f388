"""The terms that objectives on skeletons consist of: what each looks at, and its loss. Another is one more `Term`.

Recipes, which name terms, need no torch: losses are imported when they are called.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from repro.table import Lazy

if TYPE_CHECKING:
    from torch import Tensor

OBJECTIVES = "repro.contrast.objectives"
attraction, info_nce = Lazy(OBJECTIVES, "attraction"), Lazy(OBJECTIVES, "info_nce")
reconstruction, squared_error = Lazy(OBJECTIVES, "reconstruction"), Lazy(OBJECTIVES, "squared_error")
sequence_contrast = Lazy(OBJECTIVES, "sequence_contrast")
PRINTED = ("AE", "CE", "AD", "CD")  # attractive or contrastive, encoder or decoder: the paper prints their subsets
KINDS = ("readout", "projected", "embedded", "decoded")
INPUTS = ("augmented", "clean", "key")


@dataclasses.dataclass(frozen=True)
class Batch:
    """What a step has computed for the losses of its terms."""

    clean: "Tensor"                   # (N, T, D) untransformed sequences, with padding
    lengths: "Tensor"                 # (N,) their valid frames
    readout: Mapping[str, "Tensor"]   # (N, H) of each input that a term needs so: what the encoder makes of it
    projected: Mapping[str, "Tensor"]  # (N, projection), likewise: behind the head
    embedded: Mapping[str, "Tensor"]  # (N, projection), likewise: behind the head, of unit length
    decoded: Mapping[str, "Tensor"]   # (N, T, D), likewise
    dictionary: "Tensor"              # (K, projection) earlier embedded keys; none where no term needs such a key
    sequence_dictionary: "Tensor"     # (K', T', D) earlier decoded keys, likewise


@dataclasses.dataclass(frozen=True)
class Term:
    """A term of an objective, written as its name is: "CE+AD" is the sum of two, each times its weight.

    Attributes:
        name: without "+".
        needs: of a `SkeletonRecipe`, the inputs that its loss looks at, by kind, one of `KINDS`. Inputs are
            "augmented", a view; "clean", the sequences as they are; and "key", another view, seen by the momentum
            encoder, which then follows. Embedded and decoded keys go to the dictionary of their kind.
        loss: its scalar mean over the batch, of what it needs and the recipe.
    """

    name: str
    needs: Callable[[Any], Mapping[str, tuple[str, ...]]]
    loss: "Callable[[Batch, Any], Tensor]"


def _attraction(batch: Batch, recipe: Any) -> "Tensor":
    return attraction(batch.embedded["augmented"], batch.embedded["clean"])


def _contrast(batch: Batch, recipe: Any) -> "Tensor":
    return info_nce(batch.embedded["augmented"], batch.embedded["key"], batch.dictionary, recipe.temperature)


def _reconstruction(batch: Batch, recipe: Any) -> "Tensor":
    loss = {"l1": reconstruction, "squared": squared_error}[recipe.ad_loss]
    return loss(batch.decoded[recipe.ad_input], batch.clean, batch.lengths)


def _sequence_contrast(batch: Batch, recipe: Any) -> "Tensor":
    query, key, negatives = batch.decoded["augmented"], batch.decoded["key"], batch.sequence_dictionary
    return sequence_contrast(query, key, negatives, batch.lengths, recipe.temperature)


TERMS = {
    term.name: term
    for term in (
        Term("AE", lambda recipe: {"embedded": ("augmented", "clean")}, _attraction),
        Term("CE", lambda recipe: {"embedded": ("augmented", "key")}, _contrast),
        Term("AD", lambda recipe: {"decoded": (recipe.ad_input,)}, _reconstruction),
        Term("CD", lambda recipe: {"decoded": ("augmented", "key")}, _sequence_contrast),
    )
}
