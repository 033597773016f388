"""Where the JCL supplement disagrees with itself or with released code, and what we measured."""

import torch
from torch.nn.functional import normalize

from repro.contrast.objectives import info_nce, jcl
from repro.papers.jcl.tables import BASE
from repro.report.discrepancies import Measure, departing, not_measured, paired_means
from repro.report.evidence import Evidence
from repro.report.printed import printed
from repro.report.verdicts import Discrepancy

RUN = ("image_methods", "positive_keys", "temperature_grid")


def same_gradient(evidence: Evidence) -> str:
    """What the quadratic form of query and covariance is multiplied by."""
    temperature, strength = BASE["temperature"], BASE["strength"]
    first, later, text = 10 / (2 * temperature), 2 / (2 * temperature**2), strength / (2 * temperature**2)
    return (f"factor of the variance at temperature {temperature}: {first:g} in the first release, {later:g} in the "
            f"code now, {text:g} in the text")


def estimators(evidence: Evidence) -> str:
    keys = int(printed("jcl_ablation_settings")["M_prime"].iloc[1])
    return f"with {keys} keys the unbiased one is {keys / (keys - 1):.2f} times as large, as if lambda were"


def own_pairs(evidence: Evidence) -> str:
    """Mean cosine with and without the pairs of an augmentation with itself."""
    number = int(printed("jcl_hyperparameters").set_index(["experiment", "key"])["value"][
        "visualisation", "augmentations_per_image"])
    told = [f"{a} becomes {(number * a - 1) / (number - 1):.3f}" for a in (0.5, 0.8)]
    return f"without own pairs, of {number} augmentations, a mean of {' and one of '.join(told)}"


def layers(evidence: Evidence) -> str:
    return "b = (1 - a)/d: at one similarity, 512 features instead of 128 divide the variance by 4"


def one_key(evidence: Evidence) -> str:
    """JCL with one key against InfoNCE, for several strengths, on random unit vectors."""
    generator = torch.Generator().manual_seed(0)
    query, key, negatives = (normalize(torch.randn(rows, 128, generator=generator, dtype=torch.float64), dim=1)
                             for rows in (16, 16, 1024))
    gaps = [float((jcl(query, key[:, None], negatives, 0.2, strength) - info_nce(query, key, negatives, 0.2)).abs())
            for strength in (0.0, 4.0, 10.0)]
    return f"with one key and strengths 0, 4, 10 the loss departs from InfoNCE by at most {max(gaps):.1g} nats"


def four_keys(evidence: Evidence) -> str:
    """Four positive keys beside five, at the strength and the temperature that are kept."""
    told = []
    for setting in evidence.settings("positive_keys"):
        sides = [setting.values("positive_keys", **{"method": "jcl"} | BASE | {"keys": keys}) for keys in (4, 5)]
        pair = paired_means(*sides)
        told += [f"{setting}: jcl {pair}"] if pair else []
    return "; ".join(told)


def _entry(
    number: int, place: str, paper_says: str, others_say: str, here: str, measure: Measure = not_measured
) -> Discrepancy:
    return Discrepancy(id=f"J-{number}", paper="JCL", place=f"supplement, {place}", paper_says=paper_says,
                       others_say=others_say, here=here, measure=measure)


DISCREPANCIES = [
    _entry(1, "settings", "five positive keys", "the released script counts the query: five crops, four keys",
         "five keys", four_keys),
    _entry(2, "settings", "lambda is 4.0 in all ablations",
         "2.0 in the code; 10.0 in its first release, whose term lacked one 1/tau", "4.0, and 2.0 for the checkpoint",
         same_gradient),
    _entry(3, "text", "lambda is one value, tuned", "the code lets it grow linearly over the epochs", "growing",
         departing(*RUN, "similarity_variance", ramp=False)),
    _entry(4, "settings", "the learning rate on ImageNet is not in the supplement", "0.03 in the script",
         "0.03 for a batch of 256"),
    _entry(5, "Eq. M.8", "the covariance's divisor is not said", "the number of keys", "the number of keys",
         estimators),
    _entry(6, "text", "mean keys enter the queue; whether normalised is not said", "they are not", "not normalised"),
    _entry(7, "Fig. M.3(a)", "the mean of 32 x 32 cosine similarities",
         "whether an augmentation is paired with itself is not said, nor is there code", "with itself", own_pairs),
    _entry(8, "Fig. M.3(b)", "the mean diagonal of the covariance", "of which layer, and which divisor, is not said",
         "512 features of the trunk, divisor n", layers),
    _entry(9, "data", "100 classes, randomly sampled", "a fixed list, that of CMC and, in the same order, of SCE",
         "that list"),
    _entry(10, "Figs. M.2 and M.3", "MoCo v2 is the released code's",
           "learning rate and batch are those of the ablation", "the same recipe with one key", one_key),
]
