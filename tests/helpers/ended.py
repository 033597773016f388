"""Ends: a training that is let run to its own, and a process that finds one. Imports nothing that takes long."""

import os
import signal


def finish(training):
    """Let a generator such as `fit` run to its end with nothing beside it; what it returns."""
    while True:
        try:
            next(training)
        except StopIteration as end:
            return end.value


def killed(name, runs, stem, required):
    """Stands for drawing; ends the process that draws one of the pictures."""
    if name == "b":
        os.kill(os.getpid(), signal.SIGKILL)
    return [stem]
