"""The campaign of mutants: what it changes, and that the tests it runs see the change."""

import ast

import pytest

from tests.campaigns import mutants

MODULE = "repro/contrast/dictionary.py"


def test_every_mutant_of_a_module_is_another_program():
    every = mutants.mutants(MODULE)
    sources = [mutants.source(mutant) for mutant in every]
    assert len(sources) == len(set(sources)) > 20
    original = ast.unparse(ast.parse((mutants.ROOT / MODULE).read_text()))
    for mutant, source in zip(every, sources, strict=True):
        compile(source, MODULE, "exec")
        lines = zip(original.splitlines(), source.splitlines(), strict=False)
        old, new = next((old, new) for old, new in lines if old != new)
        assert mutant.before.strip() in old or mutant.after.strip() in new


def test_all_mutants_of_contrast_are_tried_and_those_that_the_seed_draws_of_the_rest():
    tried, others = (mutants.campaign(5, seed) for seed in (0, 1))
    assert tried[:-5] == others[:-5] and tried[-5:] != others[-5:]
    assert all(mutant.module.startswith("repro/contrast/") for mutant in tried[:-5])
    assert [mutant for mutant in tried if mutant.module == MODULE] == mutants.mutants(MODULE)
    assert not any(mutant.module.startswith("repro/contrast/") for mutant in tried[-5:])


@pytest.mark.parametrize(("module", "first", "folder", "last"), [
    ("repro/contrast/negatives.py", "tests/contrast/test_negatives.py", "tests/contrast/", []),
    ("repro/table.py", "tests/test_table.py", "tests/", ["tests/golden/test_golden.py"]),
    ("repro/papers/jcl/tables.py", "tests/papers/jcl/test_tables.py", "tests/papers/jcl/",
     ["tests/golden/test_golden.py"]),
])
def test_a_module_has_its_own_tests_then_those_of_its_folder_then_what_is_recorded(module, first, folder, last):
    tests = mutants.tests_of(module)
    others = tests[: len(tests) - len(last)]
    assert tests == others + last and others[0] == first and len(tests) == len(set(tests)) > 1
    assert {path.rpartition("/")[0] + "/" for path in others} == {folder}


def test_the_tests_see_what_is_changed_and_the_checkout_is_left_alone():
    before = (mutants.ROOT / MODULE).read_text()
    assert mutants.killed(MODULE, "raise RuntimeError")
    assert (mutants.ROOT / MODULE).read_text() == before
