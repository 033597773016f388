import dataclasses
import errno
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading

import pytest

from repro import manifest
from repro.recipe import Recipe, setting
from repro.run.store import Cell, Store, write_atomically, write_json


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small(Recipe):
    epochs: int = setting(3, "assumed")
    rate: float = setting(0.5, "assumed")


CELL = Cell("taxonomy", "CE", Small(), seed=0, preset="quick", dataset="synthetic", digest="d1", version=1)
EMPTY_CELL = dataclasses.replace(CELL, recipe=Recipe())

# Another process that asks for EMPTY_CELL: `hold` claims it and keeps it until its standard input ends,
# `contend` claims it again and again and proves each time that nobody else holds it.
OTHER = """
import os, sys, time
from pathlib import Path
from repro.recipe import Recipe
from repro.run.store import Cell, Store

run = Store(Path(sys.argv[2])).run(Cell("taxonomy", "CE", Recipe(), 0, "quick", "synthetic", "d1", 1))
if sys.argv[1] == "hold":
    with run.claim() as claimed:
        print(claimed, run.cell.key, flush=True)
        sys.stdin.read()
else:
    sys.stdin.readline()
    held = 0
    end = time.monotonic() + 0.7
    while time.monotonic() < end:
        with run.claim() as claimed:
            if claimed:
                os.close(os.open(run.folder / "marker", os.O_CREAT | os.O_EXCL))
                held += 1
                time.sleep(0.002)
                os.unlink(run.folder / "marker")
        time.sleep(0.001)
    print(held, flush=True)
"""


def test_data_exchanged_since_the_cell_was_declared_are_refused():
    CELL.require("d1")
    with pytest.raises(ValueError, match=r"synthetic has changed since .* \(digest d2 instead of d1\)"):
        CELL.require("d2")


@pytest.fixture
def store(tmp_path, monkeypatch) -> Store:
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    return Store(manifest.runs_root())


@pytest.fixture
def start(store):
    """Starts another process in the role `hold` or `contend`; what is left of them is killed at the end."""
    started = []

    def launch(role: str) -> subprocess.Popen:
        command = [sys.executable, "-c", OTHER, role, str(store.root)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield launch
    for process in started:
        process.kill()
        process.communicate()


def held_by(process: subprocess.Popen) -> str:
    """Wait until a `hold` process has the claim; the key of its cell."""
    claimed, key = process.stdout.readline().split()
    assert claimed == "True"
    return key


def test_write_atomically_makes_folders_and_replaces(tmp_path):
    path = tmp_path / "a" / "b" / "file.txt"
    for text in ("first", "second, and longer", "third"):
        write_atomically(path, lambda temporary, text=text: temporary.write_text(text))
        assert path.read_text() == text
    assert os.listdir(path.parent) == ["file.txt"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_old_content_survives_a_writer_that_raises(tmp_path, error):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write(temporary):
        temporary.write_text("half of the ne")
        assert temporary.parent == path.parent and temporary != path  # on the same file system, and beside
        raise error

    with pytest.raises(type(error)):
        write_atomically(path, write)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_nothing_appears_when_the_first_writer_raises(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write_atomically(tmp_path / "file.txt", lambda temporary: temporary.write_text(str(1 / 0)))
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    def write(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=r"No space left on device \(make room there, .*\): '.*/file\.txt'") as raised:
        write_atomically(tmp_path / "file.txt", write)
    assert raised.value.errno == errno.ENOSPC and list(tmp_path.iterdir()) == []


def test_content_is_on_disk_before_it_is_in_place(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append(("fsync", os.fstat(file).st_size)), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append(("replace", None)), replace(*paths)))
    write_atomically(tmp_path / "file.txt", lambda temporary: temporary.write_text("12345"))
    assert calls[:2] == [("fsync", 5), ("replace", None)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_write_json_refuses_what_json_lacks(tmp_path, value):
    path = tmp_path / "result.json"
    write_json(path, {"linear": 50.0})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"linear": 1.0, "cost": {"seconds": [value]}})
    assert json.loads(path.read_text()) == {"linear": 50.0}
    assert os.listdir(tmp_path) == ["result.json"]


@pytest.mark.parametrize(
    "change", [{"recipe": Small(epochs=4)}, {"recipe": Small(rate=0.25)}, {"seed": 1}, {"digest": "d2"}, {"version": 2}]
)
def test_key_depends_on(change):
    assert dataclasses.replace(CELL, **change).key != CELL.key


@pytest.mark.parametrize(
    "change",
    [{"table": "encoder_collapse"}, {"entry": "CE, layers=1"}, {"preset": "paper"}, {"recipe": Small(rate=0.5)}],
)
def test_key_does_not_depend_on(change):
    assert dataclasses.replace(CELL, **change).key == CELL.key


def test_neighbouring_parts_of_the_key_do_not_run_into_each_other():
    cells = [dataclasses.replace(CELL, seed=seed, digest=digest, version=version)
             for seed, digest, version in ((1, "1", 1), (11, "", 1), (1, "", 11), (1, "11", 1), (1, "1", 11))]
    assert len({cell.key for cell in cells}) == len(cells)


def test_key_is_the_same_in_another_process(start):
    assert held_by(start("hold")) == EMPTY_CELL.key
    assert len(CELL.key) == 16 and set(CELL.key) <= set("0123456789abcdef")


def test_a_run_is_complete_once_its_result_exists(store):
    run = store.run(CELL)
    assert run.folder == store.root / "taxonomy" / CELL.key and not run.folder.exists()
    assert run.result is None
    with run.claim() as claimed:
        assert claimed and run.result is None
        for name in ("checkpoint.pt", "checkpoint.previous.pt"):
            (run.folder / name).touch()
        run.finish({"linear": 50.5, "cost": {"seconds": 1.0}})
    assert run.result == {"linear": 50.5, "cost": {"seconds": 1.0}}
    assert (run.folder / "checkpoint.pt").exists() and not (run.folder / "checkpoint.previous.pt").exists()


def test_recipe_json_gives_back_the_cell(store):
    run = store.run(CELL)
    with run.claim():
        stored = json.loads((run.folder / "recipe.json").read_text())
    assert stored.pop("key") == CELL.key == run.folder.name
    assert Cell(**stored | {"recipe": Small.from_dict(stored["recipe"])}) == CELL


def test_claim_is_exclusive_within_a_process(store):
    with store.run(CELL).claim() as first, store.run(CELL).claim() as second:
        assert first and not second
    with store.run(CELL).claim() as third:
        assert third


def test_claim_is_released_by_an_exception(store):
    with pytest.raises(KeyboardInterrupt), store.run(CELL).claim():
        raise KeyboardInterrupt
    with store.run(CELL).claim() as claimed:
        assert claimed


def test_a_claim_drops_what_killed_processes_left_half_written(store):
    run = store.run(CELL)
    (run.folder / "part").mkdir(parents=True)
    for place in (run.folder, run.folder / "part"):
        (place / ".checkpoint.pt.0123456789abcdef").touch()
        (place / "progress.jsonl").touch()
    with run.claim():
        assert not list(run.folder.rglob(".*")) and len(list(run.folder.rglob("progress.jsonl"))) == 2


def test_a_claim_leaves_hidden_files_of_others_alone(store):
    run = store.run(CELL)
    (run.folder / ".ipynb_checkpoints").mkdir(parents=True)
    (run.folder / ".notes").touch()
    with run.claim() as claimed:
        assert claimed
    assert {path.name for path in run.folder.glob(".*")} == {".ipynb_checkpoints", ".notes"}


def test_a_file_system_without_locks_is_refused(store, monkeypatch):
    def missing(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", missing)
    run = store.run(CELL)
    with pytest.raises(OSError, match=r"to a folder on a file system that has locks.*lock'"), run.claim():
        raise AssertionError("claimed")
    assert not (run.folder / "owner.json").exists()


def test_a_kill_at_the_end_leaves_nothing_that_only_resuming_needed(store, monkeypatch):
    run = store.run(CELL)
    run.folder.mkdir(parents=True)
    (run.folder / "checkpoint.previous.pt").touch()

    def killed(source, target):
        os.link(source, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            run.finish({"linear": 50.0, "cost": {}})
    assert run.result == {"linear": 50.0, "cost": {}} and not (run.folder / "checkpoint.previous.pt").exists()


def test_claim_is_exclusive_between_processes(store, start):
    run, holder = store.run(EMPTY_CELL), start("hold")
    held_by(holder)
    with run.claim() as claimed:
        assert not claimed
    assert run.owner.startswith(f"process {holder.pid} on ")  # the failed claim left the owner alone
    with store.run(CELL).claim() as claimed:
        assert claimed  # another cell is free
    holder.communicate()  # ends its input, so it lets go
    with run.claim() as claimed:
        assert claimed
        assert run.owner.startswith(f"process {os.getpid()} on ")


def test_claims_of_contending_processes_never_overlap(start):
    processes = [start("contend") for _ in range(2)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    held = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert all(int(count) > 0 for count in held), held


def test_lock_is_free_after_its_holder_is_killed(store, start):
    run, holder = store.run(EMPTY_CELL), start("hold")
    held_by(holder)
    os.kill(holder.pid, signal.SIGKILL)
    assert holder.wait() == -signal.SIGKILL
    with run.claim() as claimed:
        assert claimed


def test_owner_in_words_when_unknown(store):
    run = store.run(CELL)
    assert run.owner == "another process"
    run.folder.mkdir(parents=True)
    (run.folder / "owner.json").write_text('{"process": 12')
    assert run.owner == "another process"


def waiting_for(run, say) -> threading.Thread:
    thread = threading.Thread(target=run.wait, args=(say,), kwargs={"seconds": 0.01}, daemon=True)
    thread.start()
    return thread


def test_wait_says_for_whom_and_ends_with_the_result(store, start):
    run, holder, said = store.run(EMPTY_CELL), start("hold"), []
    held_by(holder)
    thread = waiting_for(run, said.append)
    thread.join(0.2)
    assert thread.is_alive()
    assert len(said) == 1
    assert said[0].startswith(f"waiting for process {holder.pid} on ")
    assert said[0].endswith(f"which trains CE, seed 0, in {run.folder}")
    run.finish({"linear": 50.0, "cost": {}})
    thread.join(30)
    assert not thread.is_alive() and len(said) == 1


def test_wait_ends_when_the_holder_is_killed(store, start):
    run, holder = store.run(EMPTY_CELL), start("hold")
    held_by(holder)
    thread = waiting_for(run, lambda text: None)
    thread.join(0.1)
    assert thread.is_alive()
    holder.kill()
    thread.join(30)
    assert not thread.is_alive() and run.result is None
    with run.claim() as claimed:
        assert claimed


DAMAGED = ["", "{", "[]", '{"linear": 50.0, "co', "\x00" * 20, "not json"]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_result_is_named(store, content):
    run = store.run(CELL)
    with run.claim():
        run.finish({"linear": 50.0, "cost": {}})
    path = run.folder / "result.json"
    path.write_text(content)
    for read in (lambda: run.result, lambda: store.twin(CELL), store.finished):
        with pytest.raises(ValueError) as raised:
            read()
        assert str(raised.value).startswith(f"{path} cannot be read (")
        assert str(raised.value).endswith("; `repro doctor --repair` sets it aside; then run the table again")


def test_binary_garbage_in_a_result_is_named(store):
    run = store.run(CELL)
    run.finish({"linear": 50.0, "cost": {}})
    (run.folder / "result.json").write_bytes(b"\xff\xfe\x80" * 9)
    with pytest.raises(ValueError, match=r"result\.json cannot be read"):
        _ = run.result


@pytest.mark.parametrize(("content", "message"), [
    ('{"linear": NaN}', "NaN is not a finite number"), ('{"linear": -Infinity}', "-Infinity is not a finite number"),
    ('{"linear": 1e999}', "1e999 is not a finite number"), (f'{{"linear": {"9" * 30}}}', "is too large"),
    (f'{{"linear": {"9" * 5000}}}', "integer string conversion"), ('{"linear": null}', "linear is None"),
    ('{"linear": true}', "linear is True"), ('{"linear": [50.0]}', r"linear is \[50.0\]"), ('{"cost": 3}', "cost is 3"),
    ("[" * 100_000, "it is nested too deeply"), ("3", "it holds a int"),
])
def test_a_result_with_other_than_finite_numbers_and_texts_is_named(store, content, message):
    run = store.run(CELL)
    with run.claim():
        run.finish({"linear": 50.0, "select": "last", "cost": {"seconds": 1.0}})
    assert store.finished()[0]["result"] == {"linear": 50.0, "select": "last", "cost": {"seconds": 1.0}}
    (run.folder / "result.json").write_text(content)
    for read in (lambda: run.result, lambda: store.twin(CELL), store.finished):
        with pytest.raises(ValueError, match=rf"result\.json cannot be read \(.*{message}.*doctor --repair"):
            read()


@pytest.mark.parametrize(("change", "message"), [
    ({"recipe": None}, "recipe is None"), ({"seed": "0"}, "seed is '0'"), ({"seed": True}, "seed is True"),
    ({"digest": 3}, "digest is 3"), ({"key": None}, "key is None"), ({"version": 1.0}, "version is 1.0"),
])
def test_a_description_with_fields_of_another_type_is_named(store, change, message):
    run = store.run(CELL)
    with run.claim():
        run.finish({"linear": 50.0, "cost": {}})
    (run.folder / "recipe.json").write_text(json.dumps(CELL.describe() | change))
    with pytest.raises(ValueError, match=rf"recipe\.json cannot be read \({message}\)"):
        store.finished()


@pytest.mark.parametrize(("text", "share"), [
    ("", 0), ("{", 0), ("3", 0), ('{"step": 3}', 0), ('{"step": 3, "of": 0}', 0), ('{"step": "3", "of": 6}', 0),
    ('{"step": 3, "of": 6}', 0.5), ('{"step": 30, "of": 6}', 1), ('{"step": -3, "of": 6}', 0),
    ('{"step": NaN, "of": 6}', 0), ("[" * 100_000, 0),
])
def test_how_much_is_trained_is_a_share_whatever_the_log_holds(store, text, share):
    run = store.run(CELL)
    run.folder.mkdir(parents=True)
    (run.folder / "progress.jsonl").write_text(f'{{"step": 1, "of": 6}}\n{text}\n' if text else "")
    assert run.trained == share


def test_twin_is_the_same_cell_of_any_table(store):
    other = dataclasses.replace(CELL, table="encoder_collapse", entry="AE, layers=1", preset="paper")
    assert store.twin(CELL) is None
    with store.run(other).claim():
        assert store.twin(CELL) is None  # not complete yet
    store.run(other).finish({"linear": 61.0, "cost": {"seconds": 2.0}})
    assert store.twin(CELL) == {"linear": 61.0, "cost": {"seconds": 2.0}}
    for change in ({"seed": 1}, {"digest": "d2"}, {"version": 2}, {"recipe": Small(epochs=9)}):
        assert store.twin(dataclasses.replace(CELL, **change)) is None


def test_finished_lists_complete_cells_by_table_and_key(store):
    cells = [dataclasses.replace(CELL, table=table, seed=seed) for table in ("taxonomy", "depth") for seed in range(3)]
    for number, cell in enumerate(cells):
        with store.run(cell).claim():
            store.run(cell).finish({"linear": float(number), "cost": {"seconds": 1.0}})
    with store.run(dataclasses.replace(CELL, seed=9)).claim():
        pass  # begun, not complete
    (store.root / "prepared" / "ucla-1234").mkdir(parents=True)

    found = store.finished()
    assert [(row["table"], row["key"]) for row in found] == sorted((cell.table, cell.key) for cell in cells)
    by_cell = {(row["table"], row["seed"]): row for row in found}
    for number, cell in enumerate(cells):
        row = by_cell[cell.table, cell.seed]
        assert row["result"] == {"linear": float(number), "cost": {"seconds": 1.0}}
        assert row["recipe"] == {"epochs": 3, "rate": 0.5} and row["preset"] == "quick" and row["digest"] == "d1"


def test_finished_of_no_runs_at_all(store):
    assert not store.root.exists() and store.finished() == []


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("{")])
def test_finished_names_a_damaged_description(store, damage):
    run = store.run(CELL)
    with run.claim():
        run.finish({"linear": 50.0, "cost": {}})
    damage(run.folder / "recipe.json")
    with pytest.raises(ValueError) as raised:
        store.finished()
    assert str(run.folder / "recipe.json") in str(raised.value)


def test_files_have_the_permissions_of_other_new_files(tmp_path):
    (tmp_path / "usual").touch()
    write_json(tmp_path / "result.json", {})
    usual, ours = (stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "usual", tmp_path / "result.json"))
    assert oct(ours) == oct(usual)


def test_a_folder_that_can_be_written_stays_as_it_is(store):
    store.require_writable()
    assert not store.root.exists()
    store.root.mkdir()
    store.require_usable()
    assert list(store.root.iterdir()) == []


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_is_named_with_its_variable(store, monkeypatch, code):
    def refuse(**_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(OSError) as raised:
        store.require_usable()
    message = str(raised.value)
    assert message.startswith(f"{store.root}, ") and os.strerror(code) in message and "REPRO_RUNS" in message


def test_finished_cells_may_be_read_where_nothing_can_be_written(store, monkeypatch):
    store.run(CELL).finish({"linear": 50.0, "cost": {}})
    monkeypatch.setattr(tempfile, "TemporaryFile", None)
    store.require_usable()
