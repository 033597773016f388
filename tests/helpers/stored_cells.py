"""What stands for a training."""


def refuse(*_, **__):
    """Stands for the training of cells that are finished, or should never be begun."""
    raise AssertionError("a cell was trained that should not be")
