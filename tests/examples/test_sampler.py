"""A new sampler of negatives is a function, its test and a row of one table: the page's example, made in a copy."""

import pytest
from project_copy import changed

COMMANDS = """
words = "--preset smoke --batch 16 --engine inline --device cpu"
run("run", "ohem_vs_active", "--sampler", "margin,random", "--targets", "synthetic_audio", *words.split())
run("run", "ohem_vs_active", "--preset", "smoke", "--plan")
"""
TOUCHED = ["repro/contrast/__init__.py", "repro/contrast/active.py", "tests/contrast/test_margin.py"]


@pytest.mark.usefixtures("clips_prepared")
def test_it_selects_in_a_training_and_is_in_no_row_of_the_table(tmp_path):
    _, told = changed(tmp_path, "A new sampler of negatives", TOUCHED, COMMANDS)
    title, header, *rows = next(iter(told.values())).splitlines()
    assert [row.split()[0] for row in rows] == ["margin", "random"], (title, header)
    assert "margin" not in told["run ohem_vs_active --preset smoke --plan"]
