"""Recipes of the image papers: the data set's paper fixes network and optimiser, the method objective and views.

From top to bottom: the values of data sets, the methods, the recipe, its presets, the study. Another method is one more
`Method`, and its loss an objective of `repro.contrast` or a function of `pretrain`. Recipes name what needs torch, and
import none of it.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from repro.data import manifest
from repro.image import DATASETS, HEADS, TRUNKS
from repro.recipe import Recipe, Values, choose, setting
from repro.table import Lazy, Study

VERSION = 2  # of the training; raise when a change alters the numbers of an unchanged recipe
EVALUATION = 1  # raise when `repro.image.study.measure` measures more, or otherwise

VIEWS = {name: Lazy("repro.image.augment", name) for name in ("strong", "weak")}  # functions there
PROBE_VIEWS = ("shifted", "crop", "centred")
TOO_SMALL = 16  # pixels of images, for the stem for large ones
SCE, SCE_CODE = "SCE supplement", "SCE, released code, resnet18_cifar10.yaml"
JCL, JCL_CODE = "JCL supplement", "JCL, released code"
MOCO, RESSL_CODE = "MoCo v2, released code", "ReSSL, released code"

BEST: dict[str, tuple[float, float]] = {  # SCE's best temperatures; other data sets take those of the released code
    "cifar10": (0.2, 0.10),
    "cifar100": (0.1, 0.08),
    "stl10": (0.1, 0.04),
    "tiny_imagenet": (0.1, 0.07),
}

MEDIUM: Values = {
    "dictionary": (16384, SCE),
    "momentum": (0.996, SCE),
    "probe_padding": (0, f"{SCE}, section D, which states padding for small sets alone"),
}
ABLATION: Values = {
    "trunk": ("resnet18", JCL),
    "small": (False, JCL),
    "head": ("moco_v2", f"{JCL_CODE}, that of MoCo v2"),
    "projection": (128, f"{JCL_CODE}, that of MoCo v2"),
    "groups": (8, f"{JCL_CODE}: eight processes normalise their own samples"),
    "size": (224, JCL_CODE),
    "resize": (256, f"{JCL_CODE}; {SCE}, section D"),
    "square": (True, f"{SCE}, section D: 256 x 256; the released codes keep the proportions"),
    "dictionary": (65536, JCL),
    "momentum": (0.999, JCL),
    "epochs": (100, JCL),
    "batch": (128, JCL),
    "learning_rate": (0.1, JCL),
    "warmup": (0, JCL_CODE),
    "schedule": ("epoch", JCL_CODE),
    "sgd_momentum": (0.9, JCL),
    "weight_decay": (1e-4, JCL),
    "probe_view": ("crop", JCL_CODE),
    "probe_epochs": (100, JCL),
    "probe_batch": (256, JCL),
    "probe_learning_rate": (10.0, JCL),
}
DATA: dict[str, Values] = {  # where the recipe of one of the papers' data sets leaves that of CIFAR-10
    "cifar10": {},
    "cifar100": {},
    "stl10": MEDIUM | {"size": (96, SCE), "resize": (96, SCE)},
    "tiny_imagenet": MEDIUM | {"size": (64, SCE), "resize": (64, SCE)},
    "imagenet100": ABLATION,
    "imagenet": ABLATION
    | {
        "trunk": ("resnet50", JCL_CODE),
        "epochs": (200, JCL_CODE),
        "batch": (256, JCL),
        "learning_rate": (0.03, f"{JCL_CODE}; its text is said to have 0.06"),
        "probe_learning_rate": (30.0, JCL_CODE),
    },
}

Loss = Callable[[Any, Any], Any]  # of a `pretrain.Batch` and a recipe: the scalar mean over the batch
OBJECTIVES = "repro.contrast.objectives"
cross_entropy, jcl = Lazy("torch.nn.functional", "cross_entropy"), Lazy(OBJECTIVES, "jcl")


def objective(name: str, keys: str, *settings: str) -> Loss:
    """The loss that is an objective of that name: of queries, "key" or "keys", the dictionary, and fields."""
    compute = Lazy(OBJECTIVES, name)
    return lambda batch, recipe: compute(
        batch.query, getattr(batch, keys), batch.negatives, *(getattr(recipe, setting) for setting in settings)
    )


info_nce, ceil = objective("info_nce", "key", "temperature"), objective("ceil", "key", "temperature")
vanilla = objective("vanilla", "keys", "temperature")
ressl = objective("ressl", "key", "temperature", "key_temperature")
sce = objective("sce", "key", "temperature", "key_temperature", "weight", "masked_positive")


def ramped_jcl(batch: Any, recipe: "ImageRecipe") -> Any:
    """JCL, with the weight of the covariance ramped to strength (e + 1) / E in epoch e of E."""
    strength = recipe.strength * (batch.epoch + 1) / recipe.epochs if recipe.ramp else recipe.strength
    return jcl(batch.query, batch.keys, batch.negatives, recipe.temperature, strength)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
    """A way to train an encoder.

    Attributes:
        name: what users type.
        loss: None, if it trains nothing.
        values: where the recipe for a data set leaves that of SCE on CIFAR-10, with the sources.
        key: what encodes the other views: the "momentum" encoder, without gradient; the "encoder" itself, with
            gradient; or "none", where there are none, and the query is what a classifier says of the image.
        unit: whether queries and keys have unit length, or are as the head leaves them.
        dictionary: whether there is one of earlier keys, of several keys of an image their mean.
        labels: whether it is trained on the images that have labels, and sees these.
        fields: further ones of the recipe that it uses, such as its temperature. Others stay as a preset has them.
        parts: by name, what is logged beside the loss, computed as a loss and without gradient.
    """

    name: str
    loss: Loss | None
    values: Callable[[str], Values] = lambda dataset: {}
    key: str = "momentum"
    unit: bool = True
    dictionary: bool = True
    labels: bool = False
    fields: tuple[str, ...] = ()
    parts: Mapping[str, Loss] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        choose(f"key of the method {self.name}", self.key, ("momentum", "encoder", "none"))
        if self.dictionary and self.key == "none" and self.loss:
            raise ValueError(f"the method {self.name} has key='none', and so no keys for a dictionary; say "
                             "dictionary=False")


def _values_of_sce(dataset: str) -> Values:
    source = f"{SCE}, the data set's best" if dataset in BEST else SCE_CODE
    temperature, key_temperature = BEST.get(dataset, (0.1, 0.05))
    return {"temperature": (temperature, source), "key_temperature": (key_temperature, source)}


def _values_of_moco(dataset: str) -> Values:
    return {"query_view": ("strong", MOCO), "key_view": ("strong", MOCO), "temperature": (0.2, MOCO)}


def _values_of_jcl(dataset: str) -> Values:
    imagenet = dataset == "imagenet"
    return _values_of_moco(dataset) | {
        "temperature": (0.2, JCL),
        "keys": (5, "assumed, as JCL's ablation; 4 in its released script" if imagenet else JCL),
        "strength": (2.0, f"{JCL_CODE} of the released weights") if imagenet else (4.0, JCL),
    }


METHODS = {
    method.name: method
    for method in (
        Method(name="random", loss=None, key="none", dictionary=False),
        Method(
            name="supervised", loss=lambda batch, recipe: cross_entropy(batch.query, batch.labels), key="none",
            dictionary=False, labels=True, values=lambda dataset: {"query_view": ("weak", "assumed: crop and flip")},
        ),
        Method(name="moco", loss=info_nce, values=_values_of_moco, fields=("temperature",)),
        Method(
            name="ressl", loss=ressl,
            values=lambda dataset: {"temperature": (0.1, RESSL_CODE), "key_temperature": (0.04, RESSL_CODE)},
            fields=("temperature", "key_temperature", "whole_query"),
        ),
        Method(
            name="sce", loss=sce, values=_values_of_sce,
            fields=("temperature", "key_temperature", "whole_query", "weight", "masked_positive"),
            parts={"InfoNCE": info_nce, "ReSSL": ressl, "Ceil": ceil},
        ),
        Method(name="jcl", loss=ramped_jcl, values=_values_of_jcl, fields=("temperature", "keys", "strength", "ramp")),
        Method(name="vanilla", loss=vanilla, values=_values_of_jcl, fields=("temperature", "keys")),
    )
}


def trains(recipe: "ImageRecipe") -> bool:
    """Whether a recipe's encoder is trained: all but random initialisation."""
    return recipe.trained_by.loss is not None


def contrasts(recipe: "ImageRecipe") -> bool:
    """Whether a recipe compares views of an image."""
    return recipe.trained_by.key != "none"


def follows(recipe: "ImageRecipe") -> bool:
    """Whether a recipe has a momentum encoder."""
    return recipe.trained_by.key == "momentum"


def by_method(name: str) -> Callable[["ImageRecipe"], bool]:
    """Whether a recipe's method is one that uses the field of that name."""
    return lambda recipe: name in recipe.trained_by.fields


def splits_keys(recipe: "ImageRecipe") -> bool:
    """Whether a recipe is of a method whose released code may normalise the keys' trunk alone in groups, and does."""
    return by_method("whole_query")(recipe) and recipe.groups > 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageRecipe(Recipe):
    """One pre-training and its evaluation. Defaults: SCE on CIFAR-10.

    Attributes:
        methods: what `method` may be, by name; another paper's class has its own.
    """

    methods: ClassVar[Mapping[str, Method]] = METHODS

    dataset: str = setting("cifar10", "SCE supplement", allowed=DATASETS)
    subset: bool = setting(False, "assumed: the whole distribution, or an error")
    method: str = setting("sce", "SCE supplement", allowed=METHODS)
    trunk: str = setting("resnet18", SCE, allowed=TRUNKS)
    small: bool = setting(True, f"{SCE}: 3x3 stem without pooling")
    head: str = setting("sce", SCE, allowed=HEADS, used=contrasts)
    projection: int = setting(256, f"{SCE}; 128 in the released code", least=1, used=contrasts)
    groups: int = setting(
        1, "assumed: plain batch normalisation; 8 ghost groups in the released code", least=1, used=trains
    )
    shuffle: bool = setting(
        True, "MoCo, section 3.3; among groups", used=lambda recipe: follows(recipe) and recipe.groups > 1
    )
    whole_query: bool = setting(
        False, "MoCo, whose processes split queries as they do keys; SCE's released code splits the keys' trunk alone",
        before=False, used=splits_keys,
    )
    size: int = setting(32, SCE, least=1)
    resize: int = setting(32, SCE, least=1)
    query_view: str = setting(
        "strong", "SCE, released code; its supplement's Alg. 1 has weak", allowed=VIEWS, used=trains
    )
    key_view: str = setting(
        "weak", "SCE, released code; its supplement's Alg. 1 has strong", allowed=VIEWS, used=contrasts
    )
    dictionary: int = setting(4096, SCE, least=1, used=lambda recipe: recipe.trained_by.dictionary)
    temperature: float = setting(0.2, f"{SCE}, the data set's best", least=1e-6, used=by_method("temperature"))
    key_temperature: float = setting(
        0.1, f"{SCE}, the data set's best", least=1e-6, used=by_method("key_temperature")
    )
    weight: float = setting(0.5, SCE_CODE, least=0, most=1, used=by_method("weight"))
    masked_positive: bool = setting(
        True, f"{SCE}, the formula; a logit of 0 in its pseudo-code", used=by_method("masked_positive")
    )
    keys: int = setting(1, SCE, least=1, used=by_method("keys"))
    strength: float = setting(4.0, JCL, least=0, used=by_method("strength"))
    ramp: bool = setting(True, f"{JCL_CODE}: strength (e + 1) / E in epoch e of E", used=by_method("ramp"))
    momentum: float = setting(0.99, SCE, least=0, most=1, used=follows)
    momentum_copied: bool = setting(
        True, "MoCo; SCE's first release starts the momentum network from draws of its own, its later one copies",
        before=True, used=follows,
    )
    epochs: int = setting(200, SCE, least=1, used=trains)
    batch: int = setting(256, SCE, least=1, used=trains)
    learning_rate: float = setting(0.06, SCE, least=0, used=trains)
    warmup: int = setting(5, SCE, least=0, used=trains)
    schedule: str = setting("step", SCE, allowed=("step", "epoch"), used=trains)
    sgd_momentum: float = setting(0.9, SCE, least=0, most=1, used=trains)
    weight_decay: float = setting(5e-4, f"{SCE}, of all parameters as in the released code", least=0, used=trains)
    precision: str = setting(
        "auto",
        "assumed: bfloat16 where the processor has it; float16 in the released code",
        allowed=("auto", "float32", "bfloat16"),
        hashed_as={"auto": "bfloat16", "bfloat16": "bfloat16, asked for"},
    )
    channels_last: bool = setting(True, "assumed: memory format, for speed")
    threads: int = setting(1, "assumed: CPU threads, part of a CPU result", least=1)
    square: bool = setting(False, "assumed: proportions are kept; without effect on square images", before=False)
    probe_every: int = setting(
        0, "assumed: epochs between probes along training; 0, none: papers and codes have none",
        least=0, before=0, used=trains,
    )
    probe_view: str = setting("shifted", SCE, allowed=PROBE_VIEWS, evaluation=True)
    probe_padding: int = setting(
        4,
        f"{SCE}, section D, for small sets",
        least=0,
        before=4,
        used=lambda recipe: recipe.probe_view == "shifted",
        evaluation=True,
    )
    probe_epochs: int = setting(100, SCE_CODE, least=1, evaluation=True)
    probe_batch: int = setting(256, SCE_CODE, least=1, evaluation=True)
    probe_learning_rate: float = setting(30.0, SCE_CODE, least=0, evaluation=True)
    probe_momentum: float = setting(0.9, SCE_CODE, least=0, most=1, evaluation=True)
    select: str = setting(
        "last", "assumed: epoch of the probe; best_on_test in the released codes", allowed=("last", "best_on_test"),
        evaluation=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("method", self.method, self.methods)
        manifest.check_subset(self.dataset, self.subset)
        if self.resize < self.size:
            raise ValueError(f"resize={self.resize} should be at least size={self.size}")
        # Maps of one position, strided: torch 2.15 leaves bfloat16 gradients of their weights unset on a CPU.
        if self.precision != "float32" and not self.small and self.size <= TOO_SMALL:
            raise ValueError(f"size={self.size} with small=False needs precision=float32, or small=True")
        if self.batch % self.groups:
            raise ValueError(f"batch={self.batch} should be a multiple of groups={self.groups}")
        if self.keys > 1 and not by_method("keys")(self):
            able = [name for name, method in self.methods.items() if "keys" in method.fields]
            raise ValueError(
                f"keys={self.keys} needs one of the methods {', '.join(able)}; {self.method} has one key a query"
            )

    @property
    def trained_by(self) -> Method:
        """What `method` names."""
        return self.methods[self.method]

    @property
    def query_groups(self) -> int:
        """In how many groups the query's trunk is normalised; that of the keys is in `groups`."""
        return 1 if self.whole_query and splits_keys(self) else self.groups

    def particular(self) -> Values:
        """See `Recipe.particular`.

        No paper has the data sets that `DATA` does not name: images of one size leave the recipe of CIFAR-10 in that
        alone, those of various sizes, which are cropped to one, have that of ImageNet-100.
        """
        size = DATASETS[self.dataset].images.size
        other = {"size": (size, "the images"), "resize": (size, "the images")} if size else ABLATION
        return DATA.get(self.dataset, other) | self.trained_by.values(self.dataset)

    @classmethod
    def quick(cls, dataset: str, method: str, **changes: Any) -> Self:
        """A size for two CPU cores: the stem for large images, which costs a tenth, and fewer images in the dictionary.

        Made for a part of some thousand images of 32 pixels, which with `subset` are seen 100 times. Whole data sets
        are seen 10 times, ImageNet twice at 64 pixels, and take longer than two cores should be asked for; so do 100
        epochs of a large part. The learning rate is that of the paper in proportion to a batch of 128.
        """
        whole = cls.printed(dataset, method)
        small = {"small": whole.size <= TOO_SMALL, "batch": 128, "dictionary": 1024, "probe_view": "centred"}
        small["learning_rate"] = whole.learning_rate * small["batch"] / whole.batch
        if dataset == "digits":
            small |= {"epochs": 20, "dictionary": 512, "precision": "float32", "channels_last": False}
        elif DATASETS[dataset].images.size is None:
            small |= {"trunk": "resnet18", "size": 64, "resize": 72, "epochs": 2, "dictionary": 4096}
        else:
            small |= {"epochs": 100 if changes.get("subset") else 10}
        return cls.printed(dataset, method, **(small | changes))

    @classmethod
    def smoke(cls, dataset: str, method: str, **changes: Any) -> Self:
        """One epoch of large batches, which are two steps of the digits, to see that everything runs, no more.

        The stem for large images costs a tenth, also where images are too small to learn anything behind it.
        """
        tiny: dict[str, Any] = {"small": False, "epochs": 1, "batch": 512, "dictionary": 64}
        tiny |= {"probe_view": "centred", "probe_epochs": 2}
        if cls.printed(dataset, method).size <= TOO_SMALL:
            tiny |= {"precision": "float32"}
        return cls.printed(dataset, method, **(tiny | changes))


paper, quick, smoke = ImageRecipe.printed, ImageRecipe.quick, ImageRecipe.smoke
PRESETS = {"paper": paper, "quick": quick, "smoke": smoke}

# Where paper, supplement and released code part ways and the numbers change; the default is the other value.
VARIANTS: dict[str, dict[str, Any]] = {
    "swapped_views": {"query_view": "weak", "key_view": "strong"},  # SCE supplement, Alg. 1
    "zero_logit": {"masked_positive": False},  # SCE's pseudo-code and released code
    "released_projection": {"projection": 128},  # SCE, released code
    "ghost_groups": {"groups": 8, "whole_query": True},  # SCE, released code; MoCo and JCL split queries as well
    "own_momentum_start": {"momentum_copied": False},  # SCE, first released code
    "constant_strength": {"ramp": False},  # JCL supplement, whose text has no ramp
    "four_keys": {"keys": 4},  # JCL, released code, which counts the query among five crops
}

IMAGES = Study(
    name="images",
    recipe=ImageRecipe,
    presets=PRESETS,
    variants=VARIANTS,
    load=Lazy("repro.image.data", "data_of"),
    learners=Lazy("repro.image.study", "learners"),
    measure=Lazy("repro.image.study", "measure"),
    probe=Lazy("repro.image.study", "along"),
    version=VERSION,
    evaluation=EVALUATION,
    check=Lazy("repro.image.study", "check"),
    shared=True,
    constants=Lazy("repro.image.study", "constants"),
)
