"""What sentences of the JCL supplement are held against besides results; see `repro.papers`."""

from pandas import DataFrame


def distances_from_mean(rows: DataFrame) -> DataFrame:
    """How far each run is from the mean of its setting, whose differences are the test of Levene for variances."""
    means = rows.groupby(["keys", "strength", "temperature"])["ours"].transform("mean")
    return rows.assign(distance=(rows["ours"] - means).abs())


DERIVED = {
    "distances_from_mean": ("positive_keys_cifar10", distances_from_mean),
    "mean_similarities": (  # of each model: it is trained a seed, however many images it sees
        "log/similarity_variance_images_cifar10",
        lambda rows: rows.groupby(["model", "seed"], as_index=False)["similarity"].mean()),
}
