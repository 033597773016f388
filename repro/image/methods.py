"""The methods that train encoders of images: what each needs, and its values with their sources. Another is one more
`Method`, and its loss a function of `repro.image.pretrain`; recipes, which name methods, need no torch.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from repro.recipe import Values, choose
from repro.table import Lazy

if TYPE_CHECKING:
    from torch import Tensor

    from repro.image.pretrain import Batch
    from repro.image.recipe import ImageRecipe

SCE, SCE_CODE = "SCE supplement", "SCE, released code, resnet18_cifar10.yaml"
JCL, JCL_CODE = "JCL supplement", "JCL, released code"
MOCO, RESSL_CODE = "MoCo v2, released code", "ReSSL, released code"
TRAINER = "repro.image.pretrain"  # which has the losses

BEST: dict[str, tuple[float, float]] = {  # SCE's best temperatures; other data sets take those of the released code
    "cifar10": (0.2, 0.10),
    "cifar100": (0.1, 0.08),
    "stl10": (0.1, 0.04),
    "tiny_imagenet": (0.1, 0.07),
}


Loss = Callable[["Batch", "ImageRecipe"], "Tensor"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
    """A way to train an encoder.

    Attributes:
        name: what users type.
        loss: its scalar mean over the batch, of what it needs and a recipe; None, if it trains nothing.
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
            name="supervised", loss=Lazy(TRAINER, "supervised"), key="none", dictionary=False, labels=True,
            values=lambda dataset: {"query_view": ("weak", "assumed: crop and flip")},
        ),
        Method(name="moco", loss=Lazy(TRAINER, "moco"), values=_values_of_moco, fields=("temperature",)),
        Method(
            name="ressl", loss=Lazy(TRAINER, "ressl"),
            values=lambda dataset: {"temperature": (0.1, RESSL_CODE), "key_temperature": (0.04, RESSL_CODE)},
            fields=("temperature", "key_temperature", "whole_query"),
        ),
        Method(
            name="sce", loss=Lazy(TRAINER, "sce"), values=_values_of_sce,
            fields=("temperature", "key_temperature", "whole_query", "weight", "masked_positive"),
            parts={"InfoNCE": Lazy(TRAINER, "moco"), "ReSSL": Lazy(TRAINER, "ressl"), "Ceil": Lazy(TRAINER, "ceil")},
        ),
        Method(
            name="jcl", loss=Lazy(TRAINER, "jcl"), values=_values_of_jcl,
            fields=("temperature", "keys", "strength", "ramp"),
        ),
        Method(name="vanilla", loss=Lazy(TRAINER, "vanilla"), values=_values_of_jcl, fields=("temperature", "keys")),
    )
}
