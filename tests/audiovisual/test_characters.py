"""Grids of characters and their pairs, of made-up files in Omniglot's layout, of digits, and of the real archive."""

import functools
import io
from collections import Counter

import numpy as np
import pytest
import torch
from packed import write_zip
from PIL import Image
from scipy.stats import chisquare

from repro.audiovisual import MODALITIES, augment, characters
from repro.data import files, manifest
from repro.data.files import content_digest
from repro.report.printed import printed

REAL_ROOT = manifest.data_root()
REAL = manifest.load_manifest("multiomniglot").files[0].place(REAL_ROOT)
pytestmark = pytest.mark.usefixtures("folders")
ALPHABETS = next(iter(manifest.load_manifest("multiomniglot").splits.values())).train["alphabet"]
SIZES = (5, 4, 4, 3, 3, 3, 2, 2, 2)                          # characters of the made-up alphabets
NUMBERS = {"train": (1, 2, 3), "validation": (4, 5), "held_out": (6, 7)}    # of the made-up drawings
SIDE = 21


def png(strokes):
    """A file in Omniglot's format: 1 bit, black strokes on white."""
    stream = io.BytesIO()
    Image.fromarray(~strokes).save(stream, "PNG")
    return stream.getvalue()


def made_up():
    """Random drawings in Omniglot's layout, with an alphabet that no grid shows; names and contents of the files."""
    rng, files = np.random.default_rng(0), {}
    for alphabet, size in (*zip(ALPHABETS, SIZES, strict=True), ("Braille", 2)):
        for character in range(1, size + 1):
            for number in (number for part in NUMBERS.values() for number in part):
                name = f"{alphabet}/character{character:02}/{len(files):04}_{number:02}.png"
                files[name] = png(rng.random((SIDE, SIDE)) < 0.3)
    return files


FILES = made_up()


@functools.cache
def slow_drawings():
    """{(cell, character of its alphabet, part): contents of drawings (32, 32)} of the made-up files."""
    found = {}
    for cell, alphabet in enumerate(ALPHABETS):
        for name in sorted(name for name in FILES if name.startswith(f"{alphabet}/")):
            character, number = int(name.split("/")[1][-2:]) - 1, int(name[-6:-4])
            part = next(part for part, numbers in NUMBERS.items() if number in numbers)
            strokes = ~np.asarray(Image.open(io.BytesIO(FILES[name])))
            tiles = np.kron(strokes, np.ones((32, 32))).reshape(32, SIDE, 32, SIDE)  # 32 x 32 parts of every pixel
            shrunk = np.rint(255 * tiles.mean(axis=(1, 3))).astype(np.uint8)
            found.setdefault((cell, character, part), set()).add(shrunk.tobytes())
    return found


@pytest.fixture
def omniglot(folders, declare):
    """Writes files as the archive and declares them as `multiomniglot`."""
    def write(files, *, numbers=NUMBERS):
        path = folders / "data" / "omniglot" / "images_background.zip"
        write_zip(path, dict(reversed(files.items())), "images_background")
        declared = {"name": "omniglot/images_background.zip", "bytes": sum(map(len, files.values())),
                    "members": len(files), "digest": content_digest(sorted(files.items()))}
        parts = {part: {"alphabet": list(ALPHABETS), "drawing": list(numbers[of])}
                 for part, of in (("train", "train"), ("test", "held_out"))}
        declare("multiomniglot", files=[declared], splits={"drawings": parts | {"expect": {"classes": sum(SIZES)}}})

    return write


def digits(cells=2, **options):
    return characters.load("multidigits", characters=cells, **{"pairs": 30, "test_pairs": 9} | options)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def lot_of(data, lot):
    return getattr(data, lot).nonzero().squeeze(1)


def cells_of(grids, data):
    """(m, cells, cell, cell) of grids (m, 1, height, width)."""
    rows, columns = characters.grid(len(data.sizes))
    size = data.drawings.shape[-1]
    parts = [grids[:, 0, y * size:(y + 1) * size, x * size:(x + 1) * size] for y in range(rows) for x in range(columns)]
    assert all((part == 0).all() for part in parts[len(data.sizes):])
    return torch.stack(parts[:len(data.sizes)], dim=1)


def drawings_seen(data, grids):
    """(m, cells), which drawings the cells of grids show; -1 for none."""
    places = {drawing.numpy().tobytes(): place for place, drawing in enumerate(data.drawings)}
    shown = cells_of(grids, data) * 255
    pictures = torch.where((shown - shown.round()).abs() < 1e-3, shown.round(), 255).byte()
    return torch.tensor([[places.get(cell.numpy().tobytes(), -1) for cell in cells] for cells in pictures])


def pairs_of(data, lot):
    """Pairs of a lot as tuples of drawings."""
    return list(map(tuple, data.pairs[:, lot_of(data, lot)].transpose(0, 1).flatten(1).tolist()))


@pytest.mark.parametrize("cells", [1, 3, 5, 9])
def test_pairs_show_characters_and_their_successors_in_drawings_of_their_part(omniglot, cells):
    omniglot(FILES)
    data = characters.load("multiomniglot", characters=cells, pairs=60, test_pairs=30)
    assert data.sizes == SIZES[:cells] and data.labels.shape == (150, cells)
    assert [alphabet[0].partition("/")[0] for alphabet in data.alphabets] == ALPHABETS[:cells]
    for place, grids in enumerate(data.pair(torch.arange(150), torch.Generator())):
        rows, columns = (1, cells) if cells < 4 else (3, 3) if cells == 9 else (2, (cells + 1) // 2)
        assert grids.dtype == torch.float32 and grids.shape == (150, 1, 32 * rows, 32 * columns)
        pictures = (cells_of(grids, data) * 255).round().byte().numpy()
        for lot, part in characters.LOTS.items():
            for item, cell in np.ndindex(int(getattr(data, lot).sum()), cells):
                item = int(lot_of(data, lot)[item])
                label = (int(data.labels[item, cell]) + place) % SIZES[cell]
                assert pictures[item, cell].tobytes() in slow_drawings()[cell, label, part]


def test_other_drawings_are_drawn_uniformly_and_independently():
    data = digits(pairs=4, test_pairs=3, view="characters")
    index = torch.full((8_000,), int(lot_of(data, "held_out")[1]))
    first, other = (drawings_seen(data, grids) for grids in data.twins("audio", index, seeded(3)))
    assert torch.equal(drawings_seen(data, data.twins("audio", index, seeded(3))[1]), other)
    assert torch.equal(first, data.pairs[1, index]) and torch.equal(data.first[other], data.first[first])
    for cell in range(2):
        start, count = (int(column[first[0, cell]]) for column in (data.first, data.count))
        counts = torch.bincount(other[:, cell] - start, minlength=count).tolist()
        assert len(counts) == count and counts.pop(int(first[0, cell]) - start) == 0
        assert chisquare(counts).pvalue > 1e-3
    assert chisquare(list(Counter(map(tuple, other.tolist())).values())).pvalue > 1e-3


def test_test_pairs_are_new(omniglot):
    omniglot(FILES)
    data = characters.load("multiomniglot", characters=1, pairs=100, test_pairs=60)
    known, tested = set(pairs_of(data, "train")), pairs_of(data, "test")
    assert 30 < len(known) < 5 * 3 * 3 and len(tested) == 60 and not known & set(tested)
    with pytest.raises(ValueError, match=r"among the 45 different training pairs; choose fewer pairs or more charact"):
        characters.load("multiomniglot", characters=1, pairs=1500, test_pairs=60)


def test_the_first_characters_of_all_alphabets_are_one(omniglot):
    omniglot(FILES)
    data = characters.load("multiomniglot", characters=2, pairs=60, test_pairs=9, categories=6)
    expected = [(alphabet, label) for alphabet, size in enumerate(SIZES) for label in range(size)][:6]
    assert data.sizes == (6, 6) and data.alphabets[0] == data.alphabets[1]
    assert [name.partition("/")[0] for name in data.classes] == [ALPHABETS[alphabet] for alphabet, _ in expected]
    assert data.labels.unique().tolist() == list(range(6))
    for item, place, cell in np.ndindex(60, 2, 2):
        character = expected[(int(data.labels[item, cell]) + place) % 6]
        assert data.drawings[data.pairs[place, item, cell]].numpy().tobytes() in slow_drawings()[*character, "train"]


@pytest.mark.parametrize("frequency", characters.FREQUENCIES)
@pytest.mark.parametrize("distinct", [1, 40, 100])
def test_training_repeats_so_many_grids_as_often_as_asked(distinct, frequency):
    data = digits(pairs=30_000, test_pairs=50, distinct=distinct, frequency=frequency)
    pairs = pairs_of(data, "train")
    counts = Counter(pairs)
    assert len(counts) == len(set(map(tuple, data.labels[data.train].tolist()))) == distinct
    weights = 1 / np.arange(1, distinct + 1) if frequency == "zipf" else np.ones(distinct)
    expected = 1 + (30_000 - distinct) * weights / weights.sum()
    if distinct > 1:
        found = np.sort([*counts.values()])[::-1] if frequency == "zipf" else [*counts.values()]
        assert np.abs(np.array(found) - expected).max() < 5 * expected.max() ** 0.5
        assert len(set(pairs[:distinct])) < distinct                                # in no order
    usual = digits(pairs=30_000, test_pairs=50)
    for lot in ("validation", "held_out"):
        assert pairs_of(data, lot) == pairs_of(usual, lot)
    assert not set(pairs_of(data, "test")) & set(pairs)


def test_characters_of_every_cell_are_frequent_in_an_order_of_their_own():
    data = digits(3, pairs=20_000, test_pairs=2_000, frequency="zipf")
    weights, orders = 1 / np.arange(1, 11), []
    for cell in range(3):
        counts = torch.bincount(data.labels[data.train, cell], minlength=10).numpy()
        assert chisquare(np.sort(counts)[::-1], 20_000 * weights / weights.sum()).pvalue > 1e-3
        assert chisquare(torch.bincount(data.labels[data.test, cell], minlength=10)).pvalue > 1e-3
        orders.append(tuple(counts.argsort()))
    assert len(set(orders)) == 3
    fewer = digits(3, pairs=100, frequency="zipf")
    assert fewer.labels[fewer.train, 0].bincount().argmax() == orders[0][-1], "ranks do not depend on the pairs"


def test_redrawn_views_show_any_drawing_of_their_part_equally_often():
    data = digits(pairs=4, test_pairs=3, redrawn=True)
    item, generator = int(lot_of(data, "held_out")[1]), seeded(1)
    index = torch.full((4_000,), item)
    views = [data.view("audio", index, generator), data.pair(index, generator)[1]]
    for grids in (*views, data.twins("audio", index, generator)[0]):
        for cell, seen in enumerate(drawings_seen(data, grids).unbind(1)):
            drawn = data.pairs[1, item, cell]
            first, count = int(data.first[drawn]), int(data.count[drawn])
            assert chisquare(torch.bincount(seen - first, minlength=count)).pvalue > 1e-3 and seen.min() >= first
    assert not torch.equal(*views) and torch.equal(views[0], data.view("audio", index, seeded(1)))
    fixed = digits(pairs=4, test_pairs=3).centred("audio", index[:2])
    assert torch.equal(data.centred("audio", index[:2]), fixed)


def test_the_label_free_view_changes_every_cell_on_its_own():
    data, index = digits(4), torch.arange(20).repeat(2)
    first, other = data.twins("video", index, seeded(5))
    assert torch.equal(first, data.view("video", index, seeded()))
    expected = augment.warped(cells_of(first, data).flatten(0, 1), generator=seeded(5))
    assert torch.equal(cells_of(other, data).flatten(0, 1), expected)
    assert not torch.isclose(other[:20], other[20:]).all((1, 2, 3)).any()      # anew every time


@pytest.mark.parametrize("view", characters.VIEWS)
def test_queries_and_keys_can_have_the_same_change(view):
    plain, data = (digits(view=view, augmented=augmented) for augmented in (False, True))
    index, generator, same = torch.arange(20), seeded(3), seeded(3)
    for grids in data.twins("audio", index, seeded(2)):
        assert (drawings_seen(data, grids) == -1).float().mean() > 0.9
    for grids, modality in zip(data.pair(index, generator), MODALITIES, strict=True):
        cells = cells_of(plain.view(modality, index, seeded()), plain).flatten(0, 1)
        assert torch.equal(cells_of(grids, data).flatten(0, 1), augment.warped(cells, generator=same))
    assert torch.equal(data.centred("video", index), plain.centred("video", index))


@pytest.mark.parametrize(("options", "message"), [
    ({"categories": 11}, "categories=11 should be at most 10, the characters there are"),
    ({"distinct": 101, "pairs": 200}, "distinct=101 should be at most 100, of 200 training pairs and 100 grids"),
    ({"distinct": 90, "pairs": 80}, "distinct=90 should be at most 80, of 80 train"),
    ({"frequency": "zip"}, "did you mean 'zipf'. frequency='zip' is not one of: balanced, zipf"),
    ({"view": "character"}, "did you mean 'characters'. view='character' is not one of: affine"),
])
def test_impossible_options(options, message):
    with pytest.raises(ValueError, match=message):
        digits(**options)


@pytest.mark.parametrize(("cells", "options", "digest"), [
    (1, {"pairs": 100, "test_pairs": 10}, "3dd5e11b20f8b8e2aeacb0f3dc2cb7a2e9f657b07a51455ad2229e7bc1e5da7c"),
    (9, {"pairs": 100, "test_pairs": 10}, "3f73c0ee3ae0a827466ce881996ca3be0fb19415b1c8cf5cc1ab2d7122c35ad0"),
    (2, {"pairs": 400, "test_pairs": 60, "distinct": 40, "frequency": "zipf"},
     "86540f4f0b3d2d644a35830d3decd07c1f8ff1bef2a5b1ce2229a82e9a31ba52"),
    (2, {"pairs": 512, "test_pairs": 10_000}, "541f141761424f0a4772358bd0a802f6319670029222c3e7fa9a10d4d8206e2d"),
])
def test_digest_holds_for_every_machine_whatever_training_sees(cells, options, digest):
    for seen in ({}, {"redrawn": True, "view": "characters", "augmented": True}):
        assert digits(cells, **options, **seen).digest == digest


def test_prepared_drawings_are_those_declared(omniglot, monkeypatch):
    omniglot(FILES)
    first = characters.load("multiomniglot", pairs=20, test_pairs=5).digest
    with monkeypatch.context() as patch:
        patch.setattr(files, "verified_members", None)      # would fail
        assert characters.load("multiomniglot", pairs=20, test_pairs=5).digest == first
    omniglot(FILES, numbers={"train": (3, 2, 7), "validation": (4, 5), "held_out": (6, 1)})
    assert characters.load("multiomniglot", pairs=20, test_pairs=5).digest != first
    name = next(name for name in FILES if name.startswith(ALPHABETS[1]))
    omniglot(FILES | {name: png(np.eye(SIDE, dtype=bool))})
    assert characters.load("multiomniglot", pairs=20, test_pairs=5).digest != first


@pytest.mark.skipif(REAL is None, reason="omniglot/images_background.zip is not below REPRO_DATA")
def test_real_omniglot():
    table = printed("spatial_multiomniglot_mi")
    data = characters.load("multiomniglot", REAL_ROOT, pairs=200, test_pairs=20)
    np.testing.assert_allclose(np.cumsum(np.log(data.sizes)), table["MI_nats"], rtol=0, atol=5.1e-5)
    assert data.sizes == tuple(table["alphabet_size"]) and data.drawings.shape == (8300, 32, 32)
    assert data.digest == "48171bab066a36efdb0b13c07c15dc664c65f69d966e494766165dfccdc597c1"
    trained = [characters.load("multiomniglot", REAL_ROOT, characters=cells, pairs=10_000).digest for cells in (1, 4)]
    assert trained == ["b1906d990a7cb2f7fcaf7281722ce528f97888259fc957eb56bbc9a7995701ba",
                       "a1b5e9d211999afdd0d6b6215c033a55716fa3734681cf5ff8497550e63f22e6"]
