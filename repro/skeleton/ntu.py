"""NTU RGB+D 60: its text files, the sequences that two published codes make of them, and their preparation.

The text is read once, in parallel, into one array file that is mapped into memory (`repro.data.prepared`).
"""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from repro.data import files, manifest, prepared
from repro.data.disk import read_file
from repro.data.manifest import check_counts
from repro.data.prepared import Arrays, Source
from repro.recipe import choose
from repro.run import code
from repro.skeleton.pipelines import scale, thin_out, view_invariant

JOINTS = 25
LONGEST = 300                 # frames of the longest recording, and of the authors' arrays
NO_BODY = "no frame has a body"
NAME = re.compile(r"S(\d{3})C(\d{3})P(\d{3})R(\d{3})A(\d{3})")
LARGEST = (17, 3, 40, 2, 60)  # setup, camera, subject, repetition, action; NTU RGB+D 120 goes on from there


@dataclass(frozen=True, eq=False)
class Bodies:
    """What a file says about the bodies in view: a row per body and frame, as in the file."""

    frames: int               # with a body or without
    joints: np.ndarray        # (n, 25, 3) float32, metres in the camera's frame of reference
    frame: np.ndarray         # (n,) int64, from 0
    body: np.ndarray          # (n,) int64: 0 for the id that the file names first, ...; a frame may have an id twice


def columns(names: Iterable[str]) -> dict[str, np.ndarray]:
    """`views` (cameras, from 1), `subjects` (from 1) and `labels` (actions, from 0) of samples, (n,) int64 each."""
    numbers = np.array([[int(part) for part in NAME.fullmatch(name).groups()] for name in names]).reshape(-1, 5)
    return {"views": numbers[:, 1], "subjects": numbers[:, 2], "labels": numbers[:, 4] - 1}


def parse(contents: bytes) -> Bodies:
    """Read the text of a `.skeleton` file, word by word.

        number of frames
        for each frame: number of bodies
            for each body: 10 values, the first its id of 17 digits (too many for a float64); number of joints (25)
                for each joint: 12 values, the first three x, y and z in metres

    Raises:
        ValueError: with the frame at fault, if the text is truncated or has another form, or a coordinate is not
            finite.

    Source: Shahroudy et al. 2016, the data set's own `read_skeleton_file.m`.
    """
    words, number = iter(contents.split()), 0
    joints, frame, body, order = [], [], [], {}
    try:
        frames = int(next(words))
        for number in range(frames):
            for _ in range(int(next(words))):
                identity, _, count = int(next(words)), list(islice(words, 9)), int(next(words))
                values = list(islice(words, 12 * JOINTS))
                if count != JOINTS or len(values) < 12 * JOINTS:
                    raise ValueError(f"{count} joints, {len(values)} values instead of {JOINTS} of 12")
                joints.append([list(map(float, values[axis::12])) for axis in range(3)])
                frame.append(number)
                body.append(order.setdefault(identity, len(order)))
    except (ValueError, StopIteration) as error:
        raise ValueError(f"frame {number} is truncated or damaged: {str(error) or 'it ends':.200}") from error
    if next(words, None):
        raise ValueError(f"goes on after its {frames} frames")
    with np.errstate(over="ignore"):
        rows = np.array(joints).reshape(-1, 3, JOINTS).transpose(0, 2, 1).astype(np.float32)
    finite = np.isfinite(rows).all(axis=(1, 2))
    if not finite.all():
        raise ValueError(f"a coordinate of frame {frame[np.argmin(finite)]} is not finite")
    return Bodies(frames, rows, np.array(frame, dtype=np.int64), np.array(body, dtype=np.int64))


# ------------------------------------------------------------------------------------------------ sequences


def authors(bodies: Bodies) -> np.ndarray:
    """The taxonomy authors' sequences: two bodies in metres, neither turned, scaled nor resampled.

    Each frame holds two halves: the body that the file lists first in this frame, then the second, whoever they are;
    zero where there is none. As many frames are kept, from the first one on, as the half with most bodies has frames
    with a body, at most 300; so a recording with empty frames loses its end. If the second half is not zero throughout,
    the mean over all joints, both halves and all frames is subtracted everywhere, also from the zeros that stand for no
    body; if it is, the first half's mean over joints and frames, from that half.

    Returns:
        (T, 150) float64, metres.

    Raises:
        ValueError: if no frame has a body.

    Source: released taxonomy code, `restore_NTU.py` and `Center`; Yan et al. 2018 (ST-GCN), `ntu_gendata.py`.
    """
    order = np.arange(len(bodies.frame)) - np.searchsorted(bodies.frame, bodies.frame)  # in its frame's list, from 0
    first_two = order < 2
    sequence = np.zeros((bodies.frames, 2, JOINTS, 3))
    sequence[bodies.frame[first_two], order[first_two]] = bodies.joints[first_two]
    sequence = sequence[:LONGEST]
    length = (sequence != 0).any(axis=(2, 3)).sum(axis=0).max(initial=0)
    if length == 0:
        raise ValueError(NO_BODY)
    sequence = sequence[:length]
    if sequence[:, 1].any():
        sequence -= sequence.mean(axis=(0, 1, 2))
    else:
        sequence[:, 0] -= sequence[:, 0].mean(axis=(0, 1))
    return sequence.reshape(length, -1)


def predict_cluster(bodies: Bodies) -> np.ndarray:
    """Predict & Cluster's sequences: one body (`main_body`), turned to the camera, scaled, at most 50 frames.

    `view_invariant`, without the frames in which a camera coordinate of any joint is exactly zero, then `scale` and
    `thin_out`. The released code also has a step that gives every bone the length 1; it is commented out in the PyTorch
    script, which is followed here, and active in `ntu_preprocess.py`.

    Returns:
        (T, 75) float64 in [-1, 1].

    Raises:
        ValueError: if there is no body, no frame is left, or the body gives no frame of reference or no scale.

    Source: Su et al. 2020, released code, `NTU60_preprocess.ipynb` and `NTU_View_Invariant_Transform.ipynb`.
    """
    frames = bodies.joints[bodies.body == main_body(bodies)].astype(np.float64)
    whole = (frames != 0).all(axis=(1, 2))
    if not whole.any():
        raise ValueError("no frame without a coordinate that is exactly zero")
    return thin_out(scale(view_invariant(frames)[whole])).reshape(-1, JOINTS * 3)


def main_body(bodies: Bodies) -> int:
    """The number of the body that Predict & Cluster keeps.

    First, bodies in view for fewer than 12 frames are left out, unless all are. Then wide ones are left out as noise,
    one by one while there are two: those wider than 0.8 of their height in at least 69.754 % of their frames. Of the
    rest the one that moves most is kept. Its motion is the sum over x, y and z of the variance over
    frames and joints; among several bodies also that of the frames in which it is not too wide, if that is less.

    What a frame lists twice under one id counts as two frames of that body, as in the released code, which may fail.

    Raises:
        ValueError: if no frame has a body.
    """
    tracks = {body: bodies.joints[bodies.body == body] for body in np.unique(bodies.body).tolist()}
    if not tracks:
        raise ValueError(NO_BODY)
    tracks = {body: track for body, track in tracks.items() if len(track) >= 12} or tracks
    left, motion = len(tracks), {}
    for body, track in tracks.items():
        across, up = np.ptp(track[:, :, :2], axis=1).T                       # (frames,) each
        narrow = across <= 0.8 * up
        if left > 1 and (~narrow).mean() >= 0.69754:
            left -= 1
            continue
        motion[body] = _variance(track)
        if left > 1 and not narrow.all():
            motion[body] = min(motion[body], _variance(track[narrow]))
    return max(motion, key=motion.get)


def _variance(track: np.ndarray) -> float:
    """Sum over x, y and z of the variance over frames and joints of (T, 25, 3)."""
    return float(track.reshape(-1, 3).astype(np.float64).var(axis=0).sum())


PIPELINES = {"authors": authors, "predict_cluster": predict_cluster}


# ------------------------------------------------------------------------------------------------ preparation


def source(root: Path | None = None, *, pipeline: str = "authors", subset: bool = False) -> Source:
    """The recordings below `root` and how a pipeline reads them, into `frames`, (sum of lengths, D) float32.

    Args:
        root: folder of real data; REPRO_DATA by default.
        pipeline: `authors` or `predict_cluster`.
        subset: accept other numbers of recordings than the official ones.

    Raises:
        FileNotFoundError: if the distribution is not there, saying where it comes from and goes to.
        ValueError: if it is not the official one.
    """
    choose("pipeline", pipeline, PIPELINES)
    declared, recordings = manifest.load_manifest("ntu"), {}
    path, = files.require(declared, manifest.data_root() if root is None else root)
    there = files.listed(files.folder(path))
    for file in there:
        name = file.name.removesuffix(".skeleton")
        numbers = NAME.fullmatch(name)
        if not (file.name.endswith(".skeleton") and numbers
                and all(1 <= int(part) <= most for part, most in zip(numbers.groups(), LARGEST, strict=True))):
            continue
        if (other := recordings.setdefault(name, file)) != file:
            raise ValueError(f"{path}: {name} is there twice, as {other} and {file}; remove one")
    if not recordings:
        raise ValueError(f"{path} holds no file of NTU RGB+D 60, such as S001C001P001R001A001.skeleton, among "
                         f"{len(there):,}; unpack the distribution there")
    missing = manifest.shipped("data_manifests") / "ntu_missing.txt"
    unusable = set(missing.read_text(encoding="utf-8").split())  # as the data set's authors list them
    names = sorted(recordings.keys() - unusable)
    if not subset:
        for protocol, split in declared.splits.items():
            counts = {part: int(mask.sum()) for part, mask in split.masks(columns(names)).items()}
            check_counts(f"ntu: recordings with a usable skeleton, of protocol {protocol}", counts, split.kept,
                         "compare the files with data_manifests/ntu.yaml; a part of them needs --subset")
    options = f" --pipeline {pipeline}" if pipeline != "authors" else ""
    make = functools.partial(sequence, pipeline=pipeline)
    made_by = code.of_files("skeleton/ntu.py", "skeleton/pipelines.py")
    return Source("ntu", pipeline, made_by, {name: recordings[name] for name in names}, make, options, subset)


def describe(made: Arrays) -> list[str]:
    """What was prepared, in words: counts of every protocol, files that cannot be used, the digest."""
    lengths = [record["rows"]["frames"] for record in made.usable]
    lines = [f"{len(lengths):,} recordings with {sum(lengths):,} frames of {made.arrays['frames'].shape[1]} "
             f"coordinates, {min(lengths)} to {max(lengths)} frames each"]
    for protocol, split in manifest.load_manifest("ntu").splits.items():
        masks = split.masks(columns(made.names))
        lines.append(f"{protocol}: {masks['train'].sum():,} train / {masks['test'].sum():,} test")
    bad = prepared.described("files cannot be used", made.bad)
    return [*lines, *bad, f"sha256 of the frames {made.digests['frames']}"]


def sequence(path: Path, pipeline: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What a pipeline makes of a file: `frames` as of `transformed`, which raises."""
    return {"frames": transformed(read_file(path), pipeline)}, {}


def transformed(contents: bytes, pipeline: str) -> np.ndarray:
    """What a pipeline makes of a `.skeleton` file, (T, D) float32; raises ValueError if it cannot be used."""
    with np.errstate(over="ignore", invalid="ignore"):
        frames = PIPELINES[pipeline](parse(contents)).astype(np.float32)
    finite = np.isfinite(frames).all(axis=1)
    if not finite.all():
        raise ValueError(f"its coordinates are so large that frame {np.argmin(finite)} of the sequence is not finite")
    return frames
