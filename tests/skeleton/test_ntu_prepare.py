"""The preparation of NTU RGB+D: from its folder or archive to data sets and tables."""

import itertools

import numpy as np
import pytest
import torch
from ntu_distribution import FILES, prepared_folder
from ntu_files import FIRST, body, recording, text
from typer.testing import CliRunner

from repro import cli
from repro.data import manifest
from repro.skeleton import data, ntu, ntu_prepare, pipelines, study
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper, smoke
from repro.table import find


def assert_same_set(first, second):
    assert first.digest == second.digest and torch.equal(first.frames, second.frames)
    assert torch.equal(first.lengths, second.lengths) and torch.equal(first.train, second.train)


@pytest.mark.parametrize("pipeline", ["authors", "predict_cluster"])
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_prepare_and_load(distribution, packed, pipeline):
    root = distribution(packed=packed)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    prepared = ntu_prepare.prepare(root, pipeline=pipeline)
    loaded = data.load("ntu", root, pipeline=pipeline)
    names = sorted(FILES)[:2] + sorted(FILES)[3:]
    assert prepared.names.tolist() == names and not prepared.bad
    function = ntu_prepare.PIPELINES[pipeline][0]
    for index, name in enumerate(names):
        expected = function(ntu.parse(text(FILES[name]))).astype(np.float32)
        assert loaded.lengths[index] == len(expected)
        np.testing.assert_array_equal(loaded.sequences[index, : len(expected)], expected)
        assert (loaded.sequences[index, len(expected) :] == 0).all()
    assert loaded.labels.tolist() == [int(name[-3:]) - 1 for name in names]
    assert loaded.views.tolist() == [int(name[5:8]) for name in names]
    assert loaded.train.tolist() == [name[9:12] in ("001", "038") for name in names]
    assert torch.equal(loaded.test, ~loaded.train) and loaded.name == "ntu"
    assert max(max(bone) for bone in loaded.bones) == loaded.frames.shape[1] // 3 - 1
    across = data.load("ntu", root, pipeline=pipeline, protocol="xview")
    assert across.train.tolist() == [name[5:8] != "001" for name in names]
    assert across.digest != loaded.digest and torch.equal(across.frames, loaded.frames)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_folder_and_archive_give_the_same_set(distribution):
    sets = []
    for packed, root in ((False, "a"), (True, "b")):
        ntu_prepare.prepare(distribution(packed=packed, root=root))
        sets.append(data.load("ntu", manifest.project_root() / root))
    assert_same_set(*sets)
    assert_same_set(sets[0], data.load("ntu", manifest.project_root() / "a", pipeline="authors"))


def test_of_archive_and_folder_the_archive_is_read(distribution):
    distribution()
    root = distribution({name: FILES[name] for name in sorted(FILES)[:4]}, packed=True)
    assert len(ntu_prepare.prepare(root, subset=True).names) == 3


def test_what_is_prepared_is_not_read_again_unless_it_is_damaged(distribution, tmp_path):
    root = distribution()
    expected = ntu_prepare.prepare(root).digest
    frames = prepared_folder(tmp_path) / "authors.frames.npy"
    before = frames.stat().st_ino
    assert ntu_prepare.prepare(root).digest == expected and frames.stat().st_ino == before
    frames.write_bytes(frames.read_bytes()[:-8] + bytes(8))
    with pytest.raises(ValueError, match=r"authors\.jsonl or its arrays are damaged .* `repro data prepare ntu` again"):
        data.load("ntu", root)
    ntu_prepare.prepare(root)
    assert ntu_prepare.load(root, pipeline="authors", subset=False).digest == expected


def test_examples_stand_upright_one_per_action(distribution):
    root = distribution()
    ntu_prepare.prepare(root)
    chosen, bones = data.examples("ntu", root)
    assert list(chosen) == ["drink water", "brush hair", "punch", "walk apart"]
    for action, name in (("drink water", "S001C001P001R001A001"), ("punch", "S001C002P001R001A050")):
        expected = pipelines.authors(ntu.parse(text(FILES[name]))).reshape(-1, 50, 3)
        np.testing.assert_allclose(chosen[action], expected[..., [0, 2, 1]], atol=1e-6)
    assert max(joint for bone in bones for joint in bone) == 49


def test_examples_of_the_only_pipeline_that_is_prepared(distribution):
    root = distribution()
    ntu_prepare.prepare(root, pipeline="predict_cluster")
    chosen, bones = data.examples("ntu", root, pipeline="predict_cluster")
    found = chosen["drink water"]
    expected = pipelines.predict_cluster(ntu.parse(text(FILES["S001C001P001R001A001"]))).reshape(-1, 25, 3)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (found[0, 1, 2] > found[0, 0, 2]).all()  # the last coordinate runs up the spine
    assert max(joint for bone in bones for joint in bone) == 24
    with pytest.raises(FileNotFoundError, match="not prepared for pipeline 'authors'"):
        data.examples("ntu", root)


def test_what_is_prepared_anew_takes_effect_in_a_live_process(distribution, monkeypatch):
    read, load = [], data.load
    monkeypatch.setattr(study, "load", lambda *names, **options: read.append(names) or load(*names, **options))
    recipe = smoke("ntu", "CE", subset=True)
    for count in (5, 9):
        root = distribution({name: FILES[name] for name in sorted(FILES)[:count]})
        monkeypatch.setenv("REPRO_DATA", str(root))
        ntu_prepare.prepare(root, subset=True)
        assert study.data_of(recipe).digest == load("ntu", root, subset=True).digest
        assert study.data_of(recipe) is study.data_of(recipe)
    assert len(read) == 2


def test_without_preparation_the_command_is_named(distribution):
    root = distribution()
    with pytest.raises(FileNotFoundError, match="not prepared for pipeline 'authors': run `repro data prepare ntu` f"):
        data.load("ntu", root)
    ntu_prepare.prepare(root)
    with pytest.raises(FileNotFoundError, match="`repro data prepare ntu --subset --pipeline predict_cluster` first"):
        data.load("ntu", root, pipeline="predict_cluster", subset=True)


def test_what_another_format_has_prepared_is_not_read(distribution, monkeypatch):
    root = distribution()
    ntu_prepare.prepare(root)
    monkeypatch.setattr(ntu_prepare, "FORMAT", ntu_prepare.FORMAT + 1)
    with pytest.raises(FileNotFoundError, match="not prepared for pipeline 'authors'"):
        data.load("ntu", root)


def test_without_the_distribution_page_and_places_are_named(distribution, tmp_path):
    distribution()
    expected = r"nturgbd_skeletons_s001_to_s017\.zip .*nturgb\+d_skeletons.*rose1\.ntu\.edu\.sg"
    for ask in (data.load, lambda _, root: ntu_prepare.prepare(root)):
        with pytest.raises(FileNotFoundError, match=expected):
            ask("ntu", tmp_path / "nothing")


def test_an_incomplete_distribution_is_a_subset_or_an_error(distribution):
    root = distribution({name: FILES[name] for name in sorted(FILES)[:5]})
    for refused in (lambda: ntu_prepare.prepare(root), lambda: data.load("ntu", root)):
        with pytest.raises(ValueError, match=r"protocol xsub: train 4, test 1; expected train 6, .*--subset"):
            refused()
    ntu_prepare.prepare(root, subset=True)
    with pytest.raises(ValueError, match="of protocol xsub: "):
        data.load("ntu", root)
    loaded = data.load("ntu", root, subset=True)
    assert loaded.name == "ntu (subset)" and len(loaded.lengths) == 4
    assert str(refusal(loaded)) == ("batch=32 exceeds the 3 training sequences of ntu (subset); choose a smaller "
                                    "batch, such as 2")


def refusal(loaded):
    with pytest.raises(ValueError) as raised:
        Pretrainer(paper("ntu", "CE"), loaded, 0, torch.device("cpu"))
    return raised.value


def test_a_subset_without_test_recordings_is_refused(distribution):
    root = distribution({name: FILES[name] for name in sorted(FILES)[:4]})
    ntu_prepare.prepare(root, subset=True)
    with pytest.raises(ValueError, match=r"ntu \(subset\): none of its 3 recordings belongs to test"):
        data.load("ntu", root, subset=True)
    assert data.load("ntu", root, subset=True, protocol="xview").test.sum() == 1


def test_unknown_options_and_pipelines_raise(distribution):
    root = distribution()
    with pytest.raises(TypeError, match="no option pipline; its options are pipeline, protocol, subset"):
        data.load("ntu", root, pipline="raw")
    with pytest.raises(ValueError, match="pipeline='raw' is not one of: default, authors, predict_cluster"):
        data.load("ntu", root, pipeline="raw")
    with pytest.raises(ValueError, match="protocol='xset' is not one of: xsub, xview"):
        data.load("ntu", root, protocol="xset")


def test_only_ntu_may_be_a_subset():
    with pytest.raises(TypeError, match="no option subset; its options are pipeline, protocol"):
        data.load("synthetic", subset=True)


# ---------------------------------------------------------------------------------------------- tables


def invoked(*arguments):
    done = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_from_files_to_a_table(distribution, monkeypatch):
    people = itertools.product((1, 38, 3), (1, 2, 3), (1, 2))
    files = {f"S001C00{camera}P{person:03d}R00{take}A00{1 + (person + take) % 2}": recording(
        (FIRST, 0, body(12 + 3 * take + camera, seed))) for seed, (person, camera, take) in enumerate(people)}
    twice = {name.replace("R001", "R002").replace("S001", "S002"): frames for name, frames in files.items()}
    monkeypatch.setenv("REPRO_DATA", str(distribution(files | twice)))
    printed = invoked("data", "prepare", "ntu", "--subset", "--workers", "1")
    assert "differs" not in invoked("data", "list") and "fetch it again" not in invoked("data", "list")
    assert "36 recordings" in printed and "xsub: 24 train / 12 test, a subset, 5 / 4 are declared" in printed
    assert "xview: 24 train / 12 test" in printed
    chosen = ["--dataset", "ntu", "--subset", "--preset", "smoke", "--objectives", "random,CE+AD"]
    table = invoked("run", "taxonomy", *chosen)
    assert table.count("ntu") == 2
    kept, = find("taxonomy").cells("ntu", preset="smoke", objectives="CE+AD", protocol="xview", subset=True)
    assert (kept.label, kept.dataset) == ("CE+AD, protocol=xview", "ntu (subset)")
    with pytest.raises(ValueError, match="of protocol xsub: "):
        find("taxonomy").cells("ntu", preset="smoke")


def test_columns_of_the_paper_are_cells(distribution, monkeypatch):
    root = distribution()
    monkeypatch.setenv("REPRO_DATA", str(root))
    ntu_prepare.prepare(root)
    for layers, units in ((1, "auto"), (3, "auto"), (1, "1024")):
        cells = find("taxonomy").cells("ntu", layers=layers, units=units)
        assert len(cells) == 16 and {cell.preset for cell in cells} == {"paper"}
        assert {(cell.recipe.layers, cell.recipe.units, cell.recipe.protocol) for cell in cells} == {
            (layers, 512 if units == "auto" else 1024, "xsub")
        }
    with pytest.raises(FileNotFoundError, match="--pipeline predict_cluster"):
        find("taxonomy").cells("ntu", pipeline="predict_cluster")
    ntu_prepare.prepare(root, pipeline="predict_cluster")
    cell, = find("taxonomy").cells("ntu", objectives="CE", pipeline="predict_cluster")
    assert cell.label == "CE, pipeline=predict_cluster" and cell.digest != cells[0].digest
