"""Do the tests of `repro.contrast` notice when it is wrong? One small change at a time, its tests, and who survives.

    python3 -m tests.campaigns.mutants [--processes 2] [--modules objectives,seeding]

A mutant differs from the code in one place: a comparison, an operator, a number, a truth value, a condition taken for
true or false, or a statement left out. Errors' words and annotations stay. The tests of its module run first, then all
others of tests/contrast; a failure kills it, or three minutes without an end. Mutants that compute the same as the
original cannot be killed and count as survivors all the same. A process imports torch once and forks for every mutant,
whose code lies in a copy of the checkout, which the processes that tests start see too. The counts go to
tests/campaigns/mutants.csv, the survivors, with line and change, to mutants_survivors.csv beside it.
"""

import argparse
import ast
import contextlib
import csv
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("repro", "tests", "data_manifests", "pyproject.toml")
PACKAGE = Path("repro", "contrast")
COUNTS, SURVIVORS = (Path(__file__).with_name(name) for name in ("mutants.csv", "mutants_survivors.csv"))
SECONDS = 180
SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}


class Mutant(NamedTuple):
    """A change: the module, the line, what stands there and what instead, and the whole changed source."""

    module: str
    line: int
    before: str
    after: str
    source: str


class _Exchange(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def mutants(module: str) -> Iterator[Mutant]:
    """All mutants of a module, line by line."""
    tree = ast.parse(source(module))
    silent = set(_silent(tree))
    places = [node for node in ast.walk(tree) if hasattr(node, "lineno") and node not in silent]
    for node in sorted(places, key=lambda node: (node.lineno, node.col_offset)):
        for new in _instead_of(node):
            _Exchange(node, new).visit(tree)
            changed = ast.unparse(ast.fix_missing_locations(tree))
            _Exchange(new, node).visit(tree)
            before, after = (ast.unparse(each).splitlines()[0] for each in (node, new))
            yield Mutant(module, node.lineno, before, after, changed)


def source(module: str) -> str:
    """What a module of the package reads."""
    return (ROOT / PACKAGE / f"{module}.py").read_text()


def _silent(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes whose change no test is asked to notice: annotations, and the words of errors."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=root) | ast.FunctionDef(returns=root) | ast.Raise(exc=root) if root is not None:
                yield from ast.walk(root)
            case ast.AnnAssign():
                yield from ast.walk(node.annotation)


def _instead_of(node: ast.AST) -> Iterator[ast.AST]:
    """What a mutant has in the place of a node."""
    match node:
        case ast.Compare(left, [operator], right) if type(operator) in SWAPPED:
            yield ast.Compare(left, [SWAPPED[type(operator)]()], right)
        case ast.BinOp(left, operator, right) if type(operator) in SWAPPED:
            yield ast.BinOp(left, SWAPPED[type(operator)](), right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(SWAPPED[type(operator)](), values)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.If(_, body, orelse):
            yield from (ast.If(ast.Constant(value), body, orelse) for value in (True, False))
        case ast.IfExp(_, body, orelse):
            yield from (body, orelse)
        case ast.Expr(ast.Call()) | ast.AugAssign():
            yield ast.Pass()


def kills(mutant: Mutant) -> bool:
    """Whether the tests fail with the mutant in the copy of the checkout, run in a fork of this process."""
    path = PACKAGE / f"{mutant.module}.py"
    original = path.read_text()
    path.write_text(mutant.source)
    try:
        child = os.fork()
        if child == 0:
            os._exit(_tests_pass(mutant.module))
        return _status(child) != 0
    finally:
        path.write_text(original)


def _tests_pass(module: str) -> int:
    """0 if they do; of a process that ends with it."""
    import pytest

    os.setsid()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    tests = Path("tests", "contrast")
    own = sorted(tests.glob(f"test_{module}*.py"))
    others = sorted(set(tests.glob("test_*.py")) - set(own))
    options = ["-x", "-q", "-n0", "-p", "no:cacheprovider"]  # in this process, which has the mutant
    return int(any(pytest.main([*options, *map(str, files)]) for files in (own, others) if files))


def _status(child: int) -> int:
    """How the child ends; it and what it has started are killed when its time is over."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, 9)
    return os.waitpid(child, 0)[1]


def _begin(scratch: str) -> None:
    """Let this worker, and the processes that its tests start, work in a copy of the checkout of its own."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder)
    os.chdir(folder)
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    import pytest  # noqa: F401  (once, for all that are forked)
    import scipy.stats  # noqa: F401
    import sklearn.cluster  # noqa: F401
    import torch  # noqa: F401


def main() -> None:
    """Try all mutants and write what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    modules = sorted(path.stem for path in (ROOT / PACKAGE).glob("[!_]*.py"))
    parser.add_argument("--modules", default=",".join(modules))
    options = parser.parse_args()
    chosen = options.modules.split(",")
    tried = [mutant for module in chosen for mutant in mutants(module)]
    pools = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch, pools.Pool(options.processes, _begin, (scratch,)) as pool:
        known = [Mutant(chosen[0], 1, "", "", text) for text in (source(chosen[0]), "raise RuntimeError")]
        if pool.map(kills, known) != [False, True]:
            parser.error("the tests do not pass as they are, or do not see what is changed; run them by hand")
        killed = list(tqdm(pool.imap(kills, tried), total=len(tried), unit="mutant"))
    survivors = [mutant for mutant, dead in zip(tried, killed, strict=True) if not dead]
    every, alive = (Counter(mutant.module for mutant in group) for group in (tried, survivors))
    with COUNTS.open("w", newline="") as file:
        rows = [(name, every[name], every[name] - alive[name]) for name in chosen]
        csv.writer(file).writerows([("module", "mutants", "killed"), *rows])
    with SURVIVORS.open("w", newline="") as file:
        csv.writer(file).writerows([Mutant._fields[:-1], *(mutant[:-1] for mutant in survivors)])
    print(f"{len(tried) - len(survivors)} of {len(tried)} mutants killed")


if __name__ == "__main__":
    main()
