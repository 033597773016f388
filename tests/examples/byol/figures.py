"""The figure of BYOL's table."""

import seaborn
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.report.redraw import Drawing
from repro.report.style import BLUE, settled, styled


@styled()
def predictor(table: DataFrame) -> Figure:
    """Accuracy of the linear probe with the predictor and without."""
    figure = Figure(figsize=(3.3, 2.2), layout="constrained")
    axes = seaborn.barplot(table, x="method", y="ours", ax=figure.subplots(), color=BLUE)
    axes.set(xlabel="", ylabel="linear probe accuracy (%)")
    return settled(figure)


FIGURES = {"predictor": Drawing(predictor, "Linear-probe accuracy of BYOL with its predictor and without.")}
