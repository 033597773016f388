"""A copy of the project, changes of docs/add_your_own.md and of tests/examples made in it, and commands there."""

import re
import shutil
import subprocess

from nursery import python

from repro.data import manifest


def copied(folder):
    """The folder with the package, what it needs beside it, and no figures."""
    for name in ("repro", "data_manifests"):
        shutil.copytree(manifest.project_root() / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "figures").mkdir()
    return folder


def changes():
    """What there is to apply: the block of every section of the page that has one, and the files of tests/examples."""
    root = manifest.project_root()
    page = (root / "docs" / "add_your_own.md").read_text(encoding="utf-8")
    found = dict(re.findall(r"^## ([^\n]*)\n(?:(?!^## ).)*?^```diff\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    return found | {path.stem: path.read_text(encoding="utf-8") for path in (root / "tests/examples").glob("*.diff")}


def walk(title, copy):
    """Make a change in a copy; returns the files that it names."""
    change = changes()[title]
    command, options = ["git", "apply", "--whitespace=error"], {"cwd": copy, "input": change, "text": True}
    counts = subprocess.run([*command, "--numstat"], **options, check=True, capture_output=True).stdout.splitlines()
    shown = len(re.findall(r"^\+(?!\+\+ )", change, re.MULTILINE))  # beyond a block's own number git reads nothing
    assert sum(int(line.split()[0]) for line in counts) == shown
    subprocess.run(command, **options, check=True)
    return re.findall(r"^\+\+\+ b/(.*)", change, re.MULTILINE)


def run(copy, code, **environment):
    """What Python code prints that is run in a copy; it has `run("recipe", "taxonomy")` for commands."""
    start = """
from repro import cli
def run(*words):
    print(f"== {' '.join(words)}", flush=True)
    cli.app(list(words), standalone_mode=False)
"""
    variables = {"PATH": "", "REPRO_RUNS": str(copy / "runs"), "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    ended = python("-c", start + code, cwd=copy, env=variables | environment)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return dict(part.split("\n", 1) for part in ended.stdout.split("== ")[1:])
