"""What every data set promises of its labels, parts and counts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def check_labels(name: str, labels: "Tensor", classes: int, train: "Tensor", test: "Tensor", least: int = 0) -> None:
    """Make sure that labels have classes and that nothing is trained and tested on.

    Args:
        name: of the data set.
        labels: (n,) int64.
        classes: how many there are; some may have no sample.
        train, test: (n,) bool.
        least: the smallest label: -1 where samples may have none.

    Raises:
        ValueError: if a label is out of range, or a sample is in both parts.
    """
    wrong = labels[(labels < least) | (labels >= classes)]
    if len(wrong):
        raise ValueError(f"{name}: label {int(wrong[0])} should be from {least} to {classes - 1}")
    both = (train & test).nonzero()
    if len(both):
        raise ValueError(f"{name}: {len(both)} samples are for train and for test, the first of them {int(both[0])}; "
                         "a sample belongs to one of them")


def check_counts(what: str, counts: Mapping[str, int], expected: Mapping[str, int | None], next_step: str) -> None:
    """Raise ValueError, with what to do next, unless the counts are as expected where something is expected."""
    expected = {part: number for part, number in expected.items() if number is not None}
    if any(counts.get(part) != number for part, number in expected.items()):
        has, should = (", ".join(f"{part} {numbers.get(part, 0):,}" for part in expected)
                       for numbers in (counts, expected))
        raise ValueError(f"{what}: {has}; expected {should}; {next_step}")
