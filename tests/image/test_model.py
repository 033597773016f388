"""Trunks against torchvision's own networks, heads and embeddings by their equations, weights files there and back."""

import copy
import dataclasses
import json
import os
import stat

import pytest
import safetensors
import safetensors.torch
import torch
import torchvision
from torch import nn

from repro.image.augment import CentredView
from repro.image.model import HEADS, TRUNKS, ImageModel, load, load_view, projection_head, save, trunk
from repro.image.operations import Normalisation

VIEW = CentredView(8, Normalisation((0.5, 0.4, 0.3), (0.2, 0.25, 0.3)), 9)


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def images(count=6, size=8, **options):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(0), **options)


def with_history(model):
    """The model after a batch in training mode, so that running statistics are no longer 0 and 1; evaluating."""
    model(images(8) + 1)
    return model.eval()


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return with_history(ImageModel("resnet18", True, "sce", 16))


def torchvisions(name, small):
    """torchvision's network with the parts SCE's supplement changes."""
    network = getattr(torchvision.models, name)()
    if small:
        network.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        network.maxpool = nn.Identity()
    network.fc = nn.Identity()
    return network


@pytest.mark.parametrize(
    ("name", "small", "count"),
    [
        ("resnet18", True, 11_168_832),  # 11.17 million in the supplement
        ("resnet18", False, 11_689_512 - 513_000),  # torchvision's documented count without the classifier
        ("resnet50", True, 25_557_032 - 2_049_000 - 9408 + 1728),
        ("resnet50", False, 25_557_032 - 2_049_000),
    ],
)
def test_parameter_counts(name, small, count):
    with torch.device("meta"):
        assert parameters(trunk(name, small)) == count


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("name", "small"), [("resnet18", True), ("resnet18", False), ("resnet50", True)])
def test_features_are_those_of_torchvisions_network(name, small, training):
    torch.manual_seed(0)
    own, expected = trunk(name, small).double(), torchvisions(name, small).double()
    expected.load_state_dict(own.state_dict())
    batch = images(2, 32 if not small else 8).double()
    own.train(training)
    expected.train(training)
    found = own(batch)
    assert found.shape == (2, TRUNKS[name])
    torch.testing.assert_close(found, expected(batch))
    for statistic, other in zip(own.buffers(), expected.buffers(), strict=True):
        torch.testing.assert_close(statistic, other)


@pytest.mark.parametrize(("small", "sizes"), [(True, [32, 32, 16, 8, 4]), (False, [16, 8, 4, 2, 1])])
def test_the_small_stem_keeps_the_resolution_of_images_of_32_pixels(small, sizes):
    network, found = trunk("resnet18", small).eval(), []
    for stage in ("conv1", "layer1", "layer2", "layer3", "layer4"):
        getattr(network, stage).register_forward_hook(lambda *call: found.append(call[-1].shape[-1]))
    network(images(1, 32))
    assert found == sizes


def test_the_small_stem_starts_with_the_spread_of_torchvisions_convolutions():
    torch.manual_seed(0)
    weights = trunk("resnet18", True).conv1.weight
    assert weights.std().item() == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.05)  # 1728 draws
    assert weights.mean().item() == pytest.approx(0, abs=0.005)


@pytest.mark.parametrize(
    ("name", "features", "projection", "kinds", "count"),
    [
        ("moco_v2", 512, 128, [nn.Linear, nn.ReLU, nn.Linear], 512 * 513 + 513 * 128),
        ("moco_v2", 2048, 128, [nn.Linear, nn.ReLU, nn.Linear], 2048 * 2049 + 2049 * 128),
        ("sce", 512, 256, [nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear], 512 * 512 + 2 * 512 + 513 * 256),
    ],
)
def test_heads(name, features, projection, kinds, count):
    with torch.device("meta"):
        head = projection_head(name, features, projection)
    assert [isinstance(part, kind) for part, kind in zip(head, kinds, strict=True)] == [True] * len(kinds)
    assert parameters(head) == count


def test_the_projector_of_sce_by_its_equation():
    torch.manual_seed(0)
    head, features = projection_head("sce", 6, 4).double(), torch.randn(10, 6, dtype=torch.float64)
    hidden = features @ head[0].weight.T
    deviation = (hidden.var(0, correction=0) + 1e-5).sqrt()
    hidden = ((hidden - hidden.mean(0)) / deviation).clamp(min=0)
    torch.testing.assert_close(head(features), hidden @ head[3].weight.T + head[3].bias)


@pytest.mark.parametrize("head", HEADS)
def test_embeddings_are_the_heads_directions(head):
    model = ImageModel("resnet18", True, head, 16).eval()
    features = model.features(images())
    assert features.shape == (6, 512)
    projections = model.head(features)
    embeddings = model(images())
    torch.testing.assert_close(embeddings, projections / projections.norm(dim=1, keepdim=True))
    torch.testing.assert_close(embeddings, model.embed(features))


def test_embeddings_under_bfloat16_autocast_are_float32_and_close(model):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model(images())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.norm(dim=1), torch.ones(6))
    assert ((found * model(images())).sum(1) > 0.99).all()


def test_sample_i_trains_in_group_i_mod_groups():
    torch.manual_seed(0)
    ghost = ImageModel("resnet18", True, "sce", 16, groups=3).double()
    plain = ImageModel("resnet18", True, "sce", 16).double()
    plain.load_state_dict(ghost.state_dict())
    batch, running = images(12, dtype=torch.float64), []
    apart = torch.empty(12, 512, dtype=torch.float64)
    for group in range(3):
        alone = copy.deepcopy(plain)
        apart[group::3] = alone.features(batch[group::3])
        running.append(alone.trunk.layer4[1].bn2.running_var)
    torch.testing.assert_close(ghost.features(batch), apart)
    torch.testing.assert_close(ghost.trunk.layer4[1].bn2.running_var, torch.stack(running).mean(0))
    whole = copy.deepcopy(ghost).embed(apart)  # the projector sees the whole batch
    torch.testing.assert_close(whole, plain.embed(apart))


def test_gradients_through_ghost_groups_are_those_of_the_groups_apart():
    torch.manual_seed(0)
    ghost, plain = (ImageModel("resnet18", True, "moco_v2", 16, groups=groups).double() for groups in (2, 1))
    plain.load_state_dict(ghost.state_dict())
    batch, upstream = images(4, dtype=torch.float64), torch.randn(4, 512, dtype=torch.float64)
    ghost.features(batch).backward(upstream)
    for group in range(2):
        plain.features(batch[group::2]).backward(upstream[group::2])
    for (name, own), (_, other) in zip(ghost.trunk.named_parameters(), plain.trunk.named_parameters(), strict=True):
        torch.testing.assert_close(own.grad, other.grad, msg=name)


@pytest.mark.parametrize("groups", [1, 2])
def test_channels_last_gives_the_same_features_and_stays_channels_last(groups):
    torch.manual_seed(0)
    model, layouts = ImageModel("resnet18", True, "moco_v2", 16, groups=groups), []
    last = copy.deepcopy(model).to(memory_format=torch.channels_last)
    for part in (last.trunk.bn1, last.trunk.layer2[1].bn2):
        part.register_forward_hook(
            lambda *call: layouts.append(call[-1].is_contiguous(memory_format=torch.channels_last))
        )
    batch = images(8, 16)
    found = last(batch.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(found, model(batch), rtol=1e-3, atol=1e-4)
    assert layouts == [True, True]


def test_one_image_has_the_features_it_has_in_a_batch(model):
    batch = images(5, dtype=torch.float64)
    exact = copy.deepcopy(model).double()
    torch.testing.assert_close(exact.features(batch[3:4]), exact.features(batch)[3:4])


def test_ghost_groups_do_not_matter_in_evaluation(model):
    ghost = ImageModel("resnet18", True, "sce", 16, groups=4)
    ghost.load_state_dict(model.state_dict())
    assert torch.equal(ghost.eval()(images(5)), model(images(5)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "resnet34"}, "trunk='resnet34' is not one of: resnet18, resnet50"),
        ({"head": "moco"}, "head='moco' is not one of: moco_v2, sce; did you mean 'moco_v2'"),
        ({"groups": 0}, "groups=0 should be at least 1"),
    ],
)
def test_models_that_do_not_exist(change, message):
    arguments = {"name": "resnet18", "small": True, "head": "sce", "projection": 16} | change
    with torch.device("meta"), pytest.raises(ValueError, match=message):
        ImageModel(**arguments)


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 1, 8, 8), (2, 8, 8, 3), (0,)])
def test_images_of_another_shape_raise(model, shape):
    with pytest.raises(ValueError, match=rf"images have shape \({shape[0]},.* should be \(N, 3, H, W\)"):
        model(torch.zeros(shape))


def test_integer_images_raise(model):
    with pytest.raises(TypeError, match=r"images have the type torch.uint8; convert them to float32"):
        model(torch.zeros(2, 3, 8, 8, dtype=torch.uint8))


@pytest.mark.parametrize(("count", "groups"), [(6, 4), (2, 4)])
def test_a_training_batch_that_the_groups_do_not_divide_raises(count, groups):
    model = ImageModel("resnet18", True, "moco_v2", 16, groups=groups)
    with pytest.raises(ValueError, match=f"{count} samples .* a multiple of groups={groups}"):
        model(images(count))
    assert model.eval()(images(count)).shape == (count, 16)


@pytest.fixture
def written(model, tmp_path):
    path = tmp_path / "folder" / "weights.safetensors"
    save(path, model, {"epochs": 200, "temperature": 0.1, "layout": None}, VIEW)
    return path


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_weights_there_and_back(tmp_path, layout):
    torch.manual_seed(1)
    trained = with_history(ImageModel("resnet18", True, "sce", 16, groups=2).to(memory_format=layout))
    save(tmp_path / "weights", trained.train(), {}, VIEW)
    found = load(str(tmp_path / "weights"))
    assert not found.training
    assert list(found.state_dict()) == list(trained.state_dict())
    for name, value in found.state_dict().items():
        assert value.dtype == trained.state_dict()[name].dtype
        assert torch.equal(value, trained.state_dict()[name]), name
    assert all(parameter.requires_grad for parameter in found.parameters())
    torch.testing.assert_close(found(images(5)), trained.eval()(images(5)))
    found.train()(images(5))  # plain batch normalisation: 5 images are no multiple of 2 groups


def test_the_metadata_say_what_the_file_holds(written):
    with safetensors.safe_open(written, framework="pt") as file:
        metadata = file.metadata()
    assert json.loads(metadata["recipe"]) == {"epochs": 200, "temperature": 0.1, "layout": None}
    assert json.loads(metadata["architecture"]) == {
        "name": "resnet18", "small": True, "head": "sce", "projection": 16,
    }
    assert json.loads(metadata["view"]) == {
        "resize": 9, "size": 8, "square": False, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3],
    }


def test_the_view_there_and_back(written):
    assert load_view(written) == VIEW
    pixels = torch.randint(0, 256, (2, 3, 9, 18), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    first = (pixels[:, :, :8, 5:13] / 255 - torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1))
    expected = first / torch.tensor([0.2, 0.25, 0.3]).view(3, 1, 1)
    torch.testing.assert_close(load_view(written)(pixels), expected)


def test_a_square_view_there_and_back(tmp_path, model):
    square = dataclasses.replace(VIEW, square=True)
    save(tmp_path / "weights", model, {}, square)
    assert load_view(tmp_path / "weights") == square


def test_a_file_from_before_views_could_be_square_keeps_proportions(tmp_path):
    seen = {"size": 8, "resize": 9} | VIEW.normalisation._asdict()
    safetensors.torch.save_file({"weight": torch.zeros(2)}, tmp_path / "old", metadata={"view": json.dumps(seen)})
    assert load_view(tmp_path / "old") == VIEW


@pytest.mark.parametrize("view", [{}, {"size": 8, "resize": 4, "mean": [0, 0, 0], "std": [1, 1, 1]}, [3]], ids=str)
def test_a_view_that_cannot_be_made_is_an_error(tmp_path, view):
    path = tmp_path / "other.safetensors"
    safetensors.torch.save_file({"weight": torch.zeros(2)}, path, metadata={"view": json.dumps(view)})
    with pytest.raises(ValueError, match=r"other.safetensors describes a view that cannot be made .*export it again"):
        load_view(path)


@pytest.mark.parametrize("mask", [0o022, 0o027])
def test_a_file_has_the_permissions_of_any_new_one(tmp_path, model, mask):
    before = os.umask(mask)
    try:
        save(tmp_path / "weights", model, {}, VIEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "weights").stat().st_mode) == 0o666 & ~mask


def test_loading_draws_no_random_numbers(written):
    before = torch.get_rng_state()
    load(written)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_save_that_fails_leaves_the_old_file(written, model):
    before = written.read_bytes()
    with pytest.raises(TypeError, match="not JSON serializable"):
        save(written, model, {"when": object()}, VIEW)
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]


@pytest.mark.parametrize("name", ["absent.safetensors", "."])
def test_no_file_is_an_error_with_the_next_step(tmp_path, name):
    with pytest.raises(FileNotFoundError, match="is not a file; write one with `repro results weights KEY`"):
        load(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="is not a file"):
        load_view(tmp_path / name)


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: b"a text\n" * 50, lambda content: content[:-9]],
    ids=["empty", "text", "cut short"],
)
def test_a_file_in_another_format_or_cut_short_is_an_error(written, damage):
    written.write_bytes(damage(written.read_bytes()))
    with pytest.raises(ValueError, match=r"weights.safetensors is not a sound safetensors file .*export it again"):
        load(written)


@pytest.mark.parametrize(("change", "message"), [
    ({"mean": [0.5, 0.5]}, "."), ({"std": [0.2, 0.0, 0.2]}, "std above 0"), ({"mean": "abc"}, "."),
    ({"mean": [float("nan")] * 3}, "three finite numbers"), ({"std": [1.0]}, "."), ({"size": 8.5}, "whole numbers"),
    ({"resize": 7}, "resize=7 should be at least size=8"), ({"size": True}, "whole numbers"),
    ({"size": 0}, "at least 1"), ({"mean": [10**400] * 3}, "."), ({"mean": [[0.5] * 3] * 3}, "."),
    ({"square": 1}, "square=1 is not one of: True, False"),
])
def test_a_view_that_cannot_be_made_is_refused(tmp_path, change, message):
    path = tmp_path / "odd.safetensors"
    seen = {"size": 8, "resize": 9, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3]} | change
    safetensors.torch.save_file({"weight": torch.zeros(2)}, path, metadata={"view": json.dumps(seen)})
    with pytest.raises(ValueError, match=rf"odd\.safetensors describes a view that cannot be made \(.*({message})"):
        load_view(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"architecture": "resnet18"}])
def test_a_foreign_safetensors_file_is_an_error(tmp_path, metadata):
    path = tmp_path / "foreign.safetensors"
    safetensors.torch.save_file({"weight": torch.zeros(2)}, path, metadata=metadata)
    for read in (load, load_view):
        with pytest.raises(ValueError, match=r"foreign.safetensors does not say which model it holds"):
            read(path)


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        ({"name": "resnet34"}, "cannot be made .*resnet34.* is not one of"),
        ({"layers": 3}, "cannot be made .*layers"),
        ({"projection": -3}, "cannot be made"), ({"projection": "x"}, "cannot be made"),
        ({"projection": 10**9}, r"head.3.bias has the shape \(16,\) in the file and the shape \(1000000000,\)"),
        ({"projection": 2**70}, "cannot be made"),
        ({"projection": 8}, r"head.3.bias has the shape \(16,\) in the file and the shape \(8,\) in the model"),
        ({"head": "moco_v2"}, r"head.0.bias has no place in the file and the shape \(512,\) in the model"),
        ({"small": False}, r"trunk.conv1.weight has the shape \(64, 3, 3, 3\) in the file"),
    ],
)
def test_a_file_that_describes_another_model_is_an_error(model, tmp_path, architecture, message):
    other = copy.copy(model)
    other.architecture = model.architecture | architecture
    save(tmp_path / "other", other, {}, VIEW)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "other")


def test_a_file_with_weights_to_spare_is_an_error(written, model):
    with safetensors.safe_open(written, framework="pt") as file:
        metadata = file.metadata()
    weights = model.state_dict() | {"head.9.weight": torch.zeros(3)}
    safetensors.torch.save_file(weights, written, metadata=metadata)
    with pytest.raises(ValueError, match=r"head.9.weight has the shape \(3,\) in the file and no place in the model"):
        load(written)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["trunk.conv1.weight", "trunk.bn1.running_var", "head.3.bias"])
def test_weights_that_are_not_finite_are_an_error(written, name, value):
    with safetensors.safe_open(written, framework="pt") as file:
        metadata, weights = file.metadata(), {each: file.get_tensor(each) for each in file.keys()}  # noqa: SIM118
    weights[name].view(-1)[-1] = value
    safetensors.torch.save_file(weights, written, metadata=metadata)
    with pytest.raises(ValueError, match=rf"weights\.safetensors is damaged: {name} is not finite; export it again"):
        load(written)
