"""How a sentence of a paper gets its verdict: what a claim is, how far evidence carries, and the statistics."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pandas import Series
from scipy import stats

from repro.data import manifest

HOLDS, FAILS, UNDECIDED, NOT_RUN, CANNOT = "holds", "fails", "undecided", "not run", "cannot be checked"
VERDICTS = (HOLDS, FAILS, UNDECIDED, NOT_RUN, CANNOT)
NOT_MEASURED = "not measured"  # said of a discrepancy
CLOSED, PRINTED = "closed form", "printed numbers"
PAPER, QUICK, EMBEDDED = "paper recipe, real data", "quick, real data", "embedded data"
LEVELS = {  # of evidence, those that carry furthest first, and what each allows
    CLOSED: "A formula or a simulation of one: nothing is trained.",
    PRINTED: "The paper's own numbers against its own sentences: whether these follow, not whether they are true.",
    PAPER: "Trained as printed, on the official data: a reproduction, to be held against the printed number as far as "
    "its seeds carry.",
    QUICK: "A smaller or otherwise changed recipe, or a part of the data: orders and mechanisms; no reproduction, and "
    "no verdict on a printed number.",
    EMBEDDED: "Data that come with the package: orders and mechanisms; printed numbers belong to other data.",
}
ERROR = 0.05  # probability of a wrong verdict that is accepted
ROUNDING = 1e-6  # what is left of equal decimals after subtracting them
WIDEST = 5.0  # points: a prediction interval that reaches further decides nothing


def level_of(dataset: str, preset: str, changed: bool = False) -> str:
    """How far numbers of ours carry, one of the last three of `LEVELS`.

    Args:
        dataset: its label; a part or copy, "ntu (subset)", is not the official data.
        preset: of the recipe.
        changed: whether the recipe departs from its preset.

    Raises:
        ValueError: if there is no such data set.
    """
    if manifest.bundled(dataset):
        return EMBEDDED
    return PAPER if preset == "paper" and dataset == manifest.plain(dataset) and not changed else QUICK


def rank(level: str) -> int:
    """The place of a level, 0 for that which carries furthest."""
    return list(LEVELS).index(level)


class Finding(NamedTuple):
    """What became of a claim."""

    verdict: str   # one of `VERDICTS`
    level: str     # one of `LEVELS`; empty where there is no evidence
    evidence: str  # the numbers, in words


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A checkable sentence of a paper, or of what its tables and figures say."""

    id: str                           # unique
    paper: str                        # "taxonomy", "CM-ACC", "SCE" or "JCL"
    place: str                        # where in the paper
    says: str                         # the sentence in our words, never a quotation
    predicate: str                    # what is compared, with tolerance and test
    check: Callable[[Any], Finding]   # finds the verdict in the evidence (`repro.report.evidence.Evidence`)
    figures: tuple[str, ...] = ()     # that show it, by the beginnings of their names in figures/
    identity: bool = False            # whether it is true or false by algebra alone


@dataclasses.dataclass(frozen=True, kw_only=True)
class Discrepancy:
    """Where a paper disagrees with itself or with its released code."""

    id: str
    paper: str
    place: str
    paper_says: str
    others_say: str                   # the released code, another table, or arithmetic
    here: str                         # what we take
    measure: Callable[[Any], str]     # what we measured about it in the evidence, in words; "" of a matter of words


class Estimate(NamedTuple):
    """A difference and how well it is known."""

    mean: float
    error: float    # standard error of the mean; NaN if unknown
    freedom: float  # degrees of freedom of the error
    basis: str      # what both rest on, in words
    runs: int = 1   # of the side with fewer of them

    def tail(self, bound: float) -> float:
        """Probability of a difference at least as high if the true one were `bound`; NaN if the error is unknown."""
        if self.error == 0:
            return 0.5 if math.isclose(self.mean, bound, abs_tol=ROUNDING) else float(self.mean < bound)
        return float(stats.t.sf((self.mean - bound) / self.error, self.freedom))

    def both_tails(self) -> float:
        """Probability of a difference at least as far from 0, to either side, if the true one were 0."""
        return 2 * min(self.tail(0), 1 - self.tail(0))

    def reach(self) -> float:
        """Half the width of the two-sided interval at the accepted error."""
        return float(stats.t.ppf(1 - ERROR / 2, self.freedom)) * self.error

    def __str__(self) -> str:
        return self.in_words(2)

    def in_words(self, digits: int) -> str:
        """"+1.25, s.e. 0.50 (3 pairs)": the mean, its standard error, and what both rest on."""
        error = "unknown" if math.isnan(self.error) else f"{self.error:.{digits}f}"
        return f"{self.mean:+.{digits}f}, s.e. {error} ({self.basis})"


Estimates = Mapping[str, Estimate | None]  # by name, None where a side is missing


def listed(estimates: Estimates) -> str:
    """Those that there are, by name, in words."""
    return "; ".join(f"{name} {estimate}" for name, estimate in estimates.items() if estimate is not None)


class Deviation(NamedTuple):
    """The standard deviation between runs that differ in their seed alone, and its degrees of freedom."""

    value: float
    freedom: int


UNKNOWN = Deviation(math.nan, 0)  # with it, fewer than two shared seeds decide nothing


def pooled(values: Series, entries: Series) -> Deviation:
    """The deviation within entries, pooled over those that have several values; NaN if none has."""
    groups = values.astype(float).groupby(entries.to_numpy())
    freedom = int((groups.count() - 1).clip(lower=0).sum())
    squares = float(((values - groups.transform("mean")) ** 2).sum())
    return Deviation(math.sqrt(squares / freedom) if freedom else math.nan, freedom)


def paired(differences: Series, what: str = "pairs") -> Estimate:
    """The mean of differences, its error from their own scatter; unknown where there is one alone."""
    count = len(differences)
    basis = f"{count} {what}" if count > 1 else "1 seed"
    return Estimate(float(differences.mean()), float(differences.sem()), count - 1, basis, count)


def difference(first: Series, second: Series, deviation: Deviation) -> Estimate | None:
    """The first minus the second, both by seed: paired if they share two seeds, else with the pooled deviation.

    So with pairs that differ by the same, as accuracies on few test samples may: that is no certainty.
    """
    if first.empty or second.empty:
        return None
    shared = first.index.intersection(second.index)
    pairs = paired(first[shared] - second[shared])
    if pairs.error > 0:
        return pairs
    error = deviation.value * math.sqrt(1 / len(first) + 1 / len(second))
    mean, basis = float(first.mean() - second.mean()), f"{len(first)} against {len(second)} runs"
    return Estimate(mean, error, deviation.freedom, basis, min(len(first), len(second)))


def from_printed(ours: Series, published: float, deviation: Deviation) -> Estimate | None:
    """Our mean minus a printed number, which is taken for one more run."""
    if ours.empty:
        return None
    error = deviation.value * math.sqrt(1 + 1 / len(ours))
    runs = "1 run" if len(ours) == 1 else f"{len(ours)} runs"
    return Estimate(float(ours.mean()) - published, error, deviation.freedom, runs, len(ours))


def above(estimates: Estimates, margin: float = 0.0) -> str:
    """Whether all differences exceed the margin.

    Holds if each does at the accepted error, so that their conjunction does too; fails if one of k falls short at a
    k-th of it. Whatever is missing leaves it undecided, unless another one fails.
    """
    tails = [estimate.tail(margin) for estimate in estimates.values() if estimate is not None]
    if any(1 - tail < ERROR / len(tails) for tail in tails):
        return FAILS
    return _holds(estimates, [tail < ERROR for tail in tails])


def below(estimates: Estimates, margin: float = 0.0) -> str:
    """Whether all differences fall short of the margin; as `above`."""
    opposite = {name: estimate and estimate._replace(mean=-estimate.mean) for name, estimate in estimates.items()}
    return above(opposite, -margin)


def within(estimates: Estimates, tolerance: float) -> str:
    """Whether all differences lie within the tolerance on either side, by two one-sided tests each; as `above`."""
    sides = {above(estimates, -tolerance), below(estimates, tolerance)}
    return FAILS if FAILS in sides else HOLDS if sides == {HOLDS} else UNDECIDED


def reproduced(estimates: Estimates, widest: float = WIDEST) -> str:
    """Whether printed numbers are ones that a further run of ours could give.

    Fails if one of k lies outside its prediction interval at a k-th of the accepted error. Holds if all lie inside
    theirs and these reach no further than `widest`; a wider interval would admit almost anything.
    """
    known = [estimate for estimate in estimates.values() if estimate is not None]
    if any(estimate.both_tails() < ERROR / len(known) for estimate in known):
        return FAILS
    return _holds(estimates, [estimate.reach() <= widest for estimate in known])  # of unknown error none does


def different(estimates: Estimates) -> str:
    """Whether all differences are other than 0, by a two-sided test each; being equal is never shown."""
    known = [estimate for estimate in estimates.values() if estimate is not None]
    return _holds(estimates, [estimate.both_tails() < ERROR for estimate in known])


def _holds(estimates: Estimates, shown: list[bool]) -> str:
    """The verdict where nothing fails: all there is to show is shown, or it is undecided."""
    return HOLDS if shown and all(shown) and len(shown) == len(estimates) else UNDECIDED
