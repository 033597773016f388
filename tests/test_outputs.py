"""`--output` of every command: what is no new and no regular file is refused before anything is computed."""

import io
import os
import stat
import sys

import pandas as pd
import pytest
from command_line import refused
from nursery import python

RUN = ("run", "taxonomy", "--preset", "smoke", "--objectives", "random")
COMMANDS = (RUN, ("figures", "taxonomy_ucla"), ("report",), ("report", "--markdown"), ("results", "weights", "0" * 16))


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Names of what an output cannot be; whether a device is a device is seen without being root."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "regular").write_text("theirs")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def no_longer(*arguments, **further):
    raise AssertionError("it began to compute")


@pytest.mark.parametrize(("command", "name"), [
    *((RUN, name) for name in ("/dev/full", "link", "", "regular/below", "absent/../pipe", "loop")),
    *((command, "/dev/null") for command in COMMANDS),
    (RUN, "folder"), (RUN, "new/"), (("results", "weights", "0" * 16), "folder"), (("figures",), "regular"),
    (("report",), "regular"), (("report",), "-"), (("figures",), "/dev/stdout"),
])
def test_what_cannot_be_written_is_refused_before_anything_is_computed(repro, places, monkeypatch, command, name):
    """A device, a pipe, a name without a file, a folder for a file, and a file or standard output for a folder."""
    for function in ("run.training.train", "papers.drawing.redraw", "book.build", "encoders.export",
                     "report.markdown.write"):
        monkeypatch.setattr(f"repro.{function}", no_longer)
    devices = {device: os.stat(device) for device in ("/dev/full", "/dev/null")}
    message = refused(repro(*command, "--output", name))
    assert message.startswith((f"repro: --output {name} ", f"repro: --output {name!r} ")) and "; name a " in message
    assert all(os.stat(device).st_rdev == before.st_rdev for device, before in devices.items())
    assert stat.S_ISFIFO(os.stat("pipe").st_mode) and (places / "regular").read_text() == "theirs"
    assert not os.path.exists("new")


def test_standard_output_gets_every_column_and_nothing_else(repro, places):
    for name in ("-", "/dev/stdout"):
        status, out, _ = repro(*RUN, "--output", name)
        table = pd.read_csv(io.StringIO(out))
        assert status == 0 and table["objectives"].tolist() == ["random"] and {"ours", "n_seeds", "knn1"} <= {*table}
    assert sorted(os.listdir(places)) == ["folder", "link", "loop", "pipe", "regular", "runs"]


def test_a_stream_that_is_a_file_is_not_replaced(places):
    """As with `repro run ... --output /dev/stdout >> log`, by whatever name."""
    (places / "log").write_text("before\n")
    before = os.stat("log").st_ino

    given = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = "import os, runpy, sys; os.dup2(os.open('log', os.O_WRONLY | os.O_APPEND), int(sys.argv.pop(1)))\n" \
              "runpy.run_module('repro', run_name='__main__', alter_sys=True)"

    def run(name, stream):
        return python("-c", command, str(stream), *RUN, "--output", name, cwd=places, env=given).returncode

    assert run("//dev/fd/1", 1) == 0 and run("/dev/stderr", 2) == 2
    assert os.stat("log").st_ino == before and (places / "log").read_text().startswith("before\nobjectives,")


def test_a_link_to_a_file_stays_and_a_name_of_ones_home_is_understood(repro, places, monkeypatch):
    monkeypatch.setenv("HOME", str(places / "folder"))
    (places / "to").symlink_to("regular")
    for name, written in (("to", places / "regular"), ("~/x.csv", places / "folder" / "x.csv")):
        assert repro(*RUN, "--output", name)[0] == 0
        assert written.read_text().startswith("objectives,")
    assert (places / "to").is_symlink() and not (places / "~").exists()
