"""What the campaign of bad input is made of: kinds of input, how each is damaged, read and compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Attributes:
        sound: valid inputs, which are read without an error.
        damage: makes another input of one of them.
        read: reads an input through the package, in a scratch folder, and raises AssertionError where something was
            read that the input does not state.
        named: what every refusal has to name: the file or parameter.
    """

    sound: Callable[[], Sequence[Any]]
    damage: Callable[[Any, Random], Any]
    read: Callable[[Any, Path], None]
    named: Sequence[str] = ()

    def mutant(self, draw: Random) -> Any:
        """A damaged input that is no sound one."""
        sound = self.sound()
        while (found := self.damage(draw.choice(sound), draw)) in sound:
            pass
        return found


class Refused(Exception):
    """A refusal that ends a process instead of raising; the message is what it printed."""


def write(path: Path, contents: bytes) -> Path:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)
    return path
