"""Fixtures that several files of this folder ask for by name."""

import dataclasses
import zipfile

import pytest
import torch
import yaml
from ntu_distribution import FILES, SPLITS
from ntu_files import text

from repro.data import manifest
from repro.skeleton import study
from repro.skeleton.recipe import smoke


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Writes files as the official folder or zip, declares them as the whole of `ntu`, and returns the data root."""
    (tmp_path / "data_manifests").mkdir()
    official = manifest.project_root() / "data_manifests" / "ntu.yaml"
    declared = yaml.safe_load(official.read_text()) | {"splits": SPLITS}
    (tmp_path / "data_manifests" / "ntu.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))
    (tmp_path / "data_manifests" / "ntu_missing.txt").write_text("S001C002P005R002A008\nS001C002P006R001A008\n")
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))

    def write(files=FILES, packed=False, root="data"):
        folder = tmp_path / root / "ntu"
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: value if isinstance(value, bytes) else text(value) for name, value in files.items()}
        if packed:
            with zipfile.ZipFile(folder / "nturgbd_skeletons_s001_to_s017.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for name, contents in files.items():
                    archive.writestr(f"nturgb+d_skeletons/{name}.skeleton", contents)
        else:
            (folder / "nturgb+d_skeletons").mkdir(exist_ok=True)
            for name, contents in files.items():
                (folder / "nturgb+d_skeletons" / f"{name}.skeleton").write_bytes(contents)
        return tmp_path / root

    return write


@pytest.fixture(scope="session")
def data():
    """Every fifth sequence of the embedded data."""
    every = study.data_of(smoke("synthetic", "CE"))
    parts = ("lengths", "labels", "train", "test", "views", "subjects")
    kept = (torch.arange(len(every.lengths)) % 5 == 0).repeat_interleave(every.lengths)
    return dataclasses.replace(every, frames=every.frames[kept], **{name: getattr(every, name)[::5] for name in parts})
