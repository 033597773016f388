"""The book: the first page, results, papers, executed notebooks, methods and all runs, as pages that need no server.

`docs/conf.py` is what Sphinx is told; here is gathered what it builds. The libraries it takes are those of the extra
`book`.
"""

import html
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from repro.data import manifest
from repro.data.disk import naming, scratch
from repro.data.parallel import run_jobs
from repro.experiments import by_study, find, of_today
from repro.report.style import spoken
from repro.run.device import cores
from repro.run.store import everything

LIBRARIES = ("itables", "myst_nb", "nh3", "papermill", "sphinx", "sphinx_book_theme")
GENERATOR = 'content="repro report"'  # by which a folder of ours is known
GATHERED = ("RESULTS.md", "SECURITY.md", "CITATION.cff", "LICENSE", "docs", "figures", "weights")
HIDDEN = ["study", "digest", "changes", "cost", "named", "commit"]  # of a run, on the page of runs
FIRST = ["trains", "accuracy", "changed", "dataset", "seed", "version", "preset", "finished"]  # columns of that page
RUNS = """---
html_theme.sidebar_secondary.remove: true
---
# All runs

A row per finished run, yours among ours, the newest first. Accuracy is in percent, of the linear probe or after
fine-tuning. Arrows sort, fields of headings filter, the field above them searches. [Words](docs/words.md).
"""
SMOKE = "\n\n**A smoke run**, one epoch on bundled data, as nothing of this table is finished: its numbers say nothing."
SHORT = {"preset": "smoke"}
RAW = "``````{{raw}} html\n{}\n``````"  # HTML in a page of Markdown
SLOW = 900  # seconds that one cell of a notebook may take


def build(output: Path) -> tuple[Path, dict[str, str]]:
    """Execute the notebooks, build the book beside its place, `output`, and put it there once it is whole.

    Returns:
        The first page, and by name the notebooks that could not be executed, which the book leaves out.

    Raises:
        ValueError: if a library is missing, this is no checkout, or `output` holds anything but a book.
        ChildProcessError: if Sphinx fails, with what it said last.
        OSError: as `naming`, for instance if the disk is full.
    """
    root, output = manifest.checkout(), output.resolve()
    first = output / "index.html"
    if root is None:
        raise ValueError("the book is made of a checkout's docs/ and notebooks/, which an installed package has not; "
                         "clone the repository and give the command there")
    if missing := [name for name in LIBRARIES if importlib.util.find_spec(name) is None]:
        raise ValueError(f"the book needs {', '.join(missing)}; `pip install -r requirements-dev.txt` installs them")
    ours = first.is_file() and GENERATOR in first.read_text("utf-8", errors="replace")
    if not ours and (output.is_file() or (output.is_dir() and any(output.iterdir()))):
        raise ValueError(f"{output} holds other things than a report; name a new or an empty folder with --output")
    with naming(output), scratch(output.with_name(f".{output.name}")) as folder:
        source = folder / "source"
        gather(root, source)
        failed = execute(root / "notebooks", source / "notebooks")
        write_runs(by_study(of_today(everything())), source)
        typeset(source, root / "docs", folder / "site")
        if output.exists():
            output.replace(folder / "before")
        (folder / "site").replace(output)
    return first, failed


def gather(root: Path, source: Path) -> None:
    """Copy what stands in the book as it is; README, with `docs/contents.txt` behind it, is the first page."""
    source.mkdir(parents=True)
    for name in GATHERED:
        copy: Any = shutil.copytree if (root / name).is_dir() else shutil.copy
        copy(root / name, source / name)
    first = "".join((root / name).read_text(encoding="utf-8") for name in ("README.md", "docs/contents.txt"))
    first = re.sub(r'<img src="(.*?)" width="(\d+)" alt="(.*?)">', r"![\3](\1){width=\2px}", first)
    (source / "index.md").write_text(first, encoding="utf-8")


def execute(notebooks: Path, target: Path) -> dict[str, str]:
    """Execute the notebooks of a folder into another one; returns the errors of those that fail, which are left out.

    As many as there are cores are executed at once. Smoke runs are in a folder that ends with the book.
    """
    target.mkdir(parents=True)
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as runs:
        jobs = [(path, target / path.name, runs) for path in sorted(notebooks.glob("*.ipynb"))]
        for path, error in run_jobs(execute_one, jobs, min(cores(), len(jobs))):
            if error:
                path.unlink(missing_ok=True)
                failed[path.stem] = error
    return dict(sorted(failed.items()))


def execute_one(path: Path, executed: Path, runs: str) -> tuple[Path, str]:
    """Execute a notebook, a smoke run in the folder `runs`; returns the executed one, and what went wrong, or ""."""
    import nbformat
    import papermill

    logging.getLogger("papermill").setLevel(logging.ERROR)  # it warns about fields that a notebook does not name
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # notebooks share the cores, and more threads wait for one another
    began, notebook, error = time.monotonic(), nbformat.read(path, as_version=4), ""
    arguments, kernel = arguments_of(notebook.metadata), ["--log-level=CRITICAL"]  # one that is stopped says so
    if arguments == SHORT:
        kernel.append(f"--IPKernelApp.exec_lines=import os; os.environ['REPRO_RUNS'] = {runs!r}")
        notebook.cells[0].source += SMOKE
    try:
        papermill.execute_notebook(
            notebook, executed, arguments, cwd=path.parent, progress_bar=False, log_output=False,
            execution_timeout=SLOW, store_widget_state=False, extra_arguments=kernel)
    except papermill.PapermillExecutionError as failure:
        error = f"{failure.ename}: {failure.evalue}"
    except (TimeoutError, RuntimeError) as failure:  # a cell that takes too long, a kernel that died
        error = f"{type(failure).__name__}: {failure}"
    print(f"{path.stem}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return executed, error


def arguments_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a notebook is executed with: the arguments of the experiment that its metadata name, of which it trains
    nothing; those of a smoke run if nothing of it is finished. A notebook that names none is executed as it is.
    """
    if "experiment" not in metadata:
        return {}
    experiment = find(metadata["experiment"])
    if not everything()["id"].isin([*experiment.asked()]).any():
        return SHORT
    return {name: value for name, value in experiment.arguments.items() if value is not None} | {"train": "never"}


def write_runs(studies: dict[str, DataFrame], source: Path) -> None:
    """Write the page `runs.md`: of the runs of every study, see `by_study`, a table to search, sort and filter."""
    import itables
    from itables.javascript import generate_init_offline_itables_html

    parts = [RUNS, RAW.format(generate_init_offline_itables_html(itables.options.dt_bundle))]
    for study, runs in reversed(studies.items()):  # skeletons, which were run at the full size, stand first
        if len(runs):
            rows = columns_of_page(runs).rename(columns=html.escape)  # which itables does to values alone
            table = itables.to_html_datatable(
                rows, connected=False, showIndex=False, allow_html=False, maxBytes=0, scrollX=True, order=[],
                column_filters="header", classes="display nowrap compact")
            parts += [f"## {study.capitalize()}", RAW.format(table)]
    (source / "runs.md").write_text("\n\n".join(parts), encoding="utf-8")


def columns_of_page(runs: DataFrame) -> DataFrame:
    """Runs of a study as the page shows them: `FIRST`, then measures and the fields in which they differ, then id."""
    newest = runs.sort_values(["version", "finished"], ascending=False, kind="stable")
    shown = newest.drop(columns=HIDDEN).assign(
        trains=newest["named"], finished=newest["finished"].str[:10],
        accuracy=[run.get(run["measure"]) for run in newest.to_dict("records")],
        changed=[", ".join(spoken(*change) for change in changes.items()) for changes in newest["changes"]],
        hours=newest["cost"].str.get("seconds").astype(float) / 3600)
    varying = [name for name in shown.columns.drop([*FIRST, "id"])
               if len(shown) == 1 or shown[name].astype(str).nunique() > 1]
    shown = shown[[*FIRST, *varying, "id"]].astype({"accuracy": float})
    numbers = shown.select_dtypes("float").columns
    shown[numbers] = shown[numbers].map(lambda value: float(f"{value:.4g}"))
    return shown.astype(object).where(pd.notna(shown), "")


def typeset(source: Path, configuration: Path, site: Path) -> None:
    """Let Sphinx make `site` of a folder of sources, with `index.md`, and that of `conf.py`.

    ChildProcessError has the end of what it said if it fails.
    """
    command = [sys.executable, "-m", "sphinx", "--quiet", "--builder", "html", "--conf-dir", str(configuration),
               "--doctree-dir", str(source.parent / "doctrees"), str(source), str(site)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChildProcessError(f"Sphinx could not build the book: {done.stderr.strip()[-2000:]}")
