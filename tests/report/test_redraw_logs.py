"""Figures of logs, from made-up ones beside which they are drawn."""

import pytest
from made_up_cells import frame
from pandas import DataFrame
from redrawn import hashes, redraw, told

from repro import papers
from repro.audiovisual import synthetic

pytestmark = pytest.mark.usefixtures("folders")
NAMED = {"key": "00a1", "seed": 0, "preset": "quick"}


def negatives(dataset):
    """What samplers pick, as a log."""
    rows = [("video", sampler, pick, 7 * pick, "a", 3.0 + pick, 50.0, 9, "b") for sampler in ("random", "gradient")
            for pick in range(4)]
    columns = ["modality", "sampler", "pick", "item", "category", "gradient_norm", "smaller", "nearest",
               "nearest_category"]
    return DataFrame(rows, columns=columns).assign(dataset=dataset, **NAMED)


def test_logs_of_categories_are_drawn_beside_their_file(tmp_path):
    curves = DataFrame({"step": [5, 10] * 2, "categories_video": 20.0, "categories_audio": 21.0,
                        "sampler": ["random"] * 2 + ["gradient"] * 2, "batch": 32, "expected": 22.0,
                        "key": ["c"] * 2 + ["b"] * 2, "seed": [3, 3, 0, 0], "dataset": "synthetic", "preset": "quick"})
    curves.to_csv(tmp_path / "category_curves_synthetic.csv", index=False)
    accuracy = DataFrame({"query": ["video", "audio"] * 3, "category": list("aabbcc"), "accuracy": 50.0, "pairs": 9,
                          "accuracy_renewed": 9.0, "method": "cmacc", "dataset": "synthetic", **NAMED})
    accuracy.to_csv(tmp_path / "pretext_accuracy_synthetic.csv", index=False)
    negatives("synthetic").to_csv(tmp_path / "selected_negatives_synthetic.csv", index=False)
    written = redraw(frame(), tmp_path)
    stems = ("category_curves", "pretext_accuracy", "selected_negatives")
    assert {path.name for path in written} == {f"{stem}_synthetic.{ending}" for ending in ("png", "svg")
                                               for stem in stems}
    caption, source = told(tmp_path / "category_curves_synthetic")
    assert source == {"cells": ["c", "b"], "seeds": [0, 3], "preset": "quick", "dataset": "synthetic"}
    assert caption.startswith(papers.drawings()["category_curves"].caption)
    assert "Seeds: 0, 3. Drawn from 2 cells, whose" in caption
    assert told(tmp_path / "pretext_accuracy_synthetic")[0].endswith(
        "Data set: synthetic. Preset: quick. Seed: 0. Drawn from 1 cell, whose key is in the source of this file."
    )
    first = hashes(tmp_path)
    redraw(frame(), tmp_path)
    assert hashes(tmp_path) == first


def test_pictures_of_real_clips_are_never_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "pictures", lambda items: pytest.fail("pictures of the wrong clips"))
    for dataset in ("ucf101", "kinetics700 (subset)"):
        name = dataset.partition(" ")[0]
        negatives(dataset).to_csv(tmp_path / f"selected_negatives_{name}.csv", index=False)
    assert redraw(frame(), tmp_path) == []
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv"}


def test_a_log_that_does_not_name_its_cells_is_not_drawn(tmp_path):
    negatives("synthetic").drop(columns="key").to_csv(tmp_path / "selected_negatives_synthetic.csv", index=False)
    with pytest.raises(ValueError, match=r"selected_negatives_synthetic\.csv has no column 'key'"):
        redraw(frame(), tmp_path)


def test_logs_are_drawn_beside_their_file(tmp_path):
    parts = DataFrame({"epoch": [1.0, 2.0], "InfoNCE": 4.0, "ReSSL": 3.0, "Ceil": 1.0, "loss": 4.0, "weight": 0.5,
                       "dataset": "digits", **NAMED})
    parts.to_csv(tmp_path / "objective_parts_digits.csv", index=False)
    images = DataFrame({"model": ["JCL", "MoCo v2"] * 9, "d": 512, "similarity": 0.5, "variance": 1e-3,
                        "dataset": "digits", **NAMED})
    images.to_csv(tmp_path / "similarity_variance_images_digits.csv", index=False)
    contrast = DataFrame({"epoch": [1, 2], "CD": [6.0, 5.0], "sequence_dictionary": 640, "objectives": "CD",
                          "td_queue": "live", "dataset": "digits", **NAMED})
    contrast.to_csv(tmp_path / "sequence_contrast_digits.csv", index=False)
    written = redraw(frame(), tmp_path)
    stems = ("objective_parts", "similarity_variance_images", "sequence_contrast")
    assert {path.name for path in written} == {f"{stem}_digits.{end}" for end in ("png", "svg") for stem in stems}
    first = hashes(tmp_path)
    redraw(frame(), tmp_path)
    assert hashes(tmp_path) == first
