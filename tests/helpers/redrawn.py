"""What is left of drawing figures again from exported runs."""

import hashlib
import json
from unittest.mock import patch
from xml.etree import ElementTree

import pandas as pd
from PIL import Image

from repro import experiments, papers
from repro.papers import drawing
from repro.run.store import COLUMNS


def redraw(folder, runs=None, *saved, pictures=None, titled=True):
    """Write and draw these experiments and pictures, of these runs alone, titles being of other rows.

    Returns the files, and the errors by name.
    """
    runs = pd.DataFrame(columns=COLUMNS) if runs is None else runs
    by_name = {experiment.name: experiment for experiment in saved}
    titles = dict.fromkeys(by_name, ("", {"rows": "", "says": "Of other rows"})) if titled else {}
    with (patch.object(drawing, "everything", lambda: runs.assign(whose="ours")),
          patch.object(papers, "pictures", lambda: pictures or {}),
          patch.object(papers, "saved", lambda: by_name),
          patch.object(papers, "entries", lambda file: titles),
          patch.object(experiments, "find", by_name.__getitem__)):
        return drawing.redraw(folder)


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
