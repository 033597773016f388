"""The store of runs: ids of runs, results and what is wrong with them, and whether its folder can be written."""

import dataclasses
import errno
import json
import os
import tempfile

import pytest
from made_up_training import RUN, Small

from repro.run.store import Run, evaluation_of, finished_runs, read_record, read_result, trained

RESULT = {"linear": 50.0, "select": "last", "cost": {"seconds": 1.0, "finished": "2026", "commit": "c"}}


def test_data_exchanged_since_the_run_was_declared_are_refused():
    RUN.require("d1")
    with pytest.raises(ValueError, match=r"synthetic has changed since .* \(digest d2 instead of d1\)"):
        RUN.require("d2")


@pytest.mark.parametrize(("change", "same"), [
    *(({name: value}, False) for name, value in (
        ("recipe", Small(epochs=4)), ("recipe", Small(rate=0.25)), ("seed", 1), ("digest", "d2"), ("version", 2),
        ("study", "another paper's"))),
    *(({name: value}, True) for name, value in (
        ("study", "images"), ("preset", "paper"), ("evaluation", 2), ("changes", {"rate": 0.5}), ("dataset", "ucla"),
        ("recipe", Small(rate=0.5)))),
], ids=str)
def test_the_id_depends_on_what_decides_a_training_alone(change, same):
    assert (dataclasses.replace(RUN, **change).id == RUN.id) == same


def test_neighbouring_parts_of_the_id_do_not_run_into_each_other():
    runs = [dataclasses.replace(RUN, seed=seed, digest=digest, version=version)
             for seed, digest, version in ((1, "1", 1), (11, "1", 1), (1, "1", 11), (1, "11", 1), (11, "1", 11))]
    assert len({run.id for run in runs}) == len(runs)


def test_a_run_is_complete_once_its_result_exists(store):
    folder = store.folder(RUN)
    assert folder.path == store.root / "runs" / RUN.id and not folder.path.exists() and folder.result is None
    with folder.claim() as claimed:
        assert claimed and folder.result is None
        for name in ("checkpoint.pt", "checkpoint.previous.pt"):
            (folder.path / name).touch()
        folder.finish(RESULT)
    assert folder.result == RESULT | {"evaluation": 1}
    assert (folder.path / "checkpoint.pt").exists() and not (folder.path / "checkpoint.previous.pt").exists()


def test_recipe_json_gives_back_the_run(store):
    folder = store.folder(RUN)
    folder.begin()
    stored = json.loads((folder.path / "recipe.json").read_text())
    assert stored == json.loads(json.dumps(RUN.describe())) and [*stored][:2] == ["id", "study"]
    assert stored.pop("id") == RUN.id == folder.path.name
    assert Run(**stored | {"recipe": Small.from_dict(stored["recipe"])}) == RUN


def test_the_label_says_what_is_trained_and_what_differs_from_the_preset():
    changed = dataclasses.replace(RUN, changes={"epochs": 4, "rate": 0.25})
    assert (RUN.label, changed.label) == ("CE", "CE, epochs=4, rate=0.25")
    assert dataclasses.replace(changed, changes={"crop": None, "targets": ""}).label == "CE, crop=none, targets=none"
    assert f"{RUN}" == "CE, seed 0" and changed == RUN  # the id says what is equal


LATER = dataclasses.replace(RUN, evaluation=3)  # the run as it is once more is measured of it


def test_the_version_of_the_evaluation_stands_with_the_result_alone(store):
    assert LATER.id == RUN.id and LATER.describe() == RUN.describe() and "evaluation" not in RUN.describe()
    store.folder(LATER).finish(RESULT)
    assert store.folder(LATER).result == RESULT | {"evaluation": 3}
    assert store.folder(RUN).result["evaluation"] == 3  # a later one is as good


@pytest.mark.parametrize("stored", [{}, {"evaluation": 2}])
def test_an_outdated_result_counts_as_long_as_there_is_no_checkpoint_to_measure_again(store, stored):
    folder, earlier = store.folder(LATER), RESULT | stored
    folder.path.mkdir(parents=True)
    (folder.path / "result.json").write_text(json.dumps(earlier))
    assert folder.result == earlier and evaluation_of(earlier) == stored.get("evaluation", 1)
    (folder.path / "checkpoint.pt").touch()
    assert folder.result is None and folder.complete and folder.done == 1.0
    folder.finish({"linear": 51.0, "cost": {"seconds": 0.0}})
    assert folder.result == {"linear": 51.0, "cost": RESULT["cost"], "evaluation": 3}  # what the training cost stays


@pytest.fixture
def finished(store):
    """A complete run."""
    folder = store.folder(RUN)
    folder.finish(RESULT)
    return folder


@pytest.mark.parametrize(("content", "message"), [
    ("", ""), ("{", ""), ("\x00" * 20, ""), (b"\xff\xfe\x80" * 9, ""), ("[]", "it holds a list"),
    ('{"linear": NaN}', "NaN' is not a finite number"), ('{"linear": 1e999}', "1e999' is not a finite number"),
    ('{"linear": -Infinity}', "-Infinity' is not a finite number"),
    (f'{{"linear": -{"9" * 400}}}', "is not a finite number of 64 bits"),
    (f'{{"linear": {"9" * 5000}}}', "integer string conversion"), ("[" * 100_000, "it is nested too deeply"),
    *((f'{{"cost": {{}}, "linear": {value}}}', "linear is ") for value in ("null", "true", "[50.0]")),
    ('{"cost": 3}', "cost is 3"), ('{"linear": 1.0}', "it lacks cost"),
    ('{"cost": {}, "linear": "50"}', "linear is '50'"), ('{"cost": {}, "select": 3}', "select is 3"),
    ('{"cost": {}, "evaluation": 1.5}', "evaluation is 1.5"), ('{"cost": {"code": ["a"]}}', r"code is \['a'\]"),
    ('{"cost": {"seconds": "9"}}', "seconds is '9'"), ('{"cost": {}, "cost": {}}', "'cost' stands there twice"),
    *((f'{{"cost": {{}}, "{name}": 3}}', f"{name} is the name of a column") for name in ("seed", "finished", "value")),
    (f'{{"cost": {{}}, "linear": 3{" " * 2**20}}}', "has 1,048,601 bytes, at most 1,048,576 are read"),
], ids=lambda value: str(value)[:20])
def test_a_result_with_other_than_measures_is_named(store, finished, content, message, capsys):
    path = finished.path / "result.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf"^{path} cannot be read \(.*{message}.*\); delete recipe"):
        read_result(path)
    assert finished_runs(store).empty and finished_runs(store).empty
    line, = capsys.readouterr().err.splitlines()  # once
    assert line.startswith(f"{path.parent} is left out: {path} cannot be read (")


@pytest.mark.parametrize(("change", "message"), [
    ({"epochs": 3.0}, "epochs is the name of a column"), ({"cost": {"commit": "c1"}}, "it lacks finished"),
    ({"cost": {"finished": "today"}}, "it lacks commit"),
])
def test_what_a_result_says_beside_its_description_is_a_fault_of_the_result(store, finished, change, message):
    path = finished.path / "result.json"
    path.write_text(json.dumps(RESULT | change))
    with pytest.raises(ValueError, match=rf"^{path} cannot be read \({message}.*\); delete recipe"):
        read_record(finished.path)
    assert finished_runs(store).empty


@pytest.mark.parametrize("name", ["result.json", "recipe.json"])
def test_what_is_no_regular_file_is_not_opened(store, finished, name):
    (finished.path / name).unlink()
    os.mkfifo(finished.path / name)  # to open it would wait for ever
    assert finished_runs(store).empty
    with pytest.raises(ValueError, match=rf"{name} cannot be read \(is no regular file"):
        read_record(finished.path)


@pytest.mark.parametrize("measures", [{"linear": "fifty"}, {"seed": 3}, {"linear": None}, {"epochs": 3}],
                         ids=str)
def test_a_result_that_nobody_could_read_is_not_written(store, measures):
    folder = store.folder(RUN)
    with pytest.raises(ValueError, match=f"{next(iter(measures))} is "):
        folder.finish(RESULT | measures)
    assert not folder.path.exists()


@pytest.mark.parametrize(("change", "message"), [
    ({"recipe": None}, "recipe is None"), ({"seed": "0"}, "seed is '0'"), ({"seed": True}, "seed is True"),
    ({"version": 1.0}, "version is 1.0"), ({"changes": "epochs"}, "changes is 'epochs'"), ({"study": ...}, "it lacks"),
    ({"digest": ...}, "it lacks digest"), ({"seed": -1}, "seed=-1"), ({"version": 0}, "version=0 should be"),
    ({"dataset": "ucla\udcff"}, "surrogates not allowed"), ({"changes": {"\ud800": 1}}, "surrogates not allowed"),
    ({"id": "3e38"}, "id='3e38' is not its folder's, "), (None, "No such file"),
])
def test_a_description_with_other_parts_is_named(store, finished, change, message):
    path = finished.path / "recipe.json"
    described = {name: value for name, value in (RUN.describe() | (change or {})).items() if value is not ...}
    path.write_text(json.dumps(described)) if change else path.unlink()
    with pytest.raises(ValueError, match=rf"^{path} cannot be read \(.*{message}"):
        read_record(finished.path)
    assert finished_runs(store).empty  # left out, with a line


@pytest.mark.parametrize(("text", "share"), [
    ("", 0), ("{", 0), ("3", 0), ('{"step": 3}', 0), ('{"step": 3, "of": -1}', 0), ('{"step": "3", "of": 6}', 0),
    ('{"step": 3, "of": 5}', 0.5), ('{"step": 6, "of": 6}', 6 / 7), ('{"step": 30, "of": 6}', 1),
    ('{"step": -3, "of": 6}', 0),
    ('{"step": NaN, "of": 6}', 0), ("[" * 100_000, 0), ('{"step": 1, "of": 9}\n' * 900 + '{"step": 3, "of": 5}', 0.5),
], ids=lambda value: str(value)[:20])
def test_how_much_is_trained_is_a_share_whatever_the_log_holds(store, text, share):
    folder = store.folder(RUN)
    folder.path.mkdir(parents=True)
    (folder.path / "progress.jsonl").write_text(f'{{"step": 1, "of": 6}}\n{text}\n' if text else "")
    assert trained(folder.path) == share


def test_finished_runs_are_those_that_are_complete_by_id(store):
    assert not store.root.exists() and finished_runs(store).empty
    runs = [dataclasses.replace(RUN, seed=seed) for seed in range(6)]
    for run in runs:
        store.folder(run).finish(RESULT | {"linear": float(run.seed)})
    store.folder(dataclasses.replace(RUN, seed=9)).begin()  # not complete
    (store.root / "prepared" / "ucla-1234").mkdir(parents=True)
    assert finished_runs(store)["id"].tolist() == sorted(run.id for run in runs)
    for run in runs:
        metrics = {"linear": float(run.seed), "select": "last", "evaluation": 1}
        assert read_record(store.path(run.id)) == run.describe() | {"metrics": metrics, "cost": RESULT["cost"]}


def test_whether_the_folder_can_be_written_is_found_out_without_leaving_anything(store):
    store.require_writable()
    assert not store.root.exists()
    store.root.mkdir()
    store.require_writable()
    assert list(store.root.iterdir()) == []


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_is_named(store, monkeypatch, code):
    def refuse(**_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(OSError) as raised:
        store.require_writable()
    message = str(raised.value)
    assert message.startswith(f"{store.root}, ") and os.strerror(code) in message and "REPRO_RUNS" in message
    store.folder(RUN).finish(RESULT)
    store.require_usable()

