"""A copy of the project in which every example of docs/add_your_own.md and of this folder is made."""

from types import SimpleNamespace

import pytest
from nursery import python
from project_copy import changes, copied, run, walk


@pytest.fixture(scope="session")
def all_made(tmp_path_factory):
    """The copy, in which one change is made after the other, and by title the files that each touches.

    The tests that come with them pass.
    """
    folder = copied(tmp_path_factory.mktemp("copy"))
    made = SimpleNamespace(folder=folder, touched={title: walk(title, folder) for title in changes()})
    tests = [path for touched in made.touched.values() for path in touched if path.startswith("tests/")]
    ended = python("-m", "pytest", "-q", "-c", "/dev/null", "-p", "no:cacheprovider", *tests, cwd=folder,
                   env={"PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert len(made.touched) == 7 and f"{len(tests)} passed" in ended.stdout, ended.stdout
    return made


@pytest.fixture
def printed_by(all_made, tmp_path):
    """What code prints in the copy, with runs and data in a folder of the test's own, by command."""
    def printed(code):
        return run(all_made.folder, code, REPRO_RUNS=str(tmp_path / "runs"), REPRO_DATA=str(tmp_path / "data"))

    return printed
