"""What the four papers share: objectives, the dictionary of keys and the momentum encoder, as pure torch."""

import importlib.util
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """A module of this folder, imported when it is first looked at: what only names objectives needs no torch."""
    if importlib.util.find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
