"""The taxonomy's pictures: of its tables, of recorded poses, of frames along training, and of linear models."""

import itertools
import math
import textwrap
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from pandas import DataFrame, Series

from repro.data import manifest
from repro.data.disk import read_csv
from repro.experiments import find
from repro.papers.taxonomy import glm
from repro.papers.taxonomy.tables import with_terms
from repro.report import statistics, style
from repro.report.plots import LINE, Picture, Plot
from repro.report.printed import printed
from repro.report.style import Look
from repro.skeleton.recipe import METHODS, SKELETONS
from repro.skeleton.terms import PRINTED

ACCURACY, SPREAD = "linear probe (%)", "spread of the embedding\n(% of isotropic)"
NINE = ("unmixed+best", "UCLA")  # rows and column of the model whose AD has the printed t
PROBED = (  # experiments whose runs were probed along training
    "taxonomy_ucla", "decoder_weight_2020_ucla", "both_weights_2020_ucla", "squared_differences_ucla",
    "squared_differences_alone_ucla",
)
CONTRASTED = ("sequence_dictionary", "objectives", "td_queue")
SHORT = {
    "all": "15, all", "unmixed": "8, unmixed", "unmixed encoder": "11, encoder unmixed",
    "unmixed decoder": "11, decoder unmixed", NINE[0]: f"8 + {glm.BEST}",
    "NTU_1layer": "NTU", "NTU_3layer": "NTU, 3 layers", "NTU_1024units": "NTU, 1,024 units", glm.MEAN: "mean",
}


@style.styled()
def taxonomy(table: DataFrame) -> Figure:
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
    theirs = ordered["printed"]
    heights = [3.4, *([2.0] if theirs.notna().any() else []), 1.3]
    figure, stack = style.panels(0.5 + 0.55 * sum(heights), len(heights), sharex=True, height_ratios=heights)
    top, *middle, bottom = stack
    style.mark(top, ordered.index, theirs, style.PRINTED, hollow=True)
    style.mark(top, ordered.index, ordered["ours"], style.OURS, ordered["std"])
    for baseline in table.loc[random, "ours"].dropna():
        top.axhline(baseline, color=style.GREY, linestyle="--", linewidth=0.8, label="random initialisation")
    top.set_ylabel("linear probe\naccuracy (%)")
    top.grid(axis="y")
    for axes in middle:
        axes.axhline(0, color=style.GREY, linewidth=0.6)
        trained = ordered[ordered["objectives"] != "random"]
        deviation = _deviations(trained).reindex(ordered.index).fillna(ordered["std"])
        errors = 2 * deviation * (1 + 1 / ordered["n_seeds"]) ** 0.5
        if errors.notna().any():
            edges, band = [*ordered.index - 0.5, len(ordered) - 0.5], errors.to_numpy()[[*ordered.index, -1]]
            axes.fill_between(edges, -band, band, color=style.PALE, linewidth=0, step="post", label="twice the error")
        style.mark(axes, ordered.index, ordered["ours"] - theirs, Look("ours $-$ printed", style.INK, "o"))
        axes.set_ylabel("ours $-$ printed\n(points)")
    for axes in (top, *middle):
        style.span(axes, "y", 5)
    _membership(bottom, ordered["objectives"])
    return style.finish(figure, _best(ordered, theirs), style.heading(table))


def _best(table: DataFrame, theirs: Series) -> str:
    """Which objective is highest here, where seeds tell it from the next, and printed; of one row what it has."""
    trained = table[table["objectives"] != "random"].dropna(subset="ours").sort_values("ours", ascending=False)
    if trained.empty:
        return "Random initialisation alone"
    best, baseline = trained.iloc[0], table.loc[table["objectives"] == "random", "ours"]
    above = f", {best['ours'] - baseline.iloc[0]:.1f} points above random initialisation" if len(baseline) else ""
    if len(trained) == 1:
        return f"{best['objectives']} has {best['ours']:.1f} %{above}"
    errors = _deviations(trained) / trained["n_seeds"] ** 0.5
    lead, named = best["ours"] - trained["ours"].iloc[1], f"Highest here is {best['objectives']}"
    if not lead > 2 * math.hypot(*errors.iloc[:2]):
        named = f"{named}, which seeds do not tell from {trained['objectives'].iloc[1]}"
    in_print = f"; in print {table.loc[theirs.idxmax(), 'objectives']}" if theirs.count() > 1 else ""
    return f"{named}{above}{in_print}"


def _deviations(trained: DataFrame) -> Series:
    """Of trained rows between seeds: pooled over all but those that scatter, whose own it is."""
    rest = trained.drop(index=statistics.scattered(trained["std"]))
    variance = ((rest["n_seeds"] - 1) * rest["std"] ** 2).sum(min_count=1) / max((rest["n_seeds"] - 1).sum(), 1)
    return trained["std"].where(~trained.index.isin(rest.index), variance**0.5)


def _membership(axes: Axes, objectives: Series) -> None:
    """Objectives as dots, filled where a term is present, those of one joined by a line; first the printed terms."""
    parts = [[] if name == "random" else name.split("+") for name in objectives]
    terms = list(dict.fromkeys([*PRINTED, *itertools.chain(*parts)]))
    for column, names in enumerate(parts):
        present = [place for place, term in enumerate(terms) if term in names]
        axes.plot([column] * len(terms), range(len(terms)), marker="o", color=style.PALE, linestyle="none")
        axes.plot([column] * len(present), present, marker="o", color=style.INK)
    style.names_down(axes, terms)
    axes.set(xlim=(-0.6, len(parts) - 0.4), xticks=[])
    axes.spines[:].set_visible(False)


def by_measure(rows: DataFrame) -> DataFrame:
    """Rows of `encoder_collapse` for each measure: accuracies, those of standardised readouts as lines, and spread."""
    alone = rows.assign(std=math.nan, printed=math.nan)
    parts = [rows.assign(unit=ACCURACY, line=rows["objectives"])]
    if "linear_standardised" in rows:
        parts.append(alone.assign(unit=ACCURACY, line=rows["objectives"] + ", standardised",
                                  ours=rows["linear_standardised"]))
    parts.append(alone.assign(unit=SPREAD, line=rows["objectives"], ours=100 * rows["embedding_spread"]))
    return pd.concat(parts, ignore_index=True).dropna(subset="ours")


def _depth(plot: Plot, data: DataFrame) -> str:
    """How AE stands to random initialisation at the first and the last depth."""
    wide = data[data["unit"] == ACCURACY].pivot_table("value", "x", LINE)
    if not {"AE", "random"} <= {*wide}:
        return "Accuracy by depth of the encoder"
    gaps = (wide["AE"] - wide["random"]).dropna()
    first, last = gaps.index[0], gaps.index[-1]
    return (f"AE is {gaps[first]:+.1f} points from random initialisation with {first} layer{'s' if first > 1 else ''}, "
            f"{gaps[last]:+.1f} with {last}")


ENCODER_COLLAPSE = Plot(
    caption="Linear-probe accuracy and spread of the embedding (standard deviation of the unit-length embedding, root "
    "mean square over its d coordinates, times sqrt(d); 100 % isotropic, 0 collapsed) by depth of the encoder, at "
    "random initialisation and after training with the attractive encoder term alone; where measured, the probe on "
    "standardised readouts too. Source: supplement, Table 2.",
    x="layers", hue="line", prepare=by_measure, xlabel="layers of the encoder", finding=_depth,
    looks={"random": Look("random initialisation", style.BLUE, "o"), "AE": Look("AE", style.VERMILLION, "s"),
           "random, standardised": Look("random, standardised", style.SKY, "v"),
           "AE, standardised": Look("AE, standardised", style.ORANGE, "^")},
)


@style.styled()
def pose_strip(sequences: dict[str, ArrayLike], bones: Sequence[tuple[int, int]], frames: int = 6) -> Figure:
    """One row per action: poses at evenly spaced frames, first to last, seen from the front and at one scale.

    Each pose is centred horizontally on itself and each row stands on its own lowest point, so that the strip shows
    posture and not the walk through the room.

    Args:
        sequences: by action, valid frames (T, joints, 3) or (T, joints * 3), in metres or scaled; the first
            coordinate runs across the body and the last up the spine.
        bones: pairs of joints to connect.
        frames: poses per row; a shorter sequence shows each of its frames once.
    """
    figure, stack = style.panels(0.75 * len(sequences), len(sequences), frames, sharex=True, sharey=True)
    for row, (action, sequence) in zip(np.reshape(stack, (-1, frames)), sequences.items(), strict=True):
        poses = np.asarray(sequence).reshape(len(sequence), -1, 3)[:, :, [0, 2]]
        poses = poses[np.linspace(0, len(poses) - 1, min(frames, len(poses))).round().astype(int)]
        middle = (poses[:, :, 0].min(1) + poses[:, :, 0].max(1)) / 2
        for axes, pose, centre in zip(row, poses, middle, strict=False):
            segments = (pose - [centre, poses[:, :, 1].min()])[np.asarray(bones)]
            axes.add_collection(LineCollection(segments, colors=style.INK, linewidths=0.7, capstyle="round"))
        for axes in row:
            axes.set(xticks=[], yticks=[], aspect="equal")
            axes.spines[:].set_visible(False)
        row[0].set_ylabel(textwrap.fill(action, 12))
    figure.supxlabel("time \N{RIGHTWARDS ARROW}")
    return style.settled(figure)


def by_terms(rows: DataFrame) -> DataFrame:
    """Rows in the order of their objectives: those of fewer terms first."""
    return rows.sort_values("objectives", kind="stable", key=lambda names: names.str.count("[+]").astype(str) + names)


def unmodified(rows: DataFrame) -> DataFrame:
    """Probes of runs that differ in nothing, with what is printed where these are of the paper's recipe on NW-UCLA."""
    rows = rows[(rows["entry"] == rows["objectives"]) & rows["measure"].isin(["linear", "linear_best"])]
    known = (rows["dataset"] == "ucla") & (rows["preset"] == "paper")
    in_print = rows["objectives"].map(glm.printed_by_objective()["UCLA"])
    return by_terms(rows.assign(in_print=in_print.where(known)))


def _falling(plot: Plot, data: DataFrame) -> str:
    """In how many objectives the accuracy falls along training, from its highest mean to the last."""
    means = data[data[LINE] == "linear"].pivot_table("value", "panel", "x")
    fallen = means.max(axis=1) - means.ffill(axis=1).iloc[:, -1]
    return f"Objectives that end more than 5 points below their best epoch: {int((fallen > 5).sum())} of {len(fallen)}"


ALONG_TRAINING = Plot(
    caption="Linear-probe accuracy along training, a panel for each objective: mean over seeds, with a band of one "
    "standard deviation; the mean accuracy of the best of the probe's epochs on the test split, which the released "
    "code reports; and the printed value.",
    x="epoch", y="value", hue="measure", panel="objectives", prepare=unmodified, reference="in_print",
    reference_label="printed", xlabel="epoch", columns=3, finding=_falling,
    foot="Rows of panels have scales of their own.",
    looks={"linear": Look("last epoch of the probe", style.BLUE, "o"),
           "linear_best": Look("best epoch on the test split", style.GREEN, "s")},
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


def _above_chance(plot: Plot, data: DataFrame) -> str:
    last = data.sort_values("x").groupby(["panel", LINE])["value"].last().unstack()
    live, noise = last["live"], last["frozen_noise"]
    return (f"A refreshed dictionary leaves {live.min():.1f} to {live.max():.1f} nats at the end, noise "
            f"at most {noise.max():.1g}")


SEQUENCE_CONTRAST = Plot(
    caption="The contrastive decoder term along training, a panel for each objective that has it: with the dictionary "
    "of decoded sequences, and with that of noise that the released code never refreshes. Dashed, the loss of a guess.",
    x="epoch", y="CD", hue="td_queue", panel="objectives", reference="chance", reference_label="a guess",
    prepare=lambda rows: by_terms(rows.assign(chance=np.log(rows["sequence_dictionary"] + 1))),
    xlabel="epoch", ylabel="CD (nats)", columns=2, least_span=0, finding=_above_chance,
    looks={"live": Look("dictionary refreshed", style.BLUE, "o"),
           "frozen_noise": Look("never refreshed", style.VERMILLION, "s")},
)


@style.styled()
def specifications(curve: DataFrame) -> Figure:
    """t of the four terms in linear models of the printed accuracies, for every natural choice of rows and column,
    ordered by that of AD; filled where the one-tailed p is below 0.05. The printed statistic, which the text gives for
    CD, is that of AD in the eight unmixed rows and AE+CE+AD, on NW-UCLA (grey).

    Args:
        curve: of `glm.specification_curve`.
    """
    models = curve[curve["term"] == "AD"].sort_values("t")[["rows", "column"]].reset_index(drop=True)
    curve = curve.merge(models.reset_index(names="place"), on=["rows", "column"])
    figure, stack = style.panels(5.6, 3, sharex=True, height_ratios=[14, 11, 5])
    nine, = models.index[(models["rows"] == NINE[0]) & (models["column"] == NINE[1])]
    for axes in stack:
        axes.grid(axis="y")
        axes.axvline(nine, color=style.PALE, linewidth=3, label="9 rows, UCLA")
    top, claimed = stack[0], printed("taxonomy_glm_claim")["t"].item()
    top.axhline(0, color=style.GREY, linewidth=0.6)
    top.axhline(claimed, color=style.INK, linestyle="--", linewidth=0.8, label=f"printed, t = {claimed}")
    looks = {"AE": (style.PURPLE, "^"), "CE": (style.GREEN, "s"), "AD": (style.VERMILLION, "D"),
             "CD": (style.BLUE, "o")}
    for (term, strong), rows in curve.groupby(["term", curve["p_one_tailed"] < 0.05]):
        colour, marker = looks[term]
        top.plot(rows["place"], rows["t"], color=colour, marker=marker, markerfacecolor=colour if strong else "white",
                 markersize=2.8, markeredgewidth=0.6, linestyle="none", label=term)
    top.set_ylabel("t of the term")
    for axes, choice, title in zip(stack[1:], ("rows", "column"), ("rows of Table 1", "its column"), strict=True):
        values = style.in_order(curve[choice], ())
        axes.plot(models[choice].map(values.index), color=style.INK, marker=".", markersize=3, linestyle="none")
        style.names_down(axes, [SHORT.get(name, name.replace("unmixed+", "8 + ")) for name in values])
        axes.set_title(title)
    places = [*range(0, len(models), 9)]
    stack[2].set_xticks(places, labels=[str(place + 1) for place in places])
    stack[2].set_xlabel("number of the model, by the t of AD")
    strong = curve[curve["p_one_tailed"] < 0.05].groupby("term").size()
    counts = ", ".join(f"{term} in {strong.get(term, 0)}" for term in ("AD", "CE", "CD", "AE"))
    finding = f"Models of {len(models)} in which a term is significant: {counts}"
    return style.finish(figure, finding, "linear models of the printed accuracies; filled: one-tailed p < 0.05")


def intervals(rows: DataFrame) -> DataFrame:
    """Rows of `glm.forest` with half the length of their 95 % interval, `std`, in a panel for each row set.

    Beside bundled data there are no printed effects, which belong to other data.
    """
    if manifest.bundled(style.only(rows, "dataset")):
        rows = rows[rows["source"] == "ours"]
    panels = rows["rows"].map({"unmixed+best": "nine objectives", "all": "all fifteen"})
    return rows.assign(panel=panels, std=(rows["high"] - rows["low"]) / 2, n_seeds=1, zero=0.0, errors="95 % intervals")


def _told_from_zero(plot: Plot, data: DataFrame) -> str:
    """Which of our terms have an interval without zero, in each panel."""
    told = []
    for panel, rows in data[data[LINE] == "ours"].groupby("panel", sort=False):
        apart = rows.loc[rows["value"].abs() > rows["std"], "x"]
        told.append(f"{', '.join(apart) or 'no term'} of {panel}")
    return f"Our intervals without zero (not corrected for four terms): {'; '.join(told)}"


EFFECTS = Plot(
    caption="What each of the four terms adds to the accuracy (percentage points, 95 % interval of a linear model), in "
    "our results and in the printed ones. A panel for each row set.",
    x="term", y="estimate", hue="source", panel="panel", names={term: term for term in glm.TERMS}, prepare=intervals,
    reference="zero", ylabel="added to the accuracy\n(points)", columns=2, finding=_told_from_zero,
    looks={"ours": style.OURS, "printed": style.PRINTED},
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
    "sequence_contrast_ucla": Picture(
        experiments=("taxonomy_ucla",), frame="epochs", fields=CONTRASTED, rows=beside_noise, plot=SEQUENCE_CONTRAST),
    "glm_specifications": Picture(
        experiments=(), rows=lambda runs: _rounded(glm.specification_curve()), plot=specifications),
    "glm_forest_ucla": Picture(
        experiments=("taxonomy_ucla",), rows=lambda runs: forest("taxonomy_ucla", runs), plot=EFFECTS),
}
