"""Downloads, from a server in this process. It speaks http, which no manifest may declare."""

import functools
import hashlib
import http.server
import threading

import pytest

from repro.data import manifest
from repro.data.present import download

CONTENTS = b"an archive" * 100


@pytest.fixture
def server(tmp_path):
    """A server of the files in tmp_path/server. Returns its address."""
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
