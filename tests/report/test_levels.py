"""One vocabulary for how far evidence carries, wherever a reader meets it."""

import pytest

from repro.data import manifest
from repro.report.verdicts import EMBEDDED, LEVELS, PAPER, QUICK, level_of, rank

NOTEBOOK = manifest.project_root() / "notebooks" / "claims.ipynb"


@pytest.mark.parametrize(("dataset", "preset", "changed", "expected"), [
    ("ucla", "paper", False, PAPER), ("ucla", "quick", False, QUICK), ("ucla", "paper", True, QUICK),
    ("ntu (subset)", "paper", False, QUICK), ("cifar10 (my_copy.npz)", "quick", False, QUICK),
    ("synthetic", "paper", False, EMBEDDED), ("digits", "quick", True, EMBEDDED),
])
def test_only_the_recipe_on_official_data_is_a_reproduction(dataset, preset, changed, expected):
    assert level_of(dataset, preset, changed) == expected


def test_an_unknown_data_set_has_no_level():
    with pytest.raises(ValueError, match="dataset='uclla' is not one of"):
        level_of("uclla", "paper")


def test_the_order_of_the_levels():
    ordered = ["closed form", "printed numbers", "paper recipe, real data", "quick, real data", "embedded data"]
    assert sorted(LEVELS, key=rank) == ordered


def test_the_notebook_of_claims_explains_the_same_levels():
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert all(f"| {level} | {meaning} |" in text for level, meaning in LEVELS.items())
