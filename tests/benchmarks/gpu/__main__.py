"""What takes a GPU to be measured, in one run of less than nine minutes; it writes one JSON file and one figure.

    python3 -m tests.benchmarks.gpu [--output gpu.json] [--sections limits,skeletons] [--device cuda]

Sections, each of which tells in its module what it measures: limits, skeletons (the cells of a column at once),
selection, images, clips, equality. On CUDA each has a process of its own, as an error there may spoil all that comes
after it, and a time after which it is stopped; what is found is in the file as soon as a section ends. Sections that
are not asked for stay as an earlier run on the same hardware left them. "column", a whole column of NW-UCLA with its
probes, is asked for alone, since its goal is eight minutes: `--sections column`.

On a CPU, all sizes are tiny, which shows that everything runs and no more. Needs torch and what the package's core
imports; matplotlib for the figure alone.
"""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.gpu.apart import apart, measured

SECONDS = {"limits": 50, "skeletons": 240, "selection": 40, "images": 70, "clips": 70, "equality": 50, "column": 530}
USUAL = [name for name in SECONDS if name != "column"]
CONNECTIONS = {"CUDA_DEVICE_MAX_CONNECTIONS": "32"}  # queues of the device, so that as many streams do not share one


def main() -> None:
    """Measure section by section, then draw."""
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
    found = json.loads(options.output.read_text()) if options.output.exists() else {}
    for name in names:
        found[name] = in_own_process(name) if options.device == "cuda" else dict(section(name, options.device))
        found = of_one_machine(found, name)
        found["distances"] = distances(found)
        options.output.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(short(found), indent=1))
    try:
        from tests.benchmarks.gpu import figure
    except ModuleNotFoundError as error:
        print(f"{error.name.partition('.')[0]} is not installed: no figure", file=sys.stderr)
    else:
        figure.draw(found).savefig(options.output.with_suffix(".png"), dpi=200)


def of_one_machine(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Without the sections that were measured on other hardware, or with another torch, than one of them."""
    here = found[name].get("hardware")
    dropped = [other for other, part in found.items()
               if here and isinstance(part, dict) and part.get("hardware", here) != here]
    if dropped:
        print(f"left out, as measured on other hardware: {', '.join(dropped)}", file=sys.stderr)
    return {other: part for other, part in found.items() if other not in dropped}


def section(name: str, device: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Its parts' names and what they find; the first is the hardware."""
    from repro.run import device as devices

    where = devices.resolve(device)
    yield "hardware", devices.hardware(where)
    with devices.threads(1), devices.full_precision():
        parts = importlib.import_module(f"tests.benchmarks.gpu.{name}").parts(where, where.type == "cpu")
        yield from measured(parts)


def in_own_process(name: str) -> dict[str, Any]:
    """The same, stopped in time."""
    os.environ |= CONNECTIONS
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--print", "--device", "cuda", "--sections", name]
    return apart(command, SECONDS[name])


def distances(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Of every hot path, the share that it reaches of what the device can do.

    Args:
        found: all sections; their parts list under "work" what they did: a path, its limit (a part of "limits"), the
            amount in bytes or operations, and seconds.
    """
    parts = {name: [part for part in values.values() if isinstance(part, dict)]
             for name, values in found.items() if isinstance(values, dict)}
    rates = {name: part["rate"] for name, part in found.get("limits", {}).items() if "rate" in part}
    works = [work for section in parts.values() for part in section for work in part.get("work", [])]
    return [{"path": work["path"], "limit": work["limit"],
             "share": work["amount"] / work["seconds"] / rates[work["limit"]]}
            for work in works if work["limit"] in rates]


def short(found: Any) -> Any:
    """What a reader wants at first: all but long tables and the amounts behind the shares."""
    if not isinstance(found, dict):
        return found
    return {name: short(value) for name, value in found.items() if name not in ("table", "work")}


if __name__ == "__main__":
    main()
