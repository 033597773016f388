"""How a sentence of a paper gets its verdict: the statistics, and what a claim is made of."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pandas import Series
from scipy import stats

HOLDS, FAILS, UNDECIDED, NOT_RUN, CANNOT = "holds", "fails", "undecided", "not run", "cannot be checked"
VERDICTS = (HOLDS, FAILS, UNDECIDED, NOT_RUN, CANNOT)
NOT_MEASURED = "not measured"  # said of a discrepancy
ERROR = 0.05  # probability of a wrong verdict that is accepted
ROUNDING = 1e-6  # what is left of equal decimals after subtracting them
WIDEST = 5.0  # points: a prediction interval that reaches further decides nothing
SEEDS = "one-sided t test, 5 %, paired over shared seeds, with the pooled deviation between seeds where fewer than two"
SEEDS_LIKE = "one-sided t test, 5 %, paired over shared seeds, else with the deviation between seeds of that recipe"
SEEDS_SHARED = "one-sided t test, 5 %, paired over at least two shared seeds, as a collapsed encoder need not scatter "
SEEDS_SHARED += "as others do"


class Finding(NamedTuple):
    """What became of a claim.

    Attributes:
        verdict: one of `VERDICTS`.
        level: one of `levels.LEVELS`; empty where there is no evidence.
        evidence: the numbers, in words.
    """

    verdict: str
    level: str
    evidence: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A checkable sentence of a paper, or of what its tables and figures say.

    Attributes:
        id: short and unique.
        paper: "taxonomy", "CM-ACC", "SCE" or "JCL".
        place: where in the paper.
        says: the sentence in our words, never a quotation.
        predicate: what is compared, with tolerance and test.
        check: finds the verdict in the evidence (`repro.report.evidence.Evidence`).
        figures: the figures that show it, by the beginnings of their names in figures/.
        identity: whether it is true or false by algebra alone.
    """

    id: str
    paper: str
    place: str
    says: str
    predicate: str
    check: Callable[[Any], Finding]
    figures: tuple[str, ...] = ()
    identity: bool = False


def claims_of(paper: str, letter: str, source: str = "") -> Callable[..., Claim]:
    """What makes a paper's claims of their number, place in the source, sentence, predicate, check and figures."""

    def claim(
        number: int, place: str, says: str, predicate: str, check: Callable[[Any], Finding], *figures: str,
        identity: bool = False,
    ) -> Claim:
        return Claim(id=f"{letter}{number}", paper=paper, place=f"{source}{place}", says=says, predicate=predicate,
                     check=check, figures=figures, identity=identity)

    return claim


@dataclasses.dataclass(frozen=True, kw_only=True)
class Discrepancy:
    """Where a paper disagrees with itself or with its released code.

    Attributes:
        id: short and unique.
        paper: "taxonomy", "CM-ACC", "SCE" or "JCL".
        place: where in the paper.
        paper_says, others_say: the two sides; the other one is the released code, another table, or arithmetic.
        here: what we take.
        measure: finds what we measured about it in the evidence, in words; nothing of a matter of words alone.
    """

    id: str
    paper: str
    place: str
    paper_says: str
    others_say: str
    here: str
    measure: Callable[[Any], str]


class Estimate(NamedTuple):
    """A difference and how well it is known.

    Attributes:
        mean: of the difference.
        error: its standard error; NaN if unknown.
        freedom: degrees of freedom of the error.
        basis: what it rests on, in words.
    """

    mean: float
    error: float
    freedom: float
    basis: str

    def tail(self, bound: float) -> float:
        """Probability of a difference at least as high if the true one were `bound`; NaN if the error is unknown."""
        if self.error == 0:
            return 0.5 if math.isclose(self.mean, bound, abs_tol=ROUNDING) else float(self.mean < bound)
        return float(stats.t.sf((self.mean - bound) / self.error, self.freedom))

    def reach(self) -> float:
        """Half the width of the two-sided interval at the accepted error."""
        return float(stats.t.ppf(1 - ERROR / 2, self.freedom)) * self.error

    def __str__(self) -> str:
        return self.in_words(2)

    def in_words(self, digits: int) -> str:
        """"+1.25, s.e. 0.50 (3 pairs)": the mean, its standard error, and what both rest on."""
        error = "unknown" if math.isnan(self.error) else f"{self.error:.{digits}f}"
        return f"{self.mean:+.{digits}f}, s.e. {error} ({self.basis})"


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
    """The mean of at least two differences, its error from their own scatter."""
    return Estimate(float(differences.mean()), float(differences.sem()), len(differences) - 1,
                    f"{len(differences)} {what}")


def over_seeds(differences: Series) -> Estimate:
    """The mean of differences, one of each seed; its error is unknown where there is one alone."""
    if len(differences) > 1:
        return paired(differences)
    return Estimate(float(differences.mean()), math.nan, 0, "1 seed")


def difference(first: Series, second: Series, deviation: Deviation) -> Estimate | None:
    """The first minus the second, both by seed: paired if they share two seeds, else with the pooled deviation."""
    if first.empty or second.empty:
        return None
    shared = first.index.intersection(second.index)
    if len(shared) >= 2:
        return paired(first[shared] - second[shared])
    error = deviation.value * math.sqrt(1 / len(first) + 1 / len(second))
    mean = float(first.mean() - second.mean())
    return Estimate(mean, error, deviation.freedom, f"{len(first)} against {len(second)} runs")


def from_printed(ours: Series, published: float, deviation: Deviation) -> Estimate | None:
    """Our mean minus a printed number, which is taken for one more run."""
    if ours.empty:
        return None
    error = deviation.value * math.sqrt(1 + 1 / len(ours))
    runs = "1 run" if len(ours) == 1 else f"{len(ours)} runs"
    return Estimate(float(ours.mean()) - published, error, deviation.freedom, runs)


def above(estimates: Mapping[str, Estimate | None], margin: float = 0.0) -> str:
    """Whether all differences exceed the margin.

    Holds if each does at the accepted error, so that their conjunction does too; fails if one of k falls short at a
    k-th of it. Whatever is missing leaves it undecided, unless another one fails.
    """
    known = [estimate for estimate in estimates.values() if estimate is not None]
    if not known:
        return UNDECIDED
    if any(1 - estimate.tail(margin) < ERROR / len(known) for estimate in known):
        return FAILS
    return HOLDS if len(known) == len(estimates) and all(each.tail(margin) < ERROR for each in known) else UNDECIDED


def within(estimates: Mapping[str, Estimate | None], tolerance: float) -> str:
    """Whether all differences lie within the tolerance on either side, by two one-sided tests each; as `above`."""
    sides = [above(estimates, -tolerance), below(estimates, tolerance)]
    return FAILS if FAILS in sides else HOLDS if sides == [HOLDS, HOLDS] else UNDECIDED


def reproduced(estimates: Mapping[str, Estimate | None], widest: float) -> str:
    """Whether printed numbers are ones that a further run of ours could give.

    Fails if one of k lies outside its prediction interval at a k-th of the accepted error. Holds if all lie inside
    theirs and these reach no further than `widest`; a wider interval would admit almost anything.
    """
    known = [estimate for estimate in estimates.values() if estimate is not None]
    if not known:
        return UNDECIDED
    outside = [2 * min(each.tail(0), 1 - each.tail(0)) < ERROR / len(known) for each in known]
    if any(outside):
        return FAILS
    narrow = all(each.reach() <= widest for each in known)  # False where a deviation is unknown
    return HOLDS if narrow and len(known) == len(estimates) else UNDECIDED


def different(estimates: Mapping[str, Estimate | None]) -> str:
    """Whether all differences are other than 0, by a two-sided test each; being equal is never shown."""
    known = [estimate for estimate in estimates.values() if estimate is not None]
    apart = [2 * min(each.tail(0), 1 - each.tail(0)) < ERROR for each in known]
    return HOLDS if known and len(known) == len(estimates) and all(apart) else UNDECIDED


def below(estimates: Mapping[str, Estimate | None], margin: float = 0.0) -> str:
    """Whether all differences fall short of the margin; as `above`."""
    return above({name: each and each._replace(mean=-each.mean) for name, each in estimates.items()}, -margin)


def exactly(condition: bool, level: str, evidence: str) -> Finding:
    """The verdict on something that has no error: printed numbers, or a closed form."""
    return Finding(HOLDS if condition else FAILS, level, evidence)
