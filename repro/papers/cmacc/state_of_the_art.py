"""CM-ACC's comparisons with other work, Tables 4 to 6, with our rows inside, by what was pre-trained on."""

import pandas as pd
from pandas import DataFrame, Series

from repro.data import manifest
from repro.papers.cmacc.comparison import METHODS, NAMES, NOWHERE, TARGETS, TRUNKS, comparison, pretrained_on
from repro.report.elements import departures_in_words, words

SOUND = "ResNet-18"  # the encoder of sound, one-dimensional, whatever that of video is


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
