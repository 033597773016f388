"""What CM-ACC's figures need beside results: categories along training, pretext accuracies, selected negatives."""

import functools

import pandas as pd
from pandas import DataFrame

from repro.audiovisual.study import CLIPS
from repro.data import manifest
from repro.papers.cmacc.tables import TABLES, with_notes
from repro.recipe import in_words
from repro.report.logs import Log, first, fullest, lines_of, named, progress, seeds_of_first, usual
from repro.run.export import rows_of
from repro.run.store import Cell, Store


def category_curves(cells: list[Cell]) -> DataFrame:
    """From how many categories the negatives came, along the training of finished cells in REPRO_RUNS.

    Returns:
        One row per cell and report: step, categories_video, categories_audio (distinct categories of the negatives
        selected in a step, mean over the steps since the last report), sampler, batch (M), expected (categories of M
        uniform draws), and of the cell key, seed, dataset and preset; where any cell departs from its table's rows, or
        the data from the paper's, `departures` says how.

    Raises:
        FileNotFoundError: if none of the cells was trained there.
    """
    store = Store(manifest.runs_root())
    found = _curves(store, TABLES["category_diversity"].select(CLIPS.tidy(rows_of(cells, store))))
    if found.empty:
        raise FileNotFoundError(f"{store.root} has no progress.jsonl of any of these {len(cells)} cells; run them")
    return found


def _curves(store: Store, cells: DataFrame) -> DataFrame:
    """Distinct categories of the negatives selected in a step, at every report, and what uniform draws would give."""
    parts = []
    for cell in with_notes(cells.assign(target="")).to_dict("records"):
        path = progress(store, cell["key"])
        if path:
            counts = lines_of(path, ("step", "categories_video", "categories_audio"))
            counts = counts.assign(**{name: cell[name] for name in ("sampler", "batch", "expected")})
            parts.append(named(counts, cell).assign(departures=in_words(cell["departures"])))
    log = pd.concat(parts, ignore_index=True) if parts else DataFrame(columns=["departures"])
    return log if log["departures"].any() else log.drop(columns="departures")


def _by_batch(cells: DataFrame) -> DataFrame:
    return usual(cells).sort_values("batch", kind="stable")


LOGS = {
    "category_curves": Log(
        "category_diversity", _by_batch, _curves,
        ("step", "categories_video", "categories_audio", "sampler", "batch", "expected"),
        texts=("sampler", "departures"),
    ),
    "pretext_accuracy": Log(
        "transfer", fullest, functools.partial(seeds_of_first, "pretext_accuracy.csv"),
        ("query", "category", "pairs", "accuracy", "accuracy_renewed", "method"),
        texts=("query", "category", "method"),
    ),
    "selected_negatives": Log(
        "transfer", fullest, functools.partial(first, "selected_negatives.csv"),
        ("modality", "sampler", "pick", "item", "category", "gradient_norm", "smaller", "nearest", "nearest_category"),
        texts=("modality", "sampler", "category", "nearest_category"),
    ),
}
