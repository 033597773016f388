"""The command line: its commands, their help, recipes, and words that it does not know."""

import importlib
import inspect

import pytest
import typer
from command_line import refused

from repro import cli
from repro.audiovisual import recipe as audiovisual
from repro.audiovisual import tables as audiovisual_tables
from repro.recipe import Recipe
from repro.run.store import Cell, Store
from repro.skeleton.recipe import SkeletonRecipe
from repro.tables import TABLES


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
        (["image_methods", "--dataset", "digits", "--subset"], "subset=True is not for digits, which is embedded and "),
        (["taxonomy", "--dataset", "synthetic", "--subset"], "subset=True is not for synthetic, which is embedded"),
        (["mutual_information", "--dataset", "multidigits", "--subset"], "subset=True is not for multidigits, which"),
        (["taxonomy", "--dataset", "nut"], "dataset='nut' is not one of: synthetic, ucla, ntu; did you mean 'ntu'?"),
    ],
)
def test_recipe_refuses(repro, arguments, message):
    errors = refused(repro("recipe", *arguments))
    assert errors.startswith("repro: ") and message in errors


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
