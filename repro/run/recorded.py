"""A step recorded once as a CUDA graph, then replayed: the host gives one order a step instead of a thousand.

A recording repeats the same kernels on the same places in memory. So a step that is recorded waits for nothing, its
shapes depend on no batch, and what differs from step to step lies in `Buffers` or comes from registered generators.
"""

import contextlib
import gc
import os
import warnings
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from repro.run.device import first
from repro.run.store import warn_once

WARM_UP = 3  # steps as they are, in which libraries and optimiser prepare themselves


class Buffers:
    """What the host hands to a step, by name.

    Args:
        device: where the step computes.
        stay: whether every value lies where the last one of its name and shape lay; otherwise it is handed on as it is.
    """

    def __init__(self, device: torch.device, *, stay: bool) -> None:
        self.device, self.stay = device, stay
        self._values: dict[str, Tensor | float] = {}
        self._places: dict[Hashable, Tensor] = {}

    def __setitem__(self, name: str, value: Tensor | float) -> None:
        if not self.stay:
            self._values[name] = value
            return
        if isinstance(value, Tensor):
            key: Hashable = (name, value.shape, value.stride(), value.dtype)
            if key not in self._places:  # of the same layout: the host would put another in order first
                self._places[key] = torch.empty_like(value, device=self.device)
            self._values[name] = self._places[key].copy_(value, non_blocking=True)
        else:
            if name not in self._places:
                self._places[name] = torch.empty((), device=self.device)
            self._values[name] = self._places[name].fill_(value)  # travels with the order: nothing is copied

    def __getitem__(self, name: str) -> Tensor | float:
        return self._values[name]

    def tensor(self, name: str) -> Tensor:
        """The value on the device; a number as a tensor without axes."""
        value = self._values[name]
        return value.to(self.device, non_blocking=True) if isinstance(value, Tensor) else torch.tensor(value)


class Recorded:
    """A function that is recorded on CUDA, once for each bucket; on a CPU, and with REPRO_RECORD=0, it is called.

    The first three calls, and the first of every bucket, are taken as they are. Where the third waits for the device,
    or a recording fails, nothing is recorded from then on, which is said once.

    Args:
        compute: what to record. It takes nothing and returns a tensor.
        device: where it computes.
        generators: on the device, which it draws from.
        optimisers: which take their steps in it.
        reason: why it cannot be recorded; "" if it can.
    """

    def __init__(
        self,
        compute: Callable[[], Tensor],
        device: torch.device,
        *,
        generators: Sequence[torch.Generator] = (),
        optimisers: Sequence[torch.optim.Optimizer] = (),
        reason: str = "",
    ) -> None:
        self.compute, self.device, self.generators, self.optimisers = compute, device, generators, optimisers
        self.records = device.type == "cuda" and os.environ.get("REPRO_RECORD") != "0"
        self.recordings: dict[Hashable, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        self._met: set[Hashable] = set()
        self._calls = 0
        self._stream: torch.cuda.Stream | None = None
        if self.records and reason:
            self._give_up(reason)

    def __call__(self, bucket: Hashable = ()) -> Tensor:
        """What `compute` returns, a copy of its own.

        Args:
            bucket: what its shapes depend on; None for a call that is to be taken as it is.
        """
        if not self.records:
            return self.compute()
        current = torch.cuda.current_stream(self.device)
        if current != torch.cuda.default_stream(self.device):  # such as that of a lane
            return self._taken(bucket)
        self._stream = self._stream or torch.cuda.Stream(self.device)  # the default stream cannot be recorded
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            result = self._taken(bucket)
        current.wait_stream(self._stream)
        return result

    def _taken(self, bucket: Hashable) -> Tensor:
        if bucket in self.recordings:
            return self._replayed(bucket)
        if bucket is None:
            return self.compute()
        self._calls += 1
        if self._calls == WARM_UP:
            return self._watched(bucket)
        if self._calls < WARM_UP or bucket not in self._met:
            self._met.add(bucket)
            return self.compute()
        self._record(bucket)
        return self._taken(bucket) if self.records else self.compute()

    def _replayed(self, bucket: Hashable) -> Tensor:
        graph, result = self.recordings[bucket]
        graph.replay()
        return result.clone()  # the next replay overwrites its own

    def _watched(self, bucket: Hashable) -> Tensor:
        """A call as it is, during which torch tells when the host waits."""
        self._met.add(bucket)
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                result = self.compute()
            finally:
                torch.cuda.set_sync_debug_mode(before)
        for warning in said:
            if "called a synchronizing" in str(warning.message):
                self._give_up("it waits for the device")
            elif "ynchronization debug mode" not in str(warning.message):
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return result

    def _record(self, bucket: Hashable) -> None:
        """Record `compute`, which takes no step by itself; give up if that fails."""
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)
        groups = [group for optimiser in self.optimisers for group in optimiser.param_groups]
        for group in groups:
            group["capturable"] = True
        earlier = next(iter(self.recordings.values()), None)
        pool = earlier[0].pool() if earlier else torch.cuda.graph_pool_handle()  # of one step they never run at once
        unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        if unused > torch.cuda.mem_get_info(self.device)[0]:  # a recording takes none of what torch holds for others
            torch.cuda.empty_cache()
        collecting = gc.isenabled()
        gc.disable()  # what it destroys may not be destroyed during a recording
        try:
            graph.capture_begin(pool, capture_error_mode="thread_local")
            result = self.compute()
            graph.capture_end()
            self.recordings[bucket] = graph, result
        except Exception as error:  # nothing of it was computed, and what others hand to the device goes on
            with contextlib.suppress(RuntimeError):
                graph.capture_end()
            self._give_up(f"{type(error).__name__}: {error}")
        finally:
            if collecting:
                gc.enable()
            for group in groups:
                group["capturable"] = False  # torch warns of steps outside a recording otherwise

    def _give_up(self, reason: str) -> None:
        self.records = False
        if first():
            warn_once(f"steps are taken as they are and not recorded: {reason}")
