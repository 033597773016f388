"""Checkpoints that are damaged, and deaths while one is written: it is whole, or refused by name."""

import hashlib
import io
import os
import random
from pathlib import Path

import pytest
import torch
from states import assert_equal_states
from walks import Interrupted, Walk, progress, train

from repro.run.fit import load_checkpoint, save_checkpoint

# damaged checkpoints


@pytest.fixture
def begun(tmp_path):
    """A folder with a checkpoint at step 9."""
    with pytest.raises(Interrupted):
        train(Walk(fails_at=11), tmp_path, checkpoint_seconds=0)
    assert load_checkpoint(tmp_path)["step"] == 9
    return tmp_path


def truncated(content):
    return content[: len(content) // 2]


def flipped(content, position, bits=0xFF):
    return content[:position] + bytes([content[position] ^ bits]) + content[position + 1 :]


def sealed(content):
    return content + hashlib.sha256(content).digest()


def would_run_code(content):
    archive = io.BytesIO()
    torch.save({"step": 9, "seconds": 0.0, "learner": Path("anything but data")}, archive)
    return sealed(archive.getvalue())


DAMAGES = {
    "truncated": truncated,
    "empty": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
    "a page of zeros": lambda content: content[:512] + bytes(512) + content[1024:],
    "sealed garbage": lambda content: sealed(random.Random(0).randbytes(len(content))),
    "another pickle": lambda content: sealed(b"\x80\x04N."),
    "an object": would_run_code,
    "without a hash": lambda content: content[:-32],  # as the first version wrote it
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_named_and_stays(begun, damage):
    path = begun / "checkpoint.pt"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    for read in (lambda: load_checkpoint(begun), lambda: train(Walk(), begun)):
        with pytest.raises(ValueError, match=r"checkpoint\.pt is damaged \(.*\); delete its folder, and"):
            read()
    assert path.exists()


def test_without_a_checkpoint_training_starts_anew(begun, undisturbed):
    (begun / "checkpoint.pt").unlink()
    learner = Walk()
    train(learner, begun)
    assert min(learner.history) == 1 and progress(begun) == undisturbed[1]
    assert_equal_states(learner.state_dict(), undisturbed[0])


def test_a_flipped_bit_anywhere_is_noticed(begun):
    path = begun / "checkpoint.pt"
    content, draw = path.read_bytes(), random.Random(0)
    record = content.rindex(b"PK\x01\x02", 0, content.rindex(b"/data/0"))
    attributes = record + 38  # where bit 4 marks a folder, torch returns unwritten memory
    weight = content.index(load_checkpoint(begun)["learner"]["model"]["weight"].numpy().tobytes())
    flips = [(place, 1 << draw.randrange(8)) for place in (0, len(content) - 1, weight,
                                                           *(draw.randrange(len(content)) for _ in range(100)))]
    for position, bits in (*flips, (attributes, 0x10)):
        path.write_bytes(flipped(content, position, bits))
        with pytest.raises(ValueError, match="is damaged"):
            load_checkpoint(begun)


# deaths while a checkpoint is written


class Killed(BaseException):
    """Ends the process as SIGKILL does: what is on disk at that moment stays, and nothing is tidied up."""


@pytest.fixture
def dying(monkeypatch):
    """Makes the next `save_checkpoint` die at a moment; returns a function that takes the moment and the folder."""

    def attempt(moment, folder):
        replace, write, moves = os.replace, Path.write_bytes, []

        def half_write(path, content):
            write(path, truncated(content) if moment == "half of the file" else content)
            if moment in ("half of the file", "before it is read back"):
                raise Killed

        def counted_replace(source, target):
            moves.append(Path(target).name)
            if moment == f"before {moves[-1]}":
                raise Killed
            replace(source, target)
            if moment == f"after {moves[-1]}":
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", half_write)
            patch.setattr(os, "replace", counted_replace)
            patch.setattr(Path, "unlink", lambda path, missing_ok=False: None)
            with pytest.raises(Killed):
                save_checkpoint(folder, {"step": 12, "seconds": 0.0, "learner": {"taken": 12}})

    return attempt


MOMENTS = {"half of the file": 9, "before it is read back": 9, "before checkpoint.pt": 9, "after checkpoint.pt": 12}


@pytest.mark.parametrize(("moment", "step"), MOMENTS.items())
def test_a_kill_inside_the_write_leaves_a_sound_checkpoint(begun, dying, moment, step):
    dying(moment, begun)
    assert load_checkpoint(begun)["step"] == step
    save_checkpoint(begun, {"step": 15, "seconds": 0.0, "learner": {}})  # and the next save goes through
    assert load_checkpoint(begun)["step"] == 15


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_inside_the_first_write_leaves_all_or_nothing(tmp_path, dying, moment):
    dying(moment, tmp_path)
    saved = {"step": 12, "seconds": 0.0, "learner": {"taken": 12}}
    assert load_checkpoint(tmp_path) == (saved if moment == "after checkpoint.pt" else None)


def test_a_checkpoint_that_cannot_be_read_back_replaces_nothing(begun, monkeypatch):
    write = Path.write_bytes

    def bad_disk(path, content):
        write(path, flipped(content, 700))

    before = {path.name: path.read_bytes() for path in begun.iterdir()}
    monkeypatch.setattr(Path, "write_bytes", bad_disk)
    with pytest.raises(ValueError, match="checksum"):
        save_checkpoint(begun, {"step": 12, "seconds": 0.0, "learner": {"weight": torch.ones(500)}})
    assert {path.name: path.read_bytes() for path in begun.iterdir()} == before
