"""Experiments: every committed run is reached by its id, results need no data, and entries ask for what there is."""

import contextlib
import csv
import dataclasses
import functools
import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest

import repro
from repro import experiments, papers
from repro.experiments import Data, find, results
from repro.papers.sources import row_named
from repro.report.text import in_text
from repro.run.store import read_runs
from repro.table import Study

RUNS = Path(__file__).parents[1] / "figures" / "runs.csv"
SAVED = {name: experiment for name, experiment in experiments.experiments().items() if experiment.data}
GOLDEN = Path(__file__).parent / "golden" / "experiments.csv"
SOUND = {"table": "taxonomy", "says": "so"}  # an entry


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "no data"))
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "no runs"))


@functools.cache
def committed():
    return read_runs(RUNS)


def test_every_committed_run_is_reached_by_the_same_experiments_as_ever():
    """By its id, which therefore is what it was when the golden file was written."""
    with GOLDEN.open(newline="", encoding="utf-8") as file:
        expected = {row["id"]: row["experiments"].split() for row in csv.DictReader(file)}
    asked = {name: experiment.asked() for name, experiment in SAVED.items()}
    ids = set(committed()["id"])
    assert {id: [name for name in asked if id in asked[name]] for id in ids} == {id: expected[id] for id in ids}
    assert ids == expected.keys() and all(expected.values())


@pytest.mark.parametrize("name", SAVED)
def test_results_are_means_over_seeds_of_committed_runs_without_any_data_and_its_committed_table(name):
    experiment, rows = find(name), repro.results(name)
    columns = list(rows)
    written = pd.read_csv(RUNS.parent / f"{name}.csv", keep_default_na=False, na_values=[""])
    made = in_text(rows).replace("", math.nan).reset_index(drop=True)
    pd.testing.assert_frame_equal(written, made, check_dtype=False)
    assert len(rows) and rows["ours"].notna().all() and set(rows["preset"]) == {experiment.preset}
    assert not rows[columns[: columns.index("ours")]].map(str).duplicated().any()
    if "target" in rows or "varied" in rows:
        return
    asked, stored = experiment.asked(), committed()
    expected: dict[str, list[float]] = {}
    for id, metrics in zip(stored["id"], stored["metrics"], strict=True):
        if id in asked:
            recipe = asked[id].recipe
            expected.setdefault(recipe.canonical(), []).append(json.loads(metrics)["linear"])
    means = sorted(sum(values) / len(values) for values in expected.values())
    assert sorted(rows["ours"]) == pytest.approx(means)
    assert sorted(rows["n_seeds"]) == sorted(map(len, expected.values()))


def test_a_table_is_an_experiment_with_its_defaults_and_public_names_are_there():
    assert {*papers.tables()} <= {*repro.EXPERIMENTS} and {*papers.saved()} <= {*repro.EXPERIMENTS}
    assert repro.EXPERIMENTS["taxonomy"].arguments == {
        "dataset": None, "preset": "auto", "seeds": "0", "variant": "none"}
    assert all(experiment.says and len(experiment.says) < 100 for experiment in SAVED.values())
    with pytest.raises(ValueError, match=r"^did you mean 'taxonomy_ucla'. experiment='taxonomy_ulca' is not one of: "):
        results("taxonomy_ulca")


@pytest.mark.parametrize(("entry", "message"), [
    ({"table": "taxonomi", "says": "so"}, "table='taxonomi' is not one of: .*taxonomy"),
    (SOUND | {"sedes": 1}, "field='sedes' is not one of: .*seeds"),
    ({"table": "taxonomy"}, "lacks says"), ({"says": "so"}, "lacks table"),
    (None, "None should be table, says, dataset"), (SOUND | {"name": "other"}, "field='name' is not one of: table"),
    (SOUND | {"seeds": "x"}, "seeds='x' should be"), (SOUND | {"dataset": "ntuu"}, "dataset='ntuu' is not one of"),
    (SOUND | {"fields": {"objectives": "CX"}}, "objectives='CX': term='CX' is not one of"),
    (SOUND | {"fields": {"dropuot": 2}}, "parameter='dropuot' is not one of"),
    (SOUND | {"data": "a" * 64}, "data: Input should be a dictionary"),
    (SOUND | {"data": {"digset": "a" * 64}}, "field of data='digset' is not one of: digest, by"),
    (SOUND | {"data": {"digest": 12}}, "data.digest.*: Input should be a valid .*, got 12"),
    (SOUND | {"data": {"by": "layers", "digest": {1: "ab"}}}, "data.digest.*: String should match pattern .*'ab'"),
    (SOUND | {"data": {"by": "layer", "digest": {1: "a" * 64}}}, "did you mean 'layers'. by='layer' is not one of: "),
    (SOUND | {"data": {"by": "layers", "digest": {5: "a" * 64}}}, "layers of a digest=1 is not one of: 5"),
    (SOUND | {"fields": ["epochs"]}, r"fields: Input should be a valid dictionary, got \['epochs'\]"),
    (SOUND | {"seeds": [0, 0]}, "names 0 twice"),
    (SOUND | {"fields": {"seeds": 1}}, "seeds stands among fields; write it beside them"),
])
def test_an_entry_that_asks_for_what_there_is_not_is_named_with_its_file(monkeypatch, entry, message):
    monkeypatch.setattr(papers, "saved", lambda: {"odd": (Path("mine/experiments.yaml"), entry)})
    with pytest.raises(ValueError, match=f"mine/experiments.yaml, entry odd: .*{message}"):
        find("odd")


@pytest.mark.parametrize("name", SAVED)
def test_an_experiment_of_one_of_its_methods_has_the_recipes_of_that_method(name):
    experiment = SAVED[name]
    named, recipes = experiment.declared.study.recipe.named_by, experiment.recipes
    for method in {getattr(recipe, named) for recipe in recipes}:
        assert experiment.with_choices({named: method}).recipes == {
            recipe for recipe in recipes if getattr(recipe, named) == method}


def test_digests_may_depend_on_a_field():
    data = Data(by="characters", digest={1: "a" * 64, 2: "b" * 64})
    recipes = [find("mutual_information_augmented").declared.asked(
        "multiomniglot", "quick", characters=number, method="smoco")[0].recipe for number in (1, 2)]
    assert [data.of(recipe) for recipe in recipes] == ["a" * 64, "b" * 64]
    assert math.isnan(results("mutual_information_augmented")["printed"].max())


def run(name, train="missing", **choices):
    return experiments.table_of(experiments.chosen(name, choices, train, "cpu"), train, "cpu", "inline", 1)


def test_a_command_that_trains_never_prints_results_without_data():
    pd.testing.assert_frame_equal(run("taxonomy_ucla", train="never"), results("taxonomy_ucla"))
    narrowed = run("taxonomy_ucla", train="never", objectives="CE,AE", seeds="0-1")
    assert set(narrowed["objectives"]) == {"AE", "CE"} and set(narrowed["n_seeds"]) == {2}
    for train, error, message in (("missing", FileNotFoundError, r"all_sqe\.zip.*; committed results of taxonomy"),
                                  ("no", ValueError, "train='no' is not one of: missing, never")):
        with pytest.raises(error, match=message):
            run("taxonomy_ucla", train=train)


@pytest.mark.parametrize(("name", "arguments", "saved"), [
    ("taxonomy", {"dataset": "ucla", "seeds": "0-4"}, "taxonomy_ucla"),
    ("temperature_grid", {"dataset": "cifar10", "preset": "quick", "subset": True, "seeds": "0-2"},
     "temperature_grid_cifar10"),
])
def test_a_table_that_is_not_trained_shows_what_comes_along_where_its_data_are_missing(name, arguments, saved, capsys):
    experiments.warn_once.cache_clear()
    rows = repro.run_table(name, train="never", **arguments)
    pd.testing.assert_frame_equal(rows, results(saved))
    told = f"{arguments['dataset']} is not here: the committed results of {saved} are shown\n"
    assert told in capsys.readouterr().err
    assert {run.id for run in experiments.runs_of(name, train="never", **arguments)} == find(saved).asked().keys()
    for train, wrong in (("missing", {}), ("never", {"learning_rate": 0.5})):
        with pytest.raises(FileNotFoundError, match=r"; committed results of .* are shown by `repro"):
            repro.run_table(name, train=train, **arguments | wrong)


def test_results_that_come_along_are_shown_of_data_of_ones_own_on_which_nothing_is_trained(monkeypatch, capsys):
    experiments.warn_once.cache_clear()
    others = {"digest": "0" * 64, "dataset": "synthetic"}
    monkeypatch.setattr(Study, "on_data", lambda study, run, digest="": dataclasses.replace(
        run, **others | ({"digest": digest} if digest else {})))
    rows = repro.run_table("taxonomy", "synthetic", seeds="0-2", train="never")
    told = "nothing is trained on the data that are here: the committed results of taxonomy_synthetic are shown\n"
    assert len(rows) == 16 and told in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [{}, {"dataset": "cifar10"}])
def test_where_nothing_is_finished_it_is_told_what_shows_committed_results(arguments, capsys):
    experiments.warn_once.cache_clear()
    told = ("committed results of temperature_grid are shown by `repro run temperature_grid_cifar10 --train never` "
            "and repro.results('temperature_grid_cifar10')")
    with pytest.raises(FileNotFoundError, match=re.escape(told)) if arguments else contextlib.nullcontext():
        assert repro.run_table("temperature_grid", train="never", **arguments).empty
        assert f"{told}\n" in capsys.readouterr().err
    assert len(repro.run_table("temperature_grid", "cifar10", subset=True, preset="quick", train="never"))


def test_what_is_not_finished_is_told_beside_what_is(capsys):
    rows = run("taxonomy_ucla", train="never", objectives="CE,AE", seeds="0,2,90-91")
    assert rows["n_seeds"].tolist() == [2, 2]
    told, = capsys.readouterr().err.splitlines()
    assert told == "4 of 8 runs are not finished, the first is CE, seed 90"


def test_values_of_a_row_name_its_fields_before_anything_is_trained():
    def named(name, values, **choices):
        return row_named(experiments.find(name).with_choices(choices), values)

    assert named("samplers_with_headroom", "random, 256", batch=128) == {"sampler": "random", "dictionary": 256}
    assert named("cross_modal_with_headroom", "Scratch") == {"approach": "Scratch"}
    for typed in ("2", "2.0"):
        assert named("taxonomy_synthetic", typed, ad_weight="2,5") == {"ad_weight": 2.0}
    assert named("pooled_keys_synthetic", "True") == {"renewed": True}
    assert named("taxonomy_synthetic", "none", td_crop="none,20") == {"td_crop": "none"}


@pytest.mark.parametrize(("values", "choices", "message"), [
    ("randm", {}, "did you mean 'random'. against='randm' is not one of: random, "),
    ("random,gradient", {}, "against='random,gradient' names no row: none has all of these values"),
    ("gradient", {"sampler": "random"}, "against='gradient' is not one of: random, 128, 1024, 256"),
])
def test_values_that_no_row_has_are_refused(values, choices, message):
    with pytest.raises(ValueError, match=message):
        row_named(experiments.find("samplers_with_headroom").with_choices(choices), values)
