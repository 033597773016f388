"""Linear models of the printed accuracies, against numpy, a hand-made design and the numbers in the paper's text."""

import re

import numpy as np
import pytest
from pandas import DataFrame
from scipy import stats

from repro.papers.taxonomy import glm
from repro.report.printed import printed

NINE = ["AE", "CE", "AD", "CD", "AE+AD", "AE+CD", "CE+AD", "CE+CD", "AE+CE+AD"]  # typed from the paper's main tables


def oracle(values, names, intercept=True):
    """Estimates, standard errors and residual degrees of freedom of least squares, by numpy alone."""
    design = np.array([[term in name.split("+") for term in glm.TERMS] for name in names], float)
    design = np.column_stack([np.ones(len(names)), design]) if intercept else design
    estimates, *_ = np.linalg.lstsq(design, values, rcond=None)
    freedom = len(values) - design.shape[1]
    variance = ((values - design @ estimates) ** 2).sum() / freedom
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    return estimates[-4:], errors[-4:], freedom


def values_of(column, names):
    table = printed("taxonomy")
    return table.set_index(glm.names(table)).loc[names, column].to_numpy()


def test_the_printed_statistic_is_that_of_the_attractive_decoder():
    results = glm.fit(printed("taxonomy"), "UCLA")
    assert results.df_resid == 4 and results.nobs == 9
    assert results.tvalues[glm.TERMS].round(3).tolist() == [-0.997, 1.514, 2.394, 1.210]
    assert stats.t.sf(results.tvalues["AD"], 4) == pytest.approx(0.0374, abs=5e-5)
    assert stats.t.sf(results.tvalues["CD"], 4) == pytest.approx(0.146, abs=5e-4)
    assert results.params["AD"] == pytest.approx(11.990) and results.params["CD"] == pytest.approx(6.545)
    assert results.rsquared == pytest.approx(0.736, abs=5e-4) and results.f_pvalue == pytest.approx(0.172, abs=5e-4)


def test_the_terms_are_shown_with_the_digits_that_the_text_prints():
    page = glm.shown(glm.coefficients(glm.fit(printed("taxonomy"), "UCLA"))).to_html()
    headings = re.findall(r"<th[^>]*>(.+?)</th>", page)
    assert headings == ["term", "points", "standard error", "95 % from", "95 % to", "t", "df", "p one-tailed",
                        "p two-tailed", "p corrected"]
    values = re.findall(r"<td[^>]*>(.+?)</td>", page)
    assert values[20:30] == ["AD", "11.99", "5.01", "-1.91", "25.89", "2.394", "4", "0.0374", "0.0748", "0.1497"]
    wald = glm.shown(glm.coefficients(glm.fit(printed("taxonomy"), "UCLA", model="GLM"), correction=None)).to_html()
    assert re.findall(r"<th[^>]*>(.+?)</th>", wald)[5:] == ["z", "df", "p one-tailed", "p two-tailed"]


def test_a_generalised_linear_model_takes_the_same_statistic_for_a_z():
    table = glm.coefficients(glm.fit(printed("taxonomy"), "UCLA", model="GLM")).set_index("term")
    assert table.loc["AD", "t"] == pytest.approx(2.394, abs=5e-4)
    assert table.loc["AD", "p_one_tailed"] == pytest.approx(0.0083, abs=5e-5) and np.isinf(table["df"]).all()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rows", ["unmixed+best", "all", "unmixed decoder"])
def test_least_squares_is_numpys(rows, intercept):
    names = glm.objectives_of(rows)
    estimates, errors, freedom = oracle(values_of("NTU_1layer", names), names, intercept)
    table = glm.coefficients(glm.fit(printed("taxonomy"), "NTU_1layer", rows, intercept=intercept))
    assert table["estimate"].to_numpy() == pytest.approx(estimates)
    assert table["error"].to_numpy() == pytest.approx(errors)
    reach = stats.t.ppf(0.975, freedom) * errors
    assert table["low"].to_numpy() == pytest.approx(estimates - reach)
    assert table["high"].to_numpy() == pytest.approx(estimates + reach)
    assert table["p_two_tailed"].to_numpy() == pytest.approx(2 * stats.t.sf(abs(estimates / errors), freedom))


@pytest.mark.parametrize(("rows", "count"), [
    ("all", 15), ("unmixed", 8), ("unmixed+best", 9), ("unmixed encoder", 11), ("unmixed decoder", 11),
])
def test_row_sets(rows, count):
    names = glm.objectives_of(rows)
    assert len(names) == len(set(names)) == count
    kept = [name for name in names if name != "AE+CE+AD"] if rows == "unmixed+best" else names
    for name in kept:
        assert rows == "all" or "encoder" not in rows or not {"AE", "CE"} <= set(name.split("+"))
        assert rows == "all" or "decoder" not in rows or not {"AD", "CD"} <= set(name.split("+"))
        assert rows not in ("unmixed", "unmixed+best") or name.count("+") < 2
    assert rows != "unmixed+best" or set(names) == set(NINE)


def test_rows_can_be_any_list_in_any_order():
    as_text = ",".join(reversed(NINE)).replace("AE+CE+AD", "AD+CE+AE")
    for rows in (as_text, NINE, tuple(NINE)):
        assert glm.fit(printed("taxonomy"), "UCLA", rows).tvalues["AD"] == pytest.approx(2.394, abs=5e-4)


def test_holm_is_that_of_hand():
    table = glm.coefficients(glm.fit(printed("taxonomy"), "UCLA"))
    p = table["p_one_tailed"].to_numpy()
    order, running, expected = np.argsort(p), 0.0, np.empty(4)
    for rank, place in enumerate(order):
        running = max(running, min(1.0, (4 - rank) * p[place]))
        expected[place] = running
    assert table["p_corrected"].to_numpy() == pytest.approx(expected)
    bonferroni = glm.coefficients(glm.fit(printed("taxonomy"), "UCLA"), correction="bonferroni")
    assert bonferroni["p_corrected"].to_numpy() == pytest.approx(np.minimum(4 * p, 1))
    assert (table["p_corrected"] > 0.05).all()
    assert "p_corrected" not in glm.coefficients(glm.fit(printed("taxonomy"), "UCLA"), correction=None)


def test_every_subset_agrees_with_single_fits_and_with_what_is_known_of_them():
    found = {column: glm.every_subset(printed("taxonomy"), column) for column in glm.COLUMNS}
    generator, names = np.random.default_rng(0), glm.objectives_of("all")
    for _ in range(5):
        chosen = sorted(generator.choice(15, size=11, replace=False))
        rows = [names[place] for place in chosen]
        t = glm.fit(printed("taxonomy"), "UCLA", rows).tvalues[glm.TERMS].to_numpy()
        same = found["UCLA"].query("n_rows == 11")[glm.TERMS].to_numpy()
        assert np.abs(same - t).max(1).min() < 1e-8
    matches = [(abs(each[glm.TERMS] - 2.394) < 5e-4).assign(n_rows=each["n_rows"]) for each in found.values()]
    total = sum(each[glm.TERMS].sum() for each in matches)
    assert total.sum() == 52 and total["CD"] == 0
    assert sum(each.loc[each["n_rows"] == 9, glm.TERMS].to_numpy().sum() for each in matches) == 8


def test_without_one_row():
    found = glm.leave_one_out(printed("taxonomy"), "UCLA").query("term == 'AD'").set_index("left_out")["t"]
    assert set(found.index) == set(NINE)
    assert found.idxmin() == "AE" and found.min() == pytest.approx(1.30, abs=5e-3)
    assert found.idxmax() == "CE" and found.max() == pytest.approx(12.9, abs=5e-2)
    others = [name for name in NINE if name != "CE"]
    estimates, errors, _ = oracle(values_of("UCLA", others), others)
    assert found["CE"] == pytest.approx(estimates[2] / errors[2])
    assert glm.leave_one_out(printed("taxonomy"), "UCLA", ["AE", "CE", "AD", "CD", "AE+CE", "AD+CD"]).empty


def test_the_specification_curve_has_every_choice_once():
    curve = glm.specification_curve()
    assert len(curve) == 11 * 5 * 4 and not curve.duplicated(["rows", "column", "term"]).any()
    row = curve.query("rows == 'unmixed+best' and column == 'UCLA'").set_index("term")
    assert row.loc["AD", "t"] == pytest.approx(2.394, abs=5e-4)
    assert not (abs(curve.loc[curve["term"] == "CD", "t"] - 2.394) < 0.5).any()
    mean = printed("taxonomy")[glm.COLUMNS].mean(axis=1).to_numpy()
    names = glm.names(printed("taxonomy"))
    nine = names.isin(NINE).to_numpy()
    estimates, errors, _ = oracle(mean[nine], names[nine].tolist())
    assert curve.query("rows == 'unmixed+best' and column == 'mean of columns'")["t"].tolist() == pytest.approx(
        list(estimates / errors))


def test_a_perfect_plane_is_found():
    table = glm.SUBSETS.assign(y=10 + glm.SUBSETS @ [1.0, 2.0, 3.0, 4.0])
    results = glm.fit(table, "y", "all")
    assert results.params.tolist() == pytest.approx([10, 1, 2, 3, 4])
    assert list(results.params.index) == ["const", "AE", "CE", "AD", "CD"]


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
    table = printed("taxonomy").assign(**change)
    with pytest.raises(ValueError, match=message):
        glm.fit(table, **({"outcome": "UCLA"} | arguments))


def test_missing_and_repeated_objectives_are_named():
    table = printed("taxonomy")
    names = glm.names(table)
    with pytest.raises(ValueError, match=r"need AD\+CD, CE\+AD\+CD, which the table lacks"):
        glm.fit(table[~names.isin(["AD+CD", "CE+AD+CD"])], "UCLA", "all")
    twice = DataFrame(table.iloc[[*range(15), 3]])
    with pytest.raises(ValueError, match="CD have several rows"):
        glm.fit(twice, "UCLA", "all")
    with pytest.raises(ValueError, match="correction='none' is not one of: None, bonferroni"):
        glm.coefficients(glm.fit(table, "UCLA"), correction="none")
