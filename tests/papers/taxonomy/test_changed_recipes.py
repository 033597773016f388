"""The committed accuracies of changed recipes beside the same seeds of the unchanged one, made again from all runs."""

import pandas as pd

from repro import finished
from repro.data import manifest
from repro.recipe import in_words

FIGURES = manifest.shipped("figures")
TODAY = ("decoder_weight_2020", "both_weights_2020", "squared_differences", "squared_differences_alone",
         "released_head", "released_dictionary")
EARLIER = ("frozen_noise", "selected_on_test", "float32", "higher_rate", "bidirectional", "denoising")


def test_changed_recipes_stand_beside_the_same_seeds_of_the_recipe():
    """Those of an earlier version of the training are rows of `figures/earlier`."""
    earlier = pd.concat(pd.read_csv(FIGURES / "earlier" / f"{name}_ucla.csv") for name in EARLIER)
    runs = finished().query("dataset == 'ucla' and preset == 'paper' and layers == 1 and version == 3")
    runs = runs.assign(changed=runs["changes"].map(in_words), ours=runs["linear"])
    usual = runs[runs["changed"] == ""].set_index(["objectives", "seed"])["ours"].rename("usual")
    asked = pd.concat(pd.read_csv(FIGURES / f"{name}_ucla.csv") for name in TODAY)[["objectives", "changed", "printed"]]
    today = asked.merge(runs.drop(columns="printed", errors="ignore"), on=["objectives", "changed"])
    seeds = pd.concat([earlier, today.join(usual, on=["objectives", "seed"])])
    groups = seeds.groupby(["objectives", "changed", "version"], sort=False)
    means = groups[["printed", "usual", "ours", "linear_last"]].mean().assign(seeds=groups.size()).reset_index()
    table = pd.read_csv(FIGURES / "changed_recipes_ucla.csv")
    expected = means[["objectives", "changed", "printed", "usual", "ours", "linear_last", "seeds", "version"]]
    pd.testing.assert_frame_equal(table, expected.set_axis(table.columns, axis=1), rtol=0, atol=1e-4, check_dtype=False)
