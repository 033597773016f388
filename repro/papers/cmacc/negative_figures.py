"""The figure of CM-ACC's negatives: which of them a sampler selects, as pictures, and how large their gradients are."""

import re
import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.audiovisual import synthetic
from repro.papers.cmacc.accuracy_figures import SAMPLERS
from repro.report.elements import only, origin
from repro.report.style import BLUE, COLUMN, settled, styled

SEEN = {"video": "pictures", "audio": "sound"}  # what a network is given of a clip
TILES = 3  # negatives of a row, as in the paper


@styled()
def selected_negatives(table: DataFrame, pictures: Mapping[int, np.ndarray], modality: str = "video") -> Figure:
    """A row for each sampler: a query, and three negatives that are selected for it, with the norms of their gradients.

    Args:
        table: of `audiovisual.figure_data.selected_negatives`, of one seed: modality, sampler, item, category,
            gradient_norm, nearest, nearest_category, seed, preset, dataset.
        pictures: by item, (H, W, 3) uint8, of all in `shown` and their nearest.
        modality: of the negatives; queries are of the other one. Sounds are shown by the picture of their clip.

    Raises:
        ValueError: if the table is empty or mixes seeds, presets or data sets.

    Source: CM-ACC, Fig. 5.
    """
    query, = SEEN.keys() - {modality}
    seed = only(table, "seed")
    given = f"queries of {SEEN[query]}, negatives of {SEEN[modality]} with norms of gradients"
    rows = shown(table[table["modality"] == modality])
    samplers = [name for name in SAMPLERS if name in set(rows["sampler"])]
    names = [_broken(name) for name in {*rows["category"], *rows["nearest_category"]}]
    height = 0.9 + 0.125 * max(len(name.splitlines()) for name in names)
    figure = Figure(figsize=(COLUMN, 0.5 + height * len(samplers)), layout="constrained")
    figure.suptitle(f"{origin(table, f'seed {seed}')}\n{given}")
    for line, sampler in zip(figure.subplots(len(samplers), 1 + TILES, squeeze=False), samplers, strict=True):
        chosen = rows[rows["sampler"] == sampler]
        first, tiles = chosen.iloc[0], line[1:]
        line[0].set_ylabel(SAMPLERS[sampler].label.replace(", ", ",\n").replace(" (", "\n("))
        _tile(line[0], pictures[first["nearest"]], "query", first["nearest_category"])
        line[0].spines[:].set(visible=True, color=BLUE, linewidth=1.5)
        for axes, row in zip(tiles, chosen.itertuples(), strict=False):
            norm = f"{row.gradient_norm:,.0f}" if 100 <= row.gradient_norm < 1e6 else f"{row.gradient_norm:.3g}"
            _tile(axes, pictures[row.item], norm, row.category)
        for axes in tiles[len(chosen):]:
            axes.set_visible(False)
    return settled(figure)


def shown(table: DataFrame) -> DataFrame:
    """What the figure shows of the picks of one modality.

    Returns:
        Of every sampler the rows of the query that most of its picks are nearest to, the first one of equals: those of
        the largest, the middle and the smallest gradient, in this order; of fewer each once.
    """
    parts = []
    for _, picks in table.groupby("sampler", sort=False):
        query = picks["nearest"].mode().min()
        ranked = picks[picks["nearest"] == query].sort_values(["gradient_norm", "item"], ascending=[False, True])
        parts.append(ranked.iloc[sorted({0, len(ranked) // 2, len(ranked) - 1})])
    return pd.concat(parts, ignore_index=True)


def by_sampler(table: DataFrame) -> DataFrame:
    """What tells the samplers' picks apart, one row per modality and sampler.

    Returns:
        modality, sampler, picks, their distinct categories, the median of gradient_norm and of smaller (percent of the
        candidates whose gradient is smaller), and same_category: percent of the picks of the category of the query
        that they are nearest to.
    """
    same = 100.0 * (table["category"] == table["nearest_category"])
    groups = table.assign(same_category=same).groupby(["modality", "sampler"], sort=False)
    return groups.agg(
        picks=("item", "size"),
        categories=("category", "nunique"),
        gradient_norm=("gradient_norm", "median"),
        smaller=("smaller", "median"),
        same_category=("same_category", "mean"),
    ).reset_index()


def drawn_again(table: DataFrame) -> dict[int, np.ndarray]:
    """The pictures of the embedded clips that the figure shows, in the middle of each clip, from their generator."""
    rows = shown(table[table["modality"] == "video"])
    items = sorted({*rows["item"], *rows["nearest"]})
    return dict(zip(items, synthetic.pictures(items)[:, synthetic.FRAMES // 2], strict=True))


def _tile(axes: Axes, picture: np.ndarray, above: str, below: str) -> None:
    """A picture between two texts."""
    axes.imshow(picture, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.set_title(above)
    axes.set_xlabel(_broken(below))
    axes.spines[:].set_visible(False)


def _broken(name: str | int) -> str:
    """A category, such as "rolled, lead", "PlayingGuitar", "ride_bike" or the digit 7, in lines as wide as a tile.

    Parts between commas have lines of their own, three at most.
    """
    parts = re.sub("(?<=[a-z])(?=[A-Z])|_", " ", str(name)).replace(", ", ",\n").splitlines()
    fitting = {"width": 12, "max_lines": 3, "placeholder": " ...", "break_long_words": False}
    return "\n".join(textwrap.fill(part, **fitting) for part in parts)
