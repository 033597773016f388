"""Items made ahead by a thread are those of a plain loop, and so are its errors."""

import threading

import pytest

from repro.data.parallel import ahead


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
