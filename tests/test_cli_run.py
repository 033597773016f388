"""Tables from the command line: what is trained and printed, and errors that a reader can mend."""


import pandas as pd
import pytest
from command_line import refused

from repro.run import training

SMOKE = ("run", "taxonomy", "--preset", "smoke", "--objectives", "CE,random", "--seeds", "0")


def test_run_trains_and_prints_the_table(repro, tmp_path):
    status, first, errors = repro(*SMOKE)
    assert status == 0 and errors.endswith("all runs; the numbers say nothing\n")
    title, header, *rows = first.splitlines()
    assert title == "synthetic, smoke recipe" and header.split() == ["objectives", "ours"]
    shown = dict(row.split(maxsplit=1) for row in rows)
    assert sorted(shown) == ["CE", "random"]
    status, every, _ = repro(*SMOKE, "--all", "--output", str(tmp_path / "table.csv"))
    header, *rows = every.splitlines()
    columns = header.split()
    assert columns[:9] == ["objectives", "AE", "CE", "AD", "CD", "ours", "std", "n_seeds", "printed"]
    rows = [dict(zip(columns, row.split(), strict=True)) for row in rows]
    for row in rows:
        assert row["printed"] == "-" and row["preset"] == "smoke" and row["dataset"] == "synthetic"
        assert shown[row["objectives"]] == f"{float(row['ours']):.1f} (1)"
    written = pd.read_csv(tmp_path / "table.csv")
    assert list(written) == columns and written["ours"].tolist() == pytest.approx(
        [float(row["ours"]) for row in rows], rel=1e-3)


def test_a_row_to_compare_with_is_known_before_anything_is_trained(repro, tmp_path):
    status, out, errors = repro(*SMOKE, "--against", "AE")
    assert (status, out) == (2, "") and "against='AE' is not one of: CE, random" in errors
    assert not (tmp_path / "runs" / "runs").exists()
    assert "\n\nCE over random  " in repro(*SMOKE, "--against", "random", "--all")[1]


def test_a_plan_trains_nothing_and_leaves_nothing(repro, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "train", None)
    status, out, _ = repro(*SMOKE, "--plan")
    assert status == 0
    header, *rows, total, _ = out.splitlines()
    assert header.split()[:3] == ["run", "runs", "steps"] and [row.split()[0] for row in rows] == ["CE", "random"]
    assert [row.split()[2] for row in rows] == ["2", "0"]
    assert total.startswith("0 of 2 runs are finished; left are ")
    assert not list((tmp_path / "runs").rglob("*"))


def test_an_error_of_the_disk_is_one_a_reader_can_mend(repro, tmp_path):
    (tmp_path / "runs").write_text("a file in the place of the folder")
    for command in (SMOKE, ("data", "prepare", "ntu"), ("data", "import", "cifar10", "x.npz")):
        message, = refused(repro(*command)).splitlines()  # nothing was begun
        assert message.startswith(f"repro: {tmp_path / 'runs'}, the folder of runs, cannot be written (Not a directory")
        assert message.endswith("or point REPRO_RUNS at another folder")


def test_a_traceback_is_one_option_away(repro):
    status, out, errors = repro("--debug", "run", "taxonomy", "--epochs", "x")
    assert (status, out) == (2, "") and "Traceback" in errors
    assert errors.splitlines()[-1] == "repro: epochs='x' should be a whole number"
