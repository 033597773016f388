"""What the results page of the taxonomy says beside its tables, where that takes more than a few lines."""

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from repro.data import manifest
from repro.experiments import find
from repro.report import statistics
from repro.report.text import in_text

EARLIER = ("frozen_noise", "selected_on_test", "float32", "higher_rate", "bidirectional", "denoising")
TODAY = ("decoder_weight_2020", "both_weights_2020", "squared_differences", "squared_differences_alone",
         "released_head", "released_dictionary")
COLUMNS = {"objectives": "objectives", "changed": "what differs", "printed": "printed", "usual": "recipe",
           "ours": "changed", "linear_last": "last epoch", "n_seeds": "seeds", "version": "version"}


def changed_recipes(runs: DataFrame) -> DataFrame:
    """Every changed recipe on NW-UCLA beside the same seeds of the unchanged one, by the same version of the training.

    Those of an earlier version come from `figures/earlier`.

    Args:
        runs: stored ones, as `run.store.everything` returns them.

    Returns:
        objectives, what differs, printed, recipe (NaN where one of these seeds is not finished), changed, last epoch
        (NaN where the last one counts), seeds, version.
    """
    folder = manifest.project_root() / "figures" / "earlier"
    earlier = pd.concat(pd.read_csv(folder / f"{name}_ucla.csv") for name in EARLIER)
    usual = find("taxonomy_ucla").rows(runs, ["seed"]).set_index(["objectives", "seed"])["ours"].rename("usual")
    today = pd.concat(in_text(find(f"{name}_ucla").rows(runs, ["seed"])) for name in TODAY)
    seeds = pd.concat([earlier, today.assign(version=3).join(usual, on=["objectives", "seed"])])
    recipes = seeds.groupby(["version", "objectives", "changed"], sort=False)
    means = recipes.mean(numeric_only=True, skipna=False).assign(n_seeds=recipes.size()).reset_index()
    return means[[*COLUMNS]].rename(columns=COLUMNS)


def shuffled_as_near(ours: Series, printed: Series) -> float:
    """The share of shuffled printed columns that come as near as ours does, each without the row furthest off.

    We left out the row that is furthest off, so that a shuffled column may do so, too. Near is the root mean square.
    """
    columns = statistics.permutations(printed[ours.index].to_numpy(), np.random.default_rng(0))
    squares = (np.vstack([printed[ours.index], columns]) - ours.to_numpy()) ** 2
    rest = squares.sum(axis=1) - squares.max(axis=1)
    return float((rest[1:] <= rest[0] + statistics.ROUNDING).mean())


def apart(first: Series, second: Series, between: statistics.Deviation) -> dict[str, float]:
    """The mean of some runs minus that of others, which nothing pairs, with its standard error and p."""
    error = between.value * (1 / first.count() + 1 / second.count()) ** 0.5
    found = statistics.Estimate(first.mean() - second.mean(), error, between.df, ())
    return {"difference": found.value, "s.e.": found.error, "p": found.p()}
