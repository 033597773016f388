"""Images per second of MoCo v2 training on a ResNet-18: ours beside a plain loop of lightly's parts, in one process.

    python3 -m benchmarks.image_throughput [--threads 2] [--steps 10] [--stems small,stock]

Two strong views of made-up images of 32 x 32 pixels, a dictionary of 4,096 keys. The plain loop has lightly's MoCo v2
transform on PIL images in two worker processes, its projection head, memory bank and momentum update, float32 and
torch's own memory format. All take a few steps in turns, several times. Needs the group `bench`.
"""

import argparse
import copy
import functools
from collections.abc import Callable, Iterator

import torch
import torchvision
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, default_collate
from torchvision.transforms.functional import to_pil_image

from benchmarks.stopwatch import CPU, Comparison, compare, pictures
from repro.image.model import TrimmedConv2d
from repro.image.pretrain import Pretrainer
from repro.image.recipe import paper

BATCH = {"small": 128, "stock": 256}
EPOCH = 40  # steps, so that the plain loop's workers seldom start anew
LAST = "bfloat16, channels last"
SETTINGS = {
    "float32": {"precision": "float32", "channels_last": False},
    "float32, channels last": {"precision": "float32", "channels_last": True},
    LAST: {"precision": "bfloat16", "channels_last": True},
}


def learner(stem: str, **changes: object) -> Pretrainer:
    """Ours; nearest neighbours are measured once, in the first step."""
    batch = BATCH[stem]
    recipe = paper("cifar10", "moco", small=stem == "small", head="moco_v2", projection=128, batch=batch, epochs=100000,
                   **changes)
    return Pretrainer(recipe, pictures(EPOCH * batch), seed=0, device=CPU)


def with_whole_kernels(ours: Pretrainer) -> Pretrainer:
    """The learner with torch's own convolutions, which also multiply the padding."""
    for network in (ours.model, ours.keys):
        for module in network.modules():
            if isinstance(module, TrimmedConv2d):
                module.forward = functools.partial(nn.Conv2d.forward, module)
    return ours


def plain(stem: str) -> Iterator[None]:
    """A step at a time of the loop in lightly's documentation of MoCo."""
    from lightly.loss import NTXentLoss
    from lightly.models.modules.heads import MoCoProjectionHead
    from lightly.models.utils import deactivate_requires_grad, update_momentum
    from lightly.transforms import MoCoV2Transform

    model = torchvision.models.resnet18()
    model.fc = MoCoProjectionHead(512, 512, 128)
    if stem == "small":
        model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    momentum_model = copy.deepcopy(model)
    deactivate_requires_grad(momentum_model)
    loss_function = NTXentLoss(temperature=0.2, memory_bank_size=(4096, 128))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.06, momentum=0.9, weight_decay=5e-4)
    images = [to_pil_image(image) for image in pictures(EPOCH * BATCH[stem]).images]
    loader = DataLoader(images, BATCH[stem], shuffle=True, drop_last=True, num_workers=2, persistent_workers=True,
                        collate_fn=functools.partial(two_views, MoCoV2Transform(input_size=32)))
    while True:
        for first, second in loader:
            update_momentum(model, momentum_model, 0.99)
            query = model(first)
            with torch.no_grad():
                key = momentum_model(second)
            loss = loss_function(query, key)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            yield


def two_views(transform: Callable[[Image.Image], list[Tensor]], batch: list[Image.Image]) -> list[Tensor]:
    """Two views of every picture of a batch, in a worker."""
    return default_collate([transform(picture) for picture in batch])


def works(settings: argparse.Namespace) -> Iterator[Comparison]:
    """Every setting, for every stem, beside the plain loop."""
    for stem in settings.stems.split(","):
        steps = {name: learner(stem, **changes).step for name, changes in SETTINGS.items()}
        steps["the same, whole kernels"] = with_whole_kernels(learner(stem, **SETTINGS[LAST])).step
        steps["lightly's parts"] = functools.partial(next, plain(stem))
        several = {name: lambda step=step: [step() for _ in range(settings.steps)] for name, step in steps.items()}
        title = f"{stem} stem, batch {BATCH[stem]}"
        yield Comparison(title, several, settings.steps * BATCH[stem], "images", "lightly's parts")


if __name__ == "__main__":
    compare(__doc__, works, rounds=3, steps=10, stems="small,stock")
