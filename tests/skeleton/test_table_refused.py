"""Parameters of the tables that are refused, by name and before anything is computed."""

import re

import pytest

from repro import run_table
from repro.data import manifest
from repro.table import find

pytestmark = pytest.mark.usefixtures("runs")


@pytest.mark.parametrize("table", ["taxonomy", "encoder_collapse"])
@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"dataset": "nutu"}, "dataset='nutu' is not one of: synthetic, ucla"),
        ({"dataset": "Synthetic"}, "did you mean 'synthetic'"),
        ({"preset": "papr"}, "preset='papr' is not one of: auto, paper, quick, smoke; did you mean 'paper'"),
        ({"seeds": "0;1"}, "seeds='0;1' should be a comma list of whole numbers from 0"),
        ({"seeds": "-1"}, "whole numbers from 0"),
        ({"seeds": ""}, "whole numbers from 0"),
        ({"layers": "0"}, "layers='?0'? should be a"),
        ({"layers": "one"}, "layers='one' should be a"),
        ({"device": "gpu"}, "device='gpu' is not one of: auto, cpu, cuda"),
        ({"engine": "remote"}, "engine='remote' is not one of: auto, inline, local, dask"),
        ({"workers": "0"}, "workers='0' should be a whole number of at least 1"),
    ],
    ids=str,
)
def test_impossible_values_stop_before_anything_is_computed(table, choices, message, runs):
    with pytest.raises(ValueError, match=message):
        run_table(table, **({"preset": "smoke"} | choices))
    assert not runs.exists()


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
        ("taxonomy", {"select": "first"}, "select='first' is not one of: last, best_on_test"),
        ("taxonomy", {"units": "many"}, "units='many' should be a whole number"),
        ("taxonomy", {"units": "16,8.5"}, "units='8.5' should be a whole number"),
        ("taxonomy", {"units": 0}, "units=0 should be at least 1"),
        ("taxonomy", {"units": "16,16"}, "units='16,16' names 16 twice"),
        *(("taxonomy", {"learning_rate": rate}, f"learning_rate={rate!r} should be a number")
          for rate in ("fast", True, "", "1_0")),
        *(("taxonomy", {"learning_rate": rate}, f"learning_rate={rate}.* should be (at least 0|finite)")
          for rate in ("-1", "nan", "inf")),
        ("taxonomy", {"bidirectional": "yes"}, "bidirectional='yes' should be true or false"),
        ("taxonomy", {"td_crop": "half"}, "td_crop='half' should be a whole number or none"),
        ("taxonomy", {"ad_loss": "l1,l2"}, "ad_loss='l2' is not one of: l1, squared"),
        ("taxonomy", {"objectives": "random", "learning_rate": 0.5}, "learning_rate=0.5 changes nothing of random; "),
        ("encoder_collapse", {"precision": "half"}, "precision='half' is not one of: auto, float32, bfloat16"),
        ("encoder_collapse", {"select": "first"}, "select='first' is not one of: last, best_on_test"),
        ("taxonomy", {"layers": "1,x"}, "layers='x' should be a whole number"),
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
def test_misspelt_parameters_are_errors(table, runs):
    with pytest.raises(TypeError, match=r"parameter='layer' is not one of: .*did you mean 'layers'"):
        run_table(table, "synthetic", preset="smoke", layer="1")
    with pytest.raises(TypeError, match=r"parameter='unit' is not one of: .*did you mean 'units'"):
        run_table(table, "synthetic", preset="smoke", unit="16")
    assert not runs.exists()


@pytest.mark.parametrize(("given", "message"), [
    ({"layers": "1,1"}, "layers='1,1' names 1 twice"),
    ({"objectives": "AE,random,AE"}, "objectives='AE,random,AE' names AE twice"),
    ({"seeds": "0,1,0"}, "seeds='0,1,0' names 0 twice"),
])
def test_what_is_there_twice_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        find("encoder_collapse").cells("synthetic", **given)


def test_a_method_that_is_a_number_is_refused_by_name():
    with pytest.raises(ValueError, match=r"objectives='?5'? is not one of: all, random, AE"):
        find("encoder_collapse").cells("synthetic", objectives=5)


def test_a_seed_too_large_for_torch_is_refused_before_anything_is_computed(runs):
    with pytest.raises(ValueError, match="seeds"):
        run_table("taxonomy", "synthetic", preset="smoke", objectives="random", seeds=str(10**20))
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


def test_errors_name_what_is_allowed_only_once():
    with pytest.raises(ValueError) as raised:
        find("taxonomy").cells(objectives="CE,AEE")
    assert re.search(r"objectives='AEE' is not one of: all, random, .*; did you mean 'AE'", str(raised.value))
