"""A copy of the project, to change, and the commands that run in it."""

import shutil
import subprocess
import sys
from pathlib import Path

from repro import manifest

RUN = """
from repro import cli
def run(*words):
    print(f"== {' '.join(words)}", flush=True)
    cli.app(list(words), standalone_mode=False)
"""


def copied(folder: Path) -> Path:
    """The folder, into which the package and the manifests are copied, without any results."""
    for name in ("repro", "data_manifests"):
        shutil.copytree(manifest.project_root() / name, folder / name)
    (folder / "figures").mkdir()
    return folder


def printed_by(copy: Path, script: str) -> dict[str, str]:
    """What `run(WORD, ...)` prints in a script that runs on a copy, by its words; what the script prints is the last's.
    """
    environment = {"PATH": "", "REPRO_RUNS": str(copy / "runs"), "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN + script]
    ended = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return dict(part.split("\n", 1) for part in ended.stdout.split("== ")[1:])
