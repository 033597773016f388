"""Linear models of printed accuracies and ours, against numpy, simulated seeds and the numbers in the paper's text."""

import json
import re

import numpy as np
import pytest
import statsmodels.api as sm
from asked_for import placed as by_table
from made_up_cells import frame, placed, skeleton
from pandas import DataFrame, concat
from scipy import stats

from repro.papers.taxonomy import glm
from repro.report.printed import printed

NINE = ["AE", "CE", "AD", "CD", "AE+AD", "AE+CD", "CE+AD", "CE+CD", "AE+CE+AD"]  # typed from the paper's main tables
ALL = glm.OBJECTIVES


def oracle(column, names, intercept=True):
    """Estimates, standard errors and residual degrees of freedom of least squares, by numpy alone."""
    values = glm.printed_by_objective().loc[names, column].to_numpy()
    design = np.array([[term in name.split("+") for term in glm.TERMS] for name in names], float)
    design = np.column_stack([np.ones(len(names)), design]) if intercept else design
    estimates, *_ = np.linalg.lstsq(design, values, rcond=None)
    freedom = len(values) - design.shape[1]
    variance = ((values - design @ estimates) ** 2).sum() / freedom
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    return estimates[-4:], errors[-4:], freedom


def test_the_printed_statistic_is_that_of_the_attractive_decoder():
    table = printed("taxonomy")
    results = glm.fit(table, "UCLA")
    assert results.df_resid == 4 and results.nobs == 9
    assert results.tvalues[glm.TERMS].round(3).tolist() == [-0.997, 1.514, 2.394, 1.210]
    assert results.params["AD"] == pytest.approx(11.990) and results.params["CD"] == pytest.approx(6.545)
    assert results.rsquared == pytest.approx(0.736, abs=5e-4) and results.f_pvalue == pytest.approx(0.172, abs=5e-4)
    for rows in (",".join(reversed(NINE)).replace("AE+CE+AD", "AD+CE+AE"), NINE, tuple(NINE)):
        assert glm.fit(table, "UCLA", rows).tvalues["AD"] == pytest.approx(2.394, abs=5e-4)
    wald = glm.coefficients(glm.fit(table, "UCLA", model="GLM")).set_index("term")
    assert wald.loc["AD", "t"] == pytest.approx(2.394, abs=5e-4) and np.isinf(wald["df"]).all()
    assert wald.loc["AD", "p_one_tailed"] == pytest.approx(0.0083, abs=5e-5)


def test_the_terms_are_shown_with_the_digits_that_the_text_prints():
    page = glm.shown(glm.coefficients(glm.fit(printed("taxonomy"), "UCLA"))).to_html()
    assert re.findall(r"<th[^>]*>(.+?)</th>", page) == [
        "term", "points", "standard error", "95 % from", "95 % to", "t", "df", "p one-tailed", "p two-tailed",
        "p corrected"]
    values = re.findall(r"<td[^>]*>(.+?)</td>", page)
    assert values[20:30] == ["AD", "11.99", "5.01", "-1.91", "25.89", "2.394", "4", "0.0374", "0.0748", "0.1497"]
    wald = glm.shown(glm.coefficients(glm.fit(printed("taxonomy"), "UCLA", model="GLM"), correction=None))
    assert re.findall(r"<th[^>]*>(.+?)</th>", wald.to_html())[5:] == ["z", "df", "p one-tailed", "p two-tailed"]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rows", ["unmixed+best", "all", "unmixed decoder"])
def test_least_squares_is_numpys(rows, intercept):
    estimates, errors, freedom = oracle("NTU_1layer", glm.objectives_of(rows), intercept)
    table = glm.coefficients(glm.fit(printed("taxonomy"), "NTU_1layer", rows, intercept=intercept))
    reach, t = stats.t.ppf(0.975, freedom) * errors, estimates / errors
    expected = {"estimate": estimates, "error": errors, "low": estimates - reach, "high": estimates + reach, "t": t,
                "p_one_tailed": stats.t.sf(t, freedom), "p_two_tailed": 2 * stats.t.sf(abs(t), freedom)}
    for name, values in expected.items():
        assert table[name].to_numpy() == pytest.approx(values), name


def test_row_sets():
    sets = {name: {frozenset(each.split("+")) for each in glm.objectives_of(name)} for name in glm.ROW_SETS}
    assert {name: len(rows) for name, rows in sets.items()} == {
        "all": 15, "unmixed": 8, "unmixed+best": 9, "unmixed encoder": 11, "unmixed decoder": 11}
    assert sets["unmixed+best"] == {frozenset(name.split("+")) for name in NINE}
    assert sets["unmixed"] == sets["unmixed encoder"] & sets["unmixed decoder"]
    assert not any({"AE", "CE"} <= rows for rows in sets["unmixed encoder"])
    assert not any({"AD", "CD"} <= rows for rows in sets["unmixed decoder"])


def test_p_are_corrected_as_by_hand():
    fitted = glm.fit(printed("taxonomy"), "UCLA")
    table = glm.coefficients(fitted)
    p, running, expected = table["p_one_tailed"].to_numpy(), 0.0, np.empty(4)
    for rank, place in enumerate(np.argsort(p)):
        running = max(running, min(1.0, (4 - rank) * p[place]))
        expected[place] = running
    assert table["p_corrected"].to_numpy() == pytest.approx(expected)
    bonferroni = glm.coefficients(fitted, correction="bonferroni")
    assert bonferroni["p_corrected"].to_numpy() == pytest.approx(np.minimum(4 * p, 1))
    assert "p_corrected" not in glm.coefficients(fitted, correction=None)


def test_without_one_row():
    found = glm.leave_one_out(printed("taxonomy"), "UCLA").query("term == 'AD'").set_index("left_out")["t"]
    assert set(found.index) == set(NINE)
    assert found.idxmin() == "AE" and found.min() == pytest.approx(1.30, abs=5e-3)
    estimates, errors, _ = oracle("UCLA", [name for name in NINE if name != "CE"])
    assert found.idxmax() == "CE" and found["CE"] == pytest.approx(estimates[2] / errors[2])
    assert glm.leave_one_out(printed("taxonomy"), "UCLA", ["AE", "CE", "AD", "CD", "AE+CE", "AD+CD"]).empty


def test_the_specification_curve_has_every_choice_once():
    curve = glm.specification_curve()
    assert len(curve) == 11 * 5 * 4 and not curve.duplicated(["rows", "column", "term"]).any()
    assert not (abs(curve.loc[curve["term"] == "CD", "t"] - 2.394) < 0.5).any()
    for rows, names in (("unmixed+best", NINE), ("unmixed+AE+CE", [*NINE[:-1], "AE+CE"])):
        for column in ("UCLA", "mean of columns"):
            estimates, errors, _ = oracle(column, names)
            part = curve[(curve["rows"] == rows) & (curve["column"] == column)]
            assert part["t"].tolist() == pytest.approx(list(estimates / errors))
            assert set(part["n_rows"]) == {9}


@pytest.mark.parametrize(("change", "arguments", "message"), [
    ({}, {"outcome": "UCL"}, "no column UCL; its columns are AE, CE, AD, CD, UCLA"),
    ({"AE": 2}, {}, "AE, CE, AD, CD should be 0 or 1"),
    ({"UCLA": np.nan}, {}, "UCLA has no number for AE, AE.CD"),
    ({"UCLA": "high"}, {}, "UCLA has no number"),
    ({}, {"rows": "best"}, "rows='best' is not one of: all, unmixed, unmixed.best"),
    ({}, {"rows": "CE,CE+XD"}, "rows='CE.XD' is not one of"),
    ({}, {"rows": ["AE", "CE", "AD", "CD", "AE+CE"]}, "do not tell const, AE, CE, AD, CD apart with a row to spare"),
    ({}, {"rows": ["AE", "CE", "AE+CE", "AE+AD", "CE+AD", "AE+CE+AD", "AD"]}, "do not tell"),
    ({}, {"model": "ols"}, "model='ols' is not one of: OLS, GLM"),
])
def test_what_cannot_be_fitted_is_refused(change, arguments, message):
    with pytest.raises(ValueError, match=message):
        glm.fit(printed("taxonomy").assign(**change), **({"outcome": "UCLA"} | arguments))


def test_missing_and_repeated_objectives_are_named():
    table = printed("taxonomy")
    with pytest.raises(ValueError, match=r"need AD\+CD, CE\+AD\+CD, which the table lacks"):
        glm.fit(table[~glm.names(table).isin(["AD+CD", "CE+AD+CD"])], "UCLA", "all")
    with pytest.raises(ValueError, match="CD have several rows"):
        glm.fit(table.iloc[[*range(15), 3]], "UCLA", "all")
    with pytest.raises(ValueError, match="correction='none' is not one of: None, bonferroni"):
        glm.coefficients(glm.fit(table, "UCLA"), correction="none")


def seeds_of(count, *, objective=5.0, seed=1.0, names=ALL):
    """Accuracies 60 + 5 CE + 8 AD, a deviation for each objective and one for each seed."""
    draw, rows = np.random.default_rng(0), []
    for name in names:
        terms = [int(term in name.split("+")) for term in glm.TERMS]
        mean = 60 + 5 * terms[1] + 8 * terms[2] + objective * draw.standard_normal()
        rows += [[name, *terms, number, mean + seed * draw.standard_normal()] for number in range(count)]
    return DataFrame(rows, columns=["objectives", *glm.TERMS, "seed", "linear"])


@pytest.mark.parametrize("rows", ["unmixed+best", "all"])
def test_of_equally_many_seeds_the_mixed_model_is_least_squares_on_means(rows):
    """A balanced random intercept has in closed form the estimates and errors of the means."""
    table = seeds_of(3)
    found, statement = glm.replicated(table, "linear", rows)
    means = table.groupby(["objectives", *glm.TERMS], as_index=False)["linear"].mean()
    expected = glm.coefficients(glm.fit(means, "linear", rows))
    assert "random intercept for each objective" in statement
    for column in ("estimate", "error", "low", "high", "p_two_tailed", "df"):
        assert found[column].to_numpy() == pytest.approx(expected[column].to_numpy(), rel=2e-3)


def test_more_seeds_are_no_more_rows():
    """Ten times the seeds leave the errors where they are: objectives differ, and there are no more of these."""
    few, many = (glm.replicated(seeds_of(count), "linear", "all")[0] for count in (3, 30))
    rows = seeds_of(30)
    naive = sm.OLS(rows["linear"], sm.add_constant(rows[glm.TERMS])).fit().bse[glm.TERMS].to_numpy()
    assert set(few["df"]) == set(many["df"]) == {10}
    assert (many["error"] > 0.7 * few["error"]).all() and (many["error"] > 3 * naive).all()
    statement = glm.replicated(seeds_of(40, objective=6.0, seed=2.0), "linear", "all")[1]
    assert statement.startswith("15 objectives, 600 runs") and statement.endswith("seeds by 2.0.")


@pytest.mark.parametrize(("repeated", "mixed"), [(0, False), (8, False), (9, True)])
def test_few_seeds_give_least_squares_on_means_and_say_so(repeated, mixed):
    table = seeds_of(2, names=NINE)
    table = table[(table["seed"] == 0) | table["objectives"].isin(NINE[:repeated])]
    found, statement = glm.replicated(table)
    assert ("random intercept for each" in statement) == mixed
    if not mixed:
        assert statement.startswith(f"9 objectives, {9 + repeated} runs, {repeated} of them repeats, too few")
        assert statement.endswith("least squares on the means over seeds.")
        plain = glm.coefficients(glm.fit(glm.means(table), "linear"))
        assert found["estimate"].tolist() == pytest.approx(plain["estimate"].tolist()) and set(found["df"]) == {4}


def test_objectives_that_differ_no_more_than_seeds_are_not_taken_for_rows():
    table = seeds_of(4, objective=0.0, seed=0.0)
    pattern = np.tile([-3.0, -1.0, 1.0, 3.0], 15)  # every objective has the same mean beyond its terms
    statement = glm.replicated(table.assign(linear=table["linear"] + pattern), "linear", "all")[1]
    assert "differ no more than seeds" in statement and statement.endswith("means over seeds.")


def test_means_are_over_the_seeds_of_an_objective_and_of_what_all_have():
    table = concat([seeds_of(1, names=NINE), seeds_of(1, names=["AE"]).assign(seed=5, linear=90.0)]).assign(knn1=50.0)
    table.iloc[0, table.columns.get_loc("knn1")] = np.nan
    means = glm.means(table).set_index("objectives")
    assert means.loc["AE", "linear"] == pytest.approx((table["linear"].iloc[0] + 90) / 2) and len(means) == 9
    assert np.isnan(means.loc["AE", "knn1"]) and means["knn1"].notna().sum() == 8
    with pytest.raises(ValueError, match="knn1 has no number for AE"):
        glm.replicated(table, "knn1")


def cells(**changes):
    return [skeleton(name, 50.0 + place, **changes) for place, name in enumerate(["random", *ALL])]


def usual(*rows, dataset="ucla"):
    return glm.usual_cells(placed(*rows)["taxonomy"], dataset)


def test_usual_cells_are_those_of_the_fuller_preset_without_departures():
    rows = [*cells(), *cells(seed=1), *cells(preset="quick")[:5], skeleton("CE", 1.0, layers=3),
            skeleton("CD", 2.0, td_queue="frozen_noise"), skeleton("CE", 3.0, dataset="synthetic", preset="quick")]
    found = usual(*rows)
    assert len(found) == 32 and set(found["preset"]) == {"paper"} and found["linear"].min() == 50.0
    row = found[(found["objectives"] == "AE+CD") & (found["seed"] == 1)].iloc[0]
    assert row[glm.TERMS].tolist() == [1, 0, 0, 1] and row["knn1"] == row["linear"] - 1
    assert usual(*rows, dataset="ntu").empty and usual().empty
    assert set(usual(*cells()[:4], *cells(preset="quick")[:4])["preset"]) == {"paper"}
    # An unfinished newer version waits until it has as many; `version` alone is no departure from the preset.
    old, new = [row | {"version": 2} for row in cells()], [row | {"version": 3} for row in cells()]
    for part, expected in ((3, old), (15, old), (16, new)):
        assert set(usual(*old, *new[:part])["key"]) == {row["key"] for row in expected}


def test_the_forest_has_ours_beside_the_printed_ones():
    table = usual(*cells(), *cells(seed=1))
    found = glm.forest(table).set_index(["rows", "source"])
    assert found.groupby(level=[0, 1]).size().to_dict() == dict.fromkeys(
        [("all", "ours"), ("all", "printed"), ("unmixed+best", "ours"), ("unmixed+best", "printed")], 4)
    assert found.loc[("unmixed+best", "printed"), "t"].iloc[2] == pytest.approx(2.394, abs=5e-4)
    expected = glm.coefficients(glm.fit(glm.means(table), "linear", "all"))["estimate"]
    assert found.loc[("all", "ours"), "estimate"].to_numpy() == pytest.approx(expected, abs=0.02)
    ntu = glm.forest(usual(*cells(dataset="ntu"), dataset="ntu")).set_index(["rows", "source"])
    assert ntu.loc[("all", "printed"), "estimate"].to_numpy() == pytest.approx(oracle("NTU_1layer", ALL)[0])
    nine = glm.forest(usual(*(row for row in cells() if json.loads(row["recipe"])["objectives"] in NINE)))
    assert set(nine.query("source == 'ours'")["rows"]) == {"unmixed+best"}  # others were not run
    assert set(glm.forest(usual(cells()[1]))["source"]) == {"printed"}


@pytest.fixture
def stored_cells(monkeypatch):
    """Made-up cells in the place of what is stored."""
    rows = [*cells(), *cells(seed=1, preset="quick")]
    monkeypatch.setattr("repro.papers.taxonomy.glm.everything", lambda: frame(*rows))
    monkeypatch.setattr(glm, "cells_by_table", by_table)


@pytest.mark.usefixtures("stored_cells")
def test_the_analysis_of_the_notebook():
    terms, left_out, source = glm.analysis()
    assert terms["t"].round(3).tolist() == [-0.997, 1.514, 2.394, 1.210]
    assert source == "printed numbers, UCLA, 9 rows, OLS, with constant" and set(left_out["left_out"]) == set(NINE)
    ours = glm.analysis(results="ours", rows="all", column="knn1", model="GLM", intercept=False)
    assert ours[2] == "our means over seeds on ucla, paper recipe, knn1, 15 rows, GLM, without constant"
    expected = glm.fit(usual(*cells()), "knn1", "all", intercept=False).params
    assert ours[0]["estimate"].tolist() == pytest.approx(expected.tolist())
    assert "quick recipe" in glm.analysis(results="ours", preset="quick", seeds="1")[2]


@pytest.mark.usefixtures("stored_cells")
@pytest.mark.parametrize(("arguments", "message"), [
    ({"results": "mine"}, "results='mine' is not one of: printed, ours"),
    ({"column": "linear"}, "column='linear' is not one of: auto, UCLA"),
    ({"results": "ours", "column": "UCLA"}, "column='UCLA' is not one of: auto, linear"),
    ({"dataset": "uclaa"}, "dataset='uclaa' is not one of: .*did you mean 'ucla'"),
    ({"results": "ours", "seeds": "9"}, "no cells of the taxonomy are stored for ucla, preset auto, seeds 9"),
    ({"correction": "b"}, "correction='b' is not one of: None, bonferroni"),
    ({"intercept": 0, "results": "ours"}, "intercept=0 is not one of: True, False"),
])
def test_the_analysis_refuses_what_does_not_exist(arguments, message):
    with pytest.raises(ValueError, match=message):
        glm.analysis(**arguments)
