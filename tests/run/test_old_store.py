"""Folders of runs from earlier versions: what they hold is left alone or refused by name, never taken for today's.

`old_store` was written by the first version that had tables (commit bfeb9e9); time and device are made up, checkpoints
left out.
"""

import shutil
from pathlib import Path

import pytest
from smoke_runs import smoke_runs

from repro.doctor import examined_runs
from repro.run.export import everything
from repro.run.store import Store
from repro.skeleton.pretrain import VERSION
from repro.table import find, finished

OLD = Path(__file__).with_name("old_store")
RANDOM, TRAINED = "4b860631c7126871", "a2e1477e17493715"


@pytest.fixture
def store(tmp_path, monkeypatch):
    shutil.copytree(OLD, tmp_path / "runs")
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    return Store(tmp_path / "runs")


def contents(root):
    return {path.relative_to(root): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_cells_of_an_earlier_version_are_read_with_their_version(store):
    found = {cell["key"]: cell for cell in store.finished()}
    assert {key: (cell["recipe"]["objectives"], cell["version"]) for key, cell in found.items()} == {
        RANDOM: ("random", 1), TRAINED: ("CE+AD", 1)
    }
    assert found[TRAINED]["result"]["linear"] == 43.5 and VERSION > 1
    assert [*examined_runs(store.root)] == ["cells: 2 finished, 0 unfinished"]


def test_a_table_trains_anew_and_leaves_them_alone(store):
    before = contents(OLD)
    (store.root / "taxonomy" / TRAINED / "result.json").unlink()  # half-done
    del before[Path("taxonomy", TRAINED, "result.json")]
    cell, = smoke_runs(store.root, "random")
    assert cell.key not in (RANDOM, TRAINED) and cell.version == VERSION
    left = contents(store.root)
    assert {path: left[path] for path in before} == before
    assert {RANDOM, cell.key} <= set(everything()["key"])
    rows = finished()
    shown = find("taxonomy").laid_out(find("taxonomy").select(rows[rows["preset"] == "smoke"]))
    assert shown["objectives"].tolist().count("random") == 2  # the other departs from what is smoke today
    ours = shown[(shown["objectives"] == "random") & (shown["departures"].map(len) == 0)]["ours"]
    assert ours.tolist() == [store.run(cell).result["linear"]]
