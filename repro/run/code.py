"""Which source a training runs through: an identity that stands with every cell and checkpoint.

A key says of which recipe, data and version a cell is, and nothing of the code. So that an edited loss does not pass
for the one that trained the stored cells, each of them has the hash of its source; `accepted.yaml` lists, by study and
version, the hashes whose trainings are known to give the same numbers.
"""

import ast
import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import importlib.util
import io
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

ACCEPTED = Path(__file__).parent / "accepted.yaml"
BETWEEN = "; "  # the codes, or devices, that have trained one cell
FOLLOWED = ("repro.contrast", "repro.run.learner", "repro.run.recorded", "repro.run.group", "repro.skeleton",
            "repro.image", "repro.audiovisual")  # what a step runs through, besides a paper's own modules


@dataclasses.dataclass(frozen=True)
class Code:
    """The code at hand of a study, beside what is stored.

    Args:
        study, version: of the training.
        module: where its learners are made.
    """

    study: str
    version: int
    module: str

    @property
    def identity(self) -> str:
        """See `identity`."""
        return identity(self.module)

    def differs(self, stored: str | None) -> bool:
        """Whether numbers of stored code, or of several between semicolons, may be others.

        None, of cells older than identities, counts as accepted.
        """
        accepted = _accepted(ACCEPTED).get(self.study, {}).get(self.version, [])
        codes = [] if stored is None else stored.split(BETWEEN)
        return codes != [self.identity] and not {self.identity, *codes} <= {*accepted}

    def advice(self) -> str:
        """What to do where it differs."""
        return (f"if `pytest tests/golden/test_golden.py` passes, add {self.identity} to repro/run/{ACCEPTED.name} "
                f"beside version {self.version} of {self.study}; else raise that version, or undo the change and "
                "delete the folders of what it trained")


@functools.cache
def identity(module: str) -> str:
    """Sixteen digits of a hash: of the source of a module and of those that it names, and these in turn.

    Followed are those of its package, of `FOLLOWED`, and of distributions that bring papers; a package is its
    `__init__`, but those of `FOLLOWED` are not looked at. Comments, docstrings and blank lines do not count.
    """
    others = [point.module.partition(".")[0] for point in importlib.metadata.entry_points(group="repro.papers")]
    packages = (*FOLLOWED, module.rpartition(".")[0] or module, *others)
    statements: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if name in statements or path is None:
            continue
        source = path.read_text()
        statements[name] = "\n".join(_statements(source))
        for imported in _imported(source, name if path.name == "__init__.py" else name.rpartition(".")[0]):
            if _within(imported, packages):
                waiting.append(imported)
    text = "\n\n".join(f"{name}\n{statements[name]}" for name in sorted(statements))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def _accepted(path: Path) -> dict[str, dict[int, list[str]]]:
    return yaml.safe_load(path.read_text()) or {}


def _within(name: str, packages: Sequence[str]) -> bool:
    """Whether a module is one of the packages or in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _path(name: str) -> Path | None:
    """The file of a module; None for what is none, such as a function that is imported, and packages of `FOLLOWED`."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # its parent is no package
        return None
    if found is None or not found.origin or not found.origin.endswith(".py"):
        return None
    if found.submodule_search_locations and _within(name, FOLLOWED):
        return None
    return Path(found.origin)


def _imported(source: str, package: str) -> Iterator[str]:
    """Names of what a source imports, wherever it does, and texts, which may name a module that is imported late.

    Imports that begin with a dot are of a module of `package`.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            with contextlib.suppress(ImportError):  # it leads out of the package
                module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _statements(source: str) -> Iterator[str]:
    """The lines of a source without comments and docstrings, those that have something left."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            first = node.body[0]
            for row in range(first.lineno, (first.end_lineno or first.lineno) + 1):
                lines[row - 1] = ""
    for line in lines:
        if line.strip():
            yield line.rstrip()
