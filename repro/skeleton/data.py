"""Skeleton data: recordings of 3D joints, put through the paper's pipeline or one of its alternatives."""

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from repro.data import manifest, npz
from repro.data.manifest import check_counts, check_labels
from repro.data.prepared import made_once
from repro.recipe import choose
from repro.skeleton import DATASETS, PIPELINES, kinematics, ntu, ntu_prepare, synthetic
from repro.skeleton.pipelines import FRAMES, rounded, transform
from repro.skeleton.sequences import Sequences

LONGER_THAN = 10              # recordings of at most this many frames are left out
UCLA_NAME = re.compile(r"a(\d\d)_s(\d\d)_e(\d\d)_v(\d\d)\.json")
UCLA_ACTIONS = {              # the number in a file name, in the order of the labels
    1: "pick up with one hand", 2: "pick up with two hands", 3: "drop trash", 4: "walk around", 5: "sit down",
    6: "stand up", 8: "donning", 9: "doffing", 11: "throw", 12: "carry",
}


@dataclass(frozen=True, eq=False)
class SkeletonSet:
    """A data set ready for training.

    Attributes:
        name: the data set's name.
        frames: (sum of lengths, D) float32, the frames of all sequences one after the other: x, y, z of joint 0, then
            of joint 1, ...
        lengths: (n,) int64, frames of each sequence, at least 1.
        labels: (n,) int64 in 0..len(actions) - 1.
        train, test: (n,) bool.
        views: (n,) int64, the camera, from 1.
        subjects: (n,) int64, the person, from 1.
        actions: names of the classes.
        bones: pairs of joints to connect in a drawing.
        digest: hex sha256 of frames (padded for `synthetic` and `ucla`), lengths, labels, train and test.

    Raises:
        ValueError: if frames are not those of the lengths, a label has no class, or parts overlap.
    """

    name: str
    frames: Tensor
    lengths: Tensor
    labels: Tensor
    train: Tensor
    test: Tensor
    views: Tensor
    subjects: Tensor
    actions: tuple[str, ...]
    bones: tuple[tuple[int, int], ...]
    digest: str

    def __post_init__(self) -> None:
        rows, shape = int(self.lengths.sum()), tuple(self.frames.shape)
        if len(shape) != 2 or shape[0] != rows:
            raise ValueError(f"frames have shape {shape}, expected ({rows}, D): all sequences, no padding")
        check_labels(self.name, self.labels, len(self.actions), self.train, self.test)

    @functools.cached_property
    def sequences(self) -> Tensor:
        """(n, T, D) float32, T the longest length, zero after a sequence's end; built when it is first asked for."""
        return Sequences(self.frames, self.lengths).batch(torch.arange(len(self.lengths)))[0]

    @functools.cached_property
    def repeated(self) -> Tensor:
        """(n,) bool, the test sequences that equal a training sequence, coordinate for coordinate."""
        parts = self.frames.split(self.lengths.tolist())
        contents = [hashlib.sha256(part.numpy().tobytes()).digest() for part in parts]
        known = {content for content, training in zip(contents, self.train.tolist(), strict=True) if training}
        return torch.tensor([content in known for content in contents]) & self.test


@dataclass(frozen=True, eq=False)
class Recordings:
    """Recordings as the sensor gave them, one after the other.

    Attributes:
        frames: (sum of lengths, 20, 3) float64, metres in the camera's frame of reference.
        lengths, labels, subjects, views: (n,) int64, as in `SkeletonSet`.
        names: (n,) text such as `a01_s01_e00_v01`.
    """

    frames: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray
    subjects: np.ndarray
    views: np.ndarray
    names: np.ndarray


def load(name: str, root: str | Path | None = None, **options: Any) -> SkeletonSet:
    """Load a skeleton data set.

    Args:
        name: `synthetic` (part of this package), `ucla`, or `ntu` (NTU RGB+D 60, after `repro data prepare ntu`).
        root: folder of real data; REPRO_DATA by default.
        **options: `pipeline`, what happens to the coordinates before training. For `synthetic` and `ucla`:
                `default` (the paper's): view transform, scaling to [-1, 1], every floor(T/50)-th frame up to 50;
                `interpolate`: view transform, linear interpolation in time to 50 frames;
                `unscaled`: view transform, every floor(T/50)-th frame up to 50;
                `raw`: camera coordinates, every floor(T/50)-th frame up to 50.
            For `ntu`:
                `authors` (the taxonomy authors' own): two bodies, centred, up to 300 frames;
                `predict_cluster`: one body, view transform, scaling, every floor(T/50)-th frame up to 50;
                `default`: `authors`;
            `protocol`, a split of the manifest, its first by default: `xview` (`synthetic`, `ucla`: cameras 1 and 2 for
            training, 3 for test; `ntu`: 2 and 3 for training, 1 for test) or `xsub` (`ntu`: 20 of 40 people);
            `subset` (`ntu` alone): accept an incomplete distribution; the name then says so.

    Returns:
        For `synthetic` and `ucla` the recordings of more than 10 frames, the same ones in every pipeline. In the JSON
        files of NW-UCLA, camera 3 repeats camera 2 frame by frame for "pick up with two hands" and "drop trash": 93 of
        the 460 test recordings are also training recordings. They stay, since the published counts include them.
        For `ntu` those with a usable skeleton; frames stay in their file, mapped into memory.

    Raises:
        TypeError: if an option is unknown.
        ValueError: if a name or option is not among those allowed, or the files are not the official distribution.
        FileNotFoundError: if the files are missing, saying where they come from and go to, or not prepared.
    """
    declared = manifest.load_manifest(choose("dataset", name, DATASETS))
    settings = {"pipeline": "default", "protocol": next(iter(declared.splits))}
    settings |= {"subset": False} if name == "ntu" else {}
    unknown = sorted(set(options) - set(settings))
    if unknown:
        raise TypeError(f"{name} has no option {', '.join(unknown)}; its options are {', '.join(settings)}")
    settings |= options
    choose("pipeline", settings["pipeline"], ("default", *ntu_prepare.PIPELINES) if name == "ntu" else PIPELINES)
    choose("protocol", settings["protocol"], declared.splits)
    split = declared.splits[settings["protocol"]]
    if name == "ntu":
        choose("subset", settings["subset"], (False, True))
        pipeline = "authors" if settings["pipeline"] == "default" else settings["pipeline"]
        prepared = ntu_prepare.load(root and Path(root), pipeline=pipeline, subset=settings["subset"])
        return _of_prepared("ntu (subset)" if settings["subset"] else "ntu", prepared, split)
    if name == "synthetic":
        recordings = Recordings(**synthetic.generate())
    else:
        recordings = _ucla(declared, manifest.data_root() if root is None else Path(root))
    return prepare(name, recordings, split, settings["pipeline"])


def examples(
    name: str, root: str | Path | None = None, *, pipeline: str = "default"
) -> tuple[dict[str, Tensor], tuple[tuple[int, int], ...]]:
    """The first training recording of every action, or of ten of them, (T, joints, 3); and the bones.

    Coordinates run across the body, ahead and up, in metres; `synthetic` and `ucla` are never shown otherwise. In NTU
    RGB+D they are what its pipeline makes of them: `predict_cluster` scales them, `authors` leaves them as the camera
    stood.

    Raises:
        ValueError, FileNotFoundError: as `load`.
    """
    large = name == "ntu"
    data = load(name, root, pipeline=pipeline, subset=True) if large else load(name, root, pipeline="unscaled")
    turned = not large or pipeline == "predict_cluster"
    sequences, chosen = Sequences(data.frames, data.lengths), {}
    labels = data.labels[data.train].unique()
    for label in labels[:: -(-len(labels) // 10)].tolist():
        first = (data.train & (data.labels == label)).nonzero()[0]
        frames = sequences.batch(first)[0][0].unflatten(1, (-1, 3))
        chosen[data.actions[label]] = frames if turned else frames[..., [0, 2, 1]]
    return chosen, data.bones


def prepare(name: str, recordings: Recordings, split: manifest.Split, pipeline: str) -> SkeletonSet:
    """Split recordings, drop the short ones and put the others through a pipeline.

    Raises:
        ValueError: if the numbers of training and test recordings, before or after the length rule, are not those of
            the split, or a recording cannot be transformed (named).
    """
    masks = split.masks({"views": recordings.views, "subjects": recordings.subjects})
    kept = recordings.lengths > LONGER_THAN
    _check_counts(f"{name}: recordings", masks, split.expect)
    masks = {part: mask[kept] for part, mask in masks.items()}
    _check_counts(f"{name}: recordings longer than {LONGER_THAN} frames", masks, split.kept or split.expect)
    ends = np.cumsum(recordings.lengths)
    sequences = np.zeros((kept.sum(), FRAMES, recordings.frames[0].size), dtype=np.float32)
    lengths = np.zeros(kept.sum(), dtype=np.int64)
    for row, index in enumerate(np.flatnonzero(kept)):
        frames = recordings.frames[ends[index] - recordings.lengths[index]:ends[index]]
        try:
            frames = rounded(functools.partial(transform, pipeline=pipeline), frames)
        except ValueError as error:
            raise ValueError(f"{name}, recording {recordings.names[index]}: {error}") from error
        lengths[row] = len(frames)
        sequences[row, :len(frames)] = frames.reshape(len(frames), -1)
    arrays = {"lengths": lengths, "labels": recordings.labels[kept], **masks}
    digest = npz.digest({"sequences": sequences} | arrays)
    arrays |= {"frames": sequences[np.arange(FRAMES) < lengths[:, None]]}
    arrays |= {"views": recordings.views[kept], "subjects": recordings.subjects[kept]}
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    return SkeletonSet(name, **tensors, actions=tuple(UCLA_ACTIONS.values()), bones=kinematics.BONES, digest=digest)


def _check_counts(what: str, masks: Mapping[str, np.ndarray], expected: Mapping[str, int | None]) -> None:
    counts = {part: int(mask.sum()) for part, mask in masks.items()}
    check_counts(what, counts, expected, "compare the files with the data set's manifest in data_manifests/")


def _of_prepared(name: str, prepared: ntu_prepare.Prepared, split: manifest.Split) -> SkeletonSet:
    """NTU RGB+D, split.

    Raises:
        ValueError: if nothing is left to train or to test.
    """
    columns = ntu.columns(prepared.names)
    masks = split.masks(columns)
    for part, mask in masks.items():
        if not mask.any():
            raise ValueError(f"{name}: none of its {len(mask)} recordings belongs to {part}; add some, "
                             "or choose another protocol")
    arrays = {"lengths": prepared.lengths, **columns, **masks}
    hashed = npz.digest({key: arrays[key] for key in ("lengths", "labels", "train", "test")})
    digest = hashlib.sha256(f"{prepared.digest} {hashed}".encode()).hexdigest()
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    frames = torch.from_numpy(prepared.frames)
    bodies = range(0, frames.shape[1] // 3, ntu.JOINTS)
    bones = tuple((start + body, end + body) for body in bodies for start, end in ntu.BONES)
    return SkeletonSet(name, frames, **tensors, actions=ntu.ACTIONS, bones=bones, digest=digest)


def parse_ucla(members: list[tuple[str, bytes]], where: str) -> Recordings:
    """Read the JSON files of NW-UCLA: `skeletons` (T, 20, 3) in metres and `label` from 1 to 10.

    Args:
        members: (file name, contents) pairs; names such as `a01_s01_e00_v01.json` give action, subject, take, view.
        where: the archive or folder they come from, for messages.

    Raises:
        ValueError: naming the file, and the frame where there is one: if a name or label is unexpected, or the
            contents do not parse, have another number of joints, or are not finite.
    """
    frames, rows = [], []
    for name, contents in members:
        matched = UCLA_NAME.fullmatch(name)
        if not matched or int(matched[1]) not in UCLA_ACTIONS:
            raise ValueError(f"{where}: {name} is not named like a01_s01_e00_v01.json with a known action; "
                             "move foreign files out of the folder")
        action, subject, _, view = map(int, matched.groups())
        label = list(UCLA_ACTIONS).index(action)
        frames.append(_ucla_frames(contents, label, f"{where}, {name}"))
        rows.append((len(frames[-1]), label, subject, view))
    columns = np.array(rows, dtype=np.int64).T
    names = np.array([name.removesuffix(".json") for name, _ in members])
    return Recordings(np.concatenate(frames), *np.ascontiguousarray(columns), names)


def _ucla_frames(contents: bytes, label: int, where: str) -> np.ndarray:
    """(T, 20, 3) float64 from one JSON file whose label should be `label` (from 0)."""
    try:
        values = json.loads(contents)
        stated, skeletons = values["label"], np.array(values["skeletons"], dtype=object)
        if not {type(stated), *map(type, skeletons.flat)} <= {int, float}:  # NumPy would read "1" and true as numbers
            raise TypeError("the label or a coordinate is no number")
        frames = skeletons.astype(np.float64)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{where}: cannot be read as a skeleton file ({type(error).__name__}: {error}); "
                         "fetch the archive again") from error
    if frames.ndim != 3 or frames.shape[1:] != (kinematics.JOINTS, 3) or not len(frames):
        raise ValueError(f"{where}: skeletons have shape {frames.shape}, expected (frames, {kinematics.JOINTS}, 3)")
    if stated != label + 1:
        raise ValueError(f"{where}: label is {stated}, expected {label + 1} from the file's name")
    finite = np.isfinite(frames).all(axis=(1, 2))
    if not finite.all():
        raise ValueError(f"{where}: a coordinate of frame {np.argmin(finite)} is not finite; fetch the archive again")
    return frames


def _ucla(declared: manifest.Manifest, root: Path) -> Recordings:
    """NW-UCLA from its archive below `root`: verified every time, parsed once and kept among the prepared arrays."""
    archive = declared.files[0]
    members = manifest.verified_members(declared, root)
    path = manifest.prepared_root() / f"ucla-{archive.digest[:16]}.npz"
    return Recordings(**made_once(path, lambda: vars(parse_ucla(members, f"{manifest.location(archive, root)}"))))
