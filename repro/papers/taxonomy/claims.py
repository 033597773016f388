"""What the taxonomy paper's supplement says, and where it disagrees: held against printed numbers and our cells."""

import functools
import itertools
from collections.abc import Callable

import numpy as np
import torch
from pandas import DataFrame, Series
from scipy import stats

from repro.contrast.objectives import attraction
from repro.data import manifest
from repro.papers.predicates import claims, differences, discrepancies, one_more_run
from repro.papers.taxonomy import glm
from repro.papers.taxonomy.logs import FROZEN
from repro.recipe import in_words
from repro.report.evidence import Check, Estimates, Evidence, Setting, departing, measured
from repro.report.printed import printed
from repro.report.verdicts import CLOSED, ERROR, PRINTED, Estimate, Finding, above, below, exactly, paired
from repro.skeleton.recipe import METHODS

TEST_SAMPLES = 460  # of NW-UCLA, after the released code's rule on lengths
DEPTHS = (1, 2, 3, 4, 5)
SPACES = (("AE", "CE"), ("AD", "CD"))  # attraction and contrast of the encoder, and of the decoder
LOW, HIGH = "AE+CD", "AE+AD+CD"  # which may have changed places: AE+AD+CD is printed below AE+CD on NW-UCLA alone
TOP = 82.0  # printed accuracies on NW-UCLA from here on are called the highest


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
    accuracies = _means(setting)
    if accuracies.empty:
        return {}
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


def extreme_printed(evidence: Evidence, name: str, columns: list[str]) -> Finding:
    """Whether an objective is the best in all of these columns, or AE the lowest."""
    table = glm.printed_by_objective()[columns]
    extreme = table.idxmin() if name == "AE" else table.idxmax()
    told = [f"{column}: {found} {table.loc[found, column]:.2f}" for column, found in extreme.items()]
    behind = [f"{table.loc[name, column]:.2f} in {column}" for column in columns if extreme[column] != name]
    told += [f"{name} has {' and '.join(behind)}"] if behind else []
    return exactly(not behind, PRINTED, f"{'lowest' if name == 'AE' else 'best'} {'; '.join(told)}")


def single_terms_printed(evidence: Evidence) -> Finding:
    """CD alone beside each of the other three alone."""
    values = glm.printed_by_objective()["UCLA"][glm.TERMS]
    told = ", ".join(f"{name} {value:.2f}" for name, value in values.items())
    return exactly(bool((values.drop("CD") > values["CD"]).all()), PRINTED, told)


def column_here(setting: Setting) -> Estimates:
    values = glm.printed_by_objective()["UCLA"]
    return {name: setting.from_printed("taxonomy", value, objectives=name) for name, value in values.items()}


def depth_row(setting: Setting, method: str) -> Estimates:
    column, scatter = ("random_init", "random") if method == "random" else ("AE", "trained")
    values = printed("taxonomy_depth_collapse").set_index("layers")[column]
    return {f"layers {depth}": setting.from_printed(
        "encoder_collapse", values[depth], of=scatter, layers=depth, objectives=method) for depth in DEPTHS}


def drop_printed(evidence: Evidence) -> Finding:
    table = printed("taxonomy_depth_collapse")
    drops = table["random_init"] - table["AE"]
    told = ", ".join(f"{layers}: {drop:.2f}" for layers, drop in zip(table["layers"], drops, strict=True))
    return exactly(bool((drops > 0).all()), PRINTED, f"random minus AE by layers: {told}")


def drop_over_depths(setting: Setting) -> Estimates:
    """Two to five layers as pairs, for which one seed of each is enough."""
    found = setting.rows("encoder_collapse")
    if found.empty:
        return {}
    accuracies = found[found["layers"] > 1].groupby(["objectives", "layers"])["linear"].mean().unstack("objectives")
    drops = (accuracies.get("random") - accuracies["AE"]).dropna() if "AE" in accuracies else Series(dtype=float)
    return {"random minus AE": paired(drops, "depths") if len(drops) == len(DEPTHS) - 1 else None}


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


def statistic(evidence: Evidence) -> str:
    table = _nine_rows().set_index("term")
    without = glm.leave_one_out(printed("taxonomy"), "UCLA").query("term == 'AD'")["t"]
    t = {term: f"{table.loc[term, 't']:.3f}" for term in glm.TERMS}
    return (f"nine rows, UCLA: AD t = {t['AD']}, CD t = {t['CD']}; without one of the rows AD's t lies between "
            f"{without.min():.2f} and {without.max():.2f}; corrected for four tests AD has "
            f"p = {table.loc['AD', 'p_corrected']:.2f}")


def earlier_numbers(evidence: Evidence) -> str:
    """UCLA values that the repository had before its released model."""
    values, history = printed("taxonomy")["UCLA"], printed("taxonomy_repo_history")
    known = history[history["UCLA_linear"].isin(values)]
    told = ", ".join(f"{row.UCLA_linear:g}" for row in known.itertuples())
    setting = _paper_cells(evidence)
    ours = {name: setting.values("taxonomy", objectives=name) for name in ("AD", "CE", "AE+CE+AD", "AD+CD")}
    here = ", ".join(f"{name} {each.mean():.1f}" for name, each in ours.items() if len(each))
    return f"{len(known)} printed values stand there: {told}" + (f"; with one recipe here: {here}" if here else "")


def ntu_numbers(evidence: Evidence) -> str:
    values = glm.printed_by_objective()["NTU_1layer"]
    history = printed("taxonomy_repo_history").drop_duplicates("components_equivalent").set_index("model_name_in_repo")
    models = {"Moco-AE + latent similarity (MocoPlusAE)": "AE+CE+AD", "Moco-AE (MocoPlusAE sim=0)": "CE+AD",
              "Moco (MocoV2)": "CE", "TD_Con (TDCon)": "AD+CD"}
    told = [f"{name} {history.loc[model, 'NTU_xsub_linear']:.2f} against {values[name]:.2f}"
            for model, name in models.items()]
    return f"repository against supplement: {', '.join(told)}; not trained here on NTU RGB+D"


def transcription(evidence: Evidence) -> str:
    row, history = glm.printed_by_objective().loc["CE+CD"], printed("taxonomy_repo_history")
    nearest = history["UCLA_1nn"].dropna().iloc[0]
    same = abs(100 * nearest - row["UCLA"]) < 0.01 and (history["NTU_xsub_linear"] == row["NTU_1layer"]).any()
    ours = _paper_cells(evidence).values("taxonomy", objectives="CE+CD")
    here = f"; trained here CE+CD has {ours.mean():.2f} on NW-UCLA" if len(ours) else ""
    return f"both numbers {'are' if same else 'are not'} in the repository{here}"


def one_layer(evidence: Evidence) -> str:
    setting = evidence.setting("ucla", "paper", "encoder_collapse")
    ours, random = (setting.values("encoder_collapse", objectives=name, layers=1) for name in ("AE", "random"))
    return f"trained here {ours.mean():.1f}, random initialisation {random.mean():.1f}" if len(ours) else ""


def spread(evidence: Evidence) -> str:
    """The spread of the embedding under AE alone, as a share of that at random initialisation, by depth."""
    told = []
    for setting in evidence.settings("encoder_collapse"):
        shares = []
        for layers in range(1, 6):
            random, trained = (setting.values("encoder_collapse", "embedding_spread", objectives=name, layers=layers)
                               for name in ("random", "AE"))
            shares += [f"{100 * trained.mean() / random.mean():.1f}"] if len(trained) and len(random) else []
        if shares:
            told.append(f"{setting}: {', '.join(shares)} % with one layer and more")
    return f"embedding spread, of that at random initialisation: {'; '.join(told)}" if told else ""


def three_layers(evidence: Evidence) -> str:
    rates = {"0.05": {"learning_rate": 0.05}, "9e-4": {"learning_rate": 0.0009}, "1e-3": {}}
    for setting in evidence.settings("taxonomy"):
        random, told = setting.values("taxonomy", departing={"layers": 3}, objectives="random"), []
        trained = setting.values("taxonomy", departing={"layers": 3}, objectives="CE")
        if (setting.dataset, setting.preset) != ("ucla", "quick") or random.empty or trained.empty:
            continue
        for name in ("CE", "AD"):
            values = {rate: setting.values("taxonomy", departing={"layers": 3} | changes, objectives=name)
                      for rate, changes in rates.items()}
            at = ", ".join(f"{each.mean():.1f} at {rate}" for rate, each in values.items() if len(each))
            told += [f"{name} {at}"]
        return f"ucla, quick recipe, three layers: {'; '.join(told)}; random {random.mean():.1f}"
    return ""


def noise(evidence: Evidence) -> str:
    """CD with both dictionaries, and how far its decoded sequences have grown."""
    setting = _paper_cells(evidence)
    live, frozen = (setting.values("taxonomy", "decoded_scale", departing=each, objectives="CD")
                    for each in ({}, FROZEN))
    told = departing("taxonomy", **FROZEN)(evidence)
    if not told or live.empty or frozen.empty:
        return told
    return f"{told}; CD decodes sequences {live.mean():.0f} times as large as the data, with noise {frozen.mean():.1f}"


def exchanged(evidence: Evidence) -> str:
    """What speaks for two printed cells having changed places, and what against it."""
    table = glm.printed_by_objective()
    gaps = table.loc[HIGH, glm.COLUMNS] - table.loc[LOW, glm.COLUMNS]
    told = [f"{HIGH} minus {LOW}, printed: {', '.join(f'{name} {gap:+.1f}' for name, gap in gaps.items())}"]
    told += [*_gaps_here(evidence), *_nearest_exchanges(evidence)]
    for column in glm.COLUMNS:
        values, expected = table[column], _additive(column)
        kept, moved = (sum((sides[name] - expected[name]) ** 2 for name in expected)
                       for sides in (values, _exchange(values, LOW, HIGH)))
        told.append(f"a sum of terms fitted to the other 13 rows of {column} misses the two by squares of {kept:.0f} "
                    f"as printed, {moved:.0f} exchanged")
    moved = printed("taxonomy").set_index(table.index)
    moved = moved.assign(UCLA=_exchange(table["UCLA"], LOW, HIGH))
    t = glm.coefficients(glm.fit(moved, "UCLA")).set_index("term").loc["AD", "t"]
    told.append(f"exchanged, AD's t in the nine rows is {t:.3f}, not the printed one")
    return "; ".join(told)


def highest(evidence: Evidence) -> str:
    """Our numbers beside the highest printed ones of NW-UCLA."""
    values, setting = glm.printed_by_objective()["UCLA"], _paper_cells(evidence)
    ours = {name: setting.values("taxonomy", objectives=name).mean() for name in values.index[values >= TOP]}
    differences = Series(ours, dtype=float).dropna() - values[values >= TOP]
    if differences.isna().any():
        return ""
    below = int((differences < 0).sum())
    p = stats.binomtest(below, len(differences)).pvalue
    return (f"ucla, paper recipe: {below} of {len(differences)} are below the print; ours minus printed "
            f"{differences.min():+.1f} to {differences.max():+.1f} points; two-sided sign test, p = {p:.3f}")


def _paper_cells(evidence: Evidence) -> Setting:
    """Of the paper's recipe on NW-UCLA."""
    return evidence.setting("ucla", "paper", "taxonomy")


def _gaps_here(evidence: Evidence) -> list[str]:
    """The accuracies of the two objectives apart, by setting and dictionary."""
    told = []
    for setting in evidence.settings("taxonomy"):
        for departure in ({}, FROZEN):
            sides = [setting.values("taxonomy", departing=departure, objectives=name) for name in (HIGH, LOW)]
            if manifest.plain(setting.dataset) == "ucla" and all(map(len, sides)):
                version = f"version {setting.rows('taxonomy')['version'].iloc[0]}"
                recipe = ", ".join(filter(None, (f"{setting.preset} recipe", version, in_words(departure))))
                told.append(f"{setting.dataset}, {recipe}: {sides[0].mean() - sides[1].mean():+.1f}")
    return told


def _nearest_exchanges(evidence: Evidence) -> list[str]:
    """Which exchange of two printed cells leaves the least sum of squares to our column, by setting."""
    values, told = glm.printed_by_objective()["UCLA"], []
    for setting in evidence.settings("taxonomy"):
        ours = Series({name: setting.values("taxonomy", objectives=name).mean() for name in values.index})
        if manifest.plain(setting.dataset) == "ucla" and ours.notna().all():
            nearest = min(itertools.combinations(values.index, 2),
                          key=lambda pair: ((ours - _exchange(values, *pair)) ** 2).sum())
            squares = [((ours - each) ** 2).sum() for each in (values, _exchange(values, *nearest))]
            told.append(f"of the 105 exchanges that of {' and '.join(nearest)} comes closest to our column, "
                        f"{setting.preset} recipe (squares {squares[0]:.0f} to {squares[1]:.0f})")
    return told


def _additive(column: str) -> dict[str, float]:
    """What a sum of terms that is fitted to the other thirteen rows of a printed column says of the two."""
    others = [name for name in glm.objectives_of("all") if name not in (LOW, HIGH)]
    terms = glm.fit(printed("taxonomy"), column, others).params
    return {name: terms[["const", *name.split("+")]].sum() for name in (LOW, HIGH)}


def _exchange(values: Series, first: str, second: str) -> Series:
    return values.rename({first: second, second: first})[values.index]


def _here(table: str, compare: Callable[[Setting], Estimates], judge=above, *, numbers: bool = False) -> Check:
    """A check of our cells of what the paper compares; what a reader has added to it is no evidence."""
    def of_the_paper(setting: Setting) -> Estimates:
        return compare(setting.among("objectives", METHODS))

    return measured((table,), of_the_paper, judge, datasets=("ucla",), numbers=numbers)


def _against(name: str, others: list[str], called: str, *, other_first: bool = False, shared: bool = False) -> Check:
    """An objective against each other one of some, or each of these against it."""
    sides = {called.format(other): ({"objectives": name}, {"objectives": other}) for other in others if other != name}
    sides = {called: pair[::-1] if other_first else pair for called, pair in sides.items()}
    return _here("taxonomy", differences("taxonomy", sides, shared=shared))


def _depths(pairs: dict[str, tuple[tuple[str, int], tuple[str, int]]]) -> Check:
    """Encoders, each an objective and a depth, against one another."""
    sides = {name: tuple({"layers": depth, "objectives": objective} for objective, depth in pair)
             for name, pair in pairs.items()}
    return _here("encoder_collapse", differences("encoder_collapse", sides))


CLAIMS = claims("taxonomy", "taxonomy", {
    "T1": claimed_statistic,
    "T2": claimed_p,
    "T3": only_significant,
    "T4": _here("taxonomy", cd_significant_here),
    "T5": cd_lowers,
    "T6": _here("taxonomy", cd_lowers_here),
    "T7": functools.partial(extreme_printed, name=glm.BEST, columns=["UCLA"]),
    "T8": functools.partial(extreme_printed, name=glm.BEST, columns=glm.COLUMNS),
    "T9": _against(glm.BEST, glm.objectives_of("all"), "over {}"),
    "T10": _here("taxonomy", column_here, one_more_run, numbers=True),
    "T11": fractions_of_the_test_split,
    "T12": _here("encoder_collapse", functools.partial(depth_row, method="random"), one_more_run, numbers=True),
    "T13": _here("encoder_collapse", functools.partial(depth_row, method="AE"), one_more_run, numbers=True),
    "T14": drop_printed,
    "T15": _depths({f"layers {depth}": (("random", depth), ("AE", depth)) for depth in DEPTHS}),
    "T16": _here("encoder_collapse", drop_over_depths),
    "T17": _depths({f"{low} to {low + 1} layers": (("random", low + 1), ("random", low)) for low in (1, 2, 3)}),
    "T18": same_in_both_tables,
    "T19": printed_attraction,
    "T20": mixing_printed,
    "T21": _here("taxonomy", mixing_here, below),
    "T22": functools.partial(extreme_printed, name="AE", columns=["UCLA"]),
    "T23": functools.partial(extreme_printed, name="AE", columns=glm.COLUMNS),
    "T24": _against("AE", glm.objectives_of("all"), "{} over it", other_first=True, shared=True),
    "T25": single_terms_printed,
    "T26": _against("CD", glm.TERMS, "{} over CD", other_first=True, shared=True),
}, TEST_SAMPLES=TEST_SAMPLES)
DISCREPANCIES = discrepancies("taxonomy", "taxonomy", {
    "T-1": statistic,
    "T-2": earlier_numbers,
    "T-3": ntu_numbers,
    "T-4": transcription,
    "T-5": one_layer,
    "T-6": spread,
    "T-8": three_layers,
    "T-10": noise,
    "T-12": departing("taxonomy", ad_loss="squared"),
    "T-13": departing("taxonomy", ad_input="augmented"),
    "T-14": departing("taxonomy", ema_head_twice=True),
    "T-15": departing("taxonomy", select="best_on_test"),
    "T-17": exchanged,
    "T-18": highest,
    "T-19": departing("taxonomy", decoder_input="embedding"),
}, TOP=TOP)
