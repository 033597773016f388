"""What pre-training draws into its pools, selects from them and puts into its dictionaries."""

import dataclasses

import pytest
import torch
from made_up_pairs import learner, made_up
from slow_pairs import aged

from repro.audiovisual import MODALITIES, pretrain

pytestmark = pytest.mark.usefixtures("one_thread")


def watched(monkeypatch):
    """Arguments and result of every selection, as they come."""
    seen, select = [], pretrain.select

    def watch(strategy, candidates, queries, inputs, **named):
        copies = [each.clone() for each in (candidates, queries, inputs)]
        chosen = select(strategy, candidates, queries, inputs, **named)
        seen.append((strategy, *copies, named, chosen))
        return chosen

    monkeypatch.setattr(pretrain, "select", watch)
    return seen


@pytest.mark.parametrize("pool", [24, 80])
@pytest.mark.parametrize("sampler", ["gradient", "feature", "random", "ohem"])
def test_what_is_selected_was_not_in_the_dictionary_and_is_its_newest(monkeypatch, sampler, pool):
    fast, seen = learner(sampler=sampler, pool=pool), watched(monkeypatch)
    for _ in range(7):
        before = {name: aged(fast, name) for name in MODALITIES}
        seen.clear()
        values = dict(zip(fast.terms, fast.step().tolist(), strict=True))
        for name, (_, candidates, _, _, named, chosen) in zip(MODALITIES, seen, strict=True):
            items = [int(fast.pooled[name][place]) for place in chosen]
            assert len(set(chosen.tolist())) == len(chosen) == 8
            assert not set(items) & set(before[name][0])
            assert set(items) <= set(fast.members.tolist())
            assert named["excluded"].tolist() == [item in before[name][0] for item in fast.pooled[name].tolist()]
            after_items, after_keys = aged(fast, name)
            assert after_items == before[name][0][8:] + items
            assert torch.equal(after_keys, torch.cat([before[name][1][8:], candidates[chosen]]))
            assert values[f"categories_{name}"] == len({int(fast.data.categories[item]) for item in items})


def test_renewed_keys_are_as_old_as_the_positives(monkeypatch):
    """With embeddings that the age of the encoder alone decides, a dictionary of renewed keys has many ages."""
    for renewed in (False, True):
        fast, age = learner(renewed=renewed, dictionary=24, pool=80), [0.0]
        encode = fast._keys_in_order
        monkeypatch.setattr(fast, "_keys_in_order", lambda name, view, encode=encode, age=age: (
            torch.full_like(encode(name, view), age[0])
        ))
        for step in range(fast.steps_per_epoch):
            age[0] = float(step + 1)
            fast.step()
        for name in MODALITIES:
            ages = aged(fast, name)[1][:, 0].tolist()
            assert ages == ([1.0] * 8 + [2.0] * 8 + [3.0] * 8 if renewed else [1.0] * 24)


def test_the_released_selection_takes_the_batch_for_candidates_too(monkeypatch):
    fast, seen = learner(sampler="released"), watched(monkeypatch)
    batches, take = [], fast.order.take
    monkeypatch.setattr(fast.order, "take", lambda: batches.append(take()) or batches[-1])
    own_items = 0
    for _ in range(6):
        seen.clear()
        fast.step()
        for name, other in zip(MODALITIES, reversed(seen), strict=True):
            strategy, candidates, _, _, named, chosen = seen[MODALITIES.index(name)]
            assert strategy == "released" and named["excluded"] is None
            assert torch.equal(candidates[:8], other[2])  # what judges the other modality's candidates
            assert torch.equal(candidates[8:], fast.pools[name])
            items = [*batches[-1].tolist(), *fast.pooled[name].tolist()]
            found, keys = aged(fast, name)
            assert found[-8:] == [items[place] for place in chosen]
            assert torch.equal(keys[-8:], candidates[chosen])
            own_items += int((chosen < 8).sum())
    assert own_items > 0


def test_coverage_counts_categories_beyond_the_number_of_items_and_none_of_the_unlabelled(monkeypatch):
    data = made_up()
    categories = torch.where(torch.arange(len(data.labels)) % 4 == 0, -1, 700 + data.categories)
    for known in (categories, torch.full_like(categories, -1)):
        fast, expected = learner(data=dataclasses.replace(data, categories=known)), torch.zeros(2)
        for _ in range(4):
            values = fast.step()[-2:]
            for place, name in enumerate(MODALITIES):
                items = aged(fast, name)[0][-8:]
                assert values[place] == len({int(known[item]) for item in items} - {-1})
            expected += values
        assert fast.counted.tolist() == expected.tolist()
