"""What sentences of the taxonomy's supplement are held against besides results and printed tables; see
`repro.papers`."""

from pandas import DataFrame, Series

from repro.papers.taxonomy import glm
from repro.report import statistics


def by_objective(rows: DataFrame) -> Series:
    """Accuracies by objective: means over seeds of trained ones, or the printed ones on NW-UCLA."""
    if "ours" in rows:
        return rows[rows["objectives"] != "random"].groupby("objectives")["ours"].mean()
    return rows.set_index(glm.names(rows))["UCLA"]


def lowered_by_contrastive_decoder(rows: DataFrame) -> DataFrame:
    """What objectives lose with the contrastive decoder: each pair of one without it and one with it is a run.

    The text says it of the term, whatever it joins, and tests it by a model whose observations are objectives: these
    are its sample, and not the seeds of the seven pairs that there are.
    """
    values, losses = by_objective(rows), []
    for name in glm.OBJECTIVES:
        with_it = f"{name}+CD"
        if {name, with_it} <= {*values.index}:
            losses.append(values[name] - values[with_it])
    return DataFrame({"term": "CD", "seed": range(len(losses)), "points": losses})


def lead_of_mixing(rows: DataFrame) -> DataFrame:
    """What the best trained objective that mixes is ahead of the best that does not, with the error of their seeds.

    It is `best_by_mixing` of our runs: the best are chosen by their means over seeds, seven against eight.
    """
    runs = rows[rows["objectives"] != "random"].pivot_table("ours", "objectives", "seed")
    means, mixes = runs.mean(axis=1), runs.index.map(lambda name: bool(glm.mixed(name)))
    if mixes.all() or not mixes.any():
        return DataFrame()
    lead = statistics.contrast(runs, means[mixes].idxmax(), means[~mixes].idxmax())
    return DataFrame([{"spaces": "mixed", "points": lead.value, "points_error": lead.error, "points_df": lead.df}])


def best_by_mixing(rows: DataFrame) -> DataFrame:
    """The best printed objective of those that mix and of the others, in each column."""
    mixes = glm.names(rows).map(lambda name: "mixed" if glm.mixed(name) else "unmixed")
    return rows.groupby(mixes)[glm.COLUMNS].max().rename_axis("spaces").reset_index()


DERIVED = {
    "printed_by_objective": ("printed/taxonomy", lambda rows: rows.assign(objectives=glm.names(rows))),
    "printed_depths": (
        "printed/taxonomy_depth_collapse", lambda rows: rows.melt("layers", var_name="objectives", value_name="UCLA")),
    "terms_ucla": ("log/glm_forest_ucla", lambda rows: rows.rename(
        columns={"error": "estimate_error", "df": "estimate_df"})),
    "printed_by_mixing": ("printed/taxonomy", best_by_mixing),
    "printed_loss_of_CD": ("printed/taxonomy", lowered_by_contrastive_decoder),
    "loss_of_CD_ucla": ("taxonomy_ucla", lowered_by_contrastive_decoder),
    "lead_of_mixing_ucla": ("taxonomy_ucla", lead_of_mixing),
}
