"""Pictures: what the engine draws of made-up rows, and that every committed picture shows its committed numbers."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible
from pandas import DataFrame

from repro import experiments, papers
from repro.report import plots, style
from repro.report.claims import SHORTENED, Results, compared
from repro.report.plots import LINE, Plot

FIGURES = Path(__file__).parents[2] / "figures"
EXPERIMENTS = sorted(path.stem for path in FIGURES.glob("*.png") if path.stem in papers.saved())
PICTURES = {name: declared for name, declared in papers.pictures().items() if declared.plot}
VALUES = {  # of some pictures, the column of the committed rows whose means over seeds are drawn, and of which rows
    "along_training_ucla": ("value", "entry == objectives and measure in ['linear', 'linear_best']"),
    "sequence_contrast_ucla": ("CD", "id == id"), "objective_parts_cifar10": ("InfoNCE", "id == id"),
    "category_curves_multiomniglot": ("categories_audio", "id == id"),
    "sampled_keys_cifar10": ("inside", "id == id"),
    "post_hoc_diversity_multiomniglot": ("value", "measure == 'categories'"), "glm_forest_ucla": ("estimate", "t == t"),
}
BY = ["objectives", "measure", "td_queue", "frequency", "sampler", "posterior", "batch", "step", "epoch", "keys",
      "rows", "source", "term"]
ROWS = DataFrame({
    "method": ["a", "b"] * 2, "size": [10, 10, 20, 20], "target": "x", "ours": [50.0, 51.0, 50.5, 52.0],
    "std": [0.5, 0.2, math.nan, 0.1], "n_seeds": [3, 3, 1, 3], "printed": [50.1, math.nan, 51.2, math.nan],
    "preset": "paper", "dataset": "ucla",
})
LINES = Plot(caption="Lines.", x="size", hue="method", looks={"b": style.OURS})
NAMES = Plot(caption="Names.", x="method", panel="size", names={"a": "the first"})


def assert_among(values, plotted):
    plotted = np.asarray(plotted, float)
    assert len(values) and all(np.nanmin(np.abs(plotted - value)) < 1e-9 for value in values)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_picture_of_an_experiment_is_legible_and_shows_the_committed_numbers(name):
    table = experiments.find(name).declared
    rows = experiments.results(name).drop_duplicates([*table.shown, "preset", "dataset"])
    plot = table.drawing
    assert_legible(plot(rows))
    if not isinstance(plot, Plot):
        return
    written = pd.read_csv(FIGURES / f"{name}.csv").drop_duplicates([*table.shown, "preset", "dataset"])
    if plot.minus and plot.minus in set(written[plot.hue]):  # the others are differences
        written = written[written[plot.hue] == plot.minus]
    assert_among(written["ours"].dropna(), plot.data(rows)["value"])


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_legible_and_shows_the_means_over_seeds_of_its_committed_rows(name):
    written, plot = pd.read_csv(FIGURES / f"{name}.csv", keep_default_na=False, na_values=[""]), PICTURES[name].plot
    assert_legible(plot(written))
    if name in VALUES:
        column, condition = VALUES[name]
        shown = written.query(condition)
        means = shown.groupby([field for field in BY if field in shown])[column].mean()
        assert_among(means, plot.data(written)["value"])


def test_data_are_those_of_the_rows_and_nothing_printed_stands_beside_bundled_data():
    data = LINES.data(ROWS)
    pd.testing.assert_frame_equal(
        data[["x", "value", "std", "n_seeds", "printed"]],
        ROWS[["size", "ours", "std", "n_seeds", "printed"]].set_axis(
            ["x", "value", "std", "n_seeds", "printed"], axis="columns"))
    drawn = {line.get_label(): line.get_ydata() for line in LINES(ROWS).axes[0].lines}
    np.testing.assert_array_equal(drawn["ours"], [51.0, 52.0])
    np.testing.assert_array_equal(drawn["a, printed"], [50.1, 51.2])
    bundled = LINES(ROWS.assign(dataset="synthetic", preset="quick", printed=math.nan))
    assert "a, printed" not in [line.get_label() for line in bundled.axes[0].lines]
    assert "not comparable" in "".join(text.get_text() for text in bundled.texts)


def test_of_frames_mean_and_deviation_over_seeds_are_drawn():
    steps = np.arange(40)
    frame = pd.concat(DataFrame({"size": steps, "ours": steps + 2.0 * seed, "seed": seed, "dataset": "ucla",
                                 "preset": "paper"}) for seed in (0, 1, 2))
    plot = Plot(caption="Curves.", x="size")
    data = plot.data(frame)
    assert data["value"].tolist() == (steps + 2.0).tolist() and set(data["std"]) == {2.0} and len(data) == 40
    np.testing.assert_array_equal(plot(frame).axes[0].lines[0].get_ydata(), steps + 2.0)


def test_differences_have_twice_the_standard_error_of_two_means():
    rows = ROWS.assign(std=[0.3, 0.4, math.nan, 0.1], n_seeds=[9, 4, 1, 3])
    plot = Plot(caption="Differences.", x="size", hue="method", minus="a")
    data = plot.data(rows)
    assert data.loc[data[LINE] == "a", "value"].tolist() == [50.0, 50.5]
    less = data[data[LINE] == "b"]
    assert less["value"].tolist() == [1.0, 1.5]
    assert less["std"].tolist() == pytest.approx([2 * (0.09 / 9 + 0.16 / 4) ** 0.5, math.nan], nan_ok=True)
    assert len(plot(rows).axes) == 2
    assert plots.leading(plot, data) == "Points from a: b +1.0 to +1.5"
    assert plot.data(rows[1:])["value"].tolist() == [51.0, 50.5, 52.0]  # of the first place there is no "a"


def test_differences_of_seeds_that_share_their_data_have_the_error_of_their_verdict():
    """Single runs of grids of characters: a seed is high with every method, and leaves little between them."""
    draws, noise = np.random.default_rng(0), [3.0, -5.0, 4.0]
    rows = DataFrame([{"method": method, "size": size, "target": target, "seed": seed, "printed": math.nan,
                       "ours": 60 + lead + noise[seed] + 0.1 * draws.standard_normal()}
                      for target in ("x", "y") for size in (10, 20) for method, lead in (("a", 0), ("b", 1), ("c", 2))
                      for seed in range(3)]).assign(dataset="multiomniglot", preset="quick")
    plot = Plot(caption="Differences.", x="size", hue="method", panel="target", minus="a")
    data = plot.data(rows)
    less = data[data[LINE] == "b"]
    results = Results(rows, ["method", "size", "target"], SHORTENED, paired=True)
    found = compared(results, {"method": "b"}, {"method": "a"})
    assert less["value"].tolist() == pytest.approx([number.value for number in found.values()])
    assert less["std"].tolist() == pytest.approx([2 * number.error for number in found.values()])
    assert less["unit"].str.endswith("twice the paired error").all() and data["n_seeds"].eq(3).all()
    unpaired = plot.data(rows.assign(dataset="ucla"))
    assert unpaired.loc[unpaired[LINE] == "b", "std"].min() > 5 * less["std"].max()


def test_an_axis_with_one_number_has_one_place_for_all():
    """They stand beside one another, and within a tenth of the axis around the one tick."""
    several = pd.concat([ROWS, ROWS.assign(method="c"), ROWS.assign(method="d")])
    for logarithmic in (False, True):
        plot = Plot(caption="Lines.", x="size", hue="method", logarithmic=logarithmic)
        axes, = plot(several[several["size"] == 10]).axes
        low, high = axes.get_xlim()
        places = [place for line in axes.lines if line.get_linestyle() == "-" for place in line.get_xdata()]
        assert len({*places}) == 4 and max(abs(place - 10) for place in places) < 0.1 * (high - low)
        assert axes.get_xticks().tolist() == [10] and low < 10 < high


def test_what_is_to_be_known_of_panels_stands_below_them():
    figure = Plot(caption="", x="size", hue="method", foot="Scales differ.")(ROWS)
    assert figure.texts[-1].get_text().startswith("Scales differ.\nNW-UCLA")
    assert PICTURES["along_training_ucla"].plot.foot == "Rows of panels have scales of their own."


def test_names_go_downwards_in_their_order_and_each_panel_has_its_own():
    figure = NAMES(ROWS)
    for axes, size in zip(figure.axes, (10, 20), strict=True):
        assert axes.get_title(loc="left") == str(size) and axes.get_ylim()[0] > axes.get_ylim()[1]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["the first", "b"]


def test_an_axis_of_accuracies_spans_five_points():
    assert np.ptp(LINES(ROWS).axes[0].get_ylim()) >= 5 and np.ptp(NAMES(ROWS).axes[0].get_xlim()) >= 5


def test_no_point_covers_another_and_names_without_a_look_get_one():
    axes, = LINES(pd.concat([ROWS, ROWS.assign(method="unheard of")])).axes
    places = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "-"]
    assert len(places) == 3 == len(set(places))
    looks = style.looks_of(["new", "known", "newer", "new"], {"known": style.OURS})
    assert [*looks] == ["known", "new", "newer"] and looks["known"] is style.OURS and looks["new"].label == "new"
    assert len({(look.colour, look.marker) for look in looks.values()}) == 3


def test_rows_of_several_data_sets_are_refused():
    with pytest.raises(ValueError, match=r"one dataset.*\['ntu', 'ucla'\]"):
        LINES(ROWS.assign(dataset=["ucla", "ucla", "ntu", "ntu"]))


@pytest.mark.parametrize(("second", "expected"), [
    (51.0, "B is highest"), (51.8, "The highest two are closer than seeds scatter"),
])
def test_the_highest_is_named_where_it_is_told_from_the_next(second, expected):
    """Both of deviation 0.3 over nine seeds: twice the error of the difference is 0.28."""
    rows = ROWS.assign(ours=[50.0, 52.0, second, 51.5], std=0.3, n_seeds=9, method=["a", "b"] * 2)
    plot = Plot(caption="", x="size", hue="method")
    assert plots.leading(plot, plot.data(rows)) == expected
    assert plots.leading(plot, plot.data(rows.assign(std=math.nan))) == "B is highest, of one seed"
    next_alone = rows.assign(std=[math.nan, 0.3] * 2)  # of a, which is lower
    assert plots.leading(plot, plot.data(next_alone)) == "B is highest, the next of one seed"


def test_of_one_line_it_is_said_where_it_is_highest():
    rows = DataFrame({"size": [256, 2048], "ours": [70.0, 60.0], "std": 0.3, "n_seeds": 9, "dataset": "ntu"})
    plot = Plot(caption="", x="size", xlabel="keys in the dictionary")
    assert plots.leading(plot, plot.data(rows)) == "Highest at 256 (keys in the dictionary)"


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


def test_every_table_and_picture_has_a_caption():
    tables = papers.tables().values()
    undrawn = [table.name for table in tables if table.drawing is None]
    assert undrawn == ["similarity_variance"]  # of which a frame is drawn
    declared = [*(table.drawing for table in tables), *(picture.plot for picture in PICTURES.values())]
    assert all(plots.caption_of(drawn).endswith(".") for drawn in declared if drawn)
