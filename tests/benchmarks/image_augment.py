"""The strong view of images: ours beside kornia's batched operations and torchvision's v2, in one process, in turns.

    python3 -m tests.benchmarks.image_augment [--size 32] [--batch 256] [--threads 2]

All three take a batch of uint8 noise on the CPU to float32 normalised views with the same operations and ranges:
random resized crop, flip, colour jitter, greyscale, Gaussian blur (kernel of 23 pixels, or the largest that fits) and
normalisation. They differ where the libraries do: kornia draws one order of colour jitter per batch and does not
antialias, and v2, called on one image after another, works on uint8 until it normalises. Needs the dependency group
`bench`. Random numbers are fixed, times are not: quote ratios of one call.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import kornia.augmentation
import torch
from torch import Tensor
from torchvision.transforms import v2

from repro.image.augment import View, normalisation, strong
from repro.image.operations import KERNEL_SIZE
from tests.benchmarks.spread import ratios


def ours(view: View) -> Callable[[Tensor], Tensor]:
    """The view with a generator of its own."""
    generator = torch.Generator().manual_seed(0)
    return lambda images: view(images, generator=generator)


def kornia_batched(view: View) -> Callable[[Tensor], Tensor]:
    """The same operations of kornia on the whole batch."""
    kernel = kernel_size(view)
    transform = torch.nn.Sequential(
        kornia.augmentation.RandomResizedCrop((view.size, view.size), view.scale, view.ratio, align_corners=False),
        kornia.augmentation.RandomHorizontalFlip(p=view.flip),
        kornia.augmentation.ColorJitter(*view.strength, p=view.jitter),
        kornia.augmentation.RandomGrayscale(p=view.greyscale),
        kornia.augmentation.RandomGaussianBlur((kernel, kernel), view.sigma, p=view.blur),
        kornia.augmentation.Normalize(*map(torch.tensor, view.normalisation)),
    )
    return lambda images: transform(images.float() / 255)


def torchvision_per_sample(view: View) -> Callable[[Tensor], Tensor]:
    """The same operations of torchvision's v2 on one image after another."""
    transform = v2.Compose([
        v2.RandomResizedCrop(view.size, view.scale, view.ratio),
        v2.RandomHorizontalFlip(view.flip),
        v2.RandomApply([v2.ColorJitter(*view.strength)], view.jitter),
        v2.RandomGrayscale(view.greyscale),
        v2.RandomApply([v2.GaussianBlur(kernel_size(view), view.sigma)], view.blur),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(*view.normalisation),
    ])
    return lambda images: torch.stack([transform(image) for image in images])


def kernel_size(view: View) -> int:
    """Pixels of a side of our blur's kernel."""
    return min(KERNEL_SIZE, 2 * view.size - 1)


def seconds(options: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds of a batch, of every round, by name."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    view = strong(options.size, normalisation("cifar10"))
    kinds = {"ours": ours(view), "kornia": kornia_batched(view), "v2 per sample": torchvision_per_sample(view)}
    images = torch.randint(0, 256, (options.batch, 3, options.size, options.size), dtype=torch.uint8)
    taken = {name: [] for name in kinds}
    for number in range(options.warm_up + options.rounds):
        for name, kind in kinds.items():
            start = time.perf_counter()
            with torch.no_grad():
                kind(images)
            if number >= options.warm_up:
                taken[name].append(time.perf_counter() - start)
    return taken


def main() -> None:
    """Print images per second of each, and last the ratios of ours to the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--warm-up", type=int, default=3)
    options = parser.parse_args()
    taken = seconds(options)
    print(f"{options.batch} images of {options.size} pixels, {options.threads} threads, images a second:")
    for name, found in taken.items():
        print(f"{name:<16}{options.batch / statistics.median(found):10,.0f}")
    print("ours to the others, least / median / most of the rounds: "
          + "; ".join(f"{name} {ratios(taken[name], taken['ours'])}" for name in ("kornia", "v2 per sample")))


if __name__ == "__main__":
    main()
