"""The book: the first page, results, papers, executed notebooks, methods and all runs, as pages that need no server.

`docs/conf.py` is what Sphinx is told; here is gathered what it builds. The libraries it takes are those of the extra
`book`.
"""

import html
import importlib.util
import logging
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame
from tqdm import tqdm

from repro.data import manifest
from repro.data.disk import naming, scratch
from repro.data.parallel import run_jobs
from repro.experiments import Experiment, by_study, experiments
from repro.report.style import spoken
from repro.run.device import cores
from repro.run.store import everything

LIBRARIES = ("itables", "myst_nb", "nh3", "papermill", "sphinx", "sphinx_book_theme")
GENERATOR = 'content="repro report"'  # by which a folder of ours is known
GATHERED = ("RESULTS.md", "SECURITY.md", "CITATION.cff", "LICENSE", "docs", "figures", "weights")
TRAINS = ("weights",)  # notebooks that train what is missing
HIDDEN = ["study", "digest", "changes", "cost", "named", "commit", "finished"]  # of a run, on the page of runs
FIRST = ["trains", "accuracy", "changed", "dataset", "preset", "seed"]  # columns of the page of runs
RUNS = """---
html_theme.sidebar_secondary.remove: true
---
# All runs

A row per finished run, yours among ours: what it trains, its accuracy in percent (of the linear probe, or after
fine-tuning), what it changes of its preset, then everything else. Arrows sort, the fields of headings filter, the field
above them searches. [Columns and words](docs/words.md).
"""
SMOKE = ("\n\n**No result:** *{error}*. What follows is a smoke run of bundled data, one epoch, which shows what the "
         "notebook does; its numbers say nothing about the paper.")
SHORT = {"preset": "smoke"}
RAW = "``````{{raw}} html\n{}\n``````"  # HTML in a page of Markdown
SLOW = 900  # seconds that one cell of a notebook may take
AT_ONCE = 4  # notebooks, each of which takes a gigabyte of memory or two


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
        write_runs(by_study(), source)
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
    """Execute the notebooks of a folder into another one; of those that fail, which are left out, return the errors.

    Some are executed at once, and a line for each says how long it took. What is trained lies in a folder of runs that
    ends with the book: an export would put it in place of what is committed.
    """
    target.mkdir(parents=True)
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as runs:
        jobs = [(path, target / path.name, runs) for path in sorted(notebooks.glob("*.ipynb"))]
        done = run_jobs(executed_or_smoke, jobs, min(cores(), AT_ONCE, len(jobs)))
        for name, error, seconds in tqdm(done, "notebooks", len(jobs), file=sys.stderr):
            tqdm.write(f"{name}: {seconds:.0f} s", file=sys.stderr)
            if error:
                failed[name] = error
    return dict(sorted(failed.items()))


def executed_or_smoke(path: Path, executed: Path, runs: str) -> tuple[str, str, float]:
    """Execute a notebook; returns its name, what went wrong if nothing is to be shown of it, and the seconds it took.

    One of a table of which nothing is finished, or that fails, as where weights are elsewhere, has a smoke run instead
    in the folder `runs`, and says so and why.
    """
    import nbformat

    began, arguments = time.monotonic(), arguments_of(path)
    error = "nothing of this table is finished" if arguments == SHORT else _execute(
        path, executed, arguments, runs if path.stem in TRAINS else None)
    if error and arguments and not _execute(path, executed, SHORT, runs):
        notebook = nbformat.read(executed, as_version=4)
        notebook.cells[0].source += SMOKE.format(error=error)
        nbformat.write(notebook, executed)
        error = ""
    if error:
        executed.unlink(missing_ok=True)
    return path.stem, error, time.monotonic() - began


def _execute(path: Path, executed: Path, arguments: dict[str, Any], runs: str | None = None) -> str:
    """Execute a notebook, REPRO_RUNS being `runs` if that is given; returns what went wrong, or ""."""
    import papermill

    logging.getLogger("papermill").setLevel(logging.ERROR)  # it warns about fields that a notebook does not name
    kernel = ["--log-level=CRITICAL"]  # one that is stopped says so
    if runs:
        kernel.append(f"--IPKernelApp.exec_lines=import os; os.environ['REPRO_RUNS'] = {runs!r}")
    try:
        papermill.execute_notebook(
            path, executed, arguments, cwd=path.parent, progress_bar=False, log_output=False, execution_timeout=SLOW,
            store_widget_state=False, extra_arguments=kernel)
    except papermill.PapermillExecutionError as error:
        return f"{error.ename}: {error.evalue}"
    except (TimeoutError, RuntimeError, ValueError) as error:  # a cell that takes too long, a kernel that died
        return f"{type(error).__name__}: {error}"
    return ""


def arguments_of(notebook: Path) -> dict[str, Any]:
    """What a notebook is executed with: one whose metadata name a table trains nothing, others are executed as is.

    The table's own notebook shows the first of its experiments whose data are here, or else the first; others what is
    finished of the table with its defaults, or a smoke run where nothing is.
    """
    import nbformat

    table = nbformat.read(notebook, as_version=4).metadata.get("table")
    if table is None:
        return {}
    of_table = [experiment for experiment in experiments().values() if experiment.table == table]

    def here(experiment: Experiment) -> bool:
        try:
            return experiment.at_hand.asked().keys() == experiment.asked().keys()
        except (FileNotFoundError, ValueError):  # not here, or damaged
            return False

    if saved := [experiment for experiment in of_table if experiment.data and table == notebook.stem]:
        shown = next(filter(here, saved), saved[0])
        return {name: value for name, value in shown.arguments.items() if value is not None} | {"train": "never"}
    defaults = [id for experiment in of_table if not experiment.data for id in experiment.asked()]
    return {"train": "never"} if everything()["id"].isin(defaults).any() else SHORT


def write_runs(studies: dict[str, DataFrame], source: Path) -> None:
    """Write the page `runs.md`: of the runs of every study, see `by_study`, a table to search, sort and filter."""
    import itables
    from itables.javascript import generate_init_offline_itables_html

    parts = [RUNS, RAW.format(generate_init_offline_itables_html(itables.options.dt_bundle))]
    for study, runs in reversed(studies.items()):  # skeletons, which were run at the printed size, stand first
        if len(runs):
            rows = columns_of_page(runs).rename(columns=html.escape)  # which itables does to values alone
            table = itables.to_html_datatable(
                rows, connected=False, showIndex=False, allow_html=False, maxBytes=0, scrollX=True, order=[],
                column_filters="header", classes="display nowrap compact")
            parts += [f"## {study.capitalize()}", RAW.format(table)]
    (source / "runs.md").write_text("\n\n".join(parts), encoding="utf-8")


def columns_of_page(runs: DataFrame) -> DataFrame:
    """Runs of a study as the page shows them: `FIRST`, then measures and the fields in which they differ, then id."""
    shown = runs.drop(columns=HIDDEN).assign(
        trains=runs["named"],
        accuracy=pd.Series([run.get(run["measure"]) for run in runs.to_dict("records")], runs.index, dtype=float),
        changed=[", ".join(spoken(*change) for change in changes.items()) for changes in runs["changes"]],
        hours=runs["cost"].str.get("seconds").astype(float) / 3600,
    )
    varying = [name for name in shown.columns.drop([*FIRST, "id"])
               if len(shown) == 1 or shown[name].astype(str).nunique() > 1]
    shown = shown[[*FIRST, *varying, "id"]].sort_values(["preset", "dataset", "changed", "trains", "seed"])
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
