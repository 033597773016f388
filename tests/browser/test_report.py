"""The report in a browser: every page opens, shows its pictures and asks nobody but its own server."""

import itertools
from urllib.parse import urldefrag, urljoin

import made_up_report
import pytest
from browsing import served, watched

from repro import papers
from repro.data import manifest
from repro.report.site import build

LINKS = "links => links.map(link => link.href)"
BROKEN = "images => images.filter(image => !image.complete || !image.naturalWidth).map(image => image.src)"
LIGHTNESS = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of the committed figures and made-up notebooks, claims and discrepancies."""
    folder = tmp_path_factory.mktemp("report")
    notebooks = {"made": made_up_report.notebook(), "failed": made_up_report.notebook(error=True)}
    made_up_report.write_notebooks(folder / "notebooks", **notebooks)
    checked = made_up_report.cells(), made_up_report.claims(), made_up_report.discrepancies()
    known = papers.titles(), papers.named(), {name: entry["table"] for name, entry in papers.saved().items()}
    return build(folder / "site", manifest.project_root(), folder / "notebooks", *checked, *known).parent


def test_every_page_and_file_that_is_linked_wide_and_narrow_in_light_and_dark(browser, report):
    with served(report) as address, watched(browser) as seen:
        waiting, opened, files = [f"{address}/index.html"], set(), set()
        while waiting:
            url = waiting.pop()
            if url in opened:
                continue
            opened.add(url)
            assert seen.page.goto(url).ok, url
            assert seen.page.locator("img").evaluate_all(BROKEN) == [], url
            for width, scheme in itertools.product((1280, 390), ("light", "dark")):
                seen.page.set_viewport_size({"width": width, "height": 800})
                seen.page.emulate_media(color_scheme=scheme)
                assert seen.page.evaluate(TOO_WIDE) <= 0, (url, width)
                assert (seen.page.evaluate(LIGHTNESS) > 128) is (scheme == "light"), (url, scheme)
            for link in seen.page.locator("a").evaluate_all(LINKS):
                target, fragment = urldefrag(link)
                if target.startswith("https://") and url.startswith(f"{address}/docs/"):
                    continue  # to the homes of data sets and libraries; nothing of them is loaded
                assert target.startswith(address), (url, link)
                (waiting.append if target.endswith(".html") else files.add)(target)
                if target == url and fragment:
                    assert seen.page.locator(f"[id='{fragment}']").count() == 1, (url, link)
        assert all(seen.page.request.get(file).ok for file in files)
        assert (seen.errors, seen.strangers) == ([], [])
    pages = {urljoin(f"{address}/", path.relative_to(report).as_posix()) for path in report.rglob("*.html")}
    assert opened == pages
    figures = {urljoin(f"{address}/", f"figures/{path.name}") for path in (report / "figures").iterdir()}
    notebooks = {"made", "failed", *(path.stem for path in (manifest.project_root() / "notebooks").iterdir())}
    assert files == figures | {f"{address}/notebooks/{name}.ipynb" for name in notebooks} | {f"{address}/CITATION.cff"}


def test_discrepancies_are_a_click_away_and_seen_whole(browser, report):
    with served(report) as address, watched(browser, viewport={"width": 400, "height": 800}) as seen:
        seen.page.goto(f"{address}/index.html")
        seen.page.get_by_role("navigation").get_by_role("link", name="Discrepancies").click()
        assert seen.page.get_by_role("heading", level=1).inner_text() == "Where the papers disagree"
        row = seen.page.locator("[id='S-1']")
        assert "Eq. 1" in row.inner_text() and "90.0 instead of 80.0 (2 seeds)" in row.inner_text()
        seen.page.get_by_role("link", name="S-2", exact=True).click()
        assert seen.page.url.endswith("discrepancies.html#S-2")


@pytest.fixture
def cells(browser, report):
    """The table of three made-up cells on the page of cells."""
    with served(report) as address, watched(browser, viewport={"width": 390, "height": 800}) as seen:
        seen.page.goto(f"{address}/cells.html")
        yield seen.page.get_by_role("region", name="Cells of skeletons").locator("..")
        assert (seen.errors, seen.strangers) == ([], [])


def keys(cells):
    return [row.split()[-1] for row in cells.locator("tbody tr:visible").all_inner_texts()]


def test_cells_are_sorted_with_the_keyboard_and_what_is_missing_stays_last(cells):
    for order, keys_then in (("ascending", ["k2", "k1", "k3"]), ("descending", ["k1", "k2", "k3"])):
        cells.get_by_role("button", name="linear").press("Enter")
        assert cells.locator(f"th[aria-sort={order}]").inner_text().startswith("linear") and keys(cells) == keys_then


@pytest.mark.parametrize(("column", "asked", "left"), [
    ("objectives", "ce", ["k1", "k3"]), ("objectives", "=CE", ["k1"]), ("linear", ">9.5", ["k1"]),
    ("linear", "<10", ["k2"]), ("layers", "2..3", ["k2", "k3"]), ("key", "none", []),
    ("dataset", " ", ["k1", "k2", "k3"]),
])
def test_cells_are_filtered_and_the_plot_with_them(cells, column, asked, left):
    cells.get_by_label(f"filter {column}").fill(asked)
    assert keys(cells) == left and cells.get_by_text(f"{len(left)} of 3 cells").is_visible()
    assert cells.locator("[role=img] circle").count() == len({*left} - {"k3"})  # which has no accuracy


def test_cells_are_plotted_by_any_column(cells):
    assert cells.get_by_role("img", name="linear against objectives, 2 cells").is_visible()
    for role, column in (("x", "layers"), ("y", "seed"), ("colour", "key")):
        cells.get_by_role("combobox", name=role, exact=True).select_option(column)
    assert cells.get_by_role("img", name="seed against layers, 3 cells").is_visible()
    points = cells.locator("[role=img] circle")
    across, up = (points.evaluate_all(f"all => all.map(one => one.{name}.baseVal.value)") for name in ("cx", "cy"))
    assert across[1] - across[0] == pytest.approx(across[2] - across[1]) and across[0] < across[1]
    assert up[0] == up[2] > up[1]  # seeds 0, 1, 0; pixels count downwards
    assert cells.locator(".legend").inner_text().split() == ["key:", "k1", "k2", "k3"]
    assert len({*points.evaluate_all("all => all.map(one => one.getAttribute('fill'))")}) == 3
    assert "linear 80.25" in points.first.text_content() and "linear" not in points.last.text_content()
    cells.get_by_role("combobox", name="y", exact=True).select_option("linear")
    cells.get_by_label("filter key").fill("k1")
    assert cells.locator("[role=img] text").all_text_contents() == ["1", "80.25", "layers", "linear"]


def test_cells_are_read_without_a_script(browser, report):
    with served(report) as address, watched(browser, java_script_enabled=False) as seen:
        seen.page.goto(f"{address}/cells.html")
        assert seen.page.locator("tbody tr").count() == 4 and seen.page.locator("noscript .note").is_visible()


def test_a_page_that_asks_elsewhere_is_noticed(browser, tmp_path):
    (tmp_path / "index.html").write_text("<img src='https://example.org/a.png'><script>missing()</script>")
    with served(tmp_path) as address, watched(browser) as seen:
        seen.page.goto(address)
        assert seen.strangers == ["https://example.org/a.png"]
        assert any("missing is not defined" in error for error in seen.errors)
        assert seen.page.locator("img").evaluate_all(BROKEN) == ["https://example.org/a.png"]
