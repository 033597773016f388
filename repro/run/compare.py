"""Our numbers beside the printed ones."""

import numpy as np
from pandas import DataFrame, Series

from repro import manifest


def beside(entries: DataFrame, results: DataFrame, published: Series | None, *, preset: str, dataset: str) -> DataFrame:
    """One row per entry: its own columns, then ours, std, n_seeds, published, difference, preset and dataset.

    Args:
        entries: the printed table's layout; the index names the entries. A column `departures` says what departs from
            the preset, "" where nothing does.
        results: one row per finished cell, with columns entry, seed and value (percent).
        published: printed values (percent) by entry; entries it lacks get NaN. None where nothing may be compared,
            as on embedded data.
        preset: the recipes behind the results: paper, quick or smoke.
        dataset: name of the data behind the results.

    Returns:
        ours: mean over seeds, NaN without results; std: sample standard deviation over seeds (divisor n - 1), NaN
        below two seeds; difference: ours - published, NaN where these are not comparable: on a part of the data or a
        copy, with another preset than the paper's, and where an entry departs from it. All in percent.

    Raises:
        ValueError: if a seed of an entry appears twice, or a result belongs to no entry.
    """
    cells = results[["entry", "seed"]]
    if cells.duplicated().any():
        repeated = cells[cells.duplicated()].iloc[0]
        raise ValueError(f"entry {repeated.entry!r} has more than one result for seed {repeated.seed}")
    strangers = set(results["entry"]) - set(entries.index)
    if strangers:
        raise ValueError(f"results for {sorted(strangers)}, which are not among the entries {list(entries.index)}")

    values = results.astype({"value": float}).groupby("entry")["value"]
    ours = values.mean().reindex(entries.index)
    printed = np.nan if published is None else published.reindex(entries.index)
    comparable = Series(preset == "paper" and dataset == manifest.plain(dataset), index=entries.index)
    if "departures" in entries:
        comparable &= entries["departures"] == ""
    return entries.assign(
        ours=ours,
        std=values.std(ddof=1).reindex(entries.index),
        n_seeds=values.count().reindex(entries.index, fill_value=0),
        published=printed,
        difference=(ours - printed).where(comparable),
        preset=preset,
        dataset=dataset,
    )
