"""Similarity and variance of augmentations in one pass, beside all pairs and coordinates written out."""

import functools

import made_up_images
import pandas as pd
import pytest
import torch
from torch.nn.functional import normalize

import repro
from repro.image.augment import normalisation, strong
from repro.image.model import ImageModel
from repro.image.recipe import paper
from repro.papers.jcl import figure_data

RECIPE = paper("digits", "moco", size=10, resize=10, precision="float32", channels_last=False)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    made_up_images.use_tiny_trunk(monkeypatch)
    torch.manual_seed(0)


@pytest.fixture
def model():
    return ImageModel("resnet18", False, "moco_v2", 16).eval()


def written_out(model, data, images, augmentations, seed, batch):
    """Cosines of all pairs and variances of all coordinates, an image at a time, from the same draws."""
    members = data.pretrain.nonzero().flatten()
    chosen = members[torch.randperm(len(members), generator=torch.Generator().manual_seed(seed))[:images]]
    generator, view, found = torch.Generator().manual_seed(seed), strong(10, normalisation("digits")), []
    for part in chosen.split(max(1, batch // augmentations)):
        views = [view(data.images[part], generator) for _ in range(augmentations)]
        for place in range(len(part)):
            with torch.no_grad():
                z = torch.stack([normalize(model.features(each)[place].double(), dim=0) for each in views])
            cosines = [float(a @ b) for a in z for b in z]
            variances = [float(((column - column.mean()) ** 2).mean()) for column in z.T]
            found.append((sum(cosines) / len(cosines), sum(variances) / len(variances)))
    return found


@pytest.mark.parametrize(
    "images, augmentations, batch", [(6, 4, 256), (6, 4, 8), (7, 1, 3), (1, 5, 256), (500, 2, 8), (3, 4, 2)]
)
def test_one_pass_gives_all_pairs_and_coordinates(model, monkeypatch, images, augmentations, batch):
    monkeypatch.setattr(figure_data, "BATCH", batch)
    data = made_up_images.made_up(train=20, test=3)
    asked = {"images": images, "augmentations": augmentations, "seed": 3}
    found = figure_data.similarity_and_variance(model, RECIPE, data, device=CPU, **asked)
    expected = pd.DataFrame(written_out(model, data, batch=batch, **asked), columns=["similarity", "variance"])
    assert len(found) == min(images, 20)
    pd.testing.assert_frame_equal(found, expected, rtol=0, atol=1e-7)
    if augmentations == 1:
        assert found["similarity"].tolist() == pytest.approx([1.0] * len(found))


def test_unlabeled_images_are_those_compared(model):
    data = made_up_images.made_up(train=4, test=3, unlabeled=9)
    found = figure_data.similarity_and_variance(model, RECIPE, data, images=99, augmentations=2, seed=0, device=CPU)
    assert len(found) == 9


def test_a_sample_holds_the_features_themselves(model):
    data = made_up_images.made_up(train=20, test=3)
    z = figure_data.sample(model, RECIPE, data, images=5, seed=3)
    assert z.shape == (5, 32, made_up_images.FEATURES) and not z.requires_grad
    unit = normalize(z.double(), dim=2)
    one_pass = figure_data.similarity_and_variance(model, RECIPE, data, images=5, augmentations=32, seed=3, device=CPU)
    assert (unit @ unit.mT).mean((1, 2)).tolist() == pytest.approx(one_pass["similarity"].tolist(), abs=1e-7)


def test_no_more_than_a_batch_is_encoded_at_a_time(model, monkeypatch):
    monkeypatch.setattr(figure_data, "BATCH", 14)
    sizes, features = [], model.features
    monkeypatch.setattr(model, "features", lambda images: sizes.append(len(images)) or features(images))
    data = made_up_images.made_up(train=10, test=3)
    figure_data.similarity_and_variance(model, RECIPE, data, images=10, augmentations=3, seed=0, device=CPU)
    assert sizes == [12, 12, 6]


def test_rows_of_both_models_are_computed_once(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    settings = {"preset": "smoke", "seeds": "0,1"}
    table = repro.run_table("similarity_variance", "digits", device="cpu", **settings)
    assert table[["method", "keys"]].to_numpy().tolist() == [["jcl", 9], ["moco", 1]]
    assert len(list(tmp_path.glob("cells/*/similarity.csv"))) == 4  # for `repro results export`
    cells = repro.TABLES["similarity_variance"].cells("digits", **settings)
    refuse = functools.partial(pytest.fail, "computed again")
    monkeypatch.setattr(figure_data, "similarity_and_variance", refuse)
    found = figure_data.similarities(cells, "cpu")
    assert (set(found["dataset"]), set(found["preset"])) == ({"digits"}, {"smoke"})
    assert found.groupby(["model", "seed"])["d"].agg(["count", "first"]).to_numpy().tolist() == [[64, 12]] * 4
    assert set(found["model"]) == {"JCL", "MoCo v2"}
    assert found["similarity"].between(0, 1).all()
    assert ((1 - found["similarity"]) / 12).tolist() == pytest.approx(found["variance"].tolist())


def test_the_bound_of_the_cell_with_most_keys_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    settings = {"preset": "smoke", "keys": "2,5", "strength": "3", "temperature": "0.3"}
    repro.run_table("positive_keys", "digits", device="cpu", **settings)
    path, = tmp_path.glob("cells/*/sampled_keys.csv")
    assert '"keys": 5' in (path.parent / "recipe.json").read_text()
    monkeypatch.setattr(figure_data, "resumed", functools.partial(pytest.fail, "computed again"))
    found = figure_data.sampled_keys(repro.TABLES["positive_keys"].cells("digits", **settings), "cpu")
    assert found["keys"].tolist() == [2**power for power in range(13)]
    assert found["inside"].iloc[-1] == pytest.approx(found["closed_form"].iloc[-1], abs=0.02)
    assert (found["inside"] <= found["closed_form"] + 3 * found["inside_std"]).all()
