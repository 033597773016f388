"""The image papers' tables: which cells make them, and our numbers beside the printed ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
from pandas import DataFrame, Series, concat

from repro.image import figure_data
from repro.image.cell import data_of, learners, train
from repro.image.data import DATASETS
from repro.image.pretrain import VERSION
from repro.image.recipe import METHODS, PRESETS, VARIANTS, ImageRecipe
from repro.recipe import choose, distinct, parse_numbers
from repro.report.printed import sce_grid
from repro.run import device as devices
from repro.run.store import Cell
from repro.run.table import Table, entry_of, resolved, trained, with_measures

MEASURES = ["knn1", "embedding_spread"]  # shown behind the linear probe
GRID = ("temperature", "key_temperature")
SWEEPS = ("keys", "strength", "temperature")
BASE = (5, 4.0, 0.2)  # of the three, where they do not vary (JCL supplement)
LONG_SWEEPS = {"keys": "1,2,3,5,7,9", "strengths": "0,0.5,1,2,4,6,10", "temperatures": "0.07,0.1,0.2,0.3,0.5"}
SHORT_SWEEPS = {"keys": "1,2,5,9", "strengths": "0,4,10", "temperatures": "0.1,0.2,0.5"}
FORWARDS = 3  # of the query, its backward pass counted twice; each key adds one (JCL)
PRINTED_KEY_TEMPERATURES = "0.03,0.04,0.05,0.06,0.07,0.08,0.09,0.10"
SHORT_KEY_TEMPERATURES = "0.03,0.05,0.07,0.10"


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


def image_methods_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    methods: str = "random,supervised,moco,ressl,sce,jcl",
    seeds: str | int = "0",
    variant: str = "none",
    select: str = "last",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `image_methods`. Loads the data and trains nothing.

    Args:
        dataset: "digits" (embedded), "cifar10", "cifar100", "stl10", "tiny_imagenet", "imagenet100" or "imagenet".
        preset: "paper", "quick", "smoke", or "auto": paper on real data, quick on embedded data.
        methods: comma list of "random", "supervised", "moco", "ressl", "sce", "jcl" and "vanilla".
        seeds: comma list of whole numbers.
        variant: a name in `recipe.VARIANTS`, where paper and released code disagree, or "none".
        select: "last" epoch of the probe, or "best_on_test" as the released codes did.
        subset: take the copy that `repro data import` has taken in, or a part of ImageNet; every entry then says so.
        precision: "float32", "bfloat16", or "auto": the preset's. A CPU without bfloat16 instructions is slow in it.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
        FileNotFoundError: if the data set is not there, saying where to get it and where to put it.
    """
    chosen = [choose("methods", name.strip(), METHODS) for name in str(methods).split(",")]
    changes = _changes(variant, select, subset, precision)
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    recipes = [PRESETS[preset](dataset, method, **changes) for method in distinct("methods", methods, chosen)]
    return _cells("image_methods", recipes, preset, seeds, shown=())


def temperature_grid_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    temperatures: str = "0.1,0.2",
    key_temperatures: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    select: str = "last",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `temperature_grid`. Loads the data and trains nothing.

    Args:
        temperatures: comma list, of the query.
        key_temperatures: comma list, of the key; "auto": the eight printed ones for the paper's recipe, else four.
        dataset, preset, seeds, variant, select, subset, precision: as for `image_methods_cells`.

    Raises:
        ValueError, FileNotFoundError: as `image_methods_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    if key_temperatures == "auto":
        key_temperatures = PRINTED_KEY_TEMPERATURES if preset == "paper" else SHORT_KEY_TEMPERATURES
    rows, columns = parse_fractions("temperatures", temperatures), parse_fractions("key_temperatures", key_temperatures)
    pairs = [("sce", row, column) for row in rows for column in columns]
    pairs += [("ressl", row, row) for row in rows if row in columns]
    changes = _changes(variant, select, subset, precision)
    recipes = [
        PRESETS[preset](dataset, method, temperature=row, key_temperature=column, **changes)
        for method, row, column in pairs
    ]
    return _cells("temperature_grid", recipes, preset, seeds, GRID)


def positive_keys_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    keys: str | int = "auto",
    strengths: str = "auto",
    temperatures: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    select: str = "last",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `positive_keys`. Loads the data and trains nothing.

    Each of the three varies while the others stay at the paper's 5 keys, strength 4 and temperature 0.2.

    Args:
        keys: comma list of numbers of positive keys; "auto": 1, 2, 3, 5, 7, 9 for the paper's recipe, else 1, 2, 5, 9.
        strengths: comma list of weights of the covariance; "auto": 0, 0.5, 1, 2, 4, 6, 10, else 0, 4, 10.
        temperatures: comma list; "auto": 0.07, 0.1, 0.2, 0.3, 0.5, else 0.1, 0.2, 0.5. The paper says what it varied
            and not over which values.
        dataset, preset, seeds, variant, select, subset, precision: as for `image_methods_cells`; no variant that
            changes what varies here.

    Raises:
        ValueError, FileNotFoundError: as `image_methods_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    usual = LONG_SWEEPS if preset == "paper" else SHORT_SWEEPS
    asked = {"keys": keys, "strengths": strengths, "temperatures": temperatures}
    texts = {name: usual[name] if value == "auto" else value for name, value in asked.items()}
    points = [(number, *BASE[1:]) for number in parse_numbers("keys", texts["keys"], least=1)]
    points += [(BASE[0], value, BASE[2]) for value in parse_fractions("strengths", texts["strengths"], least=0)]
    points += [(*BASE[:2], value) for value in parse_fractions("temperatures", texts["temperatures"])]
    changes = _changes(variant, select, subset, precision, varied=SWEEPS)
    recipes = [
        PRESETS[preset](dataset, "jcl", **changes | dict(zip(SWEEPS, point, strict=True)))
        for point in dict.fromkeys(points)
    ]
    return _cells("positive_keys", recipes, preset, seeds, SWEEPS)


def similarity_variance_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `similarity_variance`. Loads the data and trains nothing.

    Args:
        dataset, preset, seeds, variant, subset, precision: as for `positive_keys_cells`.

    Raises:
        ValueError, FileNotFoundError: as `image_methods_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    changes = _changes(variant, "last", subset, precision, varied=SWEEPS)
    jcl = PRESETS[preset](dataset, "jcl", keys=9, strength=BASE[1], temperature=BASE[2], **changes)
    moco = PRESETS[preset](dataset, "moco", **changes)
    return _cells("similarity_variance", [jcl, moco], preset, seeds, ("keys",))


def similarity_variance_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `similarity_variance` from finished cells; `results` as for `image_methods_table`."""
    rows = results.drop_duplicates("entry").set_index("entry")[["method", "keys"]]
    published = Series(float("nan"), index=rows.index)
    return with_measures(rows, results, published, preset, dataset, MEASURES)


def image_methods_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `image_methods` from finished cells.

    Args:
        results: one row per cell with entry, seed, linear, knn1, embedding_spread and the table's fields.
        preset, dataset: of these cells.
    """
    entries = results.drop_duplicates("entry").set_index("entry")
    rows = DataFrame({"method": entries["method"]})
    departures = [entry[len(method) + 2 :] for entry, method in rows["method"].items()]
    if any(departures):
        rows["departures"] = departures
    published = Series(float("nan"), index=rows.index)
    return with_measures(rows, results, published, preset, dataset, MEASURES)


def temperature_grid_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `temperature_grid` from finished cells; `results` as for `image_methods_table`."""
    rows = results.drop_duplicates("entry").set_index("entry")[["method", *GRID]]
    printed, places = sce_grid(dataset), zip(rows["method"], *(rows[name] for name in GRID), strict=True)
    values = [printed.get(tuple(place), np.nan) if method == "sce" else np.nan for method, *place in places]
    published = Series(values, index=rows.index, dtype=float)
    return with_measures(rows, results, published, preset, dataset, MEASURES)


def row_optima(table: DataFrame) -> DataFrame:
    """The best key temperature for every temperature of SCE, ours beside the printed one.

    Args:
        table: of `temperature_grid`.

    Returns:
        One row per temperature: temperature, key_temperature, ours, printed_key_temperature, published; the last two
        NaN where nothing may be compared. Ours is the best of what was run, printed the best of all that is printed.
        Of equal accuracies the lowest key temperature.
    """
    rows = []
    for temperature, row in table[table["method"] == "sce"].sort_values("key_temperature").groupby("temperature"):
        ours = row.set_index("key_temperature")["ours"].dropna()
        found = {"temperature": temperature, "key_temperature": ours.idxmax(), "ours": ours.max()}
        if row["published"].notna().any():
            printed = sce_grid(row["dataset"].iloc[0]).loc[temperature].sort_index()
            found |= {"printed_key_temperature": printed.idxmax(), "published": printed.max()}
        rows.append(found)
    return DataFrame(rows, columns=["temperature", "key_temperature", "ours", "printed_key_temperature", "published"])


def positive_keys_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `positive_keys` from finished cells; `results` as for `image_methods_table`."""
    rows = results.drop_duplicates("entry").set_index("entry")[["method", *SWEEPS]]
    rows["encoder_forwards"] = FORWARDS + rows["keys"]
    published = Series(float("nan"), index=rows.index)
    points = with_measures(rows, results, published, preset, dataset, MEASURES)
    sweeps = []
    for place, name in enumerate(SWEEPS):
        others = [other for other in range(len(SWEEPS)) if other != place]
        at_base = [points[SWEEPS[other]] == BASE[other] for other in others]
        sweep = points[at_base[0] & at_base[1]].sort_values(name)
        sweeps.append(sweep.assign(varied=name))
    table = concat(sweeps, ignore_index=True)
    return table[["varied", *table.columns.drop("varied")]]


def _table(
    run: Callable, cells: Callable, layout: Callable, varied: tuple[str, ...], example: tuple[str, str]
) -> Table:
    return Table(
        run=run,
        cells=cells,
        learners=learners,
        layout=layout,
        methods=METHODS,
        fields=("method", *varied),
        varied=varied,
        presets=PRESETS,
        example=example,
    )


ABLATION, CIFAR = ("imagenet100", "jcl"), ("cifar10", "sce")
TABLES = {
    "image_methods": _table(image_methods, image_methods_cells, image_methods_table, (), CIFAR),
    "temperature_grid": _table(temperature_grid, temperature_grid_cells, temperature_grid_table, GRID, CIFAR),
    "positive_keys": _table(positive_keys, positive_keys_cells, positive_keys_table, SWEEPS, ABLATION),
    "similarity_variance": _table(
        similarity_variance, similarity_variance_cells, similarity_variance_table, ("keys",), ABLATION
    ),
}


def parse_fractions(parameter: str, value: Any, *, least: float = 1e-6) -> list[float]:
    """Distinct numbers of a comma list such as "0.1,0.2", in the order given.

    Raises:
        ValueError: naming the parameter, the value and the form expected, or the number that is there twice.
    """
    try:
        numbers = [float(part) for part in str(value).split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(least <= number < float("inf") for number in numbers):
        raise ValueError(f"{parameter}={value!r} should be a comma list of numbers from {least}, such as 0.1,0.2")
    return distinct(parameter, value, numbers)


def _changes(
    variant: str, select: str, subset: bool, precision: str, varied: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What differs from the preset in all cells; no variant may change what the table varies."""
    allowed = [name for name, changed in VARIANTS.items() if changed.keys().isdisjoint(varied)]
    choose("variant", variant, ("none", *allowed))
    choose("precision", precision, ("auto", "float32", "bfloat16"))
    changes = {"select": select, "subset": subset} | VARIANTS.get(variant, {})
    return changes | ({} if precision == "auto" else {"precision": precision})


def _cells(table: str, recipes: list[ImageRecipe], preset: str, seeds: str | int, shown: tuple[str, ...]) -> list[Cell]:
    """Every recipe with every seed, seed by seed, so that a table killed half-way has whole columns."""
    data = data_of(recipes[0])
    return [
        Cell(table, _entry(recipe, preset, shown), recipe, seed, preset, data.name, data.digest, VERSION)
        for seed in parse_numbers("seeds", seeds)
        for recipe in recipes
    ]


def _entry(recipe: ImageRecipe, preset: str, shown: tuple[str, ...]) -> str:
    return entry_of(recipe.method, recipe, PRESETS[preset](recipe.dataset, recipe.method, subset=recipe.subset), shown)
