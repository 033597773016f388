"""What cells are called, of a study whose recipes name what is trained in a field of their own."""

from made_up_study import SHAPED, frame, shaped, stored

from repro.report.logs import fullest, labels, untrained


def cells(*shapes, **changes):
    recipes = [shaped("ucla", shape, **changes).to_dict() for shape in shapes]
    return SHAPED.tidy(frame(*(stored(recipe=recipe, study="shapes", **changes) for recipe in recipes)))


def test_cells_are_called_by_the_field_that_names_what_is_trained():
    found = cells("square", "random", depth=3)
    assert labels(found).tolist() == ["square, depth=3", "random, depth=3"]
    assert fullest(found.assign(departures=[{}, {}]))["entry"].tolist() == ["random, depth=3", "square, depth=3"]


def test_random_in_that_field_is_untrained():
    assert untrained(cells("square", "random")).tolist() == [False, True]
