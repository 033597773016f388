"""Figures and their tables from made-up runs and logs, without data, training or a store."""

import dataclasses
import itertools
from pathlib import Path

import made_up_measures
import pandas as pd
import pytest
from redrawn import hashes, redraw, told

from repro import experiments
from repro.experiments import find
from repro.papers import drawing
from repro.papers.taxonomy import figures
from repro.report import plots
from repro.report.plots import Picture
from repro.run.store import write_frame, write_json

COLUMN = find("taxonomy_ucla")
FIGURES = Path(__file__).parents[2] / "figures"


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "no data"))
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "no runs"))


def finished(experiment, linear=50.0, **measures):
    """The stored runs of an experiment, all of them finished."""
    places = itertools.count()
    return made_up_measures.finished([*experiment.asked().values()], lambda run: {
        "linear": linear + next(places) % 7, "knn1": 40.0, "embedding_spread": 0.5, **measures})


def saved(name="short", seeds="0,2", **fields):
    """An experiment on the column of NW-UCLA."""
    return dataclasses.replace(COLUMN, name=name, seeds=seeds, fields=fields)


def test_an_experiment_is_a_table_and_a_figure_of_its_name_always_of_the_same_bytes(tmp_path):
    short = saved(objectives=["random", "CE", "CE+AD"])
    runs = pd.concat([finished(short), finished(saved(objectives="AD"))])  # which nobody asks for
    written, failed = redraw(tmp_path / "one", runs, short, saved("unfinished", objectives="CD"))
    assert not failed
    assert [path.name for path in written] == ["short.csv", "short.svg", "short.png"]
    assert {path.name for path in (tmp_path / "one").iterdir()} == {".figures.lock", *(path.name for path in written)}
    table = pd.read_csv(tmp_path / "one" / "short.csv")
    assert table["objectives"].tolist() == ["random", "CE", "CE+AD"] and table["n_seeds"].tolist() == [2] * 3
    assert table["printed"].tolist() == [52.01, 83.73, 85.70] and table["difference"].notna().all()
    caption, source = told(tmp_path / "one" / "short")
    assert sorted(source.pop("runs")) == sorted(short.asked())
    assert source == {"seeds": [0, 2], "preset": "paper", "dataset": "ucla"}
    assert caption == (f"{plots.caption_of(figures.taxonomy)} Data set: ucla. Preset: paper. Seeds: 0, 2. "
                       "Drawn from 6 runs, whose ids are in the source of this file.")
    redraw(tmp_path / "two", runs.sample(frac=1, random_state=0), short)
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")


def test_an_experiment_without_a_title_is_a_table_alone_and_a_title_of_other_rows_is_left_out(tmp_path, capsys):
    short = saved(objectives=["CE", "AD"])
    written, _ = redraw(tmp_path / "plain", finished(short), short, titled=False)
    assert [path.name for path in written] == ["short.csv"] and not capsys.readouterr().err
    for _ in range(2):  # also where the table is there that the first time wrote
        redraw(tmp_path / "titled", finished(short), short)
        drawn = (tmp_path / "titled" / "short.svg").read_text(encoding="utf-8")
        assert "Of other rows" not in drawn and COLUMN.declared.title in drawn
        digest = hashes(tmp_path / "titled")["short.csv"][:12]
        assert f"is of other rows; of these write one, with rows: \"{digest}\"\n" in capsys.readouterr().err


def test_one_row_is_no_figure_and_several_settings_are_all_drawn(tmp_path):
    single, rates = saved("single", objectives="CE"), saved("rates", objectives=["CE", "AD"], learning_rate=[0.1, 0.2])
    written, _ = redraw(tmp_path, pd.concat([finished(single), finished(rates)]), single, rates)
    assert [path.name for path in written] == ["single.csv", "rates.csv", "rates.svg", "rates.png"]
    table = pd.read_csv(tmp_path / "rates.csv")
    assert table["changed"].tolist() == [f"learning_rate={rate}" for _ in range(2) for rate in (0.1, 0.2)]
    drawn = (tmp_path / "rates.svg").read_text(encoding="utf-8")
    assert all(f"{name}, learning rate {rate}" in drawn for name in ("CE", "AD") for rate in (0.1, 0.2))


def test_settings_that_are_no_fields_of_the_table_go_across_or_have_panels_or_names_of_their_own():
    def titles(figure):
        return [axes.get_title("left") for axes in figure.axes]

    one_number = experiments.results("samplers_with_headroom")
    figure = drawing.draw("samplers_with_headroom", one_number)
    assert titles(figure) == 2 * ["new pairs", "drawings never seen"]
    assert {tuple(axes.get_xticks()) for axes in figure.axes} == {(256, 1024)} and "batch 128" in figure.get_supxlabel()
    assert figure.axes[-1].get_xlabel() == "dictionary" not in figure.get_supxlabel()
    panels = [f"{of}\ndictionary {size}" for size in ("1,024", "256") for of in ("new pairs", "drawings never seen")]
    two_numbers = pd.concat([one_number.assign(batch=batch) for batch in (64, 128)], ignore_index=True)
    assert titles(drawing.draw("ohem_vs_active", two_numbers)) == 2 * panels
    pooled = drawing.draw("pooled_keys_synthetic", experiments.results("pooled_keys_synthetic"))
    names = [label.get_text() for label in pooled.axes[0].get_yticklabels()]
    assert names == ["CM-ACC, keys encoded again", "CM-ACC, keys as the pool has them"]


def test_rows_of_another_table_and_rows_that_lack_a_column_are_refused():
    rows = experiments.results("taxonomy_synthetic")
    with pytest.raises(ValueError, match="rows to draw taxonomy_ucla from lack std; draw those of the table taxonomy"):
        drawing.draw("taxonomy_ucla", rows.drop(columns="std"))
    with pytest.raises(ValueError, match="rows to draw ohem_vs_active from lack sampler, batch, target; "):
        drawing.draw("ohem_vs_active", rows)


def test_a_drawing_that_fails_is_named_and_leaves_the_others_alone(tmp_path):
    (tmp_path / "broken.csv").write_text("old")

    def fails(frame):
        assert not (tmp_path / "short.csv").exists()  # until all are made
        raise TypeError("text beside numbers")

    pictures = {"broken": Picture(experiments=(), plot=figures.EFFECTS, rows=fails)}
    short = saved(objectives=["CE", "AD"])
    written, failed = redraw(tmp_path, finished(short), short, pictures=pictures)
    assert [path.name for path in written] == ["short.csv", "short.svg", "short.png"]
    assert {name: str(error) for name, error in failed.items()} == {"broken": "text beside numbers"}
    assert (tmp_path / "broken.csv").read_text() == "old"
    there = {path.name for path in tmp_path.iterdir()}
    assert there == {".figures.lock", "broken.csv", "short.csv", "short.svg", "short.png"}


def test_committed_runs_are_drawn_without_data(tmp_path):
    written, failed = drawing.redraw(tmp_path, ["released_head_ucla", "cross_modal_with_headroom"])
    assert not failed and [path.name for path in written] == [
        "released_head_ucla.csv", *(f"cross_modal_with_headroom.{ending}" for ending in ("csv", "svg", "png"))]
    for path in tmp_path.glob("*.csv"):
        assert path.read_bytes() == (FIGURES / path.name).read_bytes()
    with pytest.raises(ValueError, match=r"name='none' is not one of: .*cross_modal_synthetic.*along_training_ucla"):
        drawing.redraw(tmp_path, ["none"])


def test_a_picture_of_what_own_runs_have_left_is_drawn(tmp_path, monkeypatch):
    name = "pretext_accuracy_synthetic"
    rows = pd.read_csv(FIGURES / f"{name}.csv")
    folder = tmp_path / "runs" / rows["id"].iloc[0]
    folder.mkdir(parents=True)
    run = find("cross_modal_synthetic").asked()[folder.name]
    metrics = {"evaluation": 1, "synthetic_video": 40.0, "synthetic_audio": 30.0}
    write_json(folder / "recipe.json", run.describe() | {"dataset": rows["dataset"].iloc[0]})
    write_json(folder / "result.json", metrics | {"cost": {"finished": "2026-01-01", "commit": "0"}})
    write_frame(rows[rows["id"] == folder.name].assign(accuracy=50.0), folder / "pretext_accuracy.csv")
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    written, failed = drawing.redraw(tmp_path, [name])
    assert not failed and [path.suffix for path in written] == [".csv", ".svg", ".png"]
    assert (pd.read_csv(written[0]).query("id == @folder.name")["accuracy"] == 50).all()
