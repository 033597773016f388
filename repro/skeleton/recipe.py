"""Recipes of the taxonomy paper: any subset of attractive/contrastive x encoder/decoder objectives."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from repro.data import manifest
from repro.recipe import Recipe, Values, choose, distinct, setting
from repro.skeleton import DATASETS, NTU_PIPELINES, PIPELINES
from repro.skeleton.terms import INPUTS, KINDS, PRINTED, TERMS
from repro.table import Lazy, Study

VERSION = 3  # of the training; raise when a change alters the numbers of an unchanged recipe
EVALUATION = 3  # raise when `repro.skeleton.study.measure` measures more, or otherwise
ADDITIONS = (3,)  # evaluations that measured more and nothing otherwise: 3 added `linear_without_originals`

SUBSETS = tuple(                   # "AE", "CE", "AE+CE" and so on: those of the printed terms that have one at least
    "+".join(term for bit, term in enumerate(PRINTED) if number >> bit & 1) for number in range(1, 2 ** len(PRINTED))
)
METHODS = ("random", *SUBSETS)     # what the paper compares

# Where paper, supplement and released code part ways and the numbers change; the default is the other value.
VARIANTS: dict[str, dict[str, Any]] = {
    "sum_of_squares": {"ad_loss": "squared"},  # the supplement's Algorithm 1; the released code takes a masked L1 mean
    "denoising": {"ad_input": "augmented"},  # the repository's earlier model reconstructs x from its augmented view
    "frozen_noise": {"td_queue": "frozen_noise"},  # the released code never enqueues decoded sequences
    "uncropped": {"td_crop": None},  # compare negatives over whole sequences; matters where these exceed 50 frames
    "mlp_head": {"head": "mlp"},  # the repository's earlier models
    "bidirectional": {"bidirectional": True},  # the repository's earlier auto-encoder for NW-UCLA; see model.py
    "ema_head_twice": {"ema_head_twice": True},  # the released code lists the head in both groups it averages
    "own_key_head": {"key_head_copied": False},  # the released code copies encoder and decoder alone
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
    "select_every": (3, "released code, NTU_BUTD_CON.yaml"),
    "probe_every": (0, "assumed: probes of 40,000 sequences cost as much as training epochs"),
}
UCLA, PROBE = "released code, UCLA_BUTD_CON.yaml", "released code, lincls.py"
WEIGHTS = "released code, job scripts: 1 or absent; AE 10 and AD 25 to 55 in the repository's runs of November 2020"


def with_term(term: str) -> Callable[["SkeletonRecipe"], bool]:
    """Whether a recipe's objective has the term."""
    return lambda recipe: recipe.has(term)


def needing(*inputs: str, kinds: tuple[str, ...] = KINDS) -> Callable[["SkeletonRecipe"], bool]:
    """Whether a recipe's objective looks at one of the inputs, in one of the kinds."""
    return lambda recipe: any(name in recipe.needs[kind] for kind in kinds for name in inputs)


views, contrasts = needing("augmented", "key"), needing("key")
embeds_keys, decodes_keys = needing("key", kinds=("embedded",)), needing("key", kinds=("decoded",))
BEHIND_HEAD = ("projected", "embedded")


def trains(recipe: "SkeletonRecipe") -> bool:
    """Whether a recipe's encoder is trained: all but random initialisation."""
    return recipe.objectives != "random"


def embeds(recipe: "SkeletonRecipe") -> bool:
    """Whether a recipe's objective looks through the head."""
    return any(recipe.needs[kind] for kind in BEHIND_HEAD) or (
        recipe.trains_decoder and recipe.decoder_input == "embedding"
    )


def keys_through_head(recipe: "SkeletonRecipe") -> bool:
    """Whether a recipe's keys go through the head of the momentum encoder."""
    return needing("key", kinds=BEHIND_HEAD)(recipe) or (decodes_keys(recipe) and recipe.decoder_input == "embedding")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SkeletonRecipe(Recipe):
    """One pre-training and its evaluation. Defaults: NW-UCLA, one layer of 512 units."""

    lanes: ClassVar[int] = 15  # a GRU's frames come one after the other, each small for a GPU
    gpu_precision: ClassVar[str] = "float32"
    named_by: ClassVar[str] = "objectives"

    dataset: str = setting("ucla", "paper", allowed=DATASETS)
    protocol: str = setting("xview", "paper")
    pipeline: str = setting(
        "default", "measured: reproduces the printed random-initialisation row", allowed=(*PIPELINES, *NTU_PIPELINES)
    )
    subset: bool = setting(False, "assumed: the whole distribution, or an error", before=False)
    objectives: str = setting("CE", "paper, Table 1")
    layers: int = setting(1, "paper, Table 1", least=1)
    units: int = setting(512, f"{UCLA}; the supplement prints 1024 alone", least=1)
    bidirectional: bool = setting(False, "released code, MocoBUTDcon; true in UCLA_AE.yaml", before=False)
    projection: int = setting(128, UCLA, least=1, used=embeds)
    head: str = setting("linear", "released code, MocoBUTDcon", allowed=("linear", "mlp"), used=embeds)
    ae_weight: float = setting(1.0, WEIGHTS, least=0, before=1.0, used=with_term("AE"))
    ce_weight: float = setting(
        1.0, "the supplement's Algorithm 1, which has none", least=0, before=1.0, used=with_term("CE")
    )
    ad_weight: float = setting(1.0, WEIGHTS, least=0, before=1.0, used=with_term("AD"))
    cd_weight: float = setting(1.0, WEIGHTS, least=0, before=1.0, used=with_term("CD"))
    ad_loss: str = setting(
        "l1", "released code; the supplement prints squares", allowed=("l1", "squared"), used=with_term("AD")
    )
    ad_input: str = setting("clean", "released code, MocoBUTDcon", allowed=("clean", "augmented"), used=with_term("AD"))
    decoder_input: str = setting(
        "readout", "released code; the supplement's Algorithm 1 decodes the embedding",
        allowed=("readout", "embedding"), before="readout", used=lambda recipe: recipe.trains_decoder,
    )
    td_queue: str = setting(
        "live", "assumed: refreshed, as a dictionary of keys is; frozen in the released code",
        allowed=("live", "frozen_noise"), used=decodes_keys,
    )
    td_crop: int | None = setting(50, "released code, maximum_timesteps", least=1, used=decodes_keys)
    dictionary: int = setting(1024, UCLA, least=1, used=embeds_keys)
    sequence_dictionary: int = setting(640, UCLA, least=1, used=decodes_keys)
    temperature: float = setting(0.1, UCLA, least=1e-6, used=needing("key", kinds=("embedded", "decoded")))
    momentum: float = setting(0.999, UCLA, least=0, most=1, used=contrasts)
    ema_head_twice: bool = setting(
        False, "paper; true in the released code", hashed_as={True: "before and after the step"}, used=keys_through_head
    )
    key_head_copied: bool = setting(
        True, "the supplement's momentum encoder is a copy; the released code never copies the head", before=True,
        used=keys_through_head,
    )
    flip: float = setting(0.5, "released code", least=0, most=1, used=views)
    shear: float = setting(1.0, "released code", least=0, used=views)
    epochs: int = setting(150, UCLA, least=0, used=trains)
    batch: int = setting(32, UCLA, least=1, used=trains)
    learning_rate: float = setting(
        1e-3, f"{UCLA}; 3e-3 in its earlier configurations for NW-UCLA", least=0, used=trains
    )
    clip: float = setting(25.0, UCLA, least=1e-6, used=trains)
    probe_every: int = setting(
        10, "assumed: epochs between probes along training, as the released code looks at its accuracy; 0, none",
        least=0, before=0, used=trains,
    )
    probe_epochs: int = setting(70, PROBE, least=1, evaluation=True)
    probe_batch: int = setting(128, PROBE, least=1, evaluation=True)
    probe_learning_rate: float = setting(2.0, PROBE, least=0, evaluation=True)
    probe_standardised_rate: float = setting(
        0.1, "assumed: chosen once, for coordinates of unit scale, the same for all objectives", least=0, before=0.1,
        evaluation=True,
    )
    probe_momentum: float = setting(0.9, PROBE, least=0, most=1, evaluation=True)
    probe_final_rate: float = setting(0.01, PROBE, least=0, most=1, evaluation=True)
    select: str = setting("last", "assumed; best_on_test in the released code", allowed=("last", "best_on_test"))
    select_every: int = setting(
        10, "released code, epochs between 1-NN accuracies", least=1,
        used=lambda recipe: trains(recipe) and recipe.select == "best_on_test",
    )
    precision: str = setting(
        "auto", "assumed: bfloat16 where a CPU has it, equal to float32 within the noise of seeds for CE and AE+CE+AD",
        allowed=("auto", "float32", "bfloat16"), used=trains,
    )
    threads: int = setting(1, "assumed: CPU threads, part of a CPU result", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("objectives", self.objectives, [_ordered(self.objectives)])
        manifest.check_subset(self.dataset, self.subset)
        if (self.dataset, self.pipeline) == ("ntu", "authors"):  # two names of one computation, which has one id
            object.__setattr__(self, "pipeline", "default")
        if self.bidirectional and self.units % 2:
            raise ValueError(f"units={self.units} should be even: each of two directions has half of them")

    @classmethod
    def parse(cls, name: str, given: Any) -> list[Any]:
        """See `Recipe.parse`; "all" objectives are random and the printed fifteen, terms come in any order."""
        values = super().parse(name, given)
        if name != "objectives":
            return values
        ordered = distinct(name, given, (value if value == "all" else _ordered(value) for value in values))
        return list(dict.fromkeys(method for value in ordered for method in (METHODS if value == "all" else [value])))

    def particular(self) -> Values:
        """See `Recipe.particular`; a data set without a recipe of its own has NW-UCLA's, at its first protocol."""
        if self.dataset == "ntu":
            return NTU
        protocol = next(iter(DATASETS[self.dataset].splits))
        return {"protocol": (protocol, "the data set's manifest")} if protocol != "xview" else {}

    def users(self, name: str) -> list[str]:
        """See `Recipe.users`; of objectives, the single terms."""
        return [term for term in ("random", *TERMS) if self.uses(name, objectives=term)]

    def has(self, term: str) -> bool:
        """Whether the objective contains the term, such as "AE"."""
        return term in self.objectives.split("+")

    def weight(self, term: str) -> float:
        """What a term counts in the loss: 1, unless it has a field for that."""
        return getattr(self, f"{term.lower()}_weight", 1.0)

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """The inputs that the objective looks at, by kind, those of its terms after each other.

        ValueError if a term needs a kind or an input that there is not.
        """
        inputs: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}  # in order, and each once
        for term in (term for name, term in TERMS.items() if self.has(name)):
            for kind, names in term.needs(self).items():
                for name in names:
                    needed = choose(f"input that {term.name} needs", name, INPUTS)
                    inputs[choose(f"kind that {term.name} needs", kind, KINDS)][needed] = None
        return {kind: tuple(names) for kind, names in inputs.items()}

    @property
    def trains_decoder(self) -> bool:
        """Whether a term of the objective reaches the decoder."""
        return bool(self.needs["decoded"])


def _ordered(name: str) -> str:
    """An objective with its terms in the order of `TERMS`; raises ValueError if one is none, or there twice."""
    if name == "random":
        return name
    terms = [choose(f"objectives={name!r}: term", term, TERMS) for term in name.split("+")]
    return "+".join(sorted(distinct("objectives", name, terms), key=list(TERMS).index))


paper = SkeletonRecipe.printed


def quick(dataset: str, objectives: str, **changes: Any) -> SkeletonRecipe:
    """A size for two CPU cores: minutes for the bundled data's table, an hour or more for NW-UCLA's.

    NTU RGB+D's recordings are seen twice each by a small model; what that costs has not been measured.
    """
    small: dict[str, dict[str, Any]] = {
        "synthetic": {"units": 128, "epochs": 6, "dictionary": 512, "sequence_dictionary": 128, "learning_rate": 3e-3,
                      "precision": "float32", "probe_every": 0},
        "ntu": {"units": 128, "epochs": 2, "dictionary": 4096, "sequence_dictionary": 256},
    }
    return paper(dataset, objectives, **(small.get(dataset, {"epochs": 30}) | changes))


def smoke(dataset: str, objectives: str, **changes: Any) -> SkeletonRecipe:
    """Two steps of a tiny model (of other data sets than these two an epoch), to see that everything runs, no more."""
    epochs, batch = (2, 512) if dataset in ("synthetic", "ucla") else (1, 16)
    tiny = {"units": 16, "epochs": epochs, "batch": batch, "dictionary": 32, "sequence_dictionary": 16}
    return paper(dataset, objectives, **(tiny | {"probe_every": 1, "probe_epochs": 2} | changes))


PRESETS = {"paper": paper, "quick": quick, "smoke": smoke}

SKELETONS = Study(
    name="skeletons",
    recipe=SkeletonRecipe,
    presets=PRESETS,
    variants=VARIANTS,
    load=Lazy("repro.skeleton.data", "data_of"),
    learners=Lazy("repro.skeleton.study", "learners"),
    measure=Lazy("repro.skeleton.study", "measure"),
    probe=Lazy("repro.skeleton.study", "along"),
    version=VERSION,
    evaluation=EVALUATION,
    additions=ADDITIONS,
    check=Lazy("repro.skeleton.study", "check"),
    constants=Lazy("repro.skeleton.study", "constants"),
)
