"""CM-ACC's figures, by the table or log that each is drawn from."""

from matplotlib.figure import Figure
from pandas import DataFrame

from repro.papers.cmacc import accuracy_figures, category_figures, negative_figures
from repro.report.elements import only
from repro.report.redraw import Drawing

WITHOUT_REPLACEMENT = 5  # the version of the training whose expectation is of draws as they are made


def of_embedded_clips(log: DataFrame) -> DataFrame:
    """Pictures of real clips are not ours to publish: none of their rows."""
    return log[[only(log, "dataset") == "synthetic"] * len(log)]


def embedded_negatives(log: DataFrame) -> Figure:
    """The picks of clips that come with the package, which are filmed again."""
    return negative_figures.selected_negatives(log, negative_figures.drawn_again(log))


def draws_in_words(cells: DataFrame) -> str:
    """A sentence of the caption: which uniform draws the expectation is of, by the cells' versions of the training."""
    earlier = cells["version"] < WITHOUT_REPLACEMENT
    if earlier.all():
        return "The draws of the expectation are with replacement."
    exception = f", up to version {WITHOUT_REPLACEMENT - 1} of the training with replacement" if earlier.any() else ""
    return f"The draws of the expectation are without replacement{exception}."


FIGURES = {
    "cross_modal": Drawing(
        accuracy_figures.cross_modal,
        "Accuracy after pre-training within or across modalities, with and without the extra layer (fcl) and with "
        "negatives selected at random or actively, by where the encoder was fine-tuned; of grids of characters, of "
        "linear probes.",
    ),
    "ohem_vs_active": Drawing(
        accuracy_figures.ohem_vs_active,
        "Accuracy against the number M of negatives selected in a step, by how they are selected: at random, the "
        "keys that are least confident which query they resemble (OHEM as printed), or actively; of grids of "
        "characters, of linear probes.",
    ),
    "dictionary_size": Drawing(
        accuracy_figures.dictionary_size,
        "Accuracy against the size of the dictionary; of grids of characters, of linear probes. The paper shows this "
        "as a curve without its values, so that there is nothing to compare with.",
    ),
    "mutual_information": Drawing(
        accuracy_figures.mutual_information,
        "Accuracy of probes that read characters from grids, against the number of characters and the information "
        "(nats) that the two grids of a pair share; dashed, drawings never seen in training. The paper shows this as "
        "a curve without its values, so that there is nothing to compare with.",
    ),
    "transfer": Drawing(
        accuracy_figures.transfer,
        "Accuracy after fine-tuning, by what was pre-trained on: ours among the numbers that the paper prints for "
        "itself and for others.",
    ),
    "category_diversity": Drawing(
        category_figures.category_diversity,
        "Distinct categories among the M negatives selected in a step, mean over training, as a share of M; dashed, "
        "the closed-form expectation of M uniform draws.",
        also=draws_in_words,
    ),
    "category_curves": Drawing(
        category_figures.category_curves,
        "Distinct categories among the M negatives selected in a step, along training; dashed, the closed-form "
        "expectation of M uniform draws.",
        also=draws_in_words,
    ),
    "pretext_accuracy": Drawing(
        category_figures.pretext_accuracy,
        "How often the positive of a query ranks first among the keys of the dictionary, by category: the categories "
        "in which this succeeds most and least often. Markers: the same among the keys of the dictionary's items "
        "encoded again, which a query cannot tell from its positive by their age.",
    ),
    "selected_negatives": Drawing(
        embedded_negatives,
        "Negatives that every sampler selects from one pool, as pictures, below the norm of the gradient that each "
        "causes in the last layer. A row has the query that is nearest to most of what its sampler selects, and of "
        "these negatives those of the largest, the middle and the smallest gradient.",
        of_embedded_clips,
    ),
}
