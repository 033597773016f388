"""The explorer in JupyterLab as a reader has it: run all from cleared outputs, move a slider, press play."""

import json
import os
import re
import socket
import subprocess
import sys
import time

import nbformat
import pytest
from browsing import PATIENCE, watched

from repro.data import manifest

pytestmark = pytest.mark.timeout(1200)  # beyond what each wait inside may take
NOTEBOOKS = manifest.project_root() / "notebooks"
TOKEN = "made-up-token"
SETTINGS = {  # no question about news, and every cell in the page
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
CELLS = "jupyterapp.shell.currentWidget.content.model.toJSON().cells.filter(cell => cell.cell_type === 'code')"
FAILED = f"{CELLS}.flatMap(cell => cell.outputs).filter(output => output.output_type === 'error')"
ERRORS = f"{FAILED}.map(output => `${{output.ename}}: ${{output.evalue}}`)"
FINISHED = f"() => {FAILED}.length > 0 || {CELLS}.every(cell => cell.execution_count !== null)"
FIGURES = ".jp-OutputArea-output .js-plotly-plot"
FIGURE = """([selector, number, other]) => {
    const figure = document.querySelectorAll(selector)[number];
    return figure && figure.querySelector("svg") && figure.innerHTML !== other && figure.innerHTML;
}"""


@pytest.fixture
def folder(tmp_path):
    """The folder of the explorer with two objectives of preset smoke."""
    ours, folder = nbformat.read(NOTEBOOKS / "explore.ipynb", as_version=4), tmp_path / "notebooks"
    for parameter, value in {"objectives": "CE+AD,CE", "preset": "smoke", "device": "cpu"}.items():
        ours.cells[1].source = re.sub(rf'(?m)^({parameter}: str = )"\w+"', rf'\1"{value}"', ours.cells[1].source)
    folder.mkdir()
    nbformat.write(ours, folder / "explore.ipynb")
    return folder


@pytest.fixture
def lab(browser, folder, tmp_path):
    """The address of a JupyterLab server over the folder, ended with its kernels; no settings of the reader matter."""
    for name, values in SETTINGS.items():
        path = tmp_path / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    own = {name: str(tmp_path / name.lower()) for name in (
        "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "REPRO_RUNS", "REPRO_DATA")}
    own |= {"JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"), "PYTHONPATH": str(manifest.project_root()),
            "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "spaces")}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]  # free a moment ago
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser",
               "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
               f"--ServerApp.root_dir={folder}"]
    log = tmp_path / "log"
    with log.open("w") as lines, subprocess.Popen(command, env=os.environ | own, stdout=lines, cwd=folder,
                                                  stderr=subprocess.STDOUT) as process:
        try:
            while not answers(port):
                assert process.poll() is None, f"JupyterLab did not start:\n{log.read_text()}"
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()  # it ends its kernels first


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def figure(page, number, other_than=""):
    """What a figure of plotly in the outputs draws, counted from 0; waits until it is something else."""
    asked = {"arg": [FIGURES, number, other_than], "timeout": PATIENCE, "polling": 100}  # milliseconds
    return page.wait_for_function(FIGURE, **asked).json_value()


def test_the_explorer_from_cleared_outputs(browser, lab):
    """Every view's slider, play, and a click on a point change its figure.

    Figures are planes of features, skeletons, targets and selection in this order.
    """
    with watched(browser) as seen:
        page = seen.page
        idle = page.locator("#jp-main-statusbar").get_by_text("| Idle")  # a kernel that does not run is idle elsewhere
        page.goto(f"{lab}lab/tree/explore.ipynb?token={TOKEN}&reset")
        idle.wait_for()
        assert page.locator(".jp-OutputArea-output *").count() == 0
        page.locator("#jp-MainMenu").get_by_text("Run", exact=True).click()
        page.locator('.lm-Menu-item[data-command="runmenu:run-all"]:not(.lm-mod-disabled)').click()
        page.wait_for_function(FINISHED, polling=500)
        idle.wait_for()
        assert page.evaluate(ERRORS) == []
        for number, slider in {0: "neighbours", 1: "turn", 2: "temperature", 3: "seed"}.items():
            before = figure(page, number)
            sliders = page.locator(".widget-slider", has=page.get_by_text(slider, exact=True))
            sliders.first.locator(".noUi-handle").press("ArrowRight")
            assert figure(page, number, other_than=before) != before
        before = figure(page, 1)
        buttons = page.locator(FIGURES).nth(1).locator(".updatemenu-button")
        buttons.filter(has_text="\N{BLACK RIGHT-POINTING TRIANGLE}").click()
        assert figure(page, 1, other_than=before) != before
        buttons.filter(has_text="\N{BLACK MEDIUM SQUARE}").click()
        planes, skeletons = figure(page, 0), figure(page, 1)
        middle = page.locator(FIGURES).nth(0).locator(".scatterlayer .points path").nth(40)
        middle.scroll_into_view_if_needed()
        box = middle.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert figure(page, 0, other_than=planes) != planes
        assert figure(page, 1, other_than=skeletons) != skeletons
        assert page.evaluate(ERRORS) == [] and seen.strangers == []
