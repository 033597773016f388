"""Damaged and hostile input of every kind, each read in a process with a limit of memory and of time.

    python3 -m tests.campaigns.fuzz [--inputs 200] [--kinds "wav,zip of pictures"] [--number 17] [--json]
                                    [--processes 2]

An input is determined by its kind and number. It must read to what it states, or be refused by an error of ours that
names it: whatever else happens is a failure, be it another exception, a warning, a wrong value, more than a GiB of
memory, more than `SECONDS`, or the end of the process. The whole campaign writes `fuzz.csv`, a row per kind;
`tests/test_fuzz.py` tries the first inputs of every kind.
"""

import argparse
import json
import sys
from pathlib import Path

import pandas as pd

from tests.campaigns import archives, clips, stored
from tests.campaigns.processes import Outcome, campaign

COMMITTED = Path(__file__).with_suffix(".csv")
KINDS = archives.KINDS | clips.KINDS | stored.KINDS


def table(outcomes: list[Outcome]) -> pd.DataFrame:
    """A row per kind: how many inputs were tried, read, refused and failed."""
    frame = pd.DataFrame(outcomes, columns=Outcome._fields)
    for name in ("read", "refused", "failed"):
        frame[name] = frame["result"] == name
    return frame.groupby("kind", sort=False).agg(
        tried=("result", "size"), read=("read", "sum"), refused=("refused", "sum"), failed=("failed", "sum"),
    ).reset_index()


def main() -> None:
    """Try inputs, print what failed, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200, help="of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--number", type=int, help="this input alone")
    parser.add_argument("--processes", type=int, default=2, help="that try inputs")
    parser.add_argument("--json", action="store_true", help="print every outcome as a line, and write nothing")
    options = parser.parse_args()
    chosen, outcomes = {name: KINDS[name] for name in options.kinds.split(",")}, []
    numbers = range(options.inputs) if options.number is None else [options.number]
    for outcome in campaign(chosen, numbers, options.processes):
        outcomes.append(outcome)
        if options.json:
            print(json.dumps(outcome), flush=True)
        elif outcome.result == "failed" or options.number is not None:
            print(*outcome, sep="  ", flush=True)
    if not options.json:
        print(table(outcomes).to_string(index=False))
        if options.number is None and chosen.keys() == KINDS.keys():
            table(outcomes).to_csv(COMMITTED, index=False)
    sys.exit(any(outcome.result == "failed" for outcome in outcomes))


if __name__ == "__main__":
    main()
