"""What stands for a recording where there is no GPU: steps are taken as they are there, and watched.

A recording repeats the same orders on the same places in memory. So a step that can be recorded reads no value and asks
for nothing that depends on values, and it gives the same orders every time: the same operations on tensors of the same
shapes, with the same numbers that are no tensors, on what was there before it at the same places.
"""

import math
from collections import Counter
from itertools import zip_longest
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from repro.run.recorded import Buffers, Recorded

READING = ("_local_scalar_dense", "nonzero", "masked_select", "masked_scatter_", "masked_scatter", "_unique",
           "_unique2", "is_nonzero", "equal", "allclose", "item", "bincount", "multinomial", "repeat_interleave",
           "lift_fresh")  # the last is a tensor made of numbers, which a device waits for
INDEXED, MASKS = ("index", "index_put_", "_index_put_impl_"), (torch.bool, torch.uint8)


class Orders(TorchDispatchMode):
    """Notes all operations, with what each is given and gives.

    Args:
        reads: whether a value may be read; else RuntimeError is raised at an operation that reads one.

    Attributes:
        noted: (operation, what it is given, shapes that it gives) of each. A tensor is its shape and type, with its
            address if it was there before.
    """

    def __init__(self, reads=False):
        super().__init__()
        self.reads, self.noted, self._made, self._alive = reads, [], set(), []

    def largest(self):
        """Elements of the largest tensor that an operation gave."""
        return max(math.prod(shape) for _, _, made in self.noted for *shape, _ in made)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.removeprefix("aten::")
        if name in READING and not self.reads:
            raise RuntimeError(f"{name} reads a value, for which the host would wait")
        if name in INDEXED and not self.reads and any(index is not None and index.dtype in MASKS for index in args[1]):
            raise RuntimeError(f"{name} by a mask reads it, for which the host would wait")
        leaves = tree_leaves((args, kwargs or {}))
        given = tuple(self._described(leaf) for leaf in leaves)
        result = function(*args, **(kwargs or {}))
        made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        before = {_place(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)}
        self._made |= {_place(leaf) for leaf in made} - before
        self._alive += made  # so that no place is given away twice
        self.noted.append((name, given, tuple((*leaf.shape, leaf.dtype) for leaf in made)))
        return result

    def _described(self, leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf if isinstance(leaf, (int, float)) else type(leaf).__name__
        return (*leaf.shape, *leaf.stride(), leaf.dtype, None if _place(leaf) in self._made else leaf.data_ptr())


def _place(tensor):
    return tensor.untyped_storage().data_ptr()


class StandIn(Recorded):
    """`Recorded` that replays nothing: every replay has to repeat the orders of the first of its bucket.

    Attributes:
        repeated: how many calls of each bucket did so.
    """

    def __init__(self, compute, device, **options):
        super().__init__(compute, device, **options)
        self.reason, self.repeated, self._first = options.get("reason", ""), Counter(), {}
        self.records = not self.reason

    def __call__(self, bucket=()):
        return self._taken(bucket) if self.records else self.compute()

    def _watched(self, bucket):
        self._met.add(bucket)
        return self.compute()

    def _record(self, bucket):
        self.recordings[bucket] = None

    def _replayed(self, bucket):
        with Orders() as orders, mock.patch.multiple(torch.Tensor, tolist=_read, numpy=_read, cpu=_read):
            result = self.compute()
        if bucket in self._first:
            for number, (first, now) in enumerate(zip_longest(self._first[bucket], orders.noted)):
                assert first == now, f"order {number} of bucket {bucket}, first and now:\n{first}\n{now}"
            self.repeated[bucket] += 1
        self._first.setdefault(bucket, orders.noted)
        return result


def _read(tensor, *_, **__):
    raise RuntimeError("it reads a tensor, for which the host would wait")


def as_recorded(learner):
    """The untrained learner, whose shapes are fixed as they are on CUDA."""
    learner.fixed, learner.given = True, Buffers(learner.device, stay=True)
    return learner
