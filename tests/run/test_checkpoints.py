"""Checkpoints that are damaged, and deaths while one is written: a sound one is found, or training starts anew."""

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
def two(tmp_path):
    """A folder with a checkpoint at step 9 and the previous one at step 6."""
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


def changed(content, **parts):
    """A sound file of a state with other parts."""
    archive = io.BytesIO()
    torch.save(torch.load(io.BytesIO(content[:-32])) | parts, archive)
    return sealed(archive.getvalue())


DAMAGES = {
    "truncated": truncated,
    "empty": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
    "a page of zeros": lambda content: content[:512] + bytes(512) + content[1024:],
    "sealed garbage": lambda content: sealed(random.Random(0).randbytes(len(content))),
    "another pickle": lambda content: sealed(b"\x80\x04N."),
    "without a hash": lambda content: content[:-32],  # as the first version wrote it
    "a step below 0": lambda content: changed(content, step=-3),
    "a step of text": lambda content: changed(content, step="9"),
    "no time": lambda content: changed(content, seconds=float("nan")),
    "no state": lambda content: changed(content, learner=3),
    "a cost of text": lambda content: changed(content, cost="9"),
    "that of another run": lambda content: changed(content, folder="0123456789abcdef"),
    "a code that is none": lambda content: changed(content, cost={"code": 9}),
    "a pipe": os.mkfifo,  # to open it would wait for ever
    "removed": None,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_checkpoint_is_set_aside_for_the_previous(two, undisturbed, name, capsys):
    path, damage = two / "checkpoint.pt", DAMAGES[name]
    content = path.read_bytes()
    path.unlink()
    if damage is os.mkfifo:
        damage(path)
    elif damage:
        path.write_bytes(damage(content))
    capsys.readouterr()
    for first in (True, False):  # it is said once
        assert load_checkpoint(two)["step"] == 6 and not path.exists()
        assert (f"{path} is damaged (" in capsys.readouterr().err) == (first and damage is not None)
    if damage not in (None, os.mkfifo):
        assert (two / "checkpoint.damaged.pt").read_bytes() == damage(content)
    learner = Walk()
    train(learner, two)
    assert min(learner.history) == 7
    assert_equal_states(learner.state_dict(), undisturbed[0])
    assert progress(two) == undisturbed[1]


def test_a_flipped_bit_anywhere_is_noticed(two):
    path = two / "checkpoint.pt"
    content, draw = path.read_bytes(), random.Random(0)
    record = content.rindex(b"PK\x01\x02", 0, content.rindex(b"/data/0"))
    attributes = record + 38  # where bit 4 marks a folder, torch returns unwritten memory
    weight = content.index(load_checkpoint(two)["learner"]["model"]["weight"].numpy().tobytes())
    for position in (0, len(content) - 1, weight, *(draw.randrange(len(content)) for _ in range(100))):
        path.write_bytes(flipped(content, position, 1 << draw.randrange(8)))
        assert load_checkpoint(two)["step"] == 6, f"byte {position}"
    path.write_bytes(flipped(content, attributes, 0x10))
    assert load_checkpoint(two)["step"] == 6


def test_a_checkpoint_beyond_the_training_is_named(two):
    save_checkpoint(two, load_checkpoint(two) | {"step": 10**12})
    with pytest.raises(ValueError, match=r"is of step 1,000,000,000,000, the training has 20; move that"):
        train(Walk(), two)


def test_two_damaged_checkpoints_start_anew(two, undisturbed):
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        (two / name).write_bytes(truncated((two / name).read_bytes()))
    learner = Walk()
    train(learner, two)
    assert min(learner.history) == 1 and progress(two) == undisturbed[1]
    assert_equal_states(learner.state_dict(), undisturbed[0])


# deaths while a checkpoint is written


class Killed(BaseException):
    """Ends the process as SIGKILL does: what is on disk at that moment stays, and nothing is tidied up."""


@pytest.fixture
def dying(monkeypatch):
    """Makes the next `save_checkpoint` die at a moment; returns a function that takes the moment and the folder."""

    def attempt(moment, folder):
        replace, write, moves = os.replace, Path.write_bytes, []

        def half_write(path, content):
            write(path, truncated(bytes(content)) if moment == "half of the file" else content)
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


MOMENTS = {
    "half of the file": 9, "before it is read back": 9, "before checkpoint.previous.pt": 9,
    "after checkpoint.previous.pt": 9, "before checkpoint.pt": 9, "after checkpoint.pt": 12,
}


@pytest.mark.parametrize(("moment", "step"), MOMENTS.items())
def test_a_kill_inside_the_write_leaves_a_sound_checkpoint(two, dying, capsys, moment, step):
    capsys.readouterr()
    dying(moment, two)
    assert load_checkpoint(two)["step"] == step
    assert "damaged" not in capsys.readouterr().err  # nothing was left half-written under its final name
    save_checkpoint(two, {"step": 15, "seconds": 0.0, "learner": {}})  # and the next save goes through
    assert load_checkpoint(two)["step"] == 15
    (two / "checkpoint.pt").unlink()
    assert load_checkpoint(two)["step"] in (9, 12)


def test_a_damaged_checkpoint_does_not_take_the_place_of_the_sound_previous_one(two, dying):
    path = two / "checkpoint.pt"
    path.write_bytes(truncated(path.read_bytes()))
    assert load_checkpoint(two)["step"] == 6  # what goes on from there saves next
    dying("before checkpoint.pt", two)
    assert load_checkpoint(two)["step"] == 6


def test_a_checkpoint_that_cannot_be_read_back_replaces_nothing(two, monkeypatch):
    write = Path.write_bytes

    def bad_disk(path, content):
        write(path, flipped(bytes(content), 700))

    before = {path.name: path.read_bytes() for path in two.iterdir()}
    monkeypatch.setattr(Path, "write_bytes", bad_disk)
    with pytest.raises(ValueError, match="checksum"):
        save_checkpoint(two, {"step": 12, "seconds": 0.0, "learner": {"weight": torch.ones(500)}})
    assert {path.name: path.read_bytes() for path in two.iterdir()} == before
