"""Preparing folders of video and sound: what is found and read again; real files where they are at hand."""

import json
import math
import zipfile

import numpy as np
import pytest
import torch
from made_clips import mp4_with_sound, ogg, wav
from made_up_pairs import tiny
from ucf101_files import LISTS, SILENT, WHOLE, assert_same, counting, left_behind, loaded, ready

from repro.audiovisual import data, prepare, sound, study, video
from repro.data import archives, manifest

ESC = ("filename,fold,target,category,esc10\n1-7-A-0.wav,1,0,dog,True\n2-8-A-1.wav,2,1,cat,False\n"
       "2-9-A-0.wav,2,0,dog,True\n")
REAL = manifest.data_root()


def test_prepare_and_load(distribution, tmp_path):
    files = SILENT | {"Any/v_b.mp4": mp4_with_sound(1.8)}
    del files["Any/v_b.avi"]
    root = distribution(files)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert_same(made := ready(root), loaded(root))
    assert (made.name, made.classes) == ("ucf101", ("Archery", "Biking"))
    assert made.names.tolist() == ["v_a", "v_b", "v_c", "v_d", "v_e"] and made.labels.tolist() == [1, 0, 1, 0, 1]
    for number, clip in enumerate(made.names):
        suffix = "mp4" if clip == "v_b" else "avi"
        frames = made.frames[made.first_frame[number] : made.first_frame[number + 1]]
        np.testing.assert_array_equal(frames, video.read(files[f"Any/{clip}.{suffix}"], 24).frames)
    assert np.diff(made.first_frame).tolist() == [18, 18, 18, 17, 17] and made.frames.shape == (88, 24, 32, 3)
    assert np.diff(made.first_row).tolist() == [0, 180, 0, 0, 0] and made.rows_per_frame == 10
    track = sound.read(files["Any/v_b.mp4"])
    # Preparing computes with one thread, this process with its own, so products of the filters with the spectrum may be
    # added in another order. Of a band at most 37 are not zero and none is negative: two sums differ by at most
    # 2 * 37 * 2**-24 = 4.4e-6 of their value, logarithms by as much; and these, below 16, are each rounded by 1e-6.
    np.testing.assert_allclose(made.mel, sound.log_mel(sound.aligned(track, track.start, 18)), rtol=0, atol=7e-6)
    assert made.splits["split1"]["test"].tolist() == [True, True, False, False, False]
    assert made.splits["split3"]["train"].tolist() == [True, False, True, True, False]
    assert made.notes == {clip: ("no sound",) for clip in ("v_a", "v_c", "v_d", "v_e")}
    assert not made.reasons and made.missing == () and left_behind(tmp_path) == WHOLE
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    records = [json.loads(line) for line in made.records.read_text().splitlines()]
    assert [record["name"] for record in records[:-1]] == made.names.tolist()
    assert records[1]["rows"] == {"frames": 18, "mel": 180} and records[0]["notes"] == ["no sound"]
    said = "\n".join(prepare.describe(made))
    assert "ucf101: 5 clips of 2 of the 2 classes; " in said
    assert "5 with pictures (32 x 24, 88 frames), 1 with sound (180 rows)" in said
    assert "split1: 3 train / 2 test" in said and "4 clips are kept and odd (4 no sound):\n  v_a: no sound" in said


def test_the_training_part_of_a_split_alone_is_trained_with(distribution):
    root = distribution()
    made, digests = ready(root), set()
    for name, masks in made.splits.items():
        clips = data.load("ucf101", root, size=21, split=name)  # a crop of pictures 24 high
        for part, expected in (("pretrain", "train"), ("train", "train"), ("test", "test")):
            assert getattr(clips, part).tolist() == masks[expected].tolist(), (name, part)
        assert clips.labels.tolist() == clips.categories.tolist() == made.labels.tolist()
        digests.add(clips.digest)
    assert len(digests) == 3
    assert data.load("ucf101", root, size=21).test.tolist() == made.splits["split1"]["test"].tolist()


def test_archive_workers_and_folder_give_the_same_set(distribution, tmp_path, monkeypatch):
    alone = ready(distribution())
    (tmp_path / "packed" / "ucf101").mkdir(parents=True)
    (tmp_path / "packed" / "splits").mkdir()
    for path, members in (("ucf101/any.zip", SILENT), ("splits/ucf101.zip", LISTS)):
        with zipfile.ZipFile(tmp_path / "packed" / path, "w") as archive:
            for place, contents in members.items():
                archive.writestr(f"x/{place}", contents)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs of two"))
    assert_same(alone, ready(tmp_path / "packed", workers=2))


def test_what_is_prepared_is_not_decoded_again(distribution, monkeypatch):
    root = distribution()
    first = ready(root)
    decoded = counting(monkeypatch)
    assert_same(first, ready(root))
    assert not decoded
    prepare.prepare("ucf101", root, size=32)
    assert decoded == first.names.tolist()


def test_another_size_is_asked_for_by_name(distribution):
    root = distribution()
    ready(root)
    with pytest.raises(FileNotFoundError, match=r"is not prepared: run `repro data prepare ucf101 --size 32` first"):
        prepare.load("ucf101", root, size=32)
    for size in (7, 513, 24.0, True):
        with pytest.raises(ValueError, match=f"size={size} should be a whole number from 8 to 512"):
            prepare.load("ucf101", root, size=size)


# ------------------------------------------------------------------------------------------------ other data sets


def test_sound_alone(distribution):
    files = {"audio/1-7-A-0.wav": wav(5.0, 8_000), "ESC-10/001 - Dog/2-9-A.ogg": ogg(2.5),
             "audio/2-8-A-1.wav": wav(5.04, 44_100, 2), "ESC-10/001 - Dog/1-7-A.ogg": ogg()}
    root = distribution(files, {"esc50.csv": ESC}, name="esc50")
    with pytest.raises(ValueError, match=r"the lists give .* for fold1, data_manifests/esc50.yaml declares"):
        prepare.prepare("esc50", root)
    made = prepare.prepare("esc50", root, subset=True)
    assert made.names.tolist() == ["1-7-A", "2-8-A", "2-9-A"] and made.classes == ("dog", "cat")
    assert np.diff(made.first_row).tolist() == [500, 510, 250] and made.mel.shape == (1260, 80)
    assert made.frames.shape == (0, 128, 170, 3) and made.first_frame.tolist() == [0] * 4
    assert made.notes["2-9-A"][0].startswith("lasts 2.5") and made.notes["2-9-A"][0].endswith(" s, 5.00 s are listed")
    assert made.notes["1-7-A"][0].startswith("there twice, not read: ") and "2-8-A" not in made.notes
    assert made.splits["fold2"]["test"].tolist() == [False, True, True]
    assert made.splits["esc10_fold2"]["test"].tolist() == [False, False, True]
    assert_same(made, prepare.load("esc50", root, subset=True))


@pytest.mark.parametrize("seconds", [0.001, 0.05, 0.1, 0.15])
def test_sound_alone_of_any_length_is_a_clip(distribution, seconds):
    files = {f"audio/{name}": wav(seconds) for name in ("1-7-A-0.wav", "2-8-A-1.wav", "2-9-A-0.wav")}
    made = prepare.prepare("esc50", distribution(files, {"esc50.csv": ESC}, "esc50"), subset=True)
    frames = max(1, math.ceil(seconds * 10))
    assert np.diff(made.first_row).tolist() == [10 * frames] * 3 and np.isfinite(made.mel).all()
    clips = data._clips(made, "fold1", 16)
    assert clips.view("audio", torch.arange(3), torch.Generator()).shape == (3, 80, 160)


def test_kinetics_and_its_part_with_sound(distribution):
    names = {"tap dancing": "abcdefghijk_000001_000011", "zumba": "-bcdefghijk_000020_000030"}
    rows = "".join(f"{label},{name[:11]},{int(name[12:18])},{int(name[19:])}\n" for label, name in names.items())
    files = {f"{label}/{name}.mp4": mp4_with_sound(1.8, codec="mpeg4") for label, name in names.items()}
    lists = {"train.csv": f"label,youtube_id,time_start,time_end\n{rows}"}
    root = distribution(files, lists, name="kinetics700")
    with pytest.raises(ValueError, match=r"declares \{'classes': 700\}"):
        prepare.prepare("kinetics700", root, size=24)
    whole = prepare.prepare("kinetics700", root, size=24, subset=True)
    assert whole.classes == ("tap dancing", "zumba") and whole.labels.tolist() == [1, 0]
    assert whole.splits["standard"]["train"].all() and not whole.splits["standard"]["test"].any()
    part = prepare.prepare("kinetics_sound", root, size=24, subset=True)
    assert part.names.tolist() == [names["tap dancing"]] and not part.reasons and len(part.classes) == 31
    assert part.notes[names["tap dancing"]] == ("lasts 1.80 s, 10.00 s are listed",)
    np.testing.assert_array_equal(part.frames, whole.frames[18:])


def test_audioset(distribution):
    rows = "YTIDYTIDYT1, 0.0, 1.8, \"/m/1,/m/2\"\nYTIDYTIDYT2, 0.0, 1.8, \"/m/1\"\n"
    files = {"a/YTIDYTIDYT1.mp4": mp4_with_sound(1.8), "b/YTIDYTIDYT2_0.000_1.800.mp4": mp4_with_sound(1.8)}
    root = distribution(files, {"balanced_train_segments.csv": rows}, name="audioset")
    made = prepare.prepare("audioset", root, size=8)
    assert made.name == "audioset" and made.labels.tolist() == [-1, -1] and made.classes == () and not made.notes


# ------------------------------------------------------------------------------------------------ real files


@pytest.mark.skipif(not (REAL / "ucf101" / "sample.zip").exists(), reason="ucf101/sample.zip is not below REPRO_DATA")
def test_real_clips_of_ucf101(tmp_path, monkeypatch):
    """Two short clips of the archive: one with packed B-frames and sound, one without sound."""
    members = archives._members

    def some(path):
        for entry in members(path):
            if entry.name.endswith(("/v_Archery_g05_c04.avi", "/v_Biking_g05_c02.avi", ".txt")):
                yield entry

    monkeypatch.setattr(archives, "_members", some)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    with pytest.raises(ValueError, match="13,318 clips of the lists have no file"):
        prepare.prepare("ucf101", REAL)
    made = prepare.prepare("ucf101", REAL, size=24, subset=True)
    assert made.names.tolist() == ["v_Archery_g05_c04", "v_Biking_g05_c02"]
    assert [made.classes[label] for label in made.labels] == ["Archery", "Biking"]
    assert made.first_frame[1] == 21 and np.diff(made.first_row).tolist() == [210, 0]
    assert made.notes == {"v_Biking_g05_c02": ("no sound",)} and not made.reasons


def test_what_is_prepared_anew_takes_effect_in_a_live_process(distribution, monkeypatch):
    read, load = [], data.load
    monkeypatch.setattr(study, "load_set", lambda *names, **options: read.append(names) or load(*names, **options))
    recipe = tiny("cmacc", "ucf101", size=21, subset=True, targets="hmdb51")
    for count in (3, 5):
        root = distribution(dict(sorted(SILENT.items())[:count]))
        monkeypatch.setenv("REPRO_DATA", str(root))
        ready(root, subset=True)
        assert len(study.data_of(recipe).labels) == count
        assert study.data_of(recipe) is study.data_of(recipe)
    assert len(read) == 2
