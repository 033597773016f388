import html
import importlib
import inspect
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import typer

from repro import cli, manifest
from repro.audiovisual import recipe as audiovisual
from repro.audiovisual import tables as audiovisual_tables
from repro.image import tables as image_tables
from repro.recipe import Recipe
from repro.report import claims, glm_figures, glm_ours, redraw
from repro.run.export import MixedSeeds
from repro.run.store import Cell, Store
from repro.skeleton import tables
from repro.skeleton.recipe import SkeletonRecipe, paper
from repro.tables import TABLES


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """No data, no runs."""
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "200")  # so that help is not wrapped
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture
def repro(monkeypatch, capsys):
    """Runs the command line in this process; returns its status, output and errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["repro", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return (ended.value.code or 0, *capsys.readouterr())

    return call


def refused(ended: tuple[int, str, str]) -> str:
    """The message of a command that ended with an error a reader can mend."""
    status, out, errors = ended
    assert status == 2 and out == ""
    assert "Traceback" not in errors
    return errors


def commands() -> list[list[str]]:
    """Every command as the words a user types."""

    def below(command, words):
        if not hasattr(command, "commands"):
            return [words]
        return [found for name, child in command.commands.items() for found in below(child, [*words, name])]

    return below(typer.main.get_command(cli.app), [])


def test_processes_that_import_the_main_module_again_run_nothing():
    importlib.import_module("repro.__main__")


def test_the_commands_there_are():
    assert {("run",), ("recipe",), ("data", "list"), ("results", "list")} <= set(map(tuple, commands()))


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_help_of_every_command_has_an_example(repro, command):
    status, out, _ = repro(*command, "--help")
    assert status == 0
    assert f"Example: repro {' '.join(command)}" in out


def test_help_names_the_methods_of_every_table(repro):
    listed = dict(part.split(": ") for part in cli.METHODS.removeprefix("a list; ").split("; "))
    methods = {table: names.removesuffix(" too").split(",") for table, names in listed.items()}
    for table in ("mutual_information", "transfer"):
        methods[table] += methods["dictionary_size"]
    for table, names in methods.items():
        message = refused(repro("run", table, "--methods", "none", "--preset", "smoke"))
        assert set(message.split("is not one of: ")[1].strip().split(", ")) == set(names), table
    assert len(methods) == sum("methods" in inspect.signature(each.cells).parameters for each in TABLES.values())


@pytest.mark.parametrize("words", [[], ["--help"], ["data", "--help"], ["results", "--help"]])
def test_help_of_groups_lists_their_commands(repro, words):
    _, out, errors = repro(*words)
    group = [word for word in words if word != "--help"]
    for command in commands():
        if command[: len(group)] == group:
            assert command[len(group)] in out + errors


def test_data_list_without_data(repro, tmp_path):
    status, out, _ = repro("data", "list")
    assert status == 0
    lines = out.splitlines()
    states = {line.split()[0]: line.split()[1] for line in lines if not line.startswith(" ")}
    assert sorted(states) == manifest.names()
    assert states["synthetic"] == "embedded" and states["ucla"] == "missing"
    path = tmp_path / "data" / "nw_ucla" / "all_sqe.zip"
    below = [line.strip() for line in lines[lines.index(next(line for line in lines if line.startswith("ucla"))) + 1 :]]
    assert below[0] == str(path)
    assert below[1].startswith("ask for all_sqe.zip at https://") and str(path.parent) in below[1]
    assert not (tmp_path / "data").exists() and not (tmp_path / "runs").exists()


@pytest.mark.parametrize("unpacked", [False, True])
def test_data_list_with_data(repro, tmp_path, unpacked):
    path = tmp_path / "data" / "nw_ucla" / "all_sqe.zip"
    path.parent.mkdir(parents=True)
    path.with_suffix("").mkdir() if unpacked else path.touch()
    status, out, _ = repro("data", "list")
    assert status == 0
    assert next(line.split()[1] for line in out.splitlines() if line.startswith("ucla")) == "differs"
    assert ("all_sqe is empty; fetch it again" if unpacked else "all_sqe.zip is truncated or damaged") in out


def test_one_copy_of_a_data_set_at_a_time(repro, tmp_path):
    images = np.zeros((2, 32, 32, 3), dtype=np.uint8)
    for name in ("first.npz", "second.npz"):
        np.savez(tmp_path / name, x_train=images, y_train=[0, 1], x_test=images, y_test=[0, 9])
    status, out, _ = repro("data", "import", "cifar10", str(tmp_path / "first.npz"))
    assert status == 0 and out.splitlines() == [
        "cifar10 (first.npz): 4 images of 32 x 32, 10 classes; 2 for pretrain, 2 for train, 2 for test"
    ]
    _, out, _ = repro("data", "import", "cifar10", str(tmp_path / "second.npz"))
    assert out.splitlines()[0].startswith("cifar10 (second.npz): ")
    assert out.splitlines()[1:] == ["replaces cifar10 (first.npz)"]
    assert (tmp_path / "first.npz").exists()
    assert "One copy of a data set is kept at a time" in " ".join(repro("data", "import", "--help")[1].split())
    _, out, _ = repro("data", "list")
    told = [line.strip() for line in out.splitlines() if "has been taken in" in line]
    assert told == ["second.npz has been taken in; --subset takes it"]
    message = refused(repro("run", "image_methods", "--dataset", "cifar10"))
    assert "repro data download cifar10" in message
    assert message.endswith("; or pass --subset (subset=True) for the copy second.npz\n")


def test_recipe_names_every_value_and_its_source(repro):
    status, out, told = repro("recipe", "taxonomy")
    assert status == 0 and told.startswith("--method shows another one of: random, AE, CE, AE+CE, AD, ")
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in out.splitlines()}
    assert list(rows) == list(SkeletonRecipe().to_dict())
    assert rows["units"] == ["512", "paper, Table 1"]
    assert rows["learning_rate"] == ["0.001", "released code, UCLA_BUTD_CON.yaml"]
    assert rows["td_queue"][0] == "live" and "frozen in the released code" in rows["td_queue"][1]
    assert rows["objectives"][0] == "AE+CE+AD+CD"


def test_recipe_of_another_preset_says_what_it_changes(repro):
    _, out, _ = repro("recipe", "encoder_collapse", "--dataset", "synthetic", "--preset", "smoke")
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in out.splitlines()}
    assert rows["units"] == ["16", "chosen here (default 512)"]
    assert rows["dataset"] == ["synthetic", "chosen here (default ucla)"]
    assert rows["objectives"][0] == "AE" and rows["layers"] == ["1", "paper, Table 1"]


@pytest.mark.parametrize(("options", "epochs"), [((), "10"), (("--subset",), "100")])
def test_the_recipe_of_a_part_is_another_one(repro, options, epochs):
    _, out, _ = repro("recipe", "image_methods", "--dataset", "cifar10", "--preset", "quick", *options)
    rows = {line.split()[0]: line.split(maxsplit=2)[1] for line in out.splitlines()}
    assert rows["epochs"] == epochs and rows["subset"] == str(bool(options))


@pytest.mark.parametrize("name", audiovisual_tables.TABLES)
def test_recipes_of_cm_acc_are_printed_with_their_sources(repro, name):
    status, out, _ = repro("recipe", name)
    assert status == 0
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in out.splitlines()}
    assert list(rows) == list(audiovisual.AudioVisualRecipe().to_dict())
    if name != "mutual_information":  # whose encoders are smaller
        assert rows["video_trunk"] == ["r3d18", "CM-ACC"] and rows["temperature"] == ["0.7", "CM-ACC"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["taxonomi"], "table='taxonomi' is not one of: taxonomy, encoder_collapse, image_methods, "),
        (["taxonomy", "--dataset", "ulca"], "dataset='ulca' is not one of: synthetic, ucla, ntu; did you mean 'ucla'?"),
        (["taxonomy", "--preset", "fast"], "preset='fast' is not one of: auto, paper, quick, smoke"),
        (["taxonomy", "--device", "gpu"], "device='gpu' is not one of: auto, cpu, cuda"),
        (["taxonomy", "--engine", "locale"], "engine='locale' is not one of: auto, inline, local, dask; did"),
        (["taxonomy", "--workers", "0"], "workers='0' should be a whole number of at least 1"),
        (["taxonomy", "--seeds", "[0,1]"], "seeds='[0,1]' should be a comma list of whole numbers from 0"),
        (["taxonomy", "--seeds", ""], "seeds='' should be a comma list of whole numbers from 0"),
        (["taxonomy", "--seeds", "0,0"], "seeds='0,0' names 0 twice; name it once"),
        (["taxonomy", "--objectives", "CE+AD,AD+CE"], "objectives='CE+AD,AD+CE' names CE+AD twice; name it once"),
        (["image_methods", "--methods", "moco,moco"], "methods='moco,moco' names moco twice; name it once"),
        (["temperature_grid", "--temperatures", "0.1,0.10"], "temperatures='0.1,0.10' names 0.1 twice; name it once"),
        (["ohem_vs_active", "--samplers", "ohem,ohem"], "samplers='ohem,ohem' names ohem twice; name it once"),
        (["transfer", "--split", "1,1"], "split='1,1' names 1 twice; name it once"),
        (["taxonomy", "--objectives", "CE+DA"], "objectives='CE+DA' is not one of: all, random, AE, CE,"),
        (["taxonomy", "--objectives", "CE,"], "objectives='' is not one of: "),
        (["taxonomy", "--objectives", "CE+CE"], "objectives='CE+CE' is not one of: "),
        (["taxonomy", "--protocol", "xsub"], "protocol='xsub' is not one of: auto, xview"),
        (["taxonomy", "--layers", "1,2"], "layers='1,2' should be a whole number of at least 1"),
        (["taxonomy", "--units", "0"], "units='0' should be a whole number of at least 1"),
        (["taxonomy", "--learning-rate", "0"], "learning_rate='0' should be auto or a positive number, such as 0.003"),
        (["taxonomy", "--variant", "mlp"], "variant='mlp' is not one of: none, "),
        (["taxonomy", "--select", "best"], "select='best' is not one of: last, best_on_test"),
        (["encoder_collapse", "--layers", "0,1"], "layers='0,1' should be a comma list of whole numbers from 1"),
        (["encoder_collapse", "--methods", "random,CE"], "methods='CE' is not one of: random, AE"),
        (["taxonomy", "--methods", "AE"], "taxonomy has no option --methods; its options are "),
        (["encoder_collapse", "--objectives", "AE"], "encoder_collapse has no option --objectives; its options are "),
        (["encoder_collapse", "--variant", "mlp_head"], "encoder_collapse has no option --variant; its options are "),
        (["image_methods", "--methods", "moco,simclr"], "methods='simclr' is not one of: random, supervised, moco, "),
        (["image_methods", "--variant", "four_key"], "variant='four_key' is not one of: none, swapped_views, "),
        (["image_methods", "--variant", "four_keys", "--methods", "sce"], "variant='four_keys' changes nothing in the"),
        (["taxonomy", "--variant", "sum_of_squares", "--objectives", "CE"], "changes nothing in the training of CE; "),
        (["image_methods", "--dataset", "cifar10", "--subset"], "run `repro data import cifar10 FILE`"),
        (["image_methods", "--keys", "5"], "image_methods has no option --keys; its options are --dataset, --preset,"),
        (["image_methods", "--keys", "5"], "; positive_keys has it"),
        (["temperature_grid", "--temperatures", "0"], "temperatures='0' should be a comma list of numbers from 1e-06"),
        (["temperature_grid", "--key-temperatures", "0.1,"], "key_temperatures='0.1,' should be a comma list"),
        (["temperature_grid", "--temperatures", "nan"], "temperatures='nan' should be a comma list of numbers"),
        (["positive_keys", "--keys", "0"], "keys='0' should be a comma list of whole numbers from 1"),
        (["positive_keys", "--strengths", "-1"], "strengths='-1' should be a comma list of numbers from 0"),
        (["cross_modal", "--approaches", "moco"], "approaches='moco' is not one of: scratch, supervised, "),
        (["cross_modal", "--methods", "smoco"], "cross_modal has no option --methods; its options are --dataset,"),
        (["ohem_vs_active", "--samplers", "hard"], "samplers='hard' is not one of: gradient, feature, random, ohem"),
        (["ohem_vs_active", "--batches", "0"], "batches='0' should be a comma list of whole numbers from 1"),
        (["dictionary_size", "--dictionaries", "1.5"], "dictionaries='1.5' should be a comma list of whole numbers"),
        (["dictionary_size", "--seeds", "x"], "seeds='x' should be a comma list of whole numbers from 0"),
        (["mutual_information", "--characters", "10"], "characters=10 should be between 1 and 9"),
        (["mutual_information", "--dataset", "digits"], "dataset='digits' is not one of: multidigits, multiomniglot"),
        (["transfer", "--trunks", "r3d"], "trunks='r3d' is not one of: r3d18, r2plus1d18"),
        (["transfer", "--targets", "ucf"], "targets='ucf' is not one of: ucf101, hmdb51, esc50, "),
        (["transfer", "--split", "one"], "split='one' should be a whole number of at least 0"),
        (["category_diversity", "--iterations", "0"], "iterations='0' should be a whole number of at least 1"),
        (["category_diversity", "--variant", "unit"], "variant='unit' is not one of: none, unit_length, "),
        (["transfer", "--dataset", "kinetics700"], "kinetics700"),
        (["taxonomy", "--dataset", "ucla"], "ask for all_sqe.zip at https://"),
    ],
)
def test_run_refuses(repro, tmp_path, monkeypatch, arguments, message):
    for module in (tables, image_tables, audiovisual_tables):
        monkeypatch.setattr(module, "train", None)  # nothing may be trained
    errors = refused(repro("run", *arguments))
    assert errors.startswith("repro: ") and message in errors
    assert not (tmp_path / "runs" / arguments[0]).exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["run", "taxonomy", "--presets", "smoke"], "--presets"), (["run", "taxonomy", "CE"], "CE"),
        (["run"], "table"), (["runs"], "runs"), (["data", "lists"], "lists"),
    ],
)
def test_misspelt_words_are_refused(repro, tmp_path, arguments, word):
    errors = refused(repro(*arguments))
    assert errors.startswith("Usage: ") and word in errors.partition("Error")[2]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["taxonom"], "category_diversity; did you mean 'taxonomy'?"),
        (["transfer", "--method", "moco"], "method='moco' is not one of: scratch, supervised, smoco, xmoco, cmacc"),
        (["taxonomy", "--preset", "auto"], "preset='auto' is not one of: paper, quick, smoke"),
        (["temperature_grid", "--dataset", "cifar"], "dataset='cifar' is not one of: digits, cifar10, "),
        (["image_methods", "--method", "simclr"], "method='simclr' is not one of: random, supervised, moco, "),
        (["taxonomy", "--dataset", "nut"], "dataset='nut' is not one of: synthetic, ucla, ntu; did you mean 'ntu'?"),
    ],
)
def test_recipe_refuses(repro, arguments, message):
    errors = refused(repro("recipe", *arguments))
    assert errors.startswith("repro: ") and message in errors


SMOKE = ("run", "taxonomy", "--preset", "smoke", "--objectives", "CE,random", "--seeds", "0")


def test_run_trains_once_and_prints_the_table(repro, tmp_path, monkeypatch):
    status, first, _ = repro(*SMOKE)
    assert status == 0
    header, *rows = first.splitlines()
    columns = header.split()
    assert columns[:9] == ["objectives", "AE", "CE", "AD", "CD", "ours", "std", "n_seeds", "published"]
    table = [dict(zip(columns, row.split(), strict=True)) for row in rows]
    assert sorted(row["objectives"] for row in table) == ["CE", "random"]
    for row in table:
        assert 0 <= float(row["ours"]) <= 100 and row["published"] == "-" and row["n_seeds"] == "1"
        assert row["preset"] == "smoke" and row["dataset"] == "synthetic"
    results = sorted((tmp_path / "runs" / "taxonomy").glob("*/result.json"))
    assert len(results) == 2
    written = [(path.stat().st_mtime_ns, path.read_bytes()) for path in results]

    def train(run, progress, **options):
        raise AssertionError(f"{run.cell.entry} was trained again")

    monkeypatch.setattr(tables, "train", train)
    began = time.monotonic()
    assert repro(*SMOKE)[:2] == (0, first)
    assert time.monotonic() - began < 10  # the data are in this process already
    assert [(path.stat().st_mtime_ns, path.read_bytes()) for path in results] == written

    status, out, _ = repro("results", "list")
    assert status == 0
    listed = [(words[-1], float(words[-2])) for words in map(str.split, out.splitlines()) if "smoke" in words]
    assert sorted(listed) == sorted((row["objectives"], float(row["ours"])) for row in table)


@pytest.mark.parametrize("engine", ["inline", "auto"])
def test_a_plan_trains_nothing_and_leaves_nothing(repro, tmp_path, monkeypatch, engine):
    monkeypatch.setattr(tables, "train", None)
    status, out, _ = repro(*SMOKE, "--plan", "--engine", engine)
    assert status == 0
    header, *rows, total, _ = out.splitlines()
    assert header.split()[:3] == ["entry", "cells", "steps"] and [row.split()[0] for row in rows] == ["CE", "random"]
    assert [row.split()[2] for row in rows] == ["2", "0"]
    assert total.startswith("0 of 2 cells are finished; left are ") and "with one process about " in total
    assert not list((tmp_path / "runs").rglob("*"))


def test_results_list_of_cells_without_a_linear_probe(repro, tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)  # without exported ones
    measures = {
        "cross_modal": {"synthetic_video": 51.25, "synthetic_audio": 60.0, "categories_video": 20.0},
        "mutual_information": {"linear": 99.5, "linear_held_out": 80.0},
        "category_diversity": {"categories_video": 22.5, "categories_audio": 21.0, "expected": 27.5},
    }
    for table, metrics in measures.items():
        targets = {"targets": ""} if table == "category_diversity" else {}
        recipe = audiovisual.quick("multidigits" if "linear" in metrics else "synthetic", "cmacc", **targets)
        run = Store(tmp_path / "runs").run(Cell(table, "cmacc", recipe, 0, "quick", recipe.dataset, "d1", 1))
        with run.claim():
            run.finish(metrics | {"cost": {"finished": "2026-01-01", "commit": "abc"}})
    status, out, _ = repro("results", "list")
    assert status == 0
    shown = {line.split()[1]: line.split()[-3:-1] for line in out.splitlines() if "cmacc" in line}
    assert shown == {"cross_modal": ["synthetic_video", "51.25"], "mutual_information": ["linear", "99.50"],
                     "category_diversity": ["categories_video", "22.50"]}


def test_results_list_of_no_runs(repro):
    assert repro("results", "list")[0] == 0


def test_figures_come_from_the_logs_in_the_store_and_otherwise_from_the_exported_ones(repro, tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    cell = Cell("taxonomy", "CD", paper("ucla", "CD", epochs=1), 0, "paper", "ucla", "d1", 1)
    run = Store(tmp_path / "runs").run(cell)
    with run.claim():
        (run.folder / "progress.jsonl").write_text('{"step": 1, "CD": 6.25}\n')
        run.finish({"linear": 50.0, "cost": {"finished": "2026-01-01", "commit": "abc"}})
    monkeypatch.setattr(redraw, "redraw", lambda cells, folder: [folder / "drawn"])
    monkeypatch.setattr(glm_figures, "redraw", lambda cells, folder: [])
    log = tmp_path / "figures" / "sequence_contrast_ucla.csv"
    assert repro("figures")[:2] == (0, f"{log}\n{log.with_name('drawn')}\n")
    assert f",CD,{cell.key},0,ucla,paper" in log.read_text()
    before = log.read_bytes()
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "none"))
    assert repro("figures")[:2] == (0, f"{log.with_name('drawn')}\n")
    assert log.read_bytes() == before


@pytest.mark.parametrize("arguments", [[], ["--output", "site"]])
def test_report_prints_where_it_starts(repro, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    status, out, _ = repro("report", *arguments)
    first = tmp_path / (arguments[-1] if arguments else "runs/report") / "index.html"
    assert (status, out) == (0, f"{first}\n")
    text = first.read_text()
    assert "Which numbers can I trust?" in text and str(tmp_path / "runs" / "notebooks") in text
    page = first.with_name("discrepancies.html").read_text()
    assert all(f'id="{each.id}"' in page for each in claims.DISCREPANCIES)
    page = html.unescape(first.with_name("claims.html").read_text())
    assert all(f">{each.predicate}</td>" in page for each in claims.CLAIMS)


def test_a_damaged_result_is_an_error_a_reader_can_mend(repro, tmp_path):
    run = Store(tmp_path / "runs").run(Cell("taxonomy", "CE", Recipe(), 0, "quick", "synthetic", "d1", 1))
    with run.claim():
        run.finish({"linear": 50.0, "cost": {"finished": "2026-01-01", "commit": "abc"}})
    (run.folder / "result.json").write_text("{")
    errors = refused(repro("results", "list"))
    assert f"repro: {run.folder / 'result.json'} cannot be read" in errors and "repro doctor --repair" in errors


def test_doctor_ends_with_status_1_until_it_has_mended(repro, tmp_path):
    status, out, _ = repro("doctor")
    assert status == 0 and out.endswith("problems: 0\n")
    run = Store(tmp_path / "runs").run(Cell("taxonomy", "CE", Recipe(), 0, "quick", "synthetic", "d1", 1))
    with run.claim():
        run.finish({"linear": 50.0, "cost": {}})
    (run.folder / "result.json").write_text("{")
    status, out, _ = repro("doctor")
    assert status == 1 and "--repair would: " in out and (run.folder / "result.json").exists()
    assert repro("doctor", "--repair")[0] == 0 and repro("doctor")[0] == 0


def test_an_error_of_the_disk_is_one_a_reader_can_mend(repro, tmp_path):
    (tmp_path / "runs").write_text("a file in the place of the folder")
    for command in (SMOKE, ("data", "prepare", "ntu"), ("data", "import", "cifar10", "x.npz"), ("results", "evaluate")):
        message, = refused(repro(*command)).splitlines()  # nothing was begun
        assert message.startswith(f"repro: {tmp_path / 'runs'}, the folder of runs, cannot be written (Not a directory")
        assert message.endswith("or point REPRO_RUNS at another folder")


@pytest.mark.parametrize(("error", "what"), [
    (MemoryError(), "out of memory"), (MemoryError("cannot allocate 3 GiB"), "out of memory (cannot allocate 3 GiB)"),
])
def test_memory_that_is_not_there_is_told_in_a_line(repro, monkeypatch, error, what):
    def status():
        raise error

    monkeypatch.setattr(cli.present, "status", status)
    assert repro("data", "list") == (1, "", f"repro: {what}; end other programs, or go on where there is more memory\n")


def test_a_real_process_ends_with_status_2_and_no_traceback(tmp_path):
    environment = os.environ | {"REPRO_DATA": str(tmp_path), "REPRO_RUNS": str(tmp_path)}
    command = [sys.executable, "-m", "repro", "run", "taxonomy", "--preset", "smok"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=manifest.project_root())
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "repro: preset='smok' is not one of: auto, paper, quick, smoke; did you mean 'smoke'?\n"


@pytest.mark.parametrize(("arguments", "message"), [
    (["ucf101", "--pipeline", "authors"], "ucf101 has no option --pipeline; its options are --size"),
    (["ntu", "--size", "128"], "ntu has no option --size; its options are --pipeline"),
    (["ucf101", "--size", "4"], "size='4' should be a whole number of at least 8"),
    (["ucf1O1"], "did you mean 'ucf101'"),
    (["hmdb51"], "hmdb51"),
])
def test_preparing_refuses(repro, arguments, message):
    assert message in refused(repro("data", "prepare", *arguments))


@pytest.fixture
def one_cell_of_other_data(tmp_path):
    """A finished cell beside the exported ones of its entry, whose data it has not."""
    recipe = paper("ucla", "CE")
    run = Store(tmp_path / "runs").run(Cell("taxonomy", "CE", recipe, 7, "paper", "ucla", "other data", 1))
    with run.claim():
        run.finish({"linear": 12.0, "cost": {"finished": "2026-01-01", "commit": "abc"}})
    return run.cell.key


def test_a_cell_of_other_data_costs_claims_its_table_alone(repro, one_cell_of_other_data):
    status, out, errors = repro("claims")
    verdicts = {line.split()[0]: line[6:24].strip() for line in out.splitlines()}
    assert status == 0 and (verdicts["T10"], verdicts["T12"], verdicts["T1"]) == ("not run", "holds", "fails")
    line, = errors.splitlines()
    assert line.startswith("repro: left out of the evidence: taxonomy on ucla, paper recipe: seeds 0, 1, 2, 7 of 'CE'")
    assert one_cell_of_other_data in line and "run all seeds again, or delete the others" in line


def test_a_cell_of_other_data_does_not_stop_the_report(repro, one_cell_of_other_data):
    status, out, errors = repro("report")
    assert status == 0 and out.endswith("index.html\n") and one_cell_of_other_data in errors


def test_a_table_with_a_cell_of_other_data_is_refused(one_cell_of_other_data):
    with pytest.raises(MixedSeeds, match=one_cell_of_other_data):
        glm_ours.our_results("ucla")


def test_claims_of_one_paper(repro):
    status, out, _ = repro("claims", "--paper", "JCL")
    ids = [line.split()[0] for line in out.splitlines()]
    assert status == 0
    assert ids == [each.id for each in (*claims.CLAIMS, *claims.DISCREPANCIES) if each.paper == "JCL"]
    assert "paper='jcl' is not one of: all, taxonomy, CM-ACC, SCE, JCL" in refused(repro("claims", "--paper", "jcl"))


def test_claims_have_a_line_each_that_is_broken_on_a_terminal_alone(repro, monkeypatch):
    status, out, _ = repro("claims")
    ids = [each.id for each in (*claims.CLAIMS, *claims.DISCREPANCIES)]
    assert status == 0 and [line.split()[0] for line in out.splitlines()] == ids
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _, out, _ = repro("claims")
    assert max(map(len, out.splitlines())) <= 100
    assert [line.split()[0] for line in out.splitlines() if line[0] != " "] == ids
