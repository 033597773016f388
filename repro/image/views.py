"""The views that a recipe asks for, and their parameters in words."""

import dataclasses

from repro.image import DATASETS, augment
from repro.image.augment import CentredView, ShiftedView, View
from repro.image.operations import Normalisation
from repro.image.recipe import MOCO, SCE, ImageRecipe, contrasts
from repro.recipe import Rows

SOURCES = {
    "strong": f"{SCE}, its strong view; also that of {MOCO}",
    "weak": f"{SCE}, its weak view",
    "shifted": f"{SCE}, section D",
    "crop": f"{MOCO}, whose scale is torchvision's default",
}


def normalisation(dataset: str) -> Normalisation:
    """What views of a data set are normalised by, as its manifest declares."""
    images = DATASETS[dataset].images
    return Normalisation(images.mean, images.deviation)


def training_views(recipe: ImageRecipe) -> dict[str, View]:
    """What training sees, by the fields that name them: the query's view and, unless it is supervised, a key's."""
    names = ("query_view", "key_view") if contrasts(recipe) else ("query_view",)
    normalised_by = normalisation(recipe.dataset)
    return {name: getattr(augment, getattr(recipe, name))(recipe.size, normalised_by) for name in names}


def probe_view(recipe: ImageRecipe) -> View | ShiftedView | CentredView:
    """What the linear probe is trained on."""
    if recipe.probe_view == "shifted":
        return ShiftedView(normalisation(recipe.dataset), recipe.probe_padding)
    if recipe.probe_view == "crop":
        return augment.probe(recipe.size, normalisation(recipe.dataset))
    return centred_view(recipe)


def centred_view(recipe: ImageRecipe) -> CentredView:
    """The view without randomness, which features are evaluated on."""
    return CentredView(recipe.size, normalisation(recipe.dataset), recipe.resize, recipe.square)


def described(recipe: ImageRecipe) -> Rows:
    """(parameter, value, source) of the views, as far as no field of the recipe has it."""
    views: dict[str, View | ShiftedView | CentredView] = {}
    if recipe.method != "random":
        views |= training_views(recipe)
    if recipe.probe_view != "centred":
        views["probe_view"] = probe_view(recipe)
    rows = []
    for name, view in views.items():
        unused = {"size", "normalisation", "padding"}
        unused |= {own for own, chance in (("strength", "jitter"), ("sigma", "blur")) if not getattr(view, chance, 0)}
        parameters = (field.name for field in dataclasses.fields(view) if field.name not in unused)
        source = SOURCES[getattr(recipe, name)]
        rows += [(f"{name}.{parameter}", getattr(view, parameter), source) for parameter in parameters]
    parts, source = normalisation(recipe.dataset)._asdict(), DATASETS[recipe.dataset].images.source
    return [*rows, *((f"normalisation.{part}", value, source) for part, value in parts.items())]
