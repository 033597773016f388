"""The tables of claims that no run changes, made again: closed forms, and printed numbers in another order."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn.functional import normalize, one_hot

from repro import papers
from repro.contrast.objectives import ceil, info_nce, jcl, ressl, sce
from repro.papers.jcl.measured import sampled_losses
from repro.report.printed import printed

TERMS = ["AE", "CE", "AD", "CD"]


def table(name):
    path, = (path for folder in papers.folders().values() for path in folder.glob(f"*/{name}.csv"))
    return pd.read_csv(path, keep_default_na=False, na_values="")


@pytest.fixture
def drawn():
    """Normal numbers in double precision, one after the other."""
    generator = torch.Generator().manual_seed(0)
    return lambda *size: torch.randn(*size, generator=generator, dtype=torch.float64)


def test_uniform_draws_reach_so_many_categories_and_active_ones_so_many_more():
    expected = {classes: classes * (1 - (1 - 1 / classes) ** 128) for classes in (101, 51)}
    assert table("uniform_coverage").to_numpy().tolist() == [
        [classes, of, pytest.approx(100 * number / {"categories": classes, "draws": 128}[of])]
        for classes, number in expected.items() for of in ("categories", "draws")]
    active = 0.6 * 128  # of the draws, by which Fig. 4 divides
    assert table("active_coverage").to_numpy().tolist() == pytest.approx(
        np.array([[101, active - expected[101]], [51, 51 - active]]))


def test_gradients_between_two_queries_are_larger_than_near_one(drawn):
    """|k| |H^T (p - e_y)| of every key, for the label y that it is nearest to."""
    rows = []
    for length in (1, 4, 16):
        queries, inputs, random = drawn(128, 512), drawn(128, 512), drawn(128, 512)
        queries, random = normalize(queries, dim=1), normalize(random, dim=1)
        norms = []
        for keys in (random, 0.8 * queries + 0.6 * random, queries + 0.999 * queries.roll(1, 0)):
            posterior = (length**2 * normalize(keys, dim=1) @ queries.T).softmax(1)
            labels = posterior.argmax(1)
            others = posterior * (1 - one_hot(labels, 128))  # p - e of the label is minus their sum
            norms.append((others @ inputs - others.sum(1, keepdim=True) * inputs[labels]).norm(dim=1).mean())
        rows += [[place, length, pytest.approx(math.log10(norm / norms[0]), rel=1e-3)]
                 for place, norm in zip(("near one query", "between two"), norms[1:], strict=True)]
    assert table("gradient_norms").to_numpy().tolist() == rows


def test_a_pseudo_label_has_not_always_the_smallest_gradient(drawn):
    for row in table("smaller_than_pseudo_label").itertuples():
        inputs, smaller = drawn(128, 512).relu(), 0
        for posterior in (row.deviation * drawn(256, 128)).softmax(dim=1):
            norms = ((posterior - torch.eye(128)) @ inputs).norm(dim=1)  # of every label
            smaller += bool((norms < norms[posterior.argmax()] - 1e-9).any())
        assert row.percent == pytest.approx(100 * smaller / 256)


def test_the_closed_form_of_jcl_is_above_and_what_many_keys_tend_to(drawn):
    views = drawn(16, 1, 16), drawn(16, 6, 16)
    views = normalize(normalize(views[0], dim=2) + 0.6 * normalize(views[1], dim=2), dim=2)
    tensors = views[:, 0], views[:, 1:], normalize(drawn(64, 16), dim=1)
    means = sampled_losses(*tensors, 0.2, 4.0, generator=torch.Generator().manual_seed(1), counts=(1024,), repeats=25)
    bound = table("upper_bound").set_index("loss")["nats"]
    assert bound["closed_form"] == pytest.approx(jcl(*tensors, 0.2, 4.0).item())
    for name in ("inside", "outside"):
        assert bound[name] == pytest.approx(means[name].item(), abs=means[f"{name}_std"].item())


def test_the_closed_form_keeps_less_and_multiplies_less_than_as_many_losses():
    """Of 64 queries of 128 features, 5 keys and 4,096 negatives."""
    query, *keys = (normalize(torch.randn(64, 128), dim=1) for _ in range(6))
    negatives = normalize(torch.randn(4096, 128), dim=1)
    losses = {"JCL": lambda query: jcl(query, torch.stack(keys, 1), negatives, 0.2, 4.0),
              "vanilla": lambda query: sum(info_nce(query, key, negatives, 0.2) for key in keys)}
    costs = table("costs").set_index("loss")
    assert (costs["multiplications"] * 1e6).tolist() == pytest.approx([64 * 128 * 4101, 64 * 128 * 5 * 4097])
    for name, loss in losses.items():
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda _: _):
            loss(query.clone().requires_grad_())
        found = {part.data_ptr(): part.untyped_storage().nbytes() for part in kept}
        assert costs.loc[name, "memory"] == pytest.approx(sum(found.values()) / 2**20, rel=0.1)


def test_one_diagonal_has_several_correlations():
    expected = [[name, *np.cov(first, second, ddof=0).flat[[0, 3, 1]]] for name, first, second in (
        ("independent", [1, -1, 1, -1], [1, 1, -1, -1]), ("equal", [1, -1, 1, -1], [1, -1, 1, -1]))]
    assert table("diagonals").to_numpy().tolist() == expected


def test_the_loss_of_sce_is_its_parts_and_the_pseudo_code_leaves_next_to_nothing(drawn):
    features = [normalize(drawn(rows, 256), dim=1) for rows in (16, 16, 4096)]
    for weight, nats in table("decomposition").to_numpy():
        parts = ressl(*features, 0.1, 0.05) + ceil(*features, 0.1)
        parts = weight * info_nce(*features, 0.1) + (1 - weight) * parts
        assert float(sce(*features, 0.1, 0.05, weight) - parts) == pytest.approx(nats, abs=1e-12)
    for temperature, nats in table("pseudo_code").to_numpy():
        formula, coded = (sce(*features, 0.1, temperature, 0.5, masked_positive=masked) for masked in (True, False))
        assert float(coded - formula) == pytest.approx(nats)


@pytest.mark.parametrize(("name", "source", "index", "columns"), [
    ("table3_by_batch", "cmacc_table3", "sampler", None), ("printed_depths", "taxonomy_depth_collapse", "layers", None),
    ("best_temperatures", "sce_best_temperature", "dataset", ["tau", "tau_m"])])
def test_a_printed_table_is_turned(name, source, index, columns):
    """Each of its cells is a row."""
    rows, printed_cells = table(name), printed(source).melt(index, columns)
    if "batch" in rows:
        rows["target"] += "_M" + rows.pop("batch").astype(str)
    value, = rows.select_dtypes("float")
    cells = rows[[index, *rows.columns.drop([index, value]), value]].to_numpy().tolist()
    assert sorted(cells) == sorted(printed_cells.to_numpy().tolist())


@pytest.mark.parametrize("number", [4, 5])
def test_gains_are_over_methods_of_as_many_clips_and_unknown_where_one_of_unknown_size_is_better(number):
    rows, gains = printed(f"cmacc_table{number}"), table(f"table{number}_gains")
    others = rows[~rows["method"].str.startswith(("Ours", "Scratch", "Supervised"))]
    assert len(gains) == (rows["method"] == "Ours").sum()
    for (_, row), target in itertools.product(gains.iterrows(), {"UCF101", "HMDB51", "ESC50"} & {*gains}):
        sizes = others.groupby("pretrain_size")[target].max()
        best, unknown = sizes.get(row["pretrain_size"], math.nan), sizes.get("N/A", math.nan)
        gained = math.nan if unknown > best else round(row[target] - best, 1)
        expected = [gained, round(row[f"gain_{target}"] - gained, 1)]
        assert [row[f"gained_{target}"], row[f"unexplained_{target}"]] == pytest.approx(expected, nan_ok=True)


def test_the_best_of_ours_and_of_others_is_that_of_their_rows():
    rows = printed("cmacc_table4")
    rows = rows[~rows["method"].str.startswith(("Scratch", "Supervised"))]
    rows["method"] = rows["method"].where(rows["method"] == "Ours", "others")
    for name, by in {"table4_best": [], "table4_best_by_network": ["architecture", "pretrain_size"]}.items():
        best = rows.groupby(["method", *by])[["UCF101", "HMDB51"]].max().reset_index()
        pd.testing.assert_frame_equal(table(name), best)


def test_the_printed_column_by_objective_and_what_a_term_takes_from_it():
    rows = printed("taxonomy")
    names = ["+".join(itertools.compress(TERMS, bits)) for bits in rows[TERMS].to_numpy()]
    pd.testing.assert_frame_equal(table("printed_by_objective"), rows.assign(objectives=names))
    mixes = (rows["AE"] & rows["CE"] | rows["AD"] & rows["CD"]).map({1: "mixed", 0: "unmixed"})
    best = rows.drop(columns=TERMS).groupby(mixes).max().rename_axis("spaces").reset_index()
    pd.testing.assert_frame_equal(table("printed_by_mixing"), best)
    values = dict(zip(names, rows["UCLA"], strict=True))
    lost = [value - values[f"{name}+CD"] for name, value in values.items() if f"{name}+CD" in values]
    assert sorted(table("printed_loss_of_CD")["points"]) == pytest.approx(sorted(lost)) and len(lost) == 7
