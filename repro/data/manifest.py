"""Data sets as declared in data_manifests/: where they come from, where they lie, and whether they are complete."""

import functools
import math
import os
import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from repro.data.archives import content_digest, members, stamp
from repro.recipe import choose

if TYPE_CHECKING:
    import numpy as np

ACCESS = ("automatic", "form", "derived", "embedded")
PACKAGE = Path(str(files("repro"))).resolve()

Loaded = TypeVar("Loaded")


@dataclass(frozen=True, kw_only=True)
class Archive:
    """One archive of a data set; the folder it unpacks to is accepted in its place.

    `bytes`, `members` and `digest` describe the contents, so that packing the same files again changes none of them.

    Attributes:
        name: path below the data root, such as `nw_ucla/all_sqe.zip`; unpacked, `nw_ucla/all_sqe`. A name without a
            suffix is that of a folder, for data used unpacked alone.
        members: number of files, None if nobody could tell us.
        bytes: sum of the sizes of the unpacked members, None if nobody could tell us.
        digest: hex sha256 over the sorted members (`content_digest`), None if nobody could tell us.
        folder: what it unpacks to, beside it, where that is not named as the archive.
        url, md5, size: of data sets with automatic access, where the archive itself can be fetched, its hex md5, and
            its bytes if somebody could tell us.
    """

    name: str
    members: int | None = None
    bytes: int | None = None
    digest: str | None = None
    folder: str | None = None
    url: str | None = None
    md5: str | None = None
    size: int | None = None

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

        Raises:
            ValueError: if there is no column or no such one, or a sample is both.
        """
        import numpy as np  # which takes a third of the time of commands that only list data sets

        found = {}
        for part, wanted in (("train", self.train), ("test", self.test)):
            if not wanted:
                raise ValueError(f"{part} names no column; choose among {', '.join(columns)}")
            chosen = [np.isin(columns[choose(f"column of {part}", name, columns)], values)
                      for name, values in wanted.items()]
            found[part] = np.all(chosen, axis=0)
        both = int((found["train"] & found["test"]).sum())
        if both:
            raise ValueError(f"{both:,} samples are for train and for test, by {dict(self.train)} and "
                             f"{dict(self.test)}; declare parts without a common sample")
        return found


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
    """

    classes: int | tuple[str, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    source: str
    size: int | None = None
    reader: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the classes, nothing if only their number is declared."""
        return self.classes if isinstance(self.classes, tuple) else ()

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.names) or self.classes


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A data set as its file in data_manifests/ declares it.

    Attributes:
        name: what users type; also the file's stem.
        title: one line for people.
        access: `automatic` (can be downloaded), `form` (asked for by hand), `derived` (made from another data set) or
            `embedded` (part of this package).
        source: home page; for embedded data, its module.
        licence: terms as far as known.
        files: the archives, none for embedded data.
        splits: protocols by name.
        images: what its pictures are, of an image data set, which has one split.
    """

    name: str
    title: str
    access: str
    source: str
    licence: str
    files: tuple[Archive, ...]
    splits: Mapping[str, Split]
    images: Images | None = None

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
    """The folder of real data: REPRO_DATA, or `data` in the project root. Nothing but a download writes there."""
    return Path(os.environ.get("REPRO_DATA") or project_root() / "data").expanduser().resolve()


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
    """The copy of a data set that `repro data import` took in last, if there is one; its stem is its file's name."""
    return max(imported(name).glob("*.npz"), key=lambda path: path.stat().st_mtime_ns, default=None)


def read_once(maxsize: int) -> Callable[[Callable[..., Loaded]], Callable[..., Loaded]]:
    """Decorates `load(name, root, ...)` of data sets: each is read once per process while its files stay the same.

    Args:
        maxsize: how many are kept; those read last.
    """
    def decorate(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
        @functools.lru_cache(maxsize)
        def kept(_version: tuple, *values: Any, **options: Any) -> Loaded:
            return load(*values, **options)

        @functools.wraps(load)
        def read(name: str, root: Path, *values: Any, **options: Any) -> Loaded:
            return kept(version(name, root), name, root, *values, **options)

        read.cache_clear = kept.cache_clear
        return read

    return decorate


def version(name: str, root: Path) -> tuple[tuple[Path, tuple[int, ...]], ...]:
    """What changes when the files behind a data set are exchanged: their places and stamps; no contents are read.

    That is the archives or folders below `root`, with the folders in these, the lists of splits, and the arrays that
    `repro data import` and `repro data prepare` have made. Not noticed is a file in a folder that is overwritten in its
    place, or comes or goes further down than in these.
    """
    declared = (*load_manifest(name).files, Archive(name=f"splits/{name}.zip"))
    found = [path for archive in declared if (path := location(archive, root))]
    found += [Path(entry) for path in found if path.is_dir() for entry in os.scandir(path) if entry.is_dir()]
    made = prepared_root().glob(f"{name}-*/*")
    found += [path for path in made if path.suffix != ".lock" and not path.name.startswith(".")]  # these are written
    return tuple((path, stamp(path)) for path in sorted(found))


def names() -> list[str]:
    """Names of the declared data sets, sorted."""
    return sorted(path.stem for path in shipped("data_manifests").glob("*.yaml"))


def plain(label: str) -> str:
    """The data set of a label that may say which part or copy it is: "ntu (subset)" gives "ntu"."""
    return label.partition(" (")[0]


def embedded(label: str) -> bool:
    """Whether the data set of a label, "digits" or "cifar10 (my_copy.npz)", comes with the package."""
    return load_manifest(plain(label)).access == "embedded"


def check_subset(name: str, subset: bool) -> None:
    """Raise ValueError if a part is asked for of a data set that comes with the package, which is always whole."""
    if subset and embedded(name):
        raise ValueError(f"subset={subset!r} is not for {name}, which is embedded and whole; leave --subset out")


def load_manifest(name: str) -> Manifest:
    """Read data_manifests/<name>.yaml.

    Raises:
        ValueError: if no such data set is declared, its file misses a field, has one that does not exist or is of
            another type, or an archive lies elsewhere than below the data root or is to be fetched otherwise than over
            https and with a checksum.
    """
    path = shipped("data_manifests") / f"{choose('dataset', name, names())}.yaml"
    return _read_manifest(path, path.stat().st_mtime_ns)


@functools.cache
def _read_manifest(path: Path, _changed: int) -> Manifest:
    """`load_manifest` of a file, read again when that has changed: rows of tables ask for theirs one by one."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"{path} is not YAML ({error}); restore it from version control") from error
    values = _checked(Manifest, values, f"{path}")
    images = _images(values["images"], f"{path}, images") if values.get("images") is not None else None
    files = tuple(Archive(**_checked(Archive, entry, f"{path}, files")) for entry in values["files"])
    splits = {key: Split(**_checked(Split, entry, f"{path}, {key}")) for key, entry in values["splits"].items()}
    for archive in files:
        for place in filter(None, (archive.name, archive.folder)):
            if PurePosixPath(place).is_absolute() or ".." in PurePosixPath(place).parts:
                raise ValueError(f"{path}: {place!r} leads out of the data root; name a place below it")
        if archive.url and not (archive.url.startswith("https://") and archive.md5):
            raise ValueError(f"{path}: {archive.url} should be fetched over https:// and have an md5; declare both")
    choose(f"{path}: access", values["access"], ACCESS)
    if values["name"] != path.stem:
        raise ValueError(f"{path}: name is {values['name']!r}, the file's own is {path.stem!r}; make them agree")
    declared = Manifest(**values | {"files": files, "splits": splits, "images": images})
    if images and len(splits) != 1:
        raise ValueError(f"{path}: splits are {', '.join(splits) or 'none'}; images have one")
    if images and images.size and None in map(declared.expect.get, ("train", "test")):
        raise ValueError(f"{path}: expect is {declared.expect}; declare how many images there are for train and test")
    if images and len(files) != (0 if declared.access == "embedded" else 1 if images.size else 2):
        raise ValueError(f"{path}: files are {len(files)}; images of one size lie in one archive or folder, of various "
                         "sizes in two folders, train and val, and those that come with the package in none")
    return declared


def image_sets() -> dict[str, Manifest]:
    """The declared image data sets by name, those that come with the package first; raises as `load_manifest`."""
    declared = [found for name in names() if (found := load_manifest(name)).images]
    return {found.name: found for found in sorted(declared, key=lambda found: found.access != "embedded")}


def location(archive: Archive, root: Path) -> Path | None:
    """Where `archive` lies below the data root: the archive itself, else the folder it unpacks to, else None."""
    return next((found for found in archive.places(root) if found.exists()), None)


def require(manifest: Manifest, root: Path) -> list[Path]:
    """Where the files of a data set lie below `root`, in the manifest's order.

    Raises:
        FileNotFoundError: naming the page, the archive and where to put it, and a copy that was taken in instead.
    """
    found = [location(archive, root) for archive in manifest.files]
    if None in found:
        path, *unpacked = manifest.files[found.index(None)].places(root)
        alternative = f" (or, unpacked, {' or '.join(map(str, unpacked))})" if unpacked else ""
        copy = copy_of(manifest.name)
        instead = f"; or pass --subset (subset=True) for the copy {copy.stem}" if copy else ""
        raise FileNotFoundError(
            f"data set {manifest.name!r} lacks {path}{alternative}; {next_step(manifest, path)}{instead}"
        )
    return found


def verified_members(manifest: Manifest, root: Path) -> list[tuple[str, bytes]]:
    """The members of every file of a data set, each file checked against the manifest.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, or its members, bytes or digest are not those of the manifest.
    """
    gathered = []
    for archive, path in zip(manifest.files, require(manifest, root), strict=True):
        contents = members(path)
        found = {
            "members": len(contents),
            "bytes": sum(len(file) for _, file in contents),
            "digest": content_digest(contents),
        }
        wrong = [f"{key} {value}, expected {getattr(archive, key)}" for key, value in found.items()
                 if getattr(archive, key) not in (value, None)]
        if wrong:
            raise ValueError(
                f"{path} is not the distribution data_manifests/{manifest.name}.yaml declares: {'; '.join(wrong)}; "
                f"fetch it again from {manifest.source}"
            )
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


def _images(values: Any, where: str) -> Images:
    """The block `images` of a manifest, if its numbers are possible ones."""
    values = _checked(Images, values, where)
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    images = Images(**values)
    for name in ("mean", "deviation"):
        value = values[name]
        if len(value) != 3 or max(value) > 1 or (name == "deviation" and 0 in value):
            raise ValueError(f"{where}: {name} is {reprlib.repr(value)}, expected three numbers, of red, green and "
                             "blue, up to 1, and deviations above 0")
    if images.classes == 0 or images.size == 0 or len(set(images.names)) < len(images.names):
        raise ValueError(f"{where}: classes and size should be at least 1, and no class be there twice")
    if (images.size is None) != (images.reader is None):
        raise ValueError(f"{where}: size and reader go together; declare both, or neither for pictures that stay in "
                         "their files")
    return images


def _checked(kind: type, values: Any, where: str) -> dict[str, Any]:
    """`values` if it is a mapping with every field that `kind` requires, of its type, and no other."""
    if not isinstance(values, dict):
        raise ValueError(f"{where}: expected fields of {kind.__name__}, found {reprlib.repr(values)}")
    known = {entry.name: entry for entry in fields(kind)}
    for name in values:
        choose(f"{where}: field", name, known)
    missing = [name for name, entry in known.items()
               if name not in values and entry.default is MISSING and entry.default_factory is MISSING]
    if missing:
        raise ValueError(f"{where}: missing {', '.join(missing)}; the fields are {', '.join(known)}")
    hints = typing.get_type_hints(kind)
    for name, value in values.items():
        if not _fits(value, hints[name]):
            expected = getattr(hints[name], "__name__", hints[name])
            raise ValueError(f"{where}: {name} is {reprlib.repr(value)}, expected {expected}, not empty or negative")
    return values


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value of YAML is of the type that a field declares; texts are not empty, numbers not negative."""
    if isinstance(hint, types.UnionType):
        return any(_fits(value, each) for each in typing.get_args(hint))
    if typing.get_origin(hint) is Mapping:
        names, values = typing.get_args(hint)
        return isinstance(value, dict) and all(_fits(name, names) and _fits(value[name], values) for name in value)
    if hint is str:
        return isinstance(value, str) and value.strip() != ""
    if hint is int:
        return type(value) is int and value >= 0
    if hint is float:
        return type(value) in (int, float) and 0 <= value < math.inf
    if hint in (tuple[str, ...], tuple[float, ...]):
        kind, _ = typing.get_args(hint)
        return isinstance(value, list) and value != [] and all(_fits(item, kind) for item in value)
    return value is None if hint is types.NoneType else isinstance(value, dict if hint in (Split, Images) else list)
