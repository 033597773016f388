"""What learners save and runs leave, compared."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from repro.run.fit import load_checkpoint


def assert_equal_states(first, second):
    """Equal bit by bit, whatever the nesting; NaN, of what was not measured yet, equals NaN."""
    assert type(first) is type(second)
    if isinstance(first, torch.Tensor):
        assert first.dtype == second.dtype and torch.equal(first, second)
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for name in first:
            assert_equal_states(first[name], second[name])
    elif isinstance(first, (list, tuple)):
        for one, other in zip(first, second, strict=True):
            assert_equal_states(one, other)
    else:
        assert first == second or (first != first and second != second)


def outcome(folder: Path) -> dict[str, Any]:
    """All that runs have left below a folder and must not depend on what happened on the way, by name of the file."""
    return {
        str(path.relative_to(folder)): _timeless(path) for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("lock", "owner.json") and path.suffix != ".lock"
    }


def differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Names of what is otherwise, missing, or too much."""
    return sorted(name for name in found.keys() | expected.keys()
                  if name not in found or name not in expected or not _equal(found[name], expected[name]))


def _timeless(path: Path) -> Any:
    """The contents of a file without times and costs."""
    if path.name == "checkpoint.pt":
        return load_checkpoint(path.parent) | {"seconds": None, "cost": None}
    if path.name == "result.json":
        result = json.loads(path.read_text())
        return result | {"cost": result["cost"]["steps"]}
    if path.name == "progress.jsonl":
        return [json.loads(line) | {"seconds": None} for line in path.read_text().splitlines()]
    return path.read_bytes()


def _equal(first: Any, second: Any) -> bool:
    try:
        assert_equal_states(first, second)
    except AssertionError:
        return False
    return True
