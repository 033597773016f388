"""What the JCL supplement says, as predicates over printed settings, closed forms and our cells."""

import functools

import torch
from pandas import DataFrame
from torch.nn.functional import normalize

from repro.papers.jcl.sampled_keys import sampled_keys
from repro.papers.jcl.tables import BASE, LONG_SWEEPS, SHORT_SWEEPS
from repro.report.evidence import Check, Estimates, Evidence, Setting, measured, of_log, unprinted
from repro.report.histograms import similarity_and_variance
from repro.report.levels import CLOSED, PRINTED
from repro.report.printed import printed
from repro.report.verdicts import (
    NOT_RUN,
    SEEDS_LIKE,
    Estimate,
    Finding,
    above,
    claims_of,
    different,
    exactly,
    over_seeds,
    within,
)

REPEATS = 100
CLOSE = 0.01  # nats
SLACK = 1.0  # point: how much better another value may be


@functools.cache
def simulated() -> DataFrame:
    """JCL's loss beside sampled keys, of random directions.

    Sixteen queries with five keys each, in 16 dimensions and among 64 negatives, so that keys of a query differ and its
    positive logit is of the size of what it competes with, as late in training; else all gaps are too small to see.
    """
    generator = torch.Generator().manual_seed(0)

    def unit(*size: int) -> torch.Tensor:
        return normalize(torch.randn(*size, generator=generator, dtype=torch.float64), dim=-1)

    views = normalize(unit(16, 1, 16) + 0.6 * unit(16, 6, 16), dim=-1)
    return sampled_keys(views[:, 0], views[:, 1:], unit(64, 16), BASE["temperature"], BASE["strength"],
                        generator=generator, counts=(1, 16, 256, 4096), repeats=REPEATS)


def gap(table: DataFrame, name: str, keys: int) -> Estimate:
    """The closed form minus a sampled loss with that many keys, over the repeats."""
    row = table.set_index("keys").loc[keys]
    error = float(row[f"{name}_std"]) / REPEATS**0.5
    return Estimate(float(row["closed_form"] - row[name]), error, REPEATS - 1, f"{REPEATS} draws")


def upper_bound(evidence: Evidence) -> Finding:
    found = {"expected InfoNCE": gap(simulated(), "outside", 4096)}
    return Finding(above(found), CLOSED, f"closed form {_nats(simulated())} nats; above {_told(found)}")


def limit_of_many_keys(evidence: Evidence) -> Finding:
    table = simulated()
    found = {"4096 keys": gap(table, "inside", 4096)}
    gaps = ", ".join(f"{row.closed_form - row.inside:.4f} with {row.keys}" for row in table.itertuples())
    return Finding(within(found, CLOSE), CLOSED, f"closed form {_nats(table)} nats, minus the mean inside the "
                   f"logarithm: {gaps}")


def upper_bound_here(evidence: Evidence) -> Finding:
    """The same bound on the features of a trained model, as its log has it."""
    for log in evidence.logs("sampled_keys"):
        found = {"expected InfoNCE": gap(log, "outside", int(log["keys"].max()))}
        return of_log(log, above(found), f"closed form {_nats(log)} nats; above {_told(found)}")
    return Finding(NOT_RUN, "", "no log of positive_keys")


def settings_agree(evidence: Evidence) -> Finding:
    """Whether the three panels of Fig. M.2 hold the same values."""
    table = printed("jcl_ablation_settings").set_index("figure")
    kept = {name: sorted(set(table[name]) - {"varied"}) for name in ("M_prime", "lambda", "tau")}
    varied = (table == "varied").sum()
    told = ", ".join(f"{name} {' and '.join(values)}" for name, values in kept.items())
    return exactly(all(len(values) == 1 for values in kept.values()) and bool((varied == 1).all()), PRINTED, told)


def settings_of_histograms(evidence: Evidence) -> Finding:
    """Fig. M.3 beside the values that Fig. M.2 holds."""
    shown = printed("jcl_hyperparameters").query("experiment == 'visualisation'").set_index("key")["value"]
    table = printed("jcl_ablation_settings")
    kept = {name: float((set(table[name]) - {"varied"}).pop()) for name in ("M_prime", "lambda", "tau")}
    other = [name for name, value in kept.items() if float(shown[name]) != value]
    told = ", ".join(f"{name} {float(shown[name]):g} and {value:g}" for name, value in kept.items())
    return exactly(other == ["M_prime"], PRINTED, told)


def whole_batches(evidence: Evidence) -> Finding:
    settings = printed("jcl_hyperparameters").set_index(["experiment", "key"])["value"]
    queue = int(settings["imagenet1k_pretrain", "queue_size"])
    batches = [int(settings["imagenet1k_pretrain", "dequeue_per_step"]), int(settings["ablation", "batch"])]
    told = " and ".join(f"{queue / batch:g} steps of {batch}" for batch in batches)
    return exactly(all(queue % batch == 0 for batch in batches), PRINTED, f"{queue} keys are {told}")


def kept_value(setting: Setting, varied: str) -> Estimates:
    """The value kept elsewhere minus every other one of the preset's sweep, and of what else was run."""
    base = {"method": "jcl", **BASE}
    rows = setting.rows("positive_keys", **{name: value for name, value in base.items() if name != varied})
    if rows.empty:
        return {}
    swept = (LONG_SWEEPS if setting.preset == "paper" else SHORT_SWEEPS)[varied]
    others = sorted({*swept, *rows[varied]} - {BASE[varied]})
    return {f"{BASE[varied]:g} over {value:g}": setting.difference(
        "positive_keys", base, base | {varied: value}, like=("image_methods",)) for value in others}


def similarities_differ(evidence: Evidence) -> Finding:
    """JCL minus MoCo v2, mean over images, by seed."""
    for log in evidence.logs("similarity_variance_images"):
        log = log.assign(seed=log.get("seed", 0))
        means = log.groupby(["seed", "model"])["similarity"].mean().unstack("model").dropna()
        if {"JCL", "MoCo v2"} <= set(means) and len(means):
            found = {"JCL minus MoCo v2": over_seeds(means["JCL"] - means["MoCo v2"])}
            return of_log(log, different(found), f"mean similarity, {_told(found)}")
    return Finding(NOT_RUN, "", "no log of similarity_variance")


def second_histogram(evidence: Evidence) -> Finding:
    """Whether the mean variance tells more than the mean similarity, of which it is (1 - a)/d."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(64, 32, 128, generator=generator, dtype=torch.float64) + 1
    unit = normalize(features, dim=2)
    variance = unit.var(dim=1, correction=0).mean(1)
    similarity, _ = similarity_and_variance(features)
    worst = float((variance - (1 - similarity) / 128).abs().max())
    return exactly(worst > 1e-12, CLOSED, f"64 x 32 random features: variance minus (1 - similarity)/d is at most "
                   f"{worst:.1g}")


def scatter_on_the_diagonal(evidence: Evidence) -> Finding:
    """Whether the diagonal of the covariance, summed, is the mean squared distance of features from their mean."""
    generator = torch.Generator().manual_seed(0)
    unit = normalize(torch.randn(64, 32, 128, generator=generator, dtype=torch.float64) + 1, dim=2)
    distances = (unit - unit.mean(1, keepdim=True)).square().sum(2).mean(1)
    worst = float((128 * similarity_and_variance(unit)[1] - distances).abs().max())
    return exactly(worst < 1e-12, CLOSED, f"64 x 32 random features: d times the mean diagonal is the mean squared "
                   f"distance from the mean but for {worst:.1g}")


def over_vanilla(setting: Setting) -> Estimates:
    sides = ({"method": name, "keys": BASE["keys"]} for name in ("jcl", "vanilla"))
    return {"JCL over vanilla": setting.difference("image_methods", *sides)}


def _nats(table: DataFrame) -> str:
    return f"{table['closed_form'].iloc[0]:.3f}"


def _told(found: Estimates) -> str:
    return "; ".join(f"{name} by {each.in_words(4)}" for name, each in found.items() if each is not None)


def _curve(panel: str) -> Check:
    return functools.partial(unprinted, table=f"jcl_figure_m2{panel}", what="the curve's values are in the main paper")


def _kept(varied: str) -> Check:
    return measured(("positive_keys",), functools.partial(kept_value, varied=varied),
                    functools.partial(above, margin=-SLACK))


NONE_BETTER = f"its accuracy minus that of every other value of the preset's sweep > -{SLACK:g} point; {SEEDS_LIKE}"
_claim = claims_of("JCL", "J", "supplement, ")
CLAIMS = [
    _claim(
        1, "Eq. M.8", "The closed form is an upper bound of the expected InfoNCE with Gaussian keys.",
        f"simulated, {REPEATS} draws of 4,096 keys: closed form minus mean InfoNCE > 0; one-sided t test, 5 %",
        upper_bound, "sampled_keys",
    ),
    _claim(
        2, "Eq. M.8", "The closed form stands for infinitely many positive keys.",
        f"simulated: the loss with the mean of 4,096 keys inside the logarithm is within {CLOSE:g} nats of it; two "
        "one-sided t tests, 5 %", limit_of_many_keys, "sampled_keys",
    ),
    _claim(
        3, "Eq. M.8", "The closed form is an upper bound of the expected InfoNCE (features trained here).",
        f"queries, keys and dictionary of a trained model, {REPEATS} draws of 4,096 keys: closed form minus mean "
        "InfoNCE > 0; one-sided t test, 5 %", upper_bound_here, "sampled_keys",
    ),
    _claim(
        4, "Fig. M.2", "Each ablation varies one of M', lambda and tau and keeps the others.",
        "printed: one panel varies each, and the others keep one value of it", settings_agree, "positive_keys",
    ),
    _claim(
        5, "Fig. M.3", "The histograms are of the ablations' temperature and strength, with other keys.",
        "printed: tau and lambda are those kept in Fig. M.2, M' is not", settings_of_histograms,
        "similarity_variance_images",
    ),
    _claim(
        6, "settings", "The queue holds a whole number of batches, so that each step replaces its oldest one.",
        "printed: 65,536 is a whole number of batches, of 256 and of 128", whole_batches,
    ),
    _claim(
        7, "Fig. M.2(a)", "The accuracy depends on the number of positive keys as drawn.",
        "agreement with the printed curve", _curve("a"), "positive_keys",
    ),
    _claim(
        8, "Fig. M.2(b)", "The accuracy depends on lambda as drawn.",
        "agreement with the printed curve", _curve("b"), "positive_keys",
    ),
    _claim(
        9, "Fig. M.2(c)", "The accuracy depends on tau as drawn.",
        "agreement with the printed curve", _curve("c"), "positive_keys",
    ),
    _claim(
        10, "Fig. M.2", "M' = 5 is kept in the other ablations (trained here: no other number is clearly better).",
        NONE_BETTER, _kept("keys"), "positive_keys",
    ),
    _claim(
        11, "Fig. M.2", "lambda = 4 is kept in the other ablations (trained here: no other value is clearly better).",
        NONE_BETTER, _kept("strength"), "positive_keys",
    ),
    _claim(
        12, "Fig. M.2", "tau = 0.2 is kept in the other ablations (trained here: no other value is clearly better).",
        NONE_BETTER, _kept("temperature"), "positive_keys",
    ),
    _claim(
        13, "Fig. M.3(a)", "The similarity of an image's augmentations sets JCL apart from MoCo v2 (trained here).",
        "mean over images, JCL minus MoCo v2 is not 0; two-sided t test over seeds, 5 %", similarities_differ,
        "similarity_variance_images",
    ),
    _claim(
        14, "Fig. M.3", "The variance of augmentations, histogram (b), shows something beside their similarity, (a).",
        "the variance is no function of the similarity: it departs from (1 - a)/d by more than 1e-12",
        second_histogram, "similarity_variance_images", identity=True,
    ),
    _claim(
        15, "data", "The hundred classes were randomly sampled.", "how they were drawn",
        functools.partial(
            unprinted, table="jcl_class_draw", what="a list does not tell how it was drawn, and no record does"),
    ),
    _claim(
        16, "text", "At equal memory JCL is more accurate than the vanilla loss (trained here).",
        "taken to mean: with as many positive keys, five, averaged outside the logarithm; JCL minus vanilla > 0; "
        f"{SEEDS_LIKE}", measured(("image_methods",), over_vanilla, above), "image_methods",
    ),
    _claim(
        17, "section 5", "The diagonal values of the covariance tell how far an image's augmentations scatter.",
        "their sum is the mean squared distance of the features from their mean, within 1e-12",
        scatter_on_the_diagonal, "similarity_variance_images", identity=True,
    ),
]
