"""Skeleton data: recordings of 3D joints, put through the paper's pipeline or one of its alternatives."""

import functools
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from repro.data import files, manifest, npz
from repro.data.manifest import Manifest, check_counts, check_labels
from repro.data.prepared import Arrays, made_once
from repro.recipe import choose
from repro.run import code
from repro.skeleton import DATASETS, NTU_PIPELINES, PIPELINES, ntu, readers
from repro.skeleton.pipelines import FRAMES, KINECT, transform
from repro.skeleton.recipe import SkeletonRecipe

LONGER_THAN = 10              # recordings of at most this many frames are left out


class Sequences:
    """Sequences of unequal length, laid end to end on a device; batches of them are padded when they are asked for.

    Args:
        frames: (sum of lengths, D), sequence after sequence; may be mapped from a file, of which nothing is copied.
        lengths: (n,) int64 on the CPU, at least 1 each.
        device: where the frames stay and batches are made.
    """

    def __init__(self, frames: Tensor, lengths: Tensor, device: torch.device | str = "cpu") -> None:
        self.frames = frames.to(device)
        self.lengths = lengths  # on the CPU: a batch's longest sequence is known without waiting for the device
        self.places = torch.stack([lengths.cumsum(0) - lengths, lengths]).to(device)  # first row and length of each

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The sequences of `index` (N,), on the CPU, padded with zeros to the longest, without waiting for the device.

        Returns:
            Sequences (N, T, D) and their lengths (N,) on the device, and the same lengths on the CPU.
        """
        cpu_lengths = self.lengths[index]
        on_device = index.to(self.places.device, non_blocking=True)
        return *self.padded(on_device, int(cpu_lengths.max())), cpu_lengths

    def padded(self, index: Tensor, frames: int) -> tuple[Tensor, Tensor]:
        """The sequences of `index` (N,), on the device, padded with zeros to `frames`, and their lengths (N,)."""
        starts, lengths = self.places[:, index]
        time = torch.arange(frames, device=starts.device)
        inside = time < lengths[:, None]
        rows = torch.where(inside, starts[:, None] + time, 0)
        return self.frames[rows].masked_fill_(~inside[:, :, None], 0), lengths

    def of_similar_length(self, index: Tensor, frames: int) -> Iterator[Tensor]:
        """Parts of `index` (m,), from the longest sequences to the shortest, of at most `frames` frames when padded."""
        rest = index[self.lengths[index].argsort(descending=True, stable=True)]
        while len(rest):
            count = max(1, frames // int(self.lengths[rest[0]]))
            yield rest[:count]
            rest = rest[count:]


@dataclass(frozen=True, eq=False)
class SkeletonSet:
    """A data set ready for training; raises ValueError if a label has no class, or parts overlap."""

    name: str
    frames: Tensor                      # (sum of lengths, D) float32, sequence after sequence: x, y, z of joint 0, ...
    lengths: Tensor                     # (n,) int64, frames of each sequence, at least 1
    labels: Tensor                      # (n,) int64 in 0..len(actions) - 1
    train: Tensor                       # (n,) bool
    test: Tensor                        # (n,) bool
    views: Tensor                       # (n,) int64, the camera, from 1
    subjects: Tensor                    # (n,) int64, the person, from 1
    actions: tuple[str, ...]            # names of the classes
    bones: tuple[tuple[int, int], ...]  # pairs of joints to connect in a drawing
    digest: str                         # hex sha256 of frames (but for `ntu` padded), lengths, labels, train and test

    def __post_init__(self) -> None:
        check_labels(self.name, self.labels, len(self.actions), self.train, self.test)

    @functools.cached_property
    def sequences(self) -> Tensor:
        """(n, T, D) float32, T the longest length, zero after a sequence's end; built when it is first asked for."""
        return Sequences(self.frames, self.lengths).batch(torch.arange(len(self.lengths)))[0]

    @functools.cached_property
    def in_both(self) -> Tensor:
        """(n,) bool, the sequences that stand in both splits, equal coordinate for coordinate."""
        parts = self.frames.split(self.lengths.tolist())
        contents = [hashlib.sha256(part.numpy()).digest() for part in parts]  # frames of a large set stay in their file
        known, asked = (set(itertools.compress(contents, part.tolist())) for part in (self.train, self.test))
        return torch.tensor([content in known and content in asked for content in contents])


def load(
    name: str, root: str | Path | None = None, *, pipeline: str = "default", protocol: str | None = None,
    subset: bool = False,
) -> SkeletonSet:
    """Load a skeleton data set.

    Args:
        name: one of `repro.skeleton.DATASETS`: `synthetic` (part of this package), `ucla`, `ntu` (NTU RGB+D 60, after
            `repro data prepare ntu`), or another that a manifest declares.
        root: folder of real data; REPRO_DATA by default.
        pipeline: what happens to the coordinates before training. For all but `ntu`:
                `default` (the paper's): view transform, scaling to [-1, 1], every floor(T/50)-th frame up to 50;
                `interpolate`: view transform, linear interpolation in time to 50 frames;
                `unscaled`: view transform, every floor(T/50)-th frame up to 50;
                `raw`: camera coordinates, every floor(T/50)-th frame up to 50.
            For `ntu`:
                `authors`, its default (the taxonomy authors' own): two bodies, centred, up to 300 frames;
                `predict_cluster`: one body, view transform, scaling, every floor(T/50)-th frame up to 50.
        protocol: a split of the manifest, its first by default: `xview` (`synthetic`, `ucla`: cameras 1 and 2 for
            training, 3 for test; `ntu`: 2 and 3 for training, 1 for test) or `xsub` (`ntu`: 20 of 40 people).
        subset: accept an incomplete distribution of `ntu`; the name then says so.

    Returns:
        For all but `ntu` the recordings of more than 10 frames, the same ones in every pipeline. In the JSON
        files of NW-UCLA, camera 3 repeats camera 2 frame by frame for "pick up with two hands" and "drop trash": 93 of
        the 460 test recordings are also training recordings. They stay, since the published counts include them.
        For `ntu` those with a usable skeleton; frames stay in their file, mapped into memory.

    Raises:
        ValueError: if a name or option is not among those allowed, or the files are not the official distribution.
        FileNotFoundError: if the files are missing, saying where they come from and go to, or not prepared.
    """
    declared = manifest.load_manifest(choose("dataset", name, DATASETS))
    large = name == "ntu"
    choose("pipeline", pipeline, ("default", *NTU_PIPELINES) if large else PIPELINES)
    choose("subset", subset, (False, True) if large else (False,))
    split = declared.splits[choose("protocol", protocol or next(iter(declared.splits)), declared.splits)]
    if large:
        pipeline = "authors" if pipeline == "default" else pipeline
        made = ntu.source(root and Path(root), pipeline=pipeline, subset=subset).load()
        return _of_prepared("ntu (subset)" if subset else "ntu", made, split)
    members = files.verified_members(declared, manifest.data_root() if root is None else Path(root))
    made_by = code.of_files("skeleton/pipelines.py", "skeleton/readers.py", "skeleton/synthetic.py")
    made_of = f"{declared.skeletons}\n{files.content_digest(members)}\n{made_by}"
    read = functools.partial(readers.read, members, declared)  # files are checked every time, and read once
    return prepare(declared, made_once(name, made_of, read) if members else read(), split, pipeline)


load_once = manifest.read_once(load, maxsize=2)


def data_of(recipe: SkeletonRecipe) -> SkeletonSet:
    """The data set of a recipe; read once per process while its files stay the same."""
    data = {"protocol": recipe.protocol, "pipeline": recipe.pipeline, "subset": recipe.subset}
    return load_once(recipe.dataset, manifest.data_root(), **data)


def examples(
    name: str, root: str | Path | None = None, *, pipeline: str = "default"
) -> tuple[dict[str, Tensor], tuple[tuple[int, int], ...]]:
    """The first training recording of every action, or of ten of them, (T, joints, 3); and the bones.

    Coordinates run across the body, ahead and up, in metres; those of NTU RGB+D are what its pipeline makes of them:
    `predict_cluster` scales them, `authors` leaves them as the camera stood. Raises as `load`.
    """
    large = name == "ntu"
    data = load(name, root, pipeline=pipeline if large else "unscaled", subset=large)
    turned = not large or pipeline == "predict_cluster"
    sequences, shown = Sequences(data.frames, data.lengths), {}
    labels = data.labels[data.train].unique()
    for label in labels[:: -(-len(labels) // 10)].tolist():
        first = (data.train & (data.labels == label)).nonzero()[0]
        frames = sequences.batch(first)[0][0].unflatten(1, (-1, 3))
        shown[data.actions[label]] = frames if turned else frames[..., [0, 2, 1]]
    return shown, data.bones


def prepare(
    declared: Manifest, recordings: Mapping[str, np.ndarray], split: manifest.Split, pipeline: str
) -> SkeletonSet:
    """Split recordings as of `readers.read`, drop the short ones and put the others through a pipeline of `load`.

    Raises:
        ValueError: if the numbers of training and test recordings, before or after the length rule, are not those of
            the split, or a recording cannot be transformed.
    """
    name, body = declared.name, declared.skeletons
    masks, long = split.masks(recordings), recordings["lengths"] > LONGER_THAN
    _check_counts(f"{name}: recordings", masks, split.expect)
    masks = {part: mask[long] for part, mask in masks.items()}
    _check_counts(f"{name}: recordings longer than {LONGER_THAN} frames", masks, split.kept or split.expect)
    parts = np.split(recordings["frames"], recordings["lengths"].cumsum()[:-1])
    parts = [transform(part, pipeline, body.axes) for part in parts if len(part) > LONGER_THAN]
    padded = [np.pad(part, ((0, FRAMES - len(part)), (0, 0))) for part in parts]
    arrays = {"lengths": np.array([len(part) for part in parts]), "labels": recordings["labels"][long], **masks}
    digest = npz.digest({"sequences": np.stack(padded)} | arrays)
    arrays |= {column: recordings[column][long] for column in ("views", "subjects")}
    return _as_set(name, declared, arrays | {"frames": np.concatenate(parts)}, digest)


@dataclass(frozen=True)
class RecordedView:
    """What an encoder takes of recordings; raises ValueError if there is no such pipeline.

    Args:
        pipeline: of `load`; "authors" or "predict_cluster" for NTU RGB+D.
        joints, axes: of the data set's body, see `manifest.Skeletons`.
    """

    pipeline: str
    joints: int = 20
    axes: Sequence[int] = KINECT

    def __post_init__(self) -> None:
        choose("pipeline", self.pipeline, (*PIPELINES, *NTU_PIPELINES))

    def __call__(self, recordings: Sequence[np.ndarray | bytes]) -> tuple[Tensor, Tensor]:
        """Sequences (N, T, D) float32, zero after the end of each, and their lengths (N,).

        Args:
            recordings: as the sensor gave them, at least one: each (T, joints, 3), metres in the camera's frame of
                reference; for the pipelines of NTU RGB+D the contents of a `.skeleton` file.

        Raises:
            ValueError: if one is of another shape or kind, or cannot be transformed; the message has its number.
        """
        parts = []
        for number, recording in enumerate(recordings):
            try:
                if self.pipeline not in NTU_PIPELINES:
                    frames = readers.checked(recording, self.joints)
                    parts.append(torch.from_numpy(transform(frames, self.pipeline, self.axes)))
                elif isinstance(recording, bytes):
                    parts.append(torch.from_numpy(ntu.transformed(recording, self.pipeline)))
                else:
                    raise ValueError(f"pipeline {self.pipeline!r} takes the contents of a .skeleton file, as bytes")
            except ValueError as error:
                raise ValueError(f"recording {number}: {error}") from error
        if not parts:
            raise ValueError("there is no recording; give a list of at least one")
        lengths = torch.tensor([len(part) for part in parts])
        return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True), lengths


def recorded_view(recipe: SkeletonRecipe) -> RecordedView:
    """What the encoder of a recipe takes of recordings."""
    body = DATASETS[recipe.dataset].skeletons
    own = body.reader == "ntu" and recipe.pipeline == "default"
    return RecordedView("authors" if own else recipe.pipeline, body.joints, body.axes)


def bones_of(dataset: str, coordinates: int) -> tuple[tuple[int, int], ...]:
    """The bones of a data set whose frames have so many coordinates: of one body, or of several after each other."""
    body = DATASETS[dataset].skeletons
    firsts = range(0, coordinates // 3, body.joints)
    return tuple((first + start, first + end) for first in firsts for start, end in body.bones)


def _check_counts(what: str, masks: Mapping[str, np.ndarray], expected: Mapping[str, int | None]) -> None:
    counts = {part: int(mask.sum()) for part, mask in masks.items()}
    check_counts(what, counts, expected, "compare the files with the data set's manifest in data_manifests/")


def _of_prepared(name: str, made: Arrays, split: manifest.Split) -> SkeletonSet:
    """NTU RGB+D, split; raises ValueError if nothing is left to train or to test."""
    columns, frames = ntu.columns(made.names), made.arrays["frames"]
    masks = split.masks(columns)
    if empty := [part for part, mask in masks.items() if not mask.any()]:
        raise ValueError(f"{name}: none of its recordings belongs to {empty[0]}; add some, or choose another protocol")
    lengths = np.diff(made.first_rows("frames"))
    hashed = npz.digest({"lengths": lengths, "labels": columns["labels"], **masks})
    digest = hashlib.sha256(f"{made.digests['frames']} {hashed}".encode()).hexdigest()
    return _as_set(name, DATASETS["ntu"], {"frames": frames, "lengths": lengths, **columns, **masks}, digest)


def _as_set(name: str, declared: Manifest, arrays: Mapping[str, np.ndarray], digest: str) -> SkeletonSet:
    tensors = {column: torch.from_numpy(array) for column, array in arrays.items()}
    bones = bones_of(declared.name, arrays["frames"].shape[1])
    return SkeletonSet(name, **tensors, actions=declared.skeletons.actions, bones=bones, digest=digest)
