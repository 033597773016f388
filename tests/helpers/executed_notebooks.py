"""Notebooks as a reader runs them, and what they show."""

import os
import subprocess
import sys

import nbformat

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
    arguments = [part for item in parameters.items() for part in ("-p", *map(str, item))]
    command = [sys.executable, "-m", "papermill", str(notebooks / f"{name}.ipynb"), str(folder / f"{name}.ipynb")]
    environment = os.environ | {"REPRO_RUNS": str(folder / "runs"), "REPRO_DATA": str(folder / "no data"),
                                "IPYTHONDIR": str(folder / "ipython")}
    process = subprocess.run([*command, *arguments, "--no-progress-bar"], env=environment, cwd=folder,
                             capture_output=True, text=True, timeout=300)
    return process, nbformat.read(folder / f"{name}.ipynb", as_version=4)


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
