"""What the JCL supplement says, and where it disagrees: held against settings, closed forms and our cells."""

import functools

import torch
from pandas import DataFrame
from torch.nn.functional import normalize

from repro.contrast.objectives import info_nce, jcl
from repro.papers import predicates
from repro.papers.jcl.sampled_keys import REPEATS, sampled_keys
from repro.papers.jcl.tables import BASE, LONG_SWEEPS, SHORT_SWEEPS
from repro.report import verdicts
from repro.report.evidence import Check, Estimates, Evidence, Setting, measured
from repro.report.histograms import similarity_and_variance
from repro.report.printed import printed

RUN = ("image_methods", "positive_keys", "temperature_grid")
JCL = {"method": "jcl", **BASE}
CLOSE = 0.01  # nats
SLACK = 1.0  # point: how much better another value may be
NONE_BETTER = f"its accuracy minus that of every other value of the preset's sweep > -{SLACK:g} point; "
NONE_BETTER += predicates.TEXTS["SEEDS_LIKE"]
UNPRINTED_CURVE = predicates.unprinted("the curve's values are in the main paper")
HELD = ["M_prime", "lambda", "tau"]  # in two of the three panels of Fig. M.2


def _random(*size: int) -> torch.Tensor:
    """Normal numbers, the same ones each time."""
    return torch.randn(*size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


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
                        generator=generator, counts=(1, 16, 256, 1024))


def gap(table: DataFrame, name: str) -> verdicts.Estimate:
    """The closed form minus a sampled loss with most keys, over the repeats."""
    row = table.loc[table["keys"].idxmax()]
    repeats = int(row["repeats"])
    error = float(row[f"{name}_std"]) / repeats**0.5
    return verdicts.Estimate(float(row["closed_form"] - row[name]), error, repeats - 1, f"{repeats} draws")


def upper_bound(table: DataFrame) -> tuple[str, str]:
    """Of random directions, or of the features of a trained model, as its log has it."""
    above = gap(table, "outside")
    numbers = f"closed form {table['closed_form'].iloc[0]:.3f} nats; above expected InfoNCE by {above.in_words(4)}"
    return verdicts.above({"": above}), numbers


def limit_of_many_keys() -> predicates.Exact:
    table = simulated()
    gaps = ", ".join(f"{row.closed_form - row.inside:.4f} with {row.keys}" for row in table.itertuples())
    numbers = f"closed form {table['closed_form'].iloc[0]:.3f} nats, minus the mean inside the logarithm: {gaps}"
    return verdicts.within({"1024 keys": gap(table, "inside")}, CLOSE), numbers


def _held(name: str) -> list[str]:
    """The values that the panels of Fig. M.2 hold of one quantity."""
    return sorted(set(printed("jcl_ablation_settings")[name]) - {"varied"})


def _settings(experiment: str) -> dict[str, str]:
    table = printed("jcl_hyperparameters")
    return table[table["experiment"] == experiment].set_index("key")["value"].to_dict()


def settings_agree() -> predicates.Exact:
    """Whether the three panels of Fig. M.2 hold the same values."""
    varied = (printed("jcl_ablation_settings").set_index("figure") == "varied").sum()
    numbers = ", ".join(f"{name} {' and '.join(_held(name))}" for name in HELD)
    return all(len(_held(name)) == 1 for name in HELD) and bool((varied == 1).all()), numbers


def settings_of_histograms() -> predicates.Exact:
    """Fig. M.3 beside the values that Fig. M.2 holds."""
    pairs = {name: (float(_settings("visualisation")[name]), float(_held(name)[0])) for name in HELD}
    numbers = ", ".join(f"{name} {shown:g} and {held:g}" for name, (shown, held) in pairs.items())
    return [name for name, (shown, held) in pairs.items() if shown != held] == ["M_prime"], numbers


def whole_batches() -> predicates.Exact:
    pretraining = _settings("imagenet1k_pretrain")
    queue = int(pretraining["queue_size"])
    batches = [int(pretraining["dequeue_per_step"]), int(_settings("ablation")["batch"])]
    numbers = " and ".join(f"{queue / batch:g} steps of {batch}" for batch in batches)
    return all(queue % batch == 0 for batch in batches), f"{queue} keys are {numbers}"


def kept_value(setting: Setting, varied: str) -> Estimates:
    """The value kept elsewhere minus every other one of the preset's sweep, and of what else was run."""
    rows = setting.rows("positive_keys", **{name: value for name, value in JCL.items() if name != varied})
    if rows.empty:
        return {}
    swept = (LONG_SWEEPS if setting.preset == "paper" else SHORT_SWEEPS)[varied]
    sides = {f"{BASE[varied]:g} over {value:g}": (JCL, JCL | {varied: value})
             for value in sorted({*swept, *rows[varied]} - {BASE[varied]})}
    return predicates.differences("positive_keys", sides, like=("image_methods",))(setting)


def similarities_differ(log: DataFrame) -> predicates.Judged:
    """JCL minus MoCo v2, mean over images, by seed."""
    means = log.groupby(["seed", "model"])["similarity"].mean().unstack("model").dropna()
    if not {"JCL", "MoCo v2"} <= set(means) or means.empty:
        return None
    difference = verdicts.paired(means["JCL"] - means["MoCo v2"])
    return verdicts.different({"": difference}), f"mean similarity, JCL minus MoCo v2 by {difference.in_words(4)}"


def second_histogram() -> predicates.Exact:
    """Whether the mean variance tells more than the mean similarity, of which it is (1 - a)/d."""
    features = _random(64, 32, 128) + 1
    similarity, _ = similarity_and_variance(features)
    worst = float((normalize(features, dim=2).var(dim=1, correction=0).mean(1) - (1 - similarity) / 128).abs().max())
    return worst > 1e-12, f"64 x 32 random features: variance minus (1 - similarity)/d is at most {worst:.1g}"


def scatter_on_the_diagonal() -> predicates.Exact:
    """Whether the diagonal of the covariance, summed, is the mean squared distance of features from their mean."""
    unit = normalize(_random(64, 32, 128) + 1, dim=2)
    distances = (unit - unit.mean(1, keepdim=True)).square().sum(2).mean(1)
    worst = float((128 * similarity_and_variance(unit)[1] - distances).abs().max())
    return worst < 1e-12, (f"64 x 32 random features: d times the mean diagonal is the mean squared distance from the "
                           f"mean but for {worst:.1g}")


def same_gradient(evidence: Evidence) -> str:
    """What the quadratic form of query and covariance is multiplied by."""
    temperature, strength = BASE["temperature"], BASE["strength"]
    first, later, text = 10 / (2 * temperature), 2 / (2 * temperature**2), strength / (2 * temperature**2)
    return (f"factor of the variance at temperature {temperature}: {first:g} in the first release, {later:g} in the "
            f"code now, {text:g} in the text")


def estimators(evidence: Evidence) -> str:
    keys = int(_held("M_prime")[0])
    return f"with {keys} keys the unbiased one is {keys / (keys - 1):.2f} times as large, as if lambda were"


def own_pairs(evidence: Evidence) -> str:
    """Mean cosine with and without the pairs of an augmentation with itself."""
    number = int(_settings("visualisation")["augmentations_per_image"])
    numbers = [f"{a} becomes {(number * a - 1) / (number - 1):.3f}" for a in (0.5, 0.8)]
    return f"without own pairs, of {number} augmentations, a mean of {' and one of '.join(numbers)}"


def one_key(evidence: Evidence) -> str:
    """JCL with one key against InfoNCE, for several strengths, on random unit vectors."""
    query, key, negatives = normalize(_random(16 + 16 + 1024, 128), dim=1).split([16, 16, 1024])
    gaps = [float((jcl(query, key[:, None], negatives, 0.2, strength) - info_nce(query, key, negatives, 0.2)).abs())
            for strength in (0.0, 4.0, 10.0)]
    return f"with one key and strengths 0, 4, 10 the loss departs from InfoNCE by at most {max(gaps):.1g} nats"


def _kept(varied: str) -> Check:
    return measured(("positive_keys",), functools.partial(kept_value, varied=varied),
                    functools.partial(verdicts.above, margin=-SLACK))


CLAIMS = predicates.claims("jcl", "JCL", {
    "J1": predicates.closed_form(lambda: upper_bound(simulated())),
    "J2": predicates.closed_form(limit_of_many_keys),
    "J3": predicates.of_log("sampled_keys", upper_bound),
    "J4": predicates.of_print(settings_agree),
    "J5": predicates.of_print(settings_of_histograms),
    "J6": predicates.of_print(whole_batches),
    "J7": UNPRINTED_CURVE,
    "J8": UNPRINTED_CURVE,
    "J9": UNPRINTED_CURVE,
    "J10": _kept("keys"),
    "J11": _kept("strength"),
    "J12": _kept("temperature"),
    "J13": predicates.of_log("similarity_variance_images", similarities_differ),
    "J14": predicates.closed_form(second_histogram),
    "J15": predicates.unprinted("a list does not tell how it was drawn, and no record does"),
    "J16": predicates.above("image_methods", {"JCL over vanilla": (
        {"method": "jcl", "keys": BASE["keys"]}, {"method": "vanilla", "keys": BASE["keys"]})}),
    "J17": predicates.closed_form(scatter_on_the_diagonal),
}, REPEATS=REPEATS, CLOSE=CLOSE, NONE_BETTER=NONE_BETTER)
DISCREPANCIES = predicates.discrepancies("jcl", "JCL", {
    "J-1": predicates.beside("positive_keys", JCL | {"keys": 4}, JCL),
    "J-2": same_gradient,
    "J-3": predicates.departing(*RUN, "similarity_variance", ramp=False),
    "J-5": estimators,
    "J-7": own_pairs,
    "J-8": lambda evidence: "b = (1 - a)/d: at one similarity, 512 features instead of 128 divide the variance by 4",
    "J-10": one_key,
})
