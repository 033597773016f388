"""Arrays under names: kept in `.npz` files, and told apart by a digest. NumPy alone."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from repro.data.disk import require_regular


def write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Fill the file at a path, whatever its ending."""
    with open(path, "wb") as file:  # given a path, savez would add an ending
        np.savez(file, **arrays)


def read(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a file: FileNotFoundError if it is missing, ValueError if any of them is damaged."""
    require_regular(path)
    try:
        with open(path, "rb") as file, np.load(file) as stored:  # given a path, load would leave a damaged file open
            return {name: stored[name] for name in stored.files}
    except (OSError, MemoryError):  # says nothing about the file
        raise
    except Exception as error:  # NumPy raises many kinds for a damaged file
        raise ValueError(f"{type(error).__name__}: {error}") from error


def digest(arrays: Mapping[str, np.ndarray], beginning: str = "") -> str:
    """Hex sha256 over a text, then names, types, shapes and contents in their order."""
    hashed = hashlib.sha256(beginning.encode())
    for name, array in arrays.items():
        hashed.update(f"{name} {array.dtype.str} {array.shape}\0".encode())
        hashed.update(np.ascontiguousarray(array))
    return hashed.hexdigest()
