"""The package of what the papers share, whose modules are imported when they are first looked at."""

import pytest

from repro import contrast


def test_its_modules_are_attributes_and_others_are_none():
    assert contrast.objectives.info_nce
    for name in ("prototypes", "__wrapped__"):
        assert not hasattr(contrast, name)
    with pytest.raises(AttributeError, match=r"module 'repro\.contrast' has no attribute 'prototypes'"):
        contrast.prototypes  # noqa: B018, which raises
