"""CM-ACC's pictures: of its tables, whose rows are for each target, and of frames along and after a training."""

import dataclasses
import math
import re
import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.audiovisual import CHARACTERS, MODALITIES, synthetic
from repro.data import manifest
from repro.papers.cmacc.published import COMPARISONS, NAMES, NOWHERE, SETS, merged
from repro.report import style
from repro.report.plots import LINE, Plot
from repro.report.printed import printed
from repro.report.style import Look

METHODS = {
    "scratch": Look("Scratch", style.GREY, "v"),
    "supervised": Look("Supervised", style.PURPLE, "^"),
    "smoco": Look("SMoCo", style.BLUE, "o"),
    "xmoco": Look("XMoCo", style.VERMILLION, "s"),
    "cmacc": Look("CM-ACC", style.GREEN, "D"),
}
SAMPLERS = {
    "random": Look("random", style.BLUE, "o"),
    "ohem": Look("least confident (OHEM)", style.VERMILLION, "s"),
    "feature": Look("active, features", style.PURPLE, "^"),
    "gradient": Look("active, gradients", style.GREEN, "D"),
    "released": Look("released code", style.GREY, "v"),
}
POST_HOC = {name: SAMPLERS[name] for name in ("random", "ohem", "feature")} | {
    f"gradient {posterior}": Look(f"gradients, temperature {posterior}", colour, marker)
    for posterior, colour, marker in (("1", style.GREEN, "D"), ("0.3", style.SKY, "P"), ("0.07", style.ORANGE, "X"))
}
KINDS = {  # of the rows of Tables 4 to 6, by how they were trained
    "Scratch": Look("Scratch", style.GREY, "v"),
    "others": Look("others", style.INK, "o"),
    "Supervised": Look("Supervised", style.PURPLE, "^"),
    "CM-ACC": Look("CM-ACC", style.GREEN, "D"),
}
JUDGED = {target: f"fine-tuned on {name}" for target, name in {
    **NAMES, "esc10": "ESC10", "synthetic_video": "bundled clips, pictures", "synthetic_audio": "bundled clips, sound",
}.items()}
JUDGED |= {"characters": "characters, new pairs", "unseen": "characters, drawings never seen"}  # by linear probes
FEWER = ("categories", "distinct", "frequency")  # fields with which pairs share other information than printed
UNNAMED = "as they come"  # how frequent the categories of clips are
BEST, WORST = 10, 5  # categories that Fig. 6 shows
SEEN = {"video": "pictures", "audio": "sound"}  # what a network is given of a clip
GRIDS = {"video": "grid 1", "audio": "grid 2"}  # of a pair of characters
TILES = 3  # negatives of a row, as in the paper
UNIFORM = "uniform draws, closed form"
FREQUENT = {"balanced": "equally frequent", "zipf": "Zipf's frequencies"}  # categories of a pool

APPROACHES = Plot(
    caption="Accuracy after pre-training within or across modalities, with and without the extra layer (fcl) and with "
    "negatives selected at random or actively, by where the encoder was fine-tuned; of grids of characters, of linear "
    "probes. Source: Tables 1 and 2.",
    x="approach", panel="target", names=JUDGED, down=True, height=0.17,
)
BY_SAMPLER = Plot(
    caption="Accuracy by how the negatives of a step are selected: at random, the keys that are least confident which "
    "query they resemble (OHEM as printed), or actively. On grids of characters it is that of linear probes. Source: "
    "Table 3.",
    x="sampler", panel="target", names=JUDGED | {name: look.label for name, look in SAMPLERS.items()}, down=True,
    height=0.17,
)
BY_BATCH = dataclasses.replace(
    BY_SAMPLER, x="batch", hue="sampler", looks=SAMPLERS, xlabel="negatives selected in a step, M", down=False,
    logarithmic=True, height=1.3, names=JUDGED,
)
BY_DICTIONARY = Plot(
    caption="Accuracy against the size of the dictionary; of grids of characters, of linear probes. The paper shows "
    "this as a curve without its values, so that there is nothing to compare with. Source: Fig. 3b.",
    x="dictionary", hue="method", panel="target", looks=METHODS, names=JUDGED, xlabel="entries of the dictionary",
    logarithmic=True,
)
BY_CHARACTERS = Plot(
    caption="Accuracy of probes that read characters from grids, of new pairs and of drawings never seen in training, "
    "against the number of characters, with the information (nats) that the two grids of a pair share where pairs are "
    "drawn as the paper's. The paper shows this as a curve without its values, so that there is nothing to compare "
    "with. Source: Fig. 3a.",
    x="characters", hue="method", panel="target", looks=METHODS, names=JUDGED, xlabel="characters in a grid",
)


def ohem_vs_active(rows: DataFrame) -> Figure:
    """Accuracy by how the M negatives of a step are selected; against M where there are several.

    Source: Table 3.
    """
    return (BY_SAMPLER if rows["batch"].nunique() == 1 else BY_BATCH).draw(rows)


def mutual_information(rows: DataFrame) -> Figure:
    """Accuracy of probes that read characters from grids, of new pairs and of drawings never seen in training, against
    the number of characters and the information (nats) that the two grids of a pair share.

    Source: Fig. 3a.
    """
    departed = {name for row in rows.get("departures", ()) for name in row}
    if departed & {*FEWER}:
        return BY_CHARACTERS.draw(rows)
    dataset = manifest.plain(style.only(rows, "dataset"))
    numbers = {number: f"{number}\n{nats(dataset, number):.1f}" for number in rows["characters"].unique().tolist()}
    label = "characters in a grid, and nats that a pair shares"
    return dataclasses.replace(BY_CHARACTERS, names=JUDGED | numbers, xlabel=label).draw(rows)


def nats(dataset: str, characters: int) -> float:
    """Mutual information of the two grids of a pair: the sum of the logarithms of the sizes of their alphabets."""
    if dataset == "multidigits":
        return characters * math.log(10)
    return float(printed("spatial_multiomniglot_mi").set_index("n_characters").loc[characters, "MI_nats"])


def _printed_rows(dataset: str, target: str) -> DataFrame:
    """What Tables 4 to 6 print for a target, each number once: method, pretrain_set, published; of a part, nothing."""
    column, whole = NAMES.get(target), dataset == manifest.plain(dataset) and not manifest.bundled(dataset)
    parts = [DataFrame({"method": [], "pretrain_set": [], "published": []}, dtype=object)]
    for number, targets in COMPARISONS.items():
        if whole and column in targets:
            rows = merged(number)
            kinds = rows["method"].str.partition(" (")[0]
            parts.append(DataFrame({"method": kinds.where(kinds.isin([*KINDS]), "others"),
                                    "pretrain_set": rows["pretrain_set"], "published": rows[column]}))
    return pd.concat(parts, ignore_index=True).dropna().drop_duplicates()


def beside_printed(rows: DataFrame) -> DataFrame:
    """Rows of `transfer` by method and what was pre-trained on, `pretrain_set`, and those that the paper prints."""
    parts = [rows.assign(pretrain_set=[
        NOWHERE if row.method == "scratch" else SETS.get(manifest.plain(row.dataset), style.called(row.dataset))
        for row in rows.itertuples()], published=math.nan)]
    dataset, preset = style.only(rows, "dataset"), rows["preset"].iloc[0]
    for target in rows["target"].unique():
        others = _printed_rows(dataset, target)
        parts.append(others.assign(target=target, dataset=dataset, preset=preset, ours=math.nan, n_seeds=0))
    joined = pd.concat(parts, ignore_index=True)
    return joined.assign(pretrain_set=joined["pretrain_set"].replace(NOWHERE, "none"))


TRANSFER = Plot(
    caption="Accuracy after fine-tuning, by what was pre-trained on: ours among the numbers that the paper prints for "
    "itself and for others. Nothing printed is shown beside a part of a set. Source: Tables 4 to 6.",
    x="pretrain_set", hue="method", panel="target", looks={**METHODS, **KINDS}, names=JUDGED | {"none": "none"},
    prepare=beside_printed, xlabel="pre-trained on", down=True, height=0.4,
)


def shares(rows: DataFrame) -> DataFrame:
    """Rows of `category_diversity` with counts as percent of M, and the panel that each belongs to."""
    rows = rows.assign(**{name: 100 * rows[name] / rows["batch"] for name in ("ours", "std", "expected")})
    return rows.assign(pool=[f"{_side(row.target, row.dataset)}\nM = {row.batch}" for row in rows.itertuples()]
                       ).sort_values("batch", kind="stable")


def _side(modality: str, dataset: str) -> str:
    """What the negatives of a modality are of; of pairs of grids the two are no pictures and sounds."""
    characters = manifest.plain(dataset) in CHARACTERS
    return f"negatives of {GRIDS[modality] if characters else SEEN[modality]}"


def beyond_draws(plot: Plot, data: DataFrame) -> str:
    """How many more categories than uniform draws the most and the least diverse choice give, on average."""
    by = LINE if data[LINE].nunique() > 1 else "x"
    gains = (data["value"] - data["reference"]).groupby(data[by]).mean().sort_values()
    looks = style.looks_of(gains.index, SAMPLERS | POST_HOC)
    unit = "% of M" if plot is DIVERSITY else "categories"
    return (f"Beyond uniform draws, on average: {looks[gains.index[-1]].label} {gains.iloc[-1]:+.1f}, "
            f"{looks[gains.index[0]].label} {gains.iloc[0]:+.1f} {unit}")


DIVERSITY = Plot(
    caption="Distinct categories among the M negatives selected in a step, mean over training, as a share of M; "
    "dashed, the closed-form expectation of M uniform draws, of earlier trainings with replacement. Source: Fig. 4, "
    "where it is called the probability of a unique negative.",
    x="sampler", panel="pool", names={name: look.label for name, look in SAMPLERS.items()}, prepare=shares,
    reference="expected", reference_label=UNIFORM, ylabel="categories\n(% of M)", down=True, columns=2, height=0.17,
    finding=beyond_draws,
)


def counted(rows: DataFrame) -> DataFrame:
    """Categories along training, a row for each modality, with the panel that each belongs to."""
    parts = []
    several = rows["frequency"].nunique() > 1
    for modality in MODALITIES:
        part = rows.assign(categories=rows[f"categories_{modality}"])
        kinds = (", " + part["frequency"].replace(FREQUENT)) if several else ""
        part["pool"] = _side(modality, style.only(rows, "dataset")) + "\nM = " + part["batch"].astype(str) + kinds
        parts.append(part)
    order = ["batch", "frequency"]
    return pd.concat(parts).sort_values(order, kind="stable")


CURVES = Plot(
    caption="Distinct categories among the M negatives selected in a step, along training: means over seeds, with a "
    "band of one standard deviation; dashed, the closed-form expectation of M uniform draws, of earlier trainings with "
    "replacement. Source: Fig. 2.",
    x="step", y="categories", hue="sampler", panel="pool", looks=SAMPLERS, prepare=counted, reference="expected",
    reference_label=UNIFORM, xlabel="iteration", ylabel="distinct\ncategories", columns=2, height=1.1, least_span=0,
    finding=beyond_draws,
)


def chosen_after(rows: DataFrame) -> DataFrame:
    """Distinct categories of choices after training, with what uniform draws give, by choice and pool."""
    index = ["frequency", "batch", "sampler", "posterior", "step", "seed"]
    wide = rows.pivot_table("value", index, "measure").reset_index()
    choices = [f"{row.sampler} {row.posterior:g}" if row.sampler == "gradient" else row.sampler
               for row in wide.itertuples()]
    pools = [f"{FREQUENT[row.frequency]}\nM = {row.batch}" for row in wide.itertuples()]
    wide = wide.assign(choice=choices, pool=pools, dataset=style.only(rows, "dataset"),
                       preset=style.only(rows, "preset"))
    return wide.sort_values(["batch", "frequency", "step"], kind="stable")


AFTERWARDS = Plot(
    caption="Distinct categories among M negatives chosen with an encoder of XMoCo along its training, by how they are "
    "chosen, from pools in which categories are equally frequent (left) and have Zipf's frequencies (right); dashed, "
    "uniform draws in closed form. Mean and standard deviation over seeds. Source: Figs. 2 and 4.",
    x="step", y="categories", hue="choice", panel="pool", looks=POST_HOC, prepare=chosen_after, reference="expected",
    reference_label=UNIFORM, xlabel="step of training", ylabel="distinct\ncategories", logarithmic=True,
    columns=2, height=1.2, least_span=0, finding=beyond_draws,
)


def missed(rows: DataFrame) -> DataFrame:
    """By how many categories the choices by distance miss what is predicted of them, and that above chance."""
    rows = chosen_after(rows).dropna(subset="predicted")
    rows = rows.assign(missed=rows["categories"] - rows["predicted"], above=rows["predicted"] - rows["expected"],
                       zero=0.0)
    groups = rows.groupby(["frequency", "batch", "step", "choice"], as_index=False)
    means = groups.agg(missed=("missed", "mean"), std=("missed", "std"), n_seeds=("missed", "size"),
                       above=("above", "mean"), zero=("zero", "mean"))
    return means.assign(dataset=style.only(rows, "dataset"), preset=style.only(rows, "preset"))


PREDICTED = Plot(
    caption="For every M and encoder, how many more distinct categories choices by distance give than is predicted "
    "from how far apart a category lies, within over between, against what is predicted above uniform draws. Mean and "
    "standard deviation over seeds. Source: Figs. 2 and 4.",
    x="above", y="missed", hue="choice", panel="frequency", looks=POST_HOC, names=FREQUENT, reference="zero",
    reference_label="as predicted", xlabel="predicted above uniform draws (categories)",
    ylabel="counted minus predicted\n(categories)", joined=False, least_span=0,
    finding=lambda plot, data: f"The prediction is off by at most {data['value'].abs().max():.1f} categories",
)


def ranked_first(rows: DataFrame) -> DataFrame:
    """The `extremes` of both kinds of queries, a row for each kind of keys."""
    parts = []
    for query in style.in_order(rows["query"], MODALITIES):
        best = extremes(rows[rows["query"] == query])
        for keys, column, deviation in (("stored", "accuracy", "std"), ("renewed", "accuracy_renewed", "")):
            parts.append(DataFrame({
                "query": f"queries of {SEEN[query]}", "category": best["category"], "keys": keys,
                "ours": best[column], "std": best[deviation] if deviation else math.nan,
                "n_seeds": rows["seed"].nunique(),
            }))
    return pd.concat(parts, ignore_index=True).assign(
        dataset=style.only(rows, "dataset"), preset=style.only(rows, "preset"))


def _renewal(plot: Plot, data: DataFrame) -> str:
    means = data.groupby(LINE)["value"].mean()
    return (f"Among keys encoded again {means['renewed']:.0f} % of positives rank first, "
            f"among stored ones {means['stored']:.0f} %")


PRETEXT = Plot(
    caption="How often the positive of a query ranks first among the keys of the dictionary, by category: the "
    "categories in which this succeeds most and least often (filled markers). Beside it the same among the keys of the "
    "dictionary's items encoded again, which a query cannot tell from its positive by their age. Source: Fig. 6.",
    x="category", hue="keys", panel="query", prepare=ranked_first, down=True, height=0.19, finding=_renewal,
    looks={"stored": Look("keys of the dictionary", style.BLUE, "o"),
           "renewed": Look("keys encoded again", style.GREY, "s")},
    ylabel="positive ranks first (% of queries)",
)


def extremes(table: DataFrame) -> DataFrame:
    """The 10 categories of highest and 5 of lowest accuracy, mean over seeds, best first and then by name; none twice.

    Returns:
        category, accuracy, std (over seeds), accuracy_renewed, rank ("highest" or "lowest").
    """
    means = table.groupby("category", as_index=False).agg(
        accuracy=("accuracy", "mean"), std=("accuracy", "std"), accuracy_renewed=("accuracy_renewed", "mean"))
    means = means.sort_values(["accuracy", "category"], ascending=[False, True], ignore_index=True)
    best = means.head(BEST).assign(rank="highest")
    return pd.concat([best, means[BEST:].tail(WORST).assign(rank="lowest")], ignore_index=True)


@style.styled()
def selected_negatives(table: DataFrame, pictures: Mapping[int, np.ndarray], modality: str = "video") -> Figure:
    """A row for each sampler: a query, and three negatives that are selected for it, with the norms of their gradients.

    Args:
        table: of `measured.selected_negatives`, of one seed.
        pictures: by item, (H, W, 3) uint8, of all in `shown` and their nearest.
        modality: of the negatives; queries are of the other one. Sounds are shown by the picture of their clip.

    Source: Fig. 5.
    """
    query, = SEEN.keys() - {modality}
    style.only(table, "seed")
    rows = shown(table[table["modality"] == modality])
    looks = style.looks_of(rows["sampler"], SAMPLERS)
    samplers = style.in_order(rows["sampler"], SAMPLERS)
    shape = len(samplers), 1 + TILES
    figure, stack = style.panels(0.9 + 1.3 * len(samplers), *shape)
    for line, sampler in zip(np.reshape(stack, shape), samplers, strict=True):
        picks = rows[rows["sampler"] == sampler]
        line[0].set_ylabel(textwrap.fill(looks[sampler].label, 16))
        _tile(line[0], pictures[picks["nearest"].iloc[0]], "query", picks["nearest_category"].iloc[0])
        line[0].spines[:].set(visible=True, color=style.BLUE, linewidth=1.5)
        for axes, row in zip(line[1:], picks.itertuples(), strict=False):
            _tile(axes, pictures[row.item], f"{row.gradient_norm:.3g}", row.category)
        for axes in line[1 + len(picks):]:
            axes.set_visible(False)
    title = f"Negatives of {SEEN[modality]} for queries of {SEEN[query]}, with the norms of their gradients"
    style.entitle(figure, title, style.heading(table))
    return style.settled(figure)


def shown(table: DataFrame) -> DataFrame:
    """What the figure shows of the picks of one modality.

    Returns:
        Of every sampler the rows of the query that most of its picks are nearest to, the first one of equals: those of
        the largest, the middle and the smallest gradient, in this order; of fewer each once.
    """
    parts = []
    for _, picks in table.groupby("sampler", sort=False):
        query = picks["nearest"].mode().min()
        ranked = picks[picks["nearest"] == query].sort_values(["gradient_norm", "item"], ascending=[False, True])
        parts.append(ranked.iloc[sorted({0, len(ranked) // 2, len(ranked) - 1})])
    return pd.concat(parts, ignore_index=True)


def _tile(axes: Axes, picture: np.ndarray, above: str, category: str | int) -> None:
    """A picture between two texts; categories such as "PlayingGuitar" and "ride_bike" are broken into words."""
    words = re.sub("(?<=[a-z])(?=[A-Z])|_", " ", str(category))
    below = textwrap.fill(words, 12, max_lines=3, placeholder=" ...", break_long_words=False)
    axes.imshow(picture, interpolation="nearest")
    axes.set(xticks=[], yticks=[], title=above, xlabel=below)
    axes.spines[:].set_visible(False)


def bundled_negatives(log: DataFrame) -> Figure:
    """Negatives that every sampler selects from one pool, as pictures, below the norm of the gradient that each causes
    in the last layer. A row has the query that is nearest to most of what its sampler selects, and of these negatives
    those of the largest, the middle and the smallest gradient.

    Of clips that come with the package, whose frames in the middle are filmed again.
    """
    rows = shown(log[log["modality"] == "video"])
    items = sorted({*rows["item"], *rows["nearest"]})
    middle = synthetic.pictures(items)[:, synthetic.FRAMES // 2]
    return selected_negatives(log, dict(zip(items, middle, strict=True)))
