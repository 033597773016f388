"""A look into trained skeleton models with a mouse, in JupyterLab: the four views of `notebooks/explore.ipynb`.

A view is a figure of plotly below the controls that it follows. What it shows comes from finished runs by
`explored_runs`, and from `target_distributions` and `selection_steps`.
"""

import functools
import html
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets as widgets
import matplotlib
import numpy as np
import plotly.graph_objects as go
import torch
from pandas import DataFrame
from plotly.subplots import make_subplots
from sklearn.decomposition import PCA
from torch import Tensor
from torch.nn import functional

from repro.papers.cmacc import selection_steps
from repro.papers.cmacc.selection_steps import LARGEST, SIZES, TITLES
from repro.papers.sce.target_distributions import KINDS, distributions, losses, perplexity
from repro.papers.taxonomy import explored_runs
from repro.papers.taxonomy.explored_runs import ExploredRun
from repro.report.style import BLUE, GREY, INK, PALE, VERMILLION
from repro.run import device as devices
from repro.skeleton.data import SkeletonSet
from repro.skeleton.study import data_of

INTERVAL = 90         # milliseconds between frames
KEYS = 40             # sequences that stand for the dictionary
NAMED = 12            # groups of points that a legend lists
MARKERS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star")  # of the groups, ten by ten
BARS = dict(zip(KINDS, (VERMILLION, BLUE, GREY), strict=True))


class Explorer:
    """The views, made when they are first asked for; the first three share runs and sequence.

    Settings, errors as for `explored_runs.cells`. What is missing of these cells is trained.
    """

    def __init__(self, **settings: Any) -> None:
        planned = explored_runs.cells(**settings)
        device = devices.resolve(settings.get("device", "auto"))
        runs = explored_runs.available(planned, device)
        self.data = explored_runs.part_of(data_of(planned[0].recipe))
        self.load = functools.lru_cache(maxsize=4)(lambda key: explored_runs.load_run(runs[key], self.data, device))
        first, second = [*runs, *runs][:2]
        options = [(explored_runs.label(cell), key) for key, cell in runs.items()]
        self.left = widgets.Dropdown(options=options, value=first, description="left run")
        self.right = widgets.Dropdown(options=options, value=second, description="right run")
        order = self.data.labels.argsort(stable=True).tolist()
        self.sequence = widgets.SelectionSlider(
            options=[(described(self.data, index), index) for index in order], description="sequence",
            continuous_update=False, layout=widgets.Layout(width="99%"))
        self.shared = {"left": self.left, "right": self.right, "sequence": self.sequence}

    @functools.cached_property
    def skeletons(self) -> "View":
        """A sequence, two augmented views of it and what both runs decode it to, moving."""
        return View(self._skeletons, **self.shared, turn=_slider("turn (degrees)", 0, -90, 90, 15),
                    views=_slider("views drawn", 0, 0, 20, 1))

    def _skeletons(self, left: str, right: str, sequence: int, turn: int, views: int) -> go.Figure:
        runs, original = [self.load(left), self.load(right)], explored_runs.sequence_of(self.data, sequence)
        up, units = explored_runs.reference(runs[0].recipe)
        turned = functools.partial(seen_from, azimuth=turn, up=up)
        first, second = explored_runs.augmented(original, runs[0].recipe, seed=views).numpy()
        shown = turned(original.numpy())
        panels = {"input": [(shown, INK)], "augmented view 1": [(turned(first), INK)],
                  "augmented view 2": [(turned(second), INK)]}
        for side, run, colour in zip(("left", "right"), runs, (BLUE, VERMILLION), strict=True):
            untrained = "" if run.recipe.trains_decoder else " (decoder untrained)"
            decoded = turned(run.decoded(original).numpy())
            panels[f"{side}: decoded by {run.label}{untrained}"] = [(shown, PALE), (decoded, colour)]
        return moving(panels, self.data.bones, units)

    @functools.cached_property
    def embeddings(self) -> "View":
        """Every sequence as a point of two planes, one for each run; a click on a point chooses its sequence."""
        colour = widgets.ToggleButtons(options=["action", "camera"], description="coloured by")
        count = _slider("neighbours", 5, 1, 20, 1)
        return View(self._embeddings, self._choose, **self.shared, count=count, colour=colour)

    def _choose(self, sequence: int) -> None:
        self.sequence.value = sequence

    def _embeddings(self, left: str, right: str, sequence: int, count: int, colour: str) -> go.Figure:
        groups, names = self.data.labels, self.data.actions
        if colour == "camera":
            groups, names = self.data.views - 1, [f"camera {n}" for n in range(1, int(self.data.views.max()) + 1)]
        return planes([self.load(left), self.load(right)], groups, names, sequence, count, colour)

    @functools.cached_property
    def targets(self) -> "View":
        """What SCE and ReSSL ask of the left run: query and key are its embeddings of two views of the sequence."""
        weight = _slider("weight", 0.5, 0.0, 1.0, 0.05, kind=widgets.FloatSlider)
        return View(self._targets, left=self.left, sequence=self.sequence, temperature=_temperature("temperature", 0.1),
                    key_temperature=_temperature("key temperature", 0.05), weight=weight)

    def _targets(self, left: str, sequence: int, **settings: float) -> go.Figure:
        run, data = self.load(left), self.data
        pair = explored_runs.augmented(explored_runs.sequence_of(data, sequence), run.recipe, seed=0)
        query, key = run.embedded(pair).split(1)
        order = torch.randperm(len(data.lengths), generator=torch.Generator().manual_seed(0))
        others = order[order != sequence][:KEYS]
        alike = data.labels[others] == data.labels[sequence]
        features = query, key, run.embeddings[others]
        return target_shares(distributions(*features, alike, **settings), losses(*features, **settings),
                             settings["weight"])

    @functools.cached_property
    def selection(self) -> "View":
        """Negatives selected one by one from a pool in the plane, at random and actively."""
        return View(selection, seed=_slider("seed", 0, 0, 19, 1))


class View(widgets.VBox):
    """Controls above a figure that follows them. Pages without a kernel have the figure as it is, see `docs/conf.py`.

    Args:
        draw: the figure of the controls' values; one with frames has a button that plays them.
        choose: called with the `customdata` of a point that is clicked.
        controls: by the names of the arguments of `draw`; they may be in other views too.
    """

    def __init__(
        self, draw: Callable[..., go.Figure], choose: Callable[[int], None] | None = None, **controls: widgets.Widget
    ) -> None:
        self._draw, self._choose = draw, choose
        self.drawn, self.figure = go.Figure(), go.FigureWidget()
        self.frame = _slider("frame", 0, 0, 0, 1)
        play = widgets.Play(interval=INTERVAL, repeat=True)
        widgets.jslink((play, "value"), (self.frame, "value"))
        widgets.link((self.frame, "max"), (play, "max"))
        self.frame.observe(self._show_frame, "value")
        self.controls = widgets.interactive(self._show, **controls)
        self.controls.layout.flex_flow = "row wrap"
        self.controls.update()
        players = [widgets.HBox([play, self.frame])] if self.drawn.frames else []
        super().__init__([self.controls, *players, self.figure])

    def _show(self, **values: Any) -> None:
        self.drawn = self._draw(**values)
        with self.figure.batch_update():
            self.figure.data = ()
            self.figure.add_traces(self.drawn.data)
            self.figure.update_layout(self.drawn.layout, overwrite=True)
        if self._choose is not None:
            for trace in self.figure.data:
                trace.on_click(self._clicked)
        self.frame.max = max(0, len(self.drawn.frames) - 1)
        self._show_frame()

    def _show_frame(self, change: object = None) -> None:
        if self.drawn.frames:
            _show(self.figure, self.drawn.frames[self.frame.value])

    def _clicked(self, trace: go.Scatter, points: Any, state: object) -> None:
        if points.point_inds and trace.customdata is not None:
            self._choose(int(trace.customdata[points.point_inds[0]]))

    def _repr_mimebundle_(self, **options: object) -> dict[str, Any]:
        page = html.escape(self.drawn.to_json())
        return super()._repr_mimebundle_(**options) | {"text/html": f'<div data-figure="{page}"></div>'}


def seen_from(sequence: np.ndarray, azimuth: float, *, up: int = 2) -> np.ndarray:
    """Parallel projection of a sequence onto an upright plane.

    Args:
        sequence: (T, J, 3) or (T, 3 J) coordinates, of which number `up` (1 or 2) is the vertical.
        azimuth: degrees by which the body is turned about the vertical; 0 is seen from the front.
        up: 2 in the body's own frame of reference, 1 in that of a camera.

    Returns:
        (T, J, 2), horizontal and up. A body that is zero throughout is not there: its joints are NaN.
    """
    joints = np.asarray(sequence, dtype=float).reshape(len(sequence), -1, 3)
    angle = math.radians(azimuth)
    horizontal = math.cos(angle) * joints[..., 0] + math.sin(angle) * joints[..., 3 - up]
    plane = np.stack([horizontal, joints[..., up]], axis=-1)
    plane[:, (joints == 0).all(axis=(0, 2))] = np.nan
    return plane


def moving(panels: Mapping[str, Sequence[tuple[np.ndarray, str]]], bones: Sequence[tuple[int, int]],
           units: str) -> go.Figure:
    """Skeletons beside one another, a frame of the figure for each of theirs.

    Every panel is drawn to the first panel's scale, unless its own skeleton is larger.

    Args:
        panels: by title skeletons, (T, J, 2) as of `seen_from`, with their colours; the last is on top.
        bones: pairs of joints to connect.
        units: of the coordinates, in words.
    """
    figure, layers, reach = _beside([*panels], 16, 330), [], 0.0
    for column, skeletons in enumerate(panels.values(), start=1):
        joints, _ = skeletons[-1]
        low, high = (extreme(joints.reshape(-1, 2), axis=0) for extreme in (np.nanmin, np.nanmax))
        own = 0.54 * (high - low).max() or 1.0  # of a single point
        reach = own if column == 1 else reach
        ranges = (low + high)[:, None] / 2 + max(own, reach) * np.array([-1, 1])
        figure.update_xaxes(range=ranges[0], constrain="domain", col=column)
        figure.update_yaxes(range=ranges[1], constrain="domain", scaleanchor=f"x{column}", col=column)
        for joints, colour in skeletons:
            ends = joints[:, np.asarray(bones)]                                            # (T, B, 2, 2)
            gaps = np.full_like(ends[:, :, :1], np.nan)
            layers.append(np.concatenate([ends, gaps], axis=2).reshape(len(joints), -1, 2).astype("float32"))
            figure.add_scatter(mode="lines", line_color=colour, hoverinfo="skip", showlegend=False, row=1, col=column)
    figure.update_xaxes(title=f"horizontal ({units})", col=1)
    figure.update_yaxes(title=f"up ({units})", col=1)
    frames = [go.Frame(data=[go.Scatter(x=lines[:, 0], y=lines[:, 1]) for lines in shown], traces=[*range(len(layers))])
              for shown in zip(*layers, strict=True)]
    return _with_frames(figure, frames)


def neighbours(points: Tensor, chosen: int, count: int) -> Tensor:
    """The nearest points to one of them by cosine, as the 1-NN accuracy compares readouts; itself left out.

    Args:
        points: (n, d), any scale.
        chosen: 0 to n - 1.
        count: at least 1; of fewer others, all.

    Returns:
        (count,) rows, the nearest first, of equally near ones the earlier.
    """
    unit = functional.normalize(points.double().cpu(), dim=1)
    order = (unit @ unit[chosen]).argsort(descending=True, stable=True)
    return order[order != chosen][:count]


def planes(
    runs: Sequence[ExploredRun], groups: Tensor, names: Sequence[str], chosen: int, count: int, of: str
) -> go.Figure:
    """Every readout as a point of the plane in which a run's differ most; a star marks one, rings its neighbours.

    Args:
        runs: with readouts of the same n sequences, a panel each.
        groups: (n,) in 0..len(names) - 1, told apart by colour, and by marker where there are more than ten.
        names: of the groups; a legend lists them if they are few.
        chosen: the point to mark, 0 to n - 1.
        count: of neighbours.
        of: what a group is, in the singular: "action".
    """
    nearest = [neighbours(run.readouts, chosen, count).numpy() for run in runs]
    titles = []
    for run, close in zip(runs, nearest, strict=True):
        alike = int((groups[close] == groups[chosen]).sum())
        titles.append(f"{run.label}\nlinear {run.result['linear']:.1f} %, 1-NN {run.result['knn1']:.1f} %\n"
                      f"{alike} of {len(close)} neighbours: same {of}")
    figure, colours = _beside(titles, 60, 520), matplotlib.color_sequences["petroff10"]
    for column, (run, close) in enumerate(zip(runs, nearest, strict=True), start=1):
        readouts, place = run.readouts.double().numpy(), {"row": 1, "col": column}
        with np.errstate(invalid="ignore"):  # of collapsed ones there is no variance to share
            pca = PCA(2, svd_solver="full").fit(readouts)
        points = pca.transform(readouts)
        for group in groups.unique().tolist():
            members = (groups == group).nonzero().flatten().numpy()
            look = {"size": 5, "color": matplotlib.colors.to_hex(colours[group % 10]),
                    "symbol": MARKERS[group // 10 % len(MARKERS)]}
            figure.add_scatter(x=points[members, 0], y=points[members, 1], customdata=members, mode="markers",
                               marker=look, name=names[group], legendgroup=group, hoverinfo="name",
                               showlegend=column == 1 and len(names) <= NAMED, **place)
        star = points[chosen]
        for x, y in points[close]:
            figure.add_scatter(x=[x, star[0]], y=[y, star[1]], mode="lines+markers", showlegend=False, hoverinfo="skip",
                               line={"color": INK, "width": 1}, **place,
                               marker={"size": [10, 0], "symbol": "circle-open", "color": INK})
        figure.add_scatter(x=star[:1], y=star[1:], mode="markers", name="chosen, with rings around its neighbours",
                           marker={"size": 15, "symbol": "star", "color": INK, "line": {"color": "white", "width": 1}},
                           hoverinfo="skip", showlegend=column == 1, **place)
        first, second = (f"{number}. principal component ({100 * share:.0f} % of variance)"
                         for number, share in enumerate(np.nan_to_num(pca.explained_variance_ratio_), start=1))
        figure.update_xaxes(title=first, col=column)
        figure.update_yaxes(title=second, col=column)
    return figure


def target_shares(table: DataFrame, values: dict[str, float], weight: float) -> go.Figure:
    """Targets as bars, the prediction as dots; SCE above ReSSL.

    Args:
        table: of `distributions`.
        values: of `losses`.
        weight: of both.
    """
    spread = {name: perplexity(table[f"{name.lower()}_target"]) for name in ("SCE", "ReSSL")}
    figure = _beside([f"{name}: the target is spread over {number:.1f} keys (perplexity)"
                      for name, number in spread.items()], 90, 520, rows=2)
    for row, name in enumerate(spread, start=1):
        for kind, colour in BARS.items():
            shares = table.loc[table["kind"] == kind, f"{name.lower()}_target"]
            figure.add_bar(x=shares.index, y=shares, marker_color=colour, name=f"target, {kind}",
                           showlegend=row == 1, row=row, col=1)
        figure.add_scatter(x=table.index, y=table[f"{name.lower()}_prediction"], mode="markers", marker_color=INK,
                           name="prediction of the query", showlegend=row == 1, row=row, col=1)
    figure.update_yaxes(title="share", rangemode="tozero")
    figure.update_xaxes(tickvals=table.index[::8], ticktext=[f"{value:.2f}" for value in table["similarity"][::8]])
    figure.update_xaxes(title="positive key, then the dictionary by falling similarity to it", row=2)
    title = (f"SCE {values['SCE']:.2f} = {weight:.2f} x InfoNCE {values['InfoNCE']:.2f} + {1 - weight:.2f} x "
             f"(ReSSL {values['ReSSL']:.2f} + Ceil {values['Ceil']:.2f}) nats")
    return figure.update_layout(title=title, barmode="overlay")


def selection(seed: int) -> go.Figure:
    """Candidates coloured by their chance to be drawn next, and those drawn; a panel for each strategy.

    A frame is a number of candidates that are drawn, from one to all that are selected.
    """
    pool = selection_steps.pool()
    candidates, queries = pool.candidates.numpy(), pool.queries.numpy()
    figure = _beside([*TITLES.values()], 30, 420)
    for column in range(1, len(TITLES) + 1):
        place = {"mode": "markers", "row": 1, "col": column, "showlegend": column == 1}
        figure.add_scatter(x=candidates[:, 0], y=candidates[:, 1], name="candidate", **place,
                           marker={"size": 5, "coloraxis": "coloraxis"}, hovertemplate="%{marker.color:.2f} %")
        figure.add_scatter(x=queries[:, 0], y=queries[:, 1], name="query of the batch",
                           marker={"symbol": "x-thin", "line": {"color": INK, "width": 1}}, **place)
        figure.add_scatter(name="drawn, the last one larger", marker_color=VERMILLION, **place)
        figure.update_yaxes(scaleanchor=f"x{column}", constrain="domain", col=column)
    figure.update_layout(coloraxis={"colorscale": "viridis", "reversescale": True, "colorbar_title": "chance (%)"})
    orders, frames = {strategy: selection_steps.order(strategy, pool, seed) for strategy in TITLES}, []
    for count in range(1, LARGEST + 1):
        data, layout, sizes = [], {}, [7] * (count - 1) + [13]
        for column, (strategy, order) in enumerate(orders.items(), start=1):
            drawn = order[:count]
            places, categories = candidates[drawn.numpy()], len(pool.categories[drawn].unique())
            data.append(go.Scatter(marker_color=100 * selection_steps.chances(strategy, pool, drawn).numpy()))
            data.append(go.Scatter(x=places[:, 0], y=places[:, 1], marker_size=sizes))
            layout[f"xaxis{column}"] = {"title": {"text": f"{count} drawn, {categories} of {len(SIZES)} categories"}}
        frames.append(go.Frame(data=data, layout=layout, traces=[0, 2, 3, 5, 6, 8]))
    return _with_frames(figure, frames)


def described(data: SkeletonSet, index: int) -> str:
    """What a sequence is, in a list of them."""
    part = "training" if data.train[index] else "test" if data.test[index] else "neither"
    return (f"{data.actions[data.labels[index]]}: person {data.subjects[index]}, camera {data.views[index]}, "
            f"{data.lengths[index]} frames, {part} split")


def _beside(titles: Sequence[str], width: int, height: int, rows: int = 1) -> go.Figure:
    """Empty panels with titles, of lines of at most so many characters."""
    lines = ["<br>".join(textwrap.fill(html.escape(line), width) for line in title.split("\n")).replace("\n", "<br>")
             for title in titles]
    figure = make_subplots(rows, len(titles) // rows, subplot_titles=lines)
    figure.update_annotations(font_size=11)
    return figure.update_layout(template="simple_white", height=height, margin={"t": 100, "b": 40, "l": 50, "r": 20},
                                font_size=11, legend={"orientation": "h", "y": -0.2})


def _with_frames(figure: go.Figure, frames: Sequence[go.Frame]) -> go.Figure:
    """The figure with frames, as the first of them shows it."""
    figure.frames = frames
    _show(figure, frames[0])
    return figure


def _show(figure: go.Figure, frame: go.Frame) -> None:
    """Show a frame in a figure."""
    with figure.batch_update():
        for number, moved in zip(frame.traces, frame.data, strict=True):
            figure.data[number].update(moved)
        figure.update_layout(frame.layout)


def _slider(description: str, value: float, least: float, most: float, step: float,
            kind: type = widgets.IntSlider) -> widgets.Widget:
    return kind(value=value, min=least, max=most, step=step, description=description, continuous_update=False,
                style={"description_width": "initial"})


def _temperature(description: str, value: float) -> widgets.FloatLogSlider:
    """A temperature from 0.01 to 1."""
    return widgets.FloatLogSlider(value=value, min=-2, max=0, step=0.05, description=description, readout_format=".3f",
                                  continuous_update=False, style={"description_width": "initial"})
