"""What Sphinx is told of the book, which `repro report` gathers and builds. Read, a page asks nobody for anything."""

from pathlib import Path

import nh3
import plotly
from docutils import nodes

project = "repro"
extensions = ["myst_nb"]
root_doc = "index"
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_inline"]
nb_execution_mode = "off"     # `repro report` has executed them
nb_merge_streams = True
nb_output_stderr = "remove"   # bars of progress
nb_render_markdown_format = "myst"  # so that links of outputs lead to pages
nb_ipywidgets_js = {}         # widgets are for JupyterLab; here their pictures stay
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None), ("html", "text/latex", None)]
html_theme = "sphinx_book_theme"
html_title = "repro"
html_static_path = ["book.css", "figures.js", str(Path(plotly.__file__).parent / "package_data" / "plotly.min.js")]
html_css_files = ["book.css"]
html_theme_options = {"home_page_in_toc": True, "show_navbar_depth": 1, "use_fullscreen_button": False,
                      "navbar_persistent": [], "footer_content_items": []}
html_context = {"default_mode": "auto"}  # light or dark, as the reader has it

POLICY = ("default-src 'self'; script-src 'self' 'unsafe-inline' blob:; style-src 'self' 'unsafe-inline'; "
          "img-src 'self' data:; font-src 'self' data:; base-uri 'none'; form-action 'self'")
HEAD = (f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="generator" content="repro report">')


def add_policy(app, page, template, context, doctree):
    """Forbid every page to the browser to load from elsewhere, whatever stands in it."""
    context["metatags"] = HEAD + context.get("metatags", "")
    if "data-figure" in context.get("body", ""):
        for name in ("plotly.min.js", "figures.js"):
            app.add_js_file(name, loading_method="defer")


def clean_outputs(app, doctree, page):
    """Leave of a notebook's HTML what shows, and nothing that runs, loads from elsewhere or leads away by itself."""
    if page.startswith("notebooks/"):
        for raw in [*doctree.findall(nodes.raw)]:
            html = nh3.clean(raw.astext(), tags=nh3.ALLOWED_TAGS - {"img"},
                             attributes=nh3.ALLOWED_ATTRIBUTES | {"div": {"data-figure"}})
            raw.replace_self(nodes.raw("", html, format="html"))


def leave_out_of_search(app, env):
    """Let the search find the text of a results notebook once, on the page of its paper."""
    for page in env.found_docs:
        if page.startswith("notebooks/results"):
            env.metadata[page]["nosearch"] = "true"
    return []


def setup(app):
    """What Sphinx calls first."""
    app.connect("html-page-context", add_policy)
    app.connect("doctree-resolved", clean_outputs)
    app.connect("env-updated", leave_out_of_search)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
