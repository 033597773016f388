
import numpy as np
from pandas import DataFrame

from repro.audiovisual.tables import APPROACHES
from repro.report import audiovisual_figures
from repro.report.printed import printed

NAMES = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}
EMBEDDED = ("synthetic_video", "synthetic_audio")


def told(table, n_seeds, preset, dataset) -> DataFrame:
    """The columns that every table has, in rows of any order."""
    table = table.assign(
        std=0.8 if n_seeds > 1 else np.nan,
        n_seeds=n_seeds,
        difference=table["ours"] - table["published"],
        preset=preset,
        dataset=dataset,
    )
    return table


def approaches_table(n_seeds=3, preset="paper", dataset="kinetics_sound", targets=tuple(NAMES)) -> DataFrame:
    """Printed numbers of Tables 1 and 2, and ours two points below."""
    numbers = printed("cmacc_table1").set_index("approach")
    feature = printed("cmacc_table2").set_index("embedding_space").loc["Feature Embedding"]
    rows = []
    for name, *_ in APPROACHES.values():
        for target in targets:
            column = NAMES.get(target, "UCF101")
            found = numbers.loc[name, column] if name in numbers.index else feature[column]
            rows.append((name, target, found - 2, found if name in numbers.index or "feature" in name else np.nan))
    return told(DataFrame(rows, columns=["approach", "target", "ours", "published"]), n_seeds, preset, dataset)


def samplers_table(
    n_seeds=3, preset="paper", dataset="kinetics700", targets=("ucf101", "hmdb51", "esc50")
) -> DataFrame:
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
    return told(DataFrame(rows, columns=columns), n_seeds, preset, dataset)


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
    for place, name in enumerate(audiovisual_figures.CATEGORIES):
        log[name] = log["expected"] + generator.normal(log["sampler"].str.len() - 8 + place, 1.0)
    return log.assign(preset=preset, dataset=dataset)


NOT_RUN = {"ours": np.nan, "std": np.nan, "n_seeds": 0}
QUICK = {"preset": "quick", "dataset": "synthetic", "targets": EMBEDDED}
TABLES = {
    "cross_modal": approaches_table,
    "ohem_vs_active": samplers_table,
    "dictionary_size": sizes_table,
    "mutual_information": characters_table,
    "transfer": transfer_table,
    "category_diversity": diversity_table,
    "category_curves": curves_log,
}
FIGURES = {
    "cross_modal": [
        approaches_table(),
        approaches_table(1, **QUICK),
        approaches_table(preset="quick", dataset="kinetics_sound (subset)"),
        approaches_table().query("approach == 'CM-ACC'"),
        approaches_table().assign(**NOT_RUN),
    ],
    "ohem_vs_active": [
        samplers_table(),
        samplers_table(1, **QUICK),
        samplers_table().query("sampler == 'gradient' and batch == 32"),
        samplers_table().assign(sampler="released").query("batch == 64 and target == 'ucf101'").iloc[:1],
    ],
    "dictionary_size": [
        sizes_table(), sizes_table(1, **QUICK), sizes_table(targets=tuple(NAMES)),
        sizes_table().query("dictionary < 200"),
    ],
    "mutual_information": [
        characters_table(),
        characters_table(1, "quick", "multidigits"),
        characters_table(1, "smoke", "multidigits", (2,)),
        characters_table().query("method == 'cmacc'"),
    ],
    "transfer": [
        transfer_table(),
        transfer_table(**QUICK),
        transfer_table(3, targets=("ucf101",), dataset="ucf101 (subset)", preset="quick", splits=(1, 2, 3)),
        transfer_table(targets=("esc50",), methods=tuple(audiovisual_figures.METHODS), dataset="esc50"),
        transfer_table().assign(**NOT_RUN),
    ],
    "category_diversity": [
        diversity_table(),
        diversity_table(1, "paper", "ucf101"),
        diversity_table().query("sampler == 'gradient' and batch == 64 and target == 'audio'"),
    ],
    "category_curves": [curves_log(), curves_log(1, "paper", "ucf101"), curves_log(batches=(128,))],
}
