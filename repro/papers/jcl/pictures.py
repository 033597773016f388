"""JCL's pictures of frames, which are measured of finished encoders."""

from pandas import DataFrame

from repro.papers.jcl import figures
from repro.report.plots import Picture


def of_most_keys(rows: DataFrame) -> DataFrame:
    """The cell with most positive keys, the first of several."""
    keys = rows.loc[rows["positives"] == rows["positives"].max(), "key"]
    return rows[rows["key"] == keys.iloc[0]].drop(columns="entry")


PICTURES = {
    "similarity_variance_images_cifar10": Picture(
        experiments=("similarity_variance_cifar10",), frame="similarity", plot=figures.similarity_variance),
    "sampled_keys_cifar10": Picture(
        experiments=("positive_keys_cifar10",), frame="sampled_keys", rows=of_most_keys, plot=figures.SAMPLED_KEYS),
}
