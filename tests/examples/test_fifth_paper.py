"""A fifth paper is one folder: `byol`, put into a copy of the package, is in every command, the site and a notebook."""

import shutil
from pathlib import Path

import pytest
from copied_project import copied, printed_by

HERE = Path(__file__).parent
COMMANDS = """
from repro import manifest
run("run", "predictor", "--preset", "smoke", "--engine", "inline", "--device", "cpu", "--seeds", "0,1")
run("recipe", "predictor", "--method", "byol")
import json
for path in manifest.runs_root().glob("cells/*/recipe.json"):  # smoke runs are drawn in no figure
    path.write_text(json.dumps(json.loads(path.read_text()) | {"preset": "quick"}))
run("figures")
run("claims", "--paper", "BYOL")
run("report", "--output", "site")
import repro
from repro import notebook
names = {"dataset": "digits", "preset": "smoke", "seeds": "0", "device": "cpu", "predictor": 64}
settings = notebook.begin(names, "predictor")
rows = repro.run_table("predictor", **settings)
repro.draw("predictor", rows).savefig("notebook.png")
print(rows["method"].tolist(), rows["departures"].tolist())
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the commands print on a copy of the project with the example among its papers, and the copy."""
    copy = copied(tmp_path_factory.mktemp("copy"))
    shutil.copytree(HERE / "byol", copy / "repro" / "papers" / "byol")
    return printed_by(copy, COMMANDS), copy


def of(told, command):
    found, = [text for words, text in told[0].items() if words.split()[0] == command]
    return found


def test_it_is_small():
    assert sum(len(path.read_text().splitlines()) for path in (HERE / "byol").rglob("*.py")) <= 120


def test_its_table_is_trained_and_printed(told):
    header, *rows = of(told, "run").splitlines()
    assert header.split()[:2] == ["method", "ours"] and [row.split()[0] for row in rows] == ["without", "byol"]
    assert len(list((told[1] / "runs" / "cells").glob("*/result.json"))) == 5  # and one of the notebook


def test_its_recipe_has_its_own_field(told):
    line, = [line for line in of(told, "recipe").splitlines() if line.startswith("predictor ")]
    assert line.split(maxsplit=2)[1:] == ["128", "assumed: units"]


def test_its_figure_and_claim_are_there(told):
    assert "predictor_digits.png" in of(told, "figures")
    assert (told[1] / "figures" / "predictor_digits.png").stat().st_size > 1000
    line, = of(told, "claims").splitlines()
    assert line.startswith("B1 ") and "Without the predictor nothing is learned." in line


def test_the_site_shows_it(told):
    page = (told[1] / "site" / "index.html").read_text()
    assert "BYOL" in page and "predictor" in page and "B1" in (told[1] / "site" / "claims.html").read_text()


def test_a_notebook_takes_its_fields(told):
    assert "['without', 'byol'] [{}, {'predictor': 64}]" in of(told, "report")  # the last command's part
    assert (told[1] / "notebook.png").stat().st_size > 1000
