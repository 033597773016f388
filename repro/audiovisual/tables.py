"""CM-ACC's tables: which cells make them, and our numbers beside the printed ones."""

import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pandas import DataFrame, Series, concat
from tqdm.auto import tqdm

from repro import manifest
from repro.audiovisual import MODALITIES, figure_data
from repro.audiovisual.cell import TARGETS, identity_of, train, trained_on
from repro.audiovisual.data import CHARACTERS, RECORDINGS
from repro.audiovisual.pretrain import VERSION
from repro.audiovisual.recipe import METHODS, PRESETS, QUICK, SAMPLERS, SELF_SUPERVISED, VARIANTS
from repro.recipe import choose, parse_number, parse_numbers
from repro.report.comparison import NAMES, TRUNKS, accuracies
from repro.report.printed import printed
from repro.run import device as devices
from repro.run.compare import beside
from repro.run.store import Cell
from repro.run.table import Table, entry_of, resolved, trained

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
PRINTED_SAMPLERS = {"random": "Random", "ohem": "OHEM", "gradient": "Active"}
FIRST_SPLIT = "Table 1"  # whose numbers are no means over splits
GRIDS = "characters"  # the target of grids of characters, read by linear probes
RECORDED = ("synthetic", *RECORDINGS)  # what all tables but `mutual_information` are on
DEPARTING = {  # data sets and targets that are not quite the paper's, with what a reader should know
    "kinetics_sound": "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700",
    "esc10": "classified among all 50 classes",
}
VARIED = {
    "cross_modal": ("extra_layer", "sampler", "targets"),
    "ohem_vs_active": ("sampler", "batch", "targets"),
    "dictionary_size": ("dictionary", "targets"),
    "mutual_information": ("characters",),
    "transfer": ("video_trunk", "split", "targets"),
    "category_diversity": ("sampler", "batch"),
}


def cross_modal(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
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
        std, n_seeds, published, difference, preset, dataset, and trained_on: how many pairs, or recordings with the one
        modality that is needed, were pre-trained on, the mean over seeds. Accuracies in percent. Where a cell departs
        from its preset, or the data from the paper's, a column "departures" before `ours` says how.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`, before anything is computed.
        NonFiniteLoss: if a cell diverges, after the others are done.
    """
    return _trained(cross_modal_cells(dataset, **choices), TABLES["cross_modal"], device, engine, workers)


def ohem_vs_active(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
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
    return _trained(ohem_vs_active_cells(dataset, **choices), TABLES["ohem_vs_active"], device, engine, workers)


def dictionary_size(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
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
    return _trained(dictionary_size_cells(dataset, **choices), TABLES["dictionary_size"], device, engine, workers)


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
    return _trained(cells, TABLES["mutual_information"], device, engine, workers)


def transfer(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
) -> DataFrame:
    """CM-ACC fine-tuned elsewhere, every official split or fold (CM-ACC, Tables 4 to 6).

    Args:
        dataset, device, engine, workers: as for `cross_modal`.
        **choices: the other parameters of `transfer_cells`.

    Returns:
        One row per method, trunk, split and target: method, video_trunk, split (0, their mean), target, then the
        columns of `cross_modal`, then printed_in: the table of the published mean over the splits, and what other
        tables print in its place.

    Raises:
        ValueError, FileNotFoundError, NonFiniteLoss: as `cross_modal`.
    """
    return _trained(transfer_cells(dataset, **choices), TABLES["transfer"], device, engine, workers)


def category_diversity(
    dataset: str = "synthetic",
    *,
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    **choices: Any,
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
    return _trained(cells, TABLES["category_diversity"], device, engine, workers)


def pretext_accuracy(cells: list[Cell], device: str = "auto") -> DataFrame:
    """How often a query finds its positive first, by category (CM-ACC, Fig. 6), of finished cells.

    Args:
        cells: of `transfer_cells`, or of another table; those of `asked` count.
        device: as for `cross_modal`.

    Returns:
        One row per cell, kind of queries and category, see `figure_data.pretext_accuracy`; last the cell's entry.

    Raises:
        ValueError: as `asked`.
    """
    found = [figure_data.pretext_accuracy(cell, devices.resolve(device)).assign(entry=cell.entry)
             for cell in asked(cells)]
    return concat(found, ignore_index=True)


def selected_negatives(cells: list[Cell], device: str = "auto") -> DataFrame:
    """What every sampler picks from one pool (CM-ACC, Fig. 5), of the finished cell that `selecting` gives.

    Args:
        cells: of `transfer_cells`, or of another table.
        device: as for `cross_modal`.

    Returns:
        See `figure_data.selected_negatives`.

    Raises:
        ValueError: as `selecting`.
    """
    return figure_data.selected_negatives(selecting(cells), devices.resolve(device))


def asked(cells: list[Cell]) -> list[Cell]:
    """The cells whose queries have a positive in the other modality: those of XMoCo and CM-ACC.

    Raises:
        ValueError: if no cell is of these methods.
    """
    return _of_methods(cells, "xmoco", "cmacc")


def selecting(cells: list[Cell]) -> Cell:
    """The first cell of CM-ACC, whose negatives have gradients to select them by.

    Raises:
        ValueError: if no cell is of CM-ACC, or the first one has normalised embeddings.
    """
    return figure_data.with_gradients(_of_methods(cells, "cmacc")[0])


def cross_modal_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    approaches: str = PRINTED_APPROACHES,
    targets: str = "auto",
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
        targets: comma list of names of `cell.TARGETS`, where to fine-tune; "auto": those of the data set's recipe.
        seeds: comma list of whole numbers.
        variant: a name in `recipe.VARIANTS`, where paper and released code disagree, or "none"; none that changes what
            the table varies itself.
        subset: accept a part of a distribution; every entry then says so.
        precision: "float32", "bfloat16", or "auto": the preset's.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
        FileNotFoundError: if a data set is not there, saying where to get it and where to put it.
    """
    names, places = _listed("approaches", approaches, APPROACHES), _targeted(targets)
    chosen = [(method, changes | places) for _, method, changes in map(APPROACHES.get, names)]
    return _cells("cross_modal", dataset, preset, seeds, chosen, variant, subset, precision)


def ohem_vs_active_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    samplers: str = "random,ohem,gradient",
    batches: str | int = "auto",
    targets: str = "auto",
    redundancy: str | float = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `ohem_vs_active`. Loads the data and trains nothing.

    Args:
        samplers: comma list of "random", "ohem", "gradient", "feature" and "released".
        batches: comma list of numbers M; "auto": 32, 64 and 128, of recordings 4, 8 and 16 save for the paper's recipe,
            in which dictionary and pool grow with M. In the others all are trained equally long with one dictionary.
        redundancy: of "synthetic" alone, from 0 up to, not including, 1, see `synthetic.load`; "auto": 0.5.
        dataset, preset, targets, seeds, variant, subset, precision: as for `cross_modal_cells`.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    sampled, places = _sampled(samplers, _batches(batches, dataset, preset)), _targeted(targets)
    chosen, departures = [("cmacc", changes | places) for changes in sampled], _redundant(redundancy, dataset)
    return _cells("ohem_vs_active", dataset, preset, seeds, chosen, variant, subset, precision, departures)


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
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `dictionary_size`. Loads the data and trains nothing.

    Args:
        methods: comma list of "smoco", "xmoco" and "cmacc".
        dictionaries: comma list of sizes, multiples of the batch; "auto": 128 to 32,768 for the paper's recipe, else
            64, 256 and 1,024, of recordings with pictures 8, 16 and 24.
        dataset, preset, targets, seeds, variant, subset, precision: as for `cross_modal_cells`.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    if dictionaries == "auto":
        paper, small = "128,512,2048,8192,32768", "64,256,1024" if dataset in QUICK else "8,16,24"
        dictionaries = paper if resolved(dataset, preset, RECORDED, PRESETS) == "paper" else small
    names, sizes = _listed("methods", methods, SELF_SUPERVISED), parse_numbers("dictionaries", dictionaries, least=1)
    chosen = [(name, {"dictionary": size} | _targeted(targets)) for name in names for size in sizes]
    return _cells("dictionary_size", dataset, preset, seeds, chosen, variant, subset, precision)


def mutual_information_cells(
    dataset: str = "multidigits",
    *,
    preset: str = "auto",
    methods: str = "smoco,xmoco,cmacc",
    characters: str | int = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `mutual_information`. Loads the data and trains nothing.

    Args:
        dataset: "multidigits" or "multiomniglot".
        methods: comma list of "scratch", "smoco", "xmoco" and "cmacc".
        characters: comma list of numbers from 1 to 9; "auto": all of them, 2 for smoke runs.
        preset, seeds, variant, precision: as for `cross_modal_cells`.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    names = _listed("methods", methods, ("scratch", *SELF_SUPERVISED))
    if characters == "auto":
        characters = "2" if resolved(dataset, preset, CHARACTERS, PRESETS) == "smoke" else "1,2,3,4,5,6,7,8,9"
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
    split: str | int = "0",
    clips: str | int = "auto",
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
        split: comma list of official splits or folds, one encoder for each; 0, their mean with one encoder for all. A
            target that is also pre-trained on needs the former, as it sees the training part of its split alone.
        clips: pre-trained on so many, drawn at random once, or 0, all there are; "auto": the data set's, 240,000 of
            "kinetics700" as in the paper, whose other draw of so many is from "audioset", and all of the others.
        dataset, preset, seeds, variant, subset, precision: as for `cross_modal_cells`.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    names = _listed("methods", methods, METHODS)
    changes = _targeted(targets)
    splits = [{"split": parse_number("split", number)} for number in dict.fromkeys(str(split).split(","))]
    choices: list[dict[str, Any]] = [{}]
    if trunks != "auto":
        choices = [{"video_trunk": trunk} for trunk in _listed("trunks", trunks, TRUNKS)]
    chosen = [(name, changes | trunk | split) for name in names for trunk in choices for split in splits]
    drawn = {} if clips == "auto" else {"clips": parse_number("clips", clips)}
    return _cells("transfer", dataset, preset, seeds, chosen, variant, subset, precision, drawn)


def category_diversity_cells(
    dataset: str = "synthetic",
    *,
    preset: str = "auto",
    samplers: str = "random,ohem,feature,gradient",
    batches: str | int = "auto",
    iterations: str | int = "auto",
    redundancy: str | float = "auto",
    seeds: str | int = "0",
    variant: str = "none",
    subset: bool = False,
    precision: str = "auto",
) -> list[Cell]:
    """The cells behind `category_diversity`. Loads the data and trains nothing.

    Args:
        iterations: steps of training; "auto": 300, 2 for smoke runs.
        dataset, samplers, batches, redundancy, preset, seeds, variant, subset, precision: as for
            `ohem_vs_active_cells`.

    Raises:
        ValueError, FileNotFoundError: as `cross_modal_cells`.
    """
    smoke = resolved(dataset, preset, RECORDED, PRESETS) == "smoke"
    usual: dict[str, Any] = {"targets": "", "iterations": 2 if smoke else 300}
    departures = {} if iterations == "auto" else {"iterations": parse_number("iterations", iterations, least=1)}
    departures |= _redundant(redundancy, dataset)
    chosen = [("cmacc", usual | changes) for changes in _sampled(samplers, _batches(batches, dataset, preset))]
    return _cells("category_diversity", dataset, preset, seeds, chosen, variant, subset, precision, departures)


def cross_modal_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `cross_modal` from finished cells.

    Args:
        results: one row per cell with entry, seed, the accuracy on every target, and the table's fields.
        preset, dataset: of these cells.
    """
    rows = _by_target(results)
    names = {(method, *_told(changes)): title for title, method, changes in APPROACHES.values()}
    told = zip(rows["method"], rows["extra_layer"], rows["sampler"], strict=True)
    rows.insert(0, "approach", [names[each] for each in told])
    return _beside(VARIED["cross_modal"], rows, ["approach"], _printed_approach, preset, dataset)


def ohem_vs_active_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `ohem_vs_active` from finished cells; `results` as for `cross_modal_table`."""
    rows = _by_target(results)
    return _beside(VARIED["ohem_vs_active"], rows, ["sampler", "batch"], _printed_sampler, preset, dataset)


def dictionary_size_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `dictionary_size` from finished cells; `results` as for `cross_modal_table`."""
    rows = _by_target(results)
    return _beside(VARIED["dictionary_size"], rows, ["method", "dictionary"], _not_printed, preset, dataset)


def mutual_information_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `mutual_information` from finished cells; `results` as for `cross_modal_table`."""
    rows = _by_target(results)
    table = _beside(VARIED["mutual_information"], rows, ["method", "characters"], _not_printed, preset, dataset)
    held_out = rows.groupby("entry", sort=False)["linear_held_out"].mean()
    return table.assign(linear_held_out=held_out.to_numpy())


def transfer_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `transfer` from finished cells; `results` as for `cross_modal_table`.

    The cells of all splits of a target, one encoder each, give their mean; only means have printed numbers.
    """
    rows = _over_splits(_by_target(results))
    columns = ["method", "video_trunk", "split"]
    table = _beside(VARIED["transfer"], rows, columns, _printed_transfer, preset, dataset)
    entries = rows.drop_duplicates("entry")
    return table.assign(printed_in=[_printed_in(row, dataset) for _, row in entries.iterrows()])


def category_diversity_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `category_diversity` from finished cells; `results` as for `cross_modal_table`."""
    parts = [
        results.assign(target=modality, value=results[f"categories_{modality}"], expected=results["expected"])
        for modality in MODALITIES
    ]
    rows = _with_entry(concat(parts, ignore_index=True))
    table = _beside(VARIED["category_diversity"], rows, ["sampler", "batch"], _not_printed, preset, dataset)
    return table.assign(expected=rows.groupby("entry", sort=False)["expected"].mean().to_numpy())


def _by_target(results: DataFrame) -> DataFrame:
    """One row per cell and target, the accuracy there as `value`; every target of an entry is an entry of its own.

    Cells that differ in the list of their targets alone are fine-tuned from the same encoder: they count once.
    """
    parts = []
    for target in dict.fromkeys(name for targets in results["targets"] for name in targets.split(",")):
        measured = results[[target in targets.split(",") for targets in results["targets"]]]
        parts.append(measured.assign(target=target, value=measured["linear" if target == GRIDS else target]))
    rows = _with_entry(concat(parts, ignore_index=True))
    rows["entry"] = rows["entry"].str.replace(r", targets=\S+(?=, )", "", regex=True)
    return rows.drop_duplicates(["entry", "seed"], keep="last")


def _over_splits(rows: DataFrame) -> DataFrame:
    """The rows of `_by_target`, where a seed has every split of a target their mean instead, as split 0."""
    entry = rows["entry"].str.replace(r"(?<=, split=)\d+", "0", regex=True)
    single = rows["split"] > 0
    found = rows["split"].where(single).groupby([entry, rows["seed"]]).transform("nunique")
    official = rows["target"].map(lambda name: len(TARGETS[name].splits))
    whole = (official > 1) & (found == official)
    parts = rows[whole & single].assign(entry=entry, split=0)
    means = parts.drop_duplicates(["entry", "seed"]).drop(columns=["value", "trained_on"]).merge(
        parts.groupby(["entry", "seed"], as_index=False)[["value", "trained_on"]].mean()
    )
    return concat([rows[~(whole & single)], means], ignore_index=True).drop_duplicates(["entry", "seed"])


def _with_entry(rows: DataFrame) -> DataFrame:
    """The rows of an entry next to one another, in the order in which entries came."""
    order = {entry: place for place, entry in enumerate(dict.fromkeys(rows["entry"]))}
    rows = rows.sort_values("entry", key=lambda entries: entries.map(order), kind="stable", ignore_index=True)
    return rows.assign(entry=rows["entry"] + ", target=" + rows["target"])


def _beside(
    varied: tuple[str, ...],
    rows: DataFrame,
    columns: list[str],
    published: Callable[[Series, str], float],
    preset: str,
    dataset: str,
) -> DataFrame:
    """Our values beside the printed ones, one row per entry of `rows`, which has a value for every cell."""
    entries = rows.drop_duplicates("entry").set_index("entry")
    found = [departures(row, entry, varied, dataset) for entry, row in entries.iterrows()]
    columns = [*columns, "target"]
    if any(found):
        entries["departures"] = found
        columns.append("departures")
    comparable = None
    if not manifest.embedded(dataset):
        comparable = Series({entry: published(row, dataset) for entry, row in entries.iterrows()}, dtype=float)
    table = beside(entries[columns], rows, comparable, preset=preset, dataset=dataset)
    trained_on = rows.groupby("entry")["trained_on"].mean().round().astype(int)
    return table.assign(trained_on=trained_on).reset_index(drop=True)


def departures(row: Mapping[str, Any], entry: str, varied: tuple[str, ...], dataset: str) -> str:
    """What departs from the preset, or in the data from the paper's; empty if nothing does.

    Args:
        row: method, target ("" if there is none), and what the table varies but targets.
        entry: what it says beside these departs from the preset.
        varied: of the table, see `VARIED`.
        dataset: of which it may be known how it departs, as of the target.
    """
    usual = row["method"] + "".join(f", {field}={row[field]}" for field in varied if field != "targets")
    own = entry.removeprefix(usual).removesuffix(f", target={row['target']}").removeprefix(", ")
    seen = () if row["method"] == "scratch" else (manifest.plain(dataset),)
    return "; ".join(filter(None, (own, *map(DEPARTING.get, (*seen, row["target"])))))


def _printed_approach(row: Series, dataset: str) -> float:
    """Of Tables 1 and 2, which are on Kinetics-Sound and the first split."""
    if dataset != "kinetics_sound":
        return float("nan")
    if row["approach"] == APPROACHES["cmacc_feature"][0]:
        return _cell("cmacc_table2", "embedding_space", "Feature Embedding", NAMES.get(row["target"]))
    return _cell("cmacc_table1", "approach", row["approach"], NAMES.get(row["target"]))


def _printed_sampler(row: Series, dataset: str) -> float:
    """Of Table 3, which is on Kinetics-700."""
    if dataset != "kinetics700" or row["sampler"] not in PRINTED_SAMPLERS:
        return float("nan")
    column = f"{NAMES.get(row['target'])}_M{row['batch']}"
    return _cell("cmacc_table3", "sampler", PRINTED_SAMPLERS[row["sampler"]], column)


def _printed_transfer(row: Series, dataset: str) -> float:
    """Of Tables 4 to 6, which are means over splits; of a data set used in several sizes that of the row's."""
    return next((value for table, value in _comparable(row, dataset).items() if table != FIRST_SPLIT), float("nan"))


def _printed_in(row: Series, dataset: str) -> str:
    """The table that `_printed_transfer` is of, and tables that contradict it: "Table 5 (Table 6: 79.2)"."""
    usual, *others = [*_comparable(row, dataset).items()] or [("", 0.0)]
    if usual[0] in ("", FIRST_SPLIT):
        return ""
    return usual[0] + "".join(f" ({table}: {value:g})" for table, value in others)


def _comparable(row: Series, dataset: str) -> dict[str, float]:
    """What is printed of a row's encoder, by table, if the row is of all splits."""
    if row["split"] != 0 or manifest.embedded(dataset):
        return {}
    return accuracies(row["method"], dataset, row["video_trunk"], row["clips"], row["target"])


def _not_printed(row: Series, dataset: str) -> float:
    return float("nan")


def _cell(table: str, key: str, value: str, column: str | None) -> float:
    """One printed number, NaN if there is no such row or column."""
    rows = printed(table).set_index(key)
    return float(rows.loc[value, column]) if value in rows.index and column in rows.columns else float("nan")


def _of_methods(cells: list[Cell], *methods: str) -> list[Cell]:
    """Those of some methods, at least one."""
    found = [cell for cell in cells if cell.recipe.method in methods]
    if not found:
        others = ", ".join(sorted({cell.recipe.method for cell in cells}))
        raise ValueError(f"of the cells, which are of {others}, one should be of {' or '.join(methods)}; choose others")
    return found


def _told(changes: dict[str, Any]) -> tuple[bool, str]:
    """What tells approaches of one method apart."""
    return changes.get("extra_layer", True), changes.get("sampler", "gradient")


def _sampled(samplers: str, batches: str | int) -> list[dict[str, Any]]:
    """Changes of a recipe for every sampler and batch."""
    names, sizes = _listed("samplers", samplers, SAMPLERS), parse_numbers("batches", batches, least=1)
    return [{"sampler": name, "batch": size} for name in names for size in sizes]


def _batches(batches: str | int, dataset: str, preset: str) -> str | int:
    """The batches asked for, or those that the data set and the preset usually have."""
    if batches != "auto":
        return batches
    paper = resolved(dataset, preset, RECORDED, PRESETS) == "paper"
    return "32,64,128" if paper or dataset in QUICK else "4,8,16"


def _targeted(targets: str) -> dict[str, Any]:
    """Changes of a recipe for a list of targets."""
    return {} if targets == "auto" else {"targets": ",".join(_listed("targets", targets, TARGETS))}


def _redundant(redundancy: str | float, dataset: str) -> dict[str, Any]:
    """Changes of a recipe for a redundancy of the embedded clips."""
    if redundancy == "auto":
        return {}
    if dataset != "synthetic":
        raise ValueError(f"redundancy={redundancy!r} is of dataset='synthetic' alone, not of {dataset!r}; leave it out")
    try:
        return {"redundancy": float(redundancy)}
    except ValueError as error:
        raise ValueError(f"redundancy={redundancy!r} should be a number from 0 up to, not including, 1") from error


def _trained(cells: list[Cell], table: Table, device: str, engine: str, workers: str | int) -> DataFrame:
    """As `run.table.trained`; says first how many clips are trained on, as some may lack what a method needs."""
    for line in dict.fromkeys(filter(None, map(trained_on, (cell.recipe for cell in cells)))):
        tqdm.write(line, file=sys.stderr)
    return trained(cells, table, train, device, engine, workers)


def _listed(parameter: str, value: str, allowed: Collection[str]) -> list[str]:
    """Distinct names of a comma list, each one of those allowed."""
    return list(dict.fromkeys(choose(parameter, name.strip(), allowed) for name in str(value).split(",")))


def _cells(
    table: str,
    dataset: str,
    preset: str,
    seeds: str | int,
    chosen: list[tuple[str, dict[str, Any]]],
    variant: str,
    subset: bool,
    precision: str,
    departures: Mapping[str, Any] | None = None,
) -> list[Cell]:
    """Every method and its changes with every seed, seed by seed, so that a table killed half-way has whole columns.

    Departures are changes that the entry names where they differ from what the table usually has.
    """
    preset = resolved(dataset, preset, CHARACTERS if table == "mutual_information" else RECORDED, PRESETS)
    allowed = (name for name, changes in VARIANTS.items() if changes.keys().isdisjoint(VARIED[table]))
    choose("variant", variant, ("none", *allowed))
    choose("precision", precision, ("auto", "float32", "bfloat16"))
    numbers = parse_numbers("seeds", seeds)  # before data are read
    given = VARIANTS.get(variant, {}) | dict(departures or {})
    given |= {} if precision == "auto" else {"precision": precision}
    if variant != "none" and VARIANTS[variant].items() <= PRESETS[preset](dataset, "cmacc").to_dict().items():
        raise ValueError(f"variant={variant!r} changes nothing of the {preset} recipe on {dataset}; leave it out")
    made = []
    for method, changes in chosen:
        usual = PRESETS[preset](dataset, method, subset=subset, **changes)
        recipe = PRESETS[preset](dataset, method, subset=subset, **(changes | given))
        made.append((entry_of(method, recipe, usual, VARIED[table]), recipe))
    data = [identity_of(recipe) for _, recipe in made]
    return [
        Cell(table, entry, recipe, seed, preset, *each, VERSION)
        for seed in numbers
        for (entry, recipe), each in zip(made, data, strict=True)
    ]


def _table(name: str, run: Callable, cells: Callable, layout: Callable, example: tuple[str, str]) -> Table:
    varied = VARIED[name]
    return Table(
        run=run,
        cells=cells,
        layout=layout,
        methods=METHODS,
        fields=("method", *dict.fromkeys((*varied, "extra_layer", "sampler", "targets", "clips"))),
        varied=varied,
        presets=PRESETS,
        example=example,
    )


SOUND, LARGE = ("kinetics_sound", "cmacc"), ("kinetics700", "cmacc")
CLIPS, GRID = ("ucf101", "cmacc"), ("multiomniglot", "cmacc")
TABLES = {
    "cross_modal": _table("cross_modal", cross_modal, cross_modal_cells, cross_modal_table, SOUND),
    "ohem_vs_active": _table("ohem_vs_active", ohem_vs_active, ohem_vs_active_cells, ohem_vs_active_table, LARGE),
    "dictionary_size": _table("dictionary_size", dictionary_size, dictionary_size_cells, dictionary_size_table, LARGE),
    "mutual_information": _table(
        "mutual_information", mutual_information, mutual_information_cells, mutual_information_table, GRID
    ),
    "transfer": _table("transfer", transfer, transfer_cells, transfer_table, LARGE),
    "category_diversity": _table(
        "category_diversity", category_diversity, category_diversity_cells, category_diversity_table, CLIPS
    ),
}
