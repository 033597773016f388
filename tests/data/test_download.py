"""Downloads, from a server in this process. It speaks http, which is let through here alone."""

import functools
import hashlib
import http.server
import shutil
import threading

import pytest

from repro.data import download as downloads
from repro.data import manifest
from repro.data.download import download

CONTENTS = b"an archive" * 100


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of the files in tmp_path/server; /elsewhere/X redirects to X. Returns its address."""
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "things.tar.gz").write_bytes(CONTENTS)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            if not self.path.startswith("/elsewhere/"):
                return super().do_GET()
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/elsewhere/"))
            return self.end_headers()

    monkeypatch.setattr(downloads, "SCHEME", "http")
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


def nothing_is_left(path):
    return not path.parent.exists() or list(path.parent.iterdir()) == []


@pytest.mark.parametrize("size", [len(CONTENTS), None])
def test_a_download_is_checked_and_made_once(declare, tmp_path, size):
    path = declare(size=size)
    assert download("fetched") == [path] and path.read_bytes() == CONTENTS
    (tmp_path / "server" / "things.tar.gz").unlink()
    assert download("fetched") == [path]  # nothing is fetched again


@pytest.mark.parametrize(("sent", "message"), [
    (CONTENTS[:-1], "sent 999 bytes, 1,000 are declared; nothing was kept"),
    (CONTENTS + b"!", "sends more than the 1,000 bytes declared; nothing was kept"),
    (CONTENTS[:-1] + b"!", r"things\.tar\.gz"),  # another checksum
])
def test_what_is_not_the_declared_archive_leaves_nothing(declare, tmp_path, sent, message):
    path = declare()
    (tmp_path / "server" / "things.tar.gz").write_bytes(sent)
    with pytest.raises(ValueError, match=message):
        download("fetched")
    assert nothing_is_left(path)


def test_an_endless_answer_is_cut_off_where_nobody_could_tell_the_size(declare, monkeypatch):
    path = declare(size=None)
    monkeypatch.setattr(downloads, "MOST", 500)
    with pytest.raises(ValueError, match="sends more than the 500 bytes declared"):
        download("fetched")
    assert nothing_is_left(path)


def test_half_a_download_in_the_place_of_the_archive_is_neither_accepted_nor_lost(declare):
    path = declare()
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENTS[:300])
    with pytest.raises(ValueError, match=f"{path} has 300 of 1,000 bytes; move it away and give the command again"):
        download("fetched")
    assert path.read_bytes() == CONTENTS[:300]


def test_too_little_room_is_said_before_anything_is_fetched(declare, monkeypatch):
    path = declare(url="http://127.0.0.1:9/nobody")
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(OSError, match="takes 1,000 bytes and its disk has 10 left; free some room, or point"):
        download("fetched")
    assert nothing_is_left(path)


def test_a_redirect_within_the_domain_is_followed(declare, server):
    path = declare(url=f"{server}/elsewhere//things.tar.gz")
    assert download("fetched") == [path]


@pytest.mark.parametrize("place", ["http://example.org/things.tar.gz", "ftp://127.0.0.1/things.tar.gz", "file:///etc/x"])
def test_a_redirect_to_elsewhere_is_not_followed(declare, server, place):
    path = declare(url=f"{server}/elsewhere/{place}")
    with pytest.raises(ValueError, match=f"leads to {place}, which is not .* of its domain; fetch the archive by hand"):
        download("fetched")
    assert nothing_is_left(path)


def test_redirects_end(declare, server):
    declare(url=f"{server}/elsewhere/" + "/elsewhere/" * 9 + "things.tar.gz")
    with pytest.raises(ValueError, match="leads from one place to the next"):
        download("fetched")


def test_nothing_is_fetched_without_encryption(declare, monkeypatch):
    declare()
    monkeypatch.setattr(downloads, "SCHEME", "https")
    with pytest.raises(ValueError, match="which is not https://"):
        download("fetched")


@pytest.mark.parametrize(("url", "host", "allowed"), [
    ("https://cave.cs.toronto.edu/a", "www.cs.toronto.edu", True), ("https://localhost/a", "localhost", True),
    ("https://evil.org/a", "www.cs.toronto.edu", False), ("https://evil.org/a", "github.org", False),
    ("https://www.cs.toronto.edu.evil.org/a", "www.cs.toronto.edu", False),
    ("http://www.cs.toronto.edu/a", "www.cs.toronto.edu", False),
])
def test_which_places_are_trusted(url, host, allowed):
    if allowed:
        return downloads._check(url, host)
    with pytest.raises(ValueError, match="fetch the archive by hand"):
        downloads._check(url, host)


def test_a_download_that_cannot_be_automatic_says_how(declare):
    declare(access="form", url=None, md5=None)
    with pytest.raises(ValueError, match=r"cannot be fetched automatically; ask for things.tar.gz"):
        download("fetched")
