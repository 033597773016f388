"""Pictures that stay in their files until they are asked for."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

KINDS = ("JPEG", "PNG")       # told by the first bytes; no other decoder is tried
ABSURD = (Image.DecompressionBombError, Image.DecompressionBombWarning)
warnings.simplefilter("error", Image.DecompressionBombWarning)  # from 89 million pixels on, not only twice as many


@dataclass(frozen=True, eq=False)
class Files:
    """Pictures of any size in the files below a folder.

    Attributes:
        root: the folder.
        names: (n,) bytes, the files' paths below it, in one array because objects for a million of them are large.
    """

    root: Path
    names: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def read(self, index: int) -> Image.Image:
        """The picture at a place in 0..n - 1, as red, green and blue.

        Raises:
            ValueError: if the file is gone, truncated or no picture; the message names it.
        """
        path = self.root / os.fsdecode(self.names[index])
        return read_rgb(path, f"{path}")


def read_rgb(file: Path | BinaryIO, name: str) -> Image.Image:
    """A picture as red, green and blue, whatever colours it is stored in.

    Raises:
        ValueError: if it is truncated, damaged or no JPEG or PNG file, calling it `name`.
    """
    with _calling(name):
        with Image.open(file, formats=KINDS) as image:
            if image.format != "PNG":
                return image.convert("RGB")
            image.verify()    # by its checksums, which decoding passes over
        if not isinstance(file, Path):
            file.seek(0)
        with Image.open(file, formats=KINDS) as image:
            return image.convert("RGB")


def size(file: Path | BinaryIO, name: str) -> tuple[int, int]:
    """Height and width of a picture in pixels, as it announces them; nothing is decoded.

    Raises:
        ValueError: as `read_rgb`.
    """
    with _calling(name), Image.open(file, formats=KINDS) as image:
        return image.height, image.width


@contextlib.contextmanager
def _calling(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, SyntaxError, ValueError, *ABSURD) as error:
        raise ValueError(f"{name} cannot be read as a picture ({error}); fetch it again or leave it out") from error
