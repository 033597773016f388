"""Which pairs are trained with, and whether they are enough for the recipe."""

import torch
from torch import Tensor

from repro.audiovisual import MODALITIES
from repro.audiovisual.data import Pairs
from repro.audiovisual.recipe import AudioVisualRecipe

DRAW = 240_000  # seed of the clips that `recipe.clips` draws, the same in every cell


def members(recipe: AudioVisualRecipe, data: Pairs) -> Tensor:
    """Indices of the pairs to train with: those of its training part with every modality that any item has.

    Supervised training, which has an encoder and a classifier for each modality on its own, takes all that are labelled
    and have the first modality; what lacks the other one counts in the first alone. Of more than `recipe.clips` so many
    are drawn, in every cell the same ones of the same candidates.

    Raises:
        ValueError: if the data lacks what the method needs, has too few pairs for batch, dictionary and pool, or
            pictures smaller than the crop.
    """
    modalities, usable = modalities_of(data), data.pretrain
    if recipe.method in ("xmoco", "cmacc") and modalities != MODALITIES:
        raise ValueError(f"method={recipe.method!r} needs video and sound; {data.name} has {', '.join(modalities)} "
                         "alone; choose smoco")
    if recipe.method == "supervised":
        usable, modalities = usable & (data.labels.view(len(usable), -1) >= 0).all(1), modalities[:1]
    for modality in modalities:
        usable = usable & data.has(modality)
    found = usable.nonzero().flatten()
    if 0 < recipe.clips < len(found):
        order = torch.randperm(len(found), generator=torch.Generator().manual_seed(DRAW))
        found = found[order[: recipe.clips].sort().values]
    _refuse_large_crop(recipe, data)
    limit = f" (clips={recipe.clips})" if recipe.clips else ""
    if recipe.method != "scratch" and recipe.batch > len(found):
        raise ValueError(
            f"batch={recipe.batch} exceeds the {len(found)} training pairs of {data.name}{limit}; lower it"
        )
    if recipe.method == "cmacc":
        spare = max(0, min(recipe.pool, len(found)) - recipe.dictionary) * max(1, recipe.pool // len(found))
        if spare < recipe.batch:
            raise ValueError(
                f"dictionary={recipe.dictionary} may hold all but {spare} candidates of pool={recipe.pool}, drawn from "
                f"{len(found)} pairs{limit}, and batch={recipe.batch} are selected; choose a smaller dictionary"
            )
    return found


def modalities_of(data: Pairs) -> tuple[str, ...]:
    """Those that any item has, in the order of `MODALITIES`."""
    return tuple(modality for modality in MODALITIES if bool(data.has(modality).any()))


def drawn(members: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` of the members, none twice before all were drawn; their order is random."""
    rounds = [torch.randperm(len(members), generator=generator) for _ in range(-(-count // len(members)))]
    return members[torch.cat(rounds)[:count]]


def _refuse_large_crop(recipe: AudioVisualRecipe, data: Pairs) -> None:
    """Raise ValueError if the clips of a set have fewer pixels than the recipe's crop."""
    for item in data.has("video").nonzero().flatten()[:1]:
        shape = data.centred("video", item.unsqueeze(0)).shape
        if len(shape) == 6 and min(shape[4:]) < recipe.size:
            raise ValueError(f"size={recipe.size} exceeds the frames of {data.name}, {shape[4]} x {shape[5]} pixels; "
                             "lower it")
