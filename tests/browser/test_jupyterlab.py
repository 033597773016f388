"""Notebooks in JupyterLab as a reader has them: run all from cleared outputs, move a slider, press play."""

import re

import browsing
import nbformat
import pytest
from browsing import LabNotebook, jupyter_lab, watched
from nbformat.v4 import new_code_cell, new_notebook

from repro.data import manifest

pytestmark = pytest.mark.timeout(1200)  # beyond what each wait inside may take
NOTEBOOKS = manifest.project_root() / "notebooks"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The notebooks that are opened: ours with two objectives of preset smoke, and a made-up one."""
    folder = tmp_path_factory.mktemp("notebooks")
    for name, objectives in (("explore", "random,CE+AD"), ("taxonomy", "random,CE")):
        ours = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
        for parameter, value in {"objectives": objectives, "preset": "smoke", "device": "cpu"}.items():
            ours.cells[1].source = re.sub(rf'(?m)^({parameter}: str = )"\w+"', rf'\1"{value}"', ours.cells[1].source)
        nbformat.write(ours, folder / f"{name}.ipynb")
    cells = [new_code_cell(source) for source in ('from PIL import Image\nImage.new("L", (40, 40))', "1 / 0", "2")]
    made = new_notebook(cells=cells, metadata={"kernelspec": ours.metadata.kernelspec})
    nbformat.write(made, folder / "failing.ipynb")
    return folder


@pytest.fixture(scope="module")
def lab(browser, folder, tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    data = {"REPRO_RUNS": str(state / "runs"), "REPRO_DATA": str(state / "no data")}
    with jupyter_lab(folder, state, **data, PYTHONPATH=str(manifest.project_root())) as address:
        yield address


def test_the_taxonomy_from_cleared_outputs(browser, lab):
    with watched(browser) as seen:
        notebook = LabNotebook(seen.page, lab, "taxonomy.ipynb")
        assert notebook.outputs("*").count() == 0
        notebook.run_all()
        assert notebook.errors() == []
        rows = notebook.outputs("table").first.locator("tbody tr").all_inner_texts()
        assert [row.split()[0] for row in rows] == ["random", "CE"] and "smoke" in rows[0]
        widths = notebook.outputs("img").evaluate_all("images => images.map(image => image.naturalWidth)")
        assert len(widths) == 3 and min(widths) > 200  # poses, table and curves
        assert seen.strangers == []


def test_the_explorer_from_cleared_outputs(browser, lab):
    """Every view's slider, play, and a click on a point change its picture.

    Pictures are skeletons, embeddings with a film, targets, training and selection in this order.
    """
    with watched(browser) as seen:
        notebook = LabNotebook(seen.page, lab, "explore.ipynb")
        assert notebook.outputs("*").count() == 0
        notebook.run_all()
        assert notebook.errors() == []
        for number, slider in {0: "frame", 1: "neighbours", 3: "temperature", 5: "drawn"}.items():
            before = notebook.picture(number)
            notebook.move_slider(slider)
            assert notebook.picture(number, other_than=before) != before
        for number, player in ((0, 0), (5, 1)):
            before = notebook.picture(number)
            notebook.press_play(player)
            assert notebook.picture(number, other_than=before) != before
        film, planes, middle = notebook.picture(2), notebook.picture(1), notebook.outputs("img.embedding-view")
        box = middle.bounding_box()
        middle.click(position={"x": 0.27 * box["width"], "y": 0.4 * box["height"]})  # among the points of the left run
        assert notebook.picture(2, other_than=film) != film
        assert notebook.picture(1, other_than=planes) != planes
        assert notebook.errors() == [] and seen.strangers == []


def test_a_cell_that_fails_and_a_picture_that_stands_still_are_noticed(browser, lab, monkeypatch):
    with watched(browser) as seen:
        notebook = LabNotebook(seen.page, lab, "failing.ipynb")
        notebook.run_all()
        assert len(notebook.errors()) == 1 and "ZeroDivisionError" in notebook.errors()[0]
        picture = notebook.picture()
        monkeypatch.setattr(browsing, "PATIENCE", 1000)
        with pytest.raises(Exception, match="no other picture 0 within 1000 ms"):
            notebook.picture(other_than=picture)
