"""What training needs next, made by a thread while the device is busy with what it has."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Ahead(Generic[Made]):
    """Results of a function whose calls depend on one another, as by a generator of random numbers; one made ahead.

    Between `start` and the next `take` or `rewind` nothing else may touch what the function changes. The results are
    then those of plain calls. Functions are given with each call and not kept: a learner whose methods they are goes,
    and frees its memory, as soon as nobody uses it.
    """

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(1)
        self._begun: tuple[Future[Made], Callable[[], None]] | None = None

    def start(self, make: Callable[[], Made], undo: Callable[[], None]) -> None:
        """Begin to make the next result; `undo` takes back what that changes."""
        if self._begun is None:
            self._begun = self._worker.submit(make), undo

    def take(self, make: Callable[[], Made]) -> Made:
        """The next result, made now unless it was begun; raises what `make` raised."""
        if self._begun is None:
            return make()
        (result, _), self._begun = self._begun, None
        return result.result()

    def rewind(self) -> None:
        """Drop what was begun, as if it never had been."""
        if self._begun is not None:
            (result, undo), self._begun = self._begun, None
            wait([result])
            undo()


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
