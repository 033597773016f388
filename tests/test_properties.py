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

from repro.data import manifest
from repro.run.store import TAKEN, read_result, write_json
from repro.skeleton import DATASETS, ntu, readers

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def tried(examples):
    """The same inputs every time, kept nowhere."""
    return settings(max_examples=examples, derandomize=True, database=None, deadline=None,
                    suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("properties")


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


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 3), st.just(20), st.just(3)),
                     elements=st.floats(allow_nan=False, allow_infinity=False)))
@tried(100)
def test_any_recording_of_ucla_is_read_to_the_last_bit(frames):
    contents = json.dumps({"skeletons": frames.tolist(), "label": 1}).encode()
    found = readers.read([("a01_s02_e03_v04.json", contents)], DATASETS["ucla"])
    np.testing.assert_array_equal(found["frames"], frames)
    assert [found[name].tolist() for name in ("lengths", "subjects", "views")] == [[len(frames)], [2], [4]]


@given(st.dictionaries(st.text().filter(lambda name: name not in TAKEN), st.one_of(
    st.integers(1 - 2**63, 2**63 - 1), st.floats())))
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


VALUES = st.lists(st.integers(0, 4), max_size=3)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12),
       *[st.dictionaries(st.sampled_from(["views", "subjects"]), VALUES, min_size=1)] * 2)
@tried(300)
def test_any_parts_of_a_split_are_those_of_a_loop(samples, train, test):
    def selected(sample, wanted):
        return all(sample[("views", "subjects").index(name)] in values for name, values in wanted.items())

    columns = {name: np.array([sample[place] for sample in samples], dtype=int)
               for place, name in enumerate(("views", "subjects"))}
    expected = {part: [selected(sample, wanted) for sample in samples]
                for part, wanted in (("train", train), ("test", test))}
    split = manifest.Split(train=train, test=test, expect={})
    assert {part: mask.tolist() for part, mask in split.masks(columns).items()} == expected
