"""What sentences of the SCE supplement are held against besides results and printed tables; see `repro.papers`."""

from pandas import DataFrame

from repro.report import statistics
from repro.report.printed import printed


def lead_of_best(rows: DataFrame) -> DataFrame:
    """By how much the best printed accuracy of every data set exceeds the second best, with the error of our grid.

    Two single runs of a deviation s between seeds differ by s sqrt(2).
    """
    deviation = statistics.pooled(rows.pivot_table("ours", ["method", "temperature", "key_temperature"], "seed"))
    accuracies = printed("temperature_grid_by_recipe").groupby("dataset")["percent"]
    leads = accuracies.agg(lambda values: values.max() - values.nlargest(2).min()).rename("lead").reset_index()
    return leads.assign(lead_error=deviation.value * 2**0.5, lead_df=deviation.df)


DERIVED = {"lead_of_best": ("temperature_grid_cifar10", lead_of_best)}
