"""Every command that README and docs/ show is executed here as it is, in other tests, or says why in none.

What is executed in none is held against the recipes at least: its options exist, and have such values.
"""

import itertools
import re
import shlex

import pytest

from repro import papers
from repro.data import manifest

ROOT = manifest.project_root()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {  # by the file that executes them, long ones on bundled data and with preset smoke
    ".ci/run": [
        "python3 -m venv .venv", "pip install -r requirements.txt", "pip install -r requirements-dev.txt", "pytest",
    ],
    "tests/notebooks/test_execution.py": [
        "papermill notebooks/category_difficulty.ipynb out.ipynb",
        "papermill notebooks/category_diversity.ipynb out.ipynb",
        "papermill notebooks/cross_modal.ipynb out.ipynb",
        "papermill notebooks/dictionary_size.ipynb out.ipynb",
        "papermill notebooks/glm.ipynb out.ipynb",
        "papermill notebooks/negative_instances.ipynb out.ipynb",
        "papermill notebooks/ohem_vs_active.ipynb out.ipynb",
        "papermill notebooks/similarity_variance.ipynb out.ipynb",
        "papermill notebooks/taxonomy.ipynb out.ipynb",
        "papermill notebooks/temperature_grid.ipynb out.ipynb -p preset smoke",
        "papermill notebooks/transfer.ipynb out.ipynb",
    ],
    "tests/test_cli_results.py": ["repro figures --output drawn", "repro report", "repro results export"],
    "tests/report/test_markdown.py": ["repro report --markdown"],
    "tests/image/test_study.py": ["repro results weights KEY"],
    "tests/test_book.py": ["repro report"],
    "tests/examples/test_skeleton_data_set.py": [
        "repro recipe taxonomy --dataset utd_mhad",
        "repro run taxonomy --dataset utd_mhad --preset smoke --objectives AE+CE",
    ],
    "tests/examples/test_image_data_set.py": [
        "repro data import svhn part.npz", "repro recipe image_methods --dataset svhn",
        "repro run image_methods --dataset svhn --subset --preset smoke --method ressl",
    ],
}
IN_NONE = {
    "hours, and data that do not come with the package": [
        "repro run taxonomy_ucla --against CE", "repro run taxonomy_ucla --all --output table.csv",
        "papermill notebooks/encoder_collapse.ipynb out.ipynb -p dataset ucla",
        "papermill notebooks/mutual_information.ipynb out.ipynb -p dataset multiomniglot",
        "papermill notebooks/positive_keys.ipynb out.ipynb -p dataset imagenet100",
        "papermill notebooks/taxonomy.ipynb out.ipynb -p dataset ucla",
        "papermill notebooks/taxonomy.ipynb out.ipynb -p dataset ntu",
        "papermill notebooks/taxonomy.ipynb out.ipynb -p dataset ntu -p layers 3",
        "papermill notebooks/taxonomy.ipynb out.ipynb -p dataset ntu -p units 1024",
        "papermill notebooks/taxonomy.ipynb ucla.ipynb -p dataset ucla -p preset quick",
        "papermill notebooks/taxonomy.ipynb ntu.ipynb -p dataset ntu",
        "papermill notebooks/cross_modal.ipynb ucf101.ipynb -p dataset ucf101 -p subset True -p targets ucf101 "
        "-p preset quick",
        "papermill notebooks/transfer.ipynb esc10.ipynb -p dataset esc50 -p subset True -p targets esc10 -p split 1 "
        "-p method scratch,smoco -p preset quick",
        "repro data import cifar10 FILE",
        "repro data prepare esc50 --subset",
        "repro data prepare ucf101 --subset --size 64",
        "repro run cross_modal --dataset multiomniglot --preset quick --characters 3 --distinct 2000 --frequency "
        "zipf --redrawn true --augmented true --seeds 0,1,2 --method scratch,supervised",
        "repro run ohem_vs_active --dataset multiomniglot --preset quick --characters 3 --distinct 2000 "
        "--frequency zipf --redrawn true --augmented true --seeds 0,1,2 --sampler random,ohem,feature,gradient "
        "--batch 128 --dictionary 256,1024",
        "repro run mutual_information --dataset multiomniglot --preset quick --characters 1,3,5,9 --augmented "
        "true --seeds 0,1",
        "repro run mutual_information --dataset multiomniglot --preset quick --characters 1,3,5,9 --augmented "
        "true --seeds 0,1 --pairs 50000",
        "repro run dictionary_size --dataset multiomniglot --preset quick --characters 3 --augmented true "
        "--seeds 0,1 --pairs 50000 --dictionary 256,2048,32768 --iterations 1250 --pool 40960",
        "repro run category_diversity --dataset multiomniglot --preset quick --characters 1 --categories 101 "
        "--batch 64 --iterations 624 --seeds 0,1,2,3,4",
        "repro run category_diversity --dataset multiomniglot --preset quick --characters 1 --categories 101 "
        "--batch 64 --iterations 624 --seeds 0,1,2 --frequency zipf",
        "repro run mutual_information --dataset multiomniglot --preset quick --method xmoco --characters 1 "
        "--categories 101 --iterations 39,156,624 --seeds 0,1,2,3,4",
        "repro run image_methods --dataset cifar10 --method jcl,vanilla,moco --preset quick",
        "repro run image_methods --dataset cifar10 --method sce,ressl",
        "repro run image_methods --dataset cifar10 --subset --preset quick",
        "repro run positive_keys --dataset imagenet100 --keys 5 --temperature 0.2 --strength 0,1,4,10",
        "repro run taxonomy --dataset ucla --preset paper --plan",
        "repro run taxonomy --dataset ucla --preset quick",
        "repro run taxonomy --dataset ucla --objectives CD,AE+CD --seeds 0,1,2",
        "repro run temperature_grid --dataset cifar10",
    ],
    "minutes; what it measures along training is in tests/run/test_contract.py": [
        "repro run taxonomy --objectives CE,AD,CE+AD --ad-weight 1,25 --epochs 8 --probe-every 2",
    ],
    "a minute; the notebook of this table is executed with other temperatures in tests/notebooks/test_execution.py": [
        "repro run temperature_grid --preset smoke --temperature 0.1,0.15 --key-temperature 0.05",
    ],
    "a download; tests/data/test_present.py has a server of its own": [
        "repro data download cifar10", "repro data download multiomniglot",
    ],
    "GPUs, or machines of the reader's; tests/run/test_engine.py has a cluster of processes": [
        "repro run taxonomy --dataset ntu --device cuda --engine dask --workers tcp://HOST:8786",
        "dask scheduler --host HOST", "dask worker tcp://HOST:8786 --nthreads 1 --resources GPU=1",
    ],
}
OF_RUNS = ("device", "engine", "plan", "seeds", "workers")  # options of `repro run` that are no field


def commands():
    """Single commands of all fenced blocks of a shell, without what the environment of Python and comments add."""
    found = set()
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            lines = [re.sub(r"\s+#.*", "", line) for line in block.splitlines()]
            found |= {part.strip().replace(".venv/bin/", "") for line in lines for part in line.split(" && ")}
    return sorted(found)


LISTED = {command: place for where in (ELSEWHERE, IN_NONE) for place, listed in where.items() for command in listed}


def recipe_asked_for(command):
    """The words after `repro recipe` that ask for the recipe that a command trains; none if it trains none."""
    words = shlex.split(command)
    if words[:2] == ["repro", "run"]:
        pairs = re.findall(r"--(\S+)(?: (?!--)(\S+))?", command)
        table = words[2]
    else:
        pairs = [(name.replace("_", "-"), value) for name, value in re.findall(r"-p (\S+) (\S+)", command)]
        table = re.sub(r".*notebooks/(\w+)\.ipynb.*", r"\1", command)
    options = [word for name, value in pairs if name not in OF_RUNS
               for word in (f"--{name}", value if value != "True" else "") if word]
    return [table, *options] if table in papers.lines() and pairs else []


def test_what_is_listed_is_shown_and_the_tests_named_are_there():
    assert {*LISTED} <= {*commands()}
    assert all((ROOT / place).is_file() for place in ELSEWHERE)
    executing = (ROOT / "tests" / "notebooks" / "test_execution.py").read_text(encoding="utf-8")
    for command in ELSEWHERE["tests/notebooks/test_execution.py"]:
        name, = re.findall(r"notebooks/(\w+)\.ipynb ", command)
        assert f'"{name}"' in executing
    assert all((ROOT / place).exists() for reason in IN_NONE for place in re.findall(r"tests/[\w/.]*", reason))


@pytest.mark.parametrize("command", [command for command in commands() if command not in LISTED])
def test_a_command_as_it_is(repro, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write where they are given
    words = shlex.split(command)
    assert words[0] == "repro", f"{command} is no command of ours: list it in this file, and why it is not executed"
    status, out, errors = repro(*words[1:])
    assert status == 0 and out
    assert all("cells are not finished" in line for line in errors.splitlines())  # of experiments that go on


@pytest.mark.parametrize("command", [*filter(recipe_asked_for, itertools.chain(*IN_NONE.values()))])
def test_the_recipe_of_a_command_that_no_test_executes(repro, command):
    status, out, errors = repro("recipe", *recipe_asked_for(command))
    assert (status, errors) == (0, "") and out


@pytest.mark.parametrize("command", [
    "repro run taxonomy --datset ucla", "papermill notebooks/taxonomy.ipynb out.ipynb -p layer 3",
])
def test_a_misspelt_option_would_be_noticed(repro, command):
    assert repro("recipe", *recipe_asked_for(command))[0] == 2
