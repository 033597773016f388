"""Every bit that the small trainings give, to compare two checkouts on one machine.

    python3 -m tests.golden.bits OUTPUT        in each checkout, with the same environment, on an otherwise equal CPU
    diff OUTPUT_OF_ONE OUTPUT_OF_THE_OTHER     nothing, if they compute the same

A line for each training: what it is of, the sha256 of the model's final weights, every measure as a hexadecimal float.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch

from tests.golden import asked, recorded


def digest(tensors: list[torch.Tensor]) -> str:
    """The sha256 of tensors, whatever they are called and however they are ordered."""
    parts = []
    for tensor in tensors:
        kind = f"{tensor.dtype} {[*tensor.shape]} "
        parts.append(hashlib.sha256(kind.encode() + tensor.contiguous().numpy().tobytes()).digest())
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest()


def main(output: Path) -> None:
    """Train everything and write the lines."""
    lines = []
    for training in asked.trainings():
        measured, tensors = recorded.trained(training)
        exact = {name: float(value).hex() for name, value in sorted(measured.items())}
        lines.append(json.dumps(training | {"weights": digest(tensors), "measured": exact}) + "\n")
        print(lines[-1], end="", flush=True)
    output.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
