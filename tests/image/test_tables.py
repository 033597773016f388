"""The image tables: small trainings of all methods, and what is refused before."""

import pytest
import torch
from made_up_images import be_every_set

import repro
from repro.image.methods import METHODS
from repro.image.recipe import IMAGES, paper, smoke
from repro.run import group
from repro.run.store import Store

TABLES = [name for name, declared in repro.TABLES.items() if declared.study is IMAGES]
pytestmark = pytest.mark.usefixtures("tiny_trunk", "runs")


def test_a_small_table_of_all_methods():
    rows = repro.run_table("image_methods", preset="smoke", method=",".join(METHODS), seeds="0,1")
    assert rows["method"].tolist() == list(METHODS) and rows["n_seeds"].tolist() == [2] * len(METHODS)
    cells = {(cell["recipe"]["method"], cell["seed"]): cell for cell in Store().finished()}
    assert len({cell["result"]["embedding_spread"] for cell in cells.values()}) == 2 * len(METHODS)
    for (name, _), cell in cells.items():
        result = cell["result"]
        assert cell["study"] == "images" and cell["recipe"] == smoke("digits", name).to_dict()
        assert set(result) == {"linear", "knn1", "embedding_spread", "select", "cost", "evaluation"}
        assert all(0 <= result[measure] <= 100 for measure in ("linear", "knn1"))
        assert 0 < result["embedding_spread"] <= 1 and result["select"] == "last"
        assert result["cost"]["steps"] == (0 if name == "random" else 2)


@pytest.mark.parametrize("name", TABLES)
def test_what_processes_cannot_share_is_refused_before_anything_is_trained(monkeypatch, capsys, name):
    be_every_set(monkeypatch)
    monkeypatch.setattr(group, "process", lambda: (0, 2))
    with pytest.raises(ValueError, match=r"groups=1 cannot be divided among 2 processes.*--groups 8"):
        repro.run_table(name, preset="smoke", engine="inline", device="cpu")
    assert capsys.readouterr().err == ""
    assert repro.TABLES["image_methods"].cells(preset="smoke", method="random,moco", variant="ghost_groups")


def test_a_probe_that_pictures_of_various_sizes_cannot_have_is_refused():
    with pytest.raises(ValueError, match="probe_view='shifted' needs images of one size; for imagenet100 take crop"):
        IMAGES.check(paper("imagenet100", "jcl", probe_view="shifted"), torch.device("cpu"))
