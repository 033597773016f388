"""Encoders of skeletons in files, and what makes their input from recordings; those of images are tested with these."""

import json

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch
from ntu_files import FIRST, body, recording, text
from smoke_runs import smoke_runs

import repro
from repro.run.store import Store
from repro.skeleton import PIPELINES, ntu, study, synthetic
from repro.skeleton.data import RecordedView, load, recorded_view
from repro.skeleton.model import SkeletonModel
from repro.skeleton.recipe import smoke
from repro.weights import export


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(root))
        yield root


@pytest.fixture(scope="module")
def recordings():
    """The bundled recordings as the sensor would have given them, those that are long enough."""
    return [recording.frames for recording in synthetic.generate() if len(recording.frames) > 10]


def changed(path, **texts):
    """Write the file again with other texts in its metadata; None leaves one out."""
    with safetensors.safe_open(path, framework="pt") as file:
        before, kept = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    texts = {name: text for name, text in (before | texts).items() if text is not None}
    safetensors.torch.save_file(kept, path, metadata=texts)


@pytest.mark.parametrize("changes", [
    {}, {"layers": "2", "bidirectional": "True", "head": "mlp"},
    {"select": "best_on_test", "decoder_input": "embedding"},
], ids=str)
def test_an_encoder_in_a_file_gives_the_readouts_that_were_evaluated(root, recordings, tmp_path, changes):
    cell, = smoke_runs(root, "AE+AD", **changes)
    described, = (each for each in Store(root).finished() if each["key"] == cell.key)
    learner = study.restored(described, Store(root), torch.device("cpu"))
    learner.restore()
    readouts, _ = learner.features(learner.data)
    path = export(cell.key, tmp_path / "encoder.safetensors")
    before = torch.get_rng_state()
    encoder = repro.load(path)
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(encoder(recordings), readouts)
    assert encoder.recipe == cell.recipe.to_dict() and not encoder.model.training
    whole = SkeletonModel(cell.recipe, **encoder.model.architecture)
    whole.load_state_dict(encoder.model.state_dict())  # with head and decoder


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_the_input_made_of_recordings_is_that_of_the_data_set(recordings, pipeline):
    data = load("synthetic", pipeline=pipeline)
    sequences, lengths = recorded_view(smoke("synthetic", "CE", pipeline=pipeline))(recordings)
    assert torch.equal(sequences, data.sequences) and torch.equal(lengths, data.lengths)


def test_recordings_of_two_bodies_are_files():
    contents = text(recording((FIRST, 0, body(30)), (FIRST + 1, 5, body(20, 1))))
    for name, pipeline in (("default", "authors"), ("predict_cluster", "predict_cluster")):
        view = recorded_view(smoke("ntu", "CE", pipeline=name))
        sequences, lengths = view([contents, contents])
        expected = ntu.PIPELINES[pipeline](ntu.parse(contents)).astype(np.float32)
        assert view.pipeline == pipeline and lengths.tolist() == [len(expected)] * 2
        np.testing.assert_array_equal(sequences[1], expected)
    with pytest.raises(ValueError, match=r"recording 0: pipeline 'authors' takes the contents of a \.skeleton file"):
        RecordedView("authors")([np.zeros((30, 25, 3))])


@pytest.mark.parametrize(("wrong", "message"), [
    (np.zeros((30, 25, 3)), r"recording 1: its shape is \(30, 25, 3\); give \(frames, 20, 3\)"),
    (np.full((30, 20, 3), np.nan), "recording 1: a coordinate is not finite"),
    (np.zeros((30, 20, 3)), "recording 1: joints 0 and 1 coincide"),
])
def test_a_recording_that_cannot_be_transformed_is_named(recordings, wrong, message):
    with pytest.raises(ValueError, match=message):
        RecordedView("default")([recordings[0], wrong])
    with pytest.raises(ValueError, match="there is no recording"):
        RecordedView("default")([])


def test_a_foreign_or_damaged_file_is_refused_by_name(root, tmp_path):
    cell, = smoke_runs(root, "CE")
    path = tmp_path / "encoder.safetensors"
    with pytest.raises(FileNotFoundError, match=r"encoder\.safetensors is not a file; write one with `repro results"):
        repro.load(path)
    recipe = cell.recipe.to_dict()
    for texts, message in (
        ({"view": json.dumps({"pipeline": "defualt"})}, "describes a view or .* cannot be made .*is not one of"),
        ({"view": json.dumps({"pipeline": "raw", "size": 8})}, "describes a view or a recipe that cannot be made"),
        ({"view": "[]"}, "does not say by which recipe"), ({"recipe": None}, "lacks recipe in its metadata"),
        ({"recipe": json.dumps(recipe | {"layers": 30_000})}, "layers=30000 have [0-9]+ weights"),
        ({"architecture": "[]"}, "does not hold the model"),
        ({"recipe": json.dumps(recipe | {"units": 4})}, "does not hold the model it describes (?s:.*)export it again"),
        ({"recipe": json.dumps(recipe | {"unit": 4})}, "a recipe that cannot be made .*'unit' is not a field"),
    ):
        changed(export(cell.key, path), **texts)
        with pytest.raises(ValueError, match=rf"encoder\.safetensors .*{message}"):
            repro.load(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"encoder\.safetensors is no sound safetensors file"):
        repro.load(path)
