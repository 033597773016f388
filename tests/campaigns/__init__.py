"""Long trials, run by hand; their results are committed. What they share with the tests is in tests/helpers."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "helpers"))
