"""What papers declare, put together by name: what two of them call alike is refused, as one would hide the other."""

import sys

import pytest

from repro import papers
from repro.papers import sources
from repro.report import printed

INIT = 'TITLE = "{name}"\nTABLES = ("{table}",)\n'
TABLES = """
import dataclasses
from repro.papers.sce.tables import TABLES as OTHERS
table = OTHERS["temperature_grid"]
study = dataclasses.replace(table.study, name="{study}", version=9)
TABLES = {{"{table}": dataclasses.replace(table, name="{table}", study=study)}}
"""


@pytest.fixture
def later(tmp_path, monkeypatch):
    """What adds papers after the others: the texts of modules and other files by their names, for every paper."""
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path)])

    def add(**of_papers):
        for name, modules in of_papers.items():
            (tmp_path / name).mkdir()
            for module, text in modules.items():
                (tmp_path / name / (module if "." in module else f"{module}.py")).write_text(text)

    papers.tables.cache_clear()
    yield add
    papers.tables.cache_clear()
    for name in [name for name in sys.modules if name.startswith("repro.papers.zz")]:
        del sys.modules[name]


def made(name, table, study):
    return {"__init__": INIT.format(name=name, table=table), "tables": TABLES.format(table=table, study=study)}


def test_a_later_paper_is_there_beside_the_others(later):
    before = list(papers.tables())
    papers.tables.cache_clear()
    later(zz_novel=made("Novel", "novel", "novelty"))
    assert list(papers.tables()) == [*before, "novel"] and papers.titles()["zz_novel"] == "Novel"


NOVEL = made("Novel", "novel", "novelty")


@pytest.mark.parametrize(("added", "read", "message"), [
    ({"zz_novel": NOVEL | {"__init__": INIT.format(name="Novel", table="novle")}}, papers.tables,
     "did you mean 'novel'. zz_novel.tables: table='novle' is not one of: novel"),
    ({"zz_novel": made("Novel", "temperature_grid", "novelty")}, papers.tables,
     "papers sce and zz_novel both have the table 'temperature_grid'; rename one"),
    ({"zz_novel": made("Novel", "novel", "images")}, papers.tables,  # its runs would have the ids of the other's
     "and novel are tables of two studies called 'images', which would take each"),
    ({"zz_novel": {"__init__": "", "claims.yaml": "S1: {place: Table 1, says: So it is., rule: not run}\n"}},
     papers.claims, "the papers sce and zz_novel both have the entry of claims.yaml 'S1'; rename one of them"),
    ({"zz_novel": {"__init__": "", "experiments.yaml": "taxonomy_ucla: {table: sce, says: so}\n"}},
     papers.saved.__wrapped__, "both have the entry of experiments.yaml 'taxonomy_ucla'; rename one"),
    ({"zz_one": {"__init__": "", "figures": "PICTURES = {'curve': 1}"},
      "zz_two": {"__init__": "", "figures": "PICTURES = {'curve': 2, 'other': 3}"}}, papers.pictures,
     "the papers zz_one and zz_two both have the picture 'curve'; rename one"),
    ({"zz_novel": {"__init__": "", "claims": "DERIVED = {'taxonomy_ucla': ('', dict)}"}}, sources.reader,
     "'taxonomy_ucla' is a derived table and an experiment, or a table; rename"),
])
def test_a_paper_that_would_hide_what_another_has_is_refused(later, added, read, message):
    later(**added)
    with pytest.raises(ValueError, match=message):
        read()


WRITTEN = "place: Table 1, says: So it is., rule: above"


@pytest.mark.parametrize(("name", "text", "message"), [
    ("experiments", "odd: {table: sce, says: one}\nodd: {table: sce, says: another}\n",
     "odd stands there twice; take one out, or rename it in .*line 2"),
    ("experiments", "taxonomy: {table: sce, says: so}\n", "taxonomy is the name of a table, too"),
    ("experiments", "- odd\n", "it should be entries by name"),
    ("claims", f"N1: {{{WRITTEN}, frist: {{keys: 1}}}}\n",
     "entry N1: field='frist' is not one of: place, says, .*first"),
    ("claims", "N1: {place: Table 1, says: So it is.}\n", "entry N1: it lacks rule"),
    *(("claims", f"{name}: {{{WRITTEN}}}\n", "is no name of an entry; write") for name in ("10", "~", "true", "''")),
    ("claims", f"N1: {{{WRITTEN}, margin: much}}\n", "entry N1: margin: .*valid number, got 'much'"),
    ("claims", f"N1: {{{WRITTEN}, first: {{keys: []}}}}\n", r"entry N1: first.keys.*at least 1 item"),
    ("claims", f"N1: {{{WRITTEN}, second: true}}\n", "entry N1: second.*got True"),
    ("claims", "N1:\n", "entry N1: None should be place, says, "),
    ("claims", "N-1: {experiment: taxonomy_ucla, rule: above}\n", "an entry without `says` .* id='N-1' is not one of"),
])
def test_a_slip_in_a_file_of_entries_is_a_line_that_names_the_file(later, name, text, message):
    later(zz_novel={"__init__": 'TITLE = "Novel"\n', f"{name}.yaml": text})
    with pytest.raises(ValueError, match=rf"zz_novel.{name}\.yaml.*{message}") as raised:
        {"experiments": papers.saved.__wrapped__, "claims": papers.claims}[name]()
    assert "\n" not in str(raised.value)


def test_a_discrepancy_of_two_rows_is_refused(later):
    head, row, *_ = (papers.folders()["sce"] / "discrepancies.csv").read_text().splitlines()
    later(zz_novel={"__init__": 'TITLE = "Novel"\n', "discrepancies.csv": f"{head}\n{row}\n"})
    with pytest.raises(ValueError, match=r"discrepancies\.csv: S-1 is the id of two rows; give one another"):
        papers.discrepancies()


def test_printed_numbers_of_another_papers_name_are_refused(tmp_path, monkeypatch):
    for paper in ("one", "two"):
        (tmp_path / paper / "printed").mkdir(parents=True)
        (tmp_path / paper / "printed" / "accuracy.csv").write_text("method,accuracy\nmoco,1\n")
    monkeypatch.setattr(printed, "PAPERS", tmp_path)
    with pytest.raises(ValueError, match=r"accuracy\.csv and .*accuracy\.csv are printed tables of one"):
        printed.printed("accuracy")
