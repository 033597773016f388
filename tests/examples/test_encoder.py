"""A new encoder of skeletons is a class, a field and a line: the example beside this file, made in a copy."""

from project_copy import changed

COMMANDS = """
import json, torch
import repro
from repro.data import manifest
from repro.skeleton.data import load
run("run", "taxonomy", "--objectives", "CE", "--encoder", "gru,graph", "--preset", "smoke", "--engine", "inline",
    "--device", "cpu")
run("run", "taxonomy", "--objectives", "CE", "--preset", "smoke", "--plan")
ids = {json.loads(path.read_text())["recipe"]["encoder"]: path.parent.name
         for path in manifest.runs_root().glob("runs/*/recipe.json")}
run("results", "weights", ids["graph"], "--output", "graph.safetensors")
encoder = repro.load("graph.safetensors")
neighbours = encoder.model.neighbours
print("joints", len(neighbours), int((neighbours > 0).sum()))
"""
TOUCHED = ["repro/skeleton/graph.py", "repro/skeleton/model.py", "repro/skeleton/recipe.py",
           "tests/skeleton/test_graph.py"]


def test_it_is_trained_beside_the_gru_whose_run_stays_what_it_was_and_exported_with_its_graph(tmp_path):
    _, told = changed(tmp_path, "encoder", TOUCHED, COMMANDS)
    _, header, *rows = next(iter(told.values())).splitlines()
    assert [row.split()[0] for row in rows] == ["gru", "graph"] and header.split()[0] == "encoder"
    assert "1 of 1 runs are finished" in told["run taxonomy --objectives CE --preset smoke --plan"]
    assert list(told.values())[-1].splitlines()[-1] == f"joints 20 {20 + 2 * 19}"  # the bones, both ways
