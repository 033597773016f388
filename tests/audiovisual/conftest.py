"""Fixtures that several files of this folder ask for by name: data sets that are made up, or said to be there."""

import pytest

from repro import manifest


@pytest.fixture
def any_data(monkeypatch):
    """Every data set is there, and large enough; the cells' functions look at its name and digest alone."""
    from repro.audiovisual import cell

    class Named:
        def __init__(self, name):
            self.name, self.digest = name, f"digest of {name}"

    def named(recipe):
        return Named(f"{recipe.dataset} (subset)" if recipe.subset else recipe.dataset)

    monkeypatch.setattr(cell, "data_of", named)
    monkeypatch.setattr(cell, "target_of", lambda recipe, name, split: Named(f"{name} {split}"))
    monkeypatch.setattr(cell, "members", lambda recipe, data: None)
    monkeypatch.setattr(manifest, "embedded", lambda label: label in ("synthetic", "multidigits"))
