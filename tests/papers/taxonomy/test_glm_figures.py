"""Figures of the linear models, and their files."""

import hashlib
import itertools

import pandas as pd
import pytest
from made_up_cells import placed, skeleton

from repro.papers.taxonomy import glm, glm_figures, glm_ours


def cells(dataset="ucla", preset="paper", count=1):
    names = ["random", *glm.objectives_of("all")]
    return [skeleton(name, 50.0 + 7 * place % 31 + seed, dataset=dataset, preset=preset, seed=seed)
            for seed in range(count) for place, name in enumerate(names)]


@pytest.fixture(scope="module")
def curve():
    return glm.specification_curve()


def texts(figure):
    found = [figure.get_suptitle(), *(text.get_text() for legend in figure.legends for text in legend.get_texts())]
    return found + [axes.get_title(loc="left") for axes in figure.axes]


def test_the_curve_marks_the_printed_statistic_and_its_model(curve):
    figure = glm_figures.specifications(curve)
    top, rows, columns = figure.axes
    assert any(line.get_ydata()[0] == 2.394 for line in top.lines if len(set(line.get_ydata())) == 1)
    assert [len(axes.get_yticks()) for axes in (rows, columns)] == [11, 5]
    assert rows.get_yticklabels()[2].get_text() == "8 + AE+CE+AD"
    marked = [axes.lines[0].get_xdata()[0] for axes in figure.axes]
    assert len(set(marked)) == 1
    place = dict(zip(rows.lines[-1].get_xdata(), rows.lines[-1].get_ydata(), strict=True))
    assert place[marked[0]] == 2
    assert {"printed, t = 2.394", "rows of Table 1", "its column"} <= set(texts(figure))
    assert columns.get_xlabel() == "models, by the t of AD"


def test_the_curve_fills_what_is_significant(curve):
    top = glm_figures.specifications(curve).axes[0]
    shown = [line for line in top.lines if line.get_marker() != "None"]
    filled = sum(len(line.get_xdata()) for line in shown if line.get_markerfacecolor() != "white")
    assert sum(len(line.get_xdata()) for line in shown) == len(curve) == 220
    assert filled == (curve["p_one_tailed"] < 0.05).sum() > 0


@pytest.mark.parametrize(("dataset", "preset", "panels"), [("ucla", "paper", 2), ("synthetic", "quick", 4)])
def test_effects_of_embedded_data_stand_apart(dataset, preset, panels):
    table = glm_ours.forest(glm_ours.usual_cells(placed(*cells(dataset, preset, 2))["taxonomy"], dataset))
    figure = glm_figures.effects(table)
    assert len(figure.axes) == panels
    assert ("not comparable" in figure.get_suptitle()) == (dataset == "synthetic")
    for axes in figure.axes:
        title = axes.get_title(loc="left")
        assert ("Ours" in title and "Printed" in title) == (dataset == "ucla")


def test_files_name_their_cells_and_are_the_same_again(tmp_path):
    rows = placed(*cells(), *cells("synthetic", "quick"), skeleton("CE", dataset="ntu"),
                 *cells("ntu", "smoke"))
    written = glm_figures.redraw(rows, tmp_path)
    stems = ("glm_specifications", "glm_forest_ucla", "glm_forest_synthetic")
    assert {path.name for path in written} == {
        f"{stem}.{ending}" for stem, ending in itertools.product(stems, ("csv", "svg", "png"))}
    svg = (tmp_path / "glm_forest_ucla.svg").read_text()
    keys = rows["taxonomy"].loc[rows["taxonomy"]["dataset"] == "ucla", "key"]
    assert all(key in svg for key in keys) and '"preset": "paper"' in svg.replace("&quot;", '"')
    assert '"printed": "taxonomy.csv"' in svg.replace("&quot;", '"') and "Printed numbers: taxonomy.csv." in svg
    assert len(pd.read_csv(tmp_path / "glm_specifications.csv")) == 220
    first = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in written}
    glm_figures.redraw(rows, tmp_path)
    assert first == {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in written}


def test_without_cells_there_is_the_curve_of_the_printed_numbers(tmp_path):
    assert {path.stem for path in glm_figures.redraw(placed(), tmp_path)} == {"glm_specifications"}


def test_cells_that_all_depart_from_the_table_are_passed_over(tmp_path):
    rows = placed(skeleton("CD", dataset="ucla", td_queue="frozen_noise"), skeleton("CE", dataset="ntu", layers=3))
    assert {path.stem for path in glm_figures.redraw(rows, tmp_path)} == {"glm_specifications"}


def test_the_last_bits_of_least_squares_change_no_file(tmp_path, monkeypatch, curve):
    """Among the curve's numbers are 26.1425 and others that end in a 5 behind the fifth digit."""
    files = []
    for factor in (1 - 1e-14, 1, 1 + 1e-14):
        fitted = curve.map(lambda value, by=factor: value * by if isinstance(value, float) else value)
        monkeypatch.setattr(glm_figures, "specification_curve", lambda fitted=fitted: fitted)
        files.append([path.read_bytes() for path in glm_figures.redraw(placed(), tmp_path)])
    assert files[0] == files[1] == files[2]
    written = pd.read_csv(tmp_path / "glm_specifications.csv")
    for name in written.select_dtypes("float"):
        assert written[name].to_numpy() == pytest.approx(curve[name].to_numpy(), rel=5.001e-5)
