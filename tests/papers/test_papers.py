"""What papers declare, put together by name: what two of them call alike is refused, as one would hide the other."""

import sys

import pytest

from repro import papers
from repro.papers import sources
from repro.report import printed

INIT = 'TITLE = "{name}"\nTABLES = {{"{table}": "a line"}}\n'
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
    assert list(papers.tables()) == [*before, "novel"] and papers.titles()["Novel"] == ["novel"]


NOVEL = made("Novel", "novel", "novelty")
HEAD = "id,place,says,experiment,measure,first,second,rule,margin\n"


@pytest.mark.parametrize(("added", "read", "message"), [
    ({"zz_novel": NOVEL | {"__init__": INIT.format(name="Novel", table="novle")}}, papers.tables,
     r"the paper zz_novel names a table 'novle', which .* lacks \(novel\)"),
    ({"zz_novel": made("Novel", "temperature_grid", "novelty")}, papers.tables,
     "papers sce and zz_novel have both a table 'temperature_grid'; rename one"),
    ({"zz_novel": made("Novel", "novel", "images")}, papers.tables,  # its runs would have the ids of the other's
     "and novel are tables of two studies called 'images', which would take each"),
    ({"zz_novel": {"__init__": 'TITLE = "SCE"\n', "claims.csv": HEAD}}, lambda: papers.listed("claims"),
     "the papers sce and zz_novel have both a title 'SCE'; rename one of them"),
    ({"zz_novel": {"__init__": "", "claims.csv": HEAD}}, lambda: papers.listed("claims"),
     r"zz_novel.claims\.csv is of a paper without TITLE; write one"),
    ({"zz_one": {"__init__": "", "figures": "PICTURES = {'curve': 1}"},
      "zz_two": {"__init__": "", "figures": "PICTURES = {'curve': 2, 'other': 3}"}}, papers.pictures,
     "the papers zz_one and zz_two have both a picture 'curve'; rename one"),
])
def test_a_paper_that_would_hide_what_another_has_is_refused(later, added, read, message):
    later(**added)
    with pytest.raises(ValueError, match=message):
        read()


def test_what_has_no_claims_needs_no_title(later):
    later(zz_novel={"__init__": ""})
    assert len(papers.listed("claims"))


def test_a_derived_table_that_would_hide_an_experiment_from_every_claim_is_refused(monkeypatch):
    monkeypatch.setattr(sources, "joined", lambda *_: {"taxonomy_ucla": None, "novel": None})
    with pytest.raises(ValueError, match="'taxonomy_ucla' is a derived table and an experiment, or a table; rename"):
        sources.reader()


@pytest.mark.parametrize(("text", "message"), [
    ("odd: {table: sce, says: one}\nodd: {table: sce, says: another}\n",
     "odd stands there twice; take one out, or rename it in .*line 2"),
    ("odd: {table: sce, says: one, says: another}\n", "says stands there twice"),
    ("odd: {table: sce, says: so, fields: {layers: 1, batch: 2, layers: 3}}\n", "layers stands there twice"),
    ("taxonomy_ucla: {table: sce, says: so}\n", "taxonomy_ucla is the name of two experiments"),
    ("odd: {table: sce,\n  says: so\neven: {table: sce, says: so}\n", "line 3, .*; mend it, or restore it"),
    ("", "it should be experiments by name"), ("- odd\n", "it should be experiments by name"),
    ("odd: \x00\n", "special characters are not allowed .*; mend it"),
])
def test_a_slip_in_a_list_of_experiments_is_a_line_that_names_the_file(later, text, message):
    later(zz_novel={"__init__": "", "experiments.yaml": text})
    with pytest.raises(ValueError, match=rf"zz_novel.experiments\.yaml: .*{message}") as raised:
        papers.saved.__wrapped__()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["claims", "discrepancies"])
def test_an_id_of_two_rows_is_refused_also_across_papers(later, tmp_path, name):
    head, row, *_ = (papers.folders()["sce"] / f"{name}.csv").read_text().splitlines()
    known = row.partition(",")[0]
    later(zz_novel={"__init__": 'TITLE = "Novel"\n'})
    for rows, twice in (([row], known), ([row.replace(known, "N1", 1)] * 2, "N1")):
        (tmp_path / "zz_novel" / f"{name}.csv").write_text("\n".join([head, *rows, ""]))
        with pytest.raises(ValueError, match=rf"zz_novel.{name}\.csv: {twice} is the id of two rows; give one another"):
            papers.listed(name)


def test_printed_numbers_of_another_papers_name_are_refused(tmp_path, monkeypatch):
    for paper in ("one", "two"):
        (tmp_path / paper / "printed").mkdir(parents=True)
        (tmp_path / paper / "printed" / "accuracy.csv").write_text("method,accuracy\nmoco,1\n")
    monkeypatch.setattr(printed, "PAPERS", tmp_path)
    printed._files.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"accuracy\.csv and .*accuracy\.csv are printed tables of one"):
            printed.printed("accuracy")
    finally:
        printed._files.cache_clear()
