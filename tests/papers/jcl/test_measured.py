"""Features of augmentations, beside those of every view; losses of drawn keys beside loops; what is kept of runs."""

import functools
import itertools
import math

import made_up_images
import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

import repro
from repro.contrast.objectives import info_nce, jcl
from repro.image.augment import normalisation, strong
from repro.image.model import ImageModel
from repro.image.recipe import paper
from repro.papers.jcl import measured

CPU = torch.device("cpu")
RECIPE = paper("digits", "moco", size=10, resize=10, precision="float32", channels_last=False)


@pytest.fixture(autouse=True)
def tiny(tmp_path, monkeypatch):
    made_up_images.use_tiny_trunk(monkeypatch)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    torch.manual_seed(0)


@torch.no_grad()
def encoded(model, data, images, augmentations, seed, batch):
    """(images, augmentations, d) of the drawn images, view by view, from the same draws."""
    members = data.pretrain.nonzero().flatten()
    drawn = members[torch.randperm(len(members), generator=torch.Generator().manual_seed(seed))[:images]]
    generator, view = torch.Generator().manual_seed(seed), strong(10, normalisation("digits"))
    return torch.cat([
        torch.stack([model.features(view(data.images[part], generator)) for _ in range(augmentations)], dim=1)
        for part in drawn.split(max(1, batch // augmentations))])


@pytest.mark.parametrize(("images", "augmentations", "batch"), [(6, 4, 8), (7, 1, 3), (500, 2, 256), (3, 4, 2)])
def test_features_of_a_batch_at_a_time_are_those_of_every_view(monkeypatch, images, augmentations, batch):
    monkeypatch.setattr(measured, "BATCH", batch)
    model = ImageModel("resnet18", False, "moco_v2", 16).eval()
    data = made_up_images.made_up(train=20, test=3, unlabeled=5)
    parts = list(measured.features(model, RECIPE, data, images, augmentations, seed=3, device=CPU))
    assert max(part.shape[:2].numel() for part in parts) <= max(batch, augmentations)
    assert not any(part.requires_grad for part in parts)
    assert sum(map(len, parts)) == min(images, int(data.pretrain.sum()))
    torch.testing.assert_close(torch.cat(parts), encoded(model, data, images, augmentations, 3, batch))


def test_rows_of_both_models_are_computed_once(tmp_path, monkeypatch):
    settings = {"preset": "smoke", "seeds": "0,1"}
    table = repro.run_table("similarity_variance", "digits", device="cpu", **settings)
    assert table[["method", "keys"]].to_numpy().tolist() == [["jcl", 9], ["moco", 1]]
    assert len(list(tmp_path.glob("runs/*/similarity.csv"))) == 4  # for `repro figures --committed`
    monkeypatch.setattr(measured, "features", functools.partial(pytest.fail, "computed again"))
    found = measured.similarities(repro.TABLES["similarity_variance"].runs("digits", **settings), "cpu")
    assert (set(found["dataset"]), set(found["preset"])) == ({"digits"}, {"smoke"})
    assert found.groupby(["model", "seed"])["d"].agg(["count", "first"]).to_dict("index") == {
        (model, seed): {"count": 64, "first": 12} for model in ("JCL", "MoCo v2") for seed in (0, 1)}
    assert found["similarity"].between(0, 1).all()
    assert ((1 - found["similarity"]) / 12).tolist() == pytest.approx(found["variance"].tolist())


def test_the_bound_of_the_run_with_most_keys_is_kept(tmp_path, monkeypatch):
    settings = {"preset": "smoke", "keys": "2,5", "strength": "3", "temperature": "0.3"}
    repro.run_table("positive_keys", "digits", device="cpu", **settings)
    path, = tmp_path.glob("runs/*/sampled_keys.csv")
    assert '"keys": 5' in (path.parent / "recipe.json").read_text()
    monkeypatch.setattr(measured, "restored", functools.partial(pytest.fail, "computed again"))
    found = measured.sampled_keys(repro.TABLES["positive_keys"].runs("digits", **settings), "cpu")
    assert found["keys"].tolist() == [2**power for power in range(13)]
    assert found["inside"].iloc[-1] == pytest.approx(found["closed_form"].iloc[-1], abs=0.02)
    assert (found["inside"] <= found["closed_form"] + 3 * found["inside_std"]).all()


TEMPERATURE, STRENGTH = 0.5, 2.0


def drawn(queries=2, given=3, negatives=6, d=4, spread=0.3):
    """Queries, keys near them, and a dictionary."""
    generator = torch.Generator().manual_seed(0)
    query, noise, others = (torch.randn(*shape, d, generator=generator, dtype=torch.float64) for shape in (
        (queries,), (queries, given), (negatives,)))
    query = normalize(query, dim=1)
    return query, normalize(query.unsqueeze(1) + spread * noise, dim=2), normalize(others, dim=1)


def sampled(*tensors, seed=0, temperature=TEMPERATURE, strength=STRENGTH, **options):
    generator = torch.Generator().manual_seed(seed)
    return measured.sampled_losses(*tensors, temperature, strength, generator=generator, **options)


def test_losses_equal_a_loop_over_explicit_keys():
    """From the same normal numbers, key by key."""
    tensors, counts = drawn(), [1, 2, 5]
    (query, keys, negatives), mean = tensors, tensors[1].mean(1)
    table, generator = sampled(*tensors, counts=counts, repeats=3), torch.Generator().manual_seed(0)
    losses = {"inside": np.zeros((3, 3)), "outside": np.zeros((3, 3))}
    for repeat in range(3):
        noise = torch.randn(max(counts), *keys.shape[:2], generator=generator, dtype=torch.float64)
        for (column, count), (i, q) in itertools.product(enumerate(counts), enumerate(query)):
            factor = math.sqrt(STRENGTH / keys.shape[1]) * (keys[i] - mean[i])
            some = [mean[i] + factor.T @ noise[m, i] for m in range(count)]
            repulsion = sum(math.exp(q @ n / TEMPERATURE) for n in negatives)
            attraction = sum(math.exp(q @ k / TEMPERATURE) for k in some) / count
            losses["inside"][repeat, column] += math.log(attraction + repulsion) - float(q @ mean[i]) / TEMPERATURE
            losses["outside"][repeat, column] += np.mean(
                [info_nce(q[None], k[None], negatives, TEMPERATURE).item() for k in some])
    for name, values in losses.items():
        np.testing.assert_allclose(table[name], values.mean(0) / len(query))
        np.testing.assert_allclose(table[f"{name}_std"], values.std(0, ddof=1) / len(query))
    np.testing.assert_allclose(table["closed_form"], jcl(*tensors, TEMPERATURE, STRENGTH).item())


@pytest.mark.parametrize("changes", [{"strength": 0.0}, {"given": 1}])
def test_without_spread_all_three_are_one_loss(changes):
    tensors = drawn(given=changes.get("given", 3))
    table = sampled(*tensors, strength=changes.get("strength", STRENGTH), counts=[1, 7], repeats=2)
    expected = info_nce(tensors[0], tensors[1].mean(1), tensors[2], TEMPERATURE).item()
    np.testing.assert_allclose(table[["inside", "outside", "closed_form"]], expected)
    np.testing.assert_allclose(table[["inside_std", "outside_std"]], 0, atol=1e-12)


def test_logits_may_be_large():
    cold = sampled(*(tensor.float().requires_grad_() for tensor in drawn()), temperature=1e-4, counts=[4], repeats=2)
    assert np.isfinite(cold.to_numpy()).all()
