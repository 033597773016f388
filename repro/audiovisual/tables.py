"""CM-ACC's tables: which cells make them, and our numbers beside the printed ones."""

from collections.abc import Callable
from typing import Any

from pandas import DataFrame, Series, concat

from repro import manifest
from repro.audiovisual.cell import data_of, train
from repro.audiovisual.data import CHARACTERS, DATASETS
from repro.audiovisual.pretrain import VERSION
from repro.audiovisual.recipe import METHODS, PRESETS, SELF_SUPERVISED, VARIANTS, AudioVisualRecipe
from repro.recipe import choose, parse_numbers
from repro.report.printed import printed
from repro.run.compare import beside
from repro.run.store import Cell
from repro.run.table import Table, entry_of, resolved, trained

# Rows of Tables 1 and 2, by the name users type: the printed one, and where the recipe of the method changes.
APPROACHES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "scratch": ("Scratch", "scratch", {}),
    "supervised": ("Supervised", "supervised", {}),
    "smoco": ("SMoCo", "smoco", {}),
    "smoco_plain": ("SMoCo (w/o fcl)", "smoco", {"extra_layer": False}),
    "xmoco_plain": ("XMoCo (w/o fcl)", "xmoco", {"extra_layer": False}),
    "xmoco": ("XMoCo", "xmoco", {}),
    "cmacc_plain": ("CM-ACC (w/o fcl)", "cmacc", {"extra_layer": False}),
    "cmacc_feature": ("CM-ACC, feature embedding", "cmacc", {"sampler": "feature"}),
    "cmacc": ("CM-ACC", "cmacc", {}),
}
PRINTED_APPROACHES = "scratch,supervised,smoco,xmoco_plain,xmoco,cmacc_plain,cmacc_feature,cmacc"
PRINTED_SAMPLERS = {"random": "Random", "ohem": "OHEM", "gradient": "Active"}
COLUMNS = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}  # of the printed tables, by target
PRE_TRAINED = {"kinetics_sound": "Kine.-Sound", "kinetics700": "Kinetics700", "audioset": "AudioSet", "ucf101": "UCF101"}
VARIED = {
    "cross_modal": ("extra_layer", "sampler"),
    "ohem_vs_active": ("sampler", "batch"),
    "dictionary_size": ("dictionary",),
    "mutual_information": ("characters",),
    "transfer": ("video_trunk",),
    "category_diversity": ("sampler", "batch"),
}


def cross_modal(
    dataset: str = "synthetic", *, device: str = "auto", engine: str = "auto", workers: str | int = "auto", **choices: Any
) -> DataFrame:
    """Within or across modalities, with and without the extra layer and active selection (CM-ACC, Tables 1 and 2).

    Args:
        dataset: what is pre-trained on: "synthetic" (embedded), or a name of `data.RECORDINGS` (printed:
            "kinetics_sound").
        device: "auto", "cpu" or "cuda".
        engine: "inline" trains in this process, "local" in worker processes; "auto" takes "local" on a CPU, except
            for smoke runs. The numbers do not depend on it.
        workers: number of worker processes, or "auto": the cores this process may use over the recipe's threads.
        **choices: the other parameters of `cross_modal_cells`.

    Returns:
        One row per approach and target: approach (as printed), target (where the encoder was fine-tuned), then ours,
        std, n_seeds, published, difference, preset, dataset. Accuracies in percent.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`, before anything is computed.
        NonFiniteLoss: if a cell diverges, after the others are done.
    """
    return trained(cross_modal_cells(dataset, **choices), TABLES["cross_modal"], train, device, engine, workers)


def ohem_vs_active(
    dataset: str = "synthetic", *, device: str = "auto", engine: str = "auto", workers: str | int = "auto", **choices: Any
) -> DataFrame:
    """Random, hardest and active negatives, by the number selected in a step (CM-ACC, Table 3).

    Args:
        dataset, device, engine, workers: as for `cross_modal`; printed is "kinetics700".
        **choices: the other parameters of `ohem_vs_active_cells`.

    Returns:
        One row per sampler, batch and target: sampler, batch, target, then the columns of `cross_modal`.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    return trained(ohem_vs_active_cells(dataset, **choices), TABLES["ohem_vs_active"], train, device, engine, workers)


def dictionary_size(
    dataset: str = "synthetic", *, device: str = "auto", engine: str = "auto", workers: str | int = "auto", **choices: Any
) -> DataFrame:
    """SMoCo, XMoCo and CM-ACC by the size of the dictionary (CM-ACC, Fig. 3b, whose values are not printed).

    Args:
        dataset, device, engine, workers: as for `cross_modal`; the paper's is "kinetics700".
        **choices: the other parameters of `dictionary_size_cells`.

    Returns:
        One row per method, size and target: method, dictionary, target, then the columns of `cross_modal`.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    return trained(dictionary_size_cells(dataset, **choices), TABLES["dictionary_size"], train, device, engine, workers)


def mutual_information(
    dataset: str = "multidigits",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
) -> DataFrame:
    """Characters read from grids, by their number, which is the information pairs share (CM-ACC, Fig. 3a).

    Args:
        dataset: "multidigits" (embedded) or "multiomniglot" (the paper's).
        device, engine, workers: as for `cross_modal`.
        **choices: the other parameters of `mutual_information_cells`.

    Returns:
        One row per method and number of characters: method, characters, target, then the columns of `cross_modal`,
        then linear_held_out: accuracy on drawings never seen, where `ours` is on new pairs of those trained on.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    cells = mutual_information_cells(dataset, **choices)
    return trained(cells, TABLES["mutual_information"], train, device, engine, workers)


def transfer(
    dataset: str = "synthetic", *, device: str = "auto", engine: str = "auto", workers: str | int = "auto", **choices: Any
) -> DataFrame:
    """CM-ACC fine-tuned elsewhere, every official split or fold (CM-ACC, Tables 4 to 6).

    Args:
        dataset, device, engine, workers: as for `cross_modal`.
        **choices: the other parameters of `transfer_cells`.

    Returns:
        One row per method, trunk and target: method, video_trunk, target, then the columns of `cross_modal`.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    return trained(transfer_cells(dataset, **choices), TABLES["transfer"], train, device, engine, workers)


def category_diversity(
    dataset: str = "synthetic", *, device: str = "auto", engine: str = "auto", workers: str | int = "auto", **choices: Any
) -> DataFrame:
    """How many categories the negatives selected in a step come from (CM-ACC, Figs. 2 and 4).

    Args:
        dataset, device, engine, workers: as for `cross_modal`; the paper's is "ucf101".
        **choices: the other parameters of `category_diversity_cells`.

    Returns:
        One row per sampler, batch and modality: sampler, batch, target (the modality), then ours and the other columns
        of `cross_modal`, where ours is the mean number of distinct categories, not an accuracy; last expected, that of
        as many uniform draws from the training pairs, in closed form.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    cells = category_diversity_cells(dataset, **choices)
    return trained(cells, TABLES["category_diversity"], train, device, engine, workers)


def cross_modal_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    approaches: str = PRINTED_APPROACHES,
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `cross_modal`. Loads the data and trains nothing.

    Args:
        dataset: "synthetic" (embedded), or a name of `data.RECORDINGS`.
        preset: "paper", "quick", "smoke", or "auto": paper on real data, quick on embedded data.
        approaches: comma list of names of `APPROACHES`.
        seeds: comma list of whole numbers.
        variant: a name in `recipe.VARIANTS`, where paper and released code disagree, or "none".
        subset: accept a part of a distribution; every entry then says so.
        precision: "float32", "bfloat16", or "auto": the preset's.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
        FileNotFoundError: if a data set is not there, saying where to get it and where to put it.
    """
    chosen = [APPROACHES[name][1:] for name in _listed("approaches", approaches, APPROACHES)]
    return _cells("cross_modal", dataset, preset, seeds, chosen, variant, subset, precision)


def ohem_vs_active_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    samplers: str = "random,ohem,gradient",
    batches: str | int = "32,64,128",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `ohem_vs_active`. Loads the data and trains nothing.

    Args:
        samplers: comma list of "random", "ohem", "gradient", "feature" and "released".
        batches: comma list; dictionary and pool grow with them.
        dataset, preset, seeds, variant, subset, precision: as for `cross_modal_cells`.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    chosen = [("cmacc", changes) for changes in _sampled(samplers, batches)]
    return _cells("ohem_vs_active", dataset, preset, seeds, chosen, variant, subset, precision)


def dictionary_size_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    methods: str = "smoco,xmoco,cmacc",
    dictionaries: str | int = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `dictionary_size`. Loads the data and trains nothing.

    Args:
        methods: comma list of "smoco", "xmoco" and "cmacc".
        dictionaries: comma list of sizes, multiples of the batch; "auto": 128 to 32,768 for the paper's recipe, else
            64 to 2,048, always times four.
        dataset, preset, seeds, variant, subset, precision: as for `cross_modal_cells`.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    if dictionaries == "auto":
        paper = resolved(dataset, preset, DATASETS, PRESETS) == "paper"
        dictionaries = "128,512,2048,8192,32768" if paper else "64,256,1024,2048"
    names, sizes = _listed("methods", methods, SELF_SUPERVISED), parse_numbers("dictionaries", dictionaries, least=1)
    chosen = [(name, {"dictionary": size}) for name in names for size in sizes]
    return _cells("dictionary_size", dataset, preset, seeds, chosen, variant, subset, precision)


def mutual_information_cells(
    dataset: str = "multidigits",
    *,
    preset: str = "auto",
    methods: str = "smoco,xmoco,cmacc",
    characters: str | int = "1,2,3,4,5,6,7,8,9",
    seeds: str | int = "0",
    variant: str = "none",
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `mutual_information`. Loads the data and trains nothing.

    Args:
        dataset: "multidigits" or "multiomniglot".
        methods: comma list of "scratch", "smoco", "xmoco" and "cmacc".
        characters: comma list of numbers from 1 to 9.
        preset, seeds, variant, precision: as for `cross_modal_cells`.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    choose("dataset", dataset, CHARACTERS)
    names = _listed("methods", methods, ("scratch", *SELF_SUPERVISED))
    numbers = parse_numbers("characters", characters, least=1)
    chosen = [(name, {"characters": number}) for name in names for number in numbers]
    return _cells("mutual_information", dataset, preset, seeds, chosen, variant, False, precision)


def transfer_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    methods: str = "cmacc",
    trunks: str = "auto",
    targets: str = "auto",
    split: str | int = 0,
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `transfer`. Loads the data and trains nothing.

    Args:
        methods: comma list of "scratch", "supervised", "smoco", "xmoco" and "cmacc".
        trunks: comma list of video encoders, "r3d18" and "r2plus1d18"; "auto": the data set's.
        targets: comma list of "ucf101", "hmdb51", "esc50", "synthetic_video" and "synthetic_audio"; "auto": those of
            the data set's recipe.
        split: the official split or fold; 0, their mean. A target that is also pre-trained on needs one, whose training
            part alone is seen.
        dataset, preset, seeds, variant, subset, precision: as for `cross_modal_cells`.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    names = _listed("methods", methods, METHODS)
    changes = {} if targets == "auto" else {"targets": ",".join(_listed("targets", targets, TARGETS))}
    changes |= {"split": int(split)}
    choices = [{}] if trunks == "auto" else [{"video_trunk": trunk} for trunk in _listed("trunks", trunks, PRINTED_TRUNKS)]
    chosen = [(name, changes | trunk) for name in names for trunk in choices]
    return _cells("transfer", dataset, preset, seeds, chosen, variant, subset, precision)


def category_diversity_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    samplers: str = "random,ohem,feature,gradient",
    batches: str | int = "32,64,128",
    iterations: str | int = 300,
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `category_diversity`. Loads the data and trains nothing.

    Args:
        iterations: steps of training.
        dataset, samplers, batches, preset, seeds, variant, subset, precision: as for `ohem_vs_active_cells`.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    steps = parse_number("iterations", iterations, least=1)
    chosen = [("cmacc", changes | {"iterations": steps, "targets": ""}) for changes in _sampled(samplers, batches)]
    return _cells("category_diversity", dataset, preset, seeds, chosen, variant, subset, precision)
