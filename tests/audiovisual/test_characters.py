"""Grids of characters: made-up files in Omniglot's layout, scikit-learn's digits, and the real archive."""

import functools
import io
import math
import shutil
import zipfile
from collections import Counter

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from scipy.stats import chisquare
from sklearn.datasets import load_digits

from repro import manifest
from repro.audiovisual import MODALITIES, characters, drawings
from repro.report.printed import printed

REAL_ROOT = manifest.data_root()
DECLARED = manifest.load_manifest("multiomniglot")
REAL = manifest.location(DECLARED.files[0], REAL_ROOT)
ALPHABETS = next(iter(DECLARED.splits.values())).train["alphabet"]
SIZES = (5, 4, 4, 3, 3, 3, 2, 2, 2)                          # characters of the made-up alphabets
NUMBERS = {"train": (1, 2, 3), "validation": (4, 5), "held_out": (6, 7)}    # of the made-up drawings
SIDE = 21
pytestmark = pytest.mark.usefixtures("folders")


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


@pytest.fixture
def omniglot(folders, monkeypatch):
    """Writes files as the archive or folder, declares them as `multiomniglot`, and returns where they lie."""
    monkeypatch.setattr(manifest, "project_root", lambda: folders)
    (folders / "data_manifests").mkdir()

    def write(files, *, unpacked=False, compression=zipfile.ZIP_STORED, expect=None, numbers=NUMBERS):
        path = folders / "data" / "omniglot" / "images_background.zip"
        shutil.rmtree(path.parent, ignore_errors=True)
        for name, contents in files.items() if unpacked else ():
            file = path.with_suffix("") / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(contents)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not unpacked:
            with zipfile.ZipFile(path, "w", compression) as archive:
                for name, contents in reversed(files.items()):
                    archive.writestr(f"images_background/{name}", contents)
        shown = {part: sum(SIZES) * len(numbers[part]) for part in numbers}
        usual = {"train": shown["train"], "validation": shown["validation"], "test": shown["held_out"]}
        values = {
            "name": "multiomniglot", "title": "t", "access": "form", "source": "https://example.org", "licence": "l",
            "files": [{"name": "omniglot/images_background.zip", "bytes": sum(map(len, files.values())),
                       "members": len(files), "digest": manifest.content_digest(sorted(files.items()))}],
            "splits": {"drawings": {"train": {"alphabet": list(ALPHABETS), "drawing": list(numbers["train"])},
                                    "test": {"alphabet": list(ALPHABETS), "drawing": list(numbers["held_out"])},
                                    "expect": usual | {"classes": sum(SIZES)} | (expect or {})}},
        }
        (folders / "data_manifests" / "multiomniglot.yaml").write_text(yaml.safe_dump(values))
        return path if not unpacked else path.with_suffix("")

    return write


def slow_average(picture, side):
    """The mean over every rectangle, from a picture in which every pixel is repeated `side` times each way."""
    height, width = picture.shape
    return np.kron(picture, np.ones((side, side))).reshape(side, height, side, width).mean(axis=(1, 3))


@functools.cache
def slow_drawings():
    """{(cell, character of its alphabet, part): drawings (32, 32)} of the made-up files."""
    found = {}
    for cell, alphabet in enumerate(ALPHABETS):
        for name in sorted(name for name in FILES if name.startswith(f"{alphabet}/")):
            character, number = int(name.split("/")[1][-2:]) - 1, int(name[-6:-4])
            part = next(part for part, numbers in NUMBERS.items() if number in numbers)
            strokes = ~np.asarray(Image.open(io.BytesIO(FILES[name])))
            shrunk = np.rint(255 * slow_average(strokes, 32)).astype(np.uint8)
            found.setdefault((cell, character, part), []).append(shrunk)
    return found


def lot_of(data, lot):
    return getattr(data, lot).nonzero().squeeze(1)


def cells_of(grids, data):
    """(m, cells, cell, cell) of grids (m, 1, height, width)."""
    rows, columns = characters.grid(len(data.sizes))
    size = data.drawings.shape[-1]
    parts = [grids[:, 0, y * size:(y + 1) * size, x * size:(x + 1) * size] for y in range(rows) for x in range(columns)]
    assert all((part == 0).all() for part in parts[len(data.sizes):])
    return torch.stack(parts[:len(data.sizes)], dim=1)


# Drawings


@pytest.mark.parametrize(("shape", "side"), [((105, 105), 32), ((7, 5), 3), ((1, 1), 4), ((32, 32), 32), ((64, 3), 2)])
def test_area_average_against_the_slow_one(shape, side):
    picture = np.random.default_rng(1).random(shape) < 0.2
    found = drawings.area_average(picture, side)
    assert found.dtype == np.uint8 and found.shape == (side, side)
    np.testing.assert_array_equal(found, np.rint(255 * slow_average(picture, side)))
    assert (drawings.area_average(np.ones(shape, dtype=bool), side) == 255).all()


def test_digits_are_scikit_learns():
    found, expected = drawings.digits(manifest.load_manifest("multidigits")), load_digits()
    assert found.images.shape == (1797, 8, 8) and found.alphabets == (tuple("0123456789"),)
    stop = 0
    for digit, counts in enumerate(found.counts.tolist()):
        start, stop = stop, stop + sum(counts)
        own = expected.images[expected.target == digit]
        np.testing.assert_array_equal(found.images[start:stop], np.rint(own * 255 / 16))
        assert counts == [len(own) * 16 // 20, len(own) * 18 // 20 - len(own) * 16 // 20,
                          len(own) - len(own) * 18 // 20]
    assert stop == 1797


def test_archive_however_packed_and_folder_agree(omniglot, monkeypatch, folders):
    found = []
    for number, way in enumerate(({}, {"compression": zipfile.ZIP_DEFLATED}, {"unpacked": True})):
        monkeypatch.setenv("REPRO_RUNS", str(folders / f"runs{number}"))
        path = omniglot(FILES, **way)
        before = sorted(path.parent.rglob("*"))
        found.append(characters.load("multiomniglot", characters=3, pairs=20, test_pairs=5))
        assert sorted(path.parent.rglob("*")) == before      # nothing is written beside the data
    assert len({data.digest for data in found}) == 1
    assert all(torch.equal(data.drawings, found[0].drawings) for data in found)


def test_drawings_are_those_of_the_files(omniglot):
    omniglot(FILES)
    data = characters.load("multiomniglot", pairs=20, test_pairs=5)
    assert data.sizes == SIZES and data.classes == data.alphabets[0]
    assert data.alphabets[1][2] == "Japanese_(hiragana)/character03"
    expected = slow_drawings()
    order = sorted(expected, key=lambda key: (key[0], key[1], drawings.PARTS.index(key[2])))
    np.testing.assert_array_equal(data.drawings, np.concatenate([expected[key] for key in order]))
    assert data.count.tolist() == [len(expected[key]) for key in order for _ in expected[key]]
    assert (data.first <= torch.arange(len(data.first))).all()
    assert (torch.arange(len(data.first)) < data.first + data.count).all()


@pytest.mark.parametrize("damage", [lambda contents: contents[:-200], lambda contents: b"",
                                    lambda contents: contents[:3000] + bytes([contents[3000] ^ 1]) + contents[3001:]])
def test_prepared_drawings_are_used_and_made_again_when_damaged(omniglot, folders, monkeypatch, damage):
    omniglot(FILES)
    first = characters.load("multiomniglot", pairs=20, test_pairs=5)
    prepared, = (folders / "runs" / "prepared").glob("*.npz")
    kept = prepared.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(drawings, "parse_omniglot", None)      # would fail
        assert characters.load("multiomniglot", pairs=20, test_pairs=5).digest == first.digest
    prepared.write_bytes(damage(kept))
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


@pytest.mark.parametrize("kept", [0, 100, 5000])
def test_truncated_archive(omniglot, kept):
    path = omniglot(FILES)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"images_background\.zip is truncated or damaged"):
        characters.load("multiomniglot")


def test_another_distribution_is_refused(omniglot, folders):
    folder = omniglot(FILES, unpacked=True)
    extra = folder / "Braille" / "character09" / "0001_01.png"
    extra.parent.mkdir()
    extra.write_bytes(b"")
    with pytest.raises(ValueError, match=rf"members {len(FILES) + 1}, expected {len(FILES)}.*https://example\.org"):
        characters.load("multiomniglot")
    assert not list((folders / "runs").rglob("*.npz"))


def test_other_counts_than_the_declared_ones_are_refused(omniglot):
    omniglot(FILES, expect={"validation": 830})
    with pytest.raises(ValueError, match=r"'validation': 56.*'validation': 830"):
        characters.load("multiomniglot")
    omniglot({name: contents for name, contents in FILES.items() if not name.startswith("Bengali")})
    with pytest.raises(ValueError, match=r"'classes': 25.*'classes': 28"):
        characters.load("multiomniglot")


def test_a_character_without_enough_drawings_is_named(omniglot):
    files = {name.replace("_06.png", "_08.png") if name.startswith("Bengali/character02") else name: contents
             for name, contents in FILES.items()}            # one held-out drawing of it becomes one for validation
    omniglot(files, expect={"validation": 57, "test": 55})
    with pytest.raises(ValueError, match=r"1 drawings of Bengali/character02 for held_out, at least 2 are needed"):
        characters.load("multiomniglot")


@pytest.mark.parametrize(("name", "contents", "message"), [
    ("Grantha/character01/readme.txt", b"?", r"Grantha/character01/readme\.txt is not named like"),
    ("Grantha/character01/0001_01.png", b"no picture", r"Grantha/character01/0001_01\.png cannot be read as a picture"),
])
def test_foreign_files_are_named(omniglot, name, contents, message):
    omniglot(FILES | {name: contents})
    with pytest.raises(ValueError, match=message):
        characters.load("multiomniglot")


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
