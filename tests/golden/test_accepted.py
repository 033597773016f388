"""The code at hand is among what is accepted: trainings beside recorded ones, in this folder, say that it may be."""

import pytest
import yaml

from repro.experiments import studies
from repro.run.code import ACCEPTED


@pytest.mark.parametrize("name", yaml.safe_load(ACCEPTED.read_text()))
def test_todays_code_is_accepted_for_its_version(name):
    study = studies()[name]
    assert not study.code.differs(None), (
        f"the source of {study.name} has changed: where test_golden.py still passes, add {study.code.identity} to "
        f"{ACCEPTED.name} beside version {study.version}; where numbers change, raise the version"
    )
