"""The fields of a recipe as parameters of a table, and which recipes they make."""

import dataclasses
import functools
import inspect
import itertools

import pytest
from repro.run.table import checked_names, swept, with_variant

from repro.recipe import Recipe, setting


def of(*methods):
    return lambda recipe: recipe.method in methods


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small(Recipe):
    method: str = setting("plain", "paper", allowed=("plain", "heavy", "both"))
    depth: int = setting(1, "paper", least=1)
    weight: float = setting(1.0, "paper", least=0, used=of("heavy", "both"))
    power: int = setting(2, "paper", used=lambda recipe: recipe.method != "plain" and recipe.weight > 0)


def rows(*methods, **changes):
    return [functools.partial(Small, method=method, **changes) for method in methods]


def test_every_combination_row_by_row_and_equal_recipes_once():
    fields = {"depth": "1,3", "weight": [0.5, 2]}
    expected = [Small(method="plain", depth=depth) for depth in (1, 3)]
    expected += [Small(method=method, depth=depth, weight=weight)
                 for method in ("heavy", "both") for depth, weight in itertools.product((1, 3), (0.5, 2.0))]
    assert swept(rows("plain", "heavy", "both"), fields) == expected


def test_without_fields_the_rows_are_as_they_are():
    assert swept(rows("heavy", "plain", depth=4), {}) == [Small(method="heavy", depth=4), Small(depth=4)]


def test_whether_a_field_is_used_is_asked_with_what_else_is_asked_for():
    found = swept(rows("heavy"), {"weight": "0,1", "power": "2,5"})
    assert [(recipe.weight, recipe.power) for recipe in found] == [(0.0, 2), (1.0, 2), (1.0, 5)]


@pytest.mark.parametrize(("methods", "fields", "message"), [
    (["plain"], {"weight": 3}, r"^weight=3 changes nothing of plain; heavy, both use it: leave it out, or ch"),
    (["plain"], {"depth": 2, "power": "3,4"}, r"^power='3,4' changes nothing of plain; heavy, both use it"),
    (["heavy", "both"], {"weight": 0, "power": 3}, r"^power=3 changes nothing of heavy, both; "),
])
def test_a_field_that_no_row_uses_is_refused(methods, fields, message):
    with pytest.raises(ValueError, match=message):
        swept(rows(*methods), fields)


@pytest.mark.parametrize(("fields", "kind", "message"), [
    ({"dept": 2}, TypeError, "'dept' is not a field of Small; .*; did you mean 'depth'"),
    ({"depth": 0}, ValueError, "depth=0 should be at least 1"), ({"depth": "x"}, ValueError, "depth='x' should be"),
])
def test_other_fields_and_values_are_refused(fields, kind, message):
    with pytest.raises(kind, match=message):
        swept(rows("heavy"), fields)


def test_a_variant_is_a_bundle_of_fields_for_those_who_use_them():
    bundle = {"weight": 0.5, "power": 7}
    found = with_variant(rows("plain", "heavy"), {"depth": "1,2"}, "other", bundle)
    assert found == [Small(), Small(depth=2), Small(method="heavy", **bundle), Small(method="heavy", depth=2, **bundle)]
    assert with_variant(rows("plain", "heavy"), {}, "none", {}) == [Small(), Small(method="heavy")]


@pytest.mark.parametrize(("chosen", "bundle"), [("plain", {"weight": 0.5, "power": 7}), ("heavy", {"weight": 1.0})])
def test_a_variant_that_changes_no_recipe_is_refused(chosen, bundle):
    message = f"^variant='other' changes nothing in the training of {chosen}; leave it out, .* anyway: heavy, both$"
    with pytest.raises(ValueError, match=message):
        with_variant(rows(chosen), {}, "other", bundle)


@checked_names(Small)
def listed(dataset="synthetic", *, methods="plain", depth=5, **fields):
    """The cells."""
    return dataset, methods, depth, fields


def test_a_table_has_every_field_that_it_does_not_set_itself():
    parameters = inspect.signature(listed).parameters
    assert list(parameters) == ["dataset", "methods", "depth", "weight", "power"]  # a row's method is the table's own
    assert parameters["depth"].default == 5 and parameters["weight"].default == "auto"
    assert parameters["weight"].kind is inspect.Parameter.KEYWORD_ONLY
    assert listed.__name__ == "listed" and listed.__doc__ == "The cells."


def test_auto_leaves_a_field_to_the_preset():
    assert listed("ucla", weight="auto", power=3) == ("ucla", "plain", 5, {"power": 3})
    assert listed(depth="auto") == ("synthetic", "plain", "auto", {})  # the table's own has a meaning of its own


@pytest.mark.parametrize("name", ["method", "wieght"])
def test_another_parameter_is_refused_by_the_tables_name(name):
    with pytest.raises(TypeError, match=f"^'{name}' is not a parameter of listed; they are dataset, methods, de"):
        listed(**{name: 1})
