"""Fixtures that several files of this folder ask for by name: data sets that are made up."""

import shutil
import zipfile

import pytest
import yaml

from repro.data import manifest


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Writes files below a data root, declares `ucf101` as five clips of two classes; returns the root."""
    from ucf101_files import LISTS, SILENT, SPLITS

    (tmp_path / "data_manifests").mkdir()
    official = manifest.project_root() / "data_manifests"
    for path in (*official.glob("*.yaml"), official / "kinetics_sound_classes.txt"):
        shutil.copy(path, tmp_path / "data_manifests")
    declared = yaml.safe_load((official / "ucf101.yaml").read_text()) | {"splits": SPLITS}
    (tmp_path / "data_manifests" / "ucf101.yaml").write_text(yaml.safe_dump(declared))
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))

    def write(files=SILENT, lists=LISTS, name="ucf101", root="data"):
        for place, contents in (files | {f"lists/{file}": text for file, text in lists.items()}).items():
            path = tmp_path / root / name / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return tmp_path / root

    return write


@pytest.fixture
def omniglot(folders, monkeypatch):
    """Writes files as the archive, declares them as `multiomniglot`, and returns where it lies."""
    from made_up_omniglot import ALPHABETS, NUMBERS, SIZES

    monkeypatch.setattr(manifest, "project_root", lambda: folders)
    (folders / "data_manifests").mkdir()

    def write(files, *, numbers=NUMBERS):
        path = folders / "data" / "omniglot" / "images_background.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            for name, contents in reversed(files.items()):
                archive.writestr(f"images_background/{name}", contents)
        values = {
            "name": "multiomniglot", "title": "t", "access": "form", "source": "https://example.org", "licence": "l",
            "files": [{"name": "omniglot/images_background.zip", "bytes": sum(map(len, files.values())),
                       "members": len(files), "digest": manifest.content_digest(sorted(files.items()))}],
            "splits": {"drawings": {"train": {"alphabet": list(ALPHABETS), "drawing": list(numbers["train"])},
                                    "test": {"alphabet": list(ALPHABETS), "drawing": list(numbers["held_out"])},
                                    "expect": {"classes": sum(SIZES)}}},
        }
        (folders / "data_manifests" / "multiomniglot.yaml").write_text(yaml.safe_dump(values))
        return path

    return write
