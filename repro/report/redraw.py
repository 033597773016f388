"""Every figure, and the table behind it, from exported cells: nothing is trained and no real data is needed."""

import json
from pathlib import Path

from pandas import DataFrame

from repro.report import figures
from repro.report.printed import printed
from repro.report.style import save
from repro.run.export import results
from repro.run.store import write_atomically
from repro.skeleton.pretrain import METHODS
from repro.skeleton.tables import LAYOUT, TABLES, taxonomy_variants

CAPTIONS = {
    "taxonomy": "Linear-probe accuracy of the fifteen subsets of attractive and contrastive encoder and decoder terms.",
    "taxonomy_variants": "Linear-probe accuracy of objectives trained away from the recipe, the recipe itself, and the "
    "printed value.",
    "encoder_collapse": "Linear-probe accuracy and spread of the embedding by depth of the encoder, at random "
    "initialisation and after training with the attractive encoder term alone.",
}


def redraw(cells: DataFrame, folder: Path) -> list[Path]:
    """Draw every table there are cells for, one figure per data set; returns the files written.

    Args:
        cells: rows of `repro.run.export`; smoke runs are passed over.
        folder: gets `<table>_<dataset>.csv`, `.svg` and `.png`, and for cells that depart from their preset
            `taxonomy_variants_<dataset>`.
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
    return written


def _write(folder: Path, table: str, rows: DataFrame, cells: DataFrame) -> list[Path]:
    """The table as CSV, and its figure."""
    dataset, presets = rows["dataset"].iloc[0], " and ".join(sorted(rows["preset"].unique()))
    stem = folder / f"{table}_{dataset}"
    write_atomically(stem.with_suffix(".csv"), lambda path: rows.to_csv(path, index=False))
    seeds = sorted(int(seed) for seed in cells["seed"].unique())
    provenance = {"cells": list(cells["key"]), "seeds": seeds, "preset": presets, "dataset": dataset}
    return [stem.with_suffix(".csv"), *save(draw(table, rows), stem, CAPTIONS[table], provenance)]


def draw(table: str, rows: DataFrame) -> figures.Figure:
    """The figure of a table; on embedded data the taxonomy's printed column stands apart."""
    if table != "taxonomy":
        return getattr(figures, table)(rows)
    apart = printed("taxonomy")[[*figures.OBJECTIVES, "UCLA"]] if rows["published"].isna().all() else None
    return figures.taxonomy(rows, printed=apart)


def with_layout(found: DataFrame) -> DataFrame:
    """Cells of `repro.run.export.results`, with the fields of their recipes that place them in a table."""
    recipes = DataFrame(found["recipe"].map(json.loads).tolist(), index=found.index)
    return found.join(recipes[LAYOUT])


def most_complete(found: DataFrame) -> DataFrame:
    """The cells that belong to the table as printed, of the preset that covers most entries (paper if equal), if any.

    Cells that depart from their preset, whose entry says how ("AD+CD, td_queue=frozen_noise"), are left out, except in
    depth, which is what `encoder_collapse` varies.
    """
    by_depth = found["objectives"] + ", layers=" + found["layers"].astype(str)
    varied = (found["table"] == "encoder_collapse") & (found["entry"] == by_depth)
    found = found[((found["entry"] == found["objectives"]) | varied) & (found["preset"] != "smoke")]
    if found.empty:
        return found
    covered = found.groupby("preset")["entry"].nunique()
    best = max(covered.index, key=lambda preset: (covered[preset], preset == "paper"))
    order = found["objectives"].map(METHODS.index)
    found = found.assign(order=order).sort_values(["layers", "order", "seed"]).drop(columns="order")
    return found[found["preset"] == best].reset_index(drop=True)
