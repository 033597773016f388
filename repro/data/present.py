"""Which declared data sets are here, whether they are what their manifests declare, and fetching those that are not."""

from pathlib import Path

from repro.data import manifest
from repro.data.disk import naming
from repro.data.manifest import Manifest

SECONDS = 60                  # without a word from the server


def status() -> list[dict[str, str]]:
    """One row per declared data set: name, title, state, path, next_step, copy.

    States: "bundled"; "present", names and sizes are as declared; "found", there is nothing declared to compare with;
    "differs", a part, damaged or another packing; "missing". Contents are not read, loading a data set does that.
    The copy is the file that `repro data import` took in last, "" if none.
    """
    rows, root = [], manifest.data_root()
    for declared in map(manifest.load_manifest, manifest.names()):
        copy, (state, next_step) = manifest.copy_of(declared.name), _state(declared, root)
        path = ", ".join(f"{root / archive.name}" for archive in declared.files)
        rows.append({"name": declared.name, "title": declared.title, "state": state, "path": path,
                     "next_step": next_step, "copy": copy.stem if copy else ""})
    return rows


def download(name: str) -> list[Path]:
    """Fetch the archives of a data set that are missing below the data root; returns where all of them lie.

    A file takes its place once its checksum is right; what lies there already is never replaced.

    Raises:
        ValueError: if it cannot be fetched automatically, what lies there is not as declared, or what the server sends.
    """
    import pooch

    declared, root = manifest.load_manifest(name), manifest.data_root()
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=SECONDS)
    for archive in declared.files:
        path, present = root / archive.name, manifest.location(archive, root)
        if present is None and archive.url is None:
            raise ValueError(f"data set {name!r} cannot be fetched automatically; {manifest.next_step(declared, path)}")
        if present is None:
            known = f"sha256:{archive.sha256}" if archive.sha256 else f"md5:{archive.md5}"
            with naming(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                pooch.retrieve(archive.url, known, path.name, path.parent, downloader=downloader)
        elif wrong := manifest.difference(archive, present):
            raise ValueError(f"{present} {wrong}; move it away and give the command again")
    return manifest.require(declared, root)


def _state(declared: Manifest, root: Path) -> tuple[str, str]:
    """State of a data set, and what to do next."""
    if declared.access == "bundled":
        return "bundled", ""
    paths = [manifest.location(archive, root) for archive in declared.files]
    if None in paths:
        return "missing", manifest.next_step(declared, root / declared.files[paths.index(None)].name)
    wrong = [manifest.difference(archive, path) for archive, path in zip(declared.files, paths, strict=True)]
    for path, differs in zip(paths, wrong, strict=True):
        if differs:
            again = f"fetch it again from {declared.source}"
            if declared.access == "automatic":
                again = f"move it away and run `repro data download {declared.name}`"
            return "differs", f"{path} {differs}; {again}"
    return ("found", "what it holds is checked when it is prepared or loaded") if None in wrong else ("present", "")
