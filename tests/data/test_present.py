"""What is said of data sets that are here, in part, damaged, or not at all; and downloads."""

import functools
import hashlib
import http.server
import threading

import pytest
import yaml
from packed import write_folder, write_zip

from repro.data import manifest, present
from repro.data.present import download


@pytest.fixture
def state(tmp_path, monkeypatch):
    """Declares the only data set `things` with one archive; returns a function that gives its state and next step."""
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.delenv("REPRO_DATA", raising=False)
    (tmp_path / "data_manifests").mkdir()

    def status(name="things.zip", access="form", **fields):
        values = {"name": "things", "title": "Things", "access": access, "source": "https://example.org"}
        values |= {"licence": "-", "files": [{"name": f"box/{name}", **fields}] if name else [], "splits": {}}
        (tmp_path / "data_manifests" / "things.yaml").write_text(yaml.safe_dump(values))
        row, = present.status()
        return row["state"], row["next_step"]

    return status


COUNTS = {"members": 3, "bytes": 10246}


def test_nothing_and_embedded(state):
    assert state(None, access="bundled") == ("bundled", "")
    kind, step = state(**COUNTS)
    assert kind == "missing" and step.startswith("ask for things.zip at https://example.org")


@pytest.mark.parametrize("make", [lambda box: write_zip(box / "things.zip"), lambda box: write_folder(box / "things")])
def test_complete_however_packed(state, tmp_path, make):
    make(tmp_path / "data" / "box")
    assert state(**COUNTS) == state(members=3) == ("present", "")


def test_a_zip_of_which_nothing_else_is_declared_is_known_by_its_size(state, tmp_path):
    size = write_zip(tmp_path / "data" / "box" / "things.zip").stat().st_size
    assert state(size=size)[0] == "present"
    assert f"has {size:,} of {size + 1:,} bytes" in state(size=size + 1)[1]


@pytest.mark.parametrize("make", [write_zip, lambda path, files: write_folder(path.with_suffix(""), files)])
def test_a_part_is_counted(state, tmp_path, make):
    make(tmp_path / "data" / "box" / "things.zip", {"a.txt": b"one"})
    kind, step = state(**COUNTS)
    assert kind == "differs" and "has 1 of 3 files, 3 of 10,246 bytes; fetch it again from https://example.org" in step


@pytest.mark.parametrize("kept", [0, 30, 5000])
def test_half_a_zip_is_damaged(state, tmp_path, kept):
    path = write_zip(tmp_path / "data" / "box" / "things.zip")
    path.write_bytes(path.read_bytes()[:kept])
    kind, step = state(access="automatic", **COUNTS)
    assert kind == "differs" and "things.zip is truncated or damaged" in step
    assert step.endswith("move it away and run `repro data download things`")


def test_an_empty_folder_is_no_data(state, tmp_path):
    (tmp_path / "data" / "box" / "things").mkdir(parents=True)
    assert state(**COUNTS)[0] == state()[0] == "differs"


def test_a_tar_archive_is_known_by_its_size(state, tmp_path):
    path = tmp_path / "data" / "box" / "things.tar.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"12345")
    assert state("things.tar.gz", size=5)[0] == "present"
    assert "has 5 of 9 bytes" in state("things.tar.gz", size=9)[1]
    write_folder(tmp_path / "data" / "box" / "things")
    for name in ("things.tar.gz", "things"):  # of which nothing is declared
        assert state(name) == ("found", "what it holds is checked when it is prepared or loaded")


# ---------------------------------------------------------------------------------------------- downloads

CONTENTS = b"an archive" * 100


@pytest.fixture
def server(tmp_path):
    """A server of the files in tmp_path/server; it speaks http, which no manifest may declare. Returns its address."""
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "things.tar.gz").write_bytes(CONTENTS)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Handler, directory=tmp_path / "server")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as started:
        threading.Thread(target=started.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{started.server_port}"
        started.shutdown()


@pytest.fixture
def declare(server, tmp_path, monkeypatch):
    """Declares the data set `fetched`, whose archive the server has; returns where it will lie."""
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))

    def declared(access="automatic", **changes):
        usual = {"url": f"{server}/things.tar.gz", "md5": hashlib.md5(CONTENTS).hexdigest(), "size": len(CONTENTS)}
        archive = manifest.Archive(name="fetched/things.tar.gz", **usual | changes)
        made = manifest.Manifest(name="fetched", title="t", access=access, source="s", licence="l", files=(archive,),
                                 splits={})
        monkeypatch.setattr(manifest, "load_manifest", lambda _: made)
        return tmp_path / "data" / "fetched" / "things.tar.gz"

    return declared


@pytest.mark.parametrize("size", [len(CONTENTS), None])
def test_a_download_is_checked_and_made_once(declare, tmp_path, size):
    path = declare(size=size)
    assert download("fetched") == [path] and path.read_bytes() == CONTENTS
    (tmp_path / "server" / "things.tar.gz").unlink()
    assert download("fetched") == [path]  # nothing is fetched again


def test_sha256_decides_where_the_manifest_has_it(declare):
    path = declare(sha256="0" * 64)  # the MD5 beside it is right
    with pytest.raises(ValueError, match=r"things\.tar\.gz"):
        download("fetched")
    assert list(path.parent.iterdir()) == []
    declare(sha256=hashlib.sha256(CONTENTS).hexdigest(), md5="0" * 32)
    assert download("fetched") == [path]


@pytest.mark.parametrize("sent", [CONTENTS[:-1], CONTENTS + b"!", CONTENTS[:-1] + b"!"])
def test_what_is_not_the_declared_archive_leaves_nothing(declare, tmp_path, sent):
    path = declare()
    (tmp_path / "server" / "things.tar.gz").write_bytes(sent)
    with pytest.raises(ValueError, match=r"things\.tar\.gz"):
        download("fetched")
    assert list(path.parent.iterdir()) == []


def test_a_server_without_the_archive_is_an_error_that_names_it(declare, tmp_path):
    path = declare()
    (tmp_path / "server" / "things.tar.gz").unlink()
    with pytest.raises(OSError, match="404"):
        download("fetched")
    assert list(path.parent.iterdir()) == []


def test_half_a_download_in_the_place_of_the_archive_is_neither_accepted_nor_lost(declare):
    path = declare()
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENTS[:300])
    with pytest.raises(ValueError, match=f"{path} has 300 of 1,000 bytes; move it away and give the command again"):
        download("fetched")
    assert path.read_bytes() == CONTENTS[:300]


def test_a_download_that_cannot_be_automatic_says_how(declare):
    declare(access="form", url=None, md5=None)
    with pytest.raises(ValueError, match=r"cannot be fetched automatically; ask for things.tar.gz"):
        download("fetched")
