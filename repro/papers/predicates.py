"""A paper's sentences and contradictions from their lists, and the predicates that several papers share.

The lists are `claims.csv` and `discrepancies.csv` in a paper's folder, a row each. In their texts {SEEDS} and its like
stand for what several rows say.
"""

import functools
from collections.abc import Callable, Iterator, Mapping

import pandas as pd
from pandas import DataFrame

from repro.report.evidence import Check, Estimates, Evidence, Measure, Setting, not_measured, paired_means
from repro.report.evidence import of_log as finding_of_log
from repro.report.printed import PAPERS
from repro.report.verdicts import (
    NOT_RUN,
    SEEDS,
    SEEDS_LIKE,
    SEEDS_SHARED,
    WIDEST,
    Claim,
    Discrepancy,
    Finding,
    reproduced,
)

Fields = Mapping[str, object]  # of recipes
Sides = Mapping[str, tuple[Fields, Fields]]  # what is compared with what, by name
Judged = tuple[str, str] | None  # verdict and evidence; None where a log says nothing of it

TEXTS = {
    "SEEDS": SEEDS,
    "SEEDS_LIKE": SEEDS_LIKE,
    "SEEDS_SHARED": SEEDS_SHARED,
    "NEW_RUN": "printed number inside the 95 % prediction interval of one more run of ours (jointly), which reaches at "
    f"most {WIDEST:g} points",
}
one_more_run = functools.partial(reproduced, widest=WIDEST)


def claims(folder: str, paper: str, checks: Mapping[str, Check], **constants: object) -> list[Claim]:
    """The rows of a paper's `claims.csv`: id, place, says, predicate, figures (between spaces), identity ("yes").

    Args:
        folder: of the paper below repro/papers.
        paper: as tables of claims call it.
        checks: what judges each, by id.
        **constants: what texts name in braces, besides `TEXTS`.

    Raises:
        ValueError: if a row has no check, or a check no row.
    """
    rows = {row.pop("id"): row for row in _rows(folder, "claims", constants)}
    if lonely := rows.keys() ^ checks.keys():
        raise ValueError(f"{folder}/claims.csv and its checks differ in {', '.join(sorted(lonely))}; give each row one "
                         "check")
    return [Claim(id=name, paper=paper, check=checks[name], figures=tuple(row.pop("figures").split()),
                  identity=row.pop("identity") == "yes", **row) for name, row in rows.items()]


def discrepancies(folder: str, paper: str, measures: Mapping[str, Measure], **constants: object) -> list[Discrepancy]:
    """The rows of a paper's `discrepancies.csv`: id, place, paper_says, others_say, here; arguments as for `claims`.

    Raises:
        ValueError: if a measure has no row; rows without one are matters of words.
    """
    rows = {row["id"]: row for row in _rows(folder, "discrepancies", constants)}
    if lonely := measures.keys() - rows.keys():
        raise ValueError(f"{folder}/discrepancies.csv has no row {', '.join(sorted(lonely))}; add it")
    return [Discrepancy(paper=paper, measure=measures.get(name, not_measured), **row) for name, row in rows.items()]


def _rows(folder: str, name: str, constants: Mapping[str, object]) -> Iterator[dict[str, str]]:
    with (PAPERS / folder / f"{name}.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
    for row in table.to_dict("records"):
        yield {column: text.format_map({**TEXTS, **constants}) for column, text in row.items()}


def differences(
    table: str, sides: Sides, *, measure: str = "linear", targets: bool = False, like: tuple[str, ...] = (),
    shared: bool = False,
) -> Callable[[Setting], Estimates]:
    """Compares the first cells of each pair with the second ones.

    Args:
        table: where they stand.
        sides: pairs by name.
        measure: what is compared.
        targets: compare the accuracies on every target of fine-tuning instead.
        like: other tables, whose seeds tell how far those of this one scatter.
        shared: only seeds that both sides have count, see `Setting.paired`.
    """

    def compare(setting: Setting) -> Estimates:
        measures = {f", {target}": target for target in setting.targets(table)} if targets else {"": measure}
        compared = setting.paired if shared else functools.partial(setting.difference, like=like)
        return {f"{name}{called}": compared(table, first, second, what)
                for name, (first, second) in sides.items() for called, what in measures.items()}

    return compare


def in_words(estimates: Estimates) -> str:
    return "; ".join(f"{name} {estimate}" for name, estimate in estimates.items() if estimate is not None)


def of_log(name: str, judge: Callable[[DataFrame], Judged]) -> Check:
    """A check of the log of a figure, of those that carry furthest the first one that says something of it."""

    def check(evidence: Evidence) -> Finding:
        for log in evidence.logs(name):
            if judged := judge(log):
                return finding_of_log(log, *judged)
        return Finding(NOT_RUN, "", f"no log of {name}")

    return check


def beside(table: str, first: Fields, second: Fields) -> Measure:
    """Both accuracies over shared seeds in every setting: with one recipe, and with the other."""

    def measure(evidence: Evidence) -> str:
        pairs = {
            f"{setting}:{'' if target == 'linear' else f' {target}'}":
            paired_means(*(setting.values(table, target, **side) for side in (first, second)))
            for setting in evidence.settings(table) for target in setting.targets(table) or ["linear"]
        }
        return "; ".join(f"{where} {pair}" for where, pair in pairs.items() if pair)

    return measure


def joined(*measures: Measure) -> Measure:
    """What several measures say."""
    return lambda evidence: "; ".join(filter(None, (measure(evidence) for measure in measures)))


def said_by(check: Callable[..., Finding], before: str = "") -> Measure:
    """The evidence of a claim's check, of which there is some."""

    def measure(evidence: Evidence) -> str:
        finding = check(evidence)
        return f"{before}{finding.evidence}" if finding.level else ""

    return measure
