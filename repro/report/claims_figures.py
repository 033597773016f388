"""How many of the papers' sentences have which verdict, drawn."""

from matplotlib.figure import Figure
from pandas import DataFrame

from repro.report.elements import legend_below
from repro.report.style import BLUE, COLUMN, GREEN, GREY, INK, PALE, VERMILLION, settled, styled
from repro.report.verdicts import CANNOT, FAILS, HOLDS, NOT_RUN, UNDECIDED

COLOURS = {HOLDS: GREEN, FAILS: VERMILLION, UNDECIDED: BLUE, NOT_RUN: PALE, CANNOT: GREY}


@styled()
def verdicts(counts: DataFrame) -> Figure:
    """A bar for every paper, its verdicts one behind the other with their numbers.

    Args:
        counts: of `claims.counted`: papers downwards, verdicts across.
    """
    figure = Figure(figsize=(COLUMN, 0.8 + 0.3 * len(counts)), layout="constrained")
    axes = figure.subplots()
    starts = counts.cumsum(axis=1) - counts
    for verdict, colour in COLOURS.items():
        axes.barh(range(len(counts)), counts[verdict], left=starts[verdict], color=colour, height=0.7, label=verdict)
        for place, (count, start) in enumerate(zip(counts[verdict], starts[verdict], strict=True)):
            if count:
                ink = INK if verdict == NOT_RUN else "white"
                axes.text(start + count / 2, place, str(count), ha="center", va="center", color=ink)
    axes.set(yticks=range(len(counts)), yticklabels=counts.index, ylim=(len(counts) - 0.5, -0.5), xlabel="claims")
    axes.tick_params(axis="y", length=0)
    legend_below(figure, axes.get_legend_handles_labels()[0], 3)
    return settled(figure)
