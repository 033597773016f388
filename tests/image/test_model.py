"""Trunks against torchvision's own networks, heads and embeddings by their equations, weights files there and back."""

import copy
import json

import pytest
import safetensors
import safetensors.torch
import torch
import torchvision
from states import assert_equal_states
from torch import nn

from repro.image.augment import CentredView
from repro.image.model import (
    HEADS,
    TRUNKS,
    ImageModel,
    described_view,
    load_view,
    projection_head,
    trunk,
)
from repro.image.operations import Normalisation
from repro.run import weights

VIEW = CentredView(8, Normalisation((0.5, 0.4, 0.3), (0.2, 0.25, 0.3)), 9)


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


# ---------------------------------------------------------------------------------------------- networks


def torchvisions(name, small):
    """torchvision's network with the parts SCE's supplement changes."""
    network = getattr(torchvision.models, name)()
    if small:
        network.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        network.maxpool = nn.Identity()
    network.fc = nn.Identity()
    return network


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("name", "small"), [("resnet18", True), ("resnet18", False), ("resnet50", True)])
def test_features_are_those_of_torchvisions_network(name, small, training):
    torch.manual_seed(0)
    own, expected = trunk(name, small).double().train(training), torchvisions(name, small).double().train(training)
    expected.load_state_dict(own.state_dict())
    batch = images(2, 32 if not small else 8).double()
    features = own(batch)
    assert features.shape == (2, TRUNKS[name])
    torch.testing.assert_close(features, expected(batch))
    for statistic, other in zip(own.buffers(), expected.buffers(), strict=True):
        torch.testing.assert_close(statistic, other)


def test_the_projector_of_sce_by_its_equation():
    torch.manual_seed(0)
    head, features = projection_head("sce", 6, 4).double(), torch.randn(10, 6, dtype=torch.float64)
    hidden = features @ head[0].weight.T
    hidden = ((hidden - hidden.mean(0)) / (hidden.var(0, correction=0) + 1e-5).sqrt()).clamp(min=0)
    torch.testing.assert_close(head(features), hidden @ head[3].weight.T + head[3].bias)


@pytest.mark.parametrize("head", HEADS)
def test_embeddings_are_the_heads_directions(head):
    model = ImageModel("resnet18", True, head, 16).eval()
    features = model.features(images())
    assert features.shape == (6, 512)
    projections = model.head(features)
    torch.testing.assert_close(model(images()), projections / projections.norm(dim=1, keepdim=True))
    torch.testing.assert_close(model(images()), model.embed(features))


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


# ---------------------------------------------------------------------------------------------- weights in files


@pytest.fixture
def written(model, tmp_path):
    path = tmp_path / "folder" / "weights.safetensors"
    weights.save(path, model, {"epochs": 200, "temperature": 0.1, "layout": None}, described_view(VIEW))
    return path


def load(path):
    return weights.load(path, ImageModel)


def rewritten(path, tensors=None, **metadata):
    """Write the file again with other weights, or other texts in its metadata."""
    with safetensors.safe_open(path, framework="pt") as file:
        before, kept = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    texts = before | {name: json.dumps(json.loads(before[name]) | value) for name, value in metadata.items()}
    safetensors.torch.save_file(kept | (tensors or {}), path, metadata=texts)


def test_weights_there_and_back(tmp_path):
    torch.manual_seed(1)
    trained = with_history(ImageModel("resnet18", True, "sce", 16, groups=2).to(memory_format=torch.channels_last))
    weights.save(tmp_path / "weights", trained.train(), {}, {})
    before = torch.get_rng_state()
    loaded = load(str(tmp_path / "weights"))
    assert torch.equal(torch.get_rng_state(), before) and not loaded.training
    assert_equal_states(loaded.state_dict(), trained.state_dict())
    torch.testing.assert_close(loaded(images(5)), trained.eval()(images(5)))
    loaded.train()(images(5))  # plain batch normalisation: 5 images are no multiple of 2 groups


def test_the_view_and_what_the_file_says_of_itself(written):
    assert load_view(written) == VIEW
    with safetensors.safe_open(written, framework="pt") as file:
        metadata = {name: json.loads(text) for name, text in file.metadata().items()}
    assert metadata["recipe"] == {"epochs": 200, "temperature": 0.1, "layout": None}
    assert metadata["architecture"] == {"name": "resnet18", "small": True, "head": "sce", "projection": 16}
    rewritten(written, view={"square": True})
    assert load_view(written) == CentredView(8, VIEW.normalisation, 9, square=True)
    seen = {"size": 8, "resize": 9} | VIEW.normalisation._asdict()  # from before views could be square
    safetensors.torch.save_file({"weight": torch.zeros(2)}, written, metadata={"view": json.dumps(seen)})
    assert load_view(written) == VIEW


def test_a_save_that_fails_leaves_the_old_file(written, model):
    before = written.read_bytes()
    with pytest.raises(TypeError, match="not JSON serializable"):
        weights.save(written, model, {"when": object()}, {})
    assert written.read_bytes() == before and list(written.parent.iterdir()) == [written]


@pytest.mark.parametrize("read", [load, load_view])
def test_no_file_and_a_file_in_another_format_are_errors_with_the_next_step(tmp_path, written, read):
    with pytest.raises(FileNotFoundError, match="is not a file; write one with `repro results weights KEY`"):
        read(tmp_path / "absent.safetensors")
    for damaged in (b"", b"a text\n" * 50, written.read_bytes()[:-9]):
        written.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"weights.safetensors is no sound safetensors file .*export it again"):
            read(written)
    safetensors.torch.save_file({"weight": torch.zeros(2)}, written)
    message = r"weights\.safetensors lacks architecture, recipe, view in its metadata, .* it comes from elsewhere"
    with pytest.raises(ValueError, match=message):
        read(written)


@pytest.mark.parametrize(("change", "message"), [
    ({"mean": [0.5, 0.5]}, "three finite"), ({"std": [0.2, 0.0, 0.2]}, "std above 0"), ({"mean": "abc"}, "."),
    ({"mean": [float("nan")] * 3}, "three finite numbers"), ({"size": 8.5}, "whole numbers"), ({"square": 1}, "false"),
    ({"resize": 7}, "size=8, resize=7 should be"), ({"size": 0}, "size=0"), ({"mean": [10**400] * 3}, "."),
])
def test_a_view_that_cannot_be_made_is_refused(written, change, message):
    rewritten(written, view=change)
    with pytest.raises(ValueError, match=rf"weights\.safetensors describes a view that cannot be made .*({message})"):
        load_view(written)


@pytest.mark.parametrize(("values", "architecture", "message"), [
    ({}, {"name": "resnet34"}, "resnet34"), ({}, {"layers": 3}, "layers"), ({}, {"projection": -3}, "."),
    ({}, {"projection": 2**70}, "."), ({}, {"projection": 8}, "head.3.bias"), ({}, {"head": "moco_v2"}, "head.0.bias"),
    ({}, {"small": False}, "trunk.conv1.weight"), ({"head.9.weight": 0.0}, {}, "head.9.weight"),
    ({"head.3.bias": float("nan")}, {}, "head.3.bias is not finite"),
])
def test_a_file_that_describes_another_model_is_refused(written, values, architecture, message):
    tensors = {name: torch.full((16,), value) for name, value in values.items()}
    rewritten(written, tensors, architecture=architecture)
    with pytest.raises(ValueError, match=rf"does not hold the model it describes (?s:.*){message}(?s:.*)export it"):
        load(written)
