"""Cells of a table: which are trained, what is left of failures, and waiting for those that others hold."""

import dataclasses
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from made_up_training import CELLS, Trainer, cell, value
from one_cell import first_edition

from repro.data import manifest
from repro.run.engine import run_cells
from repro.run.fit import NonFiniteLoss
from repro.run.store import Run, Store, trained


def diverge(run):
    raise NonFiniteLoss(f"{run.cell.label} is nan at step 7")


@pytest.fixture
def store(tmp_path, monkeypatch) -> Store:
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    return Store(manifest.runs_root())


def values(store, cells=CELLS):
    """The accuracies that are stored."""
    return [store.run(each).result["linear"] for each in cells]


EXPECTED = [value(each) for each in CELLS]


def test_what_is_missing_is_trained_in_the_order_asked_for_and_nothing_else(store, capsys):
    run_cells([*CELLS[:3], CELLS[0]], train := Trainer(), store)
    assert train.calls == [("CE", 0), ("AE", 0), ("CE", 1)]  # one that is asked for twice is trained once
    assert f"training 4 of 4 cells, preset quick on synthetic, in {store.root}" in capsys.readouterr().err
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    run_cells(CELLS[:3], train := Trainer(), store)
    assert train.calls == [] and capsys.readouterr().err == ""
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before
    run_cells(CELLS[::-1], train, store)
    assert train.calls == [("AE", 1), ("CD", 0)] and values(store) == EXPECTED
    assert all(store.run(each).result["cost"] == {"seconds": 1.0, "commit": "abc"} for each in CELLS)


def test_a_diverging_cell_does_not_stop_the_others_and_is_named_at_the_end(store):
    train = Trainer(AE=diverge)
    with pytest.raises(NonFiniteLoss) as raised:
        run_cells(CELLS, train, store)
    summary, *failed, remedy = str(raised.value).splitlines()
    assert summary == "2 of 5 cells failed, the others are done:"
    assert remedy == "once the reason is gone, the same command trains them again"
    assert failed == ["  AE, seed 0: AE is nan at step 7", "  AE, seed 1: AE is nan at step 7"]
    assert len(train.calls) == len(CELLS)
    for each in CELLS:
        assert (store.run(each).result is None) == (each.label == "AE")

    train = Trainer()  # once the cause is gone, only these are trained again
    run_cells(CELLS, train, store)
    assert train.calls == [("AE", 0), ("AE", 1)] and values(store) == EXPECTED


@pytest.mark.parametrize("ask", [lambda run: torch.empty(2**60), lambda run: bytearray(2**62)], ids=["torch", "python"])
def test_a_cell_too_large_for_memory_does_not_stop_the_others_and_is_named_at_the_end(store, ask):
    with pytest.raises(ChildProcessError) as raised:
        run_cells(CELLS, Trainer(AE=ask), store)
    summary, *failed, remedy = str(raised.value).splitlines()
    assert summary == "2 of 5 cells failed, the others are done:"
    assert remedy == "once the reason is gone, the same command trains them again"
    for seed, line in enumerate(failed):
        assert line.startswith(f"  AE, seed {seed}: MemoryError: ")
        assert line.endswith("; choose a smaller batch, dictionary or network")
    for each in CELLS:
        assert (store.run(each).result is None) == (each.label == "AE")
    run_cells(CELLS, Trainer(), store)
    assert values(store) == EXPECTED


def test_another_error_stops_at_once_and_leaves_the_cell_free(store):
    def fail(run):
        raise RuntimeError("out of memory")

    train = Trainer(AE=fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        run_cells(CELLS, train, store)
    assert train.calls == [("CE", 0), ("AE", 0)]
    with store.run(cell("AE")).claim() as claimed:
        assert claimed
    assert store.run(cell("CE")).result["linear"] == value(cell("CE"))


def test_a_result_that_json_lacks_completes_nothing(store):
    def infinite(run, progress):
        return {"linear": float("inf"), "cost": {}}

    with pytest.raises(ValueError, match="not JSON compliant"):
        run_cells(CELLS[:1], infinite, store)
    assert store.run(CELLS[0]).result is None


def test_cells_of_the_first_edition_count_and_are_measured_again_from_whichever_folder_has_a_checkpoint(store):
    folder = first_edition(store, CELLS[0], "encoder_collapse", {"linear": 1.0}, checkpoint=True)
    first_edition(store, CELLS[0], "taxonomy", {"linear": 2.0, "evaluation": 2})
    train = Trainer()
    run_cells([dataclasses.replace(CELLS[0], evaluation=2)], train, store)
    assert train.calls == [] and [cell["result"]["linear"] for cell in store.finished()] == [2.0]
    today = dataclasses.replace(CELLS[0], evaluation=3)
    run_cells([today], train, store)
    assert train.calls == [("CE", 0)] and store.run(today).folder == folder
    (described,) = store.finished()
    assert described["result"] == {"linear": EXPECTED[0], "select": "last", "cost": {}, "evaluation": 3}


def test_a_cell_completed_elsewhere_just_before_it_is_claimed_is_not_trained(store, monkeypatch):
    claim = Run.claim

    def late(run):
        run.finish({"linear": 1.0, "select": "last", "cost": {"seconds": 9.0}})
        return claim(run)

    monkeypatch.setattr(Run, "claim", late)
    train = Trainer()
    run_cells(CELLS[:1], train, store)
    assert values(store, CELLS[:1]) == [1.0] and train.calls == []


def test_a_damaged_result_is_named_before_anything_is_trained(store):
    run_cells(CELLS[:1], Trainer(), store)
    path = store.run(CELLS[0]).folder / "result.json"
    path.write_text(path.read_text()[:20])
    train = Trainer()
    with pytest.raises(ValueError, match=r"result\.json cannot be read .* delete recipe.json and result.json there"):
        run_cells(CELLS, train, store)
    assert train.calls == []


def test_a_folder_that_cannot_be_written_is_noticed_before_anything_is_trained(store):
    file = store.root / "a file in the place of the folder"
    file.touch()
    train = Trainer()
    with pytest.raises(OSError, match=r"cannot be written .* point REPRO_RUNS at another folder"):
        run_cells(CELLS, train, Store(file))
    assert train.calls == []


class Holder(threading.Thread):
    """Claims a cell as another process would, until told to let go; completes it with `result` if there is one."""

    def __init__(self, run, result=None):
        super().__init__(daemon=True)
        self.cell_run, self.result = run, result
        self.has_claim, self.let_go = threading.Event(), threading.Event()

    def run(self):
        with self.cell_run.claim() as claimed:
            assert claimed
            self.has_claim.set()
            assert self.let_go.wait(60)
            if self.result is not None:
                self.cell_run.finish(self.result)


@pytest.fixture
def held(store):
    """Holds CELLS[0] elsewhere; returns a function that starts it with the result it shall have."""
    holders = []

    def start(result=None) -> Holder:
        holders.append(Holder(store.run(CELLS[0]), result))
        holders[-1].start()
        assert holders[-1].has_claim.wait(60)
        return holders[-1]

    yield start
    for holder in holders:
        holder.let_go.set()
        holder.join(60)
        assert not holder.is_alive()


def test_a_cell_held_elsewhere_is_waited_for_after_the_others_are_done(store, held):
    elsewhere = held({"linear": 1.0, "select": "last", "cost": {"seconds": 9.0}})
    train = Trainer(AE=lambda run: run.cell.seed == 1 and elsewhere.let_go.set())  # the last of CELLS
    run_cells(CELLS, train, store)
    assert train.calls == [(each.label, each.seed) for each in CELLS[1:]]
    assert values(store) == [1.0, *EXPECTED[1:]]


@pytest.mark.parametrize("result", [{"linear": 1.0, "select": "last", "cost": {"seconds": 9.0}}, None], ids=str)
def test_a_cell_held_elsewhere_is_read_or_taken_over_and_waiting_says_for_whom(store, held, capsys, result):
    timer = threading.Timer(0.3, held(result).let_go.set)
    timer.start()
    train = Trainer()
    run_cells(CELLS[:1], train, store)
    timer.join()
    assert values(store, CELLS[:1]) == ([1.0] if result else EXPECTED[:1]) and len(train.calls) == (result is None)
    folder = store.run(CELLS[0]).folder
    line, = re.findall("waiting for.*", capsys.readouterr().err)  # where bars are drawn, behind their control codes
    assert line.startswith("waiting for process ") and line.endswith(f"which trains CE, seed 0, in {folder}")


class Pool:
    """Stands for processes; remembers how many cells it was given each time."""

    def __init__(self):
        self.given = []

    def started(self, most):
        self.given.append(most)
        return ThreadPoolExecutor(1)


def test_a_pool_gets_what_is_missing(store):
    pool, train = Pool(), Trainer()
    run_cells(CELLS[:2], Trainer(), store)
    run_cells(CELLS, train, store, pool=pool)
    assert values(store) == EXPECTED
    assert train.calls == [(each.label, each.seed) for each in CELLS[2:]] and pool.given == [3]
    run_cells(CELLS, train, store, pool=pool)
    assert pool.given == [3]


def test_what_others_hold_is_waited_for_and_trained_by_the_pool_if_they_give_it_up(store, held, capsys):
    elsewhere, pool, train = held(), Pool(), Trainer()
    timer = threading.Timer(0.3, elsewhere.let_go.set)
    timer.start()
    run_cells(CELLS, train, store, pool=pool)
    timer.join()
    assert values(store) == EXPECTED and pool.given == [5, 1]
    assert train.calls == [(each.label, each.seed) for each in (*CELLS[1:], CELLS[0])]
    assert capsys.readouterr().err.count("waiting for process ") == 1


def test_a_cell_that_ends_with_an_error_in_a_pool_is_tried_once_more(store, capsys):
    tried = []

    def fail_once(run):
        tried.append(run.cell.seed)
        if tried == [run.cell.seed]:
            raise RuntimeError("a device that was lost")

    run_cells(CELLS, Trainer(AE=fail_once), store, pool=Pool())
    assert values(store) == EXPECTED and sorted(tried) == [0, 0, 1]
    said = capsys.readouterr().err
    assert said.count("AE, seed 0: RuntimeError: a device that was lost; trying once more\n") == 1


def test_lost_processes_weigh_more_than_divergence(store):
    def fail(run):
        raise RuntimeError("out of memory")

    with pytest.raises(ChildProcessError) as raised:
        run_cells(CELLS[:2], train := Trainer(CE=diverge, AE=fail), store, pool=Pool())
    _, *failed, _ = str(raised.value).splitlines()
    assert failed == ["  CE, seed 0: CE is nan at step 7", "  AE, seed 0: RuntimeError: out of memory (tried twice)"]
    assert sorted(train.calls) == [("AE", 0), ("AE", 0), ("CE", 0)]  # what diverges would diverge again


def test_the_bar_counts_what_is_trained_of_unfinished_cells(store, capsys):
    """Two cells are finished, a third has 25 of 100 steps after many others, a fourth a line that is being written."""
    run_cells(CELLS[:2], Trainer(), store)
    long = '{"step": 20, "of": 100}\n' * 900 + '{"step": 25, "of": 100}\n'
    for each, line in ((CELLS[2], long), (CELLS[3], '{"step": 5')):
        folder = store.run(each).folder
        folder.mkdir(parents=True)
        (folder / "progress.jsonl").write_text(line)
    assert [trained(store.run(each).folder) for each in CELLS] == [1, 1, 0.25, 0, 0]
    run_cells(CELLS, Trainer(), store, pool=Pool())
    assert "| 0.25/3 [" in capsys.readouterr().err
