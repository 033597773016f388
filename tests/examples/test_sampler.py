"""A new sampler of negatives is a function, its test and one `Sampler`: the page's example, made in a copy."""


import pytest
from project_copy import assert_test_passes, copied, run, walk

COMMANDS = """
words = "--preset smoke --batch 16 --engine inline --device cpu"
run("run", "ohem_vs_active", "--sampler", "margin,random", "--targets", "synthetic_audio", *words.split())
run("run", "ohem_vs_active", "--preset", "smoke", "--plan")
"""
TOUCHED = ["repro/contrast/samplers.py", "tests/contrast/test_margin.py"]


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The copy, what the change touches, and what each command prints there."""
    copy = copied(tmp_path_factory.mktemp("copy"))
    return copy, walk("A new sampler of negatives", copy), run(copy, COMMANDS)


def test_it_touches_a_file_and_a_test(walked):
    assert walked[1] == TOUCHED


def test_its_test_passes_there(walked):
    assert_test_passes(walked[0], TOUCHED[-1])


def test_it_selects_in_a_training(walked):
    title, header, *rows = next(iter(walked[2].values())).splitlines()
    assert [row.split()[0] for row in rows] == ["margin", "random"], (title, header)


def test_the_rows_of_the_table_are_still_its_own(walked):
    assert "margin" not in walked[2]["run ohem_vs_active --preset smoke --plan"]
