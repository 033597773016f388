"""What is saved of a figure."""

import json

from matplotlib.figure import Figure
from PIL import Image

from repro.report import style


def test_a_figure_is_saved_in_a_new_folder_and_says_what_it_shows_and_of_what(tmp_path):
    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([1, 2])
    svg, png = style.save(figure, tmp_path / "new" / "folder" / "line", "A line.", {"seeds": [1], "cells": []})
    assert sorted((tmp_path / "new" / "folder").iterdir()) == [png, svg] and png.name == "line.png"
    with Image.open(png) as picture:
        assert picture.size == (style.DOTS, style.DOTS)
        assert picture.text["Description"] == "A line." and json.loads(picture.text["Source"])["seeds"] == [1]
    assert "A line." in svg.read_text() and '{"cells": [], "seeds": [1]}' in svg.read_text().replace("&quot;", '"')
