"""Real video and sound prepared: every file is looked at once, decoded once, and kept in arrays mapped into memory.

    <REPRO_RUNS>/prepared/<data set>-<digest of the clips' names>/index.jsonl    what each file holds
                                                                  128.*          the arrays at that size, see `arrays`
                                                                  sound.*        those of a set without pictures

A preparation that was killed goes on where it was. A file whose size changes is read again, and so is what follows it;
one whose contents alone change is not noticed, delete the folder to have all read again.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from repro.audiovisual import arrays, index, media, sound, sources, splits, video
from repro.audiovisual.arrays import Base
from repro.audiovisual.index import Item
from repro.data import manifest
from repro.data.disk import TEMPORARY, alone
from repro.recipe import choose

FORMAT = 1                    # raise when the same files would be prepared otherwise
SHOWN = 20                    # files named in a message
UNLISTED = "no list names it"


@dataclass(frozen=True, eq=False)
class Prepared:
    """The clips of a data set, decoded.

    Attributes:
        name: of the data set; of a part of it, `ucf101 (subset)`.
        digest: hex sha256 of frames, sound, names, labels and splits; the same however they were made.
        names: (n,) text, sorted.
        classes: in the order of the labels.
        labels: (n,) int64; -1 where there is none.
        splits: masks "train" and "test", (n,) bool each, by split of the manifest.
        frames: (sum of frames, size, 4/3 size, 3) uint8 at 10 per second, mapped from its file.
        first_frame: (n + 1,) int64: clip i has the frames from first_frame[i] up to first_frame[i + 1].
        mel: (sum of rows, 80) float32, mapped from its file.
        first_row: (n + 1,) int64, likewise.
        rows_per_frame: rows of `mel` per frame.
        notes: what is odd about clips that are here, by name: no sound, short, sound of another length, ...
        reasons: why files are not here, by name, or place if no list names them.
        missing: clips that the lists name and that have no file.
        records: the file that lists all clips with a file, one line of JSON each: frames, rows, notes or the reason.
    """

    name: str
    digest: str
    names: np.ndarray
    classes: tuple[str, ...]
    labels: np.ndarray
    splits: Mapping[str, Mapping[str, np.ndarray]]
    frames: np.ndarray
    first_frame: np.ndarray
    mel: np.ndarray
    first_row: np.ndarray
    rows_per_frame: int
    notes: Mapping[str, tuple[str, ...]]
    reasons: Mapping[str, str]
    missing: tuple[str, ...]
    records: Path


@dataclass(frozen=True, eq=False)
class _Found:
    """What lies below the data root of a set: its lists, the clips they name, and the rest."""

    layout: splits.Layout
    listing: splits.Listing
    items: list[Item]
    notes: dict[str, str]
    unlisted: list[str]
    missing: tuple[str, ...]


def prepare(
    name: str,
    root: Path | None = None,
    *,
    size: int = video.SIZE,
    subset: bool = False,
    skip_bad: bool = False,
    workers: int = 1,
) -> Prepared:
    """Decode the clips of a data set and keep them; at once if that was done before.

    Processes that ask for the same set at the same time wait for one another. Nothing is written below `root`.

    Args:
        name: kinetics700, kinetics_sound, audioset, ucf101, hmdb51 or esc50.
        root: folder of real data; REPRO_DATA by default.
        size: height of the pictures, which are 4/3 as wide; of no effect on a set of sound alone.
        subset: accept that clips of the official distribution are not there.
        skip_bad: leave out files that cannot be used; they are listed with the reason, and what is left is a subset.
        workers: processes that read; with 1, this one does.

    Raises:
        FileNotFoundError: if the data set or one of its lists is not there, saying where it comes from and goes to.
        ValueError: if it is not the official one, or files cannot be used: how many, which and why.
        OSError: if the disk is full or cannot be written, or a process is killed; what was made until then is kept.
    """
    found = _find(name, root, subset)
    base = _base(name, found, size)
    base.path.parent.mkdir(parents=True, exist_ok=True)
    with alone(base.path.parent.with_suffix(".lock")):
        for path in base.path.parent.glob(".*"):
            if TEMPORARY.fullmatch(path.name):  # left by a kill
                path.unlink()
        records = index.scan(found.items, found.layout.needs, base.path.with_name("index.jsonl"), workers)
        refused = {each: record["reason"] for each, record in records.items() if record["reason"]}
        _refuse(name, refused, subset, skip_bad)
        _refuse(name, arrays.build(base, found.items, records, skip_bad, workers), subset, skip_bad)
    return _prepared(name, found, base, subset)


def load(name: str, root: Path | None = None, *, size: int = video.SIZE, subset: bool = False) -> Prepared:
    """What `prepare` made of a data set; takes the same arguments. Reads the lists anew, and no clip.

    Raises:
        FileNotFoundError: if the data set is not there, or was not prepared, naming the command that does it.
        ValueError: if it is not the official one, or what was prepared is damaged.
    """
    found = _find(name, root, subset)
    options = (" --subset" if subset else "") + (f" --size {size}" if size != video.SIZE else "")
    command = f"run `repro data prepare {name}{options}`"
    try:
        return _prepared(name, found, _base(name, found, size), subset)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"data set {name!r} is not prepared: {command} first ({error})") from error


def describe(prepared: Prepared) -> list[str]:
    """What was prepared, in words: counts of every split, what is odd, what was left out, and why."""
    frames, rows = np.diff(prepared.first_frame), np.diff(prepared.first_row)
    height, width = prepared.frames.shape[1:3]
    filmed = f"{int((frames > 0).sum()):,} with pictures ({width} x {height}, {len(prepared.frames):,} frames), "
    lines = [f"{prepared.name}: {len(prepared.names):,} clips of {len({*prepared.labels.tolist()} - {-1})} of the "
             f"{len(prepared.classes)} classes; {filmed if len(prepared.frames) else ''}"
             f"{int((rows > 0).sum()):,} with sound ({len(prepared.mel):,} rows); "
             f"{(prepared.frames.nbytes + prepared.mel.nbytes) / 1e9:,.2f} GB"]
    lines += [f"{split}: {int(masks['train'].sum()):,} train / {int(masks['test'].sum()):,} test"
              for split, masks in prepared.splits.items()]
    lines += _listed("clips are kept and odd", {clip: "; ".join(notes) for clip, notes in prepared.notes.items()})
    lines += _listed("files are left out", prepared.reasons)
    lines += [_missing(prepared.missing)] if prepared.missing else []
    return [*lines, f"every clip, a line each: {prepared.records}", f"sha256 of the set {prepared.digest}"]


def _listed(what: str, reasons: Mapping[str, str]) -> list[str]:
    """How many clips there are reasons for, by kind, and the first of them."""
    if not reasons:
        return []
    kinds = Counter(_kind(reason) for reason in reasons.values())
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common(5))
    shown = [f"  {name}: {reasons[name]}" for name in sorted(reasons)[:SHOWN]]
    rest = [f"  and {len(reasons) - SHOWN:,} more"] if len(reasons) > SHOWN else []
    return [f"{len(reasons):,} {what} ({counts}):", *shown, *rest]


def _kind(reason: str) -> str:
    """A reason without its numbers and details, so that equal ones can be counted."""
    return re.sub(r"\b\d[\d,.]*", "N", reason.partition(":")[0])


def _missing(clips: Sequence[str]) -> str:
    """How many clips have no file, and the first of them."""
    return f"{len(clips):,} clips of the lists have no file: {', '.join(clips[:5])}{', ...' if len(clips) > 5 else ''}"


def _refuse(name: str, bad: Mapping[str, str], subset: bool, skip_bad: bool) -> None:
    """Raise ValueError if files cannot be used and may not be left out."""
    if bad and not (skip_bad and subset):
        text = "\n".join(_listed("files cannot be used", bad))
        raise ValueError(f"{name}: {text}\nfetch them again, or leave them out: --skip-bad --subset")


def _find(name: str, root: Path | None, subset: bool) -> _Found:
    """Look through the folders of a data set.

    Raises:
        FileNotFoundError: if it or one of its lists is not there, or no clip.
        ValueError: if the lists are not the official ones, a clip is there twice, or clips have no file; with `subset`
            only if a clip is there twice.
    """
    layout = splits.LAYOUTS[choose("dataset", name, splits.LAYOUTS)]
    root = manifest.data_root() if root is None else root
    places = manifest.require(manifest.load_manifest(name), root)
    lists = manifest.location(manifest.Archive(name=f"splits/{name}.zip"), root)
    places += [lists] if lists else []
    files = sources.entries(places)
    below = f"{name}: below {', '.join(map(str, places))}"
    try:
        listing = layout.listing(_texts(layout, files))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{below} {error}; data_manifests/{name}.yaml says where it comes from") from error
    if not subset:
        splits.check(name, listing)
    chosen, notes, unlisted = _clips(layout, listing, files)
    if not chosen:
        raise FileNotFoundError(f"{below} there is no file of the {len(listing.names):,} clips that the lists name")
    missing = tuple(clip for clip in listing.names if clip not in chosen)
    if missing and not subset:
        raise ValueError(f"{below} {_missing(missing)}; fetch them, or accept a part of the data set: --subset")
    items = [Item(clip, chosen[clip], float(seconds))
             for clip, seconds in zip(listing.names, listing.seconds, strict=True) if clip in chosen]
    return _Found(layout, listing, items, dict(listing.notes) | notes, unlisted, missing)


def _texts(layout: splits.Layout, files: Iterable[sources.Entry]) -> dict[str, str]:
    """The lists, by name.

    Raises:
        ValueError: if two of a name differ, or one is no text.
    """
    texts: dict[str, str] = {}
    for entry in files:
        if not re.fullmatch(layout.lists, entry.name):
            continue
        try:
            text = sources.read(entry).decode("utf-8-sig")
        except (media.Unusable, UnicodeDecodeError) as error:
            raise ValueError(f"{entry.place} cannot be read ({error}); fetch it again") from error
        if texts.setdefault(entry.name, text) != text:
            raise ValueError(f"{entry.place} differs from another list of that name; move one of them away")
    return texts


def _clips(
    layout: splits.Layout, listing: splits.Listing, files: Iterable[sources.Entry]
) -> tuple[dict[str, sources.Entry], dict[str, str], list[str]]:
    """The files of listed clips by name, notes on those that are there twice, and places of files no list names."""
    known, chosen, notes, unlisted = frozenset(listing.names), {}, {}, []
    for entry in files:
        place = PurePosixPath(entry.name)
        if place.suffix.lower() not in layout.suffixes:
            continue
        clip = layout.clip(place.stem)
        if clip not in known:
            unlisted += [entry.place] if clip not in listing.others else []
        elif clip not in chosen:
            chosen[clip] = entry
        else:
            both = sorted((chosen[clip], entry), key=lambda each: _rank(each, layout))
            if _rank(both[0], layout) == _rank(both[1], layout):
                raise ValueError(f"{clip} is there twice, as {both[0].place} and {both[1].place}; move one away")
            chosen[clip], notes[clip] = both[0], f"there twice, not read: {both[1].place}"
    return chosen, notes, unlisted


def _rank(entry: sources.Entry, layout: splits.Layout) -> int:
    return layout.suffixes.index(PurePosixPath(entry.name).suffix.lower())


def _base(name: str, found: _Found, size: int) -> Base:
    """Where the arrays of a data set lie: in a folder that the names of its clips give.

    Raises:
        ValueError: if `size` is not one that can be asked for.
    """
    least, most = video.SIZES
    if type(size) is not int or not least <= size <= most:
        raise ValueError(f"size={size!r} should be a whole number from {least} to {most}")
    listing = "\n".join([f"format {FORMAT}", *(item.name for item in found.items)])
    folder = manifest.prepared_root() / f"{name}-{hashlib.sha256(listing.encode()).hexdigest()[:16]}"
    return Base(folder / (f"{size}" if found.layout.needs == "video" else "sound"), found.layout.needs, size)


def _prepared(name: str, found: _Found, base: Base, subset: bool) -> Prepared:
    """The set as it was prepared; raises as `arrays.read`, and ValueError if files are left out without `subset`."""
    records, frames, mel = arrays.read(base, found.items)
    bad = {record["name"]: record["reason"] for record in records if record["reason"]}
    _refuse(name, bad, subset, skip_bad=True)
    kept = [record for record in records if not record["reason"]]
    if not kept:
        raise ValueError("\n".join([f"{name}: none of its files can be used", *_listed("files are left out", bad)]))
    names = np.array([record["name"] for record in kept])
    places = np.searchsorted(np.array(found.listing.names), names)
    declared = manifest.load_manifest(name).splits
    masks = {key: {part: mask[places] for part, mask in split.masks(found.listing.columns).items()}
             for key, split in declared.items()}
    labels = found.listing.labels[places]
    notes = {record["name"]: (*record["notes"], *_also(found.notes, record["name"])) for record in kept}
    return Prepared(
        name=f"{name} (subset)" if subset else name,
        digest=_digest(kept, found.listing.classes, labels, masks),
        names=names,
        classes=found.listing.classes,
        labels=labels,
        splits=masks,
        frames=frames,
        first_frame=_offsets(record["frames"] for record in kept),
        mel=mel,
        first_row=_offsets(record["rows"] for record in kept),
        rows_per_frame=sound.ROWS_PER_FRAME,
        notes={clip: each for clip, each in notes.items() if each},
        reasons=bad | dict.fromkeys(found.unlisted, UNLISTED),
        missing=found.missing,
        records=base.records,
    )


def _also(notes: Mapping[str, str], clip: str) -> tuple[str, ...]:
    return (notes[clip],) if clip in notes else ()


def _offsets(lengths: Iterable[int]) -> np.ndarray:
    """(n + 1,) int64, from 0."""
    return np.concatenate([[0], np.cumsum(np.fromiter(lengths, dtype=np.int64))])


def _digest(
    records: Sequence[Mapping[str, object]], classes: Sequence[str], labels: np.ndarray,
    masks: Mapping[str, Mapping[str, np.ndarray]],
) -> str:
    """Hex sha256 of what a training can depend on."""
    digest = hashlib.sha256("\n".join([f"format {FORMAT}", *classes, ""]).encode())
    for record in records:
        digest.update(f"{record['name']} {record['pictures']} {record['sound']}\n".encode())
    digest.update(labels.astype("<i8"))
    for key in sorted(masks):
        for part in ("train", "test"):
            digest.update(f"{key} {part}".encode())
            digest.update(masks[key][part])
    return digest.hexdigest()
