import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible
from pandas import DataFrame

from repro.audiovisual import synthetic
from repro.papers.cmacc import figures as negative_figures
from repro.papers.cmacc.figures import SAMPLERS
from repro.papers.cmacc.figures import FIGURES
from repro.report import style

NAMES = [f"{motion}, {material}" for motion in synthetic.MOTIONS for material in synthetic.MATERIALS]
COMPARED = ("random", "ohem", "feature", "gradient")


def picked(batch=32, samplers=COMPARED, preset="quick", dataset="synthetic", seed=0, names=NAMES) -> DataFrame:
    """Negatives of which most are nearest to few queries."""
    generator, rows = np.random.default_rng(seed), []
    for modality in ("video", "audio"):
        queries = generator.choice(2000, batch, replace=False)
        for sampler in samplers:
            for pick in range(batch):
                item, nearest = int(generator.integers(2000)), int(queries[min(batch - 1, generator.geometric(0.2))])
                norm, smaller = 10 ** generator.normal(1.5, 1), generator.uniform(0, 100)
                kinds = names[item % len(names)], names[nearest % len(names)]
                rows.append((modality, sampler, pick, item, kinds[0], norm, smaller, nearest, kinds[1]))
    columns = ["modality", "sampler", "pick", "item", "category", "gradient_norm", "smaller", "nearest",
               "nearest_category"]
    return DataFrame(rows, columns=columns).assign(seed=seed, preset=preset, dataset=dataset)


def pictures(table, size=24) -> dict:
    """A picture of one grey level for every item."""
    return {item: np.full((size, size, 3), item % 256, np.uint8) for item in {*table["item"], *table["nearest"]}}


def draw(table, modality="video"):
    return negative_figures.selected_negatives(table, pictures(table), modality)


LONG = ["throwing ball (not baseball or American football)", "playing guitar", "riding a camel"]
JOINED = ["RockClimbingIndoor", "TrampolineJumping", "swing_baseball", "HandstandPushups"]  # of UCF101 and HMDB51
TABLES = [
    picked(),
    picked(names=[3, 7]),  # digits
    picked(128, preset="paper", dataset="ucf101 (subset)", names=LONG),
    picked(64, preset="paper", dataset="ucf101", names=JOINED),
    picked(1),
    picked(3, samplers=("gradient",)),
    picked().assign(gradient_norm=333.87e4),
    picked().assign(gradient_norm=1.234e-7),
]


@pytest.mark.parametrize("modality", ["video", "audio"])
@pytest.mark.parametrize("table", TABLES, ids=range(len(TABLES)))
def test_no_text_overlaps_or_leaves_the_figure(table, modality):
    assert_legible(draw(table, modality))


def by_hand(rows):
    """The query with most picks and, of these, the largest, the middle and the smallest gradient; in plain loops."""
    counts = {}
    for row in rows:
        counts[row.nearest] = counts.get(row.nearest, 0) + 1
    query = min(name for name, count in counts.items() if count == max(counts.values()))
    own = sorted((row for row in rows if row.nearest == query), key=lambda row: -row.gradient_norm)
    return query, [own[0], *([own[len(own) // 2]] if len(own) > 2 else []), *([own[-1]] if len(own) > 1 else [])]


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 32, 128])
def test_a_row_has_the_query_of_most_picks_and_three_of_them_by_gradient(batch):
    table = picked(batch).query("modality == 'audio'")
    found = negative_figures.shown(table.sample(frac=1, random_state=1))
    assert set(found["sampler"]) == set(COMPARED)
    for sampler, rows in found.groupby("sampler"):
        query, chosen = by_hand(list(table[table["sampler"] == sampler].itertuples()))
        assert set(rows["nearest"]) == {query}
        assert rows["item"].tolist() == [row.item for row in chosen]
        assert rows["gradient_norm"].is_monotonic_decreasing


def grey(axes):
    """The level of the picture in a tile."""
    return int(np.unique(axes.images[0].get_array()).item())


def test_tiles_show_the_clips_that_their_texts_name():
    table = picked(batch=64)
    table.loc[table["modality"] == "video", "gradient_norm"] *= 1000
    figure = draw(table)
    tiles = np.reshape(figure.axes, (4, 4))
    for line, sampler in zip(tiles, COMPARED, strict=True):
        rows = negative_figures.shown(table.query("modality == 'video' and sampler == @sampler"))
        assert line[0].get_ylabel().replace("\n", " ") == SAMPLERS[sampler].label
        assert (line[0].get_title(), grey(line[0])) == ("query", rows["nearest"][0] % 256)
        assert line[0].get_xlabel().replace("\n", " ") == rows["nearest_category"][0]
        for axes, row in zip(line[1:], rows.itertuples(), strict=True):
            assert grey(axes) == row.item % 256 and axes.get_xlabel().replace("\n", " ") == row.category
            norm = float(axes.get_title().replace(",", ""))
            assert norm == pytest.approx(row.gradient_norm, rel=6e-3)
    assert "queries of sound, negatives of pictures with norms of gradients" in figure.get_suptitle()
    assert "queries of pictures, negatives of sound" in draw(table, "audio").get_suptitle()


def test_tiles_of_what_was_not_picked_stay_away():
    figure = draw(picked(1))
    assert [axes.get_visible() for axes in figure.axes] == [True, True, False, False] * 4


def test_titles_say_where_the_numbers_come_from_and_mixed_tables_are_refused():
    assert "embedded data" in draw(picked()).get_suptitle()
    assert draw(picked(preset="paper", dataset="ucf101")).get_suptitle().startswith("ucf101, paper recipe, seed 0")
    with pytest.raises(ValueError, match="one preset"):
        draw(pd.concat([picked(), picked(preset="smoke")]))
    with pytest.raises(ValueError, match="one seed"):
        draw(pd.concat([picked(), picked(seed=1)]))


def test_what_tells_samplers_apart():
    table = picked(8)
    table.loc[:3, ["category", "nearest_category"]] = "same"
    found = negative_figures.by_sampler(table).set_index(["modality", "sampler"])
    assert list(found.index)[:4] == [("video", sampler) for sampler in COMPARED] and len(found) == 8
    rows = table.iloc[:8]
    different = sum(a != b for a, b in zip(rows["category"], rows["nearest_category"], strict=True))
    assert different <= 4
    assert found.loc[("video", "random")].tolist() == pytest.approx([
        8, len(set(rows["category"])), np.median(rows["gradient_norm"]), np.median(rows["smaller"]),
        100 * (8 - different) / 8,
    ])


def test_embedded_clips_are_filmed_again():
    table = picked()
    found = negative_figures.drawn_again(table)
    shown = negative_figures.shown(table[table["modality"] == "video"])
    assert found.keys() == {*shown["item"], *shown["nearest"]}
    item = shown["item"][0]
    np.testing.assert_array_equal(found[item], synthetic.pictures([item])[0, 10])


def test_the_same_negatives_give_the_same_files(tmp_path):
    table, written = picked(), []
    for folder in ("one", "two"):
        paths = style.save(draw(table.copy()), tmp_path / folder / "figure", "caption", {})
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]


def test_every_figure_has_a_caption():
    assert "selected_negatives" in FIGURES
