"""Image cells under `torchrun` in two processes, killed and started again, beside the same cells in one process."""

import json

import image_processes
import pytest
import torch

from repro import run_table
from repro.run.fit import load_checkpoint

METHODS = ["moco", "sce", "jcl", "supervised"]
ONE_IMAGE = 100 / 450  # of the test split, in percent


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """Runs of one and of two processes, and what the latter said: killed at the first checkpoint, then to the end."""
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        image_processes.small(patch)
        patch.setenv("REPRO_RUNS", str(one))
        table = run_table("image_methods", preset="smoke", method=METHODS, engine="inline", device="cpu")
    words = ["run", "image_methods", "--preset", "smoke", "--method", ",".join(METHODS), "--device", "cpu", "--all"]
    killed = image_processes.in_two_processes(two, *words, checkpoints=1)
    left = {path.name for path in two.glob("cells/*/*")}
    ended = image_processes.in_two_processes(two, *words)
    return {"one": runs(one), "two": runs(two), "table": table, "killed": killed, "left": left, "ended": ended}


def runs(folder):
    """The folders of all cells, by method."""
    paths = folder.glob("cells/*/recipe.json")
    return {json.loads(path.read_text())["recipe"]["method"]: path.parent for path in paths}


def pair(launched, method, read):
    """What one process has written of a method, and what two have."""
    return [read(launched[number][method]) for number in ("one", "two")]


def result(folder, name="result.json"):
    written = json.loads((folder / name).read_text())
    assert written.pop("cost")["steps"] == 10
    return written


def assert_close(found, expected, place=""):
    """States of equal structure and numbers, up to rounding; bytes of generators and counts agree exactly."""
    assert type(found) is type(expected), place
    if isinstance(found, torch.Tensor):
        assert found.dtype == expected.dtype, place
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=2e-5, msg=lambda text: f"{place}: {text}")
    elif isinstance(found, (dict, list)):
        keys = list(found) if isinstance(found, dict) else range(len(found))
        assert len(found) == len(expected) and (isinstance(found, list) or list(expected) == keys), place
        for key in keys:
            assert_close(found[key], expected[key], f"{place}/{key}")
    else:
        assert found == pytest.approx(expected, abs=ONE_IMAGE), place  # the nearest neighbour last measured


def test_a_killed_launch_is_taken_up_and_prints_the_table_of_one_process_once(launched):
    assert launched["killed"].returncode != 0 and "SIGKILL" in launched["killed"].stderr
    assert launched["killed"].stdout == ""
    assert "checkpoint.pt" in launched["left"] and "result.json" not in launched["left"]
    assert launched["ended"].returncode == 0, launched["ended"].stderr
    header, *lines = (line.split() for line in launched["ended"].stdout.splitlines())
    assert header == launched["table"].columns.tolist()
    for (method, ours, *_), row in zip(lines, launched["table"].itertuples(), strict=True):
        assert method == row.method and float(ours) == pytest.approx(row.ours, abs=2 * ONE_IMAGE)


@pytest.mark.parametrize("method", METHODS)
def test_results_of_two_processes_are_those_of_one_and_both_hold_them(launched, method):
    expected, measures = pair(launched, method, result)
    assert list(measures) == list(expected)
    for name, tolerance in {"linear": 2 * ONE_IMAGE, "knn1": 2 * ONE_IMAGE, "embedding_spread": 1e-4}.items():
        assert measures[name] == pytest.approx(expected[name], abs=tolerance), name
    del measures["evaluation"]  # put there in writing
    assert [result(launched["two"][method], f"seen by {rank}.json") for rank in (0, 1)] == 2 * [measures]


@pytest.mark.parametrize("method", METHODS)
def test_features_of_random_views_are_those_of_one_process(launched, method):
    expected = torch.load(launched["one"][method] / "features of 0.pt")
    ranks = [torch.load(launched["two"][method] / f"features of {rank}.pt") for rank in (0, 1)]
    assert list(expected) == ["ShiftedView", "View"]
    for name, features in expected.items():
        assert torch.equal(ranks[0][name], ranks[1][name])
        torch.testing.assert_close(ranks[0][name], features, rtol=1e-3, atol=1e-4)
        assert features.std(0).max() > 0.01  # far more than the tolerance


@pytest.mark.parametrize("method", METHODS)
def test_losses_weights_dictionary_and_generators_of_two_processes_are_those_of_one(launched, method):
    histories = pair(launched, method, lambda folder: (folder / "progress.jsonl").read_text().splitlines())
    for expected, terms in zip(*([json.loads(line) for line in lines] for lines in histories), strict=True):
        assert list(terms) == list(expected) and terms["step"] == expected["step"]
        assert terms["knn1"] == pytest.approx(expected["knn1"], abs=ONE_IMAGE)
        for name in set(terms) - {"step", "seconds", "knn1"}:
            assert terms[name] == pytest.approx(expected[name], rel=1e-4), name
    expected, state = pair(launched, method, load_checkpoint)
    assert state["step"] == expected["step"] == 10 and len(histories[0]) == 2
    assert_close(state["learner"], expected["learner"])
    if method == "supervised":
        return  # nothing follows its model
    moved = state["learner"]["model"]["trunk.0.weight"] - state["learner"]["keys"]["twin.trunk.0.weight"]
    assert moved.abs().max() > 1e-3  # far more than the tolerance
