import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from packed import FILES, write_folder, write_zip

from repro.data import manifest
from repro.data.archives import content_digest


def declared(**changes):
    members = sorted(FILES.items())
    return {
        "name": "things", "title": "Things", "access": "form", "source": "https://example.org/things", "licence": "MIT",
        "files": [{
            "name": "box/things.zip", "bytes": sum(map(len, FILES.values())), "members": len(FILES),
            "digest": content_digest(members),
        }],
        "splits": {"only": {"train": {"views": [1]}, "test": {"views": [2]}, "expect": {"train": 2, "test": 1}}},
    } | changes


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose only data set is `things`; returns a function that declares it anew."""
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.delenv("REPRO_DATA", raising=False)
    folder = tmp_path / "data_manifests"
    folder.mkdir()

    def declare(values):
        (folder / "things.yaml").write_text(yaml.safe_dump(values))
        return manifest.load_manifest("things")

    return declare


@pytest.mark.parametrize("name", manifest.names())
def test_committed_manifest_is_complete(name):
    loaded = manifest.load_manifest(name)
    assert loaded.title and loaded.source and loaded.licence
    assert bool(loaded.files) == (loaded.access != "embedded")
    counted = {"test"} if name == "imagenet100" else {"train", "test"}  # nobody prints how many it trains on
    assert all(set(split.expect) >= counted for split in loaded.splits.values())


def test_committed_ucla_counts():
    split = manifest.load_manifest("ucla").splits["xview"]
    assert split.expect == {"train": 1020, "test": 464} and split.kept == {"train": 1013, "test": 460}
    assert split.train["views"] == [1, 2] and split.test["views"] == [3]


def test_roots_do_not_depend_on_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("REPRO_DATA", raising=False)
    monkeypatch.delenv("REPRO_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    checkout = Path(manifest.__file__).resolve().parents[2]
    assert manifest.data_root() == checkout / "data" and manifest.runs_root() == checkout / "runs"


def test_roots_follow_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "d"))
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "r"))
    assert manifest.data_root() == tmp_path / "d" and manifest.runs_root() == tmp_path / "r"


def test_unknown_dataset_names_the_declared_ones(project):
    project(declared())
    with pytest.raises(ValueError, match="dataset='thing' is not one of: things; did you mean 'things'"):
        manifest.load_manifest("thing")


@pytest.mark.parametrize(("change", "message"), [
    ({"licens": "MIT"}, "field='licens' is not one of: .*did you mean 'licence'"),
    ({"access": "free"}, "access='free' is not one of: automatic, form, derived, embedded"),
    ({"files": [{"name": "a.zip", "url": "http://a.org/a.zip", "md5": "0"}]}, "fetched over https:// and have an md5"),
    ({"files": [{"name": "a.zip", "url": "https://a.org/a.zip"}]}, "fetched over https:// and have an md5"),
    ({"name": "stuff"}, "name is 'stuff', the file's own is 'things'"),
    ({"files": [{"members": 3, "bytes": 3, "digest": "0"}]}, "files: missing name"),
    ({"files": ["box/things.zip"]}, "expected fields of Archive"),
    ({"splits": {"only": {"train": {}, "test": {}, "expects": {}}}}, "only: field='expects'"),
])
def test_misspelt_manifest_raises(project, change, message):
    with pytest.raises(ValueError, match=message):
        project(declared(**change))


IMAGES = {"size": 32, "classes": ["cat", "dog"], "mean": [0.5, 0, 1], "deviation": [0.25, 1, 0.5], "source": "assumed",
          "reader": "cifar10"}


def of_images(**changes):
    values = {name: value for name, value in (IMAGES | changes).items() if value != "left out"}
    return declared(images=values)


def test_what_images_are(project):
    images = project(of_images()).images
    assert (images.size, images.names, images.count, images.reader) == (32, ("cat", "dog"), 2, "cifar10")
    assert (images.mean, images.deviation, images.source) == ((0.5, 0, 1), (0.25, 1, 0.5), "assumed")
    in_files = of_images(size="left out", reader="left out", classes=1000)
    in_files = project(in_files | {"files": [{"name": "train"}, {"name": "val"}]}).images
    assert (in_files.size, in_files.names, in_files.count, in_files.reader) == (None, (), 1000, None)
    assert project(declared()).images is None


@pytest.mark.parametrize(("change", "message"), [
    ({"side": 32}, r"things\.yaml, images: field='side' is not one of: classes, mean, "),
    ({"source": "left out"}, "images: missing source; the fields are classes, mean"),
    ({"size": "32"}, "size is '32', expected"),
    ({"size": 0}, "size should be at least 1"), ({"classes": 0}, "classes and size should be at least 1"),
    ({"classes": []}, r"classes is \[\], expected"), ({"classes": [0, 1]}, r"classes is \[0, 1\], expected"),
    ({"classes": ["cat", "cat"]}, "no class be there twice"), ({"classes": True}, "classes is True, expected"),
    ({"mean": [0.5, 0.5]}, r"images: mean is \(0.5, 0.5\), expected three numbers"),
    ({"mean": 0.5}, "mean is 0.5, expected"),
    ({"mean": [0.5, 0.5, 127]}, "blue, up to 1"), ({"mean": [0.5, -0.5, 0]}, "mean is .*, expected"),
    ({"mean": [0.5, float("nan"), 0]}, "mean is .*, expected"), ({"mean": [0.5, True, 0]}, "mean is .*, expected"),
    ({"deviation": [0.5, 0, 0.5]}, "deviations above 0"), ({"reader": ""}, "reader is '', expected"),
    ({"reader": "left out"}, "size and reader go together"), ({"size": "left out"}, "size and reader go together"),
])
def test_images_of_impossible_kinds_raise(project, change, message):
    with pytest.raises(ValueError, match=message):
        project(of_images(**change))


@pytest.mark.parametrize(("change", "message"), [
    ({"images": 3}, "images is 3, expected"), ({"images": {}}, r"things\.yaml, images: missing classes, mean, "),
    ({"files": []}, r"things\.yaml: files are 0; images of one size lie in one archive or folder"),
    ({"files": [{"name": "a"}, {"name": "b"}]}, "files are 2; images of one size lie in one"),
    ({"images": {name: IMAGES[name] for name in ("classes", "mean", "deviation", "source")}},
     "files are 1; images .* of various sizes in two folders, train and val"),
    ({"access": "embedded"}, "files are 1; images .* those that come with the package in none"),
    ({"splits": {}}, r"things\.yaml: splits are none; images have one"),
    ({"splits": {"one": {"train": {}, "test": {}, "expect": {"train": 2}}}}, "declare how many images there are"),
    ({"splits": {"one": {"train": {}, "test": {}, "expect": {"train": 2, "test": None}}}}, "declare how many images"),
])
def test_images_without_what_goes_with_them_raise(project, change, message):
    with pytest.raises(ValueError, match=message):
        project(of_images() | change)


def test_image_sets_are_those_that_say_so_bundled_ones_first(project, tmp_path):
    project(declared())
    assert manifest.image_sets() == {}
    for name, access, files in (("a", "form", [{"name": "a.zip"}]), ("b", "embedded", [])):
        values = of_images() | {"name": name, "access": access, "files": files}
        (tmp_path / "data_manifests" / f"{name}.yaml").write_text(yaml.safe_dump(values))
    assert {name: found.access for name, found in manifest.image_sets().items()} == {"b": "embedded", "a": "form"}
    assert [*manifest.image_sets()] == ["b", "a"]


def test_missing_field_raises(project):
    values = declared()
    del values["licence"]
    with pytest.raises(ValueError, match=r"things\.yaml: missing licence; the fields are name, title"):
        project(values)


def test_missing_dataset_says_where_from_and_where_to(project, tmp_path):
    things = project(declared())
    with pytest.raises(FileNotFoundError) as caught:
        manifest.verified_members(things, tmp_path / "elsewhere")
    message = str(caught.value)
    for part in ("https://example.org/things", str(tmp_path / "elsewhere" / "box" / "things.zip"), "REPRO_DATA"):
        assert part in message


@pytest.mark.parametrize(
    ("access", "step"), [("automatic", "repro data download things"), ("derived", "part of other data")]
)
def test_missing_dataset_names_the_step_of_its_access(project, tmp_path, access, step):
    with pytest.raises(FileNotFoundError, match=step):
        manifest.verified_members(project(declared(access=access)), tmp_path)


def test_other_contents_raise_with_both_numbers(project, tmp_path):
    things = project(declared())
    write_zip(tmp_path / "box" / "things.zip", {"a.txt": b"one"})
    with pytest.raises(ValueError, match=r"things.zip is not .*members 1, expected 3; bytes 3, expected 10246; digest"):
        manifest.verified_members(things, tmp_path)


def test_same_sizes_but_another_content_raise(project, tmp_path):
    things = project(declared())
    write_folder(tmp_path / "box" / "things", FILES | {"a.txt": b"eno"})
    with pytest.raises(ValueError, match=f"digest [0-9a-f]{{64}}, expected {things.files[0].digest}") as caught:
        manifest.verified_members(things, tmp_path)
    assert "members" not in str(caught.value)


def test_archive_goes_before_folder(project, tmp_path):
    things = project(declared())
    folder = write_folder(tmp_path / "box" / "things", FILES)
    assert manifest.verified_members(things, tmp_path) == sorted(FILES.items())
    assert manifest.require(things, tmp_path) == [folder]
    path = write_zip(tmp_path / "box" / "things.zip", FILES)
    assert manifest.require(things, tmp_path) == [path]


def test_the_folder_an_archive_unpacks_to_may_have_a_name_of_its_own(project, tmp_path):
    values = declared()
    values["files"][0]["folder"] = "other things"
    things = project(values)
    assert manifest.location(things.files[0], tmp_path) is None
    with pytest.raises(FileNotFoundError, match=r"things\.zip \(or, unpacked, .*box.things or .*box.other things\)"):
        manifest.require(things, tmp_path)
    write_folder(tmp_path / "box" / "other things", FILES)
    assert manifest.verified_members(things, tmp_path) == sorted(FILES.items())


def test_a_folder_without_an_archive(project, tmp_path):
    values = declared()
    values["files"] = [{"name": "box/things"}]
    things = project(values)
    with pytest.raises(FileNotFoundError, match=r"lacks \S*things; ask for things at https://example.org/things"):
        manifest.require(things, tmp_path)
    folder = write_folder(tmp_path / "box" / "things", FILES)
    assert manifest.require(things, tmp_path) == [folder]


def test_what_the_manifest_does_not_know_is_not_compared(project, tmp_path):
    values = declared()
    del values["files"][0]["digest"], values["files"][0]["bytes"]
    write_zip(tmp_path / "box" / "things.zip", FILES | {"a.txt": b"another"})
    assert len(manifest.verified_members(project(values), tmp_path)) == 3


def test_committed_ntu_counts():
    splits = manifest.load_manifest("ntu").splits
    assert list(splits) == ["xsub", "xview"]
    assert splits["xsub"].kept == {"train": 40091, "test": 16487}
    assert splits["xview"].kept == {"train": 37646, "test": 18932}
    people = [set(getattr(splits["xsub"], part)["subjects"]) for part in ("train", "test")]
    assert people[0] | people[1] == set(range(1, 41)) and [len(part) for part in people] == [20, 20]


@pytest.mark.parametrize(("change", "message"), [
    ({"title": None}, r"things\.yaml: title is None, expected str"), ({"title": " "}, "title is ' ', expected str"),
    ({"licence": 3}, "licence is 3, expected str"), ({"files": None}, "files is None, expected tuple"),
    ({"splits": [1]}, r"splits is \[1\], expected"), ({"splits": {"only": None}}, "splits is {'only': None}, expected"),
    ({"files": [{"name": "a.zip", "members": "3"}]}, r"files: members is '3', expected int \| None"),
    ({"files": [{"name": "a.zip", "bytes": True}]}, "bytes is True, expected"),
    ({"files": [{"name": "a.zip", "size": -1}]}, "size is -1, expected .* not empty or negative"),
    ({"files": [{"name": "a.zip", "bytes": float("inf")}]}, "bytes is inf, expected"),
    ({"files": [{"name": "../a.zip"}]}, "'../a.zip' leads out of the data root; name a place below it"),
    ({"files": [{"name": "a.zip", "folder": "/etc"}]}, "'/etc' leads out of the data root"),
    ({"splits": {"only": {"train": {"views": 1}, "test": {}, "expect": {}}}}, "only: train is {'views': 1}, expected"),
    ({"splits": {"only": {"train": {}, "test": {}, "expect": {"train": "2"}}}}, "expect is {'train': '2'}, expected"),
])
def test_a_field_of_another_type_raises(project, change, message):
    with pytest.raises(ValueError, match=message):
        project(declared(**change))


@pytest.mark.parametrize("text", [
    b"name: [", b"name: \x00", b"\xff\xfe", b"a: b: c", b"- things", b"", b"[" * 10_000, b"x: &x [*x, *y]",
])
def test_what_is_no_yaml_of_ours_is_named(project, tmp_path, text):
    path = tmp_path / "data_manifests" / "things.yaml"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=f"{path}"):
        manifest.load_manifest("things")


COLUMNS = {"views": np.array([1, 2, 3, 1]), "subjects": np.array([1, 1, 2, 2])}


def split(train, test):
    return manifest.Split(train=train, test=test, expect={})


def test_masks_take_the_samples_whose_columns_all_agree():
    found = split({"views": [1, 2], "subjects": [1]}, {"views": [3, 4]}).masks(COLUMNS)
    assert found["train"].tolist() == [True, True, False, False]
    assert found["test"].tolist() == [False, False, True, False]


@pytest.mark.parametrize(("train", "test", "message"), [
    ({"views": [1, 2]}, {"views": [2, 3]}, "1 samples are for train and for test, by .* without a common sample"),
    ({"views": [1]}, {"subjects": [1, 2]}, "2 samples are for train and for test"),
    ({"view": [1]}, {"views": [2]}, "column of train='view' is not one of: views, subjects; did you mean 'views'"),
    ({"views": [1]}, {}, "test names no column; choose among views, subjects"),
])
def test_splits_that_overlap_or_select_by_nothing_are_refused(train, test, message):
    with pytest.raises(ValueError, match=message):
        split(train, test).masks(COLUMNS)


def test_declared_parts_may_overlap_where_no_sample_does():
    found = split({"views": [1], "subjects": [1]}, {"views": [1], "subjects": [2]}).masks(COLUMNS)
    assert not (found["train"] & found["test"]).any()


def exchange(path, contents):
    """Put other contents of the same size in the place of a file, as if it were no younger."""
    found = path.stat()
    other = path.with_name("other")
    other.write_bytes(contents)
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert other.stat().st_size == found.st_size
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

    @manifest.read_once(maxsize=2)
    def load(name, root, part, *, subset):
        (tmp_path / "runs" / "prepared" / f"{name}-made-by-loading.npz").touch()
        read.append(subset)
        return path.read_bytes()

    (tmp_path / "runs" / "prepared").mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"old")
    for contents in (b"new", b"raw", b"fit"):
        exchange(path, contents)
        assert [load("things", tmp_path / "data", "all", subset=True) for _ in range(3)] == [contents] * 3
    assert read == [True] * 3
    load("things", tmp_path / "data", "all", subset=False)
    assert read == [True] * 3 + [False]
