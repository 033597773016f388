"""Encoders against torchvision's networks and counts by hand; towers and crossed momentum against plain loops."""

import copy

import pytest
import torch
import torchvision
from torch import nn
from torchvision.models.video.resnet import Conv2Plus1D

from repro.audiovisual import MODALITIES
from repro.audiovisual.model import CONVOLUTIONS, TRUNKS, Encoder, Towers, crossed
from repro.contrast.momentum import MomentumEncoder, encode_shuffled

SHAPES = {  # of small inputs, without the batch
    "r3d18": (3, 4, 48, 48),
    "r2plus1d18": (3, 4, 24, 24),
    "audio18": (80, 80),
    "small_video": (3, 8, 24, 24),
    "small_audio": (80, 32),
    "small_image": (1, 28, 56),
}
VOLUMES = [name for name, trunk in TRUNKS.items() if len(trunk.axes) == 3]


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def inputs(trunk, count=4, **options):
    return torch.randn(count, *SHAPES[trunk], generator=torch.Generator().manual_seed(0), **options)


def encoder(trunk, width=32, **options):
    torch.manual_seed(0)
    return Encoder(trunk, width, **options)


def towers(extra_layer=True, seed=0):
    torch.manual_seed(seed)
    video, audio = Encoder("small_video", 32), Encoder("small_audio", 32, channels=6)
    return Towers(video, audio, embedding=5, extra_layer=extra_layer)


def batches(count=4, **options):
    generator = torch.Generator().manual_seed(1)
    clips = torch.randn(count, 3, 4, 8, 8, generator=generator, **options)
    return {"video": clips, "audio": torch.randn(count, 6, 16, generator=generator, **options)}


def with_history(module, *batches):
    """The module after batches in training mode, so that running statistics are no longer 0 and 1; evaluating."""
    for batch in batches:
        module(*batch)
    return module.eval()


# The layers of a ResNet-18 and their parameters, counted by hand: for every stage inputs, outputs, and whether the
# first block's shortcut is convolved.
STAGES = [(64, 64, False), (64, 128, True), (128, 256, True), (256, 512, True)]


def by_hand(stem, kernel):
    """Parameters of a ResNet-18 whose wide convolution of a to b channels has kernel(a, b) of them, normalisation of
    channels in its middle included."""
    count = stem
    for before, after, convolved in STAGES:
        count += kernel(before, after) + 3 * kernel(after, after) + 4 * 2 * after
        count += (before * after + 2 * after) * convolved
    return count


def in_space_and_time(before, after, middle=None):
    middle = middle or int(27 * before * after / (9 * before + 3 * after))
    return 9 * before * middle + 2 * middle + 3 * middle * after


R2PLUS1D_STEM = 3 * 49 * 45 + 2 * 45 + 45 * 3 * 64 + 2 * 64


@pytest.mark.parametrize(
    ("trunk", "width", "count"),
    [
        ("r3d18", 512, by_hand(3 * 7**3 * 64 + 2 * 64, lambda before, after: 27 * before * after)),
        ("r2plus1d18", 512, by_hand(R2PLUS1D_STEM, in_space_and_time)),
        ("audio18", 512, by_hand(2 * 80 + 80 * 7 * 64 + 2 * 64, lambda before, after: 3 * before * after)),
        ("small_video", 128, 75 * 8 + 27 * (8 * 16 + 16 * 32 + 32 * 128) + 2 * (8 + 16 + 32 + 128)),
        ("small_audio", 128, 160 + 80 * 5 * 32 + 3 * (32 * 64 + 64 * 64 + 64 * 128) + 2 * (32 + 64 + 64 + 128)),
        (
            "small_image",
            512,
            25 * 16 + 9 * (16 * 32 + 32 * 64 + 64 * 128) + 2 * (16 + 32 + 64 + 128) + 9 * 128 * 512 + 2 * 512,
        ),
    ],
)
def test_parameter_counts_by_hand(trunk, width, count):
    with torch.device("meta"):
        assert parameters(Encoder(trunk, width)) == count


def test_the_published_parameter_counts():
    with torch.device("meta"):
        video, factorised = (parameters(Encoder(trunk, 512)) for trunk in ("r3d18", "r2plus1d18"))
        torchvisions = parameters(torchvision.models.video.r2plus1d_18()) - 513 * 400
    assert video == 33_203_904  # 33.20 million
    assert factorised == pytest.approx(video, rel=0.002)  # the middle channels are chosen so that they agree
    assert torchvisions == 31_300_125
    # Where a stage begins, the middle of torchvision's second convolution has the channels of the first one's.
    middles = {128: 230, 256: 460, 512: 921}
    fewer = [in_space_and_time(after, after) - in_space_and_time(after, after, middles[after]) for after in middles]
    assert factorised - torchvisions == sum(fewer)


@pytest.mark.parametrize(
    ("trunk", "shape", "expected"),
    [  # channels and lengths of the axes after the stem and every stage
        ("r3d18", (16, 112, 112), [(8, 28, 28), (8, 28, 28), (4, 14, 14), (2, 7, 7), (1, 4, 4)]),
        ("r3d18", (16, 224, 224), [(8, 56, 56), (8, 56, 56), (4, 28, 28), (2, 14, 14), (1, 7, 7)]),
        ("r3d18", (32, 224, 224), [(16, 56, 56), (16, 56, 56), (8, 28, 28), (4, 14, 14), (2, 7, 7)]),
        ("r2plus1d18", (16, 112, 112), [(16, 56, 56), (16, 56, 56), (8, 28, 28), (4, 14, 14), (2, 7, 7)]),
        ("audio18", (48,), [(12,), (12,), (6,), (3,), (2,)]),
        ("audio18", (16,), [(4,), (4,), (2,), (1,), (1,)]),
        ("small_video", (8, 24, 24), [(8, 12, 12), (4, 6, 6), (2, 3, 3), (1, 2, 2)]),
        ("small_image", (96, 96), [(48, 48), (24, 24), (12, 12), (6, 6), (3, 3)]),
    ],
)
def test_shapes_of_the_maps(trunk, shape, expected):
    with torch.device("meta"):
        network, found = Encoder(trunk, 512).eval(), []
        stages = network.layers[1:] if trunk == "small_video" else network.layers  # what moves is seen first
        for part in stages[: len(expected)]:
            part.register_forward_hook(lambda *call: found.append(tuple(call[-1].shape[2:])))
        if trunk == "audio18":  # its stem begins with the normalisation of the bands
            network.layers[0][0].register_forward_hook(lambda *call: found.clear())
        features = network.features(torch.empty(2, TRUNKS[trunk].channels, *shape))
    assert found == expected
    assert features.shape == (2, 512)


def test_a_clip_of_the_released_size():
    clip = torch.randn(1, 3, 16, 112, 112)
    features = encoder("r3d18").eval().features(clip)
    assert features.shape == (1, 32)
    assert features.isfinite().all()


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
        return weights
    size = weights.shape[2]
    wide = weights.new_zeros(*weights.shape, size)
    wide[..., size // 2] = weights
    return wide


@pytest.mark.parametrize("trunk", ["r3d18", "r2plus1d18", "audio18"])
def test_features_are_those_of_torchvisions_network(trunk):
    own, batch = encoder(trunk, 512), inputs(trunk, 3)
    skipped = 5 if trunk == "audio18" else 0  # the normalisation of the bands, which torchvision's network lacks
    with torch.device("meta"):
        expected = torchvisions(trunk)
    state = [in_the_middle_column(value.clone()) for value in own.layers.state_dict().values()][skipped:]
    expected.load_state_dict(dict(zip(expected.state_dict(), state, strict=True)), assign=True)
    for training in (True, False):
        own.train(training)
        expected.train(training)
        normalised = copy.deepcopy(own.layers[0][0])(batch)[..., None] if skipped else batch
        torch.testing.assert_close(own.features(batch), expected(normalised), rtol=1e-3, atol=1e-3)
    buffers = zip([*own.layers.buffers()][3 if skipped else 0:], expected.buffers(), strict=True)
    for own_value, value in buffers:
        torch.testing.assert_close(own_value, value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("trunk", "width", "fan"), [("r3d18", 64, 8 * 343), ("small_image", 512, 16 * 25)])
def test_convolutions_start_with_the_spread_of_their_fan_out(trunk, width, fan):
    weights = encoder(trunk, width).layers[0][0].weight
    assert weights.std().item() == pytest.approx((2 / fan) ** 0.5, rel=0.1)
    assert weights.mean().item() == pytest.approx(0, abs=0.2 * (2 / fan) ** 0.5)


def test_the_audio_network_starts_with_the_spread_of_xavier():
    network = encoder("audio18", 512).layers
    assert network[0][1].weight.std().item() == pytest.approx((2 / (7 * (80 + 64))) ** 0.5, rel=0.02)
    assert network[4][0].shortcut[0].weight.std().item() == pytest.approx((2 / (256 + 512)) ** 0.5, rel=0.02)


@pytest.mark.parametrize("trunk", TRUNKS)
def test_equal_seeds_start_equal_and_others_do_not(trunk):
    one, same = encoder(trunk).state_dict(), encoder(trunk).state_dict()
    torch.manual_seed(1)
    other = Encoder(trunk, 32).state_dict()
    for name, value in one.items():
        assert torch.equal(value, same[name]), name
        assert value.ndim < 2 or not torch.equal(value, other[name]), name


@pytest.mark.parametrize("trunk", TRUNKS)
def test_one_item_has_the_features_it_has_in_a_batch(trunk):
    batch = inputs(trunk, 5, dtype=torch.float64)
    network = with_history(encoder(trunk).double(), [batch + 1])
    alone = network.features(batch[3:4])
    assert alone.shape == (1, 32)
    torch.testing.assert_close(alone, network.features(batch)[3:4])
    assert torch.equal(network(batch), network.features(batch))
    assert network.features(batch[:0]).shape == (0, 32)


def test_the_small_encoder_of_video_sees_what_moves_alone():
    """A scene that stands still adds nothing, whatever it is; what moves counts wherever it is in time."""
    network = encoder("small_video").double().eval()
    clip, scene = torch.randn(2, 3, 8, 24, 24, dtype=torch.float64), torch.randn(2, 3, 1, 24, 24, dtype=torch.float64)
    torch.testing.assert_close(network.features(clip + 5 * scene), network.features(clip))
    assert not torch.allclose(network.features(clip.flip(2)), network.features(clip))


@pytest.mark.parametrize(
    ("trunk", "shape"),
    [
        ("r3d18", (3, 1, 8, 8)),
        ("r2plus1d18", (3, 1, 1, 1)),
        ("audio18", (80, 1)),
        ("small_video", (3, 1, 24, 24)),
        ("small_audio", (80, 1)),
        ("small_image", (1, 1, 1)),
        ("small_image", (1, 31, 93)),
    ],
)
def test_one_frame_and_odd_lengths(trunk, shape):
    features = encoder(trunk).eval().features(torch.randn(2, *shape))
    assert features.shape == (2, 32)
    assert features.isfinite().all()


@pytest.mark.parametrize("trunk", TRUNKS)
def test_item_i_trains_in_group_i_mod_groups(trunk):
    batch = inputs(trunk, 6, dtype=torch.float64)
    ghost, plain = encoder(trunk, groups=2).double(), encoder(trunk).double()
    apart, running = torch.empty(len(batch), 32, dtype=torch.float64), []
    for group in range(2):
        alone = copy.deepcopy(plain)
        apart[group::2] = alone.features(batch[group::2])
        running.append(torch.cat([value for name, value in alone.named_buffers() if "running" in name]))
    found = ghost.features(batch)
    torch.testing.assert_close(found, apart)
    statistics = torch.cat([value for name, value in ghost.named_buffers() if "running" in name])
    torch.testing.assert_close(statistics, torch.stack(running).mean(0))
    assert not torch.allclose(plain.features(batch), found)


@pytest.mark.parametrize("trunk", TRUNKS)
def test_bfloat16_autocast_gives_close_features(trunk):
    network, batch = with_history(encoder(trunk), [inputs(trunk, 8) + 1]), inputs(trunk)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = network.features(batch)
    expected = network.features(batch)
    assert nn.functional.cosine_similarity(found.float(), expected).min() > 0.99
    torch.testing.assert_close(found.float().norm(dim=1), expected.norm(dim=1), rtol=0.05, atol=0)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("trunk", [*VOLUMES, "small_image"])
def test_channels_last_gives_the_same_features_and_normalisation_keeps_it(trunk, groups):
    layout = torch.channels_last_3d if trunk in VOLUMES else torch.channels_last
    network, batch, kept = encoder(trunk, groups=groups), inputs(trunk, 8), []
    last = copy.deepcopy(network).to(memory_format=layout)

    def compare(part, inputs, output):  # torch itself leaves the layout in some convolutions
        if inputs[0].is_contiguous(memory_format=layout):
            kept.append(output.is_contiguous(memory_format=layout))

    for part in last.modules():
        if isinstance(part, (nn.BatchNorm2d, nn.BatchNorm3d)):
            part.register_forward_hook(compare)
    found = last.features(batch.contiguous(memory_format=layout))
    torch.testing.assert_close(found, network.features(batch), rtol=1e-3, atol=1e-3)
    assert len(kept) >= 4
    assert all(kept)


def test_pictures_keep_where_things_are():
    network = with_history(encoder("small_image", 64).double(), [inputs("small_image", 8, dtype=torch.float64)])
    left = torch.zeros(1, 1, 28, 56, dtype=torch.float64)
    left[..., 8:20, 8:20] = 1
    right = left.roll(28, dims=3)
    assert not torch.allclose(network.features(left), network.features(right), rtol=0.1)


@pytest.mark.parametrize(
    ("trunk", "shape", "width", "limit"),
    [
        ("small_video", (3, 8, 24, 24), 128, 2e6),
        ("small_audio", (32, 64), 128, 0.5e6),
        ("small_image", (1, 96, 96), 512, 9 * 1.1e6),
    ],
)
def test_the_small_encoders_are_small(trunk, shape, width, limit):
    multiplications = []

    def count(part, _, output):
        multiplications.append(output.numel() * part.weight[0].numel())

    with torch.device("meta"):
        network = Encoder(trunk, width, channels=shape[0]).eval()
        for part in network.modules():
            if getattr(part, "weight", None) is not None and part.weight.ndim > 1:
                part.register_forward_hook(count)
        network.features(torch.empty(1, *shape))
    assert 0.8 * limit < sum(multiplications) < limit


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trunk": "r3d34"}, "trunk='r3d34' is not one of: r3d18, r2plus1d18, .*; did you mean 'r3d18'"),
        ({"width": 500}, "width=500 should be a multiple of 32"),
        ({"width": 0}, "width=0 should be a multiple of 32"),
        ({"channels": 0}, "channels=0 should be at least 1"),
        ({"groups": 0}, "groups=0 should be at least 1"),
    ],
)
def test_encoders_that_do_not_exist(change, message):
    with torch.device("meta"), pytest.raises(ValueError, match=message):
        Encoder(**({"trunk": "small_audio", "width": 32} | change))


@pytest.mark.parametrize(
    ("trunk", "shape", "expected"),
    [
        ("r3d18", (2, 1, 4, 8, 8), r"\(N, 3, F, H, W\)"),
        ("r3d18", (2, 3, 8, 8), r"\(N, 3, F, H, W\)"),
        ("r3d18", (2, 3, 0, 8, 8), r"\(N, 3, F, H, W\)"),
        ("audio18", (2, 24, 80), r"\(N, 80, T\)"),
        ("audio18", (2, 80), r"\(N, 80, T\)"),
        ("small_image", (2, 3, 28, 28), r"\(N, 1, H, W\)"),
        ("small_image", (0,), r"\(N, 1, H, W\)"),
    ],
)
def test_inputs_of_another_shape_raise(trunk, shape, expected):
    network = encoder(trunk)
    found = str(shape).replace("(", r"\(").replace(")", r"\)")
    message = f"inputs of trunk='{trunk}' have shape {found}; it should be {expected} with no empty axis but N"
    with pytest.raises(ValueError, match=message):
        network(torch.zeros(shape))


def test_integer_inputs_raise():
    with pytest.raises(TypeError, match=r"inputs have the type torch.uint8; convert them to float32"):
        encoder("small_video")(torch.zeros(2, 3, 4, 8, 8, dtype=torch.uint8))


def test_a_training_batch_that_the_groups_do_not_divide_raises():
    network = encoder("small_video", groups=4)
    with pytest.raises(ValueError, match=r"6 samples .* a multiple of groups=4"):
        network(inputs("small_video", 6))
    assert network.eval()(inputs("small_video", 6)).shape == (6, 32)


def test_embeddings_are_the_last_layers_of_the_features():
    model = towers()
    for modality, batch in batches().items():
        embedding, features = model.eval()(modality, batch)
        assert embedding.shape == (4, 5)
        assert torch.equal(features, model.trunks[modality].features(batch))
        head = model.heads[modality]
        for item, row in enumerate(features):
            for place in range(5):
                expected = sum(head.weight[place, unit] * row[unit] for unit in range(32)) + head.bias[place]
                torch.testing.assert_close(embedding[item, place], expected, rtol=1e-4, atol=1e-5)


def test_without_the_extra_layer_the_features_are_the_embeddings():
    model = towers(extra_layer=False)
    assert parameters(model.heads) == 0
    for modality, batch in batches().items():
        embedding, features = model(modality, batch)
        assert embedding is features
        assert embedding.shape == (4, 32)


@pytest.mark.parametrize("extra_layer", [True, False])
def test_the_last_layer_is_exact_under_autocast(extra_layer):
    model = towers(extra_layer)
    for modality, batch in batches().items():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            embedding, features = model(modality, batch)
        assert embedding.dtype == features.dtype == torch.float32
        assert torch.equal(embedding, model.heads[modality](features))
    assert towers().double()("audio", batches(dtype=torch.float64)["audio"])[0].dtype == torch.float64


@pytest.mark.parametrize("modality", ["sound", "Video", 0])
def test_another_modality_raises(modality):
    with pytest.raises(ValueError, match=f"modality={modality!r} is not one of: video, audio"):
        towers()(modality, batches()["video"])


def test_encoders_of_unlike_widths():
    video, audio = encoder("small_video", 32), encoder("small_audio", 64)
    with pytest.raises(ValueError, match=r"widths 32 and 64, but without the extra layer .* are compared"):
        Towers(video, audio, extra_layer=False)
    model = Towers(video, audio, embedding=5)
    assert model("audio", inputs("small_audio"))[0].shape == model("video", inputs("small_video"))[0].shape == (4, 5)
    with pytest.raises(ValueError, match="widths 32 and 64, but each takes the extra layer of the other"):
        crossed(model)


def other(modality):
    return MODALITIES[1 - MODALITIES.index(modality)]


def followed(name):
    """The query parameter that the key parameter of this name follows."""
    part, modality, rest = name.split(".", 2)
    return ".".join([part, other(modality) if part == "heads" else modality, rest])


def test_crossing_shares_all_parameters_and_exchanges_the_last_layers():
    model = towers()
    exchanged = crossed(model)
    for modality in MODALITIES:
        assert exchanged.trunks[modality] is model.trunks[modality]
        assert exchanged.heads[modality] is model.heads[other(modality)]
    assert list(exchanged.state_dict()) == list(model.state_dict())
    assert crossed(exchanged).state_dict().keys() == model.state_dict().keys()
    for modality, batch in batches().items():
        embedding, features = crossed(exchanged).eval()(modality, batch)
        assert torch.equal(embedding, model(modality, batch)[0])
        assert torch.equal(exchanged(modality, batch)[0], model.heads[other(modality)](features))


def test_the_first_keys_are_made_by_the_last_layer_of_the_other_query_encoder():
    model = with_history(towers(), *({"video": batches(8)["video"]} | batches(8)).items())
    keys = MomentumEncoder(crossed(model), 0.9)
    for modality, batch in batches().items():
        features = model.trunks[modality].features(batch)
        key, own_features = keys(modality, batch)
        assert torch.equal(own_features, features)
        assert torch.equal(key, model.heads[other(modality)](features))
        assert not torch.allclose(key, model(modality, batch)[0])
    for name, value in keys.twin.named_parameters():
        learned = model.get_parameter(followed(name))
        assert torch.equal(value, learned)
        assert value.data_ptr() != learned.data_ptr()


@pytest.mark.parametrize("extra_layer", [True, False])
@pytest.mark.parametrize("momentum", [0.0, 0.9, 1.0])
def test_crossed_momentum_by_a_loop(momentum, extra_layer):
    model = towers(extra_layer).double()
    keys = MomentumEncoder(crossed(model), momentum)
    expected = {name: model.get_parameter(followed(name)).detach().clone() for name, _ in model.named_parameters()}
    for step in range(3):
        torch.manual_seed(step)
        for parameter in model.parameters():  # the optimiser's step
            nn.init.normal_(parameter)
        keys.update(crossed(model))
        for name, value in expected.items():
            expected[name] = momentum * value + (1 - momentum) * model.get_parameter(followed(name)).detach()
    found = dict(keys.twin.named_parameters())
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, msg=name)
    assert ("heads.video.weight" in found) == extra_layer


def test_without_crossing_the_momentum_encoder_is_the_plain_one():
    model = towers()
    keys = MomentumEncoder(model, 0.9)
    for name, value in keys.twin.named_parameters():
        assert torch.equal(value, model.get_parameter(name))


def test_crossed_keys_there_and_back():
    model, learned = towers(), towers(seed=1)
    keys = MomentumEncoder(crossed(model), 0.5)
    keys.update(crossed(learned))
    state = copy.deepcopy({"model": learned.state_dict(), "keys": keys.state_dict()})
    restored = towers(seed=2)
    restored_keys = MomentumEncoder(crossed(restored), 0.5)
    restored.load_state_dict(state["model"])
    restored_keys.load_state_dict(state["keys"])
    for _ in range(2):
        keys.update(crossed(learned))
        restored_keys.update(crossed(restored))
    for name, value in keys.state_dict().items():
        assert torch.equal(restored_keys.state_dict()[name], value), name


def test_crossing_survives_a_move():
    model = towers()
    exchanged = crossed(model)
    model.double()
    model.load_state_dict({name: torch.ones_like(value) for name, value in model.state_dict().items()}, assign=True)
    for name, parameter in exchanged.named_parameters():
        assert parameter.dtype == torch.float64
        assert parameter is model.get_parameter(followed(name))
    model.to("meta")
    assert all(parameter.is_meta for parameter in exchanged.parameters())


def test_gradients_reach_only_the_query_encoder():
    model = towers()
    keys = MomentumEncoder(crossed(model), 0.9)
    pair = batches()
    query, features = model("video", pair["video"])
    key, key_features = keys("audio", pair["audio"])
    assert not key.requires_grad
    assert not key_features.requires_grad
    assert features.requires_grad
    (query * key).sum().backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == (name.split(".")[1] == "video"), name
    assert all(parameter.grad is None for parameter in keys.parameters())


def test_shuffled_keys_of_towers():
    torch.manual_seed(0)
    encoders = Encoder("small_video", 32, groups=2), Encoder("small_audio", 32, channels=6, groups=2)
    keys, clips = MomentumEncoder(crossed(Towers(*encoders, 5)), 0.9), batches(8)["video"]
    found = encode_shuffled(lambda rows: keys("video", rows)[0], clips, generator=torch.Generator().manual_seed(3))
    order = torch.randperm(8, generator=torch.Generator().manual_seed(3))
    expected = copy.deepcopy(keys)("video", clips[order])[0]
    for key, place in zip(expected, order.tolist(), strict=True):
        torch.testing.assert_close(found[place], key)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_of_a_single_position_are_torchs(axes, kernel, stride):
    torchs = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1](6, 8, kernel, stride, kernel // 2, bias=False)
    ours = CONVOLUTIONS[axes](6, 8, kernel, stride, kernel // 2, bias=False)
    ours.load_state_dict(torchs.state_dict())
    for side in (1, 2):
        maps = torch.randn(5, 6, *[side] * axes, generator=torch.Generator().manual_seed(0))
        found, expected = ours(maps), torchs(maps)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
        gradients = [torch.autograd.grad(each.square().sum(), layer.weight)[0]
                     for each, layer in ((found, ours), (expected, torchs))]
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-5)


def test_bfloat16_gradients_of_one_small_digit_are_finite_and_repeat_themselves():
    """Its last convolution sees one position."""
    encoder, found = Encoder("small_image", 512), []
    pictures = torch.rand(16, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    for _ in range(10):
        unset = [torch.full((size,), float("nan")) for size in (1000, 73728)]  # memory that is used again
        del unset
        encoder.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            features = encoder(pictures)
        features.float().square().sum().backward()
        found.append([parameter.grad.clone() for parameter in encoder.parameters()])
    for gradients in found:
        assert all(torch.equal(*pair) for pair in zip(gradients, found[0], strict=True))
        assert all(gradient.isfinite().all() for gradient in gradients)
