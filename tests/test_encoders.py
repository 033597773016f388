"""Encoders in files: there and back, what they take, what other files lack, those that come along."""

import json
import re

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch
from made_up_images import FEATURES, use_tiny_trunk
from ntu_files import FIRST, body, recording, text
from smoke_runs import smoke_runs

import repro
from repro.encoders import export
from repro.image import recipe as image_recipes
from repro.image.augment import CentredView, centred_view
from repro.image.model import ImageModel
from repro.run.fit import save_checkpoint
from repro.run.store import Run, Store, read_record
from repro.run.training import restored
from repro.skeleton import PIPELINES, ntu, synthetic
from repro.skeleton.data import RecordedView, load, recorded_view
from repro.skeleton.recipe import SKELETONS, smoke


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(root))
        use_tiny_trunk(patch)
        yield root


@pytest.fixture(scope="module")
def recordings():
    """The bundled recordings as the sensor would have given them, those that are long enough."""
    return [recording.frames for recording in synthetic.generate() if len(recording.frames) > 10]


@pytest.fixture(scope="module")
def skeletons(root, tmp_path_factory):
    """A file of an encoder of skeletons, trained for a step or two."""
    run, = smoke_runs(root, "CE")
    return export(run.id, tmp_path_factory.mktemp("files") / "encoder.safetensors")


@pytest.fixture(scope="module")
def pictures(root, tmp_path_factory):
    """A file of an encoder of images as one step of batch normalisation leaves it, and its trunk."""
    recipe = image_recipes.smoke("digits", "moco", projection=6)
    torch.manual_seed(0)
    model = ImageModel(recipe.trunk, recipe.small, recipe.head, recipe.projection)
    model(torch.rand(8, 3, 8, 8))
    run = Run("images", recipe, 3, "smoke", "digits", "d1", 2, changes={"projection": 6})
    folder = Store(root).folder(run)
    folder.finish({"linear": 50.25, "select": "last", "cost": {"commit": "1234567", "finished": "2026"}})
    save_checkpoint(folder.path, {"step": 1, "seconds": 0.0, "learner": {"model": model.state_dict()}})
    return export(run.id, tmp_path_factory.mktemp("files") / "encoder.safetensors"), model.eval().trunk


def changed(path, target, tensors=None, **texts):
    """Write a file again with further weights and other texts in its metadata; None leaves one out."""
    with safetensors.safe_open(path, framework="pt") as file:
        before, kept = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, value in texts.items():
        before[name] = json.dumps(json.loads(before[name]) | value) if isinstance(value, dict) else value
    texts = {name: value for name, value in before.items() if value is not None}
    safetensors.torch.save_file(kept | (tensors or {}), target, metadata=texts)
    return target


def test_an_encoder_in_a_file_gives_the_readouts_that_were_evaluated(root, recordings, tmp_path):
    changes = {"layers": "2", "bidirectional": "True", "head": "mlp", "select": "best_on_test"}
    run, = smoke_runs(root, "AE+AD", **changes, decoder_input="embedding")
    record = read_record(Store(root).path(run.id))
    learner = restored(run, SKELETONS, torch.device("cpu"))
    learner.restore()
    readouts, _ = learner.features(learner.data)
    path = export(run.id, tmp_path / "encoder.safetensors")
    before = torch.get_rng_state()
    encoder = repro.load(path)
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(encoder(recordings), readouts)
    assert encoder.recipe == run.recipe.to_dict() and not encoder.model.training
    assert encoder.size == readouts.shape[1]
    stated = {name: record[name] for name in ("id", "seed", "dataset", "digest", "preset", "version")}
    stated |= {"label": run.label, "commit": record["cost"]["commit"], "measured": record["metrics"]}
    assert encoder.provenance == stated


def test_half_as_many_bytes_give_nearly_the_same_features(root, recordings, tmp_path):
    run, = smoke_runs(root, "CE")
    whole, half = (export(run.id, tmp_path / f"{half}.safetensors", half=half) for half in (False, True))
    with safetensors.safe_open(half, framework="pt") as file:
        assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.float16}  # noqa: SIM118
    assert half.stat().st_size < 0.6 * whole.stat().st_size
    features, expected = (repro.load(path)(recordings[:99]) for path in (half, whole))
    assert features.dtype == torch.float32 and not torch.equal(features, expected)
    torch.testing.assert_close(features, expected, rtol=0, atol=2e-3)  # of values in [-1, 1]


def test_weights_beyond_float16_and_of_clips_are_refused(root, tmp_path):
    run, = smoke_runs(root, "CE", units="8")
    folder = Store(root).path(run.id)
    state = restored(run, SKELETONS, torch.device("cpu")).state_dict()
    state["model"]["encoder.gru.weight_hh_l0"][0, 0] = 1e5
    save_checkpoint(folder, {"step": 1, "seconds": 0.0, "learner": state})
    with pytest.raises(ValueError, match=r"gru\.weight_hh_l0 of .* is beyond float16; leave --half out"):
        export(run.id, tmp_path / "encoder.safetensors", half=True)
    assert list(tmp_path.iterdir()) == [] and export(run.id, tmp_path / "encoder.safetensors").is_file()
    described = json.loads((folder / "recipe.json").read_text())
    (folder / "recipe.json").write_text(json.dumps(described | {"study": "clips"}))
    with pytest.raises(ValueError, match="is a run of clips; weights are those of images and skeletons"):
        export(run.id)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_the_input_made_of_recordings_is_that_of_the_data_set(recordings, pipeline):
    data, some = load("synthetic", pipeline=pipeline), slice(0, None, 20)
    sequences, lengths = recorded_view(smoke("synthetic", "CE", pipeline=pipeline))(recordings[some])
    assert len(data.lengths) == len(recordings) and torch.equal(lengths, data.lengths[some])
    assert torch.equal(sequences, data.sequences[some, : sequences.shape[1]])


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


def test_one_recording_or_several_of_numpy_or_torch(skeletons, recordings):
    encoder, first = repro.load(skeletons), recordings[0]
    expected = encoder(recordings[:2])
    assert expected.shape == (2, encoder.size)
    tensors = [torch.from_numpy(part).requires_grad_() for part in recordings[:2]]
    for given, rows in ((first, [0]), (tensors[0], [0]), ((first,), [0]), (tensors, [0, 1]),
                        (np.stack([first, first]), [0, 0])):
        torch.testing.assert_close(encoder(given), expected[rows])


def test_one_image_or_several_of_numpy_or_torch(pictures, tmp_path):
    encoder, trunk = repro.load(pictures[0]), pictures[1]
    images = torch.randint(256, (3, 3, 9, 11), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    view = centred_view(image_recipes.smoke("digits", "moco"))
    assert encoder.view == view and encoder.size == FEATURES
    with torch.no_grad():
        expected = trunk(view(images))
    read_only = images.numpy().copy()
    read_only.flags.writeable = False
    for given, rows in ((images, 3), (read_only, 3), (images.double() / 255, 3), (list(images), 3), (images[0], 1),
                        (images[0].numpy(), 1), ([images[:2], images[2].numpy()], 3)):
        torch.testing.assert_close(encoder(given), expected[:rows])
    larger = torch.rand(3, 20, 16)
    torch.testing.assert_close(encoder([images[0], larger]), torch.cat([encoder(images[0]), encoder(larger)]))
    path = changed(pictures[0], tmp_path / "encoder.safetensors", view={"square": True, "resize": 9})
    assert repro.load(path).view == CentredView(8, view.normalisation, 9, square=True)


RECORDING = next(recording.frames for recording in synthetic.generate() if len(recording.frames) > 10)
SHAPES = [(9, 11), (9, 11, 3), (2, 9, 11, 3), (1, 2, 3, 9, 11), ()]
REFUSED = [  # a kind of encoder, what it is given, and what the message says
    ("skeletons", [RECORDING, torch.zeros(30, 60)], r"recording 1: its shape is \(30, 60\); give \(frames, 20, 3\)"),
    ("skeletons", [], "there is no recording"),
    ("skeletons", None, r"recording 0: its shape is \(\); give \(frames, 20, 3\)"),
    ("pictures", None, r"images have the shape \(\); give \(3, height, width\)"),
    *(("pictures", given, "there is no image; give at least one") for given in (np.zeros((0, 3, 9, 11), np.uint8), [])),
    *(("pictures", given, rf"shape {re.escape(str(shape))}; give \(3, height, width\) or \(number, 3, .*`numpy")
      for shape in SHAPES for given in (torch.zeros(shape), [np.zeros(shape, np.uint8)])),
]


@pytest.mark.parametrize(("kind", "given", "message"), REFUSED)
def test_what_an_encoder_cannot_take_is_named(skeletons, pictures, kind, given, message):
    with pytest.raises(ValueError, match=message):
        repro.load({"skeletons": skeletons, "pictures": pictures[0]}[kind])(given)


def test_printed_it_is_three_lines(skeletons, pictures):
    first, second, third = str(repro.load(pictures[0])).splitlines()
    assert first == "moco, projection=6 on digits, smoke recipe, seed 3, linear 50.2 %"
    assert second == f"takes images, input of 8 x 8 pixels; gives {FEATURES} features of each"
    assert third.startswith("run ") and third.endswith(", trained at commit 1234567")
    encoder = repro.load(skeletons)
    first, second, third = str(encoder).splitlines()
    assert first.startswith("CE on synthetic, smoke recipe, seed 0, linear ") and ", knn1 " in first
    assert second == f"takes recordings, input by pipeline default; gives {encoder.size} features of each"


def test_a_file_that_is_absent_or_from_elsewhere_is_told_what_to_do(tmp_path, skeletons):
    path = tmp_path / "theirs.safetensors"
    with pytest.raises(FileNotFoundError, match=r"theirs\.safetensors is no file, nor one of the encoders that come "
                                                r"along \(.*\); write one with `repro results weights ID`"):
        repro.load(path)
    safetensors.torch.save_file({"weight": torch.zeros(2)}, path)
    foreign = path.read_bytes()
    for contents, reason in ((foreign, r"\(it lacks architecture, recipe, view, provenance\)"), (b"", ""),
                             (b"a text\n" * 50, ""), (skeletons.read_bytes()[:-9], "")):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=rf"theirs\.safetensors holds no encoder .*{reason}; .*load_file` reads"):
            repro.load(path)


@pytest.mark.parametrize(("kind", "texts", "tensors", "message"), [
    *(("skeletons", texts, {}, message) for texts, message in (
        ({"recipe": None}, "it lacks recipe"), ({"view": "[]"}, "it holds a list"),
        ({"view": {"pipeline": "defualt"}}, "is not one of"), ({"view": {"size": 8}}, ""), ({"architecture": "{}"}, ""),
        ({"provenance": {"seed": "0"}}, "seed is '0'"), ({"recipe": {"layers": 30_000}}, "layers=30000 have 4 weights"),
        ({"recipe": {"units": 5}}, "gru.weight_hh_l0"), ({"recipe": {"units": "5"}}, ""))),
    *(("pictures", {"view": view}, {}, message) for view, message in (
        ({"mean": [0.5, 0.5]}, "three finite"), ({"std": [0.2, 0.0, 0.2]}, "std above 0"), ({"mean": "abc"}, "mean is"),
        ({"mean": ["a", 1, 2]}, "could not convert"), ({"mean": [[1], 1, 2]}, "must be"), ({"square": 1}, "square is"),
        ({"resize": 7}, "size=8, resize=7 should be"), ({"more": 1}, "more"))),
    *(("pictures", {"architecture": architecture}, {}, message)
      for architecture, message in (({"name": "resnet34"}, ""), ({"layers": 3}, "layers"), ({"projection": -3}, ""))),
    *(("pictures", {}, {name: values}, name) for name, values in (
        ("9.weight", torch.zeros(3)), ("0.weight", torch.zeros(3)),
        ("4.bias", torch.full((FEATURES,), float("nan"))))),
], ids=str)
def test_a_file_that_contradicts_itself_is_refused(tmp_path, skeletons, pictures, kind, texts, tensors, message):
    path = {"skeletons": skeletons, "pictures": pictures[0]}[kind]
    path = changed(path, tmp_path / "encoder.safetensors", tensors, **texts)
    with pytest.raises(ValueError, match=rf"(?s)encoder\.safetensors holds no encoder .*{message}.*; write or fetch"):
        repro.load(path)
