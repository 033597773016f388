"""Linear models of printed accuracies and ours, against numpy, simulated seeds and the numbers in the paper's text."""

import numpy as np
import pytest
import statsmodels.formula.api as smf
from pandas import DataFrame
from scipy import stats
from statsmodels.stats.multitest import multipletests

from repro.papers.taxonomy import glm
from repro.report import statistics
from repro.report.printed import printed

NINE = ["AE", "CE", "AD", "CD", "AE+AD", "AE+CD", "CE+AD", "CE+CD", "AE+CE+AD"]  # typed from the paper's main tables
ALL = glm.OBJECTIVES


def oracle(column, names):
    """Estimates, standard errors and residual degrees of freedom of least squares, by numpy alone."""
    values = glm.printed_by_objective().loc[names, column].to_numpy()
    design = np.array([[True, *(term in name.split("+") for term in glm.TERMS)] for name in names], float)
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


@pytest.mark.parametrize("rows", ["unmixed+best", "all", "unmixed decoder"])
def test_least_squares_is_numpys(rows):
    estimates, errors, freedom = oracle("NTU_1layer", glm.ROW_SETS[rows])
    table = glm.coefficients(glm.fit(printed("taxonomy"), "NTU_1layer", rows))
    reach, t = stats.t.ppf(0.975, freedom) * errors, estimates / errors
    expected = {"estimate": estimates, "error": errors, "low": estimates - reach, "high": estimates + reach, "t": t,
                "p_one_tailed": stats.t.sf(t, freedom), "p_two_tailed": 2 * stats.t.sf(abs(t), freedom),
                "p_corrected": multipletests(stats.t.sf(t, freedom), method="holm")[1]}
    for name, values in expected.items():
        assert table[name].to_numpy() == pytest.approx(values), name


def test_row_sets():
    sets = {name: {frozenset(each.split("+")) for each in rows} for name, rows in glm.ROW_SETS.items()}
    assert {name: len(rows) for name, rows in sets.items()} == {
        "all": 15, "unmixed": 8, "unmixed+best": 9, "unmixed encoder": 11, "unmixed decoder": 11}
    assert sets["unmixed+best"] == {frozenset(name.split("+")) for name in NINE}
    assert sets["unmixed"] == sets["unmixed encoder"] & sets["unmixed decoder"]
    assert not any({"AE", "CE"} <= rows for rows in sets["unmixed encoder"])
    assert not any({"AD", "CD"} <= rows for rows in sets["unmixed decoder"])


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


TABLE = printed("taxonomy")


@pytest.mark.parametrize(("table", "arguments", "message"), [
    (TABLE, {"outcome": "UCL"}, "did you mean 'UCLA'. column='UCL' is not one of: AE, CE, AD, CD, UCLA"),
    (TABLE.drop(columns="AD"), {}, "column='AD' is not one of: AE, CE, CD"),
    (TABLE.assign(AE=2), {}, "AE, CE, AD, CD should be 0 or 1"),
    (TABLE.assign(UCLA=np.nan), {}, "UCLA has no number for CD, AD, CE"),
    (TABLE.assign(UCLA="high"), {}, "UCLA has no number"),
    (TABLE, {"rows": "best"}, "rows='best' is not one of: all, unmixed, unmixed.best"),
    (TABLE, {"rows": "CE,CE+XD"}, "rows='CE.XD' is not one of"),
    (TABLE, {"rows": ["AE", "CE", "AD", "CD", "AE+CE"]}, "do not tell AE, CE, AD, CD apart with a row to spare"),
    (TABLE, {"rows": ["AE", "CE", "AE+CE", "AE+AD", "CE+AD", "AE+CE+AD", "AD"]}, "do not tell"),
    (TABLE[~glm.names(TABLE).isin(["AD+CD", "CE+AD+CD"])], {"rows": "all"},
     r"UCLA has no number for AD\+CD, CE\+AD\+CD; run them"),
    (TABLE.iloc[[*range(15), 3]], {"rows": "all"}, "CD have several rows; give their means"),
])
def test_what_cannot_be_fitted_is_refused(table, arguments, message):
    with pytest.raises(ValueError, match=message):
        glm.fit(table, **({"outcome": "UCLA"} | arguments))


def seeds_of(*counts, names=ALL):
    """Accuracies 60 + 5 CE + 8 AD, a deviation for each objective and one for each of its seeds, in turn so many."""
    draw, rows = np.random.default_rng(0), []
    for place, name in enumerate(names):
        terms = [int(term in name.split("+")) for term in glm.TERMS]
        mean = 60 + 5 * terms[1] + 8 * terms[2] + 5 * draw.standard_normal()
        rows += [[name, *terms, number, mean + draw.standard_normal()] for number in range(counts[place % len(counts)])]
    table = DataFrame(rows, columns=["objectives", *glm.TERMS, "seed", "linear"])
    return table.assign(preset="paper", dataset="ucla")


def test_of_equally_many_seeds_a_random_intercept_gives_the_same():
    """The mixed model of all runs, by restricted likelihood."""
    table = seeds_of(3)
    ours = glm.forest(table).query("source == 'ours' and rows == 'all'")
    mixed = smf.mixedlm("linear ~ AE + CE + AD + CD", table, groups=table["objectives"]).fit(reml=True)
    assert ours["estimate"].tolist() == pytest.approx(mixed.params[glm.TERMS].tolist(), rel=2e-3)
    assert ours["error"].tolist() == pytest.approx(mixed.bse[glm.TERMS].tolist(), rel=2e-3)
    assert (ours["df"] == 10).all()


@pytest.mark.parametrize(("counts", "said"), [
    ((2,), "9 objectives, 18 runs, 2 each; least squares on the means over seeds."),
    ((1, 3, 2), "9 objectives, 18 runs, 1 to 3 each; least squares on the means over seeds."),
])
def test_it_is_said_on_how_many_runs_a_model_rests_and_how_unequal_they_are(counts, said):
    assert glm.forest(seeds_of(*counts, names=NINE)).query("source == 'ours'")["statement"].unique() == [said]


def test_a_seed_without_the_measure_is_named():
    table = seeds_of(2, names=NINE)
    table.loc[0, "linear"] = np.nan
    with pytest.raises(ValueError, match="linear has no number for AE; run them"):
        glm.forest(table)


def test_the_forest_has_ours_beside_the_printed_ones():
    table = seeds_of(2)
    found = glm.forest(table).set_index(["rows", "source"])
    assert found.groupby(level=[0, 1]).size().to_dict() == dict.fromkeys(
        [("all", "ours"), ("all", "printed"), ("unmixed+best", "ours"), ("unmixed+best", "printed")], 4)
    assert found.loc[("unmixed+best", "printed"), "t"].iloc[2] == pytest.approx(2.394, abs=5e-4)
    ntu = glm.forest(table.assign(dataset="ntu")).set_index(["rows", "source"])
    assert ntu.loc[("all", "printed"), "estimate"].to_numpy() == pytest.approx(oracle("NTU_1layer", ALL)[0])
    nine = glm.forest(table[table["objectives"].isin(NINE)])
    assert set(nine.query("source == 'ours'")["rows"]) == {"unmixed+best"}  # others were not run
    assert set(glm.forest(table.iloc[:1])["source"]) == {"printed"}


def test_effects_by_pairs_are_means_of_differences_of_all_four_terms():
    """Two of CE, one of each other term, of two seeds."""
    runs = DataFrame({0: [80.0, 82.0, 70.0, 85.0, 79.0, 81.0]}, ["CE", "AD", "CD", "CE+AD", "CE+CD", "AE+CE"])
    table = glm.effects_by_pairs(runs.assign(**{"1": runs[0] + 0.2}), statistics.Deviation(0.6, 9))
    assert table.index.tolist() == glm.TERMS and table["pairs"].tolist() == [1, 2, 1, 1]
    assert table["estimate"].tolist() == pytest.approx([1.0, (3.0 + 9.0) / 2, 5.0, -1.0])
    assert table["error"].tolist() == pytest.approx([0.6, 0.6 * (4 / 2) ** 0.5 / 2, 0.6, 0.6])
    p = [2 * stats.t(9).sf(abs(t)) for t in (1 / 0.6, 6 / (0.6 / 2**0.5), 5 / 0.6, 1 / 0.6)]
    assert table["p"].tolist() == pytest.approx(p)
    assert table["p_corrected"].tolist() == pytest.approx(multipletests(p, method="holm")[1])
