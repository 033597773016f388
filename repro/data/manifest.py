"""Data sets as declared in data_manifests/: where they come from, where they lie, and whether they are complete."""

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from repro.data.archives import content_digest, entries, members, stamp
from repro.data.disk import read_yaml
from repro.recipe import choose, distinct

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

ACCESS = ("automatic", "form", "derived", "bundled")
UNPACKED = ".unpacked"  # in `prepared_root`: what an archive holds while it is read
PACKAGE = Path(str(files("repro"))).resolve()

Loaded = TypeVar("Loaded")


@dataclass(frozen=True, kw_only=True)
class Archive:
    """One archive of a data set; the folder it unpacks to is accepted in its place.

    Attributes:
        name: path below the data root, such as `nw_ucla/all_sqe.zip`; unpacked, `nw_ucla/all_sqe`. A name without a
            suffix is that of a folder, for data used unpacked alone.
        members, bytes: number of unpacked files and their bytes, however packed; None, as what follows, if unknown.
        digest: hex sha256 over the sorted members (`content_digest`).
        folder: what it unpacks to, beside it, where that is not named as the archive.
        url, md5, size: of data sets with automatic access, where the archive itself can be fetched, its hex md5 and
            its bytes.
        sha256: its hex sha256, where that is known; a download is then checked by it instead.

    Raises:
        ValueError: if a place is not below the data root.
    """

    name: str
    members: int | None = None
    bytes: int | None = None
    digest: str | None = None
    folder: str | None = None
    url: str | None = None
    md5: str | None = None
    sha256: str | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        for place in filter(None, (self.name, self.folder)):
            if PurePosixPath(place).is_absolute() or ".." in PurePosixPath(place).parts:
                raise ValueError(f"{place!r} leads out of the data root; name a place below it")

    def places(self, root: Path) -> list[Path]:
        """Where below the data root it may lie: the archive itself, then folders that it unpacks to."""
        path = root / self.name
        unpacked = [path.with_suffix("")] if path.suffix else []
        return [path, *unpacked] + ([path.with_name(self.folder)] if self.folder else [])


@dataclass(frozen=True, kw_only=True)
class Split:
    """A protocol: what goes to train and to test, and how many.

    Attributes:
        train, test: what selects the samples, for instance `{"views": [1, 2]}`; several columns must all agree.
        expect: samples of the official distribution, for instance `{"train": 1020, "test": 464}`; "classes" too, where
            they are checked, and of pictures in their files the "least" and "most" for training in a class.
        kept: samples left after the data set's own rules (a least length, a list of unusable ones), if they drop any.
    """

    train: Mapping[str, list]
    test: Mapping[str, list]
    expect: Mapping[str, int | None]
    kept: Mapping[str, int | None] = field(default_factory=dict)

    def masks(self, columns: "Mapping[str, np.ndarray]") -> "dict[str, np.ndarray]":
        """Which samples are "train" and which "test", (n,) bool each: those whose columns all have declared values.

        ValueError if there is no column or no such one. A sample that is both is refused by `check_labels`.
        """
        import numpy as np  # which takes a third of the time of commands that only list data sets

        masks = {}
        for part, selected in (("train", self.train), ("test", self.test)):
            if not selected:
                raise ValueError(f"{part} names no column; choose among {', '.join(columns)}")
            masks[part] = np.all([np.isin(columns[choose(f"column of {part}", name, columns)], values)
                                  for name, values in selected.items()], axis=0)
        return masks


@dataclass(frozen=True, kw_only=True)
class Images:
    """What the pictures of an image data set are.

    Attributes:
        classes: their names in the order of the labels; or how many there are, where they are called as the reader
            finds them. Of pictures in their files, names are the class folders to take, a number takes all.
        mean, deviation: of red, green and blue in [0, 1], to normalise by.
        source: of these two.
        size: height and width in pixels; None where they vary, and the pictures stay in their files, those of the
            class folders `train` and `val` that the manifest names.
        reader: what makes arrays of the official files, one of `repro.image.readers.READERS`; with a size alone.
        test_every: of pictures in class folders alone, which nobody has split: n, if of each class's pictures, sorted
            by name, every n-th is for test.
    """

    classes: int | tuple[str, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    source: str
    size: int | None = None
    reader: str | None = None
    test_every: int | None = None

    def __post_init__(self) -> None:
        colours = len(self.mean) == len(self.deviation) == 3
        if not (colours and all(0 <= value <= 1 for value in self.mean)
                and all(0 < value <= 1 for value in self.deviation)):
            raise ValueError(f"mean={self.mean} and deviation={self.deviation} should be three numbers each, between 0 "
                             "and 1, the second not 0")
        if self.count < 1 or (self.size is not None and self.size < 1):
            raise ValueError(f"classes={self.classes!r} and size={self.size} should be at least 1; where the size "
                             "varies, leave it out")
        unsplit = self.reader == "unsplit_class_folders"
        if unsplit != (self.test_every is not None) or (unsplit and self.test_every < 2):
            raise ValueError(
                f"reader={self.reader}, test_every={self.test_every}: pictures in class folders alone have the reader "
                "unsplit_class_folders and test_every, at least 2, such as 5; others have neither"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the classes, nothing if only their number is declared."""
        return self.classes if isinstance(self.classes, tuple) else ()

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.classes) if isinstance(self.classes, tuple) else self.classes


@dataclass(frozen=True, kw_only=True)
class Skeletons:
    """What the recordings of a skeleton data set are.

    Attributes:
        joints: how many a body has.
        bones: pairs of joints: what a picture connects, and the neighbours of a graph.
        actions: names of the classes in the order of the labels.
        axes: four joints that give a body's frame of reference: middle of the hip, the spine above, left and right hip.
        reader: what makes recordings of the official files, one of `repro.skeleton.readers.READERS`; "ntu" for files
            that are prepared first, by `repro.skeleton.ntu`.

    Raises:
        ValueError: if a bone or an axis names a joint that there is not, or an action is there twice.
    """

    joints: int
    bones: tuple[tuple[int, int], ...]
    actions: tuple[str, ...]
    axes: tuple[int, ...]
    reader: str

    def __post_init__(self) -> None:
        if len(self.axes) != 4:
            raise ValueError(f"axes={list(self.axes)} should be four joints: hip, spine, left hip, right hip")
        pairs = [joint for bone in self.bones for joint in bone]
        if len(pairs) != 2 * len(self.bones):
            raise ValueError(f"bones={list(map(list, self.bones))} should be pairs of joints")
        for joint in (*pairs, *self.axes):
            if joint not in range(self.joints):
                raise ValueError(f"joint {joint} of bones or axes should be from 0 to {self.joints - 1}")
        distinct("actions", list(self.actions), self.actions)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A data set as its file in data_manifests/ declares it.

    Attributes:
        name: what users type; also the file's stem.
        title: one line for people.
        access: `automatic` (can be downloaded), `form` (asked for by hand), `derived` (made from another data set) or
            `bundled` (part of this package).
        source: home page; for bundled data, its module.
        licence: terms as far as known.
        files: the archives, none for bundled data.
        splits: protocols by name.
        images: what its pictures are, of an image data set, which has one split.
        skeletons: what its recordings are, of a skeleton data set.
    """

    name: str
    title: str
    access: str
    source: str
    licence: str
    files: tuple[Archive, ...]
    splits: Mapping[str, Split]
    images: Images | None = None
    skeletons: Skeletons | None = None

    def __post_init__(self) -> None:
        choose("access", self.access, ACCESS)
        if (images := self.images) is None:
            return
        if len(self.splits) != 1 or (images.size is not None and None in map(self.expect.get, ("train", "test"))):
            raise ValueError("images have one split, and those of one size the numbers for train and test to expect")
        places = 0 if self.access == "bundled" else 1 if images.size else 2
        if (images.size is None) != (images.reader is None) or len(self.files) != places:
            raise ValueError(f"files are {len(self.files)}; images of one size have a reader and lie in one archive or "
                             "folder, of various sizes in two folders, train and val, and bundled ones in none")

    @property
    def expect(self) -> Mapping[str, int | None]:
        """Of the only split, see `Split`."""
        split, = self.splits.values()
        return split.expect


def checkout() -> Path | None:
    """The checkout this package runs from; None if it is installed as a copy, which alone has its manifests inside."""
    return None if (PACKAGE / "data_manifests").is_dir() else PACKAGE.parent


def project_root() -> Path:
    """The checkout this package runs from, otherwise the current folder: where data, runs and figures/ are."""
    return checkout() or Path.cwd()


def shipped(name: str) -> Path:
    """A folder that comes with the package, `data_manifests` or `figures`; installed, the latter has `cells.csv` alone.
    """
    return (PACKAGE if checkout() is None else project_root()) / name


def data_root() -> Path:
    """The folder of real data: REPRO_DATA, or `data` in the project root. Nothing but a download writes there.

    ValueError if there is a file instead.
    """
    root = Path(os.environ.get("REPRO_DATA") or project_root() / "data").expanduser().resolve()
    if root.is_file():
        raise ValueError(f"REPRO_DATA is {root}, a file; point it at the folder that holds the data sets")
    return root


def runs_root() -> Path:
    """The folder of results and prepared arrays: REPRO_RUNS, or `runs` in the project root."""
    return Path(os.environ.get("REPRO_RUNS") or project_root() / "runs").expanduser().resolve()


def prepared_root() -> Path:
    """The folder of arrays made of the data sets' files."""
    return runs_root() / "prepared"


def imported(name: str) -> Path:
    """The folder of the one copy of a data set that `repro data import` has taken in, which is named after its file."""
    return prepared_root() / f"{name}-imported"


def copy_of(name: str) -> Path | None:
    """The copy of a data set that `repro data import` took in, if there is one; its stem is its file's name."""
    return max(imported(name).glob("*.npz"), key=lambda path: path.stat().st_mtime_ns, default=None)


def read_once(load: Callable[..., Loaded], maxsize: int) -> Callable[..., Loaded]:
    """`load(name, root, ...)` of data sets, of which so many are kept per process while their files stay the same."""
    cached = functools.lru_cache(maxsize)(lambda _version, *values, **options: load(*values, **options))

    @functools.wraps(load)
    def read(name: str, root: Path, *values: Any, **options: Any) -> Loaded:
        return cached(version(name, root), name, root, *values, **options)

    return read


def version(name: str, root: Path) -> tuple[tuple[Path, tuple[int, ...]], ...]:
    """What changes when the files behind a data set are exchanged: their places and stamps; no contents are read.

    That is its archives, or folders and the folders in these, the lists of splits, and what was imported or prepared.
    """
    declared = (*load_manifest(name).files, Archive(name=f"splits/{name}.zip"))
    paths = [path for archive in declared if (path := location(archive, root))]
    paths += [Path(entry) for path in paths if path.is_dir() for entry in os.scandir(path) if entry.is_dir()]
    made = prepared_root().glob(f"{name}-*/*")
    paths += [path for path in made if path.suffix != ".lock" and not path.name.startswith(".")]  # these are written
    return tuple((path, stamp(path)) for path in sorted(paths))


def names() -> list[str]:
    """Names of the declared data sets, sorted."""
    return sorted(files_of())


def files_of() -> dict[str, Path]:
    """The files that declare data sets, by name: those that come with the package, then those of REPRO_MANIFESTS.

    Raises:
        ValueError: if that is no folder, or one of its files has the name of another data set.
    """
    declared = {path.stem: path for path in shipped("data_manifests").glob("*.yaml")}
    if not (further := os.environ.get("REPRO_MANIFESTS")):
        return declared
    folder = Path(further).expanduser().resolve()
    if not folder.is_dir():
        raise ValueError(f"REPRO_MANIFESTS={further} is no folder; name one of manifests, NAME.yaml")
    for path in folder.glob("*.yaml"):
        if (other := declared.setdefault(path.stem, path)) != path:
            raise ValueError(f"{path} and {other} declare data sets of one name; rename the first, and its `name`")
    return declared


def plain(label: str) -> str:
    """The data set of a label that may say which part or copy it is: "ntu (subset)" gives "ntu"."""
    return label.partition(" (")[0]


def bundled(label: str) -> bool:
    """Whether the data set of a label, "digits" or "cifar10 (my_copy.npz)", comes with the package."""
    return load_manifest(plain(label)).access == "bundled"


def check_subset(name: str, subset: bool) -> None:
    """Raise ValueError if a part is asked for of a data set that comes with the package, which is always whole."""
    if subset and bundled(name):
        raise ValueError(f"subset={subset!r} is not for {name}, which is bundled and whole; leave --subset out")


def load_manifest(name: str) -> Manifest:
    """Read the file of a data set; ValueError names the data sets there are, or the file and its wrong field."""
    declared = files_of()
    path = declared[choose("dataset", name, sorted(declared))]
    return _declared(path, path.stat().st_mtime_ns)


@functools.cache
def _declared(path: Path, _changed: int) -> Manifest:
    """`load_manifest` of a file, read again when that has changed: rows of tables ask for theirs one by one."""
    try:
        values = read_yaml(path)
        files = tuple(_made(Archive, "files", fields) for fields in values["files"])
        splits = {name: _made(Split, "splits", fields) for name, fields in values["splits"].items()}
        parts: dict[str, Any] = {"files": files, "splits": splits}
        for name, kind in (("images", Images), ("skeletons", Skeletons)):
            fields = (values.get(name) or {}).items()
            parts[name] = _made(kind, name, {field: _tuples(value) for field, value in fields}) if fields else None
        declared = _made(Manifest, "the manifest", values | parts)
        for archive in files:
            if archive.url and not (archive.url.startswith("https://") and archive.md5):
                raise ValueError(f"{archive.url} should be fetched over https:// and have an md5; declare both")
        if declared.name != path.stem:
            raise ValueError(f"name is {declared.name!r}, the file's own is {path.stem!r}; make them agree")
    except KeyError as error:
        raise ValueError(f"{path} lacks {error.args[0]}; add it") from error
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"{path}: {error}; mend it, or restore it from version control") from error
    return declared


def _made(kind: Callable[..., Loaded], where: str, values: Mapping[str, Any]) -> Loaded:
    """A part of a manifest of these values; ValueError names a field that such a part has not."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{where}: {values!r} should be fields with their values")
    for name in values:
        choose(f"field of {where}", name, inspect.signature(kind).parameters)
    return kind(**values)


def _tuples(value: Any) -> Any:
    """Lists, also inside of lists, as tuples; whatever else as it is."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def sets_with(section: str) -> dict[str, Manifest]:
    """The data sets whose manifest has a section, "images" or "skeletons", by name: first those of the package.

    Raises as `load_manifest`.
    """
    declared = [entry for name in names() if getattr(entry := load_manifest(name), section)]
    return {entry.name: entry for entry in sorted(declared, key=lambda entry: entry.access != "bundled")}


def location(archive: Archive, root: Path) -> Path | None:
    """Where `archive` lies below the data root: the archive itself, else the folder it unpacks to, else None."""
    return next((path for path in archive.places(root) if path.is_file() or path.is_dir()), None)


def require(manifest: Manifest, root: Path) -> list[Path]:
    """Where the files of a data set lie below `root`, in the manifest's order.

    FileNotFoundError names the page, the archive and where to put it, and a copy that was taken in instead.
    """
    paths = [location(archive, root) for archive in manifest.files]
    if None in paths:
        path, *unpacked = manifest.files[paths.index(None)].places(root)
        alternative = f" (or, unpacked, {' or '.join(map(str, unpacked))})" if unpacked else ""
        copy = copy_of(manifest.name)
        instead = f"; or pass --subset (subset=True) for the copy {copy.stem}" if copy else ""
        raise FileNotFoundError(
            f"data set {manifest.name!r} lacks {path}{alternative}; {next_step(manifest, path)}{instead}"
        )
    return paths


def difference(archive: Archive, path: Path) -> str | None:
    """How what lies at `path` differs in names and sizes from what is declared, "" if not; None if nobody can tell."""
    counts = {"bytes": (path.stat().st_size, archive.size)}
    if path.is_dir() and archive.members is None:  # there may be millions
        return None if any(path.iterdir()) else "is empty"
    if path.is_dir() or (path.suffix == ".zip" and archive.members is not None):
        try:
            sizes = [entry.size for entry in entries(path)]
        except ValueError as error:
            return f"is truncated or damaged ({error.__cause__ or error})"
        counts = {"files": (len(sizes), archive.members), "bytes": (sum(sizes), archive.bytes)}
    if all(declared is None for _, declared in counts.values()):
        return None
    wrong = [f"{count:,} of {declared:,} {what}" for what, (count, declared) in counts.items()
             if declared not in (count, None)]
    return f"has {', '.join(wrong)}" if wrong else ""


def verified_members(manifest: Manifest, root: Path) -> list[tuple[str, bytes]]:
    """The members of every file of a data set; raises as `require`, and ValueError if one is not as declared."""
    gathered = []
    for archive, path in zip(manifest.files, require(manifest, root), strict=True):
        contents, wrong = members(path), difference(archive, path)
        if not wrong and archive.digest not in (None, content_digest(contents)):
            wrong = f"has contents of digest {content_digest(contents)}, expected {archive.digest}"
        if wrong:
            raise ValueError(f"{path} is not the distribution data_manifests/{manifest.name}.yaml declares: "
                             f"it {wrong}; fetch it again from {manifest.source}")
        gathered += contents
    return gathered


def next_step(manifest: Manifest, path: Path) -> str:
    """What a reader does to obtain `path`."""
    if manifest.access == "automatic":
        return f"run `repro data download {manifest.name}`, or point REPRO_DATA at a folder that has it"
    if manifest.access == "derived":
        return (f"it is part of other data: get these at {manifest.source}, "
                f"or point REPRO_DATA at a folder that has them")
    return (f"ask for {path.name} at {manifest.source} and put it into {path.parent}, "
            f"or point REPRO_DATA at a folder that has it")


def check_labels(name: str, labels: "Tensor", classes: int, train: "Tensor", test: "Tensor", least: int = 0) -> None:
    """Raise ValueError if one of `labels`, (n,) int64, is not in `least`..`classes`-1, or a sample of both parts.

    The parts are (n,) bool; `least` is -1 where samples may have no label.
    """
    wrong = labels[(labels < least) | (labels >= classes)]
    if len(wrong):
        raise ValueError(f"{name}: label {int(wrong[0])} should be from {least} to {classes - 1}")
    both = (train & test).nonzero()
    if len(both):
        raise ValueError(f"{name}: {len(both)} samples are for train and for test, the first of them {int(both[0])}; "
                         "a sample belongs to one of them")


def check_counts(what: str, counts: Mapping[str, int], expected: Mapping[str, int | None], next_step: str) -> None:
    """Raise ValueError, with what to do next, unless the counts are as expected where something is expected."""
    expected = {part: number for part, number in expected.items() if number is not None}
    if any(counts.get(part) != number for part, number in expected.items()):
        has, should = (", ".join(f"{part} {numbers.get(part, 0):,}" for part in expected)
                       for numbers in (counts, expected))
        raise ValueError(f"{what}: {has}; expected {should}; {next_step}")
