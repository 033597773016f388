"""The identity of the code that trains: what changes it, and when stored numbers may be others."""

import copy
import importlib
import sys
import textwrap
from pathlib import Path

import pytest

from repro.run import code
from repro.run.code import Code, identity

PARTS = {
    "study": "from own_paper import loss\n\n\ndef learners():\n    return loss.value(1), 'own_paper.part'\n",
    "loss": "import json\n\n\ndef value(x):\n    return 2 * x\n",
    "part": "value = 1\n",
    "other": "unused = 1\n",
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A package of a paper's own; returns what computes the identity after parts were replaced."""
    folder = tmp_path / "own_paper"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    def of(**changes):
        for name, text in (PARTS | changes).items():
            (folder / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        identity.cache_clear()
        return identity("own_paper.study")

    yield of
    identity.cache_clear()
    for name in [name for name in sys.modules if name.startswith("own_paper")]:
        del sys.modules[name]


@pytest.mark.parametrize(("changes", "same"), [
    ({}, True),
    ({"loss": 'import json\n\n\ndef value(x):  # twice\n    """2 x."""\n\n    return 2 * x\n'}, True),
    ({"other": "unused = 2\n"}, True),
    ({"part": "value = 2\n"}, False),  # which is imported when it is needed
    ({"loss": "import json\n\n\ndef value(x):\n    return -2 * x\n"}, False),
    ({"loss": "import json\n\n\ndef value(x):\n    return 2 * x  + 0\n"}, False),
    ({"study": "def learners():\n    from own_paper import loss, other\n    return loss.value(1)\n"}, False),
])
def test_code_is_what_its_statements_are_and_those_of_what_it_imports(made, changes, same):
    assert (made(**changes) == made()) is same


@pytest.mark.parametrize("imported", ["from . import loss", "from .loss import value"])
def test_imports_that_begin_with_a_dot_are_followed(made, imported):
    study = f"{imported}\n\n\ndef learners():\n    return 1\n"
    assert made(study=study) != made(study=study, loss="def value(x):\n    return -2 * x\n")


@pytest.mark.parametrize(("study", "place"), [
    ("from own_paper import value\n", "__init__"), ("from . import value\n", "losses/__init__"),
    ("from own_paper.losses import value\n", "losses/__init__"), ("from .losses import value\n", "losses/own"),
])
def test_what_stands_in_a_package_of_ones_own_is_followed(made, tmp_path, study, place):
    """In its `__init__`, or in a module from which that has it."""
    (tmp_path / "own_paper" / "losses").mkdir()
    files = {"__init__": "from .losses import value\n", "losses/__init__": "from .own import value\n",
             "losses/own": "value = 1\n", "study": study}
    assert made(**files) != made(**files | {place: "value = 2\n"})


def test_what_a_paper_of_another_distribution_takes_from_it_is_followed(made, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path / "site")
    information = tmp_path / "site" / "theirs-1.0.dist-info"
    (tmp_path / "site" / "their_package").mkdir(parents=True)
    (tmp_path / "site" / "their_package" / "__init__.py").touch()
    common = tmp_path / "site" / "their_package" / "common.py"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[repro.papers]\ntheirs = their_package.papers\n")
    found = []
    for value in (1, 2):
        common.write_text(f"value = {value}\n")
        found.append(made(study="from their_package.common import value\n"))
    assert found[0] != found[1]


def test_a_hash_in_a_text_is_no_comment(made):
    assert made(loss="def value(x):\n    return '# 1'\n") != made(loss="def value(x):\n    return '# 2'\n")


@pytest.mark.parametrize("modality", ["skeleton", "image", "audiovisual"])
def test_the_identity_of_a_modality_is_that_of_its_losses_too(monkeypatch, tmp_path, modality):
    before = identity(f"repro.{modality}.study")
    find = importlib.util.find_spec
    edited = tmp_path / "objectives.py"
    source = Path(find("repro.contrast.objectives").origin).read_text()
    edited.write_text(source.replace("- positive).mean()", "+ positive).mean()", 1))
    assert edited.read_text() != source
    spec = copy.copy(find("repro.contrast.objectives"))
    spec.origin = str(edited)
    monkeypatch.setattr(code.importlib.util, "find_spec",
                        lambda name: spec if name == "repro.contrast.objectives" else find(name))
    identity.cache_clear()
    try:
        assert identity(f"repro.{modality}.study") != before
    finally:
        identity.cache_clear()


@pytest.mark.parametrize(("today", "stored", "differs"), [
    ("a", "a", False), ("a", "b", False), ("b", None, False), ("a", "x", True), ("x", "a", True), ("x", None, True),
    ("x", "x", False), ("a", "a; b", False), ("a", "a; x", True), ("x", "a; x", True),
])
def test_stored_numbers_may_be_others_unless_both_codes_are_accepted_or_equal(
    monkeypatch, tmp_path, today, stored, differs
):
    (tmp_path / "accepted.yaml").write_text("skeletons: {3: [a, b]}\n")
    monkeypatch.setattr(code, "ACCEPTED", tmp_path / "accepted.yaml")
    monkeypatch.setattr(code, "identity", lambda module: today)
    assert Code("skeletons", 3, "somewhere").differs(stored) is differs
    assert Code("skeletons", 4, "somewhere").differs(stored) is (today != stored)
    assert today in Code("skeletons", 3, "somewhere").advice()
