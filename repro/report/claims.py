"""The judged sentences of the papers and what we measured where they contradict themselves: rows, texts, a figure."""

import html
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pandas import DataFrame
from pandas.io.formats.style import Styler

from repro.data import manifest
from repro.recipe import choose
from repro.report.evidence import Evidence
from repro.report.verdicts import (
    CANNOT,
    FAILS,
    HOLDS,
    LEVELS,
    NOT_MEASURED,
    NOT_RUN,
    UNDECIDED,
    VERDICTS,
    Claim,
    Discrepancy,
)
from repro.run import device as devices

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SENTENCES = ["claim", "predicate", "the paper", "but"]  # columns of a notebook's tables that need some width


@devices.threads(1)  # what claims compute is small: two threads would wait for each other five times as long
def judge(claims: Sequence[Claim], evidence: Evidence) -> DataFrame:
    """One row per claim.

    Returns:
        id, paper, place, claim (in our words), predicate, verdict, level, evidence, identity (whether by algebra
        alone), figures (names of files in figures/).
    """
    return DataFrame([
        {"id": claim.id, "paper": claim.paper, "place": claim.place, "claim": claim.says, "predicate": claim.predicate,
         **claim.check(evidence)._asdict(), "identity": claim.identity, "figures": evidence.figures(claim.figures)}
        for claim in claims
    ])


def chosen(table: DataFrame, *, paper: str = "all", verdict: str = "all", level: str = "all") -> DataFrame:
    """Claims of one paper, verdict and level of evidence.

    Args:
        table: of `judge`.
        paper: "all", or as the table calls it, such as "CM-ACC".
        verdict: "all" or one of `verdicts.VERDICTS`.
        level: "all" or one of `verdicts.LEVELS`.

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
        {"id": row.id, "paper": row.paper, "place": row.place, "paper_says": row.paper_says,
         "others_say": row.others_say, "here": row.here, "measured": row.measure(evidence) or NOT_MEASURED}
        for row in discrepancies
    ])


def counted(table: DataFrame) -> DataFrame:
    """How many claims of every paper have which verdict; papers downwards, verdicts across."""
    counts = pd.crosstab(table["paper"], table["verdict"])
    counts = counts.reindex(index=table["paper"].unique(), columns=VERDICTS, fill_value=0)
    return counts.rename_axis(index=None, columns=None)


def verdicts(counts: DataFrame) -> "Figure":
    """A bar for every paper, its verdicts one behind the other with their numbers.

    Args:
        counts: of `counted`.
    """
    from repro.report import style  # with matplotlib, which `repro claims` does without

    colours = {HOLDS: style.GREEN, FAILS: style.VERMILLION, UNDECIDED: style.BLUE, NOT_RUN: style.PALE,
               CANNOT: style.GREY}
    with style.styled():
        figure, (axes,) = style.panels("", 0.8 + 0.3 * len(counts))
        counts.plot.barh(stacked=True, ax=axes, color=colours, width=0.7, legend=False, xlabel="claims")
        for bars in axes.containers:
            numbers = [f"{count:.0f}" if count else "" for count in bars.datavalues]
            ink = style.INK if bars.get_label() == NOT_RUN else "white"
            axes.bar_label(bars, numbers, label_type="center", color=ink)
        axes.set(ylim=(len(counts) - 0.5, -0.5))
        axes.tick_params(axis="y", length=0)
        style.legend_below(figure, axes.get_legend_handles_labels()[0], 3)
        return style.settled(figure)


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
    return _in_columns(table[columns], {"figures": _links})


def shown_discrepancies(table: DataFrame) -> Styler:
    """The discrepancies for a notebook, under headings that one reads from left to right."""
    return _in_columns(table.rename(columns={"paper_says": "the paper", "others_say": "but"}), {})


def _in_columns(table: DataFrame, formats: Mapping[str, Callable[[Any], str]]) -> Styler:
    """A table of texts, which are no HTML but for what `formats` makes."""
    style = table.style.hide(axis="index").format({**dict.fromkeys(table.columns, html.escape), **formats})
    style = style.set_properties(**{"text-align": "left", "vertical-align": "top"})
    style = style.set_properties(subset=["id"], **{"white-space": "nowrap"})
    style = style.set_properties(subset=table.columns.intersection(SENTENCES), **{"min-width": "12em"})
    return style.set_table_styles([{"selector": "th", "props": "text-align: left"}])


def _links(files: list[str]) -> str:
    """Files of figures, breakable; anchors without an address are plain text, and the report gives them its own.

    A Jupyter server tells its kernels where their notebook is; nobody else does.
    """
    notebook = Path(os.environ.get("JPY_SESSION_NAME", ""))
    folder = manifest.project_root() / "figures"
    way = f"{Path(os.path.relpath(folder, notebook.parent)).as_posix()}/" if notebook.is_absolute() else ""
    addresses = [f' href="{way}{file}"' if way else "" for file in files]
    return ", ".join(f'<a data-figure="{file}"{address}>{file.replace("_", "_<wbr>")}</a>'
                     for file, address in zip(files, addresses, strict=True))
