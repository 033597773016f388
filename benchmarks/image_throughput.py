"""Images per second of MoCo v2 training on a ResNet-18: ours beside a plain loop of lightly's parts, in one process.

    python3 -m benchmarks.image_throughput [--threads 2] [--steps 10] [--stems small,stock]

Two strong views of made-up images of 32 x 32 pixels, a dictionary of 4,096 keys. The plain loop has lightly's MoCo v2
transform on PIL images in two worker processes, its projection head, memory bank and momentum update, float32 and
torch's own memory format. All take a few steps in turns, several times. Needs the group `bench`.
"""

import copy
import functools
from collections.abc import Iterator

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from benchmarks.stopwatch import CPU, options, pictures, show, turns
from repro.image.pretrain import Pretrainer
from repro.image.recipe import paper
from repro.image.trimmed import TrimmedConv2d

BATCH = {"small": 128, "stock": 256}
ROUNDS = 3
EPOCH = 40  # steps, so that the plain loop's workers seldom start anew
BEST = "bfloat16, channels last"
SETTINGS = {
    "float32": {"precision": "float32", "channels_last": False},
    "float32, channels last": {"precision": "float32", "channels_last": True},
    BEST: {"precision": "bfloat16", "channels_last": True},
}


def main() -> None:
    """Print images per second of every setting and its ratio to the plain loop."""
    settings = options(__doc__, threads=2, steps=10, stems="small,stock")
    torch.set_num_threads(settings.threads)
    for stem in settings.stems.split(","):
        ours = {name: learner(stem, BATCH[stem], **changes) for name, changes in SETTINGS.items()}
        ours["the same, whole kernels"] = with_whole_kernels(learner(stem, BATCH[stem], **SETTINGS[BEST]))
        works = {"lightly's parts": functools.partial(next, plain(stem, BATCH[stem]))}
        works |= {name: each.step for name, each in ours.items()}
        print(f"{stem} stem, batch {BATCH[stem]}, {settings.threads} threads; least / median / most of {ROUNDS} rounds")
        show(turns(works, ROUNDS, calls=settings.steps), BATCH[stem], "images", "lightly's parts")


def learner(stem: str, batch: int, **changes) -> Pretrainer:
    """Ours; nearest neighbours are measured once, in the first step."""
    recipe = paper("cifar10", "moco", small=stem == "small", head="moco_v2", projection=128, batch=batch, epochs=100000,
                   **changes)
    return Pretrainer(recipe, pictures(EPOCH * batch), seed=0, device=CPU)


def with_whole_kernels(each: Pretrainer) -> Pretrainer:
    """The learner with torch's own convolutions, which also multiply the padding."""
    for network in (each.model, each.keys):
        for module in network.modules():
            if isinstance(module, TrimmedConv2d):
                module.forward = functools.partial(nn.Conv2d.forward, module)
    return each


def plain(stem: str, batch: int) -> Iterator[None]:
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
    views = Views(pictures(EPOCH * batch).images, MoCoV2Transform(input_size=32))
    loader = DataLoader(views, batch, shuffle=True, drop_last=True, num_workers=2, persistent_workers=True)
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


class Views(Dataset):
    """PIL pictures of the images (n, 3, H, W), transformed into two views."""

    def __init__(self, images: Tensor, transform) -> None:
        self.pictures = [Image.fromarray(np.asarray(image.permute(1, 2, 0))) for image in images]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> list[Tensor]:
        return self.transform(self.pictures[index])


if __name__ == "__main__":
    main()
