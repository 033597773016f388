"""The hash of the code that trains: what is in it, and edits after it was imported."""

import ast
import dataclasses
import subprocess

import pytest
from nursery import python

from repro.image.recipe import IMAGES
from repro.run import code
from repro.skeleton import data
from repro.skeleton.recipe import SKELETONS
from repro.table import Lazy
from tests.test_imports import MODULES, imported

SCRIPT = """
import importlib, sys
from pathlib import Path
from repro.contrast import objectives
path = Path(objectives.__file__)
text = path.read_text()
path.write_text(text + "# another loss")
import repro
from repro.run import code
try:
    repro.run_table("image_methods", preset="smoke", device="cpu")
except ValueError as error:
    print(error)
importlib.reload(objectives)  # what is on disk is what is loaded, but not what the rest was imported with
try:
    repro.run_table("image_methods", preset="smoke", device="cpu")
except ValueError as error:
    print(error)
path.write_text(text)
code.require_as_imported(["repro.image.study"])
print("as it was")
"""


def test_training_is_refused_where_a_file_is_another_than_was_imported_even_if_repro_was_asked_for_nothing(tmp_path):
    copy = tmp_path / "repro"
    subprocess.run(["cp", "-r", code.PACKAGE, copy], check=True)
    beside = [code.PACKAGE.parent / name for name in ("data_manifests", "figures", "pyproject.toml")]
    subprocess.run(["cp", "-r", *beside, tmp_path], check=True)
    done = python("-c", SCRIPT, cwd=tmp_path, env={"REPRO_RUNS": str(tmp_path / "runs"), "PATH": ""})
    *refused, last = done.stdout.splitlines() or [done.stderr]
    edited = f"{copy}/contrast/objectives.py has changed since it was imported; restart the kernel"
    assert [line[:len(edited)] for line in refused] == [edited] * 2 and last == "as it was"


def test_a_hash_is_of_the_modality_what_steps_share_and_the_paper(monkeypatch):
    before = {study.name: study.code for study in (SKELETONS, IMAGES)}
    own = dataclasses.replace(IMAGES, name="own", learners=Lazy("repro.papers.jcl.tables", "learners"))
    before["own"] = own.code
    assert len({*before.values()}) == 3
    for name, others in {"contrast/objectives.py": [*before], "run/recorded.py": [*before], "image/study.py": [
            "images", "own"], "skeleton/study.py": ["skeletons"], "papers/jcl/tables.py": ["own"], "run/store.py": [],
            "cli.py": [], "papers/sce/tables.py": []}.items():
        with monkeypatch.context() as patch:
            patch.setitem(code.IMPORTED, name, "other")
            now = {study.name: study.code for study in (SKELETONS, IMAGES, own)}
            assert [study for study in before if now[study] != before[study]] == others, name


@pytest.mark.parametrize("modules", [["builtins"], ["numpy.core", "__main__"]])
def test_modules_of_others_count_not(modules):
    assert code.identity(modules) == code.identity([])


# Who keeps what is made of files, the module that makes it, and what that one imports for other things.
MAKERS = [
    ("skeleton.ntu", "skeleton.ntu", set()), ("skeleton.data", "skeleton.readers", set()),
    ("image.data", "image.data", {"image.recipe"}), ("audiovisual.prepare", "audiovisual.decode", set()),
    ("audiovisual.synthetic", "audiovisual.synthetic", {"audiovisual.clips"}),
    ("audiovisual.characters", "audiovisual.characters", {"audiovisual.augment"}),
]


@pytest.mark.parametrize(("keeper", "maker", "others"), MAKERS)
def test_what_is_kept_is_named_after_all_of_its_modality_that_makes_it(keeper, maker, others):
    folder, left, makers = maker.split(".")[0], {f"repro.{maker}"}, set()
    while left:
        makers |= left
        left = {name for module in left for name in imported(module)} - makers - {f"repro.{name}" for name in others}
        left = {name for name in left if name.startswith(f"repro.{folder}.")}
    calls = [node for node in ast.walk(ast.parse(MODULES[f"repro.{keeper}"].read_text()))
             if isinstance(node, ast.Call) and ast.unparse(node.func) == "code.of_files"]
    named = {argument.value for call in calls for argument in call.args}
    assert {f"{name.removeprefix('repro.').replace('.', '/')}.py" for name in makers} <= named <= {*code.IMPORTED}


@pytest.mark.parametrize("changed", ["skeleton/pipelines.py", "skeleton/readers.py"])
def test_prepared_arrays_are_made_again_where_a_helper_of_their_reader_has_changed(tmp_path, monkeypatch, changed):
    made_of = []
    monkeypatch.setattr(data.files, "verified_members", lambda *_: [("a01_s01_e00_v01.json", b"{}")])
    monkeypatch.setattr(data, "made_once", lambda name, text, make: made_of.append(text) or {})
    monkeypatch.setattr(data, "prepare", lambda *_: None)
    data.load("ucla", tmp_path)
    data.load("ucla", tmp_path)
    monkeypatch.setitem(code.IMPORTED, changed, "of frames in reverse")
    data.load("ucla", tmp_path)
    assert made_of[0] == made_of[1] != made_of[2]
