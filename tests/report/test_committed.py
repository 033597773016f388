"""The committed figures: they follow from the committed cells, and hold what RESULTS.md says of them."""

import json
import math
import platform
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible
from PIL import Image
from scipy.stats import binomtest, spearmanr

from repro import papers
from repro.audiovisual import synthetic
from repro.papers.sce.figures import METHOD_NAMES
from repro.report import redraw as redrawing
from repro.report.logs import read
from repro.report.style import COLUMN, save
from repro.run.export import read_cells
from repro.run.store import Cell
from repro.skeleton.recipe import SkeletonRecipe

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"


def table(name):
    return pd.read_csv(FIGURES / f"{name}.csv")


def logs():
    """The committed files from which figures are drawn, beside cells.csv."""
    return sorted({path for name in papers.logs() for path in FIGURES.glob(f"{name}_*.csv")})


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    """What the committed cells and logs give, without data and runs: names of files, their folder and the figures."""
    folder, drawn = tmp_path_factory.mktemp("figures"), {}
    for path in logs():
        shutil.copy(path, folder)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("REPRO_DATA", "REPRO_RUNS"):
            patch.setenv(name, str(folder / "nothing"))
        patch.setattr(redrawing, "save", lambda figure, stem, *rest: drawn.update({stem.name: figure}) or
                      save(figure, stem, *rest))
        names = [path.name for path in papers.redraw(read_cells(FIGURES / "cells.csv"), folder)]
    return names, folder, drawn


def test_every_committed_file_follows_from_the_committed_cells(redrawn):
    names, folder, _ = redrawn
    assert {"taxonomy_synthetic.png", "taxonomy_ucla.png", "encoder_collapse_ucla.png"} <= set(names)
    assert {path.name for path in FIGURES.iterdir()} - {"cells.csv"} == {path.name for path in folder.iterdir()}
    for name in names:
        if name.endswith(".csv") or (sys.platform, platform.machine()) == ("linux", "x86_64"):
            assert (folder / name).read_bytes() == (FIGURES / name).read_bytes(), name  # elsewhere glyphs may differ


def test_no_text_of_a_committed_figure_overlaps_or_leaves_it(redrawn):
    _, _, drawn = redrawn
    assert {"taxonomy_ucla", "encoder_collapse_ucla", "sequence_contrast_ucla"} <= set(drawn)
    for figure in drawn.values():
        figure.draw_without_rendering()  # at its own resolution again, not at that of the file
        assert_legible(figure)


def test_the_figure_of_printed_numbers_alone_names_them():
    source = json.loads(Image.open(FIGURES / "glm_specifications.png").text["Source"])
    assert source == {"printed": "taxonomy.csv"}


@pytest.mark.parametrize(
    "path", sorted({*FIGURES.glob("*.png")} - {FIGURES / "glm_specifications.png"}), ids=lambda path: path.stem
)
def test_a_committed_figure_says_in_its_caption_and_source_where_it_comes_from(path):
    image = Image.open(path)
    assert image.width == int(300 * COLUMN) and round(image.info["dpi"][0]) == 300
    source = json.loads(image.text["Source"])
    cells = read_cells(FIGURES / "cells.csv").set_index("key")
    behind = cells.loc[source["cells"]]
    beside = {"printed"} if path.stem.startswith("glm_forest_") else set()  # which fits the printed numbers, too
    assert {*source} == {"cells", "seeds", "preset", "dataset", *beside} and len(behind) >= 1
    assert ("Printed numbers: taxonomy.csv." in image.text["Description"]) == bool(beside)
    assert set(behind["dataset"]) == {source["dataset"]} and sorted(set(behind["seed"])) == source["seeds"]
    assert " and ".join(sorted(set(behind["preset"]))) == source["preset"]
    caption = image.text["Description"]
    for text in (source["dataset"], f"Preset: {source['preset']}.", ", ".join(map(str, source["seeds"])),
                 f"{len(set(source['cells']))} cell"):
        assert text in caption
    svg = path.with_suffix(".svg").read_text(encoding="utf-8")
    assert all(key in svg for key in source["cells"]) and "<dc:date>" not in svg


@pytest.mark.parametrize("name", ["encoder_collapse_ucla", "encoder_collapse_synthetic"])
def test_a_caption_promises_no_more_than_is_drawn(name, redrawn):
    drawn = redrawn[2][name].axes[0].get_legend_handles_labels()[1]
    assert {"random, standardised", "AE, standardised"} <= set(drawn)
    assert "where measured, the probe on standardised" in Image.open(FIGURES / f"{name}.png").text["Description"]


def test_committed_logs_are_read_with_their_columns_and_are_of_committed_cells():
    exported = read_cells(FIGURES / "cells.csv").drop_duplicates("key")
    found = [read(path, log) for name, log in papers.logs().items() for path in sorted(FIGURES.glob(f"{name}_*.csv"))]
    assert len(found) == len(logs()) >= 5
    for log in found:
        origins = log[["key", "seed", "dataset", "preset"]].drop_duplicates()
        assert len(origins.merge(exported)) == len(origins) >= 1


def test_tables_are_complete_and_random_initialisation_stands_where_it_should():
    for name in ("taxonomy_synthetic", "taxonomy_ucla"):
        assert len(table(name)) == 16 and table(name)["ours"].notna().all()
    rows = table("taxonomy_synthetic").set_index("objectives")
    assert (rows["n_seeds"] == 3).all() and rows["ours"].max() - rows.loc["random", "ours"] >= 15
    rows = table("encoder_collapse_ucla").query("objectives == 'random'").set_index("layers")
    assert list(rows.index) == [1, 2, 3, 4, 5] and (rows["n_seeds"] == 3).all() and (rows["preset"] == "paper").all()
    assert (rows["difference"].abs() < 3).all()


@pytest.mark.parametrize("name", ["category_diversity_synthetic", "category_curves_synthetic"])
def test_the_caption_says_which_draws_the_expected_categories_are_of(name):
    clips, _ = synthetic.shares("pretrain", 0.5)  # of every category
    total, missed = int(clips.sum()), {}  # by draws, the chance that none of them is of a category
    for draws in (32, 64, 128):
        left = [[math.comb(total - count, draws) / math.comb(total, draws)] for count in clips.tolist()]
        missed[draws] = np.hstack([(1 - clips[:, None] / total) ** draws, left])
    caption = Image.open(FIGURES / f"{name}.png").text["Description"]
    last = int(re.search(r"uniform draws \(up to version (\d+) of the training with replacement\)", caption)[1])
    version = re.search(r"Cells of version (\d+) of the training", caption)
    kind = int(version is None or int(version[1]) > last)  # with replacement, or without
    for row in table(name).itertuples():
        assert row.expected == pytest.approx((1 - missed[row.batch][:, kind]).sum(), rel=1e-9)


README, RESULTS = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "RESULTS.md"))


def told_table(*columns, under="# ", text=RESULTS):
    """The rows of the table of these columns in RESULTS.md, as texts; an empty first cell repeats the one above.

    It is the first below a line that begins with `under`.
    """
    lines = text.splitlines()
    lines = lines[next(number for number, line in enumerate(lines) if line.startswith(under)) :]
    start = next(number for number, line in enumerate(lines) if cells(line) == [*columns])
    rows = []
    for line in lines[start + 2 :]:
        if not line.strip().startswith("|"):
            break
        first, *rest = cells(line)
        rows.append([first or rows[-1][0], *rest])
    return rows


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen"]


def numbers_of(pattern):
    """The groups of the one place in RESULTS.md that a pattern matches, as numbers; words of small ones count."""
    match, = re.finditer(pattern, RESULTS)
    return [WORDS.index(group.lower()) if group.lower() in WORDS else float(group.replace(",", ""))
            for group in match.groups()]


def spread(row):
    """A mean of seeds as RESULTS.md has it, with its deviation if there are several."""
    return f"{row['ours']:.1f}" + ("" if pd.isna(row["std"]) else f" \N{PLUS-MINUS SIGN} {row['std']:.1f}")


@pytest.fixture(scope="module")
def column():
    """The trained objectives of NW-UCLA, by name."""
    return table("taxonomy_ucla").query("objectives != 'random'").set_index("objectives")


def test_verdicts_cover_every_table_and_name_allowed_ones():
    rows = told_table("paper", "table or figure", "on what", "seeds", "verdict", "why", under="## Verdicts")
    assert {row[4] for row in rows} <= {"reproduced", "partly", "not", "not run"}
    assert {row[0] for row in rows} == {"taxonomy", "CM-ACC", "SCE", "JCL"} and all(row[-1] for row in rows)
    shown = told_table("paper", "table or figure", "on what, so far", "verdict", "notebook", text=README)
    assert [(row[1], row[3].partition(":")[0]) for row in shown] == [(row[1], row[4]) for row in rows]
    links = re.findall(r"figures/(\w[\w*]+)\.(?:csv|png|\*)", RESULTS)
    assert len(links) >= 15 and all([*FIGURES.glob(f"{name}.csv")] for name in links)


def test_the_column_in_the_results_is_that_of_its_table():
    committed = table("taxonomy_ucla").set_index("objectives")
    rows = told_table("objective", "printed", "seeds", "linear", "standardised", "nearest neighbour")
    assert [name for name, *_ in rows] == [*committed.index]
    for name, *texts in rows:
        row = committed.loc[name]
        assert texts == [f"{row['published']:.2f}", str(row["n_seeds"]), spread(row),
                         f"{row['linear_standardised']:.1f}", f"{row['knn1']:.1f}"]


def test_how_far_the_column_is_from_the_printed_one_is_what_its_table_has(column):
    held, apart = column.drop(["AE", "AE+CD"]), column["difference"].abs() / (1 + 1 / column["n_seeds"]) ** 0.5
    freedom = held["n_seeds"] - 1
    pooled = ((held["std"] ** 2 * freedom).sum() / freedom.sum()) ** 0.5
    far = (apart[held.index] / pooled).loc[lambda deviations: deviations > 2].sort_values(ascending=False)
    correlation, count, deviation = numbers_of(
        r"printed order is (\S+) over the fifteen\. Of them (\w+) are further .* \((\S+) \S+\(1 \+ 1/n\)")
    assert correlation == pytest.approx(spearmanr(column["ours"], column["published"]).statistic, abs=0.005)
    assert count == len(far) and deviation == pytest.approx(pooled, abs=0.005)
    within = f"{WORDS[15 - len(far)]} of fifteen within two deviations"
    assert f"| 3, of two objectives 1 | partly | {within}" in RESULTS
    assert within in README
    assert within.split()[0] + " of fifteen objectives" in (ROOT / "docs/taxonomy.md").read_text(encoding="utf-8")
    named = ", ".join(f"{name} by {'far' if name == 'AE+AD+CD' else f'{far[name]:.1f}'}" for name in far.index)
    assert f": {named}. AE and AE+CD lie" in RESULTS
    low, lower, apart, further = numbers_of(
        r"AE and AE\+CD lie (\d+) and (\d+) points below the print, but their seeds lie up to (\S+) and (\S+) points "
        r"apart")
    assert [low, lower] == [round(-column.loc[name, "difference"]) for name in ("AE", "AE+CD")]
    cells_of = read_cells(FIGURES / "cells.csv").query("dataset == 'ucla' and preset == 'paper' and version == 3")
    cells_of = cells_of[cells_of["changes"] == "{}"]
    linear = cells_of["metrics"].map(json.loads).str["linear"].groupby(
        cells_of["recipe"].map(json.loads).str["objectives"]).agg(np.ptp)
    assert [apart, further] == pytest.approx([*linear[["AE", "AE+CD"]]], abs=0.0501)


def test_the_highest_printed_objectives_are_lower_here_by_what_the_results_say(column):
    highest = column.loc[column["published"] >= 82, "difference"]
    lower = -highest[highest < 0]
    count, least, most, chance = numbers_of(r"(\w+) of the seven are lower here, by (\S+) to (\S+) points.* "
                                            r"\(sign test p = (\S+)\)")
    assert (len(highest), count) == (7, len(lower))
    assert [least, most] == pytest.approx([lower.min(), lower.max()], abs=0.0501)
    assert chance == pytest.approx(binomtest(len(lower), len(highest)).pvalue, abs=0.0005)
    for name in set(highest.index) - set(lower.index):
        assert f"{name} is higher by {highest[name]:.1f}" in RESULTS


def test_the_rules_nearest_to_the_printed_column_are_those_of_their_table():
    rules = table("printed_column_ucla")
    fullest = rules[rules["objectives"] == rules["objectives"].max()]
    ordered = fullest.sort_values(["spearman", "rmse"], ascending=[False, True], kind="stable")
    printed, exchanged = (ordered[ordered["exchanged"] == value].iloc[0] for value in (0, 1))
    last = fullest.query("rule == 'epoch 150' and exchanged == 0").iloc[0]
    top = fullest.loc[fullest["highest"].idxmax()]
    epochs = [float(row["rule"].removeprefix("epoch ")) for row in (printed, exchanged, top)]
    found = numbers_of(
        r"the best is epoch (\d+), with a Spearman of (\S+) \(95 % over seeds: (\S+) to (\S+)\), RMSE (\S+) points "
        r"and (\w+) objectives further than two deviations; the last epoch has (\S+) and (\S+)\. With .*, epoch (\d+) "
        r"has (\S+) \((\S+) to (\S+)\), RMSE (\S+) and (\w+) further\. .* scatter by (\S+) points, .* The table is of "
        r"(\w+) objectives;")
    measures = ["spearman", "spearman_low", "spearman_high", "rmse", "apart"]
    expected = [epochs[0], *printed[measures], *last[["spearman", "rmse"]], epochs[1], *exchanged[measures],
                exchanged["deviation"], exchanged["objectives"]]
    assert found == pytest.approx(expected, abs=0.0501)
    assert fullest["spearman"].max() < 0.8 and "So none reaches 0.8." in RESULTS
    most = numbers_of(r"No rule brings them: (\w+) of them are met at most, by epoch (\d+)\.")
    assert most == [top["highest"], epochs[2]]


def test_what_the_results_say_of_the_exchanged_cells_is_what_was_measured(column):
    curves = table("along_training_ucla").query("version == 3 and measure == 'linear'")
    values = curves.pivot(index="epoch", columns=["objectives", "seed"], values="value")
    first, *others = (values["AE+CD", seed] for seed in (0, 1, 2))
    reached, *ends = numbers_of(r"reaches 75 \(at epoch (\d+); it ends at (\S+), the two others at (\S+) and (\S+)\)")
    assert first.index[first >= 75][0] == reached and all((other < 75).all() for other in others)
    assert ends == pytest.approx([seed.loc[150] for seed in (first, *others)], abs=0.0501)
    ahead, least, most = numbers_of(
        r"ahead with every seed, by (\d+) points in the mean\), the three printed columns of NTU RGB\+D \(ahead by "
        r"(\S+) to (\S+)\)")
    assert (values["AE+AD+CD"].loc[150] > values["AE+CD"].loc[150]).all()
    assert ahead == round(column.loc["AE+AD+CD", "ours"] - column.loc["AE+CD", "ours"])
    print_of = pd.read_csv(ROOT / "repro/papers/taxonomy/printed/taxonomy.csv").set_index(["AE", "CE", "AD", "CD"])
    ntu = (print_of.loc[1, 0, 1, 1] - print_of.loc[1, 0, 0, 1]).filter(like="NTU")
    assert [least, most] == pytest.approx([ntu.min(), ntu.max()], abs=0.0501)
    lowest = values["AE+AD+CD"].min(axis=None)
    assert numbers_of(r"\((\S+) or more at each probe\)") == pytest.approx([lowest], abs=0.0501)


def test_the_linear_model_of_our_runs_is_that_of_its_figure():
    ours = table("glm_forest_ucla").query("source == 'ours'").set_index(["rows", "term"])
    nine, every = ours.loc["unmixed+best"], ours.loc["all"]
    found = numbers_of(r"AD has t = (\S+) \(one-tailed p = (\S+)\) and CD (\S+); .* least p is (\S+)\. On all fifteen "
                       r"CE and AD have (\S+) and (\S+), the least corrected p is (\S+)\. So no term stands")
    assert found == pytest.approx([
        *nine.loc["AD", ["t", "p_one_tailed"]], nine.loc["CD", "t"], nine["p_corrected"].min(),
        *every.loc[["CE", "AD"], "t"], every["p_corrected"].min(),
    ], abs=0.00501)
    assert min(nine["p_corrected"].min(), every["p_corrected"].min()) > 0.05 and nine["t"].idxmax() == "AD"


def test_readouts_and_scales_in_the_results_are_those_of_their_table(column):
    random = table("taxonomy_ucla").set_index("objectives").loc["random"]
    expected = [column.loc["AE", "readout_spread"], random["readout_spread"],
                *column.loc["AE", ["ours", "linear_standardised"]]]
    found = numbers_of(r"\(`readout_spread` (\S+) and (\S+)\): the printed probe finds (\S+) in them, and (\S+) once")
    assert found == pytest.approx(expected, abs=0.0501)
    scales = column["decoded_scale"].dropna()
    others = scales.drop(["CD", "AE+CD"])
    with_ad = others[others.index.str.contains("AD")]
    found = numbers_of(r"end (\d+) and (\d+) times as large as the data \(`decoded_scale`; at most (\S+) times with "
                       r"AD, (\S+) with CE\)")
    expected = [scales["CD"], scales["AE+CD"], with_ad.max(), others.drop(with_ad.index).max()]
    assert found == pytest.approx(expected, abs=0.501) and found[2] == round(with_ad.max(), 1)


def test_versions_in_the_results_are_those_of_the_cells():
    """The key of a cell is a hash of its version, among others."""
    exported = read_cells(FIGURES / "cells.csv")
    for row in exported.query("dataset == 'ucla'").itertuples():
        recipe = SkeletonRecipe.from_dict(json.loads(row.recipe))
        keys = [Cell(row.study, recipe, row.seed, row.preset, "ucla", row.digest, version).key for version in range(9)]
        assert keys.index(row.key) == row.version
    newest = exported.query("dataset == 'ucla' and preset == 'paper' and version == 3 and changes == '{}'")
    of_column = newest["recipe"].map(json.loads).str["objectives"]
    assert set(of_column) == set(table("taxonomy_ucla")["objectives"])
    depths = table("encoder_collapse_ucla")
    assert set(depths.loc[depths["layers"] == 1, "version"]) == {3}
    assert set(depths.loc[depths["layers"] > 1, "version"]) == {2}
    clips = exported.query("study == 'clips'")
    assert set(clips.loc[clips["dataset"] == "synthetic", "version"]) == {4}
    fields = clips.loc[clips["dataset"] == "multiomniglot", "recipe"].map(json.loads)
    fair = fields.str["augmented"].eq(True) | fields.str["categories"].eq(101) | fields.str["distinct"].eq(2000)
    assert set(clips.loc[fields.index[fair], "version"]) == {5}
    assert set(exported.query("study == 'images' and dataset != 'digits'")["version"]) == {2}


def test_image_accuracies_in_the_results_are_those_of_their_tables():
    """Methods by name, a point of the grid by both temperatures, "SCE, 0.1 and 0.03", of JCL
    the number of keys, "JCL, 9 keys"; "± 0.4" of several seeds."""
    known = {}
    for path in FIGURES.glob("image_methods_cifar10_*.csv"):
        known |= {named(row.method): row for row in pd.read_csv(path).itertuples()}
    for path in FIGURES.glob("temperature_grid_cifar10_*.csv"):
        known |= {f"{named(row.method)}, {row.temperature:g} and {row.key_temperature:g}": row
                  for row in pd.read_csv(path).itertuples()}
    for path in FIGURES.glob("positive_keys_cifar10_*.csv"):
        swept = pd.read_csv(path).query("varied == 'keys'")
        known |= {f"JCL, {row.keys} key{'s' * (row.keys > 1)}": row for row in swept.itertuples()}
    told = dict(told_table("method", "linear", under="## Images"))
    assert len(told) >= 5 and set(told) <= set(known), f"RESULTS.md names one of {', '.join(known)}"
    for name, text in told.items():
        deviation = "" if pd.isna(known[name].std) else f" ± {known[name].std:.1f}"
        assert text == f"{known[name].ours:.1f}{deviation}", name


def test_medians_of_similarities_in_the_results_are_those_of_their_figure():
    images = table("similarity_variance_images_cifar10_cifar10_lossless_subset_npz")
    medians = images.groupby("model")["similarity"].median()
    told = re.search(r"median of ([\d.]+) for JCL and ([\d.]+) for MoCo v2", (ROOT / "RESULTS.md").read_text())
    assert told.groups() == (f"{medians['JCL']:.3f}", f"{medians['MoCo v2']:.3f}")


def named(method):
    """An image method as the text calls it."""
    return {"random": "random initialisation"}.get(method, METHOD_NAMES.get(method, method))


def test_the_depths_in_the_results_are_those_of_their_table():
    committed = table("encoder_collapse_ucla").set_index(["layers", "objectives"])
    rows = told_table("layers", "AE printed", "AE", "AE standardised", "random printed", "random",
                      "random standardised")
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5"]
    for layers, *texts in rows:
        assert texts == [text for name in ("AE", "random") for row in [committed.loc[(int(layers), name)]] for text in
                         (f"{row['published']:.2f}", spread(row), f"{row['linear_standardised']:.1f}")]
    trained = committed.xs("AE", level="objectives")["difference"]
    assert numbers_of(r"the numbers differ by up to (\S+) points") == pytest.approx([trained.abs().max()], abs=0.0501)


def test_variants_in_the_results_are_those_of_their_table():
    committed = table("taxonomy_variants_ucla").query("preset == 'paper'")
    variants = {
        "frozen_noise": "td_queue=frozen_noise", "best_on_test": "select=best_on_test", "3e-3": "learning_rate=0.003",
        "bidirectional": "bidirectional=True", "denoising": "ad_input=augmented", "float32": "precision=float32",
    }
    told = []
    for departure, name, *numbers in told_table("what differs", "objective", "printed", "recipe", "changed"):
        found = variants[re.search(r"`--\S+ (\S+)`", departure)[1]]
        row = committed[(committed["objectives"] == name) & (committed["departures"] == found)].iloc[0]
        assert numbers == [f"{row['published']:.2f}", f"{row['usual']:.1f}", f"{row['ours']:.1f}"]
        told.append((name, found))
    assert len(set(told)) == len(told)
    in_words = {(name, "precision=float32") for name in ("CE", "AE+CE+AD")}
    departures = set(zip(committed["objectives"], committed["departures"], strict=True))
    assert set(told) == {(name, departure) for name, departure in departures if departure != "version=2"} - in_words


def test_approaches_in_the_results_are_those_of_their_table():
    committed = table("cross_modal_synthetic")
    keyed = committed.set_index(["approach", "target"])
    found = {key: f"{row['ours']:.1f} \N{PLUS-MINUS SIGN} {row['std']:.1f}" for key, row in keyed.iterrows()}
    assert (committed["n_seeds"] == 3).all() and (committed["preset"] == "quick").all()
    rows = told_table("approach", "pictures", "sound")
    assert [name for name, *_ in rows] == list(dict.fromkeys(committed["approach"]))
    for name, *numbers in rows:
        assert numbers == [found[name, "synthetic_video"], found[name, "synthetic_audio"]]


def test_older_grids_of_characters_are_what_the_results_say_of_them():
    keyed = table("mutual_information_multiomniglot").set_index(["characters", "method"])
    assert (keyed["n_seeds"] == 2).all() and (keyed["preset"] == "quick").all() and len(keyed) == 27
    assert (keyed.loc[[1, 2], "ours"] >= 95).all()  # less would be undertrained
    lead = keyed["ours"].unstack().eval("smoco - xmoco")
    assert numbers_of(r"SMoCo ahead of XMoCo by (\d+) points and more from four") == [int(lead.loc[4:].min())]


def test_keys_as_old_as_their_pool_in_the_results_are_those_of_the_cells():
    exported = read_cells(FIGURES / "cells.csv").query("study == 'clips' and dataset == 'synthetic'")
    pooled = exported[exported["changes"].map(json.loads).map(lambda changes: changes.get("renewed") is False)]
    results = pd.DataFrame(map(json.loads, pooled["metrics"]))
    told = re.search(r"three seeds: (\S+) \S (\S+) and (\S+) \S (\S+) % on pictures", (ROOT / "RESULTS.md").read_text())
    targets = results[["synthetic_video", "synthetic_audio"]]
    expected = [number for target in targets for number in (targets[target].mean(), targets[target].std())]
    assert len(results) == 3 and list(told.groups()) == [f"{number:.1f}" for number in expected]


NEGATIVES = {"random": "random", "OHEM": "ohem", "features": "feature", "gradients": "gradient"}


def test_categories_in_the_results_are_those_of_their_tables():
    stem = "category_diversity_multiomniglot_101categories_624iterations"
    told = told_table("pool", "chance", *NEGATIVES)
    for (_, chance, *found), name, seeds in zip(told, (stem, f"{stem}_zipf"), (5, 3), strict=True):
        rows = table(name).set_index(["target", "sampler"])
        assert (rows["n_seeds"] == seeds).all() and (rows["preset"] == "quick").all()
        pictures = rows.loc["video"].loc[list(NEGATIVES.values())]
        assert found == [spread(row) for _, row in pictures.iterrows()]
        assert chance == f"{rows['expected'].iloc[0]:.1f}"
        assert (rows.loc["video", "ours"] - rows.loc["audio", "ours"]).abs().max() <= 1.7


def test_what_the_results_say_of_selections_post_hoc_was_counted():
    log = table("post_hoc_diversity_multiomniglot")
    which = ["frequency", "batch", "sampler", "posterior", "step", "seed"]
    each = log.pivot(index=which, columns="measure", values="value").dropna()
    gain, predicted = each["categories"] - each["expected"], each["predicted"] - each["expected"]
    above = [100 * (gain > 0).mean(), *(100 * (gain > 0).groupby("frequency").mean())]
    means = each.xs(624, level="step").groupby(which[:4]).mean()
    far = means.loc["balanced", 128, "feature", 1.0]
    near, cold = means.loc["zipf", 128, "gradient", 1.0], means.loc["balanced", 128, "gradient", 0.07]
    text = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    told = re.search(r"below one holds in all (\d+) selections, and in (\S+) % .* \(balanced (\S+) %, Zipf (\S+) %\).* "
                     r"correlate with (\S+)\. .* step 624: (\S+), counted (\S+)\) and too little .* \((\S+), counted "
                     r"(\S+)\)\. .* pools \((\S+) of (\S+) at M = 128\), though rho is (\S+):", text)
    numbers = [float(number) for number in told.groups()]
    assert (each["rho"] < 1).all() and numbers[0] == len(each)
    assert numbers[1:4] == pytest.approx(above, abs=0.501)
    assert numbers[4] == pytest.approx(np.corrcoef(gain, predicted)[0, 1], abs=0.005)
    assert numbers[5:-1] == pytest.approx([*far[["predicted", "categories"]], *near[["predicted", "categories"]],
                                           *cold[["categories", "expected"]]], abs=0.0501)
    assert numbers[-1] == pytest.approx(cold["rho"], abs=0.005)


def test_accuracies_with_headroom_in_the_results_are_those_of_their_tables():
    suffix = "multiomniglot_3characters_2000distinct_zipf_redrawn_augmented"
    names = {"1,024": f"ohem_vs_active_{suffix}", "256": f"ohem_vs_active_{suffix}_256dictionary"}
    for dictionary, negatives, seen, unseen in told_table("dictionary", "negatives", "new pairs", "never seen"):
        row = table(names[dictionary]).set_index("sampler").loc[NEGATIVES[negatives]]
        assert row["n_seeds"] == 3 and seen == spread(row) and unseen == f"{row['linear_held_out']:.1f}"
    exported = read_cells(FIGURES / "cells.csv").query("study == 'clips' and version == 5")
    fields, linear = exported["recipe"].map(json.loads), exported["metrics"].map(json.loads).str["linear"]
    here = fields.str["distinct"].eq(2000) & fields.str["dictionary"].eq(256) & fields.str["method"].eq("cmacc")
    by_seed = linear[here].groupby([exported["seed"], fields.str["sampler"]]).first().unstack()
    below, above = by_seed["random"] - by_seed["ohem"], by_seed["gradient"] - by_seed["random"]
    assert (below > 0).all() and numbers_of(
        r"with every seed, by (\S+) points \(standard error (\S+)\), and gradients are above them by (\S+) \((\S+)\)\."
    ) == pytest.approx([below.mean(), below.sem(), above.mean(), above.sem()], abs=0.0501)
    bounds = table(f"cross_modal_{suffix}").set_index("approach")
    told = re.search(r"From scratch (\S+ \S \S+) %, with labels (\S+ \S \S+);", (ROOT / "RESULTS.md").read_text())
    assert list(told.groups()) == [spread(bounds.loc[name]) for name in ("Scratch", "Supervised")]


def test_augmented_grids_in_the_results_are_those_of_their_table():
    rows = table("mutual_information_multiomniglot_augmented").set_index(["characters", "method"])
    assert (rows["n_seeds"] == 2).all() and (rows["preset"] == "quick").all()
    told = told_table("characters, augmented", "SMoCo", "XMoCo", "CM-ACC")
    assert [int(first) for first, *_ in told] == [1, 3, 5, 9]
    for characters, *found in told:
        assert found == [spread(rows.loc[int(characters), name]) for name in ("smoco", "xmoco", "cmacc")]


def test_what_is_left_costs_what_such_cells_took():
    exported = read_cells(FIGURES / "cells.csv")
    fields, hours = exported["recipe"].map(json.loads), exported["cost"].map(json.loads).str["seconds"] / 3600
    ucla = exported["dataset"].eq("ucla") & exported["preset"].eq("paper")
    trained = hours[ucla & exported["version"].eq(3) & fields.str["objectives"].ne("random")]
    grids = hours[exported["version"].eq(5) & fields.str["augmented"].eq(True) & ~fields.str["distinct"].eq(2000)]
    deep = hours[ucla & fields.str["objectives"].eq("AE") & fields.str["layers"].gt(1)]
    assert len(grids) == 24 and len(deep) == 4
    found = numbers_of(
        r"takes (\d+) to (\d+) minutes of a core(?s:.*) pairs took (\S+) hours;(?s:.*)seeds: (\S+) hours each")
    assert found == pytest.approx([60 * trained.min(), 60 * trained.max(), grids.sum(), deep.sum()], abs=0.501)
