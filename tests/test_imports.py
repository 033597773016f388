"""What must run with the core libraries alone imports nothing else, imports run one way, and nothing is left over."""

import ast
import functools
from pathlib import Path

import pytest
from nursery import python

PACKAGE = Path(__file__).parents[1] / "repro"
EXTRAS = ("av", "IPython", "ipywidgets", "jupyterlab", "librosa", "matplotlib", "papermill", "pooch")
EXTRAS += ("anywidget", "packaging", "plotly", "requests", "safetensors", "seaborn", "statsmodels", "dask")
EXTRAS += ("distributed",)

MODALITIES = ("skeleton", "image", "audiovisual")
LAYERS = (  # each imports what stands before it, and of its own line only itself
    ("recipe",),
    ("contrast", "data"),
    ("run",),
    ("report",),
    ("table",),
    (*MODALITIES,),
    ("papers", "experiments"),
    ("book", "cli", "doctor", "encoders", "notebook", "__main__"),
)
TOGETHER = ({*LAYERS[-1]}, {"papers", "experiments"})  # parts of one line that import each other


def name_of(path):
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def imported(name):
    """The modules of the package that one imports, anywhere in it, also where only its annotations need them."""
    names = []
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{node.module} is imported by a relative name"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names += [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    found = {each if each in MODULES else each.rpartition(".")[0] for each in names}
    return found & {*MODULES} - {name}


def layer(part):
    return next(number for number, parts in enumerate(LAYERS) if part in parts)


def test_every_module_has_a_place_in_the_order():
    parts = {name.split(".")[1] for name in MODULES if name != "repro"}
    assert parts == {part for parts in LAYERS for part in parts}


@pytest.mark.parametrize("name", [name for name in MODULES if name != "repro"])
def test_imports_run_one_way(name):
    part = name.split(".")[1]
    for other in imported(name) - {"repro"}:
        theirs = other.split(".")[1]
        below = layer(theirs) < layer(part) and part != "contrast"
        assert below or theirs == part or any({part, theirs} <= parts for parts in TOGETHER), f"{name} imports {other}"
        assert theirs != "report" or part not in MODALITIES, f"{name} imports {other}"  # their papers do
        if part == theirs == "papers":
            shared = name in ("repro.papers.sources", "repro.papers.drawing", "repro.papers.overview")  # of no paper
            assert shared or name.split(".")[2:3] in ([], other.split(".")[2:3]), f"{name} imports {other}"


def test_no_two_files_import_each_other():
    """Not even through others: whatever leads from a file to the ones it imports never comes back."""
    left = {name: imported(name) for name in MODULES}
    while free := [name for name, others in left.items() if not others & left.keys()]:
        left = {name: others for name, others in left.items() if name not in free}
    assert sorted(left) == []


def test_the_core_imports_without_the_extras():
    parts = ("contrast", "skeleton", "audiovisual", "image", "run")
    core = [name for name in MODULES if name.startswith(tuple(f"repro.{part}." for part in parts))]
    core += ["repro.cli", "repro.table"]
    assert "repro.skeleton.study" in core
    script = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS})); import {', '.join(core)}"
    done = python("-c", script, cwd=PACKAGE.parent, env={})
    assert done.returncode == 0, done.stderr
