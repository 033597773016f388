"""CM-ACC's pictures: of its tables, whose rows are for each target, and of frames along and after a training."""

from collections.abc import Iterable

import pandas as pd
from pandas import DataFrame

from repro.audiovisual import CHARACTERS
from repro.data import manifest
from repro.papers.cmacc.claims import beyond_random
from repro.report import style
from repro.report.plots import Picture, Plot

METHODS = {"smoco": "SMoCo", "xmoco": "XMoCo", "cmacc": "CM-ACC", "supervised": "Supervised", "scratch": "Scratch"}
SAMPLERS = {"random": "random", "ohem": "least confident (OHEM)", "gradient": "active, gradients",
            "feature": "active, features", "released": "released code"}
POST_HOC = {"random": "random", "ohem": SAMPLERS["ohem"], "gradient 1": "gradients, temperature 1",
            "feature": SAMPLERS["feature"], "gradient 0.3": "gradients, temperature 0.3",
            "gradient 0.07": "gradients, temperature 0.07"}
ENCODERS = {"r3d18": "3D-ResNet18", "r2plus1d18": "R(2+1)D-18"}
JUDGED = {  # targets; characters are read by linear probes, encoders fine-tuned elsewhere
    "ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50",
    "esc10": "ESC10", "synthetic_video": "bundled clips, pictures", "synthetic_audio": "bundled clips, sound",
    "characters": "new pairs", "new_drawings": "drawings never seen",
}
SEEN = {"video": "pictures", "audio": "sound"}  # what a network is given of a clip
GRIDS = {"video": "grid 1", "audio": "grid 2"}  # of a pair of characters
UNIFORM = "uniform draws, closed form"
FREQUENT = {"balanced": "equally frequent", "zipf": "Zipf's frequencies"}  # categories of a pool
POOL = ("frequency", "sampler", "batch", "expected")
BEST, WORST = 10, 5  # categories that Fig. 6 shows
KEYS = {"accuracy": "keys of the dictionary", "accuracy_again": "encoded again, of age 0"}  # beside a positive


APPROACHES = Plot(
    caption="Accuracy after pre-training within or across modalities, with and without the extra layer (fcl) and with "
    "negatives selected at random or actively, by where the encoder was fine-tuned; of grids of characters, of linear "
    "probes. Source: Tables 1 and 2.",
    x="approach", panel="target", names=JUDGED,
)
BY_SAMPLER = Plot(
    caption="Accuracy by how the M negatives of a step are selected: at random, and less that of negatives at random, "
    "the keys that are least confident which query they resemble (OHEM as printed) and actively selected ones. On "
    "grids of characters it is that of linear probes. Source: Table 3.",
    x="batch", hue="sampler", panel="target", lines=SAMPLERS, names=JUDGED, minus="random",
    xlabel="negatives selected, M", logarithmic=True, columns=2,
)
BY_DICTIONARY = Plot(
    caption="Accuracy of SMoCo against the size of the dictionary, and of the other methods less that of SMoCo; of "
    "grids of characters, of linear probes. The paper shows this as a curve without its values, so that there is "
    "nothing to compare with. Source: Fig. 3b.",
    x="dictionary", hue="method", panel="target", lines=METHODS, names=JUDGED, xlabel="dictionary size",
    minus="smoco", logarithmic=True, columns=2,
)
BY_CHARACTERS = Plot(
    caption="Accuracy of probes that read characters from grids, of new pairs and of drawings never seen in training, "
    "against the number of characters: of SMoCo, and of the other methods less that of SMoCo. The paper shows this as "
    "a curve without its values, so that there is nothing to compare with. Source: Fig. 3a.",
    x="characters", hue="method", panel="target", lines=METHODS, names=JUDGED, xlabel="characters in a grid",
    minus="smoco", columns=2,
)


def by_encoder(rows: DataFrame) -> DataFrame:
    """Rows of `transfer`, scratch first, by method, encoder of video, and split where it is no mean over splits."""
    encoders = []
    for row in rows.itertuples():
        trunk = f", {ENCODERS[row.video_trunk]}" if row.video_trunk in ENCODERS else ""
        split = f", split {row.split}" if row.split else ""
        encoders.append(METHODS[row.method] + trunk + split)
    return rows.assign(encoder=encoders).sort_values("method", key=lambda names: names != "scratch", kind="stable")


TRANSFER = Plot(
    caption="Accuracy after fine-tuning, by how the encoder was pre-trained. Nothing printed is shown beside a part of "
    "a set. Source: Tables 4 to 6.",
    x="encoder", panel="target", names=JUDGED, prepare=by_encoder,
)


def in_pools(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Rows with `pool`, what the negatives of a step are and their number M, in the order of M."""
    pools = [f"{name}\nM = {batch}" for name, batch in zip(names, rows["batch"], strict=True)]
    return rows.assign(pool=pools).sort_values("batch", kind="stable")


def _sides(rows: DataFrame) -> dict[str, str]:
    """What the negatives of a modality are of; of pairs of grids the two are no pictures and sounds."""
    grids = manifest.plain(style.only(rows, "dataset")) in CHARACTERS
    return {modality: f"negatives of {name}" for modality, name in (GRIDS if grids else SEEN).items()}


DIVERSITY = Plot(
    caption="Distinct categories among the M negatives selected in a step, mean over training; dashed, the closed-form "
    "expectation of M uniform draws, of earlier trainings with replacement. Source: Fig. 4, whose probability of a "
    "unique negative is this number divided by M.",
    x="sampler", panel="pool", names=SAMPLERS,
    prepare=lambda rows: in_pools(rows, rows["target"].map(_sides(rows))), reference="expected",
    reference_label=UNIFORM, ylabel="distinct categories",
)


def of_pools(rows: DataFrame) -> DataFrame:
    """Reports of the selection along training."""
    return rows[["step", "categories_video", "categories_audio", *POOL, "id", "seed", "dataset", "preset"]]


def counted(rows: DataFrame) -> DataFrame:
    """Categories along training, a row for each modality, with the panel that each belongs to."""
    parts = [rows.assign(categories=rows[f"categories_{modality}"], side=side)
             for modality, side in _sides(rows).items()]
    long = pd.concat(parts).sort_values("frequency", kind="stable")
    long = in_pools(long, long["side"])
    if rows["frequency"].nunique() > 1:
        long["pool"] += "\n" + long["frequency"].replace(FREQUENT)
    return long.assign(entry=long["pool"])


CURVES = Plot(
    caption="Distinct categories among the M negatives selected in a step, along training: means over seeds, with a "
    "band of one standard deviation; dashed, the closed-form expectation of M uniform draws, of earlier trainings with "
    "replacement. Source: Fig. 2.",
    x="step", y="categories", hue="sampler", panel="pool", lines=SAMPLERS, prepare=counted, reference="expected",
    reference_label=UNIFORM, xlabel="iteration", ylabel="distinct\ncategories", columns=2,
)


def chosen_after(rows: DataFrame) -> DataFrame:
    """Distinct categories of choices after training, with what uniform draws give, by choice and pool."""
    index = ["frequency", "batch", "sampler", "posterior", "step", "seed", "dataset", "preset"]
    wide = rows.pivot_table("value", index, "measure").reset_index()
    gradients = wide["sampler"] + " " + wide["posterior"].map("{:g}".format)
    wide = wide.assign(choice=gradients.where(wide["sampler"] == "gradient", wide["sampler"]))
    return in_pools(wide, wide["frequency"].map(FREQUENT))


AFTERWARDS = Plot(
    caption="Distinct categories among M negatives chosen with an encoder of XMoCo along its training, by how they are "
    "chosen, from pools in which categories are equally frequent (left) and have Zipf's frequencies (right); dashed, "
    "uniform draws in closed form. Mean and standard deviation over seeds. Source: Figs. 2 and 4.",
    x="step", y="categories", hue="choice", panel="pool", lines=POST_HOC, prepare=chosen_after, reference="expected",
    reference_label=UNIFORM, xlabel="step of training", ylabel="distinct\ncategories", logarithmic=True,
    columns=2,
)


def ranked_first(rows: DataFrame) -> DataFrame:
    """The categories of highest and of lowest accuracy, from the highest down, for each kind of queries."""
    parts = []
    for query, name in SEEN.items():
        asked = rows[rows["query"] == query].assign(query=f"queries of {name}")
        means = asked.groupby("category")["accuracy"].mean().sort_values(ascending=False, kind="stable")
        shown = [*means.index[:BEST], *means.index[BEST:][-WORST:]]
        parts.append(asked.set_index("category").loc[shown].reset_index())
    known = ["query", "category", "seed", "dataset", "preset"]
    measured = rows.columns.intersection([*KEYS])
    return pd.concat(parts).melt(known, measured, var_name="keys", value_name="ours")


PRETEXT = Plot(
    caption="How often the positive of a query ranks first among the keys of the dictionary, by category: the "
    "categories in which this succeeds most and least often. Where it was measured, beside it the same among keys of "
    "the dictionary's items encoded again as training encoded them, of which none is old. Source: Fig. 6.",
    x="category", hue="keys", panel="query", lines=KEYS, prepare=ranked_first,
    ylabel="positive ranks first (% of queries)",
)


def picked(rows: DataFrame) -> DataFrame:
    """`beyond_random` of picks, an encoder each seed, beside random picks, which are beyond themselves by nothing."""
    return beyond_random(rows).assign(
        random=0.0, dataset=style.only(rows, "dataset"), preset=style.only(rows, "preset"))


PICKS = Plot(
    caption="How much larger a gradient of the last layer a sampler's negatives cause than random ones from the same "
    "pool, in the mean over M of them. Mean and standard deviation over encoders. Source: Fig. 5.",
    x="sampler", y="beyond", panel="modality", prepare=picked, reference="random", reference_label="random",
    names={**SEEN, **SAMPLERS},
    ylabel="norm less that of random picks",
)


def of_first_entry(rows: DataFrame) -> DataFrame:
    """All seeds of the first run that has the frame, by what it is called."""
    return rows[rows["entry"] == rows["entry"].iloc[0]].drop(columns="entry")


PICTURES = {
    "category_curves_multiomniglot": Picture(
        experiments=("diversity_balanced", "diversity_zipf"), frame="progress", fields=POOL, rows=of_pools,
        plot=CURVES),
    "post_hoc_diversity_multiomniglot": Picture(
        experiments=("diversity_post_hoc",), frame="post_hoc_diversity", plot=AFTERWARDS),
    "pretext_accuracy_synthetic": Picture(
        experiments=("cross_modal_synthetic",), frame="pretext_accuracy", fields=("method",), rows=of_first_entry,
        plot=PRETEXT),
    "selected_negatives_synthetic": Picture(
        experiments=("cross_modal_synthetic",), frame="selected_negatives", rows=of_first_entry, plot=PICKS),
}
