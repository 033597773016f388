"""How alike the features of an image's augmentations are, in one pass over many images (JCL supplement, Fig. M.3)."""

from collections.abc import Iterator

import torch
from pandas import DataFrame
from torch import Tensor
from tqdm.auto import tqdm

from repro.image import augment
from repro.image.augment import NORMALISATION
from repro.image.batches import batches_of
from repro.image.data import ImageSet
from repro.image.model import ImageModel
from repro.image.recipe import ImageRecipe
from repro.report.histograms import concentration, mean_direction


@torch.no_grad()
def similarity_and_variance(
    model: ImageModel,
    recipe: ImageRecipe,
    data: ImageSet,
    *,
    images: int,
    augmentations: int,
    seed: int,
    device: torch.device,
    batch: int = 256,
) -> DataFrame:
    """Mean similarity and mean variance of pooled features over strong views of every image.

    Of a batch only the sum of its unit vectors is kept, so that memory does not grow with images or augmentations.

    Args:
        model: as `image.cell.trained_model` returns it.
        recipe: of its training: the size of views, precision, memory format.
        data: the data set; of its images for pre-training some are drawn.
        images: how many, or fewer if there are no more.
        augmentations: views of each image, at least 1.
        seed: of the choice of images and their views.
        device: where to compute.
        batch: images encoded at a time.

    Returns:
        One row per image: similarity, the mean cosine over all pairs of views, a view with itself included; variance,
        the mean over the d coordinates of the biased variance, which is (1 - similarity) / d.
    """
    members = data.pretrain.nonzero().flatten()
    chosen = members[torch.randperm(len(members), generator=torch.Generator().manual_seed(seed))[:images]]
    view = augment.strong(recipe.size, NORMALISATION[recipe.dataset])
    source = batches_of(data, [view] * augmentations, device)
    generator = torch.Generator(device).manual_seed(seed)
    memory_format = torch.channels_last if recipe.channels_last else torch.contiguous_format
    model = model.to(device, memory_format=memory_format).eval()

    def encoded(pictures: list[Tensor]) -> Iterator[Tensor]:
        for left, each in zip(source.views, pictures, strict=True):
            with torch.autocast(device.type, torch.bfloat16, enabled=recipe.precision == "bfloat16"):
                yield model.features(left(each, generator).contiguous(memory_format=memory_format))

    parts = []
    with tqdm(total=len(chosen), desc="images", unit="image", leave=False) as progress:
        for pictures in source.batches(chosen, batch=batch, seed=(seed,)):
            parts.append(mean_direction(encoded(pictures)).cpu())
            progress.update(len(parts[-1]))
    similarity, variance = concentration(torch.cat(parts))
    return DataFrame({"similarity": similarity.numpy(), "variance": variance.numpy()})
