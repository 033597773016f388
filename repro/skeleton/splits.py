"""Whether recordings for training and test are as many as there should be. NumPy alone."""

from collections.abc import Mapping

import numpy as np


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
