"""One training step of the taxonomy, in parts: ours beside a plain transcription of the formulas, in one process.

    python3 -m tests.benchmarks.taxonomy_step [--threads 2] [--precision bfloat16] [--objectives CE] [--full]

At the paper's size (NW-UCLA: batch 32, at most 50 frames, 60 inputs, 512 units, dictionaries of 1,024 and 640 entries)
on made-up sequences. The plain transcription calls torch.nn.GRU once per view, computes padding like any frame, repeats
the decoder's input, and takes the difference of every decoded sequence to every entry by broadcasting. Both take the
same steps, in turns, and must arrive at the same losses. Then, each in a process of its own: memory, and whether two
one-thread processes or one of two threads get more done. Linux alone.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper
from tests.benchmarks.made_up import made_up
from tests.benchmarks.spread import ratios
from tests.benchmarks.stopwatch import in_parts

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

    @torch.no_grad()
    def _keys(self, view: Tensor, cpu_lengths: Tensor) -> dict[str, Tensor]:
        twin = self.keys.twin
        readouts = twin.encoder(view, cpu_lengths)
        keys = {"embedded": functional.normalize(twin.head(readouts).float(), dim=1)} if self.recipe.has("CE") else {}
        return keys | ({"decoded": twin.decoder(readouts, FRAMES)} if self.recipe.has("CD") else {})

    def _losses(
        self, inputs: dict, clean: Tensor, lengths: Tensor, cpu_lengths: Tensor, keys: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        model, recipe, losses = self.model, self.recipe, {}
        readouts = {name: model.encoder(view, lengths) for name, view in inputs.items()}
        if recipe.has("AE"):
            query, target = (functional.normalize(model.head(each).float(), dim=1) for each in readouts.values())
            losses["AE"] = (2 - 2 * (query * target).sum(1)).mean()
        if recipe.has("CE"):
            query = functional.normalize(model.head(readouts["augmented"]).float(), dim=1)
            positive = (query * keys["embedded"]).sum(1, keepdim=True)
            logits = torch.cat([positive, query @ self.dictionary.entries.T], dim=1)
            losses["CE"] = _first_of(logits.float() / recipe.temperature)
        if recipe.has("AD"):
            decoded = model.decoder(readouts["clean"], clean.shape[1]).float()
            losses["AD"] = _distance(decoded, clean, lengths).mean()
        if recipe.has("CD"):
            decoded, key = model.decoder(readouts["augmented"], clean.shape[1]).float(), keys["decoded"].float()
            positive = _distance(decoded, key[:, : clean.shape[1]], lengths)[:, None]
            entries = self.sequence_dictionary.entries[None, :, : clean.shape[1]]
            negatives = _distance(decoded[:, None], entries, lengths[:, None])
            losses["CD"] = _first_of(-torch.cat([positive, negatives], dim=1) / recipe.temperature)
        return losses


def _distance(first: Tensor, second: Tensor, lengths: Tensor) -> Tensor:
    """Masked L1 by broadcasting: (..., T, D), (..., T, D), (...) -> (...)."""
    valid = torch.arange(first.shape[-2]) < lengths[..., None]
    return ((first - second).abs().mean(-1) * valid).sum(-1) / lengths


def _first_of(logits: Tensor) -> Tensor:
    """Cross-entropy whose right answer is the first column."""
    return functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64))


PARTS = {
    "batch and views": ("_next_batch", "_view"),
    "momentum branch": ("_keys",),
    "query encoder": ("model.encoder.forward",),
    "query decoder": ("model.decoder.forward",),
    "objectives": ("_losses",),
    "Adam": ("optimiser.step",),
    "dictionaries, momentum": ("_update_keys",),
}


def lengths(full: bool) -> Tensor:
    """About NW-UCLA's after its pipeline (mean 34.7): 28 % of 50 frames, the others of 11 to 49; or all of 50."""
    draws = torch.Generator().manual_seed(0)
    shorter = torch.randint(11, FRAMES, (SEQUENCES,), generator=draws)
    longest = torch.rand(SEQUENCES, generator=draws) < (1 if full else 0.28)
    return torch.where(longest, FRAMES, shorter)


def learner(kind: type[Pretrainer], options: argparse.Namespace) -> Pretrainer:
    """Ready to step, on the CPU."""
    recipe = paper("ucla", options.objectives, precision=options.precision)
    return kind(recipe, made_up(lengths(options.full), FEATURES), 0, torch.device("cpu"))


def side_by_side(options: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of every part and of the whole step, of every step, by name of the implementation."""
    torch.set_num_threads(options.threads)
    learners = {"plain": learner(Plain, options), "ours": learner(Pretrainer, options)}
    tolerance = 1e-3 if options.precision == "float32" else 3e-2
    taken = {name: [] for name in learners}
    for number in range(options.warm_up + options.steps):
        losses = {}
        for name, each in learners.items():
            with in_parts(each, PARTS) as watch:
                losses[name] = each.step()
            if number >= options.warm_up:
                taken[name].append(watch.seconds | {"step": sum(watch.seconds.values())})
        torch.testing.assert_close(losses["ours"], losses["plain"], rtol=tolerance, atol=tolerance)
    return {
        name: {part: [1e3 * step[part] for step in steps] for part in steps[0]}
        for name, steps in taken.items()
    }


def peak_memory() -> float:
    """MiB this process has held at most; `getrusage` would count the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def alone(kind: type[Pretrainer], options: argparse.Namespace) -> dict[str, float]:
    """What a process that does nothing else needs: steps per second, MiB at its peak, MiB of the imports alone."""
    imported = peak_memory()
    torch.set_num_threads(options.threads)
    each = learner(kind, options)
    for _ in range(options.warm_up):
        each.step()
    start = time.perf_counter()
    for _ in range(options.steps):
        each.step()
    seconds = time.perf_counter() - start
    return {"rate": options.steps / seconds, "peak": peak_memory(), "imported": imported}


def processes(kind: str, threads: int, count: int, arguments: list[str]) -> list[dict[str, float]]:
    """`alone` in `count` processes at once."""
    command = [sys.executable, "-m", "tests.benchmarks.taxonomy_step", *arguments, "--alone", kind]
    command += ["--threads", str(threads)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return [json.loads(process.communicate()[0]) for process in running]


def options_of(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--objectives", default="AE+CE+AD+CD")
    parser.add_argument("--full", action="store_true", help="all sequences of 50 frames")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--alone", choices=("plain", "ours"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> None:
    """Print the parts, memory, cells per hour, and last the ratio."""
    arguments = sys.argv[1:]
    options = options_of(arguments)
    if options.alone:
        print(json.dumps(alone({"plain": Plain, "ours": Pretrainer}[options.alone], options)))
        return
    parts = side_by_side(options)
    drawn, origin = lengths(options.full), "all full" if options.full else "about NW-UCLA's"
    print(f"{options.objectives}, {options.precision}, {options.threads} threads; median of {options.steps} in ms")
    print(f"sequences of {drawn.min()} to {drawn.max()} frames, {drawn.float().mean():.1f} on average: {origin}")
    print(f"{'':<24}{'plain':>8}{'ours':>8}")
    for part in parts["plain"]:
        plain, ours = (statistics.median(parts[kind][part]) for kind in ("plain", "ours"))
        print(f"{part:<24}{plain:8.1f}{ours:8.1f}")
    for kind in ("plain", "ours"):
        (found,) = processes(kind, options.threads, 1, arguments)
        print(f"{kind}: {found['peak']:.0f} MiB at its peak, of which imports {found['imported']:.0f}")
    for count, threads in ((1, 2), (2, 1)):
        rate = sum(found["rate"] for found in processes("ours", threads, count, arguments))
        print(f"processes x threads {count} x {threads}: {3600 * rate / STEPS_OF_A_CELL:.2f} cells an hour")
    print(f"plain : ours, least / median / most of the steps: {ratios(parts['plain']['step'], parts['ours']['step'])}")


if __name__ == "__main__":
    main()
