"""What JCL's figures need beside results: augmentations' similarities, and its bound beside sampled keys."""

import functools

from pandas import DataFrame

from repro.report.logs import Log, first, joined, usual
from repro.run.store import Store


def _of_most_keys(store: Store, cells: DataFrame) -> DataFrame:
    return first("sampled_keys.csv", store, cells.sort_values("keys", ascending=False, kind="stable"))


LOGS = {
    "similarity_variance_images": Log(
        "similarity_variance", usual, functools.partial(joined, "similarity.csv"),
        ("model", "d", "similarity", "variance"),
        texts=("model",),
    ),
    "sampled_keys": Log(
        "positive_keys", usual, _of_most_keys,
        ("keys", "inside", "inside_std", "outside", "outside_std", "closed_form"),
    ),
}
