"""Pretext accuracy by category, and what samplers pick from one pool, against slow loops."""

import dataclasses
import functools
import io

import numpy as np
import pandas as pd
import pytest
import torch
from made_up_pairs import grids, tiny
from tqdm.auto import tqdm

from repro.audiovisual import MODALITIES, figure_data
from repro.audiovisual.characters import load as load_characters
from repro.audiovisual.clips import Clips
from repro.audiovisual.pretrain import OTHER, Pretrainer
from repro.audiovisual.recipe import VARIANTS, paper
from repro.data import manifest
from repro.run.device import threads
from repro.run.fit import fit
from repro.run.store import Cell, Store

CPU = torch.device("cpu")
CATEGORIES = ("red", "green", "blue", "grey")
SMALL = {"width": 32, "embedding": 8, "batch": 8, "dictionary": 16, "pool": 40, "epochs": 3, "window": 4, "size": 6}
SMALL |= {"video_trunk": "small_video", "audio_trunk": "small_audio"}


def clips(name="esc50", count=40, frames=6, unlabelled=3) -> Clips:
    """Clips of 6 frames of 8 x 8 pixels, coloured and pitched by their category; the first few have none."""
    draws = torch.Generator().manual_seed(3)
    categories = torch.randint(len(CATEGORIES), (count,), generator=draws)
    lit = 60.0 * categories.repeat_interleave(frames) * (torch.arange(count * frames) % 2)
    pictures = lit.view(-1, 1, 1, 1) + 40 * torch.rand(count * frames, 8, 8, 3, generator=draws)
    pitch = torch.eye(len(CATEGORIES))[categories].repeat_interleave(2 * frames, 0)
    offsets = frames * torch.arange(count + 1)
    everything = torch.ones(count, dtype=torch.bool)
    labels = categories.where(torch.arange(count) >= unlabelled, -1)
    return Clips(
        name, "made up", CATEGORIES, labels, labels, everything, everything, ~everything, pictures.clamp(0, 255).byte(),
        offsets, pitch + torch.randn(pitch.shape, generator=draws), 2 * offsets, rows_per_frame=2, window=4,
    )


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Made-up clips in the place of every data set, and an empty folder for runs."""
    monkeypatch.setattr(figure_data, "data_of", lambda recipe: clips())
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    with threads(1):
        yield


def finished(method="cmacc", preset="paper", seed=2, **changes) -> Cell:
    """A cell trained for some steps."""
    recipe = paper("synthetic", method, **SMALL | changes)
    cell = Cell("clips", recipe, seed, preset, "esc50 (subset)", "made up", 1)
    run = Store(manifest.runs_root()).run(cell)
    with run.claim(), tqdm(file=io.StringIO()) as bar:
        fit(Pretrainer(recipe, figure_data.data_of(recipe), seed, CPU), run.folder, bar)
        run.finish({"cost": {}})
    return cell


def views(learner, modality, item):
    """The middle of one clip as the network takes it: (1, 3, 4, 6, 6), or (1, bands, 8)."""
    window = learner.data.centred(modality, torch.tensor([item]))[:, 0]
    if modality == "audio":
        return window
    return (window[..., 1:7, 1:7].float() / 255 - 0.45) / 0.225


def dot(a, b) -> float:
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def ranks_first(learner, modality, item, renewed=False) -> bool:
    """One query against its positive and the dictionary, key by key, encoded again if `renewed`."""
    with torch.no_grad():
        query = learner.towers(modality, views(learner, modality, item))[0][0]
        positive = learner.keys(OTHER[modality], views(learner, OTHER[modality], item))[0][0]
        if learner.recipe.normalised:
            query, positive = query / query.norm(), positive / positive.norm()
    dictionary, entries = learner.dictionaries[OTHER[modality]].entries, learner.entries[OTHER[modality]].entries
    for key, entry in zip(dictionary, entries[:, 0], strict=True):
        if renewed:
            with torch.no_grad():
                key = learner.keys(OTHER[modality], views(learner, OTHER[modality], int(entry)))[0][0]
            key = key / key.norm() if learner.recipe.normalised else key
        if (renewed or learner.recipe.own_excluded) and int(entry) == item:
            continue
        if dot(query, key) >= dot(query, positive):
            return False
    return True


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("cmacc", {}),
        ("cmacc", {"own_excluded": False, "dictionary": 8, "normalised": True}),
        ("xmoco", {"normalised": True}),
    ],
)
def test_pretext_accuracy_is_that_of_a_slow_loop(method, changes):
    cell = finished(method, **changes)
    found = figure_data.pretext_accuracy([cell], "cpu")
    learner = figure_data.resumed(cell, CPU)
    rows = found.set_index(["query", "category"])
    labels = learner.data.categories.tolist()
    for modality in MODALITIES:
        for place, category in enumerate(CATEGORIES):
            items = [item for item, label in enumerate(labels) if label == place]
            assert rows.loc[(modality, category), "pairs"] == len(items)
            for column, renewed in (("accuracy", False), ("accuracy_renewed", True)):
                right = [ranks_first(learner, modality, item, renewed) for item in items]
                assert rows.loc[(modality, category), column] == pytest.approx(100 * np.mean(right))
    assert len(found) == 8 and 0 < found["accuracy"].mean() < 100 and 0 < found["accuracy_renewed"].mean() < 100
    assert set(found["method"]) == {method} and set(found["seed"]) == {2}
    assert set(found["dataset"]) == {"esc50 (subset)"} and set(found["preset"]) == {"paper"}


def test_a_query_that_tells_new_keys_from_old_ones_finds_its_positive_by_that_alone():
    """Keys all alike, but those of the dictionary have faded: with them renewed, no positive stands out."""
    learner = figure_data.resumed(finished(iterations=1), CPU)
    with torch.no_grad():
        for part in (learner.towers, learner.keys.twin):
            for modality in MODALITIES:
                part.heads[modality].weight.zero_()
                part.heads[modality].bias.fill_(1.0)
        for dictionary in learner.dictionaries.values():
            dictionary.entries.fill_(0.5)
    for kept, renewed in figure_data.first_ranked(learner, learner.members).values():
        assert kept.all() and not renewed.any()


def test_it_is_computed_once_and_kept(monkeypatch):
    cell = finished(iterations=1)
    accuracy, negatives = figure_data.pretext_accuracy([cell], "cpu"), figure_data.selected_negatives([cell], "cpu")
    monkeypatch.setattr(figure_data, "resumed", functools.partial(pytest.fail, "computed again"))
    pd.testing.assert_frame_equal(figure_data.pretext_accuracy([cell], "cpu"), accuracy)
    pd.testing.assert_frame_equal(figure_data.selected_negatives([cell], "cpu"), negatives)


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
    return float(torch.cat([each.flatten() for each in gradient]).norm()), -posterior[label].item(), label


@pytest.mark.parametrize("changes", [{}, VARIANTS["unit_length"]], ids=["any_length", "unit_length"])
def test_gradients_are_those_of_autograd_and_ohem_picks_the_largest_losses(changes):
    cell = finished(pool=16, dictionary=8, **changes)
    found = figure_data.selected_negatives([cell], "cpu")
    learner = figure_data.resumed(cell, CPU)
    learner.towers.train()  # normalised over the batch
    batch = torch.randperm(len(learner.members), generator=torch.Generator().manual_seed(2))[:8]
    batch = learner.members[batch].tolist()
    names = [CATEGORIES[category] for category in learner.data.categories.tolist()]
    for modality in MODALITIES:
        items = learner.pooled[modality].tolist()
        taken = set(learner.entries[modality].entries.flatten().tolist())
        norms, losses, labels = {}, {}, {}
        for key, item in zip(learner.pools[modality], items, strict=True):
            if item not in taken:
                norms[item], losses[item], labels[item] = last_layer_gradient(learner, modality, key, batch)
        for _, rows in found[found["modality"] == modality].groupby("sampler"):
            assert set(rows["item"]) <= set(norms) and rows["item"].is_unique and len(rows) == 8
            assert rows["pick"].tolist() == list(range(8))
            for row in rows.itertuples():
                assert row.gradient_norm == pytest.approx(norms[row.item], rel=1e-4)
                smaller = [norm < norms[row.item] * (1 - 1e-5) for norm in norms.values()]
                assert row.smaller == pytest.approx(100 * np.mean(smaller))
                assert row.nearest == batch[labels[row.item]]
                assert (row.category, row.nearest_category) == (names[row.item], names[row.nearest])
        picked = found[(found["modality"] == modality) & (found["sampler"] == "ohem")]["item"].tolist()
        assert picked == sorted(losses, key=losses.get, reverse=True)[:8]


def test_pictures_of_grids_are_their_first_grids(monkeypatch):
    data = grids()
    monkeypatch.setattr(figure_data, "data_of", lambda recipe: data)
    found = figure_data.pictures(tiny("cmacc", "multidigits"), [4, 2, 4])
    assert list(found) == [2, 4]
    for item, picture in found.items():
        assert picture.shape == (8, 16, 3) and picture.dtype == np.uint8
        for cell, drawn in enumerate(data.pairs[0, item].tolist()):
            for colour in range(3):
                expected = data.drawings[drawn].numpy()
                np.testing.assert_array_equal(picture[:, 8 * cell : 8 * cell + 8, colour], expected)


def test_cells_without_such_figures_are_refused():
    smoco, xmoco = (finished(method, iterations=1) for method in ("smoco", "xmoco"))
    with pytest.raises(ValueError, match="which are of smoco, one should be of xmoco or cmacc"):
        figure_data.pretext_accuracy([smoco])
    with pytest.raises(ValueError, match="one should be of cmacc"):
        figure_data.selected_negatives([smoco, xmoco])
    unknown = Cell("clips", paper("synthetic", "cmacc", **SMALL), 9, "paper", "esc50", "made up", 1)
    with pytest.raises(ValueError, match=r"is not that of a finished cell in .*; see `repro results list`"):
        figure_data.pretext_accuracy([unknown], "cpu")


def test_a_set_without_categories_is_refused_before_training(monkeypatch):
    """As AudioSet has none here."""
    bare = dataclasses.replace(clips("audioset", unlabelled=40), classes=())
    monkeypatch.setattr(figure_data, "data_of", lambda recipe: bare)
    made = [Cell("clips", paper("audioset", method), 9, "paper", "audioset", "made up", 1)
            for method in ("xmoco", "cmacc")]
    for chosen in (figure_data.asked, figure_data.selecting):
        with pytest.raises(ValueError, match="audioset has no categories to tell apart; choose another data set"):
            chosen(made)


def test_pictures_are_frames_in_the_middle_of_clips():
    recipe = paper("synthetic", "cmacc", **SMALL)
    found = figure_data.pictures(recipe, np.array([7, 3, 7]))
    frames = clips().frames.unflatten(0, (40, 6))
    assert sorted(found) == [3, 7]
    for item, picture in found.items():  # a window of four of the six begins at the second
        np.testing.assert_array_equal(picture, frames[item, 3].numpy())


def test_unlabelled_clips_alone_have_no_categories(monkeypatch):
    monkeypatch.setattr(figure_data, "data_of", lambda recipe: clips(unlabelled=40))
    with pytest.raises(ValueError, match="esc50 has no labelled pair to train with"):
        figure_data.pretext_accuracy([finished(iterations=1)], "cpu")


def test_categories_have_names():
    assert figure_data.category_names(clips()) == CATEGORIES
    names = figure_data.category_names(clips("synthetic (redundancy 0)"))
    assert len(names) == 100 and names[:2] == ("dropped, steel", "dropped, brass") and names[10] == "thrown, steel"
    grids = load_characters("multidigits", characters=2, pairs=5, test_pairs=2)
    assert figure_data.category_names(grids) == grids.alphabets[0]
