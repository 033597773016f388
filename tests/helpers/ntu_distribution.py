"""A small distribution of NTU RGB+D, and what its preparation reads and leaves behind."""

from ntu_files import AGAIN, COMING, CROWD, GHOST, LONG, ONE, SITTING, TWO

FILES = {                     # two training and two test subjects, all cameras; the last one is among the missing
    "S001C001P001R001A001": ONE, "S001C002P001R001A050": TWO, "S001C003P001R001A060": COMING,
    "S002C001P003R001A002": AGAIN, "S002C002P003R002A001": CROWD, "S002C003P006R001A003": LONG,
    "S017C001P038R001A004": ONE, "S017C002P038R002A004": GHOST, "S017C003P040R001A050": SITTING,
    "S001C002P005R002A008": [[], []],
}
SPLITS = {
    "xsub": {"train": {"subjects": [1, 5, 38]}, "test": {"subjects": [3, 6, 40]},
             "expect": {"train": 6, "test": 4}, "kept": {"train": 5, "test": 4}},
    "xview": {"train": {"views": [2, 3]}, "test": {"views": [1]},
              "expect": {"train": 7, "test": 3}, "kept": {"train": 6, "test": 3}},
}
WHOLE = ["authors.frames.npy", "authors.jsonl", "authors.lock"]


def prepared_folder(tmp_path):
    (folder,) = (tmp_path / "runs" / "prepared").iterdir()
    return folder


def left_behind(tmp_path):
    return sorted(path.name for path in prepared_folder(tmp_path).iterdir())
