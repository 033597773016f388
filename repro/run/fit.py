"""The training loop: progress, checkpoint, resume, and a guard against non-finite losses.

A learner (`repro.run.learner`) holds *all* state of a run, so that a run killed at any moment and started again takes
exactly the steps it would have taken undisturbed. In a process group all processes take the same steps, the first reads
and writes the folder.
"""

import contextlib
import hashlib
import io
import json
import math
import os
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from repro.data.disk import IRREGULAR, naming, read_file, write_atomically
from repro.run.code import BETWEEN
from repro.run.device import cost, first, from_first, hardware
from repro.run.learner import Learner, global_states
from repro.run.store import ANEW, KNOWN, check_parts, parse_json, reading

DIGEST = 32  # bytes of a sha256, which follow torch's archive in a checkpoint: torch reads damaged archives unawares
BEGIN_ANEW = "move that folder away: then the run starts anew"


class NonFiniteLoss(FloatingPointError):
    """A loss, or a weight, became NaN or infinite; the message names the term and the step."""


def fit(
    learner: Learner,
    folder: Path,
    progress: tqdm,
    *,
    checkpoint_seconds: float = 60.0,
    probe: Callable[[], dict[str, float]] | None = None,
    probe_steps: int = 0,
    code: str = "",
) -> Generator[None, None, dict[str, Any]]:
    """Train `learner` to its last step, from the newest sound checkpoint in `folder` if there is one.

    Losses stay on the device between reports (one per epoch, or the learner's `report_steps` if an epoch is longer): a
    step needs no host synchronisation. It yields when the steps up to a report are handed to the device, so that others
    may have their turn before it collects them. A report checks losses and weights, appends a line to `progress.jsonl`
    and, when `checkpoint_seconds` have passed, saves a checkpoint, as the end does.

    Args:
        learner: what to train.
        folder: of the run.
        progress: a bar to count steps on; it is reset, so that one bar serves all runs of a table.
        checkpoint_seconds: time between checkpoints.
        probe: measures the learner every `probe_steps` and at the end, drawing from no stream of it; what there is, is
            a line of `probes.jsonl`.
        probe_steps: 0, never.
        code: `code.identity` of what trains, which stands in checkpoints; a line says where one that is taken up is of
            other code.

    Returns:
        {"seconds": time of the steps alone, summed over all interruptions and without the turns of others, "steps":
        number of steps}. Of a training that had ended before, also the "code" and `device.cost` of then; of one that
        other code or another device has begun, "code" or "device" of all, between semicolons. On a GPU
        that is shared, whoever waits pays for what the device did for others meanwhile: the seconds of all lanes
        together are right.

    Raises:
        NonFiniteLoss: naming the first bad term and step, or the step whose update left weights that are not finite.
            Nothing of the bad steps is saved.
        ValueError: if the checkpoint is not of such a learner; as `Learner.check_draws`.
    """
    done, seconds, known = _resume(learner, folder, code)
    if first():
        for name in ("progress.jsonl", "probes.jsonl"):
            _truncate(folder / name, done)
        if 0 < done < learner.total_steps:
            tqdm.write(f"{folder} continues after step {done} of {learner.total_steps}", file=sys.stderr)
    interval = min(learner.steps_per_epoch, learner.report_steps)
    saved_at = reported_at = time.monotonic()
    losses: list[Tensor] = []
    states = global_states()

    def late() -> bool:  # by the clock of the first process
        return time.monotonic() - saved_at >= checkpoint_seconds

    progress.reset(learner.total_steps + 1)  # evaluation counts as a step
    progress.set_postfix(refresh=False)  # those of the run before
    progress.initial = progress.n = done
    try:
        while done < learner.total_steps:
            losses.append(learner.step())
            done += 1
            last = done == learner.total_steps
            probe_due = probe is not None and probe_steps > 0 and (last or done % probe_steps == 0)
            if done % interval and not last and not probe_due:
                continue
            learner.check_draws(states)
            seconds += time.monotonic() - reported_at
            yield
            reported_at = time.monotonic()  # turns of others do not count
            means = _checked(torch.stack(losses).double().cpu(), learner.terms, done)
            _check_weights(learner, done)
            losses.clear()
            now = time.monotonic()
            seconds += now - reported_at
            counts = {"step": done, "of": learner.total_steps, "steps_per_epoch": learner.steps_per_epoch}
            _append(folder / "progress.jsonl", {**counts, **means, "seconds": round(seconds, 2)})
            progress.set_postfix(means, refresh=False)
            progress.update(done - progress.n)
            if probe and probe_due and (measured := probe()):
                _append(folder / "probes.jsonl", {"step": done, **measured})
            if last or from_first(late):
                _save(learner, folder, done, seconds, code, known)
                saved_at = time.monotonic()
            reported_at, states = time.monotonic(), global_states()
    finally:
        learner.release()  # its memory is for what measures, and for others
    if from_first(lambda: not (folder / "checkpoint.pt").exists()):  # nothing to train: random initialisation
        _save(learner, folder, done, seconds, code, known)
    return {"seconds": round(seconds, 2), "steps": float(done)} | known


def save_checkpoint(folder: Path, state: dict[str, Any]) -> None:
    """Save `state` as `checkpoint.pt`, proven readable before it replaces the old one, which is kept as previous."""
    path = folder / "checkpoint.pt"

    def write(temporary: Path) -> None:
        archive = io.BytesIO()
        torch.save(state, archive)
        with archive.getbuffer() as contents:  # given back at once: a profiler, as dask's, may look at this frame
            digest = hashlib.sha256(contents).digest()
        archive.write(digest)
        with archive.getbuffer() as contents:
            temporary.write_bytes(contents)
        archive.close()  # states are large, and it is read back next
        read_checkpoint(temporary)
        if path.exists():
            os.replace(path, folder / "checkpoint.previous.pt")

    write_atomically(path, write)


def load_checkpoint(folder: Path) -> dict[str, Any] | None:
    """The newest sound checkpoint of `folder`, None if there is none. A damaged one is set aside, with a message."""
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        path = folder / name
        if not path.exists():
            continue
        try:
            return read_checkpoint(path)
        except ValueError as error:
            os.replace(path, folder / "checkpoint.damaged.pt")
            tqdm.write(f"{path} is damaged ({error}); falling back to an earlier state", file=sys.stderr)
    return None


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The state in a checkpoint; ValueError if it is damaged, of impossible progress, or no regular file."""
    if path.exists() and not path.is_file():  # which might never end
        raise ValueError(IRREGULAR)
    with path.open("rb") as file:
        archive, digest = file.read(os.fstat(file.fileno()).st_size - DIGEST), file.read()
    if hashlib.sha256(archive).digest() != digest:
        raise ValueError("checksum does not match")
    try:
        state = torch.load(io.BytesIO(archive), map_location="cpu", weights_only=True)
    except (OSError, MemoryError):  # says nothing about the file
        raise
    except Exception as error:  # torch raises many kinds for a file it cannot read
        raise ValueError(f"{type(error).__name__}: {error}") from error
    check_parts(state, {"step": int, "seconds": (int, float), "learner": dict}, {"cost": dict, "folder": str})
    if (folder := state.get("folder", path.parent.name)) != path.parent.name:
        raise ValueError(f"it is of {folder}, not of {path.parent.name}")
    check_parts(state.get("cost", {}), {}, KNOWN)
    if state["step"] < 0 or not 0 <= state["seconds"] < math.inf:
        raise ValueError(f"step {state['step']}, {state['seconds']} seconds")
    return state


def _save(
    learner: Learner, folder: Path, done: int, seconds: float, code: str, known: dict[str, Any]
) -> None:
    state = {"step": done, "seconds": seconds, "learner": learner.state_dict()}  # in every process: they may average
    state |= {"folder": folder.name, "cost": cost(learner.device) | {"code": code} | known}
    if first():
        save_checkpoint(folder, state)


def _resume(learner: Learner, folder: Path, code: str) -> tuple[int, float, dict[str, Any]]:
    """Steps and seconds of the newest sound checkpoint, whose state the learner takes over, and what is known of
    earlier runs.
    """
    state = from_first(lambda: load_checkpoint(folder))
    if state is None:
        return 0, 0.0, {}
    if state["step"] > learner.total_steps:
        raise ValueError(f"{folder / 'checkpoint.pt'} is of step {state['step']:,}, the training has "
                         f"{learner.total_steps:,}; {BEGIN_ANEW}")
    whole, known = state["step"] == learner.total_steps, state.get("cost", {})
    with taking_over(folder):  # what is whole to be evaluated again, on whichever device
        (learner.load_weights if whole else learner.load_state_dict)(state["learner"])
    if known.get("code", code) != code and first():
        tqdm.write(f"{folder} was begun by other code; {BEGIN_ANEW}", file=sys.stderr)
    if whole:
        return state["step"], state["seconds"], known
    joined = {}
    for name, now in {"code": code, "device": str(hardware(learner.device)["device"])}.items():
        joined[name] = BETWEEN.join(dict.fromkeys(filter(None, [*known.get(name, "").split(BETWEEN), now])))
    return state["step"], state["seconds"], joined


@contextlib.contextmanager
def taking_over(folder: Path) -> Iterator[None]:
    """Let an error inside the block, which uses the state of a folder's checkpoint, name that and the next step."""
    try:
        yield
    except torch.OutOfMemoryError:  # says nothing about the file
        raise
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{folder} was begun by another version of this project or learner, or on another kind of "
                         f"device, whose state does not fit ({type(error).__name__}: {error}); {BEGIN_ANEW}") from error


def _checked(values: Tensor, terms: tuple[str, ...], done: int) -> dict[str, float]:
    """Mean of every term over the (steps, terms) just taken."""
    bad = (~values.isfinite()).nonzero()
    if len(bad):
        row, column = bad[0].tolist()
        step, value = done - len(values) + row + 1, values[row, column].item()
        raise NonFiniteLoss(f"{terms[column]} is {value} at step {step}; lower the learning rate or clip harder")
    return dict(zip(terms, values.mean(0).tolist(), strict=True))


def _check_weights(learner: Learner, done: int) -> None:
    """A loss is that before its update: the last one may be finite where the weights it leaves are not."""
    modules = [getattr(learner, name) for name in learner.parts]
    weights = [weight for module in modules if isinstance(module, nn.Module) for weight in module.parameters()]
    finite = [weight.isfinite().all() for weight in weights]
    if finite and not torch.stack(finite).all():  # one host synchronisation, not one a weight
        raise NonFiniteLoss(f"weights are not finite after step {done}; lower the learning rate or clip harder")


def _append(path: Path, line: dict[str, float]) -> None:
    if first():
        with naming(path), path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _truncate(path: Path, step: int) -> None:
    """Drop the lines after `step`, which will be written again, and a line cut off by a crash."""
    if not path.exists():
        return
    lines = []
    with reading(path, ANEW):
        for line in read_file(path).decode("utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError, LookupError, TypeError):
                if parse_json(line)["step"] <= step:
                    lines.append(f"{line}\n")
    write_atomically(path, lambda temporary: temporary.write_text("".join(lines)))
