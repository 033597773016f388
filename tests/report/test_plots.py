"""Pictures: what is drawn of made-up rows, and that every committed picture shows its committed numbers."""

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible, error_bars, lines
from matplotlib import pyplot as plt
from pandas import DataFrame

from repro import experiments, papers
from repro.papers.drawing import finding
from repro.report import plots, style
from repro.report.claims import SHORTENED, Results, compared
from repro.report.plots import Plot

FIGURES = Path(__file__).parents[2] / "figures"
EXPERIMENTS = sorted(path.stem for path in FIGURES.glob("*.png") if path.stem in papers.saved())
PICTURES = {name: picture for name, picture in papers.pictures().items() if (FIGURES / f"{name}.png").exists()}
VALUES = {  # of some pictures, the column of the committed rows whose means over seeds are drawn, and of which rows
    "along_training_ucla": ("value", "entry == objectives and measure in ['linear', 'linear_best']"),
    "learning_curves_ucla": ("value", "id == id"),
    "sequence_contrast_ucla": ("CD", "id == id"), "objective_parts_cifar10": ("InfoNCE", "id == id"),
    "category_curves_multiomniglot": ("categories_audio", "id == id"),
    "sampled_keys_cifar10": ("inside", "id == id"),
    "post_hoc_diversity_multiomniglot": ("value", "measure == 'categories'"),
    "glm_forest_ucla": ("estimate", "t == t"),
}
BY = ["unit", "objectives", "measure", "td_queue", "frequency", "sampler", "posterior", "batch", "step", "epoch",
      "keys", "iterations", "target", "rows", "source", "term"]
ROWS = DataFrame({
    "method": ["a", "b"] * 2, "size": [10, 10, 20, 20], "target": "x", "ours": [50.0, 51.0, 50.5, 52.0],
    "std": [0.5, 0.2, math.nan, 0.1], "n_seeds": [3, 3, 1, 3], "printed": [50.1, math.nan, 51.2, math.nan],
    "preset": "paper", "dataset": "ucla",
})
ACROSS = Plot(caption="Lines.", x="size", hue="method", lines={"b": "B"})
DOWN = Plot(caption="Names.", x="method", panel="size", names={"a": "the first"})


def drawn_values(figure) -> np.ndarray:
    """Both coordinates of every point of a line."""
    parts = [part for axes in figure.axes for line in axes.lines for part in (line.get_xdata(), line.get_ydata())]
    return np.concatenate([np.ravel(np.asarray(part, float)) for part in parts if len(np.ravel(part))])


def assert_among(values, plotted):
    assert len(values) and all(np.nanmin(np.abs(plotted - value)) < 1e-8 for value in values)


def assert_borne_out(title, rows, figure):
    """Numbers of a title, as typed, stand in the rows, are drawn, or stand below the panels."""
    texts = " ".join([figure.get_supxlabel(), *(text.get_text() for key in figure.legends for text in key.get_texts())])
    known = [rows.select_dtypes("number").to_numpy().ravel(), drawn_values(figure),
             [float(number) for number in re.findall(r"\d+(?:\.\d+)?", texts)]]
    if "p_one_tailed" in rows:  # models, and in how many a term is significant
        known.append([*rows[rows["p_one_tailed"] < 0.05].groupby("term").size(), len(rows) / 4])
    for number in re.findall(r"(?<![\w-])\d[\d,]*(?:\.\d+)?", title.replace("(1 ", "")):
        typed, decimals = float(number.replace(",", "")), len(number.partition(".")[2])
        off = np.abs(np.abs(np.concatenate(known)) - typed)
        assert (off <= 0.5 * 10**-decimals + 1e-9).any(), (title, number)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_picture_of_an_experiment_is_legible_and_shows_the_committed_numbers(name):
    rows = experiments.results(name)
    (plot, shown), title = plots.in_settings(experiments.find(name).declared, rows), finding(name, rows)
    figure = plot(shown, title)
    assert title and assert_legible(figure) is None
    assert_borne_out(title, rows, figure)
    written = pd.read_csv(FIGURES / f"{name}.csv")
    if isinstance(plot, Plot) and plot.minus in {*written.get(plot.hue, ())}:  # the others are differences
        written = written[written[plot.hue] == plot.minus]
    assert_among(written["ours"].dropna(), drawn_values(figure))


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_legible_and_shows_the_means_over_seeds_of_its_committed_rows(name):
    rows = pd.read_csv(FIGURES / f"{name}.csv", dtype={"id": str}, keep_default_na=False, na_values=[""])
    title = finding(name, rows)
    figure = PICTURES[name].plot(rows, title)
    assert title and assert_legible(figure) is None
    assert_borne_out(title, rows, figure)
    if name in VALUES:
        column, condition = VALUES[name]
        shown = rows.query(condition)
        assert_among(shown.groupby([field for field in BY if field in shown])[column].mean(), drawn_values(figure))


def test_other_rows_have_no_finding():
    rows = experiments.results("taxonomy_ucla")
    assert "AE+AD+CD" in finding("taxonomy_ucla", rows)
    assert finding("taxonomy_ucla", rows.assign(ours=rows["ours"] + 0.1)) == finding("taxonomy", rows) == ""


def test_what_is_drawn_is_ours_with_its_deviation_and_open_what_is_printed():
    figure = ACROSS(ROWS)
    drawn = lines(figure, 0)
    np.testing.assert_allclose(drawn["B"], [51.0, 52.0])
    np.testing.assert_allclose(drawn["a, printed"], [50.1, 51.2])
    np.testing.assert_allclose(error_bars(figure, 0), [[49.5, 50.5], [50.8, 51.2], [51.9, 52.1]])
    faces = {line.get_label(): line.get_markerfacecolor() for line in figure.axes[0].lines}
    assert faces["a, printed"] == "white" != faces["a"]
    bundled = ACROSS(ROWS.assign(dataset="synthetic", preset="quick", printed=math.nan))
    assert "a, printed" not in lines(bundled, 0) and "not comparable" in bundled.get_supxlabel().replace("\n", " ")


def test_of_frames_mean_and_deviation_over_seeds_are_drawn():
    steps = np.arange(40)
    frame = pd.concat(DataFrame({"size": steps, "ours": steps + 2.0 * seed, "seed": seed, "dataset": "ucla",
                                 "preset": "paper"}) for seed in (0, 1, 2))
    axes, = Plot(caption="Curves.", x="size")(frame).axes
    np.testing.assert_allclose(axes.lines[0].get_ydata(), steps + 2.0)
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(0) and band[:, 1].max() == pytest.approx(39 + 4)


def test_differences_have_twice_the_standard_error_of_two_means():
    rows = ROWS.assign(std=[0.3, 0.4, math.nan, 0.1], n_seeds=[9, 4, 1, 3])
    plot = Plot(caption="Differences.", x="size", hue="method", minus="a")
    figure = plot(rows)
    np.testing.assert_allclose(lines(figure, 0)["a"], [50.0, 50.5])
    np.testing.assert_allclose(lines(figure, 1)["b"], [1.0, 1.5])
    error = 2 * (0.09 / 9 + 0.16 / 4) ** 0.5
    np.testing.assert_allclose(error_bars(figure, 1), [[1 - error, 1 + error]])
    assert plot.data(rows[1:])["value"].tolist() == [51.0, 50.5, 52.0]  # of the first place there is no "a"


@pytest.mark.parametrize("settings", [False, True])
def test_differences_of_seeds_that_share_their_data_have_the_error_of_their_verdict(settings):
    """Single runs of grids of characters: a seed is high with every method, and leaves little between them."""
    draws, noise = np.random.default_rng(0), [3.0, -5.0, 4.0]
    rows = DataFrame([{"method": method, "size": size, "target": target, "seed": seed, "printed": math.nan,
                       "ours": 60 + lead + noise[seed] + 0.1 * draws.standard_normal()}
                      for target in ("x", "y") for size in (10, 20) for method, lead in (("a", 0), ("b", 1), ("c", 2))
                      for seed in range(3)]).assign(dataset="multiomniglot", preset="quick")
    plot = Plot(caption="Differences.", x="size", hue="method", panel="target", minus="a")
    shown = rows.assign(setting=rows["size"].map("size {}".format), size=1) if settings else rows
    data = plot.data(shown)
    less = data[data["line"] == "b"].sort_values("panel", kind="stable")
    results = Results(rows, ["method", "size", "target"], SHORTENED, paired=True)
    found = [*compared(results, {"method": "b"}, {"method": "a"}).values()]
    assert sorted(less["value"]) == pytest.approx(sorted(number.value for number in found))
    assert sorted(less["std"]) == pytest.approx(sorted(2 * number.error for number in found))
    assert less["unit"].str.endswith("± 2 paired errors").all() and data["n_seeds"].eq(3).all()
    unpaired = plot.data(shown.assign(dataset="ucla"))
    assert unpaired.loc[unpaired["line"] == "b", "std"].min() > 5 * less["std"].max()


@pytest.mark.parametrize("logarithmic", [False, True])
def test_an_axis_with_one_number_has_one_place_for_all(logarithmic):
    """They stand beside one another, and within a tenth of the axis around the one tick."""
    several = pd.concat([ROWS, ROWS.assign(method="c"), ROWS.assign(method="d")])
    axes, = Plot(caption="", x="size", hue="method", logarithmic=logarithmic)(several[several["size"] == 10]).axes
    low, high = axes.get_xlim()
    places = [place for line in axes.lines if line.get_linestyle() == "-" and line.get_marker() != "_"
              for place in line.get_xdata()]
    assert len({*places}) == 4 and max(abs(place - 10) for place in places) < 0.1 * (high - low)
    assert axes.get_xticks().tolist() == [10] and low < 10 < high


def test_names_go_downwards_in_their_order_and_each_panel_has_its_own():
    for axes, size in zip(DOWN(ROWS).axes, (10, 20), strict=True):
        assert axes.get_title(loc="left") == str(size) and axes.get_ylim()[0] > axes.get_ylim()[1]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["the first", "b"]


def test_ticks_stand_at_the_values_and_neighbours_share_their_axis_which_spans_five_points():
    figure = Plot(caption="", x="size", panel="method", xlabel="keys", columns=2)(ROWS)
    first, second = figure.axes
    assert first.get_xticks().tolist() == second.get_xticks().tolist() == [10, 20]
    assert first.get_ylim() == second.get_ylim() and np.ptp(first.get_ylim()) >= 5
    assert np.ptp(DOWN(ROWS).axes[0].get_xlim()) >= 5


def test_a_method_keeps_its_colour_and_new_ones_are_told_apart():
    def colours(*methods):
        axes, = ACROSS(pd.concat([ROWS.assign(method=method) for method in methods])).axes
        return {line.get_label(): (line.get_color(), line.get_marker(), tuple(line.get_xdata())) for line in axes.lines
                if not line.get_label().startswith("_") and "printed" not in line.get_label()}

    alone, both = colours("b"), colours("new", "b", "newer")
    assert alone["B"][:2] == both["B"][:2] and [*both] == ["B", "new", "newer"]
    assert len({look[:2] for look in both.values()}) == len({look[2] for look in both.values()}) == 3


def test_what_it_is_drawn_from_lies_inside_the_canvas_whatever_the_reader_prefers(tmp_path):
    with plt.rc_context({"font.size": 30, "savefig.dpi": 50, "axes.grid": True}):
        figure = ACROSS(ROWS, "A title that somebody wrote of these rows, and that needs a second line")
        figure.savefig(tmp_path / "drawn.png")
        assert plt.rcParams["font.size"] == 30
    assert_legible(figure)
    assert figure.get_supxlabel().startswith("NW-UCLA")


def test_no_figure_stays_open_whether_it_is_drawn_or_fails():
    open_before = plt.get_fignums()
    ACROSS(ROWS)
    with pytest.raises(KeyError, match="ours"):
        Plot(caption="", x="size", prepare=lambda rows: plt.figure() and rows.drop(columns="ours"))(ROWS)
    assert plt.get_fignums() == open_before


def test_rows_of_several_data_sets_are_refused():
    with pytest.raises(ValueError, match=r"one dataset.*\['ntu', 'ucla'\]"):
        ACROSS(ROWS.assign(dataset=["ucla", "ucla", "ntu", "ntu"]))


@pytest.mark.parametrize(("changes", "words"), [
    ({"changed": [{"td_queue": "frozen_noise", "ad_weight": 25.0}] * 4},
     "NW-UCLA; paper recipe; mean ± std of 1 to 3 seeds; dictionary never refreshed; weight of AD 25"),
    ({"dataset": "multiomniglot", "changed": [{"view": "characters"}] * 4, "n_seeds": 1},
     "grids of characters; paper recipe; 1 seed; labels leak: SMoCo's views are other drawings of the same characters"),
    ({"dataset": "cifar10 (mine.npz)", "n_seeds": 1},
     "CIFAR-10 (a part or copy); paper recipe, not a reproduction; 1 seed"),
    ({"dataset": "digits", "preset": ["quick", "paper"] * 2, "n_seeds": 0, "ours": math.nan},
     "bundled digits; paper and quick recipe, not comparable with the printed numbers; not run"),
])
def test_the_foot_says_what_was_drawn_without_names_of_fields(changes, words):
    assert style.heading(ROWS.assign(**changes)).replace("\n", " ") == words
