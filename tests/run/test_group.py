"""Two processes that share every batch, beside one process with as many ghost groups."""

import data_parallel
import pytest
import torch

from repro.experiments import find_table
from repro.run import group
from repro.run.group import average_statistics, check_alone, check_shared, gather, shared


@pytest.fixture(scope="module")
def images():
    draws = torch.Generator().manual_seed(2)
    return torch.randn(data_parallel.STEPS * data_parallel.BATCH, 3, 6, 6, dtype=torch.float64, generator=draws)


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory, images):
    return data_parallel.in_two_processes(tmp_path_factory.mktemp("two"), small_encoder(), images)


def small_encoder():
    torch.manual_seed(4)
    return data_parallel.SmallEncoder().double()


@pytest.mark.parametrize("shuffle", [False, True])
def test_two_processes_equal_one_with_two_ghost_groups(two_processes, images, shuffle):
    one = data_parallel.train(data_parallel.Small(small_encoder(), images, shuffle))
    for found in two_processes:
        torch.testing.assert_close(found[shuffle], one)


def test_shuffling_changes_the_company_of_keys(two_processes):
    plain, shuffled = (two_processes[0][flag]["steps"][0]["keys"] for flag in (False, True))
    assert not torch.allclose(plain, shuffled, rtol=0.1)


def test_gathered_rows_are_in_the_order_of_the_whole_batch(two_processes):
    for found in two_processes:
        assert found["gathered"].flatten().tolist() == [0, 10, 1, 11, 2, 12]


def test_what_processes_cannot_share_is_refused(two_processes):
    for found in two_processes:
        batch, groups, fits = found["divided"]
        assert batch.startswith("batch=7 or groups=2 cannot be divided among 2 processes") and "--groups 8" in batch
        assert groups.startswith("batch=16 or groups=3 cannot be divided among 2 processes") and fits is None
        assert "clips: these cells are trained by one process each, not by the 2 of torchrun" in found["alone"]


@pytest.mark.parametrize("table", ["image_methods", "taxonomy", "cross_modal"])
def test_cells_of_images_alone_are_shared(table, monkeypatch):
    monkeypatch.setattr(group, "grouped", lambda: True)
    monkeypatch.setattr(group, "process", lambda: (0, 2))
    if table == "image_methods":
        assert find_table(table).cells(method="random")
    else:
        with pytest.raises(ValueError, match="trained by one process each, not by the 2 of torchrun; leave out torch"):
            find_table(table).cells()


def test_a_process_alone_is_left_as_it_is(images):
    learner, rows = data_parallel.Small(small_encoder(), images, True), torch.randn(4, 3)
    before = dict(vars(learner))
    assert shared(learner) is learner and vars(learner) == before and gather(rows) is rows
    check_shared(7, 3)
    check_alone("clips")
    statistics = [value.clone() for value in learner.model.buffers()]
    average_statistics(learner.model)
    assert all(torch.equal(*pair) for pair in zip(learner.model.buffers(), statistics, strict=True))
