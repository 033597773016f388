"""The taxonomy's tables: printed numbers beside ours."""

import itertools
import math

import numpy as np
import pytest
from asked_for import laid_out as rows_of
from made_up_cells import frame, skeleton

from repro.data import manifest
from repro.experiments import find_table
from repro.papers.taxonomy import tables
from repro.report.style import heading
from repro.skeleton.recipe import METHODS, PRESETS

REAL = manifest.location(manifest.load_manifest("ucla").files[0], manifest.data_root())
TAIL = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset"]
SHOWN = {"linear_unseen": 20.0, "linear_standardised": 60.0, "knn1": 30.0, "embedding_spread": 0.5}
SHOWN |= {"readout_spread": 0.4}
NAN = math.nan

# Typed from the paper: Table 1, column NW-UCLA, and Table 2.
PRINTED = {
    "AE": 59.98, "AE+AD+CD": 60.37, "AE+CD": 76.81, "CD": 77.73, "CE+CD": 79.56, "AE+CE+CD": 79.96, "AE+AD": 80.15,
    "AE+CE": 80.74, "CE+AD+CD": 82.43, "AE+CE+AD+CD": 82.98, "AD": 83.45, "CE": 83.73, "AD+CD": 85.50, "CE+AD": 85.70,
    "AE+CE+AD": 86.08,
}
PRINTED_DEPTHS = {"random": [52.01, 56.51, 60.17, 63.70, 60.11], "AE": [51.89, 32.04, 25.33, 28.45, 28.39]}


def rows(*named, measures=SHOWN, **where):
    """Stored cells of (objectives, fields that change, accuracy)."""
    return frame(*(skeleton(objectives, linear, measures=measures, **where, **changes)
                   for objectives, changes, linear in named))


def laid_out(name, *named, **where):
    return rows_of(find_table(name), rows(*named, **where))


def test_printed_accuracies_stand_beside_their_objectives():
    values = dict(zip(METHODS, itertools.count(40.0, 0.25), strict=False))
    order = np.random.default_rng(0).permutation(METHODS).tolist()
    table = laid_out("taxonomy", *((name, {}, values[name]) for name in order))
    assert list(table.columns) == ["objectives", "AE", "CE", "AD", "CD", *TAIL, *SHOWN]
    assert table["objectives"].tolist() == list(METHODS)
    for row in table.itertuples():
        assert row.published == {"random": 52.01, **PRINTED}[row.objectives]
        assert row.ours == values[row.objectives] and row.difference == pytest.approx(row.ours - row.published)
        assert [term in row.objectives for term in ("AE", "CE", "AD", "CD")] == [row.AE, row.CE, row.AD, row.CD]


def test_the_decoded_scale_is_the_taxonomys_alone():
    found = [laid_out(name, ("AE", {}, 50.0), measures=SHOWN | {"decoded_scale": 0.9}) for name in tables.TABLES]
    assert ["decoded_scale" in table for table in found] == [True, False]


@pytest.mark.parametrize(("changes", "printed"), [
    ({}, {"AE": 34.63, "AE+CE+AD": 67.06, "AD+CD": 48.22}),
    ({"layers": 3}, {"AE": 12.35, "AE+CE+AD": 59.99, "CD": 38.88}),
    ({"units": 1024}, {"CE": 67.21, "AE+CE+AD+CD": 61.40, "AE+CE+AD": 68.64}),
])
def test_printed_accuracies_of_ntu(changes, printed):
    def of_ntu(dataset="ntu", **more):
        return laid_out("taxonomy", *((name, changes | more, 50.0) for name in [*printed, "random"]), dataset=dataset)

    table = of_ntu().set_index("objectives")
    assert table["published"].drop("random").to_dict() == printed and math.isnan(table.loc["random", "published"])
    assert "departures" not in table and {*changes} <= {*table.columns}
    assert of_ntu(protocol="xview")[["published", "difference"]].isna().all(axis=None)
    part = of_ntu("ntu (subset)")
    assert part["difference"].isna().all() and "not a reproduction" in heading(part)


def test_printed_accuracies_by_depth():
    depths = [(method, {"layers": layers}, 50.0) for layers in (4, 1, 5, 2, 3, 6) for method in ("AE", "random")]
    table = laid_out("encoder_collapse", *depths, preset="quick")
    assert list(table.columns) == ["layers", "objectives", *TAIL, *SHOWN] and table["difference"].isna().all()
    assert [*zip(table["layers"], table["objectives"], strict=True)] == [
        *itertools.product(range(1, 7), ("random", "AE"))]
    expected = [values[depth] for depth in range(5) for values in PRINTED_DEPTHS.values()]
    np.testing.assert_equal(table["published"].tolist(), [*expected, NAN, NAN])


def test_random_initialisation_has_a_printed_value_at_other_depths_too():
    table = laid_out("taxonomy", ("random", {"layers": 3}, 50.0), ("CE", {"layers": 3}, 50.0))
    np.testing.assert_equal(table["published"].tolist(), [60.17, NAN])
    assert "departures" not in table and table["layers"].tolist() == [3, 3]  # set out likewise
    two, = laid_out("taxonomy", ("random", {"layers": 2}, 50.0)).to_dict("records")
    assert (two["layers"], two["published"], two["difference"]) == (2, 56.51, 50.0 - 56.51)


@pytest.mark.parametrize("name", tables.TABLES)
def test_nothing_is_printed_for_other_settings_and_on_bundled_data(name, monkeypatch):
    monkeypatch.setitem(tables.PRINTED_COLUMNS, ("synthetic", "xview", 1, 128), "UCLA")  # not even if asked to
    bundled = laid_out(name, ("random", {}, 50.0), ("AE", {}, 51.0), dataset="synthetic", preset="quick")
    other = laid_out(name, ("AE", {"units": 256}, 50.0), ("random", {"units": 1024, "layers": 2}, 51.0))
    for table in (bundled, other):
        assert table[["published", "difference"]].isna().all(axis=None) and sorted(table["ours"]) == [50.0, 51.0]


@pytest.mark.skipif(REAL is None, reason="nw_ucla/all_sqe.zip is not below REPRO_DATA")
def test_cells_on_real_data_are_the_papers():
    cells = find_table("taxonomy").cells("ucla", device="cpu")
    assert [cell.recipe for cell in cells] == [PRESETS["paper"]("ucla", name) for name in METHODS]
    assert {(cell.preset, cell.dataset) for cell in cells} == {("paper", "ucla")}
    assert len(find_table("encoder_collapse").cells("ucla", preset="quick")) == 10
