"""The book in a browser: every page opens, wide and narrow, light and dark, and asks nobody but its own server."""

import contextlib
import functools
import http.server
import threading
from urllib.parse import urldefrag

import made_up_book
import nbformat
import pytest
from browsing import watched
from bs4 import BeautifulSoup

from repro import book
from repro.data import manifest
from repro.experiments import by_study
from repro.run.store import exported

ROOT = manifest.project_root()
LINKS = "links => links.map(link => link.href)"
BROKEN = "images => images.filter(image => !image.complete || !image.naturalWidth).map(image => image.src)"
LIGHTNESS = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
LEADING = ("src", "srcset", "href", "action", "formaction", "data", "poster", "content", "style")
FORBIDDEN = ["base", "form", "iframe", "link", "meta", "object", "script", "source", "style", "svg"]
OFF_SCREEN = """[...document.querySelectorAll('.cell_output th')].filter(cell =>
    ['ours', 'printed', 'difference'].includes(cell.textContent.trim()) &&
    cell.getBoundingClientRect().right > cell.closest('.cell_output').getBoundingClientRect().right)"""
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def committed():
    """More committed runs than a page of the table has."""
    return by_study(exported())["clips"].tail(30)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A book of this checkout's documents, made-up notebooks, made-up runs and some committed ones of clips.

    The notebook is there a second time, as one of results.
    """
    folder = tmp_path_factory.mktemp("book")
    book.gather(ROOT, folder / "source")
    (folder / "source" / "notebooks").mkdir()
    made = made_up_book.notebook()
    for name, notebook in {"notebook": made, "results_made_up": made, "hostile": made_up_book.hostile()}.items():
        nbformat.write(notebook, folder / "source" / "notebooks" / f"{name}.ipynb")
    book.write_runs(made_up_book.runs() | {"clips": committed()}, folder / "source")
    book.typeset(folder / "source", ROOT / "docs", folder / "site")
    return folder / "site"


@contextlib.contextmanager
def served(folder):
    """The address of a server of the files in a folder."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def article(site, page):
    """The article of a page: what of it is no heading, menu or script of the book's own."""
    return BeautifulSoup((site / page).read_text(), "html.parser").article


def test_what_a_notebook_shows_is_there(site):
    page = article(site, "notebooks/notebook.html")
    assert "a machine" in page.text and "a bar" not in page.text and "objective" in page.text
    assert len(page("img")) == 2 and len(page("table")) == 2 and page("a", href="../index.html")


def test_no_output_runs_loads_or_leads_away(site):
    page = article(site, "notebooks/hostile.html")
    assert "<script>the last output</script>" in page.text  # all of them were read
    assert page(FORBIDDEN) == []
    leading = [(element.name, name, value) for element in page(True) for name, value in element.attrs.items()
               if (name in LEADING or name.startswith("on")) and "evil" in value]
    assert leading == [("img", "src", f"{made_up_book.EVIL}/e.png")]  # which no browser asks for, see tests/browser
    assert not article(site, "runs.html")(onerror=True)
    assert "document.title='evil'</script><script>" not in (site / "runs.html").read_text()


def test_every_page_forbids_what_is_elsewhere(site):
    for path in site.rglob("*.html"):
        if "_static" not in path.parts:
            text = path.read_text()
            assert text.index("default-src 'self'") < text.index("<link") and book.GENERATOR in text, path


def test_every_page_that_is_linked_wide_and_narrow_in_light_and_dark(browser, site):
    with served(site) as address, watched(browser) as seen:
        waiting, opened, files = [f"{address}/index.html"], set(), set()
        while waiting:
            url = waiting.pop()
            if url in opened:
                continue
            opened.add(url)
            assert seen.page.goto(url).ok, url
            if "hostile" not in url:
                assert seen.page.locator("article img").evaluate_all(BROKEN) == [], url
            for width, scheme in ((1280, "light"), (390, "dark")):
                seen.page.set_viewport_size({"width": width, "height": 800})
                seen.page.emulate_media(color_scheme=scheme)
                assert seen.page.evaluate(TOO_WIDE) <= 0, (url, width)
                assert width < 1280 or seen.page.evaluate(OFF_SCREEN) == [], url
                seen.page.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
                assert (seen.page.evaluate(LIGHTNESS) > 128) is (scheme == "light"), (url, scheme)
            for link in seen.page.locator("a[href]").evaluate_all(LINKS):
                target, _ = urldefrag(link)
                if target.startswith(address):
                    (waiting.append if target.endswith(".html") else files.add)(target)
        seen.page.goto(f"{address}/notebooks/hostile.html")
        seen.page.locator(".js-plotly-plot").first.wait_for(state="attached")  # its outputs have had their chance
        assert seen.page.url == f"{address}/notebooks/hostile.html" and seen.page.title() != "evil"
        assert [file for file in files if not seen.page.request.get(file).ok] == []
        refused = [error for error in seen.errors if f"{made_up_book.EVIL}/e.png" in error]
        assert refused and (seen.errors, seen.strangers) == (refused, [])
    pages = {f"{address}/{path.relative_to(site).as_posix()}" for path in site.rglob("*.html")
             if "_static" not in path.parts}
    assert pages - opened <= {f"{address}/genindex.html", f"{address}/search.html"}
    assert {f"{address}/{name}.html" for name in ("RESULTS", "runs", "docs/sce", "docs/publish", "docs/promises",
                                                  "notebooks/hostile")} <= opened


def test_a_figure_of_the_explorer_is_drawn_and_plays_without_a_kernel(browser, site):
    with served(site) as address, watched(browser) as seen:
        seen.page.goto(f"{address}/notebooks/notebook.html")
        point = seen.page.locator(".js-plotly-plot .point")
        point.wait_for()
        before = seen.page.evaluate("document.querySelector('.js-plotly-plot').data[0].y[0]")
        seen.page.get_by_text("play", exact=True).click()
        while seen.page.evaluate("document.querySelector('.js-plotly-plot').data[0].y[0]") != 2:
            seen.page.wait_for_timeout(100)  # what waits by itself would evaluate text, which the page forbids
        assert before == 0 and (seen.errors, seen.strangers) == ([], [])


def test_the_text_is_searched(browser, site):
    with served(site) as address, watched(browser) as seen:
        for words, page in {"AE%2BAD%2BCD": "docs/results_taxonomy", "OHEM": "docs/words", "config": "docs/words",
                            "infinite": "docs/jcl", "made-up+machine": "notebooks/notebook"}.items():
            seen.page.goto(f"{address}/search.html?q={words}")
            seen.page.locator(f"#search-results a[href^='{page}.html']").first.wait_for()
        found = [link.partition(".html")[0] for link in seen.page.locator("#search-results li > a").evaluate_all(LINKS)]
        assert f"{address}/notebooks/results_made_up" not in found and len(found) == len({*found})
        seen.page.locator("#search-results a[href^='notebooks/notebook.html']").click()
        assert seen.page.url.startswith(f"{address}/notebooks/notebook.html")
        assert (seen.errors, seen.strangers) == ([], [])


def ids(table):
    return [row.split()[-1] for row in table.locator("tbody tr:visible").all_inner_texts()]


def test_runs_are_sorted_searched_and_filtered_and_read_in_the_dark(browser, site):
    options = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}
    with served(site) as address, watched(browser, **options) as seen:
        seen.page.goto(f"{address}/runs.html")
        names = "skeletons", "images", "clips"
        table, other, clips = (seen.page.locator(f"#{name} .dt-container") for name in names)
        table.locator("tbody tr").nth(2).wait_for()
        assert ids(table) == ["k2", "k3", "k1"]  # the newest first
        accuracy = table.locator(".dt-scroll-head th").nth(1).locator(".dt-column-order")
        for order in (["k2", "k1"], ["k1", "k2"]):
            accuracy.click()
            for _ in range(50):  # the table is sorted a moment later
                seen.page.wait_for_timeout(100)
                if (found := [id for id in ids(table) if id != "k3"]) == order:  # which has none
                    break
            assert found == order
        table.locator(".dt-scroll-head input").nth(0).press_sequentially("AE")
        table.locator("tbody tr").nth(1).wait_for(state="detached")
        assert ids(table) == ["k2"]
        id = committed()["id"].iloc[-1]
        clips.locator("input[type=search]").press_sequentially(id)
        clips.locator("tbody tr").nth(1).wait_for(state="detached")
        assert ids(clips) == [id]
        assert other.locator("tbody td").filter(has_text=made_up_book.NAME).count() == 1
        assert other.locator("img, script").count() == 0
        assert other.evaluate("element => getComputedStyle(element).backgroundColor") == "rgba(0, 0, 0, 0)"
        assert (seen.errors, seen.strangers) == ([], []) and seen.page.title() != "evil"


def test_a_table_of_a_notebook_is_light_on_dark(browser, site):
    with served(site) as address, watched(browser, color_scheme="dark") as seen:
        seen.page.goto(f"{address}/notebooks/notebook.html")
        colour = "element => Number(getComputedStyle(element).color.match(/\\d+/)[0])"
        assert seen.page.locator(".cell_output td").first.evaluate(colour) > 128 > seen.page.evaluate(LIGHTNESS)
