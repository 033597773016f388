"""Tables 4 to 6 of CM-ACC with our rows inside."""

import itertools

import pytest
from pandas import DataFrame, concat

from repro.papers.cmacc.comparison import merged
from repro.report.printed import printed


def ours(dataset="kinetics_sound", preset="paper", *, methods=("scratch", "cmacc"), splits=(0,), **accuracies):
    """A table of `transfer`, 10 points apart by method and a point by split."""
    rows = [
        (method, "r3d18", split, target, value + 10 * place + split)
        for place, method in enumerate(methods) for split in splits
        for target, value in (accuracies or {"ucf101": 50.0, "hmdb51": 20.0, "esc50": 60.0}).items()
    ]
    table = DataFrame(rows, columns=["method", "video_trunk", "split", "target", "ours"])
    trained_on = table["method"].ne("scratch") * (21_900.0 + table["split"])
    return table.assign(n_seeds=2, preset=preset, dataset=dataset, trained_on=trained_on)


def departing(table, **departures):
    """The table with these departures in every row, as `run_table` gives them."""
    return table.assign(departures=[departures] * len(table))


@pytest.mark.parametrize(("number", "columns", "targets"), [
    (4, ["method", "architecture", "pretrain_set", "pretrain_size"], ["UCF101", "HMDB51"]),
    (5, ["method", "architecture", "pretrain_set", "pretrain_size"], ["ESC50"]),
    (6, ["method", "pretrain_set", "pretrain_size"], ["UCF101", "HMDB51", "ESC50"]),
])
def test_the_printed_rows_alone(number, columns, targets):
    rows, table = merged(number), printed(f"cmacc_table{number}")
    assert list(rows.columns) == [*columns, *targets, "source"]
    assert len(rows) == len(table)
    for target in targets:
        assert sorted(rows[target].dropna()) == sorted(table[target].dropna())
    sets = rows["pretrain_set"].tolist()
    assert sum(a != b for a, b in itertools.pairwise(sets)) == len(set(sets)) - 1  # each in one piece


def test_where_printed_rows_come_from():
    assert set(merged(4)["source"]) == set(merged(5)["source"]) == {"printed"}
    rows = merged(6).set_index(["method", "pretrain_set"])["source"]
    assert rows["Supervised", "ImageNet"] == "printed: excerpted (dagger)"
    assert rows["Supervised", "Kinetics-Sound"] == "printed: own (star)"
    assert rows["CM-ACC", "AudioSet"] == "printed: own"


def test_our_rows_say_how_much_they_were_trained_on():
    rows = merged(6, ours())
    own = rows[rows["source"].str.startswith("here")].set_index("method")["pretrain_size"]
    assert own.to_dict() == {"Scratch": "", "CM-ACC": "21,900"}
    rows = merged(6, ours("ucf101", splits=(1, 2), methods=("cmacc",), ucf101=50.0))
    assert rows["pretrain_size"][rows["source"].str.startswith("here")].tolist() == ["21,901 to 21,902"]


def test_of_splits_with_unequal_seeds_the_mean_of_all_splits_alone():
    """A seed that lacks a fold gives rows of the folds it has beside the mean of the others."""
    table = ours("esc50", methods=("smoco",), splits=(0, 1, 2), esc50=60.0)
    row = merged(5, table).query("method == 'SMoCo'").iloc[0]
    assert row["ESC50"] == 60.0 and "mean of all splits" in row["source"]


def test_rows_that_depart_from_the_preset_are_not_averaged_with_those_that_do_not():
    first, second = (departing(ours(methods=("cmacc",), esc50=value), **departures)
                     for value, departures in ((60.0, {"clips": 240_000}), (70.0, {})))
    rows = merged(5, concat([first, second])).query("source.str.startswith('here')", engine="python")
    assert rows["ESC50"].tolist() == [60.0, 70.0]
    assert ["clips=240000" in source for source in rows["source"]] == [True, False]


def test_our_rows_stand_last_among_those_of_their_set():
    rows = merged(4, ours())
    assert len(rows) == len(printed("cmacc_table4")) + 2
    sound = rows[rows["pretrain_set"] == "Kinetics-Sound"]
    assert sound["method"].tolist() == ["CM-ACC", "CM-ACC"] and sound["UCF101"].tolist() == [77.2, 60.0]
    assert sound["HMDB51"].tolist() == [40.6, 30.0] and sound["architecture"].tolist() == ["3D-ResNet18"] * 2
    assert sound["source"].tolist() == [
        "printed", "here: kinetics_sound, paper recipe, mean of all splits, seeds: 2"
    ]
    scratch = rows[rows["pretrain_set"] == "-"]
    assert scratch["method"].tolist() == ["Scratch", "Scratch"] and scratch["UCF101"].tolist() == [46.5, 50.0]
    assert rows["pretrain_set"].iloc[0] == "-"


def test_sets_that_nobody_printed_come_last():
    rows = merged(5, ours("esc50", methods=("smoco",)))
    assert rows[rows["pretrain_set"] == "ESC50"]["method"].iloc[-1] == "SMoCo"
    assert rows[rows["source"].str.startswith("here")]["architecture"].tolist() == ["ResNet-18"]
    rows = merged(5, ours("hmdb51", methods=("smoco",)))
    assert rows["pretrain_set"].iloc[-1] == "HMDB51"


def test_of_several_splits_the_mean():
    rows = merged(6, ours("ucf101 (subset)", "quick", methods=("cmacc",), splits=(1, 2, 3), ucf101=50.0))
    row = rows[rows["source"].str.startswith("here")].iloc[0]
    assert row["UCF101"] == 52.0 and row[["HMDB51", "ESC50"]].isna().all()
    assert row["source"] == "here: ucf101 (subset), quick recipe, split 1, 2, 3, seeds: 2"
    assert row["pretrain_set"] == "UCF101"


def test_departures_from_the_preset_are_named():
    rows = merged(5, departing(ours(methods=("cmacc",)), own_excluded=False))
    source = "here: kinetics_sound, paper recipe, mean of all splits, own_excluded=False, seeds: 2"
    assert set(rows["source"]) == {"printed", source}


def test_rows_that_answer_to_nothing_printed_stay_out():
    assert len(merged(5, ours(ucf101=50.0))) == len(merged(5))
    assert len(merged(4, ours("synthetic", "quick", synthetic_video=50.0))) == len(merged(4))
    assert len(merged(4, ours("synthetic", "quick", ucf101=50.0))) == len(merged(4))


def test_another_table_is_refused():
    with pytest.raises(ValueError, match="number=3 is not one of: 4, 5, 6"):
        merged(3)
