"""Executed notebooks as HTML: what is shown, what is left out, and that nothing in it loads or runs anything."""

import made_up_report
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from repro.report.executed import read


def only(folder, made):
    made_up_report.write_notebooks(folder, made=made)
    found, = read(folder)
    return found


def test_what_it_says_of_a_notebook(tmp_path):
    found = only(tmp_path, made_up_report.notebook())
    assert (found.name, found.title, found.ended) == ("made", "A made-up notebook", "complete")
    assert (found.planned, found.preset, found.dataset) == ("2 cells of preset quick on digits", "quick", "digits")


def test_the_body_shows_text_tables_and_pictures(tmp_path):
    body = only(tmp_path, made_up_report.notebook()).body
    assert "<td>CE</td>" in body and "2 cells of preset quick" in body and "show" in body
    assert f"data:image/png;base64,{made_up_report.picture('navy')}" in body
    assert 'alt="Picture under the heading: A made-up notebook"' in body
    assert body.count("open this notebook in JupyterLab") == 2  # a slider alone, and widgets that left a picture
    assert made_up_report.picture("teal") in body and "VBox()" not in body and "IntSlider" not in body


def test_the_body_neither_runs_nor_loads_anything(tmp_path):
    body = only(tmp_path, made_up_report.notebook()).body
    for part in ("<script", "alert(1)", "http:", "https:", "<link", "cells:   0%"):
        assert part not in body


@pytest.mark.parametrize("address", ["", ' href="../../figures/taxonomy_ucla.png"'])
def test_figures_are_links_wherever_the_notebook_was_executed(tmp_path, address):
    anchors = (f'<a data-figure="{name}.png"{address}>{name}</a>' for name in ("taxonomy_ucla", "old"))
    shown = f"<td>{', '.join(anchors)}</td>"
    made = new_notebook(cells=[new_code_cell("", outputs=[new_output("display_data", {"text/html": shown})])])
    made_up_report.write_notebooks(tmp_path, made=made)
    (found,) = read(tmp_path, {"taxonomy_ucla.png", "taxonomy_ucla.svg"})
    assert '<td><a href="../figures/taxonomy_ucla.png">taxonomy_ucla</a>, <a>old</a></td>' in found.body


@pytest.mark.parametrize(
    ("made", "ended"),
    [
        (made_up_report.notebook(error=True), "stopped by an error"),
        (made_up_report.notebook(count=None), "stopped midway"),
        (new_notebook(cells=[new_code_cell("1")]), "not executed"),
        (new_notebook(), "not executed"),
        (new_notebook(cells=[new_code_cell("1", execution_count=1), new_code_cell("")]), "complete"),
    ],
)
def test_how_it_ended(tmp_path, made, ended):
    assert only(tmp_path, made).ended == ended


def test_a_notebook_without_heading_or_table(tmp_path):
    found = only(tmp_path, new_notebook(cells=[new_markdown_cell("no heading"), new_code_cell("1", execution_count=1)]))
    assert (found.title, found.planned, found.preset, found.dataset) == ("made", "", "", "")


def test_no_notebooks(tmp_path):
    assert read(tmp_path) == [] == read(tmp_path / "missing")


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "[{}]", "3", "null", '{"nbformat": 4, "nbformat_minor": 5}'])
def test_what_is_no_notebook_is_named(tmp_path, text):
    (tmp_path / "broken.ipynb").write_text(text)
    with pytest.raises(ValueError, match=r"broken\.ipynb is not a notebook"):
        read(tmp_path)


def test_several_are_sorted_by_name(tmp_path):
    made_up_report.write_notebooks(tmp_path, b=nbformat.v4.new_notebook(), a=made_up_report.notebook())
    assert [each.name for each in read(tmp_path)] == ["a", "b"]
