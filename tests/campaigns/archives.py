"""Skeletons, archives and pictures: NTU RGB+D's text, zips of clips and pictures, tar archives, PNG and JPEG.

(NW-UCLA's JSON is read only where its digest is the official one.)
"""

import contextlib
import functools
import io
import tarfile
from pathlib import Path
from random import Random

import numpy as np
from PIL import ExifTags, Image

from repro.data import files
from repro.data.disk import read_file
from repro.image import data
from repro.image.readers import read_rgb
from repro.skeleton import ntu
from tests.campaigns import mutations
from tests.campaigns.kinds import Kind, write
from tests.helpers import ntu_files
from tests.helpers.image_files import png

TEXTS = {"things/a.txt": b"one" * 400, "things/b/2.txt": bytes(range(256)) * 8, "things/c.txt": b"three"}
PACKED = {"cifar10": "my_copy", "png": "picture.png", "jpeg": "picture.jpeg"}
NTU_NAME = "S001C001P001R001A001"
NO_FILES = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)  # types of members of a tar archive


def read_ntu(contents: bytes, folder: Path) -> None:
    """Prepare a folder with this one file in it, in every pipeline."""
    write(folder / "data" / "ntu" / "nturgb+d_skeletons" / f"{NTU_NAME}.skeleton", contents)
    for pipeline in ntu.PIPELINES:
        prepared = ntu.source(pipeline=pipeline, subset=True).prepare()
        frames = prepared.arrays["frames"]
        assert prepared.names == [NTU_NAME] and prepared.records[0]["rows"]["frames"] == len(frames) > 0
        assert np.isfinite(frames).all(), f"frames of {pipeline} are not finite"
    found, stated = ntu.parse(contents), ntu_files.slow_read(contents)
    numbers = list(dict.fromkeys(number for number, _, _ in stated))
    assert found.frame.tolist() == [frame for _, frame, _ in stated], "frames of bodies"
    assert found.body.tolist() == [numbers.index(number) for number, _, _ in stated], "ids of bodies"
    np.testing.assert_array_equal(found.joints, np.array([joints for *_, joints in stated]).reshape(-1, 25, 3))


@functools.cache
def pictures() -> dict[str, bytes]:
    """Five pictures of 32 x 32 pixels in class folders, two of them for test."""
    return {f"{part}/{kind}/{number}.png": png(pixels(number)) for number, (part, kind) in enumerate(
        (("train", "cat"), ("train", "dog"), ("train", "dog"), ("test", "cat"), ("test", "dog")))}


def pixels(number: int, height: int = 32) -> np.ndarray:
    """Noise, (height, 32, 3) uint8."""
    return np.random.default_rng(number).integers(0, 256, (height, 32, 3), dtype=np.uint8)


def read_clips(contents: bytes, folder: Path) -> None:
    """The files of a data set of recordings in an archive."""
    write(folder / "things.zip", contents)
    shortened = [text[:-1] for text in TEXTS.values()]
    place = files.folder(folder / "things.zip")
    for file in files.listed(place):
        assert file.resolve().is_relative_to(place.resolve()) or file.is_symlink(), f"{file}"
        _stated([read_file(file)], [*TEXTS.values(), *shortened, mutations.BOMB, mutations.zipped([*TEXTS.items()])])


def read_pictures(contents: bytes, folder: Path) -> None:
    """Take in a copy of CIFAR-10 in class folders; an archive with other members than files would leave some out."""
    path = write(folder / "my_copy", contents)
    copy = data.take_in("cifar10", path)
    with contextlib.suppress(tarfile.ReadError), tarfile.open(path) as archive:
        assert all(member.isfile() or member.isdir() for member in archive), "a link or a device is passed over"
    _stated((image.numpy().transpose(1, 2, 0).tobytes() for image in copy.images), [
        pixels(number).tobytes() for number in range(5)])
    of_classes = {pixels(number).tobytes(): name.split("/")[1] for number, name in enumerate(pictures())}
    for image, label in zip(copy.images, copy.labels.tolist(), strict=True):
        known = of_classes[image.numpy().transpose(1, 2, 0).tobytes()]
        assert copy.classes[label] == known, f"a picture of {known} has the label of {copy.classes[label]}"


def tar_of(members: list[tuple[str, bytes]], mode: str = "w", last: bytes = tarfile.REGTYPE) -> bytes:
    """A tar archive of members, the last one of another type, such as a link to the first, if so asked."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as archive:
        for number, (name, contents) in enumerate(members, start=1):
            info = tarfile.TarInfo(name)
            if number == len(members) and last != tarfile.REGTYPE:
                info.type, info.linkname = last, members[0][0]
            else:
                info.size = len(contents)
            archive.addfile(info, io.BytesIO(contents))
    return target.getvalue()


def read_picture(contents: bytes, folder: Path, kind: str) -> None:
    """One picture; a checksum guards the pixels of a PNG."""
    path = write(folder / PACKED[kind], contents)
    found = np.asarray(read_rgb(path))
    assert found.dtype == np.uint8 and found.ndim == 3 and found.shape[2] == 3 and found.size
    if kind == "png":
        known = [pixels(number, 24) for number in range(2)]
        known += [picture[..., :1].repeat(3, axis=2) for picture in known]  # grey of 16 bits, its upper 8
        _stated([found.tobytes()], [picture.tobytes() for picture in known])


def _stated(found, known) -> None:
    """Raise AssertionError unless everything that was found is among the contents that were packed."""
    for each in found:
        assert each in known, f"{len(each)} bytes are read that nobody packed: {each[:40]!r}"


def _archive(read, files, named) -> Kind:
    return Kind(lambda: [mutations.zipped([*files().items()])], lambda _, draw: mutations.of_archive(files(), draw),
                read, [named])


def _tarred(contents: bytes, draw: Random) -> bytes:
    """Damage to an archive, or other members in it."""
    if draw.random() < 0.6:
        return mutations.of_bytes(contents, draw)
    if draw.random() < 0.3:
        return tar_of(draw.sample([*pictures().items()], 5), draw.choice(("w", "w:gz")), draw.choice(NO_FILES))
    edit = draw.choice([edit for edit in mutations.MEMBER_EDITS if edit])
    return tar_of(edit(list(pictures().items()), draw), draw.choice(("w", "w:gz")))


def _as_png(contents: bytes, draw: Random) -> bytes:
    """Damage to a PNG, or another kind of it: grey of 16 bits, an animation, one that is to be turned."""
    if draw.random() < 0.8:
        return mutations.of_bytes(contents, draw)
    image, file = Image.open(io.BytesIO(contents)), io.BytesIO()
    kind = draw.choice(("grey", "animation", "turned"))
    if kind == "grey":
        upper = np.asarray(image)[..., 0].astype(np.uint16) << 8
        Image.fromarray(upper + draw.randrange(256)).save(file, "png")
    elif kind == "animation":
        image.save(file, "png", save_all=True, append_images=[image.rotate(180)], duration=draw.randrange(1, 1000))
    else:
        exif = image.getexif()
        exif[ExifTags.Base.Orientation] = draw.randrange(1, 9)
        image.save(file, "png", exif=exif)
    return file.getvalue()


KINDS = {
    "ntu skeleton": Kind(lambda: [*map(ntu_files.text, (ntu_files.ONE, ntu_files.TWO)),
                                  ntu_files.text(ntu_files.COMING, end="\n")],
                         mutations.of_text, read_ntu, [NTU_NAME]),
    "zip of clips": _archive(read_clips, lambda: TEXTS, ""),  # preparation names the file
    "zip of pictures": _archive(read_pictures, pictures, "my_copy"),
    "tar of pictures": Kind(lambda: [tar_of(list(pictures().items()), mode) for mode in ("w", "w:gz", "w:xz", "w:bz2")],
                            _tarred, read_pictures, ["my_copy"]),
    "png": Kind(lambda: [png(pixels(number, 24)) for number in range(2)], _as_png,
                functools.partial(read_picture, kind="png"), ["picture.png"]),
    "jpeg": Kind(lambda: [png(pixels(number, 24), "jpeg") for number in range(2)], mutations.of_bytes,
                 functools.partial(read_picture, kind="jpeg"), ["picture.jpeg"]),
}
