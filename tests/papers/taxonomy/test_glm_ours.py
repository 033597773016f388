"""The linear models on our own seeds: against least squares on means, simulated seeds, and made-up cells."""

import json

import numpy as np
import pytest
from made_up_cells import frame, placed, skeleton
from pandas import DataFrame, concat

from repro.papers.taxonomy import glm, glm_ours
from repro.report.printed import printed

NINE = glm.objectives_of("unmixed+best")
ALL = glm.objectives_of("all")


def seeds_of(count, *, objective=5.0, seed=1.0, names=ALL, generator=0):
    """Accuracies 60 + 5 CE + 8 AD, a deviation for each objective and one for each seed."""
    draw = np.random.default_rng(generator)
    rows = []
    for name in names:
        terms = [int(term in name.split("+")) for term in glm.TERMS]
        mean = 60 + 5 * terms[1] + 8 * terms[2] + objective * draw.standard_normal()
        rows += [[name, *terms, number, mean + seed * draw.standard_normal()] for number in range(count)]
    return DataFrame(rows, columns=["objectives", *glm.TERMS, "seed", "linear"])


@pytest.mark.parametrize("rows", ["unmixed+best", "all"])
def test_of_equally_many_seeds_the_mixed_model_is_least_squares_on_means(rows):
    """A balanced random intercept has in closed form the estimates and errors of the means."""
    table = seeds_of(3)
    mixed = glm_ours.replicated(table, "linear", rows)
    means = table.groupby(["objectives", *glm.TERMS], as_index=False)["linear"].mean()
    plain = glm.fit(means, "linear", rows)
    assert "random intercept for each objective" in mixed.statement
    found = glm.coefficients(mixed.results, freedom=mixed.freedom)
    expected = glm.coefficients(plain)
    for column in ("estimate", "error", "low", "high", "p_two_tailed"):
        assert found[column].to_numpy() == pytest.approx(expected[column].to_numpy(), rel=2e-3)
    assert mixed.freedom == len(glm.objectives_of(rows)) - 5


def test_more_seeds_are_no_more_rows():
    """Ten times the seeds leave the errors where they are: objectives differ, and there are no more of these."""
    few, many = (glm_ours.replicated(seeds_of(count), "linear", "all") for count in (3, 30))
    rows = seeds_of(30)
    naive = glm.sm.OLS(rows["linear"], glm.sm.add_constant(rows[glm.TERMS])).fit()
    assert few.freedom == many.freedom == 10
    assert (many.results.bse[glm.TERMS] > 0.7 * few.results.bse[glm.TERMS]).all()
    assert (many.results.bse[glm.TERMS] > 3 * naive.bse[glm.TERMS]).all()


def test_its_statement_gives_both_deviations():
    statement = glm_ours.replicated(seeds_of(40, objective=6.0, seed=2.0), "linear", "all").statement
    assert statement.startswith("15 objectives, 600 runs") and statement.endswith("seeds by 2.0.")


@pytest.mark.parametrize(("extra", "repeats"), [(0, 0), (8, 8)])
def test_few_seeds_give_least_squares_on_means_and_say_so(extra, repeats):
    table = concat([seeds_of(1, names=NINE), seeds_of(2, names=NINE[:extra]).query("seed == 1")])
    found = glm_ours.replicated(table)
    assert found.statement.startswith(f"9 objectives, {9 + extra} runs, {repeats} of them repeats, too few")
    assert found.statement.endswith("least squares on the means over seeds.")
    plain = glm.fit(glm_ours.means(table), "linear")
    assert found.results.params.to_numpy() == pytest.approx(plain.params.to_numpy()) and found.freedom == 4


def test_as_many_repeats_as_objectives_are_enough():
    assert "random intercept for each" in glm_ours.replicated(seeds_of(2, names=NINE)).statement


def test_objectives_that_differ_no_more_than_seeds_are_not_taken_for_rows():
    table = seeds_of(4, objective=0.0, seed=0.0)
    pattern = np.tile([-3.0, -1.0, 1.0, 3.0], 15)  # every objective has the same mean beyond its terms
    found = glm_ours.replicated(table.assign(linear=table["linear"] + pattern), "linear", "all")
    assert "differ no more than seeds" in found.statement and found.statement.endswith("means over seeds.")


def test_unequal_numbers_of_seeds_count_as_means_of_their_own():
    table = concat([seeds_of(1, names=NINE), DataFrame([{"objectives": "AE", "AE": 1, "CE": 0, "AD": 0, "CD": 0,
                                                         "seed": 5, "linear": 90.0}])])
    means = glm_ours.means(table).set_index("objectives")["linear"]
    first = table.query("objectives == 'AE' and seed == 0")["linear"].item()
    assert means["AE"] == pytest.approx((first + 90) / 2) and len(means) == 9


def test_a_measure_that_a_seed_lacks_has_no_mean():
    table = seeds_of(2, names=NINE).assign(knn1=50.0)
    table.loc[table.index[0], "knn1"] = np.nan
    means = glm_ours.means(table).set_index("objectives")
    assert np.isnan(means.loc[NINE[0], "knn1"]) and means["knn1"].notna().sum() == 8
    with pytest.raises(ValueError, match=f"knn1 has no number for {NINE[0]}"):
        glm_ours.replicated(table, "knn1")


def cells(**changes):
    return [skeleton(name, 50.0 + place, **changes) for place, name in enumerate(["random", *ALL])]


def test_usual_cells_are_those_of_the_fuller_preset_without_departures():
    rows = [*cells(), *cells(seed=1), *cells(preset="quick")[:5], skeleton("CE", 1.0, layers=3),
            skeleton("CD", 2.0, td_queue="frozen_noise"), skeleton("CE", 3.0, dataset="synthetic", preset="quick")]
    found = glm_ours.usual_cells(placed(*rows)["taxonomy"], "ucla")
    assert len(found) == 32 and set(found["preset"]) == {"paper"} and found["linear"].min() == 50.0
    row = found[(found["objectives"] == "AE+CD") & (found["seed"] == 1)].iloc[0]
    assert row[glm.TERMS].tolist() == [1, 0, 0, 1] and row["knn1"] == row["linear"] - 1
    assert glm_ours.usual_cells(placed(*rows)["taxonomy"], "ntu").empty
    assert glm_ours.usual_cells(placed()["taxonomy"], "ucla").empty
    equal = placed(*cells()[:4], *cells(preset="quick")[:4])["taxonomy"]
    assert set(glm_ours.usual_cells(equal, "ucla")["preset"]) == {"paper"}


def test_usual_cells_are_of_one_version_the_one_that_covers_most_objectives():
    """An unfinished newer version waits until it has as many; `version` alone is no departure from the preset."""
    old, new = [row | {"version": 2} for row in cells()], [row | {"version": 3} for row in cells()]
    for part, version in ((3, 2), (15, 2), (16, 3)):
        found = glm_ours.usual_cells(placed(*old, *new[:part])["taxonomy"], "ucla")
        assert set(found["key"]) == {row["key"] for row in (new if version == 3 else old)}
        assert set(found["objectives"]) == {"random", *ALL}


def test_the_forest_has_ours_beside_the_printed_ones():
    table = glm_ours.usual_cells(placed(*cells(), *cells(seed=1))["taxonomy"], "ucla")
    found = glm_ours.forest(table)
    assert found.groupby(["rows", "source"]).size().to_dict() == dict.fromkeys(
        [("all", "ours"), ("all", "printed"), ("unmixed+best", "ours"), ("unmixed+best", "printed")], 4)
    rows = found.query("rows == 'unmixed+best' and source == 'printed'").set_index("term")
    assert rows.loc["AD", "t"] == pytest.approx(2.394, abs=5e-4)
    expected = glm.coefficients(glm.fit(glm_ours.means(table), "linear", "all"))["estimate"]
    assert found.query("rows == 'all' and source == 'ours'")["estimate"].to_numpy() == pytest.approx(expected, abs=0.02)


def test_of_ntu_the_printed_column_is_its_own():
    table = glm_ours.usual_cells(placed(*cells(dataset="ntu"))["taxonomy"], "ntu")
    found = glm_ours.forest(table).query("source == 'printed'")
    expected = glm.coefficients(glm.fit(printed("taxonomy"), "NTU_1layer", "all"))["estimate"]
    assert found.query("rows == 'all'")["estimate"].tolist() == expected.tolist()


def test_rows_that_were_not_run_are_missing():
    nine = [row for row in cells() if json.loads(row["recipe"])["objectives"] in NINE]
    table = glm_ours.usual_cells(placed(*nine)["taxonomy"], "ucla")
    found = glm_ours.forest(table)
    assert set(map(tuple, found.query("source == 'ours'")[["rows"]].to_numpy())) == {("unmixed+best",)}
    none = glm_ours.usual_cells(placed(cells()[1])["taxonomy"], "ucla")
    assert set(glm_ours.forest(none)["source"]) == {"printed"}


@pytest.fixture
def stored_cells(monkeypatch):
    """Made-up cells in the place of what is stored."""

    def put(*rows):
        monkeypatch.setattr("repro.report.logs.everything", lambda: frame(*rows))

    return put


def test_the_analysis_of_the_notebook(stored_cells):
    stored_cells(*cells(), *cells(seed=1, preset="quick"))
    found = glm_ours.analysis()
    assert found.coefficients["t"].round(3).tolist() == [-0.997, 1.514, 2.394, 1.210]
    assert found.source == "printed numbers, UCLA, 9 rows, OLS, with constant"
    assert set(found.left_out["left_out"]) == set(NINE)
    ours = glm_ours.analysis(results="ours", rows="all", column="knn1", model="GLM", intercept=False)
    assert ours.source == "our means over seeds on ucla, paper recipe, knn1, 15 rows, GLM, without constant"
    assert "const" not in ours.results.params
    assert "quick recipe" in glm_ours.analysis(results="ours", preset="quick", seeds="1").source


@pytest.mark.parametrize(("arguments", "message"), [
    ({"results": "mine"}, "results='mine' is not one of: printed, ours"),
    ({"column": "linear"}, "column='linear' is not one of: auto, UCLA"),
    ({"results": "ours", "column": "UCLA"}, "column='UCLA' is not one of: auto, linear"),
    ({"dataset": "uclaa"}, "dataset='uclaa' is not one of: .*did you mean 'ucla'"),
    ({"preset": "fast"}, "preset='fast' is not one of: auto, paper, quick, smoke"),
    ({"seeds": "x"}, "seeds='x' should be a comma list"),
    ({"results": "ours", "seeds": "9"}, "no cells of the taxonomy are stored for ucla, preset auto, seeds 9"),
    ({"results": "ours", "dataset": "ntu"}, "no cells of the taxonomy are stored for ntu"),
    ({"correction": "b"}, "correction='b' is not one of: None, bonferroni"),
    ({"intercept": "false"}, "intercept='false' is not one of: True, False"),
    ({"intercept": "no", "results": "ours"}, "intercept='no' is not one of: True, False"),
    ({"intercept": 0}, "intercept=0 is not one of: True, False"),
])
def test_the_analysis_refuses_what_does_not_exist(stored_cells, arguments, message):
    stored_cells(*cells())
    with pytest.raises(ValueError, match=message):
        glm_ours.analysis(**arguments)
