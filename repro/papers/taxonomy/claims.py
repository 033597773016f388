"""What the taxonomy paper's supplement says, as predicates over printed numbers and our cells."""

import functools
import itertools
from collections.abc import Callable

import numpy as np
import torch
from pandas import DataFrame, Series

from repro.contrast.objectives import attraction
from repro.papers.taxonomy import glm
from repro.report.evidence import Check, Estimates, Evidence, Setting, measured
from repro.report.levels import CLOSED, PRINTED
from repro.report.printed import printed
from repro.report.verdicts import (
    ERROR,
    SEEDS,
    SEEDS_SHARED,
    WIDEST,
    Estimate,
    Finding,
    above,
    below,
    claims_of,
    exactly,
    paired,
    reproduced,
)
from repro.skeleton.recipe import METHODS

TEST_SAMPLES = 460  # of NW-UCLA, after the released code's rule on lengths
DEPTHS = (1, 2, 3, 4, 5)
SPACES = (("AE", "CE"), ("AD", "CD"))  # attraction and contrast of the encoder, and of the decoder
NEW_RUN = "printed number inside the 95 % prediction interval of one more run of ours (jointly), which reaches at most "
NEW_RUN += f"{WIDEST:g} points"


def claimed_statistic(evidence: Evidence) -> Finding:
    """The t of the term that the text names, in the nine rows."""
    claim, table = printed("taxonomy_glm_claim").iloc[0], _nine_rows().set_index("term")
    same = [term for term in glm.TERMS if round(table.loc[term, "t"], 3) == claim["t"]]
    named = claim["component_named_in_text"]
    told = ", ".join(f"{term} {table.loc[term, 't']:.3f}" for term in glm.TERMS)
    return exactly(same == [named], PRINTED, f"t in nine rows of UCLA: {told}; the printed {claim['t']} is that of "
                   f"{' and '.join(same) or 'none'}, the text says {named}")


def claimed_p(evidence: Evidence) -> Finding:
    """Whether the printed bound on p is that of the printed t with four degrees of freedom, one-tailed."""
    claim, table = printed("taxonomy_glm_claim").iloc[0], _nine_rows()
    row = table.loc[(table["t"] - claim["t"]).abs().idxmin()]
    told = f"t = {row['t']:.3f} with {row['df']:.0f} degrees of freedom: one-tailed p = {row['p_one_tailed']:.4f}"
    return exactly(claim["p_upper"] - 0.001 <= row["p_one_tailed"] < claim["p_upper"], PRINTED, told)


def only_significant(evidence: Evidence) -> Finding:
    """Whether the named term alone is significant, one-tailed and uncorrected as printed."""
    named, table = printed("taxonomy_glm_claim").iloc[0]["component_named_in_text"], _nine_rows()
    significant = table.loc[table["p_one_tailed"] < ERROR, "term"].tolist()
    told = ", ".join(f"{row.term} {row.p_one_tailed:.4f} ({row.p_corrected:.3f})" for row in table.itertuples())
    return exactly(significant == [named], PRINTED, f"one-tailed p, in brackets corrected (Holm, four tests): {told}")


def cd_significant_here(setting: Setting) -> Estimates:
    """The named term's estimate in the nine rows of our means over seeds."""
    found = setting.rows("taxonomy")
    if found.empty:
        return {}
    accuracies = found.groupby("objectives")["linear"].mean()
    if not set(glm.objectives_of("unmixed+best")) <= set(accuracies.index):
        return {"CD": None}
    table = glm.SUBSETS.assign(linear=accuracies.reindex(glm.names(glm.SUBSETS)).to_numpy())
    row = glm.coefficients(glm.fit(table, "linear")).set_index("term").loc["CD"]
    return {"CD": Estimate(row["estimate"], row["error"], row["df"], f"nine rows, t = {row['t']:.2f}")}


def without_and_with_cd(accuracies: Series) -> Series:
    """What CD changes in each of the seven objectives that there are without and with it; by objective."""
    without = [name for name in accuracies.index if "CD" not in name.split("+")]
    pairs = {name: f"{name}+CD" for name in without if f"{name}+CD" in accuracies}
    return Series({name: accuracies[other] - accuracies[name] for name, other in pairs.items()}, dtype=float)


def cd_lowers(evidence: Evidence) -> Finding:
    changes = without_and_with_cd(glm.printed_by_objective()["UCLA"])
    lowered = paired(-changes, "pairs of printed objectives")
    return Finding(above({"": lowered}), PRINTED, f"lowered by {lowered}, in {(changes < 0).sum()} of {len(changes)}")


def cd_lowers_here(setting: Setting) -> Estimates:
    changes = without_and_with_cd(_means(setting))
    if len(changes) < 2:
        return {}
    return {"lowered by": paired(-changes, f"pairs of objectives, {(changes < 0).sum()} of them lowered")}


def unmixed_parts(name: str) -> list[str]:
    """The objectives that are left when one term of every mixed pair goes: AE+CE+AD leaves CE+AD and AE+AD."""
    terms = name.split("+")
    mixed = [space for space in SPACES if set(space) <= set(terms)]
    return ["+".join(term for term in terms if term not in gone) for gone in itertools.product(*mixed)]


def gains_of_mixing(accuracies: Series) -> Series:
    """Each of the seven objectives that mix minus the best of its unmixed parts, where all of them are known."""
    pairs = {name: unmixed_parts(name) for name in accuracies.index if unmixed_parts(name) != [name]}
    return Series({name: accuracies[name] - accuracies[parts].max() for name, parts in pairs.items()
                   if set(parts) <= set(accuracies.index)}, dtype=float)


def mixing_printed(evidence: Evidence) -> Finding:
    """The best objective that mixes beside the best that does not, in each column."""
    table = glm.printed_by_objective()[glm.COLUMNS]
    unmixed = table.index.isin(glm.objectives_of("unmixed"))
    mixing, others = table[~unmixed], table[unmixed]
    told = [f"{column}: {mixing[column].idxmax()} {mixing[column].max():.2f}, without mixing {others[column].idxmax()} "
            f"{others[column].max():.2f}" for column in table]
    return exactly(bool((mixing.max() <= others.max()).all()), PRINTED, "; ".join(told))


def mixing_here(setting: Setting) -> Estimates:
    gains = gains_of_mixing(_means(setting))
    if len(gains) < 2:
        return {}
    return {"mixing adds": paired(gains, f"objectives that mix, {(gains > 0).sum()} of them gain")}


def best_printed(evidence: Evidence, columns: list[str]) -> Finding:
    table = glm.printed_by_objective()[columns]
    best = table.idxmax()
    told = [f"{column}: {name} {table.loc[name, column]:.2f}" for column, name in best.items()]
    behind = [f"{table.loc[glm.BEST, column]:.2f} in {column}" for column in columns if best[column] != glm.BEST]
    told += [f"{glm.BEST} has {' and '.join(behind)}"] if behind else []
    return exactly(not behind, PRINTED, "best " + "; ".join(told))


def best_here(setting: Setting) -> Estimates:
    others = [name for name in glm.objectives_of("all") if name != glm.BEST]
    best = {"objectives": glm.BEST}
    return {f"over {name}": setting.difference("taxonomy", best, {"objectives": name}) for name in others}


def lowest_printed(evidence: Evidence, columns: list[str]) -> Finding:
    table = glm.printed_by_objective()[columns]
    lowest = table.idxmin()
    told = [f"{column}: {name} {table.loc[name, column]:.2f}" for column, name in lowest.items()]
    return exactly(set(lowest) == {"AE"}, PRINTED, "lowest " + "; ".join(told))


def lowest_here(setting: Setting) -> Estimates:
    others = [name for name in glm.objectives_of("all") if name != "AE"]
    return {f"{name} over it": setting.paired("taxonomy", {"objectives": name}, {"objectives": "AE"})
            for name in others}


def single_terms_printed(evidence: Evidence) -> Finding:
    """CD alone beside each of the other three alone."""
    values = glm.printed_by_objective()["UCLA"][glm.TERMS]
    told = ", ".join(f"{name} {value:.2f}" for name, value in values.items())
    return exactly(bool((values.drop("CD") > values["CD"]).all()), PRINTED, told)


def single_terms_here(setting: Setting) -> Estimates:
    others = [name for name in glm.TERMS if name != "CD"]
    return {f"{name} over CD": setting.paired("taxonomy", {"objectives": name}, {"objectives": "CD"})
            for name in others}


def column_here(setting: Setting) -> Estimates:
    values = glm.printed_by_objective()["UCLA"]
    return {name: setting.from_printed("taxonomy", value, objectives=name) for name, value in values.items()}


def depth_row(setting: Setting, method: str) -> Estimates:
    column = {"random": "random_init", "AE": "AE"}[method]
    values = printed("taxonomy_depth_collapse").set_index("layers")[column]
    kind = "random" if method == "random" else "trained"
    chosen = {"of": kind, "objectives": method}
    return {f"layers {depth}": setting.from_printed("encoder_collapse", values[depth], layers=depth, **chosen)
            for depth in DEPTHS}


def drop_printed(evidence: Evidence) -> Finding:
    table = printed("taxonomy_depth_collapse")
    drops = table["random_init"] - table["AE"]
    told = ", ".join(f"{layers}: {drop:.2f}" for layers, drop in zip(table["layers"], drops, strict=True))
    return exactly(bool((drops > 0).all()), PRINTED, f"random minus AE by layers: {told}")


def drop_here(setting: Setting) -> Estimates:
    sides = ({"objectives": "random"}, {"objectives": "AE"})
    return {f"layers {depth}": setting.difference("encoder_collapse", *({"layers": depth, **side} for side in sides))
            for depth in DEPTHS}


def drop_over_depths(setting: Setting) -> Estimates:
    """Two to five layers as pairs, for which one seed of each is enough."""
    found = setting.rows("encoder_collapse")
    if found.empty:
        return {}
    accuracies = found[found["layers"] > 1].groupby(["objectives", "layers"])["linear"].mean().unstack("objectives")
    drops = (accuracies.get("random") - accuracies["AE"]).dropna() if "AE" in accuracies else Series(dtype=float)
    return {"random minus AE": paired(drops, "depths") if len(drops) == len(DEPTHS) - 1 else None}


def deeper_here(setting: Setting) -> Estimates:
    random, steps = {"objectives": "random"}, ((1, 2), (2, 3), (3, 4))
    return {f"{low} to {high} layers": setting.difference(
        "encoder_collapse", {"layers": high, **random}, {"layers": low, **random}) for low, high in steps}


def same_in_both_tables(evidence: Evidence) -> Finding:
    one = glm.printed_by_objective().loc["AE", "UCLA"]
    two = printed("taxonomy_depth_collapse").set_index("layers").loc[1, "AE"]
    return exactly(abs(one - two) < 0.01, PRINTED, f"Table 1: {one}, Table 2: {two}, {one - two:+.2f} points")


def fractions_of_the_test_split(evidence: Evidence) -> Finding:
    """Whether each printed accuracy is a number of correct samples over all, rounded to two digits."""
    printed_values = printed("taxonomy")["UCLA"]

    def matching(samples: int) -> int:
        possible = {round(100 * correct / samples, 2) for correct in range(samples + 1)}
        return sum(round(value, 2) in possible for value in printed_values)

    nearby = max(matching(samples) for samples in range(TEST_SAMPLES - 5, TEST_SAMPLES + 5))
    told = f"{matching(TEST_SAMPLES)} of {len(printed_values)} values are k/{TEST_SAMPLES}"
    return exactly(matching(TEST_SAMPLES) == len(printed_values), PRINTED,
                   f"{told}, at most {nearby} with {TEST_SAMPLES - 5} to {TEST_SAMPLES + 4} samples")


def printed_attraction(evidence: Evidence) -> Finding:
    """Whether 2 - 2 sum(z_q + z_gt), as printed, is least where two unit vectors agree, as 2 - 2 <z_q, z_gt> is."""
    angles = torch.linspace(0, np.pi, 181, dtype=torch.float64)
    query = torch.stack([angles.cos(), angles.sin()], 1)
    target = torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand_as(query)
    as_printed = 2 - 2 * (query + target).sum(1)
    meant = torch.stack([attraction(q, t) for q, t in zip(query.split(1), target.split(1), strict=True)])
    least = [int(values.argmin()) for values in (as_printed, meant)]
    return exactly(least[0] == 0, CLOSED, "of two unit vectors in the plane the printed formula is least at an angle "
                   f"of {least[0]} degrees, with a product in place of the plus at {least[1]}")


def _means(setting: Setting) -> Series:
    """Accuracies of the trained objectives, means over seeds; none if there are no cells."""
    found = setting.rows("taxonomy")
    if found.empty:
        return Series(dtype=float)
    return found[found["objectives"] != "random"].groupby("objectives")["linear"].mean()


@functools.cache
def _nine_rows() -> DataFrame:
    return glm.coefficients(glm.fit(printed("taxonomy"), "UCLA"))


def _here(table: str, compare: Callable[[Setting], Estimates], judge=above, *, numbers: bool = False) -> Check:
    """A check of our cells of what the paper compares; what a reader has added to it is no evidence."""
    def of_the_paper(setting: Setting) -> Estimates:
        return compare(setting.among("objectives", METHODS))

    return measured((table,), of_the_paper, judge, datasets=("ucla",), numbers=numbers)


one_more_run = functools.partial(reproduced, widest=WIDEST)
TABLE, COLLAPSE = "taxonomy_ucla", "encoder_collapse_ucla"
_claim = claims_of("taxonomy", "T", "supplement, ")
CLAIMS = [
    _claim(
        1, "text", "In a general linear model of the results the contrastive decoder has t = 2.394.",
        "least squares on UCLA, the eight rows that avoid mixing and AE+CE+AD (inferred to be the main tables'): the "
        "term whose t is 2.394 to three digits is CD",
        claimed_statistic, "glm_specifications",
    ),
    _claim(
        2, "text", "That statistic has p < 0.038, one-tailed.",
        "the one-tailed p of the printed t in the eight rows that avoid mixing and AE+CE+AD is below 0.038 and not "
        "below 0.037",
        claimed_p, "glm_specifications",
    ),
    _claim(
        3, "text", "The contrastive decoder is the only significant term.",
        "in the eight rows that avoid mixing and AE+CE+AD: CD, and it alone, has a one-tailed p below 0.05",
        only_significant, "glm_specifications",
    ),
    _claim(
        4, "text", "The contrastive decoder is a significant term of the general linear model (trained here).",
        "least squares on our means over seeds, the eight rows that avoid mixing and AE+CE+AD: CD adds more than 0; "
        "one-sided t test, 5 %",
        _here("taxonomy", cd_significant_here), "glm_forest",
    ),
    _claim(
        5, "text", "Including the contrastive decoder lowers performance.",
        "printed UCLA accuracy without CD minus with it > 0; one-sided t test over the seven pairs, 5 %",
        cd_lowers, TABLE,
    ),
    _claim(
        6, "text", "Including the contrastive decoder lowers performance (trained here).",
        "our mean accuracy over seeds without CD minus that with it > 0; one-sided t test over the seven pairs, 5 %",
        _here("taxonomy", cd_lowers_here), TABLE, "taxonomy_synthetic",
    ),
    _claim(
        7, "text and Table 1", "AE+CE+AD is the best objective on NW-UCLA.",
        "it has the highest printed accuracy in the column UCLA",
        functools.partial(best_printed, columns=["UCLA"]), TABLE,
    ),
    _claim(
        8, "text and Table 1", "AE+CE+AD is the best objective (taken to mean: in every column).",
        "it has the highest printed accuracy in each of the four columns",
        functools.partial(best_printed, columns=glm.COLUMNS), TABLE,
    ),
    _claim(
        9, "text and Table 1", "AE+CE+AD is the best objective on NW-UCLA (trained here).",
        f"its accuracy minus that of each of the 14 others > 0; {SEEDS}",
        _here("taxonomy", best_here), TABLE, "taxonomy_synthetic",
    ),
    _claim(
        10, "Table 1", "The fifteen printed accuracies on NW-UCLA.", NEW_RUN,
        _here("taxonomy", column_here, one_more_run, numbers=True), TABLE,
    ),
    _claim(
        11, "Table 1", "The printed accuracies on NW-UCLA are shares of its test samples, of one run each.",
        f"each is a whole number of {TEST_SAMPLES} samples, to two digits",
        fractions_of_the_test_split, TABLE,
    ),
    _claim(
        12, "Table 2", "The five printed accuracies of random initialisation, by depth.", NEW_RUN,
        _here("encoder_collapse", functools.partial(depth_row, method="random"), one_more_run, numbers=True), COLLAPSE,
    ),
    _claim(
        13, "Table 2", "The five printed accuracies of the attractive encoder, by depth.", NEW_RUN,
        _here("encoder_collapse", functools.partial(depth_row, method="AE"), one_more_run, numbers=True), COLLAPSE,
    ),
    _claim(
        14, "Table 2", "The attractive encoder is less accurate than random initialisation at all depths.",
        "printed accuracy of random initialisation minus that of AE > 0 at each of five depths",
        drop_printed, COLLAPSE,
    ),
    _claim(
        15, "Table 2", "The attractive encoder is less accurate than random initialisation at all depths (trained "
        "here).", f"random minus AE > 0 at each of five depths; {SEEDS}",
        _here("encoder_collapse", drop_here), "encoder_collapse",
    ),
    _claim(
        16, "Table 2", "From two layers on the attractive encoder is less accurate than random initialisation (trained "
        "here).", "random minus AE > 0; one-sided t test over the depths two to five as pairs, 5 %",
        _here("encoder_collapse", drop_over_depths), "encoder_collapse",
    ),
    _claim(
        17, "Table 2", "Up to four layers, each one more makes random initialisation more accurate (trained here).",
        f"the accuracy rises at each of the three steps; {SEEDS}",
        _here("encoder_collapse", deeper_here), "encoder_collapse",
    ),
    _claim(
        18, "Tables 1 and 2", "The attractive encoder of one layer has one accuracy on NW-UCLA.",
        "the printed accuracies of the two tables are equal to two digits",
        same_in_both_tables, COLLAPSE,
    ),
    _claim(
        19, "Alg. 1", "The attractive encoder's term, 2 minus twice the sum of z_q + z_gt, draws the two together.",
        "of two unit vectors in the plane, on a grid of one degree, it is least where they agree",
        printed_attraction,
    ),
    _claim(
        20, "text and Table 1", "Mixing attraction and contrast in one space brings no improvement.",
        "printed: in none of the four columns is the best of the seven objectives that mix above the best of the eight "
        "that do not",
        mixing_printed, TABLE,
    ),
    _claim(
        21, "text and Table 1", "Mixing attraction and contrast in one space brings no improvement (trained here).",
        "each of the seven objectives that mix, minus the best that is left when one term of every mixed pair goes, of "
        "our means over seeds: < 0; one-sided t test over the seven, 5 %",
        _here("taxonomy", mixing_here, below), TABLE,
    ),
    _claim(
        22, "text and Table 1", "The attractive encoder alone is the least accurate objective on NW-UCLA.",
        "it has the lowest printed accuracy in the column UCLA",
        functools.partial(lowest_printed, columns=["UCLA"]), TABLE,
    ),
    _claim(
        23, "text and Table 1", "The attractive encoder alone is the least accurate objective (taken to mean: in every "
        "column).", "it has the lowest printed accuracy in each of the four columns",
        functools.partial(lowest_printed, columns=glm.COLUMNS), TABLE,
    ),
    _claim(
        24, "text and Table 1", "The attractive encoder alone is the least accurate objective on NW-UCLA (trained "
        "here).", f"the accuracy of each of the 14 others minus its own > 0; {SEEDS_SHARED}",
        _here("taxonomy", lowest_here), TABLE, "taxonomy_synthetic",
    ),
    _claim(
        25, "text and Table 1", "The contrastive decoder is worse than the other components.",
        "printed accuracy on UCLA of AE, CE and AD, each alone, minus that of CD alone > 0",
        single_terms_printed, TABLE,
    ),
    _claim(
        26, "text and Table 1", "The contrastive decoder is worse than the other components (trained here).",
        f"accuracy of AE, CE and AD, each alone, minus that of CD alone > 0; {SEEDS_SHARED}",
        _here("taxonomy", single_terms_here), TABLE, "taxonomy_synthetic",
    ),
]
