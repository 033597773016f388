"""The pages of results: as the notebooks make them today, with links that lead somewhere and verdicts that agree."""

import re
from decimal import Decimal
from pathlib import Path

import nbformat
import papermill
import pytest
from executed_notebooks import RESULTS, executed

from repro import papers
from repro.data import manifest
from repro.report import markdown
from repro.report.typed import NUMBER as TYPED
from repro.report.typed import UNREAD, sections, unfounded, value

ROOT = manifest.project_root()
PLACES = {ROOT / "notebooks" / f"{name}.ipynb": ROOT / markdown.page_of(name) for name in RESULTS}
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
WORDS = {"reproduced": "Reproduced", "in part": "Partly", "not reproduced": "Not reproduced",
         "undecided": "Undecided", "not run": "Not run"}


def page(name):
    return (ROOT / markdown.page_of(name)).read_text(encoding="utf-8")


def anchors(text):
    """Of a page's headings, as hosts of repositories make them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def one_of_the_last_digit(number):
    return 10.0 ** -len(number.partition(".")[2])


def mistyped(sentence):
    """A sentence with each of its numbers one more and one less in the last digit."""
    text = "" if sentence.startswith("#") else UNREAD.sub("", sentence)
    for number in TYPED.finditer(text):
        for step in (-1, 1):
            other = value(number[0]) + step * Decimal(1).scaleb(value(number[0]).as_tuple().exponent)
            yield f"{text[: number.start()]}{other:{'+' if number[0][0] in '+-' else ''}}{text[number.end() :]}"


@pytest.mark.parametrize("name", RESULTS)
def test_a_committed_page_is_what_its_notebook_says_today(name, tmp_path):
    """And every typed number of it is noticed where it is mistyped by one in its last digit."""
    path = ROOT / "notebooks" / f"{name}.ipynb"
    notebook = executed(name, tmp_path, device="cpu")
    assert markdown.faults(notebook) == []
    for section in sections(notebook):
        for sentence in section.sentences:
            assert all([*unfounded(changed, section.lines)] for changed in mistyped(sentence)), sentence
    made = markdown.as_markdown(notebook, path, PLACES)
    committed = page(name)
    assert NUMBER.sub("N", made) == NUMBER.sub("N", committed)
    for ours, theirs in zip(NUMBER.findall(made), NUMBER.findall(committed), strict=True):
        new, old = (float(number.replace(",", "")) for number in (ours, theirs))
        assert abs(new - old) <= 1.001 * one_of_the_last_digit(theirs), (ours, theirs)


@pytest.mark.parametrize("path", [ROOT / "README.md", *PLACES.values()], ids=lambda path: path.stem)
def test_links_and_pictures_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    assert len(links) >= 5
    for link in links:
        target, _, anchor = link.partition("#")
        if ":" in target:
            continue
        file = path.parent / target if target else path
        assert file.is_file(), link
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), link


def test_every_verdict_stands_first_below_its_heading():
    verdicts = papers.verdicts()
    assert {*verdicts["verdict"]} <= {*WORDS}
    for row in verdicts.itertuples():
        _, heading, below = page(f"results_{row.folder}").partition(f"\n## {row.place}\n\n")
        assert heading and below.startswith(f"**{WORDS[row.verdict]}"), row.place
        assert (ROOT / "notebooks" / f"{row.notebook}.ipynb").is_file()
        sentences = below.partition("\n\n")[0]
        assert row.verdict == "not run" or ("shortened" in sentences) == ("shortened" in row.size), row.place


def test_printed_tables_and_figures_are_counted_as_the_papers_number_them():
    """Typed from the papers: Tables 1 and 2; Tables 1 to 6, Figures 2 to 6; Table 2; Figures M.2 and M.3."""
    verdicts = papers.verdicts()
    items = verdicts.assign(item=verdicts["items"].str.split("; ")).explode("item").dropna(subset="item")
    numbered = items.groupby("paper")["item"].agg(lambda names: sorted({*names})).to_dict()
    assert numbered == {
        "taxonomy": ["Table 1", "Table 2"], "SCE": ["Table 2"], "JCL": ["Figure M.2", "Figure M.3"],
        "CM-ACC": [*(f"Figure {number}" for number in range(2, 7)), *(f"Table {number}" for number in range(1, 7))]}
    assert page("results").partition("| run at |")[2].splitlines()[2:5] == [
        "| full size on real data | 2 | 1 | 2 | 0 | 0 |", "| shortened or bundled | 11 | 0 | 6 | 0 | 5 |",
        "| arithmetic | 0 | 2 | 0 | 1 | 0 |"]  # 13 and Tables 4 to 6, which were not run, are 16


def notebook_of(*sources):
    cells = [nbformat.v4.new_markdown_cell(source) for source in sources]
    return nbformat.v4.new_notebook(cells=cells)


def test_a_page_has_texts_and_what_cells_show_as_markdown_and_links_from_where_it_stands():
    title = "# Title\n\n![A](../figures/a.png) [B](results_b.ipynb#of-b)"
    notebook = notebook_of(title, "[C](https://c.org/d) [E](#e)")
    data = {"text/markdown": "- one [F](../docs/f.md)\n- two\n\n| a |"}
    shown = nbformat.v4.new_output("execute_result", data)
    printed = nbformat.v4.new_output("stream", text="torch 2")
    notebook.cells.append(nbformat.v4.new_code_cell("secret = 1", outputs=[printed, shown]))
    pages = {Path("p/notebooks/results.ipynb"): Path("p/RESULTS.md"),
             Path("p/notebooks/results_b.ipynb"): Path("p/docs/results_b.md")}
    text = markdown.as_markdown(notebook, Path("p/notebooks/results.ipynb"), pages)
    first, *rest = text.split("\n", 2)
    assert first.startswith("<!--") and " notebooks/results.ipynb " in first
    assert rest[1] == ("# Title\n\n![A](figures/a.png) [B](docs/results_b.md#of-b)\n\n[C](https://c.org/d) [E](#e)\n\n"
                       "- one [F](docs/f.md)\n- two\n\n| a |\n")
    text = markdown.as_markdown(notebook, Path("p/notebooks/results_b.ipynb"), pages)
    assert "(../figures/a.png) [B](results_b.md#of-b)" in text and "[F](f.md)" in text
    elsewhere = {path: Path("out") / page.relative_to("p") for path, page in pages.items()}
    text = markdown.as_markdown(notebook, Path("p/notebooks/results_b.ipynb"), elsewhere)
    assert "(../../p/figures/a.png) [B](results_b.md#of-b)" in text and "[F](../../p/docs/f.md)" in text


def test_pages_are_written_all_together_or_not_at_all(tmp_path, monkeypatch):
    project, folder = tmp_path / "project", tmp_path / "pages"
    (project / "notebooks").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"notebooks has no results\*.ipynb; run this in a checkout"):
        markdown.write(project, folder)
    for name, text in {"results": "# Index", "results_b": "# B"}.items():
        nbformat.write(notebook_of(text), project / "notebooks" / f"{name}.ipynb")

    def execute(path, *_, **__):
        if path.stem == failing:
            raise papermill.PapermillExecutionError(0, 1, "assert 2 < 1", "AssertionError", "2 < 1", [])
        return nbformat.read(path, as_version=4)

    monkeypatch.setattr(papermill, "execute_notebook", execute)
    failing = "results_b"
    with pytest.raises(ValueError, match=r"results_b.ipynb, cell In \[1\]: AssertionError: 2 < 1$"):
        markdown.write(project, folder)
    failing = ""
    nbformat.write(notebook_of("# B\n\n## C\n\nIt is 51.3. So."), project / "notebooks" / "results_b.ipynb")
    with pytest.raises(ValueError, match=r"results_b.ipynb, section 'C': 51.3 is not told.* sentence 'It is 51.3.'$"):
        markdown.write(project, folder)
    nbformat.write(notebook_of("# B"), project / "notebooks" / "results_b.ipynb")
    assert not folder.exists()
    written = markdown.write(project, folder)
    assert written == [folder / "RESULTS.md", folder / "docs" / "results_b.md"]
    assert [path.read_text().split("\n\n")[1].strip() for path in written] == ["# Index", "# B"]
