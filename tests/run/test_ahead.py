"""Results made ahead are those of plain calls; what is dropped leaves no trace."""

import functools
import threading

import pytest
import torch

from repro.run.ahead import Ahead, ahead


class Draws:
    """Numbers of a generator, with the threads that drew them."""

    def __init__(self):
        self.generator, self.threads = torch.Generator().manual_seed(0), []

    def make(self):
        self.threads.append(threading.current_thread())
        return torch.rand((), generator=self.generator).item()

    def start(self, results):
        results.start(self.make, functools.partial(self.generator.set_state, self.generator.get_state()))


def plain(count):
    draws = Draws()
    return [draws.make() for _ in range(count)]


def test_results_are_those_of_plain_calls_and_made_in_another_thread_once_begun():
    draws, results, found = Draws(), Ahead(), []
    for turn in range(6):
        found.append(results.take(draws.make))
        if turn in (1, 3):
            draws.start(results)
            draws.start(results)  # is begun already
    assert found == plain(6)
    here = [thread is threading.main_thread() for thread in draws.threads]
    assert here == [True, True, False, True, False, True]


def test_what_is_dropped_is_made_again():
    draws, results = Draws(), Ahead()
    results.rewind()  # of nothing
    found = [results.take(draws.make)]
    for _ in range(3):
        draws.start(results)
        results.rewind()
    found.append(results.take(draws.make))
    assert found == plain(2) and len(draws.threads) == 5


def test_it_is_made_while_something_else_is_done():
    begun, may_end = threading.Event(), threading.Event()

    def make():
        begun.set()
        assert may_end.wait(60)
        return 1

    results = Ahead()
    results.start(make, pytest.fail)
    assert begun.wait(60)  # and this thread goes on
    may_end.set()
    assert results.take(pytest.fail) == 1


def test_an_error_comes_when_the_result_is_taken():
    def make():
        raise ValueError("no such item")

    results, undone = Ahead(), []
    results.start(make, pytest.fail)
    with pytest.raises(ValueError, match="no such item"):
        results.take(pytest.fail)
    results.start(make, lambda: undone.append(True))
    results.rewind()  # of which nobody wants to know
    assert undone


@pytest.mark.parametrize("early", [True, False])
def test_items_come_in_order(early):
    assert list(ahead((number**2 for number in range(5)), early=early)) == [0, 1, 4, 9, 16]
    assert list(ahead([], early=early)) == []
    assert list(ahead([None, None], early=early)) == [None, None]


@pytest.mark.parametrize("early", [True, False])
def test_one_item_is_asked_for_while_one_is_in_use(early):
    asked = [threading.Event() for _ in range(4)]

    def numbers():
        for number, event in enumerate(asked):
            event.set()
            yield number

    items = ahead(numbers(), early=early)
    assert next(items) == 0
    assert asked[1].wait(60 if early else 0) == early
    assert not asked[2].is_set()
    items.close()


@pytest.mark.parametrize("early", [True, False])
def test_an_error_of_an_item_comes_in_its_place(early):
    def numbers():
        yield 1
        raise OSError("damaged")

    items = ahead(numbers(), early=early)
    assert next(items) == 1
    with pytest.raises(OSError, match="damaged"):
        next(items)
