"""What the golden files are recorded of: requests of tables, and small trainings."""

import itertools
from collections.abc import Iterator
from typing import Any

SKELETON, IMAGE = ("taxonomy", "encoder_collapse"), (
    "image_methods", "temperature_grid", "positive_keys", "similarity_variance",
)
AUDIOVISUAL = (
    "cross_modal", "ohem_vs_active", "dictionary_size", "mutual_information", "transfer", "category_diversity",
)
BUNDLED = {  # the data sets that come with the package, by table
    **dict.fromkeys(SKELETON, ("synthetic",)),
    **dict.fromkeys(IMAGE, ("digits",)),
    **dict.fromkeys(AUDIOVISUAL, ("synthetic", "multidigits")),
    "mutual_information": ("multidigits",),
}
VARIANTS = {
    "taxonomy": (
        "sum_of_squares", "denoising", "frozen_noise", "mlp_head", "bidirectional", "ema_head_twice",
    ),
    **dict.fromkeys(IMAGE, (
        "swapped_views", "zero_logit", "released_projection", "ghost_groups", "constant_strength", "four_keys",
    )),
    **dict.fromkeys(AUDIOVISUAL, (
        "unit_length", "renewed_keys", "released_selection", "released_momentum", "own_kept", "whole_batch",
        "any_length", "pooled_keys",
    )),
}
RECORDED = {  # every method of a study, and its data sets
    "skeleton": (
        ("synthetic", "ucla", "ntu"),
        ("random", "AE", "CE", "AE+CE", "AD", "AE+AD", "CE+AD", "AE+CE+AD", "CD", "AE+CD", "CE+CD", "AE+CE+CD",
         "AD+CD", "AE+AD+CD", "CE+AD+CD", "AE+CE+AD+CD"),
    ),
    "image": (
        ("digits", "cifar10", "cifar100", "stl10", "tiny_imagenet", "imagenet100", "imagenet"),
        ("random", "supervised", "moco", "ressl", "sce", "jcl", "vanilla"),
    ),
    "audiovisual": (
        ("synthetic", "multidigits", "multiomniglot", "kinetics_sound", "kinetics700", "audioset", "ucf101", "hmdb51",
         "esc50"),
        ("scratch", "supervised", "smoco", "xmoco", "cmacc"),
    ),
}
PRESETS = ("paper", "quick", "smoke")
ALL_TARGETS = ["ucf101,hmdb51,esc50"]


def request(
    table: str, dataset: str, preset: str = "quick", *, variant: str = "none", seeds: tuple[int, ...] = (0,),
    label: str | None = None, **fields: Any,
) -> dict[str, Any]:
    """What is asked of a table.

    Args:
        table, dataset, preset, variant, seeds: of it.
        label: what the data set is called in its place, a part of it perhaps; its files are not read then.
        fields: lists of values, which are swept, by the name of a recipe's field.
    """
    listed = {name: value if isinstance(value, list) else [value] for name, value in fields.items()}
    return {"table": table, "dataset": dataset, "label": label, "preset": preset, "variant": variant,
            "seeds": [*seeds], "fields": listed}


def requests() -> Iterator[dict[str, Any]]:
    """The requests whose cells are recorded; tables refuse some of the variants."""
    for table, datasets in BUNDLED.items():
        for dataset, preset in itertools.product(datasets, PRESETS):
            # Of the embedded clips there are too few for the paper's dictionary: refused once they are read.
            label = dataset if (dataset, preset) == ("synthetic", "paper") and table in AUDIOVISUAL else None
            yield request(table, dataset, preset, label=label)
            few = {"characters": 2} if table == "mutual_information" else {}
            for variant in VARIANTS.get(table, ()):
                yield request(table, dataset, preset, variant=variant, label=label, **few)
        yield request(table, datasets[0], "auto", seeds=(0, 1))
    yield from swept()
    for asked_for in compared():
        yield asked_for | {"seeds": [0]}


def swept() -> Iterator[dict[str, Any]]:
    """Requests on bundled data that set fields of recipes."""
    for fields in (
        {"epochs": [10, 30]}, {"layers": 3}, {"units": 64}, {"pipeline": "default"},
        {"ad_weight": [25, 50]}, {"objectives": ["CE", "AD", "AE+CE"], "ad_weight": [25, 50]},
        {"ad_loss": "squared", "ad_weight": 10}, {"ae_weight": 10, "ce_weight": 2.0, "cd_weight": 0.5},
        {"decoder_input": ["readout", "embedding"]}, {"td_crop": [20, None]}, {"select": "best_on_test"},
        {"select": "best_on_test", "select_every": 2}, {"precision": "float32"}, {"temperature": [0.05, 0.1]},
        {"sequence_dictionary": 64, "dictionary": 256}, {"flip": 0, "shear": 0.5}, {"bidirectional": True},
        {"probe_every": 2}, {"probe_standardised_rate": 0.2}, {"momentum": [0.9, 0.99], "learning_rate": 0.01},
    ):
        yield request("taxonomy", "synthetic", **fields)
    yield request("taxonomy", "synthetic", variant="sum_of_squares", ad_weight=[25, 50])
    yield request("taxonomy", "synthetic", variant="frozen_noise", objectives=["AE+CE+AD+CD", "CE"], layers=[1, 3])
    yield request("encoder_collapse", "synthetic", layers=[2, 6], objectives=["AE"])
    yield request("encoder_collapse", "synthetic", epochs=[10, 30], units=64)
    for method in ("vanilla", "sce", "random"):
        yield request("image_methods", "digits", method=method)
    for fields in (
        {"epochs": [10, 30]}, {"temperature": [0.1, 0.2]}, {"key_temperature": [0.05, 0.07]}, {"keys": [2, 4]},
        {"strength": 2.0}, {"weight": [0, 1]}, {"momentum": [0.99, 0.999]}, {"precision": ["auto", "float32"]},
        {"precision": "bfloat16"}, {"dictionary": 256, "batch": 64}, {"select": "best_on_test"}, {"groups": [1, 4]},
        {"query_view": ["strong", "weak"]}, {"probe_view": ["shifted", "crop"]}, {"probe_padding": 2},
        {"square": True}, {"trunk": "resnet50"}, {"head": "moco_v2", "ramp": False},
    ):
        yield request("image_methods", "digits", **fields)
    yield request("image_methods", "digits", method=["sce", "moco"], variant="zero_logit", temperature=[0.1, 0.2])
    yield request("temperature_grid", "digits", temperature=0.3, key_temperature=[0.02, 0.3])
    yield request("temperature_grid", "digits", temperature=[0.1, 0.5], weight=[0.5, 0.7], epochs=5)
    for fields in ({"keys": [1, 3]}, {"strength": [0, 1]}, {"temperature": [0.07, 0.4]}, {"ramp": False}, {"epochs": 5},
                   {"keys": 4, "strength": 2.0, "temperature": 0.3}):
        yield request("positive_keys", "digits", **fields)
    yield request("similarity_variance", "digits", epochs=[5, 10], momentum=0.999)
    yield from _swept_pairs()


def _swept_pairs() -> Iterator[dict[str, Any]]:
    """Those of the tables of CM-ACC."""
    for dataset in ("synthetic", "multidigits"):
        for method, extra, sampler in (
            ("xmoco", False, "gradient"), ("smoco", False, "gradient"), ("cmacc", True, "released"),
            ("cmacc", True, "feature"), ("scratch", True, "gradient"),
        ):
            yield request("cross_modal", dataset, method=method, extra_layer=extra, sampler=sampler)
        for fields in ({"iterations": [10, 20]}, {"dictionary": 512}, {"temperature": [0.07, 0.7]}, {"groups": [1, 2]},
                       {"momentum": 0.9}, {"embedding": 64}, {"posterior_temperature": [0.1, 1.0]}, {"batch": 64}):
            yield request("cross_modal", dataset, **fields)
        yield request("ohem_vs_active", dataset, sampler=["feature", "released"], batch=[16, 32])
        yield request("ohem_vs_active", dataset, "paper", batch=[16, 64])
        yield request("dictionary_size", dataset, dictionary=[256, 512], method=["smoco", "cmacc"])
        yield request("category_diversity", dataset, sampler=["random", "gradient"], batch=64)
        yield request("category_diversity", dataset, iterations=50)
        yield request("transfer", dataset, method=["scratch", "supervised", "smoco", "xmoco", "cmacc"])
        yield request("ohem_vs_active", dataset, variant="any_length", sampler="gradient", pool=1536)
    yield request("cross_modal", "synthetic", targets=["synthetic_audio"])
    yield request("cross_modal", "synthetic", finetune_epochs=5, redundancy=[0, 0.5], greyscale=0)
    yield request("transfer", "synthetic", video_trunk="r3d18", targets=["synthetic_video"], split=1)
    yield request("ohem_vs_active", "multidigits", dictionary=[256, 1024], characters=3)
    for fields in (
        {"characters": [1, 9]}, {"characters": 3, "pairs": [1000, 5000]}, {"characters": 2, "augmented": True},
        {"characters": 2, "redrawn": True}, {"characters": 2, "method": ["smoco", "scratch"], "view": "drawing"},
        {"characters": 2, "categories": [0, 4]}, {"characters": 2, "method": ["scratch", "supervised"]},
    ):
        yield request("mutual_information", "multidigits", **fields)
    for fields in ({"frequency": "zipf"}, {"categories": 4, "characters": 2}, {"distinct": 10, "frequency": "zipf"}):
        yield request("category_diversity", "multidigits", **fields)


def compared() -> Iterator[dict[str, Any]]:
    """Requests on real data, which are not read: their cells, and made-up results of them beside printed numbers."""
    def real(table: str, dataset: str, preset: str = "paper", *, label: str = "", **fields: Any) -> dict[str, Any]:
        return request(table, dataset, preset, label=label or dataset, seeds=(0, 1), **fields)

    for dataset in ("ucla", "ntu"):
        for fields in ({}, {"layers": 3}, {"units": 1024}, {"objectives": ["AE", "CE"], "epochs": 10}):
            yield real("taxonomy", dataset, **fields)
        yield real("encoder_collapse", dataset)
    yield real("taxonomy", "ucla", "quick")
    yield real("taxonomy", "ntu", protocol=["xview"])
    yield real("taxonomy", "ntu", pipeline="authors")
    yield real("taxonomy", "ucla", variant="uncropped")
    yield real("taxonomy", "ntu", subset=True, label="ntu (subset)")
    yield real("encoder_collapse", "ucla", units=256)
    for dataset in ("cifar10", "cifar100", "stl10", "tiny_imagenet"):
        yield real("image_methods", dataset)
        yield real("temperature_grid", dataset)
    for table in IMAGE:
        yield real(table, "imagenet100")
        yield real(table, "imagenet")
        yield real(table, "cifar10", "quick", subset=True, label="cifar10 (part.npz)")
    yield real("temperature_grid", "cifar10", epochs=100)
    yield real("temperature_grid", "cifar10", variant="zero_logit")
    for dataset in ("kinetics_sound", "kinetics700", "ucf101"):
        targets = {} if dataset != "ucf101" else {"targets": ["esc50"]}
        for table in ("cross_modal", "ohem_vs_active"):
            yield real(table, dataset, **targets)
    yield real("cross_modal", "kinetics_sound", "quick")
    yield real("ohem_vs_active", "kinetics700", "quick")
    yield real("dictionary_size", "kinetics700")
    yield real("dictionary_size", "kinetics_sound", "quick")
    yield real("category_diversity", "ucf101")
    yield real("cross_modal", "kinetics_sound", "paper", method="cmacc", extra_layer=True, sampler="released")
    yield real("cross_modal", "kinetics_sound", epochs=100)
    yield real("cross_modal", "kinetics_sound", targets=["esc50,esc10"])
    yield real("cross_modal", "ucf101", "smoke", subset=True, targets=["ucf101"], label="ucf101 (subset)")
    yield real("ohem_vs_active", "kinetics_sound", variant="unit_length")
    methods = ["scratch", "supervised", "smoco", "xmoco", "cmacc"]
    for dataset in ("kinetics_sound", "kinetics700", "audioset", "ucf101"):
        targets = {"targets": ALL_TARGETS} if dataset != "ucf101" else {"targets": ["hmdb51,esc50"]}
        yield real("transfer", dataset, method=methods, video_trunk=["r3d18", "r2plus1d18"], **targets)
    yield real("transfer", "kinetics700", clips=0)
    yield real("transfer", "kinetics_sound", targets=["ucf101"], split=[1, 2, 3])
    yield real("transfer", "ucf101", targets=["ucf101"], split=[1, 2, 3])
    yield real("transfer", "hmdb51", targets=["hmdb51"], split=[1, 2])
    yield real("transfer", "esc50")
    yield real("mutual_information", "multiomniglot")
    yield real("cross_modal", "multiomniglot")


def laid_out() -> Iterator[dict[str, Any]]:
    """Requests whose rows are recorded: all tables on bundled data, some with departures, and those on real data."""
    for table, datasets in BUNDLED.items():
        for dataset in datasets:
            yield request(table, dataset, seeds=(0, 1))
    yield request("taxonomy", "synthetic", seeds=(0, 1), objectives=["AE", "CD"], layers=[1, 3], epochs=[6, 10])
    yield request("taxonomy", "synthetic", seeds=(0, 1), variant="sum_of_squares", ad_weight=[25, 50])
    yield request("taxonomy", "synthetic", seeds=(0, 1), variant="uncropped", label="synthetic", objectives="CD")
    yield request("taxonomy", "synthetic", seeds=(0, 1), objectives="CD", td_crop=[20, None])
    yield request("image_methods", "digits", seeds=(0, 1), variant="ghost_groups")
    yield request("temperature_grid", "digits", seeds=(0, 1), weight=[0.5, 0.7])
    yield request("cross_modal", "synthetic", seeds=(0, 1), variant="any_length")
    yield request("ohem_vs_active", "multidigits", seeds=(0, 1), dictionary=[1024, 2048], characters=3)
    yield request("transfer", "synthetic", seeds=(0, 1), method=["scratch", "cmacc"], split=[0, 1])
    yield from compared()


def trainings() -> Iterator[dict[str, Any]]:
    """Small trainings: one of every method of every study, and one of every variant that changes what is trained."""
    tiny: dict[str, Any] = {"precision": "float32", "epochs": 1, "probe_every": 0, "batch": 512}
    for method in RECORDED["skeleton"][1]:
        yield training("skeleton", "synthetic", method, **tiny)
    for method, fields in (
        ("AD", {"ad_loss": "squared", "ad_weight": 25.0}), ("AD", {"ad_input": "augmented"}),
        ("CD", {"td_queue": "frozen_noise"}), ("CD", {"td_crop": 20}), ("CE", {"head": "mlp", "ema_head_twice": True}),
        ("AE", {"bidirectional": True, "layers": 2}), ("CD", {"decoder_input": "embedding"}),
        ("CE", {"select": "best_on_test", "select_every": 1, "epochs": 2, "probe_every": 1}),
    ):
        yield training("skeleton", "synthetic", method, **tiny | fields)
    tiny = {"precision": "float32", "small": False, "batch": 512}
    for method in RECORDED["image"][1]:
        yield training("image", "digits", method, **tiny)
    for method, fields in (
        ("sce", {"query_view": "weak", "key_view": "strong", "projection": 128}), ("sce", {"masked_positive": False}),
        ("moco", {"groups": 8}), ("jcl", {"ramp": False}), ("jcl", {"keys": 4}),
        ("ressl", {"probe_view": "shifted", "select": "best_on_test"}),
    ):
        yield training("image", "digits", method, **tiny | fields)
    tiny = {"dictionary": 64, "pool": 128, "targets": ""}
    for method in ("supervised", "smoco", "xmoco", "cmacc"):
        yield training("audiovisual", "synthetic", method, **tiny)
    yield training("audiovisual", "synthetic", "scratch")
    yield training("audiovisual", "synthetic", "xmoco", **tiny | {"extra_layer": False, "own_excluded": False})
    for fields in (
        {"sampler": "feature"}, {"sampler": "random"}, {"sampler": "ohem"}, {"sampler": "released"}, {"groups": 4},
        {"normalised": False, "temperature": 0.7}, {"renewed": False}, {"momentum": 0.9},
    ):
        yield training("audiovisual", "synthetic", "cmacc", **tiny | fields)
    tiny = {"dictionary": 64, "pool": 128, "pairs": 256, "characters": 1}
    yield training("audiovisual", "multidigits", "smoco", **tiny | {"augmented": True})
    yield training("audiovisual", "multidigits", "cmacc", **tiny | {"characters": 2, "redrawn": True})


def training(study: str, dataset: str, method: str, **fields: Any) -> dict[str, Any]:
    """A training of a study's smoke preset, with some fields changed."""
    tiny = study == "image" and method != "random"  # a ResNet-18 takes seconds
    return {"study": study, "dataset": dataset, "method": method, "seed": 0, "tiny_trunk": tiny, "fields": fields}
