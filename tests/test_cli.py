"""The command line: its commands, their help, recipes, and words that it does not know."""

import importlib
import inspect

import pytest
import typer
from command_line import refused
from repro.tables import TABLES

from repro import cli
from repro.audiovisual import recipe as audiovisual
from repro.audiovisual import tables as audiovisual_tables
from repro.recipe import Recipe
from repro.run.store import Cell, Store
from repro.skeleton.recipe import SkeletonRecipe


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
    assert list(rows) == [*SkeletonRecipe().to_dict(), "optimiser"]
    assert rows["units"][0] == "512" and rows["units"][1].startswith("released code, UCLA_BUTD_CON.yaml")
    assert rows["optimiser"][0].startswith("Adam(betas=(0.9,")
    assert rows["learning_rate"][0] == "0.001" and rows["learning_rate"][1].startswith("released code, UCLA_BUTD_CON")
    assert rows["td_queue"][0] == "live" and "frozen in the released code" in rows["td_queue"][1]
    assert rows["objectives"][0] == "AE+CE+AD+CD"


def test_recipe_of_another_preset_says_what_it_changes(repro):
    _, out, _ = repro("recipe", "encoder_collapse", "--dataset", "synthetic", "--preset", "smoke")
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in out.splitlines()}
    assert rows["units"] == ["16", "chosen here (default 512)"]
    assert rows["dataset"] == ["synthetic", "chosen here (default ucla)"]
    assert rows["objectives"][0] == "AE" and rows["layers"] == ["1", "paper, Table 1; varied by this table"]


@pytest.mark.parametrize(("options", "epochs"), [((), "10"), (("--subset",), "100")])
def test_the_recipe_of_a_part_is_another_one(repro, options, epochs):
    _, out, _ = repro("recipe", "image_methods", "--dataset", "cifar10", "--preset", "quick", *options)
    rows = {line.split()[0]: line.split(maxsplit=2)[1] for line in out.splitlines()}
    assert rows["epochs"] == epochs and rows["subset"] == str(bool(options))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["similarity_variance"], {"keys": "9", "strength": "4.0", "temperature": "0.2"}),
        (["positive_keys", "--dataset", "imagenet"], {"keys": "5", "strength": "4.0", "trunk": "resnet50"}),
        (["image_methods", "--dataset", "imagenet", "--method", "jcl"], {"keys": "5", "strength": "2.0"}),
        (["similarity_variance", "--method", "moco"], {"keys": "1"}),
        (["category_diversity"], {"iterations": "300"}),
        (["category_diversity", "--preset", "smoke", "--dataset", "synthetic"], {"iterations": "2"}),
    ],
)
def test_the_recipe_is_the_one_that_the_table_trains(repro, arguments, expected):
    _, out, _ = repro("recipe", *arguments)
    rows = {line.split()[0]: line.split(maxsplit=2)[1] for line in out.splitlines()}
    assert {name: rows[name] for name in expected} == expected
    assert "chosen here" not in "".join(line for line in out.splitlines() if line.split()[0] in expected)


def test_the_recipe_of_images_has_optimiser_and_views(repro):
    _, out, _ = repro("recipe", "image_methods", "--dataset", "stl10")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines())
    for name, value in {
        "optimiser": "SGD(", "query_view.scale": "(0.2, 1.0)", "query_view.jitter": "0.8", "query_view.blur": "0.5",
        "query_view.strength": "(0.4, 0.4, 0.4, 0.1)", "query_view.sigma": "(0.1, 2.0)", "key_view.flip": "0.5",
        "probe_padding": "0 ", "probe_view.flip": "0.5", "normalisation.std": "(0.2471, 0.2435, 0.2616)",
    }.items():
        assert rows[name].startswith(value), name
    assert "key_view.strength" not in out  # of a weak view, which has no colour jitter


@pytest.mark.parametrize("name", audiovisual_tables.TABLES)
def test_recipes_of_cm_acc_are_printed_with_their_sources(repro, name):
    status, out, _ = repro("recipe", name)
    assert status == 0
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in out.splitlines()}
    constants = ["optimiser", "flip", "normalisation.mean", "normalisation.std"]
    if name == "mutual_information":
        constants = ["optimiser", "affine.turn", "affine.shift"]
    assert list(rows) == [*audiovisual.AudioVisualRecipe().to_dict(), *constants]
    if name != "mutual_information":  # whose encoders are smaller
        trunk = "CM-ACC; varied by this table" if name == "transfer" else "CM-ACC"
        assert rows["video_trunk"] == ["r3d18", trunk] and rows["temperature"] == ["0.7", "CM-ACC"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
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
        (["positive_keys", "--method", "sce"], "method='sce' is not one of: jcl"),
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
