"""The same training steps in one process and in two gloo processes that share every batch."""

import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import distributed, nn

from repro.contrast.dictionary import Dictionary, unit_noise
from repro.contrast.momentum import (
    GhostBatchNorm2d,
    MomentumEncoder,
    WholeBatchNorm1d,
    average_gradients,
    average_statistics,
    dealt,
    encode_shuffled,
    gather,
    groups_here,
)
from repro.contrast.objectives import info_nce


class SmallEncoder(nn.Module):
    """Two convolutions with two ghost groups, and a head normalised over the whole batch."""

    def __init__(self):
        super().__init__()
        convolutions = [nn.Conv2d(3, 4, 3, bias=False), GhostBatchNorm2d(4, 2), nn.ReLU()]
        convolutions += [nn.Conv2d(4, 5, 3), GhostBatchNorm2d(5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.trunk = nn.Sequential(*convolutions)
        self.head = nn.Sequential(nn.Linear(5, 6, bias=False), WholeBatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4))

    def forward(self, images):
        groups = groups_here(2, len(images))
        return self.head(dealt(self.trunk(dealt(images, groups)), len(images) // groups))


def train(model, views, *, shuffle, rank=0, processes=1):
    """Steps of contrast over `views`, pairs of whole batches; returns everything two runs can be compared by."""
    follower = MomentumEncoder(model, 0.9)
    generator = torch.Generator().manual_seed(0)
    found = []
    for first, second in views:
        queries, images = model(first[rank::processes]), second[rank::processes]
        if shuffle:
            keys = encode_shuffled(follower, images, torch.randperm(len(second), generator=generator))
        else:
            keys = follower(images)
        if not found:
            noise = unit_noise(16, keys.shape[1], generator=torch.Generator().manual_seed(1))
            dictionary = Dictionary(noise.to(keys.dtype))
        model.zero_grad()
        info_nce(queries, keys, dictionary.entries, 0.2).backward()
        average_gradients(model.parameters())
        dictionary.enqueue(gather(keys))
        gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
        found.append({"queries": gather(queries).detach(), "own keys": keys, "gradients": gradients})
        with torch.no_grad():  # by hand: importing torch's optimisers takes longer than all the rest
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
        follower.update(model)
        average_statistics(model)  # often or only at the end: both should give the same
    average_statistics(follower)
    states = {"model": model.state_dict(), "twin": follower.twin.state_dict(), "dictionary": dictionary.entries}
    return {"steps": found, **states}


def in_two_processes(folder, model, views):
    """For both ranks: `train` without and with shuffling, gathered rows and the message of an error."""
    torch.save((model, views), folder / "given.pt")
    roots = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    shared = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, roots)), "WORLD_SIZE": "2"}
    if sys.platform == "linux":
        shared["GLOO_SOCKET_IFNAME"] = "lo"
    children = [
        subprocess.Popen([sys.executable, "-W", "error", __file__, str(folder)], env=shared | {"RANK": str(rank)})
        for rank in range(2)
    ]
    try:
        assert [child.wait(timeout=120) for child in children] == [0, 0]
    finally:
        for child in children:
            child.kill()
    return [torch.load(folder / f"found{rank}.pt") for rank in range(2)]


def main(folder):
    torch.set_num_threads(1)
    rank, processes = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=processes)
    found = {}
    for shuffle in (False, True):
        model, views = torch.load(folder / "given.pt", weights_only=False)
        found[shuffle] = train(model, views, shuffle=shuffle, rank=rank, processes=processes)
    found["gathered"] = gather(torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.bfloat16) + 10 * rank)
    try:
        groups_here(3, 6)
    except ValueError as error:
        found["error"] = str(error)
    torch.save(found, folder / f"found{rank}.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
