"""Files of skeletons: NTU RGB+D's text. (NW-UCLA's JSON is read only where its digest is the official one.)"""

from pathlib import Path

import numpy as np

from repro.skeleton import ntu
from tests.campaigns import mutations
from tests.campaigns.kinds import Kind, write
from tests.helpers import ntu_files

NTU_NAME = "S001C001P001R001A001"


def ntu_sound() -> list[bytes]:
    """One body, two, and bodies that come and go; the last in the other line ends."""
    return [ntu_files.text(ntu_files.ONE), ntu_files.text(ntu_files.TWO), ntu_files.text(ntu_files.COMING, end="\n")]


def read_ntu(contents: bytes, folder: Path) -> None:
    """Prepare a folder with this one file in it, in every pipeline."""
    write(folder / "data" / "ntu" / "nturgb+d_skeletons" / f"{NTU_NAME}.skeleton", contents)
    for pipeline in ntu.PIPELINES:
        prepared = ntu.prepare(pipeline=pipeline, subset=True)
        assert prepared.names.tolist() == [NTU_NAME] and prepared.lengths.sum() == len(prepared.frames) > 0
        assert np.isfinite(prepared.frames).all(), f"frames of {pipeline} are not finite"
    found, stated = ntu.parse(contents), ntu_files.slow_read(contents)
    numbers = list(dict.fromkeys(number for number, _, _ in stated))
    assert found.frame.tolist() == [frame for _, frame, _ in stated], "frames of bodies"
    assert found.body.tolist() == [numbers.index(number) for number, _, _ in stated], "ids of bodies"
    np.testing.assert_array_equal(found.joints, np.array([joints for *_, joints in stated]).reshape(-1, 25, 3))


KINDS = {
    "ntu skeleton": Kind(ntu_sound, mutations.of_text, read_ntu, [NTU_NAME]),
}
