"""Arrays under names: kept in `.npz` files, and told apart by a digest. NumPy alone."""

import hashlib
import tokenize
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from repro.data.disk import CORRUPT, require_regular

ODD_HEADER = (SyntaxError, tokenize.TokenError)  # what NumPy raises, beside ValueError, for a damaged description
DAMAGED = (*CORRUPT, KeyError, *ODD_HEADER)  # what `read` raises: a file is missing or damaged


def write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Fill the file at a path, whatever its ending."""
    with open(path, "wb") as file:  # given a path, savez would add an ending
        np.savez(file, **arrays)


def read(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a file, which shows damage in any of them: `DAMAGED`, also if it is missing."""
    require_regular(path)
    with open(path, "rb") as file, np.load(file) as stored:  # given a path, load would leave a damaged file open
        return {name: stored[name] for name in stored.files}


def digest(arrays: Mapping[str, np.ndarray], beginning: str = "") -> str:
    """Hex sha256 over a text, then names, types, shapes and contents in their order."""
    hashed = hashlib.sha256(beginning.encode())
    for name, array in arrays.items():
        hashed.update(f"{name} {array.dtype.str} {array.shape}\0".encode())
        hashed.update(np.ascontiguousarray(array))
    return hashed.hexdigest()
