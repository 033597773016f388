"""Notebooks as a reader runs them, and what they show.

Processes of `nursery` run papermill: its imports take a third of the time that a short notebook takes.
"""

import atexit
import functools
import json
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import nbformat
from nursery import Nursery

from repro.data import manifest

FOLDER = manifest.project_root() / "notebooks"
READING = ("claims", "glm")  # they train nothing
SMOKE = {"preset": "smoke", "device": "cpu"}


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def begin(name, **changes):
    """Run the cells up to the third, with parameters put where papermill puts them; returns the names they leave."""
    _, parameters, check = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells[:3]
    namespace = {}
    exec(parameters.source, namespace)
    namespace |= changes
    exec(check.source.replace("%matplotlib inline", ""), namespace)
    return namespace


def execute(name, folder, notebooks=FOLDER, **parameters):
    """Run a notebook with papermill: (finished process, executed notebook), its runs below `folder`."""
    words = [str(notebooks / f"{name}.ipynb"), str(folder / f"{name}.ipynb"), "--no-progress-bar"]
    words += [part for item in parameters.items() for part in ("-p", *map(str, item))]
    environment = os.environ | {"REPRO_RUNS": str(folder / "runs"), "REPRO_DATA": str(folder / "no data"),
                                "IPYTHONDIR": str(folder / "ipython")}
    with tempfile.TemporaryDirectory(dir=folder) as place:
        (Path(place) / "command.json").write_text(json.dumps([str(folder), environment, words]))
        pid = nursery().start(place)
        status = nursery().status(pid)
        errors = (Path(place) / f"{pid}.err").read_text()
    return SimpleNamespace(returncode=status, stderr=errors), nbformat.read(folder / f"{name}.ipynb", as_version=4)


@functools.cache
def nursery():
    """Processes that have imported papermill."""
    started = Nursery("executed_notebooks", Path(tempfile.gettempdir()))
    atexit.register(started.close)
    return started


def warm_up():
    """Import papermill."""
    import papermill.cli  # noqa: F401


def work(place):
    """Give papermill the words that `execute` has left in this folder."""
    from papermill.cli import papermill

    folder, environment, words = json.loads((place / "command.json").read_text())
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    papermill(words, prog_name="papermill")


def executed(name, folder, **parameters):
    """The notebook, run to its end."""
    process, notebook = execute(name, folder, **parameters)
    assert process.returncode == 0, process.stderr[-3000:]
    return notebook


def outputs(notebook, kind):
    """Contents of a MIME type over all cells."""
    found = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    return [data[kind] for data in found if kind in data]


def tables(notebook):
    """The tables shown, as HTML: ours first, then those of the papers."""
    return [html for html in outputs(notebook, "text/html") if "<tbody>" in html]


def printed(notebook):
    """All that was printed, and what `begin` says, joined."""
    found = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    said = [output for output in found if output.get("name") == "stdout" or "repro" in output.get("metadata", {})]
    return "".join(output.get("text") or output["data"]["text/plain"] for output in said)
