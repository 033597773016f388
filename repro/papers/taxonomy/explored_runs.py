"""Skeleton runs to look into: which there are, and what they make of sequences."""

import dataclasses
import functools
from typing import Any

import torch
from torch import Tensor

from repro.data import manifest
from repro.papers.taxonomy.tables import TABLES
from repro.recipe import entry_name
from repro.run.display import in_one_display
from repro.run.engine import pool_of, run_cells
from repro.run.store import Cell, Store
from repro.run.training import train
from repro.skeleton.data import Sequences, SkeletonSet
from repro.skeleton.pretrain import Pretrainer, augment
from repro.skeleton.recipe import METHODS, SKELETONS, VERSION, SkeletonRecipe
from repro.skeleton.study import data_of, restored

FIRST_OBJECTIVES = ("CE+AD", "AD")  # looked at where nothing is finished
FIRST_LOOK = {"epochs": 3}  # of the quick recipe for bundled data: seconds instead of minutes
MOST = 1500                   # sequences shown of a data set: all of NW-UCLA, a sample of NTU RGB+D
CAMERA_FRAMES = ("raw", "authors")  # pipelines that leave a recording as its camera saw it


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
        objectives: a comma list of objectives of the taxonomy, or "auto": what is finished with these seeds and this
            preset ("auto": any but smoke runs); else CE+AD and AD, on bundled data with the quick recipe for fewer
            epochs.

    Raises:
        ValueError, FileNotFoundError: as `repro.table.Table.cells`.
    """
    choices: dict[str, Any] = {"preset": preset, "seeds": seeds, "protocol": protocol, "pipeline": pipeline,
                               "subset": subset, "device": device}
    asked = ",".join(FIRST_OBJECTIVES) if objectives == "auto" else objectives
    planned = TABLES["taxonomy"].cells(dataset, objectives=asked, **choices)
    if objectives != "auto":
        return planned
    finished = [
        SKELETONS.cell(SkeletonRecipe.from_dict(cell["recipe"]), cell["seed"], cell["preset"], cell["changes"])
        for cell in finished_runs(data_of(planned[0].recipe))
        if cell["seed"] in {cell.seed for cell in planned}
        and (cell["preset"] != "smoke" if preset == "auto" else cell["preset"] == preset)
    ]
    if not finished and planned[0].preset == "quick" and manifest.bundled(dataset):
        planned = TABLES["taxonomy"].cells(dataset, objectives=asked, **choices, **FIRST_LOOK)
    return finished or sorted(planned, key=lambda cell: FIRST_OBJECTIVES.index(cell.recipe.objectives))


def available(planned: list[Cell], device: torch.device) -> dict[str, dict]:
    """Train what is missing of the planned cells, then list all runs on their data that can be looked into.

    Smoke runs are left out, which a line says, unless some are planned.

    Returns:
        By key, the planned ones first, finished cells as `Store.finished` describes them.

    Raises:
        ValueError: if all have lost their weights.
    """
    first_look = planned[0].recipe.epochs == FIRST_LOOK["epochs"]  # which takes as long as workers to start
    store, pool = Store(), pool_of("inline" if first_look else "auto", "auto", planned, device)
    with in_one_display():
        run_cells(planned, functools.partial(train, study=SKELETONS, device=device), store, pool=pool)
    listed = {cell["key"]: cell for cell in finished_runs(data_of(planned[0].recipe))}
    smoke = [key for key, cell in listed.items() if cell["preset"] == "smoke"]
    if smoke and planned[0].preset != "smoke":
        print(f"{len(smoke)} smoke runs are left out; preset smoke looks into them")
        listed = {key: cell for key, cell in listed.items() if key not in smoke}
    if not listed:
        raise ValueError(f"no checkpoint.pt is left in the folders of {planned[0].label} and others in "
                         f"{store.root}; delete these folders, to train the runs again")
    return {cell.key: listed[cell.key] for cell in planned if cell.key in listed} | listed


def finished_runs(data: SkeletonSet) -> list[dict]:
    """The finished cells that were trained on these data and have their weights, as `Store.finished` describes them."""
    store = Store()
    usable = [
        cell for cell in store.finished()
        if cell["study"] == SKELETONS.name and (cell["digest"], cell["version"]) == (data.digest, VERSION)
        and (store.folder(cell["key"]) / "checkpoint.pt").exists()
    ]
    objectives = (cell["recipe"]["objectives"] for cell in usable)
    order = list(dict.fromkeys([*FIRST_OBJECTIVES, *METHODS, *sorted(objectives)]))
    return sorted(usable, key=lambda cell: (cell["preset"], order.index(cell["recipe"]["objectives"]), label(cell)))


def label(cell: dict) -> str:
    """How a finished cell is called in a list of them: objectives, what departs from the preset, seed and preset."""
    return f"{entry_name(cell['recipe']['objectives'], cell['changes'])}, seed {cell['seed']}, {cell['preset']}"


def load_run(cell: dict, shown: SkeletonSet, device: torch.device) -> ExploredRun:
    """A finished cell with its readouts of the sequences shown.

    Raises:
        ValueError: if it cannot be evaluated as it was trained, saying why.
        OSError: if its data or weights cannot be read.
    """
    learner = restored(cell, Store(), device)
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


def sequence_of(data: SkeletonSet, index: int) -> Tensor:
    """One sequence, (T, D), without padding."""
    return Sequences(data.frames, data.lengths).batch(torch.tensor([index]))[0][0]


def augmented(sequence: Tensor, recipe: SkeletonRecipe, seed: int) -> Tensor:
    """Two independent views of a sequence (T, D), as training makes them: (2, T, D)."""
    generator, lengths = torch.Generator().manual_seed(seed), torch.full((2,), len(sequence))
    return augment(sequence.expand(2, -1, -1), lengths, flip=recipe.flip, shear=recipe.shear, generator=generator)


def reference(recipe: SkeletonRecipe) -> tuple[int, str]:
    """The frame of reference of the recipe's pipeline: which coordinate is the vertical, and the unit in words."""
    pipeline = "authors" if (recipe.dataset, recipe.pipeline) == ("ntu", "default") else recipe.pipeline
    scaled = pipeline in ("default", "predict_cluster")
    return 1 if pipeline in CAMERA_FRAMES else 2, "scaled to [-1, 1]" if scaled else "m"
