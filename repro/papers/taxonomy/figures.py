"""The taxonomy's pictures: of its tables, of recorded poses, of frames along training, and of linear models."""

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np
import pandas as pd
import seaborn
import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from pandas import DataFrame, Series

from repro.data import manifest
from repro.data.disk import read_csv
from repro.experiments import find, frames
from repro.papers.taxonomy import glm
from repro.papers.taxonomy.sequences import outlined
from repro.papers.taxonomy.tables import with_terms
from repro.report import statistics, style
from repro.report.plots import Picture, Plot, span
from repro.report.printed import printed
from repro.report.text import PLUS_MINUS
from repro.skeleton.recipe import METHODS, SKELETONS
from repro.skeleton.terms import PRINTED

ACCURACY, SPREAD = "linear probe (%)", "spread of the embedding\n(% of isotropic)"
NINE = ("unmixed+best", "UCLA")  # rows and column of the model whose AD has the printed t
PROBED = (  # experiments whose runs were probed along training
    "taxonomy_ucla", "decoder_weight_2020_ucla", "both_weights_2020_ucla", "squared_differences_ucla",
    "squared_differences_alone_ucla",
)
CONTRASTED = ("sequence_dictionary", "objectives", "td_queue")
PAIRS = {0: "other pairs of actions", 1: "the copied pair"}
SHORT = {
    "all": "15, all", "unmixed": "8, unmixed", "unmixed encoder": "11, encoder unmixed",
    "unmixed decoder": "11, decoder unmixed", NINE[0]: f"8 + {glm.BEST}",
    "NTU_1layer": "NTU", "NTU_3layer": "NTU, 3 layers", "NTU_1024units": "NTU, 1,024 units", glm.MEAN: "mean",
}


@style.styled()
def taxonomy(table: DataFrame, title: str = "") -> Figure:
    """Linear-probe accuracy of objectives, with the terms that each is the sum of: those of the paper are attractive or
    contrastive (A, C), of encoder or decoder (E, D).

    Random initialisation, the empty subset, comes first and continues as a dashed line; the others follow in the order
    of our accuracy. Where printed values may be compared, they stand beside ours, and the differences have a panel of
    their own: the band is twice the standard error of a difference between our mean and one printed run, by the
    deviation between seeds that is pooled over trained rows; of random initialisation and of rows that are
    `statistics.scattered`, by their own.

    Args:
        table: one row per subset: objectives ("AE+CE", or "random"), AE, CE, AD, CD (0 or 1), ours, std, n_seeds,
            printed, preset, dataset; accuracies in percent.
    """
    random = table["objectives"] == "random"
    ordered = pd.concat([table[random], table[~random].sort_values(["ours", "printed"])], ignore_index=True)
    places, ours, theirs = ordered.index.to_numpy(), ordered["ours"], ordered["printed"]
    inches = [1.9, *([1.1] if theirs.notna().any() else []), 0.7]
    figure, stack = plt.subplots(len(inches), sharex=True, height_ratios=inches)
    top, bottom = stack[0], stack[-1]
    if theirs.notna().any():
        top.plot(places + 0.25, theirs, "D", color=style.VERMILLION, markerfacecolor="white", label="printed")
    top.errorbar(places, ours, ordered["std"], fmt="none", ecolor=style.BLUE, elinewidth=0.8, capsize=3)
    top.plot(places, ours, "o", color=style.BLUE, label="ours")
    for baseline in ours[ordered["objectives"] == "random"].dropna():
        top.axhline(baseline, color=style.GREY, linestyle="--", linewidth=0.8, label="random initialisation")
    top.set_ylabel("linear probe\naccuracy (%)")
    for axes in stack[1:-1]:
        trained = ordered[ordered["objectives"] != "random"]
        errors = 2 * _deviations(trained).reindex(places).fillna(ordered["std"]) * (1 + 1 / ordered["n_seeds"]) ** 0.5
        errors = errors.where(ordered["n_seeds"] > 0).fillna(0)
        axes.use_sticky_edges = False  # of the bars
        axes.bar(places, 2 * errors, 1, -errors, color=style.PALE, linewidth=0, label="twice the error")
        axes.axhline(0, color=style.GREY, linewidth=0.6)
        axes.plot(places, ours - theirs, "o", color=style.INK, label="ours $-$ printed")
        axes.set_ylabel("ours $-$ printed\n(points)")
    for axes in stack[:-1]:
        axes.grid(axis="y")
        span(axes, "y", ACCURACY)
    parts = [[] if name == "random" else name.split("+") for name in ordered["objectives"]]
    terms = list(dict.fromkeys([*PRINTED, *itertools.chain(*parts)]))
    for place, names in enumerate(parts):  # dots, filled where a term is present, those of an objective joined
        present = [terms.index(term) for term in terms if term in names]
        bottom.plot([place] * len(terms), range(len(terms)), "o", color=style.PALE)
        bottom.plot([place] * len(present), present, "o-", color=style.INK)
    bottom.set(xticks=[], yticks=range(len(terms)), yticklabels=terms, ylim=(len(terms) - 0.5, -0.5))
    bottom.tick_params(length=0)
    seaborn.despine(ax=bottom, left=True, bottom=True)
    return style.finish(figure, 0.3 + sum(inches), title, style.heading(table))


def _deviations(trained: DataFrame) -> Series:
    """Of trained rows between seeds: pooled over all but those that scatter, whose own it is."""
    rest = trained.drop(index=statistics.scattered(trained["std"]))
    variance = ((rest["n_seeds"] - 1) * rest["std"] ** 2).sum(min_count=1) / max((rest["n_seeds"] - 1).sum(), 1)
    return trained["std"].where(~trained.index.isin(rest.index), variance**0.5)


def by_measure(rows: DataFrame) -> DataFrame:
    """Rows of `encoder_collapse` for each measure: accuracies, those of standardised readouts as lines, and spread."""
    alone = rows.assign(std=math.nan, printed=math.nan)
    parts = [rows.assign(unit=ACCURACY, line=rows["objectives"])]
    if "linear_standardised" in rows:
        parts.append(alone.assign(unit=ACCURACY, line=rows["objectives"] + ", standardised",
                                  ours=rows["linear_standardised"]))
    parts.append(alone.assign(unit=SPREAD, line=rows["objectives"], ours=100 * rows["embedding_spread"]))
    return pd.concat(parts, ignore_index=True).dropna(subset="ours")


ENCODER_COLLAPSE = Plot(
    caption="Linear-probe accuracy and spread of the embedding (standard deviation of the unit-length embedding, root "
    "mean square over its d coordinates, times sqrt(d); 100 % isotropic, 0 collapsed) by depth of the encoder, at "
    "random initialisation and after training with the attractive encoder term alone; where measured, the probe on "
    "standardised readouts too. Source: supplement, Table 2.",
    x="layers", hue="line", prepare=by_measure, xlabel="layers of the encoder",
    lines={"random": "random initialisation", "AE": "AE", "AE, standardised": "AE, standardised"},
)


@style.styled()
def pose_strip(sequences: Mapping[str, ArrayLike], bones: Sequence[tuple[int, int]], frames: int = 6) -> Figure:
    """One row per action: poses at evenly spaced frames, first to last, seen from the front and at one scale.

    Each pose is centred horizontally on itself and each row stands on its own lowest point, so that the strip shows
    posture and not the walk through the room.

    Args:
        sequences: by action, valid frames (T, joints, 3) or (T, joints * 3), in metres or scaled; the first
            coordinate runs across the body and the last up the spine.
        bones: pairs of joints to connect.
        frames: poses per row; a shorter sequence shows each of its frames once.
    """
    strips = {}
    for action, sequence in sequences.items():
        shown = np.linspace(0, len(sequence) - 1, min(frames, len(sequence))).round()
        strips[textwrap.fill(action, 12)] = torch.as_tensor(np.asarray(sequence)).flatten(1)[shown.astype(int)]
    poses = outlined(strips, bones)
    poses["x"] -= poses.groupby(["panel", "frame"])["x"].transform(lambda across: (across.min() + across.max()) / 2)
    poses["y"] -= poses.groupby("panel")["y"].transform("min")
    figure, grid = plt.subplots(len(strips), poses["frame"].max(), sharex=True, sharey=True, squeeze=False)
    for axes, action in zip(grid[:, 0], strips, strict=True):
        axes.set_ylabel(action)
    for (action, frame), pose in poses.groupby(["panel", "frame"]):
        grid[[*strips].index(action), frame - 1].plot(pose["x"], pose["y"], color=style.INK, linewidth=0.7)
    seaborn.despine(figure, left=True, bottom=True)
    plt.setp(grid, xticks=[], yticks=[], aspect="equal")
    return style.finish(figure, 0.75 * len(strips), "", "time \N{RIGHTWARDS ARROW}")


def by_terms(rows: DataFrame) -> DataFrame:
    """Rows in the order of their objectives: those of fewer terms first."""
    return rows.sort_values("objectives", kind="stable", key=lambda names: names.str.count("[+]").astype(str) + names)


def unmodified(rows: DataFrame) -> DataFrame:
    """Probes of runs that differ in nothing, with what is printed where these are of the paper's recipe on NW-UCLA."""
    rows = rows[(rows["entry"] == rows["objectives"]) & rows["measure"].isin(["linear", "linear_best"])]
    known = (rows["dataset"] == "ucla") & (rows["preset"] == "paper")
    in_print = rows["objectives"].map(glm.printed_by_objective()["UCLA"])
    return by_terms(rows.assign(in_print=in_print.where(known)))


ALONG_TRAINING = Plot(
    caption="Linear-probe accuracy along training, a panel for each objective: mean over seeds, with a band of one "
    "standard deviation; the mean accuracy of the best of the probe's epochs on the test split, which the released "
    "code reports; and the printed value.",
    x="epoch", y="value", hue="measure", panel="objectives", prepare=unmodified, reference="in_print",
    reference_label="printed", xlabel="epoch", ylabel="accuracy (%), own scale", columns=3,
    lines={"linear": "last epoch of the probe", "linear_best": "best epoch on the test split"},
)


def first_seeds(rows: DataFrame) -> DataFrame:
    """Of runs with CD, and of four digits, the first seed of every objective with either dictionary."""
    rows = rows.dropna(subset="CD")
    of_seed = rows.groupby(["objectives", "td_queue"])["seed"].transform("min")
    rows = rows[rows["seed"] == of_seed].sort_values(["objectives", "td_queue"], kind="stable")
    return rows[["epoch", "CD", *CONTRASTED, "id", "seed", "dataset", "preset"]].assign(
        CD=rows["CD"].map(lambda value: float(f"{value:.4g}")))


def beside_noise(rows: DataFrame) -> DataFrame:
    """`first_seeds`, with the runs of the dictionary that is never refreshed, of a training that is no longer here."""
    path = manifest.project_root() / "figures" / "earlier" / "frozen_noise_ucla_epochs.csv"
    noise = read_csv(path, dtype={"id": str})
    return pd.concat([first_seeds(rows), noise]).sort_values(["objectives", "td_queue"], kind="stable")


SEQUENCE_CONTRAST = Plot(
    caption="The contrastive decoder term along training, a panel for each objective that has it: with the dictionary "
    "of decoded sequences, and with that of noise that the released code never refreshes. Dashed, the loss of a guess.",
    x="epoch", y="CD", hue="td_queue", panel="objectives", reference="chance", reference_label="a guess",
    prepare=lambda rows: by_terms(rows.assign(chance=np.log(rows["sequence_dictionary"] + 1))),
    xlabel="epoch", ylabel="CD (nats)", columns=2,
    lines={"live": "dictionary refreshed", "frozen_noise": "never refreshed"},
)


def with_accuracy(runs: DataFrame) -> DataFrame:
    """Accuracies along training of objectives with CD, and beside them this loss of their first seed, by `unit`."""
    asked = find("taxonomy_ucla").asked().values()
    probes, epochs = (frames(asked, name, CONTRASTED, runs) for name in ("probes", "epochs"))
    losses = first_seeds(epochs)
    probes = probes[(probes["measure"] == "linear") & probes["objectives"].isin(losses["objectives"])]
    both = pd.concat([probes.assign(unit=ACCURACY), losses.assign(value=losses["CD"], unit="CD (nats), first seed")])
    return by_terms(both)[["unit", "objectives", "epoch", "value", "id", "seed", "dataset", "preset"]]


CURVES = Plot(
    caption="Linear-probe accuracy along training of the eight objectives with CD, means over seeds with a band of one "
    "standard deviation, and the term CD of their first seed. Other losses of these runs were not kept.",
    x="epoch", y="value", hue="objectives", xlabel="epoch",
)


@style.styled()
def specifications(curve: DataFrame, title: str = "") -> Figure:
    """t of the four terms in linear models of the printed accuracies, for every natural choice of rows and column,
    ordered by that of AD; filled where the one-tailed p is below 0.05. The printed statistic, which the text gives for
    CD, is that of AD in the eight unmixed rows and AE+CE+AD, on NW-UCLA (grey).

    Args:
        curve: of `glm.specification_curve`.
    """
    models = curve[curve["term"] == "AD"].sort_values("t")[["rows", "column"]].reset_index(drop=True)
    curve = curve.merge(models.reset_index(names="place"), on=["rows", "column"])
    figure, stack = plt.subplots(3, sharex=True, height_ratios=[14, 11, 5])
    nine, = models.index[(models["rows"] == NINE[0]) & (models["column"] == NINE[1])]
    for axes in stack:
        axes.grid(axis="y")
        axes.axvline(nine, color=style.PALE, linewidth=3, label="9 rows, UCLA", zorder=1)
    top, claimed = stack[0], printed("taxonomy_glm_claim")["t"].item()
    top.axhline(0, color=style.GREY, linewidth=0.6)
    top.axhline(claimed, color=style.INK, linestyle="--", linewidth=0.8, label=f"printed, t = {claimed}")
    looks = {"AE": (style.PURPLE, "^"), "CE": (style.GREEN, "s"), "AD": (style.VERMILLION, "D"),
             "CD": (style.BLUE, "o")}
    for (term, strong), rows in curve.groupby(["term", curve["p_one_tailed"] < 0.05]):
        colour, marker = looks[term]
        top.plot(rows["place"], rows["t"], marker, color=colour, markerfacecolor=colour if strong else "white",
                 markersize=2.8, markeredgewidth=0.6, label=term)
    for axes, choice, name in zip(stack[1:], ("rows", "column"), ("rows of Table 1", "its column"), strict=True):
        values = curve[choice].map(lambda value: SHORT.get(value, value.replace("unmixed+", "8 + ")))
        seaborn.stripplot(x=curve["place"], y=values, jitter=False, color=style.INK, size=2, legend=False, ax=axes)
        axes.set(title=name, ylabel="")
    top.set_ylabel("t of the term")
    places = [*range(0, len(models), 9)]
    stack[2].set_xticks(places, labels=[str(place + 1) for place in places])
    stack[2].set_xlabel("number of the model, by the t of AD")
    return style.finish(figure, 5.4, title, "linear models of the printed accuracies; filled: one-tailed p < 0.05")


def without_a_camera(runs: DataFrame) -> DataFrame:
    """Probes that were trained without the recordings of two actions by one camera, and are read on these.

    They were measured once, of encoders that come along.
    """
    return read_csv(manifest.project_root() / "figures" / "earlier" / "without_a_camera_ucla.csv")


def by_pair(rows: DataFrame) -> DataFrame:
    """Rows of `without_a_camera`, by whether the two actions are those whose test recordings are copies."""
    return rows.assign(
        encoder=rows["encoder"].str.rpartition("/")[2], pair=rows["copied"].map(PAIRS), seed=0,
        panel="without camera " + rows["camera"].astype(str),
        errors=f"mean {PLUS_MINUS} std of pairs of actions")


COPIES = Plot(
    caption="Accuracy on recordings that a probe was not trained on, those of two actions by one camera, for four "
    "encoders: of the two actions whose test recordings are copies, and of every other pair that has none.",
    x="encoder", y="left_out", hue="pair", panel="panel", lines={pair: pair for pair in PAIRS.values()},
    prepare=by_pair, ylabel="accuracy on what was left out (%)",
)


def intervals(rows: DataFrame) -> DataFrame:
    """Rows of `glm.forest` with half the length of their 95 % interval, `std`, in a panel for each row set.

    Beside bundled data there are no printed effects, which belong to other data.
    """
    if manifest.bundled(style.only(rows, "dataset")):
        rows = rows[rows["source"] == "ours"]
    panels = rows["rows"].map({"unmixed+best": "nine objectives", "all": "all fifteen"})
    return rows.assign(panel=panels, std=(rows["high"] - rows["low"]) / 2, n_seeds=1, zero=0.0, errors="95 % intervals")


EFFECTS = Plot(
    caption="What each of the four terms adds to the accuracy (percentage points, 95 % interval of a linear model), in "
    "our results and in the printed ones. A panel for each row set.",
    x="term", y="estimate", hue="source", panel="panel", names={term: term for term in glm.TERMS}, prepare=intervals,
    reference="zero", ylabel="added to the accuracy\n(points)", columns=2,
    lines={"ours": "ours", "printed": "printed"},
)


def _rounded(table: DataFrame) -> DataFrame:
    """Five digits, which are the same wherever the models are fitted.

    Least squares differ in their last bits from processor to processor. Estimates from numbers of two decimals often
    end in a 5 right behind the fifth digit, 26.1425, where these bits would decide. So nine digits come first, and a 5
    at the end of them goes to the even digit.
    """
    return table.map(lambda value: float(f"{Decimal(f'{value:.9g}'):.5g}") if isinstance(value, float) else value)


def forest(name: str, runs: DataFrame) -> DataFrame:
    """`glm.forest` of an experiment, where the nine objectives of the paper's main tables are finished."""
    ours = SKELETONS.tidy(runs[runs["id"].isin([*find(name).asked()])])
    ours = with_terms(ours[ours["objectives"].isin(METHODS)].reset_index(drop=True))
    known = set(glm.ROW_SETS["unmixed+best"]) <= set(ours["objectives"])
    return _rounded(glm.forest(ours)) if known else DataFrame()


PICTURES = {
    "along_training_ucla": Picture(
        experiments=PROBED, frame="probes", fields=("objectives",), plot=ALONG_TRAINING),
    "learning_curves_ucla": Picture(experiments=("taxonomy_ucla",), rows=with_accuracy, plot=CURVES),
    "sequence_contrast_ucla": Picture(
        experiments=("taxonomy_ucla",), frame="epochs", fields=CONTRASTED, rows=beside_noise, plot=SEQUENCE_CONTRAST),
    "without_a_camera_ucla": Picture(experiments=(), rows=without_a_camera, plot=COPIES),
    "glm_specifications": Picture(
        experiments=(), rows=lambda runs: _rounded(glm.specification_curve()), plot=specifications),
    "glm_forest_ucla": Picture(
        experiments=("taxonomy_ucla",), rows=lambda runs: forest("taxonomy_ucla", runs), plot=EFFECTS),
}
