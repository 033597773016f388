"""What the official lists of a data set say: which clips there are, of which class, in which part of which split.

A list is found by its name, however deep below the data set's folder it lies. Clips are known by a name that their file
has too: its stem for UCF101, HMDB51 and Kinetics, fold, recording and take for ESC-50, the first 11 characters for
AudioSet. A line that is not as it should be is refused by its number (ValueError), a list that is not there by its name
(FileNotFoundError).
"""

import csv
import io
import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from repro.audiovisual import CHARACTERS
from repro.data.manifest import check_counts, load_manifest, shipped

VIDEOS = (".mp4", ".avi", ".mkv", ".webm")
SOUNDS = (".wav", ".ogg")
AUDIOSET_LISTS = {"balanced_train_segments.csv": "train", "unbalanced_train_segments.csv": "train",
                  "eval_segments.csv": "eval"}
WORDS = {"sep": r"\s+", "quoting": csv.QUOTE_NONE}   # of a list, for pandas: words between spaces
NUMBER, SECONDS = r"\d{1,9}", r"\d{1,6}(?:\.\d*)?"
Texts = Mapping[str, str]     # of the lists, by file name


class Listing(NamedTuple):
    """What the lists of a data set say."""

    clips: DataFrame              # by name, sorted: `label`, -1 where there is none, and what splits select on
    classes: tuple[str, ...]      # in the order of the labels


class Layout(NamedTuple):
    """How a data set is read."""

    lists: str                               # pattern of the names of its lists
    listing: Callable[[Texts], Listing]      # of their texts
    needs: str = "video"                     # what a clip is useless without, or "audio"
    suffixes: tuple[str, ...] = VIDEOS       # of its clips; where one is there twice, the earlier suffix is read
    clip: str = r".+"                        # pattern of what the name of a clip is in the stem of its file


def ucf101(texts: Texts) -> Listing:
    """`classInd.txt`, `trainlist01.txt`, `testlist01.txt` and so on to 03."""
    classes, lists = _classes(_rows(texts, "classInd.txt", {"number": NUMBER, "kind": ".+"}, **WORDS)), []
    for number, part in itertools.product("123", ("train", "test")):
        columns = {"path": r"[^/]+/[^/]+\.avi", "number": rf"({NUMBER})?"}
        rows = _rows(texts, f"{part}list0{number}.txt", columns, **WORDS)
        rows = rows.join(rows.path.str.extract(r"(?P<kind>.+)/(?P<name>.+)\.avi"))
        _require(rows.kind.isin(classes), rows, "kind", "a class of classInd.txt")
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
        rows = _rows(texts, f"{kind}_test_split{number}.txt", {"path": r".+\.avi", "value": "[012]"}, **WORDS)
        lists.append(rows.assign(kind=kind, name=rows.path.str.removesuffix(".avi"), column=f"id{number}",
                                 value=rows.value.astype(int)))
    return _selected(lists, classes, 0)


def esc50(texts: Texts) -> Listing:
    """`esc50.csv`. ESC-10 are the clips whose column `esc10` is true; their labels are those of ESC-50."""
    rows = _rows(texts, "esc50.csv", {"filename": rf"{ESC_CLIP}.*\.wav", "fold": NUMBER, "target": NUMBER,
                                      "category": ".+", "esc10": "(?i:true|false)"}, header=0)
    rows = rows.rename(columns={"target": "number", "category": "kind"}).assign(
        name=rows.filename.str.removesuffix(".wav").str.extract(f"^({ESC_CLIP})", expand=False),
        fold=rows.fold.astype(int), esc10=rows.esc10.str.lower() == "true",
    )
    return _listing(rows, _classes(rows), ["fold", "esc10"])


def kinetics(texts: Texts, only: tuple[str, ...] | None = None) -> Listing:
    """`train.csv`, `val.csv`, `test.csv`, those that are there; columns label, youtube_id, time_start and time_end.

    Without the column `label`, as of the original test list, clips have no class. A clip that is listed again keeps
    its first class and part. Of classes `only` some belong to the set, by default all.
    """
    patterns = {"youtube_id": ".*", "time_start": SECONDS, "time_end": SECONDS}
    rows = _together({f"{part}.csv": part for part in ("train", "val", "test")}, texts, patterns, header=0)
    rows["kind"] = rows.label.fillna("").str.strip() if "label" in rows else ""
    rows["name"] = [f"{clip}_{int(start):06d}_{int(end):06d}"
                    for clip, start, end in zip(rows.youtube_id, rows.time_start, rows.time_end, strict=True)]
    rows = rows.drop_duplicates("name")
    rows = rows[rows.kind.isin(only)] if only else rows
    return _listing(rows, tuple(sorted(only or set(rows.kind) - {""})), ["part"])


def kinetics_sound(texts: Texts) -> Listing:
    """The clips of Kinetics of 31 classes.

    Source: Arandjelovic and Zisserman 2017 chose 34 classes; those whose names are known are listed.
    """
    listed = shipped("data_manifests") / "kinetics_sound_classes.txt"
    return kinetics(texts, tuple(listed.read_text(encoding="utf-8").splitlines()))


def audioset(texts: Texts) -> Listing:
    """`AUDIOSET_LISTS`, those that are there: lines with #, then `YTID, start_seconds, end_seconds, "labels"`.

    A segment has several labels, and pre-training uses none: there are no classes here.
    """
    patterns = {"name": r"\S{11}", "time_start": SECONDS, "time_end": SECONDS, "labels": ".+"}
    rows = _together(AUDIOSET_LISTS, {file: re.sub("(?m)^#.*", "", text) for file, text in texts.items()}, patterns)
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
    _require(~rows.name.duplicated(), rows, "name", "of a clip that is not listed before")
    numbers = {kind: number for number, kind in enumerate(classes)} | {"": -1}
    rows = rows.assign(label=rows.kind.map(numbers).astype(np.int64))
    return Listing(rows.set_index("name")[["label", *columns]].sort_index(), classes)


def _selected(lists: list[DataFrame], classes: tuple[str, ...], unlisted: object) -> Listing:
    """The listing of lists of clips with a `kind` and the `value` that a column of splits has there."""
    rows = pd.concat(lists, ignore_index=True)
    _require(~rows.duplicated(["name", "column"]), rows, "name", "of a clip not listed before in this split")
    columns = rows.pivot(index="name", columns="column", values="value").fillna(unlisted).astype(type(unlisted))
    return _listing(rows.drop_duplicates("name").join(columns, on="name"), classes, list(columns))


def _together(parts: Mapping[str, str], texts: Texts, patterns: Mapping[str, str], **form: Any) -> DataFrame:
    """The rows of those lists that are there, with their `part` and times as numbers."""
    lists = [_rows(texts, file, patterns, **form).assign(part=part) for file, part in parts.items() if file in texts]
    if not lists:
        raise FileNotFoundError(f"none of its lists {', '.join(parts)} is there")
    rows = pd.concat(lists, ignore_index=True).astype({"time_start": float, "time_end": float})
    _require(rows.time_start < rows.time_end, rows, "time_end", "after its start")
    return rows


def _classes(rows: DataFrame) -> tuple[str, ...]:
    """The classes `kind` in the order of their `number`."""
    return tuple(rows.assign(number=rows.number.astype(int)).drop_duplicates("kind").sort_values("number").kind)


def _rows(texts: Texts, file: str, patterns: Mapping[str, str], **form: Any) -> DataFrame:
    """The lines of a list that are not blank, as text with their `place`; columns should match patterns.

    A list without a `header` has these columns alone; `form` is what else pandas must know of it.
    """
    if file not in texts:
        raise FileNotFoundError(f"its list {file} is not there")
    form = {"header": None, "names": None if "header" in form else [*patterns], "skipinitialspace": True} | form
    try:
        rows = pd.read_csv(io.StringIO(texts[file]), dtype=str, keep_default_na=False, skip_blank_lines=False, **form)
    except ValueError as error:
        raise ValueError(f"{file} cannot be read ({str(error).strip()}); fetch it again") from error
    if wrong := [column for column in patterns if column not in rows or f"{column}.1" in rows]:
        raise ValueError(f"{file} lacks the columns {', '.join(wrong)}, or has them twice; fetch it again")
    first = 1 if form["header"] is None else 2
    rows["place"] = [f"{file}, line {line}" for line in range(first, first + len(rows))]
    rows = rows[(rows[[*patterns]] != "").any(axis=1)]
    for column, pattern in patterns.items():
        _require(rows[column].str.fullmatch(pattern), rows, column, f"of the form {pattern}")
    return rows


def _require(right: "Series[bool]", rows: DataFrame, column: str, should: str) -> None:
    """Raise ValueError about the first row that is not right, naming its place and its value in a column."""
    if not right.all():
        place, value = rows[~right].iloc[0][["place", column]]
        raise ValueError(f"{place}: {column} {value!r} should be {should}; fetch it again")
