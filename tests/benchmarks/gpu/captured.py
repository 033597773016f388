"""A training step recorded once as a CUDA graph, and replayed: the host then gives one order a step, not hundreds."""

from typing import Any

import torch
from torch import Tensor

from repro.skeleton.pretrain import Pretrainer
from tests.benchmarks.stopwatch import wait

EAGER = 3  # steps before it is recorded, in which libraries and optimiser prepare themselves


class Captured(Pretrainer):
    """The pretrainer with steps whose shapes depend on no batch; on a CPU they are taken without a recording.

    Every batch is padded to the longest sequence of the set, which changes no result: objectives leave padding out.
    What differs from step to step is drawn on the device, or lies in `index`. All is done on a stream of its own, so
    that the steps of several learners overlap; look at results after `wait`.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.longest = int(self.data.lengths.max())
        self.index = torch.zeros(self.recipe.batch, dtype=torch.int64, device=self.device)
        self.stream = torch.cuda.Stream() if self.device.type == "cuda" else None
        self.begun, self.recording, self.losses = 0, None, None
        wait(self.device)  # what was made on another stream is there

    def step(self) -> Tensor:
        """As of `Pretrainer`; the losses are a copy, as the next replay overwrites its own."""
        with torch.cuda.stream(self.stream):
            self.index.copy_(self.train[self.order.take()], non_blocking=True)
            self.begun += 1
            if self.stream is None or self.begun <= EAGER:
                return super().step()
            if self.recording is None:  # to record a step does not take it
                for group in self.optimiser.param_groups:
                    group["capturable"] = True
                self.recording = torch.cuda.CUDAGraph()
                self.recording.register_generator_state(self.generator)
                with torch.cuda.graph(self.recording, stream=self.stream):
                    self.losses = super().step()
            self.recording.replay()
            return self.losses.clone()

    def _next_batch(self) -> tuple[Tensor, Tensor, Tensor]:
        sequences, lengths = self.sequences.padded(self.index, self.longest)
        return sequences, lengths, lengths  # all on the device
