"""Processes that share a run: each encodes its own rows of every batch, and all of them hold the same state.

Row j of process r is row j * processes + r of the whole batch. With that, N processes that normalise their own rows
compute what one process computes with N ghost groups (`repro.contrast.momentum`).

A learner is written for one process. `shared` puts what several of them have to do around its parts: the source of its
pictures gives this process's alone, its encoders give the features of the whole batch, and so all that follows, head,
loss and dictionary, is that of the whole batch in every process.
"""

import functools
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from repro.contrast.momentum import GhostBatchNorm, dealt
from repro.run.device import grouped

Shared = TypeVar("Shared", bound=Any)


def process() -> tuple[int, int]:
    """Rank of this process and number of processes; 0 and 1 without a process group."""
    return (distributed.get_rank(), distributed.get_world_size()) if grouped() else (0, 1)


def check_alone(study: str) -> None:
    """Raise ValueError if several processes are to share the runs of a study that are trained by one process each."""
    if grouped():
        raise ValueError(
            f"{study}: these runs are trained by one process each, not by the {process()[1]} of torchrun; leave out "
            "torchrun, and --engine local trains several runs at once"
        )


def check_shared(batch: int, groups: int) -> None:
    """Raise a ValueError unless the processes of the group can share a batch and its ghost groups."""
    _, processes = process()
    if batch % processes or groups % processes:
        raise ValueError(
            f"batch={batch} or groups={groups} cannot be divided among {processes} processes, each of which normalises "
            "its own samples; choose multiples, such as --groups 8"
        )


def shared(learner: Shared) -> Shared:
    """The learner as one of the processes that share its run; as it is where this process is alone.

    Args:
        learner: with `model` and perhaps `keys`, a momentum encoder, whose encoders have `groups` and a method
            `features`; `shuffles`, whether keys are encoded in another order; `source`, and `source_of(views)`, which
            makes another; `optimiser`; and `features(...)`, which evaluates.
    """
    _, processes = process()
    if processes == 1 or not learner.total_steps:
        return learner
    rows = SimpleNamespace(count=0)  # samples of the batch at hand, all processes together
    encoders = [learner.model]
    if "keys" in learner.parts:
        encoders.append(learner.keys.twin)
    for encoder in encoders:
        encoder.groups //= processes
        for module in encoder.modules():
            if isinstance(module, GhostBatchNorm):
                module.groups //= processes
        whole = encoder is not learner.model and learner.shuffles
        encoder.features = functools.partial(_features, encoder, encoder.features, rows, whole)
        encoder.register_state_dict_pre_hook(lambda module, *_: average_statistics(module))
    source_of, features = learner.source_of, learner.features

    def evaluated(*arguments: Any, **options: Any) -> Tensor:
        average_statistics(learner.model)
        return features(*arguments, **options)

    learner.features = evaluated
    learner.source_of = lambda views: _Source(source_of(views), rows)
    learner.source = _Source(learner.source, rows, whole_keys=learner.shuffles)
    learner.optimiser.register_step_pre_hook(lambda optimiser, *_: average_gradients(optimiser))
    return learner


class _Source:
    """A source of pictures that gives those of this process alone; arguments are those of the whole batch."""

    def __init__(self, source: Any, rows: SimpleNamespace, *, whole_keys: bool = False) -> None:
        self.source, self.rows = source, rows
        self.views = [_View(view, rows, whole_keys and number > 0) for number, view in enumerate(source.views)]

    def batches(self, order: Tensor, *, batch: int, seed: Sequence[int]) -> Iterator[list[Tensor]]:
        """Pictures of every view for each `batch` consecutive places of `order`."""
        _, processes = process()
        missing = len(order)
        for pictures in self.source.batches(_own(_padded(order)), batch=-(-batch // processes), seed=seed):
            self.rows.count = min(len(pictures[0]) * processes, missing)
            missing -= self.rows.count
            yield pictures


class _View:
    """A view of this process's pictures, its parameters drawn for the whole batch; or, if `whole`, of everyone's."""

    def __init__(self, view: Any, rows: SimpleNamespace, whole: bool) -> None:
        self.view, self.rows, self.whole = view, rows, whole

    def __call__(self, pictures: Tensor, *generator: torch.Generator) -> Tensor:
        if not generator:  # it draws nothing
            return self.view(pictures)
        draws = self.view.draw(self.rows.count, *pictures.shape[2:], *generator)
        images = self.view.apply(pictures, type(draws)(*(_own(_padded(parameter)) for parameter in draws)))
        return gather(images) if self.whole else images


def _features(encoder: nn.Module, features: Any, rows: SimpleNamespace, whole: bool, images: Tensor) -> Tensor:
    """Features of the whole batch, from the images of this process or, where they are `whole`, from its rows of them.

    While the encoder evaluates, what was padded is cut off.
    """
    found = gather(features(_own(images) if whole else images))
    return found if encoder.training else found[: rows.count]


def _own(rows: Tensor) -> Tensor:
    """This process's rows of a whole batch."""
    rank, processes = process()
    return rows[rank::processes]


def _padded(rows: Tensor) -> Tensor:
    """Rows (n, ...), the last one repeated until the processes can share them evenly."""
    return torch.cat([rows, rows[-1:].repeat(-len(rows) % process()[1], *[1] * (rows.ndim - 1))])


def gather(rows: Tensor) -> Tensor:
    """The rows (n, ...) of all processes in the order of the whole batch, (n processes, ...), with gradient.

    Every process passes the same n.
    """
    return dealt(_Gather.apply(rows), len(rows))


class _Gather(torch.autograd.Function):
    """The rows of all processes, one process after the other: (n, ...) to (n processes, ...)."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        _, processes = process()
        everyone = rows.new_empty(processes * len(rows), *rows.shape[1:])
        distributed.all_gather_into_tensor(everyone, rows.contiguous())
        return everyone

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        rank, processes = process()
        total = upstream.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)  # every process's loss depends on these rows
        return total.chunk(processes)[rank]


@torch.no_grad()
def average(tensors: list[Tensor]) -> None:
    """Set every tensor to its mean over the processes, in place, with one message for all."""
    _, processes = process()
    if not tensors:
        return
    total = torch.cat([tensor.flatten() for tensor in tensors])
    distributed.all_reduce(total)
    means = total.div_(processes).split([tensor.numel() for tensor in tensors])
    for tensor, mean in zip(tensors, means, strict=True):
        tensor.copy_(mean.view(tensor.shape))


def average_gradients(optimiser: torch.optim.Optimizer) -> None:
    """Set gradients to their mean over the processes, each with as many samples: those of the whole batch's mean."""
    for group in optimiser.param_groups:
        average([parameter.grad for parameter in group["params"] if parameter.grad is not None])


def average_statistics(module: nn.Module) -> None:
    """Set the running statistics of all batch normalisation in `module` to their mean over the processes, in place.

    They are linear in the statistics of the batches: one call before features are extracted or weights are saved gives
    what averaging at every step would give, and what one process with ghost groups keeps.
    """
    normalisations = [part for part in module.modules() if isinstance(part, _BatchNorm)]
    statistics = (value for part in normalisations for value in (part.running_mean, part.running_var))
    average([value for value in statistics if value is not None])
