"""Data sets as declared in data_manifests/: where they come from, where they lie, and what their files hold."""

import functools
import os
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, StrictFloat, StrictInt
from pydantic.dataclasses import dataclass

from repro.data.disk import made, read_yaml, stamp
from repro.recipe import choose, distinct

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

PACKAGE = Path(str(files("repro"))).resolve()
DECLARED = ConfigDict(extra="forbid")
IMAGE_PARTS = {"part": ["train"]}, {"part": ["test"]}

Loaded = TypeVar("Loaded")


def _below(place: str) -> str:
    path = PurePosixPath(place)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{place!r} leads out of the data root; name a place below it")
    return place


Place = Annotated[str, AfterValidator(_below)]
Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]
Share = Annotated[StrictInt | StrictFloat, Field(ge=0, le=1)]  # 0 stays 0, as digests have it
Deviation = Annotated[Share, Field(gt=0)]
Checksum = Annotated[str, Field(pattern="^[0-9a-f]+$")]
Access = Literal["automatic", "form", "derived", "bundled"]
Names = Annotated[tuple[str, ...], AfterValidator(lambda names: tuple(distinct("names", [*names], names)))]
Columns = Annotated[Mapping[str, Annotated[list, Field(min_length=1)]], Field(min_length=1)]
Counts = Mapping[  # of samples by part, of classes, of training pictures in the smallest and largest class
    Literal["train", "test", "validation", "unlabeled", "unused", "classes", "least", "most"], Count | None]


@dataclass(frozen=True, kw_only=True, config=DECLARED)
class Archive:
    """One archive of a data set; the folder it unpacks to is accepted in its place."""

    name: Place                   # path below the data root, `box/things.zip`, unpacked `box/things`; or of a folder
    members: Count | None = None  # number of its files, as what follows None if that is not known
    bytes: Count | None = None    # of all of them, however packed
    digest: Checksum | None = None  # hex sha256 over the sorted files (`files.content_digest`)
    folder: Place | None = None   # what it unpacks to, beside it, where that is not named as the archive
    url: str | None = None        # https, of data sets with automatic access, where the archive itself can be fetched
    md5: Checksum | None = None   # hex, of the archive itself
    sha256: Checksum | None = None  # hex, likewise; a download is then checked by it instead
    size: Count | None = None     # bytes of the archive itself

    def places(self, root: Path) -> list[Path]:
        """Where below the data root it may lie: the archive itself, then folders that it unpacks to."""
        path = root / self.name
        unpacked = [path.with_suffix("")] if path.suffix else []
        return [path, *unpacked] + ([path.with_name(self.folder)] if self.folder else [])

    def place(self, root: Path) -> Path | None:
        """The first of these places where there is a file or a folder."""
        return next((path for path in self.places(root) if path.is_file() or path.is_dir()), None)


@dataclass(frozen=True, kw_only=True, config=DECLARED)
class Split:
    """A protocol: what goes to train and to test, and how many."""

    train: Columns                          # their values, which must all agree, such as {"views": [1, 2]}
    test: Columns
    expect: Counts                          # of the official distribution, None where it is not known
    kept: Counts | None = None              # left by the data set's own rules, if they drop any

    def masks(self, columns: "Mapping[str, np.ndarray]") -> "dict[str, np.ndarray]":
        """Which samples are "train" and which "test", (n,) bool each: those whose columns all have declared values.

        ValueError if there is no such column. A sample that is both is refused by `check_labels`.
        """
        import numpy as np  # which takes a third of the time of commands that only list data sets

        masks = {}
        for part, selected in (("train", self.train), ("test", self.test)):
            masks[part] = np.all([np.isin(columns[choose(f"column of {part}", name, columns)], values)
                                  for name, values in selected.items()], axis=0)
        return masks


@dataclass(frozen=True, kw_only=True, config=DECLARED)
class Images:
    """What the pictures of an image data set are."""

    classes: Positive | Names               # names in the order of the labels, or how many, called as the reader finds
    mean: tuple[Share, Share, Share]        # of red, green and blue in [0, 1], to normalise by
    deviation: tuple[Deviation, Deviation, Deviation]
    source: str                             # of these two
    size: Positive | None = None            # pixels of a side; None where they vary, and stay in their files
    reader: str | None = None               # one of `repro.image.readers.READERS`; with a size alone
    test_every: Annotated[int, Field(strict=True, ge=2)] | None = None  # every n-th of a class is for test

    def __post_init__(self) -> None:
        if (self.reader == "unsplit_class_folders") != (self.test_every is not None):
            raise ValueError(
                f"reader={self.reader}, test_every={self.test_every}: pictures in class folders alone have the reader "
                "unsplit_class_folders and test_every, such as 5; others have neither"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the classes, nothing if only their number is declared."""
        return self.classes if isinstance(self.classes, tuple) else ()

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.classes) if isinstance(self.classes, tuple) else self.classes


@dataclass(frozen=True, kw_only=True, config=DECLARED)
class Skeletons:
    """What the recordings of a skeleton data set are."""

    joints: Positive                        # how many a body has
    bones: tuple[tuple[Count, Count], ...]  # pairs of joints: what a picture connects, and the neighbours of a graph
    actions: Names                          # of the classes in the order of the labels
    axes: tuple[Count, Count, Count, Count]  # a body's frame: middle of the hip, spine above, left, right hip
    reader: str                         # one of `repro.skeleton.readers.READERS`; "ntu": `repro.skeleton.ntu` prepares

    def __post_init__(self) -> None:
        if (joint := max(sum(self.bones, self.axes))) >= self.joints:
            raise ValueError(f"joint {joint} of bones or axes should be from 0 to {self.joints - 1}")
        if loops := [bone for bone in self.bones if bone[0] == bone[1]]:
            raise ValueError(f"bone {loops[0]} should connect two joints")


@dataclass(frozen=True, kw_only=True, config=DECLARED)
class Manifest:
    """A data set as its file in data_manifests/ declares it."""

    name: str                               # what users type; also the file's stem
    title: str                              # one line for people
    access: Access                          # can be fetched, is asked for, is part of other data or of this package
    source: str                             # home page; for bundled data, its module
    licence: str                            # terms as far as known
    files: tuple[Archive, ...]              # none of bundled data
    splits: Mapping[str, Split]             # protocols by name; of images one
    images: Images | None = None            # what the pictures are, of an image data set
    skeletons: Skeletons | None = None      # what the recordings are, of a skeleton data set

    def __post_init__(self) -> None:
        if (images := self.images) is None:
            return
        parts = [(split.train, split.test) for split in self.splits.values()]
        if parts != [IMAGE_PARTS] or (images.size is not None and None in map(self.expect.get, ("train", "test"))):
            raise ValueError("images have one split, {train: {part: [train]}, test: {part: [test]}, expect: ...}, "
                             "and those of one size the numbers for train and test to expect")
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
    """A folder that comes with the package, `data_manifests`, `weights` or `figures`, installed `runs.csv` alone."""
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

    That is its manifest, its archives, or folders and the folders in these, the lists of splits, and what was imported
    or prepared.
    """
    declared = (*load_manifest(name).files, Archive(name=f"splits/{name}.zip"))
    paths = [path for archive in declared if (path := archive.place(root))]
    paths += [Path(entry) for path in paths if path.is_dir() for entry in os.scandir(path) if entry.is_dir()]
    made = prepared_root().glob(f"{name}-*/*")
    paths += [path for path in made if path.suffix != ".lock" and not path.name.startswith(".")]  # these are written
    return tuple((path, stamp(path)) for path in sorted([files_of()[name], *paths]))


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
    """The data set of a label, "ntu" of "ntu (subset)"; ValueError if a terminal would do what it says, not show it."""
    if not label.isprintable():
        raise ValueError(f"the data set {label!r} has a character that cannot be printed")
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
    declared = made(Manifest, str(path), read_yaml(path))
    for archive in declared.files:
        if archive.url and not (archive.url.startswith("https://") and archive.md5):
            raise ValueError(f"{path}: {archive.url} should be fetched over https:// and have an md5; declare both")
    if declared.name != path.stem:
        raise ValueError(f"{path}: name is {declared.name!r}, the file's own is {path.stem!r}; make them agree")
    return declared


def sets_with(section: str) -> dict[str, Manifest]:
    """The data sets with a section, "images" or "skeletons", by name, bundled ones first; raises as `load_manifest`."""
    declared = [entry for name in names() if getattr(entry := load_manifest(name), section)]
    return {entry.name: entry for entry in sorted(declared, key=lambda entry: entry.access != "bundled")}


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
