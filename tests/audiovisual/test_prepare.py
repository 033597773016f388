"""Preparing folders of video and sound: what is found, refused, left out, noted and read again."""

import functools
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from made_clips import mp4_with_sound, ogg, silent_avi, wav
from packed import write_folder, write_zip

from repro.audiovisual import data, decode, prepare
from repro.data import manifest

ESC = ("filename,fold,target,category,esc10\n1-7-A-0.wav,1,0,dog,True\n2-8-A-1.wav,2,1,cat,False\n"
       "2-9-A-0.wav,2,0,dog,True\n")
REAL = manifest.data_root()

# Five clips of two classes in the layout of UCF101
CLIPS = {"Biking": ["v_a", "v_c", "v_e"], "Archery": ["v_b", "v_d"]}
LISTS = {"classInd.txt": "1 Archery\n2 Biking\n"}
for number, tested in ((1, "v_a v_b"), (2, "v_c v_d"), (3, "v_e v_b")):
    placed = [(kind, clip) for kind, clips in CLIPS.items() for clip in clips]
    LISTS[f"trainlist0{number}.txt"] = "".join(
        f"{kind}/{clip}.avi {1 + (kind == 'Biking')}\n" for kind, clip in placed if clip not in tested)
    LISTS[f"testlist0{number}.txt"] = "".join(f"{kind}/{clip}.avi\n" for kind, clip in placed if clip in tested)
SILENT = {f"Any/v_{letter}.avi": silent_avi(level, 40 + level % 7)
          for letter, level in zip("abcde", (40, 60, 80, 100, 120), strict=True)}
SPLITS = {f"split{number}": {"train": {f"list{number}": ["train"]}, "test": {f"list{number}": ["test"]},
                             "expect": {"train": 3, "test": 2, "unused": 0, "classes": 2}} for number in (1, 2, 3)}


@pytest.fixture
def distribution(tmp_path, declare):
    """Writes files below a data root, declares `ucf101` as five clips of two classes; returns the root."""
    declare("ucf101", splits=SPLITS)

    def write(files=SILENT, lists=LISTS, name="ucf101", root="data"):
        write_folder(tmp_path / root / name, files | {f"lists/{file}": text.encode() for file, text in lists.items()})
        return tmp_path / root

    return write


def ready(root, name="ucf101", *, size=24, subset=False, read="prepare", **options):
    """What is prepared of a data set, or loaded, and what its source says of it."""
    clips = prepare.source(name, root, size=size, subset=subset)
    made = getattr(clips, read)(**options)
    return SimpleNamespace(
        names=made.names, classes=clips.listing.classes, labels=clips.labels(made), splits=clips.masks(made),
        digest=clips.digest(made), **made.arrays, first_frame=made.first_rows("frames"), bad=made.bad,
        first_row=made.first_rows("mel"), said="\n".join(prepare.describe(clips, made)))


loaded = functools.partial(ready, read="load")


def assert_same(first, second):
    assert first.digest == second.digest and first.names == second.names
    np.testing.assert_array_equal(first.frames, second.frames)
    np.testing.assert_array_equal(first.mel, second.mel)


def test_prepare_and_load(distribution):
    files = SILENT | {"Any/v_b.mp4": mp4_with_sound(1.8)}
    del files["Any/v_b.avi"]
    root = distribution(files)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert_same(made := ready(root), loaded(root))
    assert made.classes == ("Archery", "Biking")
    assert made.names == ["v_a", "v_b", "v_c", "v_d", "v_e"] and made.labels.tolist() == [1, 0, 1, 0, 1]
    pictures = [decode.read_pictures(contents, 24)[0] for _, contents in sorted(
        (place[:7], contents) for place, contents in files.items())]
    np.testing.assert_array_equal(made.frames, np.concatenate(pictures))
    assert np.diff(made.first_frame).tolist() == [18, 18, 18, 17, 17] and made.frames.shape == (88, 24, 32, 3)
    assert np.diff(made.first_row).tolist() == [0, 180, 0, 0, 0]
    track = decode.read_sound(files["Any/v_b.mp4"])
    # Preparing computes with one thread, this process with its own, so products of the filters with the spectrum may be
    # added in another order. Of a band at most 37 are not zero and none is negative: two sums differ by at most
    # 2 * 37 * 2**-24 = 4.4e-6 of their value, logarithms by as much; and these, below 16, are each rounded by 1e-6.
    rows = decode.log_mel(decode.aligned(track, track.start, 18))
    np.testing.assert_allclose(made.mel, rows, rtol=0, atol=7e-6)
    assert made.splits["split1"]["test"].tolist() == [True, True, False, False, False]
    assert made.splits["split3"]["train"].tolist() == [True, False, True, True, False]
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    records = Path(re.search("every clip, a line each: (.*)", made.said)[1]).read_text().splitlines()
    assert [json.loads(record)["name"] for record in records[:-1]] == made.names
    assert made.said.startswith("ucf101: 5 clips of 2 of the 2 classes; 5 with pictures (32 x 24, 88 frames), 1 with "
                                "sound (180 rows); 0.00 GB\nsplit1: 3 train / 2 test\n")
    odd = "".join(f"  {name}: no sound\n" for name in ("v_a", "v_c", "v_d", "v_e"))
    assert f"2 test\n4 clips are kept and odd:\n{odd}every clip" in made.said


def test_the_training_part_of_a_split_alone_is_trained_with(distribution):
    root = distribution()
    made, digests = ready(root), set()
    for name, masks in made.splits.items():
        clips = data.load("ucf101", root, size=21, split=name)  # a crop of pictures 24 high
        for part, mask in (("pretrain", "train"), ("train", "train"), ("test", "test")):
            assert getattr(clips, part).tolist() == masks[mask].tolist(), (name, part)
        assert clips.labels.tolist() == clips.categories.tolist() == made.labels.tolist()
        digests.add(clips.digest)
    assert len(digests) == 3
    assert data.load("ucf101", root, size=21).test.tolist() == made.splits["split1"]["test"].tolist()


def test_the_digest_is_of_the_classes_of_clips_too(distribution):
    made = ready(distribution())
    relabelled = {}
    for name, text in LISTS.items():
        relabelled[name] = text.replace("Biking/v_c.avi 2", "Archery/v_c.avi 1").replace("Biking/v_c", "Archery/v_c")
    other = ready(distribution(lists=relabelled, root="other"))
    np.testing.assert_array_equal(made.frames, other.frames)
    changed = made.labels != other.labels
    assert changed.tolist() == [False, False, True, False, False] and made.digest != other.digest


def test_archive_workers_and_folder_give_the_same_set(distribution, tmp_path, monkeypatch):
    alone = ready(distribution())
    write_zip(tmp_path / "packed" / "ucf101" / "any.zip", SILENT, "x")
    write_zip(tmp_path / "packed" / "splits" / "ucf101.zip", LISTS, "x")
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs of two"))
    assert_same(alone, ready(tmp_path / "packed", workers=2))


# Missing, there twice, bad


def test_what_is_missing_is_named_with_the_next_step(distribution, tmp_path):
    distribution(name="else")
    with pytest.raises(FileNotFoundError, match=r"lacks \S*data/ucf101; ask for ucf101 at https://www.crcv.ucf.edu"):
        ready(tmp_path / "data")
    with pytest.raises(FileNotFoundError, match=r"its list classInd\.txt is not there; data_manifests/ucf101"):
        ready(distribution(lists={}))
    with pytest.raises(FileNotFoundError, match=r"is not prepared: run `repro data prepare ucf101 --size 32` first"):
        loaded(distribution(), size=32)
    (tmp_path / "data" / "ucf101" / "Any").rename(tmp_path / "away")
    with pytest.raises(FileNotFoundError, match="there is no file of the 5 clips that the lists name"):
        ready(distribution({}))


def test_an_incomplete_distribution_is_a_subset_or_an_error(distribution):
    root = distribution({place: SILENT[place] for place in list(SILENT)[:3]} | {"Any/v_z.avi": silent_avi()})
    for refused in (ready, loaded):
        with pytest.raises(ValueError, match=r"2 clips of the lists have no file: v_d, v_e; .*--subset"):
            refused(root)
    made = ready(root, subset=True)
    assert made.said.startswith("ucf101 (subset): 3 clips") and made.names == ["v_a", "v_b", "v_c"]
    assert "2 clips of the lists have no file: v_d, v_e" in made.said
    with pytest.raises(ValueError, match="--subset"):
        loaded(root)


def test_a_clip_or_a_list_that_is_there_twice(distribution):
    root = distribution()
    distribution({"Other/v_a.mp4": mp4_with_sound(1.0)})
    assert "v_a: 10 frames, a view has 16" in ready(root).said  # MP4 is read before AVI
    root = distribution(SILENT | {"other/classInd.txt": b"1 Biking\n"}, root="second")
    with pytest.raises(ValueError, match=r"classInd.txt differs from another list of that name"):
        ready(root)


def test_bad_files_are_named_and_left_out_only_when_asked(distribution):
    root = distribution(SILENT | {"Any/v_c.avi": silent_avi(80, 40)[:-900], "Any/v_d.avi": b"<html>gone</html>"})
    for options in ({"subset": True}, {"skip_bad": True}):
        with pytest.raises(ValueError, match=r"(?s)v_d: damaged, or no AVI, MP4, Matro.*--skip-bad --subset"):
            ready(root, **options)
    made = ready(root, subset=True, skip_bad=True)
    assert made.names == ["v_a", "v_b", "v_e"]
    assert len(made.frames) == made.first_frame[-1] == 18 + 18 + 17
    assert sorted(made.bad) == ["v_c", "v_d"] and "2 files are left out:" in made.said
    assert_same(made, loaded(root, subset=True))


# Other data sets


def test_sound_alone(distribution):
    files = {"audio/1-7-A-0.wav": wav(5.0, 8_000), "ESC-10/001 - Dog/2-9-A.ogg": ogg(2.5),
             "audio/2-8-A-1.wav": wav(5.04, 44_100, 2), "ESC-10/001 - Dog/1-7-A.ogg": ogg()}
    root = distribution(files, {"esc50.csv": ESC}, name="esc50")
    with pytest.raises(ValueError, match=r"esc50, fold1, by its lists: .*--subset"):
        ready(root, "esc50", size=128)
    made = ready(root, "esc50", size=128, subset=True)
    assert made.names == ["1-7-A", "2-8-A", "2-9-A"] and made.classes == ("dog", "cat")
    assert np.diff(made.first_row).tolist() == [500, 510, 250] and made.mel.shape == (1260, 80)
    assert made.frames.shape == (0, 128, 170, 3) and made.first_frame.tolist() == [0] * 4
    assert "odd" not in made.said
    assert made.splits["fold2"]["test"].tolist() == [False, True, True]
    assert made.splits["esc10_fold2"]["test"].tolist() == [False, False, True]
    assert_same(made, loaded(root, "esc50", size=128, subset=True))


def test_sounds_of_any_length_give_views(distribution):
    lengths = dict(zip(("1-7-A-0", "2-8-A-1", "2-9-A-0"), (0.001, 0.1, 0.15), strict=True))
    files = {f"audio/{name}.wav": wav(seconds) for name, seconds in lengths.items()}
    root = distribution(files, {"esc50.csv": ESC}, "esc50")
    made = ready(root, "esc50", size=128, subset=True)
    assert np.diff(made.first_row).tolist() == [10, 10, 20] and np.isfinite(made.mel).all()
    view = data.load("esc50", root, subset=True).view("audio", torch.arange(3), torch.Generator())
    assert view.shape == (3, 80, 160) and view.isfinite().all()


def test_kinetics_and_its_part_with_sound(distribution):
    names = {"tap dancing": "abcdefghijk_000001_000011", "zumba": "-bcdefghijk_000020_000030"}
    rows = "".join(f"{label},{name[:11]},{int(name[12:18])},{int(name[19:])}\n" for label, name in names.items())
    files = {f"{label}/{name}.mp4": mp4_with_sound(1.8, codec="mpeg4") for label, name in names.items()}
    lists = {"train.csv": f"label,youtube_id,time_start,time_end\n{rows}"}
    root = distribution(files, lists, name="kinetics700")
    with pytest.raises(ValueError, match=r"kinetics700, standard, by its lists: classes 2; expected classes 700"):
        ready(root, "kinetics700")
    whole = ready(root, "kinetics700", subset=True)
    assert whole.classes == ("tap dancing", "zumba") and whole.labels.tolist() == [1, 0]
    assert whole.splits["standard"]["train"].all() and not whole.splits["standard"]["test"].any()
    part = ready(root, "kinetics_sound", subset=True)
    assert part.names == [names["tap dancing"]] and len(part.classes) == 31
    np.testing.assert_array_equal(part.frames, whole.frames[18:])


def test_audioset(distribution):
    rows = "YTIDYTIDYT1, 0.0, 1.8, \"/m/1,/m/2\"\nYTIDYTIDYT2, 0.0, 1.8, \"/m/1\"\n"
    files = {"a/YTIDYTIDYT1.mp4": mp4_with_sound(1.8), "b/YTIDYTIDYT2_0.000_1.800.mp4": mp4_with_sound(1.8)}
    made = ready(distribution(files, {"balanced_train_segments.csv": rows}, "audioset"), "audioset", size=8)
    assert made.said.startswith("audioset: 2 clips of 0 of the 0 classes") and made.labels.tolist() == [-1, -1]
    assert made.classes == () and "odd" not in made.said


@pytest.mark.skipif(not (REAL / "ucf101" / "sample.zip").exists(), reason="ucf101/sample.zip is not below REPRO_DATA")
def test_real_clips_of_ucf101(tmp_path, monkeypatch):
    """Two short clips of the archive: one with packed B-frames and sound, one without sound."""
    there, some = prepare._files, ("/v_Archery_g05_c04.avi", "/v_Biking_g05_c02.avi", ".txt")
    monkeypatch.setattr(prepare, "_files", lambda place: [path for path in there(place) if f"{path}".endswith(some)])
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    with pytest.raises(ValueError, match="13,318 clips of the lists have no file"):
        ready(REAL)
    made = ready(REAL, subset=True)
    assert made.names == ["v_Archery_g05_c04", "v_Biking_g05_c02"]
    assert [made.classes[label] for label in made.labels] == ["Archery", "Biking"]
    assert made.first_frame[1] == 21 and np.diff(made.first_row).tolist() == [210, 0]
    assert "1 clips are kept and odd:\n  v_Biking_g05_c02: no sound" in made.said and not made.bad
