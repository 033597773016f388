"""Rules for sentences of the CM-ACC paper that are more than a comparison of rows; see `repro.report.claims`."""

import itertools
import math
from typing import Any

import pandas as pd
import torch
from pandas import DataFrame
from scipy import stats
from torch.nn.functional import normalize

from repro.audiovisual.coverage import uniform_draws
from repro.contrast.negatives import gradient_factors
from repro.report import statistics
from repro.report.claims import (
    ERROR,
    FAILS,
    HOLDS,
    OWN,
    PAIRED,
    UNDECIDED,
    Claim,
    Judged,
    Results,
    Rule,
    above,
    exact,
    measures_of,
    parsed,
)
from repro.report.printed import printed

TARGETS = ["UCF101", "HMDB51", "ESC50"]
CATEGORIES, WITH_SOUND, PICKED = 101, 51, 128  # of UCF101; about half have sound; M
UNKNOWN_SIZE = {"14K": "", "N/A": "240K"}  # Tables 4 and 5: Kinetics-Sound beside UCF/HMDB, and what Kinetics-400 has
EARLY, LATE = 0.1, 0.9  # shares of the iterations: the first tenth, and from where the last one begins


def random_coverage(*_: Any) -> Judged:
    """Whether 128 uniform draws from 101 categories cover 30 to 40 %, of the categories or of the draws."""
    every, audible = uniform_draws((CATEGORIES, WITH_SOUND), (PICKED,)).itertuples()
    shares = {"% of 101 categories": every.percent_of_categories, "% of 128 draws": every.percent_of_draws,
              "% of 128 draws, were 51 categories audible": audible.percent_of_draws}
    follows = any(30 <= share <= 40 for share in (every.percent_of_categories, every.percent_of_draws))
    return follows, {name: exact(share) for name, share in shares.items()}


def active_coverage(*_: Any) -> Judged:
    """Whether 60 to 70 % of 128 draws, by which Fig. 4 divides, are more than uniform draws cover and exist at all."""
    expected = uniform_draws((CATEGORIES,), (PICKED,))["expected"].item()
    low, high = (math.ceil(share * PICKED) for share in (0.6, 0.7))
    numbers = {"categories, 60 % of M": low, "70 % of M": high, "expected of uniform draws": expected}
    return expected < low and high <= CATEGORIES, {name: exact(value) for name, value in numbers.items()}


def comparable_gains(claim: Claim, results: Results) -> Judged:
    """Whether printed gains are over the best other method that was pre-trained on as many clips.

    Of several rows the paper does not say how many clips they had. Undecided where these have to be taken for
    comparable to make it true.
    """
    targets, matching = measures_of(claim), {}
    for reading, sizes in (("of unknown size taken for comparable", UNKNOWN_SIZE), ("sizes as printed", {})):
        table = results.rows.fillna({"pretrain_size": ""})
        table["pretrain_size"] = table["pretrain_size"].replace(sizes)
        best = _others(table).groupby("pretrain_size")[targets].max()
        ours = table[table["method"] == "Ours"]
        gains = ours[targets] - best.reindex(ours["pretrain_size"]).to_numpy()
        stated = ours[[f"gain_{target}" for target in targets]].set_axis(targets, axis=1)
        matching[f"gains that are so, {reading}"] = int((gains - stated).abs().lt(0.01).sum().sum())
        total = stated.size
    numbers = {name: exact(count) for name, count in {**matching, "of": total}.items()}
    renamed, as_printed = (count == total for count in matching.values())
    return (HOLDS if as_printed else UNDECIDED) if renamed else FAILS, numbers


def _others(table: DataFrame) -> DataFrame:
    """Rows of other self-supervised methods."""
    return table[~table["method"].str.startswith(("Ours", "Scratch", "Supervised"))]


def best_of_all(claim: Claim, results: Results) -> Judged:
    """Whether the best row of CM-ACC exceeds the best of other self-supervised methods, of rows as `first` has them."""
    rows = results.rows
    for column, values in parsed(claim.first).items():
        rows = rows[rows[column].isin(values)]
    targets = measures_of(claim)
    gains = rows.loc[rows["method"] == "Ours", targets].max() - _others(rows)[targets].max()
    numbers = {target: exact(gain) for target, gain in gains.items()}
    return above(numbers), numbers


def repeated_numbers(claim: Claim, results: Results) -> Judged:
    """Whether Table 6 has the numbers of Tables 1, 4 and 5 for the same training and the network these name first."""
    six, one = results.rows.set_index(["approach", "dataset"]).loc["CM-ACC"], printed("cmacc_table1")
    elsewhere = {("Kinetics-Sound", target): one.set_index("approach").loc["CM-ACC", target] for target in TARGETS}
    for (name, size), target in itertools.product((("Kinetics700", "240K"), ("AudioSet", "1.8M")), TARGETS):
        rows = printed("cmacc_table5" if target == "ESC50" else "cmacc_table4")
        same = (rows["method"] == "Ours") & (rows["pretrain_set"] == name) & (rows["pretrain_size"] == size)
        elsewhere[name, target] = rows.loc[same, target].iloc[0]
    gaps = {f"{name}, {target}": six.loc[name, target] - value for (name, target), value in elsewhere.items()}
    unequal = {name: exact(gap) for name, gap in gaps.items() if abs(gap) > statistics.ROUNDING}
    return not unequal, {"compared": exact(len(gaps)), **unequal}


def norms_by_similarity(*_: Any) -> Judged:
    """Gradient norms of Eq. 4 and 5 of keys near one query, and between two, over those of random keys.

    Keys and queries have one length, 1, 4 or 16, in 512 dimensions, among 128 queries. Keys between two are nearer to
    one by a thousandth, so that rounding does not choose their pseudo-label. Holds if keys like queries have larger
    gradients in both places, fails if in neither.
    """
    generator, ratios = torch.Generator().manual_seed(0), {}
    for length in (1, 4, 16):
        queries, inputs, apart = (torch.randn(128, 512, generator=generator, dtype=torch.float64) for _ in range(3))
        queries, apart = normalize(queries, dim=1), normalize(apart, dim=1)
        places = {"near one query": 0.8 * queries + 0.6 * apart, "between two": queries + 0.999 * queries.roll(1, 0)}
        norms = {}
        for place, keys in {**places, "random": apart}.items():
            a, b = gradient_factors(length * normalize(keys, dim=1), length * queries, inputs)
            norms[place] = float((a.norm(dim=1) * b.norm(dim=1)).mean())
        ratios |= {f"{place}, length {length}": norms[place] / norms["random"] for place in places}
    larger = [ratio > 1 for ratio in ratios.values()]
    return HOLDS if all(larger) else UNDECIDED if any(larger) else FAILS, {
        name: exact(ratio) for name, ratio in ratios.items()}


def pseudo_label_is_least(*_: Any) -> Judged:
    """Whether the pseudo-label's gradient of Eq. 5 is the smallest of all labels', for simulated candidates.

    That of label y has the norm |k| |H^T (p - e_y)|. For random keys and layers' inputs of 128 queries, at the logits'
    deviations 1, 3 and 10.
    """
    generator, shares = torch.Generator().manual_seed(0), {}
    for scale in (1, 3, 10):
        inputs = torch.randn(128, 512, generator=generator, dtype=torch.float64).relu()
        logits = scale * torch.randn(256, 128, generator=generator, dtype=torch.float64)
        posterior = logits.softmax(dim=1)
        gram = inputs @ inputs.T                                                                       # (128, 128)
        shared = ((posterior @ gram) * posterior).sum(1, keepdim=True)
        norms = (shared - 2 * posterior @ gram + gram.diagonal()).sqrt()                               # (256, 128)
        label = norms.gather(1, posterior.argmax(1, keepdim=True))
        smaller = (norms < label - 1e-9).any(dim=1).double().mean()
        shares[f"% of candidates with a smaller one, deviation {scale}"] = exact(100 * float(smaller))
    return all(share.value == 0 for share in shares.values()), shares


def depends_on_category(claim: Claim, results: Results) -> Judged:
    """Whether the pretext accuracy is not one in all categories: chi-squared test for queries of each kind."""
    numbers, chances = {}, []
    rows = results.rows.assign(right=results.rows["accuracy"] / 100 * results.rows["pairs"])
    for query, of_query in rows.groupby("query"):
        totals = of_query.groupby("category")[["right", "pairs"]].sum()
        table = [totals["right"], totals["pairs"] - totals["right"]]
        test = stats.chi2_contingency(table, correction=False)
        chances.append(test.pvalue)
        numbers |= {f"queries of {query}: chi-squared": exact(test.statistic), f"{query}, degrees": exact(test.dof),
                    f"{query}, p": exact(test.pvalue)}
    return HOLDS if all(chance < ERROR for chance in chances) else UNDECIDED, numbers


def sampled(results: Results) -> Results:
    """The rows of Table 3: accuracy by sampler, batch (M) and target."""
    rows = results.rows.melt("sampler", value_name="accuracy")
    rows[["target", "batch"]] = rows["variable"].str.split("_M", expand=True)
    return results._replace(rows=rows.astype({"batch": int}), apart=["sampler", "batch", "target"])


def chosen_post_hoc(results: Results) -> Results:
    """Categories of what samplers choose from the keys of finished encoders, which they share."""
    rows = results.rows.query("measure == 'categories' and posterior == 1")
    rows = rows[rows["step"] == rows["step"].max()]
    return results._replace(rows=rows, apart=["sampler", "frequency", "batch"], errors=PAIRED)


def by_tenth(results: Results) -> Results:
    """Mean categories of video in the first and the last tenth of the iterations; seeds share their pairs."""
    rows, apart = results.rows, ["sampler", "frequency", "tenth"]
    share = rows["step"] / rows["step"].max()
    tenths = pd.concat([rows[share <= EARLY].assign(tenth="first"), rows[share > LATE].assign(tenth="last")])
    means = tenths.groupby([*apart, "seed"], as_index=False)["categories_video"].mean()
    return results._replace(rows=means, apart=apart, errors=PAIRED)


def picked(results: Results) -> Results:
    """What samplers pick from one pool; picks are no runs of a seed, and samplers scatter unlike."""
    rows = results.rows.assign(seed=results.rows["pick"])
    return results._replace(rows=rows, apart=["sampler", "modality"], errors=OWN)


PREPARED = {
    "printed/cmacc_table3": sampled, "log/post_hoc_diversity_multiomniglot": chosen_post_hoc,
    "log/category_curves_multiomniglot": by_tenth, "log/selected_negatives_synthetic": picked,
}
RULES: dict[str, Rule] = {
    "random coverage": random_coverage, "active coverage": active_coverage, "comparable gains": comparable_gains,
    "best of all": best_of_all, "repeated numbers": repeated_numbers, "norms by similarity": norms_by_similarity,
    "pseudo-label is least": pseudo_label_is_least, "depends on category": depends_on_category,
}
