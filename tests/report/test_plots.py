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
from repro.report.plots import Plot
from repro.run.export import everything

FIGURES = Path(__file__).parents[2] / "figures"
EXPERIMENTS = sorted(path.stem for path in FIGURES.glob("*.png") if path.stem in papers.saved())
PICTURES = papers.pictures()
ROWS = DataFrame({
    "method": ["a", "b"] * 2, "size": [10, 10, 20, 20], "target": "x", "ours": [50.0, 51.0, 50.5, 52.0],
    "std": [0.5, 0.2, math.nan, 0.1], "n_seeds": [3, 3, 1, 3], "published": [50.1, math.nan, 51.2, math.nan],
    "preset": "paper", "dataset": "ucla",
})
LINES = Plot(caption="Lines.", x="size", hue="method", looks={"b": style.OURS})
NAMES = Plot(caption="Names.", x="method", panel="size", down=True, names={"a": "the first"})


def marks(figure):
    """Every number that a line, a bar of error or a text of the figure stands at."""
    found = [np.asarray(values, float) for axes in figure.axes for line in axes.lines for values in line.get_data()]
    for axes in figure.axes:
        for text in axes.texts:
            words = text.get_text().split("\n")
            found.append(np.array([float(words[0])]) if words[0].replace(".", "").isdigit() else np.array([]))
    known = np.unique(np.concatenate(found))
    return known[~np.isnan(known)]


def assert_stand_in(values, figure, digits=1e-9):
    known = marks(figure)
    for value in values:
        assert np.abs(known - value).min() <= digits, value


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_picture_of_an_experiment_is_legible_and_shows_the_committed_numbers(name):
    table = experiments.find(name).declared
    rows = experiments.results(name).drop_duplicates([*table.shown, "preset", "dataset"])
    figure = plots.picture(table.drawing, rows)
    assert_legible(figure)
    written = pd.read_csv(FIGURES / f"{name}.csv").drop_duplicates([*table.shown, "preset", "dataset"])
    values = written["ours"].dropna()
    if name.startswith(("category_diversity", "diversity_balanced", "diversity_zipf")):
        values = 100 * values / written["batch"]
    assert_stand_in(values, figure, 0.005 if name.startswith("temperature_grid") else 1e-9)


@pytest.mark.parametrize("name", [name for name, declared in PICTURES.items() if isinstance(declared.plot, Plot)])
def test_a_picture_shows_the_means_over_seeds_of_its_committed_rows(name):
    written, plot = pd.read_csv(FIGURES / f"{name}.csv", keep_default_na=False, na_values=[""]), PICTURES[name].plot
    rows = PICTURES[name].rows(everything()) if name == "taxonomy_variants_ucla" else written
    figure = plot.draw(rows)
    assert_legible(figure)
    columns = {
        "along_training_ucla": ["objectives", "measure", "epoch"], "sequence_contrast_ucla": ["key", "epoch"],
        "objective_parts_cifar10": ["epoch"],
        "category_curves_multiomniglot": ["sampler", "frequency", "step"], "sampled_keys_cifar10": ["keys"],
        "post_hoc_diversity_multiomniglot": ["sampler", "posterior", "batch", "frequency", "step"],
        "pretext_accuracy_synthetic": ["query", "category"], "taxonomy_variants_ucla": ["objectives", "departures"],
        "predicted_diversity_multiomniglot": ["frequency", "batch", "step", "choice"],
    }.get(name, ["rows", "source", "term"])
    value = {"along_training_ucla": "value", "sequence_contrast_ucla": "CD", "objective_parts_cifar10": "InfoNCE",
             "sampled_keys_cifar10": "inside", "post_hoc_diversity_multiomniglot": "value",
             "pretext_accuracy_synthetic": "accuracy", "taxonomy_variants_ucla": "ours",
             "predicted_diversity_multiomniglot": "missed", "glm_forest_ucla": "estimate",
             "glm_forest_synthetic": "estimate"}.get(name, "categories_video")
    if name == "along_training_ucla":
        written = written[(written["entry"] == written["objectives"]) & written["measure"].str.startswith("linear")]
        written = written[written["measure"] != "linear_standardised"]
    if name == "post_hoc_diversity_multiomniglot":
        written = written[written["measure"] == "categories"]
    means = written.groupby(columns)[value].mean()
    if name == "pretext_accuracy_synthetic":
        means = means["video"].nlargest(10)
    assert_stand_in(means, figure)


def test_data_are_those_of_the_rows_and_nothing_printed_stands_beside_bundled_data():
    data = LINES.data(ROWS)
    pd.testing.assert_frame_equal(
        data[["x", "value", "std", "n_seeds", "printed"]],
        ROWS[["size", "ours", "std", "n_seeds", "published"]].set_axis(
            ["x", "value", "std", "n_seeds", "printed"], axis="columns"))
    assert_stand_in([50.1, 51.2, *ROWS["ours"]], LINES.draw(ROWS))
    bundled = LINES.draw(ROWS.assign(dataset="synthetic", preset="quick"))
    assert 50.1 not in marks(bundled)
    assert "not comparable" in "".join(text.get_text() for text in bundled.texts)


def test_of_frames_mean_and_deviation_over_seeds_are_drawn():
    steps = np.arange(40)
    frame = pd.concat(DataFrame({"size": steps, "ours": steps + 2.0 * seed, "seed": seed, "dataset": "ucla",
                                 "preset": "paper"}) for seed in (0, 1, 2))
    plot = Plot(caption="Curves.", x="size")
    data = plot.data(frame)
    assert data["value"].tolist() == (steps + 2.0).tolist() and set(data["std"]) == {2.0} and len(data) == 40
    assert_stand_in(data["value"], plot.draw(frame))


def test_names_go_downwards_in_their_order_and_each_panel_has_its_own():
    figure = NAMES.draw(ROWS[::-1])
    for axes, size in zip(figure.axes, (20, 10), strict=True):
        assert axes.get_title(loc="left") == str(size) and axes.get_ylim()[0] > axes.get_ylim()[1]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["the first", "b"]


@pytest.mark.parametrize("plot", [LINES, NAMES])
def test_an_axis_of_accuracies_spans_five_points(plot):
    for axes in plot.draw(ROWS).axes:
        low, high = axes.get_xlim() if plot.down else axes.get_ylim()
        assert high - low >= 5


def test_no_point_covers_another_and_names_without_a_look_get_one():
    rows = pd.concat([ROWS, ROWS.assign(method="unheard of")])
    axes, = LINES.draw(rows).axes
    places = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "-"]
    assert len(places) == 3 == len(set(places))
    looks = style.looks_of(["new", "known", "newer", "new"], {"known": style.OURS})
    assert [*looks] == ["known", "new", "newer"] and looks["known"] is style.OURS and looks["new"].label == "new"
    assert len({(look.colour, look.marker) for look in looks.values()}) == 3


def test_rows_of_several_data_sets_are_refused():
    with pytest.raises(ValueError, match=r"one dataset.*\['ntu', 'ucla'\]"):
        LINES.draw(ROWS.assign(dataset=["ucla", "ucla", "ntu", "ntu"]))


@pytest.mark.parametrize(("second", "expected"), [
    (51.0, "B is highest"), (51.8, "The highest two are closer than seeds scatter"),
])
def test_the_highest_is_named_where_it_is_told_from_the_next(second, expected):
    """Both of deviation 0.3 over nine seeds: twice the error of the difference is 0.28."""
    rows = ROWS.assign(ours=[50.0, 52.0, second, 51.5], std=0.3, n_seeds=9, method=["a", "b"] * 2)
    plot = Plot(caption="", x="size", hue="method")
    assert plots.leading(plot, plot.data(rows)) == expected
    assert plots.leading(plot, plot.data(rows.assign(std=math.nan))) == "B is highest, of one seed"


def test_departures_are_told_without_names_of_fields():
    departures = [{"td_queue": "frozen_noise", "ad_weight": 25.0}, {"td_queue": "frozen_noise"}]
    rows = ROWS[:2].assign(departures=departures)
    told = style.heading(rows).replace("\n", " ")
    assert "dictionary never refreshed; weight of AD 25" in told and "_" not in told and "NW-UCLA" in told


def test_every_table_and_picture_has_a_caption():
    tables = papers.tables().values()
    undrawn = [table.name for table in tables if table.drawing is None]
    assert undrawn == ["similarity_variance"]  # of which a frame is drawn
    declared = [*(table.drawing for table in tables), *(picture.plot for picture in PICTURES.values())]
    assert all(plots.caption_of(drawn).endswith(".") for drawn in declared if drawn)
