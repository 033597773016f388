"""CM-ACC's printed comparisons with other work, Tables 4 to 6, with one name for every method, set and encoder."""

from pandas import DataFrame

from repro import manifest
from repro.recipe import choose
from repro.report.printed import printed

TARGETS = {4: ("UCF101", "HMDB51"), 5: ("ESC50",), 6: ("UCF101", "HMDB51", "ESC50")}  # by number of the table
NAMES = {"ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC50"}  # of targets, as printed
SETS = {  # what was pre-trained on, as printed
    "kinetics_sound": "Kinetics-Sound",
    "kinetics700": "Kinetics700",
    "audioset": "AudioSet",
    "ucf101": "UCF101",
    "hmdb51": "HMDB51",
    "esc50": "ESC50",
}
TRUNKS = {"r3d18": "3D-ResNet18", "r2plus1d18": "R(2+1)D-18"}
METHODS = {"scratch": "Scratch", "supervised": "Supervised", "smoco": "SMoCo", "xmoco": "XMoCo", "cmacc": "CM-ACC"}
PRINTED = {"Ours": "CM-ACC", "Kine.-Sound": "Kinetics-Sound"}  # what the three tables call differently
NOWHERE = "-"  # the pre-training set of an encoder trained from scratch, as printed


def comparison(number: int) -> DataFrame:
    """The rows of a printed comparison, in the printed order.

    Returns:
        method, architecture (not in Table 6), pretrain_set, pretrain_size ("240K", or ""), a column of accuracies in
        percent for every target, and source: "printed", in Table 6 with what the paper says of the row's origin.

    Raises:
        ValueError: if there is no such comparison.
    """
    targets = TARGETS[choose("number", number, TARGETS)]
    rows = printed(f"cmacc_table{number}").rename(
        columns={"approach": "method", "dataset": "pretrain_set", "size": "pretrain_size"}
    )
    rows = rows.replace({"method": PRINTED, "pretrain_set": PRINTED}).fillna({"pretrain_size": ""})
    rows["source"] = "printed" + (": " + rows["source"] if "source" in rows else "")
    columns = [name for name in ("method", "architecture", "pretrain_set", "pretrain_size") if name in rows]
    return rows[[*columns, *targets, "source"]]


def pretrained_on(method: str, dataset: str) -> str:
    """What a method of ours was pre-trained on, as the printed tables call it."""
    return NOWHERE if method == "scratch" else SETS.get(manifest.plain(dataset), dataset)
