"""What our cells say about a disagreement between paper and code: results with the one reading and with the other."""

import itertools
from collections.abc import Callable

from pandas import Series

from repro.report.evidence import Evidence, Setting
from repro.tables import TABLES

Measure = Callable[[Evidence], str]


def departing(*tables: str, **changes: object) -> Measure:
    """What a departure from the recipe changes, over the seeds that both sides have; empty where it was not run.

    Args:
        tables: where such cells are looked for.
        changes: fields of the recipe as entries name them, in the recipe's order.
    """
    departure = ", ".join(f"{name}={value}" for name, value in changes.items())

    def measure(evidence: Evidence) -> str:
        told = [_changed(setting, table, departure) for setting in evidence.settings(*tables) for table in tables]
        return "; ".join(filter(None, told))

    return measure


def _changed(setting: Setting, table: str, departure: str) -> str:
    """Accuracies with the departure and without, in one setting, for every method at every point of a table's grid."""
    away, told = setting.rows(table, departure), []
    varied = [name for name in TABLES[table].varied if name != "targets"]  # these are measures of one cell
    fields = [TABLES[table].fields[0], *varied]
    points = [] if away.empty else away[fields].drop_duplicates().to_dict("records")
    for point, measure in itertools.product(points, setting.targets(table) or ["linear"]):
        pair = paired_means(setting.values(table, measure, departure, **point), setting.values(table, measure, **point))
        name, *values = point.values()
        name += "".join(f", {field}={value}" for field, value in zip(varied, values, strict=True))
        told += [f"{name}{'' if measure == 'linear' else f', {measure},'} {pair}"] if pair else []
    return f"{setting.dataset}, {setting.preset} recipe: {', '.join(told)}" if told else ""


def paired_means(changed: Series, usual: Series) -> str:
    """Both means over the seeds they share: "79.8 instead of 81.3 (1 seed)"; empty if they share none."""
    shared = changed.index.intersection(usual.index)
    seeds = "1 seed" if len(shared) == 1 else f"{len(shared)} seeds"
    return f"{changed[shared].mean():.1f} instead of {usual[shared].mean():.1f} ({seeds})" if len(shared) else ""


def not_measured(evidence: Evidence) -> str:
    """Of what we neither ran nor can compute."""
    return ""
