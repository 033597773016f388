"""The engine of the tables, with a made-up study: rows, fields asked for, finished cells among rows, and numbers."""

import dataclasses
import errno
import functools
import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from made_up_study import TOY, Toy, Two, frame, paper, quick, stored

from repro import papers, run_table
from repro.recipe import setting
from repro.run import store
from repro.run.store import Store
from repro.table import (
    FROM_PRESET,
    Table,
    by_preset,
    draw,
    find,
    finished,
    plan_table,
    standing,
)

PRINTED = {("plain", 1): 60.0, ("heavy", 1): 70.0, ("heavy", 3): 75.0}
TAIL = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset"]


def table(*rows, **changes):
    usual = {"name": "made_up", "title": "Made up", "place": "Table 1", "study": TOY, "datasets": ("synthetic", "ucla")}
    return Table(**usual | {"measures": ("linear", "knn1"), "rows": rows} | changes)


def printed(row):
    return PRINTED.get((row.method, row.depth), math.nan)


SWEEP = table({"method": ("plain", "heavy"), "depth": (1, 3)}, printed=printed)
CALLED = table(
    {"approach": "Plain", "method": "plain", "depth": FROM_PRESET},
    {"approach": "Light", "method": "heavy", "weight": 0.5, "depth": FROM_PRESET},
    {"approach": "Heavy", "method": "heavy", "depth": FROM_PRESET},
    name="called",
)
METHODS = table({"method": ("plain", "heavy")}, name="methods", methods=("plain", "heavy", "both"))


def departing(cells):
    """Finished cells as (method, what departs)."""
    return list(zip(cells["method"], cells["departures"], strict=True))


# ---------------------------------------------------------------------------------------------- rows


def test_a_row_is_a_product_and_seeds_come_one_after_the_other():
    cells = SWEEP.cells(seeds="4,2")
    product = [(seed, method, depth) for seed in (4, 2) for method in ("plain", "heavy") for depth in (1, 3)]
    assert [(cell.seed, cell.recipe.method, cell.recipe.depth) for cell in cells] == product
    for cell in cells:
        assert cell.recipe == quick("synthetic", cell.recipe.method, depth=cell.recipe.depth)
        assert (cell.study, cell.preset, cell.dataset, cell.digest) == (
            "toys", "quick", "synthetic", "digest of synthetic")
        assert (cell.version, cell.evaluation, cell.changes) == (3, 2, {"depth": cell.recipe.depth})
    assert len({cell.key for cell in cells}) == 8


@pytest.mark.parametrize(("dataset", "preset", "resolved"), [
    (None, "auto", "quick"), ("synthetic", "auto", "quick"), ("ucla", "auto", "paper"), ("ucla", "quick", "quick"),
    ("synthetic", "paper", "paper"), ("ucla", "smoke", "smoke"),
])
def test_auto_is_the_papers_recipe_on_real_data(dataset, preset, resolved):
    cell, _ = METHODS.cells(dataset, preset=preset)
    assert cell.preset == resolved and cell.dataset == (dataset or "synthetic") and cell.changes == {}
    assert cell.recipe == TOY.presets[resolved](dataset or "synthetic", "plain")


def test_rows_may_be_called_something_and_leave_a_field_to_the_preset():
    recipes = CALLED.recipes("ucla", "paper")
    assert recipes == [paper("ucla", "plain"), paper("ucla", "heavy", weight=0.5), paper("ucla", "heavy")]
    assert CALLED.shown == ["approach", "depth"] and SWEEP.shown == ["method", "depth"]
    assert CALLED.recipes("ucla", "paper", depth="4")[1] == paper("ucla", "heavy", weight=0.5, depth=4)


def test_a_field_that_a_method_does_not_use_stays_as_its_preset_has_it():
    weighted = table({"method": ("plain", "heavy"), "weight": (0.0, 3.0), "power": 5})
    assert weighted.recipes("ucla", "paper") == [
        paper("ucla", "plain"), paper("ucla", "heavy", weight=0.0), paper("ucla", "heavy", weight=3.0, power=5)
    ]


# ---------------------------------------------------------------------------------------------- asked for


def test_every_combination_asked_for_replaces_the_field_in_rows_that_use_it():
    asked = {"depth": "1,3", "weight": [0.5, 2], "method": "plain,heavy,both"}
    expected = [paper("ucla", "plain", depth=depth) for depth in (1, 3)]
    expected += [paper("ucla", method, depth=depth, weight=weight)
                 for method in ("heavy", "both") for depth, weight in itertools.product((1, 3), (0.5, 2.0))]
    assert METHODS.recipes("ucla", "paper", **asked) == expected
    assert SWEEP.recipes("ucla", "paper", depth=7) == [paper("ucla", "plain", depth=7), paper("ucla", "heavy", depth=7)]


def test_whether_a_field_is_used_is_asked_with_what_else_is_asked_for():
    recipes = METHODS.recipes("ucla", "paper", method="heavy", weight="0,1", power="2,5")
    assert [(recipe.weight, recipe.power) for recipe in recipes] == [(0.0, 2), (1.0, 2), (1.0, 5)]


@pytest.mark.parametrize(("asked", "message"), [
    ({"method": "plain", "weight": 3}, r"^weight=3 changes nothing of plain; heavy, both use it: leave it out, or ch"),
    ({"method": "plain", "depth": 2, "power": "3,4"}, r"^power='3,4' changes nothing of plain; heavy, both use it"),
    ({"weight": 0, "power": 3}, r"^power=3 changes nothing of plain, heavy; "),
    ({"noise": "frozen"}, r"^noise='frozen' changes nothing of plain, heavy; both use it"),
])
def test_a_field_that_no_row_uses_is_refused_naming_who_does(asked, message):
    with pytest.raises(ValueError, match=message):
        METHODS.cells("ucla", **asked)


@pytest.mark.parametrize(("choices", "message"), [
    ({"dept": 2}, "parameter='dept' is not one of: dataset, preset, .*noise.*; did you mean 'depth'"),
    ({"methods": "plain"}, "parameter='methods' is not one of: .*; did you mean 'method'"),
    ({"seed": 1}, "parameter='seed' is not one of: .*; did you mean 'seeds'"),
    ({"named_by": "x"}, r"parameter='named_by' is not one of: ((?!cells_per_gpu|gpu_precision).)*$"),
    ({"depth": 0}, "depth=0 should be at least 1"), ({"depth": "x"}, "depth='x' should be"),
    ({"depth": "2,2"}, "depth='2,2' names 2 twice"), ({"seeds": "0,0"}, "seeds='0,0' names 0"),
    ({"seeds": "-1"}, "whole numbers from 0"), ({"device": "gpu"}, "device='gpu' is not one"),
    ({"preset": "papr"}, "preset='papr' is not one of: auto, paper, quick, smoke; did you mean 'paper'"),
    ({"dataset": "ntu"}, "dataset='ntu' is not one of: synthetic, ucla"),
    ({"dataset": ""}, "dataset='' is not one of: synthetic, ucla"),
    ({"variant": "froze"}, "variant='froze' is not one of: none, frozen, light"),
    ({"method": "haevy"}, "method='haevy' is not one of: plain, heavy, both; did you mean 'heavy'"),
])
def test_what_does_not_exist_is_refused_by_name(choices, message):
    with pytest.raises(TypeError if message.startswith("parameter=") else ValueError, match=message):
        METHODS.cells(**choices)


def test_methods_are_those_of_the_rows_unless_the_table_says_which():
    assert (SWEEP.known_methods, METHODS.known_methods) == (["plain", "heavy"], ["plain", "heavy", "both"])
    assert METHODS.recipes("ucla", "paper", method="both,plain") == [paper("ucla", "both"), paper("ucla", "plain")]
    with pytest.raises(ValueError, match=r"method='both' is not one of: plain, heavy$"):
        SWEEP.cells(method="both")


def test_a_method_that_is_asked_for_leaves_out_rows_of_others():
    assert CALLED.recipes("ucla", "paper", method="heavy") == CALLED.recipes("ucla", "paper")[1:]
    assert CALLED.recipes("ucla", "paper", method="plain", depth=2) == [paper("ucla", "plain", depth=2)]
    assert CALLED.recipes("ucla", "paper", method="heavy,plain") == CALLED.recipes("ucla", "paper")


def test_a_variant_is_a_bundle_of_fields_for_those_who_use_them():
    bundle = {"weight": 0.5, "power": 7}
    assert METHODS.recipes("ucla", "paper", "light", depth="1,2") == [
        paper("ucla", "plain"), paper("ucla", "plain", depth=2),
        paper("ucla", "heavy", **bundle), paper("ucla", "heavy", depth=2, **bundle),
    ]
    asked = METHODS.recipes("ucla", "paper", "light", method="heavy", power=4)  # what is asked for itself counts
    assert asked == [paper("ucla", "heavy", weight=0.5, power=4)]
    weightless = table({"method": "heavy", "depth": FROM_PRESET, "batch": 8}, study=dataclasses.replace(
        TOY, presets={"paper": functools.partial(paper, weight=0.0)}))
    assert weightless.recipes("ucla", "paper", "light", power=4)[0].power == 4  # used where there is a weight
    cell, = METHODS.cells("ucla", method="both", variant="frozen")
    assert cell.changes == {"noise": "frozen"} and cell.label == "both, noise=frozen"


@pytest.mark.parametrize(("variant", "asked", "users"), [
    ("light", {"method": "plain"}, "plain; heavy, both use it"), ("frozen", {}, "plain, heavy; both use it"),
])
def test_a_variant_that_changes_no_recipe_is_refused(variant, asked, users):
    with pytest.raises(ValueError, match=f"^variant='{variant}' changes nothing of {users}: leave it out, or choose"):
        METHODS.cells("ucla", variant=variant, **asked)


def test_what_cannot_be_trained_is_refused_before_data_are_asked_for():
    def check(recipe, device):
        raise ValueError(f"{recipe.method} is not for {device.type}")

    def missing(recipe):
        raise FileNotFoundError("get it")

    absent = dataclasses.replace(TOY, load=missing)
    with pytest.raises(ValueError, match="plain is not for cpu"):
        dataclasses.replace(SWEEP, study=dataclasses.replace(absent, check=check)).cells("ucla", device="cpu")
    with pytest.raises(FileNotFoundError, match="get it"):
        dataclasses.replace(SWEEP, study=absent).cells("ucla")


# ---------------------------------------------------------------------------------------------- changes


@pytest.mark.parametrize(("preset", "changes", "expected"), [
    ("paper", {}, {}), ("quick", {"depth": 3}, {}), ("paper", {"depth": 3}, {"depth": 3}),
    ("paper", {"batch": 16}, {"batch": 16}),  # the rate follows
    ("paper", {"batch": 16, "rate": 0.1}, {"batch": 16, "rate": 0.1}),  # it does not
    ("paper", {"batch": 16, "rate": 0.2}, {"batch": 16}), ("smoke", {"rate": 0.1}, {"rate": 0.1}),
    ("smoke", {"batch": 8}, {"batch": 8}), ("paper", {"subset": True, "depth": 2}, {"depth": 2}),
], ids=str)
def test_changes_are_the_fewest_fields_that_make_a_recipe_of_its_preset(preset, changes, expected):
    recipe = TOY.presets[preset]("ucla", "heavy", **changes)
    found = TOY.changes(recipe, preset)
    assert found == expected == TOY.cell(recipe, 0, preset).changes
    assert TOY.presets[preset]("ucla", "heavy", subset=recipe.subset, **found) == recipe
    changeable = [name for name in Toy().to_dict() if name not in ("dataset", "method", "subset")]
    for names in (names for size in range(len(found)) for names in itertools.combinations(changeable, size)):
        fewer = {name: getattr(recipe, name) for name in names}
        assert TOY.presets[preset]("ucla", "heavy", subset=recipe.subset, **fewer) != recipe


# ---------------------------------------------------------------------------------------------- finished cells


def test_tidy_cells_have_fields_and_measures_and_say_what_changed():
    first = stored("heavy", 61.0, batch=16, depth=3, told=False)
    early = {name: value for name, value in paper("ucla", "both").to_dict().items() if name not in ("noise", "subset")}
    last = stored("both", 62.0, recipe=early, measures={"knn1": 7.0, "weight": 99.0})
    cells = TOY.tidy(frame(first, stored(study="others"), last))
    assert cells["key"].tolist() == [first["key"], last["key"]] and cells["study"].unique().tolist() == ["toys"]
    assert cells["changes"].tolist() == [{"batch": 16, "depth": 3}, {}] and cells["linear"].tolist() == [61.0, 62.0]
    assert cells["rate"].tolist() == [0.2, 0.1] and cells["noise"].tolist() == ["live", "live"]  # as it was before
    np.testing.assert_equal(cells["knn1"].tolist(), [math.nan, 7.0])
    np.testing.assert_equal(cells["weight"].tolist(), [math.nan, 99.0])  # a measure goes before a field
    assert cells["finished"].str.startswith("2026").all() and cells["cost"].map(type).eq(dict).all()


def test_of_equal_cells_the_one_that_finished_last_counts_whatever_their_order():
    days = {linear: f"2026-01-{day:02}T00:00:00+00:00" for linear, day in ((1.0, 9), (2.0, 10), (3.0, 2))}
    rows = [stored("plain", linear, digest=f"{linear}", finished=day, depth=3, batch=4) for linear, day in days.items()]
    rows[2]["changes"] = json.dumps({"depth": 3, "batch": 4})  # the same in another order
    others = [stored("plain", 7.0, seed=1, depth=3), stored("heavy", 8.0), stored("plain", 9.0, preset="quick"),
              stored("plain", 10.0, version=2, depth=3, batch=4), stored("plain", 11.0, dataset="ucla (subset)")]
    for order in itertools.permutations(rows):
        assert sorted(TOY.tidy(frame(*order, *others))["linear"]) == [2.0, 7.0, 8.0, 9.0, 10.0, 11.0]


@pytest.mark.parametrize(("change", "message"), [
    ({"preset": "papr"}, "preset='papr' is not one of: paper, quick, smoke"),
    ({"recipe": '{"depths": 3}'}, "'depths' is not a field of Toy"),
    ({"recipe": '{"depth": "3"}'}, "depth='3' is of type str"),
])
def test_a_stored_cell_that_cannot_be_read_is_named(change, message):
    row = stored() | change
    with pytest.raises(ValueError, match=f"the cell {row['key']} cannot be read \\({message}.*; restore it or delete"):
        TOY.tidy(frame(stored(), row))


def test_a_cell_departs_from_the_nearest_row():
    cells = TOY.tidy(frame(
        stored("heavy", depth=3), stored("plain"), stored("heavy", weight=2.0), stored("both"),
        stored("heavy", depth=7, power=5), stored("plain", dataset="ntu"), stored("plain", dataset="ucla (subset)"),
    ))
    found = SWEEP.select(cells)
    assert departing(found) == [("plain", {}), ("plain", {}), ("heavy", {"weight": 2.0}), ("heavy", {}),
                                ("heavy", {"power": 5})]  # in what a row sweeps no cell departs
    assert found["depth"].tolist() == [1, 1, 1, 3, 7]  # what is not of the row comes last
    called = CALLED.select(cells)
    assert list(zip(called["approach"], called["departures"], strict=True)) == [
        ("Plain", {}), ("Plain", {}), ("Heavy", {"weight": 2.0}), ("Heavy", {}), ("Heavy", {"power": 5}),
    ]  # weight=2.0 departs as much from Light, of whose own fields it is one
    light, = CALLED.select(TOY.tidy(frame(stored("heavy", weight=0.5, batch=4)))).to_dict("records")
    assert (light["approach"], light["departures"]) == ("Light", {"batch": 4})


def test_a_value_of_a_row_that_a_cell_leaves_to_its_preset_departs():
    fixed = table({"method": ("plain", "heavy"), "depth": 4, "weight": 2.0})
    cells = frame(stored("heavy"), stored("plain", depth=4), stored("heavy", depth=4, weight=2.0))
    found = fixed.select(TOY.tidy(cells))
    assert departing(found) == [("plain", {}), ("heavy", {"depth": 1, "weight": 1.0}), ("heavy", {})]


def test_rows_stand_in_the_order_of_the_table_and_numbers_and_seeds_in_theirs():
    orders = [(seed, method, depth) for method in ("plain", "heavy") for depth in (1, 3, 2, 9) for seed in (0, 1, 10)]
    rows = [stored(method, seed=seed, depth=depth) for seed, method, depth in orders]
    np.random.default_rng(0).shuffle(rows)
    found = SWEEP.select(TOY.tidy(frame(*rows)))
    cells = list(zip(found["method"], found["depth"], found["seed"], strict=True))
    assert cells == sorted(cells, key=lambda cell: (cell[0] == "heavy", *cell[1:]))


def test_bundles_of_which_the_paper_prints_a_table_are_no_departures():
    settings = table({"method": ("plain", "heavy")}, settings=lambda dataset: ({"depth": 3}, {"depth": 5, "batch": 4}),
                     printed=printed)
    rows = [stored("heavy", 71.0), stored("heavy", 72.0, depth=3), stored("heavy", 73.0, depth=5, batch=4),
            stored("heavy", 74.0, depth=5), stored("heavy", 75.0, depth=3, power=1)]
    found = settings.select(TOY.tidy(frame(*rows)))
    assert found["setting"].tolist() == [{}, {"depth": 3}, {"depth": 5, "batch": 4}, {}, {"depth": 3}]
    assert found["departures"].tolist() == [{}, {}, {}, {"depth": 5}, {"power": 1}]
    shown = settings.laid_out(found)
    assert list(shown.columns)[:4] == ["method", "depth", "batch", "departures"]
    assert shown["ours"].tolist() == [71.0, 72.0, 73.0, 74.0, 75.0]
    np.testing.assert_equal(shown["difference"].tolist(), [1.0, -3.0] + [math.nan] * 3)


def test_a_cell_stands_where_it_departs_in_the_fewest_fields():
    deep = table({"method": ("plain", "heavy"), "depth": 3}, name="deep")
    shallow = table({"method": ("plain", "heavy")}, name="shallow", datasets=("ucla",))
    rows = {name: stored("plain", **changes) for name, changes in {
        "usual": {}, "deep": {"depth": 3}, "other": {"depth": 3, "batch": 4}, "both": {"depth": 5}, "far": {"batch": 2},
    }.items()}
    found = standing([deep, shallow], frame(*rows.values(), stored("plain", dataset="synthetic")))
    names = {row["key"]: name for name, row in rows.items()}
    assert {table: {names.get(key) for key in cells["key"]} for table, cells in found.items()} == {
        "deep": {"deep", "other", "both", None}, "shallow": {"usual", "both", "far"},
    }
    assert found["deep"].set_index("key")["departures"].map(len).max() == 1


def test_a_table_of_which_all_cells_are_among_the_more_of_another_has_none():
    one, two = table({"method": "plain"}, name="one"), table({"method": ("plain", "heavy")}, name="two")
    plain, heavy, elsewhere = stored("plain"), stored("heavy"), stored("plain", preset="quick")

    def keys(*rows):
        return {name: set(cells["key"]) for name, cells in standing([one, two], frame(*rows)).items()}

    assert keys(plain) == {"one": {plain["key"]}, "two": {plain["key"]}}
    assert keys(plain, heavy, elsewhere) == {
        "one": {elsewhere["key"]}, "two": {plain["key"], heavy["key"], elsewhere["key"]}}


# ---------------------------------------------------------------------------------------------- numbers


def laid_out(declared, *rows, also=()):
    return declared.laid_out(declared.select(TOY.tidy(frame(*rows))), also)


def test_means_and_deviations_of_random_numbers_are_those_of_pandas():
    draw, rows = np.random.default_rng(0), []
    for method, depth in itertools.product(("plain", "heavy"), (1, 3)):
        for seed in range(draw.integers(1, 5)):
            rows.append(stored(method, draw.uniform(0, 100), seed=seed, depth=depth, measures={"knn1": draw.uniform()}))
    cells = SWEEP.select(TOY.tidy(frame(*rows))).sample(frac=1, random_state=1)
    found = SWEEP.laid_out(cells).set_index(["method", "depth"]).sort_index()
    expected = cells.groupby(["method", "depth"])["linear"].agg(ours="mean", std="std", n_seeds="count")
    pd.testing.assert_frame_equal(found[["ours", "std", "n_seeds"]], expected)
    pd.testing.assert_series_equal(found["knn1"], cells.groupby(["method", "depth"])["knn1"].mean())
    assert list(found.columns) == [*TAIL, "knn1"]
    for (method, depth), row in found.iterrows():
        number = PRINTED.get((method, depth), math.nan)
        np.testing.assert_equal([row["published"], row["difference"]], [number, row["ours"] - number])


@pytest.mark.parametrize(("preset", "dataset", "published"), [
    ("smoke", "ucla", 60.0), ("paper", "ucla (subset)", 60.0), ("paper", "synthetic", math.nan),
])
def test_nothing_is_subtracted_where_preset_or_data_are_other_than_the_papers(preset, dataset, published):
    found = laid_out(SWEEP, stored("plain", 50.0, preset=preset, dataset=dataset))
    np.testing.assert_equal(found[["ours", "published", "difference"]].to_numpy(), [[50.0, published, math.nan]])
    assert found["dataset"].item() == dataset and "departures" not in found


def test_nothing_is_subtracted_from_a_row_that_departs():
    found = laid_out(SWEEP, stored("plain", 50.0), stored("plain", 55.0, batch=4), stored("heavy", 52.0, depth=5))
    assert found["departures"].tolist() == [{}, {"batch": 4}, {}]
    np.testing.assert_equal(found["published"].tolist(), [60.0, 60.0, math.nan])
    np.testing.assert_equal(found["difference"].tolist(), [-10.0, math.nan, math.nan])
    assert list(found.columns)[:4] == ["method", "depth", "departures", "ours"]


def test_a_measure_that_a_seed_lacks_has_no_mean():
    """Its mean would be one of other seeds than the accuracy beside it."""
    rows = [stored("plain", 50.0, seed=seed, measures={"knn1": 20.0 + seed} if seed else {}) for seed in range(3)]
    rows += [stored("heavy", 60.0, seed=seed, measures={"knn1": 20.0 + seed}) for seed in range(3)]
    found = laid_out(SWEEP, *rows)
    assert math.isnan(found["knn1"][0]) and found["knn1"][1] == 21.0
    assert "knn1" not in laid_out(SWEEP, stored("plain"))


def test_seeds_of_a_row_are_of_one_version_and_those_of_earlier_ones_are_rows_of_their_own():
    rows = [stored("plain", 10.0 * version + seed, seed=seed, version=version,
                   finished=f"2026-0{9 - version}-01T00:00:00+00:00")  # the earliest version finished last
            for version, seeds in ((1, 3), (2, 2), (3, 1)) for seed in range(seeds)]
    found = laid_out(SWEEP, *rows, stored("heavy", 1.0, version=1), stored("plain", 5.0, version=1, batch=4))
    ours = {(method, str(away)): (mean, count) for method, away, mean, count in
            found[["method", "departures", "ours", "n_seeds"]].itertuples(index=False)}
    assert ours == {
        ("plain", "{}"): (30.0, 1), ("plain", "{'version': 2}"): (20.5, 2), ("plain", "{'version': 1}"): (11.0, 3),
        ("plain", "{'batch': 4}"): (5.0, 1), ("heavy", "{}"): (1.0, 1),  # of which there is no newer one
    }
    assert found["difference"].notna().tolist() == [not away for away in found["departures"]]


@pytest.mark.parametrize(("change", "named"), [
    ({"digest": "another"}, "digest"), ({"recipe": {"power": 9}}, "power"),
    ({"recipe": {"power": 9, "batch": 3}}, "batch, power"),
])
def test_seeds_of_other_recipes_or_data_are_not_averaged(change, named):
    rows = [stored("heavy", seed=seed) for seed in range(3)]
    odd = json.loads(rows[2]["recipe"]) | change.get("recipe", {})
    rows[2] |= change | {"recipe": json.dumps(odd)}
    keys = ", ".join(row["key"] for row in rows)
    message = rf"^on ucla, paper recipe, seeds 0, 1, 2 of heavy differ in {named} \(cells {keys}\); they cannot be"
    with pytest.raises(ValueError, match=message):
        laid_out(SWEEP, *rows, stored("plain"))
    assert len(laid_out(SWEEP, rows[0], rows[2] | {"version": 2})) == 2  # versions are not averaged anyway


def test_versions_that_are_not_the_same_everywhere_are_shown():
    rows = [stored("plain", version=2), stored("heavy", measures={"evaluation": 1}), stored("heavy", seed=1)]
    found = laid_out(SWEEP, *rows)
    assert found[["version", "evaluation"]].values.tolist() == [["2", "2"], ["3", "1, 2"]]


def test_a_field_that_came_later_and_the_precision_of_a_device_may_differ():
    rows = [stored("both", 50.0 + seed, seed=seed) for seed in range(2)]
    for seed, change in enumerate(({"precision": "bfloat16"}, {"precision": "float32", "noise": None})):
        values = json.loads(rows[seed]["recipe"]) | change
        rows[seed]["recipe"] = json.dumps({name: value for name, value in values.items() if value is not None})
    assert laid_out(METHODS, *rows)["ours"].tolist() == [50.5]


def test_what_only_one_table_does_is_its_own():
    def by_half(cells):
        value = cells["linear"] / 2
        return pd.concat([cells.assign(half="a", value=value), cells.assign(half="b", value=value + 1)])

    halves = table({"method": ("plain",)}, columns=("method", "half"), arrange=by_half, measures=("linear",),
                   printed=lambda row: {"a": 20.0, "b": 30.0}[row.half])
    found = laid_out(halves, stored("plain", 50.0), stored("plain", 70.0, seed=1))
    assert list(found.columns) == ["method", "half", *TAIL, "linear"]
    assert found[["half", "ours", "published", "linear"]].values.tolist() == [["a", 30.0, 20.0, 60.0],
                                                                               ["b", 31.0, 30.0, 60.0]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cropped(Toy):
    crop: int | None = setting(None, "paper", least=1)


def test_a_value_that_is_none_is_shown_as_it_is_typed():
    study = dataclasses.replace(TOY, recipe=Cropped, presets={
        "paper": lambda dataset, method, **changes: Cropped(dataset=dataset, method=method).replace(**changes)})
    crops = table({"method": "plain", "crop": (20, None)}, study=study)
    assert [recipe.crop for recipe in crops.recipes("ucla", "paper", crop="none,7")] == [None, 7]
    rows = [stored(linear=linear, crop=crop, recipe=Cropped(crop=crop).to_dict())
            for linear, crop in ((1.0, None), (2.0, 20), (3.0, 7))]
    found = crops.laid_out(crops.select(study.tidy(frame(*rows))))
    assert list(zip(found["crop"], found["ours"], strict=True)) == [(7, 3.0), (20, 2.0), ("none", 1.0)]
    assert found["crop"].map(str).tolist() == ["7", "20", "none"]


def described(of, *choices, **fields):
    """Value and source by field."""
    return {name: (value, source) for name, value, source in of.described(*choices, **fields)}


FIXED = table({"method": "plain", "depth": 3}, {"method": "both", "weight": 2.0, "depth": FROM_PRESET})


def test_described_is_of_the_recipe_that_uses_most_and_says_where_its_values_come_from():
    rows = described(FIXED)
    assert [*rows] == [*TOY.fields, "views"] and rows["views"] == (2, "paper")
    assert rows["method"] == ("both", "varied by this table: plain, both")
    assert rows["weight"] == (2.0, "fixed by this table")
    assert rows["depth"] == (1, "paper")  # which that row leaves to the preset
    assert rows["dataset"] == ("ucla", "paper") and rows["batch"] == (8, "paper")
    assert described(FIXED, "synthetic", "auto")["dataset"] == ("synthetic", "chosen here (default ucla)")
    assert described(METHODS, "synthetic", "auto")["depth"] == (2, "preset quick (default 1)")
    for choices, message in (({"preset": "tiny"}, "preset='tiny' is not"), ({"dataset": ""}, "dataset='' is not one")):
        with pytest.raises(ValueError, match=message):
            FIXED.described(**choices)


def test_described_says_what_the_table_varies_and_fixes():
    sizes = table({"method": "heavy", "depth": by_preset(paper=(2, 4), quick=(2,)), "weight": 2.0})
    rows = described(sizes)
    assert (rows["method"], rows["depth"]) == (("heavy", "fixed by this table"), (2, "varied by this table: 2, 4"))
    assert described(sizes, preset="quick")["weight"] == (2.0, "fixed by this table")


def test_described_says_what_is_asked_for_and_what_is_of_a_variant():
    rows = described(METHODS, variant="light", power=4, batch=16, rate="auto", every=True)
    assert rows["method"] == ("heavy", "varied by this table: plain, heavy")  # the first that uses most of these
    assert rows["weight"] == (0.5, "variant light") and rows["power"] == (4, "chosen here (default 2)")
    assert rows["batch"] == (16, "chosen here (default 8)") and rows["noise"] == ("live", "released code")
    assert rows["rate"] == (0.2, "follows from others (default 0.1)")  # which follows from the batch
    assert described(FIXED, depth=1)["depth"] == (1, "chosen here (default 1)")
    plain = described(METHODS, method="plain,heavy", batch=8)
    assert plain["batch"] == (8, "chosen here (default 8)") and plain["weight"] == (1.0, "paper")


# ---------------------------------------------------------------------------------------------- end to end


@pytest.fixture
def declared(monkeypatch, runs):
    """The tables above as those of the only paper; returns the folder of runs."""
    made_up = {"made_up": SWEEP, "called": CALLED, "methods": METHODS}
    monkeypatch.setattr(papers, "tables", lambda: made_up)
    monkeypatch.setattr("repro.run.export.read_cells", lambda path: frame())
    return runs


OPTIONS = {"device": "cpu", "engine": "inline"}


@pytest.mark.usefixtures("declared")
def test_a_table_trains_what_is_missing_and_shows_it():
    found = run_table("made_up", "ucla", seeds="0,3", **OPTIONS)
    assert list(found.columns) == ["method", "depth", *TAIL, "knn1"]
    ours = {(row.method, row.depth): row.ours for row in found.itertuples()}
    assert ours == pytest.approx({(method, depth): 1.5 + 2 * 0.1 * depth  # two steps from the seed
                                  for method in ("plain", "heavy") for depth in (1, 3)})
    assert found["std"].tolist() == pytest.approx([3 / math.sqrt(2)] * 4) and found["n_seeds"].tolist() == [2] * 4
    np.testing.assert_equal(found["published"].tolist(), [60.0, math.nan, 70.0, 75.0])
    np.testing.assert_allclose(found["difference"], found["ours"] - found["published"])
    np.testing.assert_equal(found["knn1"].tolist(), [math.nan, math.nan, 0.5, 0.5])
    assert set(found["preset"]) == {"paper"} and set(found["dataset"]) == {"ucla"}


def test_what_came_of_each_cell_stands_in_a_log_beside_the_printed_number(declared):
    run_table("made_up", "ucla", seeds="3", **OPTIONS)
    run_table("made_up", "ucla", seeds="3", **OPTIONS)  # has nothing to tell
    lines = [line.split(" ", 1)[1] for line in (declared / "finished.log").read_text().splitlines()]
    assert [line.partition(", about")[0] for line in lines] == [
        "plain, seed 3: linear 3.2 (printed 60)", "plain, depth=3, seed 3: linear 3.6",
        "heavy, seed 3: linear 3.2 (printed 70)", "heavy, depth=3, seed 3: linear 3.6 (printed 75)",
    ]
    assert ["left" in line for line in lines] == [True] * 3 + [False]


def test_of_several_targets_each_is_told_and_of_none_that_it_is_finished(declared):
    def by_target(cells):
        value = cells["linear"] / 2
        parts = [cells.assign(target=name, value=value + add) for add, name in enumerate(("video", "audio"))]
        return pd.concat(parts)[pd.concat(parts)["method"] == "heavy"]

    run_table("made_up", "ucla", seeds="0", **OPTIONS)
    targets = table({"method": ("plain", "heavy")}, columns=("method", "target"), arrange=by_target,
                    printed=lambda row: 20.0 if row.target == "video" else math.nan)
    told = [targets.outcome(cell, Store(declared)) for cell in SWEEP.cells("ucla", depth="1")]
    assert told == ["finished", "video 0.1 (printed 20), audio 1.1"]


def test_a_second_call_trains_nothing_and_other_tables_share_its_cells(declared, monkeypatch):
    first = run_table("made_up", "ucla", **OPTIONS)
    before = {path: path.stat().st_mtime_ns for path in declared.rglob("*") if path.is_file()}
    monkeypatch.setattr(Two, "step", None)
    pd.testing.assert_frame_equal(run_table("made_up", "ucla", **OPTIONS), first)
    shared = run_table("methods", "ucla", **OPTIONS)
    assert shared["ours"].tolist() == first["ours"].tolist()[::2]
    assert {path: path.stat().st_mtime_ns for path in declared.rglob("*") if path.is_file()} == before
    assert {path.parent.parent.name for path in before if path.name != "finished.log"} == {"cells"}
    assert "nothing is left to train" in plan_table("made_up", "ucla", **OPTIONS)


@pytest.mark.usefixtures("declared")
def test_several_values_of_fields_are_columns():
    found = run_table("methods", "ucla", batch="4,8", depth=[1, 2], power=3, method="heavy", **OPTIONS)
    assert list(found.columns) == ["method", "batch", "depth", "departures", *TAIL, "knn1"]
    assert list(zip(found["batch"], found["depth"], strict=True)) == [(4, 1), (4, 2), (8, 1), (8, 2)]
    assert found["departures"].tolist() == [
        {"batch": 4, "power": 3}, {"batch": 4, "depth": 2, "power": 3}, {"power": 3}, {"depth": 2, "power": 3}
    ]
    assert found["difference"].isna().all()
    assert found["ours"].tolist() == pytest.approx([2 * rate * depth for rate, depth in
                                                    ((0.05, 1), (0.05, 2), (0.1, 1), (0.1, 2))])


def test_of_several_learners_the_mean_of_their_numbers_counts_and_each_has_a_folder(declared):
    found = run_table("methods", method="both", **OPTIONS)  # of quick on bundled data: two steps of 0.1 x 2
    assert found["ours"].tolist() == pytest.approx([(0.4 + 10.4) / 2]) and found["published"].isna().all()
    folder = Store(declared).folder(METHODS.cells(method="both")[0].key)
    assert (folder / "checkpoint.pt").exists() and not list(folder.glob("*/checkpoint*"))
    result = json.loads((folder / "result.json").read_text())
    assert result["method_told"] == "both" and result["evaluation"] == 2 and result["cost"]["steps"] == 2.0
    assert {"seconds", "finished", "commit", "precision"} <= result["cost"].keys()


def test_where_the_result_cannot_be_written_no_learner_is_trained_again(declared, monkeypatch):
    write = store.write_json

    def full(path, value):
        if path.name == "result.json":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(path, value)

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_json", full)
        with pytest.raises(OSError, match=r"No space left on device.*result\.json"):
            run_table("methods", method="both", **OPTIONS)
    folder = Store(declared).folder(METHODS.cells(method="both")[0].key)
    assert len(list(folder.glob("*/checkpoint.pt"))) == 1
    monkeypatch.setattr(Two, "step", None)
    assert run_table("methods", method="both", **OPTIONS)["ours"].tolist() == pytest.approx([(0.4 + 10.4) / 2])
    assert not list(folder.glob("*/checkpoint*"))


@pytest.mark.usefixtures("declared")
def test_finished_is_a_row_a_cell_with_fields_measures_and_provenance():
    assert finished().empty
    run_table("made_up", "ucla", preset="smoke", seeds="1", **OPTIONS)
    run_table("called", "ucla", seeds="0", batch=16, **OPTIONS)
    found = finished()
    assert len(found) == 7 and found["study"].unique().tolist() == ["toys"]
    assert {"key", "seed", "preset", "dataset", "digest", "version", "commit", "finished", *TOY.fields} <= {*found}
    by_key = {cell.key: cell for cell in [*SWEEP.cells("ucla", preset="smoke", seeds=1),
                                          *CALLED.cells("ucla", batch=16)]}
    assert by_key.keys() == set(found["key"])
    for row in found.to_dict("records"):
        cell = by_key[row["key"]]
        assert (row["seed"], row["changes"], row["preset"]) == (cell.seed, cell.changes, cell.preset)
        assert {name: row[name] for name in TOY.fields} == cell.recipe.to_dict()
        assert row["linear"] == pytest.approx(cell.seed + 2 * cell.recipe.rate * cell.recipe.depth)


def test_what_changes_after_the_cells_were_listed_is_noticed(declared, monkeypatch):
    digests = iter(["one"] * 4 + ["another"] * 9)
    study = dataclasses.replace(TOY, load=lambda recipe: TOY.load(recipe)._replace(digest=next(digests)))
    monkeypatch.setitem(papers.tables(), "made_up", dataclasses.replace(SWEEP, study=study))
    with pytest.raises(ValueError, match=r"ucla has changed since this cell was asked for"):
        run_table("made_up", "ucla", **OPTIONS)
    assert not list(declared.rglob("result.json"))


def taken(monkeypatch):
    """Makes the figure of the table `methods` what is drawn of it; the other one is of a log."""
    drawings = {"methods": SimpleNamespace(draw=lambda rows: rows), "curves": None}
    monkeypatch.setattr(papers, "drawings", lambda: drawings)


@pytest.mark.usefixtures("declared")
def test_of_several_settings_the_first_is_drawn(monkeypatch, capsys):
    taken(monkeypatch)
    rows = run_table("methods", "ucla", batch="4,16", weight="2,3", **OPTIONS)
    assert len(rows) == 6  # plain has no weight
    capsys.readouterr()
    drawn = draw("methods", rows)
    assert drawn[["method", "batch", "weight"]].values.tolist() == [["plain", 4, 1.0], ["heavy", 4, 2.0]]
    assert "drawn is the first of several settings; give" in capsys.readouterr().out
    pd.testing.assert_frame_equal(draw("methods", rows[rows["batch"] == 4].iloc[:2]), drawn)
    assert capsys.readouterr().out == ""
    both = pd.concat([drawn, drawn.assign(dataset="synthetic")])
    assert len(draw("methods", both)) == 4  # which is for the figure to refuse


@pytest.mark.usefixtures("declared")
def test_a_table_that_is_not_there_and_one_without_a_figure(monkeypatch):
    taken(monkeypatch)
    assert find("called") is CALLED
    for call in (run_table, plan_table):
        with pytest.raises(ValueError, match="table='caled' is not one of: made_up, called, methods; did you mean"):
            call("caled")
    with pytest.raises(ValueError, match=r"name='made_up' is not one of: methods$"):
        draw("made_up", frame())


@pytest.mark.usefixtures("declared")
def test_a_precision_that_nobody_asked_for_is_said_once_where_something_is_trained(capsys, monkeypatch):
    unasked = {"precision": "auto"}
    monkeypatch.setitem(TOY.presets, "quick", lambda *names, **changes: quick(*names, **unasked | changes))
    for choices, said in (({}, True), ({}, False), ({"precision": "float32"}, False)):
        run_table("methods", method="plain", **choices, **OPTIONS)
        assert ("matrix products in " in capsys.readouterr().err) == said
