"""A new objective on skeletons is a function, its test and one `Term`: the page's example, made in a copy."""


import pytest
from project_copy import assert_test_passes, copied, run, walk

COMMANDS = """
run("run", "taxonomy", "--objectives", "UE,AE+UE,UE+CD", "--preset", "smoke", "--engine", "inline", "--device", "cpu")
run("recipe", "taxonomy", "--objectives", "UE+AE", "--preset", "smoke")
run("run", "taxonomy", "--preset", "smoke", "--plan")
run("run", "taxonomy", "--objectives", "all,UE", "--preset", "smoke", "--plan")
import repro
rows = repro.run_table("taxonomy", objectives="UE,AE+UE,UE+CD", preset="smoke", train="never")
repro.draw("taxonomy", rows).savefig("drawn.svg")
"""
TOUCHED = ["repro/contrast/objectives.py", "repro/skeleton/terms.py", "tests/contrast/test_uniformity.py"]


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The copy, what the change touches, and what each command prints there."""
    copy = copied(tmp_path_factory.mktemp("copy"))
    return copy, walk("A new objective on skeletons", copy), run(copy, COMMANDS)


def test_it_touches_two_files_and_a_test(walked):
    assert walked[1] == TOUCHED


def test_its_test_passes_there(walked):
    assert_test_passes(walked[0], TOUCHED[-1])


def test_its_objectives_are_trained_and_have_no_printed_number(walked):
    _, header, *rows = next(iter(walked[2].values())).splitlines()
    assert [row.split()[0] for row in rows] == ["UE", "AE+UE", "UE+CD"]
    assert header.split() == ["objectives", "ours"]  # nothing is printed


def test_they_are_named_in_the_order_of_the_terms(walked):
    told = walked[2]["recipe taxonomy --objectives UE+AE --preset smoke"]
    assert "AE+UE" in next(line for line in told.splitlines() if line.startswith("objectives "))


def test_all_are_still_the_printed_ones(walked):
    assert "16 cells" in walked[2]["run taxonomy --preset smoke --plan"]


def test_the_figure_has_them(walked):
    drawing = (walked[0] / "drawn.svg").read_text()
    assert "UE" in drawing
