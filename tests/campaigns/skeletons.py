"""Files of skeletons: NTU RGB+D's text, NW-UCLA's JSON."""

import json
from pathlib import Path

import numpy as np

from repro.data.manifest import Split
from repro.skeleton import data, ntu, ntu_prepare
from tests.campaigns import mutations
from tests.campaigns.kinds import Kind, write
from tests.helpers import ntu_files, ucla_files

NTU_NAME, UCLA_NAME = "S001C001P001R001A001", "a01_s01_e00_v01"


def ntu_sound() -> list[bytes]:
    """One body, two, and bodies that come and go; the last in the other line ends."""
    return [ntu_files.text(ntu_files.ONE), ntu_files.text(ntu_files.TWO), ntu_files.text(ntu_files.COMING, end="\n")]


def read_ntu(contents: bytes, folder: Path) -> None:
    """Prepare a folder with this one file in it, in every pipeline."""
    write(folder / "data" / "ntu" / "nturgb+d_skeletons" / f"{NTU_NAME}.skeleton", contents)
    for pipeline in ntu_prepare.PIPELINES:
        prepared = ntu_prepare.prepare(pipeline=pipeline, subset=True)
        assert prepared.names.tolist() == [NTU_NAME] and prepared.lengths.sum() == len(prepared.frames) > 0
        assert np.isfinite(prepared.frames).all(), f"frames of {pipeline} are not finite"
    found, stated = ntu.parse(contents), ntu_files.slow_read(contents)
    numbers = list(dict.fromkeys(number for number, _, _ in stated))
    assert found.frame.tolist() == [frame for _, frame, _ in stated], "frames of bodies"
    assert found.body.tolist() == [numbers.index(number) for number, _, _ in stated], "ids of bodies"
    np.testing.assert_array_equal(found.joints, np.array([joints for *_, joints in stated]).reshape(-1, 25, 3))


def ucla_sound() -> list[bytes]:
    """Recordings of so many frames that they are kept."""
    return [ucla_files.recording(UCLA_NAME, ucla_files.body(length, length))[1] for length in (11, 53)]


def read_ucla(contents: bytes, folder: Path) -> None:
    """Parse the file between two sound ones, and put all through every pipeline."""
    members = [(f"{UCLA_NAME}.json", contents)]
    members += [ucla_files.recording(f"a02_s01_e00_v0{view}", ucla_files.body(12, view)) for view in (1, 3)]
    recordings = data.parse_ucla(members, f"{folder}")
    stated = _stated_frames(contents)
    assert recordings.frames[: len(stated)].tolist() == stated and recordings.lengths[0] == len(stated)
    counts = {"train": 2, "test": 1}
    kept = counts | {"train": 1 + (len(stated) > data.LONGER_THAN)}
    split = Split(train={"views": [1, 2]}, test={"views": [3]}, expect=counts, kept=kept)
    for pipeline in data.PIPELINES:
        made = data.prepare("ucla", recordings, split, pipeline)
        assert made.frames.isfinite().all(), f"frames of {pipeline} are not finite"


def _stated_frames(contents: bytes) -> list:
    """The coordinates that a text states, value by value; only numbers count as numbers."""
    values = json.loads(contents)["skeletons"]
    for frame in values:
        for joint in frame:
            assert all(type(value) in (int, float) for value in joint), f"{joint} are no coordinates"
    return [[[float(value) for value in joint] for joint in frame] for frame in values]


KINDS = {
    "ntu skeleton": Kind(ntu_sound, mutations.of_text, read_ntu, [NTU_NAME]),
    "ucla json": Kind(ucla_sound, mutations.of_json, read_ucla, [UCLA_NAME]),
}
