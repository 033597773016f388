"""The taxonomy's tables: printed numbers beside ours."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from made_up_measures import laid_out
from pandas import DataFrame

from repro.papers.taxonomy import glm, tables
from repro.report.printed import printed
from repro.report.style import heading
from repro.skeleton.recipe import METHODS

TAIL = ["ours", "std", "n_seeds", "printed", "difference", "preset", "dataset"]
MEASURED = {"linear": 50.0, "linear_without_copies": 20.0, "linear_standardised": 60.0, "knn1": 30.0,
            "embedding_spread": 0.5, "readout_spread": 0.4, "decoded_scale": 0.9, "linear_best": 51.0}
SHOWN = ["linear_without_copies", "linear_standardised", "knn1", "embedding_spread", "readout_spread"]
NAN = math.nan

# Typed from the paper: Table 1, column NW-UCLA, and Table 2.
PRINTED = {
    "AE": 59.98, "AE+AD+CD": 60.37, "AE+CD": 76.81, "CD": 77.73, "CE+CD": 79.56, "AE+CE+CD": 79.96, "AE+AD": 80.15,
    "AE+CE": 80.74, "CE+AD+CD": 82.43, "AE+CE+AD+CD": 82.98, "AD": 83.45, "CE": 83.73, "AD+CD": 85.50, "CE+AD": 85.70,
    "AE+CE+AD": 86.08,
}
PRINTED_DEPTHS = {"random": [52.01, 56.51, 60.17, 63.70, 60.11], "AE": [51.89, 32.04, 25.33, 28.45, 28.39]}


def rows(name="taxonomy", dataset="ucla", **choices):
    return laid_out(tables.TABLES[name], dataset, measure=lambda run: MEASURED, **choices)


def test_printed_accuracies_stand_beside_their_objectives():
    table = rows()
    assert list(table.columns) == ["objectives", "AE", "CE", "AD", "CD", *TAIL, *SHOWN, "decoded_scale"]
    assert table["objectives"].tolist() == list(METHODS)
    for row in table.itertuples():
        assert row.printed == {"random": 52.01, **PRINTED}[row.objectives]
        assert row.ours == 50.0 and row.difference == pytest.approx(50.0 - row.printed)
        assert [term in row.objectives for term in ("AE", "CE", "AD", "CD")] == [row.AE, row.CE, row.AD, row.CD]


@pytest.mark.parametrize(("changes", "expected"), [
    ({}, {"AE": 34.63, "AE+CE+AD": 67.06, "AD+CD": 48.22}),
    ({"layers": 3}, {"AE": 12.35, "AE+CE+AD": 59.99, "CD": 38.88}),
    ({"units": 1024}, {"CE": 67.21, "AE+CE+AD+CD": 61.40, "AE+CE+AD": 68.64}),
])
def test_printed_accuracies_of_ntu(changes, expected):
    changes = {"objectives": ",".join(["random", *expected])} | changes
    table = rows(dataset="ntu", **changes).set_index("objectives")
    assert table["printed"].drop("random").to_dict() == expected and math.isnan(table.loc["random", "printed"])
    assert "changed" not in table and {*changes} - {"objectives"} <= {*table.columns}
    other = rows(dataset="ntu", protocol="xview", **changes)
    assert other[["printed", "difference"]].isna().all(axis=None)
    part = rows(dataset="ntu", subset=True, **changes)
    assert part["difference"].isna().all() and "not a reproduction" in heading(part).replace("\n", " ")


def test_every_number_of_the_paper_stands_beside_a_recipe_once():
    lines = printed("taxonomy_by_recipe").query("objectives != 'random'").set_index("objectives")
    columns = {("ucla", 1, 512): "UCLA", ("ntu", 1, 512): "NTU_1layer", ("ntu", 3, 512): "NTU_3layer",
               ("ntu", 1, 1024): "NTU_1024units"}
    found = {columns[of]: part["percent"] for of, part in lines.groupby(["dataset", "layers", "units"])}
    assert DataFrame(found).equals(glm.printed_by_objective().loc[[*found["UCLA"].index], [*found]])


def test_printed_accuracies_by_depth():
    table = rows("encoder_collapse", layers="1,2,3,4,5,6", preset="quick")
    assert list(table.columns) == ["layers", "objectives", *TAIL, *SHOWN, "linear_best"]
    assert [*zip(table["layers"], table["objectives"], strict=True)] == [
        *itertools.product(range(1, 7), ("random", "AE"))]
    expected = [values[depth] for depth in range(5) for values in PRINTED_DEPTHS.values()]
    np.testing.assert_equal(table["printed"].tolist(), [*expected, NAN, NAN])
    assert table["difference"].isna().all()  # of a shorter training


def test_random_initialisation_has_a_printed_value_at_other_depths_too():
    table = rows(objectives="random,CE", layers=3)
    np.testing.assert_equal(table["printed"].tolist(), [60.17, NAN])
    assert "changed" not in table and table["layers"].tolist() == [3, 3]  # set out likewise
    assert table["difference"].iloc[0] == 50.0 - 60.17


@pytest.mark.parametrize("name", tables.TABLES)
def test_nothing_is_printed_for_other_settings_and_on_bundled_data(name):
    always = dataclasses.replace(tables.TABLES[name], printed=lambda row: 50.0)  # not even so
    for table in (laid_out(always, "synthetic", measure=lambda run: MEASURED), rows(name, objectives="AE", units=256),
                  rows(name, objectives="random", units=1024, layers=2)):
        assert table[["printed", "difference"]].isna().all(axis=None) and table["ours"].eq(50).all()
