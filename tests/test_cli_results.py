"""Commands about finished runs: their list, figures and the claims."""

import json
import threading

import pytest

from repro import experiments, papers
from repro.audiovisual import recipe as clips
from repro.data import manifest
from repro.data.disk import acquire
from repro.papers import drawing
from repro.run.store import Run, Store, read_runs, warn_once
from repro.skeleton.recipe import PRESETS, quick

papers.tables()  # they read what data sets there are when they are imported: before the project's root is another
COST = {"cost": {"finished": "2026-01-01", "commit": "abc"}}


def finish(store, recipe, metrics, *, seed=0, preset="quick", study="skeletons", digest="d1", version=None, **changes):
    """A finished run of a recipe with these measures."""
    version = version or experiments.studies()[study].version
    folder = store.folder(Run(study, recipe, seed, preset, recipe.dataset, digest, version, changes=changes))
    with folder.claim():
        folder.finish(metrics | COST)
    return folder


def test_results_list_has_exported_runs_before_new_ones(repro, tmp_path, monkeypatch):
    (tmp_path / "data_manifests").symlink_to(manifest.shipped("data_manifests"))
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    store = Store(tmp_path / "runs")
    for seed, objective in ((1, "CE"), (0, "CE"), (1, "AE")):
        finish(store, quick("ucla", objective), {"linear": 50.0}, seed=seed)
        if objective == "CE" and seed == 0:
            repro("results", "export")
    shown = [line.split()[5:7] for line in repro("results", "list")[1].splitlines()[1:]]
    assert shown == [["ours", "0"], ["ours", "1"], ["yours", "1"]]
    mine, = repro("results", "list", "--mine", "--dataset", "ucla")[1].splitlines()[1:]
    assert mine.endswith("  AE")
    assert repro("results", "list", "--dataset", "ntu")[1] == "no run is finished on ntu; `repro run` trains some\n"
    repro("results", "export")
    assert repro("results", "list", "--mine")[1] == "no run of yours is finished; `repro run` trains some\n"
    finish(store, clips.smoke("esc50", "cmacc", batch=8), {"esc50": 7.0}, study="clips", preset="smoke", batch=8)
    mine, = repro("results", "list", "--mine")[1].splitlines()[1:]
    assert mine.split()[5:] == ["yours", "0", "esc50", "7.00", "cmacc,", "batch=8"]


def test_exporting_merges_finished_runs_and_waits_for_another_export(repro, tmp_path, monkeypatch):
    (tmp_path / "data_manifests").symlink_to(manifest.shipped("data_manifests"))
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    store, exported = Store(tmp_path / "runs"), tmp_path / "figures" / "runs.csv"
    for seed, preset in enumerate(("quick", "quick", "smoke")):
        finish(store, PRESETS[preset]("ucla", "CE"), {"linear": 50.0}, seed=seed, preset=preset)
        if seed == 0:
            assert repro("results", "export")[1].startswith(f"{exported}: 1 runs, 1 of them new; left out")
    with acquire(tmp_path / ".lock"):
        thread = threading.Thread(target=repro, args=("results", "export"))
        thread.start()
        thread.join(0.5)
        assert thread.is_alive() and len(read_runs(exported)) == 1
    thread.join(60)
    assert read_runs(exported)["seed"].tolist() == [0, 1]
    assert repro("results", "export")[1].endswith("; left out, of smoke runs: 1; in place of what was there: 0\n")
    finish(store, quick("ucla", "CE"), {"linear": 51.0}, seed=1)
    assert ", 0 of them new; left out, of smoke runs: 1; in place of what was there: 1" in repro("results", "export")[1]


@pytest.mark.parametrize(("change", "message"), [
    ({"preset": "paper"}, "preset paper with its changes has "), ({"dataset": "ntu"}, " has dataset='ntu'"),
    ({"seed": 7}, "its recipe, seed, data and version are those of "), ({"version": 9}, "1 runs of later versions"),
])
def test_a_run_that_is_not_what_its_folder_says_is_not_listed_nor_exported(
    repro, tmp_path, monkeypatch, change, message
):
    (tmp_path / "data_manifests").symlink_to(manifest.shipped("data_manifests"))
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    recipe = PRESETS["smoke"]("ucla", "CE")
    folder = finish(Store(tmp_path / "runs"), recipe, {"linear": 50.0}, preset="smoke")
    path = folder.path / "recipe.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    for command in ("list", "export"):
        warn_once.cache_clear()
        _, out, err = repro("results", command)
        assert ("no run is finished" in out or ": 0 runs, 0 of them new" in out) and message in err
        assert "version" in change or f"; {folder.path}: delete recipe.json and result.json there, " in err


def test_figures_leave_tracked_files_alone_unless_asked_and_name_what_could_not_be_drawn(repro, tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    seen = []

    def redraw(folder, names):
        seen.append((folder, [*names]))
        return [folder / "drawn"], {"odd": TypeError("text beside numbers")} if "odd" in names else {}

    monkeypatch.setattr(drawing, "redraw", redraw)
    figures = tmp_path / "figures"
    assert repro("figures", "--committed")[:2] == (0, f"{figures / 'drawn'}\n")
    assert repro("figures")[:2] == (0, f"{tmp_path / 'runs' / 'figures' / 'drawn'}\n")
    status, out, errors = repro("figures", "odd", "--output", str(tmp_path / "out"))
    assert (status, out) == (1, f"{tmp_path / 'out' / 'drawn'}\n")
    assert errors == "repro: odd could not be drawn (TypeError: text beside numbers)\n"
    assert seen == [(figures, []), (tmp_path / "runs" / "figures", []), (tmp_path / "out", ["odd"])]


def test_claims_are_a_table_within_a_hundred_columns(repro):
    def ids(*options):
        status, out, _ = repro("claims", *options)
        assert status == 0 and max(map(len, out.splitlines())) <= 100
        return [line.split()[0] for line in out.splitlines() if line[0] != " "]

    of_paper = [name for name, (title, claim) in papers.claims().items() if title == "JCL" and claim.says]
    discrepancies = papers.discrepancies().query("paper == 'JCL'")["id"]
    assert ids("--paper", "JCL") == [*of_paper, *discrepancies]
    unchecked = [name for name, (title, claim) in papers.claims().items()
                 if title == "JCL" and claim.rule == "cannot be checked"]
    assert ids("--paper", "JCL", "--verdict", "cannot be checked") == unchecked and len(unchecked) > 1
    assert ids("S15", "T-2", "S6") == ["S6", "S15", "T-2"]
