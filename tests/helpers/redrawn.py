"""What is left of drawing figures again from exported cells."""

import hashlib
import json
from xml.etree import ElementTree

import pandas as pd
from PIL import Image

from repro import papers
from repro.report import redraw as redrawing
from repro.run.export import finished_cells
from repro.table import standing


def redraw(cells, folder, *, drawn=True):
    """Every table, and every log in the folder, of stored cells; without their figures, which take longest."""
    tables = papers.tables()
    figures = papers.drawings() if drawn else {}
    return redrawing.redraw(tables, standing(tables.values(), cells), figures, papers.logs(), folder)


def export(store, folder, *before):
    """The logs of a store, whose cells stand among those of stores that were exported before."""
    cells = pd.concat([finished_cells(other) for other in (*before, store)]).drop_duplicates("key", keep="last")
    return papers.export_logs(cells, store, folder)


def hashes(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def told(stem):
    """What both files of a figure say of it: its caption, and what it was drawn from."""
    image = Image.open(stem.with_suffix(".png"))
    drawn = ElementTree.parse(stem.with_suffix(".svg"))
    elements = {element.tag.rpartition("}")[2]: element for element in drawn.iter()}
    assert " ".join(elements["source"].itertext()).strip() == image.text["Source"]
    assert elements["description"].text == image.text["Description"]
    return image.text["Description"], json.loads(image.text["Source"])
