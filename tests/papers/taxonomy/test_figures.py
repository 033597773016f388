import itertools
import json
import math
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
import torch
from drawn import lines
from matplotlib.figure import Figure
from pandas import DataFrame
from PIL import Image
from scipy.stats import spearmanr

from repro.papers.taxonomy import figures, glm, pictures
from repro.report import style
from repro.report.style import seeds_in_words, spread_in_words
from repro.run import frames

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


def sequence(length=12) -> torch.Tensor:
    pelvis, neck, left, right = [0, 0, 0], [0, 0, 1], [0.4, 0.2, 0.6], [-0.4, 0.2, 0.6]
    return torch.tensor([pelvis, neck, left, right]).repeat(length, 1, 1) + torch.arange(length).reshape(-1, 1, 1) / 10


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


def test_differences_from_print_have_a_panel_where_they_may_be_compared():
    table = taxonomy_table()
    table["published"] = table["ours"] + np.arange(16)
    differences = figures.taxonomy(table).axes[1].lines[-1].get_ydata()
    np.testing.assert_allclose(np.sort(differences), -np.arange(15.0, -1, -1))
    for alone in (table.assign(published=NAN), table.assign(dataset="synthetic")):
        figure = figures.taxonomy(alone)
        assert len(figure.axes) == 2 and "printed" not in lines(figure, 0)


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
    figure = pictures.specifications(curve)
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


@pytest.mark.parametrize(("dataset", "preset", "panels"), [("ucla", "paper", 2), ("synthetic", "quick", 4)])
def test_effects_of_bundled_data_stand_apart(dataset, preset, panels):
    rows = [glm.SUBSETS.assign(objectives=glm.OBJECTIVES, linear=[50.0 + 7 * place % 31 + seed for place in range(15)])
            for seed in range(2)]
    table = glm.forest(pd.concat(rows).assign(dataset=dataset, preset=preset))
    figure = pictures.effects(table)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert len(titles) == panels and any("not comparable" in text.get_text() for text in figure.texts) == (
        dataset == "synthetic")
    assert {("Ours" in title and "Printed" in title) for title in titles} == {dataset == "ucla"}
    estimates = np.concatenate([line.get_xdata() for axes in figure.axes for line in axes.lines[1:]])
    np.testing.assert_allclose(np.sort(estimates), np.sort(table["estimate"]))


def test_the_last_bits_of_least_squares_change_no_file(tmp_path, monkeypatch, curve):
    """Among the curve's numbers are 26.1425 and others that end in a 5 behind the fifth digit."""
    files = []
    for factor in (1 - 1e-14, 1, 1 + 1e-14):
        fitted = curve.map(lambda value, by=factor: value * by if isinstance(value, float) else value)
        monkeypatch.setattr(glm, "specification_curve", lambda fitted=fitted: fitted)
        rows = pictures.PICTURES["glm_specifications"].rows(DataFrame())
        files.append(frames.write(rows, tmp_path / "glm_specifications.csv").read_bytes())
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
    assert f"column is {expected:.2f} ({len(known)} objectives)" in pictures.agreement(compared(ours, published))


def test_the_deviation_is_that_of_the_residuals_of_trained_objectives():
    """Of three seeds and of two: sqrt((2 x 1 + 1 x 4) / 3); random initialisation and single seeds do not count."""
    rows = compared([50.0, 50, 60, 70, 80], [50.0, 50, 61, 71, 81], [3.0, NAN, 1.0, 2.0, NAN], [9, 1, 3, 2, 1])
    text = pictures.agreement(rows)
    assert "is 1.4 points (3 degrees of freedom; AE by their own seeds)." in text
    assert "is 1.4 points (3 degrees of freedom)." in pictures.agreement(rows.query("objectives != 'AE'"))
    single = pictures.agreement(compared([50.0, 60, 70], [1.0, 2, 3], std=NAN, n_seeds=1))
    assert single.endswith("One seed says nothing about how far numbers scatter.")


@pytest.mark.parametrize("seeds", [1, 2, 4, 10**6])
def test_a_mean_of_more_seeds_is_judged_more_strictly(seeds):
    """One entry of n seeds among others whose deviation is 2: two deviations are 4 sqrt(1 + 1/n) points."""
    for beyond, count in ((1e-3, 1), (-1e-3, 0)):
        ours = 50 + 4 * math.sqrt(1 + 1 / seeds) + beyond
        deviations = [9.0, 30.0, 2.0, 2.0 if seeds > 1 else NAN]
        rows = compared([1.0, 60, 60, ours], [1.0, 60, 60, 50], deviations, [3, 3, 3, seeds])
        assert f"run: {count} of 3 objectives" in pictures.agreement(rows)


@pytest.mark.parametrize(("deviation", "count"), [(4.9, 1), (5.1, 0)])
def test_objectives_whose_seeds_fall_apart_are_judged_by_their_own(deviation, count):
    """AE of four seeds 11.18 from the print: two deviations of 5 times sqrt(1 + 1/4); those of CE are 0.1."""
    rows = compared([1.0, 60 + 10 * math.sqrt(1.25), 50], [1.0, 60, 50], [9.0, deviation, 0.1], [3, 4, 3])
    assert f"run: {count} of 2 objectives" in pictures.agreement(rows)


def test_agreement_in_words():
    assert "no printed number" in pictures.agreement(compared([50.0, 60], [NAN, NAN]))
    text = pictures.agreement(compared([90.0, 50.1, 50, 50, 51], [50.0, 52.4, 52.32, 41, 50]))
    assert text.startswith("Paper recipe: ") and text.endswith("run: 2 of 4 objectives, AD (+9.0), CE (-2.3).")
    away = compared([50.0, 60, 70], [50.0, 61, 80]).assign(departures=[{"head": "mlp"}] * 3, preset="quick")
    assert pictures.agreement(away).startswith("Quick recipe, head mlp: ")


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
