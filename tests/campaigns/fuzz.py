"""Damaged and hostile input of every kind, each read in a process with a limit of memory and of time.

    python3 -m tests.campaigns.fuzz [--inputs 200] [--kinds "wav,zip of pictures"] [--number 17]

An input is determined by its kind and number. It must read to what it states, or be refused by an error of ours that
names it: whatever else happens is a failure, be it another exception, a warning, a wrong value, more than a GiB of
memory, more than `SECONDS`, or the end of the process. The whole campaign writes `fuzz.csv`, a row per kind, and
`fuzz_errors.csv`, how often which error was seen; `tests/test_fuzz.py` tries the first inputs of every kind.
"""

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.campaigns import archives, clips, lists, parameters, skeletons, stored
from tests.campaigns.processes import Outcome, campaign, child

HERE = Path(__file__).parent
RARE = 5
KINDS = skeletons.KINDS | archives.KINDS | lists.KINDS | clips.KINDS | stored.KINDS | parameters.KINDS


def table(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """A row per kind: how many inputs were tried, read, refused and failed; the most memory and time that one took."""
    rows = []
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        of_kind = [outcome for outcome in outcomes if outcome.kind == kind]
        results = Counter(outcome.result for outcome in of_kind)
        row = {"kind": kind, "tried": len(of_kind)} | {name: results[name] for name in ("read", "refused", "failed")}
        row |= {"peak_mb": max(outcome.peak_mb for outcome in of_kind)}
        rows.append(row | {"slowest_s": max(outcome.seconds for outcome in of_kind)})
    return rows


def errors(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """A row per kind and error, the most frequent first; refusals seen fewer than `RARE` times are one row together."""
    counts = Counter((outcome.kind, outcome.result, outcome.error) for outcome in outcomes if outcome.error)
    for (kind, result, error), count in list(counts.items()):
        if count < RARE and result == "refused":
            counts[kind, result, "others"] += counts.pop((kind, result, error))
    order = list(dict.fromkeys(outcome.kind for outcome in outcomes))
    found = sorted(counts.items(), key=lambda each: (order.index(each[0][0]), -each[1], each[0]))
    return [{"kind": kind, "result": result, "error": error, "inputs": count} for (kind, result, error), count in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200, help="of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--number", type=int, help="this input alone; writes nothing")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(KINDS)
    numbers = range(options.inputs) if options.number is None else [options.number]
    kinds, outcomes = options.kinds.split(","), []
    for outcome in campaign([(kind, number) for kind in kinds for number in numbers], "tests.campaigns.fuzz"):
        outcomes.append(outcome)
        if outcome.result == "failed" or options.number is not None:
            print(*outcome, sep="  ", flush=True)
    for row in table(outcomes):
        print(*(f"{name} {value}" for name, value in row.items()), sep="  ")
    if options.number is None and kinds == list(KINDS):
        for name, rows in (("fuzz.csv", table(outcomes)), ("fuzz_errors.csv", errors(outcomes))):
            with open(HERE / name, "w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, rows[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    return sys.exit(any(outcome.result == "failed" for outcome in outcomes))


if __name__ == "__main__":
    main()
