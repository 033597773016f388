"""What a GPU does with the steps of training, in less than five minutes: a table, and a JSON file that grows with it.

    python3 -m benchmarks.gpu [--output gpu.json] [--parts steps,fifteen] [--device cuda]

Parts, in this order: equality (a recorded step beside the plain one), steps (as they are, recorded, and how long the
device is busy), fifteen (one step of each of NW-UCLA's objectives, in lanes), selection, probe, views, ntu (steps of
NTU RGB+D's size, alone and in lanes). A part that fails leaves the others alone; nothing begins after four minutes.
With `--device cpu` all sizes are tiny, which shows that everything runs and no more. Needs torch and torchvision.
"""

import contextlib
import functools
import json
import os
import statistics
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

from benchmarks import selection, skeleton_step
from benchmarks.stopwatch import options, pictures, sequences, turns
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

TIME = 240  # seconds after which nothing begins; the longest takes 50
WHOLE = "AE+CE+AD+CD"
TINY = {"units": 8, "projection": 8, "dictionary": 16, "sequence_dictionary": 8, "batch": 8}
Row = dict[str, Any]
Make = Callable[[], Learner]


def main() -> None:
    """Measure part by part."""
    settings = options(__doc__, output="gpu.json", parts=",".join(PARTS), device="cuda")
    device, began, output = devices.resolve(settings.device), time.perf_counter(), Path(settings.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"hardware": devices.hardware(device)}
    print(results["hardware"])
    with devices.threads(1):
        for name in settings.parts.split(","):
            for row in rows_of(name, device, began):
                results.setdefault(name, []).append(row)
                output.write_text(json.dumps(results, indent=1) + "\n")
                print(name, row, flush=True)
    print(f"{time.perf_counter() - began:.0f} s in all; written to {output}")


def rows_of(name: str, device: torch.device, began: float) -> Iterator[Row]:
    """What a part measures, row by row; of one that fails, the error."""
    rows = PARTS[name](device, device.type == "cpu")
    while time.perf_counter() - began < TIME:
        try:
            yield next(rows)
        except StopIteration:
            return
        except Exception as error:
            traceback.print_exc()
            yield {"what": name, "error": f"{type(error).__name__}: {error}"}
            return
    yield {"what": name, "error": f"no time was left after {TIME} s"}


def seconds(work: Callable[[], object], device: torch.device, repeats: int = 5, warm_up: int = 2) -> float:
    """Time of one call, until the device has done it: the median of several."""
    return statistics.median(turns({"": lambda: (work(), wait(device))}, repeats, warm_up=warm_up)[""])


def wait(device: torch.device) -> None:
    """Until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def in_turns(makes: list[Make], device: torch.device, count: int, warm_up: int = WARM_UP + 2) -> float:
    """Milliseconds of one step of every learner; of several each has a stream and takes some steps at a time."""
    streams = [torch.cuda.Stream() if device.type == "cuda" and len(makes) > 1 else None for _ in makes]
    learners: list[Learner] = []
    for stream, make in zip(streams, makes, strict=True):
        with torch.cuda.stream(stream):
            learners.append(make())
            for _ in range(warm_up):
                learners[-1].step()
    wait(device)
    start, some = time.perf_counter(), min(count, 10)
    for _ in range(count // some):
        for stream, learner in zip(streams, learners, strict=True):
            with torch.cuda.stream(stream):
                for _ in range(some):
                    learner.step()
    wait(device)
    return 1e3 * (time.perf_counter() - start) / (count // some * some)


# ---------------------------------------------------------------------------------------------- learners


@functools.cache
def skeletons(tiny: bool) -> SkeletonSet:
    """NW-UCLA, or made-up sequences where it is not at hand."""
    if tiny:
        return sequences(torch.arange(4, 10).repeat(8), 6)
    with contextlib.suppress(FileNotFoundError):
        return load("ucla")
    return skeleton_step.made_up("ucla", 1013)


def on_skeletons(objectives: str, device: torch.device, tiny: bool) -> Learner:
    """A learner of the printed recipe."""
    recipe = skeleton_recipe("ucla", objectives, precision="float32", **(TINY if tiny else {}))
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


def on_clips(precision: str, device: torch.device, tiny: bool) -> Learner:
    """A learner of the printed recipe, but for a dictionary of 128: the paper's 3,840 would want more clips."""
    changes: dict[str, Any] = {"dictionary": 128}
    if tiny:
        changes = {"window": 4, "size": 8, "width": 32, "embedding": 8, "batch": 4, "dictionary": 4, "pool": 64,
                   "groups": 1}
    recipe = audiovisual_recipe("kinetics_sound", "cmacc", precision=precision, **changes)
    return FilledPools(recipe, made_up_clips(*((64, 10) if tiny else (384, 256)), recipe.window, device), 0, device)


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


def learners(device: torch.device, tiny: bool, *, small_clips: bool = False) -> dict[str, Make]:
    """What takes steps, by name."""
    makes: dict[str, Make] = {}
    for objectives in ("CE", "AD", WHOLE):
        makes[f"NW-UCLA, {objectives}"] = functools.partial(on_skeletons, objectives, device, tiny)
    for method in ("sce", "jcl"):
        makes[f"CIFAR-10, {method}"] = functools.partial(on_images, method, device, tiny)
    for precision in ("float32", "bfloat16"):
        makes[f"clips, cmacc, {precision}"] = functools.partial(on_clips, precision, device, tiny or small_clips)
    return makes


# ---------------------------------------------------------------------------------------------- parts


def equality(device: torch.device, tiny: bool) -> Iterator[Row]:
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


def steps(device: torch.device, tiny: bool) -> Iterator[Row]:
    """Milliseconds of a step as it is and recorded, and how long the device is busy."""
    for what, make in learners(device, tiny).items():
        count = 2 if tiny else 4 if what.startswith("clips") else 60
        learner = make()
        learner.recorded.records = False
        row = {"what": what, "as it is, ms": in_turns([lambda learner=learner: learner], device, count // 2)}
        if device.type == "cuda":
            row |= busy(learner, device)
            learner.recorded.records = not learner.unrecordable()
        row["recorded, ms"] = in_turns([lambda learner=learner: learner], device, count)
        if device.type == "cuda":
            row["MiB"] = torch.cuda.max_memory_allocated(device) // 2**20
            torch.cuda.reset_peak_memory_stats(device)
        yield row
        del learner
    if not tiny:  # what TF32, which training does not allow, would gain
        for objectives in ("CE", WHOLE):
            torch.backends.cudnn.allow_tf32 = True
            taken = in_turns([functools.partial(on_skeletons, objectives, device, tiny)], device, 60)
            torch.backends.cudnn.allow_tf32 = False
            yield {"what": f"NW-UCLA, {objectives}, TF32 in the GRU", "recorded, ms": taken}


def busy(learner: Learner, device: torch.device) -> Row:
    """Kernels of a plain step, and milliseconds that the device is busy with them."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        learner.step()
        wait(device)
    events = profiler.key_averages()
    kernels = [event for event in events if event.device_type == DeviceType.CUDA and not event.is_user_annotation]
    taken = sum(event.self_device_time_total for event in kernels) / 1e3
    return {"kernels": sum(event.count for event in kernels), "busy, ms": taken}


def fifteen(device: torch.device, tiny: bool) -> Iterator[Row]:
    """Milliseconds of one step of each of NW-UCLA's fifteen objectives, in lanes."""
    makes = [functools.partial(on_skeletons, objectives, device, tiny) for objectives in SUBSETS]
    yield {"what": "a step of each of fifteen", "ms": in_turns(makes, device, 2 if tiny else 60)}


def selecting(device: torch.device, tiny: bool) -> Iterator[Row]:
    """Milliseconds of a selection as it is, with its checks, and recorded."""
    size = {"pool": 300, "features": 16, "chosen": 8} if tiny else {"pool": 38400, "features": 512, "chosen": 128}
    for strategy, normalised in (("gradient", False), ("gradient", True), ("feature", False)):
        plain = selection.selection(device, strategy=strategy, normalised=normalised, **size)
        unchecked = functools.partial(plain, checked=False)
        taken = both(plain, unchecked, plain.keywords["generator"], device)
        yield {"what": strategy + ", normalised" * normalised} | taken


def both(
    plain: Callable[[], object], recorded: Callable[[], object], generator: torch.Generator, device: torch.device
) -> Row:
    """Milliseconds of a call as it is, and of the same, or one of equal work, recorded."""
    replayed = Recorded(recorded, device, generators=[generator] if device.type == "cuda" else [])
    calls = {"as it is, ms": plain, "recorded, ms": replayed}
    return {name: 1e3 * seconds(call, device, warm_up=5) for name, call in calls.items()}


def viewing(device: torch.device, tiny: bool) -> Iterator[Row]:
    """Milliseconds of the views of a batch."""
    for name, view in (("strong", strong), ("weak", weak)):
        for count, side, size in ((8, 9, 8),) if tiny else ((256, 32, 32), (128, 256, 224)):
            images = torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, device=device)
            generator = torch.Generator(device).manual_seed(0)
            make = functools.partial(view(size, normalisation("cifar10")), images, generator)
            yield {"what": f"{name}, {count} of {size} pixels"} | both(make, make, generator, device)


def probing(device: torch.device, tiny: bool) -> Iterator[Row]:
    """Seconds of a linear probe of NW-UCLA's size, 70 epochs, and of one epoch on 50,000 features of images."""
    for what, count, epochs, batch in (("NW-UCLA, 70 epochs", 1013, 70, 64), ("CIFAR-10, an epoch", 50_000, 1, 256)):
        count, features, epochs = (20, 8, 2) if tiny else (count, 512, epochs)
        train, labels = torch.randn(count, features, device=device), torch.arange(count, device=device) % 10
        settings = {"classes": 10, "batch": batch, "rates": cosine_rates(epochs, 0.1, 0.0), "momentum": 0.9, "seed": 0}
        probe = functools.partial(linear_predictions, train, labels, train[: count // 2], **settings)
        row: Row = {"what": what, "recorded, s": seconds(probe, device, repeats=3, warm_up=1)}
        with mock.patch.dict(os.environ, REPRO_RECORD="0"):
            yield row | {"as it is, s": seconds(probe, device, repeats=1, warm_up=1)}


def ntu(device: torch.device, tiny: bool) -> Iterator[Row]:
    """Milliseconds of a step of NTU RGB+D's size, alone and of each of several lanes, and minutes of an epoch."""
    data = skeletons(True) if tiny else skeleton_step.made_up("ntu", 16_384)

    def make(objectives: str, layers: int, units: int) -> Learner:
        shape = {"layers": layers, "units": units} | (TINY if tiny else {})
        return skeleton.Pretrainer(skeleton_recipe("ntu", objectives, precision="float32", **shape), data, 0, device)

    some = ("CE", "AE+CE+AD", WHOLE)
    for layers, units in ((1, 512), (3, 512), (1, 1024)):
        for lanes in (*((objectives,) for objectives in some), some * 2):
            makes = [functools.partial(make, objectives, layers, units) for objectives in lanes]
            warm_up = 3 if tiny else 30  # some for every bucket
            taken = in_turns(makes, device, 2 if tiny else 20, warm_up)
            minutes = taken / len(lanes) * skeleton_step.STEPS_OF_AN_EPOCH / 6e4
            what = lanes[0] if len(lanes) == 1 else f"{len(lanes)} lanes"
            yield {"what": f"{layers} x {units}, {what}", "ms": taken, "minutes of an epoch of each": minutes}


PARTS = {"equality": equality, "steps": steps, "fifteen": fifteen, "selection": selecting, "probe": probing,
         "views": viewing, "ntu": ntu}

if __name__ == "__main__":
    main()
