"""Figures of images: accuracies by temperature, and histograms."""

import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible
from pandas import DataFrame

from repro.papers.jcl import figures as jcl
from repro.papers.sce import figures as sce
from repro.report.printed import printed

NAN = np.nan


def grid_table(dataset="cifar10") -> DataFrame:
    """The printed grid of CIFAR-10 with made-up values of ours."""
    table = printed("sce_temperature_long").query("dataset == 'CIFAR10'")
    rows = DataFrame({"method": "sce", "temperature": table["tau"], "key_temperature": table["tau_m"]})
    rows = rows.assign(ours=table["top1"] - 3, printed=table["top1"])
    ressl = DataFrame({"method": "ressl", "temperature": 0.1, "key_temperature": [0.04, 0.05, 0.1]})
    rows = pd.concat([rows, ressl.assign(ours=[88.0, 87.0, 20.0], printed=NAN)], ignore_index=True)
    return rows.assign(std=0.25, n_seeds=3, preset="paper", dataset=dataset).sample(frac=1, random_state=0)


def agreement_table(images=1000, d=512) -> DataFrame:
    generator = np.random.default_rng(0)
    models = [generator.beta(30, 3, images), generator.beta(20, 5, images)]
    table = DataFrame({"model": np.repeat(["JCL", "MoCo v2"], images), "similarity": np.concatenate(models)})
    return table.assign(d=d, seed=np.tile(np.arange(2), images), preset="quick", dataset="cifar10 (mine.npz)")


def test_grid_shows_every_value():
    table = grid_table()
    found = sce.TEMPERATURE_GRID.data(table).sort_values("x").groupby(["unit", "line"])["value"].agg(list).to_dict()
    expected = printed("sce_temperature").query("dataset == 'CIFAR10'").set_index("tau").drop(columns="dataset")
    assert found.pop(("accuracy, ours (%)", r"ReSSL, $\tau$ = 0.1")) == [88.0, 87.0, 20.0]
    assert len(found) == 4
    for tau, values in expected.iterrows():
        line = rf"SCE, $\tau$ = {tau}"
        assert found["accuracy, ours (%)", line] == pytest.approx(list(values - 3))
        assert found["accuracy, printed (%)", line] == list(values)
    assert_legible(sce.TEMPERATURE_GRID(table))
    unprinted = sce.TEMPERATURE_GRID.data(grid_table("digits").assign(printed=NAN))
    assert unprinted["unit"].unique().tolist() == ["accuracy, ours (%)"]


def test_the_terms_of_the_objective_add_up_to_the_loss():
    rows = DataFrame({"epoch": [1, 2], "InfoNCE": [6.0, 4.0], "ReSSL": [3.0, 2.0], "Ceil": [0.5, 0.25], "weight": 0.5,
                      "loss": [4.75, 3.625], "seed": 0, "dataset": "cifar10", "preset": "quick"})
    rest = sce.terms(rows).query("term == 'rest'")
    assert rest["nats"].tolist() == [0.0, 0.5]


def test_histograms_have_a_line_at_the_medians():
    table = agreement_table()
    figure = jcl.similarity_variance(table)
    medians = table.groupby("model")["similarity"].median()
    np.testing.assert_allclose(
        [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"], medians)
    assert [text.get_text().split(", median")[0] for text in figure.legends[0].get_texts()] == [
        "JCL, 1,000 images", "MoCo v2, 1,000 images"]
    assert_legible(figure)
    with pytest.raises(ValueError, match=r"one d; this table has \[128, 512\]"):
        jcl.similarity_variance(pd.concat([agreement_table(), agreement_table(d=128)]))


def test_means_of_draws_have_their_standard_errors():
    rows = DataFrame({"inside": [2.0], "outside": [3.0], "inside_std": [0.6], "outside_std": [0.9], "repeats": [9]})
    drawn = jcl.means_of_draws(rows)
    assert drawn["nats"].tolist() == [2.0, 3.0] and drawn["std"].tolist() == pytest.approx([0.2, 0.3])
