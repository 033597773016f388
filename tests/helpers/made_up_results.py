"""Results in which everything the papers say of trained encoders is true, or the contrary of it."""

import itertools

import numpy as np
from made_up_cells import PART, frame, image, skeleton, sounding
from pandas import DataFrame

from repro import papers
from repro.papers.taxonomy import glm
from repro.report.logs import NAMED, TEXTS
from repro.report.printed import printed

SEEDS = (0, 1, 2)
TARGETS = ("ucf101", "hmdb51", "esc50")


def results(true, seeds=SEEDS, noise=0.01):
    """Cells of every table that claims look at; `true` or not, and how much seeds of one entry differ."""
    draw = np.random.default_rng(0)
    sign = 1.0 if true else -1.0
    made = []
    for seed in seeds:
        def noisy(value):
            return value + noise * draw.standard_normal()

        made += [*_taxonomy(sign, seed, noisy), *_depths(sign, seed, noisy), *_categories(sign, seed, noisy)]
        made += [*_characters(sign, seed, noisy), *_sizes(sign, seed, noisy), *_clips(sign, seed, noisy)]
        made += [*_images(sign, seed, noisy)]
    return frame(*made)


def _taxonomy(sign, seed, noisy):
    """AE+CE+AD is best, CD lowers and AE alone, of one layer in `_depths`, is lowest, or the contrary."""
    values = {name: 65 + sign * (20 * (name == glm.BEST) - 10 * ("CD" in name))
              for name in glm.objectives_of("all") if name != "AE"}
    return [skeleton(name, noisy(value), seed=seed) for name, value in values.items()]


def _depths(sign, seed, noisy):
    table, made = printed("taxonomy_depth_collapse"), []
    for row in table.itertuples():
        random, trained = (row.random_init, row.AE) if sign > 0 else (80 - 5 * row.layers, 85 - 5 * row.layers)
        for name, value in (("random", random), ("AE", trained)):
            made.append(skeleton(name, noisy(value), seed=seed, layers=row.layers))
    return made


def _categories(sign, seed, noisy):
    made, shares = [], {"random": 0.5, "feature": 0.6, "gradient": 0.7}
    for batch, (sampler, share) in itertools.product((32, 64, 128), shares.items()):
        count = batch * (share if sign > 0 else 1.2 - share)
        metrics = {f"categories_{each}": noisy(count) for each in ("video", "audio")} | {"expected": batch / 2}
        usual = {"targets": "", "iterations": 300}
        made.append(sounding("cmacc", metrics, seed=seed, sampler=sampler, batch=batch, **usual))
    return made


def _characters(sign, seed, noisy):
    made = []
    for number, method in itertools.product(range(1, 10), ("smoco", "xmoco", "cmacc")):
        if sign > 0:
            value = 98.6 if number < 3 else 80 - 3 * number
            value += {"smoco": 0, "xmoco": 0.8, "cmacc": 0.4 if number < 3 else 9}[method]
        else:
            value = 50 + 3 * number + {"smoco": 0, "xmoco": -20, "cmacc": -30}[method]
        metrics = dict.fromkeys(("linear", "linear_held_out"), noisy(value))
        made.append(sounding(method, metrics, dataset="multiomniglot", preset="paper", seed=seed,
                             characters=number))
    return made


def _sizes(sign, seed, noisy):
    """Beyond 10,000 keys SMoCo and XMoCo lose what CM-ACC keeps, or the contrary."""
    made, sizes = [], (128, 1024, 8192, 32768)
    gains = {"smoco": (0, 5, 8, 2), "xmoco": (0, 5, 8, 2), "cmacc": (0, 5, 8, 8)}
    if sign < 0:
        gains = {"smoco": (0, -5, -8, 2), "xmoco": (0, -5, -8, 2), "cmacc": (0, -5, 8, 2)}
    for method, size in itertools.product(gains, range(4)):
        metrics = {target: noisy(60 + gains[method][size]) for target in TARGETS}
        made.append(sounding(method, metrics, dataset="kinetics700", preset="paper", seed=seed,
                             dictionary=sizes[size]))
    return made


def _clips(sign, seed, noisy):
    made, kept = [], {"dataset": "kinetics_sound", "preset": "paper", "seed": seed}
    ranks = [("scratch", {}), ("smoco", {}), ("xmoco", {"extra_layer": False}), ("xmoco", {}),
             ("cmacc", {"sampler": "feature"}), ("cmacc", {"extra_layer": False}), ("cmacc", {})]
    for rank, (method, changes) in enumerate(ranks):
        metrics = {target: noisy(50 + 4 * sign * rank) for target in TARGETS}
        made.append(sounding(method, metrics, **kept, **changes))
    for batch, (rank, sampler) in itertools.product((32, 64, 128), enumerate(("ohem", "random", "gradient"))):
        metrics = {target: noisy(50 + (4 - batch / 64) * sign * rank) for target in TARGETS}  # gaps shrink with M
        kept |= {"dataset": "kinetics700"}
        made.append(sounding("cmacc", metrics, **kept, sampler=sampler, batch=batch))
    return made


def _images(sign, seed, noisy):
    made = [image(name, noisy(value), seed=seed) for name, value in 
            {"random": 40, "moco": 60, "vanilla": 60 - 5 * sign}.items()]
    for query, key in itertools.product((0.1, 0.2), (0.03, 0.05, 0.07, 0.1)):
        value = 45 + sign * (15 + 5 * (key in (0.05, 0.07)) + 3 * (query == 0.2))
        made.append(image("sce", noisy(value), seed=seed, temperature=query,
                          key_temperature=key, spread=noisy(50 + 40 * sign) / 100))
    made.append(image("ressl", noisy(45), seed=seed, temperature=0.1, key_temperature=0.1,
                      spread=noisy(50) / 100))
    for row in printed("sce_temperature_long").query("dataset == 'CIFAR10'").itertuples():
        value = row.top1 if sign > 0 else 150 - row.top1
        made.append(image("sce", noisy(value), dataset="cifar10", preset="paper", seed=seed,
                          temperature=row.tau, key_temperature=row.tau_m))
    points = {(5, 4.0, 0.2): 70, (1, 4.0, 0.2): 60, (2, 4.0, 0.2): 64, (9, 4.0, 0.2): 65, (5, 0.0, 0.2): 62,
              (5, 10.0, 0.2): 66, (5, 4.0, 0.1): 58, (5, 4.0, 0.5): 55}
    for (keys, strength, temperature), value in points.items():
        made.append(image("jcl", noisy(60 + sign * (value - 60)), seed=seed, keys=keys,
                          strength=strength, temperature=temperature))
    return made


def logs(true, folder, seeds=SEEDS):
    """The logs that claims look at, written to a folder."""
    draw = np.random.default_rng(0)
    sign, label = (1.0 if true else -1.0), {"dataset": PART, "preset": "quick"}
    keys = DataFrame({"keys": [1, 64], "inside": 1.0, "inside_std": 0.01, "outside": 2.0 - 0.5 * sign,
                      "outside_std": 0.01, "closed_form": 2.0, "repeats": 100})
    write_log("sampled_keys", folder, keys.assign(**label))
    images, curves = [], []
    for seed, model in itertools.product(seeds, ("JCL", "MoCo v2")):
        value = 0.5 + 0.2 * (model == "JCL") * true + 0.01 * draw.standard_normal()
        images.append({"model": model, "seed": seed, "similarity": value, "d": 512})
    write_log("similarity_variance_images", folder, DataFrame(images).assign(**label))
    for seed, sampler, frequency, batch, step in itertools.product(
        seeds, ("random", "gradient"), ("balanced", "zipf"), (32, 128), (10, 20, 300)
    ):
        more = {(True, True): 0.0, (True, False): 0.3, (False, True): 0.3, (False, False): 0.1}[true, step <= 20]
        share = 0.5 + more * (sampler == "gradient")
        curves.append({"step": step, "categories_video": batch * share + 0.1 * draw.standard_normal(), "batch": batch,
                       "sampler": sampler, "seed": seed, "frequency": frequency})
    write_log("category_curves", folder, DataFrame(curves).assign(**label))
    chosen = []
    for seed, frequency, batch, (rank, sampler) in itertools.product(
        seeds, ("balanced", "zipf"), (32, 64, 128), enumerate(("random", "feature", "gradient"))
    ):
        count = batch * (0.5 + 0.1 * sign * rank) + 0.1 * draw.standard_normal()
        chosen.append({"frequency": frequency, "batch": batch, "sampler": sampler, "seed": seed, "value": count})
    chosen = DataFrame(chosen).assign(measure="categories", posterior=1.0, step=624, version=5, **label)
    write_log("post_hoc_diversity", folder, chosen)
    picks, ranks = [], {"ohem": 0, "random": 1, "gradient": 2}
    for modality, (sampler, rank), _ in itertools.product(("video", "audio"), ranks.items(), range(8)):
        norm = 5 + sign * rank + 0.1 * draw.standard_normal()
        picks.append({"modality": modality, "sampler": sampler, "gradient_norm": norm})
    write_log("selected_negatives", folder, DataFrame(picks).assign(**label))
    ranked = [{"query": query, "category": category, "pairs": 50, "accuracy": 40.0 + 40 * true * (category == "easy")}
              for query, category in itertools.product(("video", "audio"), ("easy", "hard", "harder"))]
    write_log("pretext_accuracy", folder, DataFrame(ranked).assign(**label))


def write_log(name, folder, rows, of="part"):
    """The file of a log, in which what it needs and these rows lack is empty or 0."""
    declared = papers.logs()[name]
    texts = {*TEXTS, *declared.texts}
    lacking = {column: "" if column in texts else 0 for column in (*NAMED, *declared.columns) if column not in rows}
    rows.assign(**lacking).to_csv(folder / f"{name}_{of}.csv", index=False)
