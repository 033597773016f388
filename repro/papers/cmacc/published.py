"""What CM-ACC prints: the number of a row of ours, and Tables 4 to 6 as they stand."""

import math
from typing import Any

from pandas import DataFrame, Series

from repro.audiovisual.recipe import METHODS
from repro.data import manifest
from repro.recipe import choose
from repro.report.printed import printed

FEATURES = "CM-ACC, feature embedding"  # of Table 2; the other approaches are Table 1's

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
