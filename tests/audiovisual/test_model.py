"""Trunks against torchvision's networks, convolutions against torch's, precision; the rest is held by slow pairs."""

import copy

import pytest
import torch
import torchvision
from torch import nn
from torchvision.models.video.resnet import Conv2Plus1D

from repro.audiovisual.model import CONVOLUTIONS, Encoder, Towers

SHAPES = {  # of small inputs, without the batch
    "r3d18": (3, 4, 48, 48),
    "r2plus1d18": (3, 4, 24, 24),
    "audio18": (80, 80),
    "small_video": (3, 8, 24, 24),
    "small_audio": (80, 32),
    "small_image": (1, 28, 56),
}


def inputs(trunk, count=4):
    return torch.randn(count, *SHAPES[trunk], generator=torch.Generator().manual_seed(0))


def encoder(trunk, width=32, **options):
    torch.manual_seed(0)
    return Encoder(trunk, width, **options)


def torchvisions(name):
    """Torchvision's network with the parts in which ours differs."""
    if name == "audio18":
        network = torchvision.models.resnet18()
        network.conv1 = nn.Conv2d(80, 64, 7, 2, 3, bias=False)
    elif name == "r3d18":
        network = torchvision.models.video.r3d_18()
        convolution = nn.Conv3d(3, 64, 7, (1, 2, 2), 3, bias=False)
        network.stem = nn.Sequential(convolution, nn.BatchNorm3d(64), nn.ReLU(), nn.MaxPool3d(3, 2, 1))
    else:
        network = torchvision.models.video.r2plus1d_18()
        for first, channels in ((network.layer2[0], 128), (network.layer3[0], 256), (network.layer4[0], 512)):
            first.conv2[0] = Conv2Plus1D(channels, channels, 27 * channels**2 // (12 * channels))
    network.fc = nn.Identity()
    return network


def in_the_middle_column(weights):
    """One-dimensional kernels as two-dimensional ones that do the same to pictures one pixel wide."""
    if weights.ndim != 3:
        return weights.clone()
    wide = weights.new_zeros(*weights.shape, weights.shape[2])
    wide[..., weights.shape[2] // 2] = weights
    return wide


@pytest.mark.parametrize("trunk", ["r3d18", "r2plus1d18", "audio18"])
def test_features_are_those_of_torchvisions_network(trunk):
    own, batch = encoder(trunk, 512), inputs(trunk, 3)
    sound = trunk == "audio18"  # whose bands are normalised first, which torchvision's network lacks
    with torch.device("meta"):
        expected = torchvisions(trunk)
    state = [in_the_middle_column(value) for value in own.layers.state_dict().values()][5 * sound:]
    expected.load_state_dict(dict(zip(expected.state_dict(), state, strict=True)), assign=True)
    for training in (True, False):
        own.train(training)
        expected.train(training)
        normalised = copy.deepcopy(own.layers[0][0])(batch)[..., None] if sound else batch
        torch.testing.assert_close(own(batch), expected(normalised), rtol=1e-3, atol=1e-3)
    for buffer, value in zip([*own.layers.buffers()][3 * sound:], expected.buffers(), strict=True):
        torch.testing.assert_close(buffer, value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("trunk", "width", "layer", "spread"), [
    ("r3d18", 64, "0.0", (2 / (8 * 343)) ** 0.5), ("small_image", 512, "0.0", (2 / (16 * 25)) ** 0.5),  # fan-out
    ("audio18", 512, "0.1", (2 / (7 * (80 + 64))) ** 0.5),                                              # Xavier
    ("audio18", 512, "4.0.shortcut.0", (2 / (256 + 512)) ** 0.5),
])
def test_convolutions_start_with_the_spread_they_should(trunk, width, layer, spread):
    weights = encoder(trunk, width).layers.get_submodule(layer).weight
    assert weights.std().item() == pytest.approx(spread, rel=0.1)
    assert weights.mean().item() == pytest.approx(0, abs=0.2 * spread)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_of_a_single_position_or_of_such_frames_are_torchs(axes, kernel, stride):
    torchs = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1](6, 8, kernel, stride, kernel // 2, bias=False)
    ours = CONVOLUTIONS[axes](6, 8, kernel, stride, kernel // 2, bias=False)
    ours.load_state_dict(torchs.state_dict())
    for sides in ([1] * axes, [2] * axes, [3] + [1] * (axes - 1)):
        maps = torch.randn(5, 6, *sides, generator=torch.Generator().manual_seed(0))
        made, expected = ours(maps), torchs(maps)
        torch.testing.assert_close(made, expected, rtol=1e-5, atol=1e-6)
        gradients = [torch.autograd.grad(values.square().sum(), layer.weight)[0]
                     for values, layer in ((made, ours), (expected, torchs))]
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("trunk", "width", "shape"), [
    ("small_image", 32, (1, 8, 8)), ("r3d18", 256, (3, 4, 8, 8)), ("r2plus1d18", 256, (3, 4, 8, 8)),
])
def test_bfloat16_gradients_of_small_inputs_are_finite_and_repeat_themselves(trunk, width, shape):
    """Their last convolutions see one position, or frames of one."""
    network, made = Encoder(trunk, width, channels=shape[0]), []
    pictures = torch.rand(16, *shape, generator=torch.Generator().manual_seed(0))
    for _ in range(5):
        unset = [torch.full((size,), float("nan")) for size in (1000, 73728)]  # memory that is used again
        del unset
        network.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            features = network(pictures)
        features.float().square().sum().backward()
        made.append(torch.cat([parameter.grad.flatten() for parameter in network.parameters()]))
    assert made[0].isfinite().all() and all(torch.equal(gradients, made[0]) for gradients in made)


def towers(extra_layer=True):
    torch.manual_seed(0)
    video, audio = Encoder("small_video", 32), Encoder("small_audio", 32, channels=6)
    return Towers(video, audio, embedding=5, extra_layer=extra_layer)


@pytest.mark.parametrize("extra_layer", [True, False])
def test_the_last_layer_is_exact_under_autocast(extra_layer):
    model = towers(extra_layer)
    for modality, shape in (("video", (4, 3, 4, 8, 8)), ("audio", (4, 6, 16))):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            embedding, hidden = model(modality, torch.randn(shape))
        assert embedding.dtype == hidden.dtype == torch.float32
        assert not extra_layer or torch.equal(embedding, model.heads[modality](hidden))
    assert towers().double()("audio", torch.randn(shape, dtype=torch.float64))[0].dtype == torch.float64
