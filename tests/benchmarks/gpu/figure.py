"""The figure of the benchmark: cells at once, the time of a selection, how near the hot paths come to the limits."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from repro.report.style import styled


@styled()
def draw(found: dict[str, Any]) -> Figure:
    """Three panels; of what was not measured there is nothing to see."""
    shares = found.get("distances", [])
    figure = plt.figure(figsize=(6, 5 + 0.25 * len(shares)), layout="constrained")
    above, middle, below = figure.subplots(3, 1, height_ratios=[2, 2, 1 + 0.25 * len(shares)])
    hardware = next((part["hardware"] for part in found.values() if "hardware" in part), {})
    figure.suptitle(f"{hardware.get('device', 'nothing measured')}, torch {hardware.get('torch', '')}")
    for way in ("captured", "processes", "streams"):
        at_once = found.get("skeletons", {}).get(way, {}).get("at once", {})
        points = sorted((int(count), run["times"]) for count, run in at_once.items())
        above.plot([count for count, _ in points], [times for _, times in points], marker="o", label=way)
    above.set(xlabel="cells at once", ylabel="times as fast", ylim=(0, None))
    for size in ("pool", "chosen", "features"):
        part = found.get("selection", {}).get(f"by {size}", {})
        points = sorted((int(count), 1e3 * taken) for count, taken in part.items() if count.isdecimal())
        usual = points[len(points) // 2][0] if points else 1
        middle.plot([count / usual for count, _ in points], [taken for _, taken in points], marker="o", label=size)
    middle.set(xlabel="size, in units of the middle one", ylabel="one selection (ms)", xscale="log", ylim=(0, None))
    for axes in (above, middle):
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    below.barh([f"{work['path']} ({work['limit']})" for work in shares], [100 * work["share"] for work in shares])
    below.invert_yaxis()
    below.set(xlabel="share of the measured limit (%)", xlim=(0, 100))
    plt.close(figure)
    return figure
