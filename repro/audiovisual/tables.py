"""CM-ACC's tables: trained where cells are missing, and our numbers beside the printed ones."""

import sys
from collections.abc import Callable
from typing import Any

from pandas import DataFrame, concat
from tqdm.auto import tqdm

from repro.audiovisual import augment, figure_data, finetune, pretrain
from repro.audiovisual.cell import learners, train, trained_on
from repro.audiovisual.data import CHARACTERS
from repro.audiovisual.recipe import METHODS, PAPER, PRESETS, AudioVisualRecipe
from repro.audiovisual.table_cells import (
    VARIED,
    category_diversity_cells,
    counted,
    cross_modal_cells,
    dictionary_size_cells,
    mutual_information_cells,
    ohem_vs_active_cells,
    transfer_cells,
)
from repro.audiovisual.table_layouts import (
    category_diversity_table,
    cross_modal_table,
    dictionary_size_table,
    mutual_information_table,
    ohem_vs_active_table,
    transfer_table,
)
from repro.recipe import Rows
from repro.run import device as devices
from repro.run.store import Cell
from repro.run.table import Table, optimiser, trained


def cross_modal(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
) -> DataFrame:
    """Within or across modalities, with and without the extra layer and active selection (CM-ACC, Tables 1 and 2).

    Args:
        dataset: what is pre-trained on: "synthetic" (embedded), a name of `data.RECORDINGS` (printed:
            "kinetics_sound"), or of `data.CHARACTERS`.
        device: "auto", "cpu" or "cuda".
        engine: "inline" trains in this process, "local" in worker processes, "dask" in those of a cluster; "auto" takes
            "local" on a CPU and on several GPUs, except for smoke runs. On a CPU the numbers do not depend on it.
        workers: number of worker processes, or the address of dask's scheduler; "auto": the cores this process may use
            over the recipe's threads, or the GPUs, see `repro.run.engine.pool_of`.
        **choices: the other parameters of `cross_modal_cells`.

    Returns:
        One row per approach and target: approach (as printed), target (where the encoder was fine-tuned; "characters"
        of grids, where linear probes read them from new pairs), then ours, std, n_seeds, published, difference, preset,
        dataset, and trained_on: how many pairs, or recordings with the one modality that is needed, were pre-trained
        on, the mean over seeds; of grids also linear_held_out: accuracy on drawings never seen. Accuracies in percent.
        Where a cell departs from its preset, or the data from the paper's, a column "departures" before `ours` says
        how.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`, before anything is computed.
        NonFiniteLoss: if a cell diverges, after the others are done.
    """
    return _trained(cross_modal_cells(dataset, **choices), TABLES["cross_modal"], device, engine, workers)


def ohem_vs_active(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
) -> DataFrame:
    """Random, least confident (OHEM) and active negatives, by the number selected in a step (CM-ACC, Table 3).

    Args:
        dataset, device, engine, workers: as for `cross_modal`; printed is "kinetics700".
        **choices: the other parameters of `ohem_vs_active_cells`.

    Returns:
        One row per sampler, batch and target: sampler, batch, target, then the columns of `cross_modal`.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    return _trained(ohem_vs_active_cells(dataset, **choices), TABLES["ohem_vs_active"], device, engine, workers)


def dictionary_size(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
) -> DataFrame:
    """SMoCo, XMoCo and CM-ACC by the size of the dictionary (CM-ACC, Fig. 3b, whose values are not printed).

    Args:
        dataset, device, engine, workers: as for `cross_modal`; the paper's is "kinetics700".
        **choices: the other parameters of `dictionary_size_cells`.

    Returns:
        One row per method, size and target: method, dictionary, target, then the columns of `cross_modal`.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    return _trained(dictionary_size_cells(dataset, **choices), TABLES["dictionary_size"], device, engine, workers)


def mutual_information(
    dataset: str = "multidigits",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
) -> DataFrame:
    """Characters read from grids, by their number, which is the information pairs share (CM-ACC, Fig. 3a).

    Args:
        dataset: "multidigits" (embedded) or "multiomniglot" (the paper's).
        device, engine, workers: as for `cross_modal`.
        **choices: the other parameters of `mutual_information_cells`.

    Returns:
        One row per method and number of characters: method, characters, target, then the columns of `cross_modal`.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    cells = mutual_information_cells(dataset, **choices)
    return _trained(cells, TABLES["mutual_information"], device, engine, workers)


def transfer(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
) -> DataFrame:
    """CM-ACC fine-tuned elsewhere, every official split or fold (CM-ACC, Tables 4 to 6).

    Args:
        dataset, device, engine, workers: as for `cross_modal`.
        **choices: the other parameters of `transfer_cells`.

    Returns:
        One row per method, trunk, split and target: method, video_trunk, split (0, their mean), target, then the
        columns of `cross_modal`, then printed_in: the table of the published mean over the splits, and what other
        tables print in its place.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    return _trained(transfer_cells(dataset, **choices), TABLES["transfer"], device, engine, workers)


def category_diversity(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
) -> DataFrame:
    """How many categories the negatives selected in a step come from (CM-ACC, Figs. 2 and 4).

    Args:
        dataset, device, engine, workers: as for `cross_modal`; the paper's is "ucf101".
        **choices: the other parameters of `category_diversity_cells`.

    Returns:
        One row per sampler, batch and modality: sampler, batch, target (the modality), then ours and the other columns
        of `cross_modal`, where ours is the mean number of distinct categories, not an accuracy; last expected, that of
        as many uniform draws without replacement, in closed form.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    cells = category_diversity_cells(dataset, **choices)
    return _trained(cells, TABLES["category_diversity"], device, engine, workers)


def pretext_accuracy(cells: list[Cell], device: str = "auto") -> DataFrame:
    """How often a query finds its positive first, by category (CM-ACC, Fig. 6), of finished cells.

    Args:
        cells: of `transfer_cells`, or of another table; those of `asked` count.
        device: as for `cross_modal`.

    Returns:
        One row per cell, kind of queries and category, see `figure_data.pretext_accuracy`; last the cell's entry.

    Raises:
        ValueError: as `asked`.
    """
    found = [figure_data.pretext_accuracy(cell, devices.resolve(device)).assign(entry=cell.entry)
             for cell in asked(cells)]
    return concat(found, ignore_index=True)


def selected_negatives(cells: list[Cell], device: str = "auto") -> DataFrame:
    """What every sampler picks from one pool (CM-ACC, Fig. 5), of the finished cell that `selecting` gives.

    Args:
        cells: of `transfer_cells`, or of another table.
        device: as for `cross_modal`.

    Returns:
        See `figure_data.selected_negatives`.

    Raises:
        ValueError: as `selecting`.
    """
    return figure_data.selected_negatives(selecting(cells), devices.resolve(device))


def asked(cells: list[Cell]) -> list[Cell]:
    """The cells whose queries have a positive in the other modality: those of XMoCo and CM-ACC.

    Raises:
        ValueError: if no cell is of these methods, or one is of a data set without categories.
    """
    return _of_methods(cells, "xmoco", "cmacc")


def selecting(cells: list[Cell]) -> Cell:
    """The first cell of CM-ACC, whose negatives have gradients to select them by.

    Raises:
        ValueError: if no cell is of CM-ACC, or one is of a data set without categories.
    """
    return _of_methods(cells, "cmacc")[0]


def _of_methods(cells: list[Cell], *methods: str) -> list[Cell]:
    """Those of some methods, at least one."""
    found = [cell for cell in cells if cell.recipe.method in methods]
    if not found:
        others = ", ".join(sorted({cell.recipe.method for cell in cells}))
        raise ValueError(f"of the cells, which are of {others}, one should be of {' or '.join(methods)}; choose others")
    for data in (figure_data.data_of(cell.recipe) for cell in found):
        if not data.classes:
            raise ValueError(f"{data.name} has no categories to tell apart; choose another data set")
    return found


def _trained(cells: list[Cell], table: Table, device: str, engine: str, workers: str | int) -> DataFrame:
    """As `run.table.trained`; says first how many clips are trained on, as some may lack what a method needs."""
    for line in dict.fromkeys(filter(None, map(trained_on, (cell.recipe for cell in cells)))):
        tqdm.write(line, file=sys.stderr)
    return trained(cells, table, train, device, engine, workers)


def _table(name: str, run: Callable, cells: Callable, layout: Callable, example: tuple[str, str]) -> Table:
    varied = VARIED[name]
    return Table(
        run=run,
        cells=cells,
        learners=learners,
        layout=layout,
        methods=METHODS,
        fields=("method", *dict.fromkeys((*varied, "extra_layer", "sampler", "targets", "clips"))),
        varied=varied,
        presets=PRESETS,
        example=example,
        fixed=counted if name == "category_diversity" else lambda preset: {},
        constants=_constants,
    )


def _constants(recipe: AudioVisualRecipe) -> Rows:
    """See `Table.constants`."""
    assumed = "assumed: usual for Kinetics"
    rows = [optimiser(pretrain.OPTIMISER, PAPER)] if recipe.method != "scratch" else []
    if recipe.dataset in CHARACTERS:
        return [
            *rows,
            ("affine.turn", augment.TURN, "assumed: most by which an entry of the map departs from the identity's"),
            ("affine.shift", augment.SHIFT, "assumed: largest shift of a cell, in halves of its side"),
        ]
    return [
        *rows,
        *([optimiser(finetune.OPTIMISER, "assumed: of fine-tuning")] if recipe.targets else []),
        ("flip", augment.FLIP, "assumed: probability; the paper names the augmentation alone"),
        ("normalisation.mean", augment.MEAN, assumed),
        ("normalisation.std", augment.DEVIATION, assumed),
    ]


SOUND, LARGE = ("kinetics_sound", "cmacc"), ("kinetics700", "cmacc")
CLIPS, GRID = ("ucf101", "cmacc"), ("multiomniglot", "cmacc")
TABLES = {
    "cross_modal": _table("cross_modal", cross_modal, cross_modal_cells, cross_modal_table, SOUND),
    "ohem_vs_active": _table("ohem_vs_active", ohem_vs_active, ohem_vs_active_cells, ohem_vs_active_table, LARGE),
    "dictionary_size": _table("dictionary_size", dictionary_size, dictionary_size_cells, dictionary_size_table, LARGE),
    "mutual_information": _table(
        "mutual_information", mutual_information, mutual_information_cells, mutual_information_table, GRID
    ),
    "transfer": _table("transfer", transfer, transfer_cells, transfer_table, LARGE),
    "category_diversity": _table(
        "category_diversity", category_diversity, category_diversity_cells, category_diversity_table, CLIPS
    ),
}
