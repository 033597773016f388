"""The explorer: its figures read back as points, by their definitions, and views that follow every control."""

import html
import itertools
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from ntu_files import FIRST, body, recording, text
from pandas import DataFrame
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from smoke_runs import smoke_runs

from repro import explore
from repro.papers.cmacc import selection_steps
from repro.papers.cmacc.selection_steps import LARGEST, SIZES, TITLES
from repro.papers.sce.target_distributions import KINDS
from repro.papers.taxonomy.explored_runs import augmented, sequence_of
from repro.skeleton import ntu

GREEN, RED = "#00ff00", "#ff0000"


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    """Of AD, CE+AD and random initialisation, finished below REPRO_RUNS."""
    root = tmp_path_factory.mktemp("runs")
    smoke_runs(root, "AD,CE+AD,random")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(root))
        yield explore.Explorer(preset="smoke", device="cpu")


@pytest.fixture
def begun(explorer):
    """The explorer as it begins."""
    explorer.left.index, explorer.right.index, explorer.sequence.index = 0, 1, 0
    return explorer


def points(trace):
    return np.stack([np.asarray(trace.x, dtype=float), np.asarray(trace.y, dtype=float)], axis=1)


def titles(figure):
    return [annotation.text.replace("<br>", " ") for annotation in figure.layout.annotations]


@pytest.mark.parametrize("azimuth", [0, 30, 90, -45])
def test_seen_from_turns_about_the_vertical(azimuth):
    sequence, angle = np.random.default_rng(0).normal(size=(4, 3, 3)), np.radians(azimuth)
    x, y, z = sequence.transpose(2, 0, 1)
    turned = explore.seen_from(sequence, azimuth)
    np.testing.assert_allclose(turned[..., 0], x * np.cos(angle) + y * np.sin(angle))
    np.testing.assert_array_equal(turned[..., 1], z)
    np.testing.assert_array_equal(explore.seen_from(sequence.reshape(4, 9), azimuth), turned)
    np.testing.assert_allclose(explore.seen_from(sequence, 90, up=1), sequence[..., [2, 1]], atol=1e-12)
    sequence[:, 2] = 0
    sequence[0, 0] = 0  # a joint at the origin once is one, a body that is always there is not
    seen = explore.seen_from(sequence, azimuth)
    assert np.isnan(seen[:, 2]).all() and not np.isnan(seen[:, :2]).any()


def test_a_frame_holds_the_bones_of_every_skeleton_and_a_larger_one_a_scale_of_its_own():
    small = np.random.default_rng(0).uniform(-1, 1, size=(5, 3, 2))
    figure = explore.moving({"a": [(small, GREEN)], "b": [(small, GREEN), (10 * small, RED)]}, [(0, 2), (1, 2)], "m")
    assert [trace.line.color for trace in figure.data] == [GREEN, GREEN, RED] and titles(figure) == ["a", "b"]
    assert len(figure.frames) == 5
    for number, frame in enumerate(figure.frames):
        for trace, skeleton in zip(frame.data, (small, small, 10 * small), strict=True):
            first, second = points(trace)[:2], points(trace)[3:5]
            np.testing.assert_allclose(first, skeleton[number][[0, 2]], rtol=1e-6)
            np.testing.assert_allclose(second, skeleton[number][[1, 2]], rtol=1e-6)
            assert np.isnan(points(trace)[[2, 5]]).all()
    np.testing.assert_array_equal(points(figure.data[2]), points(figure.frames[0].data[2]))
    widths = [np.ptp(axis.range) for axis in (figure.layout.xaxis, figure.layout.yaxis, figure.layout.xaxis2)]
    assert widths[0] == widths[1] and widths[2] == pytest.approx(10 * widths[0])
    assert (figure.layout.yaxis.scaleanchor, figure.layout.yaxis2.scaleanchor) == ("x", "x2")
    point = explore.moving({"point": [(np.ones((1, 2, 2)), RED)]}, [(0, 1)], "m")
    assert np.ptp(point.layout.xaxis.range) > 0


def runs(count=60, d=7):
    generator = torch.Generator().manual_seed(0)
    readouts = torch.randn(count, d, generator=generator) * torch.arange(1, d + 1) + 3
    return [SimpleNamespace(label=f"run {n}", result={"linear": 50.0, "knn1": 40.0}, readouts=readouts.roll(n, 1))
            for n in range(2)]


def test_neighbours_are_those_of_scikit_learn():
    readouts = runs()[0].readouts
    finder = NearestNeighbors(metric="cosine", algorithm="brute").fit(readouts.double().numpy())
    for chosen in range(0, 60, 7):
        nearest = finder.kneighbors(readouts[[chosen]].double().numpy(), 7)[1][0]
        assert [chosen, *explore.neighbours(readouts, chosen, 6).tolist()] == nearest.tolist()


@pytest.mark.parametrize(("count", "asked", "nearest"), [(4, 2, [0, 2]), (4, 20, [0, 2, 3]), (2, 5, [0])])
def test_of_equal_points_the_earlier_are_nearer_and_there_are_no_more_than_others(count, asked, nearest):
    assert explore.neighbours(torch.ones(count, 2), 1, asked).tolist() == nearest


def test_every_readout_is_a_point_and_the_neighbours_are_ringed():
    groups, names, shown = torch.arange(60) % 3, ["sit", "stand", "walk"], runs()
    figure = explore.planes(shown, groups, names, chosen=3, count=5, of="action")
    for run, panel, title in zip(shown, (figure.data[:9], figure.data[9:]), titles(figure), strict=True):
        expected = PCA(2, svd_solver="full").fit_transform(run.readouts.double().numpy())
        for group, trace in enumerate(panel[:3]):
            np.testing.assert_allclose(points(trace), expected[trace.customdata])
            assert (groups[trace.customdata] == group).all() and trace.name == names[group]
        nearest = explore.neighbours(run.readouts, 3, 5)
        lines = np.stack([points(trace) for trace in panel[3:8]])
        np.testing.assert_allclose(lines, np.stack([expected[nearest], expected[[3] * 5]], axis=1))
        np.testing.assert_allclose(points(panel[8]), expected[[3]])
        assert f"{int((groups[nearest] == groups[3]).sum())} of 5 neighbours: same action" in title
    many = explore.planes(shown, torch.arange(60), [str(n) for n in range(60)], 0, 1, "action")
    looks = {(trace.marker.color, trace.marker.symbol) for trace in many.data[:60]}
    assert len(looks) == 60 and not any(trace.showlegend for trace in many.data[:60])


def test_collapsed_readouts_have_a_plane():
    collapsed = [SimpleNamespace(label="AE", result={"linear": 10.0, "knn1": 10.0}, readouts=torch.ones(4, 3))]
    figure = explore.planes(collapsed, torch.zeros(4, dtype=torch.int64), ["sit"], 0, 2, "action")
    assert "(0 % of variance)" in figure.layout.xaxis.title.text and not points(figure.data[0]).any()


def test_targets_are_bars_and_predictions_dots():
    share = np.array([0.5, 0.3, 0.2])
    table = DataFrame({"kind": KINDS, "similarity": [1, 0.5, 0.1], "sce_target": share, "sce_prediction": share[::-1],
                       "ressl_target": [math.nan, 0.5, 0.5], "ressl_prediction": [math.nan, 0.9, 0.1]})
    values = {"SCE": 2.5, "InfoNCE": 1.0, "ReSSL": 2.0, "Ceil": 1.0}
    figure = explore.target_shares(table, values, 0.25)
    for name, panel in (("sce", figure.data[:4]), ("ressl", figure.data[4:])):
        bars = np.concatenate([points(trace) for trace in panel[:3]])
        np.testing.assert_array_equal(bars, np.stack([np.arange(3), table[f"{name}_target"]], axis=1))
        np.testing.assert_array_equal(panel[3].y, table[f"{name}_prediction"])
    assert figure.layout.title.text == "SCE 2.50 = 0.25 x InfoNCE 1.00 + 0.75 x (ReSSL 2.00 + Ceil 1.00) nats"
    assert "over 2.0 keys" in titles(figure)[1]


def test_a_frame_of_the_selection_shows_what_is_drawn_and_the_chances_of_the_others():
    figure, pool = explore.selection(seed=7), selection_steps.pool()
    assert len(figure.frames) == LARGEST
    for count in (1, 5, LARGEST):
        frame = figure.frames[count - 1]
        for column, strategy in enumerate(TITLES):
            chosen = selection_steps.order(strategy, pool, seed=7)[:count]
            chances, drawn = frame.data[2 * column : 2 * column + 2]
            np.testing.assert_allclose(chances.marker.color, 100 * selection_steps.chances(strategy, pool, chosen))
            np.testing.assert_allclose(points(drawn), pool.candidates[chosen])
            assert len(drawn.marker.size) == count
            categories = len(set(pool.categories[chosen].tolist()))
            said = frame.layout["xaxis" if column == 0 else f"xaxis{column + 1}"].title.text
            assert said == f"{count} drawn, {categories} of {len(SIZES)} categories"


def test_runs_and_their_order(explorer):
    labels = [text for text, _ in explorer.left.options]
    assert labels == ["CE+AD, seed 0, smoke", "AD, seed 0, smoke", "random, seed 0, smoke"]
    assert (explorer.left.label, explorer.right.label) == (labels[0], labels[1])


def test_sequences_are_listed_by_action_and_described(explorer):
    data, numbers = explorer.data, [index for _, index in explorer.sequence.options]
    assert sorted(numbers) == [*range(len(data.lengths))]
    assert data.labels[numbers].diff().min() >= 0
    text, index = explorer.sequence.options[700]
    part = "training" if data.train[index] else "test"
    assert text == (f"{data.actions[data.labels[index]]}: person {data.subjects[index]}, camera {data.views[index]}, "
                    f"{data.lengths[index]} frames, {part} split")


def test_the_skeletons_are_the_input_its_views_and_what_is_decoded_and_play(begun):
    view, sequence = begun.skeletons, sequence_of(begun.data, begun.sequence.value)
    left, right = (begun.load(side.value) for side in (begun.left, begun.right))
    first, second = augmented(sequence, left.recipe, 0)
    expected = [sequence, first, second, sequence, left.decoded(sequence), sequence, right.decoded(sequence)]
    bones = np.asarray(begun.data.bones)
    for frame in (0, len(sequence) - 1):
        view.frame.value = frame
        for trace, joints in zip(view.figure.data, expected, strict=True):
            seen = joints.reshape(len(joints), 20, 3)[frame][:, [0, 2]].numpy()
            np.testing.assert_allclose(points(trace).reshape(-1, 3, 2)[:, :2], seen[bones], rtol=1e-6)
    assert titles(view.figure)[3:] == [f"left: decoded by {left.label}", f"right: decoded by {right.label}"]
    begun.right.index = 2
    assert titles(view.figure)[4] == "right: decoded by random, seed 0, smoke (decoder untrained)"


def test_a_shorter_sequence_ends_on_its_last_frame(begun):
    view, lengths = begun.skeletons, begun.data.lengths
    begun.sequence.value = int(lengths.argmax())
    view.frame.value = int(lengths.max()) - 1
    begun.sequence.value = int(lengths.argmin())
    assert view.frame.value == view.frame.max == int(lengths.min()) - 1
    shown, last = points(view.figure.data[0]), points(view.drawn.frames[-1].data[0])
    np.testing.assert_array_equal(shown, last)


def test_a_click_on_a_point_chooses_its_sequence_in_all_views(begun):
    view = begun.embeddings
    for trace in (view.figure.data[2], view.figure.data[-1]):
        where = SimpleNamespace(point_inds=[0], trace_indexes=[0])
        before = begun.sequence.value
        trace._dispatch_on_click(where, None)
        assert begun.sequence.value == (before if trace.customdata is None else trace.customdata[0])
    star = points(view.figure.data[-1])
    chosen = [points(trace)[list(trace.customdata).index(begun.sequence.value)] for trace in view.figure.data
              if trace.customdata is not None and begun.sequence.value in trace.customdata]
    np.testing.assert_allclose(star[0], chosen[-1])


def test_the_target_is_that_of_two_views_of_the_sequence(begun):
    view, run = begun.targets, begun.load(begun.left.value)
    query, key = run.embedded(augmented(sequence_of(begun.data, begun.sequence.value), run.recipe, seed=0))
    positive, *_, predicted = view.figure.data[:4]
    assert list(positive.y) == [0.5] and len(predicted.y) == explore.KEYS + 1
    found = (run.embeddings @ key).double()
    ticks = [float(tick) for tick in view.figure.layout.xaxis.ticktext]
    assert ticks[0] == 1 and all((found - tick).abs().min() < 0.006 for tick in ticks[1:])
    odds = np.log(predicted.y[0] / predicted.y[1])
    assert min(abs(odds - float(query @ (key - row)) / 0.1) for row in run.embeddings) < 1e-4


@pytest.mark.parametrize(("name", "shared", "own"), [
    ("skeletons", 3, {"turn": (-90, 90), "views": (1, 20)}), ("embeddings", 3, {"count": (1, 20)}),
    ("targets", 2, {"temperature": (0.01, 1), "key_temperature": (0.01, 1), "weight": (0, 1)}),
    ("selection", 0, {"seed": (19, 1)}),
])
def test_every_control_changes_the_figure_to_its_ends(begun, name, shared, own):
    view = getattr(begun, name)
    controls = view.controls.kwargs_widgets
    assert [control._kwarg for control in controls][shared:][: len(own)] == [*own]
    for control in controls[:shared]:
        before = view.drawn.to_json()
        control.index = 2
        assert view.drawn.to_json() != before, control.description
    for control in controls[shared : shared + len(own)]:
        for end in own[control._kwarg]:
            before, control.value = view.drawn.to_json(), end
            assert view.drawn.to_json() != before, (control.description, end)
    if name == "embeddings":
        before, controls[-1].value = view.drawn.to_json(), "camera"
        assert view.drawn.to_json() != before and "camera 3" in [trace.name for trace in view.figure.data]


@pytest.mark.parametrize("name", ["skeletons", "embeddings", "targets", "selection"])
def test_a_view_is_a_widget_and_a_figure_for_pages_without_a_kernel(explorer, name):
    view = getattr(explorer, name)
    bundle = view._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} <= bundle.keys()
    figure = json.loads(html.unescape(re.fullmatch(r'<div data-figure="([^"]*)"></div>', bundle["text/html"])[1]))
    assert len(figure["data"]) == len(view.figure.data) and len(figure.get("frames", [])) == len(view.drawn.frames)


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
    explorer = explore.Explorer(dataset="ntu", preset="smoke", subset=True, device="cpu")
    assert {text.partition(":")[0] for text, _ in explorer.sequence.options} == {"drink water", "eat meal",
                                                                                "brush teeth"}
    for view in (explorer.skeletons, explorer.embeddings, explorer.targets):
        before = view.figure.to_json()
        explorer.sequence.index = (explorer.sequence.index + 5) % len(explorer.sequence.options)
        assert view.figure.to_json() != before
