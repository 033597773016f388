"""What the taxonomy's figures need beside results: accuracies and terms along training."""

from pandas import DataFrame

from repro.papers.taxonomy.tables import TABLES
from repro.report.logs import Log, beside, by_epoch, files, fullest, lines_of, named, of_finished, together
from repro.run.store import Cell, Store
from repro.skeleton.study import ALONG

FROZEN = {"td_queue": "frozen_noise"}  # of a cell whose dictionary of decoded sequences is never refreshed
CONTRASTED = ["objectives", "td_queue"]  # which tell the runs of the contrast of decoders apart
CALLED = ["objectives", "entry", "version"]


def along_training(cells: list[Cell]) -> DataFrame:
    """What was measured along the training of finished cells in REPRO_RUNS; none where nothing was.

    Returns:
        One row per cell, epoch and measure: epoch, measure (one of `ALONG`), value (percent, two decimals), objectives,
        entry (with what departs from the preset), version, and of the cell key, seed, dataset and preset.
    """
    return of_finished(TABLES["taxonomy"], cells, _along_training)


def _along_training(store: Store, cells: DataFrame) -> DataFrame:
    parts = []
    for cell, path in files("probes.jsonl", store, cells):
        rows = lines_of(path, ("step", *ALONG)).melt("step", var_name="measure").round(2)
        rows.insert(0, "epoch", (rows.pop("step") * cell["epochs"] / cell["cost"]["steps"]).round().astype(int))
        rows = rows.sort_values(["epoch", "measure"])
        parts.append(named(rows.assign(**{name: cell[name] for name in CALLED}), cell))
    return together(parts)


def _contrasting_decoders(cells: DataFrame) -> DataFrame:
    """Cells of the paper's recipe with CD, and those which depart from it only in keeping the first dictionary."""
    contrasting = cells["objectives"].str.split("+").map(lambda terms: "CD" in terms)
    cells = cells[contrasting & (cells["preset"] == "paper") & cells["changes"].isin([{}, FROZEN])]
    return cells.sort_values([*CONTRASTED, "seed", "finished"])


def _contrast_by_epoch(store: Store, cells: DataFrame) -> DataFrame:
    """CD along training (nats, mean over the epoch, four digits) and the entries of its dictionary."""
    log = by_epoch(["CD"], ["sequence_dictionary", *CONTRASTED], store, cells)
    return log if log.empty else _first_seeds(log.assign(CD=log["CD"].map(lambda value: float(f"{value:.4g}"))))


def _first_seeds(log: DataFrame) -> DataFrame:
    """The first seed of every objective with either dictionary; of a seed trained twice the last."""
    rows = log.drop_duplicates([*CONTRASTED, "seed", "epoch"], keep="last")
    return rows[rows["seed"] == rows.groupby(CONTRASTED)["seed"].transform("min")]


def _with_first_seeds(others: DataFrame, log: DataFrame) -> DataFrame:
    return _first_seeds(beside(others, log))


LOGS = {
    "along_training": Log(
        "taxonomy", fullest, _along_training, ("epoch", "measure", "value", *CALLED),
        texts=("measure", "objectives", "entry"),
    ),
    "sequence_contrast": Log(
        "taxonomy", _contrasting_decoders, _contrast_by_epoch, ("epoch", "CD", "sequence_dictionary", *CONTRASTED),
        texts=tuple(CONTRASTED),
        join=_with_first_seeds,
    ),
}
