"""Flat frames against padded ones: the same batches, the same training to the last bit, the same keys as ever."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from repro.skeleton.tables import TABLES

from repro.run import device
from repro.run.export import read_cells
from repro.run.store import Cell
from repro.skeleton.data import load
from repro.skeleton.pretrain import VERSION, Pretrainer
from repro.skeleton.recipe import METHODS, PRESETS, SkeletonRecipe, quick
from repro.skeleton.sequences import Sequences

CPU = torch.device("cpu")
FIGURES = Path(__file__).parents[2] / "figures"


def made_up(lengths, features=3):
    """Frames numbered through, none of them zero."""
    rows = sum(lengths)
    return torch.arange(1, rows * features + 1, dtype=torch.float32).reshape(rows, features), torch.tensor(lengths)


@pytest.mark.parametrize("index", [[0], [3, 3], [1, 0, 4], [4, 3, 2, 1, 0], [2, 4]])
def test_a_batch_equals_the_slow_one(index):
    frames, lengths = made_up([4, 1, 3, 7, 2])
    found, found_lengths, cpu_lengths = Sequences(frames, lengths).batch(torch.tensor(index))
    parts = list(frames.split(lengths.tolist()))
    longest = max(len(parts[i]) for i in index)
    assert found.shape == (len(index), longest, 3)
    assert found_lengths.tolist() == cpu_lengths.tolist() == [len(parts[i]) for i in index]
    for row, i in zip(found, index, strict=True):
        assert torch.equal(row[: len(parts[i])], parts[i])
        assert (row[len(parts[i]):] == 0).all()


def test_padding_is_zero_beside_frames_that_are_not_numbers():
    frames, lengths = made_up([1, 3])
    frames[0] = float("nan")
    found, _, _ = Sequences(frames, lengths).batch(torch.tensor([0, 1]))
    assert found[0, 0].isnan().all() and (found[0, 1:] == 0).all() and torch.equal(found[1], frames[1:])


@pytest.mark.parametrize(("frames", "expected"), [
    (1, [[3], [0], [2], [4], [1]]), (8, [[3], [0, 2], [4, 1]]), (14, [[3, 0], [2, 4, 1]]), (1000, [[3, 0, 2, 4, 1]]),
])
def test_parts_of_similar_length(frames, expected):
    found = Sequences(*made_up([4, 1, 3, 7, 2])).of_similar_length(torch.tensor([0, 1, 2, 3, 4]), frames)
    assert [part.tolist() for part in found] == expected
    assert [part.tolist() for part in Sequences(*made_up([4, 1, 3])).of_similar_length(torch.tensor([2, 1]), 6)] == [
        [2, 1]
    ]


def test_nothing_is_copied_on_the_cpu():
    frames, lengths = made_up([2, 2])
    sequences = Sequences(frames, lengths)
    assert sequences.frames.data_ptr() == frames.data_ptr() and len(sequences) == 2


def test_padded_frames_are_refused():
    data = load("synthetic")
    with pytest.raises(ValueError, match=r"frames have shape \(1200, 50, 60\), expected \(.*, D\)"):
        dataclasses.replace(data, frames=data.sequences)


class Padded(Sequences):
    """The same batches cut from padded sequences, as a plain index."""

    def batch(self, index):
        padded = torch.nn.utils.rnn.pad_sequence(self.frames.split(self.lengths.tolist()), batch_first=True)
        lengths = self.lengths[index]
        return padded[index, : int(lengths.max())], lengths, lengths


@pytest.mark.parametrize("objectives", ["CE", "AE+CE+AD+CD"])
def test_training_on_the_embedded_data_is_that_on_padded_batches(objectives):
    data = load("synthetic")
    recipe = quick("synthetic", objectives, units=32)
    with device.threads(1):
        flat, padded = (Pretrainer(recipe, data, 3, CPU) for _ in range(2))
        padded.sequences = Padded(data.frames, data.lengths)
        for _ in range(3):
            assert torch.equal(flat.step(), padded.step())
        for own, other in zip(flat.model.parameters(), padded.model.parameters(), strict=True):
            assert torch.equal(own, other)


def test_readouts_come_in_the_order_of_the_samples():
    data = load("synthetic")
    fast = Pretrainer(quick("synthetic", "CE", units=16), data, 0, CPU)
    readouts, _ = fast.features(data, frames=5000)
    for index in (0, 7, 1199):
        alone = data.sequences[index : index + 1, : data.lengths[index]]
        with torch.no_grad():
            expected = fast.model.encoder(alone, data.lengths[index : index + 1])[0]
        torch.testing.assert_close(readouts[index], expected)


def test_keys_of_published_cells_stay():
    cells = read_cells(FIGURES / "cells.csv")
    cells = cells[(cells["table"] == "taxonomy") & (cells["version"] == VERSION) & cells["entry"].isin(METHODS)]
    assert {"random", "CE", "AE+CE+AD"} <= set(cells["entry"])
    for row in cells.itertuples():
        recipe = PRESETS[row.preset](row.dataset, row.entry)
        cell = Cell("taxonomy", row.entry, recipe, row.seed, row.preset, row.dataset, row.digest, VERSION)
        assert cell.key == row.key, row.entry


def test_every_published_key_is_that_of_its_recipe():
    for row in read_cells(FIGURES / "cells.csv").itertuples():
        if row.table in TABLES:
            recipe = SkeletonRecipe.from_dict(json.loads(row.recipe))
            cell = Cell(row.table, row.entry, recipe, row.seed, row.preset, row.dataset, row.digest, row.version)
            assert row.key == cell.key, (row.table, row.entry, row.seed)


def test_digest_of_the_embedded_data_stays():
    synthetic = "b588a5a975f40446e2a819c351b7f4a52ce2c9e70e0fdc430b2020aaf23b631e"
    assert load("synthetic").digest == synthetic
