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


def without_its_end(content):
    return content[:-1]


def empty(content):
    return b""


def garbage(content):
    return random.Random(0).randbytes(len(content))


def zeros(content):
    return bytes(len(content))


def text(content):
    return b"<html>404 not found</html>"


def a_page_of_zeros(content):
    middle = len(content) // 2
    return content[:middle] + bytes(512) + content[middle + 512 :]


def an_empty_archive(content):
    return b"PK\x05\x06" + bytes(18)


def another_pickle(content):
    return b"\x80\x04N."


def sealed_garbage(content):
    inside = garbage(content)
    return inside + hashlib.sha256(inside).digest()


def flipped(content, position):
    return content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :]


DAMAGES = [
    truncated, without_its_end, empty, garbage, zeros, text, a_page_of_zeros, an_empty_archive, another_pickle,
    sealed_garbage,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_falls_back_to_the_previous(two, undisturbed, damage, capsys):
    path = two / "checkpoint.pt"
    path.write_bytes(damage(path.read_bytes()))
    capsys.readouterr()
    learner = Walk()
    train(learner, two)
    assert f"{path} is damaged (" in capsys.readouterr().err
    assert min(learner.history) == 7
    assert_equal_states(learner.state_dict(), undisturbed[0])
    assert progress(two) == undisturbed[1]


def test_a_flipped_byte_inside_a_tensor_is_noticed(two, capsys):
    path = two / "checkpoint.pt"
    content, weight = path.read_bytes(), load_checkpoint(two)["learner"]["model"]["weight"].numpy().tobytes()
    assert content.count(weight) == 1
    capsys.readouterr()
    for byte in range(len(weight)):
        path.write_bytes(flipped(content, content.index(weight) + byte))
        assert load_checkpoint(two)["step"] == 6
        assert f"{path} is damaged (checksum " in capsys.readouterr().err


def test_a_flipped_bit_anywhere_is_noticed(two):
    path = two / "checkpoint.pt"
    content, draw = path.read_bytes(), random.Random(0)
    for position in {0, len(content) - 1} | {draw.randrange(len(content)) for _ in range(300)}:
        bit = 1 << draw.randrange(8)
        path.write_bytes(content[:position] + bytes([content[position] ^ bit]) + content[position + 1 :])
        assert load_checkpoint(two)["step"] == 6, f"bit {bit} of byte {position}"


def test_a_flipped_attribute_in_the_list_of_members_is_noticed(two):
    path = two / "checkpoint.pt"
    content = path.read_bytes()
    record = content.rindex(b"PK\x01\x02", 0, content.rindex(b"/data/0"))
    position = record + 38  # its external attributes; where bit 4 marks a folder, torch returns unwritten memory
    path.write_bytes(content[:position] + bytes([content[position] ^ 0x10]) + content[position + 1 :])
    assert load_checkpoint(two)["step"] == 6


def test_a_damaged_checkpoint_is_set_aside(two, capsys):
    path = two / "checkpoint.pt"
    damaged = truncated(path.read_bytes())
    path.write_bytes(damaged)
    assert load_checkpoint(two)["step"] == 6
    assert (two / "checkpoint.damaged.pt").read_bytes() == damaged and not path.exists()
    capsys.readouterr()
    assert load_checkpoint(two)["step"] == 6
    assert capsys.readouterr().err == ""  # it is said once


def test_a_removed_checkpoint_falls_back_to_the_previous(two, undisturbed):
    (two / "checkpoint.pt").unlink()
    learner = Walk()
    train(learner, two)
    assert min(learner.history) == 7
    assert_equal_states(learner.state_dict(), undisturbed[0])
    assert progress(two) == undisturbed[1]


@pytest.mark.parametrize("damage", [truncated, zeros])
def test_two_damaged_checkpoints_start_anew(two, undisturbed, damage, capsys):
    names = ("checkpoint.pt", "checkpoint.previous.pt")
    for name in names:
        (two / name).write_bytes(damage((two / name).read_bytes()))
    capsys.readouterr()
    learner = Walk()
    train(learner, two)
    told = capsys.readouterr().err
    assert all(f"{two / name} is damaged (" in told for name in names)
    assert min(learner.history) == 1
    assert_equal_states(learner.state_dict(), undisturbed[0])
    assert progress(two) == undisturbed[1]


def test_a_sound_previous_checkpoint_is_not_mentioned(two, capsys):
    capsys.readouterr()
    load_checkpoint(two)
    assert capsys.readouterr().err == ""


def test_a_checkpoint_that_would_run_code_is_not_loaded(two, capsys):
    archive = io.BytesIO()
    torch.save({"step": 9, "seconds": 0.0, "learner": Path("anything but data")}, archive)
    content = archive.getvalue()
    (two / "checkpoint.pt").write_bytes(content + hashlib.sha256(content).digest())
    assert load_checkpoint(two)["step"] == 6
    assert "checkpoint.pt is damaged (" in capsys.readouterr().err


def test_a_checkpoint_without_a_hash_as_the_first_version_wrote_it_is_set_aside(tmp_path, undisturbed, capsys):
    train(Walk(), tmp_path)
    state = load_checkpoint(tmp_path)
    torch.save(state, tmp_path / "checkpoint.pt")
    capsys.readouterr()
    train(Walk(), tmp_path)
    assert "checkpoint.pt is damaged (" in capsys.readouterr().err
    assert_equal_states(load_checkpoint(tmp_path)["learner"], undisturbed[0])


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


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if "previous" not in moment])
def test_a_kill_inside_the_first_write_leaves_all_or_nothing(tmp_path, dying, capsys, moment):
    dying(moment, tmp_path)
    state = load_checkpoint(tmp_path)
    saved = {"step": 12, "seconds": 0.0, "learner": {"taken": 12}}
    assert state == (saved if moment == "after checkpoint.pt" else None)
    assert "damaged" not in capsys.readouterr().err
    save_checkpoint(tmp_path, {"step": 15, "seconds": 0.0, "learner": {}})
    assert load_checkpoint(tmp_path)["step"] == 15


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if "previous" not in moment])
def test_a_kill_inside_the_write_after_a_damaged_checkpoint(two, dying, moment):
    path = two / "checkpoint.pt"
    path.write_bytes(truncated(path.read_bytes()))
    assert load_checkpoint(two)["step"] == 6
    dying(moment, two)  # the damaged one does not take the place of the sound previous one
    assert load_checkpoint(two)["step"] == (12 if moment == "after checkpoint.pt" else 6)


def test_a_checkpoint_that_cannot_be_read_back_replaces_nothing(two, monkeypatch):
    write = Path.write_bytes

    def bad_disk(path, content):
        write(path, flipped(content, 700))

    before = {path.name: path.read_bytes() for path in two.iterdir()}
    monkeypatch.setattr(Path, "write_bytes", bad_disk)
    with pytest.raises(ValueError, match="checksum"):
        save_checkpoint(two, {"step": 12, "seconds": 0.0, "learner": {"weight": torch.ones(500)}})
    assert {path.name: path.read_bytes() for path in two.iterdir()} == before
