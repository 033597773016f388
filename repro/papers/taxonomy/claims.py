"""What the taxonomy paper's supplement says, and where it disagrees: held against printed numbers and our cells."""

import functools
import itertools
from collections.abc import Callable, Mapping

import numpy as np
import torch
from pandas import DataFrame, Series
from scipy import stats

from repro.contrast.objectives import attraction
from repro.data import manifest
from repro.papers import predicates
from repro.papers.taxonomy import glm, rules
from repro.papers.taxonomy.logs import FROZEN
from repro.papers.taxonomy.rules import HIGH, LOW, TOP, exchange
from repro.recipe import in_words
from repro.report.evidence import Check, Estimates, Evidence, Setting, measured
from repro.report.printed import printed
from repro.report.verdicts import ERROR, Estimate, above, below, paired, reproduced
from repro.skeleton.recipe import METHODS

TEST_SAMPLES = 460  # of NW-UCLA, after the released code's rule on lengths
DEPTHS = (1, 2, 3, 4, 5)


@functools.cache
def nine_rows() -> DataFrame:
    """The terms in the model whose statistic is printed, by term."""
    return glm.coefficients(glm.fit(printed("taxonomy"), "UCLA")).set_index("term")


def claimed_statistic() -> predicates.Exact:
    """The t of the term that the text names, in the nine rows."""
    claim, t = printed("taxonomy_glm_claim").iloc[0], nine_rows()["t"]
    same, named = [*t.index[t.round(3) == claim["t"]]], claim["component_named_in_text"]
    return same == [named], (f"t in nine rows of UCLA: {_listed(t, '.3f')}; the printed {claim['t']} is that of "
                             f"{' and '.join(same) or 'none'}, the text says {named}")


def claimed_p() -> predicates.Exact:
    """Whether the printed bound on p is that of the printed t with four degrees of freedom, one-tailed."""
    claim, table = printed("taxonomy_glm_claim").iloc[0], nine_rows()
    row = table.loc[(table["t"] - claim["t"]).abs().idxmin()]
    numbers = f"t = {row['t']:.3f} with {row['df']:.0f} degrees of freedom: one-tailed p = {row['p_one_tailed']:.4f}"
    return claim["p_upper"] - 0.001 <= row["p_one_tailed"] < claim["p_upper"], numbers


def only_significant() -> predicates.Exact:
    """Whether the named term alone is significant, one-tailed and uncorrected as printed."""
    named, table = printed("taxonomy_glm_claim").iloc[0]["component_named_in_text"], nine_rows()
    numbers = ", ".join(f"{row.Index} {row.p_one_tailed:.4f} ({row.p_corrected:.3f})" for row in table.itertuples())
    significant = [*table.index[table["p_one_tailed"] < ERROR]]
    return significant == [named], f"one-tailed p, in brackets corrected (Holm, four tests): {numbers}"


def cd_significant_here(setting: Setting) -> Estimates:
    """The named term's estimate in the nine rows of our means over seeds."""
    accuracies = _means(setting)
    if accuracies.empty or not set(glm.ROW_SETS["unmixed+best"]) <= set(accuracies.index):
        return {} if accuracies.empty else {"CD": None}
    table = glm.SUBSETS.assign(linear=accuracies.reindex(glm.OBJECTIVES).to_numpy())
    row = glm.coefficients(glm.fit(table, "linear")).set_index("term").loc["CD"]
    return {"CD": Estimate(row["estimate"], row["error"], row["df"], f"nine rows, t = {row['t']:.2f}")}


def without_and_with_cd(accuracies: Series) -> Series:
    """What CD changes in each of the seven objectives that there are without and with it; by objective."""
    without = [name for name in accuracies.index if "CD" not in name.split("+")]
    pairs = {name: f"{name}+CD" for name in without if f"{name}+CD" in accuracies}
    return Series({name: accuracies[other] - accuracies[name] for name, other in pairs.items()}, dtype=float)


def cd_lowers() -> predicates.Exact:
    changes = without_and_with_cd(glm.printed_by_objective()["UCLA"])
    lowered = paired(-changes, "pairs of printed objectives")
    return above({"": lowered}), f"lowered by {lowered}, in {(changes < 0).sum()} of {len(changes)}"


def cd_lowers_here(setting: Setting) -> Estimates:
    changes = without_and_with_cd(_means(setting))
    basis = f"pairs of objectives, {(changes < 0).sum()} of them lowered"
    return {"lowered by": paired(-changes, basis)} if len(changes) > 1 else {}


def gains_of_mixing(accuracies: Series) -> Series:
    """Each of the seven objectives that mix minus the best of its unmixed parts, where all of them are known.

    The parts are what is left when one term of every mixed pair goes: AE+CE+AD leaves CE+AD and AE+AD.
    """
    gains = {}
    for name in accuracies.index:
        parts = ["+".join(term for term in name.split("+") if term not in gone)
                 for gone in itertools.product(*glm.mixed(name))]
        if glm.mixed(name) and set(parts) <= set(accuracies.index):
            gains[name] = accuracies[name] - accuracies[parts].max()
    return Series(gains, dtype=float)


def mixing_printed() -> predicates.Exact:
    """The best objective that mixes beside the best that does not, in each column."""
    table = glm.printed_by_objective()[glm.COLUMNS]
    others, mixing = table.loc[glm.ROW_SETS["unmixed"]], table.drop(glm.ROW_SETS["unmixed"])
    numbers = [f"{column}: {mixing[column].idxmax()} {mixing[column].max():.2f}, without mixing "
               f"{others[column].idxmax()} {others[column].max():.2f}" for column in table]
    return bool((mixing.max() <= others.max()).all()), "; ".join(numbers)


def mixing_here(setting: Setting) -> Estimates:
    gains = gains_of_mixing(_means(setting))
    basis = f"objectives that mix, {(gains > 0).sum()} of them gain"
    return {"mixing adds": paired(gains, basis)} if len(gains) > 1 else {}


def extreme_printed(name: str, columns: list[str]) -> predicates.Exact:
    """Whether an objective is the best in all of these columns, or AE the lowest."""
    table = glm.printed_by_objective()[columns]
    extreme = table.idxmin() if name == "AE" else table.idxmax()
    numbers = [f"{column}: {best} {table.loc[best, column]:.2f}" for column, best in extreme.items()]
    behind = [f"{table.loc[name, column]:.2f} in {column}" for column in columns if extreme[column] != name]
    numbers += [f"{name} has {' and '.join(behind)}"] if behind else []
    return not behind, f"{'lowest' if name == 'AE' else 'best'} {'; '.join(numbers)}"


def single_terms_printed() -> predicates.Exact:
    """CD alone beside each of the other three alone."""
    values = glm.printed_by_objective()["UCLA"][glm.TERMS]
    return bool((values.drop("CD") > values["CD"]).all()), _listed(values, ".2f")


def column_here(setting: Setting) -> Estimates:
    """The printed column; objectives whose seeds fall apart have a deviation of their own."""
    values = glm.printed_by_objective()["UCLA"]
    others = setting.among("objectives", [name for name in values.index if name not in rules.SCATTERED])
    own = {name: setting.among("objectives", [name]) for name in rules.SCATTERED}
    return {name: own.get(name, others).from_printed("taxonomy", value, objectives=name)
            for name, value in values.items()}


def drop_printed() -> predicates.Exact:
    table = printed("taxonomy_depth_collapse").set_index("layers")
    drops = table["random_init"] - table["AE"]
    numbers = ", ".join(f"{layers}: {drop:.2f}" for layers, drop in drops.items())
    return bool((drops > 0).all()), f"random minus AE by layers: {numbers}"


def drop_over_depths(setting: Setting) -> Estimates:
    """Two to five layers as pairs, for which one seed of each is enough."""
    rows = setting.rows("encoder_collapse")
    if rows.empty:
        return {}
    accuracies = rows[rows["layers"] > 1].pivot_table("linear", "layers", "objectives")
    accuracies = accuracies.reindex(columns=["random", "AE"])
    drops = (accuracies["random"] - accuracies["AE"]).dropna()
    return {"random minus AE": paired(drops, "depths") if len(drops) == len(DEPTHS) - 1 else None}


def same_in_both_tables() -> predicates.Exact:
    one = glm.printed_by_objective().loc["AE", "UCLA"]
    two = printed("taxonomy_depth_collapse").set_index("layers").loc[1, "AE"]
    return abs(one - two) < 0.01, f"Table 1: {one}, Table 2: {two}, {one - two:+.2f} points"


def fractions_of_the_test_split() -> predicates.Exact:
    """Whether each printed accuracy is a number of correct samples over all, rounded to two digits."""
    values = printed("taxonomy")["UCLA"]
    around = range(TEST_SAMPLES - 5, TEST_SAMPLES + 5)
    matching = {samples: (100 * (values * samples / 100).round() / samples).round(2).eq(values.round(2)).sum()
                for samples in around}
    return matching[TEST_SAMPLES] == len(values), (
        f"{matching[TEST_SAMPLES]} of {len(values)} values are k/{TEST_SAMPLES}, at most {max(matching.values())} with "
        f"{around[0]} to {around[-1]} samples")


def printed_attraction() -> predicates.Exact:
    """Whether 2 - 2 sum(z_q + z_gt), as printed, is least where two unit vectors agree, as 2 - 2 <z_q, z_gt> is."""
    angles = torch.linspace(0, np.pi, 181, dtype=torch.float64)
    query = torch.stack([angles.cos(), angles.sin()], 1)
    target = torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand_as(query)
    as_printed = 2 - 2 * (query + target).sum(1)
    meant = torch.stack([attraction(q, t) for q, t in zip(query.split(1), target.split(1), strict=True)])
    least = [int(values.argmin()) for values in (as_printed, meant)]
    return least[0] == 0, (f"of two unit vectors in the plane the printed formula is least at an angle of {least[0]} "
                           f"degrees, with a product in place of the plus at {least[1]}")


def statistic(evidence: Evidence) -> str:
    t = nine_rows()["t"]
    without = glm.leave_one_out(printed("taxonomy"), "UCLA").query("term == 'AD'")["t"]
    return (f"nine rows, UCLA: AD t = {t['AD']:.3f}, CD t = {t['CD']:.3f}; without one of the rows AD's t lies between "
            f"{without.min():.2f} and {without.max():.2f}; corrected for four tests AD has "
            f"p = {nine_rows().loc['AD', 'p_corrected']:.2f}")


def earlier_numbers(evidence: Evidence) -> str:
    """UCLA values that the repository had before its released model."""
    values = printed("taxonomy_repo_history")["UCLA_linear"]
    known = values[values.isin(printed("taxonomy")["UCLA"])]
    ours = Series({name: _ours(evidence, name) for name in ("AD", "CE", "AE+CE+AD", "AD+CD")}).dropna()
    here = f"; with one recipe here: {_listed(ours, '.1f')}" if len(ours) else ""
    return f"{len(known)} printed values stand there: {', '.join(f'{value:g}' for value in known)}{here}"


def ntu_numbers(evidence: Evidence) -> str:
    values = glm.printed_by_objective()["NTU_1layer"]
    history = printed("taxonomy_repo_history").drop_duplicates("components_equivalent").set_index("model_name_in_repo")
    models = {"Moco-AE + latent similarity (MocoPlusAE)": "AE+CE+AD", "Moco-AE (MocoPlusAE sim=0)": "CE+AD",
              "Moco (MocoV2)": "CE", "TD_Con (TDCon)": "AD+CD"}
    numbers = [f"{name} {history.loc[model, 'NTU_xsub_linear']:.2f} against {values[name]:.2f}"
               for model, name in models.items()]
    return f"repository against supplement: {', '.join(numbers)}; not trained here on NTU RGB+D"


def transcription(evidence: Evidence) -> str:
    row, history = glm.printed_by_objective().loc["CE+CD"], printed("taxonomy_repo_history")
    nearest = history["UCLA_1nn"].dropna().iloc[0]
    same = abs(100 * nearest - row["UCLA"]) < 0.01 and (history["NTU_xsub_linear"] == row["NTU_1layer"]).any()
    ours = _ours(evidence, "CE+CD")
    here = "" if np.isnan(ours) else f"; trained here CE+CD has {ours:.2f} on NW-UCLA"
    return f"both numbers {'are' if same else 'are not'} in the repository{here}"


def one_layer(evidence: Evidence) -> str:
    ours, random = (_ours(evidence, name) for name in ("AE", "random"))
    return "" if np.isnan(ours) else f"trained here {ours:.1f}, random initialisation {random:.1f}"


def spread(evidence: Evidence) -> str:
    """The spread of the embedding under AE alone, as a share of that at random initialisation, by depth."""
    numbers = []
    for setting in evidence.settings("encoder_collapse"):
        trained, random = (
            Series({depth: setting.values("encoder_collapse", "embedding_spread", objectives=name, layers=depth).mean()
                    for depth in DEPTHS}) for name in ("AE", "random")
        )
        shares = (100 * trained / random).dropna()
        if len(shares):
            numbers.append(f"{setting}: {', '.join(f'{share:.1f}' for share in shares)} % with one layer and more")
    return f"embedding spread, of that at random initialisation: {'; '.join(numbers)}" if numbers else ""


def three_layers(evidence: Evidence) -> str:
    """Accuracies by learning rate, of the newest version of the quick recipe that trained such encoders at its own."""
    rates = {"0.05": {"learning_rate": 0.05}, "9e-4": {"learning_rate": 0.0009}, "1e-3": {}}
    for setting in _ucla(evidence, "quick"):
        means = {name: Series({
            rate: setting.values("taxonomy", departing={"layers": 3} | changes, objectives=name).mean()
            for rate, changes in rates.items()
        }).dropna() for name in ("CE", "AD", "random")}
        if "1e-3" in means["CE"] and "1e-3" in means["random"]:
            said = [f"{name} {', '.join(f'{value:.1f} at {rate}' for rate, value in means[name].items())}"
                    for name in ("CE", "AD")]
            return f"ucla, quick recipe, three layers: {'; '.join(said)}; random {means['random']['1e-3']:.1f}"
    return ""


def noise(evidence: Evidence) -> str:
    """CD with both dictionaries, and how far its decoded sequences have grown."""
    live, frozen = (_ours(evidence, "CD", measure="decoded_scale", departing=changes) for changes in ({}, FROZEN))
    numbers = predicates.departing("taxonomy", **FROZEN)(evidence)
    if not numbers or np.isnan([live, frozen]).any():
        return numbers
    return f"{numbers}; CD decodes sequences {live:.0f} times as large as the data, with noise {frozen:.1f}"


def exchanged(evidence: Evidence) -> str:
    """What speaks for two printed cells having changed places, and what against it."""
    table = glm.printed_by_objective()
    gaps = table.loc[HIGH, glm.COLUMNS] - table.loc[LOW, glm.COLUMNS]
    sentences = [f"{HIGH} minus {LOW}, printed: {_listed(gaps, '+.1f')}"]
    for setting, departure in itertools.product(_ucla(evidence), ({}, FROZEN)):
        high, low = (setting.values("taxonomy", departing=departure, objectives=name) for name in (HIGH, LOW))
        if len(high) and len(low):
            recipe = ", ".join(filter(None, (_recipe(setting), in_words(departure))))
            sentences.append(f"{setting.dataset}, {recipe}: {high.mean() - low.mean():+.1f}")
    for setting in _ucla(evidence):  # which exchange leaves the least sum of squares to our column
        ours = _means(setting).reindex(table.index)
        if ours.notna().all():
            squares = Series({" and ".join(pair): ((ours - exchange(table["UCLA"], *pair)) ** 2).sum()
                              for pair in itertools.combinations(table.index, 2)})
            now = ((ours - table["UCLA"]) ** 2).sum()
            sentences.append(f"of the 105 exchanges that of {squares.idxmin()} comes closest to our column, "
                             f"{_recipe(setting)} (squares {now:.0f} to {squares.min():.0f})")
    for column in glm.COLUMNS:
        terms = glm.fit(table, column, [name for name in glm.OBJECTIVES if name not in (LOW, HIGH)]).params
        expected = Series({name: terms[["const", *name.split("+")]].sum() for name in (LOW, HIGH)})
        kept, moved = (((values[expected.index] - expected) ** 2).sum()
                       for values in (table[column], exchange(table[column], LOW, HIGH)))
        sentences.append(f"a sum of terms fitted to the other 13 rows of {column} misses the two by squares of "
                         f"{kept:.0f} as printed, {moved:.0f} exchanged")
    fitted = glm.fit(table.assign(UCLA=exchange(table["UCLA"], LOW, HIGH)), "UCLA")
    sentences.append(f"exchanged, AD's t in the nine rows is {fitted.tvalues['AD']:.3f}, not the printed one")
    sentences += [rules.exchanged(log) for log in evidence.logs("along_training")]
    return "; ".join(filter(None, sentences))


def _recipe(setting: Setting) -> str:
    return f"{setting.preset} recipe, version {setting.rows('taxonomy')['version'].iloc[0]}"


def _ucla(evidence: Evidence, *presets: str) -> list[Setting]:
    """The settings on NW-UCLA, of all presets or some."""
    return [setting for setting in evidence.settings("taxonomy")
            if manifest.plain(setting.dataset) == "ucla" and (not presets or setting.preset in presets)]


def highest(evidence: Evidence) -> str:
    """Our numbers beside the highest printed ones of NW-UCLA."""
    values = glm.printed_by_objective()["UCLA"].loc[lambda column: column >= TOP]
    gaps = Series({name: _ours(evidence, name) for name in values.index}) - values
    if gaps.isna().any():
        return ""
    short = int((gaps < 0).sum())
    said = (f"ucla, paper recipe: {short} of {len(gaps)} are below the print; ours minus printed {gaps.min():+.1f} to "
            f"{gaps.max():+.1f} points; two-sided sign test, p = {stats.binomtest(short, len(gaps)).pvalue:.3f}")
    readings = [rules.best(rules.compared(log)) for log in evidence.logs("along_training")]
    return "; ".join(filter(None, (said, *readings)))


def _listed(values: Series, digits: str) -> str:
    return ", ".join(f"{name} {value:{digits}}" for name, value in values.items())


def _means(setting: Setting) -> Series:
    """Accuracies of the trained objectives, means over seeds; none if there are no cells."""
    rows = setting.rows("taxonomy")
    if rows.empty:
        return Series(dtype=float)
    return rows[rows["objectives"] != "random"].groupby("objectives")["linear"].mean()


def _ours(evidence: Evidence, name: str, table: str = "taxonomy", *, measure: str = "linear",
          departing: Mapping[str, object] | None = None, **fields: object) -> float:
    """Our mean over seeds of an objective, by the paper's recipe on NW-UCLA; NaN where there is none."""
    setting = evidence.setting("ucla", "paper", table)
    return setting.values(table, measure, departing, objectives=name, **fields).mean()


def _here(table: str, compare: Callable[[Setting], Estimates], judge=above, *, numbers: bool = False) -> Check:
    """A check of our cells of what the paper compares; what a reader has added to it is no evidence."""
    return measured((table,), lambda setting: compare(setting.among("objectives", METHODS)), judge,
                    datasets=("ucla",), numbers=numbers)


def _against(name: str, others: list[str], called: str, *, other_first: bool = False, shared: bool = False) -> Check:
    """An objective against each other one of some, or each of these against it."""
    pairs = {called.format(other): ({"objectives": name}, {"objectives": other}) for other in others if other != name}
    sides = {what: pair[::-1] if other_first else pair for what, pair in pairs.items()}
    return _here("taxonomy", predicates.differences("taxonomy", sides, shared=shared))


def _depths(pairs: dict[str, tuple[tuple[str, int], tuple[str, int]]]) -> Check:
    """Encoders, each an objective and a depth, against one another."""
    sides = {name: tuple({"layers": depth, "objectives": objective} for objective, depth in pair)
             for name, pair in pairs.items()}
    return _here("encoder_collapse", predicates.differences("encoder_collapse", sides))


def _depths_printed(name: str, column: str, scatter: str) -> Check:
    """Our accuracies by depth against a printed column."""

    def compare(setting: Setting) -> Estimates:
        values = printed("taxonomy_depth_collapse").set_index("layers")[column]
        return {f"layers {depth}": setting.from_printed(
            "encoder_collapse", value, of=scatter, layers=depth, objectives=name) for depth, value in values.items()}

    return _here("encoder_collapse", compare, reproduced, numbers=True)


CLAIMS = predicates.claims("taxonomy", "taxonomy", {
    "T1": predicates.of_print(claimed_statistic),
    "T2": predicates.of_print(claimed_p),
    "T3": predicates.of_print(only_significant),
    "T4": _here("taxonomy", cd_significant_here),
    "T5": predicates.of_print(cd_lowers),
    "T6": _here("taxonomy", cd_lowers_here),
    "T7": predicates.of_print(extreme_printed, name=glm.BEST, columns=["UCLA"]),
    "T8": predicates.of_print(extreme_printed, name=glm.BEST, columns=glm.COLUMNS),
    "T9": _against(glm.BEST, glm.OBJECTIVES, "over {}"),
    "T10": _here("taxonomy", column_here, reproduced, numbers=True),
    "T11": predicates.of_print(fractions_of_the_test_split),
    "T12": _depths_printed("random", "random_init", "random"),
    "T13": _depths_printed("AE", "AE", "trained"),
    "T14": predicates.of_print(drop_printed),
    "T15": _depths({f"layers {depth}": (("random", depth), ("AE", depth)) for depth in DEPTHS}),
    "T16": _here("encoder_collapse", drop_over_depths),
    "T17": _depths({f"{low} to {low + 1} layers": (("random", low + 1), ("random", low)) for low in (1, 2, 3)}),
    "T18": predicates.of_print(same_in_both_tables),
    "T19": predicates.closed_form(printed_attraction),
    "T20": predicates.of_print(mixing_printed),
    "T21": _here("taxonomy", mixing_here, below),
    "T22": predicates.of_print(extreme_printed, name="AE", columns=["UCLA"]),
    "T23": predicates.of_print(extreme_printed, name="AE", columns=glm.COLUMNS),
    "T24": _against("AE", glm.OBJECTIVES, "{} over it", other_first=True, shared=True),
    "T25": predicates.of_print(single_terms_printed),
    "T26": _against("CD", glm.TERMS, "{} over CD", other_first=True, shared=True),
}, TEST_SAMPLES=TEST_SAMPLES)
DISCREPANCIES = predicates.discrepancies("taxonomy", "taxonomy", {
    "T-1": statistic,
    "T-2": earlier_numbers,
    "T-3": ntu_numbers,
    "T-4": transcription,
    "T-5": one_layer,
    "T-6": spread,
    "T-8": three_layers,
    "T-10": noise,
    "T-12": predicates.joined(*(predicates.departing("taxonomy", ad_loss="squared", **weight)
                                for weight in ({}, *({"ad_weight": value} for value in rules.SQUARED_WEIGHTS)))),
    "T-13": predicates.departing("taxonomy", ad_input="augmented"),
    "T-14": predicates.departing("taxonomy", ema_head_twice=True),
    "T-15": predicates.departing("taxonomy", select="best_on_test"),
    "T-17": exchanged,
    "T-18": highest,
    "T-19": predicates.departing("taxonomy", decoder_input="embedding"),
    "T-20": predicates.departing("taxonomy", key_head_copied=False),
}, TOP=TOP)
