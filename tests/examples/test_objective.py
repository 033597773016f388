"""A new objective on skeletons is a function, its test and one `Term`: the page's example, made in a copy."""

from project_copy import changed

COMMANDS = """
run("run", "taxonomy", "--objectives", "UE,UE+CD", "--preset", "smoke", "--engine", "inline", "--device", "cpu")
run("recipe", "taxonomy", "--objectives", "UE+AE", "--preset", "smoke")
run("run", "taxonomy", "--preset", "smoke", "--plan")
run("run", "taxonomy", "--objectives", "all,UE", "--preset", "smoke", "--plan")
import repro
rows = repro.run_table("taxonomy", objectives="UE,UE+CD", preset="smoke", train="never")
repro.draw("taxonomy", rows).savefig("drawn.svg")
"""
TOUCHED = ["repro/contrast/objectives.py", "repro/skeleton/terms.py", "tests/contrast/test_uniformity.py"]


def test_it_is_trained_beside_the_printed_ones_in_the_order_of_the_terms_and_drawn(tmp_path):
    copy, told = changed(tmp_path, "A new objective on skeletons", TOUCHED, COMMANDS)
    _, header, *rows = next(iter(told.values())).splitlines()
    assert [row.split()[0] for row in rows] == ["UE", "UE+CD"]
    assert header.split() == ["objectives", "ours"]  # nothing is printed
    recipe = told["recipe taxonomy --objectives UE+AE --preset smoke"]
    assert "AE+UE" in next(line for line in recipe.splitlines() if line.startswith("objectives "))
    assert "16 runs" in told["run taxonomy --preset smoke --plan"]
    assert "UE" in (copy / "drawn.svg").read_text()
