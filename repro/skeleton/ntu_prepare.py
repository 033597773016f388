"""NTU RGB+D prepared: the text is read once, in parallel, into one array file that is mapped into memory.

    <REPRO_RUNS>/prepared/ntu-<digest of names and sizes>/<pipeline>.npy      frames, one recording after the other
                                                          <pipeline>.npz      its index, written last
                                                          <pipeline>.shards/  a file per 256 recordings, until then

A preparation that was killed goes on with the shards that are missing. A file whose contents change but not its size is
not noticed; delete the folder to have all files read again. NumPy alone, so that workers start at once.
"""

import contextlib
import dataclasses
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from repro.data import manifest, npz
from repro.data.disk import alone, write_atomically
from repro.recipe import choose
from repro.run.parallel import run_jobs
from repro.skeleton import ntu, splits
from repro.skeleton.pipelines import NO_BODY, authors, predict_cluster, rounded

FORMAT = 2                    # raise when the same files would be prepared otherwise
CHUNK = 256                   # recordings per shard
SHOWN = 20                    # files that cannot be used, named in a message
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
    index = _index(usable, pipeline)
    folder = index.with_suffix(".shards")
    index.parent.mkdir(parents=True, exist_ok=True)
    with alone(index.with_suffix(".lock")):
        prepared = None
        with contextlib.suppress(*npz.DAMAGED):
            prepared = _read(index)  # not there, or damaged since: made again
        if prepared:
            shutil.rmtree(folder, ignore_errors=True)  # left by a kill after the index was written
            bad = _still_bad(path, usable, pipeline, prepared)
            _refuse(path, bad, skip_bad and subset)
            if len(bad) == len(prepared.bad):
                check(prepared.names, subset=subset, kept=True)
                return dataclasses.replace(prepared, left_out=left_out)
        shards = _make_shards(path, usable, folder, pipeline, workers)
        faulty = {shard: reasons for shard in shards if (reasons := _reasons(shard))}
        bad = {name: reason for reasons in faulty.values() for name, reason in reasons.items()}
        if not (skip_bad and subset):
            for shard in faulty:
                shard.unlink()  # read again next time
        _refuse(path, bad, skip_bad and subset)
        check([member.name for member in usable if member.name not in bad], subset=subset, kept=True)
        if len(bad) == len(usable):
            raise ValueError(f"{path}: none of its recordings is usable; {describe_bad(bad)}")
        _assemble(shards, index, pipeline, bad)
        return dataclasses.replace(_read(index), left_out=left_out)


def load(root: Path | None = None, *, pipeline: str, subset: bool) -> Prepared:
    """What `prepare` made of the distribution below `root`, checked against its digest.

    Raises:
        FileNotFoundError: if the distribution is not there or was not prepared, naming the command that does it.
        ValueError: if the distribution is not the official one, or what was prepared is damaged.
    """
    _, usable, _ = source(root, subset=subset)
    index = _index(usable, pipeline)
    options = (" --subset" if subset else "") + (f" --pipeline {pipeline}" if pipeline != "authors" else "")
    command = f"run `repro data prepare ntu{options}`"
    try:
        prepared = _read(index)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"data set 'ntu' is not prepared for pipeline {pipeline!r}: {command} first") from error
    except npz.DAMAGED as error:
        raise ValueError(f"{index.with_suffix('.npy')} or its index is damaged ({error}); {command} again") from error
    check(prepared.names, subset=subset, kept=True)
    return prepared


def source(root: Path | None, *, subset: bool) -> tuple[Path, list[ntu.Member], dict[str, int]]:
    """Where the distribution lies, its files with a usable skeleton, and how many others are there, by kind.

    That is the archive, or its folder if there is no archive. All files are counted unless a subset will do.
    """
    path, = manifest.require(manifest.load_manifest("ntu"), manifest.data_root() if root is None else root)
    members, others = ntu.members(path)
    check([member.name for member in members], subset=subset, kept=False)
    without = unusable()
    usable = [member for member in members if member.name not in without]
    listed = {LISTED: len(members) - len(usable)} if len(usable) < len(members) else {}
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
        rule = f" with a usable skeleton, protocol {protocol}," if kept else f" of protocol {protocol}"
        expected = (split.kept if kept else None) or split.expect
        splits.check_counts("ntu", rule, split.masks(columns), expected, "; a part of them needs --subset")


def unusable() -> frozenset[str]:
    """Names of the recordings without a usable skeleton, as the data set's authors list them."""
    listed = manifest.shipped("data_manifests") / "ntu_missing.txt"
    return frozenset(listed.read_text(encoding="utf-8").split())


def describe(prepared: Prepared) -> list[str]:
    """What was prepared, in words: counts of every protocol, files left out, digests."""
    columns = ntu.columns(prepared.names)
    lines = [f"{len(prepared.names):,} recordings with {len(prepared.frames):,} frames of {prepared.frames.shape[1]} "
             f"coordinates, {prepared.lengths.min()} to {prepared.lengths.max()} frames each"]
    for protocol, split in manifest.load_manifest("ntu").splits.items():
        found = {part: int(mask.sum()) for part, mask in split.masks(columns).items()}
        expected = f"a subset, {split.kept['train']:,} / {split.kept['test']:,} are declared"
        verdict = "as declared" if found == split.kept else expected
        lines.append(f"{protocol}: {found['train']:,} train / {found['test']:,} test, {verdict}")
    lines += [f"left out: {ntu.counted(prepared.left_out)}"] if prepared.left_out else []
    lines += [describe_bad(prepared.bad)] if prepared.bad else []
    return [*lines, f"sha256 of the files {prepared.source}", f"sha256 of the frames {prepared.digest}"]


def describe_bad(bad: dict[str, str]) -> str:
    """How many files could not be used, and the first of them with the reason."""
    lines = [f"{ntu.files(len(bad))} cannot be used:", *(f"  {name}: {reason}" for name, reason in sorted(bad.items()))]
    rest = [f"  and {len(bad) - SHOWN} more"] if len(bad) > SHOWN else []
    return "\n".join(lines[: 1 + SHOWN] + rest)


def _refuse(path: Path, bad: dict[str, str], incomplete: bool) -> None:
    """Raise ValueError if files cannot be used, unless an incomplete distribution will do."""
    if bad and not incomplete:
        empty = sum(reason == NO_BODY for reason in bad.values())
        them = "it" if len(bad) == 1 else "them"
        again = f"fetch {'the others' if empty else them} again, or " if empty < len(bad) else ""
        lacking = f"{ntu.files(empty)} without any body may be as distributed; " if empty else ""
        raise ValueError(f"{path}: {describe_bad(bad)}\n{lacking}{again}leave {them} out: --skip-bad --subset")


def _index(usable: list[ntu.Member], pipeline: str) -> Path:
    """The index file of a distribution after a pipeline, in a folder that names and sizes of the usable files give."""
    listing = "\n".join([f"format {FORMAT}", *(f"{member.name} {member.size}" for member in usable)])
    digest = hashlib.sha256(listing.encode()).hexdigest()
    return manifest.prepared_root() / f"ntu-{digest[:16]}" / f"{pipeline}.npz"


def _read(index: Path) -> Prepared:
    """The prepared recordings of an index.

    Raises:
        FileNotFoundError: if there are none.
        npz.DAMAGED: if a file is damaged.
    """
    values = npz.read(index)
    frames = np.load(index.with_suffix(".npy"), mmap_mode="c")  # private: writing would not reach the file
    with open(index.with_suffix(".npy"), "rb") as file:  # through the map, all of it would stay in this process
        file.seek(frames.offset)
        digest = hashlib.file_digest(file, "sha256")
    if digest.hexdigest() != str(values["digest"]) or len(frames) != values["lengths"].sum():
        raise ValueError("the digest of the frames has changed")
    bad = dict(zip(values["bad"].tolist(), values["reasons"].tolist(), strict=True))
    return Prepared(frames, values["lengths"], values["names"], digest.hexdigest(), str(values["source"]), bad)


def _make_shards(path: Path, usable: list[ntu.Member], folder: Path, pipeline: str, workers: int) -> list[Path]:
    """The shards of all recordings, in order; those that are there already are left as they are."""
    folder.mkdir(exist_ok=True)
    chunks = [usable[start : start + CHUNK] for start in range(0, len(usable), CHUNK)]
    shards = [folder / f"{number:05d}.npz" for number in range(len(chunks))]
    jobs = [(path, chunk, pipeline, shard) for chunk, shard in zip(chunks, shards, strict=True)]
    waiting = [job for chunk, shard, job in zip(chunks, shards, jobs, strict=True) if not _holds(shard, chunk)]
    done = len(usable) - sum(len(chunk) for _, chunk, _, _ in waiting)
    with tqdm(total=len(usable), initial=done, desc="reading ntu", unit="file") as progress:
        for count in run_jobs(_make_shard, waiting, workers):
            progress.update(count)
    return shards


def _holds(shard: Path, chunk: list[ntu.Member]) -> bool:
    """Whether a shard is there, whole, and of these recordings: what it should hold may have changed since a kill."""
    with contextlib.suppress(*npz.DAMAGED):
        found = npz.read(shard)
        return sorted([*found["names"], *found["bad"]]) == [member.name for member in chunk]
    return False


def _make_shard(path: Path, chunk: list[ntu.Member], pipeline: str, shard: Path) -> int:
    """Read the recordings of a chunk into a shard; files that cannot be read are noted there with the reason."""
    sequences, names, digests, bad = [np.empty((0, PIPELINES[pipeline][1]), dtype=np.float32)], [], [], {}
    for member in chunk:
        try:
            sequence, digest = _sequence(path, member, pipeline)
        except ValueError as error:
            bad[member.name] = str(error)
            continue
        sequences.append(sequence)
        names.append(member.name)
        digests.append(digest)
    lengths = np.array([len(sequence) for sequence in sequences[1:]], dtype=np.int64)
    _save(shard, frames=np.concatenate(sequences), lengths=lengths, names=np.array(names, dtype=str),
          digests=np.array(digests, dtype=str), bad=np.array(list(bad), dtype=str),
          reasons=np.array(list(bad.values()), dtype=str))
    return len(chunk)


def _sequence(path: Path, member: ntu.Member, pipeline: str) -> tuple[np.ndarray, str]:
    """What a pipeline makes of a file, (T, D) float32, and the hex sha256 of the file's contents.

    Raises:
        ValueError: if the file cannot be read.
    """
    try:
        contents = ntu.read(path, member)
        sequence = rounded(PIPELINES[pipeline][0], ntu.parse(contents))
    except Exception as error:
        error.add_note(f"in {member.place} of {path}")
        raise
    return sequence, hashlib.sha256(contents).hexdigest()


def _still_bad(path: Path, usable: list[ntu.Member], pipeline: str, prepared: Prepared) -> dict[str, str]:
    """Reasons by name for the files that were left out and still cannot be read."""
    bad = {}
    for member in usable:
        if member.name in prepared.bad:
            try:
                _sequence(path, member, pipeline)
            except ValueError as error:
                bad[member.name] = str(error)
    return bad


def _reasons(shard: Path) -> dict[str, str]:
    """Reasons by name for the files of a shard that could not be read."""
    with np.load(shard) as part:
        return dict(zip(part["bad"].tolist(), part["reasons"].tolist(), strict=True))


def _assemble(shards: list[Path], index: Path, pipeline: str, bad: dict[str, str]) -> None:
    """Write the frames of all shards into one file, a shard at a time, then the index, and drop the shards."""
    columns: dict[str, list[np.ndarray]] = {"lengths": [], "names": [], "digests": []}
    for shard in shards:
        with np.load(shard) as part:
            for name, found in columns.items():
                found.append(part[name])
    lengths, names, digests = (np.concatenate(found) for found in columns.values())
    digest = hashlib.sha256()

    def write(temporary: Path) -> None:
        header = {"descr": np.dtype(np.float32).str, "fortran_order": False,
                  "shape": (int(lengths.sum()), PIPELINES[pipeline][1])}
        with open(temporary, "wb") as file:  # not mapped: there a full disk would end the process without a word
            np.lib.format.write_array_header_1_0(file, header)
            for shard in shards:
                with np.load(shard) as part:
                    found = part["frames"]
                file.write(found)
                digest.update(found)

    for abandoned in index.parent.glob(f".{index.stem}.np*"):
        abandoned.unlink()
    write_atomically(index.with_suffix(".npy"), write)
    listing = "\n".join(f"{name} {found}" for name, found in zip(names, digests, strict=True))
    _save(index, lengths=lengths, names=names, digest=np.array(digest.hexdigest()),
          source=np.array(hashlib.sha256(listing.encode()).hexdigest()), bad=np.array(list(bad), dtype=str),
          reasons=np.array(list(bad.values()), dtype=str))
    shutil.rmtree(index.with_suffix(".shards"))


def _save(path: Path, **arrays: np.ndarray) -> None:
    write_atomically(path, lambda temporary: npz.write(temporary, arrays))
