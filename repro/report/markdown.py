"""The results as Markdown, of what the results notebooks show: RESULTS.md of their index, and a page for each paper."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from nbformat import NotebookNode

from repro.data.disk import write_atomically
from repro.report.typed import sections, unfounded

INDEX = "results"  # the notebook of RESULTS.md; the others are called results_<paper>
LINK = re.compile(r"\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)")  # of Markdown, to a file
MADE = "<!-- Made of {} by `repro report --markdown`: change that, not this. -->"


def write(project: Path, folder: Path) -> list[Path]:
    """Execute the results notebooks of a project and write what they show, all of it or, at an error, nothing.

    Args:
        project: the folder of `notebooks/`.
        folder: gets RESULTS.md and docs/results_<paper>.md, which are returned.

    Raises:
        FileNotFoundError: if there are no such notebooks, as where the package is installed without a checkout.
        ValueError: if a cell fails, naming notebook and cell, or a typed sentence is unfounded (`faults`).
    """
    import papermill

    paths = sorted((project / "notebooks").glob(f"{INDEX}*.ipynb"))
    if not paths:
        raise FileNotFoundError(f"{project / 'notebooks'} has no {INDEX}*.ipynb; run this in a checkout of the project")
    pages = {path: folder / page_of(path.stem) for path in paths}
    texts, wrong = {}, []
    for path, page in pages.items():
        try:
            executed = papermill.execute_notebook(path, None, cwd=project, progress_bar=False)
        except papermill.PapermillExecutionError as error:
            place = f"{path}, cell In [{error.exec_count}]"
            raise ValueError(f"{place}: {error.ename}: {error.evalue}") from error
        wrong += [f"{path}, {fault}" for fault in faults(executed)]
        texts[page] = as_markdown(executed, path, pages)
    if wrong:
        raise ValueError("\n".join(wrong))
    for page, text in texts.items():
        page.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(page, lambda temporary, text=text: temporary.write_text(text, encoding="utf-8"))
    return [*texts]


def page_of(notebook: str) -> str:
    """The page of a results notebook, from the folder of all pages."""
    return "RESULTS.md" if notebook == INDEX else f"docs/{notebook}.md"


def faults(notebook: NotebookNode) -> list[str]:
    """What typed sentences of an executed notebook say and the outputs of their section do not; see `unfounded`."""
    return [f"section {part.heading!r}: {fault} in the sentence {sentence!r}" for part in sections(notebook)
            for sentence in part.sentences for fault in unfounded(sentence, part.lines)]


def as_markdown(notebook: NotebookNode, path: Path, pages: Mapping[Path, Path]) -> str:
    """The text of an executed notebook: its Markdown and what its cells show as Markdown, without code.

    Args:
        path: of the notebook, from which its links are meant.
        pages: by the path of each notebook that becomes a page, that of the page. Links go there, and from there to
            whatever else the notebook links, its pictures too.
    """
    def relink(match: re.Match) -> str:
        target = Path(os.path.normpath(path.parent / match[1]))
        found = os.path.relpath(pages.get(target, target), pages[path].parent)
        return f"]({Path(found).as_posix()}{match[2] or ''})"

    parts = [MADE.format(f"notebooks/{path.name}")]
    for cell in notebook.cells:
        shown = [output.get("data", {}).get("text/markdown", "") for output in cell.get("outputs", [])]
        parts += [cell.source] if cell.cell_type == "markdown" else filter(None, shown)
    return LINK.sub(relink, "\n\n".join(part.strip() for part in parts)) + "\n"
