"""Fine-tuning of made-up clips, held against plain loops: its steps, its batches, its accuracy over windows."""

import copy
import dataclasses
import math

import pytest
import torch
from made_up_pairs import CPU, lacking, made_up, tiny
from states import assert_equal_states
from torch.nn.functional import cross_entropy

from repro.audiovisual import MODALITIES, augment
from repro.audiovisual.finetune import FineTuner
from repro.audiovisual.model import Encoder

SMALL = {"finetune_epochs": 3, "finetune_batch": 5, "finetune_windows": 3, "finetune_learning_rate": 1e-2}
CHANNELS = {"video": 3, "audio": 4}
pytestmark = pytest.mark.usefixtures("one_thread")


def trunk_of(modality):
    """A trunk that has seen something: its running statistics are not those of the start."""
    torch.manual_seed(1)
    trunk = Encoder(f"small_{modality}", 32, channels=CHANNELS[modality])
    with torch.no_grad():
        for _ in range(20):
            trunk(torch.randn(8, CHANNELS[modality], *((4, 8, 8) if modality == "video" else (8,))))
    return trunk


def tuner(modality="video", *, data=None, trunk=None, **changes):
    data = made_up(pretrain=4, train=12, test=7) if data is None else data
    where = {"target": f"synthetic_{modality}", "split": 1}
    return FineTuner(tiny(**SMALL | changes), trunk or trunk_of(modality), data, modality, 2, CPU, **where)


def batches(fast, steps):
    """Recordings of the batches of so many steps."""
    taken, take = [], fast.order.take
    fast.order.take = lambda: taken.append(take()) or taken[-1]
    for _ in range(steps):
        fast.step()
    del fast.order.take
    return [index.tolist() for index in taken]


@pytest.mark.parametrize("modality", MODALITIES)
def test_steps_are_those_of_adam_at_a_cosine_rate(modality, monkeypatch):
    """The views and their order are the learner's own; loss and weights are made again, in float64."""
    fast, views, augmented = tuner(modality), [], augment.at_random
    trunk, classifier = copy.deepcopy(fast.trunk).double(), copy.deepcopy(fast.classifier).double()
    adam = torch.optim.Adam([*trunk.parameters(), *classifier.parameters()], foreach=False)
    monkeypatch.setattr(augment, "at_random", lambda *given, **named: (
        views.append(augmented(*given, **named)) or views[-1]))
    assert fast.total_steps == 9
    for step in range(6):
        index, = batches(fast, 1)
        loss = cross_entropy(classifier(trunk(views[-1].double())), fast.data.labels[index])
        adam.param_groups[0]["lr"] = 0.005 * (1 + math.cos(math.pi * step / 9))
        adam.zero_grad()
        loss.backward()
        adam.step()
    for mine, other in ((fast.trunk, trunk), (fast.classifier, classifier)):
        for (name, own), value in zip(mine.state_dict().items(), other.state_dict().values(), strict=True):
            close = torch.isclose(own.double(), value.double(), rtol=1e-3, atol=1e-4)
            assert close.double().mean() > 0.99, name  # Adam magnifies the rounding of a slope near 0


@pytest.mark.parametrize(("count", "batch"), [(2, 40), (3, 1), (13, 1), (13, 5), (13, 40)])
def test_an_epoch_has_every_recording_once_and_none_alone(count, batch):
    """The last map of a small trunk has one position: of one recording, batch normalisation would refuse."""
    fast = tuner("audio", data=made_up(pretrain=3, train=count, test=2), finetune_batch=batch, finetune_epochs=2)
    indices = batches(fast, fast.total_steps)
    epochs = indices[: fast.steps_per_epoch], indices[fast.steps_per_epoch :]
    for epoch in epochs:
        assert sorted(item for index in epoch for item in index) == fast.data.train.nonzero().flatten().tolist()
        sizes = [len(index) for index in epoch]
        assert min(sizes) >= 2 and max(sizes) - min(sizes) <= 1 and max(sizes) <= max(batch, 3)
    assert count <= 5 or epochs[0] != epochs[1]


@pytest.mark.parametrize(("modality", "windows"), [("video", 1), ("audio", 3), ("video", 7)])
def test_accuracy_is_that_of_a_loop_over_recordings_and_windows(modality, windows):
    """Of a classifier that knows the recordings by heart, and gives their windows different classes."""
    data = made_up(pretrain=2, train=12, test=60)
    guesses = torch.randint(3, data.labels.shape, generator=torch.Generator().manual_seed(0))
    fast = tuner(modality, data=dataclasses.replace(data, labels=guesses), finetune_windows=windows)
    batches(fast, 4)
    fast.trunk.eval()
    items = data.test.nonzero().flatten()
    with torch.no_grad():
        features = torch.stack([torch.stack([fast.trunk(augment.centred(view[None], 8))[0] for view in of_item])
                                for of_item in data.centred(modality, items, windows)])          # (60, windows, 32)
        fast.classifier.weight.copy_(1000 * torch.eye(3, 32))
        fast.classifier.bias.copy_(-fast.classifier.weight @ features.mean((0, 1)))
        chances = fast.classifier(features).softmax(2)
    right = (chances.mean(1).argmax(1) == guesses[items]).sum().item()
    assert fast.accuracy() == pytest.approx(100 * right / 60) and 0 < right < 60
    assert windows == 1 or right != (chances[:, 0].argmax(1) == guesses[items]).sum().item()


@pytest.mark.parametrize("modality", MODALITIES)
def test_what_has_no_label_or_not_the_modality_is_left_out(modality):
    data = made_up(pretrain=2, train=20, test=20)
    items = torch.arange(len(data.labels))
    without, unlabelled = items % 4 == 0, items % 4 == 1
    data = dataclasses.replace(data, labels=data.labels.where(~unlabelled, -1))
    fast = tuner(modality, data=lacking(data, modality, without))
    for members, part in ((fast.members, data.train), (fast.tested, data.test)):
        assert members.tolist() == items[part & ~without & ~unlabelled].tolist()
    batches(fast, fast.steps_per_epoch)
    assert 0 <= fast.accuracy() <= 100


@pytest.mark.parametrize(("modality", "precision"), [("video", "float32"), ("audio", "bfloat16")])
def test_clips_that_are_streamed_change_no_bit(modality, precision, monkeypatch):
    states, accuracies = [], set()
    for streamed in (False, True):
        monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device, streamed=streamed: not streamed)
        fast = tuner(modality, finetune_epochs=2, precision=precision)
        assert fast.data.streamed == streamed
        batches(fast, fast.total_steps)
        states.append(fast.state_dict())
        accuracies.add(fast.accuracy())
    assert len(accuracies) == 1
    assert_equal_states(*states)
