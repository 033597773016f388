"""The strong view of images: ours beside kornia's batched operations and torchvision's v2, in one process, in turns.

    python3 -m benchmarks.image_augment [--size 32] [--batch 256] [--threads 2]

All three take a batch of uint8 noise on the CPU to float32 normalised views with the same operations and ranges:
random resized crop, flip, colour jitter, greyscale, Gaussian blur (kernel of 23 pixels, or the largest that fits) and
normalisation. They differ where the libraries do: kornia draws one order of colour jitter per batch and does not
antialias, and v2, called on one image after another, works on uint8 until it normalises. Needs the dependency group
`bench`. Random numbers are fixed, times are not: quote ratios of one call.
"""

from collections.abc import Callable

import kornia.augmentation
import torch
from torch import Tensor
from torchvision.transforms import v2

from benchmarks.stopwatch import options, show, turns
from repro.image.augment import View, normalisation, strong
from repro.image.operations import KERNEL_SIZE


def kornia_batched(view: View, kernel: int) -> Callable[[Tensor], Tensor]:
    """The same operations of kornia on the whole batch."""
    transform = torch.nn.Sequential(
        kornia.augmentation.RandomResizedCrop((view.size, view.size), view.scale, view.ratio, align_corners=False),
        kornia.augmentation.RandomHorizontalFlip(p=view.flip),
        kornia.augmentation.ColorJitter(*view.strength, p=view.jitter),
        kornia.augmentation.RandomGrayscale(p=view.greyscale),
        kornia.augmentation.RandomGaussianBlur((kernel, kernel), view.sigma, p=view.blur),
        kornia.augmentation.Normalize(*map(torch.tensor, view.normalisation)),
    )
    return lambda images: transform(images.float() / 255)


def torchvision_per_sample(view: View, kernel: int) -> Callable[[Tensor], Tensor]:
    """The same operations of torchvision's v2 on one image after another."""
    transform = v2.Compose([
        v2.RandomResizedCrop(view.size, view.scale, view.ratio),
        v2.RandomHorizontalFlip(view.flip),
        v2.RandomApply([v2.ColorJitter(*view.strength)], view.jitter),
        v2.RandomGrayscale(view.greyscale),
        v2.RandomApply([v2.GaussianBlur(kernel, view.sigma)], view.blur),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(*view.normalisation),
    ])
    return lambda images: torch.stack([transform(image) for image in images])


@torch.no_grad()
def main() -> None:
    """Print images per second of each, and how many times as many ours makes."""
    settings = options(__doc__, size=32, batch=256, threads=2, rounds=15, warm_up=3)
    torch.set_num_threads(settings.threads)
    torch.manual_seed(0)
    images = torch.randint(0, 256, (settings.batch, 3, settings.size, settings.size), dtype=torch.uint8)
    view, draws = strong(settings.size, normalisation("cifar10")), torch.Generator().manual_seed(0)
    kernel = min(KERNEL_SIZE, 2 * view.size - 1)  # pixels of a side, as of our blur
    kinds = {"ours": lambda images: view(images, generator=draws), "kornia": kornia_batched(view, kernel),
             "v2 per sample": torchvision_per_sample(view, kernel)}
    works = {name: lambda make=make: make(images) for name, make in kinds.items()}
    taken = turns(works, settings.rounds, warm_up=settings.warm_up)
    print(f"{settings.batch} images of {settings.size} pixels, {settings.threads} threads; least / median / most")
    for name in ("kornia", "v2 per sample"):
        show({"ours": taken["ours"], name: taken[name]}, settings.batch, "images", name)


if __name__ == "__main__":
    main()
