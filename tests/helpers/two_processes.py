"""Two processes of `torchrun` that share image runs: their steps, or the command line, which can be killed.

    steps FOLDER                 writes what each process computes to FOLDER/RANK.pt
    CHECKPOINTS WORDS...         `repro WORDS...`, killed after so many checkpoints (0: never)

These are words of `launched`, by the agent that `torchrun` is, and of `forked`, by processes that have its variables.
"""

import contextlib
import dataclasses
import functools
import os
import signal
import socket
import sys

import pytest
import torch
from image_learners import CPU, DIGITS, in_float64, tiny, trace
from made_up_images import made_up, use_tiny_trunk
from nursery import Nursery
from torch import distributed, nn
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from repro import cli
from repro.image.augment import ShiftedView, probe
from repro.image.pretrain import Pretrainer
from repro.image.recipe import PRESETS, paper
from repro.run import fit, store, training
from repro.run.device import from_first
from repro.run.group import shared

SMALL = {"groups": 2, "batch": 256, "epochs": 2, "dictionary": 300, "warmup": 0, "projection": 16, "momentum": 0.9,
         "precision": "float32", "channels_last": False, "probe_epochs": 4, "probe_learning_rate": 3.0,
         "probe_momentum": 0.0}
LEARNERS = {"moco": {}, "sce": {"shuffle": False}, "jcl": {"keys": 2, "groups": 4}, "supervised": {}}


class Predicting(Pretrainer):
    """A learner as a paper may add one: a further part with parameters of its own, and a loss over pairs of a batch."""

    parts = (*Pretrainer.parts, "predictor")

    def __init__(self, recipe, data, seed, device):
        super().__init__(recipe, data, seed, device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed + 1)
            self.predictor = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)).to(device)
        self.optimiser.add_param_group({"params": self.predictor.parameters()})

    def loss(self, batch):
        predicted = self.predictor(batch.query)
        uniformity = torch.pdist(predicted).square().mul(-2).exp().mean().log()
        return super().loss(dataclasses.replace(batch, query=predicted)) + 0.1 * uniformity


def steps(method):
    """The terms of three epochs in float64, the state they lead to, and features of random views.

    With "rows", how many images of the first batch this process has encoded as queries. Ghost groups are two, those of
    JCL four; the parameters of MoCo are joined by those of a predictor.
    """
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_trunk(patch)
        kind = Predicting if method == "moco" else Pretrainer
        learner = kind(tiny(method, **{"groups": 2} | LEARNERS[method]), made_up(), 3, CPU)
        learner, rows = shared(in_float64(learner, patch)), []
        learner.model.trunk.register_forward_pre_hook(
            lambda trunk, images: rows.append(len(images[0])) if trunk.training else None)
        found = {"terms": trace(learner, learner.total_steps), "rows": rows[0]}
        for view in (ShiftedView(DIGITS), probe(8, DIGITS)):
            draws = torch.Generator().manual_seed(1)  # 19 images: the last part of 3 has no equal halves
            found[type(view).__name__] = learner.features(torch.arange(19), view, generator=draws, batch=8)
        return found | learner.state_dict()


def small(patch):
    """Let "smoke" stand for two ghost groups and two epochs of five steps, with a checkpoint every epoch."""
    use_tiny_trunk(patch)
    patch.setitem(PRESETS, "smoke", lambda dataset, method, **changes: paper(dataset, method, **SMALL | changes))
    patch.setattr(training, "fit", functools.partial(fit.fit, checkpoint_seconds=0))


@contextlib.contextmanager
def nursery(folder):
    """Processes that have the variables of `torchrun` in common."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none",
                 "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else ""}
    with contextlib.closing(Nursery("two_processes", folder, **variables)) as processes:
        yield processes


def forked(nursery, folder, *words, ranks=(0, 1)):
    """How two processes ended that are told of one another as `torchrun` would, and what they said: out and errors."""
    pids = [nursery.start(folder, rank, *words) for rank in ranks]
    statuses = [nursery.status(pid) for pid in pids]
    return statuses, *("".join((folder / f"{pid}.{name}").read_text() for pid in pids) for name in ("out", "err"))


def launched(nursery, folder, *words):
    """The same of the agent of `torchrun`, whose two processes are forks of it."""
    return forked(nursery, folder, *words, ranks=["agent"])


def work(root, rank, *words):
    """One of two processes, or the agent that starts two."""
    if rank == "agent":
        config = LaunchConfig(1, 1, 2, run_id="none", rdzv_backend="c10d", rdzv_endpoint="localhost:0", max_restarts=0,
                              start_method="fork")
        elastic_launch(config, main)(*words)
    else:
        os.environ |= {"RANK": rank, "LOCAL_RANK": rank}
        main(*words)


def refuse(path, *_):
    raise AssertionError(f"{path} was written by a process that is not the first")


def command_line(checkpoints, *words):
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


def main(first, *words):
    """Do what these words say, see above."""
    if first == "steps":
        distributed.init_process_group("gloo")
        torch.save({name: steps(name) for name in LEARNERS}, f"{words[0]}/{distributed.get_rank()}.pt")
        distributed.destroy_process_group()
    else:
        command_line(int(first), *words)
