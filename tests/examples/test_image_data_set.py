"""A new image data set is a manifest and a reader: the example beside this file, made in a copy."""

import re

COMMANDS = """
import hashlib
import numpy as np
import repro
from repro import notebook
from repro.data import manifest
from repro.image import DATASETS, data, readers
from repro.image.readers import READERS
from scipy.io import savemat
from torchvision.datasets import SVHN

draws = np.random.default_rng(0)
arrays = {"x_train": draws.integers(0, 256, (512, 32, 32, 3), np.uint8), "y_train": np.arange(512) % 10,
          "x_test": draws.integers(0, 256, (20, 32, 32, 3), np.uint8), "y_test": np.arange(20) % 10}
np.savez(manifest.runs_root().parent / "part.npz", **arrays)
run("data", "list")
run("data", "import", "svhn", str(manifest.runs_root().parent / "part.npz"))
run("recipe", "image_methods", "--dataset", "svhn")
run("run", "image_methods", "--dataset", "svhn", "--help")
run("run", "image_methods", "--dataset", "svhn", "--subset", "--preset", "smoke", "--method", "ressl", "--engine",
    "inline", "--device", "cpu")
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
made, taken_in = READERS["svhn"](folder, DATASETS["svhn"]), data.load("svhn", subset=True)
same = [bool((getattr(made, name) == getattr(taken_in, name).numpy()).all()) for name in ("images", "labels")]
print("read", same, made.part.tolist() == [0] * 512 + [1] * 20, made.classes == taken_in.classes)
try:
    data.load("svhn")
except ValueError as error:
    print("refused", error)
"""


def test_it_is_listed_taken_in_trained_and_read_as_it_was_written(all_made, printed_by, tmp_path):
    assert all_made.touched["image_data_set"] == ["data_manifests/svhn.yaml", "repro/image/readers.py"]
    told = printed_by(COMMANDS)
    listed = told["data list"]
    assert "svhn         missing   SVHN, 99,289 digits" in listed
    assert re.search(r"ask for svhn at http://ufldl.stanford.edu/housenumbers/ and put it into \S+data, or", listed)
    taken_in = "svhn (part.npz): 532 images of 32 x 32, 10 classes; 512 for pretrain, 512 for train, 20 for test"
    assert told[f"data import svhn {tmp_path}/part.npz"].strip() == taken_in
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
