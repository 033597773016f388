"""Which recordings train and which test, and whether they are as many as there should be. NumPy alone."""

from collections.abc import Mapping

import numpy as np

from repro.manifest import Split


def masks(split: Split, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Which recordings are "train" and which "test", (n,) bool each: those whose columns all have declared values."""
    return {
        part: np.all([np.isin(columns[name], values) for name, values in getattr(split, part).items()], axis=0)
        for part in ("train", "test")
    }


def check_counts(
    name: str, rule: str, found: Mapping[str, np.ndarray], expected: Mapping[str, int], otherwise: str = ""
) -> None:
    """Raise ValueError, ending with what to do otherwise, unless the masks select the expected numbers."""
    counts = {part: int(mask.sum()) for part, mask in found.items()}
    if counts != dict(expected):
        found_words, expected_words = (_in_words(each) for each in (counts, expected))
        raise ValueError(f"{name}: recordings{rule} are {found_words}, expected {expected_words}; "
                         f"compare the files with data_manifests/{name}.yaml{otherwise}")


def _in_words(counts: Mapping[str, int]) -> str:
    return " and ".join(f"{count:,} for {part}" for part, count in counts.items())
