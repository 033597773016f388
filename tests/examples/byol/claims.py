"""What BYOL says of its predictor."""

from repro.report.evidence import Estimates, Setting, measured
from repro.report.verdicts import SEEDS, above, claims_of


def over_none(setting: Setting) -> Estimates:
    return {"predictor": setting.difference("predictor", {"method": "byol"}, {"method": "without"})}


CLAIMS = [
    claims_of("BYOL", "B")(
        1, "Table 5b", "Without the predictor nothing is learned.", f"with minus without > 0; {SEEDS}",
        measured(("predictor",), over_none, above), "predictor",
    )
]
