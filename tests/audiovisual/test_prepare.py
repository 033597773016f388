"""Preparing folders of video and sound: what is found, what is refused, kills; real files where they are at hand."""

import errno
import io
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from made_clips import grey, mp4_with_sound, ogg, silent_avi, tone, wav, write

from repro import manifest
from repro.audiovisual import arrays, data, index, prepare, sound, sources, video

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
WHOLE = ["24.frames", "24.jsonl", "24.mel", "index.jsonl"]
ESC = ("filename,fold,target,category,esc10\n1-7-A-0.wav,1,0,dog,True\n2-8-A-1.wav,2,1,cat,False\n"
       "2-9-A-0.wav,2,0,dog,True\n")


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Writes files below a data root, declares `ucf101` as five clips of two classes; returns the root."""
    (tmp_path / "data_manifests").mkdir()
    official = manifest.project_root() / "data_manifests"
    for path in (*official.glob("*.yaml"), official / "kinetics_sound_classes.txt"):
        shutil.copy(path, tmp_path / "data_manifests")
    declared = yaml.safe_load((official / "ucf101.yaml").read_text()) | {"splits": SPLITS}
    (tmp_path / "data_manifests" / "ucf101.yaml").write_text(yaml.safe_dump(declared))
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(arrays, "CHUNK", 2)
    monkeypatch.setattr(index, "CHUNK", 2)

    def write(files=SILENT, lists=LISTS, name="ucf101", root="data"):
        for place, contents in (files | {f"lists/{file}": text for file, text in lists.items()}).items():
            path = tmp_path / root / name / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return tmp_path / root

    return write


def folder(tmp_path):
    found, = (path for path in (tmp_path / "runs" / "prepared").iterdir() if path.is_dir())
    return found


def left_behind(tmp_path):
    return sorted(path.name for path in folder(tmp_path).iterdir())


def ready(root, **options):
    return prepare.prepare("ucf101", root, size=24, **options)


def loaded(root, **options):
    return prepare.load("ucf101", root, size=24, **options)


def assert_same(first, second):
    assert first.digest == second.digest and first.names.tolist() == second.names.tolist()
    np.testing.assert_array_equal(first.frames, second.frames)
    np.testing.assert_array_equal(first.mel, second.mel)


def counting(monkeypatch):
    """Names of the clips decoded from here on."""
    decoded = []

    def counted(base, item, about, original=arrays._clip):
        decoded.append(item.name)
        return original(base, item, about)

    monkeypatch.setattr(arrays, "_clip", counted)
    return decoded


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
    np.testing.assert_array_equal(made.mel, sound.log_mel(sound.aligned(track, track.start, 18)))
    assert made.splits["split1"]["test"].tolist() == [True, True, False, False, False]
    assert made.splits["split3"]["train"].tolist() == [True, False, True, True, False]
    assert made.notes == {clip: ("no sound",) for clip in ("v_a", "v_c", "v_d", "v_e")}
    assert not made.reasons and made.missing == () and left_behind(tmp_path) == WHOLE
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    records = [json.loads(line) for line in (folder(tmp_path) / "index.jsonl").read_text().splitlines()]
    assert [record["name"] for record in records] == made.names.tolist()
    assert records[1]["video"] == {"codec": "h264", "width": 32, "height": 24, "frames": 45, "rate": "25"}
    assert records[1]["audio"] == {"codec": "aac", "rate": 16_000, "channels": 1} and records[0]["audio"] is None
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


def test_the_forecast_is_said_once(distribution, capsys):
    ready(distribution())
    said = capsys.readouterr().err
    assert said.count("hours of clips take about") == 1 and "GB are free" in said


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


def test_what_another_format_has_prepared_is_not_read(distribution, monkeypatch):
    root = distribution()
    ready(root)
    monkeypatch.setattr(prepare, "FORMAT", prepare.FORMAT + 1)
    with pytest.raises(FileNotFoundError, match="is not prepared: run `repro data prepare ucf101"):
        loaded(root)


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


BAD = {"Any/v_a.avi": b"", "Any/v_c.avi": silent_avi(80, 40)[:-900], "Any/v_d.avi": b"<html>gone</html>"}


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
    with pytest.raises(ValueError, match="2 files cannot be used"):
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


@pytest.mark.parametrize("seconds", [0.001, 0.05, 0.1, 0.15])
def test_sound_alone_of_any_length_is_a_clip(distribution, seconds):
    files = {f"audio/{name}": wav(seconds) for name in ("1-7-A-0.wav", "2-8-A-1.wav", "2-9-A-0.wav")}
    made = prepare.prepare("esc50", distribution(files, {"esc50.csv": ESC}, "esc50"), subset=True)
    frames = max(1, math.ceil(seconds * 10))
    assert np.diff(made.first_row).tolist() == [10 * frames] * 3 and np.isfinite(made.mel).all()
    clips = data._clips(made, "fold1", 16)
    assert clips.view("audio", torch.arange(3), torch.Generator()).shape == (3, 80, 160)


def test_files_mended_without_changing_their_size_are_read_again(distribution, monkeypatch):
    whole = SILENT["Any/v_c.avi"]
    place = whole.index(b"movi") + 300
    root = distribution(SILENT | {"Any/v_c.avi": whole[:place] + bytes(len(whole) - place)})
    with pytest.raises(ValueError, match=r"1 files cannot be used.*\n  v_c: damaged"):
        ready(root)
    part = ready(root, subset=True, skip_bad=True)
    decoded = counting(monkeypatch)
    assert_same(part, ready(root, subset=True, skip_bad=True))
    with pytest.raises(ValueError, match="1 files cannot be used"):
        ready(root, subset=True)
    assert decoded == ["v_c"] * 2
    distribution()
    assert len(ready(root).names) == 5 and decoded == ["v_c"] * 3 + ["v_c", "v_d", "v_e"]


def test_nothing_usable_is_an_error(distribution):
    root = distribution({"Any/v_a.avi": b"nothing at all", "Any/v_c.avi": b""})
    with pytest.raises(ValueError, match="none of its files can be used"):
        ready(root, subset=True, skip_bad=True)


def test_any_other_error_has_a_note_of_the_file(distribution, monkeypatch):
    root = distribution()
    monkeypatch.setattr(arrays, "decode", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        ready(root)
    assert raised.value.__notes__ == [f"in {root / 'ucf101' / 'Any' / 'v_a.avi'}"]


def test_odd_lengths_are_noted(distribution):
    long_sound, long_pictures = mp4_with_sound(2.6, pictures=45), mp4_with_sound(0.9, pictures=45)
    root = distribution({"v_a.avi": silent_avi(20, 9), "v_b.mp4": long_sound, "v_c.mp4": long_pictures})
    notes = ready(root, subset=True).notes
    assert notes["v_a"] == ("no sound", "4 frames, a view has 16")
    assert notes["v_b"][0].startswith("sound from 0.00 to 2.6") and notes["v_b"][0].endswith("pictures to 1.80 s")
    assert notes["v_c"][0].startswith("sound from 0.00 to 0.9")


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


# ------------------------------------------------------------------------------------------------ kills and damage


SCRIPT = """
import os, shutil, signal, sys, time
from pathlib import Path
from repro import manifest
from repro.audiovisual import arrays, index, prepare

folder, workers, last = sys.argv[1:]

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def killed_before(function, place):
    def call(*arguments, **options):
        if Path(arguments[place]).name == last:
            kill()
        return function(*arguments, **options)
    return call

def slowly(base, item, about, decode=arrays._clip):
    time.sleep(0.1)
    with open(Path(folder) / "read.txt", "a") as file:
        print(item.name, file=file)
    return decode(base, item, about)

def half(source, target, size):
    target.write(source.read()[:1000])
    target.flush()
    kill()

def described(items, needs, describe=index.describe_all):
    if items[0].name == last:
        kill()
    return describe(items, needs)

if __name__ != "__main__":  # in a worker
    arrays._clip = kill
else:
    manifest.project_root = lambda: Path(folder)
    arrays.CHUNK = index.CHUNK = 2
    index.describe_all = described
    if not last:
        arrays._clip = slowly
    if last == "append":
        arrays.shutil.copyfileobj = half
    os.replace = killed_before(os.replace, 1)
    shutil.rmtree = killed_before(shutil.rmtree, 0)
    print(prepare.prepare("ucf101", Path(folder) / "data", size=24, workers=int(workers)).digest)
"""


def start(tmp_path, workers=1, last=""):
    """A process that prepares, and is killed at `last`."""
    path = tmp_path / "prepare.py"
    if not path.exists():  # another process may be reading it
        path.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen([sys.executable, path, str(tmp_path), str(workers), last], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


@pytest.fixture
def undisturbed(distribution, tmp_path, monkeypatch):
    """What a preparation that nothing disturbs gives."""
    with monkeypatch.context() as patched:
        patched.setenv("REPRO_RUNS", str(tmp_path / "undisturbed"))
        return ready(distribution())


def assert_goes_on(root, tmp_path, monkeypatch, undisturbed, undecoded):
    decoded = counting(monkeypatch)
    assert_same(ready(root), undisturbed)
    assert decoded == undecoded and left_behind(tmp_path) == WHOLE


@pytest.mark.parametrize(("last", "undecoded"), [
    ("v_c", ["v_a", "v_b", "v_c", "v_d", "v_e"]), ("000001.json", ["v_c", "v_d", "v_e"]),
    ("append", ["v_c", "v_d", "v_e"]), ("24.jsonl", ["v_a", "v_b", "v_c", "v_d", "v_e"]), ("24.shards", []),
])
def test_a_killed_preparation_goes_on_where_it_was(distribution, tmp_path, monkeypatch, undisturbed, last, undecoded):
    root = distribution()
    process = start(tmp_path, last=last)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL and left_behind(tmp_path) != WHOLE
    if last == "v_c":
        described = []
        original = index.describe_all
        monkeypatch.setattr(index, "describe_all", lambda items, needs: described.extend(
            item.name for item in items) or original(items, needs))
        assert_goes_on(root, tmp_path, monkeypatch, undisturbed, undecoded)
        assert described == ["v_c", "v_d", "v_e"]
    else:
        assert_goes_on(root, tmp_path, monkeypatch, undisturbed, undecoded)


def test_a_killed_worker_is_an_error_that_says_what_to_do(distribution, tmp_path, undisturbed):
    root = distribution()
    process = start(tmp_path, workers=2, last="nothing")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1 and "ChildProcessError: one of the processes that read was killed" in errors
    assert_same(ready(root), undisturbed)


def test_ten_at_once_decode_once(distribution, tmp_path):
    distribution()
    processes = [start(tmp_path) for _ in range(10)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert all(process.returncode == 0 for process in processes), outputs
    assert len({said for said, _ in outputs}) == 1
    assert (tmp_path / "read.txt").read_text().split() == ["v_a", "v_b", "v_c", "v_d", "v_e"]


def interrupted(root, monkeypatch, before):
    """Prepare until a shard is about to be made."""
    def make(base, clips, shard, original=arrays.make_shard):
        if shard.name == before:
            raise KeyboardInterrupt
        return original(base, clips, shard)

    with monkeypatch.context() as patched:
        patched.setattr(arrays, "make_shard", make)
        with pytest.raises(KeyboardInterrupt):
            ready(root)


@pytest.mark.parametrize(("file", "damage", "undecoded"), [
    ("24.frames", lambda contents: contents[:-1], "v_c v_d v_e"),
    ("24.frames", lambda contents: b"", "v_a v_b v_c v_d v_e"),
    ("24.frames", lambda contents: contents + b"more", "v_e"),
    ("24.jsonl", lambda contents: contents[:-9], "v_c v_d v_e"),
    ("24.jsonl", lambda contents: contents.replace(b"v_a", b"v_x"), "v_a v_b v_c v_d v_e"),
    ("24.jsonl", lambda contents: b"\0" * 50, "v_a v_b v_c v_d v_e"),
    ("index.jsonl", lambda contents: b"5\n{", "v_e"),
])
def test_a_damaged_half_goes_on_where_it_is_whole(
    distribution, tmp_path, monkeypatch, undisturbed, file, damage, undecoded
):
    root = distribution()
    interrupted(root, monkeypatch, before="000002")
    path = folder(tmp_path) / file
    path.write_bytes(damage(path.read_bytes()))
    assert_goes_on(root, tmp_path, monkeypatch, undisturbed, undecoded.split())


def test_damage_to_what_is_complete_is_named_and_mended(distribution, tmp_path, monkeypatch, undisturbed):
    root = distribution()
    ready(root)
    for file, damage, undecoded in (
        ("24.frames", lambda contents: contents[:-5], ["v_e"]),
        ("24.jsonl", lambda contents: contents.replace(b'"frames": 18', b'"frames": 19'), undisturbed.names.tolist()),
        ("24.jsonl", lambda contents: contents[:-20], []),
        ("24.mel", lambda contents: contents + b"x", []),
    ):
        path = folder(tmp_path) / file
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises((ValueError, FileNotFoundError), match=file.replace(".", r"\.")):
            loaded(root)
        with monkeypatch.context() as patched:
            assert_goes_on(root, tmp_path, patched, undisturbed, undecoded)


def test_a_file_that_changes_is_decoded_again_with_what_follows(distribution, monkeypatch):
    root = distribution()
    ready(root)
    distribution({"Any/v_d.avi": silent_avi(130, 50)})
    with pytest.raises(FileNotFoundError, match="files that have changed since"):
        loaded(root)
    decoded = counting(monkeypatch)
    made = ready(root)
    assert decoded == ["v_c", "v_d", "v_e"] and made.first_frame[4] - made.first_frame[3] == 20


class Full(io.FileIO):
    """A file on a disk with room for 1,000 bytes of it."""

    def write(self, contents):
        if self.tell() + memoryview(contents).nbytes > 1000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(contents)


@pytest.mark.parametrize(("name", "undecoded"), [
    ("000001.frames", ["v_c", "v_d", "v_e"]), ("24.frames", ["v_c", "v_d", "v_e"]),
])
def test_a_full_disk_is_an_error_that_names_the_file(distribution, tmp_path, monkeypatch, undisturbed, name, undecoded):
    root = distribution()

    def opened(path, mode, **options):
        return (Full if Path(path).name == name else open)(path, mode, **options)

    with monkeypatch.context() as patched:
        patched.setattr(arrays, "open", opened, raising=False)
        with pytest.raises(OSError, match=rf"No space left on device.*{name}'") as raised:
            ready(root)
    assert raised.value.errno == errno.ENOSPC
    assert_goes_on(root, tmp_path, monkeypatch, undisturbed, undecoded)


def test_where_nothing_can_be_written_the_folder_is_named(distribution, tmp_path, monkeypatch):
    root = distribution()
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "file"))
    with pytest.raises(OSError, match=r"file/prepared"):
        ready(root)


def test_frames_are_mapped_and_stay_as_they_are_in_their_file(distribution):
    root = distribution()
    made = ready(root)
    made.frames[:] = 7
    assert not (loaded(root).frames == 7).all()


def test_more_than_memory_holds_can_be_mapped(tmp_path):
    """A private mapping counts as used memory unless it is told not to, and one of terabytes would be refused."""
    size = 24 * 32 * 3 * 10**9
    try:
        with open(tmp_path / "frames", "wb") as file:
            file.truncate(size)  # takes no room on the disk
    except OSError:
        pytest.skip("this file system has no files with holes")
    found = arrays._mapped(tmp_path / "frames", np.dtype(np.uint8), size, (24, 32, 3))
    assert found.shape == (10**9, 24, 32, 3) and found[10**9 - 1].max() == 0 and found.flags.writeable


# ------------------------------------------------------------------------------------------------ real files


REAL = manifest.data_root()


@pytest.mark.skipif(not (REAL / "ucf101" / "sample.zip").exists(), reason="ucf101/sample.zip is not below REPRO_DATA")
def test_real_clips_of_ucf101(tmp_path, monkeypatch):
    """Two short clips of the archive: one with packed B-frames and sound, one without sound."""
    members = sources._members

    def some(path):
        for entry in members(path):
            if entry.name in ("v_Archery_g05_c04.avi", "v_Biking_g05_c02.avi") or entry.name.endswith(".txt"):
                yield entry

    monkeypatch.setattr(sources, "_members", some)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    with pytest.raises(ValueError, match="13,318 clips of the lists have no file"):
        prepare.prepare("ucf101", REAL)
    made = prepare.prepare("ucf101", REAL, size=24, subset=True)
    assert made.names.tolist() == ["v_Archery_g05_c04", "v_Biking_g05_c02"]
    assert [made.classes[label] for label in made.labels] == ["Archery", "Biking"]
    assert made.first_frame[1] == 21 and np.diff(made.first_row).tolist() == [210, 0]
    assert made.notes == {"v_Biking_g05_c02": ("no sound",)} and not made.reasons
