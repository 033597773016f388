"""Official lists: their forms, what is refused, and the real ones where they are at hand."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from repro.audiovisual import splits
from repro.data import manifest
from repro.data.archives import entries

UCF = {"classInd.txt": "1 Biking\r\n2 Archery\r\n\r\n"}
for number, train, test in ((1, "ab", "c"), (2, "bc", "a"), (3, "ac", "b")):
    clips = {name: f"{'Archery' if name == 'a' else 'Biking'}/v_{name}.avi" for name in "abc"}
    UCF[f"trainlist0{number}.txt"] = "".join(f"{clips[name]} {2 if name == 'a' else 1}\r\n" for name in train)
    UCF[f"testlist0{number}.txt"] = "".join(f"{clips[name]}\r\n" for name in test)
HMDB = {f"{kind}_test_split{number}.txt": f"{kind}_x#1.avi {number % 3} \n{kind}_(y).avi 2 \n"
        for kind in ("wave", "run") for number in (1, 2, 3)}
ESC = ("filename,fold,target,category,esc10,src_file,take\n1-17-A-1.wav,1,1,rooster,False,17,A\n"
       "2-18-B-0.wav,2,0,dog,True,18,B\n1-17-B-1.wav,1,1,rooster,FALSE,17,B\n")
KINETICS = {
    "train.csv": "label,youtube_id,time_start,time_end,split\nzumba,-abcdefghij,1,11,train\n"
                 "airbrush,_bcdefghijk,20,30,train\ntap dancing,cdefghijklm,0,10,train\n",
    "val.csv": "label,youtube_id,time_start,time_end,split\nzumba,-abcdefghij,12,22,val\n"
               "airbrush,-abcdefghij,1,11,val\n",
    "test.csv": "youtube_id,time_start,time_end,split\ndefghijklmn,3.0,13.0,test\n",
}
AUDIOSET = {
    "eval_segments.csv": '# Segments csv created Sun Mar  5 10:54:25 2017\n# num_ytids=1, num_segs=1, num_unique_'
                         'labels=2, num_positive_labels=2\n# YTID, start_seconds, end_seconds, positive_labels\n'
                         '--4gqARaEJE, 0.000, 10.000, "/m/068hy,/m/07q6cd_"\n',
    "balanced_train_segments.csv": '--PJHxphWEs, 30.000, 40.000, "/m/09x0r,/t/dd00088"\n'
                                   '_-ZhevVpy1s, 50.500, 58.000, "/m/012xff"\n',
}


def test_ucf101():
    listing = splits.ucf101(UCF)
    assert listing.names == ("v_a", "v_b", "v_c") and listing.classes == ("Biking", "Archery")
    assert listing.labels.tolist() == [1, 0, 0] and np.isnan(listing.seconds).all()
    assert listing.columns["list2"].tolist() == ["test", "train", "train"]
    split = manifest.Split(train={"list3": ["train"]}, test={"list3": ["test"]}, expect={})
    found = split.masks(listing.columns)
    assert found["train"].tolist() == [True, False, True] and found["test"].tolist() == [False, True, False]


def test_hmdb51():
    listing = splits.hmdb51(HMDB)
    assert listing.names == ("run_(y)", "run_x#1", "wave_(y)", "wave_x#1") and listing.classes == ("run", "wave")
    assert listing.columns["id1"].tolist() == [2, 1, 2, 1] and listing.columns["id3"].tolist() == [2, 0, 2, 0]
    assert listing.labels.tolist() == [0, 0, 1, 1]


def test_esc50():
    listing = splits.esc50({"esc50.csv": ESC})
    assert listing.names == ("1-17-A", "1-17-B", "2-18-B") and listing.classes == ("dog", "rooster")
    assert listing.labels.tolist() == [1, 1, 0] and listing.columns["fold"].tolist() == [1, 1, 2]
    assert listing.columns["esc10"].tolist() == [False, False, True] and listing.seconds.tolist() == [5, 5, 5]
    assert [splits.esc_clip(stem) for stem in ("1-17-A-1", "1-17-A")] == ["1-17-A"] * 2


def test_kinetics():
    listing = splits.kinetics(KINETICS)
    assert listing.names == ("-abcdefghij_000001_000011", "-abcdefghij_000012_000022", "_bcdefghijk_000020_000030",
                             "cdefghijklm_000000_000010", "defghijklmn_000003_000013")
    assert listing.classes == ("airbrush", "tap dancing", "zumba") and listing.labels.tolist() == [2, 2, 0, 1, -1]
    assert listing.columns["part"].tolist() == ["train", "val", "train", "train", "test"]
    assert listing.seconds.tolist() == [10] * 5
    note = "listed twice: as 'zumba' (train), which counts, and 'airbrush' (val)"
    assert listing.notes == {"-abcdefghij_000001_000011": note}
    assert splits.kinetics({"val.csv": KINETICS["val.csv"]}).names == listing.names[:2]


def test_kinetics_sound_are_the_clips_of_some_classes():
    listing = splits.kinetics_sound(KINETICS)
    assert listing.names == ("cdefghijklm_000000_000010",) and len(listing.classes) == 31
    assert listing.classes[listing.labels[0]] == "tap dancing" and len(listing.others) == 4
    assert listing.classes == tuple(sorted(listing.classes))


def test_audioset():
    listing = splits.audioset(AUDIOSET)
    assert listing.names == ("--4gqARaEJE", "--PJHxphWEs", "_-ZhevVpy1s") and listing.classes == ()
    assert listing.columns["part"].tolist() == ["eval", "train", "train"] and listing.seconds.tolist() == [10, 10, 7.5]
    assert listing.labels.tolist() == [-1, -1, -1]
    stems = ("--4gqARaEJE", "--4gqARaEJE_0.000_10.000", "_-ZhevVpy1s_50500", "short", "--4gqARaEJEx")
    assert [splits.audioset_clip(stem) for stem in stems] == ["--4gqARaEJE", "--4gqARaEJE", "_-ZhevVpy1s", *stems[3:]]


@pytest.mark.parametrize(("read", "texts", "error", "message"), [
    (splits.ucf101, {"classInd.txt": "1 A"}, FileNotFoundError, r"its list trainlist01\.txt is not there"),
    (splits.ucf101, UCF | {"classInd.txt": "one Biking\n2 Archery"}, ValueError, r"classInd.txt, line 1: 'one' shou"),
    (splits.ucf101, UCF | {"testlist01.txt": "Running/v_c.avi"}, ValueError, r"testlist01.txt, line 1: 'Running/v"),
    (splits.ucf101, UCF | {"testlist01.txt": "Biking/v_b.avi"}, ValueError, "v_b is listed before"),
    (splits.ucf101, UCF | {"testlist01.txt": "Archery/v_c.avi"}, ValueError, "v_c is listed before.*of another class"),
    (splits.ucf101, UCF | {"trainlist01.txt": "Biking/v_b.avi"}, ValueError, "should be 2 words"),
    (splits.ucf101, UCF | {"classInd.txt": "1 Biking\n1 Archery"}, ValueError, "'Archery' has the number 1, of anoth"),
    (splits.ucf101, UCF | {"classInd.txt": "1 Biking\n2 Archery\n3 Biking"}, ValueError, "line 3: 'Biking' has the nu"),
    (splits.ucf101, UCF | {"classInd.txt": f"{'9' * 5000} Biking\n2 Archery"}, ValueError, "of at most 9 digits"),
    (splits.ucf101, UCF | {"trainlist01.txt": "Biking/v_b.avi 2"}, ValueError, "line 1: Biking has the number 1 in cl"),
    (splits.hmdb51, {}, FileNotFoundError, "none of its lists such as brush_hair_test_split1.txt"),
    (splits.hmdb51, {"run_test_split1.txt": "a.avi 1"}, FileNotFoundError, "run_test_split2.txt is not there"),
    (splits.hmdb51, HMDB | {"run_test_split2.txt": "a.avi 3"}, ValueError, "line 1: a.avi 3 should be a new clip"),
    (splits.esc50, {}, FileNotFoundError, "its list esc50.csv is not there"),
    (splits.esc50, {"esc50.csv": "filename,fold\n"}, ValueError, "lacks the columns target, category, esc10"),
    (splits.esc50, {"esc50.csv": ESC + "1-17-A-1.wav,1,1,rooster,False,17,A\n"}, ValueError, "1-17-A is listed before"),
    (splits.esc50, {"esc50.csv": ESC + "1-19-A-1.wav,1\n"}, ValueError, "line 5: has 2 values for 7 columns"),
    (splits.esc50, {"esc50.csv": ESC + "1-19-A-1.wav,1,1,rooster,False,17,A,B\n"}, ValueError, "line 5: has 8 values"),
    (splits.esc50, {"esc50.csv": ESC + "1-19-A-1.wav,1,1,crow,False,17,A\n"}, ValueError, "'crow' has the number 1"),
    (splits.esc50, {"esc50.csv": ESC + "1-19-A-2.wav,1,2,dog,False,17,A\n"}, ValueError, "'dog' has the number 2"),
    (splits.esc50, {"esc50.csv": ESC + "1-19-A-1.wav,one,1,rooster,False,17,A\n"}, ValueError, "line 5: 'one' shou"),
    (splits.esc50, {"esc50.csv": ESC + "1-19-A-1.wav,1,1,rooster,yes,17,A\n"}, ValueError,
     "line 5: esc10='yes' is not one of: true, false"),
    (splits.esc50, {"esc50.csv": ESC + '1-19-A-1.wav,1,1,"rooster,False,17,A\n'}, ValueError, "line 5: unexpected"),
    (splits.esc50, {"esc50.csv": ESC + f"{'x' * 200_000},1,1,rooster,False,17,A\n"}, ValueError, "line 5: field larg"),
    (splits.kinetics, {}, FileNotFoundError, "none of its lists train.csv, val.csv, test.csv is there"),
    (splits.kinetics, {"train.csv": "youtube_id,time_start,time_end\na,now,2"}, ValueError, "'now' should be a time"),
    (splits.kinetics, {"train.csv": "youtube_id,time_start,time_end\na,1,nan"}, ValueError, "'nan' should be a time"),
    (splits.kinetics, {"train.csv": "youtube_id,time_start,time_end\na,1_0,20"}, ValueError, "'1_0' should be a time"),
    (splits.kinetics, {"train.csv": "youtube_id,time_start,time_end\na,20,10"}, ValueError, "line 2: ends at 10 s"),
    (splits.audioset, {"eval_segments.csv": '--4gqARaEJE, 5, 5, "x"'}, ValueError, "line 1: ends at 5 s"),
    (splits.audioset, {"eval_segments.csv": AUDIOSET["eval_segments.csv"].replace('cd_"', "cd_")}, ValueError,
     "line 4: unexpected end of data; fetch it again"),
    (splits.audioset, {}, FileNotFoundError, "none of its lists balanced_train_segments.csv"),
    (splits.audioset, {"eval_segments.csv": "short, 1, 2, x"}, ValueError, "line 1:.*should be a new YTID"),
    (splits.audioset, {"eval_segments.csv": AUDIOSET["eval_segments.csv"].replace("segs=1", "segs=20371")}, ValueError,
     "has 1 segments and announces 20,371"),
])
def test_other_lists_are_refused(read, texts, error, message):
    with pytest.raises(error, match=message):
        read(texts)


def test_labels_are_places_among_the_classes_whatever_their_numbers():
    numbers = {"classInd.txt": "5 Biking\n17 Archery\n"}
    lists = {name: text.replace(".avi 1", ".avi 5").replace(".avi 2", ".avi 17") for name, text in UCF.items()}
    found = splits.ucf101(lists | numbers)
    assert found.classes == ("Biking", "Archery") and found.labels.tolist() == splits.ucf101(UCF).labels.tolist()


def test_a_quotation_mark_in_a_comment_hides_no_segment():
    commented = {name: text.replace("num_segs", '", num_segs') for name, text in AUDIOSET.items()}
    assert splits.audioset(commented).names == splits.audioset(AUDIOSET).names


def test_counts_are_those_of_the_manifest():
    with pytest.raises(ValueError, match=r"'test': 1, 'unused': 0, 'classes': 2\} for split1, .*9537.*--subset"):
        splits.check("ucf101", splits.ucf101(UCF))
    with pytest.raises(ValueError, match=r"the lists give .*'classes': 3.* declares {'classes': 700}"):
        splits.check("kinetics700", splits.kinetics(KINETICS))
    with pytest.raises(ValueError, match=r"the lists have no clip of blowing nose, .*tickling; .*--subset"):
        splits.check("kinetics_sound", splits.kinetics_sound(KINETICS))
    splits.check("audioset", splits.audioset(AUDIOSET))


def test_declared_splits():
    sound, video = manifest.load_manifest("esc50"), manifest.load_manifest("hmdb51")
    assert list(sound.splits) == [f"{kind}{number}" for kind in ("fold", "esc10_fold") for number in range(1, 6)]
    for (key, split), number in zip(sound.splits.items(), itertools.cycle(range(1, 6))):
        assert split.test["fold"] == [number] and sorted(split.train["fold"] + [number]) == [1, 2, 3, 4, 5]
        assert split.expect["train"] == 4 * split.expect["test"] and split.test.get("esc10") == split.train.get("esc10")
        assert ("esc10" in split.test) == key.startswith("esc10")
    assert sum(next(iter(video.splits.values())).expect[part] for part in ("train", "test", "unused")) == 6766


REAL = manifest.data_root()


@pytest.mark.skipif(not (REAL / "splits" / "ucf101.zip").exists(), reason="splits/ucf101.zip is not below REPRO_DATA")
@pytest.mark.parametrize(("name", "clips"), [("ucf101", 13_320), ("hmdb51", 6_766)])
def test_real_lists(name, clips):
    texts = {Path(entry.name).name: entry.read().decode() for entry in entries(REAL / "splits" / f"{name}.zip")}
    listing = splits.LAYOUTS[name].listing(texts)
    splits.check(name, listing)
    assert len(listing.names) == clips


@pytest.mark.skipif(not (REAL / "esc50" / "esc50.csv").exists(), reason="esc50/esc50.csv is not below REPRO_DATA")
def test_real_esc50_list():
    listing = splits.esc50({"esc50.csv": (REAL / "esc50" / "esc50.csv").read_text()})
    splits.check("esc50", listing)
    assert listing.classes[:2] == ("dog", "rooster") and len(set(listing.labels[listing.columns["esc10"]])) == 10
