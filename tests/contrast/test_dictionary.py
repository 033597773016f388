"""The dictionary against `collections.deque`, its state and its initial contents."""

from collections import deque

import pytest
import torch

from repro.contrast.dictionary import Dictionary, unit_noise
from repro.contrast.objectives import info_nce


def numbered(start, count):
    """`count` keys of two features that carry their own number."""
    return torch.arange(start, start + count, dtype=torch.float32).unsqueeze(1).expand(count, 2).clone()


def by_age(dictionary):
    """The numbers of the entries, oldest first."""
    return dictionary.entries.roll(-dictionary.pointer.item(), dims=0)[:, 0].tolist()


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("batches", [[1] * 9, [3, 3, 3, 3], [7, 2, 7], [2, 5, 1, 4, 6], [8, 1, 20, 3], [14, 7, 1]])
def test_enqueue_equals_a_deque(size, batches):
    initial = numbered(-size, size)
    dictionary, reference, start = Dictionary(initial), deque(range(-size, 0), maxlen=size), 0
    for count in batches:
        dictionary.enqueue(numbered(start, count).requires_grad_())
        reference.extend(range(start, start + count))
        start += count
        assert by_age(dictionary) == list(reference) and dictionary.pointer.item() == start % size
        assert torch.equal(dictionary.entries[:, 0], dictionary.entries[:, 1]) and not dictionary.entries.requires_grad
    assert torch.equal(initial, numbered(-size, size))  # it was copied


def test_entries_of_any_shape_keep_their_precision():
    dictionary = Dictionary(torch.zeros(3, 4, 2, dtype=torch.float64))
    dictionary.enqueue(torch.ones(2, 4, 2, dtype=torch.bfloat16))
    assert dictionary.entries.dtype == torch.float64 and dictionary.entries.sum((1, 2)).tolist() == [8, 8, 0]


def test_pointer_stays_a_tensor_and_no_value_is_read_back():
    dictionary = Dictionary(torch.empty(7, 3, device="meta"))
    pointer, entries = dictionary.pointer, dictionary.entries
    dictionary.enqueue(torch.empty(5, 3, device="meta"))  # reading a meta tensor raises
    assert dictionary.pointer is pointer and dictionary.entries is entries
    assert (pointer.dtype, pointer.ndim, pointer.device.type) == (torch.int64, 0, "meta")


def test_enqueue_after_backward_is_safe_and_before_backward_raises():
    dictionary = Dictionary(numbered(0, 3))
    query = torch.ones(2, 2, requires_grad=True)
    info_nce(query, numbered(5, 2), dictionary.entries, 1.0).backward()
    dictionary.enqueue(numbered(10, 2))
    assert query.grad.isfinite().all()
    loss = info_nce(query, numbered(5, 2), dictionary.entries, 1.0)
    dictionary.enqueue(numbered(20, 2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


DICTIONARY = Dictionary(numbered(0, 4))


@pytest.mark.parametrize(("take", "shape", "message"), [
    *((DICTIONARY.enqueue, shape, r"; this dictionary takes \(n >= 1, 2\)")
      for shape in ((2, 3), (2,), (2, 2, 2), (0, 2))),
    *((Dictionary, shape, r"; it should be \(K, \.\.\.\)") for shape in ((0, 2), (3,), (3, 0))),
])
def test_keys_and_contents_of_another_shape_are_refused(take, shape, message):
    with pytest.raises(ValueError, match=rf"shape \({', '.join(map(str, shape))},?\){message}"):
        take(torch.zeros(shape))
    assert by_age(DICTIONARY) == [0, 1, 2, 3]


def test_initial_noise_lies_on_the_sphere():
    unit, again = (unit_noise(400, 16, generator=torch.Generator().manual_seed(0)) for _ in range(2))
    assert unit.shape == (400, 16) and torch.equal(unit, again)
    torch.testing.assert_close(unit.norm(dim=1), torch.ones(400))
    assert unit.mean(0).norm() < 3 / 400**0.5  # the mean of 400 random directions has norm about 0.05
