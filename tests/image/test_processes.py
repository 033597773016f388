"""Image runs under `torchrun` in two processes, killed and started again, beside the same runs in one process."""

import json
import signal

import pytest
import two_processes

from repro import run_table

METHODS = ["moco", "supervised"]
ONE_IMAGE = 100 / 450  # of the test split, in percent


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """The folders of one and of two processes, and what the latter said: killed at the first checkpoint, then ended.

    Those that are killed have no agent, which would end; that the one of `torchrun` starts such runs, the last shows.
    """
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        two_processes.small(patch)
        patch.setenv("REPRO_RUNS", str(one))
        table = run_table("image_methods", preset="smoke", method=METHODS, engine="inline", device="cpu")
    words = ["run", "image_methods", "--preset", "smoke", "--method", ",".join(METHODS), "--device", "cpu", "--all"]
    with two_processes.nursery(two) as nursery:
        killed = two_processes.forked(nursery, two, "1", *words)
        left = {path.name for path in two.glob("runs/*/*")}
        ended = two_processes.launched(nursery, two, "0", *words)
    return {"one": one, "two": two, "table": table, "killed": killed, "left": left, "ended": ended}


def test_a_killed_launch_is_taken_up_and_prints_the_table_of_one_process_once(launched):
    statuses, out, _ = launched["killed"]
    assert statuses == [-signal.SIGKILL] * 2 and out == ""
    assert "checkpoint.pt" in launched["left"] and "result.json" not in launched["left"]
    statuses, out, errors = launched["ended"]
    assert statuses == [0], errors
    header, *lines = (line.split() for line in out.splitlines())
    assert header == launched["table"].columns.tolist()
    for (method, ours, *_), row in zip(lines, launched["table"].itertuples(), strict=True):
        assert method == row.method and float(ours) == pytest.approx(row.ours, abs=2 * ONE_IMAGE)


def test_results_of_two_processes_are_those_of_one(launched):
    expected, found = (
        {json.loads(path.with_name("recipe.json").read_text())["recipe"]["method"]: json.loads(path.read_text())
         for path in launched[number].glob("runs/*/result.json")} for number in ("one", "two")
    )
    assert sorted(found) == METHODS
    for method, measures in found.items():
        assert list(measures) == list(expected[method]) and measures["cost"]["steps"] == 10
        for name, tolerance in {"linear": 2 * ONE_IMAGE, "knn1": 2 * ONE_IMAGE, "embedding_spread": 1e-4}.items():
            assert measures[name] == pytest.approx(expected[method][name], abs=tolerance), (method, name)
