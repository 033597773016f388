"""The engine of the tables, with a made-up study: rows, fields asked for, finished runs among rows, and numbers."""

import dataclasses
import errno
import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from made_up_measures import finished_row
from made_up_study import TOY, Toy, Two, frame, paper, quick, stored

from repro import papers, run_table
from repro.experiments import finished
from repro.papers.drawing import draw
from repro.recipe import setting
from repro.report.text import readable, remarks
from repro.run import store
from repro.run.store import Store
from repro.table import FROM_PRESET, Table, by_preset

PRINTED = {("plain", 1): 60.0, ("heavy", 1): 70.0, ("heavy", 3): 75.0}
COST = {"finished": "2026", "commit": "c"}
TAIL = ["ours", "std", "n_seeds", "printed", "difference", "preset", "dataset"]


def table(*rows, **changes):
    usual = {"name": "made_up", "title": "Made up", "place": "Table 1", "study": TOY, "datasets": ("synthetic", "ucla")}
    return Table(**usual | {"measures": ("linear", "knn1"), "rows": rows} | changes)


def printed(row):
    return PRINTED.get((row.method, row.depth), math.nan)


SWEEP = table({"method": ("plain", "heavy"), "depth": (1, 3)}, printed=printed, columns=("method", "depth"))
CALLED = table(
    {"approach": "Plain", "method": "plain", "depth": FROM_PRESET},
    {"approach": "Light", "method": "heavy", "weight": 0.5, "depth": FROM_PRESET},
    {"approach": "Heavy", "method": "heavy", "depth": FROM_PRESET},
    name="called", columns=("approach", "depth"),
)
METHODS = table({"method": ("plain", "heavy")}, name="methods", methods=("plain", "heavy", "both"))


def recipes(declared, *choices, **fields):
    """Of what a table asks for, the recipes."""
    return [row.recipe for row in declared.asked(*choices, **fields)]


# ---------------------------------------------------------------------------------------------- rows


def test_a_row_is_a_product_and_seeds_come_one_after_the_other():
    runs = SWEEP.runs(seeds="4,2")
    product = [(seed, method, depth) for seed in (4, 2) for method in ("plain", "heavy") for depth in (1, 3)]
    assert [(run.seed, run.recipe.method, run.recipe.depth) for run in runs] == product
    for run in runs:
        assert run.recipe == quick("synthetic", run.recipe.method, depth=run.recipe.depth)
        assert (run.study, run.preset, run.dataset, run.digest) == (
            "toys", "quick", "synthetic", "digest of synthetic")
        assert (run.version, run.evaluation, run.changes) == (3, 2, {"depth": run.recipe.depth})
    assert len({run.id for run in runs}) == 8


@pytest.mark.parametrize(("dataset", "preset", "resolved"), [
    (None, "auto", "quick"), ("ucla", "auto", "paper"), ("ucla", "quick", "quick"), ("synthetic", "paper", "paper"),
])
def test_auto_is_the_papers_recipe_on_real_data(dataset, preset, resolved):
    run, _ = METHODS.runs(dataset, preset=preset)
    assert (run.preset, run.dataset, run.changes) == (resolved, dataset or "synthetic", {})
    assert run.recipe == TOY.presets[resolved](dataset or "synthetic", "plain")


def test_rows_may_be_called_something_and_leave_a_field_to_the_preset():
    expected = [paper("ucla", "plain"), paper("ucla", "heavy", weight=0.5), paper("ucla", "heavy")]
    assert recipes(CALLED, "ucla", "paper") == expected
    assert CALLED.shown == ["approach", "depth"] and METHODS.shown == ["method"]
    assert recipes(CALLED, "ucla", "paper", depth="4")[1] == paper("ucla", "heavy", weight=0.5, depth=4)


def test_a_field_that_a_method_does_not_use_stays_as_its_preset_has_it():
    weighted = table({"method": ("plain", "heavy"), "weight": (0.0, 3.0), "power": 5})  # no weight uses no power
    assert recipes(weighted, "ucla", "paper") == [
        paper("ucla", "plain"), paper("ucla", "heavy", weight=0.0), paper("ucla", "heavy", weight=3.0, power=5)
    ]
    found = recipes(METHODS, "ucla", "paper", method="heavy", weight="0,1", power="2,5")
    assert [(recipe.weight, recipe.power) for recipe in found] == [(0.0, 2), (1.0, 2), (1.0, 5)]


# ---------------------------------------------------------------------------------------------- asked for


def test_every_combination_asked_for_replaces_the_field_in_rows_that_use_it():
    asked = {"depth": "1,3", "weight": [0.5, 2], "method": "plain,heavy,both"}
    expected = [paper("ucla", "plain", depth=depth) for depth in (1, 3)]
    expected += [paper("ucla", method, depth=depth, weight=weight)
                 for method in ("heavy", "both") for depth, weight in itertools.product((1, 3), (0.5, 2.0))]
    assert recipes(METHODS, "ucla", "paper", **asked) == expected
    assert recipes(SWEEP, "ucla", "paper", depth=7) == [paper("ucla", name, depth=7) for name in ("plain", "heavy")]


@pytest.mark.parametrize(("asked", "message"), [
    ({"method": "plain", "weight": 3}, r"^weight=3 changes nothing of plain; used by heavy, both: leave it out, or ch"),
    ({"method": "plain", "depth": 2, "power": "3,4"}, r"^power='3,4' changes nothing of plain; used by heavy, both"),
    ({"weight": 0, "power": 3}, r"^power=3 changes nothing of plain, heavy; "),
    ({"variant": "light", "method": "plain"}, r"^variant='light' changes nothing of plain; used by heavy, both: leave"),
    ({"variant": "frozen"}, r"^variant='frozen' changes nothing of plain, heavy; used by both: leave it out"),
])
def test_a_field_or_variant_that_no_row_uses_is_refused_naming_who_does(asked, message):
    with pytest.raises(ValueError, match=message):
        METHODS.runs("ucla", **asked)


def test_methods_are_those_of_the_rows_unless_the_table_says_which_and_leave_out_rows_of_others():
    assert (SWEEP.known_methods, METHODS.known_methods) == (["plain", "heavy"], ["plain", "heavy", "both"])
    assert recipes(METHODS, "ucla", "paper", method="both,plain") == [paper("ucla", "both"), paper("ucla", "plain")]
    with pytest.raises(ValueError, match=r"method='both' is not one of: plain, heavy$"):
        SWEEP.runs(method="both")
    assert recipes(CALLED, "ucla", "paper", method="heavy") == recipes(CALLED, "ucla", "paper")[1:]
    assert recipes(CALLED, "ucla", "paper", method="plain", depth=2) == [paper("ucla", "plain", depth=2)]


def test_a_variant_is_a_bundle_of_fields_for_those_who_use_them():
    bundle = {"weight": 0.5, "power": 7}
    assert recipes(METHODS, "ucla", "paper", "light", depth="1,2") == [
        paper("ucla", "plain"), paper("ucla", "plain", depth=2),
        paper("ucla", "heavy", **bundle), paper("ucla", "heavy", depth=2, **bundle),
    ]
    asked = recipes(METHODS, "ucla", "paper", "light", method="heavy", power=4)  # what is asked for itself counts
    assert asked == [paper("ucla", "heavy", weight=0.5, power=4)]


def test_what_cannot_be_trained_is_refused_before_data_are_asked_for():
    def check(recipe, device):
        raise ValueError(f"{recipe.method} is not for {device.type}")

    def missing(recipe):
        raise FileNotFoundError("get it")

    absent = dataclasses.replace(TOY, load=missing)
    for study, error, message in ((dataclasses.replace(absent, check=check), ValueError, "plain is not for cpu"),
                                  (absent, FileNotFoundError, "get it")):
        with pytest.raises(error, match=message):
            dataclasses.replace(SWEEP, study=study).runs("ucla", device="cpu")


# ---------------------------------------------------------------------------------------------- changes


def asked(declared, *choices, **fields):
    """What a table asks for as (method, changes, changed)."""
    return [(row.recipe.method, row.changes, row.changed) for row in declared.asked(*choices, **fields)]


def test_changes_are_the_fields_asked_for_that_the_preset_has_otherwise():
    assert asked(METHODS, "ucla", "paper") == [("plain", {}, {}), ("heavy", {}, {})]
    batch = {"batch": 16}  # the rate follows
    assert asked(METHODS, "ucla", "paper", batch=16, depth=1) == [("plain", batch, batch), ("heavy", batch, batch)]
    both = {"depth": 2, "weight": 0.5}  # in the order of the recipe's fields
    assert asked(METHODS, "ucla", "paper", method="heavy", weight=0.5, depth=2) == [("heavy", both, both)]
    light = {"weight": 0.5, "power": 7}
    assert asked(METHODS, "ucla", "paper", "light", method="heavy") == [("heavy", light, light)]


def test_what_a_row_sweeps_or_fixes_does_not_differ_but_what_replaces_it_does():
    assert asked(SWEEP, "ucla", "paper", method="plain") == [("plain", {}, {}), ("plain", {"depth": 3}, {})]
    assert asked(SWEEP, "ucla", "paper", method="plain", depth=7) == [("plain", {"depth": 7}, {})]
    fixed = table({"method": "heavy", "depth": 4, "weight": 2.0})
    assert asked(fixed, "ucla", "paper") == [("heavy", {"depth": 4, "weight": 2.0}, {})]
    assert asked(fixed, "ucla", "paper", weight=1) == [("heavy", {"depth": 4}, {"weight": 1.0})]
    called = CALLED.asked("ucla", "paper", weight=0.5, depth=3, batch=4)
    assert [(row.row, row.called, row.changed) for row in called] == [
        (0, {"approach": "Plain"}, {"batch": 4}), (1, {"approach": "Light"}, {"batch": 4})]  # Heavy is the same recipe
    heavy_first = dataclasses.replace(CALLED, rows=CALLED.rows[::-1]).asked("ucla", "paper", weight=0.5)
    assert [(row.called["approach"], row.changed) for row in heavy_first] == [("Light", {}), ("Plain", {})]


def test_fields_for_which_the_paper_prints_a_table_each_are_columns_and_not_called_changed():
    printed_depths = table({"method": ("plain", "heavy")}, printed_by=("depth",), printed=printed)
    assert asked(printed_depths, "ucla", "paper", depth=3, method="heavy") == [("heavy", {"depth": 3}, {})]
    assert printed_depths.columns_asked({"depth": 3, "batch": "auto", "power": "2,3"}) == ["depth", "power"]


# ---------------------------------------------------------------------------------------------- finished runs


def test_tidy_runs_have_fields_and_measures_and_say_what_changed():
    first = stored("heavy", 61.0, batch=16, depth=3)
    early = {name: value for name, value in paper("ucla", "both").to_dict().items() if name not in ("noise", "subset")}
    last = stored("both", 62.0, recipe=early, measures={"knn1": 7.0, "weight": 99.0})
    runs = TOY.tidy(frame(first, stored(study="others"), last))
    assert runs["id"].tolist() == [first["id"], last["id"]] and runs["linear"].tolist() == [61.0, 62.0]
    assert runs["changes"].tolist() == [{"batch": 16, "depth": 3}, {}]
    assert runs["rate"].tolist() == [0.2, 0.1] and runs["noise"].tolist() == ["live", "live"]  # as it was before
    np.testing.assert_equal(runs["knn1"].tolist(), [math.nan, 7.0])
    assert runs["weight"].tolist() == [1.0, 99.0]  # a measure goes before a field
    assert {*TOY.tidy(frame())} == {*runs} - {"linear", "knn1", "evaluation"}


@pytest.mark.parametrize(("change", "message"), [
    ({"preset": "papr"}, "did you mean 'paper'? preset='papr' is not one of: paper, quick, smoke"),
    ({"dataset": "uclla (subset)"}, "did you mean 'ucla'? dataset='uclla' is not one of: "),
    ({"recipe": '{"depths": 3}'}, "did you mean 'depth'? field of Toy='depths' is not one of"),
    ({"recipe": '{"depth": "3"}'}, "depth='3' is of type str"),
    ({"seed": 1}, "its recipe, seed, data and version are those of "),
    ({"recipe": stored(depth=3)["recipe"]},
     f"its recipe, seed, data and version are those of {stored(depth=3)['id']}"),
    ({"preset": "smoke"}, "preset smoke with its changes has rate=0.05, and its recipe rate=0.1"),
    ({"changes": '{"depth": 3}'}, "preset paper with its changes has depth=3, and its recipe depth=1"),
    ({"changes": '{"noisy": 3}'}, "did you mean 'noise'? field of Toy='noisy' is not one of"),
    ({"metrics": '{"knn1": 50.0}'}, "it lacks linear"),
    ({"dataset": "ntu"}, "preset paper with its changes has dataset='ntu', and its recipe dataset='ucla'"),
    ({"dataset": "ucla (copy)"}, "preset paper with its changes has subset=True, and its recipe subset=False"),
    *(({"metrics": json.dumps({"linear": 50.0, "evaluation": number})}, f"evaluation={number} should be from 1")
      for number in (-1, 0, 99, 300_000_000)),
    *(({"metrics": json.dumps({"linear": 50.0} | {name: value})}, f"{name}={value} should be from 0 to 100")
      for name, value in (("linear", -5), ("linear_best", 12345), ("knn1", 1e308))),
])
def test_a_stored_run_that_cannot_be_read_is_left_out_with_one_line(change, message, capsys):
    row, sound = stored() | change, stored()
    for _ in range(2):
        assert TOY.tidy(frame(sound, row))["id"].tolist() == [sound["id"]]
    line, = capsys.readouterr().err.splitlines()
    assert line.startswith(f"the run {row['id']} cannot be read and is left out ({message}")
    assert "; figures/runs.csv: restore it from version control, or take the version that wrote it" in line


@pytest.mark.parametrize(("metadata", "version", "refused"), [({}, 3, True), ({"before": 1}, 3, False), ({}, 4, False)])
def test_a_field_that_would_move_the_ids_of_committed_runs_is_refused(monkeypatch, metadata, version, refused):
    fields = frozenset(Toy().to_dict()) - {"noise", "subset"}  # which say what was before
    monkeypatch.setattr("repro.table.committed_fields", lambda: {("toys", 3): fields, ("others", 3): set()})
    recipe = dataclasses.make_dataclass("More", [("more", int, setting(1, "assumed", **metadata))], bases=(Toy,),
                                        frozen=True, kw_only=True)
    if refused:
        with pytest.raises(ValueError, match=r"More\.more has come since runs of toys were committed.*write before="):
            dataclasses.replace(TOY, recipe=recipe, version=version)
    else:
        hashed = json.loads(dataclasses.replace(TOY, recipe=recipe, version=version).recipe().canonical())
        assert ("more" in hashed) == (version == 4)


@pytest.mark.parametrize("name", ["version", "ours", "whose"])
def test_a_field_of_a_recipe_with_the_name_of_a_column_is_refused_where_it_is_declared(name):
    fields = [(name, int, setting(1, "assumed", before=1))]
    recipe = dataclasses.make_dataclass("Own", fields, bases=(Toy,), frozen=True, kw_only=True)
    with pytest.raises(ValueError, match=rf"Own\.{name} has the name of a column of tables.*; rename the field"):
        dataclasses.replace(TOY, recipe=recipe)


def test_a_misspelt_field_of_a_variant_or_a_row_is_refused():
    with pytest.raises(ValueError, match=r"did you mean 'depth'\? field of variant deep='detph' is not one of: "):
        dataclasses.replace(TOY, variants={"deep": {"detph": 9}})
    for rows in ([{"method": "plain", "detph": 4}], [{"method": "plain"}, {"method": "heavy", "detph": "4"}],
                 [{"method": "plain", "detph": ("1", "2")}]):
        with pytest.raises(ValueError, match=r"'depth'\? what not all rows of made_up are called.*='detph' is"):
            table(*rows)


# ---------------------------------------------------------------------------------------------- numbers


def written(run, linear=50.0, **measures):
    """The row of runs.csv of a run."""
    return finished_row(run, linear=linear, **measures)


def numbers(declared, measured, *choices, **fields):
    """The rows of a table; `measured` gives the row of runs.csv of a run, or None where it is not finished."""
    runs = declared.runs(*choices, **fields)
    rows = [row for run in runs if (row := measured(run))]
    swept = {name: value for name, value in fields.items() if name in declared.study.fields}
    return declared.numbers({run.id: run for run in runs}, frame(*rows), declared.columns_asked(swept))


def test_means_and_deviations_of_random_numbers_are_those_of_pandas():
    draw, known = np.random.default_rng(0), []

    def measured(run):
        if run.seed and draw.uniform() < 0.3:
            return None
        known.append((run.recipe.method, run.recipe.depth, draw.uniform(0, 100), draw.uniform()))
        return written(run, known[-1][2], knn1=known[-1][3])

    found = numbers(SWEEP, measured, "ucla", seeds="0-4").set_index(["method", "depth"])
    groups = pd.DataFrame(known, columns=["method", "depth", "linear", "knn1"]).groupby(["method", "depth"], sort=False)
    expected = groups["linear"].agg(ours="mean", std="std", n_seeds="count")
    order = [("plain", 1), ("plain", 3), ("heavy", 1), ("heavy", 3)]
    assert found.index.tolist() == order and expected["n_seeds"].nunique() > 1
    pd.testing.assert_frame_equal(found[["ours", "std", "n_seeds"]], expected.loc[order])
    pd.testing.assert_series_equal(found["knn1"], groups["knn1"].mean().loc[order])
    assert list(found.columns) == [*TAIL, "knn1"]
    for (method, depth), row in found.iterrows():
        number = PRINTED.get((method, depth), math.nan)
        np.testing.assert_equal([row["printed"], row["difference"]], [number, row["ours"] - number])


@pytest.mark.parametrize("columns", [(), ("weight",), ("depth",)])
def test_two_recipes_never_share_a_row(columns):
    """Whose columns are alike where those that differ are of one row alone."""
    unlike = table({"method": "plain"}, {"method": "heavy", "weight": (1.0, 2.0)}, columns=columns)
    values = {("plain", 1.0): 10.0, ("heavy", 1.0): 50.0, ("heavy", 2.0): 90.0}
    found = numbers(unlike, lambda run: written(run, values[run.recipe.method, run.recipe.weight] + run.seed),
                    "ucla", seeds="0,1")
    assert found[["method", "weight", "ours", "n_seeds"]].values.tolist() == [
        ["plain", 1.0, 10.5, 2], ["heavy", 1.0, 50.5, 2], ["heavy", 2.0, 90.5, 2]]
    if not columns:
        assert list(found.columns)[:2] == ["method", "weight"]


@pytest.mark.parametrize(("preset", "trained", "dataset", "label", "printed", "difference"), [
    ("smoke", "smoke", "ucla", "ucla", 60.0, math.nan), ("paper", "paper", "ucla", "ucla (subset)", 60.0, math.nan),
    ("paper", "paper", "synthetic", "synthetic", math.nan, math.nan),
    ("quick", "paper", "ucla", "ucla", 60.0, math.nan), ("paper", "quick", "ucla", "ucla", 60.0, -10.0),
])
def test_nothing_is_subtracted_where_the_preset_asked_for_or_data_are_other_than_the_papers(
    preset, trained, dataset, label, printed, difference
):
    changes = {"depth": 1} if trained == "quick" else {}
    found = numbers(SWEEP, lambda run: written(dataclasses.replace(run, preset=trained, changes=changes)),
                    dataset, preset=preset, method="plain", depth=1, subset=label != dataset)
    np.testing.assert_equal(found[["printed", "difference"]].to_numpy(), [[printed, difference]])
    assert found[["preset", "dataset"]].values.tolist() == [[preset, label]] and "changed" not in found


def test_nothing_is_subtracted_from_a_row_that_is_changed():
    found = numbers(SWEEP, lambda run: written(run, 50.0 + run.recipe.batch), "ucla", method="plain", batch="8,4")
    assert list(found.columns)[:5] == ["method", "depth", "batch", "changed", "ours"]
    assert found["changed"].tolist() == [{}, {"batch": 4}, {}, {"batch": 4}]
    np.testing.assert_equal(found["printed"].tolist(), [60.0, 60.0, math.nan, math.nan])
    np.testing.assert_equal(found["difference"].tolist(), [-2.0, math.nan, math.nan, math.nan])


def test_a_measure_that_a_seed_lacks_has_no_mean_and_one_that_is_missing_is_not_another():
    """Its mean would be one of other seeds than the accuracy beside it."""
    def measured(run):
        lacks = run.recipe.method == "plain" and run.seed == 0
        return written(run, 50.0, **({} if lacks else {"knn1": 20.0 + run.seed}))

    found = numbers(METHODS, measured, "ucla", seeds="0-2")
    assert math.isnan(found["knn1"][0]) and found["knn1"][1] == 21.0
    assert "knn1" not in numbers(METHODS, written, "ucla")
    lacking = numbers(dataclasses.replace(METHODS, measures=("absent", "knn1")), measured, "ucla", seeds=1)
    assert lacking["ours"].isna().all() and lacking["knn1"].tolist() == [21.0, 21.0]


def measured_by(study, *evaluations):
    """The rows of a table of two recipes, whose seeds were measured by these evaluations, 10 apart."""
    declared = dataclasses.replace(METHODS, study=dataclasses.replace(study, evaluation=4))
    return numbers(declared, lambda run: written(
        run, 37.75 + 10.0 * run.seed, evaluation=evaluations[run.seed]), "ucla", seeds=f"0-{len(evaluations) - 1}")


@pytest.mark.parametrize(("additions", "evaluations", "mean", "left_out"), [
    ((), (2, 3, 3), 52.75, (0,)), ((4,), (2, 4, 3), 52.75, (0,)), ((3, 4), (2, 4, 3), 47.75, ()),
])
def test_a_mean_is_over_runs_of_the_newest_evaluation_and_the_others_are_told(additions, evaluations, mean, left_out):
    found = measured_by(dataclasses.replace(TOY, additions=additions), *evaluations)
    assert found["ours"].tolist() == [mean] * 2 and found["n_seeds"].tolist() == [3 - len(left_out)] * 2
    lines = remarks(found)
    assert len(lines) == len(left_out)
    for line, seed in zip(lines, left_out, strict=True):
        assert line.startswith("left out of the means, as another evaluation measured them: ")
        assert f": plain, seed {seed} (runs/" in line
        assert f"); heavy, seed {seed} (runs/" in line
        assert "run the table without --train never, which measures them" in line


def test_a_row_over_several_precisions_and_processors_says_how_many_of_each():
    def measured(run):
        row = written(run)
        plain, last = run.recipe.method == "plain", run.seed > 2
        cost = {"finished": "", "precision": "bfloat16" if last and plain else "float32"}
        return row | {"cost": json.dumps(cost | {"device": "EPYC" if last else "Xeon"})}

    found = numbers(METHODS, measured, "ucla", seeds="0-4")
    assert remarks(found) == ["plain: 3 runs in float32, 2 in bfloat16", "all rows: 3 runs on Xeon, 2 on EPYC"]
    assert readable(found).splitlines()[-2:] == remarks(found)
    assert remarks(found[1:]) == ["heavy: 3 runs on Xeon, 2 on EPYC"] and remarks(found[:0]) == []
    assert not remarks(numbers(METHODS, measured, "ucla", seeds="0-2"))


def described(of, *choices, **fields):
    """Value and source by field."""
    return {name: (value, source) for name, value, source in of.described(*choices, **fields)}


FIXED = table({"method": "plain", "depth": 3}, {"method": "both", "weight": 2.0, "depth": FROM_PRESET})


def test_described_is_of_the_recipe_that_uses_most_and_says_where_its_values_come_from():
    rows = described(FIXED)
    assert [*rows] == [*TOY.fields, "views"] and rows["views"] == (2, "paper")
    assert rows["method"] == ("both", "this table (default plain)")
    assert rows["weight"] == (2.0, "this table (default 1.0)")
    assert rows["depth"] == (1, "paper")  # which that row leaves to the preset
    assert rows["dataset"] == ("ucla", "this table (default ucla)") and rows["batch"] == (8, "paper")
    assert described(FIXED, "synthetic", "auto")["dataset"] == ("synthetic", "chosen here (default ucla)")
    assert described(METHODS, "synthetic", "auto")["depth"] == (2, "preset quick (default 1)")
    sizes = table({"method": "heavy", "depth": by_preset(paper=(2, 4), quick=(3,)), "weight": 2.0})
    assert described(sizes)["depth"] == (2, "this table (default 1)")
    assert described(sizes, preset="quick")["depth"] == (3, "this table (default 1)")


def test_described_says_what_is_asked_for_and_what_is_of_a_variant():
    rows = described(METHODS, variant="light", power=4, batch=16, rate="auto")
    assert rows["method"] == ("heavy", "this table (default plain)")  # the first that uses most of these
    assert rows["weight"] == (0.5, "variant light (default 1.0)") and rows["power"] == (4, "chosen here (default 2)")
    assert rows["batch"] == (16, "chosen here (default 8)") and "noise" not in rows
    assert rows["rate"] == (0.2, "follows from others (default 0.1)")  # which follows from the batch
    plain = described(METHODS, method="plain,heavy", batch=8)
    assert plain["batch"] == (8, "chosen here (default 8)") and plain["weight"] == (1.0, "paper")


# ---------------------------------------------------------------------------------------------- end to end


@pytest.fixture
def declared(monkeypatch, runs_root):
    """The tables above as those of the only paper; returns the folder of runs."""
    made_up = {"made_up": SWEEP, "called": CALLED, "methods": METHODS}
    monkeypatch.setattr(papers, "tables", lambda: made_up)
    monkeypatch.setattr(papers, "table_names", lambda: [*made_up])
    monkeypatch.setattr("repro.experiments.experiments", dict)
    monkeypatch.setattr("repro.run.store.read_runs", lambda *_: frame())
    return runs_root


OPTIONS = {"device": "cpu", "engine": "inline"}


def test_a_table_trains_what_is_missing_and_shows_it_and_says_what_came_of_each_run(declared, capsys):
    for _ in range(2):  # the second time there is nothing to say
        found = run_table("made_up", "ucla", seeds="0,3", **OPTIONS)
    assert list(found.columns) == ["method", "depth", *TAIL, "knn1"] and found["n_seeds"].tolist() == [2] * 4
    ours = {(row.method, row.depth): row.ours for row in found.itertuples()}
    assert ours == pytest.approx({(method, depth): 1.5 + 2 * 0.1 * depth  # two steps from the seed
                                  for method in ("plain", "heavy") for depth in (1, 3)})
    lines = [line for line in capsys.readouterr().err.splitlines() if "seed" in line]
    assert [line.partition(", about")[0] for line in lines if "seed 3" in line] == [
        "plain, seed 3: linear 3.2", "plain, depth=3, seed 3: linear 3.6",
        "heavy, seed 3: linear 3.2", "heavy, depth=3, seed 3: linear 3.6",
    ]
    assert ["left" in line for line in lines] == [True] * 7 + [False]


def test_a_second_call_trains_nothing_and_other_tables_share_its_runs(declared, monkeypatch):
    assert run_table("made_up", "ucla", train="never").empty
    first = run_table("made_up", "ucla", **OPTIONS)
    before = {path: path.stat().st_mtime_ns for path in declared.rglob("*") if path.is_file()}
    monkeypatch.setattr(Two, "step", None)
    pd.testing.assert_frame_equal(run_table("made_up", "ucla", **OPTIONS), first)
    shared = run_table("methods", "ucla", **OPTIONS)
    assert shared["ours"].tolist() == first["ours"].tolist()[::2]
    assert {path: path.stat().st_mtime_ns for path in declared.rglob("*") if path.is_file()} == before
    assert {path.parent.parent.name for path in before} == {"runs"}


@pytest.mark.parametrize("train", ["never", "missing"])
def test_a_run_of_ones_own_in_the_place_of_a_committed_one_is_told(declared, monkeypatch, train):
    committed = [*SWEEP.runs("ucla", seeds="0-1")]
    rows = frame(*(written(run, evaluation=TOY.evaluation) for run in committed))
    monkeypatch.setattr("repro.run.store.read_runs", lambda *_: rows)
    Store(declared).folder(committed[0]).finish({"linear": 51.0, "cost": COST})
    found = run_table("made_up", "ucla", train=train, seeds="0-1" if train == "never" else "0", engine="inline")
    assert (found["ours"][0], found["n_seeds"][0]) == ((50.5, 2) if train == "never" else (51.0, 1))
    replaced = "plain 1" if train == "never" else "all rows"  # of which the others are trained now
    assert remarks(found) == [f"{replaced}: 1 of yours in place of ours"]


def test_of_several_learners_the_mean_counts_and_none_is_trained_again_where_the_result_cannot_be_written(
    declared, monkeypatch
):
    write = store.write_json

    def full(path, value):
        if path.name == "result.json":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(path, value)

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_json", full)
        with pytest.raises(OSError, match=r"No space left on device.*result\.json"):
            run_table("methods", method="both", **OPTIONS)
    folder = Store(declared).path(METHODS.runs(method="both")[0].id)
    assert len(list(folder.glob("*/checkpoint.pt"))) == 1
    monkeypatch.setattr(Two, "step", None)
    found = run_table("methods", method="both", **OPTIONS)  # of quick on bundled data: two steps of 0.1 x 2
    assert found["ours"].tolist() == pytest.approx([(0.4 + 10.4) / 2]) and found["printed"].isna().all()
    assert (folder / "checkpoint.pt").exists() and not list(folder.glob("*/checkpoint*"))
    result = json.loads((folder / "result.json").read_text())
    assert (result["select"], result["evaluation"], result["cost"]["steps"]) == ("both", 2, 2.0)
    assert {"seconds", "finished", "commit", "precision"} <= result["cost"].keys()


@pytest.mark.usefixtures("declared")
def test_finished_has_a_row_for_each_run_with_fields_measures_and_provenance():
    assert finished().empty
    run_table("made_up", "ucla", preset="smoke", seeds="1", **OPTIONS)
    run_table("called", "ucla", batch=16, **OPTIONS)
    by_id = {run.id: run for run in [*SWEEP.runs("ucla", preset="smoke", seeds=1), *CALLED.runs("ucla", batch=16)]}
    found = finished()
    assert len(found) == 7 and by_id.keys() == set(found["id"]) and {"commit", "finished", "digest"} <= {*found}
    for row in found.to_dict("records"):
        run = by_id[row["id"]]
        assert (row["study"], row["seed"], row["changes"]) == ("toys", run.seed, run.changes)
        assert {name: row[name] for name in TOY.fields} == run.recipe.to_dict()
        assert row["linear"] == pytest.approx(run.seed + 2 * run.recipe.rate * run.recipe.depth)


@pytest.mark.usefixtures("declared")
def test_a_table_that_is_not_there_and_one_without_a_figure(monkeypatch):
    drawn = dataclasses.replace(METHODS, plot=lambda rows: rows)
    monkeypatch.setitem(papers.tables(), "methods", drawn)
    with pytest.raises(ValueError, match=r"did you mean 'called'\? table='caled' is not one of: made_up, called"):
        run_table("caled")
    with pytest.raises(ValueError, match=r"name='made_up' is not one of: methods$"):
        draw("made_up", frame())
    with pytest.raises(ValueError, match="there are no rows to draw methods from"):
        draw("methods", frame())
    with pytest.raises(TypeError, match=r"rows=3 should be a DataFrame, as `repro.results\('methods'\)` returns it"):
        draw("methods", 3)
