"""The committed figures and tables: they follow from the committed cells and say where they come from."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from repro import papers
from repro.audiovisual import synthetic
from repro.report.logs import read
from repro.report.style import COLUMN
from repro.run.export import read_cells

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"


def table(name):
    return pd.read_csv(FIGURES / f"{name}.csv")


def logs():
    """The committed files from which figures are drawn, beside cells.csv."""
    return sorted({path for name in papers.logs() for path in FIGURES.glob(f"{name}_*.csv")})


def test_the_figure_of_printed_numbers_alone_names_them():
    source = json.loads(Image.open(FIGURES / "glm_specifications.png").text["Source"])
    assert source == {"printed": "taxonomy.csv"}


@pytest.mark.parametrize(
    "path", sorted({*FIGURES.glob("*.png")} - {FIGURES / "glm_specifications.png"}), ids=lambda path: path.stem
)
def test_a_committed_figure_says_in_its_caption_and_source_where_it_comes_from(path):
    image = Image.open(path)
    assert image.width == int(300 * COLUMN) and round(image.info["dpi"][0]) == 300
    source = json.loads(image.text["Source"])
    cells = read_cells(FIGURES / "cells.csv").set_index("key")
    behind = cells.loc[source["cells"]]
    beside = {"printed"} if path.stem.startswith("glm_forest_") else set()  # which fits the printed numbers, too
    assert {*source} == {"cells", "seeds", "preset", "dataset", *beside} and len(behind) >= 1
    assert ("Printed numbers: taxonomy.csv." in image.text["Description"]) == bool(beside)
    assert set(behind["dataset"]) == {source["dataset"]} and sorted(set(behind["seed"])) == source["seeds"]
    assert " and ".join(sorted(set(behind["preset"]))) == source["preset"]
    caption = image.text["Description"]
    for text in (source["dataset"], f"Preset: {source['preset']}.", ", ".join(map(str, source["seeds"])),
                 f"{len(set(source['cells']))} cell"):
        assert text in caption
    svg = path.with_suffix(".svg").read_text(encoding="utf-8")
    assert all(key in svg for key in source["cells"]) and "<dc:date>" not in svg


def test_committed_logs_are_read_with_their_columns_and_are_of_committed_cells():
    exported = read_cells(FIGURES / "cells.csv").drop_duplicates("key")
    found = [read(path, log) for name, log in papers.logs().items() for path in sorted(FIGURES.glob(f"{name}_*.csv"))]
    assert len(found) == len(logs()) >= 5
    for log in found:
        origins = log[["key", "seed", "dataset", "preset"]].drop_duplicates()
        assert len(origins.merge(exported)) == len(origins) >= 1


def test_tables_are_complete_and_random_initialisation_stands_where_it_should():
    for name in ("taxonomy_synthetic", "taxonomy_ucla"):
        assert len(table(name)) == 16 and table(name)["ours"].notna().all()
    rows = table("taxonomy_synthetic").set_index("objectives")
    assert (rows["n_seeds"] == 3).all() and rows["ours"].max() - rows.loc["random", "ours"] >= 15
    rows = table("encoder_collapse_ucla").query("objectives == 'random'").set_index("layers")
    assert list(rows.index) == [1, 2, 3, 4, 5] and (rows["n_seeds"] == 10).all() and (rows["preset"] == "paper").all()
    assert rows["difference"].abs().drop(4).max() < 1.2 and 2.5 < -rows["difference"][4] < 3


@pytest.mark.parametrize("name", ["category_diversity_synthetic", "category_curves_synthetic"])
def test_the_caption_says_which_draws_the_expected_categories_are_of(name):
    clips, _ = synthetic.shares("pretrain", 0.5)  # of every category
    total, missed = int(clips.sum()), {}  # by draws, the chance that none of them is of a category
    for draws in (32, 64, 128):
        left = [[math.comb(total - count, draws) / math.comb(total, draws)] for count in clips.tolist()]
        missed[draws] = np.hstack([(1 - clips[:, None] / total) ** draws, left])
    caption = Image.open(FIGURES / f"{name}.png").text["Description"]
    last = int(re.search(r"uniform draws \(up to version (\d+) of the training with replacement\)", caption)[1])
    version = re.search(r"Cells of version (\d+) of the training", caption)
    kind = int(version is None or int(version[1]) > last)  # with replacement, or without
    for row in table(name).itertuples():
        assert row.expected == pytest.approx((1 - missed[row.batch][:, kind]).sum(), rel=1e-9)
