"""The committed accuracies of probes that lack a camera of two actions, made again of one encoder that comes along.

In two actions of NW-UCLA camera 3, the test split, repeats camera 2. A probe without the originals knows these two from
camera 1 alone, and would read them less well without any copy. So it lacks a camera of two other actions as well.
"""

import itertools

import pandas as pd
import pytest
import torch

import repro
from repro.data import manifest
from repro.run.evaluate import cosine_rates, linear_predictions
from repro.skeleton.data import load

TABLE = pd.read_csv(manifest.shipped("figures") / "earlier" / "without_a_camera_ucla.csv")
REAL = manifest.load_manifest("ucla").files[0].place(manifest.data_root())


def test_it_is_of_encoders_that_come_along_and_begins_with_their_accuracy():
    files = (manifest.shipped("weights") / "taxonomy_ucla").glob("*.safetensors")
    assert {*TABLE["encoder"]} <= {f"taxonomy_ucla/{file.stem}" for file in files}
    for name, rows in TABLE.groupby("encoder"):
        assert len(rows) == 2 * (1 + 28)  # of the eight actions without copies 28 pairs
        measured = repro.load(name).provenance["measured"]["linear"]
        assert rows["linear_usual"].unique() == pytest.approx([measured], abs=0.5)
    of_second = TABLE.query("camera == 2").groupby(["copied", "actions"])["left_out"].mean()
    assert abs(of_second[1].item() - 23.4) < 0.1 and of_second[0].min() > 30 and len(of_second[0]) == 28


@pytest.mark.skipif(REAL is None, reason="nw_ucla/all_sqe.zip is not below REPRO_DATA")
def test_a_row_is_a_probe_that_is_trained_without_a_camera_of_two_actions(runs_root):
    data, encoder = load("ucla"), repro.load("taxonomy_ucla/CE+AD")
    recipe, labels = encoder.recipe, data.labels
    with torch.no_grad():
        readouts = encoder.model(data.sequences, data.lengths)
    rates = cosine_rates(*(recipe[f"probe_{part}"] for part in ("epochs", "learning_rate", "final_rate")))
    settings = {"classes": 10, "batch": recipe["probe_batch"], "momentum": recipe["probe_momentum"], "rates": rates,
                "seed": encoder.provenance["seed"]}
    copied = {*labels[data.in_both & data.test].tolist()}
    pairs = [pair for pair in itertools.combinations(range(10), 2) if len(copied & {*pair}) != 1]
    rows = TABLE[TABLE["encoder"] == "taxonomy_ucla/CE+AD"]
    made = itertools.product(pairs, (1, 2))
    for (pair, camera), row in itertools.islice(zip(made, rows.itertuples(), strict=True), 0, None, 19):
        assert (row.actions, row.camera) == (", ".join(data.actions[label] for label in pair), camera)
        assert row.copied == ({*pair} == copied)
        of_pair = torch.isin(labels, torch.tensor(pair))
        kept = data.train & ~(of_pair & (data.views == camera))
        left_out = data.train & of_pair & (data.views == camera)
        right = linear_predictions(readouts[kept], labels[kept], readouts, **settings)[-1] == labels
        for tested, found in ((data.test, row.linear), (data.test & of_pair, row.of_actions), (left_out, row.left_out)):
            assert found == pytest.approx(100 * right[tested].double().mean().item(), abs=2.5)
