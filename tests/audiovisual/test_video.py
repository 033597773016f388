"""The frame rule, and pictures of made files."""

import contextlib
import functools
import io
import math
from fractions import Fraction

import av
import numpy as np
import pytest
from made_clips import grey, ogg, silent_avi, wav, write

from repro.audiovisual import media, video
from repro.audiovisual.decode import decode


def chosen(times, last):
    """Numbers of the pictures the rule chooses by its text: for every tenth of a second the last one until then."""
    start, end = times[0], times[-1] + last
    tenths = [Fraction(k, 10) for k in range(1300) if Fraction(k, 10) < end - start]
    return [max(number for number, time in enumerate(times) if time - start <= tenth) for tenth in tenths]


def steady(rate, count, start=Fraction(0)):
    return [start + number / Fraction(rate) for number in range(count)], 1 / Fraction(rate)


def varying(seed, count=40):
    steps = np.random.default_rng(seed).integers(1, 12, count)
    return [Fraction(int(place), 60) for place in np.cumsum(steps)], Fraction(int(steps[0]), 60)


@pytest.mark.parametrize(("times", "last"), [
    steady(25, 1), steady(25, 75), steady(25, 30, Fraction(7, 3)), steady(Fraction(30_000, 1001), 90), steady(10, 12),
    steady(5, 9), steady(1, 3), steady(Fraction(1, 2), 2), steady(240, 100), varying(0), varying(1), varying(2),
    ([Fraction(0), Fraction(0), Fraction(1, 10)], Fraction(0)), ([Fraction(0)], Fraction(0)),
])
def test_the_picture_on_the_screen_at_every_tenth_of_a_second(times, last):
    timed = [(time, last, number) for number, time in enumerate(times)]
    converted = []
    found, start, end, count = video.shown(timed, lambda number: converted.append(number) or number)
    assert found == chosen(times, last)
    assert (start, end, count) == (times[0], times[-1] + last, len(times))
    assert sorted(set(converted)) == sorted(set(found)) and len(converted) == len(set(converted))


def test_of_25_per_second_the_rule_gives_0_2_5_7():
    times, last = steady(25, 25)
    found, *_ = video.shown([(time, last, number) for number, time in enumerate(times)], int)
    assert found == [0, 2, 5, 7, 10, 12, 15, 17, 20, 22]


def test_nothing_gives_nothing():
    assert video.shown([], int) == ([], 0, 0, 0)


def test_what_lasts_too_long_is_refused_before_it_is_in_memory():
    with pytest.raises(ValueError, match=r"lasts 1,000,000 s, a clip at most 120; cut it to its segment"):
        video.shown([(Fraction(0), Fraction(1, 10), 0), (Fraction(10**6), Fraction(1, 10), 1)], int)
    with pytest.raises(ValueError, match="lasts 121 s"):
        video.shown([(Fraction(0), Fraction(121), 0)], int)


def test_time_stamps_that_were_exchanged_are_put_in_order():
    given = [1, 3, 2, 4, 6, 5, 7, 8, 12, 9, 10, 11]
    found = list(video.in_order([(time, 1, f"picture {n}") for n, time in enumerate(given)]))
    assert found == [(time, 1, f"picture {n}") for n, time in enumerate(sorted(given))]
    assert list(video.in_order([])) == []


def levels(pictures):
    """Brightness of each picture, of which every pixel is nearly equal."""
    assert (np.ptp(pictures.frames.reshape(len(pictures.frames), -1).astype(int), axis=1) <= 6).all()
    return pictures.frames.reshape(len(pictures.frames), -1).mean(1)


@pytest.mark.parametrize(("rate", "kind", "codec"), [
    (Fraction(25), "avi", "mpeg4"), (Fraction(30_000, 1001), "mp4", "libx264"), (Fraction(10), "mp4", "mpeg4"),
    (Fraction(5), "matroska", "ffv1"),
])
def test_made_files_of_several_rates(rate, kind, codec):
    times, last = steady(rate, 16)
    contents = write(kind, [grey(30 + 12 * n) for n in range(16)], times, codec=codec, rate=rate,
                     base=1 / rate if kind == "avi" else Fraction(1, 30_000))
    found = video.read(contents, 24)
    np.testing.assert_allclose(levels(found), [30 + 12 * n for n in chosen(times, last)], atol=4)
    assert found.count == 16 and found.frames.shape[1:] == (24, 32, 3) and found.frames.dtype == np.uint8


def test_a_made_file_of_varying_rate():
    times, _ = varying(3, 16)
    found = video.read(write("mp4", [grey(30 + 12 * n) for n in range(16)], times, base=Fraction(1, 60)), 24)
    np.testing.assert_allclose(levels(found), [30 + 12 * n for n in chosen(times, found.end - times[-1])], atol=4)
    assert found.start == times[0]


def test_two_readings_are_equal():
    first, second = (video.read(silent_avi(), 16) for _ in range(2))
    np.testing.assert_array_equal(first.frames, second.frames)


@pytest.mark.parametrize(("height", "width", "left", "right"), [
    (24, 32, 255, 255),       # 4:3, all of it
    (24, 96, 0, 0),           # wide: its white edges, a quarter at each side, are cut
    (48, 32, 255, 255),       # tall: cut above and below
])
def test_pictures_cover_the_frame_and_keep_their_middle(height, width, left, right):
    picture = np.zeros((height, width, 3), dtype=np.uint8)
    picture[:, : width // 4] = picture[:, -(width // 4) :] = 255
    picture[:, :, 2] = picture[:, :, 1] = picture[:, :, 0]
    found = video.read(write("matroska", [picture], [0], codec="ffv1"), 12).frames
    assert found.shape[1:] == (12, 16, 3)
    np.testing.assert_allclose(found[:, :, 0, 0], left, atol=2)
    np.testing.assert_allclose(found[:, :, -1, 0], right, atol=2)
    np.testing.assert_allclose(found[:, :, 7:9], 0, atol=2)


def test_colours_are_red_green_blue():
    picture = np.zeros((24, 32, 3), dtype=np.uint8)
    picture[..., 0], picture[..., 1] = 200, 80
    found = video.read(write("matroska", [picture], [0], codec="ffv1"), 24).frames
    np.testing.assert_array_equal(found, np.broadcast_to(picture, found.shape))


def test_a_file_of_sound_has_no_pictures(tmp_path):
    with pytest.raises(ValueError, match="holds no pictures"):
        video.read(write("wav", sound=np.zeros((1, 800), np.float32)), 24)


def test_width_and_due():
    assert [video.width(size) for size in (8, 24, 112, 128, 256)] == [10, 32, 149, 170, 341]
    for tenths in (-1, 0, 1, 2.5, 30):
        assert video.due(Fraction(tenths) / 10) == max(0, math.ceil(tenths))


# ------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize(("contents", "message"), [
    (b"", "is empty"), (bytes(100), "is empty"), (b"<html>not found</html>", "is no AVI, MP4, Matroska, WAV or Ogg"),
    (b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nother.ts\n", "is no AVI"),
    (b"RIFF\x10\0\0\0AVI ", "damaged avi"), (b"\0\0\0\x18ftypisom" + bytes(20), "mp4|no pictures"),
])
def test_files_of_another_kind_are_refused(contents, message):
    with pytest.raises(ValueError, match=message):
        video.read(contents, 24)


def test_what_a_file_announces():
    assert media.announced(silent_avi()) == (0.32, 8)
    assert media.announced(write("wav", sound=np.zeros((1, 800), np.float32))) == (0.05, 0)


def test_pictures_of_absurd_size_are_refused(monkeypatch):
    for most, refused in ((32 * 24, False), (32 * 24 - 1, True)):
        monkeypatch.setattr(video, "LARGEST", most)
        with pytest.raises(ValueError, match="its pictures are 32 x 24") if refused else contextlib.nullcontext():
            video.read(silent_avi(), 8)


@functools.cache
def noisy():
    """An AVI whose pictures take many bytes."""
    pictures = np.random.default_rng(0).integers(0, 256, (40, 48, 64, 3), dtype=np.uint8)
    return write("avi", pictures, [Fraction(n, 25) for n in range(40)], base=Fraction(1, 25))


def decoded(contents):
    return decode(contents, needs="video", size=24, listed=math.nan)


def test_damage_within_the_pictures_is_found():
    whole = noisy()
    assert len(decoded(whole).frames) == 16
    flipped = bytearray(whole)
    for place in np.random.default_rng(0).integers(10_000, len(whole) - 2000, 30):
        flipped[place] ^= 255
    with pytest.raises(ValueError, match="damaged video at"):
        decoded(bytes(flipped))
    lost = whole[: len(whole) // 4] + bytes(len(whole) // 2) + whole[len(whole) * 3 // 4 :]
    with pytest.raises(ValueError, match=r"damaged: \d\d of 40 pictures can be decoded|damaged video at"):
        decoded(lost)


def cut(contents, share):
    return contents[: int(len(contents) * share)]


def faststart(tmp_path):
    """An MP4 that begins with its list of pictures, so that it opens when it is cut."""
    pictures = np.random.default_rng(0).integers(0, 256, (50, 48, 64, 3), dtype=np.uint8)
    return write("mp4", pictures, [Fraction(n, 25) for n in range(50)], base=Fraction(1, 25), path=tmp_path / "a.mp4",
                 options={"movflags": "faststart"})


@pytest.mark.parametrize("share", [0.97, 0.5, 0.2, 0.01])
def test_truncated_files_are_refused(share, tmp_path):
    times = [Fraction(n, 25) for n in range(50)]
    pictures = np.random.default_rng(0).integers(0, 256, (50, 24, 32, 3), dtype=np.uint8)
    files = [noisy(), faststart(tmp_path), write("mp4", pictures, times, codec="libx264")]
    files += [write("matroska", pictures, times)] if share < 0.7 else []  # of half a second less nobody can tell
    for contents in files:
        with pytest.raises(ValueError):
            decoded(cut(contents, share))


@pytest.mark.parametrize("share", [0.97, 0.5, 0.2])
def test_truncated_files_of_sound_are_refused(share):
    for contents in (wav(), ogg(2.5)):
        with pytest.raises(ValueError, match="truncated"):
            media.refuse_cut(cut(contents, share))
        media.refuse_cut(contents)


def test_of_an_unknown_size_nothing_is_said():
    cut = wav()[:-100]
    with pytest.raises(ValueError, match="truncated"):
        media.refuse_cut(cut)
    for size in (b"\0\0\0\0", b"\xff\xff\xff\xff"):
        assert media.refuse_cut(cut[:4] + size + cut[8:]) is None


def test_titles_in_another_encoding_are_no_obstacle():
    """FFmpeg hands them over as they are, and many programs write Latin-1."""
    titled = matroska_with_title("caf\u00e9 noir")
    damaged = titled.replace("caf\u00e9".encode(), b"caf\xe9\xe9")
    assert damaged != titled
    assert len(decoded(damaged).frames) == len(decoded(titled).frames) == 2


def matroska_with_title(title):
    target = io.BytesIO()
    with av.open(target, "w", format="matroska", options={}) as container:
        container.metadata["title"] = title
        stream = container.add_stream("ffv1", rate=10)
        stream.width, stream.height, stream.pix_fmt = 32, 24, "bgr0"
        for _ in range(2):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(grey(50), format="rgb24")))
        container.mux(stream.encode(None))
    return target.getvalue()
