"""Cells of CM-ACC's tables: which there are, with which recipes, what their keys depend on, and what is refused."""

import itertools

import pytest
from audiovisual_layouts import EMBEDDED, LAYOUTS, RECORDED, laid_out, results
from made_up_pairs import grids, made_up
from stored_cells import refuse

from repro import run_table
from repro.audiovisual import CHARACTERS, MODALITIES, study
from repro.audiovisual.data import members
from repro.audiovisual.pretrain import VERSION
from repro.audiovisual.recipe import SELF_SUPERVISED, paper
from repro.papers.cmacc.tables import TABLES

pytestmark = pytest.mark.usefixtures("one_thread", "runs")
REAL = {name: "multiomniglot" if name == "mutual_information" else "kinetics700" for name in LAYOUTS}


def cells_of(table, dataset=None, **choices):
    return TABLES[table].cells(dataset, device="cpu", **choices)


def recipes_of(*given, **choices):
    return [cell.recipe for cell in cells_of(*given, **choices)]


def fields(recipes, *names):
    return [tuple(getattr(recipe, name) for name in names) for recipe in recipes]


# ---------------------------------------------------------------------------------------------- which there are


def test_the_approaches_of_the_printed_tables(any_data):
    cells = cells_of("cross_modal", "kinetics_sound")
    expected = [
        ("scratch", {}), ("supervised", {}), ("smoco", {}), ("xmoco", {"extra_layer": False}), ("xmoco", {}),
        ("cmacc", {"extra_layer": False}), ("cmacc", {"sampler": "feature"}), ("cmacc", {}),
    ]
    assert [cell.recipe for cell in cells] == [paper("kinetics_sound", method, **given) for method, given in expected]
    for cell in cells:
        assert (cell.study, cell.preset, cell.dataset, cell.seed, cell.version) == (
            "clips", "paper", "kinetics_sound", 0, VERSION
        )
        assert cell.recipe.split == 1 and cell.recipe.targets == "ucf101,hmdb51,esc50"


SIZES = [128, 512, 2048, 8192, 32768]
NINE = range(1, 10)


@pytest.mark.parametrize(("table", "dataset", "names", "expected"), [
    ("ohem_vs_active", "kinetics700", ("sampler", "batch"), itertools.product(("random", "ohem", "gradient"),
                                                                             (32, 64, 128))),
    ("dictionary_size", "synthetic", ("method", "dictionary"), itertools.product(SELF_SUPERVISED, (64, 256, 1024))),
    ("dictionary_size", "kinetics700", ("method", "dictionary"), itertools.product(SELF_SUPERVISED, SIZES)),
    ("mutual_information", "multidigits", ("method", "characters"), itertools.product(SELF_SUPERVISED, NINE)),
    ("mutual_information", "multiomniglot", ("method", "characters"), itertools.product(SELF_SUPERVISED, NINE)),
    ("transfer", "audioset", ("method", "split", "video_trunk"), [("cmacc", 0, "r3d18")]),
    ("category_diversity", "ucf101", ("sampler", "batch", "iterations", "targets"),
     itertools.product(("random", "ohem", "feature", "gradient"), (32, 64, 128), (300,), ("",))),
])
def test_what_tables_sweep(any_data, table, dataset, names, expected):
    assert fields(recipes_of(table, dataset), *names) == [*expected]


def test_dictionary_and_pool_follow_the_batch(any_data):
    assert {(each.dictionary / each.batch, each.pool / each.batch) for each in recipes_of("ohem_vs_active", "audioset")
            } == {(30, 300)}


def test_fields_of_transfer(any_data):
    recipes = recipes_of("transfer", "audioset", video_trunk="r3d18,r2plus1d18")
    assert recipes == [paper("audioset", "cmacc", split=0, video_trunk=trunk) for trunk in ("r3d18", "r2plus1d18")]
    recipe, = recipes_of("transfer", "audioset", targets="esc50+ucf101", split="2", method="smoco")
    assert (recipe.targets, recipe.split, recipe.method) == ("esc50,ucf101", 2, "smoco")
    scratch, cmacc = recipes_of("transfer", "audioset", method="scratch,cmacc", clips="100")
    assert [scratch, cmacc] == [paper("audioset", "scratch", split=0), paper("audioset", "cmacc", split=0, clips=100)]


@pytest.mark.parametrize("table", ["cross_modal", "ohem_vs_active", "dictionary_size", "transfer"])
def test_targets_can_be_chosen_wherever_encoders_are_fine_tuned(any_data, table):
    split = {"split": 1} if table == "transfer" else {}
    usual, cells = cells_of(table, "ucf101", **split), cells_of(table, "ucf101", targets="ucf101", **split)
    assert {cell.recipe.targets for cell in usual} == {"ucf101,hmdb51"}
    assert [cell.recipe for cell in cells] == [cell.recipe.replace(targets="ucf101") for cell in usual]
    frame = laid_out(table, cells)
    assert list(frame.columns) == LAYOUTS[table]  # that fewer targets were asked for is no departure
    assert set(frame["target"]) == {"ucf101"}


@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity"])
@pytest.mark.parametrize(("dataset", "preset", "expected"), [
    ("synthetic", "quick", (32, 64, 128)), ("kinetics700", "paper", (32, 64, 128)), ("ucf101", "quick", (4, 8, 16)),
    ("ucf101", "smoke", (4, 8)), ("synthetic", "smoke", (16, 32)),
])
def test_batches_fit_what_there_is_to_select_from(any_data, table, dataset, preset, expected):
    recipes = recipes_of(table, dataset, preset=preset)
    assert tuple(dict.fromkeys(recipe.batch for recipe in recipes)) == expected


@pytest.mark.parametrize(("dataset", "preset", "size"), [("ucf101", "quick", 33), ("synthetic", "quick", 2000),
                                                        ("synthetic", "smoke", 2000)])
@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity", "dictionary_size", "cross_modal"])
def test_usual_choices_fit_the_embedded_clips_and_some_dozens(any_data, monkeypatch, table, dataset, preset, size):
    """As many as of a sample of UCF101 have sound: a batch is left to select in every cell."""
    monkeypatch.setattr(study, "data_of", lambda recipe: made_up(pretrain=size))
    monkeypatch.setattr(study, "members", lambda recipe, data: members(recipe.replace(size=8), data))
    assert cells_of(table, dataset, preset=preset, **({"subset": True} if dataset == "ucf101" else {}))


# ---------------------------------------------------------------------------------------------- grids of characters


@pytest.mark.parametrize("preset", ["paper", "quick", "smoke"])
@pytest.mark.parametrize("table", LAYOUTS)
def test_every_table_is_also_on_grids_of_characters(any_data, monkeypatch, table, preset):
    monkeypatch.setattr(study, "data_of", lambda recipe: grids(train=recipe.pairs, test=9, held_out=9))
    monkeypatch.setattr(study, "members", members)
    cells = cells_of(table, "multidigits", preset=preset)
    assert {(cell.recipe.targets, cell.recipe.split) for cell in cells} == {("characters", 1)}
    frame = laid_out(table, cells)
    if table == "category_diversity":
        assert set(frame["target"]) == set(MODALITIES)
        return
    found = results(cells)
    assert set(frame["target"]) == {"characters"} and frame["ours"].tolist() == found["linear"].tolist()
    assert frame["linear_held_out"].tolist() == found["linear_held_out"].tolist()


def test_the_same_cell_has_one_key_in_every_table(any_data):
    chosen = {"preset": "quick", "characters": "3", "distinct": "100", "frequency": "zipf", "redrawn": "true"}
    own = {"method": "cmacc", "sampler": "gradient", "batch": 128, "dictionary": 1024, "extra_layer": True}
    keys = [[cell.key for cell in cells_of(table, "multidigits", iterations=624, **own, **chosen)] for table in LAYOUTS]
    assert len({key for found in keys for key in found}) == 1 and [len(found) for found in keys] == [1] * 6


def test_fields_of_grids_sweep_where_a_method_uses_them(any_data):
    recipes = recipes_of("cross_modal", "multiomniglot", method="scratch,supervised,smoco", preset="quick",
                         view="affine,characters", redrawn="false,true", categories="101")
    assert fields(recipes, "method", "view", "redrawn") == [
        ("scratch", "affine", False), ("supervised", "affine", False), ("supervised", "affine", True),
        ("smoco", "affine", False), ("smoco", "affine", True), ("smoco", "characters", False),
        ("smoco", "characters", True),
    ]
    assert {recipe.categories for recipe in recipes} == {101}


# ---------------------------------------------------------------------------------------------- keys


def test_a_key_depends_on_the_targets_data(any_data, monkeypatch):
    before = cells_of("cross_modal", "kinetics_sound")[-1]
    plain = cells_of("category_diversity", "kinetics_sound")[0]
    assert plain.digest == "digest of kinetics_sound" != before.digest
    target = study.target_of

    def other(recipe, name, split):
        found = target(recipe, name, split)
        found.digest += " other" * (name == "hmdb51")
        return found

    monkeypatch.setattr(study, "target_of", other)
    after = cells_of("cross_modal", "kinetics_sound")[-1]
    assert after.key != before.key and after.recipe == before.recipe


def test_what_targets_are_read_for_a_cell(any_data, monkeypatch):
    asked, target = [], study.target_of
    monkeypatch.setattr(study, "target_of", lambda *given: asked.append(given[1:]) or target(*given))
    cells_of("transfer", "audioset")
    assert asked == [*(("ucf101", split) for split in (1, 2, 3)), *(("hmdb51", split) for split in (1, 2, 3)),
                     *(("esc50", split) for split in (1, 2, 3, 4, 5))]


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.fixture
def untrained(any_data, runs, monkeypatch):
    """Fails if anything is trained or written."""
    monkeypatch.setattr("repro.table.train", refuse)
    yield
    assert not runs.exists()


@pytest.mark.parametrize(("table", "choices", "message"), [
    ("mutual_information", {"dataset": "synthetic"}, "dataset='synthetic' is not one of: multidigits, multiomni"),
    ("cross_modal", {"distinct": 5}, "distinct=5 changes nothing of scratch, supervised"),
    ("cross_modal", {"dataset": "multidigits", "redundancy": 0.5}, "redundancy=0.5 changes nothing of"),
    ("cross_modal", {"dataset": "multidigits", "targets": "esc50"}, "targets='esc50' changes nothing of scratch"),
    ("ohem_vs_active", {"dataset": "ucf101", "redundancy": 0}, "redundancy=0 changes nothing of cmacc"),
    ("ohem_vs_active", {"dataset": "multidigits", "view": "drawing"}, "view='drawing' changes nothing of cmacc; smoco"),
    ("ohem_vs_active", {"sampler": "random", "posterior_temperature": 0.3}, "posterior_temperature=0.3 changes noth"),
    ("dictionary_size", {"method": "scratch"}, "method='scratch' is not one of: smoco, xmoco, cmacc"),
    ("dictionary_size", {"dictionary": "9"}, "dictionary=9 should be a multiple of batch=16, .* take 16"),
    ("mutual_information", {"characters": "10"}, "characters=10 should be between 1 and 9"),
    ("transfer", {"clips": 9, "method": "scratch"}, "clips=9 changes nothing of scratch; supervised, smoco"),
    ("transfer", {"split": "7"}, "split=7 should be between 0 and 5"),
    ("transfer", {"split": 2}, "split=2 should be at most 1, of synthetic_video, or 0 for their mean"),
    ("transfer", {"split": 4, "targets": "esc50+hmdb51"}, "split=4 should be at most 3, of hmdb51"),
    ("transfer", {"dataset": "multidigits", "split": 2}, "split=2 changes nothing of cmacc"),
    ("transfer", {"dataset": "multidigits", "video_trunk": "r3d18"}, "video_trunk=.r3d18. changes nothing of cmacc"),
    ("category_diversity", {"redundancy": 1}, "redundancy=1.0 should be between 0 and 1, and less than 1"),
    *(("category_diversity", {"dataset": name}, rf"dataset='{name}' is not one of: synthetic, ucf101, .*, hmdb51$")
      for name in ("audioset", "esc50")),
], ids=str)
def test_what_does_not_exist_is_refused_before_anything_is_computed(untrained, table, choices, message):
    with pytest.raises(ValueError, match=message):
        run_table(table, **{"preset": "smoke", "device": "cpu"} | choices)


@pytest.mark.parametrize("table", RECORDED)
def test_missing_data_of_targets_are_missed_beforehand(untrained, monkeypatch, table):
    def missing(recipe, name, split):
        raise FileNotFoundError(f"{name} is not there")

    monkeypatch.setattr(study, "target_of", missing)
    if table == "category_diversity":  # which has none
        assert len(cells_of(table, "kinetics700")) == 12
        return
    with pytest.raises(FileNotFoundError, match="ucf101 is not there; or choose other targets than ucf101"):
        run_table(table, "kinetics700")


def test_data_sets_of_tables_begin_with_the_one_that_comes_with_the_package_and_the_papers():
    expected = ("kinetics_sound", "kinetics700", "kinetics700", "multiomniglot", "kinetics700", "ucf101")
    assert [TABLES[name].datasets[1] for name in LAYOUTS] == [*expected]
    assert list(TABLES) == list(LAYOUTS)
    assert TABLES["mutual_information"].datasets == CHARACTERS
    assert {EMBEDDED[name] for name in RECORDED} == {"synthetic"}
