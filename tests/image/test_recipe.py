"""Recipes against the printed tables and the values of the released codes, typed here by hand."""

import dataclasses
import itertools
import json

import pytest

from repro.image import DATASETS, views
from repro.image.augment import CentredView, ShiftedView
from repro.image.recipe import DATA, METHODS, PRESETS, VARIANTS, ImageRecipe, paper, quick, smoke
from repro.recipe import setting
from repro.report.printed import as_printed

SMALL, MEDIUM, ABLATION = ("cifar10", "cifar100"), ("stl10", "tiny_imagenet"), ("imagenet100", "imagenet")
SIZES = {"digits": 8, "cifar10": 32, "cifar100": 32, "stl10": 96, "tiny_imagenet": 64, "imagenet100": 224,
         "imagenet": 224}
PRINTED_NAMES = {"CIFAR10": "cifar10", "CIFAR100": "cifar100", "STL10": "stl10", "Tiny-IN": "tiny_imagenet"}
CONTRASTS = ("moco", "ressl", "sce", "jcl", "vanilla")


def printed_of_sce(column):
    """A column of SCE's table of hyper-parameters, by key."""
    return as_printed("sce_hyperparameters").set_index("key")[column].to_dict()


def printed_of_jcl(experiment):
    """The hyper-parameters of one of JCL's experiments, by key."""
    table = as_printed("jcl_hyperparameters")
    return table[table["experiment"] == experiment].set_index("key")["value"].to_dict()


def differing(recipe, expected):
    """The fields that are not as expected: (found, expected)."""
    values = recipe.to_dict()
    return {name: (values[name], value) for name, value in expected.items() if values[name] != value}


# ---------------------------------------------------------------------------------------------- SCE


@pytest.mark.parametrize(
    ("column", "datasets"), [("small_CIFAR10_CIFAR100", SMALL), ("medium_STL10_TinyIN", MEDIUM)]
)
def test_sce_has_the_printed_values(column, datasets):
    printed = printed_of_sce(column)
    assert printed["encoder"] == "ResNet-18 (3x3 s1 stem, no maxpool)"
    assert printed["optimizer"] == "SGD"
    assert printed["schedule"] == "cosine no restart" and printed["lr_rule"] == "lr*batch/256"
    hidden, projection = printed["projector"].replace("(BN,ReLU)", "").split("-")[1:]
    assert hidden == "512"
    batch = int(printed["batch"].removesuffix(" (2 GPUs)"))
    expected = {
        "trunk": "resnet18", "small": True, "head": "sce", "projection": int(projection),
        "epochs": int(printed["epochs"]), "batch": batch, "dictionary": int(printed["buffer"]),
        "sgd_momentum": float(printed["sgd_momentum"]), "weight_decay": float(printed["weight_decay"]),
        "warmup": int(printed["warmup_epochs"]), "learning_rate": float(printed["initial_lr"]) * batch / 256,
        "momentum": float(printed["ema_m"]),
    }
    for dataset in datasets:
        assert differing(paper(dataset, "sce"), expected) == {}


def test_sce_has_its_best_temperatures():
    best = as_printed("sce_best_temperature")
    assert len(best) == 4
    for row in best.itertuples():
        recipe = paper(PRINTED_NAMES[row.dataset], "sce")
        assert (recipe.temperature, recipe.key_temperature) == (float(row.tau), float(row.tau_m))


def test_the_best_temperatures_are_those_of_the_grid():
    grid = as_printed("sce_temperature")
    for name, dataset in PRINTED_NAMES.items():
        rows = grid[grid["dataset"] == name].drop(columns="dataset").set_index("tau").astype(float)
        temperature, column = rows.stack().idxmax()
        recipe = paper(dataset, "sce")
        assert (recipe.temperature, recipe.key_temperature) == (float(temperature), float(column[len("tau_m_") :]))


@pytest.mark.parametrize("dataset", ["digits", *ABLATION])
def test_without_a_printed_best_sce_has_the_temperatures_of_the_released_code(dataset):
    assert differing(paper(dataset, "sce"), {"temperature": 0.1, "key_temperature": 0.05}) == {}


# Released code, resnet18_cifar10.yaml, and the supplement's text, for what its table does not print.
SCE_ELSEWHERE = {
    "weight": 0.5, "masked_positive": True, "keys": 1, "query_view": "strong", "key_view": "weak", "schedule": "step",
    "groups": 1, "probe_view": "shifted", "probe_epochs": 100, "probe_batch": 256, "probe_learning_rate": 30.0,
    "probe_momentum": 0.9, "select": "last", "subset": False,
}


@pytest.mark.parametrize("dataset", SMALL + MEDIUM)
def test_what_sce_does_not_print_is_that_of_its_text_and_code(dataset):
    size = SIZES[dataset]
    assert differing(paper(dataset, "sce"), SCE_ELSEWHERE | {"size": size, "resize": size}) == {}


@pytest.mark.parametrize(("datasets", "padding"), [(("digits", *SMALL), 4), (MEDIUM, 0)])
@pytest.mark.parametrize("method", METHODS)
def test_the_probe_pads_small_images_alone(datasets, padding, method):
    """SCE supplement, section D."""
    for dataset in datasets:
        recipe = paper(dataset, method)
        assert differing(recipe, {"probe_view": "shifted", "probe_padding": padding, "square": False}) == {}
        assert views.probe_view(recipe) == ShiftedView(views.normalisation(dataset), padding)


@pytest.mark.parametrize("dataset", ABLATION)
def test_imagenet_is_validated_on_images_of_256_by_256(dataset):
    """SCE supplement, section D."""
    of_imagenet = views.normalisation("imagenet")
    assert views.centred_view(paper(dataset, "jcl")) == CentredView(224, of_imagenet, resize=256, square=True)


@pytest.mark.parametrize("dataset", ABLATION)
def test_what_jcl_does_not_print_says_so(dataset):
    sources = {name: source for name, _, source in paper(dataset, "jcl").described()}
    for name in ("head", "projection", "size", "resize", "probe_view"):
        assert "released code" in sources[name] and "JCL supplement" not in sources[name], name
    assert ("released code" in sources["trunk"]) == (dataset == "imagenet")


# ---------------------------------------------------------------------------------------------- JCL


def test_jcl_has_the_printed_values_of_its_ablation():
    printed, probe = printed_of_jcl("ablation"), printed_of_jcl("ablation_linear")
    common = printed_of_jcl("imagenet1k_pretrain")
    assert (printed["backbone"], printed["schedule"]) == ("ResNet-18", "cosine")
    assert (probe["lr_drop_epochs"], probe["lr_drop_factor"], common["optimizer"]) == ("60;80", "0.1", "SGD")
    expected = {
        "trunk": "resnet18", "small": False, "head": "moco_v2", "projection": 128,
        "epochs": int(printed["epochs"]), "batch": int(printed["batch"]), "learning_rate": float(printed["lr"]),
        "dictionary": int(common["queue_size"]), "momentum": float(common["momentum_encoder_m"]),
        "sgd_momentum": float(common["sgd_momentum"]), "weight_decay": float(common["weight_decay"]),
        "probe_epochs": int(probe["epochs"]), "probe_batch": int(probe["batch"]),
        "probe_learning_rate": float(probe["lr"]),
    }
    assert differing(paper("imagenet100", "jcl"), expected) == {}


def test_the_ablations_of_jcl_leave_two_of_three_at_the_recipes_values():
    recipe = paper("imagenet100", "jcl")
    own = {"M_prime": recipe.keys, "lambda": recipe.strength, "tau": recipe.temperature}
    table = as_printed("jcl_ablation_settings").set_index("figure")
    assert len(table) == 3
    for row in table.to_dict("records"):
        varied = [name for name, value in row.items() if value == "varied"]
        assert len(varied) == 1
        assert {name: float(value) for name, value in row.items() if name not in varied} == {
            name: value for name, value in own.items() if name not in varied
        }


def test_jcl_on_imagenet_has_the_values_of_the_released_script():
    common = printed_of_jcl("imagenet1k_pretrain")
    expected = {
        "trunk": "resnet50", "epochs": 200, "batch": int(common["dequeue_per_step"]), "learning_rate": 0.03,
        "strength": 2.0, "keys": 5, "temperature": 0.2, "dictionary": int(common["queue_size"]),
        "momentum": float(common["momentum_encoder_m"]), "weight_decay": float(common["weight_decay"]),
        "sgd_momentum": float(common["sgd_momentum"]), "probe_learning_rate": 30.0,
    }
    assert differing(paper("imagenet", "jcl"), expected) == {}


@pytest.mark.parametrize("dataset", ABLATION)
@pytest.mark.parametrize("method", CONTRASTS)
def test_what_jcl_does_not_print_is_that_of_its_text_and_code(dataset, method):
    expected = {
        "groups": 8, "shuffle": True, "size": 224, "resize": 256, "warmup": 0, "schedule": "epoch", "ramp": True,
        "head": "moco_v2", "projection": 128, "query_view": "strong", "probe_view": "crop", "probe_momentum": 0.9,
    }
    assert differing(paper(dataset, method), expected) == {}


# ---------------------------------------------------------------------------------------------- methods


@pytest.mark.parametrize("dataset", DATASETS)
def test_methods_differ_from_sce_in_the_objective_and_the_views_alone(dataset):
    theirs = {
        "moco": {"temperature": 0.2, "key_view": "strong"},
        "ressl": {"temperature": 0.1, "key_temperature": 0.04, "key_view": "weak"},
        "jcl": {"temperature": 0.2, "key_view": "strong", "keys": 5, "strength": 2.0 if dataset == "imagenet" else 4.0},
        "supervised": {"query_view": "weak"},
    }
    theirs["vanilla"] = theirs["jcl"]
    base = paper(dataset, "sce").to_dict()
    for method, expected in theirs.items():
        recipe = paper(dataset, method)
        assert recipe.method == method and differing(recipe, expected) == {}
        changed = {name for name, value in recipe.to_dict().items() if value != base[name]}
        assert changed <= {"method", "temperature", "key_temperature", *expected}
        assert method in ("supervised", "jcl", "vanilla") or recipe.keys == 1


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_data_set_method_and_preset_has_a_recipe(dataset):
    recipes = [PRESETS[preset](dataset, method) for method, preset in itertools.product(METHODS, PRESETS)]
    assert len({recipe.canonical() for recipe in recipes}) == len(METHODS) * len(PRESETS)
    for recipe in recipes:
        assert (recipe.dataset, recipe.subset, recipe.select) == (dataset, False, "last")
        assert recipe.dictionary % 2 == 0 and recipe.batch % recipe.groups == 0
        assert recipe.resize >= recipe.size
        assert ImageRecipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_a_data_set_of_no_paper_has_the_recipe_of_one_whose_images_are_alike():
    """By itself an image set of one size has CIFAR-10's, as digits have; others have ImageNet-100's."""
    assert {*DATA} <= {*DATASETS} - {"digits"}
    for method in METHODS:
        digits = paper("digits", method)
        expected = paper("cifar10", method).to_dict() | {"dataset": "digits", "size": 8, "resize": 8}
        allowed = {"temperature", "key_temperature"} if method == "sce" else set()
        assert differing(digits, expected).keys() <= allowed
    of_digits = {name: source for name, _, source in paper("digits", "sce").described()}
    assert of_digits["size"] == of_digits["resize"] == "the images"


@pytest.mark.parametrize("preset", list(PRESETS))
def test_without_a_size_a_data_set_has_the_recipe_of_imagenet100(monkeypatch, preset):
    monkeypatch.delitem(DATA, "imagenet")
    for method in METHODS:
        mine, theirs = (PRESETS[preset](name, method, strength=4.0) for name in ("imagenet", "imagenet100"))
        assert mine.unlike(theirs) == {"dataset": "imagenet"}


@pytest.mark.parametrize("preset", [paper, quick, smoke])
def test_changes_reach_every_preset_and_come_last(preset):
    changes = {"epochs": 3, "batch": 6, "learning_rate": 0.25, "keys": 2, "dictionary": 12, "probe_view": "crop"}
    assert differing(preset("cifar10", "jcl", **changes), changes) == {}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_a_quick_recipe_keeps_the_objective(dataset, method):
    kept = ("temperature", "key_temperature", "weight", "masked_positive", "keys", "strength", "ramp", "momentum",
            "query_view", "key_view", "head", "projection", "groups", "weight_decay", "sgd_momentum")
    printed, small = (preset(dataset, method).to_dict() for preset in (paper, quick))
    assert {name: small[name] for name in kept} == {name: printed[name] for name in kept}
    assert small["epochs"] < printed["epochs"]


@pytest.mark.parametrize("dataset", ["digits", "cifar10", "stl10", "tiny_imagenet"])
def test_a_quick_recipe_scales_the_learning_rate_with_the_batch(dataset):
    printed, small = (preset(dataset, "sce") for preset in (paper, quick))
    assert small.learning_rate / small.batch == pytest.approx(printed.learning_rate / printed.batch)


def test_variants_depart_from_what_they_name_and_construct():
    assert len(VARIANTS) <= 8
    for changes in VARIANTS.values():
        recipe = paper("imagenet100" if "keys" in changes else "cifar10", "jcl" if "keys" in changes else "sce")
        assert set(differing(recipe, changes)) == set(changes)
        assert differing(recipe.replace(**changes), changes) == {}


# ---------------------------------------------------------------------------------------------- sources


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_every_value_of_a_papers_recipe_has_a_source(dataset, method):
    rows = paper(dataset, method).described()
    assert [name for name, _, _ in rows] == list(ImageRecipe().to_dict())
    assert {name: value for name, value, _ in rows} == paper(dataset, method).to_dict()
    chosen = {name for name, _, source in rows if source.startswith("chosen here")}
    assert chosen <= {"dataset", "method"}
    for name, _, source in rows:
        assert source.split(",")[0].split(":")[0].split(";")[0] in (
            "SCE supplement", "SCE", "JCL supplement", "JCL", "MoCo v2", "MoCo", "ReSSL", "assumed", "the images",
        ) or name in chosen, (name, source)


def test_sources_are_those_of_the_data_sets_and_the_methods_recipe():
    sources = {name: source for name, _, source in paper("imagenet", "jcl").described()}
    assert sources["learning_rate"].startswith("JCL, released code")
    assert sources["strength"] == "JCL, released code of the released weights"
    assert sources["momentum"] == sources["probe_epochs"] == "JCL supplement"
    assert sources["keys"] == "assumed, as JCL's ablation; 4 in its released script"
    assert sources["query_view"] == sources["key_view"] == "MoCo v2, released code"
    assert sources["weight"].startswith("SCE, released code")
    sources = {name: source for name, _, source in paper("stl10", "moco").described()}
    assert sources["momentum"] == "SCE supplement"
    assert sources["temperature"] == sources["key_view"] == "MoCo v2, released code"


def test_a_changed_value_says_so_and_what_it_was():
    rows = {name: source for name, _, source in paper("stl10", "sce", momentum=0.5, epochs=7).described()}
    assert rows["momentum"] == "chosen here (default 0.996)"
    assert rows["epochs"] == "chosen here (default 200)"
    assert rows["dictionary"] == "SCE supplement"
    back = {name: source for name, _, source in paper("stl10", "sce", momentum=0.99).described()}
    assert back["momentum"] == "chosen here (default 0.996)"  # the default of another data set is a choice here


@pytest.mark.parametrize("preset", [quick, smoke])
@pytest.mark.parametrize("dataset", DATASETS)
def test_what_a_preset_changes_says_so(dataset, preset):
    printed = paper(dataset, "sce").to_dict()
    for name, value, source in preset(dataset, "sce").described():
        assert (source == f"chosen here (default {printed[name]})") == (value != printed[name]) or name in (
            "dataset", "method"
        ), name


# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"dataset": "cifar"}, ValueError, r"dataset='cifar' is not one of: digits, .*; did you mean 'cifar10'"),
        ({"method": "simclr"}, ValueError, "method='simclr' is not one of: random, supervised, moco, "),
        ({"trunk": "resnet34"}, ValueError, "trunk='resnet34' is not one of: resnet18, resnet50"),
        ({"query_view": "centred"}, ValueError, "query_view='centred' is not one of: strong, weak"),
        ({"probe_view": "strong"}, ValueError, "probe_view='strong' is not one of: shifted, crop, centred"),
        ({"precision": "float16"}, ValueError, "precision='float16' is not one of: auto, float32, bfloat16"),
        ({"schedule": "cosine"}, ValueError, "schedule='cosine' is not one of: step, epoch"),
        ({"select": "best"}, ValueError, "select='best' is not one of: last, best_on_test"),
        ({"batch": 0}, ValueError, "batch=0 should be at least 1"),
        ({"epochs": -1}, ValueError, "epochs=-1 should be at least 1"),
        ({"probe_every": -1}, ValueError, "probe_every=-1 should be at least 0"),
        ({"groups": 0}, ValueError, "groups=0 should be at least 1"),
        ({"probe_epochs": 0}, ValueError, "probe_epochs=0 should be at least 1"),
        ({"temperature": 0.0}, ValueError, "temperature=0.0 should be at least 1e-06"),
        ({"temperature": float("nan")}, ValueError, "temperature=nan should be finite"),
        ({"key_temperature": -1.0}, ValueError, "key_temperature=-1.0 should be at least 1e-06"),
        ({"strength": -0.5}, ValueError, "strength=-0.5 should be at least 0"),
        ({"warmup": -1}, ValueError, "warmup=-1 should be at least 0"),
        ({"weight": 1.5}, ValueError, "weight=1.5 should be between 0 and 1"),
        ({"weight": -0.5}, ValueError, "weight=-0.5 should be between 0 and 1"),
        ({"momentum": 2.0}, ValueError, "momentum=2.0 should be between 0 and 1"),
        ({"sgd_momentum": 1.1}, ValueError, "sgd_momentum=1.1 should be between 0 and 1"),
        ({"learning_rate": -0.1}, ValueError, "learning_rate=-0.1 should be at least 0"),
        ({"keys": 2}, ValueError, "keys=2 needs the method jcl or vanilla; sce has one key a query"),
        ({"keys": 0, "method": "jcl"}, ValueError, "keys=0 should be at least 1"),
        ({"size": 32, "resize": 16}, ValueError, "resize=16 should be at least size=32"),
        ({"size": 16, "small": False}, ValueError, "size=16 with small=False needs precision=float32, or small=True"),
        ({"batch": 12, "groups": 8}, ValueError, "batch=12 should be a multiple of groups=8"),
        ({"learning_rate": float("inf")}, ValueError, "learning_rate=inf should be finite"),
        ({"batch": 2.5}, TypeError, "batch=2.5 is of type float; it should be int"),
        ({"small": 1}, TypeError, "small=1 is of type int; it should be bool"),
        ({"temprature": 0.1}, TypeError, "'temprature' is not a field of ImageRecipe; .* did you mean 'temperature'"),
    ],
    ids=str,
)
def test_impossible_values_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        ImageRecipe().replace(**changes)


@pytest.mark.parametrize("preset", list(PRESETS.values()))
@pytest.mark.parametrize(
    ("dataset", "method", "message"),
    [
        ("mnist", "sce", "dataset='mnist' is not one of: digits, cifar10"),
        ("cifar10", "byol", "method='byol' is not one of: random, supervised"),
    ],
)
def test_presets_refuse_what_does_not_exist(preset, dataset, method, message):
    with pytest.raises(ValueError, match=message):
        preset(dataset, method)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Novel(ImageRecipe):
    """A recipe of another paper, with a method and a field of its own."""

    method: str = setting("novel", "its paper", allowed=("random", "novel"))
    units: int = setting(3, "its paper", least=1, used=lambda recipe: recipe.method == "novel")

    def particular(self):
        return super().particular() | {"momentum": (0.5, "its paper")}


@pytest.mark.parametrize("preset", PRESETS.values())
def test_the_presets_make_recipes_of_another_papers_class(preset):
    recipe, sce = preset("stl10", "novel", kind=Novel, units=7), preset("stl10", "sce")
    assert type(recipe) is Novel and (recipe.units, recipe.momentum) == (7, 0.5)
    own = ("method", "units", "momentum", "temperature", "key_temperature")  # SCE's are its best of the data set
    assert [name for name, value in sce.to_dict().items() if value != getattr(recipe, name) and name not in own] == []
    with pytest.raises(ValueError, match="method='moco' is not one of: random, novel"):
        preset("stl10", "moco", kind=Novel)


def test_another_papers_method_has_the_data_sets_values_alone_and_uses_no_dictionary():
    recipe = paper("stl10", "novel", kind=Novel)
    sources = {name: source for name, _, source in recipe.described()}
    assert sources["momentum"] == "its paper" and sources["size"] == "SCE supplement"
    assert not [source for source in sources.values() if "MoCo v2" in source]
    used = {name for name in recipe.to_dict() if recipe.uses(name)}
    assert {"units", "momentum", "projection", "key_view"} <= used
    assert used.isdisjoint({"dictionary", "temperature", "key_temperature", "weight", "keys", "strength"})
