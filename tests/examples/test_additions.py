"""A new objective, sampler, method on images or encoder is a function, its test and a line of a table."""

import json

import pytest

from repro.run.fit import load_checkpoint

SMOKE = '"--preset", "smoke", "--engine", "inline", "--device", "cpu"'


def rows_of(told):
    """The first words of the header and of every row that the first command prints."""
    _, header, *rows = next(iter(told.values())).splitlines()
    return header.split(), [row.split()[0] for row in rows]


def test_an_objective_is_trained_in_the_order_of_the_terms_and_drawn(all_made, printed_by, tmp_path):
    told = printed_by(f"""
run("run", "taxonomy", "--objectives", "UE,UE+CD", {SMOKE})
run("recipe", "taxonomy", "--objectives", "UE+AE", "--preset", "smoke")
run("run", "taxonomy", "--preset", "smoke", "--plan")
import repro
rows = repro.run_table("taxonomy", objectives="UE,UE+CD", preset="smoke", train="never")
repro.draw("taxonomy", rows).savefig("{tmp_path}/drawn.svg")
""")
    assert all_made.touched["A new objective on skeletons"] == [
        "repro/contrast/objectives.py", "repro/skeleton/terms.py", "tests/contrast/test_uniformity.py"]
    assert rows_of(told) == (["objectives", "ours"], ["UE", "UE+CD"])  # nothing is printed
    recipe = told["recipe taxonomy --objectives UE+AE --preset smoke"]
    assert "AE+UE" in next(line for line in recipe.splitlines() if line.startswith("objectives "))
    assert "16 runs" in told["run taxonomy --preset smoke --plan"]
    assert "UE" in (tmp_path / "drawn.svg").read_text()


@pytest.mark.usefixtures("clips_prepared")
def test_a_sampler_selects_in_a_training_and_is_in_no_row_of_the_table(all_made, printed_by):
    told = printed_by(f"""
run("run", "ohem_vs_active", "--sampler", "margin,random", "--targets", "synthetic_audio", "--batch", "16", {SMOKE})
run("run", "ohem_vs_active", "--preset", "smoke", "--plan")
""")
    assert all_made.touched["A new sampler of negatives"] == [
        "repro/contrast/__init__.py", "repro/contrast/active.py", "tests/contrast/test_margin.py"]
    assert rows_of(told)[1] == ["margin", "random"]
    assert "margin" not in told["run ohem_vs_active --preset smoke --plan"]


def test_a_method_on_images_has_the_parts_and_fields_that_it_needs(all_made, printed_by, tmp_path):
    told = printed_by(f"""
run("run", "image_methods", "--method", "vicreg,random", {SMOKE})
run("recipe", "image_methods", "--method", "vicreg")
run("run", "image_methods", "--preset", "smoke", "--plan")
import repro
rows = repro.run_table("image_methods", method="vicreg", preset="smoke", train="never")
repro.draw("image_methods", rows).savefig("{tmp_path}/drawn.svg")
""")
    assert all_made.touched["image_method"] == [
        "repro/image/pretrain.py", "repro/image/recipe.py", "tests/image/test_vicreg.py"]
    assert rows_of(told) == (["method", "ours"], ["vicreg", "random"])
    assert "6 runs" in told["run image_methods --preset smoke --plan"]  # the table's own rows
    recipe = told["recipe image_methods --method vicreg"]
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in recipe.splitlines()}
    assert lines["key_view"] == ["strong", "VICReg, section 4: both views are alike"]
    assert not {"temperature", "dictionary", "momentum", "momentum_copied", "shuffle", "keys"} & lines.keys()
    trained = {json.loads(path.read_text())["recipe"]["method"]: path.parent
               for path in (tmp_path / "runs" / "runs").glob("*/recipe.json")}
    state = load_checkpoint(trained["vicreg"])["learner"]
    assert {"model", "optimiser"} <= state.keys() and not {"keys", "dictionary"} & state.keys()
    assert "vicreg" in (tmp_path / "drawn.svg").read_text()


def test_an_encoder_is_trained_beside_the_gru_whose_run_stays_and_exported(all_made, printed_by):
    told = printed_by(f"""
import json, torch
import repro
from repro.data import manifest
run("run", "taxonomy", "--objectives", "CE", "--encoder", "gru,graph", {SMOKE})
run("run", "taxonomy", "--objectives", "CE", "--preset", "smoke", "--plan")
ids = {{json.loads(path.read_text())["recipe"]["encoder"]: path.parent.name
         for path in manifest.runs_root().glob("runs/*/recipe.json")}}
run("results", "weights", ids["graph"], "--output", str(manifest.runs_root() / "graph.safetensors"))
neighbours = repro.load(manifest.runs_root() / "graph.safetensors").model.neighbours
print("joints", len(neighbours), int((neighbours > 0).sum()))
""")
    assert all_made.touched["encoder"] == [
        "repro/skeleton/graph.py", "repro/skeleton/model.py", "repro/skeleton/recipe.py",
        "tests/skeleton/test_graph.py"]
    header, rows = rows_of(told)
    assert rows == ["gru", "graph"] and header[0] == "encoder"
    assert "1 of 1 runs are finished" in told["run taxonomy --objectives CE --preset smoke --plan"]
    assert list(told.values())[-1].splitlines()[-1] == f"joints 20 {20 + 2 * 19}"  # the bones, both ways
