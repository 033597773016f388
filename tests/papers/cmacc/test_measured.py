"""Pretext accuracy by category, and what samplers pick from one pool, against slow loops."""

import copy
import dataclasses
import io

import numpy as np
import pytest
import torch
from ended import finish
from made_up_pairs import GRIDS, grids
from tqdm.auto import tqdm

from repro.audiovisual import MODALITIES, augment, study
from repro.audiovisual.clips import Clips
from repro.audiovisual.pretrain import OTHER, Pretrainer
from repro.audiovisual.recipe import CLIPS, VARIANTS, paper
from repro.contrast.active import Embeddings
from repro.data import manifest
from repro.papers.cmacc import measured
from repro.run.device import threads
from repro.run.fit import fit
from repro.run.store import Run, Store
from repro.run.training import restored

CPU = torch.device("cpu")
CATEGORIES = ("red", "green", "blue", "grey")
SMALL = {"width": 32, "embedding": 8, "batch": 8, "dictionary": 16, "pool": 40, "epochs": 3, "window": 4, "size": 6,
         "video_trunk": "small_video", "audio_trunk": "small_audio", "targets": ""}


def clips(name="esc50", count=40, frames=6, unlabelled=3) -> Clips:
    """Clips of 6 frames of 8 x 8 pixels, coloured and pitched by their category; the first few have none."""
    draws = torch.Generator().manual_seed(3)
    categories = torch.randint(len(CATEGORIES), (count,), generator=draws)
    lit = 60.0 * categories.repeat_interleave(frames) * (torch.arange(count * frames) % 2)
    pictures = lit.view(-1, 1, 1, 1) + 40 * torch.rand(count * frames, 8, 8, 3, generator=draws)
    pitch = torch.eye(len(CATEGORIES))[categories].repeat_interleave(2 * frames, 0)
    offsets, everything = frames * torch.arange(count + 1), torch.ones(count, dtype=torch.bool)
    labels = categories.where(torch.arange(count) >= unlabelled, -1)
    return Clips(
        name, "made up", CATEGORIES, labels, labels, everything, everything, ~everything, pictures.clamp(0, 255).byte(),
        offsets, pitch + torch.randn(pitch.shape, generator=draws), 2 * offsets, rows_per_frame=2, window=4,
    )


def use(monkeypatch, data):
    for module in (measured, study):
        monkeypatch.setattr(module, "data_of", lambda recipe: data)


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Made-up clips in the place of every data set, and an empty folder for runs."""
    use(monkeypatch, clips())
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    with threads(1):
        yield


def finished(method="cmacc", **changes) -> Run:
    """A run trained for some steps."""
    dataset = changes.pop("dataset", "synthetic")
    recipe = paper(dataset, method, **(SMALL if dataset == "synthetic" else GRIDS) | changes)
    run = Run("clips", recipe, 2, "paper", "esc50 (subset)", "made up", 1)
    folder = Store(manifest.runs_root()).folder(run)
    with folder.claim(), tqdm(file=io.StringIO()) as bar:
        finish(fit(Pretrainer(recipe, measured.data_of(recipe), 2, CPU), folder.path, bar))
        folder.finish({"cost": {}})
    return run


def views(learner, modality, item):
    """The middle of one clip as the network takes it: (1, 3, 4, 6, 6), or (1, bands, 8)."""
    window = learner.data.centred(modality, torch.tensor([item]))[:, 0]
    return window if modality == "audio" else (window[..., 1:7, 1:7].float() / 255 - 0.45) / 0.225


@torch.no_grad()
def output(tower, learner, modality, item):
    row = tower(modality, views(learner, modality, item))[0][0]
    return row / row.norm() if learner.recipe.normalised else row


def ranks_first(learner, modality, item, keys) -> bool:
    """One query against its positive and these keys of the dictionary's items, key by key."""
    other = OTHER[modality]
    query, positive = output(learner.towers, learner, modality, item), output(learner.keys, learner, other, item)
    entries = learner.entries[other].entries[:, 0].tolist()
    return not any(query @ key >= query @ positive for key, entry in zip(keys, entries, strict=True)
                   if entry != item or not learner.recipe.own_excluded)


@torch.no_grad()
def encoded_as_stored(learner, modality, generator):
    """Keys of the dictionary's items by today's weights: in training mode, batch by batch, in random views."""
    parts = []
    for part in learner.entries[modality].entries[:, 0].split(learner.recipe.batch):
        view = learner.data.view(modality, part, generator)
        view = augment.at_random(view, learner.recipe.size, learner.recipe.greyscale, generator=generator)
        parts.append(learner.finished(copy.deepcopy(learner.keys).train()(modality, view)[0]))
    return torch.cat(parts)


@pytest.mark.parametrize(("method", "changes"), [
    ("cmacc", {}), ("cmacc", {"own_excluded": False, "dictionary": 8, "normalised": True}),
    ("xmoco", {"normalised": True}),
])
def test_pretext_accuracy_is_that_of_a_slow_loop(method, changes):
    run = finished(method, **changes)
    table, learner = measured.pretext_accuracy([run], "cpu"), restored(run, CLIPS, CPU)
    for encoder in (learner.towers, learner.keys):
        encoder.eval()
    rows, labels = table.set_index(["query", "category"]), learner.data.categories.tolist()
    generator = torch.Generator().manual_seed(run.seed)
    for modality in MODALITIES:
        other = OTHER[modality]
        again = [encoded_as_stored(learner, other, generator) for _ in range(measured.AGAIN)]
        for place, category in enumerate(CATEGORIES):
            items = [item for item, label in enumerate(labels) if label == place]
            assert rows.loc[(modality, category), "pairs"] == len(items)
            stored = [learner.dictionaries[other].entries]
            for column, draws in (("accuracy", stored), ("accuracy_again", again)):
                right = [ranks_first(learner, modality, item, keys) for keys in draws for item in items]
                assert rows.loc[(modality, category), column] == pytest.approx(100 * np.mean(right))
    assert len(table) == 8 and 0 < table["accuracy"].mean() < 100 and 0 < table["accuracy_again"].mean() < 100
    named = table[["method", "seed", "dataset", "preset"]].drop_duplicates()
    assert named.to_numpy().tolist() == [[method, 2, "esc50 (subset)", "paper"]]


def test_keys_that_are_encoded_again_differ_from_stored_ones_by_their_age_alone():
    """Training's own encoding, by the same weights and draws, gives them to the bit."""
    learner = restored(finished(iterations=1), CLIPS, CPU)
    for modality in MODALITIES:
        items = learner.entries[modality].entries.flatten()
        learner.keys.train()
        learner.generator = learner.view_generator = torch.Generator().manual_seed(4)
        stored = learner._encoded(modality, items)
        again = measured.embedded(learner, modality, items, torch.Generator().manual_seed(4))[2]
        assert torch.equal(stored, again)


def last_layer_gradient(learner, modality, key, batch) -> tuple[float, float, int]:
    """By autograd, for one candidate: norm of the gradient of the other modality's last layer, loss, pseudo-label."""
    other = OTHER[modality]
    head = learner.towers.heads[other]
    with torch.no_grad():
        hidden = learner.towers(other, torch.cat([views(learner, other, item) for item in batch]))[1]
    classes = head(hidden)
    if learner.recipe.normalised:
        classes = classes / classes.norm(dim=1, keepdim=True)
    posterior = (classes @ key / learner.recipe.posterior_temperature).log_softmax(0)
    label = int(posterior.argmax())
    gradient = torch.autograd.grad(-posterior[label], [head.weight, head.bias])
    return float(torch.cat([part.flatten() for part in gradient]).norm()), -posterior[label].item(), label


@pytest.mark.parametrize("changes", [{}, VARIANTS["unit_length"]], ids=["any_length", "unit_length"])
def test_gradients_are_those_of_autograd_and_ohem_picks_the_largest_losses(changes):
    run = finished(pool=16, dictionary=8, **changes)
    table, learner = measured.selected_negatives([run], "cpu"), restored(run, CLIPS, CPU)
    learner.towers.train()  # normalised over the batch
    batch = torch.randperm(len(learner.members), generator=torch.Generator().manual_seed(2))[:8]
    batch = learner.members[batch].tolist()
    names = [CATEGORIES[category] for category in learner.data.categories.tolist()]
    for modality in MODALITIES:
        taken, judged = set(learner.entries[modality].entries.flatten().tolist()), {}
        for key, item in zip(learner.pools[modality], learner.pooled[modality].tolist(), strict=True):
            if item not in taken:
                judged[item] = last_layer_gradient(learner, modality, key, batch)
        rows_of = dict(list(table[table["modality"] == modality].groupby("sampler")))
        for rows in rows_of.values():
            assert set(rows["item"]) <= set(judged) and rows["item"].is_unique
            assert rows["pick"].tolist() == list(range(8))
            for row in rows.itertuples():
                norm, _, label = judged[row.item]
                assert row.gradient_norm == pytest.approx(norm, rel=1e-4)
                smaller = [other < norm * (1 - 1e-5) for other, _, _ in judged.values()]
                assert row.smaller == pytest.approx(100 * np.mean(smaller)) and row.nearest == batch[label]
                assert (row.category, row.nearest_category) == (names[row.item], names[row.nearest])
        assert rows_of["ohem"]["item"].tolist() == sorted(judged, key=lambda item: -judged[item][1])[:8]


def test_runs_without_such_figures_are_refused(monkeypatch):
    smoco, xmoco, unknown = (Run("clips", paper("synthetic", method, **SMALL), 9, "paper", "esc50", "made up", 1)
                             for method in ("smoco", "xmoco", "cmacc"))
    with pytest.raises(ValueError, match="which are of smoco, one should be of xmoco or cmacc"):
        measured.pretext_accuracy([smoco])
    with pytest.raises(ValueError, match="one should be of cmacc"):
        measured.selected_negatives([smoco, xmoco])
    with pytest.raises(ValueError, match=r"is not that of a finished run in .*; see `repro results list`"):
        measured.pretext_accuracy([unknown], "cpu")
    bare = dataclasses.replace(clips("audioset", unlabelled=40), classes=())  # as AudioSet has none here
    use(monkeypatch, bare)
    with pytest.raises(ValueError, match="audioset has no categories to tell apart; choose another data set"):
        measured.asked([xmoco, unknown])
    use(monkeypatch, clips(unlabelled=40))
    with pytest.raises(ValueError, match="esc50 has no labelled pair to train with"):
        measured.pretext_accuracy([finished(iterations=1)], "cpu")


def test_ratio_of_distances_is_that_of_a_slow_loop():
    keys = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    categories, within, between = torch.arange(30) % 3, [], []
    for one in range(30):
        for other in range(30):
            if one != other:
                distance = (keys[one] - keys[other]).square().sum()
                (within if categories[one] == categories[other] else between).append(distance)
    expected = torch.stack(within).mean() / torch.stack(between).mean()
    assert measured.within_over_between(Embeddings(keys), categories) == pytest.approx(expected.item(), rel=1e-4)


def test_choices_post_hoc_are_counted_beside_chance_and_prediction(monkeypatch):
    """Keys of a category lie almost at one place: choices by distance reach all categories, uniform draws do not."""
    use(monkeypatch, grids(train=80))
    monkeypatch.setattr(measured, "POOLED", 60)
    monkeypatch.setattr(measured, "SELECTED", (5,))
    run, real = finished("xmoco", dataset="multidigits", characters=2, pairs=80), measured.embedded

    def gathered(learner, modality, index, generator=None):
        query, hidden, key = real(learner, modality, index, generator)
        places = torch.eye(key.shape[1])[learner.data.categories[index]]
        return query, hidden, places + 1e-3 * torch.randn(places.shape, generator=generator)

    monkeypatch.setattr(measured, "embedded", gathered)
    table = measured.post_hoc_diversity([run], "cpu")
    assert set(table["frequency"]) == {"balanced", "zipf"} and set(table["batch"]) == {5}
    wide = table[table["frequency"] == "balanced"].pivot_table("value", ["sampler", "posterior"], "measure")
    assert {*wide.index} == {("random", 1), ("ohem", 1), ("feature", 1), ("gradient", 1), ("gradient", 0.3),
                             ("gradient", 0.07)}
    assert wide.loc[("feature", 1), "categories"] == 4 == round(wide.loc[("feature", 1), "predicted"], 2)
    assert wide.loc[("feature", 1), "rho"] < 1e-3
    assert wide["expected"].nunique() == 1 and wide["expected"].iloc[0] < 3.5
    assert wide.loc[("random", 1)].isna().to_dict()["rho"] and wide.loc[("random", 1), "categories"] < 4
