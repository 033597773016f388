"""CM-ACC's tables trained from end to end, and what is refused before anything is computed."""

import pandas as pd
import pytest
from audiovisual_layouts import EMBEDDED, LAYOUTS, RECORDED
from made_up_pairs import grids, made_up
from stored_cells import refuse, stored

from repro.audiovisual import cell, tables
from repro.audiovisual.data import CHARACTERS, RECORDINGS
from repro.audiovisual.pretrain import VERSION
from repro.audiovisual.recipe import METHODS, PRESETS, smoke
from repro.run.device import threads

SHRUNK = {"batch": 8, "dictionary": 16, "pool": 24, "width": 32, "embedding": 8, "size": 8, "window": 4,
          "finetune_window": 4, "finetune_batch": 5}
CHOICES = {
    "cross_modal": {"approaches": "scratch,supervised,smoco_plain,cmacc"},
    "ohem_vs_active": {"samplers": "ohem,released", "batches": "4,8"},
    "dictionary_size": {"methods": "smoco,cmacc", "dictionaries": "8,16"},
    "mutual_information": {"methods": "scratch,xmoco,cmacc", "characters": "2"},
    "transfer": {"methods": "xmoco"},
    "category_diversity": {"samplers": "random,feature", "batches": 8, "iterations": 2},
}
pytestmark = pytest.mark.usefixtures("one_thread", "runs")


def small_data(recipe):
    return grids() if recipe.dataset in CHARACTERS else made_up()


def use_small_data(patch):
    """Made-up data and small smoke recipes, until `patch`, a `pytest.MonkeyPatch`, is undone."""
    patch.setattr(cell, "data_of", small_data)
    patch.setattr(cell, "target_of", lambda recipe, name, split: made_up())
    shrunk = {name: value for name, value in SHRUNK.items() if name not in ("size", "window", "finetune_window")}

    def small(dataset, method, **changes):
        own = shrunk if dataset in CHARACTERS else SHRUNK
        if "batch" in changes:  # dictionary and pool follow it
            own = own | {"dictionary": changes["batch"], "pool": 3 * changes["batch"]}
        return smoke(dataset, method, **(own | changes))

    patch.setitem(PRESETS, "smoke", small)


@pytest.fixture
def small(monkeypatch):
    use_small_data(monkeypatch)


# ---------------------------------------------------------------------------------------------- end to end


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Every table with small smoke recipes, trained once for this file: (runs folder, tables by name)."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch, threads(1):
        patch.setenv("REPRO_RUNS", str(folder))
        use_small_data(patch)
        made = {name: tables.TABLES[name].run(preset="smoke", engine="inline", device="cpu", **choices)
                for name, choices in CHOICES.items()}
        return folder, made


@pytest.mark.parametrize("table", LAYOUTS)
def test_a_small_table_from_end_to_end(trained, small, monkeypatch, table):
    folder, frames = trained
    frame, found = frames[table], stored(folder, table)
    assert list(frame.columns) == LAYOUTS[table]
    assert set(frame["preset"]) == {"smoke"} and set(frame["dataset"]) == {EMBEDDED[table]}
    assert set(frame["n_seeds"]) == {1} and frame["ours"].notna().all()
    assert frame[["std", "published", "difference"]].isna().all(axis=None)
    cells = tables.TABLES[table].cells(EMBEDDED[table], preset="smoke", **CHOICES[table])
    assert set(found) == {(each.entry, each.seed) for each in cells} and len(found) == len(cells)
    columns = {"characters": "linear", "video": "categories_video", "audio": "categories_audio"}
    rows = iter(frame.itertuples())
    per_entry = len(frame) // len(cells)
    for each in cells:
        described, result = found[each.entry, each.seed]
        assert described["recipe"] == each.recipe.to_dict() and described["version"] == VERSION
        for _ in range(per_entry):
            row = next(rows)
            assert row.ours == result[columns.get(row.target, row.target)]
        assert result["cost"]["steps"] == (0 if each.recipe.method == "scratch" else 2)


def test_a_second_call_trains_nothing(trained, small, monkeypatch):
    folder, frames = trained
    monkeypatch.setenv("REPRO_RUNS", str(folder))
    monkeypatch.setattr(tables, "train", refuse)
    for name, choices in CHOICES.items():
        again = tables.TABLES[name].run(preset="smoke", device="cpu", **choices)
        pd.testing.assert_frame_equal(again, frames[name])
    with pytest.raises(AssertionError, match="a cell was trained"):
        tables.transfer(preset="smoke", methods="xmoco", seeds="2")


def test_the_same_cells_elsewhere_give_the_same_results(trained, small, runs):
    found = tables.dictionary_size(preset="smoke", methods="cmacc", dictionaries="16", device="cpu")
    frame = trained[1]["dictionary_size"]
    expected = frame[(frame["method"] == "cmacc") & (frame["dictionary"] == 16)]
    assert found["ours"].tolist() == expected["ours"].tolist()


# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("table", "choices", "message"),
    [
        *((table, {"dataset": "kinetics"}, r"dataset='kinetics' is not one of: .*") for table in LAYOUTS),
        ("mutual_information", {"dataset": "synthetic"}, "dataset='synthetic' is not one of: multidigits, multiomni"),
        *((table, {"preset": "fast"}, "preset='fast' is not one of: auto, paper, quick, smoke") for table in LAYOUTS),
        *((table, {"seeds": "0,x"}, "seeds='0,x' should be a comma list of whole numbers") for table in LAYOUTS),
        *((table, {"variant": "unit_lenght"}, "variant='unit_lenght' is not .*did you mean 'unit_length'")
          for table in LAYOUTS),
        *((table, {"precision": "half"}, "precision='half' is not one of: .*float32, bfloat16") for table in LAYOUTS),
        ("cross_modal", {"approaches": "cmac"}, r"approaches='cmac' is not one of: scratch, .*; did you mean 'cmacc'"),
        ("ohem_vs_active", {"samplers": "active"}, "samplers='active' is not one of: gradient"),
        ("cross_modal", {"targets": "ucf"}, "targets='ucf' is not one of: ucf101"),
        ("ohem_vs_active", {"redundancy": "much"}, "redundancy='much' should be a number"),
        ("ohem_vs_active", {"redundancy": "0.1_5"}, "redundancy='0.1_5' should be a number"),
        ("category_diversity", {"redundancy": 1}, "redundancy=1.0 should be between 0 and 1, and less than 1"),
        ("ohem_vs_active", {"dataset": "ucf101", "redundancy": 0}, "redundancy=0 changes nothing of cmacc"),
        ("transfer", {"clips": "240K"}, "clips='240K' should be a whole number"),
        ("transfer", {"clips": 9, "methods": "scratch"}, "clips=9 changes nothing of scratch; supervised, smoco"),
        ("ohem_vs_active", {"batches": "0"}, "batches='0' should be a comma list of whole numbers from 1"),
        ("dictionary_size", {"methods": "scratch"}, "methods='scratch' is not one of: smoco, xmoco, cmacc"),
        ("dictionary_size", {"dictionaries": "8,ten"}, "dictionaries='8,ten' should be a comma list"),
        ("dictionary_size", {"dictionaries": "9"}, "dictionary=9 should be a multiple of batch=8, .* take 8"),
        ("mutual_information", {"methods": "fast"}, "methods='fast' is not one of: scratch, supervised, smoco"),
        ("cross_modal", {"dataset": "multidigits", "distinct": "x"}, "distinct='x' should be a whole number"),
        ("cross_modal", {"dataset": "multidigits", "view": "other"}, "view='other' is not one of: affine, drawing"),
        ("mutual_information", {"characters": "10"}, "characters=10 should be between 1 and 9"),
        ("transfer", {"methods": "moco"}, r"methods='moco' is not one of: .*; did you mean '.moco'"),
        ("transfer", {"targets": "ucf"}, r"targets='ucf' is not one of: ucf101"),
        ("transfer", {"trunks": "r3d"}, r"trunks='r3d' is not one of: r3d18, r2plus1d18; did you mean 'r3d18'"),
        ("transfer", {"split": "one"}, "split='one' should be a whole number of at least 0"),
        ("transfer", {"split": "7"}, "split=7 should be between 0 and 5"),
        ("transfer", {"split": 2}, "split=2 should be at most 1, of synthetic_video, or 0 for their mean"),
        ("transfer", {"split": 4, "targets": "esc50,hmdb51"}, "split=4 should be at most 3, of hmdb51"),
        ("category_diversity", {"iterations": "-1"}, "iterations='-1' should be a whole number"),
        *(("category_diversity", {"dataset": name}, rf"dataset='{name}' is not one of: synthetic, .*, ucf101, hmdb51$")
          for name in ("audioset", "esc50")),
    ],
    ids=str,
)
def test_what_does_not_exist_is_refused_before_anything_is_computed(small, runs, monkeypatch, table, choices, message):
    monkeypatch.setattr(tables, "train", refuse)
    with pytest.raises(ValueError, match=message):
        tables.TABLES[table].run(**{"preset": "smoke"} | choices)
    assert not runs.exists()


@pytest.mark.parametrize("table", LAYOUTS)
def test_a_misspelt_parameter_is_refused(small, runs, table):
    with pytest.raises(TypeError, match="sedes"):
        tables.TABLES[table].run(preset="smoke", sedes="0")
    assert not runs.exists()


@pytest.mark.parametrize("table", RECORDED)
def test_missing_data_of_targets_are_missed_beforehand(any_data, runs, monkeypatch, table):
    def missing(recipe, name, split):
        raise FileNotFoundError(f"{name} is not there")

    monkeypatch.setattr(cell, "target_of", missing)
    monkeypatch.setattr(tables, "train", refuse)
    if table == "category_diversity":  # which has none
        assert len(tables.category_diversity_cells("kinetics700")) == 12
        return
    with pytest.raises(FileNotFoundError, match="ucf101 is not there; or choose other targets than ucf101"):
        tables.TABLES[table].run("kinetics700")
    assert not runs.exists()


@pytest.mark.parametrize("targets", ["ucf101", "synthetic_audio,esc10"])
def test_targets_are_missed_before_embedded_clips_are_made(tmp_path, runs, monkeypatch, targets):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("repro.audiovisual.data._synthetic", refuse)
    with pytest.raises(FileNotFoundError, match=f"or choose other targets than {targets.split(',')[-1]}"):
        tables.cross_modal(preset="smoke", targets=targets)
    assert not runs.exists()


def test_sets_too_small_are_refused_beforehand(small, runs, monkeypatch):
    monkeypatch.setattr(tables, "train", refuse)
    with pytest.raises(ValueError, match="dictionary=1024 may hold all but 0 candidates of pool=24"):
        tables.dictionary_size(preset="smoke", dictionaries="8,1024")
    with pytest.raises(ValueError, match="batch=64 exceeds the 30 training pairs of synthetic"):
        tables.ohem_vs_active(preset="smoke", batches="64")
    assert not runs.exists()


@pytest.mark.parametrize("missing", ["video", "audio"])
def test_sets_with_one_modality_are_refused_beforehand_where_two_are_needed(small, runs, monkeypatch, missing):
    monkeypatch.setattr(cell, "data_of", lambda _: made_up(without=[missing]))
    monkeypatch.setattr(tables, "train", refuse)
    with pytest.raises(ValueError, match="method='xmoco' needs video and sound"):
        tables.cross_modal(preset="smoke", approaches="scratch,smoco,xmoco")
    assert not runs.exists()
    assert len(tables.cross_modal_cells(preset="smoke", approaches="scratch,supervised,smoco")) == 3


def test_the_tables_the_command_line_knows_name_an_example():
    assert list(tables.TABLES) == list(LAYOUTS)
    for name, table in tables.TABLES.items():
        dataset, method = table.example
        assert table.presets["paper"](dataset, method).described(), name
        assert list(table.presets) == ["paper", "quick", "smoke"]
        assert method in METHODS and dataset in (*RECORDINGS, *CHARACTERS)
        assert set(table.varied) < set(table.fields)


def test_made_up_data_have_the_names_of_embedded_ones():
    """So that the tests above go the way of embedded data."""
    for table, dataset in EMBEDDED.items():
        assert small_data(smoke(dataset, "smoco")).name == dataset, table
