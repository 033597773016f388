"""Trunks against torchvision's own networks, heads and embeddings by their equations, weights files there and back."""

import copy
import dataclasses
import json

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


def rewritten(path, weights=None, **metadata):
    """Write the file again with other weights, or other texts in its metadata."""
    with safetensors.safe_open(path, framework="pt") as file:
        before, kept = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    texts = before | {name: json.dumps(json.loads(before[name]) | value) for name, value in metadata.items()}
    safetensors.torch.save_file(kept | (weights or {}), path, metadata=texts)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_weights_there_and_back(tmp_path, layout):
    torch.manual_seed(1)
    trained = with_history(ImageModel("resnet18", True, "sce", 16, groups=2).to(memory_format=layout))
    save(tmp_path / "weights", trained.train(), {}, VIEW)
    before = torch.get_rng_state()
    found = load(str(tmp_path / "weights"))
    assert torch.equal(torch.get_rng_state(), before) and not found.training
    assert list(found.state_dict()) == list(trained.state_dict())
    for name, value in found.state_dict().items():
        assert value.dtype == trained.state_dict()[name].dtype
        assert torch.equal(value, trained.state_dict()[name]), name
    assert all(parameter.requires_grad for parameter in found.parameters())
    torch.testing.assert_close(found(images(5)), trained.eval()(images(5)))
    found.train()(images(5))  # plain batch normalisation: 5 images are no multiple of 2 groups


def test_the_metadata_say_what_the_file_holds(written):
    with safetensors.safe_open(written, framework="pt") as file:
        metadata = {name: json.loads(text) for name, text in file.metadata().items()}
    assert metadata == {
        "recipe": {"epochs": 200, "temperature": 0.1, "layout": None},
        "architecture": {"name": "resnet18", "small": True, "head": "sce", "projection": 16},
        "view": {"resize": 9, "size": 8, "square": False, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3]},
    }


@pytest.mark.parametrize("square", [False, True])
def test_the_view_there_and_back(tmp_path, model, square):
    view = dataclasses.replace(VIEW, square=square)
    save(tmp_path / "weights", model, {}, view)
    assert load_view(tmp_path / "weights") == view


def test_a_file_from_before_views_could_be_square_keeps_proportions(tmp_path):
    seen = {"size": 8, "resize": 9} | VIEW.normalisation._asdict()
    safetensors.torch.save_file({"weight": torch.zeros(2)}, tmp_path / "old", metadata={"view": json.dumps(seen)})
    assert load_view(tmp_path / "old") == VIEW


def test_a_save_that_fails_leaves_the_old_file(written, model):
    before = written.read_bytes()
    with pytest.raises(TypeError, match="not JSON serializable"):
        save(written, model, {"when": object()}, VIEW)
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]


@pytest.mark.parametrize("read", [load, load_view])
def test_no_file_and_a_file_in_another_format_are_errors_with_the_next_step(tmp_path, written, read):
    with pytest.raises(FileNotFoundError, match="is not a file; write one with `repro results weights KEY`"):
        read(tmp_path / "absent.safetensors")
    for damaged in (b"", b"a text\n" * 50, written.read_bytes()[:-9]):
        written.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"weights.safetensors is no sound safetensors file .*export it again"):
            read(written)
    safetensors.torch.save_file({"weight": torch.zeros(2)}, written)
    with pytest.raises(ValueError, match=r"with '.*' in its metadata"):
        read(written)


@pytest.mark.parametrize(("change", "message"), [
    ({"mean": [0.5, 0.5]}, "three finite"), ({"std": [0.2, 0.0, 0.2]}, "std above 0"), ({"mean": "abc"}, "."),
    ({"mean": [float("nan")] * 3}, "three finite numbers"), ({"size": 8.5}, "whole numbers"), ({"square": 1}, "false"),
    ({"resize": 7}, "resize=7 should be at least size=8"), ({"size": 0}, "at least 1"), ({"mean": [10**400] * 3}, "."),
])
def test_a_view_that_cannot_be_made_is_refused(written, change, message):
    rewritten(written, view=change)
    with pytest.raises(ValueError, match=rf"weights\.safetensors describes a view that cannot be made .*({message})"):
        load_view(written)


@pytest.mark.parametrize(("architecture", "message"), [
    ({"name": "resnet34"}, "resnet34"), ({"layers": 3}, "layers"), ({"projection": -3}, "."),
    ({"projection": 2**70}, "."), ({"projection": 8}, "head.3.bias"), ({"head": "moco_v2"}, "head.0.bias"),
    ({"small": False}, "trunk.conv1.weight"),
])
def test_a_file_that_describes_another_model_is_an_error(written, architecture, message):
    rewritten(written, architecture=architecture)
    with pytest.raises(ValueError, match=rf"does not hold the model it describes (?s:.*){message}"):
        load(written)


@pytest.mark.parametrize(("name", "message"), [
    ("head.9.weight", "does not hold the model it describes (?s:.*)head.9.weight"),
    ("head.3.bias", "is damaged: head.3.bias is not finite; export it again"),
])
def test_weights_to_spare_or_not_finite_are_an_error(written, name, message):
    rewritten(written, {name: torch.full((16,), float("nan"))})
    with pytest.raises(ValueError, match=message):
        load(written)
