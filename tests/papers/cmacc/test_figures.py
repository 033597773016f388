"""CM-ACC's figures: what they show of made-up tables and logs, and that it can be read."""

import itertools

import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible
from pandas import DataFrame

from repro.audiovisual import synthetic
from repro.papers.cmacc import figures

CATEGORIES = synthetic.CATEGORIES
COMPARED = ("random", "ohem", "feature", "gradient")


def pretext_table(seeds=1, preset="quick", dataset="synthetic", categories=100) -> DataFrame:
    columns = {"seed": range(seeds), "query": ("video", "audio"), "category": CATEGORIES[:categories]}
    table = DataFrame([*itertools.product(*columns.values())], columns=[*columns])
    accuracies = np.random.default_rng(0).uniform(0, 100, (2, len(table)))
    return table.assign(pairs=20, accuracy=accuracies[0], accuracy_renewed=accuracies[1], method="cmacc", preset=preset,
                        dataset=dataset)


def picked(batch=32, samplers=COMPARED, preset="quick", dataset="synthetic", seed=0, names=CATEGORIES) -> DataFrame:
    """Negatives of which most are nearest to few queries."""
    draws, columns = np.random.default_rng(seed), {"modality": ("video", "audio"), "sampler": samplers,
                                                   "pick": range(batch)}
    table = DataFrame([*itertools.product(*columns.values())], columns=[*columns])
    queries = draws.choice(2000, batch, replace=False)
    items, nearest = draws.integers(2000, size=len(table)), draws.geometric(0.2, len(table)).clip(max=batch) - 1
    return table.assign(
        item=items, category=[names[item % len(names)] for item in items], nearest=queries[nearest],
        gradient_norm=10 ** draws.normal(1.5, 1, len(table)), smaller=draws.uniform(0, 100, len(table)),
        nearest_category=[names[item % len(names)] for item in queries[nearest]], seed=seed, preset=preset,
        dataset=dataset,
    )


def negatives(table, modality="video"):
    """With a picture of one grey level for every item."""
    items = {*table["item"], *table["nearest"]}
    return figures.selected_negatives(table, {item: np.full((24, 24, 3), item % 256, np.uint8) for item in items},
                                      modality)


def test_the_ten_best_and_five_worst_categories():
    table = pretext_table(3)
    rows = figures.ranked_first(table)
    for query, name in (("video", "queries of pictures"), ("audio", "queries of sound")):
        groups = table[table["query"] == query].groupby("category")
        means = groups["accuracy"].mean().sort_values(ascending=False)
        expected = pd.concat([means[:10], means[-5:]])
        stored, renewed = (rows[(rows["query"] == name) & (rows["keys"] == keys)] for keys in ("stored", "renewed"))
        assert stored["category"].tolist() == renewed["category"].tolist() == list(expected.index)
        np.testing.assert_allclose(stored["ours"], expected)
        np.testing.assert_allclose(stored["std"], groups["accuracy"].std()[expected.index])
        np.testing.assert_allclose(renewed["ours"], groups["accuracy_renewed"].mean()[expected.index])


@pytest.mark.parametrize(("categories", "highest", "lowest"), [(1, 1, 0), (10, 10, 0), (12, 10, 2), (40, 10, 5)])
def test_no_category_is_both_best_and_worst_and_equal_ones_come_by_name(categories, highest, lowest):
    table = pretext_table(categories=categories).query("query == 'video'")
    rows = figures.extremes(table)
    assert rows["rank"].tolist() == ["highest"] * highest + ["lowest"] * lowest
    assert rows["category"].is_unique and rows["accuracy"].is_monotonic_decreasing
    equal, names = table.assign(accuracy=50.0).sample(frac=1, random_state=1), sorted(table["category"])
    assert figures.extremes(equal)["category"].tolist() == names[:highest] + names[len(names) - lowest :]


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 128])
def test_a_row_has_the_query_of_most_picks_and_three_of_them_by_gradient(batch):
    table = picked(batch).query("modality == 'audio'")
    for sampler, rows in figures.shown(table.sample(frac=1, random_state=1)).groupby("sampler"):
        picks = table[table["sampler"] == sampler]
        counts = picks["nearest"].value_counts()
        query = min(counts.index[counts == counts.max()])
        items = picks[picks["nearest"] == query].sort_values("gradient_norm", ascending=False)["item"].tolist()
        middle = [items[len(items) // 2]] if len(items) > 2 else []
        assert rows["item"].tolist() == [items[0], *middle, *(items[-1:] if len(items) > 1 else [])]
        assert set(rows["nearest"]) == {query}


def test_every_sampler_has_a_row_of_its_query_and_negatives():
    table = picked(batch=64)
    figure = negatives(table)
    for line, sampler in zip(np.reshape(figure.axes, (4, 4)), COMPARED, strict=True):
        rows = figures.shown(table[(table["modality"] == "video") & (table["sampler"] == sampler)])
        shown = [int(axes.images[0].get_array()[0, 0, 0]) for axes in line]
        assert shown == [item % 256 for item in (rows["nearest"][0], *rows["item"])]
    assert_legible(figure)
    assert [axes.get_visible() for axes in negatives(picked(1)).axes] == [True, True, False, False] * 4


def test_bundled_clips_are_filmed_again_and_others_not_shown(monkeypatch):
    given, table = {}, picked()
    monkeypatch.setattr(figures, "selected_negatives", lambda log, pictures: given.update(pictures))
    figures.bundled_negatives(table)
    rows = figures.shown(table[table["modality"] == "video"])
    assert given.keys() == {*rows["item"], *rows["nearest"]}
    item = rows["item"][0]
    np.testing.assert_array_equal(given[item], synthetic.pictures([item])[0, 10])
