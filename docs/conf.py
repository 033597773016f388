"""What Sphinx is told of the book, which `repro report` gathers and builds. Read, a page asks nobody for anything."""

from pathlib import Path
from urllib.parse import urlsplit

import nh3
import plotly
from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml

project = "repro"
extensions = ["myst_nb"]
root_doc = "index"
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "attrs_inline"]
nb_execution_mode = "off"     # `repro report` has executed them
nb_output_stderr = "remove"   # bars of progress
nb_render_markdown_format = "myst"  # so that links of outputs lead to pages
nb_ipywidgets_js = {}         # widgets are for JupyterLab; here their pictures stay
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
html_theme = "sphinx_book_theme"
html_title = "repro"
html_static_path = [str(Path(plotly.__file__).parent / "package_data" / "plotly.min.js")]
html_theme_options = {"home_page_in_toc": True, "show_navbar_depth": 1, "use_fullscreen_button": False,
                      "footer_content_items": []}
html_context = {"default_mode": "auto"}  # light or dark, as the reader has it
html_math_renderer = "mathml"

POLICY = ("default-src 'self'; script-src 'self' 'unsafe-inline' blob:; style-src 'self' 'unsafe-inline'; "
          "img-src 'self' data:; font-src 'self' data:; base-uri 'none'; form-action 'self'")
STYLE = """article code, article code .pre { overflow-wrap: anywhere; white-space: normal !important }
.dt-container, .dt-container select, .dt-container input { background: transparent !important; color: inherit }
.dt-container thead input { width: 7em }
.dt-container td:nth-child(3) { white-space: normal !important; min-width: 14em }
.bd-content:not(:has(.bd-sidebar-secondary)) .bd-article-container { max-width: none !important }
.cell_output table :is(td, th) { padding: 0.2em 0.5em !important }
div[data-figure] { overflow-x: auto } div[data-figure] > div { min-width: 40em }"""
DRAW = """addEventListener("DOMContentLoaded", () => {
    for (const place of document.querySelectorAll("div[data-figure]")) {
        const figure = JSON.parse(place.dataset.figure), config = {responsive: true, displaylogo: false}
        Plotly.newPlot(place.appendChild(document.createElement("div")), {...figure, config})
    }
})"""
HEAD = (f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="generator" content="repro report">'
        f"<style>{STYLE}</style>")


def add_policy(app, page, template, context, doctree):
    """Forbid every page to the browser to load from elsewhere, whatever stands in it."""
    context["metatags"] = HEAD + context.get("metatags", "")
    if "data-figure" in context.get("body", ""):
        app.add_js_file("plotly.min.js", loading_method="defer")
        app.add_js_file(None, body=DRAW)


def clean_outputs(app, doctree, page):
    """Leave of a notebook's HTML what shows, and nothing that runs, loads from elsewhere or leads away by itself."""
    if not page.startswith("notebooks/"):
        return
    for raw in [*doctree.findall(nodes.raw)]:
        html = nh3.clean(raw.astext(), attributes=nh3.ALLOWED_ATTRIBUTES | {"div": {"data-figure"}},
                         attribute_filter=keep_attribute, url_schemes={"http", "https", "data"})
        raw.replace_self(nodes.raw("", html, format="html"))
    for image in [*doctree.findall(nodes.image)]:
        if urlsplit(image["uri"]).netloc:
            image.replace_self(nodes.Text(image.get("alt", "a picture that lies elsewhere")))


def keep_attribute(element, name, value):
    """An attribute's value, or None to leave it out: pictures are embedded, links lead to pages."""
    if name == "src":
        return value if value.startswith("data:image/") else None
    return None if value.strip().lower().startswith("data:") else value


def write_math(translator, node):
    """A formula as MathML, which browsers show without a script; one that cannot be read as it was typed."""
    try:
        formula = tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block))
    except MathError:
        formula = f"<code>{translator.encode(node.astext())}</code>"
    translator.body.append(formula)
    raise nodes.SkipNode


def setup(app):
    """What Sphinx calls first."""
    app.connect("html-page-context", add_policy)
    app.connect("doctree-resolved", clean_outputs)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
