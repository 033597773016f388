import itertools

import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible, assert_settled
from pandas import DataFrame

from repro.audiovisual.synthetic import MATERIALS, MOTIONS
from repro.papers.cmacc import figures as category_figures
from repro.papers.cmacc.figures import FIGURES as DRAWINGS

DEPARTS = "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700"


def diversity_table(n_seeds=3, preset="quick", dataset="synthetic") -> DataFrame:
    rows = [
        (sampler, batch, modality, (0.5 + 0.1 * place) * batch, np.nan, 100 * (1 - 0.99**batch))
        for place, sampler in enumerate(("random", "ohem", "feature", "gradient"))
        for batch in (32, 64, 128)
        for modality in ("video", "audio")
    ]
    columns = ["sampler", "batch", "target", "ours", "published", "expected"]
    table = DataFrame(rows, columns=columns).assign(n_seeds=n_seeds, preset=preset, dataset=dataset)
    return table.assign(std=0.8 if n_seeds > 1 else np.nan)


def curves_log(seeds=2, preset="quick", dataset="synthetic", batches=(32, 64, 128)) -> DataFrame:
    generator = np.random.default_rng(0)
    rows = [
        (sampler, batch, seed, step, 100 * (1 - 0.99**batch))
        for sampler in ("random", "ohem", "feature", "gradient")
        for batch in batches
        for seed in range(seeds)
        for step in range(5, 301, 5)
    ]
    log = DataFrame(rows, columns=["sampler", "batch", "seed", "step", "expected"])
    for place, name in enumerate(category_figures.COUNTED):
        log[name] = log["expected"] + generator.normal(log["sampler"].str.len() - 8 + place, 1.0)
    return log.assign(preset=preset, dataset=dataset)


def pretext_table(seeds=1, preset="quick", dataset="synthetic", categories=100) -> DataFrame:
    generator = np.random.default_rng(0)
    names = [f"{motion}, {material}" for motion in MOTIONS for material in MATERIALS][:categories]
    rows = [
        (query, name, 20, generator.uniform(0, 100), generator.uniform(0, 100), "cmacc", seed)
        for seed in range(seeds) for query in ("video", "audio") for name in names
    ]
    columns = ["query", "category", "pairs", "accuracy", "accuracy_renewed", "method", "seed"]
    return DataFrame(rows, columns=columns).assign(preset=preset, dataset=dataset)


TABLES = {
    "category_diversity": diversity_table, "category_curves": curves_log, "pretext_accuracy": pretext_table
}
FIGURES = {
    "category_diversity": [
        diversity_table(),
        diversity_table(1, "paper", "ucf101"),
        diversity_table().query("sampler == 'gradient' and batch == 64 and target == 'audio'"),
    ],
    "category_curves": [
        curves_log(), curves_log(1, "paper", "ucf101"), curves_log(batches=(128,)), curves_log().query("step == 5"),
        curves_log(preset="paper", dataset="kinetics_sound").assign(departures=f"own_excluded=False; {DEPARTS}"),
    ],
    "pretext_accuracy": [
        pretext_table(),
        pretext_table(3, "paper", "kinetics700"),
        pretext_table(categories=7),
        pretext_table().assign(category=lambda table: "throwing ball (not baseball or " + table["category"]),
        pretext_table(categories=12).query("query == 'audio'"),
    ],
}


@pytest.mark.parametrize(
    ("name", "table"), [(name, table) for name, tables in FIGURES.items() for table in tables],
    ids=[f"{name}-{i}" for name, tables in FIGURES.items() for i in range(len(tables))],
)
def test_no_text_overlaps_or_leaves_the_figure(name, table):
    assert_legible(getattr(category_figures, name)(table))


@pytest.mark.parametrize("name", TABLES)
def test_the_reader_s_settings_change_nothing_and_the_table_stays_as_it_was(name, tmp_path):
    assert_settled(getattr(category_figures, name), TABLES[name](), tmp_path)


def test_every_figure_has_a_caption():
    assert set(DRAWINGS) >= set(TABLES)


@pytest.mark.parametrize(("name", "make"), TABLES.items())
def test_titles_say_where_the_numbers_come_from_and_mixed_tables_are_refused(name, make):
    draw = getattr(category_figures, name)
    assert "embedded data" in draw(make()).get_suptitle()
    assert draw(make(1, "paper", "ucf101")).get_suptitle().startswith("ucf101, paper recipe")
    with pytest.raises(ValueError, match="one preset"):
        draw(pd.concat([make(), make(preset="smoke")]))


@pytest.mark.parametrize("name", ["category_diversity", "category_curves"])
def test_titles_tell_what_departs_from_the_preset(name):
    draw, table = getattr(category_figures, name), TABLES[name](1, "quick", "ucf101")
    assert "iterations" not in draw(table.assign(departures="")).get_suptitle()
    departing = table.assign(departures=["iterations=10" if batch == 32 else "" for batch in table["batch"]])
    assert draw(departing).get_suptitle().splitlines() == [
        "ucf101, 1 seed", "iterations=10", "quick recipe: not a reproduction"
    ]


def dashed(axes) -> list[float]:
    """Heights of dashed lines across a group of bars."""
    lines = [collection for collection in axes.collections if collection.get_linestyle()[0][1]]
    return [line.get_segments()[0][0][1] for line in lines]


def test_bars_are_shares_of_the_negatives_and_the_expectation_is_on_every_panel():
    table = diversity_table()
    figure = category_figures.category_diversity(table.sample(frac=1, random_state=0))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["negatives of video", "negatives of audio"]
    for axes, modality in zip(figure.axes, ("video", "audio"), strict=True):
        rows = table[table["target"] == modality].sort_values(["batch", "ours"])
        bars = sorted(axes.patches, key=lambda bar: bar.get_x())
        np.testing.assert_allclose([bar.get_height() for bar in bars], 100 * rows["ours"] / rows["batch"])
        expected = [100 * 100 * (1 - 0.99**batch) / batch for batch in (128, 64, 32)]
        assert sorted(set(dashed(axes))) == pytest.approx(expected)


def test_expectation_of_uniform_draws_from_the_actions_of_ucf101():
    """A table typed from the closed form: 101 equally frequent classes, M = 128: 72.0 % of them, 56.8 % of M."""
    expected = 101 * (1 - (1 - 1 / 101) ** 128)
    table = diversity_table(1, "paper", "ucf101").query("batch == 128").assign(expected=expected)
    axes = category_figures.category_diversity(table).axes[0]
    assert set(np.round(dashed(axes), 1)) == {56.8}


def test_curves_are_means_over_seeds_beside_the_expectation_on_every_panel():
    log = curves_log(2)
    figure = category_figures.category_curves(log.sample(frac=1, random_state=0))
    panels = itertools.product((32, 64, 128), category_figures.COUNTED)
    for axes, (batch, column) in zip(figure.axes, panels, strict=True):
        lines = [line for line in axes.lines if line.get_linestyle() == "--"]
        assert [line.get_ydata()[0] for line in lines] == pytest.approx([100 * (1 - 0.99**batch)])
        rows = log[(log["batch"] == batch) & (log["sampler"] == "ohem")]
        curve = axes.lines[1]
        np.testing.assert_array_equal(curve.get_xdata(), range(5, 301, 5))
        np.testing.assert_allclose(curve.get_ydata(), rows.groupby("step")[column].mean())
    labels = [axes.get_ylabel() for axes in figure.axes[::2]]
    assert labels == [f"distinct categories\nof M = {batch}" for batch in (32, 64, 128)]


def test_a_single_report_is_marked():
    """A smoke run has no other."""
    figure = category_figures.category_curves(curves_log(1).query("step == 5"))
    for axes in figure.axes:
        assert all(line.get_marker() not in ("", "None") for line in axes.lines if len(line.get_xdata()) == 1)
        assert sum(len(line.get_xdata()) == 1 for line in axes.lines) == 4
        assert all(float(tick).is_integer() for tick in axes.get_xticks())
    several = category_figures.category_curves(curves_log(1)).axes[0].lines
    assert {line.get_marker() for line in several} <= {"", "None"}


def test_the_ten_best_and_five_worst_categories():
    table = pretext_table(3)
    figure = category_figures.pretext_accuracy(table)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["queries of video", "queries of audio"]
    for axes, query in zip(figure.axes, ("video", "audio"), strict=True):
        means = table[table["query"] == query].groupby("category")["accuracy"].mean().sort_values(ascending=False)
        expected = pd.concat([means[:10], means[-5:]])
        assert [label.get_text() for label in axes.get_yticklabels()] == list(expected.index)
        np.testing.assert_allclose([bar.get_width() for bar in axes.patches], expected)
        deviations = table[table["query"] == query].groupby("category")["accuracy"].std()[expected.index]
        renewed = table[table["query"] == query].groupby("category")["accuracy_renewed"].mean()[expected.index]
        np.testing.assert_allclose(axes.lines[-1].get_xdata(), renewed)
        bars, = axes.containers[1].lines[2]
        np.testing.assert_allclose(np.ptp(np.array(bars.get_segments())[:, :, 0], axis=1), 2 * deviations)
    assert "CM-ACC, mean \N{PLUS-MINUS SIGN} std of 3 seeds" in figure.get_suptitle()


@pytest.mark.parametrize(("categories", "highest", "lowest"), [(1, 1, 0), (10, 10, 0), (12, 10, 2), (40, 10, 5)])
def test_no_category_is_both_best_and_worst(categories, highest, lowest):
    rows = category_figures.extremes(pretext_table(categories=categories).query("query == 'video'"))
    assert rows["rank"].tolist() == ["highest"] * highest + ["lowest"] * lowest
    assert rows["category"].is_unique and rows["accuracy"].is_monotonic_decreasing


def test_equal_accuracies_come_by_name():
    table = pretext_table(categories=30).assign(accuracy=50.0).sample(frac=1, random_state=1)
    rows = category_figures.extremes(table)
    assert rows["category"].tolist() == [*sorted(set(table["category"]))[:10], *sorted(set(table["category"]))[-5:]]


def test_methods_are_not_mixed():
    table = pretext_table()
    with pytest.raises(ValueError, match="one method"):
        category_figures.pretext_accuracy(pd.concat([table, table.assign(method="xmoco")]))
