"""Which declared data sets are here, and whether they are what their manifests declare."""

import hashlib
from pathlib import Path

from repro.data import manifest
from repro.data.archives import entries
from repro.data.manifest import Archive, Manifest


def status() -> list[dict[str, str]]:
    """One row per declared data set: name, title, access, state, path, next_step, copy.

    States: "embedded"; "present", names and sizes are as declared; "found", there is nothing declared to compare with;
    "differs", a part, damaged or another packing; "missing". Contents are not read, loading a data set does that.
    The copy is the file that `repro data import` took in last, "" if none.
    """
    rows = []
    for name in manifest.names():
        declared = manifest.load_manifest(name)
        state, next_step = _state(declared, manifest.data_root())
        rows.append({
            "name": name,
            "title": declared.title,
            "access": declared.access,
            "state": state,
            "path": ", ".join(f"{manifest.data_root() / archive.name}" for archive in declared.files),
            "next_step": next_step,
            "copy": copy.stem if (copy := manifest.copy_of(name)) else "",
        })
    return rows


def difference(archive: Archive, path: Path) -> str | None:
    """How the names and sizes of what lies at `path` differ from what is declared, in words.

    Returns:
        "" if they do not; None if too little is declared to tell.
    """
    if path.is_file() and path.suffix != ".zip":
        size = path.stat().st_size
        return None if archive.size is None else _unequal({"bytes": (size, archive.size)})
    if path.is_dir() and archive.members is None:  # there may be millions
        return None if any(path.iterdir()) else "is empty"
    try:
        sizes = [entry.size for entry in entries(path)]
    except ValueError as error:
        return f"is truncated or damaged ({error.__cause__ or error})"
    if not sizes:
        return "is empty"
    if archive.members is None:
        return None if archive.size is None else _unequal({"bytes": (path.stat().st_size, archive.size)})
    return _unequal({"files": (len(sizes), archive.members), "bytes": (sum(sizes), archive.bytes)})


def verdict(declared: Manifest, root: Path) -> str:
    """What reading a data set that is present shows, in words.

    Raises:
        ValueError: if it is damaged or not the declared one.
    """
    if any(archive.digest for archive in declared.files):
        manifest.verified_members(declared, root)
        return "verified: every file is as declared"
    archives = [(archive, root / archive.name) for archive in declared.files if archive.md5]
    if not archives or not all(path.is_file() for _, path in archives):
        return "names and sizes are as declared; loading checks the contents"
    for archive, path in archives:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "md5").hexdigest()
        if found != archive.md5:
            raise ValueError(f"{path} has the md5 {found}, declared is {archive.md5}; {_again(declared)}")
    return "verified: the archive is the official one"


def _state(declared: Manifest, root: Path) -> tuple[str, str]:
    """State of a data set, and what to do next."""
    if declared.access == "embedded":
        return "embedded", ""
    found = [manifest.location(archive, root) for archive in declared.files]
    if None in found:
        path = root / declared.files[found.index(None)].name
        return "missing", manifest.next_step(declared, path) + _instead(path, root)
    wrong = [difference(archive, path) for archive, path in zip(declared.files, found, strict=True)]
    for path, differs in zip(found, wrong, strict=True):
        if differs:
            return "differs", f"{path} {differs}; {_again(declared)}"
    return ("found", "what it holds is checked when it is prepared or loaded") if None in wrong else ("present", "")


def _again(declared: Manifest) -> str:
    if declared.access == "automatic":
        return f"move it away and run `repro data download {declared.name}`"
    return f"fetch it again from {declared.source}"


def _instead(path: Path, root: Path) -> str:
    """What lies beside the place of a missing archive, such as a part of the data set."""
    if path.parent == root or not path.parent.is_dir():
        return ""
    there = sorted(each.name for each in path.parent.iterdir() if not each.name.startswith("."))
    return f" (there, but not official: {', '.join(there[:3])}{', ...' if len(there) > 3 else ''})" if there else ""


def _unequal(counts: dict[str, tuple[int, int | None]]) -> str:
    """The counts that are not as declared: "has 3 of 1,484 files, 10 of 37,523,307 bytes"."""
    wrong = [f"{found:,} of {expected:,} {what}" for what, (found, expected) in counts.items()
             if expected not in (found, None)]
    return f"has {', '.join(wrong)}" if wrong else ""
