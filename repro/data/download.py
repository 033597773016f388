"""Fetching data sets: over https alone, not a byte more than declared, in place only once the checksum is right."""

import functools
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from tqdm.auto import tqdm

from repro.data import manifest
from repro.data.disk import naming
from repro.data.manifest import Archive
from repro.data.present import difference

SCHEME = "https"
MOST = 2**30                  # bytes of an archive whose size nobody could tell us
REDIRECTS = 5
SECONDS = 60                  # without a word from the server


def download(name: str) -> list[Path]:
    """Fetch the archives of a data set that are missing below the data root; returns where all of them lie.

    A file takes its place once size and checksum are right, so that an interrupted download leaves nothing half-done.
    What lies there already is never replaced.

    Raises:
        ValueError: if the data set cannot be fetched automatically, saying how to obtain it; what lies there differs
            from what is declared; or the server sends something else or leads elsewhere.
        OSError: if the server cannot be reached, or the disk is full or has too little room.
    """
    declared, root = manifest.load_manifest(name), manifest.data_root()
    for archive in declared.files:
        path, found = root / archive.name, manifest.location(archive, root)
        if found is None:
            if archive.url is None:
                next_step = manifest.next_step(declared, path)
                raise ValueError(f"data set {name!r} cannot be fetched automatically; {next_step}")
            _fetch(archive, path)
        elif wrong := difference(archive, found):
            raise ValueError(f"{found} {wrong}; move it away and give the command again")
    return manifest.require(declared, root)


def _fetch(archive: Archive, path: Path) -> None:
    import pooch

    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if archive.size is not None and free < archive.size:
        raise OSError(f"{path} takes {archive.size:,} bytes and its disk has {free:,} left; free some room, or point "
                      "REPRO_DATA at another disk")
    stream = functools.partial(_stream, size=archive.size)
    with naming(path):
        pooch.retrieve(archive.url, f"md5:{archive.md5}", fname=path.name, path=path.parent, downloader=stream)


def _stream(url: str, output: str, _: Any, *, size: int | None) -> None:
    """Write what a server sends to a file, which pooch then checks and moves into place."""
    most, received = MOST if size is None else size, 0
    bar = tqdm(total=size, desc=Path(urlsplit(url).path).name, unit="B", unit_scale=True)
    with _answer(url) as answer, open(output, "wb") as file, bar as progress:
        for part in answer.iter_content(2**20):
            received += len(part)
            if received > most:
                raise ValueError(f"{url} sends more than the {most:,} bytes declared; nothing was kept")
            file.write(part)
            progress.update(len(part))
    if size is not None and received != size:
        raise ValueError(f"{url} sent {received:,} bytes, {size:,} are declared; nothing was kept, try again later")


def _answer(url: str) -> Any:
    """The server's answer. Redirects are followed one by one, so that none leads out of the declared host's domain."""
    import requests

    host, asked = urlsplit(url).hostname, url
    for _ in range(REDIRECTS):
        _check(asked, host)
        answer = requests.get(asked, stream=True, allow_redirects=False, timeout=SECONDS,
                              headers={"Accept-Encoding": "identity"})
        if not answer.is_redirect:
            answer.raise_for_status()
            return answer
        asked = urljoin(asked, answer.headers["location"])
        answer.close()
    raise ValueError(f"{url} leads from one place to the next; fetch the archive by hand")


def _check(url: str, host: str) -> None:
    """Raise unless `url` is of the host or another one of its domain, over https."""
    parts, domain = urlsplit(url), host.partition(".")[2]
    near = "." in domain and f"{parts.hostname}".endswith(f".{domain}")
    if parts.scheme != SCHEME or not (parts.hostname == host or near):
        raise ValueError(f"{host} leads to {url}, which is not {SCHEME}:// of its domain; fetch the archive by hand")
