"""Do the tests notice when the package is wrong? One small change at a time, its tests, and who survives.

    python3 -m tests.campaigns.mutants [--processes 2] [--drawn 60] [--seed 0]

A mutant differs from the code in one place: a comparison, an operator, a number, a truth value, a condition taken for
true or false, or a statement left out. Errors' words and annotations stay. Tried are all mutants of `repro.contrast`,
and some of all others, drawn: equal code and an equal seed, equal mutants. The tests of its module run first, then
those of its folder and, outside of contrast, the golden ones; a failure kills it, and so does a test that does not end.
Mutants that compute the same as the original cannot be killed and count as survivors all the same. Every mutant has a
copy of the checkout, so that the processes which tests start see it too. The counts go to mutants.csv beside this file,
the survivors to mutants_survivors.csv.
"""

import argparse
import ast
import contextlib
import csv
import functools
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
WHOLE = "repro/contrast/"
UNREAD = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")
PYTEST = ("-xq", "-n0", "-pno:cacheprovider", "--timeout=180")
SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}


class Mutant(NamedTuple):
    """A change: the module's path, the line, what stands there and what instead, and its number in the module."""

    module: str
    line: int
    before: str
    after: str
    number: int


@functools.cache
def mutants(module: str) -> list[Mutant]:
    """All mutants of a module, line by line."""
    made = []
    for number, (node, new) in enumerate(_changes(ast.parse((ROOT / module).read_text()))):
        before, after = (ast.unparse(part).splitlines()[0] for part in (node, new))
        made.append(Mutant(module, node.lineno, before, after, number))
    return made


def source(changed: Mutant) -> str:
    """The whole changed module."""
    tree = ast.parse((ROOT / changed.module).read_text())
    old, new = next(islice(_changes(tree), changed.number, None))

    class Exchange(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Exchange().visit(tree)))


def _changes(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Every node that a mutant has another in the place of, and the other; no words of errors and no annotations."""
    silent = set()
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=root) | ast.FunctionDef(returns=root) | ast.Raise(exc=root) if root is not None:
                silent |= {*ast.walk(root)}
            case ast.AnnAssign(annotation=root):
                silent |= {*ast.walk(root)}
    places = [node for node in ast.walk(tree) if hasattr(node, "lineno") and node not in silent]
    for node in sorted(places, key=lambda node: (node.lineno, node.col_offset)):
        yield from ((node, new) for new in _instead_of(node))


def _instead_of(node: ast.AST) -> Iterator[ast.AST]:
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


def campaign(drawn: int, seed: int) -> list[Mutant]:
    """All mutants of the folder that is tried as a whole, and some of the rest."""
    modules = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "repro").rglob("*.py"))
    whole = [mutant for module in modules if module.startswith(WHOLE) for mutant in mutants(module)]
    rest = [(module, number) for module in modules if not module.startswith(WHOLE)
            for number, _ in enumerate(_changes(ast.parse((ROOT / module).read_text())))]
    return whole + [mutants(module)[number] for module, number in sorted(Random(seed).sample(rest, drawn))]


def tests_of(module: str) -> list[str]:
    """The files of tests that a module's mutants are tried on: its own, others of its folder, what is recorded."""
    folder = (ROOT / "tests").joinpath(*Path(module).parts[1:-1])
    files = sorted(folder.glob("test_*.py") if folder.name == "tests" else folder.rglob("test_*.py"))
    own = sorted(folder.glob(f"test_{Path(module).stem}*.py"))
    recorded = [] if module.startswith(WHOLE) else [ROOT / "tests" / "golden" / "test_golden.py"]
    return [path.relative_to(ROOT).as_posix() for path in dict.fromkeys([*own, *files, *recorded])]


def killed(module: str, changed: str) -> bool:
    """Whether the tests of a module fail with another text in its place, in a copy of the checkout."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "repro"
        shutil.copytree(ROOT, copy, ignore=UNREAD)
        (copy / module).write_text(changed)
        tests = processes().Process(target=run_tests, args=(copy, tests_of(module)))
        tests.start()
        tests.join()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(tests.pid, signal.SIGKILL)  # what they have left running
        return tests.exitcode != 0


@functools.cache
def processes() -> multiprocessing.context.ForkServerContext:
    """Begins processes that have imported what takes longest, and nothing of the package."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torchvision", "pandas", "scipy.stats", "pytest"])
    return context


def run_tests(copy: Path, files: list[str]) -> None:
    """Run the tests of a copy of the checkout and end with their status, in a process of its own."""
    os.setsid()
    os.chdir(copy)
    os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                   "TMPDIR": str(copy.parent), "REPRO_RUNS": str(copy.parent / "runs")}
    tempfile.tempdir = str(copy.parent)
    sys.path.insert(0, str(copy))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("repro", "tests")]:
        del sys.modules[name]  # whoever began the server of processes first may have imported the original
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    sys.exit(pytest.main([*PYTEST, *files]))


def main() -> None:
    """Try the mutants and write what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--drawn", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tried = campaign(options.drawn, options.seed)
    one_of_each = {tuple(sorted(tests_of(changed.module))): changed.module for changed in tried}
    with ThreadPoolExecutor(options.processes) as pool:
        sound = [(module, (ROOT / module).read_text()) for module in one_of_each.values()]
        for (module, _), fail in zip(sound, pool.map(lambda text: killed(*text), sound), strict=True):
            if fail:
                parser.error(f"the tests of {module} fail as it is: run {' '.join(tests_of(module)[:1])} and others")
        deaths = pool.map(lambda changed: killed(changed.module, source(changed)), tried)
        dead = list(tqdm(deaths, total=len(tried), unit="mutant"))
    results = list(zip(tried, dead, strict=True))
    survivors = [changed for changed, died in results if not died]
    every, alive = (Counter(changed.module for changed in group) for group in (tried, survivors))
    counts = [(module, count, count - alive[module]) for module, count in every.items()]
    for name, header, rows in (("mutants.csv", ("module", "mutants", "killed"), counts),
                               ("mutants_survivors.csv", Mutant._fields[:-1], [changed[:-1] for changed in survivors])):
        with Path(__file__).with_name(name).open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    for where, group in (("repro.contrast", True), ("the rest, drawn", False)):
        of_group = [died for changed, died in results if changed.module.startswith(WHOLE) == group]
        print(f"{where}: {sum(of_group)} of {len(of_group)} mutants killed")


if __name__ == "__main__":
    main()
