"""Two processes that share every batch, beside one process with as many ghost groups."""

import pytest
import torch
import two_processes
from image_learners import learner

from repro.experiments import find_table
from repro.run import group
from repro.run.group import check_alone, check_shared, shared


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of two processes computes, by method."""
    folder = tmp_path_factory.mktemp("two")
    with two_processes.nursery(folder) as nursery:
        statuses, _, errors = two_processes.forked(nursery, folder, "steps", str(folder))
    assert statuses == [0, 0], errors
    return [torch.load(folder / f"{rank}.pt") for rank in (0, 1)]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("method", two_processes.LEARNERS)
def test_two_processes_equal_one_with_two_ghost_groups(ranks, method):
    """In losses, weights, statistics, dictionary, generators and features."""
    expected = two_processes.steps(method)
    assert expected["terms"].dtype == torch.float64
    assert expected["model"]["trunk.0.weight"].dtype == torch.float64
    for found in ranks:
        assert found[method].pop("precision") == expected["precision"]
        assert 2 * found[method].pop("rows") == expected["rows"] == 8
        torch.testing.assert_close(found[method], {name: expected[name] for name in found[method]})


@pytest.mark.parametrize(("batch", "groups", "fits"), [(7, 2, False), (16, 3, False), (16, 8, True)])
def test_a_batch_that_processes_cannot_share_is_refused(monkeypatch, batch, groups, fits):
    monkeypatch.setattr(group, "process", lambda: (0, 2))
    if fits:
        return check_shared(batch, groups)
    with pytest.raises(ValueError, match=rf"batch={batch} or groups={groups} .* 2 processes, .*--groups 8"):
        check_shared(batch, groups)


@pytest.mark.parametrize("table", ["image_methods", "taxonomy", "cross_modal"])
def test_runs_of_images_alone_are_shared(table, monkeypatch):
    monkeypatch.setattr(group, "grouped", lambda: True)
    monkeypatch.setattr(group, "process", lambda: (0, 2))
    if table == "image_methods":
        assert find_table(table).runs(method="random")
    else:
        with pytest.raises(ValueError, match="trained by one process each, not by the 2 of torchrun; leave out torch"):
            find_table(table).runs()


def test_a_process_alone_is_left_as_it_is():
    alone = learner(groups=2)
    before = dict(vars(alone))
    assert shared(alone) is alone and vars(alone) == before
    check_shared(7, 3)
    check_alone("clips")
