"""Figures and their tables from made-up exported cells and logs, without data, training or a store."""

import itertools
import re

import pandas as pd
import pytest
from made_up_cells import frame, placed, skeleton, sounding
from pandas import DataFrame
from redrawn import hashes, redraw, told

from repro import papers
from repro.audiovisual import synthetic
from repro.run.export import read_cells
from repro.skeleton.recipe import METHODS, VARIANTS
from repro.skeleton.study import SKELETONS

COUNT = itertools.count()
TABLES, DRAWINGS = papers.tables(), papers.drawings()


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "no data"))
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "no runs"))


def exported(objectives, *, preset="quick", linear=None, **changes):
    """One row of cells.csv."""
    number = next(COUNT)
    linear = 40.0 + number % 37 if linear is None else linear
    measures = {"linear_unseen": linear - 1, "knn1": linear - 5, "select": "last"}
    measures["embedding_spread"] = 0.25 + number % 7 / 10
    return skeleton(objectives, linear, preset=preset, measures=measures, **changes)


def whole_table(**changes):
    return [exported(name, **changes) for name in METHODS]


def depths(**changes):
    pairs = itertools.product((1, 2, 3), ("random", "AE"))
    return [exported(method, layers=layers, **changes) for layers, method in pairs]


def table_of(folder, name):
    return pd.read_csv(folder / f"{name}.csv", keep_default_na=False, na_values=[""])


def texts(picture):
    """Texts of an SVG, each of which stands as a remark before its shapes."""
    return re.findall("<!-- (.*?) -->", picture.read_text(), re.DOTALL)


def test_one_figure_and_table_for_every_table_and_data_set_always_of_the_same_bytes(tmp_path):
    cells = frame(*whole_table(seed=0), *whole_table(dataset="synthetic"), *depths(), exported("CE", layers=3))
    written = redraw(cells, tmp_path / "one")
    stems = ("taxonomy_ucla", "taxonomy_ucla_3layers", "taxonomy_synthetic", "encoder_collapse_ucla")
    expected = {f"{stem}.{ending}" for stem in stems for ending in ("csv", "svg", "png")}
    assert {path.name for path in written} == {path.name for path in (tmp_path / "one").iterdir()} == expected
    assert len(written) == 12 and (tmp_path / "one" / "taxonomy_ucla.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "no data").exists() and not (tmp_path / "no runs").exists()
    cells.to_csv(tmp_path / "cells.csv", index=False)
    redraw(read_cells(tmp_path / "cells.csv"), tmp_path / "two")  # stored and read again
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")


def test_a_setting_that_only_another_table_was_run_in_has_no_file(tmp_path):
    names = {path.stem for path in redraw(frame(*whole_table(), *depths()), tmp_path, drawn=False)}
    assert names == {"taxonomy_ucla", "encoder_collapse_ucla"}  # whose AE and random have three layers too


def test_a_figure_names_its_setting_also_where_no_method_of_it_uses_the_whole(tmp_path):
    used = {"characters": 3, "pairs": 50_000, "augmented": True, "iterations": 1250}  # the pool is CM-ACC's
    redraw(frame(*(sounding("smoco", {"characters": 90.0, "linear": 90.0, "linear_held_out": 80.0}, dictionary=size,
                            dataset="multiomniglot", **used) for size in (256, 2048))), tmp_path)
    picture, = tmp_path.glob("dictionary_size_*.svg")
    assert "iterations=1250" in (drawn := picture.read_text(encoding="utf-8")) and "pool=40960" in drawn


def test_a_number_with_nothing_beside_it_is_no_figure(tmp_path):
    assert [path.name for path in redraw(frame(exported("CE", dataset="synthetic")), tmp_path)] == [
        "taxonomy_synthetic.csv"]


def test_the_csv_is_the_table(tmp_path):
    rows = [*whole_table(seed=0), *whole_table(seed=3)]
    redraw(frame(*rows), tmp_path, drawn=False)
    cells = placed(*rows)["taxonomy"]
    before = cells.copy()
    found, expected = table_of(tmp_path, "taxonomy_ucla"), TABLES["taxonomy"].laid_out(cells)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    pd.testing.assert_frame_equal(cells, before)
    assert found["published"].notna().all() and found["n_seeds"].tolist() == [2] * 16


def test_files_name_the_cells_they_show(tmp_path):
    cells = frame(*whole_table(seed=2), *whole_table(seed=0))
    redraw(cells, tmp_path)
    caption, source = told(tmp_path / "taxonomy_ucla")
    assert sorted(source.pop("cells")) == sorted(cells["key"])
    assert source == {"seeds": [0, 2], "preset": "quick", "dataset": "ucla"}
    spread = "± and bars with ends: one standard deviation over seeds."
    version = "Cells of version 1 of the training (today's is 3)."
    assert caption == (f"{DRAWINGS['taxonomy'].caption} {spread} {version} Data set: ucla. Preset: quick. "
                       f"Seeds: 0, 2. Drawn from {len(cells)} cells, whose keys are in the source of this file.")


def test_variants_name_the_cells_of_the_recipe_that_they_stand_beside(tmp_path):
    recipes = [exported("CE", seed=seed) for seed in (0, 1)] + [exported("AE")]
    away = exported("CE", head="mlp", seed=1)
    redraw(frame(*recipes, away), tmp_path)
    _, source = told(tmp_path / "taxonomy_variants_ucla")
    assert source == {"cells": [away["key"], recipes[1]["key"]], "seeds": [1], "preset": "quick", "dataset": "ucla"}


def test_smoke_cells_are_passed_over_and_of_equal_cells_the_one_finished_last_counts(tmp_path):
    smoke = whole_table(preset="smoke", linear=1.0)
    assert redraw(frame(*smoke), tmp_path) == redraw(frame(), tmp_path) == [] == list(tmp_path.iterdir())
    rows = [exported("CE", linear=value, finished=f"2024-05-0{day}T12:00:00+00:00")
            for value, day in ((50.0, 1), (70.0, 3), (60.0, 2))]
    redraw(frame(*smoke, *rows), tmp_path, drawn=False)
    columns = ["objectives", "ours", "n_seeds", "preset"]
    assert table_of(tmp_path, "taxonomy_ucla")[columns].to_numpy().tolist() == [["CE", 70.0, 1, "quick"]]


@pytest.mark.parametrize(("quick", "paper", "expected"), [(3, 2, "quick"), (2, 3, "paper"), (2, 2, "paper")])
def test_the_preset_with_most_entries_is_shown(quick, paper, expected, tmp_path):
    rows = [*(exported(name, preset="quick", seed=seed) for name in METHODS[:quick] for seed in (0, 1, 2)),
            *(exported(name, preset="paper") for name in METHODS[:paper])]
    redraw(frame(*rows), tmp_path, drawn=False)
    found = table_of(tmp_path, "taxonomy_ucla")
    assert set(found["preset"]) == {expected}
    assert found["objectives"].tolist() == list(METHODS[: {"quick": quick, "paper": paper}[expected]])
    assert set(found["n_seeds"]) == {3 if expected == "quick" else 1}


def test_variants_and_other_departures_stay_out_of_the_main_table(tmp_path):
    main = [exported(name, linear=60.0) for name in ("random", "CE", "AD+CD")]
    away = [exported("AD+CD", linear=1.0, **{field: value})
            for changes in VARIANTS.values() for field, value in changes.items()]
    others = [exported("CE", linear=2.0, layers=3, head="mlp"),
              exported("CE", linear=2.0, select="best_on_test"),
              exported("AE", linear=2.0, head="mlp")]
    redraw(frame(*away, *main, *others), tmp_path, drawn=False)
    found = table_of(tmp_path, "taxonomy_ucla")
    assert found["objectives"].tolist() == ["random", "CE", "AD+CD"]
    assert found["ours"].tolist() == [60.0] * 3
    variants = table_of(tmp_path, "taxonomy_variants_ucla")
    assert len(variants) == len(away) + len(others)
    assert set(variants["ours"]) == {1.0, 2.0} and set(variants["usual"].dropna()) == {60.0}
    without = variants[variants["usual"].isna()]
    assert set(without["objectives"] + without["departures"]) == {"AEhead=mlp", "CElayers=3, head=mlp"}


PLACES = {"_3layers": {"layers": 3}, "_1024units": {"units": 1024}, "": {}}


def on_ntu(name, linear, **changes):
    """A cell of NTU RGB+D away from its preset."""
    return exported(name, dataset="ntu", preset="paper", linear=linear, **changes)


def test_other_depths_and_widths_have_tables_of_their_own(tmp_path):
    """Printed columns of NTU RGB+D, typed from the paper, stand beside their own cells."""
    rows = [on_ntu(name, 40.0 + number, **changes) for number, changes in enumerate(PLACES.values())
            for name in ("CE", "AD+CD")]
    away = [on_ntu("CE", 30.0, **changes, head="mlp") for changes in PLACES.values()]
    written = {path.name for path in redraw(frame(*rows, *away), tmp_path, drawn=False)}
    assert written == {"taxonomy_variants_ntu.csv", *(f"taxonomy_ntu{ending}.csv" for ending in PLACES)}
    printed = {"_3layers": [55.37, 20.08], "_1024units": [67.21, 48.90], "": [66.54, 48.22]}
    for number, ending in enumerate(PLACES):
        found = table_of(tmp_path, f"taxonomy_ntu{ending}").set_index("objectives")
        assert found["ours"].to_dict() == {"CE": 40.0 + number, "AD+CD": 40.0 + number}
        published = found["published"].loc[["CE", "AD+CD"]].dropna().tolist()
        assert published == printed.get(ending, [])
    variants = table_of(tmp_path, "taxonomy_variants_ntu")
    usual = {"layers=3, ": 40.0, "units=1024, ": 41.0, "": 42.0}
    usual = {f"{departures}head=mlp": accuracy for departures, accuracy in usual.items()}
    assert variants.set_index("departures")["usual"].to_dict() == usual
    assert variants["difference"].isna().all()


def test_versions_stand_side_by_side(tmp_path):
    """What the newest version has not trained yet stands with its own, and earlier cells of the others apart."""
    rows = [exported("CE", preset="paper", seed=seed, version=version, linear=10.0 * version + seed)
            for version, seeds in ((2, (0, 1, 2)), (3, (0, 1))) for seed in seeds]
    rows += [exported("AE", preset="paper", seed=seed, version=2, linear=80.0) for seed in (0, 1)]
    redraw(frame(*rows), tmp_path)
    main = table_of(tmp_path, "taxonomy_ucla").set_index("objectives")
    assert main[["ours", "n_seeds", "version"]].T.to_dict("list") == {"AE": [80.0, 2, 2], "CE": [30.5, 2, 3]}
    assert list(main.columns)[-1] == "version" and main["difference"].notna().all()
    earlier, = table_of(tmp_path, "taxonomy_variants_ucla").to_dict("records")
    assert (earlier["departures"], earlier["ours"], earlier["n_seeds"]) == ("version=2", 21.0, 3)
    assert pd.isna(earlier["difference"]) and earlier["published"] == 83.73
    caption, _ = told(tmp_path / "taxonomy_ucla")
    assert "Versions of the training: 3 of CE; 2 of all others (today's is 3). Data set: ucla." in caption


def test_where_all_cells_are_of_todays_version_nothing_names_it(tmp_path):
    redraw(frame(*[exported(name, version=SKELETONS.version) for name in ("CE", "AD")]), tmp_path)
    assert "version" not in table_of(tmp_path, "taxonomy_ucla") and "ersion" not in told(tmp_path / "taxonomy_ucla")[0]
    assert not any("ersion" in text for text in texts(tmp_path / "taxonomy_ucla.svg"))


def test_where_all_cells_are_of_an_earlier_version_the_heading_names_it(tmp_path):
    redraw(frame(*[exported(name, version=SKELETONS.version - 1) for name in ("CE", "AD")]), tmp_path)
    assert f"ucla, version {SKELETONS.version - 1}, 1 seed" in texts(tmp_path / "taxonomy_ucla.svg")


def test_a_variant_stands_beside_its_own_preset(tmp_path):
    rows = [exported("CE", preset=preset, seed=seed, linear=value + seed)
            for preset, value in (("quick", 50.0), ("paper", 70.0)) for seed in (0, 1)]
    away = [exported("CE", preset=preset, head="mlp", linear=value)
            for preset, value in (("quick", 40.0), ("paper", 80.0))]
    redraw(frame(*rows, *away), tmp_path, drawn=False)
    found = table_of(tmp_path, "taxonomy_variants_ucla").set_index("preset")
    assert found["ours"].to_dict() == {"paper": 80.0, "quick": 40.0}
    assert found["usual"].to_dict() == {"paper": 70.0, "quick": 50.0}, "the other seed of the recipe stays out"
    assert set(found["departures"]) == {"head=mlp"} and set(found["published"]) == {83.73}
    more = exported("CE", preset="paper", head="mlp", seed=5, linear=80.0)
    redraw(frame(*rows, *away, more), tmp_path, drawn=False)
    assert table_of(tmp_path, "taxonomy_variants_ucla").set_index("preset")["usual"].isna().to_dict() == {
        "paper": True, "quick": False
    }, "the recipe lacks seed 5"


def test_every_table_has_a_caption():
    undrawn = {"similarity_variance"}  # its figure is drawn from a log
    assert {"taxonomy_variants", *TABLES} - undrawn <= set(DRAWINGS)
    assert all(drawing.caption.endswith(".") for drawing in DRAWINGS.values())


def test_targets_asked_for_one_by_one_are_one_table(tmp_path):
    whole = {"ucf101": 50.0, "hmdb51": 20.0, "esc50": 60.0}
    rows = [sounding("cmacc", whole, dataset="kinetics_sound", preset="paper", split=0),
            sounding("cmacc", {"esc50": 60.0}, dataset="kinetics_sound", preset="paper", split=0,
                     targets="esc50"),
            sounding("cmacc", {"hmdb51": 22.0}, dataset="kinetics_sound", preset="paper", split=0, seed=1,
                     targets="hmdb51")]
    redraw(frame(*rows), tmp_path, drawn=False)
    found = table_of(tmp_path, "transfer_kinetics_sound").set_index("target")
    assert found["ours"].to_dict() == {"ucf101": 50.0, "hmdb51": 21.0, "esc50": 60.0}
    assert found["n_seeds"].to_dict() == {"ucf101": 1, "hmdb51": 2, "esc50": 1}
    assert found["published"].dropna().to_dict() == {"ucf101": 77.2, "hmdb51": 40.6, "esc50": 77.3}


NAMED = {"key": "00a1", "seed": 0, "preset": "quick"}


def negatives(dataset):
    """What samplers pick, as a log."""
    rows = [("video", sampler, pick, 7 * pick, "a", 3.0 + pick, 50.0, 9, "b") for sampler in ("random", "gradient")
            for pick in range(4)]
    columns = ["modality", "sampler", "pick", "item", "category", "gradient_norm", "smaller", "nearest",
               "nearest_category"]
    return DataFrame(rows, columns=columns).assign(dataset=dataset, **NAMED)


def test_logs_are_drawn_beside_their_file_and_name_their_cells(tmp_path):
    parts = DataFrame({"epoch": [1.0, 2.0], "InfoNCE": 4.0, "ReSSL": 3.0, "Ceil": 1.0, "loss": 4.0, "weight": 0.5})
    parts.assign(**NAMED, dataset="digits").to_csv(tmp_path / "objective_parts_digits.csv", index=False)
    log = DataFrame({"epoch": [1, 2] * 2, "CD": 6.0, "sequence_dictionary": 640, "objectives": "CD", "td_queue": "live",
                     "key": ["c", "c", "b", "b"], "seed": [3, 3, 0, 0], "dataset": "digits", "preset": "quick"})
    log.to_csv(tmp_path / "sequence_contrast_digits.csv", index=False)
    stems = ("objective_parts_digits", "sequence_contrast_digits")
    written = redraw(frame(), tmp_path)
    assert {path.name for path in written} == {f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")}
    caption, source = told(tmp_path / "objective_parts_digits")
    assert source == {"cells": ["00a1"], "seeds": [0], "preset": "quick", "dataset": "digits"}
    assert caption == (f"{DRAWINGS['objective_parts'].caption} Data set: digits. Preset: quick. Seed: 0. Drawn from 1 "
                       "cell, whose key is in the source of this file.")
    caption, source = told(tmp_path / "sequence_contrast_digits")
    assert (source["cells"], source["seeds"]) == (["c", "b"], [0, 3])
    assert "Seeds: 0, 3. Drawn from 2 cells, whose" in caption


def test_pictures_of_real_clips_are_never_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "pictures", lambda items: pytest.fail("pictures of the wrong clips"))
    for dataset in ("ucf101", "kinetics700 (subset)"):
        name = dataset.partition(" ")[0]
        negatives(dataset).to_csv(tmp_path / f"selected_negatives_{name}.csv", index=False)
    assert redraw(frame(), tmp_path) == []
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv"}
