"""The figure of the benchmark: cells at once, the time of a selection, how near the hot paths come to the limits."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from repro.report.style import BLUE, COLUMN, GREEN, GREY, VERMILLION, settled, styled
from repro.report.style import save as write

CAPTION = (
    "Above: how many times as fast the cells of a column are trained at once as one after another. Middle: time of one "
    "selection of negatives, when one size is varied from 38,400 candidates, 128 chosen and 512 features. Below: the "
    "share that each hot path reaches of what a plain copy, or a plain matrix product, reaches on the same device."
)
ROW = 0.25  # inches of a bar with its name
WAYS = {"captured": (GREEN, "s"), "processes": (BLUE, "o"), "streams": (VERMILLION, "^")}
VARIED = {"pool": (BLUE, "o"), "chosen": (VERMILLION, "^"), "features": (GREEN, "s")}
LIMITS = {"float32": BLUE, "bfloat16": VERMILLION, "copy": GREEN}


@styled()
def draw(found: dict[str, Any]) -> Figure:
    """Three panels; of what was not measured there is nothing to see."""
    shares = found.get("distances", [])
    heights = [1.5, 1.5, ROW * max(1, len(shares))]
    figure = Figure(figsize=(COLUMN, sum(heights) + 1.6), layout="constrained")
    above, middle, below = figure.subplots(3, 1, height_ratios=heights)
    hardware = next((part["hardware"] for part in found.values() if "hardware" in part), {})
    figure.suptitle(f"{hardware.get('device', 'nothing measured')}, torch {hardware.get('torch', '')}")
    _cells(above, found.get("skeletons", {}))
    _selection(middle, found.get("selection", {}))
    _shares(below, shares)
    return settled(figure)


def save(found: dict[str, Any], stem: Path) -> None:
    """Write the figure, PNG and SVG."""
    write(draw(found), stem, CAPTION, {"measured": sorted(found)})


def _cells(axes: Axes, skeletons: dict[str, Any]) -> None:
    counts = set()
    for way, (colour, marker) in WAYS.items():
        at_once = skeletons.get(way, {}).get("at once", {})
        points = sorted((int(count), each["times"]) for count, each in at_once.items())
        if way == "captured" and points:
            points = [(1, skeletons[way]["one after another"]["times"]), *points]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, marker=marker, label=way)
            counts |= {count for count, _ in points}
    for times in (2, 4):
        axes.axhline(times, color=GREY, linewidth=0.6, linestyle=":")
    axes.axhline(1, color=GREY, linewidth=0.6)
    axes.set(xlabel="cells at once", ylabel="times as fast", xticks=sorted(counts), ylim=(0, None))
    if counts:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)


def _selection(axes: Axes, selection: dict[str, Any]) -> None:
    for name, (colour, marker) in VARIED.items():
        taken = {int(size): each for size, each in selection.get(f"by {name}", {}).items() if size.isdecimal()}
        if taken:
            usual = sorted(taken)[len(taken) // 2]
            axes.plot([size / usual for size in sorted(taken)], [1e3 * taken[size] for size in sorted(taken)],
                      color=colour, marker=marker, label=name)
    goal = selection.get("paper size", {}).get("goal")
    if goal:
        axes.axhline(1e3 * goal, color=GREY, linewidth=0.6, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_xticks([1 / 4, 1 / 2, 1, 2], ["1/4", "1/2", "1", "2"])
    axes.set(xlabel="size, in units of the paper's", ylabel="one selection (ms)", ylim=(0, None))
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)


def _shares(axes: Axes, shares: list[dict[str, Any]]) -> None:
    for row, each in enumerate(shares):
        percent = 100 * each["share"]
        axes.barh(row, percent, height=0.3, color=LIMITS[each["limit"]])
        axes.text(1, row - 0.25, each["path"], va="bottom")
        axes.text(100, row - 0.25, f"{percent:.2g} %", va="bottom", ha="right")
    axes.set(xlabel="share of the measured limit (%)", xlim=(0, 100), ylim=(max(1, len(shares)) - 0.6, -0.9), yticks=[])
    if shares:
        handles = [Patch(color=colour, label=limit) for limit, colour in LIMITS.items()]
        axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
