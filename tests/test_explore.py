"""The explorer: its figures read back as points, by their definitions, and views that follow every control."""

import html
import itertools
import json
import math
import re
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch
from ntu_files import FIRST, body, recording, text
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity
from smoke_runs import smoke_runs

from repro import explore
from repro.data import manifest
from repro.papers.cmacc import selection_steps
from repro.papers.cmacc.selection_steps import LARGEST
from repro.papers.taxonomy.explored_runs import augmented
from repro.report.style import BLUE, INK, PALE, VERMILLION
from repro.skeleton import ntu

GREEN, RED = "#00ff00", "#ff0000"


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    """Of AD, CE+AD and random initialisation, finished below REPRO_RUNS; the first two are asked for."""
    root = tmp_path_factory.mktemp("runs")
    smoke_runs(root, "random,AD,CE+AD")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(root))
        yield explore.Explorer(preset="smoke", objectives="CE+AD,AD", device="cpu")


@pytest.fixture(scope="module")
def views(explorer):
    """The four views as the notebook makes them."""
    cells = nbformat.read(manifest.project_root() / "notebooks" / "explore.ipynb", as_version=4).cells
    names = {"explorer": explorer, "shared": explorer.shared}
    exec("from ipywidgets import FloatLogSlider\nfrom repro.explore import View, selection", names)
    made = []
    for source in (cell.source for cell in cells if "View(" in cell.source and "import" not in cell.source):
        before, _, view = source.rpartition("View(")
        exec(before, names)
        made.append(eval(f"View({view}", names))
    return dict(zip(("skeletons", "embeddings", "targets", "selection"), made, strict=True))


@pytest.fixture
def begun(explorer):
    """The explorer as it begins."""
    for control, index in zip(explorer.shared.values(), (0, 1, 0), strict=True):
        control.index = index
    return explorer


def values(explorer):
    return {name: control.value for name, control in explorer.shared.items()}


def points(trace):
    return np.stack([np.asarray(trace.x, dtype=float), np.asarray(trace.y, dtype=float)], axis=1)


def titles(figure):
    return [annotation.text.replace("<br>", " ") for annotation in figure.layout.annotations]


@pytest.mark.parametrize("azimuth", [0, 30, 90, -45])
def test_seen_from_turns_about_the_vertical(azimuth):
    joints, angle = torch.randn(4, 3, 3, generator=torch.Generator().manual_seed(0)).double(), math.radians(azimuth)
    x, y, z = joints.numpy().transpose(2, 0, 1)
    turned = explore.seen_from(joints.flatten(1), azimuth)
    np.testing.assert_allclose(turned[..., 0], x * np.cos(angle) + y * np.sin(angle))
    np.testing.assert_array_equal(turned[..., 1], z)
    np.testing.assert_allclose(explore.seen_from(joints.flatten(1), 90, up=1), joints[..., [2, 1]], atol=1e-12)
    joints[:, 2] = 0
    joints[0, 0] = 0  # a joint at the origin once is one, a body that is always there is not
    seen = explore.seen_from(joints.flatten(1), azimuth)
    assert np.isnan(seen[:, 2]).all() and not np.isnan(seen[:, :2]).any()


def test_a_frame_holds_the_bones_of_every_skeleton_at_one_scale():
    small = np.random.default_rng(0).uniform(-1, 1, size=(5, 3, 2))
    figure = explore.moving({"a": {GREEN: small}, "b=c": {GREEN: small, RED: 10 * small}}, [(0, 2), (1, 2)])
    assert titles(figure) == ["a", "b=c"] and [frame.name for frame in figure.frames] == ["1", "2", "3", "4", "5"]
    for number, frame in enumerate(figure.frames):
        for trace, colour, skeleton in zip(frame.data, (GREEN, GREEN, RED), (small, small, 10 * small), strict=True):
            expected = skeleton[number]
            np.testing.assert_allclose(points(trace)[[0, 1, 3, 4]], expected[[0, 2, 1, 2]])
            assert trace.line.color == colour and np.isnan(points(trace)[[2, 5]]).all()
    np.testing.assert_array_equal(points(figure.data[2]), points(figure.frames[0].data[2]))
    for name, largest in (("xaxis", 10 * small[..., 0]), ("yaxis", 10 * small[..., 1])):
        low, high = figure.layout[name].range
        assert low < largest.min() and largest.max() < high
        assert high - low == pytest.approx(1.08 * np.ptp(10 * small, (0, 1)).max())


def test_skeletons_are_the_sequence_two_views_of_it_and_what_is_decoded(begun):
    given = values(begun)
    figure = begun.skeletons(**given, views=3)
    left, right, original = begun.load(given["left"]), begun.load(given["right"]), begun.sequences[given["sequence"]]
    first, second = augmented(original, left.recipe, seed=3)
    drawn = {(trace.xaxis, trace.line.color): points(trace) for trace in figure.frames[-1].data}
    joints = [joint for first, second in begun.data.bones for joint in (first, second, first)]
    gaps = np.arange(len(joints)) % 3 == 2
    for place, skeleton in {
        ("x", INK): original, ("x2", INK): first, ("x3", INK): second, ("x4", PALE): original, ("x5", PALE): original,
        ("x4", BLUE): left.decoded(original), ("x5", VERMILLION): right.decoded(original),
    }.items():
        expected = skeleton.unflatten(1, (-1, 3))[-1][joints][:, [0, 2]].numpy()
        expected[gaps] = np.nan
        np.testing.assert_allclose(drawn.pop(place), expected, atol=1e-6)
    assert not drawn and len(figure.frames) == len(original)


def test_every_readout_is_a_point_and_the_neighbours_are_ringed(begun):
    given, data = values(begun), begun.data
    figure = begun.embeddings(**given, count=6)
    for side, title, marks in zip(("left", "right"), titles(figure), figure.data[-2:], strict=True):
        run, column = begun.load(given[side]), {"left": "x", "right": "x2"}[side]
        readouts = run.readouts.double().numpy()
        plane, shown = PCA(2, svd_solver="full").fit_transform(readouts), []
        for trace in (trace for trace in figure.data[:-2] if trace.xaxis == column):
            rows = trace.customdata[:, 0]
            np.testing.assert_allclose(points(trace), plane[rows], atol=1e-9)
            assert {data.actions[label] for label in data.labels[rows]} == {trace.name}
            shown += rows.tolist()
        assert sorted(shown) == [*range(len(data.lengths))]
        cosine = cosine_similarity(readouts[[given["sequence"]]], readouts)[0]
        nearest = [row for row in np.argsort(-cosine) if row != given["sequence"]][:6]
        np.testing.assert_allclose(points(marks)[1::2], plane[nearest], atol=1e-9)
        np.testing.assert_allclose(points(marks)[::2], plane[[given["sequence"]] * 6], atol=1e-9)
        alike = sum(int(data.labels[row] == data.labels[given["sequence"]]) for row in nearest)
        assert title.startswith(f"{side}: {run.label} ") and f"{alike} of 6 neighbours: same action" in title


def test_collapsed_readouts_have_a_plane(begun, monkeypatch):
    collapsed = SimpleNamespace(label="AE", result={"linear": 10.0, "knn1": 10.0},
                                readouts=torch.ones(len(begun.data.lengths), 3))
    monkeypatch.setattr(begun, "load", lambda key: collapsed)
    figure = begun.embeddings(**values(begun))
    assert "0 % of the variance" in titles(figure)[0] and not points(figure.data[0]).any()


def test_a_click_on_a_point_chooses_its_sequence(begun):
    figure = begun.embeddings(**values(begun))
    for trace in (figure.data[2], figure.data[-1]):
        before = begun.shared["sequence"].value
        trace._dispatch_on_click(SimpleNamespace(point_inds=[0], trace_indexes=[0]), None)
        clicked = before if trace.customdata is None else trace.customdata[0][0]
        assert begun.shared["sequence"].value == clicked


def test_the_target_is_that_of_two_views_of_the_sequence(begun):
    given = values(begun)
    run, figure = begun.load(given["left"]), begun.targets(given["left"], given["sequence"], weight=0.4)
    query, key = run.embedded(augmented(begun.sequences[given["sequence"]], run.recipe, seed=0))
    positive, dots = figure.data[0], figure.data[-2]
    assert list(positive.y) == [0.4] and len(dots.y) == explore.KEYS + 1
    found = (run.embeddings @ key).double()
    similarities = dots.customdata[:, 0]
    assert similarities[0] == pytest.approx(1) and all((found - value).abs().min() < 1e-5 for value in similarities[1:])
    odds = np.log(dots.y[0] / dots.y[1])
    assert min(abs(odds - float(query @ (key - row)) / 0.1) for row in run.embeddings) < 1e-4
    bars = np.concatenate([trace.y for trace in figure.data if trace.type == "bar" and trace.yaxis == dots.yaxis])
    for title, shares in zip(sorted(titles(figure), reverse=True), (bars, (bars[1:] / bars[1:].sum())), strict=True):
        keys = math.exp(-sum(share * math.log(share) for share in shares))
        assert title.endswith(f"a target that is spread over {keys:.1f} keys")


def test_a_frame_of_the_selection_shows_what_is_drawn_and_the_chances_of_the_others():
    figure, rows = explore.selection(seed=7), selection_steps.steps(7)
    assert [frame.name for frame in figure.frames] == [str(count) for count in range(1, LARGEST + 1)]
    for count, strategy in itertools.product((1, LARGEST), rows["strategy"].unique()):
        shown = rows[(rows["drawn"] == count) & (rows["strategy"] == strategy)]
        for kind, expected in shown.groupby("kind"):
            place = {note.text.replace("<br>", " "): number for number, note in enumerate(figure.layout.annotations)}
            axis = "x" if (number := place[strategy]) == 0 else f"x{number + 1}"
            trace, = (trace for trace in figure.frames[count - 1].data if (trace.name, trace.xaxis) == (kind, axis))
            np.testing.assert_array_equal(points(trace), expected[["x", "y"]])
            np.testing.assert_array_equal(trace.marker.size, expected["size"])
    listed = [trace.name for trace in figure.data if trace.showlegend]
    assert listed == [*selection_steps.KINDS, "query of the batch"]


def test_sequences_are_listed_by_action_and_described(explorer):
    data, options = explorer.data, explorer.shared["sequence"].options
    numbers = [index for _, index in options]
    assert sorted(numbers) == [*range(len(data.lengths))] and data.labels[numbers].diff().min() >= 0
    assert [label for label, _ in explorer.shared["left"].options] == [
        "CE+AD, seed 0, smoke", "AD, seed 0, smoke", "random, seed 0, smoke"]


@pytest.mark.parametrize(("name", "shared", "own"), [
    ("skeletons", 3, {"turn": (-90, 90), "views": (1, 20)}),
    ("embeddings", 3, {"count": (1, 20), "colour": ("camera",)}),
    ("targets", 2, {"temperature": (0.01, 1), "key_temperature": (0.01, 1), "weight": (0, 1)}),
    ("selection", 0, {"seed": (19, 1)}),
])
def test_every_control_changes_the_figure_to_its_ends(begun, views, name, shared, own):
    view = views[name]
    controls = view.kwargs_widgets
    assert {control._kwarg for control in controls} == {*[*begun.shared][:: 2 if shared == 2 else 1][:shared], *own}
    for control in controls:
        for end in own.get(control._kwarg, ["another"]):
            before = view.result.to_json()
            if control._kwarg in own:
                control.value = end
            else:
                control.index = 2
            assert view.result.to_json() != before, (control._kwarg, end)
    bundle = view._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} <= bundle.keys()
    figure = json.loads(html.unescape(re.fullmatch(r'<div data-figure="([^"]*)"></div>', bundle["text/html"])[1]))
    assert len(figure["data"]) == len(view.result.data)


def test_two_bodies_as_a_camera_saw_them(tmp_path, monkeypatch):
    """A part of NTU RGB+D, with few of its actions and often one body."""
    folder = tmp_path / "data" / "ntu" / "nturgb+d_skeletons"
    folder.mkdir(parents=True)
    for seed, (action, person, camera) in enumerate(itertools.product((1, 2, 3), (1, 2, 3), (1, 2, 3))):
        second = [(FIRST + 1, 0, body(30, 50 + seed))] if person == 2 else []
        frames = recording((FIRST, 0, body(20 + seed, seed)), *second)
        (folder / f"S001C00{camera}P00{person}R001A00{action}.skeleton").write_bytes(text(frames))
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    ntu.prepare(subset=True, workers=1)
    smoke_runs(tmp_path / "runs", "CE+AD", dataset="ntu", subset=True)
    explorer = explore.Explorer(dataset="ntu", preset="smoke", objectives="CE+AD", subset=True, device="cpu")
    options = explorer.shared["sequence"].options
    assert {said.partition(":")[0] for said, _ in options} == {"drink water", "eat meal", "brush teeth"}
    for draw in (explorer.skeletons, explorer.embeddings):
        shown = [draw(**values(explorer) | {"sequence": options[row][1]}).to_json() for row in (0, 5)]
        assert shown[0] != shown[1]
