"""Lists of data sets, and the table of exported results."""

import csv
import functools
import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from repro import papers
from repro.audiovisual import prepare, splits
from repro.data import manifest
from repro.experiments import studies
from repro.run import export
from tests.campaigns import mutations
from tests.campaigns.kinds import Kind, Refused, write
from tests.helpers.made_clips import wav
from tests.helpers.made_up_measures import asked, finished
from tests.helpers.ucf101_files import CLIPS, LISTS

YOUTUBE = ("-aaaaaaaaaa", "bbbbbbbbbb0", "cccccccccc1", "dddddddddd2")

Texts = dict[str, str]


UCF101: Texts = LISTS | {"classInd.txt": LISTS["classInd.txt"].replace("\n", "\r\n")}
HMDB51: Texts = {
    f"{kind}_test_split{number}.txt":
        "".join(f"{clip}.avi {(place + number) % 3} \n" for place, clip in enumerate(clips))
    for kind, clips in CLIPS.items() for number in (1, 2, 3)
}
ESC50: Texts = {"esc50.csv": "filename,fold,target,category,esc10,src_file,take\n" + "".join(
    f"{1 + place % 5}-{place}-A-{place % 2}.wav,{1 + place % 5},{place % 2},{('dog', 'cat')[place % 2]},"
    f"{place < 3},{place},A\n" for place in range(6)
)}
ROWS = [f'"playing, {kind}",{name},{place},{place + 10},train\n'
        for place, (name, kind) in enumerate(zip(YOUTUBE, ("drums", "piano", "drums", "harp"), strict=True))]
HEADER = "label,youtube_id,time_start,time_end,split\n"
KINETICS: Texts = {"train.csv": HEADER + "".join(ROWS[:3]), "val.csv": HEADER + ROWS[3]}
SEGMENTS = [f'{name}, {place}.000, {place + 10}.000, "/m/09x0r,/t/dd00088"\n' for place, name in enumerate(YOUTUBE)]
COMMENTS = "# Segments csv created Sun Mar  5 10:54:31 2017\n# num_ytids={0}, num_segs={0}, num_unique_labels=2\n" \
           "# YTID, start_seconds, end_seconds, positive_labels\n"
AUDIOSET: Texts = {"balanced_train_segments.csv": COMMENTS.format(3) + "".join(SEGMENTS[:3]),
                   "eval_segments.csv": COMMENTS.format(1) + SEGMENTS[3]}


def _stated_ucf101(texts: Texts) -> dict[str, Any]:
    """(class, part in each of the three splits) of every clip."""
    known = {line.split()[1] for line in texts["classInd.txt"].splitlines() if line.strip()}
    found: dict[str, Any] = {}
    for number in (1, 2, 3):
        for part in ("train", "test"):
            for line in filter(str.strip, texts[f"{part}list0{number}.txt"].splitlines()):
                kind, clip = line.split()[0].removesuffix(".avi").rsplit("/", 1)
                assert kind in known
                found.setdefault(clip, [kind, {}])[1][f"list{number}"] = part
    return {clip: (kind, [parts.get(f"list{number}", "") for number in (1, 2, 3)]) for clip, (kind, parts)
            in found.items()}


def _stated_hmdb51(texts: Texts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in texts.items():
        kind, number = re.fullmatch(r"(.+)_test_split(\d)\.txt", name).groups()
        for line in filter(str.strip, text.splitlines()):
            clip, use = line.split()
            found.setdefault(clip.removesuffix(".avi"), [kind, {}])[1][f"id{number}"] = int(use)
    return {clip: (kind, [uses.get(f"id{number}", 0) for number in (1, 2, 3)]) for clip, (kind, uses) in found.items()}


def _lines(text: str) -> list[dict[str, str]]:
    """Rows of a table in which no value goes on in the next line."""
    header, *lines = [next(csv.reader([line], skipinitialspace=True)) for line in text.splitlines() if line.strip()]
    return [dict(zip(header, line, strict=True)) for line in lines]


def _stated_esc50(texts: Texts) -> dict[str, Any]:
    return {"-".join(row["filename"].removesuffix(".wav").split("-")[:3]):
            (row["category"], [{"true": True, "false": False}[row["esc10"].lower()], int(row["fold"])])
            for row in _lines(texts["esc50.csv"])}


def _stated_kinetics(texts: Texts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in ("train", "val", "test"):
        for row in _lines(texts[f"{part}.csv"]) if f"{part}.csv" in texts else ():
            start, end = float(row["time_start"]), float(row["time_end"])
            assert end > start, f"a clip from {start} to {end}"
            name = f"{row['youtube_id']}_{int(start):06d}_{int(end):06d}"
            found.setdefault(name, ((row.get("label") or "").strip() or None, [part]))
    return found


def _stated_audioset(texts: Texts) -> dict[str, Any]:
    found = {}
    for name, text in texts.items():
        for line in text.splitlines():
            if line.strip() and not line.startswith("#"):
                clip, start, end, _ = line.split(", ", 3)
                assert float(end) > float(start), f"a clip from {start} to {end}"
                found[clip] = (None, ["eval" if name.startswith("eval") else "train"])
    return found


SETS: dict[str, tuple[Texts, Callable[[Texts], dict], str]] = {  # lists, what they state, a clip that is there
    "ucf101": (UCF101, _stated_ucf101, "v_a.avi"),
    "hmdb51": (HMDB51, _stated_hmdb51, "v_a.avi"),
    "esc50": (ESC50, _stated_esc50, "1-0-A-0.wav"),
    "kinetics700": (KINETICS, _stated_kinetics, f"{YOUTUBE[0]}_000000_000010.mp4"),
    "audioset": (AUDIOSET, _stated_audioset, f"{YOUTUBE[0]}.mp4"),
}


def damage_texts(texts: Texts, draw: Random) -> dict[str, bytes]:
    """One list with other words, lines or bytes; now and then it is not there."""
    name, found = draw.choice(list(texts)), {file: text.encode() for file, text in texts.items()}
    if draw.random() < 0.05:
        del found[name]
        return found
    return found | {name: mutations.of_text(found[name], draw)}


def read_lists(texts: dict[str, bytes | str], folder: Path, name: str) -> None:
    """What the lists say of their clips, of which one is there."""
    _, stated, clip = SETS[name]
    root = folder / "data"
    for file, text in texts.items():
        write(root / name / "lists" / file, text if isinstance(text, bytes) else text.encode())
    write(root / name / clip, wav())
    listing = prepare.find(name, root, True).listing
    assert listing.clips.index.is_unique
    columns = listing.clips[sorted(set(listing.clips) - {"label", "seconds"})]
    found = {clip: (listing.classes[label] if label >= 0 else None, values) for clip, label, values in zip(
        listing.clips.index, listing.clips.label, columns.to_numpy(object).tolist(), strict=True)}
    decoded = {file: (text if isinstance(text, bytes) else text.encode()).decode("utf-8-sig")
               for file, text in texts.items()}
    assert found == stated({file: text for file, text in decoded.items() if re.fullmatch(
        splits.LAYOUTS[name].lists, file)})
    for split in manifest.load_manifest(name).splits.values():
        parts = split.masks(listing.clips)
        assert not (parts["train"] & parts["test"]).any()


@functools.cache
def cells() -> list[bytes]:
    """Exported results of the three modalities."""
    tables = papers.tables()
    pairs = [*asked(tables["taxonomy"], "ucla", objectives="CE,AE", layers="1,2", seeds="0,1"),
             *asked(tables["image_methods"], "cifar10", method="sce", subset=True), *asked(tables["transfer"])]
    return [finished([cell for cell, _ in pairs]).to_csv(index=False).encode()]


def read_cells(contents: bytes, folder: Path) -> None:
    """Read exported results and gather those of each table."""
    path = write(folder / "cells.csv", contents)
    damaged: list[str] = []
    found = export.read_cells(path, damaged.append)
    if damaged:
        raise Refused(damaged[0])
    stated = list(csv.DictReader(io.StringIO(contents.decode())))
    assert len(found) == len(stated)
    for row, text in zip(found.to_dict("records"), stated, strict=True):
        assert {name: str(value) for name, value in row.items()} == {
            name: str(int(value)) if name == "seed" else value for name, value in text.items()}
        numbers = [value for value in json.loads(row["metrics"]).values() if type(value) is not str]
        assert all(type(value) in (int, float) and math.isfinite(value) for value in numbers), numbers
        assert type(json.loads(row["recipe"])) is dict and row["seed"] >= 0
    for study in studies().values():
        assert set(study.tidy(export.merged(found, found[:0]))["key"]) <= set(found["key"])


def _listed(name: str) -> Kind:
    return Kind(lambda: [SETS[name][0]], damage_texts, functools.partial(read_lists, name=name))


KINDS = {
    "split files of ucf101": _listed("ucf101"),
    "split files of hmdb51": _listed("hmdb51"),
    "csv of esc50": _listed("esc50"),
    "csv of kinetics": _listed("kinetics700"),
    "csv of audioset": _listed("audioset"),
    "csv of results": Kind(cells, mutations.of_text, read_cells, ["cells.csv"]),
}
