"""What sentences of the taxonomy's supplement are held against besides results and printed tables; see
`repro.papers`."""

from pandas import DataFrame

from repro.papers.taxonomy import glm
from repro.report import statistics


def lowered_by_contrastive_decoder(rows: DataFrame) -> DataFrame:
    """What objectives lose with the contrastive decoder: each pair of one without it and one with it is a run.

    The text says it of the term, whatever it joins, and tests it by a model whose observations are objectives: these
    are its sample, and not the seeds of the seven pairs that there are.
    """
    values = rows.groupby("objectives")["ours"].mean()
    losses = [values[name] - values[f"{name}+CD"] for name in glm.OBJECTIVES if {name, f"{name}+CD"} <= {*values.index}]
    return DataFrame({"term": "CD", "seed": range(len(losses)), "points": losses})


def lead_of_mixing(rows: DataFrame) -> DataFrame:
    """What the best trained objective that mixes is ahead of the best that does not, with the error of their seeds.

    The best are chosen by their means over seeds, seven against eight. No rows where one kind is missing.
    """
    runs = rows[rows["objectives"] != "random"].pivot_table("ours", "objectives", "seed")
    means, unmixed = runs.mean(axis=1), runs.index.isin(glm.ROW_SETS["unmixed"])
    if unmixed.all() or not unmixed.any():
        return DataFrame()
    lead = statistics.contrast(runs, means[~unmixed].idxmax(), means[unmixed].idxmax())
    return DataFrame([{"spaces": "mixed", "points": lead.value, "points_error": lead.error, "points_df": lead.df}])


DERIVED = {
    "terms_ucla": ("log/glm_forest_ucla", lambda rows: rows.rename(
        columns={"error": "estimate_error", "df": "estimate_df"})),
    "loss_of_CD_ucla": ("taxonomy_ucla", lowered_by_contrastive_decoder),
    "lead_of_mixing_ucla": ("taxonomy_ucla", lead_of_mixing),
}
