"""The report: what its pages say, what tables can be trusted for, that nothing in it comes from elsewhere."""

import base64
import hashlib
import shutil
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import made_up_report
import numpy as np
import pandas as pd
import pytest
from disks import small_files
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from repro import papers
from repro.data import manifest
from repro.report.site import at_a_glance, build, entry_names, read_notebooks, read_results, reproduced
from repro.report.style import save
from repro.report.verdicts import PAPER, SHORTENED, VERDICTS

ROOT = manifest.project_root()
FIGURES = ROOT / "figures"
BELONGING = {name: entry["table"] for name, entry in papers.saved().items()}
PAPERS = (papers.titles(), papers.named(), BELONGING)
NONE = ({}, pd.DataFrame(), pd.DataFrame(), *PAPERS)  # of cells, of claims, of discrepancies
STEM = "image_methods_cifar10_my_copy_npz"
IMAGES = pd.DataFrame({"method": ["random", "JCL"], "ours": [10.0, 40.0], "std": np.nan, "n_seeds": 1,
                       "published": np.nan, "difference": np.nan, "preset": "quick",
                       "dataset": "cifar10 (my copy.npz)"})


class Page(HTMLParser):
    """The ids, links, sources and texts of a page, and what it lacks for those who do not see it."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.sources, self.lacking, self.text = set(), [], [], [], ""
        self.scripts = path.read_text(encoding="utf-8").split("<script>")[1:]
        self.feed(path.read_text(encoding="utf-8"))
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given["id"]} if "id" in given else set()
        self.links += [given["href"]] if tag == "a" else []
        self.sources += [given[name] for name in ("src", "href") if name in given and tag != "a"]
        if (tag == "script" and given) or (tag == "img" and "alt" not in given):
            self.lacking.append((tag, given))

    def handle_data(self, data):
        self.text += f" {data}"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A report of the committed figures and a made-up notebook, claims and discrepancies; the second in its place."""
    folder = tmp_path_factory.mktemp("site")
    made_up_report.write_notebooks(folder / "notebooks", made=made_up_report.notebook())
    checked = made_up_report.cells(), made_up_report.claims(), made_up_report.discrepancies()
    first = build(folder / "report", folder, folder / "notebooks", *NONE).with_name("left_over.html")
    first.write_text("old")
    build(folder / "report", ROOT, folder / "notebooks", *checked, *PAPERS)
    assert not first.exists() and {path.name for path in folder.iterdir()} == {"notebooks", "report"}
    return folder / "report"


def test_there_is_a_page_for_everything(site):
    committed = {path.name for path in FIGURES.iterdir()}
    folders = ("results", "notebooks", "figures")
    names = {folder: {path.name for path in (site / folder).iterdir()} for folder in folders}
    assert names["results"] == {f"{name.rpartition('.')[0]}.html" for name in committed - {"cells.csv"}}
    notebooks = {"made", *(path.stem for path in ROOT.glob("notebooks/*.ipynb"))}
    assert names["notebooks"] == {f"{name}{ending}" for name in notebooks for ending in (".html", ".ipynb")}
    assert names["figures"] == committed
    assert {path.name for path in site.glob("*.*")} == {
        "index.html", "claims.html", "discrepancies.html", "cells.html", "style.css", "README.html", "RESULTS.html",
        "SECURITY.html", "CITATION.cff"}
    assert {path.stem for path in (site / "docs").iterdir()} == {path.stem for path in ROOT.glob("docs/*")}


def test_links_and_sources_are_files_of_the_site_and_nothing_comes_from_elsewhere(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for link in (*page.links, *page.sources):
            parts = urlsplit(link)
            if parts.scheme == "data" or (parts.scheme == "https" and link in page.links and "docs" in path.parts):
                continue
            assert not parts.scheme and not parts.netloc, (path, link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file() and target.is_relative_to(site), (path, link)
            assert not parts.fragment or parts.fragment in pages[target].ids, (path, link)
        assert page.lacking == [], path
        linked = {link.rpartition("/")[2] for link in page.links}
        assert {"claims.html", "discrepancies.html", "cells.html"} <= linked, path
        policy = "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"
        if path == site / "cells.html":
            digest = hashlib.sha256(page.scripts.pop().partition("</script>")[0].encode()).digest()
            policy += f"; script-src 'sha256-{base64.b64encode(digest).decode()}'"
        assert f'{policy}">' in path.read_text() and page.scripts == [], path
    assert "http" not in (site / "style.css").read_text() and "@import" not in (site / "style.css").read_text()


def test_the_first_page_names_every_table_with_its_trust(site):
    text, table = Page(site / "index.html").text, pd.read_csv(FIGURES / "taxonomy_ucla.csv")
    assert f"median {table['difference'].abs().median():.1f} points" in text
    assert "are of the level paper recipe, real data ," in text and "paper, changed as each entry says" in text
    assert "not comparable" in text and "No result yet" not in text
    assert "2 cells of preset quick on digits" in text and f"{2 * len(VERDICTS)} claims" in text
    assert "4 discrepancies . About 2 of them we have measured something." in text
    assert all(f"{paper} 1 1 1 1 1" in text for paper in ("SCE", "JCL"))  # one claim of each verdict


def test_the_page_of_a_table_holds_its_numbers(site):
    text = Page(site / "results" / "taxonomy_ucla.html").text
    row = pd.read_csv(FIGURES / "taxonomy_ucla.csv").set_index("objectives").loc["AE+CE+AD"]
    numbers = f"{row['ours']:.1f} {row['std']:.1f} 3 {row['published']} {row['difference']:+.1f}"
    assert f" AE+CE+AD 1 1 1 0 {numbers} " in text
    assert f" {row['embedding_spread']:#.3g} " in text
    assert "finished cells" in text
    assert " sce 0.1 0.03 " in Page(site / "results" / "temperature_grid_cifar10.html").text


def test_claims_and_discrepancies_stand_with_rule_verdict_and_evidence(site):
    claims, discrepancies = Page(site / "claims.html"), Page(site / "discrepancies.html")
    assert "a &lt; b" in (site / "claims.html").read_text()
    for number, verdict in enumerate(VERDICTS):
        experiment = " ".join(["taxonomy_ucla", "printed/taxonomy"][:number])
        row = f"{verdict}: a < b Table {number} above {number} {experiment} {verdict} printed numbers 1 < 2"
        row = " ".join(row.split())
        assert claims.text.count(row) == 2
    shown = Counter(link for link in claims.links if link.startswith("results/"))
    assert shown == {"results/taxonomy_ucla.html": 2 * (len(VERDICTS) - 1)}
    assert {"S-1", "S-2", "J-1", "J-2"} <= discrepancies.ids and "SCE (2)" in discrepancies.text
    row = "J-1 JCL has x < 1 Eq. 1 its code y1 as in the code1 90.0 instead of 80.0 (2 seeds)"
    assert row in discrepancies.text and discrepancies.text.count("not measured") == 2


def test_cells_stand_in_tables_of_what_varies(site):
    text = Page(site / "cells.html").text.partition("All cells")[2]
    assert "skeletons (3) objectives dataset preset seed version linear layers hours key" in text
    assert "CE ucla quick 0 3 80.25 1 1.5 k1 AE ucla quick 1 3 9.5 2 1.5 k2 CE+AD digits quick 0 3 3 1.5 k3" in text
    assert "images (1) method dataset preset seed version linear temperature hours key" in text
    assert "jcl <digits> quick 0 3 50 0.0001234 1.5 k4" in text and "clips" not in text


def test_documents_are_pages_whose_links_lead_to_pages(site):
    readme, taxonomy = Page(site / "README.html"), Page(site / "docs" / "taxonomy.html")
    assert {"docs/data.html", "RESULTS.html", "SECURITY.html", "CITATION.cff"} <= {*readme.links}
    assert "figures/taxonomy_synthetic.png" in readme.sources
    assert "../RESULTS.html" in taxonomy.links and "../figures/taxonomy_ucla.png" in taxonomy.sources
    assert {"README.html", "docs/taxonomy.html"} <= {*Page(site / "index.html").links}


@pytest.mark.parametrize(("line", "address"), [
    ("repository-code: https://github.com/us/repro", "https://colab.research.google.com/github/us/repro/blob/main/"),
    ("repository-code: https://example.org/us/repro", ""), ("repository-code: ''", ""), ("title: repro", ""),
])
def test_a_notebook_of_the_project_opens_in_colab_where_the_repository_is_on_github(tmp_path, line, address):
    (tmp_path / "CITATION.cff").write_text(line)
    made_up_report.write_notebooks(tmp_path / "notebooks", ours=new_notebook())
    made_up_report.write_notebooks(tmp_path / "executed", ours=made_up_report.notebook(), own=new_notebook())
    first = build(tmp_path / "report", tmp_path, tmp_path / "executed", *NONE)
    ours, own = (Page(first.parent / "notebooks" / f"{name}.html") for name in ("ours", "own"))
    assert "A notebook, complete: 2 cells" in ours.text
    assert (f"{address}notebooks/ours.ipynb" in ours.links) is bool(address)
    assert not [link for link in own.links if "colab" in link]


def test_nothing_stored_at_all(tmp_path):
    missing = tmp_path / "my runs" / "notebooks"
    text = Page(build(tmp_path / "report", tmp_path, missing, *NONE)).text
    assert "No number of a trained network is of the level paper recipe, real data yet." in text
    assert "No result yet: taxonomy, encoder collapse." in text and "`" not in text
    assert "No figure is stored" in text and "0 claims" in text and "0 discrepancies" in text
    assert f"papermill notebooks/taxonomy.ipynb '{missing}/taxonomy.ipynb'" in text and not missing.exists()


def test_a_table_of_no_paper_is_not_lost_and_the_same_report_is_written_again(tmp_path):
    (tmp_path / "figures").mkdir()
    shutil.copy(FIGURES / "taxonomy_ucla.csv", tmp_path / "figures" / "novelty_ucla.csv")
    first, second = (build(tmp_path / name, tmp_path, tmp_path, *NONE) for name in ("a", "b"))
    assert "Other tables" in Page(first).text and "novelty" in Page(first).text
    contents = [{path.name: path.read_bytes() for path in page.parent.rglob("*.*")} for page in (first, second)]
    assert contents[0] == contents[1]


@pytest.mark.parametrize("name", ["mine.txt", "index.html"])
def test_a_folder_with_other_things_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match="holds other things than a report; name a new or an empty folder"):
        build(tmp_path, ROOT, tmp_path, *NONE)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("most", [100, 30_000])  # bytes of the first file, and of a copied figure
def test_on_a_full_disk_the_folder_is_named_and_the_report_that_was_there_stays(tmp_path, most):
    first = build(tmp_path / "report", tmp_path, tmp_path, *NONE)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    remedy = rf"File too large \(allow larger files, see `ulimit -f`, .*\): '{first.parent}'"
    with small_files(most), pytest.raises(OSError, match=remedy):
        build(tmp_path / "report", ROOT, tmp_path, *NONE)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_on_a_full_disk_a_figure_is_named_and_what_was_there_stays(tmp_path, ending):
    path, = [path for path in save(Figure(), tmp_path / STEM, "", {}) if path.suffix == f".{ending}"]
    before, files = path.read_bytes(), sorted(tmp_path.iterdir())
    with small_files(len(before) - 1), pytest.raises(OSError, match=rf"File too large \(allow .*\): '{path}'"):
        save(Figure(), tmp_path / STEM, "", {})
    assert path.read_bytes() == before and sorted(tmp_path.iterdir()) == files


def test_a_table_with_its_figure_and_one_without(tmp_path):
    IMAGES.to_csv(tmp_path / f"{STEM}.csv", index=False)
    (tmp_path / "cells.csv").write_text("key\n")
    (tmp_path / "notes.txt").write_text("mine")
    result, = read_results(tmp_path)
    assert (result.stem, result.files, result.figure, result.provenance) == (STEM, [f"{STEM}.csv"], "", {})
    provenance = {"cells": ["a1", "b2"], "seeds": [0], "preset": "quick", "dataset": "cifar10 (my copy.npz)"}
    save(Figure(), tmp_path / STEM, "What & whence <it> is.", provenance)
    result, = read_results(tmp_path)
    assert (result.title, result.figure, result.caption) == ("image methods", f"{STEM}.svg", "What & whence <it> is.")
    assert result.provenance == provenance and result.files == [f"{STEM}.{ending}" for ending in ("csv", "png", "svg")]
    assert list(result.table) == list(IMAGES)


def test_a_log_and_an_empty_table_are_no_results(tmp_path):
    pd.DataFrame({"epoch": [1], "dataset": "digits"}).to_csv(tmp_path / "objective_parts_digits.csv", index=False)
    IMAGES[:0].to_csv(tmp_path / f"{STEM}.csv", index=False)
    assert [(result.table, result.title) for result in read_results(tmp_path)] == [
        (None, STEM.replace("_", " ")), (None, "objective parts digits")]
    assert read_results(tmp_path / "missing") == []


@pytest.mark.parametrize(("name", "content"), [
    ("taxonomy_ucla.svg", "<svg>"), ("taxonomy_ucla.csv", ""), ("taxonomy_ucla.csv", 'a,b\n"1'),
    ("taxonomy_ucla.csv", "a\n1,2\n3,4,5\n"),
])
def test_a_damaged_file_is_named(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=rf"{name} is damaged .*`repro figures`"):
        read_results(tmp_path)


def table(**changes):
    """Three entries on NW-UCLA: the recipe of the paper with 3 seeds and 1, and one that is not run."""
    columns = {
        "objectives": ["random", "CE", "AD"],
        "ours": [50.0, 80.0, np.nan], "std": [1.0, np.nan, np.nan], "n_seeds": [3, 1, 0], "published": [52, 75.0, 83.0],
        "difference": [-2.0, 5.0, np.nan], "preset": "paper", "dataset": "ucla",
    }
    return pd.DataFrame(columns | changes)


@pytest.mark.parametrize(("changes", "level", "distance"), [
    ({}, PAPER, "median 3.5 points, largest +5.0 (CE); 2 compared"),
    ({"difference": [np.nan, -0.25, np.nan]}, PAPER, "-0.2 points (CE), the one number printed"),
    ({"departures": ["", "select=best_on_test", np.nan], "difference": [-2.0, np.nan, np.nan]}, PAPER,
     "-2.0 points (random), the one number printed"),
    ({"difference": np.nan}, PAPER, "nothing is printed"),
    ({"dataset": "synthetic", "difference": np.nan}, "bundled data", "not comparable"),
    ({"preset": "quick", "difference": np.nan}, SHORTENED, "not comparable"),
    ({"dataset": "ucla (subset)", "difference": np.nan}, SHORTENED, "not comparable"),
    ({"usual": 60.0, "difference": np.nan}, SHORTENED, "not comparable"),
    ({"departures": "select=best_on_test", "difference": np.nan}, SHORTENED, "not comparable"),
])
def test_how_far_a_table_is_from_print_and_what_that_allows(changes, level, distance):
    trust, = at_a_glance(table(**changes))
    assert (trust["level"], trust["distance"]) == (level, distance)
    assert (trust["entries"], trust["finished"]) == (3, 2)
    assert trust["seeds"] == "1 to 3"


def test_presets_stand_apart_the_stronger_one_first_and_data_sets_are_not_mixed():
    mixed = table(preset=["quick", "paper", "quick"], ours=[1.0, 2.0, 3.0], n_seeds=2)
    assert [(trust["recipe"], trust["entries"], trust["seeds"]) for trust in at_a_glance(mixed)] == [
        ("paper", 1, "2"), ("quick", 2, "2")]
    assert at_a_glance(mixed.assign(usual=60.0))[0]["recipe"] == "paper, changed as each entry says"
    assert at_a_glance(table(ours=np.nan, n_seeds=0, difference=np.nan))[0]["seeds"] == "0"
    with pytest.raises(ValueError, match="one dataset"):
        at_a_glance(table(dataset=["ucla", "ntu", "ntu"]))


def test_names_of_entries():
    changed = pd.DataFrame({"objectives": ["CE", "AD"], "departures": ["layers=3", np.nan], "ours": 1.0})
    assert entry_names(changed) == ["CE, layers=3", "AD"]
    depths = pd.DataFrame({"layers": [1, 2], "method": "AE", "key_temperature": [0.05, np.nan], "ours": 1.0})
    assert entry_names(depths) == ["layers 1, AE, key temperature 0.05", "layers 2, AE"]
    terms = pd.DataFrame({"objectives": ["random", "CE+AD"], "CE": [0, 1], "AD": [0, 1], "units": 8, "ours": 1.0})
    assert entry_names(terms) == ["random, units 8", "CE+AD, units 8"]
    grids = pd.DataFrame({"method": "smoco", "characters": [1, 3], "target": "characters", "ours": 1.0})
    assert entry_names(grids) == ["smoco, characters 1, characters", "smoco, characters 3, characters"]


def test_reproductions_of_all_tables_together():
    tables = [
        table(),                                               # CE alone counts: random is untrained, AD not run
        table(ours=[50.0, 81.0, 82.0], n_seeds=3, difference=[0.0, np.nan, -1.0]),
        table(dataset="synthetic"), table(dataset="ucla (part)"), table(preset="quick"), table(usual=60.0),
        table(departures=["", "select=best_on_test", np.nan]),
    ]
    assert reproduced(tables, {"objectives"}) == {"entries": 3, "enough": 2, "compared": 2, "median": 3.0}
    assert reproduced(tables[:1], {"method"})["entries"] == 2  # "random" in another column is a trained network
    assert reproduced(tables[2:], {"objectives"}) == reproduced([], {"objectives"}) == {}
    assert np.isnan(reproduced([table(difference=np.nan)], {"objectives"})["median"])


def test_what_an_executed_notebook_shows(tmp_path):
    made_up_report.write_notebooks(tmp_path, b=new_notebook(), a=made_up_report.notebook())
    found, other = read_notebooks(tmp_path)
    assert (found["name"], found["title"], found["ended"]) == ("a", "A made-up notebook", "complete")
    assert (found["planned"], found["dataset"]) == ("2 cells of preset quick on digits", "digits")
    assert (other["title"], other["planned"], other["preset"], other["ended"]) == ("b", "", "", "not executed")
    body = found["body"]
    assert "<td>CE</td>" in body and "2 cells of preset quick" in body and "show" in body
    assert f"data:image/png;base64,{made_up_report.picture('navy')}" in body
    assert 'alt="Picture under the heading: A made-up notebook"' in body
    assert made_up_report.picture("teal") in body
    for part in ("VBox()", "IntSlider", "<script", "alert(1)", "http:", "https:", "<link", "cells:   0%"):
        assert part not in body


@pytest.mark.parametrize(("made", "ended"), [
    (made_up_report.notebook(error=True), "stopped by an error"),
    (made_up_report.notebook(count=None), "stopped midway"),
    (new_notebook(cells=[new_markdown_cell("no heading"), new_code_cell("1")]), "not executed"),
    (new_notebook(cells=[new_code_cell("1", execution_count=1), new_code_cell("")]), "complete"),
])
def test_how_a_notebook_ended(tmp_path, made, ended):
    made_up_report.write_notebooks(tmp_path, made=made)
    assert [found["ended"] for found in read_notebooks(tmp_path)] == [ended]


@pytest.mark.parametrize("text", ["", "{", "{}", "[{}]", "null", '{"nbformat": 4, "nbformat_minor": 5}'])
def test_what_is_no_notebook_is_named(tmp_path, text):
    (tmp_path / "broken.ipynb").write_text(text)
    with pytest.raises(ValueError, match=r"broken\.ipynb is not a notebook"):
        read_notebooks(tmp_path)
