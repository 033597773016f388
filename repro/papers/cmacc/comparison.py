"""CM-ACC's comparisons with other work, Tables 4 to 6: as printed, and with our rows inside."""

import math

import pandas as pd
from pandas import DataFrame, Series

from repro.data import manifest
from repro.recipe import choose
from repro.report.printed import printed

TARGETS = {4: ("UCF101", "HMDB51"), 5: ("ESC50",), 6: ("UCF101", "HMDB51", "ESC50")}  # by number of the table
NAMES = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}  # of targets, as printed
SETS = {  # what was pre-trained on, as printed
    "kinetics_sound": "Kinetics-Sound",
    "kinetics700": "Kinetics700",
    "audioset": "AudioSet",
    "ucf101": "UCF101",
    "hmdb51": "HMDB51",
    "esc50": "ESC50",
}
TRUNKS = {"r3d18": "3D-ResNet18", "r2plus1d18": "R(2+1)D-18"}
METHODS = {"scratch": "Scratch", "supervised": "Supervised", "smoco": "SMoCo", "xmoco": "XMoCo", "cmacc": "CM-ACC"}
PRINTED = {"Ours": "CM-ACC", "Kine.-Sound": "Kinetics-Sound"}  # what the three tables call differently
FIRST_SPLIT = "Table 1"  # whose numbers are no means over splits
SIZES = {240_000: "240K"}  # of a random draw of clips, as printed
DRAWN = ("Kinetics700",)  # sets that the paper never used whole
SOUND = "ResNet-18"  # the encoder of sound, one-dimensional, whatever that of video is
NOWHERE = "-"  # the pre-training set of an encoder trained from scratch, as printed


def comparison(number: int) -> DataFrame:
    """The rows of a printed comparison, in the printed order.

    Returns:
        method, architecture (not in Table 6), pretrain_set, pretrain_size ("240K", or ""), a column of accuracies in
        percent for every target, and source: "printed", in Table 6 with what the paper says of the row's origin.

    Raises:
        ValueError: if there is no such comparison.
    """
    targets = TARGETS[choose("number", number, TARGETS)]
    rows = printed(f"cmacc_table{number}").rename(
        columns={"approach": "method", "dataset": "pretrain_set", "size": "pretrain_size"}
    )
    rows = rows.replace({"method": PRINTED, "pretrain_set": PRINTED}).fillna({"pretrain_size": ""})
    rows["source"] = "printed" + (": " + rows["source"] if "source" in rows else "")
    columns = [name for name in ("method", "architecture", "pretrain_set", "pretrain_size") if name in rows]
    return rows[[*columns, *targets, "source"]]


def accuracies(method: str, dataset: str, trunk: str, clips: int, target: str) -> dict[str, float]:
    """What the paper prints for an encoder fine-tuned on a target, by the tables that print it, percent.

    Args:
        method: "scratch", "supervised", "smoco", "xmoco" or "cmacc".
        dataset: pre-trained on, "kinetics700"; the label of a part of one answers to nothing printed.
        trunk: of video, "r3d18" or "r2plus1d18".
        clips: how many were drawn from the data set, 0 for all.
        target: "ucf101", "hmdb51" or "esc50".

    Returns:
        Tables 4 and 5 first, which tell encoders apart, then Table 6, then Table 1, of the first split and
        Kinetics-Sound alone; tables that repeat the number of one before are left out.
    """
    column = NAMES.get(target)
    if column is None or dataset not in SETS or method not in METHODS:
        return {}
    name, found = METHODS[method], {}
    for number in (5 if column == "ESC50" else 4, 6):
        rows = comparison(number)
        rows = rows[(rows["method"] == name) & (rows["pretrain_set"] == pretrained_on(method, dataset))]
        if number == 4:
            rows = rows[rows["architecture"] == TRUNKS.get(trunk)]
        rows = rows[_of_size(rows, clips)].dropna(subset=column)
        if len(rows) and (number != 6 or trunk == "r3d18" or column == "ESC50"):
            found[f"Table {number}"] = float(rows[column].iloc[-1])
    if trunk == "r3d18" and pretrained_on(method, dataset) in (NOWHERE, SETS["kinetics_sound"]):
        found[FIRST_SPLIT] = float(printed("cmacc_table1").set_index("approach")[column].get(name, math.nan))
    return {table: value for table, value in _distinct(found).items() if not math.isnan(value)}


def pretrained_on(method: str, dataset: str) -> str:
    """What a method of ours was pre-trained on, as the printed tables call it."""
    return NOWHERE if method == "scratch" else SETS.get(manifest.plain(dataset), dataset)


def _of_size(rows: DataFrame, clips: int) -> Series:
    """Which rows of one pre-training set are of so many clips: of 0, all, those of the largest size."""
    if rows["pretrain_set"].isin([NOWHERE]).any() or rows.empty:
        return Series(True, index=rows.index)
    if clips:
        return rows["pretrain_size"] == SIZES.get(clips)
    largest = rows["pretrain_size"] == rows["pretrain_size"].iloc[-1]
    return largest & ~rows["pretrain_set"].isin(DRAWN)


def _distinct(found: dict[str, float]) -> dict[str, float]:
    """Without the values that an earlier table has."""
    return {table: value for table, value in found.items() if value not in [*found.values()][: [*found].index(table)]}


def merged(number: int, table: DataFrame | None = None) -> DataFrame:
    """A printed comparison, rows of one pre-training set next to one another, ours last among them.

    Args:
        number: 4 (actions), 5 (sounds) or 6 (the size of what is pre-trained on).
        table: of `repro.run_table("transfer")`; None for the printed rows alone. Rows of embedded data stay out: no
            printed number belongs to them. Of single splits the mean is shown, unless there is one of all splits.

    Returns:
        As `comparison`; in our rows, pretrain_size is the number of clips trained on and source says where they come
        from.

    Raises:
        ValueError: if there is no such comparison.
    """
    rows = comparison(number)
    if table is not None and not manifest.embedded(table["dataset"].iloc[0]):
        ours = _ours(table, number).reindex(columns=rows.columns).dropna(subset=list(TARGETS[number]), how="all")
        rows = pd.concat([rows, ours]) if len(ours) else rows
    order = {name: place for place, name in enumerate(dict.fromkeys([NOWHERE, *rows["pretrain_set"]]))}
    return rows.sort_values("pretrain_set", key=lambda names: names.map(order), kind="stable", ignore_index=True)


def _ours(table: DataFrame, number: int) -> DataFrame:
    """One row per method, encoder of video and departure from the preset."""
    table = table[table["target"].map(NAMES).isin(TARGETS[number])]
    from repro.report.style import departures_in_words, words  # it draws, which tables do without

    departures = table.get("departures", Series("", table.index)).map(words)
    rows = []
    for (method, trunk, _), found in table.groupby(["method", "video_trunk", departures], sort=False):
        found = _over_splits(found)
        dataset, preset = found["dataset"].iloc[0], found["preset"].iloc[0]
        splits = sorted(set(found["split"]))
        where = "mean of all splits" if splits == [0] else f"split {', '.join(map(str, splits))}"
        where = ", ".join([where, *departures_in_words(found)])
        row = {
            "method": METHODS.get(method, method),
            "architecture": SOUND if number == 5 else TRUNKS.get(trunk, trunk),
            "pretrain_set": pretrained_on(method, dataset),
            "pretrain_size": _in_words(found["trained_on"]),
            "source": f"here: {dataset}, {preset} recipe, {where}, seeds: {found['n_seeds'].max()}",
        }
        means = found.groupby("target")["ours"].mean()
        rows.append(row | {NAMES[target]: value for target, value in means.items()})
    return DataFrame(rows)


def _over_splits(found: DataFrame) -> DataFrame:
    """The rows of every target over all splits, split 0; of a target that has none, those of its splits."""
    whole = (found["split"] == 0).groupby(found["target"]).transform("any")
    return found[(found["split"] == 0) | ~whole]


def _in_words(clips: Series) -> str:
    """How many clips were trained on: "21,903", of splits of several sizes "9,537 to 9,624", and nothing of none."""
    return " to ".join(f"{count:,.0f}" for count in sorted({clips.min(), clips.max()}) if count)
