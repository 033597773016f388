"""What is read from JSON files of ours: objects of finite numbers and of parts with the types that were written."""

import json
import math
import reprlib
from collections.abc import Mapping
from typing import Any


def parse_json(text: str) -> dict[str, Any]:
    """The object that a text of ours holds.

    Raises:
        ValueError: if it is no JSON object, or a number in it is not finite or beyond 64 bits, which we never write.
    """
    try:
        value = json.loads(text, parse_float=_finite, parse_constant=_finite, parse_int=_whole)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"it holds a {type(value).__name__}")
    return value


def check_parts(values: Mapping[str, Any], parts: Mapping[str, type]) -> None:
    """Raise ValueError unless all parts are there, each of its type; there may be more."""
    missing = [name for name in parts if name not in values]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    for name, kind in parts.items():
        if type(values[name]) is not kind:
            raise ValueError(f"{name} is {reprlib.repr(values[name])}")


def check_metrics(metrics: Mapping[str, Any]) -> None:
    """Raise ValueError unless all are numbers or texts."""
    for name, value in metrics.items():
        if type(value) not in (int, float, str):
            raise ValueError(f"{name} is {reprlib.repr(value)}")


def _whole(text: str) -> int:
    value = int(text)
    if abs(value) >= 2**63:
        raise ValueError(f"{reprlib.repr(text)} is too large")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value
