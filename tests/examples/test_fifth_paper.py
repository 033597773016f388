"""A fifth paper is one folder and a notebook: the page's example, made in a copy, is in every command."""

import pytest
import torch
from executed_notebooks import execute, outputs, printed, tables
from project_copy import run

import repro

COMMANDS = """
import json, os
from repro.data import manifest
from repro.experiments import studies
words = "run predictor --preset smoke --engine inline --device cpu --seeds 0,1"
run(*words.split())
run("recipe", "predictor", "--method", "byol")
folders = map(os.path.dirname, manifest.runs_root().glob("runs/*/checkpoint.pt"))
id = next(os.path.basename(folder) for folder in folders if json.load(open(f"{folder}/recipe.json"))["seed"] == 1)
run("results", "weights", id, "--output", "byol.safetensors")
run("results", "list")
for path in manifest.runs_root().glob("runs/*/recipe.json"):  # smoke runs decide no claim
    record = json.loads(path.read_text())
    recipe = record["recipe"]
    quick = studies()[record["study"]].presets["quick"](recipe["dataset"], recipe["method"]).to_dict()
    changes = {name: value for name, value in recipe.items() if value != quick[name]}
    path.write_text(json.dumps(record | {"preset": "quick", "changes": changes}))
run("figures", "predictor_digits")
run("claims", "--paper", "BYOL")
"""


@pytest.fixture(scope="module")
def copy(all_made):
    """The copy, in which the paper's experiment is of smoke runs."""
    touched = all_made.touched["A paper"]
    assert [path.rpartition("/")[0] for path in touched] == [*6 * ["repro/papers/byol"], "notebooks"]
    saved = all_made.folder / "repro" / "papers" / "byol" / "experiments.yaml"
    saved.write_text(saved.read_text().replace("preset: quick", "preset: smoke"))
    return all_made.folder


@pytest.fixture(scope="module")
def executed(copy):
    """Its notebook as papermill leaves it."""
    process, notebook = execute("predictor", copy, copy, preset="smoke", device="cpu", predictor=64)
    assert process.returncode == 0, process.stderr[-3000:]
    return notebook


@pytest.fixture(scope="module")
def told(copy, executed):
    """What the commands print, by their first word; the notebook has trained two runs before."""
    return {words.split()[0]: text for words, text in run(copy, COMMANDS).items()}


def test_a_notebook_takes_its_fields_and_shows_its_figure(executed):
    assert "2 runs of preset smoke on digits, 0 finished" in printed(executed)
    assert "predictor=64" in tables(executed)[0]
    assert len(outputs(executed, "image/png")) == 1


def test_its_table_is_trained_and_printed(told, copy):
    title, header, *rows = told["run"].splitlines()
    assert title == "digits, smoke recipe" and header.split() == ["method", "ours"]
    assert [row.split()[0] for row in rows] == ["without", "byol"] and all(row.endswith(" (2)") for row in rows)
    assert len(list((copy / "runs" / "runs").glob("*/result.json"))) == 5


def test_its_recipe_has_its_own_fields_and_sources(told):
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in told["recipe"].splitlines()}
    assert lines["predictor"] == ["128", "assumed: units"]
    assert lines["momentum"] == ["0.996", "BYOL, section 3"] and lines["key_view"] == ["strong", "BYOL, section 3"]
    assert "MoCo" not in lines["query_view"][1] and "temperature" not in lines  # which it does not use


def test_its_figure_and_claim_are_there(told, copy):
    assert "predictor_digits.png" in told["figures"]
    assert (copy / "runs" / "figures" / "predictor_digits.png").stat().st_size > 1000
    assert told["claims"].startswith("B1 ") and "Without the predictor nothing is learned." in told["claims"]


def test_its_runs_are_listed(told):
    rows = [line.split() for line in told["results"].splitlines() if " yours " in line]
    assert sorted((row[-1], row[1], row[7]) for row in rows) == [
        ("byol", "byol", "linear"), ("byol", "byol", "linear"), ("predictor=64", "byol", "linear"),
        ("without", "byol", "linear"), ("without", "byol", "linear"),
    ]


def test_the_weights_of_its_encoder_can_be_taken_elsewhere(told, copy):
    assert repro.load(copy / "byol.safetensors")(torch.zeros(2, 3, 8, 8)).shape[0] == 2
