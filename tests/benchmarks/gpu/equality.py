"""Whether a device computes what the CPU computes: a cell of each kind at its smoke preset, trained on both.

Random numbers of a CPU and a GPU differ, so views are drawn on the CPU here, or not random at all. What is compared is
every loss of every step and the features afterwards, in float32.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from repro.audiovisual import augment
from repro.audiovisual import pretrain as audiovisual
from repro.audiovisual import recipe as audiovisual_recipe
from repro.image import pretrain as image
from repro.image import recipe as image_recipe
from repro.image.augment import ShiftedView, View
from repro.run.learner import Learner
from repro.skeleton import pretrain as skeleton
from repro.skeleton import recipe as skeleton_recipe
from repro.skeleton import study as skeleton_study
from tests.benchmarks import image_throughput as images
from tests.benchmarks.gpu import clips
from tests.benchmarks.gpu.captured import Captured
from tests.benchmarks.stopwatch import largest, wait

CPU = torch.device("cpu")
TOLERANCE = {"losses": 2e-3, "features": 1e-2}  # relative; the optimiser magnifies the last bits
COUNTED = ("knn1", "categories")               # terms that jump from one whole number to the next


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is compared, by name."""
    return {
        "skeletons": lambda: skeletons_on(device),
        "skeletons, captured": lambda: captured_on(device),
        "images": lambda: images_on(device),
        "clips": lambda: clips_on(device),
    }


def skeletons_on(device: torch.device) -> dict[str, Any]:
    """All four terms, sequences as they are."""
    recipe = skeleton_recipe.smoke("synthetic", "AE+CE+AD+CD", precision="float32", flip=0.0, shear=0.0)
    data = skeleton_study.data_of(recipe)
    learners = [skeleton.Pretrainer(recipe, data, 0, where) for where in (CPU, device)]
    found = compared(*learners, lambda learner: learner.features(data)[0])
    return found | {"accuracies": [skeleton_study.measure(each) for each in learners]}


def captured_on(device: torch.device) -> dict[str, Any]:
    """Steps that are recorded and replayed beside plain ones, both on the device, with its random numbers."""
    recipe = skeleton_recipe.smoke("synthetic", "AE+CE+AD+CD", precision="float32", epochs=1, batch=64)
    data = skeleton_study.data_of(recipe)
    learners = [kind(recipe, data, 0, device) for kind in (skeleton.Pretrainer, Captured)]
    return compared(*learners, lambda learner: learner.features(data)[0])


class ImagesDrawnOnCpu(image.Pretrainer):
    """Random parameters of views are those of a CPU."""

    def _drawn(self, view: View | ShiftedView, pictures: Tensor, count: int, generator: torch.Generator) -> Tensor:
        draws = view.draw(count, *pictures.shape[2:], self.shuffle_generator)
        drawn = view.apply(pictures, type(draws)(*(rows.to(self.device) for rows in draws)))
        return drawn.contiguous(memory_format=self.memory_format)


def images_on(device: torch.device) -> dict[str, Any]:
    """SCE, which holds InfoNCE, ReSSL and Ceil."""
    recipe = image_recipe.smoke("cifar10", "sce", precision="float32", batch=8)
    data = images.made_up(24)
    learners = [ImagesDrawnOnCpu(recipe, data, 0, where) for where in (CPU, device)]
    index = torch.arange(len(data.labels))
    return compared(*learners, lambda learner: learner.features(index))


class ClipsDrawnOnCpu(audiovisual.Pretrainer):
    """Random parameters of views are those of a CPU."""

    def _augmented(self, view: Tensor) -> Tensor:
        view, recipe = view.to(self.device), self.recipe
        return augment.at_random(view, recipe.size, recipe.greyscale, generator=self.shuffle_generator)


def clips_on(device: torch.device) -> dict[str, Any]:
    """Selection by loss, the one without random numbers: the choice of the others is made of the device's."""
    changes = {"precision": "float32", "sampler": "ohem", "dictionary": 32, "pool": 64}
    recipe = audiovisual_recipe.smoke("synthetic", "cmacc", **changes)
    data = clips.made_up(64, recipe.size + 4, recipe.window, CPU)
    learners = [ClipsDrawnOnCpu(recipe, data, 0, where) for where in (CPU, device)]
    index = torch.arange(32)

    @torch.no_grad()
    def features(learner: audiovisual.Pretrainer) -> Tensor:
        learner.towers.eval()
        view = augment.centred(learner.data.centred("video", index)[:, 0], recipe.size)
        return learner.towers("video", view)[1]

    return compared(*learners, features)


def compared(first: Learner, second: Learner, features: Callable[[Learner], Tensor]) -> dict[str, Any]:
    """The largest relative differences of losses, over all steps of both, and of the features they arrive at."""
    losses = [place for place, name in enumerate(first.terms) if not name.startswith(COUNTED)]
    differences = []
    for _ in range(first.total_steps):
        expected, found = (_done(learner)[losses] for learner in (first, second))
        differences.append(float(((found - expected).abs() / expected.abs().clamp(min=1e-3)).max()))
    expected, found = (features(learner).cpu() for learner in (first, second))
    off = {"losses": largest(differences), "features": float((found - expected).norm() / expected.norm())}
    equal = all(off[name] <= limit for name, limit in TOLERANCE.items())
    return {"steps": len(differences), "difference": off, "tolerance": TOLERANCE, "equal": equal}


def _done(learner: Learner) -> Tensor:
    values = learner.step()
    wait(values.device)
    return values.cpu()
