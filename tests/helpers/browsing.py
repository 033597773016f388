"""What the browser tests share: a page that is watched, a server of files, and a notebook in JupyterLab."""

import contextlib
import functools
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

PATIENCE = 300_000  # milliseconds, for a machine with other things to do
LOOPBACK = ("127.0.0.1", "localhost")
TOKEN = "made-up-token"
SETTINGS = {  # no question about news, and every cell in the page
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
CELLS = "jupyterapp.shell.currentWidget.content.model.toJSON().cells.filter(cell => cell.cell_type === 'code')"
FAILED = f"{CELLS}.flatMap(cell => cell.outputs).filter(output => output.output_type === 'error')"
FINISHED = f"() => {FAILED}.length > 0 || {CELLS}.every(cell => cell.execution_count !== null)"
FIGURES = ".jp-OutputArea-output .js-plotly-plot"
FIGURE = """([selector, number, other]) => {
    const figure = document.querySelectorAll(selector)[number];
    return figure && figure.querySelector("svg") && figure.innerHTML !== other && figure.innerHTML;
}"""


class Watched(NamedTuple):
    """A page, the errors on its console, and the addresses beyond this machine that it asked for, in vain."""

    page: object
    errors: list[str]
    strangers: list[str]


@contextlib.contextmanager
def watched(browser, **options):
    """A page in a context of its own, with Playwright's `options`; nothing it asks for leaves this machine."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    errors, strangers = [], []

    def elsewhere(url):
        return urlsplit(url).hostname not in LOOPBACK

    def refuse(route):
        strangers.append(route.request.url)
        route.abort()

    context.route(elsewhere, refuse)
    context.route_web_socket(elsewhere, lambda found: strangers.append(found.url))
    page = context.new_page()
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        yield Watched(page, errors, strangers)
    finally:
        context.close()


@contextlib.contextmanager
def served(folder: Path):
    """The address of a server of the files in a folder."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def jupyter_lab(folder: Path, state: Path, **environment: str):
    """The address of a JupyterLab server over `folder`, ended with its kernels afterwards.

    Args:
        folder: with notebooks.
        state: an empty folder for settings, so that the reader's own neither matter nor change.
        environment: further variables for server and kernels.

    Raises:
        RuntimeError: if it does not start, with what it printed.
    """
    for name, values in SETTINGS.items():
        path = state / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    folders = {name: str(state / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR",
                                                             "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    folders |= {"JUPYTERLAB_SETTINGS_DIR": str(state / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(state / "spaces")}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]  # free a moment ago
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser",
               "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
               f"--ServerApp.root_dir={folder}"]
    address, log = f"http://127.0.0.1:{port}/", state / "log"
    with log.open("w") as lines, subprocess.Popen(command, env=os.environ | folders | environment, stdout=lines,
                                                  stderr=subprocess.STDOUT, cwd=folder) as process:
        try:
            while not _answers(port):
                if process.poll() is not None:
                    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()  # it ends its kernels first


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class LabNotebook:
    """A notebook in JupyterLab, its kernel ready.

    Args:
        page: of a browser.
        lab: address of the server.
        name: of the notebook, below the server's folder.
    """

    def __init__(self, page, lab: str, name: str) -> None:
        self.page = page
        page.goto(f"{lab}lab/tree/{name}?token={TOKEN}&reset")
        self._idle()

    def run_all(self) -> None:
        """Run all cells and wait until the last one is finished or one has failed."""
        self.page.locator("#jp-MainMenu").get_by_text("Run", exact=True).click()
        self.page.locator('.lm-Menu-item[data-command="runmenu:run-all"]:not(.lm-mod-disabled)').click()
        self.page.wait_for_function(FINISHED, polling=500)
        self._idle()

    def errors(self) -> list[str]:
        """What the cells that failed say."""
        return self.page.evaluate(f"{FAILED}.map(output => `${{output.ename}}: ${{output.evalue}}`)")

    def outputs(self, selector: str):
        """What outputs show, as a locator: `outputs("table")`, `outputs("img")`."""
        return self.page.locator(f".jp-OutputArea-output {selector}")

    def figure(self, number: int = 0, other_than: str = "") -> str:
        """What a figure of plotly in the outputs draws, counted from 0; waits until it is something else."""
        return self.page.wait_for_function(FIGURE, arg=[FIGURES, number, other_than], timeout=PATIENCE).json_value()

    def move_slider(self, description: str, number: int = 0) -> None:
        """Move a slider of that label, counted from 0, by one step to the right, with the keyboard."""
        sliders = self.page.locator(".widget-slider", has=self.page.get_by_text(description, exact=True))
        sliders.nth(number).locator(".noUi-handle").press("ArrowRight")

    def press(self, number: int, label: str) -> None:
        """Press the button of that label in a figure, counted from 0."""
        self.page.locator(FIGURES).nth(number).locator(".updatemenu-button").filter(has_text=label).click()

    def _idle(self) -> None:
        """Wait for the status bar, as a kernel that does not run yet is idle elsewhere."""
        self.page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()
