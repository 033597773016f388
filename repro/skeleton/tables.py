"""The taxonomy paper's tables: which cells make them, and our numbers beside the printed ones."""

import math
from typing import Any

import pandas as pd
import torch
from pandas import DataFrame, Series

from repro import manifest
from repro.recipe import choose, distinct, parse_float, parse_names, parse_number, parse_numbers
from repro.report.printed import printed
from repro.run import device as devices
from repro.run.store import Cell
from repro.run.table import Table, checked_names, entry_of, resolved, trained, with_measures, with_variant
from repro.skeleton.cell import data_of, learners, train
from repro.skeleton.data import DATASETS, SkeletonSet
from repro.skeleton.pretrain import VERSION, precision_of
from repro.skeleton.recipe import CONCERNED, METHODS, PRESETS, TERMS, VARIANTS, SkeletonRecipe

LAYOUT = ["objectives", "layers", "units", "protocol"]  # the fields of a recipe that place it in a table
MEASURES = [  # shown behind the linear probe; cells may lack a later one
    "linear_unseen", "linear_standardised", "knn1", "embedding_spread", "readout_spread",
]
SAME_PIPELINES = {("ntu", "authors"): "default"}  # by data set: one computation, which has one key
PRINTED_COLUMNS = {  # of the 15 objectives, by data set, protocol, layers, units
    ("ucla", "xview", 1, 512): "UCLA",
    ("ntu", "xsub", 1, 512): "NTU_1layer",
    ("ntu", "xsub", 3, 512): "NTU_3layer",
    ("ntu", "xsub", 1, 1024): "NTU_1024units",
}


def taxonomy(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
) -> DataFrame:
    """The fifteen subsets of {AE, CE, AD, CD} and random initialisation under a linear probe (paper, Table 1).

    Args:
        dataset: "synthetic" (embedded), "ucla" or "ntu".
        device: "auto", "cpu" or "cuda".
        engine: "inline" trains in this process, "local" in worker processes, "dask" in those of a cluster; "auto" takes
            "local" except for smoke runs. On a CPU the numbers do not depend on it.
        workers: number of worker processes, or the address of dask's scheduler; "auto": the cores this process may use
            over the recipe's threads, or up to eight on each GPU, see `repro.run.engine.pool_of`.
        **choices: the other parameters of `taxonomy_cells`.

    Returns:
        One row per objective: objectives, AE, CE, AD, CD, then ours, std, n_seeds, published, difference, preset,
        dataset; last the means over seeds of linear_unseen (without the test sequences that repeat a training
        sequence), linear_standardised (the probe on standardised readouts), knn1, embedding_spread, readout_spread and
        decoded_scale (`repro.skeleton.cell.evaluate` defines them; NaN where there is none). Accuracies in percent.
        Where a cell departs from its preset, such as by selection on the test split, a column "departures" before
        `ours` says how.

    Raises:
        ValueError, FileNotFoundError: as `taxonomy_cells`, before anything is computed.
        NonFiniteLoss: if a cell diverges, after the others are done.
    """
    cells = taxonomy_cells(dataset, device=device, **choices)
    return trained(cells, TABLES["taxonomy"], train, device, engine, workers)


def encoder_collapse(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
) -> DataFrame:
    """Random initialisation against the attractive encoder, by depth of the encoder (paper, Table 2).

    Args:
        dataset, device, engine, workers: as for `taxonomy`.
        **choices: the other parameters of `encoder_collapse_cells`.

    Returns:
        One row per depth and method: layers, method ("random" or "AE"), then ours, std, n_seeds, published,
        difference, preset, dataset; last the measures of `taxonomy` but decoded_scale, as no decoder is trained.
        Spreads: 1 isotropic, 0 collapsed to one point.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `taxonomy`.
    """
    cells = encoder_collapse_cells(dataset, device=device, **choices)
    return trained(cells, TABLES["encoder_collapse"], train, device, engine, workers)


@checked_names
def taxonomy_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    objectives: str = "all",
    seeds: str | int = "0",
    protocol: str = "auto",
    layers: int = 1,
    units: str | int = "auto",
    learning_rate: str | float = "auto",
    pipeline: str = "default",
    variant: str = "none",
    select: str = "last",
    subset: bool = False,
    precision: str = "auto",
    device: str = "auto",
) -> list[Cell]:
    """The cells behind `taxonomy`. Loads the data and trains nothing.

    Args:
        dataset: "synthetic" (embedded), "ucla" or "ntu".
        preset: "paper", "quick", "smoke", or "auto": paper on real data, quick on embedded data.
        objectives: "all", or a comma list such as "random,CE,CE+AD"; the order of terms does not matter.
        seeds: comma list of whole numbers.
        protocol: split of the data set; "auto" takes its first.
        layers: of the GRUs, at least 1.
        units: of the GRUs, or "auto": the preset's.
        learning_rate: of Adam, positive, or "auto": the preset's. The released code has others too: 3e-3 in its earlier
            configurations for NW-UCLA; for NTU RGB+D 0.05 in NTU_BUTD_CON.yaml, the only configuration with three
            layers, which the released job overrides with 9e-4, the preset's. Random initialisation, which trains
            nothing, keeps its usual cell; alone, it is refused.
        pipeline: what happens to the coordinates before training, a name that `data.load` lists for the data set. For
            NTU RGB+D "authors" is "default".
        variant: a name in `recipe.VARIANTS`, where paper and released code disagree, or "none". Objectives that
            are not trained with what it changes keep their usual cells; if all do, it is refused, and so is "uncropped"
            where no sequence is longer than the crop.
        select: "last" epoch, or "best_on_test" as the released code did.
        subset: accept a part of NTU RGB+D, whose label is then "ntu (subset)": no printed number belongs to it.
        precision: of matrix products on a CPU, "float32", "bfloat16", or "auto": the preset's. In bfloat16 a CPU that
            lacks such instructions takes twice to eight times as long as in float32. On CUDA it is float32.
        device: where the cells are to be trained, as for `taxonomy`; a cell's recipe says in what precision that is.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
        FileNotFoundError: if the data set is not there, saying where to get it and where to put it.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    protocols = list(manifest.load_manifest(dataset).splits)
    choose("protocol", protocol, ("auto", *protocols))
    choose("variant", variant, ("none", *VARIANTS))
    where = devices.resolve(device)
    changes = {"layers": parse_number("layers", layers, least=1), "subset": subset}
    changes["pipeline"] = SAME_PIPELINES.get((dataset, pipeline), pipeline)
    changes |= _as_given(select, precision, where)
    changes |= {} if units == "auto" else {"units": parse_number("units", units, least=1)}
    changes["protocol"] = protocols[0] if protocol == "auto" else protocol
    recipes = [PRESETS[preset](dataset, name, **changes) for name in parse_objectives(objectives)]
    if learning_rate != "auto":
        recipes = _with_rate(recipes, parse_rate(learning_rate))
    if variant != "none":
        recipes = with_variant(recipes, "objectives", variant, VARIANTS[variant], CONCERNED[variant])
    if variant == "uncropped":
        _check_longer(data_of(recipes[0]), PRESETS[preset](dataset, "CD").td_crop)
    return _cells("taxonomy", recipes, preset, parse_numbers("seeds", seeds), where)


@checked_names
def encoder_collapse_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    layers: str | int = "1,2,3,4,5",
    methods: str = "random,AE",
    seeds: str | int = "0",
    select: str = "last",
    precision: str = "auto",
    device: str = "auto",
) -> list[Cell]:
    """The cells behind `encoder_collapse`. Loads the data and trains nothing.

    Args:
        layers: comma list of depths, at least 1 each.
        methods: comma list of "random" and "AE".
        dataset, preset, seeds, select, precision, device: as for `taxonomy_cells`.

    Raises:
        ValueError, FileNotFoundError: as `taxonomy_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    depths = parse_numbers("layers", layers, least=1)
    chosen = parse_names("methods", methods, ("random", "AE"))
    where = devices.resolve(device)
    changes = _as_given(select, precision, where)
    recipes = [PRESETS[preset](dataset, method, layers=depth, **changes) for depth in depths for method in chosen]
    return _cells("encoder_collapse", recipes, preset, parse_numbers("seeds", seeds), where)


def taxonomy_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `taxonomy` from finished cells.

    Args:
        results: one row per cell with entry, seed, linear and the recipe's objectives, layers, units and protocol;
            the other measures where they were taken.
        preset, dataset: of these cells.
    """
    entries = results.drop_duplicates("entry").set_index("entry")
    published = Series({name: _printed_accuracy(row, dataset) for name, row in entries.iterrows()}, dtype=float)
    rows = DataFrame({"objectives": entries["objectives"]})
    for term in TERMS:
        rows[term] = [int(term in name.split("+")) for name in entries["objectives"]]
    departures = [name[len(objectives) + 2 :] for name, objectives in rows["objectives"].items()]
    if any(departures):
        rows["departures"] = departures
    return with_measures(rows, results, published, preset, dataset, [*MEASURES, "decoded_scale"])


def taxonomy_variants(results: DataFrame, usual: DataFrame, dataset: str) -> DataFrame:
    """Objectives trained away from their preset, one row per entry and preset.

    Args:
        results: cells that depart from their preset, as for `taxonomy_table`, with their preset.
        usual: cells that do not, or in layers, units and protocol alone.
        dataset: of all these cells.

    Returns:
        The columns of `taxonomy_table`, with `departures`, and before `published` the mean accuracy `usual` of the
        objective without them, over the same seeds, of equal layers, units and protocol (percent, NaN if one of them
        has not been run).
    """
    shared = ["preset", *LAYOUT]
    accuracies = usual.groupby([*shared, "seed"])["linear"].mean().rename("usual").reset_index()
    paired = results.merge(accuracies, how="left").groupby(["preset", "entry"])["usual"]
    means = paired.mean().where(paired.count() == paired.size()).reset_index()
    parts = []
    for preset, group in results.groupby("preset"):
        table = taxonomy_table(group, preset, dataset)
        beside_it = group.drop_duplicates("entry")[["preset", "entry"]].merge(means, how="left")["usual"]
        table.insert(table.columns.get_loc("published"), "usual", beside_it)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def encoder_collapse_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `encoder_collapse` from finished cells; `results` as for `taxonomy_table`."""
    entries = results.drop_duplicates("entry").set_index("entry")
    published = Series({name: _printed_depth(row, dataset) for name, row in entries.iterrows()}, dtype=float)
    rows = DataFrame({"layers": entries["layers"].astype(int), "method": entries["objectives"]})
    return with_measures(rows, results, published, preset, dataset, MEASURES)


SHARED = {"learners": learners, "methods": METHODS, "fields": LAYOUT, "presets": PRESETS}
TABLES = {
    "taxonomy": Table(
        run=taxonomy,
        cells=taxonomy_cells,
        layout=taxonomy_table,
        varied=(),
        example=("ucla", "AE+CE+AD+CD"),
        **SHARED,
    ),
    "encoder_collapse": Table(
        run=encoder_collapse,
        cells=encoder_collapse_cells,
        layout=encoder_collapse_table,
        varied=("layers",),
        example=("ucla", "AE"),
        **SHARED,
    ),
}


def parse_objectives(text: str) -> list[str]:
    """Objectives of a comma list, their terms put in the order AE, CE, AD, CD; "all" is random and the fifteen subsets.

    Raises:
        ValueError: naming an objective that does not exist and those that do, or one that is there twice.
    """
    names = distinct("objectives", text, (_ordered(name.strip()) for name in str(text).split(",")))
    return list(METHODS) if "all" in names else names


def parse_rate(value: Any) -> float:
    """A learning rate, given as a number or as text.

    Raises:
        ValueError: naming the value and the form expected.
    """
    try:
        rate = parse_float(value)
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        raise ValueError(f"learning_rate={value!r} should be auto or a positive number, such as 0.003")
    return rate


def _ordered(name: str) -> str:
    parts = name.split("+")
    ordered = "+".join(term for term in TERMS if term in parts)
    return ordered if sorted(parts) == sorted(ordered.split("+")) else choose("objectives", name, ("all", *METHODS))


def _with_rate(recipes: list[SkeletonRecipe], rate: float) -> list[SkeletonRecipe]:
    """Recipes with a learning rate where something is trained; the others as they are."""
    if all(recipe.objectives == "random" for recipe in recipes):
        raise ValueError(f"learning_rate={rate} changes nothing of random, which trains nothing; leave it out, or "
                         "choose other objectives too")
    return [recipe if recipe.objectives == "random" else recipe.replace(learning_rate=rate) for recipe in recipes]


def _as_given(select: str, precision: str, where: torch.device) -> dict[str, str]:
    """The fields of a recipe that both tables take as they are given; a preset knows its precision on a CPU."""
    choose("precision", precision, ("auto", "float32", "bfloat16"))
    if precision == "bfloat16" and where.type != "cpu":
        raise ValueError(f"precision='bfloat16' is for a CPU; on {where.type} it is float32: leave it out")
    return {"select": select} | ({} if precision == "auto" else {"precision": precision})


def _check_longer(data: SkeletonSet, crop: int) -> None:
    longest = int(data.lengths.max())
    if longest <= crop:
        raise ValueError(
            f"variant='uncropped' would change nothing on {data.name}: its longest sequence has {longest} frames, no "
            f"more than the crop of {crop}; leave the variant out"
        )


def _cells(
    table: str, recipes: list[SkeletonRecipe], preset: str, seeds: list[int], where: torch.device
) -> list[Cell]:
    """Every recipe with every seed, seed by seed, so that a table killed half-way has whole columns."""
    data, recipes = data_of(recipes[0]), [_computed_on(where, recipe) for recipe in recipes]
    return [
        Cell(table, _entry(recipe, preset, where), recipe, seed, preset, data.name, data.digest, VERSION)
        for seed in seeds
        for recipe in recipes
    ]


def _computed_on(where: torch.device, recipe: SkeletonRecipe) -> SkeletonRecipe:
    """The recipe with the precision that it has there, so that cells of a CPU and of a GPU have keys of their own."""
    return recipe.replace(precision=precision_of(recipe, where))


def _entry(recipe: SkeletonRecipe, preset: str, where: torch.device) -> str:
    """The objectives, followed by whatever departs from the preset: "AD+CD", "AE, layers=3".

    That only a part of the data is there is said by the data set's label.
    """
    usual = PRESETS[preset](recipe.dataset, recipe.objectives, subset=recipe.subset)
    return entry_of(recipe.objectives, recipe, _computed_on(where, usual))


def _printed_accuracy(row: Series, dataset: str) -> float:
    """The printed accuracy of an objective in this setting, NaN if none is printed."""
    column = PRINTED_COLUMNS.get((dataset, row["protocol"], row["layers"], row["units"]))
    if row["objectives"] == "random":
        return _printed_depth(row, dataset)
    if column is None:
        return float("nan")
    table, terms = printed("taxonomy"), row["objectives"].split("+")
    known = [term for term in TERMS if term in table]
    if not set(terms) <= set(known):
        return float("nan")
    return float(table.loc[(table[known] == [int(term in terms) for term in known]).all(axis=1), column].item())


def _printed_depth(row: Series, dataset: str) -> float:
    """The printed accuracy of random initialisation or AE at this depth, NaN if none is printed."""
    table = printed("taxonomy_depth_collapse").set_index("layers")
    if dataset != "ucla" or row["units"] != 512 or row["layers"] not in table.index:
        return float("nan")
    return float(table.loc[row["layers"], {"random": "random_init", "AE": "AE"}[row["objectives"]]])
