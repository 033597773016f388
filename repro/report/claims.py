"""Checkable sentences of papers with their verdicts, and what we measured where papers contradict themselves."""

import html
import os
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame
from pandas.io.formats.style import Styler

from repro.data import manifest
from repro.recipe import choose
from repro.report.evidence import Evidence
from repro.report.levels import LEVELS
from repro.report.verdicts import NOT_MEASURED, VERDICTS, Claim, Discrepancy
from repro.run import device as devices

SENTENCES = ["claim", "predicate", "the paper", "but"]  # columns of a notebook's tables that need some width


@devices.threads(1)  # what claims compute is small: two threads would wait for each other five times as long
def judge(claims: Sequence[Claim], evidence: Evidence) -> DataFrame:
    """One row per claim.

    Returns:
        id, paper, place, claim (in our words), predicate, verdict, level, evidence, identity (whether by algebra
        alone), figures (names of files in figures/).
    """
    rows = []
    for claim in claims:
        found = claim.check(evidence)
        row = {"id": claim.id, "paper": claim.paper, "place": claim.place, "claim": claim.says}
        row |= {"predicate": claim.predicate, **found._asdict(), "identity": claim.identity}
        rows.append(row | {"figures": evidence.figures(claim.figures)})
    return DataFrame(rows)


def chosen(table: DataFrame, *, paper: str = "all", verdict: str = "all", level: str = "all") -> DataFrame:
    """Claims of one paper, verdict and level of evidence.

    Args:
        table: of `judge`.
        paper: "all", or as the table calls it, such as "CM-ACC".
        verdict: "all" or one of `verdicts.VERDICTS`.
        level: "all" or one of `levels.LEVELS`.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
    """
    allowed = {"paper": table["paper"].unique(), "verdict": VERDICTS, "level": LEVELS}
    for column, value in {"paper": paper, "verdict": verdict, "level": level}.items():
        if choose(column, value, ("all", *allowed[column])) != "all":
            table = table[table[column] == value]
    return table.reset_index(drop=True)


@devices.threads(1)
def measured_discrepancies(discrepancies: Sequence[Discrepancy], evidence: Evidence) -> DataFrame:
    """One row per discrepancy: id, paper, place, paper_says, others_say, here (what we take), measured."""
    return DataFrame([
        {"id": each.id, "paper": each.paper, "place": each.place, "paper_says": each.paper_says,
         "others_say": each.others_say, "here": each.here, "measured": each.measure(evidence) or NOT_MEASURED}
        for each in discrepancies
    ])


def counted(table: DataFrame) -> DataFrame:
    """How many claims of every paper have which verdict; papers downwards, verdicts across."""
    counts = pd.crosstab(table["paper"], table["verdict"])
    counts = counts.reindex(index=table["paper"].unique(), columns=VERDICTS, fill_value=0)
    return counts.rename_axis(index=None, columns=None)


def lines(claims: DataFrame, discrepancies: DataFrame, width: int | None = None) -> list[str]:
    """Both lists as text, one line each; broken at `width` and indented, where there is one."""
    texts = [
        f"{row.id:<5} {row.verdict:<17} {row.level:<23} {row.paper}, {row.place}: {row.claim} [{row.predicate}] "
        f"{row.evidence}" for row in claims.itertuples()
    ]
    texts += [
        f"{row.id:<5} {'discrepancy':<17} {'':<23} {row.paper}, {row.place}: {row.paper_says}; but: {row.others_say} "
        f"[here: {row.here}] {row.measured}" for row in discrepancies.itertuples()
    ]
    if width is None:
        return texts
    return [line for text in texts for line in textwrap.wrap(text, width, subsequent_indent=" " * 6)]


def shown(table: DataFrame) -> Styler:
    """The claims for a notebook, with links to the figures where it is known in which folder the notebook is."""
    columns = ["id", "paper", "place", "claim", "predicate", "verdict", "level", "evidence", "figures"]
    return _read(table[columns], {"figures": _links})


def shown_discrepancies(table: DataFrame) -> Styler:
    """The discrepancies for a notebook, under headings that one reads from left to right."""
    return _read(table.rename(columns={"paper_says": "the paper", "others_say": "but"}), {})


def _read(table: DataFrame, formats: dict[str, Callable[[Any], str]]) -> Styler:
    """A table of texts, which are no HTML but for what `formats` makes."""
    style = table.style.hide(axis="index").format(dict.fromkeys(table.columns, html.escape) | formats)
    style = style.set_properties(**{"text-align": "left", "vertical-align": "top"})
    style = style.set_properties(subset=["id"], **{"white-space": "nowrap"})
    style = style.set_properties(subset=table.columns.intersection(SENTENCES), **{"min-width": "12em"})
    return style.set_table_styles([{"selector": "th", "props": "text-align: left"}])


def _links(files: list[str]) -> str:
    """Files of figures, breakable; anchors without an address are plain text, and the report gives them its own."""
    folder = _figures_from_the_notebook()
    addresses = [f' href="{folder}/{file}"' if folder else "" for file in files]
    names = [file.replace("_", "_<wbr>") for file in files]
    parts = zip(files, addresses, names, strict=True)
    return ", ".join(f'<a data-figure="{file}"{address}>{name}</a>' for file, address, name in parts)


def _figures_from_the_notebook() -> str:
    """The way from a notebook to figures/. A Jupyter server tells its kernels where their notebook is; else nothing."""
    notebook = Path(os.environ.get("JPY_SESSION_NAME", ""))
    figures = manifest.project_root() / "figures"
    return Path(os.path.relpath(figures, notebook.parent)).as_posix() if notebook.is_absolute() else ""
