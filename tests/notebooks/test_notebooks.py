"""Every notebook is stripped and thin, stops at a wrong parameter, and runs with changed parameters."""

import base64
import inspect
import io
import json
import re

import nbformat
import pandas as pd
import pytest
from executed_notebooks import FOLDER, READING, begin, execute, outputs, printed
from PIL import Image

from repro.report import explored_runs, figures
from repro.skeleton import data as skeleton_data
from repro.tables import TABLES

NOTEBOOKS = sorted(path for path in FOLDER.glob("*.ipynb") if path.stem not in READING)
EMBEDDED = {  # data set of a notebook by default, with the number of cells of its smoke run
    "taxonomy": ("synthetic", 16), "encoder_collapse": ("synthetic", 10), "temperature_grid": ("digits", 9),
    "positive_keys": ("digits", 8), "similarity_variance": ("digits", 2),
    "cross_modal": ("synthetic", 8), "ohem_vs_active": ("synthetic", 9), "dictionary_size": ("synthetic", 9),
    "mutual_information": ("multidigits", 3), "transfer": ("synthetic", 1), "category_diversity": ("synthetic", 12),
    "category_difficulty": ("synthetic", 1), "negative_instances": ("synthetic", 1), "explore": ("synthetic", 2),
}
TABLE = {"category_difficulty": "transfer", "negative_instances": "transfer"}  # of notebooks not named as theirs
TABLELESS = {"explore"}
ABSENT = dict.fromkeys(("taxonomy", "encoder_collapse"), ("ucla", r"all_sqe\.zip"))  # data, and what is asked for
ABSENT["explore"] = ABSENT["taxonomy"]
ABSENT |= dict.fromkeys(("temperature_grid", "positive_keys", "similarity_variance"), ("cifar10", "cifar-10-python"))
ABSENT |= dict.fromkeys(("cross_modal", "ohem_vs_active", "dictionary_size", "transfer", "category_diversity",
                         "category_difficulty", "negative_instances"), ("kinetics700", "kinetics"))
ABSENT["mutual_information"] = ("multiomniglot", "omniglot")
REQUIRED = ("dataset", "preset", "seeds", "device")
SMOKE = {"preset": "smoke", "device": "cpu"}
TYPED = re.compile(r'(\w+): (str|int|float|bool) = ("[^"]*"|[-\w.]+) +# \S.*')

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
each_and_those_that_read = pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def rows(notebook):
    """Cells of the first table shown, row by row."""
    table, *_ = (html for html in outputs(notebook, "text/html") if "<tbody>" in html)  # ours, then the printed one
    body = table.split("<tbody>")[1]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in body.split("</tr>")[:-1]]


def runs(folder):
    return sorted((folder / "runs").glob("*/*/result.json"))


def test_there_is_a_notebook_for_every_table():
    assert {path.stem for path in NOTEBOOKS} == set(EMBEDDED)
    assert {TABLE.get(name, name) for name in set(EMBEDDED) - TABLELESS} <= set(TABLES)


@each_and_those_that_read
def test_it_is_stripped(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        assert not {"execution", "papermill"} & set(cell.metadata)
    assert "papermill" not in notebook.metadata and "widgets" not in notebook.metadata


@each_and_those_that_read
def test_it_starts_with_a_title_and_what_it_costs(path):
    title = nbformat.read(path, as_version=4).cells[0]
    assert title.cell_type == "markdown"
    assert title.source.startswith("# ")
    assert ("Table" in title.source or "Figure" in title.source) and "cores" in title.source


@each_and_those_that_read
def test_it_is_thin(path):
    for cell in code_cells(path):
        assert 1 <= len(cell.source.splitlines()) <= 15
        assert max(map(len, cell.source.splitlines())) <= 120


@each_and_those_that_read
def test_its_second_cell_holds_typed_and_commented_parameters(path):
    notebook = nbformat.read(path, as_version=4)
    tagged = [index for index, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
    assert tagged == [1]
    lines = notebook.cells[1].source.splitlines()
    matches = [TYPED.fullmatch(line) for line in lines]
    assert all(matches), lines
    names = [match[1] for match in matches]
    assert set(REQUIRED) <= set(names)
    assert len(set(names)) == len(names)
    values = {}
    exec(notebook.cells[1].source, values)
    for match in matches:
        assert type(values[match[1]]).__name__ == match[2]
    assert (values["preset"], values["device"]) == ("auto", "auto")
    assert path.stem in READING or values["dataset"] == EMBEDDED[path.stem][0]


@every_notebook
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datset": "ucla"}, "parameter='datset' is not one of: dataset, preset, .*device; did you mean 'dataset'"),
        ({"epochs": 3}, "parameter='epochs' is not one of: dataset, preset"),
        ({"n_seeds": None}, "parameter='n_seeds' is not one of"),
        ({"seed_list": [0, 1]}, "parameter='seed_list' is not one of"),
        ({"dataset": "nutu"}, "dataset='nutu' is not one of: (synthetic, |digits, |multidigits, )"),
        ({"preset": "fast"}, "preset='fast' is not one of: auto, paper, quick, smoke"),
        ({"seeds": "a"}, "seeds='a' should be a comma list of whole numbers from 0"),
        ({"seeds": -1}, "seeds=-1 should be a comma list"),
        ({"device": "tpu"}, "device='tpu' is not one of: auto, cpu, cuda"),
    ],
    ids=str,
)
def test_wrong_parameters_stop_the_third_cell(path, changes, message, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    with pytest.raises(ValueError, match=message):
        begin(path.stem, **changes)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("taxonomy", {"layers": "none"}, "layers='none' should be"),
        ("encoder_collapse", {"layers": "none"}, "layers='none' should be"),
        ("temperature_grid", {"key_temperatures": "0.1;0.2"}, "key_temperatures='0.1;0.2' should be a comma list"),
        ("positive_keys", {"keys": 1.5}, "keys=1.5 should be a comma list of whole numbers from 1"),
        ("similarity_variance", {"subset": True, "dataset": "stl10"}, "repro data import stl10 FILE"),
        ("cross_modal", {"approaches": "cmacc,cmac"}, "approaches='cmac' is not one of: .*did you mean 'cmacc'"),
        ("ohem_vs_active", {"samplers": "hard"}, "samplers='hard' is not one of: gradient, feature, random, ohem"),
        ("ohem_vs_active", {"batches": "32;64"}, "batches='32;64' should be a comma list of whole numbers from 1"),
        ("dictionary_size", {"dictionaries": 100}, "dictionary=100 should be a multiple of batch="),
        ("mutual_information", {"characters": "9,10"}, "characters=10 should be between 1 and 9"),
        ("mutual_information", {"dataset": "synthetic"}, "dataset='synthetic' is not one of: multidigits, multiom"),
        ("transfer", {"targets": "ucf"}, "targets='ucf' is not one of: .*did you mean 'ucf101'"),
        ("transfer", {"split": 6}, "split=6 should be between 0 and 5"),
        ("transfer", {"variant": "unit"}, "variant='unit' is not one of: none, unit_length"),
        ("category_diversity", {"iterations": 0}, "iterations=0 should be a whole number of at least 1"),
        ("category_diversity", {"batches": "5000"}, "batch=5000 exceeds the 2000 training pairs of synthetic"),
        ("category_difficulty", {"methods": "smoco,scratch"}, "are of scratch, smoco, one should be of xmoco or cmacc"),
        ("negative_instances", {"methods": "xmoco"}, "which are of xmoco, one should be of cmacc"),
        ("negative_instances", {"variant": "unit_length"}, "changes nothing of the quick recipe on"),
    ],
)
def test_a_notebook_s_own_parameters_are_checked(name, changes, message, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        begin(name, **changes)
    assert {path.name for path in (tmp_path / "runs").glob("*")} <= {"prepared"}


@pytest.mark.parametrize("name", sorted((TABLES.keys() | TABLE.keys()) & {path.stem for path in NOTEBOOKS}))
def test_a_notebook_declares_whatever_its_table_takes(name):
    declared = {}
    exec(nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells[1].source, declared)
    accepted = inspect.signature(TABLES[TABLE.get(name, name)].cells).parameters
    assert {given: declared[given] for given in accepted} == {
        given: parameter.default for given, parameter in accepted.items()
    }


def test_the_explorer_declares_whatever_its_cells_take():
    declared = {}
    exec(nbformat.read(FOLDER / "explore.ipynb", as_version=4).cells[1].source, declared)
    accepted = inspect.signature(explored_runs.cells).parameters
    assert {name: value for name, value in declared.items() if not name.startswith("_")} == {
        given: parameter.default for given, parameter in accepted.items()
    }


def test_the_poses_are_those_of_the_pipeline(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    asked = []
    monkeypatch.setattr(skeleton_data, "examples", lambda *names, **options: asked.append((names, options)) or ({}, ()))
    monkeypatch.setattr(figures, "pose_strip", lambda *_: None)
    poses = next(cell for cell in code_cells(FOLDER / "taxonomy.ipynb") if "pose_strip" in cell.source)
    exec(poses.source, {"dataset": "ntu", "pipeline": "predict_cluster"})
    assert asked == [(("ntu",), {"pipeline": "predict_cluster"})]


@every_notebook
def test_missing_data_stop_the_third_cell(path, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))
    name, archive = ABSENT[path.stem]
    with pytest.raises(FileNotFoundError, match=archive):
        begin(path.stem, dataset=name)
    assert not (tmp_path / "runs").exists()


@every_notebook
def test_runs_that_cannot_be_written_stop_the_third_cell(path, tmp_path, monkeypatch):
    (tmp_path / "runs").touch()
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    with pytest.raises(OSError, match=r"runs, the folder of runs, cannot be written .* point REPRO_RUNS at another"):
        begin(path.stem)


@every_notebook
def test_the_third_cell_passes_the_parameters_on_and_says_what_there_is_to_do(path, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    settings = begin(path.stem, seeds="0,7", **SMOKE)["settings"]
    assert (settings["seeds"], settings["preset"], settings["device"]) == ("0,7", "smoke", "cpu")
    text = capsys.readouterr().out
    dataset, count = EMBEDDED[path.stem]
    assert f"{2 * count} cells of preset smoke on {dataset}, 0 finished" in text
    assert str(tmp_path / "runs") in text and "torch" in text and "python" in text
    assert {path.name for path in (tmp_path / "runs").glob("*")} <= {"prepared"}


def test_taxonomy_with_two_objectives_and_again(tmp_path):
    process, notebook = execute("taxonomy", tmp_path, objectives="CE,random", subset="False", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert "unknown parameter" not in process.stderr
    assert "2 cells of preset smoke on synthetic, 0 finished" in printed(notebook)
    found = [json.loads(path.with_name("recipe.json").read_text())["entry"] for path in runs(tmp_path)]
    assert sorted(found) == ["CE", "random"]
    assert [row[0] for row in rows(notebook)] == ["CE", "random"]
    stored = {path.with_name("recipe.json"): json.loads(path.read_text()) for path in runs(tmp_path)}
    linear = {json.loads(path.read_text())["entry"]: result["linear"] for path, result in stored.items()}
    assert [row[5] for row in rows(notebook)] == [f"{linear[name]:.2f}" for name in ("CE", "random")]
    images = [Image.open(io.BytesIO(base64.b64decode(data))) for data in outputs(notebook, "image/png")]
    assert len(images) == 2  # poses and table
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
    assert rows(again) == rows(notebook)[::-1]


def test_encoder_collapse_with_two_depths(tmp_path):
    process, notebook = execute("encoder_collapse", tmp_path, layers="1,2", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:2] for row in rows(notebook)] == [["1", "random"], ["1", "AE"], ["2", "random"], ["2", "AE"]]
    assert len(runs(tmp_path)) == 4
    assert len(outputs(notebook, "image/png")) == 1


def test_temperature_grid_with_three_cells(tmp_path):
    process, notebook = execute("temperature_grid", tmp_path, temperatures="0.1", key_temperatures="0.05,0.1", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    expected = [["sce", "0.10", "0.05"], ["sce", "0.10", "0.10"], ["ressl", "0.10", "0.10"]]
    assert [row[:3] for row in rows(notebook)] == expected
    assert len(runs(tmp_path)) == 3
    assert len(outputs(notebook, "image/png")) == 3  # views, grid and parts of the loss


def test_positive_keys_with_two_numbers_of_keys(tmp_path):
    chosen = {"keys": "2", "strengths": "4", "temperatures": "0.2"}
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
    stored = sorted((tmp_path / "runs").glob("similarity_variance/*/similarity.csv"))
    assert len(stored) == 2


def test_cross_modal_with_two_approaches(tmp_path):
    process, notebook = execute("cross_modal", tmp_path, approaches="cmacc_feature,smoco", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert "unknown parameter" not in process.stderr
    approaches = ("CM-ACC, feature embedding", "SMoCo")
    assert [row[:2] for row in rows(notebook)] == [
        [approach, target] for approach in approaches for target in ("synthetic_video", "synthetic_audio")
    ]
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 1
    tables = [html for html in outputs(notebook, "text/html") if "<tbody>" in html]
    assert len(tables) == 3 and "77.2" in tables[1] and "74.5" in tables[2]  # ours, Table 1, Table 2


def test_ohem_vs_active_with_two_samplers(tmp_path):
    process, notebook = execute("ohem_vs_active", tmp_path, samplers="ohem,gradient", batches="16", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:2] for row in rows(notebook)] == [["ohem", "16"]] * 2 + [["gradient", "16"]] * 2
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 1


def test_dictionary_size_with_two_sizes(tmp_path):
    process, notebook = execute("dictionary_size", tmp_path, methods="xmoco", dictionaries="64,32", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:2] for row in rows(notebook)] == [["xmoco", "64"]] * 2 + [["xmoco", "32"]] * 2
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 1
    assert "1e3" in outputs(notebook, "text/html")[-1]  # what the paper says of its curve


def test_mutual_information_with_two_numbers(tmp_path):
    process, notebook = execute("mutual_information", tmp_path, methods="cmacc", characters="1,3", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:3] for row in rows(notebook)] == [["cmacc", "1", "characters"], ["cmacc", "3", "characters"]]
    assert all(0 <= float(row[-1]) <= 100 for row in rows(notebook))  # drawings never seen
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 1


def test_transfer_of_two_methods(tmp_path):
    process, notebook = execute("transfer", tmp_path, methods="scratch,cmacc", targets="synthetic_audio", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    expected = [[method, "small_video", "0", "synthetic_audio"] for method in ("scratch", "cmacc")]
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
    found = {json.loads(path.with_name("recipe.json").read_text())["entry"] for path in runs(tmp_path)}
    assert found == {"random", "CE+AD"}
    state = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
    lists = [each["state"]["_options_labels"] for each in state if each["model_name"] == "DropdownModel"]
    assert lists.count(["random, seed 3, smoke", "CE+AD, seed 3, smoke"]) == 2  # left and right


def test_category_diversity_of_two_samplers(tmp_path):
    chosen = {"samplers": "gradient,random", "batches": "32", "iterations": "3"}
    process, notebook = execute("category_diversity", tmp_path, **chosen, **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[:3] for row in rows(notebook)] == [
        [sampler, "32", modality] for sampler in ("gradient", "random") for modality in ("video", "audio")
    ]
    assert all(1 <= float(row[4]) <= 32 and 20 < float(row[-1]) < 28 for row in rows(notebook))  # ours, expected
    assert "iterations=3" in rows(notebook)[0][3]
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 2  # bars and curves
    uniform = [html for html in outputs(notebook, "text/html") if "<tbody>" in html][-1]
    assert "72.0" in uniform and "36.7" in uniform


def test_category_difficulty_of_two_methods(tmp_path):
    chosen = {"methods": "cmacc,xmoco", "targets": "synthetic_audio"}
    process, notebook = execute("category_difficulty", tmp_path, **chosen, **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    assert [row[0] for row in rows(notebook)] == ["cmacc", "xmoco"]
    assert len(runs(tmp_path)) == 2 and len(outputs(notebook, "image/png")) == 2  # a figure each
    stored = [pd.read_csv(path) for path in (tmp_path / "runs").glob("transfer/*/pretext_accuracy.csv")]
    assert {table["method"][0] for table in stored} == {"cmacc", "xmoco"}
    assert all(len(table) == 200 and table["accuracy_renewed"].between(0, 100).all() for table in stored)
    summary = next(html for html in outputs(notebook, "text/html") if "accuracy_renewed" in html)
    assert summary.count(">video</th>") == summary.count(">audio</th>") == 2  # kinds of queries, of each method


def test_negative_instances_of_a_short_training(tmp_path):
    process, notebook = execute("negative_instances", tmp_path, targets="synthetic_audio", seeds="3", **SMOKE)
    assert process.returncode == 0, process.stderr[-3000:]
    path, = (tmp_path / "runs").glob("transfer/*/selected_negatives.csv")
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
