"""What the official lists of a data set say: which clips there are, of which class, in which part of which split.

A list is found by its name, however deep below the data set's folder it lies. Clips are known by a name that their file
has too: its stem for UCF101, HMDB51 and Kinetics, fold, recording and take for ESC-50, the first 11 characters for
AudioSet. A line that is not as it should be is refused by its number (ValueError), a list that is not there by its name
(FileNotFoundError).
"""

import csv
import itertools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from repro.audiovisual import CHARACTERS
from repro.data.manifest import check_counts, load_manifest, shipped

VIDEOS = (".mp4", ".avi", ".mkv", ".webm")
SOUNDS = (".wav", ".ogg")
AUDIOSET_LISTS = {"balanced_train_segments.csv": "train", "unbalanced_train_segments.csv": "train",
                  "eval_segments.csv": "eval"}
NUMBER, SECONDS = r"\d{1,9}", r"\d{1,6}(?:\.\d*)?"
Texts = Mapping[str, str]     # of the lists, by file name


class Listing(NamedTuple):
    """The clips that the lists of a data set name, a row per name, sorted, and its classes in the order of the labels.

    Of a clip: its `label`, -1 where there is none, and what the splits in the manifest select on, such as `fold`.
    """

    clips: DataFrame
    classes: tuple[str, ...]


class Layout(NamedTuple):
    """How a data set is read."""

    lists: str                               # pattern of the names of its lists
    listing: Callable[[Texts], Listing]      # of their texts
    needs: str = "video"                     # what a clip is useless without, or "audio"
    suffixes: tuple[str, ...] = VIDEOS       # of its clips; where one is there twice, the earlier suffix is read
    clip: str = r".+"                        # pattern of what the name of a clip is in the stem of its file


def ucf101(texts: Texts) -> Listing:
    """`classInd.txt`, `trainlist01.txt`, `testlist01.txt` and so on to 03, with either kind of line end."""
    rows = _words(texts, "classInd.txt", rf"(?P<number>{NUMBER}) (?P<kind>\S+)", "a number and a class")
    classes, lists = _classes(rows), []
    for number in "123":
        for part in ("train", "test"):
            rows = _words(texts, f"{part}list0{number}.txt", rf"(?P<kind>\S+)/(?P<name>[^/\s]+)\.avi( {NUMBER})?",
                          "CLASS/CLIP.avi")
            _require(rows.kind.isin(classes), rows, "of a class of classInd.txt")
            lists.append(rows.assign(column=f"list{number}", value=part))
    return _selected(lists, classes, "")


def hmdb51(texts: Texts) -> Listing:
    """`CLASS_test_split1.txt` to 3 of every class: a clip and 1 (train), 2 (test) or 0 (not used) a line.

    FileNotFoundError if there is no such list.
    """
    classes = tuple(sorted({file.rpartition("_test_split")[0] for file in texts}))
    if not classes:
        raise FileNotFoundError("none of its lists such as brush_hair_test_split1.txt is there")
    lists = []
    for kind, number in itertools.product(classes, "123"):
        rows = _words(texts, f"{kind}_test_split{number}.txt", r"(?P<name>\S+)\.avi (?P<value>[012])",
                      "CLIP.avi and 0, 1 or 2")
        lists.append(rows.assign(kind=kind, column=f"id{number}", value=rows.value.astype(int)))
    return _selected(lists, classes, 0)


def esc50(texts: Texts) -> Listing:
    """`esc50.csv`. ESC-10 are the clips whose column `esc10` is true; their labels are those of ESC-50."""
    rows = _table(texts, "esc50.csv", {"filename": rf"{ESC_CLIP}.*\.wav", "fold": NUMBER, "target": NUMBER,
                                       "category": ".+", "esc10": "(?i:true|false)"})
    rows = rows.rename(columns={"target": "number", "category": "kind"})
    clips = rows.assign(
        name=rows.filename.str.removesuffix(".wav").str.extract(f"^({ESC_CLIP})", expand=False),
        fold=rows.fold.astype(int), esc10=rows.esc10.str.lower() == "true",
    )
    return _listing(clips, _classes(rows), ["fold", "esc10"])


def kinetics(texts: Texts, only: tuple[str, ...] | None = None) -> Listing:
    """`train.csv`, `val.csv`, `test.csv`, those that are there; columns label, youtube_id, time_start and time_end.

    Without the column `label`, as of the original test list, clips have no class. A clip that is listed again keeps
    its first class and part, in that order of the lists. Only clips of some classes belong to the set, by default all.
    """
    patterns = {"youtube_id": ".*", "time_start": SECONDS, "time_end": SECONDS}
    rows = _together({f"{part}.csv": part for part in ("train", "val", "test")}, texts,
                     lambda file: _table(texts, file, patterns).rename(columns={"time_start": "start",
                                                                               "time_end": "end"}))
    rows["kind"] = rows.label.fillna("").str.strip() if "label" in rows else ""
    rows["name"] = [f"{clip}_{int(start):06d}_{int(end):06d}"
                    for clip, start, end in zip(rows.youtube_id, rows.start, rows.end, strict=True)]
    rows = rows.drop_duplicates("name")
    rows = rows[rows.kind.isin(only)] if only else rows
    return _listing(rows, tuple(sorted(only or set(rows.kind) - {""})), ["part"])


def kinetics_sound(texts: Texts) -> Listing:
    """The clips of Kinetics whose classes are in `data_manifests/kinetics_sound_classes.txt`.

    Source: Arandjelovic and Zisserman 2017 chose 34 classes; the 31 whose names are known are listed there.
    """
    listed = shipped("data_manifests") / "kinetics_sound_classes.txt"
    return kinetics(texts, tuple(listed.read_text(encoding="utf-8").splitlines()))


def audioset(texts: Texts) -> Listing:
    """`balanced_train_segments.csv`, `unbalanced_train_segments.csv` and `eval_segments.csv`, those that are there.

    Lines that begin with #, then `YTID, start_seconds, end_seconds, "labels"`. A segment has several labels, and
    pre-training uses none: there are no classes here.
    """
    pattern = rf'(?P<name>\S{{11}}), (?P<start>{SECONDS}), (?P<end>{SECONDS}), "[^"]*"|#.*'
    rows = _together(AUDIOSET_LISTS, texts,
                     lambda file: _words(texts, file, pattern, 'a YTID, start, end and "labels"').dropna())
    return _listing(rows.assign(kind=""), (), ["part"])


ESC_CLIP = r"[^-]+-[^-]+-[^-]+"          # 1-100032-A-0, as ESC-50 calls it, or 1-100032-A, as ESC-10 does
LAYOUTS = {
    "kinetics700": Layout(r"(train|val|test)\.csv", kinetics),
    "kinetics_sound": Layout(r"(train|val|test)\.csv", kinetics_sound),
    "audioset": Layout(r"(balanced_train|unbalanced_train|eval)_segments\.csv", audioset, clip=r".{11}(?=_|$)|.+"),
    "ucf101": Layout(r"classInd\.txt|(train|test)list0[123]\.txt", ucf101),
    "hmdb51": Layout(r".+_test_split[123]\.txt", hmdb51),
    "esc50": Layout(r"esc50\.csv", esc50, "audio", SOUNDS, ESC_CLIP),
}
DATASETS = ("synthetic", *CHARACTERS, *LAYOUTS)


def check(name: str, listing: Listing) -> None:
    """Raise ValueError unless the lists of a data set name as many clips and classes as its manifest declares."""
    for key, split in load_manifest(name).splits.items():
        counts = {part: int(mask.sum()) for part, mask in split.masks(listing.clips).items()}
        counts |= {"unused": len(listing.clips) - sum(counts.values()), "classes": len(listing.classes)}
        check_counts(f"{name}, {key}, by its lists", counts, split.expect,
                     "fetch the official lists, or accept these: --subset")


def _listing(rows: DataFrame, classes: tuple[str, ...], columns: list[str]) -> Listing:
    """The listing of rows with a `name`, its class as `kind`, "" where there is none, and columns of splits."""
    _require(~rows.name.duplicated(), rows, "of a clip that is not listed before")
    numbers = {kind: number for number, kind in enumerate(classes)} | {"": -1}
    rows = rows.assign(label=rows.kind.map(numbers).astype(np.int64))
    return Listing(rows.set_index("name")[["label", *columns]].sort_index(), classes)


def _selected(lists: list[DataFrame], classes: tuple[str, ...], unlisted: object) -> Listing:
    """The listing of lists of clips with a `kind` and the `value` that a column of splits has there."""
    rows = pd.concat(lists, ignore_index=True)
    _require(~rows.duplicated(["name", "column"]), rows, "of a clip that is not listed before in this split")
    columns = rows.pivot(index="name", columns="column", values="value").fillna(unlisted).astype(type(unlisted))
    kinds = rows.drop_duplicates("name").set_index("name").kind
    return _listing(columns.assign(kind=kinds).reset_index(), classes, list(columns))


def _together(parts: Mapping[str, str], texts: Texts, read: Callable[[str], DataFrame]) -> DataFrame:
    """The rows of those lists that are there, with their `part`, and `start` and `end` as numbers."""
    lists = [read(file).assign(part=part) for file, part in parts.items() if file in texts]
    if not lists:
        raise FileNotFoundError(f"none of its lists {', '.join(parts)} is there")
    rows = pd.concat(lists, ignore_index=True).astype({"start": float, "end": float})
    _require(rows.start < rows.end, rows, "of a clip that ends after its start")
    return rows


def _classes(rows: DataFrame) -> tuple[str, ...]:
    """The classes `kind` in the order of their `number`."""
    return tuple(rows.assign(number=rows.number.astype(int)).drop_duplicates("kind").sort_values("number").kind)


def _lines(texts: Texts, file: str) -> DataFrame:
    """The lines of a list that are not blank: file, line, text."""
    if file not in texts:
        raise FileNotFoundError(f"its list {file} is not there")
    lines = [(file, number, text.strip()) for number, text in enumerate(texts[file].splitlines(), 1) if text.strip()]
    return DataFrame(lines, columns=["file", "line", "text"])


def _words(texts: Texts, file: str, pattern: str, should: str) -> DataFrame:
    """The lines of a list and the named groups of a pattern that each should match, with one space between words."""
    rows = _lines(texts, file)
    words = rows.text.str.replace(r"\s+", " ", regex=True)
    _require(words.str.fullmatch(pattern), rows, should)
    return rows.join(words.str.extract(f"^(?:{pattern})$"))


def _table(texts: Texts, file: str, patterns: Mapping[str, str]) -> DataFrame:
    """The lines of a table below its header and their columns, of which some should match patterns."""
    rows = _lines(texts, file)
    values = [next(csv.reader([line], skipinitialspace=True)) for line in rows.text]
    header = values[0] if values else []
    if wrong := [column for column in patterns if header.count(column) != 1]:
        raise ValueError(f"{file} lacks the columns {', '.join(wrong)}, or has them twice; fetch it again")
    _require(Series([len(line) == len(header) for line in values]), rows, f"a line of {len(header)} values")
    table = rows[1:].reset_index(drop=True).join(DataFrame(values[1:], columns=header))
    for column, pattern in patterns.items():
        _require(table[column].str.fullmatch(pattern), table, f"a line in which {column} is of the form {pattern}")
    return table


def _require(right: "Series[bool]", rows: DataFrame, should: str) -> None:
    """Raise ValueError about the first row that is not right."""
    wrong = rows[~right.fillna(False).astype(bool)]
    if len(wrong):
        file, line, text = wrong.iloc[0][["file", "line", "text"]]
        raise ValueError(f"{file}, line {line}: {text!r} should be {should}; fetch it again")
