"""The third cell of every notebook: stop at a misspelt or impossible parameter before anything is computed."""

import contextlib
import html
import inspect
import linecache
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import harmonic_mean
from traceback import walk_tb
from typing import Any

from IPython import get_ipython
from IPython.display import Markdown
from pandas import DataFrame
from pandas.io.formats.style import Styler

from repro.data import manifest
from repro.experiments import committed_of, find_table, runs_of
from repro.papers.sources import in_terms
from repro.recipe import choose
from repro.report.claims import verdict_in_words
from repro.report.statistics import holm
from repro.report.text import decimals_of, in_text, markdown, remarks
from repro.run import device as devices
from repro.run.store import Store, everything, rows_of

PLAIN = (str, int, float, bool, list, tuple, dict, set, type(None))
MENDED_BY_A_READER = (TypeError, ValueError, OSError, FloatingPointError)  # errors that say what to do
RESULTS = ("ours", "std", "printed", "difference")  # columns of a table that stay, whatever is in them


def begin(namespace: dict[str, Any], table: str) -> dict[str, Any]:
    """The notebook's parameters, checked; prints the environment and what there is to do.

    papermill only warns about a name that the notebook does not have; here it may be any field of the table's recipe,
    and all else is an error. From here on an error that this package raises is one line.

    Args:
        namespace: the notebook's `globals()`; names are checked the first time in a kernel.
        table: its name.

    Returns:
        Arguments of `repro.run_table` and `repro.experiments.runs_of`, without `train`.

    Raises:
        TypeError, ValueError: for a plain value that is no parameter, or a value that does not exist; named are those
            there are. With train="never" also if nothing is finished.
        FileNotFoundError: if the data are not here, and with train="never" no results on them come along.
        OSError: if REPRO_RUNS cannot be written.
    """
    store = Store()
    settings = _checked(namespace, [*find_table(table).parameters, "train"])
    train = settings.pop("train", "missing")
    store.require_usable()
    with contextlib.redirect_stderr(sys.stdout):  # whose results these are is part of the page
        planned = runs_of(table, train=train, **settings)
    known = everything() if train == "never" else rows_of(planned, store)
    finished = known["id"].isin([run.id for run in planned]).sum()
    print(f"{len(planned)} runs of preset {planned[0].preset} on {planned[0].dataset}, {finished} finished")
    if train == "never" and not finished:
        raise ValueError(f"nothing of {table} is finished with these parameters; train='missing' trains it; "
                         + committed_of(table))
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
    settings = _checked(namespace, [*names, "device"])
    return read(**{name: settings[name] for name in names if name in settings})


def shown(table: DataFrame, precision: int = 2) -> Styler:
    """A table as a notebook shows it. Above it stands what all rows share, and what is to be known of its means.

    Numbers below one another have equally many decimals: settings as many as they need, measures at most `precision`,
    and two more where all are below 1. What a row changes of its recipe, which may be long, stands last.

    Raises ValueError if it has no rows, which further runs could draw.
    """
    if table.empty:
        raise ValueError("nothing of this table is finished with these parameters; train='missing' trains it")
    rows = in_text(table).dropna(axis="columns", how="all")
    rows = rows[sorted(rows, key=lambda name: name == "changed")]
    decimals, measures = {}, table.columns[table.columns.get_loc("ours"):]
    for name, values in rows.select_dtypes("float").items():
        exact = decimals_of(values)
        most = precision + 2 * bool(name not in RESULTS and values.abs().max() < 1) if name in measures else exact
        decimals[name] = f"{{:.{min(exact, most)}f}}"
    shared = [name for name in rows.columns[1:].difference(RESULTS, sort=False)
              if len(rows) > 1 and rows[name].astype(str).nunique() == 1]
    values = {name: decimals.get(name, "{}").format(rows[name].iloc[0]) for name in shared}
    above = ", ".join(f"{name} {value}" for name, value in values.items() if value)
    formats: Any = {name: text for name, text in decimals.items() if name not in shared}
    styled = rows.drop(columns=shared).style.hide(axis="index").format(formats, na_rep="", escape="html")
    lines = [f"<div>{html.escape(line)}</div>" for line in (above, *remarks(table))]
    props = {"caption": "text-align: left", "caption div": "max-width: 60em"}
    styled.set_table_styles([{"selector": name, "props": value} for name, value in props.items()])
    return styled.set_caption("".join(lines))


def sentences(claims: DataFrame, *names: str) -> Markdown:
    """Judged claims (of `repro.papers.sources.judged`) by their ids: what the paper says, the verdict, the numbers."""
    rows = claims.set_index("id").loc[[choose("claim", name, claims["id"]) for name in names]].reset_index()
    measured = rows["evidence"].str.replace(r" \([\d and]+ runs\)", "", regex=True)
    here = [verdict_in_words(*row) for row in rows[["verdict", "p", "level"]].itertuples(index=False)]
    columns = {"": rows["id"], "the paper, in our words": rows["claim"], "here": here, "measured": measured}
    return Markdown(markdown(DataFrame(columns)))


def differences(numbers: DataFrame, *names: str) -> Markdown:
    """The differences behind judged claims (of `repro.papers.sources.judged`) by their ids, those with an error.

    Beside difference and standard error: the upper limit at 95 %, one-sided as verdicts are; p corrected by Holm over
    these; the difference that four of five such experiments would find, and about how many seeds of each side would
    show this one as often, at least the two that an error needs, unless it lies within its own error.
    """
    rows = numbers[numbers["id"].isin(names) & numbers["error"].gt(0) & numbers["runs"].ne("")]
    seeds = rows["runs"].map(lambda runs: harmonic_mean(map(int, runs.split(" and "))))
    seeds = (seeds * (rows["detectable"] / rows["value"]) ** 2).clip(lower=2).where(rows["value"].abs() > rows["error"])
    columns = {"": rows["id"], "compared": rows["compared"].map(in_terms), "difference": rows["value"],
               "s.e.": rows["error"], "at most": rows["at_most"], "corrected p": holm(rows["p"]),
               "detectable": rows["detectable"], "seeds": seeds}
    return Markdown(markdown(DataFrame(columns), {name: 0 if name == "seeds" else 3 for name in [*columns][2:]}))


def _checked(namespace: dict[str, Any], allowed: Sequence[str]) -> dict[str, Any]:
    """The parameters that the notebook has, no other plain values being allowed; prints where it runs."""
    if shell := get_ipython():
        shell.set_custom_exc(MENDED_BY_A_READER, _show_in_a_line)
    if "_begun" not in namespace:  # afterwards, a reader's own names are welcome
        for name, value in namespace.items():
            if isinstance(value, PLAIN) and not name.startswith("_") and name not in ("In", "Out"):
                choose("parameter", name, allowed, TypeError)
    namespace["_begun"] = True
    machine = devices.hardware(devices.resolve(namespace.get("device", "auto")))
    print(f"{machine['device']}, {machine['cores']} cores, torch {machine['torch']}, python {machine['python']}")
    print(f"repro {devices.commit()}, runs in {manifest.runs_root()}")
    return {name: namespace[name] for name in allowed if name in namespace}


def _show_in_a_line(shell: Any, kind: type, error: Any, traceback: Any, tb_offset: int | None = None) -> None:
    """Show an error that this package raises for a reader as one line, any other one as IPython does."""
    *_, (frame, line) = walk_tb(traceback)
    file = frame.f_code.co_filename
    if Path(__file__).parent in Path(file).parents and linecache.getline(file, line).lstrip().startswith("raise "):
        error._render_traceback_ = lambda: [f"{kind.__name__}: {error}"]
    shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
