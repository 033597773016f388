"""What the four papers share: objectives, the dictionary of keys and the momentum encoder, as pure torch."""

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """A module of this folder, imported when it is first looked at: what only names objectives needs no torch."""
    if name.startswith("_"):
        raise AttributeError(name)
    return importlib.import_module(f"{__name__}.{name}")
