"""Drawings of characters: made-up files in Omniglot's layout, scikit-learn's digits, and what is refused."""

import zipfile

import numpy as np
import pytest
import torch
from made_up_omniglot import FILES, SIZES, slow_average, slow_drawings
from sklearn.datasets import load_digits

from repro.audiovisual import characters, drawings
from repro.data import manifest

pytestmark = pytest.mark.usefixtures("folders")


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
