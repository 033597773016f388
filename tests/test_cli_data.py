"""Commands about data: what is listed and taken in."""

import numpy as np
from command_line import refused

from repro import cli
from repro.data import manifest


def test_data_list_without_data(repro, tmp_path):
    status, out, _ = repro("data", "list")
    assert status == 0
    lines = out.splitlines()
    states = {line.split()[0]: line.split()[1] for line in lines if not line.startswith(" ")}
    assert sorted(states) == manifest.names()
    assert states["synthetic"] == "bundled" and states["ucla"] == "missing"
    path = tmp_path / "data" / "nw_ucla" / "all_sqe.zip"
    below = [line.strip() for line in lines[lines.index(next(line for line in lines if line.startswith("ucla"))) + 1 :]]
    assert below[0] == str(path)
    assert below[1].startswith("ask for all_sqe.zip at https://") and str(path.parent) in below[1]
    assert not (tmp_path / "data").exists() and not (tmp_path / "runs").exists()


def test_one_copy_of_a_data_set_at_a_time(repro, tmp_path):
    images = np.zeros((2, 32, 32, 3), dtype=np.uint8)
    for name in ("first.npz", "second.npz"):
        np.savez(tmp_path / name, x_train=images, y_train=[0, 1], x_test=images, y_test=[0, 9])
    status, out, _ = repro("data", "import", "cifar10", str(tmp_path / "first.npz"))
    assert status == 0 and out.splitlines() == [
        "cifar10 (first.npz): 4 images of 32 x 32, 10 classes; 2 for pretrain, 2 for train, 2 for test"
    ]
    _, out, _ = repro("data", "import", "cifar10", str(tmp_path / "second.npz"))
    assert out.splitlines()[0].startswith("cifar10 (second.npz): ")
    assert (tmp_path / "first.npz").exists()
    assert "One copy of a data set is kept at a time" in " ".join(repro("data", "import", "--help")[1].split())
    _, out, _ = repro("data", "list")
    told = [line.strip() for line in out.splitlines() if "has been taken in" in line]
    assert told == ["second.npz has been taken in; --subset takes it"]
    message = refused(repro("run", "image_methods", "--dataset", "cifar10"))
    assert "repro data download cifar10" in message
    assert "; or pass --subset (subset=True) for the copy second.npz; " in message


def test_bundled_data_need_no_download(repro, tmp_path):
    assert repro("data", "download", "digits") == (0, "digits is bundled and needs no download\n", "")
    assert not (tmp_path / "data").exists()


def test_memory_that_is_not_there_is_told_in_a_line(repro, monkeypatch):
    def status():
        raise MemoryError("cannot allocate 3 GiB")

    monkeypatch.setattr(cli.files, "status", status)
    assert repro("data", "list") == (1, "", "repro: out of memory cannot allocate 3 GiB\n")
