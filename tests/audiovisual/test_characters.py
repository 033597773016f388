"""Grids of characters and their pairs, of made-up files in Omniglot's layout, of digits, and of the real archive."""

from collections import Counter

import numpy as np
import pytest
import torch
from made_up_omniglot import ALPHABETS, FILES, SIDE, SIZES, png, slow_average, slow_drawings
from PIL import Image
from scipy.stats import chisquare
from sklearn.datasets import load_digits

from repro.audiovisual import MODALITIES, augment, characters
from repro.data import manifest
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


@pytest.mark.parametrize("name", characters.CHARACTERS)
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
            assert x == (starts[cell] + label, characters.PARTS.index(part))
            assert y == (starts[cell] + (label + 1) % expected[cell], characters.PARTS.index(part))


@pytest.mark.parametrize("cells", range(1, 10))
def test_views_against_a_slow_composition(omniglot, cells):
    omniglot(FILES)
    data, expected = characters.load("multiomniglot", characters=cells, pairs=6, test_pairs=2), slow_drawings()
    rows, columns = characters.grid(cells)
    index = torch.tensor([3, 0, 3, 11, 7, 8])
    for place, grids in enumerate(data.pair(index, torch.Generator())):
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


@pytest.mark.parametrize("lot", characters.LOTS)
def test_no_view_shows_a_drawing_of_another_part(omniglot, lot):
    omniglot(FILES)
    data = characters.load("multiomniglot", pairs=20, test_pairs=20, view="characters")
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
    data = characters.load("multidigits", characters=2, pairs=4, test_pairs=3, view="characters")
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


# Sets with other categories, redundant ones, frequent and rare ones


def test_the_first_characters_of_all_alphabets_are_one(omniglot):
    omniglot(FILES)
    data, expected = characters.load("multiomniglot", characters=2, pairs=60, test_pairs=9, categories=6), []
    for alphabet, size in enumerate(SIZES):
        expected += [(alphabet, label) for label in range(size)]
    own = {key: {drawing.tobytes() for drawing in found} for key, found in slow_drawings().items()}
    assert data.sizes == (6, 6) and data.alphabets[0] == data.alphabets[1]
    assert [name.partition("/")[0] for name in data.classes] == [ALPHABETS[alphabet] for alphabet, _ in expected[:6]]
    assert data.labels.unique().tolist() == list(range(6))
    for item in range(len(data.labels)):
        part = next(part for lot, part in characters.LOTS.items() if getattr(data, lot)[item])
        for place, cell in np.ndindex(2, 2):
            character = expected[(int(data.labels[item, cell]) + place) % 6]
            assert data.drawings[data.pairs[place, item, cell]].numpy().tobytes() in own[*character, part]


def rows_of(data, lot):
    """Pairs of a lot as tuples of drawings, and the characters they show."""
    places = lot_of(data, lot)
    return list(map(tuple, data.pairs[:, places].transpose(0, 1).flatten(1).tolist())), data.labels[places].tolist()


@pytest.mark.parametrize("frequency", characters.FREQUENCIES)
@pytest.mark.parametrize("distinct", [1, 40, 100])
def test_training_repeats_so_many_grids_as_often_as_asked(distinct, frequency):
    options = {"characters": 2, "pairs": 30_000, "test_pairs": 50}
    data = characters.load("multidigits", **options, distinct=distinct, frequency=frequency)
    pairs, labels = rows_of(data, "train")
    counts = Counter(pairs)
    assert len(counts) == len(set(map(tuple, labels))) == distinct
    weights = 1 / np.arange(1, distinct + 1) if frequency == "zipf" else np.ones(distinct)
    expected = 1 + (30_000 - distinct) * weights / weights.sum()
    if distinct > 1:
        found = np.sort([*counts.values()])[::-1] if frequency == "zipf" else [*counts.values()]
        assert np.abs(np.array(found) - expected).max() < 5 * expected.max() ** 0.5
    assert distinct == 1 or len(set(pairs[:distinct])) < distinct                   # in no order
    usual = characters.load("multidigits", **options)
    for lot in ("validation", "held_out"):
        assert rows_of(data, lot) == rows_of(usual, lot)
    assert not set(rows_of(data, "test")[0]) & set(pairs)


def test_characters_of_every_cell_are_frequent_in_an_order_of_their_own():
    data = characters.load("multidigits", characters=3, pairs=20_000, test_pairs=2_000, frequency="zipf")
    weights, orders = 1 / np.arange(1, 11), []
    for cell in range(3):
        counts = torch.bincount(data.labels[data.train, cell], minlength=10).numpy()
        assert chisquare(np.sort(counts)[::-1], 20_000 * weights / weights.sum()).pvalue > 1e-3
        assert chisquare(torch.bincount(data.labels[data.test, cell], minlength=10)).pvalue > 1e-3
        orders.append(tuple(counts.argsort()))
    assert len(set(orders)) == 3
    again = characters.load("multidigits", characters=3, pairs=100, test_pairs=10, frequency="zipf")
    counts = torch.bincount(again.labels[again.train, 0], minlength=10).numpy()
    assert counts.argmax() == orders[0][-1]                  # ranks do not depend on the number of pairs


# What training sees of a pair


def drawings_seen(data, grids):
    """(m, cells), which drawings the cells of grids show; -1 for none."""
    places = {drawing.numpy().tobytes(): place for place, drawing in enumerate(data.drawings)}
    shown = cells_of(grids, data) * 255
    pictures = torch.where((shown - shown.round()).abs() < 1e-3, shown.round(), 255).byte()
    return torch.tensor([[places.get(cell.numpy().tobytes(), -1) for cell in cells] for cells in pictures])


@pytest.mark.parametrize("lot", ["train", "held_out"])
def test_redrawn_views_show_any_drawing_of_their_part_equally_often(lot):
    data = characters.load("multidigits", characters=2, pairs=4, test_pairs=3, redrawn=True)
    item = int(lot_of(data, lot)[1])
    index = torch.full((4_000,), item)
    generator = torch.Generator().manual_seed(1)
    views = [data.view("audio", index, generator), data.pair(index, generator)[1]]
    for grids in (*views, data.twins("audio", index, generator)[0]):
        for cell, seen in enumerate(drawings_seen(data, grids).unbind(1)):
            drawn = data.pairs[1, item, cell]
            first, count = int(data.first[drawn]), int(data.count[drawn])
            assert chisquare(torch.bincount(seen - first, minlength=count)).pvalue > 1e-3 and seen.min() >= first
    assert not torch.equal(*views[:2])
    expected = characters.load("multidigits", characters=2, pairs=4, test_pairs=3).centred("audio", index[:2])
    assert torch.equal(data.centred("audio", index[:2]), expected)
    again = data.view("audio", index, torch.Generator().manual_seed(1))
    assert torch.equal(views[0], again)


def test_the_other_drawing_of_an_item_is_always_the_same_one():
    data = characters.load("multidigits", characters=2, pairs=300, test_pairs=9, view="drawing")
    index = torch.cat([lot_of(data, "train"), lot_of(data, "train")])
    for place, modality in enumerate(MODALITIES):
        first, other = data.twins(modality, index, torch.Generator().manual_seed(5))
        own, seen = drawings_seen(data, first), drawings_seen(data, other)
        assert torch.equal(own, data.pairs[place, index]) and torch.equal(seen[:300], seen[300:])
        assert not (own == seen).any() and torch.equal(data.first[own], data.first[seen])
        again = data.to("cpu").twins(modality, index.flip(0), torch.Generator().manual_seed(6))
        assert torch.equal(again[1].flip(0), other)
        steps = ((seen - own) % data.count[own])[:300].double() / data.count[own][:300]
        assert 0.4 < steps.mean() < 0.6 and steps.std() > 0.2


def test_the_label_free_view_changes_every_cell_on_its_own():
    data = characters.load("multidigits", characters=4, pairs=30, test_pairs=9)
    index = torch.arange(20).repeat(2)
    first, other = data.twins("video", index, torch.Generator().manual_seed(5))
    assert torch.equal(first, data.view("video", index, torch.Generator()))
    expected = augment.warped(cells_of(first, data).flatten(0, 1), generator=torch.Generator().manual_seed(5))
    assert torch.equal(cells_of(other, data).flatten(0, 1), expected)
    assert not torch.isclose(other[:20], other[20:]).all((1, 2, 3)).any()      # anew every time


@pytest.mark.parametrize("view", characters.VIEWS)
def test_queries_and_keys_can_have_the_same_change(view):
    plain, data = (characters.load("multidigits", characters=2, pairs=30, test_pairs=9, view=view, augmented=augmented)
                   for augmented in (False, True))
    index = torch.arange(20)
    for grids in (*data.pair(index, torch.Generator().manual_seed(1)), data.view("video", index, torch.Generator()),
                  *data.twins("audio", index, torch.Generator().manual_seed(2))):
        assert (drawings_seen(data, grids) == -1).float().mean() > 0.9
    generator, same = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    for grids, modality in zip(data.pair(index, generator), MODALITIES, strict=True):
        cells = cells_of(plain.view(modality, index, torch.Generator()), plain).flatten(0, 1)
        assert torch.equal(cells_of(grids, data).flatten(0, 1), augment.warped(cells, generator=same))
    assert torch.equal(data.centred("video", index), plain.centred("video", index))


# Options, digest, device


@pytest.mark.parametrize(("options", "message"), [
    ({"categories": 11}, "categories=11 should be at most 10, the characters there are"),
    ({"characters": 2, "distinct": 101}, "distinct=101 should be at most 100, of 50000 training pairs and 100 grids"),
    ({"characters": 2, "distinct": 90, "pairs": 80}, "distinct=90 should be at most 80, of 80 train"),
    ({"frequency": "zip"}, "frequency='zip' is not one of: balanced, zipf; did you mean 'zipf'"),
    ({"view": "drawings"}, "view='drawings' is not one of: affine, drawing, characters; did you mean 'drawing'"),
])
def test_impossible_options(options, message):
    with pytest.raises(ValueError, match=message):
        characters.load(**{"name": "multidigits"} | options)


def test_digest_holds_for_every_machine():
    digests = {cells: characters.load("multidigits", characters=cells, pairs=100, test_pairs=10).digest
               for cells in (1, 9)}
    assert digests == {
        1: "3dd5e11b20f8b8e2aeacb0f3dc2cb7a2e9f657b07a51455ad2229e7bc1e5da7c",
        9: "3f73c0ee3ae0a827466ce881996ca3be0fb19415b1c8cf5cc1ab2d7122c35ad0",
    }


@pytest.mark.parametrize(("cells", "pairs", "digest"), [
    (2, 512, "541f141761424f0a4772358bd0a802f6319670029222c3e7fa9a10d4d8206e2d"),
    (4, 10_000, "c264c2de20e4e31edb9518366cc3c269ed450ef926388ff103ccd679adfafe6d"),
])
def test_what_training_sees_and_the_usual_options_are_not_in_the_digest(cells, pairs, digest):
    usual = {"categories": 0, "distinct": 0, "frequency": "balanced"}
    for seen in ({}, {"redrawn": True, "view": "characters", "augmented": True}):
        assert characters.load("multidigits", characters=cells, pairs=pairs, **usual, **seen).digest == digest


def test_digest_tells_what_a_training_depends_on(omniglot):
    def digest(**options):
        return characters.load("multiomniglot", **{"characters": 2, "pairs": 20, "test_pairs": 5} | options).digest

    omniglot(FILES)
    found = [digest(), digest(characters=3), digest(pairs=21), digest(test_pairs=6), digest(categories=5),
             digest(distinct=5), digest(frequency="zipf"), digest(distinct=5, frequency="zipf")]
    name = next(name for name in FILES if name.startswith(ALPHABETS[1]))
    omniglot(FILES | {name: png(np.eye(SIDE, dtype=bool))})
    found.append(digest())
    assert len(set(found)) == 9
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
    assert moved.view("video", torch.arange(3), torch.Generator()).shape == (3, 1, 8, 24)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("redrawn", [False, True])
@pytest.mark.parametrize("view", characters.VIEWS)
def test_every_device_gives_the_same_views(view, redrawn):
    data = characters.load("multidigits", characters=3, pairs=10, test_pairs=2, view=view, redrawn=redrawn)
    moved, index = data.to("cuda"), torch.arange(16)
    for modality in MODALITIES:
        here = data.twins(modality, index, torch.Generator().manual_seed(1))
        there = moved.twins(modality, index, torch.Generator().manual_seed(1))
        own = moved.twins(modality, index, torch.Generator("cuda").manual_seed(1))
        for expected, found in zip(here, there, strict=True):
            assert found.is_cuda
            torch.testing.assert_close(found.cpu(), expected)
        assert redrawn or torch.equal(own[0], there[0])


# Drawings


@pytest.mark.parametrize(("shape", "side"), [((105, 105), 32), ((7, 5), 3), ((1, 1), 4), ((32, 32), 32), ((64, 3), 2)])
def test_area_average_against_the_slow_one(shape, side):
    picture = np.random.default_rng(1).random(shape) < 0.2
    found = characters.area_average(picture, side)
    assert found.dtype == np.uint8 and found.shape == (side, side)
    np.testing.assert_array_equal(found, np.rint(255 * slow_average(picture, side)))
    assert (characters.area_average(np.ones(shape, dtype=bool), side) == 255).all()


def test_digits_are_scikit_learns():
    found, expected = characters.digits(), load_digits()
    assert found.images.shape == (1797, 8, 8) and found.names == tuple("0123456789")
    stop = 0
    for digit, counts in enumerate(found.counts.tolist()):
        start, stop = stop, stop + sum(counts)
        own = expected.images[expected.target == digit]
        np.testing.assert_array_equal(found.images[start:stop], np.rint(own * 255 / 16))
        assert counts == [len(own) * 16 // 20, len(own) * 18 // 20 - len(own) * 16 // 20,
                          len(own) - len(own) * 18 // 20]
    assert stop == 1797


def test_prepared_drawings_are_used_and_made_again_when_damaged(omniglot, folders, monkeypatch):
    omniglot(FILES)
    first = characters.load("multiomniglot", pairs=20, test_pairs=5)
    prepared, = (folders / "runs" / "prepared").glob("*.npz")
    kept = prepared.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "verified_members", None)      # would fail
        assert characters.load("multiomniglot", pairs=20, test_pairs=5).digest == first.digest
    prepared.write_bytes(kept[:3000] + bytes([kept[3000] ^ 1]) + kept[3001:])
    assert characters.load("multiomniglot", pairs=20, test_pairs=5).digest == first.digest
    assert prepared.read_bytes() == kept


def test_a_changed_declaration_prepares_anew(omniglot, folders):
    omniglot(FILES)
    first = characters.load("multiomniglot", pairs=20, test_pairs=5)
    omniglot(FILES, numbers={"train": (3, 2, 7), "validation": (4, 5), "held_out": (6, 1)})
    second = characters.load("multiomniglot", pairs=20, test_pairs=5)
    assert first.digest != second.digest and len(list((folders / "runs" / "prepared").glob("*.npz"))) == 2


def test_missing_archive_says_what_to_do(omniglot, folders):
    path = omniglot(FILES)
    path.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        characters.load("multiomniglot")
    for part in (f"{path}", "https://example.org", "REPRO_DATA"):
        assert part in str(caught.value)
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        characters.load("multiomniglot", folders / "elsewhere")


# The real archive


@pytest.mark.skipif(REAL is None, reason="omniglot/images_background.zip is not below REPRO_DATA")
def test_real_omniglot():
    table = printed("spatial_multiomniglot_mi")
    data = characters.load("multiomniglot", REAL_ROOT, pairs=200, test_pairs=20)
    np.testing.assert_allclose(np.cumsum(np.log(data.sizes)), table["MI_nats"], rtol=0, atol=5.1e-5)
    assert data.sizes == tuple(table["alphabet_size"]) and data.drawings.shape == (8300, 32, 32)
    assert sorted(set(data.count.tolist())) == [2, 16]
    assert data.drawings.amax((1, 2)).min() > 100 and 10 < data.drawings.float().mean() < 40    # thin bright strokes
    one = characters.load("multiomniglot", REAL_ROOT, characters=1, test_pairs=500)
    assert torch.equal(one.drawings, data.drawings[:1100])
    known = set(map(tuple, one.pairs[:, one.train, 0].T.tolist()))
    tested = set(map(tuple, one.pairs[:, one.test, 0].T.tolist()))
    assert 13_500 < len(known) < 55 * 16 * 16 and not known & tested
    assert data.digest == "48171bab066a36efdb0b13c07c15dc664c65f69d966e494766165dfccdc597c1"
    trained = [characters.load("multiomniglot", REAL_ROOT, characters=cells, pairs=10_000).digest for cells in (1, 4)]
    assert trained == ["b1906d990a7cb2f7fcaf7281722ce528f97888259fc957eb56bbc9a7995701ba",
                       "a1b5e9d211999afdd0d6b6215c033a55716fa3734681cf5ff8497550e63f22e6"]
    merged = characters.load("multiomniglot", REAL_ROOT, characters=1, pairs=2_000, categories=101)
    assert merged.sizes == (101,) and len(merged.categories[merged.train].unique()) == 101
