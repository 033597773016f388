"""The taxonomy's pictures of several experiments, of frames along training, and of linear models."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from repro.data import manifest
from repro.experiments import beside_recipe, find, frames_of
from repro.papers.taxonomy import figures, glm, rules
from repro.papers.taxonomy.tables import with_terms
from repro.report import style
from repro.report.plots import LINE, Picture, Plot
from repro.report.printed import printed
from repro.report.style import Look
from repro.skeleton.recipe import METHODS, SKELETONS

TERM_LOOKS = {
    "AD": (style.VERMILLION, "D"), "CD": (style.BLUE, "o"), "CE": (style.GREEN, "s"), "AE": (style.PURPLE, "^"),
}
NINE = ("unmixed+best", "UCLA")  # rows and column of the model whose AD has the printed t
OF_NOVEMBER = (  # experiments whose runs were probed along training, beside the table's
    "decoder_weight_2020_ucla", "both_weights_2020_ucla", "squared_differences_ucla", "squared_differences_alone_ucla",
)
DEPARTING = (  # experiments that leave the recipe on NW-UCLA
    "frozen_noise_ucla", "selected_on_test_ucla", "float32_ucla", "higher_rate_ucla", "bidirectional_ucla",
    "denoising_ucla", *OF_NOVEMBER, "three_layers_rates_ucla",
)
ROW_SETS = {"unmixed+best": "nine objectives", "all": "all fifteen"}
SHORT = {
    "all": "15, all", "unmixed": "8, unmixed", "unmixed encoder": "11, encoder unmixed",
    "unmixed decoder": "11, decoder unmixed", NINE[0]: f"8 + {glm.BEST}",
    "NTU_1layer": "NTU", "NTU_3layer": "NTU, 3 layers", "NTU_1024units": "NTU, 1,024 units", glm.MEAN: "mean",
}


def by_setting(rows: DataFrame) -> DataFrame:
    """Rows of `beside_recipe` for the changed recipe, with what is printed, and for the recipe as it is."""
    rows = rows.assign(what=[f"{row.objectives}\n{style.spoken(row.departures)}" for row in rows.itertuples()])
    recipe = rows.assign(setting="recipe", ours=rows["usual"], std=math.nan, published=math.nan).dropna(subset="ours")
    rows = pd.concat([rows.assign(setting="changed"), recipe], ignore_index=True)
    rows = rows.assign(recipe=rows["preset"] + " recipe").drop(columns="departures")  # which the names say
    return rows.sort_values(["recipe", "what"], kind="stable")


def _moved(plot: Plot, data: DataFrame) -> str:
    wide = data.pivot_table("value", ["panel", "x"], LINE)
    moves = (wide["changed"] - wide["recipe"]).dropna()
    what = moves.abs().idxmax()[1].replace("\n", " with ")
    return f"{what} moves the accuracy most, {moves[moves.abs().idxmax()]:+.1f} points"


VARIANTS = Plot(
    caption="Linear-probe accuracy of objectives trained away from the recipe, the recipe itself, and the printed "
    "value. A panel for each preset, that of the paper first.",
    x="what", hue="setting", panel="recipe", prepare=by_setting, down=True, height=0.32, finding=_moved,
    looks={"changed": Look("changed", style.BLUE, "o"), "recipe": Look("recipe", style.GREY, "s")},
)


def variants(cells: DataFrame) -> DataFrame:
    """The rows of the experiments that leave the recipe, beside what the recipe has."""
    parts = [beside_recipe(name, cells) for name in DEPARTING]
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def unmodified(rows: DataFrame) -> DataFrame:
    """Probes of runs that depart in nothing, of the preset with most objectives, with the printed value."""
    rows = rows[(rows["entry"] == rows["objectives"]) & rows["measure"].isin(["linear", "linear_best"])]
    covered = rows.groupby("preset")["objectives"].nunique()
    rows = rows[rows["preset"] == max(covered.index, key=lambda preset: (covered[preset], preset == "paper"))]
    known = style.only(rows, "dataset") == "ucla" and rows["preset"].iloc[0] == "paper"
    values = glm.printed_by_objective()["UCLA"]
    rows = rows.assign(print=rows["objectives"].map(values) if known else math.nan)
    order = {name: (name.count("+"), name) for name in rows["objectives"].unique()}
    return rows.sort_values("objectives", key=lambda names: names.map(order), kind="stable")


def _falling(plot: Plot, data: DataFrame) -> str:
    """In how many objectives the accuracy falls along training, from its highest mean to the last."""
    means = data[data[LINE] == "linear"].pivot_table("value", "panel", "x")
    fallen = means.max(axis=1) - means.ffill(axis=1).iloc[:, -1]
    return f"Objectives that end more than 5 points below their best epoch: {int((fallen > 5).sum())} of {len(fallen)}"


ALONG_TRAINING = Plot(
    caption="Linear-probe accuracy along training, a panel for each objective: mean over seeds, with a band of one "
    "standard deviation; the mean accuracy of the best of the probe's epochs on the test split, which the released "
    "code reports; and the printed value.",
    x="epoch", y="value", hue="measure", panel="objectives", prepare=unmodified, reference="print",
    reference_label="printed", xlabel="epoch", columns=3, height=0.95, finding=_falling,
    looks={"linear": Look("last epoch of the probe", style.BLUE, "o"),
           "linear_best": Look("best epoch on the test split", style.GREEN, "s")},
)


def by_dictionary(rows: DataFrame) -> DataFrame:
    """CD along training by what the dictionary of decoded sequences holds, with the loss of a guess."""
    order = {name: (name.count("+"), name) for name in rows["objectives"].unique()}
    rows = rows.assign(chance=np.log(rows["sequence_dictionary"] + 1))
    return rows.sort_values("objectives", key=lambda names: names.map(order), kind="stable")


def first_seeds(rows: DataFrame) -> DataFrame:
    """Of runs with CD, and of four digits, the first seed of every objective with either dictionary."""
    rows = rows.dropna(subset="CD") if "CD" in rows else rows[:0]
    of_seed = rows.groupby(["objectives", "td_queue"])["seed"].transform("min")
    rows = rows[rows["seed"] == of_seed].sort_values(["objectives", "td_queue"], kind="stable")
    return rows[["epoch", "CD", *CONTRASTED, "key", "seed", "dataset", "preset"]].assign(
        CD=rows["CD"].map(lambda value: float(f"{value:.4g}")))


def _above_chance(plot: Plot, data: DataFrame) -> str:
    last = data.sort_values("x").groupby(["panel", LINE])["value"].last().unstack()
    live, noise = last["live"], last["frozen_noise"]
    return (f"A refreshed dictionary leaves {live.min():.1f} to {live.max():.1f} nats at the end, noise "
            f"at most {noise.max():.1g}")


CONTRASTED = ("sequence_dictionary", "objectives", "td_queue")
SEQUENCE_CONTRAST = Plot(
    caption="The contrastive decoder term along training, a panel for each objective that has it: with the dictionary "
    "of decoded sequences, and with that of noise that the released code never refreshes. Dashed, the loss of a guess.",
    x="epoch", y="CD", hue="td_queue", panel="objectives", prepare=by_dictionary, reference="chance",
    reference_label="a guess", xlabel="epoch", ylabel="CD (nats)", columns=2, height=0.95, least_span=0,
    finding=_above_chance,
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
    ranks = curve[curve["term"] == "AD"].sort_values("t")[["rows", "column"]].reset_index(drop=True)
    places = ranks.reset_index(names="place")
    curve = curve.merge(places, on=["rows", "column"])
    figure, stack = style.panels(5.6, 3, sharex=True, height_ratios=[14, 11, 5])
    nine = places.set_index(["rows", "column"]).loc[NINE, "place"]
    for axes in stack:
        axes.grid(axis="y")
        axes.axvline(nine, color=style.PALE, linewidth=3)

    top, claimed = stack[0], printed("taxonomy_glm_claim")["t"].item()
    top.axhline(0, color=style.GREY, linewidth=0.6)
    top.axhline(claimed, color=style.INK, linestyle="--", linewidth=0.8)
    small = {"markersize": 2.8, "linestyle": "none"}
    for term, (colour, marker) in TERM_LOOKS.items():
        rows = curve[curve["term"] == term]
        for face, some in (("white", rows["p_one_tailed"] >= 0.05), (colour, rows["p_one_tailed"] < 0.05)):
            top.plot(rows["place"][some], rows["t"][some], color=colour, marker=marker, markerfacecolor=face,
                     markeredgewidth=0.6, **small)
    top.set_ylabel("t of the term")
    for axes, choice, what in zip(stack[1:], ("rows", "column"), ("rows of Table 1", "its column"), strict=True):
        values = style.in_order(curve[choice], ())
        axes.plot(ranks[choice].map(values.index), color=style.INK, marker=".", markersize=3, linestyle="none")
        figures.choices_down(axes, [SHORT.get(name, name.replace("unmixed+", "8 + ")) for name in values])
        axes.set_title(what, loc="left")
    stack[2].set_xlabel("models, by the t of AD")

    keys = [Line2D([], [], color=colour, marker=marker, linestyle="none", label=term)
            for term, (colour, marker) in TERM_LOOKS.items()]
    keys.append(Line2D([], [], color=style.INK, linestyle="--", label=f"printed, t = {claimed}"))
    keys += [Line2D([], [], color=style.INK, marker="o", label=label, markerfacecolor=face, **small)
             for label, face in (("p < 0.05", style.INK), ("p \u2265 0.05", "white"))]
    keys.append(Line2D([], [], color=style.PALE, linewidth=3, label="9 rows, UCLA"))
    style.legend_below(figure, keys)
    strong = curve[curve["p_one_tailed"] < 0.05].groupby("term").size()
    finding = f"AD is significant in {strong.get('AD', 0)} of {len(places)} models, CD in {strong.get('CD', 0)}"
    style.entitle(figure, finding, "linear models of the printed accuracies; filled: one-tailed p < 0.05")
    return style.settled(figure)


def intervals(rows: DataFrame) -> DataFrame:
    """Rows of `glm.forest` with half the length of their 95 % interval, `std`, and the panel that each belongs to.

    A panel is a row set. On bundled data the printed effects, which belong to other data, have panels of their own.
    """
    panels = rows["rows"].map(ROW_SETS)
    if manifest.bundled(style.only(rows, "dataset")):
        panels += ", " + rows["source"]
    return rows.assign(panel=panels, std=(rows["high"] - rows["low"]) / 2, n_seeds=1, zero=0.0, errors="95 % intervals")


def _told_from_zero(plot: Plot, data: DataFrame) -> str:
    """Which of our terms have an interval without zero, in each panel."""
    told = []
    for panel, rows in data[data[LINE] == "ours"].groupby("panel", sort=False):
        apart = rows.loc[rows["value"].abs() > rows["std"], "x"]
        told.append(f"{', '.join(apart) or 'no term'} of {panel.removesuffix(', ours')}")
    return f"Told from zero in our results: {'; '.join(told)}"


EFFECTS = Plot(
    caption="What each of the four terms adds to the accuracy (percentage points, 95 % interval of a linear model), in "
    "our results and in the printed ones. A panel for each row set; on bundled data the printed effects, which belong "
    "to other data, have panels of their own.",
    x="term", y="estimate", hue="source", panel="panel", names={term: term for term in glm.TERMS}, prepare=intervals,
    reference="zero", ylabel="added to the accuracy\n(points)", joined=False, columns=2, height=1.5,
    finding=_told_from_zero, looks={"ours": style.OURS, "printed": style.PRINTED},
)


def _rounded(table: DataFrame) -> DataFrame:
    """Five digits, which are the same wherever the models are fitted.

    Least squares differ in their last bits from processor to processor. Estimates from numbers of two decimals often
    end in a 5 right behind the fifth digit, 26.1425, where these bits would decide. So nine digits come first, and a 5
    at the end of them goes to the even digit.
    """
    return table.map(lambda value: float(f"{Decimal(f'{value:.9g}'):.5g}") if isinstance(value, float) else value)


def printed_column(cells: DataFrame) -> DataFrame:
    """`rules.compared` of our probes along training, which another picture shows."""
    probes = frames_of(("taxonomy_ucla", *OF_NOVEMBER), "probes", ["objectives"], cells)
    return rules.compared(probes).round(4)


def forest(name: str, cells: DataFrame) -> DataFrame:
    """`glm.forest` of an experiment, where the nine objectives of the paper's main tables are finished."""
    ours = SKELETONS.tidy(cells[cells["key"].isin([*find(name).asked()])])
    ours = with_terms(ours[ours["objectives"].isin(METHODS)].reset_index(drop=True))
    known = set(glm.ROW_SETS["unmixed+best"]) <= set(ours["objectives"])
    return _rounded(glm.forest(ours)) if known else DataFrame()


PICTURES = {
    "along_training_ucla": Picture(
        experiments=("taxonomy_ucla", *OF_NOVEMBER), frame="probes", fields=("objectives",), plot=ALONG_TRAINING),
    "sequence_contrast_ucla": Picture(
        experiments=("taxonomy_ucla", "taxonomy_ucla_earlier", "frozen_noise_ucla"), frame="epochs", fields=CONTRASTED,
        rows=first_seeds, plot=SEQUENCE_CONTRAST),
    "glm_specifications": Picture(
        experiments=(), rows=lambda cells: _rounded(glm.specification_curve()), plot=specifications),
    "glm_forest_ucla": Picture(
        experiments=("taxonomy_ucla",), rows=lambda cells: forest("taxonomy_ucla", cells), plot=EFFECTS),
    "glm_forest_synthetic": Picture(
        experiments=("taxonomy_synthetic",), rows=lambda cells: forest("taxonomy_synthetic", cells), plot=EFFECTS),
    "taxonomy_variants_ucla": Picture(experiments=DEPARTING, rows=variants, plot=VARIANTS),
    "printed_column_ucla": Picture(
        experiments=("taxonomy_ucla", *OF_NOVEMBER), rows=printed_column, plot=None),
}
