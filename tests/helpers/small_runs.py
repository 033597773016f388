"""A small run of each modality from files to its row of a table, by the commands a reader gives.

Its data are prepared, it is trained, saved at every report, evaluated, and its result is stored, in about a second.
`work` runs in a process of `nursery`; it says what it does in the file `phases`, a line "TIME PHASE" as each begins.
"""

import functools
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from image_files import declared
from made_clips import mp4_with_sound
from made_up_images import use_tiny_trunk
from ntu_files import FIRST, body, recording, text
from pytest import MonkeyPatch
from sklearn.datasets import load_digits

from repro import cli, papers
from repro.audiovisual import decode
from repro.audiovisual import recipe as audiovisual_recipe
from repro.audiovisual.finetune import FineTuner
from repro.data import prepared
from repro.image import recipe as image_recipe
from repro.image import study as image
from repro.run import fit as fitting
from repro.run import training as run_training
from repro.run.store import RunFolder
from repro.skeleton import recipe as skeleton_recipe
from repro.skeleton import study as skeleton

PHASES = ("preparation", "training", "checkpoint", "evaluation", "result", "command")  # the last around the others
PAUSE = 0.01  # seconds that a slow disk takes for each part of a write
COPY = "part.npz"
COMMANDS = {
    "skeleton": [
        "data prepare ntu --subset --workers 1",
        "run taxonomy --dataset ntu --subset --objectives AE+CE+AD+CD",
    ],
    "image": [f"data import cifar10 {COPY}", "run image_methods --dataset cifar10 --subset --method sce"],
    "audiovisual": [
        "data prepare ucf101 --subset --size 24 --workers 1",
        "run cross_modal --dataset ucf101 --subset --method cmacc --extra-layer true --sampler gradient "
        "--targets ucf101",
    ],
}
CHOICES = "--preset smoke --device cpu --engine inline"
MEASURED = {
    "skeleton": (skeleton, "_accuracies"), "image": (image, "_accuracies"), "audiovisual": (FineTuner, "accuracy"),
}
around: list[str] = []  # phases that have begun and not ended
TINY = {
    skeleton_recipe: {
        "units": 8, "projection": 6, "dictionary": 20, "sequence_dictionary": 12, "momentum": 0.9, "batch": 8,
        "epochs": 6, "precision": "float32", "probe_epochs": 100, "probe_batch": 16,
    },
    image_recipe: {
        "size": 8, "resize": 8, "batch": 16, "epochs": 6, "dictionary": 40, "projection": 6, "warmup": 0,
        "momentum": 0.9, "precision": "float32", "channels_last": False, "small": True, "probe_epochs": 20,
        "probe_batch": 16, "probe_view": "shifted",
    },
    audiovisual_recipe: {
        "video_trunk": "small_video", "audio_trunk": "small_audio", "width": 32, "embedding": 8, "size": 21,
        "window": 4, "groups": 1, "batch": 4, "dictionary": 8, "pool": 12, "epochs": 6, "iterations": 0, "warmup": 4,
        "finetune_epochs": 4, "finetune_batch": 4, "finetune_window": 4, "finetune_windows": 2,
    },
}


def make_data(root: Path) -> None:
    """Write the files of all three below a folder of real data: recordings and clips made up, and bundled digits."""
    _make_recordings(root / "ntu" / "nturgb+d_skeletons")
    _make_clips(root / "ucf101")
    digits = load_digits()
    images = np.repeat((digits.images * (255 / 16)).astype(np.uint8)[..., None], 3, axis=3)
    parts = {"train": slice(80), "test": slice(-30, None)}
    np.savez(root / COPY, **{f"x_{name}": images[part] for name, part in parts.items()},
             **{f"y_{name}": digits.target[part] for name, part in parts.items()})


def _make_recordings(folder: Path) -> None:
    """36 skeletons of two actions in the layout of NTU RGB+D."""
    folder.mkdir(parents=True)
    people = itertools.product((1, 38, 3), (1, 2, 3), (1, 2), (1, 2))
    for seed, (person, camera, take, setup) in enumerate(people):
        name = f"S{setup:03d}C{camera:03d}P{person:03d}R{take:03d}A{1 + (person + take) % 2:03d}"
        frames = recording((FIRST, 0, body(12 + 3 * take + camera, seed)))
        (folder / f"{name}.skeleton").write_bytes(text(frames))


def _make_clips(folder: Path) -> None:
    """24 clips with sound of two classes in the layout of UCF101."""
    (folder / "lists").mkdir(parents=True)
    train, test = [], []
    for number in range(24):
        kind = number % 2
        (folder / f"v_{number:02d}.mp4").write_bytes(mp4_with_sound(0.6 + number / 50, codec="mpeg4"))
        place = f"{('Archery', 'Biking')[kind]}/v_{number:02d}.avi"
        if number < 16:
            train.append(f"{place} {kind + 1}\n")
        else:
            test.append(f"{place}\n")
    lists = {"classInd": ["1 Archery\n", "2 Biking\n"]}
    for split in (1, 2, 3):
        lists |= {f"trainlist0{split}": train, f"testlist0{split}": test}
    for name, lines in lists.items():
        (folder / "lists" / f"{name}.txt").write_text("".join(lines))


def warm_up() -> None:
    """Do once what takes seconds the first time."""
    papers.tables()  # commands import them when they need them
    decode.log_mel(decode.aligned(decode.read_sound(mp4_with_sound(0.6, codec="mpeg4")), 0.0, 6))


def work(root: Path, modality: str, *options: str) -> None:
    """Give the modality's commands, with runs in `root / "runs"`.

    Args:
        root: of the process.
        modality: a name of `COMMANDS`.
        options: "slow", on a disk so slow that a kill can come between the parts of a write; "prepared", leave the
            first command out.
    """
    os.environ["REPRO_RUNS"] = str(root / "runs")
    data = Path(os.environ["REPRO_DATA"])
    with MonkeyPatch.context() as patch:
        make_small(patch)
        announce(patch, modality, root / "phases")
        if "slow" in options:
            slow_down(patch)
        prepare, run = COMMANDS[modality]
        with phase("command", root / "phases"):
            if "prepared" not in options:
                with phase("preparation", root / "phases"):
                    command(prepare.replace(COPY, str(data / COPY)))
            command(f"{run} {CHOICES}")


def command(words: str) -> None:
    """What `repro WORDS` does."""
    sys.argv = ["repro", *words.split()]
    try:
        cli.main()
    except SystemExit as end:
        if end.code:
            raise


def make_small(patch: MonkeyPatch) -> None:
    """Let "smoke" stand for these recipes, small parts be prepared at a time and pictures be digits, until `patch` is
    undone.
    """
    use_tiny_trunk(patch)
    declared(patch, "cifar10", images={"size": 8})
    patch.setattr(prepared, "CHUNK", 4)
    for module, tiny in TINY.items():
        def small(dataset, method, module=module, tiny=tiny, **changes):
            return module.paper(dataset, method, **(tiny | changes))

        patch.setitem(module.PRESETS, "smoke", small)


def announce(patch: MonkeyPatch, modality: str, file: Path) -> None:
    """Write every phase of the run down as it begins, and save a checkpoint at every report."""
    def training(*arguments, **named):
        with phase("training", file):
            return (yield from fitting.fit(*arguments, checkpoint_seconds=0, **named))

    patch.setattr(run_training, "fit", training)
    module, name = MEASURED[modality]
    patch.setattr(fitting, "save_checkpoint", within("checkpoint", fitting.save_checkpoint, file))
    patch.setattr(module, name, within("evaluation", getattr(module, name), file))
    patch.setattr(RunFolder, "finish", within("result", RunFolder.finish, file))


def within(name: str, function: Callable, file: Path) -> Callable:
    """The function, its calls phases of that name."""
    @functools.wraps(function)
    def call(*arguments, **named):
        with phase(name, file):
            return function(*arguments, **named)

    return call


@contextmanager
def phase(name: str, file: Path) -> Iterator[None]:
    """Write down that a phase begins, and at its end that the one around it goes on."""
    around.append(name)
    _say(file, name)
    yield
    around.pop()
    _say(file, around[-1] if around else "end")


def _say(file: Path, name: str) -> None:
    with file.open("a") as lines:
        lines.write(f"{time.monotonic()} {name}\n")


def slow_down(patch: MonkeyPatch) -> None:
    """Let writing and moving a file take several pauses, with half of it written in the longest."""
    def paused(function):
        def call(*arguments, **named):
            time.sleep(PAUSE)
            function(*arguments, **named)
            time.sleep(PAUSE)

        return call

    def write_bytes(path, contents):
        with path.open("wb") as file:
            file.write(contents[: len(contents) // 2])
            file.flush()
            time.sleep(5 * PAUSE)
            file.write(contents[len(contents) // 2 :])

    patch.setattr(os, "fsync", paused(os.fsync))
    patch.setattr(os, "replace", paused(os.replace))
    patch.setattr(Path, "write_bytes", write_bytes)
    patch.setattr(Path, "write_text", lambda path, text, encoding="utf-8": write_bytes(path, text.encode(encoding)))
