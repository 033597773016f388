"""NTU RGB+D 60 as it is distributed: the names of its files and its `.skeleton` text format. NumPy alone."""

import contextlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from repro.data.archives import entries
from repro.data.prepared import Item

JOINTS = 25
DIGITS = 20                   # of the largest id of 64 bits; longer numbers are damage
NAME = re.compile(r"S(\d{3})C(\d{3})P(\d{3})R(\d{3})A(\d{3})")
LARGEST = (17, 3, 40, 2, 60)  # setup, camera, subject, repetition, action; NTU RGB+D 120 goes on from there
LATER, MISNAMED = "of NTU RGB+D 120 alone", "with another name than S001C001P001R001A001"
ACTIONS = (
    "drink water", "eat meal", "brush teeth", "brush hair", "drop", "pick up", "throw", "sit down", "stand up", "clap",
    "read", "write", "tear up paper", "put on jacket", "take off jacket", "put on a shoe", "take off a shoe",
    "put on glasses", "take off glasses", "put on a hat", "take off a hat", "cheer up", "hand waving", "kick something",
    "reach into pocket", "hop", "jump up", "phone call", "play with phone", "type on a keyboard", "point to something",
    "take a selfie", "check time", "rub two hands", "nod head", "shake head", "wipe face", "salute",
    "put palms together", "cross hands in front", "sneeze", "stagger", "fall down", "headache", "chest pain",
    "back pain", "neck pain", "nausea", "fan self", "punch", "kick", "push", "pat on back", "point finger", "hug",
    "give object", "touch pocket", "shake hands", "walk towards", "walk apart",
)
BONES = (                     # of Kinect v2, hip centre first
    (0, 1), (1, 20), (20, 2), (2, 3), (20, 4), (4, 5), (5, 6), (6, 7), (7, 21), (7, 22), (20, 8), (8, 9), (9, 10),
    (10, 11), (11, 23), (11, 24), (0, 12), (12, 13), (13, 14), (14, 15), (0, 16), (16, 17), (17, 18), (18, 19),
)


@dataclass(frozen=True, eq=False)
class Bodies:
    """What a file says about the bodies in view.

    Attributes:
        frames: number of frames, with a body or without.
        joints: (n, 25, 3) float32, metres in the camera's frame of reference: a row per body and frame, as in the file.
        frame: (n,) int64, from 0.
        body: (n,) int64, which body: 0 for the id that the file names first, 1 for the next one, ...; a frame may have
            an id twice.
    """

    frames: int
    joints: np.ndarray
    frame: np.ndarray
    body: np.ndarray


def columns(names: Sequence[str]) -> dict[str, np.ndarray]:
    """`views` (cameras, from 1), `subjects` (from 1) and `labels` (actions, from 0) of samples, (n,) int64 each."""
    numbers = np.array([[int(part) for part in NAME.fullmatch(name).groups()] for name in names]).reshape(-1, 5)
    return {"views": numbers[:, 1], "subjects": numbers[:, 2], "labels": numbers[:, 4] - 1}


def recordings(path: Path) -> tuple[list[Item], Mapping[str, int]]:
    """The `.skeleton` files in a folder or zip, however deep, sorted by name; and how many others there are, by kind.

    Raises:
        ValueError: if a file is there twice, none is there, or the archive is damaged.
    """
    items: dict[str, Item] = {}
    others: Counter[str] = Counter()
    for entry in entries(path):
        base = PurePosixPath(entry.name).name
        name = base.removesuffix(".skeleton")
        if name == base or not _is_sample(name):
            others[_kind(base)] += 1
            continue
        if name in items:
            raise ValueError(f"{path}: {name} is there twice, as {items[name].entry.name} and {entry.name}; remove one")
        items[name] = Item(name, entry)
    if not items:
        seen = f", only {counted(others)}" if others else ""
        raise ValueError(f"{path} holds no file of NTU RGB+D 60, such as S001C001P001R001A001.skeleton{seen}; unpack "
                         "the distribution there")
    return [items[name] for name in sorted(items)], others


def counted(kinds: Mapping[str, int]) -> str:
    """Numbers of files by kind, in words: "1 file ending in .npy, 2 files of NTU RGB+D 120 alone"."""
    return ", ".join(f"{count:,} file{'s' * (count != 1)} {kind}" for kind, count in sorted(kinds.items()))


def parse(contents: bytes) -> Bodies:
    """Read the text of a `.skeleton` file, with either kind of line end.

        number of frames
        for each frame: number of bodies
            for each body: 10 values, the first its id of 17 digits; number of joints (25)
                for each joint: 12 values, the first three x, y and z in metres

    Only those three are converted, all at once; the others are counted.

    Raises:
        ValueError: with the line at fault, if the text is truncated or has another form; with the frame, if a
            coordinate is not finite.

    Source: Shahroudy et al. 2016, the data set's own `read_skeleton_file.m`.
    """
    lines = contents.splitlines()
    frames = _count(lines, 0, "the number of frames")
    frame, body, starts, joint_lines, numbers = [], [], [], [], {}
    at = 1
    for number in range(frames):
        bodies = _count(lines, at, f"the number of bodies of frame {number}")
        at += 1
        for _ in range(bodies):
            body.append(numbers.setdefault(_body_id(lines, at), len(numbers)))
            frame.append(number)
            starts.append(at + 2)
            joint_lines += lines[at + 2 : at + 2 + JOINTS]
            at += 2 + JOINTS
            if at > len(lines):
                raise ValueError(f"ends after line {len(lines)}, within the joints of frame {number}; truncated?")
    joints = _joints(contents, joint_lines, starts)
    if any(line.strip() for line in lines[at:]):
        raise ValueError(f"goes on after its {frames} frames, at line {at + 1}")
    finite = np.isfinite(joints).all(axis=(1, 2))
    if not finite.all():
        raise ValueError(f"a coordinate of frame {frame[np.argmin(finite)]} is not finite")
    return Bodies(frames, joints, np.array(frame, dtype=np.int64), np.array(body, dtype=np.int64))


def _joints(contents: bytes, lines: list[bytes], starts: list[int]) -> np.ndarray:
    """(n, 25, 3) float32 from the lines of all joints; `starts` holds the place of each body's first one."""
    spaces = np.count_nonzero(np.frombuffer(contents, dtype=np.uint8) == ord(" "))
    # At least 10 values in the first line of each body and 12 in each joint's: with as many spaces as this, exactly.
    if spaces == (9 + 11 * JOINTS) * len(starts) > 0 and any(map(bytes.strip, lines)):
        with contextlib.suppress(ValueError):
            values = np.loadtxt(lines, dtype=np.float32, usecols=(0, 1, 2, 11), comments=None, ndmin=2)
            if len(values) == len(lines):  # loadtxt passes over blank lines, and warns if all are
                return values[:, :3].reshape(-1, JOINTS, 3)
    return _joints_by_line(lines, starts)


def _joints_by_line(lines: list[bytes], starts: list[int]) -> np.ndarray:
    """The same, slowly: accepts any white space and names the line at fault."""
    rows = []
    for row, line in enumerate(lines):
        number, values = starts[row // JOINTS] + row % JOINTS + 1, line.split()
        if len(values) != 12:
            raise ValueError(f"line {number} has {len(values)} values, a joint has 12; truncated?")
        try:
            rows.append([float(value.replace(b"_", b"?")) for value in values[:3]])  # float() reads 1_0 as 10
        except ValueError:
            shown = _shown(b" ".join(values[:3]))
            raise ValueError(f"line {number} should begin with x, y and z, found {shown}") from None
    with np.errstate(over="ignore"):
        return np.array(rows).astype(np.float32).reshape(-1, JOINTS, 3)


def _count(lines: list[bytes], at: int, what: str) -> int:
    """The whole number alone on a line."""
    if at >= len(lines):
        raise ValueError(f"ends after line {len(lines)}, before {what}; truncated?")
    text = lines[at].strip()
    if not text.isdigit() or len(text) > DIGITS:
        raise ValueError(f"line {at + 1} should be {what}, found {_shown(text)}")
    return int(text)


def _body_id(lines: list[bytes], at: int) -> int:
    """The id of the body that begins at a line: an exact integer, which a float64 could not hold."""
    values = lines[at].split() if at < len(lines) else []
    if len(values) != 10:
        raise ValueError(f"line {at + 1} should be a body's id and 9 more values, found {len(values)}; truncated?")
    if not values[0].isdigit() or len(values[0]) > DIGITS:
        raise ValueError(f"line {at + 1} should begin with a body's id, found {_shown(values[0])}")
    joints = _count(lines, at + 1, f"{JOINTS}, the number of joints")
    if joints != JOINTS:
        raise ValueError(f"line {at + 2} announces {joints} joints, expected {JOINTS}")
    return int(values[0])


def _shown(text: bytes) -> str:
    """The beginning of what was found, for a message."""
    return repr(text[:40].decode(errors="replace"))


def _is_sample(name: str) -> bool:
    matched = NAME.fullmatch(name)
    return matched is not None and all(
        1 <= int(part) <= most for part, most in zip(matched.groups(), LARGEST, strict=True)
    )


def _kind(base: str) -> str:
    """What kind of file it is that is none of NTU RGB+D 60, by its name."""
    if base.endswith(".skeleton"):
        return LATER if NAME.fullmatch(base.removesuffix(".skeleton")) else MISNAMED
    suffix = PurePosixPath(base).suffix.lower()
    return f"ending in {suffix}" if suffix else "without an ending"
