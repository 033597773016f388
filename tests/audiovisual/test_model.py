"""Encoders and their groups; towers and crossed momentum against plain loops."""

import copy

import pytest
import torch
from small_encoders import encoder, inputs, parameters, with_history
from torch import nn

from repro.audiovisual import MODALITIES
from repro.audiovisual.model import Encoder, Towers, crossed
from repro.audiovisual.trunks import TRUNKS
from repro.contrast.momentum import MomentumEncoder, encode_shuffled


def towers(extra_layer=True, seed=0):
    torch.manual_seed(seed)
    video, audio = Encoder("small_video", 32), Encoder("small_audio", 32, channels=6)
    return Towers(video, audio, embedding=5, extra_layer=extra_layer)


def batches(count=4, **options):
    generator = torch.Generator().manual_seed(1)
    clips = torch.randn(count, 3, 4, 8, 8, generator=generator, **options)
    return {"video": clips, "audio": torch.randn(count, 6, 16, generator=generator, **options)}


@pytest.mark.parametrize("trunk", TRUNKS)
def test_one_item_has_the_features_it_has_in_a_batch(trunk):
    batch = inputs(trunk, 5, dtype=torch.float64)
    network = with_history(encoder(trunk).double(), [batch + 1])
    alone = network(batch[3:4])
    assert alone.shape == (1, 32)
    torch.testing.assert_close(alone, network(batch)[3:4])
    assert network(batch[:0]).shape == (0, 32)


@pytest.mark.parametrize("trunk", TRUNKS)
def test_item_i_trains_in_group_i_mod_groups(trunk):
    batch = inputs(trunk, 6, dtype=torch.float64)
    ghost, plain = encoder(trunk, groups=2).double(), encoder(trunk).double()
    apart, running = torch.empty(len(batch), 32, dtype=torch.float64), []
    for group in range(2):
        alone = copy.deepcopy(plain)
        apart[group::2] = alone(batch[group::2])
        running.append(torch.cat([value for name, value in alone.named_buffers() if "running" in name]))
    found = ghost(batch)
    torch.testing.assert_close(found, apart)
    statistics = torch.cat([value for name, value in ghost.named_buffers() if "running" in name])
    torch.testing.assert_close(statistics, torch.stack(running).mean(0))
    assert not torch.allclose(plain(batch), found)


@pytest.mark.parametrize("trunk", TRUNKS)
def test_bfloat16_autocast_gives_close_features(trunk):
    network, batch = with_history(encoder(trunk), [inputs(trunk, 8) + 1]), inputs(trunk)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = network(batch)
    expected = network(batch)
    assert nn.functional.cosine_similarity(found.float(), expected).min() > 0.99
    torch.testing.assert_close(found.float().norm(dim=1), expected.norm(dim=1), rtol=0.05, atol=0)


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
        assert torch.equal(features, model.trunks[modality](batch))
        head = model.heads[modality]
        for item, row in enumerate(features):
            for place in range(5):
                expected = sum(head.weight[place, unit] * row[unit] for unit in range(32)) + head.bias[place]
                torch.testing.assert_close(embedding[item, place], expected, rtol=1e-4, atol=1e-5)


def test_without_the_extra_layer_the_features_are_the_embeddings():
    model = towers(extra_layer=False)
    assert parameters(model.heads) == 0
    for modality, batch in batches().items():
        embedding, _ = model.eval()(modality, batch)
        assert torch.equal(embedding, model.trunks[modality](batch))
        assert embedding.shape == (4, 32)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("trunk", TRUNKS)
def test_last_inputs_are_those_of_the_last_layer_averaged_over_positions(trunk, groups):
    """The layer makes of them the mean of what it makes of the maps; which rows they are, one item at a time."""
    network, given = encoder(trunk, groups=groups), []
    batch = inputs(trunk, 4)
    network.last_layer.register_forward_hook(lambda _, inputs, output: given.append(output.flatten(2).mean(2)
                                             if output.ndim > 2 else output))
    features, hidden = network.with_last_inputs(batch)
    assert not hidden.requires_grad and features.requires_grad
    made, = given
    order = [item for group in range(groups) for item in range(4) if item % groups == group]
    weight = network.last_layer.weight.flatten(1)
    torch.testing.assert_close(hidden[order] @ weight.T, made, rtol=1e-4, atol=1e-5)
    assert torch.equal(features, network(batch))
    alone = network.eval().with_last_inputs(batch[2:3])[1]
    torch.testing.assert_close(network.with_last_inputs(batch)[1][2:3], alone, rtol=1e-4, atol=1e-5)


def test_the_last_layer_is_that_of_the_network():
    """In front of it everything moves with its weights; behind it nothing has weights but normalisation."""
    for trunk in TRUNKS:
        network = encoder(trunk)
        names = [name for name, value in network.layers.named_parameters() if value.ndim > 1]
        last = next(name for name, value in network.layers.named_parameters() if value is network.last_layer.weight)
        assert last == [name for name in names if "shortcut" not in name][-1]


@pytest.mark.parametrize("extra_layer", [True, False])
def test_the_last_layer_is_exact_under_autocast(extra_layer):
    model = towers(extra_layer)
    for modality, batch in batches().items():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            embedding, hidden = model(modality, batch)
        assert embedding.dtype == hidden.dtype == torch.float32
        assert not extra_layer or torch.equal(embedding, model.heads[modality](hidden))
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
        features = model.trunks[modality](batch)
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
