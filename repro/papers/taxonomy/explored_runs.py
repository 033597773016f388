"""Skeleton runs to look into: which there are, and what they make of sequences."""

import dataclasses
import functools
from typing import NamedTuple

import torch
from torch import Tensor

from repro.data import manifest
from repro.papers.taxonomy.tables import TABLES
from repro.recipe import in_words
from repro.run.engine import pool_of, run_cells
from repro.run.store import Cell, Store
from repro.skeleton.data import Sequences, SkeletonSet
from repro.skeleton.pretrain import VERSION, Pretrainer, augment
from repro.skeleton.recipe import OBJECTIVES, PRESETS, SkeletonRecipe
from repro.skeleton.study import SKELETONS, data_of, restored
from repro.table import train

FIRST_OBJECTIVES = ("CE+AD", "AD")  # looked at where nothing is finished
FIRST_LOOK = {"epochs": 3}  # of the quick recipe for embedded data: seconds instead of minutes
FIRST = "first look"          # in the place of a preset
APART = "explore"             # folder of these runs below REPRO_RUNS, where neither tables nor figures look for cells
MOST = 1500                   # sequences shown of a data set: all of NW-UCLA, a sample of NTU RGB+D
CAMERA_FRAMES = ("raw", "authors")  # pipelines that leave a recording as its camera saw it


class Reference(NamedTuple):
    """The frame of reference of a pipeline: which coordinate is the vertical, and the unit in words."""

    up: int
    units: str


@dataclasses.dataclass(frozen=True, eq=False)
class ExploredRun:
    """A finished cell and what it makes of a set of sequences.

    Attributes:
        label: objectives, what departs from the preset, seed and preset.
        result: the content of `result.json`.
        pretrainer: with the cell's last weights, or those it has selected.
        readouts: (n, H), on the CPU.
        embeddings: (n, projection) of unit length, on the CPU.
    """

    label: str
    result: dict
    pretrainer: Pretrainer
    readouts: Tensor
    embeddings: Tensor

    @property
    def recipe(self) -> SkeletonRecipe:
        return self.pretrainer.recipe

    @torch.no_grad()
    def decoded(self, sequence: Tensor) -> Tensor:
        """What the decoder makes of the readout of a sequence, (T, D) -> (T, D), on the CPU."""
        readout = self._readouts(sequence[None])
        return self.pretrainer.model.decode(readout, len(sequence))[0].float().cpu()

    @torch.no_grad()
    def embedded(self, sequences: Tensor) -> Tensor:
        """Embeddings (N, projection) of sequences (N, T, D) without padding, on the CPU."""
        return self.pretrainer.model.embed(self._readouts(sequences)).cpu()

    def _readouts(self, sequences: Tensor) -> Tensor:
        lengths = torch.full((len(sequences),), sequences.shape[1])
        return self.pretrainer.model.encoder(sequences.to(self.pretrainer.device), lengths)


def cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    objectives: str = "auto",
    seeds: str | int = "0",
    protocol: str = "auto",
    pipeline: str = "default",
    subset: bool = False,
    device: str = "auto",
) -> list[Cell]:
    """The cells to look into first. Loads the data and trains nothing.

    Args:
        dataset, preset, seeds, protocol, pipeline, subset, device: as for the taxonomy's `repro.run_table`.
        objectives: a comma list of objectives of the taxonomy, or "auto": those finished with this preset and these
            seeds; on real data, if there are none and the preset is "auto" too, whatever is finished; else CE+AD and
            AD. On embedded data with the quick recipe these are trained for a "first look" alone: for fewer epochs at
            a higher rate, and apart from the cells of tables.

    Raises:
        ValueError, FileNotFoundError: as `repro.table.Table.cells`.
    """
    data = {"protocol": protocol, "pipeline": pipeline, "subset": subset}
    listed = functools.partial(TABLES["taxonomy"].cells, dataset, preset=preset, seeds=seeds, device=device, **data)
    if objectives != "auto":
        return listed(objectives=objectives)
    store, every = Store(manifest.runs_root()), listed(objectives="all")
    usual = [cell for name in FIRST_OBJECTIVES for cell in every if cell.recipe.objectives == name]
    finished = [cell for cell in (*usual, *every) if store.run(cell).result is not None]
    if not finished and preset == "auto" and not manifest.embedded(dataset):
        found = [each for each in finished_runs(data_of(usual[0].recipe), store) if each["preset"] != "smoke"]
        recipe_of = SkeletonRecipe.from_dict
        finished = [SKELETONS.cell(recipe_of(each["recipe"]), each["seed"], each["preset"]) for each in found]
    if finished or usual[0].preset != "quick" or not manifest.embedded(dataset):
        return list({cell.key: cell for cell in finished or usual}.values())
    return [_first_look(cell) for cell in usual]


def available(planned: list[Cell], device: torch.device) -> dict[str, tuple[dict, Store]]:
    """Trains what is missing of the planned cells, then lists all runs on their data that can be looked into.

    Returns:
        By key, the planned ones first: a finished cell as `Store.finished` describes it, and its store.

    Raises:
        ValueError: if all have lost their weights.
    """
    root = manifest.runs_root()
    apart = planned[0].preset == FIRST
    engine = "inline" if apart else "auto"  # these take as long as workers to start
    store = Store(root / APART if apart else root)
    pool = pool_of(engine, "auto", planned, device)
    run_cells(planned, functools.partial(train, study=SKELETONS, device=device), store, pool=pool)
    data = data_of(planned[0].recipe)
    found = {
        cell["key"]: (cell, place)
        for place in (Store(root / APART), Store(root)) for cell in finished_runs(data, place)
    }
    if not found:
        raise ValueError(f"no checkpoint.pt is left in the folders of {planned[0].label} and others in "
                         f"{store.root}; delete these folders, to train the runs again")
    first = {cell.key: found[cell.key] for cell in planned if cell.key in found}
    return first | found


def finished_runs(data: SkeletonSet, store: Store) -> list[dict]:
    """The store's finished cells that were trained on these data and have their weights, as `Store.finished` says."""
    usable = [
        cell for cell in store.finished()
        if cell["study"] == SKELETONS.name and (cell["digest"], cell["version"]) == (data.digest, VERSION)
        and (store.folder(cell["key"]) / "checkpoint.pt").exists()
    ]
    return sorted(usable, key=lambda cell: (
        cell["preset"], OBJECTIVES.index(cell["recipe"]["objectives"]), _called(cell), cell["seed"]
    ))


def label(cell: dict) -> str:
    """How a finished cell is called in a list of them."""
    return f"{_called(cell)}, seed {cell['seed']}, {cell['preset']}"


def _called(cell: dict) -> str:
    """Objectives, and what departs from the preset."""
    return ", ".join(filter(None, (cell["recipe"]["objectives"], in_words(_changes(cell)))))


def _changes(cell: dict) -> dict:
    """The fields in which a finished cell departs from its preset; the first edition does not say them."""
    if cell["changes"] is not None or cell["preset"] not in PRESETS:
        return cell["changes"] or {}
    return SKELETONS.changes(SkeletonRecipe.from_dict(cell["recipe"]), cell["preset"])


def load_run(cell: dict, store: Store, shown: SkeletonSet, device: torch.device) -> ExploredRun:
    """A finished cell with its readouts of the sequences shown.

    Raises:
        ValueError: if it cannot be evaluated as it was trained, saying why.
        OSError: if its data or weights cannot be read.
    """
    learner = restored(cell, store, device)
    learner.restore()
    readouts, embeddings = learner.features(shown)
    return ExploredRun(label(cell), cell["result"], learner, readouts.cpu(), embeddings.cpu())


def part_of(data: SkeletonSet, most: int = MOST) -> SkeletonSet:
    """The data set, or of a larger one `most` sequences drawn with a fixed seed, in their order."""
    count = len(data.lengths)
    if count <= most:
        return data
    index = torch.randperm(count, generator=torch.Generator().manual_seed(0))[:most].sort().values
    starts = data.lengths.cumsum(0) - data.lengths
    rows = [torch.arange(start, start + length)
            for start, length in zip(starts[index].tolist(), data.lengths[index].tolist(), strict=True)]
    columns = {name: getattr(data, name)[index] for name in ("lengths", "labels", "train", "test", "views", "subjects")}
    return dataclasses.replace(data, frames=data.frames[torch.cat(rows)], **columns)


def sequence_of(data: SkeletonSet, index: int) -> Tensor:
    """One sequence, (T, D), without padding."""
    return Sequences(data.frames, data.lengths).batch(torch.tensor([index]))[0][0]


def augmented(sequence: Tensor, recipe: SkeletonRecipe, seed: int) -> Tensor:
    """Two independent views of a sequence (T, D), as training makes them: (2, T, D)."""
    generator = torch.Generator().manual_seed(seed)
    pair = sequence.expand(2, -1, -1)
    lengths = torch.full((2,), len(sequence))
    return augment(pair, lengths, flip=recipe.flip, shear=recipe.shear, generator=generator)


def reference(recipe: SkeletonRecipe) -> Reference:
    """The frame of reference that the recipe's pipeline leaves its sequences in."""
    pipeline = "authors" if (recipe.dataset, recipe.pipeline) == ("ntu", "default") else recipe.pipeline
    scaled = pipeline in ("default", "predict_cluster")
    return Reference(1 if pipeline in CAMERA_FRAMES else 2, "scaled to [-1, 1]" if scaled else "m")


def _first_look(cell: Cell) -> Cell:
    """The cell, trained for fewer epochs and kept apart."""
    recipe = cell.recipe.replace(**FIRST_LOOK)
    return dataclasses.replace(cell, preset=FIRST, recipe=recipe, changes={})
