"""How far evidence carries, and that the notebook explains every verdict and level."""

import pytest

from repro.data import manifest
from repro.report.verdicts import BUNDLED, LEVELS, PAPER, SHORTENED, VERDICTS, level_of, rank


@pytest.mark.parametrize(("dataset", "preset", "changed", "expected"), [
    ("ucla", "paper", False, PAPER), ("ucla", "quick", False, SHORTENED), ("ucla", "paper", True, SHORTENED),
    ("ntu (subset)", "paper", False, SHORTENED), ("cifar10 (my_copy.npz)", "quick", False, SHORTENED),
    ("synthetic", "paper", False, BUNDLED), ("digits", "quick", True, BUNDLED),
])
def test_only_the_recipe_on_official_data_is_a_reproduction(dataset, preset, changed, expected):
    assert level_of(dataset, preset, changed) == expected


def test_a_data_set_that_there_is_not_has_no_level():
    with pytest.raises(ValueError, match="dataset='uclla' is not one of"):
        level_of("uclla", "paper")


def test_the_notebook_explains_verdicts_and_levels():
    ordered = ["closed form", "printed numbers", "paper recipe, real data", "shortened, real data", "bundled data"]
    assert sorted(LEVELS, key=rank) == ordered
    text = (manifest.project_root() / "notebooks" / "claims.ipynb").read_text(encoding="utf-8")
    assert all(f"| {level} | {meaning} |" in text for level, meaning in LEVELS.items())
    assert all(verdict in text for verdict in VERDICTS)
