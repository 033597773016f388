"""Verdicts on sentences of a paper, and how far what they rest on carries."""

from repro.data import manifest

HOLDS, FAILS, UNDECIDED, NOT_RUN, CANNOT = "holds", "fails", "undecided", "not run", "cannot be checked"
CONSISTENT, CONTRADICTS = "self-consistent", "contradicts itself"  # of a paper held against its own numbers
VERDICTS = (HOLDS, FAILS, CONSISTENT, CONTRADICTS, UNDECIDED, NOT_RUN, CANNOT)
NOT_MEASURED = "not measured"  # said of a discrepancy
CLOSED, PRINTED = "closed form", "printed numbers"
PAPER, SHORTENED, BUNDLED = "paper recipe, real data", "shortened, real data", "bundled data"
LEVELS = {  # of evidence, those that carry furthest first, and what each allows
    CLOSED: "A formula or a simulation of one: nothing is trained.",
    PRINTED: "The paper's own numbers against its own sentences: whether it contradicts itself, not whether it is "
    "true.",
    PAPER: "Trained as printed, on the official data: a reproduction, to be held against the printed number as far as "
    "its seeds carry.",
    SHORTENED: "A smaller or otherwise changed recipe, or a part of the data: orders and mechanisms; no reproduction, "
    "and no verdict on a printed number.",
    BUNDLED: "Data that come with the package: orders and mechanisms; printed numbers belong to other data.",
}


def level_of(dataset: str, preset: str, changed: bool = False) -> str:
    """How far numbers of ours carry, one of the last three of `LEVELS`.

    Args:
        dataset: its label; a part or copy, "ntu (subset)", is not the official data.
        preset: of the recipe.
        changed: whether the recipe departs from its preset.

    Raises:
        ValueError: if there is no such data set.
    """
    if manifest.bundled(dataset):
        return BUNDLED
    return PAPER if preset == "paper" and dataset == manifest.plain(dataset) and not changed else SHORTENED


def rank(level: str) -> int:
    """The place of a level, 0 for that which carries furthest."""
    return list(LEVELS).index(level)
