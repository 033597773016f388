"""CM-ACC's tables: their cells, what is refused, the printed numbers beside them."""

import itertools
import json
import math

import numpy as np
import pytest
from asked_for import laid_out as rows_of
from audiovisual_layouts import EMBEDDED, LAYOUTS, MEASURED, RECORDED, laid_out, results
from made_up_pairs import grids, made_up
from stored_cells import refuse

from repro import run_table
from repro.audiovisual import MODALITIES, study
from repro.audiovisual.data import members
from repro.audiovisual.recipe import CLIPS, PRESETS, paper, smoke
from repro.data import manifest
from repro.papers.cmacc.tables import TABLES
from repro.report.printed import as_printed

pytestmark = pytest.mark.usefixtures("one_thread", "runs")
COLUMNS = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}
NOTE = "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700"
SHRUNK = {"batch": 8, "width": 32, "embedding": 8, "size": 8, "window": 4, "finetune_window": 4, "finetune_batch": 5}
THREE = (32, 64, 128)


@pytest.fixture
def any_data(monkeypatch):
    """Every data set is there, and large enough; tables look at its name and digest alone."""
    class Named:
        def __init__(self, name):
            self.name, self.digest = name, f"digest of {name}"

    monkeypatch.setattr(
        study, "data_of", lambda recipe: Named(f"{recipe.dataset} (subset)" if recipe.subset else recipe.dataset))
    monkeypatch.setattr(study, "target_of", lambda recipe, name, split: Named(f"{name} {split}"))
    monkeypatch.setattr(study, "members", lambda recipe, data: None)
    monkeypatch.setattr(study, "_check_target", lambda *_: None)
    monkeypatch.setattr(manifest, "bundled", lambda label: label in ("synthetic", "multidigits"))


def cells_of(table, dataset=None, **choices):
    return TABLES[table].cells(dataset, device="cpu", **choices)


def recipes_of(*given, **choices):
    return [cell.recipe for cell in cells_of(*given, **choices)]


def frame_of(table, dataset, **choices):
    return laid_out(table, cells_of(table, dataset, **choices))


def fields(recipes, *names):
    return [tuple(getattr(recipe, name) for name in names) for recipe in recipes]


# ---------------------------------------------------------------------------------------------- which cells there are


def test_fields_that_are_asked_for(any_data):
    recipes = recipes_of("transfer", "audioset", video_trunk="r3d18,r2plus1d18")
    assert recipes == [paper("audioset", "cmacc", split=0, video_trunk=trunk) for trunk in ("r3d18", "r2plus1d18")]
    recipe, = recipes_of("transfer", "audioset", targets="esc50+ucf101", split="2", method="smoco")
    assert (recipe.targets, recipe.split, recipe.method) == ("esc50,ucf101", 2, "smoco")
    recipes = recipes_of("transfer", "audioset", method="scratch,cmacc", clips="100")  # of which scratch sees none
    assert recipes == [paper("audioset", "scratch", split=0), paper("audioset", "cmacc", split=0, clips=100)]
    recipes = recipes_of("cross_modal", "multiomniglot", method="scratch,supervised,smoco", preset="quick",
                         view="affine,characters", redrawn="false,true", categories="101")
    assert fields(recipes, "method", "view", "redrawn") == [
        ("scratch", "affine", False), ("supervised", "affine", False), ("supervised", "affine", True),
        ("smoco", "affine", False), ("smoco", "affine", True), ("smoco", "characters", False),
        ("smoco", "characters", True),
    ]


@pytest.mark.parametrize("table", ["cross_modal", "ohem_vs_active", "dictionary_size", "transfer"])
def test_targets_can_be_chosen_wherever_encoders_are_fine_tuned(any_data, table):
    split = {"split": 1} if table == "transfer" else {}
    usual, cells = cells_of(table, "ucf101", **split), cells_of(table, "ucf101", targets="ucf101", **split)
    assert {cell.recipe.targets for cell in usual} == {"ucf101,hmdb51"}
    assert [cell.recipe for cell in cells] == [cell.recipe.replace(targets="ucf101") for cell in usual]
    frame = laid_out(table, cells)
    assert list(frame.columns) == LAYOUTS[table]  # that fewer targets were asked for is no departure
    assert set(frame["target"]) == {"ucf101"}


@pytest.mark.parametrize(("dataset", "preset", "size", "expected"), [
    ("synthetic", "quick", 2000, THREE), ("synthetic", "smoke", 2000, (16, 32)), ("ucf101", "quick", 33, (4, 8, 16)),
])
@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity", "dictionary_size", "cross_modal"])
def test_usual_choices_fit_the_bundled_clips_and_some_dozens(
    any_data, monkeypatch, table, dataset, preset, size, expected
):
    """As many as of a sample of UCF101 have sound: a batch is left to select in every cell."""
    clips = made_up(pretrain=size)
    monkeypatch.setattr(study, "data_of", lambda recipe: clips)
    monkeypatch.setattr(study, "members", lambda recipe, data: members(recipe.replace(size=8), data))
    recipes = recipes_of(table, dataset, preset=preset, **({"subset": True} if dataset == "ucf101" else {}))
    if table in ("ohem_vs_active", "category_diversity"):
        assert tuple(dict.fromkeys(recipe.batch for recipe in recipes)) == expected


@pytest.mark.parametrize("preset", ["paper", "quick", "smoke"])
@pytest.mark.parametrize("table", LAYOUTS)
def test_every_table_is_also_on_grids_of_characters(any_data, monkeypatch, table, preset):
    monkeypatch.setattr(study, "data_of", lambda recipe: grids(train=recipe.pairs, test=9, held_out=9))
    monkeypatch.setattr(study, "members", members)
    cells = cells_of(table, "multidigits", preset=preset)
    assert {(cell.recipe.targets, cell.recipe.split) for cell in cells} == {("characters", 1)}
    frame, tidy = laid_out(table, cells), CLIPS.tidy(results(cells))
    if table == "category_diversity":
        assert set(frame["target"]) == set(MODALITIES)
        return
    for target, measure in {"characters": "linear", "unseen": "linear_held_out"}.items():
        assert frame.loc[frame["target"] == target, "ours"].tolist() == tidy[measure].tolist()
    assert set(frame["target"]) == {"characters", "unseen"}


def test_the_same_cell_has_one_key_in_every_table(any_data):
    grid = {"preset": "quick", "characters": "3", "distinct": "100", "frequency": "zipf", "redrawn": "true"}
    own = {"method": "cmacc", "sampler": "gradient", "batch": 128, "dictionary": 1024, "extra_layer": True}
    keys = [[cell.key for cell in cells_of(table, "multidigits", iterations=624, **own, **grid)] for table in LAYOUTS]
    assert len({*itertools.chain(*keys)}) == 1 and [len(found) for found in keys] == [1] * 6


def test_a_key_depends_on_the_targets_data(any_data, monkeypatch):
    before, target = cells_of("cross_modal", "kinetics_sound")[-1], study.target_of
    assert cells_of("category_diversity", "kinetics_sound")[0].digest == "digest of kinetics_sound" != before.digest

    def other(recipe, name, split):
        data = target(recipe, name, split)
        data.digest += " other" * (name == "hmdb51")
        return data

    monkeypatch.setattr(study, "target_of", other)
    after = cells_of("cross_modal", "kinetics_sound")[-1]
    assert after.key != before.key and after.recipe == before.recipe


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.fixture
def untrained(any_data, runs, monkeypatch):
    """Fails if anything is trained or written."""
    monkeypatch.setattr("repro.run.training.train", refuse)
    yield
    assert not runs.exists()


@pytest.mark.parametrize(("table", "choices", "message"), [
    ("mutual_information", {"dataset": "synthetic"}, "dataset='synthetic' is not one of: multidigits, multiomni"),
    ("cross_modal", {"distinct": 5}, "distinct=5 changes nothing of scratch, supervised"),
    ("cross_modal", {"dataset": "multidigits", "targets": "esc50"}, "targets='esc50' changes nothing of scratch"),
    ("ohem_vs_active", {"dataset": "ucf101", "redundancy": 0}, "redundancy=0 changes nothing of cmacc"),
    ("ohem_vs_active", {"dataset": "multidigits", "view": "drawing"}, "view='drawing' changes nothing of cmacc; smoco"),
    ("ohem_vs_active", {"sampler": "random", "posterior_temperature": 0.3}, "posterior_temperature=0.3 changes noth"),
    ("dictionary_size", {"method": "scratch"}, "method='scratch' is not one of: smoco, xmoco, cmacc"),
    ("dictionary_size", {"dictionary": "9"}, "dictionary=9 should be a multiple of batch=16"),
    ("transfer", {"clips": 9, "method": "scratch"}, "clips=9 changes nothing of scratch; supervised, smoco"),
    ("transfer", {"split": 2}, "split=2 should be at most 1, of synthetic_video, or 0 for their mean"),
    ("transfer", {"dataset": "multidigits", "split": 2}, "split=2 changes nothing of cmacc"),
    ("transfer", {"dataset": "multidigits", "video_trunk": "r3d18"}, "video_trunk=.r3d18. changes nothing of cmacc"),
    *(("category_diversity", {"dataset": name}, rf"dataset='{name}' is not one of: synthetic, ucf101, .*, hmdb51$")
      for name in ("audioset", "esc50")),
], ids=str)
def test_what_does_not_exist_is_refused_before_anything_is_computed(untrained, table, choices, message):
    with pytest.raises(ValueError, match=message):
        run_table(table, **{"preset": "smoke", "device": "cpu"} | choices)


@pytest.mark.parametrize(("table", "without", "choices", "message"), [
    ("dictionary_size", [], {"dictionary": "8,1024"}, "dictionary=1024 may hold all but 0 candidates of pool=24"),
    ("ohem_vs_active", [], {"batch": "64"}, "batch=64 exceeds the 30 training pairs of synthetic"),
    *(("cross_modal", [missing], {"method": "scratch,smoco,xmoco"}, "method='xmoco' needs video and sound")
      for missing in ("video", "audio")),
])
def test_sets_too_small_are_refused_beforehand(untrained, monkeypatch, table, without, choices, message):
    def small(dataset, method, **changes):
        batch = changes.get("batch", 8)
        return smoke(dataset, method, **SHRUNK | {"dictionary": 2 * batch, "pool": 3 * batch} | changes)

    monkeypatch.setitem(PRESETS, "smoke", small)
    monkeypatch.setattr(study, "data_of", lambda _: made_up(without=without))
    monkeypatch.setattr(study, "target_of", lambda *_: made_up())
    monkeypatch.setattr(study, "members", members)
    with pytest.raises(ValueError, match=message):
        run_table(table, preset="smoke", device="cpu", **choices)
    if without:  # which do without one
        assert len(cells_of(table, preset="smoke", method="scratch,supervised,smoco")) == 3


@pytest.mark.parametrize("table", RECORDED)
def test_missing_data_of_targets_are_missed_beforehand(untrained, monkeypatch, table):
    def missing(recipe, name, split):
        raise FileNotFoundError(f"{name} is not there")

    monkeypatch.setattr(study, "target_of", missing)
    if table == "category_diversity":  # which has none
        assert len(cells_of(table, "kinetics700")) == 12
        return
    with pytest.raises(FileNotFoundError, match="ucf101 is not there"):
        run_table(table, "kinetics700")


# ---------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("table", LAYOUTS)
def test_columns_and_means_over_seeds_and_nothing_printed_of_other_data(any_data, table):
    dataset = {"mutual_information": "multiomniglot", "ohem_vs_active": "audioset"}.get(table, "kinetics700")
    cells = cells_of(table, dataset, preset="quick", seeds="0,1,5", **({"split": 1} if table == "transfer" else {}))
    frame, tidy, recipes = laid_out(table, cells), CLIPS.tidy(results(cells)), len(cells) // 3
    assert list(frame.columns) == LAYOUTS[table]
    assert set(frame["n_seeds"]) == {3} and set(frame["preset"]) == {"quick"} and set(frame["dataset"]) == {dataset}
    assert frame[["published", "difference"]].isna().all(axis=None)
    places = list(dict.fromkeys(frame["target"]))
    assert frame["target"].tolist() == places * recipes
    for number, (recipe, target) in enumerate(itertools.product(range(recipes), places)):
        of_seeds = tidy.iloc[recipe::recipes]
        values = of_seeds[MEASURED.get(target, target)]
        assert len(values) == 3 and frame["trained_on"][number] == 102
        assert frame["ours"][number] == pytest.approx(values.mean())
        assert frame["std"][number] == pytest.approx(values.std(ddof=1))
        for name in {"expected"} & {*frame}:
            assert frame[name][number] == pytest.approx(of_seeds[name].mean())


def number(text):
    return float(text) if text else math.nan


def test_tables_1_and_2_on_kinetics_sound(any_data):
    for choices, name in (({"method": "smoco", "extra_layer": False}, "SMoCo"),
                          ({"method": "cmacc", "sampler": "released", "extra_layer": True}, "CM-ACC")):
        frame = frame_of("cross_modal", "kinetics_sound", **choices)  # of the row it contradicts least
        assert set(frame["approach"]) == {name} and frame["published"].isna().all()
    frame, first = frame_of("cross_modal", "kinetics_sound"), as_printed("cmacc_table1").set_index("approach")
    approaches = list(first.index)
    assert list(dict.fromkeys(frame["approach"])) == [*approaches[:6], "CM-ACC, feature embedding", "CM-ACC"]
    first.loc["CM-ACC, feature embedding"] = as_printed("cmacc_table2").set_index("embedding_space").loc[
        "Feature Embedding"].reindex(first.columns)
    for row in frame.itertuples():
        expected = number(first.loc[row.approach, COLUMNS[row.target]])
        assert row.published == expected
        comparable = row.approach == "Scratch"  # the others are on some classes fewer, which is a departure
        assert row.difference == pytest.approx(row.ours - expected if comparable else math.nan, nan_ok=True)
    typed = frame.set_index(["approach", "target"])["published"]
    assert typed["XMoCo", "esc50"] == 73.0 and typed["CM-ACC, feature embedding", "ucf101"] == 74.5


def test_table_3_on_kinetics_700(any_data):
    frame = frame_of("ohem_vs_active", "kinetics700", sampler="random,ohem,gradient,feature", batch="32,64,96,128")
    table, names = as_printed("cmacc_table3").set_index("sampler"), {"random": "Random", "ohem": "OHEM",
                                                                     "gradient": "Active"}
    for row in frame.itertuples():
        column = f"{COLUMNS[row.target]}_M{row.batch}"
        known = row.sampler in names and column in table.columns
        expected = number(table.loc[names[row.sampler], column]) if known else math.nan
        assert row.published == pytest.approx(expected, nan_ok=True)
    typed = frame.set_index(["sampler", "batch", "target"])["published"]
    assert typed["gradient", 128, "ucf101"] == 79.2 and typed["ohem", 32, "hmdb51"] == 26.8


NOTHING = (math.nan,) * 3


@pytest.mark.parametrize(("dataset", "trunk", "method", "expected"), [
    ("kinetics_sound", "r3d18", "cmacc", (77.2, 40.6, 77.3)),
    ("kinetics700", "r3d18", "cmacc", (90.2, 61.8, 80.2)),
    ("audioset", "r3d18", "cmacc", (94.1, 66.8, 90.8)),  # of the larger set, and Table 4's own encoder
    ("audioset", "r2plus1d18", "cmacc", (93.5, 67.2, 90.8)),
    ("kinetics700", "r2plus1d18", "cmacc", (math.nan, math.nan, 80.2)),  # the encoder of sound is the same
    ("kinetics_sound", "r3d18", "scratch", (46.5, 17.1, math.nan)),
    ("audioset", "r2plus1d18", "scratch", NOTHING),
    ("kinetics_sound", "r3d18", "supervised", (86.9, 53.1, 78.3)),
    ("kinetics700", "r3d18", "supervised", NOTHING),
    ("kinetics_sound", "r3d18", "xmoco", NOTHING),  # only in Table 1, of the first split
])
def test_tables_4_to_6(any_data, dataset, trunk, method, expected):
    frame = frame_of("transfer", dataset, method="cmacc,xmoco,scratch,supervised", video_trunk=trunk)
    rows = frame[frame["method"] == method]
    assert rows["target"].tolist() == [*COLUMNS]
    assert rows["published"].tolist() == pytest.approx(list(expected), nan_ok=True)


@pytest.mark.parametrize(("dataset", "clips", "expected"), [
    ("audioset", 240_000, (90.7, 62.3, 80.9)), ("audioset", 0, (94.1, 66.8, 90.8)),
    ("audioset", 1000, (math.nan,) * 3), ("kinetics700", 240_000, (90.2, 61.8, 80.2)),
    ("kinetics700", 0, (math.nan,) * 3),  # which the paper never used whole
])
def test_printed_numbers_belong_to_a_number_of_clips(any_data, dataset, clips, expected):
    frame = frame_of("transfer", dataset, clips=clips)
    assert frame["published"].tolist() == pytest.approx(list(expected), nan_ok=True)


def test_what_is_not_quite_the_papers_is_a_departure(any_data):
    frame = frame_of("transfer", "kinetics_sound", variant="own_kept")
    assert frame["departures"].tolist() == [{"own_excluded": False, "data": NOTE}] * 3
    frame = frame_of("cross_modal", "kinetics_sound")
    notes = [{} if approach == "Scratch" else {"data": NOTE} for approach in frame["approach"]]
    assert frame["departures"].tolist() == notes  # an encoder from scratch has seen none of them
    frame = frame_of("transfer", "audioset", targets="esc50+esc10")
    assert frame["departures"].tolist() == [{}, {"data": "classified among all 50 classes"}]


def test_table_4_pre_trained_on_ucf101(any_data):
    """Three encoders, each pre-trained on a split's training part: their mean is what is printed, not one of them."""
    frame = frame_of("transfer", "ucf101", split="1,2,3")
    assert frame["published"].tolist() == [69.1, 33.3] and frame["split"].tolist() == [0, 0]
    frame = frame_of("transfer", "ucf101", split="2,1")
    assert frame["published"].isna().all() and sorted(frame["split"]) == [1, 1, 2, 2]


def test_the_mean_over_folds_is_of_each_seed_and_approach(any_data):
    table, cells = TABLES["transfer"], cells_of("transfer", "esc50", preset="quick", subset=True, targets="esc10",
                                                method="scratch,smoco", split="1,2,3,4,5", seeds="0,1")
    stored, recipes = results(cells), [cell.recipe for cell in cells]
    metrics = [json.loads(text) | {"trained_on": 300.0 + recipe.split}
               for text, recipe in zip(stored["metrics"], recipes, strict=True)]
    stored["metrics"] = [json.dumps(row) for row in metrics]
    order = sorted(range(len(cells)), key=lambda at: (recipes[at].method, cells[at].seed, recipes[at].split))
    values = np.array([metrics[at]["esc10"] for at in order]).reshape(2, 2, 5)
    frame = rows_of(table, stored).set_index("method")
    assert list(frame.index) == ["scratch", "smoco"] and (frame["split"] == 0).all() and (frame["n_seeds"] == 2).all()
    np.testing.assert_allclose(frame["ours"], values.mean((1, 2)))
    np.testing.assert_allclose(frame["std"], values.mean(2).std(1, ddof=1))
    assert set(frame["trained_on"]) == {303}
    some = rows_of(table, stored.drop(index=order[-1])).query("method == 'smoco'")  # whose second seed lacks a fold
    assert sorted(some["split"]) == [0, 1, 2, 3, 4] and (some["n_seeds"] == 1).all()


@pytest.mark.parametrize("table", LAYOUTS)
def test_departures_are_said_and_nothing_is_printed_beside_bundled_data(any_data, table):
    frame = frame_of(table, EMBEDDED[table], variant="released_momentum", precision="bfloat16")
    place = LAYOUTS[table].index("ours")
    assert list(frame.columns) == [*LAYOUTS[table][:place], "departures", *LAYOUTS[table][place:]]
    everything, without_keys = {"momentum": 0.9, "precision": "bfloat16"}, {"precision": "bfloat16"}
    expected = [without_keys if name in ("Scratch", "Supervised") else everything for name in frame.get("approach", [])]
    assert frame["departures"].tolist() == (expected or [everything] * len(frame))
    assert frame[["published", "difference"]].isna().all(axis=None) and frame["ours"].notna().all()
