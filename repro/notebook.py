"""The third cell of every notebook: stop at a misspelt or impossible parameter before anything is computed."""

import inspect
from collections.abc import Callable
from typing import Any

import torch

from repro import manifest
from repro.recipe import choose
from repro.run import device as devices
from repro.run.cost import commit
from repro.run.store import Store
from repro.run.table import called

PLAIN = (str, int, float, bool, list, tuple, dict, set, type(None))


def begin(namespace: dict[str, Any], cells: Callable[..., list]) -> dict[str, Any]:
    """The notebook's parameters, checked; prints the environment and what there is to do.

    papermill only warns about a name it does not know and runs on; here it is an error.

    Args:
        namespace: the notebook's `globals()`; names are checked the first time in a kernel.
        cells: the function that lists a table's cells; its parameters and `device` are the notebook's.

    Returns:
        Keyword arguments for the table.

    Raises:
        ValueError: if the namespace holds a plain value that is no parameter, or a parameter has a value that does not
            exist; the message names those that do.
        FileNotFoundError: if the data set is not there, saying where to get it and where to put it.
        OSError: if REPRO_RUNS cannot be written.
    """
    settings, device = _checked(namespace, cells)
    store = Store(manifest.runs_root())
    store.require_usable()
    planned = behind(settings, cells)
    finished = sum(store.run(cell).result is not None for cell in planned)
    _print_environment(device)
    print(f"{len(planned)} cells of preset {planned[0].preset} on {planned[0].dataset}, {finished} finished")
    return settings


def begin_reading(namespace: dict[str, Any], read: Callable[..., Any]) -> Any:
    """As `begin`, for a notebook that trains nothing: what `read` makes of the notebook's parameters.

    Args:
        namespace: the notebook's `globals()`.
        read: takes the notebook's parameters but `device`, on which nothing is computed here.

    Raises:
        ValueError: as `begin`, or as `read` does.
    """
    settings, device = _checked(namespace, read)
    _print_environment(device)
    return called(read, settings)


def behind(settings: dict[str, Any], cells: Callable[..., list]) -> list:
    """The cells behind a notebook's table, from the settings of `begin` and the function that lists them."""
    return called(cells, settings)


def _checked(namespace: dict[str, Any], function: Callable[..., Any]) -> tuple[dict[str, Any], torch.device]:
    """The parameters of a function, and `device`, as the notebook has them, and the device; no other names allowed."""
    allowed = [*dict.fromkeys([*inspect.signature(function).parameters, "device"])]
    if "_begun" not in namespace:  # afterwards, a reader's own names are welcome
        for name, value in namespace.items():
            if isinstance(value, PLAIN) and not name.startswith("_") and name not in ("In", "Out"):
                choose("parameter", name, allowed)
    namespace["_begun"] = True
    settings = {name: namespace[name] for name in allowed if name in namespace}
    return settings, devices.resolve(settings.get("device", "auto"))


def _print_environment(device: torch.device) -> None:
    machine = devices.hardware(device)
    print(f"{machine['device']}, {machine['cores']} cores, torch {machine['torch']}, python {machine['python']}")
    print(f"repro {commit()}, runs in {manifest.runs_root()}")
