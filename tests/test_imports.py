"""What must run with the core libraries alone imports nothing else, and imports run one way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "repro"
EXTRAS = ("av", "IPython", "ipywidgets", "jupyterlab", "librosa", "matplotlib", "papermill", "pooch", "safetensors")
EXTRAS += ("seaborn", "statsmodels")


def modules(folder):
    return [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in sorted(folder.glob("*.py"))
        if path.stem != "__init__"
    ]


def test_the_core_imports_without_the_extras():
    core = [module for part in ("contrast", "skeleton", "image", "run") for module in modules(PACKAGE / part)]
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
            ("repro.skeleton", "repro.image", "repro.run", "repro.report", "repro.manifest", "repro.recipe",
             "repro.cli"),
        ),
        ("run", ("repro.skeleton", "repro.image", "repro.report", "repro.cli")),
        ("skeleton", ("repro.cli", "repro.notebook", "repro.report.figures", "repro.report.redraw", "repro.image")),
        ("image", ("repro.cli", "repro.notebook", "repro.report.figures", "repro.report.redraw", "repro.skeleton")),
    ],
)
def test_imports_run_one_way(folder, forbidden):
    for path in (PACKAGE / folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in imported:
                assert not name.startswith(forbidden), f"{path} imports {name}"
