"""What takes a GPU to be measured, in one run of less than nine minutes; it writes one JSON file.

    python3 -m tests.benchmarks.gpu [--output gpu.json] [--sections limits,skeletons] [--device cuda]

Sections, each of which tells in its module what it measures: limits, skeletons (the cells of a column at once),
selection, images, clips, equality. On CUDA each has a process of its own, as an error there may spoil all that comes
after it, and a time after which it is stopped; what is found is in the file as soon as a section ends. "column", a
whole column of NW-UCLA with its probes, is asked for alone, since its goal is eight minutes: `--sections column`.

On a CPU, all sizes are tiny, which shows that everything runs and no more. Needs torch and what the package's core
imports.
"""

import argparse
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from repro.run import device as devices

SECONDS = {"limits": 50, "skeletons": 240, "selection": 40, "images": 70, "clips": 70, "equality": 50, "column": 530}
USUAL = [name for name in SECONDS if name != "column"]
CONNECTIONS = {"CUDA_DEVICE_MAX_CONNECTIONS": "32"}  # queues of the device, so that as many streams do not share one


def main() -> None:
    """Measure section by section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("gpu.json"))
    parser.add_argument("--sections", default=",".join(USUAL), help=f"comma list of {', '.join(SECONDS)}")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--print", action="store_true", help=argparse.SUPPRESS)  # of a section's own process
    options = parser.parse_args()
    names = options.sections.split(",")
    if unknown := sorted(set(names) - set(SECONDS)):
        parser.error(f"--sections {unknown[0]} is not one of {', '.join(SECONDS)}")
    if options.print:
        report = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # whatever libraries print is no part of the report
        for line in section(names[0], options.device):
            print(json.dumps(line), file=report, flush=True)
        return
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no CUDA device here; --device cpu shows that everything runs, and no more")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for name in names:
        command = [sys.executable, "-m", "tests.benchmarks.gpu", "--print", "--device", "cuda", "--sections", name]
        results[name] = apart(command, SECONDS[name]) if options.device == "cuda" else dict(section(name, "cpu"))
        results["shares"] = shares(results)
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(short(results), indent=1))


def section(name: str, device: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The names of its parts and what they measure, with the seconds that took; of one that fails, the error.

    The first is the hardware.
    """
    where = devices.resolve(device)
    yield "hardware", devices.hardware(where)
    with devices.threads(1), devices.full_precision():
        parts = importlib.import_module(f"tests.benchmarks.gpu.{name}").parts(where, where.type == "cpu")
        for part, measure in parts.items():
            start = time.perf_counter()
            try:
                measured = measure()
            except Exception as error:
                traceback.print_exc()
                measured = {"error": f"{type(error).__name__}: {error}"}
            yield part, measured | {"seconds in all": time.perf_counter() - start}


def apart(command: list[str], seconds: float) -> dict[str, Any]:
    """What a process prints, a line [part, values] in JSON for every part, until it ends or its time is up."""
    with tempfile.TemporaryFile("w+") as report:
        process = subprocess.Popen(command, env=os.environ | CONNECTIONS, stdout=report, start_new_session=True)
        try:
            status = process.wait(seconds)
            error = {"error": f"its process ended with status {status}"} if status else {}
        except subprocess.TimeoutExpired:
            error = {"error": f"stopped after {seconds} s"}
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes it started
            process.wait()
        report.seek(0)
        return dict(json.loads(line) for line in report if line.endswith("\n")) | error


def shares(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Of every hot path, the share that it reaches of what the device can do.

    Args:
        results: all sections; their parts list under "work" what they did: a path, its limit (a part of "limits"), the
            amount in bytes or operations, and seconds.
    """
    rates = {name: part["rate"] for name, part in results.get("limits", {}).items() if "rate" in part}
    parts = [part for values in results.values() if isinstance(values, dict) for part in values.values()]
    works = [work for part in parts if isinstance(part, dict) for work in part.get("work", [])]
    return [{"path": work["path"], "limit": work["limit"],
             "share": work["amount"] / work["seconds"] / rates[work["limit"]]}
            for work in works if work["limit"] in rates]


def short(results: Any) -> Any:
    """All but long tables and the amounts behind the shares."""
    if not isinstance(results, dict):
        return results
    return {name: short(value) for name, value in results.items() if name not in ("table", "work")}


if __name__ == "__main__":
    main()
