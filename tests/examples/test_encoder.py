"""A new encoder of skeletons is a class, a field and a line: the page's example, made in a copy."""


import pytest
from project_copy import assert_test_passes, copied, run, walk

COMMANDS = """
import json, torch
import repro
from repro.data import manifest
from repro.skeleton.data import load
run("run", "taxonomy", "--objectives", "CE", "--encoder", "gru,graph", "--preset", "smoke", "--engine", "inline",
    "--device", "cpu")
run("run", "taxonomy", "--objectives", "CE", "--preset", "smoke", "--plan")
cells = {json.loads(path.read_text())["recipe"]["encoder"]: path.parent.name
         for path in manifest.runs_root().glob("cells/*/recipe.json")}
run("results", "weights", cells["graph"], "--output", "graph.safetensors")
encoder = repro.load("graph.safetensors")
neighbours = encoder.model.neighbours
print("joints", len(neighbours), int((neighbours > 0).sum()))
"""
TEST = "tests/skeleton/test_graph.py"


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The copy, what the change touches, and what each command prints there."""
    copy = copied(tmp_path_factory.mktemp("copy"))
    return copy, walk("A new encoder of skeletons", copy), run(copy, COMMANDS)


def test_it_touches_three_files_and_a_test(walked):
    names = ["graph", "model", "recipe"]
    assert walked[1] == [*(f"repro/skeleton/{name}.py" for name in names), TEST]


def test_its_test_passes_there(walked):
    assert_test_passes(walked[0], TEST)


def test_it_is_trained_beside_the_gru_whose_cell_stays_what_it_was(walked):
    _, header, *rows = next(iter(walked[2].values())).splitlines()
    assert [row.split()[0] for row in rows] == ["gru", "graph"] and header.split()[0] == "encoder"
    assert "1 of 1 cells are finished" in walked[2]["run taxonomy --objectives CE --preset smoke --plan"]


def test_the_graph_in_an_exported_file_is_that_of_the_bones(walked):
    last = list(walked[2].values())[-1].splitlines()[-1]
    assert last == f"joints 20 {20 + 2 * 19}"
