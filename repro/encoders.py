"""Trained encoders in files: written from finished runs, loaded with what makes their input and where they come from.

A file is safetensors: the weights of the encoder alone, without heads, and four JSON texts in the metadata:

    architecture  arguments of the model that the encoder is part of
    recipe        every hyper-parameter of the training
    view          how the encoder's input is made: the arguments of a `RecordedView`; or of a `CentredView` resize and
                  size (pixels of the shorter side, and of the central crop), square (whether the longer side is
                  resized to as many), mean and std (of red, green and blue in [0, 1])
    provenance    the run: what it is called, id, seed, data, preset, version, commit, and what was measured of it
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from repro.data import manifest
from repro.data.disk import write_atomically
from repro.experiments import studies
from repro.image import TRUNKS, augment
from repro.image import study as image_study
from repro.image.augment import CentredView
from repro.image.model import ImageModel
from repro.image.operations import Normalisation
from repro.image.recipe import ImageRecipe
from repro.recipe import entry_name
from repro.run.fit import taking_over
from repro.run.store import Store, check_parts, parse_json, read_record, row_of
from repro.run.training import checkpoint
from repro.skeleton import data as skeletons
from repro.skeleton import study as skeleton_study
from repro.skeleton.data import RecordedView
from repro.skeleton.model import SkeletonModel
from repro.skeleton.recipe import SkeletonRecipe

TEXTS = ("architecture", "recipe", "view", "provenance")
PROVENANCE = {"label": str, "id": str, "seed": int, "dataset": str, "digest": str, "preset": str, "version": int,
              "commit": str, "measured": dict}

Recording = np.ndarray | Tensor | bytes


@dataclass(frozen=True, repr=False)
class Encoder:
    """A trained encoder: called with one image or recording, or with several, it gives features (N, C).

    Attributes:
        model: a ResNet trunk, or the recurrent encoder of skeletons; float32, on the CPU, in evaluation mode.
        view: makes its input: a `CentredView` of images, a `RecordedView` of recordings.
        size: C.
        recipe: every hyper-parameter of the training, by name.
        provenance: `PROVENANCE`; `measured` is what the run's `result.json` says of it.
    """

    model: nn.Module
    view: CentredView | RecordedView
    size: int
    recipe: dict[str, Any]
    provenance: dict[str, Any]

    @torch.no_grad()
    def __call__(self, given: Recording | Sequence[Recording]) -> Tensor:
        """Features (N, C) of what `prepare` takes; raises ValueError as it does."""
        prepared = self.prepare(given)
        return self.model(*prepared) if isinstance(prepared, tuple) else self.model(prepared)

    def prepare(self, given: Recording | Sequence[Recording]) -> Tensor | tuple[Tensor, Tensor]:
        """The model's input, of arrays of numpy or tensors.

        Args:
            given: images, (3, H, W) or (N, 3, H, W), uint8 or in [0, 1], or a list of such, of any sizes; or
                recordings as the sensor gave them, one or a list: (frames, joints, 3) in metres, or of NTU RGB+D the
                contents of a `.skeleton` file.

        Returns:
            Images (N, 3, size, size), normalised; or sequences (N, T, D) and their lengths (N,).

        Raises:
            ValueError: if there is none, or one is of another shape or kind; the message says of which, and what to do.
        """
        if isinstance(self.view, RecordedView):
            alone = isinstance(given, bytes) or getattr(given, "ndim", 0) == 3
            recordings = list(given) if isinstance(given, Iterable) and not alone else [given]
            return self.view([part.detach().cpu().numpy() if isinstance(part, Tensor) else part for part in recordings])
        parts = [_pictures(part) for part in (given if isinstance(given, list | tuple) else [given])]
        if not sum(map(len, parts)):
            raise ValueError("there is no image; give at least one")
        return torch.cat([self.view(part) for part in parts])

    def __repr__(self) -> str:
        """What it is, what it takes and gives, and where it comes from: three lines."""
        run, view = self.provenance, self.view
        if isinstance(view, RecordedView):
            taken = f"recordings, input by pipeline {view.pipeline}"
        else:
            taken = f"images, input of {view.size} x {view.size} pixels"
        what = [f"{run['label']} on {run['dataset']}, {run['preset']} recipe, seed {run['seed']}"]
        what += [f"{name} {run['measured'][name]:.1f} %" for name in ("linear", "knn1") if name in run["measured"]]
        return (f"{', '.join(what)}\ntakes {taken}; gives {self.size} features of each\n"
                f"run {run['id']}, trained at commit {run['commit']}")


def export(id: str, path: Path | None = None, *, half: bool = False) -> Path:
    """Write the encoder of a finished run of REPRO_RUNS for `load`, by default into its folder; returns the path.

    Args:
        id: of the run.
        path: of the file.
        half: write float16 instead of float32, half as large; `load` makes float32 of it.

    Raises:
        ValueError: if the id is that of no finished run, or of one on clips, or a weight is beyond float16.
        FileNotFoundError: if the run's checkpoint is not there.
        OSError: if the file cannot be written.
    """
    from safetensors import torch as safetensors

    folder, state = Store().path(id), checkpoint(id)
    stored = read_record(folder)
    study = studies().get(stored["study"])
    if study is None or not issubclass(study.recipe, ImageRecipe | SkeletonRecipe):
        raise ValueError(f"id={id!r} is a run of {stored['study']}; weights are those of images and skeletons, see "
                         "the second column of `repro results list`")
    recipe = study.stored_recipe(row_of(stored))
    model: ImageModel | SkeletonModel
    study_of = image_study if isinstance(recipe, ImageRecipe) else skeleton_study
    with taking_over(folder):
        model = study_of.trained_model(state, recipe)
    if isinstance(model, ImageModel):
        centred = augment.centred_view(recipe)
        view = {"resize": centred.resize, "size": centred.size, "square": centred.square}
        encoder, view = model.trunk, view | centred.normalisation._asdict()
    else:
        encoder, view = model.encoder, dataclasses.asdict(skeletons.recorded_view(recipe))
    about = {name: stored[name] for name in PROVENANCE if name in stored}
    about |= {"commit": stored["cost"]["commit"], "measured": stored["metrics"],
              "label": entry_name(getattr(recipe, recipe.named_by), stored["changes"])}
    texts = {"architecture": model.architecture, "recipe": recipe.to_dict(), "view": view, "provenance": about}
    weights = {}
    for name, weight in encoder.state_dict().items():
        weights[name] = (weight.half() if half and weight.is_floating_point() else weight).contiguous()
        if not weights[name].isfinite().all():
            raise ValueError(f"{name} of {id} is {'beyond float16; leave --half out' if half else 'not finite'}")
    contents = safetensors.save(weights, {name: json.dumps(text) for name, text in texts.items()})
    path = path or folder / "encoder.safetensors"
    write_atomically(path, lambda temporary: temporary.write_bytes(contents))
    return path


def load(name: str | Path) -> Encoder:
    """A trained encoder, of those that come with the project or of a file that `repro results weights ID` has written.

    Example: `features = repro.load("taxonomy_ucla/CE")(recordings)`.

    Args:
        name: path of the file; or experiment and objective of one that comes along, see `weights/`.

    Raises:
        FileNotFoundError: if there is no such file, naming those that come along.
        ValueError: if it is not a whole file of this kind; the message names it, and what is wrong.
    """
    from safetensors import SafetensorError, safe_open

    shipped = manifest.shipped("weights")
    path = Path(name) if Path(name).is_file() else shipped / f"{name}.safetensors"
    if not path.is_file():
        names = [str(file.relative_to(shipped).with_suffix("")) for file in sorted(shipped.rglob("*.safetensors"))]
        raise FileNotFoundError(f"{name} is no file, nor one of the encoders that come along ({', '.join(names)}); "
                                "write one with `repro results weights ID`")
    weights = {}
    try:
        with safe_open(path, framework="pt") as file:
            stated = file.metadata() or {}
            check_parts(stated, dict.fromkeys(TEXTS, str))
            texts = {text: parse_json(stated[text]) for text in TEXTS}
            for part in file.keys():  # noqa: SIM118, it is no mapping
                weight = file.get_tensor(part)
                weights[part] = weight.float() if weight.is_floating_point() else weight
        check_parts(texts["provenance"], PROVENANCE)
        with torch.device("meta"), torch.random.fork_rng(devices=[]):  # its weights are replaced, others' draws stay
            view, model, size = _described(texts, len(weights))
        model.load_state_dict(weights, assign=True)
        if infinite := [part for part, weight in weights.items() if not weight.isfinite().all()]:
            raise ValueError(f"{infinite[0]} is not finite")
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} holds no encoder as `repro results weights ID` writes it ({error}); write or fetch "
                         "it again; `safetensors.torch.load_file` reads tensors of other files") from error
    return Encoder(model.eval(), view, size, texts["recipe"], texts["provenance"])


def _described(texts: dict[str, dict[str, Any]], weights: int) -> tuple[CentredView | RecordedView, nn.Module, int]:
    """The view, the model and the size of its features that the texts of a file of so many weights describe."""
    described = dict(texts["view"])
    if "pipeline" in described:
        known = {"dataset": "synthetic", "subset": False}  # its own data set may be unknown here
        recipe = SkeletonRecipe.from_dict(texts["recipe"] | known)
        if recipe.layers > weights:  # each has some of its own; to build thousands takes minutes
            raise ValueError(f"layers={recipe.layers} have {weights} weights")
        return RecordedView(**described), SkeletonModel(recipe, **texts["architecture"]).encoder, recipe.units
    check_parts(described, {"mean": list, "std": list, "size": int, "resize": int, "square": bool})
    mean, std = (tuple(map(float, described.pop(name))) for name in Normalisation._fields)
    if len(mean) != 3 or len(std) != 3 or not all(map(math.isfinite, mean + std)) or min(std) <= 0:
        raise ValueError(f"mean={mean}, std={std} should be three finite numbers each, std above 0")
    view, model = CentredView(normalisation=Normalisation(mean, std), **described), ImageModel(**texts["architecture"])
    return view, model.trunk, TRUNKS[texts["architecture"]["name"]]


def _pictures(given: Any) -> Tensor:
    """Images (N, 3, H, W) of one or many; ValueError says what is wrong with another shape."""
    images = given if isinstance(given, Tensor) else np.array(given)
    if images.ndim == 3 and len(images) == 3:
        images = images[None]
    if images.ndim == 4 and images.shape[1] == 3:
        return torch.as_tensor(images)
    raise ValueError(f"images have the shape {tuple(images.shape)}; give (3, height, width) or (number, 3, height, "
                     "width). `numpy.moveaxis(images, -1, -3)` puts colours first, `numpy.stack([image] * 3)` makes "
                     "three of a grey image")
