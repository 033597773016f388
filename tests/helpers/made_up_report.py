"""Parts of a report: notebooks with every kind of output, claims with every verdict, discrepancies, and cells."""

import base64
import io

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pandas import DataFrame
from PIL import Image

from repro.report.verdicts import NOT_MEASURED, VERDICTS

WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = {"bar": {"model_name": "FloatProgressModel", "state": {}},
         "row": {"model_name": "HBoxModel", "state": {"children": ["IPY_MODEL_bar"]}},
         "slider": {"model_name": "IntSliderModel", "state": {}}}


def picture(colour):
    """A small PNG as a notebook stores it."""
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def widget(model, text):
    return new_output("display_data", {WIDGET: {"model_id": model, "version_major": 2}, "text/plain": text})


def notebook(*, error=False, count=1):
    """An executed notebook; `count=None` leaves its last cell unexecuted."""
    outputs = [
        new_output("stream", name="stdout", text="a machine\n"),
        new_output("display_data", {"text/plain": "2 cells of preset quick on digits, 1 finished"},
                   metadata={"repro": {"cells": 2, "preset": "quick", "dataset": "digits", "finished": 1}}),
        widget("row", "cells:   0%|          | 0/2"),
        widget("slider", "IntSlider(value=3)"),
        new_output("display_data", {WIDGET: {"model_id": "box"}, "image/png": picture("teal"), "text/plain": "VBox()"}),
        new_output("display_data", {"application/javascript": "alert(1)", "text/plain": "<Javascript>"}),
        new_output("display_data", {"text/html": "<table><tr><th>objective</th></tr><tr><td>CE</td></tr></table>"}),
        new_output("display_data", {"image/png": picture("navy"), "text/plain": "<Figure>"}),
    ]
    if error:
        outputs.append(new_output("error", ename="ValueError", evalue="no such thing", traceback=["no such thing"]))
    cells = [
        new_markdown_cell("# A made-up notebook\n\nWhat it costs: $2 + 2$ seconds."),
        new_code_cell("show(1 < 2)", outputs=outputs, execution_count=1),
        new_markdown_cell("## The end & more"),
        new_code_cell("last()", execution_count=count),
    ]
    state = {"application/vnd.jupyter.widget-state+json": {"state": STATE, "version_major": 2, "version_minor": 0}}
    return new_notebook(cells=cells, metadata={"widgets": state})


def write_notebooks(folder, **notebooks):
    folder.mkdir(parents=True, exist_ok=True)
    for name, made in notebooks.items():
        nbformat.write(made, folder / f"{name}.ipynb")


def cells():
    """Of two studies: three cells, which differ in layers, not in units, one of them without a probe; and one cell."""
    shared = {"study": "skeletons", "preset": "quick", "digest": "d", "version": 3, "changes": {}, "commit": "c",
              "cost": {"seconds": 5400.0}, "finished": "2026-11-23"}
    rows = [
        {"key": "k1", "dataset": "ucla", "seed": 0, "named": "CE", "linear": 80.25, "layers": 1.0, "objectives": "CE"},
        {"key": "k2", "dataset": "ucla", "seed": 1, "named": "AE", "linear": 9.5, "layers": 2.0, "objectives": "AE"},
        {"key": "k3", "dataset": "digits", "seed": 0, "named": "CE+AD", "linear": None, "layers": 3.0,
         "objectives": "CE+AD"},
    ]
    three = DataFrame([shared | row for row in rows]).assign(units=128)
    one = DataFrame([shared | {"key": "k4", "study": "images", "dataset": "<digits>", "seed": 0, "named": "jcl",
                               "linear": 50.0, "temperature": 0.00012345, "method": "jcl"}])
    return {"skeletons": three, "images": one, "clips": one[:0]}


def claims():
    """One claim of every verdict, of two papers."""
    return DataFrame([
        {"id": f"{paper[0]}{number}", "paper": paper, "place": f"Table {number}", "claim": f"{verdict}: a < b",
         "rule": f"above {number}", "experiment": " ".join(["taxonomy_ucla", "printed/taxonomy"][:number]),
         "verdict": verdict, "level": "printed numbers", "evidence": "1 < 2"}
        for number, verdict in enumerate(VERDICTS) for paper in ("SCE", "JCL")
    ])


def discrepancies():
    """Two of each of two papers, the second of which is not measured."""
    return DataFrame([
        {"id": f"{paper[0]}-{number}", "paper": paper, "place": f"Eq. {number}",
         "paper_says": f"{paper} has x < {number}", "others_say": f"its code y{number}",
         "here": f"as in the code{number}", "measured": measured}
        for paper in ("SCE", "JCL") for number, measured in ((1, "90.0 instead of 80.0 (2 seeds)"), (2, NOT_MEASURED))
    ])
