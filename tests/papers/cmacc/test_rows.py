"""Rows of CM-ACC's tables: means over seeds, which printed numbers stand beside them, what is said of departures."""

import itertools
import math

import numpy as np
import pytest
from audiovisual_layouts import EMBEDDED, LAYOUTS, RECORDED, laid_out, results
from pandas import DataFrame

from repro.audiovisual import table_cells, table_layouts, tables
from repro.audiovisual.recipe import paper
from repro.report.printed import as_printed

NOTHING = (math.nan, "")
COLUMNS = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}
pytestmark = pytest.mark.usefixtures("one_thread", "runs")


@pytest.mark.parametrize("table", LAYOUTS)
def test_columns_and_means_over_seeds(any_data, table):
    dataset = "multiomniglot" if table == "mutual_information" else "kinetics700"
    cells = tables.TABLES[table].cells(dataset, preset="quick", seeds="0,1,5")
    frame, found = laid_out(table, cells), results(cells)
    assert list(frame.columns) == LAYOUTS[table]
    assert set(frame["n_seeds"]) == {3} and set(frame["preset"]) == {"quick"} and set(frame["dataset"]) == {dataset}
    entries = list(dict.fromkeys(each.entry for each in cells))
    places = list(dict.fromkeys(frame["target"]))
    assert len(frame) == len(entries) * len(places)
    assert frame["target"].tolist() == places * len(entries)
    columns = {"characters": "linear", "video": "categories_video", "audio": "categories_audio"}
    for number, (entry, target) in enumerate(itertools.product(entries, places)):
        values = found.loc[found["entry"] == entry, columns.get(target, target)]
        assert len(values) == 3
        assert frame["ours"][number] == pytest.approx(values.mean())
        assert frame["std"][number] == pytest.approx(values.std(ddof=1))
        assert frame["trained_on"][number] == 102
    for name in ("linear_held_out", "expected"):
        if name in frame:
            assert frame[name].tolist() == pytest.approx(
                [found.loc[found["entry"] == entry, name].mean() for entry in entries for _ in places]
            )


def test_rows_are_in_the_order_of_the_cells(any_data):
    frame = laid_out("cross_modal", tables.cross_modal_cells("kinetics_sound", seeds="0,1"))
    printed = as_printed("cmacc_table1")["approach"].tolist()
    approaches = list(dict.fromkeys(frame["approach"]))
    assert [name for name in approaches if name in printed] == printed
    assert approaches == [*printed[:6], "CM-ACC, feature embedding", "CM-ACC"]
    assert frame["target"].tolist() == ["ucf101", "hmdb51", "esc50"] * 8
    frame = laid_out("ohem_vs_active", tables.ohem_vs_active_cells("kinetics700", batches="64,32"))
    assert list(dict.fromkeys(zip(frame["sampler"], frame["batch"], strict=True))) == list(
        itertools.product(("random", "ohem", "gradient"), (64, 32))
    )


def test_names_of_the_printed_columns():
    for table in ("cmacc_table1", "cmacc_table2"):
        assert set(table_layouts.NAMES.values()) < set(as_printed(table).columns)
    assert np.isnan(table_layouts._cell("cmacc_table1", "approach", "SMoCo (w/o fcl)", "UCF101"))
    assert np.isnan(table_layouts._cell("cmacc_table1", "approach", "SMoCo", None))


def number(text):
    return float(text) if text else math.nan


def test_tables_1_and_2_on_kinetics_sound(any_data):
    approaches = ",".join(table_cells.APPROACHES)
    frame = laid_out("cross_modal", tables.cross_modal_cells("kinetics_sound", approaches=approaches))
    first = as_printed("cmacc_table1").set_index("approach")
    second = as_printed("cmacc_table2").set_index("embedding_space")
    for row in frame.itertuples():
        if row.approach == "CM-ACC, feature embedding":
            expected = number(second.loc["Feature Embedding", COLUMNS[row.target]])
        elif row.approach in ("SMoCo (w/o fcl)", "CM-ACC, released selection"):
            expected = math.nan
        else:
            expected = number(first.loc[row.approach, COLUMNS[row.target]])
        assert row.published == pytest.approx(expected, nan_ok=True)
        comparable = row.approach == "Scratch"  # the others are on some classes fewer, which is a departure
        assert row.difference == pytest.approx(row.ours - expected if comparable else math.nan, nan_ok=True)
    assert frame["published"].notna().sum() == 24
    typed = frame.set_index(["approach", "target"])["published"]
    assert typed["XMoCo", "esc50"] == 73.0 and typed["CM-ACC, feature embedding", "ucf101"] == 74.5
    assert typed["CM-ACC (w/o fcl)", "hmdb51"] == 39.1 and typed["Supervised", "ucf101"] == 86.9


def test_table_3_on_kinetics_700(any_data):
    cells = tables.ohem_vs_active_cells("kinetics700", samplers="random,ohem,gradient,feature", batches="32,64,96,128")
    frame = laid_out("ohem_vs_active", cells)
    printed = as_printed("cmacc_table3").set_index("sampler")
    names = {"random": "Random", "ohem": "OHEM", "gradient": "Active"}
    for row in frame.itertuples():
        column = f"{COLUMNS[row.target]}_M{row.batch}"
        known = row.sampler in names and column in printed.columns
        expected = number(printed.loc[names[row.sampler], column]) if known else math.nan
        assert row.published == pytest.approx(expected, nan_ok=True)
    assert frame["published"].notna().sum() == 18
    typed = frame.set_index(["sampler", "batch", "target"])["published"]
    assert typed["gradient", 128, "ucf101"] == 79.2 and typed["ohem", 32, "hmdb51"] == 26.8


@pytest.mark.parametrize(("dataset", "trunk", "method", "expected"), [
    ("kinetics_sound", "r3d18", "cmacc", [(77.2, "Table 4"), (40.6, "Table 4"), (77.3, "Table 6 (Table 1: 79.2)")]),
    ("kinetics700", "r3d18", "cmacc", [(90.2, "Table 4"), (61.8, "Table 4"), (80.2, "Table 5 (Table 6: 79.2)")]),
    ("audioset", "r3d18", "cmacc",  # of the larger set; Table 6 has another encoder's number on HMDB51
     [(94.1, "Table 4"), (66.8, "Table 4 (Table 6: 67.2)"), (90.8, "Table 5")]),
    ("audioset", "r2plus1d18", "cmacc", [(93.5, "Table 4"), (67.2, "Table 4"), (90.8, "Table 5")]),
    ("kinetics700", "r2plus1d18", "cmacc",  # the encoder of sound is the same
     [NOTHING, NOTHING, (80.2, "Table 5 (Table 6: 79.2)")]),
    ("kinetics_sound", "r3d18", "scratch",
     [(46.5, "Table 4 (Table 1: 63.3)"), (17.1, "Table 4 (Table 1: 29.7)"), NOTHING]),
    ("audioset", "r2plus1d18", "scratch", [NOTHING] * 3),
    ("kinetics_sound", "r3d18", "supervised", [(86.9, "Table 6"), (53.1, "Table 6"), (78.3, "Table 6")]),
    ("kinetics700", "r3d18", "supervised", [NOTHING] * 3),
    ("kinetics_sound", "r3d18", "xmoco", [NOTHING] * 3),  # only in Table 1, of the first split
])
def test_tables_4_to_6(any_data, dataset, trunk, method, expected):
    frame = laid_out("transfer", tables.transfer_cells(dataset, methods="cmacc,xmoco,scratch,supervised", trunks=trunk))
    found = frame[frame["method"] == method]
    assert found["target"].tolist() == ["ucf101", "hmdb51", "esc50"]
    values, places = zip(*expected, strict=True)
    assert found["published"].tolist() == pytest.approx(list(values), nan_ok=True)
    assert found["printed_in"].tolist() == list(places)


@pytest.mark.parametrize(("dataset", "clips", "expected"), [
    ("audioset", 240_000, (90.7, 62.3, 80.9)),
    ("audioset", 0, (94.1, 66.8, 90.8)),
    ("audioset", 1000, (math.nan,) * 3),
    ("kinetics700", 240_000, (90.2, 61.8, 80.2)),
    ("kinetics700", 0, (math.nan,) * 3),  # which the paper never used whole
    ("kinetics_sound", 0, (77.2, 40.6, 77.3)),
])
def test_printed_numbers_belong_to_a_number_of_clips(any_data, dataset, clips, expected):
    cells = tables.transfer_cells(dataset, clips=clips)
    assert [each.recipe.clips for each in cells] == [clips]
    frame = laid_out("transfer", cells)
    assert frame["published"].tolist() == pytest.approx(list(expected), nan_ok=True)
    usual = paper(dataset, "cmacc").clips
    if clips != usual:
        assert set(frame["departures"]) == {f"clips={clips}"}


def test_what_the_data_are_that_are_not_quite_the_papers(any_data):
    frame = laid_out("transfer", tables.transfer_cells("kinetics_sound", variant="own_kept"))
    note = "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700"
    assert set(frame["departures"]) == {f"own_excluded=False; {note}"}
    frame = laid_out("cross_modal", tables.cross_modal_cells("kinetics_sound"))
    scratch = frame["approach"] == "Scratch"  # which has seen none of them
    assert set(frame["departures"][~scratch]) == {note} and set(frame["departures"][scratch]) == {""}
    frame = laid_out("ohem_vs_active", tables.ohem_vs_active_cells("kinetics_sound"))
    assert set(frame["departures"]) == {note}
    frame = laid_out("transfer", tables.transfer_cells("audioset", targets="esc50,esc10"))
    assert frame["departures"].tolist() == ["", "classified among all 50 classes"]


def test_table_4_pre_trained_on_ucf101(any_data):
    """Three encoders, each pre-trained on a split's training part: their mean is what is printed, not one of them."""
    frame = laid_out("transfer", tables.transfer_cells("ucf101", split="1,2,3"))
    assert frame["published"].tolist() == [69.1, 33.3] and frame["split"].tolist() == [0, 0]
    frame = laid_out("transfer", tables.transfer_cells("ucf101", split="2, 1"))
    assert frame["published"].isna().all() and sorted(frame["split"]) == [1, 1, 2, 2]


def test_the_mean_over_folds_is_of_each_seed_and_approach():
    names, values = ["scratch", "smoco"], np.random.default_rng(0).uniform(10, 90, (2, 2, 5))
    cells = [
        {"entry": f"{name}, video_trunk=r3d18, split={fold}, targets=esc10, precision=float32", "seed": seed,
         "method": name, "video_trunk": "r3d18", "split": fold, "targets": "esc10", "clips": 0,
         "trained_on": 300 + fold, "esc10": values[row, seed, fold - 1]}
        for row, name in enumerate(names) for seed in range(2) for fold in range(1, 6)
    ]
    frame = tables.transfer_table(DataFrame(cells), "quick", "esc50 (subset)").set_index("method")
    assert list(frame.index) == names and (frame["split"] == 0).all() and (frame["n_seeds"] == 2).all()
    np.testing.assert_allclose(frame["ours"], values.mean((1, 2)))
    np.testing.assert_allclose(frame["std"], values.mean(2).std(1, ddof=1))
    assert set(frame["departures"]) == {"precision=float32; classified among all 50 classes"}
    assert set(frame["trained_on"]) == {303}
    some = tables.transfer_table(DataFrame(cells[:-1]), "quick", "esc50 (subset)")  # smoco's second seed lacks a fold
    some = some[some["method"] == "smoco"]
    assert sorted(some["split"]) == [0, 1, 2, 3, 4] and (some["n_seeds"] == 1).all()


@pytest.mark.parametrize(("table", "dataset"), [
    ("cross_modal", "kinetics700"), ("ohem_vs_active", "kinetics_sound"), ("dictionary_size", "kinetics700"),
    ("category_diversity", "ucf101"), ("mutual_information", "multiomniglot"), ("transfer", "hmdb51"),
    ("ohem_vs_active", "audioset"),
])
def test_nothing_is_printed_for_other_data(any_data, table, dataset):
    choices = {"split": 1} if table == "transfer" else {}
    frame = laid_out(table, tables.TABLES[table].cells(dataset, **choices))
    assert frame[["published", "difference"]].isna().all(axis=None)
    assert frame["ours"].notna().all()


@pytest.mark.parametrize("table", RECORDED)
def test_nothing_is_subtracted_from_a_part_of_a_data_set(any_data, table):
    without_categories = ("audioset",) if table == "category_diversity" else ()
    for dataset in {"kinetics_sound", "kinetics700", "audioset"}.difference(without_categories):
        frame = laid_out(table, tables.TABLES[table].cells(dataset, subset=True))
        assert set(frame["dataset"]) == {f"{dataset} (subset)"}
        assert frame[["published", "difference"]].isna().all(axis=None)


@pytest.mark.parametrize("table", LAYOUTS)
def test_nothing_is_subtracted_on_embedded_data(any_data, monkeypatch, table):
    for name in ("_printed_approach", "_printed_sampler", "_printed_transfer", "_not_printed"):
        monkeypatch.setattr(table_layouts, name, lambda row, dataset: 50.0)  # not even if asked to
    frame = laid_out(table, tables.TABLES[table].cells(EMBEDDED[table]))
    assert frame[["published", "difference"]].isna().all(axis=None)
    assert frame["ours"].notna().all()


@pytest.mark.parametrize("table", LAYOUTS)
def test_rows_say_what_departs_from_the_preset(any_data, table):
    cells = tables.TABLES[table].cells(EMBEDDED[table], variant="released_momentum", precision="bfloat16")
    frame = laid_out(table, cells)
    place = LAYOUTS[table].index("ours")
    assert list(frame.columns) == [*LAYOUTS[table][:place], "departures", *LAYOUTS[table][place:]]
    without_keys = {"precision=bfloat16"} if table == "cross_modal" else set()  # scratch has none
    assert set(frame["departures"]) == {"momentum=0.9, precision=bfloat16"} | without_keys


def test_targets_may_differ_between_entries(any_data):
    cells = [*tables.transfer_cells("audioset", targets="esc50"),
             *tables.transfer_cells("audioset", targets="ucf101,esc50", methods="smoco")]
    frame = laid_out("transfer", cells)
    assert list(zip(frame["method"], frame["target"], strict=True)) == [
        ("cmacc", "esc50"), ("smoco", "esc50"), ("smoco", "ucf101")
    ]
    assert frame["ours"].notna().all()
