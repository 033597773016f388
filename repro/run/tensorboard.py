"""TensorBoard's files, made from the logs that training writes anyway; the package is imported when it is asked for."""

import contextlib
import importlib.util
import re
import shutil
import threading
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
        copies += [(writer, group, _Log(run.folder / log)) for log, group in LOGS.items()]
    last = False
    while not last:
        last = stop.wait(SECONDS)
        for writer, group, log in copies:
            for step, values in log.new():
                for term, value in values.items():
                    writer.add_scalar(f"{group}/{term}", value, step)
            writer.flush()
    for writer, *_ in copies:
        writer.close()


class _Log:
    """A log that grows, and that loses its last lines when its run continues from a checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path, self.offset, self.step = path, 0, 0

    def new(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Step and numbers of the whole lines that were not there before."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(min(self.offset, self.path.stat().st_size))
            text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self.offset = file.tell() - len(text) + len(whole)
        for line in whole.decode(errors="replace").splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):  # of a line that was cut
                values = parse_json(line)
                if values["step"] > self.step:
                    self.step = values["step"]
                    yield self.step, {name: value for name, value in values.items() if name not in UNDRAWN}
