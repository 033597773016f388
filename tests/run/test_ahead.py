"""Results made ahead are those of plain calls; what is dropped leaves no trace."""

import functools
import threading

import pytest
import torch

from repro.run.ahead import Ahead, ahead


class Draws:
    """Numbers of a generator, with the threads that drew them."""

    def __init__(self):
        self.generator, self.in_main = torch.Generator().manual_seed(0), []

    def make(self):
        self.in_main.append(threading.current_thread() is threading.main_thread())
        return torch.rand((), generator=self.generator).item()

    def start(self, results):
        results.start(self.make, functools.partial(self.generator.set_state, self.generator.get_state()))


def plain(count):
    draws = Draws()
    return [draws.make() for _ in range(count)]


def test_results_are_those_of_plain_calls_made_in_another_thread_once_begun():
    draws, results, made = Draws(), Ahead(), []
    results.rewind()  # of nothing
    for turn in range(6):
        made.append(results.take(draws.make))
        if turn in (1, 3):
            draws.start(results)
            draws.start(results)  # is begun already
    assert made == plain(6) and draws.in_main == [True, True, False, True, False, True]


def test_what_is_dropped_is_made_again():
    draws, results = Draws(), Ahead()
    made = [results.take(draws.make)]
    for _ in range(3):
        draws.start(results)
        results.rewind()
    made.append(results.take(draws.make))
    assert made == plain(2) and len(draws.in_main) == 5


def test_an_error_comes_when_the_result_is_taken():
    def make():
        raise ValueError("no such item")

    results = Ahead()
    results.start(make, pytest.fail)
    with pytest.raises(ValueError, match="no such item"):
        results.take(pytest.fail)
    results.start(make, lambda: None)
    results.rewind()  # of which nobody wants to know
    assert results.take(lambda: 3) == 3


@pytest.mark.parametrize("early", [True, False])
def test_items_come_in_order_one_asked_for_while_one_is_in_use_and_errors_in_their_place(early):
    assert list(ahead([], early=early)) == [] and list(ahead([None, None], early=early)) == [None, None]
    asked = [threading.Event() for _ in range(3)]

    def numbers():
        for number, event in enumerate(asked):
            event.set()
            yield number
        raise OSError("damaged")

    items = ahead(numbers(), early=early)
    assert next(items) == 0
    assert asked[1].wait(60 if early else 0) == early and not asked[2].is_set()
    assert (next(items), next(items)) == (1, 2)
    with pytest.raises(OSError, match="damaged"):
        next(items)
