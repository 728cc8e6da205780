"""Break the core on purpose, one small change at a time: each should make a test fail.

    python -m tests.mutants --module noise --limit 20 --seed 1

Every change is made in a temporary copy of the project, where the module's own tests run until the
first that fails. What survives is printed as file:line, what stood there and what was put there:
either a test is missing, or the change means the same.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The tests that should notice, quickest first; the module's doctests run before them.
TESTS = {
    "comparisons": ["contrasts", "report"],
    "contrasts": ["contrasts"],
    "determinant": ["determinant", "scores"],
    "findings": ["findings", "report"],
    "gram_matrix": ["gram_matrix", "scores"],
    "influences": ["influences", "noise"],
    "kernels": ["kernels", "scores"],
    "noise": ["noise"],
    "observed": ["influences", "scores", "gram_matrix", "noise"],
    "ranks": ["ranks", "contrasts"],
    "scores": ["scores", "determinant"],
    "uncertainty": ["noise", "findings"],
}
SWAPPED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or,
    ast.Or: ast.And, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
REVERSED = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
CALLED = {
    "minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "any": "all",
    "all": "any", "argmin": "argmax", "argmax": "argmin", "cummax": "cummin", "log1p": "expm1",
}  # fmt: skip


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """Small changes of one node, each a new node in its place."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
        changed = copy.deepcopy(node)
        changed.op = SWAPPED[type(node.op)]()
        yield changed
    if isinstance(node, ast.Compare):
        for table in (SWAPPED, REVERSED):
            if type(node.ops[0]) in table:
                changed = copy.deepcopy(node)
                changed.ops[0] = table[type(node.ops[0])]()
                yield changed
    if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield node.operand
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        new = (not node.value) if isinstance(node.value, bool) else node.value * 2 or 1
        yield ast.Constant(new)
    if isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(ast.Constant(None))
        if isinstance(node.value, ast.BinOp | ast.Call):
            yield ast.Return(ast.UnaryOp(ast.USub(), node.value))
    if isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    if isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    if isinstance(node, ast.AugAssign):
        yield ast.Pass()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in CALLED:
            changed = copy.deepcopy(node)
            changed.func.attr = CALLED[node.func.attr]  # pyright: ignore[reportAttributeAccessIssue]
            yield changed
        if node.func.attr == "where" and len(node.args) == 3:
            yield ast.Call(node.func, [node.args[0], *node.args[:0:-1]], node.keywords)
        if isinstance(node.func.value, ast.Name) and node.func.attr in ("sqrt", "maximum", "abs"):
            yield node.args[0]
    if isinstance(node, ast.keyword) and isinstance(node.value, ast.Name):
        yield ast.keyword(node.arg, ast.Constant(None))


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Every node that may change, as (parent, field, index), but for annotations and texts."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "ctx", "type_params"):
                continue
            for i, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.AST):
                    yield node, name, i if isinstance(value, list) else None
                    waiting.append(child)


def mutants(source: str) -> Iterator[tuple[int, str, str, str]]:
    """Every changed source: line, what stood there, what stands there now, the whole."""
    tree = ast.parse(source)
    for parent, name, index in list(places(tree)):
        held = getattr(parent, name)
        node = held if index is None else held[index]
        for changed in variants(node):
            if index is None:
                setattr(parent, name, changed)
            else:
                held[index] = changed
            whole = ast.unparse(ast.fix_missing_locations(tree))
            if index is None:
                setattr(parent, name, node)
            else:
                held[index] = node
            was, now = (ast.unparse(n).split("\n")[0] for n in (node, changed))
            yield getattr(node, "lineno", 0), was, now, whole


def outcome(folder: Path, module: str, limit_seconds: float) -> str:
    """``killed``, ``survived`` or ``killed (time)``."""
    tests = [f"jgram/{module}.py", *(f"tests/test_{name}.py" for name in TESTS[module])]
    # What a mutant leaves as it was is compiled once for all of them.
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "JAX_COMPILATION_CACHE_DIR": str(folder.parent / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=limit_seconds, env=environment
        )
    except subprocess.TimeoutExpired:
        return "killed (time)"
    return "survived" if done.returncode == 0 else "killed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", choices=TESTS, action="append", help="default: all")
    parser.add_argument("--limit", type=int, default=10, help="mutants of each module, at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300.0, help="for the tests of one mutant")
    options = parser.parse_args()
    total = survived = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "jgram"
        skipped = shutil.ignore_patterns(".*", "__pycache__", "results")
        shutil.copytree(ROOT, folder, ignore=skipped)
        for module in options.module or TESTS:
            path = folder / "jgram" / f"{module}.py"
            source = path.read_text()
            made = list(mutants(source))
            chosen = random.Random(options.seed).sample(made, min(options.limit, len(made)))
            for line, was, now, whole in chosen:
                path.write_text(whole)
                found = outcome(folder, module, options.seconds)
                total, survived = total + 1, survived + (found == "survived")
                print(f"{found:9} jgram/{module}.py:{line}: {was}  ->  {now}", flush=True)
            path.write_text(source)
    print(f"{total} mutants, {total - survived} killed, {survived} survived")


if __name__ == "__main__":
    main()
