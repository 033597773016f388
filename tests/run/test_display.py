"""Progress in a notebook: what a terminal would show is one display, elsewhere standard error stays as it is."""

import sys
from types import SimpleNamespace

import IPython
import pytest
from tqdm import tqdm

from repro.run.display import Screen, in_one_display


def shown(screen):
    return screen.handle.bundles[-1]["text/plain"]


@pytest.fixture
def screen():
    handle = SimpleNamespace(bundles=[])
    handle.update = lambda bundle, raw: handle.bundles.append(bundle)
    return Screen(handle)


def test_bars_replace_themselves_below_the_lines(screen):
    with tqdm(total=3, desc="cells", file=screen, mininterval=0) as cells, \
            tqdm(total=2, desc="steps", file=screen, mininterval=0, leave=False) as steps:
        for number in range(3):
            cells.update()
            steps.update(number > 0)
            tqdm.write(f"cell {number}", file=screen)
        lines = shown(screen).splitlines()
        assert lines[:3] == ["cell 0", "cell 1", "cell 2"]
        assert [line[:11] for line in lines[3:]] == ["cells: 100%", "steps: 100%"]
    lines = shown(screen).splitlines()
    assert lines[:3] == ["cell 0", "cell 1", "cell 2"] and [line[:11] for line in lines[3:]] == ["cells: 100%"]


@pytest.mark.parametrize(("written", "expected"), [
    ("a\nb\n", "a\nb"), ("50 %\r100 %", "100 %"), ("a\nb\x1b[A\rc", "c\nb"), ("a\n\n\x1b[A\x1b[A\rb\nc", "b\nc"),
])
def test_what_a_terminal_would_show(screen, written, expected):
    for character in written.replace("\x1b[A", "\0"):
        screen.write(character.replace("\0", "\x1b[A"))
    assert shown(screen) == expected


def test_in_a_kernel_there_is_one_display_which_may_flush_standard_error(monkeypatch):
    made, handle = [], SimpleNamespace(update=lambda bundle, raw: sys.stderr.flush() or made.append(bundle))
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr("IPython.display.display", lambda bundle, **how: made.append(bundle) or handle)
    before = sys.stderr
    with in_one_display():
        print("one", file=sys.stderr)
        print("two", file=sys.stderr)
    assert sys.stderr is before and made[-1] == {"text/plain": "one\ntwo"}


def test_elsewhere_lines_go_to_standard_error(capsys):
    with in_one_display():
        print("one", file=sys.stderr)
    assert capsys.readouterr().err == "one\n"
