"""Official lists: their forms, what is refused, and the real ones where they are at hand."""

import re

import pytest

from repro.audiovisual import splits
from repro.data import files, manifest

UCF = {"classInd.txt": "5 Biking\r\n17 Archery\r\n\r\n"}
for number, train, test in ((1, "ab", "c"), (2, "bc", "a"), (3, "ac", "b")):
    clips = {name: f"{'Archery' if name == 'a' else 'Biking'}/v_{name}.avi" for name in "abc"}
    UCF[f"trainlist0{number}.txt"] = "".join(f"{clips[name]} {17 if name == 'a' else 5}\r\n" for name in train)
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
    "eval_segments.csv": '# Segments csv created Sun Mar  5 10:54:25 2017\n# num_ytids=1, num_segs=1, num_unique_"'
                         'labels=2, num_positive_labels=2\n# YTID, start_seconds, end_seconds, positive_labels\n'
                         '--4gqARaEJE, 0.000, 10.000, "/m/068hy,/m/07q6cd_"\n',
    "balanced_train_segments.csv": '--PJHxphWEs, 30.000, 40.000, "/m/09x0r,/t/dd00088"\n'
                                   '_-ZhevVpy1s, 50.500, 58.000, "/m/012xff"\n',
}
KIN = ["-abcdefghij_000001_000011", "-abcdefghij_000012_000022", "_bcdefghijk_000020_000030",
       "cdefghijklm_000000_000010", "defghijklmn_000003_000013"]


@pytest.mark.parametrize(("read", "texts", "classes", "clips"), [
    (splits.ucf101, UCF, ("Biking", "Archery"), {
        "name": ["v_a", "v_b", "v_c"], "label": [1, 0, 0], "list1": ["train", "train", "test"],
        "list2": ["test", "train", "train"], "list3": ["train", "test", "train"]}),
    (splits.hmdb51, HMDB, ("run", "wave"), {
        "name": ["run_(y)", "run_x#1", "wave_(y)", "wave_x#1"], "label": [0, 0, 1, 1], "id1": [2, 1, 2, 1],
        "id2": [2, 2, 2, 2], "id3": [2, 0, 2, 0]}),
    (splits.esc50, {"esc50.csv": ESC}, ("dog", "rooster"), {
        "name": ["1-17-A", "1-17-B", "2-18-B"], "label": [1, 1, 0], "fold": [1, 1, 2], "esc10": [False, False, True]}),
    (splits.kinetics, KINETICS, ("airbrush", "tap dancing", "zumba"), {
        "name": KIN, "label": [2, 2, 0, 1, -1], "part": ["train", "val", "train", "train", "test"]}),
    (splits.kinetics, {"val.csv": KINETICS["val.csv"]}, ("airbrush", "zumba"), {
        "name": KIN[:2], "label": [0, 1], "part": ["val"] * 2}),
    (splits.audioset, AUDIOSET, (), {
        "name": ["--4gqARaEJE", "--PJHxphWEs", "_-ZhevVpy1s"], "label": [-1] * 3, "part": ["eval", "train", "train"]}),
], ids=["ucf101", "hmdb51", "esc50", "kinetics", "kinetics, val", "audioset"])
def test_what_lists_say(read, texts, classes, clips):
    listing = read(texts)
    assert listing.classes == classes and listing.clips.reset_index().to_dict("list") == clips


@pytest.mark.parametrize(("name", "stem", "clip"), [
    ("esc50", "1-17-A-1", "1-17-A"), ("esc50", "1-17-A", "1-17-A"), ("ucf101", "v_a_b", "v_a_b"),
    ("audioset", "--4gqARaEJE", "--4gqARaEJE"), ("audioset", "--4gqARaEJE_0.000_10.000", "--4gqARaEJE"),
    ("audioset", "_-ZhevVpy1s_50500", "_-ZhevVpy1s"), ("audioset", "--4gqARaEJEx", "--4gqARaEJEx"),
])
def test_the_clip_of_a_file(name, stem, clip):
    assert re.match(splits.LAYOUTS[name].clip, stem)[0] == clip


@pytest.mark.parametrize(("read", "texts", "message"), [
    (splits.ucf101, UCF | {"classInd.txt": "one Biking\n2 Archery"}, "classInd.txt, line 1: number 'one' should be"),
    (splits.ucf101, UCF | {"classInd.txt": f"\n{'9' * 5000} Biking\n2 Archery"}, "classInd.txt, line 2"),
    (splits.ucf101, UCF | {"testlist01.txt": "Running/v_c.avi"}, "testlist01.txt, line 1: kind 'Running' should"),
    (splits.ucf101, UCF | {"testlist01.txt": "Biking/v_b.avi"}, "testlist01.txt, line 1: .* not listed before"),
    (splits.hmdb51, HMDB | {"run_test_split2.txt": "a.avi 3"}, "run_test_split2.txt, line 1: value '3' should be"),
    (splits.hmdb51, HMDB | {"run_test_split2.txt": "a.avi 1\n\na.avi 2"}, "run_test_split2.txt, line 3"),
    (splits.esc50, {"esc50.csv": "filename,fold\n"}, "esc50.csv lacks the columns target, category, esc10"),
    (splits.esc50, {"esc50.csv": ""}, "esc50.csv"),
    (splits.esc50, {"esc50.csv": ESC.replace("take", "fold", 1)}, "esc50.csv lacks the columns fold, or has"),
    *((splits.esc50, {"esc50.csv": f"{ESC}{row}\n"}, message) for row, message in (
        ("1-17-A-1.wav,1,1,rooster,False,17,A", "line 5: .* of a clip that is not listed before"),
        ("1-19-A-1.wav,1", "esc50.csv, line 5"),
        ("1-19-A-1.wav,1,1,rooster,False,17,A,B", "esc50.csv cannot be read .*7 fields in line 5, saw 8"),
        ("1-19-A-1.wav,1,1,rooster,yes,17,A", "line 5: esc10 'yes' should be of the form"),
        ('1-19-A-1.wav,1,1,"dog,False,17,A\n1-20-A-1.wav,1,1,dog",False,17,A', "line 5: category .*dog"))),
    *((splits.kinetics, {"train.csv": f"youtube_id,time_start,time_end\n{row}"}, "train.csv, line 2") for row in (
        "a,now,2", "a,1,nan", "a,1_0,20", "a,-1,20", "a,20,20", "a,1", "a,1,1e9")),
    *((splits.audioset, AUDIOSET | {"eval_segments.csv": row}, message) for row, message in (
        ('# other, lines\n--4gqARaEJE, 5, 5, "x"', "line 2: time_end .* should be after its start"),
        ("short, 1, 2, x", "eval_segments.csv, line 1: name 'short' should"),
        ('--PJHxphWEs, 0, 1, "x"', "not listed before"), ('--4gqARaEJE, 0, 10, "/m/068hy', "cannot be read"))),
])
def test_other_lists_are_refused_by_name(read, texts, message):
    with pytest.raises(ValueError, match=f"{message}.*; fetch it again"):
        read(texts)


@pytest.mark.parametrize(("read", "texts", "message"), [
    (splits.ucf101, {"classInd.txt": "1 A"}, r"its list trainlist01\.txt is not there"),
    (splits.hmdb51, {}, "none of its lists such as brush_hair_test_split1.txt"),
    (splits.kinetics, {}, "none of its lists train.csv, val.csv, test.csv is there"),
])
def test_a_missing_list_is_named(read, texts, message):
    with pytest.raises(FileNotFoundError, match=message):
        read(texts)


REAL = manifest.data_root()


@pytest.mark.parametrize(("name", "place", "clips"), [
    ("ucf101", "splits/ucf101.zip", 13_320), ("hmdb51", "splits/hmdb51.zip", 6_766), ("esc50", "esc50", 2_000),
])
def test_real_lists(name, place, clips):
    if not (REAL / place).exists():
        pytest.skip(f"{place} is not below REPRO_DATA")
    layout = splits.LAYOUTS[name]
    texts = {path.name: path.read_bytes().decode() for path in files.listed(files.folder(REAL / place))
             if re.fullmatch(layout.lists, path.name)}
    listing = layout.listing(texts)
    splits.check(name, listing)
    assert len(listing.clips) == clips
