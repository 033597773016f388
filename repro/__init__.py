"""A reproducible companion to four papers on self-supervised learning.

`run_table` trains what is missing of a table and returns it, `results` returns that of a saved experiment and trains
nothing, `draw` draws either, `frames` is what runs have left beside numbers, `finished` is every run there is, `load`
reads a trained encoder, one that comes along or your own. `TABLES` and `EXPERIMENTS` are there by name. They are
imported when they are asked for, as what they need takes seconds.
"""

import importlib
from typing import Any

PUBLIC = {"run_table": "repro.experiments", "finished": "repro.experiments", "results": "repro.experiments",
          "frames": "repro.experiments", "draw": "repro.papers.drawing", "load": "repro.encoders"}

importlib.import_module("repro.run.code")  # it hashes all sources, before any other of them is imported


def __getattr__(name: str) -> Any:
    if name == "TABLES":
        return importlib.import_module("repro.papers").tables()
    if name == "EXPERIMENTS":
        return importlib.import_module("repro.experiments").experiments()
    if name in PUBLIC:
        return getattr(importlib.import_module(PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), "TABLES", "EXPERIMENTS", *PUBLIC]
