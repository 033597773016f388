"""Processes that train cells for this one: of this machine or of a dask cluster. Both are executors."""

import contextlib
import dataclasses
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Executor
from typing import Any, Protocol

import torch
from tqdm.auto import tqdm

from repro.data.parallel import Workers
from repro.recipe import choose, parse_number
from repro.run.device import cores, gpu_names, gpu_places, grouped
from repro.run.store import Cell

ENGINES = ("auto", "inline", "local", "dask")


class Pool(Protocol):
    """Processes that train cells for this one."""

    def count(self) -> int:
        """How many cells are trained at once."""

    def started(self, most: int) -> contextlib.AbstractContextManager[Executor]:
        """The processes, at most so many; a future of theirs fails if its process is lost.

        They end with this process and when the context is left, whatever they do, unless somebody else started them.
        """


def pool_of(engine: str, workers: str | int, cells: Sequence[Cell], device: torch.device) -> Pool | None:
    """The processes that train the cells, None for this one alone.

    Args:
        engine: "inline"; "local", worker processes of this machine; "dask", those of a dask cluster; or "auto": local
            where several cells are trained at once, unless they are smoke runs, which end sooner than workers start.
        workers: how many; "auto" is the cores this process may use over the threads of a cell, on CUDA `gpu_places`.
            Of "dask" also the address of a scheduler, which "auto" takes from dask's configuration if it is there, such
            as the environment variable DASK_SCHEDULER_ADDRESS; otherwise a cluster of this machine is started.
        cells: to be trained; their recipe says `threads` and `cells_per_gpu`.
        device: to train on.

    Raises:
        ValueError: if a name is not one of these, `workers` neither a whole number of at least 1 nor an address, dask
            is asked for and not installed, an engine other than "inline" in a process group, or several workers there
            or with "inline".
    """
    choose("engine", engine, ("auto", "inline") if grouped() else ENGINES)
    if "://" in str(workers) and engine != "dask":
        raise ValueError(f"workers={workers} is an address; choose engine 'dask' with it")
    if grouped() or engine == "inline":
        if workers != "auto" and parse_number("workers", workers, least=1) > 1:
            alone = "under torchrun" if grouped() else "with engine 'inline'"
            raise ValueError(f"workers={workers} are not started {alone}; leave them out, or choose engine 'local'")
        return None
    address = scheduler_address(workers) if engine == "dask" else None
    recipe = cells[0].recipe
    places = gpu_places(recipe.cells_per_gpu) if device.type == "cuda" else cores() // recipe.threads
    count = max(1, places) if workers == "auto" or address else parse_number("workers", workers, least=1)
    if engine == "dask":
        return Cluster(count, address, device.type)
    small = count == 1 or (workers == "auto" and cells[0].preset == "smoke")
    return None if engine == "auto" and small else Local(count, device.type)


@dataclasses.dataclass(frozen=True)
class Local:
    """Worker processes of this machine; on CUDA they take turns with its GPUs, and each sees one.

    Attributes:
        workers: how many there are at most.
        device: "cpu" or "cuda".
    """

    workers: int
    device: str

    def __str__(self) -> str:
        return f"{self.workers} worker{'s' * (self.workers > 1)}"

    def count(self) -> int:
        """How many processes train at once."""
        return self.workers

    def started(self, most: int) -> Workers:
        """The processes as a context, see `Pool.started`."""
        return Workers(min(self.workers, most), _environments(self.device))


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Workers of a dask cluster that see the same REPRO_RUNS and REPRO_DATA. dask is imported when it is used.

    Attributes:
        workers: of the cluster started on this machine, if there is no address.
        address: of a scheduler.
        device: "cpu" or "cuda"; a cell on CUDA takes one unit of the resource "GPU". The workers started on this
            machine take turns with its GPUs; others use the first that they see.
    """

    workers: int
    address: str | None
    device: str

    def __str__(self) -> str:
        return self.address or f"{self.workers} worker{'s' * (self.workers > 1)} of dask"

    def count(self) -> int:
        """How many workers there are now, at least 1."""
        if not self.address:
            return self.workers
        with self._connected(self.address) as client:
            return max(1, len(client.nthreads()))

    @contextlib.contextmanager
    def started(self, most: int) -> Iterator[Executor]:
        """The workers as a context, see `Pool.started`; of a lost one the cluster gives the cell to another.

        Raises:
            OSError: if nobody answers at the address, or the scheduler is lost.
        """
        workers = min(self.workers, most)
        with self._connected(self.address) if self.address else self._of_this_machine(workers) as client:
            if not client.nthreads():
                tqdm.write(f"no worker has joined {client.scheduler.address} yet", file=sys.stderr)
            try:
                yield client.get_executor(pure=False, resources=self._resources())
            except CancelledError as error:  # so dask says that the connection is lost
                raise ConnectionError(f"the scheduler at {self.address} is lost; start it again, then give the same "
                                      "command again, and the table goes on") from error

    @contextlib.contextmanager
    def _of_this_machine(self, workers: int) -> Iterator[Any]:
        import dask
        from distributed import Client, Nanny, Scheduler, SpecCluster

        environments = _environments(self.device)
        quiet = {"host": "127.0.0.1", "dashboard": False}
        options = quiet | {"nthreads": 1, "memory_limit": None, "resources": self._resources(), "silence_logs": "ERROR"}
        spec = {
            number: {"cls": Nanny, "options": options | {"env": environments[number % len(environments)]}}
            for number in range(workers)
        }
        with (
            dask.config.set({"distributed.scheduler.allowed-failures": 1}),  # a cell is lost with one it waits behind
            SpecCluster(spec, {"cls": Scheduler, "options": quiet}, silence_logs="ERROR") as cluster,
            Client(cluster) as client,
        ):
            try:
                yield client
            except KeyboardInterrupt:
                for nanny in cluster.workers.values():  # closed, workers would go on until their cells are trained
                    nanny.auto_restart = False
                    os.kill(nanny.pid, signal.SIGKILL)
                raise

    @staticmethod
    def _connected(address: str) -> Any:
        from distributed import Client

        try:
            return Client(address)
        except OSError as error:
            raise ConnectionError(f"no scheduler answers at {address} ({error}); start one there with `dask scheduler`,"
                                  " or leave out its address for workers of this machine") from error

    def _resources(self) -> dict[str, int] | None:
        return {"GPU": 1} if self.device == "cuda" else None


def _environments(device: str) -> list[dict[str, str]]:
    """Variables for the workers of this machine to take turns with: on CUDA each sees one of its GPUs."""
    names = gpu_names() if device == "cuda" else []
    return [{"CUDA_VISIBLE_DEVICES": name} for name in names] or [{}]


def scheduler_address(workers: str | int) -> str | None:
    """The address of a scheduler, as it is given or as dask's configuration has it; None to start one.

    Raises:
        ValueError: if dask.distributed is not installed, with the command that does it, or for half an address.
    """
    if importlib.util.find_spec("distributed") is None:
        raise ValueError("engine='dask' needs dask.distributed; install it with: pip install '.[cluster]'")
    import dask

    if "://" in str(workers):
        return str(workers)
    if ":" in str(workers):
        raise ValueError(f"workers={workers!r} should be a number, or an address such as 'tcp://{workers}'")
    import distributed  # noqa: F401  (its defaults complete dask's configuration)

    return dask.config.get("scheduler-address", None) if workers == "auto" else None
