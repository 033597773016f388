"""A paper's sentences and contradictions from their lists, and the predicates that several papers share.

The lists are `claims.csv` and `discrepancies.csv` in a paper's folder, a row each. In their texts {SEEDS} and its like
stand for what several rows say.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping

import pandas as pd
from pandas import DataFrame, Series

from repro.recipe import in_words
from repro.report import verdicts
from repro.report.evidence import Check, Estimates, Evidence, Fields, Measure, Setting, by_seed, level_of_log, measured
from repro.report.logs import labels
from repro.report.printed import PAPERS
from repro.report.verdicts import Claim, Discrepancy, Finding

Sides = Mapping[str, tuple[Fields, Fields]]  # what is compared with what, by name
Exact = tuple[bool | str, str]  # whether it holds, or a verdict; and numbers in words
Judged = tuple[str, str] | None  # verdict and evidence; None where a log says nothing of it

LINEAR = {"": "linear"}
PAIRED = "one-sided t test, 5 %, paired over"
TEXTS = {
    "SEEDS": f"{PAIRED} shared seeds, with the pooled deviation between seeds where fewer than two",
    "SEEDS_LIKE": f"{PAIRED} shared seeds, else with the deviation between seeds of that recipe",
    "SEEDS_SHARED": f"{PAIRED} at least two shared seeds, as a collapsed encoder need not scatter as others do",
    "NEW_RUN": "printed number inside the 95 % prediction interval of one more run of ours (jointly), which reaches at "
    f"most {verdicts.WIDEST:g} points",
}


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
    return [Discrepancy(paper=paper, measure=measures.get(name, joined()), **row) for name, row in rows.items()]


def _rows(folder: str, name: str, constants: Mapping[str, object]) -> Iterator[dict[str, str]]:
    with (PAPERS / folder / f"{name}.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
    for row in table.to_dict("records"):
        yield {column: text.format_map({**TEXTS, **constants}) for column, text in row.items()}


def exactly(level: str, test: Callable[..., Exact], *arguments: object, **named: object) -> Check:
    """A check of printed numbers or a closed form, which have no error: `test` gives the verdict and numbers."""

    def check(evidence: Evidence) -> Finding:
        verdict, numbers = test(*arguments, **named)
        return Finding({True: verdicts.HOLDS, False: verdicts.FAILS}.get(verdict, verdict), level, numbers)

    return check


of_print = functools.partial(exactly, verdicts.PRINTED)
closed_form = functools.partial(exactly, verdicts.CLOSED)


def unprinted(what: str) -> Check:
    """A check of a sentence on what the text we had does not print."""
    return lambda evidence: Finding(verdicts.CANNOT, "", f"{what} (not in the text we had)")


def differences(
    table: str, sides: Sides, *, measures: Mapping[str, str] = LINEAR, targets: bool = False, **options: object
) -> Callable[[Setting], Estimates]:
    """Compares the first cells of each pair with the second ones.

    Args:
        table: where they stand.
        sides: pairs by name.
        measures: what is compared, by what is added to the name.
        targets: compare the accuracies on every target of fine-tuning instead, where there are any.
        **options: of `Setting.difference`.
    """

    def compare(setting: Setting) -> Estimates:
        compared = {f", {target}": target for target in setting.targets(table)} if targets else {}
        return {f"{name}{called}": setting.difference(table, first, second, measure, **options)
                for name, (first, second) in sides.items() for called, measure in (compared or measures).items()}

    return compare


def above(table: str, sides: Sides, *, datasets: tuple[str, ...] = (), **options: object) -> Check:
    """A check of finished cells: whether the first cells of each pair exceed the second; options of `differences`."""
    return measured((table,), differences(table, sides, **options), verdicts.above, datasets=datasets)


def of_log(name: str, judge: Callable[[DataFrame], Judged]) -> Check:
    """A check of a figure's logs, those that carry furthest first: the first that `judge` has a verdict on counts."""

    def check(evidence: Evidence) -> Finding:
        for log in evidence.logs(name):
            if judged := judge(log):
                verdict, numbers = judged
                origin = f"{log['dataset'].iloc[0]}, {log['preset'].iloc[0]} recipe"
                return Finding(verdict, level_of_log(log), f"{origin}: {numbers}")
        return Finding(verdicts.NOT_RUN, "", f"no log of {name}")

    return check


def departing(*tables: str, **changes: object) -> Measure:
    """What a departure from the recipe changes, over the seeds that both sides have; empty where it was not run.

    Args:
        tables: where such cells are looked for.
        changes: fields of the recipe.
    """

    def changed(setting: Setting, table: str) -> str:
        away, usual, parts = setting.rows(table, changes), setting.rows(table), []
        if away.empty or usual.empty:
            return ""
        left = [{name: value for name, value in cell.items() if name not in changes} for cell in away["changes"]]
        for name, cells in away.groupby(labels(away.assign(changes=left))):
            for measure in usual.columns.intersection(setting.targets(table) or ["linear"]):
                sides = (by_seed(side["seed"], side[measure]) for side in (cells, usual[usual["label"] == name]))
                if means := paired_means(*sides):
                    parts.append(f"{name}{'' if measure == 'linear' else f', {measure},'} {means}")
        return f"{setting}, {in_words(changes)}: {', '.join(parts)}" if parts else ""

    return lambda evidence: "; ".join(filter(None, itertools.starmap(
        changed, itertools.product(evidence.settings(*tables), tables))))


def paired_means(changed: Series, usual: Series) -> str:
    """Both means over the seeds they share: "79.8 instead of 81.3 (1 seed)"; empty if they share none."""
    shared = changed.index.intersection(usual.index)
    seeds = "1 seed" if len(shared) == 1 else f"{len(shared)} seeds"
    return f"{changed[shared].mean():.1f} instead of {usual[shared].mean():.1f} ({seeds})" if len(shared) else ""


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
