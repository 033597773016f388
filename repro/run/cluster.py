"""The engine "dask": the workers of a dask cluster share the cells. dask.distributed is imported when it is used."""

import contextlib
import dataclasses
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

import torch
from tqdm.auto import tqdm

from repro.run.cells import Train, failure, settle_quietly, watch
from repro.run.fit import NonFiniteLoss
from repro.run.store import Cell, Store

ONE_CELL = threading.Lock()  # a worker's threads have one number of CPU threads together, part of a CPU result
RETRIES = 1  # of a cell whose worker is lost (an address has its own count) or ends with an error


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Workers of a dask cluster that see the same REPRO_RUNS and REPRO_DATA; they resume what a lost one has begun.

    Attributes:
        workers: of the cluster started on this machine, if there is no address.
        address: of a scheduler.
        device: "cpu" or "cuda"; a cell on CUDA takes one unit of the resource "GPU". The workers started on this
            machine take turns with its GPUs; others use the first that they see.
    """

    workers: int
    address: str | None
    device: str

    def count(self) -> int:
        """How many workers there are now, at least 1."""
        if not self.address:
            return self.workers
        with self._client() as client:
            return max(1, len(client.nthreads()))

    def __call__(self, cells: Sequence[Cell], train: Train, store: Store) -> dict[str, Exception]:
        """Bring to their results all cells that no other command holds; returns what failed, by key.

        Raises:
            OSError: if nobody answers at the address, or the scheduler is lost.
        """
        with self._client() as client:
            if not client.nthreads():
                tqdm.write(f"no worker has joined {client.scheduler.address} yet", file=sys.stderr)
            shared = {"train": train, "store": store, "gpus": self._gpus()}
            options = {"retries": RETRIES, "resources": self._resources(), "pure": False}
            futures = client.map(_settle, list(cells), **shared, **options)
            watch(cells, store, lambda: all(future.done() for future in futures), f"cells, {client.scheduler.address}")
            try:
                outcomes = [future.exception() or future.result() for future in futures]
            except CancelledError as error:  # so dask says that the connection is lost
                raise ConnectionError(f"the scheduler at {self.address} is lost; start it again, then give the same "
                                      "command again, and the table goes on") from error
        failed = [(cell, each) for cell, each in zip(cells, outcomes, strict=True) if isinstance(each, Exception)]
        return {cell.key: failure(cell, each) for cell, each in failed}

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        import dask
        from distributed import Client, LocalCluster

        if self.address:
            with self._connected() as client:
                yield client
            return
        options = {"threads_per_worker": 1, "memory_limit": None, "dashboard_address": None, "silence_logs": "ERROR"}
        with (
            dask.config.set({"distributed.scheduler.allowed-failures": RETRIES}),
            LocalCluster(n_workers=self.workers, resources=self._resources(), **options) as cluster,
            Client(cluster) as client,
        ):
            try:
                yield client
            except KeyboardInterrupt:
                for nanny in cluster.workers.values():  # closed, workers would go on until their cells are trained
                    nanny.auto_restart = False
                    os.kill(nanny.pid, signal.SIGKILL)
                raise

    def _connected(self) -> Any:
        from distributed import Client

        try:
            return Client(self.address)
        except OSError as error:
            raise ConnectionError(f"no scheduler answers at {self.address} ({error}); start one there with "
                                  "`dask scheduler`, or leave out its address for workers of this machine") from error

    def _gpus(self) -> int:
        """How many GPUs the workers take turns with; 0 where each has its own, or none."""
        return torch.cuda.device_count() if self.device == "cuda" and not self.address else 0

    def _resources(self) -> dict[str, int] | None:
        return {"GPU": 1} if self.device == "cuda" else None


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


def _settle(cell: Cell, train: Train, store: Store, gpus: int) -> bool | NonFiniteLoss | OSError:
    from distributed import get_worker

    with ONE_CELL:
        if gpus:
            torch.cuda.set_device(get_worker().name % gpus)  # workers started here are called 0, 1, and so on
        return settle_quietly(cell, train, store)
