"""Where the SCE supplement disagrees with itself or with released code, and what we measured."""

from repro.papers.sce import claims
from repro.report.discrepancies import Measure, departing, not_measured, paired_means
from repro.report.evidence import Evidence
from repro.report.printed import printed
from repro.report.verdicts import Discrepancy

RUN = ("image_methods", "positive_keys", "temperature_grid")


def zero_logit(evidence: Evidence) -> str:
    told = [claims.pseudo_code(evidence).evidence, departing(*RUN, masked_positive=False)(evidence)]
    return "; ".join(filter(None, told))


def released_temperatures(evidence: Evidence) -> str:
    """CIFAR-10 at the released temperatures instead of the best ones, printed and here."""
    grid = printed("sce_temperature_long").query("dataset == 'CIFAR10'").set_index(["tau", "tau_m"])["top1"]
    told = [f"printed {grid[0.1, 0.05]:.2f} instead of {grid[0.2, 0.1]:.2f}"]
    for setting in evidence.settings("temperature_grid"):
        sides = [setting.values("temperature_grid", method="sce", temperature=query, key_temperature=key)
                 for query, key in ((0.1, 0.05), (0.2, 0.1))]
        pair = paired_means(*sides)
        told += [f"{setting}: {pair}"] if pair else []
    return "; ".join(told)


def decomposed(evidence: Evidence) -> str:
    return f"with a queue: {claims.decomposition(evidence).evidence}"


def _entry(
    number: int, place: str, paper_says: str, others_say: str, here: str, measure: Measure = not_measured
) -> Discrepancy:
    return Discrepancy(id=f"S-{number}", paper="SCE", place=f"supplement, {place}", paper_says=paper_says,
                       others_say=others_say, here=here, measure=measure)


DISCREPANCIES = [
    _entry(
        1, "Alg. 1", "the weak view goes to the online network, the strong one to the momentum network",
        "the released code, ReSSL and the paper's abstract have it the other way round", "as in the code",
        departing(*RUN, query_view="weak", key_view="strong"),
    ),
    _entry(
        2, "formula and Alg. 1", "the target leaves the positive out",
        "the pseudo-code and the code give it a similarity of 0", "left out", zero_logit,
    ),
    _entry(3, "settings", "the projection has 256 features", "128 in the released configuration", "256",
         departing(*RUN, projection=128)),
    _entry(4, "settings", "where the momentum network starts is not said",
         "the released networks start independently; a later release copies", "copied"),
    _entry(5, "settings", "two GPUs with 128 images each, normalisation not said",
         "one GPU, eight groups normalised apart, half precision", "plain batch normalisation, bfloat16",
         departing(*RUN, groups=8)),
    _entry(6, "Table 2", "CIFAR10's best temperatures are 0.2 and 0.10", "the released configuration has 0.1 and 0.05",
         "the best ones", released_temperatures),
    _entry(7, "data", "which part of STL10 is pre-trained on is not said", "unlabeled by default; a comment adds train",
         "unlabeled"),
    _entry(8, "evaluation", "the probe's hyper-parameters on small data sets are not given",
         "learning rate 30, and the epoch that is best on the test split", "learning rate 30, last epoch",
         departing(*RUN, select="best_on_test")),
    _entry(9, "proof", "the decomposition is shown for the keys of a batch", "training has a queue",
         "it holds for any keys with one positive", decomposed),
    _entry(10, "Alg. 1", "one-hot targets of batch size + 1", "queue length + 1", "queue length + 1"),
    _entry(11, "augmentation", "colour distortion of strength 0.5",
         "jitter of 0.4, 0.4, 0.4 and 0.1; one ImageNet configuration has less saturation", "0.4, 0.4, 0.4, 0.1"),
    _entry(12, "settings", "what decays is not said", "all parameters decay, those of normalisation too", "all"),
]
