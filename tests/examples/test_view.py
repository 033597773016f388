"""A new view of images is an operation, its draws and a name: the page's example, made in a copy."""

import pytest
from project_copy import assert_test_passes, copied, run, walk

COMMANDS = """
words = "run image_methods --method moco --preset smoke --engine inline --device cpu".split()
run(*words, "--key-view", "strong,byol")
run("recipe", "image_methods", "--method", "moco", "--key-view", "byol")
run(*words, "--plan")
"""
TOUCHED = ["repro/image/augment.py", "repro/image/operations.py", "repro/image/recipe.py",
           "tests/image/test_solarise.py"]


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The copy, what the change touches, and what each command prints there."""
    copy = copied(tmp_path_factory.mktemp("copy"))
    return copy, walk("A new view of images", copy), run(copy, COMMANDS)


def test_it_touches_three_files_and_a_test(walked):
    assert walked[1] == TOUCHED


def test_its_test_passes_there(walked):
    assert_test_passes(walked[0], TOUCHED[-1])


def test_it_is_trained_beside_a_view_whose_cell_stays_what_it_was(walked):
    trained, _, planned = walked[2].values()
    _, header, *rows = trained.splitlines()
    assert header.split()[0] == "key_view" and [row.split()[0] for row in rows] == ["strong", "byol"]
    assert "1 of 1 cells are finished" in planned


def test_its_parameters_are_shown_with_their_source(walked):
    recipe = walked[2]["recipe image_methods --method moco --key-view byol"]
    lines = {line.split()[0]: line for line in recipe.splitlines()}
    assert lines["key_view.solarise"].split()[1:4] == ["0.2", "BYOL,", "Table"]
