"""Every benchmark can be started: what it imports of the package is there, and it says how it is used."""

import importlib
import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith(("test_", "__")))
OPTIONAL = ("kornia", "lightly")  # the dependency group "bench"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_can_be_imported(name):
    source = (HERE / f"{name}.py").read_text()
    lacking = [each for each in OPTIONAL if f"\nimport {each}" in source and not importlib.util.find_spec(each)]
    if lacking:
        pytest.skip(f"needs {lacking[0]}")
    module = importlib.import_module(f"tests.benchmarks.{name}")
    if hasattr(module, "main"):
        assert f"python3 -m tests.benchmarks.{name}" in module.__doc__
