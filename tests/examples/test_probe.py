"""A new probe is a function, its test, a marked field and a measure: the page's example, made in a copy."""

from project_copy import changed

COMMANDS = """
from repro.skeleton.pretrain import Pretrainer
words = "taxonomy --objectives CE --preset smoke --engine inline --device cpu --all".split()
run("run", *words)
Pretrainer.step = None
run("run", *words, "--neighbours", "1,9")
"""
TOUCHED = ["repro/papers/taxonomy/tables.py", "repro/run/evaluate.py", "repro/skeleton/recipe.py",
           "repro/skeleton/study.py", "tests/run/test_voted.py"]


def test_other_settings_are_measured_without_a_step(tmp_path):
    _, told = changed(tmp_path, "A new probe", TOUCHED, COMMANDS)
    header, one, nine = [line.split() for line in list(told.values())[-1].splitlines()]
    voted, nearest = header.index("voted"), header.index("knn1")
    assert one[voted] == one[nearest] == nine[nearest] != nine[voted]
