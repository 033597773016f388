"""TensorBoard's files, made from the logs that training writes anyway; the package is imported when it is asked for."""

import contextlib
import importlib.util
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from repro.run.store import Run, parse_json

SECONDS = 5.0  # between two looks at the logs
LOGS = {"progress.jsonl": "loss", "probes.jsonl": "measured"}  # and how their numbers are grouped
UNDRAWN = ("step", "of", "seconds")


@contextlib.contextmanager
def followed(runs: Sequence[Run], folder: Path) -> Iterator[None]:
    """Copy the logs of runs into event files, from their beginnings on and as they grow while the block lasts.

    Whoever trains the runs; `tensorboard --logdir FOLDER` shows them.

    Args:
        runs: of a table.
        folder: gets a folder of its own for each run, in the place of an earlier one.

    Raises:
        ValueError: if the package tensorboard is not installed.
    """
    if importlib.util.find_spec("tensorboard") is None:
        raise ValueError("--tensorboard needs the package tensorboard; install it with: pip install tensorboard")
    stop = threading.Event()
    thread = threading.Thread(target=_follow, args=(runs, folder, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _follow(runs: Sequence[Run], folder: Path, stop: threading.Event) -> None:
    from torch.utils.tensorboard import SummaryWriter

    copies = []
    for run in runs:
        name = re.sub(r"[^\w+.=-]+", "_", f"{run.cell.dataset} {run.cell.preset} {run.cell} {run.cell.key[:4]}")
        shutil.rmtree(folder / name, ignore_errors=True)
        writer = SummaryWriter(str(folder / name))
        copies += [(writer, group, run.folder / log) for log, group in LOGS.items()]
    read: Counter[Path] = Counter()  # bytes of whole lines; when a run continues, the same lines come again
    last = False
    while not last:
        last = stop.wait(SECONDS)
        for writer, group, log in copies:
            for line in _whole_lines(log, read[log]):
                read[log] += len(line)
                with contextlib.suppress(ValueError, KeyError, TypeError):  # of a line that is damaged
                    values = parse_json(line.decode(errors="replace"))
                    step = values["step"]
                    for name, value in values.items():
                        if name not in UNDRAWN:
                            writer.add_scalar(f"{group}/{name}", value, step)
            writer.flush()
    for writer, *_ in copies:
        writer.close()


def _whole_lines(log: Path, start: int) -> list[bytes]:
    """The lines from a byte on that are written to their end; none of a log that is shorter, or not there yet."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(start)
        return [line for line in file if line.endswith(b"\n")]
