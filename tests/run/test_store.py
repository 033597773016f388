"""The store of runs: keys of cells, results and what is wrong with them, and whether its folder can be written."""

import dataclasses
import errno
import json
import os
import tempfile

import pytest
from one_cell import CELL, Small

from repro.run.store import Cell, evaluation_of


def test_data_exchanged_since_the_cell_was_declared_are_refused():
    CELL.require("d1")
    with pytest.raises(ValueError, match=r"synthetic has changed since .* \(digest d2 instead of d1\)"):
        CELL.require("d2")


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


def test_a_run_is_complete_once_its_result_exists(store):
    run = store.run(CELL)
    assert run.folder == store.root / "taxonomy" / CELL.key and not run.folder.exists()
    assert run.result is None
    with run.claim() as claimed:
        assert claimed and run.result is None
        for name in ("checkpoint.pt", "checkpoint.previous.pt"):
            (run.folder / name).touch()
        run.finish({"linear": 50.5, "cost": {"seconds": 1.0}})
    assert run.result == {"linear": 50.5, "cost": {"seconds": 1.0}, "evaluation": 1}
    assert (run.folder / "checkpoint.pt").exists() and not (run.folder / "checkpoint.previous.pt").exists()


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
    assert run.result == {"linear": 50.0, "cost": {}, "evaluation": 1}
    assert not (run.folder / "checkpoint.previous.pt").exists()


def test_recipe_json_gives_back_the_cell(store):
    run = store.run(CELL)
    with run.claim():
        stored = json.loads((run.folder / "recipe.json").read_text())
    assert stored.pop("key") == CELL.key == run.folder.name
    assert Cell(**stored | {"recipe": Small.from_dict(stored["recipe"])}) == CELL


@pytest.fixture
def later():
    """The cell as it is once more is measured of it."""
    return dataclasses.replace(CELL, evaluation=3)


def test_the_version_of_the_evaluation_stands_with_the_result_alone(store, later):
    assert later.key == CELL.key and later.describe() == CELL.describe() and "evaluation" not in CELL.describe()
    store.run(later).finish({"linear": 50.0, "cost": {}})
    assert store.run(later).result == {"linear": 50.0, "cost": {}, "evaluation": 3}
    assert store.run(CELL).result["evaluation"] == 3  # a later one is as good


@pytest.mark.parametrize("stored", [{}, {"evaluation": 1}, {"evaluation": 2}])
def test_an_outdated_result_counts_as_long_as_there_is_no_checkpoint_to_measure_again(store, later, stored):
    run, earlier = store.run(later), {"linear": 50.0, "cost": {"seconds": 9.0}} | stored
    run.folder.mkdir(parents=True)
    (run.folder / "result.json").write_text(json.dumps(earlier))
    assert run.result == earlier and evaluation_of(earlier) == stored.get("evaluation", 1)
    (run.folder / "checkpoint.pt").touch()
    assert run.result is None and run.read() == earlier and run.trained == 1.0
    run.finish({"linear": 51.0, "cost": {"seconds": 0.0}})
    assert run.result == {"linear": 51.0, "cost": {"seconds": 9.0}, "evaluation": 3}  # what the training cost stays


def test_the_twin_of_an_outdated_cell_is_one_that_is_not(store, later):
    twin = dataclasses.replace(later, table="encoder_collapse")
    old, new = {"linear": 50.0, "cost": {}, "evaluation": 2}, {"linear": 51.0, "cost": {}, "evaluation": 3}
    for cell, result in ((twin, old), (later, old)):
        store.run(cell).folder.mkdir(parents=True)
        (store.run(cell).folder / "result.json").write_text(json.dumps(result))
    assert store.twin(later) is None  # better measured again than taken from a table that is as old
    assert store.twin(dataclasses.replace(later, table="third")) == old
    (store.run(twin).folder / "result.json").write_text(json.dumps(new))
    assert store.twin(later) == new == store.twin(dataclasses.replace(later, table="third"))


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
    written = {"linear": 50.0, "select": "last", "cost": {"seconds": 1.0}, "evaluation": 1}
    assert store.finished()[0]["result"] == written
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
    assert store.twin(CELL) == {"linear": 61.0, "cost": {"seconds": 2.0}, "evaluation": 1}
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
        assert row["result"] == {"linear": float(number), "cost": {"seconds": 1.0}, "evaluation": 1}
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


def test_a_twin_keeps_the_version_of_its_evaluation(store):
    asked = dataclasses.replace(CELL, evaluation=2)
    for table, result in (("other", {}), ("another", {"evaluation": 3})):
        run = store.run(dataclasses.replace(asked, table=table))
        with run.claim():
            run.finish({"linear": 50.0, "cost": {}})
            (run.folder / "result.json").write_text(json.dumps({"linear": 50.0, "cost": {}} | result))
        with store.run(asked).claim():
            (store.run(asked).folder / "result.json").unlink(missing_ok=True)
            store.run(asked).finish(store.twin(asked))
        assert evaluation_of(store.run(asked).read()) == result.get("evaluation", 1)
