"""CM-ACC's tables from parameters to rows: which cells, which printed numbers, what is trained, what is refused."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from made_up_pairs import grids, made_up
from pandas import DataFrame
from stored_cells import refuse, stored

from repro import manifest
from repro.audiovisual import cell, table_cells, table_layouts, tables
from repro.audiovisual.data import CHARACTERS, RECORDINGS
from repro.audiovisual.members import members
from repro.audiovisual.pretrain import VERSION
from repro.audiovisual.recipe import METHODS, PRESETS, VARIANTS, paper, quick, smoke
from repro.report.printed import as_printed
from repro.run.device import threads

TAIL = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset", "trained_on"]
LAYOUTS = {
    "cross_modal": ["approach", "target", *TAIL],
    "ohem_vs_active": ["sampler", "batch", "target", *TAIL],
    "dictionary_size": ["method", "dictionary", "target", *TAIL],
    "mutual_information": ["method", "characters", "target", *TAIL, "linear_held_out"],
    "transfer": ["method", "video_trunk", "split", "target", *TAIL, "printed_in"],
    "category_diversity": ["sampler", "batch", "target", *TAIL, "expected"],
}
RECORDED = [name for name in LAYOUTS if name != "mutual_information"]
EMBEDDED = {name: "multidigits" if name == "mutual_information" else "synthetic" for name in LAYOUTS}
SHRUNK = {"batch": 8, "dictionary": 16, "pool": 24, "width": 32, "embedding": 8, "size": 8, "window": 4,
          "finetune_window": 4, "finetune_batch": 5}
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


@pytest.fixture
def any_data(monkeypatch):
    """Every data set is there, and large enough; the cells' functions look at its name and digest alone."""

    class Named:
        def __init__(self, name):
            self.name, self.digest = name, f"digest of {name}"

    def named(recipe):
        return Named(f"{recipe.dataset} (subset)" if recipe.subset else recipe.dataset)

    monkeypatch.setattr(cell, "data_of", named)
    monkeypatch.setattr(cell, "target_of", lambda recipe, name, split: Named(f"{name} {split}"))
    monkeypatch.setattr(cell, "members", lambda recipe, data: None)
    monkeypatch.setattr(manifest, "embedded", lambda label: label in ("synthetic", "multidigits"))


def results(cells):
    """Made-up results of the cells, as the layouts take them."""
    values = itertools.count(40.0, 0.25)
    rows = []
    for each in cells:
        found = each.recipe.to_dict() | {"entry": each.entry, "seed": each.seed, "trained_on": 100.0 + each.seed}
        names = [name for name in each.recipe.targets.split(",") if name and name != "characters"]
        names += ["linear", "linear_held_out"] if each.recipe.dataset in CHARACTERS else []
        names += ["categories_video", "categories_audio", "expected"] if each.recipe.method == "cmacc" else []
        rows.append(found | {name: next(values) for name in names})
    return DataFrame(rows)


def laid_out(table, cells):
    return tables.TABLES[table].layout(results(cells), cells[0].preset, cells[0].dataset)


# ---------------------------------------------------------------------------------------------- cells


def test_the_approaches_of_the_printed_tables(any_data):
    cells = tables.cross_modal_cells("kinetics_sound")
    expected = [
        ("scratch", {}), ("supervised", {}), ("smoco", {}), ("xmoco", {"extra_layer": False}), ("xmoco", {}),
        ("cmacc", {"extra_layer": False}), ("cmacc", {"sampler": "feature"}), ("cmacc", {}),
    ]
    assert [each.recipe for each in cells] == [paper("kinetics_sound", method, **given) for method, given in expected]
    for each in cells:
        assert (each.table, each.preset, each.dataset, each.seed, each.version) == (
            "cross_modal", "paper", "kinetics_sound", 0, VERSION
        )
        assert each.recipe.split == 1 and each.recipe.targets == "ucf101,hmdb51,esc50"


def test_every_approach_can_be_asked_for():
    for name, (_, method, given) in table_cells.APPROACHES.items():
        recipe = quick("synthetic", method, **given)
        assert (recipe.method, given) == (name.split("_")[0], given)
    assert table_cells.APPROACHES["cmacc_released"][2] == {"sampler": "released"}
    titles = [title for title, _, _ in table_cells.APPROACHES.values()]
    assert len(set(titles)) == len(titles)


def test_samplers_by_batch(any_data):
    cells = tables.ohem_vs_active_cells("kinetics700")
    found = [(each.recipe.sampler, each.recipe.batch, each.recipe.dictionary, each.recipe.pool) for each in cells]
    assert found == [(sampler, batch, 30 * batch, 300 * batch)
                     for sampler in ("random", "ohem", "gradient") for batch in (32, 64, 128)]
    assert {each.recipe.method for each in cells} == {"cmacc"}
    assert cells[0].entry == "cmacc, sampler=random, batch=32, targets=ucf101,hmdb51,esc50"


@pytest.mark.parametrize(("dataset", "sizes"), [("synthetic", [64, 256, 1024]),
                                               ("kinetics700", [128, 512, 2048, 8192, 32768])])
def test_methods_by_size_of_the_dictionary(any_data, dataset, sizes):
    cells = tables.dictionary_size_cells(dataset)
    found = [(each.recipe.method, each.recipe.dictionary) for each in cells]
    assert found == [(method, size) for method in ("smoco", "xmoco", "cmacc") for size in sizes]


@pytest.mark.parametrize("dataset", CHARACTERS)
def test_methods_by_number_of_characters(any_data, dataset):
    cells = tables.mutual_information_cells(dataset)
    found = [(each.recipe.method, each.recipe.characters) for each in cells]
    assert found == [(method, number) for method in ("smoco", "xmoco", "cmacc") for number in range(1, 10)]
    assert {each.preset for each in cells} == {"quick" if dataset == "multidigits" else "paper"}
    assert {each.recipe.pairs for each in cells} == {10_000 if dataset == "multidigits" else 50_000}


def test_transfer_is_to_all_splits(any_data):
    first, second = tables.transfer_cells("audioset", trunks="r3d18,r2plus1d18")
    assert first.recipe == paper("audioset", "cmacc", split=0)
    assert second.recipe == paper("audioset", "cmacc", split=0, video_trunk="r2plus1d18")
    assert second.entry == "cmacc, video_trunk=r2plus1d18, split=0, targets=ucf101,hmdb51,esc50"
    chosen, = tables.transfer_cells("audioset", targets="esc50, ucf101", split="2", methods="smoco")
    assert (chosen.recipe.targets, chosen.recipe.split, chosen.recipe.method) == ("esc50,ucf101", 2, "smoco")


@pytest.mark.parametrize("table", ["cross_modal", "ohem_vs_active", "dictionary_size", "transfer"])
def test_targets_can_be_chosen_wherever_encoders_are_fine_tuned(any_data, table):
    make = tables.TABLES[table].cells
    usual, cells = make("ucf101", split=1) if table == "transfer" else make("ucf101"), make(
        "ucf101", targets="ucf101", **({"split": 1} if table == "transfer" else {})
    )
    assert {each.recipe.targets for each in usual} == {"ucf101,hmdb51"}
    assert [each.recipe for each in cells] == [each.recipe.replace(targets="ucf101") for each in usual]
    frame = laid_out(table, cells)
    assert list(frame.columns) == LAYOUTS[table]  # that fewer targets were asked for is no departure
    assert set(frame["target"]) == {"ucf101"}


@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity"])
def test_redundancy_of_the_embedded_clips(any_data, table):
    cells = tables.TABLES[table].cells("synthetic", redundancy="0.9")
    assert {each.recipe.redundancy for each in cells} == {0.9}
    assert set(laid_out(table, cells)["departures"]) == {"redundancy=0.9"}
    plain = tables.TABLES[table].cells("synthetic", redundancy=0.5)
    assert [each.key for each in plain] == [each.key for each in tables.TABLES[table].cells("synthetic")]


@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity"])
@pytest.mark.parametrize(("dataset", "preset", "expected"), [
    ("synthetic", "quick", (32, 64, 128)), ("kinetics700", "paper", (32, 64, 128)), ("ucf101", "quick", (4, 8, 16)),
    ("ucf101", "smoke", (4, 8, 16)), ("synthetic", "smoke", (32, 64, 128)),
])
def test_batches_fit_what_there_is_to_select_from(any_data, table, dataset, preset, expected):
    cells = tables.TABLES[table].cells(dataset, preset=preset)
    assert tuple(dict.fromkeys(each.recipe.batch for each in cells)) == expected


@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity", "dictionary_size", "cross_modal"])
def test_quick_tables_take_a_set_of_some_dozens(any_data, monkeypatch, table):
    """As many as of a sample of UCF101 have sound: a batch is left to select in every cell."""
    monkeypatch.setattr(cell, "data_of", lambda recipe: made_up(pretrain=33))
    monkeypatch.setattr(cell, "members", lambda recipe, data: members(recipe.replace(size=8), data))
    assert tables.TABLES[table].cells("ucf101", preset="quick", subset=True)


@pytest.mark.parametrize("preset", ["quick", "smoke"])
@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity", "dictionary_size", "cross_modal"])
def test_usual_choices_fit_the_embedded_clips(any_data, monkeypatch, table, preset):
    monkeypatch.setattr(cell, "data_of", lambda recipe: made_up(pretrain=2000))
    monkeypatch.setattr(cell, "members", lambda recipe, data: members(recipe.replace(size=8), data))
    assert tables.TABLES[table].cells("synthetic", preset=preset)


def test_coverage_needs_no_targets(any_data):
    cells = tables.category_diversity_cells("ucf101")
    found = [(each.recipe.sampler, each.recipe.batch) for each in cells]
    assert found == list(itertools.product(("random", "ohem", "feature", "gradient"), (32, 64, 128)))
    assert {(each.recipe.iterations, each.recipe.targets) for each in cells} == {(300, "")}


@pytest.mark.parametrize("table", LAYOUTS)
@pytest.mark.parametrize("real", [False, True])
def test_auto_is_the_papers_recipe_on_real_data_and_a_quick_one_on_embedded_data(any_data, table, real):
    real_name = "multiomniglot" if table == "mutual_information" else "kinetics700"
    cells = tables.TABLES[table].cells(real_name if real else EMBEDDED[table])
    assert {each.preset for each in cells} == {"paper" if real else "quick"}
    assert {each.table for each in cells} == {table}


@pytest.mark.parametrize("table", LAYOUTS)
def test_entries_and_keys_tell_cells_apart(any_data, table):
    for dataset in ("multidigits", "multiomniglot") if table == "mutual_information" else ("synthetic", "kinetics700"):
        cells = tables.TABLES[table].cells(dataset, seeds="0,3")
        entries = [each.entry for each in cells]
        half = len(cells) // 2
        assert entries[:half] == entries[half:] and len(set(entries)) == half
        assert [each.seed for each in cells] == [0] * half + [3] * half
        assert len({each.key for each in cells}) == len(cells)


@pytest.mark.parametrize("table", LAYOUTS)
def test_choices_reach_every_recipe(any_data, table):
    choices = {"seeds": "4,7", "precision": "bfloat16", "variant": "own_kept"}
    expected = {"precision": "bfloat16", "own_excluded": False}
    if table != "mutual_information":
        choices |= {"subset": True}
        expected |= {"subset": True}
    dataset = "multiomniglot" if table == "mutual_information" else "kinetics700"
    usual = tables.TABLES[table].cells(dataset)
    cells = tables.TABLES[table].cells(dataset, **choices)
    assert [each.seed for each in cells] == [4] * len(usual) + [7] * len(usual)
    for each, plain in zip(cells, usual * 2, strict=True):
        assert each.recipe == plain.recipe.replace(**expected)
        assert each.dataset == dataset + (" (subset)" if "subset" in choices else "")
        assert each.entry == f"{plain.entry}, own_excluded=False, precision=bfloat16"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("table", LAYOUTS)
def test_a_variant_reaches_the_recipes_or_is_refused_where_the_table_varies_the_same(any_data, table, variant):
    make, changes = tables.TABLES[table].cells, VARIANTS[variant]
    usual = make(EMBEDDED[table])
    if changes.keys() & set(tables.VARIED[table]):
        with pytest.raises(ValueError, match=rf"variant='{variant}' is not one of: none, unit_length"):
            make(EMBEDDED[table], variant=variant)
        return
    if variant in ("whole_batch", "unit_length", "renewed_keys"):  # so are the quick recipes anyway
        with pytest.raises(ValueError, match=f"variant='{variant}' changes nothing of the quick recipe on"):
            make(EMBEDDED[table], variant=variant)
        usual, cells = (make(EMBEDDED[table], preset="paper", variant=name) for name in ("none", variant))
    else:
        cells = make(EMBEDDED[table], variant=variant)
    assert [each.recipe for each in cells] == [plain.recipe.replace(**changes) for plain in usual]
    assert len({each.entry for each in cells} - {plain.entry for plain in usual}) == len(cells)


# ---------------------------------------------------------------------------------------------- keys


def test_a_key_depends_on_the_targets_data(any_data, monkeypatch):
    before = tables.cross_modal_cells("kinetics_sound", approaches="cmacc")[0]
    plain = tables.category_diversity_cells("kinetics_sound", samplers="random", batches=32)[0]
    assert plain.digest == "digest of kinetics_sound" != before.digest
    target = cell.target_of

    def other(recipe, name, split):
        found = target(recipe, name, split)
        found.digest += " other" * (name == "hmdb51")
        return found

    monkeypatch.setattr(cell, "target_of", other)
    after = tables.cross_modal_cells("kinetics_sound", approaches="cmacc")[0]
    assert after.key != before.key and after.recipe == before.recipe


def test_the_version_of_the_pretrainer_is_part_of_every_key(any_data, monkeypatch):
    before = tables.transfer_cells("audioset")[0]
    monkeypatch.setattr(table_cells, "VERSION", VERSION + 1)
    assert tables.transfer_cells("audioset")[0].key != before.key


def test_what_targets_are_read_for_a_cell(any_data, monkeypatch):
    asked, target = [], cell.target_of
    monkeypatch.setattr(cell, "target_of", lambda *given: asked.append(given[1:]) or target(*given))
    tables.transfer_cells("audioset")
    assert asked == [*(("ucf101", split) for split in (1, 2, 3)), *(("hmdb51", split) for split in (1, 2, 3)),
                     *(("esc50", split) for split in (1, 2, 3, 4, 5))]


# ---------------------------------------------------------------------------------------------- layouts


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


COLUMNS = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}


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
        assert row.difference == pytest.approx(row.ours - expected, nan_ok=True)
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


NOTHING = (math.nan, "")


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
    cells = tables.TABLES[table].cells(EMBEDDED[table], variant="released_momentum", precision="float32")
    frame = laid_out(table, cells)
    place = LAYOUTS[table].index("ours")
    assert list(frame.columns) == [*LAYOUTS[table][:place], "departures", *LAYOUTS[table][place:]]
    expected = "momentum=0.9"
    if table == "mutual_information":  # whose quick recipe has another precision
        expected += ", precision=float32"
    assert set(frame["departures"]) == {expected}


def test_targets_may_differ_between_entries(any_data):
    cells = [*tables.transfer_cells("audioset", targets="esc50"),
             *tables.transfer_cells("audioset", targets="ucf101,esc50", methods="smoco")]
    frame = laid_out("transfer", cells)
    assert list(zip(frame["method"], frame["target"], strict=True)) == [
        ("cmacc", "esc50"), ("smoco", "esc50"), ("smoco", "ucf101")
    ]
    assert frame["ours"].notna().all()


# ---------------------------------------------------------------------------------------------- end to end


CHOICES = {
    "cross_modal": {"approaches": "scratch,supervised,smoco_plain,cmacc"},
    "ohem_vs_active": {"samplers": "ohem,released", "batches": "4,8"},
    "dictionary_size": {"methods": "smoco,cmacc", "dictionaries": "8,16"},
    "mutual_information": {"methods": "scratch,xmoco,cmacc", "characters": "2"},
    "transfer": {"methods": "xmoco"},
    "category_diversity": {"samplers": "random,feature", "batches": 8, "iterations": 2},
}


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
        *((table, {"dataset": "multidigits"}, r"dataset='multidigits' is not one of: synthetic, kinetics700")
          for table in RECORDED),
        ("mutual_information", {"dataset": "synthetic"}, "dataset='synthetic' is not one of: multidigits, multiomni"),
        *((table, {"preset": "fast"}, "preset='fast' is not one of: auto, paper, quick, smoke") for table in LAYOUTS),
        *((table, {"seeds": "0,x"}, "seeds='0,x' should be a comma list of whole numbers") for table in LAYOUTS),
        *((table, {"variant": "unit_lenght"}, "variant='unit_lenght' is not .*did you mean 'unit_length'")
          for table in LAYOUTS),
        *((table, {"precision": "half"}, "precision='half' is not one of: auto, float32") for table in LAYOUTS),
        ("cross_modal", {"approaches": "cmac"}, r"approaches='cmac' is not one of: scratch, .*; did you mean 'cmacc'"),
        ("ohem_vs_active", {"samplers": "active"}, "samplers='active' is not one of: gradient"),
        ("cross_modal", {"targets": "ucf"}, "targets='ucf' is not one of: ucf101"),
        ("ohem_vs_active", {"redundancy": "much"}, "redundancy='much' should be a number from 0 up to"),
        ("category_diversity", {"redundancy": 1}, "redundancy=1.0 should be between 0 and 1, and less than 1"),
        ("ohem_vs_active", {"dataset": "ucf101", "redundancy": 0}, "redundancy=0 is of dataset='synthetic' alone"),
        ("transfer", {"clips": "240K"}, "clips='240K' should be a whole number of at least 0"),
        ("ohem_vs_active", {"batches": "0"}, "batches='0' should be a comma list of whole numbers from 1"),
        ("dictionary_size", {"methods": "scratch"}, "methods='scratch' is not one of: smoco, xmoco, cmacc"),
        ("dictionary_size", {"dictionaries": "8,ten"}, "dictionaries='8,ten' should be a comma list"),
        ("dictionary_size", {"dictionaries": "9"}, "dictionary=9 should be a multiple of batch=8, .* take 8"),
        ("mutual_information", {"methods": "supervised"}, "methods='supervised' is not one of: scratch, smoco"),
        ("mutual_information", {"characters": "10"}, "characters=10 should be between 1 and 9"),
        ("transfer", {"methods": "moco"}, r"methods='moco' is not one of: .*; did you mean '.moco'"),
        ("transfer", {"targets": "ucf"}, r"targets='ucf' is not one of: ucf101"),
        ("transfer", {"trunks": "r3d"}, r"trunks='r3d' is not one of: r3d18, r2plus1d18; did you mean 'r3d18'"),
        ("transfer", {"split": "one"}, "split='one' should be a whole number of at least 0"),
        ("transfer", {"split": "7"}, "split=7 should be between 0 and 5"),
        ("transfer", {"split": 2}, "split=2 should be at most 1, of synthetic_video, or 0 for their mean"),
        ("transfer", {"split": 4, "targets": "esc50,hmdb51"}, "split=4 should be at most 3, of hmdb51"),
        ("category_diversity", {"iterations": "0"}, "iterations='0' should be a whole number of at least 1"),
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


@pytest.mark.parametrize(("dataset", "targets"), [("ucf101", "auto"), ("hmdb51", "ucf101,hmdb51"), ("esc50", "auto")])
def test_one_split_of_what_is_pre_trained_on(any_data, dataset, targets):
    chosen, = tables.transfer_cells(dataset, targets=targets, split=2)
    assert chosen.recipe.split == 2
    assert len(tables.transfer_cells("synthetic", methods="smoco,cmacc")) == 2  # has one split


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


def test_names_of_the_printed_columns():
    for table in ("cmacc_table1", "cmacc_table2"):
        assert set(table_layouts.NAMES.values()) < set(as_printed(table).columns)
    assert np.isnan(table_layouts._cell("cmacc_table1", "approach", "SMoCo (w/o fcl)", "UCF101"))
    assert np.isnan(table_layouts._cell("cmacc_table1", "approach", "SMoCo", None))


def test_made_up_data_have_the_names_of_embedded_ones():
    """So that the tests above go the way of embedded data."""
    for table, dataset in EMBEDDED.items():
        assert small_data(smoke(dataset, "smoco")).name == dataset, table
