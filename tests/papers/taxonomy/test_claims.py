"""The taxonomy's claims on made-up cells."""

import pandas as pd
from made_up_cells import placed
from made_up_results import results
from pandas import DataFrame, Series

from repro.papers.taxonomy.claims import CLAIMS, without_and_with_cd
from repro.papers.taxonomy.logs import LOGS
from repro.report.evidence import Evidence


def test_cd_is_a_term_and_no_part_of_another_ones_name():
    found = without_and_with_cd(Series({"CE": 50.0, "CE+CD": 47.0, "CD": 20.0, "CDM": 60.0, "CDM+CD": 70.0}))
    assert found.to_dict() == {"CE": -3.0, "CDM": 10.0}


def test_objectives_that_a_reader_has_added_change_no_verdict_and_no_evidence(tmp_path):
    cells = placed(*results(True).to_dict("records"))
    taxonomy = cells["taxonomy"]
    ours = taxonomy[taxonomy["objectives"] == "CE"]
    scattered = ours["seed"] * 40.0
    own = [ours.assign(objectives=name, key=ours["key"] + name, linear=accuracy + scattered)
           for name, accuracy in {"UE": 1.0, "CD+UE": 2.0, "UE+CD": 99.0, "AE+CE+UE": 99.0}.items()]
    more = cells | {"taxonomy": pd.concat([taxonomy, *own], ignore_index=True)}
    evidence = [Evidence(each, tmp_path, LOGS) for each in (cells, more)]
    usual, beside = (DataFrame([claim.check(each) for claim in CLAIMS]) for each in evidence)
    pd.testing.assert_frame_equal(beside, usual)
