"""Five clips of two classes in the layout of UCF101."""

from made_clips import silent_avi

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
