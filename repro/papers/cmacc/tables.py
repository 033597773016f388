"""CM-ACC's tables: which recipes they compare, the printed number of each, and Tables 4 to 6."""

import math
from typing import Any

import pandas as pd
from pandas import DataFrame, Series

from repro.audiovisual import CHARACTERS, MODALITIES
from repro.audiovisual.recipe import CLIPS, METHODS, QUICK, SELF_SUPERVISED, TARGETS
from repro.audiovisual.splits import DATASETS
from repro.data import manifest
from repro.recipe import choose
from repro.report.printed import printed
from repro.table import FROM_PRESET, Table, by_preset

ON_GRIDS = "characters"  # the target of recipes of grids of characters, which linear probes read
PROBED = {ON_GRIDS: "linear", "unseen": "linear_held_out"}  # targets of their tables, with what probes measure
FEATURES = "CM-ACC, feature embedding"  # of Table 2; the other approaches are Table 1's
DEPARTING = {  # data sets and targets that are not quite the paper's, with what a reader should know
    "kinetics_sound": "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700",
    "esc10": "classified among all 50 classes",
}
WITHOUT_CATEGORIES = ("audioset", "esc50")  # here; or without pictures
MEASURES = ("trained_on",)

# As printed: samplers, targets, what was pre-trained on, encoders of video, methods; what the three comparisons call
# differently; sizes of random draws of clips, and the sets never used whole.
PRINTED_SAMPLERS = {"random": "Random", "ohem": "OHEM", "gradient": "Active"}
NAMES = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}
SETS = {"kinetics_sound": "Kinetics-Sound", "kinetics700": "Kinetics700", "audioset": "AudioSet", **NAMES}
ENCODERS = {"r3d18": "3D-ResNet18", "r2plus1d18": "R(2+1)D-18"}
PRINTED_METHODS = dict(zip(METHODS, ("Scratch", "Supervised", "SMoCo", "XMoCo", "CM-ACC"), strict=True))
CALLED = {"Ours": "CM-ACC", "Kine.-Sound": "Kinetics-Sound"}
SIZES, DRAWN = {240_000: "240K"}, ("Kinetics700",)
NOWHERE = "-"  # the pre-training set of an encoder trained from scratch
FIRST_SPLIT = "Table 1"  # whose numbers are no means over splits
COMPARISONS = {4: ("UCF101", "HMDB51"), 5: ("ESC50",), 6: ("UCF101", "HMDB51", "ESC50")}  # targets, by number


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

    Of grids of characters, which probes read, the targets are new pairs ("characters") and drawings never seen
    ("unseen").

    Recipes that differ in the list of their targets alone fine-tune one encoder: each target of it is of the first.
    """
    asked = [[*PROBED] if targets == ON_GRIDS else [*filter(None, targets.split(","))] for targets in cells["targets"]]
    rows = cells.assign(target=asked, encoder=_encoders(cells, "targets"))
    rows = rows.explode("target", ignore_index=True).dropna(subset="target")
    rows = rows.assign(value=[row[PROBED.get(row["target"], row["target"])] for row in rows.to_dict("records")])
    rows = rows.drop_duplicates(["encoder", "seed", "target"]).astype({"trained_on": int})
    first = rows.groupby(["encoder", "target"])["recipe_number"].transform("min")
    return with_notes(rows.drop(columns="encoder").assign(recipe_number=first))


def _encoders(cells: DataFrame, *judged_by: str) -> Series:
    """A text for every cell that is the same where recipes differ in how their encoders are judged alone."""
    fields = [name for name in CLIPS.fields if name not in judged_by and name in cells]
    return cells[fields].astype(str).agg(", ".join, axis="columns") if len(cells) else Series(dtype=str)


def over_splits(cells: DataFrame) -> DataFrame:
    """The rows of `by_target`. Where a seed has all splits of a target, their mean alone stands for them, as split 0.

    Every split has an encoder of its own. Of a target with one split, that is the mean.

    `printed_in` is the table that `printed_transfer` is of, and tables that contradict it: "Table 5 (Table 6: 79.2)".
    """
    rows = by_target(cells)
    encoders = _encoders(rows, "targets", "split")
    alike = rows.groupby([encoders, rows["seed"], rows["target"]], sort=False).ngroup()
    official = rows["target"].map({name: len(target.splits) for name, target in TARGETS.items()})  # none of characters
    single = rows["split"].where(rows["split"] > 0)
    whole = single.notna() & (single.groupby(alike).transform("nunique") == official)
    means = rows[["value", "trained_on"]].where(whole).groupby(alike).transform("mean")
    rows = rows.assign(split=rows["split"].where(~whole, 0), value=rows["value"].where(~whole, means["value"]),
                       trained_on=rows["trained_on"].where(~whole, means["trained_on"]).round().astype(int))
    rows = rows[~DataFrame({"encoder": alike, "split": rows["split"]}).duplicated()]
    first = rows.groupby([encoders, rows["target"], rows["split"]])["recipe_number"].transform("min")
    rows = rows.assign(recipe_number=first)
    return rows.assign(printed_in=[printed_in(row) for row in rows.itertuples()])


def by_modality(cells: DataFrame) -> DataFrame:
    """A row for every cell and modality of the candidates, the number of their categories as `value`."""
    parts = [cells.assign(target=name, value=cells[f"categories_{name}"]) for name in MODALITIES]
    rows = pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)
    return with_notes(rows.astype({"trained_on": int}))


def with_notes(rows: DataFrame) -> DataFrame:
    """Rows whose departures name, as "data", data sets and targets that are not quite the paper's."""
    departures = []
    for row in rows.itertuples():
        seen = () if row.method == "scratch" else (manifest.plain(row.dataset),)
        note = "; ".join(DEPARTING[name] for name in (*seen, row.target) if name in DEPARTING)
        departures.append({**row.departures, "data": note} if note else row.departures)
    return rows.assign(departures=Series(departures, index=rows.index, dtype=object))


def printed_approach(row: Any) -> float:
    """Of Tables 1 and 2, which are on Kinetics-Sound and the first split."""
    if row.dataset != "kinetics_sound" or row.departures.keys() & {"extra_layer", "sampler"}:
        return math.nan
    if row.approach == FEATURES:
        return _number("cmacc_table2", "embedding_space", "Feature Embedding", NAMES.get(row.target))
    return _number("cmacc_table1", "approach", row.approach, NAMES.get(row.target))


def printed_sampler(row: Any) -> float:
    """Of Table 3, which is on Kinetics-700."""
    if row.dataset != "kinetics700":
        return math.nan
    column = f"{NAMES.get(row.target)}_M{row.batch}"
    return _number("cmacc_table3", "sampler", PRINTED_SAMPLERS.get(row.sampler), column)


def _number(table: str, key: str, value: str | None, column: str | None) -> float:
    """One printed number, NaN if there is no such row or column."""
    rows = printed(table).set_index(key)
    return float(rows.loc[value, column]) if value in rows.index and column in rows.columns else math.nan


def printed_transfer(row: Any) -> float:
    """Of Tables 4 to 6, which are means over splits; of a data set used in several sizes that of the row's."""
    return next((value for table, value in _printed_of(row).items() if table != FIRST_SPLIT), math.nan)


def printed_in(row: Any) -> str:
    """See `over_splits`."""
    values = _printed_of(row)
    usual, *others = values or [FIRST_SPLIT]
    return "" if usual == FIRST_SPLIT else usual + "".join(f" ({table}: {values[table]:g})" for table in others)


def _printed_of(row: Any) -> dict[str, float]:
    """What the paper prints for a row's encoder, by table, if the row is of all splits; no number twice.

    Tables 4 and 5 first, which tell encoders apart, then Table 6; Table 1 is of the first split and Kinetics-Sound.
    """
    column, known = NAMES.get(row.target), {}
    if row.split != 0 or column is None or row.dataset not in SETS:  # bundled, or a part of a set
        return {}
    name, trained_on = PRINTED_METHODS[row.method], pretrained_on(row.method, row.dataset)
    for number in (5 if column == "ESC50" else 4, 6):
        rows = merged(number)
        rows = rows[(rows["method"] == name) & (rows["pretrain_set"] == trained_on)]
        if number == 4:
            rows = rows[rows["architecture"] == ENCODERS.get(row.video_trunk)]
        if trained_on != NOWHERE and row.clips:
            rows = rows[rows["pretrain_size"] == SIZES.get(row.clips)]
        elif trained_on != NOWHERE and len(rows):  # all clips: the largest size, listed last
            largest = rows["pretrain_size"] == rows["pretrain_size"].iloc[-1]
            rows = rows[largest & ~rows["pretrain_set"].isin(DRAWN)]
        rows = rows.dropna(subset=column)
        if len(rows) and (number != 6 or row.video_trunk == "r3d18" or column == "ESC50"):
            known[f"Table {number}"] = float(rows[column].iloc[-1])
    if row.video_trunk == "r3d18" and trained_on in (NOWHERE, SETS["kinetics_sound"]):
        known[FIRST_SPLIT] = _number("cmacc_table1", "approach", name, column)
    return Series(known, dtype=float).dropna().drop_duplicates().to_dict()


def merged(number: int) -> DataFrame:
    """The rows of a printed comparison, 4 (actions), 5 (sounds) or 6 (sizes of pre-training sets).

    Returns:
        method, architecture (not in Table 6), pretrain_set, pretrain_size ("240K", or ""), a column of accuracies in
        percent for every target, and source: "printed", in Table 6 with what the paper says of the row's origin. Rows
        of one pre-training set are next to one another.

    Raises:
        ValueError: if there is no such comparison.
    """
    targets = COMPARISONS[choose("number", number, COMPARISONS)]
    rows = printed(f"cmacc_table{number}").rename(
        columns={"approach": "method", "dataset": "pretrain_set", "size": "pretrain_size"}
    )
    rows = rows.replace({"method": CALLED, "pretrain_set": CALLED}).fillna({"pretrain_size": ""})
    rows["source"] = "printed" + (": " + rows["source"] if "source" in rows else "")
    columns = [name for name in ("method", "architecture", "pretrain_set", "pretrain_size") if name in rows]
    order = list(dict.fromkeys([NOWHERE, *rows["pretrain_set"]]))
    rows = rows[[*columns, *targets, "source"]]
    return rows.sort_values("pretrain_set", key=lambda names: names.map(order.index), kind="stable", ignore_index=True)


def pretrained_on(method: str, dataset: str) -> str:
    """What a method of ours was pre-trained on, as the printed tables call it."""
    return NOWHERE if method == "scratch" else SETS.get(manifest.plain(dataset), dataset)


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
            FEATURES: {"method": "cmacc", "sampler": "feature"},
            "CM-ACC": {"method": "cmacc"},
        }.items()],
        ("approach",), usual="kinetics_sound", printed=printed_approach,
    ),
    _table(
        "ohem_vs_active", "Random, least confident (OHEM) and active negatives, by the number selected in a step",
        "Table 3",
        [{"method": "cmacc", "sampler": ("random", "ohem", "gradient"), "batch": batches, "targets": FROM_PRESET}],
        ("sampler", "batch"), printed=printed_sampler,
    ),
    _table(
        "dictionary_size", "SMoCo, XMoCo and CM-ACC by the size of the dictionary",
        "Fig. 3b, whose values are not printed",
        [{"method": SELF_SUPERVISED, "dictionary": dictionaries, "targets": FROM_PRESET}],
        ("method", "dictionary"),
    ),
    _table(
        "mutual_information", "Characters read from grids, by their number, which is the information pairs share",
        "Fig. 3a, whose values are not printed",
        [{"method": SELF_SUPERVISED,
          "characters": by_preset(paper=tuple(range(1, 10)), quick=tuple(range(1, 10)), smoke=(2,))}],
        ("method", "characters"), datasets=CHARACTERS, methods=METHODS,
    ),
    _table(
        "transfer", "Encoders fine-tuned elsewhere, every official split or fold", "Tables 4 to 6",
        [{"method": ("cmacc",), "video_trunk": FROM_PRESET, "split": (0,), "targets": FROM_PRESET}],
        ("method", "video_trunk", "split"), methods=METHODS, printed=printed_transfer,
        measures=(*MEASURES, "printed_in"), arrange=over_splits,
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
        datasets=tuple(name for name in datasets("ucf101") if name not in WITHOUT_CATEGORIES),
    ),
)}
