"""The report: tables, figures, claims, discrepancies, cells, notebooks and documents as one site without a network.

Every result has a page and says what it can be trusted for: its recipe, its seeds, how far it is from print, its level
of evidence. Notebooks are shown without a script: no MathJax, no require.js, no widgets. One page has a script, ours:
it sorts, filters and plots the tables of cells, which are there without it.
"""

import base64
import functools
import hashlib
import json
import math
import re
import shlex
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import jinja2
import pandas as pd
import yaml
from markupsafe import Markup, escape
from pandas import DataFrame, Series
from pygments.formatters import HtmlFormatter

from repro.data.disk import naming
from repro.report.claims import counted
from repro.report.style import only
from repro.report.verdicts import LEVELS, NOT_MEASURED, PAPER, VERDICTS, level_of, rank
from repro.run.device import commit

if TYPE_CHECKING:
    from nbformat import NotebookNode  # whose import takes as long as a report without notebooks

GENERATOR = "repro report"  # by which a folder of ours is known
CELLS = "cells.csv"
DOCUMENTS = ("README.md", "RESULTS.md", "SECURITY.md", "docs/*.md")
UNSEEN = ["study", "digest", "changes", "cost", "commit", "finished", "named"]  # of a cell, on the page of cells
RESULTS = {"ours", "std", "n_seeds", "published", "difference", "preset", "dataset"}  # of every table of results
ENOUGH = 3  # seeds from which a mean and a deviation say something
NUMBER = Markup(' class="number"')
DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
PLANNED = "repro"  # of the metadata of an output of `repro.notebook.begin`
WIDGET = "application/vnd.jupyter.widget-view+json"
SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/plain"]  # the first there is


class Result(NamedTuple):
    """The files of one stem in figures/."""

    stem: str                   # "taxonomy_ucla"
    files: list[str]            # their names, sorted
    caption: str                # of the figure, "" where none is drawn
    provenance: dict[str, Any]  # what the figure was drawn from: cells, seeds, preset, dataset or log
    table: DataFrame | None     # of results; None for a log and without one

    @property
    def title(self) -> str:
        """The stem in words, without the data set of a table, which stands beside it: "taxonomy 3layers"."""
        dataset = "" if self.table is None else re.sub(r"\W+", "_", self.table["dataset"].iloc[0]).strip("_")
        return (self.stem.replace(f"_{dataset}", "", 1) if dataset else self.stem).replace("_", " ")

    @property
    def figure(self) -> str:
        """Name of the file to show, "" where none is drawn."""
        return f"{self.stem}.svg" if f"{self.stem}.svg" in self.files else ""


def build(
    output: Path,
    project: Path,
    notebooks: Path,
    cells: Mapping[str, DataFrame],
    claims: DataFrame,
    discrepancies: DataFrame,
    papers: Mapping[str, Collection[str]],
    named: Collection[str],
    tables: Mapping[str, str],
) -> Path:
    """Write the site and return its first page. A report that is there already is replaced as a whole.

    Args:
        output: the folder to write.
        project: the folder of figures/, with tables, figures and cells, of notebooks/, README.md and docs/, as far as
            they are there.
        notebooks: executed notebooks, shown instead of those of the project; may be missing.
        cells: by study, all finished cells, of `table.by_study`.
        claims: what the papers say, with verdicts, of `claims.judge`.
        discrepancies: where the papers disagree with themselves or their code, of `claims.measured_discrepancies`.
        papers: by title, the names of the tables of each.
        named: columns of tables that say what is trained, "random" where nothing is.
        tables: by experiment, the name of its table.

    Raises:
        ValueError: if `output` holds anything but a report, or a file of figures or a notebook is damaged.
        OSError: as `naming`, for instance if the disk is full; a report that was there stays.
    """
    output = output.resolve()
    first, new = output / "index.html", not output.exists() or (output.is_dir() and not any(output.iterdir()))
    if not new and not (first.is_file() and f'content="{GENERATOR}"' in first.read_text("utf-8", errors="replace")):
        raise ValueError(f"{output} holds other things than a report; name a new or an empty folder with --output")
    figures = project / "figures"
    results = read_results(figures)
    both = [*read_notebooks(project / "notebooks"), *read_notebooks(notebooks)]
    by_name = {notebook["name"]: notebook for notebook in both}
    documents = read_documents(project)
    output.parent.mkdir(parents=True, exist_ok=True)
    with naming(output), tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as temporary:
        site = Path(temporary) / output.name
        files = [figures / name for result in results for name in result.files]
        _copy([*files, figures / CELLS], site / "figures")
        _copy([notebook["path"] for notebook in by_name.values()], site / "notebooks")
        _copy([project / "CITATION.cff"], site)
        light, dark = (HtmlFormatter(style=style).get_style_defs(".highlight") for style in ("default", "github-dark"))
        style = _templates().get_template("style.css").render(light=light, dark=dark)
        (site / "style.css").write_text(style, encoding="utf-8")
        _page(site, "index.html", "index.html", **_overview(results, papers, named, tables), documents=documents,
              notebooks=[by_name[name] for name in sorted(by_name)], notebook_folder=str(notebooks), level=level_of,
              cells=sum(map(len, cells.values())), file=CELLS if (figures / CELLS).exists() else "",
              claims=claims, verdicts=VERDICTS, verdict_counts=counted(claims).to_dict("index") if len(claims) else {},
              discrepancies=discrepancies, reproduction=PAPER, several=ENOUGH,
              measured=sum(text != NOT_MEASURED for text in discrepancies.get("measured", ())))
        for result in results:
            _page(site, f"results/{result.stem}.html", "result.html", result=result, **_details(result))
        for notebook in by_name.values():
            _page(site, f"notebooks/{notebook['name']}.html", "notebook.html", notebook=notebook,
                  colab=_colab(project, notebook["name"]))
        for document in documents:
            _page(site, document["file"], "document.html", document=document)
        script = Markup(_templates().get_template("cells.js").render())
        _page(site, "cells.html", "cells.html", script=script, allowed=_hash(script),
              studies={name: _varying(of_study, named) for name, of_study in cells.items() if len(of_study)})
        for name, rows in (("claims", claims), ("discrepancies", discrepancies)):
            by_paper = {} if rows.empty else {paper: [*of_paper.itertuples()]
                                              for paper, of_paper in rows.groupby("paper", sort=False)}
            _page(site, f"{name}.html", f"{name}.html", by_paper=by_paper, stems={result.stem for result in results})
        if output.exists():
            shutil.rmtree(output)
        site.replace(output)
    return first


def _copy(paths: Iterable[Path], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in paths:
        if path.exists():
            (target / path.name).write_bytes(path.read_bytes())  # an error of `shutil` names the source


def _page(folder: Path, name: str, template: str, **values: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shared = {"root": "../" * name.count("/"), "generator": GENERATOR, "commit": commit(), "levels": LEVELS}
    path.write_text(_templates().get_template(template).render(**shared, **values), encoding="utf-8")


@functools.cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("repro.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["quoted"] = shlex.quote
    environment.filters["breakable"] = lambda name: Markup("_<wbr>").join(map(escape, name.split("_")))
    return environment


def _hash(script: str) -> str:
    """By which a page's policy names the one script that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _varying(cells: DataFrame, named: Collection[str]) -> DataFrame:
    """Cells of a study as texts: what they train, on what, measures, the fields in which they differ, hours and key."""
    hours = cells["cost"].str.get("seconds").astype(float) / 3600
    cells = cells.drop(columns=UNSEEN).assign(hours=hours, key=cells["key"])
    first = [*(name for name in cells if name in named), "dataset", "preset", "seed", "version"]
    last = ["hours", "key"]
    between = [name for name in cells if name not in (*first, *last)]
    varying = [name for name in between if len(cells) == 1 or cells[name].astype(str).nunique() > 1]
    return cells[[*first, *varying, *last]].map(_exact)


def _exact(value: object) -> str:
    """A number with four digits, or all of a whole one; nothing for a missing one."""
    if not isinstance(value, float):
        return "" if value is None else str(value)
    return "" if math.isnan(value) else str(int(value)) if value.is_integer() else f"{value:.4g}"


def _colab(project: Path, name: str) -> str:
    """Where Colab opens a notebook of the project; "" of others and while CITATION.cff names nothing on GitHub."""
    citation, github = project / "CITATION.cff", "https://github.com/"
    if not (citation.exists() and (project / "notebooks" / f"{name}.ipynb").exists()):
        return ""
    stated = yaml.safe_load(citation.read_text(encoding="utf-8"))
    repository = stated.get("repository-code") or ""
    if not repository.startswith(github):
        return ""
    return f"https://colab.research.google.com/github/{repository.removeprefix(github)}/blob/main/notebooks/{name}.ipynb"


def read_documents(project: Path) -> list[dict[str, Any]]:
    """README, results and the pages of docs/, those that are there.

    Returns:
        file: its page's name, beside others as it is in the project; title: its first heading; body: HTML, in which
        links lead to pages and wide tables scroll.
    """
    paths = [path for pattern in DOCUMENTS for path in sorted(project.glob(pattern))]
    return [_document(path, str(path.relative_to(project).with_suffix(".html"))) for path in paths]


def _document(path: Path, file: str) -> dict[str, Any]:
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    text = path.read_text(encoding="utf-8")
    body = MarkdownWithMath(renderer=IPythonRenderer(escape=False, exclude_anchor_links=True)).render(text)
    body = re.sub(r'(href="[^":]+)\.md"', r'\1.html"', body)
    body = body.replace("<table>", '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>')
    title = next(iter(re.findall(r"^# +(.+?) *$", text, re.MULTILINE)), path.stem)
    return {"file": file, "title": title, "body": Markup(body.replace("</table>", "</table></div>"))}


def _overview(
    results: list[Result], papers: Mapping[str, Collection[str]], named: Collection[str],
    of_experiment: Mapping[str, str],
) -> dict[str, Any]:
    """What the first page says of results: by paper the rows of tables, and the tables without any."""
    tables = [result for result in results if result.table is not None]
    rows = [(result, trust) for result in tables for trust in at_a_glance(result.table)]
    rows.sort(key=lambda row: rank(row[1]["level"]))
    known = [table for of_paper in papers.values() for table in of_paper]
    table_of = {result.stem: of_experiment.get(result.stem) or belonging(result.stem, known) for result in tables}
    by_paper = {
        title: {"rows": [row for row in rows if table_of[row[0].stem] in names],
                "missing": [name.replace("_", " ") for name in names if name not in table_of.values()]}
        for title, names in papers.items()
    }
    if others := [row for row in rows if not table_of[row[0].stem]]:
        by_paper["Other tables"] = {"rows": others, "missing": []}
    return {"papers": by_paper, "reproduced": reproduced((result.table for result in tables), named),
            "figures": [result for result in results if result.figure],
            "numbers": [result for result in results if not result.figure and result.table is None]}


def _details(result: Result) -> dict[str, Any]:
    """What a result's own page shows beside its figure."""
    table = result.table
    if table is None:
        return {"trusts": [], "header": []}
    exact = {*table.columns[: table.columns.get_loc("ours")], "published"}
    trusts = at_a_glance(table)
    known = ["dataset", "preset"] if table["preset"].nunique() == 1 else ["dataset"]
    table = table.drop(columns=known).dropna(axis="columns", how="all")
    return {
        "trusts": trusts,
        "header": list(table),
        "align": {name: NUMBER if pd.api.types.is_numeric_dtype(table[name]) else "" for name in table},
        "rows": [{name: _shown(name, value, exact) for name, value in row.items()} for row in table.to_dict("records")],
    }


def _shown(name: str, value: object, exact: Collection[str]) -> str:
    """A cell of a table: accuracies with one decimal, small measures with three digits, columns of `exact` as given."""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return ""
    if name == "difference":
        return f"{value:+.1f}"
    if name in exact:
        return f"{value:g}"
    return f"{value:.1f}" if name == "std" or abs(value) >= 1 else f"{value:#.3g}"


def read_results(folder: Path) -> list[Result]:
    """Everything in the folder of figures but the exported cells, sorted by stem; nothing of one that does not exist.

    Raises:
        ValueError: if a file is damaged, naming it.
    """
    files: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*")):
        if path.suffix in (".csv", ".svg", ".png") and path.name != CELLS:
            files.setdefault(path.stem, []).append(path.name)
    return [_result(folder, stem, names) for stem, names in sorted(files.items())]


def belonging(stem: str, names: Collection[str]) -> str:
    """Which of these names the files of a stem belong to, or "": "taxonomy_variants_ucla" belongs to "taxonomy"."""
    return max((name for name in names if stem.startswith(f"{name}_")), key=len, default="")


def _result(folder: Path, stem: str, files: list[str]) -> Result:
    caption, source, table = "", "", None
    for path in (folder / name for name in files):
        try:
            if path.suffix == ".csv":
                table = pd.read_csv(path, keep_default_na=False, na_values=[""])
            elif path.suffix == ".svg":
                svg = ElementTree.parse(path)
                caption = svg.findtext(f".//{DUBLIN_CORE}description", default="")
                source = svg.findtext(f".//{DUBLIN_CORE}source", default="")
        except (ValueError, ElementTree.ParseError) as error:
            raise ValueError(f"{path} is damaged ({str(error).strip()}); draw it again with `repro figures`") from error
    if table is not None and (table.empty or not {*table.columns} >= RESULTS):
        table = None
    return Result(stem, files, caption, json.loads(source or "{}"), table)


def at_a_glance(table: DataFrame) -> list[dict[str, Any]]:
    """What a table of results can be trusted for, once for each of its presets, the strongest evidence first.

    Args:
        table: one row per entry: columns that name it, then at least those of `RESULTS`; numbers in percent. A column
            `usual`, our number with the recipe unchanged, says that every entry departs from it, a column `departures`
            which do, and how.

    Returns:
        dataset; recipe: its preset, and whether every entry departs from it; level: of evidence, one of
        `LEVELS`; entries, and how many are finished; seeds of these, and their distance from the printed numbers
        that they may be held against, both in words.

    Raises:
        ValueError: if the table holds several data sets, or none.
    """
    dataset, trusts = only(table, "dataset"), []
    for preset, rows in table.groupby("preset"):
        changed, seeds = bool(_changed(rows).all()), rows.loc[rows["ours"].notna(), "n_seeds"].astype(int)
        level = level_of(dataset, preset, changed)
        trusts.append({
            "dataset": dataset, "recipe": f"{preset}, changed as each entry says" if changed else preset,
            "level": level, "entries": len(rows), "finished": len(seeds),
            "seeds": " to ".join(map(str, sorted({seeds.min(), seeds.max()}))) if len(seeds) else "0",
            "distance": _distance(rows, level),
        })
    return sorted(trusts, key=lambda trust: rank(trust["level"]))


def _distance(rows: DataFrame, level: str) -> str:
    """How far entries are from the printed numbers, in words."""
    points = Series(rows["difference"].to_numpy(), entry_names(rows)).dropna()
    if points.empty:
        return "nothing is printed" if level == PAPER else "not comparable"
    farthest = points.abs().argmax()
    name, difference = points.index[farthest], points.iloc[farthest]
    if len(points) == 1:
        return f"{difference:+.1f} points ({name}), the one number printed"
    return f"median {points.abs().median():.1f} points, largest {difference:+.1f} ({name}); {len(points)} compared"


def reproduced(tables: Iterable[DataFrame], named: Collection[str]) -> dict[str, Any]:
    """All trained entries by the paper's recipe on the official data, of all tables; nothing if there are none.

    Args:
        tables: as of `at_a_glance`.
        named: the columns in which "random" says that a network is untrained, which says nothing about a method.

    Returns:
        entries: how many there are; enough: how many of them have `ENOUGH` seeds or more; compared: how many have a
        printed number; median: of the absolute differences from these, in points, NaN if there are none.
    """
    parts = []
    for table in tables:
        untrained = (table[table.columns.intersection(list(named))] == "random").any(axis="columns")
        parts.append(table[table["ours"].notna() & ~untrained & _of_paper(table)])
    seeds = [count for part in parts for count in part["n_seeds"]]
    points = Series([abs(value) for part in parts for value in part["difference"]], dtype=float).dropna()
    return {"entries": len(seeds), "enough": sum(count >= ENOUGH for count in seeds), "compared": len(points),
            "median": float(points.median())} if seeds else {}


def entry_names(table: DataFrame) -> list[str]:
    """The entries of a table in words, from the columns before `ours`: "AD+CD, td_queue=frozen_noise", "layers 2, AE".

    Text speaks for itself, a number needs its name; columns in capitals are terms, which an objective's name says.
    """
    named = table.iloc[:, : table.columns.get_loc("ours")].astype(object)
    rows = named[[name for name in named if not name.isupper()]].to_dict("records")
    return [", ".join(value if isinstance(value, str) else f"{name.replace('_', ' ')} {value:g}"
                      for name, value in row.items() if _given(value)) for row in rows]


def _of_paper(table: DataFrame) -> Series:
    """Which entries are by the paper's recipe on the official data."""
    settings = zip(table["dataset"], table["preset"], _changed(table), strict=True)
    return Series([level_of(*setting) == PAPER for setting in settings], table.index, dtype=bool)


def _changed(table: DataFrame) -> Series:
    """Which entries depart from their recipe: all of a table of departures, else those that say so."""
    if "usual" in table or "departures" not in table:
        return Series("usual" in table, index=table.index)
    return table["departures"].map(_given)


def _given(value: Any) -> bool:
    return pd.notna(value) and value != ""


def read_notebooks(folder: Path) -> list[dict[str, Any]]:
    """The notebooks of a folder, sorted by name; none of a folder that does not exist.

    Returns:
        path: the file; name: its stem; title: its first heading; planned: what it computed, "16 cells of preset quick
        on synthetic", with preset and dataset, "" where it does not say so; ended: "complete", "stopped by an error",
        "stopped midway" or "not executed"; body: its cells as HTML.

    Raises:
        ValueError: if a file is no notebook, naming it.
    """
    return [_executed(path) for path in sorted(folder.glob("*.ipynb"))]


def _executed(path: Path) -> dict[str, Any]:
    import nbformat
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    text = path.read_text(encoding="utf-8")
    try:
        notebook = nbformat.reads(text, as_version=4)
    except Exception as error:  # nbformat raises many kinds for other JSON
        raise ValueError(f"{path} is not a notebook; delete it, or run its notebook again") from error
    headings = _make_static(notebook)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    planned = next((output.metadata[PLANNED] for output in outputs if PLANNED in output.get("metadata", {})), {})
    exporter = HTMLExporter(
        config=Config({"NbConvertBase": {"display_data_priority": SHOWN}}), template_name="basic",
        exclude_anchor_links=True, exclude_input_prompt=True, exclude_output_prompt=True,
    )

    return {
        "path": path, "name": path.stem, "title": next(iter(headings), path.stem), "ended": _ended(notebook),
        "planned": f"{planned['cells']} cells of preset {planned['preset']} on {planned['dataset']}" if planned else "",
        "preset": planned.get("preset", ""), "dataset": planned.get("dataset", ""),
        "body": Markup(exporter.from_notebook_node(notebook)[0]),
    }


def _make_static(notebook: "NotebookNode") -> list[str]:
    """Give pictures the heading they stand under as their text, and leave of widgets their pictures alone.

    Returns:
        The headings.
    """
    headings: list[str] = []
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            headings += re.findall(r"^#+ +(.+?) *$", cell.source, re.MULTILINE)[:1]
        for output in cell.get("outputs", []):
            if WIDGET in output.get("data", {}):
                output.data = {kind: value for kind, value in output.data.items() if kind in SHOWN[:-1]}
            if "data" in output:
                output.metadata.setdefault("alt", f"Picture under the heading: {headings[-1] if headings else ''}")
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.get("data") != {}]
    return headings


def _ended(notebook: "NotebookNode") -> str:
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    if any(output.output_type == "error" for cell in code for output in cell.outputs):
        return "stopped by an error"
    executed = sum(cell.execution_count is not None for cell in code)
    return "not executed" if not executed else "complete" if executed == len(code) else "stopped midway"
