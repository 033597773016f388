"""Small trainings of every kind, bit by bit: two checkouts print the same lines if they compute the same.

    python3 -m tests.golden.bits > lines

A line for each: what it is of, the sha256 of the model's final weights, every measure as a hexadecimal float.
"""

import hashlib
import json
from collections.abc import Sequence

import torch

from tests.golden import recorded


def digest(tensors: Sequence[torch.Tensor]) -> str:
    """The sha256 of tensors, whatever they are called and however they are ordered."""
    parts = []
    for tensor in tensors:
        kind = f"{tensor.dtype} {[*tensor.shape]} "
        parts.append(hashlib.sha256(kind.encode() + tensor.contiguous().numpy().tobytes()).digest())
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest()


if __name__ == "__main__":
    for training in recorded.read("results.json"):
        measured, tensors = recorded.trained(training)
        exact = {name: float(value).hex() for name, value in sorted(measured.items())}
        print(json.dumps(training | {"weights": digest(tensors), "measured": exact}), flush=True)
