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
from made_up_cells import placed, skeleton
from matplotlib.figure import Figure
from pandas import DataFrame
from PIL import Image
from scipy.stats import spearmanr

from repro.papers.taxonomy import figures, glm
from repro.recipe import in_words
from repro.report import style
from repro.report.printed import printed
from repro.report.style import seeds_in_words, spread_in_words
from repro.skeleton.recipe import SUBSETS

OBJECTIVES = ["AE", "CE", "AD", "CD"]
BONES = [(0, 1), (1, 2), (1, 3)]
NAN = math.nan


def taxonomy_table(dataset="ucla") -> DataFrame:
    subsets = DataFrame(list(itertools.product((0, 1), repeat=4)), columns=OBJECTIVES)
    names = ["+".join(name for name in OBJECTIVES if row[name]) or "random" for _, row in subsets.iterrows()]
    ours = np.random.default_rng(0).permutation(np.linspace(40.0, 90.0, 16))
    rows = subsets.assign(objectives=names, ours=ours, std=1.5, n_seeds=3, published=ours + 3,
                          difference=-3.0, preset="paper", dataset=dataset)
    return rows.sample(frac=1, random_state=0)


def depth_table(dataset="ucla") -> DataFrame:
    rows = DataFrame(list(itertools.product(range(1, 6), ("random", "AE"))), columns=["layers", "objectives"])
    random, layers = rows["objectives"] == "random", rows["layers"]
    return rows.assign(
        ours=np.where(random, 50 + layers, 50 - 4 * layers), published=np.where(random, 52 + layers, 51 - 4 * layers),
        std=1.0, n_seeds=3, difference=-2.0, linear_standardised=60 + layers,
        embedding_spread=np.where(random, 0.5, 0.1**layers), preset="paper", dataset=dataset)


def variants_table(dataset="ucla") -> DataFrame:
    rows = taxonomy_table(dataset=dataset).iloc[[3, 5, 9, 9]]
    departures = [{"td_queue": "frozen_noise"}, {"select": "best_on_test"}, {"learning_rate": 0.05},
                  {"ad_input": "augmented"}]
    return rows.assign(departures=departures, usual=[70.0, 60.0, NAN, 50.0], preset=["paper", "quick"] * 2)


def contrast_log(names=(("CE+CD", "live"), ("CD", "live"), ("CD", "frozen_noise")), dataset="ucla") -> DataFrame:
    runs = [DataFrame({"epoch": range(1, 4), "CD": number + np.arange(3.0)}).assign(objectives=name, td_queue=queue)
            for number, (name, queue) in enumerate(names)]
    return pd.concat(runs).assign(sequence_dictionary=640, seed=0, dataset=dataset, preset="paper")


def sequence(length=12) -> torch.Tensor:
    pelvis, neck, left, right = [0, 0, 0], [0, 0, 1], [0.4, 0.2, 0.6], [-0.4, 0.2, 0.6]
    return torch.tensor([pelvis, neck, left, right]).repeat(length, 1, 1) + torch.arange(length).reshape(-1, 1, 1) / 10


FIGURES = {
    "taxonomy": lambda: figures.taxonomy(taxonomy_table()),
    "taxonomy, embedded": lambda: figures.taxonomy(taxonomy_table(dataset="synthetic")),
    "taxonomy, one row, not run": lambda: figures.taxonomy(taxonomy_table().iloc[:1].assign(ours=NAN, n_seeds=0)),
    "variants": lambda: figures.taxonomy_variants(variants_table()),
    "variants, one row, embedded": lambda: figures.taxonomy_variants(variants_table("synthetic").iloc[:1]),
    "collapse": lambda: figures.encoder_collapse(depth_table()),
    "collapse, one row, embedded": lambda: figures.encoder_collapse(depth_table("synthetic").iloc[:1]),
    "collapse, spread unknown": lambda: figures.encoder_collapse(depth_table().assign(embedding_spread=NAN)),
    "contrast, every objective": lambda: figures.sequence_contrast(
        contrast_log([(name, queue) for name in SUBSETS if "CD" in name for queue in ("live", "frozen_noise")])),
    "contrast, one run, embedded": lambda: figures.sequence_contrast(contrast_log([("CD", "live")], "synthetic")),
    "poses": lambda: figures.pose_strip({"pick up with two hands": sequence(), "throw": sequence(3)}, BONES),
    "poses, many": lambda: figures.pose_strip({f"{number} walk around": sequence() for number in range(9)}, BONES),
}


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_overlaps_or_leaves_the_figure(name):
    assert_legible(FIGURES[name]())


def test_taxonomy_plots_the_table_random_first_then_sorted_what_was_not_run_last():
    table = taxonomy_table()
    table.loc[table["objectives"].isin(["CE", "AE+CD"]), ["ours", "std", "n_seeds"]] = [NAN, NAN, 0]
    random, others = (table[(table["objectives"] == "random") == first] for first in (True, False))
    expected = pd.concat([random, others.sort_values(["ours", "published"])])
    figure = figures.taxonomy(table)
    found = lines(figure, 0)
    np.testing.assert_array_equal(found["ours"], expected["ours"])
    np.testing.assert_array_equal(found["printed"], expected["published"])
    assert set(found["random initialisation"]) == set(random["ours"])
    filled = {(int(x), int(y)) for line in figure.axes[-1].lines if line.get_color() == style.INK
              for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
    assert filled == {(int(x), int(y)) for x, y in np.argwhere(expected[OBJECTIVES].to_numpy() == 1)}
    assert [label.get_text() for label in figure.axes[-1].get_yticklabels()] == OBJECTIVES


def test_error_bars_are_one_standard_deviation_with_ends_outside_the_markers_where_there_are_several_seeds():
    table = taxonomy_table()
    table.loc[table.index[3:], ["std", "n_seeds"]] = [NAN, 1]
    axes = figures.taxonomy(table).axes[0]
    expected = np.sort([*(table["ours"][:3] - 1.5), *(table["ours"][:3] + 1.5)])
    bars = [segment for group in axes.collections for segment in group.get_segments()]
    ends = np.array([float(y) for bar in bars for _, y in bar])
    np.testing.assert_allclose(np.sort(ends[~np.isnan(ends)]), expected)
    caps = [line for line in axes.lines if line.get_marker() == "_"]
    found = np.concatenate([np.asarray(line.get_ydata(), float) for line in caps])
    np.testing.assert_allclose(np.sort(found[~np.isnan(found)]), expected)
    assert all(line.get_markersize() > 4 for line in caps)


def test_variants_plot_the_table_by_objective():
    table = variants_table()
    figure = figures.taxonomy_variants(table)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["paper recipe", "quick recipe"]
    table = table.assign(departures=table["departures"].map(in_words)).sort_values(["objectives", "departures"])
    for axes, (_, rows) in zip(figure.axes, table.groupby("preset"), strict=True):
        values = {line.get_label(): np.asarray(line.get_xdata(), float) for line in axes.lines}
        for label, column in (("changed", "ours"), ("recipe", "usual"), ("printed", "published")):
            np.testing.assert_array_equal(values.get(label, np.full(len(rows), NAN)), rows[column])
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert names == [f"{row.objectives}\n{row.departures}" for row in rows.itertuples()]


@pytest.mark.parametrize(("dataset", "presets", "warning"), [
    ("ucla", ["paper"], []),
    ("ucla", ["paper", "quick"], ["only the paper recipe is a reproduction"]),
    ("ucla", ["quick"], ["quick recipe: not a reproduction"]),
    ("ntu (subset)", ["paper", "quick"], ["not the official data: not a reproduction"]),
    ("synthetic", ["paper"], ["bundled data: not comparable with the printed numbers"]),
])
def test_variants_say_what_may_not_be_concluded(dataset, presets, warning):
    table = variants_table(dataset).assign(preset=presets * (4 // len(presets)))
    assert figures.taxonomy_variants(table).get_suptitle().split("\n")[1:] == warning


def test_printed_values_need_comparable_data_and_stand_apart_on_others():
    assert "printed" not in lines(figures.taxonomy(taxonomy_table().assign(published=NAN)), 0)
    embedded = figures.encoder_collapse(depth_table("synthetic").assign(linear_standardised=NAN))
    assert set(lines(embedded, 0)) == {"random, ours", "AE, ours"}
    table, numbers = taxonomy_table(dataset="synthetic"), printed("taxonomy").set_index(OBJECTIVES)["UCLA"]
    figure = figures.taxonomy(table)
    assert "printed" not in lines(figure, 0)
    order = table.set_index("ours").loc[lines(figure, 0)["ours"], OBJECTIVES]
    expected = [numbers.get(tuple(row), NAN) for row in order.to_numpy()]
    np.testing.assert_array_equal(lines(figure, 1)["printed, NW-UCLA"], expected)


@pytest.mark.parametrize(("counts", "words", "caption"), [
    ([3, 1, 1, 3], "mean ± std of 3 seeds, else 1 seed", "where there are several; what has none is of 1 seed."),
    ([2, 1, 1, 5], "mean ± std of 2 to 5 seeds, else 1 seed", "where there are several; what has none is of 1 seed."),
    ([2, 3, 3, 3], "mean ± std of 2 to 3 seeds", "one standard deviation over seeds."),
    ([1, 1, 1, 1], "1 seed", None),
])
def test_seeds_in_words(counts, words, caption):
    table = pd.DataFrame({"ours": [1.0, 2.0, 3.0, 4.0, NAN], "n_seeds": [*counts, 0]})
    assert seeds_in_words(table) == words
    assert caption in spread_in_words(table) if caption else spread_in_words(table) == ""


def test_encoder_collapse_plots_the_table():
    figure = figures.encoder_collapse(depth_table().sample(frac=1, random_state=1))
    found = lines(figure, 0)
    np.testing.assert_array_equal(found["random, ours"], [51, 52, 53, 54, 55])
    np.testing.assert_array_equal(found["AE, printed"], [47, 43, 39, 35, 31])
    np.testing.assert_array_equal(found["random, standardised"], [61, 62, 63, 64, 65])
    np.testing.assert_array_equal(figure.axes[1].lines[1].get_ydata(), 0.1 ** np.arange(1, 6))
    assert figure.axes[1].get_yscale() == "log"
    for spread in (0.4, np.where(depth_table()["objectives"] == "AE", 0.0, 0.5)):  # varies little, or vanishes
        axes = figures.encoder_collapse(depth_table().assign(embedding_spread=spread)).axes[1]
        assert axes.get_yscale() == "linear" and axes.get_ylim()[0] == 0


def test_no_point_at_a_depth_covers_another():
    axes = figures.encoder_collapse(depth_table().assign(ours=50.0, published=50.0)).axes[0]
    points = [line for line in axes.lines if line.get_label().endswith((", ours", ", printed"))]
    across = np.sort([axes.transData.transform((line.get_xdata()[0], 50.0))[0] for line in points])
    widest = max(line.get_markersize() for line in points) * axes.figure.dpi / 72
    assert len(across) == 4 and (np.diff(across) > widest).all()


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
    log = contrast_log().assign(sequence_dictionary=[640] * 3 + [128] * 6)
    with pytest.raises(ValueError, match=r"one sequence_dictionary; this table has \[128, 640\]"):
        figures.sequence_contrast(log)


def test_poses_stand_upright_in_time_order_at_one_scale():
    figure = figures.pose_strip({"long": sequence(11), "short": sequence(3).reshape(3, -1)}, BONES, frames=6)
    figure.draw_without_rendering()
    rows = [[np.array(axes.collections[0].get_segments()) for axes in row if axes.collections]
            for row in np.reshape(figure.axes, (2, 6))]
    assert [len(row) for row in rows] == [6, 3]
    trunk = np.array(rows[0])[:, 0]
    np.testing.assert_allclose(trunk[:, 1] - trunk[:, 0], np.tile([0, 1], (6, 1)), atol=1e-6)
    np.testing.assert_allclose(trunk[:, 0], [[0, 0.2 * pose] for pose in range(6)], atol=1e-6)
    assert len({(axes.get_xlim(), axes.get_ylim(), axes.get_aspect()) for axes in figure.axes}) == 1
    assert [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()] == ["long", "short"]


@pytest.fixture(scope="module")
def curve():
    return glm.specification_curve()


def test_the_curve_marks_the_printed_statistic_and_its_model_and_fills_what_is_significant(curve):
    figure = figures.specifications(curve)
    top, rows, columns = figure.axes
    assert any(set(line.get_ydata()) == {2.394} for line in top.lines)
    assert [len(axes.get_yticks()) for axes in (rows, columns)] == [11, 5]
    assert [label.get_text() for label in rows.get_yticklabels()][2:6:3] == ["8 + AE+CE+AD", "8 + AD+CD"]
    marked, = {axes.lines[0].get_xdata()[0] for axes in figure.axes}
    assert dict(zip(rows.lines[-1].get_xdata(), rows.lines[-1].get_ydata(), strict=True))[marked] == 2
    shown = [line for line in top.lines if line.get_marker() != "None"]
    filled = [line for line in shown if line.get_markerfacecolor() != "white"]
    significant = curve.loc[curve["p_one_tailed"] < 0.05, "t"]
    assert sum(len(line.get_xdata()) for line in shown) == len(curve) == 220 > len(significant) > 0
    np.testing.assert_allclose(np.sort(np.concatenate([line.get_ydata() for line in filled])), np.sort(significant))
    ad = np.concatenate([np.array(line.get_xydata()) for line in shown if line.get_color() == style.VERMILLION])
    assert (np.diff(ad[ad[:, 0].argsort(), 1]) >= 0).all()


def cells(dataset="ucla", preset="paper", count=1):
    return [skeleton(name, 50.0 + 7 * place % 31 + seed, dataset=dataset, preset=preset, seed=seed)
            for seed in range(count) for place, name in enumerate(["random", *glm.OBJECTIVES])]


@pytest.mark.parametrize(("dataset", "preset", "panels"), [("ucla", "paper", 2), ("synthetic", "quick", 4)])
def test_effects_of_bundled_data_stand_apart(dataset, preset, panels):
    table = glm.forest(glm.usual_cells(placed(*cells(dataset, preset, 2))["taxonomy"], dataset))
    figure = figures.effects(table)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert len(titles) == panels and ("not comparable" in figure.get_suptitle()) == (dataset == "synthetic")
    assert {("Ours" in title and "Printed" in title) for title in titles} == {dataset == "ucla"}
    estimates = np.concatenate([line.get_xdata() for axes in figure.axes for line in axes.lines[1:]])
    np.testing.assert_allclose(np.sort(estimates), np.sort(table["estimate"]))


def test_files_of_models_name_their_cells_and_departing_cells_are_passed_over(tmp_path):
    rows = placed(*cells(), *cells("synthetic", "quick"), skeleton("CE", dataset="ntu", layers=3))
    written = figures.redraw_forests(rows, tmp_path, tmp_path)
    stems = ("glm_forest_ucla", "glm_forest_synthetic")
    assert {path.name for path in written} == {
        f"{stem}.{ending}" for stem, ending in itertools.product(stems, ("csv", "svg", "png"))}
    source = json.loads(Image.open(tmp_path / "glm_forest_ucla.png").text["Source"])
    keys = rows["taxonomy"].loc[rows["taxonomy"]["dataset"] == "ucla", "key"]
    assert set(source["cells"]) == set(keys) and (source["preset"], source["printed"]) == ("paper", "taxonomy.csv")
    assert figures.redraw_forests(placed(), tmp_path, tmp_path) == []


def test_the_last_bits_of_least_squares_change_no_file(tmp_path, monkeypatch, curve):
    """Among the curve's numbers are 26.1425 and others that end in a 5 behind the fifth digit."""
    files = []
    for factor in (1 - 1e-14, 1, 1 + 1e-14):
        fitted = curve.map(lambda value, by=factor: value * by if isinstance(value, float) else value)
        monkeypatch.setattr(glm, "specification_curve", lambda fitted=fitted: fitted)
        files.append([path.read_bytes() for path in figures.redraw_specifications({}, tmp_path, tmp_path)])
    assert files[0] == files[1] == files[2]
    written = pd.read_csv(tmp_path / "glm_specifications.csv")
    for name in written.select_dtypes("float"):
        assert written[name].to_numpy() == pytest.approx(curve[name].to_numpy(), rel=5.001e-5)


def compared(ours, published, std=1.0, n_seeds=3):
    rows = DataFrame({"objectives": ["random", "AE", "CE", "AD", "AE+CE"][: len(ours)], "ours": ours})
    rows = rows.assign(published=published, std=std, n_seeds=n_seeds, preset="paper")
    return rows.assign(difference=rows["ours"] - rows["published"])


@pytest.mark.parametrize(("ours", "published"), [
    ([99.0, 50, 60, 60, 80], [1.0, 55, 50, 70, 72]), ([0.0, 1, 2, 3, 4], [9.0, 10, 20, 30, 40]),
    ([1.0, 50, NAN, 70, 60], [1.0, 20, 30, NAN, 10]),
])
def test_agreement_in_order_is_scipys_correlation_without_random_and_what_is_missing(ours, published):
    known = [pair for pair in list(zip(ours, published, strict=True))[1:] if not np.isnan(pair).any()]
    expected = spearmanr(*zip(*known, strict=True)).statistic
    assert f"column is {expected:.2f} ({len(known)} objectives)" in figures.agreement(compared(ours, published))


def test_the_deviation_is_that_of_the_residuals_of_trained_objectives():
    """Of three seeds and of two: sqrt((2 x 1 + 1 x 4) / 3); random initialisation and single seeds do not count."""
    rows = compared([50.0, 50, 60, 70, 80], [50.0, 50, 61, 71, 81], [3.0, NAN, 1.0, 2.0, NAN], [9, 1, 3, 2, 1])
    text = figures.agreement(rows)
    assert "is 1.4 points (3 degrees of freedom; AE by their own seeds)." in text
    assert "is 1.4 points (3 degrees of freedom)." in figures.agreement(rows.query("objectives != 'AE'"))
    single = figures.agreement(compared([50.0, 60, 70], [1.0, 2, 3], std=NAN, n_seeds=1))
    assert single.endswith("One seed says nothing about how far numbers scatter.")


@pytest.mark.parametrize("seeds", [1, 2, 4, 10**6])
def test_a_mean_of_more_seeds_is_judged_more_strictly(seeds):
    """One entry of n seeds among others whose deviation is 2: two deviations are 4 sqrt(1 + 1/n) points."""
    for beyond, count in ((1e-3, 1), (-1e-3, 0)):
        ours = 50 + 4 * math.sqrt(1 + 1 / seeds) + beyond
        deviations = [9.0, 30.0, 2.0, 2.0 if seeds > 1 else NAN]
        rows = compared([1.0, 60, 60, ours], [1.0, 60, 60, 50], deviations, [3, 3, 3, seeds])
        assert f"run: {count} of 3 objectives" in figures.agreement(rows)


@pytest.mark.parametrize(("deviation", "count"), [(4.9, 1), (5.1, 0)])
def test_objectives_whose_seeds_fall_apart_are_judged_by_their_own(deviation, count):
    """AE of four seeds 11.18 from the print: two deviations of 5 times sqrt(1 + 1/4); those of CE are 0.1."""
    rows = compared([1.0, 60 + 10 * math.sqrt(1.25), 50], [1.0, 60, 50], [9.0, deviation, 0.1], [3, 4, 3])
    assert f"run: {count} of 2 objectives" in figures.agreement(rows)


def test_agreement_in_words():
    assert "no printed number" in figures.agreement(compared([50.0, 60], [NAN, NAN]))
    text = figures.agreement(compared([90.0, 50.1, 50, 50, 51], [50.0, 52.4, 52.32, 41, 50]))
    assert text.startswith("Paper recipe: ") and text.endswith("run: 2 of 4 objectives, AD (+9.0), CE (-2.3).")
    away = compared([50.0, 60, 70], [50.0, 61, 80]).assign(departures="head=mlp", preset="quick")
    assert figures.agreement(away).startswith("Quick recipe, head=mlp: ")


def test_last_bits_of_a_layout_leave_no_trace():
    positions = []
    for left in (0.1, 0.1 + 1e-16):
        figure = Figure()
        figure.add_axes((left, 0.1, 0.5, 0.5))
        positions.append(style.settled(figure).axes[0].get_position().bounds)
    assert 0.1 != 0.1 + 1e-16 and positions[0] == positions[1] == pytest.approx((0.1, 0.1, 0.5, 0.5))


def test_files_are_identical_when_nothing_changed_and_carry_their_origin(tmp_path):
    provenance = {"cells": ["a1", "b2"], "seeds": [0, 1], "preset": "paper", "dataset": "ucla"}
    caption, written, first = "Accuracy \N{EN DASH} by subset.", [], figures.taxonomy(taxonomy_table())
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 5, "svg.hashsalt": "other"}):
        for figure in (first, first, figures.taxonomy(taxonomy_table())):
            svg, png = style.save(figure, tmp_path / "new" / "taxonomy_ucla", caption, provenance)
            written.append((svg.read_bytes(), png.read_bytes()))
        assert matplotlib.rcParams["font.size"] == 20
    assert (svg.name, png.name) == ("taxonomy_ucla.svg", "taxonomy_ucla.png")
    assert written[0] == written[1] == written[2]
    image = Image.open(png)
    assert image.text["Description"] == caption and json.loads(image.text["Source"]) == provenance
    assert round(image.info["dpi"][0]) == 300 and image.width == int(style.COLUMN * 300)
    tags = {element.tag.rpartition("}")[2]: element for element in ElementTree.parse(svg).iter()}
    assert tags["description"].text == caption and "date" not in tags
    assert json.loads(" ".join(tags["source"].itertext())) == provenance
