"""The taxonomy paper's tables: which cells make them, and our numbers beside the printed ones."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch
from pandas import DataFrame, Series

from repro import manifest
from repro.recipe import Rows, choose, distinct, parse_names, parse_numbers
from repro.report.printed import printed
from repro.report.stored import departures, with_departures
from repro.run import device as devices
from repro.run.store import Cell
from repro.run.table import (
    Table,
    checked_names,
    entry_of,
    optimiser,
    resolved,
    swept,
    trained,
    with_measures,
    with_variant,
)
from repro.skeleton.cell import EVALUATION, data_of, learners, train
from repro.skeleton.data import DATASETS, SkeletonSet
from repro.skeleton.pretrain import OPTIMISER, VERSION
from repro.skeleton.recipe import METHODS, PRESETS, TERMS, VARIANTS, SkeletonRecipe

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
        One row per objective: objectives, AE, CE, AD, CD, where one of them departs from the preset layers, units and
        protocol, then ours, std, n_seeds, published, difference, preset,
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


@checked_names(SkeletonRecipe)
def taxonomy_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    objectives: str = "all",
    seeds: str | int = "0",
    protocol: str = "auto",
    variant: str = "none",
    device: str = "auto",
    **fields: Any,
) -> list[Cell]:
    """The cells behind `taxonomy`. Loads the data and trains nothing.

    Args:
        dataset: "synthetic" (embedded), "ucla" or "ntu".
        preset: "paper", "quick", "smoke", or "auto": paper on real data, quick on embedded data.
        objectives: "all", or a comma list such as "random,CE,CE+AD"; the order of terms does not matter.
        seeds: comma list of whole numbers.
        protocol: split of the data set; "auto" takes its first.
        variant: a name in `recipe.VARIANTS`, where paper and released code disagree, or "none". Objectives that
            are not trained with what it changes keep their usual cells; if all do, it is refused, and so is "uncropped"
            where no sequence is longer than the crop.
        device: where the cells are to be trained, as for `taxonomy`.
        **fields: any other field of the recipe, such as layers=3 or ad_weight="25,50", which sweeps; "auto" leaves it
            as the preset has it. Objectives that do not use a field keep their usual cells; if all do, it is refused.

    Raises:
        TypeError: if there is no such parameter.
        ValueError: if a parameter has a value that does not exist, naming those that do.
        FileNotFoundError: if the data set is not there, saying where to get it and where to put it.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    protocols = list(manifest.load_manifest(dataset).splits)
    choose("protocol", protocol, ("auto", *protocols))
    choose("variant", variant, ("none", *VARIANTS))
    usual = {"protocol": protocols[0] if protocol == "auto" else protocol}
    rows = [functools.partial(PRESETS[preset], dataset, name, **usual) for name in parse_objectives(objectives)]
    fields = _as_computed(dataset, fields, devices.resolve(device))
    recipes = with_variant(rows, fields, variant, VARIANTS.get(variant, {}))
    if variant == "uncropped":
        _check_longer(data_of(recipes[0]), PRESETS[preset](dataset, "CD").td_crop)
    return _cells("taxonomy", recipes, preset, parse_numbers("seeds", seeds))


@checked_names(SkeletonRecipe)
def encoder_collapse_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    layers: str | int = "1,2,3,4,5",
    methods: str = "random,AE",
    seeds: str | int = "0",
    device: str = "auto",
    **fields: Any,
) -> list[Cell]:
    """The cells behind `encoder_collapse`. Loads the data and trains nothing.

    Args:
        layers: comma list of depths, at least 1 each.
        methods: comma list of "random" and "AE".
        dataset, preset, seeds, device, fields: as for `taxonomy_cells`.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `taxonomy_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    depths = parse_numbers("layers", layers, least=1)
    chosen = parse_names("methods", methods, ("random", "AE"))
    rows = [functools.partial(PRESETS[preset], dataset, name, layers=depth) for depth in depths for name in chosen]
    recipes = swept(rows, _as_computed(dataset, fields, devices.resolve(device)))
    return _cells("encoder_collapse", recipes, preset, parse_numbers("seeds", seeds))


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
    named = {name for entry in rows.index for name in departures(entry)}
    for name in LAYOUT[1:]:
        if name in named:
            rows[name] = entries[name]
    return with_measures(with_departures(rows), results, published, preset, dataset, [*MEASURES, "decoded_scale"])


def taxonomy_variants(results: DataFrame, usual: DataFrame, dataset: str) -> DataFrame:
    """Objectives trained away from their preset, one row per entry and preset.

    Args:
        results: cells that depart from their preset, as for `taxonomy_table`, with their preset.
        usual: cells that do not, or in layers, units, protocol and version alone.
        dataset: of all these cells.

    Returns:
        The columns of `taxonomy_table`, with `departures`, and before `published` the mean accuracy `usual` of the
        objective without them, over the same seeds, of equal layers, units, protocol and version (percent, NaN if one
        of them has not been run, or nothing but the version departs).
    """
    shared = ["preset", "version", *LAYOUT]
    accuracies = usual.groupby([*shared, "seed"])["linear"].mean().rename("usual").reset_index()
    results = results.merge(accuracies, how="left")
    results.loc[results["entry"].isin(usual["entry"]), "usual"] = math.nan
    paired = results.groupby(["preset", "entry"])["usual"]
    means = paired.mean().where(paired.count() == paired.size()).reset_index()
    parts = []
    for preset, group in results.groupby("preset"):
        table = taxonomy_table(group, preset, dataset).drop(columns=LAYOUT[1:], errors="ignore")
        entries = group["entry"].drop_duplicates()
        table["departures"] = [entry.partition(", ")[2] for entry in entries]
        beside_it = group.drop_duplicates("entry")[["preset", "entry"]].merge(means, how="left")["usual"]
        table.insert(table.columns.get_loc("published"), "usual", beside_it)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def encoder_collapse_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `encoder_collapse` from finished cells; `results` as for `taxonomy_table`."""
    entries = results.drop_duplicates("entry").set_index("entry")
    published = Series({name: _printed_depth(row, dataset) for name, row in entries.iterrows()}, dtype=float)
    rows = with_departures(DataFrame({"layers": entries["layers"].astype(int), "method": entries["objectives"]}))
    return with_measures(rows, results, published, preset, dataset, MEASURES)


def _constants(recipe: SkeletonRecipe) -> Rows:
    """See `Table.constants`."""
    return [optimiser(OPTIMISER, "released code, UCLA_BUTD_CON.yaml")] if recipe.uses("learning_rate") else []


SHARED = {"learners": learners, "methods": METHODS, "fields": LAYOUT, "presets": PRESETS, "constants": _constants}
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
        **SHARED | {"methods": ("random", "AE")},
    ),
}


def parse_objectives(text: str) -> list[str]:
    """Objectives of a comma list, their terms put in the order AE, CE, AD, CD; "all" is random and the fifteen subsets.

    Raises:
        ValueError: naming an objective that does not exist and those that do, or one that is there twice.
    """
    names = distinct("objectives", text, (_ordered(name.strip()) for name in str(text).split(",")))
    return list(METHODS) if "all" in names else names


def _ordered(name: str) -> str:
    parts = name.split("+")
    ordered = "+".join(term for term in TERMS if term in parts)
    return ordered if sorted(parts) == sorted(ordered.split("+")) else choose("objectives", name, ("all", *METHODS))


def _as_computed(dataset: str, fields: Mapping[str, Any], where: torch.device) -> dict[str, Any]:
    """The fields asked for, with one name for computations that are the same.

    Raises:
        ValueError: if bfloat16 is asked for elsewhere than on a CPU.
    """
    if fields.get("precision") == "bfloat16" and where.type != "cpu":
        raise ValueError(f"precision='bfloat16' is for a CPU; on {where.type} it is float32: leave it out")
    if "pipeline" not in fields:
        return dict(fields)
    return {**fields, "pipeline": SAME_PIPELINES.get((dataset, fields["pipeline"]), fields["pipeline"])}


def _check_longer(data: SkeletonSet, crop: int) -> None:
    longest = int(data.lengths.max())
    if longest <= crop:
        raise ValueError(
            f"variant='uncropped' would change nothing on {data.name}: its longest sequence has {longest} frames, no "
            f"more than the crop of {crop}; leave the variant out"
        )


def _cells(table: str, recipes: list[SkeletonRecipe], preset: str, seeds: list[int]) -> list[Cell]:
    """Every recipe with every seed, seed by seed, so that a table killed half-way has whole columns."""
    data = data_of(recipes[0])
    return [
        Cell(table, _entry(recipe, preset), recipe, seed, preset, data.name, data.digest, VERSION, EVALUATION)
        for seed in seeds
        for recipe in recipes
    ]


def _entry(recipe: SkeletonRecipe, preset: str) -> str:
    """The objectives, followed by whatever departs from the preset: "AD+CD", "AE, layers=3".

    That only a part of the data is there is said by the data set's label.
    """
    return entry_of(recipe.objectives, recipe, PRESETS[preset](recipe.dataset, recipe.objectives, subset=recipe.subset))


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
