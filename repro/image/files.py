"""Pictures that stay in their files until they are asked for."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image


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
        ValueError: if it is truncated or no picture, calling it `name`.
    """
    try:
        with Image.open(file) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"{name} cannot be read as a picture ({error}); fetch it again or leave it out") from error
