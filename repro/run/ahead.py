"""What is needed next, made by a thread while the device is busy with what it has."""

import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Made = TypeVar("Made")


def ahead(items: Iterable[Made], *, early: bool) -> Iterator[Made]:
    """The items; if `early`, a thread asks for the next one while one is in use."""
    if not early:
        yield from items
        return
    source = iter(items)

    def following() -> list[Made]:
        return list(itertools.islice(source, 1))

    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(following)
        while item := coming.result():
            coming = worker.submit(following)
            yield from item
