"""What operations make: how large it is, and whether a value is read back from the device."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Watch(TorchDispatchMode):
    """Counts operations, and records the largest number of elements that one returns and those that read a value."""

    def __init__(self):
        super().__init__()
        self.count, self.elements, self.reads = 0, 0, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.count += 1
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.elements = max([self.elements, *sizes])
        self.reads += [str(function)] * any(name in str(function) for name in ("_local_scalar_dense", "nonzero"))
        return result


def largest_tensor(objective, *inputs):
    """Elements of the largest tensor made in the forward and backward pass of an objective."""
    with Watch() as watch:
        objective(*inputs).backward()
    return watch.elements
