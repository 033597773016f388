"""Recipes: every hyper-parameter of one training run, typed, sourced and hashable."""

import copy
import dataclasses
import difflib
import functools
import json
import math
import re
import reprlib
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

Values = dict[str, tuple[Any, str]]  # a value and its source, by field
Rows = list[tuple[str, Any, str]]     # name, value and source
LARGEST = 2**32 - 1  # of a whole number; seeds of every library go up to here
LONGEST = 1000  # range of whole numbers
WORDS = {"none": None, "true": True, "false": False}
EXPECTED = {int: "a whole number", float: "a number", bool: "true or false", type(None): "none"}


def choose(parameter: str, value: Any, allowed: Iterable[Any], error: type[Exception] = ValueError) -> Any:
    """`value` if it is one of `allowed`; else the error names the closest one, the parameter, the value and these."""
    allowed = list(allowed)
    if any(type(value) is type(option) and value == option for option in allowed):
        return value
    options = [str(option) for option in allowed]
    lowered = {option.lower(): option for option in options}
    close = difflib.get_close_matches(str(value).lower(), [*lowered], n=1)
    hint = f"did you mean {lowered[close[0]]!r}? " if close else ""
    raise error(f"{hint}{parameter}={value!r} is not one of: {', '.join(options)}")


def in_words(changes: Mapping[str, Any]) -> str:
    """Fields and their values as text, as they are typed: "layers=3, td_crop=none"; nothing of none."""
    return ", ".join(f"{name}={'none' if value in (None, '') else value}" for name, value in changes.items())


def entry_name(named: str, changes: Mapping[str, Any]) -> str:
    """What is trained and what differs from its preset, as a recipe is called in texts: "AE, layers=3"."""
    return ", ".join(filter(None, (named, in_words(changes))))


def parse_number(parameter: str, value: Any, *, least: int = 0) -> int:
    """A whole number from `least` to `LARGEST`, given as an integer or as text; else ValueError names the two."""
    text = str(value).strip()
    if isinstance(value, bool) or not text.isdecimal() or float(text) < least:
        raise ValueError(f"{parameter}={value!r} should be a whole number of at least {least}")
    if float(text) > LARGEST:  # of any length, which `int` does not read
        raise ValueError(f"{parameter}={value!r} should be at most {LARGEST}")
    return int(text)


def parse_numbers(parameter: str, value: Any) -> list[int]:
    """Distinct whole numbers of a comma list of numbers and ranges such as "0-2,5", in its order.

    Raises as `parse_number` and `distinct`.
    """
    numbers: list[int] = []
    try:
        for part in map(str, swept(value)):
            low, dash, high = part.partition("-")
            first = parse_number(parameter, low if low else part)
            last = parse_number(parameter, high, least=first) if dash else first
            if last - first >= LONGEST:
                raise ValueError(f"{part.strip()} is a range of more than {LONGEST} numbers")
            numbers.extend(range(first, last + 1))
    except ValueError as error:
        expected = "a comma list of whole numbers from 0 and ranges, such as 1,2,3 or 0-4"
        raise ValueError(f"{parameter}={value!r} should be {expected} ({error})") from error
    return distinct(parameter, value, numbers)


def swept(given: Any) -> list[Any]:
    """The values of a sweep: those of a list, what stands between the commas of a text, or the one there is."""
    if isinstance(given, str):
        return given.split(",")
    return list(given) if isinstance(given, list | tuple) else [given]


def distinct(parameter: str, value: Any, items: Iterable[Any]) -> list[Any]:
    """The items of a list that a user has given as `value`; ValueError if there is none, or names one that is twice."""
    items = list(items)
    if not items:
        raise ValueError(f"{parameter}={value!r} names nothing; leave it out, or name what there should be")
    for place, item in enumerate(items):
        if item in items[:place]:
            raise ValueError(f"{parameter}={value!r} names {item} twice; name it once")
    return items


def setting(
    default: Any,
    source: str,
    *,
    allowed: Iterable[Any] | None = None,
    least: float | None = None,
    most: float = math.inf,
    before: Any = dataclasses.MISSING,
    hashed_as: Mapping[Any, Any] | None = None,
    used: Callable[[Any], bool] = lambda recipe: True,
    evaluation: bool = False,
) -> Any:
    """A field of a recipe.

    Args:
        default: the value of the paper's recipe.
        source: where the default comes from: "paper", "released code" (with the file), or "assumed".
        allowed: the values the field may take, if they can be listed.
        least, most: of a number, which is then finite; the largest only with the smallest.
        before: for a field added after results were published, the value that reproduces the earlier behaviour.
            A recipe holding that value keeps the id it had before the field existed.
        hashed_as: what stands for a value in the id, where values were renamed after results were published, or train
            otherwise than they did.
        used: whether a recipe's training or evaluation depends on the field. Where it does not, a field that is asked
            for stays as the preset has it, so that equal trainings have equal ids.
        evaluation: whether only what follows the first learner's training depends on the field. A run that leaves its
            preset in such fields alone is measured from the weights that the preset's run is measured from.
    """
    metadata = {"source": source, "allowed": None if allowed is None else tuple(allowed), "before": before}
    metadata |= {"least": least, "most": most, "hashed_as": hashed_as or {}, "used": used}
    metadata |= {"evaluation": evaluation}
    return dataclasses.field(default=default, metadata=metadata)


def of(*methods: str) -> Callable[[Any], bool]:
    """Whether a recipe is of one of the methods."""
    return lambda recipe: getattr(recipe, recipe.named_by) in methods


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """Base of the papers' recipes. Subclasses declare their fields with `setting`.

    Attributes:
        lanes: how many runs a GPU trains at once, in turns; one, if it keeps a GPU busy.
        gpu_precision: of matrix products on a GPU, where `precision` is "auto".
        named_by: the field that names what is trained ("random": nothing), whose values say who uses another field.
        threads, precision: fields of every recipe that is trained: CPU threads to compute with, part of a CPU result,
            and the type of matrix products, "auto", "float32" or "bfloat16".

    Raises:
        TypeError: if a value has not the type its field declares, or a field is unknown.
        ValueError: if a value is not among those its field allows, or a whole number larger than `LARGEST`.
    """

    lanes: ClassVar[int] = 1
    gpu_precision: ClassVar[str] = "bfloat16"
    named_by: ClassVar[str] = "method"

    if typing.TYPE_CHECKING:
        threads: int
        precision: str

    def __post_init__(self) -> None:
        types = _types_of(type(self))
        for field in dataclasses.fields(self):
            name, value, kinds = field.name, getattr(self, field.name), types[field.name]
            if type(value) is int and abs(value) > LARGEST:
                raise ValueError(f"{name}={reprlib.repr(value)} should be at most {LARGEST}")
            if float in kinds and type(value) in (int, float):
                object.__setattr__(self, name, value + 0.0)  # -0.0 is 0.0, which has its id
            elif type(value) not in kinds:
                expected = " or ".join(kind.__name__ for kind in kinds)
                raise TypeError(f"{name}={value!r} is of type {type(value).__name__}; it should be {expected}")
            if type(value) is float and not math.isfinite(value):
                raise ValueError(f"{name}={value} should be finite")
            if field.metadata.get("allowed") is not None:
                choose(name, value, field.metadata["allowed"])
            least, most = field.metadata.get("least"), field.metadata.get("most")
            if least is not None and value is not None and not least <= value <= most:
                expected = f"at least {least}" if most == math.inf else f"between {least} and {most}"
                raise ValueError(f"{name}={value} should be {expected}")

    @property
    def main_measures(self) -> Sequence[str]:
        """What tables are about, and a result without is damaged."""
        return ("linear",)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """A recipe from stored values; a field that came later has the value of the earlier behaviour.

        TypeError lists the fields if `values` names one that does not exist.
        """
        for name in values:
            choose(f"field of {cls.__name__}", name, [field.name for field in dataclasses.fields(cls)], TypeError)
        earlier = {field.name: field.metadata.get("before", dataclasses.MISSING) for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in earlier.items() if value is not dataclasses.MISSING} | values)

    def to_dict(self) -> dict[str, Any]:
        """Field names and values, ready for JSON."""
        return dict(vars(self))

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed; unknown fields raise as in `from_dict`."""
        return self.from_dict(self.to_dict() | changes)

    @classmethod
    def printed(cls, dataset: str, named: str, **changes: Any) -> Self:
        """The printed and released values for a data set and what is trained, a value of `named_by`.

        `changes` replace fields. TypeError and ValueError as of a recipe.
        """
        recipe = cls(**{"dataset": dataset, cls.named_by: named})
        return recipe.replace(**{name: value for name, (value, _) in recipe.particular().items()} | changes)

    @classmethod
    def evaluation_fields(cls) -> list[str]:
        """The fields that training does not depend on, see `setting`."""
        return [field.name for field in dataclasses.fields(cls) if field.metadata.get("evaluation")]

    def canonical(self) -> str:
        """JSON with sorted names, without the fields that stand at the behaviour before they existed."""
        hashed = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.metadata.get("before", dataclasses.MISSING):
                hashed[field.name] = field.metadata.get("hashed_as", {}).get(value, value)
        return json.dumps(hashed, sort_keys=True)

    def uses(self, name: str, **asked: Any) -> bool:
        """Whether training or evaluation depends on a field, supposing values `asked` for, which are not checked."""
        supposed = copy.copy(self)
        for field, value in asked.items():
            object.__setattr__(supposed, field, value)
        return type(self).__dataclass_fields__[name].metadata["used"](supposed)

    def users(self, name: str) -> list[str]:
        """The methods that use a field, the rest of the recipe being as here."""
        methods = type(self).__dataclass_fields__[self.named_by].metadata["allowed"]
        return [method for method in methods if self.uses(name, **{self.named_by: method})]

    @classmethod
    def parse(cls, name: str, given: Any) -> list[Any]:
        """The values of a field that are asked for: one, a list of them, or as text "10,30,150", which sweeps.

        ValueError names the field and a value of another kind or there twice.
        """
        kinds = _types_of(cls)[name]
        return distinct(name, given, (_value(name, part, kinds) for part in swept(given)))

    def particular(self) -> Values:
        """Where the paper's recipe for this data set and method leaves the defaults, with the sources."""
        return {}


def _value(parameter: str, given: Any, kinds: tuple[type, ...]) -> Any:
    """A value of one of the kinds, given as such or as text; raises ValueError naming the parameter and the kinds."""
    text = str(given).strip()
    word = WORDS.get(text.lower(), text)
    if type(word) in kinds:
        return word
    for kind in (int, float):
        if kind in kinds and "_" not in text and not re.match(r"[+-]?0\d", text):  # Python takes 1_0, and "0,01" is two
            try:
                value = kind(text)
            except ValueError:
                continue
            if vanishes(text):
                raise ValueError(f"{parameter}={given!r} is so small that it would be read as 0; write 0, or more")
            return value
    raise ValueError(f"{parameter}={given!r} should be {' or '.join(EXPECTED.get(kind, 'text') for kind in kinds)}")


def vanishes(number: str) -> bool:
    """Whether a number in decimal digits is nearer to 0 than any other that is not 0, such as 1e-400."""
    return float(number) == 0 and re.match(r"[+-]?[0.]*[1-9]", number) is not None


@functools.cache  # tables make thousands of recipes
def _types_of(recipe: type[Recipe]) -> dict[str, tuple[type, ...]]:
    """The plain types that each field of a recipe may have: of `int | None` these are int and NoneType."""
    hints = typing.get_type_hints(recipe)
    return {field.name: typing.get_args(hints[field.name]) or (hints[field.name],)
            for field in dataclasses.fields(recipe)}
