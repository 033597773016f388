"""Recipes of the taxonomy paper: any subset of attractive/contrastive x encoder/decoder objectives."""

import dataclasses
from typing import Any, ClassVar

from repro import manifest
from repro.recipe import Recipe, Values, setting
from repro.skeleton.data import DATASETS, PIPELINES
from repro.skeleton.ntu_prepare import PIPELINES as NTU_PIPELINES

TERMS = ("AE", "CE", "AD", "CD")
SUBSETS = tuple(
    "+".join(term for bit, term in enumerate(TERMS) if number >> bit & 1) for number in range(1, 2 ** len(TERMS))
)
METHODS = ("random", *SUBSETS)

# Where paper, supplement and released code part ways and the numbers change; the default is the other value.
VARIANTS: dict[str, dict[str, Any]] = {
    "sum_of_squares": {"ad_loss": "squared"},  # the supplement's Algorithm 1; the released code takes a masked L1 mean
    "denoising": {"ad_input": "augmented"},  # the repository's earlier model reconstructs x from its augmented view
    "frozen_noise": {"td_queue": "frozen_noise"},  # the released code never enqueues decoded sequences
    "uncropped": {"td_crop": None},  # compare negatives over whole sequences; matters where these exceed 50 frames
    "mlp_head": {"head": "mlp"},  # the repository's earlier models
    "bidirectional": {"bidirectional": True},  # the repository's earlier auto-encoder for NW-UCLA; see model.py
    "ema_head_twice": {"ema_head_twice": True},  # the released code lists the head in both groups it averages
}
# The objectives whose training each of them changes: those with one of these terms.
CONCERNED: dict[str, tuple[str, ...]] = {
    "sum_of_squares": ("AD",),
    "denoising": ("AD",),
    "frozen_noise": ("CD",),
    "uncropped": ("CD",),
    "mlp_head": ("AE", "CE"),
    "bidirectional": ("random", *TERMS),  # whose features too are another encoder's
    "ema_head_twice": ("CE",),
}

# What the recipes for NTU RGB+D change, with the source.
NTU: Values = {
    "protocol": ("xsub", "released code, jobs/pretrain_.sh"),
    "pipeline": ("default", "released code, datasets/restore_NTU.py: two bodies, centred"),
    "dictionary": (16384, "released code, NTU_BUTD_CON.yaml"),
    "sequence_dictionary": (2048, "released code, NTU_BUTD_CON.yaml"),
    "epochs": (80, "released code, NTU_BUTD_CON.yaml"),
    "learning_rate": (9e-4, "released code, jobs/pretrain_.sh; NTU_BUTD_CON.yaml, with three layers, has 0.05"),
    "probe_batch": (512, "released code, lincls.py"),
    "select_every": (3, "released code, NTU_BUTD_CON.yaml; used by best_on_test alone"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SkeletonRecipe(Recipe):
    """One pre-training and its evaluation. Defaults: NW-UCLA, one layer of 512 units."""

    cells_per_gpu: ClassVar[int] = 8  # a GRU's frames come one after the other, each small for a GPU

    dataset: str = setting("ucla", "paper", allowed=DATASETS)
    protocol: str = setting("xview", "paper")
    pipeline: str = setting(
        "default", "measured: reproduces the printed random-initialisation row", allowed=(*PIPELINES, *NTU_PIPELINES)
    )
    subset: bool = setting(False, "assumed: the whole distribution, or an error", before=False)
    objectives: str = setting("CE", "paper, Table 1", allowed=METHODS)
    layers: int = setting(1, "paper, Table 1", least=1)
    units: int = setting(512, "paper, Table 1", least=1)
    bidirectional: bool = setting(False, "released code, MocoBUTDcon; true in UCLA_AE.yaml", before=False)
    projection: int = setting(128, "released code, UCLA_BUTD_CON.yaml", least=1)
    head: str = setting("linear", "released code, MocoBUTDcon", allowed=("linear", "mlp"))
    ad_loss: str = setting("l1", "released code; the supplement prints squares", allowed=("l1", "squared"))
    ad_input: str = setting("clean", "released code, MocoBUTDcon", allowed=("clean", "augmented"))
    td_queue: str = setting(
        "live",
        "assumed: refreshed, as a dictionary of keys is; frozen in the released code",
        allowed=("live", "frozen_noise"),
    )
    td_crop: int | None = setting(50, "released code, maximum_timesteps", least=1)
    dictionary: int = setting(1024, "released code, UCLA_BUTD_CON.yaml", least=1)
    sequence_dictionary: int = setting(640, "released code, UCLA_BUTD_CON.yaml", least=1)
    temperature: float = setting(0.1, "released code, UCLA_BUTD_CON.yaml", least=1e-6)
    momentum: float = setting(0.999, "released code, UCLA_BUTD_CON.yaml", least=0, most=1)
    ema_head_twice: bool = setting(False, "paper; true in the released code")
    flip: float = setting(0.5, "released code", least=0, most=1)
    shear: float = setting(1.0, "released code", least=0)
    epochs: int = setting(150, "released code, UCLA_BUTD_CON.yaml", least=0)
    batch: int = setting(32, "released code, UCLA_BUTD_CON.yaml", least=1)
    learning_rate: float = setting(1e-3, "released code, UCLA_BUTD_CON.yaml", least=0)
    clip: float = setting(25.0, "released code, UCLA_BUTD_CON.yaml", least=1e-6)
    probe_epochs: int = setting(70, "released code, lincls.py", least=1)
    probe_batch: int = setting(128, "released code, lincls.py", least=1)
    probe_learning_rate: float = setting(2.0, "released code, lincls.py", least=0)
    probe_standardised_rate: float = setting(
        0.1, "assumed: chosen once, for coordinates of unit scale, the same for all objectives", least=0, before=0.1
    )
    probe_momentum: float = setting(0.9, "released code, lincls.py", least=0, most=1)
    probe_final_rate: float = setting(0.01, "released code, lincls.py", least=0, most=1)
    select: str = setting("last", "assumed; best_on_test in the released code", allowed=("last", "best_on_test"))
    select_every: int = setting(
        10, "released code, epochs between 1-NN accuracies; used by best_on_test alone", least=1
    )
    precision: str = setting(
        "bfloat16",
        "measured: on a CPU equal to float32 within the noise of seeds for CE and AE+CE+AD; float32 on CUDA",
        allowed=("float32", "bfloat16"),
    )
    threads: int = setting(1, "assumed: CPU threads, part of a CPU result", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        manifest.check_subset(self.dataset, self.subset)
        if self.bidirectional and self.units % 2:
            raise ValueError(f"units={self.units} should be even: each of two directions has half of them")

    def particular(self) -> Values:
        """See `Recipe.particular`."""
        return NTU if self.dataset == "ntu" else {}

    def has(self, term: str) -> bool:
        """Whether the objective contains the term ("AE", "CE", "AD" or "CD")."""
        return term in self.objectives.split("+")

    @property
    def trains_decoder(self) -> bool:
        """Whether a term of the objective reaches the decoder."""
        return self.has("AD") or self.has("CD")


def paper(dataset: str, objectives: str, **changes: Any) -> SkeletonRecipe:
    """The printed and released values for a data set; `changes` replace fields."""
    own = {name: value for name, (value, _) in NTU.items()} if dataset == "ntu" else {}
    return SkeletonRecipe(dataset=dataset, objectives=objectives).replace(**(own | changes))


def quick(dataset: str, objectives: str, **changes: Any) -> SkeletonRecipe:
    """A size for two CPU cores: minutes for the embedded data's table, an hour or more for NW-UCLA's.

    NTU RGB+D's recordings are seen twice each by a small model; what that costs has not been measured.
    """
    if dataset == "synthetic":
        small = {"units": 128, "epochs": 16, "dictionary": 512, "sequence_dictionary": 128, "precision": "float32"}
    elif dataset == "ntu":
        small = {"units": 128, "epochs": 2, "dictionary": 4096, "sequence_dictionary": 256}
    else:
        small = {"epochs": 30}
    return paper(dataset, objectives, **(small | changes))


def smoke(dataset: str, objectives: str, **changes: Any) -> SkeletonRecipe:
    """Two steps of a tiny model (NTU RGB+D, or a part of it: one epoch), to see that everything runs, no more."""
    tiny = {"units": 16, "epochs": 2, "batch": 512, "dictionary": 32, "sequence_dictionary": 16, "probe_epochs": 2}
    tiny |= {"epochs": 1, "batch": 16} if dataset == "ntu" else {}
    return paper(dataset, objectives, **(tiny | changes))


PRESETS = {"paper": paper, "quick": quick, "smoke": smoke}
