"""What the CM-ACC paper says: its sentences, and predicates over our cells."""

import math
from collections.abc import Iterable
from functools import partial

from scipy import stats

from repro.papers.cmacc import claims_printed as tables
from repro.papers.cmacc.claims_printed import BATCHES, TARGETS
from repro.report.evidence import Check, Estimates, Evidence, Setting, measured, of_log
from repro.report.verdicts import (
    ERROR,
    HOLDS,
    NOT_RUN,
    SEEDS,
    UNDECIDED,
    Estimate,
    Finding,
    above,
    below,
    claims_of,
    over_seeds,
    within,
)

APPROACHES = {  # fields of a recipe
    "Scratch": {"method": "scratch"},
    "SMoCo": {"method": "smoco"},
    "XMoCo (w/o fcl)": {"method": "xmoco", "extra_layer": False},
    "XMoCo": {"method": "xmoco", "extra_layer": True},
    "CM-ACC (w/o fcl)": {"method": "cmacc", "extra_layer": False, "sampler": "gradient"},
    "CM-ACC": {"method": "cmacc", "extra_layer": True, "sampler": "gradient"},
    "CM-ACC, features": {"method": "cmacc", "extra_layer": True, "sampler": "feature"},
}
METHODS = {"SMoCo": "smoco", "XMoCo": "xmoco", "CM-ACC": "cmacc"}
ACROSS = (("XMoCo (w/o fcl)", "SMoCo"),)
LAYER = (("XMoCo", "XMoCo (w/o fcl)"), ("CM-ACC", "CM-ACC (w/o fcl)"))
ACTIVE = (("CM-ACC", "XMoCo"),)
WITHIN_OVER_SCRATCH = (("SMoCo", "Scratch"),)
ACROSS_OVER_SCRATCH = tuple((name, "Scratch") for name in APPROACHES if name not in ("SMoCo", "Scratch"))
SAVING, LARGE = 2048, 10_000  # sizes about which dictionaries are said to be large enough, and too large
CLOSE = 3.0  # points: accuracies called about equal


def coverage_here(setting: Setting, other: str, batches: tuple[int, ...]) -> Estimates:
    """Gradient embeddings against another sampler, categories of both modalities."""
    return {
        f"{modality}, M = {batch}": setting.difference(
            "category_diversity", {"sampler": "gradient", "batch": batch}, {"sampler": other, "batch": batch},
            f"categories_{modality}")
        for batch in batches for modality in ("video", "audio")
    }


def similar_early(evidence: Evidence) -> Finding:
    """The first tenth of the curves of `category_curves`, gradient against random."""
    for log in evidence.logs("category_curves"):
        early = log[(log["step"] <= log["step"].max() / 10) & log["sampler"].isin(["gradient", "random"])]
        means = early.groupby(["batch", "seed", "sampler"])["categories_video"].mean().unstack("sampler").dropna()
        if set(means) == {"gradient", "random"} and len(means):
            shares = 100 * (means["gradient"] - means["random"]) / means.index.get_level_values("batch")
            found = {f"M = {batch}": over_seeds(rows) for batch, rows in shares.groupby(level="batch")}
            told = "; ".join(f"{name} {each}" for name, each in found.items())
            return of_log(log, within(found, 5.0), f"{told} % of M")
    return Finding(NOT_RUN, "", "no log of category_diversity")


def growing_diversity(evidence: Evidence) -> Finding:
    """The last tenth of the curves of `category_curves` against the first, of gradient embeddings."""
    for log in evidence.logs("category_curves"):
        log = log[log["sampler"] == "gradient"]
        if len(log):
            share = log["step"] / log["step"].max()
            first, last = (log[part].groupby(["batch", "seed"])["categories_video"].mean()
                           for part in (share <= 0.1, share > 0.9))
            found = {f"M = {batch}": over_seeds(rows) for batch, rows in (last - first).groupby(level="batch")}
            told = "; ".join(f"{name} {each}" for name, each in found.items())
            return of_log(log, above(found), f"last minus first, {told}")
    return Finding(NOT_RUN, "", "no log of category_diversity")


def categories_differ(evidence: Evidence) -> Finding:
    """Whether the pretext accuracy is one in all categories, by a chi-squared test for queries of each kind."""
    for log in evidence.logs("pretext_accuracy"):
        counted = log.assign(right=log["accuracy"] / 100 * log["pairs"])
        found = {}
        for query, rows in counted.groupby("query"):
            totals = rows.groupby("category")[["right", "pairs"]].sum()
            share = totals["right"].sum() / totals["pairs"].sum()
            spread = (totals["right"] - share * totals["pairs"]) ** 2 / (share * (1 - share) * totals["pairs"])
            found[query] = (spread.sum(), len(totals) - 1, float(stats.chi2.sf(spread.sum(), len(totals) - 1)))
        told = "; ".join(f"queries of {query}: chi-squared {value:.0f} with {freedom} degrees of freedom, p = {p:.2g}"
                         for query, (value, freedom, p) in found.items())
        differ = all(p < ERROR for *_, p in found.values())
        return of_log(log, HOLDS if differ else UNDECIDED, told)
    return Finding(NOT_RUN, "", "no log of pretext_accuracy")


def norms_of_picks(evidence: Evidence, first: str, second: str) -> Finding:
    """Gradient norms of what one sampler picks minus those of another's, from one pool; of both modalities."""
    for log in evidence.logs("selected_negatives"):
        norms = log.groupby(["modality", "sampler"])["gradient_norm"].agg(["mean", "sem", "count"])
        if {first, second} <= set(log["sampler"]):
            found = {}
            for modality in log["modality"].unique():
                one, other = (norms.loc[modality, name] for name in (first, second))
                picks = f"{one['count']:.0f} against {other['count']:.0f} picks"
                found[modality] = Estimate(one["mean"] - other["mean"], math.hypot(one["sem"], other["sem"]),
                                           min(one["count"], other["count"]) - 1, picks)
            told = "; ".join(f"{modality} {each}" for modality, each in found.items())
            return of_log(log, above(found), f"{first} minus {second}, {told}")
    return Finding(NOT_RUN, "", "no log of selected_negatives")


def by_characters(setting: Setting, first: str, second: str, characters: Iterable[int]) -> Estimates:
    """One method minus another at some numbers of characters."""
    return {f"{number} characters": setting.difference(
        "mutual_information", {"method": METHODS[first], "characters": number},
        {"method": METHODS[second], "characters": number}) for number in characters}


def easy_grids(setting: Setting) -> Estimates:
    """Every method with one and two characters, against 99 %."""
    found = {}
    for name, method in METHODS.items():
        for number in (1, 2):
            values = setting.values("mutual_information", method=method, characters=number) - 99
            deviation = setting.deviation("mutual_information")
            error = deviation.value / math.sqrt(max(len(values), 1))
            known = Estimate(float(values.mean()), error, deviation.freedom, f"{len(values)} runs")
            found[f"{name}, {number}"] = known if len(values) else None
    return found


def unimodal_drop(setting: Setting) -> Estimates:
    sides = ({"method": "smoco", "characters": number} for number in (2, 3))
    return {"two minus three characters": setting.difference("mutual_information", *sides)}


def best_on_grids(setting: Setting) -> Estimates:
    found = {}
    for other in ("SMoCo", "XMoCo"):
        rows = by_characters(setting, "CM-ACC", other, range(3, 10))
        found |= {f"over {other}, {name}": estimate for name, estimate in rows.items()}
    return found


def dictionary_steps(setting: Setting, methods: tuple[str, ...], past: bool) -> Estimates:
    """Accuracy at a larger dictionary minus that at a smaller one, on every target.

    Args:
        past: the largest size beyond `LARGE` against the largest up to it; else the largest up to `SAVING` against the
            smallest. Nothing where there are no such sizes.
    """
    found = {}
    for name in methods:
        rows = setting.rows("dictionary_size", method=METHODS[name])
        sizes = sorted(set(rows["dictionary"])) if len(rows) else []
        smaller = [size for size in sizes if size <= (LARGE if past else SAVING)]
        lower, upper = (smaller[-1:], sizes[-1:]) if past else (sizes[:1], smaller[-1:])
        if lower and upper and lower < upper:
            sides = [{"method": METHODS[name], "dictionary": size} for size in (*upper, *lower)]
            for target in setting.targets("dictionary_size"):
                step = f"{name}, {target}, {lower[0]} to {upper[0]} keys"
                found[step] = setting.difference("dictionary_size", *sides, target)
    return found


def approaches_here(setting: Setting, pairs: tuple[tuple[str, str], ...]) -> Estimates:
    """The first approach of each pair minus the second, on every target."""
    return {
        f"{first} over {second}, {target}": setting.difference(
            "cross_modal", APPROACHES[first], APPROACHES[second], target)
        for first, second in pairs for target in setting.targets("cross_modal")
    }


def samplers_here(setting: Setting, first: str, second: str) -> Estimates:
    return {
        f"M = {batch}, {target}": setting.difference(
            "ohem_vs_active", {"sampler": first, "batch": batch}, {"sampler": second, "batch": batch}, target)
        for batch in BATCHES for target in setting.targets("ohem_vs_active")
    }


def shrinking_gap_here(setting: Setting) -> Estimates:
    """By how much the gap between active negatives and OHEM's is smaller at M = 128 than at 32, by shared seeds."""
    found = {}
    for target in setting.targets("ohem_vs_active"):
        narrow, wide = (
            setting.values("ohem_vs_active", target, sampler="gradient", batch=batch)
            - setting.values("ohem_vs_active", target, sampler="ohem", batch=batch) for batch in (128, 32))
        shrinks = (wide - narrow).dropna()
        found[f"{target}, M = 32 to 128"] = over_seeds(shrinks) if len(shrinks) else None
    return found


def _here(table: str, compare, judge=above, *, numbers: bool = False, datasets: tuple[str, ...] = (), **given) -> Check:
    """A check of the cells of a table; `given` goes to what compares."""
    return measured((table,), partial(compare, **given), judge, datasets=datasets, numbers=numbers)


OMNIGLOT = {"datasets": ("multiomniglot",)}
VIEW = "the paper does not define SMoCo's views; up to version 4 of the training they are the same characters drawn by "
VIEW += "others, which are labels"
POSTERIOR = "up to version 4 of the training the quick recipe's Eq. 4 has a temperature of 0.07, the paper's has none"
_claim = claims_of("CM-ACC", "C")
CLAIMS = [
    _claim(
        1, "Fig. 2", "At M = 128 randomly sampled negatives cover 30 to 40 % of the UCF101 categories.",
        "the expectation of 128 uniform draws from 101 equally frequent categories lies between 30 and 40 % of them",
        tables.random_coverage, "category_diversity", "category_curves",
    ),
    _claim(
        2, "Fig. 2", "At M = 128 active selection, with 60 to 70 %, covers more categories than random sampling.",
        "uniform draws from 101 equally frequent categories cover less in expectation than the most claimed, 70 %",
        tables.active_coverage, "category_diversity", "category_curves",
    ),
    _claim(
        3, "Fig. 2", "At M = 128 active selection on gradients covers more categories than random sampling (trained "
        "here).", f"categories, gradient minus random > 0 for both modalities; {SEEDS}; {POSTERIOR}",
        _here("category_diversity", coverage_here, other="random", batches=(128,)), "category_diversity",
    ),
    _claim(
        4, "Fig. 4", "Active selection on gradients covers more categories than random sampling for every M (trained "
        "here).", f"categories, gradient minus random > 0 for M = 32, 64, 128 and both modalities; {SEEDS}; "
        f"{POSTERIOR}",
        _here("category_diversity", coverage_here, other="random", batches=BATCHES), "category_diversity",
    ),
    _claim(
        5, "Fig. 2", "Gradient embeddings select more diverse negatives than feature embeddings for every M (trained "
        "here).", f"categories, gradient minus feature > 0 for M = 32, 64, 128 and both modalities; {SEEDS}; "
        f"{POSTERIOR}",
        _here("category_diversity", coverage_here, other="feature", batches=BATCHES), "category_diversity",
    ),
    _claim(
        6, "Fig. 2", "Early in training, random and active negatives are about equally diverse (trained here).",
        "first tenth of the iterations, video: gradient minus random within 5 % of M; two one-sided t tests over seeds",
        similar_early, "category_curves",
    ),
    _claim(
        7, "Fig. 3a", "With fewer than three characters all methods reach about 99 %.",
        "mean accuracy within 2 points of 99 %, three methods, one and two characters; two one-sided t tests",
        _here("mutual_information", easy_grids, partial(within, tolerance=2.0), numbers=True, **OMNIGLOT),
        "mutual_information",
    ),
    _claim(
        8, "Fig. 3a", "From three characters on, SMoCo becomes less accurate (trained here).",
        f"accuracy with two characters minus that with three > 0; {SEEDS}; {VIEW}",
        _here("mutual_information", unimodal_drop, **OMNIGLOT), "mutual_information",
    ),
    _claim(
        9, "Fig. 3a", "With one to five characters XMoCo is more accurate than SMoCo (trained here).",
        f"XMoCo minus SMoCo > 0 at each number; {SEEDS}; {VIEW}",
        _here("mutual_information", by_characters, first="XMoCo", second="SMoCo", characters=range(1, 6), **OMNIGLOT),
        "mutual_information",
    ),
    _claim(
        10, "Fig. 3a", "With six to nine characters XMoCo and SMoCo are about equal (trained here).",
        f"XMoCo minus SMoCo within {CLOSE:g} points at each number; two one-sided t tests; {VIEW}",
        _here("mutual_information", by_characters, partial(within, tolerance=CLOSE), first="XMoCo",
              second="SMoCo", characters=range(6, 10), **OMNIGLOT), "mutual_information",
    ),
    _claim(
        11, "Fig. 3a", "Active selection is best (trained here).",
        f"CM-ACC minus SMoCo, and minus XMoCo, > 0 from three characters on, where not all are at 99 %; {SEEDS}; "
        f"{VIEW}",
        _here("mutual_information", best_on_grids, **OMNIGLOT), "mutual_information",
    ),
    _claim(
        12, "Fig. 3b", "Dictionaries of up to about 1,000 keys help all methods (trained here).",
        f"accuracy at the largest size of at most {SAVING} minus that at the smallest > 0, three methods; {SEEDS}",
        _here("dictionary_size", dictionary_steps, methods=tuple(METHODS), past=False), "dictionary_size",
    ),
    _claim(
        13, "Fig. 3b", "Beyond about 10,000 keys SMoCo and XMoCo deteriorate (trained here).",
        f"accuracy at the largest size beyond {LARGE} minus that at the largest up to it < 0; {SEEDS}",
        _here("dictionary_size", dictionary_steps, below, methods=("SMoCo", "XMoCo"), past=True),
        "dictionary_size",
    ),
    _claim(
        14, "Fig. 3b", "Beyond about 10,000 keys active selection does not deteriorate (trained here).",
        f"accuracy of CM-ACC at the largest size beyond {LARGE} minus that at the largest up to it > -1 point; {SEEDS}",
        _here("dictionary_size", dictionary_steps, partial(above, margin=-1.0), methods=("CM-ACC",),
              past=True), "dictionary_size",
    ),
    _claim(
        15, "Table 1", "Contrast across modalities beats contrast within.",
        "printed: XMoCo without fcl minus SMoCo > 0 on three targets",
        partial(tables.printed_approaches, pairs=ACROSS), "cross_modal",
    ),
    _claim(
        16, "Table 1", "Contrast across modalities beats contrast within (trained here).",
        f"XMoCo without fcl minus SMoCo > 0 on every target; {SEEDS}",
        _here("cross_modal", approaches_here, pairs=ACROSS), "cross_modal",
    ),
    _claim(
        17, "Table 1", "The extra layer helps XMoCo and CM-ACC.",
        "printed: with minus without fcl > 0 on three targets",
        partial(tables.printed_approaches, pairs=LAYER), "cross_modal",
    ),
    _claim(
        18, "Table 1", "The extra layer helps XMoCo and CM-ACC (trained here).",
        f"with minus without fcl > 0 on every target; {SEEDS}",
        _here("cross_modal", approaches_here, pairs=LAYER), "cross_modal",
    ),
    _claim(
        19, "Table 1", "Active negatives beat random ones.", "printed: CM-ACC minus XMoCo > 0 on three targets",
        partial(tables.printed_approaches, pairs=ACTIVE), "cross_modal",
    ),
    _claim(
        20, "Table 1", "Active negatives beat random ones (trained here).",
        f"CM-ACC minus XMoCo > 0 on every target; {SEEDS}; {POSTERIOR}",
        _here("cross_modal", approaches_here, pairs=ACTIVE), "cross_modal",
    ),
    _claim(
        21, "Table 1", "The printed gains.", "each is the difference of the two rows it names, to one digit",
        tables.printed_gains, "cross_modal",
    ),
    _claim(
        22, "Table 2", "Selection on gradient embeddings beats selection on features.",
        "printed: gradient minus feature > 0 on three targets", tables.printed_embeddings, "cross_modal",
    ),
    _claim(
        23, "Table 2", "Selection on gradient embeddings beats selection on features (trained here).",
        f"gradient minus feature > 0 on every target; {SEEDS}; {POSTERIOR}",
        _here("cross_modal", approaches_here, pairs=(("CM-ACC", "CM-ACC, features"),)), "cross_modal",
    ),
    _claim(
        24, "Table 3", "Active selection beats random sampling for every M.",
        "printed: difference > 0 for M = 32, 64, 128 on two targets",
        partial(tables.printed_samplers, first="Active", second="Random"), "ohem_vs_active",
    ),
    _claim(
        25, "Table 3", "Active selection beats random sampling for every M (trained here).",
        f"difference > 0 for M = 32, 64, 128 on every target; {SEEDS}; {POSTERIOR}",
        _here("ohem_vs_active", samplers_here, first="gradient", second="random"), "ohem_vs_active",
    ),
    _claim(
        26, "Table 3", "OHEM's negatives, as printed those least like any query, are worse than random ones for every "
        "M.",
        "printed: random minus OHEM > 0 for M = 32, 64, 128 on two targets",
        partial(tables.printed_samplers, first="Random", second="OHEM"), "ohem_vs_active",
    ),
    _claim(
        27, "Table 3", "OHEM's negatives, as printed those least like any query, are worse than random ones for every "
        "M (trained here).",
        f"random minus OHEM > 0 for M = 32, 64, 128 on every target; {SEEDS}",
        _here("ohem_vs_active", samplers_here, first="random", second="ohem"), "ohem_vs_active",
    ),
    _claim(
        28, "Table 3", "More negatives help every sampler.",
        "printed: accuracy rises from M = 32 to 64 to 128, three samplers, two targets", tables.printed_batches,
        "ohem_vs_active",
    ),
    _claim(
        29, "Table 4", "CM-ACC is the best self-supervised method on UCF101 and HMDB51.",
        "printed: its highest accuracy exceeds that of every other self-supervised row, on both",
        tables.state_of_the_art, "transfer",
    ),
    _claim(
        30, "Table 4", "The printed gains are over the best comparable method.",
        "each is positive, and its number minus the best of other self-supervised rows with as many clips (N/A counted "
        "as 240K, 14K beside UCF/HMDB), to one digit",
        partial(tables.comparable_gains, number=4, targets=TARGETS[:2]), "transfer",
    ),
    _claim(
        31, "Table 4", "CM-ACC beats the best other method also with that method's network.",
        "printed: R(2+1)D-18 on AudioSet 1.8M minus the best other such row > 0, on both", tables.same_network,
        "transfer",
    ),
    _claim(
        32, "Table 5", "The printed gains are over the best comparable method.",
        "each is positive, and its number minus the best of other self-supervised rows with as many clips (N/A counted "
        "as 240K), to one digit", partial(tables.comparable_gains, number=5, targets=["ESC50"]), "transfer",
    ),
    _claim(
        33, "Table 6", "More pre-training data make CM-ACC more accurate.",
        "printed: accuracy rises from 22K to 240K to 1.8M clips on three targets", tables.more_data, "transfer",
    ),
    _claim(
        34, "Table 6", "Pre-trained on 1.8M clips CM-ACC beats supervised pre-training on Kinetics-400.",
        "printed: difference > 0 on three targets", tables.over_supervised, "transfer",
    ),
    _claim(
        35, "Tables 1, 4, 5 and 6", "Table 6 repeats the numbers of the other tables.",
        "printed: its nine CM-ACC numbers equal those of the same training elsewhere (3D-ResNet-18)",
        tables.repeated_numbers, "transfer",
    ),
    _claim(
        36, "Fig. 5", "Of the three negatives shown, the two of music have far larger gradients than riding a camel.",
        "printed: both norms exceed ten times the third", tables.printed_norms,
    ),
    _claim(
        37, "text and Eq. 4", "Easy negatives, unlike the query, have small gradients.",
        "Eq. 4 and 5 as printed, simulated with keys of one length (1, 4 and 16): mean norm near a query above that of "
        "random keys, at each length", tables.norms_by_similarity,
    ),
    _claim(
        38, "settings", "The dictionary holds 30 batches and the pool 300.", "printed: 3,840 and 38,400 with M = 128",
        tables.multiples,
    ),
    _claim(
        39, "Spatial-MultiOmniglot", "The mutual information of a pair is the sum of the logarithms of the alphabets' "
        "sizes.", "running sum of ln of the nine sizes, to four digits", tables.mutual_information, identity=True,
    ),
    _claim(
        40, "Fig. 5", "Negatives unlike any query have smaller gradients than others (trained here).",
        "picks from one pool: norms of random ones minus those of OHEM's, which as printed are the least like any "
        f"query, > 0 for both modalities; one-sided t test over picks, 5 %; {POSTERIOR}",
        partial(norms_of_picks, first="random", second="ohem"), "selected_negatives",
    ),
    _claim(
        41, "Fig. 5", "Active selection picks negatives of larger gradients than random sampling (trained here).",
        "picks from one pool: norms of those selected on gradients minus those of random ones > 0 for both modalities; "
        f"one-sided t test over picks, 5 %; {POSTERIOR}",
        partial(norms_of_picks, first="gradient", second="random"), "selected_negatives",
    ),
    _claim(
        42, "Fig. 6", "How often a positive ranks first depends on the category (trained here).",
        "the accuracy is not the same in all categories, for queries of both kinds; chi-squared test, 5 %",
        categories_differ, "pretext_accuracy",
    ),
    _claim(
        43, "Table 1", "All self-supervised pre-training beats training from scratch.",
        "printed: each of five approaches minus Scratch > 0 on three targets", tables.above_scratch, "cross_modal",
    ),
    _claim(
        44, "Table 1", "Self-supervised pre-training within a modality beats training from scratch (trained here).",
        f"SMoCo minus Scratch > 0 on every target; {SEEDS}",
        _here("cross_modal", approaches_here, pairs=WITHIN_OVER_SCRATCH), "cross_modal",
    ),
    _claim(
        45, "Table 1", "Self-supervised pre-training across modalities beats training from scratch (trained here).",
        f"each of five approaches minus Scratch > 0 on every target; {SEEDS}",
        _here("cross_modal", approaches_here, pairs=ACROSS_OVER_SCRATCH), "cross_modal",
    ),
    _claim(
        46, "Table 3", "Active selection beats OHEM for every M.",
        "printed: difference > 0 for M = 32, 64, 128 on two targets",
        partial(tables.printed_samplers, first="Active", second="OHEM"), "ohem_vs_active",
    ),
    _claim(
        47, "Table 3", "Active selection beats OHEM for every M (trained here).",
        f"difference > 0 for M = 32, 64, 128 on every target; {SEEDS}; {POSTERIOR}",
        _here("ohem_vs_active", samplers_here, first="gradient", second="ohem"), "ohem_vs_active",
    ),
    _claim(
        48, "Table 3", "The gap between active selection and OHEM shrinks with M.",
        "printed: the difference falls from M = 32 to 64 to 128 on two targets", tables.shrinking_gap,
        "ohem_vs_active",
    ),
    _claim(
        49, "Table 3", "The gap between active selection and OHEM shrinks with M (trained here).",
        "the difference at M = 32 minus that at 128 > 0 on every target; one-sided t test over shared seeds, 5 %; "
        f"{POSTERIOR}", _here("ohem_vs_active", shrinking_gap_here), "ohem_vs_active",
    ),
    _claim(
        50, "Fig. 2", "The diversity of actively selected negatives grows with training (trained here).",
        "categories of video, gradient embeddings: last tenth of the iterations minus the first > 0 for every M; "
        f"one-sided t test over seeds, 5 %; {POSTERIOR}", growing_diversity, "category_curves",
    ),
]
