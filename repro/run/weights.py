"""Trained models in files for use elsewhere: safetensors, with what they are as JSON texts in the metadata."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from repro.data.disk import write_atomically

if TYPE_CHECKING:
    from safetensors import safe_open

Model = TypeVar("Model", bound=nn.Module)
DESCRIBED = ("architecture", "recipe", "view")  # texts in the metadata


def save(path: Path, model: nn.Module, recipe: Mapping[str, Any], view: Mapping[str, Any]) -> None:
    """Write a model's weights as safetensors, atomically.

    The metadata holds three JSON texts: "architecture", the model's attribute of that name, arguments that make the
    same model; "recipe"; and "view", how its input is made.

    Raises:
        TypeError: if one of these cannot be written as JSON.
        OSError: if the disk is full or the folder cannot be written.
    """
    from safetensors import torch as safetensors

    metadata = {"architecture": model.architecture, "recipe": recipe, "view": view}
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    texts = {name: json.dumps(value) for name, value in metadata.items()}
    write_atomically(Path(path), lambda temporary: temporary.write_bytes(safetensors.save(weights, texts)))


def load(path: Path, kind: Callable[..., Model], layers: int = 1) -> Model:
    """The model of a file written by `save`, on the CPU in evaluation mode.

    Args:
        path: of the file.
        kind: makes the model of its "architecture".
        layers: that it should have, each with weights of its own.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not a whole model as `save` writes it, or not finite.
    """
    with _opened(path, "architecture") as (architecture, file):
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, the file is no mapping
    try:
        if layers > len(weights):  # to build thousands takes minutes
            raise ValueError(f"layers={layers} have {len(weights)} weights")
        with torch.device("meta"), torch.random.fork_rng(devices=[]):  # its weights are replaced, others' draws stay
            model = kind(**architecture)
        model.load_state_dict(weights, assign=True)
        if infinite := [name for name, weight in weights.items() if not weight.isfinite().all()]:
            raise ValueError(f"{infinite[0]} is not finite")
    except (AttributeError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} does not hold the model it describes ({error}); export it again") from error
    return model.eval()


def read(path: Path, name: str) -> Any:
    """One of the JSON texts in the metadata of a file, whose weights are not read; raises as `load`."""
    with _opened(path, name) as (value, _):
        return value


@contextlib.contextmanager
def _opened(path: Path, name: str) -> Iterator[tuple[Any, "safe_open"]]:
    """One of those texts, and the file."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not a file; write one with `repro results weights KEY`")
    try:
        with safe_open(path, framework="pt") as file:
            texts = file.metadata() or {}
            if name in texts:
                yield json.loads(texts[name]), file
                return
    except (SafetensorError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no sound safetensors file as `repro results weights KEY` writes it ({error!r}); "
                         "export it again") from error
    lacking = [text for text in DESCRIBED if text not in texts]
    raise ValueError(f"{path} lacks {', '.join(lacking)} in its metadata, by which `repro results weights KEY` "
                     "describes a model: it comes from elsewhere; read its tensors by `safetensors.torch.load_file`")
