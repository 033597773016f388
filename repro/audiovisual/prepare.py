"""Real video and sound prepared: the lists of a data set, the files they name, and these decoded, once each."""

import functools
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from repro.audiovisual import splits
from repro.audiovisual.decode import SIZE, SIZES, decode
from repro.data import files, manifest, prepared
from repro.data.disk import read_file
from repro.data.prepared import Arrays, Source
from repro.recipe import choose
from repro.run import code


@dataclass(frozen=True, kw_only=True)
class Recordings(Source):
    """The clips of a data set that have a file, and what its lists say of them."""

    listing: splits.Listing
    missing: list[str]                                 # clips that the lists name and that have no file

    @property
    def title(self) -> str:
        """The name of the data set; of a part of it, `ucf101 (subset)`."""
        return f"{self.name} (subset)" if self.subset else self.name

    def labels(self, made: Arrays) -> np.ndarray:
        """(n,) int64 of the clips that were made, -1 where there is none."""
        return self.listing.clips.label.loc[made.names].to_numpy(copy=True)

    def masks(self, made: Arrays) -> dict[str, dict[str, np.ndarray]]:
        """By split of the manifest which of these clips are for "train" and for "test", (n,) bool each."""
        clips = self.listing.clips.loc[made.names]
        return {key: split.masks(clips) for key, split in manifest.load_manifest(self.name).splits.items()}

    def digest(self, made: Arrays) -> str:
        """Hex sha256 of all that a training can depend on."""
        digest = hashlib.sha256("\n".join(["format 1", *self.listing.classes, ""]).encode())
        for record in made.usable:
            digest.update(f"{record['name']} {record['pictures']} {record['sound']}\n".encode())
        digest.update(self.labels(made).astype("<i8"))
        for key, masks in sorted(self.masks(made).items()):
            for part in ("train", "test"):
                digest.update(f"{key} {part}".encode() + masks[part].tobytes())
        return digest.hexdigest()


def describe(clips: Recordings, made: Arrays) -> list[str]:
    """What was prepared, in words: counts of every split, what is odd, what was left out, and why."""
    frames, mel = made.arrays["frames"], made.arrays["mel"]
    filmed, heard = (sum(record["rows"][name] > 0 for record in made.usable) for name in ("frames", "mel"))
    pictures = f"{filmed:,} with pictures ({frames.shape[2]} x {frames.shape[1]}, {len(frames):,} frames), "
    odd = {record["name"]: "; ".join(record["notes"]) for record in made.usable if record["notes"]}
    return [
        f"{clips.title}: {len(made.names):,} clips of {len({*clips.labels(made).tolist()} - {-1})} of the "
        f"{len(clips.listing.classes)} classes; {pictures if filmed else ''}{heard:,} with sound ({len(mel):,} rows); "
        f"{(frames.nbytes + mel.nbytes) / 1e9:,.2f} GB",
        *(f"{split}: {int(masks['train'].sum()):,} train / {int(masks['test'].sum()):,} test"
          for split, masks in clips.masks(made).items()),
        *prepared.described("clips are kept and odd", odd),
        *prepared.described("files are left out", made.bad),
        *([_missing(clips.missing)] if clips.missing else []),
        f"every clip, a line each: {clips.path.with_suffix('.jsonl')}",
        f"sha256 of the set {clips.digest(made)}",
    ]


def _missing(clips: list[str]) -> str:
    return f"{len(clips):,} clips of the lists have no file: {', '.join(clips[:5])}{', ...' if len(clips) > 5 else ''}"


def source(name: str, root: Path | None = None, *, size: int = SIZE, subset: bool = False) -> Recordings:
    """The clips that the lists of a data set name, and how they are decoded, once each.

    Args:
        name: one of `splits.LAYOUTS`.
        root: folder of real data; REPRO_DATA by default.
        size: height of the pictures, which are 4/3 as wide, from 8 to 512; of no effect on a set of sound alone.
        subset: accept other lists than the official ones, and that clips have no file.

    Raises:
        FileNotFoundError: if the data set or one of its lists is not there, or no clip, saying where it comes from.
        ValueError: if the size is outside `SIZES`, a list is there twice in two forms, or the set is not the official
            one.
    """
    if not SIZES[0] <= size <= SIZES[1]:
        raise ValueError(f"size={size} should be a height of pictures from {SIZES[0]} to {SIZES[1]} pixels")
    layout = splits.LAYOUTS[choose("dataset", name, splits.LAYOUTS)]
    root = manifest.data_root() if root is None else root
    places = files.require(manifest.load_manifest(name), root)
    lists = manifest.Archive(name=f"splits/{name}.zip").place(root)
    places += [lists] if lists else []
    there = [path for place in places for path in _files(place)]
    recordings: dict[str, Path] = {}
    for suffix in layout.suffixes:
        for path in there:
            if path.name.lower().endswith(suffix) and (matched := re.match(layout.clip, path.stem)):
                recordings.setdefault(matched[0], path)
    below = f"{name}: below {', '.join(map(str, places))}"
    try:
        listing = layout.listing(_texts(layout.lists, there))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{below} {error}; data_manifests/{name}.yaml says where it comes from") from error
    if not subset:
        splits.check(name, listing)
    names = list(listing.clips.index)
    missing = [clip for clip in names if clip not in recordings]
    if len(missing) == len(names):
        raise FileNotFoundError(f"{below} there is no file of the {len(names):,} clips that the lists name")
    if missing and not subset:
        raise ValueError(f"{below} {_missing(missing)}; fetch them, or accept a part of the data set: --subset")
    items = {clip: recordings[clip] for clip in names if clip in recordings}
    make = functools.partial(decoded, needs=layout.needs, size=size)
    form = f"{size}" if layout.needs == "video" else "sound"
    options = f" --size {size}" if size != SIZE else ""
    made_by = code.of_files("audiovisual/decode.py", "audiovisual/prepare.py")
    return Recordings(name, form, made_by, items, make, options, subset, listing=listing, missing=missing)


def _files(place: Path) -> Iterator[Path]:
    """The files in a folder or archive, and in zip archives in that folder."""
    for path in files.listed(files.folder(place)):
        packed = place.is_dir() and path.name.lower().endswith(".zip")
        yield from files.listed(files.folder(path)) if packed else [path]


def _texts(lists: str, there: list[Path]) -> dict[str, str]:
    """The texts of the lists among the files, by name; ValueError if one is no text, or there in two forms."""
    texts: dict[str, str] = {}
    for path in there:
        if re.fullmatch(lists, path.name):
            try:
                text = read_file(path).decode("utf-8-sig")
            except (OSError, ValueError) as error:
                raise ValueError(f"{path} cannot be read ({error}); fetch it again") from error
            if texts.setdefault(path.name, text) != text:
                raise ValueError(f"{path} differs from another list of that name; move one of them away")
    return texts


def decoded(path: Path, needs: str, size: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A file decoded, as `decode` does: its `frames` and `mel`, what is odd about it, and hex sha256 of both."""
    made = decode(read_file(path), needs=needs, size=size)
    about = {"notes": made.notes, "pictures": hashlib.sha256(made.frames).hexdigest(),
             "sound": hashlib.sha256(made.mel).hexdigest()}
    return {"frames": made.frames, "mel": made.mel.astype("<f4", copy=False)}, about
