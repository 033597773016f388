"""Real video and sound prepared: the lists of a data set, the files they name, and these decoded, once each."""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from repro.audiovisual import splits
from repro.audiovisual.decode import SIZE, decode
from repro.data import manifest, prepared
from repro.data.archives import Entry, entries
from repro.data.prepared import Arrays, Item, first_rows
from repro.recipe import choose

FORMAT = 1                    # raise when the same files would be prepared otherwise; also in the digest


class Prepared(NamedTuple):
    """The clips of a data set, decoded; arrays are mapped from their files."""

    name: str                                          # of the data set; of a part of it, `ucf101 (subset)`
    digest: str                                        # hex sha256 of all that a training can depend on
    names: np.ndarray                                  # (n,) text, sorted
    classes: tuple[str, ...]                           # in the order of the labels
    labels: np.ndarray                                 # (n,) int64; -1 where there is none
    splits: Mapping[str, Mapping[str, np.ndarray]]     # of the manifest: masks "train" and "test", (n,) bool
    frames: np.ndarray                                 # (sum of frames, size, 4/3 size, 3) uint8 at 10 per second
    first_frame: np.ndarray                            # (n + 1,) int64: clip i has those from first_frame[i] on
    mel: np.ndarray                                    # (sum of rows, 80) float32, 10 rows per frame
    first_row: np.ndarray                              # (n + 1,) int64, likewise
    notes: Mapping[str, str]                           # what is odd about clips, by name: no sound, short, ...
    reasons: Mapping[str, str]                         # why files cannot be used, by name
    missing: list[str]                                 # clips that the lists name and that have no file
    records: Path                                      # a line of JSON for each file: frames, rows, notes or the reason


class Source(NamedTuple):
    """What lies below the data root of a set: the clips that its lists name, those with a file, and the others."""

    layout: splits.Layout
    listing: splits.Listing
    items: list[Item]
    missing: list[str]

    def place(self, name: str, size: int) -> Path:
        """Where its arrays lie, but for their endings."""
        return prepared.folder_of(name, FORMAT, self.items) / (f"{size}" if self.layout.needs == "video" else "sound")


def prepare(
    name: str,
    root: Path | None = None,
    *,
    size: int = SIZE,
    subset: bool = False,
    skip_bad: bool = False,
    workers: int = 1,
) -> Prepared:
    """Decode the clips of a data set and keep them; at once if that was done before.

    Processes that ask for the same set at the same time wait for one another. Nothing is written below `root`.

    Args:
        name: kinetics700, kinetics_sound, audioset, ucf101, hmdb51 or esc50.
        root: folder of real data; REPRO_DATA by default.
        size: height of the pictures, which are 4/3 as wide, from 8 to 512; of no effect on a set of sound alone.
        subset: accept that clips of the official distribution are not there.
        skip_bad: leave out files that cannot be used; they are listed with the reason, and what is left is a subset.
        workers: processes that read; with 1, this one does.

    Raises:
        FileNotFoundError: if the data set or one of its lists is not there, saying where it comes from and goes to.
        ValueError: if it is not the official one, or files cannot be used: how many, which and why.
        OSError: if the disk is full or cannot be written, or a process is killed; what was made until then is kept.
    """
    source = find(name, root, subset)
    path, make = source.place(name, size), functools.partial(clip, needs=source.layout.needs, size=size)
    try:
        arrays = prepared.build(path, source.items, make, skip_bad=skip_bad and subset, workers=workers)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return _prepared(name, source, arrays, path, subset)


def load(name: str, root: Path | None = None, *, size: int = SIZE, subset: bool = False) -> Prepared:
    """What `prepare` made of a data set; takes the same arguments. Reads the lists anew, and no clip.

    Raises:
        FileNotFoundError: if the data set is not there, or was not prepared, naming the command that does it.
        ValueError: if it is not the official one, or what was prepared is damaged.
    """
    source = find(name, root, subset)
    options = (" --subset" if subset else "") + (f" --size {size}" if size != SIZE else "")
    command, path = f"run `repro data prepare {name}{options}`", source.place(name, size)
    try:
        arrays = prepared.read(path, source.items)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"data set {name!r} is not prepared: {command} first ({error})") from error
    if arrays.bad and not subset:
        text = "\n".join(prepared.described("files cannot be used", arrays.bad))
        raise ValueError(f"{name}: {text}\n{command} again, or accept a part of the data set: --subset")
    return _prepared(name, source, arrays, path, subset)


def describe(made: Prepared) -> list[str]:
    """What was prepared, in words: counts of every split, what is odd, what was left out, and why."""
    filmed, heard = (int((np.diff(first) > 0).sum()) for first in (made.first_frame, made.first_row))
    height, width = made.frames.shape[1:3]
    pictures = f"{filmed:,} with pictures ({width} x {height}, {len(made.frames):,} frames), "
    kinds = len({*made.labels.tolist()} - {-1})
    return [
        f"{made.name}: {len(made.names):,} clips of {kinds} of the {len(made.classes)} classes; "
        f"{pictures if filmed else ''}{heard:,} with sound ({len(made.mel):,} rows); "
        f"{(made.frames.nbytes + made.mel.nbytes) / 1e9:,.2f} GB",
        *(f"{split}: {int(masks['train'].sum()):,} train / {int(masks['test'].sum()):,} test"
          for split, masks in made.splits.items()),
        *prepared.described("clips are kept and odd", made.notes),
        *prepared.described("files are left out", made.reasons),
        *([_missing(made.missing)] if made.missing else []),
        f"every clip, a line each: {made.records}",
        f"sha256 of the set {made.digest}",
    ]


def _missing(clips: list[str]) -> str:
    """How many clips have no file, and the first of them."""
    return f"{len(clips):,} clips of the lists have no file: {', '.join(clips[:5])}{', ...' if len(clips) > 5 else ''}"


def find(name: str, root: Path | None, subset: bool) -> Source:
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
    texts, clips = _sorted_out(layout, (file for place in places for file in _files(place)))
    below = f"{name}: below {', '.join(map(str, places))}"
    try:
        listing = layout.listing(texts)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{below} {error}; data_manifests/{name}.yaml says where it comes from") from error
    if not subset:
        splits.check(name, listing)
    missing = [clip for clip in listing.clips.index if clip not in clips]
    if len(missing) == len(listing.clips):
        raise FileNotFoundError(f"{below} there is no file of the {len(listing.clips):,} clips that the lists name")
    if missing and not subset:
        raise ValueError(f"{below} {_missing(missing)}; fetch them, or accept a part of the data set: --subset")
    items = [Item(clip, clips[clip], float(seconds)) for clip, seconds in listing.clips.seconds.items()
             if clip in clips]
    return Source(layout, listing, items, missing)


def _files(place: Path) -> Iterator[Entry]:
    """The files in a folder or zip archive, and in zip archives in that folder; nothing is unpacked."""
    for entry in entries(place):
        packed = place.is_dir() and entry.name.lower().endswith(".zip")
        yield from entries(place / entry.name) if packed else [entry]


def _sorted_out(layout: splits.Layout, files: Iterable[Entry]) -> tuple[dict[str, str], dict[str, Entry]]:
    """The texts of the lists, and the files of clips by name; of one that is there twice that with the earlier suffix.

    Raises:
        ValueError: if two lists of a name differ, one is no text, or a clip is there twice with one suffix.
    """
    texts: dict[str, str] = {}
    clips: dict[str, Entry] = {}

    def rank(entry: Entry) -> int:
        return layout.suffixes.index(PurePosixPath(entry.name).suffix.lower())

    for entry in files:
        place = PurePosixPath(entry.name)
        matched = re.match(layout.clip, place.stem)
        if re.fullmatch(layout.lists, place.name):
            try:
                text = entry.read().decode("utf-8-sig")
            except ValueError as error:
                raise ValueError(f"{entry} cannot be read ({error}); fetch it again") from error
            if texts.setdefault(place.name, text) != text:
                raise ValueError(f"{entry} differs from another list of that name; move one of them away")
        elif matched and place.suffix.lower() in layout.suffixes:
            other = clips.setdefault(matched[0], entry)
            if other is not entry and rank(other) == rank(entry):
                raise ValueError(f"{matched[0]} is there twice, as {other} and {entry}; move one away")
            clips[matched[0]] = min(other, entry, key=rank)
    return texts, clips


def clip(item: Item, needs: str, size: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A file decoded: its `frames` and `mel`, what is odd about it, and hex sha256 of both; arguments as `decode`.

    Raises:
        ValueError: if the file cannot be used.
    """
    made = decode(item.entry.read(), needs=needs, size=size, listed=item.seconds)
    about = {"notes": made.notes, "pictures": hashlib.sha256(made.frames).hexdigest(),
             "sound": hashlib.sha256(made.mel).hexdigest()}
    return {"frames": made.frames, "mel": made.mel.astype("<f4", copy=False)}, about


def _prepared(name: str, source: Source, arrays: Arrays, path: Path, subset: bool) -> Prepared:
    """The set as it was prepared; its digest is of all that a training can depend on."""
    records, classes = arrays.usable, source.listing.classes
    names = np.array([record["name"] for record in records])
    clips = source.listing.clips.loc[names]
    masks = {key: split.masks(clips) for key, split in manifest.load_manifest(name).splits.items()}
    labels = clips.label.to_numpy(copy=True)
    digest = hashlib.sha256("\n".join([f"format {FORMAT}", *classes, ""]).encode())
    for record in records:
        digest.update(f"{record['name']} {record['pictures']} {record['sound']}\n".encode())
    digest.update(labels.astype("<i8"))
    for key in sorted(masks):
        for part in ("train", "test"):
            digest.update(f"{key} {part}".encode() + masks[key][part].tobytes())
    return Prepared(
        name=f"{name} (subset)" if subset else name,
        digest=digest.hexdigest(),
        names=names,
        classes=classes,
        labels=labels,
        splits=masks,
        frames=arrays.arrays["frames"],
        first_frame=first_rows(records, "frames"),
        mel=arrays.arrays["mel"],
        first_row=first_rows(records, "mel"),
        notes={record["name"]: "; ".join(record["notes"]) for record in records if record["notes"]},
        reasons=arrays.bad,
        missing=source.missing,
        records=path.with_suffix(".jsonl"),
    )
