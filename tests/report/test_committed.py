"""The committed figures and tables: they follow from the committed cells and say where they come from."""

import json
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from repro import papers
from repro.report.style import COLUMN
from repro.run.export import read_cells
from repro.run.frames import read_csv

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"


def table(name):
    return pd.read_csv(FIGURES / f"{name}.csv")


def test_the_figure_of_printed_numbers_alone_is_of_no_cell():
    assert json.loads(Image.open(FIGURES / "glm_specifications.png").text["Source"]) == {}


@pytest.mark.parametrize(
    "path", sorted({*FIGURES.glob("*.png")} - {FIGURES / "glm_specifications.png"}), ids=lambda path: path.stem
)
def test_a_committed_figure_says_in_its_caption_and_source_where_it_comes_from(path):
    image = Image.open(path)
    assert image.width == int(300 * COLUMN) and round(image.info["dpi"][0]) == 300
    source = json.loads(image.text["Source"])
    cells = read_cells(FIGURES / "cells.csv").set_index("key")
    behind = cells.loc[source["cells"]]
    assert {*source} == {"cells", "seeds", "preset", "dataset"} and len(behind) >= 1
    assert set(behind["dataset"]) == {source["dataset"]} and sorted(set(behind["seed"])) == source["seeds"]
    assert " and ".join(sorted(set(behind["preset"]))) == source["preset"]
    caption = image.text["Description"]
    for text in (source["dataset"], f"Preset: {source['preset']}.", ", ".join(map(str, source["seeds"])),
                 f"{len(set(source['cells']))} cell"):
        assert text in caption
    svg = path.with_suffix(".svg").read_text(encoding="utf-8")
    assert all(key in svg for key in source["cells"]) and "<dc:date>" not in svg


def test_committed_frames_are_of_committed_cells():
    exported = read_cells(FIGURES / "cells.csv").drop_duplicates("key")
    framed = [name for name, declared in papers.pictures().items() if declared.frame]
    assert len(framed) >= 8
    for name in framed:
        origins = read_csv(FIGURES / f"{name}.csv")[["key", "seed", "dataset", "preset"]].drop_duplicates()
        assert len(origins.merge(exported)) == len(origins) >= 1


def test_tables_are_complete_and_random_initialisation_stands_where_it_should():
    for name in ("taxonomy_synthetic", "taxonomy_ucla"):
        assert len(table(name)) == 16 and table(name)["ours"].notna().all()
    rows = table("taxonomy_synthetic").set_index("objectives")
    assert (rows["n_seeds"] == 3).all() and rows["ours"].max() - rows.loc["random", "ours"] >= 15
    rows = table("encoder_collapse_ucla").query("objectives == 'random'").set_index("layers")
    assert list(rows.index) == [1, 2, 3, 4, 5] and (rows["n_seeds"] == 10).all() and (rows["preset"] == "paper").all()
    assert rows["difference"].abs().drop(4).max() < 1.2 and 2.5 < -rows["difference"][4] < 3
