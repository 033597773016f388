import itertools

import matplotlib
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.collections import QuadMesh
from matplotlib.patches import Rectangle
from pandas import DataFrame

from repro.papers.jcl import figures as jcl
from repro.papers.sce import figures as sce
from repro.report import style
from repro.report.printed import printed

NAN = np.nan
NOT_RUN = {"ours": NAN, "std": NAN, "n_seeds": 0}


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


def panels(table) -> dict:
    return {axes.get_title(loc="left"): axes for axes in sce.temperature_grid(table).axes}


def mesh(axes) -> QuadMesh:
    return next(artist for artist in axes.collections if isinstance(artist, QuadMesh))


def framed(axes, colour) -> set:
    """Columns and rows of the cells with a frame of this colour."""
    frames = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    corners = [frame.get_xy() for frame in frames if frame.get_edgecolor() == matplotlib.colors.to_rgba(colour)]
    return {(int(x), int(y)) for x, y in corners}


def test_grid_shows_every_value_and_marks_the_best_of_each_row():
    found = panels(grid_table())
    assert list(found) == ["SCE, ours", "SCE, printed", "ReSSL, ours (own colours)"]
    expected = printed("sce_temperature").query("dataset == 'CIFAR10'").iloc[:, 2:].to_numpy()
    for name, values, deviation in (("SCE, ours", expected - 3, "\n±0.2"), ("SCE, printed", expected, "")):
        axes = found[name]
        np.testing.assert_allclose(mesh(axes).get_array(), values)
        assert [text.get_text() for text in axes.texts] == [f"{value:.2f}{deviation}" for value in values.ravel()]
        assert framed(axes, style.INK) == {(3, 0), (7, 1)} and framed(axes, style.VERMILLION) == {(7, 0)}
        assert [label.get_text() for label in axes.get_yticklabels()] == [r"$\tau$ = 0.1", r"$\tau$ = 0.2"]
        assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row is above
    assert [label.get_text() for label in axes.get_xticklabels()][:2] in ([], ["0.03", "0.04"])


def test_ressl_cells_stand_in_their_own_row_and_missing_ones_are_blank():
    axes = panels(grid_table())["ReSSL, ours (own colours)"]
    values = mesh(axes).get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(values)[0], [True, False, False, True, True, True, True, False])
    np.testing.assert_array_equal(values.compressed(), [88.0, 87.0, 20.0])
    assert axes.patch.get_hatch() and len(axes.texts) == 3
    assert framed(axes, style.INK) == {(1, 0)} and framed(axes, style.VERMILLION) == {(7, 0)}


def test_a_single_cell_is_no_best():
    axes = panels(grid_table().query("method == 'sce' or key_temperature == 0.1"))["ReSSL, ours (own colours)"]
    assert framed(axes, style.INK) == set() and framed(axes, style.VERMILLION) == {(7, 0)}


def test_of_single_seeds_no_best_is_marked():
    table = grid_table()
    first = table["temperature"] == 0.1
    one_alone = first & (table["key_temperature"] == 0.03)
    for alone, rows in ((one_alone, {(7, 1)}), (first, {(7, 1)}), (~first, {(3, 0)}), (first | ~first, set())):
        found = panels(table.assign(std=table["std"].mask(alone), n_seeds=table["n_seeds"].mask(alone, 1)))
        assert framed(found["SCE, ours"], style.INK) == rows
        assert framed(found["SCE, printed"], style.INK) == {(3, 0), (7, 1)}  # which are what the paper has


def test_the_best_printed_cell_is_that_of_all_printed_ones():
    found = panels(grid_table("quick").query("key_temperature in (0.03, 0.05, 0.07, 0.1)"))
    assert framed(found["SCE, printed (not comparable: own colours)"], style.INK) == {(3, 1)}  # the other is at 0.06
    assert framed(found["SCE, ours"], style.INK) == {(2, 0), (3, 1)}


def test_ours_and_printed_share_colours_in_a_reproduction_alone():
    paper, quick = panels(grid_table()), panels(grid_table("quick"))
    assert {mesh(paper[name]).get_clim() for name in ("SCE, ours", "SCE, printed")} == {(88.97 - 3, 90.34)}
    assert mesh(quick["SCE, ours"]).get_clim() == (88.97 - 40, 90.34 - 40)
    assert mesh(quick["SCE, printed (not comparable: own colours)"]).get_clim() == (88.97, 90.34)
    assert list(panels(grid_table("quick", "digits"))) == ["SCE, ours", "ReSSL, ours (own colours)"]


def test_a_cell_given_twice_is_refused():
    with pytest.raises(ValueError, match="duplicate"):
        sce.temperature_grid(pd.concat([grid_table(), grid_table()]))


def test_histograms_count_every_image_and_mark_the_medians():
    table = agreement_table()
    table.loc[0, ["similarity", "variance"]] = NAN
    figure = jcl.similarity_variance(table)
    assert "CIFAR-10 (a part or copy); mean ± std of 2 seeds\nquick recipe: not a reproduction" in {
        text.get_text() for text in figure.texts}
    for axes, column in zip(figure.axes, ("similarity", "variance"), strict=True):
        outlines = [patch.get_data() for patch in axes.patches]
        for (_, rows), (shares, edges, _) in zip(table.groupby("model"), outlines, strict=True):
            values = rows[column].dropna()
            np.testing.assert_allclose(shares, 100 * np.histogram(values, edges)[0] / len(values))
            np.testing.assert_allclose(shares.sum(), 100)
        medians = table.groupby("model")[column].median()
        np.testing.assert_allclose([line.get_xdata()[0] for line in axes.lines], medians)
    styles = [patch.get_linestyle() for patch in figure.axes[0].patches]
    assert all(a != b for a, b in itertools.combinations(styles, 2))
    assert "d = 512" in figure.axes[1].get_title(loc="left")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels[0].startswith("JCL, 2 x 499 images, median 0.9") and labels[1].startswith("MoCo v2, 2 x 500 images")
    single = jcl.similarity_variance(agreement_table().assign(seed=0))
    assert single.axes[0].get_legend().get_texts()[0].get_text().startswith("JCL, 1,000 images")
    with pytest.raises(ValueError, match=r"one d; this table has \[128, 512\]"):
        jcl.similarity_variance(pd.concat([agreement_table(), agreement_table(d=128)]))


def test_views_are_shown_as_they_are():
    views = {name: torch.rand(3, 3, 4, 4) for name in ("image", "strong view")}
    figure = sce.view_strip(views)
    shown = [axes.get_images()[0].get_array() for axes in figure.axes]
    expected = [image.permute(1, 2, 0).numpy() for images in views.values() for image in images]
    assert all(np.array_equal(found, image) for found, image in zip(shown, expected, strict=True))
    assert [axes.get_ylabel() for axes in figure.axes[::3]] == ["image", "strong\nview"]
