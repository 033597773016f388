"""The explorer's cells: encoders that it finds, figures read back as points, controls that change them."""

import ast
import html
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from executed_notebooks import FOLDER, SMOKE, begin, code_cells
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity
from smoke_runs import smoke_runs

import repro
from repro.contrast.active import select
from repro.contrast.objectives import ressl, sce
from repro.papers.taxonomy import sequences
from repro.papers.taxonomy.sequences import augmented, drawn, outlined

CELLS = [cell.source for cell in code_cells(FOLDER / "explore.ipynb")]


def short(data, most):
    """A sixth of the sequences, their first frames."""
    frames, lengths, shown = drawn(data, most // 6)
    return frames[:, :12], lengths.clamp(max=12), shown


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the notebook's cells leave, `views` among it: what those show that end by one.

    Sequences are few and short, as every frame of each is drawn again for every value of a control.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "drawn", short)
        patch.setenv("REPRO_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setenv("REPRO_DATA", str(tmp_path_factory.mktemp("data")))
        names = begin("explore", **SMOKE) | {"views": []}
        for source in CELLS[2:]:
            *body, last = ast.parse(source).body
            exec(compile(ast.Module(body, []), "explore.ipynb", "exec"), names)
            if ast.unparse(last).startswith("View("):
                names["views"].append(eval(ast.unparse(last), names))
            else:
                exec(ast.unparse(last), names)
        yield names


def points(trace):
    return np.stack([np.asarray(trace.x, dtype=float), np.asarray(trace.y, dtype=float)], axis=1)


def titles(figure):
    return [annotation.text.replace("<br>", " ") for annotation in figure.layout.annotations]


def test_it_has_at_most_120_lines_of_code():
    assert sum(bool(line.strip()) for source in CELLS for line in source.splitlines()) <= 120


def test_encoders_are_finished_runs_or_those_that_come_along(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    own, = smoke_runs(tmp_path, "CE+AD", seeds="3")
    names = begin("explore", seeds="3", **SMOKE)
    exec(CELLS[2], names)
    assert [*names["encoders"]] == ["CE+AD on synthetic, smoke recipe, seed 3", "CE on ucla, paper recipe, seed 0"]
    finished, shipped = (encoder.provenance for encoder in names["encoders"].values())
    assert finished["id"] == own.id and shipped == repro.load("taxonomy_ucla/CE").provenance
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [own.id]  # nothing else is trained
    with pytest.raises(ValueError, match="is not that of a finished run"):  # on what those of NW-UCLA do not fit
        exec(CELLS[2], begin("explore", pipeline="raw", **SMOKE))


def test_every_sequence_is_a_point_and_the_nearest_are_larger(names):
    figure, data = names["in_a_plane"](10, neighbours=6), names["shown"]
    for (name, encoder), title, column in zip(names["encoders"].items(), titles(figure), ("x", "x2"), strict=True):
        with torch.no_grad():
            features = encoder.model(names["frames"], names["lengths"]).double().numpy()
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        plane, sizes = PCA(2, svd_solver="full").fit_transform(features), np.zeros(len(data))
        for trace in (trace for trace in figure.data if trace.xaxis == column):
            rows = trace.customdata[:, 0]
            np.testing.assert_allclose(points(trace), plane[rows], atol=1e-4)
            assert set(data["action"][rows]) == {trace.name}
            sizes[rows] = trace.marker.size
        cosine = cosine_similarity(features[[10]], features)[0]
        nearest = [row for row in np.argsort(-cosine) if row != 10][:6]
        assert np.argsort(-sizes)[0] == 10 and {*np.argsort(-sizes)[1:7]} == {*nearest} and (sizes > 0).all()
        alike = sum(data["action"][row] == data["action"][10] for row in nearest)
        assert title == f"{name}: {alike} of 6 neighbours have its action"


def test_a_click_on_a_point_chooses_its_sequence(names):
    trace = names["in_a_plane"](0).data[2]
    trace._dispatch_on_click(SimpleNamespace(point_inds=[1], trace_indexes=[2]), None)
    assert names["slider"].value == trace.customdata[1][0] != 0
    trace._dispatch_on_click(SimpleNamespace(point_inds=[], trace_indexes=[]), None)
    assert names["slider"].value == trace.customdata[1][0]


def test_skeletons_are_the_sequence_two_views_of_it_and_the_nearest(names):
    figure, original = names["skeletons"](4, turn=30, views=3), names["frames"][4, : names["lengths"][4]]
    sequences = [original, *augmented(original, names["recipe"], seed=3)]
    for name in names["encoders"]:
        row, = names["nearest"](name, 4, 1)
        assert row != 4
        pace = np.linspace(0, int(names["lengths"][row]) - 1, len(original)).astype(int)
        sequences.append(names["frames"][row][pace])
    assert len(figure.frames) == len(original) and len(titles(figure)) == len(sequences)
    for number, sequence in enumerate(sequences):
        expected = outlined({"": sequence}, names["data"].bones, turn=30)
        for frame in (0, len(original) - 1):
            shown = expected.loc[expected["frame"] == frame + 1, ["x", "y"]]
            np.testing.assert_allclose(points(figure.frames[frame].data[number]), shown, atol=1e-5)


def test_the_target_of_two_views_has_the_objective_as_cross_entropy(names):
    name, encoder = next(iter(names["encoders"].items()))
    figure = names["targets"](name, 7, weight=0.4)
    views = augmented(names["frames"][7, : names["lengths"][7]], names["recipe"], seed=0)
    with torch.no_grad():
        query, key = torch.nn.functional.normalize(encoder.model(views, names["lengths"][[7, 7]])).split(1)
    *bars, dots, rings = figure.data
    target, similarity = np.zeros(41), np.zeros(41)
    for bar in bars:
        target[bar.x], similarity[bar.x] = bar.y, bar.customdata[:, 0]
    others = names["shown"].drop(7).sample(frac=1, random_state=0).index[:40]
    negatives = names["features"][name][others.tolist()]
    np.testing.assert_allclose(similarity[1:], (negatives @ key[0]).sort(descending=True).values, atol=1e-5)
    loss = sce(query, key, negatives, temperature=0.1, key_temperature=0.05, weight=0.4)
    assert -(target * np.log(dots.y)).sum() == pytest.approx(float(loss), abs=1e-4) and target[0] == 0.4
    asked, predicted = np.float64(rings.y[1:]), dots.y[1:] / dots.y[1:].sum()
    loss = ressl(query, key, negatives, temperature=0.1, key_temperature=0.05)
    assert -(asked * np.log(predicted)).sum() == pytest.approx(float(loss), abs=1e-4) and np.isnan(rings.y[0])


def test_negatives_of_a_step_are_those_that_each_sampler_selects(names):
    name = next(iter(names["encoders"]))
    figure, pool = names["selection"](name, negatives=12, seed=7), names["features"][name]
    generator = torch.Generator().manual_seed(7)
    batch = torch.randperm(len(pool), generator=generator)[:8]
    others = torch.ones(len(pool), dtype=torch.bool).index_fill(0, batch, False)
    for sampler in ("random", "ohem", "feature", "gradient"):
        title, = (title for title in titles(figure) if title.startswith(f"{sampler}: "))
        rows = select(sampler, pool, pool[batch], pool[batch], n_select=12, excluded=~others, generator=generator)
        drawn = [trace for trace in figure.data if trace.name == "negative"]
        expected = {tuple(point) for point in np.float32(names["planes"][name].T[rows])}
        assert expected in [{tuple(point) for point in np.float32(points(trace))} for trace in drawn], sampler
        assert title == f"{sampler}: 12 negatives of {names['shown']['action'][rows.numpy()].nunique()} actions"
    assert sum(len(trace.x) for trace in figure.data if trace.name == "query") == 4 * 8


def test_every_control_changes_its_figure_to_its_ends(names):
    seen = []
    for view in names["views"]:
        before = view.result.to_json()
        for control in view.kwargs_widgets:
            seen.append(control._kwarg)
            values = [value for _, value in getattr(control, "_options_full", ())] or [control.min, control.max]
            for end in {values[-1], values[0]} - {control.value}:
                control.value = end
                after = view.result.to_json()
                assert after != before or control._kwarg == "views", (control._kwarg, end)
                before = after
        bundle = view._repr_mimebundle_()
        assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} <= bundle.keys()
        figure = json.loads(html.unescape(re.fullmatch(r'<div data-figure="([^"]*)"></div>', bundle["text/html"])[1]))
        assert len(figure["data"]) == len(view.result.data)
    assert seen == ["sequence", "neighbours", "colour", "sequence", "turn", "views", "encoder", "sequence",
                    "temperature", "key_temperature", "weight", "encoder", "negatives", "seed"]
