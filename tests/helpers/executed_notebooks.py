"""Notebooks as a reader runs them, and what they show.

Processes of `nursery` run papermill and the cells. Their parent has imported what a kernel would import for longer than
most short notebooks take, and images are seen through a tiny trunk there. Kernels as a reader's papermill has them are
started by tests/test_book.py and by README's first command.
"""

import functools
import importlib
import os
import pkgutil

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nursery import Nursery, work  # noqa: F401  a process of the nursery calls `work`
from traitlets.config import Config

import repro
from repro.data import manifest

ROOT = manifest.project_root()
FOLDER = ROOT / "notebooks"
RESULTS = ("results", "results_taxonomy", "results_cmacc", "results_sce", "results_jcl")
CELLLESS = ("claims", "glm", *RESULTS)  # they train nothing, and no parameter of theirs chooses cells
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


def execute(name, folder, project=ROOT, **parameters):
    """Run a notebook of the project, or of a copy of it, with papermill: (finished process, executed notebook).

    Its runs are below `folder`.
    """
    words = ["-m", "papermill", str(project / "notebooks" / f"{name}.ipynb"), str(folder / f"{name}.ipynb"),
             "--no-progress-bar", "--engine", "in_process"]
    words += [part for item in parameters.items() for part in ("-p", *map(str, item))]
    environment = os.environ | {"REPRO_RUNS": str(folder / "runs"), "REPRO_DATA": str(folder / "no data"),
                                "IPYTHONDIR": str(folder / "ipython")}
    return nursery(project).call(words, folder, environment), nbformat.read(folder / f"{name}.ipynb", as_version=4)


@functools.cache
def nursery(project):
    """Processes that have imported what notebooks do."""
    return Nursery("executed_notebooks", project)


def warm_up():
    """Import papermill and the package, let papermill know of `run_cells`, and draw a line, which finds the fonts.

    Models of images have a tiny trunk, bundled clips are few, and what comes along is made once. Probes of characters
    and draws of keys, which tests of their own look at, are few.
    """
    import papermill.cli  # noqa: F401
    import pytest
    import torch._dynamo  # noqa: F401  an optimiser's first step does
    from made_up_images import use_tiny_trunk
    from matplotlib.figure import Figure
    from papermill.engines import Engine, papermill_engines

    from repro.audiovisual import study
    from repro.audiovisual import synthetic as clips
    from repro.papers.jcl import measured
    from repro.skeleton import readers, synthetic

    for module in pkgutil.walk_packages(repro.__path__, "repro."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    papermill_engines.register("in_process", type("InProcess", (Engine,), {
        "execute_managed_notebook": staticmethod(lambda manager, *_, **__: run_cells(manager.nb.cells)),
    }))
    figure = Figure()
    figure.text(0, 0, "a line and $10^{1}$")
    figure.canvas.draw()
    patch = pytest.MonkeyPatch()  # for as long as the process lives
    use_tiny_trunk(patch)
    patch.setattr(study, "PROBE_EPOCHS", 2)
    patch.setattr(measured, "sampled_losses", functools.partial(measured.sampled_losses, repeats=2))
    patch.setattr(clips, "COUNTS", {"pretrain": 512, "train": 64, "test": 64})
    recordings, arrays = tuple(readers.generate()), clips.make(0.5)
    patch.setattr(clips, "make", lambda redundancy: arrays)
    for module in (readers, synthetic):  # the reader has a name of its own for it
        patch.setattr(module, "generate", lambda: recordings)


class Shell(InteractiveShell):
    """Runs cells; pictures go into outputs, and no window is opened."""

    def enable_gui(self, gui=None):
        """Nothing to do for `%matplotlib inline`."""


def run_cells(cells):
    """Run the cells that hold code in this process, up to the first error; leaves outputs in them."""
    shell = Shell.instance(config=Config(HistoryManager={"enabled": False}))
    for cell in cells:
        if cell.cell_type == "code":
            with shell.display_trap, capture_output() as captured:
                result = shell.run_cell(cell.source)
            if captured.stdout:
                cell.outputs.append(nbformat.v4.new_output("stream", name="stdout", text=captured.stdout))
            cell.outputs += [nbformat.v4.new_output("display_data", output.data, metadata=output.metadata or {})
                             for output in captured.outputs]
            if not result.success:
                error = result.error_before_exec or result.error_in_exec
                cell.outputs.append(nbformat.v4.new_output(
                    "error", ename=type(error).__name__, evalue=str(error), traceback=[str(error)]))
                return


def executed(name, folder, **parameters):
    """The notebook, run to its end, as `execute` does."""
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
    said = [output for output in found if output.get("name") == "stdout"]
    return "".join(output.get("text") or output["data"]["text/plain"] for output in said)
