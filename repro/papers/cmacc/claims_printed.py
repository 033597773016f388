"""What CM-ACC's printed numbers and formulas say by themselves: predicates that need no training."""

import itertools
import math
from collections.abc import Mapping

import torch
from pandas import DataFrame, Series
from torch.nn.functional import normalize

from repro.audiovisual.coverage import uniform_draws
from repro.contrast.negatives import gradient_factors
from repro.report.evidence import Evidence
from repro.report.levels import CLOSED, PRINTED
from repro.report.printed import printed
from repro.report.verdicts import ROUNDING, Finding, exactly

TARGETS = ["UCF101", "HMDB51", "ESC50"]
BATCHES = (32, 64, 128)
CATEGORIES, WITH_SOUND = 101, 51  # of UCF101; about half have sound
SAME_SIZE = {"14K": "", "N/A": "240K"}  # Tables 4 and 5: Kinetics-Sound beside UCF/HMDB, and what Kinetics-400 has
COMPETING = ("Ours", "Scratch", "Supervised")


def random_coverage(evidence: Evidence) -> Finding:
    """30 to 40 % at M = 128, against the closed form."""
    every, audible = uniform_draws((CATEGORIES, WITH_SOUND), (128,)).itertuples()
    told = f"{every.expected:.1f} of {CATEGORIES} categories, {every.percent_of_categories:.1f} %; of {WITH_SOUND}, if "
    told += f"these alone have sound, {audible.expected:.1f}: {100 * audible.expected / CATEGORIES:.1f} % of "
    told += f"{CATEGORIES} or {audible.percent_of_draws:.1f} % of M"
    return exactly(30 <= every.percent_of_categories <= 40, CLOSED, told)


def active_coverage(evidence: Evidence) -> Finding:
    """60 to 70 % at M = 128, against what random draws give anyway."""
    share = uniform_draws((CATEGORIES,), (128,))["percent_of_categories"].item()
    return exactly(share < 70, CLOSED, f"uniform draws cover {share:.1f} % in expectation")


def printed_approaches(evidence: Evidence, pairs: tuple[tuple[str, str], ...]) -> Finding:
    table = printed("cmacc_table1").set_index("approach")[TARGETS]
    gains = {f"{first} over {second}": table.loc[first] - table.loc[second] for first, second in pairs}
    return exactly(all((gain > 0).all() for gain in gains.values()), PRINTED, _listed(gains))


def above_scratch(evidence: Evidence) -> Finding:
    """Every self-supervised row of Table 1 against the network from scratch."""
    table = printed("cmacc_table1").set_index("approach")[TARGETS]
    others = table.drop(["Scratch", "Supervised"])
    gains = {name: row - table.loc["Scratch"] for name, row in others.iterrows()}
    return exactly(all((gain > 0).all() for gain in gains.values()), PRINTED, _listed(gains))


def printed_gains(evidence: Evidence) -> Finding:
    """Table 1's gains against the rows that each names."""
    table = printed("cmacc_table1").set_index("id")
    rows = table[table["gain_definition"].notna() & (table["gain_definition"] != "")]
    wrong = []
    for number, row in rows.iterrows():
        first, second = (int(part) for part in row["gain_definition"].split("-"))
        gains = table.loc[first, TARGETS] - table.loc[second, TARGETS]
        wrong += [f"row {number}, {name}" for name in TARGETS if abs(gains[name] - row[f"gain_{name}"]) > 0.01]
    told = f"{3 * len(rows)} gains" + (f"; other differences: {', '.join(wrong)}" if wrong else ", all as printed")
    return exactly(not wrong, PRINTED, told)


def printed_embeddings(evidence: Evidence) -> Finding:
    table = printed("cmacc_table2").set_index("embedding_space")[TARGETS]
    gains = table.loc["Gradient Embedding"] - table.loc["Feature Embedding"]
    return exactly(bool((gains > 0).all()), PRINTED, _listed({"gradient over feature": gains}))


def printed_samplers(evidence: Evidence, first: str, second: str) -> Finding:
    table = printed("cmacc_table3").set_index("sampler")
    gains = table.loc[first] - table.loc[second]
    return exactly(bool((gains > 0).all()), PRINTED, _listed({f"{first} over {second}": gains}))


def shrinking_gap(evidence: Evidence) -> Finding:
    """Whether the gap between active negatives and OHEM's shrinks with every step of M, on both targets."""
    table = printed("cmacc_table3").set_index("sampler")
    gaps = {target: [table.loc["Active", f"{target}_M{batch}"] - table.loc["OHEM", f"{target}_M{batch}"]
                     for batch in BATCHES] for target in ("UCF101", "HMDB51")}
    told = "; ".join(f"{target}: {', '.join(f'{gap:.1f}' for gap in each)}" for target, each in gaps.items())
    shrinks = all(earlier > later for each in gaps.values() for earlier, later in itertools.pairwise(each))
    return exactly(shrinks, PRINTED, f"M = 32, 64, 128: {told}")


def printed_batches(evidence: Evidence) -> Finding:
    """Whether each sampler's accuracy rises with M on both targets."""
    table = printed("cmacc_table3").set_index("sampler")
    steps = {f"{sampler}, {target}": table.loc[sampler, [f"{target}_M{batch}" for batch in BATCHES]].diff().dropna()
             for sampler in table.index for target in ("UCF101", "HMDB51")}
    told = "; ".join(f"{name}: {', '.join(f'{step:+.1f}' for step in each)}" for name, each in steps.items())
    return exactly(all((each > 0).all() for each in steps.values()), PRINTED, told)


def comparable_gains(evidence: Evidence, number: int, targets: list[str]) -> Finding:
    """The printed gains of Table 4 or 5 against the best other method that was pre-trained on as many clips."""
    table = printed(f"cmacc_table{number}").fillna({"pretrain_size": ""})
    table["pretrain_size"] = table["pretrain_size"].replace(SAME_SIZE)
    best = _others(table).groupby("pretrain_size")[targets].max()
    ours = table[table["method"] == "Ours"]
    gains = ours[targets] - best.loc[ours["pretrain_size"]].to_numpy()
    stated = ours[[f"gain_{target}" for target in targets]].set_axis(targets, axis=1)
    right = (gains - stated).abs().lt(0.01) & stated.gt(0)
    names = ours["pretrain_set"] + ", " + ours["architecture"]
    told = "; ".join(f"{name}: {', '.join(f'{gain:+.1f}' for gain in row)}"
                     for name, row in zip(names, gains.to_numpy(), strict=True))
    return exactly(bool(right.all(axis=None)), PRINTED, f"{' and '.join(targets)}: {told}")


def state_of_the_art(evidence: Evidence) -> Finding:
    table, targets = printed("cmacc_table4"), TARGETS[:2]
    gains = table.loc[table["method"] == "Ours", targets].max() - _others(table)[targets].max()
    return exactly(bool((gains > 0).all()), PRINTED, _listed({"best of CM-ACC over best of others": gains}))


def same_network(evidence: Evidence) -> Finding:
    """R(2+1)D-18 on AudioSet, CM-ACC against the best other."""
    table, targets = printed("cmacc_table4"), TARGETS[:2]
    table = table[(table["architecture"] == "R(2+1)D-18") & (table["pretrain_size"] == "1.8M")]
    gains = table.loc[table["method"] == "Ours", targets].max() - _others(table)[targets].max()
    return exactly(bool((gains > 0).all()), PRINTED, _listed({"R(2+1)D-18, AudioSet 1.8M": gains}))


def more_data(evidence: Evidence) -> Finding:
    table = printed("cmacc_table6")
    steps = table.loc[table["approach"] == "CM-ACC", TARGETS].diff().dropna()
    told = _listed({"240K over 22K": steps.iloc[0], "1.8M over 240K": steps.iloc[1]})
    return exactly(bool((steps > 0).all(axis=None)), PRINTED, told)


def over_supervised(evidence: Evidence) -> Finding:
    table = printed("cmacc_table6").set_index(["approach", "dataset"])[TARGETS]
    gains = table.loc[("CM-ACC", "AudioSet")] - table.loc[("Supervised", "Kinetics400")]
    return exactly(bool((gains > 0).all()), PRINTED, _listed({"CM-ACC 1.8M over supervised": gains}))


def repeated_numbers(evidence: Evidence) -> Finding:
    """Table 6 against the rows of Tables 1, 4 and 5 that it repeats, of the network that these name first."""
    six = printed("cmacc_table6").set_index(["approach", "dataset"]).loc["CM-ACC"]
    elsewhere = {("Kinetics-Sound", target): printed("cmacc_table1").set_index("approach").loc["CM-ACC", target]
                 for target in TARGETS}
    for name, size in (("Kinetics700", "240K"), ("AudioSet", "1.8M")):
        for target in TARGETS:
            table = printed("cmacc_table5" if target == "ESC50" else "cmacc_table4")
            rows = table[(table["method"] == "Ours") & (table["pretrain_set"] == name)]
            elsewhere[name, target] = rows.loc[rows["pretrain_size"] == size, target].iloc[0]
    different = [f"{name}, {target}: {six.loc[name, target]} and {value}" for (name, target), value in elsewhere.items()
                 if abs(six.loc[name, target] - value) > ROUNDING]
    return exactly(not different, PRINTED, f"{len(elsewhere)} compared, unequal: {'; '.join(different) or 'none'}")


def printed_norms(evidence: Evidence) -> Finding:
    table = printed("cmacc_fig5_gradient_norms").set_index("negative")["gradient_norm"]
    least, easy = table.drop("riding a camel").min(), table["riding a camel"]
    return exactly(least > 10 * easy, PRINTED, f"{least} and more against {easy}, three negatives of one query")


def norms_by_similarity(evidence: Evidence) -> Finding:
    """Gradient norms of Eq. 4 and 5 for keys of one length, near one of 128 queries or unlike all of them."""
    generator = torch.Generator().manual_seed(0)
    ratios = {}
    for length in (1, 4, 16):
        queries = length * normalize(torch.randn(128, 512, generator=generator, dtype=torch.float64), dim=1)
        inputs = torch.randn(128, 512, generator=generator, dtype=torch.float64)
        apart = normalize(torch.randn(128, 512, generator=generator, dtype=torch.float64), dim=1)
        near = length * normalize(0.8 * queries / length + 0.6 * apart, dim=1)
        norms = [_norms(candidates, queries, inputs) for candidates in (near, length * apart)]
        ratios[length] = float(norms[0].mean() / norms[1].mean())
    told = ", ".join(f"{ratio:.4f} at length {length}" for length, ratio in ratios.items())
    return exactly(min(ratios.values()) > 1, CLOSED, f"mean norm of keys at cosine 0.8 to a query over that of random "
                   f"keys (d = 512, M = 128): {told}")


def _norms(candidates: torch.Tensor, queries: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    a, b = gradient_factors(candidates, queries, inputs)
    return a.norm(dim=1) * b.norm(dim=1)


def multiples(evidence: Evidence) -> Finding:
    values = printed("cmacc_hyperparameters").set_index("key")["value"]
    batch, dictionary, pool = (int(values[name]) for name in ("batch_M", "dictionary_K", "pool_N"))
    told = f"{dictionary} = {dictionary / batch:g} x {batch}, {pool} = {pool / batch:g} x {batch}"
    return exactly((dictionary, pool) == (30 * batch, 300 * batch), PRINTED, told)


def mutual_information(evidence: Evidence) -> Finding:
    table = printed("spatial_multiomniglot_mi")
    worst = (table["alphabet_size"].map(math.log).cumsum() - table["MI_nats"]).abs().max()
    return exactly(worst < 1e-4, CLOSED, f"largest difference {worst:.1g} nats over {len(table)} alphabets")


def _listed(gains: Mapping[str, Series]) -> str:
    return "; ".join(f"{name}: {', '.join(f'{target} {gain:+.1f}' for target, gain in each.items())}"
                     for name, each in gains.items())


def _others(table: DataFrame) -> DataFrame:
    """Rows of other self-supervised methods."""
    return table[~table["method"].str.startswith(COMPETING)]
