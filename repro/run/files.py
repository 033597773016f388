"""What is read from files of ours: JSON objects of what we write into them, and whole lines of CSV files."""

import csv
import json
import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping
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


def whole_lines(text: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV file, its header first, each with its number; of an empty file, an empty header.

    Args:
        text: of the file, opened with `newline=""`.

    Raises:
        ValueError: if a line has more or fewer values than the header, or a quotation does not end.
    """
    reader = csv.reader(text, strict=True)
    try:
        header = next(reader, [])
        yield reader.line_num, header
        for row in reader:
            if len(row) != len(header):
                raise ValueError(f"line {reader.line_num}: {len(row)} values, expected {len(header)}")
            yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(f"{error}") from error


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
