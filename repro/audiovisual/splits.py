"""What the official lists of a data set say: which clips there are, of which class, in which part of which split.

A list is found by its name, however deep below the data set's folder it lies. Clips are known by a name that their file
has too: its stem for UCF101, HMDB51 and Kinetics, fold, recording and take for ESC-50, the first 11 characters for
AudioSet.
"""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from repro.data.manifest import load_manifest, shipped
from repro.recipe import choose

VIDEOS = (".mp4", ".avi", ".mkv", ".webm")
SOUNDS = (".wav", ".ogg")
AUDIOSET_LISTS = {"balanced_train_segments.csv": "train", "unbalanced_train_segments.csv": "train",
                  "eval_segments.csv": "eval"}
YOUTUBE_ID = 11               # characters
DIGITS = 9                    # of the longest number


@dataclass(frozen=True, eq=False)
class Listing:
    """The clips that the lists of a data set name.

    Attributes:
        names: sorted.
        classes: in the order of the labels.
        labels: (n,) int64; -1 where there is none.
        columns: (n,) each, what the splits in the manifest select on, such as `fold`.
        seconds: (n,) float64 that a clip should last; NaN where the lists do not say.
        others: clips the lists name that do not belong to this set.
        notes: what is odd about the lists, by name of the clip.
    """

    names: tuple[str, ...]
    classes: tuple[str, ...]
    labels: np.ndarray
    columns: Mapping[str, np.ndarray]
    seconds: np.ndarray
    others: frozenset[str] = frozenset()
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """How a data set is read.

    Attributes:
        lists: pattern of the names of its lists.
        listing: makes its listing of their texts, by name.
        needs: what a clip is useless without, "video" or "audio".
        suffixes: of its clips; where one is there twice, the earlier suffix is read.
        clip: the name of a clip by the stem of its file.
    """

    lists: str
    listing: Callable[[Mapping[str, str]], Listing]
    needs: str = "video"
    suffixes: tuple[str, ...] = VIDEOS
    clip: Callable[[str], str] = str


def ucf101(texts: Mapping[str, str]) -> Listing:
    """`classInd.txt`, `trainlist01.txt`, `testlist01.txt` and so on to 03, with either kind of line end.

    Raises:
        FileNotFoundError: if one is missing.
        ValueError: if a line has another form, or lists disagree.
    """
    numbers = {}
    for line, (number, name) in _rows("classInd.txt", texts, 2):
        _number_class("classInd.txt", line, numbers, name, number)
    classes = tuple(sorted(numbers, key=numbers.get))
    places = {name: place for place, name in enumerate(classes)}
    labels: dict[str, int] = {}
    parts: dict[str, dict[str, str]] = {f"list{number}": {} for number in (1, 2, 3)}
    for number, part in ((number, part) for number in (1, 2, 3) for part in ("train", "test")):
        file = f"{part}list0{number}.txt"
        for line, (place, *stated) in _rows(file, texts, 2 if part == "train" else 1):
            folder, _, clip = place.rpartition("/")
            if folder not in places or not clip.endswith(".avi"):
                raise ValueError(f"{file}, line {line}: {place!r} is not CLASS/CLIP.avi with a class of classInd.txt")
            if stated and _number(file, line, *stated) != numbers[folder]:
                raise ValueError(f"{file}, line {line}: {folder} has the number {numbers[folder]} in classInd.txt")
            name = clip.removesuffix(".avi")
            if name in parts[f"list{number}"] or labels.setdefault(name, places[folder]) != places[folder]:
                raise ValueError(f"{file}, line {line}: {name} is listed before, in this split or of another class")
            parts[f"list{number}"][name] = part
    columns = {column: [found.get(name, "") for name in sorted(labels)] for column, found in parts.items()}
    return _listing(labels, classes, columns)


def hmdb51(texts: Mapping[str, str]) -> Listing:
    """`CLASS_test_split1.txt` to 3 of every class: a clip and 1 (train), 2 (test) or 0 (not used) a line.

    Raises:
        FileNotFoundError: if there is none, or one of the three of a class is missing.
        ValueError: if a line has another form, or a clip is listed twice.
    """
    pattern = re.compile(r"(.+)_test_split[123]\.txt")
    classes = tuple(sorted({found[1] for name in texts if (found := pattern.fullmatch(name))}))
    if not classes:
        raise FileNotFoundError("none of its lists such as brush_hair_test_split1.txt is there")
    labels: dict[str, int] = {}
    ids: dict[str, dict[str, int]] = {f"id{number}": {} for number in (1, 2, 3)}
    for label, kind in enumerate(classes):
        for number in (1, 2, 3):
            file, found = f"{kind}_test_split{number}.txt", ids[f"id{number}"]
            for line, (clip, use) in _rows(file, texts, 2):
                name = clip.removesuffix(".avi")
                if use not in ("0", "1", "2") or name in found or labels.setdefault(name, label) != label:
                    raise ValueError(f"{file}, line {line}: {clip} {use} should be a new clip and 0, 1 or 2")
                found[name] = int(use)
    columns = {column: [found.get(name, 0) for name in sorted(labels)] for column, found in ids.items()}
    return _listing(labels, classes, columns)


def esc50(texts: Mapping[str, str]) -> Listing:
    """`esc50.csv`. ESC-10 are the clips whose column `esc10` is true; their labels are those of ESC-50.

    Raises:
        FileNotFoundError: if it is missing.
        ValueError: if columns are missing, a value has another form, or a clip is listed twice.
    """
    file, numbers, categories, folds, small = "esc50.csv", {}, {}, {}, {}
    for line, row in _table(file, texts, ("filename", "fold", "target", "category", "esc10")):
        clip = esc_clip(row["filename"].removesuffix(".wav"))
        if clip in categories:
            raise ValueError(f"{file}, line {line}: {clip} is listed before")
        _number_class(file, line, numbers, row["category"], row["target"])
        categories[clip], folds[clip] = row["category"], _number(file, line, row["fold"])
        small[clip] = choose(f"{file}, line {line}: esc10", row["esc10"].lower(), ("true", "false")) == "true"
    classes = tuple(sorted(numbers, key=numbers.get))
    labels = {clip: classes.index(category) for clip, category in categories.items()}
    columns = {"fold": [folds[clip] for clip in sorted(labels)], "esc10": [small[clip] for clip in sorted(labels)]}
    return _listing(labels, classes, columns, dict.fromkeys(labels, 5.0))


def esc_clip(stem: str) -> str:
    """The clip of a file: `1-100032-A` of `1-100032-A-0`, as ESC-50 calls it, or of `1-100032-A`, as ESC-10 does."""
    return "-".join(stem.split("-")[:3])


def kinetics(texts: Mapping[str, str], only: tuple[str, ...] | None = None) -> Listing:
    """`train.csv`, `val.csv`, `test.csv`, those that are there; columns label, youtube_id, time_start and time_end.

    Without the column `label`, as of the original test list, clips have no class. A clip that is listed again keeps
    its first class and part, in that order of the lists, with a note.

    Args:
        texts: of the lists.
        only: classes of this set; the others' clips are left out. By default all.

    Raises:
        FileNotFoundError: if there is none of the lists.
        ValueError: if columns are missing, or a time is no number.
    """
    found: dict[str, tuple[str, str, float]] = {}
    notes: dict[str, str] = {}
    present = [part for part in ("train", "val", "test") if f"{part}.csv" in texts]
    if not present:
        raise FileNotFoundError("none of its lists train.csv, val.csv, test.csv is there")
    for part in present:
        for line, row in _table(f"{part}.csv", texts, ("youtube_id", "time_start", "time_end")):
            start, end = _times(f"{part}.csv", line, row["time_start"], row["time_end"])
            name, label = f"{row['youtube_id']}_{int(start):06d}_{int(end):06d}", (row.get("label") or "").strip()
            first = found.setdefault(name, (label, part, end - start))
            if first[:2] != (label, part):
                notes[name] = f"listed twice: as {first[0]!r} ({first[1]}), which counts, and {label!r} ({part})"
    others = frozenset(name for name in found if only is not None and found[name][0] not in only)
    kept = {name: values for name, values in found.items() if name not in others}
    classes = tuple(sorted(only or {label for label, _, _ in kept.values() if label}))
    numbers = {label: number for number, label in enumerate(classes)} | {"": -1}
    labels = {name: numbers[label] for name, (label, _, _) in kept.items()}
    columns = {"part": [kept[name][1] for name in sorted(kept)]}
    return _listing(labels, classes, columns, {name: values[2] for name, values in kept.items()}, others, notes)


def kinetics_sound(texts: Mapping[str, str]) -> Listing:
    """The clips of Kinetics whose classes are in `data_manifests/kinetics_sound_classes.txt`; raises as `kinetics`.

    Source: Arandjelovic and Zisserman 2017 chose 34 classes; the 31 whose names are known are listed there.
    """
    listed = shipped("data_manifests") / "kinetics_sound_classes.txt"
    return kinetics(texts, tuple(listed.read_text(encoding="utf-8").splitlines()))


def audioset(texts: Mapping[str, str]) -> Listing:
    """`balanced_train_segments.csv`, `unbalanced_train_segments.csv` and `eval_segments.csv`, those that are there.

    Three lines that begin with #, then `YTID, start_seconds, end_seconds, "labels"`. A segment has several labels, and
    pre-training uses none: there are no classes here.

    Raises:
        FileNotFoundError: if there is none of the lists.
        ValueError: if a line has another form, a list is shorter than it says, or a recording is listed twice.
    """
    parts, seconds = {}, {}
    present = [file for file in AUDIOSET_LISTS if file in texts]
    if not present:
        raise FileNotFoundError(f"none of its lists {', '.join(AUDIOSET_LISTS)} is there")
    for file in present:
        lines, rows = texts[file].splitlines(), 0
        for line, row in _values(file, lines):
            if len(row) != 4 or len(row[0]) != YOUTUBE_ID or row[0] in parts:
                raise ValueError(f"{file}, line {line}: {row} should be a new YTID, start, end and labels")
            start, end = _times(file, line, *row[1:3])
            parts[row[0]], seconds[row[0]], rows = AUDIOSET_LISTS[file], end - start, rows + 1
        announced = re.search(r"num_segs=(\d+)", "\n".join(lines[:3]))
        if announced and int(announced[1]) != rows:
            raise ValueError(f"{file} has {rows:,} segments and announces {int(announced[1]):,}; fetch it again")
    columns = {"part": [parts[name] for name in sorted(parts)]}
    return _listing(dict.fromkeys(parts, -1), (), columns, seconds)


def audioset_clip(stem: str) -> str:
    """The recording of a file called `YTID` or `YTID_anything`; the stem itself if it has another form."""
    return stem[:YOUTUBE_ID] if stem[YOUTUBE_ID : YOUTUBE_ID + 1] in ("", "_") else stem


def check(name: str, listing: Listing) -> None:
    """Raise ValueError unless the lists of a data set name as many clips and classes as its manifest declares."""
    for key, split in load_manifest(name).splits.items():
        found = {part: int(mask.sum()) for part, mask in split.masks(listing.columns).items()}
        found |= {"unused": len(listing.names) - sum(found.values()), "classes": len(listing.classes)}
        expected = {part: number for part, number in split.expect.items() if number is not None}
        if any(found[part] != number for part, number in expected.items()):
            raise ValueError(f"{name}: the lists give {found} for {key}, data_manifests/{name}.yaml declares "
                             f"{expected}; fetch the official lists, or accept these: --subset")
    without = sorted(set(range(len(listing.classes))) - set(listing.labels.tolist()))
    if without:
        raise ValueError(f"{name}: the lists have no clip of {', '.join(listing.classes[label] for label in without)}; "
                         f"fetch the official lists, or accept these: --subset")


LAYOUTS = {
    "kinetics700": Layout(r"(train|val|test)\.csv", kinetics),
    "kinetics_sound": Layout(r"(train|val|test)\.csv", kinetics_sound),
    "audioset": Layout(r"(balanced_train|unbalanced_train|eval)_segments\.csv", audioset, clip=audioset_clip),
    "ucf101": Layout(r"classInd\.txt|(train|test)list0[123]\.txt", ucf101),
    "hmdb51": Layout(r".+_test_split[123]\.txt", hmdb51),
    "esc50": Layout(r"esc50\.csv", esc50, needs="audio", suffixes=SOUNDS, clip=esc_clip),
}


def _listing(
    labels: Mapping[str, int],
    classes: tuple[str, ...],
    columns: Mapping[str, list],
    seconds: Mapping[str, float] | None = None,
    others: frozenset[str] = frozenset(),
    notes: Mapping[str, str] | None = None,
) -> Listing:
    """The listing of labels by name; columns are in the order of the sorted names."""
    names = tuple(sorted(labels))
    lasting = np.array([(seconds or {}).get(name, np.nan) for name in names], dtype=np.float64)
    return Listing(names, classes, np.array([labels[name] for name in names], dtype=np.int64),
                   {column: np.array(values) for column, values in columns.items()}, lasting, others, notes or {})


def _text(file: str, texts: Mapping[str, str]) -> str:
    if file not in texts:
        raise FileNotFoundError(f"its list {file} is not there")
    return texts[file]


def _rows(file: str, texts: Mapping[str, str], columns: int) -> list[tuple[int, list[str]]]:
    """Line numbers and the words of the lines that are not blank."""
    rows = [(line, text.split()) for line, text in enumerate(_text(file, texts).splitlines(), 1) if text.strip()]
    for line, words in rows:
        if len(words) != columns:
            raise ValueError(f"{file}, line {line}: {' '.join(words)!r} should be {columns} words")
    return rows


def _table(file: str, texts: Mapping[str, str], needed: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """Line numbers and rows of a table with a header."""
    lines = _values(file, _text(file, texts).splitlines())
    header = lines[0][1] if lines else []
    missing = [name for name in needed if name not in header]
    if missing:
        raise ValueError(f"{file} lacks the columns {', '.join(missing)}; it has {header}")
    for line, values in lines:
        if len(values) != len(header):
            raise ValueError(f"{file}, line {line}: has {len(values)} values for {len(header)} columns; truncated?")
    return [(line, dict(zip(header, values, strict=True))) for line, values in lines[1:]]


def _values(file: str, lines: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Line numbers and values of the lines of a csv file that are neither blank nor comments.

    Every line by itself: a quotation mark too many would make one value of all that follow.
    """
    rows = []
    for line, text in enumerate(lines, 1):
        if not text.strip() or text.startswith("#"):
            continue
        try:
            rows.append((line, next(csv.reader([text], skipinitialspace=True, strict=True))))
        except csv.Error as error:
            raise ValueError(f"{file}, line {line}: {error}; fetch it again") from error
    return rows


def _number_class(file: str, line: int, numbers: dict[str, int], name: str, text: str) -> None:
    """Give a class its number, which is no other one's."""
    number = _number(file, line, text)
    if numbers.setdefault(name, number) != number or list(numbers.values()).count(number) > 1:
        raise ValueError(f"{file}, line {line}: {name!r} has the number {text}, of another class, or a second one")


def _number(file: str, line: int, text: str) -> int:
    if not text.isdecimal() or len(text) > DIGITS:
        raise ValueError(f"{file}, line {line}: {text!r} should be a whole number of at most {DIGITS} digits")
    return int(text)


def _times(file: str, line: int, *texts: str) -> tuple[float, float]:
    """When a clip starts and ends."""
    start, end = (_seconds(file, line, text) for text in texts)
    if not start < end:
        raise ValueError(f"{file}, line {line}: ends at {end:g} s, before it has started at {start:g} s")
    return start, end


def _seconds(file: str, line: int, text: str) -> float:
    try:
        value = float(text.replace("_", "?"))  # float() reads 1_0 as 10
    except ValueError:
        value = float("nan")
    if not 0 <= value < 10**6:
        raise ValueError(f"{file}, line {line}: {text!r} should be a time in seconds")
    return value
