"""Readers of skeleton data sets: what makes recordings of the official files. NumPy alone."""

import json
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from repro.data.manifest import Manifest
from repro.recipe import choose
from repro.skeleton.pipelines import Recording
from repro.skeleton.synthetic import generate

Members = Sequence[tuple[str, bytes]]
UCLA_NAME = re.compile(r"a(\d\d)_s(\d\d)_e\d\d_v(\d\d)\.json")
UCLA_ACTIONS = (1, 2, 3, 4, 5, 6, 8, 9, 11, 12)  # their numbers in a file name, in the order of the labels

# Of the (name, contents) pairs of all files of the official distribution, sorted by name; raises ValueError, naming the
# file, if one cannot be read. Manifests name one of `READERS`.
Reader = Callable[[Members, Manifest], Iterator[Recording]]


def ucla(members: Members, declared: Manifest) -> Iterator[Recording]:
    """NW-UCLA: names such as `a01_s01_e00_v01.json` give action, subject, take and view."""
    for name, contents in members:
        action, subject, view = (int(number) for number in UCLA_NAME.fullmatch(name).groups())
        frames = np.array(json.loads(contents)["skeletons"], dtype=np.float64)
        yield Recording(frames, UCLA_ACTIONS.index(action), subject, view)


READERS: dict[str, Reader] = {"ucla": ucla, "synthetic": lambda members, declared: generate()}


def read(members: Members, declared: Manifest) -> dict[str, np.ndarray]:
    """All recordings of a data set, end to end.

    Returns:
        `frames` (sum of lengths, joints, 3) float64, `lengths`, `labels`, `subjects` and `views` (n,) int64.

    Raises:
        ValueError: if the manifest names no reader, or a recording is not of its joints; as the reader.
    """
    name = choose(f"data_manifests/{declared.name}.yaml: reader", declared.skeletons.reader, READERS)
    frames, rows = [], []
    for number, recording in enumerate(READERS[name](members, declared)):
        try:
            frames.append(checked(recording.frames, declared.skeletons.joints))
        except ValueError as error:
            raise ValueError(f"{declared.name}: recording {number}: {error}") from error
        rows.append((len(frames[-1]), *recording[1:]))
    if not rows:
        raise ValueError(f"the reader {name!r} found no recording among {len(members):,} files of {declared.name}")
    lengths, labels, subjects, views = np.array(rows, dtype=np.int64).T.copy()
    return {"frames": np.concatenate(frames), "lengths": lengths, "labels": labels, "subjects": subjects,
            "views": views}


def checked(recording: np.ndarray, joints: int) -> np.ndarray:
    """A recording as float64; ValueError unless it is (frames, joints, 3), finite, of at least one frame."""
    frames = np.asarray(recording, dtype=np.float64)
    if frames.ndim != 3 or frames.shape[1:] != (joints, 3) or not len(frames):
        raise ValueError(f"its shape is {frames.shape}; give (frames, {joints}, 3)")
    if not np.isfinite(frames).all():
        raise ValueError("a coordinate is not finite; leave it out, or mend it")
    return frames
