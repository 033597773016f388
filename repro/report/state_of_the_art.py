"""CM-ACC's comparisons with other work, Tables 4 to 6, with our rows inside, by what was pre-trained on."""

import pandas as pd
from pandas import DataFrame

from repro import manifest
from repro.recipe import choose
from repro.report.elements import departures
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
SOUND = "ResNet-18"  # the encoder of sound, one-dimensional, whatever that of video is
METHODS = {"scratch": "Scratch", "supervised": "Supervised", "smoco": "SMoCo", "xmoco": "XMoCo", "cmacc": "CM-ACC"}
PRINTED = {"Ours": "CM-ACC", "Kine.-Sound": "Kinetics-Sound"}  # what the three tables call differently
COLUMNS = ["method", "architecture", "pretrain_set", "pretrain_size"]
NOWHERE = "-"  # the pre-training set of an encoder trained from scratch, as printed


def merged(number: int, table: DataFrame | None = None) -> DataFrame:
    """A printed comparison, rows of one pre-training set next to one another, ours last among them.

    Args:
        number: 4 (actions), 5 (sounds) or 6 (the size of what is pre-trained on).
        table: of `audiovisual.tables.transfer`; None for the printed rows alone. Rows of embedded data stay out: no
            printed number belongs to them. Of several splits the mean is shown.

    Returns:
        method, architecture (not in Table 6), pretrain_set, pretrain_size, a column of accuracies in percent for every
        target, and source: "printed", or where ours come from.

    Raises:
        ValueError: if there is no such comparison.
    """
    targets = list(TARGETS[choose("number", number, TARGETS)])
    rows = printed(f"cmacc_table{number}").rename(
        columns={"approach": "method", "dataset": "pretrain_set", "size": "pretrain_size"}
    )
    rows = rows.replace({"method": PRINTED, "pretrain_set": PRINTED}).fillna({"pretrain_size": ""})
    rows["source"] = "printed"
    columns = [name for name in COLUMNS if name in rows]
    rows = rows[[*columns, *targets, "source"]]
    if table is not None and not manifest.embedded(table["dataset"].iloc[0]):
        ours = _ours(table, number).reindex(columns=rows.columns).dropna(subset=targets, how="all")
        rows = pd.concat([rows, ours]) if len(ours) else rows
    order = {name: place for place, name in enumerate(dict.fromkeys([NOWHERE, *rows["pretrain_set"]]))}
    return rows.sort_values("pretrain_set", key=lambda names: names.map(order), kind="stable", ignore_index=True)


def _ours(table: DataFrame, number: int) -> DataFrame:
    """One row per method and encoder of video."""
    rows = []
    for (method, trunk), found in table.groupby(["method", "video_trunk"], sort=False):
        dataset, preset = found["dataset"].iloc[0], found["preset"].iloc[0]
        splits = sorted(set(found["split"]))
        where = "mean of all splits" if splits == [0] else f"split {', '.join(map(str, splits))}"
        where = ", ".join([where, *departures(found)])
        row = {
            "method": METHODS.get(method, method),
            "architecture": SOUND if number == 5 else TRUNKS.get(trunk, trunk),
            "pretrain_set": pretrained_on(method, dataset),
            "pretrain_size": "",
            "source": f"here: {dataset}, {preset} recipe, {where}, seeds: {found['n_seeds'].max()}",
        }
        means = found.groupby("target")["ours"].mean()
        rows.append(row | {NAMES[target]: value for target, value in means.items() if target in NAMES})
    return DataFrame(rows)


def pretrained_on(method: str, dataset: str) -> str:
    """What a method of ours was pre-trained on, as the printed tables call it."""
    return NOWHERE if method == "scratch" else SETS.get(manifest.plain(dataset), dataset)
