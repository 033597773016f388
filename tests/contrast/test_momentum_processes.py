"""Batches that processes share: dealt by hand, held by one process alone, and encoded by two."""

import data_parallel
import pytest
import torch
from torch import nn

from repro.contrast.momentum import WholeBatchNorm1d, average_gradients, average_statistics, dealt, gather, groups_here


def test_dealing_by_hand_and_back():
    rows = torch.arange(6)[:, None]
    assert dealt(rows, 2).flatten().tolist() == [0, 2, 4, 1, 3, 5]
    assert dealt(rows, 3).flatten().tolist() == [0, 3, 1, 4, 2, 5]
    for hands in (1, 2, 3, 6):
        assert torch.equal(dealt(dealt(rows, hands), 6 // hands), rows)
    images = torch.randn(4, 3, 5, 5).contiguous(memory_format=torch.channels_last)
    assert dealt(images, 1).is_contiguous(memory_format=torch.channels_last)


def test_a_process_alone_holds_all_groups_rows_and_means():
    assert groups_here(8, 16) == 8
    rows = torch.randn(4, 3)
    assert gather(rows) is rows
    whole, plain = WholeBatchNorm1d(3), nn.BatchNorm1d(3)
    assert torch.equal(whole(rows), plain(rows))
    whole(rows).sum().backward()
    before = [value.clone() for value in (*whole.buffers(), whole.bias.grad)]
    average_statistics(whole)
    average_gradients(whole.parameters())
    for value, old in zip((*whole.buffers(), whole.bias.grad), before, strict=True):
        assert torch.equal(value, old)


@pytest.fixture(scope="module")
def views():
    draws = torch.Generator().manual_seed(2)
    return torch.randn(3, 2, 8, 3, 6, 6, dtype=torch.float64, generator=draws)  # steps, views, images


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory, views):
    return data_parallel.in_two_processes(tmp_path_factory.mktemp("two"), small_encoder(), views)


def small_encoder():
    torch.manual_seed(4)
    return data_parallel.SmallEncoder().double()


@pytest.mark.parametrize("shuffle", [False, True])
def test_two_processes_equal_one_with_two_ghost_groups(two_processes, views, shuffle):
    one = data_parallel.train(small_encoder(), views, shuffle=shuffle)
    for rank, found in enumerate(two_processes):
        for mine, expected in zip(found[shuffle]["steps"], one["steps"], strict=True):
            torch.testing.assert_close(mine["own keys"], expected["own keys"][rank::2])
            torch.testing.assert_close(mine["queries"], expected["queries"])
            torch.testing.assert_close(mine["gradients"], expected["gradients"])
        for name in ("model", "twin", "dictionary"):
            torch.testing.assert_close(found[shuffle][name], one[name])


def test_shuffling_changes_the_keys_of_two_processes_and_not_their_first_queries(two_processes):
    for found in two_processes:
        together, shuffled = (found[shuffle]["steps"][0] for shuffle in (False, True))
        assert torch.equal(together["queries"], shuffled["queries"])
        assert not torch.allclose(together["own keys"], shuffled["own keys"])


@pytest.mark.parametrize(("samples", "seed"), data_parallel.EXCHANGES)
def test_two_processes_encode_the_shuffled_rows_of_one(two_processes, samples, seed):
    whole = data_parallel.whole_batch(2 * samples)
    order = torch.randperm(2 * samples, generator=torch.Generator().manual_seed(seed))
    for rank, found in enumerate(two_processes):
        seen, keys = found["exchange"][samples, seed]
        assert torch.equal(seen, whole[order[rank::2]])
        assert torch.equal(keys, whole[rank::2].mean((2, 3)))


def test_gathered_rows_are_in_the_order_of_the_whole_batch(two_processes):
    for found in two_processes:
        assert found["gathered"].flatten().tolist() == [0, 10, 1, 11, 2, 12]


def test_groups_that_two_processes_cannot_share_raise(two_processes):
    for found in two_processes:
        assert found["error"].startswith("groups=3 cannot be divided among 2 processes")
        assert found["error"].endswith("choose a multiple of 2")
