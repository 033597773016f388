import dataclasses
import json
import re

import pytest

from repro.recipe import Recipe, choose, parse_number, parse_numbers, setting
from repro.run.store import Run


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small(Recipe):
    name: str = setting("ucla", "paper, Table 1", allowed=("ucla", "ntu"))
    epochs: int = setting(150, "released code")
    rate: float = setting(0.5, "assumed")
    crop: int | None = setting(50, "paper")
    twice: bool = setting(False, "paper")
    batch: int | None = setting(8, "paper", least=2)
    share: float = setting(0.5, "paper", least=0, most=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grown(Small):
    """`Small` after three fields were added; before, nothing was dropped, the loss was "l1" and there was no limit."""

    dropped: float = setting(0.1, "paper", before=0)
    loss: str = setting("l1", "released code", allowed=("l1", "squared"), before="l1")
    limit: int | None = setting(None, "paper", before=None)


def id_of(recipe: Recipe) -> str:
    return Run(
        study="skeletons", recipe=recipe, seed=0, preset="quick", dataset="ucla", digest="digest", version=1
    ).id


def test_choose_returns_an_allowed_value_or_names_parameter_value_options_and_the_closest():
    for value in ("ucla", "ntu"):
        assert choose("dataset", value, iter(("ucla", "ntu"))) is value  # which can be read once
    with pytest.raises(ValueError, match=r"^did you mean 'ucla'\? dataset='ulca' is not one of: ucla, ntu$"):
        choose("dataset", "ulca", iter(("ucla", "ntu")))
    with pytest.raises(ValueError, match=r"^dataset='xyz' is not one of: ucla, ntu$"):
        choose("dataset", "xyz", ("ucla", "ntu"))


@pytest.mark.parametrize(("value", "allowed"), [
    (True, (1, 2)), (1, (True, False)), (1.0, (1, 2)), ("1", (1, 2)), (1, ("1", "2")), (None, ("none",)), ([], ("a",)),
])
def test_choose_takes_no_value_of_another_type(value, allowed):
    with pytest.raises(ValueError, match="is not one of"):
        choose("parameter", value, allowed)


@pytest.mark.parametrize(("value", "numbers"), [
    (0, [0]), ("0", [0]), (12, [12]), ("007", [7]), ("0,1,2", [0, 1, 2]), (" 2 , 0,1", [2, 0, 1]),
    ("0" * 99 + "7", [7]), ("0-4", [0, 1, 2, 3, 4]), ("0-2,5", [0, 1, 2, 5]), ("7,0-1", [7, 0, 1]),
    ([3, "0-1"], [3, 0, 1]),
])
def test_whole_numbers_are_read(value, numbers):
    parsed = parse_numbers("seeds", value)
    assert parsed == numbers and all(type(number) is int for number in parsed)


@pytest.mark.parametrize(("value", "message"), [
    *((value, re.escape(f"seeds={value!r} should be a comma list of whole numbers from 0"))
      for value in (True, -1, "-1", "+1", "a", "", 1.0, "1e3", "0x10", None, "0;1", "9,1.0", "9,+1", "9,1_000",
                    "9,\u00b2", "9,")),
    ("4-0", "should be a whole number of at least 4"), ("0-1,1", "names 1 twice"), ("0-", "should be a whole number"),
    ("0-4294967295", "a range of more than 1000 numbers"), ("9" * 5000, "should be at most 4294967295"),
])
def test_what_is_no_list_of_whole_numbers_is_refused(value, message):
    with pytest.raises(ValueError, match=message):
        parse_numbers("seeds", value)


@pytest.mark.parametrize(("value", "least"), [(0, 1), ("6", 7), (True, 0), (None, 0)])
def test_a_number_that_is_too_small_or_none_is_refused(value, least):
    with pytest.raises(ValueError, match=f"^layers={value!r} should be a whole number of at least {least}$"):
        parse_number("layers", value, least=least)


def test_an_unknown_field_raises():
    with pytest.raises(TypeError, match="epoch"):
        Small(epoch=3)
    for make in (Small.from_dict, lambda values: Small().replace(**values)):
        with pytest.raises(TypeError) as raised:
            make({"name": "ntu", "epoch": 3})
        assert str(raised.value) == ("did you mean 'epochs'? field of Small='epoch' is not one of: "
                                     "name, epochs, rate, crop, twice, batch, share")


@pytest.mark.parametrize(("field", "value", "expected"), [
    ("epochs", 1.0, "int"), ("epochs", "1", "int"), ("epochs", True, "int"), ("epochs", None, "int"),
    ("rate", "0.5", "float"), ("rate", True, "float"), ("rate", None, "float"), ("twice", 1, "bool"),
    ("name", 3, "str"), ("crop", 5.0, "int or NoneType"), ("crop", True, "int or NoneType"),
])
def test_a_value_of_another_type_raises(field, value, expected):
    with pytest.raises(TypeError) as raised:
        Small(**{field: value})
    assert str(raised.value) == f"{field}={value!r} is of type {type(value).__name__}; it should be {expected}"


def test_recipes_are_frozen_and_survive_their_dictionary():
    recipe = Small(name="ntu", rate=2, crop=None, twice=True)
    assert str(recipe.replace(rate=-0.0).rate) == "0.0"  # one training has one id
    assert type(recipe.rate) is float and recipe.canonical() == recipe.replace(rate=2.0).canonical()
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.epochs = 3
    assert recipe.replace(epochs=3).epochs == 3 and recipe.epochs == 150
    assert Small.from_dict(recipe.to_dict()) == recipe == recipe.replace()
    with pytest.raises(ValueError, match=r"^did you mean 'ntu'\? name='nto' is not one of: ucla, ntu"):
        Small(name="nto")


@pytest.mark.parametrize("values", [{}, {"name": "ntu", "epochs": 3, "rate": 0.25, "crop": None, "twice": True}])
def test_an_added_field_at_its_earlier_behaviour_alone_keeps_the_id(values):
    earlier = Grown.from_dict(Small(**values).to_dict())
    assert (earlier.dropped, earlier.loss, Grown().dropped) == (0.0, "l1", 0.1)
    assert id_of(Grown(**values, dropped=0)) == id_of(Small(**values)) == id_of(earlier)
    for change in ({}, {"dropped": 0.2}, {"dropped": 0.0, "loss": "squared"}, {"dropped": 0.0, "limit": 9}):
        assert id_of(Grown(**values, **change)) != id_of(Small(**values))


@pytest.mark.parametrize(("field", "value"), [("epochs", 2**32), ("rate", -(2**32)), ("crop", 10**400)])
def test_a_field_that_is_far_too_large_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=rf"^{field}=.* should be at most 4294967295$"):
        Small(**{field: value})


@pytest.mark.parametrize(("field", "value", "bounds"), [
    ("batch", 1, "at least 2"), ("share", -0.01, "between 0 and 1"), ("share", 1.01, "between 0 and 1"),
])
def test_a_number_beyond_the_bounds_of_its_field_is_refused(field, value, bounds):
    Small(batch=2, share=0), Small(batch=None, share=1)
    with pytest.raises(ValueError, match=rf"^{field}={value} should be {bounds}$"):
        Small(**{field: value})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Used(Recipe):
    """Of two methods, each with a weight of its own."""

    method: str = setting("plain", "paper", allowed=("plain", "heavy", "both"))
    precision: str = setting(
        "auto", "assumed", allowed=("auto", "half", "single"), hashed_as={"auto": "half", "half": "half, asked for"}
    )
    weight: float = setting(1.0, "paper", used=lambda recipe: recipe.method != "plain")
    select: str = setting("last", "assumed", allowed=("last", "best"))
    every: int = setting(10, "assumed", used=lambda recipe: recipe.select == "best")
    crop: int | None = setting(50, "paper")
    twice: bool = setting(False, "paper")


def test_a_value_that_was_renamed_keeps_the_id_of_its_former_name():
    hashed = {value: json.loads(Used(precision=value).canonical())["precision"] for value in ("auto", "half", "single")}
    assert hashed == {"auto": "half", "half": "half, asked for", "single": "single"}
    assert len({id_of(Used(precision=value)) for value in hashed}) == 3


def test_a_field_is_used_by_all_unless_it_says_by_whom():
    plain = Used()
    assert plain.uses("crop") and plain.uses("method") and not plain.uses("weight") and not plain.uses("every")
    assert plain.uses("weight", method="heavy") and plain.uses("every", select="best", crop=3)
    assert (plain.method, plain.select) == ("plain", "last")  # nothing was changed
    assert plain.users("weight") == ["heavy", "both"] and plain.users("crop") == ["plain", "heavy", "both"]
    assert plain.users("every") == [] and Used(select="best").users("every") == ["plain", "heavy", "both"]


@pytest.mark.parametrize(("name", "given", "values"), [
    ("weight", 2, [2.0]), ("weight", "2,0.5", [2.0, 0.5]), ("weight", [1e-3, "4"], [1e-3, 4.0]), ("every", "3", [3]),
    ("every", (1, 2), [1, 2]), ("every", "-3", [-3]), ("crop", None, [None]), ("crop", "none,8", [None, 8]),
    ("twice", "true,False", [True, False]),
    ("twice", True, [True]), ("select", "best, last", ["best", "last"]), ("precision", "auto", ["auto"]),
])
def test_what_is_asked_of_a_field_is_read_as_its_type(name, given, values):
    parsed = Used.parse(name, given)
    assert parsed == values
    assert [type(value) for value in parsed] == [type(value) if name != "weight" else float for value in values]


@pytest.mark.parametrize(("name", "given", "message"), [
    ("every", "1.5", "every='1.5' should be a whole number$"), ("every", True, "every=True should be a whole number$"),
    ("weight", "-0.1e-400", "weight='-0.1e-400' is so small that it would be read as 0; write 0"),
    ("weight", "heavy", "weight='heavy' should be a number$"), ("weight", "0,001", "weight='001' should be a number$"),
    ("twice", "1", "twice='1' should be true or false$"),
    ("crop", "half", "crop='half' should be a whole number or none$"), ("every", "1,1", "every='1,1' names 1 twice"),
    ("weight", "1,1.0", "weight='1,1.0' names 1.0 twice"), ("every", "1,", "every='' should be a whole number$"),
    ("every", "--3", "every='--3' should be a whole number$"), ("every", [], r"every=\[\] names nothing; leave it out"),
    ("every", (), r"every=\(\) names nothing"),
])
def test_what_is_asked_of_a_field_in_another_form_is_refused_by_name(name, given, message):
    with pytest.raises(ValueError, match=message):
        Used.parse(name, given)
