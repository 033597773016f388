"""The statistics that verdicts rest on: contrasts of trained rows, agreement with printed numbers, ranges.

The runs of one measure are a table throughout: a row for each recipe, a column for each seed, NaN where a seed is
missing.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from scipy import special  # `scipy.stats` takes half a second more

SCATTER = 3.0  # a row whose deviation is more than so many times the median row's is judged by its own
DRAWS = 10_000  # of simulations
SHUFFLES = 500_000  # of permutations, where all of them are more
ROUNDING = 1e-6  # what is left of equal decimals after subtracting them


class Estimate(NamedTuple):
    """A difference and how well it is known.

    Its standard error is NaN if unknown, also where all runs behind it are equal: that others will be, too, they do not
    show. It is 0 of a number that is no mean of runs.
    """

    value: float           # in the unit of what was compared
    error: float
    df: float              # degrees of freedom of the error
    runs: tuple[int, ...]  # how many each side is a mean of

    def p(self, alternative: str = "two-sided", bound: float = 0.0) -> float:
        """Probability of a difference at least as extreme if the true one were `bound`, by Student's t.

        Args:
            alternative: "greater" or "less" (than the bound), where a sentence has a direction; or "two-sided".

        Returns:
            In [0, 1]; NaN if value or error is unknown. Of an error of 0, 0, 0.5 or 1 by the sign of value - bound.
        """
        away = self.value - bound
        if math.isnan(away):
            return math.nan
        if self.error == 0:
            upper = 0.5 if abs(away) < ROUNDING else float(away < 0)
        else:
            upper = float(special.stdtr(self.df, -away / self.error))
        return {"greater": upper, "less": 1 - upper, "two-sided": 2 * min(upper, 1 - upper)}[alternative]

    def minus(self, other: "Estimate") -> "Estimate":
        """The difference of two that are independent: squared errors add, with the fewer degrees of freedom."""
        error = math.hypot(self.error, other.error)
        return Estimate(self.value - other.value, error, min(self.df, other.df), self.runs)

    def reach(self, level: float = 0.95) -> float:
        """Half the width of the two-sided interval of that level."""
        return float(special.stdtrit(self.df, (1 + level) / 2)) * self.error

    def detectable(self) -> float:
        """The least true difference that this error lets see, two-sided at 0.05, with a probability of 0.8.

        By the quantiles of Student's t, (t_0.975 + t_0.8) error, which is near that of its noncentral form.
        """
        return self.reach() + float(special.stdtrit(self.df, 0.8)) * self.error


class Deviation(NamedTuple):
    """The standard deviation between runs that differ in their seed alone, and its degrees of freedom."""

    value: float
    df: float


def pooled(runs: DataFrame) -> Deviation:
    """The deviation within rows, pooled over all that have several seeds.

        s_p^2 = sum_i sum_j (x_ij - mean_i)^2 / df,   df = sum_i (n_i - 1)

    Returns:
        NaN with 0 degrees of freedom if no row has two seeds.
    """
    rows = [row[~np.isnan(row)] for row in runs.to_numpy(dtype=float)]
    df = sum(len(row) - 1 for row in rows if len(row))
    return _deviation(sum(((row - row.mean()) ** 2).sum() for row in rows if len(row)), df, runs)


def _deviation(squares: float, df: int, runs: DataFrame) -> Deviation:
    """Of a sum of squares of runs; 0 where it is what rounding leaves of equal ones."""
    squares *= squares > ROUNDING**3 * np.nansum(runs.to_numpy(dtype=float) ** 2)
    return Deviation(math.sqrt(squares / df) if df else math.nan, df)


def scattered(spread: Series) -> list[Any]:
    """Rows that deviate more than `SCATTER` times as far as the median row: pooling would misjudge them and others.

    Args:
        spread: the deviation between seeds of each row, NaN of a single seed.
    """
    return [*spread.index[spread > SCATTER * spread.median()]]


def deviations(runs: DataFrame, kinds: Series | None = None) -> DataFrame:
    """By which deviation each row is judged.

    Args:
        kinds: of every row, what it is pooled with, such as trained and untrained encoders; all together by default.

    Returns:
        By row: value and df of the deviation, and source, by which rows are recognised that share one: their kind, or
        the row itself where it is one of `scattered`.
    """
    kinds = Series("all", runs.index) if kinds is None else kinds[runs.index]
    own = [row for kind in kinds.unique() for row in scattered(runs[kinds == kind].std(axis=1))]
    sources = kinds.astype(object).where(~runs.index.isin(own), runs.index)
    parts = {source: pooled(runs[sources == source]) for source in sources.unique()}
    found = [(*parts[source], source) for source in sources]
    return DataFrame(found, index=runs.index, columns=["value", "df", "source"])


def contrast(runs: DataFrame, first: Any, second: Any, judged: DataFrame | None = None) -> Estimate:
    """The mean of one row minus that of another.

        error = s_p sqrt(1/n_1 + 1/n_2), with the degrees of freedom of s_p

    Where the rows are judged by two deviations (`deviations`) it is Welch's, error^2 = s_1^2/n_1 + s_2^2/n_2, whose
    degrees of freedom are Satterthwaite's.

    Args:
        judged: `deviations` of the rows, by default with all of them pooled together.
    """
    judged = (deviations(runs) if judged is None else judged).loc[[first, second]]
    counts = runs.loc[[first, second]].count(axis=1)
    value = float(runs.loc[first].mean() - runs.loc[second].mean())
    variances = (judged["value"] ** 2 / counts).to_numpy()
    error, df = math.sqrt(variances.sum()), float(judged["df"].iloc[0])
    if judged["source"].nunique() > 1:
        shares = (variances**2 / judged["df"].where(judged["df"] > 0)).sum(skipna=False)
        df = float(variances.sum() ** 2 / shares) if shares else math.inf
    return Estimate(value, error or math.nan, df, (*map(int, counts),))


def two_way(runs: DataFrame, blocks: Series | None = None) -> Deviation:
    """The deviation that is left when rows and seeds have an effect each, for runs whose seeds share their data.

    Least squares of x_ij = row_i + seed_j; df is the number of runs minus the rank of that model, (rows - 1)
    (seeds - 1) where none is missing.

    Args:
        blocks: of every row, in which its seeds have their effects, such as the size of its batches: a seed draws
            others for another size. All rows are one block by default; squares and df of several add up.

    Returns:
        NaN with 0 degrees of freedom if the runs leave none.
    """
    values = runs.to_numpy(dtype=float)
    row, seed = np.nonzero(~np.isnan(values))
    if not len(row):
        return Deviation(math.nan, 0)
    known, (rows, seeds) = values[row, seed], runs.shape
    block = np.zeros(rows, int) if blocks is None else pd.factorize(blocks[runs.index])[0]
    design = np.hstack([np.eye(rows)[row], np.eye((block.max() + 1) * seeds)[block[row] * seeds + seed]])
    solution, _, rank, _ = np.linalg.lstsq(design, known)
    df = len(known) - int(rank)
    squares = float(((known - design @ solution) ** 2).sum())
    return _deviation(squares, df, runs)


def paired_contrast(runs: DataFrame, first: Any, second: Any, blocks: Series | None = None) -> Estimate:
    """The mean difference of two rows over the n seeds they share, its error from `two_way` residuals.

        error = s sqrt(2/n)

    The two or three differences of one pair alone would let an accidentally small error decide. A row that is one of
    `scattered` among those of its block is left out of the residuals; with one, a difference has the error of its own n
    values, of n - 1 degrees of freedom.

    Args:
        blocks: as for `two_way`; both rows are of one.
    """
    blocks = Series("all", runs.index) if blocks is None else blocks[runs.index]
    differences, spread = (runs.loc[first] - runs.loc[second]).dropna(), runs.std(axis=1)
    count, apart = len(differences), [row for _, part in spread.groupby(blocks) for row in scattered(part)]
    if first in apart or second in apart:
        deviation = Deviation(float(differences.std()) / math.sqrt(2), count - 1)
    else:
        deviation = two_way(runs.drop(index=apart), blocks)
    error = deviation.value * math.sqrt(2 / count) if count else math.nan
    return Estimate(float(differences.mean()), error or math.nan, deviation.df, (count, count))


def from_number(runs: DataFrame, row: Any, number: float, judged: DataFrame | None = None) -> Estimate:
    """Our mean minus a number that has no error of its own: error = s / sqrt(n); `judged` as for `contrast`."""
    deviation, count = (deviations(runs) if judged is None else judged).loc[row], int(runs.loc[row].count())
    error = deviation["value"] / math.sqrt(count) if count else math.nan
    return Estimate(float(runs.loc[row].mean()) - number, error or math.nan, float(deviation["df"]), (count,))


def from_printed(runs: DataFrame, row: Any, printed: float, judged: DataFrame | None = None) -> Estimate:
    """Our mean minus a printed number, which is taken for one more run: error = s sqrt(1 + 1/n); as `from_number`."""
    estimate = from_number(runs, row, printed, judged)
    count, = estimate.runs
    return estimate._replace(error=estimate.error * math.sqrt(1 + count), runs=(count, 1))


def holm(p: Sequence[float] | Series) -> Series:
    """p corrected for their number by Holm: of m sorted ones max over k <= i of (m - k + 1) p_(k), at most 1.

    Unknown ones stay NaN and count, as their tests belong to the family.

    Source: Holm 1979, A simple sequentially rejective multiple test procedure.
    """
    values = Series(p, dtype=float)
    ordered = values.sort_values()
    steps = len(values) - np.arange(len(values))
    return (ordered * steps).cummax().clip(upper=1.0)[values.index]


class Agreement(NamedTuple):
    """How near a column of ours is to a printed one, beside what says little.

    Permutations of the printed numbers are all of them, or `SHUFFLES` drawn ones. Were our means the truth, one printed
    run of each row would give the ceiling, a median.
    """

    rows: int            # how many are compared
    rms: float           # root mean square difference, in points
    r: float             # Pearson's correlation
    constant_rms: float  # of the best constant, the mean of the printed numbers
    shuffled_rms: float  # share of permutations with at most our rms
    shuffled_r: float    # share of permutations with at least our r
    ceiling_rms: float
    ceiling_r: float


def agreement(runs: DataFrame, printed: Series, *, deviation: float | None = None) -> Agreement:
    """A column of ours against a printed one, see `Agreement`.

    Args:
        runs: ours; every row has a run.
        printed: one number for each row of `runs`, by row.
        deviation: s_p of all rows; by default pooled over all but those of `scattered`, which are best left out.

    Raises:
        ValueError: if a row has no run or no printed number, or there are fewer than three.
    """
    ours, theirs = runs.mean(axis=1).to_numpy(), printed.reindex(runs.index).to_numpy(dtype=float)
    lacking = [*runs.index[np.isnan(ours) | np.isnan(theirs)]]
    if lacking or len(ours) < 3:
        raise ValueError(f"{len(ours)} rows, of which {', '.join(lacking) or 'none'} lack a run or a printed number; "
                         "compare three or more that have both")
    generator = np.random.default_rng(0)
    deviation = pooled(runs.drop(index=scattered(runs.std(axis=1)))).value if deviation is None else deviation
    shuffled = permutations(theirs, generator)
    rerun = ours + deviation * generator.standard_normal((DRAWS, len(ours)))
    rms, r = rms_of(ours, theirs), correlation(ours, theirs)
    return Agreement(
        rows=len(ours), rms=float(rms), r=float(r), constant_rms=float(theirs.std()),
        shuffled_rms=float((rms_of(ours, shuffled) <= rms + ROUNDING).mean()),
        shuffled_r=float((correlation(shuffled, ours) >= r - ROUNDING).mean()),
        ceiling_rms=float(np.median(rms_of(ours, rerun))), ceiling_r=float(np.median(correlation(rerun, ours))),
    )


def permutations(column: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """All orders of a column (rows,), or `SHUFFLES` drawn ones where they are more: (orders, rows)."""
    if math.factorial(len(column)) > SHUFFLES:
        return generator.permuted(np.tile(column, (SHUFFLES, 1)), axis=1)
    return np.array([*itertools.permutations(column)])


def rms_of(columns: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Root mean square difference of a column (rows,) from columns (..., rows)."""
    return np.sqrt(((columns - column) ** 2).mean(axis=-1))


def correlation(columns: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Pearson's correlation of a column (rows,) with columns (..., rows); NaN where one is constant."""
    first, second = (part - part.mean(axis=-1, keepdims=True) for part in (columns, column))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (first * second).sum(axis=-1) / np.sqrt((first**2).sum(axis=-1) * (second**2).sum(axis=-1))
