"""What a linear probe loses without the originals of NW-UCLA's copies, beside what it loses without a camera.

In two actions camera 3, the test split, repeats camera 2. A probe that is trained without their originals knows these
two from camera 1 alone, and would read them less well without any copy. So it is trained without a camera of two other
actions as well, and reads what was left out: of camera 2, as the copies are, and known from camera 1 alone. What came
of it is in `figures/without_a_camera_ucla.csv`, which

    python -c "from repro.papers.taxonomy import copies; copies.write()"

makes of the encoders that come along and the recordings in REPRO_DATA, in three minutes of one CPU core.
"""

import itertools
from pathlib import Path

import pandas as pd
import torch
from pandas import DataFrame
from torch import Tensor

import repro
from repro.data import manifest
from repro.run import frames
from repro.run.evaluate import cosine_rates, linear_predictions
from repro.skeleton.data import SkeletonSet, load

FILE = "without_a_camera_ucla.csv"


def without_a_camera(name: str, data: SkeletonSet) -> DataFrame:
    """Accuracies of a probe that is trained without one camera of two actions.

    Args:
        name: of the encoder, as `repro.load` takes it; its recipe says how the probe is trained.

    Returns:
        A row for each training camera of every two actions that both have copies in the test split or both have none:
        encoder, actions, camera, copied (0 or 1); percent right of all test recordings (linear), of those of the two
        actions (of_actions), and of the training recordings that are left out (left_out); linear_usual,
        of_actions_usual and left_out_usual, the same with all training recordings.
    """
    encoder = repro.load(name)
    recipe = encoder.recipe
    with torch.no_grad():
        readouts = encoder.model(data.sequences, data.lengths)
    rates = cosine_rates(*(recipe[f"probe_{part}"] for part in ("epochs", "learning_rate", "final_rate")))
    settings = {"classes": len(data.actions), "batch": recipe["probe_batch"], "momentum": recipe["probe_momentum"],
                "seed": encoder.provenance["seed"]}

    def right(train: Tensor) -> Tensor:
        known = readouts[train], data.labels[train], readouts
        return linear_predictions(*known, rates=rates, **settings)[-1] == data.labels

    copied, usual, rows = {*data.labels[data.in_both & data.test].tolist()}, right(data.train), []
    for pair in itertools.combinations(range(len(data.actions)), 2):
        if len(copied & {*pair}) == 1:
            continue
        both = torch.isin(data.labels, torch.tensor(pair))
        for camera in data.views[data.train].unique().tolist():
            left_out = data.train & both & (data.views == camera)
            read = {"linear": data.test, "of_actions": data.test & both, "left_out": left_out}
            row = {"encoder": name, "actions": ", ".join(data.actions[label] for label in pair), "camera": camera,
                   "copied": int({*pair} <= copied)}
            for ending, found in (("", right(data.train & ~left_out)), ("_usual", usual)):
                row |= {part + ending: 100 * found[asked].float().mean().item() for part, asked in read.items()}
            rows.append(row)
    return DataFrame(rows)


def write() -> Path:
    """Write the table of all encoders that come along; returns its path. Raises as `repro.skeleton.data.load`."""
    data, files = load("ucla"), sorted((manifest.shipped("weights") / "taxonomy_ucla").glob("*.safetensors"))
    parts = [without_a_camera(f"taxonomy_ucla/{file.stem}", data) for file in files]
    return frames.write(pd.concat(parts, ignore_index=True).round(4),
                        manifest.project_root() / "figures" / FILE)
