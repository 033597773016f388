"""The report as files: what its pages say, that their links lead somewhere and that nothing comes from elsewhere."""

import shutil
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import made_up_report
import pandas as pd
import pytest

from repro import papers
from repro.data import manifest
from repro.report.site import build
from repro.report.verdicts import VERDICTS

FIGURES = manifest.project_root() / "figures"
PAPERS = (papers.titles(), papers.drawings(), papers.named())
NONE = (pd.DataFrame(), pd.DataFrame(), *PAPERS)  # of claims, of discrepancies


class Page(HTMLParser):
    """The ids, links, sources and texts of a page, and what it lacks for those who do not see it."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.sources, self.lacking, self.text = set(), [], [], [], ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given["id"]} if "id" in given else set()
        self.links += [given["href"]] if tag == "a" else []
        self.sources += [given[name] for name in ("src", "href") if name in given and tag != "a"]
        if tag == "script" or (tag == "img" and "alt" not in given):
            self.lacking.append((tag, given))

    def handle_data(self, data):
        self.text += " " + " ".join(data.split())


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A report of the committed figures and a made-up notebook, claims and discrepancies."""
    folder = tmp_path_factory.mktemp("site")
    made_up_report.write_notebooks(folder / "notebooks", made=made_up_report.notebook())
    checked = made_up_report.claims(), made_up_report.discrepancies()
    build(folder / "report", FIGURES, folder / "notebooks", *checked, *PAPERS)
    return folder / "report"


def pages(folder):
    return {path: Page(path) for path in sorted(folder.rglob("*.html"))}


def test_there_is_a_page_for_everything(site):
    assert {path.stem for path in (site / "results").iterdir()} == {
        path.stem for path in FIGURES.iterdir() if path.name != "cells.csv"
    }
    assert {path.name for path in (site / "notebooks").iterdir()} == {"made.html", "made.ipynb"}
    assert {path.name for path in (site / "figures").iterdir()} == {path.name for path in FIGURES.iterdir()}
    assert {path.name for path in site.glob("*.*")} == {
        "index.html", "claims.html", "discrepancies.html", "style.css"
    }


def test_links_and_sources_are_files_of_the_site(site):
    found = pages(site)
    for path, page in found.items():
        for link in (*page.links, *page.sources):
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            assert not parts.scheme and not parts.netloc, (path, link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file() and target.is_relative_to(site), (path, link)
            assert not parts.fragment or parts.fragment in found[target].ids, (path, link)
        assert page.lacking == [], path


def test_every_page_forbids_what_comes_from_elsewhere(site):
    for path in pages(site):
        assert "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'" in path.read_text()
    assert "http" not in (site / "style.css").read_text() and "@import" not in (site / "style.css").read_text()


def test_the_first_page_names_every_table_with_its_trust(site):
    text = Page(site / "index.html").text
    table = pd.read_csv(FIGURES / "taxonomy_ucla.csv")
    assert f"median {table['difference'].abs().median():.1f} points" in text
    assert f"3 or more in {(table['n_seeds'] >= 3).sum()} of 16 entries" in text
    assert "are of the level paper recipe, real data ," in text and "paper, changed as each entry says" in text
    assert "not comparable" in text and "No result yet" not in text
    assert "2 cells of preset quick on digits" in text and "10 claims" in text
    assert "4 discrepancies . About 2 of them we have measured something." in text


def test_the_page_of_a_table_holds_its_numbers(site):
    page = Page(site / "results" / "taxonomy_ucla.html")
    row = pd.read_csv(FIGURES / "taxonomy_ucla.csv").set_index("objectives").loc["AE+CE+AD"]
    assert f" AE+CE+AD {row['ours']:.1f} {row['std']:.1f} 3 {row['published']} {row['difference']:+.1f} " in page.text
    assert f" {row['embedding_spread']:#.3g} " in page.text
    grid = Page(site / "results" / "temperature_grid_cifar10_cifar10_lossless_subset_npz.html")
    assert " sce 0.1 0.03 " in grid.text
    assert "Spearman's correlation" in page.text and "finished cells" in page.text
    assert "Spearman's" not in Page(site / "results" / "taxonomy_variants_ucla.html").text


def test_claims_stand_with_verdict_and_evidence(site):
    text = (site / "claims.html").read_text()
    assert all(text.count(f">{verdict}</span>") == 2 for verdict in VERDICTS)
    assert "a &lt; b" in text and "a < b" not in text
    seen = " ".join(Page(site / "claims.html").text.split())
    assert all(f"Table {number} b - a > {number} {verdict} printed numbers 1 < 2" in seen
               for number, verdict in enumerate(VERDICTS))
    found = [link for link in Page(site / "claims.html").links if link.startswith("results/")]
    assert Counter(found) == {"results/taxonomy_ucla.html": 8, "results/glm_specifications.html": 6}


def test_discrepancies_stand_with_both_sides_and_what_was_measured(site):
    page = Page(site / "discrepancies.html")
    assert {"S-1", "S-2", "J-1", "J-2"} <= page.ids and "SCE (2)" in page.text
    row = "J-1 JCL has x < 1 Eq. 1 its code y1 as in the code1 90.0 instead of 80.0 (2 seeds)"
    assert row in " ".join(page.text.split())
    assert page.text.count("not measured") == 2
    assert "x &lt; 1" in (site / "discrepancies.html").read_text()


def test_every_page_leads_to_claims_and_discrepancies(site):
    for path, page in pages(site).items():
        assert {"claims.html", "discrepancies.html"} <= {link.rpartition("/")[2] for link in page.links}, path


def test_a_fresh_clone_says_how_to_get_notebooks(tmp_path):
    missing = tmp_path / "my runs" / "notebooks"
    text = Page(build(tmp_path / "report", FIGURES, missing, *NONE)).text
    assert f"papermill notebooks/taxonomy.ipynb '{missing}/taxonomy.ipynb'" in text
    assert not missing.exists()


def test_nothing_stored_at_all(tmp_path):
    text = Page(build(tmp_path / "report", tmp_path / "figures", tmp_path / "notebooks", *NONE)).text
    assert "No number of a trained network is of the level paper recipe, real data yet." in text
    assert "No result yet: taxonomy, encoder collapse." in text and "`" not in text
    assert "No figure is stored" in text and "0 claims" in text and "0 discrepancies" in text


def test_a_table_of_no_paper_is_not_lost(tmp_path):
    (tmp_path / "figures").mkdir()
    shutil.copy(FIGURES / "taxonomy_ucla.csv", tmp_path / "figures" / "novelty_ucla.csv")
    text = Page(build(tmp_path / "report", tmp_path / "figures", tmp_path, *NONE)).text
    assert "Other tables" in text and "novelty" in text


def test_a_second_report_replaces_the_first_and_is_equal(tmp_path):
    made_up_report.write_notebooks(tmp_path / "notebooks", made=made_up_report.notebook())
    arguments = (tmp_path / "report", FIGURES, tmp_path / "notebooks", *NONE)
    build(*arguments)
    first = {path: path.read_bytes() for path in (tmp_path / "report").rglob("*.*")}
    (tmp_path / "report" / "results" / "left_over.html").write_text("old")
    build(*arguments)
    assert {path: path.read_bytes() for path in (tmp_path / "report").rglob("*.*")} == first
    assert {path.name for path in tmp_path.iterdir()} == {"notebooks", "report"}


@pytest.mark.parametrize("name", ["mine.txt", "index.html"])
def test_a_folder_with_other_things_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match="holds other things than a report; name a new or an empty folder"):
        build(tmp_path, FIGURES, tmp_path, *NONE)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_verdict_that_does_not_exist_is_refused_and_nothing_is_left(tmp_path):
    claims = made_up_report.claims().head(1).assign(verdict="perhaps")
    with pytest.raises(ValueError, match=r"verdict of claim S0='perhaps' is not one of: holds, fails"):
        build(tmp_path / "report", FIGURES, tmp_path / "notebooks", claims, *NONE[1:])
    assert list(tmp_path.iterdir()) == []
