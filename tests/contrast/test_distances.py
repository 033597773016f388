"""Distances between sequences, a few entries at a time; `test_objectives.py` holds their values against slow loops."""

import pytest
import torch

from repro.contrast import objectives


@pytest.mark.parametrize(
    "n, k, d, sizes", [(4, 21, 6, [5, 5, 5, 5, 1]), (3, 2, 5, [1, 1]), (1, 3, 2**20, [2, 1]), (1, 2, 2**22, [1, 1])]
)
def test_differences_are_all_those_of_a_few_entries_after_another(n, k, d, sizes):
    sequences, entries = torch.randn(n, d), torch.randn(k, d)
    parts = [(rows, difference.clone()) for rows, difference in objectives._differences(sequences, entries)]
    assert [difference.shape[1] for _, difference in parts] == sizes
    assert torch.equal(torch.cat([entries[rows] for rows, _ in parts]), entries)
    assert torch.equal(torch.cat([difference for _, difference in parts], dim=1), sequences[:, None] - entries)
