"""The command line on small image cells, started by `torchrun`; it can be killed once a checkpoint is written.

    python image_processes.py CHECKPOINTS WORDS...      `repro WORDS...`, killed after so many checkpoints (0: never)
"""

import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from made_up_images import use_tiny_trunk
from torch import nn

from repro import cli
from repro.image import study
from repro.image.augment import ShiftedView, normalisation, probe
from repro.image.methods import METHODS
from repro.image.pretrain import Pretrainer
from repro.image.recipe import PRESETS, paper
from repro.image.study import data_of
from repro.run import fit, store, training
from repro.run.device import from_first
from repro.run.group import process, shared

UNSHUFFLED, SHIFTED = ("sce",), ("moco", "jcl")  # the other methods shuffle, their probe sees crops
CHOICES = {"groups": 2, "batch": 256, "epochs": 2, "dictionary": 300, "warmup": 0, "projection": 16, "momentum": 0.9,
           "precision": "float32", "channels_last": False, "probe_epochs": 4, "probe_learning_rate": 3.0,
           "probe_momentum": 0.0}


class Predicting(Pretrainer):
    """A learner as a paper may add one: a further part with parameters of its own, and a loss over pairs of a batch."""

    parts = (*Pretrainer.parts, "predictor")

    def __init__(self, recipe, data, seed, device):
        super().__init__(recipe, data, seed, device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed + 1)
            self.predictor = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16)).to(device)
        self.optimiser.add_param_group({"params": self.predictor.parameters()})

    def loss(self, batch):
        predicted = self.predictor(batch.query)
        uniformity = torch.pdist(predicted).square().mul(-2).exp().mean().log()
        return super().loss(dataclasses.replace(batch, query=predicted)) + 0.1 * uniformity


def learner_of(recipe, *others):
    """Of MoCo that with a predictor, of other methods the usual one."""
    return (Predicting if recipe.method == "moco" else Pretrainer)(recipe, *others)


def two_groups(dataset, method, **changes):
    """A recipe of two ghost groups and two epochs of five steps."""
    own = {"keys": 2 if "keys" in METHODS[method].fields else 1, "shuffle": method not in UNSHUFFLED}
    own["probe_view"] = "shifted" if method in SHIFTED else "crop"
    return paper(dataset, method, **CHOICES | own | changes)


def small(patch):
    """Let "smoke" stand for these recipes, with a tiny trunk and a checkpoint every epoch, until `patch` is undone.

    MoCo has a predictor.
    """
    use_tiny_trunk(patch)
    patch.setattr(training, "train", functools.partial(train_and_look, training.train))
    patch.setattr(study, "Pretrainer", learner_of)
    patch.setitem(PRESETS, "smoke", two_groups)
    patch.setattr(training, "fit", functools.partial(fit.fit, checkpoint_seconds=0))


def train_and_look(train, run, progress, *, study, device, **options):
    """Train the cell; every process writes the result it holds and features of random views beside the cell's files."""
    result = yield from train(run, progress, study=study, device=device, **options)
    rank, _ = process()
    (run.folder / f"seen by {rank}.json").write_text(json.dumps(result))
    recipe = run.cell.recipe
    pretrainer = shared(learner_of(recipe, data_of(recipe), 0, device))
    pretrainer.load_state_dict(fit.load_checkpoint(run.folder)["learner"])
    found, normalised_by = {}, normalisation(recipe.dataset)
    for view in (ShiftedView(normalised_by), probe(recipe.size, normalised_by)):
        generator = torch.Generator(device).manual_seed(1)  # 31 images: the last part of 7 has no equal halves
        found[type(view).__name__] = pretrainer.features(torch.arange(31), view, generator=generator, batch=8)
    torch.save(found, run.folder / f"features of {rank}.pt")
    return result


def in_two_processes(folder, *words, checkpoints=0):
    """The finished `torchrun` of `main`, its output as text, with runs in `folder`."""
    roots = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, roots)), "REPRO_RUNS": str(folder),
                                "OMP_NUM_THREADS": "1"}
    if sys.platform == "linux":
        environment["GLOO_SOCKET_IFNAME"] = "lo"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", __file__]
    command += [str(checkpoints), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def refuse(path, *_):
    raise AssertionError(f"{path} was written by a process that is not the first")


def main(checkpoints, *words):
    """The command line in one of the processes. Only the first may write."""
    left, save = iter(range(checkpoints - 1, -1, -1)), fit._save

    def save_and_die(*arguments):
        save(*arguments)
        if next(left, None) == 0:
            from_first(lambda: None)  # which has written it
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        patch.setattr(fit, "_save", save_and_die)
        if os.environ["RANK"] != "0":
            for module, name in ((store, "write_atomically"), (fit, "write_atomically"), (fit, "naming")):
                patch.setattr(module, name, refuse)
        patch.setattr(sys, "argv", ["repro", *words])
        cli.main()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
