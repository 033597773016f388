"""Pairs of video and sound: embedded clips, grids of characters, and folders of real recordings."""

import hashlib
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from repro.audiovisual import CHARACTERS, clips, prepare, synthetic, video
from repro.audiovisual.characters import load as load_characters
from repro.audiovisual.clips import Clips
from repro.audiovisual.prepare import Prepared
from repro.data import manifest, npz
from repro.data.prepared import made_once
from repro.recipe import choose

RECORDINGS = ("kinetics700", "kinetics_sound", "audioset", "ucf101", "hmdb51", "esc50")
DATASETS = ("synthetic", *CHARACTERS, *RECORDINGS)


class Pairs(Protocol):
    """Items with two modalities, "video" and "audio".

    Attributes:
        name: the data set's name; what is not the official distribution says so, "ucf101 (subset)".
        digest: hex sha256 of all that a training can depend on, but for what the recipe says of views.
        classes: names of the classes.
        labels: (n,) int64, or (n, cells) of grids of characters; -1 where there is none.
        sizes: numbers of classes of the labels: one, or one for each cell.
        categories: (n,) int64, the finest ground truth, which the coverage of selected negatives counts.
        pretrain, train, test: (n,) bool.
        streamed: whether views are gathered in host memory, which is worth doing ahead while a device trains.
    """

    name: str
    digest: str
    classes: tuple[str, ...]
    labels: Tensor
    sizes: tuple[int, ...]
    categories: Tensor
    pretrain: Tensor
    train: Tensor
    test: Tensor
    streamed: bool

    def has(self, modality: str) -> Tensor:
        """Which items have the modality, (n,) bool."""

    def view(self, modality: str, index: Tensor, generator: torch.Generator) -> Tensor:
        """One random view of each item of `index`, (m,) int64 on the CPU; items may repeat."""

    def pair(self, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Views of both modalities, aligned in time."""

    def twins(self, modality: str, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Two random views of one modality of each item."""

    def centred(self, modality: str, index: Tensor, windows: int = 1) -> Tensor:
        """Views without randomness, spread evenly over each item: (m, windows, ...)."""

    def to(self, device: torch.device) -> Self:
        """The same set, its views made on the device if it fits there, else streamed to it."""


def load(
    name: str,
    root: str | Path | None = None,
    *,
    window: int = 16,
    size: int = 112,
    split: str | None = None,
    subset: bool = False,
    redundancy: float = 0.5,
    **grids: Any,
) -> Pairs:
    """Load a data set.

    Args:
        name: one of `DATASETS`.
        root: folder of real data; REPRO_DATA by default.
        window: frames of a view of clips.
        size: pixels of the crop that recordings will be seen through, at most `video.LARGEST_CROP`; see `stored_size`.
        split: of recordings, a name in their manifest; its first by default.
        subset: of recordings, accept a part of the official distribution.
        redundancy: of `synthetic`, see `synthetic.load`.
        **grids: options of grids of characters, see `characters.load`.

    Raises:
        TypeError: if another set is given an option of grids of characters, or there is no such option.
        ValueError: if the name is unknown, an option is not among those allowed, or the files are damaged.
        FileNotFoundError: if the files are missing, saying where they come from and go to, or not prepared, naming the
            command that does it.
    """
    choose("dataset", name, DATASETS)
    if name in CHARACTERS:
        return load_characters(name, root, **grids)
    if grids:
        raise TypeError(f"{', '.join(grids)}: no option of {name}, but at most of {' and '.join(CHARACTERS)}")
    if name == "synthetic":
        return _synthetic(redundancy, window)
    prepared = prepare.load(name, None if root is None else Path(root), size=stored_size(size), subset=subset)
    return _clips(prepared, choose("split", split or next(iter(prepared.splits)), prepared.splits), window)


def stored_size(size: int) -> int:
    """Height of the stored pictures that a crop of `size` pixels is taken of: 64 for 56, 128 for 112, 256 for 224.

    So a crop shows the same share of a picture, 58 %, at every resolution.
    """
    return max(video.SIZES[0], size * video.ROOM[0] // video.ROOM[1])


def _synthetic(redundancy: float, window: int) -> Clips:
    """The bundled clips, from their prepared arrays if the code that makes them has made them before."""
    code = [Path(module.__file__).read_bytes() for module in (clips, npz, synthetic)]
    version = hashlib.sha256(b"".join([*code, repr(float(redundancy)).encode()])).hexdigest()[:16]

    def make() -> dict[str, np.ndarray]:
        return {name: np.asarray(value) for name, value in vars(synthetic.load(redundancy, window)).items()}

    arrays = made_once(manifest.prepared_root() / f"synthetic-clips-{version}.npz", make)
    values = {name: torch.from_numpy(array) if array.ndim else array.item() for name, array in arrays.items()
              if name != "classes"}
    return Clips(**values | {"classes": tuple(arrays["classes"].tolist()), "window": window})


def _clips(prepared: Prepared, split: str, window: int) -> Clips:
    """Recordings in a split; its training part is what may be pre-trained on."""
    train, test = (torch.from_numpy(prepared.splits[split][part]) for part in ("train", "test"))
    labels = torch.from_numpy(prepared.labels)
    return Clips(
        name=prepared.name,
        digest=hashlib.sha256(f"{prepared.digest} {split}".encode()).hexdigest(),
        classes=prepared.classes,
        labels=labels,
        categories=labels,
        pretrain=train,
        train=train,
        test=test,
        frames=torch.from_numpy(prepared.frames),
        first_frame=torch.from_numpy(prepared.first_frame),
        mel=torch.from_numpy(prepared.mel),
        first_row=torch.from_numpy(prepared.first_row),
        rows_per_frame=prepared.rows_per_frame,
        window=window,
    )
