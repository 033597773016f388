"""CM-ACC's figures: what they show of made-up tables and logs, and that it can be read."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible, assert_settled, lines
from pandas import DataFrame

from repro.audiovisual import synthetic
from repro.papers.cmacc import figures
from repro.papers.cmacc.tables import TABLES as DECLARED
from repro.report.printed import printed

APPROACHES = [row["approach"] for row in DECLARED["cross_modal"].rows]
NAMES = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}
CATEGORIES = [f"{motion}, {material}" for motion in synthetic.MOTIONS for material in synthetic.MATERIALS]
COMPARED = ("random", "ohem", "feature", "gradient")
CONTRASTED = ("smoco", "xmoco", "cmacc")
LONG = ["throwing ball (not baseball or American football)", "playing guitar", "riding a camel"]
JOINED = ["RockClimbingIndoor", "TrampolineJumping", "swing_baseball", "HandstandPushups"]  # of UCF101 and HMDB51
BUNDLED = {"preset": "quick", "dataset": "synthetic", "targets": ("synthetic_video", "synthetic_audio")}
NOT_RUN = {"ours": np.nan, "std": np.nan, "n_seeds": 0}
FIRST = printed("cmacc_table1").set_index("approach")
THIRD = printed("cmacc_table3").set_index("sampler")
PRINTED_SAMPLERS = {"random": "Random", "ohem": "OHEM", "gradient": "Active"}


def table_of(columns, values, n_seeds=3, preset="paper", dataset="kinetics700", **more) -> DataFrame:
    """Rows for the product of the columns' values, as every table has them; `values` gives ours and published."""
    rows = DataFrame([*itertools.product(*columns.values())], columns=[*columns])
    ours, published = zip(*(values(row) for row in rows.itertuples()), strict=True)
    return rows.assign(ours=ours, published=published, std=0.8 if n_seeds > 1 else np.nan, n_seeds=n_seeds,
                       preset=preset, dataset=dataset, **more)


def approaches_table(n_seeds=3, preset="paper", dataset="kinetics_sound", targets=tuple(NAMES)) -> DataFrame:
    """Printed numbers of Table 1, and ours two points below."""

    def values(row):
        known = FIRST[NAMES.get(row.target, "UCF101")].get(row.approach, math.nan)
        return (known if known == known else 74.5) - 2, known

    return table_of({"approach": APPROACHES, "target": targets}, values, n_seeds, preset, dataset)


def samplers_table(n_seeds=3, preset="paper", dataset="kinetics700", targets=tuple(NAMES)) -> DataFrame:
    """Printed numbers of Table 3, and ours two points below; of features and sounds nothing is printed."""

    def values(row):
        column = f"{NAMES.get(row.target)}_M{row.batch}"
        known = THIRD[column].get(PRINTED_SAMPLERS.get(row.sampler), math.nan) if column in THIRD else math.nan
        return (known if known == known else 62 + row.batch / 16) - 2, known

    return table_of({"sampler": COMPARED, "batch": (32, 64, 128), "target": targets}, values, n_seeds, preset, dataset)


def sizes_table(n_seeds=3, preset="paper", dataset="kinetics700", targets=("ucf101",)) -> DataFrame:
    columns = {"method": CONTRASTED, "dictionary": (128, 512, 2048, 8192, 32768), "target": targets}
    return table_of(columns, lambda row: (60 + CONTRASTED.index(row.method) + 3 * np.log10(row.dictionary), math.nan),
                    n_seeds, preset, dataset)


def characters_table(n_seeds=2, preset="paper", dataset="multiomniglot", characters=range(1, 10)) -> DataFrame:
    columns = {"method": CONTRASTED, "characters": characters, "target": ("characters", "unseen")}
    falls, unseen = {"smoco": 7, "xmoco": 4, "cmacc": 1}, {"characters": 0, "unseen": 10}
    return table_of(columns, lambda row: (99 - falls[row.method] * (row.characters - 1) - unseen[row.target], math.nan),
                    n_seeds, preset, dataset)


def transfer_table(
    n_seeds=1, preset="paper", dataset="kinetics_sound", targets=tuple(NAMES), methods=("scratch", "cmacc"), splits=(0,)
) -> DataFrame:
    columns = {"method": methods, "video_trunk": ("r3d18",), "target": targets, "split": splits}
    return table_of(columns, lambda row: (
        50.0 + 10 * methods.index(row.method) + 5 * targets.index(row.target) + row.split, math.nan
    ), n_seeds, preset, dataset)


def diversity_table(n_seeds=3, preset="quick", dataset="synthetic") -> DataFrame:
    columns = {"sampler": COMPARED, "batch": (32, 64, 128), "target": ("video", "audio")}
    table = table_of(columns, lambda row: ((0.5 + 0.1 * COMPARED.index(row.sampler)) * row.batch, math.nan), n_seeds,
                     preset, dataset)
    return table.assign(expected=100 * (1 - 0.99 ** table["batch"]))


def curves_log(seeds=2, preset="quick", dataset="synthetic", batches=(32, 64, 128)) -> DataFrame:
    columns = {"sampler": COMPARED, "batch": batches, "seed": range(seeds), "step": range(5, 301, 5)}
    log = DataFrame([*itertools.product(*columns.values())], columns=[*columns]).assign(preset=preset, dataset=dataset)
    log["frequency"] = "balanced"
    log["expected"], generator = 100 * (1 - 0.99 ** log["batch"]), np.random.default_rng(0)
    for place, name in enumerate(("categories_video", "categories_audio")):
        log[name] = log["expected"] + generator.normal(log["sampler"].str.len() - 8 + place, 1.0)
    return log


def chosen_log(seeds=2, preset="quick", dataset="multiomniglot", steps=(78, 156, 312, 624)) -> DataFrame:
    choices = [("random", 1.0), ("ohem", 1.0), ("feature", 1.0), *(("gradient", value) for value in (1.0, 0.3, 0.07))]
    columns = {"choice": choices, "batch": (32, 64, 128), "seed": range(seeds), "step": steps,
               "frequency": ("balanced", "zipf"), "measure": ("categories", "expected", "predicted", "rho")}
    log = DataFrame([*itertools.product(*columns.values())], columns=[*columns]).assign(preset=preset, dataset=dataset)
    log["sampler"], log["posterior"] = zip(*log.pop("choice"), strict=True)
    log["value"] = 0.6 * log["batch"] + log["sampler"].str.len() + 3 * log["seed"] * (log["measure"] == "categories")
    return log[log["measure"].isin(["categories", "expected"]) | log["sampler"].isin(["feature", "gradient"])]


def pretext_table(seeds=1, preset="quick", dataset="synthetic", categories=100) -> DataFrame:
    columns = {"seed": range(seeds), "query": ("video", "audio"), "category": CATEGORIES[:categories]}
    table = DataFrame([*itertools.product(*columns.values())], columns=[*columns])
    accuracies = np.random.default_rng(0).uniform(0, 100, (2, len(table)))
    return table.assign(pairs=20, accuracy=accuracies[0], accuracy_renewed=accuracies[1], method="cmacc", preset=preset,
                        dataset=dataset)


def picked(batch=32, samplers=COMPARED, preset="quick", dataset="synthetic", seed=0, names=CATEGORIES) -> DataFrame:
    """Negatives of which most are nearest to few queries."""
    draws, columns = np.random.default_rng(seed), {"modality": ("video", "audio"), "sampler": samplers,
                                                   "pick": range(batch)}
    table = DataFrame([*itertools.product(*columns.values())], columns=[*columns])
    queries = draws.choice(2000, batch, replace=False)
    items, nearest = draws.integers(2000, size=len(table)), draws.geometric(0.2, len(table)).clip(max=batch) - 1
    return table.assign(
        item=items, category=[names[item % len(names)] for item in items], nearest=queries[nearest],
        gradient_norm=10 ** draws.normal(1.5, 1, len(table)), smaller=draws.uniform(0, 100, len(table)),
        nearest_category=[names[item % len(names)] for item in queries[nearest]], seed=seed, preset=preset,
        dataset=dataset,
    )


def negatives(table, modality="video"):
    """With a picture of one grey level for every item."""
    items = {*table["item"], *table["nearest"]}
    return figures.selected_negatives(table, {item: np.full((24, 24, 3), item % 256, np.uint8) for item in items},
                                      modality)


MADE = {
    "cross_modal": approaches_table, "ohem_vs_active": samplers_table, "dictionary_size": sizes_table,
    "mutual_information": characters_table, "transfer": transfer_table, "category_diversity": diversity_table,
    "category_curves": curves_log, "post_hoc_diversity": chosen_log, "pretext_accuracy": pretext_table,
    "selected_negatives": picked,
}
DEPARTING = "normalised=True, temperature=0.07, posterior_temperature=0.07, precision=bfloat16"
HARD = [  # to read
    ("cross_modal", approaches_table(preset="quick", dataset="kinetics_sound (subset)").assign(departures=DEPARTING)),
    ("cross_modal", approaches_table().assign(**NOT_RUN)),
    ("ohem_vs_active", samplers_table(1, **BUNDLED)),
    ("dictionary_size", sizes_table(targets=tuple(NAMES))),
    ("mutual_information", characters_table(1, "smoke", "multidigits", (2,))),
    ("transfer", transfer_table(**BUNDLED | {"targets": ("synthetic_video",)}).assign(ours=[70.5, 70.7])),  # near
    ("transfer", transfer_table(targets=("esc50",), methods=tuple(figures.METHODS), dataset="esc50")),
    ("category_diversity", diversity_table(1, "paper", "ucf101").query("sampler == 'gradient' and target == 'audio'")),
    ("category_curves", curves_log(preset="paper", dataset="kinetics_sound").assign(departures=DEPARTING)),
    ("post_hoc_diversity", chosen_log()),
    ("pretext_accuracy", pretext_table(3, "paper", "kinetics700")),
    ("pretext_accuracy", pretext_table().assign(category=lambda rows: "throwing ball (not " + rows["category"])),
    ("selected_negatives", picked(names=[3, 7])),  # digits
    ("selected_negatives", picked(128, preset="paper", dataset="ucf101 (subset)", names=LONG)),
    ("selected_negatives", picked(64, preset="paper", dataset="ucf101", names=JOINED)),
]


def draw(name, table):
    return negatives(table) if name == "selected_negatives" else getattr(figures, name)(table)


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def names_beside(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def legend(figure) -> list[str]:
    return [text.get_text() for shown in figure.legends for text in shown.get_texts()]


# ---------------------------------------------------------------------------------------------- all figures


@pytest.mark.parametrize(("name", "table"), HARD, ids=[f"{name}-{number}" for number, (name, _) in enumerate(HARD)])
def test_no_text_overlaps_or_leaves_the_figure(name, table):
    assert_legible(draw(name, table))


@pytest.mark.parametrize("name", MADE)
def test_the_reader_s_settings_change_nothing_and_the_table_stays_as_it_was(name, tmp_path):
    assert_settled(lambda table: draw(name, table), MADE[name](), tmp_path)


@pytest.mark.parametrize("name", MADE)
def test_titles_say_what_the_numbers_are_and_mixed_tables_are_refused(name):
    dataset = "multiomniglot" if name == "mutual_information" else "ucf101"
    paper, quick = (MADE[name](preset=preset, dataset=dataset) for preset in ("paper", "quick"))
    assert draw(name, paper).get_suptitle().startswith(f"{dataset}, paper recipe")
    assert "quick recipe: not a reproduction" in draw(name, quick).get_suptitle()
    with pytest.raises(ValueError, match="one preset"):
        draw(name, pd.concat([paper, quick]))
    with pytest.raises(ValueError, match=r"one (dataset|method|seed); this table has \[\]"):
        draw(name, quick.iloc[:0])


@pytest.mark.parametrize(("name", "column"), [("pretext_accuracy", "method"), ("selected_negatives", "seed")])
def test_methods_or_seeds_are_not_mixed(name, column):
    table = MADE[name]()
    with pytest.raises(ValueError, match=f"one {column}"):
        draw(name, pd.concat([table, table.assign(**{column: "xmoco" if column == "method" else 1})]))


@pytest.mark.parametrize("name", ["cross_modal", "ohem_vs_active", "transfer"])
def test_nothing_printed_is_shown_on_bundled_data(name):
    figure = draw(name, MADE[name](**BUNDLED).assign(published=99.0))
    assert not any("printed" in label for label in legend(figure))
    drawn = [value for axes in figure.axes for line in axes.lines for value in [*line.get_xdata(), *line.get_ydata()]]
    assert 99.0 not in drawn


@pytest.mark.parametrize("name", ["cross_modal", "ohem_vs_active", "dictionary_size", "transfer"])
def test_characters_of_drawings_never_seen_have_a_panel_of_their_own(name):
    table = MADE[name]().query("target == 'ucf101'").assign(dataset="multidigits", preset="quick", published=math.nan)
    table = pd.concat([table.assign(target="characters", ours=80.0), table.assign(target="unseen", ours=30.0)])
    figure = draw(name, table)
    assert titles(figure) == ["characters, new pairs", "characters, drawings never seen"]
    for axes, value in zip(figure.axes, (80.0, 30.0), strict=True):
        drawn = [set(values) for line in axes.lines for values in (line.get_xdata(), line.get_ydata())]
        assert {value} in drawn and {110.0 - value} not in drawn


# ---------------------------------------------------------------------------------------------- tables


def test_approaches_stand_beside_the_printed_ones():
    table = approaches_table()
    figure = figures.cross_modal(table)
    assert titles(figure) == [f"fine-tuned on {name}" for name in NAMES.values()]
    for axes, target in zip(figure.axes, NAMES, strict=True):
        assert names_beside(axes) == APPROACHES
        ours, beside = (next(line for line in axes.lines if line.get_label() == label) for label in ("ours", "printed"))
        np.testing.assert_array_equal(ours.get_xdata(), table.loc[table["target"] == target, "ours"])
        np.testing.assert_array_equal(ours.get_ydata(), range(len(APPROACHES)))
        np.testing.assert_array_equal(beside.get_xdata(), FIRST[NAMES[target]].reindex(APPROACHES))
    assert legend(figure) == ["ours", "printed"]


def test_samplers_are_lines_over_the_number_of_negatives_in_any_order_of_rows():
    figure = figures.ohem_vs_active(samplers_table().sort_values(["target", "batch"], ascending=[True, False]))
    drawn = lines(figure, titles(figure).index("fine-tuned on UCF101"))
    expected = THIRD.loc["Active", ["UCF101_M32", "UCF101_M64", "UCF101_M128"]].astype(float).to_numpy()
    np.testing.assert_allclose(drawn["active, gradients, printed"], expected)
    np.testing.assert_allclose(drawn["active, gradients"], expected - 2)
    assert "active, features, printed" not in drawn
    assert legend(figure) == ["random", "least confident (OHEM)", "active, features", "active, gradients", "printed"]
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == ["32", "64", "128"]


def test_sizes_are_on_a_logarithmic_axis():
    figure = figures.dictionary_size(sizes_table())
    axes, = figure.axes
    assert axes.get_xscale() == "log" and legend(figure) == ["SMoCo", "XMoCo", "CM-ACC"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["128", "512", "2,048", "8,192", "32,768"]
    assert lines(figure, 0)["SMoCo"][0] == pytest.approx(60 + 3 * np.log10(128))


@pytest.mark.parametrize(("dataset", "expected"), [("multidigits", ["2.3", "4.6", "6.9"]),
                                                  ("multiomniglot", ["4.0", "8.0", "11.8"])])
def test_characters_are_told_in_nats(dataset, expected):
    figure = figures.mutual_information(characters_table(1, "quick", dataset, (1, 2, 3)).sample(frac=1, random_state=0))
    seen, unseen = figure.axes
    above, = seen.child_axes
    assert [label.get_text() for label in above.get_xticklabels()] == expected and list(above.get_xticks()) == [1, 2, 3]
    assert seen.get_xscale() == "linear" and not unseen.child_axes
    np.testing.assert_array_equal(lines(figure, 0)["CM-ACC"], [99, 98, 97])
    np.testing.assert_array_equal(lines(figure, 1)["CM-ACC"], [89, 88, 87])


@pytest.mark.parametrize("departures", [{"categories": 101}, {"frequency": "zipf"}, "frequency=zipf"])
def test_pairs_that_share_other_information_than_printed_are_not_told_in_nats(departures):
    table = characters_table(1, "quick", "multiomniglot", (1, 2, 3))
    table = table.assign(departures=[departures] * len(table))
    assert not figures.mutual_information(table).axes[0].child_axes


def test_samplers_of_one_number_of_negatives_stand_below_one_another():
    table = samplers_table().query("batch == 64")
    figure = figures.ohem_vs_active(table)
    assert names_beside(figure.axes[0]) == ["random", "least confident (OHEM)", "active, features", "active, gradients"]
    ours = next(line for line in figure.axes[0].lines if line.get_label() == "ours")
    target = table["target"].iloc[0]
    by_sampler = table[table["target"] == target].set_index("sampler")["ours"]
    drawn = dict(zip(ours.get_ydata(), ours.get_xdata(), strict=True))
    assert [drawn[place] for place in range(4)] == [*by_sampler[["random", "ohem", "feature", "gradient"]]]


def test_ours_stand_in_the_row_of_what_was_pre_trained_on():
    figure = figures.transfer(transfer_table())
    axes = figure.axes[0]
    names = names_beside(axes)
    assert names[0] == "none" and "Kinetics-Sound" in names and "-" not in names
    points = {(float(x), names[int(y)]) for line in axes.lines
              for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
    assert {(50.0, "none"), (60.0, "Kinetics-Sound")} <= points  # ours
    assert {(77.2, "Kinetics-Sound"), (94.1, "AudioSet"), (95.0, "Kinetics400"), (46.5, "none")} <= points
    assert {(86.9, "Kinetics-Sound"), (82.8, "ImageNet")} <= points  # supervised, of Table 6
    assert legend(figure) == ["Scratch, ours", "CM-ACC, ours", "scratch, printed", "others, printed",
                              "supervised, printed", "CM-ACC, printed"]


def test_no_method_covers_another_that_was_pre_trained_on_the_same():
    methods = ("supervised", "smoco", "xmoco", "cmacc")
    table = transfer_table(methods=methods, targets=("synthetic_audio",), dataset="synthetic").assign(ours=50.0)
    axes, = figures.transfer(table).axes
    places = [line.get_ydata()[0] for line in axes.lines if line.get_marker() in {look.marker for look in
                                                                                  figures.METHODS.values()}]
    down = np.sort(axes.transData.transform([(50.0, place) for place in places])[:, 1])
    assert len(down) == 4 and (np.diff(down) > 4 * axes.figure.dpi / 72).all()  # the size of a marker
    assert np.round(places).tolist() == [0.0] * 4


def test_every_split_has_its_own_point_and_nothing_printed_is_shown_beside_a_part_of_a_set():
    figure = figures.transfer(transfer_table(targets=("ucf101",), dataset="ucf101 (subset)", preset="quick",
                                             splits=(1, 2, 3)))
    axes, = figure.axes
    points = {float(x) for line in axes.lines for x in line.get_xdata() if not np.isnan(x)}
    assert points == {51.0, 52.0, 53.0, 61.0, 62.0, 63.0}
    assert legend(figure) == ["Scratch, ours", "CM-ACC, ours"] and set(names_beside(axes)) == {"none", "UCF101"}


def test_shares_of_the_negatives_stand_below_one_another_with_the_expectation_on_every_panel():
    table = diversity_table()
    uneven = table.assign(expected=table["expected"] * (1 + 1e-15 * (table["sampler"] == "random")))  # of other seeds
    figure = figures.category_diversity(uneven.sample(frac=1, random_state=0))
    assert titles(figure) == ["negatives of video", "negatives of audio", *[""] * 4]
    for axes, (batch, modality) in zip(figure.axes, itertools.product((32, 64, 128), ("video", "audio")), strict=True):
        rows = table[(table["target"] == modality) & (table["batch"] == batch)].set_index("sampler").loc[[*COMPARED]]
        ours, chance = axes.lines[0], next(line for line in axes.lines if line.get_linestyle() == "--")
        drawn = dict(zip(ours.get_ydata(), ours.get_xdata(), strict=True))
        np.testing.assert_allclose([drawn[place] for place in range(len(COMPARED))], 100 * rows["ours"] / batch)
        assert chance.get_xdata()[0] == pytest.approx(100 * 100 * (1 - 0.99**batch) / batch)
        assert axes.get_xlabel() == f"categories,\n% of M = {batch}"
    assert names_beside(figure.axes[0]) == [figures.SAMPLERS[name].label for name in COMPARED]


@pytest.mark.parametrize(("name", "rows"), [
    ("category_diversity", diversity_table()), ("category_curves", curves_log()),
])
def test_the_expectation_of_earlier_versions_is_named_as_that_of_other_draws(name, rows):
    for version, label in ((4, "uniform draws with replacement"), (5, "uniform draws, closed form")):
        assert_legible(figure := draw(name, rows.assign(version=version)))
        assert label in legend(figure)
    assert "uniform draws, closed form" in legend(draw(name, rows))


# ---------------------------------------------------------------------------------------------- logs


def test_curves_are_means_over_seeds_beside_the_expectation_on_every_panel():
    log = curves_log(2)
    figure = figures.category_curves(log.sample(frac=1, random_state=0))
    panels = itertools.product((32, 64, 128), ("categories_video", "categories_audio"))
    for axes, (batch, column) in zip(figure.axes, panels, strict=True):
        dashed = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"]
        assert dashed == pytest.approx([100 * (1 - 0.99**batch)])
        curve, means = axes.lines[1], log.query("batch == @batch and sampler == 'ohem'").groupby("step")[column].mean()
        np.testing.assert_array_equal(curve.get_xdata(), range(5, 301, 5))
        np.testing.assert_allclose(curve.get_ydata(), means)
        deviations = log.query("batch == @batch and sampler == 'ohem'").groupby("step")[column].std()
        bands = axes.collections
        assert len(bands) == len(COMPARED)
        edges = bands[COMPARED.index("ohem")].get_paths()[0].vertices
        np.testing.assert_allclose(np.ptp(edges[np.isclose(edges[:, 0], 155), 1]), 2 * deviations[155])
    labels = [axes.get_ylabel() for axes in figure.axes[::2]]
    assert labels == [f"distinct categories\nof M = {batch}" for batch in (32, 64, 128)]


def test_curves_of_unequal_categories_have_panels_of_their_own():
    equal, unequal = curves_log(2, batches=(64,)), curves_log(1, batches=(64,)).assign(frequency="zipf", expected=30.0)
    unequal["categories_video"] -= 20
    figure = figures.category_curves(pd.concat([unequal, equal]))
    dashed = [line.get_ydata()[0] for axes in figure.axes for line in axes.lines if line.get_linestyle() == "--"]
    assert dashed == pytest.approx(2 * [equal["expected"].iloc[0]] + 2 * [30.0])
    assert [axes.get_ylabel().split("\n")[1] for axes in figure.axes[::2]] == ["of M = 64 (balanced)",
                                                                              "of M = 64 (zipf)"]
    assert "mean \N{PLUS-MINUS SIGN} std of 1 to 2 seeds" in figure.get_suptitle()
    for axes, log in zip(figure.axes[::2], (equal, unequal), strict=True):
        means = log.query("sampler == 'random'").groupby("step")["categories_video"].mean()
        np.testing.assert_allclose(axes.lines[0].get_ydata(), means)
    alone = figures.category_curves(unequal).axes[0]
    assert alone.get_ylabel().endswith("(zipf)")


def test_a_single_report_is_marked():
    """A smoke run has no other."""
    for axes in figures.category_curves(curves_log(1).query("step == 5")).axes:
        assert sum(len(line.get_xdata()) == 1 and line.get_marker() not in ("", "None") for line in axes.lines) == 4
        assert all(float(tick).is_integer() for tick in axes.get_xticks())
    several = figures.category_curves(curves_log(1)).axes[0].lines
    assert {line.get_marker() for line in several} <= {"", "None"}


def test_choices_post_hoc_are_lines_over_steps_and_points_of_predicted_against_counted_gains():
    log = chosen_log(1)
    log.loc[log["measure"] == "predicted", "value"] += 7
    log.loc[(log["measure"] == "categories") & (log["sampler"] != "random"), "value"] += 5
    figure = figures.post_hoc_diversity(log.sample(frac=1, random_state=0))
    assert titles(figure) == ["balanced", "zipf", *[""] * 6] and len(legend(figure)) == 8
    for axes in figure.axes[:6]:
        lines = [line for line in axes.lines if len(line.get_xdata()) == 4]
        assert [list(line.get_xdata().round()) for line in lines] == [[0, 1, 2, 3]] * 6
        assert [label.get_text() for label in axes.get_xticklabels()] == ["78", "156", "312", "624"]
    for axes in figure.axes[6:]:
        points = np.concatenate([np.stack(line.get_data(), 1) for line in axes.lines if line.get_marker() == "."])
        assert len(points) == 4 * 3 * 4 and np.allclose(points, [7, 5])


def test_the_ten_best_and_five_worst_categories():
    table = pretext_table(3)
    figure = figures.pretext_accuracy(table)
    assert titles(figure) == ["queries of video", "queries of audio"]
    for axes, query in zip(figure.axes, ("video", "audio"), strict=True):
        groups = table[table["query"] == query].groupby("category")
        means = groups["accuracy"].mean().sort_values(ascending=False)
        expected = pd.concat([means[:10], means[-5:]])
        assert names_beside(axes) == list(expected.index)
        ranked = [line.get_xdata() for line in axes.lines if line.get_label() in ("highest", "lowest")]
        np.testing.assert_allclose(np.concatenate(ranked), expected)
        np.testing.assert_allclose(axes.lines[-1].get_xdata(), groups["accuracy_renewed"].mean()[expected.index])
        bars = [bar for container in axes.containers for bar in container.lines[2][0].get_segments()]
        deviations = groups["accuracy"].std()[expected.index]
        np.testing.assert_allclose(np.ptp(np.array(bars)[:, :, 0], axis=1), 2 * deviations)
    assert "CM-ACC, mean \N{PLUS-MINUS SIGN} std of 3 seeds" in figure.get_suptitle()


@pytest.mark.parametrize(("categories", "highest", "lowest"), [(1, 1, 0), (10, 10, 0), (12, 10, 2), (40, 10, 5)])
def test_no_category_is_both_best_and_worst_and_equal_ones_come_by_name(categories, highest, lowest):
    table = pretext_table(categories=categories).query("query == 'video'")
    rows = figures.extremes(table)
    assert rows["rank"].tolist() == ["highest"] * highest + ["lowest"] * lowest
    assert rows["category"].is_unique and rows["accuracy"].is_monotonic_decreasing
    equal, names = table.assign(accuracy=50.0).sample(frac=1, random_state=1), sorted(table["category"])
    assert figures.extremes(equal)["category"].tolist() == names[:highest] + names[len(names) - lowest :]


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 128])
def test_a_row_has_the_query_of_most_picks_and_three_of_them_by_gradient(batch):
    table = picked(batch).query("modality == 'audio'")
    for sampler, rows in figures.shown(table.sample(frac=1, random_state=1)).groupby("sampler"):
        picks = table[table["sampler"] == sampler]
        counts = picks["nearest"].value_counts()
        query = min(counts.index[counts == counts.max()])
        items = picks[picks["nearest"] == query].sort_values("gradient_norm", ascending=False)["item"].tolist()
        middle = [items[len(items) // 2]] if len(items) > 2 else []
        assert rows["item"].tolist() == [items[0], *middle, *(items[-1:] if len(items) > 1 else [])]
        assert set(rows["nearest"]) == {query}


def test_tiles_show_the_clips_that_their_texts_name():
    table = picked(batch=64)
    table.loc[table["modality"] == "video", "gradient_norm"] *= 1000
    figure = negatives(table)

    def tile(axes):
        return int(np.unique(axes.images[0].get_array()).item()), axes.get_xlabel().replace("\n", " ")

    for line, sampler in zip(np.reshape(figure.axes, (4, 4)), COMPARED, strict=True):
        rows = figures.shown(table.query("modality == 'video' and sampler == @sampler"))
        assert line[0].get_ylabel().replace("\n", " ") == figures.SAMPLERS[sampler].label
        assert line[0].get_title() == "query"
        assert tile(line[0]) == (rows["nearest"][0] % 256, rows["nearest_category"][0])
        for axes, row in zip(line[1:], rows.itertuples(), strict=True):
            assert tile(axes) == (row.item % 256, row.category)
            assert float(axes.get_title().replace(",", "")) == pytest.approx(row.gradient_norm, rel=6e-3)
    assert "queries of sound, negatives of pictures with norms of gradients" in figure.get_suptitle()
    assert "queries of pictures, negatives of sound" in negatives(table, "audio").get_suptitle()
    assert [axes.get_visible() for axes in negatives(picked(1)).axes] == [True, True, False, False] * 4


def test_what_tells_samplers_apart():
    table = picked(8)
    table.loc[:3, ["category", "nearest_category"]] = "same"
    summary = figures.by_sampler(table).set_index(["modality", "sampler"])
    assert list(summary.index) == [*itertools.product(("video", "audio"), COMPARED)]
    rows = table.iloc[:8]
    same = sum(rows["category"] == rows["nearest_category"])
    assert same >= 4 and summary.loc[("video", "random")].tolist() == pytest.approx([
        8, len(set(rows["category"])), np.median(rows["gradient_norm"]), np.median(rows["smaller"]), 100 * same / 8,
    ])


def test_bundled_clips_are_filmed_again_and_others_not_shown(monkeypatch):
    given, table = {}, picked()
    monkeypatch.setattr(figures, "selected_negatives", lambda log, pictures: given.update(pictures))
    figures.bundled_negatives(table)
    rows = figures.shown(table[table["modality"] == "video"])
    assert given.keys() == {*rows["item"], *rows["nearest"]}
    item = rows["item"][0]
    np.testing.assert_array_equal(given[item], synthetic.pictures([item])[0, 10])
    assert len(figures.of_bundled_clips(table)) == len(table)
    assert figures.of_bundled_clips(table.assign(dataset="ucf101")).empty
