"""What must run with the core libraries alone imports nothing else, and imports run one way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "repro"
EXTRAS = ("av", "IPython", "ipywidgets", "jupyterlab", "librosa", "matplotlib", "nbconvert", "papermill", "pooch")
EXTRAS += ("packaging", "requests", "safetensors", "seaborn", "statsmodels", "dask", "distributed")


def modules(folder):
    return [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in sorted(folder.glob("*.py"))
        if path.stem != "__init__"
    ]


def test_the_core_imports_without_the_extras():
    parts = ("contrast", "skeleton", "audiovisual", "image", "run")
    core = [module for part in parts for module in modules(PACKAGE / part)]
    core.append("repro.cli")
    assert "repro.skeleton.tables" in core
    script = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS})); import {', '.join(core)}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "folder, forbidden",
    [
        (
            "contrast",
            ("repro.skeleton", "repro.audiovisual", "repro.image", "repro.run", "repro.report", "repro.manifest",
             "repro.recipe", "repro.cli"),
        ),
        ("run", ("repro.skeleton", "repro.audiovisual", "repro.image", "repro.report", "repro.cli")),
        *(
            (part, ("repro.cli", "repro.notebook", "repro.papers.taxonomy.figures", "repro.report.redraw", *others))
            for part, *others in (
                ("skeleton", "repro.audiovisual", "repro.image"),
                ("audiovisual", "repro.skeleton", "repro.image"),
                ("image", "repro.skeleton", "repro.audiovisual"),
            )
        ),
    ],
)
def test_imports_run_one_way(folder, forbidden):
    for path in (PACKAGE / folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in imported:
                assert not name.startswith(forbidden), f"{path} imports {name}"
