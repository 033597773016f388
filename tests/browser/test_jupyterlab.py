"""Notebooks in JupyterLab as a reader has them: run all from cleared outputs, move a slider, press play."""

import re

import nbformat
import pytest
from browsing import FIGURES, LabNotebook, jupyter_lab, watched

from repro.data import manifest

pytestmark = pytest.mark.timeout(1200)  # beyond what each wait inside may take
NOTEBOOKS = manifest.project_root() / "notebooks"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The notebooks that are opened: ours with two objectives of preset smoke."""
    folder = tmp_path_factory.mktemp("notebooks")
    for name, objectives in (("explore", "CE+AD,CE"), ("taxonomy", "random,CE")):
        ours = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
        for parameter, value in {"objectives": objectives, "preset": "smoke", "device": "cpu"}.items():
            ours.cells[1].source = re.sub(rf'(?m)^({parameter}: str = )"\w+"', rf'\1"{value}"', ours.cells[1].source)
        nbformat.write(ours, folder / f"{name}.ipynb")
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
    """Every view's slider, play, and a click on a point change its figure.

    Figures are planes of features, skeletons, targets and selection in this order.
    """
    with watched(browser) as seen:
        notebook = LabNotebook(seen.page, lab, "explore.ipynb")
        assert notebook.outputs("*").count() == 0
        notebook.run_all()
        assert notebook.errors() == []
        for number, slider in {0: "neighbours", 1: "turn", 2: "temperature", 3: "seed"}.items():
            before = notebook.figure(number)
            notebook.move_slider(slider)
            assert notebook.figure(number, other_than=before) != before
        for number in (1, 3):
            before = notebook.figure(number)
            notebook.press(number, "\N{BLACK RIGHT-POINTING TRIANGLE}")
            assert notebook.figure(number, other_than=before) != before
            notebook.press(number, "\N{BLACK MEDIUM SQUARE}")
        planes, skeletons = notebook.figure(0), notebook.figure(1)
        middle = seen.page.locator(FIGURES).nth(0).locator(".scatterlayer .points path").nth(40)
        middle.scroll_into_view_if_needed()
        box = middle.bounding_box()
        seen.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert notebook.figure(0, other_than=planes) != planes
        assert notebook.figure(1, other_than=skeletons) != skeletons
        assert notebook.errors() == [] and seen.strangers == []
