import dataclasses
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from repro import manifest
from repro.recipe import Recipe, setting
from repro.run import cells as shared
from repro.run import cluster, engine
from repro.run.cluster import Cluster
from repro.run.engine import pool_of, run_cells
from repro.run.fit import NonFiniteLoss
from repro.run.local import Local
from repro.run.store import Cell, Run, Store
from repro.skeleton.recipe import SkeletonRecipe


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small(Recipe):
    objectives: str = setting("CE", "assumed")


def cell(objectives: str, seed: int = 0, table: str = "taxonomy") -> Cell:
    recipe = Small(objectives=objectives)
    return Cell(table, objectives, recipe, seed, preset="quick", dataset="synthetic", digest="d1", version=1)


CELLS = [cell("CE"), cell("AE"), cell("CE", 1), cell("CD"), cell("AE", 1)]


def value(chosen: Cell) -> float:
    """The accuracy the trainer below gives to a cell."""
    return len(chosen.entry) * 10.0 + ord(chosen.entry[0]) + chosen.seed


class Trainer:
    """Stands for training a cell; remembers its calls, and for some entries does something else first."""

    def __init__(self, **before: Callable):
        self.calls, self.before = [], before

    def __call__(self, run, progress):
        self.calls.append((run.cell.entry, run.cell.seed))
        self.before.get(run.cell.entry, lambda run: None)(run)
        progress.update()
        return {"linear": value(run.cell), "select": "last", "cost": {"seconds": 1.0, "commit": "abc"}}


def diverge(run):
    raise NonFiniteLoss(f"{run.cell.entry} is nan at step 7")


@pytest.fixture
def store(tmp_path, monkeypatch) -> Store:
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    return Store(manifest.runs_root())


def test_one_row_a_cell_in_the_order_asked_for(store):
    train = Trainer()
    found = run_cells(CELLS, train, store)
    assert train.calls == [(each.entry, each.seed) for each in CELLS]
    assert list(found.columns) == ["entry", "seed", "key", "linear", "select"]  # the cost is not a result
    expected = [(each.entry, each.seed, each.key, value(each), "last") for each in CELLS]
    assert list(found.itertuples(index=False, name=None)) == expected
    for each in CELLS:
        assert store.run(each).result["cost"] == {"seconds": 1.0, "commit": "abc"}


def test_complete_cells_return_without_training(store, capsys):
    first = run_cells(CELLS[:3], Trainer(), store)
    plan = f"training 3 of 3 cells, preset quick on synthetic, in {store.root}"
    assert plan in capsys.readouterr().err
    train = Trainer()
    assert run_cells(CELLS[:3], train, store).equals(first)
    assert train.calls == [] and capsys.readouterr().err == ""
    backwards = run_cells(CELLS[::-1], train, store)
    assert train.calls == [("AE", 1), ("CD", 0)]  # what was missing, in the order asked for
    assert backwards["linear"].tolist() == [value(each) for each in CELLS[::-1]]


def test_complete_cells_are_left_as_they_are(store):
    run_cells(CELLS, Trainer(), store)
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    run_cells(CELLS, Trainer(), store)
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before


def test_a_diverging_cell_does_not_stop_the_others_and_is_named_at_the_end(store):
    train = Trainer(AE=diverge)
    with pytest.raises(NonFiniteLoss) as raised:
        run_cells(CELLS, train, store)
    summary, *failed = str(raised.value).splitlines()
    assert summary == "2 of 5 cells failed, the others are done:"
    assert failed == ["  AE, seed 0: AE is nan at step 7", "  AE, seed 1: AE is nan at step 7"]
    assert len(train.calls) == len(CELLS)
    for each in CELLS:
        assert (store.run(each).result is None) == (each.entry == "AE")

    train = Trainer()  # once the cause is gone, only these are trained again
    found = run_cells(CELLS, train, store)
    assert train.calls == [("AE", 0), ("AE", 1)]
    assert found["linear"].tolist() == [value(each) for each in CELLS]


@pytest.mark.parametrize("ask", [lambda run: torch.empty(2**60), lambda run: bytearray(2**62)], ids=["torch", "python"])
def test_a_cell_too_large_for_memory_does_not_stop_the_others_and_is_named_at_the_end(store, ask):
    with pytest.raises(ChildProcessError) as raised:
        run_cells(CELLS, Trainer(AE=ask), store)
    summary, *failed = str(raised.value).splitlines()
    assert summary == "2 of 5 cells failed, the others are done:"
    for seed, line in enumerate(failed):
        assert line.startswith(f"  AE, seed {seed}: MemoryError: ")
        assert line.endswith("; choose a smaller batch, dictionary or network")
    for each in CELLS:
        assert (store.run(each).result is None) == (each.entry == "AE")
    found = run_cells(CELLS, Trainer(), store)
    assert found["linear"].tolist() == [value(each) for each in CELLS]


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


def test_the_result_of_a_twin_is_adopted(store):
    other = cell("AE", table="encoder_collapse")
    run_cells([other], Trainer(), store)
    train = Trainer()
    found = run_cells([cell("CE"), cell("AE")], train, store)
    assert train.calls == [("CE", 0)]
    assert found["linear"].tolist() == [value(cell("CE")), value(cell("AE"))]
    own, twin = (store.run(each).folder / "result.json" for each in (cell("AE"), other))
    assert own.read_bytes() == twin.read_bytes()
    assert [row["table"] for row in store.finished()] == ["encoder_collapse", "taxonomy", "taxonomy"]


def test_a_cell_completed_elsewhere_just_before_it_is_claimed_is_not_trained(store, monkeypatch):
    claim = Run.claim

    def late(run):
        run.finish({"linear": 1.0, "select": "last", "cost": {"seconds": 9.0}})
        return claim(run)

    monkeypatch.setattr(Run, "claim", late)
    train = Trainer()
    assert run_cells(CELLS[:1], train, store)["linear"].tolist() == [1.0]
    assert train.calls == []


def test_a_cell_asked_for_twice_is_trained_once(store):
    train = Trainer()
    found = run_cells([cell("CE"), cell("CE")], train, store)
    assert train.calls == [("CE", 0)] and found["linear"].tolist() == [value(cell("CE"))] * 2


def test_a_damaged_result_is_named_before_anything_is_trained(store):
    run_cells(CELLS[:1], Trainer(), store)
    path = store.run(CELLS[0]).folder / "result.json"
    path.write_text(path.read_text()[:20])
    train = Trainer()
    with pytest.raises(ValueError, match=r"result\.json cannot be read .* sets it aside; then run the table again"):
        run_cells(CELLS, train, store)
    assert train.calls == []
    path.unlink()
    assert run_cells(CELLS, train, store)["linear"].tolist() == [value(each) for each in CELLS]


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
    found = run_cells(CELLS, train, store)
    assert train.calls == [(each.entry, each.seed) for each in CELLS[1:]]
    assert found["linear"].tolist() == [1.0] + [value(each) for each in CELLS[1:]]


def test_waiting_says_for_whom(store, held, capsys):
    elsewhere = held({"linear": 1.0, "select": "last", "cost": {"seconds": 9.0}})
    timer = threading.Timer(0.3, elsewhere.let_go.set)
    timer.start()
    train = Trainer()
    assert run_cells(CELLS[:1], train, store)["linear"].tolist() == [1.0]
    timer.join()
    assert train.calls == []
    folder = store.run(CELLS[0]).folder
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("waiting for")]
    assert len(said) == 1
    assert said[0].startswith("waiting for process ") and said[0].endswith(f"which trains CE, seed 0, in {folder}")


def test_a_cell_given_up_elsewhere_is_taken_over(store, held):
    elsewhere = held()
    timer = threading.Timer(0.3, elsewhere.let_go.set)
    timer.start()
    train = Trainer()
    assert run_cells(CELLS[:1], train, store)["linear"].tolist() == [value(CELLS[0])]
    timer.join()
    assert train.calls == [("CE", 0)]


class Pool:
    """Stands for processes that each try every cell once; remembers which cells it was given."""

    def __init__(self):
        self.given = []

    def __call__(self, cells, train, store):
        self.given.append([(each.entry, each.seed) for each in cells])
        outcomes = {each.key: shared.settle_quietly(each, train, store) for each in cells}
        return {each.key: shared.failure(each, outcomes[each.key]) for each in cells
                if isinstance(outcomes[each.key], Exception)}


def test_a_pool_gets_what_is_missing(store):
    pool, train = Pool(), Trainer()
    run_cells(CELLS[:2], Trainer(), store)
    assert run_cells(CELLS, train, store, pool=pool)["linear"].tolist() == [value(each) for each in CELLS]
    assert pool.given == [[(each.entry, each.seed) for each in CELLS[2:]]] == [train.calls]
    run_cells(CELLS, train, store, pool=pool)
    assert len(pool.given) == 1


def test_what_others_hold_is_waited_for_and_trained_by_the_pool_if_they_give_it_up(store, held, capsys):
    elsewhere, pool = held(), Pool()
    timer = threading.Timer(0.3, elsewhere.let_go.set)
    timer.start()
    found = run_cells(CELLS, Trainer(), store, pool=pool)
    timer.join()
    assert found["linear"].tolist() == [value(each) for each in CELLS]
    assert pool.given == [[(each.entry, each.seed) for each in CELLS], [("CE", 0)]]
    assert capsys.readouterr().out.count("waiting for process ") == 1


def test_a_cell_that_diverges_in_a_pool_is_not_trained_again(store):
    train, pool = Trainer(CD=diverge), Pool()
    with pytest.raises(NonFiniteLoss, match="CD, seed 0: CD is nan at step 7"):
        run_cells(CELLS, train, store, pool=pool)
    assert len(pool.given) == 1 and len(train.calls) == len(CELLS)


def test_lost_processes_weigh_more_than_divergence(store):
    def pool(cells, train, store):
        errors = NonFiniteLoss("AE is nan at step 7"), RuntimeError("out of memory")
        return {each.key: shared.failure(each, error) for each, error in zip(cells, errors, strict=True)}

    with pytest.raises(ChildProcessError) as raised:
        run_cells(CELLS[:2], Trainer(), store, pool=pool)
    _, *failed = str(raised.value).splitlines()
    assert failed == ["  CE, seed 0: AE is nan at step 7", "  AE, seed 0: RuntimeError: out of memory"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Threaded(Recipe):
    threads: int = setting(1, "assumed")


def threaded(threads: int, preset: str) -> list[Cell]:
    return [dataclasses.replace(CELLS[0], recipe=Threaded(threads=threads), preset=preset)]


@pytest.mark.parametrize(
    ("name", "workers", "threads", "preset", "device", "count"),
    [
        ("inline", "auto", 1, "quick", "cpu", 1), ("inline", 1, 1, "quick", "cpu", 1),
        ("local", "auto", 1, "quick", "cpu", 6), ("local", "auto", 2, "quick", "cpu", 3),
        ("local", "auto", 4, "quick", "cpu", 1), ("local", "auto", 8, "quick", "cpu", 1),
        ("local", "auto", 1, "smoke", "cpu", 6), ("local", 3, 8, "smoke", "cpu", 3),
        ("local", "3", 8, "quick", "cuda", 3), ("auto", "auto", 1, "quick", "cpu", 6),
        ("auto", 2, 1, "paper", "cpu", 2), ("auto", "2", 1, "smoke", "cpu", 2), ("auto", "auto", 1, "quick", "cuda", 4),
        ("local", "auto", 8, "quick", "cuda", 4), ("auto", "auto", 1, "smoke", "cuda", 1),
    ],
)
def test_how_many_work(monkeypatch, name, workers, threads, preset, device, count):
    monkeypatch.setattr(engine, "cores", lambda: 6)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    pool = pool_of(name, workers, threaded(threads, preset), torch.device(device))
    assert pool == (Local(count) if name == "local" or count > 1 else None)


@pytest.mark.parametrize(("group", "found"), [(False, "with engine 'inline'"), (True, "under torchrun")])
def test_workers_that_would_not_be_started_are_refused(monkeypatch, group, found):
    monkeypatch.setattr(engine, "grouped", lambda: group)
    with pytest.raises(ValueError, match=f"workers=8 are not started {found}; leave them out"):
        pool_of("inline", "8", threaded(1, "quick"), torch.device("cpu"))
    assert pool_of("inline", "1", threaded(1, "quick"), torch.device("cpu")) is None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Idle(Threaded):
    cells_per_gpu = 8


@pytest.mark.parametrize(
    ("name", "workers", "gpus", "preset", "count"),
    [
        ("auto", "auto", 1, "quick", 8), ("local", "auto", 1, "smoke", 8), ("auto", "auto", 3, "paper", 24),
        ("auto", 16, 1, "quick", 16), ("auto", 1, 1, "quick", 1), ("auto", "auto", 1, "smoke", 1),
        ("inline", "auto", 1, "quick", 1),
    ],
)
def test_cells_that_leave_a_gpu_idle_share_it(monkeypatch, name, workers, gpus, preset, count):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(total_memory=141 * 10**9))
    monkeypatch.setattr("repro.run.device.cores", lambda: 64)
    cells = [dataclasses.replace(CELLS[0], recipe=Idle(), preset=preset)]
    pool = pool_of(name, workers, cells, torch.device("cuda"))
    assert pool == (Local(count) if name == "local" or count > 1 else None)


def test_how_many_share_a_gpu_is_no_part_of_a_recipe():
    assert (Recipe.cells_per_gpu, Idle().cells_per_gpu, SkeletonRecipe.cells_per_gpu) == (1, 8, 8)
    assert Idle().canonical() == Threaded().canonical()


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_single_gpu_trains_in_this_process_unless_a_worker_is_asked_for(monkeypatch, gpus):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert pool_of("auto", "auto", threaded(1, "quick"), torch.device("cuda")) is None
    assert pool_of("local", "auto", threaded(1, "quick"), torch.device("cuda")) == Local(1)


def test_dask_takes_an_address_a_number_or_its_own_configuration(monkeypatch):
    dask = pytest.importorskip("dask", reason="the extra `cluster` is not installed")
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

    def chosen(workers, device="cpu"):
        return pool_of("dask", workers, threaded(2, "quick"), torch.device(device))

    monkeypatch.setattr(engine, "cores", lambda: 6)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert chosen("tcp://host:8786") == Cluster(3, "tcp://host:8786", "cpu")
    assert chosen("2") == Cluster(2, None, "cpu") and chosen("auto") == Cluster(3, None, "cpu")
    assert chosen("auto", "cuda") == Cluster(4, None, "cuda")
    with dask.config.set({"scheduler-address": "tcp://other:1"}):
        assert chosen("auto") == Cluster(3, "tcp://other:1", "cpu") and chosen(2) == Cluster(2, None, "cpu")


def test_dask_workers_of_this_machine_take_turns_with_its_gpus(store, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert Cluster(4, None, "cuda")._gpus() == 2
    assert Cluster(4, "tcp://host:8786", "cuda")._gpus() == Cluster(4, None, "cpu")._gpus() == 0

    taken = []
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    for number, each in enumerate(CELLS[:3]):
        monkeypatch.setattr(distributed, "get_worker", lambda number=number: SimpleNamespace(name=number))
        assert cluster._settle(each, Trainer(), store, 2)
    assert cluster._settle(CELLS[3], Trainer(), store, 0)
    assert taken == [0, 1, 0]


def test_dask_is_asked_for_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"engine='dask' needs dask.distributed; install it with: pip install "):
        pool_of("dask", "auto", threaded(1, "quick"), torch.device("cpu"))


@pytest.mark.parametrize("name", ["inline", "local", "auto", "dask"])
@pytest.mark.parametrize("workers", ["0", 0, -1, "two", "", 1.5, True])
def test_impossible_numbers_of_workers_are_refused(monkeypatch, name, workers):
    monkeypatch.setattr(engine, "scheduler_address", lambda workers: None)
    with pytest.raises(ValueError, match=r"^workers=.* should be a whole number of at least 1$"):
        pool_of(name, workers, threaded(1, "quick"), torch.device("cpu"))


def test_an_unknown_engine_is_refused():
    message = r"^engine='locl' is not one of: auto, inline, local, dask; did you mean 'local'\?$"
    with pytest.raises(ValueError, match=message):
        pool_of("locl", "auto", threaded(1, "quick"), torch.device("cpu"))


def test_the_bar_counts_what_is_trained_of_unfinished_cells(store):
    """Two cells are finished, a third has 25 of 100 steps, a fourth a line that is just being written."""
    run_cells(CELLS[:2], Trainer(), store)
    for each, line in ((CELLS[2], '{"step": 20, "of": 100}\n{"step": 25, "of": 100}\n'), (CELLS[3], '{"step": 5')):
        folder = store.run(each).folder
        folder.mkdir(parents=True)
        (folder / "progress.jsonl").write_text(line)
    assert [store.run(each).trained for each in CELLS] == [1, 1, 0.25, 0, 0]
    assert shared.done(CELLS, store) == 2.25
