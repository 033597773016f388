"""What a GPU does with the steps of training, in less than five minutes: a table, and a JSON file that grows with it.

    python3 -m benchmarks.gpu [--output gpu.json] [--parts limits,steps] [--device cuda]

Parts, in this order: limits, equality (a recorded step beside the plain one), steps (as they are, recorded, how long
the device is busy and what share of its limits that is), fifteen (one step of every objective, in lanes), selection,
probe, cells (what is measured along a training), views, column (NW-UCLA for twenty epochs in lanes, made-up sequences
where it is not at hand), ntu (steps of NTU RGB+D's size, alone and in lanes). A part that fails leaves the others
alone; nothing begins after four minutes. With `--device cpu` all sizes are tiny, which shows that everything runs and
no more. Needs torch and what tables import, matplotlib and seaborn among it.
"""

import contextlib
import functools
import json
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

import repro
from benchmarks import ntu_epoch, selection, taxonomy_step
from benchmarks.stopwatch import operations, options, pictures, seconds, sequences, wait
from repro.audiovisual import pretrain as audiovisual
from repro.audiovisual.clips import Clips
from repro.audiovisual.recipe import paper as audiovisual_recipe
from repro.image import pretrain as image
from repro.image.augment import normalisation, strong, weak
from repro.image.recipe import paper as image_recipe
from repro.run import device as devices
from repro.run.evaluate import cosine_rates, linear_predictions
from repro.run.learner import Learner
from repro.run.recorded import WARM_UP, Recorded
from repro.skeleton import pretrain as skeleton
from repro.skeleton.data import SkeletonSet, load
from repro.skeleton.recipe import SUBSETS
from repro.skeleton.recipe import paper as skeleton_recipe
from repro.skeleton.study import along

TIME = 240  # seconds after which nothing begins; the longest takes 50
CPU = torch.device("cpu")
WHOLE = "AE+CE+AD+CD"
SIZES = {"1 x 512": (1, 512), "3 x 512": (3, 512), "1 x 1,024": (1, 1024)}
Row = dict[str, Any]


def main() -> None:
    """Measure part by part."""
    settings = options(__doc__, output="gpu.json", parts=",".join(PARTS), device="cuda")
    device, began, results = devices.resolve(settings.device), time.perf_counter(), {}
    output = Path(settings.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    results["hardware"] = devices.hardware(device)
    print(results["hardware"])
    with devices.threads(1), devices.full_precision():
        for name in settings.parts.split(","):
            for row in rows_of(name, device, began, results):
                results.setdefault(name, []).append(row)
                output.write_text(json.dumps(results, indent=1) + "\n")
                print(name, in_words(row), flush=True)
    print(f"{time.perf_counter() - began:.0f} s in all; written to {output}")


def rows_of(name: str, device: torch.device, began: float, results: dict[str, Any]) -> Iterator[Row]:
    """What a part measures, row by row; of one that fails, the error."""
    rates = {row["what"]: row["rate"] for row in results.get("limits", [])}
    rows = PARTS[name](device, device.type == "cpu", rates)
    while time.perf_counter() - began < TIME:
        start = time.perf_counter()
        try:
            row = next(rows)
        except StopIteration:
            return
        except Exception as error:
            traceback.print_exc()
            yield {"what": name, "error": f"{type(error).__name__}: {error}"}
            return
        yield row | {"took": time.perf_counter() - start}
    yield {"what": name, "error": f"no time was left after {TIME} s"}


def in_words(row: Row) -> str:
    """A row as a line of the table."""
    cells = [f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
             for name, value in row.items() if name != "what"]
    return f"| {row['what']} | " + " | ".join(cells)


def limits(device: torch.device, tiny: bool, rates: dict[str, float]) -> Iterator[Row]:
    """Operations a second of products, whose float32 is whole."""
    side = 64 if tiny else 8192
    for kind in (torch.float32, torch.bfloat16):
        left, right = (torch.randn(side, side, device=device).to(kind) for _ in range(2))
        taken = seconds(lambda left=left, right=right: left @ right, device)
        yield {"what": str(kind).removeprefix("torch."), "rate": 2 * side**3 / taken}


def equality(device: torch.device, tiny: bool, rates: dict[str, float]) -> Iterator[Row]:
    """The largest relative difference of losses between recorded steps and the same steps as they are."""
    for what, make in learners(device, tiny, small_clips=True).items():
        losses = []
        for records in (True, False):
            learner = make()
            learner.recorded.records = records and learner.recorded.records
            losses.append(torch.stack([learner.step() for _ in range(6 if tiny else 24)]).double().cpu())
        smooth = [number for number, term in enumerate(learner.terms) if not term.startswith(("knn1", "categories"))]
        recorded, plain = (values[:, smooth] for values in losses)  # the others jump from one whole number to the next
        apart = ((recorded - plain).abs() / plain.abs().clamp(min=1e-6)).amax(1)
        yield {"what": what, "first ten": apart[:10].max().item(), "all": apart.max().item()}


def steps(device: torch.device, tiny: bool, rates: dict[str, float]) -> Iterator[Row]:
    """Milliseconds of a step as it is and recorded, and how long the device is busy."""
    for what, make in learners(device, tiny).items():
        heavy = what.startswith("clips")
        count = 2 if tiny else 4 if heavy else 60
        learner = make()
        row = {"what": what} | busy(learner, device, 1 if tiny or heavy else 5)
        learner.recorded.records = False
        row["as it is, ms"] = per_step(learner, device, count // 2)
        learner.recorded.records = device.type == "cuda" and not learner.unrecordable()
        row["recorded, ms"] = per_step(learner, device, count)
        if learner.precision in rates:
            rate = work(what, tiny, learner) / row["recorded, ms"] * 1e3
            row[f"share of {learner.precision}"] = rate / rates[learner.precision]
        if device.type == "cuda":
            row["MiB"] = torch.cuda.max_memory_allocated(device) // 2**20
            torch.cuda.reset_peak_memory_stats(device)
        yield row
        del learner
    if not tiny:  # what TF32, which training does not allow, would gain
        for objectives in ("CE", WHOLE):
            torch.backends.cudnn.allow_tf32 = True
            taken = per_step(on_skeletons(objectives, device, tiny), device, 60)
            torch.backends.cudnn.allow_tf32 = False
            yield {"what": f"NW-UCLA, {objectives}, TF32 in the GRU", "recorded, ms": taken}


def learners(device: torch.device, tiny: bool, *, small_clips: bool = False) -> dict[str, Callable[[], Learner]]:
    """What takes steps, by name."""
    makers: dict[str, Callable[[], Learner]] = {
        f"NW-UCLA, {objectives}": functools.partial(on_skeletons, objectives, device, tiny)
        for objectives in ("CE", "AD", WHOLE)
    }
    makers |= {f"CIFAR-10, {method}": functools.partial(on_images, method, device, tiny)
               for method in ("sce", "jcl")}
    small = tiny or small_clips
    makers |= {f"clips, cmacc, {precision}": functools.partial(on_clips, "cmacc", precision, device, small)
               for precision in ("float32", "bfloat16")}
    return makers


def per_step(learner: Learner, device: torch.device, count: int, warm_up: int = WARM_UP + 2) -> float:
    """Milliseconds of a step, on average over as many, after those that are for warming up and recording."""
    for _ in range(warm_up):
        learner.step()
    wait(device)
    start = time.perf_counter()
    for _ in range(count):
        learner.step()
    wait(device)
    return 1e3 * (time.perf_counter() - start) / count


def busy(learner: Learner, device: torch.device, count: int) -> Row:
    """Kernels of a plain step and milliseconds that the device is busy with them."""
    learner.recorded.records = False
    for _ in range(WARM_UP):
        learner.step()
    if device.type != "cuda":
        return {}
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(count):
            learner.step()
        wait(device)
    events = profiler.key_averages()
    kernels = [event for event in events if event.device_type == DeviceType.CUDA and not event.is_user_annotation]
    return {
        "kernels": sum(event.count for event in kernels) / count,
        "busy, ms": sum(event.self_device_time_total for event in kernels) / 1e3 / count,
    }


def work(what: str, tiny: bool, learner: Learner) -> float:
    """Operations in the products of a step; of skeletons counted on a CPU, where no padding is computed."""
    if what.startswith("NW-UCLA"):
        learner = on_skeletons(what.split(", ")[1], CPU, tiny)
    learner.recorded.records = False  # what is replayed is not counted
    return operations(learner.step)


@functools.cache
def skeletons(tiny: bool) -> SkeletonSet:
    """NW-UCLA, or made-up sequences where it is not at hand."""
    if tiny:
        return sequences(torch.arange(4, 10).repeat(8), 6)
    with contextlib.suppress(FileNotFoundError):
        return load("ucla")
    return sequences(taxonomy_step.lengths(False), taxonomy_step.FEATURES)


def on_skeletons(objectives: str, device: torch.device, tiny: bool) -> Learner:
    """A learner of the printed recipe."""
    small = {"units": 8, "projection": 8, "dictionary": 16, "sequence_dictionary": 8, "batch": 8} if tiny else {}
    recipe = skeleton_recipe("ucla", objectives, precision="float32", **small)
    return skeleton.Pretrainer(recipe, skeletons(tiny), 0, device)


def on_images(method: str, device: torch.device, tiny: bool) -> Learner:
    """A learner of the printed recipe; of JCL, which prints none on CIFAR-10, of SCE's with its five keys."""
    small: dict[str, Any] = {"batch": 8, "dictionary": 16, "small": False} if tiny else {"batch": 256}
    recipe = image_recipe("cifar10", method, **small)
    return image.Pretrainer(recipe, pictures(160 if tiny else 40_000), 0, device)


class FilledPools(audiovisual.Pretrainer):
    """With keys of noise in its pools and first dictionaries: encoding them is no part of a usual step."""

    def _encoded(self, modality: str, items: Tensor) -> Tensor:
        noise = torch.randn(len(items), self.recipe.embedding, generator=torch.Generator().manual_seed(len(items)))
        return noise.to(self.device)


@functools.cache
def made_up_clips(count: int, side: int, window: int, device: torch.device) -> Clips:
    """Noise, as long as a view; equal on all devices of a kind."""
    rows, draws = 10, torch.Generator(device).manual_seed(0)
    every, labels = torch.ones(count, dtype=torch.bool), torch.arange(count) % 10
    ends = torch.arange(count + 1)
    frames = torch.randint(0, 256, (window * count, side, side, 3), dtype=torch.uint8, generator=draws, device=device)
    mel = torch.randn(rows * window * count, 80, generator=draws, device=device)
    return Clips(
        name="made-up", digest="made up", classes=tuple("0123456789"), labels=labels, categories=labels,
        pretrain=every, train=every, test=~every, frames=frames, first_frame=window * ends, mel=mel,
        first_row=rows * window * ends, rows_per_frame=rows, window=window,
    )


def on_clips(method: str, precision: str, device: torch.device, tiny: bool) -> Learner:
    """A learner of the printed recipe, but for a dictionary of 128: the paper's 3,840 would want more clips."""
    changes: dict[str, Any] = {"dictionary": 128}
    if tiny:
        changes = {"window": 4, "size": 8, "width": 32, "embedding": 8, "batch": 4, "dictionary": 4, "pool": 64,
                   "groups": 1}
    recipe = audiovisual_recipe("kinetics_sound", method, precision=precision, **changes)
    clips = made_up_clips(*((64, 10) if tiny else (384, 256)), recipe.window, device)
    return FilledPools(recipe, clips, 0, device)


def selecting(device: torch.device, tiny: bool, rates: dict[str, float]) -> Iterator[Row]:
    """Milliseconds of a selection as it is, with its checks, and recorded."""
    size = {"pool": 300, "features": 16, "chosen": 8} if tiny else {"pool": 38400, "features": 512, "chosen": 128}
    for strategy, normalised in (("gradient", False), ("gradient", True), ("feature", False)):
        plain = selection.selection(device, strategy=strategy, normalised=normalised, **size)
        generator = plain.keywords["generator"]
        unchecked = functools.partial(plain, checked=False)
        recorded = Recorded(unchecked, device, generators=[generator] if device.type == "cuda" else [])
        taken = {"as it is, ms": plain, "recorded, ms": recorded}
        found = {name: 1e3 * seconds(call, device, repeats=9, warm_up=5) for name, call in taken.items()}
        yield {"what": strategy + ", normalised" * normalised} | found


def probing(device: torch.device, tiny: bool, rates: dict[str, float]) -> Iterator[Row]:
    """Seconds of a linear probe of NW-UCLA's size, 70 epochs, and of one epoch on 50,000 features of images."""
    for what, count, features, epochs, batch in (("NW-UCLA, 70 epochs", 1013, 512, 70, 64),
                                                 ("CIFAR-10, an epoch", 50_000, 512, 1, 256)):
        if tiny:
            count, features, epochs = 20, 8, 2
        draws = torch.Generator().manual_seed(0)
        train, labels = torch.randn(count, features, generator=draws), torch.arange(count) % 10
        given = [train.to(device), labels.to(device), train[: count // 2].to(device)]
        settings = {"classes": 10, "batch": batch, "rates": cosine_rates(epochs, 0.1, 0.0), "momentum": 0.9, "seed": 0}
        probe = functools.partial(linear_predictions, *given, **settings)
        row: Row = {"what": what, "recorded, s": seconds(probe, device, repeats=3, warm_up=1)}
        with mock.patch.dict(os.environ, REPRO_RECORD="0"):
            yield row | {"as it is, s": seconds(probe, device, repeats=1, warm_up=1)}


def cells(device: torch.device, tiny: bool, rates: dict[str, float]) -> Iterator[Row]:
    """Seconds of all that is measured of a cell of NW-UCLA along its training."""
    learner = on_skeletons("CE", device, tiny)
    if not learner.data.test.any():  # made-up sequences are all for training
        return
    yield {"what": "NW-UCLA, along training", "s": seconds(lambda: along(learner), device, repeats=3, warm_up=1)}


def viewing(device: torch.device, tiny: bool, rates: dict[str, float]) -> Iterator[Row]:
    """Milliseconds of the views of a batch."""
    for name, view in (("strong", strong), ("weak", weak)):
        for count, side, size in ((8, 9, 8),) if tiny else ((256, 32, 32), (128, 256, 224)):
            images = torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, device=device)
            generator = torch.Generator(device).manual_seed(0)
            make = functools.partial(view(size, normalisation("cifar10")), images, generator)
            recorded = Recorded(make, device, generators=[generator] if device.type == "cuda" else [])
            yield {"what": f"{name}, {count} of {size} pixels", "as it is, ms": 1e3 * seconds(make, device),
                   "recorded, ms": 1e3 * seconds(recorded, device, warm_up=5)}


def column(device: torch.device, tiny: bool, rates: dict[str, float]) -> Iterator[Row]:
    """Seconds of the taxonomy's column with its probes, for twenty epochs, as `repro.run_table` trains it."""
    choices = {"preset": "smoke", "objectives": "random,CE"} if tiny else {"preset": "paper", "epochs": "20"}
    dataset = "synthetic" if skeletons(tiny).name == "made-up" else "ucla"
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, REPRO_RUNS=folder):
        start = time.perf_counter()
        rows = repro.run_table("taxonomy", dataset, device=device.type, **choices)
        taken = time.perf_counter() - start
    accuracies = dict(zip(rows["objectives"], rows["ours"].round(1), strict=True))
    yield {"what": f"taxonomy, {dataset}, {len(rows)} rows", "seconds": taken, "accuracies": accuracies}


def fifteen(device: torch.device, tiny: bool, rates: dict[str, float]) -> Iterator[Row]:
    """Milliseconds of one step of each of NW-UCLA's fifteen objectives, in lanes."""
    makers = [functools.partial(on_skeletons, objectives, device, tiny) for objectives in SUBSETS]
    yield {"what": "a step of each of fifteen", "ms": in_turns(makers, device, 2 if tiny else 60)}


def in_turns(
    makers: list[Callable[[], Learner]], device: torch.device, count: int, warm_up: int = WARM_UP + 2
) -> float:
    """Milliseconds of one step of every learner; each has a stream of its own and takes some steps at a time."""
    streams = [torch.cuda.Stream() if device.type == "cuda" else None for _ in makers]
    made: list[Learner] = []
    for stream, make in zip(streams, makers, strict=True):
        with torch.cuda.stream(stream):
            made.append(make())
            for _ in range(warm_up):
                made[-1].step()
    wait(device)
    start, some = time.perf_counter(), min(count, 10)
    for _ in range(count // some):
        for stream, learner in zip(streams, made, strict=True):
            with torch.cuda.stream(stream):
                for _ in range(some):
                    learner.step()
    wait(device)
    return 1e3 * (time.perf_counter() - start) / (count // some * some)


def ntu(device: torch.device, tiny: bool, rates: dict[str, float]) -> Iterator[Row]:
    """Minutes of an epoch of NTU RGB+D's size, alone and for each of several lanes, with the hours of a column."""
    data = skeletons(True) if tiny else sequences(ntu_epoch.lengths(16_384), 150)
    small = {"projection": 8, "dictionary": 16, "sequence_dictionary": 8, "batch": 8} if tiny else {}

    def make(objectives: str, layers: int, units: int) -> Learner:
        shape = {"layers": layers, "units": 8 if tiny else units}
        recipe = skeleton_recipe("ntu", objectives, precision="float32", **shape, **small)
        return skeleton.Pretrainer(recipe, data, 0, device)

    for size, (layers, units) in SIZES.items():
        some = ("CE", "AE+CE+AD", WHOLE)
        for objectives in some:
            learner = make(objectives, layers, units)
            taken = per_step(learner, device, 2 if tiny else 24, warm_up=3 if tiny else 30)  # some for every bucket
            epoch = taken * ntu_epoch.STEPS_OF_AN_EPOCH / 6e4
            yield {"what": f"{size}, {objectives}", "ms": taken, "minutes an epoch": epoch}
            del learner
        lanes = 3 if tiny else 6
        makers = [functools.partial(make, some[number % 3], layers, units) for number in range(lanes)]
        taken = in_turns(makers, device, 2 if tiny else 20, warm_up=3 if tiny else 24)
        yield {"what": f"{size}, {lanes} lanes", "ms of a step of each": taken,
               "minutes an epoch of each": taken / lanes * ntu_epoch.STEPS_OF_AN_EPOCH / 6e4}


PARTS = {"limits": limits, "equality": equality, "steps": steps, "fifteen": fifteen, "selection": selecting,
         "probe": probing, "cells": cells, "views": viewing, "column": column, "ntu": ntu}

if __name__ == "__main__":
    main()
