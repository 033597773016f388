"""Executed notebooks as HTML that loads nothing from elsewhere: no MathJax, no require.js, no widgets, no script."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_output
from traitlets.config import Config

PLANNED = "repro"  # of the metadata of an output of `repro.notebook.begin`
WIDGET, WIDGETS = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"
INTERACTIVE = "*Something to move with the mouse stands here: open this notebook in JupyterLab.*"
FIGURE = re.compile(r'<a data-figure="([^"]+)"[^>]*>')  # of `repro.report.claims.shown`
SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/plain"]  # the first there is


class Executed(NamedTuple):
    """An executed notebook.

    Attributes:
        name: the file's stem.
        title: its first heading.
        planned: what it computed, "16 cells of preset quick on synthetic", "" where it does not say so.
        preset, dataset: of that, "" likewise.
        ended: "complete", "stopped by an error", "stopped midway" or "not executed".
        body: its cells as HTML.
    """

    name: str
    title: str
    planned: str
    preset: str
    dataset: str
    ended: str
    body: str


def read(folder: Path, figures: Collection[str] = ()) -> list[Executed]:
    """The notebooks of a folder, sorted by name; none of a folder that does not exist.

    Args:
        figures: files that will lie in ../figures/; where notebooks name them, they link to them.

    Raises:
        ValueError: if a file is no notebook, naming it.
    """
    return [_executed(path, figures) for path in sorted(folder.glob("*.ipynb"))]


def _executed(path: Path, figures: Collection[str]) -> Executed:
    try:
        notebook = nbformat.read(path, as_version=4)
    except OSError:
        raise
    except Exception as error:  # nbformat raises many kinds for other JSON
        raise ValueError(f"{path} is not a notebook; delete it, or run its notebook again") from error
    planned = _planned(notebook)
    return Executed(
        path.stem,
        _heading(notebook) or path.stem,
        planned=f"{planned['cells']} cells of preset {planned['preset']} on {planned['dataset']}" if planned else "",
        preset=planned.get("preset", ""),
        dataset=planned.get("dataset", ""),
        ended=_ended(notebook),
        body=FIGURE.sub(lambda found: _anchor(found[1], figures), _html(notebook)),
    )


def _html(notebook: NotebookNode) -> str:
    """The cells alone, without a head; what nbconvert would draw with scripts is text."""
    from nbconvert import HTMLExporter  # which takes a second that a report without notebooks does not need

    _say_what_widgets_were(notebook)
    _describe_pictures(notebook)
    settings = Config({"NbConvertBase": {"display_data_priority": SHOWN}})
    exporter = HTMLExporter(
        config=settings, template_name="basic", exclude_anchor_links=True, exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    return exporter.from_notebook_node(notebook)[0]


def _anchor(figure: str, figures: Collection[str]) -> str:
    """The beginning of a link, and of plain text where there is no such figure."""
    return f'<a href="../figures/{figure}">' if figure in figures else "<a>"


def _say_what_widgets_were(notebook: NotebookNode) -> None:
    """Progress bars, which are over, go; of any other widget its picture is left, if it has one, and a sentence."""
    models = notebook.metadata.pop("widgets", {}).get(WIDGETS, {}).get("state", {})
    for cell in notebook.cells:
        outputs = []
        for output in cell.get("outputs", []):
            view = output.get("data", {}).get(WIDGET)
            if view is None:
                outputs.append(output)
            elif not _is_progress(view["model_id"], models):
                shown = {kind: value for kind, value in output.data.items() if kind in SHOWN[:-1]}
                outputs += [new_output("display_data", shown)] if shown else []
                outputs.append(new_output("display_data", {"text/markdown": INTERACTIVE}))
        if "outputs" in cell:
            cell.outputs = outputs


def _is_progress(model: str, models: dict) -> bool:
    """Whether a widget is a row with a progress bar in it."""
    children = models.get(model, {}).get("state", {}).get("children", [])
    names = [models.get(child.removeprefix("IPY_MODEL_"), {}).get("model_name", "") for child in children]
    return any(name.endswith("ProgressModel") for name in names)


def _describe_pictures(notebook: NotebookNode) -> None:
    """Give pictures a text for those who do not see them: the heading they stand under."""
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = _first_heading(cell.source) or heading
        for output in cell.get("outputs", []):
            if "data" in output:
                output.metadata.setdefault("alt", f"Picture under the heading: {heading}")


def _heading(notebook: NotebookNode) -> str:
    texts = (_first_heading(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    return next(filter(None, texts), "")


def _first_heading(markdown: str) -> str:
    found = re.search(r"^#+ +(.+?) *$", markdown, re.MULTILINE)
    return found[1] if found else ""


def _ended(notebook: NotebookNode) -> str:
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    if any(output.output_type == "error" for cell in code for output in cell.outputs):
        return "stopped by an error"
    executed = sum(cell.execution_count is not None for cell in code)
    return "not executed" if not executed else "complete" if executed == len(code) else "stopped midway"


def _planned(notebook: NotebookNode) -> dict:
    """What `repro.notebook.begin` says beside its output that there is to do: cells, preset and dataset; or nothing."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return next((output.metadata[PLANNED] for output in outputs if PLANNED in output.get("metadata", {})), {})
