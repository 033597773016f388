"""CM-ACC's figures: what they show of made-up tables and logs, and that it can be read."""

import itertools

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from repro.audiovisual import synthetic
from repro.papers.cmacc import figures
from repro.papers.cmacc.tables import TABLES as DECLARED
from repro.report.printed import printed

APPROACHES = [row["approach"] for row in DECLARED["cross_modal"].rows]
NAMES = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}
CATEGORIES = [f"{motion}, {material}" for motion in synthetic.MOTIONS for material in synthetic.MATERIALS]
COMPARED = ("random", "ohem", "feature", "gradient")
CONTRASTED = ("smoco", "xmoco", "cmacc")
LONG = ["throwing ball (not baseball or American football)", "playing guitar", "riding a camel"]
JOINED = ["RockClimbingIndoor", "TrampolineJumping", "swing_baseball", "HandstandPushups"]  # of UCF101 and HMDB51
BUNDLED = {"preset": "quick", "dataset": "synthetic", "targets": ("synthetic_video", "synthetic_audio")}
NOT_RUN = {"ours": np.nan, "std": np.nan, "n_seeds": 0}
FIRST = printed("cmacc_table1").set_index("approach")
THIRD = printed("cmacc_table3").set_index("sampler")
PRINTED_SAMPLERS = {"random": "Random", "ohem": "OHEM", "gradient": "Active"}


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


def test_tiles_show_the_clips_that_their_texts_name():
    table = picked(batch=64)
    table.loc[table["modality"] == "video", "gradient_norm"] *= 1000
    figure = negatives(table)

    def tile(axes):
        return int(np.unique(axes.images[0].get_array()).item()), axes.get_xlabel().replace("\n", " ")

    for line, sampler in zip(np.reshape(figure.axes, (4, 4)), COMPARED, strict=True):
        rows = figures.shown(table.query("modality == 'video' and sampler == @sampler"))
        assert line[0].get_ylabel().replace("\n", " ") == figures.SAMPLERS[sampler].label
        assert line[0].get_title() == "query"
        assert tile(line[0]) == (rows["nearest"][0] % 256, rows["nearest_category"][0])
        for axes, row in zip(line[1:], rows.itertuples(), strict=True):
            assert tile(axes) == (row.item % 256, row.category)
            assert float(axes.get_title().replace(",", "")) == pytest.approx(row.gradient_norm, rel=6e-3)
    assert figure.get_suptitle().replace("\n", " ").startswith("Negatives of pictures for queries of sound")
    other = negatives(table, "audio").get_suptitle()
    assert other.replace("\n", " ").startswith("Negatives of sound for queries of pictures")
    assert [axes.get_visible() for axes in negatives(picked(1)).axes] == [True, True, False, False] * 4


def test_what_tells_samplers_apart():
    table = picked(8)
    table.loc[:3, ["category", "nearest_category"]] = "same"
    summary = figures.by_sampler(table).set_index(["modality", "sampler"])
    assert list(summary.index) == [*itertools.product(("video", "audio"), COMPARED)]
    rows = table.iloc[:8]
    same = sum(rows["category"] == rows["nearest_category"])
    assert same >= 4 and summary.loc[("video", "random")].tolist() == pytest.approx([
        8, len(set(rows["category"])), np.median(rows["gradient_norm"]), np.median(rows["smaller"]), 100 * same / 8,
    ])


def test_bundled_clips_are_filmed_again_and_others_not_shown(monkeypatch):
    given, table = {}, picked()
    monkeypatch.setattr(figures, "selected_negatives", lambda log, pictures: given.update(pictures))
    figures.bundled_negatives(table)
    rows = figures.shown(table[table["modality"] == "video"])
    assert given.keys() == {*rows["item"], *rows["nearest"]}
    item = rows["item"][0]
    np.testing.assert_array_equal(given[item], synthetic.pictures([item])[0, 10])
