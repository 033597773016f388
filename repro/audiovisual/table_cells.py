"""Which cells make each of CM-ACC's tables."""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from repro.audiovisual.cell import EVALUATION, TARGETS, identity_of
from repro.audiovisual.data import CHARACTERS, DATASETS
from repro.audiovisual.pretrain import VERSION
from repro.audiovisual.recipe import (
    METHODS,
    PRESETS,
    QUICK,
    SAMPLERS,
    SELF_SUPERVISED,
    VARIANTS,
    AudioVisualRecipe,
)
from repro.recipe import Values, choose, distinct, parse_names, parse_number, parse_numbers
from repro.report.comparison import TRUNKS
from repro.run.store import Cell
from repro.run.table import checked_names, entry_of, resolved, with_variant

# Rows of Tables 1 and 2, by the name users type: the printed one, and where the recipe of the method changes.
APPROACHES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "scratch": ("Scratch", "scratch", {}),
    "supervised": ("Supervised", "supervised", {}),
    "smoco_plain": ("SMoCo (w/o fcl)", "smoco", {"extra_layer": False}),
    "smoco": ("SMoCo", "smoco", {}),
    "xmoco_plain": ("XMoCo (w/o fcl)", "xmoco", {"extra_layer": False}),
    "xmoco": ("XMoCo", "xmoco", {}),
    "cmacc_plain": ("CM-ACC (w/o fcl)", "cmacc", {"extra_layer": False}),
    "cmacc_feature": ("CM-ACC, feature embedding", "cmacc", {"sampler": "feature"}),
    "cmacc": ("CM-ACC", "cmacc", {}),
    "cmacc_released": ("CM-ACC, released selection", "cmacc", VARIANTS["released_selection"]),
}
PRINTED_APPROACHES = "scratch,supervised,smoco,xmoco_plain,xmoco,cmacc_plain,cmacc_feature,cmacc"
COUNTED = tuple(name for name in DATASETS if name not in ("audioset", "esc50"))  # of categories, with video and sound
VARIED = {
    "cross_modal": ("extra_layer", "sampler", "targets"),
    "ohem_vs_active": ("sampler", "batch", "targets"),
    "dictionary_size": ("dictionary", "targets"),
    "mutual_information": ("characters",),
    "transfer": ("video_trunk", "split", "targets"),
    "category_diversity": ("sampler", "batch"),
}


@checked_names(AudioVisualRecipe)
def cross_modal_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    approaches: str = PRINTED_APPROACHES,
    targets: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    **fields: Any,
) -> list[Cell]:
    """The cells behind `cross_modal`. Loads the data and trains nothing.

    Args:
        dataset: "synthetic" (embedded), a name of `data.RECORDINGS`, or of `data.CHARACTERS`: grids of characters, from
            which linear probes read the characters (`targets` "characters") instead of fine-tuning.
        preset: "paper", "quick", "smoke", or "auto": paper on real data, quick on embedded data.
        approaches: comma list of names of `APPROACHES`.
        targets: comma list of names of `cell.TARGETS`, where to fine-tune; "auto": those of the data set's recipe.
        seeds: comma list of whole numbers.
        variant: a name in `recipe.VARIANTS`, where paper and released code disagree, or "none"; none that changes what
            the table varies itself.
        subset: accept a part of a distribution; every entry then says so.
        **fields: any other field of the recipe, such as momentum="0.99,0.999", which sweeps; "auto" leaves it as the
            preset has it. Methods that do not use a field keep their usual cells; if all do, it is refused.

    Raises:
        TypeError: if there is no such parameter.
        ValueError: if a parameter has a value that does not exist, naming those that do.
        FileNotFoundError: if a data set is not there, saying where to get it and where to put it.
    """
    names, places = parse_names("approaches", approaches, APPROACHES), _targeted(targets, dataset)
    chosen = [(method, changes | places) for _, method, changes in map(APPROACHES.get, names)]
    return _cells("cross_modal", dataset, preset, seeds, chosen, variant, subset, fields)


@checked_names(AudioVisualRecipe)
def ohem_vs_active_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    samplers: str = "random,ohem,gradient",
    batches: str | int = "auto",
    targets: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    **fields: Any,
) -> list[Cell]:
    """The cells behind `ohem_vs_active`. Loads the data and trains nothing.

    Args:
        samplers: comma list of "random", "ohem" (the least confident keys), "gradient", "feature" and "released".
        batches: comma list of numbers M; "auto": 32, 64 and 128, of recordings 4, 8 and 16 save for the paper's recipe,
            in which dictionary and pool grow with M. In the others all are trained equally long with one dictionary.
        dataset, preset, targets, seeds, variant, subset, fields: as for `cross_modal_cells`.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    sampled, places = _sampled(samplers, _batches(batches, dataset, preset)), _targeted(targets, dataset)
    chosen = [("cmacc", changes | places) for changes in sampled]
    return _cells("ohem_vs_active", dataset, preset, seeds, chosen, variant, subset, fields)


@checked_names(AudioVisualRecipe)
def dictionary_size_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    methods: str = "smoco,xmoco,cmacc",
    dictionaries: str | int = "auto",
    targets: str = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    **fields: Any,
) -> list[Cell]:
    """The cells behind `dictionary_size`. Loads the data and trains nothing.

    Args:
        methods: comma list of "smoco", "xmoco" and "cmacc".
        dictionaries: comma list of sizes, multiples of the batch; "auto": 128 to 32,768 for the paper's recipe, else
            64, 256 and 1,024, of grids of characters 128, 512 and 2,048 (16, 64 and 128 in smoke runs), of recordings
            with pictures 8, 16 and 24.
        dataset, preset, targets, seeds, variant, subset, fields: as for `cross_modal_cells`.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    if dictionaries == "auto":
        dictionaries = _dictionaries(dataset, resolved(dataset, preset, DATASETS, PRESETS))
    names = parse_names("methods", methods, SELF_SUPERVISED)
    sizes = parse_numbers("dictionaries", dictionaries, least=1)
    chosen = [(name, {"dictionary": size} | _targeted(targets, dataset)) for name in names for size in sizes]
    return _cells("dictionary_size", dataset, preset, seeds, chosen, variant, subset, fields)


@checked_names(AudioVisualRecipe)
def mutual_information_cells(
    dataset: str = "multidigits",
    *,
    preset: str = "auto",
    methods: str = "smoco,xmoco,cmacc",
    characters: str | int = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    **fields: Any,
) -> list[Cell]:
    """The cells behind `mutual_information`. Loads the data and trains nothing.

    Args:
        dataset: "multidigits" or "multiomniglot".
        methods: comma list of "scratch", "supervised", "smoco", "xmoco" and "cmacc".
        characters: comma list of numbers from 1 to 9; "auto": all of them, 2 for smoke runs.
        preset, seeds, variant, fields: as for `cross_modal_cells`.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    names = parse_names("methods", methods, METHODS)
    if characters == "auto":
        characters = "2" if resolved(dataset, preset, CHARACTERS, PRESETS) == "smoke" else "1,2,3,4,5,6,7,8,9"
    numbers = parse_numbers("characters", characters, least=1)
    chosen = [(name, {"characters": number}) for name in names for number in numbers]
    return _cells("mutual_information", dataset, preset, seeds, chosen, variant, False, fields)


@checked_names(AudioVisualRecipe)
def transfer_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    methods: str = "cmacc",
    trunks: str = "auto",
    targets: str = "auto",
    split: str | int = "0",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    **fields: Any,
) -> list[Cell]:
    """The cells behind `transfer`. Loads the data and trains nothing.

    Args:
        methods: comma list of "scratch", "supervised", "smoco", "xmoco" and "cmacc".
        trunks: comma list of video encoders, "r3d18" and "r2plus1d18"; "auto": the data set's. Grids of characters have
            no others, nor splits.
        targets: comma list of "ucf101", "hmdb51", "esc50", "esc10", "synthetic_video" and "synthetic_audio"; "auto":
            those of the data set's recipe.
        split: comma list of official splits or folds, one encoder for each; 0, their mean with one encoder for all. A
            target that is also pre-trained on needs the former, as it sees the training part of its split alone.
        dataset, preset, seeds, variant, subset, fields: as for `cross_modal_cells`.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    names = parse_names("methods", methods, METHODS)
    changes = _targeted(targets, dataset)
    if dataset in CHARACTERS:
        choose("trunks", trunks, ("auto",))
        choose("split", str(split), ("0",))
    numbers = [parse_number("split", number) for number in str(split).split(",")]
    splits = [{"split": number} for number in distinct("split", split, numbers)]
    choices: list[dict[str, Any]] = [{}]
    if trunks != "auto":
        choices = [{"video_trunk": trunk} for trunk in parse_names("trunks", trunks, TRUNKS)]
    chosen = [(name, changes | trunk | split) for name in names for trunk in choices for split in splits]
    return _cells("transfer", dataset, preset, seeds, chosen, variant, subset, fields)


@checked_names(AudioVisualRecipe)
def category_diversity_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    samplers: str = "random,ohem,feature,gradient",
    batches: str | int = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    **fields: Any,
) -> list[Cell]:
    """The cells behind `category_diversity`, of 300 steps, 2 for smoke runs. Loads the data and trains nothing.

    Args:
        dataset: as for `cross_modal_cells`, but not "audioset", whose clips have no categories here, nor "esc50", whose
            have no pictures.
        samplers, batches, preset, seeds, variant, subset, fields: as for `ohem_vs_active_cells`.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    usual = {name: value for name, (value, _) in counted(resolved(dataset, preset, COUNTED, PRESETS)).items()}
    chosen = [("cmacc", changes) for changes in _sampled(samplers, _batches(batches, dataset, preset))]
    return _cells("category_diversity", dataset, preset, seeds, chosen, variant, subset, fields, usual)


def counted(preset: str) -> Values:
    """What `category_diversity` changes of a preset: it counts categories along a short training."""
    return {
        "targets": ("", "assumed: nothing is fine-tuned, categories are counted"),  # of grids characters are probed
        "iterations": (2 if preset == "smoke" else 300, "assumed: steps in which categories are counted"),
    }


def _sampled(samplers: str, batches: str | int) -> list[dict[str, Any]]:
    """Changes of a recipe for every sampler and batch."""
    names, sizes = parse_names("samplers", samplers, SAMPLERS), parse_numbers("batches", batches, least=1)
    return [{"sampler": name, "batch": size} for name in names for size in sizes]


def _batches(batches: str | int, dataset: str, preset: str) -> str | int:
    """The batches asked for, or those that the data set and the preset usually have."""
    if batches != "auto":
        return batches
    paper = resolved(dataset, preset, DATASETS, PRESETS) == "paper"
    return "32,64,128" if paper or dataset in (*QUICK, *CHARACTERS) else "4,8,16"


def _dictionaries(dataset: str, preset: str) -> str:
    """The sizes of dictionaries that the data set and the preset usually have."""
    if preset == "paper":
        return "128,512,2048,8192,32768"
    if dataset in CHARACTERS:
        return "16,64,128" if preset == "smoke" else "128,512,2048"
    return "64,256,1024" if dataset in QUICK else "8,16,24"


def _targeted(targets: str, dataset: str) -> dict[str, Any]:
    """Changes of a recipe for a list of targets; grids of characters have one."""
    if dataset in CHARACTERS:
        choose("targets", targets, ("auto", "characters"))
        return {}
    return {} if targets == "auto" else {"targets": ",".join(parse_names("targets", targets, TARGETS))}


def _cells(
    table: str,
    dataset: str,
    preset: str,
    seeds: str | int,
    chosen: list[tuple[str, dict[str, Any]]],
    variant: str,
    subset: bool,
    fields: Mapping[str, Any],
    usual: Mapping[str, Any] = MappingProxyType({}),
) -> list[Cell]:
    """Every method and its changes with every seed, seed by seed, so that a table killed half-way has whole columns.

    `usual` is what all recipes of the table change of the preset's. What a method does not use of a row's changes is
    left as the preset has it, so that a cell has one key in all tables.
    """
    preset = resolved(dataset, preset, CHARACTERS if table == "mutual_information" else DATASETS, PRESETS)
    allowed = (name for name, changes in VARIANTS.items() if changes.keys().isdisjoint(VARIED[table]))
    choose("variant", variant, ("none", *allowed))
    numbers = parse_numbers("seeds", seeds)  # before data are read
    make = functools.partial(PRESETS[preset], dataset, subset=subset)
    rows = []
    for method, changes in chosen:
        asked, plain = {**usual, **changes}, make(method)
        kept = {name: value for name, value in asked.items() if plain.uses(name, **asked)}
        rows.append(functools.partial(make, method, **kept))
    recipes = with_variant(rows, fields, variant, VARIANTS.get(variant, {}))
    entries = [_entry(table, recipe, make, usual) for recipe in recipes]
    data = [identity_of(recipe) for recipe in recipes]
    return [
        Cell(table, entry, recipe, seed, preset, *identity, VERSION, EVALUATION)
        for seed in numbers
        for entry, recipe, identity in zip(entries, recipes, data, strict=True)
    ]


def _entry(
    table: str, recipe: AudioVisualRecipe, make: Callable[..., AudioVisualRecipe], usual: Mapping[str, Any]
) -> str:
    """The entry of a recipe in a table: what this varies, and what departs from its usual recipes."""
    varied = {name: getattr(recipe, name) for name in VARIED[table]}
    kept = {name: value for name, value in usual.items() if recipe.uses(name)}
    return entry_of(recipe.method, recipe, make(recipe.method, **{**kept, **varied}), VARIED[table])
