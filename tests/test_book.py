"""The book: what is executed and how, and what takes the place of what; its pages are read in tests/browser."""

import os

import made_up_book
import nbformat
import pytest
from command_line import refused
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from repro import book
from repro.data import manifest

ROOT = manifest.project_root()
SHOWN = "import os\nprint(preset, os.environ['REPRO_RUNS'])"
BAR = """import pathlib, numpy
from repro.data.prepared import Source
def make(path):
    return {'rows': numpy.zeros(1)}, {}
made = Source('things', 'form', 1, {'a': pathlib.Path('good.ipynb')}, make).prepare()"""
BEGUN = "from repro import notebook\nsettings = notebook.begin(globals(), 'taxonomy')"


def test_runs_begin_with_accuracy_and_changes_and_have_what_varies():
    studies = made_up_book.runs()
    skeletons, images = book.columns_of_page(studies["skeletons"]), book.columns_of_page(studies["images"])
    assert [*skeletons][:6] == ["trains", "accuracy", "changed", "dataset", "seed", "version"]
    assert skeletons["id"].tolist() == ["k2", "k3", "k1"] and skeletons["finished"].tolist()[0] == "2026-11-23"
    assert "layers" in skeletons and "units" not in skeletons and [*skeletons][-1] == "id"
    rows = skeletons.set_index("id")
    assert rows.loc["k1", ["accuracy", "changed"]].tolist() == [80.25, ""]
    assert rows.loc["k3", ["accuracy", "changed"]].tolist() == ["", "layers 3, td queue live"]
    assert (images["accuracy"].item(), images[made_up_book.NAME].item()) == (50.0, 0.0001234)  # four digits


def test_without_data_every_table_s_notebook_shows_what_is_committed(folders):
    arguments = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        metadata = nbformat.read(path, as_version=4).metadata
        arguments[path.stem] = book.arguments_of(metadata)
        assert bool(arguments[path.stem]) is ("experiment" in metadata), path
        assert arguments[path.stem].get("train", "never") == "never", path
    assert arguments["glm"] == arguments["explore"] == arguments["results"] == {}
    assert arguments["temperature_grid"] == {"dataset": "cifar10", "preset": "quick", "seeds": "0-2",
                                             "variant": "none", "subset": True, "train": "never"}


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The errors of notebooks that are executed in kernels of their own, the cells of the others, and of the last one
    that fails its error, by name.
    """
    folder = tmp_path_factory.mktemp("executed")
    language = {"name": "python3", "display_name": "Python 3", "language": "python"}
    explorer = nbformat.read(ROOT / "notebooks" / "explore.ipynb", as_version=4)
    view, = (cell.source for cell in explorer.cells if "class View" in cell.source)
    view += "\nfrom plotly.express import line\nView(lambda count: line(y=[count]), count=(0, 1))"
    cells = {"good": [view, BAR, "import os\nprint(os.environ['REPRO_RUNS'])"], "of_a_reader": ["int('one')"],
             "smoke": ["preset = 'auto'", SHOWN], "wrong": ["datset = 'ucla'", BEGUN, "print('on')"]}
    (folder / "notebooks").mkdir()
    for name, sources in cells.items():
        made = new_notebook(cells=[new_markdown_cell("# A table"), *map(new_code_cell, sources)])
        made.cells[1].metadata["tags"] = ["parameters"] * (name == "smoke")
        made.metadata |= {"kernelspec": language} | ({"experiment": "image_methods"} if name == "smoke" else {})
        nbformat.write(made, folder / "notebooks" / f"{name}.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(folder / "runs"))
        patch.setenv("REPRO_DATA", str(folder / "data"))
        patch.setenv("OMP_NUM_THREADS", "1")  # which execution sets
        patch.setattr(book, "cores", lambda: 1)  # tests/data/test_parallel.py has more, which import all again
        failed = book.execute(folder / "notebooks", folder / "executed")
    return failed, {path.stem: nbformat.read(path, as_version=4).cells for path in (folder / "executed").iterdir()}


def test_notebooks_that_fail_are_named_with_their_errors_and_left_out(executed):
    failed, cells = executed
    assert sorted(cells) == ["good", "smoke"]
    assert failed["wrong"].startswith("TypeError: did you mean 'dataset'? parameter='datset' is not one of")
    assert failed["of_a_reader"] == "ValueError: invalid literal for int() with base 10: 'one'"


def test_a_view_is_a_figure_and_no_bar_stands_still_in_a_saved_notebook(executed):
    _, view, bar, runs = executed[1]["good"]
    output, = view.outputs
    assert output.data["text/html"].startswith("<div data-figure=")
    assert bar.execution_count and bar.outputs == [] and runs.outputs[0].text.strip().endswith("runs")


def test_a_table_of_which_nothing_is_finished_is_shown_at_smoke_size_and_leaves_no_runs(executed):
    title, *_, shown = executed[1]["smoke"]
    assert title.source == "# A table" + book.SMOKE
    preset, runs = shown.outputs[0].text.split()
    assert preset == "smoke" and runs not in executed[1]["good"][-1].outputs[0].text and not os.path.exists(runs)


@pytest.fixture
def quick(monkeypatch):
    """A book without notebooks and Sphinx: its first page is README."""
    def typeset(source, configuration, site):
        site.mkdir()
        (site / "index.html").write_text(f"<meta {book.GENERATOR}>{(source / 'index.md').read_text()}")

    monkeypatch.setattr(book, "execute", lambda notebooks, target: {"bad": "ZeroDivisionError: division by zero"})
    monkeypatch.setattr(book, "typeset", typeset)


def test_a_new_book_takes_the_place_of_the_old_one_as_a_whole_or_of_none(repro, quick, tmp_path):
    first = tmp_path / "runs" / "report" / "index.html"
    first.parent.mkdir(parents=True)
    first.write_text(f"<meta {book.GENERATOR}>old")
    (first.parent / "old.html").touch()
    status, out, errors = repro("report")
    assert (status, out) == (1, f"{first}\n")
    assert errors.splitlines()[-1] == ("repro: the notebook bad could not be executed, and is left out "
                                       "(ZeroDivisionError: division by zero)")
    assert [path.name for path in first.parent.iterdir()] == ["index.html"]
    assert "# repro" in first.read_text() and "docs/taxonomy" in first.read_text()
    assert sorted(path.name for path in first.parent.parent.iterdir()) == [".report.lock", "report"]
    new = tmp_path / "elsewhere" / "book" / "index.html"
    assert repro("report", "--output", str(new.parent))[1] == f"{new}\n" and "# repro" in new.read_text()


def test_a_book_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    old = tmp_path / "book" / "index.html"
    old.parent.mkdir()
    old.write_text(f"<meta {book.GENERATOR}>old")
    (tmp_path / "conf.py").write_text("raise ValueError('a broken configuration')")
    monkeypatch.setattr(book, "execute", lambda notebooks, target: {})
    typeset = book.typeset
    monkeypatch.setattr(book, "typeset", lambda source, configuration, site: typeset(source, tmp_path, site))
    with pytest.raises(ChildProcessError, match="a broken configuration"):
        book.build(old.parent)
    assert old.read_text().endswith("old")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".book.lock", "book", "conf.py"]


def test_what_is_no_book_is_not_replaced_and_what_is_missing_is_said(repro, quick, tmp_path, monkeypatch):
    (tmp_path / "thesis.tex").touch()
    assert f"{tmp_path} holds other things than a report" in refused(repro("report", "--output", str(tmp_path)))
    assert (tmp_path / "thesis.tex").exists()
    monkeypatch.setattr(book, "LIBRARIES", ("papermill", "no_such_library"))
    assert "needs no_such_library; `pip install -r requirements-dev.txt`" in refused(repro("report"))
    monkeypatch.setattr(manifest, "checkout", lambda: None)
    assert "clone the repository" in refused(repro("report"))
