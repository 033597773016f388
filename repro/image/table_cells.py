"""Which cells make each of the image papers' tables."""

from typing import Any

from repro.image.cell import data_of
from repro.image.data import DATASETS
from repro.image.pretrain import VERSION, check_shared
from repro.image.recipe import CONCERNED, METHODS, PRESETS, VARIANTS, ImageRecipe
from repro.recipe import choose, parse_fractions, parse_names, parse_numbers
from repro.run.store import Cell
from repro.run.table import checked_names, entry_of, resolved, with_variant

GRID = ("temperature", "key_temperature")
BASE = {"keys": 5, "strength": 4.0, "temperature": 0.2}  # where they do not vary (JCL supplement)
SWEEPS = tuple(BASE)
LONG_SWEEPS = {"keys": "1,2,3,5,7,9", "strengths": "0,0.5,1,2,4,6,10", "temperatures": "0.07,0.1,0.2,0.3,0.5"}
SHORT_SWEEPS = {"keys": "1,2,5,9", "strengths": "0,4,10", "temperatures": "0.1,0.2,0.5"}
PRINTED_KEY_TEMPERATURES = "0.03,0.04,0.05,0.06,0.07,0.08,0.09,0.10"
SHORT_KEY_TEMPERATURES = "0.03,0.05,0.07,0.10"


@checked_names
def image_methods_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    methods: str = "random,supervised,moco,ressl,sce,jcl",
    seeds: str | int = "0",
    variant: str = "none",
    select: str = "last",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `image_methods`. Loads the data and trains nothing.

    Args:
        dataset: "digits" (embedded), "cifar10", "cifar100", "stl10", "tiny_imagenet", "imagenet100" or "imagenet".
        preset: "paper", "quick", "smoke", or "auto": paper on real data, quick on embedded data.
        methods: comma list of "random", "supervised", "moco", "ressl", "sce", "jcl" and "vanilla".
        seeds: comma list of whole numbers.
        variant: a name in `recipe.VARIANTS`, where paper and released code disagree, or "none". Methods that are
            not trained with what it changes keep their usual cells; if all do, it is refused.
        select: "last" epoch of the probe, or "best_on_test" as the released codes did.
        subset: take the copy that `repro data import` has taken in, or a part of ImageNet; every entry then says so.
        precision: "float32", "bfloat16", or "auto": the preset's. A CPU without bfloat16 instructions is slow in it.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
        FileNotFoundError: if the data set is not there, saying where to get it and where to put it.
    """
    chosen = parse_names("methods", methods, METHODS)
    changes = _changes(variant, select, subset, precision)
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    recipes = [PRESETS[preset](dataset, method, **changes) for method in chosen]
    return _cells("image_methods", recipes, preset, seeds, variant, shown=())


@checked_names
def temperature_grid_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    temperatures: str = "0.1,0.2",
    key_temperatures: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    select: str = "last",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `temperature_grid`. Loads the data and trains nothing.

    Args:
        temperatures: comma list, of the query.
        key_temperatures: comma list, of the key; "auto": the eight printed ones for the paper's recipe, else four.
        dataset, preset, seeds, variant, select, subset, precision: as for `image_methods_cells`.

    Raises:
        ValueError, FileNotFoundError: as `image_methods_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    if key_temperatures == "auto":
        key_temperatures = PRINTED_KEY_TEMPERATURES if preset == "paper" else SHORT_KEY_TEMPERATURES
    rows, columns = parse_fractions("temperatures", temperatures), parse_fractions("key_temperatures", key_temperatures)
    pairs = [("sce", row, column) for row in rows for column in columns]
    pairs += [("ressl", row, row) for row in rows if row in columns]
    changes = _changes(variant, select, subset, precision)
    recipes = [
        PRESETS[preset](dataset, method, temperature=row, key_temperature=column, **changes)
        for method, row, column in pairs
    ]
    return _cells("temperature_grid", recipes, preset, seeds, variant, GRID)


@checked_names
def positive_keys_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    keys: str | int = "auto",
    strengths: str = "auto",
    temperatures: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    select: str = "last",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `positive_keys`. Loads the data and trains nothing.

    Each of the three varies while the others stay at the paper's 5 keys, strength 4 and temperature 0.2.

    Args:
        keys: comma list of numbers of positive keys; "auto": 1, 2, 3, 5, 7, 9 for the paper's recipe, else 1, 2, 5, 9.
        strengths: comma list of weights of the covariance; "auto": 0, 0.5, 1, 2, 4, 6, 10, else 0, 4, 10.
        temperatures: comma list; "auto": 0.07, 0.1, 0.2, 0.3, 0.5, else 0.1, 0.2, 0.5. The paper says what it varied
            and not over which values.
        dataset, preset, seeds, variant, select, subset, precision: as for `image_methods_cells`; no variant that
            changes what varies here.

    Raises:
        ValueError, FileNotFoundError: as `image_methods_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    usual = LONG_SWEEPS if preset == "paper" else SHORT_SWEEPS
    asked = {"keys": keys, "strengths": strengths, "temperatures": temperatures}
    texts = {name: usual[name] if value == "auto" else value for name, value in asked.items()}
    points = [BASE | {"keys": number} for number in parse_numbers("keys", texts["keys"], least=1)]
    points += [BASE | {"strength": value} for value in parse_fractions("strengths", texts["strengths"], least=0)]
    points += [BASE | {"temperature": value} for value in parse_fractions("temperatures", texts["temperatures"])]
    changes = _changes(variant, select, subset, precision, varied=SWEEPS)
    recipes = dict.fromkeys(PRESETS[preset](dataset, "jcl", **changes | point) for point in points)
    return _cells("positive_keys", [*recipes], preset, seeds, variant, SWEEPS)


@checked_names
def similarity_variance_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `similarity_variance`. Loads the data and trains nothing.

    Args:
        dataset, preset, seeds, variant, subset, precision: as for `positive_keys_cells`.

    Raises:
        ValueError, FileNotFoundError: as `image_methods_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    changes = _changes(variant, "last", subset, precision, varied=SWEEPS)
    jcl = PRESETS[preset](dataset, "jcl", **changes | BASE | {"keys": 9})
    moco = PRESETS[preset](dataset, "moco", **changes)
    return _cells("similarity_variance", [jcl, moco], preset, seeds, variant, ("keys",))


def _changes(
    variant: str, select: str, subset: bool, precision: str, varied: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What differs from the preset in all cells, whatever the variant, which may not change what the table varies."""
    allowed = [name for name, changed in VARIANTS.items() if changed.keys().isdisjoint(varied)]
    choose("variant", variant, ("none", *allowed))
    choose("precision", precision, ("auto", "float32", "bfloat16"))
    return {"select": select, "subset": subset} | ({} if precision == "auto" else {"precision": precision})


def _cells(
    table: str, recipes: list[ImageRecipe], preset: str, seeds: str | int, variant: str, shown: tuple[str, ...]
) -> list[Cell]:
    """Every recipe with every seed, seed by seed, so that a table killed half-way has whole columns.

    Raises:
        ValueError: if the variant changes no recipe, or a process group cannot share a recipe's batch.
    """
    if variant != "none":
        recipes = with_variant(recipes, "method", variant, VARIANTS[variant], CONCERNED[variant])
    for recipe in recipes:
        check_shared(recipe)
    data = data_of(recipes[0])
    return [
        Cell(table, _entry(recipe, preset, shown), recipe, seed, preset, data.name, data.digest, VERSION)
        for seed in parse_numbers("seeds", seeds)
        for recipe in recipes
    ]


def _entry(recipe: ImageRecipe, preset: str, shown: tuple[str, ...]) -> str:
    return entry_of(recipe.method, recipe, PRESETS[preset](recipe.dataset, recipe.method, subset=recipe.subset), shown)
