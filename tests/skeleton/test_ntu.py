"""The reader of NTU RGB+D's text against a slow one, and its names."""

import zipfile

import numpy as np
import pytest
from ntu_files import AGAIN, COMING, CROWD, FIRST, ONE, TWO, changed, slow_read, text

from repro.data import manifest
from repro.skeleton import ntu, ntu_prepare

LISTS = manifest.data_root() / "ntu"
needs_lists = pytest.mark.skipif(not LISTS.exists(), reason="the name lists of NTU RGB+D are not below REPRO_DATA")
SAME_ID = [[(FIRST, bodies[0][1]), (FIRST + 1, bodies[1][1]), (FIRST, bodies[1][1])] for bodies in TWO]
NO_IDS = [[(0, joints) for _, joints in bodies] for bodies in TWO]
SOME = {"one": ONE, "two": TWO, "coming": COMING, "again": AGAIN, "crowd": CROWD, "nobody": [[], [], []], "empty": [],
        "same id": SAME_ID, "no ids": NO_IDS}
NAMES = ["S001C001P001R001A001", "S017C003P040R002A060"]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", SOME)
def test_parse_against_the_slow_reader(name, end):
    contents = text(SOME[name], end)
    found, expected = ntu.parse(contents), slow_read(contents)
    numbers = list(dict.fromkeys(number for number, _, _ in expected))
    assert found.frames == len(SOME[name]) and found.joints.dtype == np.float32
    assert found.joints.shape == (len(expected), 25, 3)
    assert found.frame.tolist() == [frame for _, frame, _ in expected]
    assert found.body.tolist() == [numbers.index(number) for number, _, _ in expected]
    np.testing.assert_array_equal(found.joints, np.array([joints for *_, joints in expected]).reshape(-1, 25, 3))


@pytest.mark.parametrize("numbers", [".7g", ".12f", "e", ".2e", ".0f", "+.9g"])
def test_numbers_of_any_notation(numbers):
    contents = text(TWO, numbers=numbers)
    np.testing.assert_array_equal(ntu.parse(contents).joints, np.array([joints for *_, joints in slow_read(contents)]))


def test_other_white_space_is_accepted():
    contents = text(TWO)
    for other in (contents.replace(b" ", b"\t"), contents.replace(b" ", b"  "), contents.replace(b"\r\n", b" \r\n"),
                  contents + b"\r\n \r\n", contents.rstrip(), b" " + contents):
        np.testing.assert_array_equal(ntu.parse(other).joints, ntu.parse(contents).joints)


def test_ids_that_agree_as_float64_are_two_bodies():
    assert float(FIRST) == float(FIRST + 1)
    assert ntu.parse(text(TWO)).body.tolist() == [0, 1] * 6


def test_a_body_that_comes_back_is_the_same_one():
    found = ntu.parse(text(AGAIN))
    assert found.frame.tolist() == [0, 1, 4, 5, 6] and set(found.body.tolist()) == {0}


@pytest.mark.parametrize("share", np.linspace(0, 1, 40, endpoint=False))
def test_a_file_cut_anywhere_is_refused(share):
    contents = text(COMING)
    end = int(share * len(contents))
    with pytest.raises(ValueError, match=r"truncated\?|should be"):
        ntu.parse(contents[:end])


@pytest.mark.parametrize(("contents", "message"), [
    (b"", "ends after line 0, before the number of frames"),
    (b"\xff\xfe\x00", "line 1 should be the number of frames"),
    (changed(0, b"7"), "ends after line 331, before the number of bodies of frame 6; truncated"),
    (changed(0, b"5"), "goes on after its 5 frames, at line 277"),
    (changed(0, b"-1"), "line 1 should be the number of frames, found '-1'"),
    (changed(1, b"2.5"), "line 2 should be the number of bodies of frame 0, found '2.5'"),
    (changed(1, b"1"), "line 30 should be the number of bodies of frame 1, found '72057594037931692 0 1 1"),
    (changed(1, b"3"), "line 57 should be a body's id and 9 more values, found 1"),
    (changed(2, b"x 0 1 1 0 0 0 0.1 0.1 2"), "line 3 should begin with a body's id, found 'x'"),
    (changed(2, b"7 0 1 1"), "line 3 should be a body's id and 9 more values, found 4"),
    (changed(3, b"20"), "line 4 announces 20 joints, expected 25"),
    (changed(7, lambda line: line.rsplit(b" ", 1)[0]), "line 8 has 11 values, a joint has 12"),
    (changed(7, lambda line: line + b" 1"), "line 8 has 13 values, a joint has 12"),
    (changed(7, b""), "line 8 has 0 values"),
    (changed(39, b"0.1 abc" + b" 1" * 10), "line 40 should begin with x, y and z, found '0.1 abc 1'"),
    (changed(39, b"0.1 -1.#IND" + b" 1" * 10), r"line 40 should begin with x, y and z, found '0.1 -1.#IND 1'"),
    (changed(60, b"0.1 nan" + b" 1" * 10), "a coordinate of frame 1 is not finite"),
    (changed(60, b"0.1 -inf" + b" 1" * 10), "a coordinate of frame 1 is not finite"),
    (changed(60, b"0.1 1e300" + b" 1" * 10), "a coordinate of frame 1 is not finite"),
    (changed(0, b"9" * 5000), "line 1 should be the number of frames, found '9{40}'$"),
    (changed(1, b"9" * 21), "line 2 should be the number of bodies of frame 0, found '9{21}'$"),
    (changed(2, b"9" * 5000 + b" 0" * 9), "line 3 should begin with a body's id, found '9{40}'$"),
    (changed(3, b"9" * 5000), "line 4 should be 25, the number of joints, found '9{40}'$"),
    (changed(39, b"0.1 1_0" + b" 1" * 10), "line 40 should begin with x, y and z, found '0.1 1_0 1'"),
    (b"\r\n".join([b"1", b"1", b"7 0 1 1 0 0 0 0.1 0.1 2", b"25", *[b" " * 11] * 25]), "line 5 has 0 values"),
    (b"\r\n".join([*text(TWO).split(b"\r\n")[:4], *[b" " * 11] * 25, *text(TWO).split(b"\r\n")[29:]]),
     "line 5 has 0 values, a joint has 12"),
], ids=lambda value: "" if isinstance(value, bytes) else value)
def test_malformed_text_is_refused_with_the_place(contents, message):
    with pytest.raises(ValueError, match=message):
        ntu.parse(contents)


def test_values_that_are_not_used_need_not_be_numbers():
    contents = changed(7, lambda line: b" ".join([*line.split()[:3], *[b"-1.#IND"] * 8, b"2"]))
    np.testing.assert_array_equal(ntu.parse(contents).joints, ntu.parse(text(TWO)).joints)


def archive(path, places):
    """A zip with the same text in several places."""
    with zipfile.ZipFile(path, "w") as written:
        for place in places:
            written.writestr(place, text(ONE))
    return path


@pytest.mark.parametrize("prefix", ["", "./", "nturgb+d_skeletons/", "./nturgb+d_skeletons/", "a/./b/"])
def test_members_of_an_archive_lie_anywhere_but_hidden(tmp_path, prefix):
    places = [f"{prefix}{name}.skeleton" for name in NAMES]
    path = archive(tmp_path / "a.zip", [*places, f"{prefix}._{NAMES[0]}.skeleton", f"{prefix}.trash/x.skeleton",
                                        f"__MACOSX/{prefix}x.skeleton"])
    items, _ = ntu.recordings(path)
    assert [(item.name, item.entry.name) for item in items] == list(zip(NAMES, places, strict=True))
    assert [item.entry.read() for item in items] == [text(ONE)] * 2


def test_columns_of_names():
    found = ntu.columns(["S001C002P003R002A001", "S017C003P040R001A060"])
    assert {name: values.tolist() for name, values in found.items()} == {
        "views": [2, 3], "subjects": [3, 40], "labels": [0, 59]
    }
    assert len(ntu.ACTIONS) == 60 and sorted({joint for bone in ntu.BONES for joint in bone}) == list(range(25))


def test_unusable_recordings_are_302_official_names():
    assert len(ntu_prepare.unusable()) == 302 and all(ntu._is_sample(name) for name in ntu_prepare.unusable())


@needs_lists
def test_counts_of_the_official_names():
    with zipfile.ZipFile(LISTS / "skes_available_name.zip") as archive:
        every = archive.read("ntu60/all_names_56880.txt").decode().split()
        available = archive.read("ntu60/skes_available_name.txt").decode().split()
    missing = (LISTS / "samples_with_missing_skeletons.txt").read_text().split()
    assert ntu_prepare.unusable() == set(missing) and len(missing) == 302
    assert sorted(set(every) - ntu_prepare.unusable()) == sorted(available) and len(available) == 56578
    ntu_prepare.check(every, subset=False, kept=False)
    ntu_prepare.check(available, subset=False, kept=True)
    with pytest.raises(ValueError, match=r"with a usable skeleton, of protocol xsub: .*a part of them needs --subset"):
        ntu_prepare.check(available[1:], subset=False, kept=True)
    for protocol, expected in {"xsub": (40091, 16487), "xview": (37646, 18932)}.items():
        found = manifest.load_manifest("ntu").splits[protocol].masks(ntu.columns(available))
        assert (found["train"].sum(), found["test"].sum()) == expected
        assert (found["train"] ^ found["test"]).all()
    assert all(ntu._is_sample(name) for name in every)
