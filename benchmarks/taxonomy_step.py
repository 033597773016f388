"""One training step of the taxonomy: ours beside a plain transcription of the formulas, in one process.

    python3 -m benchmarks.taxonomy_step [--threads 2] [--precision bfloat16] [--objectives CE] [--full]

At the paper's size (NW-UCLA: batch 32, at most 50 frames, 60 inputs, 512 units, dictionaries of 1,024 and 640 entries)
on made-up sequences. The plain transcription calls torch.nn.GRU once per view, computes padding like any frame, repeats
the decoder's input, and takes the difference of every decoded sequence to every entry by broadcasting. Both take the
same steps, in turns, and must arrive at the same losses.
"""

from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.stopwatch import CPU, options, sequences, show, turns
from repro.contrast import objectives
from repro.skeleton.model import SkeletonModel
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper
from repro.skeleton.terms import KINDS

SEQUENCES, FRAMES, FEATURES = 1013, 50, 60
STEPS_OF_A_CELL = 150 * (SEQUENCES // 32)


class PlainEncoder(nn.Module):
    """The last valid state, from a padded batch."""

    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.gru = nn.GRU(features, units, batch_first=True)

    def forward(self, sequences: Tensor, lengths: Tensor) -> Tensor:
        return self.gru(sequences)[0][torch.arange(len(lengths)), lengths - 1]


class PlainDecoder(nn.Module):
    """The readout repeated as the input of every frame."""

    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.gru, self.output = nn.GRU(units, units, batch_first=True), nn.Linear(units, features)

    def forward(self, readouts: Tensor, frames: int) -> Tensor:
        return self.output(self.gru(torch.stack([readouts] * frames, dim=1))[0])


class Plain(Pretrainer):
    """The formulas of the supplement as they stand, one call per view, weights and random numbers those of ours."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        for model in (self.model, self.keys.twin):
            encoder, decoder = PlainEncoder(FEATURES, self.recipe.units), PlainDecoder(FEATURES, self.recipe.units)
            encoder.load_state_dict(model.encoder.state_dict())
            decoder.load_state_dict(model.decoder.state_dict())
            model.encoder, model.decoder = encoder, decoder
        self.keys.requires_grad_(False)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=self.recipe.learning_rate)

    def step(self) -> Tensor:
        with mock.patch.multiple(objectives, **PLAIN):
            return super().step()

    def _represented(
        self, model: SkeletonModel, inputs: dict[str, Tensor], cpu_lengths: Tensor, least: int = 0
    ) -> dict[str, dict[str, Tensor]]:
        represented: dict[str, dict[str, Tensor]] = {kind: {} for kind in KINDS}
        for name, view in inputs.items():
            readouts = model.encoder(view, cpu_lengths)
            if name in self.needs["embedded"]:
                represented["embedded"][name] = functional.normalize(model.head(readouts).float(), dim=1)
            if name in self.needs["decoded"]:
                represented["decoded"][name] = model.decoder(readouts, max(view.shape[1], least))
        return represented


def plain_attraction(query: Tensor, target: Tensor) -> Tensor:
    """AE."""
    return (2 - 2 * (query * target).sum(1)).mean()


def plain_contrast(query: Tensor, key: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """CE."""
    logits = torch.cat([(query * key).sum(1, keepdim=True), query @ negatives.T], dim=1)
    return _first_of(logits.float() / temperature)


def plain_reconstruction(decoded: Tensor, sequence: Tensor, lengths: Tensor) -> Tensor:
    """AD."""
    return _distance(decoded.float(), sequence, lengths).mean()


def plain_sequence_contrast(
    decoded: Tensor, key: Tensor, negatives: Tensor, lengths: Tensor, temperature: float
) -> Tensor:
    """CD."""
    positive = _distance(decoded.float(), key.float(), lengths)[:, None]
    entries = negatives[None, :, : decoded.shape[1]]
    others = _distance(decoded.float()[:, None], entries, lengths[:, None])
    return _first_of(-torch.cat([positive, others], dim=1) / temperature)


PLAIN = {"attraction": plain_attraction, "info_nce": plain_contrast, "reconstruction": plain_reconstruction,
         "sequence_contrast": plain_sequence_contrast}


def _distance(first: Tensor, second: Tensor, lengths: Tensor) -> Tensor:
    """Masked L1 by broadcasting: (..., T, D), (..., T, D), (...) -> (...)."""
    valid = torch.arange(first.shape[-2]) < lengths[..., None]
    return ((first - second).abs().mean(-1) * valid).sum(-1) / lengths


def _first_of(logits: Tensor) -> Tensor:
    """Cross-entropy whose right answer is the first column."""
    return functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64))


def lengths(full: bool) -> Tensor:
    """About NW-UCLA's after its pipeline (mean 34.7): 28 % of 50 frames, the others of 11 to 49; or all of 50."""
    draws = torch.Generator().manual_seed(0)
    shorter = torch.randint(11, FRAMES, (SEQUENCES,), generator=draws)
    longest = torch.rand(SEQUENCES, generator=draws) < (1 if full else 0.28)
    return torch.where(longest, FRAMES, shorter)


def main() -> None:
    """Print steps a second and their ratio; the losses of all steps must agree."""
    settings = options(__doc__, threads=2, precision="float32", objectives="AE+CE+AD+CD", full=False, steps=15,
                       warm_up=5)
    torch.set_num_threads(settings.threads)
    data = sequences(lengths(settings.full), FEATURES)
    recipe = paper("ucla", settings.objectives, precision=settings.precision)
    learners = {"plain": Plain(recipe, data, 0, CPU), "ours": Pretrainer(recipe, data, 0, CPU)}
    losses = {name: [] for name in learners}
    works = {name: lambda name=name: losses[name].append(learners[name].step()) for name in learners}
    taken = turns(works, settings.steps, warm_up=settings.warm_up)
    tolerance = 1e-3 if settings.precision == "float32" else 3e-2
    plain, ours = (torch.stack(values) for values in losses.values())
    torch.testing.assert_close(ours, plain, rtol=tolerance, atol=tolerance)
    frames = data.lengths.float()
    print(f"{settings.objectives}, {settings.precision}, {settings.threads} threads; least / median / most of "
          f"{settings.steps} steps")
    print(f"sequences of {frames.min():.0f} to {frames.max():.0f} frames, {frames.mean():.1f} on average")
    show(taken, 1, "steps", "plain")


if __name__ == "__main__":
    main()
