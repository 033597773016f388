"""Fine-tuning of made-up clips, held against plain loops: its steps, its batches, its accuracy over windows."""

import copy
import dataclasses
import math

import pytest
import torch
from made_up_pairs import made_up, tiny
from states import assert_equal_states, resumed_anywhere
from torch.nn.functional import cross_entropy

from repro.audiovisual import MODALITIES, augment
from repro.audiovisual.finetune import FineTuner
from repro.audiovisual.model import Encoder

CPU = torch.device("cpu")
SMALL = {"finetune_epochs": 3, "finetune_batch": 5, "finetune_windows": 3, "finetune_learning_rate": 1e-2}
CHANNELS = {"video": 3, "audio": 4}
pytestmark = pytest.mark.usefixtures("one_thread")


def trunk_of(modality, groups=1, seed=1):
    """A trunk that has seen something: its running statistics are not those of the start."""
    torch.manual_seed(seed)
    trunk = Encoder(f"small_{modality}", 32, channels=CHANNELS[modality], groups=groups)
    with torch.no_grad():
        for _ in range(20):
            trunk(torch.randn(8, CHANNELS[modality], *((4, 8, 8) if modality == "video" else (8,))))
    return trunk


def tuner(modality="video", *, data=None, seed=2, trunk=None, device=CPU, **changes):
    data = made_up(pretrain=4, train=12, test=7) if data is None else data
    where = {"target": f"synthetic_{modality}", "split": 1}
    return FineTuner(tiny(**SMALL | changes), trunk or trunk_of(modality), data, modality, seed, device, **where)


def trace(fast, steps):
    return torch.cat([fast.step() for _ in range(steps)])


def batches(fast, steps):
    """Recordings of the batches of so many steps."""
    found, take = [], fast.order.take
    fast.order.take = lambda: found.append(take()) or found[-1]
    trace(fast, steps)
    del fast.order.take
    return [index.tolist() for index in found]


# ---------------------------------------------------------------------------------------------- steps


@pytest.mark.parametrize("modality", MODALITIES)
def test_steps_are_those_of_adam_at_a_cosine_rate(modality, monkeypatch):
    """The views and their order are the learner's own; loss and weights are made again, by hand and in float64."""
    fast, views = tuner(modality), []
    trunk, classifier = copy.deepcopy(fast.trunk).double(), copy.deepcopy(fast.classifier).double()
    parameters, moments = [*trunk.parameters(), *classifier.parameters()], {}
    augmented = fast._augmented
    monkeypatch.setattr(fast, "_augmented", lambda view: views.append(augmented(view)) or views[-1])
    assert fast.total_steps == 9
    for step in range(6):
        index, = batches(fast, 1)
        loss = cross_entropy(classifier(trunk(views[-1].double())), fast.data.labels[index])
        assert fast.optimiser.param_groups[0]["lr"] == pytest.approx(0.005 * (1 + math.cos(math.pi * step / 9)))
        rate, t = 0.005 * (1 + math.cos(math.pi * step / 9)), step + 1
        for parameter, slope in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            first, second = moments.get(parameter, (0.0, 0.0))
            moments[parameter] = first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            parameter.data -= rate * (first / (1 - 0.9**t)) / ((second / (1 - 0.999**t)).sqrt() + 1e-8)
    for mine, other in ((fast.trunk, trunk), (fast.classifier, classifier)):
        for (name, own), value in zip(mine.state_dict().items(), other.state_dict().values(), strict=True):
            close = torch.isclose(own.double(), value.double(), rtol=1e-3, atol=1e-4)
            assert close.double().mean() > 0.99, name  # Adam magnifies the rounding of a slope near 0


@pytest.mark.parametrize("count", [2, 3, 5, 8, 13])
@pytest.mark.parametrize("batch", [1, 2, 5, 40])
def test_an_epoch_has_every_recording_once_and_none_alone(count, batch):
    """The last map of a small trunk has one position: of one recording, batch normalisation would refuse."""
    fast = tuner("audio", data=made_up(pretrain=3, train=count, test=2), finetune_batch=batch, finetune_epochs=2)
    members = (fast.data.train).nonzero().flatten().tolist()
    found = batches(fast, fast.total_steps)
    assert fast.total_steps == len(found) == 2 * fast.steps_per_epoch
    epochs = found[: fast.steps_per_epoch], found[fast.steps_per_epoch :]
    for epoch in epochs:
        assert sorted(item for index in epoch for item in index) == members
        sizes = [len(index) for index in epoch]
        assert min(sizes) >= 2 and max(sizes) - min(sizes) <= 1
        assert max(sizes) <= max(batch, 3)
    if count > 5:
        assert epochs[0] != epochs[1]


@pytest.mark.parametrize("modality", MODALITIES)
def test_colours_and_pitches_are_learnt(modality):
    data = made_up(pretrain=2, train=30, test=12)
    fast = tuner(modality, data=data, finetune_epochs=12, finetune_batch=10)
    before = fast.accuracy()
    trace(fast, fast.total_steps)
    assert fast.accuracy() >= 90 > before


# ---------------------------------------------------------------------------------------------- the trunk


@pytest.mark.parametrize("frozen", [False, True])
def test_the_trunk_is_copied_and_not_changed(frozen):
    trunk = trunk_of("video").requires_grad_(not frozen)
    before = copy.deepcopy(trunk.state_dict())
    fast = tuner(trunk=trunk)
    for name, value in fast.trunk.state_dict().items():
        assert torch.equal(value, before[name]), name
    trace(fast, 3)
    fast.accuracy()
    assert trunk.training
    for name, value in trunk.state_dict().items():
        assert torch.equal(value, before[name]), name
    for name, value in fast.trunk.named_parameters():
        assert not torch.equal(value, before[name]), name  # end to end


# ---------------------------------------------------------------------------------------------- accuracy


@pytest.mark.parametrize("windows", [1, 3, 4, 7])
@pytest.mark.parametrize("modality", MODALITIES)
def test_accuracy_is_that_of_a_loop_over_recordings_and_windows(modality, windows):
    data = made_up(pretrain=2, train=12, test=23)
    guessed = torch.randint(3, data.labels.shape, generator=torch.Generator().manual_seed(0))
    fast = tuner(modality, data=dataclasses.replace(data, labels=guessed), finetune_windows=windows)
    trace(fast, 4)
    found = fast.accuracy()
    fast.trunk.eval()
    correct, total = 0, 0
    for item in range(len(guessed)):
        if not data.test[item]:
            continue
        probabilities = torch.zeros(3, dtype=torch.float64)
        views = data.centred(modality, torch.tensor([item]), windows)[0]
        for view in views:
            view = augment.centred(view[None], 8) if modality == "video" else view[None]
            with torch.no_grad():
                probabilities += fast.classifier(fast.trunk(view))[0].double().softmax(0) / windows
        correct += int(probabilities.argmax()) == int(guessed[item])
        total += 1
    assert total == 23 and 0 < correct < 23
    assert found == pytest.approx(100 * correct / total)


# ---------------------------------------------------------------------------------------------- which recordings


@pytest.mark.parametrize("modality", MODALITIES)
def test_what_has_no_label_or_not_the_modality_is_left_out(modality):
    data = made_up(pretrain=2, train=20, test=20)
    count = len(data.labels)
    lacking, unlabelled = torch.arange(count) % 4 == 0, torch.arange(count) % 4 == 1
    lengths = data.first_row.diff() if modality == "audio" else data.first_frame.diff()
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), (lengths * ~lacking).cumsum(0)])
    kept = (~lacking).repeat_interleave(lengths)
    parts = {"video": {"frames": data.frames, "first_frame": offsets}, "audio": {"mel": data.mel, "first_row": offsets}}
    changes = {name: values[kept] if name in ("frames", "mel") else values for name, values in parts[modality].items()}
    data = dataclasses.replace(data, labels=data.labels.where(~unlabelled, -1), **changes)
    fast = tuner(modality, data=data)
    for found, part in ((fast.members, data.train), (fast.tested, data.test)):
        assert found.tolist() == [item for item in range(count)
                                  if part[item] and not lacking[item] and not unlabelled[item]]
    trace(fast, fast.steps_per_epoch)
    assert 0 <= fast.accuracy() <= 100


@pytest.mark.parametrize(("train", "test"), [(0, 3), (1, 3), (5, 0)])
def test_too_few_recordings_are_refused(train, test):
    message = f"synthetic has {train} training and {test} test recordings with audio and a label; at least two and one"
    with pytest.raises(ValueError, match=message):
        tuner("audio", data=made_up(pretrain=3, train=train, test=test))


# ---------------------------------------------------------------------------------------------- resuming, precision


@pytest.mark.parametrize(("modality", "precision"), [("video", "float32"), ("audio", "bfloat16")])
def test_fine_tuning_resumed_at_any_step_ends_with_the_same_bits_streamed_or_not(
    tmp_path, modality, precision, monkeypatch
):
    def make():
        return tuner(modality, finetune_epochs=2, precision=precision)

    states, accuracies = [], set()
    for streamed in (False, True):
        monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device, streamed=streamed: not streamed)
        undisturbed, resumed = resumed_anywhere(make, tmp_path, steps=6)
        assert undisturbed.data.streamed == streamed
        states.append(undisturbed.state_dict())
        accuracies |= {fast.accuracy() for fast in (undisturbed, *resumed)}
    assert len(accuracies) == 1
    assert_equal_states(*states)
