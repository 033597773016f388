"""A new skeleton data set is a manifest and a reader: the change that docs/add_your_own.md shows, made in a copy."""

import yaml

COMMANDS = """
import io
import numpy as np
import repro
from pathlib import Path
from repro.data import manifest
from repro.skeleton import data
from scipy.io import savemat

folder = manifest.data_root() / "utd_mhad" / "Skeleton"
folder.mkdir(parents=True)
recordings = {}
for place, (action, subject, take) in enumerate(np.ndindex(27, 8, 2)):
    draws = np.random.default_rng(place)
    frames = draws.normal(0, 0.3, (1, 20, 3)) + draws.normal(0, 0.02, (30, 20, 3)).cumsum(0) + [0, 0, 2.5]
    recordings[f"a{action + 1}_s{subject + 1}_t{take + 1}_skeleton.mat"] = frames
    savemat(folder / f"a{action + 1}_s{subject + 1}_t{take + 1}_skeleton.mat", {"d_skel": frames.transpose(1, 2, 0)})
run("data", "list")
run("recipe", "taxonomy", "--dataset", "utd_mhad")
run("run", "taxonomy", "--dataset", "utd_mhad", "--preset", "smoke", "--objectives", "AE+CE", "--engine", "inline",
    "--device", "cpu")
id = next(path.parent.name for path in manifest.runs_root().glob("runs/*/checkpoint.pt"))
weights = manifest.runs_root() / "utd.safetensors"
run("results", "weights", id, "--output", str(weights))
loaded = data.load("utd_mhad")
encoder = repro.load(weights)
sequences, lengths = encoder.prepare([recordings[name] for name in sorted(recordings)])
print("same", bool((sequences == loaded.sequences[:, :30]).all()), loaded.actions[26], len(loaded.bones))
print("turned", bool(abs(data.load("utd_mhad", pipeline="unscaled").sequences[:, 0, 9:12]).max() < 1e-6))
(folder / "a1_s1_t1_skeleton.mat").unlink()
try:
    data.load("utd_mhad")
except ValueError as error:
    print("refused", error)
"""


def test_it_is_listed_trained_with_the_recipe_of_nw_ucla_and_exported(all_made, printed_by):
    """Where 432 recordings are the official distribution."""
    path = all_made.folder / "data_manifests" / "utd_mhad.yaml"
    assert all_made.touched["A new skeleton data set"] == ["data_manifests/utd_mhad.yaml", "repro/skeleton/readers.py"]
    declared = yaml.safe_load(path.read_text())
    declared["files"][0]["members"] = 432
    declared["splits"]["xsub"]["expect"] = {"train": 216, "test": 216}
    path.write_text(yaml.safe_dump(declared))
    told = printed_by(COMMANDS)
    assert "utd_mhad     present   UTD-MHAD, skeletons of Kinect v1" in told["data list"]
    recipe = told["recipe taxonomy --dataset utd_mhad"]
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in recipe.splitlines() if line}
    assert rows["protocol"] == ["xsub", "the data set's manifest"] and rows["dictionary"][0] == "1024"
    title, _, row = next(text for words, text in told.items() if words.startswith("run ")).splitlines()
    assert title == "utd_mhad, smoke recipe" and row.split()[0] == "AE+CE"
    own = {line.split()[0]: line for line in list(told.values())[-1].splitlines() if line}  # of the script itself
    assert own["same"] == "same True squat 19"  # at its own axes
    assert own["turned"] == "turned True"  # joint 3 of the first frame is the origin
    assert "is not the distribution" in own["refused"] and "of 432 files" in own["refused"]
