"""CM-ACC's tables of clips and of grids, trained from end to end."""

import pytest
from audiovisual_layouts import EMBEDDED, LAYOUTS, MEASURED
from made_up_pairs import grids, made_up

from repro import run_table
from repro.audiovisual import CHARACTERS, study
from repro.audiovisual.recipe import PRESETS, smoke
from repro.papers.cmacc.tables import TABLES
from repro.run.device import threads
from repro.run.store import Store

SHRUNK = {"batch": 8, "dictionary": 16, "pool": 24, "width": 32, "embedding": 8}
CLIPS = {"size": 8, "window": 4, "finetune_window": 4, "finetune_batch": 5}
CHOICES = {
    "cross_modal": {"method": "scratch,supervised,cmacc", "sampler": "gradient"},
    "mutual_information": {"method": "scratch,xmoco,cmacc", "characters": "2"},
}
SMOKE = {"preset": "smoke", "device": "cpu"}
pytestmark = pytest.mark.usefixtures("one_thread", "runs")


def use_small_data(patch):
    """Made-up data and small smoke recipes, until `patch`, a `pytest.MonkeyPatch`, is undone."""

    def small(dataset, method, **changes):
        own = SHRUNK if dataset in CHARACTERS else SHRUNK | CLIPS
        if changes.get("batch", 8) != 8:  # dictionary and pool follow it
            own = own | {"dictionary": changes["batch"], "pool": 3 * changes["batch"]}
        return smoke(dataset, method, **(own | changes))

    patch.setattr(study, "data_of", lambda recipe: grids() if recipe.dataset in CHARACTERS else made_up())
    patch.setattr(study, "target_of", lambda recipe, name, split: made_up())
    patch.setitem(PRESETS, "smoke", small)


@pytest.fixture
def small(monkeypatch):
    use_small_data(monkeypatch)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Every table with small smoke recipes, trained once for this file: (runs folder, tables by name)."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch, threads(1):
        patch.setenv("REPRO_RUNS", str(folder))
        use_small_data(patch)
        return folder, {name: run_table(name, engine="inline", **SMOKE, **CHOICES[name]) for name in CHOICES}


@pytest.mark.parametrize("table", CHOICES)
def test_a_small_table_from_end_to_end(trained, small, table):
    folder, frames = trained
    frame, store = frames[table], Store(folder)
    asked = ["method"] if table == "cross_modal" else []  # of several that are asked for there is a column
    assert [name for name in frame if name not in asked] == LAYOUTS[table]
    assert set(frame["preset"]) == {"smoke"} and set(frame["dataset"]) == {EMBEDDED[table]}
    assert set(frame["n_seeds"]) == {1} and frame["ours"].notna().all()
    cells, targets = TABLES[table].cells(**SMOKE, **CHOICES[table]), list(dict.fromkeys(frame["target"]))
    assert len(frame) == len(cells) * len(targets)
    stored = [store.run(cell).read() for cell in cells]
    assert sorted(frame["ours"]) == sorted(result[MEASURED.get(name, name)] for result in stored for name in targets)
    for cell, result in zip(cells, stored, strict=True):
        assert result["cost"]["steps"] == (0 if cell.recipe.method == "scratch" else 2)
