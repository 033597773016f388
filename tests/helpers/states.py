"""What learners save, compared."""

import torch


def assert_equal_states(first, second):
    """Equal bit by bit, whatever the nesting; NaN, of what was not measured yet, equals NaN."""
    assert type(first) is type(second)
    if isinstance(first, torch.Tensor):
        assert first.dtype == second.dtype and torch.equal(first, second)
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for name in first:
            assert_equal_states(first[name], second[name])
    elif isinstance(first, (list, tuple)):
        for one, other in zip(first, second, strict=True):
            assert_equal_states(one, other)
    else:
        assert first == second or (first != first and second != second)
