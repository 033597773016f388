"""Declarations of data sets: what they promise, where their files lie, and what is refused by name."""

import contextlib
import functools
import os
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from packed import FILES, write_folder, write_zip

from repro.data import files, manifest
from repro.data.files import content_digest


def declared(**changes):
    return {
        "name": "things", "title": "Things", "access": "form", "source": "https://example.org/things", "licence": "MIT",
        "files": [{"name": "box/things.zip", "bytes": sum(map(len, FILES.values())), "members": len(FILES),
                   "digest": content_digest(sorted(FILES.items()))}],
        "splits": {"only": {"train": {"views": [1]}, "test": {"views": [2]}, "expect": {"train": 2, "test": 1}}},
    } | changes


IMAGES = {"size": 32, "classes": ["cat", "dog"], "mean": [0.5, 0, 1], "deviation": [0.25, 1, 0.5], "source": "assumed",
          "reader": "cifar10"}


BODY = {"joints": 5, "bones": [[0, 1], [0, 2], [0, 3]], "actions": ["sit", "stand"], "axes": [0, 1, 2, 3],
        "reader": "ucla"}


SPLIT = {"train": {"part": ["train"]}, "test": {"part": ["test"]}, "expect": {"train": 2, "test": 1}}


def of_images(*left_out, **changes):
    """A declaration of images, some of whose fields are left out."""
    images = {name: value for name, value in IMAGES.items() if name not in left_out}
    return declared(images=images, splits={"only": SPLIT}) | changes


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose only data set is `things`; returns a function that declares it anew."""
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.delenv("REPRO_DATA", raising=False)
    (tmp_path / "data_manifests").mkdir()

    def declare(values):
        (tmp_path / "data_manifests" / "things.yaml").write_text(yaml.safe_dump(values))
        return manifest.load_manifest("things")

    return declare


@pytest.mark.parametrize("name", manifest.names())
def test_committed_manifest_is_complete(name):
    loaded = manifest.load_manifest(name)
    assert bool(loaded.files) == (loaded.access != "bundled")
    counted = {"test"} if name == "imagenet100" else {"train", "test"}  # nobody prints how many it trains on
    assert all(set(split.expect) >= counted for split in loaded.splits.values())


def test_committed_counts():
    in_files = manifest.load_manifest("imagenet").images
    assert (in_files.size, in_files.names, in_files.count, in_files.reader) == (None, (), 1000, None)
    ucla, ntu = manifest.load_manifest("ucla").splits["xview"], manifest.load_manifest("ntu").splits
    assert ucla.expect == {"train": 1020, "test": 464} and ucla.kept == {"train": 1013, "test": 460}
    assert (ucla.train, ucla.test) == ({"views": [1, 2]}, {"views": [3]})
    assert ntu["xsub"].kept == {"train": 40091, "test": 16487} and ntu["xview"].kept == {"train": 37646, "test": 18932}
    people = [set(getattr(ntu["xsub"], part)["subjects"]) for part in ("train", "test")]
    assert people[0] | people[1] == set(range(1, 41)) and [len(part) for part in people] == [20, 20]


def test_roots_are_those_of_the_checkout_or_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("REPRO_DATA", raising=False)
    monkeypatch.delenv("REPRO_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    checkout = Path(manifest.__file__).resolve().parents[2]
    assert manifest.data_root() == checkout / "data" and manifest.runs_root() == checkout / "runs"
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "d"))
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "r"))
    assert manifest.data_root() == tmp_path / "d" and manifest.runs_root() == tmp_path / "r"


def test_what_images_and_skeletons_are(project):
    images = project(of_images()).images
    assert (images.size, images.names, images.count, images.reader) == (32, ("cat", "dog"), 2, "cifar10")
    assert (images.mean, images.deviation, images.source) == ((0.5, 0, 1), (0.25, 1, 0.5), "assumed")
    assert repr(images.mean) == "(0.5, 0, 1)"  # as digests have it
    body = project(declared(skeletons=BODY)).skeletons
    assert (body.joints, body.bones, body.axes) == (5, ((0, 1), (0, 2), (0, 3)), (0, 1, 2, 3))


def of_part(**changes):
    """A declaration of images whose split is changed."""
    return of_images(splits={"one": SPLIT | changes})


WRONG = [  # changes of a declaration, or a whole text, and what is said of it
    ({"licens": "MIT"}, "field='licens' is not one of: name, title"),
    ({"access": "free"}, "access: Input should be 'automatic', .*, got 'free'"),
    ({"name": "stuff"}, "name is 'stuff', the file's own is 'things'"),
    ({"files": None}, "files: Input should be a valid list, got None"),
    ({"files": ["box/things.zip"]}, "files.0: Input should be .*, got 'box/things.zip'"),
    ({"files": [{"name": "a.zip", "members": True}]}, "files.0.members: .* valid integer, got True"),
    ({"files": [{"name": "a.zip", "members": -1}]}, "files.0.members: .* equal to 0, got -1"),
    *(({"files": [{"name": name}]}, f"{name!r} leads out of the data root; name a place below it")
      for name in ("../a.zip", "", ".")),
    ({"files": [{"name": "a.zip", "folder": "/etc"}]}, "files.0.folder: '/etc' leads out of the data root"),
    ({"files": [{"name": "a.zip", "url": "http://a.org/a.zip", "md5": "0"}]}, "fetched over https:// and have an md5"),
    ({"files": [{"name": "a.zip", "url": "https://a.org/a.zip"}]}, "fetched over https:// and have an md5"),
    *(({"files": [{"name": "a.zip", name: ""}]}, f"files.0.{name}: .* should match pattern .*, got ''")
      for name in ("digest", "md5", "sha256")),
    ({"splits": {"only": {"train": {}, "test": {}, "expects": {}}}}, "splits.only='expects' is not one of: train"),
    (of_part(expect={"trian": 2}), "expect.trian: Input should be 'train', .*'classes', .*, got 'trian'"),
    *((of_part(train=wrong), r"images have one split, \{train: \{part: \[train\]\}, test:")
      for wrong in ({"part": ["trian"]}, {"prat": ["train"]}, {"part": ["train", "test"]})),
    ({"images": IMAGES | {"deviation": [0.2, 0.2, 0]}}, "images.deviation.2: .* greater than 0, got 0"),
    ({"images": IMAGES | {"mean": [0.5]}}, "lacks images.mean.1, images.mean.2"),
    ({"images": IMAGES | {"mean": [0.5, 1.5, 0]}}, "images.mean.1: .*less than or equal to 1, got 1.5"),
    ({"images": IMAGES | {"mean": [0.5, "0", 0]}}, "images.mean.1.*: Input should be a valid number, got '0'"),
    *(({"images": IMAGES | {"classes": wrong}}, f"images.classes: .*{wrong}") for wrong in (1.5, True, 0)),
    ({"images": IMAGES | {"classes": ["cat", "cat"]}}, r"names=\['cat', 'cat'\] names cat twice"),
    ({"images": {"size": 3}}, "lacks images.classes, images.mean"),
    (of_images(files=[]), "files are 0; images of one size have a reader and lie in one archive"),
    (of_images("reader"), "of one size have a reader"),
    (of_images("size", "reader"), "files are 1; images .* of various sizes in two folders, train and val"),
    (of_images(access="bundled"), "files are 1; images .* bundled ones in none"),
    (of_images(splits={}), "images have one split"),
    (of_part(expect={"train": 2, "test": None}), "the numbers for train and"),
    ({"skeletons": BODY | {"bones": [[0, 1, 2]]}}, r"skeletons.bones.0: .*, got \[0, 1, 2\]"),
    ({"skeletons": BODY | {"bones": [[0, 5]]}}, "joint 5 of bones or axes should be from 0 to 4"),
    ({"skeletons": BODY | {"bones": [[0, 1], [2, 2]]}}, r"bone \(2, 2\) should connect two joints"),
    ({"skeletons": BODY | {"axes": [0, 1, 2, -1]}}, "skeletons.axes.3: .*equal to 0, got -1"),
    (b"name: [", ""), (b"\xff\xfe", ""), (b"- things", ""), (b"", ""),
    (b"name: things\nname: others", "name stands there twice; take one out"),
    (b"[" * 1000, ""), (b"x: &x [*x, *y]", ""),
    (b"{name: things, files: [], splits: {}}", "lacks title, .*licence"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_what_a_manifest_may_not_say_is_named(project, tmp_path, wrong, message):
    path = tmp_path / "data_manifests" / "things.yaml"
    path.write_bytes(wrong if isinstance(wrong, bytes) else yaml.safe_dump(declared(**wrong)).encode())
    with pytest.raises(ValueError, match=rf"{path}: .*{message}") as raised:
        manifest.load_manifest("things")
    assert "\n" not in str(raised.value)


def test_sets_with_a_section_are_those_that_have_it_bundled_ones_first(project, tmp_path):
    project(declared())
    assert manifest.sets_with("images") == {}
    for name, access, packed in (("a", "form", [{"name": "a.zip"}]), ("b", "bundled", [])):
        values = of_images() | {"name": name, "access": access, "files": packed}
        (tmp_path / "data_manifests" / f"{name}.yaml").write_text(yaml.safe_dump(values))
    found = manifest.sets_with("images")
    assert [(name, entry.access) for name, entry in found.items()] == [("b", "bundled"), ("a", "form")]


@pytest.mark.parametrize(("access", "step"), [
    ("automatic", "repro data download things"), ("derived", "part of other data"),
    ("form", r"ask for things\.zip at https://example\.org/things and put it into .*elsewhere/box, or point REPRO_D"),
])
def test_missing_data_name_the_place_and_the_step_of_their_access(project, tmp_path, access, step):
    things = project(declared(access=access))
    with pytest.raises(FileNotFoundError, match=rf"lacks {tmp_path}/elsewhere/box/things\.zip .*{step}"):
        files.verified_members(things, tmp_path / "elsewhere")


@pytest.mark.parametrize(("contents", "message"), [
    ({"a.txt": b"one"}, "has 1 of 3 files, 3 of 10,246 bytes; fetch"),
    (FILES | {"a.txt": b"eno"}, r"has contents of digest [0-9a-f]{64}, expected [0-9a-f]{64}; fetch"),
])
def test_other_contents_are_refused_where_something_is_declared(project, tmp_path, contents, message):
    things = project(declared())
    for write, name in ((write_folder, "things"), (write_zip, "things.zip")):
        write(tmp_path / "box" / name, contents)
        with pytest.raises(ValueError, match=message):
            files.verified_members(things, tmp_path)
    unknown = project(declared(files=[{"name": "box/things.zip"}]))
    assert files.verified_members(unknown, tmp_path) == sorted(contents.items())


def test_the_archive_goes_before_the_folders_it_unpacks_to(project, tmp_path):
    values = declared()
    values["files"][0]["folder"] = "other things"
    things = project(values)
    assert things.files[0].place(tmp_path) is None
    with pytest.raises(FileNotFoundError, match=r"things\.zip \(or, unpacked, .*box.things or .*box.other things\)"):
        files.require(things, tmp_path)
    for write, name in ((write_folder, "other things"), (write_folder, "things"), (write_zip, "things.zip")):
        path = write(tmp_path / "box" / name, FILES)
        assert files.require(things, tmp_path) == [path]
        assert files.verified_members(things, tmp_path) == sorted(FILES.items())


COLUMNS = {"views": np.array([1, 2, 3, 1]), "subjects": np.array([1, 1, 2, 2])}


@pytest.mark.parametrize(("train", "test", "message"), [
    ({"view": [1]}, {"views": [2]}, "did you mean 'views'. column of train='view' is not one of: views, subjects"),
    ({"views": [1]}, {}, "test\n.* at least 1 item"), ({"views": []}, {"views": [2]}, "views\n.* at least 1 item"),
])
def test_splits_that_select_by_nothing_are_refused(train, test, message):
    with pytest.raises(ValueError, match=message):
        manifest.Split(train=train, test=test, expect={}).masks(COLUMNS)


def exchange(path, contents):
    """Put other contents of the same size in the place of a file, as if it were no younger."""
    status = path.stat()
    other = path.with_name("other")
    other.write_bytes(contents)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert other.stat().st_size == status.st_size
    other.replace(path)


@pytest.mark.parametrize("place", [
    "data/box/things.zip", "data/box/things/a.txt", "data/box/things/part/a.txt", "data/splits/things.zip",
    "runs/prepared/things-imported/mine.npz", "runs/prepared/things-0123/authors.npy",
])
def test_data_are_read_once_until_their_files_are_exchanged(project, tmp_path, monkeypatch, place):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    project(declared())
    path, read = tmp_path / place, []
    path.parent.mkdir(parents=True)

    @functools.partial(manifest.read_once, maxsize=2)
    def load(name, root, part, *, subset):
        (tmp_path / "runs" / "prepared" / f"{name}-made-by-loading.npz").touch()
        read.append(subset)
        return path.read_bytes()

    (tmp_path / "runs" / "prepared").mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"old")
    for contents in (b"new", b"raw"):
        exchange(path, contents)
        assert [load("things", tmp_path / "data", "all", subset=True) for _ in range(3)] == [contents] * 3
    load("things", tmp_path / "data", "all", subset=False)
    assert read == [True, True, False]


def test_data_are_read_again_when_their_manifest_changes(project, tmp_path):
    project(declared())
    load = manifest.read_once(lambda name, root: manifest.load_manifest(name).title, maxsize=2)
    first = load("things", tmp_path)
    path = tmp_path / "data_manifests" / "things.yaml"
    path.write_text(path.read_text().replace(first, f"{first} again"))
    assert load("things", tmp_path) == f"{first} again"


@pytest.mark.parametrize("label", ["ucla (\x1b[2Jmine.npz)", "ucla\x9b2J", "ucla\a"])
def test_a_label_that_a_terminal_would_obey_is_refused(label):
    with pytest.raises(ValueError, match=r"'ucla.*\\x.*' has a character that cannot be printed"):
        manifest.plain(label)


TRAIN, TEST = torch.tensor([True, True, False, False]), torch.tensor([False, False, True, False])


@pytest.mark.parametrize(("labels", "least", "test", "message"), [
    *((labels, least, TEST, None) for labels, least in (  # in the last most have no sample
        ([0, 1, 2, 0], 0), ([0, 0, 0, 0], 0), ([0, 1, -1, -1], -1))),
    *((labels, least, TEST, f"things: label {wrong} should be from {least} to 2") for labels, least, wrong in (
        ([0, 1, 3, 0], 0, 3), ([0, 1, -1, 0], 0, -1), ([0, 1, -2, 0], -1, -2), ([2**40, 0, 0, 0], -1, 2**40))),
    ([0, 0, 0, 0], 0, torch.arange(4) > 0, "things: 1 samples are for train and for test, the first of them 1"),
])
def test_a_label_without_a_class_and_a_sample_of_both_parts_are_refused(labels, least, test, message):
    with pytest.raises(ValueError, match=message) if message else contextlib.nullcontext():
        manifest.check_labels("things", torch.tensor(labels), 3, TRAIN, test, least)


def test_counts_are_as_declared_where_something_is():
    manifest.check_counts("things", {"train": 3, "test": 0, "more": 1}, {"train": 3, "test": None}, "go")
    with pytest.raises(ValueError, match=r"things: train 3, test 0; expected train 1,000, test 0; go"):
        manifest.check_counts("things", {"train": 3, "more": 1}, {"train": 1000, "test": 0}, "go")


def test_manifests_of_ones_own_stand_beside_those_that_come_along(tmp_path, monkeypatch):
    text = (manifest.shipped("data_manifests") / "stl10.yaml").read_text()
    (tmp_path / "birds.yaml").write_text(text.replace("name: stl10", "name: birds", 1))
    before = manifest.names()
    monkeypatch.setenv("REPRO_MANIFESTS", str(tmp_path))
    assert manifest.names() == sorted([*before, "birds"])
    assert manifest.load_manifest("birds").splits == manifest.load_manifest("stl10").splits
    (tmp_path / "stl10.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"stl10.yaml and .*stl10.yaml declare data sets of one name; rename"):
        manifest.names()
    monkeypatch.setenv("REPRO_MANIFESTS", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"REPRO_MANIFESTS=.*nowhere is no folder; name one of manifests"):
        manifest.names()
