"""The same training steps in one process and in two gloo processes that share every batch."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, distributed, nn

from repro.contrast.dictionary import Dictionary, unit_noise
from repro.contrast.momentum import GhostBatchNorm2d, MomentumEncoder, dealt, encode_shuffled
from repro.contrast.objectives import info_nce
from repro.run.group import check_alone, check_shared, gather, shared

BATCH, STEPS = 8, 3


class SmallEncoder(nn.Module):
    """Two convolutions with two ghost groups, and a head normalised over the whole batch."""

    groups = 2

    def __init__(self):
        super().__init__()
        convolutions = [nn.Conv2d(3, 4, 3, bias=False), GhostBatchNorm2d(4, 2), nn.ReLU()]
        convolutions += [nn.Conv2d(4, 5, 3), GhostBatchNorm2d(5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.trunk = nn.Sequential(*convolutions)
        self.head = nn.Sequential(nn.Linear(5, 6, bias=False), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4))

    def features(self, images):
        if not self.training:
            return self.trunk(images)
        return dealt(self.trunk(dealt(images, self.groups)), len(images) // self.groups)

    def forward(self, images):
        return self.head(self.features(images))


class Shifts(NamedTuple):
    by: Tensor


class Shifted:
    """A view that adds a random number to every picture."""

    def draw(self, count, height, width, generator):
        return Shifts(torch.randn(count, generator=generator, dtype=torch.float64))

    def apply(self, pictures, draws):
        return pictures + draws.by[:, None, None, None]

    def __call__(self, pictures, generator):
        return self.apply(pictures, self.draw(len(pictures), 0, 0, generator))


class Source:
    """Pictures from memory, for so many views."""

    def __init__(self, images, views):
        self.images, self.views = images, views

    def batches(self, order, *, batch, seed):
        for index in order.split(batch):
            yield [self.images[index]] * len(self.views)


class Small:
    """What `repro.run.group.shared` takes, as a learner for one process is."""

    parts, total_steps = ("model", "keys", "optimiser"), 1

    def __init__(self, model, images, shuffle):
        self.model, self.keys, self.images, self.shuffles = model, MomentumEncoder(model, 0.9), images, shuffle
        self.source, self.generator = self.source_of([Shifted(), Shifted()]), torch.Generator().manual_seed(0)
        self.optimiser = torch.optim.SGD(model.parameters(), lr=0.1)

    def source_of(self, views):
        return Source(self.images, views)

    @torch.no_grad()
    def features(self, index):
        self.model.eval()
        source = self.source_of([Shifted()])
        view, = source.views
        return torch.cat([self.model.features(view(pictures, self.generator))
                          for pictures, in source.batches(index, batch=4, seed=(0,))])


def train(learner):
    """Steps of contrast, and everything two runs can be compared by."""
    dictionary = Dictionary(unit_noise(16, 4, generator=torch.Generator().manual_seed(1)).double())
    found = []
    for pictures in learner.source.batches(torch.arange(STEPS * BATCH), batch=BATCH, seed=(0,)):
        learner.model.train()
        queries, images = (view(seen, learner.generator)
                           for view, seen in zip(learner.source.views, pictures, strict=True))
        queries = learner.model(queries)
        if learner.shuffles:
            keys = encode_shuffled(learner.keys, images, torch.randperm(BATCH, generator=learner.generator))
        else:
            keys = learner.keys(images)
        learner.optimiser.zero_grad()
        info_nce(queries, keys, dictionary.entries, 0.2).backward()
        learner.optimiser.step()
        dictionary.enqueue(keys)
        learner.keys.update(learner.model)
        gradients = {name: parameter.grad.clone() for name, parameter in learner.model.named_parameters()}
        found.append({"queries": queries.detach(), "keys": keys, "gradients": gradients,
                      "features": learner.features(torch.arange(7))})  # of which the last part has no equal halves
    states = {"model": learner.model.state_dict(), "twin": learner.keys.state_dict()}
    return {"steps": found, "dictionary": dictionary.entries, **states, "drawn": learner.generator.get_state()}


def in_two_processes(folder, model, images):
    """For both ranks: `train` without and with shuffling, gathered rows and messages of errors."""
    torch.save((model, images), folder / "given.pt")
    roots = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, roots)), "WORLD_SIZE": "2"}
    if sys.platform == "linux":
        environment["GLOO_SOCKET_IFNAME"] = "lo"
    children = [
        subprocess.Popen([sys.executable, "-W", "error", __file__, str(folder)], env=environment | {"RANK": str(rank)})
        for rank in range(2)
    ]
    try:
        assert [child.wait(timeout=120) for child in children] == [0, 0]
    finally:
        for child in children:
            child.kill()
    return [torch.load(folder / f"found{rank}.pt") for rank in range(2)]


def message(call):
    try:
        call()
    except ValueError as error:
        return str(error)


def main(folder):
    torch.set_num_threads(1)
    rank, processes = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=processes)
    found = {}
    for shuffle in (False, True):
        model, images = torch.load(folder / "given.pt", weights_only=False)
        found[shuffle] = train(shared(Small(model, images, shuffle)))
    found["gathered"] = gather(torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.bfloat16) + 10 * rank)
    found["alone"] = message(lambda: check_alone("clips"))
    found["divided"] = [message(lambda sizes=sizes: check_shared(*sizes)) for sizes in ((7, 2), (16, 3), (16, 8))]
    torch.save(found, folder / f"found{rank}.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
