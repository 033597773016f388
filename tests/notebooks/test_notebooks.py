"""Every notebook is stripped and thin, stops at a wrong parameter, and passes the others on."""

import ast
import math
import re

import nbformat
import pytest
from executed_notebooks import CELLLESS, FOLDER, RESULTS, SMOKE, begin, code_cells
from IPython.core.interactiveshell import InteractiveShell
from pandas import DataFrame

from repro import TABLES, notebook
from repro.experiments import find
from repro.papers.taxonomy import figures
from repro.report.statistics import Estimate
from repro.skeleton import data as skeleton_data
from repro.table import CHOICES, Study

NOTEBOOKS = sorted(path for path in FOLDER.glob("*.ipynb") if path.stem not in CELLLESS)
EMBEDDED = {  # data set of a notebook by default, with the number of runs of its smoke size
    "taxonomy": ("synthetic", 16), "encoder_collapse": ("synthetic", 10), "temperature_grid": ("digits", 5),
    "positive_keys": ("digits", 4), "similarity_variance": ("digits", 2),
    "cross_modal": ("synthetic", 8), "ohem_vs_active": ("synthetic", 6), "dictionary_size": ("synthetic", 6),
    "mutual_information": ("multidigits", 3), "transfer": ("synthetic", 1), "category_diversity": ("synthetic", 8),
    "category_difficulty": ("synthetic", 1), "negative_instances": ("synthetic", 1), "explore": ("synthetic", 2),
    "weights": ("synthetic", 1),
}
TABLE = {"category_difficulty": "transfer", "negative_instances": "transfer",  # of notebooks not named as theirs
         "weights": "taxonomy", "explore": "taxonomy"}
PARTS = {"weights": {"objectives": "CE"}, "explore": {"objectives": "CE+AD,CE"}}  # of a table, shown alone
REQUIRED = ("dataset", "preset", "seeds", "device")
TYPED = re.compile(r'(\w+): (str|int|float|bool) = ("[^"]*"|[-\w.]+) +# \S.*')

pytestmark = pytest.mark.usefixtures("runs_root")
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
each_and_those_that_read = pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)


def embedded(name):
    """The data set and the number of cells of a notebook's smoke run; of one not named above, those of its table."""
    if name in EMBEDDED:
        return EMBEDDED[name]
    runs = TABLES[name].runs(preset="smoke")
    return runs[0].recipe.dataset, len(runs)


def test_the_notebooks_are_there_and_each_is_of_a_table():
    names = {path.stem for path in NOTEBOOKS}
    assert set(EMBEDDED) <= names and {TABLE.get(name, name) for name in names} <= set(TABLES)


@each_and_those_that_read
def test_it_is_stripped_thin_and_starts_with_a_title_and_what_it_costs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.keys() - {"experiment"} == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    title, *_ = notebook.cells
    assert title.cell_type == "markdown" and title.source.startswith("# ")
    assert ("Table" in title.source or "Figure" in title.source) and "cores" in title.source
    for cell in notebook.cells:
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None
        assert not {"execution", "papermill"} & set(cell.metadata)
    for cell in code_cells(path):
        assert 1 <= len(cell.source.splitlines()) <= 15
        assert max(map(len, cell.source.splitlines())) <= 120


def test_a_person_types_what_came_of_the_papers():
    """No sentence is put together by code, and nothing is asserted where no reader would see it fail."""
    cells = [cell.source for name in RESULTS for cell in code_cells(FOLDER / f"{name}.ipynb")]
    assert not [node for cell in cells for node in ast.walk(ast.parse(cell))
                if isinstance(node, ast.Assert | ast.JoinedStr)]
    assert sum(len(cell.splitlines()) for cell in cells) <= 300


@each_and_those_that_read
def test_it_names_an_experiment_of_its_table_and_links_to_the_paper_and_to_its_results_and_they_to_it(path):
    notebook = nbformat.read(path, as_version=4)
    begun = re.search(r'begin\(globals\(\), "(\w+)"\)', code_cells(path)[1].source)
    if path.stem == "explore" or path.stem in CELLLESS:
        assert "experiment" not in notebook.metadata
    else:
        assert find(notebook.metadata.experiment).table == begun[1]
    if path.stem not in ("claims", *RESULTS):
        assert "](https://" in notebook.cells[0].source
    if path.stem not in ("claims", "explore", *RESULTS):
        page = re.search(r"\]\((results_\w+\.ipynb)", notebook.cells[-1].source)[1]
        assert f"]({path.name})" in (FOLDER / page).read_text(encoding="utf-8")


@each_and_those_that_read
def test_its_second_cell_holds_typed_and_commented_parameters(path):
    notebook = nbformat.read(path, as_version=4)
    tagged = [index for index, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
    assert tagged == [1]
    lines = notebook.cells[1].source.splitlines()
    matches = [TYPED.fullmatch(line) for line in lines]
    assert all(matches), lines
    names = [match[1] for match in matches]
    assert set(REQUIRED) <= set(names) or path.stem in CELLLESS
    assert len(set(names)) == len(names)
    values = {}
    exec(notebook.cells[1].source, values)
    for match in matches:
        assert type(values[match[1]]).__name__ == match[2]
    assert (values.get("preset", "auto"), values["device"]) == ("auto", "auto")
    assert path.stem in CELLLESS or values["dataset"] == embedded(path.stem)[0]


@every_notebook
def test_a_misspelt_parameter_stops_the_third_cell(path, runs_root):
    with pytest.raises(TypeError, match=r"did you mean 'dataset'\? parameter='datset' is not one of: "):
        begin(path.stem, datset="ucla")
    assert not runs_root.exists()


@pytest.mark.usefixtures("clips_prepared")
@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("taxonomy", {"seeds": "a"}, "seeds='a' should be a comma list of whole numbers from 0"),
        ("taxonomy", {"device": "tpu"}, "device='tpu' is not one of: auto, cpu, cuda"),
        ("similarity_variance", {"subset": True, "dataset": "stl10"}, "repro data import stl10 FILE"),
        ("temperature_grid", {"train": "never"}, "shown by `repro run temperature_grid_cifar10 --"),
        ("cross_modal", {"approaches": "cmacc"}, "parameter='approaches' is not one of: dataset, preset, "),
        ("category_difficulty", {"method": "smoco,scratch"}, "are of scratch, smoco, one should be of xmoco or cmacc"),
        ("negative_instances", {"method": "xmoco"}, "which are of xmoco, one should be of cmacc"),
        ("negative_instances", {"variant": "unit_length"}, "changes nothing of cmacc; leave it out$"),
        ("glm", {"results": "mine"}, "experiment='mine' is not one of: "),
        ("glm", {"preset": "smoke"}, "parameter='preset' is not one of: results, column, rows, device"),
        ("glm", {"rows": None}, "rows='None' is not one of: all, unmixed, "),
        ("glm", {"column": "NTU"}, "column='NTU' is not one of: AE, CE, AD, CD, UCLA, "),
        ("claims", {"dataset": "ucla"}, "parameter='dataset' is not one of: paper, verdict, level, device"),
        ("results", {"dataset": "ucla"}, "parameter='dataset' is not one of: device"),
    ],
)
def test_a_notebook_s_own_parameters_are_checked(name, changes, message, runs_root):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=message):
        begin(name, **changes)
    assert {path.name for path in runs_root.glob("*")} <= {"prepared"}


def test_any_field_of_the_recipe_is_a_parameter():
    settings = begin("taxonomy", objectives="AD", ad_weight="2,3", probe_every=2, **SMOKE)["settings"]
    assert (settings["ad_weight"], settings["probe_every"]) == ("2,3", 2)
    assert [run.recipe.ad_weight for run in TABLES["taxonomy"].runs(**settings)] == [2.0, 3.0]


def test_a_table_says_once_what_its_rows_share_and_has_equal_decimals():
    table = DataFrame({"objectives": ["AE", "CE"], "learning_rate": [0.001, 1e-05], "ours": [50.126, None],
                       "printed": [None, None], "preset": "quick", "knn1": [7.0, 12.25], "spread": [0.5, 0.25],
                       "changed": [{"layers": 3, "td_crop": None}, {}]})
    html = notebook.shown(table).to_html()
    parts = ("caption", "thead", "tbody")
    caption, head, body = (re.search(f"<{part}.*?</{part}>", html, re.DOTALL)[0] for part in parts)
    assert ">preset quick<" in caption and "preset" not in head and "printed" not in html and "nan" not in html
    assert re.findall(r"<td[^>]*>(.*?)</td>", body) == [
        "AE", "0.00100", "50.13", "7.00", "0.50", "layers=3, td_crop=none", "CE", "0.00001", "", "12.25", "0.25", ""]
    assert "&lt;b&gt;" in notebook.shown(table.assign(objectives="<b>")).to_html()
    assert "preset</th>" in notebook.shown(table[:1]).to_html()  # one row shares nothing
    with pytest.raises(ValueError, match="train='missing' trains it"):
        notebook.shown(table[:0])


def test_our_errors_are_a_line_and_those_of_a_reader_s_own_code_show_the_calls(monkeypatch, capsys):
    shell = InteractiveShell()
    monkeypatch.setattr(notebook, "get_ipython", lambda: shell)
    shell.run_cell("from repro import notebook\ndatset = 'ucla'\nnotebook.begin(globals(), 'taxonomy')")
    line, = capsys.readouterr().out.splitlines()
    assert line.startswith("TypeError: did you mean 'dataset'? parameter='datset' is not one of: ")
    shell.run_cell("import repro\nrepro.results('taxonomy_uclas')")
    line, = capsys.readouterr().out.splitlines()
    assert line.startswith("ValueError: did you mean 'taxonomy_ucla'?")
    shell.run_cell("import pandas\npandas.to_datetime('never')")
    assert "to_datetime" in (text := capsys.readouterr().out) and len(text.splitlines()) > 20


def test_differences_say_what_they_exclude_and_how_many_seeds_would_show_them():
    """By hand, of errors with many degrees of freedom: t is 1.96 at 95 % and 0.84 at a power of 80 %."""
    rows = {"C1": (0.5, 0.2, (4, 4)), "C2": (-2.0, 1.0, (3, 1)), "C3": (0.1, math.nan, (1, 1)), "C4": (9, 1, (2, 2))}
    rows["C5"] = rows["C4"]
    numbers = []
    for name, (value, error, runs) in rows.items():
        estimate = Estimate(value, error, 1e6, runs)
        numbers.append({"id": name, "compared": "a over b", "value": value, "error": error, "p": estimate.p(),
                        "at_most": value + 1.645 * error, "detectable": estimate.detectable(),
                        "runs": " and ".join(map(str, runs))})
    lines = notebook.differences(DataFrame(numbers), "C2", "C1", "C3", "C5").data.splitlines()
    assert lines[0] == "|  | compared | difference | s.e. | at most | corrected p | detectable | seeds |"
    assert lines[2:] == ["| C1 | a over b | 0.500 | 0.200 | 0.829 | 0.025 | 0.560 | 5 |",  # 4 (0.56 / 0.5)^2
                         "| C2 | a over b | -2.000 | 1.000 | -0.355 | 0.046 | 2.802 | 3 |",  # 1.5 (2.8 / 2)^2
                         "| C5 | a over b | 9.000 | 1.000 | 10.645 | 0.000 | 2.802 | 2 |"]  # an error needs two


def test_runs_that_a_notebook_will_show_count_as_finished_ours_where_nothing_is_trained(capsys):
    begin("taxonomy", seeds="0-2")
    begin("taxonomy", seeds="0-2", train="never")
    finished = [line for line in capsys.readouterr().out.splitlines() if line.startswith("48 runs of preset quick")]
    assert [line.partition(", ")[2] for line in finished] == ["0 finished", "48 finished"]


@pytest.mark.usefixtures("clips_prepared", "runs_root")
def test_queries_of_committed_runs_are_shown_where_nothing_is_trained():
    namespace = begin("category_difficulty", split="1", seeds="0-2", train="never")
    for cell in code_cells(FOLDER / "category_difficulty.ipynb")[2:5]:
        exec(cell.source, namespace)
    assert len(namespace["table"]) == 2 and {*namespace["accuracy"]["seed"]} == {0, 1, 2}


def test_the_poses_are_those_of_the_pipeline(monkeypatch):
    asked = []
    shown, drawn = {str(action): action for action in range(10)}, []
    monkeypatch.setattr(skeleton_data, "examples", lambda *names, **how: asked.append((names, how)) or (shown, ()))
    monkeypatch.setattr(figures, "pose_strip", lambda poses, bones: drawn.extend(poses))
    poses = next(cell for cell in code_cells(FOLDER / "taxonomy.ipynb") if "pose_strip" in cell.source)
    exec(poses.source, {"dataset": "ntu", "pipeline": "predict_cluster"})
    assert asked == [(("ntu",), {"pipeline": "predict_cluster"})] and drawn == ["0", "4", "8"]


@every_notebook
def test_every_data_set_that_it_names_is_accepted_with_its_own_defaults(path, monkeypatch):
    """Up to the data, which may not be here; "..." are the others of its table."""
    def absent(*_, **__):
        raise FileNotFoundError("get them")

    monkeypatch.setattr(Study, "on_data", absent)
    named = re.search(r"dataset: str = .* # ([^;\n]*)", code_cells(path)[0].source)[1].strip().split(" | ")
    if "..." in named:
        named = TABLES[TABLE.get(path.stem, path.stem)].datasets
    for name in named:
        with pytest.raises(FileNotFoundError, match="get them"):
            begin(path.stem, dataset=name)


def test_runs_that_cannot_be_written_stop_the_third_cell(runs_root):
    runs_root.touch()
    with pytest.raises(OSError, match=r"runs, the folder of runs, cannot be written .* point REPRO_RUNS at another"):
        begin("taxonomy")


@pytest.mark.usefixtures("clips_prepared")
@every_notebook
def test_the_third_cell_passes_the_parameters_on_and_says_what_there_is_to_do(path, capsys, runs_root):
    """They are what every table takes, and fields of its recipe at values that change nothing."""
    settings, table = begin(path.stem, seeds="0,7", **SMOKE)["settings"], TABLES[TABLE.get(path.stem, path.stem)]
    assert {*CHOICES} - {"variant"} <= settings.keys() <= {*CHOICES, *table.study.fields}
    assert table.runs(**settings) == table.runs(seeds="0,7", **SMOKE, **PARTS.get(path.stem, {}))
    text = capsys.readouterr().out
    dataset, count = embedded(path.stem)
    assert f"{2 * count} runs of preset smoke on {dataset}, 0 finished" in text
    assert str(runs_root) in text and "torch" in text and "python" in text
    assert {path.name for path in runs_root.glob("*")} <= {"prepared"}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of tensors that are drawn
def test_names_of_views_stand_clear_of_the_images():
    cells = {cell.id: cell.source for cell in code_cells(FOLDER / "temperature_grid.ipynb")}
    namespace = {"dataset": "digits", "subset": False}
    exec(cells["views"], namespace)
    figure = namespace["figure"]
    figure.canvas.draw()
    images = [axes.images[0].get_window_extent() for axes in figure.axes]
    names = [axes._left_title.get_window_extent() for axes in figure.axes if axes.get_title(loc="left")]
    assert len(names) == len(namespace["views"]) == 3
    assert not any(name.overlaps(image) for name in names for image in images)
