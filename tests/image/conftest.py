"""Fixtures that several files of this folder ask for by name."""

import pytest


@pytest.fixture(scope="module")
def tiny_trunk():
    """All networks of a file have the tiny trunk."""
    from made_up_images import use_tiny_trunk

    with pytest.MonkeyPatch.context() as patch:
        use_tiny_trunk(patch)
        yield
