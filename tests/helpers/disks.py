"""Folders on small disks, and folders that cannot be written, for real."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Callable[[int], None]]:
    """Let a new folder be a disk of so many bytes inside the block; yields what gives it another size.

    The test is skipped where nothing can be mounted.
    """
    folder.mkdir(parents=True)
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={size}", "none"):
        yield lambda size: _mount("-o", f"remount,size={size}", folder)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nothing be written in a folder or below inside the block. Root may write everywhere but on such a mount.

    As root, the test is skipped where nothing can be mounted.
    """
    if os.geteuid() == 0:
        with _mounted(folder, "--bind", folder):
            _mount("-o", "remount,bind,ro", folder)
            yield
        return
    paths = [folder, *folder.rglob("*")]
    modes = [path.stat().st_mode for path in paths]
    for path, mode in zip(paths, modes, strict=True):
        path.chmod(mode & 0o555)
    try:
        yield
    finally:
        for path, mode in zip(paths, modes, strict=True):
            path.chmod(mode)


@contextlib.contextmanager
def _mounted(folder: Path, *words: object) -> Iterator[None]:
    try:
        _mount(*words, folder)
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        pytest.skip(f"nothing can be mounted here: {said}")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def _mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True, text=True)
