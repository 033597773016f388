"""A new image data set is a manifest and a reader: the change that docs/add_your_own.md shows, made in a copy."""

import re

import pytest
from project_copy import change_of, copied, run, walk

TITLE = "A new image data set"
COMMANDS = """
import hashlib
import numpy as np
import repro
from repro import notebook
from repro.image import DATASETS, data, readers
from repro.image.readers import READERS
from scipy.io import savemat
from torchvision.datasets import SVHN

draws = np.random.default_rng(0)
arrays = {"x_train": draws.integers(0, 256, (512, 32, 32, 3), np.uint8), "y_train": np.arange(512) % 10,
          "x_test": draws.integers(0, 256, (20, 32, 32, 3), np.uint8), "y_test": np.arange(20) % 10}
np.savez("part.npz", **arrays)
run("data", "list")
run("data", "import", "svhn", "part.npz")
run("recipe", "image_methods", "--dataset", "svhn")
run("run", "image_methods", "--dataset", "svhn", "--help")
run("run", "image_methods", "--dataset", "svhn", "--subset", "--preset", "smoke", "--method", "ressl", "--engine",
    "inline", "--device", "cpu")
names = {"dataset": "svhn", "subset": True, "preset": "smoke", "seeds": "0", "device": "cpu"}
print("settings", notebook.begin(names, "temperature_grid"))
grid = repro.TABLES["temperature_grid"]
print("published", *(grid.printed(row.recipe) for row in grid.asked("svhn", "paper")[:2]))

folder = data.manifest.data_root() / "svhn"  # the official distribution, made up
folder.mkdir(parents=True)
for part in ("train", "test"):
    path = folder / f"{part}_32x32.mat"
    labels = np.where(arrays[f"y_{part}"] == 0, 10, arrays[f"y_{part}"])  # the label 10 stands for the digit 0
    savemat(path, {"X": arrays[f"x_{part}"].transpose(1, 2, 3, 0), "y": labels[:, None].astype(np.uint8)})
    SVHN.split_list[part][2] = hashlib.md5(path.read_bytes()).hexdigest()
made, taken_in = READERS["svhn"](folder, DATASETS["svhn"]), data.load("svhn", subset=True)
same = [bool((getattr(made, name) == getattr(taken_in, name).numpy()).all()) for name in ("images", "labels")]
print("read", same, made.part.tolist() == [0] * 512 + [1] * 20, made.classes == taken_in.classes)
try:
    data.load("svhn")
except ValueError as error:
    print("refused", error)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files that the change has touched, and what the commands then print."""
    copy = copied(tmp_path_factory.mktemp("copy"))
    before = contents(copy)
    walk(TITLE, copy)
    after = contents(copy)
    assert before.keys() <= after.keys()
    return {name for name in after if after[name] != before.get(name)}, run(copy, COMMANDS)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def of(made, *words):
    found, = [text for command, text in made[1].items() if command.split()[: len(words)] == list(words)]
    return found


def line_of(made, word):
    """A line of those that the script itself prints."""
    line, = [line for line in of(made, "run", "image_methods", "--dataset", "svhn", "--subset").splitlines()
             if line.startswith(f"{word} ")]
    return line


def test_it_is_a_manifest_and_a_function(made):
    change = change_of(TITLE)
    assert made[0] == {"data_manifests/svhn.yaml", "repro/image/readers.py"}
    added = [line[1:] for line in change.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert len([line for line in added if line.startswith("def ")]) == 1 and len(added) <= 40
    assert not [line for line in change.splitlines() if line.startswith("-") and not line.startswith("---")]


def test_it_is_listed_with_where_its_files_go(made):
    listed = of(made, "data", "list")
    assert "svhn         missing   SVHN, 99,289 digits" in listed
    assert re.search(r"ask for svhn at http://ufldl.stanford.edu/housenumbers/ and put it into \S+data, or", listed)


def test_a_part_of_it_is_taken_in_and_trained_on(made):
    taken_in = "svhn (part.npz): 532 images of 32 x 32, 10 classes; 512 for pretrain, 512 for train, 20 for test"
    assert of(made, "data", "import").strip() == taken_in
    title, *lines = of(made, "run", "image_methods", "--dataset", "svhn", "--subset").splitlines()
    assert title.startswith("svhn (part.npz)") and any(line.split()[:1] == ["ressl"] for line in lines)


def test_its_recipe_is_that_of_cifar10_at_its_own_size(made):
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in of(made, "recipe").splitlines()}
    assert rows["dataset"].startswith("is one of: digits, cifar10, ") and "svhn" in rows["dataset"]
    assert rows["size"].split(maxsplit=1) == ["32", "the images"] and rows["dictionary"].split()[0] == "4096"
    assert rows["normalisation.mean"] == "(0.4377, 0.4438, 0.4728)  assumed: those of its training images, no option"
    helped = of(made, "run", "image_methods", "--dataset", "svhn", "--help")
    assert re.search(r"^dataset +svhn ", helped, re.MULTILINE)


def test_a_notebook_takes_its_name_and_no_number_of_a_paper_stands_beside_it(made):
    assert "'dataset': 'svhn'" in line_of(made, "settings")
    assert line_of(made, "published") == "published nan nan"


def test_the_reader_finds_what_was_written_and_another_number_of_images_is_refused(made):
    assert line_of(made, "read") == "read [True, True] True True"
    assert "of images than svhn: train 512, test 20; expected train 73,257, test 26,032; " in line_of(made, "refused")
