"""Grids of characters and their pairs, of made-up files in Omniglot's layout, of digits, and of the real archive."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from made_up_omniglot import ALPHABETS, FILES, SIDE, SIZES, png, slow_drawings
from PIL import Image
from scipy.stats import chisquare

from repro import manifest
from repro.audiovisual import MODALITIES, characters, drawings
from repro.report.printed import printed

REAL_ROOT = manifest.data_root()
REAL = manifest.location(manifest.load_manifest("multiomniglot").files[0], REAL_ROOT)
pytestmark = pytest.mark.usefixtures("folders")


def lot_of(data, lot):
    return getattr(data, lot).nonzero().squeeze(1)


def cells_of(grids, data):
    """(m, cells, cell, cell) of grids (m, 1, height, width)."""
    rows, columns = characters.grid(len(data.sizes))
    size = data.drawings.shape[-1]
    parts = [grids[:, 0, y * size:(y + 1) * size, x * size:(x + 1) * size] for y in range(rows) for x in range(columns)]
    assert all((part == 0).all() for part in parts[len(data.sizes):])
    return torch.stack(parts[:len(data.sizes)], dim=1)


# Pairs


@pytest.mark.parametrize("name", characters.DATASETS)
@pytest.mark.parametrize("cells", [1, 2, 9])
def test_pairs_are_characters_and_their_successors(request, name, cells):
    if name == "multiomniglot":
        request.getfixturevalue("omniglot")(FILES)
    data = characters.load(name, characters=cells, pairs=60, test_pairs=30)
    expected = SIZES[:cells] if name == "multiomniglot" else (10,) * cells
    assert data.sizes == expected and data.labels.shape == (150, cells) and data.pairs.shape == (2, 150, cells)
    starts = np.cumsum((0, *expected[:-1])) if name == "multiomniglot" else [0] * cells
    place = torch.searchsorted(data.first.unique(), data.first)      # of a drawing: its character * 3 + its part
    for item in range(150):
        part = next(part for lot, part in characters.LOTS.items() if getattr(data, lot)[item])
        for cell in range(cells):
            label = int(data.labels[item, cell])
            x, y = (divmod(int(place[drawn]), 3) for drawn in data.pairs[:, item, cell])
            assert x == (starts[cell] + label, drawings.PARTS.index(part))
            assert y == (starts[cell] + (label + 1) % expected[cell], drawings.PARTS.index(part))


@pytest.mark.parametrize("cells", range(1, 10))
def test_views_against_a_slow_composition(omniglot, cells):
    omniglot(FILES)
    data, expected = characters.load("multiomniglot", characters=cells, pairs=6, test_pairs=2), slow_drawings()
    rows, columns = characters.grid(cells)
    index = torch.tensor([3, 0, 3, 11, 7, 8])
    for place, grids in enumerate(data.pair(index)):
        assert grids.dtype == torch.float32 and grids.shape == (6, 1, 32 * rows, 32 * columns)
        for item, grid in zip(index.tolist(), grids, strict=True):
            part = next(part for lot, part in characters.LOTS.items() if getattr(data, lot)[item])
            sheet = Image.new("L", (32 * columns, 32 * rows))
            for cell in range(cells):
                label = (int(data.labels[item, cell]) + place) % SIZES[cell]
                drawn = data.pairs[place, item, cell]
                own = expected[cell, label, part][drawn - data.first[drawn]]
                sheet.paste(Image.fromarray(own), (cell % columns * 32, cell // columns * 32))
            np.testing.assert_allclose(grid[0], np.asarray(sheet) / 255, atol=1e-7)


def test_grids_have_few_empty_cells():
    found = [characters.grid(cells) for cells in range(1, 10)]
    assert found == [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (2, 3), (2, 4), (2, 4), (3, 3)]
    assert all(0 <= rows * columns - cells <= 1 for cells, (rows, columns) in enumerate(found, start=1))


def test_every_access_gives_the_grids_of_the_pairs():
    data = characters.load("multidigits", characters=5, pairs=10, test_pairs=2)
    index = torch.tensor([4, 4, 15])
    x, y = data.pair(index, torch.Generator())
    assert x.shape == (3, 1, 16, 24) and x.min() == 0 and x.max() == 1 and torch.equal(x[0], x[1])
    for modality, grids in zip(MODALITIES, (x, y), strict=True):
        assert torch.equal(data.view(modality, index, torch.Generator()), grids)
        assert torch.equal(data.twins(modality, index, torch.Generator())[0], grids)
        assert torch.equal(data.centred(modality, index, windows=2), torch.stack([grids, grids], dim=1))
    assert data.centred("audio", index).shape == (3, 1, 1, 16, 24)
    assert data.view("video", index[:0]).shape == (0, 1, 16, 24)
    assert data.twins("video", index[:0], torch.Generator())[1].shape == (0, 1, 16, 24)


def test_unknown_modality_and_item():
    data = characters.load("multidigits", characters=1, pairs=10, test_pairs=2)
    with pytest.raises(ValueError, match="modality='sound' is not one of: video, audio"):
        data.view("sound", torch.tensor([0]))
    with pytest.raises(IndexError):
        data.view("video", torch.tensor([16]))


@pytest.mark.parametrize("lot", characters.LOTS)
def test_no_view_shows_a_drawing_of_another_part(omniglot, lot):
    omniglot(FILES)
    data = characters.load("multiomniglot", pairs=20, test_pairs=20)
    own = {key: {drawing.tobytes() for drawing in found} for key, found in slow_drawings().items()}
    generator = torch.Generator().manual_seed(0)
    index, shown = lot_of(data, lot).repeat(8), {}
    for place, modality in enumerate(MODALITIES):
        labels = (data.labels[index] + place) % torch.tensor(SIZES)
        for grids in data.twins(modality, index, generator):
            pictures = (cells_of(grids, data) * 255).round().to(torch.uint8).numpy()
            for item, cell in np.ndindex(*labels.shape):
                key = (cell, int(labels[item, cell]), characters.LOTS[lot])
                assert pictures[item, cell].tobytes() in own[key]
                shown.setdefault(key, set()).add(pictures[item, cell].tobytes())
    assert all(seen == own[key] for key, seen in shown.items())  # and the views of that part show all of it


def test_twins_are_other_drawings_equally_often():
    data = characters.load("multidigits", characters=2, pairs=4, test_pairs=3)
    index = torch.full((8_000,), int(lot_of(data, "held_out")[1]))
    first, other = data.twins("audio", index, torch.Generator().manual_seed(3))
    again = data.twins("audio", index, torch.Generator().manual_seed(3))
    assert torch.equal(first, again[0]) and torch.equal(other, again[1])
    seen = [cells_of(grids, data).flatten(2) for grids in (first, other)]
    for cell in range(2):
        drawn = data.pairs[1, index[0], cell]
        part = data.drawings[data.first[drawn]:data.first[drawn] + data.count[drawn]].flatten(1) / 255
        own = torch.isclose(seen[0][0, cell], part).all(1).nonzero().item()
        matched = torch.cdist(seen[1][:, cell], part).argmin(1)
        counts = torch.bincount(matched, minlength=len(part)).tolist()
        assert counts.pop(own) == 0 and chisquare(counts).pvalue > 1e-3
    pairs = Counter(zip(*(torch.cdist(seen[1][:, cell], seen[1][:, cell].unique(dim=0)).argmin(1).tolist()
                          for cell in range(2)), strict=True))
    assert chisquare(list(pairs.values())).pvalue > 1e-3     # cells are drawn independently


def test_lots_and_counts():
    data = characters.load("multidigits", characters=3, pairs=500, test_pairs=70)
    lots = torch.stack([data.train, data.validation, data.test, data.held_out])
    assert lots.sum(1).tolist() == [500, 70, 70, 70] and (lots.sum(0) == 1).all() and data.pretrain is data.train
    assert torch.equal(data.categories, data.labels[:, 0]) and data.classes == tuple("0123456789")
    assert data.labels.dtype == data.pairs.dtype == data.categories.dtype == torch.int64


def test_characters_and_drawings_are_drawn_uniformly():
    data = characters.load("multidigits", characters=2, pairs=20_000, test_pairs=10)
    train = lot_of(data, "train")
    joint = torch.bincount(data.labels[train] @ torch.tensor([10, 1]), minlength=100)
    assert chisquare(joint).pvalue > 1e-3                    # of both cells together
    for place in range(2):
        nines = data.pairs[place, train][(data.labels[train] + place) % 10 == 9]
        part = data.first[nines[0]], data.count[nines[0]]
        assert chisquare(torch.bincount(nines - part[0], minlength=part[1])).pvalue > 1e-3
    x, y = data.pairs[:, train, 0] - data.first[data.pairs[:, train, 0]]
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.03               # the drawing of y does not depend on that of x


def test_test_pairs_are_new(omniglot):
    omniglot(FILES)
    data = characters.load("multiomniglot", characters=1, pairs=100, test_pairs=60)
    known = set(map(tuple, data.pairs[:, data.train, 0].T.tolist()))
    tested = list(map(tuple, data.pairs[:, data.test, 0].T.tolist()))
    assert 30 < len(known) < 5 * 3 * 3 and len(tested) == 60 and not known & set(tested)
    with pytest.raises(ValueError, match=r"among the 45 different training pairs; choose fewer pairs or more charact"):
        characters.load("multiomniglot", characters=1, pairs=1500, test_pairs=60)


def test_tests_do_not_depend_on_the_number_of_training_pairs():
    few, many = (characters.load("multidigits", characters=4, pairs=pairs, test_pairs=30) for pairs in (50, 400))
    for lot in ("validation", "test", "held_out"):
        assert torch.equal(few.pairs[:, getattr(few, lot)], many.pairs[:, getattr(many, lot)])


def test_mutual_information_is_the_printed_one():
    table = printed("spatial_multiomniglot_mi")
    sizes = table["alphabet_size"].tolist()
    found = [characters.mutual_information(sizes[:cells]) for cells in table["n_characters"]]
    np.testing.assert_allclose(found, table["MI_nats"], rtol=0, atol=5.1e-5)
    np.testing.assert_allclose(np.exp(found), table["exp_MI"].astype(float), rtol=1e-12)
    assert characters.mutual_information([10] * 4) == pytest.approx(4 * math.log(10))


# Options, digest, device


@pytest.mark.parametrize(("options", "message"), [
    ({"name": "multidigit"}, "dataset='multidigit' is not one of: multidigits, multiomniglot; did you mean 'multidig"),
    ({"characters": 10}, "characters=10 is not one of: 1, 2, 3"),
    ({"characters": 0}, "characters=0 is not one of"),
    ({"characters": "2"}, "characters='2' is not one of"),
    ({"pairs": 0}, "pairs=0 should be a whole number of at least 1"),
    ({"pairs": 2.5}, "pairs=2.5 should be a whole number"),
    ({"test_pairs": "few"}, "test_pairs='few' should be a whole number"),
])
def test_impossible_options(options, message):
    with pytest.raises(ValueError, match=message):
        characters.load(**{"name": "multidigits"} | options)


def test_misspelt_option():
    with pytest.raises(TypeError, match="pair_count"):
        characters.load("multidigits", pair_count=10)


def test_digest_holds_for_every_machine():
    digests = {cells: characters.load("multidigits", characters=cells, pairs=100, test_pairs=10).digest
               for cells in (1, 9)}
    assert digests == {
        1: "3dd5e11b20f8b8e2aeacb0f3dc2cb7a2e9f657b07a51455ad2229e7bc1e5da7c",
        9: "3f73c0ee3ae0a827466ce881996ca3be0fb19415b1c8cf5cc1ab2d7122c35ad0",
    }


def test_digest_tells_what_a_training_depends_on(omniglot):
    def digest(**options):
        return characters.load("multiomniglot", **{"characters": 2, "pairs": 20, "test_pairs": 5} | options).digest

    omniglot(FILES)
    found = [digest(), digest(characters=3), digest(pairs=21), digest(test_pairs=6)]
    name = next(name for name in FILES if name.startswith(ALPHABETS[1]))
    omniglot(FILES | {name: png(np.eye(SIDE, dtype=bool))})
    found.append(digest())
    assert len(set(found)) == 5
    omniglot(FILES)
    assert digest() == found[0]


def test_the_set_on_another_device():
    data = characters.load("multidigits", characters=3, pairs=10, test_pairs=2)
    moved = data.to("meta")
    assert moved.digest == data.digest and moved.alphabets == data.alphabets
    for name in ("drawings", "first", "count", "pairs"):
        assert getattr(moved, name).device.type == "meta" and getattr(data, name).device.type == "cpu"
    for name in ("labels", "categories", *characters.LOTS):
        assert getattr(moved, name).device.type == "cpu"
    assert moved.view("video", torch.arange(3)).shape == (3, 1, 8, 24)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_every_device_gives_the_same_views():
    data = characters.load("multidigits", characters=3, pairs=10, test_pairs=2)
    moved, index = data.to("cuda"), torch.arange(16)
    for modality in MODALITIES:
        here = data.twins(modality, index, torch.Generator().manual_seed(1))
        there = moved.twins(modality, index, torch.Generator().manual_seed(1))
        own = moved.twins(modality, index, torch.Generator("cuda").manual_seed(1))
        for expected, found in zip(here, there, strict=True):
            assert found.is_cuda
            torch.testing.assert_close(found.cpu(), expected)
        torch.testing.assert_close(own[0], there[0])


# The real archive


@pytest.mark.skipif(REAL is None, reason="omniglot/images_background.zip is not below REPRO_DATA")
def test_real_omniglot():
    table = printed("spatial_multiomniglot_mi")
    data = characters.load("multiomniglot", REAL_ROOT, pairs=200, test_pairs=20)
    assert data.sizes == tuple(table["alphabet_size"]) and data.drawings.shape == (8300, 32, 32)
    assert sorted(set(data.count.tolist())) == [2, 16]
    assert data.drawings.amax((1, 2)).min() > 100 and 10 < data.drawings.float().mean() < 40    # thin bright strokes
    one = characters.load("multiomniglot", REAL_ROOT, characters=1, test_pairs=500)
    assert torch.equal(one.drawings, data.drawings[:1100])
    known = set(map(tuple, one.pairs[:, one.train, 0].T.tolist()))
    tested = set(map(tuple, one.pairs[:, one.test, 0].T.tolist()))
    assert 13_500 < len(known) < 55 * 16 * 16 and not known & tested
    assert data.digest == "48171bab066a36efdb0b13c07c15dc664c65f69d966e494766165dfccdc597c1"
