"""Tables of results as text: what a person reads within 100 columns, and every column."""

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from pandas import DataFrame, Series

from repro.recipe import in_words

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
WIDTH = 100     # columns of a terminal
MEASURE = ("run the table without --train never, which measures them again; of one that has lost its weights delete "
           "the folder first")
LONGEST = 60    # text of a cell on a terminal
DATA_NAMES = {  # what readers call data sets; words of a paper are in its `words.yaml`
    "ucla": "NW-UCLA", "ntu": "NTU RGB+D", "synthetic": "bundled data", "digits": "bundled digits",
    "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "stl10": "STL-10", "tiny_imagenet": "Tiny ImageNet",
    "imagenet": "ImageNet", "imagenet100": "ImageNet-100", "kinetics_sound": "Kinetics-Sound",
    "kinetics700": "Kinetics-700", "audioset": "AudioSet", "ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC-50",
    "multiomniglot": "grids of characters", "multidigits": "grids of bundled digits",
}
WITHIN = re.compile(r" (?=±|\(\d+\))|(?<=±) ".replace("±", PLUS_MINUS))  # the spaces of "67.0 ± 5.5 (2)"


def in_text(rows: DataFrame) -> DataFrame:
    """Rows of `repro.run_table` with changes as text, as files have them."""
    return rows.assign(changed=rows["changed"].map(in_words)) if "changed" in rows else rows


def spelt(rows: DataFrame) -> DataFrame:
    """All values of rows as text, "" where one is missing."""
    known = in_text(rows)
    return known.astype(str).where(known.notna(), "")


def readable(rows: DataFrame) -> str:
    """What tells rows of `repro.run_table` apart, ours as "67.0 ± 5.5 (2)" (mean, standard deviation, seeds), printed,
    difference.
    """
    below = "".join(f"\n{textwrap.fill(line, WIDTH)}" for line in remarks(rows))
    if rows.empty:
        return f"no run is finished{below}"
    (_, shared), table = _telling_apart(rows), beside(rows)
    origin = f"{rows['dataset'].iloc[0]}, {' and '.join(rows['preset'].unique())} recipe"
    title = "\n".join(textwrap.wrap(", ".join([origin, *shared]), WIDTH))
    cut = table.map(lambda text: text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")
    return "\n".join([title, *in_columns([[*cut], *cut.to_numpy().tolist()])]) + below


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, its texts below one another."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def remarks(rows: DataFrame) -> list[str]:
    """What is to be known of the means of rows of `repro.run_table`, a line each; none if nothing is.

    Which seeds another evaluation measured, so that no mean has them; then which rows are over runs of several
    precisions or processors, and how many of the reader's own runs stand in place of committed ones.
    """
    lines: list[str] = []
    if left_out := rows.attrs.get("left_out"):
        lines.append(f"left out of the means, as another evaluation measured them: {'; '.join(left_out)}; {MEASURE}")
    if rows.empty:
        return lines
    names, _ = _telling_apart(rows)
    whole = spelt(rows.iloc[:, : rows.columns.get_loc("ours")]).itertuples(index=False)
    labels_of = dict(zip(map(tuple, whole), names.agg(" ".join, axis="columns"), strict=True))
    for remark, named in rows.attrs.get("remarks", {}).items():
        labels = [labels_of[row] for row in named if row in labels_of]
        if labels:
            lines.append(f"{'all rows' if len(labels) == len(rows) > 1 else ', '.join(labels)}: {remark}")
    return lines


def beside(rows: DataFrame) -> DataFrame:
    """What tells rows of `repro.run_table` apart, ours as "67.0 ± 5.5 (2)", printed and difference where there are any.

    Returns:
        Texts, a row for each; "" where nothing is printed or the two are not comparable.
    """
    names, _ = _telling_apart(rows)
    table = names.assign(ours=measured(rows))
    if rows["printed"].notna().any():
        table["printed"] = rows["printed"].map(f"{{:.{decimals_of(rows['printed'])}f}}".format, "ignore").fillna("")
    if rows["difference"].notna().any():
        table["difference"] = rows["difference"].map(lambda value: "" if math.isnan(value) else f"{value:+.1f}")
    return table


def measured(rows: DataFrame) -> list[str]:
    """Mean, standard deviation and seeds of each row: "67.0 ± 5.5 (2)"; "-" where there is no mean."""
    texts = []
    for mean, deviation, seeds in rows[["ours", "std", "n_seeds"]].itertuples(index=False):
        spread = "" if math.isnan(deviation) else f" {PLUS_MINUS} {deviation:.1f}"
        texts.append("-" if math.isnan(mean) else f"{mean:.1f}{spread} ({seeds})")
    return texts


def across(rows: DataFrame, down: list[str], column: str) -> DataFrame:
    """Ours of each row as `measured`, by the fields `down`, with a column for each value of another; "" where none is.

    Of several rows that agree in all of these the first counts.
    """
    texts = rows.assign(ours=measured(rows), **{name: rows[name].astype(str) for name in down})
    wide = texts.pivot_table("ours", down, column, aggfunc="first", sort=False)
    return wide.fillna("").reset_index()


def markdown(table: DataFrame, decimals: int | Mapping[str, int] | None = None) -> str:
    """A table as Markdown, its columns as headings and without its index; NaN is left blank, a "|" ends no cell.

    A number, its deviation and its seeds stay on one line.

    Args:
        decimals: of numbers that are not whole: of all such columns, or by column; by default as `decimals_of`.
    """
    shown = {name: decimals_of(values) for name, values in table.select_dtypes("float").items()}
    if decimals is not None:
        shown |= decimals if isinstance(decimals, Mapping) else dict.fromkeys(shown, decimals)
    table = table.assign(**{name: table[name].map(f"{{:.{places}f}}".format, na_action="ignore")
                            for name, places in shown.items()})
    rows = table.astype(object).where(table.notna(), "").to_numpy().tolist()
    lines = []
    for row in [[*table.columns], ["---"] * table.shape[1], *rows]:
        texts = [WITHIN.sub("\N{NO-BREAK SPACE}", str(value).replace("|", "\\|")) for value in row]
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def decimals_of(values: Series) -> int:
    """As many decimals as the numbers of a column need to be written as they are."""
    texts = [np.format_float_positional(value, trim="-") for value in values.dropna()]
    return max((len(text.partition(".")[2]) for text in texts), default=0)


def telling_apart(rows: DataFrame, columns: Iterable[str]) -> list[str]:
    """The columns that tell more rows apart than those before them do: not the ones that follow from these."""
    chosen: list[str] = []
    count = 1
    for column in columns:
        groups = len(rows[[*chosen, column]].drop_duplicates())
        if groups > count:
            chosen.append(column)
            count = groups
    return chosen


def _telling_apart(rows: DataFrame) -> tuple[DataFrame, list[str]]:
    """Columns before ours that tell rows apart, each as long as it adds to that, as text; and what all rows share."""
    named = spelt(rows.iloc[:, : rows.columns.get_loc("ours")])
    chosen = telling_apart(named, named) or [*named.columns[:1]]
    shared = [value if name == "changed" else f"{name} {value}" for name, value in named.iloc[0].items()
              if name not in chosen and name.islower() and named[name].nunique() == 1 and value]
    return named[chosen], shared
