"""The book: what is executed and how, what is gathered, what its pages hold, and what takes the place of what."""

import os

import made_up_book
import nbformat
import pytest
from bs4 import BeautifulSoup
from command_line import refused
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from repro import book
from repro.data import manifest

ROOT = manifest.project_root()
LEADING = ("src", "srcset", "href", "action", "formaction", "data", "poster", "content", "style")
FORBIDDEN = ["base", "form", "iframe", "link", "meta", "object", "script", "source", "style", "svg"]


def article(site, page):
    """The article of a page: what of it is no heading, menu or script of the book's own."""
    return BeautifulSoup((site / page).read_text(), "html.parser").article


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A book of two notebooks and made-up runs."""
    folder = tmp_path_factory.mktemp("book")
    source = folder / "source"
    (source / "notebooks").mkdir(parents=True)
    (source / "index.md").write_text("# First\n\n```{toctree}\n:glob:\nnotebooks/*\nruns\n```\n")
    for name in ("notebook", "hostile"):
        nbformat.write(getattr(made_up_book, name)(), source / "notebooks" / f"{name}.ipynb")
    book.write_runs(made_up_book.runs(), source)
    book.typeset(source, ROOT / "docs", folder / "site")
    return folder / "site"


def test_what_a_notebook_shows_is_there(site):
    page = article(site, "notebooks/notebook.html")
    assert "a machine" in page.text and "a bar" not in page.text and "objective" in page.text
    assert len(page("img")) == 2 and len(page("table")) == 1 and page("a", href="../index.html")


def test_no_output_runs_loads_or_leads_away(site):
    page = article(site, "notebooks/hostile.html")
    assert "<script>the last output</script>" in page.text  # all of them were read
    assert page(FORBIDDEN) == []
    leading = [(element.name, name, value) for element in page(True) for name, value in element.attrs.items()
               if (name in LEADING or name.startswith("on")) and "evil" in value]
    assert leading == [("img", "src", f"{made_up_book.EVIL}/e.png")]  # which no browser asks for, see tests/browser
    assert not article(site, "runs.html")(onerror=True)
    assert "document.title='evil'</script><script>" not in (site / "runs.html").read_text()


def test_every_page_forbids_what_is_elsewhere(site):
    for path in site.rglob("*.html"):
        if "_static" not in path.parts:
            text = path.read_text()
            assert text.index("default-src 'self'") < text.index("<link") and book.GENERATOR in text, path


def test_runs_begin_with_accuracy_and_changes_and_have_what_varies():
    studies = made_up_book.runs()
    skeletons, images = book.columns_of_page(studies["skeletons"]), book.columns_of_page(studies["images"])
    assert [*skeletons][:6] == ["trains", "accuracy", "changed", "dataset", "preset", "seed"]
    assert "layers" in skeletons and "units" not in skeletons and [*skeletons][-1] == "id"
    rows = skeletons.set_index("id")
    assert rows.loc["k1", ["accuracy", "changed"]].tolist() == [80.25, ""]
    assert rows.loc["k3", ["accuracy", "changed"]].tolist() == ["", "layers 3, td queue live"]
    assert (images["accuracy"].item(), images[made_up_book.NAME].item()) == (50.0, 0.0001234)  # four digits


@pytest.mark.parametrize(("name", "arguments"), [
    ("glm", {}), ("explore", {}), ("negative_instances", {"preset": "smoke"}),
    ("temperature_grid", {"dataset": "cifar10", "preset": "quick", "seeds": "0-2", "variant": "none", "subset": True,
                          "train": "never"}),
    ("taxonomy", {"dataset": "synthetic", "preset": "quick", "seeds": "0-2", "variant": "none", "train": "never"}),
])
def test_without_real_data_a_table_shows_an_experiment_on_bundled_ones_or_else_its_first(folders, name, arguments):
    assert book.arguments_of(ROOT / "notebooks" / f"{name}.ipynb") == arguments


def executed(folder, table=None, **notebooks):
    """The errors, and by name those that were executed, of notebooks with these cells, of a table or of none."""
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    metadata |= {"table": table} if table else {}
    (folder / "notebooks").mkdir()
    for name, cells in notebooks.items():
        nbformat.write(new_notebook(cells=cells, metadata=metadata), folder / "notebooks" / f"{name}.ipynb")
    failed = book.execute(folder / "notebooks", folder / "executed")
    return failed, {path.stem: nbformat.read(path, as_version=4).cells for path in (folder / "executed").iterdir()}


def test_a_notebook_that_fails_is_named_and_left_out(tmp_path):
    """A view of the explorer is executed without the state of widgets."""
    explorer = nbformat.read(ROOT / "notebooks" / "explore.ipynb", as_version=4)
    view, = (cell.source for cell in explorer.cells if "class View" in cell.source)
    view += "\nfrom plotly.express import line\nView(lambda count: line(y=[count]), count=(0, 1))"
    failed, cells = executed(tmp_path, good=[new_code_cell(view)], bad=[new_code_cell("1 / 0")])
    assert failed == {"bad": "ZeroDivisionError: division by zero"} and [*cells] == ["good"]
    output, = cells["good"][0].outputs
    assert output.data["text/html"].startswith("<div data-figure=")


def test_no_bar_stands_still_in_a_saved_notebook(folders, tmp_path):
    source = ("import pathlib, numpy\nfrom repro.data.prepared import Source\n"
              "def make(path):\n    return {'rows': numpy.zeros(1)}, {}\n"
              "made = Source('things', 'form', 1, {'a': pathlib.Path('good.ipynb')}, make).prepare()")
    _, cells = executed(tmp_path, good=[new_code_cell(source)])
    assert cells["good"][0].execution_count and cells["good"][0].outputs == []


@pytest.mark.parametrize(("table", "error"), [
    ("made_up", "nothing of this table is finished"), ("taxonomy", "AssertionError: ")])
def test_a_table_of_which_nothing_is_finished_is_shown_at_smoke_size_and_leaves_no_runs(
    folders, tmp_path, table, error
):
    sources = ("train, preset = 'missing', 'auto'", "assert train != 'never'",
               "import os\nprint(preset, os.environ['REPRO_RUNS'])")
    cells = [new_markdown_cell("# A table"), *map(new_code_cell, sources)]
    cells[1].metadata["tags"] = ["parameters"]
    failed, made = executed(tmp_path, table=table, bad=cells)
    assert not failed and made["bad"][0].source == "# A table" + book.SMOKE.format(error=error)
    preset, runs = made["bad"][-1].outputs[0].text.split()
    assert preset == "smoke" and runs != os.environ["REPRO_RUNS"] and not os.path.exists(runs)


def test_what_the_book_trains_to_look_into_is_in_no_folder_that_is_exported(folders, tmp_path):
    _, made = executed(tmp_path, weights=[new_code_cell("import os\nprint(os.environ['REPRO_RUNS'])")],
                       results=[new_code_cell("import os\nprint(os.environ['REPRO_RUNS'])")])
    runs = {name: cells[0].outputs[0].text.strip() for name, cells in made.items()}
    assert runs["results"] == os.environ["REPRO_RUNS"] != runs["weights"] and not os.path.exists(runs["weights"])


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
