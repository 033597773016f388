"""Recipes against the printed tables and the values of the released codes, typed here by hand."""

import itertools

import pytest

from repro.image import augment
from repro.image.augment import CentredView, ShiftedView
from repro.image.recipe import METHODS, VARIANTS, ImageRecipe, paper
from repro.report.printed import as_printed

SMALL, MEDIUM, ABLATION = ("cifar10", "cifar100"), ("stl10", "tiny_imagenet"), ("imagenet100", "imagenet")
PRINTED_NAMES = {"CIFAR10": "cifar10", "CIFAR100": "cifar100", "STL10": "stl10", "Tiny-IN": "tiny_imagenet"}


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


@pytest.mark.parametrize(
    ("column", "datasets"), [("small_CIFAR10_CIFAR100", SMALL), ("medium_STL10_TinyIN", MEDIUM)]
)
def test_sce_has_the_printed_values(column, datasets):
    printed = printed_of_sce(column)
    batch = int(printed["batch"].removesuffix(" (2 GPUs)"))
    expected = {
        "trunk": "resnet18", "small": True, "head": "sce", "projection": int(printed["projector"].split("-")[-1]),
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


def test_what_is_evaluated_on():
    """SCE supplement, section D: small images are padded, ImageNet's have 256 x 256."""
    for datasets, padding in ((("digits", *SMALL), 4), (MEDIUM, 0)):
        for dataset, method in itertools.product(datasets, METHODS):
            recipe = paper(dataset, method)
            assert differing(recipe, {"probe_view": "shifted", "probe_padding": padding, "square": False}) == {}
            assert augment.probe_view(recipe) == ShiftedView(augment.normalisation(dataset), padding)
    for dataset in ABLATION:
        view = CentredView(224, augment.normalisation("imagenet"), resize=256, square=True)
        assert augment.centred_view(paper(dataset, "jcl")) == view


def test_jcl_has_the_printed_values_of_its_ablation():
    printed, probe = printed_of_jcl("ablation"), printed_of_jcl("ablation_linear")
    common = printed_of_jcl("imagenet1k_pretrain")
    expected = {
        "trunk": "resnet18", "small": False, "head": "moco_v2", "projection": 128,
        "epochs": int(printed["epochs"]), "batch": int(printed["batch"]), "learning_rate": float(printed["lr"]),
        "dictionary": int(common["queue_size"]), "momentum": float(common["momentum_encoder_m"]),
        "sgd_momentum": float(common["sgd_momentum"]), "weight_decay": float(common["weight_decay"]),
        "probe_epochs": int(probe["epochs"]), "probe_batch": int(probe["batch"]),
        "probe_learning_rate": float(probe["lr"]),
    }
    settings = as_printed("jcl_ablation_settings")
    for column, field in {"M_prime": "keys", "lambda": "strength", "tau": "temperature"}.items():
        expected[field], = map(float, {*settings[column]} - {"varied"})  # while another is varied
    assert differing(paper("imagenet100", "jcl"), expected) == {}


def test_jcl_on_imagenet_has_the_values_of_the_released_script():
    common = printed_of_jcl("imagenet1k_pretrain")
    expected = {
        "trunk": "resnet50", "epochs": 200, "batch": int(common["dequeue_per_step"]), "learning_rate": 0.03,
        "strength": 2.0, "keys": 5, "temperature": 0.2, "dictionary": int(common["queue_size"]),
        "momentum": float(common["momentum_encoder_m"]), "weight_decay": float(common["weight_decay"]),
        "sgd_momentum": float(common["sgd_momentum"]), "probe_learning_rate": 30.0,
    }
    assert differing(paper("imagenet", "jcl"), expected) == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "simclr"}, "method='simclr' is not one of: random, supervised, moco, "),
        ({"keys": 2}, "keys=2 needs one of the methods jcl, vanilla; sce has one key a query"),
        ({"size": 32, "resize": 16}, "resize=16 should be at least size=32"),
        ({"size": 16, "small": False}, "size=16 with small=False needs precision=float32, or small=True"),
        ({"batch": 12, "groups": 8}, "batch=12 should be a multiple of groups=8"),
    ],
    ids=str,
)
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        ImageRecipe().replace(**changes)


def test_without_groups_there_is_nothing_to_shuffle_among():
    assert not ImageRecipe().uses("shuffle") and ImageRecipe(groups=8).uses("shuffle")
    assert not ImageRecipe(method="supervised", groups=8).uses("shuffle")


def test_released_ghost_groups_are_of_the_keys_alone_where_the_code_is_sces_and_of_both_elsewhere():
    for method in METHODS:
        changes = {name: value for name, value in VARIANTS["ghost_groups"].items()
                   if ImageRecipe(method=method).uses(name, **VARIANTS["ghost_groups"])}
        recipe = ImageRecipe(method=method, **changes)
        expected = {"random": (1, 1), "ressl": (1, 8), "sce": (1, 8)}
        assert (recipe.query_groups, recipe.groups) == expected.get(method, (8, 8)), method
    assert ImageRecipe(groups=8).query_groups == 8  # as runs were trained before the field existed
