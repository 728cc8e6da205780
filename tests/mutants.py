"""Break the core on purpose, one small change at a time: each should make a test fail.

    python -m tests.mutants --module noise --limit 20 --seed 1
    python -m tests.mutants --sample 200 --seed 1 --log FILE

Every change is made in a temporary copy of the project, where the module's own doctests and tests
run until the first that fails. What survives is printed as file:line with what stood there and what
was put there: either a test is missing, or the change means the same. With ``--log`` outcomes are
kept, and a run that was broken off goes on where it ended.
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CORE = (
    "annotators/answers", "annotators/collusion", "annotators/posterior", "annotators/ranking",
    "annotators/readings", "approximation", "binding", "comparisons", "contrasts", "counted",
    "data/counting", "determinant", "findings", "gram_matrix", "influences", "issues", "kernels",
    "left_out", "noise", "observed", "ranks", "report", "scores", "streams", "table_kernel",
    "uncertainty",
)  # fmt: skip
# The tests that should notice, quickest first; else those of the module's own name.
TESTS = {
    "observed": ("observed", "influences"),
    "uncertainty": ("noise", "findings"),
    "annotators": ("annotators",),
    "counted": ("counted", "ways_in"),
    "streams": ("streams", "ways_in"),
}
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or,
    ast.Or: ast.And, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
REVERSED = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
OPPOSITE = {
    "minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "any": "all",
    "all": "any", "argmin": "argmax", "argmax": "argmin",
}  # fmt: skip
DROPPED = ("abs", "log", "maximum", "minimum", "sqrt")
UNTOUCHED = ("annotation", "returns", "decorator_list", "bases", "ctx")


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """Small changes of one node, each a new node in its place."""
    match node:
        case ast.BinOp() | ast.BoolOp() if type(node.op) in OPERATORS:
            changed = copy.copy(node)
            changed.op = OPERATORS[type(node.op)]()
            yield changed
        case ast.Compare(left, [operator], right):
            for table in (OPERATORS, REVERSED):
                if type(operator) in table:
                    yield ast.Compare(left, [table[type(operator)]()], right)
        case ast.UnaryOp(_, operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(2 * value or 1)
        case ast.Return(ast.BinOp() | ast.Call() as value):
            yield ast.Return(ast.UnaryOp(ast.USub(), value))
        case ast.Return(ast.AST()):
            yield ast.Return(ast.Constant(None))
        case ast.IfExp(test, then, otherwise):
            yield ast.IfExp(test, otherwise, then)
        case ast.If(test, then, otherwise):
            yield ast.If(ast.UnaryOp(ast.Not(), test), then, otherwise)
        case ast.AugAssign():
            yield ast.Pass()
        case ast.keyword(arg=str(name), value=ast.Name()):
            yield ast.keyword(name, ast.Constant(None))
        case ast.Call(ast.Attribute(_, "where") as called, [test, then, otherwise], rest):
            yield ast.Call(called, [test, otherwise, then], rest)
        case ast.Call(ast.Attribute(owner, name), arguments, rest):
            if name in OPPOSITE:
                yield ast.Call(ast.Attribute(owner, OPPOSITE[name]), arguments, rest)
            if name in DROPPED and arguments:
                yield arguments[0]


def places(node: ast.AST) -> Iterator[tuple[list | ast.AST, int | str, ast.AST]]:
    """Every node that may change, with what holds it and where."""
    if isinstance(node, ast.Raise | ast.JoinedStr):  # messages
        return
    for name, value in ast.iter_fields(node):
        held = value if isinstance(value, list) else [value]
        for i, child in enumerate(held):
            checked = isinstance(child, ast.keyword) and child.arg == "strict"
            if isinstance(child, ast.AST) and name not in UNTOUCHED and not checked:
                yield (value, i, child) if isinstance(value, list) else (node, name, child)
                yield from places(child)


def mutants(source: str) -> Iterator[tuple[int, str, str, str]]:
    """Of every change: its line, what stood there, what stands there now, the whole module."""
    tree = ast.parse(source)
    for holder, where, node in list(places(tree)):
        put = holder.__setitem__ if isinstance(holder, list) else holder.__setattr__
        for changed in variants(node):
            put(where, changed)  # pyright: ignore[reportArgumentType]
            whole = ast.unparse(ast.fix_missing_locations(tree))
            put(where, node)  # pyright: ignore[reportArgumentType]
            was, now = (ast.unparse(part).partition("\n")[0] for part in (node, changed))
            yield getattr(node, "lineno", 0), was, now, whole


def survives(folder: Path, module: str, seconds: float) -> bool:
    """Whether all tests of the module pass in time."""
    names = TESTS.get(module) or TESTS.get(module.split("/")[0]) or (module.replace("/", "_"),)
    files = [f"jgram/{module}.py", *(f"tests/test_{name}.py" for name in names)]
    # What a mutant leaves as it was is compiled once for all of them.
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider"]
    command += ["-m", "not slow", *files]  # thorough tests hold things too
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder.parent / "compiled")}
    environment["PYTHONPATH"] = str(folder)
    try:
        return not subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=seconds
        ).returncode
    except subprocess.TimeoutExpired:
        return False


def chosen(modules: Sequence[str], limit: int | None, sample: int | None, seed: int) -> list[Any]:
    """Mutants to try, a module's together: ``limit`` of each, or ``sample`` of all."""
    of_all = []
    for module in modules:
        made = list(mutants((ROOT / "jgram" / f"{module}.py").read_text()))
        if sample is None:
            random.Random(seed).shuffle(made)
            made = made[:limit]
        of_all += [(module, *mutant) for mutant in made]
    if sample is None:
        return of_all
    return sorted(random.Random(seed).sample(of_all, min(sample, len(of_all))))


def main() -> None:
    """Sample mutants of each module asked for, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", choices=CORE, action="append", help="default: all")
    parser.add_argument("--limit", type=int, default=10, help="mutants a module, at random")
    parser.add_argument("--sample", type=int, help="instead, mutants of all modules together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0, help="for the tests of a mutant")
    parser.add_argument("--log", type=Path, help="outcomes, one a line: read first, then added to")
    options = parser.parse_args()
    log = options.log
    known = dict.fromkeys(log.read_text().splitlines() if log and log.exists() else ())
    outcomes: dict[str, list[str]] = {"killed": [], "SURVIVED": []}
    sound = set()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "jgram"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        tried = chosen(options.module or CORE, options.limit, options.sample, options.seed)
        for module, line, was, now, whole in tried:
            change = f"jgram/{module}.py:{line}: {was}  ->  {now}"
            word = next((word for word in outcomes if f"{word:8} {change}" in known), None)
            if word is None:
                path = folder / "jgram" / f"{module}.py"
                source = path.read_text()
                if module not in sound and not survives(folder, module, options.seconds):
                    sys.exit(f"expected the tests of {module} to pass before anything is broken")
                sound.add(module)
                path.write_text(whole)
                word = "SURVIVED" if survives(folder, module, options.seconds) else "killed"
                path.write_text(source)
                if log:
                    with log.open("a") as file:
                        file.write(f"{word:8} {change}\n")
            outcomes[word].append(change)
            print(f"{word:8} {change}", flush=True)
    print(f"{len(tried)} mutants, {len(outcomes['SURVIVED'])} survived")
    print(*outcomes["SURVIVED"], sep="\n")


if __name__ == "__main__":
    main()
