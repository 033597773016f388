"""Write the golden files from the code as it is: `python3 -m tests.golden.record [recipes] [keys] [rows] [results]`.

Run it from the root of a checkout, on a CPU and without REPRO_DATA, only where the behaviour is meant to change, and
say in the commit what changed and why: the files are there so that nothing changes unawares.
"""

import sys

from tests.golden import asked, recorded


def write_recipes() -> None:
    """recipes.json"""
    write("recipes.json", recorded.by_line(recorded.recipes(), 2))


def write_keys() -> None:
    """keys.json; says which requests tables refuse."""
    requests, cells = [], {}
    for request in asked.requests():
        try:
            made = recorded.cells(request)
        except ValueError as error:
            print(f"left out: {request['table']}, {request['dataset']}, {request['preset']}, {request['variant']}, "
                  f"{request['fields']}: {error}")
            continue
        cells |= made["cells"]
        requests.append(request | {"data": made["data"], "keys": " ".join(made["cells"])})
    write("keys.json", recorded.by_line({"requests": requests, "cells": cells}, 2))


def write_rows() -> None:
    """rows.csv"""
    lines = [row for request in asked.laid_out() for row in recorded.rows(request)]
    write("rows.csv", recorded.as_csv(lines).removesuffix("\n"))


def write_results() -> None:
    """results.json"""
    made = [training | {"measured": recorded.trained(training)[0]} for training in asked.trainings()]
    write("results.json", recorded.by_line(made, 1))


def write(name: str, content: str) -> None:
    """A golden file."""
    (recorded.FOLDER / name).write_text(content + "\n", encoding="utf-8")


FILES = {"recipes": write_recipes, "keys": write_keys, "rows": write_rows, "results": write_results}

if __name__ == "__main__":
    for name in sys.argv[1:] or FILES:
        FILES[name]()
