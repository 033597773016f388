"""Probes without a camera of two actions, on made-up sequences and an encoder that is not trained."""

import dataclasses
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from made_up_skeletons import made_up

from repro.data import manifest
from repro.papers.taxonomy import copies
from repro.run.evaluate import cosine_rates, linear_probe

PROBE = {"probe_epochs": 3, "probe_learning_rate": 2.0, "probe_final_rate": 0.01, "probe_batch": 8,
         "probe_momentum": 0.9}


def means(sequences, lengths):
    return sequences.sum(1) / lengths[:, None]


@pytest.fixture
def data(monkeypatch):
    """Five actions from three cameras, the third of which tests and repeats the second in actions b and c."""
    stand_in = SimpleNamespace(recipe=PROBE, provenance={"seed": 1}, model=means)
    monkeypatch.setattr(copies.repro, "load", lambda name: stand_in, raising=False)
    whole = made_up(samples=90, shortest=6)
    labels, views = torch.arange(90) % 5, torch.arange(90) // 5 % 3 + 1
    parts = list(whole.frames.split(whole.lengths.tolist()))
    for row in range(90):
        if views[row] == 3 and labels[row] in (1, 2):
            parts[row] = parts[row - 5]
    return dataclasses.replace(
        whole, frames=torch.cat(parts), lengths=torch.tensor([len(part) for part in parts]), labels=labels, views=views,
        train=views < 3, test=views == 3, actions=tuple("abcde"))


def test_every_row_is_a_probe_of_its_own_that_lacks_a_camera_of_two_actions(data):
    copied = torch.isin(data.labels, torch.tensor([1, 2]))
    assert torch.equal(data.in_both & data.train, copied & (data.views == 2))
    table = copies.without_a_camera("made up", data)
    assert table["actions"].drop_duplicates().tolist() == ["a, d", "a, e", "b, c", "d, e"]
    assert table.loc[table["copied"] == 1, ["actions", "camera"]].to_numpy().tolist() == [["b, c", 1], ["b, c", 2]]
    readouts, settings = means(data.sequences, data.lengths), {"batch": 8, "momentum": 0.9, "seed": 1, "classes": 5}
    for row in table.itertuples():
        pair = torch.tensor(["abcde".index(name) for name in row.actions.split(", ")])
        of_pair = torch.isin(data.labels, pair)
        kept = data.train & ~(of_pair & (data.views == row.camera))
        for train, tested, found in ((kept, data.test, row.linear), (kept, data.test & of_pair, row.of_actions),
                                     (kept, data.train & ~kept, row.left_out),
                                     (data.train, data.test, row.linear_usual),
                                     (data.train, data.test & of_pair, row.of_actions_usual),
                                     (data.train, data.train & ~kept, row.left_out_usual)):
            known = readouts[train], data.labels[train], readouts[tested], data.labels[tested]
            assert found == pytest.approx(linear_probe(*known, rates=cosine_rates(3, 2.0, 0.01), **settings)[-1])


def test_what_is_committed_is_of_every_encoder_that_comes_along_and_begins_with_its_accuracy():
    table = pd.read_csv(manifest.shipped("figures") / copies.FILE)
    files = (manifest.shipped("weights") / "taxonomy_ucla").glob("*.safetensors")
    assert {*table["encoder"]} == {f"taxonomy_ucla/{file.stem}" for file in files}
    assert (table.groupby("encoder").size() == 2 * (1 + 28)).all()  # of the eight actions without copies 28 pairs
    of_second = table.query("camera == 2").groupby(["copied", "actions"])["left_out"].mean()
    assert abs(of_second[1].item() - 23.4) < 0.1 and of_second[0].min() > 30 and len(of_second[0]) == 28
    for name, rows in table.groupby("encoder"):
        assert rows["linear_usual"].unique() == pytest.approx(
            [copies.repro.load(name).provenance["measured"]["linear"]], abs=0.5)
