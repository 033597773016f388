"""What the index of the results shows of all papers: ours beside the paper's, and what was fixed before which runs."""

import json
from pathlib import Path

import pandas as pd
from pandas import DataFrame, Series

from repro.data import manifest
from repro.data.disk import read_csv
from repro.experiments import find, results
from repro.papers import verdicts
from repro.report.claims import difference_in_words
from repro.report.text import measured
from repro.run.store import read_runs

FOLDER = Path(__file__).parent


def links(rows: DataFrame) -> Series:
    """Markdown links to places on the results pages, of rows with a place and the folder of its paper."""
    anchors = rows["place"].str.lower().str.replace(r"[^\w -]", "", regex=True).str.replace(" ", "-")
    return "[" + rows["place"] + "](results_" + rows["folder"] + ".ipynb#" + anchors + ")"


def beside(numbers: DataFrame) -> DataFrame:
    """What `beside.csv` chooses to show first: the paper's number or order, as it is typed there, and ours.

    Its column `ours` names a difference of a claim ("C93: gradient over random"), all of one ("C67"), which are shown
    from the least to the greatest, or a row of an experiment by a query ("taxonomy_ucla: objectives == 'CE'"). What
    names nothing is shown.

    Args:
        numbers: of `repro.papers.sources.judged`.
    """
    rows = read_csv(FOLDER / "beside.csv", dtype=str).merge(verdicts()[["paper", "place", "folder", "verdict"]])
    differences, ours = {f"{number.id}: {number.compared}": number for number in numbers.itertuples()}, []
    for text in rows["ours"]:
        name, colon, query = text.partition(": ")
        of_claim = numbers[numbers["id"] == text]
        if number := differences.get(text):
            text = f"{difference_in_words(number.value, number.error, number.p)} ({number.runs})"
        elif colon:
            text = measured(results(name).query(query))[0]
        elif len(of_claim):
            least, greatest, error = of_claim["value"].min(), of_claim["value"].max(), of_claim["error"].max()
            text = f"{least:+.1f} to {greatest:+.1f}, s.e. at most {error:.1f} ({of_claim['runs'].iloc[0]})"
        ours.append(text)
    return DataFrame({
        "paper": rows["paper"], "table or figure": links(rows), "what": rows["what"], "run on": rows["ran"],
        "the paper": rows["printed"], "ours": ours, "verdict on the whole": rows["verdict"]})


def fixed_before() -> DataFrame:
    """When which sentences were fixed (`fixed.csv`), and how many committed runs of their experiments then had ended.

    Returns:
        experiment (of several, between spaces), sentences, commit ("" where the measure itself is newer), fixed (UTC),
        runs, finished then.
    """
    table = read_csv(FOLDER / "fixed.csv", dtype=str)
    runs = read_runs(manifest.shipped("figures") / "runs.csv").set_index("id")
    end = runs["cost"].map(lambda cost: json.loads(cost)["finished"])
    ends = []
    for names in table["experiment"].str.split():
        asked = [run for name in names for run in find(name).asked()]
        ends.append(end[end.index.isin(asked)])
    then = [(times < when).sum() for times, when in zip(ends, table["fixed"], strict=True)]
    shown = pd.to_datetime(table["fixed"], utc=True, format="ISO8601").dt.strftime("%d %B %Y %H:%M")
    return table.assign(fixed=shown, runs=[*map(len, ends)], **{"finished then": then})
