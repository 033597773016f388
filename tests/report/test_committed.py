"""The committed figures: they follow from the committed cells, and hold what RESULTS.md says of them."""

import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.stats import binomtest, spearmanr, ttest_rel

from repro import papers
from repro.audiovisual import synthetic
from repro.papers.sce.figures import METHOD_NAMES
from repro.papers.taxonomy.glm import leave_one_out
from repro.report.logs import read
from repro.report.printed import printed
from repro.report.style import COLUMN
from repro.run.export import read_cells

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"


def table(name):
    return pd.read_csv(FIGURES / f"{name}.csv")


def measured(**asked):
    """Measures, by seed, of the cells that have these values in columns of cells.csv or fields of the recipe."""
    exported = read_cells(FIGURES / "cells.csv")
    fields = pd.DataFrame(map(json.loads, exported["recipe"]))
    for name, value in asked.items():
        exported = exported[(exported[name] if name in exported else fields.loc[exported.index, name]).eq(value)]
    measures = pd.DataFrame(map(json.loads, exported["metrics"]), index=exported["seed"])
    return measures.sort_index()


def logs():
    """The committed files from which figures are drawn, beside cells.csv."""
    return sorted({path for name in papers.logs() for path in FIGURES.glob(f"{name}_*.csv")})


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
    assert list(rows.index) == [1, 2, 3, 4, 5] and (rows["n_seeds"] == 10).all() and (rows["preset"] == "paper").all()
    gaps = rows["difference"].abs()
    within, further = numbers_of(r"four depths within (\S+) points; with four layers (\S+) below")
    assert gaps.drop(4).max() < within and further == pytest.approx(gaps[4], abs=0.0501)
    assert_told(r"with four the print is (\S+) points higher, (\S+) deviations between a mean of ten seeds",
                [gaps[4], gaps[4] / rows["std"][4] / (1 + 1 / 10) ** 0.5])
    seeds = {layers: measured(objectives="random", layers=layers, preset="paper", version=3)["linear"]
             for layers in rows.index}
    assert seeds[4].max() < rows["published"][4]
    assert_told(r"the first three had ended (\S+) points below", [rows["published"][4] - seeds[4][[0, 1, 2]].mean()])
    fifth = seeds[5] - seeds[4]
    assert all(ttest_rel(seeds[layers + 1], seeds[layers], alternative="greater").pvalue < 0.05 for layers in (1, 2, 3))
    assert_told(r"and by (\S+) \(standard error (\S+)\) with the fifth", [fifth.mean(), fifth.sem()])


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
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"]
ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]


def numbers_of(pattern):
    """The groups of the one place in RESULTS.md that a pattern matches, as numbers; words of small ones count."""
    match, = re.finditer(pattern, RESULTS)
    return [WORDS.index(group.lower()) if group.lower() in WORDS else float(group.replace(",", ""))
            for group in match.groups()]


def assert_told(pattern, values):
    """The numbers in the one place of RESULTS.md that a pattern matches are these values, rounded as they are there."""
    match, = re.finditer(pattern, RESULTS)
    for told, number, value in zip(match.groups(), numbers_of(pattern), values, strict=True):
        assert abs(number - value) <= 0.5001 * 10 ** -len(told.partition(".")[2]), f"{told} is {value}"


def spread(row):
    """A mean of seeds as RESULTS.md has it, with its deviation if there are several."""
    return f"{row['ours']:.1f}" + ("" if pd.isna(row["std"]) else f" \N{PLUS-MINUS SIGN} {row['std']:.1f}")


@pytest.fixture(scope="module")
def column():
    """The trained objectives of NW-UCLA, by name."""
    return table("taxonomy_ucla").query("objectives != 'random'").set_index("objectives")


@pytest.fixture(scope="module")
def curves():
    """Accuracies along training on NW-UCLA, of the newest version, by objective (rows), seed and epoch (columns)."""
    log = table("along_training_ucla").query("version == 3 and measure == 'linear' and entry == objectives")
    return log.pivot(index="objectives", columns=["seed", "epoch"], values="value")


def test_verdicts_cover_every_table_and_name_allowed_ones():
    rows = told_table("paper", "table or figure", "on what", "seeds", "verdict", "why", under="## Verdicts")
    assert {row[4] for row in rows} <= {"reproduced", "partly", "not", "not run"}
    assert {row[0] for row in rows} == {"taxonomy", "CM-ACC", "SCE", "JCL"} and all(row[-1] for row in rows)
    shown = told_table("paper", "table or figure", "on what, so far", "verdict", "notebook", text=README)
    assert [(row[1], row[3].partition(":")[0]) for row in shown] == [(row[1], row[4]) for row in rows]
    links = re.findall(r"figures/(\w[\w*]+)\.(?:csv|png|\*)", RESULTS)
    assert len(links) >= 15 and all([*FIGURES.glob(f"{name}.csv")] for name in links)


SCATTERED = ["AE", "AE+CD"]  # whose seeds lie too far apart for the deviation of the others


def between_seeds(values):
    """The deviation of seeds (columns) within objectives (rows), pooled over those that do not fall apart."""
    held = values.drop(SCATTERED)
    freedom = held.count(axis=1) - 1
    return ((held.var(axis=1).fillna(0) * freedom).sum() / freedom.sum()) ** 0.5


def test_how_far_the_column_is_from_the_printed_one_is_what_its_table_has(column, curves):
    pooled = between_seeds(curves.xs(150, level="epoch", axis=1))
    deviations = column["difference"].abs() / (1 + 1 / column["n_seeds"]) ** 0.5 / pooled
    far = deviations.drop(SCATTERED).loc[lambda values: values > 2].sort_values(ascending=False)
    correlation, without, deviation, again, count = numbers_of(
        r"printed order is (\S+) over the fifteen, and (\S+) without AE\+AD\+CD: .* "
        r"\((\S+) \S+\(1 \+ 1/n\); (\S+) points are .* more\), (\w+) of the thirteen others")
    for found, rows in ((correlation, column), (without, column.drop("AE+AD+CD"))):
        assert found == pytest.approx(spearmanr(rows["ours"], rows["published"]).statistic, abs=0.005)
    assert column["published"].rank()["AE+AD+CD"] == 2 and column["ours"].idxmax() == "AE+AD+CD"
    place = ORDINALS[int(column["ours"].rank(ascending=False)["AE+CE+AD"]) - 1]
    assert column["published"].idxmax() == "AE+CE+AD" and f"where AE+CE+AD, printed highest, is {place}." in RESULTS
    assert count == len(far) and [deviation, again] == pytest.approx([pooled] * 2, abs=0.005)
    within = WORDS[13 - len(far)]
    told = f"{within} of fifteen within two deviations of the print, {WORDS[len(far)]} further off, two whose seeds"
    assert f"partly | {told}" in RESULTS and f"partly: {told}" in README
    assert f"{within} of fifteen objectives" in (ROOT / "docs/taxonomy.md").read_text(encoding="utf-8")
    named = ", ".join(f"{name} by {'far' if name == 'AE+AD+CD' else f'{far[name]:.1f}'}" for name in far.index)
    assert f": {named}. AE and AE+CD lie" in RESULTS
    low, lower, apart, further = numbers_of(
        r"AE and AE\+CD lie (\d+) and (\d+) points below it, but their seeds lie up to (\S+) and (\S+) points apart")
    assert [low, lower] == [round(-column.loc[name, "difference"]) for name in SCATTERED]
    last = curves.xs(150, level="epoch", axis=1).loc[SCATTERED]
    assert [apart, further] == pytest.approx([*last.max(axis=1) - last.min(axis=1)], abs=0.0501)


def test_the_highest_printed_objectives_are_lower_here_by_what_the_results_say(column, curves):
    highest = column.loc[column["published"] >= 82, "difference"]
    lower = -highest[highest < 0]
    count, least, most, chance = numbers_of(r"(\w+) of the seven are lower here, by (\S+) to (\S+) points.* "
                                            r"\(sign test p = (\S+)\)")
    assert (len(highest), count) == (7, len(lower))
    assert [least, most] == pytest.approx([lower.min(), lower.max()], abs=0.0501)
    assert chance == pytest.approx(binomtest(len(lower), len(highest)).pvalue, abs=0.0005)
    for name in set(highest.index) - set(lower.index):
        assert f"{name} is higher by {highest[name]:.1f}" in RESULTS
    rules = table("printed_column_ucla").query("exchanged == 0").set_index("rule")
    met, most, epoch, deviation = numbers_of(
        r"above (\w+) of them are met at the last epoch, and (\w+) at most, at epoch (\d+), where the deviation is "
        r"larger \((\S+)\) and the mean gap too")
    last, best = rules.loc["epoch 150"], rules.loc[f"epoch {epoch:.0f}"]
    assert met == last["highest"] and most == best["highest"] and (rules["highest"].drop(best.name) < most).all()
    assert deviation == pytest.approx(best["deviation"], abs=0.0501) and best["deviation"] > last["deviation"]
    assert best["highest_gap"] < highest.mean()
    runs = curves.loc["AE+CE+AD"].unstack("seed")  # by epoch
    deviations = curves.T.groupby(level="epoch").apply(lambda at: between_seeds(at.T))
    reach = 2 * deviations * (1 + 1 / runs.count(axis=1)) ** 0.5
    assert ((runs.mean(axis=1) - column.loc["AE+CE+AD", "published"]).abs() > reach).all()
    selected = rules.loc["best epoch on the test split", "deviation"] * 2 * (1 + 1 / runs.shape[1]) ** 0.5
    assert column.loc["AE+CE+AD", "published"] - runs.max().mean() > selected
    assert "AE+CE+AD is met by no rule" in RESULTS
    log = table("along_training_ucla").query("version == 3 and entry == 'AE+CE+AD'").pivot(
        index=["seed", "epoch"], columns="measure", values="value")
    released = log.loc[log["knn1"].groupby("seed").idxmax(), "linear_best"].mean()
    reach = 2 * rules.loc[RULES["as released"], "deviation"] * (1 + 1 / 3) ** 0.5
    assert column.loc["AE+CE+AD", "published"] - released > reach
    gaps = numbers_of(r"the seven are (\S+) points below the print at the last epoch, (\S+) with the best epoch on the "
                      r"test split and (\S+) with")
    expected = -rules.loc[["epoch 150", "best epoch on the test split",
                           "best checkpoint by 1-NN, best epoch of its probe, as released"], "highest_gap"]
    assert [1 - gap / gaps[0] for gap in (gaps[2], gaps[1])] == pytest.approx([2 / 5, 2 / 3], abs=0.05)
    assert "would account for two fifths to two thirds" in RESULTS
    assert gaps == pytest.approx([*expected], abs=0.0501) and gaps[0] == pytest.approx(-highest.mean(), abs=0.0501)
    others = column.drop(["AE", "AE+AD+CD"])["published"]
    shrunk = (between_seeds(curves.xs(150, level="epoch", axis=1)) / others.std()) ** 2
    history = printed("taxonomy_repo_history")["UCLA_linear"]
    before = [name for name in highest.index if column.loc[name, "published"] in set(history)]
    assert f"{WORDS[len(before)].capitalize()} of the seven ({', '.join(before)}) are values that" in RESULTS
    lucky = shrunk * (column.loc[highest.index, "published"].mean() - others.mean())
    assert_told(r"by (\S+) points, from the scatter of seeds", [lucky])


RULES = {  # as RESULTS.md calls them
    "epoch 150, the recipe": "epoch 150",
    "best epoch on the test split": "best epoch on the test split",
    "as released": "best checkpoint by 1-NN, best epoch of its probe, as released",
}


def interval(row, measure, digits):
    """A measure with its 95 % interval; without where single runs have none, and nothing where it is unknown."""
    value, low, high = (row[measure + ending] for ending in ("", "_low", "_high"))
    if pd.isna(value):
        return ""
    return f"{value:.{digits}f}" + (f" ({low:.{digits}f} to {high:.{digits}f})" if low < high else "")


def test_the_rules_nearest_to_the_printed_column_are_those_of_their_table():
    rules = table("printed_column_ucla")
    fullest = rules[rules["objectives"] == 15]
    assert rules.loc[rules["objectives"] < 3, "spearman"].isna().all()
    ordered = fullest.sort_values(["spearman", "rmse"], ascending=[False, True], kind="stable")
    printed, exchanged = (ordered[ordered["exchanged"] == value].iloc[0] for value in (0, 1))
    last, measures = fullest.query("rule == 'epoch 150'"), ["root mean square", "Spearman", "further"]
    nearest = fullest.loc[fullest.groupby("exchanged")["rmse"].idxmin()]
    assert set(nearest["rule"]) == {"best epoch on the test split"} and printed["rule"] == exchanged["rule"]
    assert_told(r"There are (\d+) rules", [len(fullest) / 2])
    assert_told(r"Epoch (\d+) has most .* best of (\d+) readings .* between (\d+) and (\d+) of the fifteen",
                [float(printed["rule"].removeprefix("epoch ")), len(fullest), fullest["apart"].min(),
                 fullest["apart"].max()])
    assert nearest["spearman"].max() < last["spearman"].min()  # "whose order is worse"
    shown = rules.set_index(["exchanged", "rule"])
    told = told_table("rule", "objectives", *measures, *(f"exchanged: {name}" for name in measures))
    for name, objectives, *found in told:
        rows = [shown.loc[exchanged, RULES.get(name, name)] for exchanged in (0, 1)]
        expected = [text for row in rows for text in (
            interval(row, "rmse", 1), interval(row, "spearman", 2), str(row["apart"]))]
        assert [int(objectives), *found] == [rows[0]["objectives"], *expected]
    assert [name for name, *_ in told] == [
        "epoch 30", "epoch 50", "epoch 90", *RULES, "weights of November 2020", "squared differences, weight 0.004"]
    epochs = fullest[fullest["rule"].str.startswith("epoch")].set_index(["exchanged", "rule"])
    for exchanged in (0, 1):
        by_order = epochs.loc[exchanged, "spearman"].sort_values(ascending=False)
        assert epochs.loc[exchanged, "rmse"].idxmin() == "epoch 90"
        assert [by_order.index[place] for place in (0, 2)] == ["epoch 30", "epoch 50"]
    reach = fullest[fullest["spearman_high"] >= 0.8]
    assert fullest["spearman"].max() < 0.8
    assert [*zip(reach["rule"], reach["exchanged"], strict=True)] == [("epoch 30", 0), ("epoch 30", 1), ("epoch 50", 1)]
    assert "three of the 34 intervals do, of epoch 30 both ways and of epoch 50 exchanged," in RESULTS
    squared = {f"squared differences, weight {weight}" for weight in ("0.04", "0.004", "0.0004")}
    assert set(rules[rules["objectives"] < 15]["rule"]) == {"weights of November 2020"} | squared
    departing = table("taxonomy_variants_ucla").set_index("departures").filter(regex="ad_weight", axis=0)
    assert set(departing["objectives"]) == {"AD+CD", "CE+AD", "AE+CE+AD", "AD"} and set(departing["n_seeds"]) == {1}
    assert (departing["usual"] < departing["published"]).all()
    lower = (departing["usual"] - departing["ours"]).groupby(departing["objectives"]).agg(["min", "max"])
    assert [lower.loc[name, "max"] for name in ("AD+CD", "CE+AD")] == pytest.approx([0, 100 / 460])  # "one recording"
    assert_told(r"at the same accuracy, CE\+AD one recording below, the others by (\S+) to (\S+) points",
                [lower.drop(["AD+CD", "CE+AD"])["min"].min(), lower["max"].max()])


def test_the_precision_of_the_column_is_that_which_the_results_name():
    exported = read_cells(FIGURES / "cells.csv").query("dataset == 'ucla' and preset == 'paper'")
    fields, cost = exported["recipe"].map(json.loads).str, exported["cost"].map(json.loads).str
    cells = exported.assign(objectives=fields["objectives"], computed=cost["precision"],
                            linear=exported["metrics"].map(json.loads).str["linear"], precision=fields["precision"])
    newest = cells[cells["version"].eq(3) & fields["layers"].eq(1)]
    half = newest.query("changes == '{}' and objectives not in ('AD+CD', 'AE+CE+AD+CD')")
    assert set(half["computed"]) == {"bfloat16"} and half["objectives"].nunique() == 14
    others = newest.drop(half.index).set_index(["objectives", "changes"])["computed"]
    late = [("AD+CD", '{"ad_weight": 25.0}'), ("AE+CE+AD", '{"ad_loss": "squared", "ad_weight": 0.04}')]
    assert set(others[late]) == {"bfloat16"} and set(others.drop(late)) == {"float32"}
    asked = cells[cells["version"].eq(2) & cells["changes"].str.contains("float32")]["objectives"].unique()
    both = cells[cells["version"].eq(2) & cells["objectives"].isin(asked) & cells["changes"].isin(
        ["{}", '{"precision": "float32"}'])].pivot(index=["objectives", "seed"], columns="precision", values="linear")
    assert set(asked) == {"CE", "AE+CE+AD"} and len(both) == 6
    apart = both["bfloat16"] - both["float32"]
    means, single = numbers_of(r"within (\S+) points of each other in the mean, and single seeds within (\S+)\.\n")
    largest = apart.groupby("objectives").mean().abs().max(), apart.abs().max()
    assert all(0 <= told - value < 0.1 for told, value in zip((means, single), largest, strict=True))
    assert_told(r"alone moved a seed by (\S+) \(CE, version 2\)\.", [apart["CE"].abs().max()])


def test_what_the_results_say_of_the_exchanged_cells_is_what_was_measured(column, curves):
    first, *others = (curves.loc["AE+CD", seed] for seed in (0, 1, 2))
    reached, *ends = numbers_of(r"reaches 75 \(at epoch (\d+); it ends at (\S+), the two others at (\S+) and (\S+)\)")
    assert first.index[first >= 75][0] == reached and all((other < 75).all() for other in others)
    assert ends == pytest.approx([seed.loc[150] for seed in (first, *others)], abs=0.0501)
    print_of = printed("taxonomy").set_index(["AE", "CE", "AD", "CD"])
    numbers = {"CD": print_of.loc[(0, 0, 0, 1), "UCLA"], "AE+CD": print_of.loc[(1, 0, 1, 1), "UCLA"],
               "AE+AD+CD": print_of.loc[(1, 0, 0, 1), "UCLA"]}  # the two exchanged
    first_two = ", ".join(f"{numbers[name]:.1f}" for name in ("CD", "AE+CD"))
    assert f"two deviations of their own seeds of {first_two} and " in RESULTS
    met = [epoch for epoch in range(20, 151, 10)
           if all(abs(runs.mean() - number) <= 2 * runs.std() * (1 + 1 / len(runs)) ** 0.5
                  for name, number in numbers.items() for runs in [curves.loc[name].xs(epoch, level="epoch").dropna()])]
    assert met == numbers_of(r"and 76\.8, at epochs (\d+) and (\d+);") and curves.loc["AE+AD+CD"].min() > 65
    least, most = numbers_of(r"because their seeds have deviations of (\w+) to (\w+) points there")
    spreads = [curves.loc[name].xs(epoch, level="epoch").std() for name in ("CD", "AE+CD") for epoch in met]
    assert [least, most] == pytest.approx([min(spreads), max(spreads)], abs=0.501)
    assert_told(r"for at epoch 40 their means are (\S+) and (\S+)\. For",
                [curves.loc[name].xs(40, level="epoch").mean() for name in ("CD", "AE+CD")])
    ahead, least, most = numbers_of(
        r"ahead with every seed, by (\d+) points in the mean\), the three printed columns of NTU RGB\+D \(ahead by "
        r"(\S+) to (\S+)\)")
    last = curves.xs(150, level="epoch", axis=1)
    assert (last.loc["AE+AD+CD"] > last.loc["AE+CD"]).all()
    assert ahead == round(column.loc["AE+AD+CD", "ours"] - column.loc["AE+CD", "ours"])
    ntu = (print_of.loc[1, 0, 1, 1] - print_of.loc[1, 0, 0, 1]).filter(like="NTU")
    assert [least, most] == pytest.approx([ntu.min(), ntu.max()], abs=0.0501)
    above, lowest = numbers_of(
        r"AE\+AD\+CD is (\S+) points above the exchanged number too\. .* \((\S+) or more at each")
    assert [above, lowest] == pytest.approx([column.loc["AE+AD+CD", "ours"] - numbers["AE+AD+CD"],
                                             curves.loc["AE+AD+CD"].min()], abs=0.0501)


def test_the_linear_model_of_our_runs_is_that_of_its_figure():
    ours = table("glm_forest_ucla").query("source == 'ours'").set_index(["rows", "term"])
    nine, every = ours.loc["unmixed+best"], ours.loc["all"]
    found = numbers_of(r"AD has t = (\S+) \(one-tailed p = (\S+)\) and CD (\S+); .* least p is (\S+)\. On all fifteen "
                       r"CE and AD have (\S+) and (\S+), the least corrected p is (\S+)\. So no term stands")
    assert found == pytest.approx([
        *nine.loc["AD", ["t", "p_one_tailed"]], nine.loc["CD", "t"], nine["p_corrected"].min(),
        *every.loc[["CE", "AD"], "t"], every["p_corrected"].min(),
    ], abs=0.00501)
    column = table("taxonomy_ucla").set_index("objectives")["ours"]
    pairs = [(name, f"{name}+CD") for name in column.index if f"{name}+CD" in column.index]
    raised = pd.Series([column[with_it] - column[without] for without, with_it in pairs])
    assert_told(r"here it raises it, by (\S+) points \(standard error (\S+), (\w+) pairs\)",
                [raised.mean(), raised.sem(), len(raised)])
    assert min(nine["p_corrected"].min(), every["p_corrected"].min()) > 0.05 and nine["t"].idxmax() == "AD"


def test_readouts_and_scales_in_the_results_are_those_of_their_table(column):
    random = table("taxonomy_ucla").set_index("objectives").loc["random"]
    expected = [column.loc["AE", "readout_spread"], random["readout_spread"],
                *column.loc["AE", ["ours", "linear_standardised"]]]
    assert_told(r"\(`readout_spread` (\S+) and (\S+)\): the printed probe finds (\S+) in them, and (\S+) once",
                expected)
    scales = column["decoded_scale"].dropna()
    others = scales.drop(["CD", "AE+CD"])
    with_ad = others[others.index.str.contains("AD")]
    assert_told(r"end (\d+) and (\d+) times as large as the data \(`decoded_scale`; at most (\S+) times with AD, "
                r"(\S+) with CE\)", [scales["CD"], scales["AE+CD"], with_ad.max(), others.drop(with_ad.index).max()])


def test_medians_of_similarities_in_the_results_are_those_of_their_figure():
    images = table("similarity_variance_images_cifar10_cifar10_lossless_subset_npz")
    medians = images.groupby("model")["similarity"].median()
    told = re.search(r"median of ([\d.]+) for JCL and ([\d.]+) for MoCo v2", (ROOT / "RESULTS.md").read_text())
    assert told.groups() == (f"{medians['JCL']:.3f}", f"{medians['MoCo v2']:.3f}")


def named(method):
    """An image method as the text calls it."""
    return {"random": "random initialisation"}.get(method, METHOD_NAMES.get(method, method))


def test_what_duplicates_are_worth_in_the_results_is_in_the_table(column):
    lost = (column["ours"] - column["linear_unseen"]).drop(SCATTERED)
    least, most, before, after = numbers_of(r"AE and AE\+CD loses (\S+) to (\S+) points \(CE (\S+) to (\S+)\)\.")
    assert [least, most] == pytest.approx([lost.min(), lost.max()], abs=0.0501)
    assert [before, after] == pytest.approx([*column.loc["CE", ["ours", "linear_unseen"]]], abs=0.0501)


def test_what_the_results_say_of_four_methods_in_one_setting_follows_from_their_seeds():
    images = {"dataset": "cifar10 (cifar10_lossless_subset.npz)", "preset": "quick", "changes": "{}"}
    linear = pd.DataFrame({name: measured(**images, study="images", method=name)["linear"]
                           for name in ("sce", "moco", "ressl", "jcl")})
    chances = {pair: ttest_rel(linear[pair[0]], linear[pair[1]])
               for pair in itertools.combinations(("sce", "moco", "ressl", "jcl"), 2)}
    best = chances["sce", "moco"]
    least, most, t, p, corrected = numbers_of(
        r"SCE is above MoCo v2 with every seed, by (\S+) to (\S+) points \(paired over seeds t = (\S+) with 2 degrees "
        r"of freedom, p = (\S+), corrected for six pairs of methods (\S+)\)")
    gaps = linear["sce"] - linear["moco"]
    assert [least, most, t] == pytest.approx([gaps.min(), gaps.max(), best.statistic], abs=0.0501)
    assert [p, corrected] == pytest.approx([best.pvalue, 6 * best.pvalue], abs=0.0005)
    assert sorted(chance.pvalue for chance in chances.values())[1] > 0.05
    gap, lowest = gaps.mean(), linear["moco"].mean()
    assert_told(r"on these 1,017 test images, of which (\S+) points are (\d+); .* by (\S+) points \(standard error\)",
                [gap, gap / 100 * 1017, (lowest * (100 - lowest) / 1017) ** 0.5])


def test_variants_in_the_results_are_those_of_their_table():
    committed = table("taxonomy_variants_ucla").query("preset == 'paper'")
    variants = {
        "variant frozen_noise": "td_queue=frozen_noise", "select best_on_test": "select=best_on_test",
        "learning-rate 3e-3": "learning_rate=0.003", "variant bidirectional": "bidirectional=True",
        "variant denoising": "ad_input=augmented", "ae-weight 10 --ad-weight 50": "ae_weight=10.0, ad_weight=50.0",
        "ad-weight 25": "ad_weight=25.0", "ad-loss squared --ad-weight 0.004": "ad_weight=0.004, ad_loss=squared",
        "ad-loss squared --ad-weight 0.0004": "ad_weight=0.0004, ad_loss=squared",
        "ad-loss squared --ad-weight 0.04": "ad_weight=0.04, ad_loss=squared",
    }
    told = []
    for departure, name, *numbers in told_table("what differs", "objective", "printed", "recipe", "changed"):
        found = variants[re.search(r"`--(.+?)`", departure)[1]]
        row = committed[(committed["objectives"] == name) & (committed["departures"] == found)].iloc[0]
        assert numbers == [f"{row['published']:.2f}", f"{row['usual']:.1f}", f"{row['ours']:.1f}"]
        told.append((name, found))
    assert len(set(told)) == len(told)
    assert f"{WORDS[len(told)].capitalize()} departures from the printed recipe on the real data are trained" in RESULTS
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
    rows = table("mutual_information_multiomniglot").query("target == 'characters'")
    keyed = rows.set_index(["characters", "method"])
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
    renewed = table("cross_modal_synthetic").query("approach == 'CM-ACC'").set_index("target").loc[[*targets]]
    assert_told(r"against (\S+) \S (\S+) and (\S+) \S (\S+) where what was selected",
                renewed[["ours", "std"]].to_numpy().ravel())


NEGATIVES = {"random": "random", "OHEM": "ohem", "features": "feature", "gradients": "gradient"}


def characters():
    """Fields and measures of the cells of characters that are of the newest version, with their seeds."""
    exported = read_cells(FIGURES / "cells.csv").query("dataset == 'multiomniglot' and version == 5")
    parts = [pd.DataFrame(map(json.loads, exported[name])) for name in ("metrics", "recipe")]
    cells = pd.concat([exported["seed"].reset_index(drop=True), *parts], axis=1)
    return cells.loc[:, ~cells.columns.duplicated()]


def test_what_the_results_say_of_categories_by_seed_was_counted():
    cells = characters().query("method == 'cmacc' and categories == 101 and iterations == 624")
    gaps = {}
    for frequency, measure in itertools.product(("balanced", "zipf"), ("categories_video", "categories_audio")):
        counted = cells[cells["frequency"] == frequency].pivot(index="seed", columns="sampler", values=measure)
        gaps[frequency, measure] = counted["gradient"] - counted["feature"]
    balanced = [gap for (frequency, _), gap in gaps.items() if frequency == "balanced"]
    pictures, sound = gaps["zipf", "categories_video"], gaps["zipf", "categories_audio"]
    assert all((gap < 0).all() for gap in balanced)
    assert_told(
        r"alone, by (\S+) \(standard error (\S+)\), .* on second ones they cover (\S+) \((\S+)\) fewer, and in "
        r"balanced pools (\S+) \((\S+)\) and (\S+) \((\S+)\) fewer, with every seed",
        [pictures.mean(), pictures.sem(), -sound.mean(), sound.sem(),
         *(number for gap in balanced for number in (-gap.mean(), gap.sem()))])
    late = table("category_curves_multiomniglot").query("step > 524")
    ahead = late.query("frequency == 'zipf'").pivot_table("categories_video", "seed", "sampler")
    ahead = ahead["feature"] - ahead["gradient"]
    assert_told(r"and not at the end, where they cover (\S+) fewer there, with every seed", [ahead.mean()])
    assert (ahead > 0).all()
    late = late.groupby(["frequency", "sampler"])["categories_video"].mean()
    early = table("category_curves_multiomniglot").query("step <= 62 and sampler in ('feature', 'gradient')")
    early = early.assign(gain=100 * (early["categories_video"] / early["expected"] - 1))
    early = early.groupby(["frequency", "sampler"])["gain"].mean()
    assert early["balanced"].round().tolist() == [2, 2]
    assert_told(r"from (\S+) % and (\S+) to (\S+) % over the first tenth",
                [2, early["zipf"].min(), early["zipf"].max()])
    assert_told(r"over the last hundred they cover (\S+) and (\S+), and OHEM (\S+); in Zipf's (\S+), (\S+) and (\S+)\.",
                [late[pool, sampler] for pool in ("balanced", "zipf") for sampler in ("feature", "gradient", "ohem")])


def test_what_the_results_say_of_selections_post_hoc_was_counted():
    log = table("post_hoc_diversity_multiomniglot")
    which = ["frequency", "batch", "sampler", "posterior", "step", "seed"]
    each = log.pivot(index=which, columns="measure", values="value").dropna()
    gain, predicted = each["categories"] - each["expected"], each["predicted"] - each["expected"]
    above = [100 * (gain > 0).mean(), *(100 * (gain > 0).groupby("frequency").mean())]
    plain = gain.index.get_level_values("posterior") == 1
    within = [np.corrcoef(part, predicted[part.index])[0, 1]
              for _, part in gain[plain].groupby(["sampler", "frequency"])]
    means = each.xs(624, level="step").groupby(which[:4]).mean()
    far = means.loc["balanced", 128, "feature", 1.0]
    near, cold = means.loc["zipf", 128, "gradient", 1.0], means.loc["balanced", 128, "gradient", 0.07]
    found = numbers_of(
        r"It is in all (\d+) selections, .* chance in (\S+) % .* \(balanced (\S+) %, Zipf (\S+) %; .* as printed, "
        r"it is in (\S+) %.* correlate with (\S+) to (\S+)\. .* step 624: (\S+), counted (\S+)\) and too little "
        r".* \((\S+), counted (\S+)\)\. .* pools \((\S+) of (\S+) at M = 128\), though rho is (\S+):")
    draws = log.query("sampler == 'random'").pivot(index=which, columns="measure", values="value")
    assert_told(r"random draws in (\d+) %\)\.", [100 * (draws["categories"] > draws["expected"]).mean()])
    counted = log.query("step == 624 and batch == 128").groupby(["frequency", "sampler", "posterior", "measure"])
    at_end, choices = counted["value"].agg(["mean", "std"]), 0
    for pool, choice, temperature, *told in told_table(
            "pool", "choice", "temperature", "categories", "chance", "rho", "predicted"):
        measures = at_end.loc[pool.lower(), NEGATIVES[choice], float(temperature or 1)]
        mean, choices = measures["mean"], choices + 1
        expected = [f"{mean['categories']:.1f} \N{PLUS-MINUS SIGN} {measures.loc['categories', 'std']:.1f}",
                    f"{mean['expected']:.1f}"]
        expected += [f"{mean['rho']:.2f}", f"{mean['predicted']:.1f}"] if "rho" in mean else ["", ""]
        assert told == expected
    assert choices == len(at_end.index.droplevel("measure").unique()) == 12
    assert (each["rho"] < 1).all() and found[0] == len(each)
    assert found[1:5] == pytest.approx([*above, 100 * (gain[plain] > 0).mean()], abs=0.501)
    assert found[5:7] == pytest.approx([min(within), max(within)], abs=0.00501)
    assert found[7:-1] == pytest.approx([*far[["predicted", "categories"]], *near[["predicted", "categories"]],
                                         *cold[["categories", "expected"]]], abs=0.0501)
    assert found[-1] == pytest.approx(cold["rho"], abs=0.005)


READ = ("characters", "unseen")  # targets of grids: new pairs, and drawings never seen


METHODS_OF_GRIDS = {"smoco": "SMoCo", "xmoco": "XMoCo", "cmacc": "CM-ACC"}
UNSEEN_OF_GRIDS = [f"{name}, never seen" for name in METHODS_OF_GRIDS.values()]


def grids_told(rows, characters_in):
    """Accuracies of the three methods on new pairs and on drawings never seen, as RESULTS.md has them."""
    return [spread(rows.loc[target, int(characters_in), name]) for target in READ for name in METHODS_OF_GRIDS]


def test_what_is_left_costs_what_such_cells_took():
    exported = read_cells(FIGURES / "cells.csv")
    fields, hours = exported["recipe"].map(json.loads), exported["cost"].map(json.loads).str["seconds"] / 3600
    ucla = exported["dataset"].eq("ucla") & exported["preset"].eq("paper")
    trained = hours[ucla & exported["version"].eq(3) & fields.str["objectives"].ne("random")]
    deep = hours[ucla & fields.str["objectives"].eq("AE") & fields.str["layers"].eq(5)]
    assert numbers_of(r"one took (\S+) hours by version 2") == pytest.approx(deep, abs=0.0501)
    assert numbers_of(r"takes (\d+) to (\d+) minutes of a core") == pytest.approx(
        [60 * trained.min(), 60 * trained.max()], abs=0.501)
    again = [2 * trained[fields[trained.index].str["objectives"].eq(name)
                         & exported["changes"][trained.index].eq("{}")].mean() for name in ("CD", "AE+CD", "AE+AD+CD")]
    assert_told(r"AE\+AD\+CD, (\S+) hours for the six", [sum(again)])
    images = hours[exported["dataset"].eq("cifar10 (cifar10_lossless_subset.npz)") & exported["study"].eq("images")]
    images = images[fields[images.index].str["method"].isin(["moco", "ressl", "sce", "jcl"])]
    assert numbers_of(r"and JCL took (\d+) to (\d+) minutes, by method") == pytest.approx(
        [60 * images.min(), 60 * images.max()], abs=0.501)


def test_costs_told_of_trainings_on_real_data_are_those_of_their_cells():
    exported = read_cells(FIGURES / "cells.csv")
    fields, hours = exported["recipe"].map(json.loads).str, exported["cost"].map(json.loads).str["seconds"] / 3600
    grids = exported["dataset"].eq("multiomniglot") & exported["version"].eq(5)
    augmented = grids & fields["augmented"].eq(True) & fields["distinct"].ne(2000)
    column = exported["dataset"].eq("ucla") & exported["version"].eq(3) & fields["layers"].eq(1)
    usual = exported["changes"].eq("{}")
    parts = [
        grids & fields["categories"].eq(101) & fields["method"].eq("cmacc"), grids & fields["distinct"].eq(2000),
        augmented & fields["pairs"].eq(10_000), augmented & fields["pairs"].eq(50_000) & fields["iterations"].eq(624),
        augmented & fields["iterations"].eq(1250), column & usual & fields["objectives"].ne("random"), column & ~usual,
    ]
    costs, told = (ROOT / "docs/costs.md").read_text(encoding="utf-8"), []
    for line in (line for line in costs.splitlines() if line.endswith("h of one core | |") and ";" in line):
        _, counts, _, taken, _ = cells(line)
        told += zip(counts.split("; "), taken.removesuffix(" h of one core").split("; "), strict=True)
    assert told == [(str(part.sum()), f"{hours[part].sum():.1f}") for part in parts]


def test_of_all_exchanges_of_two_cells_that_of_the_results_brings_the_print_closest(column):
    distances = {}
    for first, second in itertools.combinations(column.index, 2):
        exchanged = column["published"].rename({first: second, second: first})
        distances[first, second] = ((column["ours"] - exchanged) ** 2).sum()
    assert min(distances, key=distances.get) == ("AE+CD", "AE+AD+CD")
    assert numbers_of(r"of the (\d+) exchanges of two cells this one") == [len(distances)]


def test_what_the_results_say_of_single_cells_of_the_column_is_what_they_measured(column):
    small = measured(dataset="ucf101 (subset)")[["ucf101", "trained_on"]]
    assert_told(r"on (\d+) clips of UCF101 with sound, .* CM-ACC has (\S+) %, ", [small["trained_on"].item(),
                                                                               small["ucf101"].item()])
    right, clips = numbers_of(r" %, (\d+) of (\d+) test clips")
    assert 100 * right / clips == small["ucf101"].item()
    trained = {"preset": "paper", "version": 3, "changes": "{}"}
    standardised = measured(objectives="AE+CD", **trained)["linear_standardised"]
    assert_told(r"AE\+CD's seeds have (\S+), (\S+) and (\S+) standardised", standardised)
    ours = measured(objectives="AE", **trained)["linear"]
    random = measured(objectives="random", **trained)["linear"][ours.index]
    assert [(ours > random).sum(), (ours < random).sum()] == numbers_of(
        r"here (\w+) seed of three lies above random initialisation and (\w+) below")
    changed = table("taxonomy_variants_ucla").query("objectives == 'CD' and departures == 'td_queue=frozen_noise'")
    assert_told(r"recipe's CD has (\S+) here and (\S+) \S (\S+) above",
                [changed["usual"].item(), *column.loc["CD", ["ours", "std"]]])
    denoising = table("taxonomy_variants_ucla").query("departures == 'ad_input=augmented'").iloc[0]
    assert_told(r"takes AD from (\S+) points below it to (\S+) above",
                [denoising["published"] - denoising["usual"], denoising["ours"] - denoising["published"]])
    told, = (printed("taxonomy").query("AE == 1 and CE + AD + CD == 0")["UCLA"])
    assert_told(r"disagree with one layer: (\S+) in Table 1, (\S+) in Table 2",
                [told, printed("taxonomy_depth_collapse").set_index("layers").loc[1, "AE"]])


def test_learning_rates_of_three_layers_in_the_results_are_those_of_the_cells():
    def linear(name, rate):
        return measured(dataset="ucla", preset="quick", version=2, layers=3, objectives=name, learning_rate=rate)[
            "linear"].item()

    three = printed("taxonomy").set_index(["AE", "CE", "AD", "CD"])["NTU_3layer"]
    assert_told(
        r"CE ends at (\S+) and AD at (\S+), below random initialisation \((\S+)\); with 1e-3 they reach (\S+) and "
        r"(\S+), with 9e-4, .*, (\S+) and (\S+)\. .* those of CE \((\S+)\) and AD \((\S+)\)",
        [linear("CE", 0.05), linear("AD", 0.05), linear("random", 1e-3), linear("CE", 1e-3), linear("AD", 1e-3),
         linear("CE", 9e-4), linear("AD", 9e-4), three[0, 1, 0, 0], three[0, 0, 1, 0]])


def test_the_statistic_of_the_text_in_the_results_is_that_of_its_table():
    terms = table("glm_specifications").query("rows == 'unmixed+best' and column == 'UCLA'").set_index("term")
    told = printed("taxonomy_glm_claim").iloc[0]
    assert_told(r"contrastive decoder t = (\S+), p < (\S+), one-tailed.* decoder \(p = (\S+), (\d) degrees of "
                r"freedom\); the contrastive one has (\S+)\.",
                [told["t"], told["p_upper"], *terms.loc["AD", ["p_one_tailed", "df"]], terms.loc["CD", "t"]])
    assert terms.loc["AD", "t"] == pytest.approx(told["t"], abs=5e-4) and 4 * terms["p_one_tailed"].min() > 0.05
    without = leave_one_out(printed("taxonomy"), "UCLA").query("term == 'AD'")["t"]
    assert_told(r"without one of them it lies between (\S+) and (\S+), and", [without.min(), without.max()])


def test_what_the_results_say_of_image_temperatures_and_parts_was_measured():
    images = {"dataset": "cifar10 (cifar10_lossless_subset.npz)", "preset": "quick"}
    grid = {target: measured(**images, method="sce", temperature=0.1, key_temperature=target)
            for target in (0.03, 0.05, 0.07, 0.1)}
    collapsed, held = measured(**images, method="ressl", temperature=0.1, key_temperature=0.1), grid[0.1]
    random, usual = (measured(**images, method=name, changes="{}") for name in ("random", "ressl"))
    assert {len(part) for part in (collapsed, held, random, usual)} == {3}
    assert_told(
        r"three seeds: (\S+), below random initialisation, with a spread of its embedding of (\S+) \((\S+) at random, "
        r"(\S+) with a target of 0\.04\), beside (\S+) and (\S+) \(S15 holds\)\.",
        [part[name].mean() for part, name in (
            (collapsed, "linear"), (collapsed, "embedding_spread"), (random, "embedding_spread"),
            (usual, "embedding_spread"), (held, "linear"), (held, "embedding_spread"))])
    assert collapsed["linear"].max() < random["linear"].min() and collapsed["linear"].max() < held["linear"].min()
    wide = measured(**images, method="sce", changes="{}")["linear"]
    gaps = [(first - second).dropna() for first, second in (
        (held["linear"], grid[0.07]["linear"]), (grid[0.05]["linear"], grid[0.03]["linear"]), (held["linear"], wide))]
    assert_told(
        r"0\.10 is above 0\.07 by (\S+) points \(standard error (\S+), (\w+) seeds\), and 0\.05 below 0\.03 by (\S+) "
        r"\((\S+), (\w+) seeds\): .* temperature of 0\.2, by (\S+) points \((\S+), (\w+) seeds\)",
        [number for sign, gap in zip((1, -1, 1), gaps, strict=True)
         for number in (sign * gap.mean(), gap.sem(), len(gap))])
    parts = table("objective_parts_cifar10_cifar10_lossless_subset_npz").set_index("epoch")
    assert_told(r"InfoNCE falls from (\S+) to (\S+) nats and ReSSL from (\S+) to (\S+), while .* from (\S+) to (\S+)\.",
                [parts.loc[epoch, name] for name in ("InfoNCE", "ReSSL", "Ceil") for epoch in (1, 100)])


def test_what_the_results_say_of_numbers_of_keys_was_measured():
    images = {"dataset": "cifar10 (cifar10_lossless_subset.npz)", "preset": "quick"}
    one, usual = measured(**images, method="jcl", keys=1), measured(**images, method="moco", changes="{}")
    assert one.loc[0, "linear"] == usual.loc[0, "linear"] and one.loc[0, "knn1"] == usual.loc[0, "knn1"]
    more = measured(**images, method="jcl", changes="{}")["linear"] - usual["linear"]
    assert_told(r"five keys are (\S+) to (\S+) points above one", [more.min(), more.max()])
    recipe, five = measured(**images, method="jcl", changes="{}")["linear"], {"method": "jcl", "keys": 5}
    for name, fields in {
        **{f"lambda of {value}": {**five, "strength": value, "temperature": 0.2} for value in (0, 10)},
        **{f"tau of {value}": {**five, "strength": 4, "temperature": value} for value in (0.1, 0.5)},
        "the plain mean of five losses": {"method": "vanilla"},
    }.items():
        gaps = (measured(**images, **fields)["linear"] - recipe).dropna()
        known = f"{gaps.sem():.1f}, {WORDS[len(gaps)]} seeds" if len(gaps) > 1 else "one seed"
        assert f"{name} {gaps.mean():+.1f} ({known})" in RESULTS
    sampled = table("sampled_keys_cifar10_cifar10_lossless_subset_npz").set_index("keys")
    closed = sampled["closed_form"].iloc[0]
    assert_told(
        r"rises from (\S+) nats \(m = 1\) to (\S+) \(m = 4,096\), towards the closed form's (\S+); averaged outside, "
        r".* stays at (\S+)\. .*, and (\S+) nats above it",
        [sampled.loc[1, "inside"], sampled.loc[4096, "inside"], closed, sampled.loc[4096, "outside"],
         closed - sampled.loc[4096, "outside"]])
    images = table("similarity_variance_images_cifar10_cifar10_lossless_subset_npz")
    each = np.column_stack([part["similarity"] for _, part in images.groupby("model")])
    assert list(images["model"].unique()) == ["JCL", "MoCo v2"]
    assert_told(r"for (\d+) % of the images JCL's is the higher", [100 * (each[:, 0] > each[:, 1]).mean()])


def test_steps_between_approaches_in_the_results_are_those_of_their_table():
    by_approach = table("cross_modal_synthetic").set_index(["target", "approach"])["ours"]
    pictures, sound = by_approach["synthetic_video"], by_approach["synthetic_audio"]
    assert_told(r"better than within them, by (\S+) points on pictures and (\S+) on sound",
                [targets["XMoCo (w/o fcl)"] - targets["SMoCo"] for targets in (pictures, sound)])
    assert_told(r"SMoCo on sound is below it, (\S+) against (\S+)\. The", sound[["SMoCo", "Scratch"]])
    accuracies = printed("cmacc_table3").set_index("sampler")
    gains = accuracies.loc["Active"] - accuracies.loc["Random"]
    assert_told(
        r"from scratch has (\S+) %, XMoCo (\S+) and supervised pre-training (\S+), so that about (\w+) point is left "
        r".* Table 3 prints (\w+) to (\w+) between",
        [*pictures[["Scratch", "XMoCo", "Supervised"]], pictures["Supervised"] - pictures["XMoCo"], gains.min(),
         gains.max()])
