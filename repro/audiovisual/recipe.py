"""Recipes of CM-ACC: what is pre-trained, on which pairs, and how the encoders are judged afterwards."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from repro.audiovisual import CHARACTERS, FREQUENCIES, VIEWS, WIDTHS
from repro.audiovisual.decode import LARGEST_CROP
from repro.contrast import SAMPLERS
from repro.data import manifest
from repro.recipe import LARGEST, Recipe, Values, choose, distinct, of, setting, swept
from repro.table import Lazy, Study

VERSION = 5  # of the training; raise when a change alters the numbers of an unchanged recipe
EVALUATION = 1  # raise when `repro.audiovisual.study.measure` measures more, or otherwise

SELF_SUPERVISED = ("smoco", "xmoco", "cmacc")
METHODS = ("scratch", "supervised", *SELF_SUPERVISED)
VIDEO_TRUNKS = ("r3d18", "r2plus1d18", "small_video", "small_image")
AUDIO_TRUNKS = ("audio18", "small_audio", "small_image")

PAPER, CODE = "CM-ACC", "CM-ACC, released code"
FITTED = "assumed: fits the data"


class Target(NamedTuple):
    """Where an encoder is judged: by fine-tuning on a modality of a data set, in official splits of these names."""

    dataset: str
    modality: str
    splits: tuple[str | None, ...]


TARGETS = {
    "ucf101": Target("ucf101", "video", ("split1", "split2", "split3")),
    "hmdb51": Target("hmdb51", "video", ("split1", "split2", "split3")),
    "esc50": Target("esc50", "audio", ("fold1", "fold2", "fold3", "fold4", "fold5")),
    "esc10": Target("esc50", "audio", ("esc10_fold1", "esc10_fold2", "esc10_fold3", "esc10_fold4", "esc10_fold5")),
    "synthetic_video": Target("synthetic", "video", (None,)),
    "synthetic_audio": Target("synthetic", "audio", (None,)),
}

GRID: Values = {
    "video_trunk": ("small_image", FITTED),
    "audio_trunk": ("small_image", FITTED),
    "window": (1, "one picture"),
    "targets": ("characters", f"{PAPER}, Fig. 3a"),
}
DATA: dict[str, Values] = {  # where a data set's recipe leaves that of Kinetics-Sound
    "synthetic": {
        "video_trunk": ("small_video", FITTED),
        "audio_trunk": ("small_audio", FITTED),
        "redundancy": (0.5, "the clips"),
        "window": (8, "the clips"),
        "size": (24, "the clips"),
        "finetune_window": (8, "the clips"),
        "finetune_windows": (1, "the clips"),
        "finetune_learning_rate": (1e-3, FITTED),
        "targets": ("synthetic_video,synthetic_audio", "the data"),
    },
    "multidigits": GRID,
    "multiomniglot": GRID,
    "kinetics_sound": {},
    "kinetics700": {"clips": (240_000, f"{PAPER}: drawn at random once")},
    "audioset": {},
    "ucf101": {"targets": ("ucf101,hmdb51", f"{PAPER}, Table 4")},
    "hmdb51": {"targets": ("hmdb51", "the data")},
    "esc50": {"targets": ("esc50", "the data")},
}

QUICK_CHARACTERS: dict[str, Any] = {
    "batch": 128, "dictionary": 1024, "pool": 4096, "epochs": 100, "iterations": 624, "pairs": 10_000,
    "precision": "float32",  # assumed, so that numbers do not depend on the processor
}
QUICK: dict[str, dict[str, Any]] = {
    "synthetic": {  # its pool is all of the 1,920 clips, of which the dictionary leaves 1,664 to select from
        "batch": 32, "dictionary": 256, "pool": 1920, "epochs": 200, "iterations": 1000, "width": 128, "embedding": 128,
        "finetune_epochs": 50,
    },
    "esc50": {  # two windows of 3.2 s cover a recording of 5 s; ESC-10 has 320 of them in the training part of a fold
        "batch": 32, "dictionary": 256, "pool": 512, "epochs": 500, "iterations": 1000,
        "finetune_epochs": 50, "finetune_window": 32, "finetune_windows": 2,
    },
}
QUICK_VIDEO: dict[str, Any] = {  # a sample has some dozens of clips with sound, and a batch must be left to select
    "batch": 8, "dictionary": 16, "pool": 64, "epochs": 300, "iterations": 300, "width": 256, "embedding": 256,
    "size": 56, "finetune_batch": 8, "finetune_window": 16, "finetune_windows": 4,
}

# What released code or the paper's own numbers say, not its text; the last two undo what quick recipes begin with.
VARIANTS: dict[str, dict[str, Any]] = {
    "unit_length": {"normalised": True, "temperature": 0.07},
    "renewed_keys": {"renewed": True},  # else queries can tell a negative by the age of its key
    "released_selection": {"sampler": "released"},  # released code, kmeanspp.py
    "released_momentum": {"momentum": 0.9},  # released code, without its indexing slip
    "own_kept": {"own_excluded": False},  # Alg. 2, to the letter
    "whole_batch": {"groups": 1},  # released code, one process without shuffled batch normalisation
    "any_length": {"normalised": False, "temperature": 0.7},
    "pooled_keys": {"renewed": False},
}


def both(first: Callable[[Any], bool], second: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether both hold of a recipe."""
    return lambda recipe: first(recipe) and second(recipe)


def on_grids(recipe: Any) -> bool:
    """Whether a recipe is on grids of characters, which are probed."""
    return recipe.dataset in CHARACTERS


def on_clips(recipe: Any) -> bool:
    """Whether it is on clips, which are fine-tuned on."""
    return not on_grids(recipe)


trains, contrasts, selects = of("supervised", *SELF_SUPERVISED), of(*SELF_SUPERVISED), of("cmacc")
trains_on_grids, trains_on_clips = both(trains, on_grids), both(trains, on_clips)
finetunes = both(on_clips, lambda recipe: recipe.targets != "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AudioVisualRecipe(Recipe):
    """One pre-training and its evaluation. Defaults: CM-ACC on Kinetics-Sound."""

    dataset: str = setting("kinetics_sound", PAPER, allowed=DATA)
    subset: bool = setting(False, "assumed: the whole distribution, or an error")
    clips: int = setting(0, "assumed: pre-trained on so many, drawn at random once; 0, on all", least=0,
                         used=trains_on_clips)
    redundancy: float = setting(0.0, "assumed: share of near-duplicates among the bundled clips", least=0,
                                most=0.999, used=both(trains, lambda recipe: recipe.dataset == "synthetic"))
    characters: int = setting(1, f"{PAPER}, Fig. 3a: cells of a grid, from 1 to 9", least=1, most=9, used=on_grids)
    pairs: int = setting(50_000, f"{PAPER}, Fig. 3a", least=1, used=on_grids)
    categories: int = setting(
        0, f"{PAPER}, Fig. 3a: an alphabet for each cell; n: the first n characters of all, in every cell", least=0,
        used=on_grids)
    distinct: int = setting(0, "assumed: different grids that the training pairs repeat; 0, one a pair", least=0,
                            used=on_grids)
    frequency: str = setting("balanced", f"{PAPER}, Fig. 3a: of characters, or of the distinct grids; zipf: 1 / rank",
                             allowed=FREQUENCIES, used=on_grids)
    redrawn: bool = setting(
        False, f"{PAPER}, Fig. 3a: pairs are fixed; or query and key show their characters in drawings drawn anew",
        used=trains_on_grids)
    view: str = setting("affine", "assumed, as it needs no label: SMoCo's other view of a grid", allowed=VIEWS,
                        used=both(of("smoco"), on_grids))
    augmented: bool = setting(False, "assumed: the affine change of grids on queries and keys of all methods, or not",
                              used=trains_on_grids)
    method: str = setting("cmacc", PAPER, allowed=METHODS)
    sampler: str = setting("gradient", f"{PAPER}, Table 2", allowed=tuple(name for name in SAMPLERS if name != "fifo"),
                           hashed_as={"released": "released, of equals the earlier"}, used=selects)
    extra_layer: bool = setting(True, f"{PAPER}: a fully connected layer whose momentum crosses the modalities",
                                used=contrasts)
    video_trunk: str = setting("r3d18", PAPER, allowed=VIDEO_TRUNKS, used=on_clips)
    audio_trunk: str = setting("audio18", PAPER, allowed=AUDIO_TRUNKS, used=on_clips)
    width: int = setting(512, f"{PAPER}: features of an encoder", least=WIDTHS)
    embedding: int = setting(512, "assumed: width of the encoders", least=1,
                             used=both(contrasts, lambda recipe: recipe.extra_layer))
    normalised: bool = setting(False, "assumed, as the printed gradient norms need; see `VARIANTS`", used=contrasts)
    groups: int = setting(4, "assumed number: parts of a batch that are normalised apart", least=1, used=trains)
    shuffle: bool = setting(
        True, f"{PAPER}: keys are dealt to other groups than queries; without effect with one",
        used=both(contrasts, lambda recipe: recipe.groups > 1))
    batch: int = setting(128, f"{PAPER}: M, also the number of negatives selected in a step", least=1,
                         most=LARGEST // 300, used=trains)
    dictionary: int = setting(30 * 128, PAPER, least=1, used=contrasts)
    pool: int = setting(300 * 128, PAPER, least=1, used=selects)
    temperature: float = setting(0.7, PAPER, least=1e-6, used=contrasts)
    posterior_temperature: float = setting(
        1.0, f"{PAPER}, Eq. 4, which has none", least=1e-6,
        used=both(selects, lambda recipe: SAMPLERS.get(recipe.sampler, SAMPLERS["gradient"]).posterior))
    own_excluded: bool = setting(
        True, "assumed, the paper is silent: earlier keys of an item in the dictionary are no negatives of its query",
        used=contrasts)
    renewed: bool = setting(False, f"{PAPER}, Alg. 2: selected keys enter as the pool has them; or encoded again",
                            used=selects)
    momentum: float = setting(0.999, PAPER, least=0, most=1, used=contrasts)
    window: int = setting(16, f"{PAPER}: frames, at 10 a second", least=1, used=trains_on_clips)
    size: int = setting(224, PAPER, least=1, most=LARGEST_CROP, used=on_clips)
    greyscale: float = setting(0.2, "assumed: share of clips; the paper names the augmentation alone", least=0, most=1,
                               used=on_clips)
    epochs: int = setting(200, f"{CODE}; not in the paper", least=1, used=trains)
    iterations: int = setting(0, "assumed: steps after which to stop; 0, whole epochs", least=0, used=trains)
    learning_rate: float = setting(1e-3, f"{PAPER}, Adam", least=0, used=trains)
    warmup: int = setting(500, f"{PAPER}: steps; linear is assumed", least=0, used=trains)
    probe_every: int = setting(0, "assumed: epochs between probes of characters along training; 0, never", least=0,
                               before=0, used=trains_on_grids)
    precision: str = setting("float32", "assumed", allowed=("float32", "bfloat16"))
    threads: int = setting(1, "assumed: CPU threads, part of a CPU result", least=1)
    targets: str = setting("ucf101,hmdb51,esc50",
                           f"{PAPER}, Tables 1 and 2: fine-tuned on these one by one; + joins several", used=on_clips)
    split: int = setting(1, f"{PAPER}: of the targets, official split or fold; 0, their mean as in Tables 4 to 6",
                         least=0, most=5, used=finetunes)
    finetune_epochs: int = setting(50, "assumed", least=0, used=finetunes, evaluation=True)
    finetune_batch: int = setting(32, "assumed", least=1, used=finetunes, evaluation=True)
    finetune_window: int = setting(32, PAPER, least=1, used=finetunes, evaluation=True)
    finetune_windows: int = setting(10, "assumed: clips whose probabilities are averaged in a test recording", least=1,
                                    used=finetunes, evaluation=True)
    finetune_learning_rate: float = setting(1e-4, "assumed, Adam with a cosine to 0", least=0, used=finetunes,
                                            evaluation=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        manifest.check_subset(self.dataset, self.subset)
        if self.width % WIDTHS:
            raise ValueError(f"width={self.width} should be a multiple of {WIDTHS}")
        if on_clips(self) and "small_image" in (self.video_trunk, self.audio_trunk):
            raise ValueError("video_trunk and audio_trunk can be small_image on grids of characters alone; choose "
                             f"small_video and small_audio on {self.dataset}")
        if self.batch % self.groups:
            raise ValueError(f"batch={self.batch} should be a multiple of groups={self.groups}")
        for name in ("dictionary", "pool"):
            if getattr(self, name) % self.batch:
                raise ValueError(f"{name}={getattr(self, name)} should be a multiple of batch={self.batch}, the number "
                                 "of items that are encoded at a time")

    @classmethod
    def parse(cls, name: str, given: Any) -> list[Any]:
        """See `Recipe.parse`; "ucf101+esc50,hmdb51" are two values of `targets`, the first stored as "ucf101,esc50"."""
        if name != "targets":
            return super().parse(name, given)
        parts = []
        for part in swept(given):
            text = str(part).replace("+", ",")
            targets = [choose(name, target.strip(), TARGETS) for target in text.split(",")]
            parts.append(",".join(distinct(name, text, targets)))
        return distinct(name, given, parts)

    @property
    def main_measures(self) -> Sequence[str]:
        """See `Recipe.main_measures`; of clips, the targets."""
        return ("linear",) if self.dataset in CHARACTERS else [target for target in self.targets.split(",") if target]

    def particular(self) -> Values:
        """See `Recipe.particular`."""
        return DATA[self.dataset]


def paper(dataset: str, method: str, **changes: Any) -> AudioVisualRecipe:
    """The printed and released values for a data set and a method; `changes` replace fields.

    Dictionary and pool follow the batch, 30 and 300 times as many, unless given.
    """
    if "batch" in changes:
        changes = {"dictionary": 30 * changes["batch"], "pool": 300 * changes["batch"]} | changes
    return AudioVisualRecipe.printed(dataset, method, **changes)


def quick(dataset: str, method: str, **changes: Any) -> AudioVisualRecipe:
    """A size for two CPU cores: small encoders, few and small frames of recordings.

    All batches take as many steps, with one dictionary and one pool unless a batch needs more: Table 3 compares numbers
    of negatives and not lengths of training. Embeddings have unit length and selected keys are encoded again: else, in
    1,000 steps on the bundled clips, queries learned to tell the age of a key and less of its content.
    """
    small: dict[str, Any] = {"momentum": 0.99, "warmup": 50, "groups": 1, "finetune_epochs": 20}
    small |= VARIANTS["unit_length"] | VARIANTS["renewed_keys"]
    small |= QUICK_CHARACTERS if dataset in CHARACTERS else QUICK.get(dataset, QUICK_VIDEO)
    batch = changes.get("batch", small["batch"])
    small |= {"dictionary": max(small["dictionary"], batch), "pool": max(small["pool"], 4 * batch)}
    return paper(dataset, method, **(small | changes))


def smoke(dataset: str, method: str, **changes: Any) -> AudioVisualRecipe:
    """Two steps, to see that everything runs, no more."""
    tiny: dict[str, Any] = {"iterations": 2, "finetune_epochs": 1}
    if dataset in CHARACTERS:
        tiny |= {"batch": 16, "dictionary": 128, "pool": 256, "pairs": 512}
    elif dataset == "synthetic":
        tiny |= {"batch": 16, "pool": 512, "finetune_batch": 128}
    return quick(dataset, method, **(tiny | changes))


PRESETS = {"paper": paper, "quick": quick, "smoke": smoke}

CLIPS = Study(
    name="clips",
    recipe=AudioVisualRecipe,
    presets=PRESETS,
    variants=VARIANTS,
    load=Lazy("repro.audiovisual.study", "load"),
    learners=Lazy("repro.audiovisual.study", "learners"),
    measure=Lazy("repro.audiovisual.study", "measure"),
    probe=Lazy("repro.audiovisual.study", "along"),
    version=VERSION,
    evaluation=EVALUATION,
    constants=Lazy("repro.audiovisual.study", "constants"),
)
