"""How fast NTU RGB+D's text is read: our parser beside a plain line-by-line script, in one process, in turns.

    python3 -m tests.benchmarks.ntu_parse

Made-up recordings in the official format; CPU time of one core, the least, the median and the most of several turns.
The plain script does what the readers in wide use do: a line at a time, every value through float() into dictionaries.
These read from memory; a shard is what `repro data prepare ntu` makes of the same recordings: from files or out of a
zip, read, parsed, put through the pipeline, hashed and written.
"""

import argparse
import functools
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from repro.data import prepared
from repro.data.archives import entries
from repro.skeleton import ntu
from tests.benchmarks.spread import ratios, spread

RECORDINGS, TURNS = 40, 5
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
    frames = []
    for _ in range(int(next(lines))):
        bodies = []
        for _ in range(int(next(lines))):
            body = {key: float(value) for key, value in zip(BODY, next(lines).split(), strict=True)}
            count = int(next(lines))
            body["joints"] = [
                {key: float(value) for key, value in zip(JOINT, next(lines).split(), strict=True)} for _ in range(count)
            ]
            bodies.append(body)
        frames.append(bodies)
    return frames


def numbers_alone(contents: bytes) -> np.ndarray:
    """NumPy's conversion of all numbers, without a look at what they mean."""
    return np.fromstring(contents, sep=" ")


def each(read: Callable, files: list[bytes]) -> None:
    """Read all files once."""
    for contents in files:
        read(contents)


def parts(files: list[bytes], root: Path) -> dict[str, Callable]:
    """What makes parts of the files, written below `root` as a folder and as a zip."""
    folder, packed = root / "nturgb+d_skeletons", root / "nturgbd_skeletons_s001_to_s017.zip"
    folder.mkdir()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for action, contents in enumerate(files, start=1):
            path = folder / f"S001C001P001R001A{action:03d}.skeleton"
            path.write_bytes(contents)
            archive.write(path, path.name)
    return {
        f"parts from a {name}": functools.partial(
            prepared.make_parts, [(item, root / f"{item.name}.npz") for item in items(path)],
            functools.partial(ntu.sequence, pipeline="authors"))
        for name, path in (("folder", folder), ("zip", packed))
    }


def items(path: Path) -> list[prepared.Item]:
    """The recordings in a folder or zip."""
    return [prepared.Item(Path(entry.name).stem, entry) for entry in entries(path)]


def cpu_seconds(work: Callable) -> float:
    """CPU time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Check that both read the same, then time them in turns."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    rng = np.random.default_rng(0)
    files = [written(rng) for _ in range(RECORDINGS)]
    for contents in files[:3]:
        joints = [joint for bodies in plain(contents) for body in bodies for joint in body["joints"]]
        expected = np.array([[joint[axis] for axis in "xyz"] for joint in joints], dtype=np.float32)
        np.testing.assert_array_equal(ntu.parse(contents).joints.reshape(-1, 3), expected)
    megabytes = sum(map(len, files)) / 1e6
    readers = {"ours": ntu.parse, "plain script": plain, "numbers alone (NumPy)": numbers_alone}
    works = {name: functools.partial(each, read, files) for name, read in readers.items()}
    with tempfile.TemporaryDirectory() as root:
        works |= parts(files, Path(root))
        taken = {name: [] for name in works}
        for _ in range(TURNS):
            for name, work in works.items():
                taken[name].append(cpu_seconds(work))
    print(f"{RECORDINGS} recordings, {megabytes:.1f} MB of text, one core; least / median / most of {TURNS}")
    for name, found in taken.items():
        rates = spread([megabytes / seconds for seconds in found], ".1f")
        print(f"{name:<22}{rates:<24}MB/s  {ratios(taken['plain script'], found)} x plain script")


if __name__ == "__main__":
    main()
