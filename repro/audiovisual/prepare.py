"""Real video and sound prepared: the lists of a data set, the files they name, and these decoded, once each."""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from repro.audiovisual import sound, splits, video
from repro.audiovisual.decode import decode
from repro.data import manifest, prepared
from repro.data.archives import Entry, entries
from repro.data.prepared import Arrays, Item, Record, first_rows
from repro.recipe import choose

FORMAT = 1                    # raise when the same files would be prepared otherwise; also in the digest
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
    path = _place(name, found, size)
    make = functools.partial(clip, needs=found.layout.needs, size=size)
    try:
        arrays = prepared.build(path, found.items, make, skip_bad=skip_bad and subset, workers=workers)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return _prepared(name, found, arrays, path, subset)


def load(name: str, root: Path | None = None, *, size: int = video.SIZE, subset: bool = False) -> Prepared:
    """What `prepare` made of a data set; takes the same arguments. Reads the lists anew, and no clip.

    Raises:
        FileNotFoundError: if the data set is not there, or was not prepared, naming the command that does it.
        ValueError: if it is not the official one, or what was prepared is damaged.
    """
    found = _find(name, root, subset)
    options = (" --subset" if subset else "") + (f" --size {size}" if size != video.SIZE else "")
    command = f"run `repro data prepare {name}{options}`"
    path = _place(name, found, size)
    try:
        arrays = prepared.read(path, found.items)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"data set {name!r} is not prepared: {command} first ({error})") from error
    if arrays.bad and not subset:
        text = "\n".join(prepared.described("files cannot be used", arrays.bad))
        raise ValueError(f"{name}: {text}\n{command} again, or accept a part of the data set: --subset")
    return _prepared(name, found, arrays, path, subset)


def describe(made: Prepared) -> list[str]:
    """What was prepared, in words: counts of every split, what is odd, what was left out, and why."""
    frames, rows = np.diff(made.first_frame), np.diff(made.first_row)
    height, width = made.frames.shape[1:3]
    filmed = f"{int((frames > 0).sum()):,} with pictures ({width} x {height}, {len(made.frames):,} frames), "
    lines = [f"{made.name}: {len(made.names):,} clips of {len({*made.labels.tolist()} - {-1})} of the "
             f"{len(made.classes)} classes; {filmed if len(made.frames) else ''}"
             f"{int((rows > 0).sum()):,} with sound ({len(made.mel):,} rows); "
             f"{(made.frames.nbytes + made.mel.nbytes) / 1e9:,.2f} GB"]
    lines += [f"{split}: {int(masks['train'].sum()):,} train / {int(masks['test'].sum()):,} test"
              for split, masks in made.splits.items()]
    odd = {clip: "; ".join(notes) for clip, notes in made.notes.items()}
    lines += prepared.described("clips are kept and odd", odd)
    lines += prepared.described("files are left out", made.reasons)
    lines += [_missing(made.missing)] if made.missing else []
    return [*lines, f"every clip, a line each: {made.records}", f"sha256 of the set {made.digest}"]


def _missing(clips: Sequence[str]) -> str:
    """How many clips have no file, and the first of them."""
    return f"{len(clips):,} clips of the lists have no file: {', '.join(clips[:5])}{', ...' if len(clips) > 5 else ''}"


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
    files = [entry for place in places for entry in _files(place)]
    below = f"{name}: below {', '.join(map(str, places))}"
    try:
        listing = layout.listing(_texts(layout, files))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{below} {error}; data_manifests/{name}.yaml says where it comes from") from error
    if not subset:
        splits.check(name, listing)
    clips, notes, unlisted = _clips(layout, listing, files)
    if not clips:
        raise FileNotFoundError(f"{below} there is no file of the {len(listing.names):,} clips that the lists name")
    missing = tuple(clip for clip in listing.names if clip not in clips)
    if missing and not subset:
        raise ValueError(f"{below} {_missing(missing)}; fetch them, or accept a part of the data set: --subset")
    items = [Item(clip, clips[clip], float(seconds))
             for clip, seconds in zip(listing.names, listing.seconds, strict=True) if clip in clips]
    return _Found(layout, listing, items, dict(listing.notes) | notes, unlisted, missing)


def _files(place: Path) -> Iterator[Entry]:
    """The files in a folder or zip archive, and in zip archives in that folder; nothing is unpacked."""
    for entry in entries(place):
        if place.is_dir() and entry.name.lower().endswith(".zip"):
            yield from entries(place / entry.name)
        else:
            yield entry


def _texts(layout: splits.Layout, files: Iterable[Entry]) -> dict[str, str]:
    """The lists, by name.

    Raises:
        ValueError: if two of a name differ, or one is no text.
    """
    texts: dict[str, str] = {}
    for entry in files:
        name = PurePosixPath(entry.name).name
        if not re.fullmatch(layout.lists, name):
            continue
        try:
            text = entry.read().decode("utf-8-sig")
        except ValueError as error:
            raise ValueError(f"{entry} cannot be read ({error}); fetch it again") from error
        if texts.setdefault(name, text) != text:
            raise ValueError(f"{entry} differs from another list of that name; move one of them away")
    return texts


def _clips(
    layout: splits.Layout, listing: splits.Listing, files: Iterable[Entry]
) -> tuple[dict[str, Entry], dict[str, str], list[str]]:
    """The files of listed clips by name, notes on those that are there twice, and places of files no list names."""
    known, clips, notes, unlisted = frozenset(listing.names), {}, {}, []

    def rank(entry: Entry) -> int:
        return layout.suffixes.index(PurePosixPath(entry.name).suffix.lower())

    for entry in files:
        place = PurePosixPath(entry.name)
        if place.suffix.lower() not in layout.suffixes:
            continue
        clip = layout.clip(place.stem)
        if clip not in known:
            unlisted += [f"{entry}"] if clip not in listing.others else []
        elif clip not in clips:
            clips[clip] = entry
        else:
            first, second = sorted((clips[clip], entry), key=rank)
            if rank(first) == rank(second):
                raise ValueError(f"{clip} is there twice, as {first} and {second}; move one away")
            clips[clip], notes[clip] = first, f"there twice, not read: {second}"
    return clips, notes, unlisted


def clip(item: Item, needs: str, size: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A file decoded: its `frames` and `mel`, what is odd about it, and hex sha256 of both; arguments as `decode`.

    Raises:
        ValueError: if the file cannot be used.
    """
    made = decode(item.entry.read(), needs=needs, size=size, listed=item.seconds)
    mel = made.mel.astype("<f4", copy=False)
    about = {"notes": made.notes, "pictures": hashlib.sha256(made.frames).hexdigest(),
             "sound": hashlib.sha256(made.mel).hexdigest()}
    return {"frames": made.frames, "mel": mel}, about


def _place(name: str, found: _Found, size: int) -> Path:
    """Where the arrays of a data set lie.

    Raises:
        ValueError: if `size` is not one that can be asked for.
    """
    least, most = video.SIZES
    if type(size) is not int or not least <= size <= most:
        raise ValueError(f"size={size!r} should be a whole number from {least} to {most}")
    return prepared.folder_of(name, FORMAT, found.items) / (f"{size}" if found.layout.needs == "video" else "sound")


def _prepared(name: str, found: _Found, arrays: Arrays, path: Path, subset: bool) -> Prepared:
    """The set as it was prepared."""
    records = arrays.usable
    names = np.array([record["name"] for record in records])
    places = np.searchsorted(np.array(found.listing.names), names)
    masks = {key: {part: mask[places] for part, mask in split.masks(found.listing.columns).items()}
             for key, split in manifest.load_manifest(name).splits.items()}
    labels = found.listing.labels[places]
    notes = {record["name"]: (*record["notes"], found.notes.get(record["name"], "")) for record in records}
    return Prepared(
        name=f"{name} (subset)" if subset else name,
        digest=_digest(records, found.listing.classes, labels, masks),
        names=names,
        classes=found.listing.classes,
        labels=labels,
        splits=masks,
        frames=arrays.arrays["frames"],
        first_frame=first_rows(records, "frames"),
        mel=arrays.arrays["mel"],
        first_row=first_rows(records, "mel"),
        rows_per_frame=sound.ROWS_PER_FRAME,
        notes={clip: odd for clip, texts in notes.items() if (odd := tuple(filter(None, texts)))},
        reasons=arrays.bad | dict.fromkeys(found.unlisted, UNLISTED),
        missing=found.missing,
        records=path.with_suffix(".jsonl"),
    )


def _digest(
    records: Iterable[Record], classes: Iterable[str], labels: np.ndarray,
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
