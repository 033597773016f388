"""A small run killed at a drawn moment, run again to its end, and compared with an undisturbed one."""

import os
import random
import shutil
import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from nursery import Nursery, until
from small_runs import PHASES
from states import differences, outcome

TWICE = 3  # every third run that is killed is killed once more


class Undisturbed(NamedTuple):
    """A run that nothing disturbed: its folder of runs, (time, phase) as each began, and its `outcome`."""

    runs: Path
    phases: list[tuple[float, str]]
    outcome: dict[str, Any]


class Trial(NamedTuple):
    """What came of a run that was killed."""

    modality: str
    number: int
    aimed: str                     # the phase that the moment was drawn in
    hit: str                       # the phase that was killed
    seconds: float                 # from the start to the kill
    identical: bool                # whether the end is that of an undisturbed run
    differences: tuple[str, ...]   # files that are otherwise, or the error that it ended with


def undisturbed(nursery: Nursery, root: Path, modality: str) -> Undisturbed:
    """A run on a slow disk, from nothing to its end, in a new folder."""
    root.mkdir()
    left = finished(nursery, root, modality, "slow")
    return Undisturbed(root / "runs", phases(root), left)


def trial(nursery: Nursery, root: Path, modality: str, number: int, expected: Undisturbed) -> Trial:
    """Kill a run in a new folder at the moment drawn for that number, give its command again, and compare.

    A moment that comes too late, as the run is faster than the undisturbed one was, is drawn again.
    """
    draw, aimed, hit = random.Random(f"{modality} {number}"), PHASES[number % len(PHASES)], "end"
    while hit == "end":
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        seconds = _killed(nursery, root, modality, *_drawn(draw, aimed, expected.phases))
        hit = phases(root)[-1][1]
    if number % TWICE == 0:
        whole = expected.phases[-1][0] - expected.phases[0][0]
        _killed(nursery, root, modality, len(phases(root)) + 1, draw.uniform(0, whole))
    try:
        different = differences(finished(nursery, root, modality), expected.outcome)
    except AssertionError as error:  # it did not come to its end
        different = [str(error).splitlines()[-1]]
    return Trial(modality, number, aimed, hit, round(seconds, 3), not different, tuple(different))


def finished(nursery: Nursery, root: Path, modality: str, *options: str) -> dict[str, Any]:
    """Give the command that begins a run or goes on with it, and wait for its end; what there is then."""
    pid = nursery.start(root, modality, *options)
    status = nursery.status(pid)
    assert status == 0, (root / f"{pid}.err").read_text()
    printed = (root / f"{pid}.out").read_text().replace(str(root / "runs"), "")
    return {"printed": printed} | outcome(root / "runs")


def phases(root: Path) -> list[tuple[float, str]]:
    """(time, phase) of all phases that have begun in a folder."""
    file = root / "phases"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [(float(time), name) for time, name in map(str.split, lines)]


def _drawn(draw: random.Random, aimed: str, phases: list[tuple[float, str]]) -> tuple[int, float]:
    """A moment drawn uniformly from all times at which an undisturbed run is in a phase.

    Returns:
        How many phases have begun then, and the seconds since the last of them.
    """
    times = {number: end - begin for number, ((begin, name), (end, _)) in enumerate(pairwise(phases), start=1)
             if name == aimed}
    begun = draw.choices([*times], [*times.values()])[0]
    return begun, draw.uniform(0, times[begun])


def _killed(nursery: Nursery, root: Path, modality: str, begun: int, seconds: float) -> float:
    """Start a run on a slow disk and kill it at a moment; how long it lived. It may have ended by itself before."""
    start, pid = time.monotonic(), nursery.start(root, modality, "slow")
    until(lambda: len(phases(root)) >= begun)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    lived = time.monotonic() - start
    status = nursery.status(pid)
    assert status in (0, -signal.SIGKILL), (root / f"{pid}.err").read_text()
    return lived
