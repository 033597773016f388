"""The net under a change of the package's spine: what it made before, recorded, and tests that it still makes it.

    recipes.json    every preset's recipe of every study, data set and method
    ids.json        the runs that tables need, by what they are asked for, and their ids
    rows.csv        the rows that tables make of made-up results, beside the printed numbers
    results.json    what smoke-size trainings of every method and variant measure

The files say both what is asked and what came of it. `python3 -m tests.golden.recorded [recipes ids rows
results]` asks all of it again and writes them anew, from the root of a checkout, on a CPU and without REPRO_DATA: only
where the behaviour is meant to change, and the commit says what changed and why. To record more, add what is asked to a
file. `bits.py` compares two checkouts bit by bit. `recorded.py` alone calls the package.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "helpers"))  # also where pytest, which adds it, is not what runs
