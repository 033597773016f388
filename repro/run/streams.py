"""Random streams of a cell: each draws from a seed of its own."""

import numpy as np


def seeds(seed: int, count: int) -> list[int]:
    """So many seeds of a cell's streams, spawned from its own: unlike numbers, so that no two streams are alike."""
    return np.random.SeedSequence(seed).generate_state(count).tolist()
