"""Trained encoders in files: written from finished cells, and loaded with what makes their input and their recipe."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from repro.image import augment
from repro.image import model as images
from repro.image import study as image_study
from repro.image.recipe import ImageRecipe
from repro.run import weights
from repro.run.finished import checkpoint
from repro.run.store import Store, read_description
from repro.skeleton import data as skeletons
from repro.skeleton import study as skeleton_study
from repro.skeleton.model import SkeletonModel
from repro.skeleton.recipe import SkeletonRecipe
from repro.table import studies


class Encoder(NamedTuple):
    """A trained encoder: called with images or recordings, as `prepare` takes them, it gives features (N, C).

    Attributes:
        model: an `ImageModel` or `SkeletonModel`, with its heads, on the CPU in evaluation mode.
        prepare: makes the model's input: of images (N, 3, H, W), uint8 or in [0, 1], a `CentredView`; of recordings,
            as the sensor gave them, a `RecordedView`.
        features: of what `prepare` makes.
        recipe: every hyper-parameter of the training, by name.
    """

    model: nn.Module
    prepare: Callable[[Any], Any]
    features: Callable[[Any], Tensor]
    recipe: dict[str, Any]

    @torch.no_grad()
    def __call__(self, recordings: Tensor | Sequence[np.ndarray | bytes]) -> Tensor:
        """Features (N, C) of images or recordings; raises ValueError as `prepare`."""
        return self.features(self.prepare(recordings))


def export(key: str, path: Path | None = None) -> Path:
    """Write the encoder of a finished cell of REPRO_RUNS for `load`, by default into its folder; returns the path.

    Raises:
        ValueError: if the key is that of no finished cell, or of one on clips.
        FileNotFoundError: if the cell's checkpoint is not there.
        OSError: if the file cannot be written.
    """
    store = Store()
    state, stored = checkpoint(key, store), read_description(store.folder(key) / "recipe.json")
    study = studies().get(stored["study"])
    if study is None or not issubclass(study.recipe, ImageRecipe | SkeletonRecipe):
        raise ValueError(f"key={key!r} is a cell of {stored['study']}; weights are those of images and skeletons, see "
                         "the second column of `repro results list`")
    recipe: Any = study.recipe.from_dict(stored["recipe"])
    path = path or store.folder(key) / "encoder.safetensors"
    if isinstance(recipe, ImageRecipe):
        model, view = image_study.trained_model(state, recipe), images.described_view(augment.centred_view(recipe))
    else:
        model = skeleton_study.trained_model(state, recipe)
        view = dataclasses.asdict(skeletons.recorded_view(recipe))
    weights.save(path, model, recipe.to_dict(), view)
    return path


def load(path: str | Path) -> Encoder:
    """The encoder of a file that `repro results weights KEY` has written.

    Example: `features = repro.load("encoder.safetensors")(images)`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not a whole file of this kind; the message names it, and what to do.
    """
    path = Path(path)
    recipe, view = (weights.read(path, name) for name in ("recipe", "view"))
    if not isinstance(recipe, dict) or not isinstance(view, dict):
        raise ValueError(f"{path} does not say by which recipe it was trained and what it takes; export it again")
    if "pipeline" not in view:
        network = weights.load(path, images.ImageModel)
        return Encoder(network, images.load_view(path), network.features, recipe)
    try:
        prepare = skeletons.RecordedView(**view)
        trained = SkeletonRecipe.from_dict(recipe | {"dataset": "synthetic", "subset": False})  # its own may be unknown
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} describes a view or a recipe that cannot be made ({error}); export it "
                         "again") from error

    def described(features: int, bones: Sequence[Sequence[int]] = (), **_of_recipe: Any) -> SkeletonModel:
        return SkeletonModel(trained, features, bones)  # earlier files repeat what the recipe says

    model = weights.load(path, described, trained.layers)
    return Encoder(model, prepare, lambda batch: model.encoder(*batch), recipe)
