"""Our numbers beside the printed ones, in the rows and columns of CM-ACC's tables."""

from collections.abc import Callable, Mapping
from typing import Any

from pandas import DataFrame, Series, concat

from repro import manifest
from repro.audiovisual import MODALITIES
from repro.audiovisual.cell import TARGETS
from repro.audiovisual.table_cells import APPROACHES, VARIED
from repro.report.comparison import NAMES, accuracies
from repro.report.printed import printed
from repro.run.compare import beside
from repro.run.table import versions_of

PRINTED_SAMPLERS = {"random": "Random", "ohem": "OHEM", "gradient": "Active"}
FIRST_SPLIT = "Table 1"  # whose numbers are no means over splits
GRIDS = "characters"  # the target of grids of characters, read by linear probes
DEPARTING = {  # data sets and targets that are not quite the paper's, with what a reader should know
    "kinetics_sound": "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700",
    "esc10": "classified among all 50 classes",
}


def cross_modal_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `cross_modal` from finished cells.

    Args:
        results: one row per cell with entry, seed, the accuracy on every target, and the table's fields.
        preset, dataset: of these cells.
    """
    rows = _by_target(results)
    names = {(method, *_told(changes)): title for title, method, changes in APPROACHES.values()}
    told = zip(rows["method"], rows["extra_layer"], rows["sampler"], strict=True)
    rows.insert(0, "approach", [names.get(each) or _unprinted(*each) for each in told])
    return _beside(VARIED["cross_modal"], rows, ["approach"], _printed_approach, preset, dataset)


def _unprinted(method: str, extra_layer: bool, sampler: str) -> str:
    """What to call an approach that is none of the table's."""
    return f"{method}, {sampler}" + ("" if extra_layer else " (w/o fcl)")


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
    return _beside(VARIED["mutual_information"], rows, ["method", "characters"], _not_printed, preset, dataset)


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
    official = rows["target"].map({name: len(target.splits) for name, target in TARGETS.items()})  # none of characters
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
    """Our values beside the printed ones, one row per entry of `rows`, which has a value for every cell.

    Of probes of characters the accuracy on drawings never seen is last.
    """
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
    also = ["linear_held_out"] if GRIDS in set(rows["target"]) else []
    means = rows.groupby("entry")[["trained_on", *also]].mean()
    table = table.join(means.assign(trained_on=means["trained_on"].round().astype(int)))
    return table.join(versions_of(rows)).reset_index(drop=True)


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


def _told(changes: dict[str, Any]) -> tuple[bool, str]:
    """What tells approaches of one method apart."""
    return changes.get("extra_layer", True), changes.get("sampler", "gradient")


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
