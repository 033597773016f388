"""The hash of the code that trains: what is in it, and edits after it was imported."""

import dataclasses
import subprocess

import pytest
from nursery import python

from repro.image.recipe import IMAGES
from repro.run import code
from repro.skeleton.recipe import SKELETONS
from repro.table import Lazy

SCRIPT = """
import shutil, sys
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
    first, second = done.stdout.splitlines() or [done.stderr, ""]
    assert first.startswith(f"{copy}/contrast/objectives.py has changed since it was imported; restart the kernel")
    assert second == "as it was"


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
