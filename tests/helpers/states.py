"""What learners save: compared, and taken up again."""

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


def resumed_anywhere(make, folder, steps):
    """A learner that takes so many steps, all it has, and those that took over before each of them, at their end.

    Args:
        make: gives the learner anew.
        folder: for its states.
    """
    undisturbed, values, resumed = make(), [], []
    assert undisturbed.total_steps == steps
    for step in range(steps):
        torch.save(undisturbed.state_dict(), folder / f"{step}.pt")
        values.append(undisturbed.step())
    for step in range(steps):
        resumed.append(make())
        resumed[-1].load_state_dict(torch.load(folder / f"{step}.pt", weights_only=True))
        for value in values[step:]:
            assert torch.equal(resumed[-1].step(), value), step
        assert_equal_states(resumed[-1].state_dict(), undisturbed.state_dict())
    return undisturbed, resumed
