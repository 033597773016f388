"""Which pairs are trained with where some lack a modality or a label, and which sets are refused."""

import copy
import dataclasses

import pytest
import torch
from made_up_pairs import TRAINED, lacking, learner, made_up, tiny, trace

from repro.audiovisual import MODALITIES
from repro.audiovisual.data import members
from repro.audiovisual.pretrain import OTHER

pytestmark = pytest.mark.usefixtures("one_thread")


def with_silent():
    """Pairs of which every third has no sound; which they are."""
    data = made_up()
    silent = torch.arange(len(data.labels)) % 3 == 0
    return lacking(data, "audio", silent), silent


def test_pairs_without_a_modality_or_supervision_without_labels_are_left_out():
    data, silent = with_silent()
    for method in set(TRAINED) - {"supervised"}:
        chosen = members(tiny(method, pool=16, dictionary=8), data)
        assert chosen.tolist() == (data.pretrain & ~silent).nonzero().flatten().tolist()
    labels = torch.where(torch.arange(len(data.labels)) % 2 == 0, data.labels, -1)
    chosen = members(tiny("supervised"), dataclasses.replace(data, labels=labels))
    assert chosen.tolist() == (data.pretrain & (labels >= 0)).nonzero().flatten().tolist()


@pytest.mark.parametrize("groups", [1, 2])
def test_supervision_shows_silent_clips_to_the_encoder_of_video_alone(monkeypatch, groups):
    data, silent = with_silent()
    fast = learner("supervised", data=data, groups=groups)
    assert fast.members.tolist() == data.pretrain.nonzero().flatten().tolist()
    asked, view = [], type(data).view
    monkeypatch.setattr(type(data), "view", lambda own, modality, index, generator:
                        asked.append((modality, index)) or view(own, modality, index, generator))
    assert trace(fast, 6).isfinite().all()
    batches = [index for modality, index in asked if modality == "video"]
    assert [len(index) for index in batches] == [8] * 6 and any(silent[index].any() for index in batches)
    audible = [index[~silent[index]] for index in batches]
    expected = [index[: len(index) // groups * groups].tolist() for index in audible if len(index) >= 2 * groups]
    assert [index.tolist() for modality, index in asked if modality == "audio"] == expected != []


def test_supervision_goes_on_where_a_batch_is_nearly_silent():
    """Of a single sound there is nothing to normalise by; the encoder of sound waits."""
    data = made_up()
    silent = torch.ones(len(data.labels), dtype=torch.bool)
    silent[data.pretrain.nonzero()[0]] = False
    fast = learner("supervised", data=lacking(data, "audio", silent))
    before = copy.deepcopy(fast.towers.trunks["audio"].state_dict())
    assert trace(fast, 3).isfinite().all()
    for name, value in fast.towers.trunks["audio"].state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_limit_draws_the_same_clips_for_every_method():
    def chosen(method="smoco", **changes):
        return members(tiny(method, pool=16, dictionary=8, **changes), made_up()).tolist()

    whole, few = chosen(), chosen(clips=17)
    assert all(chosen(method, clips=17) == few for method in TRAINED)
    assert len(few) == 17 and set(few) < set(whole) and few == sorted(few) and few != whole[:17]
    assert chosen(clips=1000) == whole and len(chosen("scratch", clips=1)) == 1
    assert len(members(tiny("smoco", batch=30, dictionary=30, pool=30), made_up())) == 30  # one batch of all


@pytest.mark.parametrize(("method", "changes", "missing", "message"), [
    *((method, {"batch": 8, "clips": 7}, [], "batch=8 exceeds the 7 training pairs of synthetic with clips=7; lower it")
      for method in TRAINED),
    *((method, {}, [missing], f"method='{method}' needs video and sound; synthetic has {OTHER[missing]} alone; choose ")
      for method in ("xmoco", "cmacc") for missing in MODALITIES),
    ("smoco", {"size": 12}, [], "size=12 exceeds the frames of synthetic, 9 x 10 pixels; lower it"),
])
def test_data_that_a_recipe_cannot_be_trained_on_are_refused(method, changes, missing, message):
    with pytest.raises(ValueError, match=message):
        members(tiny(method, **changes), made_up(without=missing))


@pytest.mark.parametrize(
    ("batch", "dictionary", "pool", "spare"),
    [(8, 24, 24, 0), (8, 16, 16, 0), (8, 24, 64, 12), (8, 32, 96, 0), (4, 24, 28, 4), (4, 28, 32, 2)],
)
def test_a_dictionary_that_may_hold_all_candidates_is_refused(batch, dictionary, pool, spare):
    """With 30 pairs: 64 candidates are two clips of each pair, and of four a third."""
    changes = {"batch": batch, "dictionary": dictionary, "pool": pool}
    if spare >= batch:
        assert trace(learner(**changes, epochs=2), 2 * (30 // batch)).isfinite().all()
        return
    with pytest.raises(ValueError, match=rf"dictionary={dictionary} may hold all but {spare} candidates of pool={pool}"
                                         rf", drawn from 30 pairs of synthetic, and batch={batch} are selected"):
        members(tiny(**changes), made_up())
    assert len(members(tiny("xmoco", **changes), made_up())) == 30


@pytest.mark.parametrize("missing", MODALITIES)
@pytest.mark.parametrize("method", ["scratch", "supervised"])
def test_baselines_take_one_modality(method, missing):
    fast = learner(method, data=made_up(without=[missing]))
    assert fast.terms == ("loss",)
    assert method == "scratch" or trace(fast, 2).isfinite().all()
