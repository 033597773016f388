"""Fetching data sets: over https alone, in place only once the checksum is right."""

from pathlib import Path

from repro.data import manifest
from repro.data.disk import naming
from repro.data.present import difference

SECONDS = 60                  # without a word from the server


def download(name: str) -> list[Path]:
    """Fetch the archives of a data set that are missing below the data root; returns where all of them lie.

    A file takes its place once its checksum is right, so that an interrupted download leaves nothing half-done. What
    lies there already is never replaced.

    Raises:
        ValueError: if the data set cannot be fetched automatically, saying how to obtain it; what lies there differs
            from what is declared; or the server sends something else.
        OSError: if the server cannot be reached, or the disk is full.
    """
    import pooch

    declared, root = manifest.load_manifest(name), manifest.data_root()
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=SECONDS)
    for archive in declared.files:
        path, present = root / archive.name, manifest.location(archive, root)
        if present is None and archive.url is None:
            raise ValueError(f"data set {name!r} cannot be fetched automatically; {manifest.next_step(declared, path)}")
        if present is None:
            with naming(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                pooch.retrieve(archive.url, f"md5:{archive.md5}", path.name, path.parent, downloader=downloader)
        elif wrong := difference(archive, present):
            raise ValueError(f"{present} {wrong}; move it away and give the command again")
    return manifest.require(declared, root)
