"""A new method on images is a function, its test and one `Method`: the page's example, made in a copy."""

import json

import pytest
from project_copy import assert_test_passes, copied, run, walk

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
TOUCHED = ["repro/contrast/objectives.py", "repro/image/methods.py", "tests/contrast/test_vicreg.py"]


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The copy, what the change touches, and what each command prints there."""
    copy = copied(tmp_path_factory.mktemp("copy"))
    return copy, walk("A new method on images", copy), run(copy, COMMANDS)


def test_it_touches_two_files_and_a_test(walked):
    assert walked[1] == TOUCHED


def test_its_test_passes_there(walked):
    assert_test_passes(walked[0], TOUCHED[-1])


def test_it_is_trained_and_has_no_printed_number(walked):
    _, header, *rows = next(iter(walked[2].values())).splitlines()
    assert [row.split()[0] for row in rows] == ["vicreg", "random"] and header.split() == ["method", "ours"]


def test_its_recipe_has_the_fields_it_needs_and_what_it_needs_not_is_not_built(walked):
    told = walked[2]["recipe image_methods --method vicreg"]
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in told.splitlines()}
    assert lines["key_view"] == ["strong", "VICReg, section 4: both views are alike"]
    assert not {"temperature", "dictionary", "momentum", "momentum_copied", "shuffle", "keys"} & lines.keys()
    for path in (walked[0] / "runs" / "cells").glob("*/recipe.json"):
        if json.loads(path.read_text())["recipe"]["method"] == "vicreg":
            state = load_checkpoint(path.parent)["learner"]
            assert {"model", "optimiser"} <= state.keys() and not {"keys", "dictionary"} & state.keys()
            return
    pytest.fail("no cell of vicreg is there")


def test_the_rows_of_the_table_are_still_its_own(walked):
    assert "6 cells" in walked[2]["run image_methods --preset smoke --plan"]


def test_the_figure_has_it(walked):
    assert "vicreg" in (walked[0] / "drawn.svg").read_text()
