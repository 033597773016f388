"""What our cells say about a disagreement between paper and code: results with the one reading and with the other."""

import itertools
from collections.abc import Callable, Mapping

from pandas import Series

from repro.report.evidence import Evidence, Setting, by_seed
from repro.report.stored import labels

Measure = Callable[[Evidence], str]


def departing(*tables: str, **changes: object) -> Measure:
    """What a departure from the recipe changes, over the seeds that both sides have; empty where it was not run.

    Args:
        tables: where such cells are looked for.
        changes: fields of the recipe.
    """

    def measure(evidence: Evidence) -> str:
        told = [_changed(setting, table, changes) for setting in evidence.settings(*tables) for table in tables]
        return "; ".join(filter(None, told))

    return measure


def _changed(setting: Setting, table: str, changes: Mapping[str, object]) -> str:
    """Accuracies with the departure and without, in one setting, for every row of a table."""
    away, usual, said = setting.rows(table, changes), setting.rows(table), []
    if away.empty or usual.empty:
        return ""
    recipes = [{name: value for name, value in each.items() if name not in changes} for each in away["changes"]]
    away = away.assign(changes=recipes)
    for (name, cells), measure in itertools.product(away.groupby(labels(away)), setting.targets(table) or ["linear"]):
        pair = paired_means(by_seed(cells, measure), by_seed(usual[labels(usual) == name], measure))
        said += [f"{name}{'' if measure == 'linear' else f', {measure},'} {pair}"] if pair else []
    return f"{setting}: {', '.join(said)}" if said else ""


def paired_means(changed: Series, usual: Series) -> str:
    """Both means over the seeds they share: "79.8 instead of 81.3 (1 seed)"; empty if they share none."""
    shared = changed.index.intersection(usual.index)
    seeds = "1 seed" if len(shared) == 1 else f"{len(shared)} seeds"
    return f"{changed[shared].mean():.1f} instead of {usual[shared].mean():.1f} ({seeds})" if len(shared) else ""


def not_measured(evidence: Evidence) -> str:
    """Of what we neither ran nor can compute."""
    return ""
