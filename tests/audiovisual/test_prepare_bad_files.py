"""Preparing folders in which files are missing, there twice, bad or odd: what is refused, left out or noted."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from made_clips import grey, mp4_with_sound, silent_avi, tone, write
from ucf101_files import LISTS, SILENT, WHOLE, assert_same, left_behind, loaded, ready

from repro.audiovisual import data, prepare

BAD = {"Any/v_a.avi": b"", "Any/v_c.avi": silent_avi(80, 40)[:-900], "Any/v_d.avi": b"<html>gone</html>"}


def test_without_the_data_set_page_and_place_are_named(distribution, tmp_path):
    distribution(name="else")
    with pytest.raises(FileNotFoundError, match=r"lacks \S*data/ucf101; ask for ucf101 at https://www.crcv.ucf.edu"):
        ready(tmp_path / "data")
    with pytest.raises(ValueError, match=r"dataset='ucf11' is not one of: kinetics700, .*did you mean 'ucf101'"):
        prepare.load("ucf11", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"its list classInd\.txt is not there; data_manifests/ucf101"):
        ready(distribution(lists={}))
    (tmp_path / "data" / "ucf101" / "Any").rename(tmp_path / "away")
    with pytest.raises(FileNotFoundError, match="there is no file of the 5 clips that the lists name"):
        ready(distribution({}))


def test_an_incomplete_distribution_is_a_subset_or_an_error(distribution):
    root = distribution({place: SILENT[place] for place in list(SILENT)[:3]} | {"Any/v_z.avi": silent_avi()})
    for refused in (ready, loaded):
        with pytest.raises(ValueError, match=r"2 clips of the lists have no file: v_d, v_e; .*--subset"):
            refused(root)
    made = ready(root, subset=True)
    assert made.name == "ucf101 (subset)" and made.names.tolist() == ["v_a", "v_b", "v_c"]
    assert made.missing == ("v_d", "v_e") and list(made.reasons.values()) == ["no list names it"]
    assert next(iter(made.reasons)).endswith("Any/v_z.avi")
    said = "\n".join(prepare.describe(made))
    assert "1 files are left out (1 no list names it)" in said and "2 clips of the lists have no file: v_d, v_e" in said
    with pytest.raises(ValueError, match="--subset"):
        loaded(root)


def test_lists_that_are_not_the_official_ones_make_a_subset(distribution):
    lists = {name: "".join(line for line in text.splitlines(keepends=True) if "v_e" not in line)
             for name, text in LISTS.items()}
    root = distribution(lists=lists)
    with pytest.raises(ValueError, match=r"the lists give .*'train': 2.* for split1, data_manifests/ucf101.yaml decl"):
        ready(root)
    made = ready(root, subset=True)
    assert len(made.names) == 4 and list(made.reasons.values()) == ["no list names it"]


def test_a_clip_or_a_list_that_is_there_twice(distribution):
    root = distribution()
    distribution({"Other/v_a.mp4": mp4_with_sound(1.0)})
    made = ready(root)
    assert made.notes["v_a"] == ("10 frames, a view has 16", f"there twice, not read: {root}/ucf101/Any/v_a.avi")
    distribution({"Other/v_b.avi": silent_avi()})
    with pytest.raises(ValueError, match=r"v_b is there twice, as .*Any/v_b.avi and .*Other/v_b.avi; move one away"):
        ready(root)
    distribution({"other/classInd.txt": b"1 Biking\n"})
    with pytest.raises(ValueError, match=r"classInd.txt differs from another list of that name"):
        ready(root)


def test_bad_files_are_named_and_counted_and_left_out_only_when_asked(distribution, tmp_path):
    root = distribution(SILENT | BAD)
    for options in ({}, {"subset": True}, {"skip_bad": True}):
        with pytest.raises(ValueError) as raised:
            ready(root, **options)
        assert "--skip-bad --subset" in str(raised.value) and "v_d: is no AVI, MP4, Matro" in str(raised.value)
    made = ready(root, subset=True, skip_bad=True)
    assert made.names.tolist() == ["v_b", "v_e"] and len(made.frames) == made.first_frame[-1] == 18 + 17
    assert sorted(made.reasons) == ["v_a", "v_c", "v_d"] and made.reasons["v_a"] == "is empty"
    assert made.reasons["v_c"].startswith("truncated: ") and made.reasons["v_c"].endswith(" bytes")
    said = "\n".join(prepare.describe(made))
    assert "3 files are left out (1 is empty, 1 truncated, 1 is no AVI, MP4, Matroska, WAV or Ogg file)" in said
    assert_same(made, loaded(root, subset=True))
    with pytest.raises(ValueError, match="3 files cannot be used"):
        ready(root, subset=True)
    distribution({"Any/v_d.avi": SILENT["Any/v_d.avi"]})  # and so on until all are whole
    assert ready(root, subset=True, skip_bad=True).names.tolist() == ["v_b", "v_d", "v_e"]
    distribution()
    assert ready(root).names.tolist() == ["v_a", "v_b", "v_c", "v_d", "v_e"] and left_behind(tmp_path) == WHOLE


def test_sound_that_is_not_finite_is_a_bad_file_with_its_time(distribution):
    samples = tone(1.8)
    samples[0, 8000] = np.nan
    pictures = [grey(60) for _ in range(45)]
    loud = write("matroska", pictures, [Fraction(number, 25) for number in range(45)], samples, sound_codec="pcm_f32le",
                 codec="ffv1")
    files = {name: contents for name, contents in SILENT.items() if name != "Any/v_b.avi"} | {"Any/v_b.mkv": loud}
    with pytest.raises(ValueError, match=r"v_b: a sample of its sound, at 0\.50 s, is nan; full scale is 1"):
        ready(distribution(files))


def test_a_clip_of_one_picture_is_a_clip_of_one_frame(distribution):
    files = {name: contents for name, contents in SILENT.items() if name != "Any/v_b.avi"}
    made = ready(distribution(files | {"Any/v_b.mp4": mp4_with_sound(0.04)}))
    assert np.diff(made.first_frame).tolist() == [18, 1, 18, 17, 17]
    assert made.notes["v_b"] == ("1 frames, a view has 16",) and np.isfinite(made.mel).all()
    clips = data._clips(made, "split1", 16)
    view = clips.view("video", torch.tensor([1, 1]), torch.Generator())
    assert view.shape == (2, 3, 16, 24, 32) and (view == view[:, :, :1]).all()
    assert clips.view("audio", torch.tensor([1]), torch.Generator()).isfinite().all()


def test_nothing_usable_is_an_error(distribution):
    root = distribution({"Any/v_a.avi": b"nothing at all", "Any/v_c.avi": b""})
    with pytest.raises(ValueError, match=r"2 files cannot be used (?s:.)*none of its files is usable"):
        ready(root, subset=True, skip_bad=True)


def test_odd_lengths_are_noted(distribution):
    long_sound, long_pictures = mp4_with_sound(2.6, pictures=45), mp4_with_sound(0.9, pictures=45)
    root = distribution({"v_a.avi": silent_avi(20, 9), "v_b.mp4": long_sound, "v_c.mp4": long_pictures})
    notes = ready(root, subset=True).notes
    assert notes["v_a"] == ("no sound", "4 frames, a view has 16")
    assert notes["v_b"][0].startswith("sound from 0.00 to 2.6") and notes["v_b"][0].endswith("pictures to 1.80 s")
    assert notes["v_c"][0].startswith("sound from 0.00 to 0.9")
