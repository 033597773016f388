"""The report in a browser: every page opens, shows its pictures and asks nobody but its own server."""

from urllib.parse import urldefrag, urljoin

import made_up_report
import pytest
from browsing import served, watched

from repro import papers
from repro.data import manifest
from repro.report.site import build

LINKS = "links => links.map(link => link.href)"
BROKEN = "images => images.filter(image => !image.complete || !image.naturalWidth).map(image => image.src)"
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of the committed figures and made-up notebooks, claims and discrepancies."""
    folder = tmp_path_factory.mktemp("report")
    notebooks = {"made": made_up_report.notebook(), "failed": made_up_report.notebook(error=True)}
    made_up_report.write_notebooks(folder / "notebooks", **notebooks)
    figures = manifest.project_root() / "figures"
    checked = (made_up_report.claims(), made_up_report.discrepancies())
    known = papers.titles(), papers.named()
    return build(folder / "site", figures, folder / "notebooks", *checked, *known).parent


@pytest.mark.parametrize("width", [1200, 400])
def test_every_page_and_file_that_is_linked(browser, report, width):
    with served(report) as address, watched(browser, viewport={"width": width, "height": 800}) as seen:
        waiting, opened, files = [f"{address}/index.html"], set(), set()
        while waiting:
            url = waiting.pop()
            if url in opened:
                continue
            opened.add(url)
            assert seen.page.goto(url).ok, url
            assert seen.page.locator("img").evaluate_all(BROKEN) == [], url
            assert seen.page.evaluate(TOO_WIDE) <= 0, url
            for link in seen.page.locator("a").evaluate_all(LINKS):
                target, fragment = urldefrag(link)
                assert target.startswith(address), (url, link)
                (waiting.append if target.endswith(".html") else files.add)(target)
                if target == url and fragment:
                    assert seen.page.locator(f"[id='{fragment}']").count() == 1, (url, link)
        assert all(seen.page.request.get(file).ok for file in files)
        assert (seen.errors, seen.strangers) == ([], [])
    pages = {urljoin(f"{address}/", path.relative_to(report).as_posix()) for path in report.rglob("*.html")}
    assert opened == pages
    figures = {urljoin(f"{address}/", f"figures/{path.name}") for path in (report / "figures").iterdir()}
    assert files == figures | {f"{address}/notebooks/{name}.ipynb" for name in ("made", "failed")}


def test_discrepancies_are_a_click_away_and_seen_whole(browser, report):
    with served(report) as address, watched(browser, viewport={"width": 400, "height": 800}) as seen:
        seen.page.goto(f"{address}/index.html")
        seen.page.get_by_role("navigation").get_by_role("link", name="Discrepancies").click()
        assert seen.page.get_by_role("heading", level=1).inner_text() == "Where the papers disagree"
        row = seen.page.locator("[id='S-1']")
        assert "Eq. 1" in row.inner_text() and "90.0 instead of 80.0 (2 seeds)" in row.inner_text()
        seen.page.get_by_role("link", name="S-2", exact=True).click()
        assert seen.page.url.endswith("discrepancies.html#S-2")


def test_a_page_that_asks_elsewhere_is_noticed(browser, tmp_path):
    (tmp_path / "index.html").write_text("<img src='https://example.org/a.png'><script>missing()</script>")
    with served(tmp_path) as address, watched(browser) as seen:
        seen.page.goto(address)
        assert seen.strangers == ["https://example.org/a.png"]
        assert any("missing is not defined" in error for error in seen.errors)
        assert seen.page.locator("img").evaluate_all(BROKEN) == ["https://example.org/a.png"]
