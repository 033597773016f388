"""Image cells under `torchrun` in two processes, killed and started again, beside the same cells in one process."""

import json

import image_processes
import pytest
import torch

from repro import run_table
from repro.run.fit import load_checkpoint

METHODS = ["moco", "sce", "jcl", "vanilla", "supervised"]
ONE_IMAGE = 100 / 450  # of the test split, in percent


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """Runs of one and of two processes, and what the latter said: killed at the first checkpoint, then to the end."""
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        image_processes.small(patch)
        patch.setenv("REPRO_RUNS", str(one))
        table = run_table("image_methods", preset="smoke", method=METHODS, engine="inline", device="cpu")
    words = ["run", "image_methods", "--preset", "smoke", "--method", ",".join(METHODS), "--device", "cpu"]
    killed = image_processes.in_two_processes(two, *words, checkpoints=1)
    left = {path.name for path in two.glob("cells/*/*")}
    ended = image_processes.in_two_processes(two, *words)
    return {"one": runs(one), "two": runs(two), "table": table, "killed": killed, "left": left, "ended": ended}


def runs(folder):
    """The folders of all cells, by method."""
    folders = [path.parent for path in folder.glob("cells/*/recipe.json")]
    return {json.loads((each / "recipe.json").read_text())["recipe"]["method"]: each for each in folders}


def result(folder, name="result.json"):
    found = json.loads((folder / name).read_text())
    assert found.pop("cost")["steps"] == 10
    return found


def assert_close(found, expected, place=""):
    """States of equal structure and numbers, up to rounding; bytes of generators and counts agree exactly."""
    assert type(found) is type(expected), place
    if isinstance(found, torch.Tensor):
        assert found.dtype == expected.dtype, place
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=2e-5, msg=lambda text: f"{place}: {text}")
    elif isinstance(found, dict):
        assert list(found) == list(expected), place
        for name in found:
            assert_close(found[name], expected[name], f"{place}/{name}")
    elif isinstance(found, list):
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_close(one, other, f"{place}/{number}")
    else:
        assert found == pytest.approx(expected, abs=ONE_IMAGE), place  # the nearest neighbour last measured


def test_the_first_launch_was_killed_after_a_checkpoint_of_its_first_cell(launched):
    assert launched["killed"].returncode != 0 and "SIGKILL" in launched["killed"].stderr
    assert launched["killed"].stdout == ""
    assert "checkpoint.pt" in launched["left"] and "result.json" not in launched["left"]


def test_the_second_launch_prints_the_table_of_one_process_once(launched):
    assert launched["ended"].returncode == 0, launched["ended"].stderr
    lines = launched["ended"].stdout.splitlines()
    assert len(lines) == 1 + len(METHODS)
    assert lines[0].split() == launched["table"].columns.tolist()
    for line, row in zip(lines[1:], launched["table"].itertuples(), strict=True):
        method, ours = line.split()[:2]
        assert method == row.method
        assert float(ours) == pytest.approx(row.ours, abs=2 * ONE_IMAGE)


@pytest.mark.parametrize("method", METHODS)
def test_results_of_two_processes_are_those_of_one(launched, method):
    expected, found = (result(launched[number][method]) for number in ("one", "two"))
    assert list(found) == list(expected)
    for name, tolerance in {"linear": 2 * ONE_IMAGE, "knn1": 2 * ONE_IMAGE, "embedding_spread": 1e-4}.items():
        assert found[name] == pytest.approx(expected[name], abs=tolerance), name


@pytest.mark.parametrize("method", METHODS)
def test_features_of_random_views_are_those_of_one_process(launched, method):
    expected = torch.load(launched["one"][method] / "features of 0.pt")
    found = [torch.load(launched["two"][method] / f"features of {rank}.pt") for rank in (0, 1)]
    assert list(expected) == ["ShiftedView", "View"]
    for name, features in expected.items():
        assert torch.equal(found[0][name], found[1][name])
        torch.testing.assert_close(found[0][name], features, rtol=1e-3, atol=1e-4)
        assert features.std(0).max() > 0.01  # far more than the tolerance


@pytest.mark.parametrize("method", METHODS)
def test_both_processes_hold_the_result_that_the_first_writes(launched, method):
    folder = launched["two"][method]
    written = {name: value for name, value in result(folder).items() if name != "evaluation"}  # put there in writing
    assert [result(folder, f"seen by {rank}.json") for rank in (0, 1)] == 2 * [written]


@pytest.mark.parametrize("method", METHODS)
def test_losses_of_two_processes_are_those_of_one(launched, method):
    histories = []
    for number in ("one", "two"):
        lines = (launched[number][method] / "progress.jsonl").read_text().splitlines()
        histories.append([json.loads(line) for line in lines])
    expected, found = histories
    assert [line["step"] for line in found] == [line["step"] for line in expected] == [5, 10]
    for mine, others in zip(found, expected, strict=True):
        assert list(mine) == list(others)
        for name in set(mine) - {"step", "seconds", "knn1"}:
            assert mine[name] == pytest.approx(others[name], rel=1e-4), name
        assert mine["knn1"] == pytest.approx(others["knn1"], abs=ONE_IMAGE)


@pytest.mark.parametrize("method", METHODS)
def test_weights_dictionary_and_generators_of_two_processes_are_those_of_one(launched, method):
    expected, found = (load_checkpoint(launched[number][method]) for number in ("one", "two"))
    assert found["step"] == expected["step"] == 10
    assert_close(found["learner"], expected["learner"])
    moved = found["learner"]["model"]["trunk.0.weight"] - found["learner"]["keys"]["twin.trunk.0.weight"]
    assert moved.abs().max() > 1e-3  # far more than the tolerance


def test_cells_of_both_kinds_of_shuffling_and_of_probes_were_compared(launched):
    recipes = [json.loads((folder / "recipe.json").read_text())["recipe"] for folder in launched["two"].values()]
    assert {(recipe["shuffle"], recipe["probe_view"]) for recipe in recipes} == {
        (True, "shifted"), (True, "crop"), (False, "crop")
    }
    assert {recipe["groups"] for recipe in recipes} == {2}
