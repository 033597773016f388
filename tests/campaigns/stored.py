"""Files of ours that a disk may have damaged: checkpoints."""

import contextlib
import functools
import hashlib
import io
import tempfile
from pathlib import Path
from random import Random

import torch

from repro.run import fit
from tests.campaigns import mutations
from tests.campaigns.kinds import Kind, Refused, write
from tests.helpers.states import assert_equal_states

STATE = {"step": 6, "seconds": 1.5, "learner": {"weight": torch.arange(300.0), "taken": 6, "names": ["a", "b"]}}
BEFORE = {"step": 3, "seconds": 0.5, "learner": {}}
STEPS = (-1, 7, 10**12, 2**70, 6.0, float("nan"), "6")


@functools.cache
def checkpoint() -> bytes:
    """A checkpoint with its digest."""
    with tempfile.TemporaryDirectory() as folder:
        fit.save_checkpoint(Path(folder), STATE)
        return (Path(folder) / "checkpoint.pt").read_bytes()


def damage_checkpoint(contents: bytes, draw: Random) -> bytes:
    """Other bytes, or another step; now and then with the digest that belongs to them, as ill will would have it."""
    if draw.random() < 0.1:
        archive = io.BytesIO()
        torch.save(STATE | {"step": draw.choice(STEPS)}, archive)
        return archive.getvalue() + hashlib.sha256(archive.getbuffer()).digest()
    if draw.random() < 0.3:
        archive = mutations.of_bytes(contents[: -fit.DIGEST], draw)
        return archive + hashlib.sha256(archive).digest()
    return mutations.of_bytes(contents, draw)


def read_checkpoint(contents: bytes, folder: Path) -> None:
    """Load it in front of an earlier one, which is fallen back to."""
    fit.save_checkpoint(folder, BEFORE)
    (folder / "checkpoint.pt").rename(folder / "checkpoint.previous.pt")
    write(folder / "checkpoint.pt", contents)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        state = fit.load_checkpoint(folder)
    if (folder / "checkpoint.damaged.pt").exists():
        assert_equal_states(state, BEFORE)
        raise Refused(said.getvalue())
    fit.check_step(folder, state, STATE["step"])
    if contents[: -fit.DIGEST] == checkpoint()[: -fit.DIGEST]:
        assert_equal_states(state, STATE)
    assert type(state) is dict and state.keys() == STATE.keys()


KINDS = {"checkpoint": Kind(lambda: [checkpoint()], damage_checkpoint, read_checkpoint, ["checkpoint.pt"])}
