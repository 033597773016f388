"""How fast NTU RGB+D's text is read: our parser beside a plain line-by-line script, in one process, in turns.

    python3 -m tests.benchmarks.ntu_parse

Made-up recordings in the official format; CPU time of one core. The plain script does what the readers in wide use do:
a line at a time, every value through float() into dictionaries. These read from memory; parts are what
`repro data prepare ntu` makes of the same recordings: from files or out of a zip, read, parsed, put through the
pipeline, hashed and written.
"""

import functools
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

from repro.data import prepared
from repro.data.archives import entries
from repro.skeleton import ntu
from tests.benchmarks.turns import Works, options, show, turns

RECORDINGS, ROUNDS = 40, 5
JOINT = ("x", "y", "z", "depthX", "depthY", "colorX", "colorY", "orientationW", "orientationX", "orientationY",
         "orientationZ", "trackingState")
BODY = ("bodyID", "clippedEdges", "handLeftConfidence", "handLeftState", "handRightConfidence", "handRightState",
        "isRestricted", "leanX", "leanY", "trackingState")


def written(rng: np.random.Generator) -> bytes:
    """A recording of about 80 frames, one in five with two bodies, in the number of digits of the official files."""
    frames, bodies = int(rng.gamma(6, 13)) + 20, 1 + (rng.random() < 0.2)
    lines = [str(frames)]
    for _ in range(frames):
        lines.append(str(bodies))
        for body in range(bodies):
            lean = rng.normal(0, 0.1, 2)
            lines += [f"{72057594037931691 + body} 0 1 1 0 0 0 {lean[0]:.7g} {lean[1]:.7g} 2", "25"]
            place, pixels = rng.normal([0, 0, 3], 0.5, (25, 3)), rng.normal([250, 200, 950, 500], 60, (25, 4))
            values = np.concatenate([place, pixels, rng.normal(0, 0.5, (25, 4))], axis=1).astype(np.float32)
            lines += [" ".join([*(f"{value:.7g}" for value in row), "2"]) for row in values]
    return ("\r\n".join(lines) + "\r\n").encode()


def plain(contents: bytes) -> list[list[dict]]:
    """The bodies of each frame as dictionaries."""
    lines = iter(contents.decode().splitlines())

    def values(names: tuple[str, ...]) -> dict:
        return {name: float(value) for name, value in zip(names, next(lines).split(), strict=True)}

    def body() -> dict:
        return values(BODY) | {"joints": [values(JOINT) for _ in range(int(next(lines)))]}

    return [[body() for _ in range(int(next(lines)))] for _ in range(int(next(lines)))]


def parts(files: list[bytes], root: Path) -> Works:
    """What makes parts of the files, written below `root` as a folder and as a zip."""
    folder, packed = root / "nturgb+d_skeletons", root / "nturgbd_skeletons_s001_to_s017.zip"
    folder.mkdir()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for action, contents in enumerate(files, start=1):
            path = folder / f"S001C001P001R001A{action:03d}.skeleton"
            path.write_bytes(contents)
            archive.write(path, path.name)
    return {
        f"parts from a {kind}": functools.partial(
            prepared.make_parts,
            [(prepared.Item(name := Path(entry.name).stem, entry), root / f"{name}.npz") for entry in entries(path)],
            functools.partial(ntu.sequence, pipeline="authors"))
        for kind, path in (("folder", folder), ("zip", packed))
    }


def main() -> None:
    """Check that both read the same, then time them in turns."""
    options(__doc__)
    rng = np.random.default_rng(0)
    files = [written(rng) for _ in range(RECORDINGS)]
    for contents in files[:3]:
        joints = [joint for bodies in plain(contents) for body in bodies for joint in body["joints"]]
        expected = np.array([[joint[axis] for axis in "xyz"] for joint in joints], dtype=np.float32)
        np.testing.assert_array_equal(ntu.parse(contents).joints.reshape(-1, 3), expected)
    readers = {"ours": ntu.parse, "plain script": plain,
               "numbers alone (NumPy)": lambda contents: np.fromstring(contents, sep=" ")}
    works = {name: lambda read=read: [read(contents) for contents in files] for name, read in readers.items()}
    with tempfile.TemporaryDirectory() as root:
        taken = turns(works | parts(files, Path(root)), ROUNDS, warm_up=0, clock=time.process_time)
    print(f"{RECORDINGS} recordings, one core; least / median / most of {ROUNDS} rounds")
    show(taken, sum(map(len, files)) / 1e6, "MB", "plain script")


if __name__ == "__main__":
    main()
