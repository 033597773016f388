"""Figures of images: heat maps of temperatures, histograms, views."""

import numpy as np
import pandas as pd
import pytest
import torch
from drawn import assert_legible
from matplotlib.collections import QuadMesh
from pandas import DataFrame

from repro.papers.jcl import figures as jcl
from repro.papers.sce import figures as sce
from repro.report import style
from repro.report.printed import printed

NAN = np.nan


def grid_table(preset="paper", dataset="cifar10", n_seeds=3) -> DataFrame:
    """The printed grid of CIFAR-10 with made-up values of ours: best at 0.06 in the first row, 0.1 in the second."""
    table = printed("sce_temperature_long").query("dataset == 'CIFAR10'")
    rows = DataFrame({"method": "sce", "temperature": table["tau"], "key_temperature": table["tau_m"]})
    rows = rows.assign(ours=table["top1"] - (3 if preset == "paper" else 40), published=table["top1"])
    ressl = DataFrame({"method": "ressl", "temperature": 0.1, "key_temperature": [0.04, 0.05, 0.1]})
    rows = pd.concat([rows, ressl.assign(ours=[88.0, 87.0, 20.0], published=NAN)], ignore_index=True)
    rows = rows.assign(std=0.25 if n_seeds > 1 else NAN, n_seeds=n_seeds, preset=preset, dataset=dataset)
    return rows.sample(frac=1, random_state=0)


def agreement_table(images=1000, d=512) -> DataFrame:
    generator = np.random.default_rng(0)
    models = [generator.beta(30, 3, images), generator.beta(20, 5, images)]
    table = DataFrame({"model": np.repeat(["JCL", "MoCo v2"], images), "similarity": np.concatenate(models)})
    seeds = np.tile(np.arange(2), images)
    table = table.assign(variance=(1 - table["similarity"]) / d, d=d, seed=seeds, preset="quick")
    return table.assign(dataset="cifar10 (mine.npz)")


def meshes(table) -> dict[str, QuadMesh]:
    """The values and colours of each panel, by its title."""
    found = {}
    for axes in sce.temperature_grid(table).axes:
        found[axes.get_title(loc="left")] = next(part for part in axes.collections if isinstance(part, QuadMesh))
    return found


def test_grid_shows_every_value():
    found = meshes(grid_table())
    assert list(found) == ["SCE, ours", "SCE, printed", "ReSSL, ours (own colours)"]
    expected = printed("sce_temperature").query("dataset == 'CIFAR10'").iloc[:, 2:].to_numpy()
    np.testing.assert_allclose(found["SCE, ours"].get_array(), expected - 3)
    np.testing.assert_allclose(found["SCE, printed"].get_array(), expected)
    ressl = found["ReSSL, ours (own colours)"].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(ressl)[0], [True, False, False, True, True, True, True, False])
    np.testing.assert_array_equal(ressl.compressed(), [88.0, 87.0, 20.0])
    assert_legible(sce.temperature_grid(grid_table()))


def test_of_single_seeds_no_best_is_marked():
    table = grid_table().query("method == 'sce'").assign(value=lambda rows: rows["ours"])
    first = table["temperature"] == 0.1
    one_alone = first & (table["key_temperature"] == 0.03)
    assert sce._best_of_rows(table).to_dict() == table.groupby("temperature")["ours"].max().to_dict()
    for alone, marked in ((one_alone, [0.2]), (first, [0.2]), (~first, [0.1]), (first | ~first, [])):
        assert [*sce._best_of_rows(table.assign(std=table["std"].mask(alone))).index] == marked


def test_ours_and_printed_share_colours_in_a_reproduction_alone():
    paper, quick = meshes(grid_table()), meshes(grid_table("quick"))
    assert {paper[name].get_clim() for name in ("SCE, ours", "SCE, printed")} == {(88.97 - 3, 90.34)}
    assert quick["SCE, ours"].get_clim() == (88.97 - 40, 90.34 - 40)
    assert quick["SCE, printed (not comparable: own colours)"].get_clim() == (88.97, 90.34)
    assert list(meshes(grid_table("quick", "digits"))) == ["SCE, ours", "ReSSL, ours (own colours)"]


def test_a_cell_given_twice_is_refused():
    with pytest.raises(ValueError, match="duplicate"):
        sce.temperature_grid(pd.concat([grid_table(), grid_table()]))


def test_histograms_have_a_line_at_the_medians_of_the_images_that_are_known():
    table = agreement_table()
    table.loc[0, ["similarity", "variance"]] = NAN
    figure = jcl.similarity_variance(table)
    for axes, column in zip(figure.axes, ("similarity", "variance"), strict=True):
        medians = table.groupby("model")[column].median()
        np.testing.assert_allclose([line.get_xdata()[0] for line in axes.lines], medians)
    assert [text.get_text().split(", median")[0] for text in figure.legends[0].get_texts()] == [
        "JCL, 999 images", "MoCo v2, 1,000 images"]
    assert_legible(figure)
    with pytest.raises(ValueError, match=r"one d; this table has \[128, 512\]"):
        jcl.similarity_variance(pd.concat([agreement_table(), agreement_table(d=128)]))


def test_views_are_shown_as_they_are():
    views = {name: torch.rand(3, 3, 4, 4) for name in ("image", "strong view")}
    shown = [axes.get_images()[0].get_array() for axes in sce.view_strip(views).axes]
    expected = [image.permute(1, 2, 0).numpy() for images in views.values() for image in images]
    assert all(np.array_equal(found, image) for found, image in zip(shown, expected, strict=True))


@pytest.mark.parametrize("value", ["cifar10 (mine.npz)", "tiny_imagenet"])
def test_data_sets_are_called_what_readers_call_them(value):
    assert style.called(value) == {"cifar10 (mine.npz)": "CIFAR-10 (a part or copy)",
                                   "tiny_imagenet": "Tiny ImageNet"}[value]
