"""Where the SCE and JCL supplements disagree with themselves or with released code, and what we measured."""

import functools

import torch
from torch.nn.functional import normalize

from repro.contrast.objectives import info_nce, jcl
from repro.image.table_cells import BASE
from repro.report import claims_sce
from repro.report.discrepancies import Measure, departing, not_measured, paired_means
from repro.report.evidence import Evidence
from repro.report.printed import printed
from repro.report.verdicts import Discrepancy

RUN = ("image_methods", "positive_keys", "temperature_grid")


def zero_logit(evidence: Evidence) -> str:
    told = [claims_sce.pseudo_code(evidence).evidence, departing(*RUN, masked_positive=False)(evidence)]
    return "; ".join(filter(None, told))


def released_temperatures(evidence: Evidence) -> str:
    """CIFAR-10 at the released temperatures instead of the best ones, printed and here."""
    grid = printed("sce_temperature_long").query("dataset == 'CIFAR10'").set_index(["tau", "tau_m"])["top1"]
    told = [f"printed {grid[0.1, 0.05]:.2f} instead of {grid[0.2, 0.1]:.2f}"]
    for setting in evidence.settings("temperature_grid"):
        sides = [setting.values("temperature_grid", method="sce", temperature=query, key_temperature=key)
                 for query, key in ((0.1, 0.05), (0.2, 0.1))]
        pair = paired_means(*sides)
        told += [f"{setting.dataset}, {setting.preset} recipe: {pair}"] if pair else []
    return "; ".join(told)


def decomposed(evidence: Evidence) -> str:
    return f"with a queue: {claims_sce.decomposition(evidence).evidence}"


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


def _entry(
    paper: str, number: int, place: str, paper_says: str, others_say: str, here: str, measure: Measure = not_measured
) -> Discrepancy:
    return Discrepancy(id=f"{paper[0]}-{number}", paper=paper, place=f"supplement, {place}", paper_says=paper_says,
                       others_say=others_say, here=here, measure=measure)


_sce, _jcl = functools.partial(_entry, "SCE"), functools.partial(_entry, "JCL")
DISCREPANCIES = [
    _sce(
        1, "Alg. 1", "the weak view goes to the online network, the strong one to the momentum network",
        "the released code, ReSSL and the paper's abstract have it the other way round", "as in the code",
        departing(*RUN, query_view="weak", key_view="strong"),
    ),
    _sce(
        2, "formula and Alg. 1", "the target leaves the positive out",
        "the pseudo-code and the code give it a similarity of 0", "left out", zero_logit,
    ),
    _sce(3, "settings", "the projection has 256 features", "128 in the released configuration", "256",
         departing(*RUN, projection=128)),
    _sce(4, "settings", "where the momentum network starts is not said",
         "the released networks start independently; a later release copies", "copied"),
    _sce(5, "settings", "two GPUs with 128 images each, normalisation not said",
         "one GPU, eight groups normalised apart, half precision", "plain batch normalisation, bfloat16",
         departing(*RUN, groups=8)),
    _sce(6, "Table 2", "CIFAR10's best temperatures are 0.2 and 0.10", "the released configuration has 0.1 and 0.05",
         "the best ones", released_temperatures),
    _sce(7, "data", "which part of STL10 is pre-trained on is not said", "unlabeled by default; a comment adds train",
         "unlabeled"),
    _sce(8, "evaluation", "the probe's hyper-parameters on small data sets are not given",
         "learning rate 30, and the epoch that is best on the test split", "learning rate 30, last epoch",
         departing(*RUN, select="best_on_test")),
    _sce(9, "proof", "the decomposition is shown for the keys of a batch", "training has a queue",
         "it holds for any keys with one positive", decomposed),
    _sce(10, "Alg. 1", "one-hot targets of batch size + 1", "queue length + 1", "queue length + 1"),
    _sce(11, "augmentation", "colour distortion of strength 0.5",
         "jitter of 0.4, 0.4, 0.4 and 0.1; one ImageNet configuration has less saturation", "0.4, 0.4, 0.4, 0.1"),
    _sce(12, "settings", "what decays is not said", "all parameters decay, those of normalisation too", "all"),
    _jcl(1, "settings", "five positive keys", "the released script counts the query: five crops, four keys",
         "five keys", departing("image_methods", "similarity_variance", keys=4)),
    _jcl(2, "settings", "lambda is 4.0 in all ablations",
         "2.0 in the code; 10.0 in its first release, whose term lacked one 1/tau", "4.0, and 2.0 for the checkpoint",
         same_gradient),
    _jcl(3, "text", "lambda is one value, tuned", "the code lets it grow linearly over the epochs", "growing",
         departing(*RUN, "similarity_variance", ramp=False)),
    _jcl(4, "settings", "the learning rate on ImageNet is not in the supplement", "0.03 in the script",
         "0.03 for a batch of 256"),
    _jcl(5, "Eq. M.8", "the covariance's divisor is not said", "the number of keys", "the number of keys",
         estimators),
    _jcl(6, "text", "mean keys enter the queue; whether normalised is not said", "they are not", "not normalised"),
    _jcl(7, "Fig. M.3(a)", "the mean of 32 x 32 cosine similarities",
         "whether an augmentation is paired with itself is not said, nor is there code", "with itself", own_pairs),
    _jcl(8, "Fig. M.3(b)", "the mean diagonal of the covariance", "of which layer, and which divisor, is not said",
         "512 features of the trunk, divisor n", layers),
    _jcl(9, "data", "100 classes, randomly sampled", "a fixed list, that of CMC and, in the same order, of SCE",
         "that list"),
    _jcl(10, "Figs. M.2 and M.3", "MoCo v2 is the released code's", "learning rate and batch are those of the ablation",
         "the same recipe with one key", one_key),
]
