"""How far evidence carries: one list of levels for tables, claims and notebooks."""

from repro.data import manifest

CLOSED, PRINTED = "closed form", "printed numbers"
PAPER, QUICK, EMBEDDED = "paper recipe, real data", "quick, real data", "embedded data"
LEVELS = {  # those that carry furthest first, and what each allows
    CLOSED: "A formula or a simulation of one: nothing is trained.",
    PRINTED: "The paper's own numbers against its own sentences: whether these follow, not whether they are true.",
    PAPER: "Trained as printed, on the official data: a reproduction, to be held against the printed number as far as "
    "its seeds carry.",
    QUICK: "A smaller or otherwise changed recipe, or a part of the data: orders and mechanisms; no reproduction, and "
    "no verdict on a printed number.",
    EMBEDDED: "Data that come with the package: orders and mechanisms; printed numbers belong to other data.",
}


def level_of(dataset: str, preset: str, changed: bool = False) -> str:
    """How far numbers of ours carry, one of the last three levels.

    Args:
        dataset: its label; a part or copy, "ntu (subset)", is not the official data.
        preset: of the recipe.
        changed: whether the recipe departs from its preset.

    Raises:
        ValueError: if there is no such data set.
    """
    if manifest.embedded(dataset):
        return EMBEDDED
    return PAPER if preset == "paper" and dataset == manifest.plain(dataset) and not changed else QUICK


def rank(level: str) -> int:
    """The place of a level, 0 for that which carries furthest."""
    return list(LEVELS).index(level)
