"""Named arrays: what is written is read, damage is noticed, and the digest tells apart all that may differ."""

import hashlib
import os

import numpy as np
import pytest

from repro.data import npz

ARRAYS = {"counts": np.arange(6).reshape(2, 3), "names": np.array(["a", "bc"]), "none": np.ones((0, 3))}


@pytest.mark.parametrize("name", ["arrays.npz", "arrays", ".arrays.npz.tmp"])
def test_what_is_written_is_read(tmp_path, name):
    npz.write(tmp_path / name, ARRAYS)
    found = npz.read(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name] and list(found) == list(ARRAYS)
    for key, array in ARRAYS.items():
        np.testing.assert_array_equal(found[key], array, strict=True)


@pytest.mark.parametrize("damage", [lambda content: content[:-40], lambda content: content[:-200], lambda content: b"",
                                    lambda content: b"text", lambda content: content.replace(b"\x05", b"\x06", 1)])
def test_damage_and_absence_are_errors_of_the_kinds_named(tmp_path, damage):
    path = tmp_path / "arrays.npz"
    with pytest.raises(FileNotFoundError):
        npz.read(path)
    npz.write(path, ARRAYS)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError):
        npz.read(path)


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "arrays.npz")
    with pytest.raises(ValueError, match="is no regular file"):
        npz.read(tmp_path / "arrays.npz")


def test_the_digest_is_that_of_names_types_shapes_and_contents():
    counts = b"counts <i8 (2, 3)\0" + b"".join(number.to_bytes(8, "little") for number in range(6))
    expected = hashlib.sha256(b"begun" + counts + b"flags |b1 (2,)\0\x00\x01").hexdigest()
    arrays = {"counts": ARRAYS["counts"], "flags": np.array([False, True])}
    assert npz.digest(arrays, "begun") == expected
    assert npz.digest(arrays | {"counts": np.asfortranarray(arrays["counts"])}, "begun") == expected
    others = [npz.digest(arrays), npz.digest(dict(reversed(arrays.items())), "begun"),
              npz.digest({"counted": arrays["counts"], "flags": arrays["flags"]}, "begun")]
    others += [npz.digest(arrays | {"counts": changed}, "begun") for changed in
               (arrays["counts"] + 1, arrays["counts"].T, arrays["counts"].astype(np.uint64))]
    assert len({expected, *others}) == 7
