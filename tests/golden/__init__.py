"""The net under a change of the package's spine: what it made before, recorded, and tests that it still makes it.

    recipes.json    every preset's recipe of every study, data set and method
    keys.json       the cells that tables need, by what they are asked for, and their keys
    rows.csv        the rows that tables make of made-up results, beside the printed numbers
    results.json    what smoke-size trainings of every method and variant measure

`asked.py` says what is recorded, `record.py` writes the files, `bits.py` compares two checkouts bit by bit, and
`adapter.py` alone calls the package: it may follow a change of the interface, the recorded files may not.
"""

import sys
from pathlib import Path

HELPERS = str(Path(__file__).parents[1] / "helpers")
if HELPERS not in sys.path:  # also where pytest, which adds it, is not what runs
    sys.path.append(HELPERS)
