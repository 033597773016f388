"""Encoder, projection head and decoder of the taxonomy paper."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from repro.skeleton.gru_cpu import GRU, Packing, by_blocks
from repro.skeleton.recipe import SkeletonRecipe

Bones = Sequence[Sequence[int]]


class Encoder(nn.Module):
    """Sequences (N, T, D) to readouts (N, H): the top layer's hidden state at the last valid frame.

    Lengths (N,) are on the CPU or with the sequences, so that nothing waits for a device to know them. Weight matrices
    start Xavier-uniform, as in the released code. There is no normalisation layer, so encoding several views in one
    batch gives exactly what encoding them one by one gives.
    """

    def __init__(self, features: int, units: int, layers: int) -> None:
        super().__init__()
        self.gru = GRU(features, units, layers)
        _initialise(self.gru)

    def forward(self, sequences: Tensor, lengths: Tensor, packing: Packing | None = None) -> Tensor:
        """Readouts (N, H) of sequences (N, T, D) with so many valid frames (N,), whose packing spares the padding."""
        if packing:
            return self.gru(sequences[packing.sequence, packing.frame], packing=packing)[packing.last]
        states = self.gru(sequences.transpose(0, 1))
        last = (lengths - 1).to(states.device, non_blocking=True)[None, :, None].expand(1, -1, states.shape[2])
        return states.gather(0, last).squeeze(0)


class BidirectionalEncoder(nn.Module):
    """An `Encoder` that reads both ways: forward at the last valid frame, then backward at the first, top layer.

    Each direction has H / 2 units, which leaves head and decoder as they are. In the repository's earlier auto-encoder
    it has H and reads a batch's padding too; here padding is never read. Torch computes in float32 and packs by itself.
    """

    def __init__(self, features: int, units: int, layers: int) -> None:
        super().__init__()
        self.gru = nn.GRU(features, units // 2, layers, bidirectional=True)
        _initialise(self.gru)

    def forward(self, sequences: Tensor, lengths: Tensor, packing: Packing | None = None) -> Tensor:
        """Readouts (N, H) as of an `Encoder`, whose `packing` is not needed here."""
        ordered, order = lengths.sort(descending=True, stable=True)  # torch would wait for the device to put them there
        order = order.to(sequences.device, non_blocking=True)
        packed = pack_padded_sequence(sequences[order], ordered, batch_first=True)
        with torch.autocast(sequences.device.type, enabled=False):
            _, last = self.gru(packed)                          # (2 layers, N, H / 2), the top layer's at the end
        return torch.cat([last[-2], last[-1]], dim=1)[order.argsort()]


class Decoder(nn.Module):
    """Readouts or embeddings (N, I) to sequences (N, T, D): the input of every frame is the same; no teacher forcing.

    With a packing, only its frames are decoded and the others are zero.
    """

    def __init__(self, inputs: int, features: int, units: int, layers: int) -> None:
        super().__init__()
        self.gru = GRU(inputs, units, layers)
        self.output = nn.Linear(units, features)

    def forward(self, inputs: Tensor, frames: int, packing: Packing | None = None) -> Tensor:
        """Sequences (N, T, D) of `frames` T from inputs (N, I)."""
        states = self.gru(inputs[None], frames, packing)
        if packing is None:
            return self.output(states).transpose(0, 1)
        decoded = by_blocks(states, self.output.weight, self.output.bias)
        padded = decoded.new_zeros(len(inputs), frames, decoded.shape[-1])
        return padded.index_put((packing.sequence, packing.frame), decoded)


class SkeletonModel(nn.Module):
    """Encoder, head and decoder; the momentum encoder is a twin of the whole.

    Each part starts from draws of its own, so that the weights of one do not depend on the kind of another.

    Args:
        recipe: says how large they are, which head there is, what is decoded, and what `encoder` goes by.
        features: D, coordinates per frame (60 for NW-UCLA, 150 for NTU RGB+D).
        bones: of the data set, pairs of joints.
    """

    def __init__(self, recipe: SkeletonRecipe, features: int, bones: Bones) -> None:
        super().__init__()
        self.architecture = {"features": features, "bones": bones}
        self.decoder_input = recipe.decoder_input
        decoded = recipe.units if recipe.decoder_input == "readout" else recipe.projection
        self.encoder = _from_own_draws(lambda: encoder(recipe, features, bones))
        self.head = _from_own_draws(lambda: projection_head(recipe.head, recipe.units, recipe.projection))
        self.decoder = _from_own_draws(lambda: Decoder(decoded, features, recipe.units, recipe.layers))

    def project(self, readouts: Tensor) -> Tensor:
        """Projections (N, projection), of any length."""
        return self.head(readouts).float()

    def embed(self, readouts: Tensor) -> Tensor:
        """Embeddings (N, projection) of unit length."""
        return functional.normalize(self.project(readouts), dim=1)

    def decode(self, readouts: Tensor, frames: int, packing: Packing | None = None) -> Tensor:
        """Sequences (N, T, D) of `frames` T from readouts (N, H), through the head if embeddings are decoded."""
        inputs = self.embed(readouts) if self.decoder_input == "embedding" else readouts
        return self.decoder(inputs, frames, packing)


def encoder(recipe: SkeletonRecipe, features: int, bones: Bones) -> nn.Module:
    """The encoder of a recipe on data of so many coordinates per frame, whose joints the bones connect.

    Its `forward` is that of `Encoder`. A new kind of encoder is one more class, told apart here.
    """
    kind = BidirectionalEncoder if recipe.bidirectional else Encoder
    return kind(features, recipe.units, recipe.layers)


def projection_head(kind: str, units: int, projection: int) -> nn.Module:
    """What makes embeddings (N, projection) of readouts (N, units): "linear", or "mlp" with a hidden layer."""
    last = nn.Linear(units, projection)
    return last if kind == "linear" else nn.Sequential(nn.Linear(units, units), nn.ReLU(), last)


def _from_own_draws(make: Callable[[], nn.Module]) -> nn.Module:
    """What `make` makes. However many draws it takes, the global generator moves on by one, the seed of these draws."""
    seed = int(torch.randint(2**62, (), device="cpu"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def _initialise(gru: nn.GRU) -> None:
    """Weight matrices Xavier-uniform; biases stay."""
    for parameter in gru.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
