import math

import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible, assert_settled, lines
from pandas import DataFrame

from repro.papers.cmacc import figures as accuracy_figures
from repro.papers.cmacc.figures import FIGURES as FIGURES_OF_PAPER
from repro.papers.cmacc.tables import TABLES as DECLARED
from repro.report.printed import printed

APPROACHES = [row["approach"] for row in DECLARED["cross_modal"].rows]
NAMES = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}
EMBEDDED = ("synthetic_video", "synthetic_audio")


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


UNIT_LENGTH = "normalised=True, temperature=0.07, posterior_temperature=0.07, precision=bfloat16"
NOT_RUN = {"ours": np.nan, "std": np.nan, "n_seeds": 0}
QUICK = {"preset": "quick", "dataset": "synthetic", "targets": EMBEDDED}
TABLES = {
    "cross_modal": approaches_table,
    "ohem_vs_active": samplers_table,
    "dictionary_size": sizes_table,
    "mutual_information": characters_table,
    "transfer": transfer_table,
}
NAMED = {"approach", "sampler", "batch", "method", "dictionary", "video_trunk", "split"}
FIGURES = {
    "cross_modal": [
        approaches_table(),
        approaches_table(1, **QUICK),
        approaches_table(preset="quick", dataset="kinetics_sound (subset)"),
        approaches_table().query("approach == 'CM-ACC'"),
        approaches_table().assign(departures=UNIT_LENGTH),
        approaches_table().assign(**NOT_RUN),
    ],
    "ohem_vs_active": [
        samplers_table(),
        samplers_table(1, **QUICK),
        samplers_table().query("sampler == 'gradient' and batch == 32"),
        samplers_table().assign(sampler="released").query("batch == 64 and target == 'ucf101'").iloc[:1],
    ],
    "dictionary_size": [
        sizes_table(),
        sizes_table(1, **QUICK),
        sizes_table(targets=tuple(NAMES)),
        sizes_table().query("dictionary < 200"),
    ],
    "mutual_information": [
        characters_table(),
        characters_table(1, "quick", "multidigits"),
        characters_table(1, "smoke", "multidigits", (2,)),
        characters_table().query("method == 'cmacc'"),
    ],
    "transfer": [
        transfer_table(**QUICK | {"targets": ("synthetic_video",)}).assign(ours=[70.5, 70.7]),  # a hair apart
        transfer_table(),
        transfer_table(**QUICK),
        transfer_table(3, targets=("ucf101",), dataset="ucf101 (subset)", preset="quick", splits=(1, 2, 3)),
        transfer_table(targets=("esc50",), methods=tuple(accuracy_figures.METHODS), dataset="esc50"),
        transfer_table().assign(**NOT_RUN),
    ],
}


def values(axes, label) -> np.ndarray:
    """What a line of that label in the legend shows across, and its places downwards."""
    line, = (line for line in axes.lines if line.get_label() == label)
    return np.stack([line.get_xdata(), line.get_ydata()])


def legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize(
    ("name", "table"), [(name, table) for name, tables in FIGURES.items() for table in tables],
    ids=[f"{name}-{i}" for name, tables in FIGURES.items() for i in range(len(tables))],
)
def test_no_text_overlaps_or_leaves_the_figure(name, table):
    assert_legible(getattr(accuracy_figures, name)(table))


@pytest.mark.parametrize("name", TABLES)
def test_the_reader_s_settings_change_nothing_and_the_table_stays_as_it_was(name, tmp_path):
    assert_settled(getattr(accuracy_figures, name), TABLES[name](), tmp_path)


def test_every_figure_has_a_caption():
    assert set(FIGURES_OF_PAPER) >= set(TABLES)
    assert all("no" in FIGURES_OF_PAPER[name].caption for name in ("dictionary_size", "mutual_information"))


@pytest.mark.parametrize(("name", "make"), TABLES.items())
def test_titles_say_what_the_numbers_are_and_mixed_tables_are_refused(name, make):
    draw = getattr(accuracy_figures, name)
    assert "paper recipe" in draw(make()).get_suptitle()
    assert "quick recipe: not a reproduction" in draw(make(preset="quick")).get_suptitle()
    with pytest.raises(ValueError, match="one preset"):
        draw(pd.concat([make(), make(preset="quick")]))
    with pytest.raises(ValueError, match="one dataset"):
        draw(make().iloc[:0])


def test_approaches_stand_beside_the_printed_ones():
    table = approaches_table()
    figure = accuracy_figures.cross_modal(table)
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
    figure = getattr(accuracy_figures, name)(TABLES[name](**QUICK).assign(published=99.0))
    assert not any("printed" in label for label in legend(figure))
    shown = [value for axes in figure.axes for line in axes.lines for value in [*line.get_xdata(), *line.get_ydata()]]
    assert 99.0 not in shown


def test_nothing_printed_of_a_whole_set_is_shown_beside_a_part_of_it():
    figure = accuracy_figures.transfer(transfer_table(targets=("ucf101",), dataset="ucf101 (subset)"))
    assert legend(figure) == ["Scratch, ours", "CM-ACC, ours"]
    assert {label.get_text() for label in figure.axes[0].get_yticklabels()} == {"none", "UCF101"}


def test_samplers_are_lines_over_the_number_of_negatives_in_any_order_of_rows():
    table = samplers_table()
    figure = accuracy_figures.ohem_vs_active(table.sort_values(["target", "batch"], ascending=[True, False]))
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
    figure = getattr(accuracy_figures, name)(found)
    titles = ["characters, new pairs", "characters, drawings never seen"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == titles
    for axes, value in zip(figure.axes, (80.0, 30.0), strict=True):
        drawn = [axis for line in axes.lines for axis in (set(line.get_xdata()), set(line.get_ydata()))]
        assert {value} in drawn and {110.0 - value} not in drawn


def test_sizes_are_on_a_logarithmic_axis():
    figure = accuracy_figures.dictionary_size(sizes_table())
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
    figure = accuracy_figures.mutual_information(table)
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
        assert accuracy_figures.nats("multiomniglot", number) == pytest.approx(expected, abs=1e-3)


def test_ours_stand_in_the_row_of_what_was_pre_trained_on():
    figure = accuracy_figures.transfer(transfer_table())
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
    axes, = accuracy_figures.transfer(table).axes
    assert {float(x) for line in axes.lines for x in line.get_xdata()} >= {61.0, 62.0, 63.0}
