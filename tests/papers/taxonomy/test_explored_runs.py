import dataclasses
import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from smoke_runs import smoke_runs

from repro.papers.taxonomy import explored_runs
from repro.papers.taxonomy.explored_runs import (
    augmented,
    available,
    cells,
    finished_runs,
    label,
    load_run,
    part_of,
    reference,
    sequence_of,
)
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


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))


@pytest.fixture(scope="module")
def data():
    return data_of(TABLES["taxonomy"].cells(preset="smoke", objectives="random")[0].recipe)


def test_without_finished_runs_a_first_look_is_planned_that_no_table_asks_for(nothing):
    for cell, name in zip(cells(), ("CE+AD", "AD"), strict=True):
        usual, = TABLES["taxonomy"].cells(objectives=name)
        assert (cell.recipe.objectives, cell.preset, cell.changes) == (name, "quick", {"epochs": 3})
        changed = {field for field, value in cell.recipe.to_dict().items() if usual.recipe.to_dict()[field] != value}
        assert changed == {"epochs"} and cell.key != usual.key
    assert len(cells(seeds="3,4")) == 4


@pytest.mark.parametrize(("given", "preset", "expected"), [
    ({"preset": "smoke"}, "smoke", ["CE+AD", "AD"]), ({"objectives": "AE,CE"}, "quick", ["AE", "CE"]),
    ({"preset": "paper"}, "paper", ["CE+AD", "AD"]),
], ids=str)
def test_otherwise_the_cells_are_those_of_the_table(nothing, given, preset, expected):
    listed = TABLES["taxonomy"].cells(**({"objectives": ",".join(expected)} | given))
    assert [(cell.key, cell.preset) for cell in cells(**given)] == [(cell.key, preset) for cell in listed]


def test_what_is_asked_of_the_data_is_taken_also_where_it_is_the_usual_of_other_data(nothing, monkeypatch):
    """NW-UCLA's protocol is xview, NTU RGB+D's xsub."""
    unread = SimpleNamespace(name="ntu", digest="made up")
    study = dataclasses.replace(TABLES["taxonomy"].study, load=lambda recipe: unread)
    monkeypatch.setitem(TABLES, "taxonomy", dataclasses.replace(TABLES["taxonomy"], study=study))
    for asked, expected in (("xview", "xview"), ("xsub", "xsub"), ("auto", "xsub")):
        cell, = cells("ntu", objectives="CE", protocol=asked)
        assert (cell.recipe.protocol, cell.recipe.pipeline) == (expected, "default")


def test_what_is_finished_is_looked_into_before_anything_is_trained(runs, monkeypatch):
    def listed(**asked):
        return [(cell.label, cell.seed, cell.preset) for cell in cells(**asked)]

    assert listed(preset="smoke", seeds="0,1") == [
        ("CE+AD", 0, "smoke"), ("CE+AD", 1, "smoke"), ("CE, select=best_on_test", 0, "smoke")]
    assert listed(preset="smoke", seeds="2") == [("CE+AD", 2, "smoke"), ("AD", 2, "smoke")]
    assert listed() == [("CE+AD, epochs=3", 0, "quick"), ("AD, epochs=3", 0, "quick")]  # smoke runs alone are finished
    monkeypatch.setattr(explored_runs.manifest, "bundled", lambda name: False)
    assert listed() == [("CE+AD", 0, "paper"), ("AD", 0, "paper")]
    described = runs / "cells" / finished_runs(data_of(cells()[0].recipe))[0]["key"] / "recipe.json"
    write_json(described, json.loads(described.read_text()) | {"preset": "quick"})
    assert [(cell.key, cell.preset) for cell in cells()] == [(described.parent.name, "quick")]
    assert {preset for *_, preset in listed(preset="paper")} == {"paper"}


def test_finished_runs_are_those_on_the_same_data_with_weights(runs, data):
    found = finished_runs(data)
    assert [label(cell) for cell in found] == FINISHED
    first, second, third = (runs / "cells" / cell["key"] for cell in found)
    (first / "checkpoint.pt").unlink()
    write_json(second / "recipe.json", json.loads((second / "recipe.json").read_text()) | {"digest": "of other data"})
    write_json(third / "recipe.json", json.loads((third / "recipe.json").read_text()) | {"version": 0})
    assert finished_runs(data) == []
    with pytest.raises(ValueError, match=r"no checkpoint\.pt is left .* delete these folders"):
        available(cells(preset="smoke", objectives="CE+AD"), CPU)


def test_a_first_look_is_trained_once_and_smoke_runs_are_named_as_left_out(runs, data, monkeypatch, capsys):
    monkeypatch.setattr(explored_runs, "FIRST_LOOK", {"epochs": 1, "batch": 512, "units": 16, "probe_epochs": 1})
    monkeypatch.setattr(explored_runs, "FIRST_OBJECTIVES", ("AD",))
    planned = cells()
    (key, described), = available(planned, CPU).items()
    assert "3 smoke runs are left out; preset smoke looks into them" in capsys.readouterr().out
    assert (key, label(described)[:13]) == (planned[0].key, "AD, units=16,")
    assert len(load_run(described, data, CPU).readouts) == len(data.lengths)
    result = runs / "cells" / key / "result.json"
    written = result.stat().st_mtime_ns
    assert [cell.key for cell in cells()] == [key] == [*available(cells(), CPU)]
    assert result.stat().st_mtime_ns == written
    capsys.readouterr()
    assert len(available(cells(preset="smoke", seeds="0,1"), CPU)) == 4 and "left out" not in capsys.readouterr().out


def part_of_state(state, part, inputs):
    """A GRU with the weights of one in a checkpoint."""
    gru = torch.nn.GRU(inputs, 16, batch_first=True)
    gru.load_state_dict({name.removeprefix(part): value for name, value in state.items() if name.startswith(part)})
    return gru


@torch.no_grad()
def test_a_loaded_run_has_the_weights_that_were_stored(runs, data):
    cell = finished_runs(data)[0]
    run = load_run(cell, data, CPU)
    assert run.label == FINISHED[0] and run.result == cell["result"]
    state = torch.load(runs / "cells" / cell["key"] / "checkpoint.pt", weights_only=True)["learner"]["model"]
    index = int(data.lengths.argmin())
    sequence = sequence_of(data, index)
    assert len(sequence) == data.lengths[index] and sequence.equal(data.sequences[index, : len(sequence)])
    readout = part_of_state(state, "encoder.gru.", 60)(sequence[None])[1][0, 0]
    torch.testing.assert_close(run.readouts[index], readout)
    head = state["head.weight"] @ readout + state["head.bias"]
    torch.testing.assert_close(run.embedded(sequence[None])[0], head / head.norm())
    torch.testing.assert_close(run.embeddings[index], head / head.norm())
    states = part_of_state(state, "decoder.gru.", 16)(readout.expand(1, len(sequence), -1))[0][0]
    expected = states @ state["decoder.output.weight"].T + state["decoder.output.bias"]
    torch.testing.assert_close(run.decoded(sequence), expected)


def test_a_run_chosen_on_the_test_split_has_the_weights_that_were_chosen(runs, data):
    cell = finished_runs(data)[2]
    stored = torch.load(runs / "cells" / cell["key"] / "checkpoint.pt", weights_only=True)["learner"]
    expected = stored["weights"] if stored["best"] >= 0 else stored["model"]
    for name, value in load_run(cell, data, CPU).pretrainer.model.state_dict().items():
        assert value.equal(expected[name])


def test_a_large_set_is_sampled_and_a_small_one_is_not(data):
    assert part_of(data, len(data.lengths)) is data
    part = part_of(data, 7)
    assert len(part.lengths) == 7 and len(part.frames) == int(part.lengths.sum())
    places = {data.sequences[row, : data.lengths[row]].numpy().tobytes(): row for row in range(len(data.lengths))}
    rows = [places[sequence_of(part, number).numpy().tobytes()] for number in range(7)]
    assert rows == sorted(rows)
    for name in ("labels", "views", "subjects", "train", "test"):
        assert getattr(part, name).equal(getattr(data, name)[rows])


def test_two_views_are_drawn_as_training_draws_them(data):
    sequence, recipe = sequence_of(data, 5), paper("synthetic", "CE")
    pair = augmented(sequence, recipe, seed=0)
    lengths, generator = torch.full((2,), len(sequence)), torch.Generator().manual_seed(0)
    options = {"flip": recipe.flip, "shear": recipe.shear, "generator": generator}
    assert pair.equal(augment(torch.stack([sequence, sequence]), lengths, **options)) and not pair[0].equal(pair[1])
    assert not augmented(sequence, recipe, seed=1)[0].equal(pair[0])
    still = dataclasses.replace(recipe, flip=0.0, shear=0.0)
    torch.testing.assert_close(augmented(sequence, still, seed=0)[1], sequence)


@pytest.mark.parametrize(("dataset", "pipeline", "up", "units"), [
    ("ucla", "default", 2, "scaled to [-1, 1]"), ("synthetic", "unscaled", 2, "m"), ("ucla", "interpolate", 2, "m"),
    ("ucla", "raw", 1, "m"), ("ntu", "default", 1, "m"), ("ntu", "authors", 1, "m"),
    ("ntu", "predict_cluster", 2, "scaled to [-1, 1]"),
])
def test_the_frame_of_reference_is_that_of_the_pipeline(dataset, pipeline, up, units):
    assert reference(paper(dataset, "AD", pipeline=pipeline)) == (up, units)
