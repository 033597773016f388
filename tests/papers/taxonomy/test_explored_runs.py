import dataclasses
import json
import shutil

import pytest
import torch
from smoke_runs import smoke_runs

from repro.papers.taxonomy.explored_runs import augmented, available, label, load_run, part_of, vertical
from repro.papers.taxonomy.tables import TABLES
from repro.run.store import write_json
from repro.skeleton.pretrain import augment
from repro.skeleton.recipe import paper
from repro.skeleton.study import data_of

CPU = torch.device("cpu")
FINISHED = ["CE+AD, seed 0, smoke", "CE+AD, seed 1, smoke", "CE, select=best_on_test, seed 0, smoke"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder of finished cells: CE+AD with two seeds and CE chosen on the test split."""
    root = tmp_path_factory.mktemp("finished")
    smoke_runs(root, "CE+AD", seeds="0,1")
    smoke_runs(root, "CE", select="best_on_test")
    return root


@pytest.fixture
def runs(finished, tmp_path, monkeypatch):
    """A copy of them as REPRO_RUNS."""
    shutil.copytree(finished, tmp_path / "runs")
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture(scope="module")
def data():
    return data_of(TABLES["taxonomy"].cells(preset="smoke", objectives="random")[0].recipe)


def smoke(**choices):
    return TABLES["taxonomy"].cells(preset="smoke", **choices)


def finished_cells(asked):
    return [label(cell) for cell in available(asked).values()]


def test_finished_runs_are_listed_those_asked_for_first(runs):
    assert finished_cells(smoke(objectives="AE")) == sorted(FINISHED)
    second, = smoke(objectives="CE+AD", seeds="1")
    assert finished_cells([second]) == [FINISHED[1], FINISHED[0], FINISHED[2]]


def test_smoke_runs_are_named_as_left_out(runs, capsys):
    quick = TABLES["taxonomy"].cells(objectives="CE")
    with pytest.raises(ValueError, match="no finished run on synthetic"):
        available(quick)
    assert "3 smoke runs are left out; preset smoke looks into them" in capsys.readouterr().out
    path = runs / "cells" / smoke(objectives="CE+AD")[0].key / "recipe.json"
    write_json(path, json.loads(path.read_text()) | {"preset": "quick"})
    assert finished_cells(quick) == ["CE+AD, seed 0, quick"]
    assert "2 smoke runs are left out" in capsys.readouterr().out
    assert len(available(smoke(objectives="CE"))) == 3 and "left out" not in capsys.readouterr().out


def test_runs_of_other_data_or_versions_or_without_weights_are_not_listed(runs):
    first, second, third = (runs / "cells" / key for key in available(smoke(objectives="CE")))
    (first / "checkpoint.pt").unlink()
    write_json(second / "recipe.json", json.loads((second / "recipe.json").read_text()) | {"digest": "of other data"})
    write_json(third / "recipe.json", json.loads((third / "recipe.json").read_text()) | {"version": 0})
    with pytest.raises(ValueError, match=r"no finished run .* has its checkpoint\.pt in .* delete the folders"):
        available(smoke(objectives="CE"))


def part_of_state(state, part, inputs):
    """A GRU with the weights of one in a checkpoint."""
    gru = torch.nn.GRU(inputs, 16, batch_first=True)
    gru.load_state_dict({name.removeprefix(part): value for name, value in state.items() if name.startswith(part)})
    return gru


@torch.no_grad()
def test_a_loaded_run_has_the_weights_that_were_stored(runs, data):
    cell = available(smoke(objectives="CE+AD"))[smoke(objectives="CE+AD")[0].key]
    run = load_run(cell, data, CPU)
    assert run.label == FINISHED[0] and run.result == cell["result"]
    state = torch.load(runs / "cells" / cell["key"] / "checkpoint.pt", weights_only=True)["learner"]["model"]
    index = int(data.lengths.argmin())
    sequence = data.sequences[index, : data.lengths[index]]
    readout = part_of_state(state, "encoder.gru.", 60)(sequence[None])[1][0, 0]
    torch.testing.assert_close(run.readouts[index], readout)
    head = state["head.weight"] @ readout + state["head.bias"]
    torch.testing.assert_close(run.embedded(sequence[None])[0], head / head.norm())
    torch.testing.assert_close(run.embeddings[index], head / head.norm())
    states = part_of_state(state, "decoder.gru.", 16)(readout.expand(1, len(sequence), -1))[0][0]
    expected = states @ state["decoder.output.weight"].T + state["decoder.output.bias"]
    torch.testing.assert_close(run.decoded(sequence), expected)


def test_a_run_chosen_on_the_test_split_has_the_weights_that_were_chosen(runs, data):
    cell, = (cell for cell in available(smoke(objectives="CE")).values() if label(cell) == FINISHED[2])
    stored = torch.load(runs / "cells" / cell["key"] / "checkpoint.pt", weights_only=True)["learner"]
    expected = stored["weights"] if stored["best"] >= 0 else stored["model"]
    for name, value in load_run(cell, data, CPU).pretrainer.model.state_dict().items():
        assert value.equal(expected[name])


def test_a_large_set_is_sampled_and_a_small_one_is_not(data):
    assert part_of(data, len(data.lengths)) is data
    part = part_of(data, 7)
    assert len(part.lengths) == 7 and len(part.frames) == int(part.lengths.sum())
    places = {data.sequences[row, : data.lengths[row]].numpy().tobytes(): row for row in range(len(data.lengths))}
    sequences = part.frames.split(part.lengths.tolist())
    rows = [places[sequence.numpy().tobytes()] for sequence in sequences]
    assert rows == sorted(rows)
    for name in ("labels", "views", "subjects", "train", "test"):
        assert getattr(part, name).equal(getattr(data, name)[rows])


def test_two_views_are_drawn_as_training_draws_them(data):
    sequence, recipe = data.frames[: data.lengths[0]], paper("synthetic", "CE")
    pair = augmented(sequence, recipe, seed=0)
    lengths, generator = torch.full((2,), len(sequence)), torch.Generator().manual_seed(0)
    options = {"flip": recipe.flip, "shear": recipe.shear, "generator": generator}
    assert pair.equal(augment(torch.stack([sequence, sequence]), lengths, **options)) and not pair[0].equal(pair[1])
    assert not augmented(sequence, recipe, seed=1)[0].equal(pair[0])
    still = dataclasses.replace(recipe, flip=0.0, shear=0.0)
    torch.testing.assert_close(augmented(sequence, still, seed=0)[1], sequence)


@pytest.mark.parametrize(("dataset", "pipeline", "up"), [
    ("ucla", "default", 2), ("synthetic", "unscaled", 2), ("ucla", "raw", 1), ("ntu", "default", 1),
    ("ntu", "authors", 1), ("ntu", "predict_cluster", 2),
])
def test_the_vertical_is_that_of_the_pipeline(dataset, pipeline, up):
    assert vertical(paper(dataset, "AD", pipeline=pipeline)) == up
