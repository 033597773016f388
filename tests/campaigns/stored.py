"""Files of ours that a disk may have damaged: checkpoints, weights and results."""

import contextlib
import functools
import hashlib
import io
import json
import math
import struct
import tempfile
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from repro import encoders
from repro.image import model
from repro.image.recipe import smoke
from repro.run import fit
from repro.run.store import Run, Store, finished_runs, owner, read_record, trained
from repro.skeleton.recipe import quick
from tests.campaigns import mutations
from tests.campaigns.kinds import Kind, Refused, write
from tests.helpers import made_up_images
from tests.helpers.states import assert_equal_states

STATE = {"step": 6, "seconds": 1.5, "learner": {"weight": torch.arange(300.0), "taken": 6, "names": ["a", "b"]}}
BEFORE = {"step": 3, "seconds": 0.5, "learner": {}}
RUN = Run("skeletons", quick("synthetic", "CE"), 0, "quick", "synthetic", "d1", 1)
RESULT = {"linear": 50.0, "knn1": 48, "select": "last", "cost": {"seconds": 2.5, "commit": "c", "finished": "2024"}}
ODD = {  # what bytes and values do not come by: of the result and of the recipe
    "result.json": ({"linear": "50.0"}, {"knn1": "fifty"}, {"seed": 3}, {"value": 1.5}, {"select": 2},
                    {"evaluation": -0.5}, {"linear": 10**30}, {"note": "x" * 2**20}),
    "recipe.json": ({"dataset": "copy \udcff"}, {"changes": {"\ud800": 1}}, {"seed": -3}, {"version": -1}),
}
STEPS = (-1, 7, 10**12, 2**70, 6.0, float("nan"), "6")
LINE = {"step": 3, "of": 6, "CE": 1.5, "loss": 1.5, "seconds": 0.5}


@functools.cache
def checkpoint() -> bytes:
    """A checkpoint with its digest."""
    with tempfile.TemporaryDirectory() as folder:
        fit.save_checkpoint(Path(folder), STATE)
        return (Path(folder) / "checkpoint.pt").read_bytes()


def damage_checkpoint(contents: bytes, draw: Random) -> bytes:
    """Other bytes, or another step; now and then with the digest that belongs to them, as ill will would have it."""
    if draw.random() < 0.1:
        archive = io.BytesIO()
        torch.save(STATE | {"step": draw.choice(STEPS)}, archive)
        return archive.getvalue() + hashlib.sha256(archive.getbuffer()).digest()
    if draw.random() < 0.3:
        archive = mutations.of_bytes(contents[: -fit.DIGEST], draw)
        return archive + hashlib.sha256(archive).digest()
    return mutations.of_bytes(contents, draw)


def read_checkpoint(contents: bytes, folder: Path) -> None:
    """Load it in front of an earlier one, which is fallen back to."""
    fit.save_checkpoint(folder, BEFORE)
    (folder / "checkpoint.pt").rename(folder / "checkpoint.previous.pt")
    write(folder / "checkpoint.pt", contents)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        state = fit.load_checkpoint(folder)
    if (folder / "checkpoint.damaged.pt").exists():
        assert_equal_states(state, BEFORE)
        raise Refused(said.getvalue())
    if state["step"] > STATE["step"]:
        raise Refused("a step beyond the last")
    if contents[: -fit.DIGEST] == checkpoint()[: -fit.DIGEST]:
        assert_equal_states(state, STATE)
    assert type(state) is dict and state.keys() == STATE.keys()


@functools.cache
def weights() -> bytes:
    """The file of a tiny encoder of images."""
    recipe = smoke("digits", "moco", projection=4)
    run = Run("images", recipe, 0, "smoke", "digits", "d1", 2)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        patch.setenv("REPRO_RUNS", place)
        made_up_images.use_tiny_trunk(patch)
        tiny = model.ImageModel(recipe.trunk, recipe.small, recipe.head, recipe.projection)
        folder = Store().folder(run)
        folder.finish(RESULT)
        fit.save_checkpoint(folder.path, STATE | {"learner": {"model": tiny.state_dict()}})
        return encoders.export(run.id).read_bytes()


def damage_weights(contents: bytes, draw: Random) -> bytes:
    """Other bytes, or another description of model or tensors."""
    if draw.random() < 0.5:
        return mutations.of_bytes(contents, draw)
    size, = struct.unpack("<Q", contents[:8])
    header = mutations.of_json(contents[8 : 8 + size], draw)
    return struct.pack("<Q", len(header)) + header + contents[8 + size :]


def read_weights(contents: bytes, folder: Path) -> None:
    """Load the encoder; its weights are those that the file states."""
    path = write(folder / "encoder.safetensors", contents)
    with pytest.MonkeyPatch.context() as patch:
        made_up_images.use_tiny_trunk(patch)
        encoder = encoders.load(path)
    found, view = encoder.model.state_dict(), encoder.view
    size, = struct.unpack("<Q", contents[:8])
    stated = json.loads(contents[8 : 8 + size])
    kinds = {"F32": np.float32, "I64": np.int64}
    for name, tensor in found.items():
        start, end = stated[name]["data_offsets"]
        values = np.frombuffer(contents[8 + size + start : 8 + size + end], kinds[stated[name]["dtype"]])
        np.testing.assert_array_equal(tensor.numpy().ravel(), values)
        assert tensor.isfinite().all(), f"{name} is not finite"
    seen = json.loads(stated["__metadata__"]["view"])
    assert seen == {"size": view.size, "resize": view.resize, "square": view.square,
                    "mean": list(view.normalisation.mean), "std": list(view.normalisation.std)}
    assert view(torch.zeros(1, 3, 8, 8)).isfinite().all()


def results() -> list[dict[str, bytes]]:
    """The folder of a finished run."""
    texts = {"result.json": RESULT, "recipe.json": RUN.describe(), "owner.json": {"process": 1, "host": "h"}}
    found = {name: json.dumps(value, indent=1).encode() for name, value in texts.items()}
    return [found | {"progress.jsonl": b"".join(json.dumps(LINE | {"step": step}).encode() + b"\n" for step in (3, 6))}]


def damage_results(files: dict[str, bytes], draw: Random) -> dict[str, bytes]:
    """One of the files with other values, words or bytes."""
    name = draw.choice(("result.json", "result.json", *files))
    if name in ODD and draw.random() < 0.2:
        return files | {name: json.dumps(json.loads(files[name]) | draw.choice(ODD[name])).encode()}
    damage = mutations.of_text if name == "progress.jsonl" else mutations.of_json
    return files | {name: damage(files[name], draw)}


def read_results(files: dict[str, bytes], place: Path) -> None:
    """Read the run as tables, exports, figures, waiting processes and the doctor do."""
    store = Store(place / "runs")
    folder = store.folder(RUN)
    for name, contents in files.items():
        write(folder.path / name, contents)
    assert 0 <= trained(folder.path) <= 1 and owner(folder.path)
    fit._truncate(folder.path / "progress.jsonl", 6)
    problems: list[str] = []
    rows = finished_runs(store, problems.append).to_dict("records")
    assert bool(problems) != bool(rows), "what is left out is not what is told"
    if problems:
        raise Refused(problems[0])
    run = read_record(folder.path)
    result = folder.result
    stated = {name: json.loads(files[f"{name}.json"]) for name in ("result", "recipe")}
    assert result == stated["result"] == run.pop("metrics") | {"cost": run.pop("cost")}
    assert run == stated["recipe"]
    assert all(math.isfinite(value) for value in result.values() if type(value) in (int, float))
    assert json.loads(rows[0]["metrics"]) == {name: value for name, value in result.items() if name != "cost"}
    assert np.isfinite(folder.frame("progress").to_numpy()).all()


KINDS = {
    "checkpoint": Kind(lambda: [checkpoint()], damage_checkpoint, read_checkpoint, ["checkpoint.pt"]),
    "safetensors": Kind(lambda: [weights()], damage_weights, read_weights, ["encoder.safetensors"]),
    "result files": Kind(results, damage_results, read_results, [RUN.id]),
}
