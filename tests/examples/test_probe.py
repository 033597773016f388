"""A new probe is a function, its test, a marked field and a measure: the page's example, made in a copy."""


import pytest
from project_copy import assert_test_passes, copied, run, walk

COMMANDS = """
from repro.skeleton.pretrain import Pretrainer
words = "taxonomy --objectives CE --preset smoke --engine inline --device cpu --all".split()
run("run", *words)
Pretrainer.step = None
run("run", *words, "--neighbours", "1,9")
"""
TOUCHED = ["repro/papers/taxonomy/tables.py", "repro/run/evaluate.py", "repro/skeleton/recipe.py",
           "repro/skeleton/study.py", "tests/run/test_voted.py"]


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The copy, what the change touches, and what each command prints there."""
    copy = copied(tmp_path_factory.mktemp("copy"))
    return copy, walk("A new probe", copy), run(copy, COMMANDS)


def test_it_touches_four_files_and_a_test(walked):
    assert walked[1] == TOUCHED


def test_its_test_passes_there(walked):
    assert_test_passes(walked[0], TOUCHED[-1])


def test_other_settings_are_measured_without_a_step(walked):
    header, one, nine = [line.split() for line in list(walked[2].values())[-1].splitlines()]
    voted, nearest = header.index("voted"), header.index("knn1")
    assert one[voted] == one[nearest] == nine[nearest] != nine[voted]
