"""Skeleton runs to look into: which there are, and what they make of sequences."""

import dataclasses

import torch
from torch import Tensor

from repro.recipe import entry_name
from repro.run.finished import restored
from repro.run.store import Cell, Store
from repro.skeleton.data import SkeletonSet
from repro.skeleton.pretrain import Pretrainer, augment
from repro.skeleton.recipe import SKELETONS, VERSION, SkeletonRecipe
from repro.skeleton.study import data_of

MOST = 1500  # sequences shown of a data set: all of NW-UCLA, a sample of NTU RGB+D


@dataclasses.dataclass(frozen=True, eq=False)
class ExploredRun:
    """A finished cell and what it makes of a set of sequences."""

    label: str              # objectives, what departs from the preset, seed and preset
    result: dict            # the content of `result.json`
    pretrainer: Pretrainer  # with the cell's last weights, or those it has selected
    readouts: Tensor        # (n, H), on the CPU
    embeddings: Tensor      # (n, projection) of unit length, on the CPU

    @property
    def recipe(self) -> SkeletonRecipe:
        return self.pretrainer.recipe

    @torch.no_grad()
    def decoded(self, sequence: Tensor) -> Tensor:
        """What the decoder makes of the readout of a sequence, (T, D) -> (T, D), on the CPU."""
        return self.pretrainer.model.decode(self._readouts(sequence[None]), len(sequence))[0].float().cpu()

    @torch.no_grad()
    def embedded(self, sequences: Tensor) -> Tensor:
        """Embeddings (N, projection) of sequences (N, T, D) without padding, on the CPU."""
        return self.pretrainer.model.embed(self._readouts(sequences)).cpu()

    def _readouts(self, sequences: Tensor) -> Tensor:
        lengths = torch.full((len(sequences),), sequences.shape[1])
        return self.pretrainer.model.encoder(sequences.to(self.pretrainer.device), lengths)


def available(asked: list[Cell]) -> dict[str, dict]:
    """All finished runs on the data of these cells that have their weights.

    Smoke runs are left out, which a line says, unless some are asked for.

    Returns:
        By key, those asked for first, as `Store.finished` describes them.

    Raises:
        ValueError: if there is none.
    """
    store, data, with_smoke = Store(), data_of(asked[0].recipe), asked[0].preset == "smoke"
    usable = [
        cell for cell in store.finished()
        if (cell["study"], cell["digest"], cell["version"]) == (SKELETONS.name, data.digest, VERSION)
        and (store.trained_in(cell["key"]) / "checkpoint.pt").exists()
    ]
    runs = {cell["key"]: cell for cell in sorted(usable, key=label) if with_smoke or cell["preset"] != "smoke"}
    if len(runs) < len(usable):
        print(f"{len(usable) - len(runs)} smoke runs are left out; preset smoke looks into them")
    if not runs:
        raise ValueError(f"no finished run on {data.name} has its checkpoint.pt in {store.root}; delete the folders of "
                         "those that have lost theirs, and run this notebook with train='missing'")
    return {cell.key: runs[cell.key] for cell in asked if cell.key in runs} | runs


def label(cell: dict) -> str:
    """How a finished cell is called in a list of them: objectives, what departs from the preset, seed and preset."""
    return f"{entry_name(cell['recipe']['objectives'], cell['changes'])}, seed {cell['seed']}, {cell['preset']}"


def load_run(cell: dict, shown: SkeletonSet, device: torch.device) -> ExploredRun:
    """A finished cell with its readouts of the sequences shown.

    Raises:
        ValueError: if it cannot be evaluated as it was trained, saying why.
        OSError: if its data or weights cannot be read.
    """
    recipe = SkeletonRecipe.from_dict(cell["recipe"])
    run = SKELETONS.cell(recipe, cell["seed"], cell["preset"], digest=cell["digest"])
    learner = restored(run, SKELETONS, device)
    learner.restore()
    readouts, embeddings = learner.features(shown)
    return ExploredRun(label(cell), cell["result"], learner, readouts.cpu(), embeddings.cpu())


def part_of(data: SkeletonSet, most: int = MOST) -> SkeletonSet:
    """The data set, or of a larger one `most` sequences drawn with a fixed seed, in their order."""
    if len(data.lengths) <= most:
        return data
    index = torch.randperm(len(data.lengths), generator=torch.Generator().manual_seed(0))[:most].sort().values
    sequences = data.frames.split(data.lengths.tolist())
    frames = torch.cat([sequences[number] for number in index.tolist()])
    columns = {name: getattr(data, name)[index] for name in ("lengths", "labels", "train", "test", "views", "subjects")}
    return dataclasses.replace(data, frames=frames, **columns)


def augmented(sequence: Tensor, recipe: SkeletonRecipe, seed: int) -> Tensor:
    """Two independent views of a sequence (T, D), as training makes them: (2, T, D)."""
    generator, lengths = torch.Generator().manual_seed(seed), torch.full((2,), len(sequence))
    return augment(sequence.expand(2, -1, -1), lengths, flip=recipe.flip, shear=recipe.shear, generator=generator)


def vertical(recipe: SkeletonRecipe) -> int:
    """Which coordinate is the vertical: 1 as a camera saw a recording, 2 where a pipeline has turned it to the body."""
    seen_by_camera = recipe.pipeline in ("raw", "authors") or (recipe.dataset, recipe.pipeline) == ("ntu", "default")
    return 1 if seen_by_camera else 2
