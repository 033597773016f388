"""What files of this folder ask for by name: every data set is there."""

import pytest

from repro.data import manifest


@pytest.fixture
def any_data(monkeypatch):
    """Every data set is there, and large enough; tables look at its name and digest alone."""
    from repro.audiovisual import study

    class Named:
        def __init__(self, name):
            self.name, self.digest = name, f"digest of {name}"

    def named(recipe):
        return Named(f"{recipe.dataset} (subset)" if recipe.subset else recipe.dataset)

    monkeypatch.setattr(study, "data_of", named)
    monkeypatch.setattr(study, "target_of", lambda recipe, name, split: Named(f"{name} {split}"))
    monkeypatch.setattr(study, "members", lambda recipe, data: None)
    monkeypatch.setattr(manifest, "bundled", lambda label: label in ("synthetic", "multidigits"))
