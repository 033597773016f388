"""Every figure, and the table behind it, from exported cells: nothing is trained and no real data is needed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from pandas import DataFrame, Series

from repro import manifest
from repro.audiovisual.pretrain import VERSION as CLIPS
from repro.audiovisual.tables import TABLES as OF_CLIPS
from repro.image.pretrain import VERSION as IMAGES
from repro.image.tables import TABLES as OF_IMAGES
from repro.report import audiovisual_figures, category_figures, figures, image_figures, logs, negative_figures
from repro.report.elements import only, spread_in_words
from repro.report.logs import slug
from repro.report.printed import printed
from repro.report.stored import departures, placed
from repro.report.style import save
from repro.run.store import write_atomically
from repro.skeleton.pretrain import VERSION as SKELETONS
from repro.skeleton.tables import TABLES as OF_SKELETONS
from repro.skeleton.tables import taxonomy_variants
from repro.tables import TABLES

MODULES = (figures, image_figures, audiovisual_figures, category_figures, negative_figures)
CAPTIONS = {name: text for module in MODULES[1:] for name, text in module.CAPTIONS.items()} | {
    "taxonomy": "Linear-probe accuracy of the fifteen subsets of attractive and contrastive encoder and decoder terms.",
    "along_training": "Linear-probe accuracy along training, a panel for each objective: mean over seeds, with a band "
    "of one standard deviation; the best of the probe's epochs on the test split, as the released code reports it; and "
    "the printed value.",
    "sequence_contrast": "The contrastive decoder term along training, a panel for each objective that has it; dashed, "
    "with the dictionary of noise that the released code never refreshes.",
    "taxonomy_variants": "Linear-probe accuracy of objectives trained away from the recipe, the recipe itself, and the "
    "printed value.",
    "encoder_collapse": "Linear-probe accuracy and spread of the embedding by depth of the encoder, at random "
    "initialisation and after training with the attractive encoder term alone; where measured, the probe on "
    "standardised readouts too.",
}
VERSIONS = dict.fromkeys(OF_SKELETONS, SKELETONS) | dict.fromkeys(OF_IMAGES, IMAGES) | dict.fromkeys(OF_CLIPS, CLIPS)
UNDRAWN = ("similarity_variance",)  # a table whose figure is drawn from a log
LOGS = {
    "along_training": "along_training",
    "category_curves": "category_curves",
    "objective_parts": "objective_parts",
    "pretext_accuracy": "pretext_accuracy",
    "sampled_keys": "sampled_keys",
    "selected_negatives": "selected_negatives",
    "sequence_contrast": "sequence_contrast",
    "similarity_variance_images": "similarity_variance",
}


def redraw(cells: DataFrame, folder: Path) -> list[Path]:
    """Draw every table and every log there is, one figure per data set; returns the files written.

    Args:
        cells: rows of `repro.run.export`; smoke runs are passed over.
        folder: gets `<table>_<dataset>.csv`, `.svg` and `.png`. The taxonomy has such a table for every depth, width
            and protocol, whose name says what departs from the preset, as in `taxonomy_ntu_3layers`. Other departures
            and earlier versions stand in `<table>_variants_<dataset>`, of which the taxonomy's alone is drawn. Logs
            that were exported there before are drawn beside their CSV. What would show pictures of real clips is not
            drawn: they are not ours to publish.

    Raises:
        ValueError: if a log does not say which cells it comes from.
    """
    written = []
    cells = cells[cells["preset"] != "smoke"]
    for (table, dataset), _ in cells.groupby(["table", "dataset"]):
        found = placed(cells, table, dataset)
        listed = _as_listed(found)
        for setting, group in found[listed].groupby(_settings(found[listed])):
            chosen = most_complete(group)
            rows = TABLES[table].layout(chosen, chosen["preset"].iloc[0], dataset)
            written += _write(folder, table, rows, chosen, setting)
        if table == "taxonomy" and not listed.all():
            away, usual = found[~listed], found[_as_listed(found, "version")]
            beside = usual.merge(away[["preset", "seed", *TABLES[table].fields]].drop_duplicates())
            rows = taxonomy_variants(away, usual, dataset)
            written += _write(folder, "taxonomy_variants", rows, pd.concat([away, beside]))
        elif not listed.all():
            parts = [TABLES[table].layout(rows, preset, dataset) for preset, rows in found[~listed].groupby("preset")]
            written += _write(folder, f"{table}_variants", pd.concat(parts, ignore_index=True), found[~listed])
    for name, figure in LOGS.items():
        for path in sorted(folder.glob(f"{name}_*.csv")):
            log = logs.read(path, logs.FIGURES[name].columns)
            if figure == "selected_negatives" and only(log, "dataset") != "synthetic":
                continue
            if figure == "along_training":
                log = _of_one_recipe(log)
            if log.empty:
                continue
            behind = cells[cells["key"].isin(log["key"])].drop_duplicates("key")
            written += _save(draw_log(figure, log), path.with_suffix(""), figure, log, _of_versions(figure, behind))
    return written


def _write(folder: Path, table: str, rows: DataFrame, cells: DataFrame, setting: str = "") -> list[Path]:
    """The table as CSV, and its figure; `setting` ends their names."""
    stem = folder / f"{table}_{slug(rows['dataset'].iloc[0])}{setting}"
    write_atomically(stem.with_suffix(".csv"), lambda path: rows.to_csv(path, index=False))
    also = " ".join(filter(None, (spread_in_words(rows), _of_versions(table, cells))))
    drawn = [] if table in UNDRAWN or table not in CAPTIONS else _save(draw(table, rows), stem, table, cells, also)
    return [stem.with_suffix(".csv"), *drawn]


def _save(figure: Figure, stem: Path, name: str, rows: DataFrame, also: str = "") -> tuple[Path, Path]:
    """Write a figure with its caption and what it is drawn from: rows of cells or of a log, which name their cells.

    Args:
        also: a further sentence of the caption.
    """
    caption = " ".join(filter(None, (CAPTIONS[name], also)))
    provenance = {
        "cells": list(dict.fromkeys(rows["key"])),
        "seeds": sorted(int(seed) for seed in rows["seed"].unique()),
        "preset": " and ".join(sorted(rows["preset"].unique())),
        "dataset": only(rows, "dataset"),
    }
    return save(figure, stem, captioned(caption, provenance), provenance)


def _of_versions(name: str, cells: DataFrame) -> str:
    """What follows for a caption from the versions of the training of the cells behind a figure, if any are known."""
    counted = name in ("category_diversity", "category_curves") and len(cells)
    draws = category_figures.draws_in_words(cells["version"]) if counted else ""
    return " ".join(filter(None, (draws, versions_in_words(cells))))


def versions_in_words(cells: DataFrame) -> str:
    """Which entries are of which version of the training, where one is not the code's: they cannot simply be compared.

    Args:
        cells: rows of `repro.run.export`, of tables of one modality.
    """
    newest = set(cells["table"].map(VERSIONS))
    if set(cells["version"]) <= newest:
        return ""
    today = f"(today's is {newest.pop()})"
    entries = cells.drop_duplicates(["entry", "version"]).groupby("version")["entry"].agg(list)
    if len(entries) == 1:
        return f"Cells of version {entries.index[0]} of the training {today}."
    usual = max(entries.index, key=lambda version: len(entries[version]))
    parts = [f"{version} of {' and '.join(names)}" for version, names in entries.drop(usual).items()]
    return f"Versions of the training: {'; '.join(parts)}; {usual} of all others {today}."


def captioned(caption: str, provenance: dict[str, Any]) -> str:
    """The caption, and in words what a figure is drawn from; the keys of the cells are in the file's metadata."""
    seeds, count = ", ".join(map(str, provenance["seeds"])), len(provenance["cells"])
    cells = "1 cell, whose key is" if count == 1 else f"{count} cells, whose keys are"
    printed_in = f"Printed numbers: {provenance['printed']}. " if "printed" in provenance else ""
    return (f"{caption} Data set: {provenance['dataset']}. Preset: {provenance['preset']}. {printed_in}"
            f"Seed{'s' * (len(provenance['seeds']) > 1)}: {seeds}. Drawn from {cells} in the source of this file.")


def draw(table: str, rows: DataFrame) -> Figure:
    """The figure of a table; on embedded data the taxonomy's printed column stands apart."""
    if table != "taxonomy":
        return _function(table)(rows)
    embedded = manifest.embedded(rows["dataset"].iloc[0])
    apart = printed("taxonomy")[[*figures.OBJECTIVES, "UCLA"]] if embedded else None
    return figures.taxonomy(rows, printed=apart)


def draw_log(figure: str, log: DataFrame) -> Figure:
    """The figure of a log; embedded clips are filmed again."""
    if figure == "selected_negatives":
        return negative_figures.selected_negatives(log, negative_figures.drawn_again(log))
    return _function(figure)(log)


def _function(figure: str) -> Callable[[DataFrame], Figure]:
    """What draws the figure of that name."""
    return next(getattr(module, figure) for module in MODULES if hasattr(module, figure))


def most_complete(found: DataFrame) -> DataFrame:
    """Of the cells of a table in one setting those of the preset that covers most entries (paper if equal), if any.

    Cells that depart from their preset, whose entry says how ("AD+CD, td_queue=frozen_noise"), are left out, except in
    what the table varies or is made again for. Rows are in the order of methods, within one of what is varied.
    """
    found = found[_as_listed(found)]
    if found.empty:
        return found
    table = TABLES[found["table"].iloc[0]]
    name, varied = table.fields[0], list(table.varied)
    covered = found.groupby("preset")["entry"].nunique()
    best = max(covered.index, key=lambda preset: (covered[preset], preset == "paper"))
    order = found[name].map(list(table.methods).index)
    rank = ["layers", "order"] if "layers" in varied else ["order", *varied]  # depths go downwards, side by side
    found = found.assign(order=order).sort_values([*rank, "seed"]).drop(columns="order")
    return found[found["preset"] == best].reset_index(drop=True)


def _of_one_recipe(log: DataFrame) -> DataFrame:
    """Rows of entries that depart from their preset in nothing, of the preset with most of them (paper if equal)."""
    log = log[log["entry"] == log["objectives"]]
    covered = log.groupby("preset")["entry"].nunique()
    best = max(covered.index, key=lambda preset: (covered[preset], preset == "paper"), default=None)
    return log[log["preset"] == best]


def _as_listed(found: DataFrame, *also: str) -> Series:
    """Whether an entry names no departure but what its table varies, or has a table of its own for, or `also`."""
    listed = {name: {*TABLES[name].varied, *_separate(name), *also} for name in set(found["table"])}
    pairs = zip(found["entry"], found["table"], strict=True)
    return Series([departures(entry).keys() <= listed[table] for entry, table in pairs], found.index, dtype=bool)


def _settings(found: DataFrame) -> Series:
    """The end of each cell's file name: "CE, layers=3" of the taxonomy gives "_3layers", a usual setting nothing."""
    endings = []
    for entry, table in zip(found["entry"], found["table"], strict=True):
        separate = _separate(table)
        parts = [f"_{value}{separate[field]}" for field, value in departures(entry).items() if field in separate]
        endings.append("".join(parts))
    return Series(endings, found.index, dtype=str)


def _separate(table: str) -> dict[str, str]:
    """Fields that make a table of their own when they depart from the preset, and what follows them in file names."""
    return {"protocol": "", "layers": "layers", "units": "units"} if table == "taxonomy" else {}
