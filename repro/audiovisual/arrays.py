"""Decoded clips on disk: two files that are mapped into memory, and a line of JSON per clip.

    <base>.frames   the pictures of all clips, one clip after the other: raw bytes, (F, size, 4/3 size, 3) uint8
    <base>.mel      their sound, likewise: (rows, 80) float32
    <base>.jsonl    a record per clip, and a last line once all are there
    <base>.shards/  64 clips each, until they are appended

Processes make shards, in any order; this one appends them in the order of the clips and deletes them, so that the disk
holds little twice. The records say how much of the two files counts: what a kill left beyond is cut off, and everything
goes on from there. What is decoded is hashed at once; reading it later looks at the sizes of the files alone.
"""

import contextlib
import hashlib
import itertools
import json
import mmap
import os
import shutil
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from repro.audiovisual import media, sound, sources, video
from repro.audiovisual.decode import Clip, decode
from repro.audiovisual.index import Item
from repro.data.disk import naming, write_atomically
from repro.run.parallel import run_jobs
from repro.run.store import write_json

CHUNK = 64                    # clips per shard
MEL_BYTES = 4 * sound.BANDS   # a row
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)  # else no more than memory holds

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Base:
    """Where the arrays of a set lie, and how they are made.

    Attributes:
        path: of the files without their suffixes.
        needs: what a clip is useless without, "video" or "audio".
        size: of the pictures.
    """

    path: Path
    needs: str
    size: int

    @property
    def frames(self) -> Path:
        """The file of pictures."""
        return self.path.with_suffix(".frames")

    @property
    def mel(self) -> Path:
        """The file of sound."""
        return self.path.with_suffix(".mel")

    @property
    def records(self) -> Path:
        """The file of records."""
        return self.path.with_suffix(".jsonl")

    @property
    def shards(self) -> Path:
        """The folder of shards."""
        return self.path.with_suffix(".shards")

    def bytes_of(self, records: Sequence[Record]) -> dict[str, int]:
        """Bytes that the clips of some records take, by suffix of the file."""
        frames, rows = (sum(record.get(column, 0) for record in records) for column in ("frames", "rows"))
        return {".frames": frames * self.size * video.width(self.size) * 3, ".mel": rows * MEL_BYTES}


def build(
    base: Base, items: Sequence[Item], index: Mapping[str, Record], skip_bad: bool, workers: int
) -> dict[str, str]:
    """Make the arrays of all items, or what of them is missing; files that could not be decoded are tried again.

    Args:
        base: where.
        items: sorted by name.
        index: the records of the files, by name; one with a reason is not decoded.
        skip_bad: go on without files that cannot be decoded.
        workers: processes that decode.

    Returns:
        Reasons by name for files that cannot be decoded; if there are any, the arrays are complete only with
        `skip_bad`.

    Raises:
        OSError: if the disk is full, or a process is killed; what was made until then is kept.
    """
    mended: frozenset[str] = frozenset()
    with contextlib.suppress(FileNotFoundError, ValueError):  # not there, not complete, or damaged since
        bad = {record["name"] for record in read(base, items)[0] if record["reason"]}
        still = {item.name: reason for item in items if item.name in bad and (reason := _reason(base, item, index))}
        if len(still) == len(bad) or (still and not skip_bad):
            shutil.rmtree(base.shards, ignore_errors=True)  # left by a kill after the last line was written
            return still
        mended = frozenset(bad - still.keys())
    chunks = [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]
    shards = [base.shards / f"{number:06d}" for number in range(len(chunks))]
    base.shards.mkdir(parents=True, exist_ok=True)
    first = _resume(base, chunks, skip_bad, mended)
    first = _make(base, chunks, shards, first, index, skip_bad, workers)
    if first == len(chunks):
        return _complete(base)
    bad_by_shard = {shard: found for shard in shards[first:] if (found := _reasons(_stored(shard)))}
    for shard in bad_by_shard:
        _remove(shard)  # read again next time
    return {name: reason for found in bad_by_shard.values() for name, reason in found.items()}


def read(base: Base, items: Sequence[Item]) -> tuple[list[dict[str, Any]], np.ndarray, np.ndarray]:
    """The records of all items in their order, and their frames and mel, mapped: writing would not reach the files.

    Raises:
        FileNotFoundError: if they were not made, or not to the end, or files of the data set have changed since.
        ValueError: if they are damaged.
    """
    lines = base.records.read_bytes().splitlines(keepends=True)
    if not _is_last(lines[-1:]):
        raise FileNotFoundError(f"{base.records} is not complete")
    records = _parsed(lines[:-1])
    if not _unchanged(lines):
        raise ValueError(f"{base.records} has changed")
    if not _are_of(records, items):
        raise FileNotFoundError(f"{base.records} is of files that have changed since")
    sizes = base.bytes_of(records)
    frames = _mapped(base.frames, np.dtype(np.uint8), sizes[".frames"], (base.size, video.width(base.size), 3))
    return records, frames, _mapped(base.mel, np.dtype("<f4"), sizes[".mel"], (sound.BANDS,))


def make_shard(base: Base, clips: Sequence[tuple[Item, Record]], shard: Path) -> Path:
    """Decode clips into the files of a shard, one clip in memory at a time; returns `shard`.

    Clips that cannot be decoded are noted there with the reason.
    """
    from threadpoolctl import threadpool_limits

    records = []
    frames, mel = shard.with_suffix(".frames"), shard.with_suffix(".mel")
    with threadpool_limits(1), naming(frames), open(frames, "wb") as pictures, open(mel, "wb") as sounds:
        for item, about in clips:
            record = {"name": item.name, "bytes": item.entry.size, "frames": 0, "rows": 0, "reason": None, "notes": []}
            try:
                clip = _clip(base, item, about)
            except media.Unusable as error:
                records.append(record | {"reason": str(error)})
                continue
            pictures.write(clip.frames)
            sounds.write(clip.mel.astype("<f4", copy=False))
            records.append(record | {
                "frames": len(clip.frames), "rows": len(clip.mel), "notes": list(clip.notes),
                "pictures": hashlib.sha256(clip.frames).hexdigest(), "sound": hashlib.sha256(clip.mel).hexdigest(),
            })
        for file in (pictures, sounds):
            file.flush()
            os.fsync(file.fileno())
    write_json(shard.with_suffix(".json"), records)
    return shard


def _make(
    base: Base, chunks: Sequence[Sequence[Item]], shards: Sequence[Path], first: int, index: Mapping[str, Record],
    skip_bad: bool, workers: int,
) -> int:
    """Decode the chunks from `first` on and append them, up to one with bad files unless these may be left out.

    Returns:
        how many chunks are appended then.
    """
    ready = {number for number in range(first, len(chunks)) if _holds(base, shards[number], chunks[number])}
    jobs = [(base, [(item, index[item.name]) for item in chunks[number]], shards[number])
            for number in range(first, len(chunks)) if number not in ready]
    waiting = sum(len(clips) for _, clips, _ in jobs)
    total = sum(map(len, chunks))
    forecast = _Forecast(base, {shard: clips for _, clips, shard in jobs}, workers)
    with tqdm(total=total, initial=total - waiting, desc="decoding", unit="file", file=sys.stderr) as progress:
        for shard in itertools.chain([None], run_jobs(make_shard, jobs, workers)):  # None: some may be ready
            if shard:
                ready.add(int(shard.name))
                progress.update(len(chunks[int(shard.name)]))
                forecast.after(shard)
            while first in ready and (skip_bad or not _reasons(_stored(shards[first]))):
                _append(base, shards[first])
                first += 1
    return first


def _clip(base: Base, item: Item, about: Record) -> Clip:
    """A file decoded.

    Raises:
        Unusable: if that is not possible, or the index says so.
    """
    if about["reason"]:
        raise media.Unusable(about["reason"])
    try:
        return decode(sources.read(item.entry), about, needs=base.needs, size=base.size, listed=item.seconds)
    except Exception as error:
        error.add_note(f"in {item.entry.place}")
        raise


def _reason(base: Base, item: Item, index: Mapping[str, Record]) -> str | None:
    """Why a file cannot be decoded, None if it can."""
    try:
        _clip(base, item, index[item.name])
    except media.Unusable as error:
        return str(error)
    return None


class _Forecast:
    """Says once, after the first of several shards, how long all will take and how much disk."""

    def __init__(self, base: Base, shards: Mapping[Path, Sequence[tuple[Item, Record]]], workers: int) -> None:
        self.base, self.workers, self.began = base, workers, time.monotonic()
        self.seconds = {shard: sum(about.get("seconds") or 0 for _, about in clips) for shard, clips in shards.items()}
        self.said = len(shards) < 2

    def after(self, shard: Path) -> None:
        """Say it, unless it has been said."""
        if self.said:
            return
        self.said = True
        times = sum(self.seconds.values()) / max(self.seconds[shard], 1e-9)
        minutes = (time.monotonic() - self.began) * times / self.workers / 60
        bytes_needed = times * sum(self.base.bytes_of(_stored(shard)).values())
        free = shutil.disk_usage(self.base.path.parent).free
        tqdm.write(f"{sum(self.seconds.values()) / 3600:,.1f} hours of clips take about {minutes:,.0f} minutes with "
                   f"workers={self.workers} and {bytes_needed / 1e9:,.1f} GB in {self.base.path.parent}, where "
                   f"{free / 1e9:,.1f} GB are free", file=sys.stderr)


def _resume(base: Base, chunks: Sequence[Sequence[Item]], skip_bad: bool, mended: Collection[str]) -> int:
    """How many chunks are appended already; what lies beyond them is cut off.

    A chunk counts if its files are as they were, and were all decoded or may, and must, be left out.
    """
    lines = base.records.read_bytes().splitlines(keepends=True) if base.records.exists() else []
    if _is_last(lines[-1:]) and not _unchanged(lines):
        lines = []
    records = _parsed(lines)
    kept, first, ends = 0, 0, dict.fromkeys((base.frames, base.mel), 0)
    for chunk in chunks:
        part = records[kept : kept + len(chunk)]
        after = {file: end + base.bytes_of(part)[file.suffix] for file, end in ends.items()}
        again = [name for name in _reasons(part) if not skip_bad or name in mended]
        lost = [file for file, end in after.items() if not file.exists() or file.stat().st_size < end]
        if again or lost or not _are_of(part, chunk):
            break
        kept, first, ends = kept + len(chunk), first + 1, after
    if kept < len(lines) or not lines:
        write_atomically(base.records, lambda temporary: temporary.write_bytes(b"".join(lines[:kept])))
    for file, end in ends.items():
        with naming(file), open(file, "ab") as opened:
            opened.truncate(end)
    return first


def _append(base: Base, shard: Path) -> None:
    """Move a shard to the end of the arrays: first what it holds, then its records, which make it count."""
    lines = "".join(json.dumps(record) + "\n" for record in _stored(shard))
    for part, whole in ((shard.with_suffix(".frames"), base.frames), (shard.with_suffix(".mel"), base.mel)):
        with naming(whole), open(part, "rb") as source, open(whole, "ab") as target:
            shutil.copyfileobj(source, target, 2**22)
            target.flush()
            os.fsync(target.fileno())
    with naming(base.records), open(base.records, "a", encoding="utf-8") as target:
        target.write(lines)
        target.flush()
        os.fsync(target.fileno())
    _remove(shard)


def _complete(base: Base) -> dict[str, str]:
    """Add the line that says that all records are there, and drop what only making them needed.

    Returns:
        reasons by name for files that were left out.
    """
    contents = base.records.read_bytes()
    last = json.dumps({"digest": hashlib.sha256(contents).hexdigest()}) + "\n"
    write_atomically(base.records, lambda temporary: temporary.write_bytes(contents + last.encode()))
    shutil.rmtree(base.shards)
    return _reasons(_parsed(contents.splitlines()))


def _is_last(lines: Sequence[bytes]) -> bool:
    """Whether there is a line, and it is the one that says that all records are there."""
    return any("digest" in record for record in _parsed(lines))


def _unchanged(lines: Sequence[bytes]) -> bool:
    """Whether all lines before the last are those it was made for."""
    return _parsed(lines[-1:])[0]["digest"] == hashlib.sha256(b"".join(lines[:-1])).hexdigest()


def _holds(base: Base, shard: Path, chunk: Sequence[Item]) -> bool:
    """Whether a shard is there, whole, and of the files as they are now."""
    records = _stored(shard)
    files = {shard.with_suffix(suffix): size for suffix, size in base.bytes_of(records).items()}
    whole = all(file.exists() and file.stat().st_size == size for file, size in files.items())
    return whole and _are_of(records, chunk)


def _are_of(records: Sequence[Record], items: Sequence[Item]) -> bool:
    """Whether records are those of the files of some items as they are now."""
    return [(record.get("name"), record.get("bytes")) for record in records] == [
        (item.name, item.entry.size) for item in items
    ]


def _stored(shard: Path) -> list[dict[str, Any]]:
    """The records of a shard; none if it is not there or damaged."""
    try:
        return json.loads(shard.with_suffix(".json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return []


def _reasons(records: Sequence[Record]) -> dict[str, str]:
    """Reasons by name for files that could not be decoded."""
    return {record["name"]: record["reason"] for record in records if record.get("reason")}


def _remove(shard: Path) -> None:
    for suffix in (".json", ".frames", ".mel"):
        shard.with_suffix(suffix).unlink(missing_ok=True)


def _parsed(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """The records in lines, up to one that is damaged."""
    records = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records


def _mapped(path: Path, kind: np.dtype, size: int, shape: tuple[int, ...]) -> np.ndarray:
    """A file of `size` bytes as an array whose rows have a shape.

    Raises:
        ValueError: if it has another size.
    """
    found = path.stat().st_size if path.exists() else 0
    if found != size:
        raise ValueError(f"{path} has {found:,} bytes, expected {size:,}")
    if size == 0:  # nothing can be mapped
        return np.empty((0, *shape), dtype=kind)
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE | NO_RESERVE,
                           prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return np.frombuffer(mapped, dtype=kind).reshape(-1, *shape)
