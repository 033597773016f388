"""The notebooks that train nothing: they stop at a wrong parameter and read what is stored."""

import os
import re
import subprocess
import sys

import nbformat
import pytest

from repro import manifest

FOLDER = manifest.project_root() / "notebooks"
READING = ("claims", "glm")

every_notebook = pytest.mark.parametrize("name", READING)


def begin(name, **changes):
    """Run the cells up to the third, with parameters put where papermill puts them."""
    _, parameters, check = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells[:3]
    namespace = {}
    exec(parameters.source, namespace)
    namespace |= changes
    exec(check.source.replace("%matplotlib inline", ""), namespace)
    return namespace


def execute(name, folder, **parameters):
    """Run a notebook as a reader would: (finished process, executed notebook)."""
    arguments = [part for item in parameters.items() for part in ("-p", *map(str, item))]
    command = [sys.executable, "-m", "papermill", str(FOLDER / f"{name}.ipynb"), str(folder / f"{name}.ipynb")]
    environment = os.environ | {"REPRO_RUNS": str(folder / "runs"), "REPRO_DATA": str(folder / "no data"),
                                "IPYTHONDIR": str(folder / "ipython")}
    process = subprocess.run([*command, *arguments, "--no-progress-bar"], env=environment, cwd=folder,
                             capture_output=True, text=True, timeout=300)
    return process, nbformat.read(folder / f"{name}.ipynb", as_version=4)


def outputs(notebook):
    """Everything shown, by MIME type or stream, joined."""
    found = {}
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        data = output.get("data", {output.get("name", "error"): output.get("text", "")})
        for kind, text in data.items():
            found.setdefault(kind, []).append(text)
    return found


@every_notebook
@pytest.mark.parametrize(("changes", "message"), [
    ({"datset": "ucla"}, "parameter='datset' is not one of: dataset, preset, .*device; did you mean 'dataset'"),
    ({"seed_list": [0, 1]}, "parameter='seed_list' is not one of"),
    ({"dataset": "nutu"}, "dataset='nutu' is not one of: .*did you mean 'ntu'"),
    ({"preset": "fast"}, "preset='fast' is not one of: auto, paper, quick, smoke"),
    ({"seeds": "a"}, "seeds='a' should be a comma list of whole numbers from 0"),
    ({"device": "tpu"}, "device='tpu' is not one of: auto, cpu, cuda"),
], ids=str)
def test_wrong_parameters_stop_the_third_cell(name, changes, message, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    with pytest.raises(ValueError, match=message):
        begin(name, **changes)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("name", "changes", "message"), [
    ("glm", {"rows": "nine"}, "rows='nine' is not one of: all, unmixed"),
    ("glm", {"model": "anova"}, "model='anova' is not one of: OLS, GLM"),
    ("glm", {"column": "NTU"}, "column='NTU' is not one of: auto, UCLA"),
    ("claims", {"verdict": "true"}, "verdict='true' is not one of: all, holds, fails, undecided, not run, cannot be"),
    ("claims", {"paper": "MoCo"}, "paper='MoCo' is not one of: all, taxonomy, CM-ACC, SCE, JCL"),
])
def test_their_own_parameters_are_checked(name, changes, message):
    with pytest.raises(ValueError, match=message):
        begin(name, **changes)


def test_linear_models_of_our_results(tmp_path):
    chosen = {"dataset": "synthetic", "results": "ours", "rows": "all", "correction": "bonferroni"}
    process, notebook = execute("glm", tmp_path, **chosen)
    assert process.returncode == 0, process.stderr[-3000:]
    shown = outputs(notebook)
    text = "".join(shown["stdout"])
    assert "our means over seeds on synthetic, quick recipe, linear, 15 rows, OLS, with constant" in text
    assert "109396 models, 52 with t = 2.394, 8 of them of nine rows" in text
    assert len(shown["image/png"]) == 2 and not (tmp_path / "runs").exists()
    assert any(">2.394</td>" in table and ">1.210</td>" in table for table in shown["text/html"])


def test_linear_models_without_stored_cells(tmp_path):
    process, notebook = execute("glm", tmp_path, preset="smoke", device="cpu")
    assert process.returncode == 0, process.stderr[-3000:]
    shown = outputs(notebook)
    assert "no cells of the taxonomy are stored for ucla" in "".join(shown["stdout"])
    assert len(shown["image/png"]) == 1


def test_claims_are_filtered_and_name_figures(tmp_path):
    process, notebook = execute("claims", tmp_path, paper="taxonomy", verdict="fails")
    assert process.returncode == 0, process.stderr[-3000:]
    shown = outputs(notebook)
    table, discrepancies = (page for page in shown["text/html"] if "<tbody>" in page)
    ids = re.findall(r">\s*(T\d+)\s*</td>", table)
    assert "T1" in ids and f"{len(ids)} claims" in "".join(shown["stdout"])
    assert not re.findall(r">\s*([CSJ]\d+)\s*</td>", table) and ">holds<" not in table
    figures = re.findall(r'data-figure="([^"]+)"', table)
    assert figures and all((FOLDER.parent / "figures" / name).exists() for name in figures) and "href" not in table
    assert "T-10" in discrepancies and "C-1" not in discrepancies
    assert len(shown["image/png"]) == 1
