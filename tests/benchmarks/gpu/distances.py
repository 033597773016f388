"""How near the hot paths come to what the device can do."""

from typing import Any


def distances(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Of every hot path, the share of its limit that it reaches.

    Args:
        found: all sections; their parts list under "work" what they did: a path, its limit (a part of "limits"), the
            amount in bytes or operations, and seconds.
    """
    rates = {name: part["rate"] for name, part in _parts(found.get("limits", {})) if "rate" in part}
    works = [work for section in found.values() for _, part in _parts(section) for work in part.get("work", [])]
    return [
        {"path": each["path"], "limit": each["limit"],
         "share": each["amount"] / each["seconds"] / rates[each["limit"]]}
        for each in works if each["limit"] in rates
    ]


def short(found: Any) -> Any:
    """What a reader wants at first: all but long tables and the amounts behind the shares."""
    if not isinstance(found, dict):
        return found
    return {name: short(value) for name, value in found.items() if name not in ("table", "work")}


def _parts(section: Any) -> list[tuple[str, dict[str, Any]]]:
    parts = section.items() if isinstance(section, dict) else ()
    return [(name, part) for name, part in parts if isinstance(part, dict)]
