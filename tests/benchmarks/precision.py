"""Whether the taxonomy may be trained with bfloat16 products: both precisions, the same seeds, the paper's recipe.

    python3 -m tests.benchmarks.precision [--preset paper] [--objectives CE,AE+CE+AD] [--seeds 0,1,2]

Needs NW-UCLA. Cells are runs like any other below REPRO_RUNS: killed and started again it continues, and
`repro results export` keeps them. Printed for each accuracy: mean and standard deviation over seeds in both precisions,
their difference, its standard error, and the p-value of Welch's test; then the time of a step.
"""

import argparse
import functools
import json

from pandas import DataFrame
from scipy.stats import ttest_ind

from repro.data import manifest
from repro.run import device as devices
from repro.run.engine import pool_of, run_cells
from repro.run.store import Store
from repro.table import find, train

PRECISIONS = ("float32", "bfloat16")


def main() -> None:
    """Train what is missing, then compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--objectives", default="CE,AE+CE+AD")
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    table = find("taxonomy")
    chosen = [table.cells("ucla", precision=each, device="cpu", **vars(options)) for each in PRECISIONS]
    cells = [cell for pair in zip(*chosen, strict=True) for cell in pair]
    where, store = devices.resolve("cpu"), Store(manifest.runs_root())
    pool = pool_of("local", "auto", cells, where)
    results = run_cells(cells, functools.partial(train, study=table.study, device=where), store, pool=pool)
    results["objectives"] = [cell.recipe.objectives for cell in cells]
    results["precision"] = [cell.recipe.precision for cell in cells]
    costs = [json.loads((store.run(cell).folder / "result.json").read_text())["cost"] for cell in cells]
    results["step"] = [1e3 * cost["seconds"] / max(1, cost["steps"]) for cost in costs]
    print(compared(results).to_string(index=False, float_format="{:.2f}".format))


def compared(results: DataFrame) -> DataFrame:
    """One row for each objective and accuracy; times in milliseconds a step, whatever else the machine did."""
    rows = []
    for objectives, group in results.groupby("objectives", sort=False):
        exact, rounded = (group[group["precision"] == precision] for precision in PRECISIONS)
        for metric in ("linear", "linear_unseen", "linear_standardised", "knn1", "step"):
            first, second = exact[metric], rounded[metric]
            error = (first.var() / len(first) + second.var() / len(second)) ** 0.5
            rows.append({
                "objectives": objectives, "of": metric, "float32": first.mean(), "std": first.std(),
                "bfloat16": second.mean(), "std ": second.std(), "difference": second.mean() - first.mean(),
                "error": error, "p": ttest_ind(first, second, equal_var=False).pvalue,
            })
    return DataFrame(rows)


if __name__ == "__main__":
    main()
