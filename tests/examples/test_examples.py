"""Every example of docs/add_your_own.md and of this folder, made in a copy of the project, is in every command there.

A new objective, sampler, method on images or encoder is a function, its test and a line of a table; a new data set is
a manifest and a reader; a fifth paper is one folder and a notebook.
"""

import json
import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest
import torch
import yaml
from executed_notebooks import execute, nursery, outputs, printed, tables
from made_up_images import use_tiny_trunk

import repro
from repro.data import manifest
from repro.run.fit import load_checkpoint

ROOT = manifest.project_root()
START = """
import json, shlex
import numpy as np
import repro
from repro import cli
from repro.data import manifest
SMOKE = "--preset smoke --engine inline --device cpu"
def run(command):
    print(f"== {command}", flush=True)
    cli.app(shlex.split(command), standalone_mode=False)
"""


def changes():
    """What there is to apply: the block of every section of the page that has one, and the files of this folder."""
    page = (ROOT / "docs" / "add_your_own.md").read_text(encoding="utf-8")
    found = dict(re.findall(r"^## ([^\n]*)\n(?:(?!^## ).)*?^```diff\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    return found | {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "tests/examples").glob("*.diff")}


def walk(change, copy):
    """Make a change in a copy; returns the files that it names."""
    command, options = ["git", "apply", "--whitespace=error"], {"cwd": copy, "input": change, "text": True}
    counts = subprocess.run([*command, "--numstat"], **options, check=True, capture_output=True).stdout.splitlines()
    shown = len(re.findall(r"^\+(?!\+\+ )", change, re.MULTILINE))  # beyond a block's own number git reads nothing
    assert sum(int(line.split()[0]) for line in counts) == shown
    subprocess.run(command, **options, check=True)
    return re.findall(r"^\+\+\+ b/(.*)", change, re.MULTILINE)


@pytest.fixture(scope="module")
def all_made(tmp_path_factory):
    """The copy, in which one change is made after the other, and by title the files that each touches.

    Smoke runs are the fifth paper's experiment, and 216 recordings all of UTD-MHAD. The tests that come with the
    changes pass.
    """
    folder = tmp_path_factory.mktemp("copy")
    for name in ("repro", "data_manifests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "figures").mkdir()
    made = SimpleNamespace(folder=folder, touched={title: walk(change, folder) for title, change in changes().items()})
    saved = folder / "repro" / "papers" / "byol" / "experiments.yaml"
    saved.write_text(saved.read_text().replace("preset: quick", "preset: smoke"))
    declared = folder / "data_manifests" / "utd_mhad.yaml"
    fields = yaml.safe_load(declared.read_text())
    fields["files"][0]["members"] = 216
    fields["splits"]["xsub"]["expect"] = {"train": 108, "test": 108}
    declared.write_text(yaml.safe_dump(fields))
    tests = [path for touched in made.touched.values() for path in touched if path.startswith("tests/")]
    words = "-m", "pytest", "-q", "-c", "/dev/null", "-p", "no:cacheprovider", *tests
    ended = nursery(folder).call(words, folder, {"PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert len(made.touched) == 7 and f"{len(tests)} passed" in ended.stdout, ended.stdout
    return made


def run(copy, code, folder):
    """What Python code prints that is run in a folder with the copy, by command: what `run("...")` of `START` calls."""
    environment = {"PATH": "", "REPRO_RUNS": str(folder / "runs"), "REPRO_DATA": str(folder / "data"),
                   "PYTHONPATH": str(copy)}
    ended = nursery(copy).call(("-c", START + code), folder, environment)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return dict(part.split("\n", 1) for part in ended.stdout.split("== ")[1:])


def rows_of(told):
    """The first words of the header and of every row that the first command prints."""
    _, header, *rows = next(iter(told.values())).splitlines()
    return header.split(), [row.split()[0] for row in rows if row]


def test_an_objective_is_trained_in_the_order_of_the_terms_and_drawn(all_made, tmp_path):
    told = run(all_made.folder, """
run(f"run taxonomy --objectives UE,UE+CD {SMOKE}")
run("recipe taxonomy --objectives UE+AE --preset smoke")
print(len(repro.TABLES["taxonomy"].asked(preset="smoke")))
trained = repro.run_table("taxonomy", objectives="UE,UE+CD", preset="smoke", train="never")
repro.draw("taxonomy", trained).savefig("drawn.svg")
""", tmp_path)
    assert all_made.touched["A new objective on skeletons"] == [
        "repro/contrast/objectives.py", "repro/skeleton/terms.py", "tests/contrast/test_uniformity.py"]
    assert rows_of(told) == (["objectives", "ours"], ["UE", "UE+CD"])  # nothing is printed
    *recipe, rows = told["recipe taxonomy --objectives UE+AE --preset smoke"].splitlines()
    assert "AE+UE" in next(line for line in recipe if line.startswith("objectives "))
    assert rows == "16"  # of the table, without them
    assert "UE" in (tmp_path / "drawn.svg").read_text()


def test_a_sampler_selects_in_a_training_and_is_in_no_row_of_the_table(all_made, tmp_path):
    told = run(all_made.folder, """
run(f"run ohem_vs_active --sampler margin,random --targets synthetic_audio --batch 16 {SMOKE}")
print("", *(run.recipe.sampler for run in repro.TABLES["ohem_vs_active"].asked(preset="smoke")))
""", tmp_path)
    assert all_made.touched["A new sampler of negatives"] == [
        "repro/contrast/__init__.py", "repro/contrast/active.py", "tests/contrast/test_margin.py"]
    assert rows_of(told)[1][:2] == ["margin", "random"]
    samplers = next(iter(told.values())).splitlines()[-1].split()
    assert len(samplers) > 2 and "margin" not in samplers


def test_a_method_on_images_has_the_parts_and_fields_that_it_needs(all_made, tmp_path):
    told = run(all_made.folder, """
run(f"run image_methods --method vicreg,random {SMOKE}")
run("recipe image_methods --method vicreg")
print(len(repro.TABLES["image_methods"].asked(preset="smoke")))
trained = repro.run_table("image_methods", method="vicreg", preset="smoke", train="never")
repro.draw("image_methods", trained).savefig("drawn.svg")
""", tmp_path)
    assert all_made.touched["image_method"] == [
        "repro/image/pretrain.py", "repro/image/recipe.py", "tests/image/test_vicreg.py"]
    assert rows_of(told) == (["method", "ours"], ["vicreg", "random"])
    *recipe, rows = told["recipe image_methods --method vicreg"].splitlines()
    assert rows == "6"  # of the table, without it
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in recipe}
    assert lines["key_view"] == ["strong", "VICReg, section 4: both views are alike"]
    assert not {"temperature", "dictionary", "momentum", "momentum_copied", "shuffle", "keys"} & lines.keys()
    trained = {json.loads(path.read_text())["recipe"]["method"]: path.parent
               for path in (tmp_path / "runs" / "runs").glob("*/recipe.json")}
    state = load_checkpoint(trained["vicreg"])["learner"]
    assert {"model", "optimiser"} <= state.keys() and not {"keys", "dictionary"} & state.keys()
    assert "vicreg" in (tmp_path / "drawn.svg").read_text()


def test_an_encoder_is_trained_beside_the_gru_whose_run_stays_and_exported(all_made, tmp_path):
    told = run(all_made.folder, """
run(f"run taxonomy --objectives CE --encoder gru,graph {SMOKE}")
run("run taxonomy --objectives CE --preset smoke --plan")
ids = {json.loads(path.read_text())["recipe"]["encoder"]: path.parent.name
       for path in manifest.runs_root().glob("runs/*/recipe.json")}
run(f"results weights {ids['graph']} --output graph.safetensors")
neighbours = repro.load("graph.safetensors").model.neighbours
print("joints", len(neighbours), int((neighbours > 0).sum()))
""", tmp_path)
    assert all_made.touched["encoder"] == [
        "repro/skeleton/graph.py", "repro/skeleton/model.py", "repro/skeleton/recipe.py",
        "tests/skeleton/test_graph.py"]
    header, rows = rows_of(told)
    assert rows == ["gru", "graph"] and header[0] == "encoder"
    assert "1 of 1 runs are finished" in told["run taxonomy --objectives CE --preset smoke --plan"]
    assert list(told.values())[-1].splitlines()[-1] == f"joints 20 {20 + 2 * 19}"  # the bones, both ways


def test_an_image_data_set_is_listed_taken_in_trained_and_read_as_it_was_written(all_made, tmp_path):
    assert all_made.touched["image_data_set"] == ["data_manifests/svhn.yaml", "repro/image/readers.py"]
    told = run(all_made.folder, """
import hashlib
from repro import notebook
from repro.image import DATASETS, data, readers
from scipy.io import savemat
from torchvision.datasets import SVHN

draws = np.random.default_rng(0)
arrays = {"x_train": draws.integers(0, 256, (512, 32, 32, 3), np.uint8), "y_train": np.arange(512) % 10,
          "x_test": draws.integers(0, 256, (20, 32, 32, 3), np.uint8), "y_test": np.arange(20) % 10}
np.savez("part.npz", **arrays)
run("data list")
run("data import svhn part.npz")
run("recipe image_methods --dataset svhn")
run("run image_methods --dataset svhn --help")
run(f"run image_methods --dataset svhn --subset --method ressl {SMOKE}")
names = {"dataset": "svhn", "subset": True, "preset": "smoke", "seeds": "0", "device": "cpu"}
print("settings", notebook.begin(names, "temperature_grid"))
grid = repro.TABLES["temperature_grid"]
print("printed", *(grid.printed(row.recipe) for row in grid.asked("svhn", "paper")[:2]))

folder = manifest.data_root() / "svhn"  # the official distribution, made up
folder.mkdir(parents=True)
for part in ("train", "test"):
    path = folder / f"{part}_32x32.mat"
    labels = np.where(arrays[f"y_{part}"] == 0, 10, arrays[f"y_{part}"])  # the label 10 stands for the digit 0
    savemat(path, {"X": arrays[f"x_{part}"].transpose(1, 2, 3, 0), "y": labels[:, None].astype(np.uint8)})
    SVHN.split_list[part][2] = hashlib.md5(path.read_bytes()).hexdigest()
made, taken_in = readers.READERS["svhn"](folder, DATASETS["svhn"]), data.load("svhn", subset=True)
same = [bool((getattr(made, name) == getattr(taken_in, name).numpy()).all()) for name in ("images", "labels")]
print("read", same, made.part.tolist() == [0] * 512 + [1] * 20, made.classes == taken_in.classes)
try:
    data.load("svhn")
except ValueError as error:
    print("refused", error)
""", tmp_path)
    listed = told["data list"]
    assert "svhn         missing   SVHN, 99,289 digits" in listed
    assert re.search(r"ask for svhn at http://ufldl.stanford.edu/housenumbers/ and put it into \S+data, or", listed)
    taken_in = "svhn (part.npz): 532 images of 32 x 32, 10 classes; 512 for pretrain, 512 for train, 20 for test"
    assert told["data import svhn part.npz"].strip() == taken_in
    recipe = told["recipe image_methods --dataset svhn"]
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in recipe.splitlines()}
    assert rows["dataset"].startswith("is one of: digits, cifar10, ") and "svhn" in rows["dataset"]
    assert rows["size"].split(maxsplit=1) == ["32", "the images"] and rows["dictionary"].split()[0] == "4096"
    assert rows["normalisation.mean"].split("  ")[0] == "(0.4377, 0.4438, 0.4728)"
    assert re.search(r"^dataset +svhn$", told["run image_methods --dataset svhn --help"], re.MULTILINE)
    title, *lines = list(told.values())[-1].splitlines()
    assert title.startswith("svhn (part.npz)") and any(line.split()[:1] == ["ressl"] for line in lines)
    own = {line.split()[0]: line for line in lines if line}  # of the script itself
    assert "'dataset': 'svhn'" in own["settings"]
    assert own["printed"] == "printed nan nan" and own["read"] == "read [True, True] True True"
    assert "of images than svhn: train 512, test 20; expected train 73,257, test 26,032; " in own["refused"]


def test_a_skeleton_data_set_is_listed_trained_with_the_recipe_of_nw_ucla_and_exported(all_made, tmp_path):
    assert all_made.touched["A new skeleton data set"] == ["data_manifests/utd_mhad.yaml", "repro/skeleton/readers.py"]
    told = run(all_made.folder, """
from repro.skeleton import data
from scipy.io import savemat

folder = manifest.data_root() / "utd_mhad" / "Skeleton"
folder.mkdir(parents=True)
recordings = {}
for place, (action, subject) in enumerate(np.ndindex(27, 8)):
    draws = np.random.default_rng(place)
    frames = draws.normal(0, 0.3, (1, 20, 3)) + draws.normal(0, 0.02, (30, 20, 3)).cumsum(0) + [0, 0, 2.5]
    recordings[name := f"a{action + 1}_s{subject + 1}_t1_skeleton.mat"] = frames
    savemat(folder / name, {"d_skel": frames.transpose(1, 2, 0)})
run("data list")
run("recipe taxonomy --dataset utd_mhad")
run(f"run taxonomy --dataset utd_mhad --objectives AE+CE {SMOKE}")
path, = manifest.runs_root().glob("runs/*/checkpoint.pt")
run(f"results weights {path.parent.name} --output utd.safetensors")
loaded = data.load("utd_mhad")
sequences, lengths = repro.load("utd.safetensors").prepare([recordings[name] for name in sorted(recordings)])
print("same", bool((sequences == loaded.sequences[:, :30]).all()), loaded.actions[26], len(loaded.bones))
print("turned", bool(abs(data.load("utd_mhad", pipeline="unscaled").sequences[:, 0, 9:12]).max() < 1e-6))
(folder / "a1_s1_t1_skeleton.mat").unlink()
try:
    data.load("utd_mhad")
except ValueError as error:
    print("refused", error)
""", tmp_path)
    assert "utd_mhad     present   UTD-MHAD, skeletons of Kinect v1" in told["data list"]
    recipe = told["recipe taxonomy --dataset utd_mhad"]
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in recipe.splitlines() if line}
    assert rows["protocol"] == ["xsub", "the data set's manifest"] and rows["dictionary"][0] == "1024"
    title, _, row = next(text for words, text in told.items() if words.startswith("run ")).splitlines()
    assert title == "utd_mhad, smoke recipe" and row.split()[0] == "AE+CE"
    own = {line.split()[0]: line for line in list(told.values())[-1].splitlines() if line}  # of the script itself
    assert own["same"] == "same True squat 19"  # at its own axes
    assert own["turned"] == "turned True"  # joint 3 of the first frame is the origin
    assert "is not the distribution" in own["refused"] and "of 216 files" in own["refused"]


@pytest.fixture(scope="module")
def executed(all_made):
    """The notebook of a fifth paper as papermill leaves it."""
    process, notebook = execute(
        "predictor", all_made.folder, all_made.folder, preset="smoke", device="cpu", predictor=64)
    assert process.returncode == 0, process.stderr[-3000:]
    return notebook


@pytest.fixture(scope="module")
def told(all_made, executed):
    """What commands print of the paper, by their first word; its notebook has trained two runs before."""
    told = run(all_made.folder, """
from concurrent.futures import ThreadPoolExecutor
from repro.experiments import studies
from repro.papers import drawing
drawing.processes = lambda count: ThreadPoolExecutor(1)  # another process would import everything first
run(f"run predictor --seeds 0,1 {SMOKE}")
run("recipe predictor --method byol")
folders = [path.parent for path in manifest.runs_root().glob("runs/*/checkpoint.pt")]
id = next(folder.name for folder in folders if json.loads((folder / "recipe.json").read_text())["seed"] == 1)
run(f"results weights {id} --output byol.safetensors")
run("results list")
for path in manifest.runs_root().glob("runs/*/recipe.json"):  # smoke runs decide no claim
    record = json.loads(path.read_text())
    recipe = record["recipe"]
    quick = studies()[record["study"]].presets["quick"](recipe["dataset"], recipe["method"]).to_dict()
    changes = {name: value for name, value in recipe.items() if value != quick[name]}
    path.write_text(json.dumps(record | {"preset": "quick", "changes": changes}))
run("figures predictor_digits")
run("claims --paper BYOL")
""", all_made.folder)
    return {command.split()[0]: text for command, text in told.items()}


def test_a_notebook_of_a_paper_takes_its_fields_and_shows_its_figure(executed):
    assert "2 runs of preset smoke on digits, 0 finished" in printed(executed)
    assert "predictor=64" in tables(executed)[0]
    assert len(outputs(executed, "image/png")) == 1


def test_a_table_of_a_paper_is_trained_and_printed(told, all_made):
    touched = [path.rpartition("/")[0] for path in all_made.touched["A paper"]]
    assert touched == [*6 * ["repro/papers/byol"], "notebooks"]
    title, header, *rows = told["run"].splitlines()
    assert title == "digits, smoke recipe" and header.split() == ["method", "ours"]
    assert [row.split()[0] for row in rows] == ["without", "byol"] and all(row.endswith(" (2)") for row in rows)
    assert len(list((all_made.folder / "runs" / "runs").glob("*/result.json"))) == 5


def test_a_recipe_of_a_paper_has_its_own_fields_and_sources(told):
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in told["recipe"].splitlines()}
    assert lines["predictor"] == ["128", "assumed: units"]
    assert lines["momentum"] == ["0.996", "BYOL, section 3"] and lines["key_view"] == ["strong", "BYOL, section 3"]
    assert "MoCo" not in lines["query_view"][1] and "temperature" not in lines  # which it does not use


def test_a_figure_and_a_claim_of_a_paper_are_there(told, all_made):
    assert "predictor_digits.png" in told["figures"]
    assert (all_made.folder / "runs" / "figures" / "predictor_digits.png").stat().st_size > 1000
    assert told["claims"].startswith("B1 ") and "Without the predictor nothing is learned." in told["claims"]


def test_runs_of_a_paper_are_listed(told):
    rows = [line.split() for line in told["results"].splitlines() if " yours " in line]
    assert sorted((row[-1], row[1], row[7]) for row in rows) == [
        ("byol", "byol", "linear"), ("byol", "byol", "linear"), ("predictor=64", "byol", "linear"),
        ("without", "byol", "linear"), ("without", "byol", "linear"),
    ]


def test_the_weights_of_an_encoder_of_a_paper_can_be_taken_elsewhere(told, all_made, monkeypatch):
    use_tiny_trunk(monkeypatch)
    assert repro.load(all_made.folder / "byol.safetensors")(torch.zeros(2, 3, 8, 8)).shape[0] == 2
