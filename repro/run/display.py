"""Progress in a notebook: one display that updates, in the place of lines and bars on standard error."""

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def in_one_display() -> Iterator[None]:
    """Show what is written to standard error meanwhile in one display of the notebook; elsewhere nothing changes."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if not hasattr(shell, "kernel"):
        yield
        return
    with contextlib.redirect_stderr(Screen()):
        yield


class Screen:
    """A stream that shows, in a display of IPython, what a terminal would: a bar that is written anew replaces itself.

    Args:
        handle: of the display, whose `update` takes a bundle of MIME types; by default a new one, when there is text.
    """

    encoding = "utf-8"

    def __init__(self, handle: Any = None) -> None:
        self.handle, self.lines, self.row = handle, [""], 0

    def isatty(self) -> bool:
        """Bars are shown here as they are on a terminal."""
        return True

    def write(self, text: str) -> int:
        """Write text, in which a carriage return begins the line anew and an escape sequence goes one line up."""
        for part in re.split(r"(\n|\r|\x1b\[A)", text):
            if part == "\n":
                self.row += 1
                self.lines += [""] * (self.row == len(self.lines))
            elif part == "\r":
                self.lines[self.row] = ""
            elif part == "\x1b[A":
                self.row -= 1
            else:
                self.lines[self.row] += part
        self._show()
        return len(text)

    def flush(self) -> None:
        """Nothing is left to be shown. Displays flush standard error before they are updated."""

    def _show(self) -> None:
        bundle = {"text/plain": "\n".join(line.rstrip() for line in self.lines).strip("\n")}
        if self.handle is not None:
            self.handle.update(bundle, raw=True)
        elif bundle["text/plain"]:
            from IPython.display import display

            self.handle = display(bundle, raw=True, display_id=True)
