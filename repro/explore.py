"""A look into trained skeleton models with a mouse, in JupyterLab: the four views of `notebooks/explore.ipynb`.

A `View` has controls above the figure that a function draws of their values with plotly, whose frames, sliders, clicks
and hovering it has. What is drawn comes from `explored_runs`, `target_distributions` and `selection_steps`.
"""

import functools
import html
import json
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import torch
from pandas import DataFrame
from scipy.stats import entropy
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from repro.papers.cmacc import selection_steps
from repro.papers.sce import target_distributions
from repro.papers.taxonomy import explored_runs
from repro.papers.taxonomy.tables import TABLES
from repro.report.style import BLUE, GREY, INK, PALE, VERMILLION
from repro.run import device as devices
from repro.skeleton.data import SkeletonSet
from repro.skeleton.study import data_of

INTERVAL = 90  # milliseconds between frames
KEYS = 40      # sequences that stand for the dictionary
COLOURS = dict(zip(target_distributions.KINDS, (VERMILLION, BLUE, GREY), strict=True))
COLOURS |= dict(zip(selection_steps.KINDS, (GREY, VERMILLION), strict=True))


class View(widgets.interactive):
    """Controls, as of `ipywidgets.interact`, above the figure that `draw` makes of their values.

    Pages without a kernel have the figure as it is, see `docs/conf.py`. Outputs are set, not captured: `repro report`
    keeps no state of widgets, and without it papermill cannot capture into one.
    """

    def __init__(self, draw: Callable[..., go.Figure], **controls: Any) -> None:
        screen = widgets.Output(layout=widgets.Layout(width="100%"))

        @functools.wraps(draw)
        def show(**values: Any) -> go.Figure:
            figure = draw(**values)
            if isinstance(figure, go.FigureWidget):
                data = figure._repr_mimebundle_()
            else:
                data = {"application/vnd.plotly.v1+json": json.loads(figure.to_json())}
            screen.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)
            return figure

        super().__init__(show, **controls)
        self.layout.flex_flow = "row wrap"
        self.children += (screen,)

    def _repr_mimebundle_(self, **options: object) -> dict[str, Any]:
        figure = html.escape(self.result.to_json())
        return super()._repr_mimebundle_(**options) | {"text/html": f'<div data-figure="{figure}"></div>'}


class Explorer:
    """What is drawn of two finished runs and a sequence, and `shared`, the controls that choose these three.

    Settings and errors are those of the table `taxonomy`'s `cells`; further errors of `explored_runs.available`.
    """

    def __init__(self, **settings: Any) -> None:
        asked, device = TABLES["taxonomy"].cells(**settings), devices.resolve(settings.get("device", "auto"))
        runs = explored_runs.available(asked)
        self.data = explored_runs.part_of(data_of(asked[0].recipe))
        self.sequences = self.data.frames.split(self.data.lengths.tolist())  # (T, D) each
        self.load = functools.lru_cache(maxsize=4)(lambda key: explored_runs.load_run(runs[key], self.data, device))
        options = [(explored_runs.label(cell), key) for key, cell in runs.items()]
        self.said = [described(self.data, index) for index in range(len(self.sequences))]
        by_action = self.data.labels.argsort(stable=True).tolist()
        self.shared = {
            "left": widgets.Dropdown(options=options, index=0, description="left run"),
            "right": widgets.Dropdown(options=options, index=min(1, len(options) - 1), description="right run"),
            "sequence": widgets.SelectionSlider(
                options=[(self.said[index], index) for index in by_action], description="sequence",
                continuous_update=False, layout=widgets.Layout(width="99%")),
        }

    def skeletons(self, left: str, right: str, sequence: int, turn: int = 0, views: int = 0) -> go.Figure:
        """A sequence, two augmented views of it and what both runs decode it to, moving.

        Args:
            left, right: keys of the runs.
            sequence: its number.
            turn: degrees by which bodies are turned about the vertical.
            views: seed of the two views.
        """
        runs, original = [self.load(left), self.load(right)], self.sequences[sequence]
        turned = functools.partial(seen_from, azimuth=turn, up=explored_runs.vertical(runs[0].recipe))
        shown = turned(original)
        panels = {self.said[sequence]: {INK: shown}}
        for number, view in enumerate(explored_runs.augmented(original, runs[0].recipe, seed=views), start=1):
            panels[f"augmented view {number}"] = {INK: turned(view)}
        for side, run, colour in zip(("left", "right"), runs, (BLUE, VERMILLION), strict=True):
            untrained = "" if run.recipe.trains_decoder else " (decoder untrained)"
            panels[f"{side}: decoded by {run.label}{untrained}"] = {PALE: shown, colour: turned(run.decoded(original))}
        return moving(panels, self.data.bones)

    def embeddings(self, left: str, right: str, sequence: int, count: int = 5, colour: str = "action") -> go.Figure:
        """Every sequence as a point of two planes, one for each run; a click on a point chooses its sequence.

        Args:
            left, right, sequence: as of `skeletons`.
            count: of the neighbours that are marked.
            colour: what tells points apart, "action" or "camera".
        """
        data, parts, marks = self.data, [], []
        groups = {"action": [data.actions[label] for label in data.labels],
                  "camera": [f"camera {view}" for view in data.views]}[colour]
        for side, run in {"left": self.load(left), "right": self.load(right)}.items():
            readouts = run.readouts.double().numpy()
            finder = NearestNeighbors(n_neighbors=count, metric="cosine").fit(readouts)  # as the 1-NN accuracy compares
            close = finder.kneighbors(return_distance=False)[sequence].tolist()
            alike = sum(groups[index] == groups[sequence] for index in close)
            with np.errstate(invalid="ignore"):  # of collapsed readouts there is no variance to share
                pca = PCA(2, svd_solver="full").fit(readouts)
            x, y = pca.transform(readouts).T
            title = (f"{side}: {run.label}\nlinear {run.result['linear']:.1f} %, 1-NN {run.result['knn1']:.1f} %\n"
                     f"{alike} of {len(close)} neighbours: same {colour}\n"
                     f"{100 * np.nan_to_num(pca.explained_variance_ratio_).sum():.0f} % of the variance in this plane")
            points = {"title": title, "x": x, "y": y, colour: groups, "said": self.said, "row": range(len(x))}
            parts.append(DataFrame(points))
            path = [index for near in close for index in (sequence, near)]
            marks.append(go.Scatter(x=x[path], y=y[path], mode="lines+markers", line={"color": INK, "width": 1},
                                    hoverinfo="skip", name="chosen and its neighbours", showlegend=side == "left",
                                    marker={"size": [15, 10] * count, "symbol": ["star", "circle-open"] * count}))
        figure = px.scatter(
            pd.concat(parts), x="x", y="y", color=colour, facet_col="title", hover_name="said", custom_data="row",
            render_mode="svg", color_discrete_sequence=px.colors.sample_colorscale("turbo", max(2, len(set(groups)))))
        figure.update_traces(marker_size=5, hovertemplate="%{hovertext}<extra></extra>")
        figure.update_xaxes(matches=None, title="").update_yaxes(matches=None, title="")
        figure.add_traces(marks, rows=[1, 1], cols=[1, 2])
        clickable = go.FigureWidget(_set(figure, height=560, width=60))
        for trace in clickable.data:
            trace.on_click(self._choose)
        return clickable

    def _choose(self, trace: go.Scatter, points: Any, state: object) -> None:
        if points.point_inds and trace.customdata is not None:
            self.shared["sequence"].value = int(trace.customdata[points.point_inds[0]][0])

    def targets(self, left: str, sequence: int, temperature: float = 0.1, key_temperature: float = 0.05,
                weight: float = 0.5) -> go.Figure:
        """What SCE and ReSSL ask of a run: query and key are its embeddings of two views of a sequence.

        Args:
            left: key of the run.
            sequence: its number.
            temperature, key_temperature, weight: of the objectives.
        """
        run, data = self.load(left), self.data
        query, key = run.embedded(explored_runs.augmented(self.sequences[sequence], run.recipe, seed=0)).split(1)
        order = torch.randperm(len(data.lengths), generator=torch.Generator().manual_seed(0))
        others = order[order != sequence][:KEYS]
        alike = data.labels[others] == data.labels[sequence]
        features = [part.double() for part in (query, key, run.embeddings[others])]
        table = target_distributions.distributions(
            *features, alike, temperature=temperature, key_temperature=key_temperature, weight=weight)
        for name, rows in table.groupby("objective"):
            loss = -(rows["target"] * np.log(rows["prediction"])).sum()
            table.loc[table["objective"] == name, "title"] = (
                f"{name}: {loss:.2f} nats, a target that is spread over {np.exp(entropy(rows['target'])):.1f} keys")
        panels = {"x": "key", "facet_col": "title", "facet_col_wrap": 1, "hover_data": ["similarity"], "labels": {
            "target": "share", "key": "key, the positive first, then the dictionary by falling similarity to it"}}
        figure = px.bar(table, y="target", color="kind", color_discrete_map=COLOURS, **panels)
        dots = px.scatter(table, y="prediction", color_discrete_sequence=[INK], **panels)
        dots.update_traces(name="prediction of the query").data[0].showlegend = True
        return _set(figure.add_traces(dots.data), height=560, width=90)


def seen_from(sequence: Tensor, azimuth: float, *, up: int = 2) -> np.ndarray:
    """Parallel projection of a sequence onto an upright plane.

    Args:
        sequence: (T, 3 J) coordinates, of which number `up` (1 or 2) is the vertical.
        azimuth: degrees by which the body is turned about the vertical; 0 is seen from the front.
        up: 2 in the body's own frame of reference, 1 in that of a camera.

    Returns:
        (T, J, 2), horizontal and up. A body that is zero throughout is not there: its joints are NaN.
    """
    joints, angle = sequence.numpy().reshape(len(sequence), -1, 3), math.radians(azimuth)
    horizontal = math.cos(angle) * joints[..., 0] + math.sin(angle) * joints[..., 3 - up]
    plane = np.stack([horizontal, joints[..., up]], axis=-1)
    plane[:, (joints == 0).all(axis=(0, 2))] = np.nan
    return plane


def moving(panels: Mapping[str, Mapping[str, np.ndarray]], bones: Sequence[tuple[int, int]]) -> go.Figure:
    """Skeletons beside one another at one scale, a frame of the figure for each of theirs.

    Args:
        panels: by title, and in it by colour, skeletons (T, J, 2) as of `seen_from`; the last is on top.
        bones: pairs of joints to connect.
    """
    parts = []
    for title, skeletons in panels.items():
        for colour, joints in skeletons.items():
            ends = joints[:, np.asarray(bones)]                                            # (T, B, 2, 2)
            lines = np.concatenate([ends, np.full_like(ends[:, :, :1], np.nan)], axis=2)   # with gaps between bones
            frame = np.repeat(np.arange(1, len(joints) + 1), 3 * len(bones))
            x, y = lines.reshape(-1, 2).T
            parts.append(DataFrame({"title": title, "colour": colour, "frame": frame, "x": x, "y": y}))
    rows = pd.concat(parts)
    low, high = rows[["x", "y"]].min(), rows[["x", "y"]].max()
    reach, middle = 0.54 * (high - low).max(), (low + high) / 2
    across, up = [[centre - reach, centre + reach] for centre in middle]
    figure = px.line(rows, x="x", y="y", color="colour", color_discrete_map="identity", facet_col="title",
                     animation_frame="frame", range_x=across, range_y=up)
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False).update_yaxes(scaleanchor="x", col=1)
    return _set(figure, height=400, width=16)


def selection(seed: int = 0) -> go.Figure:
    """Candidates as large as their chance to be drawn next, and those drawn; a panel for each strategy.

    A frame is a number of candidates that are drawn, from one to all that are selected.
    """
    figure = px.scatter(
        selection_steps.steps(seed), x="x", y="y", size="size", size_max=16, color="kind", color_discrete_map=COLOURS,
        facet_col="strategy", animation_frame="drawn", hover_data=["chance"])
    queries = selection_steps.pool().queries.T.numpy()
    figure.add_scatter(x=queries[0], y=queries[1], mode="markers", marker={"symbol": "x-thin-open", "color": INK},
                       name="query of the batch", showlegend=False, row="all", col="all")
    figure.data[-1].showlegend = True
    figure.update_xaxes(title="", constrain="domain")
    figure.update_yaxes(title="").update_yaxes(scaleanchor="x", col=1)
    return _set(figure, height=520, width=22)


def described(data: SkeletonSet, index: int) -> str:
    """What a sequence is, in a list of them."""
    part = "training" if data.train[index] else "test" if data.test[index] else "neither"
    return (f"{data.actions[data.labels[index]]}: person {data.subjects[index]}, camera {data.views[index]}, "
            f"{data.lengths[index]} frames, {part} split")


def _set(figure: go.Figure, height: int, width: int) -> go.Figure:
    """The figure so many pixels high, titles of panels in lines of so many characters, frames at `INTERVAL`."""
    for note in figure.layout.annotations:
        lines = note.text.partition("=")[2].split("\n")
        note.text = "<br>".join(html.escape(textwrap.fill(line, width)) for line in lines).replace("\n", "<br>")
    for menu in figure.layout.updatemenus:
        menu.buttons[0].args[1].update(frame={"duration": INTERVAL, "redraw": False}, transition={"duration": 0})
    return figure.update_layout(template="simple_white", height=height, margin={"t": 110, "l": 50, "r": 20},
                                font_size=11)
