import dataclasses

import pandas as pd
import torch

from repro.recipe import Recipe, setting
from repro.run.finished import kept
from repro.run.store import Cell, Store


@dataclasses.dataclass(frozen=True, kw_only=True)
class Threaded(Recipe):
    threads: int = setting(1, "assumed")


def test_what_is_kept_is_computed_once_with_the_threads_and_the_precision_of_training(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    cell = Cell("taxonomy", "CE", Threaded(), 0, preset="quick", dataset="synthetic", digest="d1", version=1)
    Store(tmp_path).run(cell).folder.mkdir(parents=True)
    calls = []

    def compute():
        calls.append((torch.get_num_threads(), torch.backends.cudnn.allow_tf32))
        return pd.DataFrame({"value": [0.5, 2.0]})

    first = kept(cell, "values.csv", compute)
    whose = {"dataset": ["synthetic"] * 2, "preset": ["quick"] * 2, "seed": [0, 0]}
    assert first.to_dict("list") == {"value": [0.5, 2.0]} | whose
    assert kept(cell, "values.csv", compute).equals(first)
    assert calls == [(1, False)]
