"""What cells are called, of a study whose recipes name what is trained in a field of their own."""

import dataclasses

from made_up_study import TOY, Toy, frame, stored

from repro.recipe import setting
from repro.report.logs import fullest
from repro.report.stored import labels, untrained


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shaped(Toy):
    """Named by a field that no recipe of the project has."""

    named_by = "shape"
    shape: str = setting("round", "paper", allowed=("random", "round", "square"))


def shaped(dataset, shape, **changes):
    return Shaped(dataset=dataset, shape=shape).replace(**changes)


def cells(*shapes, **changes):
    study = dataclasses.replace(TOY, recipe=Shaped, presets={"paper": shaped})
    recipes = [shaped("ucla", shape, **changes).to_dict() for shape in shapes]
    return study.tidy(frame(*(stored(recipe=recipe, **changes) for recipe in recipes)))


def test_cells_are_called_by_the_field_that_names_what_is_trained():
    found = cells("square", "random", depth=3)
    assert labels(found).tolist() == ["square, depth=3", "random, depth=3"]
    assert fullest(found.assign(departures=[{}, {}]))["entry"].tolist() == ["random, depth=3", "square, depth=3"]


def test_random_in_that_field_is_untrained():
    assert untrained(cells("square", "random")).tolist() == [False, True]
