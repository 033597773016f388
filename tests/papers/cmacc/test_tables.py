"""CM-ACC's tables: their runs, what is refused, the printed numbers beside them."""

import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from made_up_measures import asked, finished, laid_out
from made_up_pairs import grids, made_up

from repro import run_table
from repro.audiovisual import CHARACTERS, MODALITIES, study
from repro.audiovisual.data import members
from repro.audiovisual.recipe import CLIPS, paper
from repro.papers.cmacc.tables import TABLES
from repro.report.printed import as_printed
from repro.report.text import remarks

COLUMNS = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}
NOTE = "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700"
NAN, NOTHING = math.nan, (math.nan,) * 3
TAIL = ["ours", "std", "n_seeds", "printed", "difference", "preset", "dataset", "trained_on"]
LAYOUTS = {
    "cross_modal": ["approach", "target", *TAIL],
    "ohem_vs_active": ["sampler", "batch", "target", *TAIL],
    "dictionary_size": ["method", "dictionary", "target", *TAIL],
    "mutual_information": ["method", "characters", "target", *TAIL],
    "transfer": ["method", "video_trunk", "split", "target", *TAIL],
    "category_diversity": ["sampler", "batch", "target", *TAIL, "expected", "version"],
}
MEASURED = {  # else by the target
    "characters": "linear", "new_drawings": "linear_held_out", "video": "categories_video", "audio": "categories_audio",
}


def recipes_of(table, dataset=None, **choices):
    return [run.recipe for run in asked(TABLES[table], dataset, **choices)]


def measures():
    """What gives every run made-up results, none of them twice."""
    values = itertools.count(40.0, 0.25)

    def measure(run):
        names = [name for name in run.recipe.targets.split(",") if name and name != "characters"]
        names += ["linear", "linear_held_out"] if run.recipe.dataset in CHARACTERS else []
        names += ["categories_video", "categories_audio", "expected"] if run.recipe.method == "cmacc" else []
        return {"trained_on": 100.0 + run.seed, **{name: next(values) for name in names}}

    return measure


def frame_of(table, dataset=None, **choices):
    """The rows of a table from such results."""
    return laid_out(TABLES[table], dataset, measure=measures(), **choices)


def tidy_of(table, dataset=None, **choices):
    """The same results, a row for each run."""
    runs = [run for run in asked(TABLES[table], dataset, **choices)]
    return CLIPS.tidy(finished(runs, measures()))


def test_fields_that_are_asked_for():
    recipes = recipes_of("transfer", "audioset", video_trunk="r3d18,r2plus1d18")
    assert recipes == [paper("audioset", "cmacc", split=0, video_trunk=trunk) for trunk in ("r3d18", "r2plus1d18")]
    recipe, = recipes_of("transfer", "audioset", targets="esc50+ucf101", split="2", method="smoco")
    assert (recipe.targets, recipe.split, recipe.method) == ("esc50,ucf101", 2, "smoco")
    recipes = recipes_of("transfer", "audioset", method="scratch,cmacc", clips="100")  # of which scratch sees none
    assert recipes == [paper("audioset", "scratch", split=0), paper("audioset", "cmacc", split=0, clips=100)]
    recipes = recipes_of("cross_modal", "multiomniglot", method="scratch,supervised,smoco", preset="quick",
                         view="affine,characters", redrawn="false,true", categories="101")
    assert [(recipe.method, recipe.view, recipe.redrawn) for recipe in recipes] == [
        ("scratch", "affine", False), ("supervised", "affine", False), ("supervised", "affine", True),
        ("smoco", "affine", False), ("smoco", "affine", True), ("smoco", "characters", False),
        ("smoco", "characters", True),
    ]


@pytest.mark.parametrize(("dataset", "preset", "size", "expected"), [
    ("synthetic", "quick", 2000, (32, 64, 128)), ("synthetic", "smoke", 2000, (16, 32)),
    ("ucf101", "quick", 33, (4, 8, 16)),
])
@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity", "dictionary_size", "cross_modal"])
def test_usual_choices_fit_the_bundled_clips_and_some_dozens(table, dataset, preset, size, expected):
    """As many as of a sample of UCF101 have sound: a batch is left to select in every run."""
    recipes = recipes_of(table, dataset, preset=preset, subset=dataset == "ucf101")
    for recipe in recipes:
        members(recipe.replace(size=8), made_up(pretrain=size))
    if table in ("ohem_vs_active", "category_diversity"):
        assert tuple(dict.fromkeys(recipe.batch for recipe in recipes)) == expected


@pytest.mark.parametrize("preset", ["paper", "quick", "smoke"])
@pytest.mark.parametrize("table", LAYOUTS)
def test_every_table_is_also_on_grids_of_characters(table, preset):
    recipes = recipes_of(table, "multidigits", preset=preset)
    assert {(recipe.targets, recipe.split) for recipe in recipes} == {("characters", 1)}
    for recipe in recipes:
        members(recipe, grids(train=recipe.pairs))
    frame = frame_of(table, "multidigits", preset=preset)
    expected = set(MODALITIES) if table == "category_diversity" else {"characters", "new_drawings"}
    assert set(frame["target"]) == expected


def test_an_id_depends_on_the_targets_data(monkeypatch):
    def run(table, **digests):
        named = {name: SimpleNamespace(name=name, digest=digests.get(name, "usual"))
                 for name in ("kinetics_sound", "ucf101", "hmdb51", "esc50")}
        monkeypatch.setattr(study, "data_of", lambda recipe: named[recipe.dataset])
        monkeypatch.setattr(study, "target_of", lambda recipe, name, split: named[name])
        return TABLES[table].runs("kinetics_sound", device="cpu")[-1]

    for module, name in ((study, "members"), (study, "check_crop"), (study.finetune, "recordings")):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(study, "channels_of", lambda *_: 1)
    before, after = run("cross_modal"), run("cross_modal", hmdb51="other")
    assert after.id != before.id and after.recipe == before.recipe
    assert run("category_diversity", hmdb51="other").digest == "usual"  # which has no targets


@pytest.mark.usefixtures("runs_root")
@pytest.mark.parametrize(("table", "choices", "message"), [
    ("mutual_information", {"dataset": "synthetic"}, "dataset='synthetic' is not one of: multidigits, multiomni"),
    ("cross_modal", {"distinct": 5}, "distinct=5 changes nothing of scratch, supervised"),
    ("cross_modal", {"dataset": "multidigits", "targets": "esc50"}, "targets='esc50' changes nothing of scratch"),
    ("ohem_vs_active", {"dataset": "ucf101", "redundancy": 0}, "redundancy=0 changes nothing of cmacc"),
    ("ohem_vs_active", {"dataset": "multidigits", "view": "characters"}, "view='characters' changes nothing of cm"),
    ("ohem_vs_active", {"sampler": "random", "posterior_temperature": 0.3}, "posterior_temperature=0.3 changes noth"),
    ("dictionary_size", {"method": "scratch"}, "method='scratch' is not one of: smoco, xmoco, cmacc"),
    ("transfer", {"clips": 9, "method": "scratch"}, "clips=9 changes nothing of scratch; used by supervised, smoco"),
    ("transfer", {"dataset": "multidigits", "split": 2}, "split=2 changes nothing of cmacc"),
    ("transfer", {"dataset": "multidigits", "video_trunk": "r3d18"}, "video_trunk=.r3d18. changes nothing of cmacc"),
    *(("category_diversity", {"dataset": name}, rf"dataset='{name}' is not one of: synthetic, ucf101, .*, hmdb51$")
      for name in ("audioset", "esc50")),
], ids=str)
def test_what_does_not_exist_is_refused_before_anything_is_computed(table, choices, message):
    with pytest.raises(ValueError, match=message):
        run_table(table, **{"preset": "smoke", "device": "cpu"} | choices)


@pytest.mark.parametrize(("table", "dataset"), [
    (table, dataset) for table in LAYOUTS for dataset in ("kinetics700", "multiomniglot")
    if dataset in TABLES[table].datasets])
def test_columns_and_nothing_printed_of_other_recipes(table, dataset):
    """A row for each recipe and target has what was measured there."""
    frame, tidy = (of(table, dataset, preset="quick") for of in (frame_of, tidy_of))
    assert list(frame.columns) == LAYOUTS[table]
    assert set(frame["preset"]) == {"quick"} and set(frame["dataset"]) == {dataset}
    assert frame["difference"].isna().all() and set(frame["trained_on"]) == {100}
    places, runs = list(dict.fromkeys(frame["target"])), tidy.to_dict("records")
    expected = [(place, run[MEASURED.get(place, place)]) for run in runs for place in places]
    assert [*zip(frame["target"], frame["ours"], strict=True)] == expected
    if "expected" in frame:
        assert frame["expected"].tolist() == [run["expected"] for run in runs for _ in places]


def number(text):
    return float(text) if text else NAN


def test_tables_1_and_2_on_kinetics_sound():
    for choices, name in (({"method": "smoco", "extra_layer": False}, "SMoCo"),
                          ({"method": "cmacc", "sampler": "released", "extra_layer": True}, "CM-ACC")):
        frame = frame_of("cross_modal", "kinetics_sound", **choices)  # of the row it contradicts least
        assert set(frame["approach"]) == {name} and frame["printed"].isna().all()
    frame, first = frame_of("cross_modal", "kinetics_sound"), as_printed("cmacc_table1").set_index("approach")
    approaches = list(first.index)
    assert list(dict.fromkeys(frame["approach"])) == [*approaches[:6], "CM-ACC, feature embedding", "CM-ACC"]
    first.loc["CM-ACC, feature embedding"] = as_printed("cmacc_table2").set_index("embedding_space").loc[
        "Feature Embedding"].reindex(first.columns)
    for row in frame.itertuples():
        expected = number(first.loc[row.approach, COLUMNS[row.target]])
        assert row.printed == expected
        comparable = row.approach == "Scratch"  # the others are on some classes fewer, which is a change
        assert row.difference == pytest.approx(row.ours - expected if comparable else NAN, nan_ok=True)
        assert row.changed == ({} if comparable else {"data": NOTE})
    typed = frame.set_index(["approach", "target"])["printed"]
    assert typed["XMoCo", "esc50"] == 73.0 and typed["CM-ACC, feature embedding", "ucf101"] == 74.5


def test_table_3_on_kinetics_700():
    frame = frame_of("ohem_vs_active", "kinetics700", sampler="random,ohem,gradient,feature", batch="32,64,96,128")
    table, names = as_printed("cmacc_table3").set_index("sampler"), {"random": "Random", "ohem": "OHEM",
                                                                     "gradient": "Active"}
    for row in frame.itertuples():
        column = f"{COLUMNS[row.target]}_M{row.batch}"
        known = row.sampler in names and column in table.columns
        expected = number(table.loc[names[row.sampler], column]) if known else NAN
        assert row.printed == pytest.approx(expected, nan_ok=True)
    typed = frame.set_index(["sampler", "batch", "target"])["printed"]
    assert typed["gradient", 128, "ucf101"] == 79.2 and typed["ohem", 32, "hmdb51"] == 26.8
    assert frame_of("ohem_vs_active", "audioset")["printed"].isna().all()


@pytest.mark.parametrize(("dataset", "choices", "expected"), [
    ("kinetics_sound", {}, (77.2, 40.6, 77.3)),
    ("kinetics700", {}, (90.2, 61.8, 80.2)),
    ("audioset", {}, (94.1, 66.8, 90.8)),  # of the larger set, and Table 4's own encoder
    ("audioset", {"video_trunk": "r2plus1d18"}, (93.5, 67.2, 90.8)),
    ("kinetics700", {"video_trunk": "r2plus1d18"}, (NAN, NAN, 80.2)),  # the encoder of sound is the same
    ("kinetics_sound", {"method": "scratch"}, (46.5, 17.1, NAN)),
    ("audioset", {"method": "scratch", "video_trunk": "r2plus1d18"}, NOTHING),
    ("kinetics_sound", {"method": "supervised"}, (86.9, 53.1, 78.3)),
    ("kinetics700", {"method": "supervised"}, NOTHING),
    ("kinetics_sound", {"method": "xmoco"}, NOTHING),  # only in Table 1, of the first split
    ("audioset", {"clips": 240_000}, (90.7, 62.3, 80.9)),
    ("audioset", {"clips": 1000}, NOTHING),
    ("kinetics700", {"clips": 240_000}, (90.2, 61.8, 80.2)),
    ("kinetics700", {"clips": 0}, NOTHING),  # which the paper never used whole
])
def test_tables_4_to_6(dataset, choices, expected):
    rows = frame_of("transfer", dataset, **{"video_trunk": "r3d18"} | choices)
    assert rows["target"].tolist() == [*COLUMNS]
    assert rows["printed"].tolist() == pytest.approx(list(expected), nan_ok=True)


def test_what_is_not_quite_the_papers_is_a_change():
    frame = frame_of("transfer", "kinetics_sound", variant="own_kept")
    assert frame["changed"].tolist() == [{"own_excluded": False, "data": NOTE}] * 3
    frame = frame_of("transfer", "audioset", targets="esc50+esc10")
    assert frame["changed"].tolist() == [{}, {"data": "classified among all 50 classes"}]


def test_table_4_pre_trained_on_ucf101():
    """Three encoders, each pre-trained on a split's training part: their mean is what is printed, not one of them."""
    frame = frame_of("transfer", "ucf101", split="1,2,3")
    assert frame["printed"].tolist() == [69.1, 33.3] and frame["split"].tolist() == [0, 0]
    splits = asked(TABLES["transfer"], "ucf101", split="1,2,3")
    stored = finished(splits, measures())
    stored["cost"] = [json.dumps({"finished": "", "device": f"no. {run.recipe.split // 3}"}) for run in splits]
    frame = TABLES["transfer"].numbers({run.id: run for run in splits}, stored)
    assert remarks(frame) == ["all rows: 2 runs on no. 0, 1 on no. 1"]
    frame = frame_of("transfer", "ucf101", split="2,1")
    assert frame["printed"].isna().all() and sorted(frame["split"]) == [1, 1, 2, 2]


def test_the_mean_over_folds_is_of_each_seed_and_approach():
    methods = ("scratch", "smoco")

    def value(method, seed, split):
        return 40.0 + 7 * methods.index(method) + 3 * seed * split + split**2

    def measure(run):
        recipe = run.recipe
        return {"trained_on": 300.0 + recipe.split, "esc10": value(recipe.method, run.seed, recipe.split)}

    table, choices = TABLES["transfer"], {"preset": "quick", "subset": True, "targets": "esc10", "seeds": "0,1"}
    choices |= {"method": ",".join(methods), "split": "1,2,3,4,5"}
    frame = laid_out(table, "esc50", measure=measure, **choices).set_index("method")
    values = np.array([value(*run) for run in itertools.product(methods, (0, 1), range(1, 6))]).reshape(2, 2, 5)
    assert list(frame.index) == [*methods] and (frame["split"] == 0).all() and (frame["n_seeds"] == 2).all()
    np.testing.assert_allclose(frame["ours"], values.mean((1, 2)))
    np.testing.assert_allclose(frame["std"], values.mean(2).std(1, ddof=1))
    assert set(frame["trained_on"]) == {303}
    runs = asked(table, "esc50", **choices)
    stored = finished(runs[:-1], measure)  # the second seed lacks a fold
    some = table.numbers({run.id: run for run in runs}, stored).query("method == 'smoco'")
    assert sorted(some["split"]) == [0, 1, 2, 3, 4] and (some["n_seeds"] == 1).all()
