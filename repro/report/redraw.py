"""Every figure, and the table behind it, from exported cells: nothing is trained and no real data is needed."""

import json
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from pandas import DataFrame, Series

from repro.report import figures, image_figures
from repro.report.logs import slug
from repro.report.printed import printed
from repro.report.style import save
from repro.run.export import results
from repro.run.store import write_atomically
from repro.skeleton.tables import taxonomy_variants
from repro.tables import TABLES

CAPTIONS = image_figures.CAPTIONS | {
    "taxonomy": "Linear-probe accuracy of the fifteen subsets of attractive and contrastive encoder and decoder terms.",
    "taxonomy_variants": "Linear-probe accuracy of objectives trained away from the recipe, the recipe itself, and the "
    "printed value.",
    "encoder_collapse": "Linear-probe accuracy and spread of the embedding by depth of the encoder, at random "
    "initialisation and after training with the attractive encoder term alone.",
}
UNDRAWN = ("similarity_variance",)  # a table whose figure is drawn from a log
LOGS = {
    "objective_parts": "objective_parts",
    "sampled_keys": "sampled_keys",
    "similarity_variance_images": "similarity_variance",
}


def redraw(cells: DataFrame, folder: Path) -> list[Path]:
    """Draw every table and every log there is, one figure per data set; returns the files written.

    Args:
        cells: rows of `repro.run.export`; smoke runs are passed over.
        folder: gets `<table>_<dataset>.csv`, `.svg` and `.png`, and for cells that depart from their preset
            `taxonomy_variants_<dataset>`. Logs that were exported there before are drawn beside their CSV.
    """
    written = []
    cells = cells[cells["preset"] != "smoke"]
    for (table, dataset), _ in cells.groupby(["table", "dataset"]):
        found = with_layout(results(cells, table, dataset))
        chosen = most_complete(found)
        if not chosen.empty:
            rows = TABLES[table].layout(chosen, chosen["preset"].iloc[0], dataset)
            written += _write(folder, table, rows, chosen)
        away = found[found["entry"] != found["objectives"]] if table == "taxonomy" else found[:0]
        if not away.empty:
            usual = found[found["entry"] == found["objectives"]]
            written += _write(folder, "taxonomy_variants", taxonomy_variants(away, usual, dataset), away)
    for name, figure in LOGS.items():
        for path in sorted(folder.glob(f"{name}_*.csv")):
            log = pd.read_csv(path)
            presets = sorted(log["preset"].unique())
            provenance = {"log": path.name, "preset": " and ".join(presets)}
            written += save(getattr(image_figures, figure)(log), path.with_suffix(""), CAPTIONS[figure], provenance)
    return written


def _write(folder: Path, table: str, rows: DataFrame, cells: DataFrame) -> list[Path]:
    """The table as CSV, and its figure."""
    dataset, presets = rows["dataset"].iloc[0], " and ".join(sorted(rows["preset"].unique()))
    stem = folder / f"{table}_{slug(dataset)}"
    write_atomically(stem.with_suffix(".csv"), lambda path: rows.to_csv(path, index=False))
    if table in UNDRAWN:
        return [stem.with_suffix(".csv")]
    seeds = sorted(int(seed) for seed in cells["seed"].unique())
    provenance = {"cells": list(cells["key"]), "seeds": seeds, "preset": presets, "dataset": dataset}
    return [stem.with_suffix(".csv"), *save(draw(table, rows), stem, CAPTIONS[table], provenance)]


def draw(table: str, rows: DataFrame) -> Figure:
    """The figure of a table; on embedded data the taxonomy's printed column stands apart."""
    if table != "taxonomy":
        return getattr(figures if hasattr(figures, table) else image_figures, table)(rows)
    apart = printed("taxonomy")[[*figures.OBJECTIVES, "UCLA"]] if rows["published"].isna().all() else None
    return figures.taxonomy(rows, printed=apart)


def with_layout(found: DataFrame) -> DataFrame:
    """Cells of one table, as `repro.run.export.results` gives them, with the fields that place them in it."""
    if found.empty:
        return found
    recipes = DataFrame(found["recipe"].map(json.loads).tolist(), index=found.index)
    return found.join(recipes[list(TABLES[found["table"].iloc[0]].fields)])


def most_complete(found: DataFrame) -> DataFrame:
    """The cells that belong to the table as printed, of the preset that covers most entries (paper if equal), if any.

    Cells that depart from their preset, whose entry says how ("AD+CD, td_queue=frozen_noise"), are left out, except in
    what the table varies. Rows are in the order of methods, within one of what is varied.
    """
    if found.empty:
        return found
    table = TABLES[found["table"].iloc[0]]
    name, varied = table.fields[0], list(table.varied)
    found = found[_as_listed(found, name, varied) & (found["preset"] != "smoke")]
    if found.empty:
        return found
    covered = found.groupby("preset")["entry"].nunique()
    best = max(covered.index, key=lambda preset: (covered[preset], preset == "paper"))
    order = found[name].map(list(table.methods).index)
    rank = ["layers", "order"] if "layers" in varied else ["order", *varied]  # depths go downwards, side by side
    found = found.assign(order=order).sort_values([*rank, "seed"]).drop(columns="order")
    return found[found["preset"] == best].reset_index(drop=True)


def _as_listed(found: DataFrame, name: str, varied: list[str]) -> Series:
    """Whether an entry says no more than its method and what the table varies."""
    entries = found[name]
    for field in varied:
        entries = entries + f", {field}=" + found[field].astype(str)
    return (found["entry"] == found[name]) | (found["entry"] == entries)
