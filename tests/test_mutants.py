"""The campaign of mutants: what it changes, and that the tests it runs see the change."""

import subprocess
import sys

from repro.data import manifest
from tests.campaigns import mutants

BROKEN = """
import sys
from tests.campaigns.mutants import Mutant, _begin, kills
_begin(sys.argv[1])
print(kills(Mutant("dictionary", 1, "", "", "raise RuntimeError")))
"""


def test_every_mutant_of_a_module_is_another_program():
    original = mutants.ast.unparse(mutants.ast.parse(mutants.source("dictionary")))
    sources = [each.source for each in mutants.mutants("dictionary")]
    assert len(sources) > 20 and original not in sources
    assert len(sources) == len(set(sources))
    for source in sources:
        compile(source, "dictionary.py", "exec")


def test_the_tests_see_what_is_changed_and_the_checkout_is_left_alone(tmp_path):
    before = mutants.source("dictionary")
    command = [sys.executable, "-c", BROKEN, str(tmp_path)]
    done = subprocess.run(command, cwd=manifest.project_root(), capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
    assert mutants.source("dictionary") == before
