"""Notebooks run from end to end with changed parameters, and show what these ask for."""

import base64
import io
import json
import re

import pandas as pd
import pytest
from executed_notebooks import SMOKE, executed, outputs, printed, tables
from PIL import Image


def rows(notebook):
    """Cells of the first table shown, row by row."""
    body = tables(notebook)[0].split("<tbody>")[1]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in body.split("</tr>")[:-1]]


def runs(folder):
    return sorted((folder / "runs").glob("runs/*/result.json"))


def recipe_of(path):
    """The recipe of the run with that result."""
    return json.loads(path.with_name("recipe.json").read_text())["recipe"]


def pictures(notebook):
    """The pictures shown, which are large enough and not of one colour."""
    images = [Image.open(io.BytesIO(base64.b64decode(data))) for data in outputs(notebook, "image/png")]
    for image in images:
        assert min(image.size) > 200 and len(image.convert("L").getcolors()) > 10
    return images


def test_taxonomy_with_two_objectives(tmp_path):
    notebook = executed("taxonomy", tmp_path, objectives="CE,random", subset="False", **SMOKE)
    assert "2 runs of preset smoke on synthetic, 0 finished" in printed(notebook)
    assert [row[0] for row in rows(notebook)] == ["CE", "random"]  # in the order asked for
    linear = {recipe_of(path)["objectives"]: json.loads(path.read_text())["linear"] for path in runs(tmp_path)}
    assert sorted(linear) == ["CE", "random"]
    for row, name in zip(rows(notebook), ("CE", "random"), strict=True):
        assert f"{linear[name]:.2f}" in row
    assert len(pictures(notebook)) == 3  # poses, table and curves


@pytest.mark.parametrize(("name", "parameters", "count"), [
    ("taxonomy", {"dataset": "ucla", "objectives": "CE,AD"}, 2),
    ("positive_keys", {"dataset": "cifar10", "preset": "quick", "subset": "True"}, 10),
])
def test_without_data_and_weights_a_notebook_shows_what_is_committed(name, parameters, count, tmp_path):
    notebook = executed(name, tmp_path, train="never", device="cpu", **parameters)
    dataset = parameters["dataset"]
    assert f"{dataset} is not here: the committed results of {name}_{dataset} are shown" in printed(notebook)
    assert len(rows(notebook)) == count and runs(tmp_path) == []
    assert len(pictures(notebook)) == 2  # of the table, and curves along training or sampled keys


@pytest.mark.parametrize(("name", "parameters", "trained", "beginnings", "images"), [
    ("encoder_collapse", {"layers": "1,2"}, 4, [["1", "random"], ["1", "AE"], ["2", "random"], ["2", "AE"]], 1),
    ("temperature_grid", {"method": "sce", "temperature": "0.1", "key_temperature": "0.05,0.1"}, 2,
     [["sce", "0.05"], ["sce", "0.10"]], 3),  # views, grid, parts
    ("positive_keys", {"keys": "2,5", "strength": "4", "temperature": "0.2"}, 2,
     [["keys"], ["keys"], ["strength"], ["temperature"]], 2),  # sweeps and sampled keys
    ("similarity_variance", {}, 2, [["jcl", "9"], ["moco", "1"]], 1),
    ("ohem_vs_active", {"sampler": "ohem,gradient", "batch": "16"}, 2,
     [[sampler, f"synthetic_{modality}"] for sampler in ("ohem", "gradient") for modality in ("video", "audio")], 1),
    ("mutual_information", {"method": "cmacc", "characters": "1,3"}, 2,
     [["cmacc", number, target] for number in "13" for target in ("characters", "new_drawings")], 1),
])
def test_a_notebook_shows_what_its_parameters_ask_for(name, parameters, trained, beginnings, images, tmp_path):
    notebook = executed(name, tmp_path, **parameters, **SMOKE)
    assert [row[: len(beginning)] for row, beginning in zip(rows(notebook), beginnings, strict=True)] == beginnings
    assert len(runs(tmp_path)) == trained and len(pictures(notebook)) == images


@pytest.mark.parametrize(("name", "parameters", "beginnings", "printed_numbers"), [
    ("cross_modal", {"method": "cmacc,smoco", "sampler": "feature", "extra_layer": "True"},
     [[approach, target] for approach in ("SMoCo", "CM-ACC, feature embedding")
      for target in ("synthetic_video", "synthetic_audio")], ["77.2", "74.5"]),  # Table 1, Table 2
    ("dictionary_size", {"method": "xmoco", "dictionary": "64,32"}, [["xmoco", "64"]] * 2 + [["xmoco", "32"]] * 2,
     ["1e3"]),  # what the paper says of its curve
    ("transfer", {"method": "scratch,cmacc", "targets": "synthetic_audio"},
     [["scratch"], ["cmacc"]], ["", "", ""]),
])
def test_printed_numbers_stand_in_tables_of_their_own(name, parameters, beginnings, printed_numbers, tmp_path):
    notebook = executed(name, tmp_path, **parameters, **SMOKE)
    assert [row[: len(beginning)] for row, beginning in zip(rows(notebook), beginnings, strict=True)] == beginnings
    assert len(runs(tmp_path)) == 2 and len(pictures(notebook)) == 1
    measured = [value for path in runs(tmp_path) for name, value in json.loads(path.read_text()).items()
                if name in ("synthetic_video", "synthetic_audio")]
    shown = [text for row in rows(notebook) for text in row]
    assert len(measured) == len(beginnings) and {f"{value:.2f}" for value in measured} <= {*shown}
    for table, number in zip(tables(notebook)[1:], printed_numbers, strict=True):
        assert number in table and "here:" not in table  # bundled data are not among the printed


def test_an_encoder_from_a_file_names_as_many_recordings_as_its_run(tmp_path):
    notebook = executed("weights", tmp_path, objectives="random", **SMOKE)
    path, = runs(tmp_path)
    assert f"{json.loads(path.read_text())['knn1']:.1f} % of camera 3 are named correctly" in printed(notebook)
    assert path.with_name("encoder.safetensors").exists() and len(pictures(notebook)) == 1
    assert [row[0] for row in rows(notebook)] == ["random"]


def test_category_diversity_of_two_samplers(tmp_path):
    chosen = {"sampler": "gradient,random", "batch": "32", "iterations": "3"}
    notebook = executed("category_diversity", tmp_path, **chosen, **SMOKE)
    assert [row[:2] for row in rows(notebook)] == [
        [sampler, modality] for sampler in ("gradient", "random") for modality in ("video", "audio")
    ]
    assert all(1 <= float(row[2]) <= 32 for row in rows(notebook))  # ours
    assert re.search(r"expected 2[0-7]\.\d\d,.* changed iterations=3<", tables(notebook)[0])
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 2  # shares and curves
    uniform = tables(notebook)[-1]
    assert "72.0" in uniform and "36.7" in uniform


def test_category_difficulty_of_two_methods(tmp_path):
    chosen = {"method": "cmacc,xmoco", "targets": "synthetic_audio", "dictionary": "64"}
    notebook = executed("category_difficulty", tmp_path, **chosen, **SMOKE)
    assert [row[0] for row in rows(notebook)] == ["cmacc", "xmoco"]
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 2  # a figure each
    stored = pd.concat(map(pd.read_csv, (tmp_path / "runs").glob("runs/*/pretext_accuracy.csv")))
    assert stored["method"].value_counts().to_dict() == {"cmacc": 64, "xmoco": 64}
    assert stored["accuracy_again"].between(0, 100).all()
    summary = next(html for html in outputs(notebook, "text/html") if "accuracy_again" in html)
    assert summary.count(">video</th>") == summary.count(">audio</th>") == 2  # kinds of queries, of each method


def test_negative_instances_of_a_short_training(tmp_path):
    notebook = executed("negative_instances", tmp_path, targets="synthetic_audio", seeds="3", **SMOKE)
    path, = (tmp_path / "runs").glob("runs/*/selected_negatives.csv")
    found = pd.read_csv(path)
    assert set(found["seed"]) == {3} and len(found) == 2 * 4 * 16
    colours = [len(image.convert("RGB").getcolors(2**24)) for image in pictures(notebook)]
    assert len(colours) == 2 and min(colours) > 1000  # negatives of pictures and of sound
    assert "same_category" in tables(notebook)[1] and "333.87" in tables(notebook)[2]


def test_linear_models_of_our_results(tmp_path):
    notebook = executed("glm", tmp_path, results="taxonomy_synthetic", column="ours", rows="all")
    assert "taxonomy_synthetic, ours, 15 rows" in printed(notebook)
    assert len(outputs(notebook, "image/png")) == 2
    assert not (tmp_path / "runs").exists()
    assert any(">2.394</td>" in table and ">1.210</td>" in table for table in outputs(notebook, "text/html"))


def test_claims_are_filtered_and_name_experiments(tmp_path):
    notebook = executed("claims", tmp_path, paper="taxonomy", verdict="contradicts itself")
    table, discrepancies = tables(notebook)
    ids = re.findall(r">\s*(T\d+)\s*</td>", table)
    assert "T1" in ids and f"{len(ids)} claims" in printed(notebook)
    assert not re.findall(r">\s*([CSJ]\d+)\s*</td>", table) and ">holds<" not in table
    assert "printed_by_objective" in table
    assert "T-10" in discrepancies and "C-1" not in discrepancies
    assert len(outputs(notebook, "image/png")) == 1
