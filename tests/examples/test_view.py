"""A new view of images is an operation, its draws and a name: the page's example, made in a copy."""

from project_copy import changed

COMMANDS = """
words = "run image_methods --method moco --preset smoke --engine inline --device cpu".split()
run(*words, "--key-view", "strong,byol")
run("recipe", "image_methods", "--method", "moco", "--key-view", "byol")
run(*words, "--plan")
"""
TOUCHED = ["repro/image/augment.py", "repro/image/operations.py", "repro/image/recipe.py",
           "tests/image/test_solarise.py"]


def test_it_is_trained_beside_a_view_whose_cell_stays_what_it_was(tmp_path):
    _, told = changed(tmp_path, "A new view of images", TOUCHED, COMMANDS)
    _, header, *rows = next(iter(told.values())).splitlines()
    assert header.split()[0] == "key_view" and [row.split()[0] for row in rows] == ["strong", "byol"]
    assert "1 of 1 cells are finished" in list(told.values())[-1]
    recipe = told["recipe image_methods --method moco --key-view byol"]
    lines = {line.split()[0]: line for line in recipe.splitlines()}
    assert lines["key_view.solarise"].split()[1:4] == ["0.2", "BYOL,", "Table"]
