"""Pairs of video and sound: bundled clips, grids of characters, recordings; which of them are trained with."""

import hashlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from repro.audiovisual import CHARACTERS, MODALITIES, prepare, synthetic
from repro.audiovisual.characters import Characters
from repro.audiovisual.characters import load as load_characters
from repro.audiovisual.clips import Clips
from repro.audiovisual.decode import ROOM, ROWS_PER_FRAME, SIZES
from repro.audiovisual.recipe import AudioVisualRecipe
from repro.audiovisual.splits import DATASETS
from repro.recipe import choose

DRAW = 240_000  # seed of the clips that `recipe.clips` draws, the same in every run

Pairs = Clips | Characters  # items with two modalities, "video" and "audio", and what both say of them


def load(
    name: str, root: str | Path | None = None, *, window: int = 16, size: int = 112, split: str | None = None,
    subset: bool = False, redundancy: float = 0.5, **grids: Any,
) -> Pairs:
    """Load a data set.

    Args:
        name: one of `DATASETS`.
        root: folder of real data; REPRO_DATA by default.
        window: frames of a view of clips.
        size: pixels of the crop that recordings will be seen through; see `stored_size`.
        split: of recordings, a name in their manifest, its first by default: its training part may be pre-trained on.
        subset: of recordings, accept a part of the official distribution.
        redundancy: of `synthetic`, see `synthetic.load`.
        **grids: see `characters.load`.

    Raises:
        ValueError: if the name is unknown, an option is not among those allowed, or the files are damaged.
        FileNotFoundError: if files are missing or not prepared, saying where they come from or what prepares them.
    """
    choose("dataset", name, DATASETS)
    if name in CHARACTERS:
        return load_characters(name, root, **grids)
    if grids:
        raise TypeError(f"{', '.join(grids)}: no option of {name}, but at most of {' and '.join(CHARACTERS)}")
    if name == "synthetic":
        return synthetic.load(redundancy, window)
    clips = prepare.source(name, None if root is None else Path(root), size=stored_size(size), subset=subset)
    made = clips.load()
    masks, labels = clips.masks(made), clips.labels(made)
    split = choose("split", split or next(iter(masks)), masks)
    arrays = made.arrays | masks[split] | {
        "labels": labels, "categories": labels, "pretrain": masks[split]["train"],
        "first_frame": made.first_rows("frames"), "first_row": made.first_rows("mel"),
    }
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    digest = hashlib.sha256(f"{clips.digest(made)} {split}".encode()).hexdigest()
    return Clips(clips.title, digest, clips.listing.classes, **tensors, rows_per_frame=ROWS_PER_FRAME, window=window)


def stored_size(size: int) -> int:
    """Height of the stored pictures that a crop of `size` pixels, always 58 % of one, is taken of: 256 for 224."""
    return max(SIZES[0], size * ROOM[0] // ROOM[1])


def members(recipe: AudioVisualRecipe, data: Pairs) -> Tensor:
    """Indices (n,) of the pairs to train with: of the training part those that lack no modality which the set has.

    Supervised training takes all that are labelled and have the set's first modality. If there are more than
    `recipe.clips`, that many of them are drawn: the same ones in every run with the same candidates.

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
    pairs, source = usable.nonzero().flatten(), data.name
    if 0 < recipe.clips < len(pairs):
        source += f" with clips={recipe.clips}"
        order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(DRAW))
        pairs = pairs[order[: recipe.clips].sort().values]
    check_crop(recipe.size, data)
    if recipe.method != "scratch" and recipe.batch > len(pairs):
        raise ValueError(f"batch={recipe.batch} exceeds the {len(pairs)} training pairs of {source}; lower it")
    if recipe.method == "cmacc":
        spare = max(0, min(recipe.pool, len(pairs)) - recipe.dictionary) * max(1, recipe.pool // len(pairs))
        if spare < recipe.batch:
            raise ValueError(f"dictionary={recipe.dictionary} may hold all but {spare} candidates of "
                             f"pool={recipe.pool}, drawn from {len(pairs)} pairs of {source}, and "
                             f"batch={recipe.batch} are selected; choose a smaller dictionary")
    return pairs


def check_crop(size: int, data: Pairs) -> None:
    """Refuse clips with frames smaller than the crop of `size` pixels, as a ValueError."""
    height, width = data.frames.shape[1:3] if isinstance(data, Clips) and len(data.frames) else (size, size)
    if min(height, width) < size:
        raise ValueError(f"size={size} exceeds the frames of {data.name}, {height} x {width} pixels; lower it")


def channels_of(data: Pairs, modality: str) -> int | None:
    """Channels of the views of a modality, of sound its mel bands; None if no item has it."""
    items = data.has(modality).nonzero().flatten()[:1]
    return data.centred(modality, items).shape[2] if len(items) else None


def modalities_of(data: Pairs) -> tuple[str, ...]:
    """Those that any item has, in the order of `MODALITIES`."""
    return tuple(modality for modality in MODALITIES if bool(data.has(modality).any()))


def drawn(members: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` of the members (n,), none twice before all were drawn, in random order: (count,); n is at least 1."""
    rounds = [torch.randperm(len(members), generator=generator) for _ in range(-(-count // len(members)))]
    return members[torch.cat(rounds)[:count]]
