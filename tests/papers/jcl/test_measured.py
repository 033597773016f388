"""Features of augmentations, beside those of every view; what is kept of runs."""

import functools

import made_up_images
import pytest
import torch

import repro
from repro.image.augment import normalisation, strong
from repro.image.model import ImageModel
from repro.image.recipe import paper
from repro.papers.jcl import measured

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
    parts = list(measured.features(model, RECIPE, data, images, augmentations, seed=3))
    assert max(part.shape[:2].numel() for part in parts) <= max(batch, augmentations)
    assert not any(part.requires_grad for part in parts)
    assert sum(map(len, parts)) == min(images, int(data.pretrain.sum()))
    torch.testing.assert_close(torch.cat(parts), encoded(model, data, images, augmentations, 3, batch))


@pytest.mark.parametrize("able", [False, True])
def test_features_are_in_the_precision_that_trains_here(monkeypatch, able):
    monkeypatch.setattr("repro.run.device.has_bfloat16", lambda: able)
    model = ImageModel("resnet18", False, "moco_v2", 16).eval()
    data = made_up_images.made_up(train=4, test=1)
    small = RECIPE.replace(small=True)
    asked, usual = (torch.cat(list(measured.features(model, small.replace(precision=precision), data, 4, 2)))
                    for precision in ("bfloat16" if able else "float32", "auto"))
    assert torch.equal(asked, usual)


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
