"""Files that are there whole or not at all."""

import errno
import os
import stat

import pytest

from repro.data.disk import write_atomically
from repro.run.store import write_json


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


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    def write(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=r"No space left on device \(make room there, .*\): '.*/file\.txt'") as raised:
        write_atomically(tmp_path / "file.txt", write)
    assert raised.value.errno == errno.ENOSPC and list(tmp_path.iterdir()) == []


def test_content_is_on_disk_before_it_is_in_place(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append(("fsync", os.fstat(file).st_size)), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append(("replace", None)), replace(*paths)))
    write_atomically(tmp_path / "file.txt", lambda temporary: temporary.write_text("12345"))
    assert calls[:2] == [("fsync", 5), ("replace", None)]


def test_files_have_the_permissions_of_other_new_files(tmp_path):
    (tmp_path / "usual").touch()
    write_json(tmp_path / "result.json", {})
    usual, ours = (stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "usual", tmp_path / "result.json"))
    assert oct(ours) == oct(usual)
