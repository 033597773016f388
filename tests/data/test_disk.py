"""Files that are there whole or not at all."""

import errno
import os
import re
import signal
import stat
import subprocess
import sys

import pytest
from nursery import python

from repro.data.disk import read_yaml, remove_half_written, scratch, write_atomically


def test_write_atomically_makes_folders_and_replaces(tmp_path):
    path = tmp_path / "a" / "b" / "file.txt"
    for text in ("first", "second, and longer", "third"):
        write_atomically(path, lambda temporary, text=text: temporary.write_text(text))
        assert path.read_text() == text
    assert os.listdir(path.parent) == ["file.txt"]


@pytest.mark.parametrize("before", [["old"], []])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_old_content_survives_a_writer_that_raises(tmp_path, error, before):
    path = tmp_path / "file.txt"
    for text in before:
        path.write_text(text)

    def write(temporary):
        temporary.write_text("half of the ne")
        assert temporary.parent == path.parent and temporary != path  # on the same file system, and beside
        raise error

    with pytest.raises(type(error)):
        write_atomically(path, write)
    assert [file.read_text() for file in tmp_path.iterdir()] == before


@pytest.mark.parametrize(("code", "message"), [
    (errno.ENOSPC, r"No space left on device \(make room there, .*\)"), (errno.EIO, "Input/output error"),
])
def test_an_error_of_the_disk_names_the_file(tmp_path, code, message):
    def write(_):
        raise OSError(code, os.strerror(code))

    with pytest.raises(OSError, match=rf"{message}: '.*/file\.txt'") as raised:
        write_atomically(tmp_path / "file.txt", write)
    assert raised.value.errno == code and list(tmp_path.iterdir()) == []


def test_content_is_on_disk_before_it_is_in_place(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append(("fsync", os.fstat(file).st_size)), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append(("replace", None)), replace(*paths)))
    write_atomically(tmp_path / "file.txt", lambda temporary: temporary.write_text("12345"))
    assert calls[:2] == [("fsync", 5), ("replace", None)]


def test_files_have_the_permissions_of_other_new_files(tmp_path):
    (tmp_path / "usual").touch()
    write_atomically(tmp_path / "result.json", lambda temporary: temporary.write_text("{}"))
    usual, ours = (stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "usual", tmp_path / "result.json"))
    assert oct(ours) == oct(usual)


def test_what_a_killed_process_left_goes_when_the_next_comes(tmp_path):
    place = tmp_path / "runs" / ".scratch"
    killed = f"""
import os, pathlib, signal
from repro.data.disk import scratch
with scratch(pathlib.Path({str(place)!r})) as folder:
    (folder / "left").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert python("-c", killed, cwd=tmp_path, env=dict(os.environ)).returncode == -signal.SIGKILL
    assert (place / "left").exists()
    with scratch(place) as folder:
        assert folder == place and list(folder.iterdir()) == []
        (folder / "made").mkdir()
    assert not place.exists()


def test_one_process_at_a_time_works_in_a_folder(tmp_path):
    ask = f"import pathlib; from repro.data.disk import scratch; scratch(pathlib.Path({str(tmp_path / 'it')!r}))"
    with scratch(tmp_path / "it") as folder:
        (folder / "mine").touch()
        other = subprocess.Popen([sys.executable, "-c", f"{ask}.__enter__()"], stderr=subprocess.PIPE, text=True)
        assert other.stderr.readline() == f"waiting for the process that works in {folder}\n"
        assert (folder / "mine").exists()
    assert other.communicate(timeout=60)[1] == "" and other.returncode == 0


@pytest.mark.parametrize(("name", "gone"), [
    ("", [".25.jsonl.0123456789abcdef", ".256.jsonl.0123456789abcdef", "deeper/.25.npy.fedcba9876543210"]),
    ("25", [".25.jsonl.0123456789abcdef"]),  # under the lock of a name, what others write stays
])
def test_what_killed_writers_left_is_removed_and_nothing_else(tmp_path, name, gone):
    written = {".gitignore", ".hidden.0123", "25.jsonl", "deeper/.25.0123456789abcdeg",
               ".25.jsonl.0123456789abcdef", ".256.jsonl.0123456789abcdef", "deeper/.25.npy.fedcba9876543210"}
    for path in written:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    remove_half_written(tmp_path, name)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == written - {*gone}


def test_keys_of_other_kinds_and_merged_ones_are_none_that_stand_twice(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("{1: one, '1': text}")
    assert read_yaml(path) == {1: "one", "1": "text"}
    path.write_text("first: &first {k: 1}\nsecond: &second {<<: *first, k: 2}\nthird: {<<: *second, m: 3}\n")
    assert read_yaml(path)["third"] == {"k": 2, "m": 3}


@pytest.mark.parametrize("text", [
    "010", "1:30", "0x10", "1_0", "0b11", "1_0.5", "1:30.5", ".inf", ".nan", "-010", "01.5", "1.0e-400", "2021-05-03",
    "2021-13-45",
])
def test_numbers_that_yaml_reads_otherwise_than_a_command_line_are_refused(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(f"epochs: {text}\n")
    with pytest.raises(ValueError, match=rf"{re.escape(text)} is no plain number; write decimal"):
        read_yaml(path)
    path.write_text("[0, -1, +2, 10, 0.5, .5, 1., -2.5e+3, '010', '2021-05-03', 1e-3]")
    assert read_yaml(path) == [0, -1, 2, 10, 0.5, 0.5, 1.0, -2500.0, "010", "2021-05-03", "1e-3"]


@pytest.mark.parametrize(("text", "message"), [
    ("a: !!bool abc", "2002:bool is a tag; take it out in .*line 1"), ("a: !!timestamp abc", "timestamp is a tag"),
    ("a: !!int 010", "int is a tag"), ("a: [!!set {b}]", "set is a tag"), ("a: {? [b, c] : d}", "found unhashable key"),
    *((rf'a: "no{code}bell"', "cannot be printed; take it out") for code in (r"\a", r"\e[31m", r"\x9b2J", r"\u202e")),
    (r'"\e[31m": b', "cannot be printed"), ("a: b: c", "mapping values are not allowed here"),
])
def test_what_cannot_be_read_or_shown_as_it_stands_is_refused_with_its_file(tmp_path, text, message):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"^{path}: .*{message}.*; mend it, or restore it from version control$"):
        read_yaml(path)
