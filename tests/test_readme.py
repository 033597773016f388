"""README: its code runs as it stands, and what it says of results is what RESULTS.md says."""

import json
import re

import numpy as np
import pytest

from repro.data import manifest

ROOT = manifest.project_root()
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = CODE.findall(README)


@pytest.mark.parametrize("code", BLOCKS)
def test_code_runs_as_it_stands(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recording = np.random.default_rng(0).normal(size=(30, 20, 3)).tolist()
    (tmp_path / "a01_s01_e00_v01.json").write_text(json.dumps({"skeletons": recording}), encoding="utf-8")
    names = {}
    exec(code, names)
    assert names["loss"].isfinite() if "loss" in names else names["features"].shape == (1, 512)


def test_jcl_takes_the_place_of_sce_in_the_loop():
    code, = CODE.findall((ROOT / "docs" / "jcl.md").read_text(encoding="utf-8"))
    names = {}
    exec(BLOCKS[0] + code, names)
    assert names["loss"].isfinite() and names["loss"] > 0 and names["keys"].shape == (32, 5, 128)


def test_rows_and_findings_stand_in_results():
    """All findings, but for the sentences of the papers that RESULTS names behind them."""
    plain = re.sub(r" \([A-Z]\d+[^()]*\)(?=[.,])", "", RESULTS)
    lines = [line for line in README.partition("\n## Run it")[0].splitlines() if line.startswith(("| ", "- "))]
    assert not [line for line in lines if line not in plain]
    assert [line for line in lines if line.startswith("- ")] == re.findall(r"^- .*\[More\]\(.*\)$", plain, re.MULTILINE)
    assert "No table of trained encoders is fully reproduced yet" in README


def test_a_newcomer_reads_at_most_120_lines():
    assert len(README.splitlines()) <= 120
