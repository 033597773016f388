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


def told_table(*columns, under="# Results"):
    """The rows of the table of these columns in RESULTS.md, as texts; an empty first cell repeats the one above.

    It is the first below a line that begins with `under`.
    """
    lines = (ROOT / "RESULTS.md").read_text(encoding="utf-8").splitlines()
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


def test_the_column_in_the_results_is_that_of_its_table():
    measures = {"linear": "ours", "linear_standardised": "linear_standardised", "knn1": "knn1"}
    rows, committed = told_table("objective", "printed", *measures), table("taxonomy_ucla").set_index("objectives")
    assert [name for name, *_ in rows] == list(committed.index)
    for name, printed, *found in rows:
        row = committed.loc[name]
        assert float(printed) == row["published"]
        assert [text.split()[0] for text in found] == [f"{row[column]:.1f}" for column in measures.values()]
        deviation = "" if pd.isna(row["std"]) else f"{row['std']:.1f}"
        assert found[0].partition(" \N{PLUS-MINUS SIGN} ")[2] == deviation


def test_how_far_the_column_agrees_with_the_printed_one_is_that_of_its_table():
    trained = table("taxonomy_ucla").query("objectives != 'random'").set_index("objectives")
    others = trained.drop(["AE", "CD", "AE+CD", "AE+AD+CD"])
    ranks = [spearmanr(rows["ours"], rows["published"]).statistic for rows in (trained, others)]
    text = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    told = re.search(r"is (\S+) over fifteen objectives, and (\S+) over the eleven .*have (\d+) to (\d+) here", text)
    assert list(told.groups()[:2]) == [f"{value:.2f}" for value in ranks]
    assert list(told.groups()[2:]) == [f"{value:.0f}" for value in (others["ours"].min(), others["ours"].max())]
    highest = trained.loc[trained["published"] >= 82, "difference"]
    lower = -highest[highest < 0]
    told = re.search(r"Six of the seven objectives printed at 82 and more are lower here.*: by (\S+) to (\S+) points; "
                     r"CE\+AD\+CD is higher by (\S+)\. By a sign test p = (\S+) \(", text)
    assert (len(highest), len(lower)) == (7, 6) and "CE+AD+CD" not in lower
    chance = binomtest(len(lower), len(highest)).pvalue
    assert list(told.groups()) == [f"{lower.min():.1f}", f"{lower.max():.1f}", f"{highest.max():.1f}", f"{chance:.3f}"]


def test_how_far_entries_are_from_the_print_is_what_their_table_has():
    rows = table("taxonomy_ucla").set_index("objectives").query("n_seeds == 3 and objectives != 'random'")
    pooled = math.sqrt((rows.drop(["AE", "AE+CD"])["std"] ** 2).mean())
    apart = rows["difference"].drop(["AE", "AE+CD"]).abs() / (pooled * math.sqrt(4 / 3))
    text = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    told = re.search(r"Of the thirteen with three seeds four .*: AE\+AD\+CD by far, AE\+CE\+AD, CE\+AD and AE\+AD by "
                     r"(\S+), (\S+) and (\S+) times (\S+) ", text)
    expected = [*apart[["AE+CE+AD", "CE+AD", "AE+AD"]], pooled]
    assert [float(number) for number in told.groups()] == pytest.approx(expected, abs=0.0501)
    assert len(rows) == 13 and {*apart.index[apart > 2]} == {"AE+AD+CD", "AE+CE+AD", "CE+AD", "AE+AD"}


def test_the_rule_nearest_to_the_printed_order_is_that_of_its_table():
    rules = table("printed_column_ucla").query("objectives == 13")
    ordered = rules.sort_values("spearman", ascending=False)
    best, beside, last = ordered.iloc[0], ordered.iloc[1], rules[rules["rule"] == "epoch 150"].iloc[:2]
    assert (best["rule"], best["exchanged"], best["apart"]) == ("epoch 50", 1, 0)
    assert (beside["rule"], beside["exchanged"]) == ("epoch 50", 0)
    text = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    told = re.search(r"stopped at epoch 50, .* is (\S+) \(95 % over seeds: (\S+) to (\S+)\), RMSE (\S+) .* as printed "
                     r"(\S+) and (\S+) points.* seeds lie (\S+) points.* last epoch has (\S+) as printed and (\S+) "
                     r"exchanged\.", text)
    expected = [*best[["spearman", "spearman_low", "spearman_high", "rmse"]], *beside[["spearman", "rmse"]],
                best["deviation"], *last["spearman"]]
    assert [float(number) for number in told.groups()] == pytest.approx(expected, abs=0.0501)


ONCE = ("AD+CD", "AE+CE+AD+CD")  # NW-UCLA's of one version; all others are of two
AGAIN = sorted(set(table("taxonomy_ucla")["objectives"]) - set(ONCE))


def test_versions_in_the_results_are_those_of_the_cells():
    """The key of a cell is a hash of its version, among others."""
    cells = read_cells(FIGURES / "cells.csv").query("dataset == 'ucla'")
    for row in cells.itertuples():
        recipe = SkeletonRecipe.from_dict(json.loads(row.recipe))
        made = [Cell(row.study, recipe, row.seed, row.preset, "ucla", row.digest, version).key for version in range(9)]
        assert made.index(row.key) == row.version
    told = ("NW-UCLA's cells of the `paper` recipe (150 epochs) are of version 2, but for all by the recipe as "
            "it is except AD+CD and AE+CE+AD+CD, which are there in versions 2 and 3; its `quick` cells (30 epochs) "
            "are of version 1, but for AD and CE with three layers and one random initialisation of three layers, of "
            "version 2;")
    assert told in (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    paper, quick = (cells[cells["preset"] == preset] for preset in ("paper", "quick"))
    assert len(paper) + len(quick) == len(cells)
    fields = cells["recipe"].map(json.loads)
    again = fields.str["objectives"].isin(AGAIN) & (cells["changes"] == "{}")
    assert set(paper.loc[again[paper.index], "version"]) == {2, 3}
    assert set(paper.loc[~again[paper.index], "version"]) == {2}
    three_layers = fields[quick.index].str["layers"] == 3
    trained = three_layers & fields[quick.index].str["objectives"].isin(["AD", "CE"])
    assert set(quick.loc[trained, "version"]) == {2}
    others = quick[~trained].query("version == 2")
    assert fields[others.index].str["objectives"].tolist() == ["random"] and three_layers[others.index].all()


def test_what_the_results_say_of_the_curves_is_what_was_measured():
    curves = table("along_training_ucla").query("version == 3 and measure == 'linear'")
    values = curves.pivot(index="epoch", columns=["objectives", "seed"], values="value")
    first, second, third = (values["CD", seed] for seed in (0, 1, 2))
    both, alike, between = (values["AE+CD", seed] for seed in (0, 1, 2))
    held = [values["AE+AD+CD", seed] for seed in (0, 1, 2)]
    printed = table("taxonomy_ucla").set_index("objectives")["published"]
    text = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    told = re.search(r"CD has (\S+), (\S+) and (\S+) with three seeds where (\S+) is printed, AE\+CD (\S+), "
                     r"(\S+) and (\S+) where (\S+) is;.* CD's first seed climbs from (\S+) at epoch 10 to (\S+) at "
                     r"130, its second from (\S+) to (\S+) at 120, its third from (\S+) to (\S+) at 140. "
                     r"AE\+CD's first has (\S+) at epoch 10, (\S+) at 60, (\S+) at 140, and still rises; its second "
                     r"stays between (\S+) and (\S+), its third between (\S+) and (\S+). AE\+AD\+CD, printed with "
                     r"(\S+), has (\S+), (\S+) and (\S+) at the end \(81.3 in version 2\), and (\S+) or more",
                     text)
    assert list(values.index) == list(range(10, 151, 10)) and both.idxmax() == 150
    assert [seed.idxmax() for seed in (first, second, third)] == [130, 120, 140]
    expected = [*(seed.loc[150] for seed in (first, second, third)), printed["CD"]]
    expected += [*(seed.loc[150] for seed in (both, alike, between)), printed["AE+CD"]]
    expected += [value for seed in (first, second, third) for value in (seed.loc[10], seed.max())]
    expected += [*both.loc[[10, 60, 140]], alike.min(), alike.max(), between.min(), between.max()]
    expected += [printed["AE+AD+CD"]]
    expected += [*(seed.loc[150] for seed in held), min(seed.min() for seed in held)]
    assert [float(number) for number in told.groups()] == pytest.approx(expected, abs=0.0501)


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
    committed = table("encoder_collapse_ucla").set_index(["objectives", "layers"])
    columns = ("layers", "printed", "linear", "linear_standardised", "standardised, at random")
    rows = told_table(*columns)
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5"]
    for layers, *found in rows:
        trained, random = committed.loc[("AE", int(layers))], committed.loc[("random", int(layers))]
        standardised = (trained["linear_standardised"], random["linear_standardised"])
        assert found == [f"{trained['published']:.2f}", *(f"{value:.1f}" for value in (trained["ours"], *standardised))]


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
    in_words |= {(name, "version=2") for name in AGAIN}
    assert set(told) == set(zip(committed["objectives"], committed["departures"], strict=True)) - in_words


def test_approaches_in_the_results_are_those_of_their_table():
    committed = table("cross_modal_synthetic")
    keyed = committed.set_index(["approach", "target"])
    found = {key: f"{row['ours']:.1f} \N{PLUS-MINUS SIGN} {row['std']:.1f}" for key, row in keyed.iterrows()}
    assert (committed["n_seeds"] == 3).all() and (committed["preset"] == "quick").all()
    rows = told_table("approach", "pictures", "sound")
    assert [name for name, *_ in rows] == list(dict.fromkeys(committed["approach"]))
    for name, *numbers in rows:
        assert numbers == [found[name, "synthetic_video"], found[name, "synthetic_audio"]]


def test_grids_of_characters_in_the_results_are_those_of_their_table():
    keyed = table("mutual_information_multiomniglot").set_index(["characters", "method"])
    assert (keyed["n_seeds"] == 2).all() and (keyed["preset"] == "quick").all() and len(keyed) == 27
    assert (keyed.loc[[1, 2], "ours"] >= 95).all()  # less would be undertrained
    methods = ("smoco", "xmoco", "cmacc")
    for characters, *numbers in told_table("characters", "SMoCo", "XMoCo", "CM-ACC", "never seen: SMoCo", "XMoCo",
                                           "CM-ACC"):
        rows = [keyed.loc[(int(characters), method)] for method in methods]
        seen = [f"{row['ours']:.1f} \N{PLUS-MINUS SIGN} {row['std']:.1f}" for row in rows]
        assert numbers == [*seen, *(f"{row['linear_held_out']:.1f}" for row in rows)]


def test_keys_as_old_as_their_pool_in_the_results_are_those_of_the_cells():
    exported = read_cells(FIGURES / "cells.csv").query("study == 'clips' and dataset == 'synthetic'")
    pooled = exported[exported["changes"].map(json.loads).map(lambda changes: changes.get("renewed") is False)]
    results = pd.DataFrame(map(json.loads, pooled["metrics"]))
    told = re.search(r"three seeds: (\S+) \S (\S+) and (\S+) \S (\S+) % on pictures", (ROOT / "RESULTS.md").read_text())
    targets = results[["synthetic_video", "synthetic_audio"]]
    expected = [number for target in targets for number in (targets[target].mean(), targets[target].std())]
    assert len(results) == 3 and list(told.groups()) == [f"{number:.1f}" for number in expected]


def spread(row):
    return f"{row['ours']:.1f} \N{PLUS-MINUS SIGN} {row['std']:.1f}"


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
