"""The cells of the taxonomy's tables: which there are, and what is refused before anything is computed."""

import functools
import itertools

import pytest
import torch
from made_up_skeletons import stand_in

from repro import run_table
from repro.data import manifest
from repro.skeleton import study
from repro.table import find

pytestmark = pytest.mark.usefixtures("runs")


def cells(objectives="all", dataset="synthetic", **choices):
    """Those of the taxonomy."""
    return find("taxonomy").cells(dataset, objectives=objectives, **choices)


def test_the_sixteen_rows():
    found = cells()
    expected = ["+".join(chosen) for size in (1, 2, 3, 4)
                for chosen in itertools.combinations(("AE", "CE", "AD", "CD"), size)]
    assert found[0].label == "random" and sorted(cell.label for cell in found[1:]) == sorted(expected)
    assert len({cell.key for cell in found}) == 16 and found == find("taxonomy").cells()
    assert {(cell.study, cell.dataset, cell.preset, cell.seed) for cell in found} == {
        ("skeletons", "synthetic", "quick", 0)
    }
    assert all(cell.label == cell.recipe.objectives and cell.changes == {} for cell in found)


def test_depths_and_methods_of_the_collapse():
    found = find("encoder_collapse").cells("synthetic", layers="3,1", seeds="4,2")
    assert [(cell.seed, cell.recipe.layers, cell.recipe.objectives) for cell in found] == [
        (seed, layers, method) for seed in (4, 2) for layers in (3, 1) for method in ("random", "AE")
    ]
    assert [cell.label for cell in found[:4]] == ["random, layers=3", "AE, layers=3", "random", "AE"]
    assert len(find("encoder_collapse").cells("synthetic")) == 10


def test_the_order_of_terms_does_not_matter():
    found = cells("CE+AE, CD+AD+CE+AE,random")
    assert [cell.label for cell in found] == ["AE+CE", "AE+CE+AD+CD", "random"]
    assert cells("AE+CE")[0].key == found[0].key


LISTS = {"taxonomy": {}, "encoder_collapse": {"layers": 1}}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("preset", ["paper", "quick", "smoke"])
def test_a_cell_is_the_same_on_every_device(name, preset, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # as far as a list of cells can tell
    listed = functools.partial(find(name).cells, "synthetic", preset=preset, objectives="AE", **LISTS[name])
    on_cpu, = listed(device="cpu")
    assert on_cpu.label == "AE"
    for device in ("auto", "cuda"):
        assert listed(device=device) == [on_cpu]
        with pytest.raises(ValueError, match="precision='bfloat16' is for a CPU; on cuda it is float32: leave it out"):
            listed(device=device, precision="bfloat16")


@pytest.fixture
def made_up_data(monkeypatch, folders):
    """Returns a function that lets every data set be one whose longest sequence has so many frames."""
    def let(longest):
        monkeypatch.setattr(study, "load", lambda name, *_, subset=False, **__: stand_in(
            name + " (subset)" * subset, longest))

    return let


@pytest.mark.parametrize(("dataset", "pipeline", "expected"), [
    ("ntu", "authors", "default"), ("ntu", "default", "default"), ("ntu", "predict_cluster", "predict_cluster"),
    ("synthetic", "raw", "raw"),
])
def test_one_computation_has_one_pipeline(dataset, pipeline, expected, made_up_data):
    made_up_data(300)
    found, = cells("CE", dataset, preset="smoke", pipeline=pipeline)
    assert found.recipe.pipeline == expected
    assert found.label == ("CE" if expected == "default" else f"CE, pipeline={expected}")


def test_the_authors_pipeline_is_ntus_alone():
    with pytest.raises(ValueError, match="pipeline='authors' is not one of: default, interpolate, unscaled, raw"):
        cells("CE", pipeline="authors")


def test_a_part_of_ntu_says_so_and_departs_in_nothing(made_up_data):
    made_up_data(300)
    (found,), (whole,) = (cells("CE", "ntu", layers=3, subset=subset) for subset in (True, False))
    assert (found.dataset, found.label, found.preset) == ("ntu (subset)", "CE, layers=3", "paper")
    assert (whole.dataset, whole.label) == ("ntu", "CE, layers=3") and whole.key != found.key


@pytest.mark.parametrize(
    ("table", "choices", "message"),
    [
        ("taxonomy", {"objectives": "CE+XX"}, "objectives='CE\\+XX' is not one of: all, random, AE, CE, AE\\+CE"),
        ("taxonomy", {"objectives": "CE+CE"}, "objectives='CE\\+CE' is not one of"),
        ("taxonomy", {"objectives": "random+CE"}, "objectives='random\\+CE' is not one of"),
        ("taxonomy", {"objectives": "CE,"}, "objectives='' is not one of"),
        ("taxonomy", {"objectives": "ce"}, "objectives='ce' is not one of"),
        ("taxonomy", {"protocol": "xsub"}, "protocol='xsub' is not one of: xview"),
        ("taxonomy", {"variant": "frozen"}, "variant='frozen' is not one of: none, .*; did you mean 'frozen_noise'"),
        ("taxonomy", {"objectives": "random", "learning_rate": 0.5}, "learning_rate=0.5 changes nothing of random; "),
        ("encoder_collapse", {"objectives": "CE"}, "objectives='CE' is not one of: random, AE"),
        ("encoder_collapse", {"objectives": "random AE"}, "objectives='random AE' is not one of: all, random, AE"),
    ],
    ids=str,
)
def test_impossible_values_of_one_table(table, choices, message, runs):
    with pytest.raises(ValueError, match=message):
        run_table(table, "synthetic", preset="smoke", **choices)
    assert not runs.exists()


@pytest.mark.parametrize("table", ["taxonomy", "encoder_collapse"])
def test_missing_real_data_say_where_to_get_them_and_where_to_put_them(table, tmp_path, monkeypatch, runs):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError) as raised:
        run_table(table, "ucla", preset="smoke")
    message = str(raised.value)
    assert manifest.load_manifest("ucla").source in message
    assert str(tmp_path / "nothing" / "nw_ucla" / "all_sqe.zip") in message
    assert not runs.exists()
