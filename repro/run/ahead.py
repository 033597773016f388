"""What is needed next, made by a thread while the device is busy with what it has."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Made = TypeVar("Made")


def ahead(items: Iterable[Made], *, early: bool) -> Iterator[Made]:
    """The items; if `early`, a thread asks for the next one while one is in use."""
    if not early:
        yield from items
        return
    source = iter(items)
    end: Any = object()
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = worker.submit(next, source, end)
            yield item
