"""The command line: its commands, their help, recipes, and words that it does not know."""

import importlib.metadata
import re
import subprocess
import sys

import pytest
import typer
from command_line import refused

from repro import TABLES, cli
from repro.run import training

SLOW = {"torch", "torchvision", "pandas", "sklearn", "scipy", "matplotlib", "rich"}  # to import


def printed_recipe(out: str) -> dict[str, list[str]]:
    """Value and source of every field, without the lines that name data sets and methods."""
    return {line.split()[0]: line.split(maxsplit=2)[1:] for line in out.splitlines()[:-2]}


def commands() -> list[list[str]]:
    """Every command as the words a user types."""

    def below(command, words):
        if not hasattr(command, "commands"):
            return [words]
        return [found for name, child in command.commands.items() for found in below(child, [*words, name])]

    return below(typer.main.get_command(cli.app), [])


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_help_of_every_command_has_an_example(repro, command):
    status, out, _ = repro(*command, "--help")
    assert status == 0
    assert f"Example: repro {' '.join(command)}" in out
    assert repro(*command, "-h") == (0, out, "")


def test_help_and_version_are_printed(repro):
    assert repro("-h") == repro("--help")
    for options in (["--version"], ["--debug", "--version"], ["--version", "--debug"]):
        assert repro(*options) == (0, f"repro {importlib.metadata.version('repro')}\n", "")


@pytest.mark.parametrize("name", ["taxonomy", "image_methods", "cross_modal"])
def test_help_of_a_table_lists_its_fields_and_methods(repro, name):
    _, out, _ = repro("run", name, "--help")
    study = TABLES[name].study
    assert set(study.fields) <= {line.split()[0] for line in out.splitlines() if line}
    named, listed = out.splitlines()[-1].split(" is one of: ")
    methods = listed.split(", ")
    assert named == study.recipe.named_by
    assert out.splitlines()[-2] == f"dataset is one of: {', '.join(TABLES[name].datasets)}"
    assert printed_recipe(repro("recipe", name, f"--{named}", methods[-1])[1])[named][0] == methods[-1]


def test_what_helps_imports_nothing_slow():
    """In the same process one after the other: commands, with what none before them has imported."""
    script = f"""
import sys
from typer.testing import CliRunner
from repro import cli
for words in (["--help"], ["run", "--help"], ["data", "list"]):
    assert CliRunner().invoke(cli.app, words).exit_code == 0, words
    assert not {SLOW | {"numpy"}} & set(sys.modules), (words, {SLOW | {"numpy"}} & set(sys.modules))
for words in (["run", "taxonomy_ucla", "--help"], ["run", "transfer", "--batch", "8", "--help"], ["results", "list"]):
    assert CliRunner().invoke(cli.app, words).exit_code == 0, words
    assert not {SLOW - {"pandas"}} & set(sys.modules), (words, {SLOW - {"pandas"}} & set(sys.modules))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_recipe_names_every_value_and_its_source(repro):
    status, out, _ = repro("recipe", "taxonomy", "--objectives", "CD")
    assert status == 0 and out.splitlines()[-1].startswith("objectives is one of: random, AE, CE, AE+CE, AD, ")
    rows = printed_recipe(out)
    assert {"cd_weight", "td_queue", "sequence_dictionary", "optimiser"} <= rows.keys() and "ae_weight" not in rows
    assert rows["units"][0] == "512" and rows["units"][1].startswith("released code, UCLA_BUTD_CON.yaml")
    assert rows["td_queue"][0] == "live" and "frozen in the released code" in rows["td_queue"][1]
    assert rows["objectives"] == ["CD", "chosen here (default CE)"]


REFUSED = [  # what is typed, and what the message says
    ("recipe", "Missing argument 'name'"), ("runs", "No such command 'runs'"),
    ("run", "experiment='' is not one of: "), ("run --epochs 3 taxonomy", "'3' is no option"),
    ("run taxonomi", "repro: did you mean 'taxonomy'? experiment='taxonomi' is not one of: "),
    ("run taxonomy --objectives CE+AD,AD+CE", "objectives='CE+AD,AD+CE' names CE+AD twice; name it once"),
    ("run taxonomy --epochs 3 4", "'4' is no option; options begin with --, and a list has commas"),
    ("run taxonomy --epochs 3 --epochs=4", "--epochs is there twice; give it once"),
    ("run taxonomy --epoch 3", "repro: did you mean 'epochs'? parameter='epoch' is not one of: dataset, "),
    ("recipe taxonomy --device cpu", "parameter='device' is not one of: dataset, "),
    ("run taxonomy --device gpu", "'gpu' is not one of 'auto', 'cpu', 'cuda'"),
    ("run ohem_vs_active --batch 0", "batch=0 should be between 1 and 14316557"),
    ("run image_methods --dataset cifar10 --subset", "run `repro data import cifar10 FILE`"),
    *((f"run {table} --subset", "is bundled and whole; leave --subset out")
      for table in ("image_methods", "taxonomy", "transfer")),
    ("run taxonomy --dataset ucla", "ask for all_sqe.zip at https://"),
    ("data prepare ucf101 --pipeline authors", "ucf101 has no option --pipeline; its options are --size"),
    ("data prepare ntu --size 128", "ntu has no option --size; its options are --pipeline"),
    ("data prepare ucf101 --size 4", "size=4 should be a height of pictures from 8 to 512 pixels"),
    ("data prepare cifar10", "dataset='cifar10' is not one of: ntu, "), ("data prepare ntu --workers 0", "--workers"),
    ("figures --committed --output x", "leave one of them out"),
    *((f"run taxonomy --plan {option}", f"--plan prints costs of training, and no table; leave {named} out")
      for option, named in (("--train never", "--train never"), ("--all --output x.csv", "--all, --output"))),
    *((f"run taxonomy {option} nonsense{more}", f"'nonsense' is not one of '{known}'") for option, known, more in (
        ("--train", "missing', 'never", " --plan"), ("--train", "missing', 'never", " --help"),
        ("--engine", "auto', 'inline', 'local', 'dask", " --help"), ("--device", "auto', 'cpu', 'cuda", " --help"))),
    ("run taxonomy --learning-rate 1e-400", "learning_rate='1e-400' is so small that it would be read as 0"),
    ("data prepare ntu --workers 1000000", "'--workers': Input should be less than or equal to "),
    ("run taxonomy_ucla --train never --workers 0", "workers='0' should be a whole number of at least 1"),
    ("claims --verdict hold", "verdict='hold' is not one of: all, holds, fails, self-consistent"),
    ("claims S15 T-99", "id='T-99' is not one of: "),
    ("claims --paper jcl", "did you mean 'JCL'? paper='jcl' is not one of: all, CM-ACC, JCL, SCE, taxonomy"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_what_cannot_be_done_is_refused_before_anything_is_begun(repro, tmp_path, monkeypatch, words, message):
    monkeypatch.setattr(training, "train", None)  # nothing may be trained
    errors = refused(repro(*words.split()))
    assert message in errors and errors.startswith(("repro: ", "Usage: "))
    assert not (tmp_path / "runs" / "runs").exists()


def test_doctor_ends_with_status_1_where_something_is_wrong(repro, tmp_path):
    status, out, _ = repro("doctor")
    assert status == 0 and out.endswith("problems: 0\n")
    (tmp_path / "runs").touch()  # in the place of the folder
    status, out, _ = repro("doctor")
    assert status == 1 and "point REPRO_RUNS at another folder" in out.splitlines()[-1]


@pytest.mark.parametrize(("words", "expected"), [
    (["taxonomy"], {"dataset": "synthetic", "units": "128", "epochs": "6"}),
    (["taxonomy", "--dataset", "ntu", "--epochs", "3,4"], {"dataset": "ntu", "epochs": "3, 4", "dictionary": "16384"}),
    (["taxonomy", "--objectives", "CE"], {"objectives": "CE", "ad_weight": "-", "td_crop": "-"}),
    (["samplers_with_headroom", "--characters", "5"], {"characters": "5", "frequency": "zipf"}),
    (["taxonomy", "--variant", "uncropped"], {"td_crop": "none"}),
    (["temperature_grid", "--dataset", "cifar10"], {"key_temperature": "0.03, 0.04, ..., 0.1"}),
])
def test_help_says_what_the_command_would_take(repro, words, expected):
    status, out, _ = repro("run", *words, "--help")
    assert status == 0
    rows = dict(row for line in out.splitlines() if len(row := re.split("  +", line)) == 2)
    assert rows["field"] == "this command" and {name: rows[name] for name in expected} == expected
