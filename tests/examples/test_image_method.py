"""A new method on images is a function, its test and one `Method`: the example beside this file, made in a copy."""

import json

from project_copy import changed

from repro.run.fit import load_checkpoint

COMMANDS = """
import repro
words = "--preset smoke --engine inline --device cpu"
run("run", "image_methods", "--method", "vicreg,random", *words.split())
run("recipe", "image_methods", "--method", "vicreg")
run("run", "image_methods", *words.split()[:2], "--plan")
rows = repro.run_table("image_methods", method="vicreg", preset="smoke", train="never")
repro.draw("image_methods", rows).savefig("drawn.svg")
"""
TOUCHED = ["repro/image/pretrain.py", "repro/image/recipe.py", "tests/image/test_vicreg.py"]


def test_it_is_trained_with_the_parts_and_fields_that_it_needs_and_drawn(tmp_path):
    copy, told = changed(tmp_path, "image_method", TOUCHED, COMMANDS)
    _, header, *rows = next(iter(told.values())).splitlines()
    assert [row.split()[0] for row in rows] == ["vicreg", "random"] and header.split() == ["method", "ours"]
    assert "6 runs" in told["run image_methods --preset smoke --plan"]  # the table's own rows
    recipe = told["recipe image_methods --method vicreg"]
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in recipe.splitlines()}
    assert lines["key_view"] == ["strong", "VICReg, section 4: both views are alike"]
    assert not {"temperature", "dictionary", "momentum", "momentum_copied", "shuffle", "keys"} & lines.keys()
    trained = {json.loads(path.read_text())["recipe"]["method"]: path.parent
               for path in (copy / "runs" / "runs").glob("*/recipe.json")}
    state = load_checkpoint(trained["vicreg"])["learner"]
    assert {"model", "optimiser"} <= state.keys() and not {"keys", "dictionary"} & state.keys()
    assert "vicreg" in (copy / "drawn.svg").read_text()
