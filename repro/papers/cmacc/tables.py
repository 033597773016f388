"""CM-ACC's tables: which recipes they compare, and how they are drawn."""

import functools
from typing import Any

import pandas as pd
from pandas import DataFrame, Series

from repro.audiovisual import CHARACTERS, MODALITIES
from repro.audiovisual.recipe import CLIPS, METHODS, QUICK, SELF_SUPERVISED, TARGETS
from repro.audiovisual.splits import DATASETS
from repro.data import manifest
from repro.report.printed import of_recipe
from repro.table import FROM_PRESET, Lazy, Table, by_preset

FIGURES = "repro.papers.cmacc.figures"
ON_GRIDS = "characters"  # the target of recipes of grids of characters, which linear probes read
PROBED = {ON_GRIDS: "linear", "new_drawings": "linear_held_out"}  # targets of their tables, with what probes measure
DIFFERING = {  # data sets and targets that are not quite the paper's, with what a reader should know
    "kinetics_sound": "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700",
    "esc10": "classified among all 50 classes",
}
WITHOUT_CATEGORIES = ("audioset", "esc50")  # here; or without pictures
MEASURES = ("trained_on",)


def datasets(usual: str) -> tuple[str, ...]:
    """All that can be pre-trained on: what comes with the package, what the paper's table is on, then the others."""
    return tuple(dict.fromkeys(("synthetic", usual, *DATASETS)))


def batches(preset: str, dataset: str) -> tuple[int, ...]:
    """M; fewer of recordings in small recipes, where dictionary and pool are small as well."""
    drawn = dataset in (*QUICK, *CHARACTERS)
    if preset == "smoke":
        return (16, 32) if drawn else (4, 8)
    return (32, 64, 128) if preset == "paper" or drawn else (4, 8, 16)


def dictionaries(preset: str, dataset: str) -> tuple[int, ...]:
    """K, multiples of the batch."""
    if preset == "paper":
        return (128, 512, 2048, 8192, 32768)
    if dataset in CHARACTERS:
        return (16, 64) if preset == "smoke" else (128, 512, 2048)
    if dataset in QUICK:
        return (64, 256) if preset == "smoke" else (64, 256, 1024)
    return (8, 16, 24)


def by_target(runs: DataFrame) -> DataFrame:
    """A row for every run and target, the accuracy there as `value`; see also `with_notes`.

    Of grids of characters, which probes read, the targets are new pairs ("characters") and drawings never seen
    ("new_drawings").
    """
    asked = [[*PROBED] if targets == ON_GRIDS else [*filter(None, targets.split(","))] for targets in runs["targets"]]
    rows = runs.assign(target=asked).explode("target", ignore_index=True).dropna(subset="target")
    values = [row[PROBED.get(row["target"], row["target"])] for row in rows.to_dict("records")]
    return with_notes(rows.assign(value=values).astype({"trained_on": int}))


def over_splits(runs: DataFrame) -> DataFrame:
    """The rows of `by_target`. Where a seed has all splits of a target, their mean alone stands for them, as split 0.

    Every split has an encoder of its own. Of a target with one split, that is the mean.
    """
    rows, parts = by_target(runs), []
    changes = [{name: value for name, value in changed.items() if name != "split"}
               for changed in rows["changes"]]
    rows["encoder"] = rows["method"] + Series(changes, rows.index, dtype=object).map(str)  # but for the split
    for (_, _, target), alike in rows.groupby(["encoder", "seed", "target"], sort=False):
        single = alike[alike["split"] > 0]
        whole = target in TARGETS and single["split"].nunique() == len(TARGETS[target].splits)
        if whole and alike["evaluation"].nunique() == 1:
            costs, means = [*single["cost"]], single[["value", "trained_on"]].mean()
            mean = single[:1].assign(split=0, value=means["value"], trained_on=round(means["trained_on"]), cost=[costs])
            alike = pd.concat([alike.drop(index=single.index), mean]).sort_index()[:1]  # or an encoder for all splits
        parts.append(alike)
    rows = pd.concat([rows[:0], *parts]).sort_index()
    first = rows.groupby(["encoder", "target", "split"])["recipe_number"].transform("min")
    return rows.drop(columns="encoder").assign(recipe_number=first)


def by_modality(runs: DataFrame) -> DataFrame:
    """A row for every run and modality of the candidates, the number of their categories as `value`."""
    parts = [runs.assign(target=name, value=runs[f"categories_{name}"]) for name in MODALITIES]
    rows = pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)
    return with_notes(rows.astype({"trained_on": int}))


def with_notes(rows: DataFrame) -> DataFrame:
    """Rows whose changes name, as "data", data sets and targets that are not quite the paper's."""
    changed = []
    for row in rows.itertuples():
        seen = () if row.method == "scratch" else (manifest.plain(row.dataset),)
        note = "; ".join(DIFFERING[name] for name in (*seen, row.target) if name in DIFFERING)
        changed.append({**row.changed, "data": note} if note else row.changed)
    return rows.assign(changed=Series(changed, index=rows.index, dtype=object))


def _table(name: str, title: str, place: str, rows: list[dict[str, Any]], columns: tuple[str, ...], *,
           usual: str = "kinetics700", **options: Any) -> Table:
    """A table of clips, a row for each target, which the paper has on the data set `usual`."""
    shared = {"study": CLIPS, "datasets": datasets(usual), "measures": MEASURES, "arrange": by_target}
    return Table(name=name, title=title, place=place, rows=rows, columns=(*columns, "target"), **shared | options)


TABLES = {table.name: table for table in (
    _table(
        "cross_modal", "Within or across modalities, with and without the extra layer and active selection",
        "Tables 1 and 2",
        [{"approach": approach, "targets": FROM_PRESET, **fields} for approach, fields in {
            "Scratch": {"method": "scratch"},
            "Supervised": {"method": "supervised"},
            "SMoCo": {"method": "smoco"},
            "XMoCo (w/o fcl)": {"method": "xmoco", "extra_layer": False},
            "XMoCo": {"method": "xmoco"},
            "CM-ACC (w/o fcl)": {"method": "cmacc", "extra_layer": False},
            "CM-ACC, feature embedding": {"method": "cmacc", "sampler": "feature"},
            "CM-ACC": {"method": "cmacc"},
        }.items()],
        ("approach",), usual="kinetics_sound", plot=Lazy(FIGURES, "APPROACHES"),
        printed=functools.partial(of_recipe, "cross_modal_by_recipe"),
    ),
    _table(
        "ohem_vs_active", "Random, least confident (OHEM) and active negatives, by the number selected in a step",
        "Table 3",
        [{"method": "cmacc", "sampler": ("random", "ohem", "gradient"), "batch": batches, "targets": FROM_PRESET}],
        ("sampler", "batch"), plot=Lazy(FIGURES, "BY_SAMPLER"),
        printed=functools.partial(of_recipe, "ohem_vs_active_by_recipe"),
    ),
    _table(
        "dictionary_size", "SMoCo, XMoCo and CM-ACC by the size of the dictionary",
        "Fig. 3b, whose values are not printed",
        [{"method": SELF_SUPERVISED, "dictionary": dictionaries, "targets": FROM_PRESET}],
        ("method", "dictionary"), plot=Lazy(FIGURES, "BY_DICTIONARY"),
    ),
    _table(
        "mutual_information", "Characters read from grids, by their number, which is the information pairs share",
        "Fig. 3a, whose values are not printed",
        [{"method": SELF_SUPERVISED,
          "characters": by_preset(paper=tuple(range(1, 10)), quick=tuple(range(1, 10)), smoke=(2,))}],
        ("method", "characters"), datasets=CHARACTERS, methods=METHODS,
        plot=Lazy(FIGURES, "BY_CHARACTERS"),
    ),
    _table(
        "transfer", "Encoders fine-tuned elsewhere, every official split or fold", "Tables 4 to 6",
        [{"method": ("cmacc",), "video_trunk": FROM_PRESET, "split": (0,), "targets": FROM_PRESET}],
        ("method", "video_trunk", "split"), methods=METHODS,
        printed=functools.partial(of_recipe, "transfer_by_recipe"),
        arrange=over_splits, plot=Lazy(FIGURES, "TRANSFER"),
    ),
    _table(
        "category_diversity", "How many categories the negatives selected in a step come from", "Figs. 2 and 4",
        [{
            "method": "cmacc",
            "sampler": ("random", "ohem", "feature", "gradient"),
            "batch": batches,
            "targets": "",  # nothing is fine-tuned
            "iterations": by_preset(paper=300, quick=300, smoke=2),
        }],
        ("sampler", "batch"), measures=("trained_on", "expected", "version"), arrange=by_modality,
        plot=Lazy(FIGURES, "DIVERSITY"),
        datasets=tuple(name for name in datasets("ucf101") if name not in WITHOUT_CATEGORIES),
    ),
)}
