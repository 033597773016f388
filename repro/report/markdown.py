"""The results as Markdown, of what the results notebooks show: RESULTS.md of their index, and a page for each paper."""

import posixpath
import re
import tempfile
from pathlib import Path

from nbformat import NotebookNode

from repro.data.disk import write_atomically

INDEX = "results"  # the notebook of RESULTS.md; the others are called results_<paper>
LINK = re.compile(r"\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)")  # of Markdown, to a file
WRAPPED = re.compile(r"(?<=[^\n|])\n *(?=[^\s|])(?!- )")  # the end of a line within a paragraph or an item of a list
MADE = "<!-- Made of {} by `repro report --markdown`: change that, not this. -->"


def write(project: Path, folder: Path) -> list[Path]:
    """Execute the results notebooks of a project and write what they show, all of it or, at an error, nothing.

    Args:
        project: the folder of `notebooks/`.
        folder: gets RESULTS.md and docs/results_<paper>.md.

    Returns:
        The files written.

    Raises:
        FileNotFoundError: if there are no such notebooks, as where the package is installed without a checkout.
        ValueError: if a cell fails, such as one whose numbers no longer bear out its verdict; names notebook and cell.
    """
    import papermill

    paths = sorted((project / "notebooks").glob(f"{INDEX}*.ipynb"))
    if not paths:
        raise FileNotFoundError(f"{project / 'notebooks'} has no {INDEX}*.ipynb; run this in a checkout of the project")
    pages = {f"notebooks/{path.name}": page_of(path.stem) for path in paths}
    texts = {}
    with tempfile.TemporaryDirectory() as scratch:
        for path in paths:
            try:
                executed = papermill.execute_notebook(
                    path, Path(scratch) / path.name, cwd=project, progress_bar=False)
            except papermill.PapermillExecutionError as error:
                raise ValueError(
                    f"{path}, cell In [{error.exec_count}]: {error.ename}: {error.evalue}; where an assert fails, "
                    "the numbers no longer bear out the sentence below it: change both"
                ) from error
            texts[page_of(path.stem)] = as_markdown(executed, f"notebooks/{path.name}", pages)
    for page, text in texts.items():
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / page, lambda temporary, text=text: temporary.write_text(text, encoding="utf-8"))
    return [folder / page for page in texts]


def page_of(notebook: str) -> str:
    """The page of a results notebook, from the folder of the project."""
    return "RESULTS.md" if notebook == INDEX else f"docs/{notebook}.md"


def as_markdown(notebook: NotebookNode, place: str, pages: dict[str, str]) -> str:
    """The text of an executed notebook: its Markdown and what its cells show as Markdown, without code.

    Args:
        place: of the notebook in the project, from which its links are meant.
        pages: by the place of each notebook that becomes a page, that of the page; links go there.
    """
    parts = [MADE.format(place)]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        for output in cell.get("outputs", []):
            if "text/markdown" in output.get("data", {}):
                parts.append(WRAPPED.sub(" ", output["data"]["text/markdown"]))

    def relink(match: re.Match) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), match[1]))
        target = posixpath.relpath(pages.get(target, target), posixpath.dirname(pages[place]) or ".")
        return f"]({target}{match[2] or ''})"

    return LINK.sub(relink, "\n\n".join(part.strip() for part in parts)) + "\n"
