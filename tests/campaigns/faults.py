"""Kill a small run of each modality at thirty random moments, run it again to its end, and compare bit by bit.

    python3 -m tests.campaigns.faults

writes tests/campaigns/faults.csv, a line for each; what the columns are, `kills.Trial` says. A run is data prepared,
trained, saved, evaluated and stored by the commands a reader gives, see `small_runs`; five moments are drawn from each
phase of an undisturbed run, uniformly over the time it takes, and every third run is killed twice. Where the machine is
busy a kill may hit the phase before or after. The disk is slowed down, so that files are hit half written or not yet
moved. Compared are all files that are left (results, states, logs without their times, prepared arrays) and what is
printed. One moment of each modality is tested every time (tests/run/test_faults.py).
"""

import shutil
import sys
import tempfile
from pathlib import Path

import pandas as pd
from kills import Trial, trial, undisturbed
from nursery import Nursery
from small_runs import COMMANDS, make_data
from tqdm import tqdm

TRIALS = 30
RESULTS = Path(__file__).with_suffix(".csv")


def main() -> int:
    """Run all trials; returns how many ended otherwise than undisturbed."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_data(folder / "data")
        nursery = Nursery("small_runs", folder, REPRO_DATA=str(folder / "data"))
        trials = [each for modality in COMMANDS for each in killed(nursery, folder / modality, modality)]
        nursery.close()
    table = pd.DataFrame(trials)
    table.assign(differences=table["differences"].str.join(" ")).to_csv(RESULTS, index=False)
    print(table[["modality", "hit", "identical"]].value_counts(sort=False))
    return int((~table["identical"]).sum())


def killed(nursery: Nursery, folder: Path, modality: str) -> list[Trial]:
    """The trials of a modality."""
    expected = undisturbed(nursery, folder, modality)
    trials = []
    for number in tqdm(range(TRIALS), desc=modality):
        root = folder.with_name(f"{modality}-{number}")
        trials.append(trial(nursery, root, modality, number, expected))
        shutil.rmtree(root)
    return trials


if __name__ == "__main__":
    sys.exit(main())
