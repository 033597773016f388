"""What holds of any input, tried on inputs that hypothesis makes up: it reads to what it states, or is refused by name.

`tests/campaigns/fuzz.py` damages whole files instead.
"""

import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from ntu_files import text as ntu_text

from repro.audiovisual.recipe import AudioVisualRecipe
from repro.data import manifest
from repro.image.recipe import ImageRecipe
from repro.recipe import LARGEST, Recipe, parse_number, parse_numbers
from repro.run.store import parse_json, read_result, write_json
from repro.skeleton import data, ntu
from repro.skeleton.recipe import SkeletonRecipe

ANY = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers(), max_size=2))
NUMERALS = st.text("0123456789 ,.-+e_x٣²", max_size=12)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
NAMES = st.text("abcXYZ019_-é ", min_size=1, max_size=8).filter(lambda name: name.strip() == name)
VALUE = st.recursive(  # of JSON, with numbers that we write
    st.one_of(st.none(), st.booleans(), st.integers(1 - 2**63, 2**63 - 1), st.text(),
              st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)), max_leaves=8)
WRONG_NUMBER = st.one_of(st.sampled_from([math.nan, math.inf, -math.inf]), st.integers(min_value=2**63),
                         st.integers(max_value=-(2**63)))
LINE = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cs")), max_size=12)  # of a text


def tried(examples):
    """The same inputs every time, kept nowhere."""
    return settings(max_examples=examples, derandomize=True, database=None, deadline=None,
                    suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("properties")


@given(st.one_of(ANY, NUMERALS), st.integers(0, 3))
@tried(400)
def test_a_number_is_the_one_that_is_written_or_refused_by_name(value, least):
    try:
        found = parse_number("layers", value, least=least)
    except ValueError as error:
        assert str(error).startswith(f"layers={value!r} should be")
        text = str(value).strip()
        assert type(value) is bool or not text.isdecimal() or not least <= int(text) <= LARGEST
    else:
        assert type(found) is int and found == int(str(value)) and least <= found <= LARGEST


@given(st.one_of(ANY, NUMERALS, st.lists(st.integers(0, 9), min_size=1).map(lambda found: ",".join(map(str, found)))))
@tried(400)
def test_a_list_of_numbers_is_the_one_that_is_written_or_refused_by_name(value):
    try:
        found = parse_numbers("seeds", value)
    except ValueError as error:
        assert str(error).startswith(f"seeds={value!r} ")
    else:
        assert found == [int(part) for part in str(value).split(",")] and len(set(found)) == len(found)


@pytest.mark.parametrize("kind", [SkeletonRecipe, ImageRecipe, AudioVisualRecipe], ids=lambda kind: kind.__name__)
@given(st.data())
@tried(300)
def test_a_field_of_a_recipe_has_the_value_given_or_is_refused_by_name(kind: type[Recipe], data):
    name = data.draw(st.sampled_from([*kind().to_dict(), "epoch"]))
    value = data.draw(ANY)
    try:
        found = kind.from_dict(kind().to_dict() | {name: value}).to_dict()
    except (ValueError, TypeError) as error:
        assert name in str(error)
    else:
        assert found == kind().to_dict() | {name: value} and isinstance(found[name], bool) == isinstance(value, bool)
        assert not isinstance(value, float) or math.isfinite(value)


@given(st.lists(st.lists(st.tuples(st.integers(0, 2**63), arrays.arrays(np.float32, (25, 3), elements=FLOATS)),
                         max_size=3), max_size=4), st.sampled_from(["\n", "\r\n"]), st.sampled_from([".9g", ".17e"]))
@tried(100)
def test_any_recording_of_ntu_is_read_to_the_last_bit(frames, end, numbers):
    found = ntu.parse(ntu_text(frames, end, numbers))
    bodies = [(number, joints) for frame in frames for number, joints in frame]
    order = list(dict.fromkeys(number for number, _ in bodies))
    assert found.frames == len(frames) and found.frame.tolist() == [t for t, frame in enumerate(frames) for _ in frame]
    assert found.body.tolist() == [order.index(number) for number, _ in bodies]
    assert found.joints.tobytes() == b"".join((joints + np.float32(0)).tobytes() for _, joints in bodies) or (
        found.joints == np.array([joints for _, joints in bodies])).all()  # -0 is 0


@given(st.one_of(st.binary(max_size=200), st.text("0123456789 .-e\n", max_size=200).map(str.encode)))
@tried(400)
def test_any_bytes_are_no_recording_of_ntu_with_a_reason(contents):
    try:
        found = ntu.parse(contents)
    except ValueError as error:
        assert "line " in str(error) or "frame" in str(error)
    else:
        assert np.isfinite(found.joints).all() and found.frames == int(contents.split()[0])


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 3), st.just(20), st.just(3)),
                     elements=st.floats(allow_nan=False, allow_infinity=False)))
@tried(100)
def test_any_recording_of_ucla_is_read_to_the_last_bit(frames):
    contents = json.dumps({"skeletons": frames.tolist(), "label": 1}).encode()
    found = data.parse_ucla([("a01_s02_e03_v04.json", contents)])
    np.testing.assert_array_equal(found["frames"], frames)
    assert [found[name].tolist() for name in ("lengths", "subjects", "views")] == [[len(frames)], [2], [4]]


@given(st.dictionaries(st.text(), st.one_of(st.integers(1 - 2**63, 2**63 - 1), st.floats(), st.text())))
@tried(200)
def test_any_result_is_read_back_unless_a_number_is_not_finite(folder, result):
    result["cost"] = {}
    finite = all(math.isfinite(value) for value in result.values() if isinstance(value, float))
    if finite:
        write_json(folder / "result.json", result)
        assert read_result(folder / "result.json") == result
        return
    with pytest.raises(ValueError):
        write_json(folder / "result.json", result)
    (folder / "result.json").write_text(json.dumps(result))
    with pytest.raises(ValueError, match=r"result\.json cannot be read .*is not a finite number"):
        read_result(folder / "result.json")


@given(st.dictionaries(st.text(), VALUE, max_size=4))
@tried(300)
def test_any_object_of_finite_numbers_is_read_as_it_was_written(value):
    assert json.dumps(parse_json(json.dumps(value))) == json.dumps(value)  # equality takes True for 1, -0.0 for 0


@given(st.dictionaries(st.text(), VALUE, max_size=4), st.text(), WRONG_NUMBER, st.integers(0, 3))
@tried(300)
def test_an_object_is_refused_for_one_number_wherever_it_is(value, name, wrong, depth):
    for _ in range(depth):
        wrong = [None, wrong]
    with pytest.raises(ValueError, match=r"is not a finite number"):
        parse_json(json.dumps(value | {name: wrong}))


@given(st.text(max_size=60))
@tried(300)
def test_any_text_is_an_object_of_finite_numbers_or_refused(text):
    try:
        found = parse_json(text)
    except ValueError:
        return
    assert found == json.loads(text)


VALUES = st.lists(st.integers(0, 4), max_size=3)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12),
       *[st.dictionaries(st.sampled_from(["views", "subjects"]), VALUES, min_size=1)] * 2)
@tried(300)
def test_any_parts_of_a_split_are_those_of_a_loop_and_never_overlap(samples, train, test):
    def selected(sample, wanted):
        return all(sample[("views", "subjects").index(name)] in values for name, values in wanted.items())

    columns = {name: np.array([sample[place] for sample in samples], dtype=int)
               for place, name in enumerate(("views", "subjects"))}
    expected = {part: [selected(sample, wanted) for sample in samples]
                for part, wanted in (("train", train), ("test", test))}
    both = [all(each) for each in zip(*expected.values(), strict=True)]
    split = manifest.Split(train=train, test=test, expect={})
    if any(both):
        with pytest.raises(ValueError, match=f"^{sum(both)} samples are for train and for test"):
            split.masks(columns)
        return
    assert {part: mask.tolist() for part, mask in split.masks(columns).items()} == expected
