import dataclasses
import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from smoke_runs import smoke_runs

from repro.papers.taxonomy import explored_runs
from repro.papers.taxonomy.explored_runs import (
    APART,
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
from repro.run.store import Store, write_json
from repro.skeleton.recipe import paper
from repro.skeleton.study import data_of

CPU = torch.device("cpu")


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
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    monkeypatch.setenv("REPRO_RUNS", str(root))
    return root


@pytest.fixture(scope="module")
def data():
    return data_of(TABLES["taxonomy"].cells(preset="smoke", objectives="random")[0].recipe)


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))


def test_without_finished_runs_a_first_look_is_planned_apart_from_tables(nothing):
    first, second = cells()
    assert (first.recipe.objectives, second.recipe.objectives) == ("CE+AD", "AD")
    for cell in (first, second):
        assert (cell.preset, cell.changes) == ("first look", {})
        usual, = TABLES["taxonomy"].cells(objectives=cell.recipe.objectives)
        changed = {name for name, value in cell.recipe.to_dict().items() if usual.recipe.to_dict()[name] != value}
        assert changed == {"epochs"} and cell.key != usual.key
    assert len(cells(seeds="3,4")) == 4


@pytest.mark.parametrize(("given", "preset", "expected"), [
    ({"preset": "smoke"}, "smoke", ["CE+AD", "AD"]), ({"objectives": "AE,CE"}, "quick", ["AE", "CE"]),
    ({"preset": "paper"}, "paper", ["CE+AD", "AD"]),
], ids=str)
def test_otherwise_the_cells_are_those_of_the_table(nothing, given, preset, expected):
    found = cells(**given)
    assert [cell.recipe.objectives for cell in found] == expected
    assert {(cell.study, cell.preset) for cell in found} == {("skeletons", preset)}
    listed = TABLES["taxonomy"].cells(**({"objectives": ",".join(expected)} | given))
    assert [cell.key for cell in found] == [cell.key for cell in listed]


def test_what_is_asked_of_the_data_is_taken_also_where_it_is_the_usual_of_other_data(nothing, monkeypatch):
    """NW-UCLA's protocol is xview, NTU RGB+D's xsub."""
    unread = SimpleNamespace(name="ntu", digest="made up")
    study = dataclasses.replace(TABLES["taxonomy"].study, load=lambda recipe: unread)
    monkeypatch.setitem(TABLES, "taxonomy", dataclasses.replace(TABLES["taxonomy"], study=study))
    for asked, expected in (("xview", "xview"), ("xsub", "xsub"), ("auto", "xsub")):
        cell, = cells("ntu", objectives="CE", protocol=asked)
        assert (cell.recipe.protocol, cell.recipe.pipeline) == (expected, "default")


def test_what_is_finished_is_looked_into(runs):
    assert [(cell.label, cell.seed) for cell in cells(preset="smoke", seeds="0,1")] == [("CE+AD", 0), ("CE+AD", 1)]
    assert [cell.label for cell in cells(preset="smoke", seeds="2")] == ["CE+AD", "AD"]
    assert cells()[0].preset == "first look"                            # nothing of the quick preset is finished


def test_on_real_data_whatever_is_finished_comes_before_hours_of_training(runs, monkeypatch):
    monkeypatch.setattr(explored_runs.manifest, "embedded", lambda name: False)
    assert [(cell.label, cell.preset) for cell in cells()] == [("CE+AD", "paper"), ("AD", "paper")]
    described = next(iter(sorted((runs / "cells").glob("*/recipe.json"))))
    write_json(described, json.loads(described.read_text()) | {"preset": "quick"})
    found, = cells()
    assert (found.key, found.preset) == (described.parent.name, "quick")
    assert [cell.preset for cell in cells(preset="paper")] == ["paper", "paper"]


def test_runs_without_weights_cannot_be_looked_into(runs):
    for path in runs.glob("*/*/checkpoint.pt"):
        path.unlink()
    with pytest.raises(ValueError, match=r"no checkpoint\.pt is left .* delete these folders"):
        available(cells(preset="smoke"), CPU)


def test_finished_runs_are_those_on_the_same_data_with_weights(runs, data):
    store = Store(runs)
    found = finished_runs(data, store)
    assert [label(cell) for cell in found] == [
        "CE, select=best_on_test, seed 0, smoke", "CE+AD, seed 0, smoke", "CE+AD, seed 1, smoke",
    ]
    folder = runs / "cells"
    (folder / found[0]["key"] / "checkpoint.pt").unlink()
    described = folder / found[1]["key"] / "recipe.json"
    write_json(described, json.loads(described.read_text()) | {"digest": "of other data"})
    described = folder / found[2]["key"] / "recipe.json"
    write_json(described, json.loads(described.read_text()) | {"version": 0})
    assert finished_runs(data, store) == []


def test_a_first_look_is_trained_once_and_stays_out_of_the_tables(runs, data, monkeypatch):
    monkeypatch.setattr(explored_runs, "FIRST_LOOK", {"epochs": 1, "batch": 512, "units": 16, "probe_epochs": 1})
    monkeypatch.setattr(explored_runs, "FIRST_OBJECTIVES", ("AD",))
    before = Store(runs).finished()
    planned = cells()
    listed = available(planned, CPU)
    assert Store(runs).finished() == before
    labels = [label(cell) for cell, _ in listed.values()]
    assert labels == ["AD, seed 0, first look", "CE, select=best_on_test, seed 0, smoke", "CE+AD, seed 0, smoke",
                      "CE+AD, seed 1, smoke"]
    assert next(iter(listed)) == planned[0].key
    result = runs / APART / "cells" / planned[0].key / "result.json"
    written = result.stat().st_mtime_ns
    assert list(available(cells(), CPU)) == list(listed)
    assert result.stat().st_mtime_ns == written
    for cell, store in listed.values():
        assert len(load_run(cell, store, data, CPU).readouts) == len(data.lengths)


def test_a_loaded_run_has_the_weights_that_were_stored(runs, data):
    store = Store(runs)
    cell = finished_runs(data, store)[1]
    run = load_run(cell, store, data, CPU)
    assert run.label == "CE+AD, seed 0, smoke" and run.result == cell["result"]
    state = torch.load(runs / "cells" / cell["key"] / "checkpoint.pt", weights_only=True)["learner"]["model"]
    gru = torch.nn.GRU(60, 16, batch_first=True)
    gru.load_state_dict({name.removeprefix("encoder.gru."): value for name, value in state.items()
                         if name.startswith("encoder.gru.")})
    index = int(data.lengths.argmin())
    sequence = sequence_of(data, index)
    assert len(sequence) == data.lengths[index] and sequence.equal(data.sequences[index, : len(sequence)])
    with torch.no_grad():
        readout = gru(sequence[None])[1][0, 0]
    torch.testing.assert_close(run.readouts[index], readout)
    head = state["head.weight"] @ readout + state["head.bias"]
    torch.testing.assert_close(run.embedded(sequence[None])[0], head / head.norm())
    torch.testing.assert_close(run.embeddings[index], head / head.norm())

    decoder = torch.nn.GRU(16, 16, batch_first=True)
    decoder.load_state_dict({name.removeprefix("decoder.gru."): value for name, value in state.items()
                             if name.startswith("decoder.gru.")})
    with torch.no_grad():
        states = decoder(readout.expand(1, len(sequence), -1))[0][0]
    expected = states @ state["decoder.output.weight"].T + state["decoder.output.bias"]
    torch.testing.assert_close(run.decoded(sequence), expected)


def test_a_run_chosen_on_the_test_split_has_the_weights_that_were_chosen(runs, data):
    store = Store(runs)
    cell = finished_runs(data, store)[0]
    path = runs / "cells" / cell["key"] / "checkpoint.pt"
    chosen = torch.load(path, weights_only=True)["learner"]
    run = load_run(cell, store, data, CPU)
    expected = chosen["weights"] if chosen["best"] >= 0 else chosen["model"]
    for name, value in run.pretrainer.model.state_dict().items():
        assert value.equal(expected[name])


def test_a_large_set_is_sampled_and_a_small_one_is_not(data):
    assert part_of(data, len(data.lengths)) is data
    part = part_of(data, 7)
    assert len(part.lengths) == 7 and len(part.frames) == int(part.lengths.sum())
    wanted = {data.sequences[row, : data.lengths[row]].numpy().tobytes(): row for row in range(len(data.lengths))}
    rows = [wanted[sequence_of(part, number).numpy().tobytes()] for number in range(7)]
    assert rows == sorted(rows)
    for name in ("labels", "views", "subjects", "train", "test"):
        assert getattr(part, name).equal(getattr(data, name)[rows])


def test_views_are_reversed_or_not_and_sheared(data):
    sequence = sequence_of(data, 5)
    recipe = TABLES["taxonomy"].cells(objectives="CE")[0].recipe
    first, second = augmented(sequence, recipe, seed=0)
    assert not first.equal(second) and augmented(sequence, recipe, seed=0)[0].equal(first)
    assert not augmented(sequence, recipe, seed=1)[0].equal(first)
    for view in (first, second):
        points, fits = view.reshape(-1, 3).double(), []
        for source in (sequence, sequence.flip(0)):
            joints = source.reshape(-1, 3).double()
            matrix = torch.linalg.lstsq(joints, points).solution.T
            fits.append((float((joints @ matrix.T - points).abs().max()), matrix))
        error, matrix = min(fits, key=lambda fit: fit[0])
        assert error < 1e-5
        torch.testing.assert_close(matrix.diagonal(), torch.ones(3, dtype=torch.float64), atol=1e-5, rtol=0)
        assert 0.1 < (matrix - torch.eye(3)).abs().max() <= 1
    still = dataclasses.replace(recipe, flip=0.0, shear=0.0)
    torch.testing.assert_close(augmented(sequence, still, seed=0)[1], sequence)


@pytest.mark.parametrize(("dataset", "pipeline", "up", "units"), [
    ("ucla", "default", 2, "scaled to [-1, 1]"), ("synthetic", "unscaled", 2, "m"), ("ucla", "interpolate", 2, "m"),
    ("ucla", "raw", 1, "m"), ("ntu", "default", 1, "m"), ("ntu", "authors", 1, "m"),
    ("ntu", "predict_cluster", 2, "scaled to [-1, 1]"),
])
def test_the_frame_of_reference_is_that_of_the_pipeline(dataset, pipeline, up, units):
    assert reference(paper(dataset, "AD", pipeline=pipeline)) == (up, units)
