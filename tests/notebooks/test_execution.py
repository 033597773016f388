"""Notebooks that train run from end to end with changed parameters, and show what these ask for."""

import base64
import io
import json
import re

import pandas as pd
import pytest
from executed_notebooks import FOLDER, SMOKE, code_cells, execute, outputs, printed
from PIL import Image


def rows(notebook):
    """Cells of the first table shown, row by row."""
    table, *_ = (html for html in outputs(notebook, "text/html") if "<tbody>" in html)  # ours, then the printed one
    body = table.split("<tbody>")[1]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in body.split("</tr>")[:-1]]


def runs(folder):
    return sorted((folder / "runs").glob("cells/*/result.json"))


def recipe_of(path):
    """The recipe of the run with that result."""
    return json.loads(path.with_name("recipe.json").read_text())["recipe"]


def test_taxonomy_with_two_objectives_and_again(tmp_path):
    process, notebook = execute("taxonomy", tmp_path, objectives="CE,random", subset="False", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert "unknown parameter" not in process.stderr
    assert "2 cells of preset smoke on synthetic, 0 finished" in printed(notebook)
    assert [row[0] for row in rows(notebook)] == ["random", "CE"]  # in the order of the table
    linear = {recipe_of(path)["objectives"]: json.loads(path.read_text())["linear"] for path in runs(tmp_path)}
    assert sorted(linear) == ["CE", "random"]
    assert [row[5] for row in rows(notebook)] == [f"{linear[name]:.2f}" for name in ("random", "CE")]
    images = [Image.open(io.BytesIO(base64.b64decode(data))) for data in outputs(notebook, "image/png")]
    assert len(images) == 3  # poses, table and curves
    for image in images:
        assert min(image.size) > 200
        assert len(image.convert("L").getcolors()) > 10

    files = [path for path in (tmp_path / "runs").rglob("*") if path.name in ("progress.jsonl", "result.json")]
    assert {path.name for path in files} == {"progress.jsonl", "result.json"}
    before = {path: path.stat().st_mtime_ns for path in files}
    process, again = execute("taxonomy", tmp_path, objectives="random,CE", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert "2 cells of preset smoke on synthetic, 2 finished" in printed(again)
    assert {path: path.stat().st_mtime_ns for path in files} == before
    assert rows(again) == rows(notebook)


def test_encoder_collapse_with_two_depths(tmp_path):
    process, notebook = execute("encoder_collapse", tmp_path, layers="1,2", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:2] for row in rows(notebook)] == [["1", "random"], ["1", "AE"], ["2", "random"], ["2", "AE"]]
    assert len(runs(tmp_path)) == 4
    assert len(outputs(notebook, "image/png")) == 1


def test_temperature_grid_with_two_temperatures_of_the_key(tmp_path):
    process, notebook = execute("temperature_grid", tmp_path, temperature="0.1", key_temperature="0.05,0.1", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    expected = [[method, "0.10", key] for method in ("sce", "ressl") for key in ("0.05", "0.10")]
    assert [row[:3] for row in rows(notebook)] == expected
    assert len(runs(tmp_path)) == 4
    assert len(outputs(notebook, "image/png")) == 3  # views, grid and parts of the loss


def test_positive_keys_with_two_numbers_of_keys(tmp_path):
    chosen = {"keys": "2,5", "strength": "4", "temperature": "0.2"}
    process, notebook = execute("positive_keys", tmp_path, **chosen, **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    expected = [["keys", "2"], ["keys", "5"], ["strength", "5"], ["temperature", "5"]]
    assert [[row[0], row[2]] for row in rows(notebook)] == expected
    assert len(runs(tmp_path)) == 2
    assert len(outputs(notebook, "image/png")) == 2  # sweeps and sampled keys


def test_similarity_variance_of_two_models(tmp_path):
    process, notebook = execute("similarity_variance", tmp_path, **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:2] for row in rows(notebook)] == [["jcl", "9"], ["moco", "1"]]
    images, = outputs(notebook, "image/png")
    assert min(Image.open(io.BytesIO(base64.b64decode(images))).size) > 200
    stored = sorted((tmp_path / "runs").glob("cells/*/similarity.csv"))
    assert len(stored) == 2


def test_cross_modal_with_two_approaches(tmp_path):
    chosen = {"method": "cmacc,smoco", "sampler": "feature", "extra_layer": "True"}
    process, notebook = execute("cross_modal", tmp_path, **chosen, **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    approaches = ("SMoCo", "CM-ACC, feature embedding")
    assert [row[:2] for row in rows(notebook)] == [
        [approach, target] for approach in approaches for target in ("synthetic_video", "synthetic_audio")
    ]
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 1
    tables = [html for html in outputs(notebook, "text/html") if "<tbody>" in html]
    assert len(tables) == 3 and "77.2" in tables[1] and "74.5" in tables[2]  # ours, Table 1, Table 2


@pytest.mark.usefixtures("clips_prepared")
def test_ohem_vs_active_with_two_samplers(tmp_path):
    process, notebook = execute("ohem_vs_active", tmp_path, sampler="ohem,gradient", batch="16", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:2] for row in rows(notebook)] == [["ohem", "16"]] * 2 + [["gradient", "16"]] * 2
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 1


@pytest.mark.usefixtures("clips_prepared")
def test_dictionary_size_with_two_sizes(tmp_path):
    process, notebook = execute("dictionary_size", tmp_path, method="xmoco", dictionary="64,32", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:2] for row in rows(notebook)] == [["xmoco", "64"]] * 2 + [["xmoco", "32"]] * 2
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 1
    assert "1e3" in outputs(notebook, "text/html")[-1]  # what the paper says of its curve


def test_mutual_information_with_two_numbers(tmp_path):
    process, notebook = execute("mutual_information", tmp_path, method="cmacc", characters="1,3", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:3] for row in rows(notebook)] == [["cmacc", "1", "characters"], ["cmacc", "3", "characters"]]
    assert all(0 <= float(row[-1]) <= 100 for row in rows(notebook))  # drawings never seen
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 1


@pytest.mark.usefixtures("clips_prepared")
def test_transfer_of_two_methods(tmp_path):
    process, notebook = execute("transfer", tmp_path, method="scratch,cmacc", targets="synthetic_audio", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    expected = [[method, "small_video", "0", "synthetic_audio"] for method in ("cmacc", "scratch")]
    assert [row[:4] for row in rows(notebook)] == expected
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 1
    _, *others = (html for html in outputs(notebook, "text/html") if "<tbody>" in html)
    assert len(others) == 3 and not any("here:" in html for html in others)  # embedded data are not among the printed


def test_explore_shows_every_view_without_anybody_touching_it(tmp_path):
    process, notebook = execute("explore", tmp_path, objectives="random,CE+AD", seeds="3", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert "2 cells of preset smoke on synthetic, 0 finished" in printed(notebook)
    images = [Image.open(io.BytesIO(base64.b64decode(data))) for data in outputs(notebook, "image/png")]
    assert len(images) == 4  # skeletons, embeddings, targets, selection
    for image in images:
        assert min(image.size) > 200
        assert len(image.convert("L").getcolors()) > 10
    views = [output.data for cell in notebook.cells for output in cell.get("outputs", []) if "image/png" in str(output)]
    assert all("application/vnd.jupyter.widget-view+json" in view for view in views)
    found = {recipe_of(path)["objectives"] for path in runs(tmp_path)}
    assert found == {"random", "CE+AD"}
    state = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
    lists = [each["state"]["_options_labels"] for each in state if each["model_name"] == "DropdownModel"]
    assert lists.count(["random, seed 3, smoke", "CE+AD, seed 3, smoke"]) == 2  # left and right


@pytest.mark.usefixtures("clips_prepared")
def test_category_diversity_of_two_samplers(tmp_path):
    chosen = {"sampler": "gradient,random", "batch": "32", "iterations": "3"}
    process, notebook = execute("category_diversity", tmp_path, **chosen, **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:3] for row in rows(notebook)] == [
        [sampler, "32", modality] for sampler in ("random", "gradient") for modality in ("video", "audio")
    ]
    assert all(1 <= float(row[4]) <= 32 and 20 < float(row[-1]) < 28 for row in rows(notebook))  # ours, expected
    assert rows(notebook)[0][3] == "{'iterations': 3}"
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 2  # bars and curves
    uniform = [html for html in outputs(notebook, "text/html") if "<tbody>" in html][-1]
    assert "72.0" in uniform and "36.7" in uniform


@pytest.mark.usefixtures("clips_prepared")
def test_category_difficulty_of_two_methods(tmp_path):
    chosen = {"method": "cmacc,xmoco", "targets": "synthetic_audio"}
    process, notebook = execute("category_difficulty", tmp_path, **chosen, **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[0] for row in rows(notebook)] == ["cmacc", "xmoco"]
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 2  # a figure each
    stored = [pd.read_csv(path) for path in (tmp_path / "runs").glob("cells/*/pretext_accuracy.csv")]
    assert {table["method"][0] for table in stored} == {"cmacc", "xmoco"}
    assert all(len(table) == 200 and table["accuracy_renewed"].between(0, 100).all() for table in stored)
    summary = next(html for html in outputs(notebook, "text/html") if "accuracy_renewed" in html)
    assert summary.count(">video</th>") == summary.count(">audio</th>") == 2  # kinds of queries, of each method


@pytest.mark.usefixtures("clips_prepared")
def test_negative_instances_of_a_short_training(tmp_path):
    process, notebook = execute("negative_instances", tmp_path, targets="synthetic_audio", seeds="3", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    path, = (tmp_path / "runs").glob("cells/*/selected_negatives.csv")
    found = pd.read_csv(path)
    assert set(found["seed"]) == {3} and len(found) == 2 * 4 * 16
    images = [Image.open(io.BytesIO(base64.b64decode(data))) for data in outputs(notebook, "image/png")]
    assert len(images) == 2 and all(min(image.size) > 200 for image in images)  # negatives of pictures and of sound
    assert all(len(image.convert("RGB").getcolors(2**24)) > 1000 for image in images)
    tables = [html for html in outputs(notebook, "text/html") if "<tbody>" in html]
    assert "same_category" in tables[1] and "333.87" in tables[2]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("taxonomy", {"datset": "ucla"}, "did you mean 'dataset'"),
        ("encoder_collapse", {"dataset": "nutu"}, "dataset='nutu' is not one of: synthetic, ucla"),
    ],
)
def test_a_wrong_parameter_stops_the_notebook(name, parameters, message, tmp_path):
    process, notebook = execute(name, tmp_path, **SMOKE, **parameters)
    assert process.returncode != 0
    assert message in process.stderr
    assert not (tmp_path / "runs").exists()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and "injected" not in str(cell.metadata)]
    failed = [index for index, cell in enumerate(cells)
              if any(output.output_type == "error" for output in cell.outputs)]
    assert cells[failed[0]].source == code_cells(FOLDER / f"{name}.ipynb")[1].source
    assert not any(cell.outputs for cell in cells[failed[0] + 1 :])
