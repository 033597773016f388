"""Which source trains: a hash that stands with every result and checkpoint, so that an edited loss does not show old
numbers as its own.

Files are hashed when `repro` is first imported, before any other module of it is. Where one differs on disk later, what
would train is not what is there to be read.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
SHARED = ("contrast/", "run/learner.py", "run/recorded.py", "run/group.py")  # what every step runs through
BETWEEN = "; "  # the codes, or devices, that have trained one run


def _on_disk() -> dict[str, str]:
    """A hash of every source file of the package, by its path in it."""
    return {path.relative_to(PACKAGE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(PACKAGE.rglob("*.py"))}


IMPORTED = _on_disk()


def identity(modules: Iterable[str]) -> str:
    """The hash of `SHARED` and the folders that modules are in.

    Args:
        modules: by name, as "repro.image.study"; those of a paper are in its folder, and others than ours count not.
    """
    return of_files(*_files(modules))


def of_files(*names: str) -> str:
    """Sixteen digits of a hash of source files as they were imported; by their paths in the package, sorted.

    What is made of data once and kept, such as prepared arrays, is named after the files that make it.
    """
    text = "\n".join(f"{name} {IMPORTED[name]}" for name in sorted(names))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def require_as_imported(modules: Iterable[str]) -> None:
    """Raise ValueError, naming the file, if one that `identity` hashes is another on disk by now."""
    now = _on_disk()
    for name in _files(modules):
        if now.get(name) != IMPORTED[name]:
            raise ValueError(f"{PACKAGE / name} has changed since it was imported; restart the kernel, and give the "
                             "same command again: what trains is to be what the file says")


def _files(modules: Iterable[str]) -> list[str]:
    """The paths, sorted, of what `identity` hashes."""
    folders = []
    for _, *parts in (module.split(".") for module in modules if module.startswith("repro.")):
        folders.append("/".join(parts[: 2 if parts[0] == "papers" else 1]) + "/")
    return [name for name in sorted(IMPORTED) if name.startswith((*SHARED, *folders))]
