"""What the CM-ACC paper says, and where it disagrees: held against printed numbers, formulas and our cells."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial

import torch
from pandas import DataFrame, Series
from scipy import stats
from torch.nn.functional import normalize

from repro.audiovisual import CHARACTERS, FREQUENCIES
from repro.audiovisual.coverage import uniform_draws
from repro.contrast.negatives import gradient_factors
from repro.data import manifest
from repro.papers import predicates
from repro.papers.cmacc.tables import FEATURES
from repro.recipe import in_words
from repro.report import verdicts
from repro.report.evidence import Check, Estimates, Evidence, Fields, Setting, measured
from repro.report.printed import printed

Pairs = Mapping[str, tuple[str, str]]  # of approaches, samplers or methods: the first over the second

TARGETS = ["UCF101", "HMDB51", "ESC50"]
BATCHES = (32, 64, 128)
CATEGORIES, WITH_SOUND = 101, 51  # of UCF101; about half have sound
SAME_SIZE = {"14K": "", "N/A": "240K"}  # Tables 4 and 5: Kinetics-Sound beside UCF/HMDB, and what Kinetics-400 has
BY_POOL = ["frequency", "batch"]  # what pools a step selects from, and how many
WITHOUT_LABELS = ["SMoCo", "XMoCo (w/o fcl)", "XMoCo", "CM-ACC (w/o fcl)", "CM-ACC"]  # approaches of Table 1
METHODS = {"SMoCo": "smoco", "XMoCo": "xmoco", "CM-ACC": "cmacc"}
READ = {", new pairs": "linear", ", never seen": "linear_held_out"}  # what probes read from grids of characters
RUN = ("cross_modal", "transfer")
SAVING, LARGE = 2048, 10_000  # sizes about which dictionaries are said to be large enough, and too large
CLOSE = 3.0  # points: accuracies called about equal
VIEW = ("the paper does not define SMoCo's views; shortened recipes show all sides the same affine changes, no labels, "
        "and are read on new pairs and on drawings never seen; judged with the printed number of pairs if it was run")
GRIDS = ("on grids of three characters, 2,000 distinct ones with Zipf's frequencies, drawn anew, of new pairs and of "
         "drawings never seen")
POSTERIOR = "up to version 4 of the training the quick recipe's Eq. 4 has a temperature of 0.07, the paper's has none"


def over(*pairs: tuple[str, str]) -> Pairs:
    """Pairs by name."""
    return {f"{first} over {second}": (first, second) for first, second in pairs}


THREE: Fields = {"characters": 3, "distinct": 2000, "frequency": "zipf", "redrawn": True, "augmented": True}
REGIMES: dict[str, Sequence[Fields]] = {  # of grids of characters, by table: those in which its question has an answer
    "cross_modal": [THREE],
    "ohem_vs_active": [{**THREE, "dictionary": 256}, THREE],
    "dictionary_size": [{"characters": 3, "pairs": 50_000, "augmented": True, "iterations": 1250, "pool": 40_960}],
    "mutual_information": [{"pairs": 50_000, "augmented": True}, {"augmented": True}],
    "category_diversity": [{"categories": 101, "iterations": 624, "frequency": "zipf"},
                           {"categories": 101, "iterations": 624}],
}
ACROSS = over(("XMoCo (w/o fcl)", "SMoCo"))
LAYER = over(("XMoCo", "XMoCo (w/o fcl)"), ("CM-ACC", "CM-ACC (w/o fcl)"))
ACTIVE = over(("CM-ACC", "XMoCo"))

def random_coverage() -> predicates.Exact:
    """30 to 40 % at M = 128, against the closed form."""
    every, audible = uniform_draws((CATEGORIES, WITH_SOUND), (128,)).itertuples()
    said = (f"{every.expected:.1f} of {CATEGORIES} categories, {every.percent_of_categories:.1f} %; of {WITH_SOUND}, "
            f"if these alone have sound, {audible.expected:.1f}: {100 * audible.expected / CATEGORIES:.1f} % of "
            f"{CATEGORIES} or {audible.percent_of_draws:.1f} % of M")
    return 30 <= every.percent_of_categories <= 40, said


def active_coverage() -> predicates.Exact:
    """60 to 70 % at M = 128, against what random draws give anyway."""
    share = uniform_draws((CATEGORIES,), (128,))["percent_of_categories"].item()
    return share < 70, f"uniform draws cover {share:.1f} % in expectation"


def rises(values: Mapping[str, Series]) -> predicates.Exact:
    """Whether all of these printed differences are above 0."""
    said = "; ".join(f"{name}: {', '.join(f'{column} {value:+.1f}' for column, value in row.items())}"
                     for name, row in values.items())
    return all((row > 0).all() for row in values.values()), said


def rows_rise(table: str, key: str | list[str], pairs: Mapping[str, tuple]) -> predicates.Exact:
    """Whether the first printed row of each pair exceeds the second one on every target."""
    rows = printed(f"cmacc_{table}").set_index(key)
    rows = rows[[column for column in rows if column.startswith(tuple(TARGETS))]]
    return rises({name: rows.loc[first] - rows.loc[second] for name, (first, second) in pairs.items()})


printed_rows = partial(predicates.of_print, rows_rise)


def printed_gains() -> predicates.Exact:
    """Table 1's gains against the rows that each names."""
    table, wrong = printed("cmacc_table1").set_index("id"), []
    rows = table.dropna(subset="gain_definition")
    for number, row in rows.iterrows():
        first, second = (int(part) for part in row["gain_definition"].split("-"))
        gains = table.loc[first, TARGETS] - table.loc[second, TARGETS]
        wrong += [f"row {number}, {name}" for name in TARGETS if abs(gains[name] - row[f"gain_{name}"]) > 0.01]
    said = f"; other differences: {', '.join(wrong)}" if wrong else ", all as printed"
    return not wrong, f"{3 * len(rows)} gains{said}"


def by_batch(sampler: str, target: str) -> Series:
    """The accuracies of Table 3 by M."""
    row = printed("cmacc_table3").set_index("sampler").loc[sampler]
    return Series({batch: row[f"{target}_M{batch}"] for batch in BATCHES})


def shrinking_gap() -> predicates.Exact:
    """Whether the gap between active negatives and OHEM's shrinks with every step of M, on both targets."""
    gaps = {target: by_batch("Active", target) - by_batch("OHEM", target) for target in TARGETS[:2]}
    shrinks = all((gap.diff().dropna() < 0).all() for gap in gaps.values())
    return shrinks, f"M = 32, 64, 128: {_listed(gaps.items())}"


def printed_batches() -> predicates.Exact:
    """Whether each sampler's accuracy rises with M on both targets."""
    steps = {f"{sampler}, {target}": by_batch(sampler, target).diff().dropna()
             for sampler in printed("cmacc_table3")["sampler"] for target in TARGETS[:2]}
    return all((step > 0).all() for step in steps.values()), _listed(steps.items(), "+")


def _listed(values: Iterable[tuple[str, Iterable[float]]], sign: str = "") -> str:
    return "; ".join(f"{name}: {', '.join(f'{value:{sign}.1f}' for value in row)}" for name, row in values)


def comparable_gains(number: int, targets: list[str]) -> predicates.Exact:
    """The printed gains of Table 4 or 5 against the best other method that was pre-trained on as many clips."""
    table = printed(f"cmacc_table{number}").fillna({"pretrain_size": ""})
    table["pretrain_size"] = table["pretrain_size"].replace(SAME_SIZE)
    best = _others(table).groupby("pretrain_size")[targets].max()
    ours = table[table["method"] == "Ours"]
    gains = ours[targets] - best.loc[ours["pretrain_size"]].to_numpy()
    stated = ours[[f"gain_{target}" for target in targets]].set_axis(targets, axis=1)
    right = (gains - stated).abs().lt(0.01) & stated.gt(0)
    named = zip(ours["pretrain_set"] + ", " + ours["architecture"], gains.to_numpy(), strict=True)
    return bool(right.all(axis=None)), f"{' and '.join(targets)}: {_listed(named, '+')}"


def best_over_others(name: str, **values: str) -> predicates.Exact:
    """The best row of CM-ACC in Table 4 minus the best other self-supervised one, of rows with these values."""
    table, targets = printed("cmacc_table4"), TARGETS[:2]
    for column, value in values.items():
        table = table[table[column] == value]
    return rises({name: table.loc[table["method"] == "Ours", targets].max() - _others(table)[targets].max()})


def _others(table: DataFrame) -> DataFrame:
    """Rows of other self-supervised methods."""
    return table[~table["method"].str.startswith(("Ours", "Scratch", "Supervised"))]


def repeated_numbers() -> predicates.Exact:
    """Table 6 against the rows of Tables 1, 4 and 5 that it repeats, of the network that these name first."""
    six = printed("cmacc_table6").set_index(["approach", "dataset"]).loc["CM-ACC"]
    one = printed("cmacc_table1").set_index("approach").loc["CM-ACC"]
    elsewhere = {("Kinetics-Sound", target): one[target] for target in TARGETS}
    for (name, size), target in itertools.product((("Kinetics700", "240K"), ("AudioSet", "1.8M")), TARGETS):
        rows = printed("cmacc_table5" if target == "ESC50" else "cmacc_table4")
        same = (rows["method"] == "Ours") & (rows["pretrain_set"] == name) & (rows["pretrain_size"] == size)
        elsewhere[name, target] = rows.loc[same, target].iloc[0]
    different = [f"{name}, {target}: {six.loc[name, target]} and {value}" for (name, target), value in elsewhere.items()
                 if abs(six.loc[name, target] - value) > verdicts.ROUNDING]
    return not different, f"{len(elsewhere)} compared, unequal: {'; '.join(different) or 'none'}"


def printed_norms() -> predicates.Exact:
    """Fig. 5: the two negatives of music against the third."""
    table = printed("cmacc_fig5_gradient_norms").set_index("negative")["gradient_norm"]
    least, easy = table.drop("riding a camel").min(), table["riding a camel"]
    return least > 10 * easy, f"{least} and more against {easy}, three negatives of one query"


@cache
def norms_by_similarity() -> predicates.Exact:
    """Gradient norms of Eq. 4 and 5 for keys of one length, near one of 128 queries or unlike all of them."""
    generator, ratios = torch.Generator().manual_seed(0), {}
    for length in (1, 4, 16):
        queries, inputs, apart = (torch.randn(128, 512, generator=generator, dtype=torch.float64) for _ in range(3))
        queries, apart = length * normalize(queries, dim=1), normalize(apart, dim=1)
        near = length * normalize(0.8 * queries / length + 0.6 * apart, dim=1)
        factors = [gradient_factors(candidates, queries, inputs) for candidates in (near, length * apart)]
        close, far = (float((a.norm(dim=1) * b.norm(dim=1)).mean()) for a, b in factors)
        ratios[length] = close / far
    said = ", ".join(f"{ratio:.4f} at length {length}" for length, ratio in ratios.items())
    said = f"mean norm of keys at cosine 0.8 to a query over that of random keys (d = 512, M = 128): {said}"
    return min(ratios.values()) > 1, said


def settings() -> Series:
    """The printed hyper-parameters by name."""
    return printed("cmacc_hyperparameters").set_index("key")["value"]


def multiples() -> predicates.Exact:
    """The printed sizes as multiples of the batch."""
    batch, dictionary, pool = (int(settings()[name]) for name in ("batch_M", "dictionary_K", "pool_N"))
    said = f"{dictionary} = {dictionary / batch:g} x {batch}, {pool} = {pool / batch:g} x {batch}"
    return (dictionary, pool) == (30 * batch, 300 * batch), said


def mutual_information() -> predicates.Exact:
    """The printed information against the running sum of logarithms."""
    table = printed("spatial_multiomniglot_mi")
    worst = (table["alphabet_size"].map(math.log).cumsum() - table["MI_nats"]).abs().max()
    return worst < 1e-4, f"largest difference {worst:.1g} nats over {len(table)} alphabets"


def similar_early(log: DataFrame) -> predicates.Judged:
    """The first tenth of the curves, gradient against random."""
    early = log[(log["step"] <= log["step"].max() / 10) & log["sampler"].isin(["gradient", "random"])]
    means = early.groupby([*BY_POOL, "seed", "sampler"])["categories_video"].mean().unstack("sampler").dropna()
    if set(means) != {"gradient", "random"} or means.empty:
        return None
    gaps = _by_pool(100 * (means["gradient"] - means["random"]) / means.index.get_level_values("batch"))
    return verdicts.within(gaps, 5.0), f"{verdicts.listed(gaps)} % of M"


def growing_diversity(log: DataFrame) -> predicates.Judged:
    """The last tenth of the curves against the first, of gradient embeddings."""
    log = log[log["sampler"] == "gradient"]
    if log.empty:
        return None
    share = log["step"] / log["step"].max()
    first, last = (log[part].groupby([*BY_POOL, "seed"])["categories_video"].mean()
                   for part in (share <= 0.1, share > 0.9))
    growth = _by_pool(last - first)
    return verdicts.above(growth), f"last minus first, {verdicts.listed(growth)}"


def _by_pool(values: Series) -> Estimates:
    return {f"{frequency}, M = {batch}": verdicts.paired(rows)
            for (frequency, batch), rows in values.groupby(level=BY_POOL)}


def categories_differ(log: DataFrame) -> predicates.Judged:
    """Whether the pretext accuracy is one in all categories, by a chi-squared test for queries of each kind."""
    said, chances = [], []
    for query, rows in log.assign(right=log["accuracy"] / 100 * log["pairs"]).groupby("query"):
        totals = rows.groupby("category")[["right", "pairs"]].sum()
        share = totals["right"].sum() / totals["pairs"].sum()
        spread = ((totals["right"] - share * totals["pairs"]) ** 2 / (share * (1 - share) * totals["pairs"])).sum()
        chances.append(float(stats.chi2.sf(spread, len(totals) - 1)))
        said.append(f"queries of {query}: chi-squared {spread:.0f} with {len(totals) - 1} degrees of freedom, "
                    f"p = {chances[-1]:.2g}")
    return verdicts.HOLDS if all(chance < verdicts.ERROR for chance in chances) else verdicts.UNDECIDED, "; ".join(said)


def norms_of_picks(first: str, second: str) -> Check:
    """Gradient norms of what one sampler picks minus those of another's, from one pool; of both modalities."""

    def judge(log: DataFrame) -> predicates.Judged:
        norms = log.groupby(["modality", "sampler"])["gradient_norm"].agg(["mean", "sem", "count"])
        if not {first, second} <= set(log["sampler"]):
            return None
        gaps = {}
        for modality in log["modality"].unique():
            mean, sem, count = (norms.loc[(modality, [first, second]), column] for column in norms)
            basis = f"{count.iloc[0]:.0f} against {count.iloc[1]:.0f} picks"
            gaps[modality] = verdicts.Estimate(mean.iloc[0] - mean.iloc[1], math.hypot(*sem), count.min() - 1, basis)
        return verdicts.above(gaps), f"{first} minus {second}, {verdicts.listed(gaps)}"

    return predicates.of_log("selected_negatives", judge)


def easy_grids(setting: Setting) -> Estimates:
    """Every method with one and two characters, against 99 %."""
    gaps, deviation = {}, setting.deviation("mutual_information")
    for (name, method), number in itertools.product(METHODS.items(), (1, 2)):
        values = setting.values("mutual_information", method=method, characters=number) - 99
        error, basis = deviation.value / math.sqrt(max(len(values), 1)), f"{len(values)} runs"
        gap = verdicts.Estimate(float(values.mean()), error, deviation.freedom, basis, len(values))
        gaps[f"{name}, {number}"] = gap if len(values) else None
    return gaps


def regimes(table: str, setting: Setting) -> Sequence[Fields]:
    """What cells depart in where the table's question has an answer: of shortened recipes on grids of characters its
    `REGIMES`, as their usual grids leave methods no room to differ; else nothing.
    """
    shortened = manifest.plain(setting.dataset) in CHARACTERS and setting.preset != "paper"
    return REGIMES[table] if shortened else [{}]


def dictionary_steps(setting: Setting, methods: tuple[str, ...], past: bool) -> Estimates:
    """Accuracy at a larger dictionary minus that at a smaller one, on every target.

    Args:
        past: the largest size beyond `LARGE` against the largest up to it; else the largest up to `SAVING` against the
            smallest. None for a method without such sizes.
    """
    sides, lacking, regime = {}, {}, regimes("dictionary_size", setting)[0]
    for name in methods:
        rows = setting.rows("dictionary_size", regime, method=METHODS[name])
        sizes = sorted(set(rows["dictionary"])) if len(rows) else []
        smaller = [size for size in sizes if size <= (LARGE if past else SAVING)]
        lower, upper = (smaller[-1:], sizes[-1:]) if past else (sizes[:1], smaller[-1:])
        if lower and upper and lower < upper:
            pair = tuple({"method": METHODS[name], "dictionary": size, "departing": regime}
                         for size in (*upper, *lower))
            sides[f"{name}, {lower[0]} to {upper[0]} keys"] = pair
        else:
            lacking[name] = None
    return {**predicates.differences("dictionary_size", sides, measures=READ, targets=True)(setting), **lacking}


def in_regimes(table: str, sides: predicates.Sides, *, every: bool = False) -> Callable[[Setting], Estimates]:
    """As `predicates.differences`; on grids of characters in one regime of the table, or in all.

    Args:
        every: in all regimes, instead of the first in which most pairs have an error.
    """

    def compare(setting: Setting) -> Estimates:
        found = [_in_regime(table, sides, setting, regime) for regime in regimes(table, setting)]
        if every:
            return {name: estimate for estimates in found for name, estimate in estimates.items()}
        return max(found, key=lambda estimates: sum(one is not None and not math.isnan(one.error)
                                                    for one in estimates.values()))

    return compare


def _in_regime(table: str, sides: predicates.Sides, setting: Setting, regime: Fields) -> Estimates:
    """The first cells of each pair minus the second, on every target; of grids on new pairs and on drawings never seen.

    Names end with what tells the regime from others of the table.
    """
    shared = set.intersection(*({*other.items()} for other in regimes(table, setting)))
    called = in_words({name: value for name, value in regime.items() if (name, value) not in shared})
    placed = {name: tuple({**side, "departing": regime} for side in pair) for name, pair in sides.items()}
    found = predicates.differences(table, placed, measures=READ, targets=True)(setting)
    return {", ".join(filter(None, (name, called))): estimate for name, estimate in found.items()}


def shrinking_gap_here(setting: Setting) -> Estimates:
    """By how much the gap between active negatives and OHEM's is smaller at M = 128 than at 32, by shared seeds."""
    shrinking = {}
    for target in setting.targets("ohem_vs_active"):
        active, ohem = ({batch: setting.values("ohem_vs_active", target, sampler=sampler, batch=batch)
                         for batch in (32, 128)} for sampler in ("gradient", "ohem"))
        shrinks = ((active[32] - ohem[32]) - (active[128] - ohem[128])).dropna()
        shrinking[f"{target}, M = 32 to 128"] = verdicts.paired(shrinks) if len(shrinks) else None
    return shrinking


def _approaches(pairs: Pairs) -> Check:
    """The first approach of each pair minus the second, on every target."""
    sides = {name: ({"approach": first}, {"approach": second}) for name, (first, second) in pairs.items()}
    return measured(("cross_modal",), in_regimes("cross_modal", sides), verdicts.above)


def _samplers(first: str, second: str, batches: Iterable[int] = BATCHES) -> Callable[[Setting], Estimates]:
    """One sampler minus another, for every M and on every target."""
    sides = {f"M = {batch}": tuple({"sampler": name, "batch": batch} for name in (first, second)) for batch in batches}
    return in_regimes("ohem_vs_active", sides, every=True)


def _fine_tuned(first: str, second: str) -> Check:
    return measured(("ohem_vs_active",), _samplers(first, second), verdicts.above)


def released_selection(setting: Setting) -> Estimates:
    """The selection of the released code minus that of the paper, for every M that it was run with."""
    rows = [setting.rows("ohem_vs_active", regime, sampler="released") for regime in regimes("ohem_vs_active", setting)]
    batches = sorted({batch for cells in rows for batch in cells.get("batch", ())})
    return _samplers("released", "gradient", batches)(setting)


def more_categories(other: str, batches: tuple[int, ...] = BATCHES) -> Check:
    """Categories among negatives that gradients select minus those of another sampler, at the end of training.

    Both choose post hoc from the pools of one encoder, balanced and with Zipf's frequencies.
    """

    def judge(log: DataFrame) -> predicates.Judged:
        log = log[log["version"] == log["version"].max()]
        log = log[log["step"] == log["step"].max()]
        last = log[(log["measure"] == "categories") & (log["posterior"] == 1) & log["batch"].isin(batches)]
        counted = last.pivot_table(index=["frequency", "batch", "seed"], columns="sampler", values="value")
        if not {"gradient", other} <= set(counted):
            return None
        gains = (counted["gradient"] - counted[other]).dropna()
        estimates = {f"{frequency}, M = {batch}": verdicts.paired(rows, "encoders")
                     for (frequency, batch), rows in gains.groupby(["frequency", "batch"])}
        pools = {*itertools.product(FREQUENCIES, batches)}
        complete = pools == {*gains.index.droplevel("seed")}
        verdict = verdicts.above(estimates) if complete else verdicts.UNDECIDED
        return verdict, f"post hoc, gradient minus {other}, {verdicts.listed(estimates)}"

    return predicates.of_log("post_hoc_diversity", judge)


def _grids(pairs: Mapping[str, tuple[str, int, str, int]], judge=verdicts.above) -> Check:
    """One method at a number of characters minus another, or at another."""
    sides = {name: ({"method": METHODS[first], "characters": number}, {"method": METHODS[second], "characters": other})
             for name, (first, number, second, other) in pairs.items()}
    compare = in_regimes("mutual_information", sides)
    return measured(("mutual_information",), compare, judge, datasets=("multiomniglot",))


def _dictionaries(judge, past: bool, *methods: str) -> Check:
    return measured(("dictionary_size",), partial(dictionary_steps, methods=methods, past=past), judge)


def pool(evidence: Evidence) -> str:
    """The pool beside both sizes of Kinetics-Sound."""
    size = int(settings()["pool_N"])
    return f"the pool of {size} is {size / 22_000:.1f} times 22K and {size / 14_000:.1f} times 14K videos"


def short_schedule(evidence: Evidence) -> str:
    """Table 3 beside Tables 1 and 4."""
    one, four = printed("cmacc_table1").set_index("approach"), printed("cmacc_table4")
    best = four.loc[(four["method"] == "Ours") & (four["pretrain_set"] == "Kinetics700"), "UCF101"].item()
    random, active = (by_batch(sampler, "UCF101")[128] for sampler in ("Random", "Active"))
    smaller = f"{one.loc['SMoCo', 'UCF101']} of SMoCo after Kinetics-Sound"
    return f"UCF101, M = 128: random {random} against {smaller}, active {active} against {best} in Table 4"


def scratch(evidence: Evidence) -> str:
    """Training from scratch in Tables 1 and 4."""
    one, four = printed("cmacc_table1").set_index("approach"), printed("cmacc_table4").set_index("method")
    gaps = one.loc["Scratch", TARGETS[:2]] - four.loc["Scratch", TARGETS[:2]]
    return f"{gaps['UCF101']:.1f} and {gaps['HMDB51']:.1f} points apart"


def coverage(evidence: Evidence) -> str:
    """The closed form at every M, and what random sampling gave here beside its own expectation."""
    said = [f"M = {row.draws}: {row.expected:.1f}, {row.percent_of_categories:.1f} % of {row.categories}, "
            f"{row.percent_of_draws:.1f} % of M"
            for row in uniform_draws((CATEGORIES,), BATCHES).itertuples()]
    for setting in evidence.settings("category_diversity"):
        rows = setting.rows("category_diversity", sampler="random", batch=128)
        if len(rows):
            said.append(f"{setting}, M = 128: {rows['categories_video'].mean():.1f} "
                        f"measured, {rows['expected'].mean():.1f} expected")
    return f"uniform draws: {'; '.join(said)}"


LENGTHS = [  # unit length beside the printed recipe's any length, and the reverse beside the quick recipe's unit length
    change | posterior for posterior, change in (
        ({}, {"normalised": True, "temperature": 0.07}), ({}, {"normalised": False, "temperature": 0.7}),
        ({"posterior_temperature": 0.07}, {"normalised": True, "temperature": 0.07}),
        ({"posterior_temperature": 1.0}, {"normalised": False, "temperature": 0.7}),
    )
]
BEST = predicates.of_print(best_over_others, name="best of CM-ACC over best of others")
SAME_NETWORK = predicates.of_print(best_over_others, name="R(2+1)D-18, AudioSet 1.8M", architecture="R(2+1)D-18",
                       pretrain_size="1.8M")
CLAIMS = predicates.claims("cmacc", "CM-ACC", {
    "C1": predicates.closed_form(random_coverage),
    "C2": predicates.closed_form(active_coverage),
    "C3": more_categories("random", (128,)),
    "C4": more_categories("random"),
    "C5": more_categories("feature"),
    "C6": predicates.of_log("category_curves", similar_early),
    "C7": measured(("mutual_information",), easy_grids, partial(verdicts.within, tolerance=2.0), numbers=True,
                   datasets=("multiomniglot",)),
    "C8": _grids({"one minus three characters": ("SMoCo", 1, "SMoCo", 3)}),
    "C9": _grids({f"{number} characters": ("XMoCo", number, "SMoCo", number) for number in (1, 3, 5)}),
    "C10": _grids({"9 characters": ("XMoCo", 9, "SMoCo", 9)}, partial(verdicts.within, tolerance=CLOSE)),
    "C11": _grids({f"over {other}, {number} characters": ("CM-ACC", number, other, number)
                   for other in ("SMoCo", "XMoCo") for number in (3, 5, 9)}),
    "C12": _dictionaries(verdicts.above, False, *METHODS),
    "C13": _dictionaries(verdicts.below, True, "SMoCo", "XMoCo"),
    "C14": _dictionaries(partial(verdicts.above, margin=-1.0), True, "CM-ACC"),
    "C15": printed_rows("table1", "approach", ACROSS),
    "C16": _approaches(ACROSS),
    "C17": printed_rows("table1", "approach", LAYER),
    "C18": _approaches(LAYER),
    "C19": printed_rows("table1", "approach", ACTIVE),
    "C20": _approaches(ACTIVE),
    "C21": predicates.of_print(printed_gains),
    "C22": printed_rows("table2", "embedding_space", over(("Gradient Embedding", "Feature Embedding"))),
    "C23": _approaches({"CM-ACC over CM-ACC, features": ("CM-ACC", FEATURES)}),
    "C24": printed_rows("table3", "sampler", over(("Active", "Random"))),
    "C25": _fine_tuned("gradient", "random"),
    "C26": printed_rows("table3", "sampler", over(("Random", "OHEM"))),
    "C27": _fine_tuned("random", "ohem"),
    "C28": predicates.of_print(printed_batches),
    "C29": BEST,
    "C30": predicates.of_print(comparable_gains, number=4, targets=TARGETS[:2]),
    "C31": SAME_NETWORK,
    "C32": predicates.of_print(comparable_gains, number=5, targets=["ESC50"]),
    "C33": printed_rows("table6", ["approach", "dataset"], {
        "240K over 22K": (("CM-ACC", "Kinetics700"), ("CM-ACC", "Kinetics-Sound")),
        "1.8M over 240K": (("CM-ACC", "AudioSet"), ("CM-ACC", "Kinetics700")),
    }),
    "C34": printed_rows("table6", ["approach", "dataset"], {
        "CM-ACC 1.8M over supervised": (("CM-ACC", "AudioSet"), ("Supervised", "Kinetics400")),
    }),
    "C35": predicates.of_print(repeated_numbers),
    "C36": predicates.of_print(printed_norms),
    "C37": predicates.closed_form(norms_by_similarity),
    "C38": predicates.of_print(multiples),
    "C39": predicates.closed_form(mutual_information),
    "C40": norms_of_picks("random", "ohem"),
    "C41": norms_of_picks("gradient", "random"),
    "C42": predicates.of_log("pretext_accuracy", categories_differ),
    "C43": printed_rows("table1", "approach", {name: (name, "Scratch") for name in WITHOUT_LABELS}),
    "C44": _approaches(over(("SMoCo", "Scratch"))),
    "C45": _approaches(over(*((name, "Scratch") for name in WITHOUT_LABELS if name != "SMoCo"))
                       | {"CM-ACC, features over Scratch": (FEATURES, "Scratch")}),
    "C46": printed_rows("table3", "sampler", over(("Active", "OHEM"))),
    "C47": _fine_tuned("gradient", "ohem"),
    "C48": predicates.of_print(shrinking_gap),
    "C49": measured(("ohem_vs_active",), shrinking_gap_here, verdicts.above),
    "C50": predicates.of_log("category_curves", growing_diversity),
}, VIEW=VIEW, GRIDS=GRIDS, POSTERIOR=POSTERIOR, CLOSE=CLOSE, SAVING=SAVING, LARGE=LARGE)
DISCREPANCIES = predicates.discrepancies("cmacc", "CM-ACC", {
    "C-1": predicates.said_by(predicates.of_print(repeated_numbers)),
    "C-2": pool,
    "C-3": short_schedule,
    "C-4": scratch,
    "C-5": coverage,
    "C-7": predicates.said_by(predicates.closed_form(norms_by_similarity)),
    "C-8": predicates.joined(predicates.said_by(BEST, "margins of the best rows: "),
                             predicates.said_by(SAME_NETWORK, "with one network: ")),
    "C-10": predicates.said_by(measured(("ohem_vs_active",), released_selection, verdicts.different),
                               "released minus printed, "),
    "C-11": predicates.departing(*RUN, momentum=0.9),
    "C-12": predicates.joined(*(predicates.departing(*RUN, **change) for change in LENGTHS)),
    "C-13": predicates.departing(*RUN, renewed=False),
    "C-14": predicates.said_by(norms_of_picks("ohem", "random"), "norms of gradients: "),
    "C-21": predicates.departing("mutual_information", view="characters"),
    "C-22": predicates.departing(*RUN, own_excluded=False),
})
