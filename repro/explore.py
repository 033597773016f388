"""A look into trained skeleton models with a mouse, in JupyterLab: the widgets of `notebooks/explore.ipynb`.

A view is a picture with controls above it. The pictures come from `repro.report.views`,
`target_distributions` and `selection_steps`, what they show from finished runs by `explored_runs`.
"""

import base64
import functools
import html
import io
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch
import traitlets
from ipyevents import Event
from matplotlib.figure import Figure
from pandas import DataFrame

from repro import papers
from repro.data import manifest
from repro.papers.cmacc import selection_steps
from repro.papers.sce import target_distributions
from repro.papers.taxonomy import explored_runs
from repro.papers.taxonomy.explored_runs import ExploredRun
from repro.recipe import entry_name
from repro.report import views
from repro.report.style import BLUE, VERMILLION
from repro.run import device as devices
from repro.run.frames import lines_of
from repro.run.store import Store, read_description
from repro.skeleton.data import SkeletonSet
from repro.skeleton.study import data_of

RESOLUTION = 150              # dots per inch of pictures, for a screen
INTERVAL = 90                 # milliseconds between frames while playing
KEYS = 40                     # sequences that stand for the dictionary
REACH = 30                    # pixels of a picture from a point, within which a click means it


class Explorer:
    """The views of `notebooks/explore.ipynb`, made when they are first asked for; the first three share a choice.

    Settings, errors as for `explored_runs.cells`. What is missing of these cells is trained.
    """

    def __init__(self, **settings: str) -> None:
        planned = explored_runs.cells(**settings)
        device = devices.resolve(settings.get("device", "auto"))
        runs = explored_runs.available(planned, device)
        self.choice = Choice(explored_runs.part_of(data_of(planned[0].recipe)), runs, device)

    skeletons = functools.cached_property(lambda self: SkeletonView(self.choice))
    embeddings = functools.cached_property(lambda self: EmbeddingView(self.choice))
    targets = functools.cached_property(lambda self: TargetView(self.choice))
    training = functools.cached_property(lambda self: TrainingView(self.choice.available))
    selection = functools.cached_property(lambda self: SelectionView())


class Choice(traitlets.HasTraits):
    """The two runs and the sequence that all views look at, chosen with widgets that they share.

    Args:
        data: the sequences to choose from.
        runs: finished cells and their stores by key, the first two to begin with; at least one.
        device: where to compute.

    Attributes:
        current: keys of both runs and number of the sequence in the data; views are told when it changes.
        left, right, action, sequence: the widgets. `sequence` counts within the action.
        about: of how many the sequence is, and who performs it before which camera.
    """

    current = traitlets.Tuple()

    def __init__(self, data: SkeletonSet, runs: dict[str, tuple[dict, Store]], device: torch.device) -> None:
        super().__init__()
        self.data, self.available = data, runs
        self.load = functools.lru_cache(maxsize=4)(lambda key: explored_runs.load_run(*runs[key], data, device))
        first, second = [*runs, *runs][:2]
        options = [(explored_runs.label(cell), key) for key, (cell, _) in runs.items()]
        self.left = widgets.Dropdown(options=options, value=first, description="left run")
        self.right = widgets.Dropdown(options=options, value=second, description="right run")
        names = [(data.actions[label], label) for label in data.labels.unique().tolist()]
        self.action = widgets.Dropdown(options=names, description="action")
        self.sequence = _slider("chosen sequence", 0, 0, 0, 1)
        self.about = widgets.HTML()
        self.action.observe(self._rewind, "value")
        for widget in (self.left, self.right, self.sequence):
            widget.observe(self._settle, "value")
        self._rewind()

    @property
    def runs(self) -> list[ExploredRun]:
        """Both runs, loaded."""
        return [self.load(key) for key in self.current[:2]]

    @property
    def index(self) -> int:
        """The number of the sequence in the data."""
        return self.current[2]

    def choose(self, index: int) -> None:
        """Choose the sequence of that number in the data; views are told once."""
        with self.hold_trait_notifications():
            self.action.value = int(self.data.labels[index])
            self.sequence.value = self._members().index(index)

    def _members(self) -> list[int]:
        return (self.data.labels == self.action.value).nonzero().flatten().tolist()

    def _rewind(self, change: object = None) -> None:
        """Begin with the first sequence of another action."""
        self.sequence.value = 0
        self.sequence.max = len(self._members()) - 1
        self._settle()

    def _settle(self, change: object = None) -> None:
        """Tell the views what is chosen now."""
        index = self._members()[self.sequence.value]
        part = "training" if self.data.train[index] else "test" if self.data.test[index] else "neither"
        action = html.escape(self.data.actions[self.action.value])
        self.about.value = (
            f"chosen, of {self.sequence.max + 1} sequences of <i>{action}</i>: "
            f"person {self.data.subjects[index]}, camera {self.data.views[index]}, "
            f"{self.data.lengths[index]} frames, {part} split"
        )
        self.current = (self.left.value, self.right.value, index)


class View(widgets.VBox):
    """Controls above a picture. Where widgets are not shown, an executed notebook has the picture it began with.

    Args:
        name: the picture has the CSS class `<name>-view`, the whole `<name>-explorer`.
        rows: of controls, from top to bottom.
        watched: those of them that draw it anew; besides, another choice does.
        choice: what it shows, if that is chosen; its controls come first and move together in several views.
    """

    def __init__(
        self, name: str, rows: list[list[widgets.Widget]], watched: list[widgets.Widget], choice: Choice | None = None
    ) -> None:
        self.choice = choice
        self.picture = _image()
        self.picture.add_class(f"{name}-view")
        shared = [[choice.left, choice.right], [choice.action, choice.sequence], [choice.about]] if choice else []
        super().__init__([*map(widgets.HBox, [*shared, *rows]), self.picture])
        self.add_class(f"{name}-explorer")
        for control in watched:
            control.observe(self.draw, "value")
        if choice:
            choice.observe(self.draw, "current")
        self.draw()

    def draw(self, change: object = None) -> None:
        """Put what is chosen into the picture."""

    def show(self, figure: Figure) -> None:
        """Put a figure into the picture."""
        file = io.BytesIO()
        figure.savefig(file, dpi=RESOLUTION, pil_kwargs={"compress_level": 1})
        self.picture.value = file.getvalue()

    def _repr_mimebundle_(self, **options: object) -> dict:
        return super()._repr_mimebundle_(**options) | {"image/png": base64.b64encode(self.picture.value).decode()}


class SkeletonView(View):
    """A sequence, two augmented views of it and what both runs decode it to, moving."""

    def __init__(self, choice: Choice) -> None:
        self.views_drawn = 0
        self.frame = widgets.IntSlider(description="frame")
        self.play = widgets.Play(interval=INTERVAL, repeat=True)
        self.azimuth = _slider("turn (degrees)", 0, -90, 90, 15)
        self.again = widgets.Button(description="new views")
        widgets.jslink((self.play, "value"), (self.frame, "value"))
        super().__init__("skeleton", [[self.play, self.frame], [self.azimuth, self.again]], [self.azimuth], choice)
        self.frame.observe(self._show_frame, "value")
        self.again.on_click(self._augment)

    def _augment(self, button: widgets.Button) -> None:
        self.views_drawn += 1
        self.draw()

    def draw(self, change: object = None) -> None:
        """Draw what stands still, then the frame shown, or the last of a shorter sequence."""
        choice, (left, right) = self.choice, self.choice.runs
        sequence = explored_runs.sequence_of(choice.data, choice.index)
        up, units = explored_runs.reference(left.recipe)
        pair = explored_runs.augmented(sequence, left.recipe, self.views_drawn)
        original, first, second, by_left, by_right = (
            views.seen_from(joints.numpy(), self.azimuth.value, up=up)
            for joints in (sequence, *pair, left.decoded(sequence), right.decoded(sequence))
        )
        panels = [views.Panel("input", original), views.Panel("augmented view 1", first),
                  views.Panel("augmented view 2", second)]
        for run, joints, colour in ((left, by_left, BLUE), (right, by_right, VERMILLION)):
            untrained = "" if run.recipe.trains_decoder else " (decoder untrained)"
            panels.append(views.Panel(f"decoded by {run.label}{untrained}", joints, colour, original))
        self.animation = views.Animation(panels, choice.data.bones, units)
        self.frame.max = self.play.max = self.animation.frames - 1
        self._show_frame()

    def _show_frame(self, change: object = None) -> None:
        self.picture.value = self.animation.picture(self.frame.value)


class EmbeddingView(View):
    """The readouts of both runs in the plane of their largest variance, and the neighbours of the chosen sequence.

    A click on a point chooses its sequence. Below the planes, the chosen one moves.
    """

    def __init__(self, choice: Choice) -> None:
        self.colour = widgets.Dropdown(options=("action", "camera"), description="colour by")
        self.count = _slider("neighbours", 5, 1, 20, 1)
        self.plane = functools.lru_cache(maxsize=4)(lambda key: views.principal_plane(choice.load(key).readouts))
        controls = [self.colour, self.count]
        self.film = _image()
        self.moving = functools.lru_cache(maxsize=1)(self._moving)
        super().__init__("embedding", [controls], controls, choice)
        self.children = (*self.children, self.film)
        self.clicks = Event(source=self.picture, watched_events=["click"])
        self.clicks.on_dom_event(self._pick)

    def _pick(self, event: dict[str, Any]) -> None:
        """Choose the sequence whose point is nearest to a click on the picture."""
        away = np.linalg.norm(self.places - [event["dataX"], event["dataY"]], axis=2).min(0)
        if away.min() < REACH:
            self.choice.choose(int(away.argmin()))

    def _moving(self, index: int) -> bytes:
        """The film of a sequence as the left run's encoder takes it."""
        data, (up, units) = self.choice.data, explored_runs.reference(self.choice.runs[0].recipe)
        joints = views.seen_from(explored_runs.sequence_of(data, index).numpy(), 0, up=up)
        panel = views.Panel(f"chosen: {data.actions[data.labels[index]]}", joints)
        return views.Animation([panel], data.bones, units).film(INTERVAL)

    def draw(self, change: object = None) -> None:
        data, index, keys = self.choice.data, self.choice.index, self.choice.current[:2]
        embeddings = [
            views.Embedding(f"{run.label}\nlinear {run.result['linear']:.1f} %, 1-NN {run.result['knn1']:.1f} %",
                            self.plane(key), views.neighbours(run.readouts, index, self.count.value))
            for key, run in zip(keys, self.choice.runs, strict=True)
        ]
        groups, names = data.labels, data.actions
        if self.colour.value == "camera":
            groups, names = data.views - 1, [f"camera {number}" for number in range(1, int(data.views.max()) + 1)]
        figure = views.embedding_planes(embeddings, groups, names, index, self.colour.value)
        self.show(figure)
        self.places = views.places(figure, embeddings, RESOLUTION)
        self.film.value = self.moving(index)


class TargetView(View):
    """What SCE and ReSSL would ask of the left run: query and key are its embeddings of two views of the sequence."""

    def __init__(self, choice: Choice) -> None:
        self.temperature = _logarithmic("temperature", 0.1)
        self.key_temperature = _logarithmic("key temperature", 0.05)
        self.weight = _slider("weight", 0.5, 0.0, 1.0, 0.05, kind=widgets.FloatSlider)
        sliders = [self.temperature, self.key_temperature, self.weight]
        super().__init__("target", [sliders], sliders, choice)

    def draw(self, change: object = None) -> None:
        choice, run = self.choice, self.choice.runs[0]
        sequence = explored_runs.sequence_of(choice.data, choice.index)
        query, key = run.embedded(explored_runs.augmented(sequence, run.recipe, seed=0)).split(1)
        order = torch.randperm(len(choice.data.lengths), generator=torch.Generator().manual_seed(0))
        others = order[order != choice.index][:KEYS]
        alike = choice.data.labels[others] == choice.data.labels[choice.index]
        features, weight = (query, key, run.embeddings[others]), self.weight.value
        settings = {"temperature": self.temperature.value, "key_temperature": self.key_temperature.value}
        table = target_distributions.distributions(*features, alike, **settings, weight=weight)
        values = target_distributions.losses(*features, **settings, weight=weight)
        self.show(target_distributions.target_distributions(table, values, weight))


class TrainingView(View):
    """What was logged along the training of any two cells of REPRO_RUNS, of whichever table, beside one another."""

    def __init__(self, first: dict[str, tuple[dict, Store]]) -> None:
        explored = [store.folder(key) for key, (_, store) in first.items()]
        everywhere = sorted(path.parent for path in manifest.runs_root().glob("*/*/recipe.json"))
        options = _logged([*explored, *everywhere]) or {"no cell has a log": None}
        begun = [*options.values()] * 2
        self.left = widgets.Dropdown(options=options, value=begun[0], description="left cell")
        self.right = widgets.Dropdown(options=options, value=begun[1], description="right cell")
        super().__init__("training", [[self.left, self.right]], [self.left, self.right])

    def draw(self, change: object = None) -> None:
        self.show(views.training_curves([
            (side.label, *(_log(side.value, name) for name in ("progress.jsonl", "probes.jsonl")))
            for side in (self.left, self.right)
        ]))


class SelectionView(View):
    """Negatives selected one by one from a pool in the plane, at random and actively."""

    def __init__(self) -> None:
        self.pool = selection_steps.pool()
        self.drawn = _slider("drawn", 1, 0, selection_steps.LARGEST, 1)
        self.seed = _slider("seed", 0, 0, 19, 1)
        self.play = widgets.Play(value=1, max=selection_steps.LARGEST, interval=700)
        widgets.jslink((self.play, "value"), (self.drawn, "value"))
        super().__init__("selection", [[self.play, self.drawn, self.seed]], [self.drawn, self.seed])

    def draw(self, change: object = None) -> None:
        steps = {}
        for strategy in selection_steps.TITLES:
            order = selection_steps.order(strategy, self.pool, self.seed.value)
            steps[strategy] = selection_steps.step(strategy, self.pool, order[: self.drawn.value])
        self.show(selection_steps.selection_steps(self.pool, steps))


def _logged(folders: list[Path]) -> dict[str, Path]:
    """Those of the folders of cells that have a log of their training, by what they are called."""
    named_by = {table.study.name: table.study.recipe.named_by for table in papers.tables().values()}
    logged = {}
    for folder in folders:
        if (folder / "progress.jsonl").exists():
            cell = read_description(folder / "recipe.json")
            trained = entry_name(cell["recipe"].get(named_by.get(cell["study"]), ""), cell["changes"] or {})
            about = trained, f"seed {cell['seed']}", cell["preset"], f"{cell['dataset']} ({cell['key'][:4]})"
            logged[", ".join(filter(None, about))] = folder
    return logged


def _log(folder: Path | None, name: str) -> DataFrame:
    """The numbers of a log of a cell by step; none where it has no such log."""
    path = folder / name if folder else None
    if path is None or not path.exists():
        return DataFrame()
    if not path.read_text(encoding="utf-8"):  # before the first report
        return DataFrame()
    return DataFrame(lines_of(path))


def _image() -> widgets.Image:
    """A picture in its own size, unless that is wider than the page."""
    return widgets.Image(layout=widgets.Layout(max_width="100%", align_self="flex-start"))


def _slider(
    description: str, value: float, least: float, most: float, step: float, kind: type = widgets.IntSlider
) -> widgets.Widget:
    return kind(value=value, min=least, max=most, step=step, description=description, continuous_update=False,
                style={"description_width": "initial"})


def _logarithmic(description: str, value: float) -> widgets.FloatLogSlider:
    """A temperature from 0.01 to 1."""
    return widgets.FloatLogSlider(value=value, min=-2, max=0, step=0.05, description=description, readout_format=".3f",
                                  continuous_update=False, style={"description_width": "initial"})
