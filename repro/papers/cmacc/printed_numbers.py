"""The number that CM-ACC prints for a row of ours."""

import math
from typing import Any

from repro.audiovisual.recipe import METHODS
from repro.report.printed import printed

FEATURES = "CM-ACC, feature embedding"  # of Table 2; the other approaches are Table 1's

# As printed: samplers, targets, what was pre-trained on, encoders of video, methods; what Tables 4 to 6 call
# differently; sizes of random draws of clips, and the sets never used whole.
PRINTED_SAMPLERS = {"random": "Random", "ohem": "OHEM", "gradient": "Active"}
NAMES = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}
SETS = {"kinetics_sound": "Kinetics-Sound", "kinetics700": "Kinetics700", "audioset": "AudioSet", **NAMES}
ENCODERS = {"r3d18": "3D-ResNet18", "r2plus1d18": "R(2+1)D-18"}
PRINTED_METHODS = dict(zip(METHODS, ("Scratch", "Supervised", "SMoCo", "XMoCo", "CM-ACC"), strict=True))
CALLED = {"Ours": "CM-ACC", "Kine.-Sound": "Kinetics-Sound"}
SIZES, DRAWN = {240_000: "240K"}, ("kinetics700",)
NOWHERE = "-"  # the pre-training set of an encoder trained from scratch


def printed_approach(row: Any) -> float:
    """Of Tables 1 and 2, which are on Kinetics-Sound and the first split."""
    if row.dataset != "kinetics_sound" or row.changed.keys() & {"extra_layer", "sampler"}:
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
    """Of Tables 4 and 5, which tell encoders apart, else of Table 6: means over splits, of a whole data set.

    Of a data set used in several sizes it is that of the row's number of clips, which is the largest where it has all.
    """
    column, scratch = NAMES.get(row.target), row.method == "scratch"
    if row.split != 0 or column is None or row.dataset not in SETS:  # bundled, or a part of a set
        return math.nan
    for number in (5 if column == "ESC50" else 4, 6):
        rows = printed(f"cmacc_table{number}").replace(CALLED).dropna(subset=column)
        rows = rows.rename(columns={"approach": "method", "dataset": "pretrain_set", "size": "pretrain_size"})
        trained_on = NOWHERE if scratch else SETS[row.dataset]
        rows = rows[(rows["method"] == PRINTED_METHODS[row.method]) & (rows["pretrain_set"] == trained_on)]
        if number == 4:
            rows = rows[rows["architecture"] == ENCODERS.get(row.video_trunk)]
        elif row.video_trunk != "r3d18" and column != "ESC50":
            rows = rows[:0]
        if not scratch and (row.clips or row.dataset in DRAWN):
            rows = rows[rows["pretrain_size"] == SIZES.get(row.clips)]
        if len(rows):
            return float(rows[column].iloc[-1])  # the largest size is listed last
    return math.nan
