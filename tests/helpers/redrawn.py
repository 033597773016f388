"""What is left of drawing figures again from exported cells."""

import hashlib
import json
from unittest.mock import patch
from xml.etree import ElementTree

import pandas as pd
from asked_for import placed
from PIL import Image

from repro import experiments, papers
from repro.report import logs
from repro.run.export import COLUMNS, finished_cells


def redraw(folder, cells=None, *saved):
    """Write and draw these experiments, of these cells alone, and the logs in the folder; returns the files.

    What draws from several experiments stays away.
    """
    cells = pd.DataFrame(columns=COLUMNS) if cells is None else cells
    with (patch.object(experiments, "everything", lambda: cells), patch.object(papers, "further", dict),
          patch.object(experiments, "experiments", lambda: {experiment.name: experiment for experiment in saved})):
        written, failed = experiments.redraw(folder, folder)
    assert not failed, failed
    return written


def export(store, folder, *before):
    """The logs of a store, whose cells stand among those of stores that were exported before."""
    cells = pd.concat([finished_cells(other) for other in (*before, store)]).drop_duplicates("key", keep="last")
    return logs.export(papers.logs(), placed(cells), store, folder)


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
