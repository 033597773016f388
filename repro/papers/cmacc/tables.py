"""CM-ACC's tables: which recipes they compare, and the printed number of each."""

import math
from typing import Any

import pandas as pd
from pandas import DataFrame, Series

from repro.audiovisual import CHARACTERS, MODALITIES
from repro.audiovisual.data import DATASETS
from repro.audiovisual.recipe import METHODS, QUICK, SELF_SUPERVISED, TARGETS
from repro.audiovisual.study import CLIPS
from repro.data import manifest
from repro.papers.cmacc.comparison import FIRST_SPLIT, NAMES, accuracies
from repro.report.printed import printed
from repro.table import AS_PRESET, Table, by_preset

ON_GRIDS = "characters"  # the target of grids of characters, read by linear probes
FEATURES = "CM-ACC, feature embedding"  # of Table 2; the other approaches are Table 1's
PRINTED_SAMPLERS = {"random": "Random", "ohem": "OHEM", "gradient": "Active"}
DEPARTING = {  # data sets and targets that are not quite the paper's, with what a reader should know
    "kinetics_sound": "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700",
    "esc10": "classified among all 50 classes",
}
WITHOUT_CATEGORIES = ("audioset", "esc50")  # here; or without pictures
MEASURES = ("trained_on", "linear_held_out")


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


def by_target(cells: DataFrame) -> DataFrame:
    """A row for every cell and target, the accuracy there as `value`; see also `with_notes`.

    Cells that differ in the list of their targets alone fine-tune the same encoder: they count once.
    """
    rows = cells.assign(target=cells["targets"].str.split(",")).explode("target", ignore_index=True)
    rows = rows[rows["target"] != ""]
    accuracies = [row["linear" if row["target"] == ON_GRIDS else row["target"]] for row in rows.to_dict("records")]
    encoders = rows["changes"].map(lambda changes: str({**changes, "targets": ""}))
    rows = rows.assign(value=accuracies)[~_alike(rows, "method", "version", "seed", "target", encoders).duplicated()]
    rows = rows.astype({"trained_on": int})
    if "linear_held_out" in rows and rows["linear_held_out"].isna().all():  # of no grids
        rows = rows.drop(columns="linear_held_out")
    return with_notes(rows)


def over_splits(cells: DataFrame) -> DataFrame:
    """The rows of `by_target`; where a seed has every split of a target, an encoder each, their mean alone, as split 0.

    Of a target with one split that is it.

    `printed_in` is the table that `printed_transfer` is of, and tables that contradict it: "Table 5 (Table 6: 79.2)".
    """
    rows = by_target(cells)
    alike = _alike(rows, "method", "video_trunk", "version", "seed", "target", rows["departures"].map(str))
    official = rows["target"].map({name: len(target.splits) for name, target in TARGETS.items()})  # none of characters
    single = rows["split"] > 0
    whole = single & (rows["split"].where(single).groupby(alike).transform("nunique") == official)
    means = rows[["value", "trained_on"]].where(whole).groupby(alike).transform("mean")
    rows = rows.assign(**{name: rows[name].where(~whole, means[name]) for name in means})
    rows = rows.assign(split=rows["split"].where(~whole, 0)).round({"trained_on": 0}).astype({"trained_on": int})
    rows = rows[~_alike(rows, "split", alike).duplicated()]
    return rows.assign(printed_in=[printed_in(row) for row in rows.itertuples()])


def by_modality(cells: DataFrame) -> DataFrame:
    """A row for every cell and modality of the candidates, the number of their categories as `value`."""
    parts = [cells.assign(target=name, value=cells[f"categories_{name}"]) for name in MODALITIES]
    rows = pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)
    return with_notes(rows.astype({"trained_on": int}))


def with_notes(rows: DataFrame) -> DataFrame:
    """Rows whose departures say, as "data", what data set and target are that are not quite the paper's."""
    departures = []
    for row in rows.itertuples():
        seen = () if row.method == "scratch" else (manifest.plain(row.dataset),)
        note = "; ".join(DEPARTING[name] for name in (*seen, row.target) if name in DEPARTING)
        departures.append({**row.departures, "data": note} if note else row.departures)
    return rows.assign(departures=Series(departures, index=rows.index, dtype=object))


def _alike(rows: DataFrame, *what: str | Series) -> Series:
    """A text for each row, equal where these columns are."""
    columns = [rows[column] if isinstance(column, str) else column for column in what]
    return Series([str(values) for values in zip(*columns, strict=True)], index=rows.index, dtype=object)


def printed_approach(row: Any) -> float:
    """Of Tables 1 and 2, which are on Kinetics-Sound and the first split."""
    if row.dataset != "kinetics_sound" or row.departures.keys() & {"extra_layer", "sampler"}:
        return math.nan
    if row.approach == FEATURES:
        return _number("cmacc_table2", "embedding_space", "Feature Embedding", NAMES.get(row.target))
    return _number("cmacc_table1", "approach", row.approach, NAMES.get(row.target))


def printed_sampler(row: Any) -> float:
    """Of Table 3, which is on Kinetics-700."""
    if row.dataset != "kinetics700" or row.sampler not in PRINTED_SAMPLERS:
        return math.nan
    column = f"{NAMES.get(row.target)}_M{row.batch}"
    return _number("cmacc_table3", "sampler", PRINTED_SAMPLERS[row.sampler], column)


def printed_transfer(row: Any) -> float:
    """Of Tables 4 to 6, which are means over splits; of a data set used in several sizes that of the row's."""
    return next((value for table, value in _comparable(row).items() if table != FIRST_SPLIT), math.nan)


def printed_in(row: Any) -> str:
    """See `over_splits`."""
    usual, *others = [*_comparable(row).items()] or [("", 0.0)]
    if usual[0] in ("", FIRST_SPLIT):
        return ""
    return usual[0] + "".join(f" ({table}: {value:g})" for table, value in others)


def _comparable(row: Any) -> dict[str, float]:
    """What is printed of a row's encoder, by table, if the row is of all splits."""
    if row.split != 0 or manifest.embedded(row.dataset):
        return {}
    return accuracies(row.method, row.dataset, row.video_trunk, row.clips, row.target)


def _number(table: str, key: str, value: str, column: str | None) -> float:
    """One printed number, NaN if there is no such row or column."""
    rows = printed(table).set_index(key)
    return float(rows.loc[value, column]) if value in rows.index and column in rows.columns else math.nan


TABLES = {
    "cross_modal": Table(
        name="cross_modal",
        title="Within or across modalities, with and without the extra layer and active selection",
        place="Tables 1 and 2",
        study=CLIPS,
        rows=[
            {"approach": "Scratch", "method": "scratch", "targets": AS_PRESET},
            {"approach": "Supervised", "method": "supervised", "targets": AS_PRESET},
            {"approach": "SMoCo", "method": "smoco", "targets": AS_PRESET},
            {"approach": "XMoCo (w/o fcl)", "method": "xmoco", "extra_layer": False, "targets": AS_PRESET},
            {"approach": "XMoCo", "method": "xmoco", "targets": AS_PRESET},
            {"approach": "CM-ACC (w/o fcl)", "method": "cmacc", "extra_layer": False, "targets": AS_PRESET},
            {"approach": FEATURES, "method": "cmacc", "sampler": "feature", "targets": AS_PRESET},
            {"approach": "CM-ACC", "method": "cmacc", "targets": AS_PRESET},
        ],
        datasets=datasets("kinetics_sound"),
        columns=("approach", "target"),
        printed=printed_approach,
        measures=MEASURES,
        arrange=by_target,
    ),
    "ohem_vs_active": Table(
        name="ohem_vs_active",
        title="Random, least confident (OHEM) and active negatives, by the number selected in a step",
        place="Table 3",
        study=CLIPS,
        rows=[
            {
                "method": "cmacc",
                "sampler": ("random", "ohem", "gradient"),
                "batch": batches,
                "targets": AS_PRESET,
            }
        ],
        datasets=datasets("kinetics700"),
        columns=("sampler", "batch", "target"),
        printed=printed_sampler,
        measures=MEASURES,
        arrange=by_target,
    ),
    "dictionary_size": Table(
        name="dictionary_size",
        title="SMoCo, XMoCo and CM-ACC by the size of the dictionary",
        place="Fig. 3b, whose values are not printed",
        study=CLIPS,
        rows=[{"method": SELF_SUPERVISED, "dictionary": dictionaries, "targets": AS_PRESET}],
        datasets=datasets("kinetics700"),
        columns=("method", "dictionary", "target"),
        measures=MEASURES,
        arrange=by_target,
    ),
    "mutual_information": Table(
        name="mutual_information",
        title="Characters read from grids, by their number, which is the information pairs share",
        place="Fig. 3a, whose values are not printed",
        study=CLIPS,
        rows=[
            {
                "method": SELF_SUPERVISED,
                "characters": by_preset(paper=tuple(range(1, 10)), quick=tuple(range(1, 10)), smoke=(2,)),
            }
        ],
        datasets=CHARACTERS,
        methods=METHODS,
        columns=("method", "characters", "target"),
        measures=MEASURES,
        arrange=by_target,
    ),
    "transfer": Table(
        name="transfer",
        title="Encoders fine-tuned elsewhere, every official split or fold",
        place="Tables 4 to 6",
        study=CLIPS,
        rows=[{"method": ("cmacc",), "video_trunk": AS_PRESET, "split": (0,), "targets": AS_PRESET}],
        datasets=datasets("kinetics700"),
        methods=METHODS,
        columns=("method", "video_trunk", "split", "target"),
        printed=printed_transfer,
        measures=(*MEASURES, "printed_in"),
        arrange=over_splits,
    ),
    "category_diversity": Table(
        name="category_diversity",
        title="How many categories the negatives selected in a step come from",
        place="Figs. 2 and 4",
        study=CLIPS,
        rows=[
            {
                "method": "cmacc",
                "sampler": ("random", "ohem", "feature", "gradient"),
                "batch": batches,
                "targets": "",  # nothing is fine-tuned
                "iterations": by_preset(paper=300, quick=300, smoke=2),
            }
        ],
        datasets=tuple(name for name in datasets("ucf101") if name not in WITHOUT_CATEGORIES),
        columns=("sampler", "batch", "target"),
        measures=("trained_on", "expected"),
        arrange=by_modality,
    ),
}
