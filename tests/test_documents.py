"""Every command that README and docs/ show: quick ones are executed as they are, trainings are held against recipes."""

import re
import shlex

import pytest

from repro import papers
from repro.data import manifest

ROOT = manifest.project_root()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
OTHERS = ("python3 -m venv", "pip install", "pytest", "dask ")  # how commands of others begin
ELSEWHERE = {  # by the test that executes them, or says what they do with files of its own
    "tests/test_cli_results.py": [
        "repro figures taxonomy_ucla --output drawn", "repro figures --committed", "repro results export",
        "repro claims --paper JCL"],
    "tests/papers/test_claims.py": ["repro claims"],
    "tests/test_book.py": ["repro report"],
    "tests/report/test_markdown.py": ["repro report --markdown"],
    "tests/image/test_study.py": ["repro results weights ID"],
    "tests/data/test_files.py": ["repro data download cifar10", "repro data download multiomniglot"],
    "tests/test_cli_data.py": ["repro data import cifar10 FILE"],
    "tests/audiovisual/test_prepare.py": [
        "repro data prepare esc50 --subset", "repro data prepare ucf101 --subset --size 64"],
    "tests/examples/test_examples.py": [
        "repro recipe taxonomy --dataset utd_mhad",
        "repro run taxonomy --dataset utd_mhad --preset smoke --objectives AE+CE"],
}
LISTED = [command for listed in ELSEWHERE.values() for command in listed]
OF_RUNS = ("against", "all", "device", "engine", "output", "plan", "seeds", "workers")  # options that are no field


def commands():
    """Single commands of all fenced blocks of a shell, without what the environment of Python and comments add."""
    found = set()
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            lines = [re.sub(r"\s+#.*", "", line) for line in block.splitlines()]
            found |= {part.strip().replace(".venv/bin/", "") for line in lines for part in line.split(" && ")}
    return sorted(command for command in found if not command.startswith(OTHERS))


def recipe_asked_for(command):
    """The words after `repro recipe` that ask for the recipe that a command trains; none if it trains none."""
    words = shlex.split(command)
    if words[:2] == ["repro", "run"] and "never" not in words:
        name, pairs = words[2], re.findall(r"--(\S+)(?: (?!--)(\S+))?", command)
    elif words[0] == "papermill":
        name, pairs = words[1].removeprefix("notebooks/").removesuffix(".ipynb"), re.findall(r"-p (\S+) (\S+)", command)
    else:
        return []
    options = []
    for option, value in pairs:
        if option not in OF_RUNS:
            options += [f"--{option}", value] if value not in ("", "True") else [f"--{option}"]
    return [name, *options] if name in papers.table_names() or name in papers.saved() else []


def test_what_is_listed_is_shown_and_the_tests_named_are_there():
    assert {*LISTED} <= {*commands()} and all((ROOT / place).is_file() for place in ELSEWHERE)


@pytest.mark.parametrize("command", [command for command in commands() if command not in LISTED])
def test_a_command_is_executed_or_its_recipe_is_there(repro, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write where they are given
    words = shlex.split(command)
    asked = recipe_asked_for(command)
    if words[0] == "papermill" and not asked:
        assert (ROOT / words[1]).is_file()
        return
    assert words[0] in ("repro", "papermill"), f"{command} is no command of ours: list it in this file"
    status, out, errors = repro("recipe", *asked) if asked else repro(*words[1:])
    assert status == 0 and out
    assert all("runs are not finished" in line for line in errors.splitlines())  # of experiments that go on
