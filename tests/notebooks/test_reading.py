"""The notebooks that train nothing: they stop at a wrong parameter and read what is stored."""

import re

import pytest
from executed_notebooks import FOLDER, begin, executed, outputs, printed, tables


@pytest.mark.parametrize(("name", "changes", "message"), [
    ("glm", {"rows": "nine"}, "rows='nine' is not one of: all, unmixed"),
    ("glm", {"model": "anova"}, "model='anova' is not one of: OLS, GLM"),
    ("glm", {"intercept": "false"}, "intercept='false' is not one of: True, False"),
    ("glm", {"column": "NTU"}, "column='NTU' is not one of: auto, UCLA"),
    ("claims", {"verdict": "true"}, "verdict='true' is not one of: all, holds, fails, undecided, not run, cannot be"),
    ("claims", {"paper": "MoCo"}, "paper='MoCo' is not one of: all, CM-ACC, JCL, SCE, taxonomy"),
])
def test_their_own_parameters_are_checked(name, changes, message):
    with pytest.raises(ValueError, match=message):
        begin(name, **changes)


def test_linear_models_of_our_results(tmp_path):
    chosen = {"dataset": "synthetic", "results": "ours", "rows": "all", "correction": "bonferroni"}
    notebook = executed("glm", tmp_path, **chosen)
    text = printed(notebook)
    assert "our means over seeds on synthetic, quick recipe, linear, 15 rows, OLS, with constant" in text
    assert len(outputs(notebook, "image/png")) == 2 and not (tmp_path / "runs").exists()
    assert any(">2.394</td>" in table and ">1.210</td>" in table for table in outputs(notebook, "text/html"))


def test_linear_models_without_stored_cells(tmp_path):
    notebook = executed("glm", tmp_path, preset="smoke", device="cpu")
    assert "no cells of the taxonomy are stored for ucla" in printed(notebook)
    assert len(outputs(notebook, "image/png")) == 1


def test_claims_are_filtered_and_name_figures(tmp_path):
    notebook = executed("claims", tmp_path, paper="taxonomy", verdict="fails")
    table, discrepancies = tables(notebook)
    ids = re.findall(r">\s*(T\d+)\s*</td>", table)
    assert "T1" in ids and f"{len(ids)} claims" in printed(notebook)
    assert not re.findall(r">\s*([CSJ]\d+)\s*</td>", table) and ">holds<" not in table
    figures = re.findall(r"\w+\.png", table)
    assert figures and all((FOLDER.parent / "figures" / name).exists() for name in figures)
    assert "T-10" in discrepancies and "C-1" not in discrepancies
    assert len(outputs(notebook, "image/png")) == 1
