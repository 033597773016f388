"""The taxonomy's pictures: what they show of made-up tables, by hand."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from drawn import lines
from pandas import DataFrame

from repro.papers.taxonomy import figures, glm
from repro.papers.taxonomy.tables import with_terms
from repro.run.store import write_frame

OBJECTIVES = ["AE", "CE", "AD", "CD"]
BONES = [(0, 1), (1, 2), (1, 3)]
NAN = math.nan


def taxonomy_table(dataset="ucla") -> DataFrame:
    subsets = DataFrame(list(itertools.product((0, 1), repeat=4)), columns=OBJECTIVES)
    names = ["+".join(name for name in OBJECTIVES if row[name]) or "random" for _, row in subsets.iterrows()]
    ours = np.random.default_rng(0).permutation(np.linspace(40.0, 90.0, 16))
    rows = subsets.assign(objectives=names, ours=ours, std=1.5, n_seeds=3, printed=ours + 3,
                          difference=-3.0, preset="paper", dataset=dataset)
    return rows.sample(frac=1, random_state=0)


def sequence(length=12) -> torch.Tensor:
    pelvis, neck, left, right = [0, 0, 0], [0, 0, 1], [0.4, 0.2, 0.6], [-0.4, 0.2, 0.6]
    return torch.tensor([pelvis, neck, left, right]).repeat(length, 1, 1) + torch.arange(length).reshape(-1, 1, 1) / 10


def test_taxonomy_plots_the_table_random_first_then_sorted_what_was_not_run_last():
    table = taxonomy_table()
    table.loc[table["objectives"].isin(["CE", "AE+CD"]), ["ours", "std", "n_seeds"]] = [NAN, NAN, 0]
    random, others = (table[(table["objectives"] == "random") == first] for first in (True, False))
    expected = pd.concat([random, others.sort_values(["ours", "printed"])])
    found = lines(figures.taxonomy(table), 0)
    np.testing.assert_array_equal(found["ours"], expected["ours"])
    np.testing.assert_array_equal(found["printed"], expected["printed"])
    assert set(found["random initialisation"]) == set(random["ours"])


def test_differences_from_print_have_a_panel_where_they_may_be_compared():
    table = taxonomy_table()
    table["printed"] = table["ours"] + np.arange(16)
    differences = lines(figures.taxonomy(table), 1)["ours $-$ printed"]
    np.testing.assert_allclose(np.sort(differences), -np.arange(15.0, -1, -1))
    figure = figures.taxonomy(table.assign(printed=NAN))
    assert len(figure.axes) == 2 and "printed" not in lines(figure, 0)


def test_the_error_of_a_row_that_scatters_is_its_own():
    table = taxonomy_table()
    table.loc[table["objectives"] == "AE+CD", "std"] = 10.0
    ordered = table[table["objectives"] != "random"].sort_values("ours")["objectives"].tolist()
    bars = figures.taxonomy(table).axes[1].patches
    expected = [2 * (10 if name == "AE+CD" else 1.5) * (4 / 3) ** 0.5 for name in ["random", *ordered]]
    np.testing.assert_allclose([bar.get_height() / 2 for bar in bars], expected)
    np.testing.assert_allclose([-bar.get_y() for bar in bars], expected)


def test_poses_stand_upright_in_time_order_at_one_scale():
    figure = figures.pose_strip({"long": sequence(11), "short": sequence(3).reshape(3, -1)}, BONES, frames=6)
    rows = [[axes.lines[0].get_xydata().reshape(-1, 3, 2)[:, :2] for axes in row if axes.lines]
            for row in np.reshape(figure.axes, (2, 6))]
    assert [len(row) for row in rows] == [6, 3]
    trunk = np.array(rows[0])[:, 0]
    np.testing.assert_allclose(trunk[:, 1] - trunk[:, 0], np.tile([0, 1], (6, 1)), atol=1e-6)
    np.testing.assert_allclose(trunk[:, 0], [[0, 0.2 * pose] for pose in range(6)], atol=1e-6)
    assert len({(axes.get_xlim(), axes.get_ylim(), axes.get_aspect()) for axes in figure.axes}) == 1


@pytest.fixture(scope="module")
def curve():
    return glm.specification_curve()


def test_the_curve_shows_every_model_once(curve):
    top, *_ = figures.specifications(curve).axes
    shown = np.concatenate([line.get_ydata() for line in top.lines if line.get_linestyle() == "None"])
    np.testing.assert_allclose(np.sort(shown), np.sort(curve["t"]))
    filled = [len(line.get_xdata()) for line in top.lines
              if line.get_linestyle() == "None" and line.get_markerfacecolor() != "white"]
    assert sum(filled) == (curve["p_one_tailed"] < 0.05).sum()


@pytest.mark.parametrize(("dataset", "preset", "sources"), [
    ("ucla", "paper", {"ours", "printed"}), ("synthetic", "quick", {"ours"})])
def test_effects_are_intervals_and_printed_ones_stand_beside_real_data_alone(dataset, preset, sources):
    rows = DataFrame({"objectives": glm.OBJECTIVES, "linear": [50.0 + 7 * place % 31 for place in range(15)]})
    rows = with_terms(pd.concat([rows, rows.assign(linear=rows["linear"] + 1)])).assign(dataset=dataset, preset=preset)
    table = glm.forest(rows)
    data, expected = figures.EFFECTS.data(table), table[table["source"].isin(sources)]
    assert data["value"].count() == 8 * len(sources) and {*data["line"]} == sources
    np.testing.assert_allclose(np.sort(data["value"] + data["std"]), np.sort(expected["high"]))
    np.testing.assert_allclose(np.sort(data["value"] - data["std"]), np.sort(expected["low"]))


def test_the_last_bits_of_least_squares_change_no_file(tmp_path, monkeypatch, curve):
    """Among the curve's numbers are 26.1425 and others that end in a 5 behind the fifth digit."""
    files = []
    for factor in (1 - 1e-14, 1, 1 + 1e-14):
        fitted = curve.map(lambda value, by=factor: value * by if isinstance(value, float) else value)
        monkeypatch.setattr(glm, "specification_curve", lambda fitted=fitted: fitted)
        rows = figures.PICTURES["glm_specifications"].rows(DataFrame())
        files.append(write_frame(rows, tmp_path / "glm_specifications.csv").read_bytes())
    assert files[0] == files[1] == files[2]
    written = pd.read_csv(tmp_path / "glm_specifications.csv")
    for name in written.select_dtypes("float"):
        assert written[name].to_numpy() == pytest.approx(curve[name].to_numpy(), rel=5.001e-5)
