"""What the index of results links to and counts; what it shows of claims is tested where these are judged."""

from repro.papers import overview, verdicts


def test_links_name_the_headings_of_the_pages():
    rows = verdicts().set_index("place")
    assert overview.links(rows.reset_index())[[*rows.index].index("Table 1 on NTU RGB+D")] == (
        "[Table 1 on NTU RGB+D](results_taxonomy.ipynb#table-1-on-ntu-rgbd)")


def test_runs_that_had_ended_when_a_sentence_was_fixed_are_counted():
    """As they were counted by hand, of some; a sentence that is fixed twice is an error."""
    table = overview.fixed_before().set_index("sentences")
    known = {"C77": (0, 24), "C9, C10, C11, C56": (24, 42), "C72": (56, 60), "C76": (12, 24), "C65": (32, 32),
             "T6": (46, 80), "T34, T37, T38": (76, 80), "T27": (52, 61), "S4": (24, 24), "J19": (12, 18)}
    assert {name: (*table.loc[name, ["finished then", "runs"]],) for name in known} == known
    assert table.loc["C77", "fixed"] == "26 November 2026 17:56" and table.loc["C42", "commit"] == ""
    assert not table.index.to_series().str.split(", ").explode().duplicated().any()
