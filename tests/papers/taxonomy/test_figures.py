import itertools
import json
import math
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
import torch
from drawn import assert_legible, lines
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from pandas import DataFrame
from PIL import Image

from repro.papers.taxonomy import figures
from repro.recipe import in_words
from repro.report import style
from repro.report.printed import printed
from repro.report.style import seeds_in_words, spread_in_words
from repro.skeleton.recipe import SUBSETS

OBJECTIVES = ["AE", "CE", "AD", "CD"]
BONES = [(0, 1), (1, 2), (1, 3)]


def taxonomy_table(n_seeds=3, preset="paper", dataset="ucla") -> DataFrame:
    subsets = DataFrame(list(itertools.product((0, 1), repeat=4)), columns=OBJECTIVES)
    names = ["+".join(name for name in OBJECTIVES if row[name]) or "random" for _, row in subsets.iterrows()]
    ours = np.random.default_rng(0).permutation(np.linspace(40.0, 90.0, 16))
    return subsets.assign(
        objectives=names,
        ours=ours,
        std=1.5 if n_seeds > 1 else np.nan,
        n_seeds=n_seeds,
        published=ours + 3,
        difference=-3.0,
        preset=preset,
        dataset=dataset,
    ).sample(frac=1, random_state=0)


def depth_table(dataset="ucla") -> DataFrame:
    rows = DataFrame(list(itertools.product(range(1, 6), ("random", "AE"))), columns=["layers", "objectives"])
    random = rows["objectives"] == "random"
    return rows.assign(
        ours=np.where(random, 50 + rows["layers"], 50 - 4 * rows["layers"]),
        std=1.0,
        n_seeds=3,
        published=np.where(random, 52 + rows["layers"], 51 - 4 * rows["layers"]),
        difference=-2.0,
        linear_standardised=60 + rows["layers"],
        embedding_spread=np.where(random, 0.5, 0.1 ** rows["layers"]),
        preset="paper",
        dataset=dataset,
    )


def variants_table(dataset="ucla") -> DataFrame:
    rows = taxonomy_table(dataset=dataset).iloc[[3, 5, 9, 9]]
    departures = [{"td_queue": "frozen_noise"}, {"select": "best_on_test"}, {"learning_rate": 0.05},
                  {"ad_input": "augmented"}]
    return rows.assign(departures=departures, usual=[70.0, 60.0, np.nan, 50.0], preset=["paper", "quick"] * 2)


def contrast_log(names=(("CE+CD", "live"), ("CD", "live"), ("CD", "frozen_noise")), dataset="ucla") -> DataFrame:
    runs = [DataFrame({"epoch": range(1, 4), "CD": number + np.arange(3.0)}).assign(objectives=name, td_queue=queue)
            for number, (name, queue) in enumerate(names)]
    return pd.concat(runs).assign(sequence_dictionary=640, seed=0, dataset=dataset, preset="paper")


def sequence(length=12) -> torch.Tensor:
    pelvis, neck, left, right = [0, 0, 0], [0, 0, 1], [0.4, 0.2, 0.6], [-0.4, 0.2, 0.6]
    return torch.tensor([pelvis, neck, left, right]).repeat(length, 1, 1) + torch.arange(length).reshape(-1, 1, 1) / 10


FIGURES = {
    "taxonomy": lambda: figures.taxonomy(taxonomy_table()),
    "taxonomy, quick, one seed": lambda: figures.taxonomy(taxonomy_table(n_seeds=1, preset="quick")),
    "taxonomy, embedded": lambda: figures.taxonomy(taxonomy_table(dataset="synthetic")),
    "taxonomy, three rows": lambda: figures.taxonomy(taxonomy_table().iloc[:3]),
    "taxonomy, one row": lambda: figures.taxonomy(taxonomy_table().iloc[:1]),
    "taxonomy, not run": lambda: figures.taxonomy(taxonomy_table().assign(ours=np.nan, std=np.nan, n_seeds=0)),
    "variants": lambda: figures.taxonomy_variants(variants_table()),
    "variants, one row, embedded": lambda: figures.taxonomy_variants(variants_table("synthetic").iloc[:1]),
    "collapse": lambda: figures.encoder_collapse(depth_table()),
    "collapse, embedded": lambda: figures.encoder_collapse(depth_table("synthetic")),
    "collapse, one row": lambda: figures.encoder_collapse(depth_table().iloc[:1]),
    "collapse, spread unknown": lambda: figures.encoder_collapse(depth_table().assign(embedding_spread=np.nan)),
    "contrast": lambda: figures.sequence_contrast(contrast_log()),
    "contrast, every objective": lambda: figures.sequence_contrast(
        contrast_log([(name, queue) for name in SUBSETS if "CD" in name for queue in ("live", "frozen_noise")])
    ),
    "contrast, one run, embedded": lambda: figures.sequence_contrast(contrast_log([("CD", "live")], "synthetic")),
    "poses": lambda: figures.pose_strip({"pick up with two hands": sequence(), "throw": sequence(3)}, BONES),
}


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_overlaps_or_leaves_the_figure(name):
    assert_legible(FIGURES[name]())


def test_taxonomy_plots_the_table_random_first_then_sorted():
    table = taxonomy_table()
    figure = figures.taxonomy(table)
    random = table[table["objectives"] == "random"]
    others = table[table["objectives"] != "random"].sort_values("ours")
    found = lines(figure, 0)
    np.testing.assert_array_equal(found["ours"], [*random["ours"], *others["ours"]])
    np.testing.assert_array_equal(found["printed"], [*random["published"], *others["published"]])
    assert set(found["random initialisation"]) == set(random["ours"])


def test_variants_plot_the_table_by_objective():
    table = variants_table()
    table = table.assign(departures=table["departures"].map(in_words))
    table = table.sort_values(["objectives", "departures", "preset"])
    axes = figures.taxonomy_variants(table).axes[0]
    values = {line.get_label(): np.asarray(line.get_xdata(), float) for line in axes.lines}
    for label, column in (("changed", "ours"), ("recipe", "usual"), ("printed", "published")):
        np.testing.assert_array_equal(values[label], table[column])
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [f"{row.objectives}, {row.preset}\n{row.departures}" for row in table.itertuples()]


@pytest.mark.parametrize(
    ("dataset", "presets", "warning"),
    [
        ("ucla", ["paper"], None),
        ("ucla", ["paper", "quick"], "only the paper recipe is a reproduction"),
        ("ucla", ["quick"], "quick recipe: not a reproduction"),
        ("ntu (subset)", ["paper"], "not the official data: not a reproduction"),
        ("ntu (subset)", ["paper", "quick"], "not the official data: not a reproduction"),
        ("synthetic", ["paper"], "embedded data: not comparable with the printed numbers"),
    ],
)
def test_variants_say_what_may_not_be_concluded(dataset, presets, warning):
    table = variants_table(dataset).assign(preset=presets * (4 // len(presets)))
    assert figures.taxonomy_variants(table).get_suptitle().split("\n")[1:] == ([warning] if warning else [])


def test_taxonomy_error_bars_are_one_standard_deviation():
    table = taxonomy_table()
    bars = [segment for group in figures.taxonomy(table).axes[0].collections for segment in group.get_segments()]
    ends = sorted((float(low), float(high)) for (_, low), (_, high) in bars)
    np.testing.assert_allclose(ends, sorted(zip(table["ours"] - 1.5, table["ours"] + 1.5, strict=True)))


def test_taxonomy_membership_matches_the_columns_above():
    table = taxonomy_table()
    figure = figures.taxonomy(table)
    filled = {
        (int(x), int(y))
        for line in figure.axes[-1].lines
        if line.get_color() == style.INK
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }
    order = table.set_index("ours").loc[lines(figure, 0)["ours"], OBJECTIVES].to_numpy()
    assert filled == {(int(x), int(y)) for x, y in np.argwhere(order == 1)}
    assert [label.get_text() for label in figure.axes[-1].get_yticklabels()] == OBJECTIVES


def test_printed_markers_need_printed_values_and_comparable_data():
    unprinted = taxonomy_table().assign(published=np.nan)
    assert "printed" not in lines(figures.taxonomy(unprinted), 0)
    assert "printed" not in lines(figures.taxonomy(taxonomy_table(dataset="synthetic")), 0)
    embedded = figures.encoder_collapse(depth_table("synthetic").assign(linear_standardised=np.nan))
    assert set(lines(embedded, 0)) == {"random, ours", "AE, ours"}


def test_printed_numbers_shown_apart_follow_the_order_of_ours():
    table = taxonomy_table(dataset="synthetic")
    numbers = printed("taxonomy")
    figure = figures.taxonomy(table)
    order = table.set_index("ours").loc[lines(figure, 0)["ours"], OBJECTIVES]
    expected = [numbers.set_index(OBJECTIVES)["UCLA"].get(tuple(row), np.nan) for row in order.to_numpy()]
    np.testing.assert_array_equal(lines(figure, 1)["UCLA"], expected)


def test_rows_without_results_come_last_and_keep_their_printed_value():
    table = taxonomy_table()
    table.loc[table["objectives"].isin(["CE", "AE+CD"]), ["ours", "std", "n_seeds"]] = [np.nan, np.nan, 0]
    found = lines(figures.taxonomy(table), 0)
    assert np.isnan(found["ours"][-2:]).all() and np.isfinite(found["ours"][:-2]).all()
    assert np.isfinite(found["printed"]).all()


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "ucla, paper recipe, mean \N{PLUS-MINUS SIGN} std of 3 seeds"),
        ({"n_seeds": 1, "preset": "quick"}, "ucla, 1 seed\nquick recipe: not a reproduction"),
        (
            {"n_seeds": 1, "preset": "quick", "dataset": "synthetic"},
            "synthetic, quick recipe, 1 seed\nembedded data: not comparable with the printed numbers",
        ),
    ],
)
def test_title_says_what_the_numbers_are(changes, title):
    assert figures.taxonomy(taxonomy_table(**changes)).get_suptitle() == title


@pytest.mark.parametrize(("counts", "words", "caption"), [
    ([3, 1, 1, 3], "1 seed (with ± std: mean of 3)", "where there are several; what has none is of 1 seed."),
    ([2, 1, 1, 5], "1 seed (with ± std: mean of 2 to 5)", "where there are several; what has none is of 1 seed."),
    ([2, 3, 3, 3], "mean ± std of 2 to 3 seeds", "one standard deviation over seeds."),
    ([1, 1, 1, 1], "1 seed", None),
])
def test_seeds_in_words(counts, words, caption):
    table = pd.DataFrame({"ours": [1.0, 2.0, 3.0, 4.0, np.nan], "n_seeds": [*counts, 0]})
    assert seeds_in_words(table) == words
    assert caption in spread_in_words(table) if caption else spread_in_words(table) == ""


def test_one_sees_which_points_are_of_several_seeds():
    """By ends of error bars outside the markers, at the deviation from the mean; others have none."""
    table = taxonomy_table()
    table.loc[table.index[3:], ["std", "n_seeds"]] = [np.nan, 1]
    axes = figures.taxonomy(table).axes[0]
    ends = [line for line in axes.lines if line.get_marker() == "_"]
    found = np.concatenate([np.asarray(line.get_ydata(), float) for line in ends])
    found = np.sort(found[~np.isnan(found)])
    assert all(line.get_markersize() > 4 for line in ends)
    np.testing.assert_allclose(found, np.sort([*(table["ours"][:3] - 1.5), *(table["ours"][:3] + 1.5)]))


def test_encoder_collapse_plots_the_table():
    table = depth_table().sample(frac=1, random_state=1)
    figure = figures.encoder_collapse(table)
    found = lines(figure, 0)
    np.testing.assert_array_equal(found["random, ours"], [51, 52, 53, 54, 55])
    np.testing.assert_array_equal(found["AE, printed"], [47, 43, 39, 35, 31])
    for method in ("random", "AE"):
        np.testing.assert_array_equal(found[f"{method}, standardised"], [61, 62, 63, 64, 65])
    np.testing.assert_array_equal(figure.axes[1].lines[1].get_ydata(), 0.1 ** np.arange(1, 6))
    assert figure.axes[1].get_yscale() == "log"


def test_spread_is_linear_from_zero_when_it_varies_little_or_vanishes():
    for spread in (0.4, np.where(depth_table()["objectives"] == "AE", 0.0, 0.5)):
        axes = figures.encoder_collapse(depth_table().assign(embedding_spread=spread)).axes[1]
        assert axes.get_yscale() == "linear" and axes.get_ylim()[0] == 0


def test_the_contrast_is_plotted_by_objective_the_frozen_dictionary_dashed():
    figure = figures.sequence_contrast(contrast_log().sample(frac=1, random_state=0))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["CD", "CE+CD"]
    alone, pair = lines(figure, 0), lines(figure, 1)
    np.testing.assert_array_equal(alone["refreshed"], [1, 2, 3])
    np.testing.assert_array_equal(alone["never refreshed"], [2, 3, 4])
    np.testing.assert_array_equal(pair["refreshed"], [0, 1, 2])
    assert len(pair["never refreshed"]) == 0
    np.testing.assert_allclose(alone["chance, ln 641"], math.log(641))
    styles = {line.get_label(): line.get_linestyle() for line in figure.axes[0].lines}
    assert (styles["refreshed"], styles["never refreshed"]) == ("-", "--")
    assert figure.get_suptitle() == "ucla, paper recipe, one run each, seed 0"


def test_dictionaries_of_several_sizes_have_no_common_chance():
    log = contrast_log()
    log.loc[log["objectives"] == "CD", "sequence_dictionary"] = 128
    with pytest.raises(ValueError, match=r"one sequence_dictionary; this table has \[128, 640\]"):
        figures.sequence_contrast(log)


def test_poses_stand_upright_in_time_order_at_one_scale():
    figure = figures.pose_strip({"long": sequence(11), "short": sequence(3).reshape(3, -1)}, BONES, frames=6)
    axes = figure.axes[0]
    rows = [np.array(group.get_segments()) for group in axes.collections if isinstance(group, LineCollection)]
    assert [len(row) for row in rows] == [6 * len(BONES), 3 * len(BONES)]
    trunk = rows[0][:: len(BONES)]
    np.testing.assert_allclose(trunk[:, 1] - trunk[:, 0], np.tile([0, 1], (6, 1)), atol=1e-6)
    assert (np.diff(trunk[:, 0, 0]) > 0).all()
    np.testing.assert_allclose(np.diff(trunk[:, 0, 1]), 0.2, atol=1e-6)
    assert rows[1].max(axis=(0, 1))[1] < rows[0].min(axis=(0, 1))[1]
    box = axes.get_window_extent()
    np.testing.assert_allclose(np.ptp(axes.get_xlim()) / box.width, np.ptp(axes.get_ylim()) / box.height)


def test_last_bits_of_a_layout_leave_no_trace():
    positions = []
    for left in (0.1, 0.1 + 1e-16):
        figure = Figure()
        figure.add_axes((left, 0.1, 0.5, 0.5))
        positions.append(style.settled(figure).axes[0].get_position().bounds)
    assert 0.1 != 0.1 + 1e-16 and positions[0] == positions[1] == pytest.approx((0.1, 0.1, 0.5, 0.5))


def test_files_are_identical_when_nothing_changed_and_carry_their_origin(tmp_path):
    provenance = {"cells": ["a1", "b2"], "seeds": [0, 1], "preset": "paper", "dataset": "ucla"}
    first = figures.taxonomy(taxonomy_table())
    svg, png = style.save(first, tmp_path / "new" / "taxonomy_ucla", "Accuracy \N{EN DASH} by subset.", provenance)
    written = svg.read_bytes(), png.read_bytes()
    assert (svg.name, png.name) == ("taxonomy_ucla.svg", "taxonomy_ucla.png")

    style.save(first, tmp_path / "new" / "taxonomy_ucla", "Accuracy \N{EN DASH} by subset.", provenance)
    assert (svg.read_bytes(), png.read_bytes()) == written
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 5, "svg.hashsalt": "other"}):
        again = figures.taxonomy(taxonomy_table())
        style.save(again, tmp_path / "new" / "taxonomy_ucla", "Accuracy \N{EN DASH} by subset.", provenance)
        assert matplotlib.rcParams["font.size"] == 20
    assert (svg.read_bytes(), png.read_bytes()) == written

    image = Image.open(png)
    assert image.text["Description"] == "Accuracy \N{EN DASH} by subset."
    assert json.loads(image.text["Source"]) == provenance
    assert round(image.info["dpi"][0]) == 300 and image.width == int(style.COLUMN * 300)
    tags = {element.tag.rpartition("}")[2]: element for element in ElementTree.parse(svg).iter()}
    assert tags["description"].text == "Accuracy \N{EN DASH} by subset." and "date" not in tags
    assert json.loads(" ".join(tags["source"].itertext())) == provenance
