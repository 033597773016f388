"""What is read from encoders and decoders: readouts, embeddings and their spread, accuracies, the decoded scale."""


import pytest
import torch
from made_up_skeletons import learner, made_up
from slow_skeletons import slow_decoding, slow_embedding, slow_readout

pytestmark = pytest.mark.usefixtures("one_thread")


def test_readouts_of_any_chunk_are_the_encoders():
    fast, data = learner("AE"), made_up()
    readouts, embeddings = fast.features(data)
    assert not readouts.requires_grad
    for index, length in enumerate(data.lengths):
        expected = slow_readout(fast.model, data.sequences[index, :length])
        torch.testing.assert_close(readouts[index], expected)
        torch.testing.assert_close(embeddings[index], slow_embedding(fast.model, expected))
    torch.testing.assert_close(fast.features(data, frames=30)[0], readouts)


def spread(fast, data):
    """Total standard deviation of the embedding: 0 when collapsed, at most 1."""
    return fast.features(data)[1].var(0, correction=0).sum().sqrt().item()


def test_the_attractive_encoder_alone_collapses_and_contrast_does_not():
    data = made_up(60)
    spreads = {}
    for objectives in ("AE", "AE+CE"):
        fast = learner(objectives, data=data, batch=16, units=16, dictionary=64)
        before = spread(fast, data)
        for _ in range(60):
            fast.step()
        spreads[objectives] = spread(fast, data) / before
    assert spreads["AE"] < 0.2
    assert spreads["AE+CE"] > 0.5


@pytest.mark.parametrize("frames", [1, 30, 12800])
def test_the_decoded_scale_is_that_of_each_test_sequence_decoded_alone(frames):
    fast, data = learner("AD"), made_up()
    readouts, decoded, clean = fast.features(data)[0], [], []
    for index in data.test.nonzero().flatten().tolist():
        length = int(data.lengths[index])
        decoded.append(slow_decoding(fast.model, readouts[index], length).detach().double().flatten())
        clean.append(data.sequences[index, :length].double().flatten())
    expected = (torch.cat(decoded).square().mean() / torch.cat(clean).square().mean()).sqrt().item()
    assert fast.decoded_scale(data, readouts, frames) == pytest.approx(expected, rel=1e-5)
    with torch.no_grad():
        for parameter in fast.model.decoder.output.parameters():
            parameter *= 30
    assert fast.decoded_scale(data, readouts, frames) == pytest.approx(30 * expected, rel=1e-5)
