import itertools

import matplotlib
import numpy as np
import pandas as pd
import pytest
import torch
from drawn import assert_legible, assert_settled, lines
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


def methods_table(n_seeds=3, preset="quick", dataset="cifar10 (subset)") -> DataFrame:
    methods = {"random": 40.0, "supervised": 70.0, "moco": 55.0, "ressl": 53.0, "sce": 56.0, "jcl": 57.5}
    table = DataFrame({"method": list(methods), "ours": list(methods.values())})
    return table.assign(std=0.5 if n_seeds > 1 else NAN, n_seeds=n_seeds, preset=preset, dataset=dataset)


def parts_log(epochs=200) -> DataFrame:
    epoch = np.arange(1, epochs + 1)
    log = DataFrame({"epoch": epoch, "InfoNCE": 8.3 / epoch + 2, "ReSSL": 7.5 + 0.5 / epoch, "Ceil": 2 - 2 / epoch})
    loss = 0.25 * log["InfoNCE"] + 0.75 * (log["ReSSL"] + log["Ceil"])
    return log.assign(loss=loss, weight=0.25, seed=3, dataset="cifar10", preset="paper")


def keys_table(preset="paper", dataset="cifar10", n_seeds=3) -> DataFrame:
    rows = [("jcl", "keys", keys, 4.0, 0.2) for keys in (1, 2, 3, 5, 7, 9)]
    rows += [("jcl", "strength", 5, strength, 0.2) for strength in (0, 0.5, 1, 2, 4, 6, 10)]
    rows += [("jcl", "temperature", 5, 4.0, temperature) for temperature in (0.07, 0.1, 0.2, 0.3, 0.5)]
    table = DataFrame(rows, columns=["method", "varied", "keys", "strength", "temperature"])
    table = table.assign(encoder_forwards=3 + table["keys"], ours=np.linspace(60, 65, len(table)), n_seeds=n_seeds,
                         std=0.3 if n_seeds > 1 else NAN, preset=preset, dataset=dataset)
    return table.sample(frac=1, random_state=0)


def sampled_table() -> DataFrame:
    keys = 2 ** np.arange(13)
    table = DataFrame({"keys": keys, "inside": 0.88 - 0.02 / keys, "inside_std": 0.06 / np.sqrt(keys),
                       "outside": 0.86, "outside_std": 0.09 / np.sqrt(keys), "closed_form": 0.88, "repeats": 100})
    return table.assign(positives=5, strength=4.0, temperature=0.2, dataset="digits", preset="quick", seed=2)


def agreement_table(images=1000, d=512) -> DataFrame:
    generator = np.random.default_rng(0)
    models = [generator.beta(30, 3, images), generator.beta(20, 5, images)]
    table = DataFrame({"model": np.repeat(["JCL", "MoCo v2"], images), "similarity": np.concatenate(models)})
    seeds = np.tile(np.arange(2), images)
    table = table.assign(variance=(1 - table["similarity"]) / d, d=d, seed=seeds, preset="quick")
    return table.assign(dataset="cifar10 (mine.npz)")


DRAWN = {
    sce.image_methods: (methods_table, [methods_table(n_seeds=1).query("method == 'jcl'")]),
    sce.temperature_grid: (grid_table, [
        grid_table("quick", n_seeds=1), grid_table("quick", "digits"), grid_table().iloc[:1],
        grid_table().query("method == 'ressl'"), grid_table().assign(**NOT_RUN),
        pd.concat([grid_table(), grid_table().iloc[:1].assign(method="ressl", temperature=0.2, key_temperature=0.2)]),
    ]),
    sce.objective_parts: (parts_log, [parts_log(1), parts_log(5).assign(Ceil=NAN)]),
    jcl.positive_keys: (keys_table, [
        keys_table("quick", "digits", 1), keys_table().query("varied == 'strength'"),
        keys_table().query("varied == 'keys'").iloc[:1], keys_table().assign(**NOT_RUN),
    ]),
    jcl.sampled_keys: (
        sampled_table, [sampled_table().iloc[:1], sampled_table().assign(inside=0.88, outside=0.88)]),
    jcl.similarity_variance: (agreement_table, [
        agreement_table().query("model == 'MoCo v2'"), agreement_table(1),
        agreement_table().assign(similarity=lambda table: np.where(table.index % 2, 1, 1 - 1e-16)),
    ]),
}


@pytest.mark.parametrize(("draw", "table"), [(draw, table) for draw, (_, edges) in DRAWN.items() for table in edges])
def test_no_text_overlaps_or_leaves_the_figure(draw, table):
    assert_legible(draw(table))


@pytest.mark.parametrize("draw", DRAWN)
def test_the_reader_s_settings_change_nothing_and_the_table_stays_as_it_was(draw, tmp_path):
    assert_settled(draw, DRAWN[draw][0](), tmp_path)


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


@pytest.mark.parametrize(("draw", "table"), [(sce.temperature_grid, grid_table), (jcl.positive_keys, keys_table)])
def test_titles_say_what_the_numbers_are_and_mixed_tables_are_refused(draw, table):
    what, _, rest = draw(table()).get_suptitle().partition("\n")
    assert what == "cifar10, paper recipe, mean \N{PLUS-MINUS SIGN} std of 3 seeds"
    assert rest == ("linear probe accuracy (%)" if draw is sce.temperature_grid else "")
    embedded = draw(table("quick", "digits", 1)).get_suptitle()
    assert "\nbundled data: not comparable with the printed numbers" in embedded
    with pytest.raises(ValueError, match="one preset"):
        draw(pd.concat([table(), table("quick")]))
    with pytest.raises(ValueError, match="one dataset"):
        draw(table().iloc[:0])


def test_a_cell_given_twice_is_refused():
    with pytest.raises(ValueError, match="duplicate"):
        sce.temperature_grid(pd.concat([grid_table(), grid_table()]))


def test_parts_are_plotted_by_epoch_and_add_up_to_the_loss():
    log = parts_log()
    log.loc[7, "loss"] += 0.004
    figure = sce.objective_parts(log.sample(frac=1, random_state=0))
    found = lines(figure, 0)
    for name in ("InfoNCE", "ReSSL", "Ceil", "loss"):
        np.testing.assert_array_equal(found[name], log[name])
    np.testing.assert_allclose(found["weighted sum"], parts_log()["loss"])
    assert figure.get_suptitle().startswith("cifar10, paper recipe, seed 3\n")
    assert "0.25" in figure.get_suptitle() and "at most 0.004 nats" in figure.get_suptitle()
    for change, message in (({"weight": 0.5}, r"one weight.*\[0.25, 0.5\]"), ({"seed": 4}, "one seed")):
        with pytest.raises(ValueError, match=message):
            sce.objective_parts(pd.concat([log, log.assign(**change)]))


def test_positive_keys_plots_one_point_at_each_value_a_panel_per_quantity_beside_the_baseline():
    table = keys_table().sort_index()
    away = table.assign(ours=table["ours"] - 30, strength=table["strength"].where(table["varied"] == "strength", 1.0))
    figure = jcl.positive_keys(pd.concat([table, away]))  # of several at one value the first
    assert [axes.get_xlabel() for axes in figure.axes] == [
        r"positive keys $M'$ ($\lambda$ = 4, $\tau$ = 0.2)",
        r"strength of the covariance $\lambda$ ($M'$ = 5, $\tau$ = 0.2)",
        r"temperature $\tau$ ($M'$ = 5, $\lambda$ = 4)",
    ]
    baseline = table.loc[(table["varied"] == "keys") & (table["keys"] == 1), "ours"].item()
    for axes, varied in enumerate(("keys", "strength", "temperature")):
        found, rows = lines(figure, axes), table[table["varied"] == varied].sort_values(varied)
        np.testing.assert_array_equal(found.pop("JCL, ours"), rows["ours"])
        levels = [] if varied == "temperature" else [("MoCo v2 ($M'$ = 1), ours, 3 seeds", [baseline, baseline])]
        assert [(name, list(values)) for name, values in found.items()] == levels  # MoCo v2 has one temperature
    cost = figure.axes[0].child_axes[0]
    assert list(cost.get_xticks()) == [1, 2, 3, 5, 7, 9]
    assert [label.get_text() for label in cost.get_xticklabels()] == ["4", "5", "6", "8", "10", "12"]
    assert not any(axes.child_axes for axes in figure.axes[1:])


@pytest.mark.parametrize(("seeds", "joined"), [(3, True), (1, True), ([3, 1, 1, 3, 1, 1], False)])
def test_positive_keys_joins_points_of_equally_many_seeds(seeds, joined):
    table = keys_table().query("varied == 'keys'").sort_values("keys")
    axes = jcl.positive_keys(table.assign(n_seeds=seeds)).axes[0]
    assert (next(line for line in axes.lines if line.get_label() == "JCL, ours").get_linestyle() == "-") == joined


def test_the_baseline_says_of_how_many_seeds_it_is():
    table = keys_table()
    figure = jcl.positive_keys(table.assign(n_seeds=table["n_seeds"].mask(table["keys"] == 1, 1)))
    assert figure.legends[0].get_texts()[1].get_text() == "MoCo v2 ($M'$ = 1), ours, 1 seed"


def test_sampled_keys_plots_the_table_with_standard_errors_and_keeps_the_means_apart():
    table = sampled_table()
    figure = jcl.sampled_keys(table.sample(frac=1, random_state=0))
    axes, found = figure.axes[0], lines(figure, 0)
    np.testing.assert_array_equal(found["mean inside the logarithm"], table["inside"])
    np.testing.assert_array_equal(found["mean of $M$ InfoNCE losses"], table["outside"])
    assert set(found["closed form (Eq. M.8)"]) == {0.88}
    assert figure.get_suptitle().startswith("digits, quick recipe, seed 2\nbundled data")
    assert figure.get_suptitle().endswith("JCL, $M'$ = 5, $\\lambda$ = 4, $\\tau$ = 0.2")
    low, high = axes.get_ylim()
    assert 0.85 < low < 0.86 and 0.88 < high < 0.89 and axes.get_xscale() == "log"
    for band, name in zip(axes.collections, ("inside", "outside"), strict=True):
        errors = table[f"{name}_std"] / 10  # of 100 repeats
        extent = [(table[name] - errors).min(), (table[name] + errors).max()]
        assert band.get_datalim(axes.transData).intervaly == pytest.approx(extent)
    assert "Shaded: one standard error of each mean" in jcl.FIGURES["sampled_keys"].caption


def test_histograms_count_every_image_and_mark_the_medians():
    table = agreement_table()
    table.loc[0, ["similarity", "variance"]] = NAN
    figure = jcl.similarity_variance(table)
    assert "cifar10 (mine.npz), seeds 0, 1\nquick recipe: not a reproduction" in figure.get_suptitle()
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


def test_methods_stand_between_random_and_supervised():
    figure = sce.image_methods(methods_table())
    found = lines(figure, 0)
    assert found["self-supervised, ours"].tolist() == [55.0, 53.0, 56.0, 57.5]
    assert set(found["random initialisation"]) == {40.0} and set(found["supervised"]) == {70.0}
    names = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert names == ["MoCo v2", "ReSSL", "SCE", "JCL"]
    for preset, dataset in itertools.product(("paper", "quick"), ("cifar10", "cifar10 (subset)")):
        title = sce.image_methods(methods_table(preset=preset, dataset=dataset)).get_suptitle()
        assert ("not a reproduction" in title) == ((preset, dataset) != ("paper", "cifar10"))


def test_views_are_shown_as_they_are():
    views = {name: torch.rand(3, 3, 4, 4) for name in ("image", "strong view")}
    figure = sce.view_strip(views)
    shown = [axes.get_images()[0].get_array() for axes in figure.axes]
    expected = [image.permute(1, 2, 0).numpy() for images in views.values() for image in images]
    assert all(np.array_equal(found, image) for found, image in zip(shown, expected, strict=True))
    assert [axes.get_ylabel() for axes in figure.axes[::3]] == ["image", "strong\nview"]
