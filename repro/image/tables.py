"""The image papers' tables: trained where cells are missing, and our numbers beside the printed ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pandas import DataFrame, concat

from repro.image import figure_data, views
from repro.image.cell import learners, train
from repro.image.pretrain import OPTIMISER
from repro.image.recipe import JCL, METHODS, PRESETS, SCE, ImageRecipe
from repro.image.table_cells import (
    BASE,
    GRID,
    HISTOGRAMS,
    SWEEPS,
    image_methods_cells,
    positive_keys_cells,
    similarity_variance_cells,
    temperature_grid_cells,
)
from repro.image.table_layouts import (
    image_methods_table,
    positive_keys_table,
    similarity_variance_table,
    temperature_grid_table,
)
from repro.recipe import Rows, Values
from repro.run import device as devices
from repro.run.store import Cell
from repro.run.table import Table, optimiser, trained


def image_methods(
    dataset: str = "digits", *, device: str = "auto", engine: str = "auto", workers: str | int = "auto", **choices: Any
) -> DataFrame:
    """MoCo v2, ReSSL, SCE and JCL in one setting, between random initialisation and supervised training.

    Args:
        dataset: "digits" (embedded), "cifar10", "cifar100", "stl10", "tiny_imagenet", "imagenet100" or "imagenet".
        device: "auto", "cpu" or "cuda".
        engine: "inline" trains in this process, "local" in worker processes, "dask" in those of a cluster; "auto" takes
            "local" on a CPU and on several GPUs, except for smoke runs. On a CPU the numbers do not depend on it.
        workers: number of worker processes, or the address of dask's scheduler; "auto": the cores this process may use
            over the recipe's threads, or the GPUs, see `repro.run.engine.pool_of`.
        **choices: the other parameters of `image_methods_cells`.

    Returns:
        One row per method: method, then ours, std, n_seeds, published, difference, preset, dataset; last the means
        over seeds of knn1 and embedding_spread (1: isotropic, 0: collapsed to one point). Accuracies in percent.
        Where a cell departs from its preset, a column "departures" before `ours` says how.

    Raises:
        ValueError, FileNotFoundError: as `image_methods_cells`, before anything is computed.
        NonFiniteLoss: if a cell diverges, after the others are done.
    """
    return trained(image_methods_cells(dataset, **choices), TABLES["image_methods"], train, device, engine, workers)


def temperature_grid(
    dataset: str = "digits", *, device: str = "auto", engine: str = "auto", workers: str | int = "auto", **choices: Any
) -> DataFrame:
    """SCE by the temperatures of query and key, and ReSSL where both are equal (SCE supplement, Table 2).

    Args:
        dataset, device, engine, workers: as for `image_methods`.
        **choices: the other parameters of `temperature_grid_cells`.

    Returns:
        One row per method and pair of temperatures: method, temperature, key_temperature, then the columns of
        `image_methods`.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `image_methods`.
    """
    cells = temperature_grid_cells(dataset, **choices)
    return trained(cells, TABLES["temperature_grid"], train, device, engine, workers)


def positive_keys(
    dataset: str = "digits", *, device: str = "auto", engine: str = "auto", workers: str | int = "auto", **choices: Any
) -> DataFrame:
    """JCL by the number of positive keys, the weight of their covariance, and temperature (JCL supplement, Fig. M.2).

    Args:
        dataset, device, engine, workers: as for `image_methods`.
        **choices: the other parameters of `positive_keys_cells`.

    Returns:
        One row per point of each of the three sweeps: varied ("keys", "strength" or "temperature"), method ("jcl"),
        keys, strength, temperature, encoder_forwards (3 + keys per image, a backward pass counted as two), then the
        columns of `image_methods`. The paper prints curves, no numbers, so that `published` is empty.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `image_methods`.
    """
    cells = positive_keys_cells(dataset, **choices)
    table = trained(cells, TABLES["positive_keys"], train, device, engine, workers)
    sampled_keys(cells, device)
    return table


def similarity_variance(
    dataset: str = "digits", *, device: str = "auto", engine: str = "auto", workers: str | int = "auto", **choices: Any
) -> DataFrame:
    """The models whose features are compared in JCL's Fig. M.3: JCL with nine positive keys and MoCo v2.

    Args:
        dataset, device, engine, workers: as for `image_methods`.
        **choices: the other parameters of `similarity_variance_cells`.

    Returns:
        One row per model: method, keys, then the columns of `image_methods`. Their histograms are drawn from
        `similarities`, which this computes too.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `image_methods`.
    """
    cells = similarity_variance_cells(dataset, **choices)
    table = trained(cells, TABLES["similarity_variance"], train, device, engine, workers)
    similarities(cells, device)
    return table


def similarities(cells: list[Cell], device: str = "auto") -> DataFrame:
    """What Fig. M.3 shows of the finished cells of `similarity_variance`.

    Args:
        cells: of `similarity_variance_cells`.
        device: as for `image_methods`.

    Returns:
        One row per cell and image, see `figure_data.similarities`.
    """
    return concat([figure_data.similarities(cell, devices.resolve(device)) for cell in cells], ignore_index=True)


def sampled_keys(cells: list[Cell], device: str = "auto") -> DataFrame:
    """JCL's bound beside losses with sampled keys, of the finished cell of `positive_keys` with most keys.

    Args:
        cells: of `positive_keys_cells`.
        device: as for `image_methods`.

    Returns:
        See `figure_data.sampled_keys`.
    """
    most = max(cells, key=lambda cell: cell.recipe.keys)
    return figure_data.sampled_keys(most, devices.resolve(device))


def _table(
    run: Callable,
    cells: Callable,
    layout: Callable,
    varied: tuple[str, ...],
    example: tuple[str, str],
    methods: Sequence[str] = METHODS,
    fixed: Values | None = None,
) -> Table:
    return Table(
        run=run,
        cells=cells,
        learners=learners,
        layout=layout,
        methods=methods,
        fields=("method", *varied),
        varied=varied,
        presets=PRESETS,
        example=example,
        fixed=lambda preset: fixed or {},
        constants=_constants,
    )


def _constants(recipe: ImageRecipe) -> Rows:
    """See `Table.constants`."""
    trained_by = [optimiser(OPTIMISER, JCL if recipe.dataset.startswith("imagenet") else SCE)]
    return (trained_by if recipe.uses("learning_rate") else []) + views.described(recipe)


def _sourced(values: Mapping[str, Any], source: str) -> Values:
    return {name: (value, source) for name, value in values.items()}


ABLATION, CIFAR = ("imagenet100", "jcl"), ("cifar10", "sce")
TABLES = {
    "image_methods": _table(image_methods, image_methods_cells, image_methods_table, (), CIFAR),
    "temperature_grid": _table(
        temperature_grid, temperature_grid_cells, temperature_grid_table, GRID, CIFAR, ("ressl", "sce")
    ),
    "positive_keys": _table(
        positive_keys,
        positive_keys_cells,
        positive_keys_table,
        SWEEPS,
        ABLATION,
        ("jcl",),
        _sourced(BASE, f"{JCL}, ablation settings"),
    ),
    "similarity_variance": _table(
        similarity_variance,
        similarity_variance_cells,
        similarity_variance_table,
        ("keys",),
        ABLATION,
        ("moco", "jcl"),
        _sourced(HISTOGRAMS, f"{JCL}, Fig. M.3"),
    ),
}
