"""The judged sentences of the papers and what we measured where they contradict themselves: as rows and as text."""

import textwrap
from collections.abc import Sequence

import pandas as pd
from pandas import DataFrame
from pandas.io.formats.style import Styler

from repro.recipe import choose
from repro.report.evidence import Evidence
from repro.report.verdicts import LEVELS, NOT_MEASURED, VERDICTS, Claim, Discrepancy
from repro.run import device as devices

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


def chosen(table: DataFrame, *, verdict: str = "all", level: str = "all") -> DataFrame:
    """Claims of one verdict and level of evidence.

    Args:
        table: of `judge`.
        verdict: "all" or one of `verdicts.VERDICTS`.
        level: "all" or one of `verdicts.LEVELS`.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
    """
    for column, value, allowed in (("verdict", verdict, VERDICTS), ("level", level, LEVELS)):
        if choose(column, value, ("all", *allowed)) != "all":
            table = table[table[column] == value]
    return table.reset_index(drop=True)


@devices.threads(1)
def measured_discrepancies(discrepancies: Sequence[Discrepancy], evidence: Evidence) -> DataFrame:
    """One row per discrepancy: id, paper, place, paper_says, others_say, here (what we take), measured."""
    return DataFrame([
        vars(row) | {"measured": row.measure(evidence) or NOT_MEASURED} for row in discrepancies
    ]).drop(columns="measure", errors="ignore")


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
    """The claims for a notebook."""
    columns = ["id", "paper", "place", "claim", "predicate", "verdict", "level", "evidence", "figures"]
    return _in_columns(table[columns].assign(figures=table["figures"].map(", ".join)))


def shown_discrepancies(table: DataFrame) -> Styler:
    """The discrepancies for a notebook, under headings that one reads from left to right."""
    return _in_columns(table.rename(columns={"paper_says": "the paper", "others_say": "but"}))


def _in_columns(table: DataFrame) -> Styler:
    """A table of texts, which are no HTML."""
    style = table.style.hide(axis="index").format(escape="html")
    style = style.set_properties(**{"text-align": "left", "vertical-align": "top"})
    style = style.set_properties(subset=["id"], **{"white-space": "nowrap"})
    style = style.set_properties(subset=table.columns.intersection(SENTENCES), **{"min-width": "12em"})
    return style.set_table_styles([{"selector": "th", "props": "text-align: left"}])

