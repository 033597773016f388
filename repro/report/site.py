"""The report: tables, figures, claims, discrepancies and executed notebooks as one static site without a network."""

import functools
import math
import secrets
import shlex
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pandas as pd
from markupsafe import Markup, escape
from pandas import DataFrame
from pygments.formatters import HtmlFormatter

from repro.recipe import choose
from repro.report import drawn, executed, trust
from repro.report.drawn import CELLS, Drawn, belonging
from repro.report.levels import LEVELS, PAPER, level_of, rank
from repro.report.redraw import Drawing
from repro.report.trust import Trust
from repro.report.verdicts import NOT_MEASURED, VERDICTS
from repro.run.device import commit

GENERATOR = "repro report"  # by which a folder of ours is known
NUMBER = Markup(' class="number"')
COLUMNS = {
    "ours": "mean over seeds, in percent: accuracy of the linear probe (or after fine-tuning, where the table is "
    "about that) at the last epoch, exact over the test samples",
    "std": "sample standard deviation over seeds",
    "n_seeds": "how many seeds",
    "usual": "ours with the recipe unchanged, the same seeds",
    "published": "the printed number; none belongs to embedded data",
    "difference": "ours minus the printed number, where the recipe and the data are those of the paper",
    "linear_unseen": "the probe without the test recordings that repeat a training recording",
    "linear_standardised": "the probe on readouts whose coordinates all have mean 0 and deviation 1 in training",
    "knn1": "accuracy of the nearest neighbour by cosine",
    "embedding_spread": "1 if the embedding has no preferred direction, 0 if it has collapsed to a point",
    "readout_spread": "the same of the readouts that the probe sees; near 0 they hardly differ",
    "decoded_scale": "size of decoded sequences relative to the data",
}


class Paper(NamedTuple):
    """What there is of a paper: its tables with their trust, and the names of those without a result."""

    name: str
    rows: list[tuple[Drawn, Trust]]
    missing: list[str]


def build(
    output: Path,
    figures: Path,
    notebooks: Path,
    claims: DataFrame,
    discrepancies: DataFrame,
    papers: Mapping[str, Collection[str]],
    drawings: Mapping[str, Drawing],
    named: Collection[str],
) -> Path:
    """Write the site and return its first page. A report that is there already is replaced as a whole.

    Args:
        output: the folder to write.
        figures: `figures/`, with tables, figures and cells.
        notebooks: executed notebooks; may be missing.
        claims: what the papers say, with verdicts, of `claims.judge`.
        discrepancies: where the papers disagree with themselves or their code, of `claims.measured_discrepancies`.
        papers: by title, the names of the tables of each.
        drawings: of tables and logs, by name.
        named: columns of tables that say what is trained, "random" where nothing is.

    Raises:
        ValueError: if `output` holds anything but a report, or a claim has a verdict that does not exist.
    """
    output = output.resolve()
    _check_replaceable(output)
    temporary = output.with_name(f".{output.name}.{secrets.token_hex(8)}")
    try:
        found = drawn.read(figures, drawings)
        checked = [*claims.itertuples()], [*discrepancies.itertuples()]
        _write(temporary, figures, notebooks, found, *checked, papers, named)
        if output.exists():
            shutil.rmtree(output)
        temporary.replace(output)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return output / "index.html"


def _write(
    folder: Path,
    figures: Path,
    notebooks: Path,
    found: list[Drawn],
    claims: list[Any],
    discrepancies: list[Any],
    papers: Mapping[str, Collection[str]],
    named: Collection[str],
) -> None:
    """The pages, and what they link to; claims and discrepancies as rows of their tables."""
    ran = executed.read(notebooks, {name for each in found for name in each.files})
    _copy(figures, [*(name for each in found for name in each.files), CELLS], folder / "figures")
    _copy(notebooks, [f"{each.name}.ipynb" for each in ran], folder / "notebooks")
    styles = (_templates().get_template("style.css").render(), HtmlFormatter().get_style_defs(".highlight"))
    (folder / "style.css").write_text("\n".join(styles), encoding="utf-8")
    _page(folder, "index.html", "index.html", **_overview(found, claims, papers, named), notebooks=ran,
          notebook_folder=str(notebooks), cells=CELLS if (figures / CELLS).exists() else "", claims=claims,
          discrepancies=discrepancies, measured=sum(each.measured != NOT_MEASURED for each in discrepancies),
          level=level_of, reproduction=PAPER)
    for each in found:
        _page(folder, f"results/{each.stem}.html", "result.html", drawn=each, **_details(each))
    for each in ran:
        _page(folder, f"notebooks/{each.name}.html", "notebook.html", notebook=each, body=Markup(each.body))
    _page(folder, "claims.html", "claims.html", by_paper=_by_paper(claims))
    _page(folder, "discrepancies.html", "discrepancies.html", by_paper=_by_paper(discrepancies))


def _page(folder: Path, name: str, template: str, **values) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shared = {"root": "../" * name.count("/"), "generator": GENERATOR, "commit": commit(), "levels": LEVELS}
    text = _templates().get_template(template).render(**shared, **values)
    path.write_text(text, encoding="utf-8")


@functools.cache
def _templates() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("repro.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found.filters["quoted"] = shlex.quote
    found.filters["breakable"] = lambda name: Markup("_<wbr>").join(map(escape, name.split("_")))
    return found


def _check_replaceable(output: Path) -> None:
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    index = output / "index.html"
    if not index.is_file() or f'content="{GENERATOR}"' not in index.read_text(encoding="utf-8", errors="replace"):
        raise ValueError(f"{output} holds other things than a report; name a new or an empty folder with --output")


def _copy(source: Path, names: Sequence[str], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)


def _overview(
    found: Sequence[Drawn], claims: list[Any], papers: Mapping[str, Collection[str]], named: Collection[str]
) -> dict:
    """What the first page says of results and claims."""
    results = [each for each in found if each.table is not None]
    rows = [(each, glance) for each in results for glance in trust.at_a_glance(each.table)]
    strongest_first = sorted(rows, key=lambda row: rank(row[1].level))
    return {
        "papers": _papers(strongest_first, papers),
        "reproduced": trust.reproduced((each.table for each in results), named),
        "enough": trust.ENOUGH,
        "figures": [each for each in found if each.figure],
        "verdicts": VERDICTS,
        "verdict_counts": {
            paper: Counter(choose(f"verdict of claim {claim.id}", claim.verdict, VERDICTS) for claim in rows)
            for paper, rows in _by_paper(claims).items()
        },
    }


def _papers(rows: Sequence[tuple[Drawn, Trust]], papers: Mapping[str, Collection[str]]) -> list[Paper]:
    """The rows by paper; those of a table that no paper has come last."""
    known = [table for tables in papers.values() for table in tables]
    of_table = [(row, belonging(row[0].stem, known)) for row in rows]
    found = []
    for title, tables in papers.items():
        present = {table for _, table in of_table}
        missing = [table.replace("_", " ") for table in tables if table not in present]
        found.append(Paper(title, [row for row, table in of_table if table in tables], missing))
    others = [row for row, table in of_table if not table]
    return found + ([Paper("Other tables", others, [])] if others else [])


def _by_paper(found: list[Any]) -> dict[str, list[Any]]:
    papers = dict.fromkeys(each.paper for each in found)
    return {paper: [each for each in found if each.paper == paper] for paper in papers}


def _details(each: Drawn) -> dict:
    """What a result's own page shows beside its figure."""
    if each.table is None:
        return {"trusts": [], "header": []}
    table = each.table.assign(difference=trust.distances(each.table)).dropna(axis="columns", how="all")
    known = {"dataset"} | ({"preset"} if table["preset"].nunique() == 1 else set())
    table = table[[name for name in table if name not in known]]
    exact = {*each.table.columns[: each.table.columns.get_loc("ours")], "published"}
    return {
        "trusts": trust.at_a_glance(each.table),
        "header": list(table),
        "align": {name: NUMBER if pd.api.types.is_numeric_dtype(table[name]) else "" for name in table},
        "rows": [{name: _shown(name, value, exact) for name, value in row.items()} for row in table.to_dict("records")],
        "columns": COLUMNS,
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
