"""Arrays made of files: what they hold, and that a preparation that was disturbed goes on where it was."""

import functools
import os
import signal

import numpy as np
import preparing
import pytest
from disks import read_only
from nursery import Nursery
from preparing import make

from repro.data import disk, npz, prepared
from repro.data.files import listed
from repro.data.prepared import Source, made_once

FILES = {"a": b"abc", "b": b"", "c": b"hello", "d": b"xy"}
ROWS = np.frombuffer(b"".join(FILES.values()), np.uint8)


@pytest.fixture
def items(runs_root, tmp_path):
    """Writes files and returns them by name."""
    def write(files=FILES):
        (tmp_path / "files").mkdir(exist_ok=True)
        for name, contents in files.items():
            (tmp_path / "files" / name).write_bytes(contents)
        return {path.name: path for path in listed(tmp_path / "files")}

    return write


def source(items, log=None, *, code="a", subset=False):
    return Source("things", "form", code, items, functools.partial(make, log=log), subset=subset)


def built(items, log=None, *, skip_bad=False, workers=1):
    return source(items, log, subset=skip_bad).prepare(skip_bad=skip_bad, workers=workers)


def left_behind(runs_root):
    return sorted(path.name for path in runs_root.rglob("*") if path.is_file())


WHOLE = ["form.jsonl", "form.lock", "form.pairs.npy", "form.rows.npy"]


def assert_whole(made, runs_root):
    np.testing.assert_array_equal(made.arrays["rows"], ROWS)
    np.testing.assert_array_equal(made.arrays["pairs"], np.stack([ROWS, ROWS], axis=1))
    assert made.arrays["pairs"].dtype == np.float32 and left_behind(runs_root) == WHOLE
    assert made.first_rows("rows").tolist() == [0, 3, 3, 8, 10]
    assert [record["first"] for record in made.usable] == list(FILES) and not made.bad


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_of_all_items_lie_end_to_end_and_are_made_once(items, runs_root, workers):
    log, things = [], items()
    assert_whole(built(things, log, workers=workers), runs_root)
    log.clear()
    again = built(things, log)
    assert_whole(again, runs_root)
    assert log == []
    again.arrays["rows"][:] = 0  # reaches no file
    assert_whole(source(things).load(), runs_root)
    assert built(items({name: b"" for name in FILES})).arrays["pairs"].shape == (0, 2)


def test_what_is_joined_is_flushed_to_the_disk_and_no_part_of_it(items, runs_root, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    built(items())
    assert [os.path.basename(path)[1:-17] for path in flushed] == ["form.rows.npy", "form.pairs.npy", "form.jsonl"]


def test_bad_files_are_named_and_counted_and_left_out_only_when_asked(items, runs_root):
    log, things = [], items(FILES | {"b": b"bad", "d": b"bad.."})
    with pytest.raises(ValueError) as raised:
        built(things, log)
    assert str(raised.value) == ("things: 2 files cannot be used:\n  b: says bad: 3\n  d: says bad: 5\n"
                                 "fetch them again, or leave them out: --skip-bad --subset")
    made = built(things, log, skip_bad=True)
    assert made.arrays["rows"].tobytes() == b"abchello" and made.bad == {"b": "says bad: 3", "d": "says bad: 5"}
    assert log == ["a", "b", "c", "d", "b", "d"]  # what is sound is there
    log.clear()
    assert built(things, log, skip_bad=True).bad == source(things, subset=True).load().bad == made.bad and log == []
    with pytest.raises(ValueError, match=r"(?s)things: 2 files cannot.*`repro data prepare things` again, or accept"):
        source(things).load()
    (runs_root.parent / "files" / "b").write_bytes(b"yes")  # mended without another size
    with pytest.raises(ValueError, match=r"1 files cannot be used:\n  d: says"):
        built(things, log)
    (runs_root.parent / "files" / "d").write_bytes(b"right")
    assert built(things, log).arrays["rows"].tobytes() == b"abcyeshelloright" and log == [*FILES, "d"]


def test_what_cannot_be_read_is_a_bad_file_and_not_the_end(items, tmp_path, monkeypatch):
    things = items()
    (tmp_path / "files" / "e").symlink_to("nowhere")

    def refused(path):
        if path.name == "d":
            raise PermissionError(13, "Permission denied", str(path))
        return disk.read_file(path)

    monkeypatch.setattr(preparing, "read_file", refused)
    made = built(things | {"e": tmp_path / "files" / "e"}, skip_bad=True)
    assert made.arrays["rows"].tobytes() == b"abchello" and sorted(made.bad) == ["d", "e"]
    assert "cannot be read ([Errno 13] Permission denied" in made.bad["d"] and "leads nowhere" in made.bad["e"]


def test_more_bad_files_than_are_shown_are_counted(items):
    with pytest.raises(ValueError, match=r"(?s)^things: 22 files cannot.*  19: says.*and 2 more\n.*none of its files"):
        built(items({f"{number:02d}": b"bad" for number in range(22)}), skip_bad=True)


def test_files_of_another_size_are_read_again(items):
    built(items())
    things, log = items({"c": b"another"}), []
    message = r"`repro data prepare things` first \(\S+form\.jsonl is of files that have changed since"
    with pytest.raises(FileNotFoundError, match=message):
        source(things).load()
    assert built(things, log).arrays["rows"].tobytes() == b"abcanotherxy" and log == list(FILES)


def test_what_other_code_or_other_names_have_made_lies_elsewhere(items):
    things = items()
    some = {name: things[name] for name in "bcd"}
    assert len({source(names, code=code).path for code in ("a", "b") for names in (things, some)}) == 4


@pytest.mark.parametrize(("file", "damage"), [
    ("form.rows.npy", lambda whole: whole[:-1]), ("form.rows.npy", lambda whole: whole + b"x"),
    ("form.pairs.npy", lambda whole: whole[:-1] + b"x"),
    ("form.pairs.npy", lambda whole: whole.replace(b"<f4", b">f4")),
    ("form.pairs.npy", lambda whole: whole.replace(b"}", b"(")), ("form.rows.npy", lambda whole: b""),
    ("form.jsonl", lambda whole: whole.replace(b'"rows": 5', b'"rows": 4')), ("form.jsonl", lambda whole: whole[:-20]),
    ("form.jsonl", lambda whole: b""), ("form.jsonl", lambda whole: b"\0" * 9), ("form.jsonl", lambda whole: b"5\n"),
])
def test_damage_is_named_and_mended(items, runs_root, file, damage):
    things = items()
    built(things)
    path = source(things).path.with_name(file)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"form\.jsonl or its arrays are damaged .*; run `repro data prepare things`"):
        source(things).load()
    assert_whole(built(things), runs_root)


def test_an_array_too_large_to_hash_is_taken_at_its_size(items, monkeypatch):
    things = items()
    built(things)
    path = source(things).path.with_name("form.rows.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    monkeypatch.setattr(prepared, "HASHED", 5)
    assert source(things).load().arrays["rows"].tobytes() == b"abchellox!"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged"):
        source(things).load()


def test_more_than_memory_holds_can_be_mapped(tmp_path):
    """A private mapping counts as used memory unless it is told not to, and one of terabytes would be refused."""
    shape = (10**9, 24, 32, 3)
    try:
        with open(tmp_path / "frames.npy", "wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + np.prod(shape, dtype=int))  # takes no room on the disk
    except OSError:
        pytest.skip("this file system has no files with holes")
    mapped = prepared._mapped(tmp_path / "frames.npy", "|u1", shape, "")
    assert mapped.shape == shape and mapped[-1].max() == 0 and mapped.flags.writeable


def test_any_other_error_has_a_note_of_the_file(items, tmp_path):
    things = items()
    with pytest.raises(ZeroDivisionError) as raised:
        Source("things", "form", "a", things, lambda path: 1 / 0).prepare()
    assert raised.value.__notes__ == [f"in {tmp_path / 'files' / 'a'}"]


# ------------------------------------------------------------------------------------------------ disturbed

@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    nursery = Nursery("preparing", tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


@pytest.mark.parametrize(("last", "unread"), [
    ("c", ["c", "d"]), ("0000002-5.npz", ["c", "d"]), ("form.rows.npy", []), ("form.jsonl", []), ("form.parts", []),
])
def test_a_killed_preparation_goes_on_where_it_was(nursery, items, runs_root, tmp_path, last, unread):
    things, log = items(), []
    assert nursery.status(nursery.start(tmp_path, 1, last)) == -signal.SIGKILL and left_behind(runs_root) != WHOLE
    assert_whole(built(things, log), runs_root)
    assert log == unread


@pytest.mark.parametrize("tear", [lambda whole: b"", lambda whole: whole[:-9], lambda whole: bytes(len(whole)),
                                  lambda whole: whole.replace(b"hello", b"\0\0\0\0\0")])
def test_a_part_that_a_loss_of_power_has_torn_is_made_again(nursery, items, runs_root, tmp_path, tear):
    things, log = items(), []
    nursery.status(nursery.start(tmp_path, 1, "form.rows.npy"))
    part, = runs_root.rglob("0000002-5.npz")
    whole = part.read_bytes()
    part.write_bytes(tear(whole))
    assert part.read_bytes() != whole
    assert_whole(built(things, log), runs_root)
    assert log == ["c"]


def test_a_killed_worker_is_an_error_that_says_what_to_do(nursery, items, runs_root, tmp_path):
    things = items()
    pid = nursery.start(tmp_path, 2, "c")
    assert nursery.status(pid) == 1
    errors = (tmp_path / f"{pid}.err").read_text()
    assert "ChildProcessError: one of the processes that read was killed" in errors
    assert_whole(built(things), runs_root)


def test_several_at_once_read_once(nursery, items, tmp_path):
    items()
    pids = [nursery.start(tmp_path, 1) for _ in range(4)]
    assert [nursery.status(pid) for pid in pids] == [0] * 4
    assert len({(tmp_path / f"{pid}.out").read_text() for pid in pids}) == 1
    assert (tmp_path / "read.txt").read_text().split() == list(FILES)


# ------------------------------------------------------------------------------------------------ made once


def test_it_is_made_where_it_is_missing_or_damaged(runs_root):
    values = [{"x": np.arange(3)}]
    made_once("it[1].x", "text", values.pop)
    np.testing.assert_array_equal(made_once("it[1].x", "text", values.pop)["x"], np.arange(3))  # no value: it was read
    path, = (runs_root / "prepared").glob("it*.npz")
    path.write_bytes(path.read_bytes()[:-9])
    assert made_once("it[1].x", "text", lambda: {"y": np.zeros(2)}).keys() == npz.read(path).keys() == {"y"}
    assert made_once("it[1].x", "another", dict) == made_once("other", "text", dict) == {}


def test_what_a_killed_process_left_goes_with_the_next_making_and_nothing_else(runs_root):
    made_once("it[1]", "text", dict)
    path, = (runs_root / "prepared").glob("it*.npz")
    path.unlink()
    ours, others = (path.with_name(f".{name}.0123456789abcdef") for name in (path.name, path.name.replace("[1]", "1")))
    for leftover in (ours, others):
        leftover.touch()
    made_once("it[1]", "text", dict)
    assert not ours.exists() and others.exists()
    with read_only(path.parent):  # who only reads changes nothing
        assert made_once("it[1]", "text", lambda: 1 / 0) == {}


def test_nothing_stays_of_a_making_that_fails(runs_root):
    with pytest.raises(ZeroDivisionError):
        made_once("it", "text", lambda: 1 / 0)
    assert [path.suffix for path in (runs_root / "prepared").iterdir()] == [".lock"]
