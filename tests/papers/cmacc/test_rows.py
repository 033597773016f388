"""Rows of CM-ACC's tables: means over seeds, which printed numbers stand beside them, what is said of departures."""

import itertools
import math

import numpy as np
import pytest
from audiovisual_layouts import EMBEDDED, LAYOUTS, MEASURED, laid_out, results

from repro.audiovisual.recipe import paper
from repro.papers.cmacc.tables import TABLES
from repro.report.printed import as_printed

NOTHING = (math.nan, "")
COLUMNS = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}
NOTE = "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700"
pytestmark = pytest.mark.usefixtures("one_thread", "runs")


def frame_of(table, dataset, **choices):
    return laid_out(table, TABLES[table].cells(dataset, device="cpu", **choices))


@pytest.mark.parametrize("table", LAYOUTS)
def test_columns_and_means_over_seeds(any_data, table):
    dataset = "multiomniglot" if table == "mutual_information" else "kinetics700"
    cells = TABLES[table].cells(dataset, preset="quick", seeds="0,1,5", device="cpu")
    frame, found = laid_out(table, cells), results(cells)
    assert list(frame.columns) == LAYOUTS[table]
    assert set(frame["n_seeds"]) == {3} and set(frame["preset"]) == {"quick"} and set(frame["dataset"]) == {dataset}
    recipes = len(cells) // 3
    places = list(dict.fromkeys(frame["target"]))
    assert len(frame) == recipes * len(places)
    assert frame["target"].tolist() == places * recipes
    for number, (recipe, target) in enumerate(itertools.product(range(recipes), places)):
        of_seeds = found.iloc[recipe::recipes]
        values = of_seeds[MEASURED.get(target, target)]
        assert len(values) == 3
        assert frame["ours"][number] == pytest.approx(values.mean())
        assert frame["std"][number] == pytest.approx(values.std(ddof=1))
        assert frame["trained_on"][number] == 102
        for name in {"linear_held_out", "expected"} & {*frame}:
            assert frame[name][number] == pytest.approx(of_seeds[name].mean())


def test_rows_are_in_the_order_of_the_printed_ones(any_data):
    frame = frame_of("cross_modal", "kinetics_sound", seeds="0,1")
    printed = as_printed("cmacc_table1")["approach"].tolist()
    approaches = list(dict.fromkeys(frame["approach"]))
    assert approaches == [*printed[:6], "CM-ACC, feature embedding", "CM-ACC"] and printed[6:] == ["CM-ACC"]
    assert frame["target"].tolist() == ["ucf101", "hmdb51", "esc50"] * 8
    frame = frame_of("ohem_vs_active", "kinetics700", batch="64,32")
    assert list(dict.fromkeys(zip(frame["sampler"], frame["batch"], strict=True))) == list(
        itertools.product(("random", "ohem", "gradient"), (32, 64))
    )


def number(text):
    return float(text) if text else math.nan


def test_tables_1_and_2_on_kinetics_sound(any_data):
    usual, others = frame_of("cross_modal", "kinetics_sound"), (
        {"method": "smoco", "extra_layer": False}, {"method": "cmacc", "sampler": "released", "extra_layer": True}
    )
    for choices in others:
        frame = frame_of("cross_modal", "kinetics_sound", **choices)
        assert set(frame["approach"]) == {{"smoco": "SMoCo", "cmacc": "CM-ACC"}[choices["method"]]}
        assert frame["published"].isna().all()
    frame = usual
    first = as_printed("cmacc_table1").set_index("approach")
    second = as_printed("cmacc_table2").set_index("embedding_space")
    for row in frame.itertuples():
        if row.approach == "CM-ACC, feature embedding":
            expected = number(second.loc["Feature Embedding", COLUMNS[row.target]])
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
    samplers = "random,ohem,gradient,feature"
    frame = frame_of("ohem_vs_active", "kinetics700", sampler=samplers, batch="32,64,96,128")
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
    frame = frame_of("transfer", dataset, method="cmacc,xmoco,scratch,supervised", video_trunk=trunk)
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
    frame = frame_of("transfer", dataset, clips=clips)
    assert frame["published"].tolist() == pytest.approx(list(expected), nan_ok=True)
    usual = paper(dataset, "cmacc").clips
    if clips != usual:
        assert [{**away, "data": ""} for away in frame["departures"]] == [{"clips": clips, "data": ""}] * 3


def test_what_the_data_are_that_are_not_quite_the_papers(any_data):
    frame = frame_of("transfer", "kinetics_sound", variant="own_kept")
    assert frame["departures"].tolist() == [{"own_excluded": False, "data": NOTE}] * 3
    frame = frame_of("cross_modal", "kinetics_sound")
    scratch = frame["approach"] == "Scratch"  # which has seen none of them
    assert all(away == ({} if untrained else {"data": NOTE})
               for away, untrained in zip(frame["departures"], scratch, strict=True))
    for table in ("ohem_vs_active", "category_diversity"):
        assert all(away == {"data": NOTE} for away in frame_of(table, "kinetics_sound")["departures"])
    frame = frame_of("transfer", "audioset", targets="esc50+esc10")
    assert frame["departures"].tolist() == [{}, {"data": "classified among all 50 classes"}]


def test_table_4_pre_trained_on_ucf101(any_data):
    """Three encoders, each pre-trained on a split's training part: their mean is what is printed, not one of them."""
    frame = frame_of("transfer", "ucf101", split="1,2,3")
    assert frame["published"].tolist() == [69.1, 33.3] and frame["split"].tolist() == [0, 0]
    frame = frame_of("transfer", "ucf101", split="2,1")
    assert frame["published"].isna().all() and sorted(frame["split"]) == [1, 1, 2, 2]


def test_the_mean_over_folds_is_of_each_seed_and_approach(any_data):
    cells = TABLES["transfer"].cells("esc50", preset="quick", subset=True, method="scratch,smoco", targets="esc10",
                                     split="1,2,3,4,5", seeds="0,1", precision="bfloat16", device="cpu")
    found = results(cells).sort_values(["method", "seed", "split"])
    found["trained_on"] = 300.0 + found["split"]
    values = found["esc10"].to_numpy().reshape(2, 2, 5)
    lay = TABLES["transfer"]
    frame = lay.laid_out(lay.select(found)).set_index("method")
    assert list(frame.index) == ["scratch", "smoco"] and (frame["split"] == 0).all() and (frame["n_seeds"] == 2).all()
    np.testing.assert_allclose(frame["ours"], values.mean((1, 2)))
    np.testing.assert_allclose(frame["std"], values.mean(2).std(1, ddof=1))
    note = {"precision": "bfloat16", "data": "classified among all 50 classes"}
    assert frame["departures"].tolist() == [note] * 2 and set(frame["trained_on"]) == {303}
    some = lay.laid_out(lay.select(found.iloc[:-1]))  # smoco's second seed lacks a fold
    some = some[some["method"] == "smoco"]
    assert sorted(some["split"]) == [0, 1, 2, 3, 4] and (some["n_seeds"] == 1).all()


def test_an_encoder_fine_tuned_elsewhere_counts_once(any_data):
    """Cells that differ in the list of their targets alone; others are rows of their own."""
    make = TABLES["transfer"].cells
    several, one = (make("audioset", device="cpu", targets=each) for each in ("esc50+ucf101", "esc50"))
    frame = laid_out("transfer", [*several, *one])
    assert frame["target"].tolist() == ["esc50", "ucf101"] and set(frame["n_seeds"]) == {1}


@pytest.mark.parametrize(("table", "dataset"), [
    ("cross_modal", "kinetics700"), ("ohem_vs_active", "kinetics_sound"), ("dictionary_size", "kinetics700"),
    ("category_diversity", "ucf101"), ("mutual_information", "multiomniglot"), ("transfer", "hmdb51"),
    ("ohem_vs_active", "audioset"),
])
def test_nothing_is_printed_for_other_data(any_data, table, dataset):
    frame = frame_of(table, dataset, **({"split": 1} if table == "transfer" else {}))
    assert frame[["published", "difference"]].isna().all(axis=None)
    assert frame["ours"].notna().all()


@pytest.mark.parametrize("table", LAYOUTS)
def test_nothing_is_printed_beside_embedded_data(any_data, table):
    frame = frame_of(table, EMBEDDED[table])
    assert frame[["published", "difference"]].isna().all(axis=None)
    assert frame["ours"].notna().all()


@pytest.mark.parametrize("table", LAYOUTS)
def test_rows_say_what_departs_from_the_preset(any_data, table):
    frame = frame_of(table, EMBEDDED[table], variant="released_momentum", precision="bfloat16")
    place = LAYOUTS[table].index("ours")
    assert list(frame.columns) == [*LAYOUTS[table][:place], "departures", *LAYOUTS[table][place:]]
    everything, without_keys = {"momentum": 0.9, "precision": "bfloat16"}, {"precision": "bfloat16"}
    expected = [without_keys if name in ("Scratch", "Supervised") else everything for name in frame.get("approach", [])]
    assert frame["departures"].tolist() == (expected or [everything] * len(frame))


def test_an_approach_is_that_of_the_row_it_contradicts_least(any_data):
    """One of another sampler departs from CM-ACC, and not from its variant in the space of features."""
    frame = frame_of("cross_modal", "kinetics700", method="cmacc", sampler="ohem", extra_layer=True)
    assert set(frame["approach"]) == {"CM-ACC"} and all(away == {"sampler": "ohem"} for away in frame["departures"])
