"""The widgets: every change shows another picture, of the data it should, and none raises."""

import io
import itertools

import ipywidgets
import numpy as np
import pytest
from ntu_files import FIRST, body, recording, text
from PIL import Image
from smoke_runs import smoke_runs

from repro import explore
from repro.papers.cmacc import selection_steps
from repro.papers.taxonomy.explored_runs import augmented, sequence_of
from repro.report import views
from repro.skeleton import ntu


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """The notebook's parameters, with AD, CE+AD and random initialisation finished below REPRO_RUNS."""
    root = tmp_path_factory.mktemp("runs")
    smoke_runs(root, "AD,CE+AD,random")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(root))
        yield {"preset": "smoke", "device": "cpu"}


@pytest.fixture
def explorer(settings):
    return explore.Explorer(**settings)


def size(view):
    return Image.open(io.BytesIO(view.picture.value)).size


def changed(view, change):
    """Whether a change shows another picture."""
    before = view.picture.value
    change()
    return view.picture.value != before


def given(monkeypatch, name):
    """Calls of a function that draws, with their arguments."""
    calls = []
    draw = getattr(views, name)
    monkeypatch.setattr(views, name, lambda *args, **options: calls.append((args, options)) or draw(*args, **options))
    return calls


def test_runs_and_their_order(explorer):
    choice = explorer.choice
    labels = [text for text, _ in choice.left.options]
    assert labels == ["CE+AD, seed 0, smoke", "AD, seed 0, smoke", "random, seed 0, smoke"]
    assert [run.label for run in choice.runs] == labels[:2]
    assert choice.current == (choice.left.value, choice.right.value, 0)


def test_a_sequence_is_chosen_by_its_action(explorer):
    choice, data = explorer.choice, explorer.choice.data
    seen = []
    choice.observe(lambda change: seen.append(change.new[2]), "current")
    choice.sequence.value = 5
    choice.action.value = 4
    members = (data.labels == 4).nonzero().flatten().tolist()
    assert choice.index == members[0] and choice.sequence.max == len(members) - 1
    choice.sequence.value = len(members) - 1
    assert choice.index == members[-1]
    choice.action.value = 3
    assert choice.sequence.value == 0
    assert seen[1:] == [members[0], members[-1], choice.index]                 # each view draws once a change
    assert f"person {data.subjects[choice.index]}, camera {data.views[choice.index]}" in choice.about.value
    assert f"of {len((data.labels == 3).nonzero())} sequences of <i>{data.actions[3]}</i>" in choice.about.value
    assert ("training" if data.train[choice.index] else "test") in choice.about.value


def test_the_skeleton_moves(explorer):
    view = explorer.skeletons
    frames = int(explorer.choice.data.lengths[explorer.choice.index])
    assert view.frame.max == view.play.max == frames - 1
    pictures = []
    for frame in range(frames):
        view.frame.value = frame
        pictures.append(view.picture.value)
    assert len(set(pictures)) == frames
    view.frame.value = 0
    assert view.picture.value == pictures[0]
    assert {Image.open(io.BytesIO(picture)).size for picture in pictures} == {size(view)} and min(size(view)) > 200


def test_the_panels_are_the_input_its_views_and_what_is_decoded(explorer, monkeypatch):
    calls = given(monkeypatch, "Animation")
    view, choice = explorer.skeletons, explorer.choice
    sequence = sequence_of(choice.data, choice.index)
    left, right = choice.runs
    expected = [sequence, *augmented(sequence, left.recipe, 0), left.decoded(sequence), right.decoded(sequence)]
    (panels, bones, units), _ = calls[-1]
    assert units == "scaled to [-1, 1]" and bones == choice.data.bones
    assert [panel.title for panel in panels] == ["input", "augmented view 1", "augmented view 2",
                                                 f"decoded by {left.label}", f"decoded by {right.label}"]
    for panel, each in zip(panels, expected, strict=True):
        np.testing.assert_allclose(panel.joints, each.reshape(len(each), 20, 3)[..., [0, 2]], rtol=1e-6)
    view.azimuth.value = 90
    turned = calls[-1][0][0][0].joints
    np.testing.assert_allclose(turned, sequence.reshape(len(sequence), 20, 3)[..., [1, 2]], atol=1e-6)
    choice.right.value = choice.right.options[2][1]
    assert calls[-1][0][0][4].title == "decoded by random, seed 0, smoke (decoder untrained)"


def test_a_shorter_sequence_ends_on_its_last_frame(explorer):
    view, choice = explorer.skeletons, explorer.choice
    lengths = choice.data.lengths[choice.data.labels == choice.action.value]
    choice.sequence.value = int(lengths.argmax())
    view.frame.value = int(lengths.max()) - 1
    choice.sequence.value = int(lengths.argmin())
    assert view.frame.value == view.frame.max == view.play.max == int(lengths.min()) - 1
    assert view.picture.value == view.animation.picture(view.frame.max)


def test_the_embedding_marks_the_neighbours_of_the_chosen_sequence(explorer, monkeypatch):
    calls = given(monkeypatch, "embedding_planes")
    view, choice = explorer.embeddings, explorer.choice
    choice.sequence.value = 9
    view.count.value = 8
    view.colour.value = "camera"
    (embeddings, groups, names, chosen, of), _ = calls[-1]
    assert (chosen, of, names) == (choice.index, "camera", ["camera 1", "camera 2", "camera 3"])
    assert groups.equal(choice.data.views - 1)
    for embedding, run in zip(embeddings, choice.runs, strict=True):
        assert embedding.neighbours.equal(views.neighbours(run.readouts, choice.index, 8))
        assert embedding.title.startswith(run.label) and f"1-NN {run.result['knn1']:.1f} %" in embedding.title
    view.colour.value = "action"
    assert calls[-1][0][1].equal(choice.data.labels) and calls[-1][0][2] == choice.data.actions


def test_a_click_on_a_point_chooses_its_sequence_which_moves_below(explorer):
    view, choice = explorer.embeddings, explorer.choice
    chosen = []
    choice.observe(lambda change: chosen.append(change.new[2]), "current")
    for number in (700, 3, 1100):
        x, y = view.places[number % 2, number].round().astype(int).tolist()
        same = np.abs(view.places[number % 2] - [x, y]).max(1) < 1                      # drawn over one another
        view.clicks._dom_handlers({"type": "click", "dataX": x, "dataY": y})
        assert same[choice.index] and choice.data.labels[choice.index] == choice.action.value
        film = Image.open(io.BytesIO(view.film.value))
        assert film.n_frames == int(choice.data.lengths[choice.index])
    assert len(chosen) == 3                                                             # drawn once a click
    before = choice.index
    view.clicks._dom_handlers({"type": "click", "dataX": 500, "dataY": 600})            # on the legend
    assert choice.index == before
    assert view.clicks.source is view.picture and view.clicks.watched_events == ["click"]


def test_curves_along_training_of_any_cell(settings, explorer, monkeypatch):
    calls = given(monkeypatch, "training_curves")
    view = explorer.training
    assert [name.split(", synthetic")[0] for name in view.left.options] == ["CE+AD, seed 0, smoke", "AD, seed 0, smoke"]
    (((left, terms, measures), (right, *_)),), _ = calls[-1]
    assert left.startswith("CE+AD") and right.startswith("AD")
    result = explorer.choice.runs[0].result
    assert measures["step"].tolist() == [1, 2] and measures["knn1"].iloc[-1] == result["knn1"]
    assert list(terms.columns) == ["step", "CE", "AD", "loss"] and terms["step"].iloc[-1] == 2
    assert changed(view, lambda: setattr(view.right, "value", view.left.value))


def test_a_training_without_a_report_yet_has_no_curves(tmp_path):
    (tmp_path / "progress.jsonl").touch()
    assert explore._log(tmp_path, "progress.jsonl").empty and explore._log(None, "progress.jsonl").empty


def test_the_target_is_that_of_two_views_of_the_sequence(explorer, monkeypatch):
    tables = []
    draw = explore.target_distributions.target_distributions
    monkeypatch.setattr(explore.target_distributions, "target_distributions",
                        lambda table, *rest: tables.append((table, *rest)) or draw(table, *rest))
    view, choice = explorer.targets, explorer.choice
    view.weight.value = 0.25
    table, values, weight = tables[-1]
    assert weight == 0.25 and table["sce_target"][0] == 0.25
    run = choice.runs[0]
    query, key = run.embedded(augmented(sequence_of(choice.data, choice.index), run.recipe, seed=0))
    assert table["similarity"][0] == pytest.approx(1)
    assert len(table) == explore.KEYS + 1
    found = run.embeddings @ key
    assert all(np.isclose(found, value, atol=1e-6).any() for value in table["similarity"][1:])
    odds = table["sce_prediction"][0] / table["sce_prediction"][1]
    first = found[(found - table["similarity"][1]).abs().argmin()]
    nearest = run.embeddings[(found == first).nonzero()[0, 0]]
    assert np.log(odds) == pytest.approx(float(query @ (key - nearest)) / view.temperature.value, abs=1e-4)
    assert values["SCE"] == pytest.approx(-(table["sce_target"] * np.log(table["sce_prediction"])).sum())


@pytest.mark.parametrize(("name", "controls"), [
    ("skeletons", {"azimuth": 45, "frame": 5}), ("embeddings", {"count": 12, "colour": "camera"}),
    ("targets", {"temperature": 0.5, "key_temperature": 0.01, "weight": 1.0}), ("selection", {"drawn": 4, "seed": 7}),
])
def test_every_control_changes_the_picture(explorer, name, controls):
    view, choice = getattr(explorer, name), explorer.choice
    chosen = {choice.sequence: 3, choice.action: 2, choice.left: choice.left.options[1][1]} if view.choice else {}
    for control, value in {getattr(view, name): value for name, value in controls.items()}.items() | chosen.items():
        assert changed(view, lambda control=control, value=value: setattr(control, "value", value)), control
    if view.choice:  # all but the targets, which are the left run's alone
        shown = changed(view, lambda: setattr(choice.right, "value", choice.right.options[2][1]))
        assert shown == (name != "targets")
    if name == "skeletons":
        assert changed(view, view.again.click)


def test_the_extremes_of_every_slider_can_be_drawn(explorer):
    for view in (explorer.targets, explorer.embeddings, explorer.selection, explorer.skeletons):
        for row in view.children:
            for control in set(getattr(row, "children", ())) - {explorer.choice.sequence}:
                if isinstance(control, ipywidgets.FloatLogSlider):
                    control.value = control.base**control.min
                    control.value = control.base**control.max
                elif hasattr(control, "max") and hasattr(control, "step"):
                    control.value = control.min
                    control.value = control.max
        assert min(size(view)) > 200


def test_selection_step_by_step(explorer, monkeypatch):
    shown = []
    draw = selection_steps.selection_steps
    monkeypatch.setattr(selection_steps, "selection_steps", lambda *given: shown.append(given) or draw(*given))
    view = explorer.selection
    assert view.drawn.value == view.play.value == 1 and view.play.max == view.drawn.max
    pictures = set()
    for count in (0, 2, 12, view.drawn.max):
        view.drawn.value = count
        pictures.add(view.picture.value)
    assert len(pictures) == 4
    assert changed(view, lambda: setattr(view.seed, "value", 7))
    pool, steps = shown[-1]
    for strategy, each in steps.items():
        expected = selection_steps.order(strategy, pool, seed=7)
        assert each.chosen.equal(expected) and len(each.chosen) == view.drawn.max


@pytest.mark.parametrize("name", ["skeletons", "embeddings", "targets", "training", "selection"])
def test_a_view_is_a_widget_and_a_picture_for_those_who_see_no_widgets(explorer, name):
    view = getattr(explorer, name)
    bundle = view._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"} <= bundle.keys()
    kind = {"skeletons": "skeleton", "embeddings": "embedding", "targets": "target"}.get(name, name)
    assert view.picture._dom_classes == (f"{kind}-view",) and f"{kind}-explorer" in view._dom_classes
    assert getattr(explorer, name) is view


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
    assert [name for name, _ in explorer.choice.action.options] == ["drink water", "eat meal", "brush teeth"]
    for view in (explorer.skeletons, explorer.embeddings, explorer.targets):
        before = view.picture.value
        explorer.choice.action.value = (explorer.choice.action.value + 1) % 3
        assert view.picture.value != before
