"""The third cell of every notebook: stop at a misspelt or impossible parameter before anything is computed."""

import html
import inspect
from collections.abc import Callable, Sequence
from statistics import harmonic_mean
from typing import Any

from IPython.display import Markdown
from pandas import DataFrame
from pandas.io.formats.style import Styler

from repro.data import manifest
from repro.experiments import check_parameters, find_table, runs_of
from repro.recipe import choose
from repro.report.statistics import holm
from repro.report.text import in_text, markdown, remarks
from repro.run import device as devices
from repro.run.store import Store, everything

PLAIN = (str, int, float, bool, list, tuple, dict, set, type(None))


def begin(namespace: dict[str, Any], table: str) -> dict[str, Any]:
    """The notebook's parameters, checked; prints the environment and what there is to do.

    papermill only warns about a name that the notebook does not have; here it may be any field of the table's recipe,
    and all else is an error.

    Args:
        namespace: the notebook's `globals()`; names are checked the first time in a kernel.
        table: its name.

    Returns:
        Arguments of `repro.run_table` and `Table.runs`, without `train`.

    Raises:
        TypeError: if the namespace holds a plain value that is no parameter; the message names those there are.
        ValueError: if a parameter has a value that does not exist; the message names those that do.
        FileNotFoundError: if the data set is not there, saying where to get it and where to put it; with
            train="never" only where no results on it come along.
        OSError: if REPRO_RUNS cannot be written.
    """
    store = Store()
    settings = _checked(namespace, [*find_table(table).parameters, "train"])
    train = choose("train", settings.pop("train", "missing"), ("missing", "never"))
    store.require_usable()
    planned = runs_of(table, train=train, **settings)
    if train == "never":
        finished = everything()["id"].isin([run.id for run in planned]).sum()
    else:
        finished = sum(store.folder(run).result is not None for run in planned)
    _print_environment(settings)
    print(f"{len(planned)} runs of preset {planned[0].preset} on {planned[0].dataset}, {finished} finished")
    return settings


def begin_reading(namespace: dict[str, Any], read: Callable[..., Any]) -> Any:
    """As `begin`, for a notebook that trains nothing: what `read` makes of the notebook's parameters.

    Args:
        namespace: the notebook's `globals()`.
        read: takes the notebook's parameters but `device`, on which nothing is computed here.

    Raises:
        TypeError, ValueError: as `begin`, or as `read` does.
    """
    names = [*inspect.signature(read).parameters]
    try:
        settings = _checked(namespace, [*dict.fromkeys([*names, "device"])])
    except TypeError as error:
        raise TypeError(f"{error}: it trains nothing, and has no preset, seeds or fields") from error
    _print_environment(settings)
    return read(**{name: value for name, value in settings.items() if name in names})


def shown(table: DataFrame, precision: int = 2) -> Styler:
    """A table as a notebook shows it: changes as text, no numbers of rows, no columns in which nothing stands.

    Below it stands what is to be known of its means, see `repro.report.text.remarks`.

    Raises ValueError if it has no rows, which further runs could draw.
    """
    if table.empty:
        raise ValueError("nothing of this table is finished with these parameters; train='missing' trains it")
    filled = in_text(table).dropna(axis="columns", how="all")
    styled = filled.style.hide(axis="index").format(precision=precision, na_rep="", escape="html")
    below = [{"selector": "caption", "props": "caption-side: bottom; text-align: left"}]
    return styled.set_caption("<br>".join(map(html.escape, remarks(table)))).set_table_styles(below)


def sentences(claims: DataFrame, *names: str) -> Markdown:
    """Judged claims (of `repro.papers.sources.judged`) by their ids: what the paper says, the verdict, the numbers."""
    rows = claims.set_index("id").loc[[*names]].reset_index()
    says = "\N{LEFT DOUBLE QUOTATION MARK}" + rows["claim"] + "\N{RIGHT DOUBLE QUOTATION MARK}"
    shorter = {r" \([\d and]+ runs\)": "", r"p (?:[\d.]+e-\d+|0\.000\d+)": "p < 0.001"}
    measured = rows["evidence"].replace(shorter, regex=True)
    columns = {"": rows["id"], "the paper says": says, "here": rows["verdict"], "measured": measured}
    return Markdown(markdown(DataFrame(columns)))


def differences(numbers: DataFrame, *names: str) -> Markdown:
    """The differences behind judged claims (of `repro.papers.sources.judged`) by their ids, those with an error.

    Beside difference and standard error: the upper end of the 95 % interval; p corrected by Holm over these; the
    difference that four of five such experiments would find, and about how many seeds of each side would show this one
    as often.
    """
    rows = numbers[numbers["id"].isin(names)].dropna(subset="error")
    seeds = rows["runs"].map(lambda runs: harmonic_mean(map(int, runs.split(" and "))))
    columns = {"": rows["id"], "compared": rows["compared"], "difference": rows["value"], "s.e.": rows["error"],
               "at most": rows["value"] + rows["reach"], "corrected p": holm(rows["p"]),
               "detectable": rows["detectable"], "seeds": seeds * (rows["detectable"] / rows["value"]) ** 2}
    return Markdown(markdown(DataFrame(columns), {name: 0 if name == "seeds" else 3 for name in [*columns][2:]}))


def _checked(namespace: dict[str, Any], allowed: Sequence[str]) -> dict[str, Any]:
    """The parameters that the notebook has; no other plain values are allowed."""
    if "_begun" not in namespace:  # afterwards, a reader's own names are welcome
        for name, value in namespace.items():
            if isinstance(value, PLAIN) and not name.startswith("_") and name not in ("In", "Out"):
                check_parameters([name], allowed)
    namespace["_begun"] = True
    devices.resolve(namespace.get("device", "auto"))
    return {name: namespace[name] for name in allowed if name in namespace}


def _print_environment(settings: dict[str, Any]) -> None:
    machine = devices.hardware(devices.resolve(settings.get("device", "auto")))
    print(f"{machine['device']}, {machine['cores']} cores, torch {machine['torch']}, python {machine['python']}")
    print(f"repro {devices.commit()}, runs in {manifest.runs_root()}")
