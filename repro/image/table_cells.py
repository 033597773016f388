"""Which cells make each of the image papers' tables."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from repro.image.cell import EVALUATION, data_of
from repro.image.data import DATASETS
from repro.image.pretrain import VERSION, check_shared
from repro.image.recipe import METHODS, PRESETS, VARIANTS, ImageRecipe
from repro.recipe import choose, parse_fractions, parse_names, parse_numbers
from repro.run.store import Cell
from repro.run.table import checked_names, entry_of, resolved, with_variant

GRID = ("temperature", "key_temperature")
BASE = {"keys": 5, "strength": 4.0, "temperature": 0.2}  # where they do not vary (JCL supplement)
HISTOGRAMS = BASE | {"keys": 9}  # JCL supplement, Fig. M.3
SWEEPS = tuple(BASE)
LONG_SWEEPS = {"keys": "1,2,3,5,7,9", "strengths": "0,0.5,1,2,4,6,10", "temperatures": "0.07,0.1,0.2,0.3,0.5"}
SHORT_SWEEPS = {"keys": "1,2,5,9", "strengths": "0,4,10", "temperatures": "0.1,0.2,0.5"}
PRINTED_KEY_TEMPERATURES = "0.03,0.04,0.05,0.06,0.07,0.08,0.09,0.10"
SHORT_KEY_TEMPERATURES = "0.03,0.05,0.07,0.10"


@checked_names(ImageRecipe)
def image_methods_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    methods: str = "random,supervised,moco,ressl,sce,jcl",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    **fields: Any,
) -> list[Cell]:
    """The cells behind `image_methods`. Loads the data and trains nothing.

    Args:
        dataset: "digits" (embedded), "cifar10", "cifar100", "stl10", "tiny_imagenet", "imagenet100" or "imagenet".
        preset: "paper", "quick", "smoke", or "auto": paper on real data, quick on embedded data.
        methods: comma list of "random", "supervised", "moco", "ressl", "sce", "jcl" and "vanilla".
        seeds: comma list of whole numbers.
        variant: a name in `recipe.VARIANTS`, where paper and released code disagree, or "none". Methods that are
            not trained with what it changes keep their usual cells; if all do, it is refused.
        subset: take the copy that `repro data import` has taken in, or a part of ImageNet; every entry then says so.
        **fields: any other field of the recipe, such as epochs=50 or momentum="0.99,0.999", which sweeps; "auto" leaves
            it as the preset has it. Methods that do not use a field keep their usual cells; if all do, it is refused.

    Raises:
        TypeError: if there is no such parameter.
        ValueError: if a parameter has a value that does not exist, naming those that do.
        FileNotFoundError: if the data set is not there, saying where to get it and where to put it.
    """
    chosen = parse_names("methods", methods, METHODS)
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    rows = [functools.partial(PRESETS[preset], dataset, method, subset=subset) for method in chosen]
    return _cells("image_methods", rows, fields, preset, seeds, variant, shown=())


@checked_names(ImageRecipe)
def temperature_grid_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    temperatures: str = "0.1,0.2",
    key_temperatures: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    **fields: Any,
) -> list[Cell]:
    """The cells behind `temperature_grid`. Loads the data and trains nothing.

    Args:
        temperatures: comma list, of the query.
        key_temperatures: comma list, of the key; "auto": the eight printed ones for the paper's recipe, else four.
        dataset, preset, seeds, variant, subset, fields: as for `image_methods_cells`.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `image_methods_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    if key_temperatures == "auto":
        key_temperatures = PRINTED_KEY_TEMPERATURES if preset == "paper" else SHORT_KEY_TEMPERATURES
    rows, columns = parse_fractions("temperatures", temperatures), parse_fractions("key_temperatures", key_temperatures)
    pairs = [("sce", row, column) for row in rows for column in columns]
    pairs += [("ressl", row, row) for row in rows if row in columns]
    make = functools.partial(PRESETS[preset], dataset, subset=subset)
    cells = [functools.partial(make, method, temperature=row, key_temperature=column) for method, row, column in pairs]
    return _cells("temperature_grid", cells, fields, preset, seeds, variant, GRID)


@checked_names(ImageRecipe)
def positive_keys_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    keys: str | int = "auto",
    strengths: str = "auto",
    temperatures: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    **fields: Any,
) -> list[Cell]:
    """The cells behind `positive_keys`. Loads the data and trains nothing.

    Each of the three varies while the others stay at the paper's 5 keys, strength 4 and temperature 0.2.

    Args:
        keys: comma list of numbers of positive keys; "auto": 1, 2, 3, 5, 7, 9 for the paper's recipe, else 1, 2, 5, 9.
        strengths: comma list of weights of the covariance; "auto": 0, 0.5, 1, 2, 4, 6, 10, else 0, 4, 10.
        temperatures: comma list; "auto": 0.07, 0.1, 0.2, 0.3, 0.5, else 0.1, 0.2, 0.5. The paper says what it varied
            and not over which values.
        dataset, preset, seeds, variant, subset, fields: as for `image_methods_cells`; no variant that
            changes what varies here.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `image_methods_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    usual = LONG_SWEEPS if preset == "paper" else SHORT_SWEEPS
    asked = {"keys": keys, "strengths": strengths, "temperatures": temperatures}
    texts = {name: usual[name] if value == "auto" else value for name, value in asked.items()}
    points = [BASE | {"keys": number} for number in parse_numbers("keys", texts["keys"], least=1)]
    points += [BASE | {"strength": value} for value in parse_fractions("strengths", texts["strengths"], least=0)]
    points += [BASE | {"temperature": value} for value in parse_fractions("temperatures", texts["temperatures"])]
    rows = [functools.partial(PRESETS[preset], dataset, "jcl", subset=subset, **point) for point in points]
    return _cells("positive_keys", rows, fields, preset, seeds, variant, SWEEPS, varied=SWEEPS)


@checked_names(ImageRecipe)
def similarity_variance_cells(
    dataset: str = "digits",
    *,
    preset: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    **fields: Any,
) -> list[Cell]:
    """The cells behind `similarity_variance`. Loads the data and trains nothing.

    Args:
        dataset, preset, seeds, variant, subset, fields: as for `positive_keys_cells`.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `image_methods_cells`.
    """
    preset = resolved(dataset, preset, DATASETS, PRESETS)
    make = functools.partial(PRESETS[preset], dataset, subset=subset)
    rows = [functools.partial(make, "jcl", **HISTOGRAMS), functools.partial(make, "moco")]
    return _cells("similarity_variance", rows, fields, preset, seeds, variant, ("keys",), varied=SWEEPS)


def _cells(
    table: str,
    rows: list[Callable[..., ImageRecipe]],
    fields: Mapping[str, Any],
    preset: str,
    seeds: str | int,
    variant: str,
    shown: tuple[str, ...],
    varied: tuple[str, ...] = (),
) -> list[Cell]:
    """Every recipe with every seed, seed by seed, so that a table killed half-way has whole columns.

    Raises:
        ValueError: as `with_variant`; if the variant changes what the table varies, or a process group cannot share a
            recipe's batch.
    """
    allowed = (name for name, changes in VARIANTS.items() if changes.keys().isdisjoint(varied))
    choose("variant", variant, ("none", *allowed))
    recipes = with_variant(rows, fields, variant, VARIANTS.get(variant, {}))
    for recipe in recipes:
        check_shared(recipe)
    data = data_of(recipes[0])
    return [
        Cell(table, _entry(recipe, preset, shown), recipe, seed, preset, data.name, data.digest, VERSION, EVALUATION)
        for seed in parse_numbers("seeds", seeds)
        for recipe in recipes
    ]


def _entry(recipe: ImageRecipe, preset: str, shown: tuple[str, ...]) -> str:
    return entry_of(recipe.method, recipe, PRESETS[preset](recipe.dataset, recipe.method, subset=recipe.subset), shown)
