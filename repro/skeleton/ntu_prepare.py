"""NTU RGB+D prepared: the text is read once, in parallel, into one array file that is mapped into memory."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from repro.data import manifest, prepared
from repro.data.manifest import check_counts
from repro.data.prepared import Arrays, Item
from repro.recipe import choose
from repro.skeleton import ntu
from repro.skeleton.pipelines import authors, predict_cluster, rounded

FORMAT = 2                    # raise when the same files would be prepared otherwise
LISTED = "that the distribution lists as having no usable skeleton"
PIPELINES: dict[str, tuple[Callable[[ntu.Bodies], np.ndarray], int]] = {  # function, coordinates per frame
    "authors": (authors, 2 * 3 * ntu.JOINTS),
    "predict_cluster": (predict_cluster, 3 * ntu.JOINTS),
}


@dataclass(frozen=True, eq=False)
class Prepared:
    """The usable recordings of the distribution after a pipeline.

    Attributes:
        frames: (sum of lengths, D) float32, mapped from its file.
        lengths: (n,) int64.
        names: (n,) text such as `S001C001P001R001A001`, sorted.
        digest: hex sha256 of the frames.
        source: hex sha256 over names and contents of the files.
        bad: reasons by name for files that could not be used and were skipped.
        left_out: how many other files were left out, by kind.
    """

    frames: np.ndarray
    lengths: np.ndarray
    names: np.ndarray
    digest: str
    source: str
    bad: dict[str, str]
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)


def prepare(
    root: Path | None = None,
    *,
    pipeline: str = "authors",
    subset: bool = False,
    skip_bad: bool = False,
    workers: int = 1,
) -> Prepared:
    """Read the distribution below `root` and keep what a pipeline makes of it; at once if that was done before.

    Processes that ask at the same time wait for one another.

    Args:
        root: folder of real data; REPRO_DATA by default.
        pipeline: `authors` or `predict_cluster`.
        subset: accept other numbers of recordings than the official ones.
        skip_bad: leave out files that cannot be used; the official counts need all of them, so only with `subset`.
            Files that are none of NTU RGB+D 60 are always left out.
        workers: processes that read; with 1, this one does.

    Raises:
        FileNotFoundError: if the distribution is not there, saying where it comes from and goes to.
        ValueError: if it is not the official one, or files cannot be used: how many, which and why.
        OSError: if the disk is full, or a process that reads is killed; what was read until then is kept.
    """
    choose("pipeline", pipeline, PIPELINES)
    path, usable, left_out = source(root, subset=subset)
    try:
        arrays = prepared.build(_place(usable, pipeline), usable, functools.partial(sequence, pipeline=pipeline),
                                skip_bad=skip_bad and subset, workers=workers)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return _prepared(arrays, left_out)


def load(root: Path | None = None, *, pipeline: str, subset: bool) -> Prepared:
    """What `prepare` made of the distribution below `root`.

    Raises:
        FileNotFoundError: if the distribution is not there or was not prepared, naming the command that does it.
        ValueError: if the distribution is not the official one, or what was prepared is damaged.
    """
    _, usable, left_out = source(root, subset=subset)
    options = (" --subset" if subset else "") + (f" --pipeline {pipeline}" if pipeline != "authors" else "")
    command = f"run `repro data prepare ntu{options}`"
    try:
        found = _prepared(prepared.read(_place(usable, pipeline), usable), left_out)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"data set 'ntu' is not prepared for pipeline {pipeline!r}: {command} first") from error
    except ValueError as error:
        raise ValueError(f"{error}; {command} again") from error
    check(found.names, subset=subset, kept=True)
    return found


def source(root: Path | None, *, subset: bool) -> tuple[Path, list[Item], dict[str, int]]:
    """Where the distribution lies, its files with a usable skeleton, and how many others are there, by kind.

    That is the archive, or its folder if there is no archive. All files are counted unless a subset will do.
    """
    path, = manifest.require(manifest.load_manifest("ntu"), manifest.data_root() if root is None else root)
    items, others = ntu.recordings(path)
    without = unusable()
    usable = [item for item in items if item.name not in without]
    check([item.name for item in items], subset=subset, kept=False)
    check([item.name for item in usable], subset=subset, kept=True)
    listed = {LISTED: len(items) - len(usable)} if len(usable) < len(items) else {}
    return path, usable, listed | dict(others)


def check(names: Sequence[str], *, subset: bool, kept: bool) -> None:
    """Raise ValueError unless training and test recordings of every protocol are as many as declared.

    Args:
        names: of the recordings.
        subset: whatever their number.
        kept: these are the usable ones alone.
    """
    if subset:
        return
    columns = ntu.columns(names)
    for protocol, split in manifest.load_manifest("ntu").splits.items():
        rule = "with a usable skeleton, " if kept else ""
        counts = {part: int(mask.sum()) for part, mask in split.masks(columns).items()}
        check_counts(f"ntu: recordings {rule}of protocol {protocol}", counts, (kept and split.kept) or split.expect,
                     "compare the files with data_manifests/ntu.yaml; a part of them needs --subset")


def unusable() -> frozenset[str]:
    """Names of the recordings without a usable skeleton, as the data set's authors list them."""
    listed = manifest.shipped("data_manifests") / "ntu_missing.txt"
    return frozenset(listed.read_text(encoding="utf-8").split())


def describe(made: Prepared) -> list[str]:
    """What was prepared, in words: counts of every protocol, files left out, digests."""
    columns = ntu.columns(made.names)
    lines = [f"{len(made.names):,} recordings with {len(made.frames):,} frames of {made.frames.shape[1]} "
             f"coordinates, {made.lengths.min()} to {made.lengths.max()} frames each"]
    for protocol, split in manifest.load_manifest("ntu").splits.items():
        found = {part: int(mask.sum()) for part, mask in split.masks(columns).items()}
        expected = f"a subset, {split.kept['train']:,} / {split.kept['test']:,} are declared"
        verdict = "as declared" if found == split.kept else expected
        lines.append(f"{protocol}: {found['train']:,} train / {found['test']:,} test, {verdict}")
    lines += [f"left out: {ntu.counted(made.left_out)}"] if made.left_out else []
    lines += prepared.described("files cannot be used", made.bad)
    return [*lines, f"sha256 of the files {made.source}", f"sha256 of the frames {made.digest}"]


def sequence(item: Item, pipeline: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What a pipeline makes of a file, `frames` (T, D) float32, and the hex sha256 of the file's contents.

    Raises:
        ValueError: if the file cannot be used.
    """
    contents = item.entry.read()
    frames = rounded(PIPELINES[pipeline][0], ntu.parse(contents))
    return {"frames": frames}, {"sha256": hashlib.sha256(contents).hexdigest()}


def _place(usable: Sequence[Item], pipeline: str) -> Path:
    return prepared.folder_of("ntu", FORMAT, usable) / pipeline


def _prepared(arrays: Arrays, left_out: Mapping[str, int]) -> Prepared:
    records = arrays.usable
    listing = "\n".join(f"{record['name']} {record['sha256']}" for record in records)
    return Prepared(
        frames=arrays.arrays["frames"],
        lengths=np.diff(prepared.first_rows(records, "frames")),
        names=np.array([record["name"] for record in records]),
        digest=arrays.digests["frames"],
        source=hashlib.sha256(listing.encode()).hexdigest(),
        bad=arrays.bad,
        left_out=left_out,
    )
