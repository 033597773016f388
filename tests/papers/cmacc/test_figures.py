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
BUNDLED = ("synthetic_video", "synthetic_audio")
DEPARTS = "31 of the 34 classes of Kinetics-Sound, of the lists of Kinetics-700"
UNIT_LENGTH = "normalised=True, temperature=0.07, posterior_temperature=0.07, precision=bfloat16"
CATEGORIES = [f"{motion}, {material}" for motion in synthetic.MOTIONS for material in synthetic.MATERIALS]
COMPARED = ("random", "ohem", "feature", "gradient")
LONG = ["throwing ball (not baseball or American football)", "playing guitar", "riding a camel"]
JOINED = ["RockClimbingIndoor", "TrampolineJumping", "swing_baseball", "HandstandPushups"]  # of UCF101 and HMDB51
QUICK = {"preset": "quick", "dataset": "synthetic", "targets": BUNDLED}
NOT_RUN = {"ours": np.nan, "std": np.nan, "n_seeds": 0}
NAMED = {"approach", "sampler", "batch", "method", "dictionary", "video_trunk", "split"}


def told(table, n_seeds, preset, dataset) -> DataFrame:
    """With the columns that every table has."""
    return table.assign(
        std=0.8 if n_seeds > 1 else np.nan,
        n_seeds=n_seeds,
        difference=table["ours"] - table["published"],
        preset=preset,
        dataset=dataset,
    )


def approaches_table(n_seeds=3, preset="paper", dataset="kinetics_sound", targets=tuple(NAMES)) -> DataFrame:
    """Printed numbers of Tables 1 and 2, and ours two points below."""
    numbers = printed("cmacc_table1").set_index("approach")
    feature = printed("cmacc_table2").set_index("embedding_space").loc["Feature Embedding"]
    rows = []
    for name in APPROACHES:
        for target in targets:
            column = NAMES.get(target, "UCF101")
            found = numbers.loc[name, column] if name in numbers.index else feature[column]
            rows.append((name, target, found - 2, found if name in numbers.index or "feature" in name else np.nan))
    return told(DataFrame(rows, columns=["approach", "target", "ours", "published"]), n_seeds, preset, dataset)


def samplers_table(n_seeds=3, preset="paper", dataset="kinetics700", targets=tuple(NAMES)) -> DataFrame:
    """Printed numbers of Table 3, and ours two points below; of features and sounds nothing is printed."""
    numbers = printed("cmacc_table3").set_index("sampler")
    names = {"random": "Random", "ohem": "OHEM", "gradient": "Active", "feature": None}
    rows = []
    for place, (sampler, name) in enumerate(names.items()):
        for batch in (32, 64, 128):
            for target in targets:
                column = f"{NAMES.get(target)}_M{batch}"
                known = numbers.loc[name, column] if name and column in numbers else np.nan
                rows.append((sampler, batch, target, known - 2 if known == known else 60 + place + batch / 16, known))
    columns = ["sampler", "batch", "target", "ours", "published"]
    return told(DataFrame(rows, columns=columns), n_seeds, preset, dataset)


def sizes_table(n_seeds=3, preset="paper", dataset="kinetics700", targets=("ucf101",)) -> DataFrame:
    rows = [
        (method, size, target, 60 + 5 * place + 3 * np.log10(size) + number, np.nan)
        for place, method in enumerate(("smoco", "xmoco", "cmacc"))
        for size in (128, 512, 2048, 8192, 32768)
        for number, target in enumerate(targets)
    ]
    columns = ["method", "dictionary", "target", "ours", "published"]
    return told(DataFrame(rows, columns=columns), n_seeds, preset, dataset)


def characters_table(n_seeds=2, preset="paper", dataset="multiomniglot", characters=range(1, 10)) -> DataFrame:
    rows = [
        (method, number, "characters", 99 - (7 - 3 * place) * (number - 1), np.nan)
        for place, method in enumerate(("smoco", "xmoco", "cmacc"))
        for number in characters
    ]
    table = DataFrame(rows, columns=["method", "characters", "target", "ours", "published"])
    return told(table.assign(linear_held_out=table["ours"] - 10), n_seeds, preset, dataset)


def transfer_table(
    n_seeds=1, preset="paper", dataset="kinetics_sound", targets=tuple(NAMES), methods=("scratch", "cmacc"), splits=(0,)
) -> DataFrame:
    rows = [
        (method, "r3d18", split, target, 50.0 + 10 * place + 5 * number + split, np.nan)
        for place, method in enumerate(methods)
        for number, target in enumerate(targets)
        for split in splits
    ]
    columns = ["method", "video_trunk", "split", "target", "ours", "published"]
    return told(DataFrame(rows, columns=columns), n_seeds, preset, dataset)


def diversity_table(n_seeds=3, preset="quick", dataset="synthetic") -> DataFrame:
    rows = [
        (sampler, batch, modality, (0.5 + 0.1 * place) * batch, np.nan, 100 * (1 - 0.99**batch))
        for place, sampler in enumerate(("random", "ohem", "feature", "gradient"))
        for batch in (32, 64, 128)
        for modality in ("video", "audio")
    ]
    columns = ["sampler", "batch", "target", "ours", "published", "expected"]
    table = DataFrame(rows, columns=columns).assign(n_seeds=n_seeds, preset=preset, dataset=dataset)
    return table.assign(std=0.8 if n_seeds > 1 else np.nan)


def curves_log(seeds=2, preset="quick", dataset="synthetic", batches=(32, 64, 128)) -> DataFrame:
    generator = np.random.default_rng(0)
    rows = [
        (sampler, batch, seed, step, 100 * (1 - 0.99**batch))
        for sampler in ("random", "ohem", "feature", "gradient")
        for batch in batches
        for seed in range(seeds)
        for step in range(5, 301, 5)
    ]
    log = DataFrame(rows, columns=["sampler", "batch", "seed", "step", "expected"])
    for place, name in enumerate(figures.COUNTED):
        log[name] = log["expected"] + generator.normal(log["sampler"].str.len() - 8 + place, 1.0)
    return log.assign(preset=preset, dataset=dataset)


def pretext_table(seeds=1, preset="quick", dataset="synthetic", categories=100) -> DataFrame:
    generator = np.random.default_rng(0)
    rows = [
        (query, name, 20, generator.uniform(0, 100), generator.uniform(0, 100), "cmacc", seed)
        for seed in range(seeds) for query in ("video", "audio") for name in CATEGORIES[:categories]
    ]
    columns = ["query", "category", "pairs", "accuracy", "accuracy_renewed", "method", "seed"]
    return DataFrame(rows, columns=columns).assign(preset=preset, dataset=dataset)


def picked(batch=32, samplers=COMPARED, preset="quick", dataset="synthetic", seed=0, names=CATEGORIES) -> DataFrame:
    """Negatives of which most are nearest to few queries."""
    generator, rows = np.random.default_rng(seed), []
    for modality in ("video", "audio"):
        queries = generator.choice(2000, batch, replace=False)
        for sampler in samplers:
            for pick in range(batch):
                item, nearest = int(generator.integers(2000)), int(queries[min(batch - 1, generator.geometric(0.2))])
                norm, smaller = 10 ** generator.normal(1.5, 1), generator.uniform(0, 100)
                kinds = names[item % len(names)], names[nearest % len(names)]
                rows.append((modality, sampler, pick, item, kinds[0], norm, smaller, nearest, kinds[1]))
    columns = ["modality", "sampler", "pick", "item", "category", "gradient_norm", "smaller", "nearest",
               "nearest_category"]
    return DataFrame(rows, columns=columns).assign(seed=seed, preset=preset, dataset=dataset)


def pictures(table, size=24) -> dict:
    """A picture of one grey level for every item."""
    return {item: np.full((size, size, 3), item % 256, np.uint8) for item in {*table["item"], *table["nearest"]}}


def negatives(table, modality="video"):
    return figures.selected_negatives(table, pictures(table), modality)


TABLES = {
    "cross_modal": approaches_table,
    "ohem_vs_active": samplers_table,
    "dictionary_size": sizes_table,
    "mutual_information": characters_table,
    "transfer": transfer_table,
    "category_diversity": diversity_table,
    "category_curves": curves_log,
    "pretext_accuracy": pretext_table,
}
FIGURES = {
    "cross_modal": [
        approaches_table(1, **QUICK),
        approaches_table(preset="quick", dataset="kinetics_sound (subset)"),
        approaches_table().query("approach == 'CM-ACC'"),
        approaches_table().assign(departures=UNIT_LENGTH),
        approaches_table().assign(**NOT_RUN),
    ],
    "ohem_vs_active": [
        samplers_table(1, **QUICK),
        samplers_table().assign(sampler="released").query("batch == 64 and target == 'ucf101'").iloc[:1],
    ],
    "dictionary_size": [sizes_table(1, **QUICK), sizes_table(targets=tuple(NAMES)),
                        sizes_table().query("dictionary < 200")],
    "mutual_information": [characters_table(1, "smoke", "multidigits", (2,)),
                           characters_table().query("method == 'cmacc'")],
    "transfer": [
        transfer_table(**QUICK | {"targets": ("synthetic_video",)}).assign(ours=[70.5, 70.7]),  # a hair apart
        transfer_table(3, targets=("ucf101",), dataset="ucf101 (subset)", preset="quick", splits=(1, 2, 3)),
        transfer_table(targets=("esc50",), methods=tuple(figures.METHODS), dataset="esc50"),
        transfer_table().assign(**NOT_RUN),
    ],
    "category_diversity": [
        diversity_table(1, "paper", "ucf101"),
        diversity_table().query("sampler == 'gradient' and batch == 64 and target == 'audio'"),
    ],
    "category_curves": [
        curves_log(batches=(128,)), curves_log().query("step == 5"),
        curves_log(preset="paper", dataset="kinetics_sound").assign(departures=f"own_excluded=False; {DEPARTS}"),
    ],
    "pretext_accuracy": [
        pretext_table(3, "paper", "kinetics700"),
        pretext_table().assign(category=lambda table: "throwing ball (not baseball or " + table["category"]),
        pretext_table(categories=12).query("query == 'audio'"),
    ],
}
PICKED = [
    picked(names=[3, 7]),  # digits
    picked(128, preset="paper", dataset="ucf101 (subset)", names=LONG),
    picked(64, preset="paper", dataset="ucf101", names=JOINED),
    picked(3, samplers=("gradient",)),
    picked().assign(gradient_norm=333.87e4),
    picked().assign(gradient_norm=1.234e-7),
]


@pytest.mark.parametrize(
    ("name", "table"), [(name, table) for name, tables in FIGURES.items() for table in tables],
    ids=[f"{name}-{i}" for name, tables in FIGURES.items() for i in range(len(tables))],
)
def test_no_text_overlaps_or_leaves_the_figure(name, table):
    assert_legible(getattr(figures, name)(table))


@pytest.mark.parametrize("modality", ["video", "audio"])
@pytest.mark.parametrize("table", PICKED, ids=range(len(PICKED)))
def test_no_text_overlaps_or_leaves_the_pictures(table, modality):
    assert_legible(negatives(table, modality))


@pytest.mark.parametrize("name", [*TABLES, "selected_negatives"])
def test_the_reader_s_settings_change_nothing_and_the_table_stays_as_it_was(name, tmp_path):
    draw, make = (getattr(figures, name), TABLES[name]) if name in TABLES else (negatives, picked)
    assert_settled(draw, make(), tmp_path)


@pytest.mark.parametrize(("name", "make"), [*TABLES.items(), ("selected_negatives", picked)])
def test_titles_say_what_the_numbers_are_and_mixed_tables_are_refused(name, make):
    draw = getattr(figures, name) if name in TABLES else negatives
    dataset = "multiomniglot" if name == "mutual_information" else "ucf101"
    assert draw(make(preset="paper", dataset=dataset)).get_suptitle().startswith(f"{dataset}, paper recipe")
    quick = make(preset="quick", dataset=dataset)
    assert "quick recipe: not a reproduction" in draw(quick).get_suptitle()
    with pytest.raises(ValueError, match="one preset"):
        draw(pd.concat([make(preset="paper", dataset=dataset), quick]))
    with pytest.raises(ValueError, match=r"one (dataset|method|seed); this table has \[\]"):
        draw(quick.iloc[:0])


def values(axes, label) -> np.ndarray:
    """What a line of that label in the legend shows across, and its places downwards."""
    line, = (line for line in axes.lines if line.get_label() == label)
    return np.stack([line.get_xdata(), line.get_ydata()])


def legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_approaches_stand_beside_the_printed_ones():
    table = approaches_table()
    figure = figures.cross_modal(table)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"fine-tuned on {name}" for name in NAMES.values()]
    numbers = printed("cmacc_table1").set_index("approach")
    for axes, (target, column) in zip(figure.axes, NAMES.items(), strict=True):
        approaches = [label.get_text() for label in axes.get_yticklabels()]
        assert approaches == APPROACHES
        rows = table[table["target"] == target]
        np.testing.assert_array_equal(values(axes, "ours"), [rows["ours"], range(len(APPROACHES))])
        accuracies = dict(zip(approaches, values(axes, "printed")[0], strict=True))
        for name in numbers.index:
            assert accuracies[name] == numbers.loc[name, column]
        assert not np.isnan(accuracies["CM-ACC, feature embedding"])
    assert legend(figure) == ["ours", "printed"]


@pytest.mark.parametrize("name", ["cross_modal", "ohem_vs_active", "transfer"])
def test_nothing_printed_is_shown_on_embedded_data(name):
    figure = getattr(figures, name)(TABLES[name](**QUICK).assign(published=99.0))
    assert not any("printed" in label for label in legend(figure))
    shown = [value for axes in figure.axes for line in axes.lines for value in [*line.get_xdata(), *line.get_ydata()]]
    assert 99.0 not in shown


def test_nothing_printed_of_a_whole_set_is_shown_beside_a_part_of_it():
    figure = figures.transfer(transfer_table(targets=("ucf101",), dataset="ucf101 (subset)"))
    assert legend(figure) == ["Scratch, ours", "CM-ACC, ours"]
    assert {label.get_text() for label in figure.axes[0].get_yticklabels()} == {"none", "UCF101"}


def test_samplers_are_lines_over_the_number_of_negatives_in_any_order_of_rows():
    table = samplers_table()
    figure = figures.ohem_vs_active(table.sort_values(["target", "batch"], ascending=[True, False]))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"fine-tuned on {name}" for name in NAMES.values()]
    found, numbers = lines(figure, 0), printed("cmacc_table3").set_index("sampler")
    expected = numbers.loc["Active", ["UCF101_M32", "UCF101_M64", "UCF101_M128"]].astype(float).to_numpy()
    np.testing.assert_allclose(found["active, gradients, printed"], expected)
    np.testing.assert_allclose(found["active, gradients"], expected - 2)
    assert "active, features, printed" not in found
    samplers = ["random", "least confident (OHEM)", "active, features", "active, gradients"]
    assert legend(figure) == [*samplers, "printed"]
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == ["32", "64", "128"]


@pytest.mark.parametrize("name", ["cross_modal", "ohem_vs_active", "dictionary_size", "transfer"])
def test_characters_of_drawings_never_seen_have_a_panel_of_their_own(name):
    table = FIGURES[name][0].drop_duplicates([column for column in FIGURES[name][0] if column in NAMED])
    found = table.assign(target="characters", ours=80.0, linear_held_out=30.0, dataset="multidigits", preset="quick",
                         published=math.nan)
    figure = getattr(figures, name)(found)
    titles = ["characters, new pairs", "characters, drawings never seen"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == titles
    for axes, value in zip(figure.axes, (80.0, 30.0), strict=True):
        drawn = [axis for line in axes.lines for axis in (set(line.get_xdata()), set(line.get_ydata()))]
        assert {value} in drawn and {110.0 - value} not in drawn


def test_sizes_are_on_a_logarithmic_axis():
    figure = figures.dictionary_size(sizes_table())
    axes, = figure.axes
    assert axes.get_xscale() == "log"
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["128", "512", "2,048", "8,192", "32,768"]
    assert legend(figure) == ["SMoCo", "XMoCo", "CM-ACC"]
    assert lines(figure, 0)["SMoCo"][0] == pytest.approx(60 + 3 * np.log10(128))


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [("multidigits", ["2.3", "4.6", "6.9"]), ("multiomniglot", ["4.0", "8.0", "11.8"])],
)
def test_characters_are_told_in_nats_and_drawings_never_seen_are_dashed(dataset, expected):
    table = characters_table(1, "quick", dataset, (1, 2, 3)).sample(frac=1, random_state=0)
    figure = figures.mutual_information(table)
    axes, = figure.axes
    above, = axes.child_axes
    assert [label.get_text() for label in above.get_xticklabels()] == expected
    assert "nats" in above.get_xlabel() and list(above.get_xticks()) == [1, 2, 3]
    np.testing.assert_array_equal(lines(figure, 0)["CM-ACC"], [99, 98, 97])
    dashed = [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() == "--"]
    assert dashed == [[89, 82, 75], [89, 85, 81], [89, 88, 87]]
    assert legend(figure)[-1] == "drawings never seen"


def test_nats_of_omniglot_are_those_of_its_alphabets():
    sizes = [55, 52, 48, 47, 46, 43, 42, 41, 41]
    for number in range(1, 10):
        expected = np.log(sizes[:number]).sum()
        assert figures.nats("multiomniglot", number) == pytest.approx(expected, abs=1e-3)


def test_ours_stand_in_the_row_of_what_was_pre_trained_on():
    figure = figures.transfer(transfer_table())
    axes = figure.axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[0] == "none" and "Kinetics-Sound" in names and "-" not in names
    points = {(float(x), names[int(y)]) for line in axes.lines
              for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
    assert {(50.0, "none"), (60.0, "Kinetics-Sound")} <= points  # ours
    assert {(77.2, "Kinetics-Sound"), (94.1, "AudioSet"), (95.0, "Kinetics400"), (46.5, "none")} <= points
    assert {(86.9, "Kinetics-Sound"), (82.8, "ImageNet")} <= points  # supervised, of Table 6
    assert legend(figure) == ["Scratch, ours", "CM-ACC, ours", "scratch, printed", "others, printed",
                              "supervised, printed", "CM-ACC, printed"]


def test_every_split_has_its_own_point():
    table = transfer_table(targets=("ucf101",), dataset="ucf101 (subset)", preset="quick", splits=(1, 2, 3))
    axes, = figures.transfer(table).axes
    assert {float(x) for line in axes.lines for x in line.get_xdata()} >= {61.0, 62.0, 63.0}


@pytest.mark.parametrize("name", ["category_diversity", "category_curves"])
def test_titles_tell_what_departs_from_the_preset(name):
    draw, table = getattr(figures, name), TABLES[name](1, "quick", "ucf101")
    assert "iterations" not in draw(table.assign(departures="")).get_suptitle()
    departing = table.assign(departures=["iterations=10" if batch == 32 else "" for batch in table["batch"]])
    assert draw(departing).get_suptitle().splitlines() == [
        "ucf101, 1 seed", "iterations=10", "quick recipe: not a reproduction"
    ]


def dashed(axes) -> list[float]:
    """Heights of dashed lines across a group of bars."""
    lines = [collection for collection in axes.collections if collection.get_linestyle()[0][1]]
    return [line.get_segments()[0][0][1] for line in lines]


def test_bars_are_shares_of_the_negatives_and_the_expectation_is_on_every_panel():
    table = diversity_table()
    figure = figures.category_diversity(table.sample(frac=1, random_state=0))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["negatives of video", "negatives of audio"]
    for axes, modality in zip(figure.axes, ("video", "audio"), strict=True):
        rows = table[table["target"] == modality].sort_values(["batch", "ours"])
        bars = sorted(axes.patches, key=lambda bar: bar.get_x())
        np.testing.assert_allclose([bar.get_height() for bar in bars], 100 * rows["ours"] / rows["batch"])
        expected = [100 * 100 * (1 - 0.99**batch) / batch for batch in (128, 64, 32)]
        assert sorted(set(dashed(axes))) == pytest.approx(expected)


def test_expectation_of_uniform_draws_from_the_actions_of_ucf101():
    """A table typed from the closed form: 101 equally frequent classes, M = 128: 72.0 % of them, 56.8 % of M."""
    expected = 101 * (1 - (1 - 1 / 101) ** 128)
    table = diversity_table(1, "paper", "ucf101").query("batch == 128").assign(expected=expected)
    axes = figures.category_diversity(table).axes[0]
    assert set(np.round(dashed(axes), 1)) == {56.8}


def test_curves_are_means_over_seeds_beside_the_expectation_on_every_panel():
    log = curves_log(2)
    figure = figures.category_curves(log.sample(frac=1, random_state=0))
    panels = itertools.product((32, 64, 128), figures.COUNTED)
    for axes, (batch, column) in zip(figure.axes, panels, strict=True):
        lines = [line for line in axes.lines if line.get_linestyle() == "--"]
        assert [line.get_ydata()[0] for line in lines] == pytest.approx([100 * (1 - 0.99**batch)])
        rows = log[(log["batch"] == batch) & (log["sampler"] == "ohem")]
        curve = axes.lines[1]
        np.testing.assert_array_equal(curve.get_xdata(), range(5, 301, 5))
        np.testing.assert_allclose(curve.get_ydata(), rows.groupby("step")[column].mean())
    labels = [axes.get_ylabel() for axes in figure.axes[::2]]
    assert labels == [f"distinct categories\nof M = {batch}" for batch in (32, 64, 128)]


def test_a_single_report_is_marked():
    """A smoke run has no other."""
    figure = figures.category_curves(curves_log(1).query("step == 5"))
    for axes in figure.axes:
        assert all(line.get_marker() not in ("", "None") for line in axes.lines if len(line.get_xdata()) == 1)
        assert sum(len(line.get_xdata()) == 1 for line in axes.lines) == 4
        assert all(float(tick).is_integer() for tick in axes.get_xticks())
    several = figures.category_curves(curves_log(1)).axes[0].lines
    assert {line.get_marker() for line in several} <= {"", "None"}


def test_the_ten_best_and_five_worst_categories():
    table = pretext_table(3)
    figure = figures.pretext_accuracy(table)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["queries of video", "queries of audio"]
    for axes, query in zip(figure.axes, ("video", "audio"), strict=True):
        means = table[table["query"] == query].groupby("category")["accuracy"].mean().sort_values(ascending=False)
        expected = pd.concat([means[:10], means[-5:]])
        assert [label.get_text() for label in axes.get_yticklabels()] == list(expected.index)
        np.testing.assert_allclose([bar.get_width() for bar in axes.patches], expected)
        deviations = table[table["query"] == query].groupby("category")["accuracy"].std()[expected.index]
        renewed = table[table["query"] == query].groupby("category")["accuracy_renewed"].mean()[expected.index]
        np.testing.assert_allclose(axes.lines[-1].get_xdata(), renewed)
        bars, = axes.containers[1].lines[2]
        np.testing.assert_allclose(np.ptp(np.array(bars.get_segments())[:, :, 0], axis=1), 2 * deviations)
    assert "CM-ACC, mean \N{PLUS-MINUS SIGN} std of 3 seeds" in figure.get_suptitle()


@pytest.mark.parametrize(("categories", "highest", "lowest"), [(1, 1, 0), (10, 10, 0), (12, 10, 2), (40, 10, 5)])
def test_no_category_is_both_best_and_worst(categories, highest, lowest):
    rows = figures.extremes(pretext_table(categories=categories).query("query == 'video'"))
    assert rows["rank"].tolist() == ["highest"] * highest + ["lowest"] * lowest
    assert rows["category"].is_unique and rows["accuracy"].is_monotonic_decreasing


def test_equal_accuracies_come_by_name():
    table = pretext_table(categories=30).assign(accuracy=50.0).sample(frac=1, random_state=1)
    rows = figures.extremes(table)
    assert rows["category"].tolist() == [*sorted(set(table["category"]))[:10], *sorted(set(table["category"]))[-5:]]


def test_methods_are_not_mixed():
    table = pretext_table()
    with pytest.raises(ValueError, match="one method"):
        figures.pretext_accuracy(pd.concat([table, table.assign(method="xmoco")]))


def by_hand(rows):
    """The query with most picks and, of these, the largest, the middle and the smallest gradient; in plain loops."""
    counts = {}
    for row in rows:
        counts[row.nearest] = counts.get(row.nearest, 0) + 1
    query = min(name for name, count in counts.items() if count == max(counts.values()))
    own = sorted((row for row in rows if row.nearest == query), key=lambda row: -row.gradient_norm)
    return query, [own[0], *([own[len(own) // 2]] if len(own) > 2 else []), *([own[-1]] if len(own) > 1 else [])]


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 32, 128])
def test_a_row_has_the_query_of_most_picks_and_three_of_them_by_gradient(batch):
    table = picked(batch).query("modality == 'audio'")
    found = figures.shown(table.sample(frac=1, random_state=1))
    assert set(found["sampler"]) == set(COMPARED)
    for sampler, rows in found.groupby("sampler"):
        query, chosen = by_hand(list(table[table["sampler"] == sampler].itertuples()))
        assert set(rows["nearest"]) == {query}
        assert rows["item"].tolist() == [row.item for row in chosen]
        assert rows["gradient_norm"].is_monotonic_decreasing


def grey(axes):
    """The level of the picture in a tile."""
    return int(np.unique(axes.images[0].get_array()).item())


def test_tiles_show_the_clips_that_their_texts_name():
    table = picked(batch=64)
    table.loc[table["modality"] == "video", "gradient_norm"] *= 1000
    figure = negatives(table)
    tiles = np.reshape(figure.axes, (4, 4))
    for line, sampler in zip(tiles, COMPARED, strict=True):
        rows = figures.shown(table.query("modality == 'video' and sampler == @sampler"))
        assert line[0].get_ylabel().replace("\n", " ") == figures.SAMPLERS[sampler].label
        assert (line[0].get_title(), grey(line[0])) == ("query", rows["nearest"][0] % 256)
        assert line[0].get_xlabel().replace("\n", " ") == rows["nearest_category"][0]
        for axes, row in zip(line[1:], rows.itertuples(), strict=True):
            assert grey(axes) == row.item % 256 and axes.get_xlabel().replace("\n", " ") == row.category
            norm = float(axes.get_title().replace(",", ""))
            assert norm == pytest.approx(row.gradient_norm, rel=6e-3)
    assert "queries of sound, negatives of pictures with norms of gradients" in figure.get_suptitle()
    assert "queries of pictures, negatives of sound" in negatives(table, "audio").get_suptitle()


def test_tiles_of_what_was_not_picked_stay_away():
    figure = negatives(picked(1))
    assert [axes.get_visible() for axes in figure.axes] == [True, True, False, False] * 4


def test_what_tells_samplers_apart():
    table = picked(8)
    table.loc[:3, ["category", "nearest_category"]] = "same"
    found = figures.by_sampler(table).set_index(["modality", "sampler"])
    assert list(found.index)[:4] == [("video", sampler) for sampler in COMPARED] and len(found) == 8
    rows = table.iloc[:8]
    different = sum(a != b for a, b in zip(rows["category"], rows["nearest_category"], strict=True))
    assert different <= 4
    assert found.loc[("video", "random")].tolist() == pytest.approx([
        8, len(set(rows["category"])), np.median(rows["gradient_norm"]), np.median(rows["smaller"]),
        100 * (8 - different) / 8,
    ])


def test_embedded_clips_are_filmed_again():
    table = picked()
    found = figures.drawn_again(table)
    shown = figures.shown(table[table["modality"] == "video"])
    assert found.keys() == {*shown["item"], *shown["nearest"]}
    item = shown["item"][0]
    np.testing.assert_array_equal(found[item], synthetic.pictures([item])[0, 10])


def test_pictures_of_several_seeds_are_refused():
    with pytest.raises(ValueError, match="one seed"):
        negatives(pd.concat([picked(), picked(seed=1)]))
